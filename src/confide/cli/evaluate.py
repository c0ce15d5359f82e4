"""`confide evaluate`: how good a model is on rows that it has not seen, from one noisy histogram."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from confide.cli.budgets import Delta, Epsilon, Purpose, Rho, chosen_budget
from confide.cli.failures import NO_GUARANTEE
from confide.cli.fit import DataFiles, LedgerToCharge
from confide.cli.option_names import in_words_of_options
from confide.cli.options import Force, Format, ModelFile, RowsPerPerson, Seed
from confide.errors import FileError, ParameterError

if TYPE_CHECKING:
    from confide.cli.charges import Charges
    from confide.cli.display import Screen
    from confide.inference.rates import Evaluation, Rate

_BAR_WIDTH = 20


def evaluate(
    model_file: ModelFile,
    data: DataFiles,
    epsilon: Epsilon = None,
    delta: Delta = None,
    rho: Rho = None,
    ledger: LedgerToCharge = None,
    purpose: Purpose = None,
    bins: Annotated[int, typer.Option(metavar="N", help="Number of bins of the probability, even.")] = 20,
    level: Annotated[float, typer.Option(metavar="L", help="Level of the intervals, between 0 and 1.")] = 0.95,
    neighbours: Annotated[
        Literal["replace-one", "add-or-remove-one"],
        typer.Option(help="Which data sets count as neighbours. add-or-remove-one keeps the number of rows private."),
    ] = "replace-one",
    max_rows_per_person: RowsPerPerson = 1,
    seed: Seed = None,
    out: Annotated[
        Path | None, typer.Option(metavar="FILE.json", help="Also write the evaluation to this file.", show_default=False)
    ] = None,
    force: Force = False,
    output_format: Format = "text",
) -> None:
    """Estimate how good a model of two classes is on rows that it did not learn from. Releases noisy rates and charges them.

    The rows need the columns of the model's schema, with its target. If they are rows of other people than those of the fit,
    they have a budget of their own, and so a ledger of their own.
    """
    from confide.cli import display, tables
    from confide.cli.charges import Charges
    from confide.data.on_disk import files_of
    from confide.estimators.evaluation import evaluate as evaluated
    from confide.estimators.evaluation import expected_of, plan_of_evaluation
    from confide.files import sha256_of, write_text
    from confide.intake.opening import open_rows
    from confide.report.ledger_facts import same_rows_note

    budget, files = chosen_budget(epsilon, delta, rho), files_of(data)
    if out is not None:
        tables.check_path(out, (model_file, *files), (".json",), overwrite=force)
    model = _classifier(model_file)
    charges = Charges(ledger, purpose=purpose, model_file=model_file, rows=max_rows_per_person)
    if charges.ledger and (note := same_rows_note(charges.ledger, model.guarantee_, sha256_of(model_file))):
        print(f"note: {note}", file=sys.stderr)
    opened = open_rows(files, model.schema)
    counts = plan_of_evaluation(budget, n_bins=bins, neighbours=neighbours, max_rows_per_person=max_rows_per_person)
    if output_format == "text":
        display.Screen().text(expected_of(counts, opened, level))
    with charges.reported_on_failure("evaluation"), display.working("evaluating"):
        found = evaluated(
            model,
            opened,
            budget=budget,
            ledger=charges.ledger,
            n_bins=bins,
            level=level,
            neighbours=neighbours,
            max_rows_per_person=max_rows_per_person,
            random_state=seed,
        )
    document = {"model": str(model_file), **found.to_dict()}
    document |= _shown(found, document, charges, output_format)
    if out is not None:
        write_text(out, json.dumps(document, indent=2, allow_nan=False) + "\n", overwrite=force)
    _exit_if_void(found)


def _exit_if_void(found: Evaluation) -> None:
    if found.void is not None:
        raise typer.Exit(NO_GUARANTEE)


def _shown(found: Evaluation, document: dict[str, Any], charges: Charges, output_format: str) -> dict[str, Any]:
    """Show the evaluation and what it charged; give what it charged. It is paid for, and a full disk must not lose it."""
    from confide.cli import display

    with charges.reported_on_failure("evaluation", place="above"):
        if output_format == "json":
            return _printed(document, charges)
        show_rates(display.Screen(), found)
        display.Screen().text(charges.closing_sentence())
        return {"charge": charges.document()}


def _printed(document: dict[str, Any], charges: Charges) -> dict[str, Any]:
    """Print the evaluation and what it charged, for programs. If the ledger cannot be read again, the evaluation alone."""
    from confide.cli import display

    paid: dict[str, Any] = {}
    try:
        paid = {"charge": charges.document()}
    finally:
        display.print_json(document | paid)
    return paid


def _classifier(path: Path) -> Any:
    """The model of a file, which must be a classifier with a schema."""
    from confide.saved_models.loading import load

    model = load(path)
    if model.schema is None or model.schema.target is None:
        raise FileError(f"{path} was trained without a schema, which says what the columns mean; evaluate it in Python.")
    if not hasattr(model, "classes_"):
        raise ParameterError(f"{path} predicts numbers, and an evaluation is for models of two classes.")
    return model


def show_rates(screen: Screen, found: Evaluation) -> None:
    """The rates and their guarantee."""
    rows = "private rows" if found.n_rows is None else f"{found.n_rows:,} private rows"
    screen.heading(f"Rates on {rows}, with intervals at {found.level:g}")
    names = ("accuracy", "sensitivity", "specificity", "auc")
    screen.table(("rate", "value", "low", "high"), [(name, *_cells(getattr(found, name))) for name in names])
    screen.text(
        f"Positive is {found.outcome}. Sensitivity is the share of positive rows that are predicted so, specificity that of "
        f"negative rows."
    )
    screen.heading("Shares of all rows, by class and prediction")
    confusion = [
        (f"{true}, predicted {predicted}", *_cells(found.confusion[i][j]))
        for i, true in enumerate(("negative", "positive"))
        for j, predicted in enumerate(("negative", "positive"))
    ]
    screen.table(("rows", "value", "low", "high"), confusion)
    if found.has_probabilities:
        screen.heading("Calibration: of rows with such a probability, the share that is positive")
        screen.table(("probability", "share", "low", "high", ""), _calibration(found), words=("",), optional=("",))
    screen.heading("Guarantee")
    screen.text(in_words_of_options(str(found).rpartition("\n")[2]), style="bold red" if found.void else "")
    screen.text(f"It is made of {2 * found.n_bins} counts with noise of standard deviation {found.plan.deviation:.4g}.")


def _calibration(found: Evaluation) -> list[tuple[str, ...]]:
    edges = [position / found.n_bins for position in range(found.n_bins + 1)]
    return [
        (f"{low:.4g} to {high:.4g}", *_cells(rate), "" if rate.value is None else "#" * round(_BAR_WIDTH * rate.value))
        for low, high, rate in zip(edges, edges[1:], found.calibration, strict=False)
    ]


def _cells(rate: Rate) -> tuple[str, str, str]:
    if rate.value is None:
        return "hidden", "", ""
    return f"{rate.value:.4f}", f"{rate.low:.4f}", f"{rate.high:.4f}"
