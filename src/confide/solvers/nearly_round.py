"""Problems that their ridge makes nearly round: the Hessian of a sample would save next to no pass, and costs several.

Whether a problem is one is decided by its curvature over a few of the rows: the largest is compared with the ridge, which is
the least. Then L-BFGS leads to the minimiser in a few passes, and each step multiplies the distance by about
(curvature - ridge) / (curvature + ridge) or less.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from confide.solvers.approximate_gradients import cheaper_stages
from confide.solvers.lbfgs import LimitedMemory
from confide.solvers.objectives import Objectives, on_part
from confide.solvers.solver import Solution
from confide.types import Array, Weights

_FEWEST_WEIGHTS = 200
"""The Hessian of a sample of fewer weights costs less than a pass."""
_ROWS = 2000
"""The curvature is measured on so many rows. Chance makes it larger, so that it is too large for most problems."""
_LARGEST_RATIO = 4.0
"""Largest curvature over the ridge. Beyond, more passes would be needed than a metric needs (benchmarks/solver_speed.py)."""
_ROUNDS = 8
"""Rounds of the power method, which comes close to the largest curvature from below."""
_STEP = 1e-3
"""How far scores change where curvature is measured, at most."""
_MOST_STEPS, _MOST_SLOW_STEPS = 30, 8


@dataclass(frozen=True, slots=True)
class _Scaled:
    """Takes gradients to steps: divides them by one curvature."""

    curvature: float

    def __call__(self, gradients: Array) -> Array:
        return gradients / self.curvature


def solved_if_round(objective: Objectives, start: Weights, tolerance: float) -> Solution | None:
    """The minimiser of one problem with many weights if it is nearly round; None if it is not, or was not found.

    Parameters
    ----------
    objective : one problem, with a loss of one score
    start : (1, D)
    tolerance : of the gradient norm
    """
    known = len(start) == 1 and objective.loss.self_concordant and objective.loss.n_outputs == 1
    if not known or start.shape[1] < _FEWEST_WEIGHTS or not tolerance > 0.0:
        return None
    rows = objective.source.sample(_ROWS)
    if rows is None:
        return None
    few, share = on_part(objective, rows)
    largest = _largest_curvature(few, start) / share
    # Written so that what is not a number counts as not round.
    if not largest <= _LARGEST_RATIO * objective.l2:
        return None
    method = LimitedMemory(
        _MOST_STEPS,
        metric=_Scaled(0.5 * (largest + objective.l2)),
        most_slow_steps=_MOST_SLOW_STEPS,
        cheaper=cheaper_stages(objective, few, start, start),
        retry_exactly=False,
    )
    solution = method.solve(objective, start, tolerance)
    return solution if (solution.gradient_norm <= tolerance).all() else None


def _largest_curvature(few: Objectives, start: Weights) -> float:
    """About the largest eigenvalue of the Hessian at the start, ridge included."""
    step = _STEP / few.row_norm
    # Any direction that is not alike for columns will do.
    direction = np.sin(1.0 + np.arange(float(start.size))).reshape(start.shape)
    here, found = few.evaluate(start, order=1).gradient, 0.0
    for _ in range(_ROUNDS):
        direction /= np.linalg.norm(direction)
        direction = (few.evaluate(start + step * direction, order=1).gradient - here) / step
        found = float(np.linalg.norm(direction))
    return found
