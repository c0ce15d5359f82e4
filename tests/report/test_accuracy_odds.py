"""What an attacker can gain: numbers that agree with the guarantee's own words, and bars as long as they say."""

from __future__ import annotations

import math
import re

import pytest

from confide import ZCDP, ApproxDP, PureDP
from confide.guarantee import Guarantee
from confide.privacy.budgets import Neighbours
from confide.report.accuracy import guess_probability, odds_picture, percent, question_of


@pytest.mark.parametrize("epsilon", [1e-3, 0.1, 1.0, 3.7, 20.0, 1000.0])
def test_pure_privacy_bounds_the_probability_by_the_logistic_function(epsilon):
    """Rounded up, by less than one in ten thousand, and never above 1."""
    found, exact = guess_probability(PureDP(epsilon)), 1.0 / (1.0 + math.exp(-epsilon))
    assert exact * (1 - 1e-12) <= found <= min(1.0, exact + 1e-4)


@pytest.mark.parametrize("budget", [ApproxDP(1.0, 1e-6), ApproxDP(0.5, 0.01), ZCDP(0.1)])
def test_it_is_the_probability_of_the_statement(budget):
    """The guarantee says the same number in words."""
    statement = Guarantee(budget, Neighbours.REPLACE_ONE, "objective").statement()
    said = float(re.search(r"guess right with probability at most ([0-9.]+[0-9])", statement)[1])
    assert guess_probability(budget) == pytest.approx(said, abs=1e-12)


def test_without_a_guarantee_there_is_no_limit():
    assert guess_probability(PureDP(math.inf)) == 1.0
    assert guess_probability(PureDP(1.0)) == 0.7311


def test_the_question_names_rows_and_relation():
    kinds = [(relation, rows) for relation in Neighbours for rows in (1, 3)]
    asked = [
        question_of(Guarantee(PureDP(1.0), relation, "objective", max_rows_per_person=rows)) for relation, rows in kinds
    ]
    assert len(set(asked)) == 4
    assert "(at most 3)" in asked[1]
    assert "was among the data" in asked[2]


def test_bars_are_as_long_as_the_probabilities_and_are_told_in_words():
    drawing = odds_picture([("before", 0.5), ("after <b>", 0.75)])
    widths = [float(width) for width in re.findall(r'<i style="width: ([0-9.]+)%">', drawing)]
    assert widths == [50.0, 0.0, 50.0, 25.0]
    assert re.search(r"after &lt;b&gt;</th>.*<td>75%</td>", drawing)
    assert [percent(p) for p in (0.5, 0.7311, 1.0)] == ["50%", "73.11%", "100%"]
