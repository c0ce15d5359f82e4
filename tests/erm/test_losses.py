"""Losses: derivatives, constants and the facts that calibrations rest on."""

from __future__ import annotations

import inspect

import numpy as np
import pytest

from confide.erm.class_losses import OneVsRest, Softmax
from confide.erm.linear_sums import ProbabilityOfRows, RateOfProbability, SumOfRows
from confide.erm.losses import Hinge, HuberHinge, LogisticHinge, LogisticLoss, SmoothHinge
from confide.erm.target_losses import SquaredLoss, TiltedLoss
from confide.erm.transformed_losses import ClippedSlopes
from tests.erm.loss_contract import check_lipschitz_constant, check_margin_loss

LOGISTIC = [LogisticLoss(), LogisticHinge(0.5), LogisticHinge(0.2)]
SMOOTH = [*LOGISTIC, HuberHinge(0.5), HuberHinge(0.1), SmoothHinge(0.5), SmoothHinge(0.2)]
ALL = [*SMOOTH, Hinge()]
names = [f"{loss.constants.name}-{getattr(loss, 'smoothing', None)}" for loss in SMOOTH]


@pytest.mark.parametrize("loss", SMOOTH, ids=names)
def test_a_smooth_loss_keeps_the_contract(loss):
    """Derivatives agree with differences, and each constant is reached and never exceeded."""
    check_margin_loss(loss)


def test_the_hinge_has_slopes_up_to_its_lipschitz_constant():
    """It has no curvature to check."""
    check_lipschitz_constant(Hinge())


def test_only_the_logistic_losses_are_tapered():
    """The others bend where they are steep, so that curvature costs them."""
    assert [loss for loss in SMOOTH if loss.constants.tapered] == LOGISTIC


@pytest.mark.parametrize("loss", LOGISTIC, ids=lambda loss: f"{loss.constants.name}-{getattr(loss, 'smoothing', '')}")
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
    assert loss.constants.value_at_zero == pytest.approx(float(loss.value(np.zeros(1))[0]), rel=1e-15)


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
    margin = getattr(loss, "margin", 0.0)
    z = np.concatenate([rng.normal(size=500) * 10, rng.normal(size=500) * 1e-8, [0.0, 700.0, -700.0]])
    z = np.concatenate([z, margin + z])
    computed = loss.derivative(z)
    with mpmath.workdps(50):
        worst = max(
            abs(mpmath.mpf(float(c)) + 1 / (1 + mpmath.exp(mpmath.mpf(float(m)) - mpmath.mpf(margin))))
            for c, m in zip(computed, z, strict=True)
        )
    assert worst <= loss.constants.rounding * 2.0**-53


def test_the_logistic_loss_by_hand():
    """At odds of 3 to 1 and 1 to 3: log(4/3) and log 4, slopes -1/4 and -3/4, curvature 3/16; and what it says of itself."""
    loss, margins = LogisticLoss(), np.array([np.log(3.0), -np.log(3.0)])
    np.testing.assert_allclose(loss.value(margins), [np.log(4.0 / 3.0), np.log(4.0)], rtol=1e-15)
    np.testing.assert_allclose(loss.derivative(margins), [-0.25, -0.75], rtol=1e-15)
    np.testing.assert_allclose(loss.second_derivative(margins), [3 / 16, 3 / 16], rtol=1e-15)
    np.testing.assert_array_equal(
        loss.constants.curvature_at_slope(np.array([0.0, 0.25, 0.5, 1.0])), [0.0, 3 / 16, 0.25, 0.0]
    )
    flags = (
        loss.constants.monotone,
        loss.constants.by_length,
        loss.constants.tapered,
        loss.constants.self_concordant,
        loss.constants.separable,
    )
    assert flags == (True, False, True, True, True)
    constants = (
        loss.constants.lipschitz,
        loss.constants.smoothness,
        loss.constants.trace,
        loss.constants.tail,
        loss.constants.rounding,
        loss.constants.margin,
    )
    assert constants == (1.0, 0.25, 0.25, 1.0, 12.0, 1.0)
    own = loss.constants
    assert (own.n_outputs, own.rank, own.joint, own.name) == (1, 1, None, "logistic")


def test_slopes_in_scores_have_the_sign_of_the_label():
    """For two problems, by labels of any type; the value alone for order 0, and curvatures for order 2."""
    loss, scores = HuberHinge(0.5), np.array([[0.75, 1.25], [-0.75, 3.0]])
    for labels in (np.array([1, -1], np.int8), np.array([1.0, -1.0])):
        given = [loss.of_scores(scores, labels, order) for order in (0, 1, 2)]
        assert given[0].value.tolist() == [[9 / 32, 1 / 32], [9 / 32, 4.0]]
        for each in given[1:]:
            assert each.slope.tolist() == [[-0.75, -0.25], [0.75, 1.0]]
        assert given[2].curvature.tolist() == [[1.0, 1.0], [1.0, 0.0]]
        assert [part is None for part in (*given[0][1:], given[1].value, given[1].curvature, given[2].value)] == [True] * 5
    assert scores.tolist() == [[0.75, 1.25], [-0.75, 3.0]]


@pytest.mark.parametrize(
    "loss",
    [
        LogisticLoss(), Softmax(3), OneVsRest(LogisticLoss(), 3), SquaredLoss(1.0, 1.0), SumOfRows(), ProbabilityOfRows(),
        RateOfProbability(), ClippedSlopes(LogisticLoss(), 0.5), TiltedLoss(2.0, -0.25, 0.75, 0.125),
    ],
    ids=lambda loss: type(loss).__name__,
)  # fmt: skip
def test_a_row_is_taken_for_one_of_the_largest_length_unless_it_is_said(loss):
    """The bound on a row over its length is 1 then, also for a loss that does not read it."""
    scores, targets = np.full((1, loss.constants.n_outputs), 0.3), np.array([1])
    at_one, by_default = loss.of_scores(scores, targets, 1, 1.0), loss.of_scores(scores, targets, 1)
    np.testing.assert_array_equal(by_default.slope, at_one.slope)
    assert inspect.signature(type(loss).of_scores).parameters["stretch"].default == 1.0
