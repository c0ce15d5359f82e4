"""k regularised, perturbed objectives over the same rows.

    F_j(w) = sum_i c_i loss(y_i w . x_i) + (l2 / 2) |w|^2 + b_j . w      (sum form, rows clipped, c_i the weight of row i)

A `Penalty` (erm/penalties.py) may stand in place of the ridge. With a form, w is M' v, and v stands in all terms but the
first. That is the objective over rows M x: the map is applied to weights and to sums, and rows may stay coded. An l1 penalty
has kinks, so the least subgradient is certified.

The sum form is used throughout: dividing by the number of rows gives the mean form, with alpha = l2 / n and b / n.
A mechanism keeps an `Objective` over its own rows, and lends solvers another one over rows that they cannot write to.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass, field, replace
from typing import Any, Generic, Protocol, TypeAlias, TypeVar

import numpy as np

from confide.array_types import Array, Indices, Weights
from confide.erm.losses import Loss
from confide.erm.penalties import RIDGE, Penalty, gradient_of_function, least_subgradients
from confide.erm.row_bounds import RowBound
from confide.erm.row_sums import RowSum, Totals
from confide.erm.source import RowSource, SummableRows

Source = TypeVar("Source", bound=RowSource)


_STEP = 2.0**-20
"""Steps of differences of gradients, for Hessians that solvers use and no certificate does."""


_PASSES_KEPT = 4
"""The sums of so many passes are kept. Of many problems some are finished a few passes before the last one."""


def memoised_sums(source: RowSource, row_sum: RowSum, width: int) -> Callable[..., Totals]:
    """A function that makes sums of one kind over rows, and remembers the gradients of its last passes.

    Called with weights (k, width) and an order, the function makes a pass. Called with `look_back`, it returns the gradients
    of a past pass at the same weights, if there was one. The rows and the kind of sum are fixed here. The function makes
    each pass at its own copy of the weights, and gives away copies of what it remembers. So what it remembers are these sums
    at those weights, whoever calls it and with whatever.
    """
    kept: deque[tuple[Weights, Array]] = deque(maxlen=_PASSES_KEPT)

    def remembered(points: Weights) -> Array | None:
        sums = np.empty_like(points)
        for sums_, point in zip(sums, points, strict=True):
            past = [known[same.argmax()] for at, known in tuple(kept) if (same := (at == point).all(axis=1)).any()]
            if not past:
                return None
            sums_[...] = past[-1]
        return sums

    def sums(weights: Weights, order: int, look_back: bool = False) -> Totals:
        # Weights are written into an array that is made here: numbers enter, and nothing else. An object that came in might
        # keep what it claims to have copied.
        points = np.empty((len(weights), width))
        points[...] = weights
        order = int(order)
        if look_back and (known := remembered(points)) is not None:
            return Totals(np.full(len(points), np.nan), known, np.empty((len(points), 0, 0)))
        totals = source.sum_over_rows(replace(row_sum, order=order), points)
        if order >= 1:
            kept.append((points, totals.gradient.copy()))
        return totals

    return sums


class HasGradients(Protocol):
    """k objectives, as far as steps need them. Those that Newton's method is given have Hessians, too."""

    def restrict(self, which: Indices) -> HasGradients:
        """The same for some of the k problems."""

    def evaluate(self, weights: Weights, order: int) -> Totals:
        """Gradients of the objectives at (k, D) weights (order 1), and Hessians too (order 2)."""


