"""Exact discrete noise: the laws, events and digits against exact probabilities, and where the bits come from."""

from __future__ import annotations

import math
import os
import random
import secrets
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from confide.privacy import lattice
from confide.privacy.lattice import LatticeGaussian, LatticeLaplace, bernoulli_exp, discrete_gaussian, discrete_laplace
from confide.privacy.noise import Entropy
from confide.privacy.shapes import Ball

# 50,000 draws in about 20 cells: a scale 30% off is rejected with p below 1e-30, and by this much:
ACCEPT, REJECT, DRAWS = 1e-3, 1e-12, 50_000
LAWS = {
    "laplace": (discrete_laplace, lambda x, s: -abs(x) / s),
    "gaussian": (discrete_gaussian, lambda x, s: -(x**2) / (2 * s**2)),
}
SCALES = [Fraction(1, 5), Fraction(3, 4), Fraction(1), Fraction(17, 3), Fraction(1000), Fraction(10**6 + 1, 7)]


def p_value(integers, log_mass, scale):
    """Chi-square against the exact law: each integer a cell where there are few, else cells of a quarter of the scale."""
    reach = max(4, math.ceil(40 * scale))
    law = np.exp(log_mass(np.arange(-reach, reach + 1, dtype=float), scale))
    law /= law.sum()
    edges = np.unique(np.round(np.arange(-2.5, 2.6, max(0.25, 1.0 / scale)) * scale)) + 0.5
    cells = np.searchsorted(edges, np.arange(-reach, reach + 1))
    expected = np.bincount(cells, law, minlength=len(edges) + 1) * len(integers)
    observed = np.bincount(np.searchsorted(edges, integers), minlength=len(edges) + 1)
    used = expected > 5.0
    expected, observed = (np.append(part[used], part[~used].sum()) for part in (expected, observed))
    left = expected > 0.0
    return stats.chisquare(observed[left], expected[left] * observed[left].sum() / expected[left].sum()).pvalue


@pytest.mark.parametrize("scale", SCALES, ids=str)
@pytest.mark.parametrize("law", LAWS)
def test_draws_have_the_exact_discrete_law(law, scale):
    """By chi-square, for scales of a fifth of a step to 10^5 steps; scales 30% off are rejected, and the other law."""
    draw, log_mass = LAWS[law]
    integers = draw(scale, DRAWS, Entropy.seeded(5)).astype(float)
    assert p_value(integers, log_mass, float(scale)) > ACCEPT
    if law == "gaussian" and scale < 0.5:
        return  # nearly all are 0, and no number of draws tells more
    for wrong in (0.7, 1.3):
        assert p_value(integers, log_mass, float(scale) * wrong) < REJECT
    if scale > 1:
        (other,) = (mass for name, (_, mass) in LAWS.items() if name != law)
        assert p_value(integers, other, float(scale)) < REJECT


@pytest.mark.parametrize("law", LAWS)
def test_a_million_draws_have_the_moments_of_the_law(law):
    """Mean, variance and fourth moment within five of their standard errors, and neighbours are not correlated."""
    scale = Fraction(2001, 2)
    z = LAWS[law][0](scale, 10**6, Entropy.seeded(11)).astype(float) / float(scale)
    variance, fourth, eighth = (2.0, 24.0, 40320.0) if law == "laplace" else (1.0, 3.0, 105.0)
    assert abs(z.mean()) < 5e-3 * math.sqrt(variance)
    assert abs((z**2).mean() - variance) < 5e-3 * math.sqrt(fourth - variance**2)
    assert abs((z**4).mean() - fourth) < 5e-3 * math.sqrt(eighth - fourth**2)
    assert abs((z[1:] * z[:-1]).mean()) < 5e-3 * variance
    # The lowest digits are fair.
    assert abs((np.rint(z * float(scale)) % 2).mean() - 0.5) < 2.5e-3


@pytest.mark.parametrize("exponent", [40, 70, 400])
@pytest.mark.parametrize("law", LAWS)
def test_huge_scales_lose_no_digit(law, exponent):
    """Far beyond what doubles or words hold: the law of the leading digits by a test against the continuous one."""
    scale = Fraction(2**exponent) + Fraction(1, 3)
    draws = LAWS[law][0](scale, 4000, Entropy.seeded(3))
    assert all(type(z) is int for z in draws)
    ratios = np.array([float(Fraction(z) / scale) for z in draws])
    continuous = stats.laplace if law == "laplace" else stats.norm
    assert stats.kstest(ratios, continuous.cdf).pvalue > ACCEPT
    assert stats.kstest(ratios * 0.7, continuous.cdf).pvalue < 1e-8
    assert abs(np.mean([z % 2 for z in draws]) - 0.5) < 0.04


