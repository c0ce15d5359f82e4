"""Which mechanism an automatic one stands for, and the plan of the weights by it."""

from __future__ import annotations

import confide
from confide import ApproxDP, LogisticRegression


def test_the_automatic_mechanism_weighs_both_noises_from_public_facts():
    """Concentrated budgets put the noise on the weights, others into the objective; what is named is taken."""
    model = LogisticRegression(confide.ZCDP(0.05))
    assert model.plan(20_000, 20, n_classes=5).mechanism == "output"
    assert model.plan(20_000, 20).mechanism == "objective"
    assert (
        LogisticRegression(confide.ZCDP(0.05), mechanism="objective").plan(20_000, 20, n_classes=5).mechanism == "objective"
    )
    for budget in (1.0, ApproxDP(1.0, 1e-6)):
        assert LogisticRegression(budget).plan(20_000, 20, n_classes=5).mechanism == "objective"


INF = float("inf")


def test_objective_perturbation_is_chosen_and_output_can_be_asked_for(rows):
    """The word auto means objective under pure privacy; the guarantee names what was done."""
    X, y = rows
    assert LogisticRegression(1.0).fit(X, y).guarantee_.mechanism == "objective"
    assert LogisticRegression(1.0, mechanism="output").fit(X, y).guarantee_.mechanism == "output"
    assert LogisticRegression(INF, mechanism="output").fit(X, y).guarantee_.mechanism == "none"
