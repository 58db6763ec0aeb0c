"""Posting to Slack at most once. Slack has no idempotency key, so every message carries metadata that finds it again.

A sender checks an absolute deadline right before it sends, with the HTTP time-out inside it. "Not found" is believed only after that
deadline and a margin: until then a request may still be on its way. What remains is in docs/guarantees.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any, NoReturn

from slack_sdk.errors import SlackApiError
from slack_sdk.web.async_client import AsyncWebClient

from agent.channel import ChannelGoneError, ChannelUnavailableError, Notes
from agent.thread import Thread
from bot.clients import Clients, Credentials, CredentialsUnavailableError, UnknownTenantError, code_of
from bot.render.pacing import PATIENCE_S, MemoryPacer, Pacer
from bot.render.refusals import REFUSED_FORMS, UNKNOWN, meaning
from bot.render.standing import Looks, Standing
from bot.render.text import TEXT_LIMIT

EVENT_TYPE = "threadline_delivery"
INTENT = "intent"
MARGIN_S = 2.0
PAGES = 10
"""Pages of 200 messages that are looked through: more than a thread gets in the minute a delivery is uncertain."""
SKEW = timedelta(seconds=60)
"""How much earlier than the intent a message is looked for: Slack's clock is not ours."""

POST = "chat.postMessage"


@dataclass(frozen=True, slots=True)
class Post:
    """One message to appear once: `delivery_id` and `part` (of `parts`) find it again.

    `smaller` blocks are shown where `blocks` are refused, then `plain`, and a file of `words` where that is refused, too. `below` are blocks that belong
    to the message and not to its words, `comment` stands beside the file.
    """

    thread: Thread
    delivery_id: str
    part: int
    text: str
    blocks: Sequence[dict[str, Any]]
    plain: str = ""
    parts: int = 1
    file_name: str = "answer.md"
    words: str = ""
    below: Sequence[dict[str, Any]] = ()
    comment: str = ""
    smaller: Sequence[dict[str, Any]] = ()
    streams: bool = True
    """Whether a stream of its words shows all of it."""

    @property
    def forms(self) -> list[dict[str, Any]]:
        """How it is shown, the best first: each is for where Slack refuses the one before."""
        blocks = [list(each) for each in (self.blocks, self.smaller) if each]
        forms: list[dict[str, Any]] = [{"text": self.text, "blocks": [*each, *self.below]} for each in blocks]
        plain = self.plain or self.text
        return [*forms, {"text": plain}] if len(plain) <= TEXT_LIMIT or not forms else forms

    @property
    def source(self) -> str:
        """What a file of it holds."""
        return self.words or self.plain or self.text

    @property
    def metadata(self) -> dict[str, Any]:
        return {
            "event_type": EVENT_TYPE,
            "event_payload": {"delivery_id": self.delivery_id, "part": self.part, "parts": self.parts},
        }


def _sendings(notes: Notes) -> int:
    return len(notes.notes("sending-"))


def _posted(post: Post) -> str:
    return f"posted-{post.part}-{post.delivery_id}"


