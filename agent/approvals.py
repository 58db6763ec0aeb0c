"""Approvals: a risky call is shown, decided by a person, and then run exactly as it was shown."""

import hashlib
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from pydantic import BaseModel, ConfigDict
from pydantic_core import from_json, to_json

from agent.channel import Card, Channel, ChannelUnavailableError, Place
from agent.models.base import Person, ToolCall
from agent.people import People
from agent.preferences import Preferences
from agent.thread import Thread
from agent.tools import Evidence
from agent.turn import Settling
from workflows import Record, StepContext
from workflows.storage import Insert, Select, Store, Update
from workflows.storage.tables import APPROVALS

LIFETIME = timedelta(hours=24)
SENT_TO = 5
"""People who are sent a card directly: enough for one of them to be there."""
ROW = {"id", "thread", "state", "by_user", "reason", "expires_at", "decided_at"}
"""What a column holds; the rest of an approval is its body."""


class Approval(BaseModel):
    """One approval. `digest` is of tool and arguments as shown: anything else is not what was approved."""

    model_config = ConfigDict(frozen=True)

    id: str
    thread: Thread
    call: ToolCall
    evidence: Evidence
    requester: Person
    digest: str
    approvers: tuple[str, ...] = ()
    """Whom the card names beside the admins; who may decide is looked up when somebody does."""
    sent_to: tuple[str, ...] | None = None
    """Whom the card is sent to beside the thread, where nobody who may decide sees it."""
    expires_at: datetime
    places: tuple[Place, ...] = ()
    """Where its card stands, once it does."""
    state: str = "pending"
    by_user: str | None = None
    reason: str | None = None
    decided_at: datetime | None = None

    @property
    def card(self) -> Card:
        """What is shown of it."""
        return Card.model_validate(
            {
                "approval_id": self.id,
                "evidence": self.evidence,
                "requester": self.requester,
                "approvers": self.approvers,
                "sent_to": self.sent_to,
                "expires_at": self.expires_at,
                "state": self.state,
                "by_user": self.by_user,
                "reason": self.reason,
            }
        )

    @property
    def intact(self) -> bool:
        """Whether the call is the one that was shown."""
        return self.digest == digest(self.call)

    def standing(self, places: tuple[Place, ...]) -> "Approval":
        """The approval once its card stands there; it is sent to those whom that reached."""
        reached = tuple(place.user for place in places if place.user)
        return self.model_copy(update={"places": places, "sent_to": None if self.sent_to is None else reached})

    def alone_by(self, user: str, preferences: Preferences) -> bool:
        """Whether `user` would approve alone what they asked for themselves, above what one person may."""
        if user != self.requester.id or preferences.alone_limit_micros is None:
            return False
        return self.evidence.spend_micros is None or self.evidence.spend_micros > preferences.alone_limit_micros


async def deciders(people: People, approval: Approval, preferences: Preferences) -> tuple[str, ...] | None:
    """Whom to ask directly what nobody else sees: the named approvers, or else admins. None: the requester decides it alone."""
    tenant, requester = approval.thread.tenant, approval.requester.id
    may = requester in preferences.approvers or await people.is_admin(tenant, requester)
    if may and not approval.alone_by(requester, preferences):
        return None
    named = tuple(each for each in preferences.approvers if each != requester)
    known = named or await people.admins(tenant, limit=SENT_TO + 1)
    return tuple(each for each in known if each != requester)[:SENT_TO]


def digest(call: ToolCall) -> str:
    """A hash of a tool's name and arguments."""
    return hashlib.sha256(to_json([call.name, sorted(call.arguments.items())])).hexdigest()


def asked(approval: Approval, *, workflow: str) -> Insert:
    """The row of a new approval; its decision signals `workflow` at the thread's key."""
    body = approval.model_dump(mode="json", exclude=ROW)
    return Insert(
        APPROVALS,
        {
            "tenant": approval.thread.tenant,
            "id": approval.id,
            "workflow": workflow,
            "key": approval.thread.key,
            "expires_at": approval.expires_at,
            "body": body,
        },
    )


def shown(approval: Approval) -> Update:
    """Where its card stands."""
    body = approval.model_dump(mode="json", exclude=ROW)
    return Update(APPROVALS, {"tenant": approval.thread.tenant, "id": approval.id}, {"body": body})


def withdrawn(tenant: str, approval_id: str) -> Update:
    """Nobody is to decide it any more: the turn that asked ended without saying so."""
    return Update(APPROVALS, {"tenant": tenant, "id": approval_id, "state": "pending"}, {"state": "expired"})


def all_withdrawn(tenant: str) -> Update:
    """Nobody is to decide anything any more: the app has left."""
    return Update(APPROVALS, {"tenant": tenant, "state": "pending"}, {"state": "expired"})


async def find(store: Store, tenant: str, approval_id: str) -> Approval | None:
    """An approval of this tenant."""
    rows = await store.read(Select(APPROVALS, {"tenant": tenant, "id": approval_id}))
    return _approval(rows[0]) if rows else None


async def settle(store: Store, channel: Channel, tenant: str, each: Settling) -> bool:
    """Make a card tell what there is to tell. False: it could not be edited now."""
    approval = await find(store, tenant, each.approval_id)
    if approval is None or not approval.places:
        return True
    outcome = each.outcome if approval.state == "approved" else None
    card = approval.card.model_copy(update={"outcome": outcome})
    return await channel.settle(approval.thread, approval.places, card)


async def settle_all(store: Store, channel: Channel, tenant: str, settling: Sequence[Settling]) -> tuple[Settling, ...]:
    """Those that could not be edited now."""
    return tuple([each for each in settling if not await settle(store, channel, tenant, each)])


PATIENT_TRIES = 5
"""Tries that wait until the channel takes the edit of a card. What else is to be said is not to be held up for ever."""


async def settle_patiently(store: Store, channel: Channel, ctx: StepContext, settling: Sequence[Settling]) -> None:
    """Make cards tell what there is to tell. Raises ChannelUnavailableError for the first few tries of the step."""
    left = await settle_all(store, channel, ctx.tenant, settling)
    if left and ctx.attempt <= PATIENT_TRIES:
        raise ChannelUnavailableError(f"{len(left)} cards could not be edited")


def asked_by(records: Sequence[Record]) -> list[str]:
    """The approvals that a turn has asked for, by its records."""
    noted = [record for record in records if record.path.endswith("!approval")]
    return [str(from_json(record.output or b"{}").get("id", "")) for record in noted]


async def waiting(store: Store, tenant: str) -> list[Approval]:
    """Those of a tenant that nobody has decided yet, the first to expire first."""
    rows = await store.read(Select(APPROVALS, {"tenant": tenant, "state": "pending"}, order=("expires_at",)))
    return [_approval(row) for row in rows]


def _approval(row: dict[str, Any]) -> Approval:
    known = {name: row[name] for name in ("id", "state", "by_user", "reason", "expires_at", "decided_at")}
    return Approval.model_validate({**row["body"], **known, "thread": Thread.of(row["tenant"], row["key"])})
