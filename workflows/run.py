"""A handle on one run."""

import asyncio
import contextlib
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from pydantic_core import to_json

from workflows.errors import AlreadyResumedError, RunFailedError, RunNotFoundError, StateError
from workflows.pubsub.base import Event, PubSub, PubSubUnavailableError
from workflows.storage.base import Record, RunRow, RunState, Status, Store
from workflows.values import decode

if TYPE_CHECKING:
    from workflows.graph import Workflow

Out = TypeVar("Out")


class Run(Generic[Out]):
    """One run, by id. Every question is answered from storage, so a handle works in any process."""

    def __init__(
        self,
        store: Store,
        pubsub: PubSub,
        run_id: str,
        *,
        tenant: str,
        workflow: "Workflow[Any, Out] | None" = None,
        poll_s: float = 0.5,
    ) -> None:
        self.id = run_id
        self.tenant = tenant
        self._store = store
        self._pubsub = pubsub
        self._workflow = workflow
        self._poll_s = poll_s

    async def row(self) -> RunRow:
        """The run's row. Raises RunNotFoundError."""
        row = await self._store.run(self.id, tenant=self.tenant)
        if row is None:
            raise RunNotFoundError(f"tenant {self.tenant} has no run {self.id}")
        return row

    async def status(self) -> RunState:
        """Its state now."""
        return (await self.row()).state

    async def steps(self) -> list[Record]:
        """Its records, in the order they were committed."""
        await self.row()
        return await self._store.load(self.id)

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
        outcome = await self._store.signal(
            self.id, tenant=self.tenant, name="$cancel", dedup_key="$cancel", payload=None
        )
        if outcome.run_id is not None:
            await self._publish("control", Event("cancel", {"run_id": self.id}))
            await self._publish("wake", Event("wake"))
        return outcome.run_id is not None or outcome.duplicate

    async def suspensions(self) -> dict[str, Any]:
        """The paths that wait for a resume, with the payload each suspended with."""
        records = {record.path: record for record in await self.steps()}
        return {
            path.removesuffix("!suspended"): decode(record.output, Any, where=path)
            for path, record in records.items()
            if path.endswith("!suspended")
            and record.status is Status.NOTE
            and path.removesuffix("!suspended") not in records
        }

    async def resume(self, value: Any, *, path: str | None = None) -> None:
        """Answer the suspension at `path` (needed when several wait). The same answer again is a repeat; another is refused.

        Raises AlreadyResumedError, StateError when nothing waits there.
        """
        waiting = await self.suspensions()
        target = path if path is not None else self._only(waiting)
        payload = to_json(value)
        if target not in waiting:
            await self._check_repeat(target, payload)
            return
        outcome = await self._store.signal(
            self.id, tenant=self.tenant, name=f"$resume:{target}", dedup_key=f"$resume:{target}", payload=payload
        )
        if outcome.duplicate:
            await self._check_repeat(target, payload)
        elif outcome.run_id is None:
            raise StateError(f"run {self.id} has ended; nothing waits at {target}")
        else:
            await self._publish("wake", Event("wake"))

    def _only(self, waiting: dict[str, Any]) -> str:
        if len(waiting) != 1:
            raise StateError(f"run {self.id} waits at {sorted(waiting) or 'no path'}; say which with path=")
        return next(iter(waiting))

    async def _check_repeat(self, target: str, payload: bytes) -> None:
        given = await self._store.signal_payload(self.id, f"$resume:{target}")
        if given is None:
            raise StateError(f"nothing of run {self.id} waits at {target!r}")
        if given != payload:
            raise AlreadyResumedError(f"run {self.id} was resumed at {target} already, with another answer")

    async def _publish(self, topic: str, event: Event) -> None:
        try:
            await self._pubsub.publish(topic, event)
        except PubSubUnavailableError:
            return
