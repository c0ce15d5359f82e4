"""The quieter of two exact laws for one vector of sums: Laplace or Gaussian noise on a grid. Public facts decide it.

Proofs: proofs/lattice.md, and the page of each mechanism, which bounds the distances of neighbours.
"""

from __future__ import annotations

from confide.accounting.events import PureMechanism
from confide.privacy.budgets import Budget, PureDP, pure_epsilon
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
