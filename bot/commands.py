"""Slash commands: acknowledged at once, the work behind."""

import re
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import structlog

from agent.campaigns import AdPlatform, CampaignLookupError, PeriodError, UnknownPeriodError, parse_period
from agent.campaigns.performance import choose
from agent.reports import ReportDesk, ReportRequest
from bot.people import SlackPeople
from bot.render.dates import moment
from bot.render.text import escaped, unescaped
from workflows.errors import InputError
from workflows.schedules import explain
from workflows.storage import Store
from workflows.storage.base import Schedule

Reply = dict[str, Any]
LAST_WEEK = "last week"
_FILLER = re.compile(r"\A(?:for|of|on|about)\s+|\s+(?:for|in|of|over|during)\Z", re.IGNORECASE)
_CAMPAIGN = re.compile(r"\s+campaigns?\Z", re.IGNORECASE)

REPORT_HELP = (
    "`/report [campaign] [period]`, for example `/report`, `/report last month`, `/report Brand Search last 30 days`."
)
SUMMARIES_HELP = (
    "`/summaries every monday 9:00` posts a weekly summary here, `/summaries` tells when, `/summaries off` ends them."
)


class Commands:
    """Runs commands. Each returns the arguments of Bolt's `ack`; it is ephemeral unless it says otherwise."""

    def __init__(self, store: Store, desk: ReportDesk, platform: AdPlatform, people: SlackPeople) -> None:
        self._store = store
        self._desk = desk
        self._platform = platform
        self._people = people
        self._handlers: dict[str, Callable[..., Awaitable[str]]] = {
            "/report": self._report,
            "/summaries": self._summaries,
        }

    @property
    def names(self) -> tuple[str, ...]:
        """The commands there are."""
        return tuple(self._handlers)

    async def run(self, *, tenant: str, command: dict[str, Any]) -> Reply:
        """Run one command. Raises StoreUnavailableError."""
        name = str(command.get("command"))
        text = unescaped(str(command.get("text") or "")).strip()
        structlog.get_logger().info("command_received", command=name, tenant=tenant)
        return {"response_type": "ephemeral", "text": await self._handlers[name](tenant, command, text)}

    async def _report(self, tenant: str, command: dict[str, Any], text: str) -> str:
        if text.lower() == "help":
            return REPORT_HELP
        asker = await self._people.person(tenant, str(command.get("user_id")))
        try:
            campaigns, period = await self._what(tenant, text, asker.time_zone)
        except (PeriodError, CampaignLookupError) as error:
            return f"{_sentence(error)}\n{REPORT_HELP}"
        request = ReportRequest(
            channel=str(command.get("channel_id")),
            asker=asker,
            campaigns=campaigns,
            period=period,
            reply_url=command.get("response_url"),
        )
        key = str(command.get("trigger_id") or "")
        await self._desk.order(request, tenant=tenant, key=f"{command.get('channel_id')}/{key}")
        about = campaigns if campaigns != "all" else "all campaigns"
        return f"Making the report on {escaped(str(about))}, {escaped(period)}. It is posted here when it is ready."

    async def _what(self, tenant: str, text: str, time_zone: str) -> tuple[str, str]:
        """The campaign and the period, in either order; each may be left out. Raises CampaignLookupError, PeriodError.

        A name may begin like a period ("Winter Clearance"), so a campaign's whole name comes before a period at its head.
        """
        now, campaigns = await self._store.now(), await self._platform.campaigns(tenant)
        if any(text.casefold() == campaign.name.casefold() for campaign in campaigns):
            return text, LAST_WEEK
        problems: dict[bool, Exception] = {}
        for name, period in _readings(text.split()):
            try:
                parse_period(period, now=now, time_zone=time_zone)
                choose(campaigns, name)
            except UnknownPeriodError:
                continue
            except (PeriodError, CampaignLookupError) as error:
                # The longest period leaves the words that must be the name; without one, the whole text would have to be it.
                problems.setdefault(period != LAST_WEEK, error)
                continue
            return name, period
        raise problems[max(problems)]  # the reading without a period has one if nothing else has

    async def _summaries(self, tenant: str, command: dict[str, Any], text: str) -> str:
        channel = str(command.get("channel_id"))
        if text.lower() == "help":
            return SUMMARIES_HELP
        if text.lower() in ("off", "stop", "none", "cancel"):
            gone = await self._desk.unschedule(tenant=tenant, channel=channel)
            return "Summaries in this channel have ended." if gone else "There were no summaries in this channel."
        if not text:
            return await self._when(tenant, channel)
        asker = await self._people.person(tenant, str(command.get("user_id")))
        try:
            entry = await self._desk.schedule(
                re.sub(r"^weekly\b", "", text) or text, tenant=tenant, channel=channel, asker=asker
            )
        except InputError as error:
            return f"{_sentence(error)}\n{SUMMARIES_HELP}"
        return f"I post a campaign summary here: {_times(entry)} `/summaries off` ends it."

    async def _when(self, tenant: str, channel: str) -> str:
        entry = await self._desk.scheduled(tenant=tenant, channel=channel)
        if entry is None:
            return f"No summaries are posted here. {SUMMARIES_HELP}"
        return f"A summary is posted here: {_times(entry)}"


def _readings(words: list[str]) -> Iterator[tuple[str, str]]:
    """Ways to read words as campaign and period: the longest period at the end first, then no period, then one at the start."""
    count = len(words)
    splits = [(words[:at], words[at:]) for at in range(count)]
    splits += [(words, [])]
    splits += [(words[at:], words[:at]) for at in range(count - 1, 0, -1)]
    for campaign, period in splits:
        name = _FILLER.sub("", " ".join(campaign)) or "all"
        for called in dict.fromkeys(
            (name, _CAMPAIGN.sub("", name))
        ):  # "Brand Search campaign", unless one is called so
            yield called, " ".join(period) or LAST_WEEK


def _times(entry: Schedule) -> str:
    """When a schedule fires, and when next, to stand after a colon."""
    when = explain(entry.spec)
    return f"{when[:1].lower()}{when[1:]} ({entry.tz}). Next: {moment(entry.next_at, entry.tz)}."


def _sentence(error: Exception) -> str:
    """An error's words as a sentence of their own, for mrkdwn."""
    text = str(error)
    end = "" if text.endswith((".", "!", "?")) else "."
    return escaped(f"{text[:1].upper()}{text[1:]}{end}")
