"""The absolute error and the loss of quantiles: derivatives, constants and what is minimised."""

from __future__ import annotations

import math

import numpy as np
import pytest

from confide.erm.tilted_losses import TiltedLoss
from confide.errors import ParameterError

JOINED = [TiltedLoss(2.0, -0.25, 0.75, 0.125), TiltedLoss(2.0, -1.0, 1.0, 0.5), TiltedLoss(2.0, -0.9, 0.1, 2.0**-8)]


def terms(loss, scores, target, order):
    """What one problem gets."""
    return loss.of_scores(np.asarray(scores, dtype=float)[:, None], np.full(len(scores), target), order)


@pytest.mark.parametrize("loss", JOINED, ids=str)
def test_derivatives_and_constants(loss):
    """Slopes are differences of values, curvatures of slopes; each constant is reached and not exceeded."""
    step = loss.smoothing / 512.0
    scores = np.arange(-2048, 2048) * step + 0.3 + step / 3.0
    value, slope = terms(loss, scores, 0.3, 0).value[:, 0], terms(loss, scores, 0.3, 1).slope[:, 0]
    np.testing.assert_allclose(np.diff(value), 0.5 * (slope[1:] + slope[:-1]) * step, atol=1e-3 * step)
    curvature = terms(loss, scores, 0.3, 2).curvature[:, 0]
    inside = np.abs(np.abs(scores - 0.3) - loss.smoothing) > 2 * step
    np.testing.assert_allclose((np.diff(slope) / step)[inside[1:]], curvature[1:][inside[1:]], rtol=1e-6, atol=1e-9)
    assert np.abs(slope).max() == loss.lipschitz
    assert (slope.min(), slope.max()) == (loss.low, loss.high)
    assert curvature.max() == loss.smoothness
    assert (value >= 0.0).all()
    np.testing.assert_array_equal(loss.curvature_at_slope(np.ones(2)), [loss.smoothness] * 2)


@pytest.mark.parametrize("loss", JOINED, ids=str)
def test_the_rounding_of_slopes(loss):
    """In double precision against extended precision: within the declared units, and not far below."""
    rng = np.random.default_rng(0)
    scores = rng.uniform(-2.0, 2.0, 20_000) + rng.uniform(-1.5, 1.5, 20_000) * loss.smoothing
    targets = rng.uniform(-2.0, 2.0, 20_000)
    found = loss.of_scores(scores[:, None], targets, 1).slope[:, 0]
    along = (scores.astype(np.longdouble) - targets) / (2 * np.longdouble(loss.smoothing))
    exact = np.clip(along * (loss.high - loss.low) + 0.5 * (loss.high + loss.low), loss.low, loss.high)
    assert np.abs(found - exact).max() <= loss.rounding * 2.0**-53 * loss.lipschitz


@pytest.mark.parametrize("loss", [*JOINED, TiltedLoss(2.0, -0.25, 0.75), TiltedLoss.absolute(2.0)], ids=str)
def test_the_value_at_zero_is_the_largest_over_targets(loss):
    """To within the joint's part, targets beyond the bound and no numbers among them."""
    targets = np.array([*np.linspace(-2.0, 2.0, 401), 50.0, -math.inf, math.nan])
    values = loss.of_scores(np.zeros((404, 1)), targets, 0).value
    assert np.isfinite(values).all()
    assert values.max() <= loss.value_at_zero
    assert values.max() >= loss.value_at_zero - 0.25 * (loss.high - loss.low) * (loss.smoothing or 0.0) - 1e-12


@pytest.mark.parametrize("quantile", [0.1, 0.5, 0.8])
def test_the_best_constant_is_the_quantile(quantile):
    """Against NumPy's quantile of 1,001 targets, with a kink and with a narrow joint."""
    targets = np.random.default_rng(1).uniform(-2.0, 2.0, 1001)
    scores = np.linspace(-2.0, 2.0, 4001)
    for joint in (None, 1e-3):
        loss = TiltedLoss(2.0, -quantile, 1.0 - quantile, joint)
        mean = [loss.of_scores(np.full((1001, 1), s), targets, 0).value.mean() for s in scores]
        assert abs(scores[int(np.argmin(mean))] - np.quantile(targets, quantile)) < 0.01
    assert TiltedLoss.of_quantile(quantile, 2.0).lipschitz == max(quantile, 1.0 - quantile)


def test_names_and_kinks():
    """A kink has no curvature to speak of, and says so."""
    assert TiltedLoss.absolute(1.0).name == "absolute"
    assert TiltedLoss.of_quantile(0.9, 1.0).name == "quantile"
    kinked = TiltedLoss.of_quantile(0.25, 1.0)
    assert kinked.smoothness == math.inf
    np.testing.assert_array_equal(terms(kinked, [-1.0, 0.0, 1.0], 0.0, 2).slope[:, 0], [-0.25, 0.0, 0.75])
    assert not terms(kinked, [-1.0, 0.0, 1.0], 0.0, 2).curvature.any()


@pytest.mark.parametrize(
    ("arguments", "what"),
    [
        ((1.0, 0.2, 1.0), "opposite signs"), ((1.0, -1.0, 2.0), "sizes"), ((0.0, -0.5, 0.5), "target_bound"),
        ((math.inf, -0.5, 0.5), "target_bound"), ((1.0, -0.5, 0.5, 0.0), "smoothing"),
    ],
)  # fmt: skip
def test_what_is_no_such_loss_is_refused(arguments, what):
    """Before anything is planned."""
    with pytest.raises(ParameterError, match=what):
        TiltedLoss(*arguments)
