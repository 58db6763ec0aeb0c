"""Installation by OAuth, and what an install and an uninstall do to events, over real HTTP."""

import json
import time
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from bot.installs import INSTALLATIONS, KEPT_EVENTS
from bot.oauth import SCOPES, STATES
from tests.bot.bench import HARBOR, HARBOR_BOT, NORTHWIND, Bench, Page, envelope, message_event
from tests.waiting import until
from workflows.storage import Select, StoreUnavailableError

BOTH = pytest.mark.parametrize("storage", ["sqlite", "servers"], indirect=True)
SERVERS = pytest.mark.parametrize("storage", ["servers"], indirect=True)
QUESTION = "how did Brand Search do last week?"


def contents(directory: Path) -> bytes:
    """Everything on disk, the write-ahead log included."""
    return b"".join(path.read_bytes() for path in directory.iterdir() if path.suffix != ".key")


async def harbor_token(bench: Bench) -> str:
    found = await bench.service.installs.credentials(HARBOR)
    assert found is not None
    return found.token


async def nothing_stored(bench: Bench) -> bool:
    return not await bench.service.store.read(Select(INSTALLATIONS, {"tenant": HARBOR}))


async def turns(bench: Bench) -> list[Any]:
    """Harbor's turns, once nothing runs there."""
    return [run for run in await bench.idle(HARBOR) if run.workflow == bench.service.agent.turn.id]


async def clock_follows(bench: Bench, advance_s: float) -> None:
    """Move time, for the local Slack and for the product's store."""
    before = await bench.service.store.now()
    await bench.people.advance_clock(advance_s)

    async def moved() -> bool:
        return (await bench.service.store.now() - before).total_seconds() >= advance_s

    await until(moved, "the store's clock to follow the local Slack's")


async def in_harbor(bench: Bench, text: str = QUESTION, **more: Any) -> str:
    """A mention in a workspace, as Slack would deliver it; returns its ts."""
    ts = await bench.people.post_message("#ads", "@dana", text)
    event = message_event(f"<@{HARBOR_BOT}> {text}", ts=ts)
    page = await bench.post_json(envelope(event, team=HARBOR, bot=HARBOR_BOT, event_id=f"Ev{ts}", **more))
    assert page.status == 200
    return ts


@BOTH
async def test_an_admin_installs_and_the_workspace_is_answered_with_its_own_token(bench: Bench) -> None:
    page = await bench.install()
    assert page.status == 200
    assert "Threadline is now in Harbor Coffee" in page.text
    ts = await bench.people.post_message("#ads", "@dana", f"@Threadline {QUESTION}")
    answer = await bench.answer(ts, "#ads")
    assert "Brand Search" in answer["plain"]
    assert answer["user"] == HARBOR_BOT


@BOTH
async def test_whoever_installs_is_greeted_once_also_when_the_reply_is_lost_or_they_install_again(bench: Bench) -> None:
    await bench.people.fault("chat.postMessage", "reset_after_commit")
    await bench.install()
    await bench.idle(HARBOR)
    greetings = [each for each in await bench.people.messages("dm:@dana") if each["is_bot"]]
    assert len(greetings) == 1
    assert "Threadline is now in Harbor Coffee" in greetings[0]["plain"]
    await bench.install()
    await bench.idle(HARBOR)
    assert len([each for each in await bench.people.messages("dm:@dana") if each["is_bot"]]) == 1


async def test_new_scopes_come_with_the_next_install_and_the_conversation_goes_on(bench: Bench) -> None:
    """An admin allows less at first, or the app asks for more in a new version."""
    await bench.install()
    ts = await bench.people.post_message("#ads", "@dana", f"@Threadline {QUESTION}")
    await bench.answer(ts, "#ads")
    workspace = bench.emulator.slack.workspaces[HARBOR]
    assert workspace.installation is not None
    workspace.installation.scopes = ("chat:write",)
    await bench.install()
    [row] = await bench.service.store.read(Select(INSTALLATIONS, {"tenant": HARBOR}))
    assert set(row["scopes"].split(",")) == set(SCOPES)
    assert set(workspace.installation.scopes) == set(SCOPES)
    await bench.people.post_message("#ads", "@dana", "and the week before?", thread_ts=ts)
    await bench.answer(ts, "#ads", count=2)


