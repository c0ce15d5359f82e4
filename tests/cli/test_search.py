"""`confide search`."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

import confide
from confide import Ledger
from confide.cli.search import grid_of, models_of
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


def test_several_models_are_compared_in_one_charge(folder):
    """Each with the options that it has. What is chosen is verified, predicts and has a report like any model."""
    write_rows(Path("people.csv"), rows_of(900))
    Ledger("study.db", limit=9.0)
    grid = ("--grid", "model=logistic,additive,svm", "--grid", "knots=0,4", "--grid", "smoothing=.3")
    named = {"logistic": "LogisticRegression", "additive": "AdditiveClassifier", "svm": "LinearSVC"}
    given = ("search", "people.csv", "--schema", "people.toml", "--epsilon", "1", "--ledger", "study.db", *grid)
    document = json.loads(run(*given, "--format", "json", "--seed", "3", code=3).stdout)
    choice = document["choice"]
    assert document["estimator"] == named[choice["--model"]]
    assert choice.keys() == {"--model"} | {"additive": {"--knots"}, "svm": {"--smoothing"}}.get(choice["--model"], set())
    shown = run(*given, "--method", "repeated", "--expected-tries", "4", "--out", "chosen.json").stdout
    assert "candidate 3" in shown
    assert "candidate 4" not in shown
    assert re.search(r"^--model +(logistic|additive|svm)$", shown, re.MULTILINE)
    assert Ledger("study.db").spent().epsilon == 2.0
    assert "Verified" in run("verify", "chosen.json", "--ledger", "study.db", "--schema", "people.toml").stdout
    run("predict", "chosen.json", "people.csv", "--out", "scored.csv")
    run("report", "chosen.json", "--ledger", "study.db", "--out", "card.md")
    assert "among 4 candidates of a public grid" in " ".join(Path("card.md").read_text(encoding="utf-8").split())


def test_models_of_a_grid_take_their_own_options(folder):
    """A file may name them too; an option that none of them has is left for the refusal."""
    Path("grid.toml").write_text('model = ["logistic", "additive"]\nknots = [2]\nalpha = [0.1, 1.0]\n', encoding="utf-8")
    kinds = {"logistic": confide.LogisticRegression(), "additive": confide.AdditiveClassifier()}
    searched, grid = models_of(grid_of(["grid.toml", "smoothing=1"]), lambda kind: kinds[kind])
    assert searched.steps == [("model", kinds["additive"])]
    of_logistic, of_additive = grid
    assert of_logistic == {"model": [kinds["logistic"]], "model__alpha": [0.1, 1.0], "model__smoothing": [1.0]}
    assert of_additive == of_logistic | {"model": [kinds["additive"]], "model__knots": [2]}


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
        (("--grid", "neighbours=add-or-remove-one"), '"neighbours" cannot be chosen; these can: model, loss, knots'),
        (("--grid", "model=svm,logistic"), "--model has one value, and --grid lists several for it"),
        (("--alpha", ".1", "--grid", "alpha=.1,.2"), "--alpha has one value, and --grid lists several for it"),
        (("--grid", "smoothing=.5"), "--grid has a single candidate"),
        (("--grid", "smoothing=.5", "--held-out", "2"), "--held-out must be"),
        (("--grid", "smoothing=.5", "--expected-tries", "0"), "--expected-tries must be"),
    ],
)
def test_what_cannot_be_searched_is_refused_before_a_charge(folder, options, words):
    """In one line."""
    Ledger("study.db", limit=2.0)
    assert words in refused(*SEARCH, *options, "--ledger", "study.db")
    assert Ledger("study.db").spent().epsilon == 0.0


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--grid", "model=svm,logistik"), '--model has no value "logistik" (did you mean "logistic"?)'),
        (("--grid", "model=svm,ridge"), "--model ridge predicts numbers"),
        (("--grid", "model=svm,logistic", "--grid", "knots=2"), "knots= is not a parameter of --model svm"),
        (("--model", "additive", "--grid", "model=svm,logistic"), "--model has one value, and --grid lists several for it"),
    ],
)
def test_models_that_cannot_be_searched_are_refused(folder, options, words):
    """Also the usual model, where it was typed beside a grid of models."""
    assert words in refused("search", "people.csv", "--schema", "people.toml", "--epsilon", "1", *options)


def test_a_dry_run_shows_the_plan_and_charges_nothing(folder):
    """Candidates have the names by which the grid states them. A ledger with too little left is said before."""
    Ledger("study.db", limit=2.0)
    given = ("search", "people.csv", "--schema", "people.toml", "--ledger", "study.db", "--dry-run")
    grid = ("--grid", "model=logistic,additive", "--grid", "knots=0,4")
    shown = " ".join(run(*given, *grid, "--epsilon", "1").stdout.split())
    assert "candidate 0 logistic: objective perturbation, alpha" in shown
    assert "candidate 2 additive, knots 4: objective perturbation, alpha" in shown
    assert "nothing was charged" in shown
    document = json.loads(run(*given, *grid, "--epsilon", "1", "--format", "json").stdout)
    assert [one["candidate"] for one in document["candidates"]] == ["logistic", "additive, knots 0", "additive, knots 4"]
    assert document["candidates"][0]["mechanism"] == "objective"
    assert "the ledger has epsilon 2 left" in run(*given, *grid, "--epsilon", "3", code=3).stderr
    assert Ledger("study.db").entries().empty
    assert not Path("model.json").exists()
