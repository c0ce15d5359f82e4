"""Sums of noisy gradients by the kernel: those of exact arithmetic within the bound of the proof, and those of NumPy."""

from __future__ import annotations

import math
import warnings
from dataclasses import replace
from fractions import Fraction

import mpmath
import numpy as np
import pytest

from confide.compiled import sums
from confide.compiled.gradient_sums import code_of
from confide.compiled.loading import is_plain
from confide.compiled.sums import ScaledSums, with_kernel
from confide.data.arrays import ArrayBlocks, MemorySource
from confide.erm.clipped_rows import scaled_once
from confide.erm.losses import HuberHinge, LogisticHinge, LogisticLoss, SmoothHinge
from confide.erm.row_bounds import BallBound, Centred
from confide.erm.row_sums import RowSum
from confide.erm.target_losses import SquaredLoss
from confide.erm.transformed_losses import ClippedSlopes

UNIT = 2.0**-53
LOSSES = [LogisticLoss(), LogisticHinge(0.5), HuberHinge(0.3)]


@pytest.fixture(params=["", "plain"], autouse=True)
def instructions(request, monkeypatch, compiled):
    """Sums by the instructions of this processor, and by those that every processor has."""
    monkeypatch.setenv("CONFIDE_COMPILED", request.param)


def summed(row_sum, rows, labels, weights, row_weights=None):
    """The sum over one block by the kernel."""
    block = with_kernel(scaled_once(row_sum, rows))
    assert type(block.fused.__self__) is ScaledSums
    totals = row_sum.start(1, rows.shape[1])
    row_sum.add_block(totals, block, labels, weights, row_weights)
    return totals.gradient[0]


def test_labels_and_weights_between_two_addresses_are_copied():
    """The kernel would refuse them, after the charge. Fields of packed records are such numbers."""
    rng = np.random.default_rng(1)
    rows, n = rng.normal(size=(50, 6)), 50
    row_sum = RowSum(ClippedSlopes(LogisticLoss(), 0.4), BallBound(1.0), 0.0, 1, 2.0)
    labels, counts = rng.choice([-1.0, 1.0], n), rng.uniform(0.5, 2.0, n)
    packed = [np.frombuffer(b"0" + each.tobytes(), np.uint8)[1:].view(np.float64) for each in (labels, counts)]
    assert not any(each.flags.aligned for each in packed)
    weights = rng.normal(size=(1, 6))
    assert np.array_equal(
        summed(row_sum, rows, packed[0], weights, packed[1]), summed(row_sum, rows, labels, weights, counts)
    )


@pytest.mark.parametrize("shape", [(1, 4), (3, 5), (4, 7), (259, 6), (700, 20), (300, 27), (65, 103), (33, 1100)])
@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: loss.constants.name)
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
    for intercept, counts, largest in ((0.0, None, 1.5), (0.0, None, 0.8), (0.7, row_weights, 1.5)):
        row_sum = RowSum(ClippedSlopes(loss, 0.3), bound, intercept, 1, largest)
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


def test_the_polynomial_of_the_exponential_has_enough_terms():
    """At the ends of its range what is left out is 1.5 units for a term too few, and has one sign; rounding has either."""
    rng = np.random.default_rng(4)
    row_sum = RowSum(ClippedSlopes(LogisticLoss(), 1.0), BallBound(2.0), 0.0, 1)
    block = with_kernel(scaled_once(row_sum, np.array([[1.0, 0.0, 0.0, 0.0]])))
    for end in (0.49, -0.49):
        errors = []
        for whole in rng.integers(-900, -60, 400):
            score = float((whole + end + rng.uniform(-0.009, 0.009)) * math.log(2.0))
            totals = row_sum.start(1, 4)
            row_sum.add_block(totals, block, np.array([-1], np.int8), np.array([[score, 0.0, 0.0, 0.0]]))
            with mpmath.workdps(40):
                exact = mpmath.exp(mpmath.mpf(score))
                errors.append(float((mpmath.mpf(float(totals.gradient[0, 0])) - exact) / exact) / UNIT)
        assert abs(np.mean(errors)) < 0.4


