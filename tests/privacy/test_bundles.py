"""Bundles of groups: rows lie in the unit ball, draws follow the law, and the division has little noise."""

from __future__ import annotations

import math
import time
from fractions import Fraction
from functools import cache

import numpy as np
import pytest
from scipy import optimize, stats

from confide.errors import ParameterError
from confide.privacy import shapes as group_shapes
from confide.privacy.bundles import (
    Bundles,
    Contrasts,
    _divided,
    _with_shares,
    shapes_of_groups,
    squares_of_bundles,
    squares_of_groups,
)
from confide.privacy.noise import Entropy
from confide.privacy.shapes import Groups, Linked
from tests.privacy.densities import bundles_norm

# Two-sided tests at a fixed seed: a p-value above this accepts, below it rejects.
ACCEPT, REJECT, DRAWS = 1e-3, 1e-8, 2000

SIZES, SCALES = (2, 4, 3, 1, 5, 1), (1.0, 2.0, 0.7, 0.5, 1.0, 1.5)
FLAGS = (False, True, True, False, True, False)
SHAPE = Bundles(SIZES, SCALES, FLAGS, ((2, 3, 5), (0, 1), (4,)), (500, 300, 224))
BANK = (*(1,) * 10, 12, 3, 4, 3, 12, 4, 1), (1.0,) * 17, (*(False,) * 10, *(True,) * 6, False)
ADULT = (*(5,) * 5, 1, 9, 16, 7, 15, 6, 5, 42, 5, 1), (1.0,) * 15, (*(False,) * 6, *(True,) * 8, False)


RATE = 0.6


@cache
def draws_of(shape):
    """3 * DRAWS draws at RATE, which two tests share."""
    return Entropy.seeded(5).laplace(shape, 3 * DRAWS, RATE)


def rows(shape, n=3000):
    """Rows at the edge of the bound: one active level a group, with a free sign outside of linked groups."""
    source, found = np.random.default_rng(3), []
    for size, scale, linked in zip(shape.sizes, shape.scales, shape.linked, strict=True):
        part = np.zeros((n, size))
        signs = np.ones(n) if linked or scale == shape.scales[-1] else source.choice([-1.0, 1.0], n)
        part[np.arange(n), source.integers(size, size=n)] = scale * signs
        found.append(part)
    return np.hstack(found)


def test_every_row_has_norm_at_most_one_and_some_have_one():
    """So the theorems on Laplace noise hold, and no smaller noise of this shape would do."""
    for shape in (SHAPE, shapes_of_groups(*BANK)[-1], shapes_of_groups(*ADULT)[-1]):
        assert isinstance(shape, Bundles)
        norms = bundles_norm(shape, rows(shape))
        assert 0.999 < norms.max() <= 1.0 + 1e-12


def test_bundles_have_the_law_of_their_norm():
    """rate |b|_K ~ Gamma(free dimension), and E |b|^2 as said; 15% off is rejected. Draws lie in the space of the rows."""
    for shape in (SHAPE, shapes_of_groups(*BANK)[-1]):
        sample = draws_of(shape)[:DRAWS]
        size, law = bundles_norm(shape, sample) * RATE, stats.gamma(shape.free_dimension).cdf
        assert stats.kstest(size, law).pvalue > ACCEPT
        for wrong in (0.85, 1.15):
            assert stats.kstest(size * wrong, law).pvalue < REJECT
        assert np.sqrt((sample**2).sum(axis=1).mean()) == pytest.approx(shape.laplace_norm(RATE), rel=0.03)
        parts = np.split(sample, np.cumsum(shape.sizes)[:-1], axis=1)
        for part, scale, linked in zip(parts, shape.scales, shape.linked, strict=True):
            if linked:
                np.testing.assert_allclose(part.sum(axis=1) / scale, parts[-1][:, 0] / shape.scales[-1], atol=1e-10)


def test_each_bundle_has_noise_of_its_share_of_the_rate():
    """The groups of a bundle, by their own norm, have the Gamma law of rate times share; half a share is rejected."""
    sample = Entropy.seeded(6).laplace(SHAPE, DRAWS, 0.6)
    parts = np.split(sample, np.cumsum(SIZES)[:-1], axis=1)
    middle = parts[4] - np.median(parts[4], axis=1, keepdims=True)
    alone = np.abs(middle).sum(axis=1) / SCALES[4] * 0.6 * 224 / 1024
    assert stats.kstest(alone, stats.gamma(4).cdf).pvalue > ACCEPT
    assert stats.kstest(alone * 0.5, stats.gamma(4).cdf).pvalue < REJECT
    home = np.max([np.abs(parts[g]).sum(axis=1) / SCALES[g] for g in (2, 3, 5)], axis=0) * 0.6 * 500 / 1024
    assert stats.kstest(home, stats.gamma(4).cdf).pvalue > ACCEPT


