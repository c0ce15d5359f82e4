"""From the columns of a frame to bounded rows, by public knowledge alone.

An `Encoder` learns nothing from data: what it does to a row depends on the schema and on that row. Each column of the
schema, and each interaction, becomes one group of encoded columns whose L1 norm is at most 1, so that a row's L2 norm is at
most the root of the number of groups, and a coefficient speaks in the column's own terms (a category against none, a
number's middle to end):

- a number is clipped to its bounds and stretched to [-1, 1]; where gaps are declared, a second column is 1 in place of
  the first where the number is missing;
- a number with knots is one column for its low, each knot and its high: the hat function that is 1 there and falls in a
  straight line to 0 at both neighbours (B-splines of degree 1), all times 1 - 2^-36, which keeps rounded sums below 1. A
  weight is the effect at that value, and effects between are interpolated;
- a category with exactly two levels is one column, -1 for the first and 1 for the second; any other is one column a
  level, with the value 1 where the level is the row's. The levels are the categories, then "(other)" and "(missing)"
  where they are declared. A category that is no level gives zeros, unless the schema says as which of them it counts:
  then exactly one column is 1 in every row, and the group of the row bound is linked;
- an interaction is all products of the encoded columns of its members, the last member's columns running fastest. Where a
  member is all zeros so are the products, and a missing number takes part with its indicator. The L1 norm of the
  products is the product of the L1 norms; the group is linked if those of all members are.

`read` checks a frame and turns it into `Codes`, a few bytes a cell; `expand` makes rows of them, block by block.
Messages name columns and never hold a value.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from functools import reduce
from itertools import accumulate, product
from typing import Any, ClassVar, Protocol, TypeGuard

import numpy as np
from numpy.typing import NDArray

from confide.erm.group_bounds import GroupBound
from confide.errors import InputError, ParameterError, SchemaError
from confide.features.cells import Levels, columns_of, listed, read_identities, read_levels, read_numbers
from confide.features.labels import targets_at
from confide.features.schema import CategoryColumn, Label, NumberColumn, Schema, canonical_label, shown_number
from confide.types import Array, Indices, Labels

_UNKNOWN = -1
_REFUSED = -2
_AS_LISTED = -3
_LARGE = 2.0**100
"""Single precision has room for smaller bounds, and for ranges above the inverse."""
_BLOCK_ROWS = 1024
_INSIDE = 1.0 - 2.0**-36
"""Two hats add up to 1 but for rounding; so the row bound sees at once that they obey it, and clips nothing."""


@dataclass(frozen=True, slots=True)
class Group:
    """The encoded columns start to start + size belong to `column`; their L1 norm is at most 1.

    Of an interaction, `column` is the names of its members with colons between.
    """

    column: str
    start: int
    size: int


@dataclass(frozen=True, slots=True)
class RowsPerPerson:
    """Which rows of each person count: so many of them, drawn at random.

    A table may be sorted by what it holds, so the first rows of a person could be others when another person's row changes.
    Rows that are drawn depend on those of their person alone, and on nothing that anybody knows.

    Parameters
    ----------
    most : how many rows of each person count
    permutation : of n, gives the numbers 0 to n - 1 in a secret order that is uniform and independent of everything else
    """

    most: int
    permutation: Callable[[int], Indices]

    def drawn(self, persons: Indices) -> Indices | None:
        """Rising positions of the rows that count, of rows whose persons are given (n,); None for all."""
        shuffled = self.permutation(persons.size)
        order = shuffled[np.argsort(persons[shuffled], kind="stable")]
        grouped = persons[order]
        is_first = np.append(True, grouped[1:] != grouped[:-1])
        starts = np.flatnonzero(is_first)
        earlier = np.arange(persons.size) - starts[np.cumsum(is_first) - 1]
        kept: Indices = np.sort(order[earlier < self.most])
        return None if kept.size == persons.size else kept


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Codes:
    """A checked frame in a compact form. It holds data: it is made by `Encoder.read` for `Encoder.expand` alone.

    Parameters
    ----------
    schema : the schema it was read by
    numbers : read-only (columns, n_rows), the numbers on a linear scale without knots as they stand, in order: float32 where
        all of them are, else float64; NaN or infinite where one is missing or of no use
    others : one read-only array (n_rows,) for each other column, in order: for a number, float64 in [-1, 1], or where it has
        knots its position among them, 0 for its low; NaN where it is missing; for a category, its level as a small integer,
        -1 for no level
    kept : read-only positions (n_rows,) in the frame of the rows that are held here, rising, or None if all are
    used : the columns with a cell that is a listed category or lies within its bounds, for `Encoder.refuse_unused`; of rows
        that were let pass, none
    """

    schema: Schema
    numbers: NDArray[np.floating[Any]]
    others: tuple[Array | Levels, ...]
    kept: Indices | None = None
    used: frozenset[str] = frozenset()

    @property
    def n_rows(self) -> int:
        """Number of rows: public under replace-one, private under add-or-remove-one."""
        return int(self.numbers.shape[1])

    def taken(self, which: Indices | slice) -> Codes:
        """Some of the rows, by their positions here."""
        return Codes(self.schema, self.numbers[:, which], tuple(codes[which] for codes in self.others))

    def __repr__(self) -> str:
        return f"Codes({self.schema!r})"


class _Part(Protocol):
    """How one column becomes one group."""

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the encoded columns."""

    @property
    def linked(self) -> bool:
        """Whether exactly one of the encoded columns is 1 in every row, and the others 0."""

    def read(self, cells: Any, refuse: bool) -> tuple[Any, bool]:
        """Check the cells of the column, or let them pass: the codes (n,), and whether a checked cell is as described."""

    def write(self, codes: Any, out: Array) -> None:
        """Fill `out`, the group's columns of one block (size, m), from the block's codes (m,)."""


