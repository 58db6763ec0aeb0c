"""Documents as blocks: words, a native table, a native chart; and as Markdown where blocks are refused."""

import csv
import io
from collections.abc import Sequence
from typing import Any

from agent.reports.document import Bars, Document, Grid, Number
from bot.broadcasts import neutral
from bot.render.tables import CELLS_LIMIT, COLUMNS_LIMIT, NOTHING, ROWS_LIMIT, data_table, size, words
from bot.render.text import PAYLOAD_LIMIT, TEXT_LIMIT, quoted, shortened, wire_size

Blocks = list[dict[str, Any]]
Cell = str | Number
LABEL_LIMIT = 20
TITLE_LIMIT = 50
CELL_LIMIT = 200
POINTS_LIMIT = 20
FORMULAS = ("=", "+", "-", "@", "\t", "\r")
"""What a spreadsheet takes for the beginning of a formula."""
BODY_LIMIT = 10_900
NOTE = 400
"""Characters for what is said of rows that don't fit, and of the blocks around the words."""


def left_out(document: Document) -> int:
    """The rows that don't fit into a table of Slack's."""
    rows = _fitting(document.grid) if document.grid is not None else []
    return len(document.grid.rows) - len(rows) if document.grid is not None and rows else 0


def is_cut(document: Document) -> bool:
    """Whether the document's table shows less than there is: of its rows, its columns or its longest cells."""
    return (
        document.grid is not None
        and len(document.grid.rows) > 1
        and (left_out(document) > 0 or _too_wide(document.grid))
    )


def _too_wide(grid: Grid) -> bool:
    return any(len(row) > COLUMNS_LIMIT or any(len(words(cell)) > CELL_LIMIT for cell in row) for row in grid.rows)


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
    note = _note(left_out(document), cut=is_cut(document), attached=attached)
    blocks: Blocks = [{"type": "markdown", "text": _body(document) + note or NOTHING}]
    if document.grid is not None and rows:
        blocks.append(data_table(neutral(document.grid.caption), rows))
    if document.bars is not None and document.bars.values:
        blocks.append(_chart(document.bars))
    return blocks


def document_markdown(document: Document) -> str:
    """All of the document as Markdown alone."""
    return document.body if document.grid is None else f"{document.body}\n\n{markdown_table(document.grid.rows)}"


def document_plain(document: Document, *, attached: bool) -> str:
    """The document where blocks are refused, as mrkdwn that fits into a message's text: the table as code."""
    if document.grid is None:
        return quoted(_body(document))
    rows: list[Sequence[Cell]] = [*(_fitting(document.grid) or document.grid.rows)]
    while True:
        note = _note(len(document.grid.rows) - len(rows), cut=is_cut(document), attached=attached)
        text = quoted(f"{_body(document)}{note}\n\n```\n{markdown_table(rows)}\n```")
        if len(text) <= TEXT_LIMIT or len(rows) <= 2:
            return shortened(text, TEXT_LIMIT)
        rows = [*rows[: len(rows) // 2], rows[-1]]


def remaining_rows(document: Document) -> str:
    """What the document's table does not show, as a table in Markdown: the rows that don't fit, or all where columns or cells were cut."""
    if document.grid is None or not is_cut(document):
        return ""
    head, *rows = document.grid.rows
    missing = left_out(document)
    return neutral(markdown_table([head, *(rows if _too_wide(document.grid) else rows[-missing - 1 : -1])]))


def markdown_table(rows: Sequence[Sequence[Cell]]) -> str:
    """Rows as Markdown, the head first."""
    head, *others = rows
    numbers = [any(isinstance(row[column], Number) for row in others) for column in range(len(head))]
    rule = "".join("---:|" if right else "---|" for right in numbers)
    return "\n".join([_line(head), f"|{rule}", *map(_line, others)])


def _body(document: Document) -> str:
    body = shortened(neutral(document.body), BODY_LIMIT)
    while wire_size(body) > PAYLOAD_LIMIT - NOTE:
        body = shortened(body, len(body) * 4 // 5)
    return body


def _note(missing: int, *, cut: bool, attached: bool) -> str:
    where = "; the file below has all of them" if attached else ""
    if missing:
        return f"\n\n{missing:,} more rows did not fit into the table{where}."
    return f"\n\nNot all columns and words did fit into the table{where}." if cut else ""


def _line(cells: Sequence[Cell]) -> str:
    return "| " + " | ".join(" ".join(words(cell).split()).replace("|", "\\|") for cell in cells) + " |"


def _fitting(grid: Grid) -> list[list[Cell]]:
    """The rows that fit: the head, as many as can be, and the last one, which holds the totals. A head alone is no table."""
    rows = [[_short(cell) for cell in row[:COLUMNS_LIMIT]] for row in grid.rows]
    if len(rows) < 2:
        return []
    head, *middle, last = rows
    room = CELLS_LIMIT - size(head) - size(last)
    kept: list[list[Cell]] = []
    for row in middle[: ROWS_LIMIT - 2]:
        room -= size(row)
        if room < 0:
            break
        kept.append(row)
    return [head, *kept, last]


def _short(cell: Cell) -> Cell:
    text = shortened(neutral(words(cell)), CELL_LIMIT) or NOTHING
    return Number(text=text, value=cell.value) if isinstance(cell, Number) else text


def _chart(bars: Bars) -> dict[str, Any]:
    values = bars.values[:POINTS_LIMIT]
    labels = _labels([neutral(label) or NOTHING for label, _ in values])
    data = [{"label": label, "value": value} for label, (_, value) in zip(labels, values, strict=True)]
    chart = {
        "type": "bar",
        "series": [{"name": neutral(bars.series)[:LABEL_LIMIT] or NOTHING, "data": data}],
        "axis_config": {"categories": labels},
    }
    return {"type": "data_visualization", "title": neutral(bars.title)[:TITLE_LIMIT] or NOTHING, "chart": chart}


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
