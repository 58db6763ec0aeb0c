"""An event loop in which time is a number and the order of what is ready is drawn from a seed.

Nothing sleeps: when nobody is ready, time jumps to the next timer. One callback runs at a time, chosen at random among all that are
ready, which is every order that code without I/O may see. There is no I/O and there are no threads.

A callback belongs to the process in whose context it was scheduled. Those of a dead process are never run, as after kill -9: no
`finally`, no release. Those of a frozen one wait until it is thawed, as after SIGSTOP.
"""

import asyncio
import heapq
import itertools
import random
import time
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager, suppress
from contextvars import Context, ContextVar, copy_context
from typing import Any, Self, TypeVar, TypeVarTuple, Unpack
from unittest.mock import patch

T = TypeVar("T")
Ts = TypeVarTuple("Ts")
EPOCH = 1_767_600_000  # 2026-01-05T08:00:00Z, where virtual time begins
STEPS = 2_000_000
"""A simulation that takes more callbacks than this goes round in circles."""


class StuckError(RuntimeError):
    """Nothing is ready and no timer is set, or callbacks follow each other without end."""


class Process:
    """What the operating system knows of a process."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.dead = False
        self.frozen = False

    def __repr__(self) -> str:
        return self.name


_process: ContextVar[Process | None] = ContextVar("simulated_process", default=None)


def current_process() -> Process | None:
    """The process this code runs in; None outside of all."""
    return _process.get()


class VirtualLoop(asyncio.AbstractEventLoop):
    """The part of a loop that needs no I/O; asking for more is a NotImplementedError."""

    @classmethod
    def of(cls, rng: random.Random, *, disorder: float = 1.0, begin_s: float = 0.0) -> Self:
        """`disorder`: how often the next callback is drawn at random, from 0.0 (first come, first served) to 1.0 (always). `begin_s`:
        seconds after EPOCH at which it begins.
        """
        unfinished: Any = cls  # the protocol has 35 methods for I/O
        loop: Self = unfinished(rng, disorder, begin_s)
        return loop

    def __init__(self, rng: random.Random, disorder: float, begin_s: float) -> None:
        self._rng = rng
        self._disorder = disorder
        self._now = begin_s
        self._ready: list[tuple[Process | None, asyncio.Handle]] = []
        self._timers: list[tuple[float, int, Process | None, asyncio.TimerHandle]] = []
        self._parked: list[asyncio.Handle] = []
        self._numbers = itertools.count()
        self._running = False
        self._closed = False
        self._winding_up = False
        self.steps = 0
        self.complaints: list[dict[str, Any]] = []

    # Time and order

    def time(self) -> float:
        return self._now

    def _next(self) -> asyncio.Handle:
        while True:
            self._ring()
            able = [index for index, (process, _) in enumerate(self._ready) if not self._stopped(process, "frozen")]
            if able:
                chosen = self._rng.choice(able) if self._rng.random() < self._disorder else able[0]
                process, handle = self._ready.pop(chosen)
                if self._stopped(process, "dead"):
                    self._parked.append(handle)
                elif not handle.cancelled():
                    return handle
            elif self._timers:
                self._now = max(self._now, self._timers[0][0])
            else:
                raise StuckError(f"nothing is left to happen at {self._now:.3f} s")

    def _stopped(self, process: Process | None, how: str) -> bool:
        return process is not None and not self._winding_up and bool(getattr(process, how))

    def _ring(self) -> None:
        while self._timers and self._timers[0][0] <= self._now:
            _, _, process, handle = heapq.heappop(self._timers)
            self._ready.append((process, handle))

    # Scheduling

    def call_soon(
        self, callback: Callable[[Unpack[Ts]], object], *args: *Ts, context: Context | None = None
    ) -> asyncio.Handle:
        context = context if context is not None else copy_context()
        handle = asyncio.Handle(callback, args, self, context)
        self._ready.append((context.get(_process), handle))
        return handle

    call_soon_threadsafe = call_soon

    def call_at(
        self, when: float, callback: Callable[[Unpack[Ts]], object], *args: *Ts, context: Context | None = None
    ) -> asyncio.TimerHandle:
        context = context if context is not None else copy_context()
        handle = asyncio.TimerHandle(when, callback, args, self, context)
        heapq.heappush(self._timers, (when, next(self._numbers), context.get(_process), handle))
        return handle

    def call_later(
        self, delay: float, callback: Callable[[Unpack[Ts]], object], *args: *Ts, context: Context | None = None
    ) -> asyncio.TimerHandle:
        return self.call_at(self._now + delay, callback, *args, context=context)

    def _timer_handle_cancelled(self, handle: asyncio.TimerHandle) -> None:
        """A cancelled timer is passed over when its time comes."""

    def create_future(self) -> asyncio.Future[Any]:
        return asyncio.Future(loop=self)

    def create_task(self, coro: Any, *, name: str | None = None, context: Context | None = None) -> asyncio.Task[Any]:
        return asyncio.Task(coro, loop=self, name=name, context=context)

    def spawn(self, process: Process, coro: Coroutine[Any, Any, T]) -> "asyncio.Task[T]":
        """Run `coro` as that process."""
        context = copy_context()
        context.run(_process.set, process)
        return self.create_task(coro, context=context)

    # Running

    def run_until_complete(self, future: Any) -> Any:
        task = asyncio.ensure_future(future, loop=self)
        with self._entered():
            while not task.done():
                self.steps += 1
                if self.steps > STEPS:
                    raise StuckError(f"{STEPS} callbacks and no end, at {self._now:.3f} s")
                self._next()._run()
        return task.result()

    def simulate(self, main: Coroutine[Any, Any, T], *, within_s: float) -> T:
        """Run `main` on virtual time and entropy. Raises TimeoutError after `within_s` virtual seconds, StuckError."""

        async def bounded() -> T:
            async with asyncio.timeout(within_s):
                return await main

        with self._edges():
            try:
                result: T = self.run_until_complete(bounded())
            except BaseException:
                with suppress(StuckError):  # what went wrong first is what matters
                    self._wind_up()
                raise
            self._wind_up()
        return result

    def _wind_up(self) -> None:
        """Let everything end that has not, dead processes too: a task that is only dropped complains when it is collected."""
        tasks = [task for task in asyncio.all_tasks(self) if not task.done()]
        self._winding_up = True
        self._ready += [(None, handle) for handle in self._parked]
        for task in tasks:
            task.cancel()
        try:
            self.run_until_complete(asyncio.gather(*tasks, return_exceptions=True))
        finally:
            self.close()

    @contextmanager
    def _entered(self) -> Iterator[None]:
        asyncio._set_running_loop(self)
        self._running = True
        try:
            yield
        finally:
            self._running = False
            asyncio._set_running_loop(None)

    @contextmanager
    def _edges(self) -> Iterator[None]:
        """The clock and the entropy of the operating system are the simulation's; the code above them is the product's own."""
        state = random.getstate()
        entropy = random.Random(self._rng.random())
        random.seed(self._rng.random())
        with (
            patch.object(time, "monotonic", self.time),
            patch.object(time, "time", lambda: EPOCH + self._now),
            patch.object(time, "time_ns", lambda: EPOCH * 1_000_000_000 + round(self._now * 1_000_000) * 1_000),
            patch("os.urandom", entropy.randbytes),
            patch("random._urandom", entropy.randbytes),
        ):
            try:
                yield
            finally:
                random.setstate(state)

    # What asyncio asks of a loop

    def get_debug(self) -> bool:
        return False

    def is_running(self) -> bool:
        return self._running

    def is_closed(self) -> bool:
        return self._closed

    def close(self) -> None:
        self._closed = True
        self._ready.clear()
        self._timers.clear()

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        """Kept for whoever looks: asyncio would log it."""
        self.complaints.append(context)
