"""Slack as the agent's channel: drafts, answers, cards, status."""

import contextlib
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime

import structlog
from slack_sdk.errors import SlackApiError

from agent.channel import Card, ChannelGoneError, ChannelUnavailableError, Delivered, Draft, Notes, Place
from agent.models.base import Person
from agent.reports import LostPlace
from agent.reports.document import Document
from agent.thread import Thread
from bot.broadcasts import neutral
from bot.clients import Clients, code_of
from bot.render.cards import card_blocks, card_text, small_card
from bot.render.drafts import Drafts
from bot.render.feedback import feedback_block
from bot.render.forms import Forms, posts_of, refusals
from bot.render.lost import lost_text
from bot.render.pacing import Pacer
from bot.render.posting import Post, Posting
from bot.render.publishing import Publishing
from bot.render.refusals import REFUSED_FORMS
from bot.render.sessions import Sessions
from bot.render.stream import SlackStream, TeamOf
from bot.render.uploads import Uploads


async def _tenant(tenant: str, user_id: str) -> str:
    return tenant


class SlackChannel:
    """Implements `agent.channel.Channel` with Slack's Web API. `team_of`: the workspace of a person, which a stream is addressed to.

    `group`: whether a thread is in a direct message of several people.
    """

    def __init__(
        self,
        clients: Clients,
        *,
        deadline_s: float = 8.0,
        pacer: Pacer | None = None,
        cards: bool = False,
        team_of: TeamOf | None = None,
        group: Callable[[Thread], Awaitable[bool]] | None = None,
    ) -> None:
        self._group = group
        self._team_of = team_of or _tenant
        self._cards = cards
        self._clients = clients
        self._posting = Posting(clients, deadline_s=deadline_s, pacer=pacer)
        uploads = Uploads(self._posting, clients)
        self._forms = Forms(self._posting, uploads)
        self._publishing = Publishing(self._forms, uploads)
        self._drafts = Drafts(self._posting)
        self._sessions = Sessions(self._posting)

    async def working(self, thread: Thread, text: str, *, about: str = "") -> None:
        await self._sessions.working(thread, text, about=about)

    # Answers

    def stream(
        self,
        thread: Thread,
        asker: Person,
        *,
        delivery_id: str,
        draft: Draft | None,
        notes: Notes,
        so_far: Callable[[], Awaitable[str]],
    ) -> SlackStream:
        return SlackStream(
            self._posting, thread, asker, delivery_id=delivery_id, draft=draft, notes=notes, so_far=so_far, status=None if self._cards else self.working,
            team_of=self._team_of,
        )  # fmt: skip

    async def deliver(
        self,
        thread: Thread,
        text: str,
        *,
        delivery_id: str,
        draft: Draft | None,
        notes: Notes,
        rated_as: str | None = None,
    ) -> Delivered:
        posts = posts_of(thread, neutral(text), delivery_id)
        if rated_as is not None:
            posts[-1] = replace(posts[-1], below=(feedback_block(rated_as),))
        with refusals():
            finished = await self._drafts.finish(posts[0], draft, notes)
            first = finished if finished is not None else await self._forms.post(posts[0], notes)
            message_ids = (first, *[await self._forms.post(post, notes) for post in posts[1:]])
            await self._sessions.rest(thread, notes)
            return Delivered(message_ids=message_ids)

    async def find(
        self, thread: Thread, *, delivery_id: str, notes: Notes, since: datetime | None = None
    ) -> Delivered | None:
        """A look: what is missing or uncertain is for `deliver` to settle. What is there whole ends the work, as a delivery does."""
        since = since or notes.intent_at or datetime.now(UTC)
        with contextlib.suppress(ChannelUnavailableError, ChannelGoneError, SlackApiError):
            found = (await self._posting.look(thread, delivery_id, notes, since=since)).whole
            if found is None:
                return None
            await self._sessions.rest(thread, notes)
            return Delivered(message_ids=found)
        return None

    async def conversation(self, tenant: str, user_id: str) -> str:
        """The direct message with a person, opened if it is not there. Raises ChannelUnavailableError, ChannelGoneError."""
        client = await self._posting.client(tenant)
        with refusals():
            opened = await self._posting.call(
                client.conversations_open(users=user_id), tenant=tenant, method="conversations.open"
            )
        return str(opened["channel"]["id"])

    # Documents

    async def publish(
        self, thread: Thread, document: Document, *, delivery_id: str, reply_url: str | None, notes: Notes
    ) -> Delivered:
        return await self._publishing.publish(
            thread, document, delivery_id=delivery_id, reply_url=reply_url, notes=notes
        )

    async def tell_lost(
        self, tenant: str, user_id: str, lost: LostPlace, *, delivery_id: str, notes: Notes
    ) -> Delivered:
        thread = Thread(tenant=tenant, channel=await self.conversation(tenant, user_id), root="")
        text = lost_text(lost)
        post = Post(thread, delivery_id, 0, text, [{"type": "section", "text": {"type": "mrkdwn", "text": text}}], text)
        with refusals():
            return Delivered(message_ids=(await self._posting.once(post, notes),))

    # Cards

    async def private(self, thread: Thread) -> bool:
        return thread.channel.startswith("D") or (self._group is not None and await self._group(thread))

    async def ask(self, thread: Thread, card: Card, *, notes: Notes) -> tuple[Place, ...]:
        with refusals():
            ts = await self._posting.once(_card_post(thread, card), notes)
        places = [Place(channel=thread.channel, message_id=ts)]
        for number, user in enumerate(card.sent_to or (), 1):
            try:
                places.append(await self._ask_directly(thread.tenant, user, number, card, notes))
            except (
                ChannelGoneError
            ) as error:  # whoever can't be written to any more keeps nobody from asking the others
                structlog.get_logger().warning("card_not_sent", approval=card.approval_id, user=user, error=str(error))
        reached = tuple(place.user for place in places[1:])
        if card.sent_to is not None and reached != card.sent_to:
            truth = card.model_copy(update={"sent_to": reached})
            if not await self._settle(thread, places[0], truth):
                raise ChannelUnavailableError(f"the card of {card.approval_id} names people whom it did not reach")
        return tuple(places)

    async def _ask_directly(self, tenant: str, user: str, number: int, card: Card, notes: Notes) -> Place:
        there = Thread(tenant=tenant, channel=await self.conversation(tenant, user), root="")
        with refusals():
            ts = await self._posting.once(_card_copy(there, card, user, number), notes)
        return Place(channel=there.channel, message_id=ts, user=user)

    async def standing(self, thread: Thread, card: Card, *, notes: Notes, since: datetime) -> tuple[Place, ...]:
        places: list[Place] = []
        posts = [_card_post(thread, card)]
        with contextlib.suppress(ChannelUnavailableError, ChannelGoneError, SlackApiError):
            for number, user in enumerate(card.sent_to or (), 1):
                there = Thread(tenant=thread.tenant, channel=await self.conversation(thread.tenant, user), root="")
                posts.append(_card_copy(there, card, user, number))
        for post in posts:
            with contextlib.suppress(ChannelUnavailableError, ChannelGoneError, SlackApiError):
                ts = await self._posting.find(post, notes, since=since)
                places += [Place(channel=post.thread.channel, message_id=ts)] if ts else []
        return tuple(places)

    async def settle(self, thread: Thread, places: Sequence[Place], card: Card) -> bool:
        settled = [await self._settle(thread, place, card) for place in places]
        return all(settled)

    async def _settle(self, thread: Thread, place: Place, card: Card) -> bool:
        for shown in _card_post(thread, card).forms:
            try:
                client = await self._posting.client(thread.tenant)
                update = client.chat_update(channel=place.channel, ts=place.message_id, **{"blocks": [], **shown})
                await self._posting.call(update, tenant=thread.tenant, method="chat.update")
                return True
            except SlackApiError as error:
                if code_of(error) not in REFUSED_FORMS:
                    _not_settled(card, error)
                    return True  # it is not there any more, or not ours: asking again would say the same
            except ChannelGoneError as error:
                _not_settled(card, error)
                return True
            except ChannelUnavailableError as error:
                _not_settled(card, error)
                return False
        return True


def _not_settled(card: Card, error: Exception) -> None:
    structlog.get_logger().warning(
        "card_not_settled", approval=card.approval_id, error=f"{type(error).__name__}: {error}"
    )


def _card_post(thread: Thread, card: Card) -> Post:
    blocks, smaller = card_blocks(card), small_card(card)
    return Post(thread, f"approval:{card.approval_id}", 0, card_text(card), blocks, smaller=smaller)


def _card_copy(thread: Thread, card: Card, user: str, number: int) -> Post:
    """The card for one who may decide it and does not see where it was asked for. `number`, from 1, tells its sending from the others'."""
    post = _card_post(thread, card.model_copy(update={"sent_to": None}))
    return replace(post, delivery_id=f"{post.delivery_id}:{user}", part=number)
