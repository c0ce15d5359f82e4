"""Forecasts for numbers, counts and three or more classes, by fits of the very estimator to made-up tables.

1. A table is drawn that knows only the schema, or the bound on rows. Columns depend on each other through a common cause.
2. What is predicted is a sum of effects of single columns, and chance. There is so much chance that a model that knows these
   effects errs as often as the user expects. For numbers and counts this error is what is left of the variance, 1 - R^2, or
   of the deviance.
3. The estimator is fitted to a table with its budget and without privacy. Where there are more rows than made-up ones, its
   budget is as much larger as there are fewer rows, so that noise is as large beside them.
4. This is repeated, and what privacy adds to the error is averaged.

benchmarks/forecasts.py compares forecasts with fits of real tables; benchmarks/forecasts.txt has the results.
"""

from __future__ import annotations

import math
import pickle
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache
from inspect import isclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.special import kl_div, ndtr, ndtri, softmax

from confide.array_types import Array
from confide.blocks import frame_of
from confide.budget_warnings import of_made_up_rows
from confide.erm.group_bounds import groups_of
from confide.errors import ParameterError
from confide.expected_noise import noise_in_rows
from confide.features.canonical_labels import Label
from confide.privacy.budgets import Budget, as_budget, with_amount
from confide.privacy.gaussian import mu_within
from confide.privacy.noise import Entropy

if TYPE_CHECKING:
    import pandas as pd

    from confide.features.columns import Column
    from confide.features.schema import Schema


# Copies of estimators with other parameters, to ask what a plan would be with them.


def parameters_of(estimator: Any) -> dict[str, Any]:
    """The parameters of an estimator that makes plans.

    Raises
    ------
    ParameterError
        If it is none.
    """
    if isclass(estimator) or not hasattr(estimator, "plan") or not hasattr(estimator, "get_params"):
        raise ParameterError("estimator must be an estimator of confide, such as LogisticRegression(1.0).")
    return estimator.get_params(deep=False)  # type: ignore[no-any-return]  # estimators are of any type here


def estimator_with(estimator: Any, **parameters: Any) -> Any:
    """A new estimator of the same kind, with these parameters replaced. The given one is not changed."""
    return type(estimator)(**parameters_of(estimator) | parameters)


def estimator_with_chosen_schema(estimator: Any, n_rows: int | None, n_features: int | None) -> Any:
    """The estimator, with all that it would choose for the columns of so many rows written into its schema."""
    if not hasattr(estimator, "chosen_schema"):
        return estimator
    return estimator_with(estimator, schema=estimator.chosen_schema(n_rows, n_features), bounds=None, interactions=())


_N_ROWS, _N_TEST = 2500, 2000
"""Made-up rows to train on, at most, and to test on."""
_N_FITS = {"numbers": 2, "counts": 8, "classes": 2}
"""Private fits for each made-up table. Predicted counts are exponentials of noisy scores, so their errors have a long tail:
the mean of few fits fell and rose again where rows were added."""
_CORRELATION = 0.3
"""Correlation between the latent variables of two columns, or of two groups of encoded columns."""
_DEVIATIONS = {"numbers": 0.12, "counts": 0.35, "classes": 0.25}
"""Of a number whose bounds are -1 and 1. That of classes was chosen by benchmarks/forecasts.py on some tables, and confirmed
on others; the other two were set by hand."""
_SIGNAL_DECAYS = {"numbers": 0.5, "counts": 0.5, "classes": 1.5}
_SIGNAL_DECAY_IN_BALL = 0.5
"""Columns have importances in proportion to 1 / rank^decay. Chosen with the deviations; for rows of no schema as in
`simulation`."""
_TARGET_MEAN, _TARGET_DEVIATION = -0.3, 0.3
"""Of targets whose bounds are -1 and 1. Prices, incomes and delays lie in the lower half of their range."""
_COUNT_MEAN = 0.125
"""The mean of counts as a share of the largest."""
_LARGEST_COUNT = 400.0
"""A larger target is a multiple of such a count: costs are made as counts of a unit."""
_MOST_SIGNAL = 60.0
_MOST_ROUNDS = 40
"""Of fitting the shares of made-up classes."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What is predicted: public facts.

    Attributes
    ----------
    kind : "numbers", "counts" or "classes"
    bounds : of numbers and counts; (0, 0) for classes
    labels : of classes
    largest_share : of rows in the most frequent class; the shares of the others fall with their rank
    """

    kind: str
    bounds: tuple[float, float]
    labels: tuple[Label, ...] = ()
    largest_share: float = 1.0

    @classmethod
    def of(cls, estimator: Any, plan: Any, largest_share: float | None) -> Outcome:
        """The outcome that an estimator predicts."""
        target = None if estimator.schema is None else estimator.schema.target
        if hasattr(estimator, "classes"):
            labels = tuple(target.labels) if target is not None else tuple(estimator.classes)
            share = 1.0 / len(labels) if largest_share is None else max(largest_share, 1.0 / len(labels))
            return cls("classes", (0.0, 0.0), labels, share)
        is_count = hasattr(plan.problem, "loss") and plan.problem.loss.constants.is_count
        bounds = None if target is None else target.bounds
        ends = (getattr(estimator, "target_low", None), getattr(estimator, "target_high", None))
        if bounds is None and ends[0] is not None and ends[1] is not None:
            bounds = ends
        if bounds is None:
            bounds = (0.0 if is_count else -float(estimator.target_bound), float(estimator.target_bound))
        return cls("counts" if is_count else "numbers", bounds)

    @property
    def constant_error(self) -> float:
        """The error of an answer that is always the same."""
        return 1.0 - self.largest_share if self.kind == "classes" else 1.0


