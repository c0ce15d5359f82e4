"""What a release published, as numbers: vectors, JSON values, fitted estimators and errors become rows of a matrix.

An error is an outcome too: whether a release fails, and how, may tell data sets apart.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from confide.types import Array

_MOST_WITH_BITS = 10
"""Of outcomes with more numbers than this, last bits are not looked at."""
_MOST_VALUES = 20
"""Of one place that holds text, so many values get a column each; all others share none."""


@dataclass(frozen=True, slots=True)
class Failed:
    """A release that ended with an error.

    Attributes
    ----------
    error : str
        The type of the error and its text.
    """

    error: str


def leaves(outcome: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Every number, truth value and text of an outcome, with its place."""
    if isinstance(outcome, Failed):
        yield f"{path}error", outcome.error
    elif isinstance(outcome, Mapping):
        for key in sorted(outcome, key=str):
            yield from leaves(outcome[key], f"{path}{key}.")
    elif isinstance(outcome, np.ndarray):
        for index, value in enumerate(outcome.ravel().tolist()):
            yield from leaves(value, f"{path}{index}.")
    elif isinstance(outcome, Sequence) and not isinstance(outcome, str | bytes):
        yield f"{path}length", float(len(outcome))
        for index, value in enumerate(outcome):
            yield from leaves(value, f"{path}{index}.")
    elif isinstance(outcome, int | float | np.bool_ | np.integer | np.floating):
        yield path, float(outcome)
    elif hasattr(outcome, "to_dict"):
        yield from leaves(outcome.to_dict(), path)
    elif hasattr(outcome, "__array__"):
        yield from leaves(np.asarray(outcome), path)
    else:
        yield path, outcome if isinstance(outcome, str) else repr(outcome)


@dataclass(frozen=True, slots=True)
class Columns:
    """How outcomes become rows of numbers. Learned from some releases and applied to others.

    Attributes
    ----------
    numbers : places that hold numbers
    texts : places that hold text, each with the values that get a column
    """

    numbers: tuple[str, ...]
    texts: tuple[tuple[str, tuple[str, ...]], ...]

    @classmethod
    def of(cls, outcomes: Sequence[Any]) -> Self:
        """The columns for these outcomes."""
        numbers: dict[str, None] = {}
        texts: dict[str, dict[str, int]] = {}
        for outcome in outcomes:
            for path, value in leaves(outcome):
                if isinstance(value, float):
                    numbers[path] = None
                else:
                    seen = texts.setdefault(path, {})
                    seen[value] = seen.get(value, 0) + 1
        often = {
            path: tuple(sorted(sorted(seen), key=lambda value: -seen[value])[:_MOST_VALUES]) for path, seen in texts.items()
        }
        return cls(tuple(numbers), tuple(often.items()))

    @property
    def are_numbers(self) -> bool:
        """Whether outcomes are vectors of numbers."""
        return not self.texts

    def matrix(self, outcomes: Sequence[Any]) -> Array:
        """(n, columns): NaN where an outcome has no such number."""
        rows = np.zeros((len(outcomes), len(self.numbers) + sum(len(values) for _, values in self.texts)))
        rows[:, : len(self.numbers)] = np.nan
        places = {path: column for column, path in enumerate(self.numbers)}
        column = len(self.numbers)
        of_text = {}
        for path, values in self.texts:
            for value in values:
                of_text[path, value] = column
                column += 1
        for row, outcome in zip(rows, outcomes, strict=True):
            for path, value in leaves(outcome):
                found = places.get(path) if isinstance(value, float) else of_text.get((path, value))
                if found is not None:
                    row[found] = value if isinstance(value, float) else 1.0
        return rows


def vectors(first: Sequence[Any], second: Sequence[Any], learned_from: int) -> tuple[Array, Array, bool]:
    """Both samples of outcomes as matrices with the same columns, and whether they are vectors of numbers alone.

    The columns follow from the first `learned_from` outcomes of either sample.
    """
    arrays = all(isinstance(each, np.ndarray) and each.dtype.kind == "f" for each in (*first, *second))
    if arrays and len({each.shape for each in (*first, *second)}) == 1:
        return np.array([each.ravel() for each in first]), np.array([each.ravel() for each in second]), True
    columns = Columns.of([*first[:learned_from], *second[:learned_from]])
    one, other = columns.matrix(first), columns.matrix(second)
    complete = columns.are_numbers and bool(np.isfinite(one).all() and np.isfinite(other).all())
    return one, other, complete


def with_bits(matrix: Array) -> Array:
    """The columns, and for each that holds fractions how many zeros its numbers end with and what their last bits are.

    Noise that is added in floating point shows in them, see Mironov (2012).
    """
    found = [matrix]
    for column in matrix.T if matrix.shape[1] <= _MOST_WITH_BITS else ():
        known = column[np.isfinite(column)]
        if known.size and not np.array_equal(known, np.rint(known)):
            mantissas, exponents = np.frexp(np.where(np.isfinite(column), column, 0.0))
            digits = np.abs(np.ldexp(mantissas, 53)).astype(np.int64)
            lowest = np.where(digits == 0, 54.0, np.log2(np.maximum(1, digits & -digits)))
            # The place of the last bit that is not 0, as a power of two.
            found += [np.column_stack([lowest, exponents - 53.0 + lowest, digits & 3])]
    return np.column_stack(found)


def bounded(matrix: Array) -> Array:
    """The numbers without NaN and infinities, and a column for each that has some."""
    missing = np.isnan(matrix)
    whole = np.clip(np.where(missing, 0.0, matrix), -math.sqrt(1e300), math.sqrt(1e300))
    return np.column_stack([whole, missing[:, missing.any(axis=0)].astype(float)])
