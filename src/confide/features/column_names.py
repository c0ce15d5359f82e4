"""Names of columns: how messages list them, and whether they look like data."""

from __future__ import annotations

import math
from collections.abc import Iterable

from confide.features.cells import number_in


def listed(names: Iterable[str]) -> str:
    """Names in quotes, with commas between them."""
    return ", ".join(f'"{name}"' for name in names)


def names_by_position(n_columns: int) -> tuple[str, ...]:
    """Names for the columns of an array, which has none: x0, x1, ..."""
    return tuple(f"x{position}" for position in range(n_columns))


def looks_like_number(name: object) -> bool:
    """Whether a name is text that reads as a number: a sign that a row of data was taken for the names of the columns."""
    number = number_in(name) if isinstance(name, str) else None
    return number is not None and not math.isnan(number)
