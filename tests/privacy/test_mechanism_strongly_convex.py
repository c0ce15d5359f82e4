"""Penalties of the user's own: their density by quadrature, attacks, the law of what is released, the certificate."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from confide.erm.losses import HuberHinge, LogisticLoss
from confide.erm.penalties import RIDGE, StronglyConvex
from confide.erm.row_bounds import BallBound, Centred
from confide.errors import InsufficientRegularisation, NotCertified, ParameterError
from confide.privacy.budgets import ZCDP, ApproxDP, Neighbours, PureDP
from confide.privacy.certificate import GradientRounding, certify, planned_tolerance, solver_tolerance
from confide.privacy.gaussian import curvature_cost, objective_noise_rate
from confide.privacy.mechanism import log_failure, zero_weights
from confide.privacy.noise import Entropy
from confide.privacy.objective_account import GaussianObjective
from confide.privacy.objective_perturbation import ObjectivePerturbation
from confide.privacy.output_perturbation import OutputPerturbation
from confide.solvers.fallback import NewtonThenFallback
from tests.privacy.densities import signed
from tests.privacy.laws import check_law
from tests.privacy.own_penalties import BENT, CONVEXITY, CORNER, LOG_COSH, OF_LENGTH, OWN, hessian
from tests.privacy.problems import problem, releases, rows_and_labels, with_penalty

REPLACE, ADD = Neighbours.REPLACE_ONE, Neighbours.ADD_OR_REMOVE_ONE
OBJECTIVE, OUTPUT = ObjectivePerturbation(), OutputPerturbation()
SOLVER = NewtonThenFallback()


def noise_behind(penalty, loss, rows, l2, w):
    """(n, d): the noise whose objective is least at (n, d) weights, from the theorem."""
    slopes = np.array([penalty.gradient(each) for each in w]) * l2 / CONVEXITY
    return -(slopes + loss.derivative(w @ rows.T) @ rows)


def determinants(penalty, loss, rows, l2, w):
    """(n,): those of the Hessian of the objective."""
    curved = np.einsum("ni,ij,ik->njk", loss.second_derivative(w @ rows.T), rows, rows)
    return np.linalg.det(hessian(penalty.name, w) * l2 / CONVEXITY + curved)


def density(penalty, loss, rows, l2, rate, w):
    """Of the minimiser under noise with density rate^d exp(-rate |b|) / constant."""
    d = w.shape[1]
    of_noise = np.exp(-rate * np.linalg.norm(noise_behind(penalty, loss, rows, l2, w), axis=1))
    return of_noise * determinants(penalty, loss, rows, l2, w) * {1: rate / 2.0, 2: rate**2 / (2.0 * math.pi)}[d]


@pytest.mark.parametrize("loss", [LogisticLoss(), HuberHinge(0.5)], ids=lambda loss: loss.constants.name)
@pytest.mark.parametrize("name", OWN)
@pytest.mark.parametrize("d", [1, 2])
def test_the_density_of_the_minimiser_integrates_to_one(name, loss, d):
    """By quadrature, in one and two dimensions, with kinks in the loss and in the penalty's gradient."""
    rows = np.random.default_rng(1).normal(size=(3, d))
    rows /= np.maximum(1.0, np.linalg.norm(rows, axis=1))[:, None]
    l2, rate = 1.5, 1.0
    # Gauss's rule between the places where the penalty's gradient has kinks, and others.
    ends = np.array([-30.0, -5.0, -1.0, -0.3, -CORNER, CORNER, 0.3, 1.0, 5.0, 30.0])
    nodes, shares = np.polynomial.legendre.leggauss({1: 200, 2: 16}[d])
    line = (0.5 * np.diff(ends)[:, None] * (nodes + 1.0) + ends[:-1, None]).ravel()
    weight = (0.5 * np.diff(ends)[:, None] * shares).ravel()
    points = np.stack(np.meshgrid(*[line] * d, indexing="ij"), axis=-1).reshape(-1, d)
    cells = np.prod(np.stack(np.meshgrid(*[weight] * d, indexing="ij"), axis=-1).reshape(-1, d), axis=1)
    total = float(density(OWN[name], loss, rows, l2, rate, points) @ cells)
    assert total == pytest.approx(1.0, abs=5e-3)


