"""Which loss "auto" stands for: the hinge if the noise is small, and a loss whose curvature is cheap if it is large."""

from __future__ import annotations

from dataclasses import replace

from confide.errors import ParameterError
from confide.privacy.mechanism import Plan
from confide.training.alpha import strength
from confide.training.mechanism_choice import mechanism_for, plan_of_weights
from confide.training.settings import ScoreLoss, Settings

ENOUGH_FOR_THE_HINGE = 50.0
"""The hinge is kept if the `strength` of its plan is at least this. Compared on the data of benchmarks/peers."""


def chosen_loss(
    settings: Settings, score_loss: ScoreLoss, n_features: int, n_rows: int | None
) -> tuple[Settings, ScoreLoss, Plan | None]:
    """The settings and the loss that an automatic loss stands for, and their plan if it was made on the way.

    Users of a support vector machine want the hinge, so it is kept if the noise is small. If the noise is large, it is
    replaced by a loss whose curvature costs little. Gaussian noise is equally large in all directions and grows with the
    longest row, so under Gaussian noise rows are also clipped to their typical norm. They are not clipped if intervals are
    asked for, because coefficients with intervals should be those for the rows as they are. All of this is decided from
    public facts.
    """
    smooth_loss, asked = score_loss.if_noisy, replace(score_loss, if_noisy=None)
    if smooth_loss is not None and mechanism_for(settings, score_loss.loss) == "gradient":
        # Slopes of typical rows are clipped nowhere, so rows stay as they are.
        return settings, replace(asked, loss=smooth_loss), None
    if smooth_loss is None or mechanism_for(settings, score_loss.loss) != "objective":
        return settings, asked, None
    smooth = replace(asked, loss=smooth_loss)
    if smooth == asked and settings.has_intervals:
        # Rows are not clipped either, so nothing is chosen.
        return settings, asked, None
    try:
        plan = plan_of_weights(settings, asked, n_features, n_rows, settings.budget)
    except ParameterError:
        # There may be no plan for the hinge and still one for the other loss.
        return settings, smooth, None
    if strength(plan, settings.usual_norm) >= ENOUGH_FOR_THE_HINGE:
        return settings, asked, plan
    if score_loss.bound_if_noisy is None or settings.has_intervals:
        return settings, smooth, None
    if smooth != asked:
        plan = plan_of_weights(settings, smooth, n_features, n_rows, settings.budget)
    if plan.noise is not None and plan.noise.law == "gaussian":
        return replace(settings, row_bound=score_loss.bound_if_noisy, usual_norm=None), smooth, None
    return settings, smooth, plan
