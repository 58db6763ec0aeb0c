"""Several stores as one: each table's domain says which of them keeps it.

What the engine writes in one commit stays in the default store; a domain can be kept elsewhere only if nothing of it has to share a commit
with the rest, such as spans, or rows of the floors above that are never written together with a step.
"""

import asyncio
from collections.abc import Iterable, Sequence
from datetime import timedelta
from typing import Any

from workflows.errors import RoutingError
from workflows.storage.base import (
    EndOutcome,
    NewRun,
    RunState,
    SignalOutcome,
    StartOutcome,
    StepBatch,
    StepOutcome,
    Store,
)
from workflows.storage.retention import Retention, Swept
from workflows.storage.schema import DEFAULT_DOMAIN, Select, Table, Write
from workflows.storage.tables import SPANS
from workflows.storage.traces import SpanKey, SpanRow, TracePart


def _delegated(name: str) -> Any:
    """An operation of the default store's."""

    def operation(self: "CompositeStore", *arguments: Any, **options: Any) -> Any:
        return getattr(self.default, name)(*arguments, **options)

    operation.__name__, operation.__qualname__ = name, f"CompositeStore.{name}"
    operation.__doc__ = getattr(Store, name).__doc__
    return operation


class CompositeStore:
    """`CompositeStore(default=PostgresStore(dsn), spans=SqliteStore(path))`: a store for each domain named, `default` for all others.

    Raises RoutingError for a domain no table has, for the engine's own, and for a store that does not keep a domain's tables.
    """

    def __init__(self, *, default: Store, **routes: Store) -> None:
        self.default = default
        self._routes = routes
        for domain, store in routes.items():
            _check(domain, store, default.tables)

    @property
    def tables(self) -> tuple[Table, ...]:
        """All tables of the default store; those of a routed domain are kept elsewhere."""
        return self.default.tables

    def _of(self, table: Table) -> Store:
        return self._routes.get(table.domain, self.default)

    def _all(self) -> list[Store]:
        return list(dict.fromkeys((self.default, *self._routes.values())))

    # Life

    async def open(self) -> None:
        for store in self._all():
            await store.open()

    async def close(self) -> None:
        for outcome in await asyncio.gather(*(store.close() for store in self._all()), return_exceptions=True):
            if outcome is not None:
                raise outcome

    async def ping(self) -> None:
        for store in self._all():
            await store.ping()

    now = _delegated("now")

    async def set_clock_offset(self, offset: timedelta) -> None:
        """Move the clocks of all. For tests and the emulator."""
        for store in self._all():
            await store.set_clock_offset(offset)

    # Rows

    async def read(self, query: Select) -> list[dict[str, Any]]:
        return await self._of(query.table).read(query)

    async def totals(self, query: Select, *columns: str) -> tuple[int, ...]:
        return await self._of(query.table).totals(query, *columns)

    async def write(self, *writes: Write) -> int:
        stores = dict.fromkeys(self._of(each.table) for each in writes)
        if len(stores) > 1:
            raise RoutingError(f"these writes are one transaction, and go to different stores: {_named(writes)}")
        return await next(iter(stores), self.default).write(*writes)

    def _ride(self, writes: Iterable[Write], operation: str) -> None:
        elsewhere = [each for each in writes if self._of(each.table) is not self.default]
        if elsewhere:
            raise RoutingError(
                f"a write to {_named(elsewhere)} can't be part of the commit of `{operation}`: it is kept in another store. "
                "Write it by itself, or keep its domain in the default store"
            )

    async def start(self, run: NewRun, *, writes: Sequence[Write] = ()) -> str:
        self._ride(writes, "start")
        return await self.default.start(run, writes=writes)

    async def start_owned(self, run: NewRun, *, writes: Sequence[Write] = ()) -> StartOutcome:
        self._ride(writes, "start_owned")
        return await self.default.start_owned(run, writes=writes)

    async def step(self, run_id: str, fence: int, batch: StepBatch) -> StepOutcome:
        self._ride(batch.writes, "step")
        return await self.default.step(run_id, fence, batch)

    async def end(
        self, run_id: str, fence: int, state: RunState, *, writes: Sequence[Write] = (), **options: Any
    ) -> EndOutcome:
        self._ride(writes, "end")
        return await self.default.end(run_id, fence, state, writes=writes, **options)

    async def signal_with_start(
        self, run: NewRun, *, name: str, dedup_key: str, payload: bytes | None, writes: Sequence[Write] = ()
    ) -> SignalOutcome:
        self._ride(writes, "signal_with_start")
        return await self.default.signal_with_start(run, name=name, dedup_key=dedup_key, payload=payload, writes=writes)

    # Spans

    async def put_spans(self, parts: Sequence[TracePart], *, were_open: Sequence[SpanKey] = ()) -> None:
        await self._of(SPANS).put_spans(parts, were_open=were_open)

    async def put_open_spans(self, spans: Sequence[SpanRow]) -> None:
        await self._of(SPANS).put_open_spans(spans)

    async def open_span_owners(self) -> list[str]:
        return await self._of(SPANS).open_span_owners()

    async def interrupt_spans(self, owners: Sequence[str]) -> list[SpanRow]:
        return await self._of(SPANS).interrupt_spans(owners)

    async def spans(
        self, *, tenant: str, trace_id: str | None = None, run_id: str | None = None, limit: int = 10_000
    ) -> list[SpanRow]:
        keeper = self._of(SPANS)
        if keeper is not self.default and run_id and not trace_id:  # runs are here, and know their traces
            run = await self.default.run(run_id, tenant=tenant)
            trace_id = run.trace_id if run else None
        return await keeper.spans(tenant=tenant, trace_id=trace_id, run_id=run_id, limit=limit)

    # What is over

    async def sweep(self, retention: Retention, *, limit: int = 200) -> Swept:
        swept = Swept()
        for store in self._all():
            swept += await store.sweep(retention, limit=limit)
        return swept

    async def forget(self, tenant: str, *, limit: int = 200) -> int:
        removed = 0
        for store in self._all():
            removed += await store.forget(tenant, limit=limit - removed) if removed < limit else 0
        return removed

    # All others

    register = _delegated("register")
    beat = _delegated("beat")
    workers = _delegated("workers")
    unregister = _delegated("unregister")
    claim = _delegated("claim")
    waiting_suspect = _delegated("waiting_suspect")
    load = _delegated("load")
    release = _delegated("release")
    abandon = _delegated("abandon")
    cancelled = _delegated("cancelled")
    reap = _delegated("reap")
    suspend = _delegated("suspend")
    run = _delegated("run")
    forget_runs = _delegated("forget_runs")
    runs = _delegated("runs")
    fork = _delegated("fork")
    redrive = _delegated("redrive")
    census = _delegated("census")
    signal = _delegated("signal")
    signal_payload = _delegated("signal_payload")
    inbox = _delegated("inbox")
    dead_signals = _delegated("dead_signals")
    dead_signal = _delegated("dead_signal")
    redrive_signal = _delegated("redrive_signal")
    drop_signal = _delegated("drop_signal")
    decide = _delegated("decide")
    expired_approvals = _delegated("expired_approvals")
    put_schedule = _delegated("put_schedule")
    schedule = _delegated("schedule")
    schedules = _delegated("schedules")
    pause_schedule = _delegated("pause_schedule")
    resume_schedule = _delegated("resume_schedule")
    delete_schedule = _delegated("delete_schedule")
    tick = _delegated("tick")
    fire_now = _delegated("fire_now")
    queued_firings = _delegated("queued_firings")
    start_firing = _delegated("start_firing")
    firings = _delegated("firings")


def _check(domain: str, store: Store, tables: Iterable[Table]) -> None:
    wanted = {table.name for table in tables if table.domain == domain}
    if not wanted:
        known = sorted({table.domain for table in tables} - {DEFAULT_DOMAIN})
        raise RoutingError(
            f"no table has the domain {domain!r}; those that can be kept elsewhere are {', '.join(known)}"
        )
    missing = wanted - {table.name for table in store.tables}
    if missing:
        raise RoutingError(
            f"the store for {domain!r} does not keep {', '.join(sorted(missing))}; give it those tables too"
        )


def _named(writes: Iterable[Write]) -> str:
    return ", ".join(sorted({each.table.name for each in writes}))
