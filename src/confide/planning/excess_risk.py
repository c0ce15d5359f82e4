"""A bound on the loss on new rows, above that of the best weights of a given norm, with probability 1 - failure.

Chaudhuri, Monteleoni and Sarwate (2011), theorems 16 to 18, have such bounds up to constants. Here every constant is stated.
Let w0 be fixed weights of norm at most B, and let the fit add noise b to the objective and s to the weights. Then

    excess <= K + T,    K = min(c / 2 q^2, g q),    q^2 = mean of (x . s)^2 over the rows

where T is the least number with D(v) <= T + alpha |v|^2 - |alpha (w0 - s) + b / n| |v| for all v (`RowDeviations`). If the
rows deviate like D(v) <= t |v|, this is T = (|alpha (w0 - s) + b / n| + t)^2 / (4 alpha). The noise does not depend on w0
and on rows, so its quantiles are those of its law. Proofs: proofs/excess_risk.md, theorems 1 to 3.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from confide.errors import InsufficientRegularisation, ParameterError
from confide.planning.checked_arguments import check_failure, check_positive
from confide.planning.estimator_copies import estimator_with, estimator_without_shares
from confide.planning.noise_lengths import Lengths, OnGrid, Shaped, lengths_of
from confide.planning.row_deviations import Complexity, RowDeviations
from confide.planning.utility import has_utility_bound
from confide.privacy.budgets import Neighbours
from confide.privacy.mechanism import Plan
from confide.privacy.ridges_of_columns import largest_ridge_factor, ridge_factors

_SEAL_SHARE = 0.01
"""Share of the probability of failure for each of two events of the last step, where it is not the main noise."""
_ROW_SHARES, _PULL_SHARES = (0.05, 0.3, 0.7, 0.95), (0.25, 0.75)
"""Divisions of the probability of failure that are tried: the share of rows, and of the rest that of the length of noise."""
_GOLDEN = (math.sqrt(5.0) - 1.0) / 2.0
_SPAN, _N_STEPS = math.log(8.0), 9
"""How far from a first guess alpha is sought, in logarithms, and the number of steps of the search."""


@dataclass(frozen=True, slots=True)
class ExcessRiskBound:
    """A bound on the loss on new rows that holds with probability at least 1 - failure. Public: made before any row is read.

    Attributes
    ----------
    failure : float
    excess_risk : float
        How far the mean loss on new rows is at most above that of any fixed weights of norm at most `reference_norm`, if
        rows are independent draws from one population. The probability is over rows and noise.
    without_noise : float
        The same for the fit without privacy at the same alpha.
    reference_norm : float
        L2 norm of the weights to compare with, in the units of encoded rows and with the intercept; with a `penalty` their
        norm in that form.
    alpha : float
    excess_risk_of_zero : float
        A bound on the same number for weights of zero, which need no rows. A bound that is not below it is useless.
    """

    failure: float
    excess_risk: float
    without_noise: float
    reference_norm: float
    alpha: float
    excess_risk_of_zero: float

    @property
    def is_useful(self) -> bool:
        """Whether the bound says more than weights of zero do."""
        return self.excess_risk < self.excess_risk_of_zero

    def __str__(self) -> str:
        probability = f"{1.0 - self.failure:.15g}"
        if not self.is_useful:
            return f"No useful bound holds with probability {probability}: weights of zero, without any rows, satisfy it."
        return (
            f"With probability {probability}: mean loss on new rows at most {self.excess_risk:.3g} above that of any "
            f"weights of norm {self.reference_norm:g} ({self.without_noise:.3g} without privacy at the same alpha)."
        )


def excess_risk_bound(plan: Plan, *, reference_norm: float = 1.0, failure: float = 0.05) -> ExcessRiskBound:
    """How far the loss on new rows can be above that of the best weights of a norm.

    Parameters
    ----------
    plan : Plan
        A plan for a loss of the score, such as `LogisticRegression(..., centre=False).plan(n_rows, n_features)`.
    reference_norm : float, positive
        L2 norm of the weights to compare with.
    failure : float, in (0, 1)
        Probability, over rows and noise, that the bound does not hold.

    Returns
    -------
    ExcessRiskBound

    Raises
    ------
    ParameterError
        If a number lies outside its range, or no bound is proven for the plan: it needs a perturbed objective or noise on
        the weights, rows that are not centred, and one row a person.

    Notes
    -----
    The bound grows with log(1 / failure), where that of `utility_bound` grows with 1 / failure. It holds for every
    population of rows within the bounds and for every convex loss with these constants; the docstring of the module names
    the theorems.
    """
    check_positive(reference_norm=reference_norm)
    check_failure(failure)
    _check_plan(plan)
    problem, loss = plan.problem, plan.problem.loss_bounds
    alpha, steepness = plan.l2 / problem.n_rows_low, loss.lipschitz * problem.row_norm
    deviations = _deviations(plan)
    # In units in which all ridges are the least one, weights are longer by this factor at most, and rows no longer.
    stretch = math.sqrt(largest_ridge_factor(problem))
    distance = stretch * reference_norm + math.hypot(*problem.prior)
    excess = min(
        deviations.excess(alpha, pull, rows_failure) + _cost_of_moved_scores(plan, along)
        for rows_failure, pull, along in _divisions(plan, distance, failure)
    )
    without = deviations.excess(alpha, alpha * distance, failure)
    of_zero = min(loss.value_at_zero, steepness * reference_norm)
    return ExcessRiskBound(failure, excess, without, reference_norm, alpha, of_zero)


def least_excess_risk(
    estimator: Any, n_rows: int, n_features: int | None = None, *, reference_norm: float = 1.0, failure: float = 0.05
) -> tuple[Plan, ExcessRiskBound]:
    """The plan whose alpha makes the bound on the loss on new rows the least.

    Parameters
    ----------
    estimator : a classifier or regressor with a loss of the score
        Its alpha is not used, and its rows are not centred. "auto" is mechanism="objective" where it would be
        noisy gradients.
    n_rows, n_features : int or None
        As in the estimator's `plan`.
    reference_norm, failure : float
        As in `excess_risk_bound`.

    Returns
    -------
    (Plan, ExcessRiskBound)

    Raises
    ------
    ParameterError
        If a number lies outside its range, or no alpha is possible.
    """
    check_positive(reference_norm=reference_norm)
    check_failure(failure)

    def at(log_alpha: float) -> tuple[float, Plan | None, ExcessRiskBound | None]:
        try:
            plan = plan_without_centre(estimator, math.exp(log_alpha), n_rows, n_features)
        except InsufficientRegularisation:
            return math.inf, None, None
        bound = excess_risk_bound(plan, reference_norm=reference_norm, failure=failure)
        return bound.excess_risk, plan, bound

    middle = math.log(_first_alpha(estimator, n_rows, n_features, reference_norm, failure))
    _, plan, bound = _golden_section(at, middle - _SPAN, middle + _SPAN)
    if plan is None or bound is None:
        raise ParameterError("no alpha near the best one is possible at this budget: give more rows or a larger budget.")
    return plan, bound


def may_suffice(plan: Plan, excess: float, reference_norm: float) -> bool:
    """Whether the bound can be below `excess` at any alpha: without noise it is above the mean deviation of rows."""
    _check_plan(plan)
    return _deviations(plan).slope(1.0) * reference_norm <= excess


def plan_without_centre(estimator: Any, alpha: float, n_rows: int, n_features: int | None) -> Plan:
    """The plan of an estimator at this alpha by a mechanism for which bounds are proven, if it leaves the choice."""
    bounded = estimator_with(estimator_without_shares(estimator), alpha=alpha)
    plan: Plan = bounded.plan(n_rows, n_features)
    if plan.descent is not None and bounded.mechanism == "auto":
        plan = estimator_with(bounded, mechanism="objective").plan(n_rows, n_features)
    return plan


def _check_plan(plan: Any) -> None:
    """Raise ParameterError unless the theorems cover the plan."""
    if not isinstance(plan, Plan) or plan.lattice is None:
        raise ParameterError(
            "bounds on the loss are for plans of private models with a loss of the score, such as classifiers."
        )
    if not has_utility_bound(plan):
        raise ParameterError(
            "no bound is proven for noisy gradients, nor for rows that are centred, counts whose mean is matched, an l1 "
            "penalty or a penalty of your own. Plan with mechanism='objective', centre=False and the ridge, and for counts "
            "with match_mean=False, or forecast the error with simulate."
        )
    if plan.problem.rows_per_person > 1:
        raise ParameterError("the bound needs independent rows, so max_rows_per_person must be 1.")


def _deviations(plan: Plan) -> RowDeviations:
    problem, loss = plan.problem, plan.problem.loss_bounds
    complexity = Complexity.of(loss.n_outputs, is_monotone=loss.monotone)
    # With a private number of rows the least one is the worst: proofs/excess_risk.md, section 6.
    return RowDeviations(problem.n_rows_low, loss.lipschitz * problem.row_norm, complexity)


def _divisions(plan: Plan, distance: float, failure: float) -> Iterator[tuple[float, float, float]]:
    """Divisions of the probability of failure: the rows' part, the pull of ridge and noise, and the moved scores.

    The pull is |alpha (w0 - s) + b / n|, and the moved scores are the root of the mean of (x . s)^2 for rows of norm 1.
    """
    n, alpha = plan.problem.n_rows_low, plan.l2 / plan.problem.n_rows_low
    stretched = alpha * math.sqrt(largest_ridge_factor(plan.problem))
    assert plan.lattice is not None  # noqa: S101 - checked before
    last = OnGrid(plan.lattice)
    drift = plan.radius + 0.5 * math.sqrt(plan.lattice.dimension) * plan.lattice.step
    outputs = math.sqrt(plan.problem.loss.n_outputs)
    if plan.noise is None:
        main: Lengths = last
        left, seal_pull, seal_along = failure, 0.0, 0.0
    else:
        # Beside several ridges noise of a ball is no longer spherical, but no longer than it was.
        main = Shaped(plan.noise) if ridge_factors(plan.problem) else lengths_of(plan.noise)
        left = failure * (1.0 - 2.0 * _SEAL_SHARE)
        seal_pull, seal_along = last.from_point(0.0, failure * _SEAL_SHARE), outputs * last.along_rows(failure * _SEAL_SHARE)
    for rows in _ROW_SHARES:
        noise = (1.0 - rows) * left
        if plan.perturbs_objective:
            pull = main.from_point(plan.l2 * distance, noise) / n
            yield rows * left, pull + stretched * (seal_pull + drift), seal_along + drift
            continue
        for share in _PULL_SHARES:
            pull = stretched * main.from_point(distance, share * noise)
            along = outputs * main.along_rows((1.0 - share) * noise)
            yield rows * left, pull + stretched * (seal_pull + drift), along + seal_along + drift


def _cost_of_moved_scores(plan: Plan, along: float) -> float:
    """K for rows of the largest norm: what the loss on the rows rises by beyond its tangent when scores move."""
    problem, loss = plan.problem, plan.problem.loss_bounds
    moved = problem.row_norm * along
    # Slopes between -L and 0 are at most L from the tangent's, and slopes between -L and L at most 2 L.
    by_slope = (1.0 if loss.monotone and loss.n_outputs == 1 else 2.0) * loss.lipschitz * moved
    return min(by_slope, 0.5 * loss.smoothness * moved**2) if math.isfinite(loss.smoothness) else by_slope


def _first_alpha(estimator: Any, n_rows: int, n_features: int | None, reference_norm: float, failure: float) -> float:
    """The best alpha if noise and rows pulled by their quantiles: their sum over the norm of the weights."""
    parameters = estimator.get_params(deep=False)
    if parameters.get("neighbours") == Neighbours.ADD_OR_REMOVE_ONE and not parameters.get("n_rows_bounds"):
        raise ParameterError("under add-or-remove-one give n_rows_bounds.")
    alpha = 1.0
    for _ in range(3):
        plan = _possible_plan(estimator, alpha, n_rows, n_features)
        _check_plan(plan)
        noise = plan.noise_norm * plan.l2 / plan.problem.n_rows_low
        alpha = (_deviations(plan).slope(failure) + noise) / reference_norm
    return alpha


def _possible_plan(estimator: Any, alpha: float, n_rows: int, n_features: int | None) -> Plan:
    """The plan at this alpha or at the first of some larger ones that is possible."""
    for factor in 4.0 ** np.arange(12):
        try:
            return plan_without_centre(estimator, alpha * float(factor), n_rows, n_features)
        except InsufficientRegularisation:
            continue
    raise ParameterError("no alpha is possible at this budget: give more rows or a larger budget.")


def _golden_section(
    at: Callable[[float], tuple[float, Plan | None, ExcessRiskBound | None]], low: float, high: float
) -> tuple[float, Plan | None, ExcessRiskBound | None]:
    """The best of the points that a golden section search visits. Where alpha is too small no plan is possible."""
    left, right = high - _GOLDEN * (high - low), low + _GOLDEN * (high - low)
    at_left, at_right = at(left), at(right)
    best = min(at_left, at_right, key=lambda found: found[0])
    for _ in range(_N_STEPS):
        if at_left[0] < at_right[0]:
            high, right, at_right = right, left, at_left
            left = high - _GOLDEN * (high - low)
            at_left = at(left)
        else:
            low, left, at_left = left, right, at_right
            right = low + _GOLDEN * (high - low)
            at_right = at(right)
        best = min(best, at_left, at_right, key=lambda found: found[0])
    return best
