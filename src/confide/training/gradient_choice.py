"""Whether "auto" stands for noisy gradients, and the plan with them. Public facts decide it.

Noise in an objective is damped by the curvature of the loss, but the curvature costs a part of the budget, and rows have to
be clipped before they are used. Noisy gradients clip the slope of a row alone. With much noise both err alike. With less
noise gradients err less often, because they change fewer rows. With next to no noise an exact minimiser is better than the
mean of a fixed number of steps (benchmarks/gradients.py).
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace

from confide.errors import ParameterError
from confide.privacy.mechanism import Plan
from confide.training.alpha import strength
from confide.training.centring_choice import ENOUGH_FOR_GRADIENTS, gradients_were_compared, plan_with_centring
from confide.training.loss_choice import ENOUGH_FOR_THE_HINGE
from confide.training.mechanism_choice import plan_of_weights
from confide.training.settings import ScoreLoss, Settings


def gradients_or(
    plan: Plan, settings: Settings, asked: Settings, score_loss: ScoreLoss, n_features: int, n_rows: int | None
) -> Plan:
    """The plan with noisy gradients where "auto" stands for them, or the plan that was given.

    Parameters
    ----------
    plan : the plan without them, at the loss and the bound on rows that were chosen
    settings : the settings with that bound
    asked : the settings before; gradients clip slopes, and rows are as long as they are
    score_loss : the loss that was chosen
    n_features, n_rows : as in `make_plan`
    """
    if not _may_take_gradients(plan, settings, score_loss):
        return plan
    asked = replace(asked, mechanism="gradient")
    # There may be no plan: sums over very many rows may be too inexact.
    with suppress(ParameterError):
        taken = plan_of_weights(asked, score_loss, n_features, n_rows, asked.budget)
        return plan_with_centring(asked, score_loss, n_features, n_rows, taken)
    return plan


def _may_take_gradients(plan: Plan, settings: Settings, score_loss: ScoreLoss) -> bool:
    """Whether the loss is one for which gradients were compared, and the noise is neither too small nor too large."""
    return (
        settings.mechanism == "auto"
        # Gradients were compared on centred rows.
        and settings.may_centre
        and gradients_were_compared(plan, settings, score_loss)
        and plan.perturbs_objective
        # Pure budgets have no Gaussian noise.
        and plan.noise is not None
        and plan.noise.law == "gaussian"
        # The logistic loss, with a margin or without.
        and plan.problem.loss.tapered
        and ENOUGH_FOR_GRADIENTS <= strength(plan, settings.usual_norm) < ENOUGH_FOR_THE_HINGE
    )
