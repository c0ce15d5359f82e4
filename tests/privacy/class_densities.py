"""Exact laws of mechanisms for several classes, from the theorems: W is (k, D), a data set rows (n, D) and classes (n,).

For fixed rows b(W) = -(l2 W + sum q_i x_i^T) is a bijection, so log density(W) is log density of b(W) plus
log det(l2 I + sum C_i (x) x_i x_i^T) plus a constant, with q_i the slope and C_i the curvature of row i in its scores.
"""

from __future__ import annotations

import numpy as np
from scipy.special import softmax


def slope_and_curvature(loss, scores, label):
    """(k,) and (k, k) for scores (k,) and a class; `loss` is "softmax" or a loss of the margin."""
    own = np.arange(len(scores)) == label
    if loss == "softmax":
        p = softmax(scores)
        return p - own, np.diag(p) - np.outer(p, p)
    signs = np.where(own, 1.0, -1.0)
    return signs * loss.derivative(signs * scores), np.diag(loss.second_derivative(signs * scores))


def sums(loss, rows, classes, W):
    """Summed gradient (k, D) and Hessian (kD, kD) of the rows at W."""
    gradient, hessian = np.zeros(W.shape), np.zeros((W.size, W.size))
    for x, y in zip(rows, classes, strict=True):
        q, C = slope_and_curvature(loss, W @ x, y)
        gradient += np.outer(q, x)
        hessian += np.kron(C, np.outer(x, x))
    return gradient, hessian


def noise_behind(loss, rows, classes, l2, W):
    """The b whose perturbed objective is minimised at W."""
    return -(l2 * W + sums(loss, rows, classes, W)[0])


def log_density(loss, rows, classes, l2, rate, W):
    """Log density of W under spherical Laplace noise of this rate in the L2 norm, but for a constant of neighbours."""
    gradient, hessian = sums(loss, rows, classes, W)
    determinant = np.linalg.slogdet(l2 * np.eye(W.size) + hessian)[1]
    return -rate * np.linalg.norm(l2 * W + gradient) + determinant


def freest_loss(coming, going, rest, l2, rate):
    """Privacy loss between rows that differ in one, (slope, curvature, x) each or None, and in the noise share `rest`.

    `rest` (k, D) is what the common rows and the noise add up to: any vector, as common rows of many directions in linear
    parts of the loss show. They bend nothing.
    """

    def part(row):
        if row is None:
            return rest, 0.0
        q, C, x = row
        # x is an eigenvector of x x^T, of value |x|^2, and the other values are 0: det(I + C (x) x x^T) = det(I + |x|^2 C).
        return rest + np.outer(q, x), np.linalg.slogdet(np.eye(len(C)) + C * (x @ x) / l2)[1]

    (first, one), (second, other) = part(coming), part(going)
    return -rate * (np.linalg.norm(first) - np.linalg.norm(second)) + one - other