@pytest.mark.parametrize("size", [2, 3, 4, 5])
def test_contrasts_are_uniform_in_their_ball(size):
    """Against rejection from a box of differences to the first level: coordinates, products, and the second moment."""
    shape, source = Contrasts((size,), (1.0,), (True,)), np.random.default_rng(2)
    box = np.hstack([np.zeros((400_000, 1)), source.uniform(-1.0, 1.0, (400_000, size - 1))])
    inside = np.abs(box - np.median(box, axis=1, keepdims=True)).sum(axis=1) <= 1.0
    expected = (box - box.mean(axis=1, keepdims=True))[inside]
    assert shape.solid_mean_square() == pytest.approx((expected**2).sum(axis=1).mean(), rel=0.02)
    drawn = Entropy.seeded(4).laplace(shape, DRAWS, 1.0)
    expected = expected[:DRAWS]
    expected = expected * source.gamma(size, size=(len(expected), 1))
    for x, y in ((drawn, expected), (drawn[:, :1] * drawn[:, 1:], expected[:, :1] * expected[:, 1:])):
        assert min(stats.ks_2samp(a, b).pvalue for a, b in zip(x.T, y.T, strict=True)) > ACCEPT / 10


def log_tail(reaches, far, *, n=40_000):
    """The logarithm of Pr[sum of reach r > far], r ~ Gamma(m) for each (reach, m), from draws in which this is common."""
    longest, source = max(reach for reach, _ in reaches), np.random.default_rng(4)

    def mean_at(t):
        return sum(m * reach / (1.0 - t * reach) for reach, m in reaches)

    t = optimize.brentq(lambda t: mean_at(t) - far, 0.0, (1.0 - 1e-9) / longest)
    sums = sum(source.gamma(m, reach / (1.0 - t * reach), n) for reach, m in reaches)
    of_draws = np.mean(np.exp(-t * (sums - far)) * (sums > far))
    return math.log(of_draws) - t * far - sum(m * math.log1p(-t * reach) for reach, m in reaches)


def reaches_of(shape):
    """For each bundle the length of its part of a row over its share, and its free dimension plus one."""
    found = []
    for i, (bundle, share) in enumerate(zip(shape.bundles, shape.shares, strict=True)):
        square = sum(shape.scales[g] ** 2 for g in bundle)
        if i == shape.home:
            square += sum(shape.scales[g] ** 2 / shape.sizes[g] for g in shape.away)
        found.append((math.sqrt(square) * 1024 / share, shape.shape_of(i).free_dimension + 1))
    return found


@pytest.mark.parametrize("log_failure", [-200.0 * math.log(2.0), -190.0])
@pytest.mark.parametrize("shape", [SHAPE, *(shapes_of_groups(*table)[-1] for table in (BANK, ADULT))])
def test_the_public_bound_of_the_noise_holds_and_is_nearly_sharp(shape, log_failure):
    """The sum of lengths of the bundles' noise is below b_max with the probability that it states; 15% less is no bound."""
    bound = shape.laplace_bound(2.0, log_failure) * 2.0
    assert log_tail(reaches_of(shape), bound) <= log_failure - 1.0
    assert log_tail(reaches_of(shape), bound / 1.15) > log_failure


def test_draws_are_below_the_public_bound():
    sample = Entropy.seeded(8).laplace(SHAPE, DRAWS, 2.0)
    assert np.linalg.norm(sample, axis=1).max() < SHAPE.laplace_bound(2.0, -20.0)


def markov(t, log_failure, *reaches):
    """1.01 times Markov's bound for the sum of reach r."""
    farthest = max(reach for reach, _ in reaches)
    grown = -sum(m * math.log(1.0 - t * reach / farthest) for reach, m in reaches)
    return 1.01 * farthest * (grown - log_failure) / t


def test_the_public_bound_is_the_least_of_three():
    """Few dimensions and a small probability ask for a large t, and many dimensions for a small one."""
    for n, log_failure, t in ((2, -140.0, 0.9), (40, -80.0, 0.7), (40, -10.0, 0.5)):
        shape = Bundles((n, 1), (1.0, 0.2), (False, False), ((0,), (1,)), (512, 512))
        reaches = (2.0, n + 1), (0.4, 2)
        assert shape.laplace_bound(1.0, log_failure) == pytest.approx(markov(t, log_failure, *reaches), rel=1e-12)


