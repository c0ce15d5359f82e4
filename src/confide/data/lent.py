"""Rows for solvers, which are not trusted: the same memory, in which nothing that a solver is given can write.

A read-only view does not do: its `base` is the array that can be written to. What is lent here leads back to no such array
by attributes, and by calls of what they lead to. Its owner is kept in the closure of a function, where one has to search for
it. NumPy makes arrays at any address that it is told; that a solver does not tell it one is assumed (proofs/certificate.md,
section 6).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import csr_array, issparse

from confide.data.source import RowSource
from confide.erm.row_sums import SumOverRows, Totals
from confide.types import Array, Rows, Targets, Weights


class _Borrowed:
    """The memory of an array, for NumPy to read. It tells where that is, and gives the array to nobody."""

    __slots__ = ("_interface",)

    def __init__(self, array: Any) -> None:
        facts = {**array.__array_interface__, "data": (array.__array_interface__["data"][0], True)}
        # The function keeps the array alive, and returns only these facts about it, never the array itself.
        self._interface: Callable[[], dict[str, Any]] = lambda: facts.copy() if array is not None else {}

    @property
    def __array_interface__(self) -> dict[str, Any]:
        return self._interface()


def unwritable(array: Any) -> Any:
    """The same numbers in the same memory, as an array that refuses to be made writable; likewise CSR rows and None."""
    if array is None:
        return None
    if issparse(array):
        # Given to the constructor, views of much larger arrays would be copied.
        rows = csr_array(array.shape, dtype=array.dtype)
        rows.data, rows.indices, rows.indptr = map(unwritable, (array.data, array.indices, array.indptr))
        return rows
    return np.asarray(_Borrowed(array))


@dataclass(frozen=True, slots=True)
class _Reading:
    """A solver's own sum over rows, which is shown blocks that it cannot write to. Picklable if that sum is."""

    row_sum: Any

    def start(self, n_problems: int, n_features: int) -> Totals:
        totals: Totals = self.row_sum.start(n_problems, n_features)
        return totals

    def add_block(
        self, totals: Totals, rows: Rows, labels: Targets, weights: Weights, row_weights: Array | None = None
    ) -> None:
        rows, labels, row_weights = map(unwritable, (rows, labels, row_weights))
        self.row_sum.add_block(totals, rows, labels, weights, row_weights)

    def completed(self, totals: Totals) -> Totals:
        completed: Totals = self.row_sum.completed(totals)
        return completed


@dataclass(frozen=True, slots=True)
class LentSource:
    """A source for a solver, with the verbs of the source behind it and none of its attributes."""

    n_features: int
    n_rows: int
    sum_over_rows: Callable[[SumOverRows, Weights], Totals]
    sample: Callable[[int], Any] | None
    """Some of the rows, copied; None where the source has no such verb."""
    in_single_precision: Callable[[], LentSource | None]


def lent(source: RowSource) -> RowSource:
    """The rows of a source for a solver. A source that has a way of its own to lend them says so by a method `lent`."""
    own = getattr(source, "lent", None)
    if own is not None:
        face: RowSource = own()
        return face
    sample = getattr(source, "sample", None)

    def sum_over_rows(row_sum: SumOverRows, weights: Weights) -> Totals:
        reading: Any = _Reading(row_sum)
        return source.sum_over_rows(reading, weights)

    def in_single_precision() -> Any:
        made = getattr(source, "in_single_precision", lambda: None)()
        return None if made is None else lent(made)

    return LentSource(
        source.n_features,
        source.n_rows,
        sum_over_rows,
        None if sample is None else lambda n_rows: sample(n_rows),
        in_single_precision,
    )
