"""Connections that Slack ends, that hang, that are never greeted: nothing said is lost, and nothing is done twice."""

import asyncio
import random
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from slack_bolt import BoltResponse
from structlog.testing import capture_logs

from bot.sockets import MOST_S, Place, Sockets
from tests.bot.bench import NORTHWIND, Bench
from tests.waiting import until

APP_TOKEN = "xapp-1-of-the-tests"
QUESTION = "how did Brand Search do last week?"


@pytest.fixture
async def bench(tmp_path: Path) -> AsyncIterator[Bench]:
    slack: dict[str, Any] = {"app_token": APP_TOKEN}
    async with Bench(tmp_path, {"THREADLINE_SOCKET_PING_S": "0.2"}, **slack) as bench:
        await until(lambda: len(bench.emulator.slack.deliveries.sockets.open) == 2, "both connections")
        yield bench


async def connections(bench: Bench) -> set[str]:
    return {each["id"] for each in await bench.people.sockets() if not each["leaving"] and not each["muted"]}


async def renewed(bench: Bench, before: set[str]) -> None:
    async def other() -> bool:
        now = await connections(bench)
        return len(now) == 2 and not now & before

    await until(other, "two other connections")


async def asked(bench: Bench, question: str = QUESTION) -> str:
    return await bench.asked(question, channel="dm:@ada")


async def answered(bench: Bench, ts: str) -> None:
    assert "Brand Search" in (await bench.answer(ts, "dm:@ada"))["plain"]
    assert len(await bench.replies(ts, "dm:@ada")) == 1


async def test_what_slack_sends_is_spread_over_the_connections(bench: Bench) -> None:
    for _ in range(4):
        await answered(bench, await asked(bench))
    assert [each["sent"] >= 1 for each in await bench.people.sockets()] == [True, True]


async def test_replicas_share_what_slack_sends_and_redeliveries_to_all_of_them_are_answered_once(bench: Bench) -> None:
    await bench.replica()
    await until(lambda: len(bench.emulator.slack.deliveries.sockets.open) == 4, "the connections of both")
    ts = await asked(bench)
    await answered(bench, ts)
    [delivery] = await bench.settled(ts=ts)
    event = {
        "type": "message",
        "channel": delivery["channel"],
        "channel_type": "im",
        "user": "U0ADA",
        "text": QUESTION,
        "ts": ts,
    }
    await bench.people.send_event(event, event_id=delivery["event_id"], copies=8)
    assert all(each["delivered"] for each in await bench.settled())
    assert all(each["sent"] >= 2 for each in await bench.people.sockets())
    assert len(await bench.idle()) == 1
    await answered(bench, ts)


@pytest.mark.parametrize("reason", ["warning", "refresh_requested", "drop"])
async def test_a_connection_that_slack_ends_is_replaced(bench: Bench, reason: Any) -> None:
    before = await connections(bench)
    assert await bench.people.trouble_sockets(reason) == 2
    ts = await asked(bench)
    await renewed(bench, before)
    await answered(bench, ts)


async def test_a_connection_that_hangs_half_open_is_noticed_by_its_missing_pongs(bench: Bench) -> None:
    before = await connections(bench)
    assert await bench.people.trouble_sockets("mute") == 2
    ts = await asked(bench)  # goes down the silent connection; Slack sends it again
    await renewed(bench, before)
    await answered(bench, ts)


async def test_where_slack_refuses_each_try_waits_longer(bench: Bench) -> None:
    async def answer(*_: Any) -> BoltResponse:
        return BoltResponse(status=200)

    base_s = 0.05
    sockets = Sockets(
        "xapp-1-wrong", answer, api_url=bench.emulator.api_url, count=1, ping_s=0.01, hello_s=base_s, rng=random.Random(7)
    )  # fmt: skip

    def waits() -> list[float]:
        return [each["wait_s"] for each in logs if each["event"] == "socket_replaced"]

    with capture_logs() as logs:
        await sockets.start()
        await until(lambda: len(waits()) >= 5, "five refusals")
        await sockets.close()
    for failures, wait_s in enumerate(waits()):
        assert 0.4 * base_s * 2**failures <= wait_s <= base_s * 2**failures
    tries = [each for each in logs if each["event"] == "socket_refused"]
    assert len(tries) <= len(waits()) + 1


async def test_after_a_connection_that_was_greeted_the_next_one_comes_at_once(bench: Bench) -> None:
    place = Place(10.0, random.Random(7))
    waits = []
    for _ in range(12):
        place.lose()
        waits.append(place.due - time.monotonic())
    assert waits[0] < 10 < waits[2] < 41
    assert MOST_S / 2 - 1 < waits[-1] <= MOST_S
    assert bench.service._sockets is not None
    place.connection = bench.service._sockets._connections[0]
    place.lose()
    assert place.due <= time.monotonic()


