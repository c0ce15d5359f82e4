"""Sums of curvature times x x^T: their definition, for dense and sparse rows, with one score and with several."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse

from confide.erm.class_losses import OneVsRest, Softmax
from confide.erm.losses import LogisticLoss
from confide.erm.row_sums import add_curvatures, add_products

ROWS = np.random.default_rng(0).normal(size=(30, 4))


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("intercept", [0.0, 1.5])
@pytest.mark.parametrize(
    "loss", [LogisticLoss(), OneVsRest(LogisticLoss(), 3), Softmax(3)], ids=lambda loss: loss.constants.name
)
def test_two_problems_get_the_sums_of_their_definition(loss, intercept, sparse):
    """Upper triangles of sum_i h_i kron x_i x_i^T, h_i symmetric matrices; what was there before stays."""
    k, n_problems = loss.constants.n_outputs, 2
    roots = np.random.default_rng(1).normal(size=(30, n_problems, k, k))
    matrices = roots @ roots.swapaxes(2, 3)
    if loss.constants.separable:
        matrices *= np.eye(k)
    entries = np.einsum("mpii->mpi", matrices) if loss.constants.separable else matrices
    whole = np.hstack([ROWS, np.full((30, 1), intercept)]) if intercept else ROWS
    width = k * whole.shape[1]
    expected = np.einsum("mpab,mi,mj->paibj", matrices, whole, whole).reshape(n_problems, width, width)
    rows = scipy.sparse.csr_array(ROWS) if sparse else ROWS
    found = np.ones((n_problems, width, width))
    add_curvatures(found, rows, entries.reshape(30, -1), loss.constants, intercept)
    np.testing.assert_allclose(np.triu(found), np.triu(1.0 + expected), rtol=1e-12, atol=1e-12)


def test_products_are_added_to_the_upper_triangle_alone():
    """The lower triangle stays as it was, for a source completes it once at its end."""
    found = np.full((4, 4), 7.0)
    add_products(found, ROWS)
    np.testing.assert_allclose(np.triu(found), np.triu(7.0 + ROWS.T @ ROWS), rtol=1e-12)
    assert (found[np.tril_indices(4, -1)] == 7.0).all()


@pytest.mark.parametrize("intercept", [0.0, 2.0])
def test_one_row_by_hand(intercept):
    """A curvature of 4 and a row (1, -3), with its constant; a row of another problem counts for that one alone."""
    found = np.zeros((2, 2 + (intercept > 0), 2 + (intercept > 0)))
    x = np.array([1.0, -3.0, intercept])[: found.shape[1]]
    for rows in (np.array([[1.0, -3.0]]), scipy.sparse.csr_array([[1.0, -3.0]])):
        add_curvatures(found, rows, np.array([[4.0, 0.25]]), LogisticLoss().constants, intercept)
    np.testing.assert_array_equal(np.triu(found[0]), np.triu(8.0 * np.outer(x, x)))
    np.testing.assert_array_equal(np.triu(found[1]), np.triu(0.5 * np.outer(x, x)))


def test_products_of_several_classes_may_have_any_sign():
    """The curvature of two different scores is negative for softmax; its block lies above the diagonal."""
    found = np.zeros((1, 4, 4))
    matrix = np.array([[2.0, -1.0], [-1.0, 3.0]])
    pair = SimpleNamespace(n_outputs=2, separable=False)
    add_curvatures(found, np.array([[1.0]]), matrix.reshape(1, 4), pair, 0.5)
    x = np.array([1.0, 0.5])
    np.testing.assert_array_equal(np.triu(found[0]), np.triu(np.kron(matrix, np.outer(x, x))))
