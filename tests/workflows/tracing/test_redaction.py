"""No secret gets into a span or a log, and nothing else is taken out."""

from datetime import UTC, datetime
from typing import Any

import pytest

from workflows.tracing import redact
from workflows.tracing.redaction import PATTERN, REDACTED, _suspicious

SECRETS = [
    "xoxb-1234567890-abcdefgh",
    "xoxe.xoxp-1-abcdefghijkl",
    "xapp-1-A0123-456-deadbeef",
    "sk-ant-api03-abcdefghijklmnop",
    "sk_live_abcdefghijklmn",
    "EAAGm0PX4ZCpsBAKZAcZBdefg123",
    "ya29.a0AfH6SMBx-abcdefghijkl",
    "AIzaSyA-1234567890abcdefghijklmnopqrstu",
    "GOCSPX-abcdefghijklmnopqrstuv",
    "ghp_abcdefghijklmnopqrstuvwxyz0123456789",
    "github_pat_11ABCDEFG0abcdefghijklmnopqrstuv",
    "AKIAIOSFODNN7EXAMPLE",
    "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.dozjgNryP4J3jVmNHl0w",
    "Bearer abcdefghijklmnop1234",
    "authorization: basic dXNlcjpwYXNzd29yZA==",
    "-----BEGIN RSA PRIVATE KEY-----\nMIIE\n-----END RSA PRIVATE KEY-----",
    "postgresql://ada:hunter2@db/threadline",
    "v0=" + "0f" * 32,
]


@pytest.mark.parametrize("secret", SECRETS)
def test_a_secret_is_taken_out_wherever_it_stands(secret: str) -> None:
    for value in (
        secret,
        f"a {secret} b",
        {"a": [{"b": secret}]},
        (secret,),
        {"raw": secret.encode()},
        f"{secret} " * 20,
    ):
        kept = str(redact(value))
        assert REDACTED in kept
        assert not any(part in kept for part in (secret, "hunter2", "MIIE"))


@pytest.mark.parametrize("secret", SECRETS)
def test_the_quick_look_lets_no_secret_pass(secret: str) -> None:
    """Each marker of the quick look belongs to a pattern; a pattern without one would never be tried."""
    assert PATTERN.search(secret)
    assert _suspicious(secret)


@pytest.mark.parametrize(
    "name", ["token", "bot_token", "API_KEY", "apikey", "password", "Authorization", "client_secret", "cookie"]
)
@pytest.mark.parametrize("value", ["hunter2", ["hunter2"], {"value": "hunter2"}, b"hunter2"])
def test_a_value_with_a_secrets_name_is_taken_out_whatever_it_looks_like(name: str, value: Any) -> None:
    assert redact({name: value}) == {name: REDACTED}


@pytest.mark.parametrize(
    "value",
    [
        {"gen_ai.usage.input_tokens": 12, "path": "loop#3/call_model", "ratio": 0.5, "none": None, "yes": True},
        "a task-force that risks nothing, at https://example.com/a:b, through the night",
        {"at": datetime(2026, 1, 1, tzinfo=UTC), "ids": ["C1:171.5", "0199a1b2-1111-7222-8333-444455556666"]},
        "basic arithmetic, bearer of news",
        {"token": None, "password": 3},
    ],
)
def test_ordinary_values_stay_as_they_are(value: Any) -> None:
    assert redact(value) == value


def test_what_is_nested_too_deep_to_look_at_does_not_pass() -> None:
    value: Any = "xoxb-1234567890-abcdefgh"
    for _ in range(50):
        value = {"deeper": value}
    assert "xoxb" not in str(redact(value))


def test_the_original_is_not_changed() -> None:
    attributes = {"url": "redis://u:p@h", "list": ["sk-abcdefghijklmnopqrst"]}
    redact(attributes)
    assert attributes == {"url": "redis://u:p@h", "list": ["sk-abcdefghijklmnopqrst"]}
