"""What is accepted, decided or fired: once, by whom it is for, and with its wake-up."""

import asyncio
from dataclasses import replace
from datetime import timedelta

from tests.storage.guarantees.owners import state
from tests.storage.guarantees.parts import Part, Weakenable, given_by
from tests.storage.locks.writers import (
    DUE,
    FAILURE,
    Store,
    cancels,
    decides,
    finishes,
    forks,
    new,
    signals,
    suspends,
    ticks,
    weekly,
    writes,
)
from workflows.storage.base import DecideOutcome, Firing, FiringStatus, Fork, RunState

SIGNAL, SIGNAL_WITH_START, DECIDE = (
    "cancel_requested = cancel_requested or",
    "insert into received",
    "update approvals set state = $3",
)
TICK, FORK, REDRIVE, LETTER = (
    "update schedules set last_at",
    "forked_from",
    "where run_id = $1 and tenant = $2 and state = 'dead'",
    "with g as (delete from dead_signals where tenant = $1 and run_id = $6",
)
UNDECIDED = DecideOutcome(decided=False, run_id=None, queue=None)
ALIVE = r"and state in \('ready','running','suspended'\)"


# SIGNAL


@given_by(Part(SIGNAL, r" and tenant = \$5", " and $5::text is not null"))
async def a_signal_of_another_tenant_is_not_accepted(table: Weakenable) -> None:
    outcome = await table.store.signal("R", tenant="T2", name="note", dedup_key="n1", payload=b"1")
    assert outcome.run_id is None
    assert len(await table.store.inbox("R")) == 1


@given_by(Part(SIGNAL, ALIVE))
async def an_ended_run_accepts_no_signal(table: Weakenable) -> None:
    await finishes(table.store)
    assert (await signals(table.store)).run_id is None


@given_by(Part(SIGNAL, "then 'ready' else state end", "then state else state end"), world="suspended")
async def a_signal_wakes(table: Weakenable) -> None:
    await signals(table.store)
    assert await state(table) is RunState.READY


@given_by(
    Part(SIGNAL, "then threadline_now\\(\\) else available_at", "then available_at else available_at"),
    world="suspended",
)
async def a_signal_wakes_at_once(table: Weakenable) -> None:
    await signals(table.store)
    assert len(await table.store.claim("B", queues=["default"], workflows=[("w", "1")], limit=1)) == 1


@given_by(Part(SIGNAL, r"cancel_requested or \$2 = '\$cancel'", "cancel_requested"))
async def a_stop_is_known_to_the_worker(table: Weakenable) -> None:
    await table.store.signal("R", tenant="T1", name="$cancel", dedup_key="$cancel", payload=None)
    assert await table.store.cancelled("A") == ["R"]


# SIGNAL-WITH-START


@given_by(
    Part(
        SIGNAL_WITH_START,
        "on conflict do nothing returning tenant",
        "on conflict (tenant, dedup_key) do update set at = threadline_now() returning tenant",
    )
)
async def an_outside_event_is_received_once_though_its_run_is_over(table: Weakenable) -> None:
    await finishes(table.store)
    outcome = await table.store.signal_with_start(new("N0"), name="message", dedup_key="m0", payload=b"0")
    assert outcome.duplicate
    assert await table.store.run("N0") is None


@given_by(
    Part(SIGNAL_WITH_START, "then 'ready' else runs.state end", "then runs.state else runs.state end"),
    world="suspended",
)
async def a_message_wakes_its_run(table: Weakenable) -> None:
    assert (await writes(table.store)).run_id == "R"
    assert await state(table) is RunState.READY


# DECIDE


@given_by(Part(DECIDE, " and state = 'pending'"))
async def what_was_decided_stays_decided(table: Weakenable) -> None:
    await decides(table.store)
    assert await _denies(table.store) == UNDECIDED


@given_by(
    Part(
        DECIDE, " and state = 'pending'", " and (select state from approvals where tenant = $1 and id = $2) = 'pending'"
    )
)
async def of_two_that_decide_at_once_one_decides(table: Weakenable) -> None:
    first, second = await table.overtaken(decides, _denies)
    assert [first.decided, second.decided] == [True, False]


@given_by(Part(DECIDE, r"and \(expires_at <= threadline_now\(\)\) = \(\$3 = 'expired'\)"))
async def what_has_expired_is_not_approved(table: Weakenable) -> None:
    await table.store.set_clock_offset(timedelta(days=2))
    try:
        assert await decides(table.store) == UNDECIDED
    finally:
        await table.store.set_clock_offset(timedelta(0))


@given_by(Part(DECIDE, "where tenant = \\$1 and", "where $1::text is not null and"))
async def another_tenant_decides_nothing(table: Weakenable) -> None:
    stranger = new("N3", tenant="T2", key=None)
    outcome = await table.store.decide("ap", stranger, decision="approved", by="U", reason=None)
    assert outcome == UNDECIDED


@given_by(Part(DECIDE, "then 'ready' else runs.state end", "then runs.state else runs.state end"))
async def a_decision_wakes_its_thread(table: Weakenable) -> None:
    await suspends(table.store)
    assert await decides(table.store) == DecideOutcome(True, "R", "default")
    assert await state(table) is RunState.READY


@given_by(Part(DECIDE, "from r\n", "from r where false\n"))
async def a_decision_is_told_to_its_thread(table: Weakenable) -> None:
    await decides(table.store)
    assert [signal.name for signal in await table.store.inbox("R")] == ["message", "approval"]


