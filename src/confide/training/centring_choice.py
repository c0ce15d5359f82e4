"""Whether a part of the budget finds the middle of the rows, and the plan of weights with it. Public facts decide it.

Rows that were moved by their middle are shorter, so noise that hides one of them is smaller in relation to them. That pays
where noise is large. Where it is small, it is better to keep the budget for the weights.
"""

from __future__ import annotations

import math
from contextlib import suppress
from dataclasses import replace

from confide.erm.centred_rows import Centred
from confide.erm.group_bounds import GroupBound
from confide.erm.row_bounds import BallBound
from confide.errors import ParameterError
from confide.expected_noise import noise_in_rows
from confide.privacy.budgets import ZCDP, ApproxDP
from confide.privacy.centring import CentringPlan, centring_plan
from confide.privacy.mechanism import Plan, Problem
from confide.privacy.sensitivity import gradient_shift
from confide.training.alpha import USUAL_RADIUS, strength
from confide.training.mechanism_choice import plan_of_weights
from confide.training.settings import ScoreLoss, Settings

_SHARE = 0.02
"""The part of the budget that finds the middle of the rows: benchmarks/centring.py."""
ENOUGH_FOR_GRADIENTS = 1.6
"""At this `strength` of a plan with noise in the objective, noisy gradients take its place where they may. Without them rows
are then not centred, but for random features and regressions (benchmarks/gradients.py)."""
_ENOUGH_UNDER_RHO = 1.1
"""The same under a concentrated budget, whose account asks for up to 15% more noise in an objective than the ideal. Straight
lines at a rho of .001 (20 and 12 fits): Covertype, at a strength of 1.4, errs by .255 with gradients and by .260 without,
and Bank, at 1.2, by .106 and .107. Below 0.9 Adult errs more often with gradients, by .0005 and .0018."""
_LEAST_NOISE = 8e-4
"""Where the noise is less than what this share of the rows can pull together, a centre gains nothing
(benchmarks/centring.py)."""


def plan_with_centring(settings: Settings, score_loss: ScoreLoss, n_features: int, n_rows: int | None, plan: Plan) -> Plan:
    """The plan with a centre of the rows, or the plan that was given where a centre does not pay or there can be none."""
    if not settings.may_centre or not _may_be_centred(plan):
        return plan
    if gradients_were_compared(plan, settings, score_loss) and strength(plan, settings.usual_norm) >= enough_for_gradients(
        plan
    ):
        # Centred rows are shortened, and with so little noise that costs more than the centre gains.
        return plan
    problem, budget = plan.problem, plan.budget
    # There may be no plan for what is left of the budget.
    with suppress(ParameterError):
        centring = centring_plan(problem, budget, _SHARE)
        if plan.descent is None and USUAL_RADIUS * _ideal_noise(problem, centring) >= plan.noise_norm * plan.l2:
            return plan
        bound = Centred.unmoved(problem.row_bound, n_features)
        moved = replace(settings, row_bound=bound, beside_mu=math.hypot(settings.beside_mu, centring.mu))
        centred = replace(plan_of_weights(moved, score_loss, n_features, n_rows, budget), centring=centring)
        if plan.descent is not None or USUAL_RADIUS * _noise(centred) < _noise(plan):
            return centred
    return plan


def enough_for_gradients(plan: Plan) -> float:
    """The `strength` from which on noisy gradients may take the place of a plan with noise in the objective."""
    return _ENOUGH_UNDER_RHO if isinstance(plan.budget, ZCDP) else ENOUGH_FOR_GRADIENTS


def gradients_were_compared(plan: Plan, settings: Settings, score_loss: ScoreLoss) -> bool:
    """Whether a plan with noise of its own is of the kind for which mechanisms were compared: two classes, columns as given.

    With random features, an exact minimiser with noise in the objective was better than noisy gradients.
    """
    has_features = settings.random_features or settings.appends_features
    of_two_classes = score_loss.score_size is None and plan.problem.loss.n_outputs == 1
    return plan.noise is not None and of_two_classes and not has_features


def _ideal_noise(problem: Problem, centring: CentringPlan) -> float:
    """The norm of Gaussian noise in the summed objective if what the centre leaves of the budget bought nothing else."""
    left = centring.mu * math.sqrt(1.0 / centring.share - 1.0)
    longest = gradient_shift(problem.loss_bounds.lipschitz, problem.neighbours) * problem.row_norm
    return longest * math.sqrt(problem.n_weights) / left


def _noise(plan: Plan) -> float:
    """The noise as a part of what all rows of the largest norm can pull together."""
    return noise_in_rows(plan) / plan.problem.n_rows_low


def _may_be_centred(plan: Plan) -> bool:
    """Whether weights for moved rows can be released and given for rows as they are, and noise is large enough for it."""
    problem = plan.problem
    return (
        isinstance(plan.budget, ApproxDP | ZCDP)
        # Without an intercept, scores of moved rows are no scores of rows.
        and problem.intercept > 0.0
        and not problem.loss.by_length
        and type(problem.row_bound) in (BallBound, GroupBound)
        # Gradients clip slopes by the length of a row, so shorter rows keep more of theirs, however small the noise is.
        and (plan.descent is not None or _noise(plan) > _LEAST_NOISE)
    )
