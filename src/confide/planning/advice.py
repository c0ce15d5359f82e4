"""A verdict on a plan in a few sentences that a person can act on. It is made from public facts alone.

The commands begin with it, and a report may show the same words.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any

from confide.budget_warnings import of_many_classes
from confide.errors import ParameterError, wording
from confide.expected_noise import noise_in_rows, wasted
from confide.features.schema import Schema
from confide.inference.sampling_design import SamplingDesign
from confide.planning.made_up_fits import (
    estimator_with,
    estimator_with_chosen_schema,
)
from confide.planning.simulation import Forecast, design_of, is_by_fits, simulate
from confide.privacy.budgets import ApproxDP, as_budget
from confide.privacy.mechanism import Plan

_DELTA = 1e-6
_LEAST_GAIN, _LEAST_PART = 0.04, 0.25
"""A delta brings a lot if it lowers the forecast error by this share of that of a constant answer, and by this part of what
privacy adds to the error."""


def with_delta(estimator: Any, forecast: Forecast, simulated: Callable[..., Forecast]) -> Forecast | None:
    """The forecast with a delta beside a pure epsilon where it brings a lot, or None; `simulated` makes forecasts."""
    budget, added = as_budget(estimator.budget), forecast.error - forecast.non_private_error
    least = max(_LEAST_GAIN * forecast.constant_error, _LEAST_PART * added)
    if not budget.is_pure or added < least:
        return None
    other = estimator_with(estimator, budget=ApproxDP(budget.amount, min(_DELTA, 0.1 / forecast.plan.problem.n_rows_high)))
    with suppress(ParameterError):
        better = simulated(other, error=forecast.non_private_error)
        if forecast.error - better.error >= least:
            return better
    return None


_ENOUGH, _FEW = 0.025, 0.2
"""Noise in rows as a share of all rows. On the schema of Adult with a guess of 0.15, simulated fits lose a tenth of what a
model can learn at the first, and a third at the second (tests/planning/test_advice.py)."""
_ENOUGH_SUMS = 0.1
"""Noise on sums of products, as a multiple of the curvature of usual rows, up to which it costs little."""
_LOST, _MOST_LOST = 0.1, 1.0 / 3.0
"""Of what a model can learn: up to the first a forecast says that rows are enough, and above the second too few."""
_CLEAR = 4.0
"""A level stands out if its rows, all with one label, pull twice as hard as the noise on its weight. At a probability of one
half each pulls with half of its largest slope."""
_MOST_NAMED = 5
_DESIGNS_OF_A_GUESS = 2

ENOUGH, FEW, TOO_FEW, WASTED, UNKNOWN = "enough", "few", "too few", "wasted", "unknown"


@dataclass(frozen=True, slots=True)
class Verdict:
    """What to expect of a plan, in words.

    Attributes
    ----------
    error : sentences on the expected error, or on why it is not known
    columns : a sentence on columns whose levels the noise hides; empty if nothing is known of them
    rows : a sentence on whether there are enough rows; where there are not, and an error is forecast, one on twice as many
    level : "enough", "few", "too few", "wasted" or "unknown": whether there are enough rows. A budget is wasted on rows of
        which the noise hides all; `confide fit` and `confide run` then refuse to charge it
    rare_columns : names of the columns that `columns` counts
    forecast : the forecast that `error` tells, or None
    weights : a sentence on unequal weights of rows; empty where rows count alike
    delta : a sentence on what a delta beside a pure epsilon would bring; empty where it would bring little
    classes : a sentence on many classes that are each compared with all others; empty elsewhere
    interactions : a sentence that an additive model chooses none beside intervals; empty elsewhere
    """

    error: str
    columns: str
    rows: str
    level: str
    rare_columns: tuple[str, ...]
    forecast: Forecast | None
    weights: str = ""
    delta: str = ""
    classes: str = ""
    interactions: str = ""

    def __str__(self) -> str:
        return " ".join(self.sentences)

    @property
    def sentences(self) -> tuple[str, ...]:
        """All that there is to say, one thing each."""
        last = (self.weights, self.delta, self.classes, self.interactions)
        return tuple(part for part in (self.error, self.columns, self.rows, *last) if part)

    def to_dict(self) -> dict[str, Any]:
        """A JSON form."""
        return {
            "text": str(self),
            "rows": self.level,
            "rare_columns": list(self.rare_columns),
            "expected_error": None if self.forecast is None else [self.forecast.low, self.forecast.high],
            "with_delta": self.delta or None,
        }


def verdict_of(
    estimator: Any,
    n_rows: int | None,
    n_features: int | None = None,
    *,
    plan: Any = None,
    error: float | None = None,
    positive_rate: float | None = None,
    with_forecast: bool = True,
    alone: bool = False,
) -> Verdict:
    """The verdict on what a fit would release.

    Parameters
    ----------
    estimator : an estimator of confide
    n_rows, n_features : int or None
        As in its `plan`.
    plan : its plan, if it was made already
    error, positive_rate : as in `simulate`; without an error one of 0.15 is assumed, and without a
        rate one of one half, and the verdict says so
    with_forecast : bool
        Whether an error of two classes is forecast, which takes a second or more. Numbers, counts and several classes have
        a forecast in any case, because it decides whether there are enough rows.
    alone : bool
        Whether nothing is said of other plans: of twice as many rows, and of a delta.

    Raises
    ------
    ParameterError
        If the plan is refused, or the guesses that are given cannot be used.
    """
    decided = estimator.plan(n_rows, n_features) if plan is None else plan
    # A guess of the error that nobody gave is not worth more time.
    designs = None if error is not None else _DESIGNS_OF_A_GUESS
    given: dict[str, Any] = {"n_rows": n_rows, "n_features": n_features, "positive_rate": positive_rate}
    simulated: Callable[..., Forecast] = partial(simulate, **given, n_designs=designs)
    forecast, why, by_fits = None, "", is_by_fits(estimator, decided)
    if with_forecast or by_fits:
        try:
            forecast = simulated(estimator, error=error)
        except ParameterError:
            if error is not None:
                raise
            why = "there are no forecasts for this model and this budget"
    design = design_of(estimator)
    rare, columns = _rare_columns(estimator, decided, n_rows, n_features)
    level, rows = _enough_rows(decided, design, forecast if by_fits else None)
    weights = "".join(f"Weights of rows are {line}." for name, line in design.lines().items() if name == "weights")
    said, delta, classes = f"Expected error: unknown, because {why}." if why else "", "", "".join(of_many_classes(decided))
    if forecast is not None:
        name, range_, without = in_words(forecast)
        said = f"{name}: {range_}, where it would be {without} without privacy."
        if error is None:
            said = f"{name}: {range_}, if it were {without} without privacy, which is a mere guess: --error takes yours."
        said += f" {constant_answer(forecast, is_given=positive_rate is not None)}"
        if level in (FEW, TOO_FEW) and not alone:
            rows += _with_twice_the_rows(estimator, n_rows, forecast, partial(simulated, error=error))
        better = None if alone else with_delta(estimator, forecast, simulated)
        if better is not None:
            name, range_, _ = in_words(better)
            lost = better.plan.event.budget.to_dict()["delta"]
            delta = wording("better with a delta", delta=lost, name=name, range=range_)
    told = wording("no interactions beside intervals")
    none = told if told in decided.reasons else ""
    return Verdict(said, columns, rows, level, rare, forecast, weights, delta, classes, none)


def _with_twice_the_rows(estimator: Any, n_rows: int | None, forecast: Forecast, simulated: Callable[..., Forecast]) -> str:
    """The sentence on what the same fit to twice as many rows would bring; empty where the forecast says that it is nothing.

    A model of curves, which it may be for more rows, has more noise than straight lines, and made-up effects are straight.
    """
    bounds = estimator.n_rows_bounds
    more = estimator if bounds is None else estimator_with(estimator, n_rows_bounds=tuple(2 * bound for bound in bounds))
    with suppress(ParameterError):
        doubled = simulated(more, n_rows=None if n_rows is None else 2 * n_rows)
        name, range_, _ = in_words(doubled)
        said = f" With twice as many rows: {name[0].lower()}{name[1:]} {range_}."
        return said if doubled.error < forecast.error else ""
    return ""


def where_the_budget_goes(plan: Any) -> tuple[tuple[str, float], ...]:
    """What each part of a budget pays for, and its share: centre of the rows, mean of counts, intervals, and weights."""
    parts = [(part.query.pays_for, part.share) for part in plan.parts]
    if hasattr(plan.intervals, "share"):
        parts.append(("intervals", plan.intervals.share))
    left = math.prod((1.0 - share for _, share in parts), start=1.0)
    of_sums = plan.intervals is not None and not hasattr(plan.intervals, "share")
    return (*parts, ("sums, of which weights and intervals are made" if of_sums else "the weights", left))


def budget_sentence(plan: Any) -> str:
    """One sentence on where the budget of a plan goes."""
    parts = where_the_budget_goes(plan)
    if len(parts) == 1:
        return f"All of the budget goes to {parts[0][0]}."
    *some, (rest, _) = parts
    return "Of the budget, " + " and ".join(f"{share:.2g} goes to {name}" for name, share in some) + f", the rest to {rest}."


def in_words(forecast: Forecast) -> tuple[str, str, str]:
    """What is forecast, its range, and what it would be without privacy."""
    # Real rows may be easier than made-up ones, but nobody should expect privacy to lower the error.
    ends = [max(forecast.low, forecast.non_private_error), forecast.high]
    if forecast.kind == "classes":
        # To whole percents, or to tenths where it is small.
        low, high = (f"{100.0 * round(value, 2 if value >= 0.1 else 3):.3g}" for value in ends)
        range_ = f"{low}%" if low == high else f"{low} to {high}%"
        return "Expected error", range_, f"{100.0 * forecast.non_private_error:.3g}%"
    low, high = (f"{1.0 - value:.2f}" if value < 1.0 else "0 or less" for value in reversed(ends))
    name = "Expected R^2" if forecast.kind == "numbers" else "Expected share of the deviance that is explained"
    return name, low if low == high else f"{low} to {high}", f"{1.0 - forecast.non_private_error:.3g}"


def constant_answer(forecast: Forecast, *, is_given: bool) -> str:
    """The sentence on what a model that always answers the same would err by.

    Parameters
    ----------
    forecast : it holds that error
    is_given : whether somebody said how frequent the classes are
    """
    if forecast.kind != "classes":
        return "A model that always answers the mean has 0."
    if is_given or forecast.constant_error != 0.5:
        return f"A model that always answers the same errs by {100.0 * forecast.constant_error:.3g}%."
    return wording("equally frequent classes")


def _enough_rows(plan: Any, design: SamplingDesign, forecast: Forecast | None) -> tuple[str, str]:
    budget = plan.event.budget if hasattr(plan, "event") else plan.budget
    if not budget.is_private:
        return ENOUGH, "NOT PRIVATE: an infinite budget adds no noise."
    if sentence := wasted(plan, design.effective_share):
        return WASTED, sentence
    if forecast is not None:
        lost = (forecast.error - forecast.non_private_error) / (forecast.constant_error - forecast.non_private_error)
        if lost <= _LOST:
            return ENOUGH, "Enough rows."
        level, said = (FEW, "Few") if lost <= _MOST_LOST else (TOO_FEW, "Too few")
        return level, f"{said} rows for this budget: noise hides about {min(lost, 1.0):.0%} of what a model could learn."
    if not isinstance(plan, Plan):
        if plan.forecast is None:
            return UNKNOWN, ""
        if plan.forecast.is_poor:
            return TOO_FEW, "Too few rows for this budget: the noise hides most of the sums."
        return (ENOUGH, "Enough rows.") if plan.forecast.ratio <= _ENOUGH_SUMS else (FEW, "Few rows for this budget.")
    if plan.problem.loss.constants.is_count:
        return UNKNOWN, ""  # their slopes are most often far below the largest
    # In rows of the mean weight, of which there are `n_rows`.
    noise, n_rows = noise_in_rows(plan) / design.effective_share, plan.problem.n_rows_low
    if noise <= _ENOUGH * n_rows:
        return ENOUGH, "Enough rows."
    missing = noise / _ENOUGH / n_rows
    times = f"{math.ceil(10.0 * missing) / 10.0 if missing < 10.0 else _two_digits(missing):,}"
    needed = f"about {_two_digits(missing * n_rows):,} rows, or {times} times the budget, would be enough."
    if noise <= _FEW * n_rows:
        return FEW, f"Few rows for this budget: {needed}"
    return TOO_FEW, f"Too few rows for this budget: {needed}"


def _rare_columns(estimator: Any, plan: Any, n_rows: int | None, n_features: int | None) -> tuple[tuple[str, ...], str]:
    """Columns most of whose levels, or most of whose curve, the noise hides, and what there is to say of all columns."""
    if not isinstance(plan, Plan) or plan.lattice is None or getattr(estimator, "schema", None) is None:
        return (), ""
    if hasattr(estimator, "kernel"):
        return (), ""  # its weights are not those of columns
    schema: Schema = estimator_with_chosen_schema(estimator, n_rows, n_features).schema
    problem = plan.problem
    on_a_weight = noise_in_rows(plan) * problem.row_norm / math.sqrt(problem.n_weights)
    least = _CLEAR * on_a_weight / design_of(estimator).effective_share
    rare, n_columns = [], len(schema.columns)
    for column in schema.columns:
        # The expected share of rows of the middle level, if shares fall as 1 / rank; of a number between two knots.
        if column.is_number:
            share = 1.0 / max(1, column.n_knots)
        else:
            n_levels = len(column.categories) + bool(column.other) + bool(column.missing)
            share = 1.0 / (math.ceil(n_levels / 2) * sum(1.0 / rank for rank in range(1, n_levels + 1)))
        if problem.n_rows_low * share < least:
            rare.append(column)
    if not rare:
        return (), f"All {n_columns} columns can matter." if n_columns > 1 else ""
    numbers = [column.name for column in rare if column.is_number]
    others, enough = [column.name for column in rare if not column.is_number], f"{_two_digits(least):,} rows"
    said, are = [], "is" if len(others) == 1 else "are"
    if others:
        of = f"{len(others)} of {n_columns} columns {are}"
        said.append(wording("columns too rare", of=of, names=_named(others), enough=enough))
    if numbers:
        of = f"curve{'s'[: len(numbers) > 1]} of {len(numbers)} of {n_columns} columns"
        said.append(wording("curves hidden", of=of, names=_named(numbers), enough=enough))
    return tuple(column.name for column in rare), " ".join(said)


def _named(names: list[str]) -> str:
    return ", ".join(names[:_MOST_NAMED]) + (f" and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else "")


def _two_digits(number: float) -> int:
    size = int(10 ** max(0, math.floor(math.log10(max(number, 1.0))) - 1))
    return math.ceil(number / size - 1e-9) * size
