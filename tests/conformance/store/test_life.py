"""A store's life, and its lists."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from tests.conformance.conftest import NOTES, AnyStore
from tests.conformance.store.acts import a_run
from workflows.errors import SchemaError
from workflows.storage import Column, CompositeStore
from workflows.storage.base import (
    StoreUnavailableError,
)
from workflows.storage.migrations import schemas_of


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
    assert [run.run_id for run in await store.runs(tenant="T1", limit=3, before=page[-1].run_id)] == ids[3:]
    assert await store.run(ids[0], tenant="T2") is None
