"""Public descriptions of columns: numbers between bounds, and categories from a list."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, fields, replace
from fractions import Fraction
from itertools import chain
from operator import attrgetter
from pathlib import Path
from typing import Any, ClassVar, Literal, TypeAlias

import numpy as np

from confide.array_types import Array
from confide.errors import (
    Reader,
    SchemaError,
    as_float,
    hold,
    is_label,
    is_list,
    is_mapping,
    is_number,
    is_text,
    is_whole,
    keep,
    optional,
    reader,
    wording,
)
from confide.features.canonical_labels import Label, canonical_label, is_missing
from confide.features.cells import PARTS, CellNumbers, Levels, checked_form, day_number, declared_day, part_of, shown_days
from confide.features.checks import (
    UNIT,
    AtomsRelease,
    BoundsRelease,
    check_fields,
    check_keys,
    column_title,
    finite_number,
    listed_by,
    made_of,
    plain_label,
)
from confide.known_words import suggestion

SCALES = ("linear", "log", "log10")
_SPELLINGS_OF_FLAGS: dict[Any, tuple[str, ...]] = {"false": ("0", "F"), "true": ("1", "T"), "0": ("false",), "1": ("true",)}
"""How tables write false and true besides, R among them; and that 0 and 1 may come as false and true."""
_DATED = (str, dt.date, np.datetime64)
"""What bounds are that are dates."""
PRIVATE = "private"
"""What stands in the place of categories that a private release is to find."""
MOST_EVEN_KNOTS = 1000
"""The largest number of evenly spaced knots of one column. More would be a mistake."""
MOST_LEVELS = 100_000
"""The largest number of levels in a file."""
MOST_ATOMS = 1000
"""The largest number of atoms of one column."""


@dataclass(frozen=True, slots=True)
class NumberColumn:
    """A number between public bounds. Values outside the bounds are clipped.

    Parameters
    ----------
    name : name of the column in the table
    low, high : public bounds in the column's own unit, finite, low < high
    scale : "linear"; or "log" for numbers with a long right tail, in a unit in which 1 is small: x is then encoded as
        log(1 + x - low) / log(1 + high - low), stretched from [0, 1] to [-1, 1]; or "log10" for positive numbers that spread
        over powers of ten: x is then encoded as log(x / low) / log(high / low), stretched likewise
    missing : whether cells may be missing; missing cells get an indicator column of their own. A list of codes, such as
        (999, -9), says so too, and that cells with one of these numbers are missing cells
    knots : where the effect of the column may bend. A list of numbers between low and high, in rising order; or a whole
        number, so many knots spaced evenly on the column's own scale, 0 for a straight line. An empty list says nothing:
        linear models take a straight line, and additive models choose a number of knots
    atoms : numbers from low to high, in rising order, that many rows share, such as 999 or 15024. Each has an effect of its
        own, beside that of the line or the curve
    released : the private release from which the bounds came, as `confide bounds` writes it; None for bounds that are public
        knowledge. How the column is encoded does not depend on it, so it is not compared
    released_atoms : the private release from which the atoms came, as a fit that found them writes it, likewise
    unit : the unit of the numbers, such as "USD", shown wherever units are shown; None says nothing. It changes no number,
        and is not compared
    column : the column of the table that is read; None for the one of this name
    part : "date" where cells are dates and numbers are days since 1970-01-01, as it is where low or high is a date; "year"
        for their year
    format : how dates are written as text, in the letters of strptime; None for 2024-03-31 and 2024-03-31 14:30
    ordered : levels of an ordered category; the number of a cell is then the rank of its level, 0 for the first one

    Raises
    ------
    SchemaError
        If a value contradicts this description. The message names the column.
    """

    is_number: ClassVar[Literal[True]] = True
    labels: ClassVar[tuple[Label, ...]] = ()
    name: str
    low: float
    high: float
    scale: str = "linear"
    missing: bool | tuple[float, ...] = False
    knots: tuple[float, ...] | int = ()
    atoms: tuple[float, ...] = ()
    released: BoundsRelease | None = field(default=None, compare=False)
    released_atoms: AtomsRelease | None = field(default=None, compare=False)
    unit: str | None = field(default=None, compare=False)
    column: str | None = None
    part: str | None = None
    format: str | None = None
    ordered: tuple[Label, ...] = ()
    raw_name: str = field(init=False, compare=False, repr=False)
    """The column of the table that is read."""
    dates: bool = field(init=False, compare=False, repr=False)
    """Whether the numbers are days of dates."""
    holds_numbers: bool = field(init=False, compare=False, repr=False)
    """Whether the cells are numbers, and not dates or levels."""
    missing_codes: tuple[float | str, ...] = field(init=False, compare=False, repr=False)
    """Numbers that stand for missing cells."""
    interior_knots: tuple[float, ...] = field(init=False, compare=False, repr=False)
    """The knots in the column's own unit, in rising order, low and high not among them."""

    def __post_init__(self) -> None:
        where = column_title(self.name)
        if isinstance(self.low, _DATED) or isinstance(self.high, _DATED):
            hold(self, part=self.part or "date")
        raw_name, dates = self.column or self.name, self.part == "date"
        hold(self, raw_name=raw_name, dates=dates, holds_numbers=not (self.part or self.ordered))
        if self.column or self.part or self.format:
            _check_reading(where, self, ("date", "year"))
        if self.ordered:
            self._check_order(where)
        number = declared_day if self.dates else finite_number
        keep(self, f"{where}: ", unit=UNIT, low=number, high=number)
        if not self.low < self.high:
            raise SchemaError(f"{where}: low must be below high, not {self.shown(self.low)} and {self.shown(self.high)}.")
        if math.isinf(self.high - self.low):
            raise SchemaError(f"{where}: low and high are too far apart; their difference must be a finite number.")
        self._check_scale(where)
        read_code = plain_label if self.ordered else finite_number if self.holds_numbers else declared_day
        codes = tuple(dict.fromkeys(_codes_of(where, self.missing, read_code)))
        hold(self, missing_codes=codes, missing=codes or self.missing, knots=_checked_knots(where, self.knots, number))
        keep(self, f"{where}: ", atoms=listed_by(number, "a list of numbers", "each of the atoms"))
        for kind in (BoundsRelease, AtomsRelease):
            hold(self, **{kind.key: _release_of(where, kind, getattr(self, kind.key))})
        inner: Any = self.knots
        if self.has_even_knots:
            inner = tuple(self.numbers_at(np.arange(1, inner + 1) / (inner + 1)).tolist())
        hold(self, interior_knots=inner)
        ends = np.array([self.low, *self.interior_knots, self.high])
        if not self.has_even_knots and not (ends[:-1] < ends[1:]).all():
            raise SchemaError(f"{where}: knots must be in rising order, each strictly between low and high.")
        if not (np.diff(self.stretched(ends)) > 0.0).all():
            raise SchemaError(wording("knots too close", where=where))
        if len(self.atoms) > MOST_ATOMS:
            raise SchemaError(f"{where}: there are more than {MOST_ATOMS} atoms; leave some of them out.")
        rising = sorted({*self.atoms})
        if list(self.atoms) != rising or (rising and not self.low <= rising[0] <= rising[-1] <= self.high):
            raise SchemaError(f"{where}: atoms must be in rising order, each from low to high.")
        if self.part != "year" and set(self.atoms) & set(self.missing_codes):
            raise SchemaError(f"{where}: a number is an atom and a code for missing cells; keep it in one of the lists.")

    def _check_order(self, where: str) -> None:
        keep(self, f"{where}: ", ordered=listed_by(plain_label, "a list of levels", "a level"))
        if len(self.known) < len(self.ordered):
            raise SchemaError(f"{where}: two of the ordered categories are the same; list each once.")
        if (self.low, self.high) != (0, len(self.ordered) - 1):
            raise SchemaError(f"{where}: the ranks of {len(self.ordered)} levels go from 0 to {len(self.ordered) - 1}.")

    def _check_scale(self, where: str) -> None:
        if not is_text(self.scale) or self.scale not in SCALES:
            raise SchemaError(f'{where}: scale must be "linear", "log" or "log10"{suggestion(self.scale, SCALES)}.')
        if self.scale != "linear" and self.ordered:
            raise SchemaError(f"{where}: the ranks of an ordered category are evenly spaced; leave scale out.")
        if self.scale != "log10":
            return
        if self.dates:
            raise SchemaError(f'{where}: scale = "log10" is for amounts, and these are dates; leave it out.')
        if self.low <= 0.0:
            raise SchemaError(wording("log10 needs a positive low", where=where, low=shown_number(self.low)))
        if math.isinf((self.high - self.low) / self.low):
            raise SchemaError(f'{where}: low is too close to 0 for scale = "log10"; give a larger low.')

    @property
    def unit_of_steps(self) -> str | None:
        """The unit of differences: days of dates, levels of ordered categories, otherwise that of the numbers."""
        return "levels" if self.ordered else "days" if self.dates else self.unit

    @property
    def plain(self) -> NumberColumn:
        """The column of a table that holds the numbers themselves, under its name."""
        missing = bool(self.missing) if self.missing_codes and not self.holds_numbers else self.missing
        return replace(self, column=None, part=None, format=None, ordered=(), missing=missing)

    @property
    def ends(self) -> tuple[Any, Any]:
        """A cell at each end: with the least and with the greatest number."""
        if self.part == "year":
            return dt.date(max(1, int(self.low)), 1, 1), dt.date(min(9999, int(self.high)), 12, 31)
        if self.dates:
            low, high = (dt.datetime(1970, 1, 1) + dt.timedelta(days=end) for end in self.bounds)
            return low, high
        return (self.ordered[0], self.ordered[-1]) if self.ordered else self.bounds

    @property
    def known(self) -> dict[str | None, int]:
        """The rank of each level of an ordered category, by its canonical form."""
        return {canonical_label(level): rank for rank, level in enumerate(self.ordered)}

    @property
    def bounds(self) -> tuple[float, float]:
        """Low and high."""
        return self.low, self.high

    @property
    def has_even_knots(self) -> bool:
        """Whether the knots are evenly spaced ones, of which the number is given."""
        return type(self.knots) is not tuple

    @property
    def n_knots(self) -> int:
        """The number of knots."""
        return len(self.interior_knots)

    def width(self, knots: int | None = None) -> int:
        """The number of encoded columns: with its own knots, or with so many."""
        n_knots = self.n_knots if knots is None else knots
        return (n_knots + 2 if n_knots else 1) + bool(self.missing)

    def atoms_in(self, numbers: CellNumbers) -> Levels:
        """(n,): which atom each of the numbers (n,) is, after it is clipped to the bounds; -1 for none, as for NaN."""
        # In the precision of the cells, as codes for missing cells are.
        atoms, ends = (np.array(values).astype(numbers.dtype) for values in (self.atoms, self.bounds))
        clipped = np.clip(numbers, *ends)
        places = np.minimum(np.searchsorted(atoms, clipped), atoms.size - 1)
        return np.where(np.isfinite(numbers) & (atoms[places] == clipped), places, -1).astype(np.int16)

    def without_codes(self, numbers: CellNumbers) -> CellNumbers:
        """The numbers in cells (n,), with NaN for those that stand for missing cells."""
        with np.errstate(over="ignore"):
            # In the precision of the cells, so that 99.9 in single precision is the code 99.9.
            codes = np.array(self.missing_codes).astype(numbers.dtype)
        held = np.isin(numbers, codes[np.isfinite(codes)])
        return np.where(held, numbers.dtype.type(np.nan), numbers) if held.any() else numbers

    @property
    def is_log(self) -> bool:
        """Whether the scale is a logarithm."""
        return self.scale != "linear"

    @property
    def doubling(self) -> float:
        """On a logarithmic scale, the first distance above low that counts as much as each later doubling.

        Both logarithms are log(1 + distance from low / this distance): it is 1 for "log", and low itself for "log10".
        """
        return self.low if self.scale == "log10" else 1.0

    @property
    def is_straight(self) -> bool:
        """Whether the encoding is a straight line from low to high: a linear scale without knots."""
        return self.scale == "linear" and not self.knots

    def stretched(self, values: Array) -> Array:
        """Values clipped to [low, high] and mapped to [-1, 1] by the scale; NaN stays NaN. The argument is overwritten."""
        # Rounding is monotone, so each step keeps its range: [0, width], then [0, 1], then [-1, 1].
        width = self.high - self.low
        np.clip(values, self.low, self.high, out=values)
        values -= self.low
        if self.is_log:
            values /= self.doubling
            np.log1p(values, out=values)
            width = math.log1p(width / self.doubling)
        values /= width
        np.minimum(values, 1.0, out=values)  # log1p of NumPy and of math may differ in the last digit
        values *= 2.0
        values -= 1.0
        return values

    def numbers_at(self, shares: Array) -> Array:
        """The numbers at shares of the way from low to high on the column's own scale, in the column's own unit."""
        width = self.high - self.low
        steps = width * shares
        if self.is_log:
            steps = np.expm1(math.log1p(width / self.doubling) * shares) * self.doubling
        return np.asarray(self.low + steps)

    @property
    def knots_with_bounds(self) -> tuple[float, ...]:
        """Low, the knots and high, in the column's own unit; empty if there are no knots."""
        return (self.low, *self.interior_knots, self.high) if self.knots else ()

    def to_dict(self) -> dict[str, Any]:
        """The column without its name, as in a TOML file: JSON-able, without what has its default value."""
        names = ("low", "high", "unit", "scale", "knots", "atoms", "missing", "released", "released_atoms")
        kept = names[2 * bool(self.ordered) :]
        described = described_fields(self, "column", *["part"] * (not self.dates), "format", *kept)
        if self.ordered:
            return {"categories": list(self.ordered), "ordered": True} | described
        dated = {"low", "high", "atoms", *["knots"] * (not self.has_even_knots)} if self.dates else set[str]()
        dated |= {"missing"} if self.missing_codes and self.part else set()
        return described | {key: _dates_in(described[key]) for key in dated & described.keys()} if dated else described

    def __str__(self) -> str:
        if self.ordered:
            return f"{len(self.ordered)} ordered categories{_shown_gaps(self)}"
        log = f", {self.scale} scale" if self.is_log else ""
        knots = ""
        if self.has_even_knots:
            knots = f", {self.knots} even knot{'s'[: self.n_knots != 1]}" if self.knots else ", a straight line"
        elif self.knots:
            knots = f", knots at {', '.join(self.texts_of(self.interior_knots))}"
        atoms = f", atoms at {', '.join(self.texts_of(self.atoms))}" if self.atoms else ""
        released = "".join(f", released {release.what}" for release in self.releases)
        ends = f"from {self.texts_of([self.low])[0]} to {self.shown(self.high)}"
        kind = "date" if self.dates else "year of a date" if self.part else "number"
        return f"{kind} {ends}{log}{knots}{atoms}{_shown_gaps(self)}{released}"

    def shown(self, number: float) -> str:
        """A number as people write it, with the unit if there is one: "17 years"; a date, or a level."""
        return with_unit(self.texts_of([number])[0], self.unit)

    def texts_of(self, numbers: Iterable[float]) -> tuple[str, ...]:
        """Numbers as people write them: dates as dates, and ranks as their levels."""
        if self.dates:
            return shown_days(numbers)
        return tuple(map(str, map(self.value_of if self.ordered else shown_number, numbers)))

    def value_of(self, number: float) -> Any:
        """What stands for a number in the table: the number, a date as text, or the level of a rank."""
        if self.dates:
            return shown_days([number], exact=True)[0]
        return self.ordered[int(number)] if self.ordered and number.is_integer() else shown_number(number)

    def number_of(self, value: Any) -> float:
        """The number for which a value stands; NaN for what is none."""
        if self.ordered:
            return float(self.known.get(canonical_label(value), math.nan)) if is_label(value) else math.nan
        day = day_number(value) if self.dates and not is_number(value) else None
        return as_float(value) if day is None else day

    def can_read(self, value: object) -> bool:
        """Whether a cell holds a date, or a level of an ordered category, or is missing."""
        if self.part:
            return day_number(value, self.format) is not None
        label = canonical_label(value)
        return bool(self.missing) or is_missing(label, self.known) or label in self.known

    def numbers_from(self, cells: CellNumbers) -> CellNumbers:
        """Numbers of the column from those in its cells: without codes for missing cells, and the year of a date."""
        numbers = self.without_codes(cells) if self.missing_codes and not self.ordered else cells
        return part_of(np.asarray(numbers, np.float64), "year") if self.part == "year" else numbers

    @property
    def before_fit(self) -> NumberColumn:
        """The column as it was described before a fit found its atoms."""
        found = self.released_atoms is not None and self.released_atoms.by_fit
        return replace(self, atoms=(), released_atoms=None) if found else self

    @property
    def for_another_fit(self) -> NumberColumn:
        """The column as another fit takes it: see `Schema.for_another_fit`."""
        release = self.released_atoms
        return self if release is None else replace(self, released_atoms=replace(release, by_fit=False))

    @property
    def releases(self) -> tuple[AtomsRelease, ...]:
        """The private releases from which facts about the column came."""
        return tuple(filter(None, (self.released, self.released_atoms)))

    @property
    def title(self) -> str:
        """The name for headings and axes: with the unit in parentheses, if there is one and the name does not hold it."""
        return self.name if self.unit is None or self.unit in self.name else f"{self.name} ({self.unit})"


