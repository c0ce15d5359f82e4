"""What chance alone makes of a weight without an effect. An l1 penalty sets weights that are no larger to 0.

Chance is the noise, whose law is public, and the draw of the rows from their population, whose size is guessed from public
facts. Nothing but the released weights is used besides. So this is post-processing and costs nothing.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
from scipy import stats
from scipy.optimize import brentq

from confide.array_types import Array, Weights
from confide.erm.group_bounds import GroupBound, groups_of
from confide.erm.losses import LogisticLoss, Loss
from confide.erm.row_bounds import Centred, before_moving
from confide.models.scores import LinearModel
from confide.privacy.bundles import Bundles, squares_of_groups
from confide.privacy.gradient import GradientPlan
from confide.privacy.mechanism import Noise, Plan, Problem
from confide.privacy.shapes import Cylinder, moments_of_groups
from confide.training.alpha import typical_norm, usual_curvature, usual_slope, usual_squares_of_groups
from confide.training.gradient_steps import HeavyBall

FALSE_WEIGHTS = 0.1
"""The mean number of weights that chance alone lifts above the threshold, if the guesses are right."""
_SHARE_OF_L1 = 0.4
"""The share of an l1 penalty that counts as moving a weight towards 0 that chance lifted. In simulated walks of eight plans
(50 and 500 columns, 1,000 to 10,000 rows, epsilon .5 to 4) it was .80 to .97 at the weights that the threshold is made for.
Half of that leaves room for columns that move together and for small effects: with .8 more of them survived by chance."""
_WIDE_JOINT = 0.25
USUAL_RESIDUAL = 0.1
"""The root mean square of residuals, in units of the bound on targets: the threshold of `HuberRegressor` that None means."""
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
    pull, bend = _pull_of_rows(problem, weights, typical_norm(problem, None) / math.sqrt(problem.row_width))
    stiffness = problem.l2 + bend
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


def _pull_of_rows(problem: Problem, weights: Weights | None, in_column: Any) -> tuple[Any, Any]:
    """The deviation of the rows' pull on a weight without an effect in the population, and how their slope grows with it.

    The root mean square of the rows' entries there is `in_column`, a number, or one for each weight.
    """
    loss, n_rows = problem.loss, problem.n_rows_low
    scores = 0.0 if weights is None else float(np.linalg.norm(weights) * np.sqrt(np.mean(np.square(in_column))))
    return usual_slope(loss.constants) * math.sqrt(n_rows) * in_column, _curvature(loss, scores) * n_rows * in_column**2


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
    # An entry is a normal number times the root of twice a number with the Gamma law of (D + 1) / 2, over beta.
    beta = math.sqrt(dimension * (dimension + 1.0)) / norm
    deviations = np.sqrt(2.0 * stats.gamma(0.5 * (dimension + 1.0)).ppf(_QUANTILES)) / beta
    return float(brentq(lambda size: np.mean(2.0 * stats.norm.sf(size / deviations)) - share, 0.0, 50.0 * deviations[-1]))


# How large chance alone makes weights without an effect: the bands of noise in pictures.
#
# A weight moves by the noise, and by the pull that the drawn rows have by chance, both damped by the ridge and by the bend
# of the rows in its column. Public facts do not say how many rows use a column. So there are two sizes: where rows are
# spread over their columns as bounds and schema let them be, evenly; and at most, over every share of the rows that may use
# a column, from none to that one. A column that no row uses has the second size or less, by the law of the noise alone, as
# its weight is the noise over the ridge. benchmarks/noise_bands.py has how many columns without an effect lie within.

_SHARE_BELOW_THRESHOLD = 0.4
"""The share of residuals below the threshold at which their slopes are clipped: only these rows bend the loss."""
_SHARES_OF_ROWS = (0.0, *np.geomspace(2.0**-14, 1.0, 15).tolist())


def chance_of_weights(plan: Any, weights: Weights) -> tuple[Array, Array]:
    """Two sets of deviations (D,) of the released weights of one score, for columns without an effect.

    The first is for columns over which rows are spread evenly, the second for the most that noise makes however few rows use
    a column. What noise adds to all levels of a category alike is left out, as it belongs to the intercept.

    Parameters
    ----------
    plan : the plan of the weights, with noise
    weights : the released ones
    """
    problem, deviation, seal = plan.problem, plan.lattice.deviation, 0.0
    n_rows, in_column = problem.n_rows_low, _in_columns(problem)
    if hasattr(plan, "product_deviation"):
        deviation = math.hypot(plan.target_deviation, plan.product_deviation * np.linalg.norm(weights))
        pull, bend = 2.0 * USUAL_RESIDUAL * problem.target_bound * math.sqrt(n_rows) * in_column, n_rows * in_column**2
        ridge = plan.l2
    else:
        pull, bend = _pull_of_rows(problem, weights, in_column)
        bend = bend * (1.0 if problem.loss.constants.threshold is None else _SHARE_BELOW_THRESHOLD)
        ridge = np.resize(problem.penalty.ridges(plan.l2), problem.row_width)
        if plan.noise is not None:
            sizes, seal = plan.noise.shape.sizes, deviation
            of_groups = np.sqrt(_squares_of_groups(plan.noise) / np.subtract(sizes, plan.noise.shape.linked))
            deviation = np.resize(np.repeat(of_groups, sizes), problem.row_width)

    def moved(share: float) -> Array:
        stiffness = ridge + share * bend
        of_noise = of_pull = 1.0 / stiffness
        if isinstance(plan, GradientPlan):
            steps: Any = plan.descent.steps
            different, places = np.unique(stiffness, return_inverse=True)
            of_noise, of_pull = np.array([responses(steps, one) for one in different.tolist()]).T[:, places]
        elif plan.minimises and not plan.perturbs_objective:
            of_noise = np.ones_like(stiffness)
        return np.asarray(np.sqrt((deviation * of_noise) ** 2 + seal**2 + share * (pull * of_pull) ** 2))

    return moved(1.0), np.max([moved(share) for share in _SHARES_OF_ROWS], axis=0)


def _squares_of_groups(noise: Noise) -> Array:
    """For each group of weights at most E |b_g|_2^2 of noise, beside the mean of the group if it is linked."""
    shape: Any = noise.shape
    rate = noise.scale
    if noise.law == "gaussian":
        pieces = zip(shape.gaussian_deviations(rate), shape.pieces, strict=True)
        return np.array([deviation**2 * m for deviation, (_, m) in pieces])
    if shape.name == Bundles.name:
        return np.array(squares_of_groups(shape)) / rate**2
    of_entries = [own - shared for own, shared in moments_of_groups(shape)]
    if shape.name == Cylinder.name:
        of_entries = [shape.scales[0] ** 2 / (shape.sizes[0] + 2.0), shape.scales[1] ** 2 / 3.0]
    squares = np.subtract(shape.sizes, shape.linked) * of_entries
    # The sum over groups is known for every shape: of a ball, and of groups in the norm of a form, too.
    return np.asarray(noise.norm**2 / math.fsum(squares) * squares)


def _in_columns(problem: Any) -> Array:
    """(D,): the root mean square of the entries of usual rows for each weight."""
    bound = before_moving(problem.row_bound)
    if isinstance(bound, GroupBound):
        squares = np.repeat(np.array(usual_squares_of_groups(bound)) / bound.sizes, bound.sizes)
        return np.asarray(np.sqrt(np.append(squares, [problem.intercept**2] * (problem.intercept > 0.0))))
    return np.full(problem.row_width, typical_norm(problem, None) / math.sqrt(problem.row_width))


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
