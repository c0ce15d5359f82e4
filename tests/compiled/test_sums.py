"""Gradients for certificates by the kernel: those of exact arithmetic within theorem 2, and those of NumPy."""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass

import mpmath
import numpy as np
import pytest

import confide
from confide.compiled import sums as clipped_sums
from confide.compiled import sums as trials
from confide.compiled.stored_rows import StoredArray
from confide.compiled.sums import ClippedSum, by_kernel
from confide.data.arrays import ArrayBlocks, MemorySource, StoredBlocks, rows_in_block
from confide.erm.linear_sums import SumOfRows
from confide.erm.losses import HuberHinge, LogisticHinge, LogisticLoss, SmoothHinge
from confide.erm.row_bounds import BallBound, Centred
from confide.erm.row_sums import RowSum
from confide.erm.target_losses import MeanLoss, SquaredLoss
from confide.erm.transformed_losses import ClippedSlopes
from tests.compiled.test_sums_scaled_sums import fixed

UNIT = 2.0**-53
LOSSES = [LogisticLoss(), LogisticHinge(0.5), HuberHinge(0.3), SmoothHinge(0.2), SumOfRows(), SquaredLoss(0.8, 1.0)]
LAYOUTS = {
    "rows": np.ascontiguousarray,
    "columns": np.asfortranarray,
    "single": lambda rows: rows.astype(np.float32),
    "single columns": lambda rows: np.asfortranarray(rows, np.float32),
    "gaps": lambda rows: np.repeat(np.repeat(rows, 2, axis=0), 3, axis=1)[::2, ::3],
    "backwards": lambda rows: rows[::-1].copy()[::-1],
}


@pytest.fixture(params=["", "plain"], autouse=True)
def instructions(request, monkeypatch, compiled):
    """Sums by the instructions of this processor, and by those that every processor has."""
    monkeypatch.setenv("CONFIDE_COMPILED", request.param)


def summed(row_sum, rows, labels, weights, row_weights=None, block=64):
    """The sum over some blocks by the kernel."""
    compiled_sum = by_kernel(row_sum, 1, block)
    assert type(compiled_sum) is ClippedSum
    totals = compiled_sum.start(1, rows.shape[1])
    compiled_sum.add_block(totals, StoredArray(rows), labels, weights, row_weights)
    return totals.gradient[0]


def by_numpy(row_sum, rows, labels, weights, row_weights=None):
    """The same by `RowSum`."""
    totals = row_sum.start(1, rows.shape[1])
    row_sum.add_block(totals, rows, labels, weights, row_weights)
    return totals.gradient[0]


@pytest.mark.parametrize("shape", [(1, 1), (1, 4), (3, 5), (4, 3), (259, 6), (700, 20), (300, 27), (65, 103), (33, 1100)])
@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: loss.constants.name)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_sums_are_those_of_numpy(loss, shape, layout):
    """In every layout; with weights of rows below 0, beyond their bound and not a number; with an intercept and without."""
    rng = np.random.default_rng(shape[0])
    rows = LAYOUTS[layout](rng.normal(size=shape) * rng.uniform(0.01, 2.0, size=(shape[0], 1)) / math.sqrt(shape[1]))
    before = rows.copy()
    labels, row_weights = rng.choice([-1, 1], shape[0]).astype(np.int8), rng.uniform(-0.5, 2.5, shape[0])
    row_weights[::7] = np.nan
    for norm, intercept, counts, largest in ((0.6, 0.0, None, 1.5), (0.6, 0.7, row_weights, 1.5), (50.0, 0.7, None, 0.8)):
        row_sum = RowSum(loss, BallBound(norm), intercept, 1, largest)
        weights = 5.0 * rng.normal(size=(1, row_sum.n_weights(shape[1])))
        found = summed(row_sum, rows, labels, weights, counts)
        expected = by_numpy(row_sum, rows, labels, weights, counts)
        np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-13 * shape[0])
    np.testing.assert_array_equal(rows, before)


