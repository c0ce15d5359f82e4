"""From the columns of a frame to bounded rows, by public knowledge alone.

An `Encoder` learns nothing from data: what it makes of a row depends on the schema and on that row. Each column of the
schema, and each interaction, becomes one group of encoded columns. The L1 norm of a group is at most 1, or the scale of the
interaction. So the L2 norm of a row is at most the root of the sum of their squares. A coefficient speaks in terms of its
column: it is the effect of a category compared with none, or of the end of a number's range compared with the middle.

`confide.features.codes` says how each kind of column is encoded. The atoms of a number are a group of their own, of which at
most one entry is 1. An interaction has all products of the encoded
columns of its members; the columns of the last member run fastest. If a member is all zeros, so are the products. A missing
number takes part with its indicator. The L1 norm of the products is the product of the L1 norms. The group of an interaction
is linked (exactly one entry is 1, or the scale of the interaction, in every row) if the groups of all its members are.

`Encoder.read` checks a frame and turns it into `Codes`, a few bytes a cell. `Encoder.expand` makes rows from them, block by
block. Messages name columns and never hold a value.
"""

from __future__ import annotations

from collections.abc import Sequence, Set
from contextlib import closing
from dataclasses import dataclass, field, replace
from itertools import chain, compress
from operator import attrgetter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from confide.array_types import Array, Indices
from confide.compiled.stored_rows import StoredCodes
from confide.erm.coded_rows import CodedRows, dense, unchangeable
from confide.erm.group_bounds import GroupBound
from confide.errors import InputError, ParameterError, wording
from confide.features.atoms import cells_of, slots_of, sought_in
from confide.features.cells import Levels
from confide.features.coded_columns import CodedColumns, StoredColumns
from confide.features.codes import Codes, ColumnEncoding, PlainNumbers, encoding_of, encodings_of
from confide.features.columns import Column, NumberColumn
from confide.features.fourier import CurvesAndFeatures
from confide.features.groups import Group, Product, layout_of, write_products
from confide.features.schema import Schema, schema_with
from confide.features.table import RawTable, RowsPerPerson, numbers_in
from confide.known_words import listed
from confide.threads import made_in_order

_BLOCK_ROWS = 1024


