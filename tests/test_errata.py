"""Every line of the page on errata has a counter-example in numbers, computed here from the printed formulas."""

from __future__ import annotations

import math
import re
from pathlib import Path

import numpy as np
import pytest
from scipy import integrate, stats

from confide import LogisticRegression, PureDP
from confide.erm.losses import HuberHinge, LogisticLoss
from confide.features.fourier import FourierMap
from confide.planning import optimal_privacy_of_kernel, sample_size, second_moment
from confide.privacy.budgets import Neighbours
from confide.privacy.gaussian import gaussian_delta, output_sensitivity
from tests.privacy.densities import log_ratio, tight_huber_pair

PAGE = Path(__file__).resolve().parents[1] / "docs" / "explanation" / "errata.md"


def test_every_line_of_the_page_names_one_of_these_tests():
    """And every test here but this one has a line."""
    lines = [line for line in PAGE.read_text(encoding="utf-8").splitlines() if line.startswith("|")][2:]
    named = [re.findall(r"`(test_\w+)`", line) for line in lines]
    assert all(len(names) == 1 for names in named)
    own = {name for name in globals() if name.startswith("test_")} - {"test_every_line_of_the_page_names_one_of_these_tests"}
    assert {name for names in named for name in names} == own


def test_the_missing_jacobian():
    """Chaudhuri and Monteleoni (2008): noise of rate epsilon / 2 and the logistic loss, an exact ratio of densities."""
    loss, l2, epsilon, length = LogisticLoss(), 1.0, 1.0, 2000.0
    slope = 0.8  # at which slope and curvature together lose most
    margin = -math.log(slope / (1.0 - slope))
    first, second = (
        np.array([sign * math.sqrt(1.0 - (z / length) ** 2), z / length]) for sign, z in ((1, margin), (-1, -30.0))
    )
    # Common rows cancel the ridge at w = (0, length), and push the noise along the first axis.
    common = np.array([-1e-5, 1.0 / length])
    share = 1.0 / (1.0 + math.e)
    count = l2 * length**2 / share
    found = [
        log_ratio(loss, np.array([own, common]), np.array([other, common]), l2, epsilon / 2.0, np.array([0.0, length]),
                  (np.array([1.0, count]), np.array([1.0, count])))
        for own, other in ((first, second), (second, first))
    ]  # fmt: skip
    assert 1.04 < max(found) < 1.05


def test_a_deviation_is_no_scale():
    """The same, section 2: Laplace noise of standard deviation S / epsilon, at distance S."""
    epsilon, sensitivity = 1.0, 2.0
    noise = stats.laplace(scale=sensitivity / epsilon / math.sqrt(2.0))
    assert noise.std() == pytest.approx(sensitivity / epsilon)
    assert noise.logpdf(-1.0) - noise.logpdf(-1.0 - sensitivity) == pytest.approx(math.sqrt(2.0) * epsilon)


def test_noise_of_two_sizes():
    """The same, section 2: noise whose size follows from the rows, on neighbours whose sizes differ by a factor exp(0.1)."""
    one, other = stats.laplace(scale=math.exp(0.1)), stats.laplace()
    ratios = [float(one.logpdf(x) - other.logpdf(x)) for x in (1.0, 30.0, 300.0)]
    assert ratios[0] < 0.1
    assert ratios[1] > 2.0
    assert ratios[2] > 20.0


def test_theorem_5_is_about_noise_on_the_weights():
    """The same: rows that suffice for a small excess, by either mechanism."""
    rows = {
        name: sample_size(LogisticRegression(1.0, mechanism=name), 5, excess=0.02, reference_norm=4.0).n_rows
        for name in ("objective", "output")
    }
    assert rows["output"] > 2 * rows["objective"]


