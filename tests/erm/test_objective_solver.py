"""Solvers see objectives through a view, and make problems of their own from it."""

from __future__ import annotations

import numpy as np

from confide.erm.losses import HuberHinge, LogisticLoss
from confide.erm.objective import Objective, mean_of, on_part
from confide.erm.row_bounds import BallBound
from tests.solvers.problems import objective

WEIGHTS = np.random.default_rng(6).normal(size=(3, 7))


def test_what_is_lent_has_all_that_objectives_have():
    """The lent objective has each method and property."""
    face = objective(LogisticLoss(), k=3).replaced(source=objective(LogisticLoss()).source.source).lent()
    words = [name for name in vars(Objective) if not name.startswith("_")]
    assert {"evaluate", "gradients", "restrict", "replaced", "smoothness", "source"} <= set(words)
    assert all(hasattr(face, name) for name in words)


def test_problems_over_a_part_are_those_over_all_in_proportion():
    """The gradients over two halves of the rows add up to those over all rows."""
    whole = objective(LogisticLoss(), k=3)
    memory = whole.source.source
    halves = [on_part(whole, memory.copied(which)) for which in np.split(np.arange(400), 2)]
    assert [share for _, share in halves] == [0.5, 0.5]
    found = sum(part.evaluate(WEIGHTS, order=1).gradient for part, _ in halves)
    np.testing.assert_allclose(found, whole.evaluate(WEIGHTS, order=1).gradient, rtol=1e-12)


def test_the_mean_problem_has_the_mean_of_the_gradients():
    """Gradients are compared at the same weights."""
    several, at = objective(LogisticLoss(), k=3), WEIGHTS[:1]
    expected = several.evaluate(np.repeat(at, 3, axis=0), order=1).gradient.mean(axis=0)
    np.testing.assert_allclose(mean_of(several).evaluate(at, order=1).gradient[0], expected, rtol=1e-12)


def test_a_problem_with_other_parts_remembers_nothing_of_the_one_it_was_made_of():
    """At weights where the first one made a pass, its gradients are its own."""
    first = objective(LogisticLoss(), k=3)
    before = first.evaluate(WEIGHTS, order=1).gradient
    for parts in ({"loss": HuberHinge(0.5)}, {"row_bound": BallBound(0.1)}, {"l2": 3.0}, {"linear": first.linear + 1.0}):
        other = first.replaced(**parts)
        found = other.gradients(WEIGHTS)
        np.testing.assert_array_equal(found, other.evaluate(WEIGHTS, order=1).gradient)
        assert not np.allclose(found, before)
    np.testing.assert_array_equal(first.gradients(WEIGHTS), before)
