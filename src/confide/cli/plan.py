"""`confide plan`: what a fit would cost and how accurate it would be, before any data are read."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from confide.cli.option_values import Delta, Epsilon, Rho, chosen_budget
from confide.cli.options import Format, ModelOptions, takes_model_options
from confide.errors import ParameterError

if TYPE_CHECKING:
    from confide.cli.output import ShownKernel
    from confide.features.schema import Schema
    from confide.planning.advice import Alternatives, Verdict
    from confide.planning.simulation import Forecast
    from confide.privacy.budgets import Budget
    from confide.training.plan import AnyPlan


_CURVE_FACTORS = (0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0)
"""The budgets of a curve, as multiples of the given one."""

NumberOfRows = Annotated[int | None, typer.Option(min=1, metavar="N", help="Number of rows.")]
NumberOfColumns = Annotated[int | None, typer.Option(min=1, metavar="D", help="Number of columns of numbers.")]
SchemaInstead = Annotated[
    Path | None, typer.Option(metavar="FILE", help="TOML file that describes the columns, instead of --features.")
]
GuessedError = Annotated[
    float | None,
    typer.Option(
        metavar="SHARE",
        help="Guess of the test error without privacy, from which the private one is forecast. For numbers: 1 - R^2.",
    ),
]
PositiveRate = Annotated[
    float | None,
    typer.Option(
        metavar="SHARE",
        help="Expected share of one of two classes, or of the most frequent of several.  [default: all alike]",
    ),
]
WithDetails = Annotated[
    bool, typer.Option("--details", help="Show the whole plan: noise, curves, bounds, other mechanisms and budgets.")
]
WithCurve = Annotated[bool, typer.Option("--curve", help="Show accuracy for several budgets; needs --error.")]


@takes_model_options(without=("jobs", "seed"))
def plan(
    epsilon: Epsilon = None,
    rows: NumberOfRows = None,
    features: NumberOfColumns = None,
    schema: SchemaInstead = None,
    delta: Delta = None,
    rho: Rho = None,
    *,
    options: ModelOptions,
    error: GuessedError = None,
    positive_rate: PositiveRate = None,
    curve: WithCurve = False,
    details: WithDetails = False,
    output_format: Format = "text",
) -> None:
    """Show what a fit would cost and how accurate it would be. Reads no data and spends nothing.

    It begins with a verdict: the expected error, columns that the noise hides, and whether there are enough rows.
    """
    budget = chosen_budget(epsilon, delta, rho)
    require_one(rows, options.n_rows_bounds, "--rows or, with --neighbours add-or-remove-one, --n-rows-bounds LOW HIGH")
    require_one(features, schema, "--features or --schema, which states the number of columns")
    if curve and error is None:
        raise ParameterError("--curve needs --error, the expected test error of a model without privacy.")
    columns = schema_of(schema)
    guesses: dict[str, Any] | None = None if error is None else {"error": error, "positive_rate": positive_rate}
    budgets = [] if guesses is None else _budgets_of_curve(budget) if curve else [budget]
    asked = {"error": error, "positive_rate": positive_rate}
    beside = details or output_format == "json"
    planned = _Planned.of(options, budget, columns, rows, features, asked, guesses, budgets, with_alternatives=beside)
    _show(planned, output_format, with_details=details, with_curve=curve)


@dataclass(frozen=True, slots=True)
class _Planned:
    """What the command shows."""

    verdict: Verdict
    decided: AnyPlan
    chosen: Schema | None
    kernel: ShownKernel | None
    alternatives: Alternatives | None
    forecasts: list[Forecast]

    @classmethod
    def of(
        cls,
        options: ModelOptions,
        budget: Budget,
        columns: Schema | None,
        rows: int | None,
        features: int | None,
        asked: dict[str, Any],
        guesses: dict[str, Any] | None,
        budgets: list[Budget],
        *,
        with_alternatives: bool,
    ) -> _Planned:
        """The plan at a budget, what stands beside it, and forecasts at the budgets of a curve."""
        from confide.cli import output
        from confide.cli.output import chosen_map, chosen_schema
        from confide.planning.advice import Alternatives, verdict_of
        from confide.planning.simulation import simulate
        from confide.privacy.mechanism import Plan

        model = options.estimator(budget, columns)
        chosen, kernel = chosen_schema(model, rows), chosen_map(model, rows, features)
        decided: AnyPlan = model.plan(rows, features)
        alternatives = None
        with output.working("simulating fits"):
            verdict = verdict_of(model, rows, features, plan=decided, **asked)
            forecasts = [
                verdict.forecast
                if candidate == budget and verdict.forecast is not None
                else simulate(options.estimator(candidate, columns), rows, features, **guesses or {})
                for candidate in budgets
            ]
            # A plan for noisy sums has no loss of the score, which bounds and comparisons need.
            if with_alternatives and budget.is_private and isinstance(decided, Plan):
                alternatives = Alternatives.of(model, decided, rows, features, guesses)
        return cls(verdict, decided, chosen, kernel, alternatives, forecasts)


def require_one(first: object, second: object, names: str) -> None:
    """Refuse two options unless exactly one of them is given."""
    if (first is None) == (second is None):
        raise ParameterError(f"give either {names}.")


def schema_of(path: Path | None) -> Schema | None:
    """The schema of a file, or None."""
    from confide.features.schema import Schema

    return None if path is None else Schema.from_toml(path)


def _document(planned: _Planned) -> dict[str, Any]:
    from confide.cli.fitting import forecast_document
    from confide.cli.output import curves_document, map_document

    document = planned.decided.to_dict() | {"verdict": planned.verdict.to_dict()}
    if planned.alternatives is not None:
        document["beside"] = planned.alternatives.to_dict()
    if planned.forecasts:
        document["forecast"] = [forecast_document(forecast) for forecast in planned.forecasts]
    features = None if planned.kernel is None else planned.kernel.features
    return document | curves_document(planned.chosen) | map_document(features)


def _show(planned: _Planned, output_format: str, *, with_details: bool, with_curve: bool) -> None:
    from confide.cli import output
    from confide.cli.fitting import show_forecasts
    from confide.planning.advice import budget_sentence, sentences_of_interest

    if output_format == "json":
        output.print_json(_document(planned))
        return
    screen, verdict = output.Screen(), planned.verdict
    screen.heading("Verdict, from public facts alone")
    for sentence in (*verdict.sentences, *sentences_of_interest(planned.decided)):
        screen.text(f"- {sentence}")
    if with_details:
        screen.plan(planned.decided)
        screen.text(budget_sentence(planned.decided))
        screen.curves(planned.chosen)
        screen.kernel(planned.kernel)
        if planned.alternatives is not None:
            screen.heading("What to expect")
            for sentence in planned.alternatives.sentences():
                screen.text(sentence)
    if planned.forecasts and (with_details or with_curve):
        show_forecasts(planned.forecasts, screen)
    if not with_details:
        screen.text("--details shows the plan: its noise, curves, and what other mechanisms and budgets would do.")


def _budgets_of_curve(budget: Budget) -> list[Budget]:
    # The first amount is epsilon or rho; a delta stays as it is.
    name = next(iter(budget.ranges))
    return [replace(budget, **{name: factor * getattr(budget, name)}) for factor in _CURVE_FACTORS]


# `confide sample-size`: how many rows suffice for a bound on the loss, before any data are read.


@takes_model_options(without=("alpha", "centre", "neighbours", "n_rows_bounds", "jobs", "seed"))
def sample_size(
    excess: Annotated[
        float,
        typer.Option(metavar="X", help="How far the mean loss may lie above that of the weights to compare with."),
    ],
    epsilon: Epsilon = None,
    features: Annotated[int | None, typer.Option(min=1, metavar="D", help="Number of columns of numbers.")] = None,
    schema: Annotated[
        Path | None, typer.Option(metavar="FILE", help="TOML file that describes the columns, instead of --features.")
    ] = None,
    delta: Delta = None,
    rho: Rho = None,
    reference_norm: Annotated[
        float, typer.Option(metavar="R", help="L2 norm of the weights to compare with, in encoded columns.")
    ] = 1.0,
    failure: Annotated[float, typer.Option(metavar="P", help="Probability that the bound does not hold.")] = 0.05,
    population: Annotated[
        bool, typer.Option("--population", help="Bound the loss on new rows, rather than on the rows of the fit.")
    ] = False,
    by: Annotated[
        Literal["utility-bound", "excess-risk-bound"],
        typer.Option(help="The bound; excess-risk-bound is for new rows, and asks for far fewer of them."),
    ] = "utility-bound",
    *,
    options: ModelOptions,
    output_format: Format = "text",
) -> None:
    """Show a number of rows that suffices for a proven bound on the loss. Reads no data and spends nothing.

    The bound holds for all data, so it asks for many more rows than typical data need: `confide plan` has the forecast.
    """
    from confide.cli import output
    from confide.planning.sample_sizes import sample_size as sufficient

    budget = chosen_budget(epsilon, delta, rho)
    require_one(features, schema, "--features or --schema, which states the number of columns")
    model = options.estimator(budget, schema_of(schema))
    with output.working("looking for a number of rows"):
        sufficient_rows = sufficient(
            model,
            features,
            excess=excess,
            reference_norm=reference_norm,
            failure=failure,
            population=population,
            by=by.replace("-", "_"),
        )
    plan = sufficient_rows.plan
    if output_format == "json":
        bound = {name: getattr(sufficient_rows.bound, name) for name in sufficient_rows.bound.__dataclass_fields__}
        output.print_json({"rows": sufficient_rows.n_rows, "alpha": plan.alpha, "mechanism": plan.mechanism, "bound": bound})
        return
    screen = output.Screen()
    screen.heading(f"{sufficient_rows.n_rows:,} rows suffice")
    screen.text(str(sufficient_rows.bound))
    screen.text("It holds for a fit with these options:")
    screen.verbatim(f"  --alpha {plan.alpha:.6g} --mechanism {plan.mechanism} --no-centre")
