"""The state of a turn: small, and by reference. Messages are in the transcript, never in here."""

from collections.abc import Sequence
from typing import Literal

from pydantic import BaseModel, ConfigDict

from agent.channel import Draft
from agent.models.base import Person, Usage
from agent.thread import Thread


class CallRef(BaseModel):
    """A tool call, by where it stands: part `index` of message `message_id`; its result goes to `position`.

    An approved call is its approval's; `asker` is then who asked for it, else the turn's asker did.
    """

    model_config = ConfigDict(frozen=True)

    message_id: str
    index: int
    tool: str
    position: int
    approval_id: str | None = None
    asker: Person | None = None


class PendingCall(BaseModel):
    """A tool call to run: where it stands, and whose it is."""

    model_config = ConfigDict(frozen=True)

    ref: CallRef
    thread: Thread
    asker: Person


class Turn(BaseModel):
    """Where a turn stands.

    `position` is the next free place in the transcript. `approved` and `calls` are to be run next; `said` tells whether the answer
    has text already, all of it in the transcript; `draft` is how much of it people see.
    """

    model_config = ConfigDict(frozen=True)

    thread: Thread
    position: int
    asker: Person
    state: Literal["going", "answered", "exhausted", "idle"] = "going"
    iteration: int = 0
    approved: tuple[CallRef, ...] = ()
    calls: tuple[CallRef, ...] = ()
    said: bool = False
    draft: Draft | None = None
    usage: Usage = Usage()

    def pending(self, refs: Sequence[CallRef]) -> list[PendingCall]:
        """Some of its calls, to run."""
        return [PendingCall(ref=ref, thread=self.thread, asker=ref.asker or self.asker) for ref in refs]

    @property
    def continued(self) -> bool:
        """Whether the loop goes on."""
        return self.state == "going"
