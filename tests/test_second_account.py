"""OpenDP's account of noise on a grid: it confirms what is claimed, and refuses a claim that is too good."""

from __future__ import annotations

import importlib.util
from dataclasses import dataclass

import numpy as np
import pytest

from confide.errors import NotCertified
from confide.first_use import is_installed
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


def test_a_folder_of_a_librarys_name_is_not_the_library(tmp_path, monkeypatch):
    """Python takes any such folder for a namespace package. Whoever has one need not have the library."""
    (tmp_path / "folder_without_modules").mkdir()
    monkeypatch.syspath_prepend(str(tmp_path))
    assert importlib.util.find_spec("folder_without_modules") is not None
    assert not is_installed("folder_without_modules")
    assert is_installed("numpy")
