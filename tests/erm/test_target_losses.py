"""Losses of a score and a target: derivatives, constants, and what happens to targets and to short rows."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy.sparse

from confide.data.arrays import ArrayBlocks, MemorySource
from confide.data.sparse import SparseBlocks
from confide.erm.group_bounds import GroupBound
from confide.erm.row_bounds import BallBound
from confide.erm.row_sums import RowSum
from confide.erm.target_losses import PoissonLoss, SquaredLoss
from confide.errors import ParameterError

HUBER, WIDE = SquaredLoss(1.0, 0.1), SquaredLoss(0.5, 3.0)
CLIPPED = SquaredLoss(1.0, 0.1, by_length=True)
COUNTS, MANY = PoissonLoss(4.0, 0.5), PoissonLoss(2.0, 30.0)
LOSSES = [HUBER, WIDE, COUNTS, MANY]
NAMES = ["huber", "wide huber", "poisson", "loose poisson"]
SCORES = np.unique(np.concatenate([np.linspace(-12.0, 12.0, 24_001), np.geomspace(1e-9, 1e3, 200)]))


def targets_of(loss, n=9):
    """Targets over the declared interval, ends included."""
    return np.linspace(loss.lowest_target, loss.highest_target, n)


def terms(loss, scores, target, stretch=1.0):
    """Terms at scores (n,) of rows that share a target."""
    values, found = (loss.of_scores(scores[:, None], np.full(len(scores), target), order, stretch) for order in (0, 2))
    return values.value[:, 0], found.slope[:, 0], found.curvature[:, 0]


@pytest.mark.parametrize("stretch", [1.0, 7.0])
@pytest.mark.parametrize("loss", [*LOSSES, CLIPPED], ids=[*NAMES, "clipped"])
def test_derivatives_match_finite_differences_and_the_loss_is_convex(loss, stretch):
    """Value to slope everywhere, slope to curvature away from kinks; slopes never fall; the loss is nowhere negative."""
    scores, step = np.linspace(-5.0, 5.0, 4001), 1e-6
    for target in targets_of(loss):
        value, slope, curvature = terms(loss, scores, target, stretch)
        (high, up, _), (low, down, _) = (terms(loss, scores + h, target, stretch) for h in (step, -step))
        np.testing.assert_allclose(slope, (high - low) / (2 * step), atol=1e-5 * max(1.0, loss.smoothness))
        bent = (up - down) / (2 * step)
        assert np.mean(np.abs(curvature - bent) > 1e-4 * max(1.0, loss.smoothness)) < 0.002
        assert (np.diff(slope) >= 0.0).all()
        assert value.min() >= 0.0


@pytest.mark.parametrize("loss", LOSSES, ids=NAMES)
def test_constants_are_reached_and_never_exceeded(loss):
    """Slope, curvature, the curvature at each slope, and the value at score 0, the largest over targets."""
    slopes, curvatures, at_zero = [], [], []
    for target in targets_of(loss, 81):
        _, slope, curvature = terms(loss, SCORES, target)
        slopes.append(slope)
        curvatures.append(curvature)
        at_zero.append(terms(loss, np.zeros(1), target)[0][0])
    slopes, curvatures = np.abs(np.array(slopes)), np.array(curvatures)
    assert 0.999 * loss.lipschitz <= slopes.max() <= loss.lipschitz
    assert 0.98 * loss.smoothness <= curvatures.max() <= loss.smoothness * (1 + 1e-12)
    assert (curvatures <= loss.curvature_at_slope(slopes) * (1 + 1e-12)).all()
    np.testing.assert_allclose(max(at_zero), loss.value_at_zero, rtol=1e-9)
    steps = np.diff(loss.curvature_at_slope(np.linspace(0.0, loss.lipschitz, 101)))
    assert (steps >= 0.0).all()  # quasi-concave, with its peak at the end


def test_slopes_have_either_sign_and_the_flag_says_so():
    """The cheaper account of Gaussian noise is for losses whose slope has one sign."""
    for loss in [*LOSSES, CLIPPED]:
        slope = terms(loss, SCORES, 0.5)[1]
        assert slope.min() < 0.0 < slope.max()
        assert not loss.monotone
        assert not loss.tapered


@pytest.mark.parametrize("loss", [HUBER, COUNTS], ids=["huber", "poisson"])
def test_targets_are_clipped_inside_the_loss(loss):
    """Beyond the interval as at its end; what is not a number as at the lower end."""
    scores = np.linspace(-3, 3, 11)
    for given, counted in (
        (1e300, loss.highest_target), (math.inf, loss.highest_target),
        (-1e300, loss.lowest_target), (math.nan, loss.lowest_target),
    ):  # fmt: skip
        for found, expected in zip(terms(loss, scores, given), terms(loss, scores, counted), strict=True):
            np.testing.assert_array_equal(found, expected)


def test_the_clipped_square_is_the_square_within_its_limit_and_huber_for_the_longest_rows():
    """Half the squared residual up to threshold R / |x|; for |x| = R it is Huber's loss, and far out none overflows."""
    scores = np.linspace(-2, 2, 101)
    for found, expected in zip(terms(CLIPPED, scores, 0.3, 1.0), terms(HUBER, scores, 0.3), strict=True):
        np.testing.assert_array_equal(found, expected)
    value, slope, curvature = terms(CLIPPED, scores, 0.3, math.inf)
    np.testing.assert_allclose(value, (scores - 0.3) ** 2 / 2)
    np.testing.assert_allclose(slope, scores - 0.3)
    assert (curvature == 1.0).all()
    far = np.array([-1e300, -800.0, 800.0, 1e300])
    for loss in LOSSES:
        assert np.isfinite(np.array(terms(loss, far, 0.7))).all()


