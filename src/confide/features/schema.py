"""What is publicly known of the columns of a table, and of its labels.

A schema is written from public knowledge (a codebook, the law, common sense) by a person who has not looked at the
data, as a TOML file or in Python; the library learns none of it from rows::

    target = { column = "income", negative = "<=50K", positive = ">50K" }
    interact = [["sex", "education"], ["age", "sex"]]
    [columns]
    age = { low = 17, high = 90, knots = [25, 35, 45, 55, 65] }
    sex = { categories = ["Female", "Male"] }
    education = { categories = ["School", "University"], other = true }
    capital-gain = { low = 0, high = 99999, scale = "log" }
    workclass = { categories = ["Private", "State-gov"], other = true, missing = true }
    race = { categories = ["White", "Black", "Other"], other = "Other" }

A column is a number with bounds or a category with its values. `scale = "log"` is for numbers with a long right tail,
in units where 1 is small: they are encoded evenly in log(1 + value - low), so that the first unit above `low` counts as
much as each later doubling. `knots` let the effect of a number bend: it is a straight line between neighbouring knots
(on the log scale, if that is asked for), not from low to high. `missing = true` says that the column may have gaps.
Categories which are not listed share a level of their own with `other = true`, and count as one of the listed ones with
its name. Either way every row has exactly one level, which is public knowledge that makes the noise smaller.

Each list of `interact` names columns whose effects depend on each other: beside their own columns, the products of
their encoded columns enter the model. Every knot and every product brings noise with it, so declare those that are known
to matter.

A target of three classes or more is named by all its labels:

    target = { column = "species", classes = ["adelie", "chinstrap", "gentoo"] }

Where one person may have several rows, `person = "patient_id"` beside the target names the column that tells who it is.
It is not a feature.

Categories and labels are compared in a canonical form (`canonical_label`), so that 1 in a schema is also the 1.0 and
the "1" that different readers of one file produce.
"""

from __future__ import annotations

import dataclasses
import difflib
import json
import math
import numbers
import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from confide.errors import FileError, SchemaError
from confide.types import Array

Label: TypeAlias = str | int | float | bool
"""A category or a label as a schema holds it."""

SCALES = ("linear", "log")

_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
_LONGEST_NUMBER = 400  # characters: no double needs more, and Python does not read integers of thousands of digits


def canonical_label(value: object) -> str | None:
    """The text by which categories and labels are compared.

    Text that is a decimal number counts as that number, whole numbers have no point, and blanks around text do not
    count: 1, 1.0, "1", " 01 " and ``np.int8(1)`` all give "1"; True, "True" and "TRUE" give "true".

    Parameters
    ----------
    value : one cell of a column, a category or a label

    Returns
    -------
    str or None
        None for a missing value: None, NaN, NaT, ``pandas.NA`` or blank text.

    Raises
    ------
    TypeError
        For anything but text, real numbers and booleans. The message does not hold the value.
    """
    if isinstance(value, str):
        return _canonical_text(value.strip())
    if isinstance(value, (bool, np.bool_)):
        return "true" if value else "false"
    if isinstance(value, numbers.Integral):
        return str(int(value))
    if isinstance(value, np.floating):
        value = float(str(value))  # the shortest text: np.float32(0.1) is 0.1, as it is printed
    if isinstance(value, (numbers.Real, Decimal)):
        return None if math.isnan(value) else _canonical_text(repr(float(value)))
    # pandas.NA and NaT are known by name: pandas is not imported here, and NA answers no comparison with a boolean.
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return None
    raise TypeError("a label is text, a number or a boolean.")


def _canonical_text(text: str) -> str | None:
    if not text:
        return None
    if text.lower() in ("true", "false"):
        return text.lower()
    if len(text) > _LONGEST_NUMBER or not _NUMBER.fullmatch(text):
        return text
    if text.lstrip("+-").isdigit():
        return str(int(text))
    number = float(text)
    if math.isinf(number):
        return text
    return str(int(number)) if number.is_integer() else repr(number)


