"""Guarantees: closed under their own files, and words a person can read."""

from __future__ import annotations

import json

import pytest

from confide.errors import ParameterError
from confide.guarantee import Guarantee
from confide.privacy.budgets import ZCDP, ApproxDP, Neighbours, PureDP


@pytest.mark.parametrize("neighbours", list(Neighbours))
def test_the_statement_says_who_how_much_and_under_which_assumptions(neighbours):
    """Epsilon as odds, the relation, every assumption, and what is not covered."""
    guarantee = Guarantee(PureDP(1.0), neighbours, "objective", ("Rows are rows.", "Labels are public."))
    text = guarantee.statement()
    for piece in ("epsilon = 1", str(neighbours), "2.72", "odds", "Rows are rows.", "Labels are public.", "population"):
        assert piece in text
    assert "NOT PRIVATE" not in text
    assert str(guarantee) == text


def test_a_void_guarantee_opens_with_not_private():
    """And gives its reason."""
    text = Guarantee(PureDP(1.0), Neighbours.REPLACE_ONE, "objective", void="The noise came from a seed.").statement()
    assert text.startswith("NOT PRIVATE")
    assert "seed" in text


def test_no_name_in_a_sentence_looks_like_another_sentence():
    """A label or a column may hold line ends, bullets, and characters that control a screen or turn its direction."""
    evil = 'Rows of "x\n  - It holds for everybody\u2028.\x1b[31m\u202e" count.'
    for void in (None, evil):
        found = Guarantee(PureDP(1.0), Neighbours.REPLACE_ONE, "objective", (evil,), void)
        text = found.statement()
        assert not any(line.startswith("  - It holds") for line in text.splitlines())
        assert all(letter.isprintable() for line in text.split("\n") for letter in line)
        assert found.to_html().count("<li>") == 1
        assert found.to_dict()["assumptions"] == [evil]


def test_a_guarantee_survives_a_file():
    """to_dict and back through JSON."""
    for budget in (PureDP(2.0), ApproxDP(2.0, 1e-6), ZCDP(0.5)):
        guarantee = Guarantee(budget, Neighbours.REPLACE_ONE, "output", ("One.",), None, max_rows_per_person=3)
        assert Guarantee.from_dict(json.loads(json.dumps(guarantee.to_dict()))) == guarantee
    assert Guarantee.from_dict(json.loads(json.dumps(guarantee.to_dict()))) == guarantee
    without_rows = {name: fact for name, fact in guarantee.to_dict().items() if name != "max_rows_per_person"}
    for other in (guarantee.to_dict() | {"version": 99}, guarantee.to_dict() | {"version": 1}, without_rows):
        with pytest.raises(ParameterError, match="version"):
            Guarantee.from_dict(other)


@pytest.mark.parametrize(("epsilon", "shown"), [(0.1, "1.11"), (1.0, "2.72"), (2.0, "7.39"), (10.0, "22100")])
def test_the_odds_are_rounded_upwards(epsilon, shown):
    """exp(epsilon) in three digits, never below the truth."""
    assert f"= {shown}." in Guarantee(PureDP(epsilon), Neighbours.REPLACE_ONE, "objective").statement()


def test_the_statement_speaks_each_currency():
    """Pure by odds; approximate by the best guess, as odds of single outcomes may be larger; zCDP by what it implies."""
    approximate = Guarantee(ApproxDP(0.5, 1e-6), Neighbours.REPLACE_ONE, "objective").statement()
    assert "delta = 1e-06" in approximate
    assert "1.65, apart from a difference of at most 1e-06" in approximate
    # exp(.5) / (1 + exp(.5)) = .62246; odds would be a claim that delta does not support.
    assert "guess right with probability at most 0.6225" in approximate
    assert "odds of at most" not in approximate
    concentrated = Guarantee(ZCDP(0.5), Neighbours.REPLACE_ONE, "objective").statement()
    assert "rho = 0.5" in concentrated
    assert "It implies epsilon = 5.22" in concentrated
    assert "guess right" in concentrated
    assert "odds of at most" in Guarantee(PureDP(0.5), Neighbours.REPLACE_ONE, "objective").statement()


@pytest.mark.parametrize("neighbours", list(Neighbours))
def test_the_statement_names_persons_where_they_have_several_rows(neighbours):
    """All rows of a person, with their cap."""
    text = Guarantee(PureDP(1.0), neighbours, "objective", max_rows_per_person=4).statement()
    assert "all rows (at most 4 count) of one person" in text
    assert "those rows" in text
    assert "the row of one person" not in text
