"""A penalty that a user wrote: what a file holds of it, and what becomes of functions that fail."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import replace

import numpy as np
import pytest

from confide.erm.penalties import StronglyConvex, slopes_of, values_of
from tests.privacy.own_penalties import LOG_COSH, OF_LENGTH


def test_values_and_gradients_are_those_of_the_functions():
    """One point after another."""
    points = np.random.default_rng(0).normal(size=(4, 3))
    assert values_of(OF_LENGTH, points) == pytest.approx([OF_LENGTH.value(each) for each in points], rel=1e-15)
    assert slopes_of(OF_LENGTH, points) == pytest.approx(np.array([OF_LENGTH.gradient(each) for each in points]), rel=1e-15)


def test_a_function_cannot_change_the_weights_that_it_is_given():
    """It gets a copy."""

    def gradient(w):
        w[...] = 7.0
        return w

    points = np.ones((2, 3))
    assert (slopes_of(replace(LOG_COSH, gradient=gradient), points) == 7.0).all()
    assert (points == 1.0).all()


@pytest.mark.parametrize("bad", [lambda w: 1.0 / 0, lambda w: w[:-1], lambda w: "a", None])
def test_what_cannot_be_computed_is_no_number(bad):
    """So that no message of the user's code shows weights."""
    assert np.isnan(slopes_of(replace(LOG_COSH, gradient=bad), np.ones((2, 3)))).all()
    assert np.isnan(values_of(replace(LOG_COSH, value=bad), np.ones((2, 3)))).all()


def test_it_shows_its_name_and_constants_and_is_equal_to_its_copy():
    """A clone of an estimator has a copy of it. No address of a function is shown."""
    assert repr(LOG_COSH) == "StronglyConvex('log-cosh and ridge', strong_convexity=0.5, smoothness=1.5)"
    assert deepcopy(LOG_COSH) == LOG_COSH
    assert LOG_COSH.to_dict() == {
        "strong_convexity": 0.5,
        "smoothness": 1.5,
        "name": "log-cosh and ridge",
        "rounding": 1024.0,
    }
    assert 3.0 < LOG_COSH.steepness < 3.0 + 1e-10


def test_the_steepness_is_rounded_upwards():
    """M / m by 2^-40 more; and what is not said of a penalty is a name and a rounding of 1024 units."""
    penalty = StronglyConvex(None, None, 0.75, 3.0)
    assert penalty.steepness == 4.0 * (1.0 + 2.0**-40)
    assert (penalty.rounding, penalty.name) == (1024.0, "a penalty of the user's own")


def test_a_function_that_overflows_or_prints_warnings_is_heard_of_by_its_result_alone():
    """Whatever NumPy's settings are: a warning might name a number."""
    with np.errstate(all="raise"):
        found = slopes_of(replace(LOG_COSH, gradient=lambda w: w * 1e308 * 1e10), np.ones((1, 2)))
        assert found.tolist() == [[np.inf, np.inf]]
        assert values_of(replace(LOG_COSH, value=lambda w: np.float64(1.0) / np.float64(0.0)), np.ones((1, 2))).tolist() == [
            np.inf
        ]
