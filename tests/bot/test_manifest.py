"""The manifest and the Procfile say what the code does: no event, scope, command or role more or less."""

import ast
import re
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
import yaml
from slack_sdk.web.async_client import AsyncWebClient

from bot import events
from bot.cli import _parser
from bot.emulator.config import DEFAULT_COMMANDS, DEFAULT_PROMPTS
from bot.oauth import SCOPES
from tests.bot.bench import Bench, envelope
from tests.bot.slack_scopes import EVENT_SCOPES, FEATURE_SCOPES, METHOD_SCOPES

ROOT = Path(__file__).parents[2]
BOT = ROOT / "bot"
MANIFEST: dict[str, Any] = yaml.safe_load((ROOT / "manifest.yml").read_text())
FEATURES, SETTINGS = MANIFEST["features"], MANIFEST["settings"]
EVENTS = SETTINGS["event_subscriptions"]["bot_events"]
BOT_SCOPES = MANIFEST["oauth_config"]["scopes"]["bot"]
BY_BOLT = {"oauth.v2.access"}
"""Called by Bolt's OAuth flow for us."""

KEYS: dict[str, set[str]] = {
    "": {"_metadata", "display_information", "features", "oauth_config", "settings"},
    "_metadata": {"major_version", "minor_version"},
    "display_information": {"name", "description", "background_color", "long_description"},
    "features": {"app_home", "bot_user", "agent_view", "slash_commands", "shortcuts", "unfurl_domains", "functions", "workflow_steps"},
    "features.app_home": {"home_tab_enabled", "messages_tab_enabled", "messages_tab_read_only_enabled"},
    "features.bot_user": {"display_name", "always_online"},
    "features.agent_view": {"agent_description", "suggested_prompts", "actions"},
    "oauth_config": {"redirect_urls", "scopes", "token_management_enabled", "pkce_enabled"},
    "oauth_config.scopes": {"bot", "user", "bot_optional", "user_optional"},
    "settings": {
        "event_subscriptions", "interactivity", "incoming_webhooks", "allowed_ip_address_ranges", "org_deploy_enabled",
        "socket_mode_enabled", "token_rotation_enabled", "is_mcp_enabled", "siws_links", "function_runtime", "is_hosted",
    },
    "settings.event_subscriptions": {"request_url", "bot_events", "user_events", "metadata_subscriptions"},
    "settings.interactivity": {"is_enabled", "request_url", "message_menu_options_url"},
}  # fmt: skip
"""What Slack's manifest schema (slackapi/manifest-schema) allows, of the parts that are used; it refuses anything else."""

LENGTHS = {
    "display_information.name": (1, 35),
    "display_information.description": (1, 140),
    "display_information.long_description": (175, 4000),
    "features.bot_user.display_name": (1, 80),
    "features.agent_view.agent_description": (1, 300),
}
SWITCHES = (
    "features.app_home.home_tab_enabled", "features.app_home.messages_tab_enabled", "features.app_home.messages_tab_read_only_enabled",
    "features.bot_user.always_online", "settings.interactivity.is_enabled", "settings.org_deploy_enabled", "settings.socket_mode_enabled",
    "settings.token_rotation_enabled",
)  # fmt: skip


def at(path: str) -> Any:
    found: Any = MANIFEST
    for name in filter(None, path.split(".")):
        found = found[name]
    return found


def urls(value: Any) -> Iterator[str]:
    if isinstance(value, str) and "://" in value:
        yield value
    for each in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from urls(each)


def called_methods() -> set[str]:
    """The Web API methods that the bot's modules call, by the names of slack_sdk's methods; the local Slack is not the bot."""
    known = {name.replace(".", "_"): name for name in METHOD_SCOPES}
    sdk = {name for name in dir(AsyncWebClient) if re.fullmatch(r"[a-z]+(_[a-zA-Z0-9]+)+", name)} - {"api_call"}
    found = set()
    for path in BOT.rglob("*.py"):
        if "emulator" in path.parts:
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Attribute) and node.attr in sdk:
                assert node.attr in known, f"{path.name} calls {node.attr}: say in slack_scopes.py what it needs"
                found.add(known[node.attr])
    return found


@pytest.mark.parametrize("path", KEYS)
def test_slack_knows_every_key(path: str) -> None:
    assert set(at(path)) <= KEYS[path]


@pytest.mark.parametrize("path", LENGTHS)
def test_texts_are_as_long_as_slack_takes_them(path: str) -> None:
    least, most = LENGTHS[path]
    assert least <= len(at(path)) <= most


