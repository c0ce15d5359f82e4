"""Output perturbation: the law of its noise, the narrow joint in place of the hinge, and Rubinstein's Laplace noise."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from confide.data.arrays import ArrayBlocks, MemorySource
from confide.erm.losses import Hinge, HuberHinge, LogisticLoss
from confide.errors import InsufficientRegularisation, NotCertified, ParameterError
from confide.privacy import output_perturbation
from confide.privacy.budgets import ZCDP, ApproxDP, Neighbours, PureDP
from confide.privacy.certificate import certify, planned_tolerance
from confide.privacy.gaussian import mu_within, output_sensitivity
from confide.privacy.lattice import LatticeGaussian, LatticeLaplace
from confide.privacy.mechanism import Noise, log_failure
from confide.privacy.objective_perturbation import ObjectivePerturbation
from confide.privacy.output_perturbation import OutputPerturbation
from confide.privacy.shapes import Ball
from confide.solvers import fallback
from confide.solvers.fallback import NewtonThenFallback
from tests.privacy.densities import (
    exact_minimiser,
    gaussian_multiplier,
    signed,
)
from tests.privacy.laws import check_law
from tests.privacy.problems import problem, releases, rows_and_labels, source

REPLACE, ADD = Neighbours.REPLACE_ONE, Neighbours.ADD_OR_REMOVE_ONE
DRAWS = 1000
ROWS, NORM, CONSTANT = 8, 2.0, 1.5
"""Row norm 2 and intercept constant 1.5, so R = 2.5: any wrong factor of n, 2, R or the intercept shows."""
OUTPUT, LAPLACE = OutputPerturbation(), OutputPerturbation(laplace_alone=True)

LAWS = {
    "sealed sphere": (OUTPUT, PureDP(0.8), None, lambda b, _: ("gamma", 1 / (0.99 * b.epsilon))),
    "Laplace": (LAPLACE, PureDP(0.8), LatticeLaplace, lambda b, d: ("expon", math.sqrt(d) / b.epsilon)),
    "approximate": (
        OUTPUT, ApproxDP(1.0, 0.01), LatticeGaussian, lambda b, _: ("halfnorm", gaussian_multiplier(b.epsilon, b.delta)),
    ),
    "zcdp": (OUTPUT, ZCDP(0.05), LatticeGaussian, lambda b, _: ("halfnorm", math.sqrt(0.5 / b.rho))),
}  # fmt: skip


@pytest.mark.parametrize(("neighbours", "shift"), [(REPLACE, 2.0), (ADD, 1.0)], ids=["replace", "add"])
@pytest.mark.parametrize("name", LAWS)
def test_weights_scatter_around_the_minimiser_of_the_hinge_by_the_theorems_law(name, neighbours, shift):
    """Over shift R / l2 times the multiplier of the law, w - w* has the standard law; 30% off fails.

    The ridge keeps every margin below 1/2, where the minimiser of the hinge is known: the sum of y x over l2.
    """
    mechanism, budget, lattice, expected = LAWS[name]
    facts = problem(
        8, 2, loss=Hinge(), row_norm=2.0, intercept=1.5, l2=120.0, neighbours=neighbours,
        high=12 if neighbours is ADD else None,
    )  # fmt: skip
    raw = np.random.default_rng(4).normal(size=(8, 2)) * 3.0
    labels = np.where(np.arange(8) % 3, 1, -1)
    clipped = raw * np.minimum(1.0, 2.0 / np.linalg.norm(raw, axis=1))[:, None]
    centre = signed(clipped, labels, 1.5).sum(axis=0) / 120.0
    assert (signed(clipped, labels, 1.5) @ centre < 0.5).all()
    plan = mechanism.plan(facts, budget)
    assert plan.noise is not None if lattice is None else isinstance(plan.lattice, lattice)
    law, multiplier = expected(budget, 3)
    sample = releases(mechanism, plan, rows_and_labels(raw, labels), DRAWS, 5)
    scattered = (sample - centre) / (shift * 2.5 / 120.0 * multiplier)
    if law == "gamma":
        check_law(np.linalg.norm(scattered, axis=1), stats.gamma(3).cdf)
    else:
        check_law(np.abs(scattered).ravel(), getattr(stats, law).cdf)


def inflation(facts, half_width):
    """What certified inexactness adds to the sensitivity, over it, with such a joint; inf where it is refused."""
    joined = replace(facts, loss=HuberHinge(half_width))
    exact = output_sensitivity(1.0, facts.row_norm, facts.l2, facts.neighbours)
    try:
        return 2.0 * planned_tolerance(joined.rounding(facts.l2), 0.0) / facts.l2 / exact
    except InsufficientRegularisation:
        return math.inf


@pytest.mark.parametrize(
    ("n", "d", "l2", "most"),
    [
        (100, 2, 30.0, 1e-3),
        (45_000, 105, 300.0, 1e-3),
        (45_000, 105, 30.0, 1e-3),
        (10**7, 20, 40.0, 1e-2),
        (10**7, 50, 40.0, 5e-2),
    ],
)
def test_the_joint_is_the_narrowest_that_can_be_certified(n, d, l2, most):
    """From public facts: half as wide would cost more than a thousandth (a hundredth, a twentieth), or is below 2^-12."""
    facts = problem(n, d, loss=Hinge(), l2=l2)
    plan = OUTPUT.plan(facts, ApproxDP(1.0, 1e-6))
    width = plan.problem.loss.smoothing
    assert plan.problem == replace(facts, loss=HuberHinge(width))
    assert 2.0**-12 <= width <= 2.0**-5
    assert inflation(facts, width) <= most
    assert width == 2.0**-12 or inflation(facts, width / 2.0) > most
    assert most == 1e-3 or inflation(facts, 2.0**-5) > {1e-2: 1e-3, 5e-2: 1e-2}[most]
    assert f"joint of half-width {width:.3g}" in str(plan)
    assert plan.to_dict()["smoothing"] == width


def test_no_joint_for_too_small_a_ridge():
    """Refused from public facts, as smooth losses are."""
    with pytest.raises(ParameterError, match="Raise alpha"):
        OUTPUT.plan(problem(10**8, 50, loss=Hinge(), l2=1.0), PureDP(1.0))


@pytest.mark.parametrize("share", [0.0, 0.25, 0.75, 1.0])
@pytest.mark.parametrize("weight", [1.0, 3.0])
def test_a_joint_costs_an_eighth_of_its_half_width_a_row(share, weight):
    """The duality gap of the hinge at w_h is at most n Omega h / 8, and reaches it where all rows have slope 1/4 or 3/4.

    The dual variables are the slopes: primal and dual value are computed here by their definitions. A sixteenth would fail.
    """
    n, h, slope = 20, 0.1, 0.5 + 0.5 * (share - 0.5)
    # One number as weight; all rows alike, so that l2 w = n weight slope at the minimiser, with margin w.
    w = 1.0 + h * (1.0 - 2.0 * slope)
    l2 = n * weight * slope / w
    facts = problem(n, 1, loss=HuberHinge(h), l2=l2, row_norm=1.5, largest_weight=weight)
    rows = MemorySource(ArrayBlocks(np.ones((n, 1))), np.ones(n, dtype=np.int8), np.full(n, weight))
    found = NewtonThenFallback().solve(facts.objective(rows, l2, np.zeros((1, 1))), np.zeros((1, 1)), 1e-9).weights
    assert found[0, 0] == pytest.approx(w, rel=1e-9)
    primal = n * weight * max(0.0, 1.0 - w) + 0.5 * l2 * w**2
    dual = n * weight * slope - (n * weight * slope) ** 2 / (2.0 * l2)
    gap, bound = primal - dual, n * weight * h / 8.0
    assert 0.0 <= gap <= bound * (1 + 1e-9)
    if share in (0.0, 1.0):
        assert gap == pytest.approx(bound, rel=1e-9)
    # The hinge's own minimiser is 1, or where the rows pull it to if that is less.
    exact = min(1.0, n * weight / l2)
    assert abs(w - exact) <= math.sqrt(bound / l2)


def test_the_distance_to_the_minimiser_of_the_hinge_is_as_stated():
    """Random rows: at most sqrt(n h / (8 l2)), against the hinge with a joint of 2^-20; and far less in practice."""
    rng = np.random.default_rng(0)
    raw = rng.normal(size=(300, 4)) * 0.5
    rows = rows_and_labels(raw, np.where(raw[:, 0] + 0.3 * rng.normal(size=300) > 0, 1, -1))
    for l2 in (0.5, 5.0, 50.0):
        found = {}
        for h in (2.0**-3, 2.0**-6, 2.0**-20):
            facts = problem(300, 4, loss=HuberHinge(h), l2=l2)
            found[h] = (
                NewtonThenFallback().solve(facts.objective(rows, l2, np.zeros((1, 4))), np.zeros((1, 4)), 1e-6).weights
            )
        for h in (2.0**-3, 2.0**-6):
            distance = np.linalg.norm(found[h] - found[2.0**-20])
            assert 1e-9 < distance <= math.sqrt(300 * h / (8.0 * l2))


AWKWARD = {
    "one row": (np.ones((1, 2)), np.ones(1)),
    "all alike": (np.ones((200, 2)), np.ones(200)),
    "alike with both labels": (np.ones((200, 2)), np.where(np.arange(200) % 2, 1, -1)),
    "separable": (np.outer(np.where(np.arange(200) % 2, 1.0, -1.0), [1.0, 0.5]), np.where(np.arange(200) % 2, 1, -1)),
    "zeros": (np.zeros((200, 2)), np.where(np.arange(200) % 2, 1, -1)),
    "few levels": (np.eye(2)[np.arange(200) % 2], np.where(np.arange(200) % 3, 1, -1)),
    "huge": (np.random.default_rng(0).normal(size=(200, 2)) * 1e300, np.where(np.arange(200) % 3, 1, -1)),
}


@pytest.mark.parametrize("l2", [1e-6, 1e-3, 0.3, 30.0])
@pytest.mark.parametrize("name", AWKWARD)
def test_awkward_rows_are_certified_without_the_slow_fallback(name, l2, monkeypatch):
    """The first method reaches the planned tolerance; gradient descent, which would take for ever here, is not called."""
    monkeypatch.setattr(fallback.GradientDescent, "solve", None)
    raw, labels = AWKWARD[name]
    facts = problem(len(raw), 2, loss=Hinge(), l2=l2)
    plan = OUTPUT.plan(facts, ApproxDP(1.0, 1e-6))
    with np.errstate(all="ignore"):
        assert np.isfinite(releases(OUTPUT, plan, rows_and_labels(raw, labels), 1, 0)).all()


def test_weights_twice_as_far_as_the_planned_radius_are_refused():
    """By the certificate of the plan, which the minimiser passes."""
    plan = OUTPUT.plan(problem(50, 2, loss=Hinge(), l2=3.0), PureDP(1.0))
    raw = np.random.default_rng(1).normal(size=(50, 2))
    rows = rows_and_labels(raw, np.where(raw[:, 0] > 0, 1, -1))
    objective = plan.problem.objective(rows, 3.0, np.zeros((1, 2)))
    rounding = plan.problem.rounding(3.0)
    exact = NewtonThenFallback().solve(objective, np.zeros((1, 2)), 1e-11).weights
    certify(objective, exact, plan.tolerance, rounding)
    off = exact + 2.0 * plan.radius * np.array([[1.0, 0.0]])
    with pytest.raises(NotCertified):
        certify(objective, off, plan.tolerance, rounding)


def test_the_laplace_noise_of_rubinstein_et_al_has_their_constant_at_half_the_epsilon():
    """4 L C kappa sqrt(F) / (beta n) is published, half of it is proven here: l2 = n / C, R = kappa, D = F."""
    n, C, kappa, columns, epsilon = 500, 0.7, 1.3, 12, 0.4
    facts = problem(n, columns, loss=Hinge(), row_norm=kappa, l2=n / C)
    published = 4.0 * C * kappa * math.sqrt(columns) / (epsilon * n)
    tight = LAPLACE.plan(facts, PureDP(epsilon))
    assert tight.lattice.scale == pytest.approx(published / 2.0, rel=3e-3)
    assert tight.lattice.scale > published / 2.0
    assert LAPLACE.plan(facts, PureDP(epsilon / 2.0)).lattice.scale == pytest.approx(published, rel=3e-3)
    assert (tight.mechanism, tight.noise) == ("output-laplace", None)
    assert "twice as much" in str(tight)
    # The spherical noise that "output" takes is shorter.
    assert OUTPUT.plan(facts, PureDP(epsilon)).noise_norm < 0.8 * tight.noise_norm


@pytest.mark.parametrize("budget", [ApproxDP(1.0, 1e-6), ZCDP(0.1)], ids=["approximate", "zcdp"])
def test_the_laplace_noise_alone_is_for_pure_budgets(budget):
    """The message names the way out."""
    with pytest.raises(ParameterError, match="mechanism='output'"):
        LAPLACE.plan(problem(loss=Hinge()), budget)


def test_objective_perturbation_refuses_the_hinge():
    """It has no curvature to calibrate for."""
    with pytest.raises(ParameterError, match="smooth"):
        ObjectivePerturbation().plan(problem(loss=Hinge()), PureDP(1.0))


OUTPUTS = {
    "pure, one weight: the grid's Laplace": (PureDP(0.8), 1, LatticeLaplace, lambda b, _: ("expon", 1 / b.epsilon)),
    "pure: spherical under a seal": (PureDP(0.8), 3, None, lambda b, _: ("gamma", 1 / (0.99 * b.epsilon))),
    "tiny delta: the grid's Laplace": (
        ApproxDP(0.8, 1e-28), 3, LatticeLaplace, lambda b, d: ("expon", math.sqrt(d) / b.epsilon),
    ),
    "approximate: the grid's Gaussian": (
        ApproxDP(1.0, 0.01), 3, LatticeGaussian, lambda b, _: ("halfnorm", gaussian_multiplier(b.epsilon, b.delta)),
    ),
    "zcdp: the grid's Gaussian": (ZCDP(0.05), 3, LatticeGaussian, lambda b, _: ("halfnorm", math.sqrt(0.5 / b.rho))),
}  # fmt: skip


@pytest.mark.parametrize(("neighbours", "shift", "persons"), [(REPLACE, 2.0, 1), (ADD, 1.0, 2)], ids=["replace", "add"])
@pytest.mark.parametrize("name", OUTPUTS)
def test_weights_of_output_perturbation_scatter_around_the_minimiser_by_the_theorems_law(name, neighbours, shift, persons):
    """w - w*, over shift R / l2 times the multiplier of the law, is the standard law; 30% off fails.

    The grid adds a thousandth to the sensitivity.
    """
    budget, dimension, lattice, expected = OUTPUTS[name]
    intercept = CONSTANT if dimension > 1 else 0.0
    facts = problem(
        ROWS, max(1, dimension - 1), row_norm=NORM, intercept=intercept, l2=40.0, neighbours=neighbours,
        high=12 if neighbours is ADD else None, rows_per_person=persons,
    )  # fmt: skip
    rows = source(ROWS, facts.n_features, length=3.0)
    plan = OutputPerturbation().plan(facts, budget)
    assert plan.noise is not None if lattice is None else isinstance(plan.lattice, lattice)
    clipped = rows.blocks.rows * np.minimum(1.0, NORM / np.linalg.norm(rows.blocks.rows, axis=1))[:, None]
    centre = exact_minimiser(LogisticLoss(), signed(clipped, rows.labels, intercept), 40.0, np.zeros(dimension))
    if isinstance(budget, ZCDP):
        of_row = ZCDP(budget.rho / persons**2)
    elif isinstance(budget, PureDP):
        of_row = PureDP(budget.epsilon / persons)
    else:
        part = math.expm1(budget.epsilon / persons) / math.expm1(budget.epsilon)
        of_row = ApproxDP(budget.epsilon / persons, budget.delta * part)
    law, multiplier = expected(of_row, dimension)
    sensitivity = shift * math.hypot(NORM, intercept) / 40.0
    scattered = (releases(OutputPerturbation(), plan, rows, DRAWS, 3) - np.float64(centre)) / (sensitivity * multiplier)
    if law == "gamma":
        check_law(np.linalg.norm(scattered, axis=1), stats.gamma(dimension).cdf)
    else:
        check_law(np.abs(scattered).ravel(), getattr(stats, law).cdf)
        assert 0.45 < (scattered > 0.0).mean() < 0.55


@pytest.mark.parametrize("budget", [PureDP(0.8), PureDP(0.05)], ids=["larger", "smaller"])
@pytest.mark.parametrize(("tolerance", "n"), [(1e-6, 20), (0.0, 20), (0.0, 10**9)], ids=["tolerance", "noise", "weights"])
def test_the_seal_of_spherical_noise_covers_what_the_page_says(tolerance, n, budget):
    """Radius: tolerance / l2, the error of the draw, and one rounding of weights of at most 2 W + 2 b_max, each seen alone.

    The noise has 99% of epsilon, the seal one hundredth, at the sensitivity of two radii.
    """
    facts = problem(n, 6, l2=30.0)
    plan = OUTPUT._spherical(facts, budget, budget.epsilon, 0.2, tolerance)
    failure = log_failure(budget, facts)
    noise = Noise(Ball(6, 0.2), "laplace", 0.99 * budget.epsilon)
    # Of the objective, not more than n log(2) at zero weights: so a minimiser is no longer than this.
    longest = facts.rounding(30.0).minimiser_norm(0.0)
    assert longest == pytest.approx(math.sqrt(2.0 * n * math.log(2.0) / 30.0), rel=1e-3)
    exact = tolerance / 30.0 + noise.error(failure) + 2.0**-53 * 2.0 * (longest + noise.bound(failure))
    assert plan.radius == pytest.approx(exact, rel=1e-9, abs=0.0)
    assert plan.radius > exact
    assert plan.noise.scale == pytest.approx(0.99 * budget.epsilon, rel=1e-9)
    assert plan.lattice.epsilon == pytest.approx(0.01 * budget.epsilon, rel=1e-9)
    assert plan.noise.scale + plan.lattice.epsilon < budget.epsilon
    assert plan.lattice.l2_sensitivity == 2.0 * plan.radius
    assert (plan.seal_share, plan.tolerance, plan.l2) == (0.01, tolerance, 30.0)


@pytest.mark.parametrize("budget", [ApproxDP(0.8, 1e-28), ApproxDP(1.0, 0.01), ZCDP(0.05)], ids=lambda b: b.kind)
def test_noise_on_the_grid_is_for_the_exact_sensitivity_and_two_radii(budget):
    """2 L R / l2 + 2 r, with r = tolerance / l2; the radius is rounded up."""
    facts = problem(20, 3, l2=30.0)
    plan = OUTPUT.plan(facts, budget)
    assert plan.tolerance / 30.0 < plan.radius <= plan.tolerance / 30.0 * (1.0 + 1e-11)
    exact = 2.0 / 30.0 + 2.0 * plan.radius
    assert exact < plan.lattice.l2_sensitivity <= exact * (1.0 + 1e-11)


def test_a_minimiser_that_is_less_exact_than_a_tenth_of_the_sensitivity_is_refused():
    """Two radii over 2 L R / l2: at a fifth there is no plan; at a twentieth there is one, for both of them."""
    for l2, share in ((0.1, 0.18), (1.0, 0.056)):
        facts = problem(10**8, 50, l2=l2)
        radius = planned_tolerance(facts.rounding(l2), noise_bound=0.0) / l2
        assert 2.0 * radius == pytest.approx(share * 2.0 / l2, rel=0.03)
        if share > 0.1:
            with pytest.raises(InsufficientRegularisation):
                OUTPUT.plan(facts, ZCDP(0.1))
        else:
            assert OUTPUT.plan(facts, ZCDP(0.1)).lattice.l2_sensitivity == pytest.approx(2.0 / l2 + 2.0 * radius, rel=1e-9)


def test_a_loss_that_is_smooth_has_no_joint():
    """The problem of the plan is the one that was given."""
    facts = problem(20, 1, l2=30.0)
    assert OUTPUT.plan(facts, PureDP(0.8)).problem is facts


def test_a_joint_is_chosen_for_a_certificate_without_noise(monkeypatch):
    """Noise comes after the minimiser, so the tolerance is planned for none."""
    asked = []

    def planned(rounding, noise_bound):
        asked.append(noise_bound)
        return planned_tolerance(rounding, noise_bound)

    monkeypatch.setattr(output_perturbation, "planned_tolerance", planned)
    OUTPUT.plan(problem(100, 2, loss=Hinge(), l2=30.0), PureDP(1.0))
    assert set(asked) == {0.0}


@pytest.mark.parametrize("budget", [PureDP(0.8), ApproxDP(1.0, 0.01), ZCDP(0.05)], ids=lambda b: b.kind)
def test_the_grid_adds_a_thousandth_to_the_distance_of_neighbours(budget):
    """But for the next power of two: beside the sensitivity, or beside two radii where the grid only seals."""
    lattice = OUTPUT.plan(problem(20, 6, l2=30.0), budget).lattice
    fine = lattice.l2_sensitivity / 1000.0 / math.sqrt(6.0)
    assert 0.5 * fine < lattice.step <= fine


def test_the_grid_below_spherical_noise_adds_a_thousandth_to_two_radii():
    """But for the next power of two."""
    plan = OUTPUT._spherical(problem(20, 6, l2=30.0), PureDP(0.8), 0.8, 0.2, 1e-6)
    fine = 2.0 * plan.radius / 1000.0 / math.sqrt(6.0)
    assert 0.5 * fine < plan.lattice.step <= fine


@pytest.mark.parametrize("beside", [0.0, 0.1])
def test_the_event_of_gaussian_noise_has_the_mu_of_the_noise_and_of_what_is_beside_it(beside):
    """Squares add up; together they are the mu that the budget allows."""
    budget = ApproxDP(1.0, 0.01)
    plan = OUTPUT.plan(replace(problem(20, 3, l2=30.0), beside_mu=beside), budget)
    own = plan.lattice.l2_sensitivity / plan.lattice.deviation
    assert plan.event.curve.mu == pytest.approx(math.hypot(own, beside), rel=5e-3)
    assert plan.event.curve.mu == pytest.approx(mu_within(budget), rel=1e-6)
    assert plan.event.curve.mu >= math.hypot(own, beside) * (1.0 - 5e-3)
