"""The attack itself: what it shows, what it must not show, and its power. All draws are fixed."""

from __future__ import annotations

import math

import numpy as np
import pytest

from confide.audit.attacks import attack, claim_of, result_of, separation_of_samples
from confide.errors import ParameterError
from confide.privacy.budgets import ZCDP, ApproxDP, PureDP
from tests.privacy.densities import gaussian_multiplier


def laplace_ratio(scale):
    """The logarithm of the likelihood ratio of 1 and 0 with Laplace noise."""
    return lambda x: (np.abs(x[:, 0]) - np.abs(x[:, 0] - 1.0)) / scale


def samples(n, scale, seed=0, law="laplace"):
    """n releases of 1 and of 0 with this noise, on a grid."""
    noise = getattr(np.random.default_rng(seed), law)(scale=scale, size=(2, n, 1))
    return list(np.round(noise[0] + 1.0, 3)), list(np.round(noise[1], 3))


def shown(scale, n=4000, budget=None, law="laplace", seed=0):
    return result_of(
        *samples(n, scale, seed, law), budget=budget or PureDP(1.0), statistic=laplace_ratio(1.0), with_power=False
    )


def test_exact_noise_is_not_refuted_and_nearly_all_of_it_is_shown():
    """Laplace noise of scale 1: epsilon is 1, and 2,000 counted releases show more than 0.7 of it."""
    result = shown(1.0)
    assert not result.refuted
    assert 0.7 < result.epsilon <= 1.0
    assert result.is_sound


@pytest.mark.parametrize("seed", range(3))
def test_noise_a_third_too_small_is_refuted(seed):
    """Its epsilon is 1.5."""
    assert shown(1.0 / 1.5, seed=seed).refuted


def test_gaussian_noise_is_judged_in_its_own_currencies():
    """At (1, 0.05) and at rho = 1/2, half the noise is refuted and the whole is not."""
    exact = gaussian_multiplier(1.0, 0.05)
    for budget, deviation in ((ApproxDP(1.0, 0.05), exact), (ZCDP(0.5), 1.0)):
        assert not shown(deviation, budget=budget, law="normal").refuted
        assert shown(0.5 * deviation, budget=budget, law="normal").refuted


def test_noise_alone_shows_nothing():
    """Of vectors and of JSON, by a learned statistic."""
    rng = np.random.default_rng(2)
    for draw in (lambda: rng.normal(size=3), lambda: {"a": float(rng.normal()), "b": "yes" if rng.random() < 0.5 else "no"}):
        result = attack(lambda _, draw=draw: draw(), 0, 1, budget=1.0, n_releases=400, with_power=False)
        assert result.shown == 0.0
        assert result.control == 0.0


def test_a_learned_statistic_finds_a_difference_and_says_how():
    """A shift of three deviations: more than epsilon = 1 at once."""
    rng = np.random.default_rng(3)
    result = attack(lambda shift: rng.normal(size=2) + shift, 0.0, 3.0, budget=1.0, n_releases=200, with_power=False)
    assert result.refuted
    assert result.statistic.startswith("learned (")


def test_errors_are_outcomes():
    """A release that fails for one data set alone tells it apart; one that always fails teaches nothing."""

    def release(value):
        return 1.0 / value

    assert attack(release, 0.0, 1.0, budget=1.0, n_releases=100).refuted
    result = attack(release, 0.0, 0.0, budget=1.0, n_releases=40)
    assert "ZeroDivisionError" in (result.failure or "")
    assert not result.refuted
    assert "every release ended with an error" in str(result)


def test_power_is_that_of_the_audit():
    """The chance to refute smaller Laplace noise, as estimated from one sample, is near that of many samples."""
    n = 1000
    result = result_of(*samples(n, 1.0, seed=4), budget=PureDP(1.0), statistic=laplace_ratio(1.0))
    visible = result.visible_noise
    assert visible is not None
    assert 0.4 < visible < 0.9
    refuted = [
        result_of(*samples(n, visible, seed), budget=PureDP(1.0), statistic=laplace_ratio(1.0), with_power=False).refuted
        for seed in range(100, 120)
    ]
    assert sum(refuted) >= 14
    assert dict(result.power)[0.8] <= 0.95


def test_the_threshold_is_not_chosen_by_what_is_counted():
    """The first half alone decides: when the second half is replaced by noise, the event is the same and shows nothing."""
    one, other = samples(800, 0.2)
    whole = result_of(one, other, budget=PureDP(1.0), statistic=laplace_ratio(0.2), with_power=False)
    swapped = result_of(
        [*one[:400], *other[400:]],
        [*other[:400], *other[400:]],
        budget=PureDP(1.0),
        statistic=laplace_ratio(0.2),
        with_power=False,
    )
    assert whole.refuted
    assert swapped.shown == 0.0
    assert whole.hits_second == swapped.hits_first == swapped.hits_second


def test_claims_come_from_the_argument_or_the_estimator():
    """A budget, the estimator's own, or its epsilon; without any it is refused."""

    class Others:
        epsilon = 2.0

    assert claim_of(Others(), None) == PureDP(2.0)
    assert claim_of(Others(), ZCDP(0.1)) == ZCDP(0.1)
    with pytest.raises(ParameterError, match="claimed"):
        claim_of(lambda x: x, None)


def test_samples_are_ranked():
    """Far apart: nearly always right; alike: as by chance."""
    assert separation_of_samples(*samples(60, 0.05)) > 0.95
    assert separation_of_samples(*samples(60, 50.0)) < 0.8


@pytest.mark.parametrize("wrong", [{"n_releases": 10}, {"confidence": 1.0}, {"confidence": math.nan}])
def test_arguments_outside_their_range_are_refused(wrong):
    """Before anything is released."""
    with pytest.raises(ParameterError):
        attack(lambda x: x, 0, 1, **wrong)
