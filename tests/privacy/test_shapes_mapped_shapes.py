"""Noise of groups in the norm of a form: the image of the noise of groups."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import linalg, stats

from confide.errors import ParameterError
from confide.features.forms import QuadraticForm
from confide.privacy.mechanism import Noise
from confide.privacy.noise import LOG_FAILURE, Entropy
from confide.privacy.shapes import LARGEST_BLOCK, Groups, Linked, moments_of_groups, shape_of_groups
from tests.privacy.densities import shape_norm
from tests.privacy.laws import check_law

SIZES, SCALES = (3, 2, 1), (0.8, 1.3, 0.6)
MATRIX = np.array([[2.0, -0.9, 0.3], [-0.9, 1.5, 0.1], [0.3, 0.1, 0.2]])
FORM = QuadraticForm.of(np.array([1.0, 1.0, 1.0, 4.0, 0.25]), [(0, MATRIX)])
BASES = {"groups": Groups(SIZES, SCALES), "linked": Linked(SIZES, SCALES, (True, True, False))}


@pytest.mark.parametrize("name", BASES)
def test_draws_are_images_of_the_noise_of_groups(name):
    """|M^-1 b|_K times the rate has a Gamma law, and the root mean square is the one that plans compare; 30% off fails."""
    base, rate = BASES[name], 2.5
    noise = Noise(shape_of_groups(base, FORM, 3.0), "laplace", rate)
    entropy = Entropy.seeded(1)
    draws = np.vstack([noise.draw(entropy) for _ in range(600)])
    back = draws @ np.linalg.inv(FORM.sums_in_norm(np.eye(6)))
    check_law(shape_norm(back, SIZES, SCALES)[:300] * rate, stats.gamma(base.free_dimension).cdf)
    assert math.sqrt(np.square(draws).sum(axis=1).mean()) == pytest.approx(noise.norm, rel=0.12)
    assert np.linalg.norm(draws, axis=1).max() <= noise.bound(LOG_FAILURE)


def test_the_length_of_a_row_is_that_in_the_norm_and_the_bound_is_stretched():
    """The constant stays, so noise is never shrunk."""
    shape = shape_of_groups(BASES["groups"], FORM, 3.0)
    assert shape.l2_norm == 3.0
    largest = 1.0 / math.sqrt(min(np.linalg.eigvalsh(MATRIX)[0], 0.25))
    assert shape.stretch == pytest.approx(largest, rel=1e-6)
    assert shape.laplace_bound(2.0, -9.0) == pytest.approx(largest * BASES["groups"].laplace_bound(2.0, -9.0), rel=1e-6)
    weak = shape_of_groups(BASES["groups"], QuadraticForm.of(np.full(5, 100.0)), 3.0)
    assert weak.stretch == pytest.approx(1.0)


def test_the_error_of_a_draw_is_that_of_the_base_and_of_a_product_with_the_largest_block():
    """54 units, and gamma of 256 + 2 times the root of 256, by which |M| may stretch more than M."""
    shape = shape_of_groups(BASES["linked"], FORM, 3.0)
    needed = (BASES["linked"].laplace_error + (LARGEST_BLOCK + 2) * math.sqrt(LARGEST_BLOCK) * 2.0**-53) * (1.0 + 2.0**-40)
    assert needed == pytest.approx((54.0 + 258.0 * 16.0) * 2.0**-53, rel=1e-9, abs=0.0)
    assert needed <= shape.laplace_error <= 1.1 * needed


def test_there_is_no_gaussian_law():
    """Under Gaussian noise the ball in the norm of the form is better."""
    with pytest.raises(ParameterError, match="pure budgets"):
        shape_of_groups(BASES["groups"], FORM, 3.0).gaussian_norm(1.0)


@pytest.mark.parametrize("linked", [False, True])
def test_the_mean_square_of_an_image_is_that_of_its_covariance(linked):
    """trace(M C M^T), C with one variance and one covariance within each group and 0 between groups.

    In a linked group of two columns the covariance is not 0, so the block lies there.
    """
    sizes, scales = (2, 3, 1), (1.9, 1.3, 0.6)
    base = Linked(sizes, scales, (True, True, False)) if linked else Groups(sizes, scales)
    form = QuadraticForm.of(np.array([1.0, 1.0, 1.0, 4.0, 0.25]), [(0, np.array([[2.0, -0.9], [-0.9, 0.5]]))])
    moments = moments_of_groups(base)
    blocks = [(own - shared) * np.eye(size) + shared for size, (own, shared) in zip(sizes, moments, strict=True)]
    images = form.sums_in_norm(np.eye(6))
    exact = float(np.trace(images.T @ linalg.block_diag(*blocks) @ images))
    assert shape_of_groups(base, form, 3.0).solid_mean_square() == pytest.approx(exact, rel=1e-12)
    # Without a form it is that of the base itself.
    plain = shape_of_groups(base, QuadraticForm.of(np.ones(5)), 3.0)
    assert plain.solid_mean_square() == pytest.approx(base.solid_mean_square(), rel=1e-12)
    assert [abs(shared) > 1e-4 for _, shared in moments] == [linked, False, False]
