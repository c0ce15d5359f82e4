"""How least squares is released: by noisy sums, or by a perturbed objective. Decided from public facts.

Noisy sums answer for X^T X as well as for X^T y, at the full bound on targets. A perturbed objective answers for clipped
slopes alone, so its noise is several times smaller, and far smaller under pure privacy with many columns. The price is that
a residual beyond the threshold pulls no harder. Sums are kept if their noise hides next to nothing, because then they are
exact least squares in one pass over the rows; if intervals are asked for, which are made of them; and without privacy.
"""

from __future__ import annotations

from contextlib import suppress

from confide.errors import ParameterError
from confide.privacy.elastic_net import NO_OBJECTIVE
from confide.privacy.sufficient_statistics import StatisticsPlan
from confide.training.least_squares import plan_of_sums
from confide.training.settings import ScoreLoss, Settings, SquaredError
from confide.training.threshold_choice import squared_losses, usual_loss

MECHANISMS_OF_LEAST_SQUARES = ("auto", "sufficient-statistics", "objective")
"""The names that users may give."""
_NEXT_TO_NOTHING = 0.005
"""The largest ratio of the noise on sums to what typical rows add to them, at which "auto" keeps noisy sums. On prices of
diamonds sums lost .026 of R^2 at a ratio of .024 (the objective .002 at the same budget), and .006 at a ratio of .006."""


def squared_error(target_bound: float, *, with_square: bool = False) -> SquaredError:
    """Least squares of targets within a bound."""
    if with_square or target_bound == float("inf"):
        return SquaredError(target_bound, with_square)
    losses = squared_losses(target_bound, aim="mean")
    nearly_squared = ScoreLoss(usual_loss(losses), thresholds=losses, score_size=target_bound)
    return SquaredError(target_bound, with_square, nearly_squared)


def sums_or_loss(
    settings: Settings, squared: SquaredError, n_features: int, n_rows: int | None
) -> StatisticsPlan | ScoreLoss:
    """The plan of noisy sums, or the losses of which a perturbed objective minimises one."""
    losses, name = squared.nearly_squared, settings.mechanism
    if losses is None and name == "objective":
        raise ParameterError(
            "mechanism='objective' needs a finite target_bound, and has no intervals: set intervals to False, or take "
            "mechanism='sufficient-statistics'."
        )
    if settings.l1_ratio > 0.0 and name == "objective":
        raise ParameterError(NO_OBJECTIVE)
    if losses is None or name == "sufficient-statistics" or (name == "auto" and not settings.budget.is_private):
        return plan_of_sums(settings, squared, n_features, n_rows)
    if name == "auto":
        # Sums over very many rows may be too inexact, and there may still be a plan for the objective.
        with suppress(ParameterError):
            plan = plan_of_sums(settings, squared, n_features, n_rows)
            if plan.forecast.ratio <= _NEXT_TO_NOTHING:
                return plan
    return losses
