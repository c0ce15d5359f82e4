"""Mechanisms and currencies side by side, for one problem."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any

from scipy.optimize import brentq

from confide.errors import ParameterError
from confide.estimators.fitting import MECHANISMS, share_of
from confide.planning.checked_arguments import estimator_with, plan_with_noise
from confide.privacy.budgets import ZCDP, ApproxDP, Budget, PureDP
from confide.privacy.mechanism import Plan

_NEAR = 1e-5
"""Relative distance at which a budget is near enough to that with as much noise."""


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
        Where its alpha or loss is "auto" each mechanism has its own, as a fit would, so that distances speak of different
        minimisers and a smaller one need not be better. Give numbers and names to compare at one.
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
    """Budgets of the three currencies at which one plan has as much noise as at the estimator's own budget.

    Held fixed: the mechanism, the loss, the bounds, the alpha and the share for intervals of the estimator's plan. Noise is
    measured on the weights where the loss adds no curvature (`Plan.noise_norm`). An estimator with another budget and an
    automatic alpha, loss or share would choose others: give it those of the plan.

    Not the same protection: noise of one size is worth another amount in each currency.

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
    of_weights = 1.0 if given.intervals is None else 1.0 - given.intervals.share

    def excess_noise(make: Callable[[float], Budget], log_size: float) -> float:
        plan = MECHANISMS[given.mechanism].plan(given.problem, share_of(make(math.exp(log_size)), of_weights))
        # A ridge that the proof raised would hide noise.
        return math.log(plan.noise_norm * plan.l2) - math.log(given.noise_norm * given.l2)

    makers: dict[str, Callable[[float], Budget]] = {
        "pure": PureDP,
        "approximate": lambda epsilon: ApproxDP(epsilon, delta),
        "zcdp": ZCDP,
    }
    own = given.event.budget
    return tuple(own if own.kind == kind else _at(make, partial(excess_noise, make)) for kind, make in makers.items())


def _at(make: Callable[[float], Budget], excess_noise: Callable[[float], float]) -> Budget:
    """The budget with as much noise, by the logarithm of its size."""
    # From large budgets down: small ones may not be certified at this ridge, and need not be asked.
    ends = [math.log(10.0) * power for power in range(6, -7, -1)]
    if excess_noise(ends[0]) <= 0.0:
        for high, low in pairwise(ends):
            if excess_noise(low) >= 0.0:
                return make(math.exp(brentq(excess_noise, low, high, xtol=_NEAR)))
    raise ParameterError("no budget between 1e-6 and 1e6 of another currency has so much noise.")
