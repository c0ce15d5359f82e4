"""Losses of several classes: derivatives, and every constant that the proofs use, by search."""

from __future__ import annotations

import math
from fractions import Fraction
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse
from scipy.special import logsumexp, softmax

from confide.data.arrays import ArrayBlocks, MemorySource
from confide.erm.class_losses import OneVsRest, Softmax
from confide.erm.losses import HuberHinge, LogisticLoss, LossConstants, SmoothHinge
from confide.erm.objective import Objective
from confide.erm.row_bounds import BallBound

LOSSES = [
    *(Softmax(k) for k in (3, 4, 10)),
    OneVsRest(LogisticLoss(), 3),
    OneVsRest(HuberHinge(0.5), 4),
    OneVsRest(SmoothHinge(0.3), 3),
]
NAMES = [f"{loss.constants.name} {loss.constants.n_outputs}" for loss in LOSSES]
all_losses = pytest.mark.parametrize("loss", LOSSES, ids=NAMES)


def reference(loss, z, y):
    """The loss of one row, written again."""
    if isinstance(loss, Softmax):
        return logsumexp(z) - z[y]
    signs = np.where(np.arange(len(z)) == y, 1.0, -1.0)
    return sum(float(loss.loss.value(np.array([m]))[0]) for m in signs * z)


def matrices(loss, curvature):
    """Curvatures of a block for one problem, as matrices (m, k, k)."""
    k = loss.constants.n_outputs
    return np.einsum("mi,ij->mij", curvature, np.eye(k)) if loss.constants.separable else curvature.reshape(-1, k, k)


