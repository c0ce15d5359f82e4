"""Sums of curvature times x x^T: their definition, for dense and sparse rows, with one score and with several."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse

from confide.erm.class_losses import OneVsRest, Softmax
from confide.erm.curvature_sums import add_curvatures, add_products
from confide.erm.losses import LogisticLoss

ROWS = np.random.default_rng(0).normal(size=(30, 4))


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("intercept", [0.0, 1.5])
@pytest.mark.parametrize("loss", [LogisticLoss(), OneVsRest(LogisticLoss(), 3), Softmax(3)], ids=lambda loss: loss.name)
def test_two_problems_get_the_sums_of_their_definition(loss, intercept, sparse):
    """Upper triangles of sum_i h_i kron x_i x_i^T, h_i symmetric matrices; what was there before stays."""
    k, n_problems = loss.n_outputs, 2
    roots = np.random.default_rng(1).normal(size=(30, n_problems, k, k))
    matrices = roots @ roots.swapaxes(2, 3)
    if loss.separable:
        matrices *= np.eye(k)
    entries = np.einsum("mpii->mpi", matrices) if loss.separable else matrices
    whole = np.hstack([ROWS, np.full((30, 1), intercept)]) if intercept else ROWS
    width = k * whole.shape[1]
    expected = np.einsum("mpab,mi,mj->paibj", matrices, whole, whole).reshape(n_problems, width, width)
    rows = scipy.sparse.csr_array(ROWS) if sparse else ROWS
    found = np.ones((n_problems, width, width))
    add_curvatures(found, rows, entries.reshape(30, -1), loss, intercept)
    np.testing.assert_allclose(np.triu(found), np.triu(1.0 + expected), rtol=1e-12, atol=1e-12)


def test_products_are_added_to_the_upper_triangle_alone():
    """The lower triangle stays as it was, for a source completes it once at its end."""
    found = np.full((4, 4), 7.0)
    add_products(found, ROWS)
    np.testing.assert_allclose(np.triu(found), np.triu(7.0 + ROWS.T @ ROWS), rtol=1e-12)
    assert (found[np.tril_indices(4, -1)] == 7.0).all()
