"""What every loss of the margin owes: true derivatives, and constants that are reached and never exceeded."""

from __future__ import annotations

from typing import Any

import numpy as np

_TAIL = np.geomspace(30.0, 1e6, 2001)
GRID = np.concatenate([-_TAIL[::-1], np.linspace(-30.0, 30.0, 240_001), _TAIL])


def check_margin_loss(loss: Any) -> None:
    """All of the contract for a smooth loss, which may have kinks in its derivative."""
    check_derivatives(loss)
    check_rounding(loss)
    check_self_concordance(loss)
    check_lipschitz_constant(loss)
    check_smoothness(loss)
    check_curvature_at_slope(loss)
    check_quasi_concavity(loss)
    check_taper(loss)
    check_value_at_zero(loss)


def check_derivatives(loss: Any) -> None:
    """First and second derivative agree with differences of fourth order away from kinks; errors of 1e-6 are seen."""
    # In extended precision, where the platform has it, the differences lose no digits.
    z, h = np.linspace(-4.0, 4.0, 997, dtype=np.longdouble), np.longdouble(1e-3)
    away = np.abs(np.abs(1.0 - z) - (loss.constants.joint or 0.0)) > 3e-3
    for function, derivative in ((loss.value, loss.derivative), (loss.derivative, loss.second_derivative)):
        difference = (8 * (function(z + h) - function(z - h)) - (function(z + 2 * h) - function(z - 2 * h))) / (12 * h)
        np.testing.assert_allclose(derivative(z)[away], difference[away], rtol=0, atol=1e-8 * loss.constants.lipschitz)


def check_rounding(loss: Any) -> None:
    """In double precision the derivative errs by at most `rounding` units of 2^-53 lipschitz: the certificate needs it."""
    z = np.concatenate([np.linspace(-6.0, 8.0, 20_001), GRID[:: len(GRID) // 5000]])
    exact = loss.derivative(z.astype(np.longdouble))
    assert np.abs(loss.derivative(z) - exact).max() <= loss.constants.rounding * 2.0**-53 * loss.constants.lipschitz, (
        "rounding is too small"
    )


def check_self_concordance(loss: Any) -> None:
    """|third derivative| <= second derivative, if the loss says so. Solvers with a theorem and alpha "auto" use it."""
    if loss.constants.self_concordant:
        z, h = np.linspace(-20.0, 20.0, 4001), 1e-4
        third = (loss.second_derivative(z + h) - loss.second_derivative(z - h)) / (2 * h)
        assert (np.abs(third) <= loss.second_derivative(z) * (1 + 1e-6) + 1e-12).all(), "the loss is not self-concordant"


def check_lipschitz_constant(loss: Any) -> None:
    """The largest |derivative| on a dense grid equals `lipschitz`; a monotone loss falls with the margin."""
    slopes = loss.derivative(GRID)
    assert np.abs(slopes).max() <= loss.constants.lipschitz, "lipschitz is too small"
    assert np.abs(slopes).max() >= 0.999 * loss.constants.lipschitz, "lipschitz is larger than any slope"
    assert not loss.constants.monotone or (slopes <= 0.0).all(), "a slope is positive, so the loss is not monotone"


def check_smoothness(loss: Any) -> None:
    """The largest second derivative on a dense grid equals `smoothness`; none is negative."""
    curvatures = loss.second_derivative(GRID)
    assert curvatures.max() <= loss.constants.smoothness * (1 + 1e-15), "smoothness is too small"
    assert curvatures.max() >= 0.999 * loss.constants.smoothness, "smoothness is larger than any second derivative"
    assert curvatures.min() >= 0.0, "a second derivative is negative, so the loss is not convex"


def check_curvature_at_slope(loss: Any) -> None:
    """It bounds the second derivative wherever that slope is met, with equality inside the curved part."""
    z = np.linspace(-6.0, 6.0, 20_001)
    bound, curvature = loss.constants.curvature_at_slope(np.abs(loss.derivative(z))), loss.second_derivative(z)
    assert (curvature <= bound + 1e-6 * loss.constants.smoothness).all(), "curvature_at_slope is below a second derivative"
    inside = curvature > 1e-3 * loss.constants.smoothness
    np.testing.assert_allclose(bound[inside], curvature[inside], rtol=2e-3)


def check_quasi_concavity(loss: Any) -> None:
    """`curvature_at_slope` rises to one peak and falls after it: the grid bound of the privacy loss needs that."""
    heights = loss.constants.curvature_at_slope(np.linspace(0.0, loss.constants.lipschitz, 2001))
    steps = np.sign(np.round(np.diff(heights), 12))
    assert (np.diff(steps[steps != 0]) <= 0).all(), "curvature_at_slope has several peaks"


def check_taper(loss: Any) -> None:
    """h(a) <= a (1 - a / L) and h(a) <= t (L - a) hold exactly where the loss says that it is tapered; t is the least."""
    slopes = np.linspace(0.0, loss.constants.lipschitz, 1001)
    heights = loss.constants.curvature_at_slope(slopes)
    below = bool((heights <= slopes * (1.0 - slopes / loss.constants.lipschitz) + 1e-15).all())
    assert below == loss.constants.tapered, "tapered does not say what curvature_at_slope does"
    if loss.constants.tapered:
        assert (heights <= loss.constants.tail * (loss.constants.lipschitz - slopes) + 1e-15).all(), "tail is too small"
        assert not (heights <= 0.5 * loss.constants.tail * (loss.constants.lipschitz - slopes) + 1e-15).all(), (
            "tail is far too large"
        )


def check_value_at_zero(loss: Any) -> None:
    """It is the loss at margin 0, and the loss is nowhere negative."""
    np.testing.assert_allclose(loss.constants.value_at_zero, loss.value(np.zeros(1))[0], rtol=1e-12)
    assert (loss.value(GRID) >= 0.0).all(), "the loss is negative somewhere"
