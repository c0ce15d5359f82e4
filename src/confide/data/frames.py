"""Rows that live as raw columns and become numbers block by block, by public knowledge alone."""

from __future__ import annotations

from dataclasses import dataclass

from confide.data.arrays import rows_in_block
from confide.features.encoder import Codes, Encoder
from confide.types import Array, Indices


@dataclass(frozen=True, slots=True)
class EncodedBlocks:
    """Blocks of encoded rows, made on the way in: the full encoded matrix never exists."""

    encoder: Encoder
    codes: Codes

    @property
    def n_rows(self) -> int:
        return self.codes.n_rows

    @property
    def n_features(self) -> int:
        return self.encoder.n_features

    @property
    def rows_in_block(self) -> int:
        return rows_in_block(self.n_features)

    def block(self, start: int, stop: int) -> Array:
        return self.encoder.block(self.codes, start, stop)

    def copied(self, positions: Indices) -> Array:
        taken = self.codes.taken(positions)
        return self.encoder.expand(taken, 0, taken.n_rows)