@dataclass(frozen=True, slots=True)
class CategoryColumn:
    """A category from a public list.

    Parameters
    ----------
    name : name of the column in the table
    categories : text, numbers or booleans, all different in canonical form; their order is that of the encoded columns
    other : True: categories that are not listed share a level of their own. A listed category: those that are not listed
        count as that one; it is kept in canonical form. False: those that are not listed have no level. With True or a
        category, missing cells are treated like categories that are not listed, unless `missing` is True
    missing : whether cells may be missing; missing cells get a level of their own. A list of codes, such as ("-9",), says so
        too, and that cells with one of these labels are missing cells
    released : the private release from which the categories came, as `confide bounds` writes it; None for public knowledge
    column : the column of the table that is read; None for the one of this name
    part : the part of a date that is the level of a cell: "quarter", "month", "weekday" or "hour"; categories are its levels
    format : how dates are written as text, in the letters of strptime
    prefix : so many first characters of a code are its level; None for all of it. The categories may be whole codes: what
        is kept of them are their first characters
    length : how many characters every code has. Whole numbers are filled up with zeros in front; None refuses them, where
        the listed codes do not all have one length

    Raises
    ------
    SchemaError
        If a value contradicts this description. The message names the column.
    """

    is_number: ClassVar[Literal[False]] = False
    bounds: ClassVar[None] = None
    name: str
    categories: tuple[Label, ...]
    other: bool | str = False
    missing: bool | tuple[Label, ...] = False
    released: BoundsRelease | None = field(default=None, compare=False)
    column: str | None = None
    part: str | None = None
    format: str | None = None
    prefix: int | None = None
    length: int | None = None
    raw_name: str = field(init=False, compare=False, repr=False)
    """The column of the table that is read."""
    missing_codes: tuple[Label, ...] = field(init=False, compare=False, repr=False)
    """Labels that stand for missing cells."""
    known: dict[str | None, int] = field(init=False, compare=False, repr=False)
    """The level of each listed category, by its canonical form. False and true are also 0 and 1, and F and T as in R."""
    levels: tuple[str, ...] = field(init=False, compare=False, repr=False)
    """The listed categories, then "(other)" and "(missing)" if they have a level of their own."""

    def __post_init__(self) -> None:
        where = column_title(self.name)
        if is_text(self.categories) and str(self.categories) == PRIVATE:
            raise SchemaError(wording("levels to be found", where=where, private=PRIVATE, name=self.name))
        hold(self, released=_release_of(where, BoundsRelease, self.released), raw_name=self.column or self.name)
        if self.column or self.part or self.format:
            _check_reading(where, self, PARTS)
        keep(self, f"{where}: ", categories=listed_by(plain_label, "a list of text, numbers or booleans", "a category"))
        if self.prefix is not None:
            self._cut_codes(where)
        if not self.categories:
            raise SchemaError(f"{where}: categories is empty; list at least one.")
        listed: dict[str | None, Label] = {}
        for category in self.categories:
            label = str(category) if self.prefix else canonical_label(category)
            if label in listed:
                raise SchemaError(f"{where}: the categories {listed[label]!r} and {category!r} are the same; list only one.")
            listed[label] = category
        if type(self.other) is not bool:
            other = canonical_label(self.other) if is_text(self.other) or is_number(self.other) else None
            if other is None or other not in listed:
                raise SchemaError(f"{where}: other must be true, false or one of the listed categories.")
            hold(self, other=other)
        read_code = plain_label if self.part is None else declared_day
        codes = {canonical_label(code): code for code in _codes_of(where, self.missing, read_code)}
        if both := [code for label, code in codes.items() if label in listed]:
            raise SchemaError(f"{where}: {both[0]!r} is a category and a code for missing cells; keep it in one list.")
        hold(self, missing_codes=tuple(codes.values()), missing=tuple(codes.values()) or self.missing)
        known = {label: level for level, label in enumerate(listed)}
        is_flag = known.keys() <= {"false", "true"} or known.keys() == {"0", "1"}
        also = {spelling: known[label] for label in known for spelling in _SPELLINGS_OF_FLAGS[label]} if is_flag else {}
        own = [*map(str, self.categories), *["(other)"] * (self.other is True), *["(missing)"] * bool(self.missing)]
        hold(self, known=known | also, levels=tuple(own))

    def _cut_codes(self, where: str) -> None:
        """Cut codes to the first characters that count, each prefix once, in the order of the list."""
        count = reader("a whole number from 1 on", lambda size: is_whole(size) and size >= 1, int, SchemaError)
        keep(self, f"{where}: ", prefix=count, length=optional(count))
        codes = [str(code).strip() for code in self.categories]
        lengths = set(map(len, codes))
        if self.length is None and lengths != {self.prefix} and len(lengths) == 1:
            hold(self, length=lengths.pop())
        hold(self, categories=tuple(dict.fromkeys(code[: self.prefix] for code in codes)))

    @property
    def plain(self) -> CategoryColumn:
        """The column of a table that holds a level in each cell, under its name."""
        if self.prefix is None and self.part is None:
            return replace(self, column=None)
        other = str(self.unlisted_level) if type(self.other) is str else self.other
        return CategoryColumn(self.name, tuple(range(len(self.categories))), other, bool(self.missing))

    @property
    def ends(self) -> tuple[Any, Any]:
        """A cell with the first level, and one with the last."""
        if self.part is not None:
            return dt.datetime(2001, 1, 1), dt.datetime(2001, 12, 30, 23)
        return self.categories[0], self.categories[-1]

    def label_of(self, value: object) -> str | None:
        """What is compared with the levels: the canonical form of a cell, or the first characters of a code.

        Raises
        ------
        TypeError
            If a code is a number, and it is not known how many zeros in front it may have lost, or if it is text of digits
            that are fewer than every code has, as readers write numbers.
        """
        label = canonical_label(value)
        if self.prefix is None or label is None or label in map(canonical_label, self.missing_codes):
            return label
        code = value.strip() if is_text(value) else ""
        if code and not (code.isdigit() and self.prefix < len(code) < (self.length or 0)):
            return code[: self.prefix]
        if code or self.length is None or not label.isdigit():
            raise TypeError("a code is text, because a number has lost the zeros in front.")
        return label.zfill(self.length)[: self.prefix]

    @property
    def labels(self) -> tuple[Label, ...]:
        """The listed categories."""
        return self.categories

    @property
    def releases(self) -> tuple[AtomsRelease, ...]:
        """The private release from which the categories came, if there is one."""
        return () if self.released is None else (self.released,)

    @property
    def unlisted_level(self) -> int:
        """The level of a category that is not listed; -1 if it has none."""
        return len(self.categories) if self.other is True else self.known[self.other] if self.other else -1

    @property
    def missing_level(self) -> int:
        """The level of a missing cell; -1 if it has none."""
        return len(self.categories) + (self.other is True) if self.missing else self.unlisted_level

    def width(self, knots: int | None = None) -> int:
        """The number of encoded columns; knots are for numbers alone."""
        return 1 if len(self.levels) == 2 else len(self.levels)  # two levels are -1 and 1

    def to_dict(self) -> dict[str, Any]:
        """The column without its name, as in a TOML file: JSON-able, without what has its default value."""
        missing = (_dates_in if self.part else list)([*self.missing_codes]) or self.missing
        flags = {key: value for key, value in (("other", self.other), ("missing", missing)) if value}
        reading = described_fields(self, "column", "part", "format", "prefix", "length")
        listed = {} if self.part else {"categories": list(self.categories)}
        return listed | reading | flags | described_fields(self, "released")

    @property
    def title(self) -> str:
        """The name for headings and axes."""
        return self.name

    def __str__(self) -> str:
        count = f"{len(self.categories)} categor{'y' if len(self.categories) == 1 else 'ies'}"
        count += f", first {self.prefix} characters" if self.prefix else ""
        count = f"{self.part} of a date" if self.part else count
        others = ", others allowed" if self.other is True else f", others count as {self.other}" if self.other else ""
        return f"{count}{others}{_shown_gaps(self)}{', released levels' * (self.released is not None)}"


