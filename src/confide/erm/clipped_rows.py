"""Blocks that one sum over rows has clipped once, before it makes many passes. Proof: privacy/proofs/gradient.md."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import issparse

from confide.erm.centred_rows import Centred, CentredRows
from confide.erm.coded_rows import CodedRows, dense
from confide.erm.row_bounds import BallBound
from confide.errors import ParameterError
from confide.types import Array, Rows

MANY_SCORES = 32
"""For more scores of a row than this, coded rows are made dense, because products are faster (benchmarks/coded_rows.py)."""


@dataclass(frozen=True, slots=True, eq=False)
class ClippedRows:
    """One block that a sum has clipped. Nobody writes to it.

    Parameters
    ----------
    row_sum : the `confide.erm.row_sums.RowSum` that clipped the rows
    rows : the clipped rows
    stretch : the bound on a row over its length (m, 1), if the loss asks for it
    """

    row_sum: Any
    rows: Any
    stretch: Array | float

    @property
    def shape(self) -> tuple[int, int]:
        """Number of rows and of columns."""
        n_rows, n_features = self.rows.shape
        return int(n_rows), int(n_features)

    @property
    def n_bytes(self) -> int:
        """Memory of the numbers that are kept."""
        rows: Any = self.rows.rows if type(self.rows) is CentredRows else self.rows
        names = ("columns", "entries") if type(rows) is CodedRows else ("data", "indices") if issparse(rows) else ("T",)
        stored = [getattr(rows, name) for name in names]
        # Beside the rows at most four numbers for each.
        return sum(int(array.nbytes) for array in stored) + 32 * self.shape[0]

    def of(self, row_sum: Any) -> tuple[Any, Array | float]:
        """The clipped rows and their stretch. Any other sum, which might clip rows otherwise, is refused."""
        if not (row_sum is self.row_sum or row_sum == self.row_sum) or row_sum.order >= 2:
            raise ParameterError("these rows were clipped for another sum.")
        return self.rows, self.stretch


def clipped_once(row_sum: Any, rows: Rows) -> ClippedRows:
    """One block, clipped for many passes with this `RowSum` of order 0 or 1, at one vector of weights each."""
    rows = dense(rows) if row_sum.loss.n_outputs > MANY_SCORES else rows
    if isinstance(rows, np.ndarray) and isinstance(row_sum.row_bound, BallBound | Centred):
        # In the same order of memory as in a single pass, so that sums agree to the bit.
        clipped = row_sum.row_bound.clip(rows, np.empty(rows.shape))
    else:
        clipped = row_sum.row_bound.clip(rows)
    return ClippedRows(row_sum, clipped, row_sum.stretch(clipped) if row_sum.loss.by_length else 1.0)
