"""Checks of the values that a schema is made of: names, bounds, labels, flags and keys.

Each check gives the value in the form in which the schema keeps it, or raises a `SchemaError` that says where it stands.
"""

from __future__ import annotations

import dataclasses
import datetime as dt
import math
import numbers
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from confide.errors import SchemaError
from confide.features.canonical_labels import Label, canonical_label
from confide.known_words import suggestion

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
    if not isinstance(value, bool) and isinstance(value, numbers.Real):
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
    fields = [field for field in dataclasses.fields(kind) if field.name not in given]
    check_keys(where, description, tuple(field.name for field in fields))
    for field in fields:
        if field.default is dataclasses.MISSING and field.name not in description:
            raise SchemaError(f'{where}: the key "{field.name}" is missing; add it.')