@pytest.mark.parametrize("path", SWITCHES)
def test_switches_are_true_or_false(path: str) -> None:
    assert isinstance(at(path), bool)


def test_lists_hold_each_thing_once_and_in_order() -> None:
    for names in (EVENTS, BOT_SCOPES):
        assert names == sorted(set(names))
    assert len(EVENTS) <= 100
    assert len(BOT_SCOPES) <= 255


def test_every_event_is_handled_and_every_handled_event_is_subscribed() -> None:
    subscribed = {"message" if name.startswith("message.") else name for name in EVENTS}
    assert subscribed == set(events.HANDLED)
    assert set(EVENTS) == set(EVENT_SCOPES)


def test_the_scopes_are_exactly_what_events_calls_and_features_need() -> None:
    methods = called_methods() | BY_BOLT
    assert methods == set(METHOD_SCOPES), "slack_scopes.py lists what is used and no more"
    needs = [EVENT_SCOPES[name] for name in EVENTS]
    needs += [METHOD_SCOPES[name] for name in methods]
    needs += [FEATURE_SCOPES[name] for name in FEATURES if name in FEATURE_SCOPES]
    assert set(BOT_SCOPES) == set().union(*needs)


def test_an_install_asks_for_what_the_manifest_says() -> None:
    assert sorted(SCOPES) == BOT_SCOPES
    assert set(at("oauth_config.scopes")) == {"bot"}


def test_every_command_has_its_handler_and_every_handler_its_command(bench: Bench) -> None:
    service = bench.service
    handled = {f"/{name}" for name in service.commands.names}
    declared = {each["command"]: each for each in FEATURES["slash_commands"]}
    assert set(declared) == handled
    for name, each in declared.items():
        assert re.fullmatch(r"/[a-z-]{1,31}", name)
        assert set(each) == {"command", "url", "description", "usage_hint", "should_escape"}
        assert 1 <= len(each["description"]) <= 2000
    local = {each.command: (each.description, each.usage_hint) for each in DEFAULT_COMMANDS}
    assert {name: (each["description"], each["usage_hint"]) for name, each in declared.items()} == local


def test_there_is_one_host_over_https_and_only_paths_that_are_served(bench: Bench) -> None:
    found = [urlsplit(url) for url in urls(MANIFEST)]
    assert {url.scheme for url in found} == {"https"}
    assert len({url.netloc for url in found}) == 1
    served = {resource.canonical for resource in bench.service.web().router.resources()}
    assert {url.path for url in found} == {"/slack/events", "/slack/oauth_redirect"}
    assert {url.path for url in found} <= served
    assert all(urlsplit(url).path == "/slack/events" for url in urls([SETTINGS, FEATURES]))


def test_it_is_an_agent_of_2026() -> None:
    view = FEATURES["agent_view"]
    assert "assistant_view" not in FEATURES
    assert 1 <= len(view["suggested_prompts"]) <= 4
    assert all(set(prompt) == {"title", "message"} for prompt in view["suggested_prompts"])
    assert view["suggested_prompts"] == [asdict(prompt) for prompt in DEFAULT_PROMPTS]
    assert FEATURES["app_home"]["messages_tab_enabled"]
    assert not FEATURES["app_home"]["messages_tab_read_only_enabled"]


async def test_every_suggested_prompt_has_an_answer(bench: Bench) -> None:
    for prompt in FEATURES["agent_view"]["suggested_prompts"]:
        ts = await bench.people.post_message("dm:@ada", "@ada", prompt["message"])
        answer = await bench.answer(ts, "dm:@ada")
        await bench.idle()  # a line that comes while an answer is told belongs to what was asked
        assert len(answer["plain"]) > 80, prompt
        assert "don't understand" not in answer["plain"]


async def test_every_subscribed_event_is_acknowledged(bench: Bench) -> None:
    for name in EVENTS:
        kind = name.partition(".")[0]
        assert (await bench.post_json(envelope({"type": kind}))).status == 200


def test_the_procfile_starts_the_roles_there_are() -> None:
    lines = dict(line.split(": ", 1) for line in (ROOT / "Procfile").read_text().splitlines())
    assert list(lines) == ["web", "worker", "clock"]
    for role, line in lines.items():
        words = line.split()
        program = words.index("threadline")
        assert all(re.fullmatch(r"[A-Z_]+=\S+", word) for word in words[:program])
        assert _parser().parse_args(words[program + 1 :]).role == role
    assert "HOST=0.0.0.0" in lines["web"], "a platform's router can't reach the loopback"
