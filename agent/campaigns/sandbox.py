"""An embedded ad platform with a market in it: deterministic, realistic, and it reacts to what is changed.

Only changes are stored, as rows that are never overwritten; campaigns and metrics are computed from the market and the changes in
force at each hour. So a day that is over keeps its figures, whatever is changed later.
"""

from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from hashlib import blake2b
from itertools import pairwise
from typing import Any, Literal
from zoneinfo import ZoneInfo

from agent.campaigns.market import LINES, Line, elapsed_share, full_day, rounded
from agent.campaigns.money import MICROS
from agent.campaigns.platform import (
    Account,
    Campaign,
    Change,
    DailyMetrics,
    Status,
    UnchangedError,
    UnknownCampaignError,
)
from workflows.storage.base import Store
from workflows.storage.schema import Column, Index, Insert, Select, Table

CAMPAIGN_CHANGES = Table(
    name="campaign_changes",
    columns=(
        Column("tenant", "text"),
        Column("key", "text"),
        Column("campaign_id", "text"),
        Column("at", "time"),
        Column("field", "text"),
        Column("old", "text"),
        Column("new", "text"),
        Column("by", "text"),
    ),
    primary_key=("tenant", "key"),
    indexes=(Index("campaign_changes_by_time", ("tenant", "at")),),
)
CAMPAIGN_TABLES = (CAMPAIGN_CHANGES,)

_Field = Literal["daily_budget_micros", "status"]


@dataclass(frozen=True, slots=True)
class _State:
    budget_micros: int
    status: Status


