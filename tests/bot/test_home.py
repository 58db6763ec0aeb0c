"""The Home tab and the settings: admins edit, others read, and what is set holds."""

import asyncio
from dataclasses import replace

import pytest
from slack_sdk.errors import SlackApiError
from structlog.testing import capture_logs

from agent.campaigns import Account, AccountCap, parse_micros
from agent.campaigns.cap import SPEND_CLAIMS
from agent.preferences import PreferenceBook, Preferences, PreferencesChangedError
from bot.emulator.faults import FaultKind
from bot.home import EDIT
from bot.installs import INSTALLATIONS
from bot.oauth import SCOPES
from bot.render.cards import APPROVE
from bot.settings_dialog import ADMINS_ONLY, CHANGED_MEANWHILE, SETTINGS
from tests.bot.bench import HARBOR, NORTHWIND, Bench, Json
from tests.waiting import until
from workflows.storage import Select, Update

BOTH = pytest.mark.parametrize("storage", ["sqlite", "servers"], indirect=True)
FILLED: dict[str, dict[str, str | list[str]]] = {
    "guidance": {"value": "We call ROAS the return. Say € first."},
    "approvers": {"value": ["U0BEN"]},
    "alone_limit": {"value": "20"},
    "spend_cap": {"value": "1,500.50"},
}


async def home(bench: Bench, user: str, containing: str = "") -> Json:
    """Open the Home tab; returns what stands there, once it contains that."""
    await bench.people.open_home(user, "home")

    async def shown() -> bool:
        found = (await bench.people.views(user))["home"]
        return found is not None and containing in text_of(found)

    await until(shown, f"the Home tab with {containing!r}")
    found: Json = (await bench.people.views(user))["home"]
    return found


def text_of(view: Json) -> str:
    return "\n".join(
        str(part.get("text")) if not isinstance(part.get("text"), dict) else str(part["text"]["text"])
        for block in view["blocks"]
        for part in (block, *block.get("elements", []))
    )


def editable(view: Json) -> bool:
    return any(each.get("action_id") == EDIT for block in view["blocks"] for each in block.get("elements", []))


async def dialog(bench: Bench, user: str) -> Json:
    [view] = (await bench.people.views(user))["views"]
    return dict(view)


async def fill(bench: Bench, user: str, values: dict[str, dict[str, str | list[str]]]) -> Json:
    """Open the settings in the Home tab and submit them."""
    await home(bench, user)
    assert (await bench.people.click_view(user, EDIT))["ok"]
    return await bench.people.submit_view(user, (await dialog(bench, user))["id"], values)


@BOTH
async def test_an_admin_sets_and_everybody_reads(bench: Bench) -> None:
    before = await home(bench, "@ben")
    assert not editable(before)
    assert "Nobody has set anything yet." in text_of(before)
    assert "change budget" in text_of(before)
    assert editable(await home(bench, "@ada"))
    assert (await fill(bench, "@ada", FILLED))["ok"]
    assert (await bench.people.views("@ada"))["views"] == []
    for user in ("@ada", "@ben"):
        said = text_of(await home(bench, user, "We call ROAS the return"))
        assert "<@U0BEN>" in said
        assert "€1,500.50 a day" in said
        assert "Last changed by <@U0ADA>" in said
    book = PreferenceBook(bench.service.store)
    assert await book.of(HARBOR) == Preferences()
    assert (await book.of(NORTHWIND)).alone_limit_micros == parse_micros(20, "EUR")


async def test_what_is_wrong_stays_open_with_its_errors_and_changes_nothing(bench: Bench) -> None:
    answer = await fill(bench, "@ada", {**FILLED, "spend_cap": {"value": "a lot"}, "alone_limit": {"value": "-3"}})
    assert '"errors"' in answer["response"]
    assert "a lot" in answer["response"]
    assert "without a minus" in answer["response"]
    assert (await dialog(bench, "@ada"))["callback_id"] == SETTINGS
    assert await PreferenceBook(bench.service.store).of(NORTHWIND) == Preferences()


