"""Weights that are no larger than what chance alone makes are set to 0: the released support of a model with an l1 penalty.

Chance is the noise, whose law is public, and the draw of the rows from their population, whose size is guessed from public
facts. Nothing but the released weights is used besides. So this is post-processing and costs nothing.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
from scipy import special, stats

from confide.array_types import Weights
from confide.erm.group_bounds import groups_of
from confide.erm.losses import LogisticLoss, Loss
from confide.erm.row_bounds import Centred
from confide.models.scores import LinearModel
from confide.privacy.gradient import GradientPlan
from confide.privacy.mechanism import Plan, Problem
from confide.training.alpha import typical_norm, usual_curvature, usual_slope
from confide.training.gradient_steps import HeavyBall

FALSE_WEIGHTS = 0.1
"""The mean number of weights that chance alone lifts above the threshold, if the guesses are right."""
_SHARE_OF_L1 = 0.4
"""The share of an l1 penalty that counts as moving a weight towards 0 that chance lifted. In simulated walks of eight plans
(50 and 500 columns, 1,000 to 10,000 rows, epsilon .5 to 4) it was .80 to .97 at the weights that the threshold is made for.
Half of that leaves room for columns that move together and for small effects: with .8 more of them survived by chance."""
_WIDE_JOINT = 0.25
_QUANTILES = (np.arange(512) + 0.5) / 512.0


def support_threshold(plan: Plan, weights: Weights | None = None) -> float:
    """The size up to which a released weight is set to 0; 0 without an l1 penalty or without noise.

    For noise on the weights it follows from the exact law of the noise on one weight. For noisy gradients the noise in the
    mean of the sums is known, and how far it moves a weight is guessed. The loss bends less the larger scores are, so the
    released `weights` (1, o D) make the guess better; without them it is that for small weights.
    """
    problem = plan.problem
    if problem.penalty.l1_ratio == 0.0 or plan.lattice is None:
        return 0.0
    share = FALSE_WEIGHTS / (problem.n_features * problem.loss.constants.n_outputs)
    lattice: Any = plan.lattice
    pull, stiffness = _pull_of_rows(problem, weights)
    if isinstance(plan, GradientPlan):
        steps: Any = plan.descent.steps
        of_noise, of_pull = responses(steps, stiffness)
        chance = gaussian_threshold(share, math.hypot(lattice.deviation * of_noise, pull * of_pull))
        # A strong l1 penalty leaves half of it, for what the guesses leave out.
        return max(0.5 * chance, chance - _SHARE_OF_L1 * float(steps.l1) * of_pull)
    of_rows = pull / stiffness
    if plan.noise is not None:
        return math.hypot(_spherical(share, plan.noise.norm, problem.n_weights), gaussian_threshold(share, of_rows))
    if lattice.law == "laplace":
        of_noise = float(lattice.deviation) / math.sqrt(2.0) * math.log(1.0 / share)
        return math.hypot(of_noise, gaussian_threshold(share, of_rows))
    return gaussian_threshold(share, math.hypot(lattice.deviation, of_rows))


def gaussian_threshold(share: float, deviation: float) -> float:
    """What a Gaussian number of this deviation exceeds in size with this probability."""
    return float(stats.norm.isf(share / 2.0)) * deviation


def responses(steps: HeavyBall, stiffness: float) -> tuple[float, float]:
    """How far noise of deviation 1 in each sum moves a released weight, and a pull of 1 in all of them.

    The walk is that of a weight whose slope grows by `stiffness` with it. It is linear, and is made once for noise in each
    sum. It ends before a weight is where a pull would bring it in the end. The l1 penalty is left out.
    """
    n_steps = steps.n_steps
    plain = HeavyBall(n_steps, steps.step, steps.momentum, stiffness)
    walk, pulls = plain.start(1, n_steps + 1), np.eye(n_steps, n_steps + 1)
    pulls[:, n_steps] = 1.0
    for pull in pulls:
        walk = walk.after(pull[:, None])
    moved = walk.weights[:, 0]
    return float(np.linalg.norm(moved[:n_steps])), float(abs(moved[n_steps]))


def _pull_of_rows(problem: Problem, weights: Weights | None) -> tuple[float, float]:
    """The deviation of the rows' pull on a weight without an effect in the population, and how its slope grows with it."""
    loss, n_rows = problem.loss, problem.n_rows_low
    in_column = typical_norm(problem, None) / math.sqrt(problem.row_width)
    curvature = _curvature(loss, 0.0 if weights is None else float(np.linalg.norm(weights)) * in_column)
    return usual_slope(loss.constants) * math.sqrt(n_rows) * in_column, problem.l2 + curvature * n_rows * in_column**2


