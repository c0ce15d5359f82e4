"""The public description of a table: its columns, its target, and which columns interact.

A schema is written from public knowledge (a codebook, the law, common sense) by a person who has not looked at the
data, as a TOML file or in Python. The library learns no part of it from rows::

    target = { column = "income", negative = "<=50K", positive = ">50K" }
    interact = [["sex", "education"], ["age", "sex"]]
    [columns]
    age = { low = 17, high = 90, knots = [25, 35, 45, 55, 65] }
    sex = { categories = ["Female", "Male"] }
    education = { categories = ["School", "University"], other = true }
    capital-gain = { low = 0, high = 99999, scale = "log" }
    workclass = { categories = ["Private", "State-gov"], other = true, missing = true }
    race = { categories = ["White", "Black", "Other"], other = "Other" }

A column is either a number with bounds or a category with a list of values.

- `scale = "log"` is for numbers with a long right tail, in a unit in which 1 is small. They are encoded evenly in
  log(1 + value - low), so the first unit above `low` counts as much as each later doubling. It suits numbers that are mostly
  near `low`, not numbers on both sides of 0.
- `scale = "log10"` is for positive numbers that spread over powers of ten, such as incomes from 1,000 to 1,000,000. They are
  encoded evenly in the logarithm of the value itself, so each doubling counts the same, wherever it begins. `low` must be
  above 0.
- `knots` let the effect of a number bend: the effect is a straight line between neighbouring knots, instead of one line from
  low to high. On a logarithmic scale, the lines are straight in the logarithm. `knots = 6` means six knots, evenly spaced
  on the column's scale, and `knots = 0` one straight line. A column without `knots` has a straight line in linear
  models, and in additive models a number of knots that is chosen from public facts.
- `atoms = [7688, 15024]` names numbers that many rows share: legal limits, round amounts, codes such as 999. Each has an
  effect of its own beside the line or the curve, for rows with exactly this number. Numbers outside of the bounds count as
  the nearer bound. Atoms take no part in interactions.
- `unit = "USD"` names the unit of a number, for readers of tables, pictures and reports. It changes no number.
- `missing = true` says that cells of the column may be missing. `missing = [999, -9]` says so too, and that these codes
  stand for missing cells: for numbers a list of numbers, for categories a list of labels.
- Bounds may be dates, as in `{ low = 2010-01-01, high = 2030-12-31 }`: it then holds dates, which are numbers of days.
  `format` says how they are written, and `parts = ["year", "month"]` makes columns of their parts beside it.
- `ordered = true` says that categories are listed in their order, and that their ranks are the numbers of the column.
- `column = "seen"` names the column of the table that is read, where it has another name, so that several can read one.
  `prefix = 3` reads so many first characters of a code, and `part = "month"` the month of a date.
- `categories = { file = "icd10.txt" }` lists the categories in a file, and `boolean = true` is short for false and true.
- `released = { ... }` beside low and high says that these bounds are not public knowledge but came from rows, by a private
  release whose price it states. `confide bounds` writes it, and statements of models name it. `released_atoms` says the same
  of atoms, and a fit that finds them writes it.
- `other = true` gives all categories that are not listed one level of their own. `other = "Other"` counts them as that
  listed category. In both cases every row has exactly one level. This is public knowledge, and it makes the noise smaller.

Each list in `interact` names columns whose effects depend on each other: the products of their encoded columns enter the
model beside the columns themselves. Every knot and every product adds noise, so declare only those that are known to matter.
A table in place of a list says more:

    interact = [["sex", "education"], { columns = ["age", "hours"], knots = 1, scale = 0.3 }]

With `knots`, numbers enter the products as coarse effects with so many evenly spaced knots, whatever knots they have beside
the products. `scale` multiplies the products: they then take a smaller part of the norm of a row, and the model expects them
to be small (`confide.features.schema`). One number alone, as in { columns = ["age"], knots = 3 }, gets a curve beside
its straight line.

`random_features = { number = 1000, length_scale = 1.5, norm = 4 }` above [columns] makes every linear model with the schema
append random Fourier features of the encoded row to it, so that it also has a smooth function of all columns together
(`confide.features.fourier`).

A target of three or more classes lists all its labels:

    target = { column = "species", classes = ["adelie", "chinstrap", "gentoo"] }

A target of numbers has bounds, like a column. Numbers outside are clipped to them:

    target = { column = "price", low = 0, high = 20000, unit = "USD" }

Counts of rows that were observed for different times name the column of that time, and its bounds; a rate is learned then:

    target = { column = "visits", low = 0, high = 20, exposure = { column = "years", low = 0.1, high = 5 } }

If one person may have several rows, `person = "patient_id"` above [columns] names the column that identifies the person. It
is not a feature.

If each release is made of other persons, `cohort = { column = "admitted", value = "2026-12" }` above [columns] says which
rows it uses: those with this value. All others are left out, each for what it holds itself. A ledger that was made for the
cohorts of this column charges the release to these persons alone (confide/accounting/proofs/cohorts.md).

If a table of text is not written as programs write it, `table` says how:

    table = { decimal = ",", thousands = ".", encoding = "latin-1", separator = ";", header = 3 }

`header` is the number of the line that holds the names of the columns, or in a file without such a line the list of all
names. `sheet` names one sheet of a workbook. None of it changes what a model is.

If rows count differently, as in a survey, a weight names the column that says how much, and its public cap:

    weight = { column = "design_weight", high = 20, mean = 3.9 }

It is not a feature either. A weight above `high` counts as `high`. `mean` is the mean weight, if that is public knowledge.

Categories and labels are compared in canonical form (`confide.features.canonical_labels`): 1 in a schema is the same as the
1.0 and the "1" that different readers make of one file.
"""

