"""Taking in what was said: messages, decisions on approvals, ends of background work, in order and each once."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

from pydantic_core import from_json

from agent import approvals
from agent.channel import Channel
from agent.messages import Transcript, added, reworded, taken_in
from agent.models.base import SYSTEM, Message, Person, Text
from agent.models.wording import name, person
from agent.people import People
from agent.stops import Stops
from agent.thread import Thread
from agent.turn import CallRef, Settling, Turn
from workflows import Signal, StepContext
from workflows.storage import Store

LINES_IN = 5
"""Model calls of a turn after which a further line is for the next one, so that somebody who writes on and on is answered."""


Serves = Callable[[str], Awaitable[bool]]
"""Whether a tenant is served still: nothing that it said is worked on once it has left."""


@dataclass(slots=True)
class _Taken:
    """What one drain adds to a turn."""

    position: int
    asker: Person
    askers: list[Person]
    approved: list[CallRef]
    settling: list[Settling] = field(default_factory=list)
    news: int = 0
    fresh: int = 0
    first: str = ""
    lines: bool = False

    def asked(self, person: Person, message_id: str) -> None:
        """Count a request of somebody's."""
        self.asker = person
        self.askers = [each for each in self.askers if each.id != person.id] + [person]
        self.first = self.first or message_id
        self.news += 1