def errors_of_fits(estimator: Any, plan: Any, outcome: Outcome, error: float, seed: int, n_designs: int) -> list[float]:
    """What privacy adds to the error on new rows, once for each private fit; the estimator chooses nothing for its columns.

    Raises
    ------
    ParameterError
        If such an estimator cannot be fitted to made-up rows.
    """
    if estimator.schema is not None:
        estimator = estimator_with(estimator, schema=estimator.schema.plain)
    n_rows = min(_N_ROWS, plan.problem.n_rows_low)
    plain: dict[str, Any] = {"ledger": None, "random_state": None}
    if plan.problem.n_rows_low != plan.problem.n_rows_high:
        # As far apart as the bounds that were declared.
        plain["n_rows_bounds"] = n_rows, math.ceil(n_rows * plan.problem.n_rows_high / plan.problem.n_rows_low)
    smaller = estimator_with(estimator, **plain)
    smaller = estimator_with(smaller, budget=_budget_for(smaller, plan, n_rows))
    exact = estimator_with(smaller, budget=math.inf, mechanism="auto")
    bound = plan.problem.row_bound if estimator.schema is None else None
    added, n_fits = [], _N_FITS[outcome.kind]
    with of_made_up_rows():
        for design in range(seed, seed + n_designs):
            table = _table(estimator.schema, bound, plan.problem.n_features, outcome, error, design)
            best = _without_privacy(exact, table, outcome, n_rows, design)
            seeds = range(n_fits * design, n_fits * (design + 1))
            added += [max(0.0, _fitted(smaller, table, outcome, n_rows, seed) - best) for seed in seeds]
    return added


def _without_privacy(exact: Any, table: _Table, outcome: Outcome, n_rows: int, seed: int) -> float:
    """The error of the fit without privacy, which plans with other budgets for the same table ask for again."""
    try:
        key = pickle.dumps((n_rows, exact.get_params(deep=False)))
    except (pickle.PicklingError, AttributeError, TypeError):  # a loss of the user's own that cannot be written
        return _fitted(exact, table, outcome, n_rows, seed)
    if key not in table.best:
        table.best[key] = _fitted(exact, table, outcome, n_rows, seed)
    return table.best[key]


def _budget_for(estimator: Any, plan: Any, n_rows: int) -> Budget:
    """The budget at which noise is as large beside so many rows as the plan's is beside its own."""
    budget = as_budget(estimator.budget)
    times = plan.problem.n_rows_low / n_rows
    if times == 1.0:
        return budget
    if budget.is_concentrated:
        return with_amount(budget, budget.amount * times**2)
    candidates = [with_amount(budget, budget.amount * times)]
    if budget.is_approximate:
        wanted = times * mu_within(budget)
        log_epsilon = brentq(lambda log: mu_within(with_amount(budget, math.exp(log))) - wanted, -18.0, 18.0)
        candidates.append(with_amount(budget, math.exp(log_epsilon)))

    n_public = n_rows if plan.problem.n_rows_low == plan.problem.n_rows_high else None

    def distance(candidate: Budget) -> float:
        n_features = None if estimator.schema is not None else int(plan.problem.n_features)
        smaller = estimator_with(estimator, budget=candidate).plan(n_public, n_features)
        return abs(math.log(_share(smaller) / _share(plan)))

    return min(candidates, key=distance) if len(candidates) > 1 else candidates[0]


def _share(plan: Any) -> float:
    noise = plan.diagonal_deviation if hasattr(plan, "diagonal_deviation") else noise_in_rows(plan)
    return float(noise) / float(plan.problem.n_rows_low)