def _dates_in(days: Any) -> Any:
    """A number of days, or each of a list, as the text of its date."""
    return [_dates_in(day) for day in days] if type(days) is list else shown_days([days], exact=True)[0]


def _check_reading(where: str, column: Column, parts: Iterable[str]) -> None:
    """Check what a column says of the cells that it reads."""
    if column.column is not None:
        column_title(column.column, f"{where}: column, the name of the column that is read,")
    if column.part is not None and column.part not in parts:
        raise SchemaError(f"{where}: part must be one of {', '.join(PARTS)}{suggestion(column.part, PARTS)}.")
    if column.format is not None:
        if not column.part:
            raise SchemaError(f"{where}: format is for dates; leave it out, or give low and high as dates.")
        checked_form(f"{where}: format", column.format)


def _codes_of(where: str, missing: Any, read: Reader) -> tuple[Any, ...]:
    """The codes that stand for missing cells; none where `missing` says no more than whether there may be such cells."""
    if type(missing) is bool:
        return ()
    must = "true, false, or a list of codes that stand for missing cells, such as [999, -9]"
    codes: tuple[Any, ...] = listed_by(read, must, "each code in missing")(f"{where}: missing", missing)
    if not codes:
        raise SchemaError(f"{where}: missing must be {must}.")
    return codes


