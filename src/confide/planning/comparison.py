"""Mechanisms and currencies side by side, for one problem."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from confide.errors import ParameterError
from confide.planning.asked import estimator_with, plan_with_noise
from confide.privacy.budgets import ZCDP, ApproxDP, Budget, PureDP
from confide.privacy.mechanism import Plan


@dataclass(frozen=True, slots=True)
class Compared:
    """One mechanism at one problem.

    Attributes
    ----------
    mechanism : str
    plan : Plan or None
        None where it cannot be used, and `refusal` says why.
    refusal : str or None
    """

    mechanism: str
    plan: Plan | None
    refusal: str | None = None


def compare_mechanisms(estimator: Any, n_rows: int | None, n_features: int | None = None) -> tuple[Compared, ...]:
    """The plans of all mechanisms for one estimator, the one with the least expected distance first.

    Parameters
    ----------
    estimator : a classifier or regressor with a loss of the score
        Where its alpha is "auto" each mechanism has its own, so that distances speak of different minimisers; give a number
        to compare at one.
    n_rows, n_features : int or None
        As in the estimator's `plan`.
    """
    # Its own mechanism may be one that cannot be used.
    plan_with_noise(estimator_with(estimator, mechanism="auto"), n_rows, n_features)
    rows = []
    for name in ("objective", "output", "output-laplace"):
        asked = estimator_with(estimator, mechanism=name)
        try:
            rows.append(Compared(name, asked.plan(n_rows, n_features)))
        except ParameterError as refused:
            rows.append(Compared(name, None, str(refused)))
    return tuple(sorted(rows, key=lambda row: row.plan.expected_distance if row.plan else math.inf))


def equivalent_budgets(
    estimator: Any, n_rows: int | None, n_features: int | None = None, *, delta: float = 1e-6
) -> tuple[Budget, ...]:
    """Budgets of the three currencies at which one fit has as much noise as at the estimator's own budget.

    Not the same protection: noise of one size is worth another amount in each currency. Noise is measured on the weights
    where the loss adds no curvature (`Plan.noise_norm`), at the ridge of the estimator's plan.

    Parameters
    ----------
    estimator : a classifier or regressor with a loss of the score
    n_rows, n_features : int or None
        As in the estimator's `plan`.
    delta : float
        Of the approximate budget.

    Returns
    -------
    tuple
        PureDP, ApproxDP with this delta, ZCDP; the estimator's own budget stands in the place of its currency.
    """
    given = plan_with_noise(estimator, n_rows, n_features)
    target = given.noise_norm

    def noise_at(budget: Budget) -> float:
        plan: Plan = estimator_with(estimator, alpha=given.alpha, budget=budget).plan(n_rows, n_features)
        # A ridge that the proof raised would hide noise.
        return float(plan.noise_norm * plan.l2 / given.l2)

    makers: dict[str, Callable[[float], Budget]] = {
        "pure": PureDP,
        "approximate": lambda epsilon: ApproxDP(epsilon, delta),
        "zcdp": ZCDP,
    }
    return tuple(given.budget if given.budget.kind == kind else _at(make, noise_at, target) for kind, make in makers.items())


def _at(make: Callable[[float], Budget], noise_at: Callable[[Budget], float], target: float) -> Budget:
    """The budget with this much noise, by bisection of the logarithm."""
    low, high = 1e-6, 1e6
    if not noise_at(make(high)) <= target <= noise_at(make(low)):
        raise ParameterError("no budget between 1e-6 and 1e6 of another currency has so much noise.")
    while high > low * (1.0 + 1e-4):
        middle = math.sqrt(low * high)
        low, high = (middle, high) if noise_at(make(middle)) > target else (low, middle)
    return make(high)
