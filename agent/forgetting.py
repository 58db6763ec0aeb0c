"""Forgetting: everything that was said in a channel is deleted, for good, as a workflow."""

from datetime import datetime
from uuid import uuid5

import structlog
from pydantic import BaseModel, ConfigDict

from agent import approvals
from agent.channel import Channel
from agent.feedback import FEEDBACK
from agent.loop import Agent
from agent.messages import MESSAGES, PARTICIPATION, Transcript
from agent.stops import LIVE, STOPS, Stopper
from workflows import Effect, Engine, FailedRun, Retry, Run, StepContext, Workflow, step, workflow
from workflows.ids import NAMESPACE
from workflows.pubsub import PubSubUnavailableError
from workflows.pubsub.hints import run_topic
from workflows.storage import Delete, Is, Select
from workflows.storage.tables import APPROVALS, DEAD_SIGNALS, RUNS

PATIENCE = Retry(times=500, base=0.1, cap=60)
"""For work that was told to stop: it ends within moments, when a dead worker's lease has run out, or when Slack takes its notice after hours."""


PATIENT_TRIES = 20
"""Tries that wait for the bus."""


class StillWorkingError(Exception):
    """Something in the channel has not ended yet; what it writes would outlive the forgetting."""


class Place(BaseModel):
    """What is to be forgotten: what was said in `channel` up to `asked_at`, when somebody wanted it forgotten, and by turns that worked then."""

    model_config = ConfigDict(frozen=True)

    channel: str
    asked_at: datetime
    turns: tuple[str, ...] = ()

    @property
    def under(self) -> str:
        """How the keys of its threads begin."""
        return f"{self.channel}:"


class Forgetting:
    """Stops what goes on in a channel, waits until it has ended, and deletes what is stored of its conversations.

    What is said meanwhile stays, and is answered. Run again after a kill, each step finds what is left.
    """

    def __init__(self, engine: Engine, agent: Agent, channel: Channel) -> None:
        self._engine = engine
        self._store = engine.store
        self._agent = agent
        self._channel = channel
        self._stopper = Stopper(engine, turn=agent.turn.id)
        self.workflow: Workflow[str, int] = (
            workflow("forget-channel")
            .then(step(id="look", effect=Effect.READ)(self._look))
            .then(step(id="stop", effect=Effect.IDEMPOTENT)(self._stop))
            .then(step(id="wait", effect=Effect.READ, retry=PATIENCE)(self._wait))
            .then(step(id="delete", effect=Effect.IDEMPOTENT, retry=PATIENCE)(self._delete))
            .commit()
        )

    async def forget(self, tenant: str, channel: str, *, key: str) -> Run[int]:
        """Begin; the run's result is the number of conversations. The same `key` is the same run. Raises StoreUnavailableError."""
        run_id = str(uuid5(NAMESPACE, f"forget/{tenant}/{channel}/{key}"))
        return await self._engine.start(self.workflow, channel, tenant=tenant, run_id=run_id)

    async def _look(self, channel: str, ctx: StepContext) -> Place:
        place = Place(channel=channel, asked_at=await self._store.now())
        live = await self._engine.runs(tenant=ctx.tenant, workflow=self._agent.turn.id, states=LIVE, limit=1000)
        turns = tuple(run.run_id for run in live if (run.key or "").startswith(place.under))
        return place.model_copy(update={"turns": turns})

    async def _stop(self, place: Place, ctx: StepContext) -> Place:
        transcript = Transcript(self._store)
        for thread in await self._stopper.live(ctx.tenant, place.channel):
            # What was said since is answered, by the turn that follows.
            last = await transcript.last_said(thread, until=place.asked_at)
            await self._stopper.stop(thread, message_id=last, by="", anew=True)
        for approval in await approvals.waiting(self._store, ctx.tenant):
            if approval.thread.channel == place.channel:
                await self._withdraw(approval)
        return place

    async def _withdraw(self, approval: approvals.Approval) -> None:
        """Nobody can decide it any more, and its card says so."""
        await self._store.write(approvals.withdrawn(approval.thread.tenant, approval.id))
        known = await approvals.find(self._store, approval.thread.tenant, approval.id)
        if known is not None and known.places:
            await self._channel.settle(known.thread, known.places, known.card)

    async def _wait(self, place: Place, ctx: StepContext) -> Place:
        turns = await self._engine.runs(tenant=ctx.tenant, workflow=self._agent.turn.id, states=LIVE, limit=1000)
        keys = [run.key for run in turns if run.created_at <= place.asked_at] + await self._noticed(ctx.tenant)
        if any((key or "").startswith(place.under) for key in keys):
            raise StillWorkingError(f"work in {place.channel} has not ended yet")
        return place

    async def _noticed(self, tenant: str) -> list[str | None]:
        """The keys of ended turns whose notice is still to be given."""
        live = await self._engine.runs(tenant=tenant, workflow=self._agent.notice.id, states=LIVE, limit=1000)
        whole = [await self._store.run(run.run_id, tenant=tenant) for run in live]
        return [FailedRun.model_validate_json(run.input).key for run in whole if run is not None and run.input]

    async def _erase(self, place: Place, ctx: StepContext) -> None:
        """What the bus still holds of the channel: events of its threads, and what was said in them as it came.

        Before the rows, which name the topics. A bus that stays away forgets them by itself within the hour, and holds up nothing.
        """
        rows = await self._store.read(Select(RUNS, {"tenant": ctx.tenant, "key": Is("starts with", place.under)}))
        topics = {run_topic(ctx.tenant, row["run_id"], key) for row in rows for key in (row["key"], None)}
        try:
            for topic in sorted(topics):
                await self._engine.pubsub.erase(topic)
        except PubSubUnavailableError as error:
            if ctx.attempt <= PATIENT_TRIES:
                raise
            structlog.get_logger().warning("topics_not_erased", tenant=ctx.tenant, error=str(error))

    async def _delete(self, place: Place, ctx: StepContext) -> int:
        here, past = Is("starts with", place.under), Is("<=", place.asked_at)
        # Last, since it is where the threads are counted, also after a half-done deletion.
        threads = {"tenant": ctx.tenant, "thread": here, "since": past}
        await self._erase(place, ctx)
        count = len(await self._store.read(Select(PARTICIPATION, threads)))
        await self._store.write(
            Delete(MESSAGES, {"tenant": ctx.tenant, "thread": here, "at": past}),
            Delete(MESSAGES, {"tenant": ctx.tenant, "thread": here, "run_id": Is("in", place.turns)}),
            Delete(STOPS, {"tenant": ctx.tenant, "thread": here}),
            Delete(FEEDBACK, {"tenant": ctx.tenant, "thread": here}),
            Delete(APPROVALS, {"tenant": ctx.tenant, "key": here, "created_at": past}),
            Delete(DEAD_SIGNALS, {"tenant": ctx.tenant, "key": here}),
        )
        while await self._store.forget_runs(ctx.tenant, under=place.under):
            pass
        said_since = await self._store.read(Select(MESSAGES, {"tenant": ctx.tenant, "thread": here}))
        going_on = {row["thread"] for row in said_since}
        gone = [
            row["thread"]
            for row in await self._store.read(Select(PARTICIPATION, threads))
            if row["thread"] not in going_on
        ]
        await self._store.write(Delete(PARTICIPATION, {**threads, "thread": Is("in", gone)}))
        return count