def test_events_have_the_probability_of_their_exact_digits():
    """Both forms, near 0, 1/2 and 1, by the binomial law; a million each."""
    for x in (Fraction(1, 10**4), Fraction(1, 3), Fraction(7, 3), Fraction(9)):
        p = math.exp(-x)
        for odds, probability in ((False, p), (True, p / (1.0 + p))):
            hits = lattice._events(probability, lambda _, x=x: x, odds, (10**6,), Entropy.seeded(6)).sum()
            assert stats.binomtest(int(hits), 10**6, probability).pvalue > ACCEPT
        hits = sum(bernoulli_exp(x, Entropy.seeded(seed)) for seed in range(3000))
        assert stats.binomtest(hits, 3000, p).pvalue > ACCEPT


@pytest.mark.parametrize("odds", [False, True])
def test_the_first_digits_of_probabilities_are_exact(odds):
    """Against 400 digits of another library; for tiny, huge and awkward exponents."""
    mpmath = pytest.importorskip("mpmath")
    cases = [Fraction(1, 10**40), Fraction(1, 3), Fraction(1), Fraction(355, 113), Fraction(800), Fraction(10**7, 3)]
    for x in cases:
        for n_bits in (0, 16, 48, 80, 500):
            with mpmath.workdps(400):
                p = mpmath.exp(-mpmath.mpf(x.numerator) / x.denominator)
                expected = int(mpmath.floor(mpmath.ldexp(p / (1 + p) if odds else p, n_bits)))
            assert lattice._first_bits(x, odds, n_bits) == expected
    assert lattice._first_bits(Fraction(0), False, 16) == 2**16


@pytest.mark.parametrize("odds", [False, True])
@pytest.mark.parametrize("above", [True, False])
def test_digits_next_to_a_whole_number_are_computed_with_more_digits(odds, above):
    """2^16 p is 10^-40 above or below a whole number, which the first 37 digits do not tell."""
    mpmath = pytest.importorskip("mpmath")
    for whole in (1, 1000, 30_000):
        with mpmath.workdps(120):
            p = (whole + mpmath.mpf(10) ** -40 * (1 if above else -1)) / 2**16
            x = -mpmath.log(p / (1 - p) if odds else p)
            x = Fraction(int(x * mpmath.mpf(10) ** 100), 10**100)
        assert lattice._first_bits(x, odds, 16) == (whole if above else whole - 1)


class Given:
    """Bytes that were chosen, and then others."""

    def __init__(self, chosen):
        self.chosen, self.rest = chosen, Entropy.seeded(1)

    def read(self, n):
        """The next bytes."""
        given, self.chosen = self.chosen[:n], self.chosen[n:]
        return given + self.rest.read(n - len(given))


def test_what_doubles_cannot_decide_is_decided_by_further_bits():
    """A uniform number that agrees with p in its first 16, 48 or 80 bits, and is one unit above or below it after that."""
    x = Fraction(1, 3)
    for n_bits in (16, 48, 80):
        whole = lattice._first_bits(x, False, n_bits)
        for off, expected in ((-1, True), (1, False)):
            # Words of 16 bits and then of 32, each with its lowest byte first.
            words = [((whole + off) >> (n_bits - 16), 2)]
            words += [((whole + off) >> (n_bits - 16 - shift) & 0xFFFFFFFF, 4) for shift in range(32, n_bits, 32)]
            chosen = b"".join((word % 2 ** (8 * size)).to_bytes(size, "little") for word, size in words)
            entropy = Entropy(Given(chosen).read, is_secret=False)
            assert lattice._events(math.exp(-x), lambda _: x, False, (1,), entropy).tolist() == [expected]


def test_a_wrong_double_within_the_margin_decides_nothing():
    """A probability that errs by a unit of 16 bits gives the same events as the right one, from the same bytes."""
    x = Fraction(2, 7)
    right = lattice._events(math.exp(-x), lambda _: x, False, (10**6,), Entropy.seeded(4))
    for wrong in (math.exp(-x) + 0.4 * 2.0**-16, math.exp(-x) - 0.4 * 2.0**-16):
        found = lattice._events(wrong, lambda _: x, False, (10**6,), Entropy.seeded(4))
        # The bytes after the first words are the same, in the same order, as long as the same events need them.
        assert np.count_nonzero(found != right) < 60
    words = np.frombuffer(Entropy.seeded(4).read(2 * 10**6), dtype="<u2")
    assert np.array_equal(right[words < 49_000], np.ones(np.count_nonzero(words < 49_000), dtype=bool))


def test_draws_are_unbounded():
    """With bits that say so, noise of scale 1 is as large as they ask for: no digit and no count is cut."""
    n_bytes = 0

    def low(n):
        nonlocal n_bytes
        n_bytes += n
        # Every event happens for 500 readings, then the generator goes on.
        return bytes(n) if n_bytes < 1000 else Entropy.seeded(0).read(n)

    (found,) = lattice._geometric(Fraction(1), 1, Entropy(low, is_secret=False))
    assert found > 800


NOISES = [LatticeLaplace(50, -10, 1.0, 1.0), LatticeGaussian(50, -10, 1.0, 2.0)]


