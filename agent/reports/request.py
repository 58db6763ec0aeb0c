"""What a report is ordered with."""

from pydantic import BaseModel, ConfigDict

from agent.models.base import Person


class ReportRequest(BaseModel):
    """What to report on and where. `root` empty: to the channel itself. `reply_url`: where to answer if the channel can't be posted to."""

    model_config = ConfigDict(frozen=True)

    channel: str
    root: str = ""
    asker: Person
    campaigns: tuple[str, ...] | str = "all"
    period: str = "last week"
    title: str = "Campaign report"
    reply_url: str | None = None


def schedule_name(channel: str) -> str:
    """The name of a channel's summaries among the tenant's schedules."""
    return f"summary:{channel}"
