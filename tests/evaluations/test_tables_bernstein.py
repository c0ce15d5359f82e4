"""Shares of numbers: they add up to 1, and their sums give powers exactly."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binom

from confide.evaluations.tables import products_of, shares_of, weights_of_polynomial, weights_of_power

VALUES = np.linspace(0.0, 1.0, 21)


@pytest.mark.parametrize("degree", [1, 2, 4])
def test_shares_are_those_of_the_binomial_law(degree):
    """Not negative, with sum 1; what lies outside of [0, 1] is clipped, and a missing number counts as 0."""
    shares = shares_of(VALUES, degree)
    np.testing.assert_allclose(shares, [binom.pmf(range(degree + 1), degree, x) for x in VALUES], atol=1e-15)
    edges = shares_of(np.array([-3.0, 7.0, np.nan, np.inf, -np.inf]), degree)
    np.testing.assert_array_equal(edges, shares_of(np.array([0.0, 1.0, 0.0, 1.0, 0.0]), degree))


def test_weighted_shares_are_powers_and_polynomials():
    for power in range(5):
        np.testing.assert_allclose(shares_of(VALUES, 4) @ weights_of_power(power, 4), VALUES**power, atol=1e-15)
    polynomial = weights_of_polynomial((1.0, -2.0, 3.0), 4)
    np.testing.assert_allclose(shares_of(VALUES, 4) @ polynomial, 1.0 - 2.0 * VALUES + 3.0 * VALUES**2, atol=1e-14)


def test_products_of_shares_give_mixed_moments():
    others = VALUES[::-1] ** 2
    pairs = products_of(shares_of(VALUES, 2), shares_of(others, 1)).reshape(-1, 3, 2)
    found = np.einsum("nij,i,j->n", pairs, weights_of_power(2, 2), weights_of_power(1, 1))
    np.testing.assert_allclose(found, VALUES**2 * others, atol=1e-15)


def test_a_number_has_the_same_shares_whatever_stands_beside_it():
    """To the bit: neighbours differ in no other row."""
    values = np.random.default_rng(0).uniform(size=1001)
    whole = shares_of(values, 4)
    for place in (0, 500, 1000):
        np.testing.assert_array_equal(shares_of(values[place : place + 1], 4)[0], whole[place])
