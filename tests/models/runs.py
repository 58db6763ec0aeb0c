"""What the storage operations on runs must do, in plain Python: no SQL, no concurrency, one rule per sentence of the protocol.

Time is counted in hours, since tests move the store's clock by hours and take seconds. What is due at the same hour is due in the order
of the operations that made it so; what one operation made due together is so in the store's own order.
"""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field

from workflows.storage.base import (
    SUSPECT_AFTER,
    EndOutcome,
    RedriveOutcome,
    RunState,
    SignalOutcome,
    StepOutcome,
    Suspects,
)

LEASE_H = 10
QUEUE = "default"
"""Where every run is."""
NEVER = 10**9
Due = tuple[int, int]


@dataclass
class ModelSignal:
    """A signal in an inbox."""

    seq: int
    name: str
    dedup_key: str
    carried: int = 0
    consumed_by: str | None = None

    @property
    def own(self) -> bool:
        """One of the engine's own, which dies with its run."""
        return self.name.startswith("$")


@dataclass
class ModelRun:
    """A run. `records`: the fence each path was written under, in order."""

    run_id: str
    tenant: str
    key: str | None
    due: Due
    max_attempts: int = 3
    state: RunState = RunState.READY
    fence: int = 0
    owner: str | None = None
    attempts: int = 0
    inbox_seq: int = 0
    cancel: bool = False
    parent: str | None = None
    doomed: bool = False
    """Out of attempts: nobody may do anything with it but end it."""
    records: dict[str, int] = field(default_factory=dict)
    signals: list[ModelSignal] = field(default_factory=list)

    def held_under(self, fence: int) -> bool:
        """Whether whoever has this fence owns it."""
        return self.state is RunState.RUNNING and self.fence == fence

    @property
    def unread(self) -> list[ModelSignal]:
        """What no step has used."""
        return [signal for signal in self.signals if signal.consumed_by is None]


