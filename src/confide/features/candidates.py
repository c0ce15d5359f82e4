"""The public numbers among which a bound of a column is chosen: round ones between its outer bounds, on its scale."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from confide.features.columns import NumberColumn

MOST_STEPS = 1000
"""More candidates are closer to each other, and a private choice among them errs by a few rows more."""


def candidates_of(column: NumberColumn) -> tuple[float, ...]:
    """Numbers from low to high of a column, both among them, in rising order. They depend on the description alone.

    On the linear scale they are the multiples of 1, 2 or 5 times a power of ten. On the log scale their distances from low
    are evenly spaced in log(1 + distance), rounded to three digits. On the log10 scale they are evenly spaced in the
    logarithm, rounded to three digits.

    Parameters
    ----------
    column : describes the outer bounds, low and high, and the scale

    Returns
    -------
    tuple of float
        At least two, and at most `MOST_STEPS` + 2.

    Examples
    --------
    >>> candidates_of(NumberColumn("age", 0, 150))[:4]
    (0.0, 0.2, 0.4, 0.6)
    >>> candidates_of(NumberColumn("gain", 0, 1e7, scale="log"))[-3:]
    (9680000.0, 9840000.0, 10000000.0)
    """
    inner = _even_in_logarithm(column) if column.is_log else _multiples(column)
    return (column.low, *sorted({each for each in inner if column.low < each < column.high}), column.high)


def _multiples(column: NumberColumn) -> list[float]:
    low, high = Fraction(column.low), Fraction(column.high)
    least = (high - low) / MOST_STEPS
    power = Fraction(10) ** (math.floor(math.log10(least.numerator) - math.log10(least.denominator)) - 1)
    step = next(factor * power for factor in (1, 2, 5, 10, 20, 50, 100, 200) if factor * power >= least)
    return [float(k * step) for k in range(math.ceil(low / step), math.floor(high / step) + 1)]


def _even_in_logarithm(column: NumberColumn) -> list[float]:
    if column.scale == "log10":
        return [float(f"{number:.2e}") for number in column.numbers_at(np.arange(1, MOST_STEPS) / MOST_STEPS).tolist()]
    length = math.log1p(column.high - column.low)
    return [column.low + float(f"{math.expm1(length * k / MOST_STEPS):.2e}") for k in range(1, MOST_STEPS)]
