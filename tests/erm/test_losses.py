"""Losses: derivatives, constants and the facts that calibrations rest on."""

from __future__ import annotations

import numpy as np
import pytest

from confide.erm.hinges import Hinge, HuberHinge, LogisticHinge, SmoothHinge
from confide.erm.losses import LogisticLoss
from tests.erm.loss_contract import check_lipschitz_constant, check_margin_loss

LOGISTIC = [LogisticLoss(), LogisticHinge(0.5), LogisticHinge(0.2)]
SMOOTH = [*LOGISTIC, HuberHinge(0.5), HuberHinge(0.1), SmoothHinge(0.5), SmoothHinge(0.2)]
ALL = [*SMOOTH, Hinge()]
names = [f"{loss.name}-{loss.smoothing}" for loss in SMOOTH]


@pytest.mark.parametrize("loss", SMOOTH, ids=names)
def test_a_smooth_loss_keeps_the_contract(loss):
    """Derivatives agree with differences, and each constant is reached and never exceeded."""
    check_margin_loss(loss)


def test_the_hinge_has_slopes_up_to_its_lipschitz_constant():
    """It has no curvature to check."""
    check_lipschitz_constant(Hinge())


def test_only_the_logistic_losses_are_tapered():
    """The others bend where they are steep, so that curvature costs them."""
    assert [loss for loss in SMOOTH if loss.tapered] == LOGISTIC


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
