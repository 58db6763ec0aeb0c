"""Markdown tables as Slack's own: what is in the cells, what becomes of those that don't fit, and nothing of any is lost."""

import json
import re
import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.emulator.blocks import check_blocks
from bot.render.grids import sections
from bot.render.messages import TABLES, messages
from bot.render.tables import CELLS_LIMIT, COLUMNS_LIMIT, ROWS_LIMIT
from bot.render.text import MARKDOWN_LIMIT, TEXT_LIMIT, unescaped
from tests.bot.reading import is_within, letters, read

Json = dict[str, Any]


def shown(text: str) -> list[Json]:
    """The blocks of an answer that is one message."""
    (message,) = messages(text)
    check_blocks(message.blocks)
    return message.blocks


def table(text: str) -> Json:
    (block,) = [block for block in shown(text) if block["type"] == "data_table"]
    return block


def body(text: str) -> list[Any]:
    """The only row below the head: words as such, numbers with their values, and the elements of rich text."""
    _, row = table(text)["rows"]
    return [
        cell["elements"][0]["elements"] if cell["type"] == "rich_text" else (cell["text"], cell["value"]) if "value" in cell else cell["text"]
        for cell in row
    ]  # fmt: skip


def test_words_and_a_table_between_them_keep_their_order() -> None:
    blocks = shown("# Spend\n\nBefore.\n\n### By campaign\n| A | B |\n|---|---|\n| x | 1 |\n\nAfter.")
    assert [block["type"] for block in blocks] == ["markdown", "data_table", "markdown"]
    assert blocks[0]["text"] == "# Spend\n\nBefore.\n\n### By campaign"
    assert blocks[1]["caption"] == "By campaign"
    assert blocks[2]["text"] == "After."


@pytest.mark.parametrize(
    ("cell", "wanted"),
    [
        ("", "\u2013"),
        ("plain", "plain"),
        ("a \\| b", "a | b"),
        ("`a \\| b`", [{"type": "text", "text": "a | b", "style": {"code": True}}]),
        ("AT&amp;T & `<b>`", [{"type": "text", "text": "AT&T & "}, {"type": "text", "text": "<b>", "style": {"code": True}}]),
        ("**bold** _it_", [
            {"type": "text", "text": "bold", "style": {"bold": True}}, {"type": "text", "text": " "}, {"type": "text", "text": "it", "style": {"italic": True}},
        ]),
        ("**_~~all~~_**", [{"type": "text", "text": "all", "style": {"bold": True, "italic": True, "strike": True}}]),
        ("[go](https://a.io/x?a=1&b=2)", [{"type": "link", "url": "https://a.io/x?a=1&b=2", "text": "go"}]),
        ("**[go](https://a.io)**", [{"type": "link", "url": "https://a.io", "text": "go", "style": {"bold": True}}]),
        ("<https://a.io\\|go>", [{"type": "link", "url": "https://a.io", "text": "go"}]),
        ("see https://a.io/x", [{"type": "text", "text": "see "}, {"type": "link", "url": "https://a.io/x"}]),
        ("<@U0ADA> in <#C1>", [{"type": "user", "user_id": "U0ADA"}, {"type": "text", "text": " in "}, {"type": "channel", "channel_id": "C1"}]),
        ("![chart](https://a.io/c.png)", [{"type": "link", "url": "https://a.io/c.png", "text": "chart"}]),
        ("![nothing]()", "nothing"),
        ("[x](javascript:alert(1))", "[x](javascript:alert(1))"),
        ("one<br>two", [{"type": "text", "text": "one\ntwo"}]),
        ("<!channel>", "<!channel>"),  # no element of Slack's: a cell's words are words
        ("snake_case_name 2*3*4", [{"type": "text", "text": "snake_case_name 2"}, {"type": "text", "text": "3", "style": {"italic": True}}, {"type": "text", "text": "4"}]),
    ],
)  # fmt: skip
def test_what_is_in_a_cell(cell: str, wanted: Any) -> None:
    assert body(f"| a | b |\n|---|---|\n| {cell} | z |") == [wanted, "z"]


def test_a_head_has_words_alone_and_loses_no_address() -> None:
    head, _ = table("| **Name** | [Docs](https://a.io) | `c` | <@U0ADA> |\n|-|-|-|-|\n| a | b | c | d |")["rows"]
    assert [cell["text"] for cell in head] == ["Name", "Docs (https://a.io)", "c", "<@U0ADA>"]
    assert {cell["type"] for cell in head} == {"raw_text"}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("12", 12), ("1,204.50", 1204.5), ("€1,204.50", 1204.5), ("-3.1 %", -3.1), ("+3%", 3), ("\u22123", -3), ("$-5", -5), ("-$5", -5),
        ("EUR 12", 12), ("12 EUR", 12), ("**€12**", 12), ("007", 7),
    ],
)  # fmt: skip
def test_numbers_are_sorted_as_such_and_read_as_they_were_written(text: str, value: float) -> None:
    assert body(f"| a | b |\n|---|--:|\n| x | {text} |") == ["x", (text.replace("*", ""), value)]


