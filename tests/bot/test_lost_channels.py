"""Case 35: a channel that is gone when a summary is due ends its schedule and is told to its owner, once."""

import pytest

from agent.reports import ReportRequest
from agent.stops import Stopper
from agent.thread import Thread
from bot.emulator.workspace import Channel
from bot.render.refusals import DENIED, LOST
from tests.bot.bench import BOT, NORTHWIND, Bench
from tests.bot.listening import Listener
from tests.waiting import until
from workflows import Schedule
from workflows.storage.base import Firing

DAY_S = 24 * 3600


def channel_of(bench: Bench, name: str = "campaigns") -> Channel:
    found = bench.emulator.slack.workspaces[NORTHWIND].channel_named(name)
    assert found is not None
    return found


async def entry(bench: Bench, channel: str = "C0CAMPAIGNS") -> Schedule:
    found = await bench.service.desk.scheduled(tenant=NORTHWIND, channel=channel)
    assert found is not None
    return found


async def told(bench: Bench, user: str = "@ada") -> list[str]:
    return [each["plain"] for each in await bench.people.messages(f"dm:{user}") if "could not post" in each["plain"]]


async def disabled(bench: Bench) -> None:
    async def stopped() -> bool:
        return (await entry(bench)).paused and bool(await told(bench))

    await until(stopped, "the schedule to be disabled and its owner to be told")
    await bench.idle()


def archived(bench: Bench) -> None:
    channel_of(bench).is_archived = True


def removed(bench: Bench) -> None:
    channel_of(bench).members.remove(BOT)


def deleted(bench: Bench) -> None:
    del bench.emulator.slack.workspaces[NORTHWIND].channels["C0CAMPAIGNS"]


@pytest.mark.parametrize(
    "lose, why", [(archived, "it is archived"), (removed, "not a member of it"), (deleted, "it is deleted")]
)
@pytest.mark.parametrize("storage", ["sqlite", "servers"], indirect=True)
async def test_the_schedule_ends_and_its_owner_is_told_once(bench: Bench, lose: object, why: str) -> None:
    await bench.people.command("#campaigns", "@ada", "/summaries", "daily at 9:00")
    await bench.people.command("#general", "@ada", "/summaries", "daily at 9:00")
    assert callable(lose)
    lose(bench)
    await bench.time_passes(DAY_S)
    await disabled(bench)
    for _ in range(2):
        await bench.time_passes(DAY_S)
        await bench.idle()
    [words] = await told(bench)
    assert why in words
    assert "/invite" in words
    assert await told(bench, "@ben") == []
    assert not (await entry(bench, "C0GENERAL")).paused, "other channels' summaries go on"
    assert why in str((await entry(bench)).paused_reason)


LOST_CODES = [
    "app_access_restricted",
    "messages_tab_disabled",
    "posting_to_channel_denied",
    "restricted_action",
    "restricted_action_read_only_channel",
    "team_access_not_granted",
    "team_not_found",
]


@pytest.mark.parametrize("code", LOST_CODES)
async def test_a_channel_where_the_app_may_not_post_is_lost_too(bench: Bench, code: str) -> None:
    await bench.people.command("#campaigns", "@ada", "/summaries", "daily at 9:00")
    await bench.people.fault(
        "chat.postMessage", "error", error=code, times=2
    )  # the summary, and the word of its failure
    await bench.time_passes(DAY_S)
    await disabled(bench)
    [words] = await told(bench)
    assert {**LOST, **DENIED}[code] in words


async def test_what_is_refused_for_no_known_reason_three_times_in_a_row_is_stopped_and_told(bench: Bench) -> None:
    """Once may be an accident; every week, somebody has to know."""
    await bench.people.command("#campaigns", "@ada", "/summaries", "daily at 9:00")
    store = bench.service.store

    async def refused(*, times: int) -> list[Firing]:
        """A day on which the summary, and the word of its failure, are refused; those firings so far whose outcome was refused."""
        await bench.people.fault("chat.postMessage", "error", error="a_word_nobody_knows", times=2)
        await bench.time_passes(DAY_S)

        async def failed() -> list[Firing]:
            firings = await store.firings(tenant=NORTHWIND, schedule="summary:C0CAMPAIGNS")
            return [each for each in firings if each.delivery == "failed"]

        async def there() -> bool:
            return len(await failed()) == times

        await until(there, f"{times} refused summaries")
        await bench.idle()
        return await failed()

    for times in (1, 2):
        assert "a_word_nobody_knows" in str((await refused(times=times))[0].delivery_detail)
    assert (await told(bench), (await entry(bench)).paused) == ([], False)
    await bench.time_passes(DAY_S)  # this one is posted: it begins anew

    async def posted() -> bool:
        return any("Weekly summary" in each["plain"] for each in await bench.people.messages("#campaigns"))

    await until(posted, "the summary")
    await bench.idle()
    for times in (3, 4):
        await refused(times=times)
    assert (await told(bench), (await entry(bench)).paused) == ([], False)
    await refused(times=5)
    await disabled(bench)
    [words] = await told(bench)
    assert "a_word_nobody_knows, 3 times in a row" in words


