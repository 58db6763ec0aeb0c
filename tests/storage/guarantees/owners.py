"""What protects a run from whoever is not its owner, or does not know all that came for it."""

import re
from datetime import timedelta
from typing import Any

from tests.storage.guarantees.parts import Part, Weakenable, given_by
from tests.storage.locks.writers import (
    FAILURE,
    Store,
    abandons,
    cancels,
    fails,
    finishes,
    new,
    ok,
    reaps,
    records,
    releases,
    signals,
    suspends,
)
from tests.storage.locks.writers import claims as b_claims
from workflows.storage import Insert, Select
from workflows.storage.base import RunState, StepBatch
from workflows.storage.postgres.rows import RUNNING
from workflows.storage.tables import APPROVALS

STEP, SUSPEND, END, CLAIM, REAP = (
    "step_seq = step_seq + cardinality",
    "set state = 'suspended'",
    "set state = $3, owner = null, error = $6",
    "state = 'running', fence = fence + 1, owner = $1",
    "with lost as materialized",
)
RELEASE, ABANDON = "attempts = greatest(attempts - 1, 0)", "where run_id = $2 and owner = $1"
FENCE = r"fence = \$2 and "
ANY = "$2::bigint is not null and "
LOOKED_AT = "exists (select from runs where run_id = $1 and fence = $2) and "
"""A fence that is read and not locked."""


async def paths(table: Weakenable, run_id: str = "R") -> list[str]:
    return [record.path for record in await table.store.load(run_id)]


async def state(table: Weakenable, run_id: str = "R") -> RunState:
    row = await table.store.run(run_id)
    assert row is not None
    return row.state


async def b_has_it(store: Store) -> None:
    """A is gone for long, and B goes on with R."""
    await releases(store)
    assert len(await b_claims(store)) == 1


# STEP


@given_by(Part(STEP, FENCE, ANY))
async def an_owner_of_before_records_nothing(table: Weakenable) -> None:
    await b_has_it(table.store)
    outcome = await records(table.store)
    assert not outcome.recorded
    assert not outcome.owned
    assert await paths(table) == ["a"]


@given_by(Part(STEP, FENCE, LOOKED_AT))
async def an_owner_that_is_overtaken_while_it_records_records_nothing(table: Weakenable) -> None:
    _, outcome = await table.overtaken(b_has_it, records)
    assert not outcome.recorded
    assert await paths(table) == ["a"]


@given_by(Part(STEP, f"and {re.escape(RUNNING)}"))
async def nothing_is_recorded_after_the_end(table: Weakenable) -> None:
    await fails(table.store)
    assert not (await records(table.store)).recorded
    assert await paths(table) == ["a"]


@given_by(Part("as existing", r" and fence = \$3", " and $3::bigint is not null"))
async def only_this_fences_own_record_is_a_repeat(table: Weakenable) -> None:
    await b_has_it(table.store)
    assert (await table.store.step("R", 3, StepBatch((ok("b"),)))).recorded
    assert not (await table.store.step("R", 1, StepBatch((ok("b"),)))).recorded


@given_by(Part(STEP, r"'\$end'|coalesce\(\$3\[1\], '\$end'\)", "null"))
async def a_signal_is_used_once(table: Weakenable) -> None:
    await records(table.store)
    assert await table.store.inbox("R") == []


@given_by(Part(STEP, r"(insert into approvals .*?) from g\b", r"\1 where true"))
async def a_row_of_the_floors_above_is_written_with_its_step_or_not_at_all(table: Weakenable) -> None:
    row = {
        "tenant": "T1",
        "id": "late",
        "workflow": "w",
        "key": "thread",
        "body": {},
        "expires_at": await table.store.now(),
    }
    await b_has_it(table.store)
    await table.store.step("R", 1, StepBatch((ok("b"),), writes=(Insert(APPROVALS, row),)))
    assert "late" not in [approval["id"] for approval in await table.store.read(Select(APPROVALS, {"tenant": "T1"}))]


# The clean end


@given_by(Part(STEP, r" and inbox_seq = (\$\d+)", r" and \1::bigint is not null"))
async def no_message_slips_past_the_clean_end(table: Weakenable) -> None:
    await signals(table.store)
    outcome = await finishes(table.store)
    assert outcome.owned
    assert not outcome.recorded
    assert await state(table) is RunState.RUNNING


