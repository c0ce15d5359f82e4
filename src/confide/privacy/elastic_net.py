"""An l1 penalty beside the ridge, for noise on the weights. Proof: proofs/elastic_net.md.

Output perturbation needs strong convexity alone, so its sensitivity is that of the ridge. The minimiser is certified by the
least subgradient in place of the gradient. Noise in the objective needs a differentiable penalty, and is refused.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields

import numpy as np

from confide.data.source import RowSource
from confide.erm.sparse_objective import SparseObjective
from confide.errors import ParameterError
from confide.privacy.certificate import GradientRounding
from confide.privacy.mechanism import Problem
from confide.privacy.shapes import Shape
from confide.types import Array, Weights

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
        facts = {each.name: getattr(problem, each.name) for each in fields(problem)}
        return cls(**facts, l1_ratio=l1_ratio, has_levels=has_levels)

    def l1_strength(self, l2: float) -> float:
        """The strength of the l1 penalty on each weight that has one, at this ridge."""
        return l2 * (self.l1_ratio / (1.0 - self.l1_ratio))

    def l1(self, l2: float) -> Array:
        """(o D,): the strength of the l1 penalty on each weight, at this ridge."""
        strengths = np.full((self.loss.n_outputs, self.row_width), self.l1_strength(l2))
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
        norm = self.l1_strength(l2) * math.sqrt(self.loss.n_outputs * self.n_features) * (1.0 + 2.0**-50)
        return SubgradientRounding(**facts, l1_norm=norm)

    def objective(self, source: RowSource, l2: float, noise: Weights) -> SparseObjective[RowSource]:
        """The objective over the rows of `source`; see `Problem`."""
        smooth = Problem.objective(self, source, l2, noise)
        bound, weight = self.row_bound, self.largest_weight
        return SparseObjective(source, self.loss, bound, self.intercept, l2, smooth.linear, weight, l1=self.l1(l2))