def exact_total(row_sum, rows, labels, weights, row_weights):
    """The sum of exact slopes times rows (exact entries, the constant among them)."""
    number, loss = mpmath.mpf, row_sum.loss
    total = [number(0)] * weights.size
    for entries, label, count in zip(rows, labels, row_weights, strict=True):
        margin = int(label) * mpmath.fsum(x * number(float(w)) for x, w in zip(entries, weights[0], strict=True))
        if type(loss) is SumOfRows:
            slope = int(label)  # whatever the label is, 1
        elif type(loss) is SquaredLoss:
            clipped = min(max(int(label), number(-loss.target_bound)), number(loss.target_bound))
            slope = int(label) * min(max(int(label) * margin - clipped, -number(loss.threshold)), number(loss.threshold))
        elif loss.constants.tapered:
            slope = -1 / (1 + mpmath.exp(margin - number(getattr(loss, "margin", 0.0))))
        else:
            place = max(number(-1), min(number(1), (1 - margin) / number(loss.smoothing)))
            slope = -(1 + place) / 2 if loss.constants.name == "huber_hinge" else -(2 + 3 * place - place**3) / 4
        slope *= int(label) * min(max(number(float(count)), 0), number(row_sum.largest_weight))
        total = [t + slope * x for t, x in zip(total, entries, strict=True)]
    return total


def test_targets_are_clipped_as_by_numpy():
    """Far beyond their bound, infinite, and no number, which counts as the lowest: to the bit."""
    rng, row_sum = np.random.default_rng(3), RowSum(SquaredLoss(2.0, 3.0), BallBound(1.0), 0.5, 1)
    for target in (1e300, -1e300, np.inf, -np.inf, np.nan, 2.5, 1.0):
        rows, weights = rng.normal(size=(1, 6)) / 9.0, rng.normal(size=(1, 7))
        found, expected = (of(row_sum, rows, np.array([target]), weights) for of in (summed, by_numpy))
        np.testing.assert_allclose(found, expected, rtol=1e-14)
        lowest = by_numpy(row_sum, rows, np.array([-2.0 if np.isnan(target) else np.clip(target, -2.0, 2.0)]), weights)
        np.testing.assert_allclose(found, lowest, rtol=1e-14)


def exact_rows(row_sum, rows):
    """Rows as exact numbers, with the constant of the intercept."""
    constant = [mpmath.mpf(row_sum.intercept)] if row_sum.intercept else []
    return [[mpmath.mpf(float(x)) for x in row] + constant for row in rows]


def exact_sum(row_sum, rows, labels, weights, row_weights):
    """The sum of the theorem: rows clipped in exact arithmetic, and exact slopes."""
    radius, clipped = mpmath.mpf(row_sum.row_bound._radius(rows.shape[1])), []
    for row in exact_rows(row_sum, rows):
        d = rows.shape[1]
        length = mpmath.sqrt(mpmath.fsum(x * x for x in row[:d]))
        clipped.append([x * (radius / length) if length > radius else x for x in row[:d]] + row[d:])
    return exact_total(row_sum, clipped, labels, weights, row_weights)


@dataclass(frozen=True)
class Hostile:
    """Rows and weights at an end of what the theorem allows, the bound on rows, and the constant of the intercept."""

    rows: np.ndarray
    weights: np.ndarray
    norm: float = 1.3
    intercept: float = 0.5


def cancelling(rng, n, d):
    rows = rng.normal(size=(n, d)) * 10.0 ** rng.choice([-9, -1, 0, 3, 58], size=(n, 1))
    weights = 40.0 * rng.normal(size=(1, d + 1))
    rows[:, 0], weights[0, 0] = rows[:, 1] * (1.0 + 2.0**-30), -weights[0, 1]
    return Hostile(rows, weights)


def opposite(rng, n, d):
    rows = rng.normal(size=(n, d))
    rows[1::2] = -rows[0::2][: len(rows[1::2])]
    return Hostile(rows, 1e3 * rng.normal(size=(1, d + 1)), 0.3)


def subnormal(rng, n, d):
    sizes = 10.0 ** rng.choice([-310, -300, -160, -1], size=(n, d))
    return Hostile(rng.normal(size=(n, d)) * sizes, rng.normal(size=(1, d + 1)))


def smallest(rng, n, d):
    """Rows of up to 2^198 radii, which the kernel still shortens, in the smallest ball."""
    rows = rng.normal(size=(n, d)) * 2.0 ** rng.choice([-290, -295, -100, -95], size=(n, 1)) / d
    return Hostile(rows, 2.0**290 * rng.normal(size=(1, d + 1)), 2.0**-290, 2.0**-291)


