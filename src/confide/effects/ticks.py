"""Where the axes of a picture of effects have numbers, and which levels of a category it shows."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from confide.effects.effects import Effect, Value
from confide.effects.points import Points
from confide.features.columns import NumberColumn, shown_number

_CLOSEST = 0.13
"""Numbers on an axis are at least this share of its length apart, so that their texts do not touch."""


def even_ticks(low: float, high: float, most: int = 5) -> list[float]:
    """Round numbers from low to high, evenly spaced, at most so many."""
    rough = (high - low) / most
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(step for factor in (1.0, 2.0, 5.0, 10.0, 20.0) if (high - low) / (step := factor * power) <= most)
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [round(place * step, 12) for place in range(first, last + 1)]


def ticks_of(points: Points) -> list[float]:
    """Numbers for the axis of a column, in its own unit: round numbers, on a log scale powers of ten."""
    column = points.column
    if not isinstance(column, NumberColumn):
        return []
    if not points.is_log:
        return even_ticks(column.low, column.high)
    largest = max(abs(column.low), abs(column.high))
    powers = [10.0**power for power in range(math.ceil(math.log10(largest)) + 1)] if largest >= 1.0 else []
    if column.scale == "log10":
        low, high = math.floor(math.log10(column.low)), math.ceil(math.log10(column.high))
        factors = (1.0,) if column.high >= 100.0 * column.low else (1.0, 2.0, 5.0)
        powers = [float(f"{factor}e{power}") for power in range(low, high + 1) for factor in factors]
    round_numbers = {column.low, 0.0, *powers, *(-power for power in powers)}
    kept: list[float] = []
    for number in sorted(value for value in round_numbers if column.low <= value <= column.high):
        places = column.stretched(np.array([*kept[-1:], number], dtype=np.float64))
        if not kept or (places[-1] - places[0]) / 2.0 >= _CLOSEST:
            kept.append(number)
    return kept if len(kept) > 1 else [column.low, column.high]


def number_text(number: float) -> str:
    """A number for an axis, in few characters: 10k for 10,000."""
    for unit, letter in ((1e9, "G"), (1e6, "M"), (1e4, "k")):
        if abs(number) >= unit:
            size = number / (1e3 if letter == "k" else unit)
            return f"{shown_number(round(size, 3))}{letter}"
    return str(shown_number(round(number, 6)))


def effect_limits(effects: Sequence[Effect]) -> tuple[float, float]:
    """The range of effects that pictures show: all effects, and their bands up to twice the range of the effects.

    It is the same for all columns of a model, so that large effects look large.
    """
    values = [value for effect in effects for value in effect.values]
    lows, highs = [min(0.0, *(value.effect for value in values))], [max(0.0, *(value.effect for value in values))]
    wide = (highs[0] - lows[0]) or 1.0
    for value in values:
        for end, ends in ((value.joint_low, lows), (value.joint_high, highs)):
            if end is not None and math.isfinite(end):
                ends.append(end)
    low, high = max(min(lows), lows[0] - 0.5 * wide), min(max(highs), highs[0] + 0.5 * wide)
    margin = 0.05 * (high - low) or 0.5
    return low - margin, high + margin


def shown_levels(effect: Effect, most: int) -> list[Value]:
    """The levels of a category from the largest effect to the smallest; if there are too many, the two ends of the list."""
    ranked = sorted(effect.levels, key=lambda value: -value.effect)
    return ranked if len(ranked) <= most else ranked[: most - most // 2] + ranked[-(most // 2) :]
