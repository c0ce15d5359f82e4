"""Bounds by Clopper and Pearson, and what an event shows in each currency."""

from __future__ import annotations

import math

import pytest
from scipy import stats

from confide.audit.attacks import Separation, amount_shown, currency, lower_bound, upper_bound
from confide.privacy.budgets import ZCDP, ApproxDP, PureDP
from tests.privacy.densities import gaussian_profile


def test_confidence_bounds_are_those_of_clopper_and_pearson():
    """The published interval for 4 of 10 at 95% is (0.1216, 0.7376), and ends are certain."""
    assert lower_bound(4, 10, 0.95) == pytest.approx(0.1216, abs=5e-5)
    assert upper_bound(4, 10, 0.95) == pytest.approx(0.7376, abs=5e-5)
    assert lower_bound(0, 10, 0.95) == 0.0
    assert upper_bound(10, 10, 0.95) == 1.0
    # 0.05% of samples have no hit although the probability is the upper bound.
    assert (1.0 - upper_bound(0, 1000, 0.999)) ** 1000 == pytest.approx(0.0005, rel=1e-6)


def test_bounds_of_many_counts_are_those_of_each():
    """Arrays of counts give arrays of bounds, those of the beta law."""
    assert lower_bound([0, 3, 7], 7, 0.9).tolist() == pytest.approx(
        [0.0, stats.beta.ppf(0.05, 3, 5), stats.beta.ppf(0.05, 7, 1)]
    )


def test_an_event_shows_the_larger_of_its_two_ratios():
    """The event itself, or what lies outside of it."""
    assert Separation(0.5, 0.1).epsilon() == pytest.approx(math.log(5.0))
    assert Separation(0.95, 0.5).epsilon() == pytest.approx(math.log(0.5 / 0.05))
    assert Separation(0.5, 0.1).epsilon(0.2) == pytest.approx(math.log(3.0))
    assert Separation(0.1, 0.5).epsilon() == Separation(0.1, 0.5).rho == Separation(0.1, 0.5).mu == 0.0


def test_randomised_response_is_shown_exactly():
    """Its one event has the whole privacy loss, and the delta at every smaller epsilon."""
    p = math.e / (1.0 + math.e)
    event = Separation(p, 1.0 - p)
    assert event.epsilon() == pytest.approx(1.0)
    assert event.delta(1.0) == pytest.approx(0.0, abs=1e-12)
    assert event.delta(0.5) == pytest.approx(p - math.exp(0.5) * (1.0 - p))


def test_a_threshold_between_two_normal_laws_shows_their_distance():
    """mu is recovered, and neither rho nor delta exceeds that of the Gaussian mechanism."""
    mu = 0.8
    event = Separation(stats.norm.cdf(mu - 0.3), stats.norm.cdf(-0.3))
    assert event.mu == pytest.approx(mu)
    assert 0.5 * mu**2 / 2.0 < event.rho < mu**2 / 2.0
    assert 0.0 < event.delta(0.3) < gaussian_profile(0.3, mu)


def test_each_currency_names_itself():
    """And what is measured against its amount."""
    assert currency(ApproxDP(1.0, 1e-6)) == "epsilon at delta 1e-06"
    assert (currency(PureDP(2.0)), currency(ZCDP(0.5))) == ("epsilon", "rho")
    assert amount_shown(Separation(0.5, 0.1), ZCDP(0.5)) == Separation(0.5, 0.1).rho
