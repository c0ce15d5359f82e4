"""Which mechanism an automatic one stands for, and the plan of the weights by it."""

from __future__ import annotations

from dataclasses import replace

import pytest

import confide
from confide import ZCDP, ApproxDP, LogisticRegression, ParameterError, PureDP
from confide.erm.class_losses import Softmax
from confide.erm.losses import Hinge, LogisticLoss
from confide.privacy.budgets import Neighbours
from confide.training.auto_mechanism import MECHANISM_NAMES, MECHANISMS, facts_of_rows, mechanism_for, plan_of_weights
from tests.training.examples import settings


def test_the_automatic_mechanism_weighs_both_noises_from_public_facts():
    """Under a pure budget noise lies in the objective, and else in gradients for several classes; what is named is taken."""
    for budget, chosen in ((1.0, "objective"), (ApproxDP(1.0, 1e-6), "gradient"), (confide.ZCDP(0.05), "gradient")):
        assert LogisticRegression(budget).plan(20_000, 20, n_classes=5).mechanism == chosen
        assert LogisticRegression(budget, mechanism="output").plan(20_000, 20, n_classes=5).mechanism == "output"


INF = float("inf")


def test_objective_perturbation_is_chosen_and_output_can_be_asked_for(rows):
    """The word auto means objective under pure privacy; the guarantee names what was done."""
    X, y = rows
    assert LogisticRegression(1.0).fit(X, y).guarantee_.mechanism == "objective"
    assert LogisticRegression(1.0, mechanism="output").fit(X, y).guarantee_.mechanism == "output"
    assert LogisticRegression(INF, mechanism="output").fit(X, y).guarantee_.mechanism == "none"


@pytest.mark.parametrize(
    ("loss", "mechanism", "budget", "name"),
    [
        (LogisticLoss(), "auto", PureDP(1.0), "objective"),
        (Softmax(3), "auto", ZCDP(0.1), "objective"),
        (Hinge(), "auto", PureDP(1.0), "output"),
        (LogisticLoss(), "output", PureDP(1.0), "output"),
        (Hinge(), "output-laplace", PureDP(1.0), "output-laplace"),
        (LogisticLoss(), "output", PureDP(INF), "none"),
    ],
    ids=str,
)
def test_the_mechanism_follows_from_loss_and_budget(loss, mechanism, budget, name):
    """Noise in the objective needs a smooth loss; a name is taken as it is; without privacy there is no noise."""
    assert mechanism_for(settings(mechanism=mechanism, budget=budget), loss) == name


def test_users_may_ask_for_every_mechanism_that_adds_noise():
    """Not for the one without: an infinite budget asks for it."""
    assert set(MECHANISM_NAMES) == {"auto", *MECHANISMS} - {"none"}


def test_the_ridge_of_a_problem_is_alpha_times_the_lowest_number_of_rows():
    """Under both neighbour relations, for every mechanism."""
    private = {"neighbours": Neighbours.ADD_OR_REMOVE_ONE, "n_rows_bounds": (200, 400)}
    for name in ("objective", "output"):
        facts = settings(alpha=0.5, mechanism=name)
        assert plan_of_weights(facts, 3, 300).problem.l2 == 150.0
        facts = replace(facts, **private)
        assert plan_of_weights(facts, 3, None).problem.l2 == 100.0


def test_without_privacy_the_automatic_ridge_is_one():
    """That is scikit-learn's C = 1."""
    facts = settings(budget=PureDP(INF))
    assert plan_of_weights(facts, 3, 300).l2 == 1.0


def test_bounds_on_the_number_of_rows_stand_before_the_number():
    """Declared bounds; otherwise the public number; one of the two is needed."""
    for given, expected in ((settings(n_rows_bounds=(200, 400)), (200, 400)), (settings(), (300, 300))):
        facts = facts_of_rows(given, 2, 300)
        assert (facts["n_rows_low"], facts["n_rows_high"]) == expected
    with pytest.raises(ParameterError, match="needs the number of rows"):
        facts_of_rows(settings(), 2, None)
