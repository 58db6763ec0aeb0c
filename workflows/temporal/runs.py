"""The operations on runs that live in Temporal: what they said, what they ask, where they stand."""

import asyncio
from collections import OrderedDict
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import structlog
from pydantic_core import to_json
from temporalio.client import (
    Client,
    RPCError,
    WorkflowExecution,
    WorkflowExecutionStatus,
    WorkflowFailureError,
    WorkflowQueryFailedError,
    WorkflowUpdateFailedError,
    WorkflowUpdateRPCTimeoutOrCancelledError,
)
from temporalio.exceptions import ApplicationError
from temporalio.service import RPCStatusCode

from workflows.running.claim import GO_ON, STEP_ONCE
from workflows.storage.base import (
    DeadSignal,
    Fork,
    LetterId,
    Record,
    RedriveOutcome,
    RunRow,
    RunState,
    Signal,
    SignalOutcome,
    StoreUnavailableError,
)
from workflows.storage.runs import RunCursor
from workflows.temporal.asking import UNANSWERED, AnyHandle, query, update
from workflows.temporal.attributes import DEAD_LETTERS, FACTS, OUTCOME, STATE, TENANT
from workflows.temporal.ids import address, quoted, run_id_of
from workflows.temporal.limits import unsupported
from workflows.temporal.listing import Age, Listing
from workflows.temporal.messages import Begin, Delivered, Outcome, RecordMessage, RunFacts, SignalMessage, Taken
from workflows.temporal.payloads import fitting

AWAY = (RPCStatusCode.UNAVAILABLE, RPCStatusCode.RESOURCE_EXHAUSTED, RPCStatusCode.FAILED_PRECONDITION)
"""What the server says of itself, and of a workflow that no worker was seen for."""
NOWHERE = SignalOutcome(run_id=None, seq=None, started=False, duplicate=False)
ALREADY = SignalOutcome(run_id=None, seq=None, started=False, duplicate=True)
AT_ONCE = 16
"""How many rows of a list are completed at once."""
REMEMBERED = 200
"""How many beginnings of runs are kept: they never change, and a row tells of them."""


