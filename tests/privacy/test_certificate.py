"""The certificate: its rounding bound holds against exact arithmetic, and nothing inexact passes."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse

from confide.data.arrays import ArrayBlocks, Blocks, MemorySource, summation_depth
from confide.erm.coded_rows import CodedLayout, CodedRows
from confide.erm.losses import HuberHinge, LogisticHinge, LogisticLoss, SmoothHinge
from confide.erm.objective import Objective
from confide.erm.row_bounds import BallBound
from confide.erm.target_losses import SquaredLoss
from confide.errors import InsufficientRegularisation, NotCertified, ParameterError
from confide.privacy.budgets import PureDP
from confide.privacy.certificate import GradientRounding, _gamma, certify, planned_tolerance, solver_tolerance
from confide.privacy.noise import Entropy
from confide.privacy.objective_perturbation import ObjectivePerturbation
from confide.privacy.shapes import Ball
from confide.solvers.fallback import NewtonThenFallback
from tests.privacy.problems import problem, source

LOSSES = [LogisticLoss(), LogisticHinge(0.2), HuberHinge(0.5), SmoothHinge(0.3)]


def exact_gradient(mp, loss, row_norm, rows, labels, l2, linear, w, counts):
    """Gradient over the rows clipped in real arithmetic at the library's radius, in 60 digits."""
    radius = mp.mpf(row_norm * (1.0 - max(2.0**-40, (rows.shape[1] + 8) * 2.0**-52)))
    total = [mp.mpf(float(l2)) * mp.mpf(float(v)) + mp.mpf(float(b)) for v, b in zip(w, linear, strict=True)]
    for row, label, count in zip(rows, labels, counts, strict=True):
        x = [mp.mpf(float(v)) for v in row]
        norm = mp.sqrt(mp.fsum(v * v for v in x))
        if norm > radius:
            x = [v * radius / norm for v in x]
        z = int(label) * mp.fsum(v * mp.mpf(float(u)) for v, u in zip(x, w, strict=True))
        if loss.constants.tapered:
            slope = -1 / (1 + mp.exp(z - mp.mpf(getattr(loss, "margin", 0.0))))
        else:
            h = mp.mpf(loss.smoothing)
            s = max(mp.mpf(-1), min(mp.mpf(1), (1 - z) / h))
            slope = -(1 + s) / 2 if loss.constants.name == "huber_hinge" else -(2 + 3 * s - s**3) / 4
        total = [t + mp.mpf(float(count)) * slope * int(label) * v for t, v in zip(total, x, strict=True)]
    return total


@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: loss.constants.name)
@pytest.mark.parametrize("setting", ["0", "plain", "1"], ids=["NumPy", "plain kernel", "kernel"])
def test_the_rounding_bound_covers_adversarial_rows(loss, setting, monkeypatch):
    """Cancelling margins and rows, scales from e^-8 to e^8, float32, sparse, weights: error over bound at most 1."""
    monkeypatch.setenv("CONFIDE_COMPILED", setting)
    mpmath = pytest.importorskip("mpmath")
    rng = np.random.default_rng(4)
    worst = 0.0
    for case in range(60):
        n, d = int(rng.integers(1, 40)), int(rng.integers(1, 6))
        row_norm = float(np.exp(rng.uniform(-3, 3)))
        rows = rng.normal(size=(n, d)) * np.exp(rng.uniform(-8, 8, size=(n, 1)))
        w = rng.normal(size=d) * np.exp(rng.uniform(-2, 8))
        if case % 3 == 0 and d > 1:
            # Nearly orthogonal to the weights: the margin cancels.
            rows -= np.outer(rows @ w, w) / (w @ w) * (1 - 1e-9)
        if case % 3 == 1:
            rows[1::2] = -rows[0::2][: len(rows[1::2])]
        if case % 4 == 0:
            rows = rows.astype(np.float32)
        labels = rng.choice([-1, 1], size=n).astype(np.int8)
        l2, linear = float(np.exp(rng.uniform(-4, 4))), rng.normal(size=d) * 10
        largest = float(np.exp(rng.uniform(-3, 3)))
        counts = largest * rng.choice([1.0, rng.random()], size=n)
        blocks = ArrayBlocks(scipy.sparse.csr_array(rows) if case % 5 == 0 else rows)
        rows_of_case = MemorySource(blocks, labels, counts)
        objective = Objective(rows_of_case, loss, BallBound(row_norm), 0.0, l2, linear[None], largest)
        computed = objective.evaluate(w[None], order=1).gradient[0]
        rounding = GradientRounding(loss.constants.weighted(largest), row_norm, n, d, summation_depth(n, d), l2)
        bound = rounding.bound(float(np.linalg.norm(w)), float(np.linalg.norm(linear)), float(np.linalg.norm(computed)))
        with mpmath.workdps(60):
            exact = exact_gradient(mpmath.mp, loss, row_norm, rows, labels, l2, linear, w, counts)
            error = mpmath.sqrt(mpmath.fsum((mpmath.mpf(float(c)) - e) ** 2 for c, e in zip(computed, exact, strict=True)))
        worst = max(worst, float(error) / bound)
    assert 1e-3 < worst <= 1.0


