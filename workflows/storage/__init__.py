"""Storage: durable runs, steps, signals, schedules, and tenant-scoped rows for the floors above."""

from workflows.storage.base import Store, StoreUnavailableError
from workflows.storage.composite import CompositeStore
from workflows.storage.memory import MemoryStore
from workflows.storage.migrations import (
    AddColumn,
    AddIndex,
    AddTable,
    DropColumn,
    DropIndex,
    DropTable,
    Migration,
    Schema,
    Statements,
    baseline,
)
from workflows.storage.postgres import PostgresStore
from workflows.storage.retention import Retention, Swept
from workflows.storage.schema import Column, Delete, Index, Insert, Is, Select, Table, Update, Write
from workflows.storage.sqlite import SqliteStore

__all__ = [
    "AddColumn",
    "AddIndex",
    "AddTable",
    "Column",
    "CompositeStore",
    "Delete",
    "DropColumn",
    "DropIndex",
    "DropTable",
    "Index",
    "Insert",
    "Is",
    "MemoryStore",
    "Migration",
    "PostgresStore",
    "Retention",
    "Schema",
    "Select",
    "SqliteStore",
    "Statements",
    "Store",
    "StoreUnavailableError",
    "Swept",
    "Table",
    "Update",
    "Write",
    "baseline",
]
