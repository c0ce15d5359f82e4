"""What to show: a released model as a page for those who must sign it."""

from confide.report.page import report_page, write_report

__all__ = ["report_page", "write_report"]