@pytest.mark.parametrize("neighbours", [REPLACE, ADD], ids=["replace", "add"])
@pytest.mark.parametrize("name", OWN)
def test_no_pair_exceeds_the_privacy_loss_of_the_ridge(name, neighbours):
    """Random rows and weights in two dimensions, half of them where the penalty is nearly straight."""
    rng, penalty, worst = np.random.default_rng(2), OWN[name], -math.inf
    for case in range(16):
        loss, l2, epsilon = [LogisticLoss(), HuberHinge(0.1)][case % 2], float(10.0 ** rng.uniform(-1, 1)), 1.5
        rate = objective_noise_rate(epsilon, loss.constants, 1.0, l2, neighbours)
        if rate == 0.0:
            continue
        rows = rng.normal(size=(5, 2))
        rows /= np.linalg.norm(rows, axis=1)[:, None]
        other = np.vstack([-rows[:1] + 0.1 * rng.normal(size=(1, 2)), rows[1:]]) if neighbours is REPLACE else rows[1:]
        other /= np.maximum(1.0, np.linalg.norm(other, axis=1))[:, None]
        w = rng.normal(size=(400, 2)) * 10.0 ** rng.uniform(-2, 1.5, size=(400, 1))
        logs = [
            -rate * np.linalg.norm(noise_behind(penalty, loss, each, l2, w), axis=1)
            + np.log(determinants(penalty, loss, each, l2, w))
            for each in (rows, other)
        ]
        worst = max(worst, float(np.abs(logs[0] - logs[1]).max()) / epsilon)
    assert 0.3 < worst <= 1.0


@pytest.mark.parametrize("declared", [1.0, 3.0])
def test_the_privacy_loss_is_reached_and_a_declared_constant_that_is_too_large_exceeds_it(declared):
    """A row just inside the bend of the loss becomes its opposite, where the penalty's own curvature is that of its ridge.

    The other rows push the noise along. With a strong convexity declared three times as large the loss is exceeded.
    """
    loss, epsilon, asked = HuberHinge(0.5), 1.0, 2.0
    rate = objective_noise_rate(epsilon, loss.constants, 1.0, asked, REPLACE)
    # What is minimised has the ridge asked for only if the constant is true.
    l2 = asked / declared
    w = np.array([[0.5 + 1e-9]])
    assert w[0, 0] > CORNER
    common = np.full((40, 1), 0.01)
    first, second = (np.vstack([common, [[sign]]]) for sign in (1.0, -1.0))
    # Enough rows on the other side that the noise keeps its sign.
    first, second = (np.vstack([each, np.full((5, 1), -1.0)]) for each in (first, second))
    logs = [
        float(
            -rate * np.linalg.norm(noise_behind(BENT, loss, each, l2, w), axis=1)[0]
            + np.log(determinants(BENT, loss, each, l2, w)[0])
        )
        for each in (first, second)
    ]
    shown = abs(logs[0] - logs[1])
    assert (shown <= epsilon * (1.0 + 1e-6)) == (declared == 1.0)
    assert shown > 0.99 * epsilon


def test_no_pair_exceeds_the_curve_of_gaussian_noise():
    """In one dimension, by quadrature: the hockey-stick divergence of neighbours, at several epsilons, both directions."""
    loss, l2, scale = LogisticLoss(), 0.6, 1.2
    w = np.linspace(-40.0, 40.0, 8_001)[:, None]
    rng, closest = np.random.default_rng(3), 0.0
    curve = GaussianObjective(1.0 / scale, curvature_cost(loss.constants, 1.0, l2), math.inf, 0.0, REPLACE, True)
    for case in range(6):
        rows = rng.uniform(-1.0, 1.0, size=(int(rng.integers(1, 5)), 1))
        rows[0] = 1.0
        other = rows.copy()
        other[0] = -1.0 if case % 2 else rng.uniform(-1.0, 1.0)
        densities = [
            stats.norm.pdf(noise_behind(LOG_COSH, loss, each, l2, w)[:, 0] / scale)
            / scale
            * determinants(LOG_COSH, loss, each, l2, w)
            for each in (rows, other)
        ]
        for epsilon in (1.0, 2.0):
            for first, second in (densities, densities[::-1]):
                seen = float(np.trapezoid(np.maximum(0.0, first - math.exp(epsilon) * second), w[:, 0]))
                assert seen <= curve.delta(epsilon) + 1e-9
                closest = max(closest, seen / curve.delta(epsilon))
    assert closest > 0.05


