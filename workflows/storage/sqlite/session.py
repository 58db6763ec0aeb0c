"""What every connection must have, set when it begins and then asserted: a file system may not allow it."""

import sqlite3
import time

from workflows.errors import DurabilityError, SchemaError

SET_JOURNAL = "pragma journal_mode=WAL"
PRAGMAS = ("pragma synchronous=FULL", "pragma foreign_keys=ON")
JOURNAL = "pragma journal_mode"
SYNCHRONOUS = "pragma synchronous"

JOURNALS = ("wal", "memory")
FULL = 2


AGAIN_S = 0.005


def set_durable(connection: sqlite3.Connection, *, place: str, busy_timeout_s: float) -> None:
    """Set WAL and full synchronisation. Raises DurabilityError if they don't hold, SchemaError if the file is no database."""
    try:
        _set_journal(connection, time.monotonic() + busy_timeout_s)
        for pragma in PRAGMAS:
            connection.execute(pragma)
        (journal,), (synchronous,) = connection.execute(JOURNAL).fetchone(), connection.execute(SYNCHRONOUS).fetchone()
    except sqlite3.OperationalError:
        raise
    except sqlite3.DatabaseError as error:
        raise SchemaError(
            f"{place} can't be read as a database: {error}. Restore a backup of it, or move it away to begin anew."
        ) from None
    if journal not in JOURNALS or synchronous != FULL:
        raise DurabilityError(
            f"{place} can't be kept with a write-ahead log (journal_mode = {journal}, synchronous = {synchronous}): several processes "
            "could not share it safely. Put it on a local disk"
        )


def _set_journal(connection: sqlite3.Connection, deadline: float) -> None:
    """SQLite does not wait for its turn here: several processes that open a new file at once find it locked."""
    while True:
        try:
            connection.execute(SET_JOURNAL)
        except sqlite3.OperationalError as error:
            if "locked" not in str(error) or time.monotonic() > deadline:
                raise
            time.sleep(AGAIN_S)
        else:
            return
