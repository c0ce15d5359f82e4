"""How large the noise of a plan is: each number against the plan's own parts."""

from __future__ import annotations

import math
from types import SimpleNamespace

import pytest

import confide
from confide import expected_noise
from confide.erm.penalties import RIDGE
from confide.errors import InsufficientRegularisation
from confide.expected_noise import NOISE_HIDES, balanced_scale, first_small_seal, noise_in_rows, wasted
from confide.privacy.budgets import ApproxDP, Neighbours, PureDP
from confide.privacy.noisy_sum import SumPlan
from confide.privacy.sufficient_statistics import plan_of_statistics
from confide.privacy.tables import Counts
from confide.training.least_squares import plan_of_sums
from confide.training.plan import make_plan
from confide.training.settings import SquaredError
from tests.training.examples import least_squares, settings


def test_alpha_is_the_ridge_over_the_lowest_number_of_rows():
    """What was added for the proof is counted apart."""
    plan = SimpleNamespace(l2=6.0, problem=SimpleNamespace(l2=4.0, n_rows_low=20, penalty=RIDGE))
    assert expected_noise.alpha(plan) == 0.3
    assert expected_noise.added_l2(plan) == 2.0


def test_noise_in_the_objective_moves_weights_by_its_norm_over_the_ridge():
    """Noise on the weights moves them by its norm; where the grid is the main noise, its norm is that of the noise."""
    noise, lattice = SimpleNamespace(norm=12.0, in_objective=True), SimpleNamespace(norm=0.5)
    plan = SimpleNamespace(noise=noise, lattice=lattice, l2=4.0)
    assert expected_noise.noise_norm(plan) == 3.0
    assert expected_noise.seal_norm(plan) == 0.5
    noise.in_objective = False
    assert expected_noise.noise_norm(plan) == 12.0
    plan.noise = None
    assert (expected_noise.noise_norm(plan), expected_noise.seal_norm(plan)) == (0.5, 0.0)
    plan.lattice = None
    assert (expected_noise.noise_norm(plan), expected_noise.seal_norm(plan)) == (0.0, 0.0)


def test_the_expected_distance_is_both_noises_and_the_radius():
    """Independent noises add up in squares, the error of the solver in full."""
    plan = SimpleNamespace(noise_norm=3.0, seal_norm=4.0, radius=0.25)
    assert expected_noise.expected_distance(plan) == 5.25


@pytest.mark.parametrize("mechanism", ["objective", "output"])
def test_a_plan_has_these_numbers_as_properties(mechanism):
    """A real plan: displacement, seal, distance and alpha fit each other."""
    plan = make_plan(settings(mechanism=mechanism), 3, 1000)
    assert plan.expected_distance == math.hypot(plan.noise_norm, plan.seal_norm) + plan.radius
    assert plan.alpha == plan.l2 / 1000
    assert plan.noise_norm == plan.noise.norm / (plan.l2 if mechanism == "objective" else 1.0)


def test_the_noise_of_counts_is_the_same_on_each():
    """Its norm over the root of the number of cells; none without privacy."""
    plan = SumPlan.of(Counts(16, Neighbours.REPLACE_ONE), PureDP(1.0))
    assert plan.deviation == pytest.approx(plan.lattice.norm / 4.0)
    assert SumPlan.of(Counts(16, Neighbours.REPLACE_ONE), PureDP(math.inf)).deviation == 0.0


def test_the_noises_of_sums_differ_by_their_public_scales():
    """Off the diagonal, on X^T y and on y^T y: the noise of the diagonal over the scales of the plan."""
    facts = SquaredError(3.0, with_square=True)
    problem = plan_of_sums(least_squares(), facts, 2, 10**5).problem
    spherical = plan_of_statistics(problem, PureDP(1.0))
    # Spherical noise has the same deviation in every direction, and the seal adds next to nothing.
    root = spherical.noise.norm / math.sqrt(problem.n_statistics)
    assert spherical.diagonal_deviation == pytest.approx(root, rel=1e-3)
    plan = plan_of_statistics(problem, ApproxDP(0.01, 1e-2))
    assert plan.noise is None
    assert plan.diagonal_deviation == plan.lattice.deviation > 0.0
    assert plan.product_deviation == plan.diagonal_deviation / plan.query.off_diagonal
    assert plan.target_deviation == plan.diagonal_deviation / plan.problem.target_scale
    assert plan.square_deviation == plan.target_deviation / plan.problem.target_scale / plan.query.square_scale


