"""Quotients of noisy sums: the intervals of Wilson and of Fieller, and how often they hold the truth."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import binomtest

from confide.inference.rates import UNKNOWN, NoisyTable, Rate, combined, difference_of, mean_of
from tests.evaluations.examples import table

ONE, BOTH = np.array([1.0, 0.0]), np.ones(2)


@pytest.mark.parametrize("right", [0, 3, 50, 100])
def test_without_noise_the_interval_of_a_share_is_wilsons(right):
    found = table([right, 100 - right]).share(ONE, BOTH)
    expected = binomtest(right, 100).proportion_ci(0.95, "wilson")
    assert found.value == right / 100
    assert (found.low, found.high) == pytest.approx((expected.low, expected.high), abs=1e-9)


def test_without_sampling_the_interval_is_fiellers():
    """Two sums with noise alone: |A - q B| is at most z deviations."""
    noisy = table([30.0, 70.0], deviation=3.0, total_is_public=False, level=0.9)
    found = noisy.quotient(ONE, np.array([0.0, 1.0]), (np.zeros(2), np.zeros(2), np.zeros(2)))
    for end in (found.low, found.high):
        assert abs(30.0 - end * 70.0) == pytest.approx(1.6448536 * 3.0 * math.sqrt(1.0 + end**2), rel=1e-6)


def test_the_noise_in_a_public_total_is_taken_out():
    """Of all cells the sum has no noise, and that of half of them has half the variance."""
    public = NoisyTable.of(np.array([40.0, 61.0, 3.0, 0.0]), (2, 2), 5.0, 100, 0.95, 0.0)
    assert public.counts.sum() == pytest.approx(100.0)
    assert public.product_of_noise(np.ones((2, 2)), np.ones((2, 2))) == 0.0
    half = np.array([[1.0, 1.0], [0.0, 0.0]])
    assert public.product_of_noise(half, half) == pytest.approx(25.0)
    private = NoisyTable.of(np.array([40.0, 61.0, 3.0, 0.0]), (2, 2), 5.0, None, 0.95, 0.0)
    assert private.product_of_noise(half, half) == pytest.approx(50.0)
    assert private.counts.sum() == 104.0


def test_a_share_of_few_rows_is_hidden_by_four_deviations_of_noise():
    for factor, is_known in ((3.9, False), (4.1, True)):
        found = table([factor * math.sqrt(2.0), 0.0], deviation=1.0).share(ONE, BOTH)
        assert (found.value is not None) == is_known


def _coverage(told):
    """How often a share of 0.9 of some 60 rows is held, if the interval knows the noise times this factor."""
    rng, held = np.random.default_rng(0), 0
    for _ in range(1500):
        exact = rng.multinomial(400, [0.135, 0.015, 0.85])
        noisy = exact + rng.normal(scale=4.0, size=3)
        found = NoisyTable(noisy, 4.0 * told, False, 0.95).share(np.array([1.0, 0.0, 0.0]), np.array([1.0, 1.0, 0.0]))
        held += found.value is not None and found.low <= 0.9 <= found.high
    return held / 1500


def test_intervals_hold_the_truth_as_often_as_they_claim():
    """A share near 1 of few rows, where intervals of the delta method fail. With other noise they would, too."""
    assert 0.93 < _coverage(1.0) < 0.98
    assert _coverage(0.6) < 0.90
    assert _coverage(1.6) > 0.985


def test_independent_rates_are_combined_by_their_distances():
    first, second = Rate(0.5, 0.4, 0.7), Rate(0.2, 0.1, 0.25)
    found = difference_of(first, second)
    assert found.value == pytest.approx(0.3)
    assert (found.low, found.high) == pytest.approx((0.3 - math.hypot(0.1, 0.05), 0.3 + math.hypot(0.2, 0.1)))
    assert mean_of([first, first]).low == pytest.approx(0.5 - 0.1 / math.sqrt(2.0))
    assert combined([first, UNKNOWN], [1.0, 1.0]) == UNKNOWN
    assert first.scaled(-2.0, 1.0) == Rate(0.0, pytest.approx(-0.4), pytest.approx(0.2))
