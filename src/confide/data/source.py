"""Where rows live. A source knows blocks and their order, and nothing of the formula that is summed over them.

Trusted code reads rows through `RowSource` alone, whose list of sums is closed. Solvers are lent `SummableRows`: they may
sum whatever they like, and cannot write to what they read (`data/lent.py`).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

from confide.data.lent import lent
from confide.erm.row_sums import SumOverRows, Totals
from confide.types import Array, Rows, Targets, Weights


class BlockwiseSum(Protocol):
    """Any sum over rows, made block by block: the closed list `SumOverRows`, and sums that solvers make of their own."""

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
    in which the rows could be changed. `sample` and `in_single_precision` serve solvers, which are not trusted. They return
    None where a source cannot do what they ask for, as the bodies here do. A class that names `SummableRows` as its base
    inherits these bodies.
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

    def sample(self, n_rows: int) -> SampledRows | None:
        """About `n_rows` of the rows, copied into memory; None if the source cannot pick rows."""
        return None

    def in_single_precision(self) -> RowSource | None:
        """The same rows in single precision, if blocks are made in each pass and can be made so; else None."""
        return None


class SummableRows(RowSource, Protocol):
    """Rows over which any sum can be made. Solvers know rows by this protocol; what they are lent cannot be written to."""

    __slots__ = ()

    def lent(self) -> SummableRows:
        return lent(self)

    def sum_over_rows(self, row_sum: BlockwiseSum, weights: Weights) -> Totals:
        """The completed totals of `row_sum` at (k, D) weights: one pass over the rows."""

    def in_single_precision(self) -> SummableRows | None:
        return None


class SampledRows(SummableRows, Protocol):
    """Some of the rows of a source, copied into memory."""

    __slots__ = ()

    def counted_blocks(self) -> Iterator[tuple[Rows, Targets, Array | None]]:
        """All rows in order, a block at a time: rows, labels, and how much each row counts (None: each counts 1)."""

    def sample(self, n_rows: int) -> SampledRows:
        """About `n_rows` of these rows, copied."""