@given_by(Part(STEP, r"inbox_seq = (\$\d+)", r"(select inbox_seq from runs where run_id = $1) = \1"))
async def no_message_slips_in_while_a_run_ends(table: Weakenable) -> None:
    _, outcome = await table.overtaken(signals, finishes)
    assert not outcome.recorded
    assert len(await table.store.inbox("R")) == 2


@given_by(Part(STEP, " and not cancel_requested"))
async def no_stop_slips_past_the_clean_end(table: Weakenable) -> None:
    await cancels(table.store)
    batch = StepBatch((ok("z"),), consumed=(1,), done=True, output=b"9", inbox_seen=2)
    assert not (await table.store.step("R", 1, batch)).recorded
    assert await state(table) is RunState.RUNNING


@given_by(Part(STEP, "from g join runs q on q.run_id = g.parent_id where", "from g join runs q on false where"))
async def the_end_of_a_child_begins_the_next_run_of_its_parents_key(table: Weakenable) -> None:
    await finishes(table.store)
    outcome = await table.store.step("C", 1, StepBatch((ok("c"),), done=True, successor_id="N5"))
    assert outcome.parent_queue == "default"
    assert [signal.dedup_key for signal in await table.store.inbox("N5-p")] == ["task:C"]


@given_by(Part(STEP, r"where runs\.run_id = g\.parent_id", "where false"))
async def the_end_of_a_child_wakes_a_parent_without_a_key(table: Weakenable) -> None:
    await table.store.start(new("K", key=None))
    await table.store.claim("A", queues=["default"], workflows=[("w", "1")], limit=1)
    child = new("KC", key=None, queue="tasks", parent_id="K", parent_path="a")
    await table.store.step("K", 1, StepBatch((ok("a"),), children=(child,)))
    await table.store.suspend("K", 1, inbox_seen=0, until=None)
    await table.store.claim("A", queues=["tasks"], workflows=[("w", "1")], limit=1)
    await table.store.step("KC", 1, StepBatch((ok("c"),), done=True, successor_id="N5"))
    assert await state(table, "K") is RunState.READY
    assert [signal.dedup_key for signal in await table.store.inbox("K")] == ["task:KC"]


@given_by(Part(STEP, r"from b union all select \* from r", "from b where false union all select * from r"))
async def the_end_of_a_child_wakes_its_parent(table: Weakenable) -> None:
    await suspends(table.store)
    await table.store.step("C", 1, StepBatch((ok("c"),), done=True, successor_id="N5"))
    assert await state(table) is RunState.READY
    assert "task:C" in [signal.dedup_key for signal in await table.store.inbox("R")]


# SUSPEND


@given_by(Part(SUSPEND, FENCE, ANY))
async def an_owner_of_before_puts_nothing_to_sleep(table: Weakenable) -> None:
    await b_has_it(table.store)
    assert not await suspends(table.store)
    assert await state(table) is RunState.RUNNING


@given_by(Part(SUSPEND, FENCE, LOOKED_AT))
async def an_owner_that_is_overtaken_puts_nothing_to_sleep(table: Weakenable) -> None:
    _, slept = await table.overtaken(b_has_it, suspends)
    assert not slept
    assert await state(table) is RunState.RUNNING


@given_by(Part(SUSPEND, r" and inbox_seq = \$3", " and $3::bigint is not null"))
async def nothing_sleeps_on_a_message(table: Weakenable) -> None:
    await signals(table.store)
    assert not await suspends(table.store)


@given_by(Part(SUSPEND, r"inbox_seq = \$3", "(select inbox_seq from runs where run_id = $1) = $3"))
async def nothing_sleeps_on_a_message_that_comes_meanwhile(table: Weakenable) -> None:
    _, slept = await table.overtaken(signals, suspends)
    assert not slept


@given_by(Part(SUSPEND, r"and \(not cancel_requested or .*\)\)"))
async def nothing_sleeps_on_a_stop(table: Weakenable) -> None:
    await cancels(table.store)
    assert not await table.store.suspend("R", 1, inbox_seen=2, until=None)


