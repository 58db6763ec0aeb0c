"""The state of a turn: small, and by reference. Messages are in the transcript, never in here."""

from collections.abc import Sequence
from typing import Literal

from pydantic import BaseModel, ConfigDict

from agent.channel import Draft, Outcome
from agent.models.base import Person, Usage
from agent.thread import Thread


class CallRef(BaseModel):
    """A tool call, by where it stands: part `index` of message `message_id`; its result goes to `position`.

    An approved call is its approval's; `asker` is then who asked for it, else the turn's asker did. `untrusted`: the model had words
    from outside before it when it asked for the call, or worked for people from outside.
    """

    model_config = ConfigDict(frozen=True)

    message_id: str
    index: int
    tool: str
    position: int
    approval_id: str | None = None
    asker: Person | None = None
    untrusted: bool = False


class PendingCall(BaseModel):
    """A tool call to run: where it stands, and whose it is; `askers` are all whose words the turn works on."""

    model_config = ConfigDict(frozen=True)

    ref: CallRef
    thread: Thread
    asker: Person
    askers: tuple[Person, ...] = ()


class Settling(BaseModel):
    """A card that is to tell how it was decided and, of an approved call, what came of it."""

    model_config = ConfigDict(frozen=True)

    approval_id: str
    outcome: Outcome | None = None


class Turn(BaseModel):
    """Where a turn stands.

    `state`: what ended it, once it does not go on: its answer, one that was `cut` at its longest or `refused` by the model, its budget,
    or that there was nothing to do. `position` is the next free place in the transcript. `approved` and `calls` are to be run next, the cards of `settling` to be edited; `said` tells whether the answer
    has text already, all of it in the transcript; `draft` is how much of it people see. `joined_at` is the message that brought the
    agent into a thread that others began, until what was said before it is recalled. `askers` are all whose words it works on. `fresh` messages were taken in since the last model call. `lines`: it began with
    a line to which others may belong.
    """

    model_config = ConfigDict(frozen=True)

    thread: Thread
    position: int
    asker: Person
    state: Literal["going", "answered", "cut", "refused", "exhausted", "idle"] = "going"
    joined_at: str | None = None
    askers: tuple[Person, ...] = ()
    lines: bool = False
    iteration: int = 0
    fresh: int = 0
    approved: tuple[CallRef, ...] = ()
    calls: tuple[CallRef, ...] = ()
    settling: tuple[Settling, ...] = ()
    said: bool = False
    draft: Draft | None = None
    usage: Usage = Usage()

    @property
    def ended_early(self) -> bool:
        """Whether there is something to say below its answer: why that is not all."""
        return self.state in ("cut", "refused", "exhausted")

    def pending(self, refs: Sequence[CallRef]) -> list[PendingCall]:
        """Some of its calls, to run."""
        return [
            PendingCall(ref=ref, thread=self.thread, asker=ref.asker or self.asker, askers=self.askers) for ref in refs
        ]

    @property
    def continued(self) -> bool:
        """Whether the loop goes on."""
        return self.state == "going"