@pytest.mark.parametrize(("shares", "reaches"), [((100, 924), (10.24, 1024 / 924)), ((924, 100), (1024 / 924, 10.24))])
def test_the_public_bound_counts_the_part_of_the_constant_in_groups_away(shares, reaches):
    """Four levels away hold a quarter of the constant's noise each. That belongs to the bundle of the constant alone."""
    shape = Bundles((4, 1), (2.0, 0.5), (True, False), ((1,), (0,)), shares)
    expected = markov(0.9, -100.0, (math.hypot(0.5, 1.0) * reaches[0], 2), (2.0 * reaches[1], 4))
    assert shape.laplace_bound(2.0, -100.0) == pytest.approx(expected / 2.0)


def test_the_rounding_constants_are_those_of_the_table():
    """In units of 2^-53, proofs/noise.md, section 4: 30 + 2 + 1 for contrasts, and for bundles one more than the home's."""
    for constant, needed in (
        (Contrasts.laplace_error, 33.0 * 2.0**-53),
        (Bundles.laplace_error, Linked.laplace_error + 2.0**-53),
    ):
        assert needed < constant <= 1.1 * needed
    assert Contrasts.laplace_error + 2.0**-53 < Bundles.laplace_error


def test_the_mean_square_counts_the_part_of_the_constant_in_groups_away():
    """Two levels away of scale 4 and a constant of .5: both bundles have one dimension, so that E |b|^2 is known."""
    shape = Bundles((2, 1), (4.0, 0.5), (True, False), ((1,), (0,)), (100, 924))
    # The constant is .5 r, and half of 4 r lies on each level; the levels are t and -t with 2 |t| / 4 = r of another rate.
    expected = 2.0 * (0.5**2 + 4.0**2 / 2) * 10.24**2 + 4.0**2 * (1024 / 924) ** 2
    assert shape.laplace_norm(1.0) ** 2 == pytest.approx(expected)


def test_the_mean_square_of_each_group_is_that_of_draws():
    """Groups away included; together they are the mean square of all. 15% off is noticed."""
    for shape in (SHAPE, shapes_of_groups(*BANK)[-1]):
        sample = draws_of(shape) * RATE
        parts = np.split(sample, np.cumsum(shape.sizes)[:-1], axis=1)
        found = squares_of_groups(shape)
        np.testing.assert_allclose(found, [np.square(part).sum(axis=1).mean() for part in parts], rtol=0.12)
        assert math.fsum(found) == pytest.approx(shape.laplace_norm(1.0) ** 2)


def test_the_noise_of_two_bundles_is_independent():
    """Norms of bundles are uncorrelated, and so are the signs of their entries: no bit is used by two of them."""
    sample = Entropy.seeded(9).laplace(SHAPE, DRAWS, 1.0)
    parts = np.split(sample, np.cumsum(SIZES)[:-1], axis=1)
    lengths = [np.abs(parts[3]).sum(axis=1), np.abs(parts[0]).sum(axis=1), np.ptp(parts[4], axis=1)]
    signs = [parts[3][:, 0], parts[0][:, 0], parts[4][:, 0] - parts[4][:, 1]]
    for first, second in ((0, 1), (0, 2), (1, 2)):
        assert stats.spearmanr(lengths[first], lengths[second]).pvalue > ACCEPT
        assert stats.spearmanr(signs[first], signs[second]).pvalue > ACCEPT


def test_the_noise_of_schemas_falls():
    """Root mean squares of rate 1 beside noise for all groups at once: Bank by 16% and Adult by 20%."""
    for given, ratio in ((BANK, 0.839), (ADULT, 0.804)):
        *together, bundles = shapes_of_groups(*given)
        least = min(shape.laplace_norm(1.0) for shape in together)
        assert bundles.laplace_norm(1.0) / least == pytest.approx(ratio, abs=0.003)
        assert [type(shape) for shape in together] == [Groups, Linked]


def divisions(groups):
    """All divisions of a list into bundles."""
    if not groups:
        yield []
        return
    first, *rest = groups
    for division in divisions(rest):
        yield [[first], *division]
        for i, bundle in enumerate(division):
            yield [*division[:i], [first, *bundle], *division[i + 1 :]]