@pytest.mark.parametrize("half_width", [0.3, 2.0**-12, 1e-9])
def test_slopes_in_a_narrow_joint_err_by_three_units(half_width):
    """(1 + h - z) / (2h), in this order, would lose as many digits as 1 has more than h."""
    rng = np.random.default_rng(8)
    row_sum = RowSum(ClippedSlopes(HuberHinge(half_width), 1.0), BallBound(2.0), 0.0, 1)
    block = with_kernel(scaled_once(row_sum, np.array([[1.0, 0.0, 0.0, 0.0]])))
    for _ in range(100):
        score = 1.0 + half_width * rng.uniform(-1.0, 1.0)
        totals = row_sum.start(1, 4)
        row_sum.add_block(totals, block, np.array([1], np.int8), np.array([[score, 0.0, 0.0, 0.0]]))
        exact = -(1 - Fraction(score) + Fraction(half_width)) / (2 * Fraction(half_width))
        assert abs(Fraction(float(totals.gradient[0, 0])) - min(max(exact, -1), 0)) <= 3 * UNIT


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


@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: loss.constants.name)
@pytest.mark.parametrize("centred", [False, True], ids=["as they are", "centred"])
def test_the_error_is_within_the_bound_of_the_proof(loss, centred):
    """Formula (1), against 60 digits: rows whose scores cancel, tiny rows, and rows far beyond the bound."""
    rng = np.random.default_rng(5)
    largest = 0.0
    for n, d in ((1, 4), (9, 4), (40, 6), (37, 33), (130, 5)):
        rows = rng.normal(size=(n, d)) * 10.0 ** rng.choice([-9, -1, 0, 3, 58], size=(n, 1))
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
        scores = (2 * size + 5 + moved) * loss.constants.smoothness * longest * np.linalg.norm(weights)
        bound_on_error = 1.01 * UNIT * n * 1.5 * longest * (slopes + scores)
        # Margins of the bounds on rows, which the plan does not count as errors.
        margin = (
            n * 1.5 * longest * 2.0**-40 * (1.0 + loss.constants.smoothness * longest * np.linalg.norm(weights))
            if centred
            else 0.0
        )
        assert error <= bound_on_error + margin
        largest = max(largest, error / bound_on_error)
    assert largest > 1e-5


def test_no_row_adds_more_than_its_limit():
    """A score that is no number counts as the steepest slope downwards; a row of zeros adds nothing but its constant."""
    rng = np.random.default_rng(1)
    row_sum = RowSum(ClippedSlopes(LogisticLoss(), 0.25), BallBound(2.0), 0.0, 1)
    for scale in (1e-8, 1e-3, 1.0, 1e8, 1e58):
        row = rng.normal(size=(1, 9)) * scale
        for label in (-1, 1):
            weights = -label * 1e6 * row / np.linalg.norm(row) ** 2
            found = summed(row_sum, row, np.array([label], np.int8), weights)
            slope = min(1.0, 0.25 * 2.0 / min(np.linalg.norm(row), 2.0)) * min(np.linalg.norm(row), 2.0)
            assert np.linalg.norm(found) == pytest.approx(slope, rel=1e-10)
    # The squares of such a row are 0, so nothing limits its slope.
    tiny = summed(row_sum, np.full((1, 4), 1e-200), np.ones(1, np.int8), np.zeros((1, 4)))
    np.testing.assert_allclose(tiny, -0.5e-200)
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


def test_rows_that_begin_between_two_doubles_are_summed_by_numpy():
    """As fields of records do. The kernel refuses them, and after a charge nothing may be refused."""
    records = np.zeros(50, dtype=[("label", "i1"), ("row", "f8", (6,))])
    records["row"] = np.random.default_rng(6).normal(size=(50, 6))
    row_sum = RowSum(ClippedSlopes(LogisticLoss(), 0.3), BallBound(1.0), 0.0, 1)
    assert records["row"].strides[1] == 8
    assert with_kernel(scaled_once(row_sum, records["row"])).fused is None
    assert with_kernel(scaled_once(row_sum, records["row"].copy())).fused is not None
    # Solvers need not try it either.
    assert ArrayBlocks(records["row"]).as_stored(shortened=True) is None


