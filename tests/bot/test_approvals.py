"""Approvals over real HTTP: who may click, who comes first, who is too late, and what the card says afterwards."""

import asyncio
import json
from dataclasses import replace

import pytest

from agent.campaigns.sandbox import CAMPAIGN_CHANGES
from agent.channel import Card, Notes, Place
from agent.preferences import PreferenceBook, Preferences
from agent.thread import Thread
from bot.approvals import NOT_ALONE, NOT_OPENED, NOT_YOURS, UNKNOWN
from bot.people import NOT_CHECKED
from bot.render.cards import APPROVE, DENY, DENY_WHY, OUTCOMES
from tests.bot.bench import HARBOR, NORTHWIND, Bench, Json
from tests.waiting import until
from workflows.storage import Select
from workflows.storage.tables import APPROVALS

BOTH = pytest.mark.parametrize("storage", ["sqlite", "servers"], indirect=True)
DAY_S = 24 * 3600


async def ask(bench: Bench) -> tuple[str, Json]:
    """Ben wants more money for a campaign; returns the thread and its card."""
    return await ask_for(bench, "150")


async def ask_for(bench: Bench, amount: str) -> tuple[str, Json]:
    ts = await bench.asked(f"@Threadline raise the daily budget of Brand Search to {amount}", user="@ben")
    await bench.answer(ts, count=2)
    await bench.idle()
    return ts, await card(bench, ts)


async def card(bench: Bench, ts: str) -> Json:
    [found] = [
        each
        for each in await bench.replies(ts)
        if each["metadata"]["event_payload"]["delivery_id"].startswith("approval:")
    ]
    return found


def approval_id(card: Json) -> str:
    return str(card["metadata"]["event_payload"]["delivery_id"]).removeprefix("approval:")


def clickable(card: Json) -> bool:
    return any(block["type"] == "actions" for block in card["blocks"])


async def changes(bench: Bench, tenant: str = NORTHWIND) -> list[tuple[str, str]]:
    """The budgets that were set."""
    rows = await bench.service.store.read(Select(CAMPAIGN_CHANGES, {"tenant": tenant}))
    return [(row["field"], row["new"]) for row in rows]


async def told(bench: Bench, ts: str, user: str) -> list[str]:
    """What only `user` sees in the thread."""
    seen = await bench.people.messages("#campaigns", thread_ts=ts, reader=user)
    return [each["text"] for each in seen if each["ephemeral"]]


async def state(bench: Bench, card: Json) -> str:
    [row] = await bench.service.store.read(Select(APPROVALS, {"tenant": NORTHWIND, "id": approval_id(card)}))
    return str(row["state"])


def make_admin(bench: Bench, user_id: str, *, admin: bool = True) -> None:
    users = bench.emulator.slack.workspaces[NORTHWIND].users
    users[user_id] = replace(users[user_id], is_admin=admin)


@BOTH
async def test_an_approved_call_runs_exactly_as_shown_and_the_card_says_who(bench: Bench) -> None:
    ts, shown = await ask(bench)
    assert clickable(shown)
    assert await changes(bench) == []
    await bench.people.click("#campaigns", shown["ts"], APPROVE, "@ada")
    answer = await bench.answer(ts, count=3)
    await bench.idle()
    assert "€150.00" in answer["plain"]
    assert await changes(bench) == [("daily_budget_micros", "150000000")]
    settled = await card(bench, ts)
    assert "Approved by @Ada Keller" in settled["plain"]
    assert "€120.00" in settled["plain"]
    assert not clickable(settled)


async def test_who_does_not_administer_the_workspace_is_told_so_alone_and_nothing_is_decided(bench: Bench) -> None:
    ts, shown = await ask(bench)
    await bench.people.click("#campaigns", shown["ts"], APPROVE, "@chloe")
    assert await told(bench, ts, "@chloe") == [NOT_YOURS]
    assert await told(bench, ts, "@ada") == []
    assert await state(bench, shown) == "pending"
    assert clickable(await card(bench, ts))
    await bench.people.click("#campaigns", shown["ts"], APPROVE, "@ada")
    await bench.answer(ts, count=3)
    assert len(await changes(bench)) == 1


