"""The noise of every mechanism has the size that its theorem asks for: 15% less is noticed, in draws and in plans.

Sizes are written here from the theorems and from a worst pair by hand: row norm 1.3; epsilon 1, (1, 0.05) and rho 1/2.
Each detector compares the size of draws with a fixed seed. It accepts the code, and it trips where draws, or the scale in
the plan, are 15% smaller.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from confide.privacy import lattice
from confide.privacy.budgets import ZCDP, ApproxDP, PureDP
from confide.privacy.centring import centring_plan
from confide.privacy.counts import NoisyCounts
from confide.privacy.lattice import LatticeGaussian, LatticeLaplace
from confide.privacy.moments import SecondMoments, joint_bound
from confide.privacy.noise import Entropy
from confide.privacy.objective_perturbation import ObjectivePerturbation
from confide.privacy.output_perturbation import OutputPerturbation
from confide.privacy.quantiles import NoisyQuantiles
from confide.privacy.selection import Repetition, Selection
from confide.privacy.standardised_sums import NoisyStandardisedSums
from confide.privacy.sufficient_statistics import LeastSquares, SufficientStatistics
from confide.privacy.tables import NoisyTables
from tests.audit.attacks import ADD, REPLACE, facts_of, objective_attack
from tests.privacy.densities import gaussian_multiplier, least_variance_covariance
from tests.privacy.descents import mean_of_sums
from tests.privacy.problems import problem

PURE, APPROXIMATE, CONCENTRATED = PureDP(1.0), ApproxDP(1.0, 0.05), ZCDP(0.5)
R, L2 = 1.3, 1000.0
N_DRAWS = 2500
SMALLER, LEAST, MOST = 0.85, 0.925, 1.085
"""Noise 15% too small, and the share of the promised size that is accepted: a plan may pay a few percent for its seal."""
multiplier = {APPROXIMATE: gaussian_multiplier(1.0, 0.05), CONCENTRATED: 1.0}


def least_squares(budget, neighbours, **kind):
    """The plan of noisy sums for 12 rows of two columns and targets of at most 1."""
    facts = facts_of("ball 2", neighbours)[0]
    shared = {name: getattr(facts, name) for name in ("row_bound", "intercept", "n_features", "n_rows_low", "n_rows_high",
                                                      "summation_depth", "neighbours")}  # fmt: skip
    return SufficientStatistics().plan(LeastSquares(**shared, target_bound=1.0), budget)


def weights_plan(budget, neighbours, laplace_alone=False):
    return OutputPerturbation(laplace_alone).plan(facts_of("ball 2", neighbours)[0], budget)


def moments_plan(budget):
    facts = facts_of("ball 2", REPLACE)[0]
    return SecondMoments().plan(ObjectivePerturbation().plan(facts, PURE), budget)


def risks_plan(budget, neighbours):
    """The plan of sums for two changes, for rows of two columns and a constant."""
    high = 30 if neighbours is ADD else None
    training = ObjectivePerturbation().plan(problem(intercept=1.0, neighbours=neighbours, high=high), PURE)
    return NoisyStandardisedSums().plan(training, 2, budget)


def of_moments(plan):
    """The bound of theorem 1 of proofs/moments.md, which has tests of its own."""
    return math.sqrt(2.0) * joint_bound(plan.problem.loss_bounds, plan.curvature_scale) * R**2


# Name: (plan, promised size): the deviation of one number of Gaussian noise, or the scale of one number of Laplace noise.
CASES = {
    "counts, pure": lambda: (NoisyCounts().plan(4, PURE, REPLACE), 2.0),
    "counts, pure, absent": lambda: (NoisyCounts().plan(4, PURE, ADD), 1.0),
    "counts, approximate": lambda: (NoisyCounts().plan(4, APPROXIMATE, REPLACE), math.sqrt(2.0) * multiplier[APPROXIMATE]),
    "counts, concentrated": lambda: (NoisyCounts().plan(4, CONCENTRATED, ADD), 1.0),
    "tables, pure": lambda: (NoisyTables().plan((3, 2), 2, PURE, REPLACE), 2 * 2.0 + 2 * 0.5 * 2.25),
    "tables, concentrated": lambda: (NoisyTables().plan((3, 2), 0, CONCENTRATED, REPLACE), math.sqrt(4.0)),
    "weights, Laplace": lambda: (weights_plan(PURE, REPLACE, laplace_alone=True), math.sqrt(2.0) * 2.0 * R / L2),
    "weights, Gaussian": lambda: (weights_plan(APPROXIMATE, REPLACE), 2.0 * R / L2 * multiplier[APPROXIMATE]),
    "weights, concentrated": lambda: (weights_plan(CONCENTRATED, ADD), R / L2),
    "gradients": lambda: (
        mean_of_sums(4, 0.6).plan(facts_of("ball 2", REPLACE)[0], CONCENTRATED), math.sqrt(4.0) * 2.0 * 0.6 * R,
    ),
    "gradients, approximate": lambda: (
        mean_of_sums(4, 0.6).plan(facts_of("ball 2", ADD)[0], APPROXIMATE), 2.0 * 0.6 * R * multiplier[APPROXIMATE],
    ),
    "least squares": lambda: (least_squares(CONCENTRATED, REPLACE), 3.0 / math.sqrt(2.0) * R**2),
    "least squares, approximate": lambda: (
        least_squares(APPROXIMATE, ADD), math.sqrt(2.0) * R**2 * multiplier[APPROXIMATE],
    ),
    "moments": lambda: (plan := moments_plan(CONCENTRATED), of_moments(plan)),
    "differences of risks": lambda: (
        risks_plan(CONCENTRATED, ADD), math.sqrt(2.0 * (1.0 + 1 / 16 + 1 / 64) + 1.0),
    ),
    "differences of risks, approximate": lambda: (
        risks_plan(APPROXIMATE, REPLACE), math.sqrt(2.0 * (1.0 + 1 / 16 + 1 / 16)) * multiplier[APPROXIMATE],
    ),
    "differences of risks, pure": lambda: (risks_plan(PURE, REPLACE), 2.0 * (1.0 + 1 / 4 + 2 / 8)),
    "centre": lambda: (centring_plan(facts_of("ball 2", REPLACE)[0], CONCENTRATED, 0.04), 2.0 * R / 0.2),
}  # fmt: skip
SHAPED = {
    "objective, ball": ("ball 5", "laplace", PURE, REPLACE),
    "objective, cylinder": ("cylinder 5", "laplace", PURE, ADD),
    "objective, groups": ("groups 5", "laplace", PURE, REPLACE),
    "objective, linked": ("linked 5", "laplace", PURE, ADD),
    "objective, Gaussian in a ball": ("ball 2", "gaussian", APPROXIMATE, REPLACE),
    "objective, Gaussian in groups": ("groups 5", "gaussian", APPROXIMATE, ADD),
    "objective, Gaussian in linked groups": ("linked 5", "gaussian", CONCENTRATED, ADD),
}


def grid_ratio(name):
    """Size of draws on the grid over what was promised."""
    plan, promised = CASES[name]()
    noise = plan.lattice
    drawn = np.asarray(noise.integers(N_DRAWS, Entropy.seeded(1)), dtype=float) * noise.step
    size = np.abs(drawn).mean() if isinstance(noise, LatticeLaplace) else drawn.std()
    return float(size / promised)


def shaped_ratio(name):
    """Length of draws in the norm of their shape over what was promised, or of whitened draws."""
    bound, law, budget, neighbours = SHAPED[name]
    plan = objective_attack(bound, law, budget, neighbours).plan
    shape, shift = plan.noise.shape, 2.0 if neighbours is REPLACE else 1.0
    draws = np.array([plan.noise.draw(entropy)[0] for entropy in [Entropy.seeded(2)] * 600])
    if law == "laplace":
        return float(np.mean(norms(shape, draws)) / (shape.free_dimension * shift / budget.epsilon))
    scale = shift * (multiplier[budget] if budget is APPROXIMATE else 1.0)
    covariance = least_variance_covariance(shape.sizes, shape.scales, shape.linked, scale)
    inverse = np.linalg.pinv(covariance, rcond=1e-9)
    return float(np.sqrt(np.einsum("ni,ij,nj->n", draws, inverse, draws).mean() / shape.free_dimension))


def norms(shape, draws):
    """|b|_K by the definitions of proofs/noise.md: L2, L2 beside a constant, or the largest L1 norm of a group."""
    if shape.name == "ball":
        return np.linalg.norm(draws, axis=1) / shape.scales[0]
    if shape.name == "cylinder":
        return np.maximum(np.linalg.norm(draws[:, :-1], axis=1) / shape.scales[0], np.abs(draws[:, -1]) / shape.scales[1])
    parts = np.split(draws, np.cumsum(shape.sizes)[:-1], axis=1)
    return np.max([np.abs(part).sum(axis=1) / scale for part, scale in zip(parts, shape.scales, strict=True)], axis=0)


def smaller_draws(monkeypatch):
    """All draws 15% smaller where they are made."""
    for name in ("discrete_laplace", "discrete_gaussian"):
        draw = getattr(lattice, name)
        monkeypatch.setattr(lattice, name, lambda scale, *given, draw=draw: draw(scale * 85 / 100, *given))
    for law in ("laplace", "gaussian"):
        draw = getattr(Entropy, law)
        monkeypatch.setattr(Entropy, law, lambda self, *given, draw=draw: SMALLER * draw(self, *given))


both = pytest.mark.parametrize("planted", [False, True], ids=["code", "bug"])


@both
@pytest.mark.parametrize("name", CASES)
def test_noise_on_a_grid_has_the_promised_size(name, planted, monkeypatch):
    """And draws that are 15% smaller are noticed."""
    if planted:
        smaller_draws(monkeypatch)
    ratio = grid_ratio(name)
    assert (ratio < LEAST) == planted
    assert ratio < MOST


@both
@pytest.mark.parametrize("name", SHAPED)
def test_noise_in_an_objective_has_the_promised_size(name, planted, monkeypatch):
    """The same for each shape and law. Gaussian noise pays for its curvature, so it may be larger."""
    if planted:
        smaller_draws(monkeypatch)
    ratio = shaped_ratio(name)
    assert (ratio < LEAST) == planted
    assert ratio < (1.6 if "Gaussian" in name else MOST)


@both
def test_spherical_noise_on_weights_and_sums_has_the_promised_size(planted, monkeypatch):
    """Mean length D times sensitivity over epsilon, for exact minimisers and for sums."""
    if planted:
        smaller_draws(monkeypatch)
    wide = OutputPerturbation().plan(facts_of("ball 5", REPLACE)[0], PURE)
    sums = least_squares(PURE, REPLACE)
    for plan, sensitivity in ((wide, 2.0 * R / L2), (sums, 3.0 / math.sqrt(2.0) * R**2)):
        if plan.noise is None:
            continue
        size = plan.noise.shape.dimension
        draws = np.array([plan.noise.draw(entropy)[0] for entropy in [Entropy.seeded(3)] * 600])
        ratio = float(np.linalg.norm(draws, axis=1).mean() / (size * sensitivity))
        assert (ratio < LEAST) == planted
        assert ratio < MOST
    assert wide.noise is not None


@pytest.mark.parametrize("name", CASES)
def test_a_plan_that_asks_for_less_noise_is_noticed(name, monkeypatch):
    """The same detector, where the scale of the plan is 15% smaller and the draws are right."""
    plan, promised = CASES[name]()
    noise = plan.lattice
    less = (
        replace(noise, epsilon=noise.epsilon / SMALLER)
        if isinstance(noise, LatticeLaplace)
        else replace(noise, deviation=noise.deviation * SMALLER)
    )
    monkeypatch.setitem(CASES, name, lambda: (replace(plan, lattice=less), promised))
    assert isinstance(noise, LatticeLaplace | LatticeGaussian)
    assert grid_ratio(name) < LEAST


@pytest.mark.parametrize("law", ["exponential", "permute-and-flip"])
def test_a_private_choice_has_its_promised_chances(law):
    """Of two candidates two mistakes apart, at epsilon 2; the odds of 2 / 0.85 are noticed."""

    def chance(epsilon):
        worse = math.exp(-epsilon)
        return 1.0 / (1.0 + worse) if law == "exponential" else 1.0 - 0.5 * worse

    entropy, n, middle = Entropy.seeded(4), 4000, 0.5 * (chance(2.0) + chance(2.0 / SMALLER))
    for epsilon in (2.0, 2.0 / SMALLER):
        chosen = sum(Selection(law, epsilon).choose([0, 2], entropy) == 0 for _ in range(n)) / n
        assert abs(chosen - chance(epsilon)) < 4.0 * math.sqrt(0.1 / n)
        assert (chosen > middle) == (epsilon > 2.0)


def test_quantiles_and_tries_share_their_epsilon():
    """Two columns at three quantiles have a sixth each; tries of a geometric number a third. 15% more would be noticed."""
    plan = NoisyQuantiles().plan([[0.0, 1.0], [0.0, 1.0]], [0.25, 0.5, 0.75], PURE, REPLACE)
    assert plan.selection.epsilon == pytest.approx(1.0 / 6.0, rel=1e-6)
    assert Repetition(1, Repetition.of_mean(1, 4.0).stop).pure_base(1.0) == pytest.approx(1.0 / 3.0, rel=1e-6)