@dataclass(frozen=True, slots=True)
class NumberColumn:
    """A number between public bounds. Values outside them are clipped.

    Parameters
    ----------
    name : name of the column in the table
    low, high : public bounds in the column's own unit, finite, low < high
    scale : "linear", or "log" for a long right tail in units where 1 is small: x is then encoded by
        log(1 + x - low) / log(1 + high - low), stretched from [0, 1] to [-1, 1]
    missing : the column may have gaps; they get an indicator column of their own
    knots : numbers between low and high, rising, at which the effect of the column may bend; none for a straight line

    Raises
    ------
    SchemaError
        Where a value contradicts this description. The message names the column.
    """

    name: str
    low: float
    high: float
    scale: str = "linear"
    missing: bool = False
    knots: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        where = _named(self.name)
        object.__setattr__(self, "low", _finite_bound(where, "low", self.low))
        object.__setattr__(self, "high", _finite_bound(where, "high", self.high))
        if not self.low < self.high:
            raise SchemaError(
                f"{where}: low must be below high; low is {shown_number(self.low)} and high is {shown_number(self.high)}."
            )
        if math.isinf(self.high - self.low):
            raise SchemaError(f"{where}: low and high are too far apart; their distance must be a finite number.")
        if self.scale not in SCALES:
            raise SchemaError(f'{where}: scale must be "linear" or "log".')
        _check_flag(where, "missing", self.missing)
        if isinstance(self.knots, (str, Mapping)) or not isinstance(self.knots, Iterable):
            raise SchemaError(f"{where}: knots must be a list of numbers.")
        object.__setattr__(self, "knots", tuple(_finite_bound(where, "each of the knots", knot) for knot in self.knots))
        bends = np.array([self.low, *self.knots, self.high])
        if not (bends[:-1] < bends[1:]).all():
            raise SchemaError(f"{where}: knots must rise, and lie between low and high without being one of them.")
        if not (np.diff(self.stretched(bends)) > 0.0).all():
            raise SchemaError(f"{where}: some knots are too close to each other, or to low or high, to be told apart.")

    def stretched(self, values: Array) -> Array:
        """Values clipped to [low, high] and brought to [-1, 1] by the scale; NaN stays NaN. The argument is overwritten."""
        # Rounding is monotone, so each step keeps its range: [0, width], then [0, 1] and [-1, 1].
        width = self.high - self.low
        np.clip(values, self.low, self.high, out=values)
        values -= self.low
        if self.scale == "log":
            np.log1p(values, out=values)
            width = math.log1p(width)
        values /= width
        np.minimum(values, 1.0, out=values)  # two versions of log1p need not agree in the last digit
        values *= 2.0
        values -= 1.0
        return values

    @property
    def bends(self) -> tuple[float, ...]:
        """Low, the knots and high where there are knots, otherwise nothing."""
        return (self.low, *self.knots, self.high) if self.knots else ()

    def to_dict(self) -> dict[str, Any]:
        """The column without its name, as in a TOML file: JSON-able, and free of what is left at its default."""
        described: dict[str, Any] = {"low": shown_number(self.low), "high": shown_number(self.high)}
        if self.scale != "linear":
            described["scale"] = self.scale
        if self.knots:
            described["knots"] = [shown_number(knot) for knot in self.knots]
        return described | ({"missing": True} if self.missing else {})

    def __str__(self) -> str:
        log = ", log scale" if self.scale == "log" else ""
        knots = f", knots at {', '.join(str(shown_number(knot)) for knot in self.knots)}" if self.knots else ""
        gaps = ", may be missing" if self.missing else ""
        return f"number from {shown_number(self.low)} to {shown_number(self.high)}{log}{knots}{gaps}"


