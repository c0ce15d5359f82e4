"""Allowances for rounding: what each one is, and that a larger one never makes less noise or a smaller cost.

Each formula is multiplied by a factor a little above or below 1, which covers its own roundings. Here that factor is 21/20
or 20/21, so that its direction shows in every number that decides noise.
"""

from __future__ import annotations

import importlib
import math
import pkgutil
from dataclasses import replace
from functools import partial

import numpy as np
import pytest

import confide.erm
import confide.privacy
from confide.erm.class_losses import Softmax
from confide.erm.losses import LogisticLoss
from confide.features.forms import QuadraticForm
from confide.privacy import objective_account
from confide.privacy.budgets import ZCDP, ApproxDP, Neighbours, PureDP
from confide.privacy.centring import centring_plan
from confide.privacy.certificate import GradientRounding
from confide.privacy.direction_sums import DirectionSums, distance_of_neighbours
from confide.privacy.gaussian import (
    GaussianMechanism,
    curvature_cost,
    least_l2,
    mu_within,
    objective_noise_rate,
    output_sensitivity,
)
from confide.privacy.lattice import LatticeGaussian, LatticeLaplace, LatticeNoise
from confide.privacy.loss_ends import RowEnds, _lengths, accounts_of
from confide.privacy.matching import matching_plan
from confide.privacy.mechanism import tolerance_and_radius
from confide.privacy.moments import Moments, joint_bound
from confide.privacy.noisy_sum import SumPlan, computed_distances
from confide.privacy.objective_account import GaussianObjective, _of_corners, log_moments, renyi_curve
from confide.privacy.objective_perturbation import _bend, _kappa
from confide.privacy.output_perturbation import OutputPerturbation
from confide.privacy.shapes import Ball, Cylinder, Groups, shape_of_groups
from confide.privacy.spreads import Spreads, frame_of
from confide.privacy.standardised_sums import RiskSums
from confide.privacy.tables import Counts, Tables
from tests.privacy import (
    test_curvature,
    test_matching,
    test_sufficient_statistics,
)
from tests.privacy import (
    test_mechanism_ridges_of_columns as test_ridges_of_columns,
)
from tests.privacy.descents import mean_of_sums
from tests.privacy.problems import objective_plan, problem

REPLACE, ADD = Neighbours.REPLACE_ONE, Neighbours.ADD_OR_REMOVE_ONE
PURE, APPROXIMATE, CONCENTRATED = PureDP(0.7), ApproxDP(0.7, 1e-5), ZCDP(0.1)
LOGISTIC = LogisticLoss()
LARGER, SMALLER = 1.05, 1.0 / 1.05
DIGITS = {
    "bundles": 45, "lattice": 48, "objective_account _SUMS_UP": 33, "objective_account _SUMS_DOWN": 33,
    "selection": 38, "selection _DOWN": 40, "shapes _UPWARDS": 45,
}  # fmt: skip
"""How many binary digits an allowance leaves alone, where that is not 40."""


def allowances():
    """The allowances (module, name) of all modules."""
    found = []
    for package in (confide.erm, confide.privacy):
        for each in pkgutil.iter_modules(package.__path__, f"{package.__name__}."):
            module = importlib.import_module(each.name)
            names = ("_UP", "_UPWARDS", "_LENGTH_UP", "_SUMS_UP", "_DOWN", "_DOWNWARDS", "_SUMS_DOWN")
            found += [(module, name) for name in names if hasattr(module, name)]
    return found


def test_every_allowance_is_far_more_than_a_formula_loses_and_far_less_than_noise_shows():
    """A formula of twenty operations loses less than 2^-48; the allowances are 2^-33 to 2^-48, each as its module states."""
    found = allowances()
    assert len(found) >= 33
    for module, name in found:
        stem = module.__name__.rpartition(".")[2]
        digits = DIGITS.get(f"{stem} {name}", DIGITS.get(stem, 40))
        sign = -1.0 if "DOWN" in name else 1.0
        assert getattr(module, name) == 1.0 + sign * 2.0**-digits, module.__name__


