"""Case 34: a database that takes longer than Slack's three seconds, or does not answer at all, under commands, clicks and dialogs."""

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import asyncpg
import pytest

from agent.feedback import feedback_since
from agent.preferences import PreferenceBook, Preferences
from bot import acknowledgements, clients, dialogs
from bot.acknowledgements import FAILED, LATER
from bot.dialogs import MOMENT
from bot.settings_dialog import SETTINGS
from tests.bot.bench import NORTHWIND, Bench, Json
from tests.waiting import until
from workflows.storage import StoreUnavailableError

TABLES = "select tablename from pg_tables where schemaname = 'public'"


@pytest.fixture(params=["http", "socket"])
async def bench(
    request: pytest.FixtureRequest, tmp_path: Path, engine_database: str, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Bench]:
    monkeypatch.setattr(clients, "SOON_S", 0.05)
    monkeypatch.setattr(dialogs, "READY_S", 0.15)
    monkeypatch.setattr(acknowledgements, "ACK_S", 0.4)
    token = "xapp-1-of-the-tests" if request.param == "socket" else ""
    async with Bench(tmp_path, {"DATABASE_URL": engine_database}, app_token=token) as bench:
        await bench.people.command("#campaigns", "@ada", "/campaigns")  # whose workspace it is was asked once
        yield bench


@asynccontextmanager
async def standstill(bench: Bench) -> AsyncIterator[None]:
    """While inside, whatever the product asks its database waits, and is done afterwards."""
    connection = await asyncpg.connect(bench.service.settings.database_url)
    try:
        await connection.execute("set deadlock_timeout = '20ms'")
        names = ", ".join(f'"{row["tablename"]}"' for row in await connection.fetch(TABLES))
        while True:
            held = connection.transaction()
            await held.start()
            try:
                await connection.execute(f"lock table {names} in access exclusive mode")
                break
            except asyncpg.DeadlockDetectedError:  # with a worker that looks for work
                await held.rollback()
        yield
        await held.rollback()
    finally:
        await connection.close()


async def said_to(bench: Bench, user: str, channel: str = "#campaigns") -> list[str]:
    messages = await bench.people.messages(channel, reader=user)
    return [each["plain"] for each in messages if each["is_bot"] and not each["metadata"]]


async def told(bench: Bench, user: str, containing: str, channel: str = "#campaigns") -> None:
    async def there() -> bool:
        return any(containing in each for each in await said_to(bench, user, channel))

    await until(there, f"{containing!r} told to {user}")


async def view(bench: Bench, user: str, containing: str) -> Json:
    """The person's dialog, once it contains that."""

    async def there() -> bool:
        return any(containing in str(each) for each in (await bench.people.views(user))["views"])

    await until(there, f"a dialog of {user} with {containing!r}")
    [shown] = (await bench.people.views(user))["views"]
    return dict(shown)


@pytest.mark.parametrize(
    "command, text, end",
    [
        ("/report", "last week", "Making the report on all campaigns"),
        ("/summaries", "every monday 9:00", "I will post a campaign summary here"),
        ("/threadline", "status", "I am not working on anything here"),
    ],
)
async def test_a_command_is_acknowledged_in_time_and_its_end_is_told(
    bench: Bench, command: str, text: str, end: str
) -> None:
    async with standstill(bench):
        answer = await bench.people.command("#campaigns", "@ada", command, text)
        assert (answer["problem"], answer["response"]["text"]) == ("", LATER)
    await told(bench, "@ada", end)
    assert not any(end in each for each in await said_to(bench, "@ben"))
    await bench.idle()


async def test_a_click_is_acknowledged_in_time_and_decides_once(bench: Bench) -> None:
    ts = await bench.asked("@Threadline pause Brand Search")
    await bench.answer(ts, count=2)
    await bench.idle()
    [card] = [each for each in await bench.replies(ts) if "Approve" in each["plain"]]
    async with standstill(bench):
        for _ in range(2):
            answer = await bench.people.click("#campaigns", card["ts"], "approval_approve", "@ada")
            assert (answer["ok"], answer["problem"]) == (True, "")

    async def paused() -> bool:
        return await bench.status_of("Brand Search") == "paused"

    await until(paused, "the approved change")
    await bench.idle()
    said = [each["plain"] for each in await bench.people.messages("#campaigns", thread_ts=ts, reader="@ada")]
    assert sum("already approved" in each for each in said) == 1
    assert sum(LATER[:40] in each for each in said) == 2


async def test_deny_and_say_why_opens_before_its_trigger_expires(bench: Bench) -> None:
    ts = await bench.asked("@Threadline pause Brand Search")
    await bench.answer(ts, count=2)
    await bench.idle()
    [card] = [each for each in await bench.replies(ts) if "Approve" in each["plain"]]
    async with standstill(bench):
        clicking = asyncio.create_task(bench.people.click("#campaigns", card["ts"], "approval_deny_why", "@ada"))
        await view(bench, "@ada", MOMENT)
        await bench.people.advance_clock(4)
        assert (await clicking)["ok"]
    asked = await view(bench, "@ada", "Why not?")
    async with standstill(bench):
        await bench.people.submit_view("@ada", asked["id"], {"reason": {"value": "not before Monday"}})
        await view(bench, "@ada", LATER[:40])
    await view(bench, "@ada", "Done.")

    async def explained() -> bool:
        return any("not before Monday" in each["plain"] for each in await bench.replies(ts))

    await until(explained, "the reason on the card")
    await bench.idle()
    assert await bench.status_of("Brand Search") == "active"