@dataclass(frozen=True, slots=True)
class CategoryColumn:
    """One of a public list of categories.

    Parameters
    ----------
    name : name of the column in the table
    categories : text, numbers or booleans, all different in canonical form; their order is that of the encoded columns
    other : True: categories that are not listed share a level of their own; or the listed category that they count as,
        kept in canonical form. So do missing ones, if `missing` is False. False: they count as none of the levels
    missing : the column may have gaps; they get a level of their own

    Raises
    ------
    SchemaError
        Where a value contradicts this description. The message names the column.
    """

    name: str
    categories: tuple[Label, ...]
    other: bool | str = False
    missing: bool = False

    def __post_init__(self) -> None:
        where = _named(self.name)
        if isinstance(self.categories, (str, Mapping)) or not isinstance(self.categories, Iterable):
            raise SchemaError(f"{where}: categories must be a list of text, numbers or booleans.")
        object.__setattr__(self, "categories", tuple(_label(where, "a category", value) for value in self.categories))
        if not self.categories:
            raise SchemaError(f"{where}: categories is empty; list at least one.")
        earlier: dict[str | None, Label] = {}
        for category in self.categories:
            label = canonical_label(category)
            if label in earlier:
                raise SchemaError(
                    f"{where}: the categories {earlier[label]!r} and {category!r} are the same; list one of them."
                )
            earlier[label] = category
        if not isinstance(self.other, bool):
            object.__setattr__(self, "other", _listed(where, self.other, earlier))
        _check_flag(where, "missing", self.missing)

    def to_dict(self) -> dict[str, Any]:
        """The column without its name, as in a TOML file: JSON-able, and free of what is left at its default."""
        flags = {key: value for key, value in (("other", self.other), ("missing", self.missing)) if value}
        return {"categories": list(self.categories)} | flags

    def __str__(self) -> str:
        count = f"{len(self.categories)} categor{'y' if len(self.categories) == 1 else 'ies'}"
        others = ", others allowed" if self.other is True else f", others count as {self.other}" if self.other else ""
        return f"{count}{others}{', may be missing' if self.missing else ''}"


Column: TypeAlias = NumberColumn | CategoryColumn


@dataclass(frozen=True, slots=True)
class Target:
    """The column to be predicted, and its labels: `negative` and `positive`, or `classes`.

    Parameters
    ----------
    column : name of the column in the table
    negative, positive : the two labels, text, numbers or booleans, different in canonical form
    classes : three labels or more, of the same kinds, in place of those two

    Raises
    ------
    SchemaError
        Where a value contradicts this description.
    """

    column: str
    negative: Label | None = None
    positive: Label | None = None
    classes: tuple[Label, ...] | None = None

    def __post_init__(self) -> None:
        _named(self.column, "the target's column")
        if self.classes is not None:
            self._check_classes()
            return
        if self.negative is None or self.positive is None:
            missing = "negative" if self.negative is None else "positive"
            raise SchemaError(f'target: "{missing}" is missing; name both labels, or three and more as classes.')
        for key in ("negative", "positive"):
            object.__setattr__(self, key, _label("target", key, getattr(self, key)))
        if canonical_label(self.negative) == canonical_label(self.positive):
            raise SchemaError("target: negative and positive are the same label; give two different ones.")
        if _kind(self.negative) is not _kind(self.positive):
            raise SchemaError("target: negative and positive must be of one kind: two texts, two numbers or two booleans.")

    def _check_classes(self) -> None:
        if self.negative is not None or self.positive is not None:
            raise SchemaError("target: give negative and positive, or classes, not both.")
        if isinstance(self.classes, (str, bytes)) or not isinstance(self.classes, Iterable):
            raise SchemaError("target: classes must be a list of labels.")
        classes = tuple(_label("target", "each of classes", label) for label in self.classes)
        object.__setattr__(self, "classes", classes)
        if len(classes) < 3:
            raise SchemaError("target: classes needs three labels or more; of two, name one negative and one positive.")
        if len({canonical_label(label) for label in classes}) < len(classes):
            raise SchemaError("target: classes names a label twice; keep one of them.")
        if len({_kind(label) for label in classes}) > 1:
            raise SchemaError("target: classes must be of one kind: all texts, or all numbers.")

    @property
    def labels(self) -> tuple[Label, ...]:
        """All labels: the negative one before the positive one, or the classes as they were given."""
        return self.classes or (self.negative, self.positive)  # type: ignore[return-value]  # none of the two is None then

    def to_dict(self) -> dict[str, Any]:
        """The target as in a TOML file: JSON-able."""
        if self.classes is not None:
            return {"column": self.column, "classes": list(self.classes)}
        return {"column": self.column, "negative": self.negative, "positive": self.positive}