async def test_a_token_is_never_stored_in_plain_text(bench: Bench) -> None:
    await bench.install()
    token = await harbor_token(bench)
    assert token.startswith("xoxb-")
    assert HARBOR.encode() in contents(bench.directory)
    assert token.encode() not in contents(bench.directory)
    assert token.removeprefix(f"xoxb-{HARBOR}-").encode() not in contents(bench.directory)


async def test_the_state_cookie_is_secure_and_the_pages_are_not_cached(bench: Bench) -> None:
    async with bench._browser.get(f"{bench.url}/slack/install") as response:
        cookie = response.headers["Set-Cookie"]
    assert "Secure" in cookie
    assert "HttpOnly" in cookie
    page = await bench.install()
    assert "<script" not in page.text


async def test_slack_is_asked_for_the_scopes_of_the_code_and_sent_back_to_the_public_url(bench: Bench) -> None:
    _, url = await bench.replica(THREADLINE_PUBLIC_URL="https://threadline.example.com/")
    query = parse_qs(urlsplit((await bench.get(f"{url}/slack/install")).link).query)
    assert query["redirect_uri"] == ["https://threadline.example.com/slack/oauth_redirect"]
    assert "chat:write" in query["scope"][0].split(",")


async def test_a_refusal_ends_with_a_page_that_says_so(bench: Bench) -> None:
    begun = await bench.get(f"{bench.url}/slack/install")
    page = await bench.get(await bench.consent(begun, decision="deny"), cookie=begun.state_cookie)
    assert (page.status, "You did not allow the app" in page.text) == (400, True)
    assert await nothing_stored(bench)


@pytest.mark.parametrize(
    "change, words",
    [
        ({"state": None}, "begun in another browser"),
        ({"state": "made-up"}, "begun in another browser"),
        ({"cookie": ""}, "begun in another browser"),
        ({"cookie": "slack-app-oauth-state=made-up"}, "begun in another browser"),
        ({"state": "made-up", "cookie": "slack-app-oauth-state=made-up"}, "used already"),
        ({"code": None}, "Slack sent no code"),
        ({"code": "made-up"}, "did not accept the code"),
        ({"code": "made\x00up\ud800".encode("utf-8", "surrogatepass").decode("latin-1")}, "did not accept the code"),
        ({"error": "<script>"}, "Something went wrong"),
    ],
)
async def test_a_callback_that_is_not_the_end_of_an_install_is_told_why(
    bench: Bench, change: dict[str, str | None], words: str
) -> None:
    begun = await bench.get(f"{bench.url}/slack/install")
    target = urlsplit(await bench.consent(begun))
    cookie = change.pop("cookie", begun.state_cookie) or ""
    fields = {key: values[0] for key, values in parse_qs(target.query).items()} | change
    query = {key: value for key, value in fields.items() if value is not None}
    page = await bench.get(f"{bench.url}{target.path}?{_encoded(query)}", cookie=cookie)
    assert (page.status, words in page.text) == (400, True), page
    assert "/slack/install" in page.link
    assert "<script>" not in page.text
    assert await nothing_stored(bench)


def _encoded(query: dict[str, str]) -> str:
    from urllib.parse import urlencode

    return urlencode(query)


async def test_reloading_the_last_page_installs_nothing_twice(bench: Bench) -> None:
    begun = await bench.get(f"{bench.url}/slack/install")
    target = await bench.consent(begun)
    assert (await bench.get(target, cookie=begun.state_cookie)).status == 200
    again = await bench.get(target, cookie=begun.state_cookie)
    assert (again.status, "used already" in again.text) == (400, True)
    assert (await bench.service.installs.credentials(HARBOR)) is not None


async def test_a_code_works_once_also_under_a_new_state(bench: Bench) -> None:
    begun = await bench.get(f"{bench.url}/slack/install")
    code = parse_qs(urlsplit(await bench.consent(begun)).query)["code"][0]
    pages = []
    for _ in range(2):
        new = await bench.get(f"{bench.url}/slack/install")
        state = new.state_cookie.partition("=")[2]
        pages.append(
            await bench.get(f"{bench.url}/slack/oauth_redirect?code={code}&state={state}", cookie=new.state_cookie)
        )
    assert [page.status for page in pages] == [200, 400]
    assert "did not accept the code" in pages[1].text


