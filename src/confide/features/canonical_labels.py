"""Canonical form of labels: the text by which categories and class labels are compared.

Readers of one file produce 1, 1.0 or "1" for the same cell. In canonical form these are the same label.
"""

from __future__ import annotations

import math
import numbers
import re
import unicodedata
from collections.abc import Collection, Container, Mapping
from decimal import Decimal
from typing import Any, TypeAlias

import numpy as np

from confide.errors import SchemaError, is_mapping

Label: TypeAlias = str | int | float | bool
"""A category or a class label, as a schema holds it."""

MISSING_WORDS = (
    *("NA", "N/A", "n/a", "<NA>", "#NA", "#N/A", "#N/A N/A", "NaN", "nan", "-NaN", "-nan", "NULL", "null", "None"),
    *("1.#IND", "-1.#IND", "1.#QNAN", "-1.#QNAN"),
)
"""Text that other programs write for a missing cell, and that pandas reads as one."""

_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
_LONGEST_NUMBER = 400
"""In characters. No double needs more, and Python refuses to read integers of several thousand digits."""


def canonical_label(value: object) -> str | None:
    """The text by which categories and labels are compared.

    Text that is a decimal number counts as that number. Whole numbers have no decimal point. Blanks around text do not
    count, nor does it matter whether a letter is composed with its accent or followed by it (Unicode, form NFC). So 1, 1.0,
    "1", " 01 " and ``np.int8(1)`` all give "1", and True, "True" and "TRUE" give "true".

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
        If the value is not text, a real number or a boolean. The message does not hold the value.
    """
    match value:
        case str():
            return _canonical_text(value.strip())
        case bool() | np.bool_():
            return "true" if value else "false"
        case numbers.Integral():
            return str(int(value))
        case np.floating():
            value = float(str(value))  # through the shortest text: np.float32(0.1) is printed as 0.1, and counts as 0.1
            return None if math.isnan(value) else _canonical_text(repr(value))
        case numbers.Real() | Decimal():
            return None if math.isnan(value) else _canonical_text(repr(float(value)))
    # NA and NaT of pandas are recognised by the names of their types: pandas is not imported here, and NA cannot be
    # compared.
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return None
    raise TypeError("a label is text, a number or a boolean.")


def is_missing(label: str | None, listed: Container[str | None] = ()) -> bool:
    """Whether a cell with this canonical form is missing: it is empty, or a word such as NA that is not among the levels.

    This is the one rule for all readers of tables. A level "NA" that a schema lists, such as the code of Namibia, stays one.

    Parameters
    ----------
    label : the canonical form of the cell
    listed : the levels of its column in canonical form
    """
    return label is None or (label in MISSING_WORDS and label not in listed)


def na_is_a_code(levels: Collection[str | None]) -> bool:
    """Whether levels are codes of two capital letters, as of countries: "NA" is then one more (Namibia), not a missing cell.

    Parameters
    ----------
    levels : at least three levels in canonical form, "NA" among them or not
    """
    others = [level for level in levels if level != "NA"]
    return len(others) > 1 and all(level is not None and re.fullmatch("[A-Z]{2}", level) for level in others)


_LONGEST_LEVEL = 200
"""In characters. Longer text is prose, and no level."""
NONE_FOUND = "(none found)"
"""The one category of a column of which a private release found no level."""


def can_be_level(label: str | None) -> bool:
    """Whether a private release may name this canonical form: text of one line that no file or message would change.

    Names in parentheses that this package gives to levels, words for missing cells, and blanks of a draft are none.
    """
    if label is None or is_missing(label) or not label.isprintable() or len(label) > _LONGEST_LEVEL:
        return False
    return label not in (NONE_FOUND, "(other)", "(missing)", "(not listed)", BLANK)


def _canonical_text(text: str) -> str | None:
    if not text:
        return None
    if not text.isascii():
        text = unicodedata.normalize("NFC", text)
    if text.lower() in ("true", "false"):
        return text.lower()
    if len(text) > _LONGEST_NUMBER or not _NUMBER.fullmatch(text):
        return text
    if text.lstrip("+-").isdigit():
        return str(int(text))
    number = float(text)
    return text if math.isinf(number) else str(int(number)) if number.is_integer() else repr(number)


# Blanks in a schema that `confide new` has begun: what a person has still to fill in, said column by column.

BLANK = "FILL IN"
"""What stands in a TOML file in place of something that a person must say."""
_MOST_SHOWN = 6
"""How many blanks one message lists."""


def refuse_blanks(described: Mapping[str, Any]) -> None:
    """Refuse the mapping of a TOML file that has blanks.

    Parameters
    ----------
    described : what the file says, as in `Schema.from_dict`

    Raises
    ------
    SchemaError
        If something is still to be filled in. The message says what, for each of the first columns concerned.
    """
    columns = described.get("columns")
    parts = {key: (value, "its value") for key, value in described.items() if key != "columns"}
    for name, column in columns.items() if is_mapping(columns) else ():
        parts[f'column "{name}"'] = column, "its bounds or its categories, or delete its line"
    blanks = []
    for where, (value, missing) in parts.items():
        inner = value.items() if is_mapping(value) else ()
        keys = [str(key) for key, part in inner if part == BLANK or (type(part) is list and BLANK in part)]
        if value == BLANK or keys:
            *first, last = keys or [missing]
            blanks.append(f"{where}: fill in {', '.join(first)}{' and ' if first else ''}{last}")
    if not blanks:
        return
    more = f"; and {len(blanks) - _MOST_SHOWN} more" if len(blanks) > _MOST_SHOWN else ""
    raise SchemaError(f'not filled in yet, and marked "{BLANK}": {"; ".join(blanks[:_MOST_SHOWN])}{more}.')