@dataclass(frozen=True, slots=True)
class Encoder:
    """Encodes the columns that a schema describes as rows whose groups have L1 norm at most 1.

    Parameters
    ----------
    schema : the public description of the columns
    of_part : whether the rows that it reads are only a part of all rows; then other rows may use columns that these do not
    slots : how many places there are for the atoms of each column in which a fit looks for some
    in_one : whether it looks in one column alone (`features.atoms.sought_in`)

    Attributes
    ----------
    n_features : number of encoded columns
    feature_names : their names, for example "age", "age=(missing)", "workclass=Private", "workclass=(other)". A category
        with two levels has one column, named by the second level. "age~25" is the column of the knot 25, and "sex=Male:age"
        is a product
    groups : the groups of encoded columns, one for each column of the schema, in order, then one for the atoms of each
        column that has some, then one for the slots of each column that is to get some, then one for each interaction
    row_bound : the bound that every encoded row obeys in exact arithmetic
    appended : the map by which models append random features to encoded rows, if the schema asks for them; otherwise None.
        The encoder itself does not append them

    Raises
    ------
    SchemaError
        If two encoded columns would have the same name.

    Examples
    --------
    >>> import pandas
    >>> encoder = Encoder(Schema(columns={"age": {"low": 0, "high": 100}}))
    >>> encoder.transform(pandas.DataFrame({"age": [0, 50, 120]}))
    array([[-1.],
           [ 0.],
           [ 1.]])
    """

    schema: Schema
    of_part: bool = field(default=False, compare=False, repr=False)
    slots: int = field(default=0, repr=False)
    in_one: bool = field(default=False, repr=False)
    n_features: int = field(init=False, compare=False, repr=False)
    feature_names: tuple[str, ...] = field(init=False, compare=False, repr=False)
    groups: tuple[Group, ...] = field(init=False, compare=False, repr=False)
    row_bound: GroupBound = field(init=False, compare=False, repr=False)
    appended: CurvesAndFeatures | None = field(init=False, compare=False, repr=False)
    _encodings: tuple[ColumnEncoding, ...] = field(init=False, compare=False, repr=False)
    """How each column of the schema is encoded, in order, and then its atoms."""
    _plain: PlainNumbers = field(init=False, compare=False, repr=False)
    """The plain numbers, which are encoded together."""
    _others: tuple[tuple[int, ColumnEncoding, slice], ...] = field(init=False, compare=False, repr=False)
    """The other columns: place in the schema, encoding, and the places of the encoded columns."""
    _coded: CodedColumns | None = field(init=False, compare=False, repr=False)
    """How the columns become coded rows, or None if dense rows are faster or several columns interact."""
    _stored: StoredColumns | None = field(init=False, compare=False, repr=False)
    """How the columns are read by the compiled kernel, or None if there are interactions."""
    _products: tuple[Product, ...] = field(init=False, compare=False, repr=False)
    """The interactions."""

    def __post_init__(self) -> None:
        encodings = encodings_of(self.schema)
        if self.slots:
            sought = sought_in(self.schema, layout_of(self.schema, encodings)[0], in_one=self.in_one)
            encodings = encodings_of(self.schema, sought, self.slots)
        names, groups, row_bound, products, beside = layout_of(self.schema, encodings)
        # Interactions come after all columns.
        placed = tuple(zip(encodings, groups, strict=False))
        features, n_features = self.schema.random_features, len(names)
        of_groups = list(map(attrgetter("column"), groups)), [one.n_hats if one.is_number else 0 for one in encodings]
        coded = None if len(beside) < len(products) else CodedColumns(n_features, placed, beside)
        plain = [(place, pair[0].column, pair[1].start) for place, pair in enumerate(placed) if pair[0].is_plain]
        made = {
            "_coded": coded if coded is not None and coded.pays else None,
            "n_features": n_features,
            "feature_names": names,
            "groups": groups,
            "row_bound": row_bound,
            "appended": features and features.appended_to(row_bound, *of_groups),
            "_encodings": encodings,
            "_plain": PlainNumbers(plain),
            "_others": tuple((at, one, group.place) for at, (one, group) in enumerate(placed) if not one.is_plain),
            "_stored": None if products else StoredColumns(n_features, placed),
            "_products": products,
        }
        for name, value in made.items():
            object.__setattr__(self, name, value)

    @property
    def factors(self) -> tuple[tuple[ColumnEncoding, ...], ...]:
        """For each group, the encodings that are multiplied: one for a column or its atoms, several for an interaction."""
        alone = ((encoding,) for encoding in self._encodings)
        return (*alone, *(tuple(member.factor for member in product.members) for product in self._products))

    @property
    def signed(self) -> tuple[bool, ...]:
        """For each group, whether its entries are no cells in which rows lie: straight lines, signs, and atoms."""

        def is_signed(factor: ColumnEncoding) -> bool:
            return not factor.n_hats if factor.is_number else len(factor.names) == 1 or factor.number is not None

        return tuple(any(map(is_signed, factors)) for factors in self.factors)

    def read(
        self, frame: Any, rows_per_person: RowsPerPerson | None = None, *, refuse: bool = True, n_threads: int = 1
    ) -> Codes:
        """Check a frame and read the columns of the schema.

        Parameters
        ----------
        frame : pandas or Polars frame, or Arrow table, of raw columns. They are found by name, in any order; other columns
            are ignored. The frame is not modified.
        rows_per_person : which rows of each person are kept, if the schema names the column that identifies persons, or that
            of a cohort; None keeps all rows and does not need that column
        refuse : False after the rows were checked and a budget was charged, because a refusal would then be an answer about
            the rows. A number that cannot be used counts as missing, or as 0 if missing numbers are not declared. A category
            that cannot be used has no level
        n_threads : how many columns are read at the same time. Neither the result nor a refusal depends on it

        Returns
        -------
        Codes
            The rows in a compact form, for `expand`.

        Raises
        ------
        InputError
            If it is not a frame in memory, has no rows, lacks a column, or if a column holds what its description does
            not allow. The message names the column and holds no value.
        """
        table = RawTable.of(frame, self.schema, choosing=rows_per_person is not None)

        sought = {column.name: column for column in self.sought}

        def codes_of(place: int) -> tuple[NDArray[Any], list[NDArray[Any]], bool, list[NDArray[Any]]]:
            values, is_used = table.checked_column(place, refuse=refuse)
            column, codes = self.schema.columns[place], self._encodings[place].codes(values)
            of_atoms = [column.atoms_in(values)] if column.is_number and column.atoms else []
            number = sought.get(column.name)
            cells = [] if number is None else [cells_of(number, values).astype(np.int32)]
            # Memory of the frame, or of a file that is mapped to it, might change before the rows are used.
            return codes if codes.flags.owndata else codes.copy(), of_atoms, is_used, cells

        with closing(made_in_order(codes_of, range(len(self.schema.columns)), n_threads)) as made:
            columns, atoms, is_used, cells = zip(*made, strict=True)
        cells = tuple(chain.from_iterable(cells))
        columns = (*columns, *chain.from_iterable(atoms), *(np.full(of_rows.shape, -1, np.int16) for of_rows in cells))
        used = frozenset(compress(self.schema.column_names, is_used))
        kept = None
        if rows_per_person is not None and table.choosing is not None:
            kept = table.counting(rows_per_person)
        if kept is not None:
            kept.setflags(write=False)
            columns, cells = (tuple(codes[kept] for codes in arrays) for arrays in (columns, cells))
        for codes in (*columns, *cells):
            codes.setflags(write=False)
        return Codes(self.schema, columns, kept, used, cells)

    @property
    def sought(self) -> tuple[NumberColumn, ...]:
        """The columns whose atoms are still to be found."""
        numbers = (None if encoding.is_number else encoding.number for encoding in self._encodings)
        return tuple(number for number in numbers if number is not None and not number.atoms)

    def with_atoms(self, codes: Codes, atoms: Sequence[Sequence[float]]) -> Codes:
        """The codes of rows with the atoms that were found, for each of the columns `sought`, in its slots."""
        found = zip(codes.cells, self.sought, atoms, strict=True)
        slots = tuple(unchangeable(slots_of(column, own)[cells]) for cells, column, own in found)
        return replace(codes, columns=(*codes.columns[: len(codes.columns) - len(slots)], *slots), cells=())

    def with_found(self, columns: Sequence[NumberColumn]) -> tuple[Encoder, Indices]:
        """The encoder in which the columns `sought` are these, with the atoms that were found, and no slots are left.

        The second value says where its columns are among those here.
        """
        schema = schema_with(tuple(columns), self.schema)
        made, n_columns = Encoder(schema, self.of_part), len(schema.columns)
        of_atoms = {group.column: group for group in self.groups[n_columns : len(self.groups) - len(self._products)]}
        kept = [*self.groups[:n_columns], *(of_atoms[name] for name in schema.names_of_codes[n_columns:])]
        kept += self.groups[len(self.groups) - len(self._products) :]
        pairs = zip(kept, made.groups, strict=True)
        return made, np.concatenate([np.arange(old.start, old.start + new.size) for old, new in pairs])

    def levels(self, codes: Codes, name: str) -> Levels:
        """The level of each row (n,) in a column of categories; negative where a category has none."""
        return np.asarray(codes.columns[self.schema.column_names.index(name)].astype(np.intp))

    def without(self, codes: Codes, name: str, schema: Schema) -> Codes:
        """The codes of the same rows without a column, as they are for `schema`, which lacks that column."""
        pairs = zip(self.schema.names_of_codes, codes.columns, strict=True)
        return Codes(schema, tuple(column for own, column in pairs if own != name))

    def refuse_unused(self, used: Set[str]) -> None:
        """Refuse rows that do not use some of the columns, because the weights of these columns would be noise alone.

        Parameters
        ----------
        used : the columns that some row uses: `Codes.used`, or the union of them if the rows came in several pieces

        Raises
        ------
        InputError
            If a column is not among them and the rows are not only a part of all rows. The message names the column.
        """
        unused = [name for name in self.schema.column_names if name not in used]
        if unused and not self.of_part:
            raise InputError(wording("schema describes other columns", columns=listed(unused)))

    def expand(self, codes: Codes, start: int, stop: int) -> Array:
        """Encoded rows start to stop.

        Parameters
        ----------
        codes : what `read` gave for the same schema
        start, stop : 0 <= start <= stop <= codes.n_rows

        Returns
        -------
        array (stop - start, n_features), float64, fresh and C-contiguous

        Raises
        ------
        ParameterError
            If the codes are of another schema, or the rows do not exist.
        """
        rows = np.empty((stop - start if start <= stop else 0, self.n_features))
        # One block at a time, so that it is still in the cache when it is transposed.
        for first in range(start, max(stop, start + 1), _BLOCK_ROWS):
            last = min(first + _BLOCK_ROWS, stop)
            rows[first - start : last - start] = dense(self.block(codes, first, last))
        return rows

    @property
    def codes_rows(self) -> bool:
        """Whether `block` makes coded rows of these columns, because they are summed up faster than dense rows."""
        return self._coded is not None

    @property
    def is_storable(self) -> bool:
        """Whether the compiled kernel reads codes of this schema: there are no interactions."""
        return self._stored is not None

    def as_stored(self, codes: Codes) -> StoredCodes | None:
        """The rows of `block`, for the compiled kernel; None where it cannot read these codes."""
        self._check_schema(codes)
        return None if self._stored is None else self._stored.of(codes)

    def as_certified(self, codes: Codes, row_bound: Any) -> StoredCodes | None:
        """The rows of `block`, as the compiled kernel reads them for certificates; None where it is not trusted with them.

        It depends on the schema and on the bound alone. Proof: privacy/proofs/certificate.md, "Codes by the kernel".
        """
        known = self._stored is not None and self._stored.is_certified and row_bound == self.row_bound
        return self.as_stored(codes) if known else None

    def block(self, codes: Codes, start: int, stop: int, dtype: type[np.floating[Any]] = np.float64) -> Array | CodedRows:
        """Encoded rows start to stop, for a small number of rows; parameters as for `expand`.

        They are coded rows or an array in Fortran order, whichever is summed up faster. Only an array can be in single
        precision.
        """
        self._check_schema(codes)
        if not 0 <= start <= stop <= codes.n_rows:
            raise ParameterError("expand needs 0 <= start <= stop <= number of rows.")
        if self._coded is not None and dtype == np.float64:
            return self._coded.block(codes, start, stop)
        columns: Array = np.empty((self.n_features, stop - start), dtype)
        rows = slice(start, stop)
        self._plain.write(codes, rows, columns)
        for place, encoding, own in self._others:
            encoding.write(codes.columns[place][rows], columns[own])
        write_products(self._products, columns)
        return columns.T

    def _check_schema(self, codes: Codes) -> None:
        if codes.schema is not self.schema and codes.schema != self.schema:
            raise ParameterError("the codes were read by another schema; read the frame by this one.")

    def transform(self, frame: Any) -> Array:
        """All rows of a frame, encoded: `expand` of all that `read` gives.

        Parameters
        ----------
        frame : as for `read`

        Returns
        -------
        array (number of rows, n_features), float64

        Raises
        ------
        InputError
            As for `read`.
        """
        codes = self.read(frame)
        return self.expand(codes, 0, codes.n_rows)


