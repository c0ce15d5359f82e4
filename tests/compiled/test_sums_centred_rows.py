"""Gradients by the kernel over rows that a centre moves: those of NumPy, within theorem 2 of privacy/proofs/centring.md."""

from __future__ import annotations

import math

import mpmath
import numpy as np
import pytest

from confide.compiled.stored_rows import StoredArray
from confide.compiled.sums import by_kernel
from confide.data.arrays import ArrayBlocks, MappedBlocks, MemorySource, StoredBlocks
from confide.erm.group_bounds import GroupBound
from confide.erm.losses import HuberHinge, LogisticHinge, LogisticLoss, SmoothHinge
from confide.erm.row_bounds import BallBound, Centred
from confide.erm.row_sums import RowSum
from confide.erm.target_losses import SquaredLoss
from confide.features.fourier import CurvesAndFeatures, FourierMap
from tests.compiled.test_sums import by_numpy, exact_total, summed

UNIT = 2.0**-53
LOSSES = [LogisticLoss(), LogisticHinge(0.5), HuberHinge(0.3), SmoothHinge(0.2), SquaredLoss(0.8, 1.0)]


@pytest.fixture(params=["", "plain"], autouse=True)
def instructions(request, monkeypatch, compiled):
    """Sums by the instructions of this processor, and by those that every processor has."""
    monkeypatch.setenv("CONFIDE_COMPILED", request.param)


def centred(rng, d, norm=1.0, radius=0.7, length=0.6):
    centre = rng.normal(size=d)
    return Centred(BallBound(norm), tuple(length * norm * centre / np.linalg.norm(centre)), radius * norm)


@pytest.mark.parametrize("shape", [(1, 4), (3, 5), (4, 6), (259, 7), (300, 27), (65, 103), (33, 1100)])
@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: loss.constants.name)
@pytest.mark.parametrize("kind", [np.float64, np.float32])
def test_sums_are_those_of_numpy(loss, shape, kind):
    """Of rows inside both bounds and outside of either; with weights of rows below 0, too large and not a number."""
    rng = np.random.default_rng(shape[0])
    bound = centred(rng, shape[1])
    rows = rng.normal(size=shape) * rng.uniform(0.01, 3.0, size=(shape[0], 1)) / math.sqrt(shape[1])
    rows[::3] = rows[::3] * 0.3 + np.array(bound.centre)
    rows = rows.astype(kind)
    before, labels = rows.copy(), rng.choice([-1, 1], shape[0]).astype(np.int8)
    row_weights = rng.uniform(-0.5, 2.5, shape[0])
    row_weights[::7] = np.nan
    for intercept, counts, largest in ((0.4, None, 1.5), (0.7, row_weights, 1.5), (1.0, None, 0.8)):
        row_sum = RowSum(loss, bound, intercept, 1, largest)
        weights = 5.0 * rng.normal(size=(1, shape[1] + 1))
        found = summed(row_sum, rows, labels, weights, counts)
        expected = by_numpy(row_sum, rows, labels, weights, counts)
        np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-13 * shape[0])
    np.testing.assert_array_equal(rows, before)


def ordinary(rng, n, d):
    return rng.normal(size=(n, d)) / math.sqrt(d), centred(rng, d), rng.normal(size=(1, d + 1))


def at_the_centre(rng, n, d):
    """Their distances from the centre are lost in rounding."""
    bound = centred(rng, d, length=1.0)
    rows = np.array(bound.centre) * (1.0 + 1e-9 * rng.normal(size=(n, d)))
    return rows, bound, 3.0 * rng.normal(size=(1, d + 1))


def at_the_radius(rng, n, d):
    """Their distances lie on both sides of the radius."""
    bound, away = centred(rng, d, norm=4.0, radius=0.5, length=0.2), rng.normal(size=(n, d))
    away *= bound.moving[1] / np.linalg.norm(away, axis=1)[:, None] * (1.0 + UNIT * rng.integers(-40, 41, (n, 1)))
    return np.array(bound.centre) + away, bound, 8.0 * rng.normal(size=(1, d + 1))


def far(rng, n, d):
    rows = rng.normal(size=(n, d)) * 10.0 ** rng.choice([-9, 0, 3, 55], size=(n, 1))
    return rows, centred(rng, d), 40.0 * rng.normal(size=(1, d + 1))


def tiny(rng, n, d):
    rows = rng.normal(size=(n, d)) * 2.0 ** rng.choice([-290.0, -100.0, -95.0], size=(n, 1)) / d
    return rows, centred(rng, d, norm=2.0**-290), 2.0**290 * rng.normal(size=(1, d + 1))


def single_precision(rng, n, d):
    rows, bound, weights = ordinary(rng, n, d)
    return rows.astype(np.float32), bound, 30.0 * weights