@pytest.mark.parametrize("kind", [np.int16, np.float64, np.int64, "strided"], ids=str)
def test_labels_of_any_type_are_read(kind):
    """The sources give int8, in one piece. Others must not be refused when the budget is charged."""
    rng = np.random.default_rng(7)
    rows, labels = rng.normal(size=(40, 6)), rng.choice([-1, 1], 40).astype(np.int8)
    row_sum = RowSum(ClippedSlopes(LogisticLoss(), 0.3), BallBound(1.0), 0.0, 1)
    weights = rng.normal(size=(1, 6))
    others = np.repeat(labels, 2)[::2] if kind == "strided" else labels.astype(kind)
    np.testing.assert_array_equal(summed(row_sum, rows, others, weights), summed(row_sum, rows, labels, weights))


def test_rows_that_are_2_to_the_200_times_too_long_are_not_scaled():
    """A slope times their scale might underflow, which the proof does not count."""
    row_sum = RowSum(ClippedSlopes(LogisticLoss(), 0.3), BallBound(2.0**-290), 0.0, 1)
    rows = np.zeros((3, 4))
    rows[1, 2] = 2.0**-91
    assert scaled_once(row_sum, rows) is not None
    rows[1, 2] = 2.0**-89
    assert scaled_once(row_sum, rows) is None


class _Wrong:
    """A kernel that makes one mistake."""

    def __init__(self, kernel, change):
        self._kernel, self._change = kernel, change

    def scaled_sums(self, *arguments):
        self._kernel.scaled_sums(*self._change(list(arguments)))


@pytest.fixture
def untried():
    """No kernel has been tried yet, and none afterwards."""
    sums.tried.cache_clear()
    yield
    sums.tried.cache_clear()


KNOWN = RowSum(ClippedSlopes(LogisticLoss(), 0.3), BallBound(1.0), 0.0, 1)


def times(factor):
    """A change of an argument to so many times what it is, where it is given."""
    return lambda given: None if given is None else given * factor


MISTAKES = {
    "longer rows": (1, times(1.1)),
    "wrong shifts": (2, times(1.0 + 1e-9)),
    "no limits": (3, times(10.0)),
    "no weights of rows": (5, lambda given: None),
    "weights that are no numbers": (5, lambda given: None if given is None else np.nan_to_num(given, nan=1.0)),
    "weights beyond their bound": (6, times(2.0)),
    "weights below 1 count 1": (6, lambda given: max(given, 1.0)),
    "no constant": (8, times(0.0)),
    "another centre": (9, times(-1.0)),
    "another loss": (11, times(0.5)),
    "nothing at the centre": (13, lambda given: np.zeros(1)),
}


@pytest.mark.parametrize(("place", "change"), MISTAKES.values(), ids=MISTAKES)
def test_a_kernel_that_adds_up_wrongly_is_not_used(monkeypatch, compiled, untried, place, change):
    """It is tried on made-up rows before its first sum, and NumPy makes the sums instead, with a warning."""

    def changed(arguments):
        arguments[place] = change(arguments[place])
        return arguments

    monkeypatch.setattr(sums, "kernel", lambda: _Wrong(compiled, changed))
    with pytest.warns(RuntimeWarning, match="computes wrongly"):
        assert with_kernel(scaled_once(KNOWN, np.ones((5, 5)))).fused is None


class _Older:
    """A module that was built before it could make these sums."""


@pytest.mark.parametrize("fails", [None, TypeError, ValueError], ids=["no such function", "other arguments", "other arrays"])
def test_a_module_of_another_version_is_not_used_and_ends_no_fit(monkeypatch, compiled, untried, fails):
    """It is tried after the charge, so nothing may be raised, not even where warnings are errors."""

    def failing(arguments):
        raise fails

    older = _Older() if fails is None else _Wrong(compiled, failing)
    monkeypatch.setattr(sums, "kernel", lambda: older)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert with_kernel(scaled_once(KNOWN, np.ones((5, 5)))).fused is None


@pytest.mark.parametrize("size", [1.0, 1e200], ids=["small rows", "huge rows"])
@pytest.mark.parametrize("kept", [0, 2**20], ids=["large arrays", "small arrays"])
def test_whether_the_kernel_is_tried_depends_on_no_row(monkeypatch, untried, size, kept):
    """Its warning would tell how large rows are, or how many. Other sums have no need of it."""
    monkeypatch.setattr(sums, "kernel", lambda: _Older())
    monkeypatch.setattr("confide.data.arrays._KEPT_BYTES", kept)
    source = MemorySource(ArrayBlocks(np.full((30, 5), size)), np.ones(30, np.int8))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        source.for_many_passes(RowSum(LogisticLoss(), BallBound(1.0), 0.0, 1))
    with pytest.warns(RuntimeWarning, match="computes wrongly"):
        source.for_many_passes(KNOWN)


