"""One noisy sum over rows: all that is decided before a row is read, and the release. Proof: proofs/lattice.md, section 6.

A query says what is summed, how far the sums of neighbours lie apart, and what noisy sums mean; each has a page of its own.
Noise is exact on a grid: Laplace or Gaussian noise, independent in each entry, or the seal of spherical Laplace noise.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from functools import reduce
from typing import Any, Generic, Self, TypeAlias, TypeVar

from confide import expected_noise
from confide.array_types import Array, Weights
from confide.erm.source import RowSource
from confide.errors import ParameterError
from confide.privacy.budgets import Budget, Neighbours, budget_of_row, pure_epsilon
from confide.privacy.events import Event, PureMechanism
from confide.privacy.gaussian import GaussianMechanism, mu_within
from confide.privacy.lattice import LatticeGaussian, LatticeLaplace, LatticeNoise, lattice_exponent
from confide.privacy.mechanism import ANOTHERS, Noise, Plan, ProblemFacts, log_failure
from confide.privacy.noise import Entropy

_LARGEST_INFLATION = 0.1
"""The largest part of a row's effect by which rounding may raise the noise."""
_UNIT = 2.0**-53
_DOWN, _UP = 1.0 - 2.0**-40, 1.0 + 2.0**-40


Before: TypeAlias = tuple[Plan, Any, tuple[Any, ...]]
"""What follows from a sum that was released before the weights: their plan, their rows, and the scales of columns in random
features, or the atoms of columns, if it was released to find them."""


class SumQuery(ABC):
    """What is peculiar to one sum over rows. It is made of public facts and of what was released before."""

    __slots__ = ()
    problem: ProblemFacts

    @property
    def protected(self) -> Any:
        """What knows the neighbour relation and the cap on rows of one person."""
        return self.problem

    @property
    @abstractmethod
    def size(self) -> int:
        """Number of entries N of the vector of sums."""

    @property
    @abstractmethod
    def distances(self) -> tuple[float, float]:
        """The largest L2 and L1 distance of the computed vectors of neighbours."""

    def check(self, rows: Any) -> None:
        """Refuse rows that the plan was not made for."""
        self.problem.check_source(rows)

    @abstractmethod
    def summed(self, *given: Any) -> Array:
        """The computed sums, N numbers in any shape: of rows, at what was released before."""

    def decoded(self, plan: Any, sums: Array, *given: Any) -> Any:
        """What the noisy sums (N,) of a plan mean. It uses no row."""
        return sums

    def before(self, part: Any, plan: Plan, rows: Any, entropy: Entropy) -> Before:
        """As a part of a plan of weights: what is released before them, and what follows from it."""
        return plan, rows, ()

    def after(self, part: Any, plan: Plan, weights: Weights, rows: RowSource, entropy: Entropy) -> Weights:
        """As such a part: what is released after the weights (1, D), and the weights that follow."""
        return weights


Query = TypeVar("Query", bound=SumQuery)


@dataclass(frozen=True, slots=True)
class SumPlan(Generic[Query]):
    """Everything about one noisy sum that is decided before any row is read. Public: safe to print, store and review.

    Attributes
    ----------
    query : SumQuery
    budget : Budget
        What the sum costs.
    lattice : LatticeNoise or None
        The noise, or what seals `noise`; None where there is no privacy.
    event : Event
        What a ledger counts.
    noise : Noise or None
        Continuous noise, which the lattice seals; None where the lattice is the noise.
    radius : float
        Largest L2 distance between the sums before the last noise and sums with noise of the exact law.
    share : float
        The part of the budget that the sum costs: of epsilon, or of the squared shift over deviation under Gaussian noise.
        Where it is not 1, the event of the weights covers the sum.
    """

    query: Query
    budget: Budget
    lattice: LatticeNoise | None
    event: Event
    noise: Noise | None = None
    radius: float = 0.0
    share: float = 1.0

    deviation = property(expected_noise.deviation)

    @classmethod
    def of(cls, query: Query, budget: Budget, laws: tuple[str, ...] = ("laplace", "gaussian"), share: float = 1.0) -> Self:
        """The plan with the least noise among the exact laws. No data is used."""
        if not budget.is_private:
            return cls(query, budget, None, Event.of(budget, None, query.protected))
        of_row = budget_of_row(budget, query.protected.rows_per_person)
        lattice, curve = least_noise(query.size, *query.distances, of_row, laws, share)
        return cls(query, budget, lattice, Event.of(budget, curve, query.protected), share=share)

    @classmethod
    def sealed(cls, query: Any, budget: Budget, share: float) -> Self:
        """The plan with spherical Laplace noise, whose seal takes this share of epsilon. No data is used.

        The query knows the bound on its `rounding`, the `spherical` noise that hides a row at a rate, and how `large` its
        sums with such noise are.
        """
        problem, size = query.problem, query.size
        epsilon, failure = pure_epsilon(budget_of_row(budget, problem.rows_per_person)), log_failure(budget, problem)
        noise = query.spherical(epsilon * (1.0 - share) * _DOWN)
        # Each entry of the sum of sums and noise is rounded once.
        radius = (query.rounding + noise.error(failure) + _UNIT * query.large(noise.bound(failure))) * _UP
        seal = LatticeLaplace(size, lattice_exponent(2.0 * radius, size), 2.0 * radius, epsilon * share * _DOWN)
        return cls(query, budget, seal, problem.event(budget, PureMechanism(epsilon)), noise, radius)

    @property
    def problem(self) -> Any:
        """The public facts about the rows that are summed."""
        return self.query.problem

    @property
    def neighbours(self) -> Neighbours:
        """The relation under which the release is private."""
        return Neighbours(self.query.protected.neighbours)

    @property
    def law(self) -> str:
        """The law of the exact noise: "laplace", "gaussian", or "none" where there is no privacy."""
        return "none" if self.lattice is None else self.lattice.law

    @property
    def mu(self) -> float:
        """Under Gaussian noise, the shift over deviation for one row, rounded upwards; otherwise infinity."""
        return 1.0 / self.lattice.multiplier * _UP if isinstance(self.lattice, LatticeGaussian) else math.inf

    @property
    def excess_kurtosis(self) -> float:
        """Excess kurtosis of the noise on one number: 3 for Laplace noise, 0 for Gaussian noise."""
        return 3.0 if self.law == "laplace" else 0.0

    def _is_of_its_query(self, lattice: LatticeNoise) -> bool:
        """Whether the noise is for as many numbers as the query has, and the event protects whom the query does."""
        query, event = self.query, self.event
        persons = (query.protected.neighbours, query.protected.rows_per_person)
        return lattice.dimension == query.size and (event.neighbours, event.rows_per_person) == persons

    def release(self, rows: Any, entropy: Entropy, *given: Any) -> Any:
        """Sum over the rows, at what was `given`, which was released before. The event was charged before this call."""
        is_covered = not self.budget.is_private if self.lattice is None else self._is_of_its_query(self.lattice)
        if not is_covered:
            raise ParameterError(ANOTHERS)
        self.query.check(rows)
        sums = self.query.summed(rows, *given).reshape(1, self.query.size)
        if self.noise is not None:
            sums = sums + self.noise.draw(entropy)
        if self.lattice is not None:
            sums = self.lattice.release(sums, entropy)
        return self.query.decoded(self, sums[0], *given)


