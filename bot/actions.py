"""Clicks on approval cards. Whoever clicks is authorised at that moment; the first answer wins; late ones are told so."""

from typing import Any

import structlog

from agent import approvals
from agent.approvals import Approval
from agent.channel import Channel
from agent.loop import Agent
from bot.people import SlackPeople
from bot.render.cards import APPROVE
from workflows import Engine

NOT_YOURS = "You can't decide this one: approvals are for the workspace's admins."
NOT_CHECKED = "Slack did not tell whether you may decide this. Nothing was decided; please click again in a moment."
UNKNOWN = "This approval is not known here any more."


class Decisions:
    """Decides approvals for the people who click."""

    def __init__(self, engine: Engine, agent: Agent, people: SlackPeople, channel: Channel) -> None:
        self._engine = engine
        self._agent = agent
        self._people = people
        self._channel = channel

    async def clicked(self, *, tenant: str, user: str, action: dict[str, Any]) -> str | None:
        """Handle a click; returns what only the clicker is told, or None. Raises StoreUnavailableError."""
        approval_id = str(action.get("value") or "")
        approval = await approvals.find(self._engine.store, tenant, approval_id)
        if approval is None:
            return UNKNOWN
        allowed = await self._people.is_admin(tenant, user)
        if not allowed:
            return NOT_YOURS if allowed is False else NOT_CHECKED
        decision = "approved" if action.get("action_id") == APPROVE else "denied"
        if await self._engine.decide(
            self._agent.turn, tenant=tenant, approval_id=approval_id, decision=decision, by=user
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
        if approval.state != "pending" and approval.message_id is not None:
            # The card is settled once, when the thread takes the decision in, and Slack may have been away then.
            await self._channel.settle(approval.thread, approval.message_id, approval.card)
        if approval.state in ("pending", "expired"):
            return "This approval has expired. Nothing was changed; ask again if it is still wanted."
        return f"This was already {approval.state} by <@{approval.by_user}>."
