"""The absolute error and the loss of quantiles: derivatives, constants and what is minimised."""

from __future__ import annotations

import math

import numpy as np
import pytest

from confide.erm.target_losses import TiltedLoss
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
    assert np.abs(slope).max() == loss.constants.lipschitz
    assert (slope.min(), slope.max()) == (loss.low, loss.high)
    assert curvature.max() == loss.constants.smoothness
    assert (value >= 0.0).all()
    np.testing.assert_array_equal(loss.constants.curvature_at_slope(np.ones(2)), [loss.constants.smoothness] * 2)


@pytest.mark.parametrize("loss", JOINED, ids=str)
def test_the_rounding_of_slopes(loss):
    """In double precision against extended precision: within the declared units, and not far below."""
    rng = np.random.default_rng(0)
    scores = rng.uniform(-2.0, 2.0, 20_000) + rng.uniform(-1.5, 1.5, 20_000) * loss.smoothing
    targets = rng.uniform(-2.0, 2.0, 20_000)
    found = loss.of_scores(scores[:, None], targets, 1).slope[:, 0]
    along = (scores.astype(np.longdouble) - targets) / (2 * np.longdouble(loss.smoothing))
    exact = np.clip(along * (loss.high - loss.low) + 0.5 * (loss.high + loss.low), loss.low, loss.high)
    assert np.abs(found - exact).max() <= loss.constants.rounding * 2.0**-53 * loss.constants.lipschitz


@pytest.mark.parametrize("loss", [*JOINED, TiltedLoss(2.0, -0.25, 0.75), TiltedLoss.absolute(2.0)], ids=str)
def test_the_value_at_zero_is_the_largest_over_targets(loss):
    """To within the joint's part, targets beyond the bound and no numbers among them."""
    targets = np.array([*np.linspace(-2.0, 2.0, 401), 50.0, -math.inf, math.nan])
    values = loss.of_scores(np.zeros((404, 1)), targets, 0).value
    assert np.isfinite(values).all()
    assert values.max() <= loss.constants.value_at_zero
    assert values.max() >= loss.constants.value_at_zero - 0.25 * (loss.high - loss.low) * (loss.smoothing or 0.0) - 1e-12


@pytest.mark.parametrize("quantile", [0.1, 0.5, 0.8])
def test_the_best_constant_is_the_quantile(quantile):
    """Against NumPy's quantile of 1,001 targets, with a kink and with a narrow joint."""
    targets = np.random.default_rng(1).uniform(-2.0, 2.0, 1001)
    scores = np.linspace(-2.0, 2.0, 4001)
    for joint in (None, 1e-3):
        loss = TiltedLoss(2.0, -quantile, 1.0 - quantile, joint)
        mean = [loss.of_scores(np.full((1001, 1), s), targets, 0).value.mean() for s in scores]
        assert abs(scores[int(np.argmin(mean))] - np.quantile(targets, quantile)) < 0.01
    assert TiltedLoss.of_quantile(quantile, 2.0).constants.lipschitz == max(quantile, 1.0 - quantile)


def test_names_and_kinks():
    """A kink has no curvature to speak of, and says so."""
    assert TiltedLoss.absolute(1.0).constants.name == "absolute"
    assert TiltedLoss.of_quantile(0.9, 1.0).constants.name == "quantile"
    kinked = TiltedLoss.of_quantile(0.25, 1.0)
    assert kinked.constants.smoothness == math.inf
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


def test_a_joint_by_hand():
    """Slopes -1/4 and 3/4 with h = 1/2: at each residual the value, the slope and the curvature, ends of the joint in it."""
    loss = TiltedLoss(2.0, -0.25, 0.75, 0.5)
    by_hand = {
        -1.0: (0.25, -0.25, 0), math.nextafter(-0.5, -1): (0.125, -0.25, 0), -0.5: (0.125, -0.25, 1), -0.25: (3 / 32, 0, 1),
        0.0: (0.125, 0.25, 1), 0.25: (7 / 32, 0.5, 1), 0.5: (0.375, 0.75, 1), 1.0: (0.75, 0.75, 0),
    }  # fmt: skip
    residuals = np.array(list(by_hand))
    for target in (0.0, 2.0, -2.0):
        value, found = terms(loss, residuals + target, target, 0).value, terms(loss, residuals + target, target, 2)
        all_found = np.hstack([value, found.slope, found.curvature])[[0, 2, 3, 4, 5, 6, 7] if target else slice(None)]
        expected = np.array([by_hand[r] for r in (residuals[[0, 2, 3, 4, 5, 6, 7]] if target else residuals)])
        np.testing.assert_allclose(all_found, expected, rtol=0, atol=1e-15)
    assert (loss.constants.lipschitz, loss.constants.smoothness, loss.constants.value_at_zero) == (0.75, 1.0, 1.5 + 0.125)
    assert TiltedLoss.absolute(2.0).constants.value_at_zero == 2.0
    assert TiltedLoss(2.0, -1.0, 1.0, 0.5).constants.value_at_zero == 2.25
    assert TiltedLoss(2.0, -0.25, 0.75).constants.value_at_zero == 1.5
    assert TiltedLoss(1.0, -0.5, 0.25, 0.0625).constants.smoothness == 6.0
    assert TiltedLoss(1.0, -0.5, 0.25, 0.0625).constants.lipschitz == 0.5
    np.testing.assert_array_equal(loss.constants.curvature_at_slope(np.array([0.0, 0.75])), [1.0, 1.0])