@pytest.mark.parametrize("kind", [ordinary, at_the_centre, at_the_radius, far, tiny, single_precision])
@pytest.mark.parametrize("loss", [LogisticLoss(), HuberHinge(0.3)], ids=lambda loss: loss.constants.name)
def test_the_error_is_within_theorem_2(loss, kind):
    """Against 60 digits, with the allowance of one block: no ridge, no noise, and the numbers of the theorem."""
    rng, worst = np.random.default_rng(5), 0.0
    for n, d in ((1, 4), (40, 6), (37, 33), (130, 5)):
        rows, bound, weights = kind(rng, n, d)
        norm = bound.l2_norm
        labels, row_weights, row_sum = rng.choice([-1, 1], n), rng.uniform(0.0, 2.0, n), RowSum(loss, bound, norm, 1, 1.5)
        kernel = by_kernel(row_sum, 1, 256)
        # The kernel itself makes these sums; NumPy has none of them to mend.
        assert kernel._sums(StoredArray(rows), labels.astype(np.int8), weights[0], row_weights) is not None
        with np.errstate(under="ignore"):
            found = summed(row_sum, rows, labels.astype(np.int8), weights, row_weights, 256)
        with mpmath.workdps(60):
            exact = exact_total(row_sum, exact_rows(bound, rows, norm), labels, weights, row_weights)
            apart = mpmath.fsum((mpmath.mpf(float(one)) - other) ** 2 for one, other in zip(found, exact, strict=True))
            at = mpmath.sqrt(mpmath.fsum(mpmath.mpf(float(w)) ** 2 for w in weights[0]))
            size, longest = d + 1, math.hypot(norm, norm)
            scores = (15 * size + 57) * loss.constants.smoothness * longest * at
            allowed = 1.01 * UNIT * n * 1.5 * longest * (4 * n + 11 * size + 58 + 13 + scores)
            worst = max(worst, float(mpmath.sqrt(apart) / allowed))
    assert worst <= 1.0
    # An allowance that is far too small would not pass, and neither would rows at which nothing is rounded.
    assert worst > 1e-6


def exact_rows(bound, rows, intercept):
    """The ideal rows: clipped, moved, shortened and magnified in exact arithmetic, with the constant of the intercept."""
    ball, made = mpmath.mpf(bound.inner._radius(rows.shape[1])), []
    centre, radius, magnification = bound.moving
    for row in rows:
        entries = [mpmath.mpf(float(x)) for x in row]
        length = mpmath.sqrt(mpmath.fsum(x * x for x in entries))
        share = min(mpmath.mpf(1), ball / length) if length else mpmath.mpf(1)
        entries = [share * x - mpmath.mpf(float(c)) for x, c in zip(entries, centre, strict=True)]
        length = mpmath.sqrt(mpmath.fsum(x * x for x in entries))
        share = mpmath.mpf(magnification) * (min(mpmath.mpf(1), radius / length) if length else 1)
        made.append([share * x for x in entries] + [mpmath.mpf(intercept)])
    return made


@pytest.mark.parametrize("rows", ["columns", "gaps", "three columns", "huge"])
def test_numpy_makes_sums_over_other_rows(rows):
    """Of those that are not each in one piece, of too few columns, and too far from the ball; to the bit."""
    rng = np.random.default_rng(3)
    given = rng.normal(size=(130, 3 if rows == "three columns" else 6))
    if rows == "columns":
        given = np.asfortranarray(given)
    if rows == "gaps":
        given = np.repeat(given, 2, axis=1)[:, ::2]
    if rows == "huge":
        given[70] = 1e200
    bound = centred(rng, given.shape[1])
    row_sum, labels = RowSum(LogisticLoss(), bound, 0.5, 1), rng.choice([-1, 1], 130).astype(np.int8)
    weights, expected = rng.normal(size=(1, given.shape[1] + 1)), row_sum.start(1, given.shape[1])
    for start in range(0, 130, 64):
        part = slice(start, start + 64)
        row_sum.add_block(expected, given[part], labels[part], weights)
    assert by_kernel(row_sum, 1, 64)._sums(StoredArray(given), labels, weights[0], None) is None
    np.testing.assert_array_equal(summed(row_sum, given, labels, weights), expected.gradient[0])


def of_features(keeps=True):
    blocks = MappedBlocks(ArrayBlocks(np.random.default_rng(1).normal(size=(5000, 4))), MAP, keeps)
    return MemorySource(blocks, np.resize(np.array([1, -1, -1], np.int8), 5000))


MAP = CurvesAndFeatures(FourierMap(4, 50), 1.0, 2.0)


def test_kept_rows_with_features_are_summed_as_they_are_stored(monkeypatch):
    """Whether they were all made before or not; with a centre and without one. Rows that are made anew are not stored."""
    weights = np.linspace(-1.0, 1.0, 55)[None]
    for bound in (BallBound(1.5), centred(np.random.default_rng(4), 54, 2.0)):
        row_sum, source = RowSum(LogisticLoss(), bound, 1.0, 1), of_features()
        source.blocks.block(100, 200)
        assert type(source.blocks.as_certified(bound)) is StoredBlocks
        found = source.sum_over_rows(row_sum, weights).gradient
        assert of_features(keeps=False).blocks.as_certified(bound) is None
        monkeypatch.setenv("CONFIDE_COMPILED", "0")
        expected = of_features().sum_over_rows(row_sum, weights).gradient
        np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-5)
        monkeypatch.delenv("CONFIDE_COMPILED")


def test_bounds_of_groups_and_of_other_kinds_are_left_to_numpy():
    """Also below a centre."""
    groups = GroupBound((54,), (1.0,))
    for bound in (groups, Centred(groups, (0.0,) * 54, 1.0), type("Other", (BallBound,), {"__slots__": ()})(1.0)):
        assert of_features().blocks.as_certified(bound) is None
