"""Storage: durable runs, steps, signals, schedules, and tenant-scoped rows for the floors above."""

from workflows.storage.base import Store, StoreUnavailableError
from workflows.storage.memory import MemoryStore
from workflows.storage.postgres import PostgresStore
from workflows.storage.schema import Column, Delete, Index, Insert, Is, Select, Table, Update, Write
from workflows.storage.sqlite import SqliteStore

__all__ = [
    "Column",
    "Delete",
    "Index",
    "Insert",
    "Is",
    "MemoryStore",
    "PostgresStore",
    "Select",
    "SqliteStore",
    "Store",
    "StoreUnavailableError",
    "Table",
    "Update",
    "Write",
]
