"""Losses of costs and of spread counts: derivatives, constants against a search, exposures, and rounding."""

from __future__ import annotations

import math

import numpy as np
import pytest

from confide.erm.target_losses import MeanLoss
from confide.errors import ParameterError


def cost(bound, threshold, power, least=0.0):
    return MeanLoss(bound, threshold, power=power, least=least)


def spread(bound, threshold, dispersion):
    return MeanLoss(bound, threshold, dispersion=dispersion)


GAMMA = cost(20.0, 5.0, 2.0, least=0.05)
STRICT = cost(20.0, 0.5, 2.0, least=0.05)
TWEEDIE, STEEP, NEAR_GAMMA = cost(20.0, 3.0, 1.5), cost(4.0, 2.0, 1.2), cost(20.0, 2.0, 1.9)
COUNTS, SPREAD = spread(20.0, 8.0, 0.1), spread(20.0, 4.0, 2.0)
LOSSES = [GAMMA, STRICT, TWEEDIE, STEEP, NEAR_GAMMA, COUNTS, SPREAD]
NAMES = ["gamma", "strict gamma", "tweedie", "steep tweedie", "near gamma", "counts", "spread counts"]
SCORES = np.unique(np.concatenate([np.linspace(-14.0, 14.0, 28_001), -np.geomspace(1e-9, 300, 200)]))


def terms(loss, scores, targets):
    values, found = (loss.of_scores(scores[:, None], targets, order) for order in (0, 2))
    return values.value[:, 0], found.slope[:, 0], found.curvature[:, 0]


@pytest.mark.parametrize("loss", LOSSES, ids=NAMES)
def test_derivatives_match_finite_differences_and_the_loss_is_convex(loss):
    """Value to slope everywhere, slope to curvature away from kinks; slopes never fall; the loss is nowhere negative."""
    scores, step = np.linspace(-6.0, 6.0, 4001), 1e-6
    for target in np.linspace(*loss.targets, 9):
        value, slope, curvature = terms(loss, scores, np.full(4001, target))
        (high, up, _), (low, down, _) = (terms(loss, scores + h, np.full(4001, target)) for h in (step, -step))
        scale = max(1.0, loss.constants.smoothness)
        np.testing.assert_allclose(slope, (high - low) / (2 * step), atol=2e-5 * scale)
        assert np.mean(np.abs(curvature - (up - down) / (2 * step)) > 1e-4 * scale) < 0.002
        assert (np.diff(slope) >= 0.0).all()
        assert value.min() >= 0.0


@pytest.mark.parametrize("loss", LOSSES, ids=NAMES)
def test_constants_hold_and_are_nearly_reached(loss):
    """Slope, curvature, curvature at each slope, and the value at score 0: never exceeded, and two thirds are reached."""
    found = [terms(loss, SCORES, np.full(len(SCORES), target)) for target in np.linspace(*loss.targets, 161)]
    slopes, curvatures = np.abs([slope for _, slope, _ in found]), np.array([curvature for *_, curvature in found])
    known = loss.constants
    assert 0.999 * known.lipschitz <= slopes.max() <= known.lipschitz
    assert 0.6 * known.smoothness <= curvatures.max() <= known.smoothness * (1 + 1e-12)
    assert (curvatures <= known.curvature_at_slope(slopes) * (1 + 1e-9) + 1e-12).all()
    at_zero = [terms(loss, np.zeros(1), np.array([target]))[0][0] for target in np.linspace(*loss.targets, 161)]
    np.testing.assert_allclose(max(at_zero), known.value_at_zero, rtol=1e-9)
    bends = known.curvature_at_slope(np.linspace(0.0, known.lipschitz, 401))
    rises = np.diff(bends) > 0.0
    assert not (rises[1:] & ~rises[:-1]).any()  # quasi-concave: once it falls, it rises no more


