"""Approvals that are asked for in a direct message, where nobody sees the card who may decide it: it is sent to those who may."""

import json
from dataclasses import replace

import pytest

from agent.approvals import SENT_TO, find, waiting
from agent.channel import Card, Notes, Place
from agent.messages import MESSAGES
from agent.preferences import PreferenceBook, Preferences
from agent.thread import Thread
from bot.render.cards import APPROVE, DENY, NOBODY
from tests.bot.bench import BOT, NORTHWIND, Bench, Json, envelope
from tests.bot.test_approvals import changes, clickable, make_admin
from tests.waiting import until
from workflows.storage import Select

WISH = "raise the daily budget of Brand Search to 150"


async def ask(bench: Bench, user: str = "ben") -> tuple[str, Json]:
    """Somebody wants more money for a campaign, in a direct message; returns their thread and its card."""
    ts = await bench.people.post_message(f"dm:@{user}", f"@{user}", WISH)
    await bench.answer(ts, f"dm:@{user}", count=2)
    await bench.idle()
    [card] = [each for each in await bench.replies(ts, f"dm:@{user}") if _is_card(each)]
    return ts, card


async def copies(bench: Bench, user: str) -> list[Json]:
    """The cards somebody was sent."""
    return [each for each in await bench.people.messages(f"dm:@{user}") if _is_card(each)]


def _is_card(message: Json) -> bool:
    payload = (message["metadata"] or {}).get("event_payload") or {}
    return str(payload.get("delivery_id")).startswith("approval:")


async def settled(bench: Bench, *cards: tuple[str, str]) -> list[str]:
    """What cards say, in words, once none can be clicked."""

    async def done() -> bool:
        return not any([clickable(await _message(bench, *each)) for each in cards])

    await until(done, "every card to tell how it was decided")
    return [(await _message(bench, *each))["plain"] for each in cards]


async def _message(bench: Bench, user: str, ts: str) -> Json:
    return next(each for each in await bench.people.messages(f"dm:@{user}", thread_ts=ts) if each["ts"] == ts)


async def prefer(bench: Bench, **wanted: object) -> None:
    await PreferenceBook(bench.service.store).change(NORTHWIND, Preferences.model_validate(wanted), by="U0ADA")


BOTH = pytest.mark.parametrize("storage", ["sqlite", "servers"], indirect=True)


@BOTH
async def test_an_admin_is_sent_the_card_and_decides_and_all_its_copies_tell_the_same(bench: Bench) -> None:
    make_admin(bench, "U0CHLOE")
    ts, card = await ask(bench)
    assert "I have sent it to @Ada Keller, @Chloe Tanaka" in card["plain"]
    [adas], [chloes] = await copies(bench, "ada"), await copies(bench, "chloe")
    assert "Asked by @Ben Carter" in adas["plain"]
    assert "I have sent it" not in adas["plain"]
    await bench.people.click("dm:@ada", adas["ts"], APPROVE, "@ada")
    await bench.answer(ts, "dm:@ben", count=3)
    for words in await settled(bench, ("ada", adas["ts"]), ("chloe", chloes["ts"])):
        assert "Approved by @Ada Keller · Done." in words
    [card] = [each for each in await bench.replies(ts, "dm:@ben") if _is_card(each)]
    assert "Approved by @Ada Keller · Done." in card["plain"]
    assert len(await changes(bench)) == 1
    await bench.click(card["metadata"]["event_payload"]["delivery_id"].removeprefix("approval:"), user="U0CHLOE")
    await bench.idle()
    assert len(await changes(bench)) == 1


async def test_named_approvers_are_sent_it_and_others_are_not(bench: Bench) -> None:
    await prefer(bench, approvers=["U0CHLOE"])
    await ask(bench)
    [chloes] = await copies(bench, "chloe")
    assert await copies(bench, "ada") == []
    await bench.people.click("dm:@chloe", chloes["ts"], DENY, "@chloe")
    [words] = await settled(bench, ("chloe", chloes["ts"]))
    assert "Denied by @Chloe Tanaka" in words
    assert await changes(bench) == []


async def test_whoever_may_decide_it_alone_asks_nobody_else(bench: Bench) -> None:
    make_admin(bench, "U0CHLOE")
    ts, card = await ask(bench, "ada")
    assert "sent it to" not in card["plain"]
    assert await copies(bench, "chloe") == []
    await bench.people.click("dm:@ada", card["ts"], APPROVE, "@ada")
    await bench.answer(ts, "dm:@ada", count=3)
    assert len(await changes(bench)) == 1


async def test_an_admin_who_may_not_approve_so_much_alone_asks_another(bench: Bench) -> None:
    await prefer(bench, alone_limit_micros=1)
    make_admin(bench, "U0CHLOE")
    _, card = await ask(bench, "ada")
    assert "I have sent it to @Chloe Tanaka" in card["plain"]
    assert len(await copies(bench, "chloe")) == 1


async def test_where_nobody_is_known_who_may_decide_the_card_says_so(bench: Bench) -> None:
    make_admin(bench, "U0ADA", admin=False)
    _, card = await ask(bench)
    assert NOBODY.partition(".")[0] in card["plain"]