class TemporalRuns:
    """Implements `execution.Runs` by Temporal's own calls. Queries are answered by a worker; where none runs they fail."""

    def __init__(self, client: Client, fleet: str) -> None:
        self._client = client
        self._fleet = fleet
        self._listing = Listing(client, fleet)
        self._begun: OrderedDict[str, Begin] = OrderedDict()

    # One run

    async def run(self, run_id: str, *, tenant: str | None = None) -> RunRow | None:
        """One run; with `tenant`, only if it is that tenant's."""
        async with reachable():
            found = await self._described(run_id, tenant)
            return None if found is None else await self._row(found)

    async def load(self, run_id: str) -> list[Record]:
        """All records of a run, in order."""
        records: list[Record] = []
        async with reachable():
            while True:
                page: list[RecordMessage] = await query(
                    self._handle(run_id), "records", len(records), result=list[RecordMessage]
                )
                records += [each.record() for each in page]
                if not page:
                    return records

    async def inbox(self, run_id: str) -> list[Signal]:
        """The signals of a run that no step has used."""
        async with reachable():
            found: list[Taken] = await query(self._handle(run_id), "inbox", result=list[Taken])
            return [each.signal() for each in found]

    async def signal_payload(self, run_id: str, dedup_key: str) -> bytes | None:
        """What a signal that was accepted said, used or not; None if there is none."""
        async with reachable():
            found: Taken | None = await query(self._handle(run_id), "payload", dedup_key, result=Taken | None)
            return None if found is None else to_json(found.payload)

    async def signal(
        self, run_id: str, *, tenant: str, name: str, dedup_key: str, payload: bytes | None
    ) -> SignalOutcome:
        """Put a signal in a live run's inbox. "$cancel" is a cancellation of the workflow; an answer is an update, so that one wins."""
        if name in (STEP_ONCE, GO_ON):
            raise unsupported("paused")
        message = SignalMessage.of(name, dedup_key, payload)
        fitting(f"the signal {name!r}", message)
        async with reachable():
            found = await self._described(run_id, tenant)
            if found is None:
                return NOWHERE
            handle = self._client.get_workflow_handle(found.id, run_id=found.run_id)
            try:
                if found.status is WorkflowExecutionStatus.RUNNING:
                    return await self._sent(handle, run_id, message)
            except RPCError as error:
                if error.status is not RPCStatusCode.NOT_FOUND:
                    raise
            except WorkflowUpdateFailedError as error:  # the workflow closed before it answered
                structlog.get_logger().debug("signal_too_late", run_id=run_id, name=name, error=str(error.cause))
            return await self._too_late(found, message)

    async def _too_late(self, ended: WorkflowExecution, message: SignalMessage) -> SignalOutcome:
        """Of a run that has ended: whether it was told so before."""
        if message.name == "$cancel":
            state = _state(await self._client.get_workflow_handle(ended.id, run_id=ended.run_id).describe())
            return ALREADY if state is RunState.CANCELLED else NOWHERE
        if not message.name.startswith("$"):
            return NOWHERE
        handle = self._client.get_workflow_handle(ended.id, run_id=ended.run_id)
        known: Taken | None = await query(handle, "payload", message.dedup_key, result=Taken | None)
        return NOWHERE if known is None else ALREADY

    async def _sent(self, handle: AnyHandle, run_id: str, message: SignalMessage) -> SignalOutcome:
        accepted = SignalOutcome(run_id, None, started=False, duplicate=False)
        if message.name == "$cancel":
            await handle.cancel()
            return accepted
        if not message.name.startswith("$"):
            await handle.signal("signal", message)
            return accepted
        delivered: Delivered = await update(handle, "deliver", [message], result=Delivered)
        return (
            ALREADY if delivered.seq is None else SignalOutcome(run_id, delivered.seq, started=False, duplicate=False)
        )

    # Many

    async def runs(
        self,
        *,
        tenant: str | None = None,
        workflow: str | None = None,
        key: str | None = None,
        states: Sequence[RunState] = (),
        limit: int = 100,
        before: str | None = None,
    ) -> list[RunRow]:
        """Runs, newest first. Temporal's visibility follows a run with a little delay."""
        async with reachable():
            last = None if before is None else self._age(RunCursor.parse(before))
            found = await self._listing.runs(
                tenant=tenant, workflow=workflow, key=key, states=states, limit=limit, before=last
            )
            gate = asyncio.Semaphore(AT_ONCE)

            async def row(execution: WorkflowExecution) -> RunRow:
                async with gate:
                    return await self._row(execution)

            return list(await asyncio.gather(*map(row, found)))

    async def dead_signals(self, *, tenant: str, limit: int = 100, before: str | None = None) -> list[DeadSignal]:
        """The signals of a tenant's ended runs that nobody will read, newest first. Raises InputError if `before` is no letter's id."""
        last = None if before is None else LetterId.parse(before)
        async with reachable():
            letters: list[DeadSignal] = []
            async for execution in self._listing.where(tenant=tenant, more=f"{DEAD_LETTERS.name} > 0"):
                facts = await self._facts(execution)
                outcome = await self._outcome(execution)
                run_id = run_id_of(facts, execution.run_id)
                letters += [
                    DeadSignal(
                        facts.tenant,
                        facts.workflow,
                        facts.key,
                        run_id,
                        each.signal(),
                        execution.close_time or execution.start_time,
                    )
                    for each in outcome.dead_letters
                ]
            listed = sorted(letters, key=_place, reverse=True)
            return [each for each in listed if last is None or _place(each) < last][:limit]

    async def fork(self, fork: Fork) -> bool:
        """Raises UnsupportedError."""
        raise unsupported("fork")

    async def redrive(self, run_id: str, *, tenant: str) -> RedriveOutcome:
        """Raises UnsupportedError."""
        raise unsupported("redrive")

    # What Temporal knows

    def _age(self, cursor: RunCursor) -> Age:
        workflow, execution = address(self._fleet, cursor.run_id)
        return cursor.created_at, workflow, execution or ""

    def _handle(self, run_id: str) -> AnyHandle:
        workflow, execution = address(self._fleet, run_id)
        return self._client.get_workflow_handle(workflow, run_id=execution)

    async def _described(self, run_id: str, tenant: str | None) -> WorkflowExecution | None:
        try:
            found = await self._handle(run_id).describe()
        except RPCError as error:
            if error.status in (RPCStatusCode.NOT_FOUND, RPCStatusCode.INVALID_ARGUMENT):
                return None
            raise
        owner = found.typed_search_attributes.get(TENANT)
        return found if owner is not None and (tenant is None or quoted(tenant) == owner) else None

    async def _facts(self, execution: WorkflowExecution) -> RunFacts:
        facts: RunFacts = await execution.memo_value(FACTS, type_hint=RunFacts)
        return facts

    async def _row(self, execution: WorkflowExecution) -> RunRow:
        facts, begin = await asyncio.gather(self._facts(execution), self._begin(execution))
        live = execution.status is WorkflowExecutionStatus.RUNNING
        ended = None if live else await self._outcome(execution)
        done = ended is not None and ended.state is RunState.DONE
        return facts.row(
            run_id_of(facts, execution.run_id),
            _state(execution) if ended is None else ended.state,
            created_at=execution.start_time,
            input=to_json(begin.value),
            output=to_json(ended.output) if ended is not None and done else None,
            error=None if ended is None else ended.failure,
            finished_at=execution.close_time,
        )

    async def _begin(self, execution: WorkflowExecution) -> Begin:
        known = self._begun.get(execution.run_id)
        if known is None:
            known = self._begun[execution.run_id] = await self._first_event(execution)
            while len(self._begun) > REMEMBERED:
                self._begun.popitem(last=False)
        return known

    async def _first_event(self, execution: WorkflowExecution) -> Begin:
        handle = self._client.get_workflow_handle(execution.id, run_id=execution.run_id)
        async for event in handle.fetch_history_events(page_size=1):
            payloads = event.workflow_execution_started_event_attributes.input.payloads
            (begin,) = await self._client.data_converter.decode(payloads, [Begin])
            assert isinstance(begin, Begin)
            return begin
        raise AssertionError(f"workflow {execution.id} has no history")

    async def _outcome(self, execution: WorkflowExecution) -> Outcome:
        """How a closed workflow's run ended, also where Temporal or an operator ended it."""
        kept: Outcome | None = await execution.memo_value(OUTCOME, default=None, type_hint=Outcome)
        if kept is not None:
            return kept
        handle: Any = self._client.get_workflow_handle(execution.id, run_id=execution.run_id, result_type=Outcome)
        try:
            found: Outcome = await handle.result(follow_runs=False)
        except WorkflowFailureError as error:
            cause = error.cause
            if isinstance(cause, ApplicationError) and cause.details:
                return Outcome.model_validate(cause.details[0])
            failure = {"type": type(cause).__name__, "message": str(cause), "causes": []}
            stopped = execution.status in (WorkflowExecutionStatus.TERMINATED, WorkflowExecutionStatus.CANCELED)
            return Outcome(state=RunState.CANCELLED if stopped else RunState.FAILED, failure=failure)
        return found


def _place(letter: DeadSignal) -> LetterId:
    return LetterId(letter.died_at, letter.run_id, letter.signal.seq)


def _state(execution: WorkflowExecution) -> RunState:
    return RunState(execution.typed_search_attributes.get(STATE, RunState.READY.value))


@asynccontextmanager
async def reachable() -> AsyncIterator[None]:
    """Around calls of Temporal. Raises StoreUnavailableError where it, or a worker that has to answer, can't be reached."""
    try:
        yield
    except (WorkflowUpdateRPCTimeoutOrCancelledError, WorkflowQueryFailedError) as error:
        raise StoreUnavailableError(f"no worker of the run's workflow answers: {error}") from error
    except RPCError as error:
        if error.status in (*UNANSWERED, *AWAY):
            raise StoreUnavailableError(f"Temporal does not answer: {error}") from error
        raise
