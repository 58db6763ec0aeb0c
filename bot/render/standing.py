"""What was found of a delivery in a thread, as far as it was looked, and what is kept of it between two tries."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime
from typing import Any

from agent.channel import Notes
from agent.thread import Thread
from bot.clients import Credentials


@dataclass(frozen=True, slots=True)
class Standing:
    """What was found of a delivery so far: the ts of each of its `parts`, and where the next page begins.

    What was found stays true. That something is missing is known once the look has `ended`, and as it was when the look began: after `sendings`.
    """

    since: datetime
    began_at: datetime
    sendings: int
    cursor: str = ""
    parts: int = 1
    found: Mapping[int, str] = field(default_factory=dict)
    ended: bool = False
    unsigned: str = ""
    """The ts of the latest message of the app's own that says not what it is of, as a stream does."""

    def beyond(self, page: Sequence[dict[str, Any]], cursor: str, delivery_id: str, me: Credentials) -> "Standing":
        """With one more page."""
        found, parts, unsigned = dict(self.found), self.parts, self.unsigned
        for message in page:
            payload = (message.get("metadata") or {}).get("event_payload") or {}
            if payload.get("delivery_id") == delivery_id:
                found[int(payload.get("part", 0))] = str(message["ts"])
                parts = int(payload.get("parts", 1))
            ours = message.get("bot_id") == me.bot_id or message.get("user") == me.bot_user_id
            if ours and not message.get("metadata"):
                unsigned = max(unsigned, str(message["ts"]), key=lambda ts: float(ts or 0))
        return replace(self, cursor=cursor, parts=parts, found=found, unsigned=unsigned)

    def tells(self, part: int, sendings: int, trusted_at: datetime) -> bool:
        """Whether it says where a part stands, or that it does not: nothing of so many `sendings` can arrive any more from `trusted_at` on."""
        absent = self.ended and self.sendings == sendings and self.began_at >= trusted_at
        return part in self.found or absent

    @property
    def whole(self) -> tuple[str, ...] | None:
        """The ts of all parts in order, if none is missing."""
        return tuple(self.found[part] for part in sorted(self.found)) if len(self.found) == self.parts else None


class Looks:
    """The looks for one delivery that a step has noted, one after the other: one serves all parts, and every try."""

    def __init__(self, thread: Thread, delivery_id: str, notes: Notes) -> None:
        self._prefix = f"looked-{thread.channel}-{thread.root}-{delivery_id}-"
        self._notes = notes

    @property
    def noted(self) -> list[Standing]:
        """The latest first."""
        kept = self._notes.notes(self._prefix)
        return [_read(kept[name]) for name in sorted(kept, key=self._number, reverse=True)]

    def answer(self, enough: Callable[[Standing], bool]) -> Standing | None:
        """The latest that is enough."""
        return next(filter(enough, self.noted), None)

    async def note(self, standing: Standing) -> None:
        number = len(self._notes.notes(self._prefix))
        await self._notes.note(f"{self._prefix}{number}", _as_json(standing))

    def _number(self, name: str) -> int:
        return int(name.removeprefix(self._prefix))


def _as_json(standing: Standing) -> dict[str, Any]:
    found = [list(each) for each in standing.found.items()]
    times = {"since": standing.since.isoformat(), "began_at": standing.began_at.isoformat()}
    return {**asdict(standing), **times, "found": found}


def _read(noted: dict[str, Any]) -> Standing:
    times = {name: datetime.fromisoformat(noted[name]) for name in ("since", "began_at")}
    return Standing(**{**noted, **times, "found": {int(part): ts for part, ts in noted["found"]}})