def training(neighbours=REPLACE, **changed):
    """A plan of weights, made before any allowance was changed."""
    facts = test_curvature.problem_of(neighbours, **changed)
    return objective_plan(facts, PureDP(1.0), "laplace", "ball")


def gaussian_noise():
    """Noise of one deviation, whatever the allowance is; what follows from it has the allowance of today."""
    return LatticeGaussian(3, -12, 1.5, 3.01)


TRAINING = {neighbours: training(neighbours) for neighbours in (REPLACE, ADD)}
TRAINED = Moments.plan(TRAINING[ADD], CONCENTRATED).query
SQUARES = test_sufficient_statistics.facts_of()
GROUPS = Groups((3, 2, 1), (0.8, 1.3, 0.6))
ONE_ROW = GaussianObjective(0.3, 0.1, 0.2, 0.4, ADD, monotone=True)
ROUNDING = GradientRounding(LOGISTIC.constants, 1.0, 100, 3, 20, 2.0, prior_norm=5.0)
MAPPED = shape_of_groups(Groups((3, 2, 1), (0.8, 1.3, 0.6)), QuadraticForm.of(np.full(5, 0.25)), 3.0)


def sums_of_gradients():
    """The facts of noisy gradients, and what a plan of them makes."""
    facts = problem(intercept=0.5)
    return facts, mean_of_sums().plan(facts, CONCENTRATED)


def output(law=CONCENTRATED):
    return OutputPerturbation().plan(problem(l2=30.0), law)


def spherical_output():
    facts = problem(l2=30.0)
    return OutputPerturbation()._spherical(facts, PURE, 0.7, 0.1, 1e-9)


FLAT, UNIT = np.ones(objective_account._NODES.size), np.ones((1, 1))


def together(above, below, raised=1.0, charge=1.0):
    """The excess of a loss whose ends do not depend on the noise."""
    row = RowEnds(0.1, (0.5, 0.5), (0.0, 0.0), (0.0, 0.0))
    return objective_account._together(row, above * FLAT, below * FLAT, raised * UNIT, charge * UNIT)[0]


def apart(above, below, n_scores):
    """The same where both ends count."""
    row = RowEnds(0.1, (0.5, 0.5), (0.0, 0.0), (0.0, 0.0))
    return objective_account._apart(row, above * FLAT, below * FLAT, UNIT, n_scores)[0]


def log_moment():
    return log_moments([(1.0, RowEnds(0.5, (0.5, 0.5), (0.0, 0.0), (0.0, 0.0)))], np.array([2.0]), 1)[0]


