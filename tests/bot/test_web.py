"""What the HTTP endpoints answer to requests that are not as they should be. Issue 2: 400, 401, 413, 200 or 503 as fits, never 500."""

import asyncio
import json
import logging
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import aiohttp
import pytest
import structlog
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from structlog.testing import capture_logs

from bot.emulator.signing import signature_headers
from bot.installs import KEPT_EVENTS
from bot.logs import library_lines
from bot.service import Service
from bot.settings_dialog import SETTINGS
from bot.views import refilled
from tests.bot.bench import CLIENT_SECRET, HARBOR, NORTHWIND, SECRET, TOKEN, Bench, envelope, message_event
from tests.servers import PostgresServer
from tests.waiting import until
from workflows.storage import Select, StoreUnavailableError

QUESTION = "<@U0THREADLINE> how did Brand Search do last week?"
FORM = "application/x-www-form-urlencoded"
BOTH = pytest.mark.parametrize("storage", ["sqlite", "servers"], indirect=True)
UNDER_FUZZ = settings(
    max_examples=80, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)

SCALARS: st.SearchStrategy[Any] = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-5, 10**12),
    st.floats(allow_nan=False),
    st.text(st.characters(), max_size=8),
    st.sampled_from(
        ["message", "app_mention", "app_uninstalled", "U0ADA", "C0CAMPAIGNS", "1700000000.000100", "\x00", "\ud800"]
    ),
)
VALUES: st.SearchStrategy[Any] = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)
EVENT_FIELDS = (
    "type", "subtype", "user", "channel", "ts", "thread_ts", "text", "bot_id", "app_id", "channel_type", "message",
    "previous_message", "deleted_ts", "tokens", "event_ts", "item", "assistant_thread", "team", "user_team", "view", "hidden",
)  # fmt: skip
ENVELOPE_FIELDS = (
    "type", "team_id", "api_app_id", "event", "event_id", "event_time", "authorizations", "enterprise_id", "team", "user",
    "is_enterprise_install", "challenge", "payload", "actions", "channel", "view", "context_team_id", "is_ext_shared_channel",
)  # fmt: skip
KINDS = st.sampled_from(
    ["message", "app_mention", "app_uninstalled", "tokens_revoked", "agent_session_stopped", "team_join"]
)


@BOTH
@pytest.mark.parametrize(
    "body", [b"", b"{", b"[]", b"null", b'"x"', b"1", b"\xff\xfe", b"{'a': 1}", b'{"a": 1' + b"}" * 9]
)
async def test_a_signed_body_that_is_no_json_object_is_400(bench: Bench, body: bytes) -> None:
    page = await bench.post(body)
    assert page.status in ((400, 401) if body == b"\xff\xfe" else (400,))


@pytest.mark.parametrize(
    "body",
    [
        b"", b"a", b"payload=", b"payload=%7B", b"payload=[]", b"payload=null", b"payload=1&payload=2", b"payload=%ff%fe",
        b"command=report&team_id=T0NORTHWIND", b"team_id=T0NORTHWIND", b"\xff=\xfe", b"payload=" + b"[" * 50_000,
    ],
)  # fmt: skip
async def test_a_signed_form_that_is_neither_a_payload_nor_a_command_is_400(bench: Bench, body: bytes) -> None:
    assert (await bench.post(body, content_type=FORM)).status in ((400, 401) if b"\xff" in body else (400,))


@BOTH
async def test_a_number_that_no_other_parser_takes_is_400_also_where_nobody_is_known(bench: Bench) -> None:
    event = message_event("hi", ts="1.1", extra={"deep": ["NUMBER"]})
    for team in (NORTHWIND, HARBOR):
        for number in ("NaN", "Infinity", "-Infinity", "1e999", "1" + "0" * 5_000):
            body = json.dumps(envelope(event, team=team)).replace('"NUMBER"', number)
            assert (await bench.post(body.encode())).status == 400


async def test_a_view_that_is_none_of_slacks_is_no_fault_of_ours(bench: Bench) -> None:
    block = {"type": "input", "block_id": "spend_cap", "element": {"action_id": "value"}}
    states: list[Any] = [5, [], "x", {"values": 5}, {"values": []}, {"values": {"spend_cap": 5}}]
    given: list[Any] = [
        [block],
        5,
        [5],
        [{**block, "block_id": []}],
        [{**block, "element": {"action_id": {}}}],
        [{**block, "element": 5}],
    ]
    for state in [*states, {"values": {"spend_cap": {"value": 5}}}]:
        for blocks in given:
            view = {"type": "modal", "callback_id": SETTINGS, "private_metadata": "", "blocks": blocks, "state": state}
            payload = {
                "type": "view_submission", "team": {"id": NORTHWIND}, "user": {"id": "U0ADA", "team_id": NORTHWIND},
                "api_app_id": "A0THREADLINE", "view": view,
            }  # fmt: skip
            assert (await bench.post_form(payload=json.dumps(payload))).status < 500
            assert refilled(view, "once more")["blocks"]


