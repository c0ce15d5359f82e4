"""Sums that are remembered: those of the last passes, as they were, whatever a caller does to what it gave and got."""

from __future__ import annotations

import numpy as np
import pytest

from confide.data.arrays import ArrayBlocks, MemorySource
from confide.erm.losses import LogisticLoss
from confide.erm.objective import memoised_sums
from confide.erm.row_bounds import BallBound
from confide.erm.row_sums import RowSum

RNG = np.random.default_rng(0)
ROW_SUM = RowSum(LogisticLoss(), BallBound(1.0), 0.0, 2)
POINTS = RNG.normal(size=(2, 3))


class Counting:
    """Counts the passes over some rows, and their orders."""

    def __init__(self):
        self.rows = MemorySource(ArrayBlocks(RNG.normal(size=(50, 3))), RNG.choice([-1, 1], 50).astype(np.int8))
        self.orders = []

    def sum_over_rows(self, row_sum, weights):
        self.orders.append(row_sum.order)
        return self.rows.sum_over_rows(row_sum, weights)


def test_a_pass_gives_the_sums_of_the_source():
    """At the order that was asked for, whatever the order of the sum is."""
    source = Counting()
    found = memoised_sums(source, ROW_SUM, 3)(POINTS, 1)
    expected = source.rows.sum_over_rows(ROW_SUM, POINTS)
    np.testing.assert_array_equal(found.value, expected.value)
    np.testing.assert_array_equal(found.gradient, expected.gradient)
    assert source.orders == [1]


def test_looking_back_makes_no_pass_and_gives_gradients_alone():
    """For any of the weights of a past pass, in any order. Values were not kept, and are not numbers."""
    source = Counting()
    sums = memoised_sums(source, ROW_SUM, 3)
    expected = sums(POINTS, 2).gradient
    found = sums(POINTS[::-1], 1, look_back=True)
    np.testing.assert_array_equal(found.gradient, expected[::-1])
    assert np.isnan(found.value).all()
    assert source.orders == [2]


def test_without_looking_back_every_call_is_a_pass():
    """Also at the same weights."""
    source = Counting()
    sums = memoised_sums(source, ROW_SUM, 3)
    for _ in range(2):
        sums(POINTS, 1)
    assert source.orders == [1, 1]


def test_a_pass_for_values_alone_is_not_remembered():
    """It has no gradients."""
    source = Counting()
    sums = memoised_sums(source, ROW_SUM, 3)
    sums(POINTS, 0)
    sums(POINTS, 1, look_back=True)
    assert source.orders == [0, 1]


def test_four_passes_are_remembered():
    """The fifth pushes out the first; half-known weights cost a pass too."""
    source = Counting()
    sums = memoised_sums(source, ROW_SUM, 3)
    for shift in range(5):
        sums(POINTS + shift, 1)
    sums(POINTS + 1, 1, look_back=True)
    assert len(source.orders) == 5
    sums(np.vstack([POINTS[:1], POINTS[:1] + 4]), 1, look_back=True)
    assert len(source.orders) == 6


def test_what_is_remembered_is_nobodys_to_change():
    """Weights are copied when they come, and gradients when they leave, at every look."""
    sums, weights = memoised_sums(Counting(), ROW_SUM, 3), POINTS.copy()
    first = sums(weights, 1).gradient
    expected = first.copy()
    weights[...], first[...] = 7.0, 0.0
    for _ in range(2):
        looked = sums(POINTS, 1, look_back=True).gradient
        np.testing.assert_array_equal(looked, expected)
        looked[...] = 0.0


class Faithless:
    """Numbers that are others each time they are read."""

    def __init__(self):
        self.readings = 0

    def __len__(self):
        return 2

    def __array__(self, dtype=None, copy=None):
        self.readings += 1
        return POINTS * self.readings


def test_weights_are_read_once():
    """Sums and memory are of the same numbers, even where an object would give others at a second reading."""
    source, given = Counting(), Faithless()
    sums = memoised_sums(source, ROW_SUM, 3)
    found = sums(given, 1).gradient
    assert given.readings == 1
    np.testing.assert_array_equal(found, source.rows.sum_over_rows(ROW_SUM, POINTS).gradient)
    np.testing.assert_array_equal(sums(POINTS, 1, look_back=True).gradient, found)


@pytest.mark.parametrize("weights", [np.zeros((2, 4)), np.zeros((1, 2))], ids=["too wide", "too narrow"])
def test_weights_of_another_width_are_refused(weights):
    """No pass is made of them."""
    source = Counting()
    with pytest.raises(ValueError, match="broadcast"):
        memoised_sums(source, ROW_SUM, 3)(weights, 1)
    assert source.orders == []
