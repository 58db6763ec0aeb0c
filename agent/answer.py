"""The end of a turn: the answer delivered once, or a plain word about why there is none."""

from pydantic_core import from_json

from agent.channel import Channel, ChannelGoneError, Delivered, Draft
from agent.messages import Transcript, added
from agent.models.base import Message, Text
from agent.thread import Thread
from agent.turn import Turn
from workflows import FailedRun, Retry, RunState, StepContext
from workflows.storage import Store

RETRY = Retry(
    times=50, base=1, cap=120, non_retryable=(ChannelGoneError, LookupError, TypeError, ValueError, AssertionError)
)
"""Slack may be away for an hour: delivery waits, suspended, and goes on."""

EXHAUSTED = (
    "I stopped here: this took more steps than one turn may take. Tell me to go on, or ask for a smaller part of it."
)
EMPTY = "I have nothing to add to that."


class Answers:
    """Delivers what a turn has to say."""

    def __init__(self, store: Store, channel: Channel) -> None:
        self._store = store
        self._channel = channel
        self._transcript = Transcript(store)

    async def deliver(self, turn: Turn, ctx: StepContext) -> Delivered:
        """Make the answer stand in the thread, exactly once."""
        text = await self._text(turn)
        return await self._channel.deliver(
            turn.thread, text, delivery_id=self._id(turn, ctx), draft=turn.draft, notes=ctx
        )

    async def find(self, key: str, turn: Turn, ctx: StepContext) -> Delivered | None:
        """The answer, if it stands there whole already."""
        return await self._channel.find(turn.thread, delivery_id=self._id(turn, ctx), notes=ctx)

    @staticmethod
    def _id(turn: Turn, ctx: StepContext) -> str:
        return turn.draft.delivery_id if turn.draft else f"{ctx.run_id}:answer"

    async def _text(self, turn: Turn) -> str:
        messages = await self._transcript.get(turn.thread, turn.answer)
        parts = [messages[message_id].text.strip() for message_id in turn.answer]
        if turn.state == "exhausted":
            parts.append(EXHAUSTED)
        return "\n\n".join(part for part in parts if part) or EMPTY

    # Turns that have no answer

    async def apologise(self, failed: FailedRun, ctx: StepContext) -> Delivered | None:
        """Say in the thread that a turn ended without an answer, what was done and what was not."""
        if failed.key is None:
            return None
        thread = Thread.of(ctx.tenant, failed.key)
        text = await self._apology(failed, thread)
        draft = await self._abandoned_draft(failed.run_id)
        message = Message(role="assistant", parts=(Text(text=text),))
        position = await self._transcript.next_position(thread)
        ctx.write(added(thread, f"{failed.run_id}:notice", message, position=position, run_id=failed.run_id))
        return await self._channel.deliver(thread, text, delivery_id=f"{failed.run_id}:notice", draft=draft, notes=ctx)

    async def find_apology(self, key: str, failed: FailedRun, ctx: StepContext) -> Delivered | None:
        """The apology, if it stands there already."""
        thread = Thread.of(ctx.tenant, failed.key or "")
        return await self._channel.find(thread, delivery_id=f"{failed.run_id}:notice", notes=ctx)

    async def _apology(self, failed: FailedRun, thread: Thread) -> str:
        done = await self._finished_tools(failed.run_id)
        did = f" Before that I had finished: {', '.join(done)}." if done else " Nothing was changed."
        if failed.state is RunState.CANCELLED:
            return f"Stopped, as you asked.{did}"
        reason = _reason(failed)
        return f"I could not finish this: {reason}{did} Ask me again and I start over."

    async def _finished_tools(self, run_id: str) -> list[str]:
        """Calls that were approved and run: reads are no news."""
        records = await self._store.load(run_id)
        return [
            f"an approved change ({record.path.rsplit('/', 1)[-1]})"
            for record in records
            if "run-approved" in record.path and record.status == "ok"
        ]

    async def _abandoned_draft(self, run_id: str) -> Draft | None:
        """The half-shown answer a dead turn left behind: the notice takes its place, so that no cut-off text stands there."""
        records = await self._store.load(run_id)
        shown = [record for record in records if record.path.endswith("!stream-message")]
        if not shown or any(record.path == "deliver" for record in records):
            return None
        draft = Draft.model_validate(from_json(shown[-1].output or b"{}"))
        return draft.model_copy(update={"live": False})


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