@dataclass(frozen=True, slots=True)
class Encoder:
    """Encodes the columns that a schema describes as rows whose groups have L1 norm at most 1.

    Parameters
    ----------
    schema : the public description of the columns
    of_part : whether the rows that it reads are a part of others, which may use columns that these do not

    Attributes
    ----------
    n_features : number of encoded columns
    feature_names : their names, for example "age", "age=(missing)", "workclass=Private", "workclass=(other)"; a
        category with two levels has one column, named by the second; "age~25" is the column of the knot 25, and
        "sex=Male:age" a product
    groups : the groups of encoded columns, one for each column of the schema, in order, then one for each interaction
    row_bound : the bound that every encoded row obeys in exact arithmetic

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
    n_features: int = field(init=False, compare=False, repr=False)
    feature_names: tuple[str, ...] = field(init=False, compare=False, repr=False)
    groups: tuple[Group, ...] = field(init=False, compare=False, repr=False)
    row_bound: GroupBound = field(init=False, compare=False, repr=False)
    _parts: tuple[_Part, ...] = field(init=False, compare=False, repr=False)
    _numbers: _Numbers = field(init=False, compare=False, repr=False)
    """The plain numbers, which are encoded together."""
    _others: tuple[tuple[_Part, slice], ...] = field(init=False, compare=False, repr=False)
    """The other columns, each with the place of its group."""
    _products: tuple[tuple[tuple[slice, ...], slice], ...] = field(init=False, compare=False, repr=False)
    """The places of the groups that each interaction multiplies, and its own."""

    def __post_init__(self) -> None:
        parts = tuple(_part(column) for column in self.schema.columns)
        positions = {name: position for position, name in enumerate(self.schema.column_names)}
        members = tuple(tuple(positions[name] for name in interaction) for interaction in self.schema.interact)
        products = [[":".join(names) for names in product(*(parts[i].names for i in group))] for group in members]
        columns_of_groups = [*(list(part.names) for part in parts), *products]
        sizes = [len(columns) for columns in columns_of_groups]
        starts = accumulate(sizes, initial=0)
        titles = [*self.schema.column_names, *(":".join(interaction) for interaction in self.schema.interact)]
        names = tuple(name for columns in columns_of_groups for name in columns)
        name, count = Counter(names).most_common(1)[0]
        if count > 1:
            raise SchemaError(f'two encoded columns would have the name "{name}"; rename the column or the category.')
        object.__setattr__(self, "n_features", len(names))
        object.__setattr__(self, "feature_names", names)
        object.__setattr__(self, "groups", tuple(map(Group, titles, starts, sizes)))
        linked = tuple(part.linked for part in parts)
        linked += tuple(all(linked[i] for i in group) for group in members)
        object.__setattr__(self, "row_bound", GroupBound(tuple(sizes), (1.0,) * len(sizes), linked))
        object.__setattr__(self, "_parts", parts)
        plain = [(part.column, group.start) for part, group in zip(parts, self.groups, strict=False) if _is_plain(part)]
        object.__setattr__(self, "_numbers", _Numbers(plain))
        places = [slice(group.start, group.start + group.size) for group in self.groups]
        others = tuple(pair for pair in zip(parts, places, strict=False) if not _is_plain(pair[0]))
        object.__setattr__(self, "_others", others)
        multiplied = zip(members, places[len(parts) :], strict=True)
        object.__setattr__(self, "_products", tuple((tuple(places[i] for i in group), own) for group, own in multiplied))

    def read(self, frame: Any, rows_per_person: RowsPerPerson | None = None, *, refuse: bool = True) -> Codes:
        """Check a frame and read the columns of the schema.

        Parameters
        ----------
        frame : pandas or Polars frame, or Arrow table, of raw columns. They are found by name, in any order; others
            are ignored. The frame is not modified.
        rows_per_person : which rows of each person are kept, where the schema names the person's column; None keeps all
            rows and does not need that column
        refuse : False after rows were checked and a budget charged, where a refusal would be an answer about them: a number
            that cannot be used counts as missing, or 0 where gaps are not declared, and such a category as none

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
        person = None if rows_per_person is None else self.schema.person
        names = self.schema.column_names
        series = columns_of(frame, names if person is None else (*names, person))
        numbers: NDArray[np.floating[Any]] = np.empty((self._numbers.count, len(series[0])), dtype=np.float32)
        others, position, used = [], 0, set()
        for part, name, cells in zip(self._parts, names, series, strict=False):
            codes, is_used = part.read(cells, refuse)
            if is_used:
                used.add(name)
            if not _is_plain(part):
                others.append(codes)
                continue
            if codes.dtype != np.float32 and numbers.dtype == np.float32:
                read_so_far = numbers[:position]
                numbers = np.empty(numbers.shape)
                numbers[:position] = read_so_far
            numbers[position] = codes
            position += 1
        kept = None
        if rows_per_person is not None and person is not None:
            kept = rows_per_person.drawn(read_identities(f'column "{person}"', series[-1]))
        if kept is not None:
            kept.setflags(write=False)
            numbers, others = numbers[:, kept], [codes[kept] for codes in others]
        for codes in (numbers, *others):
            codes.setflags(write=False)
        return Codes(self.schema, numbers, tuple(others), kept, frozenset(used))

    def refuse_unused(self, used: Set[str]) -> None:
        """Refuse rows that use only some of the columns: the weights of the others would be noise alone.

        Parameters
        ----------
        used : the columns that some row uses: `Codes.used`, of rows in several pieces the union

        Raises
        ------
        InputError
            If a column is not among them, and the rows are no part of others. The message names the column.
        """
        unused = [name for name in self.schema.column_names if name not in used]
        if unused and not self.of_part:
            raise InputError(
                f"the schema does not describe these columns as the rows hold them: {listed(unused)}. No row has a category "
                f"that is listed there, or a number within the bounds, so all that a fit would find is noise. Correct "
                f'categories and bounds by public knowledge (codes such as 1 and 2 are not "male" and "female"), or leave '
                f"such a column out of the schema."
            )

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
        # A block at a time, so that it stays in the cache while it is turned.
        for first in range(start, max(stop, start + 1), _BLOCK_ROWS):
            last = min(first + _BLOCK_ROWS, stop)
            rows[first - start : last - start] = self.block(codes, first, last)
        return rows

    def block(self, codes: Codes, start: int, stop: int, dtype: type[np.floating[Any]] = np.float64) -> Array:
        """The same rows, not too many of them, with columns that lie in one piece each (Fortran order)."""
        if codes.schema is not self.schema and codes.schema != self.schema:
            raise ParameterError("the codes were read by another schema; read the frame by this one.")
        if not 0 <= start <= stop <= codes.n_rows:
            raise ParameterError("expand needs 0 <= start <= stop <= number of rows.")
        columns: Array = np.empty((self.n_features, stop - start), dtype)
        self._numbers.write(codes.numbers[:, start:stop], columns)
        for (part, place), values in zip(self._others, codes.others, strict=True):
            part.write(values[start:stop], columns[place])
        for places, place in self._products:
            columns[place] = reduce(_products, (columns[member] for member in places))
        return columns.T

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


