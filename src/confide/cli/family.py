"""`confide family`: several analyses as one family of tests."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from confide.cli import option_values
from confide.cli.options import Format
from confide.errors import ParameterError

ModelFiles = Annotated[list[Path] | None, typer.Argument(metavar="[MODEL.json]...", help="Files of saved models.")]
LedgerOfFamily = Annotated[
    str | None,
    typer.Option("--ledger", metavar="LEDGER.db", help="Every fit that this ledger charged is in the family."),
]
PurposeOfFamily = Annotated[
    str | None, typer.Option("--purpose", metavar="TEXT", help="Only charges whose purpose contains this text.")
]
Columns = Annotated[
    str | None,
    typer.Option(metavar="A,B,...", help="Only coefficients of these columns.  [default: all]"),
]
PValues = Annotated[
    list[str] | None,
    typer.Option(
        "--p-value",
        metavar="NAME=P",
        help="A p-value from elsewhere; with a ledger, NAME is the number of its charge. May be given again.",
    ),
]


def family(
    model_files: ModelFiles = None,
    ledger: LedgerOfFamily = None,
    purpose: PurposeOfFamily = None,
    columns: Columns = None,
    p_value: PValues = None,
    adjust: Annotated[
        Literal["holm", "bonferroni", "fdr_by"], typer.Option(help="How p-values are corrected for the family.")
    ] = "holm",
    level: Annotated[float, typer.Option(metavar="L", help="Level of all intervals together, between 0 and 1.")] = 0.95,
    output_format: Format = "text",
) -> None:
    """Correct the tests of several analyses as one family, with intervals that all hold together.

    The corrections hold however the analyses depend on each other. It costs no privacy. With a ledger, no fit that it
    charged can be left out.
    """
    from confide.cli import output
    from confide.report.families import family as family_of

    given: dict[Any, Any] = dict(option_values.p_value(text, of_charge=ledger is not None) for text in p_value or ())
    for path in model_files or ():
        if path.stem in given:
            raise ParameterError("two analyses have the same name: rename a file, or give the p-value another name.")
        given[path.stem] = path
    tests = family_of(
        given,
        ledger=ledger,
        purpose=purpose,
        columns=None if columns is None else option_values.columns(columns, "--columns"),
        method=adjust,
        level=level,
    )
    if output_format == "json":
        output.print_json(tests.to_dict())
        return
    screen = output.Screen()
    screen.heading(f"A family of {len(tests.hypotheses)} tests, with intervals of {tests.level:g} together")
    screen.table(tests.headings, tests.cells, words=("coefficient", "unit"), wrapped="coefficient", optional=("unit",))
    for note in tests.notes:
        screen.text(note)
