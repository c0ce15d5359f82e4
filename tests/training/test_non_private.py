"""The mechanism without noise: an exact minimum, and no guarantee."""

from __future__ import annotations

import math

import numpy as np
import pytest

from confide.errors import ParameterError
from confide.privacy.budgets import PureDP
from confide.privacy.noise import Entropy
from confide.solvers.fallback import NewtonThenFallback
from confide.training.non_private import NonPrivate
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