def test_no_division_has_much_less_noise():
    """All 203 divisions of six groups, with shares that are not rounded, for three choices of sizes and scales."""
    for sizes, scales in (
        ((1, 1, 3, 9, 40, 1), (1.0,) * 6),
        ((5, 5, 8, 2, 30, 1), (1.0, 0.3, 1.0, 1.0, 0.5, 1.0)),
        ((2, 1, 1, 6, 1, 1), (1.0, 4.0, 0.1, 1.0, 1.0, 1.0)),
    ):
        linked = tuple(size > 2 and size != 5 for size in sizes)
        found = min(shape.laplace_norm(1.0) for shape in shapes_of_groups(sizes, scales, linked))
        best = math.inf
        for division in divisions(list(range(6))):
            bundles = tuple(tuple(sorted(bundle)) for bundle in division)
            if len(bundles) == 1:
                continue
            n = len(bundles)
            squares = squares_of_bundles(Bundles(sizes, scales, linked, bundles, (1024 - n + 1, *(1,) * (n - 1))))
            best = min(best, math.fsum(map(math.cbrt, squares)) ** 3)
        assert found <= 1.05 * math.sqrt(best)


def test_shapes_of_many_groups_are_found_fast():
    """Two thousand columns, each of its own scale, and forty categories: at most 32 bundles, in less than two seconds."""
    sizes = (*(1,) * 2000, *(10,) * 40, 1)
    scales = (*np.geomspace(0.01, 100.0, 2000).tolist(), *(1.0,) * 41)
    start = time.process_time()
    shapes = shapes_of_groups(sizes, scales, (*(False,) * 2040, False))
    assert time.process_time() - start < 2.0
    assert 2 <= len(shapes[-1].bundles) <= 32
    assert sum(shapes[-1].shares) == 1024


def test_groups_of_one_kind_stay_together():
    """Without groups that differ there is nothing to divide."""
    assert [shape.name for shape in shapes_of_groups((1,) * 5, (1.0,) * 5, (False,) * 5)] == ["groups"]


@pytest.mark.parametrize(
    ("bundles", "shares"),
    [
        (((0, 1), (2, 3, 5)), (512, 512)),
        (((0, 1, 4), (2, 3, 5)), (512, 500)),
        (((0, 1, 4), (2, 3, 5)), (1024, 0)),
        (((0, 1, 4, 5), (2, 3, 5)), (512, 512)),
        (((1, 0, 4), (2, 3, 5)), (512, 512)),
        (((0, 1, 4), (2, 3, 5), ()), (512, 500, 12)),
        (((0, 1, 4), (2, 3, 5)), (1024,)),
    ],
)
def test_what_is_no_division_is_refused(bundles, shares):
    """A group that is missing or twice, an order, and shares that do not add up to the whole."""
    with pytest.raises(ParameterError, match="1024"):
        Bundles(SIZES, SCALES, FLAGS, bundles, shares)


def test_linked_groups_need_an_intercept_of_their_own():
    """The last group is one column, and free."""
    with pytest.raises(ParameterError, match="intercept"):
        Bundles((2, 2), (1.0, 1.0), (True, False), ((0,), (1,)), (512, 512))


def test_the_public_bound_of_short_rows_is_short():
    """Scales of a hundredth: the length of a row counts, however small."""
    shape = Bundles((1, 1), (0.01, 0.02), (False, False), ((0,), (1,)), (256, 768))
    assert shape.laplace_bound(2.0, -30.0) == pytest.approx(markov(0.9, -30.0, (0.04, 2), (0.02 * 1024 / 768, 2)) / 2.0)


def test_shares_are_in_proportion_to_cube_roots_and_at_least_one_unit():
    """A column of scale s in a bundle of its own has E b^2 = 2 s^2 at the whole share."""
    for scale, expected in ((1.0, (512, 512)), (8.0, (204, 820)), (1e-3, (1014, 10)), (1e-6, (1023, 1))):
        shape = _with_shares((1, 1), (1.0, scale), (False, False), ((0,), (1,)))
        assert shape.shares == expected


@pytest.mark.parametrize("k", range(2, 9))
def test_the_mean_square_of_contrasts_is_that_of_signs_and_a_simplex(k):
    """One of k entries is the median; the k - 1 others lie around it, half on either side, with sizes in a solid simplex.

    With E e^2 = 2 / (k (k + 1)) and half of that for products: entries less their mean have sum c^2 - (sum c)^2 / k.
    """
    n, above = k - 1, (k - 1) // 2
    squares = Fraction(2 * n, k * (k + 1))
    signed_pairs = above * (above - 1) + (n - above) * (n - above - 1) - 2 * above * (n - above)
    exact = squares - (squares + Fraction(signed_pairs, k * (k + 1))) / k
    assert Contrasts((k,), (3.0,), (True,)).solid_mean_square() == pytest.approx(9.0 * float(exact), rel=1e-12)