from __future__ import annotations

import codecs
import math
from collections import Counter
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any, ClassVar

from confide.array_types import Array
from confide.errors import (
    InputError,
    Reader,
    SchemaError,
    checked_number,
    hold,
    is_list,
    is_mapping,
    is_text,
    is_whole,
    keep,
    optional,
    reader,
    wording,
)
from confide.features.canonical_labels import Label, canonical_label, refuse_blanks
from confide.features.cells import Exposure, numbers_of_rows
from confide.features.checks import UNIT, check_keys, column_title, finite_number, listed_by, made_of, plain_label
from confide.features.columns import (
    MOST_EVEN_KNOTS,
    RAW_NAME,
    Column,
    columns_of,
    described_fields,
    levels_in_file,
    shown_number,
    with_unit,
)
from confide.features.fourier import RandomFeatures
from confide.features.toml_form import read_toml, toml_text
from confide.known_words import suggestion

# Interactions: columns whose encoded columns are multiplied with each other, and how coarsely they enter the products.

_SHAPE = wording("shape of interactions")
SMALLEST_SCALE = 2.0**-20
MOST_PRODUCTS = 10**6
"""The largest number of products of all interactions together: names and weights of so many still take seconds and little
memory, and no table tells so many effects apart."""


@dataclass(frozen=True, slots=True)
class Interaction:
    """Columns whose effects depend on each other: all products of their encoded columns enter the model.

    Parameters
    ----------
    columns : names of two or more columns, all different; or the name of one number, which then has a curve beside its
        straight line. Where few rows lie, the ridge draws such an effect to the line, and not to 0
    knots : the number of evenly spaced knots with which numbers enter the products, on the scale of each column: 1 gives
        three columns a number, and 0 a straight line. None: numbers enter as they are encoded beside the products.
        Categories always enter with all their levels
    scale : the products are multiplied by this number above 0 and up to 1. A smaller scale takes a smaller part of the norm
        of a row, and so of the noise. It also shrinks the effect of the products more: it says beforehand that interactions
        are small beside the effects of single columns

    Raises
    ------
    SchemaError
        If a value contradicts this description.
    """

    columns: tuple[str, ...]
    knots: int | None = None
    scale: float = 1.0

    def __post_init__(self) -> None:
        name = reader("text that is not blank", lambda name: is_text(name) and name.strip() != "", refusal=SchemaError)
        read_names = listed_by(name, "a list of names", "the name of a column")
        names = read_names("interact: the columns of an interaction", self.columns)
        must = f"a whole number from 0 to {MOST_EVEN_KNOTS}; without it, numbers enter as encoded beside the products"
        knots = reader(must, lambda knots: is_whole(knots) and 0 <= knots <= MOST_EVEN_KNOTS, int, SchemaError)
        scale = partial(checked_number, low=SMALLEST_SCALE, high=1.0, shown="2^-20 to 1", refusal=SchemaError)
        hold(self, columns=names)
        keep(self, f"interact: {' and '.join(names)}: ", knots=optional(knots), scale=scale)
        if len(set(names)) != len(names) or len(names) < (1 if self.knots else 2):
            raise SchemaError("interact: a list has two or more different names of columns, or one of a number, with knots.")

    @property
    def title(self) -> str:
        """The names of the columns with colons between."""
        return ":".join(self.columns)

    @property
    def is_curve(self) -> bool:
        """Whether it is the curve of one number, beside its straight line."""
        return len(self.columns) == 1

    def described(self) -> list[str] | dict[str, Any]:
        """The form that a schema in JSON or TOML has: a list of names if nothing else is said, otherwise a table."""
        described = described_fields(self, "columns", "knots", "scale")
        return described if len(described) > 1 else list(self.columns)

    def __str__(self) -> str:
        knots = f", {self.knots} even knot{'s'[: self.knots != 1]}" if self.knots else ", straight lines"
        knots = "" if self.knots is None else knots
        scale = "" if self.scale == 1.0 else f", scale {shown_number(self.scale)}"
        kind = "curve beside the line" if self.is_curve else "interact"
        return f"{' x '.join(self.columns)}  {kind}{knots}{scale}"