def largest(rng, n, d):
    rows = rng.normal(size=(n, d)) * 2.0 ** rng.choice([290, 300, 480], size=(n, 1)) / d
    return Hostile(rows, 2.0**-289 * rng.normal(size=(1, d + 1)), 2.0**290, 2.0**289)


def on_the_sphere(rng, n, d):
    """Their computed lengths lie on both sides of the radius to which rows are shortened."""
    rows = rng.normal(size=(n, d))
    rows *= BallBound(1.3)._radius(d) / np.linalg.norm(rows, axis=1)[:, None] * (1.0 + UNIT * rng.integers(-3, 4, (n, 1)))
    return Hostile(rows, 8.0 * rng.normal(size=(1, d + 1)))


def single_precision(rng, n, d):
    rows = rng.normal(size=(n, d)) * 10.0 ** rng.choice([-44, -20, 0, 30], size=(n, 1))
    return Hostile(rows.astype(np.float32), rng.normal(size=(1, d + 1)))


KINDS = [cancelling, opposite, subnormal, smallest, largest, on_the_sphere, single_precision]


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: loss.constants.name)
@pytest.mark.parametrize("layout", ["rows", "columns"])
def test_the_error_is_within_theorem_2(loss, kind, layout):
    """Against 60 digits, with the allowance of one block: no ridge, no noise, and the numbers of the theorem."""
    rng = np.random.default_rng(5)
    worst = 0.0
    for n, d in ((1, 4), (9, 3), (40, 6), (37, 33), (130, 5)):
        case = kind(rng, n, d)
        labels, row_weights = rng.choice([-1, 1], n).astype(np.int8), rng.uniform(0.0, 2.0, n)
        row_sum = RowSum(loss, BallBound(case.norm), case.intercept, 1, 1.5)
        rows = LAYOUTS[layout](case.rows)
        kernel = by_kernel(row_sum, 1, 256)
        # The kernel itself makes these sums; NumPy has none of them to mend.
        assert kernel._sums(StoredArray(rows), labels, case.weights[0], row_weights) is not None
        with np.errstate(under="ignore"):
            found = summed(row_sum, rows, labels, case.weights, row_weights, 256)
        with mpmath.workdps(60):
            exact = exact_sum(row_sum, rows, labels, case.weights, row_weights)
            apart = mpmath.fsum((mpmath.mpf(float(one)) - other) ** 2 for one, other in zip(found, exact, strict=True))
            error = mpmath.sqrt(apart)
            size, longest = d + 1, math.hypot(case.norm, case.intercept)
            at = mpmath.sqrt(mpmath.fsum(mpmath.mpf(float(w)) ** 2 for w in case.weights[0]))
            scores = (2 * size + 5) * loss.constants.smoothness * longest * at
            allowed = 1.01 * UNIT * n * 1.5 * longest * (n + size + 5 + 13 + scores)
            worst = max(worst, float(error / allowed))
    assert worst <= 1.0
    # An allowance that is far too small would not pass, and neither would rows at which nothing is rounded.
    assert worst > 1e-6


def scaled_error(row_sum, rows, labels, weights):
    """The error of a sum over its allowance for one block, of rows with a constant."""
    found = summed(row_sum, rows, labels, weights, None, 1 << 20)
    with mpmath.workdps(60):
        exact = exact_sum(row_sum, rows, labels, weights, np.ones(len(rows)))
        return [float((mpmath.mpf(float(one)) - other) / UNIT) for one, other in zip(found, exact, strict=True)]


def test_scores_and_rows_need_at_least_half_of_their_allowance_together_with_sums():
    """Slopes of a steep hinge magnify the rounding of scores: half of what is allowed for one rounding is reached."""
    rng = np.random.default_rng(2)
    loss, worst = HuberHinge(2.0**-20), 0.0
    row_sum = RowSum(loss, BallBound(4.0), 0.0, 1)
    for _ in range(300):
        row = np.zeros((1, 4))
        row[0, :2] = rng.uniform(0.5, 1.0, 2)
        weights = np.zeros((1, 4))
        weights[0, 0] = rng.uniform(1e3, 2e3)
        # The margin is about 1, the difference of two large products.
        weights[0, 1] = (1.0 - row[0, 0] * weights[0, 0]) / row[0, 1]
        error = scaled_error(row_sum, row, np.ones(1, np.int8), weights)[0]
        products = abs(row[0, 0] * weights[0, 0]) + abs(row[0, 1] * weights[0, 1])
        worst = max(worst, abs(error) / (loss.constants.smoothness * products * row[0, 0]))
    # Of two products and their sum, one rounding each: between a quarter and one and a half.
    assert 0.2 < worst <= 1.5


