"""Reports and summaries as background workflows: gather, then publish once."""

from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel, ConfigDict

from agent.campaigns import AdPlatform, CampaignLookupError, PeriodError
from agent.campaigns.performance import Window, choose, clock_of, measure
from agent.channel import DELIVERY_RETRY, Delivered
from agent.messages import joins
from agent.reports.document import Document
from agent.reports.narrative import document
from agent.reports.notices import NOTICE, SUMMARY, Publisher, make_notice
from agent.reports.request import ReportRequest
from agent.thread import Thread
from workflows import Effect, Retry, StepContext, Workflow, step, workflow
from workflows.schedules import delivered
from workflows.storage import Store


class Gathered(BaseModel):
    """A document and where it goes."""

    model_config = ConfigDict(frozen=True)

    request: ReportRequest
    document: Document


@dataclass(frozen=True, slots=True)
class Reports:
    """The workflows: one on demand, one by cron. They differ only in what starts them and are kept apart for listing."""

    report: Workflow[ReportRequest, Any]
    summary: Workflow[ReportRequest, Any]
    notice: Workflow[Any, Any]

    @property
    def workflows(self) -> tuple[Workflow[Any, Any], ...]:
        """What an engine has to know."""
        return (self.report, self.summary, self.notice)


def make_reports(platform: AdPlatform, publisher: Publisher, *, store: Store) -> Reports:
    """Compose the report workflows."""

    async def gather(request: ReportRequest, ctx: StepContext) -> Gathered:
        now = await ctx.now()
        try:
            account = await platform.account(ctx.tenant)
            zone = clock_of(request.asker.time_zone, account.time_zone, now)
            window = Window.read(request.period, "previous", now=now, time_zone=zone)
            wanted = request.campaigns if isinstance(request.campaigns, str) else list(request.campaigns)
            chosen = choose(await platform.campaigns(ctx.tenant), wanted)
        except (PeriodError, CampaignLookupError) as error:
            body = f"I can't make this report: {error}"
            return Gathered(request=request, document=Document(summary="I can't make this report.", body=body))
        performance = await measure(platform, ctx.tenant, chosen, window, now=now)
        return Gathered(request=request, document=document(performance, title=request.title))

    async def publish(gathered: Gathered, ctx: StepContext) -> Delivered:
        request = gathered.request
        thread = Thread(tenant=ctx.tenant, channel=request.channel, root=request.root)
        posted = await publisher.publish(
            thread, gathered.document, delivery_id=f"{ctx.run_id}:report", reply_url=request.reply_url, notes=ctx
        )
        await told(thread, posted, ctx)
        return posted

    async def find(key: str, gathered: Gathered, ctx: StepContext) -> Delivered | None:
        thread = Thread(tenant=ctx.tenant, channel=gathered.request.channel, root=gathered.request.root)
        found = await publisher.find(thread, delivery_id=f"{ctx.run_id}:report", notes=ctx)
        if found is not None:
            await told(thread, found, ctx)
        return found

    async def told(thread: Thread, posted: Delivered, ctx: StepContext) -> None:
        """A summary's schedule shows that it was delivered, and who replies to what stands by itself talks to the agent: no mention is needed."""
        if not thread.root and posted.message_ids:
            ctx.write(joins(thread.model_copy(update={"root": posted.message_ids[0]})))
        ctx.write(delivered(ctx.run_id, tenant=ctx.tenant, status="delivered", at=await ctx.now()))

    gathering = step(id="gather", effect=Effect.READ, retry=Retry(times=4, base=0.5, cap=30))(gather)
    publishing = step(id="publish", effect=Effect.RECONCILE, reconcile=find, retry=DELIVERY_RETRY)(publish)
    return Reports(
        notice=make_notice(publisher, store),
        report=workflow("report", on_failure=NOTICE).then(gathering).then(publishing).commit(),
        summary=workflow(SUMMARY, on_failure=NOTICE).then(gathering).then(publishing).commit(),
    )
