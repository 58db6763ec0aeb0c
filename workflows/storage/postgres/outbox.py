"""The outbox: hints that were committed with a step and are published afterwards."""

from pydantic_core import from_json

from workflows.storage.base import Hint
from workflows.storage.postgres.rows import Rows

DRAIN = """
delete from outbox where id in (select id from outbox order by id limit $1 for update skip locked) returning topic, type, data
"""


class OutboxOperations(Rows):
    """Hands out hints."""

    async def drain_hints(self, limit: int = 500) -> list[Hint]:
        return [Hint(row[0], row[1], from_json(row[2])) for row in await self._fetch(DRAIN, limit)]