def interactions_of(described: Any, columns: Mapping[str, Column]) -> tuple[Interaction, ...]:
    """The interactions of a schema, checked.

    Parameters
    ----------
    described : for each interaction a list of names of columns, a mapping with the fields of `Interaction`, or an
        `Interaction`
    columns : the columns of the schema by their names

    Raises
    ------
    SchemaError
        If an interaction names an unknown column, has fewer than two columns or names one twice, or is given twice; or if
        a column cannot have so many knots.
    """
    if not is_list(described):
        raise SchemaError(_SHAPE)
    interactions: list[Interaction] = []
    for entry in described:
        interaction = made_of(Interaction, "interact", {"columns": tuple(entry)} if is_list(entry) else entry, _SHAPE)
        if interaction is None:
            raise SchemaError(_SHAPE)
        for name in interaction.columns:
            if name not in columns:
                meant = suggestion(name, tuple(columns))
                raise SchemaError(f"interact: {column_title(name)}{meant} is no column; describe it below [columns].")
            column = columns[name]
            if interaction.is_curve and not (column.is_number and not column.knots):
                raise SchemaError(wording("curve beside a line of no number", column=column_title(name)))
            if interaction.knots is not None and column.is_number:
                replace(column, knots=interaction.knots)  # refuses knots that double precision cannot tell apart
        if any(set(interaction.columns) == set(earlier.columns) for earlier in interactions):
            names = " and ".join(interaction.columns)
            raise SchemaError(f"interact: {names} are listed together twice; keep one of the lists.")
        interactions.append(interaction)
        if (count := n_products(interactions, columns)) > MOST_PRODUCTS:
            shown = f"{count:,}" if count < 10**15 else "more than 10^15"
            names = " and ".join(interaction.columns)
            raise SchemaError(wording("too many products", names=names, shown=shown, most=MOST_PRODUCTS))
    return tuple(interactions)


def n_products(interactions: Iterable[Interaction], columns: Mapping[str, Column]) -> int:
    """The number of encoded columns that interactions add, found without making any of them."""
    return sum(math.prod(columns[name].width(one.knots) for name in one.columns) for one in interactions)


# The column that a model predicts: class labels, or numbers between public bounds.