async def test_rights_are_looked_at_when_somebody_clicks_and_not_remembered(bench: Bench) -> None:
    ts, shown = await ask(bench)
    make_admin(bench, "U0BEN")
    assert await bench.service.people.is_admin(NORTHWIND, "U0BEN")
    make_admin(bench, "U0BEN", admin=False)
    await bench.people.click("#campaigns", shown["ts"], APPROVE, "@ben")
    assert await told(bench, ts, "@ben") == [NOT_YOURS]


async def test_when_slack_does_not_say_who_somebody_is_nothing_is_decided(bench: Bench) -> None:
    ts, shown = await ask(bench)
    await bench.people.fault("users.info", "http_500", times=1)
    await bench.people.click("#campaigns", shown["ts"], APPROVE, "@ada")
    assert await told(bench, ts, "@ada") == [NOT_CHECKED]
    assert await state(bench, shown) == "pending"
    await bench.people.click("#campaigns", shown["ts"], APPROVE, "@ada")
    await bench.answer(ts, count=3)
    assert len(await changes(bench)) == 1


@BOTH
async def test_a_double_click_approves_once(bench: Bench) -> None:
    ts, shown = await ask(bench)
    clicks = await asyncio.gather(*(bench.people.click("#campaigns", shown["ts"], APPROVE, "@ada") for _ in range(5)))
    assert all(click["ok"] for click in clicks)
    await bench.answer(ts, count=3)
    await bench.idle()
    assert len(await changes(bench)) == 1
    assert await told(bench, ts, "@ada") == ["This was already approved by <@U0ADA>."] * 4
    assert len(await bench.replies(ts)) == 3


@BOTH
async def test_of_two_people_who_click_at_once_one_decides_and_the_other_is_told(bench: Bench) -> None:
    make_admin(bench, "U0CHLOE")
    ts, shown = await ask(bench)
    await asyncio.gather(
        bench.people.click("#campaigns", shown["ts"], APPROVE, "@ada"),
        bench.people.click("#campaigns", shown["ts"], DENY, "@chloe"),
    )
    await bench.answer(ts, count=3)
    await bench.idle()
    approved = await state(bench, shown) == "approved"
    assert len(await changes(bench)) == (1 if approved else 0)
    winner, loser = ("U0ADA", "@chloe") if approved else ("U0CHLOE", "@ada")
    assert await told(bench, ts, loser) == [f"This was already {'approved' if approved else 'denied'} by <@{winner}>."]
    settled = await card(bench, ts)
    assert ("Approved by @Ada" if approved else "Denied by @Chloe") in settled["plain"]


async def test_a_card_that_slack_refuses_is_shown_smaller_and_can_still_be_decided(bench: Bench) -> None:
    await bench.people.fault("chat.postMessage", "error", error="invalid_blocks")
    ts, shown = await ask(bench)
    assert clickable(shown)
    assert "from €120.00 to €150.00" in shown["plain"]
    await bench.people.click("#campaigns", shown["ts"], APPROVE, "@ada")
    await bench.answer(ts, count=3)
    await bench.idle()
    assert await changes(bench) == [("daily_budget_micros", "150000000")]


async def test_an_approved_change_that_is_above_the_cap_by_then_is_not_done_and_the_card_says_so(bench: Bench) -> None:
    ts, shown = await ask(bench)
    await PreferenceBook(bench.service.store).change(NORTHWIND, Preferences(spend_cap_micros=1_000_000), by="U0ADA")
    await bench.people.click("#campaigns", shown["ts"], APPROVE, "@ada")
    answer = await bench.answer(ts, count=3)
    await bench.idle()
    assert "above the cap" in answer["plain"]
    assert await changes(bench) == []
    assert "It was not done" in (await card(bench, ts))["plain"]