async def test_an_envelope_under_way_when_its_connection_is_replaced_is_answered_once(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is stored, and its acknowledgement goes out on another connection, or is lost and a copy is acknowledged."""
    accept, gate, entered = bench.service.ingress.accept, asyncio.Event(), asyncio.Event()

    async def slow(envelope: dict[str, Any]) -> None:
        entered.set()
        await gate.wait()
        await accept(envelope)

    monkeypatch.setattr(bench.service.ingress, "accept", slow)
    before = await connections(bench)
    ts = await asked(bench)
    await entered.wait()
    await bench.people.trouble_sockets("refresh_requested")
    await renewed(bench, before)
    gate.set()
    await answered(bench, ts)
    assert all(each["delivered"] for each in await bench.settled(ts=ts))
    assert len(await bench.idle()) == 1


async def test_a_process_that_leaves_acknowledges_what_it_has_begun_and_takes_nothing_new(bench: Bench) -> None:
    begun, gate, seen = asyncio.Event(), asyncio.Event(), 0

    async def answer(envelope: dict[str, Any], headers: dict[str, str]) -> BoltResponse:
        nonlocal seen
        seen += 1
        begun.set()
        await gate.wait()
        return BoltResponse(status=200)

    await bench.service._sockets.close()  # type: ignore[union-attr] # the only other taker
    leaving = Sockets(APP_TOKEN, answer, api_url=bench.emulator.api_url, count=1, ping_s=0.2)
    await leaving.start()
    await until(lambda: leaving.connected, "a connection")
    first = await asked(bench)
    await begun.wait()
    closing = asyncio.create_task(leaving.close())
    await until(lambda: leaving._leaving, "the leaving")
    second = await asked(bench)
    gate.set()
    await closing
    assert seen == 1
    assert (await bench.people.deliveries(ts=first))[0]["attempts"][0]["status"] == 200
    assert not (await bench.people.deliveries(ts=second))[0]["delivered"]


async def test_a_connection_that_is_never_greeted_is_given_up(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    sockets = bench.emulator.slack.deliveries.sockets
    hello = sockets._hello
    monkeypatch.setattr(sockets, "_hello", lambda: {"type": "something else"})

    async def answer(envelope: dict[str, Any], headers: dict[str, str]) -> BoltResponse:
        return BoltResponse(status=200)

    deaf = Sockets(APP_TOKEN, answer, api_url=bench.emulator.api_url, count=1, ping_s=0.1, hello_s=0.3)
    await deaf.start()
    try:
        first = deaf._connections
        await until(lambda: deaf._connections not in ([], first), "another connection in its place")
        assert not deaf.connected
        monkeypatch.setattr(sockets, "_hello", hello)
        await until(lambda: deaf.connected, "a connection that is greeted")
    finally:
        await deaf.close()


async def test_a_client_that_turns_around_a_used_up_address_is_given_up(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where opening a connection fails, the SDK tries the same single-use address again, forever."""
    sockets = bench.emulator.slack.deliveries.sockets
    real, refused = sockets.ticket, 0

    def spent() -> str:
        nonlocal refused
        refused += 1
        return "used-up" if refused == 1 else real()

    monkeypatch.setattr(sockets, "ticket", spent)

    async def answer(envelope: dict[str, Any], headers: dict[str, str]) -> BoltResponse:
        return BoltResponse(status=200)

    stuck = Sockets(APP_TOKEN, answer, api_url=bench.emulator.api_url, count=1, ping_s=0.1, hello_s=0.5)
    await stuck.start()
    try:
        await until(lambda: stuck.connected, "a connection over a fresh address")
        assert refused == 2
    finally:
        await stuck.close()


async def test_a_connection_that_was_told_to_go_and_got_no_other_is_given_up(bench: Bench) -> None:
    """The SDK stays on the old connection if Slack does not give it a new address, and nothing comes there any more."""

    async def answer(envelope: dict[str, Any], headers: dict[str, str]) -> BoltResponse:
        return BoltResponse(status=200)

    ghost = Sockets(APP_TOKEN, answer, api_url=bench.emulator.api_url, count=1, ping_s=0.1, hello_s=0.3)
    before = await connections(bench)
    await ghost.start()
    try:
        await until(lambda: ghost.connected, "a connection")
        [mine] = await connections(bench) - before
        await bench.people.fault("apps.connections.open", "error", error="internal_error", times=1)
        await bench.people.trouble_sockets("refresh_requested", mine)

        async def replaced() -> bool:
            return bool(await connections(bench) - before)

        await until(replaced, "another connection")
    finally:
        await ghost.close()


async def test_a_refused_token_is_tried_again_and_the_process_is_not_ready(bench: Bench) -> None:
    await bench.people.trouble_sockets("link_disabled")
    await until(lambda: not bench.service.connected, "the end of both connections")
    assert (await bench.get(f"{bench.url}/readyz")).status == 503
    bench.emulator.slack.deliveries.sockets.disabled = False
    await until(lambda: bench.service.connected, "a connection again", deadline_s=30)
    assert (await bench.get(f"{bench.url}/readyz")).status == 200
    await answered(bench, await asked(bench))


async def test_without_a_signing_secret_nothing_is_taken_over_http(tmp_path: Path) -> None:
    """Nobody can tell then whose a request is."""
    async with Bench(tmp_path, {"SLACK_SIGNING_SECRET": ""}, app_token=APP_TOKEN) as bench:
        event = {"type": "event_callback", "team_id": NORTHWIND, "event": {"type": "message"}}
        assert (await bench.post_json(event, secret="a guess")).status == 401
        await answered(bench, await asked(bench))
