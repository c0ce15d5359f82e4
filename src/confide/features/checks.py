"""Checks of the values that a schema is made of: names, bounds, labels, flags and keys.

Each check gives the value in the form in which the schema keeps it, or raises a `SchemaError` that says where it stands.
"""

from __future__ import annotations

import dataclasses
import datetime as dt
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from typing import Any, TypeVar

import numpy as np

from confide.errors import SchemaError, as_float, is_number
from confide.features.canonical_labels import Label, canonical_label
from confide.known_words import suggestion

Described = TypeVar("Described")
LONGEST_UNIT = 30
"""Units stand in headings and on axes."""


def column_title(name: object, what: str = "the name of a column") -> str:
    """How messages call a column, for example 'column "age"'.

    Parameters
    ----------
    name : name of the column
    what : how the message calls the name itself, if it is no name

    Raises
    ------
    SchemaError
        If the name is not text, or is blank.
    """
    if not isinstance(name, str) or not name.strip():
        raise SchemaError(f"{what} must be text that is not blank.")
    return f'column "{name}"'


def finite_bound(where: str, key: str, value: object) -> float:
    """A finite real number, as a float."""
    if is_number(value):
        try:
            bound = float(value)
        except OverflowError:  # an integer beyond the range of doubles
            bound = math.inf
        if math.isfinite(bound):
            return bound
    if isinstance(value, dt.date | dt.time):
        raise SchemaError(
            f"{where}: {key} must be a finite number. Dates are not read; turn them into a number, such as days since a "
            f"public date."
        )
    raise SchemaError(f"{where}: {key} must be a finite number.")


def plain_label(where: str, what: str, value: object) -> Label:
    """A category or a class label, as a plain Python value."""
    plain = value.item() if isinstance(value, np.generic) else value
    finite = not isinstance(plain, float) or math.isfinite(plain)
    if isinstance(plain, (str, int, float, bool)) and finite and canonical_label(plain) is not None:
        return plain
    raise SchemaError(f"{where}: {what} must be text that is not blank, a finite number or a boolean.")


def check_unit(where: str, unit: object) -> None:
    """Refuse a unit that is neither None nor a short text in one line."""
    is_text = isinstance(unit, str) and bool(unit.strip()) and unit.isprintable() and len(unit) <= LONGEST_UNIT
    if unit is not None and not is_text:
        raise SchemaError(
            f'{where}: unit must be text of at most {LONGEST_UNIT} characters in one line, such as "USD" or "years"; leave '
            f"it out if there is none."
        )


def is_list(value: object) -> bool:
    """Whether a value can be read as a list: it is iterable, and neither text nor a mapping."""
    return isinstance(value, Iterable) and not isinstance(value, (str, Mapping))


def check_keys(where: str, mapping: Mapping[Any, Any], known: tuple[str, ...], advice: str = "") -> None:
    """Refuse a mapping with an unknown key; the message suggests a known key that looks alike."""
    for key in mapping:
        if key not in known:
            raise SchemaError(
                f'{where}: unknown key "{key}"{suggestion(key, known) or advice}. Known are: {", ".join(known)}.'
            )


def check_fields(where: str, description: Mapping[Any, Any], kind: type[Any], given: tuple[str, ...] = ()) -> None:
    """Refuse a mapping whose keys are not the fields of a dataclass, or that lacks a field without a default.

    Parameters
    ----------
    where : how messages begin
    description : the mapping
    kind : the dataclass
    given : fields that do not come from the mapping
    """
    expected = [field for field in fields(kind) if field.name not in given]
    check_keys(where, description, tuple(field.name for field in expected))
    for field in expected:
        if field.default is dataclasses.MISSING and field.name not in description:
            raise SchemaError(f'{where}: the key "{field.name}" is missing; add it.')


def made_of(kind: type[Described], where: str, described: object, shape: str) -> Described | None:
    """An object of a dataclass: as it was given, or from a mapping with its fields as in a TOML file; None if there is none.

    Parameters
    ----------
    kind : the dataclass
    where : how messages about the fields begin
    described : an object of the class, a mapping or None
    shape : the message if it is none of them

    Raises
    ------
    SchemaError
        If the description contradicts itself.
    """
    if described is None or isinstance(described, kind):
        return described
    if not isinstance(described, Mapping):
        raise SchemaError(shape)
    check_fields(where, described, kind)
    return kind(**described)


# What a schema says of bounds that were released from rows: how, and at which price.


def which_attempt(attempts: int) -> str:
    """How a sentence about a release ends: with the number of its attempt under its charge, if there were earlier ones."""
    if attempts == 1:
        return "."
    earlier = "What ended each earlier one depended neither on rows nor on noise; any other counts as one more release."
    return f" by attempt {attempts} under its charge. {earlier}"


