"""Installation by OAuth, into one workspace and into another."""

import re
from collections.abc import AsyncIterator
from urllib.parse import parse_qs, urlsplit

import aiohttp
import pytest
from slack_sdk.errors import SlackApiError
from slack_sdk.web.async_client import AsyncWebClient

from bot.emulator import Emulator, EmulatorClient, EmulatorConfig
from bot.emulator.config import BOT_SCOPES
from bot.emulator.consent import MEANING
from bot.oauth import SCOPES
from tests.emulator.conftest import TOKEN, Sink, settled

# slack_sdk 3.48 still builds aiohttp's deprecated BasicAuth for oauth.v2.access.
pytestmark = pytest.mark.filterwarnings("ignore:BasicAuth is deprecated")

REDIRECT = "http://127.0.0.1:8000/slack/oauth_redirect"
ASKED = {
    "client_id": "1.2",
    "scope": "app_mentions:read,chat:write,commands,users:read",
    "state": "s1",
    "redirect_uri": REDIRECT,
}


@pytest.fixture
async def browser(emulator: Emulator) -> AsyncIterator[aiohttp.ClientSession]:
    async with aiohttp.ClientSession(emulator.url) as session:
        yield session


async def decide(browser: aiohttp.ClientSession, decision: str, installer: str = "T0HARBOR:U0DANA") -> dict[str, str]:
    form = {**ASKED, "decision": decision, "installer": installer}
    async with browser.post("/oauth/v2/authorize", data=form, allow_redirects=False) as response:
        assert response.status == 302
        target = urlsplit(response.headers["Location"])
    assert target.path == "/slack/oauth_redirect"
    return {key: values[0] for key, values in parse_qs(target.query).items()}


async def exchange(emulator: Emulator, code: str, **changes: str) -> AsyncWebClient:
    nobody = AsyncWebClient(base_url=emulator.api_url)
    fields = {"client_id": "1.2", "client_secret": "shh", "redirect_uri": REDIRECT, **changes}
    answer = await nobody.oauth_v2_access(code=code, **fields)
    return AsyncWebClient(str(answer["access_token"]), base_url=emulator.api_url)


async def test_the_consent_page_lists_permissions_and_workspaces(browser: aiohttp.ClientSession) -> None:
    async with browser.get("/oauth/v2/authorize", params={**ASKED, "state": '"><script>'}) as response:
        page = await response.text()
    assert "Send messages" in page
    assert "Harbor Coffee, as Dana Ruiz" in page
    assert "<script>" not in page


async def chosen(browser: aiohttp.ClientSession, *, place: str = "", **more: str) -> str:
    headers = {"Cookie": f"local_slack_place={place}"} if place else {}
    async with browser.get("/oauth/v2/authorize", params={**ASKED, **more}, headers=headers) as response:
        found = re.findall(r'<option value="([^"]+)" selected>', await response.text())
    assert len(found) == 1
    return str(found[0])


@pytest.mark.parametrize(
    "place, team, installer",
    [
        ("", "", "T0HARBOR:U0DANA"),
        ("T0HARBOR.U0DANA", "", "T0HARBOR:U0DANA"),
        ("T0HARBOR.U0ELI", "", "T0HARBOR:U0DANA"),
        ("T0NORTHWIND.U0BEN", "", "T0HARBOR:U0DANA"),
        ("", "T0NORTHWIND", "T0NORTHWIND:U0ADA"),
        ("nonsense", "", "T0HARBOR:U0DANA"),
    ],
)
async def test_the_workspace_one_came_from_or_one_without_the_app_is_chosen_already(
    browser: aiohttp.ClientSession, place: str, team: str, installer: str
) -> None:
    assert await chosen(browser, place=place, **({"team": team} if team else {})) == installer


async def test_every_scope_the_app_asks_for_has_plain_words() -> None:
    assert {*BOT_SCOPES, *SCOPES} <= MEANING.keys()


async def test_allowing_gives_a_code_that_becomes_a_token_of_that_workspace(
    emulator: Emulator, browser: aiohttp.ClientSession, people: EmulatorClient, sink: Sink
) -> None:
    answer = await decide(browser, "allow")
    assert answer["state"] == "s1"
    harbor = await exchange(emulator, answer["code"])
    who = await harbor.auth_test()
    assert (who["team_id"], who["user_id"]) == ("T0HARBOR", "U0THREADHARBOR")
    assert harbor.token != TOKEN
    await harbor.chat_postMessage(channel="C0HARBORADS", text="hello")
    with pytest.raises(SlackApiError, match="channel_not_found"):
        await harbor.chat_postMessage(channel="C0CAMPAIGNS", text="hello")
    await people.post_message("#ads", "@dana", "@Threadline hi")
    await settled(people)
    assert sink.events("app_mention")[0]["authorizations"][0]["team_id"] == "T0HARBOR"


