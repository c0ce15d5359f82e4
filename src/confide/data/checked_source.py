"""Rows that passed the check, as a fit uses them.

Beside sums, a source may give rows at chosen positions and whole pieces of rows. A source that cannot do so refuses, and a
source that cannot give the sums of a fit refuses them before anything is charged.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from confide.array_types import Indices, Targets
from confide.erm.row_sums import RowSum
from confide.erm.source import RowSource
from confide.errors import InputTypeError

_ROWS_NOT_READ_HERE = (
    "These rows stay on a cluster or with other parties, but this step needs rows that this process reads itself. Give rows "
    "in memory, or files that were opened without a client."
)

PLACES = {
    "here": "",
    "partitions": (
        "Every row lay in exactly one partition, and each partition came out the same whenever it was computed; one that "
        "differed between two passes would have been refused, and that none was is not protected."
    ),
    "parties": "Every row lay at exactly one of the parties, and each party summed the same rows in every pass.",
}
"""What a guarantee assumes about each place where rows can lie; nothing where this process reads the rows itself."""


class RowsInMemory(Protocol):
    """Rows in memory with their labels or targets: one piece of a source, or all of it."""

    @property
    def blocks(self) -> Any:
        """The rows, a `confide.data.arrays.Blocks`."""

    @property
    def labels(self) -> Targets:
        """(n,) labels or targets, in the form that a loss expects."""

    @property
    def n_rows(self) -> int:
        """Number of rows."""


class CheckedSource(RowSource, Protocol):
    """A source whose rows were checked before the budget is charged."""

    @property
    def place(self) -> str:
        """Where the rows lie: a name in `PLACES`."""

    def refuse_sums(self, row_sums: Callable[[], Sequence[RowSum]], *, with_moments: bool) -> None:
        """Refuse a fit that may ask for sums that this source cannot give. Called before anything is charged.

        Parameters
        ----------
        row_sums : gives all sums that a plan of this fit may ask for, at order 2
        with_moments : whether the fit also asks for the second moments from which intervals are computed

        Raises
        ------
        ParameterError, InputError
            If the source cannot give one of these sums.
        """

    def taken(self, positions: Indices) -> CheckedSource:
        """A source of the rows at these positions."""

    def in_memory(self, purpose: str = "") -> Iterator[RowsInMemory]:
        """All rows, one piece after the other. A pass with a purpose is reported to whoever watches the progress."""

    def sum_of_pieces(self, of_piece: Callable[[RowsInMemory], NDArray[np.int64]], n_integers: int) -> NDArray[np.int64]:
        """The sum over all pieces of so many integers that are made of each, wherever it lies. One pass over the rows."""


class RowsWithDefaults:
    """The answers of most sources: every sum can be computed, nothing is assumed, and no rows are handed out."""

    __slots__ = ()

    @property
    def place(self) -> str:
        return "here"

    def refuse_sums(self, row_sums: Callable[[], Sequence[RowSum]], *, with_moments: bool) -> None:
        return

    def taken(self, positions: Indices) -> CheckedSource:
        raise InputTypeError(_ROWS_NOT_READ_HERE)

    def in_memory(self, purpose: str = "") -> Iterator[RowsInMemory]:
        raise InputTypeError(_ROWS_NOT_READ_HERE)

    def sum_of_pieces(self, of_piece: Callable[[RowsInMemory], NDArray[np.int64]], n_integers: int) -> NDArray[np.int64]:
        sums = np.zeros(n_integers, dtype=np.int64)
        for piece in self.in_memory("scoring"):
            sums += of_piece(piece)
        return sums


@dataclass(frozen=True, slots=True)
class CheckedPass:
    """The result of checking opened rows.

    Attributes
    ----------
    source : the rows that count, for sums over them
    n_rows : how many rows were given, before the rows beyond the cap of a person were dropped
    """

    source: CheckedSource
    n_rows: int