@pytest.mark.parametrize(
    "text",
    ["1.204,50", "12-14", "2026-11-30", "1 204", "12:30", "v2", "1" * 400, "+-3", "--3", "1e5", "NaN", "1,2,3", "3 %%"],
)
def test_what_might_be_read_otherwise_is_no_number(text: str) -> None:
    assert body(f"| a | b |\n|---|--:|\n| x | {text} |") == ["x", text]


def test_a_gap_in_a_column_of_numbers_is_no_matter_and_a_word_is() -> None:
    rows = table("| a | b | c |\n|-|-|-|\n| 1 | 1 | 1 |\n| n/a | | x |")["rows"]
    assert [[cell["type"] for cell in row] for row in rows[1:]] == [
        ["raw_number", "raw_number", "raw_text"],
        ["raw_text", "raw_text", "raw_text"],
    ]


def test_no_cell_is_dropped_where_rows_are_unlike() -> None:
    rows = table("| a | b |\n|---|---|\n| 1 | 2 | 3 |\n| 4 |\n")["rows"]
    assert [[cell["text"] for cell in row] for row in rows] == [
        ["a", "b", "\u2013"],
        ["1", "2", "3"],
        ["4", "\u2013", "\u2013"],
    ]


@pytest.mark.parametrize(
    "text",
    [
        "```\n| a | b |\n|---|---|\n| 1 | 2 |\n```",
        "~~~~\n| a | b |\n|---|---|\n| 1 | 2 |",
        "> | a | b |\n> |---|---|\n> | 1 | 2 |",
        "* item\n\n  | a | b |\n  |---|---|\n  | 1 | 2 |",
        "    | a | b |\n    |---|---|\n    | 1 | 2 |",
        "| a | b |\n|---|---|",
        "a | b, and no rule",
        "| a | b |\n|---|---|---|\n| 1 | 2 |",
    ],
    ids=["fence", "open fence", "quote", "list", "indented", "head alone", "no table", "rule of another width"],
)
def test_what_is_no_table_of_its_own_stays_as_it_was_written(text: str) -> None:
    assert shown(text) == [{"type": "markdown", "text": text.strip("\n")}]


def test_a_table_needs_no_bars_at_its_ends() -> None:
    assert body("a | b\n--|--\nx | y") == ["x", "y"]


# More than Slack shows


def columns(count: int, rows: int, cell: str = "x") -> str:
    line = f"| {' | '.join([cell] * count)} |"
    return "\n".join([line, f"|{'---|' * count}", *[line] * rows])


def test_150_rows_are_one_table() -> None:
    rows = [f"| Campaign {number} | {number}.00 |" for number in range(150)]
    block = table("\n".join(["| Campaign | Spend |", "|---|--:|", *rows]))
    assert [row[0]["text"] for row in block["rows"][1:]] == [f"Campaign {number}" for number in range(150)]
    assert [row[1]["value"] for row in block["rows"][1:]] == list(range(150))


