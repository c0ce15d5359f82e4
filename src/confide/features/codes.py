"""Checked rows in a compact form, a few bytes a cell, from which blocks of encoded rows are made."""

from __future__ import annotations

from dataclasses import dataclass

from confide.features.cells import CellNumbers, Levels
from confide.features.schema import Schema
from confide.types import Array, Indices


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Codes:
    """A checked frame in a compact form. It holds data: `Encoder.read` makes it, only for `Encoder.expand`.

    Parameters
    ----------
    schema : the schema by which the frame was read
    numbers : one read-only array (n_rows,) for each column of plain numbers (on a linear scale, without knots or with even
        ones), in order: the numbers as they are, float32 or float64; NaN or infinite where one is missing or cannot be used
    others : one read-only array (n_rows,) for each other column, in order. For a number: float64 in [-1, 1] or, if it has
        knots, its position among them, 0 for its low; NaN where it is missing. For a category: its level as a small integer,
        -1 for no level
    kept : read-only positions (n_rows,) in the frame of the rows that are held here, in rising order; None if all are
    used : the columns with a cell that is a listed category or lies within the bounds, for `Encoder.refuse_unused`; empty if
        the rows were let pass unchecked
    """

    schema: Schema
    numbers: tuple[CellNumbers, ...]
    others: tuple[Array | Levels, ...]
    kept: Indices | None = None
    used: frozenset[str] = frozenset()

    @property
    def n_rows(self) -> int:
        """Number of rows: public under replace-one, private under add-or-remove-one."""
        return len((*self.numbers, *self.others)[0])

    def taken(self, which: Indices | slice) -> Codes:
        """Some of the rows, by their positions here."""
        return Codes(
            self.schema, tuple(column[which] for column in self.numbers), tuple(column[which] for column in self.others)
        )

    def __repr__(self) -> str:
        return f"Codes({self.schema!r})"
