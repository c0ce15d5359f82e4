"""Deviations of rows: the bound holds, is exact without rows, and is missed by half of it where deviations are normal."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from confide.planning.bounds import RowDeviations, complexity_of

MONOTONE, BOTH_SIGNS, THREE = (complexity_of(1, is_monotone=True), complexity_of(1, is_monotone=False),
                               complexity_of(3, is_monotone=True))  # fmt: skip


def test_constants_of_the_mean_deviation():
    """By hand: 1/2 + 1, 2, and 2 sqrt(2 o)."""
    assert MONOTONE == (0.5, 1.0)
    assert BOTH_SIGNS == (0.0, 2.0)
    assert THREE[1] == pytest.approx(2.0 * math.sqrt(6.0))
    assert RowDeviations(400, 3.0, *BOTH_SIGNS).slope(math.exp(-2.0)) == pytest.approx(3.0 / 20.0 * 4.0)


@pytest.mark.parametrize("pull", [0.3, 5.0])
def test_without_deviations_the_excess_is_that_of_ridge_and_noise(pull):
    """p^2 / (4 alpha), which weights with the slope alpha w0 / 2 reach (section 2 of the proofs)."""
    found = RowDeviations(10**14, 1.0, *MONOTONE).excess(0.2, pull, 0.05)
    assert found == pytest.approx(pull**2 / 0.8, rel=1e-3)
    assert found >= pull**2 / 0.8


def exact_chance(n_rows, excess, alpha, pull):
    """P that linear losses -y x . w, rows at +-1 and fair labels, deviate by more.

    (|xi| + p)^2 / (4 alpha) > T, by the binomial law.
    """
    least = 2.0 * math.sqrt(alpha * excess) - pull
    count = math.ceil(0.5 * n_rows * (1.0 + least) - 1e-9)
    return 2.0 * float(stats.binom.sf(count - 1, n_rows, 0.5))


@pytest.mark.parametrize("complexity", [MONOTONE, BOTH_SIGNS])
def test_the_chance_is_never_below_the_exact_one_of_a_linear_loss(complexity):
    """Over the tail; with deviations of half the size it would be, far in the tail."""
    n_rows, alpha, pull = 2000, 0.1, 0.1
    deviations, halved = RowDeviations(n_rows, 1.0, *complexity), RowDeviations(n_rows, 0.5, *complexity)
    below = 0
    for failure in (0.3, 0.05, 1e-3, 1e-5, 1e-8):
        excess = deviations.excess(alpha, pull, failure)
        assert exact_chance(n_rows, excess, alpha, pull) <= deviations.chance(alpha, pull, excess) <= failure
        too_low = halved.excess(alpha, pull, failure)
        below += exact_chance(n_rows, too_low, alpha, pull) > failure
    assert below >= 2


def test_half_the_weight_of_the_tail_is_refuted_by_the_exact_law():
    """The exponent alone: the mean at its bound.

    At 1e-12 a tail of exp(-beyond^2) in place of its half is below the binomial one.
    """
    n_rows, alpha, pull, failure = 4000, 0.1, 0.1, 1e-12
    deviations = RowDeviations(n_rows, 1.0, 0.0, 0.7979)
    assert exact_chance(n_rows, deviations.excess(alpha, pull, failure), alpha, pull) <= failure
    assert exact_chance(n_rows, deviations.excess(alpha, pull, math.sqrt(failure)), alpha, pull) > failure


def test_hinges_in_twenty_dimensions_deviate_less():
    """The largest D(v) + p |v| - alpha |v|^2 by gradients from many starts.

    On 40 samples of a population with exact loss.
    """
    rng = np.random.default_rng(3)
    atoms, labels = rng.normal(size=(400, 20)), rng.choice([-1.0, 1.0], size=400)
    atoms /= np.linalg.norm(atoms, axis=1, keepdims=True)
    signed = atoms * labels[:, None]
    alpha, pull, n_rows = 0.2, 0.1, 200
    bound = RowDeviations(n_rows, 1.0, *MONOTONE).excess(alpha, pull, 0.05)
    found = []
    for _ in range(40):
        share = np.bincount(rng.integers(400, size=n_rows), minlength=400) / n_rows - 1.0 / 400.0
        best = 0.0
        for v in rng.normal(size=(3, 20)):
            for _ in range(60):
                inside = 1.0 - signed @ v > 0.0
                length = np.linalg.norm(v)
                v = (share @ (inside[:, None] * signed) + pull * v / length) / (2.0 * alpha)
            value = -share @ (np.maximum(0.0, 1.0 - signed @ v) - 1.0) + pull * np.linalg.norm(v) - alpha * v @ v
            best = max(best, value)
        found.append(best)
    assert max(found) <= bound
    assert np.quantile(found, 0.95) > bound / 6.0


def test_more_rows_fewer_failures_and_a_steeper_ridge_need_less():
    """The bound moves as it should."""

    def at(n=1000, alpha=0.1, pull=0.1, failure=0.05):
        return RowDeviations(n, 1.0, *MONOTONE).excess(alpha, pull, failure)

    assert at(n=4000) < at() < at(n=250)
    assert at(failure=0.3) < at() < at(failure=1e-6)
    assert at(pull=0.2) > at()


@pytest.mark.parametrize("complexity", [MONOTONE, BOTH_SIGNS])
def test_the_chance_is_the_sum_over_shells_of_the_theorem(complexity):
    """Theorem 2, written out shell by shell."""
    n_rows, steepness, alpha, pull, excess, ratio = 5000, 2.0, 0.1, 0.15, 0.24, 1.1
    unit, total, outer = steepness / math.sqrt(n_rows), 0.0, (pull + 2.0 * steepness) / alpha
    k1, k2 = complexity
    while outer > excess / (pull + 2.0 * steepness):
        radii = np.linspace(outer / ratio, outer, 2001)
        if outer / ratio >= k2 * unit / (2.0 * alpha):
            mean = k1 * unit * outer + ((k2 * unit + pull) * radii - alpha * radii**2).max()
        else:
            mean = (k1 + k2) * unit * outer + (pull * radii - alpha * radii**2).max()
        total += math.exp(-(max(0.0, excess - mean) ** 2) / (2.0 * unit**2 * outer**2))
        outer /= ratio
    found = RowDeviations(n_rows, steepness, *complexity).chance(alpha, pull, excess)
    assert 1e-6 < found < 1.0
    assert found == pytest.approx(total, rel=1e-3)
