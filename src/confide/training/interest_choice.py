"""Intervals for named coefficients: the shares of the budget, and the plan of all that is released for them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace

from confide.errors import ParameterError
from confide.inference.interest_plan import InterestPlan
from confide.privacy.budgets import ApproxDP, Budget
from confide.privacy.curvature import NoisyCurvature
from confide.privacy.direction_sums import NoisyDirectionSums, joint_event
from confide.privacy.mechanism import Plan
from confide.privacy.standardised_sums import NoisyStandardisedSums
from confide.training.alpha import usual_norm
from confide.training.interval_share import beside_weights, share_of
from confide.training.mechanism_choice import mechanism_for, plan_of_weights
from confide.training.settings import ScoreLoss, Settings

SHARES = (0.24, 0.34)
"""Shares of the curvature and of the sums along directions. The weights have the rest. Of the shares that were compared
these gave the shortest intervals with the stated coverage (benchmarks/README.md)."""
_SHARES_OF_RISKS = (0.01, 0.02, 0.04, 0.08)
"""The shares of the sums for differences of risks that are compared. They leave the others in the same proportion."""
_MOST_HIDDEN = 0.15
"""The largest noise in the curvature, over the curvature of typical rows, at which plans are compared by the width that they
forecast. Above it the plan with the least such noise is taken: correlated columns have directions with half of the usual
curvature and less, and where the noise hides them there is no interval (benchmarks/README.md)."""
_MOST_COLUMNS = 1000
"""The largest number of weights: the curvature then has half a million entries with exact noise."""


def plan_with_interest(settings: Settings, score_loss: ScoreLoss, n_features: int, n_rows: int | None) -> Plan:
    """The plan of weights, curvature and sums together.

    Raises
    ------
    ParameterError
        If there is no proof for such a release, or intervals could not be trusted at this budget.
    """
    _refuse(settings, score_loss, n_features)
    if settings.mechanism == "auto" and settings.budget.is_private:
        settings = replace(settings, mechanism="objective")
    if not settings.has_risks:
        plans = _plans(settings, score_loss, n_features, n_rows, SHARES)
        plan = min(plans, key=lambda plan: (max(plan.intervals.hidden, _MOST_HIDDEN), plan.intervals.error))
    else:
        divided = [(*(each * (1.0 - own) for each in SHARES), own) for own in _SHARES_OF_RISKS]
        plans = tuple(plan for shares in divided for plan in _plans(settings, score_loss, n_features, n_rows, shares))
        plan = min(plans, key=lambda plan: (max(plan.intervals.hidden, _MOST_HIDDEN), plan.intervals.error_of_risks))
    plan.intervals.check()
    return plan


def _refuse(settings: Settings, score_loss: ScoreLoss, n_features: int) -> None:
    if score_loss.loss.n_outputs > 1:
        raise ParameterError(
            "interest is for two classes: with three or more, inference_share has intervals for all coefficients."
        )
    if settings.budget.is_private and mechanism_for(settings, score_loss.loss) != "objective":
        raise ParameterError(
            "interest needs weights near the minimiser by a known law: give mechanism='objective' or 'auto', or leave out "
            "interest."
        )
    if n_features > _MOST_COLUMNS:
        raise ParameterError(
            f"interest is for at most {_MOST_COLUMNS:,} columns as they enter the fit, and here are {n_features:,}. Use "
            f"fewer columns or levels."
        )


def _plans(
    settings: Settings, score_loss: ScoreLoss, n_features: int, n_rows: int | None, shares: tuple[float, ...]
) -> tuple[Plan, ...]:
    """The plans: a part of the budget for each release, and for (epsilon, delta) one account of all.

    The curvature is taken at the released weights, the sums along directions that follow from both, and those for
    differences of risks at points that follow from all three, so this is adaptive composition. One charge covers all.
    """
    budget, plans = settings.budget, []
    if isinstance(budget, ApproxDP):
        parts = [beside_weights(budget, settings.rows_per_person, share) for share in shares]
        beside = replace(settings, beside_mu=math.hypot(*(mu for mu, _ in parts)))
        # There may be no plan with Gaussian noise in all releases.
        with suppress(ParameterError):
            training = plan_of_weights(beside, score_loss, n_features, n_rows, budget)
            plans.append(_with_interest(settings, training, shares, [of_part for _, of_part in parts], is_joint=True))
    rest = share_of(budget, 1.0 - sum(shares))
    training = plan_of_weights(settings, score_loss, n_features, n_rows, rest)
    parted = [share_of(budget, share) for share in shares]
    plans.append(_with_interest(settings, training, shares, parted, is_joint=False))
    return tuple(plans)


def _with_interest(
    settings: Settings, training: Plan, shares: tuple[float, ...], budgets: Sequence[Budget], *, is_joint: bool
) -> Plan:
    curvature = NoisyCurvature().plan(training, budgets[0])
    sums = NoisyDirectionSums().plan(training, len(settings.interest), budgets[1])
    risks = NoisyStandardisedSums().plan(training, len(settings.interest), budgets[2]) if settings.has_risks else None
    beside = (curvature, sums) if risks is None else (curvature, sums, risks)
    event = joint_event(training, *beside) if is_joint else training.problem.event(settings.budget)
    usual = settings.usual_norm or usual_norm(settings.row_bound, 0.0)
    usual = usual if math.isfinite(training.problem.row_norm) else 1.0
    paid = replace(training, event=event)
    design = settings.sampling_design(training.problem.n_rows_low)
    plan = InterestPlan.of(shares, paid, curvature, sums, settings.interest, usual, risks, design)
    return replace(paid, intervals=plan)
