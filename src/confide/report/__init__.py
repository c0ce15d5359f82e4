"""Reports: a released model as a page for those who approve its release."""

from confide.report.page import report_page
from confide.report.writing import write_report

__all__ = ["report_page", "write_report"]
