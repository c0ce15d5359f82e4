"""Losses of a score and a target: derivatives, constants, and what happens to targets and to short rows."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy.sparse

from confide.data.arrays import ArrayBlocks, MemorySource
from confide.erm.group_bounds import GroupBound
from confide.erm.row_bounds import BallBound
from confide.erm.row_sums import RowSum
from confide.erm.target_losses import MeanLoss, SquaredLoss
from confide.errors import ParameterError

HUBER, WIDE = SquaredLoss(1.0, 0.1), SquaredLoss(0.5, 3.0)
CLIPPED = SquaredLoss(1.0, 0.1, by_length=True)
COUNTS, MANY = MeanLoss(4.0, 0.5), MeanLoss(2.0, 30.0)
LOSSES = [HUBER, WIDE, COUNTS, MANY]
NAMES = ["huber", "wide huber", "poisson", "loose poisson"]
SCORES = np.unique(np.concatenate([np.linspace(-12.0, 12.0, 24_001), np.geomspace(1e-9, 1e3, 200)]))


def targets_of(loss, n=9):
    """Targets over the declared interval, ends included."""
    return np.linspace(loss.targets[0], loss.targets[1], n)


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
        np.testing.assert_allclose(slope, (high - low) / (2 * step), atol=1e-5 * max(1.0, loss.constants.smoothness))
        bent = (up - down) / (2 * step)
        assert np.mean(np.abs(curvature - bent) > 1e-4 * max(1.0, loss.constants.smoothness)) < 0.002
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
    assert 0.999 * loss.constants.lipschitz <= slopes.max() <= loss.constants.lipschitz
    assert 0.98 * loss.constants.smoothness <= curvatures.max() <= loss.constants.smoothness * (1 + 1e-12)
    assert (curvatures <= loss.constants.curvature_at_slope(slopes) * (1 + 1e-12)).all()
    np.testing.assert_allclose(max(at_zero), loss.constants.value_at_zero, rtol=1e-9)
    steps = np.diff(loss.constants.curvature_at_slope(np.linspace(0.0, loss.constants.lipschitz, 101)))
    assert (steps >= 0.0).all()  # quasi-concave, with its peak at the end


def test_slopes_have_either_sign_and_the_flag_says_so():
    """The cheaper account of Gaussian noise is for losses whose slope has one sign."""
    for loss in [*LOSSES, CLIPPED]:
        slope = terms(loss, SCORES, 0.5)[1]
        assert slope.min() < 0.0 < slope.max()
        assert not loss.constants.monotone
        assert not loss.constants.tapered


@pytest.mark.parametrize("loss", [HUBER, COUNTS], ids=["huber", "poisson"])
def test_targets_are_clipped_inside_the_loss(loss):
    """Beyond the interval as at its end; what is not a number as at the lower end."""
    scores = np.linspace(-3, 3, 11)
    for given, counted in (
        (1e300, loss.targets[1]), (math.inf, loss.targets[1]),
        (-1e300, loss.targets[0]), (math.nan, loss.targets[0]),
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
        blocks = ArrayBlocks(scipy.sparse.csr_array(row) if sparse else row)
        gradient = MemorySource(blocks, target).sum_over_rows(row_sum, weights).gradient[0]
        worst = max(worst, float(np.linalg.norm(gradient)) / (0.1 * largest))
    assert 0.999 < worst <= 1.0 + 1e-12
    zero = MemorySource(ArrayBlocks(np.zeros((1, 3))), np.ones(1)).sum_over_rows(row_sum, np.ones((1, 3 + (intercept > 0))))
    assert np.isfinite(zero.gradient).all()


def test_the_computed_slope_of_counts_is_within_its_stated_rounding():
    """Against 50 digits: at most `rounding` units of 2^-53 threshold, and the exponential's part is needed."""
    mpmath = pytest.importorskip("mpmath")
    rng, worst = np.random.default_rng(0), 0.0
    loss = MeanLoss(1000.0, 0.5)
    scores = np.log(rng.uniform(1.0, 1000.0, 3000))
    targets = np.clip(np.exp(scores) + rng.uniform(-0.5, 0.5, 3000), 0.0, 1000.0)
    slopes = loss.of_scores(scores[:, None], targets, 1).slope[:, 0]
    with mpmath.workdps(50):
        for score, target, slope in zip(scores, targets, slopes, strict=True):
            exact = mpmath.exp(mpmath.mpf(float(score))) - mpmath.mpf(float(target))
            exact = max(-mpmath.mpf(0.5), min(mpmath.mpf(0.5), exact))
            worst = max(worst, abs(float(mpmath.mpf(float(slope)) - exact)) / (2.0**-53 * 0.5))
    assert 100.0 < worst <= loss.constants.rounding


