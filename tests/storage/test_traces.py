"""Packed spans as they are in databases out there."""

from datetime import UTC, datetime, timedelta

from workflows.storage.traces import SpanRow, TracePart, unpacked

AT = datetime(2026, 1, 1, 9, 0, 0, 123456, tzinfo=UTC)
BODY = bytes.fromhex(
    "486a120ba7558b8e56324b32b4304a354e4d3449314a494d026a86f905e469887f50bc6aa06368000608572462d858aba3e4a804b221252525d1cc30c5c0c4c2c83cc5d43c19a812d34625503203a523242f9a43dc510df43d00ae662fe6"
)
"""Red if a later version can't read it: what is stored stays as it is, so its format, and the dictionary it was written with, must too."""


def test_what_was_packed_once_can_be_read_for_ever() -> None:
    part = TracePart("T1", "t", b"part", AT, 2, BODY)
    assert unpacked(part) == [
        SpanRow(
            "T1", "t", "6b182e3ea4d2debe", None, "t", "w", "run", "interrupted", AT, AT + timedelta(seconds=1),
            {"path": "a", "effect": "read"}, "A",
        ),
        SpanRow(
            "T1", "t", "ddda61d04827d57c", "6b182e3ea4d2debe", "r", "s", "step", "ok", AT - timedelta(microseconds=7), None, {}
        ),
    ]  # fmt: skip
