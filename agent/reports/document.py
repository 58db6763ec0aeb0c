"""A document to post: words, a table and a chart, free of any chat system's markup but Markdown."""

from pydantic import BaseModel, ConfigDict


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True)


class Number(_Frozen):
    """A number in a table: `text` is what is read, `value` what a column is sorted by."""

    text: str
    value: float


class Grid(_Frozen):
    """A table; the first row is the head."""

    caption: str
    rows: tuple[tuple[str | Number, ...], ...]


class Bars(_Frozen):
    """A bar chart: one series of values by label."""

    title: str
    series: str
    values: tuple[tuple[str, float], ...]


class Document(_Frozen):
    """What a report or a summary says. `summary` is its first line, also for notifications."""

    summary: str
    body: str
    grid: Grid | None = None
    bars: Bars | None = None
