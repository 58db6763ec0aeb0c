"""The sandbox's market: what a campaign earns on a day, as a pure function of its budget, the calendar and a hash.

Figures are those of a mid-size outdoor retailer. There is no randomness to seed: noise is a hash of who, what and when, so every
replica and every restart sees the same market.
"""

import math
from dataclasses import dataclass
from datetime import date
from hashlib import blake2b

from agent.campaigns.money import MICROS
from agent.campaigns.platform import Channel, Metrics


@dataclass(frozen=True, slots=True)
class Line:
    """A campaign of the market. Money in currency units; `peak_month` is when its season is at its height (1 to 12)."""

    id: str
    name: str
    channel: Channel
    budget: float
    started_on: date
    cost_per_click: float
    click_rate: float
    conversion_rate: float
    order_value: float
    peak_month: int
    season: float = 0.25
    weekend: float = 1.0
    paused_on: date | None = None


# Names share words on purpose ("Spring Sale", "Trail Runners", "Retargeting"): real accounts are like that.
LINES: tuple[Line, ...] = (
    Line("c-101", "Brand Search", "search", 120, date(2024, 1, 8), 0.45, 0.115, 0.062, 84, 12, 0.15, 0.92),
    Line("c-102", "Spring Sale", "social", 80, date(2024, 2, 26), 0.62, 0.014, 0.021, 71, 4, 0.40, 1.15),
    Line("c-103", "Spring Sale Retargeting", "display", 35, date(2024, 3, 4), 0.38, 0.007, 0.031, 76, 4, 0.40, 1.10),
    Line("c-104", "Trail Runners Prospecting", "social", 95, date(2024, 4, 15), 0.71, 0.011, 0.014, 112, 6, 0.30, 1.20),
    Line("c-105", "Trail Runners Retargeting", "display", 40, date(2024, 4, 15), 0.41, 0.008, 0.034, 108, 6, 0.30, 1.12),
    Line("c-106", "Summer Hiking Boots", "shopping", 150, date(2024, 5, 2), 0.52, 0.019, 0.026, 138, 7, 0.35, 1.05),
    Line("c-107", "Camping Stories", "video", 60, date(2025, 1, 20), 0.83, 0.005, 0.008, 165, 7, 0.35, 1.25),
    Line("c-108", "Newsletter Win-Back", "email", 12, date(2024, 9, 2), 0.09, 0.032, 0.024, 66, 11, 0.20, 0.75),
    Line(
        "c-109", "Winter Clearance", "shopping", 110, date(2024, 1, 2), 0.48, 0.021, 0.029, 92, 1, 0.50, 1.08,
        paused_on=date(2026, 3, 16),
    ),
)  # fmt: skip


def noise(*of: object) -> float:
    """A number in [-1, 1) that depends on nothing but its arguments."""
    digest = blake2b("\x1f".join(map(str, of)).encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big") / 2**63 - 1


def _demand(line: Line, day: date) -> float:
    angle = 2 * math.pi * (day.timetuple().tm_yday / 365.25 - (line.peak_month - 0.5) / 12)
    season = 1 + line.season * math.cos(angle)
    weekday = line.weekend if day.weekday() >= 5 else 1 + (1 - line.weekend) * 0.4
    black_friday = 1.35 if day.month == 11 and 22 <= day.day <= 30 else 1.0
    return season * weekday * black_friday


def potential(tenant: str, line: Line, day: date) -> float:
    """How much the market would take from this campaign on this day, in currency units: 2 to 3 times its first budget."""
    size = 1 + 0.15 * noise(tenant, line.id, "size")
    return 2.4 * line.budget * size * _demand(line, day) * (1 + 0.12 * noise(tenant, line.id, day, "demand"))


def full_day(tenant: str, line: Line, day: date, *, budget_micros: int) -> tuple[float, float, float, float, float]:
    """(impressions, clicks, spend, conversions, revenue) of a whole day at a budget, money in currency units.

    Returns diminish twice: spend nears the day's potential without reaching it, and each click costs more the nearer it gets.
    Spend never exceeds the budget.
    """
    reach = potential(tenant, line, day)
    spend = reach * (1 - math.exp(-budget_micros / MICROS / reach))
    price = line.cost_per_click * (0.75 + 0.6 * spend / reach) * (1 + 0.06 * noise(tenant, line.id, day, "price"))
    clicks = spend / price
    impressions = clicks / (line.click_rate * (1 + 0.10 * noise(tenant, line.id, day, "appeal")))
    conversions = clicks * line.conversion_rate * (1 + 0.22 * noise(tenant, line.id, day, "intent"))
    revenue = conversions * line.order_value * (1 + 0.10 * noise(tenant, line.id, day, "basket"))
    return impressions, clicks, spend, conversions, revenue


def elapsed_share(hours: float, *, of: float) -> float:
    """The share of a day's traffic that `hours` into it has passed: little at night, most by evening. `of` is 23, 24 or 25."""
    part = min(max(hours / of, 0.0), 1.0)
    return 0.3 * part + 0.7 * part * part * (3 - 2 * part)


def rounded(day: tuple[float, float, float, float, float]) -> Metrics:
    """Whole impressions, clicks and conversions; money in whole cents. No orders, no revenue."""
    impressions, clicks, spend, conversions, revenue = day
    orders = math.floor(conversions + 0.5)
    basket = revenue / conversions if conversions else 0.0
    return Metrics(
        impressions=math.floor(impressions),
        clicks=math.floor(clicks),
        spend_micros=math.floor(spend * 100) * (MICROS // 100),
        conversions=min(orders, math.floor(clicks)),
        revenue_micros=math.floor(min(orders, math.floor(clicks)) * basket * 100) * (MICROS // 100),
    )
