"""The engine's tables and how they came to be. A change to `workflows.storage.tables` is a new migration at the end of this list."""

from workflows.storage.migrations.first import FIRST
from workflows.storage.migrations.history import Migration, Schema, baseline
from workflows.storage.tables import ENGINE_TABLES

MIGRATIONS: tuple[Migration, ...] = (baseline(*FIRST),)

ENGINE = Schema("engine", ENGINE_TABLES, MIGRATIONS)
