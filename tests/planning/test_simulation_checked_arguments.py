"""Arguments outside their ranges are refused by name."""

from __future__ import annotations

import math

import pytest

from confide import ParameterError
from confide.errors import is_number
from confide.planning.simulation import check_arguments


@pytest.mark.parametrize("value", [0.0, -1.0, math.inf, 10**400, math.nan, "1", None, True])
def test_what_is_not_positive_and_finite_is_refused(value):
    """The message names the argument, among several too; a positive number passes."""
    check_arguments(excess=0.1, row_norm=3)
    with pytest.raises(ParameterError, match="row_norm must be a positive finite number"):
        check_arguments(excess=0.1, row_norm=value)


@pytest.mark.parametrize("value", [0.0, 1.0, -0.1, 1.1, math.nan, "0.5", True])
def test_a_probability_of_failure_lies_strictly_between_0_and_1(value):
    """0 and 1 would be no statement."""
    check_arguments(failure=0.05)
    with pytest.raises(ParameterError, match="strictly between 0 and 1"):
        check_arguments(failure=value)


@pytest.mark.parametrize("value", [0, -1, 1.0, 1.5, math.nan, "1", None, True])
def test_what_is_not_a_whole_number_is_refused(value):
    """Floats are refused even where they are whole."""
    check_arguments({"n_rows": 1})
    with pytest.raises(ParameterError, match="n_rows must be a whole number of at least 1"):
        check_arguments({"n_rows": value})


def test_truth_values_and_text_are_no_numbers():
    """Whole and real numbers are."""
    assert [is_number(value) for value in (1, 1.5, True, "1", None, 1j)] == [True, True, False, False, False, False]
