"""Rows that a public map, such as random Fourier features, is applied to, block by block."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from confide.data.arrays import Blocks, rows_in_block
from confide.erm.coded_rows import dense
from confide.features.public_maps import RowMap
from confide.types import Array, Indices


@dataclass(frozen=True, slots=True)
class MappedBlocks(Blocks):
    """Blocks of mapped rows, made when they are asked for. The whole mapped matrix never exists.

    Parameters
    ----------
    blocks : rows as the map takes them
    fourier_map : the map that is applied to each row
    """

    blocks: Blocks
    fourier_map: RowMap

    made_anew: ClassVar[bool] = True
    """Each block is made for one call and kept nowhere, so it may be written to."""

    @property
    def n_rows(self) -> int:
        return self.blocks.n_rows

    @property
    def n_features(self) -> int:
        return self.fourier_map.n_features

    def block(self, start: int, stop: int) -> Array:
        return self.fourier_map.transform(dense(self.blocks.block(start, stop)))

    def copied(self, positions: Indices) -> Array:
        return self.fourier_map.transform(self.blocks.copied(positions))

    def taken(self, positions: Indices) -> MappedBlocks:
        return MappedBlocks(self.blocks.taken(positions), self.fourier_map)

    @property
    def rows_in_block(self) -> int:
        return rows_in_block(self.n_features)
