"""Results of campaign_performance as Markdown. Every number is taken from the result, none is computed here."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from agent.campaigns.results import NOTHING, CampaignRow, Changes, Figures, Performance, PeriodResult, Row
from agent.models.offline.markdown import bold, listed, plain, table
from agent.models.offline.vocabulary import LOWER_IS_BETTER


@dataclass(frozen=True, slots=True)
class _Metric:
    label: str
    phrase: str


_METRICS = {
    "impressions": _Metric("Impressions", "impressions"),
    "clicks": _Metric("Clicks", "clicks"),
    "ctr": _Metric("CTR", "CTR"),
    "cpc": _Metric("CPC", "CPC"),
    "spend": _Metric("Spend", "spend"),
    "conversions": _Metric("Conversions", "conversions"),
    "conversion_rate": _Metric("Conversion rate", "conversion rate"),
    "cpa": _Metric("CPA", "CPA"),
    "revenue": _Metric("Revenue", "revenue"),
    "roas": _Metric("ROAS", "ROAS"),
}
_FULL = ("impressions", "clicks", "ctr", "cpc", "spend", "conversions", "cpa", "revenue", "roas")
_BRIEF = ("spend", "clicks", "conversions", "cpa", "revenue", "roas")
_COMPARED = ("spend", "conversions", "roas")


def label(metric: str) -> str:
    """A metric as people write it."""
    return _METRICS[metric].phrase


def value(figures: Figures, metric: str) -> str:
    """A metric's value as text."""
    if metric in {"ctr", "conversion_rate"}:
        percent = figures.ctr_percent if metric == "ctr" else figures.conversion_rate_percent
        return NOTHING if percent is None else f"{percent:.2f} %"
    found = getattr(figures, metric)
    if found is None:
        return NOTHING
    return f"{found:,}" if isinstance(found, int) else f"{found:.2f}" if isinstance(found, float) else str(found)


def size(figures: Figures, metric: str) -> float | None:
    """A metric's value for ordering, None where there is none."""
    names = {"ctr": "ctr_percent", "conversion_rate": "conversion_rate_percent"}
    names |= dict.fromkeys(("spend", "revenue", "cpc", "cpa"), f"{metric}_micros")
    found: float | None = getattr(figures, names.get(metric, metric))
    return found


def change(changes: Changes | None, metric: str) -> str:
    """A change in percent with its sign."""
    found: float | None = getattr(changes, metric) if changes else None
    return NOTHING if found is None else f"{found:+,.1f} %"


def when(period: PeriodResult) -> str:
    """The period as a phrase with its exact days: "last week (16 to 22 November 2026)"."""
    days = period.dates
    if period.label in {days, "the period before"} or period.label[:1].isdigit():
        return f"on {days}" if period.days == 1 else f"over {days}"
    if _ADVERBIAL.match(period.label):
        return f"{period.label} ({days})"
    if period.days == 1:
        return f"on {days}"
    return f"at {period.label} ({days})" if period.label == "the weekend" else f"in {_articled(period.label)} ({days})"


_ADVERBIAL = re.compile(
    r"today|yesterday|this |last (?!\d|week of)|since |a year earlier|.* ago$|the (?:day|week|month|quarter|year) before"
)


def _articled(text: str) -> str:
    return (
        f"the {text}"
        if text.startswith(("last ", "first ", "second ", "third ", "fourth ", "year ", "week ", "month ", "quarter "))
        else text
    )


def performance(result: Performance, *, metrics: Sequence[str], side_by_side: bool, everything: bool) -> str:
    """The answer to a question about performance."""
    rows = result.campaigns
    if not rows:
        return f"There is no campaign to report on {when(result.period)}."
    if len(rows) == 1:
        parts = _one(result, metrics)
    else:
        lead = _contrast(result, metrics) if side_by_side else _together(result, metrics, everything=everything)
        parts = [lead, _many(result, metrics)]
    return "\n\n".join([*parts, *(plain(note) for note in result.notes)])


def _one(result: Performance, metrics: Sequence[str]) -> list[str]:
    row = result.campaigns[0]
    name = bold(row.name)
    figures = row.figures
    if figures.impressions == 0 and figures.spend_micros == 0:
        paused = " It is paused now." if row.status == "paused" else ""
        return [f"{name} had no impressions and spent nothing {when(result.period)}.{paused}"]
    if len(metrics) == 1:
        metric = metrics[0]
        lead = f"The {label(metric)} of {name} {when(result.period)}: **{value(figures, metric)}**{_versus(result, row, metric)}."
        return [lead]
    if metrics:
        return [f"{name} {when(result.period)}:", _vertical(result, row, metrics)]
    lead = f"{name} made **{value(figures, 'conversions')} conversions** from {figures.spend} spend {when(result.period)}: "
    lead += f"ROAS {value(figures, 'roas')}{_versus(result, row, 'roas')}."
    return [lead, _vertical(result, row, _FULL)]


