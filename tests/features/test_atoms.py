"""Which cells a column has, and which of them are atoms: a function of released counts and of public facts alone."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from confide.features.atoms import (
    MOST_IN_COLUMN,
    MOST_IN_FIT,
    atoms_of,
    cells_of,
    n_cells,
    slots_of,
    sought_in,
)
from confide.features.columns import NumberColumn
from confide.features.schema import Schema

GAIN = NumberColumn("gain", 0, 999, "log", missing=True)


def counts(column=GAIN, background=0.0, **heavy):
    table = np.full(n_cells(column), float(background))
    for number, rows in heavy.items():
        table[int(number[1:])] = rows
    return table


def found(table, deviation=1.0, n_rows=1000.0, law="gaussian", column=GAIN):
    (atoms,) = atoms_of([column], [table], deviation, n_rows, law)
    return atoms


def test_each_whole_number_between_the_bounds_has_a_cell_and_all_else_has_one():
    """Numbers outside of the bounds count as the nearer bound; missing, infinite and broken numbers are in the last cell."""
    numbers = np.array([0.0, 5.0, 999.0, 1e9, -7.0, 5.5, np.nan, np.inf, -np.inf])
    for dtype in (np.float64, np.float32):
        assert cells_of(GAIN, numbers.astype(dtype)).tolist() == [0, 5, 999, 999, 0, 1000, 1000, 1000, 1000]
    half = NumberColumn("half", -1.5, 2.5)
    assert n_cells(half) == 5
    assert cells_of(half, np.array([-1.0, 2.0, -9.0, 9.0, 0.0])).tolist() == [0, 3, 4, 4, 1]


def test_a_cell_that_stands_out_of_noise_and_neighbours_is_an_atom():
    """As the number of the cell, in rising order, for columns that begin anywhere."""
    assert found(counts(_700=60, _30=40)) == (30.0, 700.0)
    shifted = NumberColumn("x", 100, 1099)
    assert found(counts(shifted, _30=40), column=shifted) == (130.0,)


@pytest.mark.parametrize(
    ("table", "why"),
    [
        (counts(background=30), "an even stretch"),
        (counts(_30=40, _31=40, _32=40), "a cell that has as many rows as its neighbours"),
        (counts(background=30, _30=80), "less than three times the background"),
        (counts(_30=2.2), "within the noise"),
        (counts(_30=501), "more rows than an atom may have"),
    ],
)
def test_what_does_not_stand_out_is_no_atom(table, why):
    """Each condition by itself."""
    assert found(table) == (), why


def test_atoms_of_a_column_have_nine_tenths_of_the_rows_at_most():
    """The largest come first, and each has half of the rows at most."""
    assert found(counts(_100=500, _300=400, _500=90)) == (100.0, 300.0)


def test_a_code_for_missing_cells_is_never_an_atom():
    """Noise alone may make it large, and a schema with both would be refused after the charge."""
    column = NumberColumn("gain", 0, 999, "log", missing=(30, -9))
    atoms = found(counts(column, _30=100, _700=100), column=column)
    assert replace(column, atoms=atoms).atoms == (700.0,)


def test_whatever_is_released_a_schema_takes_it():
    """Atoms rise, lie between the bounds and are at most as many as a column may have: no outcome is refused."""
    rng = np.random.default_rng(0)
    for low, high in ((0, 1), (0.5, 4.7), (-7, 0), (1, 99_999)):
        column = NumberColumn("x", low, high, "log", missing=(1,))
        for table in (
            rng.standard_cauchy(n_cells(column)) * 100.0,
            -np.ones(n_cells(column)),
            rng.integers(0, 9, n_cells(column)) ** 5.0,
        ):
            for n_rows in (-5.0, 0.0, 1e6, 1e12):
                replace(column, atoms=found(table, 1e-3, n_rows, "laplace", column))


def test_the_last_cell_is_never_an_atom():
    """It holds all that is no whole number."""
    assert found(counts(_1000=200)) == ()


@pytest.mark.parametrize("law", ["gaussian", "laplace"])
def test_few_empty_cells_pass_by_noise_alone(law):
    """About two, however many cells there are; twice the noise would let through a hundred and more."""
    column = NumberColumn("x", 0, 200_000, "log")
    noise = {"gaussian": stats.norm(scale=5.0), "laplace": stats.laplace(scale=5.0 / math.sqrt(2.0))}[law]
    table = noise.rvs(n_cells(column), random_state=0)
    assert len(found(table, 5.0, 3e4, law, column)) <= 5
    assert len(found(2.0 * table, 5.0, 3e4, law, column)) > 100


def test_without_noise_an_atom_has_one_row_in_two_thousand():
    """Fewer rows say little of a number."""
    assert found(counts(_30=5, _700=6), deviation=0.0, n_rows=10_000.0, law="none") == (700.0,)


def test_a_fit_counts_so_many_numbers_at_most():
    """Of a column, and of all together: columns are taken in order. Numbers beyond share the last cell."""
    assert (MOST_IN_COLUMN, MOST_IN_FIT) == (2**17, 2**19)
    wide = {"low": 0, "high": 10**9, "scale": "log"}
    schema = Schema({f"x{place}": wide for place in range(5)} | {"y": {"low": 0, "high": 9, "scale": "log"}})
    assert [column.name for column in sought_in(schema, ())] == ["x0", "x1", "x2"]
    small = Schema({"y": {"low": 0, "high": 9, "scale": "log"}} | {f"x{place}": wide for place in range(3)})
    assert [column.name for column in sought_in(small, ())] == ["y", "x0", "x1", "x2"]
    column = schema.columns[0]
    numbers = np.array([MOST_IN_COLUMN - 1.0, MOST_IN_COLUMN, 1e9])
    last = MOST_IN_COLUMN
    np.testing.assert_array_equal(cells_of(column, numbers), [last - 1, last, last])
    np.testing.assert_array_equal(slots_of(column, (3.0, 7.0))[[3, 7, 8, last]], [0, 1, -1, -1])
