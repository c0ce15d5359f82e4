"""The layout of encoded columns: their names, the groups they form, and the bound of a row."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, chain
from itertools import product as combinations

from confide.erm.group_bounds import GroupBound
from confide.errors import SchemaError
from confide.features.column_encodings import ColumnEncoding, NumberEncoding
from confide.features.products import Product, members_of
from confide.features.schema import Schema


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


@dataclass(frozen=True, slots=True)
class Layout:
    """Where each group of encoded columns is.

    Parameters
    ----------
    names : names of the encoded columns
    groups : one for each column of the schema, in its order, then one for each interaction
    row_bound : the bound that every encoded row obeys in exact arithmetic
    products : the interactions
    curves_beside : the curves beside lines that coded rows may hold: the place of a column, the encoding of its hats, and
        their group
    """

    names: tuple[str, ...]
    groups: tuple[Group, ...]
    row_bound: GroupBound
    products: tuple[Product, ...]
    curves_beside: tuple[tuple[int, NumberEncoding, Group], ...]

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
        names = [encoding.names for encoding in encodings]
        sizes = [len(columns) for columns in names]
        starts = list(accumulate(sizes, initial=0))
        positions = {name: position for position, name in enumerate(schema.column_names)}
        products = []
        for interaction in schema.interact:
            members = members_of(interaction, [positions[name] for name in interaction.columns], encodings, starts)
            # The columns of the last member run fastest, as in `write_products`.
            of_members = [member.names for member in members]
            if interaction.is_curve:
                # The line has an indicator of missing cells of its own.
                of_members = [tuple(each.replace("=(missing)", "~(missing)") for each in of_members[0])]
            names.append(tuple(map(":".join, combinations(*of_members))))
            sizes.append(len(names[-1]))
            products.append(Product(members, interaction.scale, slice(starts[-1], starts[-1] + sizes[-1])))
            starts.append(starts[-1] + sizes[-1])
        _refuse_repeated(names)
        titles = [*schema.column_names, *(interaction.title for interaction in schema.interact)]
        linked = [*(encoding.linked for encoding in encodings), *(product.linked for product in products)]
        scales = [*(1.0 for _ in encodings), *(product.scale for product in products)]
        groups = tuple(map(Group, titles, starts, sizes))
        return cls(
            tuple(chain.from_iterable(names)),
            groups,
            GroupBound(tuple(sizes), tuple(scales), tuple(linked)),
            tuple(products),
            _curves_beside(schema, products, groups[len(encodings) :]),
        )


def _curves_beside(
    schema: Schema, products: Sequence[Product], groups: Sequence[Group]
) -> tuple[tuple[int, NumberEncoding, Group], ...]:
    """The curves beside lines that coded rows may hold, of the interactions of a schema."""
    beside = []
    for interaction, product, group in zip(schema.interact, products, groups, strict=True):
        hats = product.members[0].factor
        if not (interaction.is_curve and interaction.scale == 1.0 and isinstance(hats, NumberEncoding)):
            continue
        # The codes of a line on a linear scale are the numbers as they are.
        if hats.is_kept_as_is or hats.column.scale != "linear":
            beside.append((schema.column_names.index(interaction.columns[0]), hats, group))
    return tuple(beside)


def _refuse_repeated(names: Sequence[Sequence[str]]) -> None:
    if len(set(chain.from_iterable(names))) < sum(map(len, names)):
        name = Counter(chain.from_iterable(names)).most_common(1)[0][0]
        raise SchemaError(f'two encoded columns would have the name "{name}"; rename the column or the category.')
