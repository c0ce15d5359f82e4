"""Shapes: every clipped row lies in the unit ball, expected sizes match independent integrals, bounds hold."""

from __future__ import annotations

import math
import pickle
import time

import numpy as np
import pytest
from scipy import stats

from confide.erm.group_bounds import GroupBound
from confide.erm.row_bounds import BallBound
from confide.errors import ParameterError
from confide.privacy.group_shapes import Groups, Linked, cell_counts, cell_weights
from confide.privacy.mechanism import shapes_of
from confide.privacy.shapes import Ball

SIZES, SCALES, FLAGS = (3, 2, 1, 4, 1), (1.0, 2.0, 0.7, 0.5, 1.5), (True, False, False, True, False)
LINKED = Linked(SIZES, SCALES, FLAGS)
SHAPES = [Ball(7, 1.3), Groups(SIZES, SCALES), LINKED]
ADULT = Linked((9, 16, 7, 15, 6, 5, 41, *(1,) * 8), (15**-0.5,) * 15, (True,) * 7 + (False,) * 8)


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


def test_the_allocation_is_the_least_variance():
    """Any other deviations with the same sum of (rho / t)^2 have a larger total variance: 2,000 random ones."""
    rho, m = (np.array(part) for part in zip(*LINKED.pieces, strict=True))
    best = LINKED.gaussian_norm(1.0) ** 2
    shares = np.random.default_rng(1).dirichlet(np.ones(len(rho)), size=2000)
    assert ((rho**2 / shares * m).sum(axis=1) > best).all()


def test_the_norms_of_a_schema_like_adult_match_the_specification():
    """Spherical 215, groups 108, linked 96 at rate 1/2; variance factors .66 and .59 for Gaussian noise."""
    ball, groups = Ball(ADULT.dimension, ADULT.l2_norm), Groups(ADULT.sizes, ADULT.scales)
    assert [round(shape.laplace_norm(0.5)) for shape in (ball, groups, ADULT)] == [215, 108, 96]
    ratios = [(shape.gaussian_norm(1.0) / ball.gaussian_norm(1.0)) ** 2 for shape in (groups, ADULT)]
    np.testing.assert_allclose(ratios, [0.66, 0.59], atol=0.005)


def test_the_laplace_norm_of_linked_groups_matches_exact_integration():
    """One linked group of two levels and a constant: V is the plane, K a rhombus of known second moment.

    Scales 1: b = (x, c - x, c) with |x| + |c - x| <= 1 and |c| <= 1, a convex polygon in (x, c), integrated on a grid.
    """
    shape = Linked((2, 1), (1.0, 1.0), (True, False))
    grid = (np.arange(2000) + 0.5) / 1000 - 1.0
    x, c = np.meshgrid(grid, grid, indexing="ij")
    inside = np.abs(x) + np.abs(c - x) <= 1.0
    exact = ((x**2 + (c - x) ** 2 + c**2) * inside).sum() / inside.sum()
    assert shape.solid_mean_square() == pytest.approx(exact, rel=2e-3)
    assert shape.laplace_norm(2.0) == pytest.approx(math.sqrt(3 * 4 * exact) / 2, rel=2e-3)


def test_cell_tables_are_exact_and_fast():
    """Counts of all levels add up to binomial(2 n, n); 40 groups of ten levels take less than a second."""
    assert cell_counts((2, 1)) == ((1,), (1, 4, 1), (1, 5, 5, 1))
    assert cell_weights((2, 1)) == (6, 10, 10, 6)
    shape = Linked((*(10,) * 40, 1), (1.0,) * 41, (*(True,) * 40, False))
    start = time.process_time()
    assert shape.laplace_norm(1.0) > 0.0
    assert time.process_time() - start < 1.0
    assert sum(cell_counts(shape.levels)[-1]) == math.comb(18, 9) ** 40


def test_the_shapes_of_a_bound():
    """A ball for every bound; groups with the intercept as the last; linked only with an intercept and two levels."""
    tight = GroupBound((3, 1, 1), (1.0, 1.0, 2.0), (True, True, False))
    names = [[shape.name for shape in shapes_of(GroupBound((3, 1, 1), (1.0, 1.0, 2.0)), c, 5)] for c in (0.0, 1.0)]
    assert names == [["ball", "groups"]] * 2
    assert shapes_of(BallBound(2.0), 0.0, 5) == (Ball(5, 2.0),)
    (ball,) = shapes_of(BallBound(2.0), 1.5, 5)
    assert ball.dimension == 6
    assert ball.l2_norm >= 2.5
    ball, groups, linked = shapes_of(tight, 0.5, 5)
    assert ball.dimension == groups.dimension == linked.dimension == 6
    assert groups.sizes == linked.sizes == (3, 1, 1, 1)
    assert linked.scales == (1.0, 1.0, 2.0, 0.5)
    assert linked.linked == (True, False, False, False)
    assert linked.free_dimension == 5
    assert [shape.name for shape in shapes_of(tight, 0.0, 5)] == ["ball", "groups"]


def test_linked_groups_need_an_intercept_of_their_own():
    """The last group is one column, and free."""
    for sizes, flags in (((2, 2), (True, False)), ((2, 1), (True, True))):
        with pytest.raises(ParameterError):
            Linked(sizes, (1.0, 1.0), flags)


def test_shapes_are_values():
    """Equal, hashable, and unchanged by pickling; a ball is not the group of the same size."""
    for shape in SHAPES:
        assert pickle.loads(pickle.dumps(shape)) == shape
        assert len({shape, pickle.loads(pickle.dumps(shape))}) == 1
    assert Ball(3, 1.0) != Groups((3,), (1.0,))


@pytest.mark.parametrize("shape", [*SHAPES, Ball(1, 1.0), Ball(1000, 1.0), ADULT], ids=lambda shape: shape.name)
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
    assert shape.laplace_bound(4.0, -100.0) == pytest.approx(shape.laplace_bound(2.0, -100.0) / 2)
