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
            rows = [
                dialect.decode_row(SQLITE, query.table, row)
                for row in self._db.execute(sql, parameters.values).fetchall()
            ]
            for name in query.table.values:
                for row in rows:
                    if row[name] is not None and row[name][:1] == MARK:
                        row[name] = self._restored(query.table, name, row)
            return rows

        return await self._call(found)

    async def totals(self, query: Select, *columns: str) -> tuple[int, ...]:
        parameters = dialect.Parameters(SQLITE)
        sql = dialect.totals(query, columns, parameters)
        return tuple(await self._call(lambda: self._db.execute(sql, parameters.values).fetchone()))

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

    def _restored(self, table: Table, name: str, row: dict[str, Any]) -> bytes | None:
        record = Record(row.get("path", f"{table.name}.{name}"), Status.OK, row[name])
        (whole,) = self._whole([record], run_id=row.get("run_id"), tenant=row.get("tenant"))
        return whole.output