async def test_a_denial_changes_nothing_and_the_agent_says_so(bench: Bench) -> None:
    ts, shown = await ask(bench)
    await bench.people.click("#campaigns", shown["ts"], DENY, "@ada")
    answer = await bench.answer(ts, count=3)
    await bench.idle()
    assert "denied" in answer["plain"].lower()
    assert await changes(bench) == []
    settled = await card(bench, ts)
    assert "Denied by @Ada Keller" in settled["plain"]
    assert not clickable(settled)
    await bench.click(approval_id(shown), user="U0ADA")
    await bench.idle()
    assert await changes(bench) == []


async def test_what_nobody_decided_expires_and_a_late_click_is_told(bench: Bench) -> None:
    ts, shown = await ask(bench)
    await bench.people.advance_clock(DAY_S + 60)
    answer = await bench.answer(ts, count=3)
    await bench.idle()
    assert "expired" in answer["plain"].lower()
    settled = await card(bench, ts)
    assert "Expired" in settled["plain"]
    assert not clickable(settled)
    await late(bench, shown)
    assert await changes(bench) == []


async def late(bench: Bench, shown: Json) -> None:
    """A click on the buttons that a slow client still shows."""
    message = bench.emulator.slack.timeline.find("C0CAMPAIGNS", shown["ts"])
    assert message is not None
    message.blocks = shown["blocks"]
    before = await told(bench, shown["thread_ts"], "@ada")
    await bench.people.click("#campaigns", shown["ts"], APPROVE, "@ada")
    after = await told(bench, shown["thread_ts"], "@ada")
    assert after[len(before) :] == ["This approval has expired. Nothing was changed; ask again if it is still wanted."]
    await bench.idle()


async def test_a_click_after_the_time_counts_as_late_also_before_any_clock_has_swept(bench: Bench) -> None:
    _, shown = await ask(bench)
    clock = bench.service.engine.clock
    assert clock is not None
    await clock.stop()
    start = await bench.service.store.now()
    await bench.people.advance_clock(DAY_S + 60)

    async def moved() -> bool:
        return (await bench.service.store.now() - start).total_seconds() > DAY_S

    await until(moved, "the store's clock to follow")
    await late(bench, shown)
    assert await state(bench, shown) == "pending"
    assert await changes(bench) == []


@BOTH
async def test_an_approval_of_another_workspace_is_not_known(bench: Bench) -> None:
    await bench.install()
    _, shown = await ask(bench)
    page = await bench.click(approval_id(shown), user="U0DANA", team=HARBOR)
    assert page.status == 200
    await bench.idle(HARBOR)
    assert await state(bench, shown) == "pending"
    assert await changes(bench) == await changes(bench, HARBOR) == []


async def test_an_approval_that_does_not_exist_is_told(bench: Bench) -> None:
    ts, shown = await ask(bench)
    await bench.people.click("#campaigns", shown["ts"], APPROVE, "@ada", value="made-up")
    assert await told(bench, ts, "@ada") == [UNKNOWN]


async def test_a_card_that_could_not_be_settled_tells_the_truth_at_the_next_click(bench: Bench) -> None:
    ts, shown = await ask(bench)
    await bench.people.fault("chat.update", "error", times=2, error="cant_update_message")
    await bench.people.click("#campaigns", shown["ts"], APPROVE, "@ada")
    await bench.answer(ts, count=3)
    await bench.idle()
    assert clickable(await card(bench, ts)), "Slack refused when the card was to be settled"
    await bench.people.click("#campaigns", shown["ts"], APPROVE, "@ada")
    assert "Approved by @Ada Keller" in (await card(bench, ts))["plain"]
    assert len(await changes(bench)) == 1