def test_sizes_that_do_not_fit_are_refused(compiled):
    """By the kernel itself, before it reads."""
    row_sum = RowSum(ClippedSlopes(LogisticLoss(), 0.3), BallBound(1.0), 0.0, 1)
    fused = with_kernel(scaled_once(row_sum, np.ones((5, 6)))).fused.__self__
    labels, weights = np.ones(5, np.int8), np.ones(6)
    for changed in (
        replace(fused, scales=np.ones(4)),
        replace(fused, limits=np.ones(6)),
        replace(fused, shifts=np.ones(4), centre=np.ones(6)),
        replace(fused, rows=np.ones((5, 6), np.int32)),
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


def fixed(array):
    """The array, which cannot be written to."""
    array.flags.writeable = False
    return array


@pytest.mark.parametrize(
    ("place", "wrong"),
    [
        (0, np.ones((5, 6), np.int64)),
        (0, np.ones((5, 6), np.complex64)),
        (0, np.ones(30)),
        (1, np.ones(6)),
        (1, np.ones((5, 1))),
        (2, np.ones(6)),
        (3, np.ones(4)),
        (3, np.ones(10)[::2]),
        (4, np.ones(5, np.int64)),
        (4, np.ones(5, np.uint8)),
        (4, np.ones(5, np.float32)),
        (5, np.ones(6)),
        (7, np.ones(5)),
        (7, np.ones(7)),
        (10, -1),
        (10, 6),
        (14, np.zeros(6)),
        (14, np.zeros(8)),
        (14, fixed(np.zeros(7))),
        (15, np.zeros(0)),
        (15, np.zeros(2)),
        (15, fixed(np.zeros(1))),
    ],
)
def test_arrays_that_do_not_fit_are_refused_one_by_one(compiled, place, wrong):
    """Otherwise the kernel would read or write beside them."""
    right = [np.ones((5, 6)), np.ones(5), np.ones(5), np.ones(5), np.ones(5, np.int8), np.ones(5), 1.0, np.ones(6)]
    right += [0.0, 0.0, 0, 0.0, 0.0, 0.0, np.zeros(7), np.zeros(1), False]
    compiled.scaled_sums(*right)
    right[place] = wrong
    with pytest.raises((ValueError, BufferError)):
        compiled.scaled_sums(*right)


@pytest.mark.parametrize("loss", [LogisticLoss(), HuberHinge(0.5), SquaredLoss(1.5, 0.75)], ids=str)
@pytest.mark.parametrize("shape", [(1, 4), (7, 5), (33, 16), (300, 71), (40, 1866)])
@pytest.mark.parametrize("instructions", ["", "plain"])
def test_rows_of_floats_are_summed_in_single_precision(compiled, monkeypatch, loss, shape, instructions):
    """For solvers: with a centre and without, with an intercept and weights of rows; to a few units of single precision."""
    monkeypatch.setenv("CONFIDE_COMPILED", instructions)
    rng, (n, d) = np.random.default_rng(4), shape
    rows = (rng.normal(size=shape) / math.sqrt(d)).astype(np.float32)
    (scales, shifts), counts = rng.uniform(0.5, 1.0, (2, n)), rng.uniform(0, 2, n)
    centre = rng.normal(size=d) / d
    weights, labels = rng.normal(size=d + 1), rng.choice([-1.0, 1.0], n)
    for moved in (True, False):
        own = (shifts, centre) if moved else (None, None)
        fused = ScaledSums(compiled, code_of(loss), rows, scales, *own, None, 0.5, 1.5, is_plain())
        found = np.zeros(d + 1)
        fused.add_to(found, labels, weights, counts)
        exact = np.column_stack([scales[:, None] * rows - (shifts[:, None] * centre if moved else 0.0), np.full(n, 0.5)])
        slopes = np.asarray(loss.of_scores((exact @ weights)[:, None], labels, 1).slope)[:, 0] * np.minimum(counts, 1.5)
        np.testing.assert_allclose(found, slopes @ exact, rtol=0.0, atol=2e-6 * math.sqrt(n))
        before = found.copy()
        fused.add_to(found, labels, weights, counts)
        np.testing.assert_allclose(found, 2.0 * before, rtol=1e-12)
