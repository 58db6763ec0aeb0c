"""`table` and `data_table` blocks as HTML; the page sorts and pages the latter."""

import html

from bot.emulator.rendering.rich_text import rich_text_html
from bot.emulator.slack import Slack
from bot.emulator.workspace import Json


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
    return bool(rows) and all(row[column].get("type") == "raw_number" for row in rows)


def _thead(slack: Slack, row: list[Json], aligns: list[str], *, sortable: bool = False) -> str:
    cells = []
    for column, cell in enumerate(row):
        inner = _cell(slack, cell)
        inner = f'<button type="button" class="sort" data-column="{column}">{inner}</button>' if sortable else inner
        cells.append(f'<th scope="col"{_align(aligns, column)}>{inner}</th>')
    return f"<thead><tr>{''.join(cells)}</tr></thead>"


def _tbody(slack: Slack, rows: list[list[Json]], aligns: list[str]) -> str:
    lines = [
        "".join(
            f'<td{_align(aligns, column)} data-value="{html.escape(str(cell.get("value", cell.get("text", ""))))}">'
            f"{_cell(slack, cell)}</td>"
            for column, cell in enumerate(row)
        )
        for row in rows
    ]
    return f"<tbody>{''.join(f'<tr>{line}</tr>' for line in lines)}</tbody>"


def _cell(slack: Slack, cell: Json) -> str:
    if cell.get("type") == "rich_text":
        return rich_text_html(slack, cell)
    return html.escape(str(cell.get("text") or cell.get("value", "")))


def _align(aligns: list[str], column: int) -> str:
    align = aligns[column] if column < len(aligns) else ""
    return f' class="{align}"' if align in {"right", "center"} else ""
