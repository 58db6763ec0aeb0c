"""From figures to a document. Every number in the words is taken from the figures; none is computed by a model."""

from agent.campaigns.money import MICROS
from agent.campaigns.results import NOTHING, CampaignRow, Figures, Performance
from agent.reports.document import Bars, Document, Grid, Number

HEAD = ("Campaign", "Spend", "Impressions", "Clicks", "CTR", "Conversions", "CPA", "Revenue", "ROAS")
CHARTED = 12
"""Campaigns in a chart; a longer tail is in the table."""


def document(performance: Performance, *, title: str) -> Document:
    """The report of a performance."""
    days = performance.period.dates
    return Document(
        summary=f"{title}: {performance.account.name}, {days}",
        body=_body(performance, title=title, days=days),
        grid=Grid(
            caption=f"Campaigns, {days}",
            rows=(HEAD, *map(_row, performance.campaigns), _cells("Total", performance.totals.figures)),
        ),
        bars=_bars(performance),
    )


def _body(performance: Performance, *, title: str, days: str) -> str:
    totals = performance.totals.figures
    account = performance.account
    lines = [
        f"**{title}**: {account.name}, {days} ({account.time_zone})",
        ", ".join(
            (
                f"Spend **{totals.spend}**{_change(performance, 'spend')}",
                f"{totals.conversions:,} conversions{_change(performance, 'conversions')}",
                f"revenue {totals.revenue}{_change(performance, 'revenue')}",
                f"ROAS {_roas(totals)}{_change(performance, 'roas')}.",
            )
        ),
    ]
    lines += _extremes(performance.campaigns)
    if performance.compared_to is not None:
        lines.append(f"Changes are against {performance.compared_to.dates}.")
    return "\n\n".join([*lines, *performance.notes])


def _change(performance: Performance, name: str) -> str:
    changes = performance.totals.change_percent
    value = getattr(changes, name) if changes is not None else None
    return "" if value is None else f" ({value:+.1f} %)"


def _extremes(rows: tuple[CampaignRow, ...]) -> list[str]:
    ranked = sorted((row for row in rows if row.figures.roas is not None), key=lambda row: row.figures.roas or 0.0)
    if len(ranked) < 2:
        return []
    best, worst = ranked[-1], ranked[0]
    ends = f"**{best.name}** with {_roas(best.figures)}. Lowest: **{worst.name}** with {_roas(worst.figures)}."
    return [f"Best ROAS: {ends}"]


def _row(row: CampaignRow) -> tuple[str | Number, ...]:
    return _cells(row.title, row.figures)


def _cells(name: str, figures: Figures) -> tuple[str | Number, ...]:
    return (
        name,
        _money(figures.spend, figures.spend_micros),
        _count(figures.impressions),
        _count(figures.clicks),
        NOTHING
        if figures.ctr_percent is None
        else Number(text=f"{figures.ctr_percent:.2f} %", value=figures.ctr_percent),
        _count(figures.conversions),
        _money(figures.cpa, figures.cpa_micros),
        _money(figures.revenue, figures.revenue_micros),
        NOTHING if figures.roas is None else Number(text=_roas(figures), value=figures.roas),
    )


def _count(number: int) -> Number:
    return Number(text=f"{number:,}", value=number)


def _money(text: str | None, micros: int | None) -> str | Number:
    return NOTHING if text is None or micros is None else Number(text=text, value=micros / MICROS)


def _roas(figures: Figures) -> str:
    return NOTHING if figures.roas is None else f"{figures.roas:.2f}"


def _bars(performance: Performance) -> Bars | None:
    spending = sorted(performance.campaigns, key=lambda row: -row.figures.spend_micros)[:CHARTED]
    values = tuple((row.name, round(row.figures.spend_micros / MICROS, 2)) for row in spending)
    if not any(value for _, value in values):
        return None
    return Bars(title=f"Spend by campaign, {performance.account.currency}", series="Spend", values=values)
