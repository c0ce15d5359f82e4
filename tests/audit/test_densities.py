"""The density of released weights, against the formulas of the theorems that tests/privacy/densities.py writes out."""

from __future__ import annotations

import numpy as np
import pytest

from confide.audit.densities import (
    Density,
    gaussian_covariance,
    is_known,
    likelihood_ratio,
    log_density,
    minimiser,
    shape_norm,
    whitened,
)
from confide.privacy.budgets import ApproxDP, PureDP
from confide.privacy.bundles import Bundles
from confide.privacy.mechanism import Noise
from confide.privacy.noise import Entropy
from confide.privacy.objective_perturbation import ObjectivePerturbation
from confide.privacy.output_perturbation import OutputPerturbation
from tests.audit.attacks import ADD, REPLACE, objective_attack, output_attack
from tests.privacy import densities as theorems
from tests.privacy.problems import objective_plan, releases


@pytest.mark.parametrize("bound", ["ball 2", "cylinder 5", "groups 5", "linked 5"])
@pytest.mark.parametrize(("law", "budget"), [("laplace", PureDP(1.0)), ("gaussian", ApproxDP(1.0, 0.05))])
def test_the_likelihood_ratio_of_noise_in_the_objective_is_that_of_the_theorem(bound, law, budget):
    """At 20 releases, for all shapes."""
    attack = objective_attack(bound, law, budget, ADD)
    sides = [Density(attack.plan, rows) for rows in (attack.first, attack.second)]
    weights = releases(ObjectivePerturbation(), attack.plan, attack.first, 20, 0)
    # The test's statistic leaves out the scale's few parts in a thousand that pay for the seal.
    np.testing.assert_allclose(likelihood_ratio(*sides)(weights), attack.statistic(weights), rtol=0.03, atol=0.01)


@pytest.mark.parametrize("budget", [PureDP(1.0), ApproxDP(1.0, 0.05)])
def test_the_likelihood_ratio_of_noise_on_the_weights_is_that_of_the_theorem(budget):
    """The seal and the certificate cost a hundredth of the scale."""
    attack = output_attack("ball 2", budget, REPLACE)
    sides = [Density(attack.plan, rows) for rows in (attack.first, attack.second)]
    weights = releases(OutputPerturbation(), attack.plan, attack.first, 20, 0)
    np.testing.assert_allclose(likelihood_ratio(*sides)(weights), attack.statistic(weights), rtol=0.03, atol=0.01)
    assert is_known(attack.plan)


def test_the_minimiser_has_no_noise_behind_it():
    """And is the point of the largest density."""
    attack = objective_attack("ball 2", "laplace", PureDP(1.0), REPLACE)
    density = Density(attack.plan, attack.first)
    centre = minimiser(attack.plan, attack.first)
    assert np.linalg.norm(density.noise_behind(centre)) <= attack.plan.tolerance
    around = centre + 1e-4 * np.array([[1.0, 0.0], [0.0, 1.0], [-1.0, 1.0]])
    assert (density.log(around) < density.log(centre)).all()


@pytest.mark.parametrize("bound", ["ball 5", "cylinder 5", "groups 5", "linked 5"])
def test_norms_and_covariances_are_those_of_the_draws(bound):
    """Whitened draws have as many independent coordinates as the shape, and a row at the bound has norm 1."""
    attack = objective_attack(bound, "gaussian", ApproxDP(1.0, 0.05), ADD)
    shape = attack.plan.noise.shape
    covariance = gaussian_covariance(shape, 2.0)
    np.testing.assert_allclose(
        covariance, theorems.least_variance_covariance(shape.sizes, shape.scales, shape.linked, 2.0), rtol=1e-9, atol=1e-12
    )
    noise = Noise(shape, "gaussian", 2.0)
    lengths = whitened(noise, Entropy.seeded(0).gaussian(shape, 400, 2.0))
    assert (lengths**2).mean() == pytest.approx(shape.free_dimension, rel=0.25)
    np.testing.assert_allclose(log_density(noise, np.zeros((1, shape.dimension))), 0.0)
    edge = np.zeros((1, shape.dimension))
    edge[0, 0] = shape.scales[0]
    assert shape_norm(shape, edge)[0] == pytest.approx(1.0)


def test_the_norm_of_bundles_is_that_of_the_theorem():
    """Random vectors, by the definition with the least sum over all constants."""
    shape = Bundles((3, 4, 2, 1), (1.0, 2.0, 0.5, 1.5), (True, True, False, False), ((0, 3), (1,), (2,)), (500, 300, 224))
    vectors = np.random.default_rng(1).normal(size=(50, 10))
    np.testing.assert_allclose(shape_norm(shape, vectors), theorems.bundles_norm(shape, vectors), rtol=1e-12)


def test_plans_of_other_mechanisms_have_no_known_density():
    """And what is no plan has none."""
    plan = objective_plan(
        objective_attack("ball 2", "laplace", PureDP(1.0), REPLACE).plan.problem, PureDP(1.0), "laplace", "ball"
    )
    assert is_known(plan)
    assert not is_known(object())