@dataclass(frozen=True, slots=True)
class BoundsRelease:
    """The release from which the bounds of a column came, as its schema keeps it. It holds public facts alone.

    Parameters
    ----------
    quantiles : the quantiles of the column that became low and high, between 0 and 1
    outer : the public bounds between which they were looked for
    columns : all columns whose bounds were released together; the price is for all of them
    neighbours : the relation under which the release is private
    epsilon, delta, rho : the price of the release, as epsilon, epsilon and delta, or rho
    max_rows_per_person : the release protects a person with at most so many rows
    attempts : the number of this attempt under its charge; above 1 if earlier ones were interrupted
    ledger : identity of the ledger that was charged, or None
    void : why the release has no guarantee; None if it has one

    Raises
    ------
    SchemaError
        If a value is of the wrong kind.
    """

    quantiles: tuple[float, ...]
    outer: tuple[float, ...]
    columns: tuple[str, ...]
    neighbours: str
    epsilon: float | None = None
    delta: float | None = None
    rho: float | None = None
    max_rows_per_person: int = 1
    attempts: int = 1
    ledger: str | None = None
    void: str | None = None

    def __post_init__(self) -> None:
        where = "released"
        for key in ("quantiles", "outer"):
            numbers = getattr(self, key)
            if not is_list(numbers) or len(tuple(numbers)) != 2:
                raise SchemaError(f"{where}: {key} must be a list of two numbers.")
            object.__setattr__(self, key, tuple(finite_bound(where, key, number) for number in numbers))
        if not is_list(self.columns) or not all(isinstance(name, str) for name in self.columns):
            raise SchemaError(f"{where}: columns must be a list of names.")
        object.__setattr__(self, "columns", tuple(self.columns))
        for key in ("epsilon", "delta", "rho"):
            amount = getattr(self, key)
            if amount is not None and not 0.0 < as_float(amount) < math.inf:
                raise SchemaError(f"{where}: {key} must be a positive number.")
        if (self.epsilon is None) == (self.rho is None):
            raise SchemaError(f"{where}: give its price, as epsilon or as rho.")
        for key in ("max_rows_per_person", "attempts"):
            if type(getattr(self, key)) is not int or getattr(self, key) < 1:
                raise SchemaError(f"{where}: {key} must be a whole number of at least 1.")
        for key in ("neighbours", "ledger", "void"):
            if not isinstance(getattr(self, key), str | None):
                raise SchemaError(f"{where}: {key} must be text.")

    @property
    def price(self) -> str:
        """The price in words, for example "epsilon = 0.1 (replace-one)"."""
        amounts = {"epsilon": self.epsilon, "delta": self.delta, "rho": self.rho}
        named = " and ".join(f"{name} = {amount:.12g}" for name, amount in amounts.items() if amount is not None)
        several = f", for persons with at most {self.max_rows_per_person:,} rows" if self.max_rows_per_person > 1 else ""
        return f"{named} ({self.neighbours}{several})"

    def sentences(self, ledger: str | None) -> tuple[str, ...]:
        """What a statement says of these bounds, for a fit that is charged to the ledger with this identity.

        The first sentence depends on the release alone.
        """
        names = " and ".join(f'"{name}"' for name in self.columns)
        bounds = f"The bounds of {names} were not declared"
        if self.void is not None:
            return (f"{bounds}; they came from rows by a release without a guarantee, which may reveal these rows.",)
        released = f"{bounds}; they came from rows by a private release that cost {self.price}{which_attempt(self.attempts)}"
        if ledger is not None and self.ledger == ledger:
            return released, "The release of these bounds was charged to the same ledger."
        uncovered = "is not covered here: where it used some of these rows, its cost adds to that of this release."
        return released, f"The release of these bounds {uncovered}"

    def to_dict(self) -> dict[str, Any]:
        """A JSON-able form, as in a TOML file, without what has its default value."""
        facts = {field.name: (getattr(self, field.name), field.default) for field in fields(self)}
        named = {name: fact for name, (fact, default) in facts.items() if fact != default}
        return {name: list(fact) if isinstance(fact, tuple) else fact for name, fact in named.items()}


def release_of(where: str, described: object) -> BoundsRelease | None:
    """The release that a schema describes, or None.

    Raises
    ------
    SchemaError
        If the description is none. The message begins with `where`.
    """
    try:
        return made_of(BoundsRelease, "released", described, "released must be a table, as `confide bounds` writes it.")
    except SchemaError as error:
        message = str(error)
    raise SchemaError(f"{where}, {message}")
