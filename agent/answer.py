"""The end of a turn: the answer delivered once, or a plain word about why there is none."""

from collections.abc import Sequence
from datetime import datetime

from pydantic_core import from_json

from agent.approvals import LIFETIME, find, settle_all, shown, withdrawn
from agent.channel import Channel, ChannelUnavailableError, Delivered, Draft
from agent.messages import Transcript, added
from agent.models.base import Message, Text
from agent.thread import Thread
from agent.turn import Settling, Turn
from workflows import FailedRun, Record, RunState, Status, StepContext
from workflows.storage import Store

EXHAUSTED = (
    "I stopped here: this took more steps than one turn may take. Tell me to go on, or ask for a smaller part of it."
)
CUT = "My answer is cut off here, at the longest it may be. Tell me to go on, and I do."
REFUSED = "The language model declined to say more to this."
EARLY = {"exhausted": EXHAUSTED, "cut": CUT, "refused": REFUSED}
PATIENT_TRIES = 5
"""Tries that wait until Slack takes the edit of a card. The answer is not to be held up for ever."""
EMPTY = "I have nothing to add to that."


class Answers:
    """Delivers what a turn has to say."""

    def __init__(self, store: Store, channel: Channel) -> None:
        self._store = store
        self._channel = channel
        self._transcript = Transcript(store)

    async def deliver(self, turn: Turn, ctx: StepContext) -> Delivered:
        """Make the answer stand in the thread, exactly once, and the cards above it tell the truth."""
        await self._settle(turn.thread, turn.settling, ctx)
        text = await self._text(turn, ctx.run_id)
        return await self._channel.deliver(
            turn.thread, text, delivery_id=self._id(turn, ctx), draft=turn.draft, notes=ctx, rated_as=ctx.run_id
        )

    async def _settle(self, thread: Thread, settling: Sequence[Settling], ctx: StepContext) -> None:
        left = await settle_all(self._store, self._channel, thread.tenant, settling)
        if left and ctx.attempt <= PATIENT_TRIES:
            raise ChannelUnavailableError(f"{len(left)} cards could not be edited")

    async def find(self, key: str, turn: Turn, ctx: StepContext) -> Delivered | None:
        """The answer, if it stands there whole already."""
        return await self._channel.find(turn.thread, delivery_id=self._id(turn, ctx), notes=ctx)

    @staticmethod
    def _id(turn: Turn, ctx: StepContext) -> str:
        return turn.draft.delivery_id if turn.draft else f"{ctx.run_id}:answer"

    async def _text(self, turn: Turn, run_id: str) -> str:
        parts = [message.text.strip() for message in await self._transcript.said(turn.thread, run_id)]
        if turn.ended_early:
            parts.append(EARLY[turn.state])
        return "\n\n".join(part for part in parts if part) or EMPTY

    # Turns that have no answer

    async def apologise(self, failed: FailedRun, ctx: StepContext) -> Delivered | None:
        """Say in the thread that a turn ended without an answer, what was done and what was not."""
        records = await self._store.load(failed.run_id)
        if failed.key is None or _answered(records):
            return None
        thread = Thread.of(ctx.tenant, failed.key)
        text = _apology(failed, records)
        message = Message(role="assistant", parts=(Text(text=text),))
        position = await self._transcript.next_position(thread)
        ctx.write(added(thread, f"{failed.run_id}:notice", message, position=position, run_id=failed.run_id))
        asks = [
            approval_id for approval_id in _unanswered_asks(records) if await self._withdraw(thread, approval_id, ctx)
        ]
        await self._settle(thread, [Settling(approval_id=approval_id) for approval_id in asks], ctx)
        draft = _abandoned_draft(records)
        return await self._channel.deliver(thread, text, delivery_id=f"{failed.run_id}:notice", draft=draft, notes=ctx)

    async def _withdraw(self, thread: Thread, approval_id: str, ctx: StepContext) -> bool:
        """Nobody can decide it any more. Returns whether its card may stand there: it was posted, and its id was lost with the turn."""
        await self._store.write(withdrawn(ctx.tenant, approval_id))
        approval = await find(self._store, ctx.tenant, approval_id)
        if approval is None or approval.message_id is not None:
            return approval is not None
        card = await self._channel.find(
            thread, delivery_id=f"approval:{approval_id}", notes=ctx, since=approval.expires_at - LIFETIME
        )
        if card is not None:
            await self._store.write(shown(approval, card.message_ids[0]))
        return card is not None

    async def find_apology(self, key: str, failed: FailedRun, ctx: StepContext) -> Delivered | None:
        """The apology, if it stands there already."""
        thread = Thread.of(ctx.tenant, failed.key or "")
        return await self._channel.find(thread, delivery_id=f"{failed.run_id}:notice", notes=ctx)


