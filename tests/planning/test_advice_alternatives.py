"""Other mechanisms beside a plan, and as `confide plan` shows them."""

from __future__ import annotations

import json
from dataclasses import asdict

from confide.cli.plan import beside_plan
from confide.estimators.logistic import LogisticRegression
from confide.planning.bounds import utility_bound
from confide.planning.simulation import simulate
from tests.cli.commands import run


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
    """The plan is shown all the same."""
    common = ("plan", "--features", 40, "--delta", "1e-6", "--model", "logistic")
    for rows, epsilon in ((3_000, "0.1"), (10_000, "0.1")):
        options = (*common, "--rows", rows, "--epsilon", epsilon)
        document = json.loads(run(*options, "--format", "json").stdout)
        assert (document["mechanism"], document["centring"] is not None) == ("gradient", True)
        assert document["beside"]["utility"] is None
        assert "No bound on what the noise can cost is proven" in run(*options, "--details").stdout
        exact = json.loads(run(*options, "--mechanism", "objective", "--no-centre", "--format", "json").stdout)
        assert exact["beside"]["utility"] is not None


def test_sentences_name_what_the_document_has():
    """The bound stands there, and no forecast that was not asked for."""
    model = LogisticRegression(0.5, alpha=0.01)
    plan = model.plan(45_000, 20)
    said, document = beside_plan(model, plan, 45_000, 20, None)
    assert str(utility_bound(plan)) in said
    assert document == {"utility": asdict(utility_bound(plan))}
    assert not any("Forecast accuracy" in sentence for sentence in said)