async def test_of_two_that_change_them_at_once_the_second_is_told(bench: Bench) -> None:
    await home(bench, "@ada")
    await bench.people.click_view("@ada", EDIT)
    opened = await dialog(bench, "@ada")
    book = PreferenceBook(bench.service.store)
    await book.change(NORTHWIND, Preferences(guidance="first"), by="U0CHLOE")
    await bench.people.submit_view("@ada", opened["id"], FILLED)
    assert CHANGED_MEANWHILE in str(await dialog(bench, "@ada"))
    assert (await book.of(NORTHWIND)).guidance == "first"


async def test_who_is_no_admin_any_more_saves_nothing(bench: Bench) -> None:
    await home(bench, "@ada")
    await bench.people.click_view("@ada", EDIT)
    opened = await dialog(bench, "@ada")
    users = bench.emulator.slack.workspaces[NORTHWIND].users
    users["U0ADA"] = replace(users["U0ADA"], is_admin=False)
    await bench.people.submit_view("@ada", opened["id"], FILLED)
    assert ADMINS_ONLY in str(await dialog(bench, "@ada"))
    assert await PreferenceBook(bench.service.store).of(NORTHWIND) == Preferences()


async def test_every_version_is_kept(bench: Bench) -> None:
    book = PreferenceBook(bench.service.store)
    first = await book.change(NORTHWIND, Preferences(guidance="one"), by="U0ADA")
    second = await book.change(NORTHWIND, first.model_copy(update={"guidance": "two"}), by="U0ADA")
    assert (first.version, second.version) == (1, 2)
    with pytest.raises(PreferencesChangedError):
        await book.change(NORTHWIND, first, by="U0BEN")
    assert await book.of(NORTHWIND) == second


async def test_what_admins_want_known_reaches_the_model_of_their_workspace_alone(bench: Bench) -> None:
    book = PreferenceBook(bench.service.store)
    await book.change(NORTHWIND, Preferences(guidance="Our mascot is a heron."), by="U0ADA")
    guidance = bench.service.guidance
    assert "heron" in guidance.text((await book.of(NORTHWIND)).guidance)
    assert "heron" not in guidance.text((await book.of(HARBOR)).guidance)
    assert "What this workspace's admins ask of you" not in guidance.text("")


async def test_a_cap_holds_when_a_change_is_proposed_and_when_it_is_made(bench: Bench) -> None:
    book = PreferenceBook(bench.service.store)
    capped = await book.change(NORTHWIND, Preferences(spend_cap_micros=1_000_000), by="U0ADA")
    ts = await bench.asked("@Threadline raise the daily budget of Brand Search to 150", user="@ben")
    answer = await bench.answer(ts, count=1)
    await bench.idle()
    assert "above the cap of €1.00" in answer["plain"]
    assert capped.version == 1


@BOTH
async def test_changes_that_are_approved_at_once_keep_to_the_cap_together(bench: Bench) -> None:
    """Each alone is within it."""
    active = [each for each in await bench.service.platform.campaigns(NORTHWIND) if each.status == "active"]
    total = sum(each.daily_budget_micros for each in active)
    cards = []
    for each in active[:4]:
        wanted = (each.daily_budget_micros + parse_micros(30, "EUR")) // 1_000_000
        ts = await bench.asked(f"@Threadline raise the daily budget of {each.name} to {wanted}", user="@ben")
        await bench.answer(ts, count=2)
        cards += [(ts, card["ts"]) for card in await bench.replies(ts) if "Approval needed" in card["plain"]]
    await bench.idle()
    cap = total + parse_micros(40, "EUR")
    await PreferenceBook(bench.service.store).change(NORTHWIND, Preferences(spend_cap_micros=cap), by="U0ADA")
    await asyncio.gather(*(bench.people.click("#campaigns", card, APPROVE, "@ada") for _, card in cards))
    said = [(await bench.answer(ts, count=3))["plain"] for ts, _ in cards]
    await bench.idle()
    after = await bench.service.platform.campaigns(NORTHWIND)
    assert sum(each.daily_budget_micros for each in after if each.status == "active") == total + parse_micros(30, "EUR")
    assert sum("above the cap" in each for each in said) == 3
    assert await bench.service.store.read(Select(SPEND_CLAIMS, {"tenant": NORTHWIND})) == []


