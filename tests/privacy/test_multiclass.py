"""Several classes: exact densities, searches for a neighbour that breaks a calibration, laws of releases, rounding."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats
from scipy.optimize import minimize

from confide.data.arrays import ArrayBlocks, MemorySource, summation_depth
from confide.erm.class_losses import OneVsRest, Softmax
from confide.erm.group_bounds import GroupBound
from confide.erm.losses import HuberHinge, LogisticLoss
from confide.erm.objective import Objective
from confide.erm.row_bounds import BallBound
from confide.privacy.budgets import ZCDP, ApproxDP, Neighbours, PureDP
from confide.privacy.certificate import GradientRounding, certify, solver_tolerance
from confide.privacy.gaussian import (
    GaussianMechanism,
    calibrated_objective,
    curvature_cost,
    gradient_shift,
    least_l2,
    objective_noise_rate,
    output_sensitivity,
)
from confide.privacy.objective_account import GaussianObjective, concentrated_rho
from confide.privacy.objective_perturbation import ObjectivePerturbation, _kappa
from confide.privacy.output_perturbation import OutputPerturbation
from confide.solvers.fallback import GradientDescent, NewtonThenFallback, StepLimitedNewton, _reach
from confide.solvers.lbfgs import LimitedMemory
from tests.privacy.class_densities import freest_loss, log_density, noise_behind, slope_and_curvature, sums
from tests.privacy.densities import gaussian_multiplier, gaussian_profile
from tests.privacy.problems import objective_plan, problem, releases

REPLACE, ADD = Neighbours.REPLACE_ONE, Neighbours.ADD_OR_REMOVE_ONE
relations = pytest.mark.parametrize("neighbours", [REPLACE, ADD])
HUBER = HuberHinge(0.5)
LOSSES = {
    "softmax": (Softmax, "softmax"),
    "logistic": (lambda k: OneVsRest(LogisticLoss(), k), LogisticLoss()),
    "huber": (lambda k: OneVsRest(HUBER, k), HUBER),
}
losses = pytest.mark.parametrize("name", LOSSES)


@losses
@relations
def test_no_neighbour_exceeds_epsilon_in_a_random_search(name, neighbours):
    """Exact densities over random pairs, k from 3 to 5, D from 1 to 3, rows of norm 2 at most, both directions."""
    make, loss = LOSSES[name]
    rng, worst = np.random.default_rng(1), 0.0
    for _ in range(700):
        k, d, n = int(rng.integers(3, 6)), int(rng.integers(1, 4)), int(rng.integers(1, 5))
        epsilon, norm = float(np.exp(rng.uniform(-1, 1.5))), 2.0
        rate, l2 = calibrated_objective(
            epsilon, make(k).constants, norm, float(np.exp(rng.uniform(-2, 4))) * norm**2, neighbours
        )
        rows = rng.normal(size=(n + 1, d))
        rows *= norm / np.linalg.norm(rows, axis=1)[:, None] * rng.choice([1.0, 0.7], size=(n + 1, 1))
        if rng.random() < 0.5:
            rows[n] = -rows[n - 1]
        classes = rng.integers(k, size=n + 1)
        W = rng.normal(size=(k, d)) * np.exp(rng.uniform(-1, 3)) / norm
        second = np.arange(n - 1) if neighbours is ADD else np.delete(np.arange(n + 1), n - 1)
        pair = [log_density(loss, rows[s], classes[s], l2, rate / norm, W) for s in (np.arange(n), second)]
        worst = max(worst, abs(pair[0] - pair[1]) / epsilon)
    assert 0.35 < worst <= 1.0


def attacked(name, k, norm, l2, rate, neighbours, starts=12, seed=0):
    """The largest privacy loss found by an optimiser over the scores of the row that bends and of the one that replaces it.

    The two rows are opposite; common rows and noise add up to a long vector along the shift, where its norm is linear.
    """
    _, loss = LOSSES[name]
    rng, x = np.random.default_rng(seed), norm * np.array([0.6, 0.8])

    def privacy_loss(v):
        coming, going = (slope_and_curvature(loss, part, 0) for part in (v[:k], v[k:]))
        shift = np.outer(coming[0], x) + (0.0 if neighbours is ADD else np.outer(going[0], x))
        rest = -1e6 * shift / max(np.linalg.norm(shift), 1e-300)
        return freest_loss((*coming, x), None if neighbours is ADD else (*going, -x), rest, l2, rate / norm)

    best = 0.0
    for _ in range(starts):
        # The label is class 0. Steep slopes: another class takes all (softmax), every margin is far below 0 (one-vs-rest).
        steep = 30.0 * (np.arange(k) == 1) if name == "softmax" else 30.0 * np.where(np.arange(k) == 0, -1.0, 1.0)
        v = np.concatenate([steep * rng.uniform(-0.1, 0.5) + rng.normal(size=k), steep])
        if name == "huber":
            v[:k] = -steep / 30.0 * rng.uniform(0.501, 1.0)  # inside the joint, where slope and curvature meet
        options = {"maxfev": 3000, "maxiter": 3000, "xatol": 1e-6, "fatol": 1e-10}
        best = max(best, -minimize(lambda v: -privacy_loss(v), v, method="Nelder-Mead", options=options).fun)
    return best


# Each loss at both ridges and under both relations, and softmax in all four ways.
@pytest.mark.parametrize(
    ("name", "k", "neighbours", "ridge"),
    [
        ("softmax", 3, REPLACE, "free"),
        ("softmax", 3, ADD, "costly"),
        ("softmax", 4, REPLACE, "costly"),
        ("softmax", 4, ADD, "free"),
        ("logistic", 3, REPLACE, "costly"),
        ("logistic", 3, ADD, "free"),
        ("huber", 3, REPLACE, "free"),
        ("huber", 3, ADD, "costly"),
    ],
)
def test_the_best_attack_reaches_epsilon_and_not_more(name, k, neighbours, ridge):
    """With common rows that may add any gradient: in [0.99, 1] of epsilon (softmax 0.9 where curvature costs), and no more.

    Two ridges: one at which the curvature costs nothing to tapered losses, and one where it costs a good part. At 1.3 times
    the rate the attack exceeds epsilon.
    """
    make, _ = LOSSES[name]
    loss, epsilon, norm = make(k), 1.0, 1.5
    free = loss.constants.tail * gradient_shift(loss.constants.lipschitz, neighbours) * norm**2 / epsilon
    l2 = (1.001 if ridge == "free" else 0.4) * free
    if not loss.constants.tapered:
        l2 = (5.0 if ridge == "free" else 1.01) * least_l2(epsilon, loss.constants, norm)
    rate, total = calibrated_objective(epsilon, loss.constants, norm, l2, neighbours)
    assert total == l2
    if ridge == "free" and loss.constants.tapered:
        assert rate * gradient_shift(loss.constants.lipschitz, neighbours) == pytest.approx(epsilon, rel=1e-9)
    reached = attacked(name, k, norm, l2, rate, neighbours)
    least = 0.9 if name == "softmax" and ridge == "costly" else 0.99
    assert least * epsilon <= reached <= epsilon * (1 + 1e-9)
    assert attacked(name, k, norm, l2, 1.3 * rate, neighbours, starts=3) > epsilon


def worst_loss(loss, slopes, rate, norm, l2, neighbours):
    """The largest privacy loss of a hand-made worst case at slope norms of the row that bends: the maximum of theorem 2."""
    already, rank = loss.constants.lipschitz if neighbours is REPLACE else 0.0, loss.constants.rank
    traces = loss.constants.curvature_at_slope(slopes)
    return float((rate * (already + slopes) + rank * np.log1p(traces / rank * norm**2 / l2)).max())


@losses
@relations
def test_the_rate_is_the_largest_that_the_theorem_allows(name, neighbours):
    """E(beta) on a grid of slopes lies in [0.998, 1] of epsilon, for ridges from small (slack branch) to large."""
    make, _ = LOSSES[name]
    for k in (3, 10):
        loss, norm = make(k), 2.0
        slopes = np.linspace(0.0, loss.constants.lipschitz, 4001)
        for epsilon in (0.1, 1.0, 4.0):
            for l2 in (1e-3, 1.0, 30.0, 1e4):
                rate, total = calibrated_objective(epsilon, loss.constants, norm, l2, neighbours)
                spent = worst_loss(loss, slopes, rate, norm, total, neighbours)
                assert 0.998 * epsilon <= spent <= epsilon
                assert rate * gradient_shift(loss.constants.lipschitz, neighbours) >= 0.5 * epsilon * (1 - 1e-6)


def test_the_published_conditions_and_costs_hold():
    """Softmax: free from epsilon l2 = 8 R^2 on (4 R^2 for add or remove), else at most (k-1) log(1 + R^2/(k l2))."""
    for k in (3, 6, 10):
        loss, norm = Softmax(k), 1.7
        for neighbours, factor in ((REPLACE, 8.0), (ADD, 4.0)):
            edge, free = factor * norm**2, 1.0 / gradient_shift(math.sqrt(2.0), neighbours)
            assert objective_noise_rate(1.0, loss.constants, norm, 1.0001 * edge, neighbours) == pytest.approx(
                free, rel=1e-9
            )
            assert objective_noise_rate(1.0, loss.constants, norm, 0.6 * edge, neighbours) < 0.999 * free
        cost = (k - 1) * math.log1p(norm**2 / (k * 5.0))
        assert curvature_cost(loss.constants, norm, 5.0) == pytest.approx(cost, rel=1e-9)
        assert curvature_cost(loss.constants, norm, least_l2(1.0, loss.constants, norm)) == pytest.approx(0.5, rel=1e-6)
        # The bound on the curvature is attained: equal probabilities.
        C = slope_and_curvature("softmax", np.zeros(k), 0)[1]
        assert np.linalg.slogdet(np.eye(k) + C * norm**2 / 5.0)[1] == pytest.approx(cost, rel=1e-12)


def test_the_price_does_not_grow_with_the_number_of_classes():
    """The same budget is charged for 3, 10 and 50 classes; only noise and ridge differ."""
    for loss_of in (Softmax, lambda k: OneVsRest(HUBER, k)):
        for mechanism in (ObjectivePerturbation(), OutputPerturbation()):
            for budget in (PureDP(0.5), ApproxDP(0.5, 1e-6), ZCDP(0.02)):
                plans = [mechanism.plan(problem(5000, 4, loss=loss_of(k), l2=500.0), budget) for k in (3, 10, 50)]
                assert {plan.event.budget for plan in plans} == {budget}
                norms = [plan.noise_norm for plan in plans]
                assert norms == sorted(norms)


def exact_minimiser(loss, rows, classes, k, l2, start=None):
    """argmin over W (k, D) by Newton's steps with halving; small problems."""
    W = np.zeros((k, rows.shape[1])) if start is None else start
    for _ in range(200):
        gradient, hessian = sums(loss, rows, classes, W)
        gradient = gradient + l2 * W
        step = -np.linalg.solve(hessian + l2 * np.eye(W.size), gradient.ravel()).reshape(W.shape)
        size = 1.0
        while size > 1e-6:
            trial = W + size * step
            if np.linalg.norm(sums(loss, rows, classes, trial)[0] + l2 * trial) <= np.linalg.norm(gradient):
                break
            size /= 2
        W = W + size * step
        if np.linalg.norm(gradient) < 1e-11:
            break
    return W