@pytest.mark.parametrize("loss", LOSSES, ids=NAMES)
def test_an_exposure_moves_the_score(loss):
    """The loss of a row with an exposure is that without at a score moved by its logarithm, and constants hold."""
    from dataclasses import replace

    moved, scores = replace(loss, exposure=(0.5, 3.0)), np.linspace(-5.0, 5.0, 501)
    for exposure in (0.5, 1.7, 3.0):
        for target in np.linspace(*loss.targets, 7):
            pairs = np.zeros(501, [("count", float), ("exposure", float)])
            pairs["count"], pairs["exposure"] = target, exposure
            expected = terms(loss, scores + math.log(exposure), np.full(501, target))
            for ours, theirs in zip(terms(moved, scores, pairs)[:2], expected[:2], strict=True):
                np.testing.assert_allclose(ours, theirs, atol=1e-9, rtol=1e-9)
            assert terms(moved, np.zeros(501), pairs)[0][0] <= moved.constants.value_at_zero


@pytest.mark.parametrize("loss", LOSSES, ids=NAMES)
def test_targets_are_clipped_inside_and_far_scores_overflow_nothing(loss):
    """Beyond the interval as at its end; what is not a number as at the lower end; finite slopes everywhere."""
    scores = np.linspace(-3, 3, 11)
    for given, counted in ((math.inf, loss.targets[1]), (-1e300, loss.targets[0]), (math.nan, loss.targets[0])):
        for found, expected in zip(
            terms(loss, scores, np.full(11, given)), terms(loss, scores, np.full(11, counted)), strict=True
        ):
            np.testing.assert_array_equal(found, expected)
    far = np.array([-1e300, -800.0, 800.0, 1e300])
    for target in (*loss.targets, 0.7):
        assert np.isfinite(np.array(terms(loss, far, np.full(4, target))[1:])).all()


@pytest.mark.parametrize("loss", LOSSES, ids=NAMES)
def test_computed_slopes_are_within_their_stated_rounding(loss):
    """Against 50 digits: at most `rounding` units of 2^-53 threshold."""
    mpmath = pytest.importorskip("mpmath")
    rng = np.random.default_rng(0)
    targets = np.exp(rng.uniform(math.log(max(loss.targets[0], 1e-300)), math.log(loss.targets[1]), 1500))
    scores = np.log(targets) + rng.normal(size=1500)
    slopes = loss.of_scores(scores[:, None], targets, 1).slope[:, 0]
    with mpmath.workdps(50):
        for score, target, slope in zip(scores.tolist(), targets.tolist(), slopes.tolist(), strict=True):
            mean = mpmath.exp(mpmath.mpf(score))
            if not loss.dispersion:
                exact = mean ** (1 - mpmath.mpf(loss.power)) * (mean - target)
            else:
                exact = (mean - target) / (1 + mpmath.mpf(loss.dispersion) * mean)
            exact = min(max(exact, -loss.threshold), loss.threshold)
            assert abs(slope - exact) <= loss.constants.rounding * 2.0**-53 * loss.threshold


@pytest.mark.parametrize("loss", LOSSES, ids=NAMES)
def test_the_rounding_is_that_of_the_proof(loss):
    """1100 Z / T + 16 for powers above 1, and 24 Z / T + 16 for dispersions, Z = B^(2 - p) + T."""
    size = (loss.target_bound ** (2.0 - loss.power) + loss.threshold) / loss.threshold
    assert loss.constants.rounding == pytest.approx((24.0 if loss.dispersion else 1100.0) * size + 16.0, rel=1e-12)


def test_a_seventh_of_the_rounding_is_reached_by_a_tiny_cost_at_a_far_score():
    """Against 60 digits: the exponential of a far score errs by hundreds of units, and no slope by more than is stated."""
    mp = pytest.importorskip("mpmath")
    loss, worst = MeanLoss(0.00017, 139.2, (1e-6, 1e6), 1.999999), 0.0
    pairs = np.zeros(2000, [("count", float), ("exposure", float)])
    pairs["count"], pairs["exposure"] = 3e-151, 1e-6
    scores = (math.log(3e-151) - math.log(139.2)) / 0.999999 - math.log(1e-6) + np.linspace(1e-3, 0.1, 2000)
    slopes = loss.of_scores(scores[:, None], pairs, 1).slope[:, 0]
    with mp.workdps(60):
        for score, slope in zip(scores.tolist(), slopes.tolist(), strict=True):
            mean, power = mp.exp(mp.mpf(score)) * mp.mpf(1e-6), mp.mpf(loss.power)
            exact = max(mean ** (2 - power) - mp.mpf(3e-151) * mean ** (1 - power), -mp.mpf(loss.threshold))
            worst = max(worst, float(abs(slope - exact) / (loss.constants.rounding * 2.0**-53 * loss.threshold)))
    assert 1.0 / 7.0 < worst <= 1.0


