"""Moments in Slack's date markup: a client shows them in its reader's own time, and the words beside it where it can't."""

from datetime import UTC, datetime
from zoneinfo import ZoneInfo


def moment(at: datetime, time_zone: str) -> str:
    """`at` (aware) as mrkdwn. The words are in the IANA zone `time_zone`, or in UTC if nobody knows it."""
    return f"<!date^{int(at.timestamp())}^{{date_short_pretty}} {{time}}|{words(at, time_zone)}>"


def words(at: datetime, time_zone: str) -> str:
    """`at` for reading, such as "1 December 2026, 00:06 CET"."""
    try:
        local = at.astimezone(ZoneInfo(time_zone))
    except (ValueError, OSError, KeyError):  # ZoneInfo raises each of these, by kind of nonsense
        local = at.astimezone(UTC)
    zone = local.tzname() or "UTC"
    # Zones without letters of their own are named by their offset: "+03".
    return f"{local.day} {local:%B %Y, %H:%M} {f'UTC{zone}' if zone.startswith(('+', '-')) else zone}"
