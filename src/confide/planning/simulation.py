"""What a private classifier will probably reach, by fits to made-up rows: public facts and two guesses in, an error out.

A bound (`utility_bound`) says the worst that can happen; this says what usually does. Rows are drawn from a design that
knows the schema, or the bound on rows, and nothing else. Of rows in a ball, few directions hold most of the length, as of
most real ones: spread evenly, they would let noise in from all. The label shifts what is behind each column, as far as makes
a model err as often as the user expects without privacy. Then the plan's own noise is added and the perturbed problems are
solved as one batch, over several designs. Real columns hang together otherwise than made-up ones, so the range is not that
of simulated fits: it is as wide as real data sets asked for. How the design and the range were calibrated on public data
sets, and how far forecasts were from the measured error of data sets left out: benchmarks/README.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np
from scipy.special import ndtr, ndtri

from confide.data.arrays import ArrayBlocks, MemorySource
from confide.erm.group_bounds import GroupBound
from confide.erm.losses import Loss
from confide.erm.objective import Objective
from confide.erm.row_bounds import RowBound, norm_with_intercept
from confide.errors import ParameterError
from confide.features.encoder import Encoder
from confide.planning.asked import is_number
from confide.privacy.mechanism import Plan, Problem
from confide.privacy.noise import Entropy
from confide.solvers.fallback import NewtonThenFallback
from confide.solvers.lbfgs import LimitedMemory
from confide.solvers.sampled import Metric
from confide.types import Array

_ROWS = 6000
"""Made-up rows of a design: more change forecasts by less than designs differ."""
_DESIGNS, _DRAWS = 6, 4
_WIDE, _WIDE_DESIGNS = 200, 3
"""Fewer designs for more weights, whose fits cost more: designs differ the less, the more columns they are drawn for."""
_MOST_STEPS, _MOST_SLOW_STEPS = 40, 8
"""In the metric of one Hessian, which serves as long as a fit is near."""
_SKEW = 1.0
"""Levels of a category have shares in proportion to 1 / rank^skew."""
_SPREAD = 0.35
"""Standard deviation of a number whose bounds are -1 and 1."""
_DECAY = 0.5
"""How far the label shifts what is behind a group of columns, or an axis: in proportion to 1 / rank^decay."""


_STRONGEST = 30.0
"""A signal at which a column tells the label."""
_LITTLE_RIDGE = 1e-4
"""Over the squared norm of a row, of the fit without noise."""
_NEAR = 0.5
"""How near a made-up fit's error is to be to the guess, in standard errors of mistakes on the new rows."""
_COMMON = 0.3
"""Correlation of what is behind two groups of columns."""
_FALL = 1.0
"""Of rows in a ball: variances along the axes of their covariance are in proportion to 1 / rank^fall."""
_MEAN = 0.5
"""Of rows in a ball: the part of their mean square that is the square of their mean."""
_FACTOR, _FLOOR = 3.0, 0.0075
"""How far real errors may be from a forecast: in what privacy adds, and beside it. The narrowest range on seven public data
sets that holds COVERAGE of the cells of each, and of each where it was chosen on the other six (benchmarks/planner.py)."""
COVERAGE = 0.8
"""The share of cells (budgets and losses) of each data set whose mean error a range had to hold."""


@dataclass(frozen=True, slots=True)
class Forecast:
    """What to expect of one fit. Made without data.

    Attributes
    ----------
    error : float
        Expected share of mistakes on new rows.
    low, high : float
        Between which the mean error of fits to real rows probably lies. It did in at least four in five of the cells of each
        public data set that the range was calibrated on; benchmarks/README.md has it for others.
    non_private_error : float
        The user's guess, which it is built on.
    constant_error : float
        Of the more frequent class for every row.
    plan : Plan
    """

    error: float
    low: float
    high: float
    non_private_error: float
    constant_error: float
    plan: Plan


