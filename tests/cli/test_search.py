"""`confide search`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import confide
from confide import Ledger
from confide.cli.search import grid_of
from tests.cli.commands import refused, rows_of, run, write_rows

SEARCH = ("search", "people.csv", "--schema", "people.toml", "--model", "svm", "--epsilon", "1")


def test_a_search_is_one_charge_and_writes_the_chosen_model(folder):
    """The choice is one of the grid, and the guarantee covers the search."""
    write_rows(Path("people.csv"), rows_of(400))
    Ledger("study.db", limit=2.0)
    options = ("--grid", "smoothing=.25,.5", "--score-share", "0.2", "--ledger", "study.db", "--purpose", "income")
    document = json.loads(run(*SEARCH, *options, "--format", "json").stdout)
    assert document["choice"]["--smoothing"] in ("0.25", "0.5")
    assert -1.0 < document["score"]["accuracy"] < 2.0
    model = confide.load("model.json")
    assert model.smoothing == float(document["choice"]["--smoothing"])
    assert "It covers a whole search" in model.guarantee_.statement()
    (entry,) = Ledger("study.db").entries().to_dict("records")
    assert (entry["epsilon"], entry["purpose"], entry["release"]) == (1.0, "income", "PrivateSearchCV.fit")
    text = run(*SEARCH, "--grid", "smoothing=.25,.5", "--method", "repeated", "--expected-tries", "2", "--force").stdout
    assert "repeated" in text
    assert "--smoothing" in text
    assert "Charged to no ledger" in text


def test_grids_are_read_from_options_and_files(folder):
    """By the names of options; values as Python takes them."""
    Path("grid.toml").write_text(
        'alpha = ["auto", 0.5]\ninteractions = ["age:work"]\nintercept = [true]\n', encoding="utf-8"
    )
    assert grid_of(["grid.toml"]) == [{"alpha": ["auto", 0.5], "interactions": [[["age", "work"]]], "fit_intercept": [True]}]
    given = ["--length-scale=1,2", "loss=smooth-hinge, auto", "n-features=8", "centre=false,true"]
    assert grid_of(given) == [
        {"length_scale": [1.0, 2.0], "loss": ["smooth_hinge", "auto"], "n_features": [8], "centre": [False, "auto"]}
    ]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--grid", "colour=1"), '"colour" cannot be chosen; these can: '),
        (("--grid", "smothing=1"), '"smothing" (did you mean "smoothing"?) cannot be chosen; these can: '),
        (("--grid", "budget=1"), "--grid must name options of a model"),
        (("--grid", "smoothing"), "--grid must be a name with values"),
        (("--grid", "missing.toml"), "missing.toml: there is no such file"),
        (("--grid", "smoothing=1", "--grid", "smoothing=2"), "--grid names smoothing twice"),
        (("--grid", "smoothing=much"), "--smoothing is not a number"),
        (("--grid", "knots=2"), "knots= is not a parameter of --model svm"),
        (("--grid", "intercept=perhaps"), "must be true or false"),
        (("--grid", "neighbours=add-or-remove-one"), "--grid cannot vary neighbours"),
        (("--grid", "smoothing=.5", "--held-out", "2"), "--held-out must be"),
        (("--grid", "smoothing=.5", "--expected-tries", "0"), "--expected-tries must be"),
    ],
)
def test_what_cannot_be_searched_is_refused_before_a_charge(folder, options, words):
    """In one line."""
    Ledger("study.db", limit=2.0)
    assert words in refused(*SEARCH, *options, "--ledger", "study.db")
    assert Ledger("study.db").spent().epsilon == 0.0
