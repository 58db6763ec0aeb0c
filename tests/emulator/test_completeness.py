"""The local Slack has every method of our table of Slack's, with its scopes, tier, required arguments and errors, and no others."""

import ast
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from slack_sdk.errors import SlackApiError
from slack_sdk.web.async_client import AsyncWebClient

import bot.emulator
from bot.emulator import Emulator, EmulatorClient, EmulatorConfig
from bot.emulator.api import METHODS as SERVED
from bot.emulator.config import BOT_SCOPES, DEFAULT_EVENTS
from bot.emulator.limits import tier_of
from bot.emulator.subscriptions import EVENT_SCOPES as SENT
from tests.bot.slack_scopes import EVENT_SCOPES, METHOD_SCOPES
from tests.emulator.conftest import SECRET, TOKEN
from tests.emulator.provocations import PROVOCATIONS, Stage, filled
from tests.emulator.slack_methods import COMMON, METHODS, NO_METHOD, OBSERVED

APP_TOKEN = "xapp-of-the-tests"
ALL_SCOPES = tuple(sorted({*BOT_SCOPES, *(scope for row in METHODS.values() for scope in row.scopes)}))
CONFIG = EmulatorConfig(
    signing_secret=SECRET,
    client_id="1.2",
    client_secret="shh",
    bot_token=TOKEN,
    scopes=ALL_SCOPES,
    unfurl_domains=("reports.example",),
)
CASES = [(name, error) for name, row in METHODS.items() for error in row.errors]


def token_for(name: str) -> str:
    return APP_TOKEN if SERVED[name].app_level else TOKEN


async def error_of(emulator: Emulator, name: str, token: str, args: dict[str, Any] | None = None) -> dict[str, Any]:
    """The answer of a call that has to fail."""
    client = AsyncWebClient(token, base_url=emulator.api_url, retry_handlers=[])
    with pytest.raises(SlackApiError) as caught:
        await client.api_call(name, json=args or {})
    return dict(caught.value.response.data)


def test_every_method_of_the_table_is_served_and_no_other() -> None:
    assert set(SERVED) == set(METHODS)
    assert set(METHOD_SCOPES) <= set(METHODS)


@pytest.mark.parametrize("name", METHODS)
def test_scopes_tier_and_required_arguments_are_slacks(name: str) -> None:
    row, served = METHODS[name], SERVED[name]
    assert set(served.scopes) == row.scopes
    assert sorted(served.required) == sorted(row.required)
    assert tier_of(name) == row.tier


async def test_a_call_without_a_required_argument_is_told_which() -> None:
    async with Emulator(replace(CONFIG, app_token=APP_TOKEN)) as emulator:
        for name, row in METHODS.items():
            for absent in row.required:
                args = {each: "x" for each in row.required if each != absent}
                answer = await error_of(emulator, name, token_for(name), args)
                assert answer["error"] == "invalid_arguments", (name, absent)
                assert answer["response_metadata"]["messages"] == [f"[ERROR] missing required field: {absent}"]


async def test_no_method_answers_without_a_good_token() -> None:
    async with Emulator(replace(CONFIG, app_token=APP_TOKEN)) as emulator, EmulatorClient(emulator.url) as people:
        closed = [name for name, served in SERVED.items() if not served.open]
        assert len(closed) == len(METHODS) - 4
        for name in closed:
            assert (await error_of(emulator, name, ""))["error"] == "not_authed", name
            assert (await error_of(emulator, name, "xoxb-nobody"))["error"] == "invalid_auth", name
            if SERVED[name].app_level:
                assert (await error_of(emulator, name, TOKEN))["error"] == "not_allowed_token_type", name
        await people.uninstall()
        for name in closed:
            if not SERVED[name].app_level:
                assert (await error_of(emulator, name, TOKEN))["error"] == "account_inactive", name


async def test_every_method_with_scopes_says_which_it_needs() -> None:
    async with Emulator(replace(CONFIG, scopes=("commands",))) as emulator:
        for name, row in METHODS.items():
            if row.scopes:
                answer = await error_of(emulator, name, TOKEN)
                assert (answer["error"], answer["provided"]) == ("missing_scope", "commands"), name
                assert set(answer["needed"].split(",")) == row.scopes


@pytest.mark.parametrize(("name", "error"), CASES, ids=lambda value: value)
async def test_each_error_comes_when_it_should(name: str, error: str) -> None:
    case = PROVOCATIONS[name][error]
    extra: dict[str, Any] = {"app_token": APP_TOKEN} if SERVED[name].app_level else {}
    config = replace(CONFIG, **extra, **case.config, scopes=case.scopes or CONFIG.scopes)
    async with Emulator(config) as emulator, EmulatorClient(emulator.url) as people:
        stage = Stage(emulator, people, AsyncWebClient(TOKEN, base_url=emulator.api_url, retry_handlers=[]))
        given = await case.before(stage) if case.before else None
        answer = await error_of(emulator, name, token_for(name), filled(case.args, given or {}))
    assert answer["error"] == error


def test_no_error_is_made_up() -> None:
    """Whatever stands in the source as an error of the Web API is one that Slack has."""
    known = COMMON | OBSERVED | NO_METHOD | {error for row in METHODS.values() for error in row.errors}
    raised = set()
    for path in Path(bot.emulator.__path__[0]).rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "SlackError":
                raised |= {each.value for each in node.args[:1] if isinstance(each, ast.Constant)}
    assert len(raised) > 80
    assert raised - known == set()


def test_events_are_those_of_the_manifest_and_need_the_same_scopes() -> None:
    assert set(DEFAULT_EVENTS) == set(EVENT_SCOPES)
    assert all(set(SENT[name]) == scopes for name, scopes in EVENT_SCOPES.items())
