"""The Home tab: what the agent may do here, what was set, what is scheduled, which account it looks after."""

import asyncio
import time
from collections.abc import Iterable, Sequence
from typing import Any

import structlog
from slack_sdk.errors import SlackApiError

from agent.campaigns import Account, AdPlatform
from agent.channel import ChannelUnavailableError
from agent.preferences import PreferenceBook, Preferences
from agent.tools import Tool
from bot.clients import Clients
from bot.oauth import SCOPES
from bot.people import SlackPeople
from bot.render.dates import moment
from bot.render.refusals import UNKNOWN, meaning
from bot.render.text import quoted, shortened
from bot.settings_dialog import shown_amount
from bot.views import Block, words
from workflows import Schedule
from workflows.schedules import explain
from workflows.storage import Store

INTRODUCTION = (
    "Mention me in a channel or write to me here. Answers are made by a language model and may be wrong; every figure comes from the"
    " account itself."
)
EDIT = "settings_edit"
"""The action of the button that opens the settings."""
PATIENCE_S = 30.0
"""How long showing one may take: nobody waits for it."""
LEAVE_S = 2.0
LATE_S = 3.0
"""How long after its time-out a publication may still arrive, and the least pause before another one."""
TRIES = 5
"""Publications of one tab that are made because one before may not have arrived, or has been overtaken."""
LIMIT = 1_000
"""Tabs that are being made at a time. A platform that stands still must not fill the memory."""
SCHEDULES = 20
"""Schedules shown."""
SECTION = 2_900
"""Characters of one section, of Slack's 3,000."""


class Home:
    """Publishes Home tabs."""

    def __init__(
        self,
        store: Store,
        platform: AdPlatform,
        people: SlackPeople,
        clients: Clients,
        tools: Iterable[Tool],
        *,
        install_url: str = "",
    ) -> None:
        self._store = store
        self._book = PreferenceBook(store)
        self._platform = platform
        self._people = people
        self._clients = clients
        self._tools = tuple(tools)
        self._install_url = install_url
        self._showing: dict[tuple[str, str], asyncio.Task[None]] = {}
        self._asked: dict[tuple[str, str], asyncio.Event] = {}

    def show(self, tenant: str, user: str) -> None:
        """Show a person their Home tab, behind whatever is answered now. What can't be shown, they see when they open it again."""
        whose = tenant, user
        if whose in self._showing:
            self._asked[whose].set()  # what is under way may have been read before what changed now
        elif len(self._showing) < LIMIT:
            self._asked[whose] = asked = asyncio.Event()
            self._showing[whose] = asyncio.create_task(self._shown(tenant, user, asked))

    async def close(self) -> None:
        """Wait a moment for what is being shown."""
        if self._showing:
            await asyncio.wait(tuple(self._showing.values()), timeout=LEAVE_S)
        for task in tuple(self._showing.values()):
            task.cancel()
        await asyncio.gather(*self._showing.values(), return_exceptions=True)

    async def _shown(self, tenant: str, user: str, asked: asyncio.Event) -> None:
        whose, tries, again_at = (tenant, user), TRIES, 0.0
        try:
            while tries > 0 or asked.is_set():
                asked.clear()
                if (again_s := await self._published(tenant, user)) is not None:
                    again_at = max(again_at, time.monotonic() + again_s)
                if asked.is_set():
                    continue
                if not again_at:
                    break
                # Also where one that was asked for meanwhile has arrived: the one before it may arrive after it.
                if not await _within(asked, again_at - time.monotonic()):
                    tries, again_at = tries - 1, 0.0
        finally:  # without a pause after the last look: whoever asks from now on gets a task of their own
            del self._showing[whose], self._asked[whose]

    async def _published(self, tenant: str, user: str) -> float | None:
        """Show what is stored. Seconds after which it has to be done again; None: it stands, or it can't be done.

        A publication carries no order: one that Slack was slow with replaces a later one, of this process or another. So whoever ends looks
        whether what it shows is still what is stored. Slack's `hash` guards only views of which one was told before, which the first is not.
        """
        try:
            async with asyncio.timeout(PATIENCE_S):
                shown = await self._book.of(tenant)
                view = await self.view(tenant, user)
                await (await self._clients.of(tenant)).views_publish(user_id=user, view=view)
                return None if await self._book.of(tenant) == shown else 0.0
        except Exception as error:
            words = f"{type(error).__name__}: {error}"
            structlog.get_logger().warning("home_not_published", tenant=tenant, user=user, error=words)
            return _again_s(error)

    async def view(self, tenant: str, user: str) -> dict[str, Any]:
        """The tab of one person: admins get a button to edit."""
        person = await self._people.person(tenant, user)
        blocks = [
            _header("What I do here"),
            words(_tools(self._tools)),
            *_settings(await self._book.of(tenant), await self._platform.account(tenant)),
        ]
        # Where Slack does not say who administers, everybody gets the button: who may press it is asked when it is pressed.
        if await self._people.is_admin(tenant, user) is not False:
            button = {"type": "button", "action_id": EDIT, "text": {"type": "plain_text", "text": "Edit settings"}}
            blocks.append({"type": "actions", "elements": [button]})
            blocks += await self._lacks(tenant)
        schedules = await self._store.schedules(tenant=tenant, limit=SCHEDULES + 1)
        blocks += [_header("Scheduled"), words(_schedules(schedules, person.time_zone))]
        return {"type": "home", "blocks": blocks}

    async def _lacks(self, tenant: str) -> list[Block]:
        """What the workspace has not granted of what this version needs: an installation keeps the scopes it was made with."""
        granted = (await self._clients.credentials(tenant)).scopes
        missing = sorted(set(SCOPES) - granted) if granted else []
        if not missing:
            return []
        named = ", ".join(f"`{each}`" for each in missing)
        again = f"<{self._install_url}|Install me again>" if self._install_url else "Install the app again"
        return [
            words(f":warning: This workspace has not allowed me {named}; what needs that fails. {again} to allow it.")
        ]


