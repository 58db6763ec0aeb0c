"""A handle on one run."""

import asyncio
import contextlib
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from pydantic_core import to_json

from workflows.errors import AlreadyResumedError, RunFailedError, RunNotFoundError, StateError
from workflows.pubsub.base import Event, PubSub, PubSubUnavailableError
from workflows.storage.base import Record, RunRow, RunState
from workflows.suspension import Suspension, answer_key, answer_name, open_suspensions, progress
from workflows.values import decode

if TYPE_CHECKING:
    from workflows.execution import Runs
    from workflows.graph import Workflow

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
            if event.type == "completed":
                ended.set()

        subscription = None
        with contextlib.suppress(PubSubUnavailableError):  # polling finds the end
            subscription = await self._pubsub.subscribe(f"{self.tenant}:run:{self.id}", look)
        try:
            while (row := await self.row()).state.live:
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(self._poll_s):
                        await ended.wait()
            return row
        finally:
            if subscription is not None:
                await self._pubsub.unsubscribe(subscription)

    async def cancel(self) -> bool:
        """Ask it to stop: at the next boundary, or in the middle of a step that would be run again anyway. False: it had ended."""
        await self.row()
        outcome = await self._runs.signal(
            self.id, tenant=self.tenant, name="$cancel", dedup_key="$cancel", payload=None
        )
        if outcome.run_id is not None:
            await self._publish("control", Event("cancel", {"run_id": self.id}))
            await self._publish("wake", Event("wake"))
        return outcome.run_id is not None or outcome.duplicate

    # Suspensions

    async def suspensions(self) -> list[Suspension]:
        """What the run asks for and nobody has answered, in the order it was asked."""
        waiting = open_suspensions({record.path: record for record in await self.steps()})
        if not waiting:
            return []
        answered = {signal.dedup_key for signal in await self._runs.inbox(self.id)}
        return [each for each in waiting if each.answer_key not in answered]

    async def resume(self, value: Any, *, path: str | None = None, number: int | None = None) -> None:
        """Answer the suspension at `path` (needed when several wait). The same answer again is a repeat; another is refused.

        `number` is the suspension's, for an answer that must not go to a later question of the same step. Raises InputError when the
        answer does not fit what the question asks for, AlreadyResumedError when somebody else's was first, StateError when nothing
        waits there.
        """
        waiting = await self.suspensions()
        target = path if path is not None else self._only(waiting)
        payload = to_json(value)
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
            await self._publish("wake", Event("wake"))

    def _only(self, waiting: list[Suspension]) -> str:
        if len(waiting) != 1:
            paths = sorted(each.path for each in waiting)
            raise StateError(f"run {self.id} waits at {paths or 'no path'}; say which with path=")
        return waiting[0].path

    async def _check_repeat(self, target: str, number: int | None, payload: bytes) -> None:
        records = {record.path: record for record in await self.steps()}
        asked, refused = progress(records, target)
        at = asked - 1 if number is None else number
        key = answer_key(target, at, refused.get(at, 0))
        given = await self._runs.signal_payload(self.id, key)
        if given is None:
            raise StateError(f"nothing of run {self.id} waits at {target!r}")
        if given != payload:
            raise AlreadyResumedError(f"run {self.id} was resumed at {target} already, with another answer")

    async def _publish(self, topic: str, event: Event) -> None:
        try:
            await self._pubsub.publish(topic, event)
        except PubSubUnavailableError:
            return
