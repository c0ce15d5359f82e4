"""`confide plan`: what a fit would cost and how accurate it would be, before any data are read."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from confide.blocks import Block, heading, text, verbatim
from confide.cli.option_values import chosen_budget, in_words_of_options
from confide.cli.options import Format, ModelOptions, options_of_command, schema_of
from confide.errors import ParameterError, wording

if TYPE_CHECKING:
    from confide.estimators.linear_model import PrivateLinearModel
    from confide.planning.advice import Verdict
    from confide.privacy.mechanism import Plan
    from confide.training.plan import AnyPlan


_ADVICE = "--details shows the plan: its noise, curves, and what other mechanisms would do."
_HOW_TO_COMPARE = "Compare plans by their noise in rows, as a share of all rows: the smaller the better."
_CURVE_FACTORS = (0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0)
"""The budgets of a curve, as multiples of the given one."""


@options_of_command("plan", without=("jobs", "seed"))
def plan(
    epsilon: float | None = None,
    rows: int | None = None,
    features: int | None = None,
    schema: Path | None = None,
    delta: float | None = None,
    rho: float | None = None,
    *,
    options: ModelOptions,
    error: float | None = None,
    positive_rate: float | None = None,
    curve: bool = False,
    details: bool = False,
    page: Path | None = None,
    force: bool = False,
    output_format: Format = "text",
) -> None:
    """Show what a fit would cost and how accurate it would be. Reads no data and spends nothing.

    It begins with a verdict: the expected error, columns that the noise hides, and whether there are enough rows.
    """
    from confide.cli import output
    from confide.cli.fitting import blocks_of_forecasts
    from confide.planning.advice import verdict_of
    from confide.planning.simulation import COVERAGE, simulate
    from confide.privacy.budgets import with_amount
    from confide.privacy.mechanism import Plan
    from confide.report.accuracy import forecast_document

    budget = chosen_budget(epsilon, delta, rho)
    require_one(rows, options.n_rows_bounds, "--rows or, with --neighbours add-or-remove-one, --n-rows-bounds LOW HIGH")
    require_one(features, schema, "--features or --schema, which states the number of columns")
    if curve and error is None:
        raise ParameterError("--curve needs --error, the expected test error of a model without privacy.")
    columns = schema_of(schema)
    guesses: dict[str, Any] = {"error": error, "positive_rate": positive_rate}
    if page is not None:
        output.check_path(page, [*options.files, *filter(None, [schema])], (".html", ".htm"), overwrite=force)
    model = options.estimator(budget, columns)
    chosen, kernel = output.chosen_schema(model, rows), output.chosen_map(model, rows, features)
    decided: AnyPlan = model.plan(rows, features)
    beside, document = list[str](), dict[str, Any]()
    with output.working("simulating fits"):
        verdict = verdict_of(model, rows, features, plan=decided, **guesses)
        forecasts = [] if verdict.forecast is None or error is None else [verdict.forecast]
        if curve:
            # The first amount is epsilon or rho; a delta stays as it is.
            asked = (options.estimator(with_amount(budget, one * budget.amount), columns) for one in _CURVE_FACTORS)
            forecasts = [simulate(one, rows, features, **guesses) for one in asked]
        # A plan for noisy sums has no loss of the score, which bounds and comparisons need.
        if (details or output_format == "json") and budget.is_private and isinstance(decided, Plan):
            beside, document["beside"] = beside_plan(model, decided, rows, features, None if error is None else guesses)
    document = decided.to_dict() | {"verdict": verdict.to_dict()} | document
    if forecasts:
        document["forecast"] = [forecast_document(forecast, coverage=COVERAGE) for forecast in forecasts]
    screen = output.Screen(output_format)
    screen.show(_blocks_of_verdict(verdict, decided, [] if details else document["cautions"]))
    if details:
        screen.show(_details(decided, beside, output.blocks_of_choices(model, chosen, kernel)))
    if forecasts and (details or curve):
        screen.show(blocks_of_forecasts(forecasts))
    if page is not None:
        screen.show(_written_page(page, options, schema, model, rows, features, force=force, **guesses))
    screen.answer(lambda: document | output.choices_document(chosen, kernel), [] if details else [text(_ADVICE)])


def beside_plan(
    model: PrivateLinearModel, decided: Plan, rows: int | None, features: int | None, guesses: dict[str, Any] | None
) -> tuple[list[str], dict[str, Any]]:
    """A bound on the cost of a plan's noise, and what other mechanisms would do instead: in sentences, and as JSON values.

    Parameters
    ----------
    model : a classifier with a finite budget
    decided : its plan
    rows, features : as in the plan
    guesses : `error` and `positive_rate` for `simulate`; None for no forecasts
    """
    from confide.planning.bounds import has_utility_bound, utility_bound
    from confide.planning.made_up_fits import estimator_with
    from confide.planning.simulation import simulate
    from confide.training.auto_mechanism import MECHANISM_NAMES

    bound = utility_bound(decided) if has_utility_bound(decided) else None
    said = [_HOW_TO_COMPARE, wording("no bound on noise") if bound is None else str(bound)]
    document: dict[str, Any] = {"utility": None if bound is None else asdict(bound)}
    errors = {}
    if guesses is not None:
        for name in (other for other in MECHANISM_NAMES[1:] if other != decided.mechanism):
            with suppress(ParameterError):
                errors[name] = simulate(estimator_with(model, mechanism=name), rows, features, **guesses).error
    if errors:
        said.append("Forecast accuracy of other mechanisms, each at the alpha that it would choose:")
        said += [f"- {name} {1.0 - error:.4f}" for name, error in errors.items()]
        document["mechanism_errors"] = errors
    return said, document


def _written_page(
    page: Path, options: ModelOptions, schema: Path | None, model: Any, *numbers: int | None, force: bool, **guesses: Any
) -> list[Block]:
    from confide.cli import output
    from confide.files import write_text
    from confide.report.page import plan_page

    others = {"schema": schema, "features": numbers[1], **guesses, "page": page, "neighbours": None, "n_rows_bounds": None}
    command = shlex.join(["confide", "plan", *options.words(others)])
    with output.working("making plans") as told:
        made = plan_page(model, *numbers, command=command, words=in_words_of_options, told=told, **guesses)
    write_text(page, made, overwrite=force)
    return [verbatim(f"Wrote {page}.")]


def require_one(first: object, second: object, names: str) -> None:
    """Refuse two options unless exactly one of them is given."""
    if (first is None) == (second is None):
        raise ParameterError(f"give either {names}.")


def _blocks_of_verdict(verdict: Verdict, plan: AnyPlan, cautions: list[str]) -> Iterator[Block]:
    yield heading("Verdict, from public facts alone")
    of_interest = () if plan.intervals is None else plan.intervals.sentences()
    yield Block("list", (*verdict.sentences, *of_interest, *cautions))


def _details(plan: AnyPlan, beside: list[str], choices: Iterator[Block]) -> Iterator[Block]:
    from confide.cli import output
    from confide.planning.advice import budget_sentence

    yield from output.blocks_of_plan(plan)
    yield text(budget_sentence(plan))
    yield from choices
    if beside:
        yield heading("What to expect")
        yield text(*beside)


# `confide sample-size`: how many rows suffice for a bound on the loss, before any data are read.


@options_of_command("sample-size", without=("alpha", "centre", "neighbours", "n_rows_bounds", "jobs", "seed"))
def sample_size(
    excess: float,
    epsilon: float | None = None,
    features: int | None = None,
    schema: Path | None = None,
    delta: float | None = None,
    rho: float | None = None,
    reference_norm: float = 1.0,
    failure: float = 0.05,
    population: bool = False,
    by: Literal["utility-bound", "excess-risk-bound"] = "utility-bound",
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
    asked: dict[str, Any] = {"excess": excess, "reference_norm": reference_norm, "failure": failure}
    with output.working("looking for a number of rows"):
        enough = sufficient(model, features, population=population, by=by.replace("-", "_"), **asked)
    plan, bound = enough.plan, {name: getattr(enough.bound, name) for name in enough.bound.__dataclass_fields__}
    output.Screen(output_format).answer(
        lambda: {"rows": enough.n_rows, "alpha": plan.alpha, "mechanism": plan.mechanism, "bound": bound},
        [
            heading(f"{enough.n_rows:,} rows suffice"),
            text(str(enough.bound), "It holds for a fit with these options:"),
            verbatim(f"  --alpha {plan.alpha:.6g} --mechanism {plan.mechanism} --no-centre"),
        ],
    )