@dataclass(frozen=True, slots=True)
class CodedBlocks(Blocks):
    """Blocks of coded rows of a few made-up columns."""

    rows: CodedRows

    def __post_init__(self):
        self._hold(self.rows.shape, 7)

    def block(self, start, stop):
        return self.rows[start:stop]


@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: loss.constants.name)
def test_the_rounding_bound_covers_coded_rows(loss):
    """Cancelling margins, entries of very different sizes, rows beyond the ball: error over bound at most 1."""
    mpmath = pytest.importorskip("mpmath")
    rng = np.random.default_rng(8)
    worst = 0.0
    for case in range(40):
        layout = CodedLayout(9, *(((0, 2), (7, 9)), ((2, 7),)) if case % 2 else (((0, 3),), ((3, 5), (5, 9))))
        n, d = int(rng.integers(1, 40)), 9
        row_norm = float(np.exp(rng.uniform(-3, 3)))
        columns, entries = np.empty(n * layout.width, np.int32), np.exp(rng.uniform(-8, 3, size=n * layout.width))
        single, first, second = layout.parts(columns)
        for place, (start, stop) in enumerate(layout.singles):
            single[:, place] = rng.integers(start, stop, n)
        for place, (start, stop) in enumerate(layout.pairs):
            first[:, place] = rng.integers(start, stop - 1, n)
        second[...] = first + 1
        entries *= rng.choice([-1.0, 1.0, 0.0], size=entries.size)
        w = rng.normal(size=d) * np.exp(rng.uniform(-2, 8))
        rows = CodedRows(layout, columns, entries)
        if case % 3 == 0:
            # The first entry of a pair cancels the rest of the margin.
            falling = layout.parts(entries)[1][:, 0]
            places = first[:, 0]
            falling -= rows.dense() @ w / w[places] * (1 - 1e-9)
        labels = rng.choice([-1, 1], size=n).astype(np.int8)
        l2, linear = float(np.exp(rng.uniform(-4, 4))), rng.normal(size=d) * 10
        source_of_case = MemorySource(CodedBlocks(rows), labels)
        objective = Objective(source_of_case, loss, BallBound(row_norm), 0.0, l2, linear[None])
        computed = objective.evaluate(w[None], order=1).gradient[0]
        rounding = GradientRounding(loss.constants.weighted(1.0), row_norm, n, d, summation_depth(n, d), l2)
        bound = rounding.bound(float(np.linalg.norm(w)), float(np.linalg.norm(linear)), float(np.linalg.norm(computed)))
        with mpmath.workdps(60):
            exact = exact_gradient(mpmath.mp, loss, row_norm, rows.dense(), labels, l2, linear, w, np.ones(n))
            error = mpmath.sqrt(mpmath.fsum((mpmath.mpf(float(c)) - e) ** 2 for c, e in zip(computed, exact, strict=True)))
        worst = max(worst, float(error) / bound)
    assert 1e-3 < worst <= 1.0