def read_labels(values: Any, *classes: Label, refuse: bool = True) -> Labels:
    """Labels of two classes as -1 and +1, of more as their positions.

    Parameters
    ----------
    values : pandas or Polars Series, Arrow array, NumPy array or list of raw labels, one a row
    classes : the labels, compared in canonical form (`canonical_label`); of two the negative one and the positive one
    refuse : False after labels were checked and a budget charged: what is none of the classes counts as the first

    Returns
    -------
    array (n,), fresh
        int8, -1 for negative, +1 for positive; or the position of each class, from 0.

    Raises
    ------
    InputError
        If it is not one column of labels, or a label is missing or is none of the classes. The message holds no cell.
    """
    shape = getattr(values, "shape", (0,))
    if isinstance(values, (str, bytes, Mapping, Set)) or not hasattr(values, "__len__") or len(shape) != 1:
        raise InputError("the labels must be one column: a Series, a one-dimensional array or a list.")
    if len(values) == 0:
        raise InputError("the labels: there are none; one a row is needed.")
    domain = {canonical_label(label): position for position, label in enumerate(classes)}
    levels = read_levels("the labels", values, domain, missing=_REFUSED, unknown=_UNKNOWN)
    if not refuse:
        levels[levels < 0] = 0
    if (levels == _REFUSED).any():
        raise InputError("the labels: some are missing; give rows that have a label.")
    if (levels == _UNKNOWN).any():
        none, one = ("neither ", "the two") if len(classes) == 2 else ("none of ", "the classes")
        named = " nor ".join(map(repr, classes)) if len(classes) == 2 else ", ".join(map(repr, classes))
        raise InputError(f"the labels: some are {none}{named}; give rows that have one of {one}.")
    return targets_at(levels, len(classes))


