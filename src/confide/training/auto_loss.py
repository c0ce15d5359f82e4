"""Which loss "auto" stands for: the hinge if the noise is small, and a loss whose curvature is cheap if it is large."""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from confide.erm.losses import Loss
from confide.erm.target_losses import PoissonLoss, SquaredLoss
from confide.errors import ParameterError
from confide.privacy.budgets import Budget, PureDP, budget_of_row, pure_epsilon
from confide.privacy.gaussian import gradient_shift, mu_within
from confide.privacy.mechanism import Plan, Problem
from confide.privacy.penalised_problem import NO_OBJECTIVE
from confide.privacy.sufficient_statistics import StatisticsPlan
from confide.training.alpha import strength
from confide.training.auto_mechanism import mechanism_for, plan_of_weights, problem_of
from confide.training.least_squares import plan_of_sums
from confide.training.settings import ScoreLoss, Settings, SquaredError, Thresholds

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


# Which threshold "auto" stands for, from public facts alone, and the losses of which a plan takes one.
#
# A threshold clips the slopes of a loss of a residual. The noise and the automatic ridge grow with it. A small one makes
# the prediction a typical value in place of the mean. So the threshold is a share of the bound on targets that falls as the
# noise grows: with r the number of rows that pull together as hard as the noise does, as a share of all,
#
#     share = A (0.001 / r)^(1/5), at most the largest share of the aim.
#
# The ladder of shares is finite, so that everybody who sums over rows can agree to each loss beforehand.

SHARES = (0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.6, 0.8, 1.0)
"""The thresholds that "auto" may stand for, as shares of the bound on targets."""
_USUAL_NOISE = 0.001
"""The noise, as a share of the rows, at which the share of an aim is `at_usual_noise`."""
_POWER = 0.2
"""How fast the share falls with the noise. Chosen and confirmed by benchmarks/thresholds.py, as are the shares of `AIMS`."""


@dataclass(frozen=True, slots=True)
class Aim:
    """What a threshold is to balance.

    Attributes
    ----------
    at_usual_noise : the share of the bound on targets at the usual noise
    largest : the largest share, which is taken without noise
    """

    at_usual_noise: float
    largest: float


AIMS = {"robust": Aim(0.18, 0.2), "mean": Aim(0.18, 1.0), "counts": Aim(0.65, 1.0)}
"""Aims by their names: typical values in spite of outliers, means, and means of counts."""


def squared_losses(target_bound: float, *, aim: str, by_length: bool = False) -> Thresholds:
    """Half the squared residual, with slopes clipped at each share of the bound on targets."""
    return _thresholds(target_bound, aim, lambda threshold: SquaredLoss(target_bound, threshold, by_length))


def count_losses(target_bound: float) -> Thresholds:
    """The loss of counts, with slopes clipped at each share of the bound on targets."""
    return _thresholds(target_bound, "counts", lambda threshold: PoissonLoss(target_bound, threshold))


def _thresholds(target_bound: float, aim: str, loss_at: Callable[[float], Loss]) -> Thresholds:
    if not math.isfinite(target_bound):
        raise ParameterError('threshold="auto" is a share of target_bound, which is inf: give a number.')
    shares = tuple(share for share in SHARES if share <= AIMS[aim].largest)
    return Thresholds(tuple(loss_at(share * target_bound) for share in shares), shares, aim)


def is_automatic(threshold: Any) -> bool:
    """Whether a threshold is to be chosen here."""
    return isinstance(threshold, str) and threshold == "auto"


def usual_loss(thresholds: Thresholds) -> Loss:
    """The loss at the share of the usual noise."""
    return _nearest(thresholds, AIMS[thresholds.aim].at_usual_noise)


def with_chosen_threshold(settings: Settings, score_loss: ScoreLoss, n_features: int, n_rows: int | None) -> ScoreLoss:
    """The loss with the threshold that "auto" stands for. A loss with a given threshold stays as it is."""
    thresholds = score_loss.thresholds
    if thresholds is None:
        return score_loss
    # An l1 penalty changes nothing of how large the noise is, and allows none in the objective.
    problem = problem_of(replace(settings, l1_ratio=0.0), score_loss.loss, n_features, n_rows)
    share = share_at(least_noise(problem, settings.budget), thresholds.aim)
    return replace(score_loss, loss=_nearest(thresholds, share), thresholds=None)


def least_noise(problem: Problem, budget: Budget) -> float:
    """How many rows pull together as hard as the noise does, as a share of all rows, if curvature and seal cost nothing.

    It does not depend on the loss, and the noise of a plan is seldom more than twice as large.
    """
    if not budget.is_private:
        return 0.0
    of_row, shift = budget_of_row(budget, problem.rows_per_person), gradient_shift(1.0, problem.neighbours)
    norm = min(shape.laplace_norm(pure_epsilon(of_row) / shift) for shape in problem.shapes)
    if not isinstance(of_row, PureDP):
        norm = min(norm, *(shape.gaussian_norm(shift / mu_within(of_row)) for shape in problem.shapes))
    return norm / (problem.row_norm * problem.n_rows_low)


def share_at(noise: float, aim: str) -> float:
    """The threshold to be wished for, as a share of the bound on targets, where the noise is this share of the rows."""
    wanted = AIMS[aim]
    if noise == 0.0:
        return wanted.largest
    return min(wanted.largest, wanted.at_usual_noise * math.pow(_USUAL_NOISE / noise, _POWER))


def _nearest(thresholds: Thresholds, share: float) -> Loss:
    """The loss whose share is nearest in ratio."""
    distances = [abs(math.log(each / share)) for each in thresholds.shares]
    return thresholds.losses[distances.index(min(distances))]


# How least squares is released: by noisy sums, or by a perturbed objective. Decided from public facts.
#
# Noisy sums answer for X^T X as well as for X^T y, at the full bound on targets. A perturbed objective answers for clipped
# slopes alone, so its noise is several times smaller, and far smaller under pure privacy with many columns. The price is
# that a residual beyond the threshold pulls no harder. Sums are kept if their noise hides next to nothing, because then
# they are exact least squares in one pass over the rows; if intervals are asked for, which are made of them; and without
# privacy.

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
