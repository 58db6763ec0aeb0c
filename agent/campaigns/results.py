"""What the campaign tools answer, as small JSON: amounts as micros for code and as text for reading, dates in ISO form."""

from datetime import date

from pydantic import BaseModel, ConfigDict

from agent.campaigns.money import format_micros
from agent.campaigns.periods import Period
from agent.campaigns.platform import Account, Campaign, Channel, Metrics, Status

NOTHING = "n/a"
"""What stands where nothing can be divided by."""


class _Result(BaseModel):
    model_config = ConfigDict(frozen=True)


class AccountResult(_Result):
    """The account all figures belong to."""

    name: str
    currency: str
    time_zone: str

    @classmethod
    def of(cls, account: Account) -> "AccountResult":
        """The account without its id, which nobody asks for."""
        return cls(name=account.name, currency=account.currency, time_zone=account.time_zone)


class CampaignResult(_Result):
    """A campaign as it stands."""

    id: str
    name: str
    status: Status
    channel: Channel
    daily_budget_micros: int
    daily_budget: str
    started_on: date

    @classmethod
    def of(cls, campaign: Campaign) -> "CampaignResult":
        """The campaign with its budget as text too."""
        budget = format_micros(campaign.daily_budget_micros, campaign.currency)
        return cls(**campaign.model_dump(exclude={"currency"}), daily_budget=budget)


class CampaignList(_Result):
    """The answer of list_campaigns."""

    account: AccountResult
    campaigns: tuple[CampaignResult, ...]


class PeriodResult(_Result):
    """The exact days, both included."""

    label: str
    start: date
    end: date
    days: int

    @classmethod
    def of(cls, period: Period) -> "PeriodResult":
        """The period without what only arithmetic needs."""
        return cls(label=period.label, start=period.start, end=period.end, days=period.days)

    @property
    def dates(self) -> str:
        """Its days for reading, as Period has them."""
        return Period(self.start, self.end, self.label).dates


class Figures(_Result):
    """Metrics and their ratios; a ratio is null where nothing can be divided by. CTR and conversion rate are in percent."""

    impressions: int
    clicks: int
    conversions: int
    spend_micros: int
    spend: str
    revenue_micros: int
    revenue: str
    ctr_percent: float | None
    conversion_rate_percent: float | None
    cpc_micros: int | None
    cpc: str | None
    cpa_micros: int | None
    cpa: str | None
    roas: float | None

    @classmethod
    def of(cls, metrics: Metrics, *, currency: str) -> "Figures":
        """Figures of summed metrics."""

        def money(micros: int | None) -> str | None:
            return None if micros is None else format_micros(micros, currency)

        return cls(
            **metrics.model_dump(),
            spend=format_micros(metrics.spend_micros, currency),
            revenue=format_micros(metrics.revenue_micros, currency),
            ctr_percent=_percent(metrics.ctr),
            conversion_rate_percent=_percent(metrics.conversion_rate),
            cpc_micros=metrics.cpc_micros,
            cpc=money(metrics.cpc_micros),
            cpa_micros=metrics.cpa_micros,
            cpa=money(metrics.cpa_micros),
            roas=None if metrics.roas is None else round(metrics.roas, 2),
        )


class Changes(_Result):
    """Change in percent since the period compared with; null where there is nothing to compare with."""

    impressions: float | None
    clicks: float | None
    conversions: float | None
    spend: float | None
    revenue: float | None
    ctr: float | None
    conversion_rate: float | None
    cpc: float | None
    cpa: float | None
    roas: float | None

    @classmethod
    def between(cls, old: Metrics, new: Metrics) -> "Changes":
        """From the unrounded metrics, so that rounding never shows as change."""
        return cls(
            impressions=_change(old.impressions, new.impressions),
            clicks=_change(old.clicks, new.clicks),
            conversions=_change(old.conversions, new.conversions),
            spend=_change(old.spend_micros, new.spend_micros),
            revenue=_change(old.revenue_micros, new.revenue_micros),
            ctr=_change(old.ctr, new.ctr),
            conversion_rate=_change(old.conversion_rate, new.conversion_rate),
            cpc=_change(old.cpc_micros, new.cpc_micros),
            cpa=_change(old.cpa_micros, new.cpa_micros),
            roas=_change(old.roas, new.roas),
        )


class Row(_Result):
    """Figures of one campaign or of all together; `previous` and `change_percent` only when a comparison was asked for."""

    figures: Figures
    previous: Figures | None = None
    change_percent: Changes | None = None

    @classmethod
    def of(cls, metrics: Metrics, previous: Metrics | None, *, currency: str) -> "Row":
        """Figures, and their change when there is something to compare with."""
        return cls(**_compared(metrics, previous, currency=currency))


class CampaignRow(Row):
    """A row with the campaign it is about."""

    id: str
    name: str
    status: Status

    @classmethod
    def about(cls, campaign: Campaign, metrics: Metrics, previous: Metrics | None) -> "CampaignRow":
        """The campaign's row."""
        compared = _compared(metrics, previous, currency=campaign.currency)
        return cls(id=campaign.id, name=campaign.name, status=campaign.status, **compared)

    @property
    def title(self) -> str:
        """Its name, with "(paused)" if that can explain the figures: how it stands now says nothing of days on which it spent."""
        idle = not (self.figures.impressions or self.figures.spend_micros)
        return f"{self.name} (paused)" if idle and self.status == "paused" else self.name


class Performance(_Result):
    """The answer of campaign_performance. `notes` says what a reader must know, such as that today is not over."""

    account: AccountResult
    period: PeriodResult
    compared_to: PeriodResult | None
    totals: Row
    campaigns: tuple[CampaignRow, ...]
    notes: tuple[str, ...] = ()


class BudgetChange(_Result):
    """A daily budget that was changed."""

    account: str
    campaign: str
    old_micros: int
    old: str
    new_micros: int
    new: str
    difference: str


class StatusChange(_Result):
    """A status that was changed."""

    account: str
    campaign: str
    old: Status
    new: Status


def _percent(ratio: float | None) -> float | None:
    return None if ratio is None else round(ratio * 100, 2)


def _change(old: float | None, new: float | None) -> float | None:
    return round((new - old) / old * 100, 1) if old and new is not None else None


def _compared(metrics: Metrics, previous: Metrics | None, *, currency: str) -> dict[str, Figures | Changes | None]:
    return {
        "figures": Figures.of(metrics, currency=currency),
        "previous": None if previous is None else Figures.of(previous, currency=currency),
        "change_percent": None if previous is None else Changes.between(previous, metrics),
    }