async def _denies(store: Store) -> DecideOutcome:
    return await store.decide("ap", new("N9", key=None), decision="denied", by="V", reason=None)


# TICK


@given_by(Part(TICK, r"and next_at = \$18", "and $18::timestamptz is not null"))
async def a_clock_that_comes_later_fires_nothing(table: Weakenable) -> None:
    assert await ticks(table.store) is FiringStatus.STARTED
    assert await _ticks_too(table.store) is None


@given_by(
    Part(TICK, r"and next_at = \$18", "and (select next_at from schedules where tenant = $1 and name = $2) = $18")
)
async def of_two_clocks_at_once_one_fires(table: Weakenable) -> None:
    assert await table.overtaken(ticks, _ticks_too) == (FiringStatus.STARTED, None)


@given_by(Part(TICK, " and not paused"))
async def what_is_paused_does_not_fire(table: Weakenable) -> None:
    await table.store.pause_schedule(tenant="T1", name="s", reason="for now")
    assert await ticks(table.store) is None


async def _ticks_too(store: Store) -> FiringStatus | None:
    moved = replace(weekly(), next_at=DUE + timedelta(days=7), due_at=DUE + timedelta(days=7), fired=1)
    return await store.tick(weekly(), moved=moved, firing=Firing("T1", "s", "N9", DUE), run=new("N9"))


# Forks, redrives, dead letters


@given_by(Part(FORK, r"and tenant = \$3 and not", "and $3::text is not null and not"), world="dead")
async def another_tenants_run_is_not_forked(table: Weakenable) -> None:
    assert not await table.store.fork(Fork("F", "R", "T2", cut=2, input=b"2"))


@given_by(Part(FORK, r"and not state in \('ready','running','suspended'\) for update", "for update"))
async def a_live_run_is_not_forked(table: Weakenable) -> None:
    assert not await forks(table.store)


@given_by(Part(REDRIVE, r"and tenant = \$2 and", "and $2::text is not null and"), world="dead")
async def another_tenants_run_is_not_redriven(table: Weakenable) -> None:
    assert not (await table.store.redrive("R", tenant="T2")).redriven


@given_by(Part(REDRIVE, "and state = 'dead'"))
async def only_the_dead_are_redriven(table: Weakenable) -> None:
    await table.store.end("C", 1, RunState.FAILED, inbox_seen=0, successor_id="none", error=FAILURE)
    assert not (await table.store.redrive("C", tenant="T1")).redriven


@given_by(Part(REDRIVE, r"where s\.run_id = u\.run_id and s\.name = '\$cancel'", "where false"))
async def what_is_redriven_can_be_stopped_again(table: Weakenable) -> None:
    """The stop of its former life is gone: left there, the next would be taken for a copy of it."""
    await cancels(table.store)
    await table.store.end("R", 1, RunState.DEAD, inbox_seen=2, successor_id="none", error=FAILURE)
    (heir,) = await table.store.claim("B", queues=["default"], workflows=[("w", "1")], limit=1)
    await table.store.end("none", heir.fence, RunState.FAILED, inbox_seen=1, successor_id="other", error=FAILURE)
    assert (await table.store.redrive("R", tenant="T1")).redriven
    assert (await cancels(table.store)).run_id == "R"


@given_by(Part(LETTER, r"where tenant = \$1 and run_id", "where $1::text is not null and run_id"), world="dead")
async def another_tenants_letter_is_not_given_back(table: Weakenable) -> None:
    (letter,) = await table.store.dead_signals(tenant="T1")
    assert await table.store.redrive_signal(letter.id, new("N8", tenant="T2")) is None


@given_by(
    Part(LETTER, r"delete from (dead_signals where .*)\n\s*returning (.*)\),", r"select \2 from \1),"), world="dead"
)
async def a_letter_is_given_back_once(table: Weakenable) -> None:
    (letter,) = await table.store.dead_signals(tenant="T1")
    assert await table.store.redrive_signal(letter.id, new("N8")) is not None
    assert await table.store.redrive_signal(letter.id, new("N9")) is None


@given_by(Part(FORK, r" for update\)", ")"), world="dead")
async def what_is_redriven_while_it_is_copied_is_copied_first(table: Weakenable) -> None:
    """The source's row is locked: whoever puts it back to work waits until the copy is whole."""
    held = await table.hold()
    assert await forks(held)
    task = asyncio.ensure_future(table.store.redrive("R", tenant="T1"))
    waited = await table.waits(task)
    await held.finish(commit=True)
    await task
    assert waited


@given_by(Part("for update on conflict do nothing returning tenant", r" and status = 'queued' for update", ""))
async def a_queued_firing_is_started_once(table: Weakenable) -> None:
    """A firing that has another end by now (here: its schedule was deleted) is not started."""
    firing = Firing("T1", "s", "Q", DUE, status=FiringStatus.QUEUED)
    moved = replace(weekly(), next_at=DUE + timedelta(days=7), due_at=DUE + timedelta(days=7), fired=1)
    assert await table.store.tick(weekly(), moved=moved, firing=firing, run=None) is FiringStatus.QUEUED
    assert await table.store.delete_schedule(tenant="T1", name="s")
    assert not await table.store.start_firing(firing, new("Q", key=None))
    assert await table.store.run("Q") is None