async def test_a_click_stands_when_its_clicker_can_not_be_answered(bench: Bench) -> None:
    """Without a `response_url`, or with one that fails, the click is acknowledged all the same."""
    _, shown = await ask(bench)
    assert (await bench.click(approval_id(shown), user="U0BEN")).status == 200
    assert (await bench.click(approval_id(shown), user="U0ADA", action=DENY)).status == 200
    assert await state(bench, shown) == "denied"


@BOTH
async def test_a_denial_with_a_reason_tells_it_on_the_card_and_to_the_agent(bench: Bench) -> None:
    ts, shown = await ask(bench)
    await bench.people.click("#campaigns", shown["ts"], DENY_WHY, "@ada")
    [view] = (await bench.people.views("@ada"))["views"]
    assert "from €120.00 to €150.00" in str(view["blocks"])
    assert await state(bench, shown) == "pending"
    await bench.people.submit_view("@ada", view["id"], {"reason": {"value": "not before <!channel> December"}})
    answer = await bench.answer(ts, count=3)
    await bench.idle()
    assert "denied" in answer["plain"].lower()
    assert await changes(bench) == []
    settled = await card(bench, ts)
    assert "Denied by @Ada Keller: not before" in settled["plain"]
    assert "<!channel>" not in json.dumps(settled["blocks"])
    [row] = await bench.service.store.read(Select(APPROVALS, {"tenant": NORTHWIND, "id": approval_id(shown)}))
    assert row["reason"] == "not before <!channel> December"


async def test_a_reason_that_comes_too_late_is_told_in_the_dialog(bench: Bench) -> None:
    ts, shown = await ask(bench)
    make_admin(bench, "U0CHLOE")
    await bench.people.click("#campaigns", shown["ts"], DENY_WHY, "@chloe")
    [view] = (await bench.people.views("@chloe"))["views"]
    await bench.people.click("#campaigns", shown["ts"], APPROVE, "@ada")
    await bench.answer(ts, count=3)
    await bench.people.submit_view("@chloe", view["id"], {})
    [told_view] = (await bench.people.views("@chloe"))["views"]
    assert "already approved by <@U0ADA>" in str(told_view["blocks"])
    await bench.idle()
    assert len(await changes(bench)) == 1


async def test_a_reason_is_no_way_round_the_question_who_may_decide(bench: Bench) -> None:
    _, shown = await ask(bench)
    await bench.people.click("#campaigns", shown["ts"], DENY_WHY, "@ben")
    assert (await bench.people.views("@ben"))["views"] == []
    await bench.people.click("#campaigns", shown["ts"], DENY_WHY, "@ada")
    [view] = (await bench.people.views("@ada"))["views"]
    make_admin(bench, "U0ADA", admin=False)
    await bench.people.submit_view("@ada", view["id"], {})
    assert NOT_YOURS in str((await bench.people.views("@ada"))["views"])
    assert await state(bench, shown) == "pending"


async def test_a_dialog_that_slack_does_not_open_is_told(bench: Bench) -> None:
    ts, shown = await ask(bench)
    await bench.people.fault("views.open", "error", error="expired_trigger_id")
    await bench.people.click("#campaigns", shown["ts"], DENY_WHY, "@ada")
    assert await told(bench, ts, "@ada") == [NOT_OPENED]
    assert await state(bench, shown) == "pending"


async def test_a_named_approver_may_decide_and_is_named_on_the_card(bench: Bench) -> None:
    await PreferenceBook(bench.service.store).change(NORTHWIND, Preferences(approvers=("U0CHLOE",)), by="U0ADA")
    ts, shown = await ask(bench)
    assert "Decided by an admin of the workspace, or by @Chloe" in shown["plain"]
    await bench.people.click("#campaigns", shown["ts"], APPROVE, "@chloe")
    await bench.answer(ts, count=3)
    await bench.idle()
    assert len(await changes(bench)) == 1
    await PreferenceBook(bench.service.store).change(NORTHWIND, Preferences(version=1), by="U0ADA")
    ts, shown = await ask_for(bench, "140")
    await bench.people.click("#campaigns", shown["ts"], APPROVE, "@chloe")
    assert await told(bench, ts, "@chloe") == [NOT_YOURS]