def facts_of(penalty, l2=40.0, **others):
    """A small problem with a penalty, and its rows, clipped to norm 2 with a constant of 1.5."""
    raw, labels = np.random.default_rng(4).normal(size=(8, 2)) * 3.0, np.where(np.arange(8) % 3, 1, -1)
    facts = with_penalty(problem(8, 2, loss=LogisticLoss(), row_norm=2.0, intercept=1.5, l2=l2, **others), function=penalty)
    clipped = raw * np.minimum(1.0, 2.0 / np.linalg.norm(raw, axis=1))[:, None]
    return facts, rows_and_labels(raw, labels), signed(clipped, labels, 1.5)


def with_intercept(penalty):
    """The penalty of columns and the ridge of the intercept's constant, for formulas without the library."""
    return StronglyConvex(
        None, lambda w: np.append(penalty.gradient(w[:-1]), CONVEXITY * w[-1]), CONVEXITY, math.nan, penalty.name
    )


@pytest.mark.parametrize(
    ("penalty", "neighbours", "shift"), [(BENT, REPLACE, 2.0), (OF_LENGTH, ADD, 1.0)], ids=["replace", "add"]
)
def test_released_weights_invert_to_the_noise_of_the_theorem(penalty, neighbours, shift):
    """b(w) = -(grad P + sum of slopes) has the Laplace law of its shape: 30% more or less noise fails."""
    epsilon = 0.8
    high = 10 if neighbours is ADD else None
    facts, rows, signed_rows = facts_of(penalty, neighbours=neighbours, high=high)
    plan = OBJECTIVE.plan(facts, PureDP(epsilon))
    sample = releases(OBJECTIVE, plan, rows, 500, 6, SOLVER)
    noise = noise_behind(with_intercept(penalty), LogisticLoss(), signed_rows, 40.0, sample)
    rate = (1.0 - plan.seal_share) * epsilon / shift
    ball = np.linalg.norm(noise, axis=1) / 2.5
    cylinder = np.maximum(np.linalg.norm(noise[:, :2], axis=1) / 2.0, np.abs(noise[:, 2]) / 1.5)
    check_law({"ball": ball, "cylinder": cylinder}[plan.noise.shape.name] * rate, stats.gamma(3).cdf)


@pytest.mark.parametrize("penalty", [LOG_COSH, BENT], ids=lambda penalty: penalty.name)
def test_noise_on_the_weights_has_the_sensitivity_of_the_ridge(penalty):
    """w - w* over 2 R / l2 is normal with deviation 1 / sqrt(2 rho): 30% more or less noise fails."""
    facts, rows, signed_rows = facts_of(penalty)
    plan = OUTPUT.plan(facts, ZCDP(0.05))
    sample = releases(OUTPUT, plan, rows, 250, 7, SOLVER)
    objective = facts.objective(rows, 40.0, zero_weights(facts))
    centre = SOLVER.solve(objective.lent(), zero_weights(facts), solver_tolerance(plan.tolerance)).weights
    left = noise_behind(with_intercept(penalty), LogisticLoss(), signed_rows, 40.0, centre)
    assert np.linalg.norm(left) <= 2.0 * plan.tolerance
    check_law(np.abs((sample - centre) / (2.0 * 2.5 / 40.0 * math.sqrt(10.0))).ravel(), stats.halfnorm.cdf)


