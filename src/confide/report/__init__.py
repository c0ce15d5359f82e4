"""Reports: a released model as a page for those who approve its release."""

from typing import TYPE_CHECKING

from confide.first_use import public_names

if TYPE_CHECKING:
    from confide.report.page import plan_page as plan_page
    from confide.report.page import report_page as report_page
    from confide.report.writing import write_report as write_report

# A command that asks for one fact of a ledger or of a model does not load pages and pictures.
__all__, __getattr__, __dir__ = public_names(__name__, __file__)