def read_targets(values: Any, *, counts: bool, refuse: bool = True) -> Array:
    """The numbers that a regression is to predict, (n,) float64.

    Parameters
    ----------
    values : Series, Arrow array, NumPy array or list of numbers, one a row
    counts : whether none may be negative
    refuse : False after targets were checked and a budget charged: what is no finite number counts as 0

    Raises
    ------
    InputError
        If one is missing, is no finite number, or is a negative count. The message holds none.
    """
    targets = np.array(read_numbers("the targets", values, refuse), dtype=np.float64)
    finite = np.isfinite(targets)
    if refuse and not finite.all():
        raise InputError("the targets: some are missing or infinite; give rows whose target is a finite number.")
    if refuse and counts and (targets < 0.0).any():
        raise InputError("the targets: some are negative, and no count is. Correct them.")
    targets[~finite] = 0.0
    return targets


def _products(left: Array, right: Array) -> Array:
    """All products of the columns of two groups, row by row; those of the second run fastest."""
    return (left[:, None] * right[None]).reshape(len(left) * len(right), left.shape[1])


def _is_plain(part: _Part) -> TypeGuard[_NumberPart]:
    return isinstance(part, _NumberPart) and part.is_plain


def _part(column: NumberColumn | CategoryColumn) -> _Part:
    return _NumberPart(column) if isinstance(column, NumberColumn) else _CategoryPart(column)


