"""Which share of a budget is kept for intervals, and the plan of weights and moments together."""

from __future__ import annotations

import math
from dataclasses import replace

from confide.erm.losses import Loss
from confide.errors import ParameterError
from confide.inference.forecast import IntervalsPlan
from confide.privacy.budgets import Budget
from confide.privacy.mechanism import Plan
from confide.privacy.moments import SecondMoments
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
    plans = [_plan_at(settings, score_loss, n_features, n_rows, each) for each in shares]
    # Among the intervals that can be trusted (ratio at most `largest_ratio`), take the narrowest. If there are none, take
    # those with the smallest ratio, which `check` then refuses.
    plan = min(plans, key=lambda plan: (max(plan.intervals.ratio, plan.intervals.largest_ratio), plan.intervals.margin))
    plan.intervals.check()
    return plan


def _plan_at(settings: Settings, score_loss: ScoreLoss, n_features: int, n_rows: int | None, share: float) -> Plan:
    budget = settings.budget
    training = plan_of_weights(settings, score_loss, n_features, n_rows, share_of(budget, 1.0 - share))
    moments = SecondMoments().plan(training, share_of(budget, share))
    usual = settings.usual_norm or usual_norm(settings.row_bound, 0.0)
    usual = usual if math.isfinite(training.problem.row_norm) else 1.0
    intervals = IntervalsPlan.of(budget, share, training, moments, usual)
    # The moments are taken at the released weights, so this is adaptive composition. One charge covers both releases.
    return replace(training, intervals=intervals, event=training.problem.event(budget))


def share_of(budget: Budget, share: float) -> Budget:
    """A part of a budget. Parts whose shares add up to 1 cost at most the whole together, by basic composition.

    The factor 1 - 2^-50 rounds each part down, so that rounding cannot make the sum exceed the whole.
    """
    if share == 1.0 or not budget.is_private:
        return budget
    return type(budget)(*(share * getattr(budget, name) * (1.0 - 2.0**-50) for name in budget.ranges))
