"""`confide report`: a model file as a page of HTML."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from confide.cli.options import Force, ModelFile
from confide.cli.outputs import check_report_out


def report(
    model_file: ModelFile,
    out: Annotated[Path, typer.Option(metavar="FILE.html", help="File to write the page to.")] = Path("report.html"),
    level: Annotated[float, typer.Option(metavar="L", help="Level of the intervals, between 0 and 1.")] = 0.95,
    force: Force = False,
) -> None:
    """Write a page of HTML about a model, for the people who must approve its release.

    The page holds the guarantee, the coefficients (with intervals if a share of the budget paid for them), and what the
    schema says about the columns. All of it comes from the model file.
    """
    from confide.cli import display
    from confide.report.page import write_report
    from confide.saved_models.loading import load

    check_report_out(out, (model_file,), force=force)
    write_report(load(model_file), out, level=level, overwrite=force)
    display.Screen().verbatim(f"Wrote {out}")
