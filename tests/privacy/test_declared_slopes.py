"""A user's loss with kinks by noise on the weights: the law of the noise, the width of the joints, the minimiser."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from confide.data.arrays import ArrayBlocks, MemorySource
from confide.erm.target_losses import TiltedLoss
from confide.erm.transformed_losses import DeclaredLoss, InterpolatedSlopes
from confide.errors import ParameterError
from confide.privacy.budgets import ZCDP, ApproxDP, Neighbours, PureDP
from confide.privacy.mechanism import zero_weights
from confide.privacy.objective_perturbation import ObjectivePerturbation
from confide.privacy.output_perturbation import OutputPerturbation
from confide.solvers.fallback import NewtonThenFallback
from tests.privacy.densities import gaussian_multiplier
from tests.privacy.laws import check_law
from tests.privacy.problems import problem, releases

OUTPUT = OutputPerturbation()
BOUND = 4.0


class Absolute:
    """|score - target|."""

    def value(self, score, target):
        """The loss."""
        return np.abs(score - target)

    def derivative(self, score, target):
        """Its slope."""
        return np.sign(score - target)


def own(lipschitz=1.0):
    """The absolute error as a user declares it."""
    return DeclaredLoss(Absolute(), BOUND, "own", lipschitz, math.inf, BOUND, 1024.0, False)


def rows_and_targets(rows, targets):
    """A source of these rows."""
    return MemorySource(ArrayBlocks(np.asarray(rows, dtype=float)), np.asarray(targets, dtype=float), None)


@pytest.mark.parametrize(
    ("loss", "neighbours", "budget"),
    [
        (own(), Neighbours.REPLACE_ONE, PureDP(0.8)),
        (own(), Neighbours.ADD_OR_REMOVE_ONE, ApproxDP(1.0, 0.01)),
        (TiltedLoss.absolute(BOUND), Neighbours.REPLACE_ONE, ApproxDP(1.0, 0.01)),
    ],
    ids=["own, pure", "own, approximate", "absolute, approximate"],
)
def test_weights_scatter_around_the_minimiser_by_the_theorems_law(loss, neighbours, budget):
    """All residuals are far from 0, so that w* is known: the sum of sign(t) x over l2. Noise 30% off fails."""
    rng = np.random.default_rng(2)
    raw = rng.normal(size=(8, 2)) * 3.0
    clipped = raw * np.minimum(1.0, 2.0 / np.linalg.norm(raw, axis=1))[:, None]
    targets = np.where(np.arange(8) % 3, 1.0, -1.0) * 3.0
    shift, high = (1.0, 12) if neighbours is Neighbours.ADD_OR_REMOVE_ONE else (2.0, None)
    facts = problem(8, 2, loss=loss, row_norm=2.0, l2=120.0, neighbours=neighbours, high=high)
    centre = (np.sign(targets)[:, None] * clipped).sum(axis=0) / 120.0
    is_pure = isinstance(budget, PureDP)
    sample = releases(OUTPUT, OUTPUT.plan(facts, budget), rows_and_targets(raw, targets), 450 if is_pure else 250, 5)
    scattered = (sample - centre) / (shift * 2.0 / 120.0)
    if is_pure:
        check_law(np.linalg.norm(scattered, axis=1) * 0.99 * 0.8, stats.gamma(2).cdf)
    else:
        check_law(np.abs(scattered).ravel() / gaussian_multiplier(1.0, 0.01), stats.halfnorm.cdf)


def test_the_declared_slope_bounds_the_shift_also_where_it_is_false():
    """A loss twice as steep as declared is clipped: replacing a row moves the certified minimiser by at most 2 L R / l2."""
    facts = problem(4, 1, loss=own(lipschitz=0.5), l2=3.0)
    plan = OUTPUT.plan(facts, ZCDP(0.1))
    found = []
    for sign in (1.0, -1.0):
        source = rows_and_targets([[sign], [0.0], [0.0], [0.0]], [4.0, 0.0, 0.0, 0.0])
        objective = plan.problem.objective(source, plan.l2, zero_weights(plan.problem))
        found.append(NewtonThenFallback().solve(objective, zero_weights(plan.problem), plan.tolerance / 2.0).weights[0, 0])
    assert found[0] - found[1] == pytest.approx(2.0 * 0.5 / 3.0, rel=1e-6)
    assert plan.lattice.l2_sensitivity == pytest.approx(2.0 * 0.5 / 3.0, rel=2e-3)


def test_the_minimiser_is_that_of_the_user_s_loss_to_within_the_joints():
    """Against a fine search in one dimension: a median, which lies at a kink."""
    rng = np.random.default_rng(3)
    targets = rng.uniform(0.0, 2.0, 41)
    rows = np.ones((41, 1))
    grid = np.linspace(0.0, 2.0, 20_001)
    exact = grid[np.argmin(np.abs(grid[:, None] - targets).sum(axis=1) + 2.0 * grid**2)]
    for loss in (own(), TiltedLoss.absolute(BOUND)):
        plan = OUTPUT.plan(problem(41, 1, loss=loss, l2=4.0), ZCDP(0.1))
        objective = plan.problem.objective(rows_and_targets(rows, targets), plan.l2, zero_weights(plan.problem))
        found = NewtonThenFallback().solve(objective.lent(), zero_weights(plan.problem), plan.tolerance / 2.0)
        assert np.linalg.norm(objective.gradients(found.weights)) <= plan.tolerance
        assert abs(found.weights[0, 0] - exact) < 5e-3


def test_the_width_follows_from_public_facts_and_the_bound_on_targets():
    """The narrowest joint that can be certified; with few rows it is 2^-12 of the unit of scores."""
    loss = own()
    plan = OUTPUT.plan(problem(100, 2, loss=loss, l2=30.0), ApproxDP(1.0, 1e-6))
    assert plan.problem.loss == InterpolatedSlopes(loss, 2.0**-11 * 4.0, rises=True)
    tilted = OUTPUT.plan(problem(100, 2, loss=TiltedLoss.absolute(BOUND), l2=30.0), ApproxDP(1.0, 1e-6))
    assert tilted.problem.loss == replace(TiltedLoss.absolute(BOUND), smoothing=2.0**-12 * BOUND)
    many = OUTPUT.plan(problem(10**6, 20, loss=own(), l2=300.0), ApproxDP(1.0, 1e-6))
    assert many.problem.loss.width > plan.problem.loss.width
    assert 2.0 * many.radius <= 0.05 * many.lattice.l2_sensitivity


def test_noise_in_the_objective_is_refused():
    """Its theorem needs a loss that is smooth as it stands."""
    for loss in (own(), TiltedLoss.absolute(BOUND)):
        with pytest.raises(ParameterError, match="smooth"):
            ObjectivePerturbation().plan(problem(100, 2, loss=loss), PureDP(1.0))
