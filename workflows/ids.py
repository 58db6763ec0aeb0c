"""Ids of runs: UUIDv7, which sort by age."""

import secrets
import time
from uuid import UUID


def uuid7() -> UUID:
    """A UUID of RFC 9562 version 7: 48 bits of milliseconds, then random."""
    value = (time.time_ns() // 1_000_000) << 80 | secrets.randbits(80)
    value = value & ~(0xF << 76) | 0x7 << 76
    return UUID(int=value & ~(0x3 << 62) | 0x2 << 62)
