"""The app is removed while something is under way: what was said is worked on no more, and nothing stays behind that waits for Slack."""

import time
from typing import Any

import pytest

from agent.channel import ChannelGoneError, Draft
from agent.thread import Thread
from bot.history import SlackHistory
from tests.bot.bench import HARBOR, HARBOR_BOT, Bench, envelope
from tests.bot.listening import Listener
from tests.bot.test_departures import BOTH, QUESTION, uninstalled
from tests.waiting import until

MODEL_SEES = f"@Threadline {QUESTION}"


@pytest.fixture
def listener(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> Listener:
    listener = Listener()
    monkeypatch.setattr(bench.service.model, "stream", listener.stream)
    return listener


@BOTH
async def test_what_waited_for_a_turn_is_not_shown_to_the_model_once_the_app_is_gone(
    bench: Bench, listener: Listener
) -> None:
    await bench.install()
    await bench.idle(HARBOR)
    listener.gate.clear()
    ts = await bench.people.post_message("#ads", "@dana", MODEL_SEES)
    await until(lambda: bool(listener.requests), "the model to be asked")
    second = await bench.people.post_message("#ads", "@dana", "and our plans for 2027?", thread_ts=ts)
    await bench.settled(ts=second)
    await uninstalled(bench)
    listener.gate.set()
    await bench.idle(HARBOR)
    assert len(listener.requests) == 1


async def test_a_turn_that_begins_after_the_removal_has_nothing_to_do(
    bench: Bench, listener: Listener, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Killed right after the token was forgotten, the removal leaves a turn that was about to begin; and this process remembers the token."""
    await bench.install()
    await bench.idle(HARBOR)
    remembered = await bench.service.installs.credentials(HARBOR)
    assert remembered is not None
    await bench.service.installs.uninstall(HARBOR, token=remembered.token)
    bench.service.installs._remember(remembered)
    await bench.people.post_message("#ads", "@dana", MODEL_SEES)
    await bench.settled(type="app_mention")
    runs = await bench.idle(HARBOR)
    assert [run.state.name for run in runs if run.workflow == bench.service.agent.turn.id] == ["DONE"]
    assert [run.state.name for run in runs if run.workflow == bench.service.agent.notice.id] == []
    assert listener.requests == []


async def test_a_removal_that_is_told_again_ends_what_its_first_copy_left(bench: Bench, listener: Listener) -> None:
    await bench.install()
    await bench.idle(HARBOR)
    listener.gate.clear()
    await bench.people.post_message("#ads", "@dana", MODEL_SEES)
    await until(lambda: bool(listener.requests), "the model to be asked")
    token = (await bench.service.clients.credentials(HARBOR)).token
    await bench.service.installs.uninstall(HARBOR, token=token)  # and no further
    event = {"type": "app_uninstalled"}
    assert (await bench.post_json(envelope(event, team=HARBOR, bot=HARBOR_BOT))).status == 200
    await bench.idle(HARBOR)
    listener.gate.set()
    assert len(listener.requests) == 1


async def test_every_seam_of_the_channel_says_that_the_place_is_gone(bench: Bench) -> None:
    """Anything else would be tried for hours."""
    thread, service = Thread(tenant=HARBOR, channel="C0HARBORADS", root="1.1"), bench.service
    begun = Draft(delivery_id="one", began_at=await service.store.now())
    notes: Any = None
    calls = (
        lambda: service.channel.deliver(thread, "text", delivery_id="one", draft=begun, notes=notes),
        lambda: SlackHistory(service.clients, service.people).before(thread, "1.2"),
        lambda: service.channel.conversation(HARBOR, "U0DANA"),
    )
    for call in calls:
        with pytest.raises(ChannelGoneError):
            await call()


async def test_a_late_word_of_a_removal_does_not_touch_the_installation_that_followed(bench: Bench) -> None:
    """On a replica that remembers the token from before, which Slack refuses."""
    await bench.install()
    await bench.idle(HARBOR)
    other, url = await bench.replica()
    await bench.people.uninstall(HARBOR, tell=False)
    assert await other.clients.known(HARBOR)
    assert (await bench.install()).status == 200
    await bench.people.command("#ads", "@dana", "/summaries", "every monday 9:00")
    event = envelope({"type": "app_uninstalled"}, team=HARBOR, bot=HARBOR_BOT, event_time=int(time.time()) - 1)
    assert (await bench.post_json(event, url=url)).status == 200
    assert len(await bench.service.store.schedules(tenant=HARBOR)) == 1
    assert await bench.service.installs.installed(HARBOR)
