"""The public numbers among which bounds are chosen."""

from __future__ import annotations

import numpy as np
import pytest

from confide.features.columns import MOST_STEPS, NumberColumn, candidates_of, weights_of


@pytest.mark.parametrize(
    ("low", "high", "step", "number"),
    [(0, 150, 0.02, 7501), (17, 90, 0.01, 7301), (0, 1e7, 1e3, 10001), (-3, 4, 0.001, 7001)],
)
def test_on_the_linear_scale_they_are_round(low, high, step, number):
    """Multiples of a round step, as the nearest doubles, with both ends."""
    found = candidates_of(NumberColumn("a", low, high))
    assert len(found) == number
    assert (found[0], found[-1]) == (low, high)
    assert np.array(found[1:-1]) / step == pytest.approx(np.round(np.array(found[1:-1]) / step), rel=1e-12)
    assert all(len(repr(each)) <= 10 for each in found)


def test_ends_that_are_not_round_are_candidates_too():
    found = candidates_of(NumberColumn("a", 0.123, 9.87))
    assert (found[0], found[-1]) == (0.123, 9.87)
    assert found[1:3] == (0.124, 0.125)


def test_on_the_log_scale_their_ratio_is_nearly_the_same():
    """1.6% for seven powers of ten in a thousand steps, to three digits."""
    found = np.array(candidates_of(NumberColumn("gain", 0, 1e7, scale="log"), 1000))
    assert 990 < found.size <= 1001
    high = found[found > 100]
    assert (np.diff(high) / high[:-1]).max() < 0.025
    assert all(float(f"{each:.2e}") == each for each in found)


def test_on_the_log10_scale_they_are_even_in_the_logarithm():
    found = np.array(candidates_of(NumberColumn("pay", 2000, 5e6, scale="log10"), 1000))
    assert 600 < found.size <= 1001
    assert (np.diff(found) / found[:-1]).max() < 0.02
    assert (found[0], found[-1]) == (2000, 5e6)


@pytest.mark.parametrize("scale", ["linear", "log"])
@pytest.mark.parametrize(("low", "high"), [(0.0, 1e-290), (-1e300, 1e300), (1e15, 1e15 + 1), (1.0, 1.0 + 2**-52), (-7.5, 0)])
def test_there_are_always_two_and_never_too_many(low, high, scale):
    """Rising, from low to high, for all sizes of bounds."""
    found = candidates_of(NumberColumn("a", low, high, scale=scale))
    assert (found[0], found[-1]) == (low, high)
    assert 2 <= len(found) <= MOST_STEPS + 3
    assert (np.diff(found) > 0).all()


@pytest.mark.parametrize(
    ("low", "high", "scale"), [(0, 150, "linear"), (0, 1e7, "log"), (17, 1e6, "log10"), (-7.3, 0, "linear")]
)
def test_three_grids_weigh_about_the_same(low, high, scale):
    """Coarser grids are parts of finer ones; the ends are on each. Half or twice a grid's weight would be noticed."""
    column = NumberColumn("a", low, high, scale=scale)
    found, weights = candidates_of(column), weights_of(column)
    assert len(weights) == len(found)
    assert set(weights) == {1, 10, 100}
    assert weights[0] == weights[-1] == 100
    for times in (10, 100):
        rounder = set(candidates_of(column, MOST_STEPS // times))
        assert rounder <= set(found)
        assert {w >= times for c, w in zip(found, weights, strict=True) if c in rounder} == {True}
    sums = [sum(w for w in weights if w == size) for size in (10, 100)]
    assert 0.6 < sums[0] / sums[1] < 1.4
