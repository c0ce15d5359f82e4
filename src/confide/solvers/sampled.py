"""Newton's method for many rows: the Hessian of a sample of the rows, and gradients of all rows.

A sample of m rows gives the Hessian of D weights up to a relative error of about sqrt(D / m). In the metric of that Hessian
the objective is nearly round, so a few passes for gradients are enough to reach the last digit, and each is several times
cheaper than a pass for a Hessian. They start at the minimiser over the sample.

Many problems over the same rows differ in their linear terms alone. Their mean is solved first, as one problem whose passes
are cheap. Its minimiser is called the centre, and one Hessian of all rows is computed there if that is cheap. Then the
problems are solved over the sample, with its gradient and Hessian at the centre corrected to those of all rows. The error
that this leaves is a product of two small numbers: the sampling error, and how much the Hessian changes between the centre
and the minimiser of the problem. One step in single precision removes most of that error.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve, get_blas_funcs

from confide.array_types import Array, Indices, Weights
from confide.compiled.stored_rows import StoredArray
from confide.erm.objective import HasGradients, Objectives, Solution, mean_of, on_part
from confide.erm.row_sums import Totals
from confide.erm.source import SampledRows
from confide.solvers.cheap_gradients import (
    CheapObjective,
    cheaper_stages,
    compiled_objective,
    error_of,
    folded_rows,
    in_single_precision,
    made_once,
    rows_in_single,
    shortens_none,
    with_cheap_hessians,
)
from confide.solvers.lbfgs import LimitedMemory, Stage
from confide.solvers.newton import Newton

# Problems that their ridge makes nearly round: the Hessian of a sample would save next to no pass, and costs several.
#
# Whether a problem is one is decided by its curvature over a few of the rows: the largest is compared with the ridge, which
# is the least. Then L-BFGS leads to the minimiser in a few passes, and each step multiplies the distance by about
# (curvature - ridge) / (curvature + ridge) or less.

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
_MOST_STEPS_WELL_CONDITIONED, _MOST_SLOW_STEPS_WELL_CONDITIONED = 30, 8


def solved_if_round(objective: Objectives, start: Weights, tolerance: float) -> Solution | None:
    """The minimiser of one problem with many weights if it is nearly round; None if it is not, or was not found.

    Parameters
    ----------
    objective : one problem, with a loss of one score
    start : (1, D)
    tolerance : of the gradient norm
    """
    known = len(start) == 1 and objective.loss.constants.self_concordant and objective.loss.constants.n_outputs == 1
    rows = objective.source.sample(_ROWS) if known and start.shape[1] >= _FEWEST_WEIGHTS and tolerance > 0.0 else None
    if rows is None:
        return None
    few, share = on_part(objective, rows)
    largest = _largest_curvature(few, start) / share
    # Written so that what is not a number counts as not round.
    if not largest <= _LARGEST_RATIO * objective.l2:
        return None
    curvature = 0.5 * (largest + objective.l2)
    method = LimitedMemory(
        _MOST_STEPS_WELL_CONDITIONED,
        metric=lambda gradients: gradients / curvature,
        most_slow_steps=_MOST_SLOW_STEPS_WELL_CONDITIONED,
        cheaper=cheaper_stages(objective, few, start, start),
        retry_exactly=False,
    )
    solution = method.solve(objective, start, tolerance)
    return solution if (solution.gradient_norm <= tolerance).all() else None


def _largest_curvature(few: Objectives | CheapObjective, start: Weights) -> float:
    """About the largest eigenvalue of the Hessian at the start, ridge included."""
    step = _STEP / few.row_norm
    # Any direction that is not alike for columns will do.
    direction = np.sin(1.0 + np.arange(float(start.size))).reshape(start.shape)
    here, length = few.evaluate(start, order=1).gradient, 0.0
    for _ in range(_ROUNDS):
        direction /= np.linalg.norm(direction)
        direction = (few.evaluate(start + step * direction, order=1).gradient - here) / step
        length = float(np.linalg.norm(direction))
    return length


# A metric from many rows, where the compiled kernel makes the Hessian of few weights at the price of a few gradients.
#
# The Hessian of a sample is off by about sqrt(D / m), for D weights and m rows, and each step in its metric leaves about
# that share of the gradient. Over many rows the gradient has to become so small that this takes five or six steps. In the
# metric of an eighth of all rows, close to the minimiser, one or two steps fewer are enough, and it costs less than one of
# them.

_MOST_WEIGHTS = 32
"""The largest number of weights at which a Hessian was seen to pay. Its cost grows with the square of this number."""
_PASSES_SAVED = 4.0
"""A Hessian pays where the metric of the sample would need at least so many passes after the first one."""
_SHARE, _LEAST_OVER_SAMPLE = 8, 4
"""The Hessian is made from one row of so many; from more, where these would be fewer than so many times the sampled rows.

