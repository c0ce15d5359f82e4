"""How rows fall into tables: distances of neighbours in exact arithmetic, and sums against direct computations."""

from __future__ import annotations

from fractions import Fraction
from functools import cache

import numpy as np
import pytest

from confide.data.arrays import ArrayBlocks, MemorySource
from confide.estimators.evaluation import planned_evaluation
from confide.evaluations.tables import RowSums, ScoredRows, _side_by_side, sizes_of
from confide.features.cells import targets_at
from confide.privacy.budgets import PureDP
from tests.evaluations.examples import classifier, numbers, regressor, three_classes

UNIT = 2**20


def sums_of(planned, X, y):
    """The exact integers, in units of 2^-20."""
    labels = targets_at(y, 3) if planned.scorers[0].n_classes else y
    return np.concatenate(RowSums(planned.layout, planned.scorers).of_sources([MemorySource(ArrayBlocks(X), labels)]))


NAMES = ("classes", "numbers", "two classifiers", "two regressors")


@cache
def kinds():
    """Each kind of evaluation, with rows that differ a lot."""
    X, y = three_classes(60, 1)
    t = numbers(60, 1)[1]
    return {
        "classes": (planned_evaluation(classifier(), PureDP(1.0), clip=1.0), X, y),
        "numbers": (planned_evaluation(regressor(), PureDP(1.0), clip=0.3), X, t),
        "two classifiers": (planned_evaluation(classifier(), PureDP(1.0), other=classifier(n=60, alpha=0.3)), X, y),
        "two regressors": (planned_evaluation(regressor(), PureDP(1.0), other=regressor(n=60, alpha=0.3)), X, t),
    }


@pytest.mark.parametrize("name", NAMES)
def test_neighbours_are_at_the_distance_of_the_theorem(name):
    """In exact arithmetic, over all pairs of rows: at most 2T and the root of 2T, which rows of different cells attain."""
    planned, X, y = kinds()[name]
    n_tables = len(planned.layout.shapes)
    alone = [sums_of(planned, X[row : row + 1], y[row : row + 1]) for row in range(len(y))]
    ends = np.cumsum(sizes_of(planned.layout))[:-1]
    for sums in alone:
        assert sums.min() >= 0
        assert [int(each.sum()) for each in np.split(sums, ends)] == [UNIT] * n_tables
    l1, squares = Fraction(0), Fraction(0)
    for first in alone:
        for second in alone:
            difference = [Fraction(int(each), UNIT) for each in first - second]
            l1 = max(l1, sum(map(abs, difference)))
            squares = max(squares, sum(each * each for each in difference))
    assert l1 <= 2 * n_tables
    assert squares <= 2 * n_tables
    # Rows that are far apart have nothing in common. So a constant twice as large as needed is seen as well.
    assert l1 > n_tables
    if name == "classes":
        assert l1 > Fraction(19, 10) * n_tables
        assert squares > Fraction(19, 10) * n_tables


@pytest.mark.parametrize("name", NAMES)
def test_a_row_that_is_replaced_changes_its_own_part_alone(name):
    """To the bit, wherever it stands and in whatever order the others are."""
    planned, X, y = kinds()[name]
    whole = sums_of(planned, X, y)
    order = np.random.default_rng(1).permutation(len(y))
    np.testing.assert_array_equal(sums_of(planned, X[order], y[order]), whole)
    for row in (0, 30, 59):
        rest = np.arange(len(y)) != row
        alone = sums_of(planned, X[row : row + 1], y[row : row + 1])
        np.testing.assert_array_equal(sums_of(planned, X[rest], y[rest]) + alone, whole)


def test_streams_that_are_cut_in_different_places_are_joined_again():
    """The same rows in the same order, each exactly once."""

    def stream(sizes, sign):
        start = 0
        for size in sizes:
            rows = np.arange(start, start + size)
            yield ScoredRows(rows, sign * rows.astype(float), np.zeros(size, dtype=np.intp))
            start += size

    found = list(_side_by_side([stream([3, 1, 4], 1.0), stream([2, 2, 2, 2], -1.0)]))
    for first, second in found:
        np.testing.assert_array_equal(first.targets, second.targets)
        np.testing.assert_array_equal(first.scores, -second.scores)
    assert np.concatenate([first.targets for first, _ in found]).tolist() == list(range(8))