def _shown_gaps(column: Column) -> str:
    """Whether cells may be missing, with the codes that stand for missing cells."""
    shown = codes_of(column)
    return f", may be missing ({shown})" if shown else ", may be missing" * bool(column.missing)


def listed_codes(codes: Iterable[Label]) -> str:
    """Codes as people read them: "999, -9"."""
    return ", ".join(str(_plain(code)) for code in codes)


def codes_of(column: Any) -> str:
    """The codes of a column, or of the target, as people read them."""
    return listed_codes(shown_days(column.missing_codes) if getattr(column, "part", None) else column.missing_codes)


def codes_sentence(columns: Iterable[Column]) -> tuple[str, ...]:
    """What a statement says of codes for missing cells; nothing where none are declared. It counts no cell."""
    declared = [f'{codes_of(column)} in "{column.name}"' for column in columns if column.missing_codes]
    if not declared:
        return ()
    return (f"Codes count as missing cells: {'; '.join(declared)}. They were declared without looking at the rows.",)


def _checked_knots(where: str, knots: Any, number: Reader) -> tuple[float, ...] | int:
    """Knots as a tuple of numbers, or the number of evenly spaced knots."""
    if is_whole(knots):
        if not 0 <= int(knots) <= MOST_EVEN_KNOTS:
            raise SchemaError(f"{where}: the number of knots must be from 0, a straight line, to {MOST_EVEN_KNOTS}.")
        return int(knots)
    read = listed_by(number, "a list of numbers, or the number of evenly spaced knots", "each of the knots")
    listed: tuple[float, ...] = read(f"{where}: knots", knots)
    if len(listed) > MOST_EVEN_KNOTS:
        raise SchemaError(f"{where}: there are more than {MOST_EVEN_KNOTS} knots; leave some of them out.")
    return listed


