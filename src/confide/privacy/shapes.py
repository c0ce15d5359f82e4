"""Shapes of noise: what a public bound on rows allows. Mathematics without randomness and without data.

A shape is a norm |.|_K in which every clipped row x has |x|_K <= 1; the constant of the intercept is the last coordinate of
x. Laplace noise of a shape has density proportional to exp(-rate |b|_K). Gaussian noise has the least total variance at
which a row is at most 1 / scale standard deviations long. `confide.privacy.noise` draws both.

Proof: proofs/noise.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

_UNIT = 2.0**-53
_UPWARDS = 1.0 + 2.0**-45


@dataclass(frozen=True, slots=True)
class Shape:
    """Consecutive groups of columns. Each kind of shape says how large a row may be in each group.

    Parameters
    ----------
    sizes : number of columns of each group
    scales : largest norm of each group
    linked : for each group, whether the entries of a row in it always add up to its scale
    """

    sizes: tuple[int, ...]
    scales: tuple[float, ...]
    linked: tuple[bool, ...]

    name: ClassVar[str]
    laplace_error: ClassVar[float]
    """Bound on |computed draw - exact draw|_2 over `laplace_bound`."""

    @property
    def dimension(self) -> int:
        """D, number of coordinates."""
        return sum(self.sizes)

    @property
    def free_dimension(self) -> int:
        """Dimension of the space that holds the noise: each linked group takes one dimension away."""
        return self.dimension - sum(self.linked)

    @property
    def l2_norm(self) -> float:
        """R_2, the largest L2 norm of a clipped row, rounded upwards."""
        return math.sqrt(math.fsum(scale * scale for scale in self.scales)) * (1.0 + 2.0**-50)

    def solid_mean_square(self) -> float:
        """E |U|_2^2 for U uniform in the unit ball of the norm."""
        # proofs/noise.md, section 2: the unit ball is a product of cross-polytopes, one for each group.
        pairs = zip(self.sizes, self.scales, strict=True)
        return math.fsum(2.0 * scale**2 * size / ((size + 1) * (size + 2)) for size, scale in pairs)

    def laplace_norm(self, rate: float) -> float:
        """Root of E |b|_2^2 under the Laplace law: b = r U / rate with r ~ Gamma(d + 1), d the free dimension."""
        d = self.free_dimension
        return math.sqrt((d + 1) * (d + 2) * self.solid_mean_square()) / rate

    def laplace_bound(self, rate: float, log_failure: float) -> float:
        """b_max: |b|_2 exceeds it with probability at most exp(log_failure).

        |b|_2 <= R_2 G / rate with G ~ Gamma(m) and m the free dimension plus one; E exp(G / 2) = 2^m, and 2 ln 2 < 1.4.
        """
        return self.l2_norm * (1.4 * (self.free_dimension + 1) - 2.0 * log_failure) / rate

    @property
    def pieces(self) -> tuple[tuple[float, int], ...]:
        """One pair (rho, m) for each group: orthogonal subspaces of dimension m in which no row is longer than rho.

        A linked group is centred. The piece of the last group is the direction that it shares with all linked groups.
        """
        # proofs/noise.md, section 2: (s_g sqrt(1 - 1/k_g), k_g - 1) if linked, (s_g, k_g) otherwise; the shared direction
        # has |c|^2 = s_0^2 + sum of s_g^2 / k_g.
        groups = list(zip(self.sizes, self.scales, self.linked, strict=True))
        shared = math.fsum(scale**2 / size for size, scale, linked in groups if linked) + self.scales[-1] ** 2
        own = [(scale * math.sqrt(1.0 - linked / size), size - linked) for size, scale, linked in groups[:-1]]
        return (*own, (math.sqrt(shared), self.sizes[-1]))

    def gaussian_norm(self, scale: float) -> float:
        """Root of E |b|_2^2 under the Gaussian law."""
        return scale * math.fsum(rho * math.sqrt(m) for rho, m in self.pieces)

    def gaussian_deviations(self, scale: float) -> tuple[float, ...]:
        """A deviation t for each piece, rounded upwards, at which the sum of (rho / t)^2 is at most 1 / scale^2."""
        # Least total variance (proofs/noise.md): t_i^2 = scale^2 (sum_j rho_j sqrt(m_j)) rho_i / sqrt(m_i).
        total = self.gaussian_norm(1.0)
        return tuple(scale * math.sqrt(total * rho / math.sqrt(m)) * _UPWARDS for rho, m in self.pieces)

    def gaussian_bound(self, scale: float, log_failure: float) -> float:
        """b_max: neither the exact nor the computed draw is longer, outside of an event of probability exp(log_failure)."""
        exact = self.gaussian_norm(scale) + max(self.gaussian_deviations(scale)) * _deviates(log_failure)
        return exact * _UPWARDS + self.gaussian_error(scale, log_failure)

    def gaussian_error(self, scale: float, log_failure: float) -> float:
        """Bound on |computed draw - exact draw|_2, outside of the same event."""
        normals = math.sqrt(self.dimension) + _deviates(log_failure)
        return 32.0 * _UNIT * max(self.gaussian_deviations(scale)) * normals


def _deviates(log_failure: float) -> float:
    """A standard normal vector is longer than its mean length plus this with probability at most exp(log_failure) / 2."""
    return math.sqrt(2.0 * (0.7 - log_failure))  # 0.7 > ln 2


class Ball(Shape):
    """Rows of L2 norm at most `radius`: |b|_K = |b|_2 / radius."""

    __slots__ = ()
    name = "ball"
    laplace_error = 50.0 * _UNIT

    def __init__(self, dimension: int, radius: float) -> None:
        super().__init__((dimension,), (radius,), (False,))

    def solid_mean_square(self) -> float:
        return self.scales[0] ** 2 * self.dimension / (self.dimension + 2)


class Cylinder(Shape):
    """Rows of L2 norm at most `radius`, and after them the constant of the intercept.

    |b|_K is the larger of |b_1|_2 / radius and |b_0| / constant, where b_1 are the first `n_features` coordinates and b_0 is
    the last one. A ball around whole rows would allow features of the length of features and constant together.
    """

    __slots__ = ()
    name = "cylinder"
    laplace_error = 71.0 * _UNIT

    def __init__(self, n_features: int, radius: float, constant: float) -> None:
        super().__init__((n_features, 1), (radius, constant), (False, False))

    def solid_mean_square(self) -> float:
        size, (radius, constant) = self.sizes[0], self.scales
        return radius**2 * size / (size + 2) + constant**2 / 3.0