@dataclass(frozen=True, slots=True)
class Target:
    """The column to be predicted, and what it holds: two labels, three or more classes, or numbers.

    Parameters
    ----------
    column : name of the column in the table
    negative, positive : the two labels: text, numbers or booleans, different in canonical form
    classes : instead of these two, three or more labels of the same kinds
    low, high : instead of labels, the public bounds of numbers, low < high; a number outside is clipped to them
    unit : the unit of the numbers, such as "USD", shown wherever units are shown; it changes no number and is not compared
    exposure : of counts, a mapping with the keys column, low and high, or an `Exposure`: the time, the number of persons or
        the area that each was counted in

    Raises
    ------
    SchemaError
        If a value contradicts this description.
    """

    missing_codes: ClassVar[tuple[Label, ...]] = ()
    column: str
    negative: Label | None = None
    positive: Label | None = None
    classes: tuple[Label, ...] | None = None
    low: float | None = None
    high: float | None = None
    unit: str | None = field(default=None, compare=False)
    exposure: Exposure | None = None

    def __post_init__(self) -> None:
        column_title(self.column, "the target's column")
        if self.exposure is not None:
            made = made_of(Exposure, "exposure", self.exposure, _EXPOSURE)
            hold(self, exposure=made)
            column_title(getattr(made, "column", None), "exposure: column")
            if self.low is None or not finite_number("target: low", self.low) >= 0.0:
                raise SchemaError("target: exposure is for counts, which have low and high, and low is 0 or more.")
        keep(self, "target: ", unit=UNIT)
        has_label = self.negative is not None or self.positive is not None
        if self.low is None and self.high is None:
            if self.unit is not None:
                raise SchemaError("target: unit is for numbers, with low and high; labels have none. Leave it out.")
            if self.classes is None:
                self._check_two_labels()
            elif has_label:
                raise SchemaError("target: give negative and positive, or classes, not both.")
            else:
                self._check_classes()
            return
        if has_label or self.classes is not None:
            raise SchemaError(wording("labels and bounds of a target"))
        if self.low is None or self.high is None:
            missing = "low" if self.low is None else "high"
            raise SchemaError(f'target: "{missing}" is missing; numbers need both bounds, low and high.')
        keep(self, "target: ", low=finite_number, high=finite_number)
        if not self.low < self.high:
            raise SchemaError("target: low must be below high.")

    def _check_two_labels(self) -> None:
        if self.negative is None or self.positive is None:
            missing = "negative" if self.negative is None else "positive"
            raise SchemaError(wording("part of a target missing", missing=missing))
        keep(self, "target: ", negative=plain_label, positive=plain_label)
        if canonical_label(self.negative) == canonical_label(self.positive):
            raise SchemaError("target: negative and positive are the same label; give two different ones.")
        if _kind_of(self.negative) is not _kind_of(self.positive):
            raise SchemaError("target: negative and positive must have one type: two texts, two numbers or two booleans.")

    def _check_classes(self) -> None:
        keep(self, "target: ", classes=listed_by(plain_label, "a list of labels", "each of classes"))
        if len(self.labels) < 3:
            raise SchemaError("target: classes must list three or more labels; for two, give negative and positive instead.")
        if len({canonical_label(label) for label in self.labels}) < len(self.labels):
            raise SchemaError("target: classes lists a label twice; keep one of them.")
        if len(set(map(_kind_of, self.labels))) > 1:
            raise SchemaError("target: classes must have one type: all text, or all numbers.")

    @property
    def bounds(self) -> tuple[float, float] | None:
        """The bounds of a column of numbers; None for labels."""
        return None if self.low is None or self.high is None else (self.low, self.high)

    @property
    def labels(self) -> tuple[Label, ...]:
        """All labels: the negative one before the positive one, or the classes in the order in which they were given.

        A column of numbers has none.
        """
        of_two = (self.negative, self.positive) if self.bounds is None else ()
        return of_two if self.classes is None else self.classes  # type: ignore[return-value]  # neither is None without classes

    def __str__(self) -> str:
        if self.bounds is not None:
            low, high = map(shown_number, self.bounds)
            per = "" if self.exposure is None else f" per unit of {self.exposure.column}"
            return f"{self.column}: number from {low} to {with_unit(str(high), self.unit)}{per}"
        return f"{self.column}: {' or '.join(map(str, self.labels))}"

    def to_dict(self) -> dict[str, Any]:
        """The target as in a TOML file: JSON-able."""
        if self.bounds is not None:
            exposure = {} if self.exposure is None else {"exposure": asdict(self.exposure)}
            return described_fields(self, "column", "low", "high", "unit") | exposure
        if self.classes is not None:
            return {"column": self.column, "classes": list(self.classes)}
        return {"column": self.column, "negative": self.negative, "positive": self.positive}


def _kind_of(label: object) -> type:
    """Text, boolean, or `object` for every number: 0 and 1.0 are of one kind."""
    return type(label) if type(label) in (str, bool) else object


# The column that says how much each row counts, such as the design weights of a survey.

_LARGEST = 1e9


