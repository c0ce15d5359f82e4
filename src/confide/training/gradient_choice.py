"""Whether "auto" stands for noisy gradients, and the plan with them. Public facts decide it.

Noise in an objective is damped by the curvature of the loss, but the curvature costs a part of the budget, and rows have to
be clipped before they are used. Noisy gradients clip the slope of a row alone. With much noise both err alike. With less
noise gradients err less often, because they change fewer rows. With next to no noise an exact minimiser is better than the
last of a number of steps (benchmarks/gradients.py).
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace

from confide.errors import ParameterError
from confide.privacy.budgets import ZCDP, ApproxDP
from confide.privacy.mechanism import Plan
from confide.training.alpha import typical_norm
from confide.training.centring_choice import plan_with_centring
from confide.training.mechanism_choice import plan_of_weights
from confide.training.settings import ScoreLoss, Settings

_LEAST_STRENGTH, _MOST_STRENGTH = 1.6, 50.0
"""Noisy gradients are taken if the sum of rows of typical norm is so many times the noise, for each weight. Under
concentrated budgets, whose account of perturbed objectives is looser, there is no lower limit (benchmarks/gradients.py)."""


def gradients_or(plan: Plan, settings: Settings, score_loss: ScoreLoss, n_features: int, n_rows: int | None) -> Plan:
    """The plan with noisy gradients where "auto" stands for them, or the plan that was given.

    Parameters
    ----------
    plan : the plan without them, at the loss that was chosen
    settings : the settings as they were before that loss was chosen
    score_loss : the loss that was chosen
    n_features, n_rows : as in `make_plan`
    """
    if not _may_take_gradients(plan, settings, score_loss):
        return plan
    asked = replace(settings, mechanism="gradient")
    # There may be no plan: sums over very many rows may be too inexact.
    with suppress(ParameterError):
        taken = plan_of_weights(asked, score_loss, n_features, n_rows, settings.budget)
        return plan_with_centring(asked, score_loss, n_features, n_rows, taken)
    return plan


def _may_take_gradients(plan: Plan, settings: Settings, score_loss: ScoreLoss) -> bool:
    """Whether the loss is one for which gradients were compared, and the noise is neither too small nor too large."""
    problem, noise = plan.problem, plan.noise
    if (
        settings.mechanism != "auto"
        or settings.has_intervals
        or noise is None
        or not plan.perturbs_objective
        or not isinstance(plan.budget, ApproxDP | ZCDP)
        # The logistic loss, with a margin or without, of two classes.
        or not problem.loss.tapered
        or problem.loss.n_outputs > 1
        or score_loss.score_size is not None
    ):
        return False
    rows = problem.largest_weight * problem.n_rows_low * typical_norm(problem, settings.usual_norm)
    strength = rows / (problem.n_weights * noise.norm)
    return bool(noise.law == "gaussian" and _LEAST_STRENGTH <= strength < _MOST_STRENGTH)
