"""Shapes: every clipped row lies in the unit ball, expected sizes match independent integrals, bounds hold."""

from __future__ import annotations

import math
import pickle
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from confide.privacy.shapes import Ball, Cylinder, Groups, Linked

SIZES, SCALES, FLAGS = (3, 2, 1, 4, 1), (1.0, 2.0, 0.7, 0.5, 1.5), (True, False, False, True, False)
LINKED = Linked(SIZES, SCALES, FLAGS)
ADULT = Linked((9, 16, 7, 15, 6, 5, 41, *(1,) * 8), (15**-0.5,) * 15, (True,) * 7 + (False,) * 8)
SHAPES = [Ball(7, 1.3), Cylinder(6, 1.3, 0.8), Groups(SIZES, SCALES), LINKED]


def covariance(shape, scale):
    """The covariance of E.14, by projectors."""
    starts = np.concatenate([[0], np.cumsum(shape.sizes)])
    total, common = np.zeros((shape.dimension, shape.dimension)), np.zeros(shape.dimension)
    deviations = shape.gaussian_deviations(scale)
    for g, size in enumerate(shape.sizes):
        block = slice(starts[g], starts[g + 1])
        if shape.linked[g]:
            total[block, block] = deviations[g] ** 2 * (np.eye(size) - 1.0 / size)
            common[block] = shape.scales[g] / size
        elif g < len(shape.sizes) - 1 or not any(shape.linked):
            total[block, block] = deviations[g] ** 2 * np.eye(size)
    if any(shape.linked):
        common[-1] = shape.scales[-1]
        total += deviations[-1] ** 2 * np.outer(common, common) / (common @ common)
    return total


def rows_of(shape, n=400):
    """Rows at the edge of the bound: one active level a group, signs free outside the linked ones."""
    source, rows = np.random.default_rng(4), np.zeros((n, shape.dimension))
    if isinstance(shape, Ball):
        normals = source.normal(size=(n, shape.dimension))
        return shape.scales[0] * normals / np.linalg.norm(normals, axis=1)[:, None]
    if isinstance(shape, Cylinder):
        balls = rows_of(Ball(shape.sizes[0], shape.scales[0]), n)
        return np.column_stack([balls, np.full(n, shape.scales[1])])
    starts = np.concatenate([[0], np.cumsum(shape.sizes)[:-1]])
    for size, scale, linked, start in zip(shape.sizes, shape.scales, shape.linked, starts, strict=True):
        last = start == shape.dimension - 1
        rows[np.arange(n), start + source.integers(size, size=n)] = (
            scale if linked or last else scale * source.choice([-1, 1], n)
        )
    return rows


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.name)
def test_no_row_is_longer_than_the_gaussian_law_is_calibrated_for(shape):
    """x' C^+ x <= 1 / scale^2, and nearly equal for some row; rows are in the space of the noise; R_2 holds."""
    scale = 2.5
    rows, spread = rows_of(shape), covariance(shape, scale)
    inverse = np.linalg.pinv(spread, rcond=1e-10)
    whitened = np.einsum("ij,jk,ik->i", rows, inverse, rows) * scale**2
    assert 0.999 < whitened.max() <= 1.0 + 1e-9
    np.testing.assert_allclose(rows @ inverse @ spread, rows, atol=1e-12)
    assert np.trace(spread) == pytest.approx(shape.gaussian_norm(scale) ** 2)
    assert np.linalg.matrix_rank(spread) == shape.free_dimension
    assert np.linalg.norm(rows, axis=1).max() <= shape.l2_norm * (1.0 + 1e-15)
    deviations = shape.gaussian_deviations(scale)
    assert math.fsum((rho / t) ** 2 for (rho, _), t in zip(shape.pieces, deviations, strict=True)) <= scale**-2
    assert sum(m for _, m in shape.pieces) == shape.free_dimension


def test_the_norm_of_a_row_is_rounded_upwards():
    """In exact arithmetic, for pairs of which about half of the roots are rounded down."""
    for scales in np.random.default_rng(3).uniform(0.1, 10.0, size=(200, 2)).tolist():
        square, found = sum(Fraction(scale) ** 2 for scale in scales), Groups((1, 1), tuple(scales)).l2_norm
        assert square * (1 + Fraction(1, 2**51)) < Fraction(found) ** 2 < square * (1 + Fraction(1, 2**48))


def test_the_allocation_is_the_least_variance():
    """Any other deviations with the same sum of (rho / t)^2 have a larger total variance: 2,000 random ones."""
    rho, m = (np.array(part) for part in zip(*LINKED.pieces, strict=True))
    best = LINKED.gaussian_norm(1.0) ** 2
    shares = np.random.default_rng(1).dirichlet(np.ones(len(rho)), size=2000)
    assert ((rho**2 / shares * m).sum(axis=1) > best).all()


def test_shapes_are_values():
    """Equal, hashable, and unchanged by pickling; a ball is not the group of the same size."""
    for shape in SHAPES:
        assert pickle.loads(pickle.dumps(shape)) == shape
        assert len({shape, pickle.loads(pickle.dumps(shape))}) == 1
    assert Ball(3, 1.0) != Groups((3,), (1.0,))
    assert Cylinder(3, 1.0, 2.0) != Groups((3, 1), (1.0, 2.0))


