"""Objectives with an l1 penalty: what a mechanism keeps, and what it lends."""

from __future__ import annotations

import numpy as np

from tests.privacy.problems import problem, source, with_penalty


def made(l1_ratio=0.5):
    """A small objective, and weights with a zero."""
    facts = with_penalty(problem(20, 3, intercept=1.0, l2=8.0), l1_ratio=l1_ratio)
    return facts.objective(source(20, 3), 8.0, np.zeros((1, 4))), np.array([[0.3, 0.0, -0.2, 0.1]])


def test_gradients_have_the_penalty_and_evaluations_leave_it_out():
    """The strength is 8 on each of three weights and 0 on the intercept; a pass at the same weights is remembered."""
    objective, weights = made()
    np.testing.assert_array_equal(objective.l1, [8.0, 8.0, 8.0, 0.0])
    smooth = objective.evaluate(weights, order=1).gradient
    found = objective.gradients(weights)
    np.testing.assert_allclose(found[0, [0, 2, 3]], smooth[0, [0, 2, 3]] + [8.0, -8.0, 0.0])
    assert found[0, 1] == np.sign(smooth[0, 1]) * max(abs(smooth[0, 1]) - 8.0, 0.0)


def test_what_a_solver_writes_changes_nothing():
    """A lent objective has a penalty of its own; parts and other problems that are made of it keep its share."""
    objective, weights = made()
    before = objective.gradients(weights)
    face = objective.lent()
    face.l1[...] = 0.0
    np.testing.assert_array_equal(objective.gradients(weights), before)
    np.testing.assert_array_equal(objective.restrict(np.array([0])).l1, objective.l1)
    np.testing.assert_array_equal(objective.replaced(l2=1.0).l1, objective.l1 / 8.0)


def test_a_lent_objective_keeps_every_part():
    """The largest weight, the intercept and the ridge, and linear terms of its own."""
    objective, _ = made()
    objective = objective.replaced(largest_weight=0.5)
    lent = objective.lent()
    names = ("loss", "row_bound", "intercept", "l2", "largest_weight")
    assert [getattr(lent, name) for name in names] == [getattr(objective, name) for name in names]
    lent.linear[...] = 7.0
    assert not objective.linear.any()
