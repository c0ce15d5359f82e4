"""The layout of encoded columns: their names, the groups they form, and the bound of a row."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, chain
from itertools import product as combinations

from confide.erm.group_bounds import GroupBound
from confide.errors import SchemaError
from confide.features.column_encodings import ColumnEncoding
from confide.features.schema import Schema


@dataclass(frozen=True, slots=True)
class Group:
    """Neighbouring encoded columns, from `start` to `start + size`, whose L1 norm is at most 1 in every row.

    `column` is the name of the column that they encode; for an interaction, the names of its members with colons between.
    """

    column: str
    start: int
    size: int

    @property
    def place(self) -> slice:
        """Where the encoded columns are."""
        return slice(self.start, self.start + self.size)


@dataclass(frozen=True, slots=True)
class Product:
    """An interaction.

    Parameters
    ----------
    members : where the encoded columns are that are multiplied
    place : where their products are
    """

    members: tuple[slice, ...]
    place: slice


@dataclass(frozen=True, slots=True)
class Layout:
    """Where each group of encoded columns is.

    Parameters
    ----------
    names : names of the encoded columns
    groups : one for each column of the schema, in its order, then one for each interaction
    row_bound : the bound that every encoded row obeys in exact arithmetic
    products : the interactions
    """

    names: tuple[str, ...]
    groups: tuple[Group, ...]
    row_bound: GroupBound
    products: tuple[Product, ...]

    @classmethod
    def of(cls, schema: Schema, encodings: Sequence[ColumnEncoding]) -> Layout:
        """The layout of the columns of a schema.

        Parameters
        ----------
        schema : the public description of the columns
        encodings : how each column is encoded, in the order of the schema

        Raises
        ------
        SchemaError
            If two encoded columns would have the same name.
        """
        positions = {name: position for position, name in enumerate(schema.column_names)}
        interactions = [tuple(positions[name] for name in names) for names in schema.interact]
        titles = [*schema.column_names, *map(":".join, schema.interact)]
        names = [encoding.names for encoding in encodings]
        # The columns of the last member run fastest, as in `Encoder.block`.
        names += [tuple(map(":".join, combinations(*(names[i] for i in members)))) for members in interactions]
        _refuse_repeated(names)
        sizes = [len(columns) for columns in names]
        groups = tuple(map(Group, titles, accumulate(sizes, initial=0), sizes))
        linked = [encoding.linked for encoding in encodings]
        # In a product of linked groups exactly one entry is 1, too.
        linked += [all(linked[i] for i in members) for members in interactions]
        products = zip(interactions, groups[len(encodings) :], strict=True)
        return cls(
            tuple(chain.from_iterable(names)),
            groups,
            GroupBound(tuple(sizes), (1.0,) * len(sizes), tuple(linked)),
            tuple(Product(tuple(groups[i].place for i in members), group.place) for members, group in products),
        )


def _refuse_repeated(names: Sequence[Sequence[str]]) -> None:
    name, count = Counter(chain.from_iterable(names)).most_common(1)[0]
    if count > 1:
        raise SchemaError(f'two encoded columns would have the name "{name}"; rename the column or the category.')