def simulate(
    estimator: Any,
    n_rows: int | None,
    n_features: int | None = None,
    *,
    error: float,
    positive_rate: float = 0.5,
    seed: int = 0,
) -> Forecast:
    """Forecast the test error of a private classifier, before any data.

    Parameters
    ----------
    estimator : LogisticRegression, LinearSVC or KernelSVC for two classes, with a finite budget
    n_rows, n_features : int or None
        As in the estimator's `plan`.
    error : float, in (0, min(positive_rate, 1 - positive_rate))
        Test error that a model without privacy is expected to reach: the strength of the signal. A guess from the
        literature or a pilot study, not from the data to be protected.
    positive_rate : float, in (0, 1)
        Expected share of the rarer or positive class.
    seed : int
        Of the made-up rows and of noise that no release uses.

    Returns
    -------
    Forecast

    Raises
    ------
    ParameterError
        For guesses that contradict each other, and for estimators of another kind.
    """
    if not is_number(positive_rate) or not 0.0 < positive_rate < 1.0:
        raise ParameterError("positive_rate must lie strictly between 0 and 1.")
    if isinstance(seed, bool) or not isinstance(seed, (int, np.integer)) or seed < 0:
        raise ParameterError("seed must be a whole number of at least 0.")
    constant = min(positive_rate, 1.0 - positive_rate)
    if not is_number(error) or not 0.0 < error < constant:
        raise ParameterError(
            f"error must lie between 0 and {constant:g}, the error of always saying the more frequent class: a model "
            f"without privacy should do better than that."
        )
    plan = estimator.plan(n_rows, n_features)
    if (
        not isinstance(plan, Plan)
        or plan.lattice is None
        or not hasattr(estimator, "classes")
        or plan.problem.loss.n_outputs > 1
    ):
        raise ParameterError("simulations are for private classifiers of two classes.")
    problem = plan.problem
    # A model that errs as often is looked for once, however many budgets it is asked for.
    n_rows = min(_ROWS, problem.n_rows_low)
    encoded = _bound_of_encoded(estimator, problem)
    facts = _Facts(problem.loss, problem.row_bound, encoded, problem.n_features, problem.intercept, n_rows)
    designs = _DESIGNS if problem.n_weights <= _WIDE else _WIDE_DESIGNS
    errors = np.concatenate(
        [_with_noise(plan, _made_up(facts, error, positive_rate, seed + k), seed + k) + error for k in range(designs)]
    )
    forecast = float(errors.mean())
    return Forecast(forecast, *_range(forecast, error, constant), error, constant, plan)


def _range(forecast: float, non_private: float, constant: float) -> tuple[float, float]:
    """What privacy adds, divided and multiplied by a factor, and a floor; hardly above the error of no model."""
    added = forecast - non_private
    low, high = non_private + added / _FACTOR, min(non_private + _FACTOR * added, max(constant, forecast))
    return max(0.0, low - _FLOOR), min(1.0, high + _FLOOR)


def _bound_of_encoded(estimator: Any, problem: Problem) -> RowBound:
    """The bound that rows have before the fit clips them: that of the schema, where its columns are what is fitted."""
    encoder = None if estimator.schema is None else Encoder(estimator.schema)
    return problem.row_bound if encoder is None or encoder.n_features != problem.n_features else encoder.row_bound


def _with_noise(plan: Plan, made_up: _MadeUp, seed: int) -> Array:
    """(draws,) errors that privacy adds to that of the exact fit."""
    # So few rows speak for all: of the sum over n rows they are a part, and so are ridge and noise.
    part = made_up.facts.n_rows / plan.problem.n_rows_low
    entropy, nothing = Entropy.seeded(seed), np.zeros((1, plan.problem.n_weights))
    noise = (
        np.concatenate([plan.noise.draw(entropy) for _ in range(_DRAWS)]) if plan.noise else np.repeat(nothing, _DRAWS, 0)
    )
    if plan.perturbs_objective:
        private = made_up.minimisers(part * plan.l2, part * noise, np.zeros_like(noise))
    else:
        private = made_up.minimisers(part * plan.l2, nothing, nothing) + noise
    released = private if plan.lattice is None else plan.lattice.release(private, entropy)
    return np.maximum(0.0, made_up.errors(released) - made_up.error)


@dataclass(frozen=True, slots=True)
class _Facts:
    """What a design must know of a problem."""

    loss: Loss
    row_bound: RowBound
    encoded: RowBound
    """What rows are made within; a fit clips them to `row_bound`."""
    n_features: int
    intercept: float
    n_rows: int


@dataclass(frozen=True, slots=True, eq=False)
class _MadeUp:
    """Rows to fit and as many new ones as are needed to count mistakes."""

    facts: _Facts
    rows: Array
    labels: Array
    error: float = math.nan
    """Of the fit without noise, on the new rows; the guess, where so few rows reach it at no strength of the signal."""

    def minimisers(self, l2: float, linear: Array, start: Array) -> Array:
        """(k, D) weights."""
        facts, m = self.facts, self.facts.n_rows
        source = MemorySource(ArrayBlocks(self.rows[:m]), self.labels[:m])
        objective = Objective(source, facts.loss, facts.row_bound, facts.intercept, l2, linear)
        enough = 1e-6 * m * objective.row_norm
        if start.shape[1] <= _WIDE:
            return NewtonThenFallback().solve(objective, start, enough).weights
        # A Hessian of many weights takes the time of many gradients. One is shared by all problems and all steps.
        middle = replace(objective, linear=linear.mean(axis=0, keepdims=True))
        metric = Metric.of(middle.evaluate(start.mean(axis=0, keepdims=True), order=2).hessian[0])
        method = LimitedMemory(_MOST_STEPS, metric=metric, most_slow_steps=_MOST_SLOW_STEPS)
        solution = method.solve(objective, start, enough)
        weights, left = solution.weights, np.flatnonzero(~(solution.gradient_norm <= enough))
        if left.size:
            weights[left] = NewtonThenFallback().solve(objective.restrict(left), weights[left], enough).weights
        return weights

    def errors(self, weights: Array) -> Array:
        """(k,) shares of mistakes on the new rows."""
        fresh, labels = self.facts.row_bound.clip(self.rows[self.facts.n_rows :]), self.labels[self.facts.n_rows :]
        if self.facts.intercept:
            fresh = np.column_stack([fresh, np.full(len(fresh), self.facts.intercept)])
        return np.asarray(((fresh @ weights.T > 0.0) != (labels[:, None] > 0)).mean(axis=0))


