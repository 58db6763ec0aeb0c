"""Ad campaigns: the platform seam, an embedded sandbox, periods in ordinary wording, and the tools over them."""

from agent.campaigns.cap import AccountCap
from agent.campaigns.lookup import CampaignLookupError, find_campaign
from agent.campaigns.money import format_micros, parse_micros
from agent.campaigns.periods import Period, PeriodError, UnknownPeriodError, preceding, year_before
from agent.campaigns.phrases import parse_period, parse_relative
from agent.campaigns.platform import (
    Account,
    AdPlatform,
    Campaign,
    Change,
    Channel,
    DailyMetrics,
    Metrics,
    PlatformError,
    Status,
    UnchangedError,
    UnknownCampaignError,
    total,
)
from agent.campaigns.sandbox import CAMPAIGN_TABLES, SandboxPlatform
from agent.campaigns.tools import campaign_tools

__all__ = [
    "CAMPAIGN_TABLES",
    "Account",
    "AccountCap",
    "AdPlatform",
    "Campaign",
    "CampaignLookupError",
    "Change",
    "Channel",
    "DailyMetrics",
    "Metrics",
    "Period",
    "PeriodError",
    "PlatformError",
    "SandboxPlatform",
    "Status",
    "UnchangedError",
    "UnknownCampaignError",
    "UnknownPeriodError",
    "campaign_tools",
    "find_campaign",
    "format_micros",
    "parse_micros",
    "parse_period",
    "parse_relative",
    "preceding",
    "total",
    "year_before",
]
