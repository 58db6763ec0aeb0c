"""Quotations and lists as the composer makes them of what is typed: in the text, and in the rich text beside it."""

from typing import Any

import pytest

from bot.emulator import EmulatorConfig
from bot.emulator.seed import northwind
from bot.emulator.typed import Typed

WORKSPACE = northwind(EmulatorConfig(signing_secret="x"))


def shape(text: str) -> list[Any]:
    """Each part's kind and its words; a list's, item by item."""

    def words(elements: list[Any]) -> str:
        return "".join(one.get("text") or f"@{one.get('user_id')}" for one in elements)

    def named(part: Any) -> tuple[str, Any]:
        if part["type"] == "rich_text_list":
            return f"list {part['style']}", [words(item["elements"]) for item in part["elements"]]
        return part["type"].removeprefix("rich_text_"), words(part["elements"])

    [block] = Typed(text, WORKSPACE).blocks
    return [named(part) for part in block["elements"]]


@pytest.mark.parametrize(
    ("typed", "text", "parts"),
    [
        ("> one\n> two\nthree", "&gt; one\n&gt; two\nthree", [("quote", "one\ntwo"), ("section", "three")]),
        (
            "Please:\n- pause A\n- ask @Ben Carter\n\nThanks",
            "Please:\n• pause A\n• ask <@U0BEN>\n\nThanks",
            [("section", "Please:\n"), ("list bullet", ["pause A", "ask @U0BEN"]), ("section", "\nThanks")],
        ),
        ("1. one\n2. two", "1. one\n2. two", [("list ordered", ["one", "two"])]),
        ("```\n- no\n> no\n```", "```- no\n&gt; no```", [("preformatted", "- no\n> no")]),
        ("a - b > c 1. d", "a - b &gt; c 1. d", [("section", "a - b > c 1. d")]),
        ("-5 % and > 3", "-5 % and &gt; 3", [("section", "-5 % and > 3")]),
    ],
)
def test_lines_are_told_apart_by_their_signs(typed: str, text: str, parts: list[Any]) -> None:
    assert Typed(typed, WORKSPACE).text == text
    assert shape(typed) == parts


def test_a_trailing_line_break_is_kept() -> None:
    assert Typed("- a\nb\n", WORKSPACE).text == "• a\nb\n"