def test_one_logarithm_is_enough():
    """Chaudhuri, Monteleoni and Sarwate (2011), algorithm 2: exact ratios of densities on the tight Huber pair."""
    loss, l2, epsilon = HuberHinge(0.5), 2.0, 1.5
    cost = math.log1p(loss.constants.smoothness / l2)
    first, second, w = tight_huber_pair(loss, l2, 1e-4)

    def lost(rate):
        return max(log_ratio(loss, first, second, l2, rate, w), log_ratio(loss, second, first, l2, rate, w))

    assert lost((epsilon - 2.0 * cost) / 2.0) == pytest.approx(epsilon - cost, abs=2e-3)
    assert lost((epsilon - cost) / 2.0) == pytest.approx(epsilon, abs=2e-3)
    assert lost((epsilon - cost) / 2.0) <= epsilon


def test_noise_just_above_the_slack_branch():
    """The same: the rest of epsilon may be anything above 0; the library's noise stays within a factor of that of half."""
    d, l2, c = 10, 1.0, 0.25
    epsilon = 2.0 * math.log1p(c / l2) + 1e-9
    rest = epsilon - 2.0 * math.log1p(c / l2)
    assert 2.0 * d / rest > 1.9e10
    plan = LogisticRegression(epsilon, alpha=l2 / 1000, mechanism="objective", centre=False, fit_intercept=False).plan(
        1000, d
    )
    assert plan.noise.norm < 2.0 * math.sqrt(d * (d + 1)) / (0.4 * epsilon)


def test_random_cosines_are_longer_than_one():
    """The same, algorithm 3: phases that undo the frequencies at one row."""
    rng = np.random.default_rng(0)
    frequencies, row = rng.normal(size=(50, 3)), rng.normal(size=3)
    phases = -(frequencies @ row)
    mapped = math.sqrt(2.0 / 50.0) * np.cos(frequencies @ row + phases)
    assert np.linalg.norm(mapped) == pytest.approx(math.sqrt(2.0))
    assert np.linalg.norm(FourierMap(3, 100).transform(row[None])) <= 1.0


def test_scaling_by_the_maximum():
    """The same, section 6: columns over their largest value, one row replaced."""
    rows = np.linspace(0.1, 1.0, 10)
    other = rows.copy()
    other[-1] = 1000.0
    moved = np.abs(rows / rows.max() - other / other.max())[:-1]
    assert np.all(moved > 0.99 * rows[:-1])


def test_the_sensitivity_is_half_of_the_printed_one():
    """Rubinstein and others, lemma 9: the databases of lemma 22 by their formulas, and the library's constant."""
    n, c, most, little = 10, 1.0, 0.5, 1e-6
    assert 1.0 / most > c * (most * n - little) / n
    first, second = c * (most * (n - 2) + little) / n, c * (most * n - little) / n
    tight = 2.0 * c * most / n
    assert tight * 0.99999 < abs(first - second) < tight < 4.0 * c * most / n
    assert output_sensitivity(1.0, most, n / c, Neighbours.REPLACE_ONE) == pytest.approx(tight, rel=1e-9)


def test_the_root_that_is_missing():
    """The same, corollary 19: noise of theorem 10 at the printed privacy, against the accuracy.

    Over rows of entries up to 1.
    """
    n, f, c, accuracy, failure = 1000, 100, 1.0, 0.5, 0.05
    kappa = math.sqrt(f)
    printed = 8.0 * kappa * c * (f * math.log(2.0) + math.log(1.0 / failure)) / (n * accuracy)
    rng = np.random.default_rng(0)

    def failures(privacy):
        noise = rng.laplace(scale=4.0 * c * kappa * math.sqrt(f) / (privacy * n), size=(2000, f))
        return np.mean(np.abs(noise).sum(axis=1) > accuracy)

    assert failures(printed) == 1.0
    assert failures(printed * math.sqrt(f)) <= failure


