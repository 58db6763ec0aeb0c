"""What people think of an answer: two buttons below it, and a question for the reason."""

from typing import Any

RATE = "answer_feedback"
WHY = "answer_feedback_reason"
FIELD = "reason"
REASON_LIMIT = 2_000
Json = dict[str, Any]


def feedback_block(run_id: str) -> Json:
    """The buttons; their values name the run and what is thought of it."""
    return {
        "type": "context_actions",
        "elements": [
            {
                "type": "feedback_buttons",
                "action_id": RATE,
                "positive_button": _button("Helpful", f"good:{run_id}"),
                "negative_button": _button("Not helpful", f"bad:{run_id}"),
            }
        ],
    }


def reason_view(run_id: str) -> Json:
    """A modal that asks what was wrong. Nobody has to say."""
    field = {"type": "plain_text_input", "action_id": FIELD, "multiline": True, "max_length": REASON_LIMIT}
    return {
        "type": "modal",
        "callback_id": WHY,
        "private_metadata": run_id,
        "title": _plain("What was wrong?"),
        "submit": _plain("Send"),
        "close": _plain("Skip"),
        "blocks": [
            {
                "type": "input",
                "block_id": FIELD,
                "optional": True,
                "label": _plain("What should it have been?"),
                "element": field,
            }
        ],
    }


def _button(text: str, value: str) -> Json:
    return {"text": _plain(text), "value": value, "accessibility_label": text}


def _plain(text: str) -> Json:
    return {"type": "plain_text", "text": text}
