"""Every operation of the builder on a Temporal server, and its history replayed: what a workflow does is the same every time.

`histories/` has those of an earlier version. A change that makes one of them fail would strand the runs that live in it when it is deployed:
record new ones (THREADLINE_RECORD=1) only if that is meant, and say in the changelog what to do with the runs.
"""

import json
import os
from pathlib import Path
from typing import Any

import pytest
from temporalio.client import WorkflowHistory

from tests.conformance.engines import Boot
from tests.flows import MemoryLedger, catalogue
from tests.flows.attendant import TENANT
from tests.temporal.attending import TemporalAttendant, attend, histories, replayer

NAMES = tuple(catalogue(MemoryLedger()))
KEPT = Path(__file__).parent / "histories"


def kept(name: str) -> Path:
    return KEPT / f"{name.replace(' ', '-').replace(',', '')}.json"


OLD = tuple(name for name in NAMES if kept(name).exists())
RECORD = os.environ.get("THREADLINE_RECORD") == "1"


@pytest.mark.parametrize("name", NAMES)
async def test_it_ends_as_it_should_and_its_history_replays(boot: Boot, name: str) -> None:
    ledger = MemoryLedger()
    case = catalogue(ledger)[name]
    async with boot(*case.flows) as engine:
        attendant = TemporalAttendant(engine, case, "run-1")
        await attendant.begin()
        await attend(engine, attendant)
        row = await engine.execution.runs.run(attendant.run_id, tenant=TENANT)
        assert row is not None
        assert case.problems(row, ledger.entries(), disturbed=False) == []
        told = await histories(engine)
    assert told
    for history in told:
        await replayer(case).replay_workflow(history)
    if RECORD:
        KEPT.mkdir(exist_ok=True)
        text = json.dumps([{"id": each.workflow_id, **_placeless(each)} for each in told])
        kept(name).write_text(text + "\n")


def _placeless(history: WorkflowHistory) -> dict[str, Any]:
    """As JSON, without traces of where it was recorded."""
    found: dict[str, Any] = json.loads(
        history.to_json(), object_hook=lambda each: {**each, "stackTrace": ""} if "stackTrace" in each else each
    )
    return found


def test_no_history_tells_where_it_was_recorded() -> None:
    assert not [path.name for path in KEPT.glob("*.json") if '"stackTrace": "  File' in path.read_text()]


def test_histories_of_nearly_every_operation_are_kept() -> None:
    assert len(OLD) > 35


@pytest.mark.parametrize("name", OLD)
async def test_a_history_of_an_earlier_version_replays(name: str) -> None:
    case = catalogue(MemoryLedger())[name]
    for each in json.loads(kept(name).read_text()):
        history = WorkflowHistory.from_json(each.pop("id"), each)
        await replayer(case).replay_workflow(history)


async def test_a_changed_graph_is_noticed() -> None:
    """A history that does not fit fails to replay, so that these tests can fail."""
    case = catalogue(MemoryLedger())["then"]
    (each,) = json.loads(kept("then").read_text())
    history = WorkflowHistory.from_json(each.pop("id"), each)
    text = history.to_json().replace('"two"', '"ten"')
    assert text != history.to_json()
    with pytest.raises(Exception, match="Nondeterminism"):
        await replayer(case).replay_workflow(WorkflowHistory.from_json(history.workflow_id, text))
