"""Answers whose place is lost while they are made: whoever asked is told so alone, once."""

from typing import Any, Protocol

from pydantic import BaseModel, ConfigDict

from agent.channel import DELIVERY_RETRY, ChannelGoneError, Delivered, Notes
from agent.messages import MESSAGES
from agent.reports import LostPlace
from agent.thread import Thread
from workflows import Effect, FailedRun, RunState, StepContext, Workflow, step, workflow
from workflows.storage import Select, Store

LOST = "turn-lost"
TITLE = "Answer"


class Teller(Protocol):
    """Reaches a person alone."""

    async def tell_lost(
        self, tenant: str, user_id: str, lost: LostPlace, *, delivery_id: str, notes: Notes
    ) -> Delivered:
        """Tell a person, once, that a place is lost. Raises ChannelUnavailableError, ChannelGoneError."""
        ...


class Telling(BaseModel):
    """One person who is to be told."""

    model_config = ConfigDict(frozen=True)

    person: str
    lost: LostPlace
    delivery_id: str


def make_lost(store: Store, teller: Teller) -> Workflow[FailedRun, Any]:
    """The workflow that follows a notice of a turn that could not be posted either."""

    async def askers(value: FailedRun, ctx: StepContext) -> list[Telling]:
        """Whose words the turn worked on; nobody, where the place is well, or where people stopped the turn."""
        turn = FailedRun.model_validate(value.input)
        gone = value.state is RunState.FAILED and value.failure.get("type") == ChannelGoneError.__name__
        if not gone or turn.state is RunState.CANCELLED or turn.key is None:
            return []
        thread = Thread.of(ctx.tenant, turn.key)
        asked = {
            "tenant": ctx.tenant,
            "thread": thread.key,
            "run_id": turn.run_id,
            "role": "user",
            "notice": False,
            "heard": False,
        }
        rows = await store.read(Select(MESSAGES, asked, order=("position",)))
        people = dict.fromkeys(str(row["author"]["id"]) for row in rows if row["author"])
        why = str(value.failure.get("message") or "")
        lost = LostPlace(channel=thread.channel, why=why, title=TITLE, recurring=False)
        return [
            Telling(person=each, lost=lost, delivery_id=f"{turn.run_id}:lost:{number}")
            for number, each in enumerate(people)
        ]

    async def tell(telling: Telling, ctx: StepContext) -> Delivered:
        try:
            return await teller.tell_lost(
                ctx.tenant, telling.person, telling.lost, delivery_id=telling.delivery_id, notes=ctx
            )
        except ChannelGoneError:  # nor can they be written to; the others may
            return Delivered(message_ids=())

    return (
        workflow(LOST)
        .then(step(id="askers", effect=Effect.READ)(askers))
        .foreach(step(id="tell", effect=Effect.IDEMPOTENT, retry=DELIVERY_RETRY)(tell))
        .commit()
    )
