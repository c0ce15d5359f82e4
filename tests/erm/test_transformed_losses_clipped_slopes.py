"""Slopes that are clipped row by row: no row's gradient is longer than the limit, and short gradients stay as they are."""

from __future__ import annotations

import numpy as np
import pytest

from confide.erm.class_losses import OneVsRest, Softmax
from confide.erm.group_bounds import GroupBound
from confide.erm.losses import HuberHinge, LogisticLoss
from confide.erm.row_bounds import BallBound
from confide.erm.row_sums import RowSum
from confide.erm.target_losses import MeanLoss, SquaredLoss
from confide.erm.transformed_losses import ClippedSlopes
from confide.errors import ParameterError

LOSSES = [LogisticLoss(), HuberHinge(2.0**-8), SquaredLoss(3.0, 2.0), SquaredLoss(3.0, 2.0, by_length=True),
          MeanLoss(3.0, 2.0), Softmax(4), OneVsRest(LogisticLoss(), 3)]  # fmt: skip
every_loss = pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: loss.constants.name)


def gradient_of(row_sum, row, target, weights, row_weight=None):
    """The gradient (o, D) of one row."""
    totals = row_sum.start(1, len(row))
    kind = np.intp if row_sum.loss.constants.n_outputs > 1 else np.float64
    counts = None if row_weight is None else np.array([row_weight])
    row_sum.add_block(totals, np.array([row]), np.array([target], dtype=kind), weights.reshape(1, -1), counts)
    return totals.gradient.reshape(row_sum.loss.constants.n_outputs, -1)


def target_for(loss, rng):
    """A label or target that the loss reads."""
    if loss.constants.n_outputs > 1:
        return rng.integers(loss.constants.n_outputs)
    return rng.choice([-1.0, 1.0]) if loss.constants.monotone else rng.uniform(-4.0, 4.0)


@every_loss
@pytest.mark.parametrize("intercept", [0.0, 0.7])
@pytest.mark.parametrize(
    "bound", [BallBound(2.0), GroupBound((2, 1), (1.5, 1.0)), GroupBound((3,), (1.2,), (True,))], ids=str
)
def test_no_gradient_of_a_row_is_longer_than_the_limit(loss, intercept, bound):
    """150 rows from tiny to far beyond the bound: the length is that of the plain gradient, or the limit times R."""
    rng = np.random.default_rng(0)
    limit = 0.3 * loss.constants.lipschitz
    clipped = RowSum(ClippedSlopes(loss, limit), bound, intercept, 1)
    plain = RowSum(loss, bound, intercept, 1)
    longest = limit * np.hypot(bound.l2_norm, intercept)
    were_clipped = 0
    for _ in range(150):
        row = rng.normal(size=3) * 10.0 ** rng.uniform(-3, 2)
        weights = rng.normal(size=loss.constants.n_outputs * (3 + (intercept > 0.0))) * 10.0 ** rng.uniform(-1, 1)
        target = target_for(loss, rng)
        found, free = (gradient_of(each, row, target, weights) for each in (clipped, plain))
        length = np.linalg.norm(free)
        assert np.linalg.norm(found) <= longest * (1.0 + 1e-14)
        np.testing.assert_allclose(found, free * min(1.0, longest / length if length else 1.0), rtol=1e-13, atol=1e-15)
        were_clipped += length > longest
    assert 6 < were_clipped < 144


def test_a_row_of_zeros_adds_nothing():
    """Its slope has no limit, and is finite."""
    for loss in (ClippedSlopes(LogisticLoss(), 0.1), ClippedSlopes(Softmax(3), 0.1)):
        row_sum = RowSum(loss, BallBound(1.0), 0.0, 1)
        with np.errstate(all="ignore"):
            found = gradient_of(row_sum, np.zeros(2), 1, np.zeros(2 * loss.constants.n_outputs))
        assert (found == 0.0).all()


def test_the_limit_holds_for_a_weight_of_one_and_weights_multiply_it():
    """A weight of 2.5 of at most 3 makes a gradient of 2.5 times the limit; a weight of 100 counts as 3."""
    row_sum = RowSum(ClippedSlopes(LogisticLoss(), 0.25), BallBound(1.0), 0.0, 1, largest_weight=3.0)
    for weight, counted in ((2.5, 2.5), (100.0, 3.0)):
        found = gradient_of(row_sum, np.array([1.0, 0.0]), -1, np.array([50.0, 0.0]), weight)
        assert np.linalg.norm(found) == pytest.approx(0.25 * counted, rel=1e-9)