@lru_cache(maxsize=2 * _DESIGNS)
def _made_up(facts: _Facts, error: float, positive_rate: float, seed: int) -> _MadeUp:
    """Rows of a design whose strength is such that a fit without noise, and with little ridge, errs as often as this."""
    design = _Design.drawn(facts.encoded, facts.n_features, _ROWS + facts.n_rows, positive_rate, seed)
    little = _LITTLE_RIDGE * facts.n_rows * norm_with_intercept(facts.row_bound, facts.intercept) ** 2
    nothing = np.zeros((1, facts.n_features + (facts.intercept != 0.0)))
    weights, low, high = nothing, 0.02, _STRONGEST
    while True:
        middle = math.sqrt(low * high)
        made_up = _MadeUp(facts, design.rows(middle), design.labels)
        weights = made_up.minimisers(little, nothing, weights)
        exact = float(made_up.errors(weights)[0])
        # No nearer than mistakes on so many rows can tell.
        if high < 1.1 * low or abs(exact - error) < _NEAR * math.sqrt(error * (1.0 - error) / _ROWS):
            return replace(made_up, error=exact if high < _STRONGEST else error)
        low, high = (middle, high) if exact > error else (low, middle)


@dataclass(frozen=True, slots=True)
class _Design:
    """Made-up rows but for the strength of the signal."""

    bound: RowBound
    labels: Array
    latent: Array
    """(n, groups): standard normal, what is behind a group of columns apart from the label; of a ball, behind each axis."""
    importance: Array
    """(groups,)"""
    shares: tuple[Array, ...]
    """Of the levels of each group, added up; for a number, its middle. Empty for a ball."""

    @classmethod
    def drawn(cls, bound: RowBound, n_features: int, n: int, positive_rate: float, seed: int) -> _Design:
        """At random, from a public seed; no row of anybody is involved."""
        entropy = Entropy.seeded(seed)

        def uniform(*shape: int) -> Array:
            words = np.frombuffer(entropy.read(8 * math.prod(shape)), dtype="<u8").reshape(shape)
            return np.asarray(((words >> 11) + 0.5) * 2.0**-53, dtype=np.float64)

        def ranks(size: int) -> Array:
            """1 to size in some order."""
            return np.asarray(1.0 + uniform(size).argsort(), dtype=np.float64)

        labels: Any = np.where(uniform(n) < positive_rate, 1, -1).astype(np.int8)
        if not isinstance(bound, GroupBound):
            # Noise and ridge are the same in all directions, so the axes may be those of the columns.
            return cls(bound, labels, ndtri(uniform(n, n_features)), np.arange(1.0, n_features + 1.0) ** -_DECAY, ())
        sizes = bound.sizes
        latent = math.sqrt(_COMMON) * ndtri(uniform(n, 1)) + math.sqrt(1.0 - _COMMON) * ndtri(uniform(n, len(sizes)))
        importance = ranks(len(sizes)) ** -_DECAY
        shares: list[Array] = []
        for size in sizes:
            levels = ranks(size) ** -_SKEW
            shares.append(np.cumsum(levels / levels.sum(), dtype=np.float64)[:-1] if size > 1 else 1.4 * uniform(1) - 0.7)
        return cls(bound, labels, latent, importance, tuple(shares))

    def rows(self, strength: float) -> Array:
        """(n, d) rows within the bound; each group is shifted by the label, the important ones the most."""
        shift = strength * self.importance
        behind = (self.latent + self.labels[:, None] * shift) / np.sqrt(1.0 + shift**2)
        if not isinstance(self.bound, GroupBound):
            variances = np.arange(1.0, behind.shape[1] + 1.0) ** -_FALL
            behind *= self.bound.l2_norm * np.sqrt((1.0 - _MEAN) * variances / variances.sum())
            # Along the axis of least variance, which the label shifts least.
            behind[:, -1] += self.bound.l2_norm * math.sqrt(_MEAN)
            return np.asarray(self.bound.clip(behind))
        rows, start = np.zeros((len(behind), sum(self.bound.sizes))), 0
        for size, scale, shares, values in zip(self.bound.sizes, self.bound.scales, self.shares, behind.T, strict=True):
            if size == 1:
                rows[:, start] = scale * np.clip(shares[0] + _SPREAD * values, -1.0, 1.0)
            else:
                rows[np.arange(len(rows)), start + np.searchsorted(shares, ndtr(values))] = scale
            start += size
        return rows
