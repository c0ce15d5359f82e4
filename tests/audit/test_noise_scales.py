"""The noise of every mechanism has the size that its theorem asks for: 15% less is noticed, in draws and in plans.

Sizes are written here from the theorems and from a worst pair by hand: row norm 1.3; epsilon 1, (1, 0.05) and rho 1/2.
Each detector compares the size of draws with a fixed seed. It accepts the code, and it trips where draws, or the scale in
the plan, are 15% smaller. `PLACES` says which detectors watch which function that plans noise, and no function is left out.
"""

from __future__ import annotations

import ast
import math
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest

from confide import LogisticRegression, privacy
from confide.erm.class_losses import OneVsRest, Softmax
from confide.estimators import search
from confide.estimators.search import _score_noise
from confide.privacy import lattice, scales
from confide.privacy.budgets import ZCDP, ApproxDP, PureDP
from confide.privacy.bundles import Bundles
from confide.privacy.centring import centring_plan
from confide.privacy.curvature import Curvature
from confide.privacy.direction_sums import DirectionSums
from confide.privacy.lattice import LatticeGaussian, LatticeLaplace
from confide.privacy.matching import COUNT_SCALE
from confide.privacy.moments import Moments, joint_bound
from confide.privacy.noise import Entropy
from confide.privacy.noisy_sum import SumPlan
from confide.privacy.objective_perturbation import ObjectivePerturbation
from confide.privacy.output_perturbation import OutputPerturbation
from confide.privacy.scales import scales_plan
from confide.privacy.selection import QuantilesPlan, Repetition, Selection
from confide.privacy.spreads import Spreads
from confide.privacy.standardised_sums import RiskSums
from confide.privacy.sufficient_statistics import LeastSquares, Statistics, StatisticsPlan, plan_of_statistics
from confide.privacy.tables import Counts, LevelsPlan, Tables
from tests.audit.attacks import ADD, LOSS, REPLACE, facts_of, objective_attack
from tests.privacy import (
    test_matching,
    test_moments,
    test_scales,
)
from tests.privacy import (
    test_mechanism_grouped_form as test_grouped_form,
)
from tests.privacy import (
    test_mechanism_ridges_of_columns as test_ridges_of_columns,
)
from tests.privacy import (
    test_tables_atoms_of_a_fit as test_atoms,
)
from tests.privacy.densities import bundles_norm, gaussian_multiplier, least_variance_covariance, shape_norm
from tests.privacy.descents import mean_of_sums
from tests.privacy.problems import objective_plan, problem
from tests.privacy.test_direction_sums import training_of

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
    return plan_of_statistics(LeastSquares(**shared, target_bound=1.0), budget)


def weights_plan(budget, neighbours, laplace_alone=False):
    return OutputPerturbation(laplace_alone).plan(facts_of("ball 2", neighbours)[0], budget)


def moments_plan(budget):
    facts = facts_of("ball 2", REPLACE)[0]
    return Moments.plan(ObjectivePerturbation().plan(facts, PURE), budget)


def risks_plan(budget, neighbours):
    """The plan of sums for two changes, for rows of two columns and a constant."""
    high = 30 if neighbours is ADD else None
    training = ObjectivePerturbation().plan(problem(intercept=1.0, neighbours=neighbours, high=high), PURE)
    return RiskSums.plan(training, 2, budget)


def of_moments(plan):
    """The bound of theorem 1 of proofs/moments.md, which has tests of its own."""
    return math.sqrt(2.0) * joint_bound(plan.problem.loss_bounds, plan.query.curvature_scale) * R**2


def sums_in_one_column(budget, neighbours):
    """Facts of noisy sums for rows of one column."""
    facts = least_squares(budget, neighbours).problem
    return replace(facts, n_features=1)


@dataclass(frozen=True)
class Alone:
    """Noise that no plan holds."""

    lattice: LatticeLaplace | LatticeGaussian


def spherical_sums():
    """Noisy sums with spherical noise, whose seal takes a twentieth of epsilon."""
    return StatisticsPlan.sealed(Statistics(least_squares(PURE, REPLACE).problem), PURE, 0.05)


def seal_of(plan, share):
    """A plan's own Laplace seal, and its promised scale: any two minimisers lie within twice the radius."""
    return plan, math.sqrt(plan.lattice.dimension) * 2.0 * plan.radius / share


