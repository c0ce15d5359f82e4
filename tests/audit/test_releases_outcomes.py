"""Vectors, JSON and errors as rows of numbers."""

from __future__ import annotations

import numpy as np

from confide.audit.releases import bounded, columns_of, matrix_of, vectors, with_bits


def test_json_becomes_one_column_for_each_place():
    """Numbers keep their value, text gets a column for each value, and what is missing is NaN."""
    failed = RuntimeError("ValueError: x")
    outcomes = [{"a": [1, 2.5], "b": "yes"}, {"a": [3, 4.5], "b": "no"}, {"a": [5], "b": "yes"}, failed]
    columns = columns_of(outcomes)
    matrix = matrix_of(outcomes, columns)
    assert columns == (
        ("a.length", None),
        ("a.0.", None),
        ("a.1.", None),
        ("b.", "yes"),
        ("b.", "no"),
        ("error", "ValueError: x"),
    )
    assert not vectors(outcomes[:2], outcomes[2:], 2)[2]
    np.testing.assert_array_equal(matrix[0], [2, 1, 2.5, 1, 0, 0])
    assert np.isnan(matrix[2][2])
    np.testing.assert_array_equal(matrix[3][3:], [0, 0, 1])


def test_arrays_of_one_shape_become_rows_as_they_are():
    """Without a column for their length."""
    one, other, are_numbers = vectors([np.ones((1, 2))] * 3, [np.zeros((1, 2))] * 3, 2)
    assert are_numbers
    assert one.shape == other.shape == (3, 2)


def test_columns_follow_from_the_first_outcomes_alone():
    """A value that comes later has no column."""
    one, _, are_numbers = vectors([{"x": "a"}, {"x": "b"}], [{"x": "a"}, {"x": "a"}], 1)
    assert not are_numbers
    assert one.tolist() == [[1.0], [0.0]]


def test_last_bits_of_fractions_become_columns():
    """1/2 and 1/2 plus the smallest step differ in the place of their last bit; whole numbers get no such columns."""
    matrix = with_bits(np.array([[0.5, 3.0], [0.5 + 2.0**-53, 4.0]]))
    assert matrix.shape == (2, 5)
    assert matrix[0, 2] - matrix[1, 2] == 52.0
    assert matrix[:, 3].tolist() == [-1.0, -53.0]


def test_what_is_not_finite_gets_a_column():
    """NaN becomes 0 beside a mark, and infinities become large."""
    matrix = bounded(np.array([[np.nan, np.inf], [1.0, -np.inf]]))
    assert matrix[:, 2].tolist() == [1.0, 0.0]
    assert np.isfinite(matrix).all()
