"""Clicks on approval cards. Whoever clicks is authorised at that moment; the first answer wins; late ones are told so."""

from typing import Any

import structlog

from agent import approvals
from agent.approvals import Approval
from agent.channel import Channel
from agent.loop import Agent
from agent.preferences import PreferenceBook
from bot.dialogs import Dialogs, Made
from bot.people import SlackPeople
from bot.render.cards import APPROVE, DENY, DENY_WHY
from bot.render.text import quoted
from bot.views import View, modal, notice, text_input, text_of, words
from workflows import Engine

NOT_YOURS = "You can't decide this one: approvals are for the workspace's admins and the approvers they have named."
NOT_ALONE = "You asked for this yourself, and it is more than one person may approve alone here. Somebody else has to approve it."
UNKNOWN = "This approval is not known here any more."
NOT_OPENED = "Slack did not open the dialog. Nothing was decided; please click again, or press Deny."

REASON = "approval_reason"
"""The callback id of the dialog that asks for a reason."""
REASON_LIMIT = 500


class Decisions:
    """Decides approvals for the people who click."""

    def __init__(self, engine: Engine, agent: Agent, people: SlackPeople, channel: Channel, dialogs: Dialogs) -> None:
        self._engine = engine
        self._agent = agent
        self._people = people
        self._channel = channel
        self._dialogs = dialogs
        self._preferences = PreferenceBook(engine.store)

    async def clicked(self, *, tenant: str, user: str, action: dict[str, Any], trigger_id: str) -> str | None:
        """Handle a click; returns what only the clicker is told, or None. Raises StoreUnavailableError."""
        approval_id, action_id = str(action.get("value") or ""), action.get("action_id")
        if action_id == DENY_WHY:
            made, shown = await self._dialogs.open(
                tenant, trigger_id, self._why(tenant, user, approval_id), title="Deny"
            )
            return None if shown else made if isinstance(made, str) else NOT_OPENED
        approval = await approvals.find(self._engine.store, tenant, approval_id)
        if approval is None:
            return UNKNOWN
        if (refusal := await self._refusal(tenant, user, approval, approves=action_id == APPROVE)) is not None:
            return refusal
        decision = "approved" if action_id == APPROVE else "denied"
        return await self._decide(tenant, user, approval_id, decision)

    async def explained(self, *, tenant: str, user: str, view: View) -> View | None:
        """Deny with the reason that was given; returns a dialog that tells why it could not be, or None. Raises StoreUnavailableError."""
        approval_id = str(view.get("private_metadata") or "")
        approval = await approvals.find(self._engine.store, tenant, approval_id)
        refusal = (
            UNKNOWN if approval is None else await self._refusal(tenant, user, approval, approves=False)
        ) or await self._decide(
            tenant, user, approval_id, "denied", reason=text_of(view, "reason")[:REASON_LIMIT] or None
        )
        return notice("Approval", refusal) if refusal else None

    async def _refusal(self, tenant: str, user: str, approval: Approval, *, approves: bool) -> str | None:
        preferences = await self._preferences.of(tenant)
        if user not in preferences.approvers:
            refusal = await self._people.refusal(tenant, user, others=NOT_YOURS)
            if refusal is not None:
                return refusal
        return NOT_ALONE if approves and approval.alone_by(user, preferences) else None

    async def _why(self, tenant: str, user: str, approval_id: str) -> Made:
        """The dialog that asks for the reason, or why this person can't deny."""
        approval = await approvals.find(self._engine.store, tenant, approval_id)
        if approval is None:
            return UNKNOWN
        if (refusal := await self._refusal(tenant, user, approval, approves=False)) is not None:
            return refusal
        if approval.state != "pending":
            return await self._too_late(tenant, approval_id)
        shown = words(f"*{quoted(approval.evidence.title)}*")
        reason = text_input("reason", "Why not?", hint="Shown on the card and told to the agent.", limit=REASON_LIMIT)
        return modal(REASON, "Deny", [shown, reason], submit="Deny", metadata=approval.id)

    async def _decide(
        self, tenant: str, user: str, approval_id: str, decision: str, *, reason: str | None = None
    ) -> str | None:
        if await self._engine.decide(
            self._agent.turn, tenant=tenant, approval_id=approval_id, decision=decision, by=user, reason=reason
        ):
            structlog.get_logger().info(
                "approval_decided", approval=approval_id, decision=decision, by=user, tenant=tenant
            )
            return None
        return await self._too_late(tenant, approval_id)

    async def _too_late(self, tenant: str, approval_id: str) -> str:
        approval: Approval | None = await approvals.find(self._engine.store, tenant, approval_id)
        if approval is None:
            return UNKNOWN
        if approval.state != "pending" and approval.places:
            # The card is settled once, when the thread takes the decision in, and Slack may have been away then.
            await self._channel.settle(approval.thread, approval.places, approval.card)
        if approval.state in ("pending", "expired"):
            return "This approval has expired. Nothing was changed; ask again if it is still wanted."
        return f"This was already {approval.state} by <@{approval.by_user}>."


BUTTONS = (APPROVE, DENY, DENY_WHY)
