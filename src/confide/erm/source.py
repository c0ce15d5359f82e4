"""Where rows live, as trusted code sees it: the protocol of a source, read-only rows for solvers, remembered sums."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, issparse

from confide.array_types import Array, Factors, Rows, Targets, Weights
from confide.erm.coded_rows import CodedLayout, CodedRows
from confide.erm.moment_sums import SumOverRows
from confide.erm.row_sums import RowSum, Totals

# Memory lent to solvers, which are not trusted: the same numbers, in which nothing that a solver is given can write.
#
# A read-only view is not enough: its `base` is an array that can be written to. No attribute of what is lent here leads to
# such an array, and neither does a call of anything that attributes lead to. The owner of the memory is kept in the closure
# of a function. Code that searches for it can find it there, and NumPy makes an array at any address that it is told. That
# a solver does neither is an assumption (proofs/certificate.md, section 6).


class _Borrowed:
    """The memory of an array, for NumPy to read. It says where the memory is, and gives the array to nobody."""

    __slots__ = ("_interface",)

    def __init__(self, array: Any) -> None:
        facts = {**array.__array_interface__, "data": (array.__array_interface__["data"][0], True)}
        # The function keeps the array alive. It returns these facts about the array, and never the array itself.
        self._interface: Callable[[], dict[str, Any]] = lambda: facts.copy() if array is not None else {}

    @property
    def __array_interface__(self) -> dict[str, Any]:
        return self._interface()


def made_for_a_solver(block: Rows) -> Rows:
    """A block that nobody else keeps, in which a solver may write. Coded rows get a layout of their own."""
    return _coded(block.layout, block.columns, block.entries) if type(block) is CodedRows else block


def _coded(layout: CodedLayout, columns: NDArray[np.int32], entries: Array) -> CodedRows:
    """Coded rows with their own copy of the layout: that of the encoder says where the entries of all its blocks are."""
    # The constructors would check the same numbers a second time. The fields of a layout are numbers, tuples and bytes.
    coded, own = object.__new__(CodedRows), object.__new__(CodedLayout)
    for field in fields(CodedLayout):
        object.__setattr__(own, field.name, getattr(layout, field.name))
    for name, value in (("layout", own), ("columns", columns), ("entries", entries)):
        object.__setattr__(coded, name, value)
    return coded


def unwritable(array: Any) -> Any:
    """The same numbers in the same memory, as an array that refuses to be made writable.

    CSR rows, coded rows and None are accepted, too.
    """
    if array is None:
        return None
    if type(array) is CodedRows:
        return _coded(array.layout, unwritable(array.columns), unwritable(array.entries))
    if issparse(array):
        # The constructor would copy views of much larger arrays, so they are set as attributes.
        rows = csr_array(array.shape, dtype=array.dtype)
        rows.data, rows.indices, rows.indptr = map(unwritable, (array.data, array.indices, array.indptr))
        return rows
    return np.asarray(_Borrowed(array))


# Where rows live. A source knows blocks and their order, and nothing of the formula that is summed over them.
#
# Trusted code reads rows through `RowSource` alone, whose list of sums is closed. Solvers are lent `SummableRows`: they may
# sum whatever they like, and cannot write to what they read (`erm/source.py`).


class BlockwiseSum(Protocol):
    """Any sum over rows, made block by block: the closed list `SumOverRows`, and sums that solvers make of their own.

    Blocks are arrays, CSR rows or coded rows, whichever the source makes (`Rows`). `dense` makes an array of coded rows.
    """

    def start(self, n_problems: int, n_features: int) -> Totals:
        """Totals over no rows."""

    def add_block(self, totals: Totals, rows: Rows, labels: Targets, weights: Weights, row_weights: Factors = None) -> None:
        """Add the terms of one block of rows (m, d) at (k, D) weights to the totals in place."""

    def completed(self, totals: Totals) -> Totals:
        """The totals of all rows in their final form."""


class RowSource(Protocol):
    """Rows with their labels, wherever they live.

    A source owes two sentences: `sum_over_rows` counts every row exactly once, and `lent` gives nothing that leads to memory
    in which the rows could be changed. `sample`, `in_single_precision` and `as_stored` serve solvers, which are not trusted.
    They return None where a source cannot do what they ask for, as the bodies here do. A class that names `SummableRows` as
    its base inherits these bodies.
    """

    __slots__ = ()

    @property
    def n_features(self) -> int:
        """Number of columns of a row, before the intercept."""

    @property
    def n_rows(self) -> int:
        """Number of rows: public under replace-one, private under add-or-remove-one."""

    def sum_over_rows(self, row_sum: SumOverRows, weights: Weights) -> Totals:
        """The completed totals of `row_sum` at (k, D) weights: one pass over the rows."""

    def lent(self) -> SummableRows:
        """The same rows for a solver, which can write to none of them."""

    def for_many_passes(self, row_sum: RowSum) -> RowSource:
        """The same rows for many passes with one sum: blocks may be kept as it clips them."""
        return self

    def sample(self, n_rows: int) -> SampledRows | None:
        """About `n_rows` of the rows, copied into memory; None if the source cannot pick rows."""
        return None

    def in_single_precision(self) -> RowSource | None:
        """The same rows in single precision, if blocks are made in each pass and can be made so; else None."""
        return None

    def as_stored(self, shortened: bool) -> RowSource | None:
        """The same rows for sums by the compiled kernel; None where it cannot read how they are stored, or not shorten them.

        Parameters
        ----------
        shortened : whether the kernel has to shorten rows to a ball
        """
        return None


class SummableRows(RowSource, Protocol):
    """Rows over which any sum can be made. Solvers know rows by this protocol; what they are lent cannot be written to."""

    __slots__ = ()

    def lent(self) -> SummableRows:
        return lent(self)

    def for_many_passes(self, row_sum: RowSum) -> SummableRows:
        return self

    def sum_over_rows(self, row_sum: BlockwiseSum, weights: Weights) -> Totals:
        """The completed totals of `row_sum` at (k, D) weights: one pass over the rows."""

    def in_single_precision(self) -> SummableRows | None:
        return None

    def as_stored(self, shortened: bool) -> SummableRows | None:
        return None


class SampledRows(SummableRows, Protocol):
    """Some of the rows of a source, copied into memory.

    Blocks are copied as arrays or CSR rows; a source of somebody else may copy them as coded rows.
    """

    __slots__ = ()

    def counted_blocks(self) -> Iterator[tuple[Rows, Targets, Array | None]]:
        """All rows in order, a block at a time: rows, labels, and how much each row counts (None: each counts 1)."""

    def sample(self, n_rows: int) -> SampledRows:
        """About `n_rows` of these rows, copied."""


@dataclass(frozen=True, slots=True)
class _Reading:
    """A solver's own sum over rows, which is shown blocks that it cannot write to. It can be pickled if that sum can."""

    row_sum: BlockwiseSum
    lend: Callable[[Any], Any] = unwritable

    def start(self, n_problems: int, n_features: int) -> Totals:
        return self.row_sum.start(n_problems, n_features)

    def add_block(self, totals: Totals, rows: Rows, labels: Targets, weights: Weights, row_weights: Factors = None) -> None:
        labels, row_weights = unwritable(labels), unwritable(row_weights)
        self.row_sum.add_block(totals, self.lend(rows), labels, weights, row_weights)

    def completed(self, totals: Totals) -> Totals:
        return self.row_sum.completed(totals)


