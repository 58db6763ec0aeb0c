"""Runs as they are begun: with a checked value, or by a signal alone; and where in line they stand."""

from dataclasses import replace
from datetime import datetime
from typing import Any

from workflows.definition.graph import Workflow
from workflows.errors import InputError
from workflows.ids import uuid7
from workflows.storage.base import NewRun
from workflows.values import check, check_ids, encode


def begun(
    workflow: Workflow[Any, Any],
    value: Any,
    *,
    tenant: str,
    key: str | None = None,
    run_id: str | None = None,
    deployment: str = "",
) -> NewRun:
    """A run of `workflow` that begins with `value`. Raises InputError if the workflow does not take it."""
    check_ids(tenant, key, run_id)
    where = f"the input of {workflow.id}"
    data = encode(check(value, workflow.input, where=where), workflow.input, where=where)
    return _new(workflow, data, tenant=tenant, key=key, run_id=run_id, deployment=deployment)


def begun_by_signal(workflow: Workflow[Any, Any], *, tenant: str, key: str | None, deployment: str = "") -> NewRun:
    """A run of `workflow` that would begin with None, for where it is not known yet that one begins at all."""
    return _new(workflow, b"null", tenant=tenant, key=key, run_id=None, deployment=deployment)


LAST = 1000
"""The greatest priority."""
LONGEST_QUEUE = 200


def in_line(run: NewRun, *, queue: str, priority: int, start_at: datetime | None) -> NewRun:
    """The run on a queue, by its priority among those that are due, and due at a time. Raises InputError for what can't be any of them."""
    if not isinstance(queue, str) or not queue.isprintable() or not 1 <= len(queue) <= LONGEST_QUEUE:
        raise InputError(f"{queue!r} is no queue: 1 to {LONGEST_QUEUE} printable characters")
    if not isinstance(priority, int) or isinstance(priority, bool) or not 0 <= priority <= LAST:
        raise InputError(f"{priority!r} is no priority: a whole number from 0, which is taken first, to {LAST}")
    if start_at is not None and start_at.utcoffset() is None:
        raise InputError(f"start_at={start_at.isoformat()} has no time zone; such as datetime.now(UTC) has")
    return replace(run, queue=queue, priority=priority, available_at=start_at)


def _new(
    workflow: Workflow[Any, Any], data: bytes, *, tenant: str, key: str | None, run_id: str | None, deployment: str
) -> NewRun:
    own = run_id or str(uuid7())
    return NewRun(
        own, tenant, workflow.id, workflow.version, key, input=data, trace_id=own, deployment=deployment, max_attempts=workflow.max_attempts
    )  # fmt: skip
