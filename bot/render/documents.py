"""Documents as blocks: words, a native table, a native chart; and as Markdown where blocks are refused."""

from typing import Any

from agent.reports.document import Bars, Document, Grid
from bot.render.text import neutral

Blocks = list[dict[str, Any]]
LABEL_LIMIT = 20
TITLE_LIMIT = 50
ROWS_LIMIT = 201
PAGE = 25


def document_blocks(document: Document) -> Blocks:
    """The document's blocks, within Slack's limits."""
    blocks: Blocks = [{"type": "markdown", "text": neutral(document.body)[:11_000]}]
    if document.grid is not None:
        blocks.append(_table(document.grid))
    if document.bars is not None:
        blocks.append(_chart(document.bars))
    return blocks


def document_markdown(document: Document) -> str:
    """The document as Markdown alone."""
    if document.grid is None:
        return document.body
    head, *rows = document.grid.rows
    lines = [_line(head), "|" + "---|" * len(head), *map(_line, rows)]
    return f"{document.body}\n\n" + "\n".join(lines)


def _line(cells: tuple[str, ...]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def _table(grid: Grid) -> dict[str, Any]:
    rows = [[{"type": "raw_text", "text": cell or " "} for cell in row] for row in grid.rows[:ROWS_LIMIT]]
    return {"type": "data_table", "caption": grid.caption, "page_size": PAGE, "rows": rows}


def _chart(bars: Bars) -> dict[str, Any]:
    labels = _labels([label for label, _ in bars.values])
    data = [{"label": label, "value": value} for label, (_, value) in zip(labels, bars.values, strict=True)]
    chart = {
        "type": "bar",
        "series": [{"name": bars.series[:LABEL_LIMIT], "data": data}],
        "axis_config": {"categories": labels},
    }
    return {"type": "data_visualization", "title": bars.title[:TITLE_LIMIT], "chart": chart}


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