async def test_a_state_is_good_for_ten_minutes(bench: Bench) -> None:
    begun = await bench.get(f"{bench.url}/slack/install")
    target = await bench.consent(begun)
    await clock_follows(bench, 601)
    page = await bench.get(target, cookie=begun.state_cookie)
    assert (page.status, "older than ten minutes" in page.text) == (400, True)
    await bench.get(f"{bench.url}/slack/install")
    assert len(await bench.service.store.read(Select(STATES, {}))) == 1, "states past their time are swept"


@pytest.mark.parametrize("method", ["oauth.v2.access", "auth.test"])
@pytest.mark.parametrize("kind", ["http_500", "reset_after_commit", "ratelimited"])
async def test_a_slack_in_trouble_is_a_page_that_says_so(bench: Bench, kind: Any, method: str) -> None:
    begun = await bench.get(f"{bench.url}/slack/install")
    target = await bench.consent(begun)
    await bench.people.fault(method, kind)
    page = await bench.get(target, cookie=begun.state_cookie)
    assert (page.status, "Slack did not answer" in page.text) == (503, True)
    assert "Threadline was not installed" in page.text
    assert "egin again" in page.text
    assert await nothing_stored(bench)


@SERVERS
async def test_an_install_begun_at_one_replica_ends_at_another(bench: Bench) -> None:
    _, other = await bench.replica()
    begun = await bench.get(f"{other}/slack/install")
    target = await bench.consent(begun)
    assert target.startswith(bench.url)
    assert (await bench.get(target, cookie=begun.state_cookie)).status == 200
    replay = await bench.get(target.replace(bench.url, other), cookie=begun.state_cookie)
    assert replay.status == 400, "a state is used up for all replicas"


async def test_what_was_said_just_before_the_install_is_answered(bench: Bench) -> None:
    ts = await in_harbor(bench)
    assert await bench.service.engine.runs(tenant=HARBOR) == []
    await bench.install()
    assert "Brand Search" in (await bench.answer(ts, "#ads"))["plain"]
    assert await bench.service.store.read(Select(KEPT_EVENTS, {"tenant": HARBOR})) == []


async def test_what_was_said_more_than_an_hour_before_is_not_answered(bench: Bench) -> None:
    early = await in_harbor(bench)
    await clock_follows(bench, 3601)
    await bench.install()
    assert await turns(bench) == []
    assert await bench.replies(early, "#ads") == []
    assert await bench.service.store.read(Select(KEPT_EVENTS, {"tenant": HARBOR})) == []


async def test_what_is_too_old_to_be_answered_makes_room(bench: Bench) -> None:
    early = await in_harbor(bench)
    await clock_follows(bench, 3601)
    late = await in_harbor(bench, "which campaigns do we have?")
    kept = await bench.service.store.read(Select(KEPT_EVENTS, {"tenant": HARBOR}))
    assert [row["envelope"]["event"]["ts"] for row in kept] == [late], "the old one makes room"
    await bench.install()
    await bench.answer(late, "#ads")
    await bench.idle(HARBOR)
    assert await bench.replies(early, "#ads") == []


async def test_an_event_that_arrives_while_the_install_ends_is_not_forgotten(bench: Bench) -> None:
    """The web process has just looked and found nobody; meanwhile another one installs and replays."""
    await bench.install()
    ts = await bench.people.post_message("#ads", "@dana", QUESTION)
    event = envelope(message_event(f"<@{HARBOR_BOT}> {QUESTION}", ts=ts), team=HARBOR, bot=HARBOR_BOT)
    await bench.service.ingress.hold(HARBOR, event)
    await bench.answer(ts, "#ads")


