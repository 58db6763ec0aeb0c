"""A process that migrates: `python -m tests.storage.migrating (sqlite|postgres) WHERE HISTORY`. It begins at a line on its standard input."""

import asyncio
import sys
from pathlib import Path

from tests.storage.databases import Database, PostgresDatabase, SqliteDatabase, migrated
from tests.storage.histories import GROWN, STUCK


def main() -> None:
    kind, where, history = sys.argv[1:]
    database: Database = SqliteDatabase(Path(where)) if kind == "sqlite" else PostgresDatabase(where)
    print("ready", flush=True)
    sys.stdin.readline()
    asyncio.run(migrated(database, {"grown": GROWN, "stuck": STUCK}[history]))


if __name__ == "__main__":
    main()
