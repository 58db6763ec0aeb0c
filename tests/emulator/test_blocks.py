"""Block Kit's limits, each named by a pointer."""

from typing import Any

import pytest

from bot.emulator.blocks import check_blocks
from bot.emulator.errors import SlackError


def text(length: int, kind: str = "mrkdwn") -> dict[str, Any]:
    return {"type": kind, "text": "x" * length}


def cells(*values: object) -> list[dict[str, Any]]:
    return [
        {"type": "raw_number", "value": v, "text": str(v)} if isinstance(v, int) else {"type": "raw_text", "text": v}
        for v in values
    ]


def table(rows: int) -> dict[str, Any]:
    header = cells("Campaign", "Spend")
    return {"type": "data_table", "caption": "Spend", "rows": [header, *(cells("Spring", n) for n in range(rows))]}


def chart(**changes: Any) -> dict[str, Any]:
    body = {
        "type": "bar",
        "series": [{"name": "Spend", "data": [{"label": "Mon", "value": 1}, {"label": "Tue", "value": 2.5}]}],
        "axis_config": {"categories": ["Mon", "Tue"], "x_label": "Day", "y_label": "EUR"},
        **changes,
    }
    return {"type": "data_visualization", "title": "Spend", "chart": body}


GOOD: list[dict[str, Any]] = [
    {"type": "header", "text": text(150, "plain_text")},
    {"type": "section", "text": text(3000)},
    {"type": "section", "fields": [text(10)] * 10},
    {"type": "markdown", "text": "**x**"},
    {"type": "context", "elements": [text(5)]},
    table(200),
    chart(),
    {
        "type": "data_visualization",
        "title": "Share",
        "chart": {"type": "pie", "segments": [{"label": "A", "value": 1}]},
    },
]


def test_what_slack_takes_is_taken() -> None:
    assert check_blocks(GOOD) == GOOD
    other = [{"type": "table", "rows": [cells("a", "b"), cells("c", "d")]}]
    assert check_blocks(other) == other


def test_a_message_shows_one_table() -> None:
    for second in (table(1), {"type": "table", "rows": [cells("a")]}):
        with pytest.raises(SlackError, match="invalid_blocks") as caught:
            check_blocks([table(1), second])
        assert "only_one_table_allowed" in str(caught.value.extra)


def rich(*elements: dict[str, Any]) -> dict[str, Any]:
    return {"type": "rich_text", "elements": [{"type": "rich_text_section", "elements": list(elements)}]}


@pytest.mark.parametrize(
    "cell, pointer",
    [
        (rich({"type": "text", "text": ""}), "/rows/1/1/elements/0/elements/0/text"),
        (rich({"type": "song"}), "/rows/1/1/elements/0/elements/0/type"),
        (rich({"type": "link", "url": ""}), "/rows/1/1/elements/0/elements/0/url"),
        (rich(), "/rows/1/1/elements/0/elements"),
        ({"type": "rich_text"}, "/rows/1/1/elements"),
        (rich(*[{"type": "text", "text": "x" * 9_000}] * 3), "/rows"),
    ],
)
def test_rich_cells_are_looked_into_and_count(cell: dict[str, Any], pointer: str) -> None:
    shown = {**table(0), "rows": [cells("a", "b"), [*cells("c"), cell]]}
    with pytest.raises(SlackError, match="invalid_blocks") as caught:
        check_blocks([shown])
    assert pointer in str(caught.value.extra)


@pytest.mark.parametrize(
    "block, pointer",
    [
        ({"type": "header", "text": text(151, "plain_text")}, "/blocks/0/text/text"),
        ({"type": "header", "text": text(5)}, "/blocks/0/text/type"),
        ({"type": "section"}, "/blocks/0/text"),
        ({"type": "section", "text": text(0)}, "/blocks/0/text/text"),
        ({"type": "section", "fields": [text(1)] * 11}, "/blocks/0/fields"),
        ({"type": "context", "elements": []}, "/blocks/0/elements"),
        (
            {"type": "actions", "elements": [{"type": "button", "text": text(76, "plain_text")}]},
            "/elements/0/text/text",
        ),
        ({"type": "song"}, "/blocks/0/type"),
        ({"type": "image", "alt_text": "x"}, "/blocks/0/image_url"),
        ({"type": "table", "rows": [cells("a")] * 101}, "/blocks/0/rows"),
        ({"type": "table", "rows": [cells("a"), cells("a", "b")]}, "/blocks/0/rows"),
        ({"type": "table", "rows": [cells("")]}, "/blocks/0/rows/0/0/text"),
        (table(201), "/blocks/0/rows"),
        (table(0), "/blocks/0/rows"),
        ({**table(1), "caption": ""}, "/blocks/0/caption"),
        ({**chart(), "title": "x" * 51}, "/blocks/0/title"),
        (chart(type="radar"), "/blocks/0/chart/type"),
        (chart(axis_config={"categories": ["Mon"]}), "/blocks/0/chart/series/0/data"),
        (chart(series=[]), "/blocks/0/chart/series"),
    ],
)
def test_what_slack_refuses_is_named(block: dict[str, Any], pointer: str) -> None:
    with pytest.raises(SlackError) as caught:
        check_blocks([block])
    assert caught.value.code == "invalid_blocks"
    assert any(pointer in message for message in caught.value.extra["response_metadata"]["messages"])


def test_no_more_than_fifty_blocks_and_two_charts() -> None:
    for blocks in ([{"type": "divider"}] * 51, [chart()] * 3):
        with pytest.raises(SlackError, match="invalid_blocks"):
            check_blocks(blocks)


def test_many_full_blocks_are_too_long_together() -> None:
    with pytest.raises(SlackError, match="msg_blocks_too_long"):
        check_blocks([{"type": "section", "text": text(3000)}] * 5)