async def test_of_many_admins_a_few_are_asked(bench: Bench) -> None:
    users = bench.emulator.slack.workspaces[NORTHWIND].users
    for number in range(9):
        users[f"U0MORE{number}"] = replace(
            users["U0CHLOE"], id=f"U0MORE{number}", handle=f"more{number}", is_admin=True
        )
    _, card = await ask(bench)
    assert card["plain"].split("I have sent it to ")[1].count("@") == SENT_TO


@pytest.mark.parametrize("lost", range(1, 4))
async def test_each_is_sent_it_once_also_when_a_post_is_committed_and_its_reply_is_lost(
    bench: Bench, lost: int
) -> None:
    make_admin(bench, "U0CHLOE")
    await bench.people.fault("chat.postMessage", "reset_after_commit", times=lost)
    ts = await bench.people.post_message("dm:@ben", "@ben", WISH)

    async def asked() -> bool:
        await bench.time_passes(11)
        return len(await bench.replies(ts, "dm:@ben")) == 2

    await until(asked, "the card and the answer below it", deadline_s=30)
    assert [len(await copies(bench, user)) for user in ("ada", "chloe")] == [1, 1]
    assert len([each for each in await bench.replies(ts, "dm:@ben") if _is_card(each)]) == 1


async def test_one_who_can_t_be_written_to_keeps_nobody_from_being_asked(bench: Bench) -> None:
    make_admin(bench, "U0CHLOE")
    await bench.people.fault("conversations.open", "error", error="user_disabled", times=1)
    _, card = await ask(bench)
    assert [len(await copies(bench, user)) for user in ("ada", "chloe")] == [0, 1]
    assert card["plain"].split("I have sent it to ")[1].startswith("@Chloe Tanaka"), "it names nobody it did not reach"


async def test_a_card_that_reached_nobody_says_so_to_whoever_asked_and_to_the_model(bench: Bench) -> None:
    make_admin(bench, "U0CHLOE")
    await bench.people.fault("conversations.open", "error", error="user_not_found", times=2)
    _, card = await ask(bench)
    assert NOBODY.partition(".")[0] in card["plain"]
    assert clickable(card)
    [approval] = await waiting(bench.service.store, NORTHWIND)
    assert approval.sent_to == ()
    results = await bench.service.store.read(Select(MESSAGES, {"tenant": NORTHWIND}))
    assert '\\"sent_to\\":\\"nobody' in json.dumps([row["parts"] for row in results])


async def test_in_a_message_of_several_people_it_is_sent_to_who_may_decide(bench: Bench) -> None:
    """Its id looks like a channel's, and nobody else sees it either."""
    place = await bench.people.open_group("@ben", ["@chloe", "@threadline"])
    ts = await bench.people.post_message(place, "@ben", f"@Threadline {WISH}")
    await bench.answer(ts, place, count=2)
    await bench.idle()
    [adas] = await copies(bench, "ada")
    await bench.people.click("dm:@ada", adas["ts"], APPROVE, "@ada")
    await bench.answer(ts, place, count=3)
    assert len(await changes(bench)) == 1


async def test_a_mention_that_does_not_tell_of_several_people_is_overtaken_by_its_copy(bench: Bench) -> None:
    place = await bench.people.open_group("@ben", ["@chloe", "@threadline"])
    thread = Thread(tenant=NORTHWIND, channel=place, root="1796030000.000100")
    mention = {"type": "app_mention", "user": "U0BEN", "channel": place, "ts": thread.root, "text": f"<@{BOT}> thanks"}
    await bench.post_json(envelope(mention))
    assert not await bench.service.channel.private(thread)
    await bench.post_json(envelope({**mention, "type": "message", "channel_type": "mpim"}))
    assert await bench.service.channel.private(thread)


async def test_cards_of_a_turn_that_failed_while_it_asked_are_withdrawn_wherever_they_stand(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    post = bench.service.channel.ask

    async def ask_and_break(thread: Thread, card: Card, *, notes: Notes) -> tuple[Place, ...]:
        await post(thread, card, notes=notes)
        raise LookupError("a bug right after the cards were posted")

    monkeypatch.setattr(bench.service.channel, "ask", ask_and_break)
    ts = await bench.people.post_message("dm:@ben", "@ben", WISH)
    await bench.answer(ts, "dm:@ben", count=2)
    await bench.idle()
    [adas] = await copies(bench, "ada")
    assert "Expired" in (await settled(bench, ("ada", adas["ts"])))[0]


async def test_an_asking_cut_off_between_two_copies_sends_the_rest_when_it_goes_on(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its notes say what was sent; people who became admins meanwhile are not asked as well."""
    make_admin(bench, "U0CHLOE")
    directly = bench.service.channel._ask_directly
    broken: list[str] = []

    async def cut_off(tenant: str, user: str, number: int, card: Card, notes: Notes) -> Place:
        if number == 2 and not broken:
            broken.append(card.approval_id)
            make_admin(bench, "U0ADA", admin=False)
            raise ConnectionError("the network went away here")
        return await directly(tenant, user, number, card, notes)

    monkeypatch.setattr(bench.service.channel, "_ask_directly", cut_off)
    await ask(bench)
    assert [len(await copies(bench, user)) for user in ("ada", "chloe")] == [1, 1]
    approval = await find(bench.service.store, NORTHWIND, broken[0])
    assert approval is not None
    assert [place.channel[:1] for place in approval.places] == ["D", "D", "D"]
