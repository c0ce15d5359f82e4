"""Noisy moments of three classes and more: the sensitivity by search, rounding, and the law of the noise."""

from __future__ import annotations

import math
import pickle
from itertools import pairwise

import mpmath
import numpy as np
import pytest
import scipy.sparse

from confide.data.arrays import ArrayBlocks, MemorySource
from confide.erm.class_losses import OneVsRest, Softmax
from confide.erm.losses import HuberHinge, LogisticLoss
from confide.erm.moment_sums import MomentSum
from confide.erm.row_bounds import BallBound
from confide.erm.row_sums import RowSum
from confide.errors import ParameterError
from confide.expected_noise import balanced_scale
from confide.privacy.budgets import ApproxDP, PureDP
from confide.privacy.moments import _WINDOW, directions_of, joint_bound, window_of
from confide.privacy.noise import Entropy
from confide.privacy.output_perturbation import OutputPerturbation
from confide.training.auto_mechanism import NonPrivate
from tests.covering import pairs_of
from tests.privacy.class_densities import slope_and_curvature
from tests.privacy.problems import SummedOnce
from tests.privacy.test_moments import ADD, BUDGETS, REPLACE, check_law, computed, plan_of, problem_of, source_of

LOSSES = [Softmax(3), Softmax(4), Softmax(8), OneVsRest(LogisticLoss(), 3), OneVsRest(HuberHinge(0.3), 4)]
all_losses = pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: f"{loss.constants.name} {loss.constants.n_outputs}")
both_relations = pytest.mark.parametrize("neighbours", [REPLACE, ADD], ids=["replace", "add"])


def weights_of_scores(scores_of_first, scores_of_second):
    """(1, 3o): weights under which the rows (2, 0, 0) and (0, 2, 0) have these scores."""
    return np.stack([scores_of_first / 2.0, scores_of_second / 2.0, np.zeros(len(scores_of_first))], axis=1).reshape(1, -1)


def worst_scores(loss, rng, own):
    """Scores at which a row is steep or bent, or both: two classes near each other far above the row's own; all wrong."""
    if loss.constants.name == "softmax":
        scores = np.full(loss.constants.n_outputs, -60.0)
        first, second = rng.permutation(np.delete(np.arange(loss.constants.n_outputs), own))[:2]
        scores[first], scores[second] = 0.0, rng.choice([0.0, -1.0, -60.0]) + 0.01 * rng.normal()
        return scores
    signs = np.where(np.arange(loss.constants.n_outputs) == own, 1.0, -1.0)
    return (
        -signs * rng.choice([0.0, 30.0])
        if "logistic" in loss.constants.name
        else signs * (1.0 - 0.3 * rng.choice([0.9, 0.97, 3.0]))
    )


@all_losses
@both_relations
def test_no_neighbours_are_further_apart_than_the_noise_allows_for(loss, neighbours):
    """Random rows, weights of rows and weights; and a search for the worst scores of two orthogonal rows."""
    problem = problem_of(loss, d=3, neighbours=neighbours, intercept=0.0, n=1)
    plan = plan_of(problem, PureDP(1.0))
    allowed, rng, largest = plan.noise.shape.scales[0], np.random.default_rng(0), 0.0
    for trial in range(400):
        rows, counts, classes = 5.0 * np.eye(3)[:2], np.array([1.7, 1.7]), rng.integers(loss.constants.n_outputs, size=2)
        if trial % 2:
            rows = rng.normal(size=(2, 3)) * 10.0 ** rng.uniform(-1, 1)
            counts = rng.uniform(0.0, 3.0, 2)
            weights = rng.normal(size=(1, 3 * loss.constants.n_outputs)) * 10.0 ** rng.uniform(-2, 1)
        else:
            weights = weights_of_scores(*(worst_scores(loss, rng, own) for own in classes))
        sums = [
            computed(plan, source_of(rows[[i]], classes[[i]], counts[[i]]), weights)
            for i in range(1 + (neighbours is REPLACE))
        ]
        largest = max(largest, float(np.linalg.norm(sums[0] - sums[1] if neighbours is REPLACE else sums[0])))
    # Hinges are at their steepest where they bend the most, but for the window.
    assert (0.9 if "huber" in loss.constants.name else 0.985) * allowed <= largest <= allowed


