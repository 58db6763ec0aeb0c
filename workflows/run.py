"""A handle on one run."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from workflows.definition.authored import walked_workflow
from workflows.errors import (
    AlreadyResumedError,
    InputError,
    LiveRunError,
    RunFailedError,
    RunNotFoundError,
    StateError,
)
from workflows.ids import uuid7
from workflows.pubsub.base import Event, Offset, PubSub, PubSubUnavailableError
from workflows.pubsub.hints import hint, run_topic, wake_topic
from workflows.running.claim import GO_ON, STEP_ONCE
from workflows.running.fork import cut_of, left_out, node_at
from workflows.running.snapshot import Snapshot, fold
from workflows.running.suspension import Suspension, answer_key, answer_name, open_suspensions, progress
from workflows.storage.base import Fork, Record, RunRow, RunState, Status
from workflows.values import check, decode, encode, encode_plain

if TYPE_CHECKING:
    from workflows.definition.graph import Workflow
    from workflows.execution import Runs

Out = TypeVar("Out")


class Run(Generic[Out]):
    """One run, by id. Every question is answered from storage, so a handle works in any process."""

    def __init__(
        self,
        runs: "Runs",
        pubsub: PubSub,
        run_id: str,
        *,
        tenant: str,
        workflow: "Workflow[Any, Out] | None" = None,
        poll_s: float = 0.5,
    ) -> None:
        self.id = run_id
        self.tenant = tenant
        self._runs = runs
        self._pubsub = pubsub
        self._workflow = workflow
        self._poll_s = poll_s

    async def row(self) -> RunRow:
        """The run's row. Raises RunNotFoundError."""
        row = await self._runs.run(self.id, tenant=self.tenant)
        if row is None:
            raise RunNotFoundError(f"tenant {self.tenant} has no run {self.id}")
        return row

    async def status(self) -> RunState:
        """Its state now."""
        return (await self.row()).state

    async def steps(self) -> list[Record]:
        """Its records, in the order they were committed."""
        await self.row()
        return await self._runs.load(self.id)

    async def result(self, *, timeout: float | None = None) -> Out:  # noqa: ASYNC109 — seconds, as in asyncio.wait_for
        """Wait for the end and return the output. Raises RunFailedError, TimeoutError."""
        async with asyncio.timeout(timeout):
            row = await self._ended()
        if row.state is not RunState.DONE:
            raise RunFailedError(row.run_id, row.state, row.error)
        output: Out = decode(
            row.output, self._workflow.output if self._workflow else Any, where=f"the output of run {self.id}"
        )
        return output

    async def _ended(self) -> RunRow:
        """Woken by the bus where there is one, by polling everywhere."""
        ended = asyncio.Event()

        async def look(event: Event) -> None:
            if self._is_end(event):
                ended.set()

        subscription = None
        with contextlib.suppress(PubSubUnavailableError):  # polling finds the end
            subscription = await self._pubsub.subscribe(await self._topic(), look)
        try:
            while (row := await self.row()).state.live:
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(self._poll_s):
                        await ended.wait()
            return row
        finally:
            if subscription is not None:
                await self._pubsub.unsubscribe(subscription)

    async def events(self, *, after: Offset | None = None) -> AsyncIterator[Event]:
        """Its live events until it ends: what it is sent, what steps emit, progress, and "completed" last. `after` replays from an offset
        ("0-0": all that is kept). They are for watching: a bus that was away has lost some, and a "gap" event says where.
        """
        arrived: asyncio.Queue[Event] = asyncio.Queue()

        async def take(event: Event) -> None:
            if event.type == "gap" or self.id in (event.data.get("run_id"), event.data.get("parent_id")):
                await arrived.put(event)

        subscription = await self._pubsub.subscribe(await self._topic(), take, after=after)
        ended = False
        try:
            while True:
                try:
                    async with asyncio.timeout(self._poll_s):
                        event = await arrived.get()
                except TimeoutError:
                    if ended:
                        return  # its last word was lost
                    ended = arrived.empty() and not (await self.row()).state.live
                    continue
                yield event
                if self._is_end(event):
                    return
        finally:
            await self._pubsub.unsubscribe(subscription)

    async def _topic(self) -> str:
        return run_topic(self.tenant, self.id, (await self.row()).key)

    def _is_end(self, event: Event) -> bool:
        return event.type == "completed" and event.data.get("run_id") == self.id

    async def cancel(self) -> bool:
        """Ask it to stop: at the next boundary, or in the middle of a step that would be run again anyway. False: it had ended."""
        row = await self.row()
        outcome = await self._runs.signal(
            self.id, tenant=self.tenant, name="$cancel", dedup_key="$cancel", payload=None
        )
        if outcome.run_id is not None:
            await hint(self._pubsub, "control", Event("cancel", {"run_id": self.id}))
            await self._wake(row)
        return outcome.run_id is not None or outcome.duplicate

    # Operators

    async def state_at(self, seq: int | None = None) -> Snapshot:
        """What was known once record `seq` was committed (None: now): nothing but the fold of the records up to it."""
        return fold([record for record in await self.steps() if seq is None or record.seq <= seq])

    async def time_travel(self, path: str = "", *, paused: bool = False, **override: Any) -> "Run[Out]":
        """Fork this ended run from just before `path` ("": from its start), with `input=…` in place of the value that had reached it.

        History is never edited: the fork is a run of its own, with neither key nor parent. From the cut on it runs PURE and READ steps
        freely; any other takes the source's result where its input is the same, else the fork suspends at `<path>!fork` and asks for a
        `ForkDecision`. Raises StateError when the run is live or never came to `path`, InputError for an input that does not fit.
        """
        if override.keys() - {"input"}:
            raise TypeError(f"time_travel() takes input=…, not {sorted(override)}")
        row, records = await self.row(), await self.steps()
        if row.state.live:
            raise StateError(f"run {self.id} is {row.state.value}; only an ended run can be forked")
        cut = cut_of(records, path)
        if cut is None and path:
            raise StateError(f"run {self.id} never came to {path!r}; it has {[record.path for record in records][:50]}")
        data = self._override(row, path, override["input"]) if override else None
        fork = Fork(
            str(uuid7()), self.id, self.tenant, cut or 1, row.input if path or data is None else data, paused=paused,
            leave_out=left_out(
                {record.path: record for record in records}, cut=cut or 1, target=path, overridden=data is not None
            ),
            records=(Record(f"{path}!input", Status.NOTE, data),) if path and data is not None else (),
        )  # fmt: skip
        if not await self._runs.fork(fork):
            raise StateError(f"run {self.id} is live again; only an ended run can be forked")
        await self._wake(row)
        return Run(
            self._runs, self._pubsub, fork.run_id, tenant=self.tenant, workflow=self._workflow, poll_s=self._poll_s
        )

    def _override(self, row: RunRow, path: str, value: Any) -> bytes:
        node: Any = self._workflow
        if self._workflow and path:
            node = node_at(walked_workflow(self._workflow, row.input), path)
        if self._workflow and node is None:
            raise InputError(f"workflow {self._workflow.id!r} has no step or workflow at {path!r}")
        where = f"the input of {path or self.id}"
        type_ = node.input if node else Any
        return encode(check(value, type_, where=where), type_, where=where)

    async def step_once(self, *, timeout: float = 30.0) -> list[Record]:  # noqa: ASYNC109 — seconds, as in asyncio.wait_for
        """Let a paused run take one step, wait until it has, and return what that recorded. Raises StateError, TimeoutError."""
        before = {record.path for record in await self.steps()}
        await self._tell(STEP_ONCE, str(uuid7()))
        async with asyncio.timeout(timeout):
            while True:
                records = [record for record in await self.steps() if record.path not in before]
                row = await self.row()
                if not row.state.live or (row.state is RunState.SUSPENDED and records):
                    return [record for record in await self.steps() if record.path not in before]
                await asyncio.sleep(self._poll_s / 10)

    async def go_on(self) -> None:
        """Let a paused run go on without being told for each step. Raises StateError."""
        await self._tell(GO_ON, GO_ON)

    async def _tell(self, name: str, dedup_key: str) -> None:
        row = await self.row()
        if not row.paused:
            raise StateError(f"run {self.id} is not paused; start it, or travel in time, with paused=True")
        outcome = await self._runs.signal(self.id, tenant=self.tenant, name=name, dedup_key=dedup_key, payload=None)
        if outcome.run_id is None and not outcome.duplicate:
            raise StateError(f"run {self.id} has ended")
        await self._wake(row)

    async def redrive(self) -> None:
        """Put a dead run back to work, from its last record. Raises StateError if it is not dead, LiveRunError if its key has a live run."""
        row = await self.row()
        outcome = await self._runs.redrive(self.id, tenant=self.tenant)
        if (live := outcome.live) is not None:
            raise LiveRunError(f"run {self.id} can't go on while run {live} of the same key is live", live)
        if not outcome.redriven:
            raise StateError(f"run {self.id} is {(await self.row()).state.value}, not dead")
        await self._wake(row)

    async def _wake(self, row: RunRow) -> None:
        """Have a worker of the run's queue look now; who is not told finds it by polling."""
        await hint(self._pubsub, wake_topic(row.queue), Event("wake"))

    # Suspensions

    async def suspensions(self) -> list[Suspension]:
        """What the run asks for and nobody has answered, in the order it was asked. One that has ended asks for nothing."""
        return await self._waiting() if (await self.row()).state.live else []

    async def _waiting(self) -> list[Suspension]:
        # The inbox first: an answer leaves it for the records.
        answered = {signal.dedup_key for signal in await self._runs.inbox(self.id)}
        waiting = open_suspensions({record.path: record for record in await self._runs.load(self.id)})
        return [each for each in waiting if each.answer_key not in answered]

    async def resume(self, value: Any, *, path: str | None = None, number: int | None = None) -> None:
        """Answer the suspension at `path` (needed when several wait). The same answer again is a repeat; another is refused.

        `number` is the suspension's, for an answer that must not go to a later question of the same step. Raises InputError when the
        answer does not fit what the question asks for, AlreadyResumedError when somebody else's was first, StateError when nothing
        waits there.
        """
        row, waiting = await self.row(), await self._waiting()
        target = path if path is not None else self._only(waiting)
        payload = encode_plain(value, where="the answer")
        found = next((each for each in waiting if each.path == target and number in (None, each.number)), None)
        if found is None:
            await self._check_repeat(target, number, payload)
            return
        found.check(payload)
        outcome = await self._runs.signal(
            self.id, tenant=self.tenant, name=answer_name(target), dedup_key=found.answer_key, payload=payload
        )
        if outcome.duplicate:
            await self._check_repeat(target, found.number, payload)
        elif outcome.run_id is None:
            raise StateError(f"run {self.id} has ended; nothing waits at {target}")
        else:
            await self._wake(row)

    def _only(self, waiting: list[Suspension]) -> str:
        if len(waiting) != 1:
            paths = sorted(each.path for each in waiting)
            raise StateError(f"run {self.id} waits at {paths or 'no path'}; say which with path=")
        return waiting[0].path

    async def _check_repeat(self, target: str, number: int | None, payload: bytes) -> None:
        records = {record.path: record for record in await self._runs.load(self.id)}
        asked, refused = progress(records, target)
        at = asked - 1 if number is None else number
        key = answer_key(target, at, refused.get(at, 0))
        given = await self._runs.signal_payload(self.id, key)
        if given is None:
            raise StateError(f"nothing of run {self.id} waits at {target!r}")
        if given != payload:
            raise AlreadyResumedError(f"run {self.id} was resumed at {target} already, with another answer")
