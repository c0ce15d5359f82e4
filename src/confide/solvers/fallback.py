"""Methods with a convergence theorem, so that data cannot provoke a refusal; and the solver that ends with them.

Both theorems (privacy/proofs/certificate.md, section "Reaching the tolerance") hold for gradients computed with an error
of at most rho, and end at a computed gradient norm of 4.9 rho or less. The plan's tolerance is 8 rho, of which the
certificate leaves 4.9 rho to the solver. This share is the `tolerance` of the methods here.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import issparse

from confide.array_types import Array, Weights
from confide.data.arrays import ArrayBlocks, MemorySource
from confide.erm.coded_rows import dense
from confide.erm.objective import Objectives, Solution, Solver
from confide.erm.penalties import least_subgradients, shrunk
from confide.erm.row_bounds import BallBound, CentredRows, is_centred
from confide.errors import ConfideError
from confide.solvers.cheap_gradients import in_memory
from confide.solvers.lbfgs import LimitedMemory
from confide.solvers.newton import Newton, newton_directions
from confide.solvers.proximal import AcceleratedProximalGradient, ProximalNewton
from confide.solvers.sampled import SampledNewton, solved_over_made_rows
from confide.solvers.scaled_lbfgs import ColumnScaledLimitedMemory

# Losses with a narrow joint, such as a hinge, are minimised by way of wider joints.
#
# Only the few rows whose margin lies in the joint add to the Hessian, and with a narrow joint these are soon other rows. So
# the search begins with a wide joint, and each solution is the start for a joint a quarter as wide. Close to the hinge the
# same rows stay in the joint, so the minimiser is a piecewise linear function of the width. Two solutions predict the next.

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
        width_asked = objective.loss.constants.joint
        widest = _WIDEST_JOINT * objective.loss.constants.unit
        if width_asked is None or width_asked >= widest / _FACTOR:
            return self.inner.solve(objective, start, tolerance)
        narrow = self.narrow if self.narrow is not None and start.shape[1] <= _MOST_WEIGHTS else self.inner
        norms = np.linalg.norm(objective.evaluate(start, order=1).gradient, axis=1)
        enough = max(tolerance, _RELATIVE_TOLERANCE * float(norms.min()))
        width, before, weights = widest, start, start
        while width > width_asked:
            wider = objective.replaced(loss=objective.loss.with_joint(width))
            # The start is on the straight line through the last two solutions, at the new width.
            guess = weights + (weights - before) / _FACTOR if width < widest / _FACTOR else weights
            before, weights = weights, narrow.solve(wider, guess, enough).weights
            width /= _FACTOR
        return narrow.solve(objective, weights, tolerance)


# Fewer rows than weights: the same problem in the space that the rows span.
#
# A minimiser is a sum of multiples of the rows and of the linear term, so it lies in the space that these span. In
# coordinates of that space there are few weights and a small Hessian. The coordinates belong to an orthonormal basis, so
# lengths and products stay the same.

_MOST_ROWS = 1000
"""The basis is computed for at most this many rows. The time for it grows with the square of their number."""


@dataclass(frozen=True, slots=True)
class InSpanOfRows:
    """Solves in the space of the rows where they are few and in memory. It has no theorem.

    Two solvers are asked, the second one for what the first did not finish. For a self-concordant loss, whose curvature
    changes slowly enough for gradients alone, `otherwise` is the first; for others, such as hinges, `inner` is.

    Parameters
    ----------
    inner : solver for the problem in the space of the rows
    otherwise : solver for the problem as it stands
    """

    inner: Solver
    otherwise: Solver

    def solve(self, objective: Objectives, start: Weights, tolerance: float) -> Solution:
        first = self.otherwise.solve if objective.loss.constants.self_concordant else self._in_span
        then = self._in_span if objective.loss.constants.self_concordant else self.otherwise.solve
        solution = first(objective, start, tolerance)
        # The norms are computed from the rows themselves, because rows in other coordinates differ in their last digits. A
        # norm of NaN counts as unfinished.
        weights = np.where(np.isfinite(solution.weights), solution.weights, start)
        norms = np.linalg.norm(objective.gradients(weights), axis=1)
        left = np.flatnonzero(~(norms <= tolerance))
        if left.size:
            again = then(objective.restrict(left), weights[left], tolerance)
            # A tolerance of 0 is never met, so the second method is always asked then. Its answer counts if it is better.
            gains = ~(again.gradient_norm >= norms[left]) & np.isfinite(again.gradient_norm)
            weights[left[gains]], norms[left[gains]] = again.weights[gains], again.gradient_norm[gains]
        return Solution(weights, norms)

    def _in_span(self, objective: Objectives, start: Weights, tolerance: float) -> Solution:
        """Weights found in the space of the rows. Where that space is not smaller, the start, with norms of NaN."""
        source, n_outputs = in_memory(objective.source), objective.loss.constants.n_outputs
        width = start.shape[1] // n_outputs
        if (
            source is None
            or source.n_rows > _MOST_ROWS
            or objective.source.n_rows + n_outputs * len(start) >= width
            or objective.loss.constants.by_length
            # In another basis the ridges of single weights would be a matrix.
            or np.ndim(objective.ridges)
        ):
            return Solution(start.copy(), np.full(len(start), np.nan))
        rows, linear = _rows(objective, source), objective.linear.reshape(-1, width)
        basis = np.linalg.qr(np.concatenate([rows, linear]).T)[0]

        def within(weights: Weights) -> Weights:
            return np.asarray((weights.reshape(-1, width) @ basis).reshape(len(start), -1))

        few = MemorySource(ArrayBlocks(rows @ basis), source.labels, source.row_weights, source.n_threads)
        # The rows are clipped and have their intercept already.
        reduced = objective.replaced(source=few, row_bound=BallBound(np.inf), intercept=0.0, linear=within(objective.linear))
        solution = self.inner.solve(reduced, within(start), tolerance)
        weights = (solution.weights.reshape(len(linear), -1) @ basis.T).reshape(start.shape)
        return Solution(weights, solution.gradient_norm)


def _rows(objective: Objectives, source: MemorySource) -> Array:
    """(n, D): the clipped rows with their intercept."""
    blocks = [_array(objective.row_bound.clip(dense(block))) for block, _, _ in source.counted_blocks()]
    rows = np.concatenate(blocks).astype(np.float64, copy=False)
    if objective.intercept > 0.0:
        rows = np.column_stack([rows, np.full(len(rows), objective.intercept)])
    return rows


def _array(clipped: Any) -> Any:
    return clipped.dense() if type(clipped) is CentredRows else clipped.toarray() if issparse(clipped) else clipped


_UNIT = 2.0**-53
_WIDEST_HESSIAN = 2000
"""With more weights than this no Hessian is formed: it would be large beside the rows, and slower to factor than many
passes."""
_WIDEST_JOINT_HESSIAN = 600
"""The same limit for losses whose scores interact (softmax): each pair of scores needs a product of its own."""


def _start(objective: Objectives, start: Weights) -> tuple[Weights, Array]:
    """The warm start if the theorems admit it, else 0; and the gradient, or least subgradient, there. One problem."""
    # The theorems admit a warm start whose gradient norm is at most l2 W, where l2 W is at least this.
    value_at_zero = objective.largest_weight * objective.loss.constants.value_at_zero
    admitted = 2.0 * float(np.linalg.norm(objective.linear)) + math.sqrt(
        2.0 * objective.source.n_rows * objective.l2 * value_at_zero
    )
    gradient = objective.gradients(start)
    if np.linalg.norm(gradient) <= admitted:
        return start.copy(), gradient
    zero = np.zeros_like(start)
    return zero, objective.gradients(zero)


def _reach(objective: Objectives) -> float:
    """How far the scores of a row may move apart in a step of length 1: at most sqrt(2) row norms if they interact."""
    return objective.row_norm * (1.0 if objective.loss.constants.separable else 1.5)


@dataclass(frozen=True, slots=True)
class StepLimitedNewton:
    """Newton with steps of length at most 1 / reach and no line search, for self-concordant losses (theorem F2)."""

    def applies(self, objective: Objectives, tolerance: float, largest_weight: float) -> bool:
        """Whether the conditions of the theorem hold."""
        width = objective.linear.shape[1]
        depth = objective.source.n_rows + 3  # at least the summation depth of any source
        reach, loss = _reach(objective), objective.loss.constants
        of_curvatures = 31.0 if loss.separable else 6.0 * loss.lipschitz * loss.rounding + 1.0
        of_products, of_rows = depth + of_curvatures, 2 * width + 5
        if is_centred(objective.row_bound):
            # Products of centred rows may cancel: privacy/proofs/centring.md, section 4.
            of_products, of_rows = 16.0 * (of_products + 8.0), 22 * width + 90
        terms = 3 * width**2 + 2 * width + of_products + of_rows * (1.0 + reach * largest_weight)
        hessian_error = terms * 1.1 * _UNIT * objective.smoothness / objective.l2
        is_close = hessian_error <= 0.01 and reach * tolerance / 4.8 <= objective.l2 / 1000.0
        return width <= _WIDEST_HESSIAN and loss.self_concordant and is_close

    def solve(self, objective: Objectives, start: Weights, tolerance: float) -> Solution:
        """One problem (k = 1); see `Solver`."""
        weights, gradient = _start(objective, start)
        distance = float(np.linalg.norm(gradient)) / objective.l2
        rounding = tolerance / 5.0
        reach = _reach(objective)
        # Theorem F2: no more steps than this are needed.
        most = 8.7 * (reach * distance) ** 1.5
        most += 12.5 * max(0.0, math.log(objective.l2 / (8.8 * reach * rounding))) + 2
        for _ in range(math.ceil(most) + 1):
            state = objective.evaluate(weights, order=2)
            gradient = state.gradient
            if np.linalg.norm(gradient) <= tolerance:
                break
            direction = newton_directions(state.hessian, gradient)
            weights = weights + min(1.0, 1.0 / (reach * float(np.linalg.norm(direction)))) * direction
        return Solution(weights, np.linalg.norm(gradient, axis=1))


@dataclass(frozen=True, slots=True)
class GradientDescent:
    """Gradient descent with step 1 / M, for every smooth loss (theorem F1).

    With an l1 penalty its steps are proximal: theorem 4 of privacy/proofs/elastic_net.md.
    """

    def solve(self, objective: Objectives, start: Weights, tolerance: float) -> Solution:
        """One problem (k = 1); see `Solver`."""
        (weights, first), l1 = _start(objective, start), objective.l1
        step = (1.0 - 2.0**-50) / objective.smoothness
        condition, rounding, norms = 1.0 / (step * objective.l2), tolerance / 5.0, np.array([math.nan])
        # The theorems: no more steps than this are needed. Without an l1 penalty fewer are.
        most = 1.0 + (6.0 * condition + 1.0) * math.log(max(1.0, condition * (float(np.linalg.norm(first)) / rounding) ** 2))
        for _ in range(math.ceil(most) + 1):
            gradient = objective.evaluate(weights, order=1).gradient
            norms = np.linalg.norm(least_subgradients(weights, gradient, l1), axis=1)
            if not norms[0] > tolerance:  # what is no number stays none: a user's penalty failed
                break
            weights = shrunk(weights - step * gradient, step * l1)
        return Solution(weights, norms)


def _usual_method(objective: Objectives, n_weights: int) -> Solver:
    """The first method, which has no theorem."""
    if objective.penalty.l1_ratio > 0.0:
        return Narrowing(AcceleratedProximalGradient() if n_weights > _WIDEST_HESSIAN else ProximalNewton())
    if n_weights <= (_WIDEST_HESSIAN if objective.loss.constants.separable else _WIDEST_JOINT_HESSIAN):
        return Narrowing(SampledNewton(), narrow=Newton())
    in_span = InSpanOfRows(Narrowing(Newton()), Narrowing(ColumnScaledLimitedMemory()))
    return in_span if objective.penalty.has_ridges_alone else Narrowing(LimitedMemory())


@dataclass(frozen=True, slots=True)
class NewtonThenFallback:
    """A fast method for all k problems, then a method that provably reaches the tolerance for each that is not finished.

    The fast method is Newton's, or L-BFGS where there are too many weights for a Hessian. A hinge with a narrow joint is
    reached by way of wider joints. In 1,003 random fits of classifiers to hostile rows the fast methods were enough. The
    slowest of these fits took 153 times as many passes as an ordinary one, a fit of the logistic loss at the automatic
    alpha. This was measured and is no bound.

    A tolerance of 0 asks for the best that doubles allow. The first method alone gives that.

    Parameters
    ----------
    first : the first method; None chooses Newton's method or L-BFGS by the number of weights
    """

    first: Solver | None = None

    def solve(self, objective: Objectives, start: Weights, tolerance: float) -> Solution:
        first, penalty = self.first or _usual_method(objective, start.shape[1]), objective.penalty
        try:
            made = None if self.first else solved_over_made_rows(objective, start, tolerance)
            solution = made or first.solve(objective, start, tolerance)
        except ConfideError:
            raise
        except (ArithmeticError, IndexError, ValueError):
            # What an untrusted method meets in the rows must not decide whether a release is made.
            solution = Solution(start.copy(), np.full(len(start), np.nan))
        if tolerance == 0.0:
            return solution
        weights = solution.weights.copy()
        # The first method's own norms are not believed. Rows can make them wrong, and the certificate would refuse then. If
        # this takes a pass, the certificate needs none. A NaN counts as unfinished.
        norms = np.linalg.norm(objective.gradients(weights), axis=1)
        for problem in np.flatnonzero(~(norms <= tolerance)):
            alone = objective.restrict(np.array([problem]))
            warm = weights[[problem]] if np.isfinite(weights[problem]).all() else np.zeros_like(weights[[problem]])
            begin, gradient = _start(alone, warm)
            largest_weight = float(np.linalg.norm(begin)) + 2.0 * float(np.linalg.norm(gradient)) / alone.l2
            newton = StepLimitedNewton()
            # With a form or a function no method is used that knows the Hessian of a ridge.
            by_newton = penalty.has_ridges_alone and newton.applies(alone, tolerance, largest_weight)
            method: Solver = newton if by_newton else GradientDescent()
            answer = method.solve(alone, warm, tolerance)
            weights[problem], norms[problem] = answer.weights[0], answer.gradient_norm[0]
        return Solution(weights, norms)
