"""Large payloads, kept apart: a value above `LIMIT` is a row of `blobs`, once per tenant, and its column holds a reference.

Where it happens: every statement that stores values sends its parameters through `Apart`, in the one function of each store that sends
them; what an operation hands out goes through `wanted` and `filled`. A reference is a byte that no JSON begins with, then the digest.
A value that begins with that byte itself is kept apart whatever its size, so that nobody can write a reference; and whose blob it is, is
always the tenant of the row that refers to it.
"""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from workflows.errors import BlobMissingError
from workflows.storage.records import Record
from workflows.storage.runs import RunRow
from workflows.storage.schedules import Schedule
from workflows.storage.signals import Signal

LIMIT = 32 * 1024
"""Bytes of the largest value that stays in its row."""
MARK = b"\x00"
REFERENCE = len(MARK) + hashlib.sha256().digest_size
"""Bytes of a reference; indexes find the rows that refer to a blob by this length."""

SEVERAL = (list, tuple)

Owned = tuple[str | None, bytes]
"""A tenant and a digest; None is the tenant of the statement's or operation's own run."""
Found = TypeVar("Found", RunRow, Record, Signal, Schedule)
VALUES: Mapping[type, tuple[str, ...]] = {
    RunRow: ("input", "output"),
    Record: ("output",),
    Signal: ("payload",),
    Schedule: ("input",),
}
"""Where values are, in what operations hand out."""


def large(value: bytes) -> bool:
    """Whether a value is kept apart."""
    return len(value) > LIMIT or value[:1] == MARK


@dataclass(slots=True)
class Apart:
    """Collects the bodies that leave one statement's parameters."""

    bodies: dict[Owned, bytes] = field(default_factory=dict)

    def parameters(self, values: Sequence[Any]) -> list[Any]:
        """Parameters as they are sent: what is large in them, or in a list of them, becomes a reference. Each step pays for this loop."""
        sent = list(values)
        for number, value in enumerate(values):
            if type(value) is bytes:
                if len(value) > LIMIT or value[:1] == MARK:
                    sent[number] = self.value(value)
            elif type(value) in SEVERAL:
                for each in value:
                    if type(each) is bytes and (len(each) > LIMIT or each[:1] == MARK):
                        sent[number] = [None if each is None else self.value(each) for each in value]
                        break
        return sent

    def value(self, value: bytes, *, tenant: str | None = None) -> bytes:
        """A value, or the reference that stands for it."""
        if not large(value):
            return value
        digest = hashlib.sha256(value).digest()
        self.bodies[tenant, digest] = value
        return MARK + digest


def wanted(found: Iterable[Found]) -> list[Owned]:
    """The bodies that are missing from what was found."""
    return [
        (getattr(each, "tenant", None), value[1:])
        for each in found
        for name in VALUES[type(each)]
        if (value := getattr(each, name)) is not None and value[:1] == MARK
    ]


def filled(each: Found, bodies: Mapping[Owned, bytes], *, strict: bool, run_id: str | None = None) -> Found:
    """One thing that was found, with its bodies. Raises BlobMissingError if `strict`; else what is missing stays a reference."""
    values: dict[str, Any] = {}
    for name in VALUES[type(each)]:
        value = getattr(each, name)
        if value is None or value[:1] != MARK:
            continue
        body = bodies.get((getattr(each, "tenant", None), value[1:]))
        if body is None and strict:
            raise BlobMissingError(
                f"{_place(each, name, run_id)} is gone: storage has no blob {value[1:].hex()}. Restore it from a backup"
            )
        values[name] = value if body is None else body
    return replace(each, **values) if values else each


def _place(each: RunRow | Record | Signal | Schedule, name: str, run_id: str | None) -> str:
    if isinstance(each, RunRow):
        return f"the {name} of run {each.run_id} ({each.workflow}) of {each.tenant}"
    if isinstance(each, Schedule):
        return f"the {name} of the schedule {each.name!r} of {each.tenant}"
    if isinstance(each, Record):
        return f"the {name} of {each.path} in run {run_id}"
    return f"the {name} of the signal {each.seq} ({each.name}) of run {run_id}"