class SandboxPlatform:
    """An AdPlatform without a network. `clock` gives aware times; the market is the same for every process that shares `store`."""

    def __init__(
        self,
        store: Store,
        *,
        clock: Callable[[], Awaitable[datetime]] | None = None,
        currency: str = "EUR",
        time_zone: str = "Europe/Berlin",
    ) -> None:
        self._store = store
        self._clock = clock or store.now
        self._currency = currency
        self._zone = ZoneInfo(time_zone)

    async def account(self, tenant: str) -> Account:
        """The tenant's account; its id derives from the tenant."""
        number = int.from_bytes(blake2b(tenant.encode(), digest_size=4).digest(), "big") % 10_000_000
        return Account(
            id=f"sandbox-{number:07}", name="Sandbox account", currency=self._currency, time_zone=self._zone.key
        )

    async def campaigns(self, tenant: str) -> Sequence[Campaign]:
        """The campaigns that have started, with the changes made so far."""
        now = await self._clock()
        history = await self._history(tenant)
        today = now.astimezone(self._zone).date()
        return [self._campaign(line, history, now) for line in LINES if line.started_on <= today]

    async def daily_metrics(
        self, tenant: str, campaign_ids: Sequence[str], *, start: date, end: date
    ) -> Sequence[DailyMetrics]:
        """Metrics by campaign and day until now; today counts up to the last full hour."""
        lines = [_line(campaign_id) for campaign_id in campaign_ids]
        now = await self._clock()
        history = await self._history(tenant)
        last = min(end, now.astimezone(self._zone).date())
        return [
            self._day(tenant, line, day, history=history, now=now)
            for line in lines
            for day in _days(max(start, line.started_on), last)
        ]

    async def set_daily_budget(self, tenant: str, campaign_id: str, *, micros: int, key: str, by: str) -> Change:
        """Record a new budget; it counts from the full hour it is made in, of which no figure has been shown yet."""
        if micros <= 0:
            raise ValueError(f"a daily budget must be above zero, not {micros} micros")
        return await self._change(tenant, campaign_id, "daily_budget_micros", str(micros), key=key, by=by)

    async def set_status(self, tenant: str, campaign_id: str, *, status: Status, key: str, by: str) -> Change:
        """Record a new status; it counts from the full hour it is made in."""
        return await self._change(tenant, campaign_id, "status", status, key=key, by=by)

    async def _change(self, tenant: str, campaign_id: str, name: _Field, new: str, *, key: str, by: str) -> Change:
        line = _line(campaign_id)
        history = await self._history(tenant)
        recorded = next((change for change in history if change.key == key), None)
        if recorded is not None:
            return recorded
        now = await self._clock()
        campaign = self._campaign(line, history, now)
        old = str(getattr(campaign, name))
        if old == new:
            held = f"is {new}" if name == "status" else "has this daily budget"
            raise UnchangedError(f"{campaign.name} {held} already; nothing to do")
        change = Change(campaign_id=campaign_id, field=name, old=old, new=new, at=now, by=by, key=key)
        await self._store.write(Insert(CAMPAIGN_CHANGES, {"tenant": tenant, **change.model_dump()}))
        # Two tries with one key may both get here; the primary key let one of them in, and both report that one.
        rows = await self._store.read(Select(CAMPAIGN_CHANGES, {"tenant": tenant, "key": key}))
        return _change_of(rows[0])

    async def _history(self, tenant: str) -> list[Change]:
        rows = await self._store.read(Select(CAMPAIGN_CHANGES, {"tenant": tenant}, order=("at", "key")))
        return [_change_of(row) for row in rows]

    def _campaign(self, line: Line, history: Iterable[Change], now: datetime) -> Campaign:
        state = self._state(line, history, now)
        return Campaign(
            id=line.id,
            name=line.name,
            status=state.status,
            channel=line.channel,
            daily_budget_micros=state.budget_micros,
            currency=self._currency,
            started_on=line.started_on,
        )

    def _state(self, line: Line, history: Iterable[Change], at: datetime) -> _State:
        budget, status = int(line.budget * MICROS), "active"
        if line.paused_on is not None and self._midnight(line.paused_on) <= at:
            status = "paused"
        for change in history:
            if change.campaign_id != line.id or change.at > at:
                continue
            if change.field == "status":
                status = change.new
            else:
                budget = int(change.new)
        return _State(budget, "paused" if status == "paused" else "active")

    def _midnight(self, day: date) -> datetime:
        return datetime.combine(day, time(), self._zone).astimezone(UTC)

    def _day(self, tenant: str, line: Line, day: date, *, history: list[Change], now: datetime) -> DailyMetrics:
        """The day's stretches between changes, each at its own budget and status, weighted by the traffic in them."""
        begin, end = self._midnight(day), self._midnight(day + timedelta(days=1))
        length = (end - begin) / timedelta(hours=1)
        until = min(_hours(begin, now), length)
        inside = [c.at for c in history if c.campaign_id == line.id and begin < c.at < end]
        marks = sorted({0.0, until, *(min(_hours(begin, at), until) for at in inside)})
        figures = [0.0] * 5
        for left, right in pairwise(marks):
            state = self._state(line, history, begin + timedelta(hours=right) - timedelta(microseconds=1))
            if state.status == "paused":
                continue
            share = elapsed_share(right, of=length) - elapsed_share(left, of=length)
            stretch = full_day(tenant, line, day, budget_micros=state.budget_micros)
            figures = [sum_ + share * figure for sum_, figure in zip(figures, stretch, strict=True)]
        impressions, clicks, spend, conversions, revenue = figures
        return DailyMetrics(
            campaign_id=line.id, day=day, metrics=rounded((impressions, clicks, spend, conversions, revenue))
        )


def _hours(begin: datetime, at: datetime) -> float:
    """Full hours from `begin` to `at`: figures stand still within an hour, so two looks in one conversation agree."""
    return float(max((at - begin) // timedelta(hours=1), 0))


def _days(start: date, end: date) -> Iterable[date]:
    return (start + timedelta(days=n) for n in range((end - start).days + 1))


def _line(campaign_id: str) -> Line:
    for line in LINES:
        if line.id == campaign_id:
            return line
    raise UnknownCampaignError(f"there is no campaign {campaign_id!r}")


def _change_of(row: dict[str, Any]) -> Change:
    return Change.model_validate({name: row[name] for name in Change.model_fields})
