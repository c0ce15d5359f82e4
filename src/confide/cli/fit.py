"""`confide fit`: train a private model from a table on disk, charge its ledger, and write it."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from confide.cli.options import (
    Force,
    Format,
    ModelOptions,
    ModelOut,
    Spending,
    exit_if_void,
    takes_model_options,
    takes_spending,
)

if TYPE_CHECKING:
    from confide.cli.charges import Charges
    from confide.cli.fitting import PreparedFit
    from confide.cli.output import Screen
    from confide.estimators.linear_model import PrivateLinearModel
    from confide.training.plan import AnyPlan

_MAX_WEIGHTS_SHOWN = 10

DataFiles = Annotated[
    str,
    typer.Argument(
        metavar="DATA",
        help="CSV, Parquet or Feather file, or a quoted pattern such as 'data/*.parquet'.",
    ),
]
SchemaFile = Annotated[Path, typer.Option(metavar="FILE", help="TOML file that describes columns and target.")]
CacheFolder = Annotated[
    Path | None,
    typer.Option(
        metavar="FOLDER", help="Keep encoded rows in this folder during the command: faster, but private data on disk."
    ),
]
ReportOut = Annotated[
    Path | None,
    typer.Option(metavar="FILE.html", help="Also write a page with guarantee, coefficients and columns to this file."),
]


@takes_spending()
@takes_model_options(without=("row_norm",))
def fit(
    data: DataFiles,
    schema: SchemaFile,
    *,
    spending: Spending,
    options: ModelOptions,
    cache: CacheFolder = None,
    out: ModelOut = Path("model.json"),
    report: ReportOut = None,
    force: Force = False,
    output_format: Format = "text",
) -> None:
    """Train a private model and write it to a file.

    Rows are read block by block and need not fit into memory. All rows are checked before anything is charged.

    Nothing about the columns is learned from the data: types, bounds, categories and labels come from the schema. Apart
    from the released weights, nothing is shown that depends on the rows.
    """
    from confide.cli import output
    from confide.cli.fitting import prepared_fit
    from confide.report.writing import write_report

    prepared = prepared_fit(
        data=data, schema=schema, options=options, spending=spending, out=out, cache=cache, report=report, force=force
    )
    model, charges = prepared.model, prepared.charges
    screen = output.Screen() if output_format == "text" else None
    with spending.charged(charges):
        plan = prepared.planned()
        if screen:
            prepared.show(plan, screen)
        prepared.release(plan)
        if report is not None:
            write_report(
                model, report, overwrite=force, ledger=charges.ledger, ledger_name=spending.ledger or "", model_name=out.name
            )
        if screen is None:
            output.print_json(_document(prepared, plan) | {"charge": charges.document()})
        else:
            show_release(screen, model, plan, charges, with_intervals=options.intervals is not None)
            if report is not None:
                screen.verbatim(f"Wrote {report}")
            screen.verbatim(f"Wrote {out}; show it with: confide inspect {shlex.quote(str(out))}")
    exit_if_void(model.guarantee_.void)


def _document(prepared: PreparedFit, plan: AnyPlan) -> dict[str, Any]:
    """The plan with its verdict, and the released model, for programs."""
    from confide.cli import output

    verdict = prepared.judged(plan).to_dict()
    return {
        "model": str(prepared.out),
        "plan": plan.to_dict(),
        "verdict": verdict,
        **output.model_document(prepared.model),
    }


def show_release(
    screen: Screen, model: PrivateLinearModel, plan: AnyPlan, charges: Charges, *, with_intervals: bool
) -> None:
    """What was released, its guarantee, and where the budget went."""
    from confide.planning.advice import budget_sentence

    show_model(screen, model, with_intervals=with_intervals)
    screen.heading("Done")
    screen.text(f"{charges.closing_sentence()} {budget_sentence(plan)}")


def show_model(screen: Screen, model: PrivateLinearModel, *, with_intervals: bool) -> None:
    """The guarantee of a model, and its coefficients or largest weights."""
    from confide.report.findings import has_interest, has_intervals

    screen.guarantee(model.guarantee_)
    if with_intervals and has_intervals(model):
        screen.coefficients(model)
        return
    screen.weights(model, _MAX_WEIGHTS_SHOWN)
    if has_interest(model):
        screen.coefficients(model)
