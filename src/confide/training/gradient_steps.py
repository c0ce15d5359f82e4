"""How noisy gradients lead to weights, and how many there are. All of it is decided from public facts, and none is trusted.

A privacy proof needs that the number of sums, the limit of slopes and the noise are fixed beforehand, and that a step uses
noisy sums alone (`confide.privacy.gradient`). What a step does with them costs accuracy at most.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from confide.array_types import Array, Weights
from confide.erm.group_bounds import groups_of
from confide.erm.losses import LogisticLoss
from confide.erm.penalties import shrunk
from confide.erm.row_bounds import before_moving
from confide.errors import ParameterError, wording
from confide.privacy.gradient import Descent, NoisyGradients
from confide.privacy.mechanism import Problem
from confide.training.alpha import USUAL_RADIUS, AlphaRule, balanced_l2, typical_norm, usual_curvature, usual_slope

# How noisy gradients lead to weights: gradient descent with momentum. None of it is trusted.
#
# A privacy proof needs that a step uses noisy sums and public facts alone (`confide.privacy.gradient`).


@dataclass(frozen=True, slots=True)
class HeavyBall:
    """Gradient descent with momentum, proximal with an l1 penalty. What is released is the mean of the second half's points.

    Points of such walks with an l1 penalty have zeros by themselves, but their mean has few. So weights that are no larger
    than what noise alone makes are set to 0 afterwards (`support.py`).

    Attributes
    ----------
    n_steps : number T of noisy sums
    step : length of a step, for sums of losses
    momentum : the largest part of a step that the next one repeats; at first it is (t + 1) / (t + 3) after t steps
    l2 : ridge of the sum form
    prior : the public weights at which the walk begins and towards which the ridge pulls; empty for zeros
    l1 : strength of the l1 penalty of the sum form, on each weight but those of the intercept; 0 without one
    row_width, n_features : with an l1 penalty, entries of a row with its constant, and without it
    """

    n_steps: int
    step: float
    momentum: float
    l2: float
    prior: tuple[float, ...] = ()
    l1: float = 0.0
    row_width: int = 1
    n_features: int = 1

    def __str__(self) -> str:
        return wording("heavy ball", steps=self, proximal="proximal " if self.l1 else "")

    def to_dict(self) -> dict[str, Any]:
        """A JSON form."""
        return {"kind": "heavy-ball", "step": self.step, "momentum": self.momentum}

    def start(self, n_weights: int, n_problems: int = 1) -> HeavyBallWalk:
        """The walk before the first sum, at the prior. A forecast makes several walks at once."""
        nothing = np.zeros((n_problems, n_weights))
        return HeavyBallWalk(self, 0, nothing + np.array(self.prior or 0.0), nothing, nothing)

    def shrunk(self, points: Array) -> Array:
        """The proximal step (k, D) of the l1 penalty."""
        return shrunk(points, self.step * self.l1 * (np.arange(points.shape[1]) % self.row_width < self.n_features))


@dataclass(frozen=True, slots=True, eq=False)
class HeavyBallWalk:
    """Where noisy sums have led so far.

    Attributes
    ----------
    steps : how to go on
    n_done : number of sums so far
    point : (1, D), where the next sum is made
    velocity : (1, D), the last step
    total : (1, D), sum of the points of the second half
    """

    steps: HeavyBall
    n_done: int
    point: Weights
    velocity: Weights
    total: Weights

    @property
    def weights(self) -> Weights:
        """(1, D): the mean of the points of the second half."""
        counted = self.n_done - self.steps.n_steps // 2
        return self.total / counted if counted > 0 else self.point

    def after(self, noisy: Array) -> HeavyBallWalk:
        """The walk after one more noisy sum of slopes (1, D)."""
        steps = self.steps
        momentum = min(steps.momentum, (self.n_done + 1.0) / (self.n_done + 3.0))
        if steps.l1:
            point = steps.shrunk(self.point + momentum * self.velocity - steps.step * (noisy + steps.l2 * self.point))
            velocity = point - self.point
        else:
            velocity = momentum * self.velocity - steps.step * (noisy + steps.l2 * (self.point - np.array(steps.prior or 0)))
            point = self.point + velocity
        total = self.total + point if self.n_done >= steps.n_steps // 2 else self.total
        return HeavyBallWalk(steps, self.n_done + 1, point, velocity, total)


_SHARE_OF_CHANCE = 0.25
"""The strength of an automatic l1 penalty over the pull of chance: see `l2_of_chance`."""


def l2_of_chance(problem: Problem, noise: float, typical: float) -> float:
    """The ridge beside which the l1 penalty is a quarter as strong as the pull of chance on the largest of the weights.

    An l1 penalty as strong as chance keeps weights at 0 that have no effect. They are set to 0 afterwards anyway, so a
    weaker one costs weights that have an effect less: of the shares 1, 1/2 and 1/4 the last found most columns, and with 500
    columns the ridge that balances the noise in all of them would leave none (benchmarks/sparse_support.py).

    Parameters
    ----------
    problem : the public facts
    noise : deviation of the noise in the mean of the sums, on one weight
    typical : the L2 norm of a typical row with its intercept
    """
    n_weights = problem.n_weights
    of_rows = usual_slope(problem.loss.constants) * problem.largest_weight * math.sqrt(problem.n_rows_low) * typical
    chance = math.hypot(noise, of_rows / math.sqrt(problem.row_width))
    largest = chance * math.sqrt(2.0 * math.log(2.0 * n_weights))
    return _SHARE_OF_CHANCE * largest * (1.0 - problem.penalty.l1_ratio) / problem.penalty.l1_ratio


N_STEPS = {"lines": 80, "curves": 96, "clear curves": 160, "many numbers": 48}
MOMENTUM = {"lines": 0.94, "curves": 0.97, "clear curves": 0.97, "many numbers": 0.96}
"""The number of noisy sums, and the largest part of a step that the next step repeats: of straight lines, of curves with
three knots or more, of such curves beside little noise, and of tables with many numbers. The numbers of this module, but for
those of losses with kinks and of curves, were chosen on Adult and Covertype and confirmed on Bank. 120 or 160 sums were no
better than 80 for straight lines, but at a momentum of .9 they were. With 50 sums Covertype errs as often, and Bank more
often by .001. Curves need larger weights. Their numbers were chosen on Adult, Bank, Covertype and Skin and confirmed on Bank
with economic indicators and KDD Cup 99 with all columns (benchmarks/gradients.py)."""
_MANY_NUMBERS = 2**26
"""A table has many numbers from here on, in rows times weights. Each sum over it takes long, and the noise is small."""
_ROWS_FOR_CLEAR_CURVES, _LIMIT_OF_CLEAR_CURVES = 20_000.0, 0.75
"""Curves of two classes take more sums, with a smaller limit on gradients (see `_LIMIT`), from so many rows for each unit of
noise on, in units of the longest gradient: steps then end before the minimiser is reached, and noise costs next to nothing
(benchmarks/notes/which_steps_of_gradients.md)."""
_STEP = {"lines": 3.75, "curves": 5.6, "clear curves": 5.6, "many numbers": 3.75}
"""The longest step, over the largest curvature of the mean loss along typical rows. Up to 3.75 heavy balls of this momentum
converge. The rows of curves differ from each other, so no direction has more than a part of that curvature."""
_WAY_OVER_RIDGE = {"lines": 1.5, "curves": 2.4, "clear curves": 4.0, "many numbers": 1.5}
"""All steps, with what momentum adds to each, are together at most so much over the balanced ridge."""
_LIMIT, _LIMIT_OF_LOGISTIC = 0.85, 0.45
"""The limit on gradients over the norm of a typical row, in units of the largest slope. The logistic loss without a
margin has a slope of 0.5 at scores of 0. So where noise is large a smaller limit clips only rows that are on the wrong
side already. It makes probabilities surer than frequencies are."""
_ENOUGH_FOR_PROBABILITIES = 4.0
"""From this ratio on, of the sum of all rows to the noise on them for each weight, slopes of the logistic loss without a
margin are clipped as those of other losses. Calibration errors of `LogisticRegression` with limits of .6 and .85, and by
noise in the objective, under (epsilon, 1e-5): Adult at 1 .022, .009 and .008 (.036 with .45), Bank at .5 .024, .018 and
.031, Covertype at .5 .023, .025 and .040."""
_SHARE_OF_BALANCED = 0.6
"""The ridge for losses of the margin over the balanced one: to stop early shrinks weights too."""
_LONGEST_SCORES = (2.0**10, 2.0**7, 2.0**4)
"""Scores that the longest row may have, in units of the scores that the loss asks for. The largest is taken at which
rounding costs little; none is reached in practice."""
_JOINTS = tuple(2.0**-k for k in range(12, 4, -1))
"""Half widths of the joint of a loss with kinks, in the same units. The narrowest is taken at which rounding costs
little."""
_INFLATIONS = (1e-3, 1e-2, 0.09)
"""Parts of the noise that rounding may cost. The first is taken that is possible."""


def descent_of(rule: AlphaRule, problem: Problem, mu: float) -> tuple[Problem, Descent]:
    """The facts with their ridge, and with joints in place of kinks, and the descent, from public facts."""
    typical = typical_norm(problem, rule.usual_norm)
    # A larger margin or target makes scores and weights larger by this factor.
    bounds, rows = problem.loss.constants, problem.largest_weight * problem.n_rows_low
    unit = rule.score_size or max(1.0, bounds.margin)
    width, kind = problem.row_width - rule.n_slots, _kind_of(rule, problem, mu)
    share = _LIMIT_OF_CLEAR_CURVES if kind == "clear curves" else _LIMIT
    # A lower limit makes all weights larger, and with them those that are noise alone.
    if problem.loss == LogisticLoss() and problem.penalty.l1_ratio == 0.0:
        noise_norm = _sensitivity(problem, bounds.lipschitz) / mu * math.sqrt(width)
        is_clear = rows * typical / (width * noise_norm) >= _ENOUGH_FOR_PROBABILITIES
        share = _LIMIT if is_clear else _LIMIT_OF_LOGISTIC
    limit = bounds.lipschitz * min(1.0, share * typical / problem.row_norm)
    balanced = balanced_l2(
        # That of the mean of all sums. The weights of several scores are balanced score by score.
        _sensitivity(problem, limit) / mu * math.sqrt(width),
        rows,
        typical,
        on_weights=False,
        score_size=rule.score_size,
        margin=bounds.margin,
        has_prior=rule.has_near_prior and any(problem.prior),
    )
    if rule.is_automatic:
        l2 = (_SHARE_OF_BALANCED if rule.score_size is None else 1.0) * balanced
        if problem.penalty.l1_ratio > 0.0:
            l2 = min(l2, l2_of_chance(problem, math.sqrt(2.0) * _sensitivity(problem, limit) / mu, typical))
        problem = replace(problem, l2=l2)
    curvature = usual_curvature(bounds, unit, has_residuals=rule.score_size is not None) * problem.largest_weight
    # The norm of rows at which steps must still converge. Rows in a ball may all be as long as the bound. Centred rows are
    # shorter than rows as they are, which is used for curves alone: straight lines gain nothing by it.
    bound = before_moving(problem.row_bound)
    is_known = rule.usual_norm is not None or bool(groups_of(bound)[0])
    shorter = USUAL_RADIUS if rule.has_curves and bound is not problem.row_bound else 1.0
    longest_row = shorter * typical if is_known else problem.row_norm
    longest = _STEP[kind] / (curvature * longest_row**2 * problem.n_rows_low)
    n_steps, momentum = N_STEPS[kind], MOMENTUM[kind]
    step = min((1.0 - momentum) * _WAY_OVER_RIDGE[kind] / n_steps / max(balanced, problem.l2), longest)
    steps = HeavyBall(n_steps, step, momentum, problem.l2, problem.prior)
    if problem.penalty.l1_ratio > 0.0:
        l1 = problem.penalty.l1_strength(problem.l2)
        steps = replace(steps, prior=(), l1=l1, row_width=problem.row_width, n_features=problem.n_features)
    return _with_joint(problem, Descent(n_steps, limit, math.inf, steps), unit)


def _kind_of(rule: AlphaRule, problem: Problem, mu: float) -> str:
    """Which number of sums, which momentum and which steps suit such a fit."""
    loss, of_rows = problem.loss.constants, problem.n_rows_low * problem.largest_weight * problem.row_norm
    is_clear = of_rows * mu >= _ROWS_FOR_CLEAR_CURVES * _sensitivity(problem, 1.0)
    curves = "clear curves" if is_clear and loss.margin > 1.0 and loss.n_outputs == 1 else "curves"
    return "many numbers" if has_many_numbers(problem) else curves if rule.has_curves else "lines"


def _sensitivity(problem: Problem, limit: float) -> float:
    """The sensitivity of one sum of gradients that are clipped at this limit, without rounding."""
    return Descent(1, limit, 0.0, HeavyBall(1, 1.0, 0.0, 1.0)).sensitivity(problem)


def has_many_numbers(problem: Problem) -> bool:
    """Whether a sum over the rows takes so long that fewer are made."""
    return problem.n_rows_high * problem.n_weights > _MANY_NUMBERS


def gradient_mechanism(alpha: AlphaRule) -> NoisyGradients:
    """The mechanism whose ridge, limits and steps follow from this rule."""
    return NoisyGradients(partial(descent_of, alpha))


def _with_joint(problem: Problem, descent: Descent, unit: float) -> tuple[Problem, Descent]:
    """The problem with a joint in place of kinks, and the descent with a radius, at which rounding costs little."""
    bounds = problem.loss.constants
    # A user's loss may have kinks anywhere.
    may_have_kinks = bounds.has_kinks or bounds.is_declared
    exact = descent.sensitivity(problem)
    for inflation in _INFLATIONS:
        for scores in _LONGEST_SCORES:
            # The points of a walk from a prior lie around that prior.
            within = replace(descent, radius=scores * unit / problem.row_norm + math.hypot(*problem.prior))
            for joint in _JOINTS if may_have_kinks else (0.0,):
                loss = problem.loss.with_joint(joint * unit, slopes_alone=True) if may_have_kinks else problem.loss
                smooth = replace(problem, loss=loss)
                if 2.0 * within.rounding(smooth) <= inflation * exact:
                    return smooth, within
    shorter = ", or give a shorter prior" if any(problem.prior) else ""
    raise ParameterError(wording("sums of slopes too inexact", rows=problem.n_rows_high, shorter=shorter))