@pytest.mark.parametrize(("name", "reached"), [("softmax", 0.4), ("huber", 0.95)])
@relations
def test_no_neighbour_moves_the_minimiser_further_than_the_sensitivity(name, reached, neighbours):
    """2 sqrt(2) R / l2 and 2 sqrt(k) R / l2 (half for add or remove): never exceeded, and reached as far as stated."""
    make, loss = LOSSES[name]
    rng, worst = np.random.default_rng(2), 0.0
    for case in range(60):
        k, d, norm = 3, int(rng.integers(1, 3)), 2.0
        l2 = float(np.exp(rng.uniform(1, 5)))
        rows = rng.normal(size=(int(rng.integers(1, 4)), d))
        rows *= norm / np.linalg.norm(rows, axis=1)[:, None] * rng.choice([1.0, 0.1], size=(len(rows), 1))
        classes = rng.integers(k, size=len(rows))
        first = exact_minimiser(loss, rows, classes, k, l2)
        other = rows.copy(), classes.copy()
        if neighbours is REPLACE:
            other[0][0] = -rows[0] if case % 2 else rng.permutation(rows[0])
            other[1][0] = (classes[0] + case // 2) % k
        else:
            other = rows[1:], classes[1:]
        second = exact_minimiser(loss, *other, k, l2)
        bound = output_sensitivity(make(k).constants.lipschitz, norm, l2, neighbours)
        worst = max(worst, np.linalg.norm(first - second) / bound)
    assert reached < worst <= 1.0


def quadrature(k, deviation, l2, row, sides, points=281):
    """Densities of W for one column on a grid of the sum-zero plane of k = 3 scores; its mean is the same for neighbours."""
    axis = np.linspace(-1, 1, points) * (9.0 * deviation + 2.0 * row) / l2
    plane = np.array([[1.0, -1.0, 0.0], [1.0, 1.0, -2.0]]) / np.sqrt([[2.0], [6.0]])
    W = np.stack(np.meshgrid(axis, axis, indexing="ij"), axis=-1).reshape(-1, 2) @ plane
    laws = []
    for rows in sides:
        noise, hessian = l2 * W, l2 * np.broadcast_to(np.eye(2), (len(W), 2, 2))
        for x, y in rows:
            scores = W * x
            p = np.exp(scores - scores.max(axis=1, keepdims=True))
            p /= p.sum(axis=1, keepdims=True)
            noise = noise + (p - np.eye(k)[y]) * x
            C = np.einsum("ni,ij->nij", p, np.eye(k)) - p[:, :, None] * p[:, None, :]
            hessian = hessian + x**2 * plane @ C @ plane.T
        logs = stats.norm.logpdf(noise @ plane.T, scale=deviation).sum(axis=1) + np.linalg.slogdet(hessian)[1]
        laws.append(logs)
    return laws, (axis[1] - axis[0]) ** 2


@relations
def test_no_pair_of_data_sets_exceeds_the_gaussian_curve_of_softmax(neighbours):
    """Three classes, one column, quadrature: delta and Rényi divergence below the bound, and within reach of it.

    The cost of the curvature is the lesser of c_J and the one that vanishes for large ridges, without any seal.
    """
    rng, loss, ratios, orders = np.random.default_rng(3), Softmax(3), [], []
    for case in range(24):
        row, l2, deviation = np.exp(rng.uniform([-0.3, -1.0, -0.5], [0.3, 4.0, 1.5]))
        x = row * (-1.0 if case % 4 > 1 else 1.0)
        common = [(row * rng.uniform(-1, 1), int(rng.integers(3)))] * int(rng.integers(0, 3))
        going = common if neighbours is ADD else [*common, (x, int(rng.integers(3)))]
        laws, cell = quadrature(3, deviation, l2, row * (2 + len(common)), ([*common, (row, 0)], going))
        if any(abs((np.exp(law) * cell).sum() - 1.0) > 1e-3 for law in laws):
            continue
        mu = math.sqrt(2.0) * row / deviation
        tapered = (2 / 3) * row**2 * max(0.0, 1.0 / l2 - 0.5 / deviation**2)
        cost = min(curvature_cost(loss.constants, row, l2), tapered * (1 + 1e-9))
        bend = math.sqrt(2.0) * row**2 / l2
        curve = GaussianObjective(mu, cost, math.inf, 0.0, neighbours, True, 3, separable=False, bend=bend)
        for first, second in (laws, laws[::-1]):
            for epsilon in (cost + 1e-6, cost + 0.3 * mu, cost + mu, cost + 2 * mu):
                exact = np.maximum(0.0, np.exp(first) - np.exp(epsilon + second)).sum() * cell
                if exact > 1e-4:
                    ratios.append(exact / curve.delta(epsilon))
            for order in (1.2, 2.0, 5.0):
                moment = np.exp(order * first + (1 - order) * second).sum() * cell
                orders.append(math.log(moment) / (order - 1) / curve.renyi(order))
    assert len(ratios) > 60
    assert (0.45 if neighbours is ADD else 0.2) < max(ratios) <= 1.001
    assert 0.1 < max(orders) <= 1.001


def test_the_corners_are_those_of_simplices_and_cubes():
    """Lengths and numbers of the corners, by listing all of them for rows that are as opposite as can be."""
    for k in (3, 4):
        simplex = [np.eye(k)[c] - np.eye(k)[0] for c in range(k)]
        other = [np.eye(k)[c] - np.eye(k)[1] for c in range(k)]
        for second in (simplex, other):
            found = sorted(
                float(np.linalg.norm(np.outer(a, [1, 0]) - s * np.outer(b, [1, 0]))) / math.sqrt(2)
                for a in simplex for b in second for s in (-1.0,)
            )  # fmt: skip
            curve = GaussianObjective(1.0, 0.0, math.inf, 0.0, REPLACE, True, k, separable=False)
            bounds = sorted([shift for shift, count in curve.corners() for _ in range(int(count))] + [0.0])
            assert len(found) == len(bounds) == k * k
            assert all(a <= b * (1 + 1e-12) for a, b in zip(found, bounds, strict=True))
        cube = [np.array([(i >> j) & 1 for j in range(k)], dtype=float) for i in range(2**k)]
        for rows, relation in ((1, ADD), (2, REPLACE)):
            curve = GaussianObjective(1.0, 0.0, math.inf, 0.0, relation, True, k, separable=True)
            bounds = sorted([shift for shift, count in curve.corners() for _ in range(int(count))] + [0.0])
            pairs = [(a, b) for a in cube for b in (cube if rows == 2 else [np.zeros(k)])]
            found = sorted((np.linalg.norm(a) + np.linalg.norm(b)) / math.sqrt(k) for a, b in pairs)
            assert len(found) == len(bounds)
            assert all(a <= b * (1 + 1e-12) for a, b in zip(found, bounds, strict=True))
            assert bounds[-1] == pytest.approx(rows, rel=1e-9)


@relations
@pytest.mark.parametrize(
    "loss", [Softmax(4), OneVsRest(LogisticLoss(), 4), OneVsRest(HUBER, 3)], ids=lambda loss: loss.constants.name
)
def test_gaussian_plans_spend_delta_and_no_more_by_the_corners(loss, neighbours):
    """The plan's noise is the least, within 2%, at which the sum over corners of theorem 3 stays below delta."""
    epsilon, delta, k = 1.0, 1e-6, loss.constants.n_outputs
    facts = problem(4000, 3, loss=loss, l2=4000.0, neighbours=neighbours, high=4000)
    plan = objective_plan(facts, ApproxDP(epsilon, delta), "gaussian", "ball")
    assert plan.noise.shape.dimension == 3 * k
    n, replaced = loss.constants.n_outputs, neighbours is REPLACE
    if loss.constants.separable:
        rows = 2 if replaced else 1
        corners = [(math.sqrt(rows * s / n), math.comb(rows * n, s)) for s in range(1, rows * n + 1)]
    elif replaced:
        corners = [(2.0, n - 1), (math.sqrt(3.0), (n - 1) * (n - 2)), (1.0, 2 * (n - 1))]
    else:
        corners = [(1.0, n - 1)]
    # A whitened shift of 1 is L over the scale; the ridge is so large that the curvature costs next to nothing.
    cost = 0.0 if loss.constants.tapered else curvature_cost(loss.constants, 1.0, 4000.0)

    def spent(scale):
        return sum(
            count * gaussian_profile(epsilon - cost, shift * loss.constants.lipschitz / scale) for shift, count in corners
        )

    assert 0.7 * delta < spent(plan.noise.scale) <= delta
    assert spent(0.97 * plan.noise.scale) > delta
    # Without the corners' numbers and the curvature, the noise of the Gaussian mechanism at the same shift is less.
    assert plan.noise.scale > gradient_shift(loss.constants.lipschitz, neighbours) / 0.2378


def test_the_cost_of_curvature_for_several_scores_is_rounded_upwards():
    """Theorem 4: trace times kappa for a row that counts 1, with the margin of computed numbers."""
    loss = Softmax(4)
    facts = problem(4000, 3, loss=loss, l2=40.0, neighbours=REPLACE, high=4000)
    plan = objective_plan(facts, ApproxDP(1.0, 1e-6), "gaussian", "ball")
    bounds, curve = facts.loss_bounds, plan.event.curve
    kappa = _kappa(plan.noise.shape, facts.largest_weight, bounds.lipschitz / curve.mu, plan.l2)
    assert curve.curvature < curvature_cost(bounds, plan.noise.shape.l2_norm, plan.l2)
    exact = bounds.trace / facts.largest_weight * kappa
    assert curve.curvature / exact - 1.0 == pytest.approx(2.0**-40, rel=0.01, abs=0.0)


def test_a_concentrated_plan_costs_its_rho():
    """rho times the order is never below the curve of the corners, which is never below that of the largest corner alone."""
    curve = GaussianObjective(0.2, 0.01, math.inf, 0.0, REPLACE, True, 5, separable=False)
    rho = concentrated_rho(curve)
    for order in (1.001, 1.5, 3.0, 30.0, 1e4):
        assert rho * order >= curve.renyi(order) >= GaussianMechanism(0.4).renyi(order)
    plan = ObjectivePerturbation().plan(problem(5000, 3, loss=Softmax(5), l2=3000.0), ZCDP(0.5))
    assert plan.budget == ZCDP(0.5)


def steep_source(k, n=40, seed=4):
    """Rows with classes that are told by a column."""
    rng = np.random.default_rng(seed)
    classes = rng.integers(k, size=n)
    rows = np.column_stack([classes - 1.0, rng.normal(size=n)]) * 0.5
    return MemorySource(ArrayBlocks(rows), classes), rows, classes


LAWS = [("softmax", "laplace", PureDP(2.0)), ("softmax", "gaussian", ApproxDP(2.0, 1e-5)), ("huber", "laplace", PureDP(2.0)),
        ("logistic", "gaussian", ApproxDP(2.0, 1e-5))]  # fmt: skip


@pytest.mark.parametrize(("name", "law", "budget"), LAWS, ids=[f"{name} {law}" for name, law, _ in LAWS])
def test_releases_show_noise_of_the_promised_law_and_not_of_less(name, law, budget):
    """b(W) of 300 releases: its norm is Gamma(kD) or chi of kD in the promised scale; at 0.7 of it the test rejects.

    And its direction is uniform: each coordinate over the norm has the law of a coordinate on the sphere.
    """
    make, loss = LOSSES[name]
    k, (rows_of_case, rows, classes) = 3, steep_source(3)
    facts = problem(40, 2, loss=make(k), l2=25.0)
    clipped = BallBound(1.0).clip(rows)
    plan = objective_plan(facts, budget, law, "ball")
    released = releases(ObjectivePerturbation(), plan, rows_of_case, 300, entropy=5)
    noise = np.array([noise_behind(loss, clipped, classes, plan.l2, W.reshape(k, 2)).ravel() for W in released])
    lengths, size = np.linalg.norm(noise, axis=1), 2 * k
    if law == "laplace":
        # epsilon over the shift is the rate; the seal takes a thousandth, the curvature what E(beta) says.
        promised = stats.gamma(size, scale=1.0 / calibrated_objective(2.0, make(k).constants, 1.0, 25.0, REPLACE)[0])
    else:
        promised = stats.chi(size, scale=plan.noise.scale)
        assert plan.noise.scale >= 2.0 * make(k).constants.lipschitz * 1.4
    assert stats.kstest(lengths, promised.cdf).pvalue > 1e-3
    assert stats.kstest(0.7 * lengths, promised.cdf).pvalue < 1e-6
    angles = noise / lengths[:, None]
    sphere = stats.beta(0.5 * (size - 1), 0.5 * (size - 1), loc=-1.0, scale=2.0)
    assert min(stats.kstest(angles[:, j], sphere.cdf).pvalue for j in range(size)) > 1e-3


@pytest.mark.parametrize("budget", [PureDP(1.0), ApproxDP(1.0, 0.01), ZCDP(0.1)], ids=lambda budget: budget.kind)
def test_output_perturbation_shows_noise_of_the_promised_size_and_not_of_less(budget):
    """W minus the exact minimiser over 300 releases, softmax of 3 classes: root mean square as the sensitivity asks."""
    k, (rows_of_case, rows, classes) = 3, steep_source(3)
    facts = problem(40, 2, loss=Softmax(k), l2=5.0)
    plan = OutputPerturbation().plan(facts, budget)
    centre = exact_minimiser("softmax", BallBound(1.0).clip(rows), classes, k, 5.0).ravel()
    noise = releases(OutputPerturbation(), plan, rows_of_case, 300, entropy=6) - centre
    sensitivity, size = 2.0 * math.sqrt(2.0) / 5.0, 2 * k
    if budget.kind == "pure":
        promised = stats.gamma(size, scale=sensitivity)
    else:
        deviation = {"approximate": gaussian_multiplier(1.0, 0.01), "zcdp": 1 / math.sqrt(0.2)}[budget.kind] * sensitivity
        promised = stats.chi(size, scale=deviation)
    lengths = np.linalg.norm(noise, axis=1)
    # The seal of spherical noise takes a hundredth of epsilon.
    assert stats.kstest(lengths / (1.01 if budget.kind == "pure" else 1.0), promised.cdf).pvalue > 1e-3
    assert stats.kstest(0.7 * lengths, promised.cdf).pvalue < 1e-6


def test_a_row_of_a_schema_gets_a_ball_around_all_weights():
    """No shape by columns for several scores; its radius is the L2 norm of a row."""
    bound = GroupBound((3, 2, 1), (0.8, 1.3, 0.6))
    facts = problem(row_bound=bound, d=6, intercept=0.5, loss=Softmax(4))
    (shape,) = facts.shapes
    assert (shape.name, shape.dimension) == ("ball", 28)
    assert shape.l2_norm == pytest.approx(math.hypot(0.8, 1.3, 0.6, 0.5), rel=1e-12)


def exact_gradient(mp, loss, norm, rows, classes, l2, linear, W, counts):
    """Gradient over the rows clipped in real arithmetic at the library's radius, in 60 digits: (k, d)."""
    radius = mp.mpf(norm * (1.0 - max(2.0**-40, (rows.shape[1] + 8) * 2.0**-52)))
    total = [[mp.mpf(float(l2)) * mp.mpf(float(w)) + mp.mpf(float(b)) for w, b in zip(*pair, strict=True)]
             for pair in zip(W, linear, strict=True)]  # fmt: skip
    for row, label, count in zip(rows, classes, counts, strict=True):
        x = [mp.mpf(float(v)) for v in row]
        length = mp.sqrt(mp.fsum(v * v for v in x))
        x = [v * min(mp.mpf(1), radius / length) for v in x]
        scores = [mp.fsum(v * mp.mpf(float(w)) for v, w in zip(x, weights, strict=True)) for weights in W]
        if loss == "softmax":
            shares = [mp.exp(s - max(scores)) for s in scores]
            slopes = [s / mp.fsum(shares) - (j == label) for j, s in enumerate(shares)]
        else:
            signs = [1 if j == label else -1 for j in range(len(W))]
            slopes = [-sign / (1 + mp.exp(sign * s)) for sign, s in zip(signs, scores, strict=True)]
        total = [[t + mp.mpf(float(count)) * slope * v for t, v in zip(part, x, strict=True)]
                 for part, slope in zip(total, slopes, strict=True)]  # fmt: skip
    return total


@pytest.mark.parametrize("name", ["softmax", "logistic"])
def test_the_rounding_bound_covers_adversarial_rows(name):
    """Cancelling scores and rows, near ties, a large common score, scales e^-6 to e^6, weights: error over bound below 1."""
    mpmath = pytest.importorskip("mpmath")
    make, loss = LOSSES[name]
    rng, worst = np.random.default_rng(7), 0.0
    for case in range(40):
        k, n, d = int(rng.integers(3, 7)), int(rng.integers(1, 25)), int(rng.integers(1, 5))
        norm = float(np.exp(rng.uniform(-2, 2)))
        rows = rng.normal(size=(n, d)) * np.exp(rng.uniform(-6, 6, size=(n, 1)))
        W = rng.normal(size=(k, d)) * np.exp(rng.uniform(-2, 6))
        if case % 3 == 0:
            W = W * 1e-6 + W[0] * 1e3  # nearly equal scores, all of them large
        if case % 3 == 1:
            rows[1::2] = -rows[0::2][: len(rows[1::2])]
        classes, largest = rng.integers(k, size=n), float(np.exp(rng.uniform(-2, 2)))
        counts = largest * rng.choice([1.0, rng.random()], size=n)
        l2, linear = float(np.exp(rng.uniform(-4, 4))), rng.normal(size=(k, d)) * 5
        source = MemorySource(ArrayBlocks(rows), classes, counts)
        objective = Objective(source, make(k), BallBound(norm), 0.0, l2, linear.reshape(1, -1), largest)
        computed = objective.evaluate(W.reshape(1, -1), order=1).gradient[0]
        rounding = GradientRounding(make(k).constants.weighted(largest), norm, n, d, summation_depth(n, d), l2)
        bound = rounding.bound(np.linalg.norm(W), np.linalg.norm(linear), float(np.linalg.norm(computed)))
        with mpmath.workdps(60):
            parts = exact_gradient(mpmath.mp, loss, norm, rows, classes, l2, linear, W, counts)
            exact = [entry for part in parts for entry in part]
            error = mpmath.sqrt(mpmath.fsum((mpmath.mpf(float(c)) - e) ** 2 for c, e in zip(computed, exact, strict=True)))
        worst = max(worst, float(error) / bound)
    assert 1e-3 < worst <= 1.0


def objective_of(loss, n=60, l2=3.0, seed=9):
    """A small objective of two columns with an intercept, some noise, and the facts of its certificate."""
    rng = np.random.default_rng(seed)
    facts = problem(n, 2, loss=loss, intercept=1.0, l2=l2)
    source = MemorySource(ArrayBlocks(rng.normal(size=(n, 2))), rng.integers(loss.constants.n_outputs, size=n))
    return facts, facts.objective(source, l2, rng.normal(size=(1, 3 * loss.constants.n_outputs)) * 4.0)


@pytest.mark.parametrize(
    "loss", [Softmax(3), OneVsRest(LogisticLoss(), 3), OneVsRest(HUBER, 3)], ids=lambda loss: loss.constants.name
)
def test_every_method_reaches_the_tolerance_and_is_certified(loss):
    """Newton, L-BFGS, gradient descent and, where it applies, the step-limited Newton method, from 0 and from far away."""
    facts, objective = objective_of(loss)
    tolerance = 8.0 * facts.rounding(3.0).worst(100.0)
    methods = [NewtonThenFallback(), LimitedMemory(), GradientDescent()]
    assert loss.constants.self_concordant == StepLimitedNewton().applies(objective, solver_tolerance(tolerance), 100.0)
    methods += [StepLimitedNewton()] * loss.constants.self_concordant
    found = []
    for method in methods:
        for start in (np.zeros((1, 9)), np.random.default_rng(1).normal(size=(1, 9)) * 30.0):
            solution = method.solve(objective, start, solver_tolerance(tolerance))
            certify(objective, solution.weights, tolerance, facts.rounding(3.0))
            found.append(solution.weights)
    assert np.ptp(np.array(found), axis=0).max() <= 2.0 * tolerance / 3.0


def test_steps_are_limited_by_how_far_apart_they_move_the_scores_of_a_row():
    """The worst step of length 1 moves two scores of the longest row apart by sqrt(2) row norms; single scores by one.

    The method's reach is at least that, so that a step of it, 1 over the reach long, moves them by at most 1.
    """
    for loss, range_of_scores in ((Softmax(3), math.sqrt(2.0)), (OneVsRest(LogisticLoss(), 3), 1.0)):
        _, objective = objective_of(loss)
        x = objective.row_norm * np.array([0.6, 0.0, 0.8])
        step = np.outer(np.array([1.0, -1.0, 0.0]) / math.sqrt(2.0) if not loss.constants.separable else np.eye(3)[0], x)
        scores = step @ x / np.linalg.norm(step)
        moved = np.abs(scores).max() if loss.constants.separable else np.ptp(scores)
        assert moved == pytest.approx(range_of_scores * objective.row_norm)
        assert moved <= _reach(objective) * (1 + 1e-12) <= 1.1 * moved


@pytest.mark.parametrize("largest", [1.0, 3.0])
@pytest.mark.parametrize(
    "loss", [Softmax(3), Softmax(6), OneVsRest(LogisticLoss(), 3)], ids=lambda loss: loss.constants.name
)
def test_plans_charge_what_the_curvature_of_a_tapered_loss_costs(loss, largest):
    """T W max(0, 1 / l2 - W / (2 t^2)) R^2 or c_J, the lesser: at small, middling and large ridges."""
    costs = []
    for l2 in (20.0, 150.0, 260.0, 2000.0):
        facts = problem(4000, 3, loss=loss, row_norm=1.5, l2=l2 * largest, largest_weight=largest)
        plan = objective_plan(facts, ApproxDP(1.0, 1e-6), "gaussian", "ball")
        deviation = 1.5 * plan.noise.scale
        tapered = loss.constants.trace * largest * 1.5**2 * max(0.0, 1.0 / plan.l2 - largest / (2.0 * deviation**2))
        both = (
            tapered,
            loss.constants.rank * math.log1p(loss.constants.trace * largest / loss.constants.rank * 1.5**2 / plan.l2),
        )
        assert plan.event.curve.curvature == pytest.approx(min(both), rel=1e-6, abs=1e-12)
        costs.append(both)
    assert any(0.0 < tapered < general for tapered, general in costs)
    assert costs[-1][0] == 0.0


def test_the_shift_of_noise_in_one_number_is_two_lipschitz_constants():
    """epsilon 1, delta 1e-6: the multiplier 4.22 of the Gaussian mechanism, on 2 sqrt(2), is less than any plan's noise."""
    plan = objective_plan(problem(10**5, 5, loss=Softmax(3), l2=1e5), ApproxDP(1.0, 1e-6), "gaussian", "ball")
    assert 4.224679 * 2.0 * math.sqrt(2.0) < plan.noise.scale < 1.15 * 4.224679 * 2.0 * math.sqrt(2.0)
