"""The end of a turn: its answer, delivered once."""

from agent.approvals import settle_patiently
from agent.channel import Channel, Delivered
from agent.messages import Transcript
from agent.turn import Turn
from workflows import StepContext
from workflows.storage import Store

EXHAUSTED = (
    "I stopped here: this took more steps than one turn may take. Tell me to go on, or ask for a smaller part of it."
)
CUT = "My answer is cut off here, at the longest it may be. Tell me to go on, and I do."
REFUSED = "The language model declined to say more to this."
EARLY = {"exhausted": EXHAUSTED, "cut": CUT, "refused": REFUSED}
EMPTY = "I have nothing to add to that."


class Answers:
    """Delivers what a turn has to say."""

    def __init__(self, store: Store, channel: Channel) -> None:
        self._store = store
        self._channel = channel
        self._transcript = Transcript(store)

    async def deliver(self, turn: Turn, ctx: StepContext) -> Delivered:
        """Make the answer stand in the thread, exactly once, and the cards above it tell the truth."""
        await settle_patiently(self._store, self._channel, ctx, turn.settling)
        if turn.state == "idle":
            return Delivered(message_ids=())
        text = await self._text(turn, ctx.run_id)
        return await self._channel.deliver(
            turn.thread, text, delivery_id=self._id(turn, ctx), draft=turn.draft, notes=ctx, rated_as=ctx.run_id
        )

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
