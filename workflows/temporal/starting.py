"""Starts runs, and brings signals to the live run of a key or to a new one."""

from collections import deque
from dataclasses import fields
from datetime import UTC, datetime, timedelta
from typing import Any

from temporalio.client import Client, WorkflowHandle
from temporalio.common import WorkflowIDConflictPolicy, WorkflowIDReusePolicy
from temporalio.exceptions import WorkflowAlreadyStartedError
from temporalio.service import RPCError, RPCStatusCode

from workflows.definition.callbacks import Callbacks
from workflows.definition.graph import Workflow
from workflows.definition.registry import Registry
from workflows.definition.spec import write_spec
from workflows.errors import NoExecutorError
from workflows.storage.base import NewRun, SignalOutcome
from workflows.temporal.attributes import attributes_of, memo_of
from workflows.temporal.ids import address, queue_of, received_id, run_id_of, workflow_id
from workflows.temporal.messages import Begin, Handler, RunFacts, SignalMessage, Wake
from workflows.temporal.payloads import fitting
from workflows.temporal.workflow import RECEIVED

REMEMBERED = 1_000


class Starter:
    """Starts runs of one fleet. `offset` moves their clocks: only tests set it."""

    def __init__(self, client: Client, registry: Registry, fleet: str) -> None:
        self._client = client
        self._registry = registry
        self._fleet = fleet
        self._specs: dict[tuple[str, str], dict[str, Any]] = {}
        self.offset = timedelta(0)
        self.recent: deque[str] = deque(maxlen=REMEMBERED)
        """Ids of the last runs that were started or signalled here."""

    def begin(self, run: NewRun) -> Begin:
        """The beginning of a new run. Raises NoExecutorError if this process does not know its workflow, InputError if it is too large."""
        workflow = self._registry.get((run.workflow, run.version))
        if workflow is None:
            raise NoExecutorError(
                f"this process does not know workflow {run.workflow!r} version {run.version!r}, so it can't say what is to be run;"
                " give it to the engine"
            )
        told = tuple(each.name for each in fields(Callbacks) if getattr(workflow.callbacks, each.name) is not None)
        begin = Begin.of(
            run, self._spec(workflow), offset=self.offset, callbacks=told, handler=self._handler(workflow.on_failure)
        )
        fitting(f"the input of {run.workflow}", begin)
        return begin

    def again(self, run: RunFacts) -> Begin:
        """The beginning of the next run of a run's key, with no value but the signals it will be given."""
        new = NewRun(
            "", run.tenant, run.workflow, run.version, run.key, run.queue, trace_id=run.trace_id, max_attempts=run.max_attempts
        )  # fmt: skip
        return self.begin(new)

    def _spec(self, workflow: Workflow[Any, Any]) -> dict[str, Any]:
        key = (workflow.id, workflow.version)
        if key not in self._specs:
            self._specs[key] = write_spec(workflow)
        return self._specs[key]

    def _handler(self, name: str | None) -> Handler | None:
        found = None if name is None else self._registry.newest(name)
        if found is None:
            return None
        return Handler(
            workflow=found.id, version=found.version, spec=self._spec(found), max_attempts=found.max_attempts
        )

    async def start(self, run: NewRun) -> str:
        """Start a run, or find the live one of its key, or the one of its id. Returns the id."""
        begin = self.begin(run)
        options = self._options(begin)
        if run.key is None:
            options["id_reuse_policy"] = WorkflowIDReusePolicy.REJECT_DUPLICATE
        else:
            options["id_conflict_policy"] = WorkflowIDConflictPolicy.USE_EXISTING
        if run.available_at is not None:
            options["start_delay"] = max(run.available_at - self.offset - datetime.now(UTC), timedelta(0))
        try:
            handle = await self._client.start_workflow(run.workflow, begin, **options)
        except WorkflowAlreadyStartedError as error:
            return self._remember(run_id_of(begin.run, error.run_id or ""))
        return self._remember(run_id_of(begin.run, _execution(handle)))

    async def signal_with_start(self, run: NewRun, message: SignalMessage) -> SignalOutcome:
        """Accept an outside event once: give it to the live run of the key, or to a new one.

        That it was accepted is an execution of its own, made after the signal: it outlives the run for as long as the namespace keeps closed
        workflows. Killed between the two, the event is accepted again when it is delivered again, which a live run sees by its key.
        """
        duplicate = SignalOutcome(run_id=None, seq=None, started=False, duplicate=True)
        mark = received_id(self._fleet, run.tenant, message.dedup_key)
        if await self._exists(mark):
            return duplicate
        run_id, started = await self._deliver(self.begin(run), message)
        try:
            await self._client.start_workflow(
                RECEIVED, id=mark, task_queue=self._fleet, id_reuse_policy=WorkflowIDReusePolicy.REJECT_DUPLICATE
            )
        except WorkflowAlreadyStartedError:
            return duplicate
        return SignalOutcome(run_id, None, started=started, duplicate=False)

    async def _deliver(self, begin: Begin, message: SignalMessage) -> tuple[str, bool]:
        fitting(f"the signal {message.name!r}", message)
        handle = await self._client.start_workflow(
            begin.run.workflow, begin, start_signal="signal", start_signal_args=[message], **self._options(begin)
        )
        response: Any = handle._start_workflow_response  # noqa: SLF001 — whether it was started is in no other place
        return self._remember(run_id_of(begin.run, response.run_id)), bool(response.started)

    async def wake_parent(self, wake: Wake) -> None:
        """Tell a parent of the end of its background run: itself, the live run of its key, or a next one, if there can be one."""
        parent = wake.run.parent
        assert parent is not None
        message = SignalMessage(name="task", dedup_key=f"task:{wake.payload['run_id']}", payload=wake.payload)
        if parent.begin is not None:
            await self._deliver(parent.begin, message)
            return
        workflow, _ = address(self._fleet, (wake.run.parent_id or "").partition("@")[0])
        try:
            await self._client.get_workflow_handle(workflow).signal("signal", message)
        except RPCError as error:
            if error.status is not RPCStatusCode.NOT_FOUND:
                raise

    async def _exists(self, workflow: str) -> bool:
        try:
            await self._client.get_workflow_handle(workflow).describe()
        except RPCError as error:
            if error.status is RPCStatusCode.NOT_FOUND:
                return False
            raise
        return True

    def _options(self, begin: Begin) -> dict[str, Any]:
        return {
            "id": workflow_id(self._fleet, begin.run),
            "task_queue": queue_of(self._fleet, begin.run.workflow, begin.run.version),
            "search_attributes": attributes_of(begin.run),
            "memo": memo_of(begin),
        }

    def _remember(self, run_id: str) -> str:
        self.recent.append(run_id)
        return run_id


def _execution(handle: "WorkflowHandle[Any, Any]") -> str:
    return handle.result_run_id or ""
