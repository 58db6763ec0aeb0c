"""Reports and summaries: gathered from the ad platform, told by code, posted once."""

from agent.reports.desk import ReportDesk
from agent.reports.document import Bars, Document, Grid, Number
from agent.reports.recurrence import cron_of
from agent.reports.workflows import ReportRequest, Reports, make_reports

__all__ = ["Bars", "Document", "Grid", "Number", "ReportDesk", "ReportRequest", "Reports", "cron_of", "make_reports"]
