"""Random features in place of a kernel: near its functions with short weights, and bounds on the loss of fits to them."""

from __future__ import annotations

import math

import numpy as np
import pytest
from benchmarks import excess_risk as benchmark

from confide import LogisticRegression, ParameterError
from confide.planning.bounds import excess_risk_bound, feature_approximation, kernel_excess_risk_bound


def test_the_constants_are_those_of_the_inequalities():
    """By hand for one case: the cut, Pinelis' and Bernstein's inequality."""
    found = feature_approximation(100, 2.0, 0.1, cut=3.0)
    near, short = math.log(40.0) / 100.0, math.log(20.0) / 100.0
    assert found.distance == pytest.approx(2.0 / 12.0 + math.sqrt(8.0 * near) + 2.0 * 4.0 * near / 3.0)
    assert found.norm**2 == pytest.approx(4.0 * (1.0 + 3.0 * math.sqrt(2.0 * short) + 9.0 * short / 3.0))


@pytest.mark.parametrize("failure", [0.3, 0.02])
def test_coefficients_that_are_far_apart_are_near_in_the_mean(failure):
    """Functions a(w) . (cos, sin) with |a| of two values, mostly 0: 2,000 maps of 60 pairs.

    The distance exceeds half its bound.
    """
    rng, n_pairs, size = np.random.default_rng(0), 60, 2.0
    share = 1.0 / size**2
    taken = rng.random((2000, n_pairs)) < share
    # At one x of phase 0 the function is the mean of a; elsewhere phases are independent of a, so this x is the worst one.
    norms = np.sqrt((size**2 * taken).mean(axis=1))
    error = np.abs((size * taken).mean(axis=1) - size * share)
    found = feature_approximation(n_pairs, 1.0, failure, cut=size)
    assert np.mean((error > found.distance) | (norms > found.norm)) <= failure
    assert np.mean((error > found.distance / 8.0) | (norms > found.norm / 1.3)) > failure


def test_fits_to_features_are_within_their_bound_of_functions_of_the_kernel():
    """Each fit with a map of its own; the bound is useful."""
    bound, found = benchmark.kernel_cell(2000, 50, 1.0, 0.05, 3, norm=0.5)
    assert found.max() <= bound.excess_risk
    assert bound.reference_norm == 0.5
    assert bound.excess_risk > bound.without_noise


def test_the_bound_is_that_of_short_weights_and_what_features_lose():
    """The least over some cuts of both parts, each with half of the failure; the loss of a score of slope up to 1."""
    plan = LogisticRegression(1.0, alpha=0.02, mechanism="objective", centre=False, fit_intercept=False).plan(10**5, 2000)
    found = kernel_excess_risk_bound(plan, 1000, kernel_norm=2.0, failure=0.1).excess_risk
    sums = []
    for cut in np.geomspace(0.5, 64.0, 15):
        near = feature_approximation(1000, 2.0, 0.05, float(cut))
        sums.append(excess_risk_bound(plan, reference_norm=near.norm, failure=0.05).excess_risk + near.distance)
    assert found == pytest.approx(min(sums), rel=1e-9)


def test_more_features_come_nearer():
    """With the number of rows and features the bound falls to that of weights of the same norm."""

    def at(n_pairs):
        model = LogisticRegression(1.0, alpha=0.01, mechanism="objective", centre=False, fit_intercept=False)
        return model.plan(10**6, 2 * n_pairs)

    few, many = (kernel_excess_risk_bound(at(n), n).excess_risk for n in (100, 10_000))
    assert many < few
    assert many > excess_risk_bound(at(10_000)).excess_risk


def test_plans_for_other_rows_are_refused():
    """The number of features is twice that of pairs, and numbers are in their ranges."""
    plan = LogisticRegression(1.0, alpha=0.01, mechanism="objective", centre=False).plan(1000, 10)
    with pytest.raises(ParameterError, match="2 n_pairs"):
        kernel_excess_risk_bound(plan, 10)
    with pytest.raises(ParameterError):
        kernel_excess_risk_bound(plan, 5, kernel_norm=-1.0)
    with pytest.raises(ParameterError):
        feature_approximation(0, 1.0, 0.1, 1.0)
