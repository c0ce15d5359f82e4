"""`confide fit`: train a private model from a table on disk, charge its ledger, and write it."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from confide.cli.budgets import Delta, Epsilon, Rho, chosen_budget
from confide.cli.options import (
    Alpha,
    Centre,
    Force,
    Format,
    Interactions,
    Intervals,
    KernelName,
    Knots,
    LengthScale,
    LossName,
    MechanismName,
    ModelName,
    ModelOptions,
    ModelOut,
    NeighboursName,
    PriorFile,
    PublicPriorFile,
    RandomFeatures,
    RowsBounds,
    RowsPerPerson,
)
from confide.cli.outputs import check_model_out, check_report_out, exit_without_guarantee
from confide.errors import ParameterError

if TYPE_CHECKING:
    from confide.cli.charges import Charges
    from confide.cli.display import Screen
    from confide.estimators.linear_model import PrivateLinearModel
    from confide.features.schema import Schema
    from confide.training.plan import AnyPlan

_MAX_WEIGHTS_SHOWN = 10
_LEDGER_FILE_ENDINGS = ("", "-wal", "-shm", "-journal")
"""Endings of the files that SQLite keeps for one ledger."""

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


def fit(
    data: DataFiles,
    schema: SchemaFile,
    epsilon: Epsilon = None,
    delta: Delta = None,
    rho: Rho = None,
    kind: ModelName = "additive",
    loss: LossName = None,
    knots: Knots = None,
    interactions: Interactions = None,
    kernel: KernelName = None,
    length_scale: LengthScale = None,
    n_features: RandomFeatures = None,
    alpha: Alpha = "auto",
    mechanism: MechanismName = "auto",
    centre: Centre = True,
    neighbours: NeighboursName = "replace-one",
    n_rows_bounds: RowsBounds = None,
    max_rows_per_person: RowsPerPerson = 1,
    intervals: Intervals = None,
    prior: PriorFile = None,
    public_prior: PublicPriorFile = None,
    ledger: LedgerToCharge = None,
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
    from confide.cli import display
    from confide.cli.charges import Charges
    from confide.data.on_disk import files_of
    from confide.report.writing import write_report

    options = ModelOptions(
        kind=kind, loss=loss, knots=knots, interactions=interactions, kernel=kernel, length_scale=length_scale,
        n_features=n_features, alpha=alpha, mechanism=mechanism, centre=centre, neighbours=neighbours,
        n_rows_bounds=n_rows_bounds, max_rows_per_person=max_rows_per_person, intervals=intervals, prior=prior,
        public_prior=public_prior,
    )  # fmt: skip
    budget = chosen_budget(epsilon, delta, rho)
    files = files_of(data)
    priors = [path for path in (prior, public_prior) if path is not None]
    _check_outputs(out, report, [*files, schema, *priors, *_files_of_ledger(ledger)], force=force)
    columns, charges = _schema_with_target(schema), Charges(ledger)
    model = options.estimator(budget, columns, charges.ledger)
    screen = display.Screen() if output_format == "text" else None
    with charges.reported_on_failure():
        plan = _train(model, data, files, cache, screen)
        charges.write_model(model, out, overwrite=force)
        if report is not None:
            write_report(model, report, overwrite=force)
        if screen is None:
            display.print_json(_document(model, plan, out) | {"charge": charges.document()})
        else:
            _show_release(screen, model, charges, out, report, with_intervals=intervals is not None)
    exit_without_guarantee(model)


def _check_outputs(out: Path, report: Path | None, inputs: list[Path], *, force: bool) -> None:
    check_model_out(out, inputs, force=force)
    if report is not None:
        check_report_out(report, [*inputs, out], force=force)


def _files_of_ledger(ledger: str | None) -> list[Path]:
    return [] if ledger is None else [Path(ledger + ending) for ending in _LEDGER_FILE_ENDINGS]


def _schema_with_target(path: Path) -> Schema:
    from confide.features.schema import Schema

    schema = Schema.from_toml(path)
    if schema.target is None:
        raise ParameterError(
            f'{path} names no target; add a line such as target = {{ column = "income", negative = "no", positive = '
            f'"yes" }} for labels, or target = {{ column = "price", low = 0, high = 20000 }} for numbers, above its columns.'
        )
    return schema


def _train(model: PrivateLinearModel, data: str, files: Any, cache: Path | None, screen: Screen | None) -> AnyPlan:
    """Show the plan, then charge it and train on the rows of the files."""
    from confide.cli import display
    from confide.cli.curves import chosen_schema
    from confide.cli.kernels import chosen_map
    from confide.intake.opening import open_rows

    with display.working(f"counting the rows of {data}"):
        rows: Any = open_rows(files, model.schema)
        n_rows = rows.count()
    is_number_private = model.n_rows_bounds is not None
    public_rows = None if is_number_private else n_rows
    chosen = chosen_schema(model, public_rows)
    if chosen is not None:
        # Nothing is left to be chosen, so the fit need not count the rows again.
        model.set_params(schema=chosen, interactions=())
    kernel = chosen_map(model, public_rows)
    if kernel is not None:
        model.set_params(n_features=kernel.n_features)
    plan: AnyPlan = model.plan(public_rows)
    if screen:
        screen.plan(plan)
        screen.curves(chosen)
        screen.kernel(kernel)
    # A bar that shows which part of the rows was read would reveal their number.
    with display.row_progress(public_rows) as progress:
        model.fit(open_rows(files, model.schema, cache=False if cache is None else cache, progress=progress))
    return plan


def _document(model: PrivateLinearModel, plan: AnyPlan, out: Path) -> dict[str, Any]:
    """The plan and the released model, for programs."""
    from confide.cli import display

    return {"model": str(out), "plan": plan.to_dict(), **display.model_document(model)}


def _show_release(
    screen: Screen, model: PrivateLinearModel, charges: Charges, out: Path, report: Path | None, *, with_intervals: bool
) -> None:
    screen.guarantee(model.guarantee_)
    if with_intervals:
        screen.coefficients(model)
    else:
        screen.weights(model, _MAX_WEIGHTS_SHOWN)
    screen.heading("Done")
    screen.text(charges.closing_sentence())
    if report is not None:
        screen.verbatim(f"Wrote {report}")
    screen.verbatim(f"Wrote {out}; show it with: confide inspect {shlex.quote(str(out))}")