@dataclass(frozen=True, slots=True)
class _NumberPart:
    """Numbers, clipped to public bounds and stretched to [-1, 1]."""

    column: NumberColumn
    linked: ClassVar[bool] = False

    @property
    def is_plain(self) -> bool:
        """Whether its codes are the numbers themselves."""
        return self.column.scale == "linear" and not self.column.knots

    @property
    def names(self) -> tuple[str, ...]:
        name = self.column.name
        names = tuple(f"{name}~{shown_number(value)}" for value in self.column.bends) or (name,)
        return (*names, f"{name}=(missing)") if self.column.missing else names

    def read(self, cells: Any, refuse: bool) -> tuple[NDArray[np.floating[Any]], bool]:
        values, is_used = self._checked(read_numbers(f'column "{self.column.name}"', cells, refuse), refuse)
        return (values if self.is_plain else self._stretched(values)), is_used

    def _checked(self, values: NDArray[np.floating[Any]], refuse: bool) -> tuple[NDArray[np.floating[Any]], bool]:
        """The numbers, NaN for missing ones, and whether one lies within the bounds."""
        column = self.column
        if self.is_plain and not refuse:
            # Whatever is no finite number is told block by block.
            return values, False
        # The ends are finite where all numbers are, and cheaper to find than to ask each number.
        ends = (values.min(initial=np.inf), values.max(initial=-np.inf))
        if values.size and not (math.isfinite(ends[0]) and math.isfinite(ends[1])):
            infinite = np.isinf(values)
            if refuse and infinite.any():
                raise InputError(
                    f'column "{column.name}": holds infinite numbers; give finite ones, or leave the cells empty.'
                )
            if refuse and not column.missing:
                raise InputError(
                    f'column "{column.name}": holds missing values; declare "missing = true" for it in the schema, '
                    "or fill them in by a rule that does not depend on the data."
                )
            values = np.where(infinite, np.nan, values).astype(values.dtype)
        is_used = refuse and (
            any(column.low <= end <= column.high for end in ends)
            # Not one of the ends, but one between them, which may be missing ones.
            or bool(((values >= column.low) & (values <= column.high)).any())
        )
        return values, is_used

    def _stretched(self, values: NDArray[np.floating[Any]]) -> NDArray[np.floating[Any]]:
        """Numbers on their scale, or their positions among knots."""
        column = self.column
        stretched = column.stretched(values.astype(np.float64))
        if not column.missing:
            stretched[np.isnan(stretched)] = 0.0
        if not column.knots:
            return stretched
        ends = column.stretched(np.array(column.bends))
        positions: Array = np.interp(stretched, ends, np.arange(float(ends.size)))
        return positions

    def write(self, codes: Array, out: Array) -> None:
        numbers = out[:-1] if self.column.missing else out
        if self.column.knots:
            numbers[...] = _INSIDE * np.maximum(1.0 - np.abs(codes - np.arange(len(numbers))[:, None]), 0.0)
        else:
            numbers[0] = codes
        if self.column.missing:
            absent = np.isnan(codes)
            numbers[:, absent] = 0.0
            out[-1] = absent


