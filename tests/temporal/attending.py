"""Cases of the catalogue on a Temporal server: whoever is around a run there, and the histories it leaves."""

from datetime import UTC, datetime, timedelta
from typing import Any

from pydantic_core import from_json
from temporalio.client import WorkflowHistory
from temporalio.worker import Replayer, UnsandboxedWorkflowRunner

from tests.flows import Attendant, Case
from tests.waiting import until
from workflows import Engine
from workflows.definition.registry import Registry
from workflows.storage.base import Record, Status, StoreUnavailableError
from workflows.temporal import TemporalExecution
from workflows.temporal.listing import Listing
from workflows.temporal.outside import Outside, Outsider
from workflows.temporal.workflow import GraphWorkflow


class TemporalAttendant(Attendant):
    """Lets long waits be over by moving the clock of the runs, as far as their records say that they wait."""

    shift = timedelta(0)

    async def _wait_no_longer(self, due: datetime | None) -> None:
        records = {record.path: record for record in await self._engine.execution.runs.load(self.run_id)}
        waits = [moment for record in records.values() if (moment := _open_deadline(record, records)) is not None]
        left = min(waits, default=datetime.max.replace(tzinfo=UTC)) - datetime.now(UTC) - self.shift
        if timedelta(seconds=0.5) < left < timedelta(days=1000) and self._case.stop_at is None:
            self.shift += left
            await execution_of(self._engine).set_clock_offset(self.shift)


def _open_deadline(record: Record, records: dict[str, Record]) -> datetime | None:
    path = record.path.partition("@until")[0].partition("~")[0]
    if record.status not in (Status.UNTIL, Status.RETRY) or path in records:
        return None
    return datetime.fromisoformat(from_json(record.output or b"null"))


def execution_of(engine: Engine) -> TemporalExecution:
    assert isinstance(engine.execution, TemporalExecution)
    return engine.execution


async def attend(engine: Engine, attendant: Attendant, *, gone: Any = lambda: False) -> None:
    """Do what the run needs until it has ended with all that came of it, or whoever works it is `gone`."""
    listing = Listing(execution_of(engine).client, execution_of(engine)._fleet)

    async def over() -> bool:
        if gone():
            return True
        try:
            row = await attendant.look()
        except StoreUnavailableError:  # nobody is there to answer
            return False
        return not row.state.live and not await listing.live()

    await until(over, "the end of the run", deadline_s=60)


async def histories(engine: Engine) -> list[WorkflowHistory]:
    """Of every run of the fleet, oldest first."""
    execution = execution_of(engine)
    query = f"TaskQueue STARTS_WITH '{execution._fleet}/'"
    found = [each async for each in execution.client.list_workflows(query)]
    found.sort(key=lambda each: (each.start_time, each.run_id))
    handles = [execution.client.get_workflow_handle(each.id, run_id=each.run_id) for each in found]
    return [await handle.fetch_history() for handle in handles]


def replayer(case: Case) -> Replayer:
    """Replays runs of a case in a process that knows its workflows and has no server."""
    outside = Outside(Registry(case.flows), 2.0, lambda *_: None)
    execution = TemporalExecution()
    return Replayer(
        workflows=[GraphWorkflow],
        workflow_runner=UnsandboxedWorkflowRunner(),
        interceptors=[Outsider(outside)],
        data_converter=execution._connect["data_converter"],
    )