# Of each module: numbers that decide noise, and how often the larger allowance multiplies them. Where it multiplies a part
# of a sum alone, that power is no whole number.
UPWARDS = {
    "budgets": [
        (lambda: PURE.to_zcdp().rho, 1),
    ],
    "certificate": [
        (lambda: test_ridges_of_columns.facts_of().rounding(2.0).steepness, 1),
        (lambda: ROUNDING.linear_norm(3.0), 1),
    ],
    "curvature": [
        (lambda: test_curvature.Curvature.plan(TRAINING[ADD], CONCENTRATED).lattice.l2_sensitivity, 1.32),
        (lambda: DirectionSums.plan(TRAINING[ADD], 2, CONCENTRATED).lattice.l2_sensitivity, 0.62),
    ],
    "direction_sums": [
        (lambda: DirectionSums.plan(TRAINING[ADD], 2, CONCENTRATED).lattice.l2_sensitivity, 1),
        (lambda: DirectionSums.plan(TRAINING[ADD], 2, PURE).lattice.l2_sensitivity, 1),
        (lambda: distance_of_neighbours(LOGISTIC.constants, (0.0, 1.0), REPLACE, 1), 1),
    ],
    "gaussian": [
        (lambda: GaussianMechanism(0.3).renyi(4.0), 1),
        (lambda: output_sensitivity(2.0, 3.0, 4.0, ADD), 1),
        (lambda: curvature_cost(LOGISTIC.constants, 1.0, 2.0), 1),
        (lambda: least_l2(0.5, Softmax(3).constants, 1.0), 1),
    ],
    "gradient": [
        (lambda: sums_of_gradients()[1].lattice.l2_sensitivity, 2),
        (lambda: sums_of_gradients()[1].event.curve.mu, 1),
        (lambda: mean_of_sums().plan(problem(), CONCENTRATED).descent.sensitivity(problem()), 1),
    ],
    "lattice": [
        (lambda: LatticeNoise(3, -12, 1.5).rounded_sensitivity, 1),
        (lambda: LatticeLaplace(3, -12, 1.5, 0.5).scale, 2),
        (lambda: LatticeLaplace.of_l1(3, 1.5, 0.5).l2_sensitivity, 1),
        (lambda: gaussian_noise().norm, 1),
        (lambda: gaussian_noise().rho, 3),
        (lambda: gaussian_noise().multiplier, -2),
    ],
    "loss_ends": [
        (lambda: accounts_of(replace(ONE_ROW, bend=0.8, n_outputs=5, separable=False))[0][0][0][1].upper_cost[0], 1),
        (lambda: accounts_of(replace(ONE_ROW, bend=0.8, n_outputs=4))[0][0][0][1].upper_cost[0], 1),
        (lambda: accounts_of(replace(ONE_ROW, bend=0.8, n_outputs=4))[0][0][0][1].shift, 1),
        (lambda: accounts_of(replace(ONE_ROW, bend=0.8))[0][0][0][1].upper_cost[0], 1),
        (lambda: _lengths(replace(ONE_ROW, bend=0.8, evenness=0.6, even_bend=0.5))[0][1], 1),
    ],
    "matching": [
        (lambda: matching_plan(test_matching.facts(), CONCENTRATED, 0.1, "gaussian").lattice.l2_sensitivity, 1),
        (lambda: matching_plan(test_matching.facts(), PURE, 0.1, "laplace").lattice.l2_sensitivity, 1),
        (lambda: matching_plan(test_matching.facts(), PURE, 0.1, "laplace").query.radius, 1),
    ],
    "mechanism": [
        (lambda: test_ridges_of_columns.facts_of().curved_norm, 1),
        (lambda: tolerance_and_radius(problem(), PURE, 30.0, TRAINING[ADD].noise)[1], 1),
    ],
    "moments": [
        (lambda: joint_bound(LOGISTIC.constants, 1e-3), 1),
        (lambda: joint_bound(LOGISTIC.constants, 1e3), 1),
        (lambda: Moments.plan(TRAINING[ADD], CONCENTRATED).lattice.l2_sensitivity, 2.52),
        (lambda: Moments.plan(TRAINING[ADD], PURE).noise.shape.scales[0], 2.52),
    ],
    "noisy_sum": [
        (lambda: SumPlan.of(TRAINED, CONCENTRATED, ("gaussian",)).lattice.l2_sensitivity, 1),
        (lambda: computed_distances(1.0, 2.0, 0.1, 4)[1], 1),
        (lambda: SumPlan.of(TRAINED, CONCENTRATED, ("gaussian",)).mu, 1),
        (lambda: SumPlan.sealed(TRAINED, PURE, 0.01).radius, 1),
        (lambda: centring_plan(problem(intercept=1.0), CONCENTRATED, 0.1).lattice.l2_sensitivity, 1),
    ],
    "objective_account": [
        (lambda: replace(ONE_ROW, beside_mu=0.3).added_mu, 1),
        (lambda: replace(ONE_ROW, n_outputs=4).corners()[2][0], 1),
        (lambda: replace(ONE_ROW, n_outputs=4, separable=False, neighbours=REPLACE).corners()[1][0], 1),
        (lambda: renyi_curve(ONE_ROW, np.array([3.0]))[0], 1),
        (lambda: _of_corners(ONE_ROW, np.array([3.0]))[0], 1),
    ],
    "objective_account _SUMS_UP": [
        (log_moment, 3.64),
        (lambda: together(0.5, -0.2, charge=0.0), 2),
        (lambda: together(0.5, -0.2, raised=0.0), 2),
        (lambda: together(0.5, 0.0), 3.45),
        (lambda: together(0.0, -0.5), 3.45),
        *[(partial(apart, *ends, n_scores), 3.45) for ends in ((0.5, 0.0), (0.0, -0.5)) for n_scores in (1, 2)],
        (lambda: objective_account._of_sums(UNIT, 0.5 * FLAT, 1, 0.1)[0], 1),
        (lambda: objective_account._beyond(UNIT, 0.1, FLAT)[0], 1),
        (lambda: objective_account._chances_of_largest.__wrapped__(3).sum(), 1),
    ],
    "objective_perturbation": [
        (lambda: _kappa(GROUPS, 1.0, 1e3, 2.0), 1),
        (lambda: _bend(Ball(3, 1.0), 0.5, 2.0)[0], 1),
        (lambda: _bend(GROUPS, 0.5, 2.0)[0], 1),
        (lambda: _bend(GROUPS, 0.5, 2.0)[1], -0.48),
        (lambda: _bend(GROUPS, 0.5, 2.0)[2], 0.04),
    ],
    "output_perturbation": [
        (lambda: output().lattice.l2_sensitivity, 1),
        (lambda: output().radius, 1),
        (lambda: output(ApproxDP(0.5, 1e-2)).event.curve.mu, 1),
        (lambda: spherical_output().radius, 1),
    ],
    "shapes _UP": [
        (lambda: MAPPED.stretch, 1),
    ],
    "shapes _UPWARDS": [
        (lambda: Cylinder(3, 1.0, 2.0).gaussian_deviations(2.0)[0], 1),
        (lambda: Ball(3, 1.0).gaussian_bound(2.0, -1e-9), 1.41),
    ],
    "spreads": [
        (lambda: frame_of(Spreads.plan(TRAINING[ADD], PureDP(math.inf)), np.zeros(50)).spreads[0], 1),
    ],
    "standardised_sums": [
        (lambda: RiskSums.plan(TRAINING[REPLACE], 2, CONCENTRATED).lattice.l2_sensitivity, 1),
        (lambda: RiskSums.plan(TRAINING[REPLACE], 2, PURE).lattice.l2_sensitivity, 1),
    ],
    "sufficient_statistics": [
        (lambda: SQUARES.l2_sensitivity, 1),
        (lambda: SQUARES.row_l1_norm, 1),
        (lambda: test_sufficient_statistics.facts_of(ADD).l1_sensitivity, 2.28),
        (lambda: test_sufficient_statistics.plan_of("gaussian", SQUARES, ZCDP(0.1)).lattice.l2_sensitivity, 1),
    ],
    "tables": [
        (lambda: SumPlan.of(Counts(8, REPLACE), CONCENTRATED).lattice.l2_sensitivity, 1),
        (lambda: SumPlan.of(Tables((3, 4), 1, REPLACE), CONCENTRATED).lattice.l2_sensitivity, 1),
        (lambda: SumPlan.of(Tables((3, 4), 1, REPLACE), PURE).lattice.l2_sensitivity, 1),
    ],
}  # fmt: skip
DOWNWARDS = {
    "gaussian": [
        (lambda: mu_within(CONCENTRATED), 0.5),
        (lambda: mu_within(CONCENTRATED, 0.01), 1.5),
        (lambda: objective_noise_rate(1.0, LOGISTIC.constants, 1.0, 1e6, REPLACE), 1),
        (lambda: objective_noise_rate(3.0, test_ridges_of_columns.HuberHinge(0.5).constants, 1.0, 1e6, REPLACE), 2),
    ],
    "gradient": [
        (lambda: 1.0 / sums_of_gradients()[1].lattice.multiplier, 1),
    ],
    "noisy_sum": [
        (lambda: SumPlan.of(Counts(8, REPLACE), PURE).lattice.epsilon, 1),
        (lambda: SumPlan.sealed(TRAINED, PURE, 0.01).noise.scale, 1),
        (lambda: SumPlan.sealed(TRAINED, PURE, 0.01).lattice.epsilon, 1),
    ],
    "objective_account _SUMS_DOWN": [
        (log_moment, -0.88),
        *[(partial(together, *ends), -1.45) for ends in ((0.5, 0.0), (0.0, -0.5))],
        *[(partial(apart, *ends, 1), -1.45) for ends in ((0.5, 0.0), (0.0, -0.5))],
        *[(partial(apart, *ends, 2), -0.56) for ends in ((0.5, 0.0), (0.0, -0.5))],
    ],
    "objective_perturbation": [
        (lambda: _bend(GROUPS, 0.5, 2.0)[1], 0.59),
        (lambda: _bend(GROUPS, 0.5, 2.0)[2], -0.82),
        (lambda: training().lattice.epsilon, 1),
    ],
    "output_perturbation": [
        (lambda: OutputPerturbation(laplace_alone=True).plan(problem(l2=30.0), PURE).lattice.epsilon, 1),
        (lambda: spherical_output().noise.scale, 1),
        (lambda: spherical_output().lattice.epsilon, 1),
    ],
    "sufficient_statistics": [
        (lambda: test_sufficient_statistics.facts_of(square=True).gaussian_square_scale, 1),
    ],
}  # fmt: skip


