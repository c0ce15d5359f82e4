"""Moments of encoded columns: public zeros and sums leave less noise in them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from confide.features.encoder import Encoder
from confide.inference.sparse_columns import with_known_zeros
from tests.effects.examples import INTERACTIONS, model, schema, table


@pytest.mark.parametrize("interact", [(), INTERACTIONS])
def test_what_is_said_to_be_zero_is_zero(interact):
    """In every row: the pattern of each group against products of encoded rows; sums that are said to be 1 are 1."""
    from confide.inference.sparse_columns import _group

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
    truth = 0.2 * rows.T @ rows
    rng = np.random.default_rng(0)
    noise = 25.0 * rng.normal(size=truth.shape)
    noise = (noise + noise.T) / np.sqrt(2.0)
    found = with_known_zeros(replace(evidence, curvature=truth + noise, curvature_deviation=25.0), encoder)
    error = np.linalg.norm(found.curvature - truth) / np.linalg.norm(noise)
    assert error < 0.67
    np.testing.assert_array_equal(found.curvature, found.curvature.T)
    assert found.curvature_deviation < 0.5 * 25.0
