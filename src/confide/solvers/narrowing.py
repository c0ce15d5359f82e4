"""Hinges with a narrow joint, by way of wider ones.

Newton's method sees of a narrow joint only the few rows that lie in it just then. So it begins with a wide one, and each
solution starts the search with a joint a quarter as wide. Close to the hinge the minimiser is a piecewise linear function of
the width (the same rows stay in the joint), so two solutions foretell the next.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from confide.erm.class_losses import OneVsRest
from confide.erm.hinges import Hinge, HuberHinge, SmoothHinge
from confide.erm.losses import Loss
from confide.erm.objective import Objective
from confide.solvers.solver import Solution, Solver
from confide.types import Weights

_WIDEST = 0.5
_FACTOR = 4.0
_ENOUGH = 1e-7
"""Of the gradient's norm at the start: solutions on the way need not be closer."""

_FEW_WEIGHTS = 300
"""For so many a Hessian costs as few gradients as would be needed in a metric that is soon of another place."""


@dataclass(frozen=True, slots=True)
class Narrowing:
    """`inner` where the joint is wide, and on losses without one; else `narrow` on ever narrower joints. Without a theorem.

    Parameters
    ----------
    inner : for one problem as it stands
    narrow : for the joints on the way and the narrow one itself, up to `_FEW_WEIGHTS` weights; None for `inner`
    """

    inner: Solver
    narrow: Solver | None = None

    def solve(self, objective: Objective, start: Weights, tolerance: float) -> Solution:
        width_asked = joint_of(objective.loss)
        if width_asked is None or width_asked >= _WIDEST / _FACTOR:
            return self.inner.solve(objective, start, tolerance)
        narrow = self.narrow if self.narrow is not None and start.shape[1] <= _FEW_WEIGHTS else self.inner
        norms = np.linalg.norm(objective.evaluate(start, order=1).gradient, axis=1)
        enough = max(tolerance, _ENOUGH * float(norms.min()))
        width, before, weights = _WIDEST, start, start
        while width > width_asked:
            wider = replace(objective, loss=with_joint(objective.loss, width))
            # The line through the last two solutions, at the new width.
            guess = weights + (weights - before) / _FACTOR if width < _WIDEST / _FACTOR else weights
            before, weights = weights, narrow.solve(wider, guess, enough).weights
            width /= _FACTOR
        return narrow.solve(objective, weights, tolerance)


def joint_of(loss: Loss) -> float | None:
    """Half the width of the joint of a hinge, or of one a class; None for other losses."""
    of_one = loss.loss if isinstance(loss, OneVsRest) else loss
    return of_one.smoothing if isinstance(of_one, (HuberHinge, SmoothHinge)) else None


def with_joint(loss: Any, half_width: float) -> Any:
    """The same loss with a joint of another width; the hinge itself with a parabola."""
    if isinstance(loss, OneVsRest):
        return replace(loss, loss=with_joint(loss.loss, half_width))
    return HuberHinge(half_width) if isinstance(loss, Hinge) else replace(loss, smoothing=half_width)