@given_by(Part(SUSPEND, f" and {re.escape(RUNNING)}"))
async def what_has_ended_does_not_sleep(table: Weakenable) -> None:
    await finishes(table.store)
    assert not await suspends(table.store)


# END


@given_by(Part(END, FENCE, ANY))
async def an_owner_of_before_ends_nothing(table: Weakenable) -> None:
    await b_has_it(table.store)
    assert not (await fails(table.store)).ended
    assert await state(table) is RunState.RUNNING


@given_by(Part(END, FENCE, LOOKED_AT))
async def an_owner_that_is_overtaken_ends_nothing(table: Weakenable) -> None:
    _, outcome = await table.overtaken(b_has_it, fails)
    assert not outcome.ended
    assert await state(table) is RunState.RUNNING


@given_by(Part(END, f"and {re.escape(RUNNING)}"))
async def what_is_done_does_not_fail(table: Weakenable) -> None:
    await finishes(table.store)
    assert not (await fails(table.store)).ended
    assert await state(table) is RunState.DONE


@given_by(Part(END, r"inbox_seq = \$4", "$4::bigint is not null"))
async def a_message_that_comes_while_a_run_fails_is_handed_over(table: Weakenable) -> None:
    """The end is refused, and asked for again by one that has seen it."""
    _, outcome = await table.overtaken(signals, fails)
    assert not outcome.ended
    outcome = await table.store.end("R", 1, RunState.FAILED, inbox_seen=2, successor_id="S2", error=FAILURE)
    assert outcome.carried == 2
    assert len(await table.store.inbox("S2")) == 2


@given_by(Part(END, r"and step_seq = \(select step_seq from runs where run_id = \$1\)"))
async def what_a_step_uses_while_its_run_fails_is_not_handed_over(table: Weakenable) -> None:
    _, outcome = await table.overtaken(records, fails)
    if outcome.ended:
        assert outcome.carried == 0
    assert await table.store.inbox("S2") == []


@given_by(Part(END, "g.key is not null and", "false and"))
async def what_nobody_read_is_handed_over(table: Weakenable) -> None:
    assert (await fails(table.store)).successor == "S2"
    assert [signal.dedup_key for signal in await table.store.inbox("S2")] == ["m0"]
    assert await table.store.inbox("R") == []


@given_by(Part(END, ", carried = 1"), Part(END, r"s\.carried > 0 or "), Part(END, "from x, g", "from x, g where false"))
async def what_two_runs_did_not_read_is_a_dead_letter(table: Weakenable) -> None:
    await fails(table.store)
    await b_claims(table.store)
    outcome = await table.store.end("S2", 1, RunState.FAILED, inbox_seen=1, successor_id="S3", error=FAILURE)
    assert outcome.carried == 0
    assert [letter.signal.dedup_key for letter in await table.store.dead_signals(tenant="T1")] == ["m0"]


# CLAIM, RELEASE, ABANDON, BEAT, REAP


@given_by(Part(CLAIM, r"fence = fence \+ 1, "), world="suspended")
async def who_went_to_sleep_does_not_write_in_the_name_of_who_woke(table: Weakenable) -> None:
    await signals(table.store)
    assert len(await b_claims(table.store)) == 1
    assert not (await records(table.store)).recorded


@given_by(Part(CLAIM, "for update skip locked"), world="ready")
async def two_do_not_claim_the_same(table: Weakenable) -> None:
    await table.store.register("D", host="d", deployment="", lease=timedelta(days=1))

    async def d_claims(store: Store) -> Any:
        return await store.claim("D", queues=["default"], workflows=[("w", "1")], limit=1)

    first, second = await table.overtaken(b_claims, d_claims)
    assert [len(first), len(second)] == [1, 0]


@given_by(Part(CLAIM, r"and exists \(select from workers where worker_id = \$1\)"), world="ready")
async def a_worker_that_was_reaped_claims_nothing(table: Weakenable) -> None:
    await table.store.unregister("B")
    assert await b_claims(table.store) == []


@given_by(
    Part(CLAIM, r"\(workflow, version\) in \(select \* from (.*)\)\n", r"exists (select from \1)\n"), world="ready"
)
async def a_run_is_left_for_one_that_knows_its_version(table: Weakenable) -> None:
    assert await table.store.claim("B", queues=["default"], workflows=[("w", "2"), ("v", "1")], limit=1) == []


