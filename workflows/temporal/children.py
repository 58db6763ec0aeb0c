"""Background runs: workflows of their own, which outlive the one that started them."""

from datetime import timedelta
from typing import Any

from temporalio import workflow
from temporalio.common import WorkflowIDReusePolicy
from temporalio.exceptions import WorkflowAlreadyStartedError

from workflows.temporal.attributes import attributes_of, memo_of
from workflows.temporal.ids import queue_of, workflow_id
from workflows.temporal.messages import Begin


async def start_child(fleet: str, begin: Begin) -> None:
    """Start a run of a fleet that this one does not wait for. One of its id, or a live one of its key, is there already: nothing happens."""
    reuse = WorkflowIDReusePolicy.REJECT_DUPLICATE if begin.run.key is None else WorkflowIDReusePolicy.ALLOW_DUPLICATE
    options: dict[str, Any] = {
        "id": workflow_id(fleet, begin.run),
        "task_queue": queue_of(fleet, begin.run.workflow, begin.run.version),
        "id_reuse_policy": reuse,
        "parent_close_policy": workflow.ParentClosePolicy.ABANDON,
        "cancellation_type": workflow.ChildWorkflowCancellationType.ABANDON,
        "search_attributes": attributes_of(begin.run),
        "memo": memo_of(begin),
        "task_timeout": timedelta(seconds=10),
    }
    try:
        await workflow.start_child_workflow(begin.run.workflow, begin, **options)
    except WorkflowAlreadyStartedError:
        return
