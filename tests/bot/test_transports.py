"""Over HTTP and in Socket Mode the product does the same."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from bot.installs import INSTALLATIONS
from tests.bot.bench import HARBOR, NORTHWIND, Bench
from tests.waiting import until
from workflows.storage import Select, StoreUnavailableError

QUESTION = "how did Brand Search do last week?"


@pytest.fixture(params=["http", "socket"])
async def bench(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Bench]:
    token = "xapp-1-of-the-tests" if request.param == "socket" else ""
    async with Bench(tmp_path, {}, app_token=token) as bench:
        yield bench


async def test_a_mention_is_two_events_and_one_answer(bench: Bench) -> None:
    ts = await bench.asked(f"@Threadline {QUESTION}")
    assert "Brand Search" in (await bench.answer(ts))["plain"]
    deliveries = await bench.settled(ts=ts)
    assert {each["type"] for each in deliveries} == {"app_mention", "message"}
    assert all(len(each["attempts"]) == 1 and each["delivered"] for each in deliveries)
    assert len(await bench.idle()) == 1
    assert len(await bench.replies(ts)) == 1


async def test_a_direct_message_is_answered(bench: Bench) -> None:
    ts = await bench.asked(QUESTION, channel="dm:@ada")
    assert "Brand Search" in (await bench.answer(ts, "dm:@ada"))["plain"]


async def test_a_command_answers_at_once_to_whoever_typed_it(bench: Bench) -> None:
    answer = await bench.people.command("#campaigns", "@ada", "/summaries", "every monday 9:00")
    assert (answer["status"], answer["problem"]) == (200, "")
    assert "I will post a campaign summary here" in answer["response"]["text"]
    assert answer["response"]["response_type"] == "ephemeral"


async def test_a_click_is_authorised_and_decides_once(bench: Bench) -> None:
    ts = await bench.asked("@Threadline pause Brand Search")
    await bench.answer(ts)

    async def card() -> bool:
        return any("Approve" in each["plain"] for each in await bench.replies(ts))

    await until(card, "a card")
    [shown] = [each for each in await bench.replies(ts) if "Approve" in each["plain"]]
    refused = await bench.people.click("#campaigns", shown["ts"], "approval_approve", "@ben")
    assert refused["ok"]
    notes = await bench.people.messages("#campaigns", thread_ts=ts, reader="@ben")
    assert any("approvals are for the workspace's admins" in each["text"] for each in notes)
    assert (await bench.people.click("#campaigns", shown["ts"], "approval_approve", "@ada"))["ok"]

    async def paused() -> bool:
        return await bench.status_of("Brand Search") == "paused"

    await until(paused, "the campaign to be paused")


async def test_what_could_not_be_stored_is_not_acknowledged_and_comes_again(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine, left = bench.service.engine, 2
    signal = engine.signal_with_start

    async def away(*args: object, **options: object) -> object:
        nonlocal left
        if left:
            left -= 1
            raise StoreUnavailableError("away")
        return await signal(*args, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(engine, "signal_with_start", away)
    ts = await bench.asked(QUESTION, channel="dm:@ada")

    async def tried() -> bool:
        [delivery] = await bench.people.deliveries(ts=ts)
        return len(delivery["attempts"]) >= 2 and bool(delivery["attempts"][1]["reason"])

    await until(tried, "Slack's first retry, also without an answer")
    assert not any(await bench.service.engine.runs(tenant=NORTHWIND))
    await bench.people.advance_clock(61)
    assert "Brand Search" in (await bench.answer(ts, "dm:@ada"))["plain"]
    [delivery] = await bench.settled(ts=ts)
    assert [bool(each["reason"]) for each in delivery["attempts"]] == [True, True, False]
    assert [each["retry_num"] for each in delivery["attempts"]] == [0, 1, 2]


async def test_a_copy_of_an_event_changes_nothing(bench: Bench) -> None:
    ts = await bench.asked(QUESTION, channel="dm:@ada")
    await bench.answer(ts, "dm:@ada")
    [delivery] = await bench.settled(ts=ts)
    event = {
        "type": "message",
        "channel": delivery["channel"],
        "channel_type": "im",
        "user": "U0ADA",
        "text": QUESTION,
        "ts": ts,
    }
    await bench.people.send_event(event, event_id=delivery["event_id"], copies=4)
    assert all(each["delivered"] for each in await bench.settled())
    assert len(await bench.idle()) == 1
    assert len(await bench.replies(ts, "dm:@ada")) == 1


async def test_an_install_and_an_uninstall_take_effect(bench: Bench) -> None:
    assert (await bench.install()).status == 200
    ts = await bench.people.post_message("#ads", "@dana", f"@Threadline {QUESTION}")
    await bench.answer(ts, "#ads")
    await bench.people.uninstall(HARBOR)
    await bench.settled(type="app_uninstalled")
    [row] = await bench.service.store.read(Select(INSTALLATIONS, {"tenant": HARBOR}))
    assert row["removed_at"] is not None