async def test_a_code_is_good_once_and_for_ten_minutes(
    emulator: Emulator, browser: aiohttp.ClientSession, people: EmulatorClient
) -> None:
    code = (await decide(browser, "allow"))["code"]
    await exchange(emulator, code)
    with pytest.raises(SlackApiError, match="invalid_code"):
        await exchange(emulator, code)
    late = (await decide(browser, "allow"))["code"]
    await people.advance_clock(601)
    with pytest.raises(SlackApiError, match="invalid_code"):
        await exchange(emulator, late)


@pytest.mark.parametrize(
    "changes, error",
    [
        ({"client_secret": "wrong"}, "bad_client_secret"),
        ({"client_id": "9.9"}, "invalid_client_id"),
        ({"redirect_uri": "http://127.0.0.1:1/"}, "bad_redirect_uri"),
    ],
)
async def test_an_exchange_by_somebody_else_is_refused(
    emulator: Emulator, browser: aiohttp.ClientSession, changes: dict[str, str], error: str
) -> None:
    code = (await decide(browser, "allow"))["code"]
    with pytest.raises(SlackApiError, match=error):
        await exchange(emulator, code, **changes)


async def test_cancelling_goes_back_with_access_denied(browser: aiohttp.ClientSession) -> None:
    assert await decide(browser, "deny") == {"error": "access_denied", "state": "s1"}


async def test_installing_again_gives_the_same_token(emulator: Emulator, browser: aiohttp.ClientSession) -> None:
    answer = await decide(browser, "allow", installer="T0NORTHWIND:U0ADA")
    assert (await exchange(emulator, answer["code"])).token == TOKEN


async def test_an_unknown_client_gets_an_error_page(browser: aiohttp.ClientSession) -> None:
    async with browser.get("/oauth/v2/authorize", params={**ASKED, "client_id": "<b>"}) as response:
        assert response.status == 400
        assert "invalid_client_id" in await response.text()


async def test_revoking_the_token_ends_the_installation(
    emulator: Emulator, web_api: AsyncWebClient, people: EmulatorClient, sink: Sink
) -> None:
    await web_api.auth_revoke()
    with pytest.raises(SlackApiError, match="token_revoked"):
        await web_api.auth_test()
    await settled(people)
    assert {body["event"]["type"] for body in sink.events()} == {"app_uninstalled", "tokens_revoked"}
    with pytest.raises(Exception, match="not installed in Northwind"):
        await people.post_message("dm:@ada", "@ada", "hello?")


@pytest.fixture
async def rotating(sink: Sink) -> AsyncIterator[Emulator]:
    config = EmulatorConfig(
        signing_secret="s",
        client_id="1.2",
        client_secret="shh",
        bot_token=TOKEN,
        request_url=sink.url,
        token_rotation=True,
    )
    async with Emulator(config) as emulator:
        yield emulator


async def refreshed(emulator: Emulator, refresh_token: str) -> dict[str, object]:
    nobody = AsyncWebClient(base_url=emulator.api_url)
    answer = await nobody.oauth_v2_access(
        client_id="1.2", client_secret="shh", grant_type="refresh_token", refresh_token=refresh_token
    )
    return dict(answer.data) if isinstance(answer.data, dict) else {}


async def exchanged(emulator: Emulator, token: str) -> dict[str, object]:
    answer = await AsyncWebClient(base_url=emulator.api_url).oauth_v2_exchange(
        client_id="1.2", client_secret="shh", token=token
    )
    return dict(answer.data) if isinstance(answer.data, dict) else {}


async def whose(emulator: Emulator, token: object) -> str:
    return str((await AsyncWebClient(str(token), base_url=emulator.api_url).auth_test())["team_id"])


async def test_a_token_without_an_end_is_exchanged_once_for_one_that_expires(rotating: Emulator) -> None:
    pair = await exchanged(rotating, TOKEN)
    assert str(pair["access_token"]).startswith("xoxe.xoxb-1-")
    assert (str(pair["refresh_token"])[:7], pair["expires_in"]) == ("xoxe-1-", 43_200)
    assert await whose(rotating, pair["access_token"]) == "T0NORTHWIND"
    with pytest.raises(SlackApiError, match="invalid_auth"):
        await whose(rotating, TOKEN)
    with pytest.raises(SlackApiError, match="token_already_exchanged"):
        await exchanged(rotating, str(pair["access_token"]))
    with pytest.raises(SlackApiError, match="invalid_token"):
        await exchanged(rotating, TOKEN)


