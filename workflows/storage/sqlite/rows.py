"""What travels with an operation: rows of the floors above, and values too large for their own row."""

from collections.abc import Sequence
from typing import Any

from workflows.storage import dialect
from workflows.storage.base import Record, Status
from workflows.storage.blobs import MARK, Found, filled, wanted
from workflows.storage.schema import Select, Table, Write
from workflows.storage.sqlite.database import SQLITE, Database


class Rows(Database):
    """Reads and writes rows, alone or inside an operation's transaction."""

    async def read(self, query: Select) -> list[dict[str, Any]]:
        parameters = dialect.Parameters(SQLITE)
        sql = dialect.select(query, parameters)

        def found() -> list[dict[str, Any]]:
            rows = self._db.execute(sql, parameters.values).fetchall()
            return [self._restored(query.table, dialect.decode_row(SQLITE, query.table, row)) for row in rows]

        return await self._call(found)

    async def write(self, *writes: Write) -> int:
        return await self._transact(lambda: self._apply(writes))

    def _apply(self, writes: Sequence[Write]) -> int:
        changed = 0
        for each in writes:
            parameters = dialect.Parameters(SQLITE)
            sql = dialect.write(each, parameters)
            changed += self._db.execute(sql, parameters.values).rowcount
            self._apart.bodies.update(parameters.apart.bodies)
        return changed

    # Large values

    def _whole(
        self, found: Sequence[Found], *, strict: bool = True, run_id: str | None = None, tenant: str | None = None
    ) -> list[Found]:
        """What was found, with its large values: those of `tenant`, or of the tenant of `run_id`, where it names none itself.

        Raises BlobMissingError if `strict`.
        """
        if not (owned := wanted(found)):
            return list(found)
        bodies = {each: body for each in owned if (body := self._body(each, tenant, run_id)) is not None}
        return [filled(each, bodies, strict=strict, run_id=run_id) for each in found]

    def _restored(self, table: Table, row: dict[str, Any]) -> dict[str, Any]:
        for column in table.columns:
            if column.type == "value" and (value := row[column.name]) is not None and value[:1] == MARK:
                record = Record(row.get("path", f"{table.name}.{column.name}"), Status.OK, value)
                (whole,) = self._whole([record], run_id=row.get("run_id"), tenant=row.get("tenant"))
                row[column.name] = whole.output
        return row
