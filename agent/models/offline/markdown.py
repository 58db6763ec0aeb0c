"""Pieces of Markdown. Names come from outside: they are escaped, so that a campaign can't be called its way into a layout or a link."""

import re
from collections.abc import Sequence


def plain(text: str) -> str:
    """Text on one line with Markdown's signs escaped."""
    return re.sub(r"([\\`*_\[\]|<>~])", r"\\\1", " ".join(text.split()))


def bold(name: str) -> str:
    """A name in bold."""
    return f"**{plain(name)}**"


def listed(names: Sequence[str], *, word: str = "and") -> str:
    """Names in bold as a sentence has them: "A, B and C"."""
    shown = [bold(name) for name in names]
    return shown[0] if len(shown) == 1 else f"{', '.join(shown[:-1])} {word} {shown[-1]}"


def quoted(text: str) -> str:
    """Somebody's words, shortened."""
    short = " ".join(text.split())
    return f"\u201c{plain(short if len(short) <= 120 else short[:117] + '…')}\u201d"


def table(head: Sequence[str], rows: Sequence[Sequence[str]], *, texts: int = 1) -> str:
    """A GFM table whose first `texts` columns are text and whose others are numbers. Cells are escaped already."""
    rule = ["---"] * texts + ["---:"] * (len(head) - texts)
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (head, rule, *rows))