async def test_without_rotation_nothing_is_exchanged(emulator: Emulator) -> None:
    with pytest.raises(SlackApiError, match="token_rotation_not_enabled"):
        await exchanged(emulator, TOKEN)


async def test_a_refresh_token_works_once_and_the_last_two_tokens_side_by_side(rotating: Emulator) -> None:
    first = await exchanged(rotating, TOKEN)
    second = await refreshed(rotating, str(first["refresh_token"]))
    with pytest.raises(SlackApiError, match="invalid_refresh_token"):
        await refreshed(rotating, str(first["refresh_token"]))
    assert {await whose(rotating, pair["access_token"]) for pair in (first, second)} == {"T0NORTHWIND"}
    third = await refreshed(rotating, str(second["refresh_token"]))
    assert await whose(rotating, third["access_token"]) == "T0NORTHWIND"
    with pytest.raises(SlackApiError, match="invalid_auth"):
        await whose(rotating, first["access_token"])


async def test_a_token_expires_after_twelve_hours_of_the_emulators_clock(rotating: Emulator) -> None:
    pair = await exchanged(rotating, TOKEN)
    async with EmulatorClient(rotating.url) as people:
        await people.advance_clock(43_199)
        assert await whose(rotating, pair["access_token"]) == "T0NORTHWIND"
        await people.advance_clock(2)
    with pytest.raises(SlackApiError, match="token_expired"):
        await whose(rotating, pair["access_token"])
    assert (
        await whose(rotating, (await refreshed(rotating, str(pair["refresh_token"])))["access_token"]) == "T0NORTHWIND"
    )


@pytest.fixture
async def grid(sink: Sink) -> AsyncIterator[Emulator]:
    config = EmulatorConfig(
        signing_secret="s", client_id="1.2", client_secret="shh", bot_token=TOKEN, request_url=sink.url, grid=True
    )
    async with Emulator(config) as emulator:
        yield emulator


async def in_org(emulator: Emulator) -> AsyncWebClient:
    async with aiohttp.ClientSession(emulator.url) as browser:
        return await exchange(emulator, (await decide(browser, "allow", "E0MERIDIAN:U0NOOR"))["code"])


async def test_an_organization_is_offered_as_a_whole_and_gives_one_token(grid: Emulator) -> None:
    async with aiohttp.ClientSession(grid.url) as browser, browser.get("/oauth/v2/authorize", params=ASKED) as response:
        assert "The whole of Meridian Group, as Noor Haddad" in await response.text()
    client = await in_org(grid)
    who = await client.auth_test()
    assert (who["team_id"], who["enterprise_id"], who["is_enterprise_install"]) == ("E0MERIDIAN", "E0MERIDIAN", True)
    teams = await client.auth_teams_list()
    assert [each["id"] for each in teams["teams"]] == ["T0MERIDIANEU", "T0MERIDIANAS"]
    async with aiohttp.ClientSession(grid.url) as browser:
        with pytest.raises(SlackApiError, match="cannot_install_an_org_installed_app"):
            await exchange(grid, (await decide(browser, "allow", "T0MERIDIANEU:U0NOOR"))["code"])


async def test_an_organizations_token_has_to_say_which_workspace_where_nothing_else_does(grid: Emulator) -> None:
    client = await in_org(grid)
    await client.chat_postMessage(channel="C0MERIDIANPERFORMANCE", text="hello")
    with pytest.raises(SlackApiError, match="missing_argument"):
        await client.users_list()
    there = await client.users_list(team_id="T0MERIDIANAS")
    assert "U0KENJI" in {each["id"] for each in there["members"]}
    with pytest.raises(SlackApiError, match="team_not_found"):
        await client.users_list(team_id="T0NOWHERE")
    with pytest.raises(SlackApiError, match="team_access_not_granted"):
        await client.chat_postMessage(channel="C0CAMPAIGNS", text="hello")


async def test_events_and_commands_say_that_an_installation_is_org_wide(grid: Emulator, sink: Sink) -> None:
    await in_org(grid)
    async with EmulatorClient(grid.url) as people:
        await people.post_message("#performance", "@kenji", "@Threadline hi")
        await settled(people)
        [authorization] = sink.events("app_mention")[0]["authorizations"]
        assert (authorization["enterprise_id"], authorization["team_id"]) == ("E0MERIDIAN", "T0MERIDIANAS")
        assert authorization["is_enterprise_install"] is True
        await people.command("#performance", "@kenji", "/report")
    fields = parse_qs(sink.requests[-1].body.decode())
    assert (fields["is_enterprise_install"], fields["enterprise_id"]) == (["true"], ["E0MERIDIAN"])