@pytest.mark.parametrize("wrong", [0.0, -1.0, math.inf, math.nan, 1e-40])
def test_thresholds_outside_their_range_are_refused(wrong):
    """Positive, finite, and not absurdly small beside the targets."""
    for loss in (SquaredLoss, MeanLoss):
        with pytest.raises(ParameterError):
            loss(1e10, wrong)


HALF = {0.0: (0, 0, 1), 0.25: (1 / 32, 0.25, 1), 0.5: (0.125, 0.5, 1), 0.625: (0.1875, 0.5, 0), 2.0: (0.875, 0.5, 0)}
ONE_AND_A_HALF = 1.5 - 1.0 - math.log(1.5)
BY_HAND = [
    *((SquaredLoss(1.0, 0.5), t + side * r, t, 1.0, (v, side * s, c)) for r, (v, s, c) in HALF.items() for t in (0.25, -1)
      for side in (1, -1)),
    *((SquaredLoss(1.0, 0.25, by_length=True), r, 0.0, 2.0, terms_there) for r, terms_there in HALF.items()),
    (SquaredLoss(1.0, 0.5), 2.0, 0.0, 9.0, HALF[2.0]),
    # Half the deviance of a mean e^s from a count: 1 from 1, 1.25 from 1, beyond 1.5 from 1, and from none.
    (COUNTS, 0.0, 1.0, 1.0, (0, 0, 1)),
    (COUNTS, math.log(1.25), 1.0, 1.0, (0.25 - math.log(1.25), 0.25, 1.25)),
    (COUNTS, math.log(0.75), 1.0, 1.0, (-0.25 - math.log(0.75), -0.25, 0.75)),
    (COUNTS, 2.0, 1.0, 1.0, (ONE_AND_A_HALF + 0.5 * (2.0 - math.log(1.5)), 0.5, 0)),
    (COUNTS, -1.0, 1.0, 1.0, (-0.5 - math.log(0.5) + 0.5 * (1.0 + math.log(0.5)), -0.5, 0)),
    (COUNTS, -1.0, 0.0, 1.0, (math.exp(-1.0), math.exp(-1.0), math.exp(-1.0))),
    (COUNTS, 0.0, 0.5, 1.0, (0.5 + 0.5 * math.log(0.5), 0.5, 1)),
    (COUNTS, 0.0, 0.0, 1.0, (0.5 - 0.5 * math.log(0.5), 0.5, 0)),
    (COUNTS, 0.0, 4.0, 1.0, (3.5 - 4.0 - 4.0 * math.log(3.5 / 4.0) + 0.5 * math.log(3.5), -0.5, 0)),
    # A mean of 12 from a count of 2, and of 1/8 from 2: far from the minimum, where no limit binds.
    (MANY, math.log(12.0), 2.0, 1.0, (10.0 - 2.0 * math.log(6.0), 10.0, 12.0)),
    (MANY, math.log(0.125), 2.0, 1.0, (-1.875 + 2.0 * math.log(16.0), -1.875, 0.125)),
]  # fmt: skip


@pytest.mark.parametrize(("loss", "score", "target", "stretch", "expected"), BY_HAND)
def test_losses_by_hand(loss, score, target, stretch, expected):
    """Value, slope and curvature; a limit counts as bent, and only a loss clipped by length has its limit stretched."""
    found = np.ravel(terms(loss, np.array([score]), target, stretch))
    np.testing.assert_allclose(found, expected, rtol=1e-14, atol=1e-15)


