"""A wrong setting is a plain sentence before anything starts."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from bot.service import Service
from bot.settings import Settings, SettingsError, load_settings

SECRET = "s3cret-value"
GOOD: dict[str, Any] = {
    "SLACK_SIGNING_SECRET": SECRET,
    "SLACK_BOT_TOKEN": "xoxb-1",
    "DATABASE_URL": "postgresql://db/threadline",
}
KEY = "a:" + "A" * 43 + "="


@pytest.fixture(autouse=True)
def no_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for field in Settings.model_fields.values():
        monkeypatch.delenv(str(field.alias), raising=False)


def test_production_starts_with_what_it_needs() -> None:
    assert load_settings(**GOOD).environment == "production"
    by_socket = {**GOOD, "SLACK_SIGNING_SECRET": "", "SLACK_APP_TOKEN": "xapp-1"}
    assert load_settings(**by_socket).environment == "production"
    many = {
        **GOOD,
        "SLACK_BOT_TOKEN": "",
        "SLACK_CLIENT_ID": "1",
        "SLACK_CLIENT_SECRET": SECRET,
        "THREADLINE_ENCRYPTION_KEYS": KEY,
    }
    assert load_settings(**many).slack_client_id == "1"


@pytest.mark.parametrize(
    "changes, words",
    [
        ({"SLACK_SIGNING_SECRET": ""}, "not set: SLACK_SIGNING_SECRET (or SLACK_APP_TOKEN for Socket Mode). For development, use ./dev run"),
        ({"DATABASE_URL": ""}, "not set: DATABASE_URL"),
        ({"SLACK_BOT_TOKEN": ""}, "SLACK_BOT_TOKEN (one workspace) or SLACK_CLIENT_ID and SLACK_CLIENT_SECRET (many)"),
        ({"SLACK_CLIENT_ID": "1", "SLACK_CLIENT_SECRET": SECRET}, "THREADLINE_ENCRYPTION_KEYS"),
        ({"SLACK_CLIENT_ID": "1"}, "SLACK_CLIENT_ID and SLACK_CLIENT_SECRET go together"),
        ({"SLACK_APP_TOKEN": "xoxb-1"}, "SLACK_APP_TOKEN must be an app-level token, which begins with xapp-"),
        ({"PORT": "http"}, "PORT must be a number"),
        ({"PORT": "70000"}, "PORT: must be less than or equal to 65535"),
        ({"THREADLINE_LEASE_S": "0"}, "THREADLINE_LEASE_S: must be greater than 0"),
        ({"THREADLINE_LEASE_S": "5", "THREADLINE_BEAT_S": "5"}, "THREADLINE_BEAT_S must be shorter than THREADLINE_LEASE_S"),
        ({"THREADLINE_ENV": "prod"}, "THREADLINE_ENV: must be 'production', 'dev' or 'test'"),
        ({"THREADLINE_LOG_LEVEL": "loud"}, "THREADLINE_LOG_LEVEL: must be"),
        ({"REDIS_URL": "localhost:6379"}, "REDIS_URL must begin with redis://"),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "collector:4317"}, "OTEL_EXPORTER_OTLP_ENDPOINT must begin with http://"),
        ({"THREADLINE_PUBLIC_URL": "threadline.example.com"}, "THREADLINE_PUBLIC_URL must begin with https://"),
        ({"ANTHROPIC_BASE_URL": "proxy.internal"}, "ANTHROPIC_BASE_URL must begin with https://"),
        ({"OPENAI_BASE_URL": "localhost:8000/v1"}, "OPENAI_BASE_URL must begin with https://"),
        ({"OPENAI_BASE_URL": "http://[::1"}, "OPENAI_BASE_URL is no URL"),
        ({"THREADLINE_PUBLIC_URL": "https://threadline.example.com:https"}, "THREADLINE_PUBLIC_URL is no URL"),
        ({"SLACK_BOT_TOKEN": "hello"}, "SLACK_BOT_TOKEN is no bot token: they begin with xoxb-"),
        ({"SLACK_BOT_TOKEN": "xoxe.xoxb-1-abc"}, "SLACK_BOT_TOKEN is one that expires"),
        ({"THREADLINE_TENANT_CONCURRENCY": "50"}, "THREADLINE_TENANT_CONCURRENCY is more than THREADLINE_CONCURRENCY"),
    ],
)  # fmt: skip
def test_each_mistake_is_named_with_what_to_do(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(SettingsError) as caught:
        load_settings(**{**GOOD, **changes})
    assert words in str(caught.value)
    assert SECRET not in str(caught.value)
    assert "\n" not in str(caught.value)
    assert "Value error" not in str(caught.value)


@pytest.mark.parametrize(
    "changes, words",
    [
        ({"DATABASE_URL": "mysql://db"}, "DATABASE_URL must begin with postgresql://"),
        ({"THREADLINE_ENCRYPTION_KEYS": "a:c2hvcnQ="}, "THREADLINE_ENCRYPTION_KEYS: encryption key 'a' must have"),
        ({"THREADLINE_MODEL": "gpt"}, "gpt"),
        ({"THREADLINE_MODEL": "anthropic:claude"}, "ANTHROPIC_API_KEY"),
    ],
)
def test_what_only_the_parts_can_tell_is_told_as_well(tmp_path: Path, changes: dict[str, Any], words: str) -> None:
    settings = load_settings(**{**GOOD, "THREADLINE_DATA_DIR": str(tmp_path), **changes})
    with pytest.raises(SettingsError, match=words):
        Service(settings, worker=False, clock=False)


def test_a_broken_development_key_names_its_file(tmp_path: Path) -> None:
    (tmp_path / "encryption.key").write_text("nonsense")
    with pytest.raises(SettingsError, match=r"encryption\.key: encryption key number 1 has no id"):
        Service(load_settings(THREADLINE_ENV="test", THREADLINE_DATA_DIR=str(tmp_path)), worker=False, clock=False)


def test_the_api_url_ends_with_a_slash_whoever_wrote_it() -> None:
    assert (
        load_settings(**GOOD, SLACK_API_URL="https://slack.example/api").slack_api_url == "https://slack.example/api/"
    )


def test_admins_are_sent_to_an_install_page_that_there_is() -> None:
    public = {"THREADLINE_PUBLIC_URL": "https://threadline.example.com/"}
    oauth = {"SLACK_CLIENT_ID": "1", "SLACK_CLIENT_SECRET": SECRET, "THREADLINE_ENCRYPTION_KEYS": "a:b"}
    assert load_settings(**{**GOOD, **public, **oauth}).install_url == "https://threadline.example.com/slack/install"
    assert load_settings(**{**GOOD, **public}).install_url == ""
    assert load_settings(**{**GOOD, **oauth}).install_url == ""


def test_secrets_are_not_in_what_is_printed_of_settings() -> None:
    assert SECRET not in repr(load_settings(**GOOD))


@pytest.mark.process
@pytest.mark.parametrize("role", ["web", "worker", "clock"])
def test_the_command_says_it_in_one_line(role: str, tmp_path: Path) -> None:
    environment = {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path)}
    ended = subprocess.run(
        [sys.executable, "-m", "bot.cli", role], env=environment, capture_output=True, text=True, timeout=60, check=False
    )  # fmt: skip
    assert ended.returncode == 2
    assert ended.stderr.startswith("threadline: not set: SLACK_SIGNING_SECRET (or")
    assert len(ended.stderr.splitlines()) == 1


@pytest.mark.process
def test_an_operator_needs_the_database_and_no_secret(tmp_path: Path, engine_database: str) -> None:
    environment = {
        "PATH": "/usr/bin:/bin", "HOME": str(tmp_path), "DATABASE_URL": engine_database, "THREADLINE_DATA_DIR": str(tmp_path / "none"),
        "THREADLINE_MODEL": "anthropic:claude",
    }  # fmt: skip

    def doctor(**environment: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "bot.cli", "doctor"], env=environment, capture_output=True, text=True, timeout=60, check=False
        )  # fmt: skip

    ended = doctor(**environment)
    assert (ended.returncode, ended.stdout) == (0, "all runs are well\n"), ended.stderr
    assert not (tmp_path / "none").exists(), "and leaves no key behind"
    assert doctor(**{**environment, "DATABASE_URL": ""}).stderr.startswith("threadline: not set: DATABASE_URL")


@pytest.mark.process
def test_the_local_slack_is_no_part_of_what_is_deployed(tmp_path: Path) -> None:
    asked = "import sys, bot.cli, bot.roles, bot.operators; print([each for each in sys.modules if 'emulator' in each or each == 'bot.dev'])"
    ended = subprocess.run(
        [sys.executable, "-c", asked], capture_output=True, text=True, timeout=60, check=True
    )  # fmt: skip
    assert ended.stdout == "[]\n"
