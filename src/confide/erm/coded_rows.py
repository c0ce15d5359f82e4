"""Rows with few entries in known places: one for a category, and two neighbouring ones for a number with knots.

The columns of such rows fall into intervals. In each interval a row has either a single entry or a pair of entries in two
neighbouring columns; all its other entries are 0. So a row is a sum of three sparse rows: its single entries, the first
entries of its pairs, and their second entries. Products with rows multiply these entries alone. They are the products that
a dense matrix with the same numbers would give, without those with an entry that is not stored, added up in another order
(privacy/proofs/certificate.md, section on coded rows).
"""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csc_array, csr_array

from confide.errors import ParameterError
from confide.types import Array, Rows


@dataclass(frozen=True, slots=True)
class CodedLayout:
    """Where rows may have entries. It is public.

    Parameters
    ----------
    n_features : number of columns of a row
    singles : intervals of columns, each from a start to before a stop, in each of which a row has a single entry
    pairs : intervals of at least two columns, in each of which a row has entries in two neighbouring columns
    """

    n_features: int
    singles: tuple[tuple[int, int], ...]
    pairs: tuple[tuple[int, int], ...]
    width: int = field(init=False, compare=False)
    """Number of entries of each row, at most the number of columns, because all are in different columns."""

    def __post_init__(self) -> None:
        intervals = sorted((*self.singles, *self.pairs))
        ends = [0, *(end for interval in intervals for end in interval), self.n_features]
        if not intervals or any(first > second for first, second in pairwise(ends)):
            raise ParameterError("a CodedLayout needs intervals of columns that do not overlap.")
        if any(stop - start < 1 for start, stop in intervals) or any(stop - start < 2 for start, stop in self.pairs):
            raise ParameterError("an interval of a CodedLayout has at least one column, and two for a pair of entries.")
        object.__setattr__(self, "width", len(self.singles) + 2 * len(self.pairs))

    def parts(self, stored: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
        """Views (m, number of intervals) of stored numbers: of single entries, first entries and second entries."""
        n_rows, single, pair = stored.size // self.width, len(self.singles), len(self.pairs)
        first, second = n_rows * single, n_rows * (single + pair)
        return (
            stored[:first].reshape(n_rows, single),
            stored[first:second].reshape(n_rows, pair),
            stored[second:].reshape(n_rows, pair),
        )


@dataclass(frozen=True, slots=True, eq=False)
class CodedRows:
    """One block of coded rows. `CodedLayout.parts` says in which order columns and entries are stored.

    Parameters
    ----------
    layout : where the rows may have entries
    columns : (m * width,) int32, the column of each entry
    entries : (m * width,) float64, the entries

    Raises
    ------
    ParameterError
        If an entry does not lie in its interval, or the entries of a pair are not neighbours. Compiled code follows the
        columns into memory, and the norm of a row is that of its entries because they are in different columns.
    """

    layout: CodedLayout
    columns: NDArray[np.int32]
    entries: Array

    def __post_init__(self) -> None:
        columns, entries, layout = self.columns, self.entries, self.layout
        fit = columns.shape == entries.shape == (self.n_rows * layout.width,) and columns.dtype == np.int32
        if fit:
            frame = _frame(layout, self.n_rows)
            _, first, second = layout.parts(columns)
            free = columns[: frame.lowest.size]  # single columns, and the first ones of pairs
            fit = bool((free >= frame.lowest).all() and (free <= frame.highest).all() and (second - first == 1).all())
        if not fit:
            raise ParameterError("coded rows need a column for each entry, each in its interval, and pairs of neighbours.")

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return self.entries.size // self.layout.width

    @property
    def shape(self) -> tuple[int, int]:
        """Number of rows and of columns."""
        return self.n_rows, self.layout.n_features

    def __getitem__(self, rows: slice) -> CodedRows:
        layout = self.layout
        columns, entries = (
            np.concatenate([part[rows].ravel() for part in layout.parts(stored)]) for stored in (self.columns, self.entries)
        )
        return CodedRows(layout, columns, entries)

    def times(self, vectors: Array) -> Array:
        """(m, k): products of the rows with the columns of a matrix (d, k)."""
        stacked = self._stacked(_frame(self.layout, self.n_rows).stacked, self.entries)
        products = stacked @ (vectors[:, 0] if vectors.shape[1] == 1 else vectors)
        sums: Array = products.reshape(3, -1).sum(axis=0)
        return sums.reshape(self.n_rows, vectors.shape[1])

    def weighted_sums(self, weights: Array) -> Array:
        """(k, d): sums of the rows, each times its weight, for the columns of weights (m, k)."""
        stacked = self._stacked(_frame(self.layout, self.n_rows).transposed, self.entries)
        threefold = np.concatenate([weights] * 3)
        sums: Array = stacked @ (threefold[:, 0] if weights.shape[1] == 1 else threefold)
        return np.ascontiguousarray(sums.T).reshape(weights.shape[1], self.layout.n_features)

    def squares(self) -> Array:
        """(m,): the squared L2 norms of the rows, in any order of summation."""
        stacked = self._stacked(_frame(self.layout, self.n_rows).stacked, self.entries * self.entries)
        squares: Array = (stacked @ np.ones(self.layout.n_features)).reshape(3, -1).sum(axis=0)
        return squares

    def scaled(self, factors: Array) -> CodedRows:
        """Each row times its factor (m,)."""
        parts = [part * factors[:, None] for part in self.layout.parts(self.entries)]
        return replace(self, entries=np.concatenate([part.ravel() for part in parts]))

    def dense(self) -> Array:
        """The rows as an array (m, d) in Fortran order."""
        columns = np.zeros((self.layout.n_features, self.n_rows))
        rows = np.arange(self.n_rows)[:, None]
        for places, entries in zip(self.layout.parts(self.columns), self.layout.parts(self.entries), strict=True):
            columns[places, rows] = entries
        return columns.T

    def _stacked(self, empty: Any, entries: Array) -> Any:
        """The three sparse rows of each row as a matrix (3 m, d), or its transpose: single, first and second entries."""
        stacked = copy(empty)  # many times faster than the constructor
        stacked.data, stacked.indices = entries, self.columns
        return stacked


def dense(rows: Rows) -> Any:
    """Coded rows as an array; other rows as they are."""
    return rows.dense() if isinstance(rows, CodedRows) else rows


@dataclass(frozen=True, slots=True)
class _Frame:
    """What all blocks of a layout with so many rows have in common.

    Parameters
    ----------
    lowest, highest : limits for the columns of single entries and of the first entries of pairs
    stacked, transposed : the matrices of `CodedRows._stacked`, without entries
    """

    lowest: NDArray[np.int32]
    highest: NDArray[np.int32]
    stacked: Any
    transposed: Any


@lru_cache(maxsize=16)
def _frame(layout: CodedLayout, n_rows: int) -> _Frame:
    singles, pairs = np.array(layout.singles).reshape(-1, 2), np.array(layout.pairs).reshape(-1, 2)
    lowest = [np.tile(part[:, 0], n_rows) for part in (singles, pairs)]
    highest = [np.tile(last, n_rows) for last in (singles[:, 1] - 1, pairs[:, 1] - 2)]
    lengths = np.repeat([len(singles), len(pairs), len(pairs)], n_rows)
    stacked = csr_array((3 * n_rows, layout.n_features))
    transposed = csc_array((layout.n_features, 3 * n_rows))
    stacked.indptr = transposed.indptr = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
    frame = _Frame(np.concatenate(lowest).astype(np.int32), np.concatenate(highest).astype(np.int32), stacked, transposed)
    for array in (frame.lowest, frame.highest, stacked.indptr):
        array.setflags(write=False)
    return frame
