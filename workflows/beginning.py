"""Runs as they are begun: with a checked value, or by a signal alone."""

from typing import Any

from workflows.definition.graph import Workflow
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


def _new(
    workflow: Workflow[Any, Any], data: bytes, *, tenant: str, key: str | None, run_id: str | None, deployment: str
) -> NewRun:
    own = run_id or str(uuid7())
    return NewRun(
        own, tenant, workflow.id, workflow.version, key, input=data, trace_id=own, deployment=deployment, max_attempts=workflow.max_attempts
    )  # fmt: skip
