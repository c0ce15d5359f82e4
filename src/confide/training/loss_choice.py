"""Which loss "auto" stands for: the hinge where noise is small, a loss of cheap curvature where it is large."""

from __future__ import annotations

from dataclasses import replace

from confide.errors import ParameterError
from confide.privacy.mechanism import Plan
from confide.training.alpha import usual_norm
from confide.training.mechanism_choice import mechanism_for, plan_of_weights
from confide.training.settings import ScoreLoss, Settings

_ENOUGH_FOR_THE_HINGE = 50.0
"""The hinge is kept where usual rows, summed, outweigh the noise by at least this factor, for each weight. Compared on the
data of benchmarks/peers."""


def chosen_loss(
    settings: Settings, score_loss: ScoreLoss, n_features: int, n_rows: int | None
) -> tuple[Settings, ScoreLoss, Plan | None]:
    """The settings and the loss that an automatic loss stands for, and their plan if the choice had to make it.

    The hinge is what was asked for, so it is kept where noise is small. Where noise is large, a loss takes its place whose
    curvature costs little. Gaussian noise grows with the longest row in every direction alike, so under it rows are also
    clipped to their usual norm; but not where intervals are asked for, since their coefficients speak of rows as they are.
    All of it is decided from public facts.
    """
    smooth_loss, asked = score_loss.if_noisy, replace(score_loss, if_noisy=None)
    if smooth_loss is None or mechanism_for(settings, score_loss.loss) != "objective":
        return settings, asked, None
    smooth = replace(asked, loss=smooth_loss)
    try:
        plan = plan_of_weights(settings, asked, n_features, n_rows, settings.budget)
    except ParameterError:
        # What stops the plan for the hinge need not stop the plan for the other loss.
        return settings, smooth, None
    if _is_noise_small(plan):
        return settings, asked, plan
    if score_loss.bound_if_noisy is None or settings.has_intervals:
        return settings, smooth, None
    plan = plan_of_weights(settings, smooth, n_features, n_rows, settings.budget)
    if plan.noise is not None and plan.noise.law == "gaussian":
        return replace(settings, row_bound=score_loss.bound_if_noisy), smooth, None
    return settings, smooth, plan


def _is_noise_small(plan: Plan) -> bool:
    """Whether the sum of all rows, each of usual norm, outweighs the noise in the objective for each weight."""
    problem = plan.problem
    rows = problem.largest_weight * problem.n_rows_low * usual_norm(problem.row_bound, problem.intercept)
    return plan.noise is None or rows >= _ENOUGH_FOR_THE_HINGE * problem.n_weights * plan.noise.norm
