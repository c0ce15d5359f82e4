"""`confide plan`: what it shows, and what it refuses."""

from __future__ import annotations

import json

from confide.estimators.logistic import LogisticRegression
from tests.cli.commands import refused, run


def test_plan_shows_cost_and_yield_and_reads_no_data():
    """What the library's own plan says."""
    text = run("plan", "--rows", 45000, "--features", 105, "--epsilon", "0.5", "--model", "logistic", "--details").stdout
    assert str(LogisticRegression(0.5).plan(45000, 105)) in text
    assert "epsilon = 0.5" in text
    assert "expected distance" in text


def test_plan_speaks_json():
    """One document: the plan's own, and what stands beside it."""
    options = ("--model", "logistic", "--alpha", "0.1", "--mechanism", "output", "--row-norm", "2", "--format", "json")
    document = json.loads(run("plan", "--rows", 1000, "--features", 5, "--epsilon", 1, *options).stdout)
    beside = document.pop("beside")
    assert document.pop("verdict")["rows"] == "enough"
    assert document == LogisticRegression(1.0, alpha=0.1, mechanism="output", row_norm=2.0).plan(1000, 5).to_dict()
    assert 0.0 < beside["utility"]["excess_objective"] <= beside["utility"]["excess_loss"]


def test_plan_says_what_the_guarantee_says_of_a_large_delta():
    """From one over the number of rows on, in the same words."""
    said = "is not below one over the number of rows: it would allow a release that shows some rows outright"
    for delta, is_told in (("0.0011", 1), ("0.0009", 0)):
        for details in ([], ["--details"]):
            asked = ["--rows", 1000, "--features", 3, "--epsilon", 1, "--delta", delta, "--model", "logistic", *details]
            assert " ".join(run("plan", *asked).stdout.split()).count(said) == is_told


def test_plan_refuses_guesses_that_contradict_each_other():
    """A model without privacy that is worse than none; a curve without a guess."""
    options = ("--rows", 3000, "--features", 4, "--epsilon", 1, "--model", "logistic")
    assert "--error must lie between 0 and 0.2" in refused("plan", *options, "--error", "0.3", "--positive-rate", "0.2")
    assert "--curve needs --error" in refused("plan", *options, "--curve")


def test_plan_counts_the_columns_of_a_schema(folder):
    """Three columns make eight encoded ones less the shared: one number, one with gaps, four levels."""
    document = json.loads(run("plan", "--rows", 1000, "--schema", "people.toml", "--epsilon", 1, "--format", "json").stdout)
    assert document["n_features"] == 1 + 2 + 4 + sum(knots + bool(knots) for knots in document["knots"].values())
    assert "either" in refused("plan", "--rows", 10, "--schema", "people.toml", "--features", 7, "--epsilon", 1)


def test_plan_keeps_a_private_number_of_rows_private():
    """It speaks of the bounds alone, and takes either them or the number."""
    private = ("--model", "logistic", "--neighbours", "add-or-remove-one", "--n-rows-bounds", "1000", "2000")
    assert "between 1,000 and 2,000" in run("plan", "--features", 3, "--epsilon", 1, *private, "--details").stdout
    assert "either" in refused("plan", "--rows", 1500, "--features", 3, "--epsilon", 1, *private)


def test_plan_wraps_at_80_columns(folder):
    """Also where a line is long."""
    private = ("--model", "logistic", "--neighbours", "add-or-remove-one", "--n-rows-bounds", "1000", "2000")
    text = run("plan", "--features", 3, "--epsilon", "0.0123456", *private, "--details").stdout
    assert max(map(len, text.splitlines())) <= 80
