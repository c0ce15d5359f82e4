"""Noisy gradients with an l1 penalty: each step ends with the proximal step of the penalty. None of it is trusted.

Points of such walks have zeros by themselves, but their mean, which is released, has few. So weights that are no larger than
what noise alone makes are set to 0 afterwards (`released_support`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from confide.privacy.elastic_net import SparseProblem
from confide.training.gradient_walk import HeavyBall, HeavyBallWalk
from confide.training.usual_curvature import usual_slope
from confide.types import Array

_SHARE_OF_CHANCE = 0.25
"""The strength of an automatic l1 penalty over the pull of chance: see `l2_of_chance`."""


@dataclass(frozen=True, slots=True)
class SparseHeavyBall(HeavyBall):
    """Proximal gradient descent with momentum.

    Attributes
    ----------
    l1 : strength of the l1 penalty of the sum form, on each weight but those of the intercept
    row_width, n_features : entries of a row with its constant, and without it
    """

    l1: float = 0.0
    row_width: int = 1
    n_features: int = 1

    def __str__(self) -> str:
        return f"proximal {HeavyBall.__str__(self)}"

    def start(self, n_weights: int, n_problems: int = 1) -> SparseWalk:
        """The walk before the first sum."""
        nothing = np.zeros((n_problems, n_weights))
        return SparseWalk(self, 0, nothing, nothing, nothing)

    def shrunk(self, points: Array) -> Array:
        """The proximal step (k, D) of the penalty."""
        penalised = np.arange(points.shape[1]) % self.row_width < self.n_features
        limits = self.step * self.l1 * penalised
        found: Array = np.sign(points) * np.maximum(np.abs(points) - limits, 0.0)
        return found


@dataclass(frozen=True, slots=True, eq=False)
class SparseWalk(HeavyBallWalk):
    """Where noisy sums have led so far, each step followed by the proximal step of the penalty."""

    def after(self, noisy: Array) -> SparseWalk:
        """The walk after one more noisy sum of slopes (1, D)."""
        steps = self.steps
        assert isinstance(steps, SparseHeavyBall)  # noqa: S101 - `start` made this walk
        momentum = min(steps.momentum, (self.n_done + 1.0) / (self.n_done + 3.0))
        moved = self.point + momentum * self.velocity - steps.step * (noisy + steps.l2 * self.point)
        point = steps.shrunk(moved)
        total = self.total + point if self.n_done >= steps.n_steps // 2 else self.total
        return SparseWalk(steps, self.n_done + 1, point, point - self.point, total)


def sparse_steps(steps: HeavyBall, problem: SparseProblem) -> SparseHeavyBall:
    """The same steps for a problem with an l1 penalty."""
    strength, width = problem.l1_strength(problem.l2), problem.row_width
    return SparseHeavyBall(steps.n_steps, steps.step, steps.momentum, steps.l2, (), strength, width, problem.n_features)


def l2_of_chance(problem: SparseProblem, noise: float, typical: float) -> float:
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
    of_rows = usual_slope(problem.loss) * problem.largest_weight * math.sqrt(problem.n_rows_low) * typical
    chance = math.hypot(noise, of_rows / math.sqrt(problem.row_width))
    largest = chance * math.sqrt(2.0 * math.log(2.0 * n_weights))
    return _SHARE_OF_CHANCE * largest * (1.0 - problem.l1_ratio) / problem.l1_ratio
