"""Centred rows: exact after clipping, the same for every layout, and never writing to the user's array."""

from __future__ import annotations

import math
import pickle
from copy import deepcopy
from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse

from confide.data.arrays import ArrayBlocks, MemorySource
from confide.erm.coded_rows import CodedLayout, CodedRows, JoinedRows
from confide.erm.group_bounds import BoxBound, GroupBound
from confide.erm.losses import HuberHinge, LogisticLoss
from confide.erm.row_bounds import LEAST_RADIUS, BallBound, Centred, CentredRows
from confide.erm.row_sums import RowSum
from confide.errors import ParameterError

LAYOUT = CodedLayout(9, ((0, 2), (7, 9)), ((2, 7),))
GROUPS = GroupBound((2, 5, 2), (1.0, 1.0, 1.0), (True, False, True))


def rows_and_labels(n=300, d=5, seed=0):
    """Rows about a middle, some of them 0 in places, and labels."""
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(n, d)) + 0.5
    rows[np.abs(rows) < 0.3] = 0.0
    return rows, rng.choice([-1, 1], size=n).astype(np.int8)


def coded(n, seed=0, noise=0.0):
    """Rows of two categories and a number with knots; with noise, entries of many sizes."""
    rng = np.random.default_rng(seed)
    columns, entries = np.empty(n * LAYOUT.width, np.int32), np.ones(n * LAYOUT.width)
    single, first, second = LAYOUT.parts(columns)
    single[...] = np.column_stack([rng.integers(*interval, n) for interval in LAYOUT.singles])
    first[:, 0] = rng.integers(2, 6, n)
    second[...] = first + 1
    _, rising, falling = LAYOUT.parts(entries)
    rising[...] = rng.random((n, 1))
    falling[...] = 1.0 - rising
    entries *= np.exp(noise * rng.normal(size=entries.size))
    return CodedRows(LAYOUT, columns, entries)


def bound_near(rows, inner, radius=LEAST_RADIUS, shortened=1.0):
    """A bound whose centre is the middle of some rows, as long as the inner bound allows, times a factor."""
    middle = rows.mean(axis=0) * shortened
    middle *= min(1.0, inner.l2_norm / np.linalg.norm(middle))
    return Centred(inner, tuple(middle), radius * inner.l2_norm)


def exact_square(row):
    return sum((Fraction(float(x)) ** 2 for x in row), Fraction(0))


def exact_centred(clipped, bound, factors):
    """Squared norms of factor (x - m) in rational arithmetic."""
    centre = [Fraction(m) for m in bound.centre]
    for row, factor in zip(clipped, factors, strict=True):
        moved = [Fraction(float(x)) - m for x, m in zip(row, centre, strict=True)]
        yield Fraction(float(factor)) ** 2 * sum((v * v for v in moved), Fraction(0))


@pytest.mark.parametrize("d", [1, 5, 60])
@pytest.mark.parametrize("norm", [1e-6, 1.0, 3.7, 1e6])
def test_centred_rows_obey_the_norm_of_the_inner_bound_in_exact_arithmetic(d, norm):
    """Rational arithmetic, dense rows of all sizes, and rows that end close to the radius; most are shortened."""
    rng = np.random.default_rng(d)
    inner = BallBound(norm)
    rows = rng.normal(size=(300, d)) * 10.0 ** rng.uniform(-3, 3, size=(300, 1)) * norm
    bound = Centred(inner, tuple(inner.clip(np.full((1, d), norm))[0]), norm * rng.uniform(LEAST_RADIUS, 1.0))
    centred = bound.clip(rows)
    squares = [exact_square(row) for row in centred]
    assert max(squares) <= Fraction(norm) ** 2
    # The margin is small: rows that are shortened keep nearly all of the norm.
    assert float(max(squares)) >= norm**2 * (1.0 - 1e-9)


