"""Rows as the compiled kernel reads them: in the form in which they are stored, without a copy."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from confide.array_types import Array, Rows, Targets
from confide.compiled.loading import MOST_BENT, MOST_CODED_BENT, MOST_LINES, Kernel

SHORTEST_ROW = 4
"""The kernel reads four numbers of a row at once where rows are moved by a centre."""
LINE, CURVE, LEVELS = range(3)
"""Kinds of columns, as kernel.c names them."""


def labels_and_counts(
    labels: Targets, row_weights: Array | None, exposure: tuple[float, float] | None = None
) -> tuple[Any, Array | None]:
    """Labels or targets (m,) and weights of rows (m,) in types that the kernel reads, copied only where they have to be.

    Behind counts come their exposures, clipped to these bounds, if there are any: (2 m,). The kernel refuses numbers that
    begin between two addresses of their kind, and the budget may be charged already.
    """
    given: Any = labels
    given = given if given.dtype.names is None else given["count"]
    if exposure is not None:
        known: Any = labels
        given = np.concatenate([given, np.fmin(np.fmax(known["exposure"], exposure[0]), exposure[1])])
    numbers: Any = np.require(given, np.int8 if given.dtype == np.int8 else np.float64, ["C", "A"])
    return numbers, None if row_weights is None else np.require(row_weights, np.float64, ["C", "A"])


@dataclass(frozen=True, slots=True)
class SumOfSlopes:
    """What the kernel is asked for, beside the rows: everything but where the sums go.

    Parameters
    ----------
    labels : (m,) int8, or targets, float64
    counts : (m,) float64, how much each row counts, or None if each counts 1
    largest : bound on the counts
    weights : (d,)
    offset : is added to every score
    loss : four numbers, see `LossCode`
    radius : rows are shortened to this length; inf for rows as they are
    plain : see `is_plain`
    farthest : the largest squared length that is shortened, in gradients on which certificates rest
    moving : there also the centre by which rows are moved, and the radius and magnification of moved rows; None for none
    """

    labels: Targets
    counts: Array | None
    largest: float
    weights: Array
    offset: float
    loss: tuple[int, float, float, float]
    radius: float
    plain: bool
    farthest: float = math.inf
    moving: tuple[Array, float, float] | None = None


@dataclass(frozen=True, slots=True)
class StoredArray:
    """Rows of an array (m, d) of float64 or float32."""

    rows: NDArray[np.floating]

    @property
    def shape(self) -> tuple[int, int]:
        """Number of rows and of columns."""
        return int(self.rows.shape[0]), int(self.rows.shape[1])

    @property
    def n_numbers(self) -> int:
        """How many numbers are stored for one row."""
        return self.shape[1]

    def __getitem__(self, rows: slice) -> StoredArray:
        return StoredArray(self.rows[rows])

    def lent(self, unwritable: Callable[[Any], Any]) -> StoredArray:
        """The same rows in arrays that this function has made safe from writing."""
        return StoredArray(unwritable(self.rows))

    def add(self, out: Array, kernel: Kernel, asked: SumOfSlopes, products: Array | None = None) -> None:
        """Add the sums over these rows to `out` (d + 1,).

        The sum of second derivative times x x^T is added to the upper triangle of `products` (D, D), if they are given. D is
        d, or d + 1 where rows have the constant 1.
        """
        common = asked.labels, asked.counts, asked.largest, asked.weights, asked.offset
        of_pairs = None if products is None else products.reshape(-1)
        kernel.dense_sums(self.rows, asked.radius, *common, *asked.loss, out, of_pairs, asked.plain)

    def add_blocks(self, out: Array, kernel: Kernel, asked: SumOfSlopes, rows_in_block: int) -> bool:
        """The same for the gradients on which certificates rest, one block of rows after the other.

        False where the kernel cannot make them of these rows; then `out` is of no use.
        """
        common = asked.labels, asked.counts, asked.largest, asked.weights, asked.offset
        if asked.moving is not None and (self.shape[1] < SHORTEST_ROW or self.rows.strides[1] != self.rows.itemsize):
            return False
        radii, of_sums = (asked.radius, asked.farthest), (*asked.loss, out, asked.moving, asked.plain)
        return kernel.clipped_sums(self.rows, *radii, rows_in_block, *common, *of_sums)

    def as_numpy_reads(self, rows: slice) -> Rows:
        """Some of the rows (m, d), not yet clipped."""
        return self.rows[rows]

    @property
    def has_products(self) -> bool:
        """Whether the kernel makes sums of products of columns of these rows, if they have the constant 1 too."""
        return self.shape[1] < MOST_BENT


@dataclass(frozen=True, slots=True)
class StoredColumn:
    """How the kernel encodes one column. It is public.

    Parameters
    ----------
    kind : LINE, CURVE or LEVELS
    start : the first encoded column
    bins : 1 for a line, the number of hats of a curve, the number of levels and one more for a category
    indicator : the encoded column of missing numbers, or -1
    low, step, high, middle : a line is clipped to low and high and is (x - low) step - 1; the position on a curve is
        (x - low) step, clipped to 0 and `high`, and `middle` for a missing number without an indicator
    values : the height of hats (1,); the entries of a category with one encoded column (bins,), first that of no level; None
        otherwise
    linked : whether every row has one of the levels
    """

    kind: int
    start: int
    bins: int
    indicator: int = -1
    low: float = 0.0
    step: float = 1.0
    high: float = 0.0
    middle: float = 0.0
    values: Array | None = None
    linked: bool = False

    def with_codes(self, codes: NDArray[Any]) -> tuple[Any, ...]:
        """The column as kernel.c reads it."""
        places = self.start, self.bins, self.indicator
        return (self.kind, codes, *places, self.low, self.step, self.high, self.middle, self.values, self.linked)


@dataclass(frozen=True, slots=True)
class StoredCodes:
    """Rows as the codes of columns. They are encoded while they are summed up, and never expanded.

    Parameters
    ----------
    n_features : number of encoded columns
    columns : how each column is encoded
    codes : (m,) for each column: numbers, float32 or float64; or levels, integers of at most 32 bits, -1 for none
    n_rows : m
    expanded : all rows from the first of two numbers to the second (m, d), for rows of gradients on which certificates rest:
        NumPy sums up those that the kernel may not
    start : the number that `expanded` gives to the first row
    """

    n_features: int
    columns: tuple[StoredColumn, ...]
    codes: tuple[NDArray[np.number], ...]
    n_rows: int
    expanded: Callable[[int, int], Rows] | None = None
    start: int = 0

    @property
    def shape(self) -> tuple[int, int]:
        return self.n_rows, self.n_features

    @property
    def n_numbers(self) -> int:
        return len(self.columns)

    def __getitem__(self, rows: slice) -> StoredCodes:
        start, stop, _ = rows.indices(self.n_rows)
        some = tuple(codes[start:stop] for codes in self.codes)
        return replace(self, codes=some, n_rows=stop - start, start=self.start + start)

    def lent(self, unwritable: Callable[[Any], Any]) -> StoredCodes:
        # A solver gets columns of its own: the encoder's are those that certificates are made with.
        columns = tuple(replace(column, values=unwritable(column.values)) for column in self.columns)
        return StoredCodes(self.n_features, columns, tuple(map(unwritable, self.codes)), self.n_rows)

    def add(self, out: Array, kernel: Kernel, asked: SumOfSlopes, products: Array | None = None) -> None:
        self.add_blocks(out, kernel, asked, max(1, self.n_rows), products)

    def add_blocks(
        self, out: Array, kernel: Kernel, asked: SumOfSlopes, rows_in_block: int, products: Array | None = None
    ) -> bool:
        """Add the sums over these rows to `out` (d + 1,), one block of rows after the other.

        False where a row lacks a level in a linked category: it is outside of its bound.
        """
        columns = tuple(column.with_codes(codes) for column, codes in zip(self.columns, self.codes, strict=True))
        common = asked.labels, asked.counts, asked.largest, asked.weights, asked.offset
        of_pairs = None if products is None else products.reshape(-1)
        return kernel.coded_sums(columns, self.n_rows, rows_in_block, *common, *asked.loss, out, of_pairs, asked.plain)

    def as_numpy_reads(self, rows: slice) -> Rows:
        start, stop, _ = rows.indices(self.n_rows)
        if self.expanded is None:
            raise NotImplementedError("rows that are lent to solvers are not expanded.")
        return self.expanded(self.start + start, self.start + stop)

    @property
    def has_products(self) -> bool:
        return self.n_features < MOST_CODED_BENT and sum(column.kind == LINE for column in self.columns) < MOST_LINES


StoredRows: TypeAlias = StoredArray | StoredCodes
"""Some rows, as they are stored."""
