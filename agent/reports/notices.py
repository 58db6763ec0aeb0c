"""What becomes of a report that could not be made or posted: words where it was promised, or to whoever ordered it alone."""

from itertools import takewhile
from typing import Any, Protocol

from pydantic import BaseModel, ConfigDict

from agent.channel import DELIVERY_RETRY, ChannelGoneError, Delivered, Notes
from agent.reports.document import Document
from agent.reports.request import ReportRequest, schedule_name
from agent.thread import Thread
from workflows import Effect, FailedRun, RunState, StepContext, Workflow, step, workflow
from workflows.schedules import delivered, paused
from workflows.storage import Store

ENOUGH = 3
"""Summaries in a row that are refused for a reason nobody knows, before they are stopped."""
NOTICE = "report-notice"
SUMMARY = "summary"
SORRY = "Something broke on our side; order it again, or ask an operator if it happens twice."


class LostPlace(BaseModel):
    """A place that can't be posted to any more: why, in words; what was to stand there; whether it was to come again and again."""

    model_config = ConfigDict(frozen=True)

    channel: str
    why: str
    title: str
    recurring: bool


class Apology(BaseModel):
    """What came of apologising where the report was promised. `lost`: not even that can be posted there."""

    model_config = ConfigDict(frozen=True)

    run_id: str
    owner: str
    lost: LostPlace | None = None


class Publisher(Protocol):
    """Posts documents."""

    async def publish(
        self, thread: Thread, document: Document, *, delivery_id: str, reply_url: str | None, notes: Notes
    ) -> Delivered:
        """Post a document, exactly once. Raises ChannelUnavailableError, ChannelGoneError."""
        ...

    async def find(self, thread: Thread, *, delivery_id: str, notes: Notes) -> Delivered | None:
        """The whole of it, if it stands there already."""
        ...

    async def tell_lost(
        self, tenant: str, user_id: str, lost: LostPlace, *, delivery_id: str, notes: Notes
    ) -> Delivered:
        """Tell a person alone, once, that a place is lost and how to put it right. Raises as `publish`."""
        ...


def _words(request: ReportRequest, state: RunState) -> Document:
    if state is RunState.CANCELLED:
        return Document(
            summary=f"Stopped, as you asked: {request.title}.", body=f"Stopped, as you asked: **{request.title}**."
        )
    return Document(
        summary=f"I could not make this: {request.title}.",
        body=f"I could not make this: **{request.title}**. {SORRY}",
    )


async def refused_before(store: Store, failed: FailedRun, *, tenant: str, name: str) -> int:
    """How many firings of a schedule in a row, right before the one that failed, were refused where they were to be posted."""
    firings = await store.firings(tenant=tenant, schedule=name, limit=20)
    told = [each for each in firings if each.run_id != failed.run_id and each.delivery is not None]
    return len(list(takewhile(lambda each: each.delivery == "failed" and bool(each.delivery_detail), told)))


def make_notice(publisher: Publisher, store: Store) -> Workflow[FailedRun, Any]:
    """The workflow that follows a failed report or summary."""

    async def lost_place(
        failed: FailedRun, request: ReportRequest, error: ChannelGoneError, *, tenant: str
    ) -> LostPlace | None:
        """What is to be told of a place that took neither the report nor the apology. None: it may take the next one."""
        why, recurring = error.place or str(error), failed.workflow == SUMMARY
        if recurring and not error.place:
            times = 1 + await refused_before(store, failed, tenant=tenant, name=schedule_name(request.channel))
            if times < ENOUGH:
                return None
            why = f"{why}, {times} times in a row"
        return LostPlace(channel=request.channel, why=why, title=request.title, recurring=recurring)

    async def apologise(failed: FailedRun, ctx: StepContext) -> Apology:
        """Say where the report was promised that there is none."""
        request = ReportRequest.model_validate(failed.input)
        thread = Thread(tenant=ctx.tenant, channel=request.channel, root=request.root)
        words = _words(request, failed.state)
        lost, refused = None, ""
        try:
            await publisher.publish(
                thread, words, delivery_id=f"{failed.run_id}:notice", reply_url=request.reply_url, notes=ctx
            )
        except ChannelGoneError as error:
            if not (error.place or error.refused):
                raise
            refused = str(error)
            lost = await lost_place(failed, request, error, tenant=ctx.tenant)
        ctx.write(delivered(failed.run_id, tenant=ctx.tenant, status="failed", at=await ctx.now(), detail=refused))
        return Apology(run_id=failed.run_id, owner=request.asker.id, lost=lost)

    async def disable(apology: Apology, ctx: StepContext) -> Apology:
        """End what would fail again at every firing, before anybody is told: told once, it must not come again."""
        if apology.lost is not None and apology.lost.recurring:
            name = schedule_name(apology.lost.channel)
            ctx.write(paused(name, tenant=ctx.tenant, reason=apology.lost.why))
        return apology

    async def tell(apology: Apology, ctx: StepContext) -> Delivered:
        if apology.lost is None:
            return Delivered(message_ids=())
        return await publisher.tell_lost(
            ctx.tenant, apology.owner, apology.lost, delivery_id=f"{apology.run_id}:lost", notes=ctx
        )

    def durable(name: str, do: Any) -> Any:
        return step(id=name, effect=Effect.IDEMPOTENT, retry=DELIVERY_RETRY)(do)

    return (
        workflow(NOTICE, version="2")
        .then(durable("apologise", apologise))
        .then(durable("disable", disable))
        .then(durable("tell", tell))
        .commit()
    )
