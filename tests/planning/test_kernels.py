"""Lemmas of Rubinstein, Bartlett, Huang and Taft for any loss and kernel, against hand, and against kernels and machines."""

from __future__ import annotations

import math

import numpy as np
import pytest

from confide import ParameterError
from confide.features.fourier import FourierMap
from confide.planning.kernels import (
    features_for_kernel,
    kernel_error_for_accuracy,
    laplace_scale_for_kernel,
    pairs_by_lemma_18,
    pairs_for_kernel_error,
    second_moment,
)
from tests.planning.test_kernels_support_vectors import gram, kernel_machine


@pytest.mark.parametrize(("kernel", "scale"), [("rbf", 0.5), ("cauchy", 2.0)])
def test_second_moments_are_those_of_the_frequencies(kernel, scale):
    """Against the frequencies that the library draws; infinite for the Laplacian kernel, whose draws do not settle."""
    frequencies = FourierMap(3, 40_000, kernel=kernel, length_scale=scale).frequencies
    assert (frequencies**2).sum(axis=1).mean() == pytest.approx(second_moment(kernel, 3, scale), rel=0.05)
    assert math.isinf(second_moment("laplacian", 3))


@pytest.mark.parametrize("power", [0.3, 0.5, 0.8])
@pytest.mark.parametrize("kernel", ["rbf", "laplacian", "cauchy"])
def test_moments_of_coordinates_are_those_of_their_laws(kernel, power):
    """The constants of the lemma, by quantiles of the law on a fine grid."""
    from scipy import stats

    from confide.planning.kernels import _MOMENTS

    law = {"rbf": stats.norm, "laplacian": stats.cauchy, "cauchy": stats.laplace}[kernel]
    exact = 2.0 * float(law.expect(lambda x: x**power, lb=0.0, ub=60.0)) if kernel != "laplacian" else None
    if exact is None:
        exact = 1.0 / math.cos(0.5 * math.pi * power)
        draws = np.abs(np.tan(math.pi * (np.arange(400_000) + 0.5) / 800_000))
        assert (draws**power).mean() == pytest.approx(exact, rel=0.1)
    assert math.exp(_MOMENTS[kernel](power)) == pytest.approx(exact, rel=1e-4)


def test_lemma_18_by_hand():
    """4 (d + 2) / e^2 log(2^8 p^2 D^2 / (f e^2))."""
    expected = 4 * 5 / 0.04 * math.log(2**8 * (2.0 * 3 / 0.25) * 9.0 / (0.1 * 0.04))
    found = pairs_by_lemma_18(3, error=0.2, failure=0.1, kernel="cauchy", length_scale=0.5, diameter=3.0)
    assert found == math.ceil(expected)


def test_the_other_lemma_by_hand():
    """At one power and one division it is a little more than the least of them."""
    d, error, failure, scale, diameter, power, share = 2, 0.2, 0.1, 0.7, 3.0, 0.75, 0.1
    k = 2.0**0.25 * d / math.cos(0.5 * math.pi * power) / scale**power
    radius = (share * error * 0.05 / 1.05 / k) ** (1.0 / power)
    assert k * radius**power / (share * error - k * radius**power) == pytest.approx(failure / 2)
    net = (1.0 + 2.0 * diameter / radius) ** d
    pairs = 2.0 / (error * (1.0 - share)) ** 2 * math.log(4.0 * net / failure)
    assert 2.0 * net * math.exp(-pairs * ((1.0 - share) * error) ** 2 / 2.0) == pytest.approx(failure / 2)
    found = pairs_for_kernel_error(
        d, error=error, failure=failure, kernel="laplacian", length_scale=scale, diameter=diameter
    )
    assert 0.7 * pairs < found <= math.ceil(pairs)