Of 5,000,000 rows of 20 numbers, an eighth takes half a pass and all rows three. A fit takes five passes either way, one more
with a sixteenth, and seven without (benchmarks/compiled_kernel.py)."""
_LEFT_OVER_ERROR = 1.5
"""A step leaves about so many times the error of the metric. One fit to 5,000,000 rows of 20 numbers showed 1.2 to 1.9."""


def closer_start(
    objective: CheapObjective,
    start: Weights,
    metric: Callable[[Array], Array],
    of_hessian: Callable[[Array], Callable[[Array], Array] | None],
    n_sampled: int,
    tolerance: float,
) -> tuple[Weights, Callable[[Array], Array], Array] | None:
    """Two steps from the start, the second one in the metric of many rows; None where that seems not to pay.

    Where they have led (1, D); the metric, from the Hessian of many rows one step before; and the gradient norm there (1,).

    Parameters
    ----------
    objective : one problem over all rows, by the kernel. For rows that are codes the answer is None: there two such steps do
        not pay, and a fit in memory would take other steps than a fit of the same rows from a file
    start : (1, D), near the minimiser over a sample
    metric : that of the sample
    of_hessian : makes a metric of a Hessian (D, D), or None where it is not positive definite
    n_sampled : rows of the sample
    tolerance : the gradient norm that is asked for
    """
    n_weights = start.shape[1]
    if n_weights > _MOST_WEIGHTS or not (isinstance(objective._rows, StoredArray) and objective.has_hessians):
        return None
    left = _LEFT_OVER_ERROR * math.sqrt(n_weights / n_sampled)
    first = objective.evaluate(start, order=1).gradient
    far = float(np.linalg.norm(first))
    # Written so that what is not a number does not pay.
    if not (0.0 < left < 1.0 and far * left**_PASSES_SAVED > tolerance):
        return None
    closer = start - metric(first)
    share = max(1, min(_SHARE, objective.source.n_rows // (_LEAST_OVER_SAMPLE * n_sampled)))
    sums: Any = objective.row_sum
    there = replace(objective, row_sum=replace(sums, share=share)).evaluate(closer, order=2)
    norm = np.linalg.norm(there.gradient, axis=1)
    better = of_hessian(there.hessian[0])
    if better is None or not norm[0] < far:
        return None
    weights = closer - better(there.gradient)
    return (weights, better, norm) if np.isfinite(weights).all() else None


_FEWEST_ROWS = 2000
"""A sample has at least this many rows."""
_FEWEST_ROWS_PER_WEIGHT = 8
"""A sample has at least this many rows per weight. With fewer its Hessian is too far from that of all rows."""
_HESSIAN_OVER_GRADIENT = 12.0
"""The Hessian of the sample may cost this many times as many multiplications as a gradient of all rows."""
_SHARE_OF_MANY_ROWS = 1 / 16
"""A sample of many rows has at most this share of them. It is a copy, and with the part of it that the first steps use its
memory stays below a tenth of that of the rows (benchmarks/large_fit.py)."""
_SHARE_OF_FEW_ROWS = 1 / 6
"""A sample of fewer rows has at most this share of them."""
_MANY_ROWS_PER_WEIGHT = 60
"""A sample may exceed `_SHARE_OF_MANY_ROWS` as long as it has no more rows per weight than this."""
_MOST_ROWS_PER_WEIGHT = 4400
"""A sample has at most this many rows per weight. More would save no pass (benchmarks/large_fit.py, option --growth)."""
_SMALL_SAMPLE = 2**24
"""A sample of so many numbers, 128 MiB, may exceed `_SHARE_OF_MANY_ROWS`: few machines lack that memory."""
_LARGEST_SHARE = 1 / 4
"""If a sample would need a larger share of the rows, there is none: Hessians of all rows are cheap enough then."""
_PART_OF_SAMPLE = 4
"""The first steps use one in so many of the sampled rows."""
_LEAST_CHANCE = 0.25
"""Entries of a sampled Hessian are drawn towards 0 if chance may explain this share of them, in squares, or more."""
_CLOSE_ON_PART = 1e-2
"""How closely problems over a part of the sample are solved, as a share of the gradient norm at the start."""
_CLOSE_FROM_PART = 0.1
"""The same for a hinge over the whole sample, starting at the minimiser over the part."""
_CLOSE_ON_THE_WAY = 1e-3
"""How closely problems are solved on the way to others, as a share of the gradient norm at their start."""
_CLOSE_TO_CENTRE = 0.1
"""How closely the centre of many problems is found, as a share of how far apart their linear terms are."""
_MOST_SAMPLE_STEPS = 8
"""This many steps lead from the minimiser over a part of the sample to that over the sample, if the part is large enough."""
_MOST_NEWTON_STEPS = 30
"""Limit for Newton's method over the sample and its part."""
_MOST_CENTRE_STEPS = 30
"""Limit for L-BFGS on the way to the centre and to the minimisers over the corrected sample."""
_MOST_STEPS, _MOST_SLOW_STEPS = 100, 25
"""Limits for L-BFGS over all rows; see `LimitedMemory`."""
_MOST_STEPS_OF_A_HINGE, _MOST_SLOW_STEPS_OF_A_HINGE = 40, 8
"""The same for losses that are not self-concordant, such as hinges. Their metric is soon useless, and a Hessian of all rows
costs less than many line searches. tests/solvers/test_passes.py counts the passes."""
_WEIGHTS_PER_PROBLEM = 4
"""With at most this many weights for each problem, a Hessian of all rows for the mean problem costs less than a pass for the
gradients of all problems."""
_FEW_PROBLEMS = 4
"""For more problems than this, products of matrices take most of the time of a pass and clipping takes next to none, so
stages without clipping gain nothing."""


