"""Forecasts of the test error of private classifiers, by fits to made-up rows. No data are used.

A bound (`utility_bound`) says the worst that can happen; a forecast says what usually happens. It is made in four steps.

1. Rows are drawn from a random design that knows only the schema, or the bound on rows. If the bound is a ball, a few
   directions hold most of the length of the rows, as in most real data. Rows that were spread evenly over all directions
   would let in noise from all of them.
2. The label shifts the latent variable behind each column. The strength of the shift is chosen such that a model without
   privacy errs as often as the user expects.
3. The plan's own noise is added, and the perturbed problems are solved as one batch.
4. This is repeated for several designs, and the errors are averaged.

Real columns depend on each other in other ways than made-up ones. So the range of a forecast is not that of the simulated
fits: it is as wide as was needed for real data sets. benchmarks/planner.py calibrates the designs and the range on public
data sets, and measures how far forecasts are from the errors on data sets that were left out:
benchmarks/notes/how_near_are_forecasts.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np
from scipy.special import ndtr, ndtri

from confide.array_types import Array
from confide.data.arrays import ArrayBlocks, MemorySource
from confide.erm.group_bounds import groups_of
from confide.erm.losses import Loss
from confide.erm.objective import Objective, Objectives
from confide.erm.penalties import RIDGE, Penalty
from confide.erm.row_bounds import RowBound, norm_with_intercept
from confide.errors import ParameterError, as_float, checked_count, is_whole, wording
from confide.features.encoder import Encoder
from confide.features.fourier import KERNELS
from confide.inference.sampling_design import SamplingDesign
from confide.parameters import checked_choice
from confide.plan_text import prior_of
from confide.planning.made_up_fits import (
    Outcome,
    correlated,
    errors_of_fits,
    estimator_with,
    estimator_with_chosen_schema,
    rows_in_ball,
    uniform_numbers,
)
from confide.privacy.gradient import GradientPlan
from confide.privacy.mechanism import Plan
from confide.privacy.noise import Entropy
from confide.solvers.fallback import NewtonThenFallback
from confide.solvers.lbfgs import LimitedMemory
from confide.solvers.sampled import Metric
from confide.training.plan import AnyPlan

# Refusal of arguments that lie outside their ranges, before anything is planned with them.


def check_arguments(
    whole: Mapping[str, int] | None = None, *, failure: float = 0.5, kernel: str = KERNELS[0], **positive: float
) -> None:
    """Raise ParameterError, which names the argument, unless each is within its range.

    Those of `whole` are whole numbers of at least 1, `failure` is a probability other than 0 and 1, `kernel` is the name of
    one, and all others are positive and finite.
    """
    for name, value in (whole or {}).items():
        checked_count(name, value)
    for name, number in positive.items():
        if not 0.0 < as_float(number) < math.inf:
            raise ParameterError(f"{name} must be a positive finite number.")
    if not 0.0 < as_float(failure) < 1.0:
        raise ParameterError("failure must be a number strictly between 0 and 1.")
    checked_choice("kernel", kernel, KERNELS)


_N_ROWS = 6000
"""Made-up rows to train on, and as many to test on. More rows change a forecast by less than designs differ."""
_N_DESIGNS, _N_DRAWS = 6, 4
"""Number of designs, and of draws of the noise for each."""
_MANY_WEIGHTS, _N_DESIGNS_OF_MANY_WEIGHTS = 200, 3
"""Above this many weights there are fewer designs: fits cost more then, and designs with more columns differ less."""
_MAX_STEPS, _MAX_SLOW_STEPS = 40, 8
"""Limits for fits in the metric of one Hessian, which serves as long as a fit is near the point where it was taken."""
GUESSED_ERROR = 0.15
"""The error without privacy that a forecast for two classes assumes if nobody guesses one: about that of Adult and of many
surveys."""
_MAX_STRENGTH = 30.0
"""Strength of the signal at which one column alone determines the label."""
_SMALL_RIDGE = 1e-4
"""Ridge of the fit without noise, for each row, in units of the squared norm of a row."""
_ERROR_TOLERANCE = 0.5
"""Largest difference between the error of the fit without noise and the guess, in standard errors on the test rows."""

# The design. benchmarks/planner.py chose the correlation and the decay of the signal (--designs), and for rows in a ball the
# decay of the variance and the share of the mean (--ball-designs).

_LEVEL_DECAY = 1.0
"""The levels of a category have shares in proportion to 1 / rank^decay."""
_NUMBER_DEVIATION = 0.35
"""Standard deviation of a number whose bounds are -1 and 1."""
_SIGNAL_DECAY = 0.5
"""The label shifts the latent variables of the groups of columns, or axes, in proportion to 1 / rank^decay."""

_RANGE_FACTOR, _RANGE_FLOOR = 3.0, 0.0075
"""Width of the range around a forecast: a factor on what privacy adds, and an absolute margin. This is the narrowest range
that holds COVERAGE of the cells of each of seven public data sets, and of each of them when it was chosen on the other six
(benchmarks/planner.py --ranges)."""
COVERAGE = 0.8
"""Share of the cells (budgets and losses) of each data set whose mean error had to lie in the range."""


@dataclass(frozen=True, slots=True)
class Forecast:
    """What to expect of one fit. Made without data.

    Attributes
    ----------
    error : float
        Expected share of mistakes on new rows.
    low, high : float
        Range in which the mean error of fits to real rows probably lies. On each public data set that the range was
        calibrated on, it did so in at least four of five cells. benchmarks/notes/how_near_are_forecasts.md has the results
        on other data sets.
    non_private_error : float
        The user's guess of the error without privacy, on which the forecast is based.
    constant_error : float
        Error of a model that always names the more frequent class.
    plan : Plan or StatisticsPlan
    kind : str
        "classes": errors are shares of mistakes. "numbers": of the variance, 1 - R^2. "counts": of the deviance.
    """

    error: float
    low: float
    high: float
    non_private_error: float
    constant_error: float
    plan: AnyPlan
    kind: str = "classes"


def simulate(
    estimator: Any,
    n_rows: int | None,
    n_features: int | None = None,
    *,
    error: float | None,
    positive_rate: float | None = None,
    seed: int = 0,
    n_designs: int | None = None,
) -> Forecast:
    """Forecast the test error of a private model, before any data.

    Parameters
    ----------
    estimator : a classifier or regressor with a finite budget
    n_rows, n_features : int or None
        As in the estimator's `plan`.
    error : float or None, above 0 and below the error of a constant answer
        Test error that a model without privacy is expected to reach. It sets the strength of the signal. Guess it from the
        literature or a pilot study, not from the data to be protected. For numbers it is 1 - R^2, and for counts the share
        of the deviance that is left. None stands for 0.15 of two classes, 0.3 of what a constant answer errs by of more,
        0.5 for numbers and 0.8 for counts: a mere guess.
    positive_rate : float, in (0, 1), or None
        Expected share of one of two classes, or of the most frequent of several. None: all are equally frequent.
    seed : int
        Seed of the made-up rows, and of the noise added to them, which no release uses.
    n_designs : int or None
        Number of designs over which errors are averaged, at least 1; None means the number that the ranges were calibrated
        with. Fewer are faster and less exact.

    Returns
    -------
    Forecast

    Raises
    ------
    ParameterError
        If the guesses contradict each other, or the estimator is of another kind.
    """
    if not is_whole(seed) or seed < 0:
        raise ParameterError("seed must be a whole number of at least 0.")
    # Made-up rows have no middle worth finding, so the forecast is one without a centre: a little too cautious.
    plan = estimator_with(estimator, centre=False).plan(n_rows, n_features)
    if plan.lattice is None:
        raise ParameterError("forecasts are for private models, and an infinite budget adds no noise.")
    if is_by_fits(estimator, plan):
        designs = _N_DESIGNS_OF_MANY_WEIGHTS if n_designs is None else n_designs
        return _by_fits(estimator, n_rows, n_features, error, positive_rate, seed, designs)
    error, positive_rate = GUESSED_ERROR if error is None else error, 0.5 if positive_rate is None else positive_rate
    constant_error = _checked_constant_error(error, positive_rate)
    if plan.problem.loss.constants.is_declared and plan.problem.loss.constants.joint is not None:
        raise ParameterError("there are no forecasts for noisy gradients of a loss of your own.")
    problem = plan.problem
    if problem.penalty.function is not None:
        raise ParameterError("forecasts are for fits with the ridge or a quadratic form, and the penalty is your own.")
    if problem.prior:
        raise ParameterError("forecasts are for fits without a prior: made-up rows do not know the weights that it is near.")
    schema = estimator_with_chosen_schema(estimator, n_rows, n_features).schema
    # Rows obey the bound of the schema before the fit clips them, if its columns are fitted as they are.
    encoder = None if schema is None else Encoder(schema)
    # The made-up rows are cached by these facts, so that a curve over many budgets finds the strength of the signal once.
    encoded = encoder.row_bound if encoder and encoder.n_features == problem.n_features else problem.row_bound
    facts = (problem.loss, problem.row_bound, problem.intercept, min(_N_ROWS, problem.n_rows_low))
    if n_designs is None:
        n_designs = _N_DESIGNS if problem.n_weights <= _MANY_WEIGHTS else _N_DESIGNS_OF_MANY_WEIGHTS
    check_arguments({"n_designs": n_designs})
    mean_weight = design_of(estimator).usual_weight
    seeds = range(seed, seed + n_designs)
    made_up = ((_made_up_rows(facts, encoded, problem.n_features, error, positive_rate, number), number) for number in seeds)
    forecast = float(np.concatenate([_with_noise(plan, *rows, mean_weight) + error for rows in made_up]).mean())
    return Forecast(forecast, *_range(forecast, error, constant_error), error, constant_error, plan)


def is_by_fits(estimator: Any, plan: Any) -> bool:
    """Whether a forecast is one by fits to made-up tables: that of numbers, counts, or several classes."""
    return not hasattr(estimator, "classes") or plan.problem.loss.constants.n_outputs > 1


def _by_fits(
    model: Any, rows: int | None, features: int | None, error: float | None, share: float | None, seed: int, n_designs: int
) -> Forecast:
    """The forecast for numbers, counts or several classes, by fits to made-up tables."""
    chosen = estimator_with_chosen_schema(model, rows, features)
    plan = chosen.plan(rows, features if chosen.schema is None else None)
    if prior_of(plan):
        raise ParameterError("forecasts are for fits without a prior: made-up rows do not know the weights that it is near.")
    outcome = Outcome.of(chosen, plan, share)
    usual = {"numbers": 0.5, "counts": 0.8}.get(outcome.kind, 0.3 * outcome.constant_error)
    guess = usual if error is None else error
    if not 0.0 < as_float(guess) < outcome.constant_error:
        raise ParameterError(wording("error of numbers", most=outcome.constant_error))
    check_arguments({"n_designs": n_designs})
    forecast = guess + float(np.mean(errors_of_fits(chosen, plan, outcome, guess, seed, n_designs)))
    low, high = _range(forecast, guess, outcome.constant_error)
    return Forecast(forecast, min(low, high), high, guess, outcome.constant_error, plan, outcome.kind)


def _checked_constant_error(error: float, positive_rate: float) -> float:
    """The error of the more frequent class for every row, if the two guesses are possible."""
    if not 0.0 < as_float(positive_rate) < 1.0:
        raise ParameterError("positive_rate must lie strictly between 0 and 1.")
    constant = min(positive_rate, 1.0 - positive_rate)
    if not 0.0 < as_float(error) < constant:
        raise ParameterError(wording("error of labels", constant=constant))
    return constant


def _range(forecast: float, non_private: float, constant: float) -> tuple[float, float]:
    """What privacy adds, divided and multiplied by a factor, with a margin; at most a little above the error of no model."""
    added = forecast - non_private
    low, high = non_private + added / _RANGE_FACTOR, min(non_private + _RANGE_FACTOR * added, max(constant, forecast))
    return max(0.0, low - _RANGE_FLOOR), min(1.0, high + _RANGE_FLOOR)


def design_of(estimator: Any) -> SamplingDesign:
    """What the parameters of an estimator, or its schema, declare of the weights of rows."""
    weight = None if estimator.schema is None else estimator.schema.weight
    if weight is not None:
        return SamplingDesign(weight.high, weight.mean, has_weights=True)
    largest, mean = getattr(estimator, "max_sample_weight", 1.0), getattr(estimator, "mean_sample_weight", None)
    return SamplingDesign(float(largest), mean, has_weights=mean is not None or largest != 1.0)


def _with_noise(plan: Plan, made_up: _MadeUpRows, seed: int, mean_weight: float) -> Array:
    """(draws,) errors that privacy adds to the error of the exact fit."""
    # The objective is a sum over rows. Here it has only a part of the rows, so ridge and noise are scaled by that part. And
    # these rows have the weight 1, so both are counted in units of the mean weight.
    part = made_up.n_rows / plan.problem.n_rows_low / mean_weight
    entropy, nothing = Entropy.seeded(seed), np.zeros((1, plan.problem.n_weights))
    noise = np.concatenate([plan.noise.draw(entropy) if plan.noise else nothing for _ in range(_N_DRAWS)])
    if isinstance(plan, GradientPlan):
        return np.maximum(0.0, made_up.errors(plan.walked(made_up.source, _N_DRAWS, part, entropy)) - made_up.error)
    if plan.noise and plan.noise.in_objective:
        ridges = replace(plan.problem.penalty, form=None)
        private = made_up.minimisers(part * plan.l2, part * noise, np.zeros_like(noise), ridges)
    else:
        private = made_up.minimisers(part * plan.l2, nothing, nothing) + noise
    released = private if plan.lattice is None else plan.lattice.release(private, entropy)
    return np.maximum(0.0, made_up.errors(released) - made_up.error)


@dataclass(frozen=True, slots=True, eq=False)
class _MadeUpRows:
    """Made-up rows: `n_rows` to train on, then those to test on; and what a fit to them has to know of a problem."""

    loss: Loss
    row_bound: RowBound
    intercept: float
    n_rows: int
    rows: Array
    labels: Array
    error: float = math.nan
    """Test error of the fit without noise. It is the guess itself if no strength of the signal reaches it."""

    @property
    def source(self) -> MemorySource:
        """The rows to train on."""
        return MemorySource(ArrayBlocks(self.rows[: self.n_rows]), self.labels[: self.n_rows])

    def minimisers(self, l2: float, linear: Array, start: Array, penalty: Penalty = RIDGE) -> Array:
        """(k, D) weights that minimise the perturbed problems, with these `linear` terms (k, D) and this penalty."""
        parts = (self.source, self.loss, self.row_bound, self.intercept, l2, linear)
        objective: Objectives = Objective(*parts, penalty=penalty)
        enough = 1e-6 * self.n_rows * objective.row_norm
        if start.shape[1] <= _MANY_WEIGHTS:
            return NewtonThenFallback().solve(objective, start, enough).weights
        # A Hessian of many weights takes as long as many gradients, so all problems and all steps share one.
        middle = replace(objective, linear=linear.mean(axis=0, keepdims=True))
        metric = Metric.of(middle.evaluate(start.mean(axis=0, keepdims=True), order=2).hessian[0])
        method = LimitedMemory(_MAX_STEPS, metric=metric, most_slow_steps=_MAX_SLOW_STEPS)
        solution = method.solve(objective, start, enough)
        weights, left = solution.weights, np.flatnonzero(~(solution.gradient_norm <= enough))
        if left.size:
            weights[left] = NewtonThenFallback().solve(objective.restrict(left), weights[left], enough).weights
        return weights

    def errors(self, weights: Array) -> Array:
        """(k,) shares of mistakes on the test rows."""
        fresh, labels = self.row_bound.clip(self.rows[self.n_rows :]), self.labels[self.n_rows :]
        if self.intercept:
            fresh = np.column_stack([fresh, np.full(len(fresh), self.intercept)])
        return np.asarray(((fresh @ weights.T > 0.0) != (labels[:, None] > 0)).mean(axis=0))


@lru_cache(maxsize=2 * _N_DESIGNS)
def _made_up_rows(
    facts: tuple[Loss, RowBound, float, int], encoded: RowBound, n_features: int, error: float, rate: float, seed: int
) -> _MadeUpRows:
    """Rows of a design with the strength at which a fit without noise, and with a small ridge, has this test error.

    They are made up within the bound `encoded`, and a fit clips them to its own, which is one of the `facts`.
    """
    _, row_bound, intercept, n_rows = facts
    labels, rows_at = _design(encoded, n_features, _N_ROWS + n_rows, rate, seed)
    little = _SMALL_RIDGE * n_rows * norm_with_intercept(row_bound, intercept) ** 2
    nothing = np.zeros((1, n_features + (intercept != 0.0)))
    weights, low, high = nothing, 0.02, _MAX_STRENGTH
    while True:
        middle = math.sqrt(low * high)
        made_up = _MadeUpRows(*facts, rows_at(middle), labels)
        weights = made_up.minimisers(little, nothing, weights)
        exact = float(made_up.errors(weights)[0])
        # A closer match would be below the sampling error of the test rows.
        if high < 1.1 * low or abs(exact - error) < _ERROR_TOLERANCE * math.sqrt(error * (1.0 - error) / _N_ROWS):
            return replace(made_up, error=exact if high < _MAX_STRENGTH else error)
        low, high = (middle, high) if exact > error else (low, middle)


def _design(
    bound: RowBound, n_features: int, n: int, positive_rate: float, seed: int
) -> tuple[Array, Callable[[float], Array]]:
    """The labels (n,) of made-up rows of a public seed, and the rows (n, d) within a bound at a strength of the signal.

    Behind each group of columns is a latent variable, standard normal before the label shifts it by the strength times the
    importance of the group. For rows in a ball, each axis is a group.
    """
    uniform = uniform_numbers(seed)

    def ranks(size: int) -> Array:
        """The numbers 1 to `size` in random order."""
        return np.asarray(1.0 + uniform(size).argsort(), dtype=np.float64)

    labels: Any = np.where(uniform(n) < positive_rate, 1, -1).astype(np.int8)
    sizes, scales, _ = groups_of(bound)
    shares: list[Array] = []  # for each group the cumulated shares of its levels, or the mean of a number
    if sizes:
        latent = correlated(uniform, n, len(sizes))
        importance = ranks(len(sizes)) ** -_SIGNAL_DECAY
        for size in sizes:
            levels = ranks(size) ** -_LEVEL_DECAY
            shares.append(np.cumsum(levels / levels.sum(), dtype=np.float64)[:-1] if size > 1 else 1.4 * uniform(1) - 0.7)
    else:
        # Noise and ridge are the same in all directions, so the axes of the covariance may be the columns.
        latent, importance = ndtri(uniform(n, n_features)), np.arange(1.0, n_features + 1.0) ** -_SIGNAL_DECAY

    def rows_at(strength: float) -> Array:
        shift = strength * importance
        behind = (latent + labels[:, None] * shift) / np.sqrt(1.0 + shift**2)
        if not sizes:
            return np.asarray(bound.clip(rows_in_ball(behind, bound.l2_norm)))
        rows, start = np.zeros((len(behind), sum(sizes))), 0
        for size, scale, of_group, values in zip(sizes, scales, shares, behind.T, strict=True):
            if size == 1:
                rows[:, start] = scale * np.clip(of_group[0] + _NUMBER_DEVIATION * values, -1.0, 1.0)
            else:
                rows[np.arange(len(rows)), start + np.searchsorted(of_group, ndtr(values))] = scale
            start += size
        return rows

    return labels, rows_at
