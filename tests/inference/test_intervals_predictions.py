"""Quantiles of errors of scores, against those of coefficients, and log-odds of several classes."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.special import ndtri

from confide.inference.intervals import JointUncertainty, ends_of_log_odds, ends_of_scores, noise_draws
from confide.privacy.mechanism import Noise
from confide.privacy.noise import Entropy
from confide.privacy.shapes import Ball, Cylinder, Groups

SHAPES = [Ball(1, 1.0), Ball(5, 1.0), Cylinder(4, 1.0, 1.0), Groups((2, 3, 1), (1.0, 2.0, 0.5))]


@pytest.mark.parametrize("law", ["laplace", "gaussian"])
def test_draws_of_noise_are_those_of_its_rate_or_scale(law):
    """Drawn once for all scales: the same, to the last digits, as drawn anew."""
    anew = getattr(Entropy.seeded(3), law)(SHAPES[-1], 4000, 2.5)
    np.testing.assert_allclose(noise_draws(Noise(SHAPES[-1], law, 2.5), 3), anew, rtol=1e-12)


def errors(shape, law, size):
    """Errors of six combinations, whose sampling errors have this size."""
    draws = noise_draws(Noise(shape, law, 1.0), 0)
    combined = draws @ np.random.default_rng(1).normal(size=(shape.dimension, 6))
    return JointUncertainty(np.arange(6.0), np.full(6, size), combined, size * np.eye(6))


@pytest.mark.parametrize("shape", SHAPES, ids=repr)
@pytest.mark.parametrize("law", ["laplace", "gaussian"])
def test_margins_are_those_of_the_law_of_the_noise(shape, law):
    """Within 4% of those that coefficients get, whatever part of the error is noise."""
    for size in (0.01, 1.0, 5.0):
        found = errors(shape, law, size)
        for level in (0.8, 0.95):
            ends = ends_of_scores(found, level)
            np.testing.assert_allclose(ends.mean(axis=1), np.arange(6.0), atol=1e-9)
            np.testing.assert_allclose((ends[:, 1] - ends[:, 0]) / 2.0, found.margins(level), rtol=0.04)


def test_without_noise_margins_are_those_of_the_normal_law():
    """And without end where nothing is known."""
    sampling = np.array([1.0, 2.0, math.inf])
    ends = ends_of_scores(JointUncertainty(np.zeros(3), sampling, np.zeros((0, 3)), np.zeros((0, 3))), 0.9)
    np.testing.assert_allclose(ends[:, 1], ndtri(0.95) * sampling)
    noisy = JointUncertainty(np.zeros(3), sampling, np.ones((4, 3)), np.zeros((0, 3)))
    assert np.isinf(ends_of_scores(noisy, 0.9)[2]).all()
    assert np.isfinite(ends_of_scores(noisy, 0.9)[:2]).all()


def test_errors_of_log_odds_add_up_as_their_scores_depend_on_each_other():
    """Two scores: the variance of the difference if the root is known, otherwise the sum of deviations; and noise."""
    root = np.array([[[3.0], [0.0]], [[3.0], [4.0]]])
    quantile = ndtri(0.975)
    found = [JointUncertainty(np.array([value]), np.linalg.norm(r, axis=0), np.zeros((0, 1)), r)
             for value, r in zip((1.0, 0.5), root, strict=True)]  # fmt: skip
    log_odds, derivatives = np.array([[0.5, -0.5]]), np.array([[[1.0, -1.0], [-1.0, 1.0]]])
    for depend, size in ((True, 4.0), (False, 8.0)):
        ends = ends_of_log_odds(found, log_odds, derivatives, depend=depend, level=0.95)
        np.testing.assert_allclose(ends[0], [[0.5 - quantile * size, 0.5 + quantile * size]] - np.array([[0.0], [1.0]]))
    draws = np.random.default_rng(0).normal(size=(4000, 2))
    noisy = [JointUncertainty(each.estimates, each.sampling_error, 3.0 * draws[:, [i]], each.sampling_root)
             for i, each in enumerate(found)]  # fmt: skip
    ends = ends_of_log_odds(noisy, log_odds, derivatives, depend=True, level=0.95)
    np.testing.assert_allclose(ends[0, :, 1] - ends[0, :, 0], 2.0 * quantile * math.sqrt(16.0 + 18.0), rtol=0.03)
    hidden = [found[0], JointUncertainty(np.zeros(1), np.array([math.inf]), np.zeros((0, 1)), np.zeros((0, 1)))]
    assert np.isinf(ends_of_log_odds(hidden, log_odds, derivatives, depend=True, level=0.95)).all()
