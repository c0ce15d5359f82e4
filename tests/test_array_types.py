"""The aliases of arrays say what functions give and take."""

from __future__ import annotations

from typing import get_args

import numpy as np

from confide import array_types
from confide.features.cells import targets_at


def dtypes(alias):
    """The data types of an alias, which may be a union."""
    members = get_args(alias) if not hasattr(alias, "__origin__") or alias.__origin__ is not np.ndarray else (alias,)
    return {get_args(get_args(member)[1])[0] for member in members}


def test_labels_are_signs_for_two_classes_and_positions_for_more():
    """As they are made; a target may be a double too."""
    signs, positions = targets_at(np.array([0, 1]), 2), targets_at(np.array([0, 2, 1]), 3)
    assert {signs.dtype.type, positions.dtype.type} == dtypes(array_types.Labels) == {np.int8, np.intp}
    assert dtypes(array_types.Targets) == {np.int8, np.intp, np.float64}


def test_positions_are_those_of_numpy():
    """So that no search converts them."""
    assert dtypes(array_types.Indices) == {np.flatnonzero([1, 0, 1]).dtype.type}


def test_sums_and_weights_are_doubles():
    """Single precision is for rows alone."""
    assert dtypes(array_types.Array) == dtypes(array_types.Weights) == dtypes(array_types.Margins) == {np.float64}
