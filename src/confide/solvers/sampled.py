"""Newton's method for many rows: the Hessian of a sample of them, and gradients of all.

A sample of m rows gives the Hessian up to a relative error of about sqrt(D / m). In that metric the objective is nearly a
round bowl, so a few gradient passes, each several times cheaper than a Hessian, reach the last digit. The minimiser over the
sample is where they start. One metric serves all k problems, whose rows are the same.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from confide.erm.objective import Objective
from confide.solvers.lbfgs import LimitedMemory
from confide.solvers.newton import Newton
from confide.solvers.solver import Solution
from confide.types import Array, Weights

_FEWEST_ROWS = 2000
_ROWS_PER_WEIGHT = 8
_HESSIAN_SHARE = 5.0
"""The sample's Hessian may cost so many times what a gradient of all rows costs, in multiplications."""
_MOST_OF_ROWS = 1 / 16
"""The sample is a copy: memory for it stays below a tenth of that of the rows, its own part included."""
_LARGEST_SHARE = 1 / 4
"""With fewer rows a Hessian of all is cheap enough."""
_ROUGHLY = 1e-2
"""How closely problems are solved on the sample, as a share of their gradient norm at the start."""
_LESS_ROUGHLY = 0.1
"""The same where the start is the minimiser over a part of the sample."""
_MOST_SLOW_STEPS = 25


@dataclass(frozen=True, slots=True)
class SampledNewton:
    """L-BFGS in the metric of a sample's Hessian; plain Newton for few rows, and for what this does not finish."""

    def solve(self, objective: Objective, start: Weights, tolerance: float) -> Solution:
        n_rows, width = objective.source.n_rows, start.shape[1]
        sample = getattr(objective.source, "sample", None)
        enough = max(
            _ROWS_PER_WEIGHT * width, _FEWEST_ROWS, min(_HESSIAN_SHARE * len(start) * n_rows / width, _MOST_OF_ROWS * n_rows)
        )
        if sample is None or enough > _LARGEST_SHARE * n_rows:
            return Newton().solve(objective, start, tolerance)
        part = sample(int(enough))
        share = part.n_rows / n_rows
        near = replace(objective, source=part, l2=objective.l2 * share, linear=objective.linear * share)
        solution = self._in_metric(objective, near, share, start, tolerance)
        weights, norms = solution.weights, solution.gradient_norm
        # Written so that a NaN counts as unfinished. A tolerance of 0 is never met: there all is left as it is.
        left = np.flatnonzero(~(norms <= tolerance)) if tolerance > 0.0 else np.flatnonzero(~np.isfinite(norms))
        if left.size:
            again = Newton().solve(objective.restrict(left), weights[left], tolerance)
            weights[left], norms[left] = again.weights, again.gradient_norm
        return Solution(weights, norms)

    def _in_metric(self, objective: Objective, near: Objective, share: float, start: Weights, tolerance: float) -> Solution:
        middle = replace(near, linear=near.linear.mean(axis=0, keepdims=True))
        rough = Newton(roughly=_ROUGHLY, most_steps=30)
        # The first steps, from afar, need fewer rows still.
        few = near.source.sample(near.source.n_rows // 4)  # type: ignore[attr-defined]  # it has one if its source had
        part = few.n_rows / near.source.n_rows
        fewer = replace(middle, source=few, l2=middle.l2 * part, linear=middle.linear * part)
        afar = rough.solve(fewer, start.mean(axis=0, keepdims=True), 0.0).weights
        centre = Newton(roughly=_LESS_ROUGHLY, most_steps=30).solve(middle, afar, 0.0).weights
        hessian = middle.evaluate(centre, order=2).hessian[0]
        try:
            factor = cho_factor(hessian.T, lower=True, overwrite_a=True, check_finite=False)
        except LinAlgError:
            return Solution(start.copy(), np.full(len(start), np.nan))

        def on_sample(gradients: Array) -> Array:
            solved: Array = cho_solve(factor, gradients.T, check_finite=False).T
            return solved

        begin = np.repeat(centre, len(start), axis=0)
        if len(start) > 1:
            first = LimitedMemory(30, metric=on_sample, roughly=_ROUGHLY, most_slow_steps=_MOST_SLOW_STEPS)
            begin = first.solve(near, begin, 0.0).weights
        method = LimitedMemory(100, metric=lambda g: share * on_sample(g), most_slow_steps=_MOST_SLOW_STEPS)
        return method.solve(objective, begin, tolerance)
