"""`confide evaluate`: how good a model is on rows that it has not seen, from one release of noisy counts."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from confide.cli.fit import DataFiles
from confide.cli.option_values import in_words_of_options
from confide.cli.options import (
    Force,
    Format,
    ModelFile,
    NeighboursName,
    RowsPerPerson,
    Seed,
    Spending,
    exit_if_void,
    takes_spending,
)
from confide.errors import FileError

if TYPE_CHECKING:
    from confide.cli.charges import Charges
    from confide.cli.output import Screen
    from confide.evaluations.result import TablesEvaluation
    from confide.inference.rates import Evaluation, Rate

_BAR_WIDTH = 20
_BINS = (
    "Number of bins: of the probability for two classes, even; otherwise of calibration, 0 for none.  [default: 20 or 10]"
)
_GROUPS = "Also give the rates of each level of this column; NAME=LEVEL,LEVEL if the model does not use the column."
_OTHER = "Compare with this model on the same rows: differences of rates."
_CLIP = "The largest log loss, or error in the unit of the target, that a row counts with. Smaller means less noise."
_ALLOW_HIDDEN = "Charge even if there are so few rows that the noise will hide every rate."


@takes_spending(without=("force_budget",))
def evaluate(
    model_file: ModelFile,
    data: DataFiles,
    *,
    spending: Spending,
    bins: Annotated[int | None, typer.Option(metavar="N", help=_BINS)] = None,
    groups: Annotated[str | None, typer.Option(metavar="NAME", help=_GROUPS)] = None,
    other: Annotated[Path | None, typer.Option(metavar="MODEL.json", help=_OTHER)] = None,
    clip: Annotated[float | None, typer.Option(metavar="C", help=_CLIP)] = None,
    level: Annotated[float, typer.Option(metavar="L", help="Level of the intervals, between 0 and 1.")] = 0.95,
    neighbours: NeighboursName = "replace-one",
    max_rows_per_person: RowsPerPerson = 1,
    allow_hidden: Annotated[bool, typer.Option("--allow-hidden", help=_ALLOW_HIDDEN)] = False,
    seed: Seed = None,
    out: Annotated[Path | None, typer.Option(metavar="FILE.json", help="Also write the evaluation to this file.")] = None,
    force: Force = False,
    output_format: Format = "text",
) -> None:
    """Estimate how good a model is on rows that it did not learn from. Releases noisy rates or errors and charges them.

    The rows need the columns of the model's schema, with its target. If they are rows of other people than those of the fit,
    they have a budget of their own, and so a ledger of their own.
    """
    from confide.cli import output
    from confide.cli.charges import agree_on_ledger
    from confide.data.files import files_of
    from confide.estimators import evaluation
    from confide.estimators.evaluation import group_column, planned_evaluation
    from confide.files import write_text
    from confide.intake.rows import open_rows
    from confide.privacy.budgets import Neighbours

    budget, files = spending.budget, files_of(data)
    if out is not None:
        output.check_path(out, (model_file, *files, *([] if other is None else [other])), (".json",), overwrite=force)
    model = _model(model_file)
    asked: dict[str, Any] = {"n_bins": bins, "groups": group_column(groups), "clip": clip, "other": other and _model(other)}
    charges = spending.charges(model_file, max_rows_per_person)
    _note_same_rows(charges, model, model_file)
    whom: dict[str, Any] = {"neighbours": Neighbours.parse(neighbours), "rows_per_person": max_rows_per_person}
    planned = planned_evaluation(model, budget, **asked, **whom)
    opened = open_rows(files, planned.schema)
    charges.is_unasked = agree_on_ledger(spending.ledger, budget, no_ledger=spending.no_ledger)
    if output_format == "text":
        output.Screen().text(evaluation.expected_of_planned(planned, opened, level))
    with charges.reported_on_failure("evaluation"), output.working("evaluating"):
        result = evaluation.evaluate(
            model, opened, budget=budget, ledger=charges.ledger, level=level, neighbours=neighbours,
            max_rows_per_person=max_rows_per_person, allow_hidden=allow_hidden, random_state=seed, **asked,
        )  # fmt: skip
    document = {"model": str(model_file), **({} if other is None else {"other": str(other)}), **result.to_dict()}
    document |= _shown(result, document, charges, output_format)
    if out is not None:
        write_text(out, json.dumps(document, indent=2, allow_nan=False) + "\n", overwrite=force)
    exit_if_void(result.void)


def _note_same_rows(charges: Charges, model: Any, model_file: Path) -> None:
    """Say so if the ledger is that of the model's own fit."""
    from confide.files import sha256_of
    from confide.report.ledger_facts import same_rows_note

    if charges.ledger and (note := same_rows_note(charges.ledger, model.guarantee_, sha256_of(model_file))):
        print(f"note: {note}", file=sys.stderr)


