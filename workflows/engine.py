"""The engine: starts, signals and works runs. `Engine()` with nothing configured works, in memory, and says what is unsafe."""

import asyncio
import inspect
import random
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import Any, Self, TypeVar

from workflows.approvals import Approvals
from workflows.beginning import begun, in_line
from workflows.definition.authored import NAME as AUTHORED
from workflows.definition.authored import authored, define
from workflows.definition.catalogue import Catalogue
from workflows.definition.graph import Workflow
from workflows.definition.registry import Registry
from workflows.errors import InputError, NoExecutorError, StateError
from workflows.execution import Execution, StoreExecution
from workflows.ids import uuid7
from workflows.letters import DeadLetters
from workflows.pubsub.base import PubSub
from workflows.pubsub.memory import MemoryPubSub
from workflows.run import Run
from workflows.running.driver import Driver
from workflows.running.lifecycle import Lifecycle
from workflows.schedules import Schedules, Spec
from workflows.storage.base import NewRun, RunRow, RunState, Schedule, SignalOutcome, Store
from workflows.storage.memory import MemoryStore
from workflows.storage.retention import KEPT, Retention
from workflows.storage.schema import Write
from workflows.tracing import Fan, SpanSink, Tracer
from workflows.tracing.lost import close_lost
from workflows.tracing.store import StoreSink
from workflows.values import check_ids, encode
from workflows.workers.clock import Clock, Sweep
from workflows.workers.doctor import Finding, diagnose
from workflows.workers.lease import Lease
from workflows.workers.retaining import Retaining
from workflows.workers.slots import Slots
from workflows.workers.worker import Worker

In = TypeVar("In")
Out = TypeVar("Out")

DEFAULT_TENANT = "default"
QUEUES = ("default", "tasks")


