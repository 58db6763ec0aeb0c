"""`/report`: a report in the background, on what was asked for in any usual order."""

import re
from collections.abc import Iterator

from agent.campaigns import AdPlatform, CampaignLookupError, PeriodError, UnknownPeriodError, parse_period
from agent.campaigns.performance import choose
from agent.reports import ReportDesk, ReportRequest
from bot.commands.command import Command, sentence
from bot.people import SlackPeople
from bot.render.text import quoted
from workflows.storage import Store

LAST_WEEK = "last week"
_FILLER = re.compile(r"\A(?:for|of|on|about)\s+|\s+(?:for|in|of|over|during)\Z", re.IGNORECASE)
_CAMPAIGN = re.compile(r"\s+campaigns?\Z", re.IGNORECASE)

REPORT_HELP = (
    "`/report [campaign] [period]`, for example `/report`, `/report last month`, `/report Brand Search last 30 days`."
)


class Report:
    """Orders reports."""

    name = "report"
    help = REPORT_HELP

    def __init__(self, store: Store, desk: ReportDesk, platform: AdPlatform, people: SlackPeople) -> None:
        self._store = store
        self._desk = desk
        self._platform = platform
        self._people = people

    async def run(self, command: Command) -> str:
        asker = await self._people.person(command.tenant, command.user)
        try:
            campaigns, period = await self._what(command.tenant, command.text, asker.time_zone)
        except (PeriodError, CampaignLookupError) as error:
            return f"{sentence(error)}\n{REPORT_HELP}"
        request = ReportRequest(
            channel=command.channel,
            root=command.root,
            asker=asker,
            campaigns=campaigns,
            period=period,
            reply_url=command.reply_url,
        )
        await self._desk.order(request, tenant=command.tenant, key=f"{command.channel}/{command.key}")
        about = campaigns if campaigns != "all" else "all campaigns"
        return f"Making the report on {quoted(str(about))}, {quoted(period)}. It will be posted here when it is ready."

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
