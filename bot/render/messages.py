"""An answer as messages that Slack takes: words, and in each message one table of Slack's own at most, as Slack shows no more.

Several tables that fit into one message stay in one, as Markdown, which Slack shows as tables, too, though they can't be sorted.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from bot.render.grids import Grid, sections
from bot.render.parts import parts
from bot.render.tables import data_table, words
from bot.render.text import MARKDOWN_LIMIT, PAYLOAD_LIMIT, TEXT_LIMIT, escaped, wire_size

TABLES = 10
"""Tables of an answer that get a message each; what is beyond is code, so that nobody fills a thread with them."""
LEAST = 1_000
"""Characters that fit into a message whatever they are."""
BLOCK = 40
"""Characters of a `markdown` block around its text."""
Blocks = list[dict[str, Any]]


@dataclass(slots=True)
class Shown:
    """A message in the making: its words and its tables in order. `worded`: its tables are Markdown."""

    pieces: list[str | Grid] = field(default_factory=list)
    worded: bool = False

    @property
    def source(self) -> str:
        """Its Markdown."""
        return "\n\n".join(each.source if isinstance(each, Grid) else each for each in self.pieces)

    @property
    def plain(self) -> str:
        """It without blocks, as mrkdwn: tables are code there."""
        return escaped("\n\n".join(each.code if isinstance(each, Grid) else each for each in self.pieces))

    @property
    def blocks(self) -> Blocks:
        if self.worded:
            return [_block(self.source)]
        return [_block(each) for each in self.pieces]

    @property
    def in_words(self) -> Blocks:
        """Blocks without the table, where Slack refuses it: Markdown has tables, too. None if that would be too long, or nothing else."""
        if self.worded or not self.has_table or not _fit([self.source]):
            return []
        return [{"type": "markdown", "text": self.source}]

    @property
    def has_table(self) -> bool:
        return any(isinstance(each, Grid) for each in self.pieces)

    def add(self, piece: str | Grid) -> None:
        """Put a piece below the others. Words below words are one block."""
        if self.pieces and isinstance(piece, str) and isinstance(self.pieces[-1], str):
            piece = f"{self.pieces.pop()}\n\n{piece}"
        self.pieces.append(piece)

    def takes(self, piece: str | Grid) -> bool:
        """Whether a piece fits. What follows a table would be a message of its own, but for the last words."""
        if self.has_table and isinstance(piece, Grid):
            return False
        with_it = Shown([*self.pieces, piece])
        return _fit([each for each in with_it.pieces if isinstance(each, str)]) and len(with_it.plain) <= TEXT_LIMIT


def messages(text: str) -> list[Shown]:
    """The messages, at least one. Each fits as blocks and, its table as code, as text."""
    found = sections(text)
    pieces = list(_pieces(found))
    if sum(isinstance(each, Grid) for each in found) > 1:
        together = Shown(pieces, worded=True)
        if _fit([together.source]) and len(together.plain) <= TEXT_LIMIT:
            return [together]
    last_table = max((number for number, piece in enumerate(pieces) if isinstance(piece, Grid)), default=-1)
    made = [Shown()]
    for number, piece in enumerate(pieces):
        introduces = isinstance(piece, str) and number < last_table and made[-1].has_table
        if introduces or not made[-1].takes(piece):
            made.append(Shown())
        made[-1].add(piece)
    return [each for each in made if each.pieces]


def _pieces(found: Sequence[str | Grid]) -> Iterator[str | Grid]:
    """Sections in pieces that fit into a message each. A table that is none of Slack's is code; a head alone stays as it was written."""
    left = TABLES
    for section in found:
        if isinstance(section, str):
            yield from _cut(section)
        elif portions := section.portions(left):
            left -= len(portions)
            yield from portions
        else:
            yield from _cut(section.code if len(section.lines) > 2 else section.source)


def _cut(text: str, limit: int = MARKDOWN_LIMIT) -> Iterator[str]:
    """Parts that fit. One that is full of quotes, line ends or & < > is longer on its way than it is read, and cut again."""
    for part in parts(text, limit):
        if limit > LEAST and not (_fit([part]) and len(escaped(part)) <= TEXT_LIMIT):
            yield from _cut(part, limit // 2)
        else:
            yield part


def _fit(texts: Sequence[str]) -> bool:
    """Whether these fit into a message as `markdown` blocks."""
    return sum(map(len, texts)) <= MARKDOWN_LIMIT and sum(wire_size(each) + BLOCK for each in texts) <= PAYLOAD_LIMIT


def _block(piece: str | Grid) -> dict[str, Any]:
    if isinstance(piece, Grid):
        # Slack asks for a caption: where no heading stands above, the columns say best what a table is of.
        return data_table(piece.heading or " · ".join(map(words, piece.rows[0])), piece.rows)
    return {"type": "markdown", "text": piece}
