"""Documents as blocks: words, a native table, a native chart; and as Markdown where blocks are refused."""

import csv
import io
from collections.abc import Sequence
from typing import Any

from agent.reports.document import Bars, Document, Grid, Number
from bot.render.text import neutral, shortened

Blocks = list[dict[str, Any]]
Cell = str | Number
NOTHING = "\u2013"
"""What stands where there is no text: Slack refuses empty ones."""
LABEL_LIMIT = 20
TITLE_LIMIT = 50
ROWS_LIMIT = 201
COLUMNS_LIMIT = 20
CELL_LIMIT = 200
CELLS_LIMIT = 20_000
"""Characters of all cells of a table together."""
CAPTION_LIMIT = 255
POINTS_LIMIT = 20
FORMULAS = ("=", "+", "-", "@", "\t", "\r")
"""What a spreadsheet takes for the beginning of a formula."""
BODY_LIMIT = 10_900
PAGE = 25


def left_out(document: Document) -> int:
    """The rows that don't fit into a table of Slack's."""
    rows = _fitting(document.grid) if document.grid is not None else []
    return len(document.grid.rows) - len(rows) if document.grid is not None and rows else 0


def document_csv(grid: Grid) -> str:
    """All of a table, for spreadsheets: numbers as such, and no text that one would take for a formula."""
    text = io.StringIO()
    csv.writer(text).writerows([_plain(cell) for cell in row] for row in grid.rows)
    return text.getvalue()


def _plain(cell: Cell) -> str:
    if isinstance(cell, Number):
        return f"{cell.value:.15g}"
    return f"'{cell}" if cell.startswith(FORMULAS) else cell


def document_blocks(document: Document, *, attached: bool = False) -> Blocks:
    """The document's blocks, within Slack's limits. `attached`: a file has all rows of the table, should some not fit."""
    rows = _fitting(document.grid) if document.grid is not None else []
    missing = left_out(document)
    where = "; the file below has all of them" if attached else ""
    note = f"\n\n{missing:,} more rows did not fit into the table{where}." if missing else ""
    body = shortened(neutral(document.body), BODY_LIMIT)
    blocks: Blocks = [{"type": "markdown", "text": body + note or NOTHING}]
    if document.grid is not None and rows:
        blocks.append(_table(document.grid.caption, rows))
    if document.bars is not None and document.bars.values:
        blocks.append(_chart(document.bars))
    return blocks


def document_markdown(document: Document) -> str:
    """The document as Markdown alone."""
    if document.grid is None:
        return document.body
    head, *rows = document.grid.rows
    numbers = [any(isinstance(row[column], Number) for row in rows) for column in range(len(head))]
    rule = "".join("---:|" if right else "---|" for right in numbers)
    lines = [_line(head), f"|{rule}", *map(_line, rows)]
    return f"{document.body}\n\n" + "\n".join(lines)


def _words(cell: Cell) -> str:
    return cell.text if isinstance(cell, Number) else cell


def _line(cells: Sequence[Cell]) -> str:
    return "| " + " | ".join(_words(cell).replace("|", "\\|") for cell in cells) + " |"


def _fitting(grid: Grid) -> list[list[Cell]]:
    """The rows that fit: the head, as many as can be, and the last one, which holds the totals. A head alone is no table."""
    rows = [[_short(cell) for cell in row[:COLUMNS_LIMIT]] for row in grid.rows]
    if len(rows) < 2:
        return []
    head, *middle, last = rows
    room = CELLS_LIMIT - _size(head) - _size(last)
    kept: list[list[Cell]] = []
    for row in middle[: ROWS_LIMIT - 2]:
        room -= _size(row)
        if room < 0:
            break
        kept.append(row)
    return [head, *kept, last]


def _short(cell: Cell) -> Cell:
    text = shortened(_words(cell), CELL_LIMIT) or NOTHING
    return Number(text=text, value=cell.value) if isinstance(cell, Number) else text


def _size(row: Sequence[Cell]) -> int:
    return sum(len(_words(cell)) for cell in row)


def _cell(cell: Cell) -> dict[str, Any]:
    """Slack sorts numbers as such and aligns them; the text is what it shows."""
    if isinstance(cell, Number):
        return {"type": "raw_number", "value": cell.value, "text": cell.text}
    return {"type": "raw_text", "text": cell}


def _table(caption: str, rows: list[list[Cell]]) -> dict[str, Any]:
    return {
        "type": "data_table",
        "caption": shortened(caption, CAPTION_LIMIT) or NOTHING,
        "page_size": PAGE,
        "rows": [[_cell(cell) for cell in row] for row in rows],
    }


def _chart(bars: Bars) -> dict[str, Any]:
    values = bars.values[:POINTS_LIMIT]
    labels = _labels([label or NOTHING for label, _ in values])
    data = [{"label": label, "value": value} for label, (_, value) in zip(labels, values, strict=True)]
    chart = {
        "type": "bar",
        "series": [{"name": bars.series[:LABEL_LIMIT] or NOTHING, "data": data}],
        "axis_config": {"categories": labels},
    }
    return {"type": "data_visualization", "title": bars.title[:TITLE_LIMIT] or NOTHING, "chart": chart}


def _labels(names: list[str]) -> list[str]:
    """Names cut to the limit, kept apart by a number where the cut made two alike."""
    labels: list[str] = []
    for name in names:
        label = name if len(name) <= LABEL_LIMIT else name[: LABEL_LIMIT - 1] + "…"
        number = 2
        while label in labels:
            label = f"{name[: LABEL_LIMIT - 4]}… {number}"
            number += 1
        labels.append(label)
    return labels
