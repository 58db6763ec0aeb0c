"""Text on its way to Slack: limits, fences, and nobody pinged."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.thread import Thread
from bot.broadcasts import neutral
from bot.contents import plain
from bot.render.forms import posts_of
from bot.render.parts import parts
from bot.render.text import FALLBACK_LIMIT, MARKDOWN_LIMIT, escaped, fallback, shortened, unescaped

LIMIT = 200
LINES = st.lists(
    st.one_of(
        st.text(st.characters(codec="utf-8", exclude_characters="`~\r\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029"), max_size=300),
        st.sampled_from(["", "# Head", "| a | b |", "* item", "word " * 60, "x" * 500]),
    ),
    max_size=12,
)  # fmt: skip
FENCES = st.sampled_from(["```", "```python", "~~~", "````", "```sql title=x", "``` " + "i" * 400])


def solid(text: str) -> str:
    """What is left when white space, where cuts are made, does not count."""
    return "".join(text.split())


@given(lines=LINES)
def test_parts_keep_to_the_limit_and_lose_nothing(lines: list[str]) -> None:
    text = "\n".join(lines)
    pieces = parts(text, LIMIT)
    assert all(0 < len(piece) <= LIMIT for piece in pieces)
    assert solid("".join(pieces)) == solid(text)


@given(lines=LINES, code=LINES, fence=FENCES, closed=st.booleans())
def test_every_part_closes_its_fences_and_reopens_them(
    lines: list[str], code: list[str], fence: str, closed: bool
) -> None:
    marker = re.match(r"[`~]+", fence)
    assert marker
    text = "\n".join([*lines, fence, *code, *([marker[0], *lines] if closed else [])])
    pieces = parts(text, LIMIT)
    assert all(len(piece) <= LIMIT for piece in pieces)
    assert all(len(re.findall(r"(?m)^ {0,3}(?:`{3,}|~{3,})", piece)) % 2 == 0 for piece in pieces[:-1])
    kept = solid("".join(pieces))
    assert all(solid(line) in kept for line in lines if len(line) < LIMIT // 3)


def test_code_goes_on_as_code_of_the_same_language() -> None:
    text = "Look:\n\n```sql\n" + "select 1;\n" * 60 + "```\n\nThat is all."
    pieces = parts(text, LIMIT)
    assert len(pieces) > 2
    assert all(piece.startswith("```sql\nselect 1;") for piece in pieces[1:-1])
    assert all(piece.endswith("select 1;\n```") for piece in pieces[:-2])
    assert pieces[-1].endswith("That is all.")


def test_a_fence_inside_a_longer_fence_ends_nothing() -> None:
    text = "````\n```\n" + "a line\n" * 60 + "```\n````"
    assert all(piece.startswith("````\n") for piece in parts(text, LIMIT)[1:])


@pytest.mark.parametrize("text", ["", "\n", "\n\n\n"])
def test_nothing_is_still_one_part(text: str) -> None:
    assert parts(text) == [" "]


def test_short_text_is_one_part_as_it_is() -> None:
    assert parts("**Hello**\n\nworld") == ["**Hello**\n\nworld"]


def test_cuts_are_between_paragraphs_before_lines_before_words() -> None:
    assert parts("a" * 120 + "\n\n" + "b " * 60, LIMIT)[0] == "a" * 120
    assert parts("a " * 60 + "\n" + "b " * 60, LIMIT)[0] == "a " * 60
    assert parts("word " * 60, LIMIT)[0].split() == ["word"] * 33


BROADCASTS = st.sampled_from(
    ["<!channel>", "<!here>", "<!everyone>", "<!here|here>", "<!subteam^S123>", "<!subteam^S1|@team>", "@channel", "@here", "@everyone", "@HERE", "<!Channel>"]
)  # fmt: skip


@given(
    pieces=st.lists(BROADCASTS | st.text(max_size=6), max_size=8), glue=st.sampled_from([" ", "\n", ".", ",", "(", ""])
)
def test_no_broadcast_survives(pieces: list[str], glue: str) -> None:
    text = neutral(glue.join(pieces))
    assert not re.search(r"(?i)<!(channel|here|everyone|subteam)", text)
    assert not re.search(r"(?i)(?<![\w/])@(channel|here|everyone)\b", text)
    assert neutral(text) == text, "once is enough"


@pytest.mark.parametrize(
    "text", ["ada@here.com", "https://medium.com/@here", "@hereby", "@ada", "<@U0ADA>", "<!date^1^{date}|then>"]
)
def test_what_pings_nobody_is_left_alone(text: str) -> None:
    assert neutral(text) == text


@pytest.mark.parametrize("text", ["_@channel look_", "_look @here_", "__@everyone__", "*@channel*", "~@here~"])
def test_emphasis_does_not_hide_a_broadcast(text: str) -> None:
    assert "@\u2060" in neutral(text)


@pytest.mark.parametrize("piece", ["[", "<", "[](", "<!channel", "<https://", "<@U1|", "`", "&"])
def test_text_of_nothing_but_beginnings_is_read_in_one_go(piece: str) -> None:
    """Where each beginning is followed to the end of the text, this takes hours."""
    text = piece * (400_000 // len(piece))
    assert plain(text, "U1") == unescaped(text)
    assert "".join(parts(text[:200_000])) == text[:200_000]
    assert neutral(text).replace("\u2060", "") == text


def test_neutral_text_reads_as_before() -> None:
    assert neutral("hello @channel").replace("\u2060", "") == "hello @channel"


def test_a_text_full_of_broadcasts_still_keeps_to_the_limit() -> None:
    """Neutral first, then split: each broadcast grows by a character."""
    posts = posts_of(Thread(tenant="T1", channel="C1", root="1.1"), neutral("@here " * 10_000), "answer")
    assert all(len(block["text"]) <= MARKDOWN_LIMIT for post in posts for block in post.blocks)
    assert not any("@here" in str(post) for post in posts)


@given(text=st.text(st.sampled_from("ab &<>;\n"), max_size=400), limit=st.integers(10, 100))
def test_a_cut_never_leaves_half_an_entity(text: str, limit: int) -> None:
    cut = shortened(escaped(text), limit)
    assert len(cut) <= limit
    assert not re.search(r"&(?!amp;|lt;|gt;)", cut)


@given(text=st.text())
def test_escaping_is_undone_by_decoding(text: str) -> None:
    assert unescaped(escaped(text)) == text


@given(text=st.text(st.sampled_from("a&<@here> "), max_size=9000))
def test_the_fallback_keeps_to_the_limit_of_an_update(text: str) -> None:
    assert len(fallback(text)) <= FALLBACK_LIMIT


WORDS = st.text("abc xyz", max_size=40)
LINKS = st.builds(
    "[{}](https://example.com/{})".format, st.text("abc ", min_size=1, max_size=30), st.text("abc/", max_size=60)
)


@given(pieces=st.lists(WORDS | LINKS, min_size=20, max_size=60))
def test_no_link_is_cut_in_two(pieces: list[str]) -> None:
    text = " ".join(pieces)
    wanted = re.findall(r"\[[^\]\n]*\]\([^)\s]*\)", text)
    assert [link for piece in parts(text, LIMIT) for link in re.findall(r"\[[^\]\n]*\]\([^)\s]*\)", piece)] == wanted


def test_100_000_characters_arrive_in_parts() -> None:
    text = "\n\n".join(f"Paragraph {number}: " + "word " * 100 for number in range(190))
    pieces = parts(text)
    assert len(text) > 95_000
    assert all(len(piece) <= MARKDOWN_LIMIT for piece in pieces)
    assert solid("".join(pieces)) == solid(text)


@given(lines=LINES)
def test_lists_are_cut_between_their_items(lines: list[str]) -> None:
    items = [f"* item {number} " + "word " * 5 for number in range(len(lines) * 5)]
    pieces = parts("\n".join(items), LIMIT)
    assert [line.rstrip() for piece in pieces for line in piece.split("\n")] == (
        [item.rstrip() for item in items] or [" ".rstrip()]
    )
