"""Distance between computed weights and the exact minimiser, rounding error included.

Proof, and the proof that the tolerance can always be reached: proofs/certificate.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from confide.erm.losses import Loss
from confide.erm.objective import Objective
from confide.errors import NotCertified
from confide.types import Weights

_UNIT = 2.0**-53


@dataclass(frozen=True, slots=True)
class GradientRounding:
    """Bound on the rounding error of one computed gradient, from public facts and three norms.

    Parameters
    ----------
    loss : the loss
    row_norm : R, largest L2 norm of a clipped row with its intercept
    n_rows : upper bound on the number of rows
    n_weights : D, number of weights of one problem
    summation_depth : m, rows of the largest block plus number of blocks
    l2 : ridge of the sum form
    """

    loss: Loss
    row_norm: float
    n_rows: int
    n_weights: int
    summation_depth: int
    l2: float

    def bound(self, weights_norm: float, noise_norm: float, gradient_norm: float) -> float:
        """L2 distance between the computed and the exact gradient.

        1.01 u n R [L (m + D + 5 + w) + (2D + 5) c R |w|] + gamma_3 (l2 |w| + |b|) + 3u |g| + 2^-900, where w is the
        rounding constant of the loss.
        """
        loss, dimension = self.loss, self.n_weights
        slopes = loss.lipschitz * (self.summation_depth + dimension + 5 + loss.rounding)
        margins = (2 * dimension + 5) * loss.smoothness * self.row_norm * weights_norm
        sums = 1.01 * _UNIT * self.n_rows * self.row_norm * (slopes + margins)
        return sums + _gamma(3) * (self.l2 * weights_norm + noise_norm) + 3.0 * _UNIT * gradient_norm + 2.0**-900

    def minimiser_norm(self, noise_bound: float) -> float:
        """W: the exact minimiser is no longer, if its linear term is no longer than `noise_bound` (F(w*) <= F(0))."""
        return 2.0 * noise_bound / self.l2 + math.sqrt(2.0 * self.n_rows * self.loss.value_at_zero / self.l2)

    def worst(self, noise_bound: float) -> float:
        """The bound over everything a solver meets: |w| <= 2W, |b| <= noise_bound and the gradients there."""
        weights_norm = 2.0 * self.minimiser_norm(noise_bound)
        gradient_norm = self.n_rows * self.loss.lipschitz * self.row_norm + self.l2 * weights_norm + noise_bound
        return self.bound(weights_norm, noise_bound, gradient_norm)


TOLERANCE_OVER_ROUNDING = 8.0
"""The tolerance of a plan over the worst rounding error; 6 suffices for the fallback methods to reach it."""


def solver_tolerance(tolerance: float) -> float:
    """What a computed gradient norm may be so that the certificate passes: the rest pays for rounding."""
    return tolerance * (1.0 - 1.1 / TOLERANCE_OVER_ROUNDING)


@dataclass(frozen=True, slots=True)
class Certificate:
    """Proof that weights lie near the exact minimiser."""

    distance: float
    """Largest L2 distance, a public number: tolerance / l2."""


def certify(objective: Objective, weights: Weights, tolerance: float, rounding: GradientRounding) -> Certificate:
    """Check in a gradient pass of its own that every exact gradient norm at `weights` (k, D) is at most `tolerance`.

    Strong convexity turns it into a distance: |w - w*| <= |gradient| / l2.

    Raises
    ------
    NotCertified
        If the check fails, NaN included. By the theorem on the fallback methods no data can make it fail.
    """
    gradients = objective.evaluate(weights, order=1).gradient
    for gradient, weight, linear in zip(gradients, weights, objective.linear, strict=True):
        norm = float(np.linalg.norm(gradient))
        error = rounding.bound(float(np.linalg.norm(weight)), float(np.linalg.norm(linear)), norm)
        bound = norm * (1.0 + _gamma(weights.shape[1] + 4)) + 1.01 * error
        # Not `bound > tolerance`: a NaN must fail.
        if not bound <= tolerance:
            raise NotCertified(
                "the minimiser could not be certified, so nothing is released; what was charged stays charged. "
                "This cannot be caused by data: report it with the versions of confide, NumPy and SciPy."
            )
    return Certificate(distance=tolerance / objective.l2 * (1.0 + 2.0**-50))


def _gamma(k: int) -> float:
    return k * _UNIT / (1.0 - k * _UNIT)