@pytest.mark.parametrize("depth", [99, 101, 900, 5_000, 100_000])
async def test_nesting_has_an_end(bench: Bench, depth: int) -> None:
    for opened, closed in (("[", "]"), ('{"a":', "}")):
        value = opened * depth + "1" + closed * depth
        body = json.dumps(envelope({"type": "message", "channel": "C1", "x": "#"}, team=HARBOR)).replace('"#"', value)
        assert (await bench.post(body.encode())).status == (200 if depth < 99 else 400)


@pytest.mark.parametrize("event", [None, {}, [], "message", {"type": None}, {"type": 5}, {"type": ["message"]}])
async def test_an_envelope_without_an_event_is_400(bench: Bench, event: Any) -> None:
    for team in (NORTHWIND, HARBOR):
        assert (await bench.post_json(envelope(event, team=team))).status == 400


async def test_nesting_as_deep_as_views_are_is_fine(bench: Bench) -> None:
    value = "[" * 50 + "]" * 50
    for team in (NORTHWIND, HARBOR):
        body = json.dumps(envelope({"type": "message", "channel": "C1", "x": "#"}, team=team)).replace('"#"', value)
        assert (await bench.post(body.encode())).status == 200


@pytest.mark.parametrize(
    "headers",
    [
        {"X-Slack-Signature": "v0=" + "0" * 64},
        {"X-Slack-Signature": ""},
        {"X-Slack-Signature": "v0=\N{LATIN SMALL LETTER E WITH ACUTE}"},
        {"X-Slack-Signature": "v0="},
        {"X-Slack-Request-Timestamp": ""},
        {"X-Slack-Request-Timestamp": "now"},
        {"X-Slack-Request-Timestamp": "1.5"},
        {"X-Slack-Request-Timestamp": "-1"},
        {"X-Slack-Request-Timestamp": "9" * 400},
        {"X-Slack-Request-Timestamp": "9" * 5000},
        {"X-Slack-Request-Timestamp": "0"},
    ],
)
async def test_a_signature_or_timestamp_that_is_missing_or_wrong_is_401(bench: Bench, headers: dict[str, str]) -> None:
    page = await bench.post_json(envelope(message_event(QUESTION, ts="1700000000.000100")), headers=headers)
    assert page.status == 401
    assert await bench.service.engine.runs(tenant=NORTHWIND) == []


@pytest.mark.parametrize("age_s", [301, -301, 10**9])
async def test_an_old_request_or_one_from_the_future_is_401(bench: Bench, age_s: float) -> None:
    assert (
        await bench.post_json({"type": "url_verification", "challenge": "c"}, at_s=time.time() - age_s)
    ).status == 401


async def test_a_request_signed_for_another_body_or_by_another_app_is_401(bench: Bench) -> None:
    body = json.dumps({"type": "url_verification", "challenge": "c"}).encode()
    other = signature_headers(SECRET, b"{}", at_s=time.time())
    assert (await bench.post(body, headers=other)).status == 401
    assert (await bench.post(body, secret="of another app")).status == 401
    assert (await bench.post(b"not json", secret="of another app")).status == 401, "the signature is looked at first"


async def test_a_body_of_five_megabytes_is_413(bench: Bench) -> None:
    body = json.dumps(envelope(message_event("x" * 5_000_000, ts="1700000000.000100"))).encode()
    assert (await bench.post(body)).status == 413

    async def chunks() -> AsyncIterator[bytes]:
        yield b'{"a": "'
        for _ in range(80):
            yield b"x" * 65_536

    async with aiohttp.ClientSession() as session, session.post(f"{bench.url}/slack/events", data=chunks()) as response:
        assert response.status == 413, "also when no length is given before"


async def test_a_long_message_is_kept_within_bounds_and_answered(bench: Bench) -> None:
    ts = await bench.asked("@Threadline which campaigns do we have? " + "and " * 9_000)
    await bench.answer(ts)