@pytest.mark.parametrize("penalty", OWN.values(), ids=lambda penalty: penalty.name)
def test_minimisers_of_neighbours_are_no_further_apart_than_the_sensitivity(penalty):
    """Where both pull all they can, the distance is close to 2LR / l2, so a smaller bound fails."""
    rng, farthest = np.random.default_rng(5), 0.0
    for case in range(12):
        # With a weak ridge weights are long, where the penalties are nearly straight.
        l2 = 0.05 if case % 2 else float(rng.uniform(2.0, 30.0))
        facts = with_penalty(problem(6, 2, loss=HuberHinge(0.5), l2=l2), function=penalty)
        rows, labels = rng.normal(size=(6, 2)) * 2.0, rng.choice([-1, 1], 6)
        if case % 2:
            rows, labels = np.tile([[1.0, 0.0], [-1.0, 0.0]], (3, 1)), np.ones(6)
        found = []
        for sign in (1.0, -1.0):
            changed = rows.copy()
            changed[0] *= sign
            objective = facts.objective(rows_and_labels(changed, labels), l2, zero_weights(facts))
            found.append(SOLVER.solve(objective.lent(), zero_weights(facts), 1e-9).weights[0])
        farthest = max(farthest, float(np.linalg.norm(found[0] - found[1])) * l2 / 2.0)
        assert farthest <= 1.0
    assert farthest > 0.02


def test_only_the_minimiser_is_certified():
    """Weights that are off by three times the radius are refused, and so is the minimiser with the ridge alone."""
    facts, rows, _ = facts_of(OF_LENGTH)
    plan = OUTPUT.plan(facts, ZCDP(0.1))
    objective = facts.objective(rows, plan.l2, zero_weights(facts))
    weights = SOLVER.solve(objective.lent(), zero_weights(facts), solver_tolerance(plan.tolerance)).weights
    rounding = facts.rounding(plan.l2)
    certify(objective, weights, plan.tolerance, rounding)
    plain = problem(8, 2, loss=LogisticLoss(), row_norm=2.0, intercept=1.5, l2=40.0)
    with_ridge = NewtonThenFallback().solve(
        plain.objective(rows, 40.0, zero_weights(facts)).lent(), zero_weights(facts), solver_tolerance(plan.tolerance)
    )
    for wrong in (weights + np.array([[0.0, 0.0, 3.0 * plan.radius]]), with_ridge.weights):
        with pytest.raises(NotCertified):
            certify(objective, wrong, plan.tolerance, rounding)


@pytest.mark.parametrize("raises", [True, False])
def test_a_gradient_that_fails_after_the_charge_is_refused_without_its_words(raises):
    """Its message might show weights without noise."""

    def gradient(w):
        if np.abs(w).max() > 1e-3:
            if raises:
                raise RuntimeError(f"weights {w}")
            return np.full(w.shape, np.nan)
        return OF_LENGTH.gradient(w)

    facts, rows, _ = facts_of(replace(OF_LENGTH, gradient=gradient))
    with pytest.raises(NotCertified) as caught:
        OUTPUT.release(OUTPUT.plan(facts, ZCDP(0.1)), rows, SOLVER, Entropy.seeded(0))
    assert "weights [" not in str(caught.value)
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None


def test_the_rounding_bound_is_that_of_theorem_4():
    """To the last of its constants."""
    facts, _, _ = facts_of(replace(LOG_COSH, rounding=100.0))
    plain = problem(8, 2, loss=LogisticLoss(), row_norm=2.0, intercept=1.5, l2=40.0).rounding(40.0)
    for weights, noise, gradient in ((0.0, 0.0, 1e9), (1e12, 3.0, 2.0), (2.0, 1.0, 0.0)):
        expected = plain.bound(weights, noise, gradient) + 1.01 * 2.0**-53 * 108.0 * 40.0 * 3.0 * weights
        # Without `abs` numbers of 1e-12 would equal all others of their size.
        assert facts.rounding(40.0).bound(weights, noise, gradient) == pytest.approx(expected, rel=1e-9, abs=0.0)
    found = facts.rounding(40.0)
    assert isinstance(found, GradientRounding)
    assert found.minimiser_norm(7.0) == plain.minimiser_norm(7.0)
    longest = 2.0 * found.minimiser_norm(7.0)
    steepest = 8 * 2.5 + 40.0 * 3.0 * longest + 7.0
    assert found.worst(7.0) == pytest.approx(found.bound(longest, 7.0, steepest), rel=1e-9, abs=0.0)


