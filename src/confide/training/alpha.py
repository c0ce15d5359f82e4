"""How alpha, the ridge, is chosen: from public facts alone. This module is the only answer to that question.

An alpha that the user gives is kept. "auto" balances the noise against the shrinkage (`balanced_l2`), but keeps the ridge
large enough that the curvature of the loss costs the privacy budget little (`curvature_free_l2`). Either is raised where the
proof of privacy, or double precision, needs more; the plan says by how much.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache
from itertools import accumulate

from confide.erm.group_bounds import GroupBound
from confide.erm.losses import LossBounds
from confide.erm.row_bounds import RowBound
from confide.errors import InsufficientRegularisation, ParameterError
from confide.privacy.budgets import ApproxDP, Budget, Neighbours, budget_of_row, pure_epsilon
from confide.privacy.mechanism import Mechanism, Plan, Problem
from confide.privacy.objective_perturbation import ObjectivePerturbation
from confide.privacy.sensitivity import gradient_shift

WEIGHT_NORM_FACTOR = 3.5
"""How long weights are expected to be beside noise in the objective, see `balanced_l2`. Chosen on public data sets and
budgets by benchmarks/automatic_alpha.py."""
WEIGHT_NORM_ON_WEIGHTS = 2.5
"""The same for noise on the weights. Chosen by benchmarks/automatic_alpha.py."""
SCORE_FACTOR = 2.0
"""The expected norm of the weights of a regression, as a multiple of the declared size of its scores over the norm of a
usual row. Of the factors 1/4 to 16, 2 is the best or within 2% of the best for Huber's loss, the clipped square and counts,
on the data sets and budgets of benchmarks/regression_error.py."""
NOISE_SHARE = 0.7
"""The ridge of least squares over the deviation of the noise, see `noise_l2`. Compared on made-up designs (independent,
correlated, one-hot, short and decaying columns) of 3,000 to 100,000 rows."""
_LEAST_HINGE_L2 = 1e-2
"""The least automatic ridge of a hinge, over the squared norm of the longest row. A hinge has no curvature where all rows
are far from its corner, and only the ridge keeps the noise in check there."""
_LARGEST_SEAL_SHARE = 0.01
"""The automatic ridge is raised until the seal, which covers inexact minimisers, costs at most this share of the budget."""
_RIDGE_STEP = 1.1
"""Factor between two ridges that are tried one after the other."""
_MOST_RIDGES, _STRIDE = 600, 8
"""How many ridges are tried at most, and in what steps the first search goes through them."""
_LEAST_SHARE_OF_CURVATURE_FREE = {"laplace": 0.7, "gaussian": 1.0}
"""The least automatic ridge, as a share of the ridge at which the curvature of the loss is free, for each law of noise. It
is divided by the margin of the loss, but never falls below one half. A share of one half costs 3 to 7% more Laplace noise
under replace-one and 4 to 17% under add-or-remove-one, and as much more Gaussian noise. Compared on the data of
benchmarks/peers."""
_LEAST_SHARE_FOR_CLASSES = 0.7
"""The same for several classes whose loss has a margin of 2 and more, under any law of noise; without a margin the share is
1. It costs 1 to 6% more noise under replace-one and 3 to 14% under add-or-remove-one. One half was better where noise is
small, and worse where it is large. Compared on Covertype, MNIST and made-up classes."""


@dataclass(frozen=True, slots=True)
class AlphaRule:
    """How the alpha of one plan is found.

    Attributes
    ----------
    is_automatic : whether alpha is chosen here; otherwise the ridge of the problem was asked for
    score_size : a public guess of how large the scores of a regression are; None for margins
    is_raised : whether an alpha that was asked for is raised, and not refused, where double precision cannot certify it. For
        losses of counts: they may bend by as much as `target_bound`, so which alpha suffices depends on a parameter that
        scikit-learn's estimator does not have
    for_intervals : whether intervals are made of the release. They have to cover the noise, so less ridge for a little more
        noise does not pay
    """

    is_automatic: bool
    score_size: float | None
    is_raised: bool
    for_intervals: bool


def plan_with_alpha(mechanism: Mechanism, problem: Problem, budget: Budget, rule: AlphaRule) -> Plan:
    """The plan of a mechanism at the alpha that the rule gives. The problem has the ridge that was asked for, if any was."""
    if rule.is_automatic:
        return _automatic_plan(mechanism, problem, budget, rule)
    try:
        return mechanism.plan(problem, budget)
    except InsufficientRegularisation:
        if not rule.is_raised:
            raise
    # The plan keeps the problem that was asked for, so that it states what was added.
    return replace(_first_possible_plan(mechanism, problem, budget, largest_seal_share=1.0), problem=problem)


def _automatic_plan(mechanism: Mechanism, problem: Problem, budget: Budget, rule: AlphaRule) -> Plan:
    """The plan at the automatic ridge, which rises where double precision would cost more than 1% of the budget."""
    least = _least_l2(problem, budget, rule.score_size)
    start = replace(problem, l2=max(least, problem.largest_weight * problem.row_norm**2))
    plan = _first_possible_plan(mechanism, start, budget)
    # The noise depends a little on the ridge, and so may its law: the second round starts from the noise of the first.
    for _ in range(2):
        share = 1.0 if rule.for_intervals else _share_of_curvature_free(plan)
        l2 = max(share * least, _balanced_l2_of(plan, rule.score_size))
        plan = _first_possible_plan(mechanism, replace(problem, l2=l2), budget)
    return plan


def _least_l2(problem: Problem, budget: Budget, score_size: float | None) -> float:
    """The ridge at which curvature is free, and for hinges at least the one that keeps noise in check."""
    row_budget = budget_of_row(budget, problem.rows_per_person)
    least = curvature_free_l2(row_budget, problem.loss_bounds, problem.row_norm, problem.neighbours)
    # The slopes of a regression are in units of its target, and a ridge is not.
    least /= score_size or 1.0
    if not problem.loss.self_concordant and math.isfinite(problem.loss.smoothness):
        least = max(least, _LEAST_HINGE_L2 * problem.row_norm**2)
    return least


def _balanced_l2_of(plan: Plan, score_size: float | None) -> float:
    """`balanced_l2` for the noise of this plan."""
    problem = plan.problem
    # The weights of several scores are balanced score by score, each as a problem of two classes would be.
    noise_norm = plan.noise_norm * plan.l2 / math.sqrt(problem.loss.n_outputs)
    return balanced_l2(
        noise_norm,
        # The number of rows that count the most: so the unit of the weights of rows does not matter.
        problem.largest_weight * problem.n_rows_low,
        usual_norm(problem.row_bound, problem.intercept),
        on_weights=not plan.perturbs_objective,
        score_size=score_size,
        margin=problem.loss.margin,
    )


def _share_of_curvature_free(plan: Plan) -> float:
    """Which part of the ridge at which the curvature costs nothing the automatic ridge may be."""
    problem, noise = plan.problem, plan.noise
    if not plan.perturbs_objective or noise is None or not problem.loss.tapered:
        return 1.0
    # The larger the margin, the larger the scores have to be, and the more a ridge shrinks them.
    margin = max(1.0, problem.loss.margin)
    if problem.loss.n_outputs > 1:
        return max(_LEAST_SHARE_FOR_CLASSES, 1.0 / margin)
    in_parts = isinstance(plan.budget, ApproxDP) and problem.neighbours is Neighbours.ADD_OR_REMOVE_ONE
    if noise.law == "gaussian" and not in_parts:
        # This bound has no intermediate case: curvature is either free or charged in full.
        return 1.0
    return max(0.5, _LEAST_SHARE_OF_CURVATURE_FREE[noise.law] / margin)


def _first_possible_plan(
    mechanism: Mechanism, problem: Problem, budget: Budget, largest_seal_share: float = _LARGEST_SEAL_SHARE
) -> Plan:
    """The plan at the ridge of the problem, or at the first larger one that allows it.

    The ridges that allow a plan lie between two ends, since doubles are too coarse for ridges that are too small or too
    large. So the search first tries every eighth ridge, and then halves the interval before the first that works. Only where
    every eighth ridge fails does it try all of them.
    """
    if isinstance(mechanism, ObjectivePerturbation):
        # So that a law whose seal costs too much does not take precedence over one that is possible.
        mechanism = ObjectivePerturbation(largest_seal_share)
    ridges = list(accumulate(range(1, _MOST_RIDGES), lambda l2, _: _RIDGE_STEP * l2, initial=problem.l2))

    @cache
    def plan_at(step: int) -> Plan | None:
        with suppress(InsufficientRegularisation):
            plan = mechanism.plan(replace(problem, l2=ridges[step]), budget)
            if plan.seal_share <= largest_seal_share:
                return plan
        return None

    for stride in (_STRIDE, 1):
        for step in range(0, _MOST_RIDGES, stride):
            if found := plan_at(step):
                between = range(max(0, step - stride), step + 1)
                return plan_at(between[bisect_left(between, True, key=lambda k: plan_at(k) is not None)]) or found
    raise ParameterError(
        f"no alpha is large enough for up to {problem.n_rows_high} rows at this budget: double precision cannot certify the "
        f"minimiser closely enough. Narrow n_rows_bounds, or use fewer rows or a larger budget."
    )


def curvature_free_l2(budget: Budget, loss: LossBounds, row_norm: float, neighbours: Neighbours) -> float:
    """A little above the ridge of the sum form at which the curvature of the logistic loss costs Laplace noise nothing.

    That is t shift R^2 / epsilon, the shift with the largest weight and t the `tail` of the loss, 1 in the margin; a small
    share of epsilon goes to the seal.
    """
    if not math.isfinite(loss.smoothness):
        return 0.0
    epsilon = pure_epsilon(budget)
    return 1.05 * loss.tail * gradient_shift(loss.lipschitz, neighbours) * row_norm**2 / epsilon


def usual_norm(row_bound: RowBound, intercept: float) -> float:
    """The L2 norm of a usual row with its intercept, guessed from its bound alone.

    Exactly one level of a category counts in full; a number, or a row of a ball, as if its size were spread evenly below its
    bound: a third of the square. A guess that does not fit the data costs accuracy, not privacy.
    """
    if isinstance(row_bound, GroupBound):
        groups = zip(row_bound.sizes, row_bound.scales, row_bound.linked, strict=True)
        square = math.fsum(scale**2 / (1.0 if linked or size > 1 else 3.0) for size, scale, linked in groups)
    else:
        square = row_bound.l2_norm**2 / 3.0
    return math.sqrt(square + intercept**2)


def balanced_l2(
    noise_norm: float,
    weight: float,
    row_norm: float,
    *,
    on_weights: bool,
    score_size: float | None = None,
    margin: float = 1.0,
) -> float:
    """Ridge of the sum form that balances the noise against the shrinkage; alpha is this over the number of rows.

    With b the noise in the summed objective, the excess loss is about |b|^2 / (2 l2) through the noise and
    l2 |w|^2 / 2 through the ridge; they balance at l2 = |b| / |w|. What norm of w to expect depends on how much the rows
    can tell beside the noise: |w| = B / S on rows of usual norm S, with

        B = 3.5 (n S / |b|)^(1/3),      n the number of rows (its lower bound where it is private) times the largest `weight`
                                        of one, |b| root mean square.

    Noise on the weights, |b| / l2 long, is not damped by the curvature of the loss: weights are kept short, B = 2.5.

    Where a hinge has its corner at a `margin` above 1, scores are so many times larger, and so is B. Of a regression it is
    known how large scores are, `score_size`, and B is twice that.
    """
    if score_size is not None:
        return noise_norm * row_norm / (SCORE_FACTOR * score_size)
    length = WEIGHT_NORM_ON_WEIGHTS if on_weights else WEIGHT_NORM_FACTOR * math.cbrt(weight * row_norm / noise_norm)
    return noise_norm * row_norm / (max(1.0, margin) * length)


def noise_l2(product_deviation: float, n_weights: int) -> float:
    """Ridge of the sum form that keeps noise in X^T X from being inverted: 0.7 t sqrt(D), t its deviation on a product.

    Symmetric noise of this deviation has eigenvalues up to 2 t sqrt(D). Negative eigenvalues are put to 0 anyway
    (`confide.solvers.normal_equations`), so a third of that suffices; a ridge that waits for a private lower bound on the
    smallest eigenvalue (Wang, 2018) spends budget on it, and was better on no design.
    """
    return NOISE_SHARE * product_deviation * math.sqrt(n_weights)