# Cells of rows to be predicted that the schema does not describe: counted for the caller, who has these rows. A fit counts
# no such cells, because their number would be an answer about its rows.


def sentence_of_cells_outside(column: Column, count: int) -> str:
    """How many cells of a column lie outside of what its description allows, and what becomes of them. It shows no cell."""
    several = count != 1
    number = f'"{column.name}": {count:,} cell{"s" * several}'
    if column.is_number:
        low, high = column.texts_of([column.low])[0], column.shown(column.high)
        place = f"lie{'s' * (not several)} outside {low} to {high} and count{'s' * (not several)} as the nearer bound"
        return f"{number} {place}"
    if several:
        return f"{number} are none of the listed categories and count as no level"
    return f"{number} is none of the listed categories and counts as no level"


def cells_outside(frame: Any, schema: Schema, codes: Codes) -> dict[str, int]:
    """By column, how many numbers lie outside their bounds or categories have no level; none of 0 cells.

    Missing cells do not count, nor does a category that counts as another one (`other`), because it is described.

    Parameters
    ----------
    frame : the rows, as `Encoder.read` took them
    schema : the public description of the columns
    codes : what `Encoder.read` gave for the frame, checked
    """
    raw: RawTable | None = None
    outside: dict[str, int] = {}
    for place, (column, read) in enumerate(zip(schema.columns, codes.columns, strict=False)):
        if not column.is_number:
            count = int((read < 0).sum())
        else:
            if not encoding_of(column).is_kept_as_is:
                # These codes were clipped already.
                raw = raw or RawTable.of(frame, schema, choosing=False)
                read = numbers_in(column, raw.columns[place])
            # NaN, a missing number, is neither below nor above.
            with np.errstate(invalid="ignore"):
                # As numbers of Python the bounds would be rounded to the precision of the column.
                count = int(((read < np.float64(column.low)) | (read > np.float64(column.high))).sum())
        if count:
            outside[column.name] = count
    return outside