def _shown(result: Evaluation, document: dict[str, Any], charges: Charges, output_format: str) -> dict[str, Any]:
    """Show the evaluation and what it charged; give what it charged. It is paid for, and a full disk must not lose it."""
    from confide.cli import output

    with charges.reported_on_failure("evaluation", place="above"):
        if output_format == "json":
            return _printed(document, charges)
        show_rates(output.Screen(), result)
        output.Screen().text(charges.closing_sentence())
        return {"charge": charges.document()}


def _printed(document: dict[str, Any], charges: Charges) -> dict[str, Any]:
    """Print the evaluation and what it charged, for programs. If the ledger cannot be read again, the evaluation alone."""
    from confide.cli import output

    paid: dict[str, Any] = {}
    try:
        paid = {"charge": charges.document()}
    finally:
        output.print_json(document | paid)
    return paid


def _model(path: Path) -> Any:
    """The model of a file, which must have a schema."""
    from confide.estimators.loading import load

    model = load(path)
    if model.schema is None or model.schema.target is None:
        raise FileError(f"{path} was trained without a schema, which says what the columns mean; evaluate it in Python.")
    return model


def show_rates(screen: Screen, result: Any) -> None:
    """The rates and their guarantee."""
    if not hasattr(result, "auc"):
        _show_tables(screen, result)
        return
    rows = "private rows" if result.n_rows is None else f"{result.n_rows:,} private rows"
    screen.heading(f"Rates on {rows}, with intervals at {result.level:g}")
    names = ("accuracy", "sensitivity", "specificity", "auc")
    screen.table(("rate", "value", "low", "high"), [(name, *_cells(getattr(result, name))) for name in names])
    screen.text(
        f"Positive is {result.outcome}. Sensitivity is the share of positive rows that are predicted so, specificity that "
        f"of negative rows."
    )
    screen.heading("Shares of all rows, by class and prediction")
    confusion = [
        (f"{true}, predicted {predicted}", *_cells(result.confusion[i][j]))
        for i, true in enumerate(("negative", "positive"))
        for j, predicted in enumerate(("negative", "positive"))
    ]
    screen.table(("rows", "value", "low", "high"), confusion)
    if result.has_probabilities:
        screen.heading("Calibration: of rows with such a probability, the share that is positive")
        screen.table(("probability", "share", "low", "high", ""), _calibration(result), words=("",), optional=("",))
    screen.heading("Guarantee")
    promise = " ".join(str(result).split("\n")[-1 - len(result.interrupted) :])
    screen.text(in_words_of_options(promise), style="bold red" if result.void else "")
    screen.text(f"It is made of {2 * result.n_bins} counts with noise of standard deviation {result.plan.deviation:.4g}.")


def _show_tables(screen: Screen, result: TablesEvaluation) -> None:
    for table in result.shown_tables():
        screen.heading(table.title)
        screen.table(table.columns, table.rows)
    screen.heading("Guarantee")
    screen.text(in_words_of_options(result.guarantee_in_words()), style="bold red" if result.void else "")
    screen.text(result.noise_in_words())


def _calibration(result: Evaluation) -> list[tuple[str, ...]]:
    edges = [position / result.n_bins for position in range(result.n_bins + 1)]
    return [
        (f"{low:.4g} to {high:.4g}", *_cells(rate), "" if rate.value is None else "#" * round(_BAR_WIDTH * rate.value))
        for low, high, rate in zip(edges, edges[1:], result.calibration, strict=False)
    ]


def _cells(rate: Rate) -> tuple[str, str, str]:
    return rate.texts(4) if rate.value is not None else ("hidden", "", "")