@pytest.mark.parametrize(
    "content_type",
    [
        "",
        "text/plain",
        "application/json; charset=klingon",
        "application/xml",
        "application/json;charset=utf-16",
    ],
)
async def test_the_content_type_decides_nothing_but_how_the_body_is_read(bench: Bench, content_type: str) -> None:
    page = await bench.post_json(envelope({"type": "team_join"}), content_type=content_type)
    assert page.status == 200


@pytest.mark.parametrize("content_type", ["multipart/form-data", "multipart/form-data; boundary=x", FORM])
async def test_json_sent_as_a_form_is_400(bench: Bench, content_type: str) -> None:
    page = await bench.post_json({"type": "event_callback"}, content_type=content_type)
    assert page.status in (200, 400) if content_type != FORM else page.status == 400


async def test_a_body_that_claims_to_be_compressed_is_no_error_of_ours(bench: Bench) -> None:
    page = await bench.post(b"this is not gzip", headers={"Content-Encoding": "gzip"})
    assert 400 <= page.status < 500


@BOTH
@pytest.mark.parametrize(
    "event",
    [
        {"type": "team_join", "user": {"id": "U1"}},
        {"type": "something_new\nof_next_year"},
        {"type": "app_home_opened", "user": "U0ADA", "channel": "D1", "tab": "messages", "event_ts": "1.2"},
        {"type": "message", "subtype": "channel_join", "user": "U0ADA", "channel": "C0CAMPAIGNS", "ts": "1700000000.000100"},
        {"type": "message", "subtype": "bot_message", "bot_id": "B1", "channel": "C0CAMPAIGNS", "ts": "1700000000.000100"},
        {"type": "message", "subtype": "of_next_year", "user": "U0ADA", "channel": "C0CAMPAIGNS", "ts": "1700000000.000100"},
        {"type": "message", "subtype": ["channel_join"], "user": "U0ADA", "channel": "C0CAMPAIGNS", "ts": "1.1"},
        {"type": "message", "channel": "C0CAMPAIGNS"},
        {"type": "message", "user": {"id": "U0ADA"}, "channel": ["C"], "ts": 17.5, "text": {}},
        {"type": "agent_session_stopped", "channel": "C0CAMPAIGNS"},
        {"type": "tokens_revoked", "tokens": 5},
        {"type": "tokens_revoked", "tokens": {"bot": 5}},
        {"type": "message", "subtype": "message_changed", "channel": "C0CAMPAIGNS", "message": "x", "previous_message": 7},
    ],
)  # fmt: skip
async def test_events_that_mean_nothing_to_us_are_200(bench: Bench, event: dict[str, Any]) -> None:
    assert (await bench.post_json(envelope(event))).status == 200
    assert await bench.service.engine.runs(tenant=NORTHWIND) == []
    assert await bench.service.installs.credentials(NORTHWIND) is None
    assert await bench.service.clients.known(NORTHWIND) is not None


@BOTH
async def test_an_event_of_an_unknown_workspace_is_200_and_kept(bench: Bench) -> None:
    event = envelope(message_event("hi \x00 \ud800 there", ts="1700000000.000100"), team=HARBOR)
    assert [(await bench.post_json(event)).status for _ in range(2)] == [200, 200]
    [kept] = await bench.service.store.read(Select(KEPT_EVENTS, {"tenant": HARBOR}))
    assert kept["envelope"]["event"]["text"] == "hi   there"


async def test_only_messages_of_an_unknown_workspace_are_kept(bench: Bench) -> None:
    for kind in ("app_uninstalled", "tokens_revoked", "team_join", "member_joined_channel"):
        assert (await bench.post_json(envelope({"type": kind}, team=HARBOR))).status == 200
    assert await bench.service.store.read(Select(KEPT_EVENTS, {"tenant": HARBOR})) == []


@pytest.mark.parametrize("team", [None, "", 5, {}, "T0 drop table", "\x00", "\ud800", "x" * 500])
async def test_an_event_of_no_workspace_that_can_be_named_is_200(bench: Bench, team: Any) -> None:
    event = envelope(message_event(QUESTION, ts="1700000000.000100"), team_id=team, authorizations=[{"team_id": team}])
    assert (await bench.post_json(event)).status == 200


async def test_slack_may_verify_the_address(bench: Bench) -> None:
    page = await bench.post_json({"type": "url_verification", "challenge": "3eZbrw1a", "token": "old"})
    assert (page.status, json.loads(page.text)) == (200, {"challenge": "3eZbrw1a"})
    assert (await bench.post_json({"type": "url_verification"})).status in (200, 400)
    assert (await bench.post(b"ssl_check=1&token=old", content_type=FORM)).status == 200


