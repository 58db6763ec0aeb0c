"""Turns that end without an answer: a plain word about why, about what was done and what was not, and cards that say so, too."""

from collections.abc import Sequence
from datetime import datetime

from pydantic_core import from_json

from agent.approvals import LIFETIME, Approval, asked_by, find, settle_patiently, shown, withdrawn
from agent.channel import Channel, Delivered, Draft, Outcome
from agent.messages import Transcript, added
from agent.models.base import Message, Text
from agent.thread import Thread
from agent.turn import Settling
from workflows import FailedRun, Record, RunState, Status, StepContext
from workflows.storage import Select, Store
from workflows.storage.tables import SIGNALS

APPROVED = "What was approved meanwhile goes on, and is told here."


class Apologies:
    """Tells of turns that failed, were stopped or died."""

    def __init__(self, store: Store, channel: Channel) -> None:
        self._store = store
        self._channel = channel
        self._transcript = Transcript(store)

    async def apologise(self, failed: FailedRun, ctx: StepContext) -> Delivered | None:
        """Say in the thread that a turn ended without an answer, what was done and what was not."""
        records = await self._store.load(failed.run_id)
        if failed.key is None or _answered(records):
            return None
        thread = Thread.of(ctx.tenant, failed.key)
        asked = [found for each in asked_by(records) if (found := await self._withdrawn(thread, each, ctx)) is not None]
        ran = await self._ran(thread, failed, records)
        settling = [Settling(approval_id=each.id) for each in asked if each.state != "approved"]
        await settle_patiently(self._store, self._channel, ctx, [*settling, *ran])
        goes_on = any(each.state == "approved" for each in asked)
        text = _apology(failed, records) + (f" {APPROVED}" if goes_on else "")
        message = Message(role="assistant", parts=(Text(text=text),))
        # Where the turn itself ended: a turn that follows may have begun, and has the places after that.
        position = await self._transcript.last_position(thread, failed.run_id)
        ctx.write(added(thread, f"{failed.run_id}:notice", message, position=position, run_id=failed.run_id))
        draft = _abandoned_draft(records)
        return await self._channel.deliver(thread, text, delivery_id=f"{failed.run_id}:notice", draft=draft, notes=ctx)

    async def find(self, key: str, failed: FailedRun, ctx: StepContext) -> Delivered | None:
        """The apology, if it stands there already."""
        thread = Thread.of(ctx.tenant, failed.key or "")
        return await self._channel.find(thread, delivery_id=f"{failed.run_id}:notice", notes=ctx)

    async def _withdrawn(self, thread: Thread, approval_id: str, ctx: StepContext) -> Approval | None:
        """What the turn has asked for, that nobody can decide any more. None: its card does not stand there."""
        await self._store.write(withdrawn(ctx.tenant, approval_id))
        approval = await find(self._store, ctx.tenant, approval_id)
        if approval is None or approval.places:
            return approval
        # It may have been posted, and where was lost with the turn.
        since = approval.expires_at - LIFETIME
        places = await self._channel.standing(thread, approval.card, notes=ctx, since=since)
        if not places:
            return None
        await self._store.write(shown(approval.model_copy(update={"places": places})))
        return approval

    async def _ran(self, thread: Thread, failed: FailedRun, records: Sequence[Record]) -> list[Settling]:
        """What came of the approved calls that the turn had taken in: those without a record were never run."""
        taken = await self._store.read(Select(SIGNALS, {"run_id": failed.run_id, "name": "approval"}))
        given = [str(from_json(row["payload"] or b"{}").get("approval_id", "")) for row in taken if row["consumed_by"]]
        places = await self._transcript.positions(thread, [f"notice:approval:{each}" for each in given])
        outcomes = _outcomes(records)
        return [
            Settling(approval_id=each, outcome=outcomes.get(places.get(f"notice:approval:{each}", -1), _never(records)))
            for each in given
        ]


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


def _outcome(record: Record) -> Outcome:
    if record.status is Status.INTERRUPTED:
        return "unknown"
    outcome: Outcome = from_json(record.output or b"{}")["outcome"]
    return outcome


def _outcomes(records: Sequence[Record]) -> dict[int, Outcome]:
    """What came of approved calls, by the position of their result."""
    done = [record for record in records if _is_approved_call(record) and record.status is Status.OK]
    return {int(from_json(record.output or b"{}")["position"]): _outcome(record) for record in done}


def _never(records: Sequence[Record]) -> Outcome:
    """What is told of a call without a result: one that was on its way may have happened."""
    return "unknown" if _cut_off(records) else "stopped"


def _cut_off(records: Sequence[Record]) -> bool:
    """Whether an approved call was on its way and has no result."""
    ended = {record.path for record in records}
    begun = [path for path in ended if "/run-approved[" in path and path.endswith(("!intent", "!as-shown"))]
    return any(path.rsplit("!", 1)[0] not in ended for path in begun)


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
