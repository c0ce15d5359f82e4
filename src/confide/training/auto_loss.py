"""Losses that differ in a threshold, of which "auto" takes one by public facts."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

from confide.erm.losses import Loss
from confide.erm.target_losses import SquaredLoss
from confide.errors import ParameterError
from confide.privacy.budgets import Budget, budget_of_row, pure_epsilon
from confide.privacy.gaussian import gradient_shift, mu_within
from confide.privacy.mechanism import Problem
from confide.training.auto_mechanism import problem_of
from confide.training.settings import ScoreLoss, Settings, SquaredError

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
"""The noise, as a share of the rows, at which an aim has its usual share."""
_POWER = 0.2
"""How fast the share falls with the noise. Chosen and confirmed by benchmarks/thresholds.py, as are the shares of `AIMS`;
benchmarks/costs.py chose that of costs."""


AIMS = {"robust": (0.18, 0.2), "mean": (0.18, 1.0), "counts": (0.65, 1.0), "costs": (0.25, 1.0)}
"""Aims by their names: typical values in spite of outliers, means, and means of counts, and of costs or spread counts. Of
each, the share of the bound on targets at the usual noise, and the largest share, which is taken without noise."""


def squared_losses(target_bound: float, *, aim: str, by_length: bool = False) -> ScoreLoss:
    """Half the squared residual, with slopes clipped at each share of the bound on targets."""
    return at_shares(target_bound, aim, lambda threshold: SquaredLoss(target_bound, threshold, by_length))


def at_shares(target_bound: float, aim: str, loss_at: Callable[[float], Loss]) -> ScoreLoss:
    """A loss with slopes clipped at each share of the bound on targets, or of the slope that a target at the bound has."""
    if not math.isfinite(target_bound):
        raise ParameterError('threshold="auto" is a share of target_bound, which is inf: give a number.')
    losses = tuple(loss_at(share * target_bound) for share in SHARES if share <= AIMS[aim][1])
    # Until the noise is known, it is the loss at the share of the usual noise.
    return ScoreLoss(_nearest(losses, AIMS[aim][0]), thresholds=losses, aim=aim)


def is_automatic(given: object) -> bool:
    """Whether a parameter is the word "auto". An array is compared with no word."""
    return isinstance(given, str) and given == "auto"


def loss_at_noise(settings: Settings, n_features: int, n_rows: int | None) -> ScoreLoss:
    """The loss with the threshold that "auto" stands for."""
    score_loss = settings.score_loss
    # An l1 penalty changes nothing of how large the noise is, and allows none in the objective.
    problem = problem_of(replace(settings, l1_ratio=0.0), score_loss.loss, n_features, n_rows)
    share = share_at(least_noise(problem, settings.budget), score_loss.aim)
    return replace(score_loss, loss=_nearest(score_loss.thresholds, share), thresholds=())


def least_noise(problem: Problem, budget: Budget) -> float:
    """How many rows pull together as hard as the noise does, as a share of all rows, if curvature and seal cost nothing.

    It does not depend on the loss, and the noise of a plan is seldom more than twice as large.
    """
    if not budget.is_private:
        return 0.0
    of_row, shift = budget_of_row(budget, problem.rows_per_person), gradient_shift(1.0, problem.neighbours)
    norm = min(shape.laplace_norm(pure_epsilon(of_row) / shift) for shape in problem.shapes)
    if not of_row.is_pure:
        norm = min(norm, *(shape.gaussian_norm(shift / mu_within(of_row)) for shape in problem.shapes))
    return norm / (problem.row_norm * problem.n_rows_low)


def share_at(noise: float, aim: str) -> float:
    """The threshold to be wished for, as a share of the bound on targets, where the noise is this share of the rows."""
    at_usual_noise, largest = AIMS[aim]
    return largest if noise == 0.0 else min(largest, at_usual_noise * math.pow(_USUAL_NOISE / noise, _POWER))


def _nearest(losses: tuple[Loss, ...], share: float) -> Loss:
    """Of losses at the first of `SHARES`, that whose share is nearest in ratio."""
    return min(zip(losses, SHARES, strict=False), key=lambda pair: abs(math.log(pair[1] / share)))[0]


MECHANISMS_OF_LEAST_SQUARES = ("auto", "sufficient-statistics", "objective")
"""The names that users may give."""


def squared_error(target_bound: float, *, with_square: bool = False) -> SquaredError:
    """Least squares of targets within a bound."""
    if with_square or target_bound == float("inf"):
        return SquaredError(target_bound, with_square)
    losses = squared_losses(target_bound, aim="mean")
    return SquaredError(target_bound, with_square, replace(losses, score_size=target_bound))