def test_the_bound_is_the_theorems_formula():
    """n = 10^6, d = 100, m = 2001, logistic, ridge 1, epsilon 1: 3.3e-5 as tabulated, with noise at its public bound."""
    rounding = GradientRounding(LogisticLoss().constants, 1.0, 10**6, 100, 2001, 1.0)
    noise_bound = (1.4 * 100 + 2 * 200 * math.log(2)) / 0.5
    assert rounding.worst(noise_bound) == pytest.approx(3.3e-5, rel=0.05)
    huber = GradientRounding(HuberHinge(0.5).constants, 1.0, 10**6, 100, 2001, 1.0)
    assert 6 * huber.worst(noise_bound) == pytest.approx(8.5e-4, rel=0.05)


@pytest.mark.parametrize(
    ("loss", "units"), [*((loss.constants, 12.0) for loss in LOSSES), (HuberHinge(0.125).constants.weighted(6.0), 13.0)]
)
def test_each_term_of_the_bound_is_that_of_the_theorem(loss, units):
    """One norm at a time. In the tabulated case the products with the weights hide every other term."""
    unit, n, row_norm, d, m, l2 = 2.0**-53, 20, 3.0, 7, 50, 1e3
    rounding = GradientRounding(loss, row_norm, n, d, m, l2)
    of_sums = 1.01 * unit * n * row_norm * loss.lipschitz * (m + d + 5 + units)
    assert rounding.bound(0.0, 0.0, 0.0) == pytest.approx(of_sums, rel=1e-12)
    of_scores = 1.01 * unit * n * row_norm * (2 * d + 5) * loss.smoothness * row_norm * 10.0
    assert rounding.bound(10.0, 0.0, 0.0) - of_sums == pytest.approx(of_scores + 3.0 * unit * l2 * 10.0, rel=1e-9)
    assert rounding.bound(0.0, 1e6, 0.0) - of_sums == pytest.approx(3.0 * unit * 1e6, rel=1e-9)
    assert rounding.bound(0.0, 0.0, 1e6) - of_sums == pytest.approx(3.0 * unit * 1e6, rel=1e-9)
    assert GradientRounding(loss, row_norm, 0, d, m, l2).bound(0.0, 0.0, 0.0) == 2.0**-900


@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: loss.constants.name)
def test_the_minimiser_is_shorter_than_its_public_bound(loss):
    """|w*| <= W over random rows and noise."""
    for seed in range(5):
        rows = source(30, 3, seed)
        noise = Entropy.seeded(seed).laplace(Ball(3, 1.0), 1, 0.2)
        objective = Objective(rows, loss, BallBound(1.0), 0.0, 0.5, noise)
        w = NewtonThenFallback().solve(objective, np.zeros((1, 3)), 1e-9).weights
        bound = GradientRounding(loss.constants, 1.0, 30, 3, 31, 0.5).minimiser_norm(float(np.linalg.norm(noise)))
        assert np.linalg.norm(w) <= bound


def certified(weights_of, tolerance=1e-6):
    """Certify weights made from the minimiser of a small problem."""
    facts, rows = problem(l2=2.0), source()
    objective = facts.objective(rows, 2.0, np.ones((1, 2)))
    exact = NewtonThenFallback().solve(objective, np.zeros((1, 2)), 1e-12).weights
    return certify(objective, weights_of(exact), tolerance, facts.rounding(2.0))


def test_the_minimiser_is_certified():
    """And nothing is returned: what a certificate knows of the data does not leave it."""
    assert certified(lambda w: w) is None


@pytest.mark.parametrize(
    "spoil",
    [lambda w: w + 1e-6, lambda w: w * np.nan, lambda w: w + np.inf, lambda w: np.zeros_like(w), lambda w: -w],
    ids=["off by a little", "nan", "inf", "zero", "sign"],
)
def test_anything_else_is_refused(spoil):
    """A NaN must fail too; the message holds no number."""
    with np.errstate(all="ignore"), pytest.raises(NotCertified) as caught:
        certified(spoil)
    assert not any(character.isdigit() for character in str(caught.value))


class LazySolver:
    """A solver that claims success at its start."""

    def solve(self, objective, start, tolerance):
        """Return the start with a false claim."""
        from confide.erm.objective import Solution

        return Solution(start, np.zeros(len(start)))


def test_a_lying_solver_causes_a_refusal_and_no_release():
    """The certificate believes no norm that a solver claims."""
    facts = problem()
    plan = ObjectivePerturbation().plan(facts, PureDP(1.0))
    with pytest.raises(NotCertified):
        ObjectivePerturbation().release(plan, source(), LazySolver(), Entropy.fresh())


