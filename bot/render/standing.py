"""What was found of a delivery in a thread, as far as it was looked."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime
from typing import Any


@dataclass(frozen=True, slots=True)
class Standing:
    """What was found of a delivery so far: the ts of each of its `parts`, and where the next page begins."""

    delivery_id: str
    since: datetime
    cursor: str = ""
    parts: int = 1
    found: Mapping[int, str] = field(default_factory=dict)

    def beyond(self, page: Sequence[dict[str, Any]], cursor: str) -> "Standing":
        """With one more page."""
        found, parts = dict(self.found), self.parts
        for message in page:
            payload = (message.get("metadata") or {}).get("event_payload") or {}
            if payload.get("delivery_id") == self.delivery_id:
                found[int(payload.get("part", 0))] = str(message["ts"])
                parts = int(payload.get("parts", 1))
        return replace(self, cursor=cursor, parts=parts, found=found)

    @property
    def whole(self) -> tuple[str, ...] | None:
        """The ts of all parts in order, if none is missing."""
        return tuple(self.found[part] for part in sorted(self.found)) if len(self.found) == self.parts else None

    @property
    def noted(self) -> dict[str, Any]:
        """It as JSON."""
        return {**asdict(self), "since": self.since.isoformat(), "found": [list(each) for each in self.found.items()]}

    @classmethod
    def read(cls, noted: dict[str, Any], delivery_id: str, since: datetime) -> "Standing | None":
        """What was noted, if it is of the same look."""
        if (noted["delivery_id"], noted["since"]) != (delivery_id, since.isoformat()):
            return None
        return cls(delivery_id, since, noted["cursor"], noted["parts"], {int(part): ts for part, ts in noted["found"]})
