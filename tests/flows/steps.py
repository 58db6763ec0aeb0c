"""Steps that tell the ledger when they are done, for the workflows of the catalogue."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from tests.flows.ledger import Ledger, found
from workflows import Effect, Interrupted, Retry, Step, StepContext, step


class BusyError(Exception):
    """The service is there and has no time; longer than a worker waits."""

    retry_after_s = 20


class BrokenError(Exception):
    """It will not get better."""


class Steps:
    """Makes steps. Each writes `<its id>` into the ledger once it is done."""

    def __init__(self, ledger: Ledger) -> None:
        self.ledger = ledger

    def add(self, name: str, by: int = 1, **options: Any) -> Step[int, int]:
        """Adds `by`; a READ unless another effect is named."""

        async def add(n: int, ctx: StepContext) -> int:
            await self.ledger.did(name, ctx)
            return n + by

        return self._made(name, add, options)

    def spend(self, name: str) -> Step[int, int | Interrupted]:
        """Adds one, and can't be undone."""

        async def spend(n: int, ctx: StepContext) -> int | Interrupted:
            await self.ledger.did(name, ctx)
            return n + 1

        return step(id=name, effect=Effect.IRREVERSIBLE)(spend)

    def post(self, name: str) -> Step[int, int]:
        """Adds one, and can be looked for in the world outside."""

        async def look(key: str, n: int, ctx: StepContext) -> int | None:
            return n + 1 if found(self.ledger, key) else None

        return self.add(name, effect=Effect.RECONCILE, reconcile=look)

    def fail(self, name: str) -> Step[int, int]:
        """Is done, and then fails for good."""

        async def fail(n: int, ctx: StepContext) -> int:
            await self.ledger.did(name, ctx)
            raise BrokenError(f"no {n}")

        return self._made(name, fail, {})

    def busy(self, name: str, *, times: int, error: Callable[[], Exception], retry: Retry) -> Step[int, int]:
        """Fails `times` times before it works."""

        async def busy(n: int, ctx: StepContext) -> int:
            if ctx.attempt <= times:
                raise error()
            await self.ledger.did(name, ctx)
            return n + 1

        return self._made(name, busy, {"retry": retry})

    def ask(self, name: str, *, rounds: int = 1) -> Step[int, int]:
        """Adds what it is told, so many times."""

        async def ask(n: int, ctx: StepContext) -> int:
            for number in range(rounds):
                n += await ctx.suspend({"round": number}, resume=int)
            await self.ledger.did(name, ctx)
            return n

        return self._made(name, ask, {})

    def stuck(self, name: str, *, timeout: float | None = None) -> Step[int, int]:
        """Says that it has begun, and never ends by itself."""

        async def stuck(n: int, ctx: StepContext) -> int:
            await ctx.note("begun", value=True)
            await asyncio.Event().wait()
            return n

        return self._made(name, stuck, {"timeout": timeout})

    def undo(self, name: str) -> Callable[..., Awaitable[None]]:
        """A compensation that tells the ledger."""

        async def undo(n: int, ctx: StepContext) -> None:
            await self.ledger.did(name, ctx)

        return undo

    def drain(self, name: str) -> Step[Any, list[str]]:
        """Takes the messages that wait."""

        async def drain(value: Any, ctx: StepContext) -> list[str]:
            taken = await ctx.signals.drain("message")
            await self.ledger.did(name, ctx)
            return [signal.dedup_key.rsplit(":", 1)[-1] for signal in taken]

        return step(id=name, effect=Effect.READ)(drain)

    @staticmethod
    def _made(name: str, function: Any, options: dict[str, Any]) -> Step[int, int]:
        return step(id=name, **{"effect": Effect.READ, **options})(function)
