"""Sums of noisy gradients by the kernel: those of exact arithmetic within the bound of the proof, and those of NumPy."""

from __future__ import annotations

import math
from dataclasses import replace

import mpmath
import numpy as np
import pytest

from confide.compiled import scaled_sums
from confide.compiled.scaled_sums import ScaledSums, with_kernel
from confide.data.arrays import ArrayBlocks, MemorySource
from confide.erm.centred_rows import Centred
from confide.erm.clipped_rows import scaled_once
from confide.erm.clipped_slopes import ClippedSlopes
from confide.erm.hinges import HuberHinge, LogisticHinge, SmoothHinge
from confide.erm.losses import LogisticLoss
from confide.erm.row_bounds import BallBound
from confide.erm.row_sums import RowSum

UNIT = 2.0**-53
LOSSES = [LogisticLoss(), LogisticHinge(0.5), HuberHinge(0.3)]


@pytest.fixture(params=["", "plain"], autouse=True)
def instructions(request, monkeypatch, compiled):
    """Sums by the instructions of this processor, and by those that every processor has."""
    monkeypatch.setenv("CONFIDE_COMPILED", request.param)


def summed(row_sum, rows, labels, weights, row_weights=None):
    """The sum over one block by the kernel."""
    block = with_kernel(scaled_once(row_sum, rows))
    assert type(block.fused) is ScaledSums
    totals = row_sum.start(1, rows.shape[1])
    row_sum.add_block(totals, block, labels, weights, row_weights)
    return totals.gradient[0]


@pytest.mark.parametrize("shape", [(1, 4), (3, 5), (4, 7), (259, 6), (700, 20), (300, 27), (65, 103), (33, 1100)])
@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: loss.name)
@pytest.mark.parametrize("centred", [False, True], ids=["as they are", "centred"])
def test_sums_are_those_of_rows_that_were_clipped(loss, shape, centred):
    """With weights of rows below 0, beyond their bound and not a number; with an intercept and without; rows with gaps."""
    rng = np.random.default_rng(shape[0])
    lengths = rng.uniform(0.01, 2.0, size=(shape[0], 1))
    wide = rng.normal(size=(shape[0], shape[1] + 3)) * lengths / math.sqrt(shape[1])
    rows, before = wide[:, : shape[1]], wide.copy()
    labels, row_weights = rng.choice([-1, 1], shape[0]).astype(np.int8), rng.uniform(-0.5, 2.5, shape[0])
    row_weights[::7] = np.nan
    centre = rng.normal(size=shape[1])
    centre *= 0.4 / np.linalg.norm(centre)
    bound = Centred(BallBound(0.6), tuple(centre), 0.45) if centred else BallBound(0.6)
    for intercept, counts in ((0.0, None), (0.7, row_weights)):
        row_sum = RowSum(ClippedSlopes(loss, 0.3), bound, intercept, 1, 1.5)
        weights = 5.0 * rng.normal(size=(1, row_sum.n_weights(shape[1])))
        expected = row_sum.start(1, shape[1])
        row_sum.add_block(expected, rows, labels, weights, counts)
        found = summed(row_sum, rows, labels, weights, counts)
        np.testing.assert_allclose(found, expected.gradient[0], rtol=1e-10, atol=1e-13 * shape[0])
    np.testing.assert_array_equal(wide, before)


def test_the_exponential_errs_by_at_most_two_units_in_the_last_place():
    """Where scores are far below 0 a slope is the exponential itself; where they are far above, it is 1."""
    rng = np.random.default_rng(0)
    row_sum = RowSum(ClippedSlopes(LogisticLoss(), 1.0), BallBound(2.0), 0.0, 1)
    block = with_kernel(scaled_once(row_sum, np.array([[1.0, 0.0, 0.0, 0.0]])))
    worst = 0.0
    scores = np.concatenate([rng.uniform(-700.0, -40.0, 3000), rng.uniform(-40.0, 40.0, 3000), [-745.0, 745.0, 0.0]])
    for score in scores:
        totals = row_sum.start(1, 4)
        row_sum.add_block(totals, block, np.array([-1], np.int8), np.array([[score, 0.0, 0.0, 0.0]]))
        found = totals.gradient[0, 0]
        with mpmath.workdps(40):
            exact = 1 / (1 + mpmath.exp(-mpmath.mpf(float(score))))
            error = float(abs(mpmath.mpf(float(found)) - exact) / exact)
        if score > -700.0:
            worst = max(worst, error)
        else:
            assert 0.0 <= found < 2.0**-1000
    # Four units of 2^-53 for the exponential, one for the sum with 1 and one for the quotient.
    assert 1.0 < worst / UNIT < 6.0