async def test_settings_open_before_their_trigger_expires_and_are_saved_or_given_back(bench: Bench) -> None:
    async with standstill(bench):
        await bench.people.command("#campaigns", "@ada", "/threadline", "settings")
        await view(bench, "@ada", MOMENT)
        await bench.people.advance_clock(4)
    form = await view(bench, "@ada", "What should the agent know?")
    wrong: dict[str, dict[str, str | list[str]]] = {
        "guidance": {"value": "Say € first."},
        "spend_cap": {"value": "a lot"},
        "approvers": {"value": ["U0BEN"]},
    }
    async with standstill(bench):
        await bench.people.submit_view("@ada", form["id"], wrong)
        await view(bench, "@ada", LATER[:40])
    again = await view(bench, "@ada", "Say € first.")
    assert again["callback_id"] == SETTINGS
    assert "a lot" in str(again["blocks"][0])
    assert await PreferenceBook(bench.service.store).of(NORTHWIND) == Preferences()
    await bench.people.submit_view("@ada", again["id"], {"spend_cap": {"value": "1500"}})
    assert (await bench.people.views("@ada"))["views"] == []
    now = await PreferenceBook(bench.service.store).of(NORTHWIND)
    assert (now.guidance, now.approvers, now.spend_cap_micros) == ("Say € first.", ("U0BEN",), 1_500_000_000)


async def test_feedback_is_kept_and_asked_about(bench: Bench) -> None:
    ts = await bench.asked("@Threadline which campaigns do we have?")
    answer = await bench.answer(ts)
    (run,) = await bench.idle()
    (block,) = [block for block in answer["blocks"] if block["type"] == "context_actions"]
    bad = block["elements"][0]["negative_button"]["value"]
    async with standstill(bench):
        clicking = asyncio.create_task(
            bench.people.click("#campaigns", answer["ts"], "answer_feedback", "@ben", value=bad)
        )
        await view(bench, "@ben", MOMENT)
        assert (await clicking)["ok"]
    await view(bench, "@ben", "What should it have been?")
    [kept] = await feedback_since(bench.service.store, NORTHWIND, run.created_at)
    assert (kept.user_id, kept.rating) == ("U0BEN", "bad")


async def test_what_could_not_be_done_is_said_and_a_form_is_given_back(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The database does not answer at all, first within Slack's time and then beyond ours."""
    await bench.people.command("#campaigns", "@ada", "/threadline", "settings")
    form = await view(bench, "@ada", "What should the agent know?")
    monkeypatch.setattr(acknowledgements, "BEHIND_S", 0.1)
    async with standstill(bench):
        answer = await bench.people.command("#campaigns", "@ada", "/report")
        assert (answer["problem"], answer["response"]["text"]) == ("", LATER)
        await told(bench, "@ada", FAILED[:40])
        await bench.people.submit_view("@ada", form["id"], {"guidance": {"value": "Say € first."}})
        assert "Say € first." in str(await view(bench, "@ada", FAILED))
    assert await PreferenceBook(bench.service.store).of(NORTHWIND) == Preferences()
    assert not any(each.workflow == "report" for each in await bench.service.engine.runs(tenant=NORTHWIND))


async def test_what_storage_refuses_at_once_is_said_in_the_answer(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    await bench.people.command("#campaigns", "@ada", "/threadline", "settings")
    form = await view(bench, "@ada", "What should the agent know?")

    async def away(*args: object, **options: object) -> None:
        raise StoreUnavailableError("away")

    with monkeypatch.context() as gone:
        for operation in ("read", "write"):
            gone.setattr(bench.service.store, operation, away)
        answer = await bench.people.command("#campaigns", "@ada", "/threadline", "usage")
        assert (answer["problem"], answer["response"]["text"]) == ("", FAILED)
        await bench.people.submit_view("@ada", form["id"], {"guidance": {"value": "Say € first."}})
        assert "Say € first." in str(await view(bench, "@ada", FAILED))


async def test_a_process_that_leaves_finishes_what_goes_on_behind_or_says_that_it_did_not(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(acknowledgements, "LEAVE_S", 0.1)
    async with standstill(bench):
        answer = await bench.people.command("#campaigns", "@ada", "/report")
        assert answer["response"]["text"] == LATER
        await bench.service.dispatch.close()
        await told(bench, "@ada", FAILED[:40])
        answer = await bench.people.command("#campaigns", "@ada", "/report")
        assert re.match("I have too much in hand", answer["response"]["text"])