def least_noise(
    size: int,
    l2_distance: float,
    l1_distance: float,
    of_row: Budget,
    laws: tuple[str, ...] = ("laplace", "gaussian"),
    share: float = 1.0,
) -> tuple[LatticeNoise, GaussianMechanism | PureMechanism]:
    """The exact noise with the smaller deviation, Laplace or Gaussian, for vectors of neighbours of these distances.

    It costs one row at most the share of `of_row`. The second value is the curve that a ledger counts.

    Parameters
    ----------
    size : number of entries of the vector
    l2_distance, l1_distance : the largest distances of the vectors of neighbours
    of_row : the budget of one row
    laws : those that are compared
    share : the part of epsilon, or of the squared shift over deviation, that the noise costs
    """
    choices: list[tuple[LatticeLaplace | LatticeGaussian, GaussianMechanism | PureMechanism]] = []
    if "laplace" in laws:
        epsilon = share * pure_epsilon(of_row)
        choices.append((LatticeLaplace.of_l1(size, l1_distance, epsilon * _DOWN), PureMechanism(epsilon)))
    if "gaussian" in laws and not of_row.is_pure:
        gaussian = LatticeGaussian.of_mu(size, l2_distance, math.sqrt(share) * mu_within(of_row))
        choices.append((gaussian, GaussianMechanism(1.0 / gaussian.multiplier)))
    if not choices:
        raise ParameterError(f"the budget {of_row} pays for no {laws[0]} noise on a sum.")
    return min(choices, key=lambda noise: noise[0].deviation)


def computed_distances(l2: float, l1: float, rounding: float, size: int) -> tuple[float, float]:
    """The largest L2 and L1 distance of computed sums, each of which lies within `rounding` of the exact ones in L2 norm."""
    return (l2 + 2.0 * rounding) * _UP, (l1 + 2.0 * math.sqrt(size) * rounding) * _UP


def refuse_inexact(l2: float, rounding: float, refusal: str) -> None:
    """Raise ParameterError with the text of the refusal where rounding would raise the noise by more than a tenth."""
    if not 2.0 * rounding <= _LARGEST_INFLATION * l2:
        raise ParameterError(refusal)


def planned_beside(part: Any, plan: Plan, query: SumQuery) -> SumPlan[Any]:
    """A part of a plan of weights, planned again from its query.

    Raises ParameterError unless it comes out the same, and the plan of the weights pays for it beside all other parts.
    """
    if type(part) is not SumPlan or part not in plan.parts or not _is_paid(part, plan):
        raise ParameterError(ANOTHERS)
    again = SumPlan.of(query, part.budget, (part.law,), part.share)
    if part.lattice != again.lattice:
        raise ParameterError(ANOTHERS)
    return again


def _is_paid(part: SumPlan[Any], plan: Plan) -> bool:
    """Whether weights that were planned so leave enough of the budget for a part of their plan."""
    whole, of_weights = plan.event.budget, plan.budget
    if part.law == "laplace":
        # Epsilons add up: proofs/tables.md, theorem 3.
        left = (1 - sum(Fraction(other.share) for other in plan.parts)) * Fraction(whole.amount)
        return part.budget == whole and whole.is_pure and of_weights.is_pure and Fraction(of_weights.amount) <= left
    # The rho of a part with a budget of its own adds up with that of the weights (proofs/matching.md, theorem 3).
    shared = [other for other in plan.parts if getattr(other, "budget", of_weights) == of_weights]
    # In the order in which plans add them up, so that rounding is the same.
    together = reduce(math.hypot, (other.mu for other in shared if math.isfinite(other.mu)), 0.0)
    return part.law == "gaussian" and part.budget == of_weights and together <= plan.problem.beside_mu


def joint_event(training: Plan, *beside: SumPlan[Any]) -> Event:
    """The event of weights and sums under one account: that of the weights, which pays for what is beside them.

    Raises ParameterError unless all sums have Gaussian noise, and the weights were planned for as much beside them.
    """
    if not math.hypot(*(plan.mu for plan in beside)) <= training.problem.beside_mu:
        raise ParameterError("the plan of the weights does not pay for the sums beside it.")
    return training.event
