"""OpenDP's account of noise on a grid: it confirms what is claimed, and refuses a claim that is too good."""

from __future__ import annotations

import numpy as np
import pytest

from confide.errors import NotCertified
from confide.privacy.lattice import LatticeGaussian
from confide.privacy.noise import Entropy


def test_noise_that_opendp_does_not_confirm_is_not_drawn():
    """A claim 0.1% too good fails before any draw."""

    class Boastful(LatticeGaussian):
        @property
        def rho(self):
            return LatticeGaussian.rho.fget(self) * 0.999

    with pytest.raises(NotCertified, match="OpenDP"):
        Boastful(3, -10, 1.0, 2.0).release(np.zeros((1, 3)), Entropy.fresh())