def _answered(records: Sequence[Record]) -> bool:
    """Whether the answer was delivered before the run was stopped: nothing is missing then."""
    return any(record.path.endswith("/deliver") and record.status is Status.OK for record in records)


def _apology(failed: FailedRun, records: Sequence[Record]) -> str:
    did = _done(records)
    if failed.state is RunState.CANCELLED:
        return f"Stopped, as you asked. {did}"
    return f"I could not finish this: {_reason(failed)} {did} Ask me again and I start over."


def _done(records: Sequence[Record]) -> str:
    """What happened to campaigns before the turn ended. Only approved calls change them."""
    outcomes = [_outcome(record) for record in records if _is_approved_call(record)]
    if "unknown" in outcomes or _cut_off(records):
        return "An approved change was cut off and nobody knows whether it happened: please check it before you ask for it again."
    made = outcomes.count("done")
    return (
        f"{made} approved change{'s were' if made > 1 else ' was'} made before that."
        if made
        else "No campaign was changed."
    )


def _is_approved_call(record: Record) -> bool:
    return (
        "/run-approved[" in record.path and "!" not in record.path and record.status in (Status.OK, Status.INTERRUPTED)
    )


def _outcome(record: Record) -> str:
    return "unknown" if record.status is Status.INTERRUPTED else str(from_json(record.output or b"{}").get("outcome"))


def _cut_off(records: Sequence[Record]) -> bool:
    """Whether an approved call was on its way and has no result."""
    ended = {record.path for record in records}
    begun = [path for path in ended if "/run-approved[" in path and path.endswith(("!intent", "!as-shown"))]
    return any(path.rsplit("!", 1)[0] not in ended for path in begun)


def _unanswered_asks(records: Sequence[Record]) -> list[str]:
    """Approvals whose card may stand in the thread, of calls that were never said to wait: the notice says that nothing happens."""
    told = {record.path for record in records if record.status is Status.OK}
    asked = [
        record
        for record in records
        if record.path.endswith("!approval") and record.path.removesuffix("!approval") not in told
    ]
    return [str(from_json(record.output or b"{}").get("id", "")) for record in asked]


def _abandoned_draft(records: Sequence[Record]) -> Draft | None:
    """The half-shown answer a dead turn left behind: the notice takes its place, so that no cut-off text stands there."""
    notes = [record for record in records if record.status is Status.NOTE]
    shown = [record for record in notes if record.path.endswith("!stream-message")]
    if shown:
        return Draft.model_validate(from_json(shown[-1].output or b"{}")).model_copy(update={"live": False})
    began = [record for record in notes if record.path.endswith("!stream-intent")]
    if began:
        return Draft(
            delivery_id="", live=False, began_at=datetime.fromisoformat(from_json(began[-1].output or b"null"))
        )
    return None


def _reason(failed: FailedRun) -> str:
    kind = failed.failure.get("type", "")
    known = {
        "ModelUnavailableError": "the language model did not answer, also after several tries.",
        "ModelAccessError": "the language model refuses our access; an operator has to look at it.",
        "ModelRequestError": "the language model could not take this conversation.",
        "IterationLimitError": "it took more steps than one turn may take.",
    }
    if failed.state is RunState.DEAD:
        return "the process that worked on it died again and again."
    return known.get(str(kind), "something broke on our side.")
