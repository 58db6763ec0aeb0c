"""Runs in Temporal. Needs the extra `temporal`; nothing else imports it."""

from workflows.temporal.execution import TemporalExecution

__all__ = ["TemporalExecution"]
