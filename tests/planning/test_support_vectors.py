"""How private a support vector machine can be: formulas against hand, simulation and the lower bounds' constructions."""

from __future__ import annotations

import math

import numpy as np
import pytest

from confide import ParameterError
from confide.planning import (
    features_for_kernel,
    laplace_scale_for_accuracy,
    optimal_privacy,
    optimal_privacy_of_kernel,
)


@pytest.mark.parametrize("n_features", [1, 10, 200])
def test_noise_of_this_scale_is_useful(n_features):
    """Over rows of entries up to 2 the largest change is 2 |noise|_1; a scale 4 times as large would not do."""
    scale = laplace_scale_for_accuracy(0.7, 0.1, n_features, largest_entry=2.0)
    sums = 2.0 * np.random.default_rng(0).laplace(scale=scale, size=(4000, n_features)).__abs__().sum(axis=1)
    assert np.mean(sums > 0.7) <= 0.1
    assert np.mean(4.0 * sums > 0.7) > 0.1


def test_the_upper_bound_is_the_epsilon_of_that_noise():
    """Sensitivity 2 L C k sqrt(F) / n in L1 over the scale, by hand; ten times the rows are ten times as private."""
    scale = 0.5 / (2.0 * 0.8 * (4 * math.log(2.0) + math.log(20.0)))
    found = optimal_privacy(1000, 4, 0.02, accuracy=0.5, failure=0.05, row_norm=1.5, largest_entry=0.8, lipschitz=2.0)
    assert found.upper == pytest.approx(2 * 2.0 * 50.0 * 1.5 * 2.0 / (1000 * scale))
    assert optimal_privacy(10_000, 4, 0.02, accuracy=0.5).upper == pytest.approx(
        optimal_privacy(1000, 4, 0.02, accuracy=0.5).upper / 10.0
    )


def test_the_lower_bounds_speak_where_their_theorems_do():
    """On either side of sqrt(C) / 2n, and of C / 4n for the kernel, with the number of databases counted by hand."""
    edge = math.sqrt(50.0) / 2000.0
    assert optimal_privacy(1000, 1, 0.02, accuracy=0.99 * edge, failure=0.05).lower == pytest.approx(math.log(19.0))
    assert optimal_privacy(1000, 1, 0.02, accuracy=1.01 * edge, failure=0.05).lower == 0.0
    kernel = {"failure": 0.05, "length_scale": 0.3}
    edge = 1.0 / 4000.0
    # floor((2 / .3) sqrt(2 / log 2)) = 11 databases.
    near = optimal_privacy_of_kernel(1000, 2, 1.0, accuracy=0.99 * edge, **kernel)
    assert near.lower == pytest.approx(math.log(0.95 * 10 / 0.05))
    assert near.lower < near.upper
    assert optimal_privacy_of_kernel(1000, 2, 1.0, accuracy=1.01 * edge, **kernel).lower == 0.0


def test_the_kernels_bound_grows_with_the_fifth_power_of_accuracy():
    """The corrected exponent: a tenth of the error costs 10^5 times the epsilon and a little more."""
    wide, narrow = (optimal_privacy_of_kernel(10**6, 2, 1.0, accuracy=accuracy).upper for accuracy in (0.1, 0.01))
    assert 1e5 < narrow / wide < 2e5


def test_the_number_of_features_is_that_of_the_theorem():
    """By hand for one case; the kernel is then as near as it says on random points."""
    theta = (0.5 / (2 * (1 + math.sqrt(6)))) ** 4
    expected = 4 * 4 / theta * math.log(2**9 * 2 / 0.25 * 9 / (0.05 * theta))
    assert features_for_kernel(2, accuracy=0.5, failure=0.05, alpha=1.0, length_scale=0.5, diameter=3.0) == math.ceil(
        expected
    )


@pytest.mark.parametrize("given", [{"accuracy": 0.0}, {"accuracy": -1.0}, {"failure": 0.0}, {"failure": 1.0}])
def test_numbers_outside_their_ranges_are_refused(given):
    """With the name of what is wrong."""
    asked = {"accuracy": 0.5, "failure": 0.05} | given
    with pytest.raises(ParameterError, match=next(iter(given))):
        optimal_privacy(100, 2, 0.1, **asked)
    with pytest.raises(ParameterError, match=next(iter(given))):
        optimal_privacy_of_kernel(100, 2, 0.1, **asked)


@pytest.mark.parametrize("value", ["100", None, 1.5, True, 0])
def test_counts_that_are_no_whole_numbers_are_refused(value):
    """Rows and columns alike, as by plans."""
    for ask in (optimal_privacy, optimal_privacy_of_kernel):
        with pytest.raises(ParameterError, match="n_rows must be a whole number"):
            ask(value, 2, 0.1, accuracy=0.5)
        with pytest.raises(ParameterError, match="must be a whole number"):
            ask(100, value, 0.1, accuracy=0.5)