@pytest.mark.parametrize("seed", range(6))
def test_the_division_has_the_least_sum_of_cube_roots_of_all(seed):
    """Of (D + 1) (D + 2) C, D the sum of the dimensions of a bundle and C that of its mean squares, for six groups."""
    rng = np.random.default_rng(seed)
    sizes, scales = tuple(rng.integers(1, 40, 6).tolist()), tuple((10.0 ** rng.uniform(-1.5, 1.5, 6)).tolist())

    def of_one(groups):
        shape = Contrasts(tuple(sizes[g] for g in groups), tuple(scales[g] for g in groups), (False,) * len(groups))
        return math.cbrt((shape.free_dimension + 1) * (shape.free_dimension + 2) * shape.solid_mean_square())

    def cost(bundles):
        return math.fsum(map(of_one, bundles))

    least = min(map(cost, divisions(list(range(6)))))
    assert cost(_divided(sizes, scales, (False,) * 6)) <= least * (1.0 + 1e-3)


def test_one_bundle_of_all_groups_is_linked_if_any_is():
    """Then the constant is not counted twice; without links the plain groups hold the rows."""
    for flags, kind in (((True, False, False), Linked), ((False, False, False), Groups)):
        assert type(_with_shares((3, 2, 1), (1.0, 1.0, 1.0), flags, ((0, 1, 2),))) is kind


@pytest.mark.parametrize("scale", [0.3, 3.0])
def test_the_constant_of_a_group_away_lengthens_its_own_bundle_alone(scale):
    """Four levels of a group away hold s^2 / 4 of its square."""
    shape = Bundles((4, 1), (scale, 0.5), (True, False), ((1,), (0,)), (100, 924))
    expected = markov(0.9, -100.0, (math.sqrt(0.5**2 + scale**2 / 4) * 10.24, 2), (scale * 1024 / 924, 4))
    assert shape.laplace_bound(2.0, -100.0) == pytest.approx(expected / 2.0)


def test_a_linked_group_of_two_levels_is_linked():
    """It is away from no constant; one of a single level is a column of its own."""
    assert [type(shape) for shape in shapes_of_groups((2, 1), (1.0, 1.0), (True, False))[:2]] == [Groups, Linked]
    assert Linked not in {type(shape) for shape in shapes_of_groups((1, 1), (1.0, 1.0), (True, False))}


def test_a_linked_group_of_one_column_is_not_treated_as_linked():
    """It would be constant, and take the only dimension of its noise away."""
    shape = Bundles((1, 2, 1), (1.0, 1.0, 0.5), (True, True, False), ((0,), (1, 2)), (512, 512))
    assert shape.linked == (False, True, False)
    assert shape.free_dimension == 3


@pytest.mark.parametrize("levels", [(20,), (7, 3, 3, 50), (100, 100), (200, 3), (30, 29, 28, 1, 1, 5)], ids=str)
def test_mean_squares_made_of_doubles_are_those_of_whole_numbers(levels):
    """To within far less than any choice depends on."""
    exact, found = group_shapes._section_mean_squares(levels), group_shapes._section_mean_squares_of_doubles(levels)
    assert found[0] == pytest.approx(exact[0], rel=1e-11)
    assert found[1] == pytest.approx(exact[1], rel=1e-11)


@pytest.mark.parametrize(
    "sizes", [(100_000,), (100_000, 5, 1, 1), (5_000, 5_000), tuple(range(2, 62))], ids=lambda sizes: len(sizes)
)
def test_shapes_of_very_many_levels_take_little_time(sizes):
    """A category of ICD-10 has 70,000 levels. Their noise is divided from that of the constant."""
    start = time.process_time()
    linked = tuple(size > 1 for size in sizes)
    shapes = shapes_of_groups((*sizes, 1), (1.0,) * (len(sizes) + 1), (*linked, False))
    assert time.process_time() - start < 4.0
    best = min(shapes, key=lambda shape: shape.laplace_norm(1.0))
    assert isinstance(best, Bundles)
    assert best.laplace_norm(1.0) < 0.8 * shapes[0].laplace_norm(1.0)


def test_too_many_levels_are_not_linked_with_the_constant():
    """Up to 2,000 after the first, together or in the bundle of the constant."""
    for size, is_linked in ((2_001, True), (2_002, False)):
        shapes = shapes_of_groups((size, 1), (1.0, 1.0), (True, False))
        assert any(isinstance(shape, Linked) for shape in shapes) == is_linked
        homes = [shape.shape_of(shape.home) for shape in shapes if isinstance(shape, Bundles)]
        assert homes
        assert all(not isinstance(home, Linked) or sum(home.levels) <= 2_000 for home in homes)
