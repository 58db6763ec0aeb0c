"""What is wrong with the runs as a whole, and what an operator can do about it."""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal

from workflows.storage.base import Census, RunState, Store
from workflows.storage.schema import Is, Select
from workflows.storage.tables import WORKERS

OVERDUE = timedelta(minutes=1)


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is wrong. `kind` is stable, for alarms; `message` says what it is and what to do."""

    kind: Literal["stranded", "overdue", "dead", "no-worker"]
    message: str
    count: int = 1
    workflow: str | None = None
    version: str | None = None


async def diagnose(store: Store, known: Collection[tuple[str, str]]) -> list[Finding]:
    """Look at the runs of all tenants, for a process whose workers know the (workflow, version) pairs `known`."""
    now = await store.now()
    census = await store.census()
    workers = await store.read(Select(WORKERS, {"lease_until": Is(">", now)}))
    live = [each for each in census if each.state.live]
    found = [_stranded(each) for each in live if (each.workflow, each.version) not in known]
    found += [
        _overdue(each, now) for each in live if _waits_too_long(each, now) and (each.workflow, each.version) in known
    ]
    found += [_dead(each) for each in census if each.state is RunState.DEAD]
    if live and not workers:
        count = sum(each.count for each in live)
        found.append(Finding("no-worker", f"{count} runs are live and no worker holds a lease: start one", count))
    return found


def _waits_too_long(each: Census, now: datetime) -> bool:
    return each.due_since is not None and now - each.due_since > OVERDUE


def _stranded(each: Census) -> Finding:
    return Finding(
        "stranded",
        f"{each.count} {each.state.value} runs of {each.workflow!r} version {each.version!r} can't be continued here: no such workflow is"
        " known. Deploy a worker that has it, or cancel them",
        each.count, each.workflow, each.version,
    )  # fmt: skip


def _overdue(each: Census, now: datetime) -> Finding:
    assert each.due_since is not None
    waited = int((now - each.due_since).total_seconds())
    return Finding(
        "overdue",
        f"{each.count} {each.state.value} runs of {each.workflow!r} version {each.version!r}: the oldest has been due for {waited} s."
        " Are there enough workers, and do they take its queue?",
        each.count, each.workflow, each.version,
    )  # fmt: skip


def _dead(each: Census) -> Finding:
    return Finding(
        "dead",
        f"{each.count} runs of {each.workflow!r} version {each.version!r} died of too many attempts: look at what kills their workers,"
        " then redrive them",
        each.count, each.workflow, each.version,
    )  # fmt: skip
