"""Penalties that users wrote: every declared constant is checked at public points before anything is charged."""

from __future__ import annotations

import threading
from dataclasses import replace

import numpy as np
import pytest

from confide import ParameterError
from confide.intake.penalties import check_penalty, read_penalty, refuse_without_functions
from tests.privacy.own_penalties import LOG_COSH, OWN


@pytest.mark.parametrize("n_features", [1, 3, 200])
@pytest.mark.parametrize("penalty", OWN.values(), ids=lambda penalty: penalty.name)
def test_true_constants_pass(penalty, n_features):
    """Smooth ones, tied ones, and one whose gradient has kinks."""
    check_penalty(read_penalty(penalty), n_features)


class Lock:
    """A gradient that keeps, from its first call on, what cannot be copied."""

    def __call__(self, w):
        self.lock = threading.Lock()
        return LOG_COSH.gradient(w)


def remembering():
    """A gradient that changes from call to call."""
    calls = []

    def gradient(w):
        calls.append(1)
        return LOG_COSH.gradient(w) * (1.0 + 1e-6 * len(calls))

    return gradient


WRONG = {
    "not strongly convex with the declared": {"strong_convexity": 0.55},
    "changes faster than the declared smoothness": {"smoothness": 1.4},
    "value does not change as its gradient says": {"value": lambda w: 1.2 * LOG_COSH.value(w)},
    "gradient at 0 is not 0": {"gradient": lambda w: LOG_COSH.gradient(w - 0.1)},
    "two calls gave two answers": {"gradient": remembering()},
    "raised ZeroDivisionError": {"value": lambda w: 1 // 0},
    "gradient must return an array": {"gradient": lambda w: LOG_COSH.gradient(w)[:-1]},
    "value must return a number": {"value": lambda w: LOG_COSH.gradient(w)},
    "not finite": {"gradient": lambda w: LOG_COSH.gradient(w) / np.where(np.abs(w).max() > 50.0, 0.0, 1.0)},
    "copy.deepcopy": {"gradient": Lock()},
    "must be a function": {"value": 3.0},
}


@pytest.mark.parametrize("words", WRONG)
def test_false_declarations_are_refused(words):
    """In words of what the user gave."""
    with pytest.raises(ParameterError, match=f"log-cosh and ridge cannot be used.*{words}"):
        check_penalty(read_penalty(replace(LOG_COSH, **WRONG[words])), 3)


def test_a_field_that_is_no_gradient_is_refused():
    """A rotation beside the ridge is monotone and the gradient of nothing."""

    def gradient(w):
        return 0.5 * w + 0.4 * np.array([-w[1], w[0]])

    turned = replace(LOG_COSH, value=lambda w: 0.25 * w @ w, gradient=gradient)
    with pytest.raises(ParameterError, match="value does not change"):
        check_penalty(read_penalty(turned), 2)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"strong_convexity": 0.0}, "strong_convexity must be a positive"),
        ({"strong_convexity": True}, "strong_convexity must be a positive"),
        ({"smoothness": float("inf")}, "smoothness must be a positive"),
        ({"rounding": "few"}, "rounding must be a positive"),
        ({"smoothness": 0.4}, "larger than smoothness"),
        ({"name": ""}, "name of a penalty"),
        ({"name": "a\nb"}, "name of a penalty"),
        ({"name": 3}, "name of a penalty"),
    ],
)
def test_constants_of_the_wrong_kind_are_refused(change, words):
    """Before any function is called."""
    with pytest.raises(ParameterError, match=words):
        read_penalty(replace(LOG_COSH, value=None, gradient=None, **change))


def test_a_penalty_from_a_file_has_plans_and_no_fits():
    """A file holds its name and constants alone."""
    described = replace(LOG_COSH, value=None, gradient=None)
    check_penalty(described, 3)
    with pytest.raises(ParameterError, match="files do not hold its functions"):
        refuse_without_functions(described)
    refuse_without_functions(LOG_COSH)
