"""Calibrations: published fixtures, exact densities, and searches for a neighbour that breaks them."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.optimize import minimize

from confide.erm.class_losses import Softmax
from confide.erm.losses import Hinge, HuberHinge, LogisticHinge, LogisticLoss, SmoothHinge
from confide.errors import ParameterError
from confide.privacy.budgets import Neighbours
from confide.privacy.gaussian import (
    _loss_lines,
    calibrated_objective,
    curvature_cost,
    gradient_shift,
    least_l2,
    objective_noise_rate,
    output_sensitivity,
)
from tests.covering import pairs_of
from tests.privacy.densities import log_ratio, tight_huber_pair

REPLACE, ADD = Neighbours.REPLACE_ONE, Neighbours.ADD_OR_REMOVE_ONE
LOSSES = [LogisticLoss(), LogisticHinge(0.5), HuberHinge(0.3), SmoothHinge(0.5)]


def refined_noise_epsilon(epsilon, smoothness, row_norm, l2):
    """What one logarithm of the curvature leaves of epsilon, for any smooth loss."""
    return epsilon - math.log1p(smoothness * row_norm**2 / l2)


def published_noise_epsilon(epsilon, smoothness, row_norm, l2):
    """Algorithm 2 of Chaudhuri et al. (2011), step 1: two logarithms."""
    return epsilon - 2.0 * math.log1p(smoothness * row_norm**2 / l2)


def published_least_l2(epsilon, smoothness, row_norm):
    """Algorithm 2 of Chaudhuri et al. (2011), step 2: the total ridge of its slack branch."""
    return smoothness * row_norm**2 / math.expm1(epsilon / 4.0)


def test_fixture_numbers_of_the_literature_hold_to_nine_digits():
    """n = 1000, alpha = .01, epsilon = 1, R = 1 (l2 = 10); slack branch: n = 100, alpha = 1e-4, epsilon = .1."""
    assert output_sensitivity(1.0, 1.0, 10.0, REPLACE) == pytest.approx(0.2, rel=1e-9)
    assert published_noise_epsilon(1.0, 0.25, 1.0, 10.0) == pytest.approx(0.9506147748, abs=5e-11)
    assert refined_noise_epsilon(1.0, 0.25, 1.0, 10.0) == pytest.approx(0.9753073874, abs=5e-11)
    assert objective_noise_rate(1.0, LogisticLoss().constants, 1.0, 10.0, REPLACE) == pytest.approx(0.5, rel=1e-9)
    assert published_noise_epsilon(1.0, HuberHinge(0.5).constants.smoothness, 1.0, 10.0) == pytest.approx(
        0.8093796404, abs=5e-11
    )
    assert refined_noise_epsilon(1.0, HuberHinge(0.5).constants.smoothness, 1.0, 10.0) == pytest.approx(
        0.9046898202, abs=5e-11
    )
    assert published_noise_epsilon(1.0, SmoothHinge(0.5).constants.smoothness, 1.0, 10.0) == pytest.approx(
        0.7204761152, abs=5e-11
    )
    assert published_least_l2(0.1, 0.25, 1.0) / 100 - 1e-4 == pytest.approx(0.0986552083, abs=5e-11)
    assert least_l2(0.1, LogisticLoss().constants, 1.0) / 100 - 1e-4 == pytest.approx(0.0486604162, abs=5e-11)


def test_the_shift_doubles_when_a_row_is_replaced():
    """2L row lengths for replace-one, L for add-or-remove-one; the sensitivity is linear in L and R."""
    assert gradient_shift(3.0, REPLACE) == 6.0
    assert gradient_shift(3.0, ADD) == 3.0
    assert output_sensitivity(2.0, 3.0, 4.0, ADD) == pytest.approx(1.5, rel=1e-9)


def test_the_huber_rate_equals_the_refined_formula():
    """Constant curvature makes the loss-specific bound the refined one: beta = (epsilon - log(1 + cR^2/l2)) / 2."""
    loss = HuberHinge(0.5)
    for row_norm, l2, epsilon in ((1.0, 10.0, 1.0), (2.0, 60.0, 0.7), (0.5, 3.0, 2.0)):
        expected = refined_noise_epsilon(epsilon, 1.0, row_norm, l2) / 2
        found = objective_noise_rate(epsilon, loss.constants, row_norm, l2, REPLACE)
        assert expected * (1 - 1e-3) <= found <= expected


@pytest.mark.parametrize(("epsilon", "l2"), [(0.5, 5.0), (1.0, 2.0), (1.0, 5.0), (2.0, 1.0), (2.0, 2.0), (2.0, 5.0)])
def test_the_tight_huber_pair_spends_all_of_epsilon_and_no_more(l2, epsilon):
    """The exact log-ratio at the worst pair lies in [0.999, 1] of epsilon; twice the rate would exceed it."""
    loss = HuberHinge(0.5)
    rate, total = calibrated_objective(epsilon, loss.constants, 1.0, l2, REPLACE)
    assert total == l2
    first, second, w = tight_huber_pair(loss, l2, 1e-4)
    worst = abs(log_ratio(loss, first, second, l2, rate, w))
    assert 0.999 * epsilon <= worst <= epsilon
    assert abs(log_ratio(loss, first, second, l2, 1.3 * rate, w)) > epsilon * 1.01


def test_the_tight_huber_pair_shows_what_the_published_calibration_wastes():
    """With the published rate the same pair reaches epsilon - log(1 + c/l2)."""
    loss, epsilon, l2 = HuberHinge(0.5), 1.0, 5.0
    first, second, w = tight_huber_pair(loss, l2, 1e-4)
    rate = published_noise_epsilon(epsilon, 1.0, 1.0, l2) / 2
    assert abs(log_ratio(loss, first, second, l2, rate, w)) == pytest.approx(epsilon - math.log1p(1 / l2), abs=1e-3)


@pairs_of(loss=LOSSES, neighbours=[REPLACE, ADD], row_norm=[1.0, 3.0])
def test_no_neighbour_exceeds_epsilon_in_a_random_search(loss, neighbours, row_norm):
    """Exact densities over random pairs in d = 1, 2, 3 with rows of norm R; both directions."""
    rng = np.random.default_rng(5)
    worst = 0.0
    for _ in range(600):
        d, n = int(rng.integers(1, 4)), int(rng.integers(1, 6))
        epsilon = float(np.exp(rng.uniform(-1, 1.5)))
        rate, l2 = calibrated_objective(
            epsilon, loss.constants, row_norm, float(np.exp(rng.uniform(-2, 4))) * row_norm**2, neighbours
        )
        rows = rng.normal(size=(n + 1, d))
        rows *= row_norm / np.maximum(1e-12, np.linalg.norm(rows, axis=1))[:, None] * rng.choice([1.0, 0.7], size=(n + 1, 1))
        w = rng.normal(size=d) * np.exp(rng.uniform(-1, 3)) / row_norm
        first = rows[:n]
        second = rows[: n - 1] if neighbours is ADD else np.vstack([rows[: n - 1], rows[n:]])
        worst = max(worst, abs(log_ratio(loss, first, second, l2, rate / row_norm, w)) / epsilon)
    assert 0.3 < worst <= 1.0


def searched_with_weights(loss, largest, neighbours, calibrated_for, enough=np.inf):
    """The largest privacy loss over epsilon among 600 random pairs, or the first above `enough`.

    Each row weighs up to `largest`, the one replaced too.
    """
    rng = np.random.default_rng(8)
    worst = 0.0
    for _ in range(600):
        d, n = int(rng.integers(1, 4)), int(rng.integers(1, 6))
        epsilon, row_norm = float(np.exp(rng.uniform(-1, 1.5))), 2.0
        asked = float(np.exp(rng.uniform(-2, 4))) * largest * row_norm**2
        rate, l2 = calibrated_objective(epsilon, loss.constants.weighted(calibrated_for), row_norm, asked, neighbours)
        rows = rng.normal(size=(n + 1, d))
        rows *= row_norm / np.linalg.norm(rows, axis=1)[:, None] * rng.choice([1.0, 0.7], size=(n + 1, 1))
        # The last two are the row that goes and the row that comes: often nearly opposite, each with a weight of its own.
        if rng.random() < 0.5:
            rows[n] = -rows[n - 1]
        counts = largest * rng.choice([1.0, 1.0, rng.random(), 0.0], size=n + 1)
        first, second = np.arange(n), np.delete(np.arange(n + 1), n - 1) if neighbours is REPLACE else np.arange(n - 1)
        # Margins of a few units, where the loss bends, and noise that is long and along the row.
        w = rng.normal(size=d) * np.exp(rng.uniform(-1, 2)) / row_norm
        pair = (rows[first], rows[second]), (counts[first], counts[second])
        worst = max(worst, abs(log_ratio(loss, *pair[0], l2, rate / row_norm, w, pair[1])) / epsilon)
        if worst > enough:
            break
    return worst


@pairs_of(loss=LOSSES, neighbours=[REPLACE, ADD], largest=[0.2, 7.0])
def test_no_neighbour_with_weights_exceeds_epsilon_in_a_random_search(loss, neighbours, largest):
    """Exact densities of random pairs, weights from 0 to the cap; calibrated for half the cap the search exceeds epsilon."""
    assert 0.6 < searched_with_weights(loss, largest, neighbours, largest) <= 1.0
    assert searched_with_weights(loss, largest, neighbours, 0.5 * largest, enough=1.0) > 1.0


@pytest.mark.parametrize("largest", [0.2, 1.0, 7.0])
def test_the_tight_huber_pair_spends_all_of_epsilon_at_the_largest_weight_and_less_at_any_other(largest):
    """[0.999, 1] of epsilon where both rows weigh the most; a lighter one on either side lowers it."""
    loss, epsilon = HuberHinge(0.5), 1.0
    rate, total = calibrated_objective(epsilon, loss.constants.weighted(largest), 1.0, 2.0 * largest, REPLACE)
    assert total == 2.0 * largest
    first, second, w = tight_huber_pair(loss, 2.0, 1e-4)
    full = np.full(len(first), largest)
    losses = {}
    for one in (1.0, 0.9, 0.1, 0.0):
        for other in (1.0, 0.9, 0.1, 0.0):
            counts = full.copy(), full.copy()
            counts[0][-1], counts[1][-1] = one * largest, other * largest
            losses[one, other] = abs(log_ratio(loss, first, second, total, rate, w, counts))
    assert max(losses, key=losses.get) == (1.0, 1.0)
    assert 0.999 * epsilon <= losses[1.0, 1.0] <= epsilon


@pytest.mark.parametrize("largest", [0.2, 7.0])
def test_two_logistic_rows_of_the_largest_weight_spend_all_of_epsilon(largest):
    """Just below the ridge at which the curvature costs nothing: exact loss in [0.99, 1] of epsilon, and less if lighter.

    One record bends the objective at the slope where that costs most, its replacement is opposite and steep; common records
    push the noise along the first axis.
    """
    loss, epsilon, length = LogisticLoss(), 1.0, 1000.0
    rate, l2 = calibrated_objective(epsilon, loss.constants.weighted(largest), 1.0, largest, REPLACE)
    slopes = np.linspace(0.001, 0.999, 999)
    steepest = slopes[np.argmax(rate * largest * slopes + np.log1p(largest * slopes * (1.0 - slopes) / l2))]
    one, other = np.log(1.0 / steepest - 1.0) / length, -40.0 / length
    common = np.tile([np.sqrt(1.0 - 0.03**2), -0.03], (100_000, 1))
    first = np.vstack([common, [-np.sqrt(1.0 - one**2), one]])
    second = np.vstack([common, [np.sqrt(1.0 - other**2), other]])
    losses = []
    for weights in ((1.0, 1.0), (0.95, 1.0), (1.0, 0.95), (0.2, 1.0)):
        counts = [np.append(np.full(100_000, largest), largest * weight) for weight in weights]
        losses.append(abs(log_ratio(loss, first, second, l2, rate, np.array([0.0, length]), counts)))
    assert 0.99 * epsilon < losses[0] <= epsilon
    assert max(losses[1:]) < losses[0]


def test_the_unit_of_the_weights_does_not_matter():
    """Weights and ridge times 16: the rate divided by 16, the ridge of the slack branch times 16, the same sensitivity."""
    for loss in (LogisticLoss(), HuberHinge(0.5)):
        for neighbours in (REPLACE, ADD):
            for l2 in (1e-3, 1.0, 100.0):
                rate, total = calibrated_objective(0.7, loss.constants, 2.0, l2, neighbours)
                scaled = calibrated_objective(0.7, loss.constants.weighted(16.0), 2.0, 16.0 * l2, neighbours)
                assert scaled == pytest.approx((rate / 16.0, 16.0 * total), rel=1e-12)
    assert output_sensitivity(16.0, 2.0, 32.0, REPLACE) == output_sensitivity(1.0, 2.0, 2.0, REPLACE)


def ideal_privacy_loss(loss, rate, row_norm, l2, slopes, neighbours):
    """The most that a hand-made worst case reaches at slopes: aligned long noise, rows nearly orthogonal to the weights."""
    already = loss.constants.lipschitz if neighbours is REPLACE else 0.0
    curvatures = loss.constants.curvature_at_slope(slopes)
    return float((rate * (already + slopes) + np.log1p(curvatures * row_norm**2 / l2)).max())


@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: loss.constants.name)
@pytest.mark.parametrize("neighbours", [REPLACE, ADD])
def test_the_grid_bound_is_above_every_slope_and_close(loss, neighbours):
    """The upper bound on E(beta) covers a finer grid, within a thousandth."""
    for row_norm, l2, rate in ((1.0, 1.0, 0.3), (2.0, 0.5, 0.05), (1.0, 30.0, 0.01)):
        exact = ideal_privacy_loss(loss, rate, row_norm, l2, np.linspace(0, 1, 30_011), neighbours)
        slopes, intercepts = _loss_lines(loss.constants, row_norm, l2, neighbours)
        bound = (rate * slopes + intercepts).max()
        assert exact <= bound <= exact * 1.001


@pytest.mark.parametrize("loss", [LogisticLoss(), LogisticHinge(0.5)], ids=lambda loss: loss.constants.name)
@pytest.mark.parametrize("neighbours", [REPLACE, ADD])
def test_the_logistic_loss_pays_nothing_for_curvature_exactly_where_the_theorem_says(neighbours, loss):
    """beta = epsilon / shift iff epsilon l2 >= shift R^2; at half that ridge the free rate would exceed epsilon by 5%."""
    epsilon, row_norm = 0.3, 2.0
    shift = gradient_shift(1.0, neighbours)
    edge = shift * row_norm**2 / epsilon
    free = epsilon / shift
    assert objective_noise_rate(epsilon, loss.constants, row_norm, 1.001 * edge, neighbours) == pytest.approx(free, rel=1e-9)
    assert objective_noise_rate(epsilon, loss.constants, row_norm, 0.5 * edge, neighbours) < 0.99 * free
    slopes = np.linspace(0, 1, 2001)
    at_edge = ideal_privacy_loss(loss, free, row_norm, edge, slopes, neighbours)
    below = ideal_privacy_loss(loss, free, row_norm, 0.5 * edge, slopes, neighbours)
    assert at_edge <= epsilon * (1 + 1e-9)
    assert below > 1.02 * epsilon


def test_curvature_enters_with_the_square_of_the_row_norm():
    """At R = 10 the curvature term uses c R^2: with c R a worst case exceeds epsilon."""
    loss, epsilon, row_norm, l2 = HuberHinge(0.5), 3.0, 10.0, 40.0
    rate = objective_noise_rate(epsilon, loss.constants, row_norm, l2, REPLACE)
    assert ideal_privacy_loss(loss, rate, row_norm, l2, np.ones(1), REPLACE) == pytest.approx(epsilon, rel=1e-3)
    wrong = (epsilon - math.log1p(1.0 * row_norm / l2)) / 2
    assert ideal_privacy_loss(loss, wrong, row_norm, l2, np.ones(1), REPLACE) > 1.2 * epsilon


@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: loss.constants.name)
@pytest.mark.parametrize("epsilon", [0.01, 0.1, 1.0, 4.0])
@pytest.mark.parametrize("neighbours", [REPLACE, ADD])
def test_the_slack_branch_leaves_half_the_budget_to_the_noise(loss, epsilon, neighbours):
    """However small the ridge asked for, noise stays bounded and the privacy loss stays within epsilon."""
    for l2 in (1e-6, 1e-2, 1.0, 1e4):
        rate, total = calibrated_objective(epsilon, loss.constants, 2.0, l2, neighbours)
        assert total >= l2
        assert rate * gradient_shift(1.0, neighbours) >= epsilon / 2 * (1 - 1e-6)
        assert ideal_privacy_loss(loss, rate, 2.0, total, np.linspace(0, 1, 4001), neighbours) <= epsilon


def test_objective_perturbation_refuses_the_plain_hinge():
    """Its curvature is infinite at the kink."""
    with pytest.raises(ParameterError, match="smooth"):
        calibrated_objective(1.0, Hinge().constants, 1.0, 10.0, REPLACE)


def exact_minimiser(loss, signed_rows, l2):
    """Minimiser by BFGS from several starts, polished; d is small."""

    def value(w):
        return loss.value(signed_rows @ w).sum() + 0.5 * l2 * w @ w

    def gradient(w):
        return loss.derivative(signed_rows @ w) @ signed_rows + l2 * w

    return minimize(value, np.zeros(signed_rows.shape[1]), jac=gradient, method="BFGS", options={"gtol": 1e-9}).x


@pytest.mark.parametrize("neighbours", [REPLACE, ADD])
def test_no_neighbour_moves_the_minimiser_further_than_the_sensitivity(neighbours):
    """Random neighbours plus Nelder-Mead over the differing rows: distance over bound in (0.4, 1]."""
    rng = np.random.default_rng(9)
    loss = HuberHinge(0.1)
    worst = 0.0
    for _ in range(15):
        d, n = int(rng.integers(1, 3)), int(rng.integers(1, 4))
        row_norm, l2 = 2.0, float(np.exp(rng.uniform(0, 3)))
        common = rng.normal(size=(n - 1, d)) * 0.3

        def ratio(flat, d=d, common=common, row_norm=row_norm, l2=l2):
            pair = flat.reshape(2, d)
            pair = pair * np.minimum(1.0, row_norm / np.maximum(1e-12, np.linalg.norm(pair, axis=1)))[:, None]
            first = exact_minimiser(loss, np.vstack([common, pair[:1]]), l2)
            second = (
                exact_minimiser(loss, common if neighbours is ADD else np.vstack([common, pair[1:]]), l2)
                if (neighbours is REPLACE or len(common))
                else np.zeros(d)
            )
            return -np.linalg.norm(first - second) / output_sensitivity(1.0, row_norm, l2, neighbours)

        found = minimize(ratio, rng.normal(size=2 * d) * 2, method="Nelder-Mead", options={"maxfev": 80})
        worst = max(worst, -found.fun)
    assert 0.9 < worst <= 1.0 + 1e-6


def test_the_hinge_attains_the_sensitivity():
    """d = 1, x = +1 against x = -1, other rows 0, l2 > 1: the minimisers are +-1/l2, exactly 2LR/l2 apart."""
    l2 = 4.0
    grid = np.linspace(-1, 1, 200_001)
    first = grid[np.argmin(np.maximum(0, 1 - grid) + l2 / 2 * grid**2)]
    second = grid[np.argmin(np.maximum(0, 1 + grid) + l2 / 2 * grid**2)]
    assert abs(first - second) == pytest.approx(output_sensitivity(1.0, 1.0, l2, REPLACE), rel=1e-4)


@pytest.mark.parametrize("share", [0.1, 0.5, 0.9])
@pytest.mark.parametrize("loss", [LogisticLoss(), HuberHinge(0.3), Softmax(4)], ids=lambda loss: loss.constants.name)
def test_the_least_ridge_leaves_the_noise_its_share(loss, share):
    """(T / r) R^2 / (exp((1 - q) epsilon / r) - 1): there the curvature costs exactly (1 - q) epsilon."""
    for epsilon in (0.1, 1.0, 30.0):
        l2 = least_l2(epsilon, loss.constants, 3.0, share)
        exact = loss.constants.trace / loss.constants.rank * 9.0 / math.expm1((1.0 - share) * epsilon / loss.constants.rank)
        assert exact < l2 <= exact * (1.0 + 1e-11)
        assert curvature_cost(loss.constants, 3.0, l2) == pytest.approx((1.0 - share) * epsilon, rel=1e-9)


def test_the_least_ridge_of_a_huge_budget_is_no_overflow():
    """Beyond an exponent of 700 the ridge is that of 700, which is as good as 0."""
    loss = LogisticLoss()
    assert (
        least_l2(1e6, loss.constants, 1.0)
        == least_l2(1e7, loss.constants, 1.0)
        == pytest.approx(0.25 * math.exp(-700.0), rel=1e-9)
    )
    assert least_l2(1300.0, loss.constants, 1.0) == pytest.approx(0.25 * math.exp(-650.0), rel=1e-9)


@pytest.mark.parametrize("row_norm", [1.0, 3.0])
@pytest.mark.parametrize("neighbours", [REPLACE, ADD])
@pytest.mark.parametrize("weight", [0.125, 8.0])
def test_the_ridge_is_raised_just_where_less_than_half_of_epsilon_would_be_left(neighbours, weight, row_norm):
    """A loss of constant curvature: half of epsilon is left at the least ridge; 1% above it nothing is raised.

    Whatever the size of the loss, which the weight of a row multiplies.
    """
    epsilon, loss = 0.8, HuberHinge(0.5).constants.weighted(weight)
    least = weight * row_norm**2 / math.expm1(0.4)
    shift = (2.0 if neighbours is REPLACE else 1.0) * weight
    for asked in (0.01 * least, 0.99 * least):
        rate, total = calibrated_objective(epsilon, loss, row_norm, asked, neighbours)
        assert total == pytest.approx(least, rel=1e-9)
        assert rate == pytest.approx(0.4 / shift, rel=1e-6)
    rate, total = calibrated_objective(epsilon, loss, row_norm, 1.01 * least, neighbours)
    assert total == 1.01 * least
    assert rate == pytest.approx((0.8 - math.log1p(math.expm1(0.4) / 1.01)) / shift, rel=1e-6)


def test_a_ridge_that_leaves_nothing_has_the_rate_zero():
    """And not a negative one, which would be a law of no noise."""
    assert objective_noise_rate(0.5, HuberHinge(0.5).constants, 1.0, 1e-3, REPLACE) == 0.0
    assert objective_noise_rate(0.5, LogisticLoss().constants, 1.0, 1e-6, ADD) == 0.0


class PointedBend:
    """A loss that bends at one slope alone, between two slopes of the grid."""

    lipschitz, smoothness, trace, rank, tapered = 1.0, 1.0, 1.0, 1, False

    def __init__(self, peak):
        self.peak = peak

    def curvature_at_slope(self, slopes):
        """Half of the largest at the ends of the cell, and nothing at the next ones."""
        return np.maximum(0.0, 1.0 - 2.0**14 * np.abs(slopes - self.peak))


@pytest.mark.parametrize("cell", [0, 1, 5000, 2**14 - 2, 2**14 - 1])
@pytest.mark.parametrize("part", [0.49, 0.51])
def test_the_largest_bend_may_lie_between_two_slopes_of_the_grid(cell, part):
    """The line of its cell has all of it: at a rate of 1 the slope and log(1 + R^2 / l2), here log 5."""
    peak = (cell + part) * 2.0**-14
    slopes, intercepts = _loss_lines(PointedBend(peak), 2.0, 1.0, ADD)
    assert intercepts[cell] == pytest.approx(math.log(5.0), rel=1e-8)
    assert slopes[cell] >= peak
    assert np.count_nonzero(intercepts > 1e-6) <= 3


@pytest.mark.parametrize("share", [0.2, 0.8])
def test_the_ridge_is_raised_where_less_than_the_share_of_the_noise_is_left(share):
    """Of epsilon: the rate is q epsilon / 2 afterwards, and stays above it where nothing was raised."""
    loss, epsilon = HuberHinge(0.5), 0.7
    limit = least_l2(epsilon, loss.constants, 1.0, share)
    for factor in (0.5, 0.98, 1.02, 4.0):
        rate, l2 = calibrated_objective(epsilon, loss.constants, 1.0, factor * limit, REPLACE, share)
        assert l2 == pytest.approx(max(1.0, factor) * limit, rel=1e-9)
        assert rate >= 0.5 * share * epsilon * (1.0 - 1e-8)


def test_curvature_is_free_only_with_room_for_rounding():
    """At free l2 = t R^2 (1 + x), x above 2^-40, the rate is epsilon / shift less its margin, and else below that."""
    free = 0.5 * (1.0 - 2.0**-40)
    for beyond, is_free in ((2.0**-39, True), (2.0**-42, False), (-(2.0**-42), False), (-(2.0**-39), False)):
        rate = objective_noise_rate(
            1.0, LogisticLoss().constants, 1.0, LogisticLoss().constants.tail / free * (1.0 + beyond), REPLACE
        )
        assert (rate == pytest.approx(free, rel=2.0**-45)) == is_free


def test_a_steep_slope_that_loses_digits_is_covered_by_one_part_in_two_to_the_thirty():
    """In the curvature: log(1 + 4 (1 + 2^-30)) is 4 / 5 of that above log 5."""
    _, intercepts = _loss_lines(PointedBend(0.5), 2.0, 1.0, ADD)
    assert intercepts.max() - math.log(5.0) == pytest.approx(0.8 * 2.0**-30, rel=1e-3, abs=0.0)
