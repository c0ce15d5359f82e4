"""Rows that are kept as codes of raw columns and encoded block by block, by public knowledge alone."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np

from confide.compiled.loading import kernel
from confide.compiled.stored_rows import CertifiedCodes
from confide.data.arrays import Blocks, CopiedBlocks, StoredBlocks, rows_in_block, rows_in_group, rows_in_sparse_block
from confide.features.codes import Codes
from confide.features.encoder import Encoder
from confide.types import Array, Indices, Rows

_WIDE = 1000
"""Copies of coded rows with more columns than this stay coded: they would take much memory, and few of their entries are
not 0."""
_LARGE_COPY = 2**26
"""So do copies of more bytes. A sample of 3,000,000 rows of Adult took 160 MB, and to use so much memory for the first time
takes longer than to encode the sample again (benchmarks/notes/what_does_the_kernel_gain.md)."""


@dataclass(frozen=True, slots=True)
class EncodedBlocks(Blocks):
    """Blocks of encoded rows, made when they are asked for. The whole encoded matrix never exists.

    Parameters
    ----------
    encoder, codes : both of the same schema
    single : whether blocks are in single precision; only solvers, which are not trusted, read such blocks
    are_copies : whether these are copies of some rows
    """

    encoder: Encoder
    codes: Codes
    single: bool = False
    are_copies: bool = field(default=False)  # without `field` the property of the protocol would be taken as its default

    made_anew: ClassVar[bool] = True
    """Each block is made for one call and kept nowhere, so it may be written to."""

    @property
    def n_rows(self) -> int:
        return self.codes.n_rows

    @property
    def n_features(self) -> int:
        return self.encoder.n_features

    def gains_by_threads(self, order: int) -> bool:
        # Coded rows are made and summed up by short calls of NumPy.
        return not self.encoder.codes_rows

    @property
    def rows_in_block(self) -> int:
        return (rows_in_sparse_block if self.encoder.codes_rows else rows_in_block)(self.n_features)

    def block(self, start: int, stop: int) -> Rows:
        return self.encoder.block(self.codes, start, stop, np.float32 if self.single else np.float64)

    def in_single_precision(self) -> EncodedBlocks | None:
        """The same rows in single precision; None if they are coded, which saves more time than single precision."""
        return None if self.encoder.codes_rows else replace(self, single=True)

    def as_stored(self, shortened: bool) -> StoredBlocks | None:
        rows = None if shortened else self.encoder.as_stored(self.codes)
        if rows is None:
            return None
        return StoredBlocks(rows, rows_in_group(self.n_features, sparse=self.encoder.codes_rows), self.are_copies)

    def as_certified(self, row_bound: Any) -> StoredBlocks | None:
        codes = self.encoder.as_certified(self.codes, row_bound) if type(self) is EncodedBlocks and not self.single else None
        if codes is None:
            return None
        rows = CertifiedCodes(codes, self.block)
        return StoredBlocks(rows, rows_in_group(self.n_features, sparse=self.encoder.codes_rows), self.are_copies)

    def taken(self, positions: Indices) -> EncodedBlocks:
        return replace(self, codes=self.codes.taken(positions))

    def copied(self, positions: Indices) -> Array:
        if positions.size == self.n_rows:
            # Positions rise, so these are all rows, and their codes need no copy.
            return self.encoder.expand(self.codes, 0, self.n_rows)
        taken = self.codes.taken(positions)
        return self.encoder.expand(taken, 0, taken.n_rows)

    def as_copies(self, positions: Indices) -> Blocks:
        is_small = self.n_features <= _WIDE and 8 * self.n_features * positions.size <= _LARGE_COPY
        if not self.encoder.codes_rows or (is_small and not self._has_products()):
            return CopiedBlocks(self.copied(positions), self.rows_in_block)
        # The encoder stays out of a solver's reach, though the codes are copies.
        return replace(self.taken(positions), are_copies=True).lent()

    def _has_products(self) -> bool:
        """Whether the compiled kernel makes Hessians of the codes, in less time than it takes to expand them."""
        stored = None if kernel() is None else self.as_stored(shortened=False)
        return stored is not None and stored.rows.has_products
