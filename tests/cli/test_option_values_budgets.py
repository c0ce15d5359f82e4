"""Options that state a budget."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import confide
from tests.cli.commands import refused, run


@pytest.mark.parametrize("epsilon", ["0", "-1", "nan", "-inf"])
@pytest.mark.parametrize(
    "command",
    [
        ("demo",),
        ("fit", "people.csv", "--schema", "people.toml"),
        ("plan", "--rows", "10", "--features", "3", "--model", "logistic"),
    ],
)
def test_an_epsilon_that_is_no_budget_is_refused(folder, command, epsilon):
    """Zero, negative numbers and NaN, in each command that takes one; no file is written."""
    assert "--epsilon must be a positive number" in refused(*command, "--epsilon", epsilon)
    assert not Path("model.json").exists()


def test_fit_and_plan_take_a_concentrated_budget(folder):
    """--rho in place of --epsilon; both, or neither, are refused before the data are read."""
    run("fit", "people.csv", "--schema", "people.toml", "--rho", "0.5")
    assert confide.load("model.json").guarantee_.budget == confide.ZCDP(0.5)
    straight = ("--rows", "99", "--features", "3", "--model", "logistic")
    document = json.loads(run("plan", *straight, "--rho", "0.5", "--format", "json").stdout)
    assert document["budget"] == {"kind": "zcdp", "rho": 0.5}
    both = ("--rho", "1", "--epsilon", "1")
    assert "both state the budget; give one" in refused("fit", "nowhere.csv", "--schema", "people.toml", *both)
    for options in ((), ("--rho", "1", "--delta", "1e-6"), ("--delta", "1e-6")):
        assert "give a budget: either --epsilon" in refused("fit", "nowhere.csv", "--schema", "people.toml", *options)