def test_a_kink_by_hand():
    """max(low r, high r), and slope 0 at the kink, whether or not there are curvatures."""
    loss, residuals = TiltedLoss(2.0, -0.25, 0.75), np.array([-2.0, -1.0, 0.0, 1.0])
    np.testing.assert_array_equal(terms(loss, residuals, 0.0, 0).value[:, 0], [0.5, 0.25, 0.0, 0.75])
    for order in (1, 2):
        np.testing.assert_array_equal(terms(loss, residuals, 0.0, order).slope[:, 0], [-0.25, -0.25, 0.0, 0.75])
    np.testing.assert_array_equal(terms(loss, residuals, 0.0, 2).curvature, np.zeros((4, 1)))


@pytest.mark.parametrize("smoothing", [None, 0.5])
def test_what_is_not_asked_for_is_not_computed(smoothing):
    """The value alone for order 0, the slope for order 1, and the curvature beside it for order 2."""
    given = [
        [part is not None for part in terms(TiltedLoss(1.0, -0.5, 0.5, smoothing), [0.0], 0.0, order)] for order in (0, 1, 2)
    ]
    assert given == [[True, False, False], [False, True, False], [False, True, True]]


def test_the_ends_of_every_range_are_taken():
    """Slopes from 2^-20 to 1 in size, targets up to 2^300, and any joint that is positive and finite."""
    for low, high in ((-(2.0**-20), 1.0), (-1.0, 2.0**-20), (-1.0, 1.0), (-(2.0**-20), 2.0**-20)):
        assert TiltedLoss(1.0, low, high).constants.lipschitz == max(-low, high)
    for bound in (2.0**-300, 2.0**300):
        assert TiltedLoss(bound, -0.5, 0.5).constants.value_at_zero == 0.5 * bound
    for smoothing in (2.0**-1000, 1e300):
        assert TiltedLoss(1.0, -0.5, 0.5, smoothing).constants.smoothness == 0.5 / smoothing


@pytest.mark.parametrize(
    ("arguments", "what"),
    [
        ((1.0, -math.nextafter(2.0**-20, 0), 0.5), "sizes"), ((1.0, -0.5, math.nextafter(2.0**-20, 0)), "sizes"),
        ((1.0, -math.nextafter(1, 2), 0.5), "sizes"), ((1.0, -0.5, math.nextafter(1, 2)), "sizes"),
        ((1.0, math.nan, 0.5), "sizes"), ((math.nan, -0.5, 0.5), "target_bound"),
        ((math.nextafter(2.0**-300, 0), -0.5, 0.5), "target_bound"), ((1.0, -0.5, 0.5, -1.0), "smoothing"),
        ((math.nextafter(2.0**300, math.inf), -0.5, 0.5), "target_bound"), ((1.0, -0.5, 0.5, math.inf), "smoothing"),
        ((1.0, -0.5, 0.5, math.nan), "smoothing"),
    ],
)  # fmt: skip
def test_whatever_lies_just_beyond_is_refused(arguments, what):
    """By one rounding, and what is no number."""
    with pytest.raises(ParameterError, match=what):
        TiltedLoss(*arguments)


def test_the_flags_of_tilted_losses():
    """Slopes have either sign, and nothing is tapered; names tell the absolute error from quantiles."""
    for loss in (TiltedLoss.absolute(1.0), TiltedLoss.of_quantile(0.5, 1.0), TiltedLoss(1.0, -1.0, 0.5, 0.1)):
        flags = (
            loss.constants.monotone,
            loss.constants.by_length,
            loss.constants.tapered,
            loss.constants.self_concordant,
            loss.constants.separable,
        )
        assert flags == (False, False, False, False, True)
        assert (loss.constants.rounding, loss.constants.n_outputs, loss.constants.rank, loss.constants.trace) == (
            12.0,
            1,
            1,
            loss.constants.smoothness,
        )
        assert loss.constants.name == ("absolute" if loss.low == -loss.high == -1.0 else "quantile")