def samples(loss, n, seed):
    """Scores (n, k) of all sizes, near ties and corners among them, and classes."""
    rng = np.random.default_rng(seed)
    scores = rng.normal(size=(n, loss.constants.n_outputs)) * np.exp(rng.uniform(-2, 4, size=(n, 1)))
    # Two classes tie far above the others, and one class far above all.
    scores[: n // 4] -= 40.0 * (np.arange(loss.constants.n_outputs) > 1)
    scores[n // 4 : n // 3] *= 0.0
    return scores, rng.integers(loss.constants.n_outputs, size=n)


@all_losses
def test_value_slope_and_curvature_are_those_of_the_formula(loss):
    """Values by the formula; slopes and curvatures by central differences of values and slopes; two problems at once."""
    rng = np.random.default_rng(1)
    k = loss.constants.n_outputs
    scores, classes = rng.normal(size=(40, 2 * k)) * 1.5, rng.integers(k, size=40)
    terms, values, h = loss.of_scores(scores, classes, 2), loss.of_scores(scores, classes, 0).value, 1e-5
    for problem in range(2):
        part = slice(problem * k, (problem + 1) * k)
        own = scores[:, part]
        expected = [reference(loss, z, y) for z, y in zip(own, classes, strict=True)]
        np.testing.assert_allclose(values[:, problem], expected, rtol=1e-12, atol=1e-14)
        curvatures = terms.curvature[:, part] if loss.constants.separable else terms.curvature.reshape(40, 2, -1)[:, problem]
        found = matrices(loss, curvatures)
        for j in range(k):
            up, down = own + h * np.eye(k)[j], own - h * np.eye(k)[j]
            ends = [[reference(loss, z, y) for z, y in zip(s, classes, strict=True)] for s in (up, down)]
            np.testing.assert_allclose(terms.slope[:, problem * k + j], (np.array(ends[0]) - ends[1]) / (2 * h), atol=1e-6)
            change = (loss.of_scores(up, classes, 1).slope - loss.of_scores(down, classes, 1).slope) / (2 * h)
            # Where a joint begins or ends the curvature of a hinge jumps.
            off = np.abs(found[:, :, j] - change).max(axis=1)
            assert np.mean(off > 1e-4) <= (0.1 if "hinge" in loss.constants.name else 0.0)


@all_losses
def test_the_constants_are_reached_and_never_exceeded(loss):
    """Slope norm, top eigenvalue, rank and trace of the curvature, value at 0: a factor of 2 would show either way."""
    scores, classes = samples(loss, 4000, 2)
    terms = loss.of_scores(scores, classes, 2)
    slopes, eigenvalues = np.linalg.norm(terms.slope, axis=1), np.linalg.eigvalsh(matrices(loss, terms.curvature))
    if not isinstance(loss, Softmax):
        # The worst scores of hinges are those inside the joint, or below it in every margin.
        margins = (
            np.full((1, loss.constants.n_outputs), {"logistic": 0.0}.get(loss.loss.constants.name, 1.0)),
            np.full((1, loss.constants.n_outputs), -60.0),
        )
        signs = np.where(np.arange(loss.constants.n_outputs) == 0, 1.0, -1.0)
        inside, below = (loss.of_scores(signs * m, np.zeros(1, dtype=int), 2) for m in margins)
        eigenvalues = np.vstack([eigenvalues, np.linalg.eigvalsh(matrices(loss, inside.curvature))])
        slopes = np.append(slopes, np.linalg.norm(below.slope))
    for found, bound in (
        (slopes.max(), loss.constants.lipschitz),
        (eigenvalues.max(), loss.constants.smoothness),
        (eigenvalues.sum(axis=1).max(), loss.constants.trace),
        ((eigenvalues > 1e-9).sum(axis=1).max(), loss.constants.rank),
    ):
        assert 0.999 * bound <= found <= bound * (1 + 1e-12)
    at_zero = loss.of_scores(np.zeros((1, loss.constants.n_outputs)), np.zeros(1, dtype=int), 0).value[0, 0]
    assert loss.constants.value_at_zero == pytest.approx(at_zero, rel=1e-14)


@all_losses
def test_curvature_at_slope_bounds_the_trace_where_the_slope_is_met_and_is_reached(loss):
    """The largest trace at a slope norm: above all of 20,000 scores, within 1% of one of them somewhere in most cells."""
    scores, classes = samples(loss, 20_000, 3)
    if isinstance(loss, Softmax):
        # For a given own probability the others are equal at best, or all in one class when the own one has vanished.
        k, own = loss.constants.n_outputs, np.linspace(-12, 12, 2000)
        best = np.zeros((2000, k))
        best[:, 0] = own
        last = np.zeros((2000, k))
        last[:, 0], last[:, 1] = -60.0, own
        scores, classes = np.vstack([scores, best, last]), np.concatenate([classes, np.zeros(4000, dtype=int)])
    else:
        equal = np.linspace(-3, 3, 4000)[:, None] * np.where(np.arange(loss.constants.n_outputs) == 0, 1.0, -1.0)
        scores, classes = np.vstack([scores, equal]), np.concatenate([classes, np.zeros(4000, dtype=int)])
    terms = loss.of_scores(scores, classes, 2)
    norms = np.linalg.norm(terms.slope, axis=1)
    traces = np.trace(matrices(loss, terms.curvature), axis1=1, axis2=2)
    bounds = loss.constants.curvature_at_slope(np.minimum(norms, loss.constants.lipschitz))
    assert (traces <= bounds + 1e-7 * loss.constants.trace).all()
    met = traces >= 0.99 * bounds - 1e-9
    cells = np.unique((norms[met] / loss.constants.lipschitz * 20).astype(int))
    assert len(cells) >= 12
    heights = np.round(np.diff(loss.constants.curvature_at_slope(np.linspace(0, loss.constants.lipschitz, 4001))), 12)
    signs = np.sign(heights[heights != 0])
    assert (np.diff(signs) <= 0).all(), "rises to one peak and falls after it"


def test_the_tail_is_the_least_number_that_holds():
    """t(a) <= tail (L - a) everywhere, and no smaller number does; for two logistic scores and more, and for softmax."""
    for loss in (Softmax(3), Softmax(7), OneVsRest(LogisticLoss(), 3)):
        a = np.linspace(0.0, loss.constants.lipschitz, 200_001)[:-1]
        needed = (loss.constants.curvature_at_slope(a) / (loss.constants.lipschitz - a)).max()
        assert 0.999 * loss.constants.tail <= needed <= loss.constants.tail
    weighted = Softmax(4).constants.weighted(5.0)
    a = np.linspace(0.0, weighted.lipschitz, 20_001)[:-1]
    assert 0.999 <= (weighted.curvature_at_slope(a) / (weighted.lipschitz - a)).max() / weighted.tail <= 1.0
    assert (weighted.trace, weighted.rank, weighted.n_outputs) == (5.0 * 0.75, 3, 4)


@pytest.mark.parametrize("loss", [HuberHinge(0.4), SmoothHinge(0.4), LogisticLoss()], ids=lambda loss: loss.constants.name)
def test_the_curvature_of_one_score_is_a_concave_function_of_its_squared_slope(loss):
    """What the trace of one-vs-rest rests on."""
    heights = loss.constants.curvature_at_slope(np.sqrt(np.linspace(0.0, 1.0, 2001)))
    assert (np.diff(heights, 2) <= 1e-9).all()


@pytest.mark.parametrize("loss", [Softmax(4), OneVsRest(LogisticLoss(), 4)], ids=lambda loss: loss.constants.name)
@pytest.mark.parametrize("largest", [1.0, 6.0])
def test_the_trace_is_below_a_function_that_vanishes_at_the_corners_of_the_slopes(loss, largest):
    """Tapered, theta = linear - |q|^2 / W with rows of any weight: inequality (1) of the proof page."""
    scores, classes = samples(loss, 5000, 4)
    terms = loss.of_scores(scores, classes, 2)
    weights = largest * np.random.default_rng(0).choice([1.0, 0.5, 0.01], size=(5000, 1))
    slopes, traces = weights * terms.slope, weights[:, 0] * np.trace(matrices(loss, terms.curvature), axis1=1, axis2=2)
    if loss.constants.separable:
        linear = np.abs(slopes).sum(axis=1)
    else:
        own = np.arange(loss.constants.n_outputs) == classes[:, None]
        linear = 2.0 * np.where(own, 0.0, slopes).sum(axis=1)
    theta = linear - (slopes**2).sum(axis=1) / largest
    assert loss.constants.tapered
    assert (traces <= theta + 1e-9 * largest).all()
    assert 0.99 * largest * loss.constants.trace <= theta.max() <= largest * loss.constants.trace * (1 + 1e-9)


def test_the_third_derivative_of_softmax_is_bounded_by_the_range_times_the_second():
    """Along a line, by differences of the second derivative; with half the range it would fail."""
    rng, ratios = np.random.default_rng(5), []
    for _ in range(2000):
        k = int(rng.integers(3, 6))
        z, d, h = rng.normal(size=k) * 3, rng.normal(size=k), 1e-4
        p = [softmax(z + s * h * d) for s in (-1, 0, 1)]
        second = [q @ d**2 - (q @ d) ** 2 for q in p]
        ratios.append(abs(second[2] - second[0]) / (2 * h) / (second[1] * np.ptp(d)))
    assert 0.6 < max(ratios) <= 1.0


def test_the_computed_softmax_slope_is_within_its_stated_rounding():
    """Against 60-digit arithmetic: ties, scores up to 10^9 and 60 classes; error over (rounding * L) units at most 1."""
    mpmath = pytest.importorskip("mpmath")
    rng, worst = np.random.default_rng(6), 0.0
    for case in range(150):
        k = int(rng.choice([3, 10, 60]))
        z = rng.normal(size=k) * np.exp(rng.uniform(-3, 3)) + rng.choice([0.0, 1e4, 1e9])
        if case % 3 == 0:
            z[1] = z[0] + 1e-9
        loss, y = Softmax(k), int(rng.integers(k))
        computed = loss.of_scores(z[None], np.array([y]), 1).slope[0]
        with mpmath.workdps(60):
            shares = [mpmath.exp(mpmath.mpf(float(v)) - mpmath.mpf(float(z.max()))) for v in z]
            exact = [s / mpmath.fsum(shares) - (j == y) for j, s in enumerate(shares)]
            error = mpmath.sqrt(mpmath.fsum((mpmath.mpf(float(c)) - e) ** 2 for c, e in zip(computed, exact, strict=True)))
        worst = max(worst, float(error) / (loss.constants.rounding * loss.constants.lipschitz * 2.0**-53))
    assert 0.005 < worst <= 1.0


def test_extreme_scores_give_finite_numbers():
    """No overflow at scores of 1e300, none lost at differences of 1000."""
    scores = np.array([[1e300, -1e300, 0.0], [1000.0, 0.0, -1000.0], [-1e300, -1e300, -1e300]])
    with np.errstate(over="raise", invalid="raise"):
        terms = Softmax(3).of_scores(scores, np.array([1, 2, 0]), 2)
    assert all(np.isfinite(part).all() for part in terms[1:])
    assert np.isfinite(Softmax(3).of_scores(scores, np.array([1, 2, 0]), 0).value).all()


@all_losses
@pytest.mark.parametrize("sparse", [False, True], ids=["dense", "sparse"])
def test_sums_over_rows_have_the_derivatives_of_their_value(loss, sparse):
    """Gradient and Hessian of a weighted objective with an intercept, by differences in every weight; blocks of 64 rows."""
    rng, k = np.random.default_rng(7), loss.constants.n_outputs
    rows, classes = rng.normal(size=(150, 3)), rng.integers(k, size=150)
    blocks = ArrayBlocks(scipy.sparse.csr_array(rows) if sparse else rows)
    source = MemorySource(blocks, classes, rng.uniform(0, 2, 150))
    linear = rng.normal(size=(1, 4 * k))
    objective = Objective(source, loss, BallBound(1.5), 0.7, 2.0, linear, 2.0)
    W, h = rng.normal(size=(1, 4 * k)) * 0.7, 1e-5
    state = objective.evaluate(W, order=2)
    for j in range(4 * k):
        step = h * np.eye(4 * k)[[j]]
        values = [objective.evaluate(W + sign * step, order=0).value[0] for sign in (1, -1)]
        up, down = objective.evaluate(W + step, order=1), objective.evaluate(W - step, order=1)
        assert state.gradient[0, j] == pytest.approx((values[0] - values[1]) / (2 * h), abs=1e-5)
        np.testing.assert_allclose(state.hessian[0, j], (up.gradient - down.gradient)[0] / (2 * h), atol=0.02)
    np.testing.assert_allclose(state.hessian[0], state.hessian[0].T, atol=1e-12)
    eigenvalues = np.linalg.eigvalsh(state.hessian[0])
    assert 2.0 - 1e-9 <= eigenvalues.min() <= eigenvalues.max() <= objective.smoothness


def test_two_problems_of_several_scores_are_those_of_each_alone():
    """Values, gradients and Hessians of two weight vectors in one pass equal those of two passes."""
    rng = np.random.default_rng(8)
    source = MemorySource(ArrayBlocks(rng.normal(size=(100, 2))), rng.integers(3, size=100))
    W = rng.normal(size=(2, 9))
    for loss in (Softmax(3), OneVsRest(LogisticLoss(), 3)):
        joint, single = (Objective(source, loss, BallBound(1.0), 1.0, 1.0, np.zeros((k, 9))) for k in (2, 1))
        for name, order in (("value", 0), ("gradient", 2), ("hessian", 2)):
            both = getattr(joint.evaluate(W, order), name)
            for j in range(2):
                np.testing.assert_allclose(both[j], getattr(single.evaluate(W[[j]], order), name)[0], rtol=1e-12, atol=1e-12)


def test_the_stated_values_of_small_cases():
    """Three classes: sqrt 2, trace 2/3, log 3 at zero; one-vs-rest of the logistic loss: sqrt 3, 3/4, 3 log 2."""
    loss, other = Softmax(3), OneVsRest(LogisticLoss(), 3)
    for own, expected in (
        (loss.constants, (math.sqrt(2), 2 / 3, math.log(3))),
        (other.constants, (math.sqrt(3), 0.75, 3 * math.log(2))),
    ):
        np.testing.assert_allclose((own.lipschitz, own.trace, own.value_at_zero), expected, rtol=1e-12)


@pytest.mark.parametrize("n_classes", [3, 10, 100])
def test_the_rounding_of_softmax_is_that_of_the_proof(n_classes):
    """A slope errs by k + 2 ln k + 18 units (privacy/proofs/multiclass.md, section 8), in units of the longest, sqrt(2)."""
    expected = (n_classes + 2.0 * math.log(n_classes) + 18.0) / math.sqrt(2.0)
    assert Softmax(n_classes).constants.rounding == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("loss", LOSSES, ids=NAMES)
def test_constants_with_roots_are_rounded_upwards(loss):
    """In exact arithmetic: L^2 = 2 and t^2 = 8 for softmax, L^2 = k l^2 for k losses of slope l; by less than 2^-48."""
    pairs = [(loss.constants.lipschitz, 2), (loss.constants.tail, 8)] if isinstance(loss, Softmax) else []
    if not pairs:
        pairs = [(loss.constants.lipschitz, loss.constants.n_outputs * Fraction(loss.loss.constants.lipschitz) ** 2)]
    for found, square in pairs:
        assert 1 + Fraction(1, 2**51) < Fraction(found) ** 2 / square < 1 + Fraction(1, 2**48)


def test_softmax_by_hand():
    """Probabilities 1/8, 1/4 and 5/8: the value log(4) of the class with 1/4, p - e_y, and diag(p) - p p^T."""
    p, loss = np.array([0.125, 0.25, 0.625]), Softmax(3)
    scores = np.log(np.concatenate([p, 16.0 * p[::-1]]))[None]
    assert loss.of_scores(scores, np.array([1]), 0).value == pytest.approx(np.log([[4.0, 4.0]]), rel=1e-14)
    terms = loss.of_scores(scores, np.array([1]), 2)
    np.testing.assert_allclose(terms.slope, [[0.125, -0.75, 0.625, 0.625, -0.75, 0.125]], rtol=1e-14)
    bends = np.diag(p) - np.outer(p, p)
    np.testing.assert_allclose(terms.curvature, [[*bends.ravel(), *bends[::-1, ::-1].ravel()]], rtol=1e-13)


def test_the_curvature_of_softmax_at_a_slope_by_hand():
    """2 m - a^2 with m = a sqrt(1 - 1/o), at most 1: for four classes the trace 3/4 at a = sqrt(3)/2, and 0 at both ends."""
    slopes = np.array([0.0, 0.5, math.sqrt(0.75), 1.25, math.sqrt(2.0), math.nextafter(Softmax(4).constants.lipschitz, 2)])
    expected = [0.0, math.sqrt(0.75) - 0.25, 0.75, 2.0 - 1.5625, 0.0, 0.0]
    found = Softmax(4).constants.curvature_at_slope(slopes)
    np.testing.assert_allclose(found, expected, rtol=1e-14, atol=1e-15)
    assert (found >= 0.0).all()


@pytest.mark.parametrize("loss", [Softmax(3), OneVsRest(LogisticLoss(), 3)], ids=lambda loss: loss.constants.name)
def test_what_is_not_asked_for_is_not_computed(loss):
    """The value alone for order 0, the slope for order 1, and the curvature beside it for order 2."""
    given = [[part is not None for part in loss.of_scores(np.zeros((1, 3)), np.zeros(1, int), order)] for order in (0, 1, 2)]
    assert given == [[True, False, False], [False, True, False], [False, True, True]]


def test_the_flags_of_class_losses():
    """Softmax is monotone, tapered and self-concordant, and not separable; one-vs-rest is as its loss is."""
    loss = Softmax(5)
    assert (
        loss.constants.monotone,
        loss.constants.by_length,
        loss.constants.tapered,
        loss.constants.separable,
        loss.constants.self_concordant,
    ) == (
        True,
        False,
        True,
        False,
        True,
    )
    assert (
        loss.constants.smoothness,
        loss.constants.rank,
        loss.constants.trace,
        loss.constants.name,
        loss.constants.margin,
        loss.constants.joint,
    ) == (
        0.5,
        4,
        0.8,
        "softmax",
        1.0,
        None,
    )
    for one, tapered in ((LogisticLoss(), True), (HuberHinge(0.5), False)):
        loss = OneVsRest(one, 3)
        flags = (
            loss.constants.monotone,
            loss.constants.by_length,
            loss.constants.tapered,
            loss.constants.separable,
            loss.constants.self_concordant,
        )
        assert flags == (True, False, tapered, True, tapered)


def test_the_constants_of_one_vs_rest_follow_from_those_of_one_loss():
    """L = sqrt(o) L_1 and its tail, c = c_1, rank o, trace o c_1, at 0 o times as much; the worst slope has equal parts."""
    one = LossConstants(
        name="made up", lipschitz=2.0, smoothness=3.0, trace=3.0, value_at_zero=5.0, tapered=True, rounding=7.0,
        margin=11.0, joint=13.0, bends=lambda slope: 3.0 - slope,
    )  # fmt: skip
    own = OneVsRest(SimpleNamespace(constants=one), 4).constants
    assert (own.smoothness, own.value_at_zero, own.rank, own.trace, own.rounding) == (3.0, 20.0, 4, 12.0, 7.0)
    assert (own.margin, own.joint) == (11.0, 13.0)
    assert own.lipschitz == own.tail == 4.0 * (1.0 + 2.0**-50)
    assert own.name == "one-vs-rest made up"
    # Four slopes of a / 2 each, and no steeper than the steepest.
    np.testing.assert_array_equal(own.curvature_at_slope(np.array([0.0, 1.0, 4.0, own.lipschitz])), [12.0, 10.0, 4.0, 4.0])


def test_roots_are_rounded_upwards_by_2_to_the_minus_50():
    """By that much and no less, which covers the rounding of the root and of its products."""
    assert Softmax(4).constants.lipschitz == math.sqrt(2.0) * (1.0 + 2.0**-50)
    assert Softmax(4).constants.tail == 2.0 * Softmax(4).constants.lipschitz