def exact_sum(row_sum, rows, labels, weights, row_weights):
    """The sum of the proof in 60 digits: rows are clipped in exact arithmetic, and so are slopes."""
    clipped = row_sum.loss
    bound = row_sum.row_bound
    ball, centre = (bound.inner, bound.centre) if isinstance(bound, Centred) else (bound, (0.0,) * rows.shape[1])
    total = [mpmath.mpf(0)] * weights.size
    number = mpmath.mpf
    for row, label, count in zip(rows, labels, row_weights, strict=True):
        entries = [number(float(x)) for x in row]
        length = mpmath.sqrt(sum(x * x for x in entries))
        radius = number(ball._radius(rows.shape[1]))
        entries = [x * (radius / length) if length > radius else x for x in entries]
        if isinstance(bound, Centred):
            moved = [x - number(float(c)) for x, c in zip(entries, centre, strict=True)]
            away = mpmath.sqrt(sum(x * x for x in moved))
            inside = number(bound.radius) * (1 - number(2) ** -40)
            factor = number(bound.magnification) * (inside / away if away > inside else 1)
            entries = [x * factor for x in moved]
        if row_sum.intercept:
            entries.append(number(row_sum.intercept))
        size = mpmath.sqrt(sum(x * x for x in entries))
        margin = int(label) * sum(x * number(float(w)) for x, w in zip(entries, weights[0], strict=True))
        if isinstance(clipped.loss, HuberHinge):
            slope = -min(max(((1 - margin) + number(clipped.loss.smoothing)) / (2 * number(clipped.loss.smoothing)), 0), 1)
        else:
            shift = clipped.loss.margin if isinstance(clipped.loss, LogisticHinge) else 0.0
            slope = -1 / (1 + mpmath.exp(margin - number(shift)))
        slope *= int(label)
        norm = mpmath.sqrt(number(bound.l2_norm) ** 2 + number(row_sum.intercept) ** 2)
        limit = number(clipped.limit) * norm / size if size else mpmath.inf
        slope = min(max(slope, -limit), limit) * min(max(number(float(count)), 0), number(row_sum.largest_weight))
        total = [t + slope * x for t, x in zip(total, entries, strict=True)]
    return total


@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: loss.name)
@pytest.mark.parametrize("centred", [False, True], ids=["as they are", "centred"])
def test_the_error_is_within_the_bound_of_the_proof(loss, centred):
    """Formula (1), against 60 digits: rows whose scores cancel, tiny rows, and rows far beyond the bound."""
    rng = np.random.default_rng(5)
    largest = 0.0
    for n, d in ((1, 4), (9, 4), (40, 6), (37, 33), (130, 5)):
        rows = rng.normal(size=(n, d)) * 10.0 ** rng.choice([-9, -1, 0, 3, 60], size=(n, 1))
        rows[:, 0], weights = rows[:, 1] * (1.0 + 2.0**-30), 40.0 * rng.normal(size=(1, d + 1))
        weights[0, 0] = -weights[0, 1]
        labels, row_weights = rng.choice([-1, 1], n).astype(np.int8), rng.uniform(0.0, 2.0, n)
        centre = tuple(0.9 * np.ones(d) / math.sqrt(d))
        bound = Centred(BallBound(1.3), centre, 0.9) if centred else BallBound(1.3)
        row_sum = RowSum(ClippedSlopes(loss, 0.4), bound, 0.5, 1, 1.5)
        found = summed(row_sum, rows, labels, weights, row_weights)
        with mpmath.workdps(60):
            exact = exact_sum(row_sum, rows, labels, weights, row_weights)
            apart = (mpmath.mpf(float(one)) - other for one, other in zip(found, exact, strict=True))
            error = float(mpmath.sqrt(sum(each * each for each in apart)))
        # Formula (1), with the summation depth of one block, and (1c) and (2c) of centring.md for rows that are moved.
        size, longest = d + 1, math.hypot(1.3, 0.5)
        moved = 11.0 * size + 45.0 if centred else 0.0
        slopes = n + size + 5 + 14 + 2 * size + 12 + moved
        scores = (2 * size + 5 + moved) * loss.smoothness * longest * np.linalg.norm(weights)
        bound_on_error = 1.01 * UNIT * n * 1.5 * longest * (slopes + scores)
        # Margins of the bounds on rows, which the plan does not count as errors.
        margin = (
            n * 1.5 * longest * 2.0**-40 * (1.0 + loss.smoothness * longest * np.linalg.norm(weights)) if centred else 0.0
        )
        assert error <= bound_on_error + margin
        largest = max(largest, error / bound_on_error)
    assert largest > 1e-5


def test_no_row_adds_more_than_its_limit():
    """A score that is no number counts as the steepest slope downwards; a row of zeros adds nothing but its constant."""
    rng = np.random.default_rng(1)
    row_sum = RowSum(ClippedSlopes(LogisticLoss(), 0.25), BallBound(2.0), 0.0, 1)
    for scale in (1e-8, 1e-3, 1.0, 1e8, 1e100):
        row = rng.normal(size=(1, 9)) * scale
        for label in (-1, 1):
            weights = -label * 1e6 * row / np.linalg.norm(row) ** 2
            found = summed(row_sum, row, np.array([label], np.int8), weights)
            slope = min(1.0, 0.25 * 2.0 / min(np.linalg.norm(row), 2.0)) * min(np.linalg.norm(row), 2.0)
            assert np.linalg.norm(found) == pytest.approx(slope, rel=1e-10)
    lost = summed(row_sum, np.ones((1, 4)), np.ones(1, np.int8), np.full((1, 4), np.nan))
    np.testing.assert_allclose(lost, -0.25, rtol=1e-11)
    assert not summed(row_sum, np.zeros((5, 4)), np.ones(5, np.int8), np.ones((1, 4))).any()