BOUNDS = {
    "ball": (BallBound(2.0), 1.5),
    "no intercept": (BallBound(2.0), 0.0),
    "groups": (GroupBound((2, 1), (1.0, 0.5)), 0.5),
}


@pytest.mark.parametrize("name", BOUNDS)
def test_no_row_pulls_harder_than_the_threshold_times_the_largest_row(name):
    """The gradient of one row, long or short, dense or sparse: at most threshold R; reached, and half of it is exceeded."""
    bound, intercept = BOUNDS[name]
    loss = SquaredLoss(1.0, 0.1, by_length=True)
    largest, rng, worst = math.hypot(bound.l2_norm, intercept), np.random.default_rng(1), 0.0
    row_sum = RowSum(loss, bound, intercept, 1)
    for case in range(300):
        row = rng.normal(size=(1, 3)) * np.exp(rng.uniform(-8, 3))
        weights = rng.normal(size=(1, 3 + (intercept > 0.0))) * np.exp(rng.uniform(0, 8))
        target = np.array([rng.choice([-1.0, 1.0, 1e9])])
        sparse = case % 2 and name != "groups"
        blocks = SparseBlocks(scipy.sparse.csr_array(row)) if sparse else ArrayBlocks(row)
        gradient = MemorySource(blocks, target).sum_over_rows(row_sum, weights).gradient[0]
        worst = max(worst, float(np.linalg.norm(gradient)) / (0.1 * largest))
    assert 0.999 < worst <= 1.0 + 1e-12
    zero = MemorySource(ArrayBlocks(np.zeros((1, 3))), np.ones(1)).sum_over_rows(row_sum, np.ones((1, 3 + (intercept > 0))))
    assert np.isfinite(zero.gradient).all()


def test_the_computed_slope_of_counts_is_within_its_stated_rounding():
    """Against 50 digits: at most `rounding` units of 2^-53 threshold, and the exponential's part is needed."""
    mpmath = pytest.importorskip("mpmath")
    rng, worst = np.random.default_rng(0), 0.0
    loss = PoissonLoss(1000.0, 0.5)
    scores = np.log(rng.uniform(1.0, 1000.0, 3000))
    targets = np.clip(np.exp(scores) + rng.uniform(-0.5, 0.5, 3000), 0.0, 1000.0)
    slopes = loss.of_scores(scores[:, None], targets, 1).slope[:, 0]
    with mpmath.workdps(50):
        for score, target, slope in zip(scores, targets, slopes, strict=True):
            exact = mpmath.exp(mpmath.mpf(float(score))) - mpmath.mpf(float(target))
            exact = max(-mpmath.mpf(0.5), min(mpmath.mpf(0.5), exact))
            worst = max(worst, abs(float(mpmath.mpf(float(slope)) - exact)) / (2.0**-53 * 0.5))
    assert 100.0 < worst <= loss.rounding


@pytest.mark.parametrize("wrong", [0.0, -1.0, math.inf, math.nan, 1e-40])
def test_thresholds_outside_their_range_are_refused(wrong):
    """Positive, finite, and not absurdly small beside the targets."""
    for loss in (SquaredLoss, PoissonLoss):
        with pytest.raises(ParameterError):
            loss(1e10, wrong)