def test_the_balanced_scale_is_the_best_of_its_grid():
    """For a joint bound of slope 1 and curvature 1 / 4, against a search of the formula of the docstring."""

    def joint_bound(loss, scale):
        return math.hypot(1.0, scale / 4.0)

    found = balanced_scale(joint_bound, "a loss")
    costs = {
        u: joint_bound("a loss", u) ** 2 * (4.0 / (u / 2.0) ** 2 + 1.0 / 0.25**2)
        for u in (found, *(k / 100 for k in range(10, 1001)))
    }
    assert costs[found] <= 1.001 * min(costs.values())
    assert found == pytest.approx(2.0, rel=0.02)


def sealed(seal, noise=1.0):
    """A plan whose seal has so much noise, of a loss and rows where only the main noise counts."""
    bounds = SimpleNamespace(value_at_zero=1e-9, lipschitz=1.0)
    problem = SimpleNamespace(loss_bounds=bounds, row_norm=1.0, n_weights=1)
    return SimpleNamespace(seal_norm=seal, noise_norm=noise, problem=problem)


def test_the_seal_takes_the_first_share_that_makes_it_small():
    """Here noise falls with the share: 0.001 over the share is a hundredth of the main noise at a tenth."""
    tried = []

    def plan_at(share):
        tried.append(share)
        return sealed(0.001 / share)

    assert first_small_seal(plan_at, (0.01, 0.05, 0.1, 0.2, 0.5)).seal_norm == 0.01
    assert tried == [0.01, 0.05, 0.1]


def test_a_seal_that_is_never_small_takes_the_last_share_up_to_a_fifth():
    """A larger share is tried only where no smaller one keeps the seal below its limit."""
    assert first_small_seal(lambda share: sealed(0.006 / share), (0.05, 0.1, 0.2, 0.5)).seal_norm == 0.006 / 0.2
    assert first_small_seal(lambda share: sealed(0.06 / share), (0.05, 0.1, 0.2, 0.5)).seal_norm == 0.06 / 0.5


def test_shares_without_a_plan_are_passed_over():
    """None of them may have one."""

    def plan_at(share):
        if share < 0.15:
            raise InsufficientRegularisation("too small")
        return sealed(0.001)

    assert first_small_seal(plan_at, (0.05, 0.1, 0.2)).seal_norm == 0.001
    assert first_small_seal(plan_at, (0.05, 0.1)) is None


@pytest.mark.parametrize("epsilon", [0.02, 0.2])
def test_a_budget_is_wasted_where_noise_on_a_weight_is_a_tenth_of_the_pull_of_all_rows(epsilon):
    """The limit, found by the number of rows, is .1 within a few percent; it holds for weights of rows too."""
    model = confide.LogisticRegression(epsilon)
    rows = [round(20 * 1.05**step) for step in range(200)]
    enough = next(n for n in rows if wasted(model.plan(n, 3)) is None)
    plan = model.plan(enough, 3)
    share = noise_in_rows(plan) / math.sqrt(plan.problem.n_weights) / enough
    assert share == pytest.approx(0.1, rel=0.08)
    assert wasted(plan, 0.5) is not None
    said = wasted(model.plan(max(2, enough // 4), 3))
    assert said.startswith(NOISE_HIDES)
    assert wasted(confide.LogisticRegression(math.inf).plan(5, 3)) is None


def test_noise_on_sums_is_wasted_from_five_times_the_curvature_on():
    """Found in the same way, for least squares from noisy sums."""
    model = confide.Ridge(0.5, target_bound=1.0, mechanism="sufficient-statistics")
    enough = next(n for n in (round(50 * 1.05**step) for step in range(300)) if wasted(model.plan(n, 3)) is None)
    assert model.plan(enough, 3).forecast.ratio == pytest.approx(5.0, rel=0.08)
