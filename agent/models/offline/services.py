"""Requests for what other tools make: reports, schedules of summaries. Each says so where the tool is not offered."""

from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

from agent.models.base import ToolSchema
from agent.models.offline.desk import Outcome
from agent.models.offline.markdown import plain, quoted
from agent.models.offline.requests import Schedule, Schedules
from agent.models.offline.scene import Scene

REPORT = "make_report"
SCHEDULE = "schedule_summary"
_LIST = ("list_schedules", "list_summaries", "list_scheduled_summaries")
_CANCEL = ("cancel_schedule", "cancel_summary", "delete_schedule", "unschedule_summary")


def report(scene: Scene, campaigns: list[str] | str, period: str, *, about: str) -> str:
    """Have a report made."""
    outcome = scene.desk.ask(REPORT, {"campaigns": campaigns, "period": period})
    if outcome is None:
        return ""
    if outcome.kind == "done":
        # It may be posted before this is: the words are true either way.
        return f"I am having a report made on {about}, {_days(outcome, period)}; it will be posted in this thread.{_detail(outcome)}"
    return _unfinished(outcome, "make the report")


def _days(outcome: Outcome, period: str) -> str:
    """The period with its exact days, as far as the tool tells them."""
    data = outcome.data if isinstance(outcome.data, dict) else {}
    label, days = str(data.get("period") or ""), str(data.get("days") or "")
    return plain(f"{label} ({days})" if label and days and label != days else days or period)


def schedule(scene: Scene, request: Schedule) -> str:
    """Have a summary posted again and again."""
    if not scene.desk.has(SCHEDULE):
        return "I can't schedule summaries here."
    if request.when is None:
        return "When shall I post the summary? Say for example: every Monday at 9:00."
    outcome = scene.desk.ask(SCHEDULE, {"when": request.when})
    if outcome is None:
        return ""
    if outcome.kind == "done":
        return f"The summary is scheduled: {plain(request.when)}.{_detail(outcome)}"
    return _unfinished(outcome, f"schedule {quoted(request.when)}")


def schedules(scene: Scene, request: Schedules, tools: tuple[ToolSchema, ...]) -> str:
    """What is scheduled, or the end of it."""
    offered = {tool.name: tool for tool in tools}
    name = next((each for each in (_CANCEL if request.cancel else _LIST) if each in offered), None)
    if name is None:
        return f"I can't {'cancel' if request.cancel else 'list'} schedules here."
    outcome = scene.desk.ask(name, _arguments(offered[name], request.which))
    if outcome is None:
        return ""
    if outcome.kind != "done":
        return _unfinished(outcome, "cancel the summary" if request.cancel else "list the schedules")
    if request.cancel:
        return f"The summary is cancelled.{_detail(outcome)}"
    return _listed(outcome.data)


def _arguments(tool: ToolSchema, which: str) -> dict[str, Any]:
    """The words about which schedule, under the only name the tool requires."""
    required = tool.parameters.get("required") or []
    return {required[0]: which or "all"} if required else {}


def _listed(data: Any) -> str:
    rows = next((v for v in data.values() if isinstance(v, list)), []) if isinstance(data, dict) else data
    if not isinstance(rows, list) or not rows:
        return "Nothing is scheduled."
    return "\n".join(["Scheduled:", "", *(f"* {plain(_row(row))}" for row in rows)])


def _row(row: Any) -> str:
    """A schedule in words; one of a shape that is not known, as it is."""
    if not isinstance(row, dict):
        return str(row)
    try:
        at = datetime.fromisoformat(str(row["next_at"])).astimezone(ZoneInfo(str(row["time_zone"])))
    except (KeyError, ValueError, OSError):
        return ", ".join(str(value) for value in row.values() if value is not None)
    return f"{row.get('when', '')} ({row['time_zone']}), next on {at.day} {at:%B %Y} at {at:%H:%M}"


def _detail(outcome: Outcome) -> str:
    """What the tool itself says about it, if it says it in words."""
    data = outcome.data if isinstance(outcome.data, dict) else {}
    said = [
        str(data[key]).strip().rstrip(".")
        for key in ("message", "summary", "explanation")
        if isinstance(data.get(key), str)
    ]
    if isinstance(data.get("next"), str):
        said.append(f"Next: {data['next']}")
    return "".join(f" {plain(each)}." for each in said)


def _unfinished(outcome: Outcome, what: str) -> str:
    if outcome.kind == "waiting":
        return f"I asked for approval: **{plain(outcome.text or what)}**. Nothing has been done yet."
    if outcome.kind == "interrupted":
        return f"I began to {what} and was interrupted; whether it happened is unknown."
    return f"I could not {what}: {plain(outcome.text)}"