def test_sums_are_equal_to_the_bit_for_any_number_of_threads(monkeypatch):
    """And for a source without the kernel to rounding; blocks are kept with their sums."""
    monkeypatch.setattr("confide.data.arrays._KEPT_BYTES", 0)
    rng = np.random.default_rng(2)
    rows, labels = rng.normal(size=(60_000, 12)), rng.choice([-1, 1], 60_000).astype(np.int8)
    row_sum = RowSum(ClippedSlopes(LogisticLoss(), 0.5), BallBound(3.0), 1.0, 1)
    weights = rng.normal(size=(1, 13))

    def gradient(n_threads):
        source = MemorySource(ArrayBlocks(rows), labels, n_threads=n_threads).for_many_passes(row_sum)
        return source.sum_over_rows(row_sum, weights).gradient

    found = [gradient(k) for k in (1, 2, 3)]
    np.testing.assert_array_equal(found[0], found[1])
    np.testing.assert_array_equal(found[0], found[2])
    monkeypatch.setenv("CONFIDE_COMPILED", "0")
    without = gradient(1)
    np.testing.assert_allclose(found[0], without, rtol=1e-11)
    assert (found[0] != without).any()


@pytest.mark.parametrize(
    ("row_sum", "shape"),
    [
        (RowSum(ClippedSlopes(SmoothHinge(0.5), 0.3), BallBound(1.0), 0.0, 1), (50, 6)),
        (RowSum(LogisticLoss(), BallBound(1.0), 0.0, 1), (50, 6)),
        (RowSum(ClippedSlopes(LogisticLoss(), 0.3), BallBound(1.0), 0.0, 1), (50, 3)),
    ],
    ids=["another loss", "slopes that are not clipped", "short rows"],
)
def test_numpy_makes_sums_that_the_kernel_is_not_trusted_with(row_sum, shape):
    """Columns that lie one after the other too."""
    rows = np.random.default_rng(3).normal(size=shape)
    assert with_kernel(scaled_once(row_sum, rows)).fused is None
    known = RowSum(ClippedSlopes(LogisticLoss(), 0.3), BallBound(1.0), 0.0, 1)
    assert with_kernel(scaled_once(known, np.asfortranarray(np.ones((9, 9))))).fused is None


class _Wrong:
    """A kernel that makes one mistake."""

    def __init__(self, kernel, change):
        self._kernel, self._change = kernel, change

    def scaled_sums(self, *arguments):
        self._kernel.scaled_sums(*self._change(list(arguments)))


@pytest.mark.parametrize(
    ("place", "factor"),
    [(1, 1.1), (3, 10.0), (6, 2.0), (8, 0.0), (11, 0.5)],
    ids=["longer rows", "no limits", "weights beyond their bound", "no constant", "another loss"],
)
def test_a_kernel_that_adds_up_wrongly_is_not_used(monkeypatch, compiled, place, factor):
    """It is tried on made-up rows before its first sum, and NumPy makes the sums instead, with a warning."""

    def changed(arguments):
        arguments[place] = arguments[place] * factor
        return arguments

    monkeypatch.setattr(scaled_sums, "kernel", lambda: _Wrong(compiled, changed))
    scaled_sums._tried.cache_clear()
    row_sum = RowSum(ClippedSlopes(LogisticLoss(), 0.3), BallBound(1.0), 0.0, 1)
    try:
        with pytest.warns(RuntimeWarning, match="adds up wrongly"):
            assert with_kernel(scaled_once(row_sum, np.ones((5, 5)))).fused is None
    finally:
        scaled_sums._tried.cache_clear()


def test_sizes_that_do_not_fit_are_refused(compiled):
    """By the kernel itself, before it reads."""
    row_sum = RowSum(ClippedSlopes(LogisticLoss(), 0.3), BallBound(1.0), 0.0, 1)
    fused = with_kernel(scaled_once(row_sum, np.ones((5, 6)))).fused
    labels, weights = np.ones(5, np.int8), np.ones(6)
    for changed in (
        replace(fused, scales=np.ones(4)),
        replace(fused, limits=np.ones(6)),
        replace(fused, shifts=np.ones(4), centre=np.ones(6)),
        replace(fused, rows=np.ones((5, 6), np.float32)),
        replace(fused, rows=np.asfortranarray(np.ones((5, 6)))),
        replace(fused, rows=np.ones((5, 3))),
        replace(fused, loss=(9, 0.0, 0.0, 0.0)),
    ):
        with pytest.raises(ValueError, match="kernel"):
            changed.add_to(np.zeros(6), labels, weights, None)
    with pytest.raises(ValueError, match="kernel"):
        fused.add_to(np.zeros(6), labels[:4], weights, None)
    with pytest.raises(ValueError, match="kernel"):
        fused.add_to(np.zeros(6), labels, weights, np.ones(4))
