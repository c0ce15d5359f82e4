"""OpenDP's account of noise on a grid: it confirms what is claimed, and refuses a claim that is too good."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

from confide.errors import NotCertified
from confide.privacy.lattice import LatticeGaussian, LatticeLaplace
from confide.privacy.noise import Entropy
from confide.second_account import denies


def test_noise_that_opendp_does_not_confirm_is_not_drawn():
    """A claim 0.1% too good fails before any draw."""

    class Boastful(LatticeGaussian):
        @property
        def rho(self):
            return LatticeGaussian.rho.fget(self) * 0.999

    with pytest.raises(NotCertified, match="OpenDP"):
        Boastful(3, -10, 1.0, 2.0).release(np.zeros((1, 3)), Entropy.fresh())


@pytest.mark.parametrize(
    "noise",
    [LatticeLaplace(3, -10, 1.0, 0.5), LatticeGaussian(3, -10, 1.0, 2.0), LatticeLaplace.of_l1(4, 2.0, 1.0)],
    ids=["Laplace", "Gaussian", "Laplace for L1 distances"],
)
def test_noise_that_is_as_private_as_it_claims_is_confirmed(noise):
    """By OpenDP's own map of its scale and sensitivity."""
    assert not denies(noise)


@dataclass(frozen=True)
class Claim:
    """Noise as the second account reads it, with any claim at all."""

    dimension: int
    exponent: int
    l2_sensitivity: float
    scale: float
    epsilon: float
    law: str = "laplace"


def test_a_claim_beyond_the_scale_of_the_noise_is_not_confirmed():
    """epsilon is sqrt(d) times the L2 sensitivity over the scale: 1% less is refused, 1% more is accepted."""
    epsilon = 2.0 * 0.3 / 1.5
    assert not denies(Claim(4, -20, 0.3, 1.5, 1.01 * epsilon))
    assert denies(Claim(4, -20, 0.3, 1.5, 0.99 * epsilon))
