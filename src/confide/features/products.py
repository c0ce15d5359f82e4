"""Products of the encoded columns of interacting columns, block by block.

A member of an interaction enters the products as it is encoded, or as a coarse effect: a number then has evenly spaced hat
functions of its own, fewer than beside the products. Coarse hats are computed from the encoded columns of the number, by
operations on each row alone, so that an encoded row does not depend on the other rows of its block.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from typing import Protocol

import numpy as np

from confide.features.column_encodings import HAT_HEIGHT, ColumnEncoding, NumberEncoding
from confide.features.interactions import Interaction
from confide.types import Array


class Member(Protocol):
    """How one column enters the products of an interaction. Equal members have equal columns."""

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the columns that enter."""

    @property
    def linked(self) -> bool:
        """Whether in every row exactly one of the columns is 1 and the others are 0."""

    def columns(self, block: Array) -> Array:
        """The columns that enter (size, m), from the encoded columns of a block (n_features, m)."""


@dataclass(frozen=True, slots=True)
class EncodedMember:
    """A column that enters as it is encoded."""

    encoding: ColumnEncoding
    start: int

    @property
    def names(self) -> tuple[str, ...]:
        return self.encoding.names

    @property
    def linked(self) -> bool:
        return self.encoding.linked

    def columns(self, block: Array) -> Array:
        return block[self.start : self.start + len(self.names)]


@dataclass(frozen=True, slots=True)
class CoarseNumber:
    """A number that enters as evenly spaced hats, or as a straight line.

    Parameters
    ----------
    encoding : how the number is encoded beside the products
    start : where its encoded columns are
    knots : the number of evenly spaced knots
    """

    encoding: NumberEncoding
    start: int
    knots: int
    coarse: NumberEncoding = field(init=False, compare=False, repr=False)
    points: Array = field(init=False, compare=False, repr=False)
    """(size, 1): what each encoded column adds to the number on the scale from -1 to 1. The indicator adds nothing."""

    def __post_init__(self) -> None:
        column = self.encoding.column
        points = column.stretched(np.array(column.knots_with_bounds)) / HAT_HEIGHT if column.knots else np.ones(1)
        object.__setattr__(self, "coarse", NumberEncoding(replace(column, knots=self.knots)))
        object.__setattr__(self, "points", points[:, None])

    @property
    def names(self) -> tuple[str, ...]:
        return self.coarse.names

    @property
    def linked(self) -> bool:
        return self.coarse.linked

    def columns(self, block: Array) -> Array:
        encoded = block[self.start : self.start + len(self.encoding.names)]
        # At most two hats of a row are not 0. So the sum of separately rounded products is the same in any order.
        stretched = (self.points * encoded[: len(self.points)]).sum(axis=0)
        if self.coarse.column.missing:
            stretched[encoded[-1] != 0.0] = np.nan
        codes = (stretched + 1.0) * ((self.knots + 1) / 2.0) if self.knots else stretched
        columns: Array = np.empty((len(self.names), block.shape[1]), block.dtype)
        self.coarse.write(codes, columns)
        return columns


@dataclass(frozen=True, slots=True)
class Product:
    """The products of one interaction.

    Parameters
    ----------
    members : what is multiplied; the columns of the last member run fastest
    scale : the products are multiplied by it
    place : where they are among the encoded columns
    """

    members: tuple[Member, ...]
    scale: float
    place: slice

    @property
    def linked(self) -> bool:
        """Whether in every row exactly one product is `scale` and the others are 0: it is so if all members are linked."""
        return all(member.linked for member in self.members)


def members_of(
    interaction: Interaction, positions: Sequence[int], encodings: Sequence[ColumnEncoding], starts: Sequence[int]
) -> tuple[Member, ...]:
    """The members of an interaction.

    Parameters
    ----------
    interaction : the interaction
    positions : the positions of its columns in the schema
    encodings, starts : for each column of the schema its encoding, and where its encoded columns start
    """
    return tuple(_member(encodings[i], starts[i], interaction.knots) for i in positions)


def _member(encoding: ColumnEncoding, start: int, knots: int | None) -> Member:
    if knots is None or not isinstance(encoding, NumberEncoding):
        return EncodedMember(encoding, start)
    return CoarseNumber(encoding, start, knots)


def write_products(products: Sequence[Product], block: Array) -> None:
    """Fill the places of the products in a block (n_features, m) whose other columns are encoded."""
    made: dict[Member, Array] = {}
    for product in products:
        for member in product.members:
            if member not in made:
                made[member] = member.columns(block)
        written = reduce(_products, (made[member] for member in product.members))
        if product.scale != 1.0:
            written *= product.scale
        block[product.place] = written


def _products(left: Array, right: Array) -> Array:
    """All products of the columns of two groups, row by row; the columns of the second group run fastest."""
    return (left[:, None] * right[None]).reshape(len(left) * len(right), left.shape[1])
