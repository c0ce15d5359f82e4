"""Slopes of a user's loss, interpolated: they never jump, whatever the loss does."""

from __future__ import annotations

import math

import numpy as np
import pytest

from confide.erm.transformed_losses import DeclaredLoss, InterpolatedSlopes
from confide.errors import ParameterError


class Hinge:
    """A corner at 1, and a slope that is not a number at 0."""

    def derivative(self, margin):
        """The slope."""
        return np.where(margin == 0.0, np.nan, np.where(margin <= 1.0, -1.0, 0.0))


class Wild:
    """No convex function has these slopes."""

    def derivative(self, score, target):
        """The slope."""
        return np.sign(np.sin(1000.0 * score + target)) * 5.0


def declared(loss, target_bound=None, lipschitz=1.0):
    """A loss as `loss_with_slopes` reads it."""
    return DeclaredLoss(loss, target_bound, "own", lipschitz, math.inf, math.inf, 1024.0, False)


def slopes(loss, scores, targets):
    """Slopes of one problem."""
    return loss.of_scores(np.asarray(scores, dtype=np.float64)[:, None], np.asarray(targets), 1).slope[:, 0]


@pytest.mark.parametrize("label", [-1, 1])
def test_the_hinge_gets_a_joint_of_one_width(label):
    """Slopes at multiples of the width are those of the loss, and halfway between two of them the mean."""
    loss, width = InterpolatedSlopes(declared(Hinge()), 0.25), 0.25
    margins = np.array([-3.0, 0.5, 1.0, 1.0 + width / 2, 1.0 + width, 7.0])
    expected = label * np.array([-1.0, -1.0, -1.0, -0.5, 0.0, 0.0])
    np.testing.assert_array_equal(slopes(loss, label * margins, np.full(6, label)), expected)


def test_what_is_not_a_number_is_a_legal_slope():
    """A slope that is not a number counts as the steepest one."""
    assert slopes(InterpolatedSlopes(declared(Hinge()), 0.5), [0.0], [1])[0] == -1.0


@pytest.mark.parametrize("width", [2.0**-12, 2.0**-5, 4.0])
@pytest.mark.parametrize(("loss", "bound", "lipschitz"), [(Hinge(), None, 1.0), (Wild(), 2.0, 3.0)])
def test_slopes_change_no_faster_than_the_constant_says_and_that_is_attained(loss, bound, lipschitz, width):
    """20,000 pairs of close scores; the largest rate is that of neighbours on both sides of a jump."""
    made = InterpolatedSlopes(declared(loss, bound, lipschitz), width)
    rng = np.random.default_rng(0)
    first = rng.uniform(-3.0, 3.0, 20_000)
    second = first + rng.choice([-1.0, 1.0], 20_000) * width * 10.0 ** rng.uniform(-3.0, 0.5, 20_000)
    targets = rng.choice([-1, 1], 20_000) if bound is None else rng.uniform(-bound, bound, 20_000)
    one, other = slopes(made, first, targets), slopes(made, second, targets)
    assert np.abs(one).max() <= lipschitz
    assert (np.abs(one - other) <= made.constants.smoothness * np.abs(first - second) + 1e-12).all()
    if bound is not None and width < 1.0:
        assert (np.abs(one - other) / np.abs(first - second)).max() > 0.99 * made.constants.smoothness


def test_the_computed_slope_is_within_the_declared_rounding():
    """Against extended precision, at scores of all sizes, tiny negative ones among them."""
    loss = InterpolatedSlopes(declared(Wild(), 2.0, 3.0), 2.0**-6)
    rng = np.random.default_rng(1)
    scores = np.concatenate([rng.choice([-1, 1], 5_000) * 10.0 ** rng.uniform(-320.0, 6.0, 5_000), rng.normal(size=5_000)])
    targets = rng.uniform(-2.0, 2.0, 10_000)
    position = scores.astype(np.longdouble) / np.longdouble(loss.width)
    left = np.floor(position)
    share = position - left
    at = [np.clip(Wild().derivative((left + k).astype(np.float64) * loss.width, targets), -3.0, 3.0) for k in (0, 1)]
    exact = (1 - share) * at[0] + share * at[1]
    assert (
        np.abs(slopes(loss, scores, targets) - exact).max() <= loss.constants.rounding * 2.0**-53 * loss.constants.lipschitz
    )


def test_constants_and_orders():
    """Slopes alone are summed; nothing is claimed of the loss."""
    loss = InterpolatedSlopes(declared(Hinge(), lipschitz=3.0), 0.5)
    assert (loss.constants.lipschitz, loss.constants.smoothness, loss.constants.name, loss.constants.n_outputs) == (
        3.0,
        12.0,
        "own",
        1,
    )
    # The share of the way moves the slope by 2, difference, products and sum err by up to 4 more, and 2 are room.
    assert loss.constants.rounding == 8.0
    assert loss.constants.value_at_zero == math.inf
    assert (loss.constants.joint, loss.constants.convex, loss.constants.is_declared) == (0.25, False, True)
    assert [loss.constants.monotone, loss.constants.by_length, loss.constants.tapered, loss.constants.self_concordant] == [
        False
    ] * 4
    np.testing.assert_array_equal(loss.constants.curvature_at_slope(np.ones(2)), [12.0, 12.0])
    with pytest.raises(ParameterError, match="order 1 alone"):
        loss.of_scores(np.zeros((1, 1)), np.ones(1), 2)


def test_slopes_between_multiples_by_hand():
    """A quarter of the way from one multiple to the next, on both sides of 0, for two problems at once."""

    class Cubic:
        """Slopes 0, 1, 8 at multiples of 1."""

        def derivative(self, score, target):
            """The cube of the residual."""
            return (score - target) ** 3

    loss = InterpolatedSlopes(declared(Cubic(), 1.0, 100.0), 1.0)
    found = loss.of_scores(np.array([[1.25, -1.25], [2.5, 2.0]]), np.array([0.0, 1.0]), 1).slope
    assert found.tolist() == [[1.0 + 7.0 / 4.0, -(1.0 + 7.0 / 4.0)], [4.5, 1.0]]
    # A multiple is half as far apart from the next for half the width.
    narrow = InterpolatedSlopes(declared(Cubic(), 1.0, 100.0), 0.5)
    assert narrow.of_scores(np.array([[1.25]]), np.zeros(1), 1).slope == 0.5 * (1.0 + 1.5**3)
    assert (loss.constants.trace, loss.constants.rank, loss.constants.separable, loss.constants.margin) == (
        200.0,
        1,
        True,
        1.0,
    )
    assert repr(loss).endswith("width=1.0, rises=False)")
