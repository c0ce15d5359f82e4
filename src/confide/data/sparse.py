"""Blocks of sparse rows in memory. They are never made dense."""

from __future__ import annotations

from dataclasses import dataclass

from scipy.sparse import csr_array

from confide.data.arrays import Blocks, rows_in_sparse_block
from confide.data.lent import unwritable
from confide.errors import InputError
from confide.types import Indices, SparseRows


@dataclass(frozen=True, slots=True)
class SparseBlocks(Blocks):
    """Blocks of a CSR matrix. They are views of its entries, with row pointers and column indices of their own.

    Parameters
    ----------
    rows : CSR matrix, float64 or float32, with column indices in range. A matrix in canonical form (`row_bounds.canonical`)
        saves work later
    """

    rows: SparseRows

    @property
    def n_rows(self) -> int:
        return int(self.rows.shape[0])

    @property
    def n_features(self) -> int:
        return int(self.rows.shape[1])

    def gains_by_threads(self, order: int) -> bool:
        return False

    @property
    def rows_in_block(self) -> int:
        return rows_in_sparse_block(self.n_features)

    def block(self, start: int, stop: int) -> SparseRows:
        first, last = int(self.rows.indptr[start]), int(self.rows.indptr[stop])
        # The constructor would copy these views, because the arrays behind them are much larger.
        block = csr_array((stop - start, self.n_features), dtype=self.rows.dtype)
        block.data, block.indices = self.rows.data[first:last], inside(self.rows.indices[first:last], self.n_features)
        block.indptr = self.rows.indptr[start : stop + 1] - self.rows.indptr[start]
        return block

    def taken(self, positions: Indices) -> SparseBlocks:
        return SparseBlocks(self.rows[positions])  # it is in nobody else's hands, and its blocks are looked through

    def copied(self, positions: Indices) -> SparseRows:
        rows = self.rows[positions]
        rows.indices = inside(rows.indices, self.n_features)
        return rows

    def lent(self) -> SparseBlocks:
        return SparseBlocks(unwritable(self.rows))


def inside(indices: Indices, n_features: int) -> Indices:
    """A copy of column indices, in which nobody can write.

    Compiled code follows indices without a check, and another thread may write to those of X.

    Raises
    ------
    InputError
        If one is outside of the columns, so that X was changed since it was checked.
    """
    own = indices.copy()
    # A negative index is a large number without its sign.
    if own.size and own.view(f"u{own.itemsize}").max() >= n_features:
        raise InputError(
            "X was changed by another thread while it was read, so nothing is released; what was charged stays charged. Fit "
            "again while nobody writes to the rows."
        )
    return unwritable(own)  # type: ignore[no-any-return]
