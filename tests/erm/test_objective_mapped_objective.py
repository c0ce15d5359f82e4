"""Objectives in the norm of a form over rows as they are: those over rows that were mapped by hand."""

from __future__ import annotations

import numpy as np
import pytest

from confide.data.arrays import ArrayBlocks, MemorySource
from confide.erm.group_bounds import GroupBound
from confide.erm.losses import LogisticLoss
from confide.erm.objective import Objective
from confide.erm.penalties import Penalty
from confide.erm.row_bounds import BallBound
from confide.features.forms import QuadraticForm
from tests.privacy.problems import group_rows

BOUND = GroupBound((3, 2, 1), (0.8, 1.3, 0.6))
MATRIX = np.array([[2.0, -0.9, 0.3], [-0.9, 1.5, 0.1], [0.3, 0.1, 0.7]])
FORM = QuadraticForm.of(np.array([1.0, 1.0, 1.0, 4.0, 0.25, 9.0]), [(0, MATRIX)])
RNG = np.random.default_rng(0)
LABELS = np.where(np.arange(30) % 3, 1, -1).astype(np.int8)
LINEAR = RNG.normal(size=(2, 7))
ROWS = group_rows(BOUND, 30)


def objectives():
    """Over rows as they are, and over mapped rows."""
    source = MemorySource(ArrayBlocks(ROWS), LABELS)
    own = Objective(source, LogisticLoss(), BOUND, 1.5, 3.0, LINEAR, penalty=Penalty(form=FORM))
    mapped = MemorySource(ArrayBlocks(FORM.sums_in_norm(ROWS)), LABELS)
    return own, Objective(mapped, LogisticLoss(), BallBound(100.0), 1.5, 3.0, LINEAR)


def test_values_gradients_and_hessians_are_those_of_mapped_rows():
    """And so are those of what a solver is lent, and of one problem alone."""
    own, by_hand = objectives()
    weights = RNG.normal(size=(2, 7))
    expected = by_hand.evaluate(weights, 2)
    for face in (own, own.lent()):
        found = face.evaluate(weights, 2)
        assert found.gradient == pytest.approx(expected.gradient, rel=1e-12, abs=1e-12)
        assert found.hessian == pytest.approx(expected.hessian, rel=1e-12, abs=1e-12)
        assert face.gradients(weights) == pytest.approx(expected.gradient, rel=1e-12, abs=1e-12)
        assert face.evaluate(weights, 0).value == pytest.approx(by_hand.evaluate(weights, 0).value, rel=1e-12)
    alone = own.restrict(np.array([1])).gradients(weights[1:])
    assert alone == pytest.approx(expected.gradient[1:], rel=1e-12, abs=1e-12)


def test_what_solvers_know_of_a_row_is_its_length_in_the_norm():
    """The smoothness, too."""
    own, _ = objectives()
    assert own.row_norm == pytest.approx(np.hypot(FORM.longest(BOUND), 1.5))
    assert own.row_norm > 1.1 * np.hypot(BOUND.l2_norm, 1.5)
    assert own.smoothness == pytest.approx(3.0 + 30 * 0.25 * own.row_norm**2)


class Doubled:
    """A map that is plain to see: weights are doubled, and sums are tripled, but for the intercept; rows are 2 long."""

    def longest(self, row_bound):
        """2."""
        return 2.0

    def weights_of(self, coef):
        """2 v."""
        return coef * [2.0, 1.0]

    def sums_in_norm(self, sums):
        """3 g."""
        return sums * [3.0, 1.0]


def test_an_objective_by_hand():
    """One row of 1/2 with the constant 1 at score 0: log 2, slope -1/2, curvature 1/4; a ridge of 4 and a linear term."""
    source = MemorySource(ArrayBlocks(np.array([[0.5]])), np.ones(1, np.int8))
    linear = np.array([[1.0, 10.0]])
    own = Objective(source, LogisticLoss(), BallBound(1.0), 1.0, 4.0, linear, penalty=Penalty(form=Doubled()))
    weights = np.array([[1.0, -1.0]])
    assert own.evaluate(weights, 0).value == pytest.approx(np.log(2.0) + 4.0 + 1.0 - 10.0, rel=1e-14)
    gradient = [[-0.75 + 4.0 + 1.0, -0.5 - 4.0 + 10.0]]
    for order in (1, 2):
        found = own.evaluate(weights, order)
        assert found.gradient.tolist() == own.gradients(weights).tolist() == gradient
    np.testing.assert_allclose(found.hessian, [[[9.0 / 16.0 + 4.0, 0.375], [0.375, 0.25 + 4.0]]], rtol=1e-14)
    assert own.evaluate(weights, 1).hessian.shape == (1, 0, 0)
    lent = own.lent()
    assert (lent.row_norm**2, lent.intercept, lent.l2, lent.largest_weight) == (pytest.approx(5.0), 1.0, 4.0, 1.0)
    lent.linear[...] = 0.0
    assert own.linear.tolist() == [[1.0, 10.0]]
