"""Checks of the values that a schema is made of: names, bounds, labels, flags and keys.

Each check gives the value in the form in which the schema keeps it, or raises a `SchemaError` that says where it stands.
"""

from __future__ import annotations

import dataclasses
import datetime as dt
import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, ClassVar, TypeVar

import numpy as np

from confide.errors import Reader, SchemaError, as_float, is_list, is_mapping, is_text, keep, optional, reader
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
    if not is_text(name) or not name.strip():
        raise SchemaError(f"{what} must be text that is not blank.")
    return f'column "{name}"'


def finite_number(what: str, value: object) -> float:
    """A finite real number, as a float."""
    number = as_float(value)
    if math.isfinite(number):
        return number
    dates = " Dates are not read; turn them into a number, such as days since a public date."
    raise SchemaError(f"{what} must be a finite number.{dates if isinstance(value, dt.date | dt.time) else ''}")


def plain_label(what: str, value: object) -> Label:
    """A category or a class label, as a plain Python value."""
    plain = value.item() if isinstance(value, np.generic) else value
    if isinstance(plain, str | int | float) and plain not in (math.inf, -math.inf) and canonical_label(plain) is not None:
        return plain
    raise SchemaError(f"{what} must be text that is not blank, a finite number or a boolean.")


def listed_by(read: Reader, must: str, each: str = "", size: int | None = None) -> Reader:
    """What reads a list as a tuple, each entry by a reader.

    Parameters
    ----------
    read : reads an entry
    must : what a message says that the list must be
    each : how a message calls an entry, in place of the name of the list
    size : how many entries there must be
    """

    def entries(what: str, value: Any) -> tuple[Any, ...]:
        listed = tuple(value) if is_list(value) else None
        if listed is None or (size is not None and len(listed) != size):
            raise SchemaError(f"{what} must be {must}.")
        what = f"{what.rpartition(': ')[0]}: {each}" if each else what
        return tuple(read(what, entry) for entry in listed)

    return entries


UNIT = optional(
    reader(
        f'text of at most {LONGEST_UNIT} characters in one line, such as "USD" or "years"; leave it out if there is none',
        lambda unit: is_text(unit) and unit.strip() != "" and unit.isprintable() and len(unit) <= LONGEST_UNIT,
        refusal=SchemaError,
    )
)
"""What reads a unit, or None."""


def check_keys(where: str, mapping: Mapping[Any, Any], known: tuple[str, ...], advice: str = "") -> None:
    """Refuse a mapping with an unknown key; the message suggests a known key that looks alike."""
    for key in mapping:
        if key not in known:
            near = suggestion(key, known) or advice
            raise SchemaError(f'{where}: unknown key "{key}"{near}. Known are: {", ".join(known)}.')


def check_fields(where: str, description: Mapping[Any, Any], kind: type[Any], given: tuple[str, ...] = ()) -> None:
    """Refuse a mapping whose keys are not the fields of a dataclass, or that lacks a field without a default.

    Parameters
    ----------
    where : how messages begin
    description : the mapping
    kind : the dataclass
    given : fields that do not come from the mapping
    """
    expected = [each for each in fields(kind) if each.init and each.name not in given]
    check_keys(where, description, tuple(each.name for each in expected))
    for each in expected:
        if each.default is dataclasses.MISSING and each.name not in description:
            raise SchemaError(f'{where}: the key "{each.name}" is missing; add it.')


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
    if not is_mapping(described):
        raise SchemaError(shape)
    check_fields(where, described, kind)
    return kind(**described)


# What a schema says of bounds, levels and atoms that were released from rows: how, and at which price.


def which_attempt(attempts: int) -> str:
    """How a sentence about a release ends: with the number of its attempt under its charge, if there were earlier ones."""
    if attempts == 1:
        return "."
    earlier = "What ended each earlier one depended neither on rows nor on noise; any other counts as one more release."
    return f" by attempt {attempts} under its charge. {earlier}"


_AMOUNT = optional(reader("a positive number", lambda value: 0.0 < as_float(value) < math.inf, refusal=SchemaError))
_NAMES = listed_by(reader("a list of names", is_text, refusal=SchemaError), "a list of names")


