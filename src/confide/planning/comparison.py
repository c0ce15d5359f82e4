"""Mechanisms and kinds of budget compared for one problem."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from typing import Any

from scipy.optimize import brentq

from confide.errors import ParameterError
from confide.planning.estimator_copies import (
    estimator_with,
    estimator_with_chosen_features,
    estimator_with_chosen_schema,
    estimator_without_shares,
)
from confide.privacy.budgets import ZCDP, ApproxDP, Budget, PureDP
from confide.privacy.gradient import NoisyGradients
from confide.privacy.mechanism import Mechanism, Plan
from confide.training.interval_share import beside_weights, share_of
from confide.training.mechanism_choice import MECHANISM_NAMES, MECHANISMS

_BUDGET_TOLERANCE = 1e-5
"""Relative error allowed in a budget with as much noise as another."""


@dataclass(frozen=True, slots=True)
class Compared:
    """The plan of one mechanism for one problem.

    Attributes
    ----------
    mechanism : str
    plan : Plan or None
        None if the mechanism cannot be used.
    refusal : str or None
        Why it cannot be used.
    """

    mechanism: str
    plan: Plan | None
    refusal: str | None = None


def compare_mechanisms(estimator: Any, n_rows: int | None, n_features: int | None = None) -> tuple[Compared, ...]:
    """The plans of all mechanisms for one estimator, the one with the least expected distance first.

    Parameters
    ----------
    estimator : a classifier or regressor with a loss of the score
        If its alpha or loss is "auto", each mechanism chooses its own, as in a fit. Distances are then measured from
        different minimisers, so a smaller one need not be better. To compare distances, give a number and a name.
    n_rows, n_features : int or None
        As in the estimator's `plan`.

    Returns
    -------
    tuple of Compared

    Raises
    ------
    ParameterError
        If the estimator has no loss of the score, or a parameter is outside its range.
    """
    if hasattr(estimator, "chosen_schema"):
        # Distances can be compared between the same columns alone.
        estimator = estimator_with_chosen_schema(estimator, n_rows, n_features)
        n_features = None
    # Checked for "auto", because the estimator's own mechanism may be one that cannot be used.
    estimator = estimator_with_chosen_features(estimator_with(estimator, mechanism="auto"), n_rows, n_features)
    _plan_with_noise(estimator, n_rows, n_features)
    rows = []
    for name in MECHANISM_NAMES[1:]:
        candidate = estimator_with(estimator, mechanism=name)
        try:
            rows.append(Compared(name, candidate.plan(n_rows, n_features)))
        except ParameterError as refused:
            rows.append(Compared(name, None, str(refused)))
    return tuple(sorted(rows, key=lambda row: row.plan.expected_distance if row.plan else math.inf))


def equivalent_budgets(
    estimator: Any, n_rows: int | None, n_features: int | None = None, *, delta: float = 1e-6
) -> tuple[Budget, ...]:
    """Budgets of the three kinds at which one plan has as much noise as at the estimator's own budget.

    The mechanism, the loss, the bounds, the alpha and the share for intervals stay those of the estimator's plan without a
    centre of the rows. Noise is measured on the weights where the loss adds no curvature (`Plan.noise_norm`). To fit at one
    of these budgets, give the estimator the alpha, the loss and the share of the plan, because it would choose others for
    another budget.

    These budgets do not protect equally: the same amount of noise gives another guarantee in each kind of budget.

    Parameters
    ----------
    estimator : a classifier or regressor with a loss of the score
    n_rows, n_features : int or None
        As in the estimator's `plan`.
    delta : float
        Delta of the approximate budget.

    Returns
    -------
    tuple
        PureDP, ApproxDP with this delta, ZCDP. For its own kind, the estimator's budget itself. For noisy gradients there is
        no PureDP.

    Raises
    ------
    ParameterError
        If the estimator has no loss of the score, or a parameter is outside its range.
    """
    # Pure budgets have no centre of the rows, so budgets are compared without one.
    given = _plan_with_noise(estimator_without_shares(estimator), n_rows, n_features)
    intervals, alone = given.intervals, replace(given.problem, beside_mu=0.0)

    descent = given.descent
    mechanism: Mechanism = (
        MECHANISMS[given.mechanism] if descent is None else NoisyGradients(lambda problem, _: (problem, descent))
    )

    def excess_noise(make: Callable[[float], Budget], log_size: float) -> float:
        budget, problem = make(math.exp(log_size)), alone
        if intervals is not None and isinstance(budget, ApproxDP) and intervals.is_joint:
            problem = replace(alone, beside_mu=beside_weights(budget, problem.rows_per_person, intervals.share)[0])
        elif intervals is not None:
            budget = share_of(budget, 1.0 - intervals.share)
        plan = mechanism.plan(problem, budget)
        # Multiplied by the ridge, because a ridge that the proof raised makes the noise on the weights smaller.
        return math.log(plan.noise_norm * plan.l2) - math.log(given.noise_norm * given.l2)

    makers: dict[str, Callable[[float], Budget]] = {
        "pure": PureDP,
        "approximate": lambda epsilon: ApproxDP(epsilon, delta),
        "zcdp": ZCDP,
    }
    if descent is not None:
        # It adds Gaussian noise, which no pure budget allows.
        del makers["pure"]
    own = given.event.budget
    return tuple(
        own if own.kind == kind else _budget_without_excess(make, partial(excess_noise, make))
        for kind, make in makers.items()
    )


def _budget_without_excess(make: Callable[[float], Budget], excess_noise: Callable[[float], float]) -> Budget:
    """The budget at which `excess_noise`, a function of the logarithm of its size, is 0."""
    # Searched from large budgets down, because small ones may not be certified at this ridge.
    ends = [math.log(10.0) * power for power in range(6, -7, -1)]
    if excess_noise(ends[0]) <= 0.0:
        for high, low in pairwise(ends):
            if excess_noise(low) >= 0.0:
                return make(math.exp(brentq(excess_noise, low, high, xtol=_BUDGET_TOLERANCE)))
    raise ParameterError("no budget of another kind, between 1e-6 and 1e6, has so much noise.")


def _plan_with_noise(estimator: Any, n_rows: int | None, n_features: int | None) -> Plan:
    """The estimator's plan. Raises ParameterError if it has no noise, or noise in sums of squares."""
    plan = estimator.plan(n_rows, n_features)
    if not isinstance(plan, Plan) or plan.lattice is None:
        raise ParameterError(
            "mechanisms and budgets can be compared for private models with a loss of the score: classifiers, "
            "HuberRegressor and PoissonRegressor; not for noisy sums of Ridge, and not for an infinite budget."
        )
    return plan
