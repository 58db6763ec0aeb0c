"""`table` and `data_table` blocks as HTML; the page sorts and pages the latter."""

import html
import re

from bot.emulator.rendering.rich_text import rich_text_html
from bot.emulator.slack import Slack
from bot.emulator.workspace import Json

NO_VALUE = frozenset({"", "-", "\u2013", "\u2014", "n/a"})
_NUMBER = re.compile(
    r"\s*[+\-\u2212]?\s*(?:[€$£¥]|[A-Z]{3}\s)?\s*[+\-\u2212]?\d[\d.,'\u00a0\u202f]*\s*(?:%|[€$£¥]|[A-Z]{3}|[kMB])?\s*"
)


def table_html(slack: Slack, block: Json) -> str:
    settings = block.get("column_settings") or []
    aligns = [str((setting or {}).get("align", "")) for setting in settings]
    head, *body = block["rows"] or [[]]
    return f'<div class="table-box"><table>{_thead(slack, head, aligns)}{_tbody(slack, body, aligns)}</table></div>'


def data_table_html(slack: Slack, block: Json) -> str:
    """Numbers stand right under a header that stands right; `data-value` is what a column is sorted by."""
    head, *body = block["rows"]
    aligns = ["right" if _numeric(body, column) else "" for column in range(len(head))]
    caption = html.escape(str(block.get("caption", "")))
    size = int(block.get("page_size", 5))
    return (
        f'<figure class="data-table" data-page-size="{size}"><figcaption>{caption}</figcaption>'
        f'<div class="table-box"><table aria-label="{caption}">'
        f"{_thead(slack, head, aligns, sortable=True)}{_tbody(slack, body, aligns)}</table></div>"
        '<div class="pager" hidden></div></figure>'
    )


def _numeric(rows: list[list[Json]], column: int) -> bool:
    """Whether the column is numbers, as such or as words such as ``€1,204.50``, ``-3.1 %`` and a dash for none."""
    cells = [row[column] for row in rows]
    found = [cell for cell in cells if cell.get("type") == "raw_number" or _NUMBER.fullmatch(str(cell.get("text", "")))]
    empty = [cell for cell in cells if str(cell.get("text", "")).strip() in NO_VALUE and cell.get("type") == "raw_text"]
    return bool(found) and len(found) + len(empty) == len(cells)


def _is_total(cells: list[Json]) -> bool:
    return bool(cells) and str(cells[0].get("text", "")).strip().casefold() in {"total", "totals"}


def _thead(slack: Slack, row: list[Json], aligns: list[str], *, sortable: bool = False) -> str:
    cells = []
    for column, cell in enumerate(row):
        inner = _cell(slack, cell)
        inner = f'<button type="button" class="sort" data-column="{column}">{inner}</button>' if sortable else inner
        cells.append(f'<th scope="col"{_align(aligns, column)}>{inner}</th>')
    return f"<thead><tr>{''.join(cells)}</tr></thead>"


def _tbody(slack: Slack, rows: list[list[Json]], aligns: list[str]) -> str:
    # A table of nothing but a total has no other row that it could stand out from.
    last = len(rows) - 1 if len(rows) > 1 and _is_total(rows[-1]) else -1
    lines = [
        "".join(
            f'<td{_align(aligns, column)} data-value="{html.escape(_sorted_by(cell))}">{_cell(slack, cell)}</td>'
            for column, cell in enumerate(row)
        )
        for row in rows
    ]
    marks = (' class="total"' if index == last else "" for index in range(len(lines)))
    return f"<tbody>{''.join(f'<tr{mark}>{line}</tr>' for mark, line in zip(marks, lines, strict=True))}</tbody>"


def _sorted_by(cell: Json) -> str:
    """The number in a cell that reads as one, else its words."""
    text = str(cell.get("value", cell.get("text", ""))).strip()
    if not _NUMBER.fullmatch(text):
        return "" if text in NO_VALUE else text
    return re.sub(r"[^\d.\-]", "", text.replace("\u2212", "-"))


def _cell(slack: Slack, cell: Json) -> str:
    if cell.get("type") == "rich_text":
        return rich_text_html(slack, cell)
    return html.escape(str(cell.get("text") or cell.get("value", "")))


def _align(aligns: list[str], column: int) -> str:
    align = aligns[column] if column < len(aligns) else ""
    return f' class="{align}"' if align in {"right", "center"} else ""
