"""Rows with few entries in known places: one for a category, and two neighbouring ones for a number with knots.

The columns of such rows fall into intervals. In each interval a row has either a single entry or a pair of entries in two
neighbouring columns; all its other entries are 0. So a row is a sum of three sparse rows: its single entries, the first
entries of its pairs, and their second entries. Products with rows multiply these entries alone. They are the products that
a dense matrix with the same numbers would give, without those with an entry that is not stored, added up in another order
(privacy/proofs/certificate.md, section on coded rows).
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import pairwise
from operator import index
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csc_array, csr_array

from confide.array_types import Array, Indices, Rows
from confide.errors import ParameterError, wording

_SPARSE_ROWS = 3
"""Each row is a sum of so many sparse rows."""
_MOST = 2**31 - 1
"""The largest 32-bit integer. Compiled code counts columns, entries and sparse rows with such integers."""
Intervals: TypeAlias = tuple[tuple[int, int], ...]


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
    singles: Intervals
    pairs: Intervals
    width: int = field(init=False, compare=False)
    """Number of entries of each row, at most the number of columns, because all are in different columns."""
    key: bytes = field(init=False, compare=False, repr=False)
    """The layout as bytes. Caches use them as the key of a layout, because bytes cannot be changed."""

    def __post_init__(self) -> None:
        try:
            object.__setattr__(self, "n_features", index(self.n_features))
            object.__setattr__(self, "singles", _whole(self.singles))
            object.__setattr__(self, "pairs", _whole(self.pairs))
        except (TypeError, ValueError):
            raise ParameterError("a CodedLayout needs whole numbers: of columns, and as starts and stops.") from None
        if self.n_features > _MOST:
            raise ParameterError("a CodedLayout has fewer than 2^31 columns.")
        intervals = sorted((*self.singles, *self.pairs))
        ends = [0, *(end for interval in intervals for end in interval), self.n_features]
        if not intervals or any(first > second for first, second in pairwise(ends)):
            raise ParameterError("a CodedLayout needs intervals of columns that do not overlap.")
        if any(stop - start < 1 for start, stop in intervals) or any(stop - start < 2 for start, stop in self.pairs):
            raise ParameterError("an interval of a CodedLayout has at least one column, and two for a pair of entries.")
        object.__setattr__(self, "width", len(self.singles) + 2 * len(self.pairs))
        numbers = [self.n_features, len(self.singles), *(end for single in (*self.singles, *self.pairs) for end in single)]
        object.__setattr__(self, "key", np.array(numbers, np.int64).tobytes())

    def parts(self, stored: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
        """Views (m, number of intervals) of stored numbers: of single entries, first entries and second entries."""
        n_rows, single, pair = stored.size // self.width, len(self.singles), len(self.pairs)
        first, second = n_rows * single, n_rows * (single + pair)
        singles, firsts, seconds = np.split(stored, (first, second))
        return singles.reshape(n_rows, single), firsts.reshape(n_rows, pair), seconds.reshape(n_rows, pair)


@dataclass(frozen=True, slots=True, eq=False)
class CodedRows:
    """One block of coded rows. `CodedLayout.parts` says in which order columns and entries are stored.

    Parameters
    ----------
    layout : where the rows may have entries
    columns : (m * width,) int32, the column of each entry
    entries : (m * width,) float64, the entries; like the columns kept as a read-only view, and not to be written to by
        whoever made them

    Raises
    ------
    ParameterError
        If an array has another type or size, an entry does not lie in its interval, or the entries of a pair are not
        neighbours. Compiled code follows the columns into memory, and the norm of a row is that of its entries because they
        are in different columns.
    """

    layout: CodedLayout
    columns: NDArray[np.int32]
    entries: Array

    def __init_subclass__(cls) -> None:
        raise TypeError("CodedRows cannot be subclassed: what is proved of sums holds for its own products alone.")

    def __post_init__(self) -> None:
        columns, entries, layout = self.columns, self.entries, self.layout
        # Other classes of arrays may compare or multiply in their own way.
        fit = type(layout) is CodedLayout and type(columns) is np.ndarray and type(entries) is np.ndarray
        fit = fit and columns.dtype == np.int32 and entries.dtype == np.float64
        fit = fit and columns.shape == entries.shape == (self.n_rows * layout.width,)
        if fit and max(entries.size, _SPARSE_ROWS * self.n_rows) > _MOST:
            raise ParameterError("a block of coded rows has fewer than 2^31 entries, and a third as many rows; take fewer.")
        if fit:
            frame = _frame(layout, self.n_rows)
            _, first, second = layout.parts(columns)
            free = columns[: frame.lowest.size]  # single columns, and the first ones of pairs
            fit = bool((free >= frame.lowest).all() and (free <= frame.highest).all() and (second - first == 1).all())
        if not fit:
            raise ParameterError(wording("columns of coded rows"))
        for name, array in (("columns", columns.view()), ("entries", entries.view())):
            array.setflags(write=False)
            object.__setattr__(self, name, array)

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
        both = (self.columns, self.entries)
        columns, entries = (np.concatenate([part[rows].ravel() for part in layout.parts(stored)]) for stored in both)
        return CodedRows(layout, columns, entries)

    def times(self, vectors: Array) -> Array:
        """(m, k): products of the rows with the columns of a matrix (d, k)."""
        stacked = self._stacked(_frame(self.layout, self.n_rows).stacked, self.entries)
        products = stacked @ (vectors[:, 0] if vectors.shape[1] == 1 else vectors)
        sums: Array = products.reshape(_SPARSE_ROWS, -1).sum(axis=0)
        return sums.reshape(self.n_rows, vectors.shape[1])

    def weighted_sums(self, weights: Array) -> Array:
        """(k, d): sums of the rows, each times its weight, for the columns of weights (m, k)."""
        stacked = self._stacked(_frame(self.layout, self.n_rows).transposed, self.entries)
        threefold = np.concatenate([weights] * _SPARSE_ROWS)
        sums: Array = stacked @ (threefold[:, 0] if weights.shape[1] == 1 else threefold)
        return np.ascontiguousarray(sums.T).reshape(weights.shape[1], self.layout.n_features)

    def squares(self) -> Array:
        """(m,): the squared L2 norms of the rows, in any order of summation."""
        stacked = self._stacked(_frame(self.layout, self.n_rows).stacked, self.entries * self.entries)
        return np.asarray((stacked @ np.ones(self.layout.n_features)).reshape(_SPARSE_ROWS, -1).sum(axis=0))

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
    return rows.dense() if type(rows) is CodedRows else rows


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


def unchangeable(array: NDArray[Any]) -> NDArray[Any]:
    """A copy over memory that cannot be made writable. Every array that a cache keeps for later blocks is such a copy."""
    return np.frombuffer(array.tobytes(), array.dtype).reshape(array.shape)


def _whole(intervals: Intervals) -> Intervals:
    return tuple((index(start), index(stop)) for start, stop in intervals)


def only_bytes(key: bytes) -> bytes:
    """The same bytes, as the key of a cache. An object of another type could claim to be equal to other keys."""
    if type(key) is not bytes:
        raise TypeError("a layout and a bound are known by bytes.")
    return key


def intervals_of(key: bytes) -> tuple[int, Indices, Indices]:
    """Number of columns, and intervals (number, 2) of single entries and of pairs, from the key of a layout."""
    n_features, n_singles, *_ = numbers = np.frombuffer(key, np.int64)
    intervals = numbers[2:].reshape(-1, 2)
    return int(n_features), intervals[:n_singles], intervals[n_singles:]


def _frame(layout: CodedLayout, n_rows: int) -> _Frame:
    return _frame_of(only_bytes(layout.key), int(n_rows))


@lru_cache(maxsize=16)
def _frame_of(key: bytes, n_rows: int) -> _Frame:
    n_features, singles, pairs = intervals_of(key)
    lowest = [np.tile(part[:, 0], n_rows) for part in (singles, pairs)]
    highest = [np.tile(last, n_rows) for last in (singles[:, 1] - 1, pairs[:, 1] - 2)]
    lengths = np.repeat([len(singles), len(pairs), len(pairs)], n_rows)
    stacked = csr_array((_SPARSE_ROWS * n_rows, n_features))
    transposed = csc_array((n_features, _SPARSE_ROWS * n_rows))
    stacked.indptr = transposed.indptr = unchangeable(np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32))
    lowest_columns, highest_columns = (unchangeable(np.concatenate(part).astype(np.int32)) for part in (lowest, highest))
    return _Frame(lowest_columns, highest_columns, stacked, transposed)


# Blocks of coded rows that were clipped for many passes, joined, because a call for each block costs more than its sums.
#
# A joined block is one sparse matrix. The columns of each block are shifted by the number of columns times the number of
# blocks before it, so every block has columns, and sums, of its own. Products are those of the blocks. Sums over rows are
# made block by block, and those of the blocks are added up. So no chain of additions is longer than without joining
# (privacy/proofs/gradient.md, section 3).

BLOCKS_IN_JOINED = 8
"""So many blocks are joined: enough to make calls cheap, and few enough to stay in the cache."""
_MOST_JOINED = 2**31 - 1
"""The largest 32-bit integer, with which compiled code counts columns and entries."""


@dataclass(frozen=True, slots=True, eq=False)
class JoinedRows:
    """Several blocks of coded rows with d columns, in their order.

    Parameters
    ----------
    stacked : the rows (m, q d) as a sparse matrix, q the number of blocks
    transposed : its transpose, over the same memory
    starts : (q,), the position of the first row of each block
    """

    stacked: Any
    transposed: Any
    starts: Indices

    @classmethod
    def of(cls, blocks: Sequence[CodedRows]) -> JoinedRows | None:
        """The blocks as one, in memory of their own; None if 32-bit integers cannot count their columns or entries."""
        n_features, width, number = blocks[0].shape[1], blocks[0].layout.width, len(blocks)
        n_rows = sum(block.n_rows for block in blocks)
        if max(number * n_features, n_rows * width) > _MOST_JOINED:
            return None
        own = (np.concatenate(block.layout.parts(block.columns), axis=1) for block in blocks)
        columns = np.concatenate([part + np.int32(place * n_features) for place, part in enumerate(own)])
        entries = np.concatenate([np.concatenate(block.layout.parts(block.entries), axis=1) for block in blocks])
        ends = np.arange(n_rows + 1, dtype=np.int32) * np.int32(width)
        shape = n_rows, number * n_features
        stacked = csr_array((entries.ravel(), columns.ravel(), ends), shape)
        transposed = csc_array((stacked.data, stacked.indices, stacked.indptr), shape[::-1])
        return cls(stacked, transposed, np.cumsum([0, *(block.n_rows for block in blocks[:-1])]))

    @property
    def shape(self) -> tuple[int, int]:
        """Number of rows and of columns of a block."""
        n_rows, n_columns = self.stacked.shape
        return int(n_rows), int(n_columns) // len(self.starts)

    def times(self, vectors: Array) -> Array:
        """(m, k): products of the rows with the columns of a matrix (d, k)."""
        return np.asarray(self.stacked @ np.tile(vectors, (len(self.starts), 1)))

    def weighted_sums(self, weights: Array) -> Array:
        """(k, d): sums of the rows, each times its weight, for the columns of weights (m, k)."""
        sums: Array = self.transposed @ weights
        return np.ascontiguousarray(sums.reshape(len(self.starts), -1, weights.shape[1]).sum(axis=0).T)

    def sums_of(self, numbers: Array) -> Array:
        """(k,): sums of the columns of numbers (m, k), one number a row, block by block."""
        return np.asarray(np.add.reduceat(numbers, self.starts, axis=0).sum(axis=0))