@dataclass(frozen=True, slots=True, eq=False)
class _Table:
    """Made-up rows and targets: `_N_ROWS` to train on, at most, then those to test on; and errors of fits without privacy.

    Forecasts for other numbers of rows are tested on the same rows, so that chance tells less between them.
    """

    rows: Array | pd.DataFrame
    targets: NDArray[np.generic]
    best: dict[bytes, float] = field(default_factory=dict)


def _fitted(estimator: Any, table: _Table, outcome: Outcome, n_rows: int, seed: int) -> float:
    """The error of a fit on the test rows."""
    model = estimator_with(estimator, random_state=seed)
    model.fit(table.rows[:n_rows], table.targets[:n_rows])
    fresh, targets = table.rows[_N_ROWS:], np.asarray(table.targets[_N_ROWS:])
    predicted = np.asarray(model.predict(fresh))
    if outcome.kind == "classes":
        return float(np.mean(predicted != targets))
    mean = float(np.mean(targets))
    if outcome.kind == "counts":
        return _deviance(targets, predicted) / _deviance(targets, np.full(len(targets), mean))
    return float(np.mean((predicted - targets) ** 2) / np.mean((targets - mean) ** 2))


def _deviance(counts: Array, means: Array) -> float:
    """Half the mean Poisson deviance."""
    return float(np.mean(kl_div(counts, np.maximum(means, 1e-9))))


def uniform_numbers(seed: int) -> Callable[..., Array]:
    """A function from a shape to numbers of that shape between 0 and 1, the next ones of a public seed."""
    entropy = Entropy.seeded(seed)

    def uniform(*shape: int) -> Array:
        words = np.frombuffer(entropy.read(8 * math.prod(shape)), dtype="<u8").reshape(shape)
        return np.asarray(((words >> 11) + 0.5) * 2.0**-53, dtype=np.float64)

    return uniform


def correlated(uniform: Callable[..., Array], n_rows: int, n_columns: int) -> Array:
    """(n_rows, n_columns) standard normal numbers with a common cause: the latent variables behind columns."""
    common = math.sqrt(_CORRELATION) * ndtri(uniform(n_rows, 1))
    return np.asarray(common + math.sqrt(1.0 - _CORRELATION) * ndtri(uniform(n_rows, n_columns)))


_VARIANCE_DECAY = 1.0
"""For rows in a ball: variances along the axes of their covariance are in proportion to 1 / rank^decay."""
_MEAN_SHARE = 0.5
"""For rows in a ball: squared norm of the mean row, as a share of the mean squared norm of a row."""


def rows_in_ball(latent: Array, norm: float) -> Array:
    """Rows with these normal numbers along the axes of their covariance, of this mean norm, which are to be clipped.

    The mean row lies along the axis of least variance, which a target shifts least.
    """
    variances = np.arange(1.0, latent.shape[1] + 1.0) ** -_VARIANCE_DECAY
    rows = np.asarray(latent * (norm * np.sqrt((1.0 - _MEAN_SHARE) * variances / variances.sum())))
    rows[:, -1] += norm * math.sqrt(_MEAN_SHARE)
    return rows


@lru_cache(maxsize=8)
def _table(schema: Schema | None, bound: Any, n_features: int, outcome: Outcome, error: float, seed: int) -> _Table:
    """A made-up table of a public seed, whose best prediction errs as given."""
    uniform, size = uniform_numbers(seed), _N_ROWS + _N_TEST
    n_columns = n_features if schema is None else len(schema.columns)
    latent = correlated(uniform, size, n_columns)
    n_signals = len(outcome.labels) or 1
    decay = _SIGNAL_DECAY_IN_BALL if schema is None else _SIGNAL_DECAYS[outcome.kind]
    importance = (1.0 + uniform(n_columns).argsort()) ** -decay
    signals = np.zeros((size, n_signals))
    if schema is None:
        rows: Any = _DEVIATIONS[outcome.kind] * latent
        if not groups_of(bound)[0]:
            # In a ball, a few directions hold most of the length, and half of it is the mean.
            rows = rows_in_ball(latent, bound.l2_norm)
        rows = np.asarray(bound.clip(rows))
        signals = rows / rows.std(axis=0) * importance @ ndtri(uniform(n_columns, n_signals))
    else:
        cells: dict[str, Any] = {}
        for place, column in enumerate(schema.columns):
            cells[column.name], effects = _column(column, latent[:, place], _DEVIATIONS[outcome.kind], uniform, n_signals)
            signals += importance[place] * effects
        if schema.choosing is not None:
            cells[schema.choosing] = np.full(size, schema.cohort[1]) if schema.cohort else np.arange(size)
        for one in schema.beside:
            cells[one.column] = np.full(size, getattr(one, "mean", None) or one.high)
        rows = frame_of(cells)
    return _Table(rows, _targets(outcome, (signals - signals.mean(axis=0)) / signals.std(axis=0), error, uniform))


