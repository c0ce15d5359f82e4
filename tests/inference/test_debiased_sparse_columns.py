"""Moments of encoded columns: public zeros and sums leave less noise in them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from confide.features.encoder import Encoder
from confide.inference.debiased import with_known_zeros
from tests.effects.examples import INTERACTIONS, model, schema, table


@pytest.mark.parametrize("interact", [(), INTERACTIONS])
def test_what_is_said_to_be_zero_is_zero(interact):
    """In every row: the pattern of each group against products of encoded rows; sums that are said to be 1 are 1."""
    from confide.inference.debiased import _group

    encoder = Encoder(schema(interact))
    rows = encoder.transform(table(3000))
    for place, factors in zip(encoder.groups, encoder.factors, strict=True):
        known, own = _group(place.place, factors, 1.0), rows[:, place.place]
        assert not ((own.T @ own != 0.0) & ~known.meets).any()
        if known.adds_up:
            np.testing.assert_allclose(own.sum(axis=1), 1.0, atol=1e-9)
        assert not known.not_negative or (own >= 0.0).all()


def test_moments_without_noise_stay_as_they_are():
    evidence = model(0.4)._evidence
    exact = replace(evidence, curvature_deviation=0.0, slope_deviation=0.0)
    same = with_known_zeros(exact, model(0.4)._encoder)
    np.testing.assert_array_equal(same.curvature, exact.curvature)
    np.testing.assert_array_equal(same.slope, exact.slope)


def test_estimates_are_nearer_to_the_truth():
    """A weighted Gram matrix of 4,000 rows and large noise: two thirds of the error at most."""
    encoder, evidence = model(0.4)._encoder, model(0.4)._evidence
    rows = np.column_stack([encoder.transform(table()), np.ones(4000)])
    truth = 0.2 * (rows.T @ rows)
    rng = np.random.default_rng(0)
    noise = 25.0 * rng.normal(size=truth.shape)
    noise = (noise + noise.T) / np.sqrt(2.0)
    found = with_known_zeros(replace(evidence, curvature=truth + noise, curvature_deviation=25.0), encoder)
    error = np.linalg.norm(found.curvature - truth) / np.linalg.norm(noise)
    assert error < 0.67
    np.testing.assert_array_equal(found.curvature, found.curvature.T)
    assert found.curvature_deviation < 0.5 * 25.0


def with_noise(truth, deviation, seed):
    """Symmetric noise of this deviation off the diagonal, and the root of 2 times as much on it."""
    noise = deviation * np.random.default_rng(seed).normal(size=truth.shape)
    return truth + (noise + noise.T) / np.sqrt(2.0)


def estimates(slope_of):
    """Found slopes and the true ones, made of the curvature, of 4,000 rows with noise of 5 and 40."""
    encoder, evidence = model(0.4)._encoder, model(0.4)._evidence
    rows = np.column_stack([encoder.transform(table()), np.ones(4000)])
    curvature = 0.2 * (rows.T @ rows)
    slope = slope_of(curvature, rows)
    noisy = replace(
        evidence,
        curvature=with_noise(curvature, 5.0, 1),
        slope=with_noise(slope, 40.0, 2),
        curvature_deviation=5.0,
        slope_deviation=40.0,
    )
    return noisy, with_known_zeros(noisy, encoder), slope


@pytest.mark.parametrize("multiple", [1.0, 3.0])
def test_slopes_are_like_curvatures_where_probabilities_are_right(multiple):
    """What their noise says against a multiple of the curvature is no more than chance, and less than a tenth is left."""
    noisy, found, slope = estimates(lambda curvature, rows: multiple * curvature)
    assert np.linalg.norm(found.slope - slope) < 0.1 * np.linalg.norm(noisy.slope - slope) * max(1.0, multiple)
    assert found.slope_deviation < 0.05 * 40.0


def test_slopes_that_are_not_like_curvatures_stay():
    """Some rows are much steeper than others. Wholly like the curvature, slopes would be further away than their noise."""

    def slope_of(curvature, rows):
        steep = rows[rows[:, 1] > 0.5]
        return 0.2 * (rows.T @ rows) + 6.0 * (steep.T @ steep)

    noisy, found, slope = estimates(slope_of)
    noise, alike = np.linalg.norm(noisy.slope - slope), (slope * found.curvature).sum() / (found.curvature**2).sum()
    assert np.linalg.norm(alike * found.curvature - slope) > 1.5 * noise
    assert np.linalg.norm(found.slope - slope) < 0.8 * noise
    assert found.slope_deviation > 0.05 * 40.0


def test_curvatures_are_lowered_by_half_a_deviation_of_their_noise():
    """Of a number with knots, whose curvature with itself was released once; never below 0, and slopes are not lowered."""
    noisy, found, _ = estimates(lambda curvature, rows: curvature)
    own = np.diagonal(noisy.curvature)[:4]
    np.testing.assert_allclose(np.diagonal(found.curvature)[:4], np.maximum(own - 0.5 * np.sqrt(2.0) * 5.0, 0.0))
    assert (np.diagonal(found.slope)[:4] > np.diagonal(found.curvature)[:4]).all()
