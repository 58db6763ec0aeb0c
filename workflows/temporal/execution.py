"""The execution that carries runs out in Temporal: `Engine(execution=TemporalExecution(address))` is all that changes for a user."""

import asyncio
from collections.abc import Sequence
from datetime import timedelta
from functools import partial
from typing import Any

from temporalio.api.operatorservice.v1 import AddSearchAttributesRequest, ListSearchAttributesRequest
from temporalio.client import Client, RPCError
from temporalio.contrib.pydantic import pydantic_data_converter
from temporalio.service import RPCStatusCode
from temporalio.worker import PollerBehaviorSimpleMaximum, UnsandboxedWorkflowRunner, Worker

from workflows.definition.registry import Registry
from workflows.errors import WorkflowError
from workflows.pubsub.base import PubSub
from workflows.storage.base import NewRun, SignalOutcome, Store, StoreUnavailableError
from workflows.storage.schema import Write
from workflows.temporal.activities import Activities
from workflows.temporal.attributes import REGISTERED
from workflows.temporal.hints import Hints
from workflows.temporal.host import QUEUES
from workflows.temporal.ids import address, queue_of
from workflows.temporal.limits import unsupported
from workflows.temporal.listing import Listing
from workflows.temporal.messages import SignalMessage
from workflows.temporal.outside import Outside, Outsider
from workflows.temporal.polling import Polling
from workflows.temporal.runs import TemporalRuns, reachable
from workflows.temporal.starting import Starter
from workflows.temporal.workflow import GraphWorkflow, ReceivedWorkflow
from workflows.tracing import Tracer

GRACE_S = 25.0
"""How long a leaving process waits for steps that can't be undone before it leaves them interrupted."""

STICKY_S = 5.0
"""How long a run waits for the process that has it in memory before any other may take it: as a killed one never answers."""

FEW: dict[str, Any] = {
    "workflow_runner": UnsandboxedWorkflowRunner(),
    "workflow_task_poller_behavior": PollerBehaviorSimpleMaximum(2),
    "activity_task_poller_behavior": PollerBehaviorSimpleMaximum(2),
}
"""A process polls for each workflow that it knows, so for each of them with few."""