@pytest.mark.parametrize("size", [1e-3, 1.0, 1e3])
def test_the_rounding_bound_covers_gradients(size):
    """Against 60 digits; the part for the penalty is needed where the penalty is steep."""
    mp = pytest.importorskip("mpmath").MPContext()
    mp.dps = 60
    rng, worst = np.random.default_rng(8), 0.0
    penalty = replace(LOG_COSH, rounding=4.0)
    for _ in range(20):
        facts, rows, _ = facts_of(penalty, l2=float(rng.uniform(1.0, 1e4)))
        w = rng.normal(size=(1, 3)) * size
        exact = []
        for j in range(3):
            own = mp.mpf(CONVEXITY) * mp.mpf(float(w[0, j]))
            total = (own + (mp.tanh(mp.mpf(float(w[0, j]))) if j < 2 else 0)) * mp.mpf(facts.l2) / mp.mpf(CONVEXITY)
            exact.append(total)
        objective = facts.objective(rows, facts.l2, zero_weights(facts))
        of_penalty = objective._slopes(w)[0]
        error = float(mp.sqrt(mp.fsum((mp.mpf(float(a)) - b) ** 2 for a, b in zip(of_penalty, exact, strict=True))))
        bound = facts.rounding(facts.l2).bound(float(np.linalg.norm(w)), 0.0, 0.0)
        bound -= replace(facts.rounding(facts.l2), penalty=RIDGE).bound(float(np.linalg.norm(w)), 0.0, 0.0)
        worst = max(worst, error / bound)
    assert 0.005 < worst <= 1.0


def test_plans_are_those_of_the_ridge_but_for_the_certificate():
    """Noise, rate and ridge agree to the bit; a steeper penalty has a larger tolerance; a far too steep one is refused."""
    for budget in (PureDP(1.0), ApproxDP(1.0, 1e-6), ZCDP(0.2)):
        facts, _, _ = facts_of(LOG_COSH)
        plain = problem(8, 2, loss=LogisticLoss(), row_norm=2.0, intercept=1.5, l2=40.0)
        own, ridge = OBJECTIVE.plan(facts, budget), OBJECTIVE.plan(plain, budget)
        assert (own.l2, own.noise) == (ridge.l2, ridge.noise)
        assert own.tolerance > ridge.tolerance
        failure = log_failure(budget, facts)
        assert own.tolerance == planned_tolerance(facts.rounding(own.l2), own.noise.bound(failure))
    steep = replace(LOG_COSH, smoothness=1e15)
    with pytest.raises(InsufficientRegularisation):
        OUTPUT.plan(facts_of(steep)[0], ZCDP(0.1))


def test_there_is_no_prior_and_no_centre_beside_it():
    """The ridge of a prior has its least value elsewhere, and rows that were moved have rounding of their own."""
    plain = replace(problem(8, 2), prior=(1.0, 0.0))
    centred = problem(8, 2, row_bound=Centred(BallBound(1.0), (0.1, 0.2), 0.9), intercept=1.0)
    for facts in (plain, centred):
        with pytest.raises(ParameterError, match="no prior"):
            with_penalty(facts, function=LOG_COSH)


def test_what_no_problem_may_be_is_refused_with_another_penalty_too():
    """A person without rows, and bounds on the number of rows that cross."""
    facts = with_penalty(problem(8, 2), function=LOG_COSH)
    for wrong in ({"rows_per_person": 0}, {"n_rows_low": 30, "n_rows_high": 20}):
        with pytest.raises(ParameterError):
            replace(facts, **wrong)


def test_the_worst_gradient_counts_the_slopes_of_rows_with_their_weights():
    """n L R, with the slope of a row that counts four times."""
    found = replace(facts_of(LOG_COSH)[0], largest_weight=4.0).rounding(40.0)
    longest = 2.0 * found.minimiser_norm(7.0)
    steepest = 8 * 4.0 * 2.5 + 40.0 * found.steepness * longest + 7.0
    assert found.worst(7.0) == pytest.approx(found.bound(longest, 7.0, steepest), rel=1e-9, abs=0.0)
    assert found.worst(7.0) > found.bound(longest, 7.0, steepest - 60.0)
