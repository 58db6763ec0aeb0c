"""Schedules: cron expressions, intervals and single times in IANA time zones, fired once by any number of clocks."""

from workflows.schedules.firing import Newest, fire_due, start_queued
from workflows.schedules.schedules import Schedules, delivered, describe, paused
from workflows.schedules.timing import Spec, explain, next_fire, zone

__all__ = [
    "Newest",
    "Schedules",
    "Spec",
    "delivered",
    "describe",
    "explain",
    "fire_due",
    "next_fire",
    "paused",
    "start_queued",
    "zone",
]
