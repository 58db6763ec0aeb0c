"""What people think of an answer: two buttons below it."""

from typing import Any

RATE = "answer_feedback"
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


def _button(text: str, value: str) -> Json:
    return {"text": _plain(text), "value": value, "accessibility_label": text}


def _plain(text: str) -> Json:
    return {"type": "plain_text", "text": text}