def _curvature(loss: Loss, scores: float) -> float:
    """The mean curvature of a loss over rows whose scores have this deviation."""
    bounds = loss.constants
    if bounds.is_count:
        # The curvature of counts is their mean, which is taken to be 1.
        return 1.0
    if bounds.n_outputs > 1 and scores > 0.0:
        # Each score bends the loss about as the score of two classes does.
        return _curvature(LogisticLoss(), scores / math.sqrt(bounds.n_outputs))
    has_residuals = bounds.target_bound is not None
    if has_residuals or scores == 0.0:
        return usual_curvature(bounds, bounds.unit, has_residuals=has_residuals)
    if bounds.joint is not None and (bounds.joint < _WIDE_JOINT or not bounds.convex):
        # A user's loss has curvatures here by its slopes alone, whether or not it declares more.
        # The rows of the quantiles are too few for a narrow joint, and over many rows a wide one bends the loss as much.
        loss = loss.with_joint(_WIDE_JOINT)
    at_rows, label = (max(scores, 0.5) * stats.norm.ppf(_QUANTILES))[:, None], np.ones(len(_QUANTILES))
    curvature = loss.of_scores(at_rows, label, 2).curvature
    assert curvature is not None  # noqa: S101 - order 2 was asked for
    return float(curvature.mean())


def _spherical(share: float, norm: float, dimension: int) -> float:
    """The size that one of the D entries of noise with density exp(-beta |b|) exceeds with this probability."""
    # |b| has a Gamma law, with mean square D (D + 1) / beta^2, and the square of an entry of a direction a Beta law.
    lengths = stats.gamma(dimension).ppf(_QUANTILES) * (norm / math.sqrt(dimension * (dimension + 1.0)))

    def beyond(size: float) -> float:
        inside = np.fmin((size / lengths) ** 2, 1.0)
        of_direction = 1.0 - special.betainc(0.5, 0.5 * (dimension - 1.0), inside) if dimension > 1 else inside < 1.0
        return float(np.mean(of_direction))

    low, high = 0.0, float(lengths[-1])
    for _ in range(60):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if beyond(middle) > share else (low, middle)
    return high


def with_zeros(model: LinearModel, plan: Plan, weights: Weights) -> LinearModel:
    """The released model, its coefficients set to 0 where they are no larger than the threshold. The intercept stays.

    With a schema, one level of a category is active in a row, unless it is unknown, and two neighbouring knots of a number
    add up to 1. So a number may move from all weights of such a group to the intercept: the scores of rows whose level is
    known stay, and a level that is not known counts as a middle one. Noise moves these weights together, so they are taken
    relative to their median first, rounded to the grid of the noise on weights, so that they stay on it.

    Around a centre a weight acts on the distance from it. So the part that it has in the intercept goes with it.

    Parameters
    ----------
    model : what was released
    plan : its plan
    weights : (1, o D), the same as the mechanism released it
    """
    threshold = support_threshold(plan, weights)
    if threshold == 0.0:
        return model
    bound = plan.problem.row_bound
    magnification = bound.magnification if isinstance(bound, Centred) else 1.0
    coef, intercept = model.coef.copy(), model.intercept.copy()
    has_levels = plan.problem.penalty.has_levels and plan.problem.intercept > 0.0
    if has_levels:
        start = 0
        for size, scale in zip(*groups_of(model.row_bound)[:2], strict=True):
            levels, start = slice(start, start + size), start + size
            if size == 1:
                continue
            middle = np.median(coef[:, levels], axis=1)
            if plan.lattice is not None and plan.weights_on_grid:
                middle = np.ldexp(np.floor(np.ldexp(middle, -plan.lattice.exponent)), plan.lattice.exponent)
            coef[:, levels] -= middle[:, None]
            intercept += scale * middle
    dropped = np.where(np.abs(coef) <= threshold * magnification, coef, 0.0)
    coef[dropped != 0.0] = 0.0
    if isinstance(bound, Centred):
        intercept += dropped @ np.array(bound.centre)
    return replace(model, coef=coef, intercept=intercept)
