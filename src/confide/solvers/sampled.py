"""Newton's method for many rows: the Hessian of a sample of them, and gradients of all.

A sample of m rows gives the Hessian up to a relative error of about sqrt(D / m). In that metric the objective is nearly a
round bowl, so a few gradient passes, each several times cheaper than a Hessian, reach the last digit. The minimiser over the
sample is where they start.

Many problems over the same rows differ in their linear terms alone. Their centre is found as one problem, for which passes
are cheap, and so is one Hessian of all rows there. With gradient and Hessian at the centre corrected to those of all rows,
the sample tells where each problem ends up to a product of two small numbers: its error from sampling, times how much the
Hessian changes on the way from the centre. What that leaves is taken away by a step in single precision.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import cast

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from confide.erm.objective import Evaluation, Objective
from confide.solvers.lbfgs import LimitedMemory, on_part
from confide.solvers.newton import Newton
from confide.solvers.rough import RoughObjective, cheaper, for_a_metric, in_single_precision
from confide.solvers.solver import Solution
from confide.types import Array, Indices, Weights

_FEWEST_ROWS = 2000
_ROWS_PER_WEIGHT = 8
_HESSIAN_SHARE = 12.0
"""The sample's Hessian may cost so many times what a gradient of all rows costs, in multiplications."""
_MOST_OF_ROWS = 1 / 16
"""The sample is a copy: memory for it stays below a tenth of that of the rows, its own part included."""
_MOST_OF_FEW_ROWS = 1 / 6
_PLENTY = 60
"""Rows for each weight beyond which the sample is no larger a part of the rows than of many."""
_ENOUGH_PER_WEIGHT = 4000
"""Rows for each weight beyond which more would save no pass."""
_SMALL_SAMPLE = 2**24
"""Entries, 128 MiB: memory that nobody misses. Up to there a sample may be a larger part of the rows."""
_LARGEST_SHARE = 1 / 4
"""With fewer rows a Hessian of all is cheap enough."""
_ROUGHLY = 1e-2
"""How closely a part of the sample is solved, as a share of the gradient's norm at the start."""
_LESS_ROUGHLY = 0.1
"""The same where the start is the minimiser over a part of the sample."""
_CLOSELY = 1e-3
"""How closely problems are solved on the way to others, as a share of the gradient norm where that began."""
_CENTRE = 0.1
"""How closely the centre of many problems is found, as a share of how far apart their linear terms are."""
_FEW_STEPS = 8
"""So many lead from the minimiser over a part of the sample to that over the sample, where the part tells enough."""
_MOST_SLOW_STEPS = 25
_MOST_STEPS_OF_A_HINGE, _MOST_SLOW_STEPS_OF_A_HINGE = 40, 8
"""Where a loss bends suddenly the metric is soon of another place: a Hessian of all rows costs less than many searches."""
_HESSIAN_PER_PROBLEM = 4
"""With so many weights for each problem or fewer a Hessian of all rows costs less than a gradient of all problems."""
_FEW_PROBLEMS = 4
"""For more, products of matrices take the time of a pass, and clipping next to none."""


@dataclass(frozen=True, slots=True)
class Metric:
    """Takes gradients (k, D) to steps: `share` times the inverse of a factored Hessian."""

    factor: tuple[Array, bool]
    share: float = 1.0

    @classmethod
    def of(cls, hessian: Array) -> Metric | None:
        """That of a Hessian, which is written over; None where it is not numerically positive definite."""
        try:
            return cls(cho_factor(hessian.T, lower=True, overwrite_a=True, check_finite=False))
        except LinAlgError:
            return None

    def __call__(self, gradients: Array) -> Array:
        steps: Array = self.share * cho_solve(self.factor, gradients.T, check_finite=False).T
        return steps


@dataclass(frozen=True, slots=True)
class _Corrected:
    """Problems over a sample, with gradient and Hessian of all rows at one point. What L-BFGS asks of an `Objective`.

    Parameters
    ----------
    near : over the sample, its linear terms corrected
    centre : (1, D) where the Hessian is corrected
    missing : (D, D), what is added to the Hessian
    """

    near: Objective
    centre: Weights
    missing: Array

    @property
    def smoothness(self) -> float:
        return self.near.smoothness

    def restrict(self, which: Indices) -> _Corrected:
        return replace(self, near=self.near.restrict(which))

    def evaluate(self, weights: Weights, order: int) -> Evaluation:
        found = self.near.evaluate(weights, order)
        return replace(found, gradient=found.gradient + (weights - self.centre) @ self.missing)