def _release_of(where: str, kind: type[AtomsRelease], described: object) -> AtomsRelease | None:
    """The release that a schema describes, or None."""
    try:
        return made_of(kind, kind.key, described, f"{kind.key} must be a table, as `confide {kind.command}` writes it.")
    except SchemaError as error:
        raise SchemaError(f"{where}, {error}") from None


Column: TypeAlias = NumberColumn | CategoryColumn
RAW_NAME = attrgetter("raw_name")
"""The column of the table that a column reads."""


def columns_of(described: object) -> tuple[Column, ...]:
    """Column objects, from a mapping of names to descriptions as in a TOML file, or as they were given.

    Raises
    ------
    SchemaError
        If the argument is neither, or a description contradicts itself.
    """
    if is_mapping(described):
        made = (_column(name, each) for name, each in described.items())
        return tuple(chain.from_iterable(_with_parts(column, described[column.name]) for column in made))
    columns = tuple(described) if is_list(described) else (None,)
    if not all(isinstance(column, NumberColumn | CategoryColumn) for column in columns):
        raise SchemaError("columns must map names to descriptions, or be NumberColumn and CategoryColumn objects.")
    return columns


def _column(name: Any, description: object) -> Column:
    where = column_title(name)
    if not is_mapping(description):
        if name in ("target", "person", "weight", "interact", "random_features"):
            # TOML counts every key below [columns] as a column.
            raise SchemaError(f'the key "{name}" is not a column; put it above [columns].')
        raise SchemaError(f"{where}: describe it by {{ low = ..., high = ... }} or {{ categories = [...] }}.")
    own: dict[str, Any] = dict(description)
    own.pop("parts", None)
    if own.get("part") in PARTS and own["part"] != "year":
        own.setdefault("categories", PARTS[own["part"]])
    if own.pop("boolean", False) is True:
        own.setdefault("categories", (False, True))
    is_number = "low" in own or "high" in own
    if is_number == ("categories" in own):
        advice = "both bounds and categories; keep" if is_number else "neither bounds nor categories; give"
        known = "low high scale knots atoms categories ordered other missing released released_atoms unit column part format"
        check_keys(where, own, tuple(known.split()))
        raise SchemaError(f"{where}: has {advice} low and high, or categories.")
    if is_mapping(own.get("categories")):
        own["categories"] = levels_in_file(where, own["categories"], Path())
    kind = NumberColumn if is_number else CategoryColumn
    is_ordered = own.pop("ordered", False)
    if type(is_ordered) is not bool or (is_ordered and is_number):
        raise SchemaError(f"{where}: ordered is true or false, and is for categories.")
    if is_ordered:
        check_keys(where, own, ("categories", "column", "knots", "missing"), _ORDERED)
        categories = listed_by(plain_label, "a list of levels from the lowest to the highest")(where, own.pop("categories"))
        return NumberColumn(name, 0.0, len(categories) - 1.0, ordered=categories, **own)
    check_fields(where, own, kind, given=("name", "ordered"))
    return kind(name=name, **own)


