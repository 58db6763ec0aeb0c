"""How a run ends: who is told, who takes over what nobody has read, and how the workflow closes."""

from datetime import timedelta
from typing import Any, NoReturn
from uuid import uuid5

from pydantic_core import to_json
from temporalio import workflow
from temporalio.common import RetryPolicy
from temporalio.exceptions import ActivityError, ApplicationError, CancelledError

from workflows.definition.callbacks import LIMIT_S
from workflows.errors import InputError
from workflows.ids import NAMESPACE
from workflows.running.driver import FailedRun
from workflows.storage.base import NewRun, RunState
from workflows.temporal.attributes import OUTCOME, attributes_of, changes, memo_of
from workflows.temporal.children import start_child
from workflows.temporal.messages import Begin, Json, MomentMessage, Outcome, RunFacts, SignalMessage, Taken, Wake
from workflows.temporal.payloads import fitting
from workflows.temporal.walk import Walk

TELL = "$tell"
WAKE = "$wake-parent"
ONCE = RetryPolicy(maximum_attempts=1)
PATIENTLY = RetryPolicy(maximum_interval=timedelta(seconds=30))


class Ending:
    """Ends one run. What is decided stays decided: whatever comes while it is told goes to a successor."""

    def __init__(self, walk: Walk) -> None:
        self._walk = walk

    async def decide(self, state: RunState, *, output: Json = None, failure: dict[str, Any] | None = None) -> Outcome:
        """The run ends in `state`: start the workflow named in `on_failure`, tell callbacks, wake the parent's key."""
        walk = self._walk
        if state is not RunState.DONE:
            await self._start_handler(state, failure)
        if state is RunState.FAILED:
            await self.tell("on_error", state, failure=failure)
        await self.tell("on_finish", state, output=output, failure=failure)
        if walk.run.parent is not None:
            payload = {"run_id": walk.run_id, "path": walk.run.parent_path, "state": state.value}
            await workflow.execute_activity(
                WAKE, Wake(run=walk.run, payload=payload), activity_id=WAKE, retry_policy=PATIENTLY,
                start_to_close_timeout=timedelta(seconds=30),
            )  # fmt: skip
        walk.hint("completed", state=state.value)
        return Outcome(state=state, output=output, failure=failure)

    async def _start_handler(self, state: RunState, failure: dict[str, Any] | None) -> None:
        walk, handler = self._walk, self._walk.begin.handler
        if handler is None:
            return
        row = walk.run.row(walk.run_id, state, created_at=walk.created_at, input=to_json(walk.begin.value))
        failed = FailedRun.of(row, state, failure)
        new = NewRun(
            str(uuid5(NAMESPACE, f"{walk.run_id}/on-failure")), walk.run.tenant, handler.workflow, handler.version,
            input=failed.model_dump_json().encode(), trace_id=row.trace_id, max_attempts=handler.max_attempts,
        )  # fmt: skip
        begin = Begin.of(new, handler.spec, offset=walk.offset)
        try:
            fitting("what is told of a failed run", begin)
        except InputError:  # its input was nearly too large by itself; whoever is told can look it up
            begin = begin.model_copy(update={"value": {**begin.value, "input": None}})
        await start_child(walk.fleet, begin)

    async def tell(
        self, name: str, state: RunState, *, output: Json = None, failure: dict[str, Any] | None = None
    ) -> None:
        """Tell the workflow's callback of that name, if it has one, in this process. What becomes of it harms nothing."""
        walk = self._walk
        if name not in walk.begin.callbacks:
            return
        moment = MomentMessage(
            callbacks=walk.references["#callbacks"], name=name, run=walk.facts, run_id=walk.run_id, created_at=walk.created_at,
            state=state, output=output, failure=failure,
        )  # fmt: skip
        try:
            await workflow.execute_local_activity(
                TELL, moment, start_to_close_timeout=timedelta(seconds=2 * LIMIT_S), retry_policy=ONCE
            )
        except ActivityError:
            return

    def close(self, outcome: Outcome) -> Json:
        """The workflow's result. Unread signals of a run that signals began go, in order, to a successor: the next execution of the same id.

        Temporal refuses to close a workflow that was sent something it has not seen, and comes here again with that in the inbox.
        """
        unread = [each for each in self._walk.mailbox.unused() if not each.name.startswith("$")]
        begun_by_signals = self._walk.run.key is not None and self._walk.begin.value is None
        fresh = [each for each in unread if not each.carried] if begun_by_signals else []  # another would have no value
        told = (
            set() if begun_by_signals else self._walk.dispatched
        )  # which nobody would have been told of a moment later
        dead = tuple(each for each in unread if each not in fresh and each.dedup_key not in told)
        outcome = outcome.model_copy(update={"dead_letters": dead})
        workflow.upsert_search_attributes(changes(outcome.state, dead_letters=len(dead)))
        if fresh:
            workflow.upsert_memo({OUTCOME: outcome})
            self._hand_over(fresh)
        return self._closed(outcome)

    def _hand_over(self, fresh: list[Taken]) -> NoReturn:
        walk = self._walk
        facts = walk.run.model_dump(exclude={"parent", "parent_id", "parent_path", "trace_id"})
        carried = tuple(
            SignalMessage(name=each.name, dedup_key=each.dedup_key, payload=each.payload, carried=each.carried + 1)
            for each in fresh
        )
        begin = Begin(
            run=RunFacts(**facts), spec=walk.begin.spec, inbox=carried, callbacks=walk.begin.callbacks, handler=walk.begin.handler,
            offset_s=walk.offset.total_seconds(),
        )  # fmt: skip
        workflow.continue_as_new(begin, memo=memo_of(begin), search_attributes=attributes_of(begin.run))

    @staticmethod
    def _closed(outcome: Outcome) -> Json:
        if outcome.state is RunState.DONE:
            return outcome
        if outcome.state is RunState.CANCELLED:
            workflow.upsert_memo({OUTCOME: outcome})
            raise CancelledError("the run was asked to stop")
        failure = outcome.failure or {}
        raise ApplicationError(
            str(failure.get("message", "")), outcome, type=str(failure.get("type", "")), non_retryable=True
        )
