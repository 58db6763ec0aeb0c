"""Questions to a run's workflow. A worker has to answer them, and one that drops the workflow just then never does: they are asked again."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from datetime import timedelta
from typing import Any
from uuid import uuid4

from temporalio.client import WorkflowHandle, WorkflowUpdateRPCTimeoutOrCancelledError
from temporalio.service import RPCError, RPCStatusCode

AnyHandle = WorkflowHandle[Any, Any]

LIMIT = timedelta(seconds=4)
TRIES = 3
UNANSWERED = (RPCStatusCode.CANCELLED, RPCStatusCode.DEADLINE_EXCEEDED)
"""What the SDK and the server say of a call whose time is up."""


async def query(handle: AnyHandle, name: str, *arguments: Any, result: Any) -> Any:
    """What the workflow answers to a query, also once it has ended. Raises RPCError, WorkflowQueryFailedError."""
    return await _insist(lambda: handle.query(name, args=list(arguments), result_type=result, rpc_timeout=LIMIT))


async def update(handle: AnyHandle, name: str, arguments: Sequence[Any], *, result: Any) -> Any:
    """What the workflow answers to an update, which it takes in once however often it is asked. Raises RPCError, WorkflowUpdateFailedError."""
    own = uuid4().hex
    return await _insist(
        lambda: handle.execute_update(name, args=list(arguments), id=own, result_type=result, rpc_timeout=LIMIT)
    )


async def _insist(ask: Callable[[], Awaitable[Any]]) -> Any:
    for left in reversed(range(TRIES)):
        try:
            return await ask()
        except (WorkflowUpdateRPCTimeoutOrCancelledError, RPCError) as error:
            if (task := asyncio.current_task()) is not None and task.cancelling():
                raise asyncio.CancelledError from error  # the SDK says of a cancelled caller what it says of a slow server
            if not left or (isinstance(error, RPCError) and error.status not in UNANSWERED):
                raise
    raise AssertionError