@pytest.mark.parametrize("kind", ["sparse", "coded"])
def test_sparse_and_coded_centred_rows_obey_the_norm_in_exact_arithmetic(kind):
    """Their squared distances cancel: rows close to a centre as long as the bound, and rows at the radius."""
    worst = Fraction(0)
    for seed in range(20):
        if kind == "coded":
            rows, inner = coded(60, seed, noise=1.0), BallBound(1.2)
        else:
            rows, inner = scipy.sparse.csr_array(rows_and_labels(60, 5, seed)[0]), BallBound(1.2)
        dense = rows.dense() if kind == "coded" else rows.toarray()
        bound = bound_near(inner.clip(np.array(dense)), inner, shortened=3.0)
        block = bound.clip(rows)
        assert type(block) is CentredRows
        kept = block.rows.dense() if kind == "coded" else block.rows.toarray()
        worst = max(worst, *exact_centred(kept, bound, block.factors))
    assert Fraction(1 - 1e-6) * Fraction(1.2) ** 2 <= worst <= Fraction(1.2) ** 2


def test_a_row_within_the_radius_is_moved_and_magnified_and_others_are_shortened():
    """The formula f s (x - m), on rows whose distances from the centre are known."""
    bound = Centred(BallBound(2.0), (1.0, 0.0), 1.25)
    rows = np.array([[1.0, 0.5], [1.0, -1.5], [-1.0, 0.0], [30.0, 0.0]])
    expected = np.array([[0.0, 0.8], [0.0, -2.0], [-2.0, 0.0], [1.6, 0.0]])
    np.testing.assert_allclose(bound.clip(rows), expected, rtol=1e-10)
    np.testing.assert_allclose(bound.clip(scipy.sparse.csr_array(rows)).dense(), expected, rtol=1e-10, atol=1e-15)
    assert bound.magnification == 1.6
    assert bound.l2_norm == 2.0


@pytest.mark.parametrize("layout", ["dense", "float32", "sparse", "coded"])
@pytest.mark.parametrize("loss", [LogisticLoss(), HuberHinge(0.5)], ids=lambda loss: loss.constants.name)
@pytest.mark.parametrize("radius", [0.5, 0.8, 1.0])
def test_sums_over_centred_rows_are_those_over_rows_that_were_moved_by_hand(layout, loss, radius):
    """Value, gradient and Hessian of three problems with weights of rows, whatever the layout."""
    rng = np.random.default_rng(3)
    if layout == "coded":
        given, inner = coded(300), GROUPS
        rows, labels = given.dense(), rng.choice([-1, 1], size=300).astype(np.int8)
    else:
        rows, labels = rows_and_labels()
        inner = BallBound(2.0) if layout != "sparse" else BoxBound([1.0] * 5)
        given = {"dense": rows, "float32": rows.astype(np.float32), "sparse": scipy.sparse.csr_array(rows)}[layout]
        rows = rows.astype(np.float32) if layout == "float32" else rows
    inside = np.asarray(inner.clip(np.array(rows, dtype=np.float64)))
    bound = bound_near(inside, inner, radius, shortened=0.9)
    moved = inside - np.array(bound.centre)
    lengths = np.linalg.norm(moved, axis=1, keepdims=True)
    moved *= np.minimum(1.0, bound.radius / lengths) * inner.l2_norm / bound.radius
    counts, weights = rng.uniform(0.0, 2.0, len(rows)), rng.normal(size=(3, rows.shape[1] + 1))
    for order in (0, 1, 2):
        found, expected = (RowSum(loss, each, 0.7, order, 2.0) for each in (bound, BallBound(1e3)))
        totals, by_hand = found.start(3, rows.shape[1]), expected.start(3, rows.shape[1])
        found.add_block(totals, given, labels, weights, counts)
        expected.add_block(by_hand, moved, labels, weights, counts)
        for name in ("value", "gradient", "hessian"):
            pair = (getattr(row_sum.completed(each), name) for row_sum, each in ((found, totals), (expected, by_hand)))
            np.testing.assert_allclose(*pair, rtol=1e-8, atol=1e-8)
    if radius < 1.0:
        assert (lengths > bound.radius).any()


def test_a_source_sums_sparse_rows_without_making_them_dense(monkeypatch):
    """Gradients and Hessians of sparse rows agree with those of dense ones, and no block is ever made dense."""
    rows, labels = rows_and_labels()
    bound = bound_near(rows, BallBound(2.0), 0.7, shortened=0.5)
    monkeypatch.setattr(CentredRows, "dense", None)
    weights = np.random.default_rng(1).normal(size=(2, 6))
    for order in (1, 2):
        row_sum = RowSum(LogisticLoss(), bound, 1.0, order)
        sparse = MemorySource(ArrayBlocks(scipy.sparse.csr_array(rows)), labels).sum_over_rows(row_sum, weights)
        dense = MemorySource(ArrayBlocks(rows), labels).sum_over_rows(row_sum, weights)
        np.testing.assert_allclose(sparse.gradient, dense.gradient, rtol=1e-10, atol=1e-10)
        np.testing.assert_allclose(sparse.hessian, dense.hessian, rtol=1e-10, atol=1e-10)