@dataclass(frozen=True, slots=True)
class Metric:
    """Takes gradients (k, D) to steps: `share` times the inverse of a factored Hessian."""

    factor: tuple[Array, bool]
    share: float = 1.0

    @classmethod
    def of(cls, hessian: Array) -> Metric | None:
        """The metric of a Hessian, whose memory is written over; None where it is not numerically positive definite."""
        with suppress(LinAlgError):
            return cls(cho_factor(hessian.T, lower=True, overwrite_a=True, check_finite=False))
        return None

    def __call__(self, gradients: Array) -> Array:
        factor, own = self.factor[0], gradients.astype(self.factor[0].dtype, copy=False)
        if len(own) > 1:
            return np.asarray(self.share * cho_solve(self.factor, own.T, check_finite=False).T, np.float64)
        (solve,) = get_blas_funcs(("trsv",), (factor,))  # for one problem this takes a fifth of the time
        steps = solve(factor, solve(factor, own[0], lower=True), lower=True, trans=True)
        return np.asarray(self.share * steps, np.float64)[None]


def without_chance(hessian: Array, n_rows: int) -> Array:
    """The Hessian of a sample, its other entries drawn towards 0 where chance may explain them; the diagonal stays.

    Columns that have nothing to do with each other have correlations of about 1 / sqrt(m) in a sample of m rows. A metric
    with these correlations makes steps that leave much of the gradient. The share that is taken off is that of Ledoit and
    Wolf (2004), with the variance that correlations of such columns have. Less than a quarter is not taken off.

    Parameters
    ----------
    hessian : (D, D), which is left as it is
    n_rows : m
    """
    diagonal = np.diagonal(hessian)
    if not (diagonal > 0.0).all():
        return hessian
    n_weights, scales = len(diagonal), 1.0 / np.sqrt(diagonal)
    correlations = hessian * scales * scales[:, None]
    others = float(np.einsum("ij,ij->", correlations, correlations)) - n_weights
    by_chance = n_weights * (n_weights - 1.0) / n_rows
    # Written so that what is not a number changes nothing.
    if not by_chance > _LEAST_CHANCE * others:
        return hessian
    left: Array = hessian * (1.0 - min(1.0, by_chance / max(others, by_chance)))
    np.fill_diagonal(left, diagonal)
    return left


@dataclass(frozen=True, slots=True)
class _Corrected:
    """Problems over a sample whose gradient and Hessian at one point are those of all rows.

    Parameters
    ----------
    near : the problems over the sample, their linear terms corrected
    centre : (1, D) where the Hessian is corrected
    missing : (D, D), what is added to the Hessian
    """

    near: Objectives
    centre: Weights
    missing: Array

    def restrict(self, which: Indices) -> _Corrected:
        return replace(self, near=self.near.restrict(which))

    def evaluate(self, weights: Weights, order: int) -> Totals:
        evaluation = self.near.evaluate(weights, order)
        return evaluation._replace(gradient=evaluation.gradient + (weights - self.centre) @ self.missing)