@pytest.mark.parametrize(("d", "layout"), [(5, "rows"), (3, "rows"), (3, "columns"), (5, "single")])
def test_chains_of_additions_are_no_longer_than_those_of_numpy(d, layout):
    """Terms just below half a unit are lost, one by one, beside a large one: as many as the longest chain has additions.

    With blocks no more are lost than the allowance has room for. In one long chain many more would be lost.
    """
    block, n = 64, 64 * 32
    # Slopes are -1/2 at weights of 0. The first row adds 1, and any four others just below half a unit of it.
    rows = np.full((n, d), 0.24 * 2.0**-53)
    rows[0] = 2.0
    row_sum = RowSum(LogisticLoss(), BallBound(2.0**20), 0.0, 1)
    labels, weights = np.ones(n, np.int8), np.zeros((1, d))
    rows = LAYOUTS[layout](rows)

    def lost(rows_at_once):
        found = by_kernel(row_sum, 1, rows_at_once)._sums(StoredArray(rows), labels, weights[0], None)[:d]
        exact = -0.5 * (2.0 + (n - 1) * 0.24 * 2.0**-53)
        return float(np.abs(found - exact).max()) / UNIT

    assert lost(block) <= block + 32
    assert lost(n) > 1.5 * lost(block)


def test_the_exponential_errs_by_at_most_three_units():
    """Where scores are far below 0 a slope is the exponential itself: 1/(1 + t) adds two roundings of its own."""
    rng = np.random.default_rng(0)
    row_sum = RowSum(LogisticLoss(), BallBound(2.0), 0.0, 1)
    rows, labels, worst = np.array([[1.0, 0.0, 0.0, 0.0]]), np.array([-1], np.int8), 0.0
    for score in rng.uniform(-700.0, -60.0, 3000):
        found = summed(row_sum, rows, labels, np.array([[score, 0.0, 0.0, 0.0]]))[0]
        with mpmath.workdps(40):
            # 1 + e^-z is e^-z to 1e-26 here, so the quotient alone rounds beside the exponential.
            exact = 1 / (1 + mpmath.exp(-mpmath.mpf(float(score))))
            worst = max(worst, float(abs(mpmath.mpf(float(found)) - exact) / exact) / UNIT)
    assert 1.5 < worst <= 3.0 + 1.0


def source_of(rows, labels, n_threads=1, row_weights=None):
    return MemorySource(ArrayBlocks(rows), labels, row_weights, n_threads)


def test_sums_are_equal_to_the_bit_for_any_number_of_threads(monkeypatch):
    """And those of a source without the kernel to rounding."""
    rng = np.random.default_rng(2)
    rows, labels = rng.normal(size=(300_000, 12)), rng.choice([-1, 1], 300_000).astype(np.int8)
    row_sum, weights = RowSum(LogisticLoss(), BallBound(3.0), 1.0, 1), rng.normal(size=(1, 13))
    found = [source_of(rows, labels, k).sum_over_rows(row_sum, weights).gradient for k in (1, 2, 3)]
    np.testing.assert_array_equal(found[0], found[1])
    np.testing.assert_array_equal(found[0], found[2])
    monkeypatch.setenv("CONFIDE_COMPILED", "0")
    without = source_of(rows, labels).sum_over_rows(row_sum, weights).gradient
    np.testing.assert_allclose(found[0], without, rtol=1e-11)
    assert (found[0] != without).any()


