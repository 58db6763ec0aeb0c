"""The seam to where people talk: drafts that stream, answers that appear once, cards that ask."""

from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime
from typing import Any, Literal, Protocol

from pydantic import BaseModel, ConfigDict

from agent.models.base import Person
from agent.thread import Thread
from agent.tools import Evidence
from workflows import Retry


class Draft(BaseModel):
    """An answer that is being shown while it is made: the id of its message, once it is known to exist."""

    model_config = ConfigDict(frozen=True)

    delivery_id: str
    message_id: str | None = None
    live: bool = True
    """Whether what is shown is the text so far. One cut off, or taken over from a dead worker, is finished by an edit instead."""
    fence: int = 0
    """The claim that began it."""
    shown: int = 0
    """Characters shown so far, as they were shown."""
    began_at: datetime | None = None
    """When it was begun. With no message id known, its start was sent and it may or may not exist."""
    edited: bool = False
    """Whether it goes on by edits: what it streamed to has run out."""


TaskState = Literal["in_progress", "complete", "error"]


class Task(BaseModel):
    """A tool at work, as it is shown: the id of its call, what it is called, and how it stands."""

    model_config = ConfigDict(frozen=True)

    id: str
    title: str
    state: TaskState


class Delivered(BaseModel):
    """Where an answer stands: one message id per part."""

    model_config = ConfigDict(frozen=True)

    message_ids: tuple[str, ...]


class Place(BaseModel):
    """Where a card stands."""

    model_config = ConfigDict(frozen=True)

    channel: str
    message_id: str
    user: str = ""
    """Whom it was sent to directly, if anybody."""


Decision = Literal["pending", "approved", "denied", "expired"]


Outcome = Literal["done", "refused", "unknown", "stopped"]


class Card(BaseModel):
    """What an approver is shown."""

    model_config = ConfigDict(frozen=True)

    approval_id: str
    evidence: Evidence
    requester: Person
    approvers: tuple[str, ...] = ()
    sent_to: tuple[str, ...] | None = None
    """Where who may decide does not see the thread: to whom it is sent directly. None: it stands where they see it."""
    expires_at: datetime
    state: Decision = "pending"
    by_user: str | None = None
    reason: str | None = None
    outcome: Outcome | None = None
    """What came of it once it was approved and tried."""


class Notes(Protocol):
    """Durable facts of a step in progress: a StepContext."""

    @property
    def intent_at(self) -> datetime | None:
        """When the step's first intent was committed."""
        ...

    @property
    def recovered(self) -> bool:
        """Whether an earlier claim had started the step and did not finish it."""
        ...

    @property
    def attempt(self) -> int:
        """The number of this try, from 1."""
        ...

    @property
    def fence(self) -> int:
        """The fence of this claim of the run."""
        ...

    async def note(self, name: str, value: Any) -> None:
        """Commit a fact now."""
        ...

    def noted(self, name: str) -> Any:
        """A fact committed before, or None."""
        ...

    def notes(self, prefix: str) -> dict[str, Any]:
        """All facts committed before whose names begin with `prefix`."""
        ...


class Stream(Protocol):
    """A draft in the making."""

    async def append(self, text: str) -> None:
        """Show more text. Never fails: what can't be shown now is in the final answer."""
        ...

    async def tasks(self, tasks: Sequence[Task]) -> None:
        """Show which tools are at work and how they ended. Never fails."""
        ...

    async def pause(self) -> Draft | None:
        """Show what is buffered, and say what stands so far; None if nothing was shown."""
        ...


class Channel(Protocol):
    """One chat system. Every operation raises `ChannelUnavailableError` when it should be tried again later."""

    async def working(self, thread: Thread, text: str, *, about: str = "") -> None:
        """Show that the agent works on it; `about`: a turn begins, in a conversation called so. Best effort."""
        ...

    def stream(
        self,
        thread: Thread,
        asker: Person,
        *,
        delivery_id: str,
        draft: Draft | None,
        notes: Notes,
        so_far: Callable[[], Awaitable[str]],
    ) -> Stream:
        """A stream that goes on with `draft`, or begins one with its first text. `so_far` tells what was said in it before, if asked."""
        ...

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
        """Make `text` the answer: finish its draft, or post it. Whatever was cut off before, it stands there once.

        With `rated_as`, people are asked what they think of it: their answers name the run.
        """
        ...

    async def find(
        self, thread: Thread, *, delivery_id: str, notes: Notes, since: datetime | None = None
    ) -> Delivered | None:
        """The whole answer, if it stands there already; posted since about then."""
        ...

    async def private(self, thread: Thread) -> bool:
        """Whether nobody sees the thread but the agent and one person, or a few."""
        ...

    async def ask(self, thread: Thread, card: Card, *, notes: Notes) -> tuple[Place, ...]:
        """Post a card, once in the thread and once to each person it is sent to. Returns where it stands, the thread first.

        There it names those whom it has reached.
        """
        ...

    async def standing(self, thread: Thread, card: Card, *, notes: Notes, since: datetime) -> tuple[Place, ...]:
        """Where a card stands that was to be posted since about then, as far as can be seen now."""
        ...

    async def settle(self, thread: Thread, places: Sequence[Place], card: Card) -> bool:
        """Make a card tell how it was decided, wherever it stands. False: not everywhere now; ask again later."""
        ...


class ChannelUnavailableError(Exception):
    """The chat system did not take it now. `retry_after_s` in seconds, if it said so; `maybe_posted`: nobody knows whether it did."""

    def __init__(self, message: str, *, retry_after_s: float | None = None, maybe_posted: bool = True) -> None:
        super().__init__(message)
        self.retry_after_s = retry_after_s
        self.maybe_posted = maybe_posted


class ChannelGoneError(Exception):
    """The place can't be posted to any more (archived, removed, uninstalled): an operator or the owner must act.

    `place`: what is the matter with this one place, in words, where the app itself is well. `refused`: what was to be posted was refused there
    for a reason that may be the place's, or of this one time.
    """

    def __init__(self, message: str, *, place: str = "", refused: bool = False) -> None:
        super().__init__(message)
        self.place = place
        self.refused = refused


DELIVERY_RETRY = Retry(
    times=400, base=1, cap=60, non_retryable=(ChannelGoneError, LookupError, TypeError, ValueError, AssertionError)
)
"""For steps that talk to the channel: half a minute on average, four hundred times. It may be away for hours; the run waits, suspended."""
