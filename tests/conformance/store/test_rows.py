"""Rows of the floors above."""

from datetime import UTC, datetime, timedelta

import pytest

from tests.conformance.conftest import NOTES, AnyStore
from workflows.storage import Delete, Insert, Is, Select, Update


async def test_every_query_must_name_a_tenant() -> None:
    for make in (
        lambda: Select(NOTES, {"id": "x"}),
        lambda: Insert(NOTES, {"id": "x"}),
        lambda: Update(NOTES, {}, {"n": 1}),
        lambda: Delete(NOTES, {"tenant": None}),
    ):
        with pytest.raises(ValueError, match="tenant"):
            make()


async def test_a_column_that_does_not_exist_is_named() -> None:
    with pytest.raises(ValueError, match="notes has no column 'nope'"):
        Select(NOTES, {"tenant": "T1", "nope": 1})


async def test_conditions_order_and_limit(store: AnyStore) -> None:
    at = datetime(2026, 11, 1, tzinfo=UTC)
    await store.write(
        *(Insert(NOTES, {"tenant": "T1", "id": str(n), "n": n, "at": at + timedelta(days=n)}) for n in range(5))
    )
    query = Select(
        NOTES, {"tenant": "T1", "n": Is(">=", 1), "at": Is("<", at + timedelta(days=4))}, order=("-n",), limit=2
    )
    assert [(row["n"], row["at"]) for row in await store.read(query)] == [
        (3, at + timedelta(days=3)),
        (2, at + timedelta(days=2)),
    ]
    assert [
        row["n"] for row in await store.read(Select(NOTES, {"tenant": "T1", "n": Is("in", [0, 4])}, order=("n",)))
    ] == [0, 4]
    assert await store.read(Select(NOTES, {"tenant": "T1", "n": Is("in", [])})) == []
    assert len(await store.read(Select(NOTES, {"tenant": "T1", "body": None}))) == 5
    assert await store.read(Select(NOTES, {"tenant": "T1", "body": Is("!=", None)})) == []


async def test_how_a_text_begins_is_no_pattern_and_minds_case(store: AnyStore) -> None:
    for each in ("C1:a", "C1:", "C11:a", "c1:a", "xC1:a", "C_:a", "C%:a", "Cé:a"):
        await store.write(Insert(NOTES, {"tenant": "T1", "id": each}))

    async def found(prefix: str) -> set[str]:
        rows = await store.read(Select(NOTES, {"tenant": "T1", "id": Is("starts with", prefix)}))
        return {row["id"] for row in rows}

    assert await found("C1:") == {"C1:a", "C1:"}
    assert await found("C_:") == {"C_:a"}
    assert await found("C%") == {"C%:a"}
    assert await found("Cé") == {"Cé:a"}
    assert await store.write(Delete(NOTES, {"tenant": "T1", "id": Is("starts with", "C1")})) == 3


async def test_totals_count_rows_and_add_columns_of_whole_numbers(store: AnyStore) -> None:
    for number, tenant in enumerate(("T1", "T1", "T1", "T2"), 1):
        await store.write(Insert(NOTES, {"tenant": tenant, "id": str(number), "n": 2**40 * number}))
    assert await store.totals(Select(NOTES, {"tenant": "T1"}), "n") == (3, 6 * 2**40)
    assert await store.totals(Select(NOTES, {"tenant": "T1", "n": Is(">", 2**41)}), "n", "n") == (
        1,
        3 * 2**40,
        3 * 2**40,
    )
    assert await store.totals(Select(NOTES, {"tenant": "T3"}), "n") == (0, 0)
    assert await store.totals(Select(NOTES, {"tenant": "T1"})) == (3,)
    with pytest.raises(ValueError, match="order or a limit"):
        await store.totals(Select(NOTES, {"tenant": "T1"}, limit=1), "n")
    with pytest.raises(ValueError, match="no column"):
        await store.totals(Select(NOTES, {"tenant": "T1"}), "nope")


def test_a_comparison_with_null_that_no_row_could_pass_is_refused() -> None:
    with pytest.raises(ValueError, match="a plain None asks for null"):
        Is("<", None)
    with pytest.raises(ValueError, match="a plain None asks for null"):
        Is("=", None)


async def test_conflicts_do_nothing_replace_or_fail(store: AnyStore) -> None:
    row = {"tenant": "T1", "id": "x", "n": 1}
    await store.write(Insert(NOTES, row))
    assert await store.write(Insert(NOTES, {**row, "n": 2})) == 0
    await store.write(Insert(NOTES, {**row, "n": 3}, on_conflict="replace"))
    assert (await store.read(Select(NOTES, {"tenant": "T1"})))[0]["n"] == 3
    with pytest.raises(Exception, match=r"(?i)unique"):
        await store.write(Insert(NOTES, {**row, "n": 4}, on_conflict="fail"))


async def test_several_writes_are_one_transaction(store: AnyStore) -> None:
    with pytest.raises(Exception, match=r"(?i)unique"):
        await store.write(
            Insert(NOTES, {"tenant": "T1", "id": "x"}),
            Insert(NOTES, {"tenant": "T1", "id": "x"}, on_conflict="fail"),
        )
    assert await store.read(Select(NOTES, {"tenant": "T1"})) == []


async def test_text_is_data_never_sql(store: AnyStore) -> None:
    text = "'; drop table notes; --"
    await store.write(Insert(NOTES, {"tenant": text, "id": text, "body": {"k": "\u0000\U0001f600"}}))
    (row,) = await store.read(Select(NOTES, {"tenant": text}))
    assert (row["id"], row["body"]) == (text, {"k": "\u0000\U0001f600"})
