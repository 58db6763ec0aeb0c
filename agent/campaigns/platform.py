"""The seam to an ad platform: an account, its campaigns, their metrics by day, and the two things that can be changed.

Money is integer micros (millionths of the currency's unit); dates are days in the account's time zone. Ratios are computed from
totals and never averaged: that is why they are properties of `Metrics` and not columns.
"""

from collections.abc import Iterable, Sequence
from datetime import date, datetime
from typing import Literal, Protocol

from pydantic import BaseModel, ConfigDict

Status = Literal["active", "paused"]
Channel = Literal["search", "social", "display", "shopping", "video", "email"]


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True)


class Account(_Frozen):
    """An advertising account. `currency` is ISO 4217, `time_zone` an IANA name; its days are the days of all metrics."""

    id: str
    name: str
    currency: str
    time_zone: str


class Campaign(_Frozen):
    """A campaign as it stands now."""

    id: str
    name: str
    status: Status
    channel: Channel
    daily_budget_micros: int
    currency: str
    started_on: date


class Metrics(_Frozen):
    """Counts and money over any span. Adding two gives the metrics of both; ratios are None when nothing can be divided by."""

    impressions: int = 0
    clicks: int = 0
    spend_micros: int = 0
    conversions: int = 0
    revenue_micros: int = 0

    def __add__(self, other: "Metrics") -> "Metrics":
        return Metrics(
            impressions=self.impressions + other.impressions,
            clicks=self.clicks + other.clicks,
            spend_micros=self.spend_micros + other.spend_micros,
            conversions=self.conversions + other.conversions,
            revenue_micros=self.revenue_micros + other.revenue_micros,
        )

    @property
    def ctr(self) -> float | None:
        """Clicks per impression, 0 to 1."""
        return self.clicks / self.impressions if self.impressions else None

    @property
    def conversion_rate(self) -> float | None:
        """Conversions per click."""
        return self.conversions / self.clicks if self.clicks else None

    @property
    def cpc_micros(self) -> int | None:
        """Spend per click, in micros."""
        return round(self.spend_micros / self.clicks) if self.clicks else None

    @property
    def cpa_micros(self) -> int | None:
        """Spend per conversion, in micros."""
        return round(self.spend_micros / self.conversions) if self.conversions else None

    @property
    def roas(self) -> float | None:
        """Revenue per unit of spend."""
        return self.revenue_micros / self.spend_micros if self.spend_micros else None


def total(metrics: Iterable[Metrics]) -> Metrics:
    """The sum; all zero for none."""
    return sum(metrics, Metrics())


class DailyMetrics(_Frozen):
    """One campaign's metrics on one day of the account."""

    campaign_id: str
    day: date
    metrics: Metrics


class Change(_Frozen):
    """A recorded change. `old` and `new` are micros for a budget, a status otherwise; `by` says who asked for it."""

    campaign_id: str
    field: Literal["daily_budget_micros", "status"]
    old: str
    new: str
    at: datetime
    by: str
    key: str


class PlatformError(Exception):
    """The platform refuses a request; the text says why. Nothing has happened."""


class UnknownCampaignError(PlatformError):
    """No campaign of this account has this id."""


class UnchangedError(PlatformError):
    """The value asked for is the one in force."""


class AdPlatform(Protocol):
    """An ad platform, seen for one tenant at a time.

    The two changes are made at most once per `key`: the same key again changes nothing and returns the change it recorded.
    They raise UnknownCampaignError, and UnchangedError if the value is already in force (and not by this key).
    """

    async def account(self, tenant: str) -> Account:
        """The tenant's account."""
        ...

    async def campaigns(self, tenant: str) -> Sequence[Campaign]:
        """All campaigns as they stand now, in a stable order."""
        ...

    async def daily_metrics(
        self, tenant: str, campaign_ids: Sequence[str], *, start: date, end: date
    ) -> Sequence[DailyMetrics]:
        """Metrics by campaign and day, both ends included; days without data are left out. Raises UnknownCampaignError."""
        ...

    async def set_daily_budget(self, tenant: str, campaign_id: str, *, micros: int, key: str, by: str) -> Change:
        """Set a daily budget of `micros` (above 0)."""
        ...

    async def set_status(self, tenant: str, campaign_id: str, *, status: Status, key: str, by: str) -> Change:
        """Pause or resume a campaign."""
        ...
