"""Products of the encoded columns of interacting columns, block by block.

A member of an interaction enters the products as it is encoded, or as a coarse effect: a number then has evenly spaced hat
functions of its own, fewer than beside the products. Coarse hats are computed from the encoded columns of the number, by
operations on each row alone, so that an encoded row does not depend on the other rows of its block.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from itertools import accumulate, chain, count, repeat
from itertools import product as combinations
from operator import attrgetter
from typing import TypeAlias

import numpy as np

from confide.array_types import Array
from confide.erm.group_bounds import GroupBound
from confide.errors import SchemaError, hold
from confide.features.codes import HAT_HEIGHT, ColumnEncoding, NumberEncoding
from confide.features.schema import Schema


@dataclass(frozen=True, slots=True)
class Member:
    """How one column enters the products of an interaction. Equal members have equal columns.

    Parameters
    ----------
    encoding : how the column is encoded beside the products
    start : where its encoded columns are
    knots : the number of evenly spaced knots with which a number enters, 0 for a straight line; None if the column enters as
        it is encoded
    """

    encoding: ColumnEncoding
    start: int
    knots: int | None
    factor: ColumnEncoding = field(init=False, compare=False, repr=False)
    """The encoding that the columns which enter have."""
    points: Array = field(init=False, compare=False, repr=False)
    """(size, 1): what each encoded column adds to the number on the scale from -1 to 1. The indicator adds nothing."""

    def __post_init__(self) -> None:
        factor, points = self.encoding, np.ones(1)
        if factor.is_number and self.knots is not None:
            column = factor.column
            points = column.stretched(np.array(column.knots_with_bounds)) / HAT_HEIGHT if column.knots else points
            factor = NumberEncoding(replace(column, knots=self.knots))
        hold(self, factor=factor, points=points[:, None])

    def columns(self, block: Array) -> Array:
        """The columns that enter (size, m), from the encoded columns of a block (n_features, m)."""
        encoded, factor = block[self.start : self.start + len(self.encoding.names)], self.factor
        if self.knots is None or not factor.is_number:
            return encoded
        # At most two hats of a row are not 0. So the sum of separately rounded products is the same in any order.
        stretched = (self.points * encoded[: len(self.points)]).sum(axis=0)
        if factor.column.missing:
            stretched[encoded[-1] != 0.0] = np.nan
        columns: Array = np.empty((len(factor.names), block.shape[1]), block.dtype)
        if self.knots:
            factor.write_hats((stretched + 1.0) * ((self.knots + 1) / 2.0), columns)
        else:
            factor.write_line(stretched, columns)
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
        return all(member.factor.linked for member in self.members)


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


# The layout of encoded columns: their names, the groups they form, and the bound of a row.


@dataclass(frozen=True, slots=True)
class Group:
    """Neighbouring encoded columns, from `start` to `start + size`, whose L1 norm has a bound in every row.

    The bound is 1 for a column, and the scale of the interaction for products.

    `column` is the name of the column that they encode; for an interaction, the names of its members with colons between.
    """

    column: str
    start: int
    size: int

    @property
    def place(self) -> slice:
        """Where the encoded columns are."""
        return slice(self.start, self.start + self.size)


Beside: TypeAlias = tuple[int, NumberEncoding, Group]
"""A curve beside a line that coded rows may hold: the place of the column, how its hats are encoded, and their group."""
Layout: TypeAlias = tuple[tuple[str, ...], tuple[Group, ...], GroupBound, tuple[Product, ...], tuple[Beside, ...]]
"""Where encoded columns are: their names; their groups, one for each column of the schema, in its order, then one for the
atoms of each column that has some, then one for each interaction; the bound that every encoded row obeys in exact
arithmetic; the interactions; and the curves beside lines."""


def layout_of(schema: Schema, encodings: Sequence[ColumnEncoding]) -> Layout:
    """The layout of the columns of a schema.

    Parameters
    ----------
    schema : the public description of the columns
    encodings : how each column is encoded, in the order of the schema, and then its atoms (`encodings_of`)

    Raises
    ------
    SchemaError
        If two encoded columns would have the same name.
    """
    names = list(map(attrgetter("names"), encodings))
    starts = list(accumulate(map(len, names), initial=0))
    positions = dict(zip(schema.column_names, count(), strict=False))
    products, beside = [], []
    for interaction in schema.interact:
        places = [positions[name] for name in interaction.columns]
        members = tuple(Member(encodings[i], starts[i], interaction.knots) for i in places)
        # The columns of the last member run fastest, as in `write_products`.
        of_members, hats = [member.factor.names for member in members], members[0].factor
        if interaction.is_curve:
            # The line has an indicator of missing cells of its own.
            of_members = [tuple(name.replace("=(missing)", "~(missing)") for name in of_members[0])]
        names.append(tuple(map(":".join, combinations(*of_members))))
        starts.append(starts[-1] + len(names[-1]))
        products.append(Product(members, interaction.scale, slice(*starts[-2:])))
        # The codes of a line on a linear scale are the numbers as they are.
        is_one = interaction.is_curve and interaction.scale == 1.0
        if is_one and hats.is_number and (hats.is_kept_as_is or hats.column.scale != "linear"):
            beside.append((places[0], hats, Group(interaction.title, starts[-2], len(names[-1]))))
    together = tuple(chain.from_iterable(names))
    if len(set(together)) < len(together):
        name = Counter(together).most_common(1)[0][0]
        raise SchemaError(f'two encoded columns would have the name "{name}"; rename the column or the category.')
    titles = chain(map(attrgetter("column.name"), encodings), map(attrgetter("title"), schema.interact))
    sizes, linked = tuple(map(len, names)), tuple(map(attrgetter("linked"), (*encodings, *products)))
    row_bound = GroupBound(sizes, (*repeat(1.0, len(encodings)), *map(attrgetter("scale"), products)), linked)
    return together, tuple(map(Group, titles, starts, sizes)), row_bound, tuple(products), tuple(beside)
