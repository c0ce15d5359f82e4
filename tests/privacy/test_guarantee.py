"""Budgets and guarantees: closed under their own files, and words a person can read."""

from __future__ import annotations

import copy
import json
import math
import pickle

import numpy as np
import pytest

from confide.errors import ParameterError
from confide.privacy.guarantee import Guarantee, Neighbours, PureDP, as_budget


@pytest.mark.parametrize("epsilon", [0, 0.0, -1.0, math.nan, -math.inf, True, False, "1", None, 1j, [1.0]])
def test_an_epsilon_that_is_no_positive_number_is_refused(epsilon):
    """At the budget and wherever a bare number stands for one."""
    with pytest.raises(ParameterError):
        PureDP(epsilon)
    with pytest.raises(ParameterError):
        as_budget(epsilon)


def test_budgets_are_values():
    """Equal, hashable, ordered, frozen, picklable and JSON-able; numbers of NumPy count as numbers."""
    assert PureDP(1) == PureDP(1.0) == as_budget(np.float64(1.0)) == as_budget(1)
    assert hash(PureDP(1)) == hash(PureDP(1.0))
    assert PureDP(0.5) < PureDP(1)
    with pytest.raises(AttributeError):
        PureDP(1.0).epsilon = 2.0
    for budget in (PureDP(0.3), PureDP(math.inf)):
        assert pickle.loads(pickle.dumps(budget)) == budget == copy.deepcopy(budget)
        assert PureDP.from_dict(json.loads(json.dumps(budget.to_dict(), allow_nan=False))) == budget
    assert str(PureDP(0.5)) == "pure differential privacy with epsilon = 0.5"
    assert "no privacy" in str(PureDP(math.inf))


def test_neighbours_are_named_by_their_strings():
    """A str enum with two members."""
    assert Neighbours.parse("replace-one") is Neighbours.REPLACE_ONE
    assert Neighbours.parse(Neighbours.ADD_OR_REMOVE_ONE) == "add-or-remove-one"
    with pytest.raises(ParameterError, match="replace-one"):
        Neighbours.parse("nearby")


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


def test_a_guarantee_survives_a_file():
    """to_dict and back through JSON."""
    guarantee = Guarantee(PureDP(2.0), Neighbours.REPLACE_ONE, "output", ("One.",), None)
    assert Guarantee.from_dict(json.loads(json.dumps(guarantee.to_dict()))) == guarantee
    with pytest.raises(ParameterError, match="version"):
        Guarantee.from_dict({**guarantee.to_dict(), "version": 99})


@pytest.mark.parametrize(("epsilon", "shown"), [(0.1, "1.11"), (1.0, "2.72"), (2.0, "7.39"), (10.0, "22100")])
def test_the_odds_are_rounded_upwards(epsilon, shown):
    """exp(epsilon) in three digits, never below the truth."""
    assert f"= {shown}." in Guarantee(PureDP(epsilon), Neighbours.REPLACE_ONE, "objective").statement()
