"""Noise on a grid: the exact laws from both sources, OpenDP's own account, the continuous Gaussian behind the discrete."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from confide.errors import NotCertified, ParameterError
from confide.privacy.lattice import (
    LatticeGaussian,
    LatticeLaplace,
    lattice_exponent,
)
from confide.privacy.noise import Entropy

# 10,000 draws in about 20 cells: a scale 30% off is rejected with p below 1e-30, and by this much:
ACCEPT, REJECT, DRAWS = 1e-3, 1e-12, 10_000
ENTROPIES = {"seeded": lambda: Entropy.seeded(8), "fresh": Entropy.fresh}


def laplace_mass(x, scale):
    return np.exp(-np.abs(x) / scale)


def gaussian_mass(x, scale):
    return np.exp(-(x**2) / (2 * scale**2))


def p_value(integers, mass, scale):
    """Chi-square against the exact law, in cells of a quarter of the scale, the tails beyond 2.5 scales in one each."""
    support = np.arange(-math.ceil(40 * scale), math.ceil(40 * scale) + 1)
    law = mass(support, scale)
    edges = np.unique(np.round(np.arange(-2.5, 2.6, max(0.25, 1.0 / scale)) * scale)) + 0.5
    expected = np.bincount(np.searchsorted(edges, support), law / law.sum(), minlength=len(edges) + 1)
    observed = np.bincount(np.searchsorted(edges, integers), minlength=len(edges) + 1)
    return stats.chisquare(observed, expected * len(integers)).pvalue


@pytest.mark.parametrize("source", ENTROPIES)
@pytest.mark.parametrize("law", ["laplace", "gaussian"])
def test_released_noise_has_the_exact_law_from_both_sources(source, law):
    """Zeros plus noise, in grid steps, by chi-square; scales 30% off are rejected. 2 rows of 5,000 weights."""
    if law == "laplace":
        noise = LatticeLaplace(5000, -7, 1.0, 500.0)
        scale, mass = noise.scale / noise.step, laplace_mass
    else:
        noise = LatticeGaussian(5000, -7, 1.0, 50.0 / 128)
        scale, mass = 50.0, gaussian_mass
    integers = noise.release(np.zeros((2, 5000)), ENTROPIES[source]()).ravel() / noise.step
    assert np.array_equal(integers, np.round(integers))
    assert p_value(integers, mass, scale) > (ACCEPT if source == "seeded" else 1e-9)
    for wrong in (0.7, 1.3):
        assert p_value(integers, mass, scale * wrong) < REJECT
    np.testing.assert_allclose(np.sqrt((integers**2).sum() / 2) * noise.step, noise.norm, rtol=0.06)
    assert stats.spearmanr(integers[:-1], integers[1:]).pvalue > 1e-9


@pytest.mark.parametrize("source", ENTROPIES)
def test_all_that_leaves_lies_on_the_grid(source):
    """Whatever was put in: odd fractions, halves, numbers far beyond 2^53 steps; and the rounding is to the nearest."""
    weights = np.array([[0.1, -1 / 3, 2.0**-9, 1e9 / 7, -1e25 / 3, 1e-300, 0.0]])
    for noise in (LatticeLaplace(7, -8, 1e-4, 30.0), LatticeGaussian(7, -8, 1e-4, 0.2)):
        released = noise.release(weights, ENTROPIES[source]())
        assert released.shape == weights.shape
        assert all(Fraction(x) * 2**8 % 1 == 0 for x in released.ravel().tolist())
        np.testing.assert_allclose(released, weights, atol=50 * noise.norm, rtol=1e-15)
    quiet = LatticeLaplace(7, -8, 1e-4, 1e4)  # noise of zero steps, nearly always
    released = quiet.release(weights, ENTROPIES[source]())
    assert (np.abs(released - weights)[0, [0, 1, 3]] <= 0.5 * quiet.step).all()


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("source", ENTROPIES)
def test_what_is_not_finite_is_refused_without_a_word_about_data(value, source):
    """NotCertified before any noise, and the message holds no number."""
    for noise in (LatticeLaplace(2, -8, 0.1, 1.0), LatticeGaussian(2, -8, 0.1, 0.5)):
        with pytest.raises(NotCertified) as failure:
            noise.release(np.array([[1234.5, value]]), ENTROPIES[source]())
        assert not any(character.isdigit() for character in str(failure.value))


def test_fresh_noise_never_repeats_and_a_seed_always_does():
    """Rows and releases have noise of their own."""
    noise = LatticeGaussian(3, -20, 1.0, 2.0)
    fresh = [noise.release(np.zeros((2, 3)), Entropy.fresh()) for _ in range(10)]
    assert len({row.tobytes() for rows in fresh for row in rows}) == 20
    seeded = [noise.release(np.zeros((2, 3)), Entropy.seeded(4)) for _ in range(2)]
    assert np.array_equal(*seeded)
    assert not np.array_equal(*seeded[0])


@pytest.mark.parametrize("dimension", [1, 7, 400])
def test_opendp_confirms_the_privacy_claimed(dimension):
    """Its map at the real sensitivity is at most our figure, and within 1e-6 of it; for two grids and three budgets."""
    from opendp import domains, measurements, metrics, mod

    mod.enable_features("contrib")
    space = domains.vector_domain(domains.atom_domain(T=float, nan=False), size=dimension)
    for exponent in (lattice_exponent(0.3, dimension), -4):
        for budget in (0.01, 1.0, 30.0):
            laplace = LatticeLaplace(dimension, exponent, 0.3, budget)
            theirs = measurements.make_laplace(space, metrics.l1_distance(T=float), laplace.scale, laplace.exponent)
            assert budget * (1 - 1e-6) <= theirs.map(math.sqrt(dimension) * 0.3) <= budget
            gaussian = LatticeGaussian.of_multiplier(dimension, exponent, 0.3, 1.0 / math.sqrt(2.0 * budget))
            theirs = measurements.make_gaussian(space, metrics.l2_distance(T=float), gaussian.deviation, gaussian.exponent)
            assert gaussian.rho * (1 - 1e-6) <= theirs.map(0.3) <= gaussian.rho <= budget
            gaussian.release(np.zeros((1, dimension)), Entropy.fresh())
            laplace.release(np.zeros((1, dimension)), Entropy.fresh())


def test_rounded_weights_are_within_the_rounded_sensitivity():
    """20,000 pairs at the L2 sensitivity, rounded: the bound holds, and is reached to a tenth when the grid is coarse."""
    source, noise = np.random.default_rng(2), LatticeLaplace(3, 0, 1.0, 1.0)
    first, shift = source.uniform(-5, 5, (20_000, 3)), source.normal(size=(20_000, 3))
    second = first + shift / np.linalg.norm(shift, axis=1)[:, None]
    distances = np.linalg.norm(np.round(first) - np.round(second), axis=1)
    assert 0.6 * noise.rounded_sensitivity < distances.max() <= noise.rounded_sensitivity
    assert noise.rounded_sensitivity == pytest.approx(1.0 + math.sqrt(3.0))


def test_the_grid_step_costs_a_thousandth():
    """2^k <= size / (1000 sqrt(d)) < 2^(k + 1), at powers of two as well."""
    for size in (1e-9, 0.3, 1000.0, 1024000.0):
        for dimension in (1, 4, 100):
            quotient = size / (1000.0 * math.sqrt(dimension))
            assert 2.0 ** lattice_exponent(size, dimension) <= quotient < 2.0 ** (lattice_exponent(size, dimension) + 1)


def test_least_noise_of_a_multiplier_is_enough_and_not_more():
    """The multiplier asked for, up to 1e-12; deviations below 40 steps are refused, and raised where they are derived."""
    for multiplier in (0.3, 1.0, 25.0):
        noise = LatticeGaussian.of_multiplier(9, lattice_exponent(0.2, 9), 0.2, multiplier)
        assert multiplier <= noise.multiplier <= multiplier * (1.0 + 1e-12)
        assert noise.rho <= 0.5 / multiplier**2 <= noise.rho * (1.0 + 1e-3)
    coarse = LatticeGaussian.of_multiplier(9, 0, 0.2, 1.0)
    assert coarse.deviation == 40.0
    assert coarse.multiplier > 1.0
    with pytest.raises(ParameterError, match="40"):
        LatticeGaussian(9, 0, 0.2, 39.0)


def test_the_discrete_gaussian_is_no_less_private_than_the_continuous_one_of_its_multiplier():
    """Exact hockey-stick divergences in one dimension, nine shifts and budgets; a multiplier 20% larger would fail."""
    mpmath = pytest.importorskip("mpmath")
    mp = mpmath.mp
    with mp.workdps(40):

        def continuous(epsilon, mu):
            return mp.ncdf(mu / 2 - epsilon / mu) - mp.exp(epsilon) * mp.ncdf(-mu / 2 - epsilon / mu)

        for shift in (7, 40, 130):
            noise = LatticeGaussian(1, 0, float(shift - 1), 40.0)
            assert noise.rounded_sensitivity == pytest.approx(shift)
            mass = [mp.exp(-(mp.mpf(z) ** 2) / 3200) for z in range(-1600, 1601)]
            total = mp.fsum(mass)
            for epsilon in (0.1, 1, 4):
                worse = [mass[z] - mp.exp(epsilon) * (mass[z - shift] if z >= shift else 0) for z in range(len(mass))]
                exact = mp.fsum(excess for excess in worse if excess > 0) / total
                assert exact <= continuous(mp.mpf(epsilon), 1 / mp.mpf(noise.multiplier))
                assert exact > continuous(mp.mpf(epsilon), 1 / mp.mpf(1.2 * noise.multiplier))


def test_the_normaliser_of_the_lemma_is_constant_to_three_hundred_digits():
    """The sum of exp(-(z - y)^2 / 72) is sqrt(72 pi) up to 2.1 exp(-72 pi^2); a narrower one fails that."""
    mpmath = pytest.importorskip("mpmath")
    mp = mpmath.mp
    with mp.workdps(340):
        bound = mp.mpf("2.1") * mp.exp(-72 * mp.pi**2)
        for y in (mp.mpf(0), mp.mpf(1) / 3, mp.mpf(1) / 2):
            total = mp.fsum(mp.exp(-((z - y) ** 2) / 72) for z in range(-260, 261))
            assert abs(total / mp.sqrt(72 * mp.pi) - 1) <= bound
        narrow = mp.fsum(mp.exp(-(mp.mpf(z) ** 2) / 50) for z in range(-260, 261))
        assert abs(narrow / mp.sqrt(50 * mp.pi) - 1) > bound


def test_laplace_noise_for_l1_distances_has_their_scale():
    """L1 distance over epsilon, and a thousandth for the grid; a finer grid where epsilon is large."""
    for dimension in (1, 50):
        for epsilon in (0.1, 1.0, 1e6):
            noise = LatticeLaplace.of_l1(dimension, 7.0, epsilon)
            assert 7.0 / epsilon <= noise.scale <= 1.001 * 7.0 / epsilon
            assert noise.step < noise.scale
            noise.release(np.zeros((1, dimension)), Entropy.fresh())  # OpenDP confirms it


@pytest.mark.parametrize("size", [0.0, 5e-324, 1e-320, 1e-310])
def test_the_grid_of_a_size_that_underflows_is_the_finest(size):
    """Not one of a half, which is what no size at all would give."""
    assert lattice_exponent(size, 3) == -1000


def test_the_smoothing_of_a_discrete_gaussian_is_six_steps():
    """proofs/lattice.md, section 4: s^2 = (m Delta)^2 + 36 for the multiplier m, in grid steps; and back again."""
    for sensitivity, multiplier in ((10.0, 4.0), (4.0, 9.0), (100.0, 0.5)):
        noise = LatticeGaussian.of_multiplier(1, 0, sensitivity, multiplier)
        assert noise.deviation**2 == pytest.approx((multiplier * (sensitivity + 1.0)) ** 2 + 36.0, rel=1e-12)
        assert noise.multiplier == pytest.approx(multiplier, rel=1e-12)
        assert noise.multiplier >= multiplier
    coarse = LatticeGaussian(1, 0, 10.0, 40.0)
    assert coarse.multiplier == pytest.approx(math.sqrt(40.0**2 - 36.0) / 11.0, rel=1e-12)


def test_each_weight_has_one_draw_of_its_own():
    """Draws that were made before are as many as the weights, neither fewer nor more."""
    lattice = LatticeLaplace.of_l1(3, 1.0, 1.0)
    released = lattice.release(np.zeros((1, 3)), Entropy.seeded(0), [1, 2, 3])
    assert released.tolist() == [[lattice.step, 2.0 * lattice.step, 3.0 * lattice.step]]
    for drawn in ([1, 2], [1, 2, 3, 4]):
        with pytest.raises(ValueError, match="zip"):
            lattice.release(np.zeros((1, 3)), Entropy.seeded(0), drawn)