def _versus(result: Performance, row: Row, metric: str) -> str:
    if result.compared_to is None or row.previous is None:
        return ""
    old = value(row.previous, metric)
    return f" ({change(row.change_percent, metric)} against {old} {when(result.compared_to)})"


def _vertical(result: Performance, row: Row, metrics: Sequence[str]) -> str:
    if result.compared_to is None or row.previous is None:
        return table(["Metric", result.period.dates], [[_METRICS[m].label, value(row.figures, m)] for m in metrics])
    head = ["Metric", result.period.dates, result.compared_to.dates, "Change"]
    previous = row.previous
    return table(
        head,
        [
            [_METRICS[m].label, value(row.figures, m), value(previous, m), change(row.change_percent, m)]
            for m in metrics
        ],
    )


def _together(result: Performance, metrics: Sequence[str], *, everything: bool) -> str:
    count = len(result.campaigns)
    who = (
        f"All {count} campaigns"
        if everything
        else listed([row.name for row in result.campaigns])
        if count < 4
        else f"The {count} campaigns"
    )
    totals = result.totals.figures
    if metrics:
        said = ", ".join(f"{label(m)} **{value(totals, m)}**{_versus(result, result.totals, m)}" for m in metrics)
        return f"{who} together {when(result.period)}: {said}."
    lead = f"{who} together made **{value(totals, 'conversions')} conversions** from {totals.spend} spend {when(result.period)}: "
    return lead + f"ROAS {value(totals, 'roas')}{_versus(result, result.totals, 'roas')}."


def _contrast(result: Performance, metrics: Sequence[str]) -> str:
    metric = metrics[0] if metrics else "roas"
    ranked = ranked_rows(result, metric, best=True, highest=None)
    if len(ranked) < 2 or size(ranked[0].figures, metric) == size(ranked[1].figures, metric):
        return f"{listed([row.name for row in result.campaigns])} side by side, {when(result.period)}:"
    first, *others = ranked
    rest = " and ".join(f"{value(row.figures, metric)} for {bold(row.name)}" for row in others)
    word = "lower" if metric in LOWER_IS_BETTER else "higher"
    return f"{bold(first.name)} had the {word} {label(metric)} {when(result.period)}: **{value(first.figures, metric)}** against {rest}."


def _many(result: Performance, metrics: Sequence[str]) -> str:
    columns = tuple(metrics) or (_COMPARED if result.compared_to else _BRIEF)
    head = ["Campaign"]
    for metric in columns:
        head += [_METRICS[metric].label, *(["Change"] if result.compared_to else [])]
    rows = [[plain(row.title), *_cells(row, columns)] for row in result.campaigns]
    return table(head, [*rows, ["**Total**", *_cells(result.totals, columns)]])


def _cells(row: Row, columns: Sequence[str]) -> list[str]:
    cells: list[str] = []
    for metric in columns:
        cells.append(value(row.figures, metric))
        if row.previous is not None:
            cells.append(change(row.change_percent, metric))
    return cells


def ranked_rows(result: Performance, metric: str, *, best: bool, highest: bool | None) -> list[CampaignRow]:
    """The campaigns that have a value, the one asked for first. A campaign that was not shown is neither best nor worst."""
    rows = [row for row in result.campaigns if size(row.figures, metric) is not None and row.figures.impressions]
    descending = highest if highest is not None else best != (metric in LOWER_IS_BETTER)
    return sorted(rows, key=lambda row: size(row.figures, metric) or 0.0, reverse=descending)


def ranking(result: Performance, metric: str, *, best: bool, highest: bool | None, top: int) -> str:
    """The answer to "which campaign has the best …"."""
    rows = ranked_rows(result, metric, best=best, highest=highest)
    if not rows:
        return f"No campaign has a {label(metric)} {when(result.period)}."
    shown = rows if top == 0 else rows[:top]
    word = ("highest" if highest else "lowest") if highest is not None else "best" if best else "worst"
    if len(shown) == 1:
        lead = f"{bold(rows[0].name)} had the {word} {label(metric)} {when(result.period)}: **{value(rows[0].figures, metric)}**."
    else:
        lead = f"{listed([row.name for row in shown])} had the {word} {label(metric)} {when(result.period)}, in this order:"
        lead = lead if top else f"By {label(metric)} {when(result.period)}, {bold(rows[0].name)} comes first:"
    columns = tuple(dict.fromkeys((metric, *_COMPARED)))
    body = [
        [plain(row.name), *(value(row.figures, column) for column in columns)]
        for row in (shown if len(shown) > 1 else rows)
    ]
    parts = [lead, table(["Campaign", *(_METRICS[column].label for column in columns)], body)]
    return "\n\n".join([*parts, *(plain(note) for note in result.notes)])
