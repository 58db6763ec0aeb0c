"""`/summaries`: a summary in a channel, again and again."""

from agent.reports import ReportDesk
from bot.commands.command import Command, sentence
from bot.membership import Membership
from bot.people import SlackPeople
from bot.render.dates import moment
from bot.render.text import quoted
from workflows import InputError, Schedule
from workflows.schedules import explain

SUMMARIES_HELP = (
    "`/summaries every monday 9:00` posts a weekly summary here, `/summaries` tells when, `/summaries off` ends them."
)
NOT_HERE = "I am not in this channel and can't post summaries here: add me with `/invite` first, and then say it again."
OFF = ("off", "stop", "none", "cancel")


class Summaries:
    """Schedules, tells and ends a channel's summaries."""

    name = "summaries"
    help = SUMMARIES_HELP

    def __init__(self, desk: ReportDesk, people: SlackPeople, membership: Membership) -> None:
        self._desk = desk
        self._membership = membership
        self._people = people

    async def run(self, command: Command) -> str:
        tenant, channel, text = command.tenant, command.channel, command.text
        if text.lower() in OFF:
            gone = await self._desk.unschedule(tenant=tenant, channel=channel)
            return "Summaries in this channel have ended." if gone else "There were no summaries in this channel."
        if not text:
            return await self._when(tenant, channel)
        if await self._membership.absent(tenant, channel):
            return NOT_HERE
        asker = await self._people.person(tenant, command.user)
        try:
            entry = await self._desk.schedule(text, tenant=tenant, channel=channel, asker=asker)
        except InputError as error:
            return f"{sentence(error)}\n{SUMMARIES_HELP}"
        return f"I will post a campaign summary here: {times(entry)} `/summaries off` ends it."

    async def _when(self, tenant: str, channel: str) -> str:
        entry = await self._desk.scheduled(tenant=tenant, channel=channel)
        if entry is None:
            return f"No summaries are posted here. {SUMMARIES_HELP}"
        return f"A summary is posted here: {times(entry)}"


def times(entry: Schedule) -> str:
    """When a schedule fires, and when next or why not, to stand after a colon."""
    when = explain(entry.spec)
    if entry.paused:
        why = f": {quoted(entry.paused_reason)}" if entry.paused_reason else ""
        return f"{when[:1].lower()}{when[1:]} ({entry.tz}). They are stopped{why}. `/summaries every monday 9:00` here starts them again."
    return f"{when[:1].lower()}{when[1:]} ({entry.tz}). Next: {moment(entry.next_at, entry.tz)}."
