"""What must hold of stored runs whatever happened to them: one module for crash points, interleavings, faults and the state machine.

    invariants = Invariants(store, workflows=[flow])
    await invariants.check()                  # at any moment at which nobody writes
    await invariants.check(settled=True)      # after faults stop: every run has ended

Each invariant is a generator of sentences about what breaks it; a check that finds any raises InvariantViolation with all of them.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from workflows import RunState, Step, Workflow
from workflows.definition.graph import nodes_of
from workflows.storage import Select, Store
from workflows.storage.base import RunRow, Status
from workflows.storage.tables import DEAD_SIGNALS, SIGNALS, STEPS

Row = dict[str, Any]
EVERYTHING = 1_000_000
UNDO = "!undo"


class InvariantViolation(AssertionError):
    """Stored runs are in a state that no history may lead to."""

    def __init__(self, violations: Iterable[str]) -> None:
        self.violations = tuple(violations)
        super().__init__("\n".join(("what must hold of stored runs does not:", *self.violations)))


@dataclass(frozen=True)
class Snapshot:
    """All runs of a store with their records and signals, and how each run stood at the check before. `undoable`: ids of steps that
    have a compensation.
    """

    runs: dict[str, RunRow]
    records: dict[str, list[Row]]
    signals: dict[str, list[Row]]
    letters: list[Row]
    before: dict[str, RunRow] = field(default_factory=dict)
    undoable: frozenset[str] = frozenset()

    @cached_property
    def paths(self) -> dict[str, dict[str, Row]]:
        """By run and path."""
        return {run_id: {row["path"]: row for row in self.records.get(run_id, ())} for run_id in self.runs}

    @cached_property
    def delivered(self) -> Counter[tuple[str, str]]:
        """How many signals there are by tenant and dedup key."""
        known = [(self.runs[run_id], rows) for run_id, rows in self.signals.items() if run_id in self.runs]
        return Counter((run.tenant, row["dedup_key"]) for run, rows in known for row in rows)


class Invariants:
    """Checks a store again and again, and remembers how runs stood. `workflows` say which steps have a compensation."""

    def __init__(self, store: Store, *, workflows: Iterable[Workflow[Any, Any]] = ()) -> None:
        self._store = store
        self._undoable = frozenset(
            step.id for flow in workflows for step in steps_of(flow) if step.compensate is not None
        )
        self._before: dict[str, RunRow] = {}
        self.checks = 0

    async def check(self, *, settled: bool = False, accepted: Collection[tuple[str, str]] = ()) -> None:
        """Raise InvariantViolation unless all hold. Nobody may write meanwhile.

        `accepted`: signals by tenant and dedup key that some caller was told are accepted. `settled`: every run must have ended.
        """
        snapshot = await self._look()
        found = [sentence for invariant in INVARIANTS for sentence in invariant(snapshot)]
        found += _lost(snapshot, accepted)
        if settled:
            found += [
                f"run {run.run_id} ({run.workflow}) has not ended: {_standing(run)}"
                for run in snapshot.runs.values()
                if run.state.live
            ]
        self._before = snapshot.runs
        self.checks += 1
        if found:
            raise InvariantViolation(found)

    async def _look(self) -> Snapshot:
        runs = {run.run_id: run for run in await self._store.runs(limit=EVERYTHING)}
        letters = [
            letter
            for tenant in {run.tenant for run in runs.values()}
            for letter in await self._store.read(Select(DEAD_SIGNALS, {"tenant": tenant}))
        ]
        records = _by_run(await self._store.read(Select(STEPS, {}, order=("seq",))))
        signals = _by_run(await self._store.read(Select(SIGNALS, {}, order=("seq",))))
        return Snapshot(runs, records, signals, letters, self._before, self._undoable)


def steps_of(flow: Workflow[Any, Any]) -> Iterator[Step[Any, Any]]:
    """Every step of a workflow and of those nested in it."""
    for entry in flow.entries:
        for node in nodes_of(entry):
            if isinstance(node, Step):
                yield node
            else:
                yield from steps_of(node)


def executed_at_most_once(executions: Iterable[str]) -> None:
    """Raise InvariantViolation for each key (of an irreversible effect, say) that was executed twice."""
    found = [f"{key} was done {times} times" for key, times in Counter(executions).items() if times > 1]
    if found:
        raise InvariantViolation(found)


def _by_run(rows: Iterable[Row]) -> dict[str, list[Row]]:
    found: defaultdict[str, list[Row]] = defaultdict(list)
    for row in rows:
        found[row["run_id"]].append(row)
    return dict(found)


def _standing(run: RunRow) -> str:
    return f"{run.state}, fence {run.fence}, attempts {run.attempts}, due {run.available_at}, owner {run.owner}, inbox {run.inbox_seq}"


# One generator per invariant


def each_path_is_recorded_once_and_counted(snapshot: Snapshot) -> Iterator[str]:
    for run in snapshot.runs.values():
        rows = snapshot.records.get(run.run_id, [])
        if [row["seq"] for row in rows] != list(range(1, run.step_seq + 1)):
            yield f"run {run.run_id} counts {run.step_seq} records and has {[(row['seq'], row['path']) for row in rows]}"
        for path, times in Counter(row["path"] for row in rows).items():
            if times > 1:
                yield f"run {run.run_id} has {times} records at {path}"


def records_belong_to_a_run(snapshot: Snapshot) -> Iterator[str]:
    for kind, rows in (("records", snapshot.records), ("signals", snapshot.signals)):
        yield from (f"there are {kind} of {run_id}, which is no run" for run_id in rows if run_id not in snapshot.runs)


def the_fence_only_rises(snapshot: Snapshot) -> Iterator[str]:
    for run in snapshot.runs.values():
        fences = [row["fence"] for row in snapshot.records.get(run.run_id, [])]
        if getattr(run, "forked_from", None) is None and (
            fences != sorted(fences) or (fences and fences[-1] > run.fence)
        ):
            yield f"run {run.run_id} at fence {run.fence} has records written under {fences}"
        before = snapshot.before.get(run.run_id)
        if before is not None and run.fence < before.fence:
            yield f"run {run.run_id} fell from fence {before.fence} to {run.fence}"


def an_end_is_final(snapshot: Snapshot) -> Iterator[str]:
    for run in snapshot.runs.values():
        before = snapshot.before.get(run.run_id)
        if before is None or before.state.live or run.fence > before.fence:
            continue
        was, now = (
            (before.state, before.step_seq, before.output, before.error),
            (run.state, run.step_seq, run.output, run.error),
        )
        if was != now:
            yield f"run {run.run_id} had ended as {was} and is now {now}"


def one_live_run_per_key(snapshot: Snapshot) -> Iterator[str]:
    live = Counter(
        (run.tenant, run.workflow, run.key) for run in snapshot.runs.values() if run.key is not None and run.state.live
    )
    yield from (f"{times} live runs have the key {key}" for key, times in live.items() if times > 1)


def a_live_run_has_an_owner_a_timer_or_a_wait(snapshot: Snapshot) -> Iterator[str]:
    for run in snapshot.runs.values():
        running = run.state is RunState.RUNNING
        given_up = running and run.attempts >= run.max_attempts  # by its last worker: the reaper ends it
        if running != (run.owner is not None) and not given_up:
            yield f"run {run.run_id} is {run.state} with owner {run.owner}"
        if run.state is RunState.READY and run.available_at is None:
            yield f"run {run.run_id} is ready and never due"
        failed = any(row["status"] == "failed" for row in snapshot.records.get(run.run_id, ()))
        if run.state is RunState.SUSPENDED and run.cancel_requested and not failed:
            yield f"run {run.run_id} sleeps although somebody asked it to stop"
        if run.state.live == (run.finished_at is not None):
            yield f"run {run.run_id} is {run.state}, finished at {run.finished_at}"
        if run.attempts > run.max_attempts:
            yield f"run {run.run_id} was tried {run.attempts} of {run.max_attempts} times"


def signals_are_numbered_within_the_inbox(snapshot: Snapshot) -> Iterator[str]:
    for run in snapshot.runs.values():
        numbers = [row["seq"] for row in snapshot.signals.get(run.run_id, [])]
        if len(numbers) != len(set(numbers)) or any(not 1 <= number <= run.inbox_seq for number in numbers):
            yield f"run {run.run_id} counts {run.inbox_seq} signals and has {numbers}"


def a_signal_is_used_by_a_record_or_waits_or_is_a_dead_letter(snapshot: Snapshot) -> Iterator[str]:
    letters = {(letter["run_id"], letter["seq"]) for letter in snapshot.letters}
    for run in snapshot.runs.values():
        for row in snapshot.signals.get(run.run_id, []):
            by, where = row["consumed_by"], f"signal {row['seq']} ({row['name']}) of run {run.run_id}"
            if by == "$dead" and (run.run_id, row["seq"]) not in letters:
                yield f"{where} is dead and no dead letter"
            if by is None and not run.state.live and not row["name"].startswith("$"):
                yield f"{where} waits in a run that is {run.state}"
            if by is not None and not by.startswith("$") and by not in snapshot.paths[run.run_id]:
                yield f"{where} was used by {by}, which is no record"


def a_failed_run_only_goes_backwards(snapshot: Snapshot) -> Iterator[str]:
    for run in snapshot.runs.values():
        failures = [
            row
            for row in snapshot.records.get(run.run_id, [])
            if row["status"] == Status.FAILED and UNDO not in row["path"]
        ]
        if run.state is RunState.DONE and failures:
            yield f"run {run.run_id} is done and failed at {failures[0]['path']}"
        after = [] if not failures else [row for row in snapshot.records[run.run_id] if row["seq"] > failures[0]["seq"]]
        late = [
            row["path"]
            for row in after
            if row["status"] == Status.OK and UNDO not in row["path"] and row["fence"] > failures[0]["fence"]
        ]
        if late:
            yield f"run {run.run_id} failed at {failures[0]['path']} and went on to {late}"


def compensation_ran_exactly_when_the_run_failed(snapshot: Snapshot) -> Iterator[str]:
    for run in snapshot.runs.values():
        paths = snapshot.paths[run.run_id]
        failed = any(row["status"] == Status.FAILED and UNDO not in path for path, row in paths.items())
        if not failed and (undone := [path for path in paths if UNDO in path]):
            yield f"run {run.run_id} ({run.state}) did not fail and undid {undone}"
        if run.state is not RunState.FAILED or not failed:
            continue
        owed = [
            path for path, row in paths.items() if row["status"] == Status.OK and _step_id(path) in snapshot.undoable
        ]
        if missing := [path for path in owed if path + UNDO not in paths]:
            yield f"run {run.run_id} failed and did not undo {missing}"


def _step_id(path: str) -> str:
    """Of a record of a step itself; a record beside one ("charge!intent", "charge~2") has none."""
    last = path.rsplit("/", 1)[-1]
    return "" if re.search("[!~@$]", last) else re.sub(r"(\[\d+\]|#\d+)$", "", last)


def the_end_of_a_child_is_told_to_its_parent(snapshot: Snapshot) -> Iterator[str]:
    for run in snapshot.runs.values():
        parent = snapshot.runs.get(run.parent_id or "")
        if run.parent_id is not None and parent is None:
            yield f"run {run.run_id} has a parent {run.parent_id} that was never recorded"
        if parent is None or parent.key is None:
            continue
        times = snapshot.delivered[run.tenant, f"task:{run.run_id}"]
        if times != int(not run.state.live):
            yield f"the end of run {run.run_id} ({run.state}) was told {times} times to its parent's key"


def _lost(snapshot: Snapshot, accepted: Collection[tuple[str, str]]) -> Iterator[str]:
    for tenant, key in accepted:
        if (times := snapshot.delivered[tenant, key]) != 1:
            yield f"the signal {key} of {tenant} was accepted and is there {times} times"


INVARIANTS: tuple[Callable[[Snapshot], Iterator[str]], ...] = (
    each_path_is_recorded_once_and_counted,
    records_belong_to_a_run,
    the_fence_only_rises,
    an_end_is_final,
    one_live_run_per_key,
    a_live_run_has_an_owner_a_timer_or_a_wait,
    signals_are_numbered_within_the_inbox,
    a_signal_is_used_by_a_record_or_waits_or_is_a_dead_letter,
    a_failed_run_only_goes_backwards,
    compensation_ran_exactly_when_the_run_failed,
    the_end_of_a_child_is_told_to_its_parent,
)
