"""The sampler: the right law is accepted, a scale 30% off is rejected, and small values keep their digits."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from confide.privacy.noise import RELATIVE_ERROR, Entropy, spherical_laplace_bound

# Two-sided tests at a fixed seed: a p-value above this accepts, below it rejects. 2,000 draws tell a scale 30% off with
# p below 1e-9 in every dimension tested.
ACCEPT, REJECT, DRAWS = 1e-3, 1e-8, 2000


def draws(dimension, rate, n=DRAWS, seed=3):
    """n draws of one stream."""
    return Entropy.seeded(seed).spherical_laplace(n, dimension, rate)


@pytest.mark.parametrize("dimension", [1, 2, 5, 40])
def test_the_norm_is_gamma_and_a_scale_thirty_percent_off_is_rejected(dimension):
    """rate |b| ~ Gamma(d, 1) by Kolmogorov-Smirnov; rates 0.7 and 1.4 times the right one fail clearly."""
    rate = 0.37
    norms = np.linalg.norm(draws(dimension, rate), axis=1)
    law = stats.gamma(dimension).cdf
    assert stats.kstest(norms * rate, law).pvalue > ACCEPT
    for wrong in (0.7, 1.4):
        assert stats.kstest(norms * rate * wrong, law).pvalue < REJECT


@pytest.mark.parametrize("dimension", [2, 3, 7])
def test_the_direction_is_uniform_and_independent_of_the_norm(dimension):
    """Squared coordinates of the direction are Beta(1/2, (d-1)/2); signs are fair; no rank correlation with the norm."""
    sample = draws(dimension, 1.0)
    norms = np.linalg.norm(sample, axis=1)
    directions = sample / norms[:, None]
    for j in range(dimension):
        assert stats.kstest(directions[:, j] ** 2, stats.beta(0.5, (dimension - 1) / 2).cdf).pvalue > ACCEPT
        assert stats.binomtest(int((directions[:, j] > 0).sum()), DRAWS).pvalue > ACCEPT
        assert stats.spearmanr(directions[:, j], norms).pvalue > ACCEPT
    assert stats.spearmanr(directions[:, 0], directions[:, 1]).pvalue > ACCEPT


def test_a_random_projection_has_the_same_law_as_a_coordinate():
    """Rotation invariance, which a product of Laplace draws lacks."""
    dimension = 4
    sample = draws(dimension, 1.0, n=4000)
    axis = np.ones(dimension) / 2.0
    assert stats.ks_2samp(sample[:2000] @ axis, sample[2000:, 0]).pvalue > ACCEPT
    product = np.random.default_rng(0).laplace(size=(40_000, dimension))
    assert stats.ks_2samp(product[:20_000] @ axis, product[20_000:, 0]).pvalue < REJECT


def test_in_one_dimension_it_is_the_laplace_law():
    """Scale 1 / rate."""
    sample = draws(1, 2.0)[:, 0]
    assert stats.kstest(sample, stats.laplace(scale=0.5).cdf).pvalue > ACCEPT
    assert stats.kstest(sample, stats.laplace(scale=0.35).cdf).pvalue < REJECT


def test_second_moments_match():
    """E b_j^2 = (d + 1) / rate^2."""
    sample = draws(6, 0.5, n=6000)
    np.testing.assert_allclose((sample**2).mean(axis=0), (6 + 1) / 0.25, rtol=0.12)


def test_fresh_entropy_never_repeats_and_a_seed_always_does():
    """Operating-system entropy differs between calls; equal seeds agree and are marked as not secret."""
    fresh = [Entropy.fresh().spherical_laplace(1, 3, 1.0) for _ in range(20)]
    assert len({draw.tobytes() for draw in fresh}) == 20
    assert np.array_equal(draws(3, 1.0, n=2), draws(3, 1.0, n=2))
    assert Entropy.fresh().is_secret
    assert not Entropy.seeded(1).is_secret


def test_problems_get_different_noise():
    """One draw a problem: never the same vector for two of them."""
    sample = draws(5, 1.0, n=50)
    assert len({row.tobytes() for row in sample}) == 50


class Bits:
    """A stream of given 64-bit words, then of zeros and ones at will."""

    def __init__(self, words):
        self.words = list(words)

    def __call__(self, n):
        return self.words.pop(0).to_bytes(n, "little")


def test_small_uniforms_keep_all_their_digits():
    """150 leading zeros give a number near 2^-151 with 53 significant bits, not 0."""
    stream = Entropy(read=Bits([(0xABCDEF0123456 << 12), 0, 0, 1 << (63 - 22)]), is_secret=False)
    value = stream._uniform()
    mantissa, exponent = math.frexp(value)
    assert exponent == -150
    assert mantissa * 2**53 == 2**52 + 0xABCDEF0123456


def test_exponentials_follow_their_law_in_the_far_small_tail():
    """Pr[E < x] = x for tiny x: relative precision holds where -log(uniform) would be granular."""
    source = Entropy.seeded(11)
    sample = np.array([source._exponential() for _ in range(20_000)])
    assert stats.kstest(sample, stats.expon.cdf).pvalue > ACCEPT
    smallest = np.sort(sample)[:200]
    assert len(np.unique(smallest)) == 200
    assert (smallest * 2.0**53 % 1 != 0).any()


@pytest.mark.parametrize("dimension", [1, 2, 5, 30])
def test_the_computed_draw_is_close_to_the_exact_map_of_its_bits(dimension):
    """The same words through 60-digit arithmetic: relative L2 difference at most RELATIVE_ERROR."""
    mpmath = pytest.importorskip("mpmath")
    mp = mpmath.mp
    source, recorded = np.random.default_rng(5), []

    def record(n):
        word = source.bytes(n)
        recorded.append(int.from_bytes(word, "little"))
        return word

    computed = Entropy(read=record, is_secret=False).spherical_laplace(1, dimension, 0.3)[0]
    words = iter(recorded)

    def zeros():
        count = 0
        while (word := next(words)) == 0:
            count += 64
        return count + 64 - word.bit_length()

    def uniform():
        mantissa = 2**52 + (next(words) >> 12)
        return mp.mpf(mantissa) * mp.mpf(2) ** (-53 - zeros())

    def exponential():
        return zeros() * mp.log(2) - mp.log(1 - uniform() / 2)

    with mp.workdps(60):
        radius = mp.fsum(exponential() for _ in range(dimension)) / mp.mpf(0.3)
        normals = []
        while len(normals) < dimension:
            length, angle = mp.sqrt(2 * exponential()), mp.pi / 2 * uniform()
            normals += [(1 if next(words) & 1 else -1) * length * part for part in (mp.sin(angle), mp.cos(angle))]
        normals = normals[:dimension]
        scale = radius / mp.sqrt(mp.fsum(x * x for x in normals))
        error = mp.sqrt(mp.fsum((mp.mpf(float(c)) - x * scale) ** 2 for c, x in zip(computed, normals, strict=True)))
        assert error / radius <= RELATIVE_ERROR


def test_the_public_bound_holds_with_its_failure_probability():
    """Pr[|b| > bound] <= 2^-200 exp(-epsilon) by the Gamma tail, and the bound is at most ten times what that needs."""
    for dimension in (1, 10, 100, 1000):
        for epsilon in (0.1, 2.0, 50.0):
            bound = spherical_laplace_bound(dimension, 1.0, epsilon)
            assert stats.gamma(dimension).logsf(bound) <= -200 * math.log(2.0) - epsilon
            assert bound <= 10 * (stats.gamma(dimension).isf(1e-60) + epsilon)
    assert spherical_laplace_bound(3, 2.0, 1.0) == pytest.approx(spherical_laplace_bound(3, 1.0, 1.0) / 2)
