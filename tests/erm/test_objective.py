"""Sums over rows that an objective keeps of its last passes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from confide.data.arrays import ArrayBlocks, MemorySource
from confide.erm.losses import HuberHinge, LogisticLoss
from confide.erm.objective import Objective
from confide.erm.row_bounds import BallBound


class Counting:
    """A source that counts its passes."""

    def __init__(self, seed=0):
        rng = np.random.default_rng(seed)
        self.source = MemorySource(ArrayBlocks(rng.normal(size=(500, 4))), rng.choice([-1, 1], size=500).astype(np.int8))
        self.n_rows, self.n_features, self.passes = 500, 4, 0

    def sum_over_rows(self, row_sum, weights):
        """Count and pass on."""
        self.passes += 1
        return self.source.sum_over_rows(row_sum, weights)


def objective(k=3):
    """k problems with linear terms of their own."""
    return Objective(Counting(), LogisticLoss(), BallBound(1.0), 0.0, 2.0, np.random.default_rng(1).normal(size=(k, 4)))


POINTS = np.random.default_rng(2).normal(size=(3, 4))


@pytest.mark.parametrize("order", [1, 2])
def test_gradients_at_the_weights_of_a_pass_cost_none(order):
    """The same numbers, to the bit, with the linear term of each problem, in any order and for some of the problems."""
    problems = objective()
    found = problems.evaluate(POINTS, order).gradient
    some = np.array([2, 0])
    np.testing.assert_array_equal(problems.gradients(POINTS), found)
    np.testing.assert_array_equal(problems.restrict(some).gradients(POINTS[some]), found[some])
    assert problems.source.passes == 1


def test_problems_that_ended_in_different_passes_are_found():
    """What some of the problems were asked for is known to all."""
    problems = objective()
    first = problems.evaluate(POINTS, order=1).gradient
    later = problems.restrict(np.array([1])).evaluate(POINTS[[1]] + 1.0, order=1).gradient
    known = problems.gradients(np.vstack([POINTS[0], POINTS[1] + 1.0, POINTS[2]]))
    np.testing.assert_array_equal(known, np.vstack([first[0], later[0], first[2]]))
    assert problems.source.passes == 2


def test_other_weights_cost_a_pass():
    """However close they are; and values are not gradients."""
    problems = objective()
    problems.evaluate(POINTS, order=1)
    problems.evaluate(POINTS + 1.0, order=0)
    near = POINTS.copy()
    near[1, 2] = np.nextafter(near[1, 2], np.inf)
    problems.gradients(near)
    problems.gradients(POINTS + 1.0)
    assert problems.source.passes == 4


def test_kept_sums_are_not_those_that_were_handed_out():
    """A solver that writes over its weights or gradients does not write over what the certificate will read."""
    problems, weights = objective(), POINTS.copy()
    found = problems.evaluate(weights, order=1).gradient
    expected = found.copy()
    found[...] = 0.0
    weights[...] = 0.0
    np.testing.assert_array_equal(problems.gradients(POINTS), expected)


@pytest.mark.parametrize(
    "change",
    [
        {"loss": HuberHinge(0.5)},
        {"row_bound": BallBound(0.1)},
        {"intercept": 0.0},
        {"largest_weight": 0.5},
        {"source": Counting(7)},
    ],
    ids=lambda change: next(iter(change)),
)
def test_another_objective_knows_nothing_of_these_passes(change):
    """Whatever was replaced, sums are made anew."""
    problems = objective()
    problems.evaluate(POINTS, order=1)
    other = replace(problems, **change)
    fresh = Objective(
        other.source, other.loss, other.row_bound, other.intercept, other.l2, other.linear, other.largest_weight
    )
    np.testing.assert_array_equal(other.gradients(POINTS), fresh.evaluate(POINTS, order=1).gradient)


def test_a_number_that_is_none_is_never_known():
    """Weights of NaN are equal to none, so that a pass, and the certificate, sees them."""
    problems, lost = objective(), POINTS * np.nan
    problems.evaluate(lost, order=1)
    assert np.isnan(problems.gradients(lost)).all()
    assert problems.source.passes == 2


def test_an_objective_by_hand():
    """One row of 1/2 with the constant 1 at score 0: log 2, slope -1/2, curvature 1/4; a ridge of 4 and a linear term."""
    source = MemorySource(ArrayBlocks(np.array([[0.5]])), np.ones(1, np.int8), np.array([9.0]))
    own = Objective(source, LogisticLoss(), BallBound(2.0), 1.0, 4.0, np.array([[1.0, 10.0]]), 3.0)
    weights = np.array([[2.0, -1.0]])
    assert own.evaluate(weights, 0).value == pytest.approx(3.0 * np.log(2.0) + 10.0 + 2.0 - 10.0, rel=1e-14)
    for order in (1, 2):
        found = own.evaluate(weights, order)
        assert found.gradient.tolist() == own.gradients(weights).tolist() == [[-0.75 + 8.0 + 1.0, -1.5 - 4.0 + 10.0]]
    np.testing.assert_allclose(found.hessian, [[[3.0 / 16.0 + 4.0, 0.375], [0.375, 0.75 + 4.0]]], rtol=1e-14)
    assert own.evaluate(weights, 1).hessian.shape == (1, 0, 0)
    assert (own.largest_weight * own.loss.constants.lipschitz, own.ridges) == (3.0, 4.0)


def test_the_smoothness_by_hand():
    """l2 + n W c (R^2 + intercept^2), rounded upwards by 2^-40 and hardly more."""
    own = replace(objective(), intercept=2.0, l2=8.0, largest_weight=0.5)
    assert own.row_norm == pytest.approx(5.0**0.5, rel=1e-14)
    assert own.smoothness / (8.0 + 500 * 0.5 * 0.25 * 5.0) - 1.0 == pytest.approx(2.0**-40, rel=0.01, abs=0.0)


def test_what_is_lent_cannot_be_used_to_change_an_objective():
    """It has the same numbers, and linear terms of its own; restricted or replaced ones have their parts."""
    rows = np.random.default_rng(0).normal(size=(20, 2))
    own = Objective(
        MemorySource(ArrayBlocks(rows), np.ones(20, np.int8)),
        HuberHinge(0.25),
        BallBound(1.5),
        0.5,
        3.0,
        np.ones((2, 3)),
        2.0,
    )
    lent = own.lent()
    names = ("loss", "row_bound", "intercept", "l2", "largest_weight")
    assert [getattr(lent, name) for name in names] == [getattr(own, name) for name in names]
    lent.linear[...] = 7.0
    assert (own.linear == 1.0).all()
    assert own.restrict(np.array([1])).linear.shape == (1, 3)
    assert own.replaced(l2=5.0).l2 == 5.0
    assert "_sums" not in repr(own)
    assert own == replace(own)