def test_a_pass_reads_labels_and_weights_of_the_same_rows():
    """Several blocks and groups: what belongs to a row is found by its place among all rows."""
    rng = np.random.default_rng(9)
    n = 2 * 32 * rows_in_block(700) + 77
    rows, labels = rng.normal(size=(n, 700)).astype(np.float32), rng.choice([-1, 1], n).astype(np.int8)
    counts, weights = rng.uniform(0.0, 1.0, n), rng.normal(size=(1, 700))
    row_sum = RowSum(SmoothHinge(0.5), BallBound(20.0), 0.0, 1)
    found = source_of(rows, labels, 2, counts).sum_over_rows(row_sum, weights).gradient[0]
    slopes = labels * row_sum.loss.derivative(labels * (row_sum.row_bound.clip(rows) @ weights[0])) * counts
    np.testing.assert_allclose(found, slopes @ row_sum.row_bound.clip(rows), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize(
    "row_sum",
    [
        RowSum(MeanLoss(1.0, 1.0), BallBound(1.0), 0.0, 1),
        RowSum(SquaredLoss(1.0, 1.0, by_length=True), BallBound(1.0), 0.0, 1),
        RowSum(ClippedSlopes(LogisticLoss(), 0.3), BallBound(1.0), 0.0, 1),
        RowSum(LogisticLoss(), type("Other", (Centred,), {"__slots__": ()})(BallBound(1.0), (0.0,) * 6, 1.0), 0.0, 1),
        RowSum(LogisticLoss(), BallBound(1.0), 0.0, 0),
        RowSum(LogisticLoss(), BallBound(1.0), 0.0, 2),
        RowSum(type("Other", (LogisticLoss,), {"__slots__": ()})(), BallBound(1.0), 0.0, 1),
        RowSum(LogisticLoss(), type("Other", (BallBound,), {"__slots__": ()})(1.0), 0.0, 1),
        type("Other", (RowSum,), {"__slots__": ()})(LogisticLoss(), BallBound(1.0), 0.0, 1),
    ],
    ids=[
        "counts",
        "slopes clipped by length",
        "clipped slopes",
        "another centring",
        "values",
        "Hessians",
        "another loss",
        "another bound",
        "another sum",
    ],
)
def test_numpy_makes_sums_that_the_kernel_is_not_trusted_with(row_sum):
    """Those of several problems too."""
    assert by_kernel(row_sum, 1, 64) is None
    assert by_kernel(RowSum(LogisticLoss(), BallBound(1.0), 0.0, 1), 2, 64) is None


def test_without_the_kernel_numpy_makes_all_sums(monkeypatch):
    monkeypatch.setenv("CONFIDE_COMPILED", "0")
    assert by_kernel(RowSum(LogisticLoss(), BallBound(1.0), 0.0, 1), 1, 64) is None


FAR = {
    "2^200 radii": (2.0**-290, 2.0**-89, 1.0),
    "squares beyond 2^1000": (2.0**299, 2.0**501, 1.0),
    "squares that overflow": (1.0, 1e200, 1.0),
    "weights beyond 2^400": (1.0, 1.0, 2.0**401),
    "weights that are no numbers": (1.0, 1.0, np.nan),
}


@pytest.mark.parametrize(("norm", "size", "weight"), FAR.values(), ids=FAR)
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("place", [0, 63, 64, 129])
def test_what_is_too_large_for_the_kernel_is_left_to_numpy(norm, size, weight, layout, place):
    """Block by block, as without the kernel: to the bit. Wherever such a row lies in its block."""
    rng = np.random.default_rng(3)
    rows = rng.normal(size=(130, 6)) * norm
    rows[place] = size
    with np.errstate(over="ignore"):
        rows = LAYOUTS[layout](rows)
    if not np.isfinite(rows).all():
        pytest.skip("no number of single precision is so large")
    row_sum, labels = RowSum(LogisticLoss(), BallBound(norm), 0.0, 1), rng.choice([-1, 1], 130).astype(np.int8)
    weights = np.full((1, 6), 1.5 * weight) / max(1.0, norm)
    expected = row_sum.start(1, 6)
    with np.errstate(all="ignore"):
        for start in range(0, 130, 64):
            part = slice(start, start + 64)
            row_sum.add_block(expected, rows[part], labels[part], weights)
        assert by_kernel(row_sum, 1, 64)._sums(StoredArray(rows), labels, weights[0], None) is None
        np.testing.assert_array_equal(summed(row_sum, rows, labels, weights), expected.gradient[0])


def test_rows_just_within_reach_are_summed_by_the_kernel():
    """The ends of what the theorem allows, within a factor of 2."""
    for norm, size in ((2.0**-290, 2.0**-91.5), (2.0**299, 2.0**498)):
        row_sum = RowSum(LogisticLoss(), BallBound(norm), 0.0, 1)
        rows, weights = np.full((5, 4), size / 2.0), np.full(4, 2.0**400 if norm < 1.0 else 2.0**-299)
        assert by_kernel(row_sum, 1, 64)._sums(StoredArray(rows), np.ones(5, np.int8), weights, None) is not None


def test_rows_without_columns_and_no_rows_at_all():
    """The constant of the intercept alone, and sums of 0."""
    row_sum = RowSum(LogisticLoss(), BallBound(1.0), 0.5, 1)
    labels = np.array([1, 1, -1], np.int8)
    np.testing.assert_allclose(summed(row_sum, np.zeros((3, 0)), labels, np.zeros((1, 1))), [-0.25])
    assert not summed(row_sum, np.zeros((0, 5)), labels[:0], np.ones((1, 6))).any()


class Doubled(ArrayBlocks):
    """Blocks that are not the rows that are stored."""

    def block(self, start, stop):
        return 2.0 * self.rows[start:stop]


def test_blocks_that_are_made_otherwise_are_summed_by_numpy():
    """The kernel would read the rows that are stored."""
    rows, labels, weights = np.linspace(-1.0, 1.0, 120).reshape(20, 6), np.ones(20, np.int8), np.ones((1, 6))
    row_sum = RowSum(LogisticLoss(), BallBound(9.0), 0.0, 1)
    found = MemorySource(Doubled(rows), labels).sum_over_rows(row_sum, weights).gradient[0]
    np.testing.assert_array_equal(found, by_numpy(row_sum, 2.0 * rows, labels, weights))


def test_rows_that_begin_between_two_doubles_are_summed_by_numpy():
    """As fields of records do. The kernel refuses them, and after a charge nothing may be refused."""
    records = np.zeros(50, dtype=[("label", "i1"), ("row", "f8", (6,))])
    records["row"] = np.random.default_rng(6).normal(size=(50, 6))
    row_sum, labels = RowSum(LogisticLoss(), BallBound(1.0), 0.0, 1), np.ones(50, np.int8)
    found = source_of(records["row"], labels).sum_over_rows(row_sum, np.ones((1, 6))).gradient[0]
    np.testing.assert_array_equal(found, by_numpy(row_sum, records["row"], labels, np.ones((1, 6))))


@pytest.mark.parametrize("kind", [">f8", ">f4", "g", "f2", "i8"])
def test_rows_of_other_types_are_summed_by_numpy(kind):
    """Long doubles too, on machines where they are equal to doubles: the kernel would refuse them after the charge."""
    rows, labels = np.random.default_rng(6).normal(size=(50, 6)).astype(kind), np.ones(50, np.int8)
    row_sum = RowSum(LogisticLoss(), BallBound(1.0), 0.0, 1)
    assert ArrayBlocks(rows).as_stored(shortened=True) is None
    found = source_of(rows, labels).sum_over_rows(row_sum, np.ones((1, 6))).gradient[0]
    np.testing.assert_array_equal(found, by_numpy(row_sum, rows, labels, np.ones((1, 6))))


@pytest.mark.parametrize("kind", [np.int16, np.float64, np.int64, "strided"], ids=str)
def test_labels_of_any_type_are_read(kind):
    """The sources give int8, in one piece. Others must not be refused when the budget is charged."""
    rng = np.random.default_rng(7)
    rows, labels = rng.normal(size=(40, 6)), rng.choice([-1, 1], 40).astype(np.int8)
    row_sum, weights = RowSum(LogisticLoss(), BallBound(1.0), 0.0, 1), rng.normal(size=(1, 6))
    others = np.repeat(labels, 2)[::2] if kind == "strided" else labels.astype(kind)
    np.testing.assert_array_equal(summed(row_sum, rows, others, weights), summed(row_sum, rows, labels, weights))


def between_doubles(numbers):
    """The same numbers, which begin one byte behind an address of a double."""
    found = np.frombuffer(bytearray(numbers.nbytes + 1), numbers.dtype, offset=1, count=numbers.size)
    found[...] = numbers
    assert found.flags.c_contiguous
    assert not found.flags.aligned
    return found


def test_labels_and_weights_of_rows_that_begin_between_two_doubles_are_read():
    """They are in one piece, and yet the kernel refuses them. After a charge nothing may be refused."""
    rng = np.random.default_rng(8)
    rows, labels, counts = rng.normal(size=(40, 6)), rng.choice([-1.0, 1.0], 40), rng.uniform(0.0, 1.0, 40)
    row_sum, weights = RowSum(LogisticLoss(), BallBound(1.0), 0.0, 1), rng.normal(size=(1, 6))
    found = summed(row_sum, rows, between_doubles(labels), weights, between_doubles(counts))
    np.testing.assert_array_equal(found, summed(row_sum, rows, labels, weights, counts))


class _Wrong:
    """A kernel that makes one mistake."""

    def __init__(self, kernel, change):
        self._kernel, self._change = kernel, change

    def clipped_sums(self, *arguments):
        return self._change(self._kernel.clipped_sums, list(arguments))


def changed(place, change):
    """A mistake in one argument, where it is given."""

    def mistaken(sums, arguments):
        if arguments[place] is not None:
            arguments[place] = change(arguments[place])
        return sums(*arguments)

    return mistaken


def without_last_lane(sums, arguments):
    """The sum of the last column is that of the column before."""
    near, out = sums(*arguments), arguments[13]
    if arguments[0].shape[1] % 4:
        out[-2] = out[-3]
    return near


def wrong_tail(sums, arguments):
    """The last rows, fewer than four, count with the other sign."""
    rows, labels = arguments[0], arguments[4].copy()
    labels[len(rows) - len(rows) % 4 :] *= -1
    arguments[4] = labels
    return sums(*arguments)


def first_block_alone(sums, arguments):
    """Blocks after the first one are forgotten."""
    block = arguments[3]
    counts = None if arguments[5] is None else arguments[5][:block]
    arguments[0], arguments[4], arguments[5] = arguments[0][:block], arguments[4][:block], counts
    return sums(*arguments)


MISTAKES = {
    "longer rows": changed(1, lambda given: given * 1.1),
    "rows as they are": changed(1, lambda given: np.inf),
    "far rows are not told of": changed(2, lambda given: np.inf),
    "all is well": lambda sums, arguments: [sums(*arguments)] and True,
    "no weights of rows": changed(5, lambda given: None),
    "weights that are no numbers": changed(5, lambda given: np.nan_to_num(given, nan=1.0)),
    "weights beyond their bound": changed(6, lambda given: 2.0 * given),
    "weights below 1 count 1": changed(6, lambda given: max(given, 1.0)),
    "no constant": changed(8, lambda given: 0.0),
    "another corner or joint": changed(10, lambda given: 0.5 * given),
    "targets within other bounds": changed(11, lambda given: 2.0 * given),
    "targets within another highest": changed(12, lambda given: 2.0 * given),
    "rows that are not moved": changed(14, lambda given: None),
    "another centre": changed(14, lambda given: (0.5 * given[0], *given[1:])),
    "moved rows that are longer": changed(14, lambda given: (given[0], 1.1 * given[1], given[2])),
    "moved rows as they are": changed(14, lambda given: (*given[:2], 1.0)),
    "the last lane": without_last_lane,
    "the tail": wrong_tail,
    "one block": first_block_alone,
}


@pytest.fixture
def untried():
    """No kernel has been tried yet, and none afterwards."""
    clipped_sums.tried.cache_clear()
    yield
    clipped_sums.tried.cache_clear()


KNOWN = RowSum(LogisticLoss(), BallBound(1.0), 0.0, 1)


@pytest.mark.parametrize("mistake", MISTAKES.values(), ids=MISTAKES)
def test_a_kernel_that_adds_up_wrongly_is_not_used(monkeypatch, compiled, untried, mistake):
    """It is tried on made-up rows before its first sum, and NumPy makes the sums instead, with a warning."""
    monkeypatch.setattr(trials, "kernel", lambda: _Wrong(compiled, mistake))
    with pytest.warns(RuntimeWarning, match=r"computes wrongly .* so certified gradients are made by NumPy"):
        assert by_kernel(KNOWN, 1, 64) is None


def test_a_kernel_that_is_right_passes_its_trial(compiled, untried):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert by_kernel(KNOWN, 1, 64) is not None


class _Older:
    """A module that was built before it could make these sums."""


@pytest.mark.parametrize("fails", [None, TypeError, ValueError], ids=["no such function", "other arguments", "other arrays"])
def test_a_module_of_another_version_is_not_used_and_ends_no_fit(monkeypatch, compiled, untried, fails):
    """It is tried after the charge, so nothing may be raised, not even where warnings are errors."""

    def failing(sums, arguments):
        raise fails

    monkeypatch.setattr(trials, "kernel", lambda: _Older() if fails is None else _Wrong(compiled, failing))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert by_kernel(KNOWN, 1, 64) is None


ROWS = {"huge": np.full((30, 5), 1e200), "none": np.zeros((0, 5)), "integers": np.ones((30, 5), np.int64)}


@pytest.mark.parametrize("rows", ROWS.values(), ids=ROWS)
def test_whether_the_kernel_is_tried_depends_on_no_row(monkeypatch, untried, rows):
    """Its warning would tell how large rows are, how many, or of which type. Other sums have no need of it."""
    monkeypatch.setattr(trials, "kernel", lambda: _Older())
    rows_of_case = source_of(rows, np.ones(len(rows), np.int8))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        rows_of_case.sum_over_rows(RowSum(MeanLoss(1.0, 1.0), BallBound(1.0), 0.0, 1), np.zeros((1, 5)))
    with pytest.warns(RuntimeWarning, match="computes wrongly"):
        rows_of_case.sum_over_rows(KNOWN, np.zeros((1, 5)))


@pytest.mark.parametrize(
    ("place", "wrong"),
    [
        (0, np.ones((5, 6), np.int64)),
        (0, np.ones((5, 6), np.complex64)),
        (0, np.ones(30)),
        (3, 0),
        (3, -1),
        (4, np.ones(4, np.int8)),
        (4, np.ones(5, np.int64)),
        (4, np.ones(5, np.float32)),
        (5, np.ones(6)),
        (5, np.ones(10)[::2]),
        (7, np.ones(5)),
        (7, np.ones(7)),
        (9, -1),
        (9, 6),
        (13, np.zeros(6)),
        (13, np.zeros(8)),
        (13, fixed(np.zeros(7))),
        (0, np.ones((5, 12))[:, ::2]),
        (14, (np.ones(5), 1.0, 1.5)),
        (14, (np.ones(6, np.float32), 1.0, 1.5)),
    ],
)
def test_arrays_that_do_not_fit_are_refused_one_by_one(compiled, place, wrong):
    """Otherwise the kernel would read or write beside them."""
    right = [np.ones((5, 6)), 1.0, 4.0**99, 4, np.ones(5, np.int8), np.ones(5), 1.0, np.ones(6)]
    right += [0.0, 0, 0.0, 0.0, 0.0, np.zeros(7), (np.ones(6), 1.0, 1.5), False]
    assert compiled.clipped_sums(*right) is True
    right[place] = wrong
    with pytest.raises((ValueError, BufferError)):
        compiled.clipped_sums(*right)


@pytest.mark.parametrize(
    "model",
    [
        confide.LogisticRegression(confide.ApproxDP(1.0, 1e-6), mechanism="objective", centre=False, random_state=1),
        confide.LogisticRegression(2.0, mechanism="output", random_state=2),
        confide.LinearSVC(2.0, loss="huber_hinge", mechanism="objective", random_state=3),
        confide.HuberRegressor(confide.ApproxDP(1.0, 1e-6), mechanism="objective", target_bound=1.0, random_state=4),
    ],
    ids=["Gaussian noise", "noise on the weights", "a hinge", "targets"],
)
def test_seeded_releases_are_those_without_the_kernel(monkeypatch, rows, model):
    """To a few steps of the grid: the tolerance of the certificate is below what the seal covers."""
    features, labels = rows
    if "classes" in model.get_params():
        model.set_params(classes=[0, 1])
    found = model.fit(features, labels).coef_
    monkeypatch.setenv("CONFIDE_COMPILED", "0")
    expected = model.fit(features, labels).coef_
    np.testing.assert_allclose(found, expected, rtol=0.0, atol=1e-6)


def test_blocks_of_stored_rows_are_as_long_as_groups():
    """So a pass calls the kernel once for each group, and a call adds up the blocks of the group."""
    blocks = ArrayBlocks(np.ones((10, 5))).as_stored(shortened=True)
    assert type(blocks) is StoredBlocks
    assert blocks.rows_in_block == 32 * rows_in_block(5)
