"""OpenDP's account of the privacy of noise on a grid. It is independent of the account of confide, and can only refuse."""

from __future__ import annotations

import functools
import math
from typing import Any


@functools.lru_cache(maxsize=1024)
def confirms(noise: Any) -> bool:
    """Whether OpenDP finds a `confide.privacy.lattice.LatticeNoise` no less private than it claims to be."""
    # Imported here, and without opendp.prelude, because that is slow.
    from opendp import domains, measurements, metrics, mod

    mod.enable_features("contrib")
    space: Any = domains.vector_domain(domains.atom_domain(T=float, nan=False), size=noise.dimension)
    if noise.law == "laplace":
        laplace: Any = measurements.make_laplace(space, metrics.l1_distance(T=float), noise.scale, noise.exponent)
        return bool(laplace.map(math.sqrt(noise.dimension) * noise.l2_sensitivity) <= noise.epsilon)
    gaussian: Any = measurements.make_gaussian(space, metrics.l2_distance(T=float), noise.deviation, noise.exponent)
    return bool(gaussian.map(noise.l2_sensitivity) <= noise.rho)