@dataclass(frozen=True, slots=True)
class RowWeight:
    """The column of weights, and what is publicly known about it. It is not a feature.

    Parameters
    ----------
    column : name of the column in the table
    high : the cap, from 1e-9 to 1e9; a weight above it counts as the cap, and the noise grows with it
    mean : the mean weight, if it is public knowledge, above 0 and at most `high`; forecasts and intervals use it, and no
        noise depends on it. Of weights that are inverse chances of being in the sample it is the size of the population over
        the number of rows

    Raises
    ------
    SchemaError
        If a value contradicts this description.
    """

    low: ClassVar[float] = 0.0
    column: str
    high: float
    mean: float | None = None

    def __post_init__(self) -> None:
        column_title(self.column, "the weight's column")
        keep(self, "weight: ", high=finite_number, mean=optional(finite_number))
        if not 1.0 / _LARGEST <= self.high <= _LARGEST:
            raise SchemaError("weight: high must be a positive number between 1e-9 and 1e9, chosen without the rows.")
        if self.mean is not None and not 0.0 < self.mean <= self.high:
            raise SchemaError("weight: mean must be above 0 and at most high.")

    def read(self, cells: Any, *, refuse: bool) -> Array:
        """The weights (n,) of some rows, from 0 to the cap.

        Parameters
        ----------
        cells : the cells of the column
        refuse : False lets every cell pass; one that is no weight counts 0

        Raises
        ------
        InputError
            If a cell is missing, is no finite number or is negative.
        """
        must = "every row needs a weight, a finite number that is not negative."
        return numbers_of_rows(f'column "{self.column}"', cells, 0.0, self.high, must, refuse)

    def refusal_of_zeros(self) -> InputError:
        """The refusal of rows that all have the weight 0."""
        return InputError(f'column "{self.column}": the weights of all rows are 0; some row must count.')

    def __str__(self) -> str:
        mean = "" if self.mean is None else f", mean {shown_number(self.mean)}"
        return f"{self.column}: at most {shown_number(self.high)}{mean}"

    def to_dict(self) -> dict[str, Any]:
        """The weight as in a TOML file: JSON-able."""
        return described_fields(self, "column", "high", "mean")


# How a table is written that is not written as programs write it.


def _is_header(value: object) -> bool:
    """The number of a line, or the names of all columns."""
    names = list(value) if is_list(value) else []
    return (is_whole(value) and 1 <= value <= 1000) or (all(map(is_text, names)) and 0 < len(names) == len(set(names)))


def _is_encoding(value: object) -> bool:
    with suppress(LookupError):
        return is_text(value) and "".encode(value) is not None  # what codes bytes alone is refused too
    return False


_GROUPING = (",", ".", "'", "\u2019", " ", "\u00a0", "\u202f")
_WRITTEN: dict[str, Reader] = {
    key: reader(must, holds, made, SchemaError)
    for key, must, holds, made in (
        ("decimal", '"," or "."', lambda value: value in (",", "."), None),
        ("thousands", "a point, a comma, an apostrophe or a blank", lambda value: value in _GROUPING, None),
        ("encoding", 'the name of an encoding, such as "latin-1"', _is_encoding, lambda value: codecs.lookup(value).name),
        ("separator", 'one character, such as ";"', lambda value: is_text(value) and len(value.encode()) == 1, None),
        ("header", "the number of the line of names, or a list of all names", _is_header, None),
        ("sheet", "the name of a sheet", is_text, None),
    )
}
"""What may be said of how a table is written, and what reads it."""


def _written(described: object) -> dict[str, object]:
    """How a table is written, checked."""
    if not is_mapping(described):
        raise SchemaError('table must be a table such as { decimal = ",", thousands = ".", header = 3 }.')
    check_keys("table", described, tuple(_WRITTEN))
    written = {key: _WRITTEN[key](f"table: {key}", value) for key, value in described.items()}
    decimal = written.get("decimal", ".")
    if decimal in (written.get("thousands"), written.get("separator")):
        raise SchemaError("table: the sign before decimals cannot stand between thousands or cells too; correct one.")
    return {key: list(value) if is_list(value) else value for key, value in written.items()}


_COHORT = ("column", "value")


def _cohort(described: Any) -> tuple[str, str]:
    """The column of cohorts, and the canonical form of the one whose rows are used, checked."""
    named = dict(zip(_COHORT, described, strict=False)) if is_list(described) else described
    if not is_mapping(named) or set(named) != set(_COHORT):
        raise SchemaError('cohort must be a table such as { column = "admitted", value = "2026-12" }.')
    column_title(named["column"], "the cohort's column")
    # As they are, 1 and True would be equal, and are two cohorts.
    return named["column"], str(canonical_label(plain_label("cohort: value", named["value"])))