def test_the_solver_is_asked_for_what_the_certificate_leaves():
    """Of 8 worst roundings: the solver's norm, 2 for a pass that rounds otherwise, 1.01 for the certificate.

    And it is not less than the 4.4 at which the fallback methods end by their theorems.
    """
    tolerance, worst = 8.0, 1.0
    assert (solver_tolerance(tolerance) + 2.0 * worst) * (1 + 1e-9) + 1.01 * worst <= tolerance
    assert solver_tolerance(tolerance) >= 4.4 * worst


def test_the_planned_tolerance_is_eight_roundings_or_a_refusal():
    """Too small a ridge for the theorem that the tolerance is reached is refused from public facts."""
    rounding = GradientRounding(LogisticLoss().constants, 1.0, 10**5, 20, 300, 5.0)
    assert planned_tolerance(rounding, 500.0) == pytest.approx(8.0 * rounding.worst(500.0), rel=1e-12)
    for l2, n in ((2.0**-21, 100), (1e-3, 10**14)):
        with pytest.raises(InsufficientRegularisation, match="Raise alpha"):
            planned_tolerance(GradientRounding(LogisticLoss().constants, 1.0, n, 20, 300, l2), 500.0)


@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: loss.constants.name)
def test_with_a_prior_the_minimiser_is_shorter_than_its_bound_by_the_lemma(loss):
    """|w*| <= W / sqrt(2), which a bound half as long would miss: the prior is long beside what rows and noise do."""
    for seed in range(3):
        prior = np.random.default_rng(seed).normal(size=3) * 50.0
        facts = replace(problem(30, 3, loss=loss, l2=4.0), prior=tuple(prior.tolist()))
        noise = Entropy.seeded(seed).laplace(Ball(3, 1.0), 1, 0.2)
        objective = facts.objective(source(30, 3, seed), 4.0, noise)
        w = NewtonThenFallback().solve(objective, np.zeros((1, 3)), 1e-9).weights
        bound = facts.rounding(4.0).minimiser_norm(float(np.linalg.norm(noise)))
        assert 0.5 * bound / math.sqrt(2.0) < np.linalg.norm(w) <= bound / math.sqrt(2.0)


def test_a_prior_counts_as_a_linear_term_in_every_public_bound():
    """Bounds with a prior are those for a linear term that is longer by l2 |w0|; without one nothing is added."""
    plain = GradientRounding(LogisticLoss().constants, 1.0, 10**5, 20, 300, 5.0)
    with_prior = replace(plain, prior_norm=70.0)
    assert with_prior.linear_norm(500.0) == pytest.approx(850.0, rel=1e-11)
    assert with_prior.linear_norm(500.0) > 850.0
    assert with_prior.worst(500.0) == plain.worst(with_prior.linear_norm(500.0))
    assert with_prior.minimiser_norm(500.0) == plain.minimiser_norm(with_prior.linear_norm(500.0))
    assert planned_tolerance(with_prior, 500.0) == planned_tolerance(plain, with_prior.linear_norm(500.0))
    assert plain.linear_norm(500.0) == 500.0
    assert plain.linear_error(500.0) == 0.0


def test_the_error_of_the_linear_term_is_bounded_and_the_bound_is_reached():
    """One rounding for each entry of noise and pull: at most u times the bound, and nearly that in the worst case."""
    facts = replace(problem(30, 1, l2=1.0), prior=(-(2.0**-53) * (1.0 - 2.0**-20),))
    noise = np.array([[1.0]])
    linear = facts.objective(source(30, 1), 1.0, noise).linear
    error = abs(Fraction(float(linear[0, 0])) - Fraction(1) + Fraction(facts.prior[0]))
    bound = facts.rounding(1.0).linear_error(1.0)
    assert 0.9 * bound < error <= bound