_ORDERED = ", and an ordered category has no other levels: they have no rank"


def _with_parts(column: Column, description: Any) -> Iterator[Column]:
    """The column, and then those of a column of dates that it names as its parts."""
    yield column
    parts = description.get("parts", ()) if is_mapping(description) else ()
    if not parts:
        return
    if not (column.is_number and column.dates):
        raise SchemaError(f"{column_title(column.name)}: parts are for dates, whose low and high are dates.")
    for part in listed_by(plain_label, 'a list such as ["year", "month"]')(f"{column_title(column.name)}: parts", parts):
        reading: Any = {"column": column.raw_name, "part": part, "missing": column.missing, "format": column.format}
        name = f"{column.name} ({part})"
        if part == "year":
            years = part_of(np.array(column.bounds), part).tolist()
            yield NumberColumn(name, years[0], max(years[1], years[0] + 1.0), **reading)
        else:
            yield CategoryColumn(name, PARTS.get(str(part), ("",)), **reading)


def levels_in_file(where: str, described: Mapping[str, Any], folder: Path) -> tuple[str, ...]:
    """The levels that stand in a file of text, one in each line; empty lines do not count.

    Parameters
    ----------
    where : how messages call the column
    described : { file = "levels.txt" }
    folder : where a path begins that is not absolute

    Raises
    ------
    SchemaError
        If the file cannot be read or has too many levels. The message quotes nothing from it.
    """
    check_keys(f"{where}: categories", described, ("file",))
    path = folder / str(described.get("file", ""))
    text = None
    with suppress(OSError, UnicodeDecodeError):
        text = path.read_text(encoding="utf-8-sig")
    if text is None:
        raise SchemaError(f"{where}: the levels cannot be read from {path}; give the path of a file of text in UTF-8.")
    levels = tuple(dict.fromkeys(filter(None, map(str.strip, text.splitlines()))))
    if len(levels) > MOST_LEVELS:
        raise SchemaError(f"{where}: {path} lists more than {MOST_LEVELS:,} levels; give a prefix, or fewer levels.")
    return levels


