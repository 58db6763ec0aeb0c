"""Several stores as one: what goes where, and what is refused."""

import inspect
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from tests.conformance.conftest import NOTES
from tests.conformance.store.acts import a_run, claimed, new_id, ok
from workflows.errors import RoutingError
from workflows.storage import (
    Column,
    CompositeStore,
    Insert,
    MemoryStore,
    Select,
    SqliteStore,
    Store,
    StoreUnavailableError,
    Table,
)
from workflows.storage.base import RunState, StepBatch
from workflows.storage.tables import RUNS, SPANS, TRACES
from workflows.storage.traces import SpanKey, SpanRow, packed

CLIPPINGS = Table("clippings", (Column("tenant", "text"), Column("id", "text")), ("tenant", "id"), domain="press")
ROW = Insert(CLIPPINGS, {"tenant": "T1", "id": "a"})
NOTE = Insert(NOTES, {"tenant": "T1", "id": "a"})


@pytest.fixture
async def stores(tmp_path: Path) -> AsyncIterator[tuple[SqliteStore, SqliteStore, CompositeStore]]:
    """The default store, the one for clippings and spans, and both as one."""
    default = SqliteStore(tmp_path / "default.db", tables=[NOTES, CLIPPINGS])
    other = SqliteStore(tmp_path / "other.db", tables=[CLIPPINGS])
    composite = CompositeStore(default=default, press=other, spans=other)
    await composite.open()
    yield default, other, composite
    await composite.close()


Stores = tuple[SqliteStore, SqliteStore, CompositeStore]


def test_it_has_every_operation_of_a_store() -> None:
    store: Store = CompositeStore(default=MemoryStore())
    for name, operation in inspect.getmembers(Store, inspect.isfunction):
        ours = getattr(type(store), name)
        assert name.startswith("_") or ours is not operation, f"{name} is left out"


async def test_rows_go_to_the_store_of_their_domain(stores: Stores) -> None:
    default, other, composite = stores
    assert await composite.write(ROW) == 1
    assert await composite.write(NOTE) == 1
    for table, keeper, stranger in ((CLIPPINGS, other, default), (NOTES, default, None)):
        query = Select(table, {"tenant": "T1"})
        assert len(await composite.read(query)) == len(await keeper.read(query)) == 1
        assert stranger is None or await stranger.read(query) == []


async def test_spans_go_to_the_store_of_spans(stores: Stores) -> None:
    default, other, composite = stores
    at = await composite.now()
    span = SpanRow("T1", "t", "s", None, "r", "x", "step", "open", at, None, {}, "gone")
    ended = span._replace(span_id="e", status="ok", owner=None)
    await composite.put_open_spans([span, ended._replace(status="open")])
    await composite.put_spans(packed([ended]), were_open=[SpanKey("T1", "t", "e")])
    assert await composite.open_span_owners() == ["gone"]
    assert [row.status for row in await composite.interrupt_spans(["gone"])] == ["interrupted"]
    for table in (SPANS, TRACES):
        assert await default.read(Select(table, {"tenant": "T1"})) == []
    for store in (composite, other):
        found = await store.spans(tenant="T1", trace_id="t")
        assert {row.span_id: row.status for row in found} == {"s": "interrupted", "e": "ok"}


async def test_the_trace_of_a_run_is_asked_where_runs_are(stores: Stores) -> None:
    _, _, composite = stores
    run = await claimed(composite, trace_id="t")
    at = await composite.now()
    await composite.put_spans(packed([SpanRow("T1", "t", "s", None, run.run_id, "x", "step", "ok", at, at, {})]))
    assert [row.span_id for row in await composite.spans(tenant="T1", run_id=run.run_id)] == ["s"]
    assert await composite.spans(tenant="T2", run_id=run.run_id) == []


async def test_a_write_that_is_kept_elsewhere_can_be_part_of_no_operation(stores: Stores) -> None:
    _, _, composite = stores
    run = await claimed(composite)
    writes = (NOTE, ROW)
    refused: dict[str, Callable[[], object]] = {
        "step": lambda: composite.step(run.run_id, run.fence, StepBatch((ok("a"),), writes=writes)),
        "end": lambda: composite.end(
            run.run_id, run.fence, RunState.FAILED, inbox_seen=0, successor_id=new_id(), writes=writes
        ),
        "start": lambda: composite.start(a_run(), writes=writes),
        "signal_with_start": lambda: composite.signal_with_start(
            a_run(key="k"), name="m", dedup_key="d", payload=None, writes=writes
        ),
    }
    for operation, attempt in refused.items():
        with pytest.raises(RoutingError, match=f"clippings can't be part of the commit of `{operation}`"):
            await attempt()  # type: ignore[misc]
    with pytest.raises(RoutingError, match="one transaction, and go to different stores: clippings, notes"):
        await composite.write(*writes)
    assert await composite.load(run.run_id) == []
    assert [each.run_id for each in await composite.runs(tenant="T1")] == [run.run_id]
    assert (
        await composite.read(Select(NOTES, {"tenant": "T1"}))
        == await composite.read(Select(CLIPPINGS, {"tenant": "T1"}))
        == []
    )


async def test_all_are_opened_closed_and_asked(tmp_path: Path) -> None:
    first, second = SqliteStore(tmp_path / "1.db"), SqliteStore(tmp_path / "2.db")
    composite = CompositeStore(default=first, spans=second)
    with pytest.raises(StoreUnavailableError):
        await composite.ping()
    await composite.open()
    await composite.ping()
    await second.close()
    with pytest.raises(StoreUnavailableError):
        await composite.ping()
    await composite.close()
    with pytest.raises(StoreUnavailableError):
        await first.ping()


async def test_a_store_that_can_not_be_closed_keeps_no_other_open(tmp_path: Path) -> None:
    class Stuck(SqliteStore):
        async def close(self) -> None:
            await super().close()
            raise OSError("stuck")

    first, second = Stuck(tmp_path / "1.db"), SqliteStore(tmp_path / "2.db")
    composite = CompositeStore(default=first, spans=second)
    await composite.open()
    with pytest.raises(OSError, match="stuck"):
        await composite.close()
    with pytest.raises(StoreUnavailableError):
        await second.ping()


async def test_a_tenant_is_forgotten_everywhere(stores: Stores) -> None:
    _, other, composite = stores
    for tenant in ("T1", "T2"):
        await composite.start(a_run(tenant=tenant))
        for number in range(3):
            await composite.write(Insert(CLIPPINGS, {"tenant": tenant, "id": str(number)}))
    assert [await composite.forget("T1", limit=2) for _ in range(3)] == [2, 2, 0]
    assert (
        await other.read(Select(CLIPPINGS, {"tenant": "T1"}))
        == await composite.read(Select(RUNS, {"tenant": "T1"}))
        == []
    )
    assert len(await other.read(Select(CLIPPINGS, {"tenant": "T2"}))) == 3


def test_a_domain_must_have_a_table_and_its_store_must_keep_it() -> None:
    with pytest.raises(
        RoutingError, match="no table has the domain 'typo'; those that can be kept elsewhere are spans"
    ):
        CompositeStore(default=MemoryStore(), typo=MemoryStore())
    with pytest.raises(RoutingError, match="the store for 'press' does not keep clippings"):
        CompositeStore(default=MemoryStore(tables=[CLIPPINGS]), press=MemoryStore())
