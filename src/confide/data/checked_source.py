"""Checked rows as a fit uses them: what a source can do beside sums, or refuses to do before anything is charged."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from confide.data.source import RowSource
from confide.erm.row_sums import RowSum
from confide.errors import InputTypeError
from confide.types import Indices, Targets

_NOT_HERE = (
    "These rows stay on a cluster or with other parties, and this needs rows that are read here. Give rows in memory, or "
    "files that were opened without a client."
)


class RowsInMemory(Protocol):
    """Some rows in memory, with their labels or targets."""

    @property
    def blocks(self) -> Any:
        """The rows, a `confide.data.arrays.Blocks`."""

    @property
    def labels(self) -> Targets:
        """(n,) labels or targets, as a loss reads them."""

    @property
    def n_rows(self) -> int:
        """Number of rows."""


class CheckedSource(RowSource, Protocol):
    """A source of rows that were checked before a charge."""

    @property
    def assumption(self) -> str:
        """What a guarantee assumes about the place where the rows lie; empty for rows that are read here."""

    def refuse_sums(self, row_sums: Sequence[RowSum], *, with_moments: bool) -> None:
        """Refuse, before anything is charged, a fit that may ask for sums that this source does not give.

        Parameters
        ----------
        row_sums : the sums for which a plan of the fit may ask, at order 2
        with_moments : whether it also asks for the moments that intervals are made of
        """

    def taken(self, positions: Indices) -> CheckedSource:
        """The rows at the positions."""

    def in_memory(self, purpose: str = "") -> Iterator[RowsInMemory]:
        """All rows, a piece at a time. A pass with a purpose is reported to whoever watches the progress."""


class RowsWithDefaults:
    """What holds for most sources: any sum is given, nothing is assumed of the place, and rows stay where they are."""

    __slots__ = ()

    @property
    def assumption(self) -> str:
        return ""

    def refuse_sums(self, row_sums: Sequence[RowSum], *, with_moments: bool) -> None:
        return

    def taken(self, positions: Indices) -> CheckedSource:
        raise InputTypeError(_NOT_HERE)

    def in_memory(self, purpose: str = "") -> Iterator[RowsInMemory]:
        raise InputTypeError(_NOT_HERE)


@dataclass(frozen=True, slots=True)
class CheckedPass:
    """What the check of opened rows gives.

    Attributes
    ----------
    source : the rows, which can be summed over
    n_rows : how many were given, before those beyond a person's share were dropped
    """

    source: CheckedSource
    n_rows: int