class Inbox:
    """Drains a turn's signals into the transcript."""

    def __init__(self, store: Store, people: People, channel: Channel, *, serves: Serves | None = None) -> None:
        self._serves = serves
        self._store = store
        self._people = people
        self._channel = channel
        self._transcript = Transcript(store)
        self._stops = Stops(store)

    async def open(self, value: None, ctx: StepContext) -> Turn:
        """Begin a turn with everything that waits. Nothing to do: an idle turn."""
        assert ctx.key is not None
        thread = Thread.of(ctx.tenant, ctx.key)
        position = await self._transcript.next_position(thread)
        turn = Turn(
            thread=thread, position=position, asker=SYSTEM, state="idle", joined_at="" if position == 1 else None
        )
        if self._serves is not None and not await self._serves(ctx.tenant):
            await ctx.signals.drain()  # or the end of this turn would begin another one for them
            return turn
        return await self.drain(turn, ctx)

    async def drain(self, turn: Turn, ctx: StepContext) -> Turn:
        """Take in what has arrived since, before the next model call.

        A turn that has its answer takes in no more, unless it is of lines: those that came while the answer was made belong to it, too.
        """
        more = turn.lines and turn.iteration < LINES_IN
        if turn.ended_early or (turn.state == "answered" and not more):
            return turn
        signals = await ctx.signals.drain()
        if not signals:
            return turn
        taken = _Taken(turn.position, turn.asker, list(turn.askers), [])
        await self._messages(turn.thread, [each for each in signals if each.name == "message"], taken, ctx)
        for signal in signals:
            if signal.name == "approval":
                await self._decision(turn.thread, signal, taken, ctx)
            elif signal.name == "task":
                self._task(turn.thread, signal, taken, ctx)
            elif signal.name == "edit":
                await self._edit(turn.thread, signal, taken, ctx)
        state = "going" if taken.news or taken.approved or turn.continued else turn.state
        return turn.model_copy(
            update={
                "position": taken.position,
                "asker": taken.asker,
                "askers": tuple(taken.askers),
                "joined_at": _joined_at(turn, taken),
                "lines": turn.lines or taken.lines,
                "fresh": turn.fresh + taken.fresh,
                "approved": (*turn.approved, *taken.approved),
                "settling": (*turn.settling, *taken.settling),
                "state": state,
            }
        )

    async def _messages(self, thread: Thread, signals: list[Signal], taken: _Taken, ctx: StepContext) -> None:
        """In the order they were written, which a redelivery may have changed; those a stop was meant for are left out."""
        payloads = [_payload(signal) for signal in signals]
        ids = sorted({str(each["id"]) for each in payloads})
        taken.lines = any(each.get("line") for each in payloads)
        if not ids:
            return
        stopped_at = await self._stops.latest(thread)
        known = {
            each: message for each, message in (await self._transcript.get(thread, ids)).items() if each > stopped_at
        }
        authors = {each: await self._author(thread, message.author or SYSTEM) for each, message in known.items()}
        # Looked for again: looking people up takes a while, in which one may have been deleted or changed.
        known = {
            each: message for each, message in (await self._transcript.get(thread, ids)).items() if each in authors
        }
        for message_id in sorted(known):
            message, author = known[message_id], authors[message_id]
            ctx.write(taken_in(thread, message_id, author=author, position=taken.position, run_id=ctx.run_id))
            taken.position += 1
            taken.fresh += 1
            if not message.heard:
                taken.asked(author, message_id)

    async def _author(self, thread: Thread, written: Person) -> Person:
        """Who wrote it, as far as the channel knows; what the message itself told of a stranger stays."""
        found = await self._people.person(thread.tenant, written.id)
        stranger = found.name == found.id and written.outside
        return found.model_copy(update={"outside": True}) if stranger else found

    async def _decision(self, thread: Thread, signal: Signal, taken: _Taken, ctx: StepContext) -> None:
        """An approved call is to be run; a denial or expiry is told to the model. The row is the truth, not the signal."""
        approval = await approvals.find(self._store, thread.tenant, str(_payload(signal)["approval_id"]))
        if approval is None or approval.thread != thread:
            return
        if taken.asker.id == SYSTEM.id:
            taken.asker = approval.requester
        stopped_at = await self._stops.at(thread)
        stopped = stopped_at is not None and approval.decided_at is not None and approval.decided_at <= stopped_at
        called_off = stopped and approval.state == "approved"
        decided = Settling(approval_id=approval.id, outcome="stopped" if called_off else None)
        if not await approvals.settle(self._store, self._channel, thread.tenant, decided):
            taken.settling.append(decided)
        if stopped:
            text = f"approval {approval.id}: denied; reason: the conversation was stopped before it was done"
            self._notice(thread, text, signal, taken, ctx)
            return
        if approval.state == "approved":
            taken.approved.append(
                CallRef(
                    message_id="", index=0, tool=approval.call.name, position=taken.position, approval_id=approval.id,
                    asker=approval.requester,
                )
            )  # fmt: skip
            taken.position += 1
            return
        by = f" by {await self._name(thread.tenant, approval.by_user)}" if approval.by_user else ""
        reason = f"; reason: {approval.reason}" if approval.reason else ""
        self._notice(thread, f"approval {approval.id}: {approval.state}{by}{reason}", signal, taken, ctx)

    async def _name(self, tenant: str, user_id: str) -> str:
        return name(await self._people.person(tenant, user_id))

    async def _edit(self, thread: Thread, signal: Signal, taken: _Taken, ctx: StepContext) -> None:
        """A message that was taken in has another text now, or none. The turn at work on it goes by what it says now; later ones are told of
        it, which is no reason to answer by itself.
        """
        payload = _payload(signal)
        message_id, deleted = str(payload["id"]), bool(payload["deleted"])
        message = await self._transcript.taken(thread, message_id)
        again = None if deleted else (await self._transcript.get(thread, [signal.dedup_key])).get(signal.dedup_key)
        if message is None or (again is None and not deleted):
            return  # forgotten meanwhile
        author = message.author or SYSTEM
        ours = await self._transcript.taken(thread, message_id, by_run=ctx.run_id) is not None
        follows = "its place has what it says now" if ours else "what it says now follows"
        told = "deleted" if deleted else f"changed; {follows}"
        news = taken.news
        self._notice(thread, f"message {message_id} of {person(author)} was {told}", signal, taken, ctx)
        if ours:
            if again is not None:
                ctx.write(reworded(thread, message_id, again.parts))
            return
        taken.news = news
        if again is not None:
            # Its author's own words: in the notice itself they would pass for the system's.
            ctx.write(taken_in(thread, signal.dedup_key, author=author, position=taken.position, run_id=ctx.run_id))
            taken.position += 1

    def _task(self, thread: Thread, signal: Signal, taken: _Taken, ctx: StepContext) -> None:
        """Background work posts its own result; only its failure is news for the conversation."""
        payload = _payload(signal)
        if payload.get("state") != "done":
            self._notice(
                thread, f"background work {payload.get('path', '')} ended: {payload.get('state')}", signal, taken, ctx
            )

    @staticmethod
    def _notice(thread: Thread, text: str, signal: Signal, taken: _Taken, ctx: StepContext) -> None:
        message = Message(role="user", parts=(Text(text=text),), author=SYSTEM, notice=True)
        ctx.write(added(thread, f"notice:{signal.dedup_key}", message, position=taken.position, run_id=ctx.run_id))
        taken.position += 1
        taken.news += 1


def _joined_at(turn: Turn, taken: _Taken) -> str | None:
    """The message that brings the agent into a thread which begins with another one."""
    if turn.joined_at != "":
        return turn.joined_at
    return taken.first if taken.first and taken.first != turn.thread.root else None


def _payload(signal: Signal) -> dict[str, Any]:
    return dict(from_json(signal.payload or b"{}"))
