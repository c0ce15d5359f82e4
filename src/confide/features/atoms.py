"""Which numbers of a column may be atoms, and which of them are, from noisy counts of rows by number.

A column has a public table of cells: one for each whole number between its bounds, and a last one for all that is no whole
number. The atoms are cells with many more rows than the cells around them, by more than the noise explains.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from confide.array_types import Array
from confide.features.cells import CellNumbers
from confide.features.columns import MOST_ATOMS, NumberColumn
from confide.features.schema import Schema

MOST_IN_COLUMN, MOST_IN_FIT = 2**17, 2**19
"""The largest number of whole numbers that a fit counts each by itself, of a column and in all. The noise on so many of a
column takes a second."""
_AROUND, _AT_ONCE = 15, 2**16
"""The background of a cell is the median of so many cells on either side and of itself. It is found for so many at once."""
_LEAST_OVER_NOISE = 3.0
_BY_CHANCE = 2.0
"""About so many empty cells pass by noise alone, however many cells there are. With ten, models err as often."""
_OVER_BACKGROUND, _OVER_NEIGHBOURS = 3.0, 2.0
"""An atom has so many times the rows of the background, and of its two neighbours in the mean. Otherwise all numbers of a
dense stretch, such as ages, would be atoms. Chosen on Adult, Bank, Census, KDD Cup 99 and credit data."""
_LEAST_SHARE, _LARGEST_SHARE, _LARGEST_TOTAL = 1.0 / 2000.0, 0.5, 0.9
"""The least and the largest share of the rows in one atom, and the largest one in all atoms of a column. Where nearly all
rows have one number, its atom would tell what the intercept tells."""


def n_cells(column: NumberColumn) -> int:
    """The number of cells of a column: whole numbers beyond the first `MOST_IN_COLUMN` share the last one."""
    return min(max(0, math.floor(column.high) - math.ceil(column.low) + 1), MOST_IN_COLUMN) + 1


def are_exact(column: NumberColumn) -> bool:
    """Whether the whole numbers between the bounds are different numbers of 64 bits."""
    return max(-column.low, column.high) < 2.0**53


def sought_in(schema: Schema, names: Sequence[str], *, in_one: bool = False) -> tuple[NumberColumn, ...]:
    """The columns of a schema in which a fit looks for atoms: those with a logarithmic scale that say nothing of atoms.

    They are taken in order, as long as all together have few enough cells. A number is left out where the name of an atom
    could be that of another encoded column: with a level "b=7" of a category "a", which is the column "a=b=7", no atoms are
    looked for in a number "a=b". A column for missing cells is no such name, because "(missing)" is never an atom.

    Parameters
    ----------
    schema : the public description of the columns
    names : of the encoded columns
    in_one : whether they are looked for in one column alone: in the first that is named in an interaction, or else the first
    """
    found, taken, n_left = [], (*schema.column_names, *names), MOST_IN_FIT
    for column in schema.columns:
        if column.is_number and column.is_log and not column.atoms and are_exact(column) and n_cells(column) > 1:
            own = f"{column.name}="
            if not [name for name in taken if name.startswith(own) and not name.startswith(f"{own}(missing)")]:
                n_left -= n_cells(column)
                found += [column] if n_left >= 0 else []
    named = {name for interaction in schema.interact for name in interaction.columns}
    return tuple(sorted(found, key=lambda column: column.name not in named)[:1] if in_one else found)


def slots_of(column: NumberColumn, atoms: Sequence[float]) -> NDArray[np.int16]:
    """For each cell of a column in which a fit looks for atoms, which of the atoms it is; -1 for none."""
    slots = np.full(n_cells(column), -1, dtype=np.int16)
    slots[cells_of(column, np.array(atoms))] = np.arange(len(atoms))
    return slots


def cells_of(column: NumberColumn, numbers: CellNumbers) -> NDArray[np.int64]:
    """(n,): the cell of each number (n,), clipped to the bounds as for the line and the curve."""
    last = n_cells(column) - 1
    places = np.clip(numbers, *np.array(column.bounds).astype(numbers.dtype)).astype(np.float64) - math.ceil(column.low)
    # Infinite numbers count as missing ones do. What is no number equals nothing.
    is_whole = np.isfinite(numbers) & (places == np.rint(places)) & (places >= 0.0) & (places < last)
    return np.where(is_whole, places, last).astype(np.int64)


def atoms_of(
    columns: Sequence[NumberColumn],
    counts: Sequence[Array],
    deviation: float,
    n_rows: float,
    law: str,
    most: int = MOST_ATOMS,
) -> tuple[tuple[float, ...], ...]:
    """The atoms of each column, from noisy counts of rows by cell. It uses no row.

    Parameters
    ----------
    columns : the columns
    counts : for each of them the noisy counts (n_cells,)
    deviation : standard deviation of the noise on a count
    n_rows : the number of rows, or a private guess of it
    law : of the noise: "gaussian", "laplace" or "none"
    most : the largest number of atoms of a column
    """
    chance = min(0.5, _BY_CHANCE / sum(table.size for table in counts))
    # Where a variable of this law and of deviation 1 exceeds the number with this probability.
    quantile = -math.log(2.0 * chance) / math.sqrt(2.0) if law == "laplace" else -float(ndtri(chance))
    enough = max(max(_LEAST_OVER_NOISE, quantile) * deviation, _LEAST_SHARE * n_rows)
    found = []
    for column, table in zip(columns, counts, strict=True):
        rows = table[:-1]
        before, after = np.append(0.0, rows[:-1]), np.append(rows[1:], 0.0)
        least = np.maximum(_OVER_BACKGROUND * (around := _background(rows)), around + enough)
        is_atom = (rows > least) & (rows > _OVER_NEIGHBOURS * 0.5 * (before + after)) & (rows <= _LARGEST_SHARE * n_rows)
        # Codes of missing cells have no rows, but noise, and a schema with such an atom would be refused.
        is_atom &= ~np.isin(np.arange(rows.size) + math.ceil(column.low), column.missing_codes)
        places = np.flatnonzero(is_atom)
        # The largest first, of equal ones the first.
        places = places[np.argsort(-rows[places], kind="stable")][:most]
        kept = places[np.cumsum(rows[places]) <= _LARGEST_TOTAL * n_rows]
        found.append(tuple((np.sort(kept) + math.ceil(column.low)).astype(np.float64).tolist()))
    return tuple(found)


def _background(rows: Array) -> Array:
    """(n,): the median count of the cells around each cell, at least 0."""
    around = np.lib.stride_tricks.sliding_window_view(np.pad(rows, _AROUND, mode="reflect"), 2 * _AROUND + 1)
    blocks = np.split(around, range(_AT_ONCE, len(around), _AT_ONCE))
    return np.asarray(np.maximum(np.concatenate([np.median(block, axis=1) for block in blocks]), 0.0))