@pytest.mark.parametrize("kernel", ["rbf", "laplacian", "cauchy"])
def test_as_many_pairs_come_as_near_to_the_kernel(kernel):
    """On a grid of differences, of 30 maps with different seeds none is farther; with a sixteenth of the pairs most are."""
    error, diameter = 0.35, 2.0
    pairs = pairs_for_kernel_error(1, error=error, failure=0.1, kernel=kernel, diameter=diameter)
    points = np.linspace(0.0, diameter, 400)[:, None]
    exact = gram(points, points[:1], 1.0, kernel)[:, 0]

    def worst(n_pairs, seed):
        rows = FourierMap(1, 2 * n_pairs, kernel=kernel, seed=seed).transform(points)
        return np.abs(rows @ rows[0] - exact).max()

    assert max(worst(pairs, seed) for seed in range(30)) < error
    assert np.median([worst(max(1, pairs // 16), seed) for seed in range(30)]) > error / 3.0


def test_lemma_17_by_hand_and_for_any_loss():
    """min(1, a^2 / (4 (M + 2 sqrt((C L + M / 2) M))^2)), M = C L unless it is given."""
    by_hand = 0.3**2 / (4.0 * (6.0 + 2.0 * math.sqrt((10.0 * 2.0 + 3.0) * 6.0)) ** 2)
    assert kernel_error_for_accuracy(0.3, 0.1, lipschitz=2.0, dual_norm=6.0) == pytest.approx(by_hand)
    hinge = 0.3**2 / (4.0 * (10.0 * (1.0 + math.sqrt(6.0))) ** 2)
    assert kernel_error_for_accuracy(0.3, 0.1) == pytest.approx(hinge)
    assert kernel_error_for_accuracy(0.3, 0.1, lipschitz=2.0) == pytest.approx(hinge / 4.0)
    assert kernel_error_for_accuracy(1e9, 0.1) == 1.0


def test_machines_of_near_kernels_are_within_half_of_the_accuracy():
    """Lemma 17: exact machines of a kernel and of one that is off by the error, as a mixture with the constant kernel is."""
    rng = np.random.default_rng(2)
    points, labels, c = rng.normal(size=(12, 2)), rng.choice([-1.0, 1.0], size=12), 0.5
    accuracy = 1.9
    error = kernel_error_for_accuracy(accuracy, 1.0 / c)
    exact = gram(points, points, 1.0)
    dual = kernel_machine(points, labels, c, 1.0)
    frequencies = rng.normal(size=(200, 2)) @ np.eye(2)
    features = np.hstack([np.cos(points @ frequencies.T), np.sin(points @ frequencies.T)]) / math.sqrt(200)
    near = features @ features.T
    blend = min(1.0, error / np.abs(near - exact).max())
    mixed = (1.0 - blend) * exact + blend * near
    other = np.zeros(12)
    for _ in range(4000):
        for place in range(12):
            slope = 1.0 - labels[place] * (mixed[place] @ (other * labels))
            other[place] = np.clip(other[place] + slope, 0.0, c / 12)
    assert np.abs(mixed - exact).max() <= error * (1 + 1e-12)
    assert np.abs(mixed @ (other * labels) - exact @ dual).max() <= accuracy / 2.0


@pytest.mark.parametrize("n_pairs", [1, 30])
def test_corollary_15_keeps_half_of_the_accuracy_with_half_of_the_failure(n_pairs):
    """By hand, by draws of the largest change over all phases, and eight times the scale fails."""
    scale = laplace_scale_for_kernel(0.8, 0.1, n_pairs)
    root = math.sqrt(n_pairs)
    assert scale == pytest.approx(min(0.8 / (16 * math.log(2) * root), 0.8 * root / (8 * math.log(20))))
    noise = np.random.default_rng(0).laplace(scale=scale, size=(4000, n_pairs, 2))
    change = np.hypot(noise[..., 0], noise[..., 1]).sum(axis=1) / root
    assert np.mean(change > 0.4) <= 0.05
    assert np.mean(8.0 * change > 0.4) > 0.05


@pytest.mark.parametrize("kernel", ["rbf", "cauchy", "laplacian"])
def test_theorem_13_is_its_lemmas_put_together(kernel):
    """Half of the failure for the features at the error of lemma 17, for a loss of slope 2."""
    facts = {"kernel": kernel, "length_scale": 0.5, "diameter": 2.0}
    error = kernel_error_for_accuracy(0.5, 0.3, lipschitz=2.0)
    lemma = pairs_for_kernel_error if kernel == "laplacian" else pairs_by_lemma_18
    expected = lemma(2, error=error, failure=0.05, **facts)
    found = features_for_kernel(2, accuracy=0.5, failure=0.1, alpha=0.3, lipschitz=2.0, **facts)
    assert found == pytest.approx(expected, rel=1e-9)


def test_the_number_of_features_is_that_of_the_theorem():
    """By hand for one case; the kernel is then as near as it says on random points."""
    theta = (0.5 / (2 * (1 + math.sqrt(6)))) ** 4
    expected = 4 * 4 / theta * math.log(2**9 * 2 / 0.25 * 9 / (0.05 * theta))
    assert features_for_kernel(2, accuracy=0.5, failure=0.05, alpha=1.0, length_scale=0.5, diameter=3.0) == math.ceil(
        expected
    )


def test_a_theorem_that_asks_for_too_many_features_is_refused():
    """With what to change, in place of an overflow."""
    with pytest.raises(ParameterError, match="more features than a number can hold"):
        features_for_kernel(2, accuracy=1e-80, failure=0.05, alpha=1e-6)
    assert features_for_kernel(2, accuracy=1e200, failure=0.05, alpha=1e-6, diameter=1e-200) == 1


def test_what_no_lemma_covers_is_refused():
    """The Laplacian kernel in lemma 18, unknown kernels, numbers outside their ranges."""
    with pytest.raises(ParameterError, match="laplacian"):
        pairs_by_lemma_18(2, error=0.1, failure=0.1, kernel="laplacian")
    for kernel in ("linear", ""):
        with pytest.raises(ParameterError, match="kernel must be one of"):
            pairs_for_kernel_error(2, error=0.1, failure=0.1, kernel=kernel)
    with pytest.raises(ParameterError, match="dual_norm"):
        kernel_error_for_accuracy(0.1, 0.1, dual_norm=-1.0)
    with pytest.raises(ParameterError, match="failure"):
        laplace_scale_for_kernel(0.1, 0.0, 3)
