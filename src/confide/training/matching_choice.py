"""Whether a part of the budget makes predicted counts right in the mean, and the plan with it. Public facts decide it.

A clipped loss and a ridge draw predictions of counts below their mean. Two noisy sums after the weights give the factor by
which they are too small. The more noise the weights have the more there is to gain, and the noise in the sums is a small
part of the count of a row for all but few rows.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace

from confide.accounting.events import Event, PureMechanism
from confide.erm.target_losses import PoissonLoss
from confide.errors import ParameterError
from confide.expected_noise import noise_in_rows
from confide.privacy.budgets import ZCDP, ApproxDP, Budget, PureDP
from confide.privacy.lattice import LatticeLaplace
from confide.privacy.matching import MatchingPlan, matching_plan
from confide.privacy.mechanism import Plan
from confide.training.interval_share import share_of
from confide.training.settings import Settings

_LARGEST_SHARE, _LEAST_SHARE = 0.1, 0.01
"""The largest and the least part of the budget that pays for the sums: benchmarks/means_of_counts.py."""
_AIM = 0.0015
"""The deviation of the noise in the mean residual that is aimed at, as a share of the bound on counts (the same
benchmark)."""
_TOO_LARGE = 0.005
"""With more noise than this in the mean residual there is no matching: the same benchmark."""
_MOST_NOISE = 1.5
"""Noise and ridge of the weights may grow by this factor at most. Usually they grow by 1.01 to 1.25."""
_UP = 1.0 + 2.0**-30


def plan_with_matching(plan: Plan, settings: Settings, make: Callable[[Settings], Plan]) -> Plan:
    """The plan with a mean that is matched, or the plan that was given where that does not pay or there can be none.

    Parameters
    ----------
    plan : the plan without it
    settings : the settings of the fit
    make : makes the plan of the weights from settings with less budget
    """
    if not settings.matches or not _may_be_matched(plan, settings):
        return plan
    budget, law = settings.budget, _law(plan)
    # There may be no plan for what is left of the budget.
    with suppress(ParameterError):
        share = _share(plan, budget, law)
        if share is None:
            return plan
        if isinstance(budget, ApproxDP) and law == "gaussian":
            mu = matching_plan(plan.problem, budget, share, law).mu * _UP
            made = make(replace(settings, beside_mu=math.hypot(settings.beside_mu, mu)))
            event = made.event
        else:
            made = make(replace(settings, budget=_without(budget, share)))
            event = _event_of_both(made, budget, share)
        if noise_in_rows(made) <= _MOST_NOISE * noise_in_rows(plan) and made.alpha <= _MOST_NOISE * plan.alpha:
            return replace(made, event=event, matching=matching_plan(made.problem, budget, share, law))
    return plan


def _event_of_both(made: Plan, budget: Budget, share: float) -> Event:
    """What a ledger counts for weights and sums whose costs add up; its curve is that of pure privacy where both have it."""
    curve = made.event.curve
    if not isinstance(curve, PureMechanism) or isinstance(budget, ZCDP):
        return made.problem.event(budget)
    return made.problem.event(budget, PureMechanism((curve.epsilon + share * budget.epsilon) * _UP))


def _law(plan: Plan) -> str:
    """The law of the noise on the sums. Under an approximate budget it is that of the weights, which shares its account."""
    if isinstance(plan.budget, ApproxDP):
        is_laplace = isinstance(plan.lattice, LatticeLaplace) if plan.noise is None else plan.noise.law == "laplace"
        return "laplace" if is_laplace else "gaussian"
    return "laplace" if isinstance(plan.budget, PureDP) else "gaussian"


def _without(budget: Budget, share: float) -> Budget:
    """What a share of epsilon or of rho leaves for the weights. Sums with Laplace noise cost no delta."""
    left = share_of(budget, 1.0 - share)
    return ApproxDP(left.epsilon, budget.delta) if isinstance(budget, ApproxDP) and isinstance(left, ApproxDP) else left


def noise_in_the_mean(matching: MatchingPlan, plan: Plan) -> float:
    """The deviation of the noise in the mean residual, as a share of the bound on counts."""
    return matching.lattice.deviation / (plan.problem.intercept * matching.target_bound * plan.problem.n_rows_low)


def _share(plan: Plan, budget: Budget, law: str) -> float | None:
    """The part of the budget at which the noise is what is aimed at; None if it is too large at the largest part."""
    matching = matching_plan(plan.problem, budget, _LARGEST_SHARE, law)
    noise = noise_in_the_mean(matching, plan)
    if noise > _TOO_LARGE:
        return None
    # Gaussian noise shrinks as the root of its share grows, Laplace noise as the share does.
    wanted = _LARGEST_SHARE * math.pow(noise / _AIM, 2.0 if law == "gaussian" else 1.0)
    return max(_LEAST_SHARE, min(_LARGEST_SHARE, wanted))


def _may_be_matched(plan: Plan, settings: Settings) -> bool:
    """Whether predictions are exponentials of scores that have an intercept, and weights stay as they are released.

    Weights become 0 after the release with an l1 penalty. Intervals are those of the weights that were released.
    """
    return (
        plan.budget.is_private
        and isinstance(plan.problem.loss, PoissonLoss)
        and plan.problem.intercept > 0.0
        and settings.l1_ratio == 0.0
        and not settings.has_intervals
    )