def test_squares_of_columns_are_those_of_the_rows():
    """The scales of columns for wide problems."""
    rows, _ = rows_and_labels()
    block = bound_near(rows, BallBound(2.0), 0.7, shortened=0.5).clip(scipy.sparse.csr_array(rows))
    np.testing.assert_allclose(block.column_squares(), (block.dense() ** 2).sum(axis=0), rtol=1e-12)


def test_the_users_array_is_never_written_to():
    """Neither with memory to write to nor without."""
    rows, _ = rows_and_labels()
    before = rows.copy()
    bound = bound_near(rows, BallBound(1.0))
    memory = np.empty_like(rows)
    assert bound.clip(rows, memory) is memory
    assert np.array_equal(bound.clip(rows), memory)
    assert np.array_equal(rows, before)


def test_a_bound_without_a_centre_leaves_rows_where_they_are():
    """The bound of a plan, before a centre is known."""
    rows, _ = rows_and_labels()
    bound = Centred.unmoved(BallBound(2.0), 5)
    assert bound.l2_norm == 2.0
    np.testing.assert_allclose(bound.clip(rows), BallBound(2.0).clip(rows), rtol=1e-9)


@pytest.mark.parametrize(
    ("centre", "radius"),
    [
        ((1.5, 0.0), 1.0),
        ((0.0, 0.0), 0.49),
        ((0.0, 0.0), 1.01),
        ((math.nan, 0.0), 1.0),
        ((0.0,), 1.0),
        ((0.0, 0.0), math.nan),
    ],
)
def test_a_centre_or_radius_for_which_nothing_is_proven_is_refused(centre, radius):
    """Too far away, too small or large a radius, not a number, or of another width."""
    with pytest.raises(ParameterError):
        Centred(GroupBound((2,), (1.0,)), centre, radius)


def test_unbounded_and_centred_rows_cannot_be_centred():
    """There is no norm to fall below, and one centre is enough."""
    with pytest.raises(ParameterError, match="finite"):
        Centred(BallBound(math.inf), (0.0,), 1.0)
    with pytest.raises(ParameterError, match="already"):
        Centred.unmoved(Centred.unmoved(BallBound(1.0), 2), 2)
    with pytest.raises(ParameterError, match="columns"):
        Centred.unmoved(BallBound(1.0), 2).clip(np.ones((3, 4)))


def test_it_is_a_value_that_can_be_copied_and_pickled():
    """Workers get it pickled, solvers a copy; equal bounds are one key."""
    bound = Centred(BallBound(1.0), (0.5, 0.25), 0.75)
    for other in (pickle.loads(pickle.dumps(bound)), deepcopy(bound), Centred(BallBound(1.0), [0.5, 0.25], 0.75)):
        assert other == bound
        assert hash(other) == hash(bound)
        assert np.array_equal(other.clip(np.eye(2)), bound.clip(np.eye(2)))


@pytest.mark.parametrize(("d", "margin"), [(1, 2.0**-40), (504, 2.0**-40), (505, 513 * 2.0**-49), (2000, 2008 * 2.0**-49)])
def test_the_radius_has_the_margin_of_the_proof(d, margin):
    """2^-40, or d + 8 units of 2^-49: a row as far as that is magnified alone, one farther is shortened to it."""
    bound = Centred(BallBound(4.0), (0.0,) * d, 2.0)
    radius = 2.0 * (1.0 - margin)
    for distance, expected in ((radius, 2.0 * radius), (math.nextafter(radius, 3), 2.0 * radius), (3.0, 2.0 * radius)):
        rows = np.zeros((1, d))
        rows[0, -1] = distance
        for form in (rows, scipy.sparse.csr_array(rows)):
            moved = bound.clip(form)
            entry = (moved if form is rows else moved.dense())[0, -1]
            assert entry == pytest.approx(expected, rel=2.0**-51, abs=0.0)
    assert bound.factors(np.array([radius * radius, np.nan]))[0] == 2.0
    assert bound.factors(np.array([4.0 * radius * radius]))[0] == 1.0


