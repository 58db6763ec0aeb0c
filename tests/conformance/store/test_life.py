"""A store's life, and its lists."""

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta

import pytest

from tests.conformance.conftest import NOTES, AnyStore
from tests.conformance.store.acts import a_run
from workflows.errors import InputError, SchemaError
from workflows.storage import Column, CompositeStore, Delete
from workflows.storage.base import (
    StoreUnavailableError,
)
from workflows.storage.migrations import schemas_of
from workflows.storage.tables import RUNS


async def test_data_of_another_schema_is_refused_with_what_to_do(
    make_store: Callable[[], AnyStore], backend: str
) -> None:
    if backend == "memory":
        return  # memory has no older data
    first = make_store()
    await first.open()
    await first.close()
    other = make_store()
    assert not isinstance(other, CompositeStore)
    wider = replace(NOTES, columns=(*NOTES.columns, Column("more", "text")))
    other._schemas = (*other._schemas[:-1], *schemas_of(wider))
    with pytest.raises(SchemaError, match="reset"):
        await other.open()
    await other.close()


async def test_a_store_that_was_closed_can_be_opened_again(make_store: Callable[[], AnyStore]) -> None:
    store = make_store()
    for _ in range(2):
        await store.open()
        await store.ping()
        await store.close()
        await store.close()
        with pytest.raises(StoreUnavailableError):
            await store.ping()


async def test_a_closed_store_says_so(make_store: Callable[[], AnyStore]) -> None:
    store = make_store()
    await store.open()
    await store.close()
    with pytest.raises(StoreUnavailableError):
        await store.ping()


async def test_runs_are_listed_newest_first_by_tenant_and_paged(store: AnyStore) -> None:
    ids = sorted([await store.start(a_run(run_id=f"00{n}")) for n in range(5)], reverse=True)
    await store.start(a_run(tenant="T2"))
    page = await store.runs(tenant="T1", limit=3)
    assert [run.run_id for run in page] == ids[:3]
    assert [run.run_id for run in await store.runs(tenant="T1", limit=3, before=page[-1].cursor)] == ids[3:]
    assert await store.run(ids[0], tenant="T2") is None


async def test_a_page_goes_on_though_its_last_run_is_gone(store: AnyStore) -> None:
    for n in range(4):
        await store.set_clock_offset(timedelta(minutes=n))
        await store.start(a_run())
    every = await store.runs(tenant="T1")
    await store.write(Delete(RUNS, {"tenant": "T1", "run_id": every[1].run_id}))
    rest = await store.runs(tenant="T1", before=every[1].cursor)
    assert [run.run_id for run in rest] == [run.run_id for run in every[2:]]


@pytest.mark.parametrize("text", ["", "r1", "x.r", "1.", "1.\x00", "1.\ud800", f"{10**30}.r"])
async def test_what_is_no_cursor_is_refused(store: AnyStore, text: str) -> None:
    with pytest.raises(InputError, match="no cursor"):
        await store.runs(tenant="T1", before=text)