async def test_other_methods_and_paths_are_told_so(bench: Bench) -> None:
    assert (await bench.get(f"{bench.url}/slack/events")).status == 405
    assert (await bench.get(f"{bench.url}/slack/nothing")).status == 404


@BOTH
async def test_text_that_no_database_takes_is_cleaned_and_answered(bench: Bench) -> None:
    ts = await bench.asked("hello everybody")
    event = message_event(f"{QUESTION}\x00\ud83d", ts=ts, channel="C0CAMPAIGNS", user="U0ADA")
    assert (await bench.post_json(envelope(event))).status == 200
    assert "Brand Search" in (await bench.answer(ts))["plain"]


@BOTH
async def test_commands_and_clicks_with_text_that_no_database_takes_are_answered(bench: Bench) -> None:
    command = {
        "command": "/report",
        "team_id": NORTHWIND,
        "channel_id": "C0\x00",
        "user_id": "U0ADA\x00",
        "trigger_id": "\x00",
    }
    assert (await bench.post_form(text="\x00last week\x00", **command)).status == 200
    assert (await bench.click("\x00\ud800", user="U0ADA\x00")).status == 200
    assert (await bench.click("x" * 2000, user="U0ADA")).status == 200


@UNDER_FUZZ
@given(
    event=st.dictionaries(st.sampled_from(EVENT_FIELDS), VALUES, max_size=8),
    kind=KINDS | VALUES,
    team=st.sampled_from([NORTHWIND, HARBOR]),
)
async def test_no_event_of_whatever_shape_is_an_error(
    bench: Bench, event: dict[str, Any], kind: Any, team: str
) -> None:
    assert (await bench.post_json(envelope({**event, "type": kind}, team=team))).status in (200, 400)


@UNDER_FUZZ
@example(body={"actions": None, "team_id": [None]}, kind="block_actions")
@given(
    body=st.dictionaries(st.sampled_from(ENVELOPE_FIELDS), VALUES, max_size=8),
    kind=st.sampled_from(["event_callback", "block_actions", "view_submission", "url_verification"]) | VALUES,
)
async def test_no_envelope_of_whatever_shape_is_an_error(bench: Bench, body: dict[str, Any], kind: Any) -> None:
    whole = {**body, "type": kind}
    assert (await bench.post_json(whole)).status in (200, 400, 404)
    payload = quote(json.dumps(whole))
    assert (await bench.post(f"payload={payload}".encode(), content_type=FORM)).status in (200, 400, 404)


async def test_logs_hold_no_secret(bench: Bench, caplog: pytest.LogCaptureFixture) -> None:
    """Our own lines hold none even before redaction; what the libraries say passes through it, at their most talkative."""
    caplog.set_level(logging.DEBUG)
    signed = signature_headers(SECRET, b"{", at_s=time.time())
    with structlog.testing.capture_logs() as lines:
        await bench.install()
        ts = await bench.asked("@Threadline how did Brand Search do last week?")
        await bench.answer(ts)
        await bench.post(b"{")
        await bench.post(b"{", headers={"X-Slack-Signature": "v0=" + "0" * 64})
        await bench.post(b"x" * 2_000_000)
        await bench.people.fault("users.info", "error", error="fatal_error")
        await bench.click("nothing", user="U0BEN")
        await bench.idle()
    token = await bench.service.installs.credentials(HARBOR)
    assert token is not None
    libraries = [library_lines(people=False).format(record) for record in caplog.records]
    assert all(isinstance(json.loads(line), dict) for line in libraries), "each is one line of JSON"
    written = "\n".join([*map(str, lines), *libraries])
    assert "request_refused" in written
    assert "app_installed" in written
    for secret in (SECRET, TOKEN, CLIENT_SECRET, token.token, signed["X-Slack-Signature"]):
        assert secret not in written
    assert "v0=" not in written


async def test_health_is_told(bench: Bench) -> None:
    assert json.loads((await bench.get(f"{bench.url}/healthz")).text) == {"ok": True}
    assert (await bench.get(f"{bench.url}/readyz")).status == 200