@pytest.mark.parametrize("rows", [200, 201, 400, 401, 1_000])
def test_more_rows_go_on_in_the_next_message_under_the_same_head(rows: int) -> None:
    made = messages("\n".join(["| n |", "|---|", *(f"| {number} |" for number in range(rows))]))
    assert len(made) == -(-rows // (ROWS_LIMIT - 1))
    found = [message.blocks[0]["rows"] for message in made]
    assert all([cell["text"] for cell in part[0]] == ["n"] for part in found)
    assert [row[0]["value"] for part in found for row in part[1:]] == list(range(rows))


@pytest.mark.parametrize(
    ("text", "native"),
    [
        (columns(COLUMNS_LIMIT, 1), True),
        (columns(COLUMNS_LIMIT + 1, 1), False),
        (columns(2, 1, "y" * (CELLS_LIMIT // 4)), True),
        (columns(2, 1, "y" * (CELLS_LIMIT // 4 + 1)), False),
        (columns(2, 3, "&" * 600), True),
        (columns(1, 1, "&" * 6_000), False),
    ],
)
def test_a_table_that_can_be_none_of_slacks_is_code(text: str, native: bool) -> None:
    made = messages(text)
    for message in made:
        check_blocks(message.blocks)
    assert all(("data_table" in str(message.blocks)) is native for message in made)
    assert native or all(message.source.startswith("```\n") and message.source.endswith("\n```") for message in made)


def test_several_tables_that_fit_into_one_message_stay_in_one() -> None:
    """An answer is one message where it can be; in Markdown Slack shows any number of tables."""
    text = "\n\n".join(f"About {number}:\n\n| a | b |\n|---|---|\n| {number} | |" for number in range(6))
    (message,) = messages(text)
    assert message.blocks == [{"type": "markdown", "text": text}]
    assert message.in_words == []
    assert message.plain.count("```") == 12


def test_else_each_table_has_a_message_with_the_words_that_introduce_it() -> None:
    """Case 23: Slack shows one table in a message."""
    long = f"| {'x' * 2_000} | |\n"
    text = "\n\n".join(f"About {number}:\n\n| a | b |\n|---|---|\n{long}| {number} | |" for number in range(6))
    made = messages(f"{text}\n\nThat is all.")
    assert [[block["type"] for block in message.blocks] for message in made] == [
        *[["markdown", "data_table"]] * 5,
        ["markdown", "data_table", "markdown"],
    ]
    assert [message.blocks[0]["text"] for message in made] == [f"About {number}:" for number in range(6)]


def test_nobody_fills_a_thread_with_tables() -> None:
    made = messages("\n\n".join(f"| a |\n|---|\n| row {number} |" for number in range(2_000)))
    assert sum(message.has_table for message in made) == TABLES
    assert len(made) < TABLES + 10
    found = re.findall(r"row (\d+)", json.dumps([message.blocks for message in made]))
    assert found == [str(number) for number in range(2_000)]


def test_where_markdown_is_not_shown_tables_are_code_and_code_stays_what_it_is() -> None:
    text = "Look:\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\nend\n\n```\n| x | y |\n|---|---|\n```"
    (message,) = messages(text)
    assert message.plain == (
        "Look:\n\n```\n| a | b |\n|---|---|\n| 1 | 2 |\n```\n\nend\n\n```\n| x | y |\n|---|---|\n```"
    )


# Whatever is in them

ENTITY = re.compile(r"&#?\w+;")
"""In a cell it becomes the character it stands for, as in any Markdown."""

WORD = st.text("abcXYZ019 &<>\"'.,:;!?()%€-+#@/=\\", min_size=0, max_size=30).filter(
    lambda text: not ENTITY.search(text)
)
CELL = st.one_of(
    WORD,
    st.sampled_from(
        ["", "**b**", "`c`", "[l](https://a.io)", "<@U0ADA>", "1,204.50", "€3", "~~s~~", "\\|", "`", "*", "[", "](", "<!here>", "<b>", "\u202e", "é" * 50]
    ),
)  # fmt: skip
ROW = st.lists(CELL, min_size=1, max_size=23).map(lambda cells: f"| {' | '.join(cells)} |")
TABLE = st.builds(
    lambda head, rows: "\n".join([f"| {' | '.join(head)} |", f"|{'---|' * len(head)}", *rows]),
    st.lists(WORD.map(lambda text: text.replace("|", "")), min_size=1, max_size=22),
    st.lists(ROW, max_size=12),
)
PROSE = st.lists(
    st.one_of(WORD, st.sampled_from(["# Head", "* item", "> quote", "```", "    code", "---", "1. one", "|", "|-|"])), max_size=5
).map("\n".join)  # fmt: skip


@given(pieces=st.lists(PROSE | TABLE, max_size=6))
def test_any_answer_is_within_slacks_limits_and_nothing_of_it_is_lost(pieces: list[str]) -> None:
    text = "\n\n".join(pieces)
    made = messages(text)
    for message in made:
        check_blocks(message.blocks)
        check_blocks(message.in_words or message.blocks)
        assert len(message.plain) <= TEXT_LIMIT
        assert sum(len(block["text"]) for block in message.blocks if block["type"] == "markdown") <= MARKDOWN_LIMIT + 10
    assert is_within(letters(text), letters(" ".join(read(message.blocks) for message in made)))
    written = "".join(text.split())
    assert is_within(written, "".join("".join(message.source for message in made).split()))
    assert is_within(written, "".join(unescaped("".join(message.plain for message in made)).split()))


@pytest.mark.parametrize(
    "piece",
    ["[", "<", "[](", "![", "`", "```\n", "*", "~~", "> ", "- ", "  - x\n", "1. ", "|", "|\n", "-|-\n", "| a ", "[a]: ", "a|b\n", "\n", '"', "&", "|a|\n|-|\n|1|\n\n"],
)  # fmt: skip
def test_text_of_nothing_but_beginnings_is_read_in_one_go(piece: str) -> None:
    """Where each beginning is followed to the end of the text, this takes hours; and none nests without an end."""
    text = piece * (60_000 // len(piece))
    made = messages(text)
    for message in made:
        check_blocks(message.blocks)
    assert is_within("".join(text.split()), "".join("".join(message.source for message in made).split()))
    assert sections(text)


def effort(text: str) -> int:
    """How many calls it takes to make messages of a text: a measure of work that is the same on every machine."""
    calls = 0

    def count(frame: object, event: str, argument: object) -> None:
        nonlocal calls
        calls += event in ("call", "c_call")

    sys.setprofile(count)
    try:
        messages(text)
    finally:
        sys.setprofile(None)
    return calls


def test_one_long_row_makes_no_work_for_all_the_others() -> None:
    """Nobody else is served while an answer is cut into messages: that takes as long as the text is, and not its square."""

    def uneven(size: int) -> str:
        return "|a|b|\n|-|-|\n" + "|1|2|\n" * size + "|" + "x|" * 2 * size + "\n"

    assert effort(uneven(400)) < 3 * effort(uneven(200))


def test_a_wide_head_makes_no_work_for_short_rows_below_it() -> None:
    def wide(size: int) -> str:
        return "|" + "a|" * size + "\n|" + "-|" * size + "\n" + "x\n" * size

    assert effort(wide(200)) < 3 * effort(wide(100))