async def test_a_workspace_that_moves_into_an_organization_is_waited_for(bench: Bench) -> None:
    await bench.people.command("#campaigns", "@ada", "/summaries", "daily at 9:00")
    await bench.people.fault("chat.postMessage", "error", error="org_login_required", times=1)
    await bench.time_passes(DAY_S)

    async def posted() -> bool:
        return any("Weekly summary" in each["plain"] for each in await bench.people.messages("#campaigns"))

    await until(posted, "the summary")


async def test_it_is_put_right_by_an_invitation_and_the_command(bench: Bench) -> None:
    await bench.people.command("#campaigns", "@ada", "/summaries", "daily at 9:00")
    removed(bench)
    await bench.time_passes(DAY_S)
    await disabled(bench)
    answer = await bench.people.command("#campaigns", "@ada", "/summaries")
    assert "They are stopped: I am not a member of it any more." in answer["response"]["text"]
    await bench.people.open_home("@ada", "home")

    async def shown() -> bool:
        return "stopped: I am not a member" in str((await bench.people.views("@ada"))["home"])

    await until(shown, "the Home tab to say so")
    await bench.people.command("#campaigns", "@ada", "/invite", "@Threadline")
    await bench.people.command("#campaigns", "@ada", "/summaries", "daily at 9:00")
    assert not (await entry(bench)).paused
    await bench.time_passes(DAY_S)

    async def posted() -> bool:
        return any("Weekly summary" in each["plain"] for each in await bench.people.messages("#campaigns"))

    await until(posted, "the summary")
    await bench.idle()
    assert len(await told(bench)) == 1


async def test_a_failure_that_is_not_the_channels_leaves_the_schedule_alone(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def broken(*args: object, **options: object) -> None:
        raise ValueError("no such account")

    await bench.people.command("#campaigns", "@ada", "/summaries", "daily at 9:00")
    monkeypatch.setattr(bench.service.platform, "account", broken)
    await bench.time_passes(DAY_S)

    async def said() -> bool:
        return any("could not make this" in each["plain"] for each in await bench.people.messages("#campaigns"))

    await until(said, "the word of its failure")
    await bench.idle()
    assert not (await entry(bench)).paused
    assert await told(bench) == []


async def test_a_report_that_can_not_be_posted_is_told_to_whoever_ordered_it(bench: Bench) -> None:
    """Ordered in conversation, so that there is no address to answer at; the channel goes while it is made."""
    await bench.people.fault("chat.postMessage", "error", error="is_archived", times=2)
    service = bench.service
    asker = await service.people.person(NORTHWIND, "U0ADA")
    await service.desk.order(ReportRequest(channel="C0CAMPAIGNS", asker=asker), tenant=NORTHWIND, key="one")

    async def there() -> bool:
        return bool(await told(bench))

    await until(there, "the word to whoever ordered it")
    await bench.idle()
    [words] = await told(bench)
    assert "order it again" in words


@pytest.mark.parametrize("lose", [archived, removed])
async def test_whoever_asked_is_told_alone_where_their_answer_can_not_be_posted_any_more(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, lose: object
) -> None:
    """The channel is lost in mid-turn: each of those whose words it worked on, once; whoever only talked there, not."""
    listener = Listener()
    monkeypatch.setattr(bench.service.model, "stream", listener.stream)
    listener.gate.clear()
    ts = await bench.people.post_message("#campaigns", "@ada", "@Threadline which campaigns do we have?")
    second = await bench.people.post_message("#campaigns", "@ben", "@Threadline and which are paused?", thread_ts=ts)
    await bench.settled(ts=second)
    await until(lambda: bool(listener.requests), "the model to be asked")
    assert callable(lose)
    lose(bench)
    listener.gate.set()

    async def known() -> bool:
        return bool(await told(bench))

    await until(known, "the word to whoever asked")
    await bench.idle()
    [words] = await told(bench)
    assert "could not post the answer" in words
    assert ("it is archived" if lose is archived else "not a member of it") in words
    assert "ask me here" in words
    taken = {each.author.id for each in listener.requests[-1].messages if each.author and each.role == "user"}
    assert len(await told(bench, "@ben")) == ("U0BEN" in taken)


async def test_of_a_turn_that_people_stopped_nobody_is_told(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    listener = Listener()
    monkeypatch.setattr(bench.service.model, "stream", listener.stream)
    listener.gate.clear()
    ts = await bench.asked("@Threadline which campaigns do we have?")
    await until(lambda: bool(listener.requests), "the model to be asked")
    removed(bench)
    thread = Thread(tenant=NORTHWIND, channel="C0CAMPAIGNS", root=ts)
    service = bench.service
    await Stopper(service.engine, turn=service.agent.turn.id).stop(thread, message_id=ts, by="U0ADA")
    await bench.idle()
    assert await told(bench) == []
