"""The mechanism without noise: an exact minimum, and no guarantee."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from confide.data.arrays import ArrayBlocks, MemorySource
from confide.erm.losses import Hinge, HuberHinge
from confide.erm.row_bounds import BallBound
from confide.errors import ParameterError
from confide.privacy.budgets import PureDP
from confide.privacy.noise import Entropy
from confide.privacy.objective_perturbation import ObjectivePerturbation
from confide.solvers.fallback import NewtonThenFallback
from confide.training.auto_mechanism import NonPrivate
from tests.privacy.problems import problem, source


def test_without_privacy_the_minimiser_itself_comes_out():
    """Budget inf: gradient zero to rounding, and a finite budget is refused by this mechanism."""
    facts, rows = problem(l2=1.0), source()
    plan = NonPrivate().plan(facts, PureDP(math.inf))
    weights = NonPrivate().release(plan, rows, NewtonThenFallback(), Entropy.fresh()).weights
    gradient = facts.objective(rows, 1.0, np.zeros((1, 2))).evaluate(weights, order=1).gradient
    assert np.linalg.norm(gradient) < 1e-13
    with pytest.raises(ParameterError):
        NonPrivate().plan(facts, PureDP(1.0))


def test_the_hinge_gets_a_joint_so_narrow_that_its_loss_hardly_changes():
    """Newton's method needs a slope everywhere; the mean loss grows by at most a quarter of the half-width."""
    plan = NonPrivate().plan(problem(loss=Hinge()), PureDP(math.inf))
    assert plan.problem.loss == HuberHinge(2.0**-20)
    assert NonPrivate().plan(problem(), PureDP(math.inf)).problem.loss == problem().loss


def test_a_plan_without_noise_says_so():
    """No noise, no grid, no radius, and an event of the infinite budget."""
    plan = NonPrivate().plan(problem(l2=3.0), PureDP(math.inf))
    assert (plan.mechanism, plan.noise, plan.lattice, plan.radius, plan.l2) == ("none", None, None, 0.0, 3.0)
    assert not plan.event.budget.is_private


def test_a_plan_of_a_private_mechanism_is_not_released_without_noise():
    """Not even one that claims the name of this mechanism."""
    private = ObjectivePerturbation().plan(problem(), PureDP(1.0))
    for plan in (private, replace(private, mechanism="none")):
        with pytest.raises(ParameterError):
            NonPrivate().release(plan, source(), NewtonThenFallback(), Entropy.fresh())


def test_rows_that_overflow_are_refused_in_words():
    """Without a bound nothing clips them."""
    unbounded = problem(row_bound=BallBound(math.inf))
    plan = NonPrivate().plan(unbounded, PureDP(math.inf))
    rows = MemorySource(ArrayBlocks(np.full((20, 2), 1e200)), np.ones(20, dtype=np.int8))
    with np.errstate(all="ignore"), pytest.raises(ParameterError, match="give a finite row_norm"):
        NonPrivate().release(plan, rows, NewtonThenFallback(), Entropy.fresh())
