"""Objects with functions of a user: they can be copied, and declare positive constants."""

from __future__ import annotations

from fractions import Fraction
from threading import Lock
from types import SimpleNamespace

import pytest

from confide.erm.row_bounds import LARGEST_BOUND
from confide.errors import ParameterError
from confide.intake.user_code import check_that_it_can_be_copied, positive_constant


def test_what_cannot_be_copied_is_refused_in_the_callers_words():
    """The kind of the error is named, and its text is not."""
    check_that_it_can_be_copied(SimpleNamespace(width=1.0), ParameterError)
    with pytest.raises(ParameterError, match=r"^copy\.deepcopy cannot copy it and raises TypeError; keep locks"):
        check_that_it_can_be_copied(SimpleNamespace(lock=Lock()), ParameterError)


@pytest.mark.parametrize(
    ("constant", "number"),
    [
        (2, 2.0),
        (0.5, 0.5),
        (Fraction(1, 4), 0.25),
        (LARGEST_BOUND, LARGEST_BOUND),
        (1.0 / LARGEST_BOUND, 1.0 / LARGEST_BOUND),
    ],
)
def test_a_positive_number_is_a_constant(constant, number):
    """Of any type of real numbers, as a double."""
    found = positive_constant(SimpleNamespace(smoothness=constant), "smoothness")
    assert found == number
    assert type(found) is float


@pytest.mark.parametrize(
    "constant", [None, True, "1", 0.0, -1.0, 10**400, float("nan"), float("inf"), 2.0 * LARGEST_BOUND, 1j]
)
def test_anything_else_is_none(constant):
    """As is a constant that is missing."""
    assert positive_constant(SimpleNamespace(smoothness=constant), "smoothness") is None
    assert positive_constant(SimpleNamespace(), "smoothness") is None