@dataclass(frozen=True, slots=True, init=False, repr=False)
class Schema:
    """The public description of a table: its columns, in the order of their encoding, and its target.

    Parameters
    ----------
    columns : a mapping from the name of a column to its description, as in a TOML file, or column objects
    target : a mapping with the keys column, and negative and positive or classes, or a `Target`; optional
    person : name of the column that identifies the person a row belongs to, if one person may have several; no feature
    interact : lists of two or more names of columns whose encoded columns are multiplied, beside their own; optional

    Raises
    ------
    SchemaError
        Where the schema contradicts itself. The message names the column and says what to do.

    Examples
    --------
    >>> print(Schema(columns={"age": {"low": 17, "high": 90}, "sex": {"categories": ["Female", "Male"]}}))
    Schema of 2 columns
      age  number from 17 to 90
      sex  2 categories
    """

    columns: tuple[Column, ...]
    target: Target | None
    person: str | None
    interact: tuple[tuple[str, ...], ...]

    def __init__(
        self,
        columns: Mapping[str, Mapping[str, Any]] | Iterable[Column],
        target: Target | Mapping[str, Any] | None = None,
        person: str | None = None,
        interact: Iterable[Iterable[str]] = (),
    ) -> None:
        object.__setattr__(self, "columns", _columns(columns))
        object.__setattr__(self, "target", _target(target))
        object.__setattr__(self, "person", person)
        if not self.columns:
            raise SchemaError("a schema needs at least one column.")
        names = set()
        for name in self.column_names:
            if name in names:
                raise SchemaError(f"{_named(name)}: described twice; keep one description.")
            names.add(name)
        if self.target is not None and self.target.column in names:
            raise SchemaError(
                f"{_named(self.target.column)}: is the target, so it must not be among the columns; remove it there."
            )
        if person is not None:
            where = _named(person, "person, the name of a column,")
            if person in names:
                raise SchemaError(f"{where}: identifies the person, so it must not be among the columns; remove it there.")
            if self.target is not None and person == self.target.column:
                raise SchemaError(f"{where}: identifies the person, so it cannot be the target; correct one of the two.")
        object.__setattr__(self, "interact", _interactions(interact, names))

    @classmethod
    def from_dict(cls, mapping: Mapping[str, Any]) -> Schema:
        """Read the form that `to_dict` gives, which is that of a TOML file.

        Parameters
        ----------
        mapping : {"target": {...}, "person": name, "interact": [[name, name], ...], "columns": {name: {...}, ...}}, where
            all but the columns may be left out; the order of the columns is kept

        Raises
        ------
        SchemaError
            Where a key is unknown or the schema contradicts itself.
        """
        if not isinstance(mapping, Mapping):
            raise SchemaError(
                'a schema is a mapping with the key "columns" and, if wanted, "target", "person" and "interact".'
            )
        known = ("columns", "target", "person", "interact")
        _check_keys("the schema", mapping, known, " (columns are described below [columns])")
        if not isinstance(mapping.get("columns"), Mapping):
            raise SchemaError('the schema has no table "columns"; describe each column there, by its name.')
        return cls(mapping["columns"], mapping.get("target"), mapping.get("person"), mapping.get("interact", ()))

    @classmethod
    def from_toml(cls, path: str | Path) -> Schema:
        """Read a schema from a TOML file.

        Parameters
        ----------
        path : the file

        Raises
        ------
        FileError
            The file is missing, cannot be read, or is not TOML.
        SchemaError
            The schema contradicts itself. The message begins with the name of the file.
        """
        try:
            text = Path(path).read_text(encoding="utf-8")
        except FileNotFoundError:
            raise FileError(f"{path}: there is no such file; give the path of a schema in TOML.") from None
        except UnicodeDecodeError:
            raise FileError(f"{path}: is not text in UTF-8; give the path of a schema in TOML.") from None
        except OSError as error:
            raise FileError(f"{path}: cannot be read ({error.strerror}).") from None
        try:
            mapping = tomllib.loads(text)
        except tomllib.TOMLDecodeError as error:
            # The place alone: a table given by mistake would otherwise be quoted.
            place = re.search(r"line [0-9]+, column [0-9]+|end of document", str(error))
            raise FileError(f"{path}: is not valid TOML ({place[0] if place else 'somewhere'}); correct it.") from None
        except (ValueError, RecursionError):
            raise FileError(f"{path}: is not valid TOML (a number is too long, or nesting too deep); correct it.") from None
        try:
            return cls.from_dict(mapping)
        except SchemaError as error:
            raise SchemaError(f"{path}: {error}") from None

    def to_dict(self) -> dict[str, Any]:
        """A JSON-able form, read by `from_dict`. The order of the columns matters: keep it (do not sort keys)."""
        target = {} if self.target is None else {"target": self.target.to_dict()}
        person = {} if self.person is None else {"person": self.person}
        interact = {"interact": [list(names) for names in self.interact]} if self.interact else {}
        return target | person | interact | {"columns": {column.name: column.to_dict() for column in self.columns}}

    def to_toml(self) -> str:
        """The text of a TOML file, read by `from_toml`."""
        described = self.to_dict()
        columns = described.pop("columns")
        lines = [f"{key} = {_toml(value)}" for key, value in described.items()] + [""] * bool(described)
        lines += ["[columns]", *(f"{_toml_key(name)} = {_toml(column)}" for name, column in columns.items())]
        return "\n".join(lines) + "\n"

    @property
    def column_names(self) -> tuple[str, ...]:
        """The names of the columns, in order, without the target and the person's."""
        return tuple(column.name for column in self.columns)

    def __repr__(self) -> str:
        target = "" if self.target is None else f", target={self.target.column!r}"
        person = "" if self.person is None else f", person={self.person!r}"
        interact = f", {len(self.interact)} interaction{'s'[: len(self.interact) != 1]}" if self.interact else ""
        return f"Schema({len(self.columns)} column{'s'[: len(self.columns) != 1]}{target}{person}{interact})"

    def __str__(self) -> str:
        target = self.target and f", target {self.target.column}: {' or '.join(map(str, self.target.labels))}"
        person = self.person and f", person {self.person}"
        width = max(len(name) for name in self.column_names)
        lines = [f"Schema of {len(self.columns)} column{'s'[: len(self.columns) != 1]}{target or ''}{person or ''}"]
        lines += [f"  {column.name:{width}}  {column}" for column in self.columns]
        return "\n".join(lines + [f"  {' x '.join(names)}  interact" for names in self.interact])