def test_constants_by_hand():
    """Huber's value at 0 is that of the farthest target, the square's has no limit, and counts have it at either end."""
    assert (HUBER.constants.lipschitz, HUBER.constants.smoothness, HUBER.constants.rounding, HUBER.constants.trace) == (
        0.1,
        1.0,
        3.0,
        1.0,
    )
    assert SquaredLoss(1.0, 0.5).constants.value_at_zero == 0.375
    assert SquaredLoss(2.0, 3.0).constants.value_at_zero == 2.0
    assert SquaredLoss(5.0, 0.5, by_length=True).constants.value_at_zero == 12.5
    assert (COUNTS.constants.lipschitz, COUNTS.constants.smoothness, COUNTS.constants.rounding) == (
        0.5,
        4.5,
        9.0 * 9.0 + 3.0,
    )
    np.testing.assert_array_equal(COUNTS.constants.curvature_at_slope(np.array([0.0, 0.5])), [4.0, 4.5])
    np.testing.assert_array_equal(HUBER.constants.curvature_at_slope(np.array([0.0, 0.1])), [1.0, 1.0])
    for loss, largest in (
        (COUNTS, 0.5 + 0.5 * math.log(2.0)),
        (MANY, 1.0),
        (MeanLoss(20.0, 30.0), 20.0 * math.log(20.0) - 19),
    ):
        # Rounded up by 2^-40: more than any rounding, and next to nothing.
        assert loss.constants.value_at_zero / largest - 1.0 == pytest.approx(2.0**-40, rel=0.01, abs=0.0)
    assert [loss.constants.name for loss in (HUBER, CLIPPED, COUNTS)] == ["huber", "clipped_squared", "poisson"]
    assert [loss.constants.by_length for loss in (HUBER, CLIPPED, COUNTS)] == [False, True, False]
    for loss in (HUBER, CLIPPED, COUNTS):
        assert (
            loss.constants.monotone,
            loss.constants.tapered,
            loss.constants.self_concordant,
            loss.constants.separable,
            loss.constants.n_outputs,
        ) == (
            False,
            False,
            False,
            True,
            1,
        )


@pytest.mark.parametrize("loss", [HUBER, COUNTS], ids=["huber", "poisson"])
def test_what_is_not_asked_for_is_not_computed(loss):
    """The value alone for order 0, the slope for order 1, and the curvature beside it for order 2."""
    given = [[part is not None for part in loss.of_scores(np.zeros((1, 1)), np.ones(1), order)] for order in (0, 1, 2)]
    assert given == [[True, False, False], [False, True, False], [False, True, True]]


@pytest.mark.parametrize("kind", [SquaredLoss, MeanLoss])
def test_the_range_of_thresholds_has_both_its_ends(kind):
    """2^-300 to 2^300, and 2^-100 of the bound on targets, but for a bound that is infinite; by one rounding."""
    for bound, threshold in (
        (2.0**-300, 2.0**-300),
        (1.0, 2.0**300),
        (2.0**100, 1.0),
        (1.0, 2.0**-100),
        (math.inf, 2.0**-300),
    ):
        assert kind(bound, threshold).threshold == threshold
    for bound, threshold in (
        (2.0**-300, math.nextafter(2.0**-300, 0)), (1.0, math.nextafter(2.0**300, math.inf)),
        (2.0**100, math.nextafter(1.0, 0)), (math.nextafter(2.0**-300, 0), 1.0), (math.nan, 1.0), (math.inf, 0.0),
    ):  # fmt: skip
        with pytest.raises(ParameterError, match=r"2\^-100 of target_bound"):
            kind(bound, threshold)


def test_rows_are_as_long_as_the_bound_where_nothing_is_said():
    """The stretch of a row is 1 then, so that the limit is the threshold."""
    assert CLIPPED.of_scores(np.full((1, 1), 5.0), np.zeros(1), 1).slope.tolist() == [[0.1]]
