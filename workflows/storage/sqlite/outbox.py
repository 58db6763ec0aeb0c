"""The outbox: hints that were committed with a step and are published afterwards."""

from collections.abc import Sequence

from pydantic_core import from_json, to_json

from workflows.storage.base import Hint
from workflows.storage.sqlite.rows import Rows

ANY = "select 1 from outbox limit 1"
DRAIN = "delete from outbox where id in (select id from outbox order by id limit ?1) returning topic, type, data"
INSERT = "insert into outbox (topic, type, data) values (?1, ?2, ?3)"


class OutboxOperations(Rows):
    """Keeps hints and hands them out."""

    async def drain_hints(self, limit: int = 500) -> list[Hint]:
        if not await self._call(lambda: self._one(ANY)):
            return []
        rows = await self._transact(lambda: self._rows(DRAIN, limit))
        return [Hint(topic, type_, from_json(data)) for topic, type_, data in rows]

    def _hint(self, hints: Sequence[Hint]) -> None:
        for hint in hints:
            self._one(INSERT, hint.topic, hint.type, to_json(hint.data).decode())
