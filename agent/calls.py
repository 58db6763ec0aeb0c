"""Running tool calls: those that may run, those that ask first, and those that were approved."""

from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import BaseModel, ConfigDict
from pydantic_core import from_json, to_json

from agent import approvals
from agent.approvals import LIFETIME, Approval
from agent.attribution import claimed
from agent.channel import Channel, Outcome
from agent.execution import UNKNOWN, Execution
from agent.messages import Transcript, added
from agent.models.base import SYSTEM, Message, Text, ToolCall, ToolResult
from agent.models.wording import name
from agent.people import People
from agent.preferences import PreferenceBook
from agent.tools import Tool, Toolbox, ToolError
from agent.turn import PendingCall, Settling, Turn
from workflows import Effect, Interrupted, StepContext
from workflows.storage import Insert, Store


class Ran(BaseModel):
    """A call that was answered; its result is in the transcript at `position`."""

    model_config = ConfigDict(frozen=True)

    position: int
    outcome: Outcome = "done"


class Calls:
    """Runs the calls of a turn. `workflow` names what decisions on approvals signal."""

    def __init__(
        self,
        store: Store,
        toolbox: Toolbox,
        channel: Channel,
        people: People,
        *,
        execution: Execution,
        workflow: str,
    ) -> None:
        self._store = store
        self._toolbox = toolbox
        self._channel = channel
        self._people = people
        self._execution = execution
        self._workflow = workflow
        self._transcript = Transcript(store)
        self._preferences = PreferenceBook(store)

    def effect(self, pending: PendingCall) -> Effect:
        """A call is as risky as its tool. Asking posts a card, which can be looked up; an unknown tool only answers that it is unknown."""
        try:
            tool = self._toolbox.get(pending.ref.tool)
        except ToolError:
            return Effect.READ
        if pending.ref.approval_id is None and (
            tool.permission == "block" or tool.asks(untrusted=pending.ref.untrusted)
        ):
            return Effect.RECONCILE
        return tool.effect

    async def nothing_found(self, key: str, pending: PendingCall, ctx: StepContext) -> None:
        """A call cut off while it asked is entered again: the card is looked up there."""

    # The model's own calls

    async def run(self, pending: PendingCall, ctx: StepContext) -> Ran | Interrupted:
        """Run one call, or ask for it, and put its result into the transcript."""
        call = await self._call(pending)
        result, is_error = await self._result(pending, call, ctx)
        ctx.write(_result_row(pending, call, result, ctx.run_id, is_error=is_error))
        return Ran(position=pending.ref.position, outcome=_outcome(result, is_error=is_error))

    async def _call(self, pending: PendingCall) -> ToolCall:
        message = await self._transcript.message(pending.thread, pending.ref.message_id)
        return message.tool_calls[pending.ref.index]

    async def _result(self, pending: PendingCall, call: ToolCall, ctx: StepContext) -> tuple[str, bool]:
        try:
            tool = self._toolbox.get(call.name)
            if tool.permission == "block":
                raise ToolError(f"{call.name} is not allowed here")
            bare, asker = claimed(call, pending.asker, pending.askers)
            pending = pending.model_copy(update={"asker": asker})
            if tool.asks(untrusted=pending.ref.untrusted):
                return await self._ask(pending, tool, bare, ctx), False
            return await self._execution.run(tool, bare, pending, ctx, key=ctx.idempotency_key)
        except ToolError as error:
            return to_json({"error": str(error)}).decode(), True

    # Asking

    async def _ask(self, pending: PendingCall, tool: Tool, call: ToolCall, ctx: StepContext) -> str:
        """Show the call to its approvers. The row comes first, so that the card can be answered the moment it is seen.

        Asked again after a kill, it is the same approval, shown to the same people.
        """
        approval_id = str(ctx.uuid("approval"))
        approval = await approvals.find(self._store, pending.thread.tenant, approval_id)
        if approval is None:
            approval = await self._approval_of(approval_id, pending, tool, call, ctx)
            await ctx.note("approval", {"id": approval.id}, writes=[approvals.asked(approval, workflow=self._workflow)])
        places = await self._channel.ask(pending.thread, approval.card, notes=ctx)
        approval = approval.standing(places)
        ctx.write(approvals.shown(approval))
        waiting = {"status": "awaiting_approval", "approval_id": approval.id, "summary": approval.evidence.title}
        if approval.sent_to is not None:
            names = [await self._name(approval.thread.tenant, each) for each in approval.sent_to]
            waiting["sent_to"] = (
                ", ".join(names) or "nobody: none of those who may decide could be found and written to"
            )
        return to_json(waiting).decode()

    async def _approval_of(
        self, approval_id: str, pending: PendingCall, tool: Tool, call: ToolCall, ctx: StepContext
    ) -> Approval:
        context = await self._execution.context(pending, ctx, key=ctx.idempotency_key)
        preferences = await self._preferences.of(pending.thread.tenant)
        approval = Approval(
            id=approval_id,
            thread=pending.thread,
            call=call,
            evidence=await tool.shown(call.arguments, context),
            requester=pending.asker,
            digest=approvals.digest(call),
            approvers=preferences.approvers,
            expires_at=context.now + LIFETIME,
        )
        if not await self._channel.private(pending.thread):
            return approval
        sent_to = await approvals.deciders(self._people, approval, preferences)
        return approval.model_copy(update={"sent_to": sent_to})

    # Approved calls

    async def run_approved(self, pending: PendingCall, ctx: StepContext) -> Ran | Interrupted:
        """Run exactly the call that was shown. Its key derives from the approval, so nothing runs it twice."""
        approval = await self._approval(pending)
        by = await self._decider(approval)
        result, is_error = await self._approved_result(approval, pending, ctx)
        # Nothing between what can't be undone and its record: cut off here, its outcome would be unknown.
        ctx.write(_decided_row(pending, approval, result, ctx.run_id, by=by, is_error=is_error))
        return Ran(position=pending.ref.position, outcome=_outcome(result, is_error=is_error))

    async def _approval(self, pending: PendingCall) -> Approval:
        approval = await approvals.find(self._store, pending.thread.tenant, pending.ref.approval_id or "")
        assert approval is not None, "the drain that made this reference has read the row"
        return approval

    async def _decider(self, approval: Approval) -> str:
        return await self._name(approval.thread.tenant, approval.by_user or "")

    async def _name(self, tenant: str, user_id: str) -> str:
        return name(await self._people.person(tenant, user_id))

    async def _approved_result(self, approval: Approval, pending: PendingCall, ctx: StepContext) -> tuple[str, bool]:
        try:
            tool = self._toolbox.get(approval.call.name)
            if tool.permission == "block" or not approval.intact or approval.state != "approved":
                raise ToolError(f"{approval.call.name} is not allowed any more; nothing was done")
            await self._check_shown(tool, approval, pending, ctx)
            return await self._execution.run(tool, approval.call, pending, ctx, key=f"approval:{approval.id}")
        except ToolError as error:
            return to_json({"error": str(error)}).decode(), True

    async def _check_shown(self, tool: Tool, approval: Approval, pending: PendingCall, ctx: StepContext) -> None:
        """The approver saw what would change from what: if that is no longer so, it is not what was approved.

        Once it held it is not asked again: a call cut off in its middle may itself have changed what would be shown.
        """
        if ctx.noted("as-shown"):
            return
        context = await self._execution.context(pending, ctx, key=f"approval:{approval.id}")
        now = await tool.shown(approval.call.arguments, context)
        if (now.title, now.facts) != (approval.evidence.title, approval.evidence.facts):
            raise ToolError(
                f"things have changed since the approval was asked for; nothing was done. It would now be: {now.title}. Ask again"
            )
        await ctx.note("as-shown", True)

    # What was cut off

    async def collect(self, outputs: Mapping[str, Any], ctx: StepContext) -> Turn:
        """The turn after its calls: what was cut off gets a result that says so, and the model may read back."""
        turn = Turn.model_validate(outputs["keep"])
        calls = turn.pending(turn.calls or turn.approved)
        for pending, outcome in zip(calls, _outcomes(outputs), strict=True):
            if isinstance(outcome, Interrupted):
                ctx.write(await self._interrupted_row(pending, outcome, ctx.run_id))
        settling = tuple(
            _decided(pending, outcome)
            for pending, outcome in zip(calls, _outcomes(outputs), strict=True)
            if pending.ref.approval_id
        )
        return turn.model_copy(update={"calls": (), "approved": (), "settling": _latest(*turn.settling, *settling)})

    async def _interrupted_row(self, pending: PendingCall, outcome: Interrupted, run_id: str) -> Insert:
        tool = self._toolbox.get(pending.ref.tool)
        unknown = to_json({**UNKNOWN, "reason": outcome.reason, "read_back": tool.read_back}).decode()
        if pending.ref.approval_id is not None:
            approval = await self._approval(pending)
            return _decided_row(pending, approval, unknown, run_id, by=await self._decider(approval), is_error=True)
        return _result_row(pending, await self._call(pending), unknown, run_id, is_error=True)