async def test_the_installation_and_what_follows_it_are_one_commit_and_its_lost_reply_is_no_failure(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever dies after the installation was saved, what was said before is taken in and the installer greeted."""
    store, start, lost = bench.service.store, bench.service.store.start, 0

    async def reply_lost(run: Any, **options: Any) -> str:
        nonlocal lost
        started = await start(run, **options)
        if run.workflow == bench.service.arrival.workflow.id and not lost:
            lost += 1
            assert await store.read(Select(INSTALLATIONS, {"tenant": HARBOR})), "saved with the run that follows it"
            raise StoreUnavailableError("the reply was lost")
        return started

    ts = await in_harbor(bench)
    monkeypatch.setattr(store, "start", reply_lost)
    page = await bench.install()
    assert (page.status, lost) == (200, 1)
    assert "Brand Search" in (await bench.answer(ts, "#ads"))["plain"]
    arrivals = [run for run in await bench.idle(HARBOR) if run.workflow == bench.service.arrival.workflow.id]
    assert len(arrivals) == 1
    assert len([each for each in await bench.people.messages("dm:@dana") if each["is_bot"]]) == 1


async def test_an_installation_that_can_not_be_saved_leaves_nothing_behind(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def away(*given: Any, **options: Any) -> str:
        raise StoreUnavailableError("away")

    monkeypatch.setattr(bench.service.store, "start", away)
    page = await bench.install()
    assert (page.status, "could not be saved" in page.text) == (503, True)
    assert await nothing_stored(bench)


async def test_what_was_said_before_waits_for_storage_and_one_event_that_breaks_keeps_no_other_back(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    poison = await in_harbor(bench, "which campaigns do we have?")
    ts = await in_harbor(bench)
    accept, refused = bench.service.ingress.accept, 0

    async def breaking(event: dict[str, Any]) -> None:
        nonlocal refused
        if event["event"]["ts"] == poison:
            raise TypeError("a field that no version of the code can read")
        if not refused:
            refused += 1
            raise StoreUnavailableError("away")
        await accept(event)

    monkeypatch.setattr(bench.service.ingress, "accept", breaking)
    assert (await bench.install()).status == 200
    assert "Brand Search" in (await bench.answer(ts, "#ads"))["plain"]
    assert {run.state.value for run in await bench.idle(HARBOR)} == {"done"}
    assert [row["event_id"] for row in await bench.service.store.read(Select(KEPT_EVENTS, {"tenant": HARBOR}))] == [
        f"Ev{poison}"
    ]
    assert [each for each in await bench.people.messages("dm:@dana") if each["is_bot"]], "the installer is greeted"


@pytest.mark.parametrize("order", [("app_uninstalled", "tokens_revoked"), ("tokens_revoked", "app_uninstalled")])
async def test_an_uninstall_takes_the_token_away_at_once(bench: Bench, order: tuple[str, str]) -> None:
    await bench.install()
    token = await harbor_token(bench)
    await bench.people.uninstall(HARBOR, tell=False)
    for kind in order:
        assert (await bench.post_json(_left(kind, at=int(time.time())))).status == 200
    assert await bench.service.installs.credentials(HARBOR) is None
    [row] = await bench.service.store.read(Select(INSTALLATIONS, {"tenant": HARBOR}))
    assert bench.service.installs._keyring.open(row["token"], tenant=HARBOR, column="token") == ""
    assert row["removed_at"] is not None
    await bench.idle(HARBOR)
    calls = len(await bench.people.calls())
    await in_harbor(bench)
    assert await turns(bench) == []
    assert len(await bench.people.calls()) == calls
    assert token.encode() not in contents(bench.directory)


def _left(kind: str, *, at: int) -> dict[str, Any]:
    event = {"type": kind, "event_ts": f"{at}.000000"}
    if kind == "tokens_revoked":
        event["tokens"] = {"oauth": [], "bot": [HARBOR_BOT]}  # type: ignore[assignment]
    return envelope(event, team=HARBOR, bot=HARBOR_BOT, event_id=f"Ev{kind}", event_time=at)


async def test_tokens_of_other_bots_may_be_revoked(bench: Bench) -> None:
    await bench.install()
    event = _left("tokens_revoked", at=int(time.time()))
    event["event"]["tokens"] = {"oauth": ["U0DANA"], "bot": ["U0ANOTHER"]}
    await bench.post_json(event)
    assert await bench.service.installs.credentials(HARBOR) is not None


async def test_a_workspace_comes_back(bench: Bench) -> None:
    await bench.install()
    await bench.people.uninstall(HARBOR)
    await bench.settled()
    assert await bench.service.installs.credentials(HARBOR) is None
    assert (await bench.install()).status == 200
    ts = await bench.people.post_message("#ads", "@dana", f"@Threadline {QUESTION}")
    assert "Brand Search" in (await bench.answer(ts, "#ads"))["plain"]


@pytest.mark.parametrize("kind", ["app_uninstalled", "tokens_revoked"])
@pytest.mark.parametrize("when", ["before the install, and kept", "after it, delivered late"])
async def test_an_old_uninstall_does_not_end_a_new_installation(bench: Bench, kind: str, when: str) -> None:
    late = _left(kind, at=int(time.time()) - 60)
    if when.startswith("before"):
        assert (await bench.post_json(late)).status == 200
    await bench.install()
    if when.startswith("after"):
        assert (await bench.post_json(late)).status == 200
    assert await bench.service.installs.credentials(HARBOR) is not None


@pytest.mark.parametrize("kind", ["app_uninstalled", "tokens_revoked"])
async def test_an_uninstall_told_seconds_after_the_next_install_ends_nothing(bench: Bench, kind: str) -> None:
    """Both lie in one second, and no clock could tell them apart: the token works."""
    await bench.install()
    await bench.people.uninstall(HARBOR, tell=False)
    told = _left(kind, at=int(time.time()))
    await bench.install()
    assert (await bench.post_json(told)).status == 200
    ts = await bench.people.post_message("#ads", "@dana", f"@Threadline {QUESTION}")
    await bench.answer(ts, "#ads")


async def test_an_uninstall_is_asked_for_again_while_slack_still_takes_the_token_or_does_not_say(bench: Bench) -> None:
    await bench.install()
    told = _left("app_uninstalled", at=int(time.time()) + 60)
    assert (await bench.post_json(told)).status == 503, "Slack says that the app left, and takes its token"
    await bench.people.uninstall(HARBOR, tell=False)
    await bench.people.fault("auth.test", "http_500")
    assert (await bench.post_json(told)).status == 503
    assert await bench.service.installs.credentials(HARBOR) is not None
    assert (await bench.post_json(told)).status == 200
    assert await bench.service.installs.credentials(HARBOR) is None


async def test_an_uninstall_that_is_cut_off_is_finished_by_its_redelivery(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    await bench.install()
    await bench.people.command("#ads", "@dana", "/summaries", "every monday 9:00")
    await bench.people.uninstall(HARBOR, tell=False)

    async def away(*_: Any, **__: Any) -> None:
        raise StoreUnavailableError("away")

    with monkeypatch.context() as cut:
        cut.setattr(bench.service.store, "delete_schedule", away)
        assert (await bench.post_json(_left("app_uninstalled", at=int(time.time())))).status == 503
    assert await bench.service.desk.scheduled(tenant=HARBOR, channel="C0HARBORADS") is not None
    assert (await bench.post_json(_left("app_uninstalled", at=int(time.time())))).status == 200
    assert await bench.service.desk.scheduled(tenant=HARBOR, channel="C0HARBORADS") is None
    assert await bench.service.installs.credentials(HARBOR) is None


async def test_the_same_thread_in_two_workspaces_is_two_conversations(bench: Bench) -> None:
    await bench.install()
    ts = await bench.asked("@Threadline " + QUESTION)
    await bench.answer(ts)
    before = len(await bench.idle(NORTHWIND))
    twin = message_event("and the week before?", ts=f"{float(ts) + 1:.6f}", channel="C0CAMPAIGNS", thread_ts=ts)
    await bench.post_json(envelope(twin, team=HARBOR, bot=HARBOR_BOT))
    assert await turns(bench) == [], "Harbor's agent takes no part in Northwind's thread"
    assert len(await bench.idle(NORTHWIND)) == before


async def test_the_schedule_of_another_workspace_is_neither_seen_nor_ended(bench: Bench) -> None:
    await bench.install()
    await bench.people.command("#campaigns", "@ada", "/summaries", "every monday 9:00")
    fields = {"channel_id": "C0CAMPAIGNS", "user_id": "U0DANA", "command": "/summaries", "trigger_id": "1.2"}
    seen = await bench.post_form(team_id=HARBOR, text="", **fields)
    assert "No summaries are posted here" in json.loads(seen.text)["text"]
    ended = await bench.post_form(team_id=HARBOR, text="off", **fields)
    assert "There were no summaries" in json.loads(ended.text)["text"]
    assert await bench.service.desk.scheduled(tenant=NORTHWIND, channel="C0CAMPAIGNS") is not None


async def test_a_command_in_a_workspace_without_the_app_says_so(bench: Bench) -> None:
    page: Page = await bench.post_form(
        team_id=HARBOR, channel_id="C0HARBORADS", user_id="U0DANA", command="/report", text="", trigger_id="1.2"
    )
    assert (page.status, "not installed in this workspace" in page.text) == (200, True)