@pytest.mark.parametrize("name", UPWARDS)
def test_a_larger_allowance_makes_a_larger_bound(name, monkeypatch):
    """By its power: a formula that divides by it would make the number smaller, and one that forgets it leaves it alone."""
    module, *names = name.split()
    check(f"confide.privacy.{module}", UPWARDS[name], names or ("_UP", "_UPWARDS"), LARGER, monkeypatch)


@pytest.mark.parametrize("name", DOWNWARDS)
def test_a_smaller_allowance_makes_a_smaller_rate(name, monkeypatch):
    """Of noise, or of what it may cost."""
    module, *names = name.split()
    check(f"confide.privacy.{module}", DOWNWARDS[name], names or ("_DOWN",), SMALLER, monkeypatch)


def test_mixed_shifts_are_counted_as_a_pair_with_room_for_rounding(monkeypatch):
    """Two opposite pairs count as one of full length only well within the condition of theorem 2 of target_losses.md."""
    curve, room = GaussianObjective(0.3, 0.1, math.inf, 0.1, REPLACE), 1.0
    # (2 mu)^2 + nu^2 = .37, and 2 room^2 / (1 + hypot(1, room)) = .83.
    for allowance, convex in ((1.0, True), (2.0, True), (2.5, False)):
        monkeypatch.setattr("confide.privacy.objective_account._UP", allowance)
        assert [mu for _, mu, _ in curve._shifts(False, room)] == [0.6, 0.0 if convex else 0.6]


def check(module, cases, names, factor, monkeypatch):
    """Whether each number is multiplied by its power of the factor, to 1%."""
    before = [number() for number, _ in cases]
    for name in names:
        if hasattr(importlib.import_module(module), name):
            monkeypatch.setattr(f"{module}.{name}", factor)
    found = [number() / old for (number, _), old in zip(cases, before, strict=True)]
    assert found == pytest.approx([factor**power for _, power in cases], rel=0.01)
