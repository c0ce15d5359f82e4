"""k regularised, perturbed objectives over the same rows.

    F_j(w) = sum_i c_i loss(y_i w . x_i) + (l2 / 2) |w|^2 + b_j . w      (sum form, rows clipped, c_i the weight of row i)

The sum form is used throughout: dividing by the number of rows gives the mean form, with alpha = l2 / n and b / n.
A mechanism keeps an `Objective` over its own rows, and lends solvers another one over rows that they cannot write to.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass, field, replace
from typing import Any, Generic, Protocol, TypeAlias, TypeVar

import numpy as np

from confide.array_types import Array, Indices, Weights
from confide.erm.losses import Loss, LossConstants
from confide.erm.penalties import StronglyConvex, least_subgradients, slopes_of, values_of
from confide.erm.row_bounds import RowBound, norm_with_intercept
from confide.erm.row_sums import RowSum, Totals
from confide.erm.solver import Evaluation
from confide.erm.source import RowSource, SummableRows, memoised_sums
from confide.erm.transformed_losses import asked

Source = TypeVar("Source", bound=RowSource)


@dataclass(frozen=True, slots=True)
class Objective(Generic[Source]):
    """k objectives that share rows, loss and ridge, and differ in their linear terms.

    Parameters
    ----------
    source : the rows: `RowSource` for a mechanism, whose list of sums is closed; `SummableRows` for a solver
    loss, row_bound, intercept : what one row adds, see `RowSum`
    l2 : ridge of the sum form, positive
    linear : (k, D), the linear terms b
    largest_weight : public bound on the weight of a row
    """

    source: Source
    loss: Loss
    row_bound: RowBound
    intercept: float
    l2: float
    linear: Weights
    largest_weight: float = 1.0
    _sums: Callable[..., Totals] = field(init=False, compare=False, repr=False)
    """See `memoised_sums`."""

    def __post_init__(self) -> None:
        # An objective that is made by replacing a part of another one, such as its rows, remembers no sums of that one.
        row_sum = RowSum(self.loss, self.row_bound, self.intercept, 1, self.largest_weight)
        object.__setattr__(self, "_sums", memoised_sums(self.source, row_sum, self.linear.shape[1]))

    @property
    def loss_bounds(self) -> LossConstants:
        """Constants of the loss of a row, its weight included."""
        return self.loss.constants.weighted(self.largest_weight)

    @property
    def row_norm(self) -> float:
        """Largest L2 norm of a clipped row with its intercept constant."""
        return norm_with_intercept(self.row_bound, self.intercept)

    ridges = property(lambda self: self.l2)
    """The ridge of each weight, (D,), or one number for all of them."""

    @property
    def smoothness(self) -> float:
        """Upper bound on the Lipschitz constant of the gradients."""
        of_rows = self.source.n_rows * self.loss_bounds.smoothness * self.row_norm**2
        return float(np.max(self.ridges) + of_rows) * (1.0 + 2.0**-40)

    def restrict(self, which: Indices) -> Objective[Source]:
        """The same for some of the k problems, with the same sums: these do not depend on the linear terms."""
        return replace(self, linear=self.linear[which])._with_sums_of(self)

    def replaced(self, **parts: Any) -> Objective[Any]:
        """Other problems: the same with other parts, named as the parameters are. They begin with no sums."""
        return replace(self, **parts)

    def lent(self) -> Objective[SummableRows]:
        """The same for a solver: whatever it writes to what it is given, this objective stays as it is."""
        source, (loss, row_bound, linear) = self.source.lent(), deepcopy((self.loss, self.row_bound, self.linear))
        return Objective(source, loss, row_bound, self.intercept, self.l2, linear, self.largest_weight)._with_sums_of(self)

    def _with_sums_of(self, other: Objective[Any]) -> Objective[Source]:
        object.__setattr__(self, "_sums", other._sums)
        return self

    def evaluate(self, weights: Weights, order: int) -> Evaluation:
        """Values (order 0), gradients (1), or gradients and Hessians (2) at (k, D) weights, in one pass over the rows."""
        totals = self._sums(weights, order)
        if order == 0:
            totals.value[...] += np.einsum("kd,kd->k", 0.5 * self.ridges * weights + self.linear, weights)
            return Evaluation(totals.value, totals.gradient, totals.hessian)
        if order >= 2:
            np.einsum("kdd->kd", totals.hessian)[...] += self.ridges  # the diagonals, which this writes to
        return Evaluation(totals.value, totals.gradient + (self.ridges * weights + self.linear), totals.hessian)

    def gradients(self, weights: Weights) -> Array:
        """Gradients (k, D) at (k, D) weights: from sums of the last passes at the same weights, else by a pass."""
        return np.asarray(self._sums(weights, 1, look_back=True).gradient + (self.ridges * weights + self.linear))


KeptObjective: TypeAlias = Objective[RowSource]
"""What a mechanism keeps for itself: the sums over its rows are a closed list."""


# Objectives with a strongly convex penalty of the user's own. Proof: privacy/proofs/strongly_convex.md.
#
#     F_j(w) = sum_i c_i loss(y_i w . x_i) + (l2 / m) (N(w) + m / 2 c^2) + b_j . w      (sum form)
#
# N is m-strongly convex and c is the weight of the intercept, so the objective is l2-strongly convex.

_STEP = 2.0**-20
"""Steps of differences of gradients, for Hessians that solvers use and no certificate does."""


@dataclass(frozen=True, slots=True)
class PenalisedObjective(Objective[Source]):
    """k objectives that share rows, loss and penalty, and differ in their linear terms.

    Parameters
    ----------
    penalty : the penalty of the weights of the columns, of each score
    """

    penalty: StronglyConvex = field(kw_only=True)

    @property
    def smoothness(self) -> float:
        """Upper bound on the Lipschitz constant of the gradients."""
        of_rows = self.source.n_rows * self.loss_bounds.smoothness * self.row_norm**2
        return (self.l2 * self.penalty.steepness + of_rows) * (1.0 + 2.0**-40)

    def lent(self) -> PenalisedObjective[SummableRows]:
        """The same for a solver: whatever it writes to what it is given, this objective stays as it is."""
        loss, row_bound, linear = deepcopy((self.loss, self.row_bound, self.linear))
        # A penalty whose copy fails has no functions: then the solver finds nothing that could be certified.
        penalty = asked(lambda: deepcopy(self.penalty), None) or replace(self.penalty, value=None, gradient=None)
        source, weight = self.source.lent(), self.largest_weight
        face = PenalisedObjective(source, loss, row_bound, self.intercept, self.l2, linear, weight, penalty=penalty)
        face._with_sums_of(self)
        return face

    def evaluate(self, weights: Weights, order: int) -> Evaluation:
        """Values (order 0), gradients (1), or gradients and Hessians (2) at (k, D) weights, in one pass over the rows.

        The Hessians of the penalty are differences of its gradients.
        """
        totals = self._sums(weights, order)
        if order == 0:
            totals.value[...] += self._values(weights) + np.einsum("kd,kd->k", self.linear, weights)
            return Evaluation(totals.value, totals.gradient, totals.hessian)
        if order >= 2:
            totals.hessian[...] += self._hessians(weights)
        return Evaluation(totals.value, totals.gradient + (self._slopes(weights) + self.linear), totals.hessian)

    def gradients(self, weights: Weights) -> Array:
        """Gradients (k, D) at (k, D) weights: from sums of the last passes at the same weights, else by a pass."""
        return self._sums(weights, 1, look_back=True).gradient + (self._slopes(weights) + self.linear)

    def _by_score(self, weights: Weights) -> tuple[Weights, int]:
        """The weights of each score in a row of its own, and how many of a row are those of columns."""
        width = weights.shape[1] // self.loss.constants.n_outputs
        return weights.reshape(-1, width), width - (self.intercept > 0.0)

    def _slopes(self, weights: Weights) -> Array:
        """The gradients (k, D) of the penalty."""
        by_score, columns = self._by_score(weights)
        slopes = self.l2 * by_score
        slopes[:, :columns] = self.l2 / self.penalty.strong_convexity * slopes_of(self.penalty, by_score[:, :columns])
        return slopes.reshape(weights.shape)

    def _values(self, weights: Weights) -> Array:
        by_score, columns = self._by_score(weights)
        values = self.l2 / self.penalty.strong_convexity * values_of(self.penalty, by_score[:, :columns])
        values += 0.5 * self.l2 * np.square(by_score[:, columns:]).sum(axis=1)
        return np.asarray(values.reshape(len(weights), -1).sum(axis=1))

    def _hessians(self, weights: Weights) -> Array:
        """The Hessians (k, D, D) of the penalty, nearly."""
        hessians = np.zeros((*weights.shape, weights.shape[1]))
        for matrix, point in zip(hessians, weights, strict=True):
            step = _STEP * (1.0 + float(np.abs(point).max()))
            moves = step * np.eye(len(point))
            ahead, behind = self._slopes(point + moves), self._slopes(point - moves)
            differences = (ahead - behind) / (2.0 * step)
            matrix[...] = 0.5 * (differences + differences.T)
        return hessians


# Objectives in the norm of a quadratic form, over rows as they are. Proof: privacy/proofs/penalty.md, section 8.
#
#     F_j(v) = sum_i c_i loss(y_i w . x_i) + (l2 / 2) |v|^2 + b_j . v,   w = M' v      (sum form, rows x clipped)
#
# It is the objective over rows M x. The map is applied to weights and to sums in place of rows, which may stay coded.


class NormMap(Protocol):
    """The public linear map M of rows to the norm of a form."""

    def weights_of(self, coef: Array) -> Array:
        """Weights (k, d or more) of rows as they are, from those in the norm: M' v."""

    def sums_in_norm(self, sums: Array) -> Array:
        """Sums (k, d or more) of multiples of mapped rows, from those of rows as they are: M g."""