@pytest.mark.usefixtures("noise_of_the_system")
@pytest.mark.parametrize("noise", NOISES, ids=["laplace", "gaussian"])
def test_every_release_reads_the_operating_system_for_all_of_its_bits(noise, monkeypatch):
    """Two bytes for each event at least, in each release alike; the same bytes give the same noise, others do not."""
    weights, system, reads = np.zeros((1, 50)), os.urandom, []

    def urandom(n):
        reads.append(n)
        return system(n)

    monkeypatch.setattr(random, "_urandom", urandom)
    counts = []
    for _ in range(6):
        reads.clear()
        noise.release(weights, Entropy.fresh())
        counts.append(sum(reads))
    assert min(counts) >= 2 * 50 * 2 * 10
    # Nothing is kept for the next release: none reads much less than another.
    assert max(counts) < 2 * min(counts)

    def replayed(seed):
        stream = Entropy.seeded(seed)
        monkeypatch.setattr(secrets, "token_bytes", stream.read)
        return noise.release(weights, Entropy.fresh())

    np.testing.assert_array_equal(replayed(1), replayed(1))
    assert not np.array_equal(replayed(1), replayed(2))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.usefixtures("noise_of_the_system")
@pytest.mark.parametrize("noise", NOISES, ids=["laplace", "gaussian"])
def test_two_copies_of_a_process_draw_different_noise(noise):
    """Whatever was drawn before: forked twice after a release, as two copies of a machine would go on."""
    weights, entropy = np.zeros((1, 50)), Entropy.fresh()
    noise.release(weights, entropy)
    answers = []
    for _ in range(2):
        reading, writing = os.pipe()
        child = os.fork()
        if child == 0:
            with suppressed_exit(), os.fdopen(writing, "wb") as pipe:
                pipe.write(noise.release(weights, entropy).tobytes())
        os.close(writing)
        with os.fdopen(reading, "rb") as pipe:
            answers.append(pipe.read())
        os.waitpid(child, 0)
    own = noise.release(weights, entropy).tobytes()
    assert len({*answers, own}) == 3
    assert {len(answer) for answer in answers} == {400}


class suppressed_exit:  # noqa: N801 - reads as a statement
    """Ends the process at the end of the block, whatever happens in it."""

    def __enter__(self):
        return self

    def __exit__(self, *failure):
        os._exit(0)


@pytest.mark.parametrize("law", ["laplace", "gaussian"])
def test_continuous_noise_reads_the_operating_system_in_each_draw(law, monkeypatch):
    """The bytes that a draw reads are eight for each coordinate at least, and a second draw reads as many again."""
    reads = []
    monkeypatch.setattr(secrets, "token_bytes", lambda n: reads.append(n) or os.urandom(n))
    entropy = Entropy.fresh()
    for _ in range(3):
        reads.clear()
        getattr(entropy, law)(Ball(30, 1.0), 1, 1.0)
        assert sum(reads) >= 8 * 30
    reads.clear()
    assert {entropy.below(2**40) for _ in range(5)} != {0}
    assert len(reads) == 5


def test_the_tail_is_that_of_the_law():
    """Of 10^6 draws of scale 2 as many lie beyond 12, 16 and 20 as the law says."""
    draws = np.abs(discrete_laplace(Fraction(2), 10**6, Entropy.seeded(9)).astype(float))
    ratio = math.exp(-0.5)
    for size in (12, 16, 20):
        expected = 2.0 * ratio**size / (1.0 + ratio)
        assert stats.binomtest(int((draws >= size).sum()), 10**6, expected).pvalue > ACCEPT
    assert Counter(np.sign(discrete_laplace(Fraction(2), 1000, Entropy.seeded(9)).astype(int)).tolist()).keys() == {-1, 0, 1}


@pytest.mark.parametrize("scale", [Fraction(3, 4), Fraction(17, 3), Fraction(41)])
@pytest.mark.parametrize("law", [discrete_laplace, discrete_gaussian])
def test_exact_exponents_are_those_of_the_probabilities_in_doubles(law, scale, monkeypatch):
    """Further bits decide one event in 20,000, by the exact exponent: it must be of the same event."""
    events, seen = lattice._events, []

    def compared(near, exponent, odds, shape, entropy):
        for i, found in enumerate(np.broadcast_to(near, shape).ravel()[:50].tolist()):
            p = math.exp(-exponent(i))
            seen.append(odds)
            assert found == pytest.approx(p / (1.0 + p) if odds else p, rel=1e-9)
        return events(near, exponent, odds, shape, entropy)

    monkeypatch.setattr(lattice, "_events", compared)
    law(scale, 20, Entropy.seeded(3))
    assert set(seen) == {False, True}


@pytest.mark.parametrize("n_bits", [0, 16])
def test_a_probability_of_nearly_nothing_has_digits_of_0(n_bits):
    """Its exponent has thirty-one digits, and more digits are computed than that."""
    assert lattice._first_bits(Fraction(10**30), False, n_bits) == 0
