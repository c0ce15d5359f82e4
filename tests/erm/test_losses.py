"""Losses: derivatives, constants and the facts that calibrations rest on."""

from __future__ import annotations

import numpy as np
import pytest

from confide.erm.hinges import Hinge, HuberHinge, LogisticHinge, SmoothHinge
from confide.erm.losses import LogisticLoss

LOGISTIC = [LogisticLoss(), LogisticHinge(0.5), LogisticHinge(0.2)]
SMOOTH = [*LOGISTIC, HuberHinge(0.5), HuberHinge(0.1), SmoothHinge(0.5), SmoothHinge(0.2)]
ALL = [*SMOOTH, Hinge()]
GRID = np.linspace(-30.0, 30.0, 240_001)
names = [f"{loss.name}-{loss.smoothing}" for loss in SMOOTH]


@pytest.mark.parametrize("loss", SMOOTH, ids=names)
def test_derivatives_match_finite_differences(loss):
    """First and second derivative agree with central differences away from kinks."""
    z = np.linspace(-4.0, 4.0, 997)
    h = 1e-5
    slope = (loss.value(z + h) - loss.value(z - h)) / (2 * h)
    np.testing.assert_allclose(loss.derivative(z), slope, atol=2e-5)
    smoothing = loss.smoothing or 0.0
    away = np.abs(np.abs(1.0 - z) - smoothing) > 1e-3
    curvature = (loss.derivative(z + h) - loss.derivative(z - h)) / (2 * h)
    np.testing.assert_allclose(loss.second_derivative(z)[away], curvature[away], atol=1e-4)


@pytest.mark.parametrize("loss", ALL, ids=[*names, "hinge"])
def test_slope_reaches_and_never_exceeds_the_lipschitz_constant(loss):
    """sup |derivative| on a dense grid equals `lipschitz`; the loss falls with the margin."""
    slopes = loss.derivative(GRID)
    assert np.abs(slopes).max() <= loss.lipschitz
    assert np.abs(slopes).max() >= 0.999 * loss.lipschitz
    assert (slopes <= 0.0).all()


@pytest.mark.parametrize("loss", SMOOTH, ids=names)
def test_curvature_reaches_and_never_exceeds_the_smoothness_constant(loss):
    """sup of the second derivative on a dense grid equals `smoothness`; it is never negative."""
    curvatures = loss.second_derivative(GRID)
    assert curvatures.max() <= loss.smoothness * (1 + 1e-15)
    assert curvatures.max() >= 0.999 * loss.smoothness
    assert curvatures.min() >= 0.0


@pytest.mark.parametrize("loss", SMOOTH, ids=names)
def test_curvature_at_slope_bounds_the_curvature_where_the_slope_is_met(loss):
    """h(a) >= second derivative at every margin whose |derivative| is a, with equality inside the curved part."""
    z = np.linspace(-6.0, 6.0, 20_001)
    bound = loss.curvature_at_slope(np.abs(loss.derivative(z)))
    curvature = loss.second_derivative(z)
    assert (curvature <= bound + 1e-6 * loss.smoothness).all()
    inside = curvature > 1e-3 * loss.smoothness
    np.testing.assert_allclose(bound[inside], curvature[inside], rtol=2e-3)


@pytest.mark.parametrize("loss", SMOOTH, ids=names)
def test_curvature_at_slope_is_quasi_concave(loss):
    """It rises to one peak and falls after it: the grid bound of the privacy loss needs that."""
    heights = loss.curvature_at_slope(np.linspace(0.0, loss.lipschitz, 2001))
    steps = np.sign(np.round(np.diff(heights), 12))
    steps = steps[steps != 0]
    assert (np.diff(steps) <= 0).all()


def test_only_the_logistic_losses_are_tapered():
    """h(a) <= a (1 - a / L) and h(a) <= t (L - a) hold for them and fail for the others, as their flags say.

    Half of either fails for the logistic losses too.
    """
    slopes = np.linspace(0.0, 1.0, 1001)
    for loss in SMOOTH:
        heights = loss.curvature_at_slope(slopes)
        assert bool((heights <= loss.lipschitz - slopes + 1e-15).all()) == loss.tapered
        assert bool((heights <= slopes * (1.0 - slopes / loss.lipschitz) + 1e-15).all()) == loss.tapered
        assert not (heights <= 0.5 * loss.tail * (loss.lipschitz - slopes) + 1e-15).all()


@pytest.mark.parametrize("loss", LOGISTIC, ids=lambda loss: f"{loss.name}-{getattr(loss, 'smoothing', '')}")
def test_the_logistic_third_derivative_is_bounded_by_the_second(loss):
    """Self-concordance: |l'''| <= l'', by differences of l''; half of it is exceeded."""
    z = np.linspace(-20.0, 20.0, 4001)
    h = 1e-4
    third = (loss.second_derivative(z + h) - loss.second_derivative(z - h)) / (2 * h)
    assert (np.abs(third) <= loss.second_derivative(z) * (1 + 1e-6) + 1e-12).all()
    assert (np.abs(third) > 0.5 * loss.second_derivative(z) + 1e-12).any()


@pytest.mark.parametrize("loss", ALL, ids=[*names, "hinge"])
def test_value_at_zero_is_the_value_at_margin_zero(loss):
    """The public bound on the minimiser uses it."""
    assert loss.value_at_zero == pytest.approx(float(loss.value(np.zeros(1))[0]), rel=1e-15)


def test_extreme_margins_give_finite_numbers():
    """No overflow at margins of +-1e300."""
    z = np.array([-1e300, -800.0, 0.0, 800.0, 1e300])
    with np.errstate(over="raise", invalid="raise"):
        for loss in [*LOGISTIC, HuberHinge(0.5), HuberHinge(0.1)]:
            assert np.isfinite(loss.derivative(z)).all()
            assert np.isfinite(loss.second_derivative(z)).all()
            assert np.isfinite(loss.value(z)).all()


@pytest.mark.parametrize("smoothing", [None, 0.5, 0.2, 2.0**-20])
def test_the_computed_logistic_slope_is_within_its_stated_rounding(smoothing):
    """Error of the computed derivative against 50-digit arithmetic is at most `rounding` units of 2^-53.

    That the margin is taken off by one more rounding costs a quarter of a unit, however large it is.
    """
    mpmath = pytest.importorskip("mpmath")
    loss = LogisticLoss() if smoothing is None else LogisticHinge(smoothing)
    rng = np.random.default_rng(0)
    margin = loss.margin if loss.smoothing else 0.0
    z = np.concatenate([rng.normal(size=500) * 10, rng.normal(size=500) * 1e-8, [0.0, 700.0, -700.0]])
    z = np.concatenate([z, margin + z])
    computed = loss.derivative(z)
    with mpmath.workdps(50):
        worst = max(
            abs(mpmath.mpf(float(c)) + 1 / (1 + mpmath.exp(mpmath.mpf(float(m)) - mpmath.mpf(margin))))
            for c, m in zip(computed, z, strict=True)
        )
    assert worst <= loss.rounding * 2.0**-53