def test_priors_at_which_squares_could_overflow_are_refused():
    """A pull of up to 2^400 is allowed, and twice as much is not; nor are weights above 2^200."""
    rounding = GradientRounding(LogisticLoss().constants, 1.0, 100, 2, 300, 2.0**250, prior_norm=2.0**150)
    assert math.isfinite(planned_tolerance(rounding, 1.0))
    with pytest.raises(InsufficientRegularisation, match="Give a shorter prior"):
        planned_tolerance(replace(rounding, prior_norm=2.0**151), 1.0)
    for weight, allowed in ((2.0**200, True), (-(2.0**200), True), (2.0**201, False), (math.nan, False), (math.inf, False)):
        if allowed:
            assert replace(problem(), prior=(0.0, weight)).prior == (0.0, weight)
        else:
            with pytest.raises(ParameterError, match=r"2 weights, each a finite number"):
                replace(problem(), prior=(0.0, weight))
    with pytest.raises(ParameterError, match="a prior needs 2 weights"):
        replace(problem(), prior=(0.0,))


@pytest.mark.parametrize("loss", [LogisticLoss(), SquaredLoss(3.0, 2.0, by_length=True)], ids=["plain", "by length"])
@pytest.mark.parametrize("centred", [False, True])
@pytest.mark.parametrize(("n", "l2"), [(50, 2.0), (1, 1e12)])
def test_the_bound_has_every_term_of_the_formula(n, l2, centred, loss):
    """Theorem 2 here, and for centred rows that of centring.md, with exact numbers of roundings; three for the ridge."""
    found = GradientRounding(loss.constants, 3.0, n, 7, 20, l2, centred, intercept=1.5)
    of_sums, of_scores, of_loss = 20 + 7 + 5, 2 * 7 + 5, loss.constants.rounding
    if centred:
        of_sums, of_scores = 4 * 20 + 11 * 7 + 58, 15 * 7 + 57
    if loss.constants.by_length:
        # (3 / 1.5)^2 = 4.
        of_loss += 2 * 7 + 12 + (10 * (7 + 3) * 4 if centred else 0)
    unit = 2.0**-53
    for weights, noise, gradient in ((0.0, 0.0, 0.0), (1e3, 0.0, 0.0), (0.0, 1e9, 0.0), (0.0, 0.0, 1e9), (5.0, 7.0, 9.0)):
        slopes = loss.constants.lipschitz * (of_sums + of_loss) + of_scores * loss.constants.smoothness * 3.0 * weights
        expected = 1.01 * unit * n * 3.0 * slopes + 3.0 * unit * (l2 * weights + noise) + 3.0 * unit * gradient
        assert found.bound(weights, noise, gradient) == pytest.approx(expected, rel=1e-9, abs=0.0)


def test_the_worst_point_is_four_times_as_far_as_rows_and_noise_can_pull():
    """|w| <= 2 W with W = 2 |b| / l2 + sqrt(2 n f(0) / l2), and |g| <= n L R + l2 |w| + |b|; each part once the largest."""
    for n, noise, l2 in ((1, 1e12, 1e9), (10**6, 1.0, 1e9), (10**6, 1.0, 1.0)):
        rounding = GradientRounding(LogisticLoss().constants.weighted(3.0), 2.0, n, 3, 7, l2)
        norm = 2.0 * (2.0 * noise / l2 + math.sqrt(2.0 * n * 3.0 * math.log(2.0) / l2))
        slope = n * 3.0 * 2.0 + l2 * norm + noise
        assert rounding.worst(noise) == pytest.approx(rounding.bound(norm, noise, slope), rel=1e-9, abs=0.0)
    # 3 u (4 |b| + |b|) + 3 u (4 |b| + |b|), where rows hardly count.
    assert GradientRounding(LogisticLoss().constants, 1.0, 1, 2, 3, 1e12).worst(1e15) == pytest.approx(
        30.0 * 2.0**-53 * 1e15, rel=1e-3
    )


class WithGradients:
    """An objective whose gradients were computed elsewhere."""

    def __init__(self, gradients, linear):
        self._gradients, self.linear = np.array(gradients), np.array(linear)

    def gradients(self, weights):
        """The same at all weights."""
        assert weights.shape == self._gradients.shape
        return self._gradients