def _sampled_rows(n_rows: int, n_features: int, width: int) -> int:
    """How many rows a sample of `n_rows` should have, for problems of `width` weights; 0 for no sample."""
    affordable = max(_SHARE_OF_MANY_ROWS * n_rows, _SMALL_SAMPLE / max(1, n_features))
    few, many = _SHARE_OF_FEW_ROWS * n_rows, max(_SHARE_OF_MANY_ROWS * n_rows, _MANY_ROWS_PER_WEIGHT * width)
    useful = min(_HESSIAN_OVER_GRADIENT * n_rows / width, few, many, _MOST_ROWS_PER_WEIGHT * width)
    wanted = max(_FEWEST_ROWS_PER_WEIGHT * width, _FEWEST_ROWS, min(useful, affordable))
    return 0 if wanted > _LARGEST_SHARE * n_rows else int(wanted)


# Dense rows that a map makes anew in each pass, such as random features: they are made once, in single precision.
#
# A pass over the rows that are kept costs less than to make them. So few rows, each a sum of many rows with signs, are
# enough for a metric: some more steps make up for it. In some directions they are much less curved than all rows, and steps
# there would be too long. A stronger ridge makes the metric safe.

_FOLDED_ROWS_PER_WEIGHT, _START_ROWS_PER_WEIGHT = 1.0, 1.0
"""About so many folded rows for each weight make the metric, and so many sampled rows the point where it is made. A Hessian
of a sample took as many passes with twice as many rows: 12 over diamonds at (1, 1e-5), and 19 at 4
(benchmarks/notes/which_interactions.md)."""
_MORE_RIDGE = 2.0
"""The ridge of the metric is larger by this share, over the folded rows for each weight. Columns of Covertype at (4, 1e-5)
have a smaller ridge than its features. A fit takes 1.9 s there, and 6.9 s with half of this share and half of the rows at
the start. Other fits are slower by up to a tenth. With a share of 8, fits to diamonds and flights take half as many passes
more."""
_CLOSE_ON_MADE_ROWS, _MOST_STEPS_ON_MADE_ROWS, _PAIRS_ON_MADE_ROWS = 0.03, 200, 30
"""How closely the minimiser over the sample is found, as a share of the gradient norm at the start; the most steps, and the
pairs that are kept."""
_ROWS_WITH_ERRORS = 500
"""The error of single precision is measured on so many rows."""
_MOST_WEIGHTS_OF_MADE_ROWS = 4000
"""With more weights the Hessian would take too long."""


def solved_over_made_rows(objective: Objectives, start: Weights, tolerance: float) -> Solution | None:
    """The minimiser of one problem whose rows are made in each pass; None for others, and where it was not found."""
    n_rows, width, constants = objective.source.n_rows, start.shape[1], objective.loss.constants
    is_one = len(start) == 1 and constants.joint is None and objective.penalty.has_ridges_alone
    made = made_once(objective) if is_one and _FEWEST_WEIGHTS <= width <= _MOST_WEIGHTS_OF_MADE_ROWS else None
    if made is None:
        return None
    parts: Any = (objective.source.sample(min(int(n), n_rows)) for n in (_START_ROWS_PER_WEIGHT * width, _ROWS_WITH_ERRORS))
    (exact, _), (exact_few, _) = (on_part(objective, part) for part in parts)
    near = rows_in_single(exact)
    steps = LimitedMemory(_MOST_STEPS_ON_MADE_ROWS, relative_tolerance=_CLOSE_ON_MADE_ROWS)
    at = steps.solve_in_metric(near, start, 0.0, 1.0 / _largest_curvature(near, start)).weights
    folded = folded_rows(made, at, int(_FOLDED_ROWS_PER_WEIGHT * width))
    hessian = np.dot(folded.T, folded)
    np.einsum("dd->d", hessian)[...] += (1.0 + _MORE_RIDGE * width / len(folded)) * objective.ridges
    # A factor in single precision takes half the time, and a metric needs no more digits.
    if (metric := Metric.of(hessian.copy()) or Metric.of(hessian.astype(np.float64))) is None:
        return None
    stage = Stage(made, error_of(rows_in_single(exact_few), exact_few, at, n_rows), np.float32)
    method = LimitedMemory(_MOST_STEPS, _PAIRS_ON_MADE_ROWS, metric, most_slow_steps=_MOST_SLOW_STEPS, cheaper=(stage,))
    solution = replace(method, retry_exactly=False).solve(objective, at, tolerance)
    # A tolerance of 0 is never met, and every finite answer is kept then.
    found = solution.gradient_norm <= tolerance if tolerance > 0.0 else np.isfinite(solution.gradient_norm)
    return solution if found.all() else None


