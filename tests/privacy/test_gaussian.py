"""The curve of the Gaussian mechanism against fixtures and high precision."""

from __future__ import annotations

import math

import mpmath
import pytest
from scipy.special import log_ndtr

from confide.privacy.budgets import ZCDP, ApproxDP
from confide.privacy.gaussian import GaussianMechanism, gaussian_delta, ideal_mu, largest_mu, mu_within


def exact_delta(epsilon, mu):
    """Balle and Wang (2018), theorem 5, in 60 digits."""
    with mpmath.workdps(60):
        epsilon, mu = mpmath.mpf(epsilon), mpmath.mpf(mu)
        return mpmath.ncdf(mu / 2 - epsilon / mu) - mpmath.e**epsilon * mpmath.ncdf(-mu / 2 - epsilon / mu)


@pytest.mark.parametrize(
    ("epsilon", "delta", "multiplier"),
    [(1.0, 1e-6, 4.224679), (1.0, 1e-5, 3.730632), (0.1, 1e-6, 36.304690), (3.0, 1e-6, 1.543861)],
)
def test_the_multiplier_is_the_published_one(epsilon, delta, multiplier):
    """Deviation over sensitivity, six decimals, and on the private side."""
    mu = largest_mu(epsilon, delta)
    assert 1.0 / mu == pytest.approx(multiplier, abs=2e-6)
    assert exact_delta(epsilon, mu) <= delta < exact_delta(epsilon, 1.00001 * mu)


@pytest.mark.parametrize("epsilon", [-2.0, -0.1, 0.0, 1e-9, 1e-3, 0.1, 1.0, 30.0])
@pytest.mark.parametrize("mu", [1e-8, 1e-3, 0.05, 0.5, 3.0, 40.0])
def test_delta_is_never_below_the_truth(epsilon, mu):
    """Within 1e-6 of it, or of 1e-12 of the first term where the difference cancels."""
    truth = exact_delta(epsilon, mu)
    found = gaussian_delta(epsilon, mu)
    assert truth <= found
    with mpmath.workdps(60):
        first = mpmath.ncdf(mpmath.mpf(mu) / 2 - mpmath.mpf(epsilon) / mu)
    assert found <= truth * (1 + 1e-6) + first * 1e-12 * (1 - mpmath.log(first)) + 1e-300


@pytest.mark.parametrize(
    ("epsilon", "mu"), [(1.2513899661236515e-10, 3.87120383326065e-12), (2.3448833755252743e-11, 1.0901102763253776e-12)]
)
def test_a_difference_that_rounding_makes_negative_counts_as_none(epsilon, mu):
    """What covers the rounding is left in full: 2^-48 times the size of the logarithm."""
    first = log_ndtr(0.5 * mu - epsilon / mu)
    assert epsilon + log_ndtr(-0.5 * mu - epsilon / mu) > first
    assert gaussian_delta(epsilon, mu) >= math.exp(first) * 2.0**-48 * (1.0 - first) * (1.0 - 1e-9)


@pytest.mark.parametrize(
    ("epsilon", "delta"), [(1e-9, 1e-6), (1e-3, 1e-12), (0.5, 1e-30), (1e3, 1e-6), (1e9, 0.1), (1.0, 0.5)]
)
def test_extreme_budgets_calibrate_on_the_private_side(epsilon, delta):
    """The root is found, its exact delta is within the budget, and 1% more would exceed it."""
    mu = largest_mu(epsilon, delta)
    assert exact_delta(epsilon, mu) <= delta
    assert exact_delta(epsilon, 1.01 * mu) > delta


def test_the_gaussian_mechanism_is_half_mu_squared_concentrated():
    """At every order."""
    assert GaussianMechanism(0.4).rho == pytest.approx(0.08, rel=1e-9)
    assert GaussianMechanism(0.4).renyi(3.0) == pytest.approx(0.24, rel=1e-9)


def test_the_mu_of_a_budget_is_the_largest_and_a_little_less():
    """mu^2 / 2 = rho; delta(epsilon; mu) = delta: in either currency, for budgets of several sizes."""
    for rho in (1e-4, 0.5, 8.0):
        assert 0.999_999 * rho < 0.5 * mu_within(ZCDP(rho)) ** 2 < rho
    for epsilon, delta in ((0.1, 1e-9), (1.0, 1e-6), (8.0, 1e-5)):
        assert 0.999_999 * delta < gaussian_delta(epsilon, mu_within(ApproxDP(epsilon, delta))) < delta


def test_what_a_curve_adds_for_its_rounding_is_that_of_the_page():
    """A part in 10^9 of the difference, and 2^-48: at a shift of 100 deviations everything leaks."""
    assert gaussian_delta(0.0, 100.0) == pytest.approx(1.0 + 1e-9 + 2.0**-48, rel=0.0, abs=3e-16)


def test_what_a_curve_adds_for_its_rounding_grows_with_the_logarithm_that_it_subtracts():
    """2^-48 (1 - log Phi) beside a part in 10^9: the logarithm is -616 here, and its rounding less than half of that."""
    epsilon, mu = 3.5, 0.1
    with mpmath.workdps(60):
        first = mpmath.log(mpmath.ncdf(mpmath.mpf(mu) / 2 - mpmath.mpf(epsilon) / mpmath.mpf(mu)))
        second = epsilon + mpmath.log(mpmath.ncdf(-mpmath.mpf(mu) / 2 - mpmath.mpf(epsilon) / mpmath.mpf(mu)))
        difference = 1 - mpmath.exp(second - first)
        added = gaussian_delta(epsilon, mu) / mpmath.exp(first) - difference * (1 + mpmath.mpf(10) ** -9)
        assert 0.5 * 2.0**-48 * (1 - first) < added < 1.5 * 2.0**-48 * (1 - first)


def test_an_allowance_is_taken_from_delta_or_from_rho():
    """Rounded down, either one costs less."""
    assert ideal_mu(ApproxDP(1.0, 1e-5), 0.5) == largest_mu(1.0, 0.5e-5)
    assert ideal_mu(ZCDP(0.1), 0.5) == math.sqrt(0.1)
