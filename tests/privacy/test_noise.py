"""The sampler: the right law is accepted, a scale 30% off is rejected, and small values keep their digits."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from confide.privacy import shapes
from confide.privacy.bundles import UNITS, Bundles
from confide.privacy.noise import LARGEST_PROVEN_EPSILON, LOG_FAILURE, Entropy
from confide.privacy.shapes import Ball, Cylinder, Groups, Linked

# Two-sided tests at a fixed seed: a p-value above this accepts, below it rejects. 2,000 draws tell a scale 30% off with
# p below 1e-9 in every dimension tested.
ACCEPT, REJECT, DRAWS = 1e-3, 1e-8, 2000


def draws(dimension, rate, n=DRAWS, seed=3):
    """n draws of one stream from the unit ball's shape."""
    return Entropy.seeded(seed).laplace(Ball(dimension, 1.0), n, rate)


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
    fresh = [Entropy.fresh().laplace(Ball(3, 1.0), 1, 1.0) for _ in range(20)]
    assert len({draw.tobytes() for draw in fresh}) == 20
    assert np.array_equal(draws(3, 1.0, n=2), draws(3, 1.0, n=2))
    assert Entropy.fresh().is_secret
    assert not Entropy.seeded(1).is_secret


def test_a_seeded_stream_is_that_of_numpy_whatever_is_asked_for():
    """It is read ahead, across the ends of what was read; no byte is given twice or left out."""
    rng = np.random.default_rng(0)
    for seed in range(5):
        entropy, plain = Entropy.seeded(seed), np.random.Generator(np.random.Philox(seed))
        for n in rng.choice([0, 1, 2, 3, 4, 5, 7, 8, 16, 24, 100, 4093, 4096, 4097, 9000], 500).tolist():
            assert entropy.read(n) == plain.bytes(n)


def test_problems_get_different_noise():
    """One draw a problem: never the same vector for two of them."""
    sample = draws(5, 1.0, n=50)
    assert len({row.tobytes() for row in sample}) == 50