_EXPOSURE = 'exposure must be a table such as { column = "years", low = 0.1, high = 5 }.'
_TARGET = wording("shape of a target")
_WEIGHT = 'weight must be a table such as { column = "design_weight", high = 20 }.'
_FEATURES = ("random_features", "features_not_found")
_RANDOM_FEATURES = "random_features must be a table, as in random_features = { number = 500, length_scale = 1.5 }."


@dataclass(frozen=True, slots=True, init=False, repr=False)
class Schema:
    """The public description of a table: its columns, in the order in which they are encoded, and its target.

    Parameters
    ----------
    columns : a mapping from the name of a column to its description, as in a TOML file, or column objects
    target : a mapping with the keys column, and negative and positive, or classes, or low and high; or a `Target`; optional
    person : name of the column that identifies the person a row belongs to, if one person may have several rows; it is not a
        feature
    interact : lists of two or more names of columns whose encoded columns are also multiplied with each other; or mappings
        with the keys columns, knots and scale, or `Interaction` objects; optional. One number alone, with knots, gets a
        curve beside its straight line
    random_features : a mapping with the keys number, length_scale, norm and seed, or a `RandomFeatures`: models append
        random Fourier features of the encoded row to it; optional
    features_not_found : random features likewise, which a fit left out because columns were not found to act together;
        fits write it
    weight : a mapping with the keys column, high and mean, or a `RowWeight`: the column that says how much each row counts
        in a fit, its cap, and its mean if that is public; optional
    cohort : a mapping with the keys column and value: only rows with this value in this column are used, and nobody has rows
        with two values there; it is not a feature, and goes with no `person`; optional. Kept as a pair, of which the value
        is in the form by which labels are compared
    table : a mapping with the keys decimal, thousands, encoding, separator, header and sheet: how a table of text is
        written, or which sheet of a workbook it is; optional. It is not compared

    Raises
    ------
    SchemaError
        If the schema contradicts itself. The message names the column and says what to do.

    Examples
    --------
    >>> sex = {"categories": ["Female", "Male"]}
    >>> print(Schema(columns={"age": {"low": 17, "high": 90}, "sex": sex}))
    Schema of 2 columns
      age  number from 17 to 90
      sex  2 categories
    """

    columns: tuple[Column, ...]
    target: Target | None
    person: str | None
    interact: tuple[Interaction, ...]
    random_features: RandomFeatures | None
    features_not_found: RandomFeatures | None
    weight: RowWeight | None
    cohort: tuple[str, str] | None
    table: Mapping[str, object] = field(compare=False)
    beside: tuple[RowWeight | Exposure, ...] = field(init=False, compare=False)
    """The weight and the exposure, if it names them: columns of numbers beside those of the model and the target."""
    choosing: str | None = field(init=False, compare=False)
    """The column that decides which rows count: that of persons, or that of cohorts."""
    roles: Mapping[str, str | None] = field(init=False, compare=False)
    """What columns beside those of a model are for, and their names; None for a role that none has."""

    def __init__(
        self,
        columns: Mapping[str, Mapping[str, Any]] | Iterable[Column],
        target: Target | Mapping[str, Any] | None = None,
        person: str | None = None,
        interact: Iterable[Interaction | Iterable[str] | Mapping[str, Any]] = (),
        random_features: RandomFeatures | Mapping[str, Any] | None = None,
        weight: RowWeight | Mapping[str, Any] | None = None,
        cohort: Mapping[str, Any] | tuple[str, Label] | None = None,
        table: Mapping[str, object] = MappingProxyType({}),
        features_not_found: RandomFeatures | Mapping[str, Any] | None = None,
    ) -> None:
        hold(
            self,
            columns=columns_of(columns),
            target=made_of(Target, "target", target, _TARGET),
            person=person,
            weight=made_of(RowWeight, "weight", weight, _WEIGHT),
            random_features=made_of(RandomFeatures, "random_features", random_features, _RANDOM_FEATURES),
            features_not_found=made_of(RandomFeatures, "features_not_found", features_not_found, _RANDOM_FEATURES),
            cohort=None if cohort is None else _cohort(cohort),
            table=_written(table),
        )
        if self.random_features and self.features_not_found:
            raise SchemaError("features_not_found: a fit that left random features out has none; leave out random_features.")
        beside = tuple(filter(None, (self.weight, self.target and self.target.exposure)))
        hold(self, choosing=self.cohort[0] if self.cohort else self.person, beside=beside)
        self._check_names()
        hold(self, interact=interactions_of(interact, self.columns_by_name))

    def _check_names(self) -> None:
        """Columns, target, person, cohort and weight are different columns of the table."""
        roles = {
            "is the target": None if self.target is None else self.target.column,
            "is the exposure": None if self.target is None or not self.target.exposure else self.target.exposure.column,
            "identifies the person": self.person,
            "says which rows are used": self.cohort and self.cohort[0],
            "is the weight of rows": None if self.weight is None else self.weight.column,
        }
        hold(self, roles=roles)
        if not self.columns:
            raise SchemaError("a schema needs at least one column.")
        if self.person is not None and self.cohort is not None:
            raise SchemaError("cohort: a person may have rows in several cohorts; leave out one of person and cohort.")
        if repeated := [name for name, count in Counter(self.column_names).items() if count > 1]:
            raise SchemaError(f"{column_title(repeated[0])}: described twice; keep one description.")
        names = {*self.column_names, *self.raw_names}
        taken: dict[str, str] = {}
        for role, own in roles.items():
            if own is None:
                continue
            where = column_title(own, "person, the name of a column,")
            if own in names:
                raise SchemaError(f"{where}: {role}, so it must not be among the columns; remove it there.")
            if own in taken:
                raise SchemaError(f"{where}: {role}, so it cannot be {taken[own]}; correct one of the two.")
            taken[own] = role.split(maxsplit=1)[1]

    @classmethod
    def from_dict(cls, mapping: Mapping[str, Any]) -> Schema:
        """Read what `to_dict` gives, which has the form of a TOML file.

        Parameters
        ----------
        mapping : {"target": {...}, "person": name, "weight": {...}, "interact": [[name, name], ...], "columns": {...}}; only
            the columns, {name: {...}, ...}, are required, and their order is kept. An interaction may also be a mapping,
            {"columns": [name, name], "knots": 1, "scale": 0.3}

        Returns
        -------
        Schema
            What the mapping says.

        Raises
        ------
        SchemaError
            If a key is unknown or the schema contradicts itself.
        """
        if not is_mapping(mapping):
            raise SchemaError(wording("no schema"))
        known = ("columns", "target", "person", "cohort", "weight", "interact", "table", *_FEATURES)
        check_keys("the schema", mapping, known, " (columns are described below [columns])")
        if not is_mapping(mapping.get("columns")):
            raise SchemaError('the schema has no table "columns"; describe each column there, by its name.')
        others = {key: mapping[key] for key in known[1:] if key in mapping}
        return cls(mapping["columns"], **others)

    @classmethod
    def from_toml(cls, path: str | Path) -> Schema:
        """Read a schema from a TOML file.

        Parameters
        ----------
        path : path of the file

        Returns
        -------
        Schema
            What the file says.

        Raises
        ------
        FileError
            If the file is missing, cannot be read, or is not TOML.
        SchemaError
            If the schema contradicts itself, or has blanks that are not filled in. The message begins with the name of the
            file.
        """
        mapping = read_toml(path)
        try:
            refuse_blanks(mapping)
            for name, column in mapping["columns"].items() if is_mapping(mapping.get("columns")) else ():
                if is_mapping(column) and is_mapping(column.get("categories")):
                    listed = levels_in_file(column_title(name), column["categories"], Path(path).parent)
                    mapping["columns"][name] = {**column, "categories": listed}
            return cls.from_dict(mapping)
        except SchemaError as error:
            raise SchemaError(f"{path}: {error}") from None

    def to_dict(self) -> dict[str, Any]:
        """A JSON-able form, read by `from_dict`. The order of the columns matters, so do not sort the keys."""
        described: dict[str, Any] = {
            "target": self.target and self.target.to_dict(),
            "person": self.person,
            "cohort": self.cohort and dict(zip(_COHORT, self.cohort, strict=True)),
            "weight": self.weight and self.weight.to_dict(),
            "interact": [interaction.described() for interaction in self.interact] or None,
            "random_features": self.random_features and self.random_features.to_dict(),
            "features_not_found": self.features_not_found and self.features_not_found.to_dict(),
            "table": self.table or None,
            "columns": {column.name: column.to_dict() for column in self.columns},
        }
        return {key: value for key, value in described.items() if value is not None}

    def to_toml(self) -> str:
        """The text of a TOML file, read by `from_toml`."""
        return toml_text(self.to_dict())

    def without_curves(self) -> Schema:
        """The schema without knots, atoms, interactions and random features: what decides how a table is read."""
        bare: dict[str, Any] = {"knots": (), "atoms": (), "released_atoms": None}
        columns = tuple(replace(column, **bare) if column.is_number else column for column in self.columns)
        return replace(self, columns=columns, interact=(), random_features=None, features_not_found=None)

    @property
    def plain(self) -> Schema:
        """The schema of a table that holds numbers and levels themselves, under the names of the columns."""
        return replace(self, columns=tuple(column.plain for column in self.columns))

    @property
    def before_fit(self) -> Schema:
        """The schema without what the fit found whose schema this is: without atoms, and with random features left out."""
        columns = tuple(column.before_fit if column.is_number else column for column in self.columns)
        features = self.random_features or self.features_not_found
        return replace(self, columns=columns, random_features=features, features_not_found=None)

    @property
    def with_features_always(self) -> Schema:
        """The schema of a fit that cannot find whether columns act together."""
        features = self.random_features
        if features is None or not features.if_found:
            return self
        return replace(self, random_features=replace(features, if_found=False))

    @property
    def without_features(self) -> Schema:
        """The schema of a fit that left its random features out."""
        return replace(self, random_features=None, features_not_found=self.random_features)

    @property
    def for_another_fit(self) -> Schema:
        """The schema as another fit takes it: atoms that an earlier one found came from a release."""
        if self.before_fit == self:
            return self
        columns = (column.for_another_fit if column.is_number else column for column in self.columns)
        return replace(self, columns=tuple(columns), features_not_found=None)

    @property
    def column_names(self) -> tuple[str, ...]:
        """Names of the columns in order, without the target, the person and the weight."""
        return tuple(column.name for column in self.columns)

    @property
    def raw_names(self) -> tuple[str, ...]:
        """Names of the columns of the table that are read for them, each once, in order."""
        return tuple(dict.fromkeys(map(RAW_NAME, self.columns)))

    @property
    def has_released(self) -> bool:
        """Whether facts about columns came from a private release."""
        return any(column.releases for column in self.columns) or self.features_not_found is not None

    @property
    def names_of_codes(self) -> tuple[str, ...]:
        """The columns in order, then once more those with atoms: what is kept in memory of a row."""
        return (*self.column_names, *(column.name for column in self.columns if column.is_number and column.atoms))

    @property
    def columns_by_name(self) -> dict[str, Column]:
        """The columns by their names, in order."""
        return {column.name: column for column in self.columns}

    def __repr__(self) -> str:
        target = "" if self.target is None else f", target={self.target.column!r}"
        person = "" if self.person is None else f", person={self.person!r}"
        person += "" if self.weight is None else f", weight={self.weight.column!r}"
        interact = f", {len(self.interact)} interaction{'s'[: len(self.interact) != 1]}" if self.interact else ""
        features = "" if self.random_features is None else f", {self.random_features.number} random features"
        return f"Schema({len(self.columns)} column{'s'[: len(self.columns) != 1]}{target}{person}{interact}{features})"

    def __str__(self) -> str:
        target = self.target and f", target {self.target}"
        person = self.person and f", person {self.person}"
        width = max(len(name) for name in self.column_names)
        weight = self.weight and f", weight {self.weight}"
        others = "".join(name or "" for name in (target, person, weight))
        lines = [f"Schema of {len(self.columns)} column{'s'[: len(self.columns) != 1]}{others}"]
        lines += [f"  {column.name:{width}}  {column}" for column in self.columns]
        none = self.features_not_found and "no interactions: columns were not found to act together"
        together = [*self.interact, *filter(None, (self.random_features, none))]
        return "\n".join(lines + [f"  {line}" for line in together])


def schema_with(columns: tuple[Column, ...], schema: Schema | None) -> Schema:
    """The schema with these columns in place of those of the same names, and after its others where it has none."""
    if schema is None:
        return Schema(columns)
    new = {column.name: column for column in columns}
    return replace(schema, columns=(*(new.pop(column.name, column) for column in schema.columns), *new.values()))