async def _within(event: asyncio.Event, seconds: float) -> bool:
    """Whether it happens in so many seconds."""
    try:
        async with asyncio.timeout(max(0.0, seconds)):
            return await event.wait()
    except TimeoutError:
        return False


def _again_s(error: Exception) -> float | None:
    """When to publish again after an error: once Slack's wait is over, or once what it may have taken has arrived."""
    meant = meaning(error) if isinstance(error, SlackApiError) else error
    if isinstance(meant, ChannelUnavailableError):
        return max(meant.retry_after_s or 0.0, LATE_S)
    return LATE_S if isinstance(meant, UNKNOWN) else None


def _tools(tools: Sequence[Tool]) -> str:
    runs = [each.name for each in tools if each.permission == "run"]
    asks = [each.name for each in tools if each.permission == "ask"]
    lines = [
        INTRODUCTION,
        f"*Without asking:* {_spoken(runs)}.",
        f"*Only after an approval:* {_spoken(asks)}.",
    ]
    return "\n".join(lines)


def _spoken(names: Sequence[str]) -> str:
    return ", ".join(name.replace("_", " ") for name in names) or "nothing"


def _settings(now: Preferences, account: Account) -> list[Block]:
    currency = account.currency
    approvers = "the admins of the workspace" + "".join(f", <@{each}>" for each in now.approvers)
    lines = [
        f"*Account:* {quoted(account.name)} ({quoted(account.id)}), {quoted(account.time_zone)}",
        f"*Who approves:* {approvers}",
        f"*One may approve alone what they asked for, up to:* {shown_amount(now.alone_limit_micros, currency, none='no limit')}",
        f"*Other apps that may ask me:* {', '.join(f'<@{each}>' for each in now.bots) or 'none'}",
        f"*Spend cap:* {shown_amount(now.spend_cap_micros, currency, none='none')}",
    ]
    changed = f"Last changed by <@{now.by_user}>." if now.by_user else "Nobody has set anything yet."
    guidance = quoted(now.guidance) or "Nothing beyond what I know about the job."
    return [
        _header("Settings"),
        words(shortened("\n".join(lines), SECTION)),
        words(shortened(f"*What the admins want me to know*\n{guidance}", SECTION)),
        {"type": "context", "elements": [{"type": "mrkdwn", "text": changed}]},
    ]


def _schedules(schedules: Sequence[Schedule], time_zone: str) -> str:
    if not schedules:
        return "No summaries are scheduled. `/summaries every monday 9:00` in a channel posts one there."
    lines = [_schedule(each, time_zone) for each in schedules[:SCHEDULES]]
    if len(schedules) > SCHEDULES:
        lines.append("… and more.")
    return shortened("\n".join(lines), SECTION)


def _schedule(entry: Schedule, time_zone: str) -> str:
    kind, _, channel = entry.name.partition(":")
    where = f"<#{channel}>" if channel.startswith(("C", "G")) else "a direct message"
    if entry.paused:
        why = f": {quoted(entry.paused_reason)}" if entry.paused_reason else ""
        return f"• A {quoted(kind)} in {where}: stopped{why}."
    return f"• A {quoted(kind)} in {where}: {explain(entry.spec)} ({quoted(entry.tz)}). Next: {moment(entry.next_at, time_zone)}."


def _header(text: str) -> Block:
    return {"type": "header", "text": {"type": "plain_text", "text": text}}
