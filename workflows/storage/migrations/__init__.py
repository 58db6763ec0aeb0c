"""Migrations: ordered changes of the schema as data, made once per database, under a lock, all or nothing."""

from workflows.storage.migrations.changes import (
    AddColumn,
    AddIndex,
    AddTable,
    Change,
    DropColumn,
    DropIndex,
    DropTable,
    Statements,
)
from workflows.storage.migrations.history import Migration, Schema, baseline, fingerprint, schemas_of

__all__ = [
    "AddColumn",
    "AddIndex",
    "AddTable",
    "Change",
    "DropColumn",
    "DropIndex",
    "DropTable",
    "Migration",
    "Schema",
    "Statements",
    "baseline",
    "fingerprint",
    "schemas_of",
]
