"""Ids of runs: UUIDv7, which sort by age; or derived from an outside fact in NAMESPACE, so that making one again gives the same."""

import secrets
import time
from uuid import UUID

NAMESPACE = UUID("6f1f6c1e-58e1-5b6f-9d4c-7d1f0a3e9b11")
"""Of every id that is derived (by `uuid5`). Never edited: what is stored would be another's."""


def uuid7() -> UUID:
    """A UUID of RFC 9562 version 7: 48 bits of milliseconds, then random."""
    value = (time.time_ns() // 1_000_000) << 80 | secrets.randbits(80)
    value = value & ~(0xF << 76) | 0x7 << 76
    return UUID(int=value & ~(0x3 << 62) | 0x2 << 62)
