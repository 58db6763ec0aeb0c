"""Reports and summaries: gathered from the ad platform, told by code, posted once."""

from agent.reports.desk import ReportDesk
from agent.reports.document import Bars, Document, Grid, Number
from agent.reports.notices import LostPlace
from agent.reports.recurrence import cron_of
from agent.reports.request import ReportRequest
from agent.reports.workflows import Reports, make_reports

__all__ = [
    "Bars",
    "Document",
    "Grid",
    "LostPlace",
    "Number",
    "ReportDesk",
    "ReportRequest",
    "Reports",
    "cron_of",
    "make_reports",
]