def described_fields(described: Any, *names: str) -> dict[str, Any]:
    """These fields of a dataclass as in a TOML file: JSON-able, without those that have their default value."""
    defaults = {field.name: field.default for field in fields(described)}
    values = {name: getattr(described, name) for name in names}
    return {name: _plain(value) for name, value in values.items() if value != defaults[name]}


def _plain(value: Any) -> Any:
    """A field as TOML and JSON have it."""
    match value:
        case tuple():
            return [_plain(entry) for entry in value]
        case AtomsRelease():
            return value.to_dict()
        case float():
            return shown_number(value)
    return value


def with_unit(text: str, unit: str | None) -> str:
    """A text with a unit behind it, if there is one."""
    return text if unit is None else f"{text} {unit}"


def shown_number(number: float) -> int | float:
    """A number as people write it: 17 rather than 17.0."""
    return int(number) if number.is_integer() and abs(number) < 2**53 else number


# The public numbers among which a bound of a column is chosen: round ones between its outer bounds, on its scale.

MOST_STEPS = 10_000
"""Steps of the finest candidates. Those of every tenth and of every hundredth of so many are rounder, and count more."""


def candidates_of(column: NumberColumn, steps: int = MOST_STEPS) -> tuple[float, ...]:
    """Numbers from low to high of a column, both among them, in rising order. They depend on the description alone.

    On the linear scale they are the multiples of 1, 2 or 5 times a power of ten. On the log scale their distances from low
    are evenly spaced in log(1 + distance), rounded to three digits. On the log10 scale they are evenly spaced in the
    logarithm, rounded to three digits.

    Parameters
    ----------
    column : describes the outer bounds, low and high, and the scale
    steps : the largest number of steps from low to high

    Returns
    -------
    tuple of float
        At least two, and at most `steps` + 2.

    Examples
    --------
    >>> candidates_of(NumberColumn("age", 0, 150))[:4]
    (0.0, 0.02, 0.04, 0.06)
    >>> candidates_of(NumberColumn("gain", 0, 1e7, scale="log"))[-3:]
    (9970000.0, 9980000.0, 10000000.0)
    """
    inner = _even_in_logarithm(column, steps) if column.is_log else _multiples(column, steps)
    return (column.low, *sorted({knot for knot in inner if column.low < knot < column.high}), column.high)