def test_the_ranges_of_centres_and_radii_have_both_their_ends():
    """A centre may be as long as the bound, with 2^-40 for its rounding; a radius is half of the bound to all of it."""
    for radius in (1.0, 2.0):
        assert Centred(BallBound(2.0), (0.0, 2.0), radius).magnification == 2.0 / radius
    assert Centred(BallBound(2.0), (2.0 * (1.0 + 2.0**-40), 0.0), 1.0).centre == (2.0 * (1.0 + 2.0**-40), 0.0)
    for centre, radius in (
        ((2.0 * (1.0 + 2.0**-39), 0.0), 1.0),
        ((2.0, 0.0), math.nextafter(1.0, 0.0)),
        ((2.0, 0.0), math.nextafter(2.0, 3.0)),
        ((1.5, -1.5), 1.5),
    ):
        with pytest.raises(ParameterError, match="a centre must obey the bound"):
            Centred(BallBound(2.0), centre, radius)


def test_a_bound_is_shown_and_written_without_what_is_computed():
    """And a middle and a radius, where they are known."""
    bound = Centred(BallBound(1.0), (0.5, 0.25), 0.75)
    assert repr(bound) == "Centred(inner=BallBound(norm=1.0), centre=(0.5, 0.25), radius=0.75)"
    inner = {"kind": "ball", "norm": 1.0}
    assert bound.to_dict() == {"kind": "centred", "inner": inner, "radius": 0.75, "middle": [0.5, 0.25]}
    assert Centred.unmoved(BallBound(1.0), 2).to_dict() == {"kind": "centred", "inner": inner}
    from_whole_numbers = Centred(BallBound(2.0), [1, 0], np.float32(1.5))
    assert {type(each) for each in (*from_whole_numbers.centre, from_whole_numbers.radius)} == {float}
    unmoved = Centred.unmoved(BallBound(2.0), 3)
    assert (unmoved.centre, unmoved.radius, unmoved.magnification) == ((0.0, 0.0, 0.0), 2.0, 1.0)


@pytest.mark.parametrize("kind", ["sparse", "coded", "joined"])
def test_products_with_centred_rows_are_those_of_their_definition(kind):
    """Scores, sums, squared lengths and the sums of numbers, each by the rows that were moved by hand."""
    rng, blocks = np.random.default_rng(5), [coded(20, 1), coded(7, 2)]
    whole = np.vstack([each.dense() for each in blocks])
    rows = {"sparse": scipy.sparse.csr_array(whole), "coded": coded(27, 1), "joined": JoinedRows.of(blocks)}[kind]
    whole = rows.dense() if kind == "coded" else whole
    centre, factors = rng.normal(size=9), rng.uniform(0.5, 2.0, 27)
    moved = (whole - centre) * factors[:, None]
    lengths = ((whole - centre) ** 2).sum(axis=1)
    block = CentredRows(rows, factors, centre, lengths)
    vectors, numbers = rng.normal(size=(9, 2)), rng.normal(size=(27, 2))
    assert block.shape == (27, 9)
    np.testing.assert_allclose(block.times(vectors), moved @ vectors, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(block.weighted_sums(numbers), numbers.T @ moved, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(block.sums_of(numbers), numbers.sum(axis=0), rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(block.squares(), (moved**2).sum(axis=1), rtol=1e-12)
    if kind != "joined":
        np.testing.assert_allclose(block.dense(), moved, rtol=1e-12)
    if kind == "sparse":
        weights = rng.normal(size=27)
        np.testing.assert_allclose(block.products(weights), (moved * weights[:, None]).T @ moved, rtol=1e-11, atol=1e-11)
        np.testing.assert_allclose(block.column_squares(), (moved**2).sum(axis=0), rtol=1e-12)


def test_squared_lengths_that_rounding_makes_negative_are_none():
    """A row at its centre, and columns that are constant, have no length; a root of less would be no number."""
    rng, found = np.random.default_rng(6), []
    for _ in range(50):
        row = rng.normal(size=(1, 5))
        bound = Centred(BallBound(10.0), tuple(row[0]), 10.0)
        block = bound.clip(scipy.sparse.csr_array(np.repeat(row, 3, axis=0)))
        found += [*block.squared_lengths, *block.squares(), *block.column_squares()]
    assert 0.0 <= min(found) <= max(found) < 1e-13
