"""A number with its interval."""

from __future__ import annotations

import math

import pytest

from confide.effects.effects import Value
from confide.inference.rates import Interval, Rate, json_form
from confide.inference.table import Coefficient


def test_a_rate_divided_by_a_total_keeps_an_interval_that_holds_it():
    found = Rate(0.6, 0.55, 0.7).divided_by(1.2)
    assert (found.value, found.low, found.high) == (0.5, 0.5, 0.7)
    assert Rate(None, None, None).divided_by(2.0) == Rate(None, None, None)


def test_a_hidden_rate_says_so():
    assert Rate(None, None, None).texts(4) == ("hidden by the noise", "", "")
    assert Rate(0.5, 0.25, 0.75).texts(4) == ("0.5000", "0.2500", "0.7500")


@pytest.mark.parametrize("factor", [2.0, -2.0])
def test_a_number_in_another_unit_stays_what_it_is(factor):
    """A coefficient, the effect at a value and a rate keep all else, and their ends stay in order."""
    ends = sorted((0.5 * factor, 2.0 * factor))
    for one in (Coefficient(1.0, 0.5, 2.0, 0.1, 0.2, 0.3, 0.4, "age"), Value(1.0, 0.5, 2.0, "a"), Rate(1.0, 0.5, 2.0)):
        scaled = one.scaled(factor)
        assert type(scaled) is type(one)
        assert scaled.numbers == (factor, *ends)
        assert getattr(scaled, "name", "age") == "age"
    assert Interval(1.0, None, None).scaled(factor) == Interval(1.0, None, None)


def test_a_readable_interval_shows_how_far_apart_its_ends_are():
    """What is not known is left empty, and an infinite end is named."""
    assert Interval(1930.0, 1929.815, 1930.133).readable == ("1930.00", "1929.82", "1930.13")
    assert Interval(1.0, -math.inf, math.inf).readable == ("1.000", "-inf", "inf")
    assert Interval(math.nan, math.nan, math.nan).readable == Interval(None, None, None).readable == ("", "", "")


def test_what_is_not_finite_is_no_number_in_a_file():
    assert [json_form(value) for value in (math.inf, math.nan, 1.5, "a", None, ("a", 2))] == [
        None,
        None,
        1.5,
        "a",
        None,
        ["a", 2],
    ]


def test_a_rate_prints_as_a_reader_writes_it():
    """The number and its interval, with as many digits as the interval has, or that the noise hides it."""
    assert str(Rate(0.137921, 0.13239, 0.143622)) == "0.138 (0.132 to 0.144)"
    assert str(Rate(None, None, None)) == "hidden by the noise"
