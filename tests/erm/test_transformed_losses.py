"""Constants of losses of rows that have weights."""

from __future__ import annotations

import numpy as np
import pytest

from confide.erm.losses import HuberHinge, LogisticHinge, LogisticLoss, SmoothHinge
from confide.erm.target_losses import SquaredLoss

LOSSES = [LogisticLoss(), LogisticHinge(0.5), HuberHinge(0.3), SmoothHinge(0.5)]


@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: loss.constants.name)
def test_the_constants_of_weighted_losses_are_those_of_the_heaviest(loss):
    """Slope and curvature of every weight lie below the constants of `weighted`, which the largest weight reaches."""
    bounds, margins = loss.constants.weighted(5.0), np.linspace(-4.0, 4.0, 4001)
    assert bounds.value_at_zero == 5.0 * loss.constants.value_at_zero
    for weight in (0.0, 0.3, 2.0, 5.0):
        slopes, curvatures = -weight * loss.derivative(margins), weight * loss.second_derivative(margins)
        assert slopes.max() <= bounds.lipschitz
        assert curvatures.max() <= bounds.smoothness
        heights = bounds.curvature_at_slope(slopes)
        assert (curvatures <= heights * (1 + 1e-9) + 1e-12).all()
        if bounds.tapered:
            assert (curvatures <= slopes * (1.0 - slopes / bounds.lipschitz) + 1e-12).all()
    curved = (slopes > 0.001) & (slopes < 4.999)
    np.testing.assert_allclose(curvatures[curved], heights[curved], rtol=1e-6)


def test_weighted_constants_by_hand():
    """Slopes and curvatures are W times as large, and the curvature at a slope is that at a W-th of it."""
    own = HuberHinge(0.25).constants.weighted(3.0)
    assert (own.lipschitz, own.smoothness, own.trace, own.value_at_zero) == (3.0, 6.0, 6.0, 3.0)
    assert (own.rounding, own.tail, own.rank, own.n_outputs, own.name) == (13.0, 1.0, 1, 1, "huber_hinge")
    assert (own.monotone, own.by_length, own.tapered, own.separable, own.self_concordant) == (
        True,
        False,
        False,
        True,
        False,
    )
    bent = LogisticLoss().constants.weighted(4.0)
    np.testing.assert_array_equal(bent.curvature_at_slope(np.array([0.0, 1.0, 2.0, 4.0])), [0.0, 0.75, 1.0, 0.0])
    clipped = SquaredLoss(1.0, 0.5, by_length=True).constants.weighted(2.0)
    assert (clipped.by_length, clipped.lipschitz, clipped.monotone) == (True, 1.0, False)
