"""Moments of a privacy loss between two ends: chances of nodes, what lies beyond them, and the worst law."""

from __future__ import annotations

import math

import mpmath
import numpy as np
import pytest
from scipy import integrate, stats

from confide.privacy import objective_account
from confide.privacy.loss_ends import RowEnds
from confide.privacy.objective_account import LARGEST_SHIFT, log_moments


def test_chances_of_nodes_are_means_of_hats():
    """Against 40 digits, to 2 parts in 10^11 from the first node to the last; what rounding up covers is more."""
    nodes, chances = objective_account._NODES, objective_account._CHANCES
    assert len(nodes) == len(chances)
    with mpmath.workdps(40):
        step = mpmath.mpf(nodes[1] - nodes[0])

        def excess(z):
            return mpmath.npdf(z) - z * mpmath.erfc(z / mpmath.sqrt(2)) / 2

        for z, chance in list(zip(nodes, chances, strict=True))[::7]:
            z = abs(mpmath.mpf(float(z)))
            exact = (excess(z - step) - 2 * excess(z) + excess(z + step)) / step
            assert abs(chance / exact - 1) < objective_account._SUMS_UP - 1.0
    assert math.fsum(chances) == pytest.approx(1.0, abs=1e-12)


@pytest.mark.parametrize(("raised", "shift"), [(1.0, 0.5), (3.0, 2.0), (0.1, 60.0)])
def test_what_lies_beyond_the_last_nodes_is_counted(raised, shift):
    """An end that moves by the shift a unit: at least its mean there, on both sides, and at most twice that."""
    far = float(objective_account._NODES[-1])
    ends = np.array([0.2, 0.0, 1.3])
    (found,) = objective_account._beyond(np.array([[raised]]), shift, ends)
    with mpmath.workdps(30):
        slope = mpmath.mpf(raised) * shift
        above = mpmath.exp(raised * 1.3 - slope * far + slope**2 / 2) * mpmath.ncdf(slope - far)
        below = mpmath.exp(raised * 0.2) * mpmath.ncdf(-far)
        assert above + below <= found <= 2.01 * above


@pytest.mark.parametrize("n", [1, 3, 20])
def test_chances_of_the_largest_are_above_its_law_and_close(n):
    """The mean of a rising convex function of the largest of n normal variables, within 1%."""
    rising = np.exp(objective_account._NODES)
    found = rising[0] + np.diff(rising) @ objective_account._chances_of_largest(n)
    exact, _ = integrate.quad(lambda z: math.exp(z) * n * stats.norm.pdf(z) * stats.norm.cdf(z) ** (n - 1), -20, 25)
    assert exact <= found <= 1.01 * exact


@pytest.mark.parametrize("shift", [0.01, 0.5, 4.0])
def test_a_loss_that_cannot_choose_is_that_of_the_gaussian_mechanism(shift):
    """With q = p = 1/2 and no curvature, the moment is that of N(M^2 / 2, M^2) from above, within 1% of its logarithm."""
    rows = [(1.0, RowEnds(shift, (0.5, 0.5), (0.0, 0.0), (0.0, 0.0)))]
    orders = 1.0 + np.array([0.02, 0.3, 1.0, 0.9]) * LARGEST_SHIFT / shift
    exact = 0.5 * orders * (orders - 1.0) * shift**2
    found = log_moments(rows, orders, 1)
    assert (found >= exact).all()
    assert (found <= 1.01 * exact).all()


def test_orders_without_nodes_have_no_bound():
    """Beyond the largest shift, and where exponentials would overflow, the answer is inf, and no number is nan."""
    rows = [(1.0, RowEnds(0.5, (0.5, 0.5), (0.0, 3.0), (0.0, 3.0)))]
    found = log_moments(rows, 1.0 + np.array([1.0, 1.01 * LARGEST_SHIFT / 0.5, 1e6]), 1)
    assert np.isfinite(found).tolist() == [True, False, False]


