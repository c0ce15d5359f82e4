"""The values at which effects are given: their weights, and how other values are made of them."""

from __future__ import annotations

import math

import numpy as np
import pytest

from confide import ParameterError
from confide.effects.effects import Points
from confide.features.codes import encoding_of
from confide.features.columns import CategoryColumn, NumberColumn


def points_of(column):
    return Points.of([encoding_of(column)])


def test_weights_of_a_number_are_those_of_the_trapezoid_rule():
    """On the column's own scale, missing cells without weight; the mean of a curve is its integral."""
    points = points_of(NumberColumn("x", 0, 10, knots=(1.0, 4.0), missing=True))
    assert points.values == (0, 1, 4, 10, "(missing)")
    np.testing.assert_allclose(points.weights, [0.05, 0.2, 0.45, 0.3, 0.0])
    log = points_of(NumberColumn("x", 0, math.e**3 - 1, scale="log", knots=2))
    np.testing.assert_allclose(log.weights, [1 / 6, 1 / 3, 1 / 3, 1 / 6])
    assert log.is_log


def test_all_levels_weigh_the_same_and_what_is_no_level_has_no_weight():
    points = points_of(CategoryColumn("x", ("a", "b"), other=True, missing=True))
    assert points.values == ("a", "b", "(other)", "(missing)")
    np.testing.assert_allclose(points.weights, 0.25)
    np.testing.assert_allclose(points_of(CategoryColumn("x", ("a", "b"))).weights, [0.5, 0.5, 0.0])


def test_encodings_with_different_knots_share_their_points():
    """Whatever the weights of the coarser curve, its effects at all points are those of its own interpolation."""
    fine, coarse = (encoding_of(NumberColumn("x", 0, 8, knots=knots)) for knots in ((2.0, 4.0), (3.0,)))
    points = Points.of([fine, coarse])
    assert points.values == (0, 2, 3, 4, 8)
    np.testing.assert_allclose(points.effects(coarse, np.array([[0.0], [3.0], [8.0]]))[:, 0], [0, 2, 3, 4, 8], atol=1e-9)


def test_mixtures_interpolate_on_the_columns_own_scale():
    points = points_of(NumberColumn("x", 0, 99, scale="log", knots=(9.0,), missing=True))
    np.testing.assert_allclose(points.mixture(math.sqrt(10) - 1), [0.5, 0.5, 0, 0], atol=1e-12)
    for absent in (None, math.nan, "(missing)"):
        np.testing.assert_array_equal(points.mixture(absent), [0, 0, 0, 1])
    levels = points_of(CategoryColumn("x", (1, "b")))
    np.testing.assert_array_equal(levels.mixture("1.0"), [1, 0, 0])


@pytest.mark.parametrize("value", [-1, 11, "5", True, math.inf])
def test_numbers_outside_the_bounds_are_refused(value):
    with pytest.raises(ParameterError, match='column "x": give a number from 0 to 10'):
        points_of(NumberColumn("x", 0, 10)).mixture(value)


def test_unlisted_levels_and_undeclared_missing_cells_are_refused():
    points = points_of(CategoryColumn("x", ("a", "b")))
    with pytest.raises(ParameterError, match=r'give one of its levels: "a", "b"\.'):
        points.mixture("c")
    with pytest.raises(ParameterError, match="missing cells are not declared"):
        points.mixture(None)


def test_words_for_missing_cells_stand_for_them_unless_they_are_levels():
    assert points_of(CategoryColumn("x", ("a", "b"), missing=True)).mixture("NA").tolist() == [0, 0, 1, 0]
    assert points_of(CategoryColumn("x", ("a", "NA"), missing=True)).mixture("NA").tolist() == [0, 1, 0, 0]


def test_numbers_are_shown_with_four_digits_unless_two_would_read_alike():
    def texts(low, high, knots):
        column = NumberColumn("x", low, high, knots=knots)
        return Points.of([encoding_of(column)]).texts

    assert texts(0, 200, (400 / 7, 600 / 7)) == ("0", "57.14", "85.71", "200")
    assert texts(0, 1, (0.123451, 0.123459)) == ("0", "0.12345", "0.12346", "1")
    assert texts(0, 99999, (12345.678, 20000)) == ("0", "12346", "20000", "99999")


@pytest.mark.parametrize(
    ("levels", "value", "place"), [((1, True, "x"), True, 1), ((0, False, "x"), False, 1), ((1, "x"), 1.0, 0)]
)
def test_a_truth_value_is_not_the_number_that_equals_it(levels, value, place):
    """In Python True equals 1, and False 0."""
    mixture = points_of(CategoryColumn("a", levels)).mixture(value)
    assert mixture.tolist().index(1.0) == place
