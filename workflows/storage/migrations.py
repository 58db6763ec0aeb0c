"""Whether stored data fits this version of the schema."""

import hashlib
from collections.abc import Iterable

from workflows.errors import SchemaError
from workflows.storage.dialect import Dialect, create
from workflows.storage.schema import Table


def fingerprint(tables: Iterable[Table], dialect: Dialect) -> str:
    """A hash of the DDL of all tables: equal schemas, equal fingerprints."""
    ddl = "\n".join(statement for table in tables for statement in create(table, dialect))
    return hashlib.sha256(ddl.encode()).hexdigest()


def refuse(place: str) -> SchemaError:
    """The error for data of another schema, with what to do about it."""
    return SchemaError(
        f"the data in {place} was made by another version of Threadline's schema. In development, `./dev reset` empties it; "
        "in production, start the version that made it, or restore a backup taken by this one."
    )
