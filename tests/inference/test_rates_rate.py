"""A number with its interval."""

from __future__ import annotations

from confide.inference.rates import Rate


def test_a_rate_divided_by_a_total_keeps_an_interval_that_holds_it():
    found = Rate(0.6, 0.55, 0.7).divided_by(1.2)
    assert (found.value, found.low, found.high) == (0.5, 0.5, 0.7)
    assert Rate(None, None, None).divided_by(2.0) == Rate(None, None, None)


def test_a_hidden_rate_says_so():
    assert str(Rate(None, None, None)) == "hidden by the noise"
    assert str(Rate(0.5, 0.25, 0.75)) == "0.5000  [0.2500, 0.7500]"