@dataclass(frozen=True, slots=True)
class LentSource:
    """A source for a solver, with the methods of the source behind it and none of its attributes. See `SummableRows`."""

    n_features: int
    n_rows: int
    sum_over_rows: Callable[[BlockwiseSum, Weights], Totals]
    sample: Callable[[int], SampledRows | None]
    in_single_precision: Callable[[], SummableRows | None]
    as_stored: Callable[[bool], SummableRows | None]

    def lent(self) -> LentSource:
        """These rows, which are lent already."""
        return self

    def for_many_passes(self, row_sum: RowSum) -> LentSource:
        """These rows: solvers make few passes."""
        return self


def lent(source: SummableRows, lend: Callable[[Any], Any] = unwritable) -> LentSource:
    """The rows of a source for a solver. What the methods return holds copies, or rows that are lent in the same way.

    Parameters
    ----------
    source : the rows
    lend : makes of a block the one that a solver is shown
    """

    def sum_over_rows(row_sum: BlockwiseSum, weights: Weights) -> Totals:
        return source.sum_over_rows(_Reading(row_sum, lend), weights)

    def sample(n_rows: int) -> SampledRows | None:
        return source.sample(n_rows)

    def in_single_precision() -> SummableRows | None:
        made = source.in_single_precision()
        return None if made is None else made.lent()

    def as_stored(shortened: bool) -> SummableRows | None:
        made = source.as_stored(shortened)
        return None if made is None else lent(made, lent_as_stored)

    return LentSource(source.n_features, source.n_rows, sum_over_rows, sample, in_single_precision, as_stored)


def lent_as_stored(rows: Any) -> Any:
    """A block of rows as they are stored (`confide.compiled.stored_rows`), in arrays that nobody can write to."""
    return rows.lent(unwritable)
