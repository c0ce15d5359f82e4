"""Sums over rows of curvature times x x^T: the Hessians that solvers ask for, and the second moments for intervals.

The certificate of a minimiser needs none of them.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.linalg.blas import dsyrk
from scipy.sparse import csr_array, issparse

from confide.erm.centred_rows import CentredRows
from confide.erm.losses import Loss
from confide.erm.thread_memory import scratch
from confide.types import Array, Rows


def add_curvatures(hessian: Array, clipped: Rows, curvatures: Array, loss: Loss, intercept: float) -> None:
    """Add the terms of one block of clipped rows to the upper triangles of the matrices (k, o D, o D), in place.

    The curvatures (m, k o) or (m, k o o) are those of `Terms`, times the weights of the rows.
    """
    n_features, n_outputs = clipped.shape[1], loss.n_outputs
    if not isinstance(clipped, np.ndarray) or n_outputs > 1:
        pairs = range(n_outputs if loss.separable else n_outputs**2)
        for problem, matrix in enumerate(hessian):
            for pair in pairs:
                first, second = (pair, pair) if loss.separable else divmod(pair, n_outputs)
                if first <= second:
                    blocks = matrix.reshape(n_outputs, -1, n_outputs, matrix.shape[0] // n_outputs)
                    blocks[first, :, second] += _product(clipped, curvatures[:, problem * len(pairs) + pair], intercept)
        return
    rows = scratch((clipped.shape[0], hessian.shape[1]), "bent")
    for problem, matrix in enumerate(hessian):
        root = np.sqrt(curvatures[:, problem, None])
        np.multiply(clipped, root, out=rows[:, :n_features])
        if intercept > 0.0:
            rows[:, n_features:] = intercept * root
        add_products(matrix, rows)


def _product(clipped: Any, curvatures: Array, intercept: float) -> Array:
    """(D, D): the sum of c x x^T over rows x with their intercept and curvatures c (m,) of any sign."""
    n_features = clipped.shape[1]
    product = np.empty((n_features + (intercept > 0.0),) * 2)
    if type(clipped) is CentredRows:
        product[:n_features, :n_features] = clipped.products(curvatures)
    elif issparse(clipped):
        bent = clipped.data * np.repeat(curvatures, np.diff(clipped.indptr))
        sums = clipped.T @ csr_array((bent, clipped.indices, clipped.indptr), clipped.shape)
        product[:n_features, :n_features] = sums.toarray()
    else:
        np.matmul(clipped.T, clipped * curvatures[:, None], out=product[:n_features, :n_features])
    if intercept > 0.0:
        product[:n_features, n_features] = product[n_features, :n_features] = intercept * _sums(clipped, curvatures)
        product[n_features, n_features] = intercept**2 * curvatures.sum()
    return product


def _sums(clipped: Any, curvatures: Array) -> Any:
    return clipped.weighted_sums(curvatures[:, None])[0] if type(clipped) is CentredRows else clipped.T @ curvatures


def add_products(matrix: Array, rows: Array) -> None:
    """Add rows^T rows to the upper triangle of a matrix (D, D) in C order, in place."""
    # One triangle, accumulated in place by BLAS: half the work of a product and no (D, D) temporary. BLAS wants Fortran
    # order, so it is given the transposes; its lower triangle is the upper one here.
    dsyrk(1.0, rows.T, beta=1.0, c=matrix.T, lower=1, overwrite_c=1)