def test_targets_too_small_to_be_multiplied_by_an_exponential_count_as_zero():
    """The exponential alone overflows there, and would make a slope at its limit of one that is nearly 0."""
    loss, scores = cost(20.0, 3.0, 1.9), np.array([-800.0, -700.0, -1.0])
    for target in (2.0**-1074, 2.0**-501):
        found, expected = (terms(loss, scores, np.full(3, each))[1:] for each in (target, 0.0))
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("exposure", [1.0, 800.0])
@pytest.mark.parametrize("dispersion", [1e-6, 0.5, 388.0, 1e6])
@pytest.mark.parametrize("bound", [2.0, 1e4, 6e10, 1e13])
def test_the_value_at_zero_of_spread_counts_keeps_its_digits(bound, dispersion, exposure):
    """It bounds that of 80 digits from above, and exceeds it by a part in 10^11 at most."""
    mp = pytest.importorskip("mpmath")
    with mp.workdps(80):
        for limit in (0.3 / dispersion, 0.9 * bound, 1e-3 * bound):
            loss = MeanLoss(bound, min(limit, bound), (exposure, exposure), dispersion=dispersion)
            a, threshold, score, values = mp.mpf(dispersion), mp.mpf(loss.threshold), mp.log(mp.mpf(exposure)), []
            for target in (mp.mpf(0), mp.mpf(bound)):
                low = mp.log((target - threshold) / (1 + a * threshold)) if target > threshold else -mp.inf
                high = mp.log((target + threshold) / (1 - a * threshold)) if a * threshold < 1 else mp.inf
                inside = max(low, min(high, score))
                deviance = (target + 1 / a) * (mp.log1p(a * mp.exp(inside)) - mp.log1p(a * target))
                deviance -= target * (inside - mp.log(target)) if target else 0
                values.append(deviance + threshold * abs(score - inside))
            assert max(values) <= loss.constants.value_at_zero <= max(values) * (1 + mp.mpf(1e-11))


def test_the_slopes_are_those_of_scikit_learn_and_statsmodels():
    """Values are half of the deviances there, as long as no slope is clipped."""
    metrics = pytest.importorskip("sklearn.metrics")
    rng = np.random.default_rng(1)
    targets, scores = rng.uniform(0.1, 19.0, 200), rng.uniform(-1.0, 3.0, 200)
    for power in (2.0, 1.5, 1.2):
        loss = cost(20.0, 1e6, power, least=0.05)
        own = terms(loss, scores, targets)[0].mean()
        np.testing.assert_allclose(2 * own, metrics.mean_tweedie_deviance(targets, np.exp(scores), power=power), rtol=1e-9)
    family = pytest.importorskip("statsmodels.api").families.NegativeBinomial(alpha=0.7)
    own = terms(spread(20.0, 1e6, 0.7), scores, targets)[0].sum()
    np.testing.assert_allclose(2 * own, family.deviance(targets, np.exp(scores)), rtol=1e-9)


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: cost(20.0, 1.0, 2.0), lambda: cost(20.0, 1.0, 0.9), lambda: cost(20.0, 1.0, 2.1, 1.0),
        lambda: cost(20.0, 1.0, 1.5, 20.0), lambda: spread(20.0, 1.0, -1.0),
        lambda: spread(20.0, 1.0, math.inf), lambda: spread(20.0, 0.0, 1.0),
    ],
)  # fmt: skip
def test_losses_that_no_page_covers_are_refused(wrong):
    """A gamma loss of targets that may be 0, other powers, and dispersions that are no positive numbers."""
    with pytest.raises(ParameterError):
        wrong()