@dataclass(frozen=True, slots=True)
class MappedObjective(Objective[Source]):
    """k objectives in the norm of a form, whose rows are not mapped.

    Parameters
    ----------
    form : the map
    mapped_norm : largest L2 norm of a mapped row with its intercept constant
    """

    form: NormMap = field(kw_only=True)
    mapped_norm: float = field(kw_only=True)

    @property
    def row_norm(self) -> float:
        """Largest L2 norm of a clipped and mapped row with its intercept constant."""
        return self.mapped_norm

    def lent(self) -> MappedObjective[SummableRows]:
        """The same for a solver: whatever it writes to what it is given, this objective stays as it is."""
        loss, row_bound, linear, form = deepcopy((self.loss, self.row_bound, self.linear, self.form))
        face = MappedObjective(
            self.source.lent(), loss, row_bound, self.intercept, self.l2, linear, self.largest_weight,
            form=form, mapped_norm=self.mapped_norm,
        )  # fmt: skip
        face._with_sums_of(self)
        return face

    def evaluate(self, weights: Weights, order: int) -> Evaluation:
        """Values (order 0), gradients (1), or gradients and Hessians (2) at (k, D) weights, in one pass over the rows."""
        totals = self._sums(self.form.weights_of(weights), order)
        if order == 0:
            ridge = 0.5 * self.l2 * np.einsum("kd,kd->k", weights, weights)
            totals.value[...] += ridge + np.einsum("kd,kd->k", self.linear, weights)
            return Evaluation(totals.value, totals.gradient, totals.hessian)
        hessian = totals.hessian
        if order >= 2:
            half = [self.form.sums_in_norm(matrix) for matrix in hessian]
            hessian = np.array([self.form.sums_in_norm(matrix.T) for matrix in half])
            diagonal = np.arange(weights.shape[1])
            hessian[:, diagonal, diagonal] += self.l2
        gradient = self.form.sums_in_norm(totals.gradient)
        return Evaluation(totals.value, gradient + (self.l2 * weights + self.linear), hessian)

    def gradients(self, weights: Weights) -> Array:
        """Gradients (k, D) at (k, D) weights: from sums of the last passes at the same weights, else by a pass."""
        sums = self._sums(self.form.weights_of(weights), 1, look_back=True)
        return self.form.sums_in_norm(sums.gradient) + (self.l2 * weights + self.linear)