class ModelStore:
    """The operations, with the outcomes of `storage.base`."""

    def __init__(self) -> None:
        self.hour = 0
        self.runs: dict[str, ModelRun] = {}
        self.workers: dict[str, int] = {}
        self.received: set[tuple[str, str]] = set()
        self.dead: list[tuple[str, str]] = []
        self._moments = itertools.count()

    def _in(self, hours: int) -> Due:
        return self.hour + hours, next(self._moments)

    def live(self, tenant: str, key: str | None) -> ModelRun | None:
        """The live run of a key."""
        found = [
            run
            for run in self.runs.values()
            if key is not None and (run.tenant, run.key) == (tenant, key) and run.state.live
        ]
        assert len(found) <= 1
        return found[0] if found else None

    # Workers

    def register(self, worker: str) -> None:
        self.workers[worker] = self.hour + LEASE_H

    def beat(self, worker: str) -> bool:
        if worker in self.workers:
            self.workers[worker] = self.hour + LEASE_H
        return worker in self.workers

    def unregister(self, worker: str) -> None:
        self.workers.pop(worker, None)

    def line(self, suspects: Suspects, order: Sequence[str]) -> list[ModelRun]:
        """What a claim may take, in order; of suspects, none, all, or only them. `order`: all runs, as they are due in the store."""
        waiting = [
            run
            for run in self.runs.values()
            if run.state in (RunState.READY, RunState.SUSPENDED) and run.due[0] <= self.hour
        ]
        wanted = {"no": lambda run: not _suspect(run), "only": _suspect, "head": lambda run: True}[suspects]
        return sorted(filter(wanted, waiting), key=lambda run: (run.due, order.index(run.run_id)))

    def claim(self, worker: str, limit: int, suspects: Suspects, order: Sequence[str]) -> list[ModelRun]:
        line = self.line(suspects, order)[:limit] if worker in self.workers else []
        taken = line[:1] if line and _suspect(line[0]) else [run for run in line if not _suspect(run)]
        for run in taken:
            run.state, run.owner, run.fence, run.attempts = RunState.RUNNING, worker, run.fence + 1, run.attempts + 1
        return taken

    def release(self, worker: str, held: Sequence[str]) -> list[str]:
        lost = [run for run in self._owned(worker) if run.run_id not in held]
        due = self._in(0)
        for run in lost:
            self._give_back(run, due)
            run.attempts = max(run.attempts - 1, 0)
        return [run.run_id for run in lost]

    def abandon(self, worker: str, run_id: str, delay_h: int) -> None:
        run = self.runs[run_id]
        if run in self._owned(worker):
            if run.attempts < run.max_attempts:
                self._give_back(run, self._in(delay_h))
            else:
                run.fence, run.owner, run.due, run.doomed = run.fence + 1, None, self._in(delay_h), True

    def reap(self) -> tuple[list[str], list[str]]:
        self.workers = {worker: until for worker, until in self.workers.items() if until > self.hour}
        lost = [run for run in self.runs.values() if run.state is RunState.RUNNING and run.owner not in self.workers]
        freed = [run for run in lost if run.attempts < run.max_attempts]
        dead = [run for run in lost if run not in freed]
        due = self._in(0)
        for run in freed:
            self._give_back(run, due)
        for run in dead:
            run.fence, run.doomed = run.fence + 1, True
        return [run.run_id for run in freed], [run.run_id for run in dead]

    def _owned(self, worker: str) -> list[ModelRun]:
        return [run for run in self.runs.values() if run.state is RunState.RUNNING and run.owner == worker]

    @staticmethod
    def _give_back(run: ModelRun, due: Due) -> None:
        run.state, run.owner, run.fence, run.due = RunState.READY, None, run.fence + 1, due

    # Runs

    def start(
        self,
        run_id: str,
        tenant: str,
        key: str | None,
        *,
        owner: str | None = None,
        parent: str | None = None,
        attempts: int = 3,
    ) -> str:
        live = self.live(tenant, key)
        if run_id not in self.runs and live is None:
            run = self.runs[run_id] = ModelRun(run_id, tenant, key, self._in(0), attempts, parent=parent)
            if owner in self.workers:
                run.state, run.owner, run.fence, run.attempts = RunState.RUNNING, owner, 1, 1
        return live.run_id if live is not None and run_id not in self.runs else run_id

    def step(
        self,
        run_id: str,
        fence: int,
        paths: Sequence[str],
        *,
        consumed: Sequence[int] = (),
        done: bool = False,
        seen: int = 0,
        child: str | None = None,
        successor: str = "",
    ) -> StepOutcome:
        run = self.runs[run_id]
        if (
            run.held_under(fence)
            and not (done and (run.inbox_seq != seen or run.cancel))
            and not set(paths) & set(run.records)
        ):
            run.records.update(dict.fromkeys(paths, fence))
            run.attempts = 0
            for signal in run.unread:
                if signal.seq in consumed:
                    signal.consumed_by = paths[0] if paths else "$end"
            if child is not None:
                self.start(child, run.tenant, None, parent=run_id)
            if done:
                run.state, run.owner = RunState.DONE, None
                queue = self._tell_parent(run, successor)
            return StepOutcome(True, not done, run.inbox_seq, run.cancel, queue if done else None)
        if done:
            recorded = run.state is RunState.DONE and run.fence == fence
        else:
            recorded = bool(paths) and all(run.records.get(path) == fence for path in paths)
        return StepOutcome(recorded, run.held_under(fence), run.inbox_seq, run.cancel)

    def suspend(self, run_id: str, fence: int, *, seen: int, hours: int | None) -> bool:
        run = self.runs[run_id]
        if not run.held_under(fence) or run.inbox_seq != seen or run.cancel:
            return False
        run.state, run.owner, run.attempts, run.due = (
            RunState.SUSPENDED,
            None,
            0,
            self._in(NEVER if hours is None else hours),
        )
        return True

    def end(self, run_id: str, fence: int, state: RunState, *, seen: int, successor: str) -> EndOutcome:
        run = self.runs[run_id]
        if not run.held_under(fence) or run.inbox_seq != seen:
            return EndOutcome(ended=run.state is state and run.fence == fence, successor=None, carried=0)
        unread = [signal for signal in run.unread if not signal.own]
        if run.key is None:
            for signal in [each for each in unread if self._tells_of_child(run, each)]:
                signal.consumed_by = "$end"
                unread.remove(signal)
        carried = [signal for signal in unread if run.key is not None and not signal.carried]
        run.state, run.owner, run.doomed = state, None, False
        for signal in unread:
            if signal not in carried:
                signal.consumed_by = "$dead"
                self.dead.append((run_id, signal.dedup_key))
        if carried:
            heir = self.runs[successor] = ModelRun(
                successor, run.tenant, run.key, self._in(0), run.max_attempts, inbox_seq=len(carried)
            )
            run.signals = [signal for signal in run.signals if signal not in carried]
            heir.signals = [ModelSignal(seq, signal.name, signal.dedup_key, 1) for seq, signal in enumerate(carried, 1)]
        queue = self._tell_parent(run, successor)
        return EndOutcome(True, successor if carried else None, len(carried), parent_queue=queue)

    def _tells_of_child(self, run: ModelRun, signal: ModelSignal) -> bool:
        child = self.runs.get(signal.dedup_key.removeprefix("task:"))
        return signal.name == "task" and child is not None and child.parent == run.run_id

    def _tell_parent(self, run: ModelRun, successor: str) -> str | None:
        parent = None if run.parent is None else self.runs[run.parent]
        if parent is None:
            return None
        if parent.state.live:
            self._ring(parent, "task", f"task:{run.run_id}")
        elif parent.key is None:
            return None
        else:
            self._deliver(
                f"{successor}-p", parent.tenant, parent.key, "task", f"task:{run.run_id}", parent.max_attempts
            )
        return QUEUE

    def redrive(self, run_id: str, tenant: str) -> RedriveOutcome:
        run = self.runs[run_id]
        if run.state is not RunState.DEAD or run.tenant != tenant:
            return RedriveOutcome(redriven=False, live=None)
        if (live := self.live(run.tenant, run.key)) is not None:
            return RedriveOutcome(redriven=False, live=live.run_id)
        run.state, run.attempts, run.fence, run.owner, run.cancel, run.due = (
            RunState.READY,
            0,
            run.fence + 1,
            None,
            False,
            self._in(0),
        )
        run.signals = [signal for signal in run.signals if signal.name != "$cancel"]
        return RedriveOutcome(redriven=True, live=None)

    # Signals

    def signal(self, run_id: str, tenant: str, name: str, dedup_key: str) -> SignalOutcome:
        run = self.runs[run_id]
        if any(signal.dedup_key == dedup_key for signal in run.signals):
            return SignalOutcome(None, None, started=False, duplicate=True)
        if run.tenant != tenant or not run.state.live:
            return SignalOutcome(None, None, started=False, duplicate=False)
        run.cancel = run.cancel or name == "$cancel"
        seq = self._ring(run, name, dedup_key)
        return SignalOutcome(run_id, seq, started=False, duplicate=False, queue=QUEUE)

    def signal_with_start(self, run_id: str, tenant: str, key: str, name: str, dedup_key: str) -> SignalOutcome:
        if (tenant, dedup_key) in self.received:
            return SignalOutcome(None, None, started=False, duplicate=True)
        self.received.add((tenant, dedup_key))
        to, seq = self._deliver(run_id, tenant, key, name, dedup_key)
        return SignalOutcome(to, seq, started=to == run_id, duplicate=False, queue=QUEUE)

    def _deliver(
        self, run_id: str, tenant: str, key: str, name: str, dedup_key: str, attempts: int = 3
    ) -> tuple[str, int]:
        run = self.live(tenant, key)
        if run is None:
            run = self.runs[run_id] = ModelRun(run_id, tenant, key, self._in(0), attempts)
        return run.run_id, self._ring(run, name, dedup_key)

    def _ring(self, run: ModelRun, name: str, dedup_key: str) -> int:
        run.inbox_seq += 1
        if run.state is RunState.SUSPENDED:
            run.state, run.due = RunState.READY, self._in(0)
        run.signals.append(ModelSignal(run.inbox_seq, name, dedup_key))
        return run.inbox_seq


def _suspect(run: ModelRun) -> bool:
    return run.attempts >= SUSPECT_AFTER