def _column(column: Column, latent: Array, deviation: float, uniform: Any, n_signals: int) -> tuple[Any, Array]:
    """Cells of a column (n,), and what they add to each signal (n, signals), with a variance of about 1."""
    if not column.is_number:
        shares = (1.0 + uniform(len(column.categories)).argsort()) ** -1.0
        levels = np.searchsorted(np.cumsum(shares / shares.sum())[:-1], ndtr(latent))
        return np.array(column.categories)[levels], ndtri(uniform(len(column.categories), n_signals))[levels]
    if (column.low, column.high) == (0.0, 1.0):
        # Such a column is most often a flag.
        values = np.where(latent > ndtri(0.5 + 0.4 * float(uniform(1)[0])), 1.0, -1.0)
    else:
        values = np.clip(1.4 * float(uniform(1)[0]) - 0.7 + deviation * latent, -1.0, 1.0)
    spread = max(float(values.std()), 1e-9)
    slopes = np.ones(1) if n_signals == 1 else ndtri(uniform(n_signals))
    return column.numbers_at(0.5 + 0.5 * values), (values - values.mean())[:, None] / spread * slopes


def _targets(outcome: Outcome, signals: Array, error: float, uniform: Any) -> Any:
    """Targets (n,) that a model which knows the signals predicts with this error."""
    size, (low, high) = len(signals), outcome.bounds
    if outcome.kind == "numbers":
        mixed = math.sqrt(1.0 - error) * signals[:, 0] + math.sqrt(error) * ndtri(uniform(size))
        return low + (high - low) * np.clip(0.5 + 0.5 * (_TARGET_MEAN + _TARGET_DEVIATION * mixed), 0.0, 1.0)
    chance = uniform(size)
    if outcome.kind == "counts":
        unit = max(1.0, high / _LARGEST_COUNT)

        def counts_at(strength: float) -> tuple[Array, Array]:
            means = _COUNT_MEAN * high / unit * np.exp(strength * signals[:, 0] - 0.5 * strength**2)
            chances = np.zeros(size)
            below, term = np.exp(-means), np.exp(-means)
            for count in range(1, math.floor(high / unit) + 1):
                chances += chance > below
                term = term * means / count
                below = below + term
            return chances, means

        def left(strength: float) -> float:
            counts, means = counts_at(strength)
            return _deviance(counts, means) / _deviance(counts, np.full(size, counts.mean())) - error

        return unit * counts_at(_strength(left, 4.0))[0]
    # In proportion to 1 / rank^s, with the s at which the share of the most frequent class is as given.
    ranks = np.arange(1.0, len(outcome.labels) + 1.0)
    falling = ranks ** -brentq(lambda s: 1.0 / np.sum(ranks**-s) - outcome.largest_share, -1e-9, 60.0)
    shares = falling / falling.sum()

    def chances_at(strength: float) -> Array:
        """(size, classes) chances of the classes, each of which has its share of the rows."""
        logits, offsets = strength * signals, np.log(shares)
        for _ in range(_MOST_ROUNDS):
            # A part of the rows is enough to tell shares.
            change = np.log(shares / np.maximum(softmax(logits[::4] + offsets, axis=1).mean(axis=0), 1e-12))
            offsets = offsets + change
            if np.abs(change).max() < 0.01:
                break
        return np.asarray(softmax(logits + offsets, axis=1))

    def mistakes(strength: float) -> float:
        return float(np.mean(1.0 - chances_at(strength).max(axis=1))) - error

    cumulated = chances_at(_strength(mistakes, _MOST_SIGNAL)).cumsum(axis=1)
    return np.array(outcome.labels)[(chance[:, None] > cumulated[:, :-1]).sum(axis=1)]


def _strength(excess: Any, most: float) -> float:
    """The least strength of a signal at which an error is as wanted; a large one if none is found."""
    # Counts end at a largest one, so their error rises again where the signal is strong.
    below = next((most / 2.0**step for step in range(7, -1, -1) if excess(most / 2.0**step) < 0.0), None)
    if below is None or excess(1e-3) <= 0.0:
        return most if below is None else 1e-3
    return float(brentq(excess, 1e-3, below, xtol=1e-3))
