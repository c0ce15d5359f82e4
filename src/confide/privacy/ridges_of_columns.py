"""A ridge for each group of weights, for rows in groups of columns. Proof: proofs/objective_perturbation.md, section 11.

The least ridge is `l2`, on which certificate and seal rest. What the curvature of a row may cost is counted beside the
ridges.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields

import numpy as np

from confide.data.source import RowSource
from confide.erm.group_bounds import GroupBound
from confide.erm.objective_with_ridges import ObjectiveWithRidges
from confide.errors import ParameterError
from confide.privacy.certificate import GradientRounding
from confide.privacy.mechanism import Problem
from confide.privacy.strongly_convex import PenaltyRounding
from confide.types import Weights

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
        one_score = self.loss.n_outputs == 1 and not self.loss.by_length
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
        facts = {each.name: getattr(problem, each.name) for each in fields(problem)}
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