@dataclass(frozen=True, slots=True)
class SampledNewton:
    """L-BFGS in the metric of a sample's Hessian; plain Newton for few rows, and for what this does not finish."""

    def solve(self, objective: Objective, start: Weights, tolerance: float) -> Solution:
        n_rows, width = objective.source.n_rows, start.shape[1]
        sample = getattr(objective.source, "sample", None)
        affordable = max(_MOST_OF_ROWS * n_rows, _SMALL_SAMPLE / max(1, objective.source.n_features))
        useful = min(
            _HESSIAN_SHARE * n_rows / width,
            _MOST_OF_FEW_ROWS * n_rows,
            max(_MOST_OF_ROWS * n_rows, _PLENTY * width),
            _ENOUGH_PER_WEIGHT * width,
        )
        enough = max(_ROWS_PER_WEIGHT * width, _FEWEST_ROWS, min(useful, affordable))
        if sample is None or enough > _LARGEST_SHARE * n_rows:
            return Newton().solve(objective, start, tolerance)
        part = sample(int(enough))
        near, share = on_part(objective, part)
        solution = self._in_metric(objective, near, share, start, tolerance)
        weights, norms = solution.weights, solution.gradient_norm
        # Written so that a NaN counts as unfinished. A tolerance of 0 is never met: there all is left as it is.
        left = np.flatnonzero(~(norms <= tolerance)) if tolerance > 0.0 else np.flatnonzero(~np.isfinite(norms))
        if left.size:
            # Steps from afar may lead where nothing can be computed.
            begin = np.where(np.isfinite(weights[left]), weights[left], start[left])
            again = Newton().solve(objective.restrict(left), begin, tolerance)
            weights[left], norms[left] = again.weights, again.gradient_norm
        return Solution(weights, norms)

    def _in_metric(self, objective: Objective, near: Objective, share: float, start: Weights, tolerance: float) -> Solution:
        middle, first = _mean(near), start.mean(axis=0, keepdims=True)
        # The first steps, from afar, need fewer rows still.
        few = near.source.sample(near.source.n_rows // 4)  # type: ignore[attr-defined]  # it has one if its source had
        fewer, _ = on_part(middle, few)
        bent, bent_few = (for_a_metric(problem, fewer, first) for problem in (middle, fewer))
        afar = Newton(roughly=_ROUGHLY, most_steps=30).solve(bent_few, first, 0.0).weights
        if not objective.loss.self_concordant:
            # Which rows lie in the joint of a hinge changes on the way, and the Hessian with them.
            afar = Newton(roughly=_LESS_ROUGHLY, most_steps=30).solve(bent, afar, 0.0).weights
        there = bent.evaluate(afar, order=2)
        on_sample = Metric.of(there.hessian[0])
        if on_sample is None:
            return Solution(start.copy(), np.full(len(start), np.nan))
        few_problems = len(start) <= _FEW_PROBLEMS
        found = cheaper(objective, fewer, first, afar) if few_problems and tolerance > 0.0 else ()
        if objective.loss.self_concordant:
            enough = _ROUGHLY * float(np.linalg.norm(there.gradient))
            closer = LimitedMemory(_FEW_STEPS, metric=on_sample).solve(middle, afar, enough)
            afar = closer.weights
            if not closer.gradient_norm[0] <= enough:
                # The few rows were too few, as where they can nearly be told apart: their metric is of another place.
                afar = Newton(most_steps=30).solve(middle, afar, enough).weights
                on_sample = Metric.of(middle.evaluate(afar, order=2).hessian[0]) or on_sample
        begin = np.repeat(afar, len(start), axis=0)
        metric = replace(on_sample, share=share)
        if len(start) > 1:
            single = None if few_problems or tolerance == 0.0 else in_single_precision(objective, fewer, first)
            begin, metric = self._spread(objective, near, share, begin, metric, single)
        method = LimitedMemory(100, metric=metric, most_slow_steps=_MOST_SLOW_STEPS)
        if not objective.loss.self_concordant:
            most_steps, most_slow_steps = _MOST_STEPS_OF_A_HINGE, _MOST_SLOW_STEPS_OF_A_HINGE
            method = replace(method, most_steps=most_steps, most_slow_steps=most_slow_steps, anew=False)
        return replace(method, from_afar=found).solve(objective, begin, tolerance)

    def _spread(
        self,
        objective: Objective,
        near: Objective,
        share: float,
        begin: Weights,
        metric: Metric,
        single: RoughObjective | None,
    ) -> tuple[Weights, Metric]:
        """From a rough centre to where each problem ends, roughly; and the metric there, the best that is cheap."""
        middle = _mean(objective)
        method = LimitedMemory(30, metric=metric, roughly=_CLOSELY, most_slow_steps=_MOST_SLOW_STEPS)
        # How far problems lie apart decides how close to the centre they need to begin.
        apart = float(np.median(np.linalg.norm(objective.linear - middle.linear, axis=1)))
        centre = method.solve(middle, begin[:1], _CENTRE * apart).weights
        cheap = begin.shape[1] <= _HESSIAN_PER_PROBLEM * len(begin)
        there = (middle if single is None else replace(single, exact=middle)).evaluate(centre, order=2 if cheap else 1)
        on_sample = _mean(near).evaluate(centre, order=2 if cheap else 1)
        missing = np.zeros((begin.shape[1],) * 2)
        if cheap:
            missing = share * there.hessian[0] - on_sample.hessian[0]
            metric = Metric.of(there.hessian[0]) or metric
        corrected = _Corrected(
            replace(near, linear=near.linear + (share * there.gradient - on_sample.gradient)), centre, missing
        )
        gradients = there.gradient + (objective.linear - middle.linear)
        ends = centre - metric(gradients)
        # Where this fails it may leave any points: the steps over all rows that follow are guarded.
        steps = LimitedMemory(30, metric=replace(metric, share=metric.share / share), most_slow_steps=_MOST_SLOW_STEPS)
        enough = share * _CLOSELY * float(np.linalg.norm(gradients, axis=1).min())
        ends = steps.solve(cast(Objective, corrected), ends, enough).weights
        ends = np.where(np.isfinite(ends), ends, centre)
        if single is not None:
            # How far they still are is known to a few digits, which is all that one more step asks for.
            ends = ends.astype(np.float32).astype(np.float64)
            closer = ends + metric(-single.evaluate(ends, order=1).gradient)
            ends = np.where(np.isfinite(closer), closer, ends)
        return ends, metric


def _mean(objective: Objective) -> Objective:
    """One problem, the mean of all."""
    return replace(objective, linear=objective.linear.mean(axis=0, keepdims=True))