@dataclass(frozen=True, slots=True)
class Objective(Generic[Source]):
    """k objectives that share rows, loss and penalty, and differ in their linear terms.

    Parameters
    ----------
    source : the rows: `RowSource` for a mechanism, whose list of sums is closed; `SummableRows` for a solver
    loss, row_bound, intercept : what one row adds, see `RowSum`
    l2 : ridge of the sum form, positive: the least one, where the penalty has several
    linear : (k, D), the linear terms b
    largest_weight : public bound on the weight of a row
    penalty : what is minimised beside the losses
    ridges : the ridge of each weight, (D,), or one number for all of them
    """

    source: Source
    loss: Loss
    row_bound: RowBound
    intercept: float
    l2: float
    linear: Weights
    largest_weight: float = 1.0
    penalty: Penalty = RIDGE
    ridges: Array | float = field(init=False, compare=False, repr=False)
    _sums: Callable[..., Totals] = field(init=False, compare=False, repr=False)
    """See `memoised_sums`."""

    def __post_init__(self) -> None:
        # An objective that is made by replacing a part of another one, such as its rows, remembers no sums of that one.
        row_sum = RowSum(self.loss, self.row_bound, self.intercept, 1, self.largest_weight)
        object.__setattr__(self, "_sums", memoised_sums(self.source, row_sum, self.linear.shape[1]))
        object.__setattr__(self, "ridges", self.penalty.ridges(self.l2))

    @property
    def row_norm(self) -> float:
        """Largest L2 norm of a clipped row with its intercept constant, in the norm of a form if there is one."""
        return self.penalty.row_norm(self.row_bound, self.intercept)

    @property
    def l1(self) -> Array:
        """(o D,): the strength of the l1 penalty on each weight, 0 for the intercept of each score."""
        n_outputs = self.loss.constants.n_outputs
        strengths = np.full((n_outputs, self.linear.shape[1] // n_outputs), self.penalty.l1_strength(self.l2))
        strengths[:, self.source.n_features :] = 0.0
        return strengths.ravel()

    @property
    def smoothness(self) -> float:
        """Upper bound on the Lipschitz constant of the gradients, without an l1 penalty."""
        of_rows = self.source.n_rows * (self.largest_weight * self.loss.constants.smoothness) * self.row_norm**2
        function = self.penalty.function
        steepest = np.max(self.ridges) if function is None else self.l2 * function.steepness
        return float(steepest + of_rows) * (1.0 + 2.0**-40)

    def restrict(self, which: Indices) -> Objective[Source]:
        """The same for some of the k problems, with the same sums: these do not depend on the linear terms."""
        return replace(self, linear=self.linear[which])._with_sums_of(self)

    def replaced(self, **parts: Any) -> Objective[Any]:
        """Other problems: the same with other parts, named as the parameters are. They begin with no sums."""
        return replace(self, **parts)

    def lent(self) -> Objective[SummableRows]:
        """The same for a solver: whatever it writes to what it is given, this objective stays as it is."""
        loss, bound, linear = deepcopy((self.loss, self.row_bound, self.linear))
        source, penalty = self.source.lent(), self.penalty.lent()
        return self.replaced(source=source, loss=loss, row_bound=bound, linear=linear, penalty=penalty)._with_sums_of(self)

    def _with_sums_of(self, other: Objective[Any]) -> Objective[Source]:
        object.__setattr__(self, "_sums", other._sums)
        return self

    def evaluate(self, weights: Weights, order: int) -> Totals:
        """Values (order 0), gradients (1), or gradients and Hessians (2) at (k, D) weights, in one pass over the rows.

        They leave an l1 penalty out. They are data, and never leave the package.
        """
        totals = self._in_norm(self._sums(self._of_rows(weights), order))
        if order == 0:
            return Totals(totals.value + self._values(weights), totals.gradient, totals.hessian)
        if order >= 2:
            self._add_curvatures(totals.hessian, weights)
        return Totals(totals.value, totals.gradient + (self._slopes(weights) + self.linear), totals.hessian)

    def gradients(self, weights: Weights) -> Array:
        """Gradients, or least subgradients, (k, D) at (k, D) weights: from sums of the last passes there, else by a pass."""
        totals = self._in_norm(self._sums(self._of_rows(weights), 1, look_back=True))
        smooth: Array = totals.gradient + (self._slopes(weights) + self.linear)
        return least_subgradients(weights, smooth, self.l1) if self.penalty.l1_ratio > 0.0 else smooth

    def _of_rows(self, weights: Weights) -> Weights:
        """The weights of rows as they are."""
        return weights if self.penalty.form is None else self.penalty.form.weights_of(weights)

    def _in_norm(self, totals: Totals) -> Totals:
        """Sums over rows as they are, in the norm of the form."""
        form = self.penalty.form
        if form is None or not totals.gradient.size:
            return totals
        half = [form.sums_in_norm(matrix) for matrix in totals.hessian if matrix.size]
        hessian = np.array([form.sums_in_norm(matrix.T) for matrix in half]) if half else totals.hessian
        return Totals(totals.value, form.sums_in_norm(totals.gradient), hessian)

    def _slopes(self, weights: Weights) -> Array:
        """The gradients (k, D) of the penalty, without an l1 penalty."""
        if self.penalty.function is None:
            return np.asarray(self.ridges * weights)
        widths = self.loss.constants.n_outputs, self.source.n_features
        return gradient_of_function(self.penalty.function, self.l2, weights, *widths)

    def _values(self, weights: Weights) -> Array:
        """(k,): what penalty and linear terms add."""
        parts = (self.l2, weights, self.loss.constants.n_outputs, self.source.n_features)
        return np.asarray(self.penalty.value(*parts) + np.einsum("kd,kd->k", self.linear, weights))

    def _add_curvatures(self, hessians: Array, weights: Weights) -> None:
        """Add those of the penalty to Hessians (k, D, D); of a function they are differences of gradients."""
        if self.penalty.function is None:
            np.einsum("kdd->kd", hessians)[...] += self.ridges  # the diagonals, which this writes to
            return
        for matrix, point in zip(hessians, weights, strict=True):
            step = _STEP * (1.0 + float(np.abs(point).max()))
            moves = step * np.eye(len(point))
            differences = (self._slopes(point + moves) - self._slopes(point - moves)) / (2.0 * step)
            matrix[...] += 0.5 * (differences + differences.T)


KeptObjective: TypeAlias = Objective[RowSource]
"""What a mechanism keeps for itself: the sums over its rows are a closed list."""

Objectives: TypeAlias = Objective[SummableRows]
"""What a solver is lent. Nothing in it leads back to the objective that the certificate reads.

What can be read here is public, but for the rows, what is summed over them, and the linear terms, which are noise.
"""


def on_part(objective: Objectives, part: SummableRows) -> tuple[Objectives, float]:
    """The problems over a part of the rows, ridge and linear terms in proportion; and which share of the rows that is."""
    share = part.n_rows / objective.source.n_rows
    return objective.replaced(source=part, l2=objective.l2 * share, linear=objective.linear * share), share


def mean_of(objective: Objectives) -> Objectives:
    """One problem, the mean of all."""
    if len(objective.linear) == 1:
        # The problem itself has sums by faster code than a problem of the solver's own, and remembers them.
        return objective
    return objective.replaced(linear=objective.linear.mean(axis=0, keepdims=True))


# What a solver owes. Solvers are not trusted: the certificate checks a copy of their answer by sums out of their reach.


@dataclass(frozen=True, slots=True)
class Solution:
    """A solver's answer. Data: only its certified and sealed form leaves the package."""

    weights: Weights
    """(k, D)"""
    gradient_norm: Array
    """(k,): the solver's own claim."""


class Solver(Protocol):
    """Finds the minimisers of k objectives.

    The certificate refuses a wrong answer, so it is never released. But a refusal that the rows can provoke would tell of
    them. `NewtonThenFallback` makes it impossible: it believes no claim, and it ends with a method that has a theorem.
    """

    def solve(self, objective: Objectives, start: Weights, tolerance: float) -> Solution:
        """Weights (k, D) whose gradient norms are at most `tolerance`, or the best found.

        `start` is (k, D) and is not written to. A tolerance of 0 asks for the best that doubles allow.
        """
