"""Block Kit for approvals: a card that always tells the truth about its state."""

from typing import Any

from agent.channel import Card
from bot.render.dates import moment
from bot.render.text import fallback, quoted, shortened

APPROVE = "approval_approve"
DENY = "approval_deny"
DENY_WHY = "approval_deny_why"
"""Denies by a dialog that asks for a reason."""

NAMED = 20
"""Approvers named on a card."""
FACTS = 60
"""Facts shown, in sections of ten: with title, context and buttons they stay within a message's size."""

Blocks = list[dict[str, Any]]

STATES = {"approved": ":white_check_mark: Approved", "denied": ":no_entry: Denied", "expired": ":hourglass: Expired"}
HEADLINES = {"pending": "Approval needed", "approved": "Approved", "denied": "Denied", "expired": "Expired"}
NOBODY = (
    "You can't decide this by yourself, and there is nobody who can whom I could send it to. Ask for it in a channel, "
    "or ask an admin of the workspace to name approvers in `/threadline settings`."
)
OUTCOMES = {
    "done": "Done.",
    "refused": ":warning: It was not done; the thread says why.",
    "stopped": ":warning: It was not done: the conversation was stopped before.",
    "unknown": ":warning: It was cut off, and nobody knows whether it was done; the thread says more.",
}


def card_text(card: Card) -> str:
    """The card in one line, for notifications."""
    return fallback(f"{HEADLINES[card.state]}: {card.evidence.title}")


def card_blocks(card: Card) -> Blocks:
    """The card: what would happen, who asked, until when, and either two buttons or how it was decided."""
    title = quoted(card.evidence.title)
    blocks: Blocks = [_section(text=_mrkdwn(f"*{HEADLINES[card.state]}*\n{title}", 3000))]
    fields = [_mrkdwn(f"*{quoted(label)}*\n{quoted(value)}", 2000) for label, value in card.evidence.facts[:FACTS]]
    blocks += [_section(fields=fields[start : start + 10]) for start in range(0, len(fields), 10)]
    expires = f" · expires {moment(card.expires_at, card.requester.time_zone)}" if card.state == "pending" else ""
    blocks.append(_context(f"Asked by {_person(card.requester.id)}{expires}"))
    if card.approvers and card.state == "pending":
        named = ", ".join(_person(each) for each in card.approvers[:NAMED])
        more = f" and {len(card.approvers) - NAMED} more" if len(card.approvers) > NAMED else ""
        blocks.append(_context(f"Decided by an admin of the workspace, or by {named}{more}"))
    blocks += _sent(card)
    blocks.append(_decision(card) if card.state != "pending" else _buttons(card))
    return blocks


def small_card(card: Card) -> Blocks:
    """The card without its facts, where Slack refuses the whole one: it can still be decided, and tells how it was."""
    title = shortened(quoted(card.evidence.title), 1000)
    below = _decision(card) if card.state != "pending" else _buttons(card)
    return [_section(text=_mrkdwn(f"*{HEADLINES[card.state]}*\n{title}", 3000)), *_sent(card), below]


def _sent(card: Card) -> Blocks:
    """Who was asked, where they don't see the thread."""
    if card.sent_to is None or card.state != "pending":
        return []
    names = ", ".join(_person(each) for each in card.sent_to)
    return [_context(f"You can't decide this by yourself. I have sent it to {names}" if names else NOBODY)]


def _person(user_id: str) -> str:
    return f"<@{user_id}>" if user_id.startswith(("U", "W")) else quoted(user_id)


def _buttons(card: Card) -> dict[str, Any]:
    def button(action_id: str, text: str, **look: str) -> dict[str, Any]:
        label = {"type": "plain_text", "text": text}
        return {"type": "button", "action_id": action_id, "text": label, **look, "value": card.approval_id}

    elements = [
        button(APPROVE, "Approve", style="primary"),
        button(DENY, "Deny", style="danger"),
        button(DENY_WHY, "Deny, and say why…"),
    ]
    return {"type": "actions", "elements": elements}


def _decision(card: Card) -> dict[str, Any]:
    by = f" by {_person(card.by_user)}" if card.by_user else ""
    reason = f": {quoted(card.reason)}" if card.reason else ""
    came = f" · {OUTCOMES[card.outcome]}" if card.outcome else ""
    return _context(f"{STATES[card.state]}{by}{reason}{came}")


def _section(**content: Any) -> dict[str, Any]:
    return {"type": "section", **content}


def _context(text: str) -> dict[str, Any]:
    return {"type": "context", "elements": [_mrkdwn(text, 2000)]}


def _mrkdwn(text: str, limit: int) -> dict[str, Any]:
    return {"type": "mrkdwn", "text": shortened(text, limit)}
