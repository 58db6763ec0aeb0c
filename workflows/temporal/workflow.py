"""The one workflow: it walks any graph, given as data, by the same interpreter that every other execution uses.

It is not run in the SDK's sandbox. The sandbox imports a workflow's modules anew for each run, so that it can take clock and randomness from
them; a graph's functions live in the process's registry and could not be reached. Instead nothing here reads a clock, a random number or
the outside world but through the workflow (a test reads the code for that), a graph's functions are pure by contract, and a replay of
recorded histories is part of the tests.
"""

import asyncio
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from pydantic_core import from_json, to_json
from temporalio import workflow
from temporalio.common import RawValue

from workflows.errors import Cancelled, describe
from workflows.running.compensation import compensate
from workflows.running.interpreter import Interpreter
from workflows.storage.base import RunState, Status
from workflows.temporal.attributes import changes
from workflows.temporal.effects import TemporalEffects
from workflows.temporal.ending import Ending
from workflows.temporal.messages import Begin, Delivered, Json, Outcome, RecordMessage, SignalMessage, Taken
from workflows.temporal.payloads import fitting
from workflows.temporal.steps import DeadError, Steps
from workflows.temporal.walk import Walk
from workflows.values import decode, encode

RECEIVED = "$received"


@workflow.defn(dynamic=True, sandboxed=False)
class GraphWorkflow:
    """Walks the graph that it is begun with. Its type in Temporal is the name of the workflow it stands for."""

    @workflow.init
    def __init__(self, args: Sequence[RawValue]) -> None:
        begin = workflow.payload_converter().from_payload(args[0].payload, Begin)
        self._walk = Walk(begin)
        self._steps = Steps(self._walk)
        self._ending = Ending(self._walk)
        self._published = RunState.READY

    @workflow.run
    async def run(self, args: Sequence[RawValue]) -> Any:
        """To the end of the run, which is recorded as how the workflow closes."""
        publishing = asyncio.create_task(self._publish_state())
        driving = asyncio.create_task(self._drive())
        try:
            await self._until_driven(driving)
        finally:
            publishing.cancel()
        return self._ending.close(driving.result())

    async def _until_driven(self, driving: "asyncio.Task[Outcome]") -> None:
        """A cancellation is a request to the run, which decides what can still be stopped; it never stops the walk itself."""
        while not driving.done():
            try:
                await asyncio.wait([driving])
            except asyncio.CancelledError:
                if workflow.cancellation_reason() is None or self._walk.cancelled:
                    raise  # not by a request: the workflow is leaving this process's cache
                self._walk.cancel()

    # The walk

    async def _drive(self) -> Outcome:
        """Walk forwards, or backwards after a failure, and say how the run ends. What is decided is told afterwards, and nothing changes it."""
        try:
            output = await self._forwards()
        except Cancelled:
            return await self._ending.decide(RunState.CANCELLED)
        except DeadError as error:
            return await self._ending.decide(RunState.DEAD, failure={**describe(error), "type": "Dead"})
        except Exception as error:  # what a step or a graph's own functions raised
            failure = describe(error)
        else:
            return await self._ending.decide(RunState.DONE, output=output)
        return await self._backwards(failure)

    async def _forwards(self) -> Json:
        walk, graph = self._walk, self._walk.graph
        walk.boundary()
        await self._ending.tell("on_start", RunState.RUNNING)
        value = decode(to_json(walk.begin.value), graph.input, where=f"the input of {graph.id}")
        output = await Interpreter(TemporalEffects(walk, self._steps)).walk(graph, value)
        data = from_json(encode(output, graph.output, where=f"workflow {graph.id}"))
        fitting(f"the output of {graph.id}", Outcome(state=RunState.DONE, output=data))
        walk.boundary()
        return data

    async def _backwards(self, failure: dict[str, Any]) -> Outcome:
        self._walk.backwards = True
        if not any(record.status is Status.FAILED for record in self._walk.journal.records.values()):
            self._walk.journal.add("$failed", Status.FAILED, error=failure)
        try:
            undone = await compensate(self._steps.completed, self._steps.run)
        except DeadError as error:
            return await self._ending.decide(RunState.DEAD, failure={**failure, "not_undone": [describe(error)]})
        more = {"not_undone": undone} if undone else {}
        return await self._ending.decide(RunState.FAILED, failure={**failure, **more})

    async def _publish_state(self) -> None:
        """Tell Temporal's visibility whether the run works or waits, once each time everything that could go on has."""
        while True:
            await workflow.wait_condition(lambda: self._walk.standing is not self._published)
            self._published = self._walk.standing
            workflow.upsert_search_attributes(changes(self._published))
            if self._published is RunState.SUSPENDED:
                await self._ending.tell("on_suspend", RunState.SUSPENDED)

    # What comes from outside

    @workflow.signal(name="signal")
    def signal(self, message: SignalMessage) -> None:
        """Put a signal in the inbox, once by its key."""
        self._walk.mailbox.accept(message)

    @workflow.signal(name="clock")
    def clock(self, offset_s: float) -> None:
        """Move the run's clock: only tests do."""
        self._walk.offset = timedelta(seconds=offset_s)

    @workflow.update(name="deliver")
    def deliver(self, message: SignalMessage) -> Delivered:
        """Put a signal in the inbox, and say what became of it."""
        return Delivered(seq=self._walk.mailbox.accept(message))

    @workflow.update(name="take")
    def take(self, path: str, name: str | None) -> list[Taken]:
        """Give pending signals to the step that runs at `path`: no other gets them, unless this one fails."""
        found = self._walk.mailbox.take(name)
        self._steps.taken(path, [each.seq for each in found])
        return found

    @workflow.update(name="note")
    def note(self, path: str, name: str, value: Json) -> None:
        """Record a fact of the step that runs at `path`; the first value under a name stays."""
        self._walk.journal.note(path, name, value)

    @workflow.query(name="records")
    def records(self, after: int) -> list[RecordMessage]:
        """The records after number `after`, as many as fit into an answer."""
        return self._walk.journal.page(after)

    @workflow.query(name="inbox")
    def inbox(self) -> list[Taken]:
        """The signals that no step has used."""
        return self._walk.mailbox.unused()

    @workflow.query(name="payload")
    def payload(self, dedup_key: str) -> Taken | None:
        """The signal that was accepted under a key."""
        return self._walk.mailbox.known(dedup_key)


@workflow.defn(name=RECEIVED, sandboxed=False)
class ReceivedWorkflow:
    """Marks an outside event as accepted: that an execution of its id exists is all there is to it."""

    @workflow.run
    async def run(self) -> None:
        """Nothing."""