@dataclass(frozen=True, slots=True)
class SampledNewton:
    """L-BFGS in the metric of a sample's Hessian; plain Newton for few rows, and for what L-BFGS does not finish.

    With a penalty that has more than ridges, no stage is used that makes gradients by their formula.
    """

    def solve(self, objective: Objectives, start: Weights, tolerance: float) -> Solution:
        wanted = _sampled_rows(objective.source.n_rows, objective.source.n_features, start.shape[1])
        quick = solved_if_round(objective, start, tolerance) if wanted and objective.penalty.has_ridges_alone else None
        if quick is not None:
            return quick
        part = objective.source.sample(wanted) if wanted else None
        prepare = self._in_metric if objective.penalty.has_ridges_alone else _in_plain_metric
        prepared = None if part is None else prepare(objective, part, start, tolerance)
        if prepared is None:
            return Newton().solve(objective, start, tolerance)
        # The sample needs no memory any more while all rows are read.
        (method, begin), part = prepared, None
        solution = method.solve(objective, begin, tolerance)
        weights, norms = solution.weights, solution.gradient_norm
        # Written so that a NaN counts as unfinished. A tolerance of 0 is never met, and every finite answer is kept then.
        left = np.flatnonzero(~(norms <= tolerance)) if tolerance > 0.0 else np.flatnonzero(~np.isfinite(norms))
        if left.size:
            # First steps, far from the minimiser, may have led to where nothing can be computed.
            begin = np.where(np.isfinite(weights[left]), weights[left], start[left])
            again = Newton().solve(objective.restrict(left), begin, tolerance)
            weights[left], norms[left] = again.weights, again.gradient_norm
        return Solution(weights, norms)

    def _in_metric(
        self, objective: Objectives, part: SampledRows, start: Weights, tolerance: float
    ) -> tuple[LimitedMemory, Weights] | None:
        near, share = on_part(objective, part)
        middle, first = mean_of(near), start.mean(axis=0, keepdims=True)
        # The first steps, far from the minimiser, need fewer rows still.
        fewer, _ = on_part(middle, part.sample(part.n_rows // _PART_OF_SAMPLE))
        unshortened = shortens_none(fewer, first)
        bent, bent_fewer = (with_cheap_hessians(problem, fewer, first, unshortened) for problem in (middle, fewer))
        newton = Newton(relative_tolerance=_CLOSE_ON_PART, most_steps=_MOST_NEWTON_STEPS)
        at = newton.solve(bent_fewer, first, 0.0).weights
        if not objective.loss.constants.self_concordant:
            # Which rows lie in the joint of a hinge changes on the way, and the Hessian with them.
            at = replace(newton, relative_tolerance=_CLOSE_FROM_PART).solve(bent, at, 0.0).weights
        there = bent.evaluate(at, order=2)
        hessian = there.hessian[0]
        likely = without_chance(hessian, part.n_rows)
        on_sample = Metric.of(hessian)
        on_all = on_sample if likely is hessian else Metric.of(likely)
        if on_sample is None or on_all is None:
            return None
        few_problems = len(start) <= _FEW_PROBLEMS
        cheaper = cheaper_stages(objective, fewer, first, at, unshortened) if few_problems and tolerance > 0.0 else ()
        if objective.loss.constants.self_concordant:
            enough = _CLOSE_ON_PART * float(np.linalg.norm(there.gradient))
            steps = LimitedMemory(_MOST_SAMPLE_STEPS, metric=on_sample)
            closer = steps.solve_in_metric(compiled_objective(middle, unshortened) or middle, at, enough)
            at = closer.weights
            if not closer.gradient_norm[0] <= enough:
                # The part had too few rows, as may be where classes can nearly be separated, and the metric does not fit.
                at = Newton(most_steps=_MOST_NEWTON_STEPS).solve(middle, at, enough).weights
                on_all = on_sample = Metric.of(middle.evaluate(at, order=2).hessian[0]) or on_sample
        begin = np.repeat(at, len(start), axis=0)
        metric = replace(on_sample if len(start) > 1 else on_all, share=share)
        method = LimitedMemory(_MOST_STEPS, metric=metric, most_slow_steps=_MOST_SLOW_STEPS)
        if len(start) > 1:
            single = None if few_problems or tolerance == 0.0 else in_single_precision(objective, fewer, first)
            begin, metric = self._spread(objective, near, share, begin, metric, single)
            method = replace(method, metric=metric)
        elif cheaper and isinstance(cheaper[0].objective, CheapObjective) and objective.loss.constants.self_concordant:
            closer_by = closer_start(cheaper[0].objective, at, metric, Metric.of, part.n_rows, tolerance)
            if closer_by is not None:
                begin, better, before = closer_by
                method = replace(method, metric=better, before=before)
        if not objective.loss.constants.self_concordant:
            most_steps, most_slow_steps = _MOST_STEPS_OF_A_HINGE, _MOST_SLOW_STEPS_OF_A_HINGE
            method = replace(method, most_steps=most_steps, most_slow_steps=most_slow_steps, retry_exactly=False)
        return replace(method, cheaper=cheaper), begin

    def _spread(
        self,
        objective: Objectives,
        near: Objectives,
        share: float,
        begin: Weights,
        metric: Metric,
        single: CheapObjective | None,
    ) -> tuple[Weights, Metric]:
        """About where each of many problems ends, from near their centre; and the best metric there that is cheap.

        Parameters
        ----------
        objective, near : the problems over all rows, and over the sample
        share : of the rows in the sample
        begin : (k, D), k times the same point
        metric : of the sample, there
        single : the problems over all rows in single precision, or None
        """
        middle = mean_of(objective)
        memory = partial(LimitedMemory, _MOST_CENTRE_STEPS, most_slow_steps=_MOST_SLOW_STEPS)
        method = memory(metric=metric, relative_tolerance=_CLOSE_ON_THE_WAY)
        # The further the problems lie apart, the less it matters how close to the centre they begin.
        apart = float(np.median(np.linalg.norm(objective.linear - middle.linear, axis=1)))
        centre = method.solve(middle, begin[:1], _CLOSE_TO_CENTRE * apart).weights
        hessian_is_cheap = begin.shape[1] <= _WEIGHTS_PER_PROBLEM * len(begin)
        order = 2 if hessian_is_cheap else 1
        at_centre: HasGradients = middle if single is None else replace(single, exact=middle)
        there = at_centre.evaluate(centre, order=order)
        on_sample = mean_of(near).evaluate(centre, order=order)
        missing = np.zeros((begin.shape[1],) * 2)
        if hessian_is_cheap:
            missing = share * there.hessian[0] - on_sample.hessian[0]
            metric = Metric.of(there.hessian[0]) or metric
        linear = near.linear + (share * there.gradient - on_sample.gradient)
        corrected = _Corrected(near.replaced(linear=linear), centre, missing)
        gradients = there.gradient + (objective.linear - middle.linear)
        ends = centre - metric(gradients)
        # Where this fails it may lead to any points: the steps over all rows that follow have limits of their own.
        steps = memory(metric=replace(metric, share=metric.share / share))
        enough = share * _CLOSE_ON_THE_WAY * float(np.linalg.norm(gradients, axis=1).min())
        ends = steps.solve_in_metric(corrected, ends, enough).weights
        ends = np.where(np.isfinite(ends), ends, centre)
        if single is not None:
            # Gradients in single precision tell the remaining distance to a few digits, and one more step needs no more.
            ends = ends.astype(np.float32).astype(np.float64)
            closer = ends + metric(-single.evaluate(ends, order=1).gradient)
            ends = np.where(np.isfinite(closer), closer, ends)
        return ends, metric


def _in_plain_metric(
    objective: Objectives, part: SampledRows, start: Weights, _tolerance: float
) -> tuple[LimitedMemory, Weights] | None:
    """L-BFGS in the metric of the sample's Hessian at its own minimiser, with the objectives' own gradients alone."""
    near, share = on_part(objective, part)
    newton = Newton(relative_tolerance=_CLOSE_ON_THE_WAY, most_steps=_MOST_NEWTON_STEPS)
    middle = mean_of(near)
    at = newton.solve(middle, start.mean(axis=0, keepdims=True), 0.0).weights
    metric = Metric.of(middle.evaluate(at, order=2).hessian[0])
    if metric is None:
        return None
    method = LimitedMemory(_MOST_STEPS, metric=replace(metric, share=share), most_slow_steps=_MOST_SLOW_STEPS)
    return method, np.repeat(at, len(start), axis=0)
