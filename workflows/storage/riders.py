"""Which writes may share one statement, where all parts see one snapshot and only one of two changes to a row would be applied."""

from collections.abc import Sequence

from workflows.storage.schema import Insert, Is, Update, Write
from workflows.storage.tables import ENGINE_TABLES

OWN = frozenset(table.name for table in ENGINE_TABLES if table.name != "approvals")
"""Tables that the engine's statements write themselves."""

Key = tuple[object, ...] | None
"""The primary key of the one row a write touches; None if it may touch others."""


def split(writes: Sequence[Write]) -> tuple[Sequence[Write], Sequence[Write]]:
    """Those from the front that touch rows of their own, each, and those that have to follow in order."""
    touched: dict[str, set[Key]] = {}
    for number, each in enumerate(writes):
        key, seen = key_of(each), touched.setdefault(each.table.name, set())
        if not _alone(each) or (seen and (key is None or None in seen or key in seen)):
            return writes[:number], writes[number:]
        seen.add(key)
    return writes, ()


def _alone(change: Write) -> bool:
    """Whether the engine's own part of the statement leaves alone what `change` touches."""
    return change.table.name not in OWN or (isinstance(change, Insert) and change.on_conflict != "replace")


def key_of(change: Write) -> Key:
    """The key of the row that `change` touches, if it is one row and known."""
    table = change.table
    if any(index.unique for index in table.indexes):
        return None  # two rows may meet in another key than the primary one
    if isinstance(change, Update) and any(name in change.values for name in table.primary_key):
        return None
    values = change.values if isinstance(change, Insert) else change.where
    key = tuple(values.get(name) for name in table.primary_key)
    return None if any(part is None or isinstance(part, Is) for part in key) else key