def _columns(described: object) -> tuple[Column, ...]:
    if isinstance(described, Mapping):
        return tuple(_column(name, description) for name, description in described.items())
    columns = tuple(described) if isinstance(described, Iterable) and not isinstance(described, str) else (None,)
    for column in columns:
        if not isinstance(column, (NumberColumn, CategoryColumn)):
            raise SchemaError("columns must map names to descriptions, or be NumberColumn and CategoryColumn objects.")
    return columns


def _column(name: Any, description: object) -> Column:
    where = _named(name)
    if name in ("target", "person", "interact") and not isinstance(description, Mapping):
        raise SchemaError(f'the key "{name}" is not a column; put it above [columns].')
    if not isinstance(description, Mapping):
        raise SchemaError(f"{where}: describe it by {{ low = ..., high = ... }} or {{ categories = [...] }}.")
    is_number = "low" in description or "high" in description
    if is_number == ("categories" in description):
        advice = "both bounds and categories; keep" if is_number else "neither bounds nor categories; give"
        _check_keys(where, description, ("low", "high", "scale", "knots", "categories", "other", "missing"))
        raise SchemaError(f"{where}: has {advice} low and high, or categories.")
    kind = NumberColumn if is_number else CategoryColumn
    _check_fields(where, description, kind, given=("name",))
    return kind(name=name, **description)


