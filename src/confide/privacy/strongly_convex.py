"""A strongly convex penalty of the user's own, in place of the ridge. Proof: proofs/strongly_convex.md.

What neighbours' minimisers and the determinants of the density cost follows from strong convexity alone. So noise on the
weights and noise in the objective are calibrated as with a ridge, which `l2` is: the ridge within the penalty.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

from confide.data.source import RowSource
from confide.erm.centred_rows import Centred
from confide.erm.penalised_objective import PenalisedObjective
from confide.erm.strongly_convex import StronglyConvex
from confide.errors import ParameterError
from confide.privacy.certificate import GradientRounding
from confide.privacy.mechanism import Problem
from confide.types import Weights

_UNIT = 2.0**-53


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
        facts = {each.name: getattr(problem, each.name) for each in fields(problem)}
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
