"""Slash commands: acknowledged at once, the work behind."""

import re
from collections.abc import Awaitable, Callable
from typing import Any

import structlog

from agent.campaigns import AdPlatform, CampaignLookupError, PeriodError, parse_period
from agent.campaigns.performance import choose
from agent.reports import ReportDesk, ReportRequest
from bot.people import SlackPeople
from bot.render.text import escaped, unescaped
from workflows.errors import InputError
from workflows.schedules import explain
from workflows.storage import Store

Reply = dict[str, Any]
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
            return f"{escaped(str(error))}\n{REPORT_HELP}"
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
        """The campaign and the period, in either order: the longest tail, then the longest head, that reads as a period."""
        now = await self._store.now()
        words = text.split()
        splits = [(words[:at], words[at:]) for at in range(len(words))] + [
            (words[at:], words[:at]) for at in range(len(words), 0, -1)
        ]
        for campaign, period in splits:
            if _reads_as_period(" ".join(period), now, time_zone):
                name = " ".join(campaign) or "all"
                choose(await self._platform.campaigns(tenant), name)
                return name, " ".join(period)
        name = text or "all"
        choose(await self._platform.campaigns(tenant), name)
        return name, "last week"

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
            return f"{escaped(str(error))}.\n{SUMMARIES_HELP}"
        return f"I post a campaign summary here: {explain(entry.spec)} ({entry.tz}). Next: {_date(entry.next_at)}. `/summaries off` ends it."

    async def _when(self, tenant: str, channel: str) -> str:
        entry = await self._desk.scheduled(tenant=tenant, channel=channel)
        if entry is None:
            return f"No summaries are posted here. {SUMMARIES_HELP}"
        return f"A summary is posted here: {explain(entry.spec)} ({entry.tz}). Next: {_date(entry.next_at)}."


def _reads_as_period(text: str, now: Any, time_zone: str) -> bool:
    try:
        parse_period(text, now=now, time_zone=time_zone)
    except PeriodError:
        return False
    return True


def _date(at: Any) -> str:
    return f"<!date^{int(at.timestamp())}^{{date_short_pretty}} {{time}}|{at:%Y-%m-%d %H:%M} UTC>"