def weights_of(column: NumberColumn) -> tuple[int, ...]:
    """How many times each candidate of a column counts in a private choice: 1, and 10 or 100 for the rounder ones.

    The three grids then weigh about the same: values that many rows share are round, and others lie close to a fine
    candidate (benchmarks/quantiles.py).
    """
    round_ones, rounder = (set(candidates_of(column, MOST_STEPS // times)) for times in (10, 100))
    return tuple(100 if c in rounder else 10 if c in round_ones else 1 for c in candidates_of(column))


def _multiples(column: NumberColumn, steps: int) -> list[float]:
    low, high = Fraction(column.low), Fraction(column.high)
    least = (high - low) / steps
    power = Fraction(10) ** (math.floor(math.log10(least.numerator) - math.log10(least.denominator)) - 1)
    step = next(factor * power for factor in (1, 2, 5, 10, 20, 50, 100, 200) if factor * power >= least)
    return [float(k * step) for k in range(math.ceil(low / step), math.floor(high / step) + 1)]


def _even_in_logarithm(column: NumberColumn, steps: int) -> list[float]:
    if column.scale == "log10":
        return [float(f"{number:.2e}") for number in column.numbers_at(np.arange(1, steps) / steps).tolist()]
    length = math.log1p(column.high - column.low)
    return [column.low + float(f"{math.expm1(length * k / steps):.2e}") for k in range(1, steps)]
