"""`confide plan`: what a fit would cost and yield, before any data."""

from __future__ import annotations

from contextlib import nullcontext, suppress
from dataclasses import asdict, dataclass, replace
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
    from confide.estimators.linear_classifier import LinearClassifier
    from confide.planning import Compared, Forecast, UtilityBound
    from confide.privacy.budgets import Budget
    from confide.privacy.mechanism import Plan

_STEPS = (0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0)
"""Of a curve, times the budget."""
_LONGEST_BAR = 40
_OTHER_WEIGHTS = "another loss, bound or alpha: distances from other non-private weights cannot be compared"


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
    from confide.planning import simulate

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
    budgets = [budget]
    if curve:
        name = next(iter(budget.ranges))
        budgets = [replace(budget, **{name: step * getattr(budget, name)}) for step in _STEPS]
    forecasts: list[Forecast] = []
    beside = None
    with display.working("simulating fits") if error is not None else nullcontext():
        if error is not None:
            forecasts = [
                simulate(model_at(one), rows, features, error=error, positive_rate=positive_rate) for one in budgets
            ]
        if budget.is_private:
            expected: dict[str, Any] | None = None if error is None else {"error": error, "positive_rate": positive_rate}
            beside = _Beside.of(model, decided, rows, features, expected)
    if output_format == "json":
        document = decided.to_dict()
        if beside is not None:
            document["beside"] = beside.to_dict()
        if forecasts:
            document["forecast"] = [_forecast_document(forecast) for forecast in forecasts]
        display.print_json(document)
        return
    screen = display.Screen()
    screen.plan(decided)
    if beside is not None:
        beside.show(screen)
    if forecasts:
        _show_forecasts(forecasts, screen)


@dataclass(frozen=True)
class _Beside:
    """A bound on what the noise costs, the other mechanisms, and budgets of other currencies with as much noise."""

    decided: Plan
    bound: UtilityBound
    mechanisms: tuple[Compared, ...]
    """At the alpha of the plan."""
    budgets: tuple[Budget, ...]
    reached: dict[str, float]
    """Forecast error of each mechanism, with the alpha and the loss that it would choose."""

    @classmethod
    def of(
        cls,
        model: LinearClassifier,
        decided: Plan,
        rows: int | None,
        features: int | None,
        expected: dict[str, Any] | None,
    ) -> _Beside:
        from confide.planning import compare_mechanisms, equivalent_budgets, simulate, utility_bound
        from confide.planning.asked import estimator_with

        bound = utility_bound(decided)
        mechanisms = compare_mechanisms(estimator_with(model, alpha=decided.alpha), rows, features)
        reached = {}
        if expected is not None:
            for name in (other.mechanism for other in mechanisms if other.mechanism != decided.mechanism):
                with suppress(ParameterError):
                    reached[name] = simulate(estimator_with(model, mechanism=name), rows, features, **expected).error
        try:
            return cls(decided, bound, mechanisms, equivalent_budgets(model, rows, features), reached)
        except ParameterError:
            return cls(decided, bound, mechanisms, (), reached)

    def show(self, screen: Screen) -> None:
        screen.heading("What to expect")
        screen.text(
            "Compare plans by the noise in rows, over all rows: the smaller the better. Distances can be compared at one "
            "alpha alone: the automatic one falls as rows are added, and weights grow."
        )
        screen.text(str(self.bound))
        distances = self._distances()
        if len(distances) > 1:
            screen.text(
                "Distance from the same non-private weights at the plan's alpha, at most; that the loss damps noise in the "
                "objective is not counted:"
            )
            for name, distance in distances.items():
                screen.text(f"- {name} {distance:.4g}")
        if len(self.budgets) > 1:
            screen.text("As much noise, not as much protection, if alpha, loss and mechanism stay those of the plan:")
            for budget in self.budgets:
                screen.text(f"- {type(budget)(*(float(f'{getattr(budget, n):.4g}') for n in budget.ranges))}")
        if self.reached:
            screen.text("Forecast accuracy of other mechanisms, each at the alpha that it would choose:")
            for name, error in self.reached.items():
                screen.text(f"- {name} {1.0 - error:.4f}")

    def to_dict(self) -> dict[str, Any]:
        distances = self._distances()
        mechanisms = {m.mechanism: distances.get(m.mechanism, m.refusal or _OTHER_WEIGHTS) for m in self.mechanisms}
        budgets = [budget.to_dict() for budget in self.budgets]
        document = {"utility": asdict(self.bound), "mechanisms": mechanisms, "equivalent_budgets": budgets}
        return document | ({"mechanism_errors": self.reached} if self.reached else {})

    def _distances(self) -> dict[str, float]:
        """Expected distances of the mechanisms whose non-private weights are those of the plan."""
        return {
            other.mechanism: other.plan.expected_distance
            for other in self.mechanisms
            if other.plan is not None and _minimised(other.plan) == _minimised(self.decided)
        }


def _minimised(plan: Plan) -> tuple[Any, ...]:
    """What decides the non-private weights."""
    return plan.problem.loss, plan.problem.row_bound, float(f"{plan.alpha:.9g}")


def _forecast_document(forecast: Forecast) -> dict[str, Any]:
    from confide.planning.simulation import COVERAGE

    names = ("error", "low", "high", "non_private_error", "constant_error")
    # The whole budget: intervals have a share of it.
    facts = {"budget": forecast.plan.event.budget.to_dict(), "coverage": COVERAGE}
    return facts | {name: getattr(forecast, name) for name in names}


def _show_forecasts(forecasts: list[Forecast], screen: Screen) -> None:
    screen.heading("Accuracy to be expected, simulated")
    name = next(iter(forecasts[0].plan.budget.ranges))
    rows = [(f"{getattr(forecast.plan.event.budget, name):.4g}", *_cells(forecast)) for forecast in forecasts]
    screen.table((name, "accuracy", "4 in 5 within", ""), rows, words=("",))
    first = forecasts[0]
    screen.text(
        f"If {1.0 - first.non_private_error:.4g} can be reached without privacy; {1.0 - first.constant_error:.4g} needs no "
        f"model. Rows are made up from the bounds alone. Ranges held the mean accuracy in 4 of 5 cases or more of each real "
        f"data set that they were calibrated on; benchmarks/README.md has these and others."
    )


def _cells(forecast: Forecast) -> tuple[str, ...]:
    """Accuracy, its range, and a bar from that of no model (empty) to that without privacy (full)."""
    reached = (forecast.constant_error - forecast.error) / (forecast.constant_error - forecast.non_private_error)
    bar = "#" * round(_LONGEST_BAR * min(1.0, max(0.0, reached)))
    return (
        f"{1.0 - forecast.error:.4f}",
        f"{1.0 - forecast.high:.4f} to {1.0 - forecast.low:.4f}",
        "|" + bar.ljust(_LONGEST_BAR) + "|",
    )
