"""What a run's workflow tells while it is walked: live events, its end, its span. Best effort: whoever needs to know asks Temporal."""

import asyncio
import contextlib
from typing import Any

import structlog
from temporalio.client import Client, WorkflowHandle, WorkflowHistoryEventFilterType
from temporalio.service import RPCError

from workflows.pubsub.base import Event, PubSub
from workflows.pubsub.hints import hint
from workflows.temporal.attributes import FACTS, STATE
from workflows.temporal.ids import address
from workflows.temporal.messages import RunFacts
from workflows.tracing import Span, Tracer
from workflows.tracing.tracer import root_id


class Hints:
    """Takes hints from the threads that run workflow code, and publishes them from the loop it was made in."""

    def __init__(self, client: Client, fleet: str, pubsub: PubSub, tracer: Tracer) -> None:
        self._client = client
        self._fleet = fleet
        self._pubsub = pubsub
        self._tracer = tracer
        self._loop = asyncio.get_running_loop()
        self._telling: set[asyncio.Task[None]] = set()

    def give(self, run_id: str, topic: str, event: Event) -> None:
        """Publish an event of a run on its topic, soon. From any thread; never blocks, never raises."""
        with contextlib.suppress(RuntimeError):  # the loop has ended, and with it whoever would hear
            self._loop.call_soon_threadsafe(self._begin, run_id, topic, event)

    async def close(self) -> None:
        """Tell no more."""
        for task in list(self._telling):
            task.cancel()
        await asyncio.gather(*self._telling, return_exceptions=True)

    def _begin(self, run_id: str, topic: str, event: Event) -> None:
        task = asyncio.ensure_future(self._tell(run_id, topic, event))
        self._telling.add(task)
        task.add_done_callback(self._telling.discard)

    async def _tell(self, run_id: str, topic: str, event: Event) -> None:
        try:
            if event.type == "completed":
                await self._closed(run_id)
            await hint(self._pubsub, topic, event)
            if event.type == "completed":
                await self._trace(run_id)
        except RPCError as error:
            structlog.get_logger().debug("hint_lost", run_id=run_id, event=event.type, error=str(error))

    def _handle(self, run_id: str) -> WorkflowHandle[Any, Any]:
        workflow, execution = address(self._fleet, run_id)
        return self._client.get_workflow_handle(workflow, run_id=execution)

    async def _closed(self, run_id: str) -> None:
        """Return when the run's workflow has closed: it says so before, and whoever is told looks at once."""
        closing = WorkflowHistoryEventFilterType.CLOSE_EVENT
        events = self._handle(run_id).fetch_history_events(
            wait_new_event=True, event_filter_type=closing, skip_archival=True
        )
        async for _ in events:
            return

    async def _trace(self, run_id: str) -> None:
        """The span of a run that has ended, above those of its steps."""
        found = await self._handle(run_id).describe()
        facts: RunFacts = await found.memo_value(FACTS, type_hint=RunFacts)
        attributes: dict[str, Any] = {"version": facts.version, "key": facts.key, "left": "ended"}
        parent = root_id(facts.parent_id) if facts.parent_id else None
        span = Span(
            facts.workflow, "run", facts.tenant, facts.trace_id or run_id, run_id, parent, found.start_time, root_id(run_id),
            {**attributes, "state": found.typed_search_attributes.get(STATE)}, "ok", found.close_time,
        )  # fmt: skip
        self._tracer.ended(span)