async def test_of_a_change_that_was_cut_off_nobody_waits_longer_than_it_may_take(bench: Bench) -> None:
    """Killed inside; the same change goes on at once, another one once the claim is over."""
    cap = AccountCap(bench.service.platform, bench.service._spend_cap, bench.service.store)
    assert await cap._claimed(NORTHWIND, "killed")
    assert not await cap._claimed(NORTHWIND, "other")
    assert await cap._claimed(HARBOR, "other")
    async with cap.alone(NORTHWIND, key="killed"):
        assert not await cap._claimed(NORTHWIND, "other")
    async with cap.alone(NORTHWIND, key="other"):
        await bench.time_passes(61)
        assert await cap._claimed(NORTHWIND, "third")
    assert not await cap._claimed(NORTHWIND, "other"), "the end of one that took too long frees nothing"


async def test_slack_being_away_keeps_nobody_from_the_settings(bench: Bench) -> None:
    await bench.people.fault("views.publish", "http_500", times=1)
    await bench.people.open_home("@ada", "home")
    assert editable(await home(bench, "@ada"))


@pytest.mark.parametrize("kind", ["reset_after_commit", "http_500", "ratelimited"])
async def test_what_was_saved_is_not_said_to_have_failed_because_the_tab_could_not_be_shown(
    bench: Bench, kind: FaultKind
) -> None:
    await bench.people.command("#campaigns", "@ada", "/threadline", "settings")
    await bench.people.fault("views.publish", kind)
    answer = await bench.people.submit_view("@ada", (await dialog(bench, "@ada"))["id"], FILLED)
    assert (answer["ok"], answer["response"]) == (True, "")
    assert (await bench.people.views("@ada"))["views"] == []
    assert (await PreferenceBook(bench.service.store).of(NORTHWIND)).version == 1


async def test_who_is_no_admin_any_more_is_told_when_they_press_the_button(bench: Bench) -> None:
    assert editable(await home(bench, "@ada"))
    users = bench.emulator.slack.workspaces[NORTHWIND].users
    users["U0ADA"] = replace(users["U0ADA"], is_admin=False)
    await bench.people.click_view("@ada", EDIT)
    assert ADMINS_ONLY in str(await dialog(bench, "@ada"))


