"""The values of a column at which its effects are given, and their public weights.

A number has its low, its knots and its high. Between two of these its effect is a straight line on the column's own scale. A
category has its levels. Missing cells are a value of their own, where the schema declares them.

Weights say what the mean of an effect over a column is. They follow from the schema alone. For a number they are those of
the trapezoid rule on the column's own scale, linear or log, so the mean is that of the curve from low to high; missing cells
have no weight. For a category all levels weigh the same, "(other)" and "(missing)" included. A category that is none of the
levels has no weight.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np

from confide.errors import ParameterError
from confide.features.canonical_labels import canonical_label, is_missing
from confide.features.column_encodings import CategoryEncoding, ColumnEncoding, NumberEncoding, is_plain
from confide.features.columns import CategoryColumn, Column, NumberColumn, shown_number
from confide.known_words import listed
from confide.types import Array

MISSING, OTHER = "(missing)", "(other)"


@dataclass(frozen=True, slots=True, eq=False)
class Points:
    """The values of one column at which effects are given.

    Attributes
    ----------
    column : the column's public description
    values : numbers in rising order, or levels; then "(missing)" if it is declared. Only values that people are shown
    positions : (number of numbers,), the numbers on the column's own scale, stretched to [-1, 1]; empty for a category
    weights : (n_points,), not negative, with sum 1. There is one more point than values if a category may be none of the
        levels; that point is last
    """

    column: Column
    values: tuple[Any, ...]
    positions: Array
    weights: Array

    @classmethod
    def of(cls, encodings: Iterable[ColumnEncoding]) -> Points:
        """The points of a column from its encodings: their knots together, if they have different ones."""
        encodings = tuple(encodings)
        first = encodings[0]
        if isinstance(first, CategoryEncoding):
            return _of_category(first.column)
        numbers = {value for each in encodings if isinstance(each, NumberEncoding) for value in _ends_and_knots(each.column)}
        return _of_number(_column_of(first), tuple(sorted(numbers)))

    @property
    def n_numbers(self) -> int:
        """How many of the points are numbers."""
        return len(self.positions)

    @property
    def texts(self) -> tuple[str, ...]:
        """The values as people read them: with four digits that count, or more where two would read alike."""
        for digits in range(4, 17):
            texts = tuple(_text_of(value, digits) for value in self.values)
            if len(set(texts)) == len(texts):
                return texts
        return tuple(map(str, self.values))

    @property
    def is_log(self) -> bool:
        """Whether the column's own scale is logarithmic."""
        return isinstance(self.column, NumberColumn) and self.column.is_log

    def effects(self, encoding: ColumnEncoding, weights: Array) -> Array:
        """(n_points, ...): the effect at each point, from the weights (size, ...) of a column's encoded columns."""
        if isinstance(encoding, CategoryEncoding):
            levels = np.arange(len(self.values))
            if len(self.weights) > len(levels):
                levels = np.append(levels, -1)
            if encoding.single.size:
                return np.asarray(np.multiply.outer(encoding.single[levels], weights[0]))
            padded: Array = np.concatenate([weights, np.zeros_like(weights[:1])])  # a category that is no level gives zeros
            return padded[levels]
        column = _column_of(encoding)
        numbers = np.array([*self.values[: self.n_numbers], *([math.nan] if column.missing else [])], dtype=np.float64)
        codes = column.stretched(numbers) if is_plain(encoding) else encoding.codes(numbers)
        encoded = np.empty((len(weights), len(numbers)))
        encoding.write(codes, encoded)
        answer: Array = np.tensordot(encoded, weights, axes=(0, 0))
        return answer

    def mixture(self, value: Any) -> Array:
        """(n_points,): how the effect at a value is made of the effects at the points.

        Raises
        ------
        ParameterError
            If the value lies outside the bounds of a number, or is not a level of a category.
        """
        mixture = np.zeros(len(self.weights))
        absent = value is None or (isinstance(value, Real) and value != value)
        if isinstance(value, str):
            absent = value == MISSING or is_missing(canonical_label(value), self.values)
        if not absent and self.column.missing_codes and isinstance(value, (str, Real)):
            absent = canonical_label(value) in map(canonical_label, self.column.missing_codes)
        if absent:
            if MISSING not in self.values:
                raise ParameterError(f'column "{self.column.name}": missing cells are not declared, so they have no effect.')
            mixture[self.values.index(MISSING)] = 1.0
        elif isinstance(self.column, NumberColumn):
            place = self._place_of(self.column, value)
            mixture[: self.n_numbers] = [np.interp(place, self.positions, row) for row in np.eye(self.n_numbers)]
        else:
            mixture[self._level_of(value)] = 1.0
        return mixture

    def _place_of(self, column: NumberColumn, value: Any) -> float:
        low, high = shown_number(column.low), shown_number(column.high)
        is_number = isinstance(value, Real) and not isinstance(value, (bool, np.bool_))
        number = float(value) if is_number else math.nan
        if not column.low <= number <= column.high:
            raise ParameterError(f'column "{column.name}": give a number from {low} to {high}, the bounds of the column.')
        return float(column.stretched(np.array([number]))[0])

    def _level_of(self, value: Any) -> int:
        if isinstance(value, str) and value in self.values:
            return self.values.index(value)
        wanted = canonical_label(value) if isinstance(value, (str, Real, np.bool_)) else None
        for position, level in enumerate(self.values):
            if wanted is not None and canonical_label(level) == wanted:
                return position
        shown = listed(map(str, self.values[:10])) + (", ..." if len(self.values) > 10 else "")
        raise ParameterError(f'column "{self.column.name}": give one of its levels: {shown}.')


def _text_of(value: Any, digits: int) -> str:
    if not isinstance(value, float) or value == 0.0 or not math.isfinite(value):
        return str(value)
    whole = math.floor(math.log10(abs(value))) + 1
    return f"{float(f'{value:.{max(digits, whole)}g}'):.15g}"


def _column_of(encoding: ColumnEncoding) -> NumberColumn:
    if not isinstance(encoding, NumberEncoding):
        raise TypeError("the encodings of one column must all be those of a number, or all those of a category.")
    return encoding.column


def _ends_and_knots(column: NumberColumn) -> tuple[float, ...]:
    return column.knots_with_bounds or (column.low, column.high)


def _of_number(column: NumberColumn, numbers: tuple[float, ...]) -> Points:
    positions = column.stretched(np.array(numbers, dtype=np.float64))
    lengths = np.diff(positions)
    # The trapezoid rule: half of each interval belongs to each of its ends.
    weights = (np.append(lengths, 0.0) + np.insert(lengths, 0, 0.0)) / (2.0 * lengths.sum())
    missing = bool(column.missing)
    values = (*map(shown_number, numbers), *([MISSING] if missing else []))
    return Points(column, values, positions, np.append(weights, 0.0) if missing else weights)


def _of_category(column: CategoryColumn) -> Points:
    levels = [*column.categories, *([OTHER] if column.other is True else []), *([MISSING] if column.missing else [])]
    weights = np.full(len(levels), 1.0 / len(levels))
    return Points(column, tuple(levels), np.zeros(0), weights if column.other else np.append(weights, 0.0))
