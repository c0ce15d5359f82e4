"""The quieter of two exact laws for one vector of sums: Laplace or Gaussian noise on a grid. Public facts decide it.

Proofs: proofs/lattice.md, and the page of each mechanism, which bounds the distances of neighbours.
"""

from __future__ import annotations

from confide.accounting.events import Event, PureMechanism
from confide.privacy.budgets import Budget, Neighbours, PureDP, pure_epsilon
from confide.privacy.gaussian import GaussianMechanism, mu_within
from confide.privacy.lattice import LatticeGaussian, LatticeLaplace, LatticeNoise, lattice_exponent

_DOWN = 1.0 - 2.0**-40


def least_noise(
    size: int, l2_distance: float, l1_distance: float, of_row: Budget
) -> tuple[LatticeNoise, GaussianMechanism | PureMechanism]:
    """The exact noise with the smaller deviation, Laplace or Gaussian, for vectors of neighbours of these distances.

    It costs one row at most `of_row`. The second value is the curve that a ledger counts.

    Parameters
    ----------
    size : number of entries of the vector
    l2_distance, l1_distance : the largest distances of the vectors of neighbours
    of_row : the budget of one row
    """
    epsilon = pure_epsilon(of_row)
    laplace = LatticeLaplace.of_l1(size, l1_distance, epsilon * _DOWN)
    if isinstance(of_row, PureDP):
        return laplace, PureMechanism(epsilon)
    mu = mu_within(of_row)
    gaussian = LatticeGaussian.of_multiplier(size, lattice_exponent(l2_distance / max(1.0, mu), size), l2_distance, 1.0 / mu)
    if laplace.deviation <= gaussian.deviation:
        return laplace, PureMechanism(epsilon)
    return gaussian, GaussianMechanism(1.0 / gaussian.multiplier)


def event_of(
    budget: Budget, curve: GaussianMechanism | PureMechanism, rows_per_person: int, neighbours: Neighbours
) -> Event:
    """What a ledger counts for such a release where there is no problem of weights: as `ProblemFacts.event`."""
    speaks = rows_per_person == 1 and not isinstance(budget, PureDP)
    return Event(budget, curve if speaks else None, rows_per_person, neighbours)