class Engine:
    """Runs workflows durably.

    `worker=False` for a process that only starts and signals; `clock=True` also fires schedules. `lease_s`, `beat_s` and `poll_s` are
    seconds: a killed worker's runs are taken over within `lease_s` and about a second. The worker holds `concurrency` runs at a time, of
    each of its `queues` as many as a mapping says, and of one tenant `tenant_concurrency` at most, so that no tenant can take all of it.
    A leaving worker waits `grace_s` before it cuts off steps that would be run again anyway. `spans` receives finished spans; by default they
    go to the store. `exporters` receive them too. `execution` carries the runs out in another place than the store, such as Temporal; the
    options of the worker are then its own. `catalogue` has what workflows written at run time may be made of.

    Raises ValueError for a beat that is no shorter than the lease, and for an option that has no part beside `execution`.
    """

    def __init__(
        self,
        *,
        store: Store | None = None,
        pubsub: PubSub | None = None,
        workflows: Iterable[Workflow[Any, Any]] = (),
        worker: bool = True,
        clock: bool = False,
        sweeps: tuple[Sweep, ...] = (),
        retention: Retention | None = KEPT,
        concurrency: int = 10,
        queues: Sequence[str] | Mapping[str, int] = QUEUES,
        tenant_concurrency: int | None = None,
        lease_s: float = 10.0,
        beat_s: float | None = None,
        poll_s: float = 1.0,
        grace_s: float = 5.0,
        deployment: str = "",
        spans: SpanSink | None = None,
        exporters: Sequence[SpanSink] = (),
        rng: random.Random | None = None,
        execution: Execution | None = None,
        catalogue: Catalogue | None = None,
    ) -> None:
        if execution is not None:
            _refuse_given(
                worker=worker, concurrency=concurrency, queues=queues, tenant_concurrency=tenant_concurrency, lease_s=lease_s,
                beat_s=beat_s, poll_s=poll_s, grace_s=grace_s, rng=rng,
            )  # fmt: skip
        self.store: Store = store if store is not None else MemoryStore()
        self.pubsub: PubSub = pubsub if pubsub is not None else MemoryPubSub()
        self.workflows = Registry(workflows, catalogue=catalogue)
        if catalogue is not None:
            self.workflows.add(authored(catalogue))
        self._spans = Fan(StoreSink(self.store, owner=self._worker_id) if spans is None else spans, *exporters)
        self.tracer = Tracer(self._spans.narrowed)
        self._lifecycle = Lifecycle(self.pubsub, self.tracer)
        driver = Driver(self.workflows, self.tracer, rng or random.Random(), self._lifecycle)  # noqa: S311 — jitter
        self.worker = (
            Worker(
                self.store, self.pubsub, driver, self.workflows, poll_s=poll_s, grace_s=grace_s,
                slots=Slots(_limits(queues, concurrency), concurrency=concurrency, per_tenant=tenant_concurrency),
                lease=Lease(self.store, lease_s=lease_s, beat_s=beat_s, deployment=deployment),
                sweeps=(partial(close_lost, self.store, exporters),),
            )
            if worker and execution is None
            else None
        )  # fmt: skip
        self.execution: Execution = execution or StoreExecution(self.store, self.pubsub, lambda: self.worker)
        self.schedules = Schedules(lambda: self.execution.store("schedules"), self.workflows.newest, self._lifecycle)
        self.dead_letters = DeadLetters(lambda: self.execution, self.pubsub, self.workflows, deployment=deployment)
        self.approvals = Approvals(lambda: self.execution, self.store, self.workflows, deployment=deployment)
        self.clock = (
            Clock(
                self.store,
                self._lifecycle,
                newest=self.workflows.newest,
                sweeps=(self.approvals.expire, *([Retaining(self.store, retention)] if retention else ()), *sweeps),
            )
            if clock
            else None
        )
        self._deployment = deployment
        self._stop = asyncio.Event()
        self._opened = False

    def add(self, *workflows: Workflow[Any, Any]) -> None:
        """Make workflows known before the engine opens: some need the engine to be made. Raises DefinitionError, StateError once it is open."""
        if self._opened:
            names = [each.id for each in workflows]
            raise StateError(f"this engine is open, and what it works is settled: add {names} before it opens")
        self.workflows.add(*workflows)

    # Life

    async def open(self) -> None:
        """Connect, and begin to work runs if this process is a worker. May be called again after it raised, or else the engine is to be closed.

        Raises StoreUnavailableError, SchemaError.
        """
        await self.store.open()
        await self.execution.open(self.workflows, pubsub=self.pubsub, tracer=self.tracer)
        self._opened = True
        self._spans.start()
        if self.clock is not None:
            self.clock.start()

    async def close(self) -> None:
        """Hand over every run at its next step boundary, and disconnect. What fails to close keeps nothing else open; it is raised at the end."""
        async with AsyncExitStack() as closing:  # the last one first
            closing.push_async_callback(self.store.close)
            closing.push_async_callback(self.pubsub.close)
            closing.push_async_callback(self._spans.close)
            closing.push_async_callback(self._lifecycle.close)
            closing.push_async_callback(self.execution.close)
            if self.clock is not None:
                closing.push_async_callback(self.clock.stop)

    async def __aenter__(self) -> Self:
        try:
            await self.open()
        except BaseException:
            await self.close()
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def serve(self) -> None:
        """Work until `drain` is called."""
        await self._stop.wait()

    def drain(self) -> None:
        """Ask `serve` to return; closing the engine then hands its runs over."""
        self._stop.set()

    # Runs

    async def start(
        self,
        workflow: Workflow[In, Out],
        value: In,
        *,
        tenant: str = DEFAULT_TENANT,
        key: str | None = None,
        run_id: str | None = None,
        writes: Sequence[Write] = (),
        paused: bool = False,
        queue: str = "default",
        priority: int = 100,
        start_at: datetime | None = None,
    ) -> Run[Out]:
        """Start a run, or return the live one with this key. Raises InputError.

        It waits on `queue` for a worker that serves it, behind those of a lower `priority` (0 to 1000), and not before `start_at`.

        `run_id`: where the id follows from something outside, so that starting it again finds the run; by default one is made. `writes` are
        rows of upper floors that ride in the commit; they are not made where a run was there already. A `paused` run takes one step for each `Run.step_once()`: for looking into what a workflow does.
        """
        new = in_line(
            self._new(workflow, value, tenant=tenant, key=key, run_id=run_id), queue=queue, priority=priority, start_at=start_at
        )  # fmt: skip
        new = replace(new, paused=paused)
        started = await self.execution.start(new, writes=writes, fresh=run_id is None)
        return Run(self.execution.runs, self.pubsub, started, tenant=tenant, workflow=workflow)

    def _new(
        self, workflow: Workflow[Any, Any], value: Any, *, tenant: str, key: str | None, run_id: str | None
    ) -> NewRun:
        return begun(workflow, value, tenant=tenant, key=key, run_id=run_id, deployment=self._deployment)

    async def author(
        self,
        spec: Mapping[str, Any],
        value: Any,
        *,
        tenant: str = DEFAULT_TENANT,
        key: str | None = None,
        run_id: str | None = None,
    ) -> Run[Any]:
        """Start a run of a workflow written at run time, made of what the catalogue has, or return the live one with this key.

        It is a run of the workflow `authored`. Raises SpecError with all that is wrong with `spec`, InputError for the value, and
        NoExecutorError if this engine has no catalogue.
        """
        runner = self.workflows.newest(AUTHORED)
        if runner is None:
            raise NoExecutorError(
                "this engine has nothing to write workflows with; give it Engine(catalogue=Catalogue(…))"
            )
        return await self.start(runner, define(spec, value, runner), tenant=tenant, key=key, run_id=run_id)

    async def signal_with_start(
        self,
        workflow: Workflow[Any, Any],
        *,
        tenant: str,
        key: str,
        name: str,
        dedup_key: str,
        payload: Any = None,
        writes: Sequence[Write] = (),
    ) -> SignalOutcome:
        """Give a signal to the live run of `key`, or start one with it. Accepted when this returns; the bus only makes it quick.

        `dedup_key` is the outside event's: one that was accepted before in this tenant is a duplicate, and nothing is done. A run that is
        started so begins with the value None, which the workflow's input type has to take. Raises InputError.
        """
        _check_name(name, dedup_key)
        new = self._new(workflow, None, tenant=tenant, key=key, run_id=None)
        data = encode(payload, Any, where=f"the signal {name!r}")
        outcome = await self.execution.signal_with_start(
            new, name=name, dedup_key=dedup_key, payload=data, writes=writes
        )
        if not outcome.duplicate:
            assert outcome.run_id is not None
            self._lifecycle.signalled(tenant, key, name, outcome.run_id, outcome.seq)
        return outcome

    async def run(self, run_id: str, *, tenant: str = DEFAULT_TENANT) -> Run[Any]:
        """A handle on a run of this tenant. Raises RunNotFoundError."""
        run: Run[Any] = Run(self.execution.runs, self.pubsub, run_id, tenant=tenant)
        row = await run.row()
        known = self.workflows.get((row.workflow, row.version))
        return Run(self.execution.runs, self.pubsub, run_id, tenant=tenant, workflow=known)

    async def runs(
        self,
        *,
        tenant: str,
        workflow: str | None = None,
        key: str | None = None,
        states: Sequence[RunState] = (),
        limit: int = 100,
        before: str | None = None,
    ) -> list[RunRow]:
        """Runs of a tenant, newest first: of a workflow, of a key, in one of `states` (none: in any). `before` is the `cursor` of the last row of the page before."""
        return await self.execution.runs.runs(
            tenant=tenant, workflow=workflow, key=key, states=states, limit=limit, before=before
        )

    async def signal(
        self, run_id: str, name: str, payload: Any = None, *, tenant: str = DEFAULT_TENANT, dedup_key: str | None = None
    ) -> SignalOutcome:
        """Give a signal to a known live run. The outcome's run_id is None if there is no such run, if it has ended, or if the signal was there
        before (`duplicate`). Without a `dedup_key` no two signals are the same. Raises InputError.
        """
        _check_name(name, dedup_key)
        check_ids(tenant, run_id)
        data = encode(payload, Any, where=f"the signal {name!r}")
        outcome = await self.execution.runs.signal(
            run_id, tenant=tenant, name=name, dedup_key=dedup_key or str(uuid7()), payload=data
        )
        if outcome.queue is not None:
            await self.execution.tell_workers(outcome.queue)
        return outcome

    async def cancel(self, run_id: str, *, tenant: str = DEFAULT_TENANT) -> bool:
        """Ask a run to stop. False: it had ended."""
        return await (await self.run(run_id, tenant=tenant)).cancel()

    async def schedule(
        self, name: str, workflow: Workflow[In, Any], value: In, *, spec: Spec, tz: str = "UTC", tenant: str = DEFAULT_TENANT, **rules: Any
    ) -> Schedule:  # fmt: skip
        """Run `workflow` at the times of `spec`, by the rules that `Schedules.put` describes. Replaces the schedule of this name.

        Raises InputError for a bad spec, zone, rule or value.
        """
        return await self.schedules.put(name, workflow, value, tenant=tenant, spec=spec, tz=tz, **rules)

    async def decide(
        self,
        workflow: Workflow[Any, Any],
        *,
        tenant: str,
        approval_id: str,
        decision: str,
        by: str,
        reason: str | None = None,
    ) -> bool:
        """Decide a pending approval, and signal its key with "approval" in the same commit. False: somebody else was first, or it has expired.

        `workflow` is what the key's next run begins if none is live. `decision` becomes the approval's state: "approved", "denied", "expired".
        """
        return await self.approvals.decide(
            workflow, tenant=tenant, approval_id=approval_id, decision=decision, by=by, reason=reason
        )

    async def doctor(self) -> list[Finding]:
        """What is wrong with the runs of all tenants, as a process with these workflows sees it: stranded, overdue and dead ones."""
        return await diagnose(self.execution.store("doctor"), self.workflows.keys())

    def workflow(self, name: str) -> Workflow[Any, Any]:
        """The version of a workflow that was added last. Raises NoExecutorError."""
        return self.workflows.required(name)

    def _worker_id(self) -> str | None:
        return self.worker.worker_id if self.worker is not None else None


def _refuse_given(**options: Any) -> None:
    """Raise ValueError if any of these options of `Engine` is not as it is by default: they are of no effect beside an `execution`."""
    defaults = inspect.signature(Engine.__init__).parameters
    given = [name for name, value in options.items() if value != defaults[name].default]
    if given:
        raise ValueError(f"{', '.join(given)}: of no effect beside execution=…, which has options of its own")


def _limits(queues: Sequence[str] | Mapping[str, int], concurrency: int) -> Mapping[str, int]:
    return queues if isinstance(queues, Mapping) else dict.fromkeys(queues, concurrency)


def _check_name(signal: str, dedup_key: str | None) -> None:
    if not signal or signal.startswith("$"):
        raise InputError(f"a signal can't be called {signal!r}: names that begin with $ are the engine's own")
    if dedup_key is not None and dedup_key.startswith("$"):
        raise InputError(f"a signal can't have the key {dedup_key!r}: keys that begin with $ are the engine's own")
    check_ids(signal, dedup_key)
