"""The seal: what it covers, what it costs, and the share it takes."""

from __future__ import annotations

import math
from contextlib import suppress
from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from confide.erm.losses import HuberHinge, LogisticLoss
from confide.errors import InsufficientRegularisation
from confide.expected_noise import first_small_seal
from confide.privacy import objective_perturbation
from confide.privacy.budgets import ApproxDP, Neighbours, PureDP
from confide.privacy.mechanism import log_failure, tolerance_and_radius
from tests.privacy.problems import objective_plan, problem

NORM, CONSTANT = 2.0, 1.5
REPLACE, ADD = Neighbours.REPLACE_ONE, Neighbours.ADD_OR_REMOVE_ONE


def test_the_planned_seal_costs_little_and_the_shares_add_up():
    """Noise share + seal share = epsilon; the seal covers two radii and is below a seventh of the main displacement."""
    for l2 in (5.0, 50.0, 5000.0):
        for loss in (LogisticLoss(), HuberHinge(0.5)):
            plan = objective_plan(problem(10_000, 20, loss=loss, l2=l2), PureDP(0.5), "laplace", "ball")
            assert 0.0 < plan.lattice.epsilon == pytest.approx(0.5 * plan.seal_share)
            curvature = math.log1p(loss.constants.smoothness / plan.l2)
            assert plan.lattice.epsilon + 2.0 * plan.noise.scale + curvature > 0.499
            assert plan.lattice.epsilon + 2.0 * plan.noise.scale <= 0.5
            assert plan.lattice.l2_sensitivity >= 2.0 * (plan.tolerance + plan.noise.error(-139.0)) / plan.l2
            assert 0.0 < plan.seal_norm <= 0.14 * plan.noise_norm


def test_the_gaussian_seal_covers_two_radii_and_its_cost_is_in_the_curve():
    """Its whitened sensitivity is that of the curve, or less; the curve with it stays within the budget."""
    budget = ApproxDP(1.0, 1e-5)
    plan = objective_plan(problem(10_000, 20, l2=50.0), budget, "gaussian", "ball")
    curve, radius = plan.event.curve, (plan.tolerance + plan.noise.error(-139.0)) / plan.l2
    assert plan.lattice.l2_sensitivity >= 2.0 * radius
    assert 1.0 / plan.lattice.multiplier <= curve.seal_mu <= 0.14 * 2.0 * curve.mu
    assert 0.99 * budget.delta < curve.delta(budget.epsilon) <= budget.delta


def planned_at_each_share(facts, budget, law):
    """What objective perturbation plans at each share of the seal, and what it takes of them."""
    plan_at, shares = {
        "laplace": (objective_perturbation._laplace_plan, (1e-3, 3e-3, 1e-2, 5e-2, 0.25)),
        "gaussian": (objective_perturbation.gaussian_plan, (1e-2, 5e-2, 0.14)),
    }[law]
    plan_at, plans = partial(plan_at, facts, budget, facts.shapes[0]), {}
    for share in shares:
        with suppress(InsufficientRegularisation):
            plans[share] = plan_at(share)
    return plans, first_small_seal(plan_at, shares)


@pytest.mark.parametrize("law", ["laplace", "gaussian"])
def test_the_seal_takes_the_first_share_at_which_its_noise_is_small(law):
    """Small: a hundredth of the main noise, or a twentieth of log(2) on the score of a longest row; at most .14 in any case.

    Otherwise the last share that keeps it so, a quarter only where no other does. Ridges so close that another constant by
    a factor of 2 would take other shares.
    """
    budget, facts = (PureDP(1.0), REPLACE) if law == "laplace" else (ApproxDP(1.0, 1e-6), ADD)
    taken = set()
    for n_rows in (10_000, 1_000_000, 10_000_000):
        for l2 in np.geomspace(0.1, 3e4, 40):
            of = problem(
                n_rows, 20, row_norm=NORM, intercept=CONSTANT, l2=float(l2), neighbours=facts, high=n_rows + (facts is ADD)
            )
            plans, made = planned_at_each_share(of, budget, law)
            ratios = {share: plan.seal_norm / plan.noise_norm for share, plan in plans.items()}
            allowed = [share for share in plans if ratios[share] <= 0.14]
            small = [
                s for s in allowed if ratios[s] <= 0.01 or plans[s].seal_norm * 2.5 / math.sqrt(21) <= 0.05 * math.log(2)
            ]
            usual = [share for share in allowed if share < 0.2] or allowed[:1]
            expected = next((share for share in small if share in usual), usual[-1] if usual else None)
            assert made == (None if expected is None else plans[expected])
            taken.add((expected, expected in small))
    assert len(taken) >= (5 if law == "laplace" else 3)


def test_the_radius_covers_the_rounding_of_the_pull_of_a_prior():
    """Beside the tolerance and the error of the noise, the radius holds one rounding of noise and pull."""
    budget = PureDP(1.0)
    plain = problem(l2=40.0)
    facts = replace(plain, prior=(3e8, -4e8))
    noise = objective_plan(plain, budget, "laplace", "ball").noise
    tolerance, radius = tolerance_and_radius(facts, budget, 40.0, noise)
    failure = log_failure(budget, facts)
    pulled = noise.bound(failure) + 40.0 * 5e8
    assert radius * 40.0 - tolerance - noise.error(failure) == pytest.approx(2.0**-53 * pulled, rel=1e-3)
    assert tolerance > tolerance_and_radius(plain, budget, 40.0, noise)[0]