# Objectives with an l1 penalty beside the ridge. Proof: privacy/proofs/elastic_net.md.
#
#     F_j(w) = sum_i c_i loss(y_i w . x_i) + (l2 / 2) |w|^2 + b_j . w + sum_m l1_m |w_m|      (sum form)
#
# The l1 penalty has kinks, so what is certified is the least subgradient in place of the gradient.


@dataclass(frozen=True, slots=True)
class SparseObjective(Objective[Source]):
    """k objectives that share rows, loss, ridge and l1 penalty. `evaluate` leaves the l1 penalty out.

    Parameters
    ----------
    l1 : (D,), the strength of the l1 penalty on each weight, not negative
    """

    l1: Array = field(kw_only=True)

    def lent(self) -> SparseObjective[SummableRows]:
        """The same for a solver: whatever it writes to what it is given, this objective stays as it is."""
        loss, row_bound, linear, l1 = deepcopy((self.loss, self.row_bound, self.linear, self.l1))
        source, weight = self.source.lent(), self.largest_weight
        face = SparseObjective(source, loss, row_bound, self.intercept, self.l2, linear, weight, l1=l1)
        face._with_sums_of(self)
        return face

    def gradients(self, weights: Weights) -> Array:
        """The least subgradients (k, D) at (k, D) weights, from sums of the last passes or by a pass."""
        return least_subgradients(weights, Objective.gradients(self, weights), self.l1)


# Objectives in which each weight has a ridge of its own. Proof: privacy/proofs/objective_perturbation.md, section 11.
#
# F_j(w) = sum_i c_i loss(y_i w . x_i) + (l2 / 2) sum_d r_d w_d^2 + b_j . w      (sum form)


@dataclass(frozen=True, slots=True)
class ObjectiveWithRidges(Objective[Source]):
    """k objectives that share rows, loss and ridges, and differ in their linear terms.

    Parameters
    ----------
    factors : (D,), r: how many times as strong as `l2` the ridge of each weight is, at least 1
    """

    factors: Array = field(kw_only=True)

    @property
    def ridges(self) -> Array:
        """The ridge of each weight, (D,)."""
        diagonal: Array = self.l2 * self.factors
        return diagonal

    def lent(self) -> ObjectiveWithRidges[SummableRows]:
        """The same for a solver: whatever it writes to what it is given, this objective stays as it is."""
        loss, row_bound, linear, factors = deepcopy((self.loss, self.row_bound, self.linear, self.factors))
        source, weight = self.source.lent(), self.largest_weight
        face = ObjectiveWithRidges(source, loss, row_bound, self.intercept, self.l2, linear, weight, factors=factors)
        face._with_sums_of(self)
        return face