@pytest.mark.parametrize("n_classes", [3, 5, 10])
def test_the_joint_bound_of_softmax_is_attained(n_classes):
    """G^2 = max(1, u^2 + 9/16), whatever the number of classes: above all probabilities of a search, and one reaches it."""
    rng = np.random.default_rng(n_classes)
    corner = np.linspace(0.0, 1.0, 2001)
    face = np.zeros((2001, n_classes))
    face[:, 1], face[:, 2] = corner, 1.0 - corner
    p = np.vstack([face, *(rng.dirichlet(np.full(n_classes, a), size=40_000) for a in (0.1, 0.5, 2.0))])
    squares, cubes = np.sum(p**2, axis=1), np.sum(p**3, axis=1)
    bend, steep = np.sqrt(np.maximum(squares - 2.0 * cubes + squares**2, 0.0)), 1.0 + squares - 2.0 * p[:, 0]
    assert np.all(bend <= np.minimum(0.5, 1.0 - squares) + 1e-7)
    for scale in (0.3, 0.66, 1.0, 2.0, 5.0):
        exact = math.sqrt(max(1.0, scale**2 + 9.0 / 16.0))
        found = np.sqrt((scale * bend / 0.5) ** 2 + (steep / 2.0) ** 2).max()
        assert found == pytest.approx(exact, rel=1e-6)
        for weight in (1.0, 3.0):
            assert exact <= joint_bound(Softmax(n_classes).constants.weighted(weight), scale) <= 1.01 * exact


def test_the_joint_bound_of_one_vs_rest_is_that_of_one_score_times_the_root_of_their_number():
    """For losses that curve smoothly and suddenly; the scale beside which curvature is nearly free does not change."""
    for margin_loss in (LogisticLoss(), HuberHinge(0.3)):
        for scale in (0.5, 0.955, 2.0):
            one = joint_bound(margin_loss.constants.weighted(3.0), scale)
            assert joint_bound(OneVsRest(margin_loss, 5).constants.weighted(3.0), scale) == pytest.approx(
                math.sqrt(5.0) * one, rel=1e-9
            )
    assert balanced_scale(joint_bound, OneVsRest(LogisticLoss(), 5).constants.weighted(3.0)) == balanced_scale(
        joint_bound, LogisticLoss().constants.weighted(3.0)
    )