@pytest.mark.parametrize(("amount", "alone"), [("130", True), ("150", False)])
async def test_above_the_limit_nobody_approves_alone_what_they_asked_for(
    bench: Bench, amount: str, alone: bool
) -> None:
    await PreferenceBook(bench.service.store).change(NORTHWIND, Preferences(alone_limit_micros=10_000_000), by="U0ADA")
    make_admin(bench, "U0BEN")
    ts, shown = await ask_for(bench, amount)
    await bench.people.click("#campaigns", shown["ts"], APPROVE, "@ben")
    if not alone:
        assert await told(bench, ts, "@ben") == [NOT_ALONE]
        assert await state(bench, shown) == "pending"
        await bench.people.click("#campaigns", shown["ts"], APPROVE, "@ada")
    await bench.answer(ts, count=3)
    await bench.idle()
    assert len(await changes(bench)) == 1


async def test_people_talk_on_while_an_approval_waits(bench: Bench) -> None:
    ts, shown = await ask(bench)
    await bench.people.post_message("#campaigns", "@ben", "and how did Spring Sale do last week?", thread_ts=ts)
    answer = await bench.answer(ts, count=3)
    assert "Spring Sale" in answer["plain"]
    assert await bench.idle()
    await bench.people.click("#campaigns", shown["ts"], APPROVE, "@ada")
    await bench.answer(ts, count=4)
    assert len(await changes(bench)) == 1
    assert json.dumps(await changes(bench)) == '[["daily_budget_micros", "150000000"]]'


@BOTH
@pytest.mark.parametrize("away", [1, 2, 4])
async def test_a_card_tells_the_truth_also_when_slack_took_no_edits_for_a_while(bench: Bench, away: int) -> None:
    """Tried when the decision is taken in, before the model is called and with the answer, which waits for it."""
    ts, shown = await ask(bench)
    await bench.people.fault("chat.update", "http_500", times=away)
    await bench.people.click("#campaigns", shown["ts"], APPROVE, "@ada")
    await bench.answer(ts, count=3)
    await bench.idle()
    settled = await card(bench, ts)
    assert not clickable(settled)
    assert OUTCOMES["done"] in settled["plain"]
    assert await changes(bench) == [("daily_budget_micros", "150000000")]
    assert len(await bench.replies(ts)) == 3


async def test_a_card_that_slack_took_only_without_its_facts_is_settled_so_too(bench: Bench) -> None:
    await bench.people.fault("chat.postMessage", "error", error="invalid_blocks")
    ts, shown = await ask(bench)
    assert clickable(shown)
    await bench.people.fault("chat.update", "error", error="invalid_blocks", times=2)
    await bench.people.click("#campaigns", shown["ts"], DENY, "@ada")
    await bench.answer(ts, count=3)
    await bench.idle()
    settled = await card(bench, ts)
    assert not clickable(settled)
    assert "Denied by" in str(settled["blocks"]) or "Denied" in settled["plain"]


async def test_a_card_whose_turn_failed_while_it_asked_is_withdrawn_where_people_see_it(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    post = bench.service.channel.ask

    async def ask_and_break(thread: Thread, card: Card, *, notes: Notes) -> tuple[Place, ...]:
        await post(thread, card, notes=notes)
        raise LookupError("a bug right after the card was posted")

    monkeypatch.setattr(bench.service.channel, "ask", ask_and_break)
    ts = await bench.asked("@Threadline raise the daily budget of Brand Search to 150", user="@ben")
    await bench.answer(ts, count=2)
    await bench.idle()
    settled = await card(bench, ts)
    assert not clickable(settled)
    assert "Expired" in settled["plain"]
