"""What a worker asks for: never more than any of its limits allow, and never nothing while there is room."""

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from workflows.storage.base import SUSPECT_AFTER, RunRow, RunState
from workflows.workers.slots import Slots

ROW = RunRow(
    "r0", "T1", "w", "1", None, "default", RunState.RUNNING, 1, "A", 1, 5, 0, 0, False, None, None, None, None, None, None, None, None,
    datetime(2026, 1, 1, tzinfo=UTC), None,
)  # fmt: skip


def row(number: int, **changes: Any) -> RunRow:
    return replace(ROW, run_id=f"r{number}", **changes)


def test_queues_of_equal_room_are_asked_for_in_one_statement() -> None:
    ask = Slots({"default": 4, "tasks": 4}, concurrency=4).ask()
    assert ask is not None
    assert (ask.queues, ask.limit, ask.leave_out) == (("default", "tasks"), 4, ())


def test_a_queue_gets_no_more_than_its_own_limit() -> None:
    slots = Slots({"default": 10, "reports": 2}, concurrency=10)
    ask = slots.ask()
    assert ask is not None
    assert (ask.queues, ask.limit) == (("default",), 10)
    reports = slots.ask(empty={"default"})
    assert reports is not None
    assert (reports.queues, reports.limit) == (("reports",), 2)
    for number in range(2):
        slots.take(row(number, queue="reports"))
    assert slots.ask(empty={"default"}) is None


def test_a_tenant_with_its_share_is_left_out_and_others_are_not() -> None:
    slots = Slots({"default": 10}, concurrency=10, per_tenant=3)
    first = slots.ask()
    assert first is not None
    assert first.limit == 3
    for number in range(3):
        slots.take(row(number, tenant="T1"))
    second = slots.ask()
    assert second is not None
    assert (second.limit, second.leave_out) == (3, ("T1",))
    slots.take(row(4, tenant="T2"))
    third = slots.ask()
    assert third is not None
    assert (third.limit, third.leave_out) == (2, ("T1",))
    slots.free("r0")
    freed = slots.ask()
    assert freed is not None
    assert (freed.limit, freed.leave_out) == (1, ())


def test_a_suspect_may_be_taken_by_an_empty_worker_and_has_no_neighbours() -> None:
    slots = Slots({"default": 10}, concurrency=10)
    empty = slots.ask()
    assert empty is not None
    assert empty.suspects == "head"
    slots.take(row(1))
    busy = slots.ask()
    assert busy is not None
    assert busy.suspects == "no"
    slots.free("r1")
    slots.take(row(2, attempts=SUSPECT_AFTER + 1))
    assert slots.alone
    assert slots.ask() is None
    slots.free("r2")
    assert slots.ask() is not None


def test_while_room_is_made_nothing_but_the_suspect_is_asked_for() -> None:
    slots = Slots({"default": 10}, concurrency=10)
    slots.take(row(1))
    assert slots.ask(suspects_only=True) is None
    slots.free("r1")
    ask = slots.ask(suspects_only=True)
    assert ask is not None
    assert ask.suspects == "only"


@pytest.mark.parametrize(
    ("queues", "options"),
    [({}, {"concurrency": 1}), ({"a": 0}, {"concurrency": 1}), ({"a": 1}, {"concurrency": 0}), ({"a": 1}, {"concurrency": 1, "per_tenant": 0})],
)  # fmt: skip
def test_limits_that_let_nothing_through_are_refused(queues: dict[str, int], options: dict[str, int]) -> None:
    with pytest.raises(ValueError, match="1 or more"):
        Slots(queues, **options)


@settings(deadline=None)  # a loaded machine is no fault
@given(
    st.dictionaries(st.sampled_from("abc"), st.integers(1, 6), min_size=1),
    st.integers(1, 12),
    st.none() | st.integers(1, 6),
    st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from(["T1", "T2", "T3"])), max_size=60),
)
def test_claiming_until_nothing_is_asked_for_keeps_every_limit_and_leaves_no_room_unused(
    queues: dict[str, int], concurrency: int, per_tenant: int | None, waiting: list[tuple[str, str]]
) -> None:
    """Whatever is waiting: the runs that come are as many as the limits allow, and no limit is passed."""
    slots = Slots(queues, concurrency=concurrency, per_tenant=per_tenant)
    line = [row(number, queue=queue, tenant=tenant) for number, (queue, tenant) in enumerate(waiting)]
    held: list[RunRow] = []
    empty: set[str] = set()
    while ask := slots.ask(empty=empty):
        fitting = [each for each in line if each.queue in ask.queues and each.tenant not in ask.leave_out][: ask.limit]
        for each in fitting:
            line.remove(each)
            held.append(each)
            slots.take(each)
        if len(fitting) < ask.limit:
            empty.update(ask.queues)
    assert len(held) <= concurrency
    for queue, limit in queues.items():
        assert sum(each.queue == queue for each in held) <= limit
    for tenant in ("T1", "T2", "T3"):
        assert per_tenant is None or sum(each.tenant == tenant for each in held) <= per_tenant
    for each in line:  # each that was left has a limit that it would pass
        assert (
            each.queue not in queues
            or len(held) == concurrency
            or sum(other.queue == each.queue for other in held) == queues[each.queue]
            or sum(other.tenant == each.tenant for other in held) == per_tenant
        )
