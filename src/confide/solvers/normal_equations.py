"""Least squares from its sums over rows, which may be noisy."""

from __future__ import annotations

import numpy as np

from confide.types import Array


def ridge_weights(products: Array, targets: Array, l2: float) -> Array:
    """Weights (D,) that minimise w . P w / 2 - w . t + (l2 / 2) |w|^2, P the positive part of `products`.

    X^T X has no negative eigenvalues, so what noise pushed below 0 is put back to 0. Not exact: whoever promises privacy for
    the weights does so for the sums.
    """
    values, vectors = np.linalg.eigh(products)
    # An eigenvalue errs by about this much, which a tiny ridge must not magnify.
    rounding = 2.0**-52 * len(values) * np.abs(values).max()
    weights: Array = vectors @ ((vectors.T @ targets) / (np.maximum(values, 0.0) + (l2 + rounding)))
    return weights