def test_clipping_twice_is_clipping_to_the_smaller_limit_bit_for_bit():
    """The clipped square has a limit of its own: proofs/gradient.md, section 4."""
    rng = np.random.default_rng(1)
    twice = RowSum(ClippedSlopes(SquaredLoss(3.0, 0.9, by_length=True), 0.3), BallBound(1.0), 0.5, 1)
    once = RowSum(SquaredLoss(3.0, 0.3, by_length=True), BallBound(1.0), 0.5, 1)
    for _ in range(200):
        row, weights, target = rng.normal(size=2), rng.normal(size=3), rng.normal() * 3.0
        assert np.array_equal(gradient_of(twice, row, target, weights), gradient_of(once, row, target, weights))


def test_many_problems_are_clipped_each_by_itself():
    """The slopes of one problem do not shorten those of another."""
    loss, scores = ClippedSlopes(Softmax(3), 0.2), np.random.default_rng(2).normal(size=(5, 6)) * 3.0
    targets = np.array([0, 1, 2, 1, 0])
    together = loss.of_scores(scores, targets, 1, np.ones((5, 1))).slope
    for number in range(2):
        alone = loss.of_scores(scores[:, 3 * number : 3 * number + 3], targets, 1, np.ones((5, 1))).slope
        np.testing.assert_array_equal(together[:, 3 * number : 3 * number + 3], alone)


@every_loss
def test_constants_are_those_before_the_clip(loss):
    """The rounding of scores and rows is multiplied with them; the norm of several slopes is rounded too."""
    own, clipped = loss.constants, ClippedSlopes(loss, 0.2).constants
    for name in (
        "name",
        "lipschitz",
        "smoothness",
        "value_at_zero",
        "tail",
        "n_outputs",
        "rank",
        "trace",
        "margin",
        "joint",
    ):
        assert getattr(clipped, name) == getattr(own, name)
    assert clipped.rounding == own.rounding + (0.5 * own.n_outputs + 4.0) * (own.n_outputs > 1)
    assert (clipped.by_length, clipped.bounded_slopes, clipped.slope_limit) == (True, own.bounded_slopes, 0.2)
    assert [clipped.monotone, clipped.tapered, clipped.self_concordant, clipped.convex] == [False] * 4
    assert clipped.separable == (own.n_outputs == 1)
    np.testing.assert_array_equal(clipped.curvature_at_slope(np.array([0.3])), own.curvature_at_slope(np.array([0.3])))
    assert clipped.weighted(2.0).lipschitz == 2.0 * own.lipschitz


@pytest.mark.parametrize("order", [0, 2])
def test_there_are_no_sums_of_values_or_curvatures(order):
    """There need not be a function whose slopes these are."""
    with pytest.raises(ParameterError, match="order 1 alone"):
        ClippedSlopes(LogisticLoss(), 0.2).of_scores(np.zeros((1, 1)), np.ones(1), order)


def test_slopes_by_hand():
    """A slope of -1/2 is cut to -1/8 for a limit of 1/16 and a row of half the largest length; (1, -2, 1)/3 is shortened."""
    one, zeros = ClippedSlopes(LogisticLoss(), 0.0625), np.zeros((2, 1))
    found = one.of_scores(zeros, np.array([1, -1]), 1, np.array([[2.0], [16.0]]))
    assert (found.slope.tolist(), found.value, found.curvature) == ([[-0.125], [0.5]], None, None)
    several = ClippedSlopes(Softmax(3), 0.5)
    slopes = several.of_scores(np.zeros((3, 3)), np.full(3, 1), 1, np.array([[1.0], [2.0], [np.inf]])).slope
    plain = np.array([1.0, -2.0, 1.0]) / 3.0
    np.testing.assert_allclose(slopes, [plain * 0.5 / np.sqrt(2 / 3), plain, plain], rtol=1e-14)


def test_what_is_no_number_counts_as_the_steepest_slope():
    """Of a user's loss of one score: downwards, as far as the limit allows."""

    class NoNumber(LogisticLoss):
        """Slopes that are none."""

        def derivative(self, margin):
            """NaN."""
            return np.full_like(margin, np.nan)

    found = ClippedSlopes(NoNumber(), 0.25).of_scores(np.zeros((1, 1)), np.ones(1, np.int8), 1, 2.0).slope
    assert found.tolist() == [[-0.5]]


def test_the_norm_of_two_slopes_is_rounded_too():
    """Half a unit for each of several slopes and 4 more; one slope alone is compared."""
    assert ClippedSlopes(Softmax(2), 0.5).constants.rounding == Softmax(2).constants.rounding + 5.0
    assert ClippedSlopes(LogisticLoss(), 0.5).constants.rounding == 12.0


def test_rows_are_as_long_as_the_bound_where_nothing_is_said():
    """The stretch of a row is 1 then, so that the limit is the one that was given."""
    found = ClippedSlopes(LogisticLoss(), 0.125).of_scores(np.zeros((1, 1)), np.ones(1, np.int8), 1).slope
    assert found.tolist() == [[-0.125]]
