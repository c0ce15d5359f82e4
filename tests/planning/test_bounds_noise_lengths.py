"""Lengths of noise: quantiles against draws, and means along rows against those of one direction."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from confide.planning.bounds import lengths_of, on_grid, spherical
from confide.privacy.lattice import LatticeGaussian, LatticeLaplace
from confide.privacy.mechanism import Noise
from confide.privacy.noise import Entropy
from confide.privacy.shapes import Ball, Groups

DRAWS = 60_000


def draws(dimension, law, rng):
    """(DRAWS, dimension) draws at scale 1."""
    normal = rng.normal(size=(DRAWS, dimension))
    if law == "gaussian":
        return normal
    return normal / np.linalg.norm(normal, axis=1, keepdims=True) * rng.gamma(dimension, size=(DRAWS, 1))


@pytest.mark.parametrize("law", ["laplace", "gaussian"])
@pytest.mark.parametrize("dimension", [1, 2, 10])
def test_distances_from_a_point_have_these_quantiles(dimension, law):
    """Near 0, at the size of the noise and far away, at three levels: within the error of the draws, and not half."""
    noise = draws(dimension, law, np.random.default_rng(dimension))
    for distance in (0.0, 0.01, 1.0, 30.0):
        moved = noise.copy()
        moved[:, 0] += distance
        norms = np.linalg.norm(moved, axis=1)
        for failure in (0.3, 0.05, 0.003):
            found = spherical(dimension, law, 1.0).from_point(distance, failure)
            beyond = np.mean(norms > found)
            assert beyond == pytest.approx(failure, abs=4.0 * math.sqrt(failure / DRAWS) + 0.002 * failure)


def test_gaussian_distances_are_those_of_the_noncentral_chi_law():
    """To four digits, and for another scale."""
    for dimension, distance, failure in ((3, 2.0, 0.01), (50, 10.0, 0.2), (1, 0.5, 1e-5)):
        exact = math.sqrt(stats.ncx2.isf(failure, dimension, distance**2))
        found = spherical(dimension, "gaussian", 3.0).from_point(3.0 * distance, failure) / 3.0
        assert exact < found < exact * 1.001


@pytest.mark.parametrize("law", ["laplace", "gaussian"])
@pytest.mark.parametrize("dimension", [2, 10])
def test_the_mean_along_rows_is_that_beyond_the_quantile(dimension, law):
    """Against draws for one direction; no rows that are spread over directions exceed it.

    And half of it would be exceeded.
    """
    rng = np.random.default_rng(5)
    noise = draws(dimension, law, rng)
    directions = rng.normal(size=(4, dimension))
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    for failure in (0.2, 0.02):
        found = spherical(dimension, law, 1.0).along_rows(failure)
        one = np.sort(noise[:, 0] ** 2)[::-1][: round(failure * DRAWS)]
        assert found == pytest.approx(
            min(math.sqrt(one.mean()), np.quantile(np.linalg.norm(noise, axis=1), 1 - failure)), rel=0.03
        )
        spread = np.sqrt(((noise @ directions.T) ** 2).mean(axis=1))
        assert np.mean(spread > found) <= failure
        assert np.mean(np.abs(noise[:, 0]) > found / 2.0) > failure


@pytest.mark.parametrize("dimension", [1, 6, 400])
def test_noise_on_a_grid_is_bounded_by_its_law(dimension):
    """Both laws: the norm from a point, and along one direction; the bound on the norm is at most 2.5 times the quantile."""
    rng, n = np.random.default_rng(0), 4000
    laplace = LatticeLaplace(dimension, -12, 0.5, 1.0)
    gaussian = LatticeGaussian.of_multiplier(dimension, -12, 0.5, 1.0)
    kinds = ((laplace, rng.laplace(scale=laplace.scale, size=(n, dimension))),
             (gaussian, rng.normal(scale=gaussian.deviation, size=(n, dimension))))  # fmt: skip
    for lattice, noise in kinds:
        lengths, norms = on_grid(lattice), np.linalg.norm(noise, axis=1)
        for failure in (0.2, 0.02):
            found, quantile = lengths.from_point(0.0, failure), np.quantile(norms, 1 - failure)
            assert np.mean(norms > found) <= 1.3 * failure
            assert found < 2.5 * quantile
            along = lengths.along_rows(failure)
            assert np.mean(np.abs(noise[:, 0]) > along) <= 1.3 * failure
            assert np.mean(np.abs(noise[:, 0]) > along / 2.0) > failure


def test_noise_of_a_plan_is_read_with_its_scale():
    """Draws of the library, both laws and another shape."""
    for shape, law in ((Ball(4, 1.5), "laplace"), (Ball(4, 1.5), "gaussian"), (Groups((2, 2), (1.0, 0.5)), "laplace")):
        noise = Noise(shape, law, 3.0)
        entropy = Entropy.seeded(1)
        norms = np.linalg.norm((entropy.laplace if law == "laplace" else entropy.gaussian)(shape, 800, 3.0), axis=1)
        lengths = lengths_of(noise)
        found = lengths.from_point(0.0, 0.1)
        assert (lengths.along_rows(0.1) < found * (1 - 1e-9)) == (shape.name == "ball")
        assert 0.04 < np.mean(norms > found) < 0.13
        assert lengths.from_point(2.0, 0.1) <= 2.0 + found * (1 + 1e-9)
        assert lengths.along_rows(0.1) <= found * (1 + 1e-9)


def test_very_rare_noise_is_bounded_by_sums():
    """Where integrals would be inexact."""
    noise = spherical(3, "laplace", 2.0)
    assert noise.from_point(5.0, 1e-9) == pytest.approx(5.0 + 2.0 * stats.gamma.isf(1e-9, 3), rel=1e-3)
    assert noise.along_rows(1e-9) == pytest.approx(2.0 * stats.gamma.isf(1e-9, 3), rel=1e-3)