async def test_a_bot_token_that_slack_does_not_vouch_for_now_is_503(bench: Bench) -> None:
    _, url = await bench.replica()
    for kind in ("http_500", "error", "reset_after_commit"):
        await bench.people.clear_faults()
        await bench.people.fault("auth.test", kind, times=2)  # slack_sdk tries once more by itself
        page = await bench.post_json(envelope(message_event("hi", ts="1700000000.000100")), url=url)
        assert page.status == 503
    await bench.people.clear_faults()
    assert (await bench.post_json(envelope(message_event("hi", ts="1700000000.000100")), url=url)).status == 200


async def test_a_token_that_no_key_opens_is_503_and_an_operators_business(bench: Bench) -> None:
    await bench.install()
    other = "b:" + "B" * 43 + "="
    _, url = await bench.replica(THREADLINE_ENCRYPTION_KEYS=other)
    with structlog.testing.capture_logs() as lines:
        page = await bench.post_json(envelope(message_event("hi", ts="1700000000.000100"), team=HARBOR), url=url)
    assert page.status == 503
    assert any("THREADLINE_ENCRYPTION_KEYS" in str(line.get("error")) for line in lines)


async def test_while_postgres_is_down_slack_is_told_to_come_back_and_is_answered_then(
    tmp_path: Path, private_postgres: PostgresServer
) -> None:
    async with Bench(tmp_path, {"DATABASE_URL": private_postgres.dsn}) as bench:
        warm = await bench.asked("@Threadline which campaigns do we have?")
        await bench.answer(warm)
        await bench.idle()
        await asyncio.to_thread(private_postgres.kill)
        ts = await bench.asked("@Threadline how did Brand Search do last week?")

        async def refused() -> bool:
            attempts = [attempt for each in await bench.people.deliveries(ts=ts) for attempt in each["attempts"]]
            return sum(attempt["status"] is not None for attempt in attempts) >= 4

        await until(refused, "two attempts at each of the pair")
        attempts = [attempt for each in await bench.people.deliveries(ts=ts) for attempt in each["attempts"]]
        assert {attempt["status"] for attempt in attempts} == {503}
        assert (await bench.get(f"{bench.url}/readyz")).status == 503
        assert (await bench.get(f"{bench.url}/healthz")).status == 200
        assert (await bench.get(f"{bench.url}/slack/install")).status == 503
        await asyncio.to_thread(private_postgres.restart)

        async def ready() -> bool:
            return (await bench.get(f"{bench.url}/readyz")).status == 200

        await until(ready, "the store to be back")
        await bench.people.advance_clock(61)
        assert "Brand Search" in (await bench.answer(ts))["plain"]
        await bench.idle()
        assert len(await bench.replies(ts)) == 1


async def test_slack_holding_events_back_is_noted_and_not_refused(bench: Bench) -> None:
    told = {"type": "app_rate_limited", "team_id": NORTHWIND, "minute_rate_limited": 1767406613, "api_app_id": "A1"}
    with capture_logs() as logs:
        assert (await bench.post_json(told)).status == 200
    [warning] = [each for each in logs if each["event"] == "events_held_back"]
    assert (warning["tenant"], warning["minute"], warning["log_level"]) == (NORTHWIND, "1767406613", "warning")


async def test_a_bug_of_ours_before_any_listener_is_a_500_and_an_error(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Slack delivers it again, to a version without the bug; a 400 would be the end of it."""

    async def broken(tenant: str) -> None:
        raise AttributeError("a bug")

    monkeypatch.setattr(bench.service.clients, "soon", broken)
    with capture_logs() as logs:
        page = await bench.post_json(envelope(message_event("hello", ts="1.2")))
    assert page.status == 500
    assert [each["log_level"] for each in logs if each["event"] == "listener_failed"] == ["error"]


async def test_one_part_that_can_not_be_closed_keeps_no_other_open(tmp_path: Path) -> None:
    async with Bench(tmp_path, {}) as bench:
        service = Service(bench.settings(), worker=False, clock=False)
        await service.open()
        await (await service.clients.of(NORTHWIND)).auth_test()
        closed: list[str] = []

        async def broken() -> None:
            raise ZeroDivisionError("a bug")

        async def pacer_closed() -> None:
            closed.append("pacer")

        for part in (service.workspaces.rotation, service.model, service.dedup):
            setattr(part, "close", broken)  # noqa: B010 — a typed assignment would say that tests replace it
        setattr(service.pacer, "close", pacer_closed)  # noqa: B010 — as above
        with pytest.raises(ZeroDivisionError):
            await service.close()
        assert closed == ["pacer"]
        assert service.workspaces.connections.session().closed
        with pytest.raises(StoreUnavailableError):
            await service.store.ping()
