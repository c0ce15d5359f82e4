"""`confide fit`: train a private model from a table on disk, charge its ledger, and write it."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from confide.cli.option_values import Delta, Epsilon, Purpose, Rho, chosen_budget
from confide.cli.options import (
    Force,
    ForceBudget,
    Format,
    ModelOptions,
    ModelOut,
    NoLedger,
    exit_without_guarantee,
    takes_model_options,
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
        show_default=False,
    ),
]
SchemaFile = Annotated[Path, typer.Option(metavar="FILE", help="TOML file that describes columns and target.")]
LedgerToCharge = Annotated[
    str | None, typer.Option(metavar="FILE", help="Ledger to charge, a file or URL; see `confide ledger init`.")
]
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


Finish = Annotated[
    bool,
    typer.Option(
        "--finish",
        help="Finish a release that was charged to the ledger and interrupted before anything was seen, such as by a kill. "
        "Nothing is charged anew. Data, schema and options must be the same.",
    ),
]


@takes_model_options(without=("row_norm",))
def fit(
    data: DataFiles,
    schema: SchemaFile,
    epsilon: Epsilon = None,
    delta: Delta = None,
    rho: Rho = None,
    *,
    options: ModelOptions,
    ledger: LedgerToCharge = None,
    no_ledger: NoLedger = False,
    force_budget: ForceBudget = False,
    purpose: Purpose = None,
    cache: CacheFolder = None,
    out: ModelOut = Path("model.json"),
    report: ReportOut = None,
    force: Force = False,
    finish: Finish = False,
    output_format: Format = "text",
) -> None:
    """Train a private model and write it to a file.

    Rows are read block by block and need not fit into memory. All rows are checked before anything is charged.

    Nothing about the columns is learned from the data: types, bounds, categories and labels come from the schema. Apart
    from the released weights, nothing is shown that depends on the rows.
    """
    from confide.cli import output
    from confide.cli.charges import agree_on_ledger, nothing_wasted
    from confide.cli.fitting import Fitting
    from confide.report.writing import write_report

    asked = Fitting(
        data=data, schema=schema, options=options, budget=chosen_budget(epsilon, delta, rho), out=out, ledger=ledger,
        purpose=purpose, cache=cache, report=report, force=force, finish=finish,
    )  # fmt: skip
    prepared = asked.prepared()
    model, charges = prepared.model, prepared.charges
    charges.is_unasked = agree_on_ledger(ledger, asked.budget, no_ledger=no_ledger)
    screen = output.Screen() if output_format == "text" else None
    with charges.reported_on_failure(), nothing_wasted(force=force_budget):
        plan = prepared.planned()
        if screen:
            prepared.show(plan, screen)
        prepared.release(plan)
        if report is not None:
            write_report(
                model, report, overwrite=force, ledger=charges.ledger, ledger_name=ledger or "", model_name=out.name
            )
        if screen is None:
            output.print_json(_document(prepared, plan) | {"charge": charges.document()})
        else:
            show_release(screen, model, plan, charges, with_intervals=options.intervals is not None)
            if report is not None:
                screen.verbatim(f"Wrote {report}")
            screen.verbatim(f"Wrote {out}; show it with: confide inspect {shlex.quote(str(out))}")
    exit_without_guarantee(model)


def _document(prepared: PreparedFit, plan: AnyPlan) -> dict[str, Any]:
    """The plan with its verdict, and the released model, for programs."""
    from confide.cli import output

    verdict = prepared.judged(plan).to_dict()
    return {
        "model": str(prepared.asked.out),
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
