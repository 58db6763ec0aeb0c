"""What Slack refuses in a view, and where it says that it is."""

from typing import Any

import pytest

from bot.emulator.errors import SlackError
from bot.emulator.surfaces import check_view

TITLE = {"type": "plain_text", "text": "Settings"}
ASK: dict[str, Any] = {
    "type": "input",
    "label": {"type": "plain_text", "text": "Why?"},
    "element": {"type": "plain_text_input", "action_id": "a"},
}
MODAL: dict[str, Any] = {"type": "modal", "title": TITLE, "submit": TITLE, "blocks": [ASK]}


@pytest.mark.parametrize(
    ("change", "pointer"),
    [
        ({"type": "home"}, "/type"),
        ({"title": None}, "/title"),
        ({"title": {"type": "plain_text", "text": "x" * 25}}, "/title/text"),
        ({"title": {"type": "mrkdwn", "text": "x"}}, "/title/type"),
        ({"submit": None}, "/submit"),
        ({"submit": {"type": "plain_text", "text": "x" * 25}}, "/submit/text"),
        ({"close": {"type": "plain_text", "text": ""}}, "/close/text"),
        ({"callback_id": "x" * 256}, "/callback_id"),
        ({"private_metadata": "x" * 3001}, "/private_metadata"),
        ({"blocks": None}, "/blocks"),
        ({"blocks": "none"}, "/blocks"),
        ({"blocks": [{"type": "divider"}] * 101}, "/blocks"),
        ({"blocks": [{**ASK, "label": None}]}, "/blocks/0/label"),
        ({"blocks": [{**ASK, "element": {}}]}, "/blocks/0/element/type"),
        ({"blocks": [{**ASK, "hint": {"type": "plain_text", "text": "x" * 2001}}]}, "/blocks/0/hint/text"),
    ],
)
def test_the_fault_is_pointed_at(change: dict[str, Any], pointer: str) -> None:
    with pytest.raises(SlackError) as caught:
        check_view({**MODAL, **change}, kind="modal")
    assert caught.value.code == "invalid_arguments"
    [message] = caught.value.extra["response_metadata"]["messages"]
    assert message.endswith(f"[json-pointer:/view{pointer}]")


def test_what_is_right_is_taken() -> None:
    assert check_view(MODAL, kind="modal") is MODAL
    quiet = {"type": "modal", "title": TITLE, "blocks": []}
    assert check_view(quiet, kind="modal") is quiet
    assert check_view({"type": "home", "blocks": [ASK]}, kind="home")