@pytest.mark.parametrize(("n_scores", "n_corners"), [(3, 1), (1, 4)])
def test_several_scores_cost_more_than_one_and_less_than_all_at_once(n_scores, n_corners):
    """A loss of several scores: between the Gaussian of one corner and the sum of their shifts."""
    shift, orders = 0.05, np.array([1.1, 2.0, 5.0])
    one = RowEnds(shift, (0.5, 0.5), (0.0, 0.0), (0.0, 0.0), n_corners=n_corners)
    found = log_moments([(1.0, one)], orders, n_scores) / (orders - 1.0) / orders
    most = max(n_scores, n_corners) * shift
    assert (found >= 0.5 * shift**2).all()
    assert (found <= 0.5 * most**2).all()


@pytest.mark.parametrize("order", [1.2, 3.0])
@pytest.mark.parametrize("n_scores", [2, 3])
def test_the_sum_of_scores_is_what_sampling_finds(n_scores, order):
    """E exp of the larger end of a cube, and of the lesser one, with c = a - 1: 400,000 draws."""
    shift, rng = 0.4, np.random.default_rng(1)
    ends = RowEnds(shift, (0.5, 0.5), (0.6, 0.0), (0.2, 0.0))
    z = rng.normal(size=(400_000, n_scores))
    losses = (ends.upper(z).sum(axis=1), ends.lower(z).sum(axis=1))
    sampled = sum((np.expm1((order - 1.0) * loss) + (order - 1.0) * np.expm1(-loss)).mean() for loss in losses)
    found = math.expm1(float(log_moments([(1.0, ends)], np.array([order]), n_scores)[0]))
    assert found == pytest.approx(sampled, rel=0.02)


@pytest.mark.parametrize("order", [1.2, 2.5])
@pytest.mark.parametrize("n", [2, 6])
def test_the_corners_of_a_simplex_are_what_sampling_finds(n, order):
    """The larger end of softmax and the lesser one, corners at 60 degrees, with c = a - 1: above 400,000 draws, not far."""
    shift, rng = 0.3, np.random.default_rng(1)
    ends = RowEnds(shift, (0.5, 0.5), (0.5, 0.0), (0.1, 0.0), n_corners=n)
    z = (rng.normal(size=(400_000, n)) + rng.normal(size=(400_000, 1))) / math.sqrt(2.0)
    losses = (ends.upper(z.max(axis=1)), ends.lower(z.min(axis=1)))
    sampled = sum((np.expm1((order - 1.0) * loss) + (order - 1.0) * np.expm1(-loss)).mean() for loss in losses)
    found = math.expm1(float(log_moments([(1.0, ends)], np.array([order]), 1)[0]))
    assert 0.99 * sampled <= found <= 1.35 * sampled


@pytest.mark.parametrize("two_sided", [False, True])
def test_no_law_between_the_ends_has_a_larger_moment(two_sided):
    """Random choices between the ends, mixed so that the mean of exp(-loss) is 1: below the bound, the best ones near it."""
    rng, order, z = np.random.default_rng(2), 2.5, np.linspace(-9.0, 9.0, 2001)
    ends = RowEnds(0.6, (0.5, 0.5), (0.5, 0.0), (0.0, 0.0), two_sided=two_sided)
    chances = stats.norm.pdf(z) * (z[1] - z[0])
    upper, lower = ends.upper(z), ends.lower(z)
    bound, best = float(log_moments([(1.0, ends)], np.array([order]), 1)[0]), 0.0
    for threshold in np.concatenate([np.linspace(-1.0, 1.0, 201), rng.normal(size=50)]):
        at_upper = 0.5 * (upper + lower) > threshold * 0.6
        law = np.where(at_upper, upper, lower)
        # The remainder moves all of one side towards the other end, by the share that makes the mean 1.
        missing, other = 1.0 - chances @ np.exp(-law), np.where(at_upper, lower, upper)
        gain = (np.exp(-other) - np.exp(-law)) * (at_upper if missing > 0 else ~at_upper)
        share = missing / (chances @ gain)
        if 0.0 <= share <= 1.0:
            chosen = at_upper if missing > 0 else ~at_upper
            moment = chances @ np.where(
                chosen,
                share * np.exp((order - 1.0) * other) + (1.0 - share) * np.exp((order - 1.0) * law),
                np.exp((order - 1.0) * law),
            )
            assert math.log(moment) <= bound * (1.0 + 1e-6)
            best = max(best, math.log(moment))
    assert best > (0.9 if two_sided else 0.97) * bound


