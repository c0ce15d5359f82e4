"""How a plan is shown: facts that are public, one a line, and the same ones as JSON."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import pytest

from confide.erm.class_losses import OneVsRest
from confide.erm.losses import HuberHinge, LogisticHinge, LogisticLoss
from confide.models.prior import Prior
from confide.plan_text import noise_in_rows, plan_document, statistics_document
from confide.privacy.budgets import ApproxDP, Neighbours, PureDP
from confide.training.plan import make_plan
from confide.training.settings import ScoreLoss
from tests.training.examples import RICH, least_squares, settings


def lines(text):
    """What each line says, by its name."""
    return {line.split("  ")[0]: line.split("  ", 1)[1].strip() for line in text.splitlines()}


PRIVATE = {"neighbours": Neighbours.ADD_OR_REMOVE_ONE, "n_rows_bounds": (2000, 4000)}


@pytest.mark.parametrize(
    "facts",
    [
        settings(),
        settings(mechanism="output"),
        settings(budget=PureDP(math.inf)),
        settings(budget=RICH, inference_share=0.3),
        settings(**PRIVATE),
        least_squares(),
        least_squares(budget=PureDP(math.inf)),
    ],
)
def test_every_plan_is_text_and_json(facts):
    """JSON without NaN or infinity; the text has one fact a line, in two columns."""
    plan = make_plan(facts, 3, None if facts.n_rows_bounds else 3000)
    document = json.loads(json.dumps(plan.to_dict(), allow_nan=False))
    assert document["n_features"] == 3
    assert document["n_rows_bounds"] == ([2000, 4000] if facts.n_rows_bounds else [3000, 3000])
    assert document["mechanism"] == plan.mechanism
    assert lines(str(plan))["features"].startswith("3 (no intercept)")


def test_the_document_has_the_plans_own_numbers():
    """Noise, seal, grid and distance."""
    plan = make_plan(settings(), 3, 3000)
    document = plan_document(plan)
    assert document["noise"]["norm"] == plan.noise.norm
    assert document["seal_norm"] == plan.seal_norm
    assert document["grid_exponent"] == plan.lattice.exponent
    assert document["alpha"] == plan.alpha
    assert document["expected_distance"] == plan.expected_distance
    assert document["intervals"] is None


def test_the_noise_in_rows_is_the_noise_over_the_longest_slope():
    """Noise of the objective, or what noise on the weights would be there; 0 without privacy."""
    plan = make_plan(settings(largest_sample_weight=2.0), 3, 3000)
    assert noise_in_rows(plan) == pytest.approx(plan.noise.norm / 2.0)
    output = make_plan(settings(mechanism="output"), 3, 3000)
    assert noise_in_rows(output) == pytest.approx(output.noise.norm * output.l2)
    assert noise_in_rows(make_plan(settings(budget=PureDP(math.inf)), 3, 3000)) == 0.0


def test_a_private_number_of_rows_is_shown_by_its_bounds():
    """And a public one as it is."""
    assert lines(str(make_plan(settings(**PRIVATE), 3, None)))["rows"] == "between 2,000 and 4,000 (private)"
    assert lines(str(make_plan(settings(), 3, 3000)))["rows"] == "3,000"


def test_the_text_says_where_the_noise_is():
    """In the summed objective with a seal, on the weights, or on the weights alone with Laplace noise on the grid."""
    objective, output, grid = (
        lines(str(make_plan(settings(mechanism=name), 3, 3000))) for name in ("objective", "output", "output-laplace")
    )
    assert objective["noise"].endswith("in the summed objective")
    assert "of the budget" in objective["seal"]
    assert output["noise"].endswith("on the weights")
    assert grid["mechanism"] == "output perturbation, Laplace noise alone"
    assert "twice as much with the constant published in 2012" in grid["noise"]


def test_without_privacy_nothing_is_said_of_noise():
    """Neither in the text nor in the document."""
    plan = make_plan(settings(budget=PureDP(math.inf)), 3, 3000)
    assert not {"noise", "seal", "grid", "expected distance"} & set(lines(str(plan)))
    assert plan_document(plan)["noise"] is None


@pytest.mark.parametrize(
    ("loss", "words"),
    [
        (HuberHinge(0.25), "hinge with a joint of half-width 0.25"),
        (LogisticHinge(0.5), "logistic hinge, its corner at margin 2"),
        (LogisticLoss(), None),
    ],
    ids=lambda loss: getattr(loss, "name", ""),
)
def test_a_hinge_is_shown_with_its_joint(loss, words):
    """The logistic loss of two classes needs no line."""
    assert lines(str(make_plan(settings(minimised=ScoreLoss(loss)), 3, 3000))).get("loss") == words


def test_what_is_unusual_has_a_line_of_its_own():
    """Intercept, several rows of a person, weights, several classes, a large delta; none of them otherwise."""
    plain = lines(str(make_plan(settings(), 3, 3000)))
    assert not {"person", "weight of a row", "classes", "caution"} & set(plain)
    facts = settings(
        minimised=ScoreLoss(OneVsRest(LogisticLoss(), 3)),
        budget=ApproxDP(1.0, 1e-2),
        intercept=2.0,
        rows_per_person=4,
        largest_sample_weight=3.0,
    )
    shown = lines(str(make_plan(facts, 3, 3000)))
    assert shown["person"] == "at most 4 rows each"
    assert shown["weight of a row"].startswith("at most 3; beside rows of a smaller mean weight the noise counts 3 over")
    assert shown["classes"].startswith("3, each with its weights")
    assert "Its delta, 0.01" in shown["caution"]
    assert shown["row norm"] == f"{math.sqrt(5.0):.6g} with the intercept"


def test_a_ridge_that_was_raised_for_the_proof_is_shown_apart():
    """So that nobody takes it for the alpha that was asked for."""
    plan = make_plan(settings(alpha=1e-9), 3, 3000)
    assert plan.added_l2 > 0.0
    assert "was added for the proof" in lines(str(plan))["alpha"]
    assert plan_document(plan)["added_alpha"] == plan.added_l2 / 3000


def test_sums_are_shown_with_the_noise_on_each_kind():
    """A bound that is infinite is a word, since JSON has no such number."""
    plan = make_plan(least_squares(), 3, 3000)
    document = statistics_document(plan)
    assert document["product_deviation"] == plan.product_deviation
    assert document["square_deviation"] is None
    assert document["target_bound"] == 1.0
    assert "no intercept" in lines(str(plan))["features"]


def test_a_prior_has_a_line_of_its_own():
    """With its length, for both kinds of plans; without a prior there is none."""
    prior = Prior.of_numbers([3.0, 4.0], 0.0)
    for facts, n_features in ((settings(prior=prior), 2), (least_squares(prior=prior), 2)):
        plan = make_plan(facts, n_features, 1000)
        assert lines(str(plan))["prior"] == "the ridge pulls towards public weights of length 5"
        assert plan.to_dict()["prior_norm"] == 5.0
        bare = make_plan(replace(facts, prior=None), n_features, 1000)
        assert "prior" not in lines(str(bare))
        assert "prior_norm" not in bare.to_dict()