def gaussian_seal():
    """The same with Gaussian noise, for a share of the shift of two rows that the plan states."""
    plan = objective_attack("ball 2", "gaussian", CONCENTRATED, REPLACE).plan
    share = math.sqrt((1.0 + plan.seal_share) ** 2 - 1.0)
    return plan, 2.0 * plan.radius * plan.noise.scale / (2.0 * share)


# Name: (plan, promised size): the deviation of one number of Gaussian noise, or the scale of one number of Laplace noise.
CASES = {
    "counts, pure": lambda: (SumPlan.of(Counts(4, REPLACE), PURE), 2.0),
    "counts, pure, absent": lambda: (SumPlan.of(Counts(4, ADD), PURE), 1.0),
    "counts, approximate": lambda: (SumPlan.of(Counts(4, REPLACE), APPROXIMATE), math.sqrt(2.0) * multiplier[APPROXIMATE]),
    "counts, concentrated": lambda: (SumPlan.of(Counts(4, ADD), CONCENTRATED), 1.0),
    "levels": lambda: (LevelsPlan.of(2, ApproxDP(1.0, 1e-6), REPLACE), 4.0),
    "levels, absent": lambda: (LevelsPlan.of(3, ApproxDP(1.0, 1e-6), ADD), 3.0),
    "tables, pure": lambda: (SumPlan.of(Tables((3, 2), 2, REPLACE), PURE), 2 * 2.0 + 2 * 0.5 * 2.25),
    # Of three columns at most two of three products change, by 2; a new row of four columns adds 1 to each of six.
    "tables with products, pure": lambda: (SumPlan.of(Tables((3, 2), 3, REPLACE, 1, 3), PURE), 7.375 + 2 * 0.5 * 2.0),
    "tables with products, concentrated": lambda: (
        SumPlan.of(Tables((3,), 4, ADD, 1, 4), CONCENTRATED), math.sqrt(1.0 + 4 * 0.25 * 2.0 + 6 * 0.25),
    ),
    "tables, concentrated": lambda: (SumPlan.of(Tables((3, 2), 0, REPLACE), CONCENTRATED), math.sqrt(4.0)),
    "atoms": lambda: (SumPlan.of(test_atoms.query(), CONCENTRATED, ("gaussian",), 0.04), math.sqrt(6.0) / 0.2),
    "atoms, pure": lambda: (SumPlan.of(test_atoms.query(), PURE, ("laplace",), 0.5), 6.0 / 0.5),
    "atoms, absent": lambda: (SumPlan.of(test_atoms.query(ADD), CONCENTRATED, ("gaussian",), 0.04), math.sqrt(3.0) / 0.2),
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
    # The squared length of the frame is 1.4 * 2 + 1. Of a slope of size a, the square of the curvature, at most
    # 4.063 a (1 - a), and that of .7 a, doubled where a row is replaced, add up to at most 1.155 and to 1.3105.
    "curvature, pure": lambda: (Curvature.plan(training_of(), PURE), math.sqrt(9.0) * 1.5252 * 3.8),
    "curvature, approximate": lambda: (
        Curvature.plan(training_of(ADD), APPROXIMATE), math.sqrt(1.155) * 3.8 * multiplier[APPROXIMATE],
    ),
    "curvature, concentrated": lambda: (Curvature.plan(training_of(), CONCENTRATED), math.sqrt(2.0 * 1.3105) * 3.8),
    # Columns of norm 1 and their squares are at most 2.5 apart; without a row less, and its number of rows, at most 3^.5.
    "spreads, pure": lambda: (Spreads.plan(training_of(), PURE), math.sqrt(4.0) * 2.5),
    "spreads, approximate": lambda: (
        Spreads.plan(training_of(ADD), APPROXIMATE), math.sqrt(3.0) * multiplier[APPROXIMATE],
    ),
    "spreads, concentrated": lambda: (Spreads.plan(training_of(), CONCENTRATED), 2.5),
    "sums along directions, pure": lambda: (DirectionSums.plan(training_of(), 2, PURE), 2.0 * 2.4123),
    "sums along directions, approximate": lambda: (
        DirectionSums.plan(training_of(), 2, APPROXIMATE), math.sqrt(2.0) * 2.0 * multiplier[APPROXIMATE],
    ),
    "sums along directions, concentrated": lambda: (
        DirectionSums.plan(training_of(ADD), 2, CONCENTRATED), math.sqrt(2.0) * 1.1618,
    ),
    "mean of counts, pure": lambda: (
        test_matching.matching_plan(test_matching.facts(), PURE, 0.05, "laplace"), 7.5 * (2.0 + COUNT_SCALE) / 0.05,
    ),
    "mean of counts, concentrated": lambda: (
        test_matching.matching_plan(test_matching.facts(ADD), CONCENTRATED, 0.05, "gaussian"),
        7.5 * math.hypot(1.0, COUNT_SCALE) / math.sqrt(0.05),
    ),
    "least squares, Laplace": lambda: (
        StatisticsPlan.of(Statistics(sums_in_one_column(PURE, ADD), 1.0), PURE, ("laplace",)), (1.0 + 1.0) * R**2,
    ),
    "moments of three classes": lambda: (
        plan := test_moments.plan_of(test_moments.problem_of(Softmax(3), 2), CONCENTRATED),
        math.sqrt(2.0) * math.sqrt(max(1.0, plan.query.curvature_scale**2 + 9.0 / 16.0)) * 2.5**2,
    ),
    "seal of an objective": lambda: seal_of(
        plan := objective_attack("ball 2", "laplace", PURE, REPLACE).plan, plan.seal_share,
    ),
    "seal of an objective, Gaussian": gaussian_seal,
    "seal of weights": lambda: seal_of(OutputPerturbation().plan(facts_of("ball 5", REPLACE)[0], PURE), 0.01),
    "seal of moments": lambda: seal_of(moments_plan(PURE), 0.01),
    "seal of sums": lambda: seal_of(spherical_sums(), 0.05),
    "score of a search, pure": lambda: (Alone(_score_noise(PURE)), 1.0),
    "score of a search, concentrated": lambda: (Alone(_score_noise(CONCENTRATED)), 1.0),
    "scales": lambda: (scales_plan(test_scales.query(), CONCENTRATED, 0.04), 2.0 * math.sqrt(2.0) / 0.2),
    "scales, absent": lambda: (
        scales_plan(test_scales.query(ADD), CONCENTRATED, 0.04), math.sqrt(2.0) * math.hypot(1.0, scales.COUNT_SCALE) / 0.2,
    ),
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


# Name: (plan, promised mean length of its noise over its dimension): sensitivity over what the seal leaves of epsilon.
SPHERICAL = {
    "weights, spherical": lambda: (OutputPerturbation().plan(facts_of("ball 5", REPLACE)[0], PURE), 2.0 * R / L2 / 0.99),
    "least squares, spherical": lambda: (spherical_sums(), 3.0 / math.sqrt(2.0) * R**2 / 0.95),
    "moments, spherical": lambda: (plan := moments_plan(PURE), of_moments(plan) / 0.99),
    "objective, one-vs-rest": lambda: (several_classes(OneVsRest(LOSS, 3)), 2.0 * math.sqrt(3.0) * R),
    "objective, softmax": lambda: (several_classes(Softmax(3)), 2.0 * math.sqrt(2.0) * R),
}


def several_classes(loss):
    """A plan of noise in the objective for three classes."""
    facts = problem(3, 1, loss=loss, row_norm=R, l2=L2, neighbours=REPLACE)
    return objective_plan(facts, PURE, "laplace", "ball")


def spherical_ratio(name):
    plan, promised = SPHERICAL[name]()
    draws = np.array([plan.noise.draw(entropy)[0] for entropy in [Entropy.seeded(3)] * 600])
    return float(np.linalg.norm(draws, axis=1).mean() / (plan.noise.shape.dimension * promised))


@both
@pytest.mark.parametrize("name", SPHERICAL)
def test_spherical_noise_has_the_promised_size(name, planted, monkeypatch):
    """Mean length D times sensitivity over epsilon: for exact minimisers, sums, moments and several classes."""
    if planted:
        smaller_draws(monkeypatch)
    ratio = spherical_ratio(name)
    assert (ratio < LEAST) == planted
    assert ratio < MOST


# Name: (noise of a plan, the norm in which its length has a Gamma law), for rows in groups, pure epsilon = 1, replace-one.
GROUPED = {
    "objective, bundles": lambda: (bundles := ridges_plan("bundles"), lambda b: bundles_norm(bundles.noise.shape, b)),
    "objective, ridges of columns": lambda: (
        ridges_plan("groups"), lambda b: shape_norm(b, test_ridges_of_columns.SIZES, test_ridges_of_columns.SCALES),
    ),
    "objective, norm of a form": lambda: (
        form_plan(),
        lambda b: shape_norm(b @ np.linalg.inv(test_grouped_form.MAP).T, test_grouped_form.SIZES, test_grouped_form.SCALES),
    ),
}  # fmt: skip


def ridges_plan(shape):
    """Noise in the objective where weights have ridges of their own, strong enough for curvature to cost little."""
    others = test_ridges_of_columns
    bound, factors = (others.GROUPS, others.FACTORS) if shape == "groups" else (others.LONG, others.OF_LONG)
    return objective_plan(others.facts_of(bound, factors, l2=L2), PURE, "laplace", shape)


def form_plan():
    """Noise in the objective in the norm of a quadratic form, for rows in groups that are not linked."""
    facts = test_grouped_form.facts_of(test_grouped_form.GROUPS)
    plan = ObjectivePerturbation().plan(replace(facts, l2=100.0 * L2), PURE)
    shape = next(shape for shape in facts.shapes if shape.base.name == "groups")
    return replace(plan, noise=replace(plan.noise, shape=shape))


def grouped_ratio(name):
    plan, norm = GROUPED[name]()
    draws = np.array([plan.noise.draw(entropy)[0] for entropy in [Entropy.seeded(5)] * 600])
    return float(np.mean(norm(draws)) / (plan.noise.shape.free_dimension * 2.0))


@both
@pytest.mark.parametrize("name", GROUPED)
def test_noise_of_groups_has_the_promised_size(name, planted, monkeypatch):
    """The same for bundles of groups, for ridges of columns and for the norm of a form. A seal takes a few percent."""
    if planted:
        smaller_draws(monkeypatch)
    ratio = grouped_ratio(name)
    assert (ratio < LEAST) == planted
    assert ratio < MOST
    assert (name == "objective, bundles") == isinstance(GROUPED[name]()[0].noise.shape, Bundles)


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


@pytest.mark.parametrize("law", ["exponential", "permute-and-flip", "together"])
def test_a_private_choice_has_its_promised_chances(law):
    """Of two candidates two mistakes apart, at epsilon 2; the odds of 2 / 0.85 are noticed."""

    def chance(epsilon):
        worse = math.exp(-epsilon)
        return 1.0 - 0.5 * worse if law == "permute-and-flip" else 1.0 / (1.0 + worse)

    def choice(epsilon):
        if law != "together":
            return Selection(law, epsilon).choose([0, 2], entropy)
        return Selection("exponential", epsilon).choose_together([np.array([0, 2])], [np.array([1, 1])], entropy)[0]

    entropy, n, middle = Entropy.seeded(4), 4000, 0.5 * (chance(2.0) + chance(2.0 / SMALLER))
    for epsilon in (2.0, 2.0 / SMALLER):
        chosen = sum(choice(epsilon) == 0 for _ in range(n)) / n
        assert abs(chosen - chance(epsilon)) < 4.0 * math.sqrt(0.1 / n)
        assert (chosen > middle) == (epsilon > 2.0)


def test_choices_and_tries_take_no_more_than_their_budget():
    """Six quantiles have epsilon together or a sixth of rho each; tries a third of epsilon. 15% more would be noticed.

    One choice takes an epsilon; at rho, epsilon^2 / 8 of bounded range and epsilon tanh(epsilon / 2) of permute-and-flip.
    """
    assert Selection.of_budget("auto", PURE).epsilon == 1.0
    assert Selection.of_budget("exponential", CONCENTRATED).epsilon == pytest.approx(2.0, rel=1e-6)
    flip = Selection.of_budget("permute-and-flip", CONCENTRATED).epsilon
    assert flip * math.tanh(flip / 2.0) == pytest.approx(0.5, rel=1e-6)
    best = search.PrivateSearchCV(LogisticRegression(1.0, classes=[0, 1]), {"alpha": [0.1, 1.0]}, score_share=0.25)
    assert best.set_params(method="exponential").plan(3000, 3).selection.epsilon == pytest.approx(0.75, rel=1e-6)
    facts = [[0.0, 1.0]] * 2, [[1, 1]] * 2, [0.25, 0.5, 0.75]
    assert QuantilesPlan.of(*facts, PURE, REPLACE).selection.epsilon == pytest.approx(1.0, rel=1e-6)
    apart = QuantilesPlan.of(*facts, CONCENTRATED, REPLACE).selection.epsilon
    assert apart == pytest.approx(math.sqrt(8.0 * 0.5 / 6.0), rel=1e-6)
    assert Repetition(1, Repetition.of_mean(1, 4.0).stop).pure_base(1.0) == pytest.approx(1.0 / 3.0, rel=1e-6)


# Each function that decides how large noise is, or how much a choice costs: the detectors above that watch it.
PLACES = {
    "centring.CentreOfRows.distances": {"centre"},
    "scales.SumsByTarget.distances": {"scales", "scales, absent"},
    "tables.Counts.distances": {"counts, pure", "counts, pure, absent", "counts, approximate", "counts, concentrated"},
    "curvature.Curvature.distances": {"curvature, pure", "curvature, approximate", "curvature, concentrated"},
    "direction_sums.DirectionSums.distances": {
        "sums along directions, pure", "sums along directions, approximate", "sums along directions, concentrated",
    },
    "gradient.NoisyGradients.plan": {"gradients", "gradients, approximate"},
    "noisy_sum.least_noise": {"counts, pure", "counts, concentrated", "tables, pure", "curvature, approximate"},
    "matching.CountsAndResiduals.distances": {"mean of counts, pure", "mean of counts, concentrated"},
    "moments.Moments.distances": {"moments", "moments of three classes"},
    "moments.Moments.spherical": {"moments, spherical"},
    "noisy_sum.SumPlan.of": {"counts, pure", "counts, concentrated", "moments"},
    "noisy_sum.SumPlan.sealed": {"seal of moments", "seal of sums"},
    "objective_perturbation.gaussian_plan": {
        "objective, Gaussian in a ball", "objective, Gaussian in groups", "objective, Gaussian in linked groups",
        "seal of an objective, Gaussian",
    },
    "objective_perturbation._laplace_plan": {
        "objective, ball", "objective, cylinder", "objective, groups", "objective, linked", "objective, bundles",
        "objective, norm of a form", "objective, ridges of columns", "objective, one-vs-rest", "objective, softmax",
        "seal of an objective",
    },
    "output_perturbation.OutputPerturbation.plan": {"weights, Laplace", "weights, Gaussian", "weights, concentrated"},
    "output_perturbation.OutputPerturbation._spherical": {"weights, spherical", "seal of weights"},
    "selection.QuantilesPlan.of": {"choices and tries"},
    "search.PrivateSearchCV._plan_once": {"choices and tries"},
    "search._score_noise": {"score of a search, pure", "score of a search, concentrated"},
    "spreads.Spreads.distances": {"spreads, pure", "spreads, approximate", "spreads, concentrated"},
    "standardised_sums.RiskSums.distances": {
        "differences of risks", "differences of risks, approximate", "differences of risks, pure",
    },
    "sufficient_statistics.Statistics.distances": {"least squares", "least squares, approximate", "least squares, Laplace"},
    "sufficient_statistics.Statistics.spherical": {"least squares, spherical"},
    "tables.LevelsPlan.of": {"levels", "levels, absent"},
    "tables.Tables.distances": {"tables, pure", "tables, concentrated", "tables with products, pure",
        "tables with products, concentrated", "atoms", "atoms, absent", "atoms, pure"},
}  # fmt: skip
LAWS = {
    "LatticeLaplace",
    "LatticeGaussian",
    "of_l1",
    "of_mu",
    "of_multiplier",
    "least_noise",
    "Noise",
    "Selection",
    "of_budget",
}


def places_of_noise(path):
    """The functions and methods of a module that make noise, or a private choice, of a size that they decide.

    What says how far the sums of neighbours lie apart decides it too.
    """

    def found(node, names):
        for child in ast.iter_child_nodes(node):
            inner = [*names, child.name] if isinstance(child, ast.FunctionDef | ast.ClassDef) else names
            if isinstance(child, ast.FunctionDef) and child.name == "distances" and names[-1] != "SumQuery":
                yield ".".join(inner)
            if isinstance(child, ast.Call) and getattr(child.func, "attr", getattr(child.func, "id", "")) in LAWS:
                yield ".".join(names[: 3 if names[1][0].isupper() else 2])
            yield from found(child, inner)

    return set(found(ast.parse(path.read_text(encoding="utf-8")), [path.stem]))


def test_every_function_that_decides_how_large_noise_is_has_a_detector():
    """A mechanism that is added without one fails here; and each detector watches something."""
    found = set().union(*map(places_of_noise, [*Path(privacy.__file__).parent.glob("*.py"), Path(search.__file__)]))
    # The laws themselves have tests of their own.
    assert {name for name in found if not name.startswith("lattice.")} == set(PLACES)
    assert set().union(*PLACES.values()) == {*CASES, *SHAPED, *SPHERICAL, *GROUPED, "choices and tries"}