@dataclass(frozen=True, slots=True)
class AtomsRelease:
    """The release from which the atoms of a column came, as its schema keeps it. It holds public facts alone.

    Parameters
    ----------
    columns : all columns of which facts were released together; the price is for all of them
    neighbours : the relation under which the release is private
    epsilon, delta, rho : the price of the release, as epsilon, epsilon and delta, or rho
    max_rows_per_person : the release protects a person with at most so many rows
    attempts : the number of this attempt under its charge; above 1 if earlier ones were interrupted
    ledger : identity of the ledger that was charged, or None
    void : why the release has no guarantee; None if it has one
    by_fit : whether the fit of the model whose schema this is found them itself; the price is then that of the whole fit

    Raises
    ------
    SchemaError
        If a value is of the wrong kind.
    """

    key: ClassVar[str] = "released_atoms"
    command: ClassVar[str] = "atoms"
    columns: tuple[str, ...]
    neighbours: str
    epsilon: float | None = None
    delta: float | None = None
    rho: float | None = None
    max_rows_per_person: int = 1
    attempts: int = 1
    ledger: str | None = None
    void: str | None = None
    by_fit: bool = False

    def __post_init__(self) -> None:
        where, text = f"{self.key}: ", optional(reader("text", is_text, refusal=SchemaError))
        count = reader("a whole number of at least 1", lambda value: type(value) is int and value > 0, refusal=SchemaError)
        keep(self, where, columns=_NAMES, epsilon=_AMOUNT, delta=_AMOUNT, rho=_AMOUNT)
        if (self.epsilon is None) == (self.rho is None):
            raise SchemaError(f"{where}give its price, as epsilon or as rho.")
        flag = reader("true or false", lambda value: type(value) is bool, refusal=SchemaError)
        keep(self, where, max_rows_per_person=count, attempts=count, neighbours=text, ledger=text, void=text, by_fit=flag)

    @property
    def what(self) -> str:
        """What was released."""
        return "atoms"

    @property
    def price(self) -> str:
        """The price in words, for example "epsilon = 0.1 (replace-one)"."""
        amounts = {"epsilon": self.epsilon, "delta": self.delta, "rho": self.rho}
        named = " and ".join(f"{name} = {amount:.12g}" for name, amount in amounts.items() if amount is not None)
        several = f", for persons with at most {self.max_rows_per_person:,} rows" if self.max_rows_per_person > 1 else ""
        return f"{named} ({self.neighbours}{several})"

    def sentences(self, ledger: str | None) -> tuple[str, ...]:
        """What a statement says of these facts, for a fit that is charged to the ledger with this identity.

        The first sentence depends on the release alone.
        """
        names = " and ".join(f'"{name}"' for name in self.columns)
        facts = f"The {self.what} of {names} were not declared"
        if self.void is not None:
            return (f"{facts}; they came from rows by a release without a guarantee, which may reveal these rows.",)
        released = f"{facts}; they came from rows by a private release that cost {self.price}{which_attempt(self.attempts)}"
        if ledger is not None and self.ledger == ledger:
            return released, f"The release of these {self.what} was charged to the same ledger."
        uncovered = "is not covered here: where it used some of these rows, its cost adds to that of this release."
        return released, f"The release of these {self.what} {uncovered}"

    def to_dict(self) -> dict[str, Any]:
        """A JSON-able form, as in a TOML file, without what has its default value."""
        # What a kind of release has of its own comes first.
        ordered = sorted(fields(self), key=lambda each: not each.kw_only)
        facts = {each.name: (getattr(self, each.name), each.default) for each in ordered}
        named = {name: fact for name, (fact, default) in facts.items() if fact != default}
        return {name: list(fact) if type(fact) is tuple else fact for name, fact in named.items()}


@dataclass(frozen=True, slots=True)
class BoundsRelease(AtomsRelease):
    """The release from which the bounds or levels of a column came. It also says what every release of facts says.

    Parameters
    ----------
    quantiles : the quantiles of the column that became low and high, between 0 and 1; none for levels
    outer : the public bounds between which they were looked for; none for levels
    levels : those of the columns whose levels were released
    threshold : the noisy number of rows that each released level has at least; None for bounds
    """

    key: ClassVar[str] = "released"
    command: ClassVar[str] = "bounds"
    quantiles: tuple[float, ...] = field(kw_only=True, default=())
    outer: tuple[float, ...] = field(kw_only=True, default=())
    levels: tuple[str, ...] = field(kw_only=True, default=())
    threshold: float | None = field(kw_only=True, default=None)

    def __post_init__(self) -> None:
        pair = listed_by(finite_number, "a list of two numbers", size=2 if self.threshold is None else 0)
        keep(self, "released: ", threshold=_AMOUNT, quantiles=pair, outer=pair, levels=_NAMES)
        AtomsRelease.__post_init__(self)

    @property
    def what(self) -> str:
        """What was released: bounds, levels, or both."""
        kinds = {"bounds": set(self.columns) - set(self.levels), "levels": self.levels}
        return " and ".join(kind for kind, names in kinds.items() if names)
