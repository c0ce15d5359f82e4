"""OpenDP's account of the privacy of noise on a grid. It is independent of the account of confide, and can only refuse.

OpenDP is an optional part. Without it a release rests on the account of confide alone, and its guarantee says so.
"""

from __future__ import annotations

import functools
import math
from importlib.metadata import version
from typing import Any

from confide.first_use import is_installed

OPENDP = version("opendp") if is_installed("opendp") else None
"""The version of OpenDP that is asked, or None where it is not installed."""


@functools.lru_cache(maxsize=1024)
def denies(noise: Any) -> bool:
    """Whether OpenDP is there and finds a `confide.privacy.lattice.LatticeNoise` less private than it claims to be."""
    if OPENDP is None:
        return False
    # Imported here, and without opendp.prelude, because that is slow.
    from opendp import domains, measurements, metrics, mod

    mod.enable_features("contrib")
    space: Any = domains.vector_domain(domains.atom_domain(T=float, nan=False), size=noise.dimension)
    if noise.law == "laplace":
        laplace: Any = measurements.make_laplace(space, metrics.l1_distance(T=float), noise.scale, noise.exponent)
        return not laplace.map(math.sqrt(noise.dimension) * noise.l2_sensitivity) <= noise.epsilon
    gaussian: Any = measurements.make_gaussian(space, metrics.l2_distance(T=float), noise.deviation, noise.exponent)
    return not gaussian.map(noise.l2_sensitivity) <= noise.rho
