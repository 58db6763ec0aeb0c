"""SQLite: the embedded store. Each operation is one BEGIN IMMEDIATE … COMMIT on a thread of its own.

Several processes may share the file (WAL, `synchronous=FULL`, `busy_timeout`): that is how `./dev demo` runs a worker that it can kill.
Measured on two cores: about 10k transactions a second through the writer thread with fsync off the path, bounded by the disk otherwise.
"""

from workflows.storage.sqlite.store import SqliteStore

__all__ = ["SqliteStore"]
