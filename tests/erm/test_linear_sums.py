"""Probabilities of rows, and how fast they change, as slopes of losses."""

from __future__ import annotations

import numpy as np
import pytest

from confide.erm.linear_sums import ProbabilityOfRows, RateOfProbability
from confide.erm.row_bounds import BallBound
from confide.erm.row_sums import RowSum

SCORES = np.linspace(-40.0, 40.0, 100_001)
LOSSES = [ProbabilityOfRows(), RateOfProbability()]
BOTH = pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: type(loss).__name__)


def probability(scores):
    return 1.0 / (1.0 + np.exp(-scores))


def test_the_slopes_are_the_probability_and_its_rate():
    """Whatever the labels are."""
    chances = probability(SCORES)
    others = probability(-SCORES)
    found = [loss.of_scores(SCORES[:, None], np.ones(len(SCORES)), 1).slope[:, 0] for loss in LOSSES]
    np.testing.assert_allclose(found[0], chances, rtol=1e-13)
    np.testing.assert_allclose(found[1], chances * others, rtol=1e-12)


@BOTH
def test_the_constants_are_the_largest_slope_and_the_largest_change_of_it(loss):
    """Attained within a thousandth, and never exceeded; derivatives are those of finite differences."""
    terms = loss.of_scores(SCORES[:, None], np.ones(len(SCORES)), 2)
    slope, curvature = terms.slope[:, 0], terms.curvature[:, 0]
    value = loss.of_scores(SCORES[:, None], np.ones(len(SCORES)), 0).value[:, 0]
    assert 0.999 * loss.constants.lipschitz <= np.abs(slope).max() <= loss.constants.lipschitz
    assert 0.999 * loss.constants.smoothness <= np.abs(curvature).max() <= loss.constants.smoothness
    np.testing.assert_allclose(np.gradient(value, SCORES)[1:-1], slope[1:-1], atol=1e-6)
    np.testing.assert_allclose(np.gradient(slope, SCORES)[1:-1], curvature[1:-1], atol=1e-6)
    assert (np.abs(curvature) <= loss.constants.curvature_at_slope(np.abs(slope)) + 1e-12).all()


@BOTH
def test_computed_slopes_err_by_less_than_the_declared_rounding(loss):
    """Beside long double."""
    exact = probability(SCORES.astype(np.longdouble))
    if isinstance(loss, RateOfProbability):
        exact = exact * (1 - exact)
    errors = np.abs(loss.of_scores(SCORES[:, None], np.ones(len(SCORES)), 1).slope[:, 0] - exact)
    assert float(errors.max()) <= loss.constants.rounding * loss.constants.lipschitz * 2.0**-53


def test_the_last_entry_of_a_gradient_is_the_sum_times_the_constant():
    """At scores that no exponential of a double can hold, too."""
    rows = np.array([[0.3], [-0.8], [0.5]])
    row_sum = RowSum(ProbabilityOfRows(), BallBound(1.0), 0.5, 1)
    totals = row_sum.start(2, 1)
    row_sum.add_block(totals, rows, np.array([1, -1, 1]), np.array([[2.0, 1.0], [0.0, 2000.0]]))
    np.testing.assert_allclose(totals.gradient[:, -1], [0.5 * probability(2.0 * rows[:, 0] + 0.5).sum(), 1.5])


def test_probabilities_and_rates_by_hand():
    """At odds of 3 to 1: p = 3/4, its rate 3/16, and the change of that -3/32; the value of the first is log 4."""
    scores, labels = np.array([[np.log(3.0), -np.log(3.0)]]), np.ones(1)
    first, second = LOSSES
    np.testing.assert_allclose(first.of_scores(scores, labels, 0).value, [[np.log(4.0), np.log(4.0 / 3.0)]], rtol=1e-15)
    np.testing.assert_allclose(second.of_scores(scores, labels, 0).value, [[0.75, 0.25]], rtol=1e-15)
    one, other = (loss.of_scores(scores, labels, 2) for loss in LOSSES)
    np.testing.assert_allclose([one.slope, one.curvature], [[[0.75, 0.25]], [[3 / 16, 3 / 16]]], rtol=1e-15)
    np.testing.assert_allclose([other.slope, other.curvature], [[[3 / 16, 3 / 16]], [[-3 / 32, 3 / 32]]], rtol=1e-14)
    np.testing.assert_allclose(first.constants.curvature_at_slope(np.array([0.0, 0.25, 0.5, 1.0])), [0.0, 3 / 16, 0.25, 0.0])
    np.testing.assert_array_equal(
        second.constants.curvature_at_slope(np.array([0.0, 0.25])), [second.constants.smoothness] * 2
    )


@BOTH
def test_what_the_losses_of_probabilities_say_of_themselves(loss):
    """Nothing that would make noise smaller; slopes alone where no curvature is asked for."""
    assert [loss.constants.monotone, loss.constants.by_length, loss.constants.tapered, loss.constants.self_concordant] == [
        False
    ] * 4
    assert (loss.constants.rounding, loss.constants.trace, loss.constants.separable, loss.constants.joint) == (
        12.0,
        loss.constants.smoothness,
        True,
        None,
    )
    assert loss.constants.name == ("probability of rows" if loss is LOSSES[0] else "rate of probability")
    assert loss.constants.value_at_zero == pytest.approx(
        loss.of_scores(np.zeros((1, 1)), np.ones(1), 0).value[0, 0], rel=1e-15, abs=0.0
    )
    given = [[part is not None for part in loss.of_scores(np.zeros((1, 1)), np.ones(1), order)] for order in (0, 1, 2)]
    assert given == [[True, False, False], [False, True, False], [False, True, True]]
    assert RateOfProbability().constants.smoothness == pytest.approx(1.0 / (6.0 * np.sqrt(3.0)), rel=1e-15, abs=0.0)
