"""Attacks on the order of rows."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from confide.audit.replays import order, turned_neighbours
from confide.errors import ParameterError

X, Y = np.arange(20.0)[:, None], np.repeat([0, 1], 10)


def test_the_neighbour_is_one_row_and_the_order():
    """As a set, all rows but the first are the same."""
    for rows in (X, pd.DataFrame(X)):
        pair = turned_neighbours(rows, Y)
        assert np.ravel(pair.second[0]).tolist() == [*range(19, 0, -1), 19.0]
        assert pair.second[1].tolist() == [*([1] * 10), *([0] * 9), 1]


@pytest.mark.parametrize("by_position", [False, True])
def test_positions_that_decide_are_seen(by_position):
    """The mean of the first half of the rows, or of all, with noise that hides one row."""
    rng = np.random.default_rng(0)

    def release(X, y):
        return np.array([y[:10].sum() if by_position else y.sum()]) + np.round(rng.laplace(scale=1.0, size=1), 3)

    assert order(release, X, Y, budget=1.0, n_releases=300).refuted == by_position


def test_one_row_has_no_order():
    """Refused."""
    with pytest.raises(ParameterError):
        turned_neighbours([[1.0]], [1])
