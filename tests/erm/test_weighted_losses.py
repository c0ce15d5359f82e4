"""Constants of losses of rows that have weights."""

from __future__ import annotations

import numpy as np
import pytest

from confide.erm.hinges import HuberHinge, LogisticHinge, SmoothHinge
from confide.erm.losses import LogisticLoss
from confide.erm.weighted_losses import Weighted

LOSSES = [LogisticLoss(), LogisticHinge(0.5), HuberHinge(0.3), SmoothHinge(0.5)]


@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: loss.name)
def test_the_constants_of_weighted_losses_are_those_of_the_heaviest(loss):
    """Slope and curvature of every weight lie below the constants of `Weighted`, which the largest weight reaches."""
    bounds, margins = Weighted(loss, 5.0), np.linspace(-4.0, 4.0, 4001)
    assert bounds.value_at_zero == 5.0 * loss.value_at_zero
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
