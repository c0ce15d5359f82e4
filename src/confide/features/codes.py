"""Checked rows in a compact form, a few bytes a cell, from which blocks of encoded rows are made."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from confide.features.cells import Levels
from confide.features.schema import Schema
from confide.types import Array, Indices


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Codes:
    """A checked frame in a compact form. It holds data: `Encoder.read` makes it, only for `Encoder.expand`.

    Parameters
    ----------
    schema : the schema by which the frame was read
    numbers : read-only (columns, n_rows), the plain numbers (on a linear scale, without knots or with even ones) as they
        are, in order:
        float32 if all of them are, otherwise float64; NaN or infinite where one is missing or cannot be used
    others : one read-only array (n_rows,) for each other column, in order. For a number: float64 in [-1, 1] or, if it has
        knots, its position among them, 0 for its low; NaN where it is missing. For a category: its level as a small integer,
        -1 for no level
    kept : read-only positions (n_rows,) in the frame of the rows that are held here, in rising order; None if all are
    used : the columns with a cell that is a listed category or lies within the bounds, for `Encoder.refuse_unused`; empty if
        the rows were let pass unchecked
    """

    schema: Schema
    numbers: NDArray[np.floating[Any]]
    others: tuple[Array | Levels, ...]
    kept: Indices | None = None
    used: frozenset[str] = frozenset()

    @property
    def n_rows(self) -> int:
        """Number of rows: public under replace-one, private under add-or-remove-one."""
        return int(self.numbers.shape[1])

    def taken(self, which: Indices | slice) -> Codes:
        """Some of the rows, by their positions here."""
        # Numbers of one column stay in one piece, which an index of positions would not leave so.
        numbers = self.numbers[:, which] if isinstance(which, slice) else np.take(self.numbers, which, axis=1)
        return Codes(self.schema, numbers, tuple(codes[which] for codes in self.others))

    def __repr__(self) -> str:
        return f"Codes({self.schema!r})"
