"""`confide evaluate`: how good a model is on rows that it has not seen, from one release of noisy counts."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

from confide.blocks import Block, heading, table, text, verbatim
from confide.cli.option_values import in_words_of_options
from confide.cli.options import Release, exit_if_void, options_of_command
from confide.errors import FileError

if TYPE_CHECKING:
    from confide.cli.charges import Charges
    from confide.cli.output import Screen

_BAR_WIDTH = 20


@options_of_command("evaluate", without=("force_budget",))
def evaluate(
    model_file: Path,
    data: str,
    *,
    release: Release,
    bins: int | None = None,
    groups: str | None = None,
    other: Path | None = None,
    clip: float | None = None,
    level: float = 0.95,
    allow_hidden: bool = False,
    out: Path | None = None,
) -> None:
    """Estimate how good a model is on rows that it did not learn from. Releases noisy rates or errors and charges them.

    The rows need the columns of the model's schema, with its target. If they are rows of other people than those of the fit,
    they have a budget of their own, and so a ledger of their own.
    """
    from confide.cli import output
    from confide.cli.charges import agree_on_ledger
    from confide.data.sources import files_of
    from confide.estimators import evaluation
    from confide.estimators.evaluation import group_column, planned_evaluation
    from confide.files import sha256_of
    from confide.intake.rows import open_rows
    from confide.privacy.budgets import Neighbours
    from confide.report.ledger_facts import same_rows_note

    budget, model, force = release.budget, _model(model_file), release.force
    files = files_of(data, model.schema)
    if out is not None:
        output.check_path(out, (model_file, *files, *([] if other is None else [other])), (".json",), overwrite=force)
    asked: dict[str, Any] = {"n_bins": bins, "groups": group_column(groups), "clip": clip, "other": other and _model(other)}
    charges, screen = release.charges(model_file, release.max_rows_per_person), output.Screen(release.output_format)
    if charges.ledger and (note := same_rows_note(charges.ledger, model.guarantee_, sha256_of(model_file))):
        print(f"note: {note}", file=sys.stderr)
    neighbours = Neighbours.parse(release.neighbours)
    planned = planned_evaluation(model, budget, **asked, neighbours=neighbours, rows_per_person=release.max_rows_per_person)
    opened = open_rows(files, planned.schema)
    charges.is_unasked = agree_on_ledger(release.ledger, budget, no_ledger=release.no_ledger)
    screen.show([text(evaluation.expected_of_planned(planned, opened, level))])
    with charges.reported_on_failure("evaluation"):
        with output.working("evaluating"):
            result = evaluation.evaluate(
                model, opened, budget=budget, ledger=charges.ledger, level=level, allow_hidden=allow_hidden, **release.whom,
                **asked,
            )  # fmt: skip
        document = {"model": str(model_file), **({} if other is None else {"other": str(other)}), **result.to_dict()}
        _kept(document, result, charges, screen, out, force=force)
    exit_if_void(result.void)


def _kept(document: dict[str, Any], result: Any, charges: Charges, screen: Screen, out: Path | None, *, force: bool) -> None:
    """Write what was released to the file, if there is one, and show it.

    It is paid for: a full disk must not lose it, nor a ledger that cannot be read again.
    """
    from confide.files import json_text, write_text

    paid: dict[str, Any] = {}
    try:
        paid = {"charge": charges.document()}
    finally:
        written = json_text(document | paid)
        with charges.rescued_on_failure(written, out or Path("evaluation.json"), "evaluation"):
            if out is None:
                screen.answer(lambda: document | paid, blocks_of_rates(result))
            else:
                write_text(out, written, overwrite=force)
        charges.kept("above" if out is None else f"in {out}")
        if out is not None:
            screen.answer(lambda: document | paid, blocks_of_rates(result))
    screen.show([text(charges.closing_sentence()), verbatim(*[] if out is None else [f"Wrote {out}"])])


def _model(path: Path) -> Any:
    """The model of a file, which must have a schema."""
    from confide.estimators.loading import load_linear

    model = load_linear(path)
    if model.schema is None or model.schema.target is None:
        raise FileError(f"{path} was trained without a schema, which says what the columns mean; evaluate it in Python.")
    return model


def blocks_of_rates(result: Any) -> Iterator[Block]:
    """The rates and their guarantee, of two classes also those of which the rates are made."""
    *rates, guarantee = result.blocks()
    yield from rates
    if hasattr(result, "auc"):
        yield from _cells_of_two_classes(result)
    yield heading("Guarantee")
    yield text(*map(in_words_of_options, guarantee.lines), style="bold red" if result.void else "")


def _cells_of_two_classes(result: Any) -> Iterator[Block]:
    from confide.inference.rates import digits_of

    yield heading("Shares of all rows, by class and prediction")
    names = ("negative", "positive")
    cells = [(f"{names[i]}, predicted {names[j]}", *digits_of(result.confusion[i][j])) for i in (0, 1) for j in (0, 1)]
    yield table(("rows", "value", "low", "high"), cells)
    if result.has_probabilities:
        yield heading("Calibration: of rows with such a probability, the share that is positive")
        bins = [
            (f"{low:.4g} to {high:.4g}", *digits_of(rate), "#" * round(_BAR_WIDTH * (rate.value or 0.0)))
            for (low, high), rate in zip(pairwise(result.edges), result.calibration, strict=True)
        ]
        yield table(("probability", "share", "low", "high", ""), bins, words=("",), optional=("",))
