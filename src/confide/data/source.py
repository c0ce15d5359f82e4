"""Where rows live. A source knows blocks and their order, and nothing of the formula that is summed over them.

Trusted code reads rows through `RowSource` alone, whose list of sums is closed. Solvers are lent `SummableRows`: they may
sum whatever they like, and cannot write to what they read (`data/lent.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Protocol

from confide.data.lent import unwritable
from confide.erm.closed_list_of_sums import SumOverRows
from confide.erm.row_sums import RowSum, Totals
from confide.types import Array, Rows, Targets, Weights


class BlockwiseSum(Protocol):
    """Any sum over rows, made block by block: the closed list `SumOverRows`, and sums that solvers make of their own.

    Blocks are arrays, CSR rows or coded rows, whichever the source makes (`Rows`). `dense` makes an array of coded rows.
    """

    def start(self, n_problems: int, n_features: int) -> Totals:
        """Totals over no rows."""

    def add_block(
        self, totals: Totals, rows: Rows, labels: Targets, weights: Weights, row_weights: Array | None = None
    ) -> None:
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

    def add_block(
        self, totals: Totals, rows: Rows, labels: Targets, weights: Weights, row_weights: Array | None = None
    ) -> None:
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
