"""What was said in a thread before the agent came: read once, attributed, and kept as context that asks for nothing."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from agent.channel import ChannelGoneError
from agent.messages import recalled
from agent.models.base import SYSTEM, Message, Text
from agent.thread import Thread
from agent.turn import Turn
from workflows import StepContext

UNREAD = "what was said here after that, up to the mention, could not be read now. Say so where it matters, and ask for what is missing"


@dataclass(frozen=True, slots=True)
class Past:
    """Messages of a thread by id, oldest first, the root among them if it still stands. `left_out`: how many in between are not.

    `unread`: those that follow, up to the mention, could not be read, and nobody knows how many they are.
    """

    messages: Sequence[tuple[str, Message]]
    left_out: int = 0
    unread: bool = False


class History(Protocol):
    """Where the past of threads is read."""

    async def before(self, thread: Thread, message_id: str) -> Past:
        """What stands in the thread before a message. Raises ChannelUnavailableError (try later), ChannelGoneError (can't be read)."""
        ...


class NoHistory:
    """For channels that keep none."""

    async def before(self, thread: Thread, message_id: str) -> Past:
        """Nothing."""
        return Past(())


class Recollection:
    """Gives a turn that came into the middle of a thread what was said there before."""

    def __init__(self, history: History) -> None:
        self._history = history

    async def recall(self, turn: Turn, ctx: StepContext) -> Turn:
        """The turn, with the past of its thread in the transcript. What can't be read is said to be so."""
        assert turn.joined_at is not None
        try:
            past = await self._history.before(turn.thread, turn.joined_at)
        except ChannelGoneError as error:
            past = Past(((f"{ctx.run_id}:past", _notice(f"what was said here before could not be read: {error}")),))
        said = list(past.messages)
        if past.left_out:
            gap = _notice(f"{past.left_out} messages in between are left out")
            said.insert(1, (f"{ctx.run_id}:gap", gap))
        if past.unread:
            said.append((f"{ctx.run_id}:unread", _notice(UNREAD)))
        for place, (message_id, message) in enumerate(said, 1 - len(said)):
            ctx.write(recalled(turn.thread, message_id, message, position=place, run_id=ctx.run_id))
        return turn.model_copy(update={"joined_at": None})


def _notice(text: str) -> Message:
    return Message(role="user", parts=(Text(text=text),), author=SYSTEM, notice=True)
