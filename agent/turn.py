"""The state of a turn: small, and by reference. Messages are in the transcript, never in here."""

from typing import Literal

from pydantic import BaseModel, ConfigDict

from agent.channel import Draft
from agent.models.base import Person, Usage
from agent.thread import Thread


class CallRef(BaseModel):
    """A tool call, by where it stands: part `index` of message `message_id`; its result goes to `position`."""

    model_config = ConfigDict(frozen=True)

    thread: Thread
    message_id: str
    index: int
    tool: str
    position: int
    asker: Person
    approval_id: str | None = None


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

    @property
    def continued(self) -> bool:
        """Whether the loop goes on."""
        return self.state == "going"
