"""Hinges with a narrow joint are minimised by way of wider joints.

Only the few rows whose margin lies in the joint add to the Hessian, and with a narrow joint these are soon other rows. So
the search begins with a wide joint, and each solution is the start for a joint a quarter as wide. Close to the hinge the
same rows stay in the joint, so the minimiser is a piecewise linear function of the width. Two solutions predict the next.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from confide.erm.class_losses import OneVsRest
from confide.erm.hinges import Hinge, HuberHinge, SmoothHinge
from confide.erm.losses import Loss
from confide.solvers.objectives import Objectives
from confide.solvers.solver import Solution, Solver
from confide.types import Weights

_WIDEST_JOINT = 0.5
"""Half the width of the joint at which the search begins."""
_FACTOR = 4.0
"""Each joint is narrower than the one before by this factor."""
_RELATIVE_TOLERANCE = 1e-7
"""Solutions for wider joints need a gradient norm of this share of the norm at the start, and no smaller one."""
_MOST_WEIGHTS = 300
"""Up to this many weights `narrow` is used. A Hessian of all rows then costs as much as a few gradients, and L-BFGS would
need as many, because its metric is soon useless. tests/solvers/test_passes.py counts the passes."""


@dataclass(frozen=True, slots=True)
class Narrowing:
    """Solves for ever narrower joints where the joint asked for is narrow. It has no theorem.

    Parameters
    ----------
    inner : solver for losses without a joint and for wide joints
    narrow : solver for narrow joints and the wider ones on the way, up to `_MOST_WEIGHTS` weights; None for `inner`
    """

    inner: Solver
    narrow: Solver | None = None

    def solve(self, objective: Objectives, start: Weights, tolerance: float) -> Solution:
        width_asked = joint_of(objective.loss)
        if width_asked is None or width_asked >= _WIDEST_JOINT / _FACTOR:
            return self.inner.solve(objective, start, tolerance)
        narrow = self.narrow if self.narrow is not None and start.shape[1] <= _MOST_WEIGHTS else self.inner
        norms = np.linalg.norm(objective.evaluate(start, order=1).gradient, axis=1)
        enough = max(tolerance, _RELATIVE_TOLERANCE * float(norms.min()))
        width, before, weights = _WIDEST_JOINT, start, start
        while width > width_asked:
            wider = objective.replaced(loss=with_joint(objective.loss, width))
            # The start is on the straight line through the last two solutions, at the new width.
            guess = weights + (weights - before) / _FACTOR if width < _WIDEST_JOINT / _FACTOR else weights
            before, weights = weights, narrow.solve(wider, guess, enough).weights
            width /= _FACTOR
        return narrow.solve(objective, weights, tolerance)


def joint_of(loss: Loss) -> float | None:
    """Half the width of the joint of a hinge, or of the hinge of each class; None for other losses."""
    of_one = loss.loss if isinstance(loss, OneVsRest) else loss
    return of_one.smoothing if isinstance(of_one, (HuberHinge, SmoothHinge)) else None


def with_joint(loss: Any, half_width: float) -> Any:
    """The same loss with a joint of another width. The hinge itself becomes a `HuberHinge`."""
    if isinstance(loss, OneVsRest):
        return replace(loss, loss=with_joint(loss.loss, half_width))
    return HuberHinge(half_width) if isinstance(loss, Hinge) else replace(loss, smoothing=half_width)