@pytest.mark.parametrize("layout", ["dense", "sparse"])
@pytest.mark.parametrize("loss", [Softmax(3), OneVsRest(LogisticLoss(), 3)], ids=lambda loss: loss.constants.name)
@pytest.mark.parametrize("intercept", [0.0, 0.7])
def test_without_privacy_the_moments_are_kronecker_products_summed_over_rows(loss, layout, intercept):
    """Written out row by row; of softmax in its directions; of one-vs-rest the blocks of each class, and 0 between two."""
    rng = np.random.default_rng(0)
    rows, classes, counts = rng.normal(size=(700, 3)), rng.integers(3, size=700), rng.uniform(0.0, 3.0, 700)
    problem = problem_of(loss, d=3, n=700, intercept=intercept)
    plan = plan_of(problem, PureDP(math.inf), NonPrivate())
    assert plan.lattice is None
    assert plan.deviation == 0.0
    design = BallBound(2.0).clip(rows)
    if intercept:
        design = np.hstack([design, np.full((700, 1), intercept)])
    W = rng.normal(size=(3, design.shape[1]))
    curvature, slope = np.zeros((2, W.size, W.size))
    for x, y, count in zip(design, classes, np.minimum(counts, 1.7), strict=True):
        s, C = slope_and_curvature(loss.loss if loss.constants.separable else "softmax", W @ x, y)
        outer = np.diag(s**2) if loss.constants.separable else np.outer(s, s)
        curvature += count * np.kron(C, np.outer(x, x))
        slope += count**2 * np.kron(outer, np.outer(x, x))
    if not loss.constants.separable:
        turn = directions_of(3, design.shape[1])
        np.testing.assert_allclose(turn.T @ turn @ curvature @ turn.T @ turn, curvature, atol=1e-9)
        np.testing.assert_allclose(turn.T @ turn @ slope @ turn.T @ turn, slope, atol=1e-9)
        curvature, slope = (turn @ matrix @ turn.T for matrix in (curvature, slope))
    blocks = ArrayBlocks(rows if layout == "dense" else scipy.sparse.csr_array(rows))
    released = plan.release(MemorySource(blocks, classes, counts), Entropy.seeded(0), W.reshape(1, -1))
    np.testing.assert_allclose(released[0], curvature, rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(released[1], slope, rtol=1e-9, atol=1e-9)
    assert np.array_equal(released[1], released[1].T)


@pytest.mark.parametrize("n_classes", [3, 4, 40])
def test_directions_are_orthonormal_and_move_no_two_classes_alike(n_classes):
    """To the last digits; so that what is released of a softmax loses nothing, and no row's term grows."""
    directions = directions_of(n_classes, 3)
    np.testing.assert_allclose(directions @ directions.T, np.eye(3 * n_classes - 3), atol=1e-15)
    np.testing.assert_allclose(directions @ np.kron(np.ones((n_classes, 1)), np.eye(3)), 0.0, atol=1e-14)


def test_two_problems_have_the_moments_of_each():
    """k problems of several classes in one pass, as everywhere; and the sum is picklable."""
    rng = np.random.default_rng(1)
    rows, classes, W = rng.normal(size=(50, 2)), rng.integers(3, size=50), rng.normal(size=(2, 9))
    moments = pickle.loads(pickle.dumps(MomentSum(RowSum(Softmax(3), BallBound(1.0), 0.5, 1), 2.0**-6)))
    both = source_of(rows, classes).sum_over_rows(moments, W).hessian
    for place in (0, 1):
        alone = source_of(rows, classes).sum_over_rows(moments, W[[place]]).hessian
        np.testing.assert_allclose(both[[place, 2 + place]], alone, rtol=1e-12)


def exact_moments(plan, rows, classes, counts, weights):
    """The scaled moments in 60 digits, as a list."""
    mpmath.mp.dps = 60
    problem, w = plan.problem, mpmath.mpf(window_of(plan.problem.loss_bounds, _WINDOW))
    o, D = problem.loss.constants.n_outputs, problem.row_width
    theta = [[mpmath.mpf(float(v)) for v in part] for part in weights.reshape(o, D)]
    big, separable = mpmath.mpf(problem.largest_weight), problem.loss.constants.separable

    def slope(z):
        if "logistic" in problem.loss.constants.name:
            return -1 / (1 + mpmath.exp(z))
        h = mpmath.mpf(problem.loss.loss.smoothing)
        return -min(max((1 - z + h) / (2 * h), mpmath.mpf(0)), mpmath.mpf(1))

    def turned(matrix):
        # Helmert's contrasts, the first two against each other, then the mean of the first j against the next.
        contrasts = []
        for j in range(1, o):
            length = mpmath.sqrt(mpmath.mpf(j * (j + 1)))
            contrasts.append([1 / length] * j + [-j / length] + [mpmath.mpf(0)] * (o - j - 1))
        half = [[sum(row[a] * matrix[a][b] for a in range(o)) for b in range(o)] for row in contrasts]
        return [[sum(one[b] * other[b] for b in range(o)) for other in contrasts] for one in half]

    total = None
    for row, own, count in zip(rows, classes, counts, strict=True):
        x = [mpmath.mpf(float(v)) for v in row]
        norm = mpmath.sqrt(sum(v * v for v in x))
        # Rows are clipped to a radius a little inside their bound: a fact of the data, and no rounding.
        x = [v * min(1, 2 * (1 - mpmath.mpf(2) ** -40) / norm) for v in x] + [mpmath.mpf(problem.intercept)]
        c = min(mpmath.mpf(float(count)), big)
        z = [sum(a * b for a, b in zip(x, part, strict=True)) for part in theta]
        if separable:
            z = [v if j == own else -v for j, v in enumerate(z)]
            bends = [[[c * (slope(v + w) - slope(v - w)) / (2 * w)]] for v in z]
            steeps = [[[(c * slope(v)) ** 2]] for v in z]
        else:
            top = max(z)
            shares = [mpmath.exp(v - top) for v in z]
            p = [v / sum(shares) for v in shares]
            s = [c * (v - (j == own)) for j, v in enumerate(p)]
            bends = [[[c * ((p[a] if a == b else 0) - p[a] * p[b]) for b in range(o)] for a in range(o)]]
            steeps = [[[s[a] * s[b] for b in range(o)] for a in range(o)]]
        entries = []
        for parts, unit in ((bends, plan.query.unit_of_curvature), (steeps, plan.query.unit_of_slope)):
            for matrix in parts:
                if not separable:
                    matrix = turned(matrix)
                size = len(matrix) * D
                full = [
                    [matrix[i // D][j // D] * x[i % D] * x[j % D] / mpmath.mpf(unit) for j in range(size)]
                    for i in range(size)
                ]
                entries += [full[i][i] for i in range(size)]
                entries += [mpmath.sqrt(2) * full[i][j] for i in range(size) for j in range(i + 1, size)]
        total = entries if total is None else [a + b for a, b in zip(total, entries, strict=True)]
    return total


@pytest.mark.parametrize(
    ("loss", "used"),
    [(Softmax(3), 1e-4), (OneVsRest(LogisticLoss(), 3), 5e-6), (OneVsRest(HuberHinge(0.3), 3), 1e-6)],
    ids=["softmax", "one-vs-rest", "huber_hinge"],
)
def test_computed_moments_are_within_the_rounding_bound(loss, used):
    """Against 60 digits, at weights as long as they may be, near ties and far from them.

    It is a bound for the worst rows: of random ones a small part of it is used, and more than nothing.
    """
    problem = problem_of(loss, 2)
    plan = plan_of(problem, ApproxDP(4.0, 1e-5))
    rng, worst = np.random.default_rng(3), 0.0
    allowed = plan.query.rounding
    for trial in range(12):
        rows, classes, counts = rng.normal(size=(12, 2)), rng.integers(3, size=12), rng.uniform(0.5, 2.0, 12)
        direction = rng.normal(size=9)
        if trial % 3 == 2:
            # Long weights whose scores differ by little.
            direction = np.tile(direction[:3], 3) + 1e-3 * direction
        weights = direction / np.linalg.norm(direction) * plan.query.largest_norm * rng.choice([1.0, 0.01])
        exact = exact_moments(plan, rows, classes, counts, weights)
        given = computed(plan, source_of(rows, classes, counts), weights[None])
        gaps = [float(mpmath.mpf(float(a)) - b) for a, b in zip(given, exact, strict=True)]
        worst = max(worst, float(np.linalg.norm(gaps)))
    assert used * allowed < worst <= allowed


def sensitivity_of(loss, plan, neighbours):
    """Theorem 4, written out: R^2 = 6.25."""
    G = (
        math.sqrt(max(1.0, plan.query.curvature_scale**2 + 9.0 / 16.0))
        if loss.constants.name == "softmax"
        else math.sqrt(3.0)
    )
    return (math.sqrt(2.0) if neighbours is REPLACE else 1.0) * G * 6.25


@pairs_of(name=BUDGETS, neighbours=[REPLACE, ADD], loss=[Softmax(3), OneVsRest(LogisticLoss(), 3)], persons=[1, 2])
def test_released_moments_scatter_by_the_theorems_law(name, neighbours, loss, persons):
    """200 releases; noise 0.7 or 1.4 times as large would be rejected."""
    problem = problem_of(loss, 2, neighbours=neighbours, persons=persons)
    plan = plan_of(problem, BUDGETS[name])
    rng = np.random.default_rng(0)
    source, weights = source_of(rng.normal(size=(12, 2)), rng.integers(3, size=12)), rng.normal(size=(1, 9))
    exact, entropy, source = computed(plan, source, weights), Entropy.seeded(1), SummedOnce(source)
    size = 42 if loss.constants.name == "softmax" else 36
    assert exact.size == size
    bounds = [0, 6] if loss.constants.name == "softmax" else [0, 3, 6, 9]

    def scaled(matrix):
        parts = [matrix[start:stop, start:stop] for start, stop in pairwise(bounds)]
        corners = [np.triu_indices(len(part), 1) for part in parts]
        flat = [[np.diagonal(part), math.sqrt(2.0) * part[upper]] for part, upper in zip(parts, corners, strict=True)]
        return np.concatenate([numbers for pair in flat for numbers in pair])

    noises = []
    for _ in range(200):
        release = plan.release(source, entropy, weights)
        parts = [scaled(release[0]) / plan.query.unit_of_curvature, scaled(release[1]) / plan.query.unit_of_slope]
        noises.append(np.concatenate(parts) - exact)
    noises = np.array(noises)
    check_law(noises, plan, sensitivity_of(loss, plan, neighbours), largest_preference=0.6)
    assert plan.deviation == pytest.approx(np.sqrt(np.mean(noises**2)), rel=0.1)


def test_long_weights_are_shortened_and_other_rows_refused():
    """Beyond the norm that rounding was bounded for; more rows than the plan is for."""
    plan = plan_of(problem_of(Softmax(3), 2), ApproxDP(1.0, 1e-5))
    source, far = source_of(np.ones((12, 2)), np.zeros(12, dtype=int)), np.arange(9.0)[None] * 1e9
    one, two = (plan.release(source, Entropy.seeded(0), far * factor) for factor in (1.0, 1e3))
    assert np.array_equal(one[0], two[0])
    with pytest.raises(ParameterError, match="the plan is for"):
        plan.release(source_of(np.ones((13, 2)), np.zeros(13, dtype=int)), Entropy.seeded(0), far)


@pytest.mark.parametrize("loss", [Softmax(3), OneVsRest(LogisticLoss(), 3)], ids=lambda loss: loss.constants.name)
def test_rounding_is_paid_for(loss):
    """The radius of pure noise and the sensitivity of Gaussian noise hold the rounding bound."""
    problem = problem_of(loss, 2)
    for budget in (PureDP(1.0), ApproxDP(1.0, 1e-5)):
        plan = plan_of(problem, budget, OutputPerturbation())
        rounding = plan.query.rounding
        exact = sensitivity_of(loss, plan, REPLACE)
        if plan.noise is None:
            assert plan.lattice.l2_sensitivity >= exact + 2.0 * rounding
        else:
            assert plan.radius >= rounding
            assert plan.lattice.l2_sensitivity >= 2.0 * (rounding + 2.0**-53 * 12 * problem.row_norm**2)