@pytest.mark.parametrize("gradient", [[0.0, 0.0], [3.0, 4.0]])
def test_a_certificate_counts_the_norm_and_its_rounding_and_no_more(gradient):
    """|g| (1 + 6 u) + 1.01 times the bound on rounding at these weights; every problem is looked at."""
    rounding, weights = GradientRounding(LogisticLoss().constants, 1.0, 50, 2, 60, 3.0), np.array([[0.3, 0.4], [0.0, 0.0]])
    linear = [[6.0, 8.0], [0.0, 0.0]]
    norm = math.hypot(*gradient)
    bound = norm * (1.0 + 6 * 2.0**-53) + 1.01 * rounding.bound(0.5, 10.0, norm)
    for rows in ([gradient, [0.0, 0.0]], [[0.0, 0.0], gradient]):
        at = (weights, linear) if rows[0] == gradient else (weights[::-1], linear[::-1])
        objective = WithGradients(rows, at[1])
        certify(objective, at[0], bound * (1.0 + 2.0**-50), rounding)
        with pytest.raises(NotCertified):
            certify(objective, at[0], bound - 0.005 * rounding.bound(0.5, 10.0, norm), rounding)


def test_a_certificate_accepts_its_bound_itself_and_needs_a_gradient_for_each_problem():
    """With gradients of 0 the bound is 1.01 times that on rounding."""
    rounding, weights = GradientRounding(LogisticLoss().constants, 1.0, 50, 2, 60, 3.0), np.array([[0.3, 0.4], [0.0, 0.0]])
    objective = WithGradients(np.zeros((2, 2)), [[6.0, 8.0], [0.0, 0.0]])
    certify(objective, weights, 1.01 * rounding.bound(float(np.linalg.norm(weights[0])), 10.0, 0.0), rounding)
    objective.linear = objective.linear[:1]
    with pytest.raises(ValueError, match="zip"):
        certify(objective, weights, 1.0, rounding)


@dataclass
class Bounds:
    """Bounds on rounding that were chosen, in place of those that follow from a problem."""

    loss: object
    l2: float
    row_norm: float = 4.0
    n_rows: int = 10
    prior_norm: float = 0.0
    worst_one: float = 0.0

    def worst(self, _):
        return self.worst_one

    def minimiser_norm(self, _):
        return 14.0


@pytest.mark.parametrize(("weight", "least"), [(1.0, 2.0**-16), (0.125, 2.0**-19), (8.0, 2.0**-13)])
def test_the_least_ridge_is_that_of_slope_and_rows(weight, least):
    """2^-20 L R^2, with R = 4: exactly this one is accepted, and the next smaller number is not. A slope may exceed pi."""
    loss = LogisticLoss().constants.weighted(weight)
    assert planned_tolerance(Bounds(loss, least), 0.0) == 0.0
    with pytest.raises(InsufficientRegularisation):
        planned_tolerance(Bounds(loss, math.nextafter(least, 0.0)), 0.0)
    # Where slopes have either sign their unit is that of a target, and the curvature may be the smaller one: here 1.
    target = SquaredLoss(8.0, 8.0).constants.weighted(1.0)
    assert planned_tolerance(Bounds(target, 2.0**-16), 0.0) == 0.0
    with pytest.raises(InsufficientRegularisation):
        planned_tolerance(Bounds(target, math.nextafter(2.0**-16, 0.0)), 0.0)


def test_a_worst_rounding_of_a_seventh_of_the_ridge_times_the_minimiser_is_the_limit():
    """l2 W = 14 here: a worst rounding of exactly 2 leaves a tolerance of 16, and the next larger number none."""
    assert planned_tolerance(Bounds(LogisticLoss().constants, 1.0, worst_one=2.0), 0.0) == 16.0
    with pytest.raises(InsufficientRegularisation):
        planned_tolerance(Bounds(LogisticLoss().constants, 1.0, worst_one=math.nextafter(2.0, 3.0)), 0.0)


def test_gamma_is_the_bound_on_k_roundings():
    """k u / (1 - k u), seen where k is huge."""
    assert _gamma(2**40) == pytest.approx(2.0**-13 / (1.0 - 2.0**-13), rel=1e-12)


def test_rows_have_no_constant_unless_it_is_said():
    """So a bound that needs the constant cannot be asked for without it."""
    assert GradientRounding(LogisticLoss().constants, 1.0, 100, 3, 20, 2.0).intercept == 0.0