class TemporalExecution:
    """Runs as workflows of a Temporal server, worked by this process (`worker=False`: by others).

    Processes of one `fleet` work each other's runs, and see no run of another: each version of a workflow has a task queue there, which those
    poll that know it. A step is given up for lost when it was not heard of for `heartbeat_s` seconds; a process that leaves waits `grace_s`
    before it cuts off those that would be run again anyway, and longer for those that can't be undone. `concurrency` bounds the steps of one
    workflow carried out at once. What else is given goes to `temporalio.client.Client.connect`, such as `tls`, `api_key`, or a
    `data_converter` with a codec that encrypts; it must be made from `temporalio.contrib.pydantic.pydantic_data_converter`.

    Raises ValueError for a fleet's name with a colon or a slash in it.
    """

    def __init__(
        self,
        address: str = "127.0.0.1:7233",
        *,
        namespace: str = "default",
        fleet: str = "workflows",
        worker: bool = True,
        concurrency: int = 100,
        heartbeat_s: float = 10.0,
        grace_s: float = 5.0,
        **connect: Any,
    ) -> None:
        if not fleet or set(fleet) & set(":/"):
            raise ValueError(f"a fleet's name is a part of workflow ids and has neither colon nor slash: {fleet!r}")
        self._address = address
        self._namespace = namespace
        self._fleet = fleet
        self._works = worker
        self._concurrency = concurrency
        self._heartbeat_s = heartbeat_s
        self._grace_s = grace_s
        self._connect = {"data_converter": pydantic_data_converter, **connect}
        self._client: Client | None = None
        self._starter: Starter | None = None
        self._runs: TemporalRuns | None = None
        self._polling: list[Polling] = []
        self.activities: Activities | None = None
        self._hints: Hints | None = None

    @property
    def runs(self) -> TemporalRuns:
        """The operations on runs."""
        assert self._runs is not None, "the execution is not open"
        return self._runs

    @property
    def client(self) -> Client:
        """The connection, for what only Temporal has."""
        assert self._client is not None, "the execution is not open"
        return self._client

    def store(self, purpose: str) -> Store:
        """Raises UnsupportedError: no store keeps the runs."""
        raise unsupported(purpose)

    # Life

    async def open(self, workflows: Registry, *, pubsub: PubSub, tracer: Tracer) -> None:
        """Connect, register the search attributes, and begin to work. Raises StoreUnavailableError if Temporal can't be reached."""
        try:
            client = await Client.connect(self._address, namespace=self._namespace, **self._connect)
        except RuntimeError as error:
            raise StoreUnavailableError(f"Temporal at {self._address} can't be reached: {error}") from error
        async with reachable():
            await register_attributes(client, self._namespace)
        self._client = client
        self._starter = Starter(client, workflows, self._fleet)
        self._runs = TemporalRuns(client, self._fleet)
        if self._works:
            self._work(client, self._starter, workflows, pubsub, tracer)

    def _work(self, client: Client, starter: Starter, workflows: Registry, pubsub: PubSub, tracer: Tracer) -> None:
        self._hints = Hints(client, self._fleet, pubsub, tracer)
        self.activities = Activities(workflows, starter, pubsub, tracer, client, heartbeat_s=self._heartbeat_s)
        outsider = Outsider(Outside(workflows, self._heartbeat_s, self._hints.give))

        def marking() -> Worker:
            return Worker(client, task_queue=self._fleet, workflows=[ReceivedWorkflow], **FEW)

        def working(queue: str) -> Worker:
            assert self.activities is not None
            return Worker(
                client, task_queue=queue, workflows=[GraphWorkflow], activities=self.activities.all, interceptors=[outsider],
                max_concurrent_activities=self._concurrency, graceful_shutdown_timeout=timedelta(seconds=GRACE_S),
                sticky_queue_schedule_to_start_timeout=timedelta(seconds=min(self._heartbeat_s, STICKY_S)),
                max_heartbeat_throttle_interval=timedelta(seconds=self._heartbeat_s / 4), **FEW,
            )  # fmt: skip

        queues = [queue_of(self._fleet, workflow_id, version) for workflow_id, version in workflows]
        self._polling = [Polling(marking), *(Polling(partial(working, queue)) for queue in queues)]

    async def close(self) -> None:
        """Cut off what would be run again anyway, wait for what can't be undone, and leave the runs to others."""
        await self.stop_polling()
        if self._hints is not None:
            await self._hints.close()
        self._client = None

    async def stop_polling(self) -> None:
        """Take nothing more, and wait for what is carried out: for what would be run again anyway not longer than `grace_s`."""
        polling, self._polling = self._polling, []
        if self.activities is not None and polling:
            cutting = asyncio.get_running_loop().call_later(self._grace_s, self.activities.cut_off)
            await asyncio.gather(*(each.stop() for each in polling))
            cutting.cancel()

    async def tell_workers(self, queue: str) -> None:
        """Temporal tells its workers itself."""

    # Runs

    async def start(self, run: NewRun, *, writes: Sequence[Write] = (), fresh: bool = True) -> str:
        """Start a run, or find the live one of its key. With a key, the id is one that Temporal gives."""
        if writes:
            raise unsupported("writes")
        if run.paused:
            raise unsupported("paused")
        if run.queue not in QUEUES:
            raise unsupported("queues")
        if run.priority != NewRun("", "", "").priority:
            raise unsupported("priority")
        async with reachable():
            return await self._started.start(run)

    async def signal_with_start(
        self, run: NewRun, *, name: str, dedup_key: str, payload: bytes | None, writes: Sequence[Write] = ()
    ) -> SignalOutcome:
        """Give a signal to the live run of a key, or start `run` with it."""
        if writes:
            raise unsupported("writes")
        async with reachable():
            return await self._started.signal_with_start(run, SignalMessage.of(name, dedup_key, payload))

    @property
    def _started(self) -> Starter:
        assert self._starter is not None, "the execution is not open"
        return self._starter

    # Time

    async def set_clock_offset(self, offset: timedelta) -> None:
        """Move the clock of every live run of the fleet, and of those that start from here: only tests do."""
        self._started.offset = offset
        known = [address(self._fleet, run_id) for run_id in self._started.recent]
        for workflow, execution in {*known, *await Listing(self.client, self._fleet).live()}:
            try:
                await self.client.get_workflow_handle(workflow, run_id=execution).signal(
                    "clock", offset.total_seconds()
                )
            except RPCError as error:
                if error.status is not RPCStatusCode.NOT_FOUND:
                    raise


async def register_attributes(client: Client, namespace: str) -> None:
    """Register the search attributes that are missing. Raises WorkflowError where this process may not."""
    try:
        known = await client.operator_service.list_search_attributes(ListSearchAttributesRequest(namespace=namespace))
        missing = {name: kind for name, kind in REGISTERED.items() if name not in known.custom_attributes}
        if missing:
            await client.operator_service.add_search_attributes(
                AddSearchAttributesRequest(namespace=namespace, search_attributes=missing)
            )
    except RPCError as error:
        if error.status in (RPCStatusCode.PERMISSION_DENIED, RPCStatusCode.UNIMPLEMENTED):
            raise WorkflowError(
                f"the search attributes {sorted(REGISTERED)} must be registered in namespace {namespace!r}, and this process may not: {error}"
            ) from error
        if error.status is RPCStatusCode.NOT_FOUND:
            raise WorkflowError(f"Temporal has no namespace {namespace!r}: {error}") from error
        if error.status is not RPCStatusCode.ALREADY_EXISTS:
            raise
