"""Exact densities of objective perturbation, for attacks on its calibration. Written from the theorem, not from the code.

For fixed rows the map from the noise b to the minimiser w is a bijection, b(w) = -(l2 w + sum l'(u . w) u) with u = y x, so
log density(w) = -beta |b(w)| + log det(l2 I + sum l''(u . w) u u^T) + constant.
"""

from __future__ import annotations

import numpy as np


def noise_behind(loss, signed_rows, l2, w):
    """The b whose perturbed objective is minimised at w."""
    z = signed_rows @ w
    return -(l2 * w + loss.derivative(z) @ signed_rows)


def log_density(loss, signed_rows, l2, rate, w):
    """Log density of the released w up to a constant that neighbours share."""
    z = signed_rows @ w
    hessian = l2 * np.eye(len(w)) + (signed_rows * loss.second_derivative(z)[:, None]).T @ signed_rows
    return -rate * np.linalg.norm(noise_behind(loss, signed_rows, l2, w)) + np.linalg.slogdet(hessian)[1]


def log_ratio(loss, first, second, l2, rate, w):
    """Privacy loss at w between two data sets given by their signed rows."""
    return log_density(loss, first, l2, rate, w) - log_density(loss, second, l2, rate, w)


def tight_huber_pair(loss, l2, alpha):
    """The two-dimensional pair on which the refined calibration is attained: (first, second, w).

    One record sits just inside the quadratic zone, its replacement just outside, nearly opposite; the common records cancel
    the ridge and push the noise along the first axis.
    """
    h = loss.smoothing
    n = round(l2 / alpha)
    t = 0.5 * np.sqrt((1 - h) / alpha)
    s = (1 - h) / t
    w = np.array([0.0, t])
    s1, s2 = s * (1 + 1e-9), s * (1 - 1e-6)
    first = np.array([np.sqrt(1 - s1**2), s1])
    second = np.array([-np.sqrt(1 - s2**2), s2])
    sc = (l2 * t - s) / (n - 1)
    common = np.tile(np.array([[-0.5 * np.sqrt(1 - sc * sc), sc]]), (n - 1, 1))
    return np.vstack([common, first]), np.vstack([common, second]), w
