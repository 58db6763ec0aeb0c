"""From figures to a document. Every number in the words is taken from the figures; none is computed by a model."""

from agent.campaigns.results import CampaignRow, Figures, Performance
from agent.reports.document import Bars, Document, Grid

HEAD = ("Campaign", "Spend", "Impressions", "Clicks", "CTR", "Conversions", "CPA", "Revenue", "ROAS")
NOTHING = "\u2013"
"""What stands where nothing can be divided by."""
CHARTED = 12
"""Campaigns in a chart; a longer tail is in the table."""


def document(performance: Performance, *, title: str) -> Document:
    """The report of a performance."""
    period = performance.period
    days = f"{period.start}" if period.start == period.end else f"{period.start} to {period.end}"
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
                f"ROAS {_or_dash(totals.roas)}{_change(performance, 'roas')}.",
            )
        ),
    ]
    lines += _extremes(performance.campaigns)
    if performance.compared_to is not None:
        lines.append(f"Changes are against {performance.compared_to.start} to {performance.compared_to.end}.")
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
    return [f"Best ROAS: **{best.name}** with {best.figures.roas}. Lowest: **{worst.name}** with {worst.figures.roas}."]


def _row(row: CampaignRow) -> tuple[str, ...]:
    return _cells(row.name if row.status == "active" else f"{row.name} ({row.status})", row.figures)


def _cells(name: str, figures: Figures) -> tuple[str, ...]:
    ctr = NOTHING if figures.ctr_percent is None else f"{figures.ctr_percent:.2f} %"
    return (
        name, figures.spend, f"{figures.impressions:,}", f"{figures.clicks:,}", ctr, f"{figures.conversions:,}",
        figures.cpa or NOTHING, figures.revenue, _or_dash(figures.roas),
    )  # fmt: skip


def _or_dash(value: float | None) -> str:
    return NOTHING if value is None else f"{value}"


def _bars(performance: Performance) -> Bars | None:
    spending = sorted(performance.campaigns, key=lambda row: -row.figures.spend_micros)[:CHARTED]
    values = tuple((row.name, round(row.figures.spend_micros / 1_000_000, 2)) for row in spending)
    if not any(value for _, value in values):
        return None
    return Bars(title=f"Spend by campaign, {performance.account.currency}", series="Spend", values=values)