def _latest(*settling: Settling) -> tuple[Settling, ...]:
    """What each card is to tell in the end."""
    return tuple({each.approval_id: each for each in settling}.values())


def _decided(pending: PendingCall, outcome: Any) -> Settling:
    came_to: Outcome = "unknown" if isinstance(outcome, Interrupted) else Ran.model_validate(outcome).outcome
    return Settling(approval_id=pending.ref.approval_id or "", outcome=came_to)


def _outcome(result: str, *, is_error: bool) -> Outcome:
    """What a call came to. A tool that broke half way has a result, too: that nobody knows."""
    if not is_error:
        return "done"
    found = from_json(result)
    return "unknown" if isinstance(found, dict) and found.get("status") == UNKNOWN["status"] else "refused"


def _outcomes(outputs: Mapping[str, Any]) -> Sequence[Any]:
    """The results beside the turn, in the order of its calls."""
    (name,) = outputs.keys() - {"keep"}
    outcomes: Sequence[Any] = outputs[name]
    return outcomes


def _result_row(pending: PendingCall, call: ToolCall, content: str, run_id: str, *, is_error: bool) -> Insert:
    result = ToolResult(call_id=call.id, name=call.name, content=content, is_error=is_error)
    message = Message(role="tool", parts=(result,))
    return added(
        pending.thread,
        f"{pending.ref.message_id}:{pending.ref.index}",
        message,
        position=pending.ref.position,
        run_id=run_id,
    )


def _decided_row(
    pending: PendingCall, approval: Approval, content: str, run_id: str, *, by: str, is_error: bool
) -> Insert:
    text = f"approval {approval.id}: approved by {by}; {'error' if is_error else 'result'}: {content}"
    message = Message(role="user", parts=(Text(text=text),), author=SYSTEM, notice=True)
    return added(
        pending.thread, f"notice:approval:{approval.id}", message, position=pending.ref.position, run_id=run_id
    )
