"""Tables as Slack's `data_table`: of reports and of answers alike. Limits from docs.slack.dev/reference/block-kit."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from agent.reports.document import Number
from bot.render.text import shortened

ROWS_LIMIT = 201
COLUMNS_LIMIT = 20
CELLS_LIMIT = 20_000
"""Characters of all cells of a message's tables together. Slack shows one table in a message."""
CAPTION_LIMIT = 255
PAGE = 25
NOTHING = "\u2013"
"""What stands where there is no text: Slack refuses empty ones."""


@dataclass(frozen=True, slots=True)
class Rich:
    """A cell with more than words in it: `elements` are those of a rich text section, at least one."""

    elements: tuple[dict[str, Any], ...]

    @property
    def text(self) -> str:
        """What is read, addresses of named links left out."""
        return "".join(str(each.get("text") or each.get("url") or "") for each in self.elements)


Cell = str | Number | Rich
Row = Sequence[Cell]


def data_table(caption: str, rows: Iterable[Row]) -> dict[str, Any]:
    """The block. `rows`: the head first, whose cells hold words alone; within the limits, all equally long."""
    return {
        "type": "data_table",
        "caption": shortened(caption, CAPTION_LIMIT) or NOTHING,
        "page_size": PAGE,
        "rows": [[_cell(cell) for cell in row] for row in rows],
    }


def words(cell: Cell) -> str:
    """What is read in a cell."""
    return cell if isinstance(cell, str) else cell.text


def size(row: Row) -> int:
    """Characters of a row, as they count for the limit."""
    return sum(max(1, _size(cell)) for cell in row)


def _size(cell: Cell) -> int:
    if isinstance(cell, Rich):
        return sum(
            len(str(value)) for each in cell.elements for key, value in each.items() if key not in ("type", "style")
        )
    return len(words(cell))


def _cell(cell: Cell) -> dict[str, Any]:
    """Slack sorts numbers as such and aligns them; the text is what it shows."""
    if isinstance(cell, Number):
        return {"type": "raw_number", "value": cell.value, "text": cell.text or NOTHING}
    if isinstance(cell, Rich):
        return {"type": "rich_text", "elements": [{"type": "rich_text_section", "elements": list(cell.elements)}]}
    return {"type": "raw_text", "text": cell or NOTHING}
