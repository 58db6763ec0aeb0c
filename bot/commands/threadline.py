"""`/threadline`: what the app is doing here, what it has used, and what it should do differently."""

from collections.abc import Awaitable, Callable
from datetime import UTC

from agent.approvals import waiting
from agent.feedback import feedback_since
from agent.forgetting import Forgetting
from agent.messages import Transcript
from agent.reports import ReportDesk
from agent.stops import Stopper
from agent.thread import Thread
from agent.usage import used_in_month
from bot.commands.command import Command
from bot.commands.summaries import times
from bot.overheard import Overheard
from bot.people import SlackPeople
from bot.render.text import quoted
from bot.settings_dialog import SettingsDialog
from workflows import RunRow
from workflows.storage import Store

THREADLINE_HELP = """\
Mention me in a channel, or write to me directly: ask how campaigns did, change budgets, have copy drafted.
• `/report [campaign] [period]` makes a report, `/summaries every monday 9:00` a regular one, `/campaigns` lists what there is.
• `/threadline status` tells what I am doing in this channel, `/threadline stop` ends it.
• `/threadline usage` tells what was used this month, `/threadline settings` opens what admins can set.
• `/threadline forget` deletes what I remember of this channel.
In a thread, where Slack allows no slash commands, write `!report`, `!campaigns`, `!threadline status` and so on."""
FORGET_WARNING = (
    "This deletes what I have stored of the conversations in this channel, for good; the messages in Slack stay, and work underway here is"
    " stopped. If you mean it: `/threadline forget this channel`."
)
FORGET_WAIT_S = 20
FORGETTING = (
    "Work in this channel is still ending; as soon as it has, what I have stored of its conversations is deleted."
)
ADMINS_ONLY = "Only an admin of the workspace can have a channel's conversations forgotten."
USE_SLASH = "Settings open in a dialog: use `/threadline settings`, outside of threads, or my Home tab."


class Threadline:
    """Runs what comes after `/threadline`."""

    name = "threadline"
    help = THREADLINE_HELP

    def __init__(
        self,
        store: Store,
        *,
        stopper: Stopper,
        desk: ReportDesk,
        people: SlackPeople,
        settings: SettingsDialog,
        forgetting: Forgetting,
    ) -> None:
        self._store = store
        self._overheard = Overheard(store)
        self._stopper = stopper
        self._desk = desk
        self._people = people
        self._settings = settings
        self._forgetting = forgetting
        self._parts: dict[str, Callable[[Command], Awaitable[str]]] = {
            "": self._help,
            "status": self._status,
            "stop": self._stop,
            "usage": self._usage,
            "settings": self._open_settings,
            "forget": self._warn,
            "forget this channel": self._forget,
        }

    async def run(self, command: Command) -> str:
        part = self._parts.get(" ".join(command.text.lower().split()))
        if part is None:
            return f"I don't know `/threadline {quoted(command.text[:100])}`.\n{THREADLINE_HELP}"
        return await part(command)

    async def _help(self, command: Command) -> str:
        return THREADLINE_HELP

    async def _status(self, command: Command) -> str:
        threads = await self._live(command)
        reports = await self._reports(command)
        asked = await waiting(self._store, command.tenant)
        open_here = [each for each in asked if each.thread.channel == command.channel]
        entry = await self._desk.scheduled(tenant=command.tenant, channel=command.channel)
        lines = [
            _counted(len(threads), "conversation is being worked on", "conversations are being worked on", none="I am not working on anything here" if not reports else ""),
            *([_counted(len(reports), "report is being made", "reports are being made", none="")] if reports else []),
            *(f"Waiting for approval: {quoted(each.evidence.title)}." for each in open_here),
            f"A summary is posted here: {times(entry)}" if entry else "No summaries are posted here.",
        ]  # fmt: skip
        return "\n".join(filter(None, lines))

    async def _stop(self, command: Command) -> str:
        threads = await self._live(command)
        transcript = Transcript(self._store)
        stopped = 0
        for thread in threads:
            last = await transcript.last_said(thread) or f"{(await self._store.now()).timestamp():.6f}"
            stopped += await self._stopper.stop(thread, message_id=last, by=command.user, anew=True)
        reports = await self._reports(command)
        for report in reports:
            await self._desk.stop(report)
        none = "There was nothing to stop here" if not reports else ""
        lines = [
            _counted(stopped, "conversation was stopped", "conversations were stopped", none=none),
            _counted(len(reports), "report was stopped", "reports were stopped", none=""),
        ]
        return "\n".join(filter(None, lines))

    async def _usage(self, command: Command) -> str:
        now = await self._store.now()
        month = now.astimezone(UTC).replace(day=1, hour=0, minute=0, second=0, microsecond=0)
        used = await used_in_month(self._store, command.tenant, now)
        ratings = [each.rating for each in await feedback_since(self._store, command.tenant, month)]
        good, bad = ratings.count("good"), ratings.count("bad")
        return (
            f"In {month:%B %Y} (UTC) this workspace has used {used.calls:,} model calls: {used.input_tokens:,} tokens read"
            f" ({used.cached_tokens:,} of them from the cache) and {used.output_tokens:,} written."
            f" Answers were found helpful {_times(good)} and not helpful {_times(bad)}."
        )

    async def _open_settings(self, command: Command) -> str:
        if not command.trigger_id:
            return USE_SLASH
        return await self._settings.open(command.tenant, command.user, command.trigger_id)

    async def _warn(self, command: Command) -> str:
        return FORGET_WARNING

    async def _forget(self, command: Command) -> str:
        if not command.channel.startswith("D"):  # what was said to the app alone is the person's own
            refusal = await self._people.refusal(command.tenant, command.user, others=ADMINS_ONLY)
            if refusal is not None:
                return refusal
        await self._overheard.forget(command.tenant, command.channel)
        run = await self._forgetting.forget(command.tenant, command.channel, key=command.key)
        try:
            count = await run.result(timeout=FORGET_WAIT_S)
        except TimeoutError:
            return FORGETTING
        return _counted(
            count, "conversation was forgotten", "conversations were forgotten", none="There was nothing to forget here"
        )

    async def _reports(self, command: Command) -> list[RunRow]:
        """The reports that are being made here; in a thread, those for it."""
        here = f"{command.channel}:{command.root}" if command.root else f"{command.channel}:"
        found = await self._desk.underway(tenant=command.tenant, channel=command.channel)
        return [each for each in found if (each.key or "").startswith(here)]

    async def _live(self, command: Command) -> list[Thread]:
        """The threads of this channel that are worked on; in a thread, that one alone."""
        threads = await self._stopper.live(command.tenant, command.channel)
        return [each for each in threads if command.root in ("", each.root)]


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count:,} times"


def _counted(count: int, one: str, many: str, *, none: str) -> str:
    if count == 0:
        return none and f"{none}."
    return f"{count} {one if count == 1 else many}."
