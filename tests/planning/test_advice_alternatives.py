"""Other mechanisms and budgets beside a plan, and as `confide plan` shows them."""

from __future__ import annotations

import json

import pytest

from confide.estimators.logistic import LogisticRegression
from confide.features.schema import Schema
from confide.planning.advice import Alternatives
from confide.planning.simulation import simulate
from tests.cli.commands import run


def test_plan_compares_distances_from_the_same_weights_alone():
    """At the alpha of its plan: as the library says there. The other mechanisms of an automatic loss minimise another."""
    options = ("--rows", 45000, "--features", 20, "--epsilon", "0.5", "--model", "logistic", "--format", "json")
    document = json.loads(run("plan", *options).stdout)
    given = LogisticRegression(0.5, alpha=document["alpha"], mechanism="output").plan(45_000, 20)
    own = LogisticRegression(0.5, mechanism="output").plan(45_000, 20)
    distances = document["beside"]["mechanisms"]
    assert distances["objective"] == pytest.approx(document["expected_distance"], rel=1e-6)
    assert distances["output"] == pytest.approx(given.expected_distance, rel=1e-6)
    assert distances["output"] != pytest.approx(own.expected_distance, rel=0.1)
    of_svm = json.loads(run("plan", *options, "--model", "svm").stdout)["beside"]["mechanisms"]
    assert isinstance(of_svm["objective"], float)
    assert "cannot be compared" in of_svm["output"]
    assert "Distance from" not in run("plan", *options[:-2], "--model", "svm", "--details").stdout


def test_plan_forecasts_the_other_mechanisms_as_they_would_be_run():
    """With --error alone: what `simulate` says of each at its own alpha."""
    options = ("--rows", 3000, "--features", 4, "--epsilon", 1, "--model", "logistic")
    document = json.loads(run("plan", *options, "--error", "0.1", "--format", "json").stdout)
    reached = document["beside"]["mechanism_errors"]
    assert set(reached) == {"output", "output-laplace"}
    assert reached["output"] == simulate(LogisticRegression(1.0, mechanism="output"), 3000, 4, error=0.1).error
    assert f"- output {1.0 - reached['output']:.4f}" in run("plan", *options, "--error", "0.1", "--details").stdout
    assert "mechanism_errors" not in json.loads(run("plan", *options, "--format", "json").stdout)["beside"]


def test_plan_has_no_bound_for_gradients_or_centred_rows_and_says_so():
    """The plan is shown all the same; budgets are compared for its mechanism, which has none of pure privacy."""
    common = ("plan", "--features", 40, "--delta", "1e-6", "--model", "logistic")
    for rows, epsilon in ((3_000, "0.1"), (10_000, "0.1")):
        options = (*common, "--rows", rows, "--epsilon", epsilon)
        document = json.loads(run(*options, "--format", "json").stdout)
        assert (document["mechanism"], document["centring"] is not None) == ("gradient", True)
        assert document["beside"]["utility"] is None
        kinds = [budget["kind"] for budget in document["beside"]["equivalent_budgets"]]
        assert "pure" not in kinds
        assert "No bound on what the noise can cost is proven" in run(*options, "--details").stdout
        exact = json.loads(run(*options, "--mechanism", "objective", "--no-centre", "--format", "json").stdout)
        assert exact["beside"]["utility"] is not None


def test_sentences_name_what_the_document_has():
    """A number of the document stands in a sentence, and a forecast that was not asked for in none."""
    model = LogisticRegression(0.5, alpha=0.01)
    plan = model.plan(45_000, 20)
    found = Alternatives.of(model, plan, 45_000, 20, None)
    said = found.sentences()
    for name in ("objective", "output"):
        assert f"- {name} {found.to_dict()['mechanisms'][name]:.4g}" in said
    assert sum(sentence == "- pure differential privacy with epsilon = 0.5" for sentence in said) == 1
    assert str(found.bound) in said
    assert not any("Forecast accuracy" in sentence for sentence in said)


def test_distances_from_weights_with_several_ridges_are_not_compared_with_those_at_one_ridge():
    """At the least ridge as alpha other mechanisms have one ridge, and so other weights without privacy."""
    categories = {"many": {"categories": [f"c{i}" for i in range(30)]}, "x": {"low": 0.0, "high": 1.0, "knots": 0}}
    model = LogisticRegression(0.5, schema=Schema({**categories, "few": {"categories": ["a", "b", "c"]}}))
    plan = model.plan(45_000)
    assert plan.problem.penalty.factors
    found = Alternatives.of(model, plan, 45_000, None, None)
    assert found.bound is not None
    assert all("cannot be compared" in said for said in found.to_dict()["mechanisms"].values() if "gradient" not in said)
    assert not any(said.startswith("Distance from") for said in found.sentences())