class Bits:
    """A stream of given 64-bit words."""

    def __init__(self, words):
        self.words = list(words)

    def __call__(self, n):
        return b"".join(self.words.pop(0).to_bytes(8, "little") for _ in range(n // 8))


def test_small_uniforms_keep_all_their_digits():
    """128 leading zeros, of 53 in a word, give a number near 2^-129 with 53 significant bits; its neighbour is 0.5."""
    words = [0xABCDEF0123456 << 12, 0, 0x7FF, 1 << 63, 0x7FF, 1 << (63 - 22)]
    value, half = Entropy(read=Bits(words), is_secret=False)._uniform(2)
    mantissa, exponent = math.frexp(value)
    assert half == 0.5
    assert exponent == -128
    assert mantissa * 2**53 == 2**52 + 0xABCDEF0123456


def test_exponentials_follow_their_law_in_the_far_small_tail():
    """Pr[E < x] = x for tiny x: relative precision holds where -log(uniform) would be granular."""
    source = Entropy.seeded(11)
    sample = source.exponential(20_000)
    assert stats.kstest(sample, stats.expon.cdf).pvalue > ACCEPT
    smallest = np.sort(sample)[:200]
    assert len(np.unique(smallest)) == 200
    assert (smallest * 2.0**53 % 1 != 0).any()


def norms(shape, sample):
    """|b|_K of each draw, by its definition."""
    if isinstance(shape, Ball):
        return np.linalg.norm(sample, axis=1) / shape.scales[0]
    if isinstance(shape, Cylinder):
        lengths = np.linalg.norm(sample[:, :-1], axis=1) / shape.scales[0]
        return np.maximum(lengths, np.abs(sample[:, -1]) / shape.scales[1])
    parts = np.split(sample, np.cumsum(shape.sizes)[:-1], axis=1)
    if isinstance(shape, Bundles):
        of_bundles = []
        for bundle in shape.bundles:
            at_home = len(shape.sizes) - 1 in bundle
            centres = [
                np.median(parts[g], axis=1, keepdims=True) if shape.linked[g] and not at_home else 0.0 for g in bundle
            ]
            of_groups = [np.abs(parts[g] - c).sum(axis=1) / shape.scales[g] for g, c in zip(bundle, centres, strict=True)]
            of_bundles.append(np.max(of_groups, axis=0))
        return sum(share / 1024 * part for share, part in zip(shape.shares, of_bundles, strict=True))
    return np.max([np.abs(part).sum(axis=1) / scale for part, scale in zip(parts, shape.scales, strict=True)], axis=0)


SMALL = Linked((3, 2, 2, 1), (1.0, 2.0, 0.7, 0.5), (True, True, False, False))
WIDE = Linked((4, 1, 9, 5, 1), (1.0, 0.3, 0.5, 2.0, 0.8), (True, False, True, False, False))
FAR = Bundles(
    (4, 1, 5, 3, 1), (1.0, 0.3, 0.5, 2.0, 0.8), (True, False, True, True, False), ((3, 4), (0, 1), (2,)), (300, 600, 124)
)
FREE = Bundles((3, 1, 6), (1.0, 0.2, 2.0), (False,) * 3, ((0, 2), (1,)), (700, 324))
SHAPES = [Ball(5, 1.7), Cylinder(4, 1.7, 0.6), Groups((3, 1, 6), (1.0, 0.2, 2.0)), SMALL, WIDE, FAR, FREE]
each_shape = pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: f"{shape.name}-{shape.dimension}")


@each_shape
def test_every_shape_has_the_right_norm_moment_and_space(shape):
    """rate |b|_K ~ Gamma(free dimension), and E |b|^2 as said; 30% off is rejected. Linked draws lie in V to rounding."""
    sample = Entropy.seeded(9).laplace(shape, DRAWS, 0.6)
    law, size = stats.gamma(shape.free_dimension).cdf, norms(shape, sample)
    assert stats.kstest(size * 0.6, law).pvalue > ACCEPT
    for wrong in (0.7, 1.4):
        assert stats.kstest(size * 0.6 * wrong, law).pvalue < REJECT
    np.testing.assert_allclose(np.sqrt((sample**2).sum(axis=1).mean()), shape.laplace_norm(0.6), rtol=0.03)
    check_space(shape, sample)


def check_space(shape, sample):
    """Each linked group adds up to what the intercept says."""
    for part, scale, linked in zip(
        np.split(sample, np.cumsum(shape.sizes)[:-1], axis=1), shape.scales, shape.linked, strict=True
    ):
        if linked:
            np.testing.assert_allclose(part.sum(axis=1) / scale, sample[:, -1] / shape.scales[-1], atol=1e-13 * sample.max())


def disagreement(first, second):
    """Smallest p-value of Kolmogorov-Smirnov tests on coordinates, sums and products."""
    features = []
    for x in (first, second):
        weighted = x @ np.arange(1.0, x.shape[1] + 1)
        features.append(np.column_stack([x, x[:, :1] * x[:, 1:], np.abs(x).sum(axis=1), weighted]))
    return min(stats.ks_2samp(a, b).pvalue for a, b in zip(features[0].T, features[1].T, strict=True))


def test_draws_of_a_cylinder_agree_with_rejection_sampling(monkeypatch):
    """8,000 draws of three columns and a constant against as many; a ball that is not filled evenly is found."""
    shape, rng = Cylinder(3, 1.3, 0.7), np.random.default_rng(3)
    points = rng.uniform(-1.0, 1.0, (20_000, 4))
    points = points[np.linalg.norm(points[:, :3], axis=1) <= 1.0][:8000] * [1.3, 1.3, 1.3, 0.7]
    expected = points * rng.gamma(5, size=(8000, 1)) / 0.4
    assert disagreement(Entropy.seeded(12).laplace(shape, 8000, 0.4), expected) > ACCEPT / 10
    # As if the radius, and not its third power, were uniform.
    original = Entropy.exponential
    monkeypatch.setattr(Entropy, "exponential", lambda self, n: original(self, 1 if n == 3 else n))
    assert disagreement(Entropy.seeded(12).laplace(shape, 8000, 0.4), expected) < REJECT


@each_shape
def test_gaussian_draws_have_the_covariance_of_their_pieces(shape):
    """A projection on each piece, over its deviation, is standard normal; 30% off is rejected. 2,000 draws."""
    sample = Entropy.seeded(10).gaussian(shape, DRAWS, 1.3)
    check_space(shape, sample)
    deviations, common = shape.gaussian_deviations(1.3), []
    for g, part in enumerate(np.split(sample, np.cumsum(shape.sizes)[:-1], axis=1)):
        if shape.linked[g]:
            common.append(np.full(shape.sizes[g], shape.scales[g] / shape.sizes[g]))
            axis = np.linalg.qr(np.eye(shape.sizes[g]) - 1.0 / shape.sizes[g])[0][:, 0]
        else:
            last = g == len(shape.sizes) - 1 and any(shape.linked)
            common.append(np.full(shape.sizes[g], shape.scales[g] if last else 0.0))
            axis = np.eye(shape.sizes[g])[-1]
        if g < len(shape.sizes) - 1 or not any(shape.linked):
            check_normal(part @ axis / deviations[g])
    if any(shape.linked):
        direction = np.concatenate(common)
        check_normal(sample @ direction / np.linalg.norm(direction) / deviations[-1])
    np.testing.assert_allclose(np.sqrt((sample**2).sum(axis=1).mean()), shape.gaussian_norm(1.3), rtol=0.03)


def check_normal(sample):
    """Accept the standard deviation 1, reject 0.7 and 1.4."""
    assert stats.kstest(sample, stats.norm.cdf).pvalue > ACCEPT
    for wrong in (0.7, 1.4):
        assert stats.kstest(sample * wrong, stats.norm.cdf).pvalue < REJECT


@pytest.mark.parametrize("n", [1, 3, 256, 257, 10**25])
def test_whole_numbers_are_uniform(n):
    """Chi-square on ten cells, or all numbers where there are fewer; and only these numbers come."""
    source = Entropy.seeded(4)
    sample = [source.below(n) for _ in range(5000)]
    assert 0 <= min(sample) <= max(sample) < n
    if n > 1:
        cells = min(n, 10)
        sizes = [-(-(i + 1) * n // cells) - -(-i * n // cells) for i in range(cells)]
        observed = np.bincount([x * cells // n for x in sample], minlength=cells)
        assert stats.chisquare(observed, np.array([size / n for size in sizes]) * 5000).pvalue > ACCEPT


class Replay:
    """The maps from bits to noise in 80-digit arithmetic, written from proofs/noise.md, on the readings of a draw."""

    def __init__(self, readings, mp):
        self.readings, self.mp = list(readings), mp

    def words(self, n):
        reading = self.readings.pop(0)
        assert len(reading) == 8 * n
        return [int.from_bytes(reading[8 * i : 8 * i + 8], "little") for i in range(n)]

    def below(self, n):
        while True:
            reading = self.readings.pop(0)
            number = int.from_bytes(reading, "little") >> (8 * len(reading) - (n - 1).bit_length())
            if number < n:
                return number

    def zeros(self, n):
        counts = [53 - (word >> 11).bit_length() for word in self.words(n)]
        more = [i for i in range(n) if counts[i] == 53]
        for i, extra in zip(more, self.zeros(len(more)) if more else [], strict=True):
            counts[i] += extra
        return counts

    def uniform(self, n):
        mantissas = [2**52 + (word >> 12) for word in self.words(n)]
        return [self.mp.mpf(m) * self.mp.mpf(2) ** (-53 - z) for m, z in zip(mantissas, self.zeros(n), strict=True)]

    def exponential(self, n):
        quotients = self.zeros(n)
        return [q * self.mp.log(2) - self.mp.log(1 - v / 2) for q, v in zip(quotients, self.uniform(n), strict=True)]

    def signs(self, n):
        return [1 if word & 1 else -1 for word in self.words(n)]

    def normal(self, n):
        lengths = [self.mp.sqrt(2 * e) for e in self.exponential((n + 1) // 2)]
        angles = [self.mp.pi / 2 * v for v in self.uniform((n + 1) // 2)]
        pairs = [r * f(a) for f in (self.mp.sin, self.mp.cos) for r, a in zip(lengths, angles, strict=True)]
        return [s * x for s, x in zip(self.signs(n), pairs[:n], strict=True)]

    def simplex(self, n):
        parts = self.exponential(n)
        return [part / self.mp.fsum(parts) for part in parts]

    def cross(self, n):
        parts = self.simplex(n + 1)[1:]
        return [s * x for s, x in zip(self.signs(n), parts, strict=True)]

    def choice(self, weights):
        rest = self.below(sum(weights))
        return next(i for i in range(len(weights)) if rest < sum(weights[: i + 1]))

    def section(self, shape):
        levels, counts = shape.levels, shapes.cell_counts(shape.levels)
        total, cells = self.choice(shapes.cell_weights(levels)), []
        for g in reversed(range(len(levels))):
            left = total - sum(cells)
            inside = range(levels[g] + 1)
            cells.append(self.choice([
                math.comb(levels[g], j) ** 2 * (counts[g][left - j] if 0 <= left - j < len(counts[g]) else 0) for j in inside
            ]))  # fmt: skip
        up, down = (self.mp.fsum(self.exponential(n + 1)) for n in (total, sum(levels) - total))
        t, point, groups = up / (up + down), [], reversed(cells)
        for size, linked in zip(shape.sizes[:-1], shape.linked[:-1], strict=True):
            if not linked:
                point += self.cross(size)
                continue
            order, positive = list(range(size)), next(groups)
            for i in range(1, positive + 1):
                j = i + self.below(size - i)
                order[i], order[j] = order[j], order[i]
            group = [self.mp.mpf(0)] * size
            for i, part in zip(order[: positive + 1], self.simplex(positive + 1), strict=True):
                group[i] += t * part
            for i, part in zip([0, *order[positive + 1 :]], self.simplex(size - positive), strict=True):
                group[i] -= (1 - t) * part
            point += group
        return [*point, 2 * t - 1]

    def laplace(self, shape, rate):
        if isinstance(shape, Ball):
            normals = self.normal(shape.dimension)
            length = self.mp.fsum(self.exponential(shape.dimension)) / rate * self.mp.mpf(shape.scales[0])
            return [length * x / self.mp.sqrt(self.mp.fsum(y * y for y in normals)) for x in normals]
        if isinstance(shape, Cylinder):
            normals, (sign,), (last,) = self.normal(shape.sizes[0]), self.signs(1), self.uniform(1)
            height = self.mp.fsum(self.exponential(shape.dimension + 1)) / rate
            inside, (outside,) = self.mp.fsum(self.exponential(shape.sizes[0])), self.exponential(1)
            share = inside / (inside + outside) / self.mp.sqrt(self.mp.fsum(y * y for y in normals))
            radius, constant = map(self.mp.mpf, shape.scales)
            return [*(height * radius * share * x for x in normals), height * constant * sign * last]
        if isinstance(shape, Bundles):
            return self.bundles(shape, rate)
        height = self.mp.fsum(self.exponential(shape.free_dimension + 1)) / rate
        if isinstance(shape, Linked):
            point = self.section(shape)
        else:
            drawn = zip(shape.sizes, shape.linked, strict=True)
            point = [x for size, linked in drawn for x in (self.contrasts(size) if linked else self.cross(size))]
        scales = [scale for size, scale in zip(shape.sizes, shape.scales, strict=True) for _ in range(size)]
        self.reach = height * self.mp.mpf(shape.l2_norm)
        return [height * self.mp.mpf(scale) * x for scale, x in zip(scales, point, strict=True)]

    def contrasts(self, size):
        magnitudes, order = self.simplex(size)[1:], list(range(size))
        for position in range(size - 1):
            other = position + self.below(size - position)
            order[position], order[other] = order[other], order[position]
        point = [self.mp.mpf(0)] * size
        for i, (place, magnitude) in enumerate(zip(order[:-1], magnitudes, strict=True)):
            point[place] = magnitude if i < size // 2 else -magnitude
        return [x - self.mp.fsum(point) / size for x in point]

    def bundles(self, shape, rate):
        parts, reach = [None] * len(shape.sizes), self.mp.mpf(0)
        away = [g for bundle in shape.bundles for g in bundle if shape.linked[g] and len(shape.sizes) - 1 not in bundle]
        for i, (bundle, share) in enumerate(zip(shape.bundles, shape.shares, strict=True)):
            own = shape.shape_of(i)
            drawn = self.laplace(own, rate * share / UNITS)
            spread = sum(shape.scales[g] ** 2 / shape.sizes[g] for g in away) if len(shape.sizes) - 1 in bundle else 0.0
            length = math.sqrt(sum(shape.scales[g] ** 2 for g in bundle) + spread)
            reach += self.reach / self.mp.mpf(own.l2_norm) * self.mp.mpf(length)
            for g in bundle:
                parts[g], drawn = drawn[: shape.sizes[g]], drawn[shape.sizes[g] :]
        for g in away:
            constant = self.mp.mpf(shape.scales[g]) * parts[-1][0] / (self.mp.mpf(shape.scales[-1]) * shape.sizes[g])
            parts[g] = [x + constant for x in parts[g]]
        self.reach = reach
        return [x for part in parts for x in part]

    def gaussian(self, shape, scale):
        deviations, normals, draw = shape.gaussian_deviations(scale), self.normal(shape.dimension), []
        self.reach = max(deviations) * self.mp.sqrt(self.mp.fsum(x * x for x in normals))
        common = normals[-1] * self.mp.mpf(deviations[-1]) / self.mp.mpf(shape.pieces[-1][0])
        for g, size in enumerate(shape.sizes):
            part = [self.mp.mpf(deviations[g]) * normals.pop(0) for _ in range(size)]
            if shape.linked[g]:
                mean = self.mp.fsum(part) / size
                part = [x - mean + self.mp.mpf(shape.scales[g]) / size * common for x in part]
            draw += part
        return [*draw[:-1], self.mp.mpf(shape.scales[-1]) * common] if any(shape.linked) else draw


def adversarial(seed, readings):
    """Random bytes, of which a tenth of the words are all ones, mantissas of ones, or nearly all zeros."""
    source = np.random.default_rng(seed)

    def read(n):
        words = source.integers(2**64, size=-(-n // 8), dtype=np.uint64)
        odd = np.array([2**64 - 1, 2**63 - 1, 0x1FFF, 1 << 12, 0x7FF], dtype=np.uint64)
        reading = np.where(source.random(len(words)) < 0.1, source.choice(odd, len(words)), words).tobytes()[:n]
        readings.append(reading)
        return reading

    return Entropy(read=read, is_secret=False)


@pytest.mark.parametrize(
    "shape",
    [Ball(1, 1.0), Ball(2, 1.0), Ball(30, 0.7), Cylinder(1, 1.0, 3.0), *SHAPES[1:]],
    ids=lambda s: f"{s.name}-{s.dimension}",
)
def test_the_computed_draw_is_close_to_the_exact_map_of_its_bits(shape):
    """40 strings of bits through 80-digit arithmetic: within the stated error of R_2 r, of t |z|, or of |b| itself."""
    mpmath = pytest.importorskip("mpmath")
    with mpmath.mp.workdps(80):
        for seed in range(20):
            for law in ("laplace", "gaussian"):
                readings = []
                computed = getattr(adversarial(seed, readings), law)(shape, 1, 0.3)[0]
                replay = Replay(readings, mpmath.mp)
                exact = getattr(replay, law)(shape, mpmath.mp.mpf(0.3) if law == "laplace" else 0.3)
                assert not replay.readings
                error = mpmath.norm([mpmath.mpf(float(c)) - x for c, x in zip(computed, exact, strict=True)])
                allowed = shape.laplace_error if law == "laplace" else 32 * 2.0**-53
                reach = mpmath.norm(exact) if law == "laplace" and shape.name != "linked" else replay.reach
                assert 0 < error <= allowed * reach


def test_a_draw_exceeds_its_bound_with_the_probability_of_two_hundred_coins():
    """Before the factor of the budget: 2^-200."""
    assert math.exp(LOG_FAILURE) == pytest.approx(2.0**-200, rel=1e-9, abs=0.0)
    assert LARGEST_PROVEN_EPSILON == 190.0


def test_an_order_in_which_two_words_agree_is_drawn_anew(monkeypatch):
    """Else the first of them would come first more often than the other."""
    drawn = iter(
        [np.array([3, 1, 3], dtype=np.uint64), np.array([7, 7, 7], dtype=np.uint64), np.array([9, 2, 5], dtype=np.uint64)]
    )
    monkeypatch.setattr(Entropy, "_words", lambda _, n: next(drawn))
    assert Entropy.seeded(0).permutation(3).tolist() == [1, 2, 0]
    assert next(drawn, None) is None
