"""Which share of a budget is kept for intervals, and the plan of weights and moments together."""

from __future__ import annotations

import math
from contextlib import suppress
from dataclasses import replace

from confide.erm.losses import Loss
from confide.errors import ParameterError
from confide.inference.forecast import IntervalsPlan
from confide.privacy.budgets import ZCDP, ApproxDP, Budget, budget_of_row
from confide.privacy.gaussian import mu_within
from confide.privacy.mechanism import Plan
from confide.privacy.moments import MomentsPlan, SecondMoments, joint_event
from confide.training.alpha import usual_norm
from confide.training.mechanism_choice import plan_of_weights
from confide.training.settings import ScoreLoss, Settings

_SHARES = (0.3, 0.05, 0.1, 0.15, 0.2, 0.4, 0.5, 0.6)
"""The shares that "auto" compares. Without privacy it takes the first."""
_MOST_CLASS_WEIGHTS = 1000
"""The largest number of weights for intervals with three or more classes. The moments then have a million entries with exact
noise, and each pair of classes needs its own products."""


def refuse_noisy_gradients(mechanism: str) -> None:
    """Refuse intervals for a mechanism whose weights are not near the minimiser by a known law."""
    if mechanism == "gradient":
        raise ParameterError(
            "there are no intervals with mechanism='gradient': the weights after a fixed number of steps have no law that "
            "is known closely enough. Give mechanism='objective' or 'output', or leave inference_share at 0."
        )


def refuse_intervals(loss: Loss, n_weights: int) -> None:
    """Refuse intervals if there is no proof for them, or if they would need too much memory."""
    if not math.isfinite(loss.smoothness):
        raise ParameterError(
            "intervals need a loss that bends, and the hinge has a corner. Use LogisticRegression, or loss='huber_hinge' or "
            "'smooth_hinge', or leave inference_share at 0."
        )
    if loss.n_outputs > 1 and n_weights > _MOST_CLASS_WEIGHTS:
        raise ParameterError(
            f"intervals for several classes are for at most {_MOST_CLASS_WEIGHTS:,} weights, and classes times columns "
            f"would be {n_weights:,}. Use fewer columns or classes, or leave inference_share at 0."
        )
    if loss.by_length:
        raise ParameterError(
            "intervals need a slope with one bound for all rows, which loss='clipped_squared' does not have: use "
            "loss='huber', or leave inference_share at 0."
        )


def plan_with_intervals(settings: Settings, score_loss: ScoreLoss, n_features: int, n_rows: int | None) -> Plan:
    """The plan of weights and moments together, with the user's share or the best one.

    Raises
    ------
    ParameterError
        If intervals could not be trusted at this budget.
    """
    share = settings.inference_share
    automatic = _SHARES if settings.budget.is_private else _SHARES[:1]
    shares = automatic if isinstance(share, str) else (share,)
    plans = [plan for each in shares for plan in _plans_at(settings, score_loss, n_features, n_rows, each)]
    # Among the intervals that can be trusted (ratio at most `largest_ratio`), take the narrowest. If there are none, take
    # those with the smallest ratio, which `check` then refuses.
    plan = min(plans, key=lambda plan: (max(plan.intervals.ratio, plan.intervals.largest_ratio), plan.intervals.margin))
    plan.intervals.check()
    return plan


def _plans_at(
    settings: Settings, score_loss: ScoreLoss, n_features: int, n_rows: int | None, share: float
) -> tuple[Plan, ...]:
    """The plans at this share: a part of the budget for each release, and for (epsilon, delta) one account of both.

    The moments are taken at the released weights, so this is adaptive composition. One charge covers both releases.
    """
    budget, plans = settings.budget, []
    if isinstance(budget, ApproxDP):
        mu, of_moments = beside_weights(budget, settings.rows_per_person, share)
        # There may be no plan with Gaussian noise in both releases.
        with suppress(ParameterError):
            beside = replace(settings, beside_mu=math.hypot(settings.beside_mu, mu))
            training = plan_of_weights(beside, score_loss, n_features, n_rows, budget)
            moments = SecondMoments().plan(training, of_moments)
            plans.append(_with_moments(settings, share, replace(training, event=joint_event(training, moments)), moments))
    training = plan_of_weights(settings, score_loss, n_features, n_rows, share_of(budget, 1.0 - share))
    moments = SecondMoments().plan(training, share_of(budget, share))
    plans.append(_with_moments(settings, share, replace(training, event=training.problem.event(budget)), moments))
    return tuple(plans)


def _with_moments(settings: Settings, share: float, training: Plan, moments: MomentsPlan) -> Plan:
    usual = settings.usual_norm or usual_norm(settings.row_bound, 0.0)
    usual = usual if math.isfinite(training.problem.row_norm) else 1.0
    design = settings.sampling_design(training.problem.n_rows_low)
    return replace(training, intervals=IntervalsPlan.of(share, training, moments, usual, design))


def beside_weights(budget: ApproxDP, rows_per_person: int, share: float) -> tuple[float, ZCDP]:
    """What moments with Gaussian noise may cost beside weights: their shift over deviation for one row, and as a budget.

    The square of that ratio is what adds up if Gaussian releases share an account. `share` is the part of it.
    """
    of_row = budget_of_row(budget, rows_per_person)
    assert isinstance(of_row, ApproxDP)  # noqa: S101 - the kind of the budget
    mu = math.sqrt(share) * mu_within(of_row)
    # The budget is that of a person, and a little less than mu stands for, so that roundings stay below mu.
    return mu, ZCDP(0.5 * (rows_per_person * mu) ** 2 * (1.0 - 2.0**-40))


def share_of(budget: Budget, share: float) -> Budget:
    """A part of a budget. Parts whose shares add up to 1 cost at most the whole together, by basic composition.

    The factor 1 - 2^-50 rounds each part down, so that rounding cannot make the sum exceed the whole.
    """
    if share == 1.0 or not budget.is_private:
        return budget
    return type(budget)(*(share * getattr(budget, name) * (1.0 - 2.0**-50) for name in budget.ranges))