@pytest.mark.parametrize(
    "shape", [*SHAPES, Ball(1, 1.0), Ball(1000, 1.0), Cylinder(1, 1.0, 3.0), ADULT], ids=lambda shape: shape.name
)
def test_the_public_bounds_hold_with_their_failure_probability(shape):
    """By the Gamma tail and the normal norm's tail; at most ten times what 1e-60 needs."""
    for log_failure in (-200.0 * math.log(2.0), -200.0 * math.log(2.0) - 50.0):
        bound, tail = shape.laplace_bound(2.0, log_failure), stats.gamma(shape.free_dimension + 1)
        assert tail.logsf(bound * 2.0 / shape.l2_norm) <= log_failure
        assert bound <= 10 * shape.l2_norm * (tail.isf(1e-60) - log_failure) / 2.0
        widest = max(shape.gaussian_deviations(2.0))
        deviates = (shape.gaussian_bound(2.0, log_failure) - shape.gaussian_norm(2.0)) / widest
        assert stats.norm.logsf(deviates) <= log_failure - math.log(2.0)
        assert stats.chi(shape.dimension).logsf(math.sqrt(shape.dimension) + deviates) <= log_failure - math.log(2.0)
        assert shape.gaussian_error(2.0, log_failure) <= 1e-12 * shape.gaussian_bound(2.0, log_failure)
        # The computed draw may be longer than the exact one by its error.
        exact = shape.gaussian_norm(2.0) + widest * math.sqrt(2.0 * (0.7 - log_failure))
        room = shape.gaussian_bound(2.0, log_failure) - exact * (1.0 + 2.0**-45)
        assert room >= 0.5 * shape.gaussian_error(2.0, log_failure)
    assert shape.laplace_bound(4.0, -100.0) == pytest.approx(shape.laplace_bound(2.0, -100.0) / 2)


def test_the_laplace_norm_of_a_cylinder_matches_exact_integration():
    """A rectangle where rows have one column, a cylinder of space where they have two; by a grid of points."""
    grid = (np.arange(400) + 0.5) / 200 - 1.0
    x, y = np.meshgrid(1.3 * grid, 1.3 * grid, indexing="ij")
    inside = x**2 + y**2 <= 1.3**2
    disc, interval = ((x**2 + y**2) * inside).sum() / inside.sum(), (0.8 * grid) @ (0.8 * grid) / 400
    assert Cylinder(2, 1.3, 0.8).solid_mean_square() == pytest.approx(disc + interval, rel=1e-3)
    assert Cylinder(2, 1.3, 0.8).laplace_norm(2.0) == pytest.approx(math.sqrt(4 * 5 * (disc + interval)) / 2, rel=1e-3)
    assert Cylinder(1, 1.3, 0.8).solid_mean_square() == pytest.approx((1.3**2 + 0.8**2) / 3)


@pytest.mark.parametrize("n_features", [1, 3, 20, 100])
@pytest.mark.parametrize("constant", [0.01, 1.0, 30.0])
def test_a_cylinder_needs_less_noise_than_a_ball_around_whole_rows(n_features, constant):
    """At one rate and at one scale, under either law: what the plan compares. With 20 columns by a fifth."""
    ball, cylinder = Ball(n_features + 1, math.hypot(1.0, constant)), Cylinder(n_features, 1.0, constant)
    laplace, gaussian = (getattr(ball, law)(1.0) / getattr(cylinder, law)(1.0) for law in ("laplace_norm", "gaussian_norm"))
    assert laplace > 1.0
    assert gaussian > 1.0 - 1e-12
    if (n_features, constant) == (20, 1.0):
        assert (round(laplace, 2), round(gaussian, 2)) == (1.21, 1.18)


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.name)
def test_the_error_of_a_gaussian_draw_is_32_units_of_what_normals_may_be(shape):
    """proofs/noise.md, section 3: 32 units of sqrt(D) and the deviates, times the largest deviation of a piece."""
    for scale, log_failure in ((2.0, -100.0), (0.1, -200.0)):
        normals = math.sqrt(shape.dimension) + math.sqrt(2.0 * (math.log(2.0) - log_failure))
        needed = 32.0 * 2.0**-53 * max(shape.gaussian_deviations(scale)) * normals
        assert needed <= shape.gaussian_error(scale, log_failure) <= 1.01 * needed


@pytest.mark.parametrize(
    "shape", [Ball(3, 2.0), Cylinder(4, 2.0, 1.5), Groups((3, 2, 1), (0.8, 1.3, 0.6))], ids=lambda s: s.name
)
def test_the_bound_on_laplace_noise_is_that_of_the_page(shape):
    """R (1.4 (d + 1) - 2 log p) / rate, d the number of free dimensions."""
    norm = math.sqrt(sum(scale**2 for scale in shape.scales))
    for log_failure in (0.0, -140.0):
        exact = norm * (1.4 * (shape.free_dimension + 1) - 2.0 * log_failure) / 0.7
        assert shape.laplace_bound(0.7, log_failure) == pytest.approx(exact, rel=1e-12)


def test_the_length_of_a_row_is_rounded_up_by_one_part_in_two_to_the_fifty():
    """From exact squares: two roundings of 2^-53 are covered, and hardly more is added."""
    for scales in ((0.3, 0.4, 1.2), (0.1, 0.7, 0.9), (1.0, 2.0**-30, 0.6)):
        exact = sum(Fraction(scale) ** 2 for scale in scales)
        excess = Fraction(Groups((1, 1, 1), scales).l2_norm) ** 2 / exact - 1
        assert 2 * (8 - 2) * 2.0**-53 < excess < 2 * (8 + 2) * 2.0**-53


def test_the_rounding_constants_are_those_of_the_table():
    """In units of 2^-53, proofs/noise.md, section 4: 49 for an entry of a ball, 70 for one of a cylinder."""
    for shape, needed in ((Ball, 49.0 * 2.0**-53), (Cylinder, 70.0 * 2.0**-53)):
        assert needed < shape.laplace_error <= 1.1 * needed
