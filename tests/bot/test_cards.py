"""The approval card says in every state what is true."""

from datetime import UTC, datetime
from typing import Any, get_args

import pytest

from agent.channel import Card, Decision
from agent.models.base import Person
from agent.tools import Evidence
from bot.emulator.blocks import check_blocks
from bot.render.cards import APPROVE, DENY, DENY_WHY, OUTCOMES, STATES, card_blocks, card_text

ADA = Person(id="U0ADA", name="Ada")
FACTS = (("Campaign", "Brand Search"), ("Now", "€120.00 a day"), ("Then", "€150.00 a day"))


def card(state: Decision = "pending", **changes: Any) -> Card:
    given: dict[str, Any] = {
        "approval_id": "a1",
        "evidence": Evidence(title="Raise the budget of Brand Search", facts=FACTS),
        "requester": ADA,
        "expires_at": datetime(2026, 11, 30, 9, tzinfo=UTC),
        "state": state,
        **changes,
    }
    return Card.model_validate(given)


def shown(blocks: list[dict[str, Any]]) -> str:
    return str(blocks)


def buttons(blocks: list[dict[str, Any]]) -> list[str]:
    return [element["action_id"] for block in blocks if block["type"] == "actions" for element in block["elements"]]


@pytest.mark.parametrize("state", get_args(Decision))
def test_the_facts_and_who_asked_are_there_in_every_state(state: Decision) -> None:
    blocks = card_blocks(card(state, by_user=None if state in ("pending", "expired") else "U0BEN"))
    for words in ("Raise the budget of Brand Search", "€120.00 a day", "€150.00 a day", "<@U0ADA>"):
        assert words in shown(blocks)
    check_blocks(blocks)


def test_only_a_pending_card_can_be_clicked() -> None:
    assert buttons(card_blocks(card())) == [APPROVE, DENY, DENY_WHY]
    for state in STATES:
        assert buttons(card_blocks(card(state))) == []  # type: ignore[arg-type]


@pytest.mark.parametrize("outcome", [None, *OUTCOMES])
def test_an_approved_card_says_what_came_of_it_and_no_longer_asks(outcome: Any) -> None:
    blocks = card_blocks(card("approved", by_user="U0BEN", outcome=outcome))
    assert [words for words in OUTCOMES.values() if words in shown(blocks)] == ([OUTCOMES[outcome]] if outcome else [])
    assert "Approval needed" not in shown(blocks)
    assert "expires" not in shown(blocks)
    check_blocks(blocks)


@pytest.mark.parametrize(
    "state, by, reason, words",
    [
        ("approved", "U0BEN", None, "Approved by <@U0BEN>"),
        ("denied", "U0BEN", "too much & <too> soon", "Denied by <@U0BEN>: too much &amp; &lt;too&gt; soon"),
        ("expired", None, None, "Expired"),
    ],
)
def test_a_decided_card_says_who_and_why(state: Decision, by: str | None, reason: str | None, words: str) -> None:
    assert words in shown(card_blocks(card(state, by_user=by, reason=reason)))


@pytest.mark.parametrize(
    "zone, words",
    [
        ("Europe/Berlin", "1 December 2026, 00:06 CET"),
        ("America/New_York", "30 November 2026, 18:06 EST"),
        ("Asia/Dubai", "1 December 2026, 03:06 UTC+04"),
        ("UTC", "30 November 2026, 23:06 UTC"),
        ("Mars/Base", "30 November 2026, 23:06 UTC"),
        ("../etc/passwd", "30 November 2026, 23:06 UTC"),
    ],
)
def test_where_dates_are_shown_as_words_they_are_in_the_zone_of_whoever_asked(zone: str, words: str) -> None:
    at = datetime(2026, 11, 30, 23, 6, tzinfo=UTC)
    requester = ADA.model_copy(update={"time_zone": zone})
    expires = f"expires <!date^{int(at.timestamp())}^{{date_short_pretty}} {{time}}|{words}>"
    assert expires in shown(card_blocks(card(expires_at=at, requester=requester)))


def test_a_value_is_data_and_never_markup_or_a_ping() -> None:
    evil = Evidence(title="<!channel> *bold* <https://evil.example|Approve>", facts=(("<b>", "@here <!everyone>"),))
    blocks = card_blocks(card(evidence=evil))
    assert "<!" not in shown(blocks).replace("<!date^", "")
    assert "<https" not in shown(blocks)
    assert "@here" not in shown(blocks)
    assert "<!" not in card_text(card(evidence=evil))


def test_no_fact_is_hidden_and_every_limit_is_met() -> None:
    facts = tuple((f"Fact {number}", "&" * 5_000) for number in range(25))
    blocks = card_blocks(
        card("denied", evidence=Evidence(title="&" * 9_000, facts=facts), by_user="U0BEN", reason="<" * 9_000)
    )
    assert all(f"Fact {number}*" in shown(blocks) for number in range(25))
    for block in blocks:
        for text in [
            *block.get("fields", []),
            *block.get("elements", []),
            *([block["text"]] if "text" in block else []),
        ]:
            assert len(text["text"]) <= (3000 if block.get("text") is text else 2000)
    assert len(card_text(card(evidence=Evidence(title="&" * 9_000)))) <= 3_500


def test_a_card_of_usual_size_is_taken_by_slack() -> None:
    facts = tuple((f"Fact {number}", "value " * 20) for number in range(40))
    check_blocks(card_blocks(card(evidence=Evidence(title="Title", facts=facts))))


def test_a_fact_without_a_value_is_taken_by_slack() -> None:
    check_blocks(card_blocks(card(evidence=Evidence(title="", facts=(("", ""),)))))