@given_by(Part(CLAIM, r"tenant <> all\(\$6\)", "$6::text[] is not null"), world="ready")
async def a_tenant_that_has_its_share_is_left_out(table: Weakenable) -> None:
    assert await table.store.claim("B", queues=["default"], workflows=[("w", "1")], limit=1, leave_out=["T1"]) == []


@given_by(Part(RELEASE, r"where owner = \$1 and", "where owner = $1 and false and"))
async def a_claim_whose_reply_was_lost_is_given_back(table: Weakenable) -> None:
    assert await table.store.release("A", held=["C"]) == ["R"]
    assert len(await b_claims(table.store)) == 1


@given_by(Part(RELEASE, r" and run_id <> all\(\$2\)", " and cardinality($2::text[]) >= 0"))
async def what_is_held_is_not_given_back(table: Weakenable) -> None:
    assert await table.store.release("A", held=["R", "C"]) == []
    assert (await records(table.store)).recorded


@given_by(Part(RELEASE, r"greatest\(attempts - 1, 0\)", "attempts"))
async def what_is_given_back_has_cost_no_attempt(table: Weakenable) -> None:
    assert await table.store.release("A", held=["R"]) == ["C"]
    (run,) = await table.store.claim("B", queues=["tasks"], workflows=[("w", "1")], limit=1)
    assert run.attempts == 1


@given_by(Part(ABANDON, r"fence = fence \+ 1, "))
async def who_gave_up_the_last_attempt_writes_no_more(table: Weakenable) -> None:
    await _last_attempt(table)
    await table.store.abandon("A", "L", delay=timedelta(0))
    assert not (await table.store.step("L", 1, StepBatch((ok("b"),)))).recorded


@given_by(Part(ABANDON, r"owner = \$1", "$1::text is not null"))
async def who_lost_a_run_does_not_give_it_up(table: Weakenable) -> None:
    await b_has_it(table.store)
    await abandons(table.store)
    assert await state(table) is RunState.RUNNING


async def _last_attempt(table: Weakenable) -> None:
    """A has L, for the last time."""
    await table.store.start(new("L", key=None, max_attempts=1))
    await table.store.claim("A", queues=["default"], workflows=[("w", "1")], limit=1)


@given_by(
    Part(
        "update workers set lease_until",
        r"^update .*",
        "insert into workers (worker_id, host, deployment, lease_until) values ($1, '', '', threadline_now() + $2) "
        "on conflict (worker_id) do update set lease_until = excluded.lease_until returning true",
    )
)
async def a_worker_that_was_reaped_does_not_come_back(table: Weakenable) -> None:
    await reaps(table.store)
    assert not await table.store.beat("A", lease=timedelta(days=1))
    assert "A" not in await table.store.workers()


@given_by(Part(REAP, " and r.fence = lost.fence"))
async def who_claims_while_the_reaper_looks_keeps_the_run(table: Weakenable) -> None:
    _, reaped = await table.overtaken(b_has_it, reaps)
    assert "R" not in reaped.freed
    assert reaped.dead == ()
    assert (await table.store.step("R", 3, StepBatch((ok("b"),)))).recorded


@given_by(Part(REAP, r"and not exists \(select from workers w where w.worker_id = r.owner\)"))
async def nothing_is_taken_from_those_that_live(table: Weakenable) -> None:
    await b_has_it(table.store)
    assert (await reaps(table.store)).freed == ("C",)


@given_by(Part(REAP, r"set fence = r.fence \+ 1", "set fence = r.fence"))
async def who_fell_silent_in_the_last_attempt_writes_no_more(table: Weakenable) -> None:
    await _last_attempt(table)
    assert [run.run_id for run in (await reaps(table.store)).dead] == ["L"]
    assert not (await table.store.step("L", 1, StepBatch((ok("b"),)))).recorded


@given_by(Part(REAP, "case when r.attempts < r.max_attempts then 'ready' else r.state end", "'ready'"))
async def what_is_out_of_attempts_is_not_tried_again(table: Weakenable) -> None:
    await _last_attempt(table)
    assert "L" not in (await reaps(table.store)).freed