def test_the_order_of_the_privacy_of_kernels():
    """The same, theorem 21: the library's bound, from theorem 13, at two accuracies."""
    wide, narrow = (optimal_privacy_of_kernel(10**6, 2, 1.0, accuracy=a).upper for a in (0.1, 0.01))
    printed = 10.0**3 * (math.log(1.0 / (0.05 * 0.01)) / math.log(1.0 / (0.05 * 0.1))) ** 1.5
    assert printed < 1e4
    assert narrow / wide > 1e5


def test_the_pair_of_a_weak_machine_is_too_long():
    """The same, theorem 23: M = 2 n epsilon / C at the largest epsilon, sqrt(C) / (2 n)."""
    n = 100
    lengths = {c: 2.0 * n * (math.sqrt(c) / (2.0 * n)) / c for c in (0.04, 0.25, 1.0)}
    assert lengths[0.04] == pytest.approx(5.0)
    assert lengths[0.25] > 1.0 >= lengths[1.0]


def test_kernels_and_their_transforms():
    """The same, tables 1 and 2: values at 0, and masses of densities, by quadrature."""

    def printed(x):
        return np.prod(2.0 / (1.0 + x**2))

    assert printed(np.zeros(2)) == 4.0
    # The mean of cos(w t) over Laplace frequencies is 1 / (1 + t^2).
    for t in (0.5, 2.0):
        mean = 2.0 * integrate.quad(lambda w, t=t: 0.5 * math.exp(-w) * math.cos(w * t), 0.0, 60.0)[0]
        assert mean == pytest.approx(1.0 / (1.0 + t**2))
    # The transform of the Gaussian kernel, integrated: 2 pi. Over 2 pi it is a density, over 2 its mass is 3.14.
    mass = integrate.quad(lambda w: math.sqrt(2.0 * math.pi) * math.exp(-0.5 * w * w), -40.0, 40.0)[0]
    assert mass / (2.0 * math.pi) == pytest.approx(1.0)
    assert mass / 2.0 == pytest.approx(math.pi)


def test_the_laplacian_kernel_has_no_second_moment():
    """The same, theorem 13: the moment of Cauchy frequencies up to T by quadrature."""
    for most in (10.0, 1000.0):
        moment = 2.0 * integrate.quad(lambda w: w * w * stats.cauchy.pdf(w), 0.0, most, limit=500)[0]
        assert moment == pytest.approx(2.0 / math.pi * (most - math.atan(most)), rel=1e-6)
    assert math.isinf(second_moment("laplacian", 1))


def test_the_remark_after_theorem_23():
    """The same, remark 24: randomised response is private, and fails less often than the remark allows."""
    beta = 0.1
    truthful = math.exp(beta) / (1.0 + math.exp(beta))
    assert math.log(truthful / (1.0 - truthful)) == pytest.approx(beta)
    assert 1.0 - truthful == pytest.approx(0.475, abs=5e-4)
    assert 1.0 - truthful < 0.5 < math.exp(-beta) == pytest.approx(0.905, abs=5e-4)


def test_the_transform_without_sigma():
    """The same, table 2: the mean of cos(w t) is the kernel at frequencies of deviation 1 / sigma, not of 1."""
    sigma, t = 0.3, 0.2233
    kernel = math.exp(-(t**2) / (2.0 * sigma**2))
    means = [
        integrate.quad(lambda w, s=s: stats.norm.pdf(w, scale=s) * math.cos(w * t), -60.0, 60.0)[0]
        for s in (1.0 / sigma, 1.0)
    ]
    assert means[0] == pytest.approx(kernel) == pytest.approx(0.758, abs=5e-4)
    assert means[1] == pytest.approx(0.975, abs=5e-4)


def test_the_exponent_of_the_circle():
    """The same, lemma 25: the kernel between two neighbours of N points on a circle of radius 1, computed directly."""
    sigma, n_points = 0.3, 11
    gamma = math.exp(-1.0 / (2.0 * sigma**2))
    first, second = (np.array([math.cos(t), math.sin(t)]) for t in (0.0, 2.0 * math.pi / n_points))
    direct = math.exp(-float(((first - second) ** 2).sum()) / (2.0 * sigma**2))
    sine = math.sin(math.pi / n_points) ** 2
    assert direct == pytest.approx(gamma ** (4.0 * sine))
    assert direct == pytest.approx(0.171, abs=1e-3)
    assert gamma**4 * math.exp(sine) < 1e-9


