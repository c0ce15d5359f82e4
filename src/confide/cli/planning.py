"""`confide plan`: what a fit would cost and yield, before any data."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from confide.cli.budgets import Delta, Epsilon, Rho, chosen_budget
from confide.cli.options import (
    Alpha,
    Format,
    Intervals,
    MechanismName,
    ModelName,
    NeighboursName,
    RandomFeatures,
    RowsBounds,
    RowsPerPerson,
    alpha_of,
    estimator_of,
    inference_share,
    kernel_parameters,
)
from confide.errors import ParameterError

if TYPE_CHECKING:
    from confide.cli.display import Screen
    from confide.estimators.linear import LinearClassifier
    from confide.planning import Forecast
    from confide.privacy.budgets import Budget

_STEPS = (0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0)
"""Of a curve, times the budget."""
_LONGEST_BAR = 40


def plan(
    epsilon: Epsilon = None,
    rows: Annotated[int | None, typer.Option(min=1, metavar="N", help="Number of rows.")] = None,
    features: Annotated[int | None, typer.Option(min=1, metavar="D", help="Number of columns of numbers.")] = None,
    schema: Annotated[Path | None, typer.Option(metavar="FILE", help="TOML file, in place of --features.")] = None,
    delta: Delta = None,
    rho: Rho = None,
    kind: ModelName = "logistic",
    n_features: RandomFeatures = None,
    alpha: Alpha = "auto",
    mechanism: MechanismName = "auto",
    neighbours: NeighboursName = "replace-one",
    n_rows_bounds: RowsBounds = None,
    max_rows_per_person: RowsPerPerson = 1,
    intervals: Intervals = None,
    row_norm: Annotated[
        float | None, typer.Option(metavar="R", help="Rows are clipped to this L2 norm; 1 without a schema.")
    ] = None,
    error: Annotated[
        float | None,
        typer.Option(metavar="SHARE", help="Test error to be expected without privacy, a guess: forecasts the private one."),
    ] = None,
    positive_rate: Annotated[
        float, typer.Option(metavar="SHARE", help="Expected share of one of the two classes, for --error.")
    ] = 0.5,
    curve: Annotated[bool, typer.Option("--curve", help="Accuracy against the budget, for --error.")] = False,
    output_format: Format = "text",
) -> None:
    """Show what a fit would cost and yield. Reads no data and spends nothing."""
    from confide.cli import display
    from confide.features.schema import Schema

    budget = chosen_budget(epsilon, delta, rho)
    if (rows is None) == (n_rows_bounds is None):
        raise ParameterError("give either --rows or, with --neighbours add-or-remove-one, --n-rows-bounds LOW HIGH.")
    if (features is None) == (schema is None):
        raise ParameterError("give either --features or --schema, which tells them.")
    if curve and error is None:
        raise ParameterError("--curve needs --error, the test error to be expected without privacy.")
    extra = kernel_parameters(kind, n_features=n_features) | inference_share(kind, intervals)
    if row_norm is not None and kind == "kernel-svm":
        raise ParameterError("the rows of kernel-svm have norm 1 by themselves; leave --row-norm out.")
    if row_norm is not None:
        extra["row_norm"] = row_norm
    columns = None if schema is None else Schema.from_toml(schema)

    def model_at(budget: Budget) -> LinearClassifier:
        return estimator_of(
            kind,
            budget,
            extra,
            schema=columns,
            alpha=alpha_of(alpha),
            mechanism=mechanism,
            neighbours=neighbours,
            n_rows_bounds=n_rows_bounds,
            max_rows_per_person=max_rows_per_person,
        )

    model = model_at(budget)
    decided = model.plan(rows, features)
    document, screen = decided.to_dict(), display.Screen()
    for_people = output_format == "text"
    if for_people:
        screen.plan(decided)
    if budget.is_private:
        document["beside"] = _beside(model, rows, features, screen if for_people else None)
    if error is not None:
        with display.working("simulating fits"):
            document["forecast"] = _forecasts(
                model_at, budget, rows, features, error, positive_rate, curve, screen if for_people else None
            )
    if not for_people:
        display.print_json(document)


def _beside(model: LinearClassifier, rows: int | None, features: int | None, screen: Screen | None) -> dict[str, Any]:
    """A bound on what the noise costs, other mechanisms, and budgets of other currencies with as much noise."""
    from confide.planning import compare_mechanisms, equivalent_budgets, utility_bound

    bound = utility_bound(model.plan(rows, features))
    others = compare_mechanisms(model, rows, features)
    try:
        budgets = equivalent_budgets(model, rows, features)
    except ParameterError:
        budgets = ()
    if screen is not None:
        screen.heading("What to expect")
        screen.text(str(bound))
        for other in others:
            if other.plan is not None:
                screen.text(f"- {other.mechanism}: expected distance {other.plan.expected_distance:.4g} at its own alpha")
        for budget in budgets:
            screen.text(f"- as much noise: {budget}")
    return {
        "utility": asdict(bound),
        "mechanisms": {other.mechanism: other.plan.expected_distance if other.plan else other.refusal for other in others},
        "equivalent_budgets": [budget.to_dict() for budget in budgets],
    }


def _forecasts(
    model_at: Callable[[Budget], LinearClassifier],
    budget: Budget,
    rows: int | None,
    features: int | None,
    error: float,
    positive_rate: float,
    curve: bool,
    screen: Screen | None,
) -> list[dict[str, Any]]:
    """The test error to be expected at the budget, or along a curve of budgets."""
    from dataclasses import replace

    from confide.planning import simulate

    name = next(iter(budget.ranges))
    budgets = [replace(budget, **{name: step * getattr(budget, name)}) for step in _STEPS] if curve else [budget]
    found = [simulate(model_at(one), rows, features, error=error, positive_rate=positive_rate) for one in budgets]
    if screen is not None:
        screen.heading("Accuracy to be expected, simulated")
        table = [(f"{getattr(one, name):.4g}", *_cells(forecast)) for one, forecast in zip(budgets, found, strict=True)]
        screen.table((name, "accuracy", "four in five fits", ""), table, words=("",))
        screen.text(
            f"If {1.0 - error:.4g} can be reached without privacy; {1.0 - found[0].constant_error:.4g} needs no model. Rows "
            f"are made up from the bounds alone: benchmarks/README.md says how near such forecasts were on real data."
        )
    return [
        {
            "budget": one.to_dict(),
            "error": forecast.error,
            "low": forecast.low,
            "high": forecast.high,
            "non_private_error": error,
            "constant_error": forecast.constant_error,
        }
        for one, forecast in zip(budgets, found, strict=True)
    ]


def _cells(forecast: Forecast) -> tuple[str, ...]:
    """Accuracy, its range, and a bar from that of no model (empty) to that without privacy (full)."""
    reached = (forecast.constant_error - forecast.error) / (forecast.constant_error - forecast.non_private_error)
    bar = "#" * round(_LONGEST_BAR * min(1.0, max(0.0, reached)))
    return (
        f"{1.0 - forecast.error:.4f}",
        f"{1.0 - forecast.high:.4f} to {1.0 - forecast.low:.4f}",
        "|" + bar.ljust(_LONGEST_BAR) + "|",
    )
