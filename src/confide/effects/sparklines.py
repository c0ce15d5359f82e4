"""Curves as lines of block characters."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from confide.effects.effects import Effect
from confide.effects.points import MISSING, Points
from confide.features.columns import NumberColumn, with_unit

_BLOCKS = "▁▂▃▄▅▆▇█"
_WIDTH = 16


def sparkline(effect: Effect, limits: tuple[float, float]) -> str:
    """The curve of a number from its low to its high on its own scale, between common limits; empty for a category."""
    if not effect.is_curve:
        return ""
    places = np.linspace(-1.0, 1.0, _WIDTH)
    heights = np.interp(places, effect.points[0].positions, [value.effect for value in effect.curve])
    low, high = limits
    steps = np.round((heights - low) / ((high - low) or 1.0) * (len(_BLOCKS) - 1)).astype(int)
    return "".join(_BLOCKS[step] for step in np.clip(steps, 0, len(_BLOCKS) - 1))


def extremes(effect: Effect) -> tuple[str, str]:
    """The values of a column with the smallest and with the largest effect, each with its effect."""
    ranked = sorted(effect.values, key=lambda value: value.effect)
    least, largest = (f"{_short(value.value, effect)} {value.effect:+.2f}" for value in (ranked[0], ranked[-1]))
    return least, largest


def common_limits(effects: Sequence[Effect]) -> tuple[float, float]:
    """The smallest and the largest effect of all curves."""
    heights = [value.effect for effect in effects if effect.is_curve for value in effect.curve]
    return (min(heights), max(heights)) if heights else (0.0, 1.0)


def _short(value: object, effect: Effect) -> str:
    several = value if isinstance(value, tuple) else (value,)
    return ", ".join(_with_its_unit(one, points) for one, points in zip(several, effect.points, strict=True))


def _with_its_unit(value: object, points: Points) -> str:
    text = str(value)
    if isinstance(value, float):
        text = f"{value:.4g}" if abs(value) < 1e4 else f"{value:.0f}"
    column = points.column
    return with_unit(text, column.unit) if isinstance(column, NumberColumn) and value != MISSING else text
