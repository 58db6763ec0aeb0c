"""Block Kit as HTML. A block this page does not know is named, not dropped."""

import html
from collections.abc import Callable

from bot.emulator.rendering.chart import chart_html
from bot.emulator.rendering.elements import element_html, image_html, text_html
from bot.emulator.rendering.inputs import input_html
from bot.emulator.rendering.markdown import markdown_html
from bot.emulator.rendering.rich_text import rich_text_html
from bot.emulator.rendering.table import data_table_html, table_html
from bot.emulator.slack import Slack
from bot.emulator.workspace import Json

TASK_MARKS = {"pending": "○", "in_progress": "◐", "complete": "✓", "error": "!"}


def blocks_html(slack: Slack, blocks: list[Json]) -> str:
    return "".join(f'<div class="block {_name(block)}">{_inner(slack, block)}</div>' for block in blocks)


def _name(block: Json) -> str:
    return html.escape(str(block.get("type", "")).replace("_", "-"))


def _inner(slack: Slack, block: Json) -> str:
    kind = str(block.get("type"))
    render = _RENDER.get(kind)
    if render is None:
        return f'<p class="unknown">A {html.escape(kind)} block, which this page does not draw</p>'
    try:
        return render(slack, block)
    except (AttributeError, IndexError, KeyError, TypeError, ValueError):
        # Some kinds are not checked when they are sent; one bad block must not hide the whole channel.
        return f'<p class="unknown">A {html.escape(kind)} block with parts that are missing or of the wrong kind</p>'


def _section(slack: Slack, block: Json) -> str:
    body = f"<div>{text_html(slack, block['text'])}</div>" if block.get("text") else ""
    fields = "".join(f"<div>{text_html(slack, field)}</div>" for field in block.get("fields") or [])
    grid = f'<div class="fields">{fields}</div>' if fields else ""
    accessory = element_html(slack, block["accessory"]) if block.get("accessory") else ""
    return f'<div class="section-text">{body}{grid}</div>{accessory}'


def _context(slack: Slack, block: Json) -> str:
    return "".join(
        image_html(slack, element) if element.get("type") == "image" else f"<span>{text_html(slack, element)}</span>"
        for element in block.get("elements", [])
    )


def _image(slack: Slack, block: Json) -> str:
    title = f"<figcaption>{text_html(slack, block['title'])}</figcaption>" if block.get("title") else ""
    return f"<figure>{title}{image_html(slack, block)}</figure>"


def _actions(slack: Slack, block: Json) -> str:
    return "".join(element_html(slack, element) for element in block.get("elements", []))


def _task(slack: Slack, task: Json) -> str:
    status = str(task.get("status", "pending"))
    details = "".join(f"<div>{_loose(slack, task[key])}</div>" for key in ("details", "output") if task.get(key))
    mark = TASK_MARKS.get(status, "○")
    return (
        f'<div class="task {html.escape(status)}"><span class="mark" aria-label="{html.escape(status)}">{mark}</span>'
        f'<div><div class="title">{html.escape(str(task.get("title", "")))}</div>{details}</div></div>'
    )


def _loose(slack: Slack, value: object) -> str:
    """A task's details come as Markdown or as rich text."""
    return rich_text_html(slack, value) if isinstance(value, dict) else markdown_html(slack, str(value))


def _plan(slack: Slack, block: Json) -> str:
    title = block.get("title")
    shown = text_html(slack, title) or "Plan"
    return f'<div class="plan-title">{shown}</div>{"".join(_task(slack, task) for task in block.get("tasks", []))}'


_RENDER: dict[str, Callable[[Slack, Json], str]] = {
    "actions": _actions,
    "context": _context,
    "context_actions": _actions,
    "data_table": data_table_html,
    "data_visualization": lambda slack, block: chart_html(block),
    "divider": lambda slack, block: "<hr>",
    "header": lambda slack, block: f"<h3>{text_html(slack, block.get('text'))}</h3>",
    "image": _image,
    "input": input_html,
    "markdown": lambda slack, block: markdown_html(slack, str(block.get("text", ""))),
    "plan": _plan,
    "rich_text": rich_text_html,
    "section": _section,
    "table": table_html,
    "task_card": _task,
}
