"""Rows for solvers, which are not trusted: the same memory, in which nothing that a solver is given can write.

A read-only view is not enough: its `base` is an array that can be written to. No attribute of what is lent here leads to
such an array, and neither does a call of anything that attributes lead to. The owner of the memory is kept in the closure of
a function. Code that searches for it can find it there, and NumPy makes an array at any address that it is told. That a
solver does neither is an assumption (proofs/certificate.md, section 6).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.sparse import csr_array, issparse

from confide.erm.row_sums import Totals
from confide.types import Array, Rows, Targets, Weights

if TYPE_CHECKING:
    from confide.data.source import BlockwiseSum, SampledRows, SummableRows


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


def unwritable(array: Any) -> Any:
    """The same numbers in the same memory, as an array that refuses to be made writable. CSR rows and None are accepted."""
    if array is None:
        return None
    if issparse(array):
        # The constructor would copy views of much larger arrays, so they are set as attributes.
        rows = csr_array(array.shape, dtype=array.dtype)
        rows.data, rows.indices, rows.indptr = map(unwritable, (array.data, array.indices, array.indptr))
        return rows
    return np.asarray(_Borrowed(array))


@dataclass(frozen=True, slots=True)
class _Reading:
    """A solver's own sum over rows, which is shown blocks that it cannot write to. It can be pickled if that sum can."""

    row_sum: BlockwiseSum

    def start(self, n_problems: int, n_features: int) -> Totals:
        return self.row_sum.start(n_problems, n_features)

    def add_block(
        self, totals: Totals, rows: Rows, labels: Targets, weights: Weights, row_weights: Array | None = None
    ) -> None:
        rows, labels, row_weights = map(unwritable, (rows, labels, row_weights))
        self.row_sum.add_block(totals, rows, labels, weights, row_weights)

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

    def lent(self) -> LentSource:
        """These rows, which are lent already."""
        return self


def lent(source: SummableRows) -> LentSource:
    """The rows of a source for a solver. What the methods return holds copies, or rows that are lent in the same way."""

    def sum_over_rows(row_sum: BlockwiseSum, weights: Weights) -> Totals:
        return source.sum_over_rows(_Reading(row_sum), weights)

    def sample(n_rows: int) -> SampledRows | None:
        return source.sample(n_rows)

    def in_single_precision() -> SummableRows | None:
        made = source.in_single_precision()
        return None if made is None else made.lent()

    return LentSource(source.n_features, source.n_rows, sum_over_rows, sample, in_single_precision)
