"""Ordering reports and scheduling summaries, for commands and for the model's tools alike."""

from typing import Annotated, Any
from uuid import uuid5

from pydantic import Field

from agent.campaigns import Period, PeriodError, parse_period
from agent.campaigns.performance import clock_of
from agent.models.base import Person
from agent.reports.recurrence import cron_of
from agent.reports.request import ReportRequest, schedule_name
from agent.reports.workflows import Reports
from agent.stops import LIVE
from agent.thread import Thread
from agent.tools import Evidence, Tool, ToolContext, ToolError, tool
from workflows import Effect, Engine, InputError, RunRow, Schedule
from workflows.ids import NAMESPACE
from workflows.schedules import describe

WHY_ASKS = "There are words of others in this conversation, such as a file or a forwarded message."
SUMMARY_TITLE = "Weekly summary"


class ReportDesk:
    """Takes orders. An order's id derives from its key, so that the same order twice is one report."""

    def __init__(self, engine: Engine, reports: Reports) -> None:
        self._engine = engine
        self._reports = reports

    async def order(self, request: ReportRequest, *, tenant: str, key: str) -> str:
        """Start a report in the background. Returns the run's id."""
        run_id = str(uuid5(NAMESPACE, f"report/{tenant}/{key}"))
        place = Thread(tenant=tenant, channel=request.channel, root=request.root)
        under = f"{place.key}:{run_id}"  # its channel, with which it is forgotten
        run = await self._engine.start(self._reports.report, request, tenant=tenant, run_id=run_id, key=under)
        return run.id

    async def underway(self, *, tenant: str, channel: str) -> list[RunRow]:
        """The reports that are being made for a channel."""
        live = await self._engine.runs(tenant=tenant, workflow=self._reports.report.id, states=LIVE, limit=1000)
        return [run for run in live if (run.key or "").startswith(f"{channel}:")]

    async def stop(self, run: RunRow) -> None:
        """Make a report no further; where it was promised, that is said."""
        await self._engine.cancel(run.run_id, tenant=run.tenant)

    async def schedule(self, when: str, *, tenant: str, channel: str, asker: Person) -> Schedule:
        """Post a summary to a channel again and again, in the asker's time zone. Raises InputError for times it can't read."""
        spec = cron_of(when)
        request = ReportRequest(channel=channel, asker=asker, period="last week", title=SUMMARY_TITLE)
        return await self._engine.schedule(
            schedule_name(channel), self._reports.summary, request, spec=spec, tz=asker.time_zone, tenant=tenant
        )

    async def scheduled(self, *, tenant: str, channel: str) -> Schedule | None:
        """The channel's summary, if there is one."""
        return await self._engine.store.schedule(tenant=tenant, name=schedule_name(channel))

    async def unschedule(self, *, tenant: str, channel: str) -> bool:
        """End the channel's summaries. False: there were none."""
        return await self._engine.schedules.delete(schedule_name(channel), tenant=tenant)

    def tools(self) -> tuple[Tool, ...]:
        """The model's tools."""
        return (self._make_report(), self._schedule_summary(), self._list_schedules(), self._cancel_schedule())

    def _make_report(self) -> Tool:
        @tool(effect=Effect.IDEMPOTENT, evidence=_report_evidence)
        async def make_report(
            ctx: ToolContext,
            *,
            campaigns: Annotated[list[str] | str, Field(description='Names of campaigns, or "all".')] = "all",
            period: Annotated[str, Field(description='Days in words, such as "last week".')] = "last week",
        ) -> dict[str, Any]:
            """Make a report with table and chart in the background; it is posted in this thread when it is ready."""
            thread = _place(ctx)
            days = _period(period, ctx)
            wanted = campaigns if isinstance(campaigns, str) else tuple(campaigns)
            request = ReportRequest(channel=thread[0], root=thread[1], asker=ctx.asker, campaigns=wanted, period=period)
            await self.order(request, tenant=ctx.tenant, key=ctx.idempotency_key)
            return {
                "status": "started",
                "period": days.label,
                "days": days.dates,
                "detail": "It is posted in this thread.",
            }

        return make_report

    def _schedule_summary(self) -> Tool:
        @tool(effect=Effect.IDEMPOTENT)
        async def schedule_summary(
            ctx: ToolContext,
            *,
            when: Annotated[str, Field(description='Recurring time, such as "every monday 9:00", or cron.')],
        ) -> dict[str, Any]:
            """Post a campaign summary in this channel at a recurring time, in the asker's time zone. Replaces the channel's schedule."""
            try:
                entry = await self.schedule(when, tenant=ctx.tenant, channel=_place(ctx)[0], asker=ctx.asker)
            except InputError as error:
                raise ToolError(str(error)) from None
            return describe(entry)

        return schedule_summary

    def _list_schedules(self) -> Tool:
        @tool(effect=Effect.READ)
        async def list_schedules(ctx: ToolContext) -> list[dict[str, Any]]:
            """List the scheduled summary of this channel."""
            entry = await self.scheduled(tenant=ctx.tenant, channel=_place(ctx)[0])
            return [describe(entry)] if entry else []

        return list_schedules

    def _cancel_schedule(self) -> Tool:
        @tool(effect=Effect.IDEMPOTENT)
        async def cancel_schedule(ctx: ToolContext) -> dict[str, Any]:
            """End the scheduled summaries of this channel."""
            if not await self.unschedule(tenant=ctx.tenant, channel=_place(ctx)[0]):
                raise ToolError("no summary is scheduled in this channel")
            return {"status": "cancelled"}

        return cancel_schedule


async def _report_evidence(ctx: ToolContext, *, campaigns: list[str] | str, period: str) -> Evidence:
    """Asked for only where words from outside are in the conversation. It costs nothing."""
    which = campaigns if isinstance(campaigns, str) else ", ".join(campaigns)
    facts = (("Campaigns", which), ("Period", _period(period, ctx).label), ("Why this asks", WHY_ASKS))
    return Evidence(title="Make a report and post it in this thread", facts=facts, spend_micros=0)


def _period(words: str, ctx: ToolContext) -> Period:
    """The period meant. Raises ToolError for what can't be reported on, before a report is promised."""
    zone = clock_of(ctx.asker.time_zone, "UTC", ctx.now)
    try:
        return parse_period(words, now=ctx.now, time_zone=zone)
    except PeriodError as error:
        raise ToolError(str(error)) from None


def _place(ctx: ToolContext) -> tuple[str, str]:
    if ctx.thread is None:
        raise ToolError("this only works in a conversation")
    return ctx.thread.channel, ctx.thread.root