def test_constants_of_add_or_remove_one():
    """Kifer, Smith and Thakurta: their deviation and ridge at (1, 1e-6), by the vertex bound of each relation."""
    epsilon, delta = 1.0, 1e-6
    mu = epsilon / math.sqrt(8.0 * math.log(2.0 / delta) + 4.0 * epsilon)
    left = epsilon - math.log1p(epsilon / 2.0)
    assert gaussian_delta(left, mu) < delta
    assert gaussian_delta(left, 2.0 * mu) + 2.0 * gaussian_delta(left, mu) > 10.0 * delta


def test_one_gaussian_piece_is_not_private():
    """Wang (2018): the constant on its own, and three pieces together with theirs."""
    epsilon, delta = 1.0, 1e-6
    assert gaussian_delta(epsilon, epsilon / math.sqrt(math.log(2.0 / delta))) == pytest.approx(7e-6, rel=0.02)
    of_three = math.sqrt(3.0) * epsilon / (3.0 * math.sqrt(math.log(6.0 / delta)))
    assert gaussian_delta(epsilon, of_three) < delta


def test_two_sides_of_a_minimiser():
    """Iyengar and others: their deviation, for points at distance r of the minimiser, and runs that stop 2 r apart."""
    epsilon, delta = 1.0, 1e-6
    deviation = (1.0 + math.sqrt(2.0 * math.log(1.0 / delta))) / epsilon
    assert gaussian_delta(epsilon, 1.0 / deviation) < delta
    assert gaussian_delta(epsilon, 2.0 / deviation) > 1e-4


def test_equality_leaves_no_epsilon():
    """Wang, Kifer and Lee: epsilon' = epsilon - log(1 + t / (2 n c)) at equality; the library keeps a half."""
    n, t, epsilon = 1000, 0.25, 0.01
    c = t / (2.0 * n * math.expm1(epsilon))
    assert epsilon - math.log1p(t / (2.0 * n * c)) == pytest.approx(0.0, abs=1e-12)
    plan = LogisticRegression(PureDP(epsilon), alpha=2.0 * c, mechanism="objective", centre=False, fit_intercept=False).plan(
        n, 3
    )
    assert plan.noise.scale > 0.45 * epsilon / 2.0


def test_matrices_of_one_row():
    """The same: |a x x^T - b y y^T| for a, b in [0, 1] and rows of norm 1."""
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(2, 10_000, 3))
    rows /= np.linalg.norm(rows, axis=2, keepdims=True)
    a, b = rng.random((2, 10_000))
    squares = a**2 + b**2 - 2.0 * a * b * (rows[0] * rows[1]).sum(axis=1) ** 2
    assert squares.max() <= 2.0
    apart = np.linalg.norm(np.diag([1.0, 0.0]) - np.diag([0.0, 1.0]))
    assert apart == pytest.approx(math.sqrt(2.0))
    assert apart < 2.0


def test_noise_and_gradient_depend_on_each_other():
    """Gaussian noise in the objective of one row x = 1: l2 w + l'(w) + b = 0, solved for b on a grid of its law."""
    weights = np.linspace(-30.0, 30.0, 20_001)
    loss, l2 = LogisticLoss(), 1.0
    slope = loss.derivative(weights)
    noise = -(l2 * weights + slope)
    density = stats.norm.pdf(noise, scale=2.0) * (l2 + loss.second_derivative(weights))
    density /= density.sum()

    def covariance(first, second):
        return density @ (first * second) - (density @ first) * (density @ second)

    correlation = covariance(noise, slope) / math.sqrt(covariance(noise, noise) * covariance(slope, slope))
    assert abs(correlation) > 0.5
