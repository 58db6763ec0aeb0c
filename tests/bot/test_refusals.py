"""What Slack means by an error: later, nowhere here, not in this form, or not at all. Each is told apart in one place."""

from itertools import combinations
from typing import Any

import pytest
from slack_sdk.errors import SlackApiError
from slack_sdk.web.async_slack_response import AsyncSlackResponse

from agent.channel import ChannelGoneError, ChannelUnavailableError
from bot.render.refusals import FILES, GONE, LATER, LIMITED, LOST, REFUSED_FORMS, FileRefusedError, meaning


def answered(code: str, *, status: int = 200, headers: dict[str, str] | None = None, body: Any = None) -> SlackApiError:
    told: dict[str, Any] = {
        "client": None, "http_verb": "POST", "api_url": "https://slack.com/api/x", "req_args": {}, "headers": headers or {}, "status_code": status,
        "data": {"ok": False, "error": code} if body is None else body,
    }  # fmt: skip
    raised: Any = SlackApiError
    error: SlackApiError = raised(code, AsyncSlackResponse(**told))
    return error


def test_no_code_means_two_things() -> None:
    for one, other in combinations([set(GONE), LATER, LIMITED, REFUSED_FORMS], 2):
        assert not one & other
    assert set(FILES).isdisjoint(LATER | LIMITED | set(GONE))


@pytest.mark.parametrize("code", sorted(GONE))
def test_a_place_or_an_app_that_is_gone(code: str) -> None:
    error = meaning(answered(code))
    assert isinstance(error, ChannelGoneError)
    assert error.place == LOST.get(code, "")


@pytest.mark.parametrize("code", sorted(LATER))
def test_slacks_own_trouble_may_have_been_done(code: str) -> None:
    error = meaning(answered(code))
    assert isinstance(error, ChannelUnavailableError)
    assert error.maybe_posted


@pytest.mark.parametrize(
    ("code", "status", "headers", "wait_s"),
    [
        ("ratelimited", 429, {"Retry-After": "7"}, 7),
        ("ratelimited", 200, {"retry-after": "3"}, 3),
        ("rate_limited", 200, {}, 60),
        ("message_limit_exceeded", 200, {}, 60),
        ("", 429, {"Retry-After": "Mon, 30 Nov 2026 09:00:00 GMT"}, 60),
    ],
)
def test_who_is_asked_to_wait_has_sent_nothing(code: str, status: int, headers: dict[str, str], wait_s: float) -> None:
    error = meaning(answered(code, status=status, headers=headers))
    assert isinstance(error, ChannelUnavailableError)
    assert (error.retry_after_s, error.maybe_posted) == (wait_s, False)


@pytest.mark.parametrize("status", [500, 502, 503, 504])
def test_a_page_of_a_proxy_is_slacks_trouble(status: int) -> None:
    error = meaning(answered("", status=status, body="<html>bad gateway</html>"))
    assert isinstance(error, ChannelUnavailableError)
    assert error.maybe_posted


@pytest.mark.parametrize(
    "code", [*sorted(REFUSED_FORMS), "missing_scope", "cant_update_message", "update_failed", "a_new_word"]
)
def test_anything_else_is_for_good(code: str) -> None:
    error = answered(code)
    assert meaning(error) is error


def test_why_a_file_is_refused_is_said_in_words() -> None:
    assert FileRefusedError("missing_scope").why == "I may not share files here until an admin installs me again"
    assert FileRefusedError("upload_413").why == "Slack says: upload_413"
    assert all(
        words[0].islower() and not words.endswith(".") for words in [*FILES.values(), *LOST.values()] if words[0] != "I"
    )