class _Numbers:
    """Plain numbers of a block, stretched together: column by column the calls would cost more than the work.

    Parameters
    ----------
    columns : each with the position of its encoded column
    """

    def __init__(self, columns: Sequence[tuple[NumberColumn, int]]) -> None:
        self.count = len(columns)
        self.low, self.high = (np.array([[getattr(c, end)] for c, _ in columns]).reshape(-1, 1) for end in ("low", "high"))
        self.width = self.high - self.low
        ends = np.concatenate([self.low, self.high])
        moderate = bool((np.abs(ends) < _LARGE).all()) and bool((self.width > 1.0 / _LARGE).all())
        self.in_single_precision = moderate and bool((self.low.astype(np.float32) == self.low).all())
        starts = [start for _, start in columns]
        in_one_piece = starts == list(range(starts[0], starts[0] + len(starts))) if starts else False
        self.places = slice(starts[0], starts[0] + len(starts)) if in_one_piece else np.array(starts, dtype=np.intp)
        self.gaps = [(row, start + 1) for row, (column, start) in enumerate(columns) if column.missing]

    def write(self, numbers: NDArray[np.floating[Any]], out: Array) -> None:
        """Fill the columns of `out` (n_features, m) that are theirs, from `numbers` (count, m) as they stand.

        The same numbers as `NumberColumn.stretched` gives, but for those that are missing: they become 0.
        """
        if not numbers.size:
            return
        # A slice is a view, and filled in place.
        stretched = out[self.places] if isinstance(self.places, slice) else np.empty(numbers.shape, out.dtype)
        with np.errstate(all="ignore"):
            # Written so that a NaN counts as outside.
            least, most = numbers.min(axis=1, keepdims=True), numbers.max(axis=1, keepdims=True)
            inside = bool((least >= self.low).all()) and bool((most <= self.high).all())
            self._stretch(numbers if inside else np.minimum(np.maximum(numbers, self.low), self.high), stretched)
        absent = np.zeros(0, dtype=bool) if inside else ~np.isfinite(numbers)
        if absent.any():
            stretched[absent] = 0.0
        if not isinstance(self.places, slice):
            out[self.places] = stretched
        for row, place in self.gaps:
            out[place] = 0.0 if inside else absent[row]

    def _stretch(self, numbers: NDArray[np.floating[Any]], out: Array) -> None:
        if out.dtype == np.float32 and numbers.dtype == np.float32 and self.in_single_precision:
            # The difference first: it loses nothing where numbers are large beside their range.
            np.subtract(numbers, self.low.astype(np.float32), out=out)
            out *= (2.0 / self.width).astype(np.float32)
            out -= np.float32(1.0)
            return
        if out.dtype == np.float32:
            exact = np.empty(out.shape)
            self._stretch(numbers, exact)
            np.copyto(out, exact, casting="same_kind")
            return
        # Two steps: one that also changes the type of the numbers takes longer than both.
        np.copyto(out, numbers)
        out -= self.low
        out /= self.width
        out *= 2.0
        out -= 1.0


@dataclass(frozen=True, slots=True)
class _CategoryPart:
    """Categories, as levels."""

    column: CategoryColumn
    names: tuple[str, ...] = field(init=False, compare=False, repr=False)
    single: Array = field(init=False, compare=False, repr=False)
    """Where one column is enough: its value for each level, and at last, at -1, for none of them. Otherwise empty."""

    def __post_init__(self) -> None:
        column = self.column
        levels = [str(category) for category in column.categories]
        levels += ["(other)"] * (column.other is True) + ["(missing)"] * column.missing
        columns = levels[1:] if len(levels) == 2 else levels
        values = {1: [1.0, 0.0], 2: [-1.0, 1.0, 0.0]}.get(len(levels), [])
        object.__setattr__(self, "names", tuple(f"{column.name}={level}" for level in columns))
        object.__setattr__(self, "single", np.array(values))

    @property
    def linked(self) -> bool:
        return not self.single.size and self.column.other is not False

    def read(self, cells: Any, refuse: bool) -> tuple[Levels, bool]:
        column = self.column
        known = {canonical_label(category): level for level, category in enumerate(column.categories)}
        other = _AS_LISTED if isinstance(column.other, str) else len(known) if column.other else _UNKNOWN
        # The level of its own comes last. Without one a missing category is an unlisted one, where those have a level.
        missing = len(known) + (column.other is True) if column.missing else other if column.other else _REFUSED
        levels = read_levels(f'column "{column.name}"', cells, known, missing=missing, unknown=other)
        is_used = refuse and bool(((levels >= 0) & (levels < len(known))).any())
        refused = levels == _REFUSED
        if refuse and refused.any():
            raise InputError(
                f'column "{column.name}": holds missing values; declare "missing = true" or "other = true" '
                "for it in the schema."
            )
        levels[refused] = _UNKNOWN
        if isinstance(column.other, str):
            levels[levels == _AS_LISTED] = known[column.other]
        return levels, is_used

    def write(self, codes: Levels, out: Array) -> None:
        if self.single.size:
            out[0] = self.single[codes]
        else:
            out[...] = 0.0
            known = np.flatnonzero(codes >= 0)
            out[codes[known], known] = 1.0
