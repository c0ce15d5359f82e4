"""Problems with a penalty beside or in place of |w|^2 / 2. Proofs: proofs/elastic_net.md, proofs/strongly_convex.md.

Output perturbation needs strong convexity alone, so its sensitivity is that of the ridge. The minimiser is certified by the
least subgradient in place of the gradient. Noise in the objective needs a differentiable penalty, and is refused.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields

import numpy as np

from confide.array_types import Array, Weights
from confide.erm.group_bounds import GroupBound
from confide.erm.objective import MappedObjective, ObjectiveWithRidges, PenalisedObjective, SparseObjective
from confide.erm.penalties import StronglyConvex
from confide.erm.row_bounds import BallBound, Centred, norm_with_intercept
from confide.erm.source import RowSource
from confide.errors import ParameterError
from confide.features.forms import QuadraticForm
from confide.privacy.certificate import GradientRounding
from confide.privacy.mechanism import Problem, shapes_of
from confide.privacy.shapes import LARGEST_BLOCK, Groups, Linked, Shape, shape_of_groups

_UNIT = 2.0**-53
_STEPS = 4.0
"""So many times the rounding of a proximal step is added to that of a gradient, so that such steps reach the tolerance."""

NO_OBJECTIVE = (
    "mechanism='objective' needs a penalty without kinks, and l1_ratio is not 0. Take mechanism='auto', or l1_ratio=0."
)


@dataclass(frozen=True, slots=True)
class SubgradientRounding(GradientRounding):
    """A bound on the rounding of one least subgradient, with room for the rounding of a proximal step.

    Parameters
    ----------
    l1_norm : the L2 norm of the strengths of the l1 penalty
    """

    l1_norm: float = 0.0

    def bound(self, weights_norm: float, noise_norm: float, gradient_norm: float) -> float:
        """L2 distance between the computed and the exact subgradient, and more. Theorem 2 of proofs/elastic_net.md.

        `gradient_norm` is that of the gradient without the l1 penalty or that of the subgradient, which differ by at most
        `l1_norm`.
        """
        largest = gradient_norm + self.l1_norm
        steepest = self.l2 + self.n_rows * self.loss.smoothness * self.row_norm**2
        of_step = 1.1 * _UNIT * (5.0 * (largest + self.l1_norm) + 2.0 * steepest * weights_norm)
        return GradientRounding.bound(self, weights_norm, noise_norm, largest) + _STEPS * of_step


@dataclass(frozen=True, slots=True, kw_only=True)
class SparseProblem(Problem):
    """The public facts of a problem with an l1 penalty on every weight but those of the intercept.

    Attributes
    ----------
    l1_ratio : share of the l1 penalty in the whole strength, in (0, 1); the ridge `l2` has the rest, so that the strength
        of the l1 penalty is `l2` l1_ratio / (1 - l1_ratio)
    has_levels : whether groups of columns are levels of a category, or knots, of a schema; no proof uses it
    """

    l1_ratio: float
    has_levels: bool = False

    def __post_init__(self) -> None:
        Problem.__post_init__(self)
        if not 0.0 < self.l1_ratio < 1.0:
            raise ParameterError("l1_ratio must lie in (0, 1): the guarantee rests on the ridge.")

    @classmethod
    def of(cls, problem: Problem, l1_ratio: float, *, has_levels: bool = False) -> SparseProblem:
        """The same problem, with its ridge, and an l1 penalty beside it."""
        facts = {field.name: getattr(problem, field.name) for field in fields(problem)}
        return cls(**facts, l1_ratio=l1_ratio, has_levels=has_levels)

    def l1_strength(self, l2: float) -> float:
        """The strength of the l1 penalty on each weight that has one, at this ridge."""
        return l2 * (self.l1_ratio / (1.0 - self.l1_ratio))

    def l1(self, l2: float) -> Array:
        """(o D,): the strength of the l1 penalty on each weight, at this ridge."""
        strengths = np.full((self.loss.constants.n_outputs, self.row_width), self.l1_strength(l2))
        strengths[:, self.n_features :] = 0.0
        return strengths.ravel()

    @property
    def shapes(self) -> tuple[Shape, ...]:
        """None: noise in an objective needs penalties that are differentiable."""
        raise ParameterError(NO_OBJECTIVE)

    def rounding(self, l2: float) -> SubgradientRounding:
        """The rounding bound of the subgradients at a given ridge."""
        smooth = Problem.rounding(self, l2)
        facts = {name: getattr(smooth, name) for name in GradientRounding.__slots__}
        # No vector of strengths: what only plans must not need the memory of the weights. Rounded upwards.
        norm = self.l1_strength(l2) * math.sqrt(self.loss.constants.n_outputs * self.n_features) * (1.0 + 2.0**-50)
        return SubgradientRounding(**facts, l1_norm=norm)

    def objective(self, source: RowSource, l2: float, noise: Weights) -> SparseObjective[RowSource]:
        """The objective over the rows of `source`; see `Problem`."""
        smooth = Problem.objective(self, source, l2, noise)
        bound, weight = self.row_bound, self.largest_weight
        return SparseObjective(source, self.loss, bound, self.intercept, l2, smooth.linear, weight, l1=self.l1(l2))


# A strongly convex penalty of the user's own, in place of the ridge. Proof: proofs/strongly_convex.md.
#
# What neighbours' minimisers and the determinants of the density cost follows from strong convexity alone. So noise on the
# weights and noise in the objective are calibrated as with a ridge, which `l2` is: the ridge within the penalty.


@dataclass(frozen=True, slots=True)
class PenaltyRounding(GradientRounding):
    """A bound on the rounding of one gradient, that of a penalty included.

    Parameters
    ----------
    steepness : how many times as steep as its ridge the penalty may be
    of_penalty : error of its computed gradient, in units of 2^-53 times the largest it may be
    """

    steepness: float = 1.0
    of_penalty: float = 0.0

    def bound(self, weights_norm: float, noise_norm: float, gradient_norm: float) -> float:
        """L2 distance between the computed and the exact gradient: theorem 4 of proofs/strongly_convex.md."""
        largest = self.l2 * self.steepness * weights_norm
        plain = GradientRounding.bound(self, weights_norm, noise_norm, gradient_norm)
        return plain + 1.01 * _UNIT * (self.of_penalty + 8.0) * largest

    def worst(self, noise_bound: float) -> float:
        """The bound for all points that a solver meets, whose gradients may be steeper than with a ridge."""
        weights_norm, linear_norm = 2.0 * self.minimiser_norm(noise_bound), self.linear_norm(noise_bound)
        of_rows = self.n_rows * self.loss.lipschitz * self.row_norm
        return self.bound(weights_norm, linear_norm, of_rows + self.l2 * self.steepness * weights_norm + linear_norm)


@dataclass(frozen=True, slots=True, kw_only=True)
class PenalisedProblem(Problem):
    """The public facts of a problem whose weights have a strongly convex penalty, and the intercept its ridge.

    Attributes
    ----------
    penalty : N, m-strongly convex; its strength is `l2` / m, so that the objective is `l2`-strongly convex
    """

    penalty: StronglyConvex

    def __post_init__(self) -> None:
        Problem.__post_init__(self)
        if self.prior or isinstance(self.row_bound, Centred):
            raise ParameterError("a penalty of the user's own is for rows as they are, and for no prior.")

    @classmethod
    def of(cls, problem: Problem, penalty: StronglyConvex) -> PenalisedProblem:
        """The same problem, with this penalty in place of its ridge."""
        facts = {field.name: getattr(problem, field.name) for field in fields(problem)}
        return cls(**facts, penalty=penalty)

    def rounding(self, l2: float) -> PenaltyRounding:
        """The rounding bound of the gradients at a given total ridge."""
        plain = Problem.rounding(self, l2)
        facts = {name: getattr(plain, name) for name in GradientRounding.__slots__}
        return PenaltyRounding(**facts, steepness=self.penalty.steepness, of_penalty=self.penalty.rounding)

    def objective(self, source: RowSource, l2: float, noise: Weights) -> PenalisedObjective[RowSource]:
        """The objective over the rows of `source`; see `Problem`."""
        plain = Problem.objective(self, source, l2, noise)
        bound, weight = self.row_bound, self.largest_weight
        return PenalisedObjective(source, self.loss, bound, self.intercept, l2, plain.linear, weight, penalty=self.penalty)


# A quadratic form with noise of the shape of the columns' groups, over rows as they are.
#
# The problem is stated in the norm of the form, where the penalty is the ridge. So calibration and seal are those of the
# ridge. Proof: proofs/penalty.md, section 8.


@dataclass(frozen=True, slots=True)
class MappedRounding(GradientRounding):
    """A bound on the rounding of one gradient whose sums are over rows as they are.

    Parameters
    ----------
    stretch : the largest factor by which the map stretches a row or noise
    plain_norm : largest L2 norm of a row as it is, with its intercept
    """

    stretch: float = 1.0
    plain_norm: float = 0.0

    def bound(self, weights_norm: float, noise_norm: float, gradient_norm: float) -> float:
        """L2 distance between the computed and the exact gradient: theorem 5 of proofs/penalty.md."""
        loss, stretch = self.loss, self.stretch
        plain = GradientRounding(loss, self.plain_norm, self.n_rows, self.row_width, self.summation_depth, 0.0)
        of_sums = stretch * plain.bound(1.01 * stretch * weights_norm, 0.0, 0.0)
        products = LARGEST_BLOCK * (loss.lipschitz + 2.0 * loss.smoothness * self.row_norm * weights_norm)
        of_map = 1.03 * _UNIT * self.n_rows * self.row_norm * products
        return of_sums + of_map + GradientRounding.bound(self, weights_norm, noise_norm, gradient_norm)


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupedFormProblem(Problem):
    """The public facts of a problem in the norm of a form, whose rows stay as they are, in groups of columns.

    Attributes
    ----------
    form : the form, no block of which reaches across groups of `row_bound`
    """

    form: QuadraticForm

    def __post_init__(self) -> None:
        Problem.__post_init__(self)
        if (
            not may_keep_groups(self.form, self.row_bound)
            or self.loss.constants.n_outputs > 1
            or self.loss.constants.by_length
        ):
            raise ParameterError("noise of groups needs a form whose blocks lie within groups, and a loss of one margin.")

    @classmethod
    def of(cls, problem: Problem, form: QuadraticForm) -> GroupedFormProblem:
        """The same problem in the norm of a form, its ridge that of the form."""
        facts = {field.name: getattr(problem, field.name) for field in fields(problem)}
        return cls(**facts, form=form)

    @property
    def row_norm(self) -> float:
        """Largest L2 norm of a clipped and mapped row with its intercept."""
        return norm_with_intercept(BallBound(self.form.longest(self.row_bound)), self.intercept)

    @property
    def shapes(self) -> tuple[Shape, ...]:
        """The images of the shapes of groups that the rows allow."""
        shapes = shapes_of(self.row_bound, self.intercept, self.n_features)
        plain = [shape for shape in shapes if isinstance(shape, Groups | Linked)]
        return tuple(shape_of_groups(shape, self.form, self.row_norm) for shape in plain)

    def rounding(self, l2: float) -> MappedRounding:
        """The rounding bound of the gradients at a given total ridge."""
        own = Problem.rounding(self, l2)
        facts = {name: getattr(own, name) for name in GradientRounding.__slots__}
        stretch, plain_norm = max(1.0, self.form.longest_map), norm_with_intercept(self.row_bound, self.intercept)
        return MappedRounding(**facts, stretch=stretch, plain_norm=plain_norm)

    def objective(self, source: RowSource, l2: float, noise: Weights) -> MappedObjective[RowSource]:
        """The objective over the rows of `source`; see `Problem`."""
        own = Problem.objective(self, source, l2, noise)
        bound, weight = self.row_bound, self.largest_weight
        return MappedObjective(
            source, self.loss, bound, self.intercept, l2, own.linear, weight, form=self.form, mapped_norm=self.row_norm
        )


def may_keep_groups(form: QuadraticForm, row_bound: object) -> bool:
    """Whether every block of a form lies within one group of columns, and none is too large."""
    if type(row_bound) is not GroupBound or row_bound.n_features != form.n_features:
        return False
    group_of = [group for group, size in enumerate(row_bound.sizes) for _ in range(size)]
    return all(
        len(part) <= LARGEST_BLOCK and group_of[start] == group_of[start + len(part) - 1] for start, part in form.blocks
    )


# A ridge for each group of weights, for rows in groups of columns. Proof: proofs/objective_perturbation.md, section 11.
#
# The least ridge is `l2`, on which certificate and seal rest. What the curvature of a row may cost is counted beside the
# ridges.

_UP = 1.0 + 2.0**-40
LARGEST_RIDGE_FACTOR = 2.0**20
"""The largest ridge of a weight over the least one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProblemWithRidges(Problem):
    """The public facts of a problem whose groups of weights have ridges of their own.

    Attributes
    ----------
    group_factors : for each group of columns, and for the constant if there is one, how many times as strong as `l2` the
        ridge of its weights is; the least of them is 1
    """

    group_factors: tuple[float, ...]

    def __post_init__(self) -> None:
        Problem.__post_init__(self)
        factors = self.group_factors
        one_score = self.loss.constants.n_outputs == 1 and not self.loss.constants.by_length
        if type(self.row_bound) is not GroupBound or not one_score or self.prior:
            raise ParameterError(
                "ridges of single weights are for one score, slopes with one bound for rows of all lengths, rows in groups "
                "of columns, and no prior."
            )
        # Written so that what is not a number is refused.
        are_in_range = min(factors, default=0.0) == 1.0 and all(1.0 <= factor <= LARGEST_RIDGE_FACTOR for factor in factors)
        if len(factors) != len(self._sizes) or not are_in_range:
            raise ParameterError(
                f"ridges need {len(self._sizes)} factors, the least of them 1 and none above {LARGEST_RIDGE_FACTOR:g}."
            )

    @classmethod
    def of(cls, problem: Problem, group_factors: tuple[float, ...]) -> ProblemWithRidges:
        """The same problem, its ridge the least one."""
        facts = {field.name: getattr(problem, field.name) for field in fields(problem)}
        return cls(**facts, group_factors=group_factors)

    @property
    def _sizes(self) -> tuple[int, ...]:
        """The number of weights of each group, the constant's among them."""
        assert isinstance(self.row_bound, GroupBound)  # noqa: S101 - checked when the problem was made
        return self.row_bound.sizes + (1,) * (self.intercept > 0.0)

    @property
    def ridge_factors(self) -> tuple[float, ...]:
        """(D,), the factor of each weight."""
        return tuple(np.repeat(self.group_factors, self._sizes).tolist())

    @property
    def largest_ridge_factor(self) -> float:
        """The largest ridge of a weight over `l2`."""
        return max(self.group_factors)

    @property
    def curved_norm(self) -> float:
        """R of the curvature of a row beside its ridges: the largest root of the sum of x_d^2 / r_d, r the factors."""
        bound = self.row_bound
        assert isinstance(bound, GroupBound)  # noqa: S101 - checked when the problem was made
        scales = bound.scales + (self.intercept,) * (self.intercept > 0.0)
        squares = (scale**2 / factor for scale, factor in zip(scales, self.group_factors, strict=True))
        return math.sqrt(math.fsum(squares)) * _UP

    def rounding(self, l2: float) -> PenaltyRounding:
        """The rounding bound of the gradients at a given least ridge: theorem 4 of proofs/strongly_convex.md."""
        plain = Problem.rounding(self, l2)
        facts = {name: getattr(plain, name) for name in GradientRounding.__slots__}
        return PenaltyRounding(**facts, steepness=self.largest_ridge_factor * _UP, of_penalty=0.0)

    def objective(self, source: RowSource, l2: float, noise: Weights) -> ObjectiveWithRidges[RowSource]:
        """The objective over the rows of `source`; see `Problem`."""
        linear, factors = Problem.objective(self, source, l2, noise).linear, np.array(self.ridge_factors)
        bound, weight = self.row_bound, self.largest_weight
        return ObjectiveWithRidges(source, self.loss, bound, self.intercept, l2, linear, weight, factors=factors)


def curved_norm(problem: Problem) -> float:
    """The length of a row that its curvature costs: with one ridge the largest L2 norm of a row."""
    return problem.curved_norm if isinstance(problem, ProblemWithRidges) else problem.row_norm


def ridge_factors(problem: Problem) -> tuple[float, ...]:
    """(D,), the factors of the ridges; empty where there is one ridge."""
    return problem.ridge_factors if isinstance(problem, ProblemWithRidges) else ()


def largest_ridge_factor(problem: Problem) -> float:
    """The largest ridge of a weight over the least."""
    return problem.largest_ridge_factor if isinstance(problem, ProblemWithRidges) else 1.0