async def test_the_event_is_acknowledged_while_the_tab_is_still_being_made(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate, account = asyncio.Event(), bench.service.platform.account

    async def slow(tenant: str) -> Account:
        await gate.wait()
        return await account(tenant)

    monkeypatch.setattr(bench.service.platform, "account", slow)
    for _ in range(3):
        await bench.people.open_home("@ada", "home")
    for delivery in await bench.settled(type="app_home_opened"):
        assert [each["status"] for each in delivery["attempts"]] == [200]
    assert (await bench.people.views("@ada"))["home"] is None
    gate.set()
    await home(bench, "@ada", "What I do here")


async def test_a_platform_that_breaks_is_no_reason_to_be_told_again(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def broken(tenant: str) -> Account:
        raise ZeroDivisionError("a bug")

    with monkeypatch.context() as broke:
        broke.setattr(bench.service.platform, "account", broken)
        await bench.people.open_home("@ada", "home")
        [delivery] = await bench.settled(type="app_home_opened")
        assert [each["status"] for each in delivery["attempts"]] == [200]
    await home(bench, "@ada", "What I do here")


async def test_settings_that_were_saved_are_not_said_to_be_lost_where_the_tab_can_not_be_shown(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def broken(tenant: str, user: str) -> None:
        raise ZeroDivisionError("a bug")

    await home(bench, "@ada")
    await bench.people.command("#campaigns", "@ada", "/threadline", "settings")
    form = await dialog(bench, "@ada")
    monkeypatch.setattr(bench.service.home, "view", broken)
    await bench.people.submit_view("@ada", form["id"], {"guidance": {"value": "Say € first."}})
    assert (await bench.people.views("@ada"))["views"] == []
    assert (await PreferenceBook(bench.service.store).of(NORTHWIND)).guidance == "Say € first."


async def test_an_admin_is_told_which_scopes_were_never_granted_and_where_to_grant_them(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert (await bench.service.clients.credentials(NORTHWIND)).scopes >= set(SCOPES), "as Slack says with every answer"
    await bench.install()
    assert "has not allowed me" not in text_of(await home(bench, "@dana", "What I do here"))
    few = ",".join(each for each in SCOPES if each not in ("files:read", "users:read"))
    await bench.service.store.write(Update(INSTALLATIONS, {"tenant": HARBOR}, {"scopes": few}))
    bench.service.installs.refresh(HARBOR)
    monkeypatch.setattr(bench.service.home, "_install_url", "https://threadline.example.com/slack/install")
    told = text_of(await home(bench, "@dana", "has not allowed me"))
    assert "`files:read`, `users:read`" in told
    assert "<https://threadline.example.com/slack/install|Install me again>" in told
    await bench.install()

    async def granted() -> bool:
        return "has not allowed me" not in text_of(await home(bench, "@dana", "What I do here"))

    await until(granted, "the warning to be gone")


async def test_a_scope_that_a_call_lacks_is_told_an_operator_once(bench: Bench) -> None:
    await bench.install()
    await bench.idle(HARBOR)
    workspace = bench.emulator.slack.workspaces[HARBOR]
    assert workspace.installation is not None
    workspace.installation.scopes = tuple(each for each in SCOPES if each != "users:read")
    client = await bench.service.clients.of(HARBOR)
    with capture_logs() as logs:
        for _ in range(3):
            with pytest.raises(SlackApiError, match="missing_scope"):
                await client.users_info(user="U0DANA")
    [warning] = [each for each in logs if each["event"] == "scope_missing"]
    assert (warning["tenant"], warning["needed"], warning["method"]) == (HARBOR, "users:read", "users.info")


async def test_a_publication_that_arrives_late_does_not_bring_old_settings_back(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Slack takes its time with a tab that another process has read before the settings were saved."""
    monkeypatch.setattr("bot.home.LATE_S", 1.0)
    other, _ = await bench.replica()
    await bench.people.fault("views.publish", "delay", delay_s=0.6, times=1)
    other.home.show(NORTHWIND, "U0ADA")

    async def under_way() -> bool:
        return not await bench.people.faults("views.publish")

    await until(under_way, "the first publication")
    await bench.people.command("#campaigns", "@ada", "/threadline", "settings")
    await bench.people.submit_view("@ada", (await dialog(bench, "@ada"))["id"], FILLED)

    async def over() -> bool:
        """The late one, the one after the settings were saved, and one more that makes up for the late one."""
        published = len(await bench.people.calls("views.publish")) >= 3
        return published and not other.home._showing and not bench.service.home._showing

    await until(over, "all publications")
    assert "We call ROAS the return" in text_of(await home_now(bench, "@ada"))


@pytest.mark.parametrize("kind", ["reset_after_commit", "http_500"])
async def test_a_publication_of_which_nobody_knows_whether_it_arrived_is_made_again(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, kind: FaultKind
) -> None:
    monkeypatch.setattr("bot.home.LATE_S", 0.1)
    await bench.people.fault("views.publish", kind, times=1)
    await bench.people.open_home("@ada", "home")

    async def again() -> bool:
        return len(await bench.people.calls("views.publish")) >= 2

    await until(again, "another publication")
    assert editable(await home(bench, "@ada"))


async def home_now(bench: Bench, user: str) -> Json:
    found: Json = (await bench.people.views(user))["home"]
    return found


@pytest.mark.parametrize("method", ["views.publish", "users.info"])
async def test_a_slack_that_asks_to_wait_leaves_the_admin_the_button(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, method: str
) -> None:
    monkeypatch.setattr("bot.home.LATE_S", 0.1)
    await bench.people.fault(method, "ratelimited", retry_after=1, times=2)
    assert editable(await home(bench, "@ada", "What I do here"))