class Posting:
    """Posts and looks for messages.

    `deadline_s`: how long after its intent a message may still arrive. It is sent within half of that, and answered within the other.
    """

    def __init__(
        self,
        clients: Clients,
        *,
        deadline_s: float,
        pacer: Pacer | None = None,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._clients = clients
        self._deadline_s = deadline_s
        self._pacer = pacer or MemoryPacer()
        self.now = now

    async def once(self, post: Post, notes: Notes) -> str:
        """Post unless it stands there already; returns its ts. Raises ChannelUnavailableError, ChannelGoneError."""
        sent = self._sent(post, notes)
        found = await self._found(post, notes, sent) if sent else None
        if found is not None:
            return found
        name, at = await self._intend(post, notes)
        try:
            ts = await self._send(post, at)
            if (
                post.part or post.parts > 1
            ):  # others come with it: nobody need look for this one because one of them is lost
                await notes.note(_posted(post), ts)
            return ts
        except (ChannelUnavailableError, ChannelGoneError, SlackApiError) as error:
            if not getattr(error, "maybe_posted", False):  # refused: it is not on its way, and nobody need wait for it
                await notes.note(f"unsent-{post.part}-{name}", at.isoformat())
            raise

    async def _found(self, post: Post, notes: Notes, sent: Sequence[datetime]) -> str | None:
        """The ts of a message that may have been sent then. None: it was not. Raises ChannelUnavailableError as long as that is uncertain."""
        if posted := notes.noted(_posted(post)):
            return str(posted)
        trusted_at = self._trusted_at(max(sent))

        def told(each: Standing) -> bool:
            return each.tells(post.part, _sendings(notes), trusted_at)

        standing = await self._look(post.thread, post.delivery_id, notes, since=min(sent), enough=told)
        if not told(standing):
            self._wait_until(trusted_at)
        return standing.found.get(post.part)

    def _sent(self, post: Post, notes: Notes) -> list[datetime]:
        """When this message may have been sent: it is looked for since the first time, and believed absent only after the last."""
        sent = {
            name.removeprefix(f"sending-{post.part}-"): value
            for name, value in notes.notes(f"sending-{post.part}-").items()
        }
        if post.part == 0 and notes.intent_at is not None and (notes.recovered or notes.attempt > 1):
            sent[INTENT] = notes.intent_at.isoformat()
        for name in notes.notes(f"unsent-{post.part}-"):
            sent.pop(name.removeprefix(f"unsent-{post.part}-"), None)
        return [datetime.fromisoformat(at) for at in sent.values()]

    async def _intend(self, post: Post, notes: Notes) -> tuple[str, datetime]:
        """The intent of this sending, by name and time. The first of a step is the engine's own; later ones are notes."""
        first = notes.attempt == 1 and not notes.recovered and notes.noted(f"unsent-{post.part}-{INTENT}") is None
        if post.part == 0 and notes.intent_at is not None and first:
            return INTENT, notes.intent_at
        tries = len(notes.notes(f"sending-{post.part}-{notes.fence}.{notes.attempt}"))
        name, at = f"{notes.fence}.{notes.attempt}{f'.{tries}' if tries else ''}", self.now()
        await notes.note(f"sending-{post.part}-{name}", at.isoformat())
        return name, at

    def _trusted_at(self, sent_at: datetime) -> datetime:
        """From when on a message of then that is nowhere to be found was not posted."""
        return sent_at + timedelta(seconds=self._deadline_s + MARGIN_S)

    def _wait_until(self, trusted_at: datetime) -> NoReturn:
        left = max(0.1, (trusted_at - self.now()).total_seconds())
        raise ChannelUnavailableError("it is not certain yet that the message was not posted", retry_after_s=left)

    async def _send(self, post: Post, at: datetime) -> str:
        """In the best form that Slack takes. Raises SlackApiError where it takes none."""
        client = await self.client(post.thread.tenant)
        await self._turn(post.thread)
        *others, last = post.forms
        for shown in (*others, last):
            self._check_deadline(at)
            request = client.chat_postMessage(
                channel=post.thread.channel, thread_ts=post.thread.root or None, metadata=post.metadata, unfurl_links=False,
                unfurl_media=False, **shown,
            )  # fmt: skip
            try:
                return str((await self.call(request, tenant=post.thread.tenant, method=POST))["ts"])
            except SlackApiError as error:
                if code_of(error) not in REFUSED_FORMS or shown is last:
                    raise
        raise AssertionError("all ways of showing a post were tried")

    async def _turn(self, thread: Thread) -> None:
        """Wait for this channel's next place, if it comes soon. Nothing was sent otherwise, and the run waits."""
        taken, wait_s = await self._pacer.take(
            thread.tenant, thread.channel, POST, patience_s=min(PATIENCE_S, self._deadline_s / 4)
        )
        if not taken:
            raise ChannelUnavailableError(
                "this channel has its messages of this second", retry_after_s=wait_s, maybe_posted=False
            )
        if wait_s > 0:
            await asyncio.sleep(wait_s)

    def _check_deadline(self, at: datetime) -> None:
        """A process that was paused between intent and here must not send: others may have looked and not found it."""
        if (self.now() - at).total_seconds() > self._deadline_s / 2:
            raise ChannelUnavailableError(
                "too late to send under this intent", retry_after_s=MARGIN_S, maybe_posted=False
            )

    async def find(self, post: Post, notes: Notes, *, since: datetime) -> str | None:
        """The ts of the message, posted since (about) then."""
        standing = await self._look(
            post.thread, post.delivery_id, notes, since=since, enough=lambda each: post.part in each.found
        )
        return standing.found.get(post.part)

    async def look(self, thread: Thread, delivery_id: str, notes: Notes, *, since: datetime) -> Standing:
        """What stands of a delivery, posted since (about) then."""
        return await self._look(thread, delivery_id, notes, since=since, enough=lambda each: each.whole is not None)

    async def stream_of(self, post: Post, notes: Notes, *, began_at: datetime) -> str | None:
        """The ts of a stream whose start was sent then and whose id was lost: it is known by bot, thread and time.

        The latest counts: one before it may be what a turn that was stopped just now has left. Raises ChannelUnavailableError.
        """
        trusted_at = self._trusted_at(began_at)

        def ours(each: Standing) -> bool:
            return float(each.unsigned or 0) >= began_at.timestamp() - 5

        def told(each: Standing) -> bool:
            return each.ended and each.since <= began_at and (ours(each) or each.began_at >= trusted_at)

        standing = await self._look(post.thread, post.delivery_id, notes, since=began_at, enough=told)
        if not told(standing):
            self._wait_until(trusted_at)
        return standing.unsigned if ours(standing) else None

    async def _look(
        self, thread: Thread, delivery_id: str, notes: Notes, *, since: datetime, enough: Callable[[Standing], bool]
    ) -> Standing:
        """What was noted of a delivery, if that is `enough`, and else what stands of it.

        Slack lets some apps have a page of fifteen messages a minute: how far it was looked is noted, and the next try goes on there.
        """
        me = await self.credentials(thread.tenant)
        looks = Looks(thread, delivery_id, notes)
        if known := looks.answer(enough):
            return known
        begun = next(iter(looks.noted), None)
        standing = (
            begun if begun and not (begun.ended or self._early(begun, notes)) else self._anew(begun, since, notes)
        )
        try:
            async for page, following in self._pages(thread, since=standing.since, cursor=standing.cursor):
                standing = standing.beyond(page, following, delivery_id, me)
        except ChannelUnavailableError:
            if standing != begun:
                await looks.note(standing)
            raise
        standing = replace(standing, cursor="", ended=True)
        if begun is None or not begun.ended or standing.found != begun.found or not self._early(standing, notes):
            await looks.note(standing)
        return standing

    def _anew(self, before: Standing | None, since: datetime, notes: Notes) -> Standing:
        """A new look, since the step's intent where that is earlier: it is for all parts. What was found before stands."""
        earliest = min(since, notes.intent_at or since, before.since if before else since)
        fresh = Standing(earliest, self.now(), _sendings(notes))
        return replace(fresh, parts=before.parts, found=before.found) if before else fresh

    def _early(self, standing: Standing, notes: Notes) -> bool:
        """Whether it began before the last sending, or while one was on its way that must have arrived by now: in a channel the newest come first."""
        sent = [datetime.fromisoformat(at) for at in notes.notes("sending-").values()]
        times = [self._trusted_at(at) for at in (*sent, *filter(None, [notes.intent_at]))]
        return standing.sendings != len(sent) or any(standing.began_at < at <= self.now() for at in times)

    async def replies(self, thread: Thread, *, since: datetime) -> list[dict[str, Any]]:
        """Messages of the thread (or channel, where there is no root) since about then, oldest first."""
        messages = [message async for page, _ in self._pages(thread, since=since) for message in page]
        return sorted(messages, key=lambda message: str(message["ts"]))

    async def _pages(
        self, thread: Thread, *, since: datetime, cursor: str = ""
    ) -> AsyncIterator[tuple[list[dict[str, Any]], str]]:
        """Pages from `cursor` on, with the cursor of the next: of a thread the oldest first, of a channel the newest."""
        client = await self.client(thread.tenant)
        options: dict[str, Any] = {
            "channel": thread.channel,
            "oldest": f"{(since - SKEW).timestamp():.6f}",
            "include_all_metadata": True,
            "limit": 200,
        }
        for _ in range(PAGES):
            more: dict[str, Any] = {"cursor": cursor} if cursor else {}
            read = (
                client.conversations_replies(ts=thread.root, **options, **more)
                if thread.root
                else client.conversations_history(**options, **more)
            )
            method = "conversations.replies" if thread.root else "conversations.history"
            page = await self.call(read, tenant=thread.tenant, method=method)
            cursor = str((page.get("response_metadata") or {}).get("next_cursor") or "")
            yield page.get("messages", []), cursor
            if not cursor:
                return

    async def client(self, tenant: str) -> AsyncWebClient:
        """The tenant's client. Raises as `credentials`."""
        return self._clients.client(await self.credentials(tenant))

    async def credentials(self, tenant: str) -> Credentials:
        """Who the app is there. Raises ChannelGoneError where it is not installed any more, ChannelUnavailableError without a token."""
        try:
            return await self._clients.credentials(tenant)
        except CredentialsUnavailableError as error:
            raise ChannelUnavailableError(str(error), retry_after_s=1.0, maybe_posted=False) from error
        except UnknownTenantError as error:
            raise ChannelGoneError(str(error)) from error

    async def call(self, request: Any, *, tenant: str, method: str) -> Any:
        """Await a Web API call. What Slack refuses for good, what it delays and what is unknown are told apart.

        While Slack has asked to wait with this method, nothing is sent.
        """
        held_s = await self._pacer.held(tenant, method)
        if held_s > 0:
            request.close()
            raise ChannelUnavailableError("Slack asked to wait", retry_after_s=held_s, maybe_posted=False)
        try:
            return await request
        except SlackApiError as error:
            meant = meaning(error)
            if isinstance(meant, ChannelUnavailableError) and meant.retry_after_s and not meant.maybe_posted:
                await self._pacer.hold(tenant, method, meant.retry_after_s)
            raise meant from error
        except UNKNOWN as error:
            raise ChannelUnavailableError(f"Slack did not answer: {type(error).__name__}", retry_after_s=0.5) from error