def _interactions(described: object, columns: set[str]) -> tuple[tuple[str, ...], ...]:
    shape = 'interact must be a list of lists of names of columns, as in interact = [["age", "sex"]].'
    if isinstance(described, (str, Mapping)) or not isinstance(described, Iterable):
        raise SchemaError(shape)
    interactions: list[tuple[str, ...]] = []
    for listed in described:
        if isinstance(listed, (str, Mapping)) or not isinstance(listed, Iterable):
            raise SchemaError(shape)
        names = tuple(listed)
        for name in names:
            where = _named(name, "interact: the name of a column")
            if name not in columns:
                known = _suggestion(name, tuple(columns))
                raise SchemaError(f"interact: {where} is not among the columns{known}; describe it below [columns].")
        if len(set(names)) != len(names) or len(names) < 2:
            raise SchemaError("interact: each list needs two or more names of columns, all different.")
        if any(set(names) == set(earlier) for earlier in interactions):
            raise SchemaError(f"interact: {' and '.join(names)} are listed together twice; keep one of the lists.")
        interactions.append(names)
    return tuple(interactions)


def _target(described: object) -> Target | None:
    if described is None or isinstance(described, Target):
        return described
    if not isinstance(described, Mapping):
        raise SchemaError(
            "target: describe it by { column = ..., negative = ..., positive = ... } or { column = ..., classes = [...] }."
        )
    _check_fields("target", described, Target)
    return Target(**described)


def _check_fields(where: str, description: Mapping[Any, Any], kind: type[Any], given: tuple[str, ...] = ()) -> None:
    fields = [field for field in dataclasses.fields(kind) if field.name not in given]
    _check_keys(where, description, tuple(field.name for field in fields))
    for field in fields:
        if field.default is dataclasses.MISSING and field.name not in description:
            raise SchemaError(f'{where}: the key "{field.name}" is missing; add it.')


def _check_keys(where: str, mapping: Mapping[Any, Any], known: tuple[str, ...], advice: str = "") -> None:
    for key in mapping:
        if key not in known:
            raise SchemaError(
                f'{where}: unknown key "{key}"{_suggestion(key, known) or advice}. Known are: {", ".join(known)}.'
            )


def _suggestion(given: object, known: tuple[str, ...]) -> str:
    close = difflib.get_close_matches(str(given), known, n=1, cutoff=0.7)
    return f' (did you mean "{close[0]}"?)' if close else ""


def _named(name: object, what: str = "the name of a column") -> str:
    if not isinstance(name, str) or not name.strip():
        raise SchemaError(f"{what} must be text that is not blank.")
    return f'column "{name}"'


def _finite_bound(where: str, key: str, value: object) -> float:
    if not isinstance(value, bool) and isinstance(value, numbers.Real):
        try:
            bound = float(value)
        except OverflowError:  # an integer beyond the doubles
            bound = math.inf
        if math.isfinite(bound):
            return bound
    raise SchemaError(f"{where}: {key} must be a finite number.")


def _kind(label: Label) -> type:
    return next(kind for kind in (str, bool, object) if isinstance(label, kind))


def _label(where: str, what: str, value: object) -> Label:
    plain = value.item() if isinstance(value, np.generic) else value
    finite = not isinstance(plain, float) or math.isfinite(plain)
    if isinstance(plain, (str, int, float, bool)) and finite and canonical_label(plain) is not None:
        return plain
    raise SchemaError(f"{where}: {what} must be text that is not blank, a finite number or a boolean.")


def _listed(where: str, other: object, listed: Mapping[str | None, Label]) -> str:
    label = canonical_label(other) if isinstance(other, (str, int, float)) else None
    if label is None or label not in listed:
        raise SchemaError(f"{where}: other must be true, false or one of the listed categories.")
    return label


def _check_flag(where: str, key: str, value: object) -> None:
    if not isinstance(value, bool):
        raise SchemaError(f"{where}: {key} must be true or false.")


def shown_number(number: float) -> int | float:
    """17 rather than 17.0."""
    return int(number) if number.is_integer() and abs(number) < 2**53 else number


def _toml(value: object) -> str:
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{_toml_key(key)} = {_toml(item)}" for key, item in value.items()) + " }"
    if isinstance(value, list):
        return "[" + ", ".join(_toml(item) for item in value) + "]"
    if isinstance(value, str):
        # JSON escapes what TOML wants escaped, all but the character 127.
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    return json.dumps(value)


def _toml_key(key: str) -> str:
    return key if re.fullmatch(r"[A-Za-z0-9_-]+", key) else _toml(key)
