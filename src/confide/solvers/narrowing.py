"""Losses with a narrow joint, such as a hinge, are minimised by way of wider joints.

Only the few rows whose margin lies in the joint add to the Hessian, and with a narrow joint these are soon other rows. So
the search begins with a wide joint, and each solution is the start for a joint a quarter as wide. Close to the hinge the
same rows stay in the joint, so the minimiser is a piecewise linear function of the width. Two solutions predict the next.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from confide.erm.joints import joint_of, unit_of_scores, with_joint
from confide.solvers.objectives import Objectives
from confide.solvers.solver import Solution, Solver
from confide.types import Weights

_WIDEST_JOINT = 0.5
"""Half the width of the joint at which the search begins, in units of the scores that the loss asks for."""
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
        widest = _WIDEST_JOINT * unit_of_scores(objective.loss)
        if width_asked is None or width_asked >= widest / _FACTOR:
            return self.inner.solve(objective, start, tolerance)
        narrow = self.narrow if self.narrow is not None and start.shape[1] <= _MOST_WEIGHTS else self.inner
        norms = np.linalg.norm(objective.evaluate(start, order=1).gradient, axis=1)
        enough = max(tolerance, _RELATIVE_TOLERANCE * float(norms.min()))
        width, before, weights = widest, start, start
        while width > width_asked:
            wider = objective.replaced(loss=with_joint(objective.loss, width))
            # The start is on the straight line through the last two solutions, at the new width.
            guess = weights + (weights - before) / _FACTOR if width < widest / _FACTOR else weights
            before, weights = weights, narrow.solve(wider, guess, enough).weights
            width /= _FACTOR
        return narrow.solve(objective, weights, tolerance)
