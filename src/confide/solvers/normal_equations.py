"""Least squares from its sums over rows, which may be noisy."""

from __future__ import annotations

import numpy as np

from confide.array_types import Array


def ridge_weights(products: Array, targets: Array, l2: float, prior: Array | None = None) -> Array:
    """Weights (D,) that minimise w . P w / 2 - w . t + (l2 / 2) |w - prior|^2, where P is the positive part of `products`.

    X^T X has no negative eigenvalues, so eigenvalues that noise pushed below 0 are put back to 0. The weights are not
    exact. Privacy does not depend on that, for the guarantee covers the sums that they are computed from.
    """
    if prior is not None:
        targets = targets + l2 * prior
    values, vectors = np.linalg.eigh(products)
    # An eigenvalue has about this error. Without it here, a tiny ridge would magnify the error of an eigenvalue near 0.
    rounding = 2.0**-52 * len(values) * np.abs(values).max()
    weights: Array = vectors @ ((vectors.T @ targets) / (np.maximum(values, 0.0) + (l2 + rounding)))
    return weights
