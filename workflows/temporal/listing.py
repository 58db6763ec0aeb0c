"""Lists runs by Temporal's visibility, newest first."""

from collections.abc import AsyncIterator, Sequence
from datetime import UTC, datetime, timedelta

from temporalio.client import Client, WorkflowExecution

from workflows.storage.base import RunState
from workflows.temporal.attributes import KEY, STATE, TENANT
from workflows.temporal.ids import quoted

WINDOWS = tuple(timedelta(seconds=s) for s in (60, 3_600, 86_400, 14 * 86_400))
"""How far back to look at first: visibility gives what is open before what is closed, so the newest can't be had by a limit alone."""


Age = tuple[datetime, str, str]
"""When a run began, its workflow id and its execution: they are listed by it."""


class Listing:
    """Finds runs of one fleet."""

    def __init__(self, client: Client, fleet: str) -> None:
        self._client = client
        self._own = f"TaskQueue STARTS_WITH {_text(f'{fleet}/')}"

    async def runs(
        self,
        *,
        tenant: str | None,
        workflow: str | None,
        key: str | None,
        states: Sequence[RunState],
        limit: int,
        before: Age | None,
    ) -> list[WorkflowExecution]:
        """The newest runs that began before `before`."""
        upto = None if before is None else before[0]
        query = self._query(tenant=tenant, workflow=workflow, key=key, states=states, upto=upto)
        since = await self._since(query, upto or datetime.now(UTC), limit + (before is not None))
        found = [each async for each in self._client.list_workflows(query if since is None else _since(query, since))]
        found.sort(key=_age, reverse=True)
        return [each for each in found if before is None or _age(each) < before][:limit]

    async def where(self, *, tenant: str, more: str) -> AsyncIterator[WorkflowExecution]:
        """All runs of a tenant of which `more`, a condition of visibility, holds."""
        query = f"{self._query(tenant=tenant, workflow=None, key=None, states=(), upto=None)} AND {more}"
        async for each in self._client.list_workflows(query):
            yield each

    async def live(self) -> list[tuple[str, str]]:
        """Workflow id and execution of every run of the fleet that has not ended."""
        query = f"{self._own} AND {TENANT.name} IS NOT NULL AND ExecutionStatus = 'Running'"
        return [(each.id, each.run_id) async for each in self._client.list_workflows(query)]

    async def _since(self, query: str, upto: datetime, wanted: int) -> datetime | None:
        """A time since when there are enough; None: look at all."""
        for window in WINDOWS:
            since = upto - window
            if (await self._client.count_workflows(_since(query, since))).count >= wanted:
                return since
        return None

    def _query(
        self,
        *,
        tenant: str | None,
        workflow: str | None,
        key: str | None,
        states: Sequence[RunState],
        upto: datetime | None,
    ) -> str:
        parts = [self._own]
        parts.append(f"{TENANT.name} IS NOT NULL" if tenant is None else f"{TENANT.name} = {_text(quoted(tenant))}")
        if workflow is not None:
            parts.append(f"WorkflowType = {_text(workflow)}")
        if key is not None:
            parts.append(f"{KEY.name} = {_text(quoted(key))}")
        if upto is not None:
            parts.append(f"StartTime <= {_text(upto.isoformat())}")
        if states:
            parts.append(f"({' OR '.join(map(_state, states))})")
        return " AND ".join(parts)


def _age(execution: WorkflowExecution) -> Age:
    return execution.start_time, execution.id, execution.run_id


def _since(query: str, since: datetime) -> str:
    return f"{query} AND StartTime >= {_text(since.isoformat())}"


def _state(state: RunState) -> str:
    """Of what is open, its own word; of what was ended from outside, Temporal's."""
    own = f"{STATE.name} = {_text(state.value)}"
    if state.live:
        return f"({own} AND ExecutionStatus = 'Running')"
    outside = {RunState.CANCELLED: "Terminated", RunState.FAILED: "TimedOut"}.get(state)
    return own if outside is None else f"({own} OR ExecutionStatus = '{outside}')"


def _text(value: str) -> str:
    return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"