def test_what_lies_beyond_either_last_node_is_counted_from_the_larger_end():
    """The same whichever side has the larger end."""
    ends, raised = np.array([1.3, 0.0, 0.2]), np.array([[1.0]])
    assert objective_account._beyond(raised, 0.5, ends) == objective_account._beyond(raised, 0.5, ends[::-1])


@pytest.mark.parametrize(("n_scores", "side"), [(1, 1.0), (2, -1.0)])
def test_the_mean_of_sums_counts_noise_beyond_the_nodes(n_scores, side):
    """Ends of slope 18, so that half of E exp(18 Z) = exp(162) comes from beyond: above, and at most half as much again."""
    ends = 18.0 * objective_account._NODES
    (found,) = objective_account._of_sums(np.array([[side]]), ends, n_scores, 18.0)
    assert 1.0 <= found / math.exp(162.0 * n_scores) <= 2.2**n_scores


@pytest.mark.parametrize("n_scores", [1, 2])
def test_a_mean_that_is_too_small_for_doubles_counts_as_a_part_in_two_to_the_forty(n_scores):
    """Of each score: an end of 1000 everywhere."""
    ends = np.full(len(objective_account._NODES), 1000.0)
    (found,) = objective_account._of_sums(np.array([[-1.0]]), ends, n_scores, 0.0)
    assert 1.0 + found == pytest.approx(2.0 ** (-40 * n_scores), rel=1e-3, abs=2.0**-53)


def test_what_lies_beyond_the_nodes_is_added_for_both_ends(monkeypatch):
    """The upper end with a - 1, and the lower one with the charge; once for each corner."""
    raised, charge = np.array([[0.5], [2.0]]), np.array([[0.3], [0.7]])
    one = RowEnds(0.4, (0.5, 0.5), (0.0, 0.0), (0.0, 0.0))
    above, below = one.upper(objective_account._NODES), one.lower(objective_account._NODES)
    found = []
    for size in (0.0, 1.0):
        monkeypatch.setattr(
            objective_account,
            "_beyond",
            lambda raised, shift, ends, size=size: size * raised[:, 0] * shift * max(ends[0], ends[-1]),
        )
        corners = RowEnds(0.4, (0.5, 0.5), (0.0, 0.0), (0.0, 0.0), n_corners=3)
        found.append(
            [
                objective_account._together(one, above, below, raised, charge),
                objective_account._apart(corners, above, below, raised, 1),
            ]
        )
    largest, least = 0.4 * 18.0 + 0.08, 0.4 * 18.0 - 0.08
    of_ends = 0.4 * raised[:, 0] * largest + 0.4 * least * np.array([charge[:, 0], raised[:, 0]])
    np.testing.assert_allclose(np.subtract(found[1], found[0]), of_ends * [[1.0], [3.0]], rtol=1e-6)


@pytest.mark.parametrize(("shift", "finite"), [(17.9, True), (18.5, False)])
def test_exponents_are_bounded_by_the_farthest_end(shift, finite):
    """18 M + M^2 / 2 is 483 and 504, at an order at which exp(-loss) is the largest exponential."""
    rows = [(1.0, RowEnds(shift, (0.5, 0.5), (0.0, 0.0), (0.0, 0.0)))]
    assert np.isfinite(log_moments(rows, np.array([1.2]), 1)).tolist() == [finite]


def test_where_no_chord_is_steep_enough_the_steepest_is_the_charge():
    """Chords at order 1.5 of two nodes, by their definition, where the mean of exp(-loss) stays below 1 on both ends."""
    above, below = np.array([2.0, 1.0]), np.array([0.1, 0.1])
    (((found,),)) = objective_account._charges(np.array([[0.5]]), np.array([0.5, 0.5]), above, below)
    chords = [(math.exp(0.5 * end) - math.exp(0.05)) / (math.exp(-0.1) - math.exp(-end)) for end in above]
    assert found == pytest.approx(max(chords))
