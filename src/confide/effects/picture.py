"""Effects drawn with Matplotlib: small multiples with one scale of effects."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from textwrap import fill
from typing import Any, Self

import numpy as np

from confide.effects.effects import MISSING, Effect, Points, Value
from confide.errors import ParameterError, checked_axes, imported, wording
from confide.features.cells import day_number, part_of, shown_days
from confide.features.columns import shown_number, with_unit

# Where the axes of a picture of effects have numbers, and which levels of a category it shows.

_CLOSEST = 0.13
"""Numbers on an axis are at least this share of its length apart, so that their texts do not touch."""
_WIDTH_OF_LETTER = 5.5
"""Points that a digit takes in small letters; a sign takes more, and a point less."""
_MONTHS_BETWEEN_TICKS = (1, 2, 3, 4, 6, 12, 24, 60, 120, 240, 600, 1200, 2400, 6000, 12_000, 24_000)
"""How far apart the dates on an axis may be."""


def even_ticks(low: float, high: float, most: int = 5) -> list[float]:
    """Round numbers from low to high, evenly spaced, at most so many."""
    power = 10.0 ** math.floor(math.log10((high - low) / most))
    step = next(step for factor in (1.0, 2.0, 5.0, 10.0, 20.0) if (high - low) / (step := factor * power) <= most)
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [round(place * step, 12) for place in range(first, last + 1)]


def spaced_ticks(low: float, high: float, room: float) -> dict[float, str]:
    """Round numbers for an axis of this length, in points, with their texts: as many as stand apart in small letters."""
    for most in (5, 4, 3, 2):
        ticks = {tick: number_text(tick) for tick in even_ticks(low, high, most)}
        step = min(np.diff(list(ticks)), default=high - low)
        if _WIDTH_OF_LETTER * (max(map(len, ticks.values()), default=0) + 2) <= room * step / (high - low):
            return ticks
    return {0.0: "0"} if low <= 0.0 <= high else {}


def ticks_of(points: Points) -> list[float]:
    """Numbers for the axis of a column, in its own unit: round numbers, on a log scale powers of ten, of dates months."""
    column = points.column
    if not column.is_number:
        return []
    if column.dates:
        first, last = (part_of(np.array(column.bounds), "year") * 12 + part_of(np.array(column.bounds), "month")).astype(int)
        for step in _MONTHS_BETWEEN_TICKS:
            months = (divmod(month, 12) for month in range(step * math.ceil(first / step), last + 1, step))
            days = (day_number(f"{year:04}-{month + 1:02}-01") for year, month in months if 0 < year < 10_000)
            within = [day for day in days if day is not None and column.low <= day <= column.high]
            # A month takes more letters than a year, and missing cells have a place of their own.
            apart = 30.4 * step / (column.high - column.low) * (0.8 if column.missing else 1.0)
            if apart >= (0.16 if step >= 12 else 0.3):
                break
        middle = [day for day in within if 0.38 < (day - column.low) / (column.high - column.low) < 0.62]
        return within if len(within) > 1 else [column.low, *middle, column.high]
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


def tick_text(points: Points, number: float) -> str:
    """The text of a number on the axis of a column: where numbers reach 10,000, also 1,000 is 1k."""
    column = points.column
    if column.is_number and column.dates:
        return shown_days([number])[0].removesuffix("-01").removesuffix("-01")
    return number_text(number, 1e3 if column.is_number and max(map(abs, column.bounds)) >= 1e4 else 1e4)


def number_text(number: float, least: float = 1e4) -> str:
    """A number for an axis, in few characters: 10k for 10,000, and so for all from the least on."""
    for unit, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(number) >= max(unit, least):
            return f"{shown_number(round(number / unit, 3))}{letter}"
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
    """The levels of a category from the largest effect to the smallest; if there are too many, the two ends of the list.

    Those of an ordered category, and of a part of a date, keep their order.
    """
    column: Any = effect.points[0].column
    has_order = column.is_number or column.part
    ranked = list(effect.levels) if has_order else sorted(effect.levels, key=lambda value: -value.effect)
    return ranked if len(ranked) <= most else ranked[: most - most // 2] + ranked[-(most // 2) :]


# Matplotlib axes to draw on, in the one style of all pictures.

BLUE, ORANGE = "#2a8acb", "#d1700f"
"""Two colours that stand out from white and from black, and that people with any kind of colour vision tell apart."""


class Display(ABC):
    """A picture by scikit-learn's convention: it is drawn when it is made, and can be drawn again on other axes.

    Attributes
    ----------
    axes_ : list of Matplotlib axes on which it was drawn
    ax_ : the first of them
    figure_ : the Matplotlib figure
    """

    axes_: list[Any]

    def plot(self, ax: Any = None) -> Self:
        """Draw on Matplotlib axes, or on a new figure.

        Parameters
        ----------
        ax : Matplotlib axes or None
            None makes a new figure. A picture of several columns divides the place of the axes among them.

        Returns
        -------
        The display itself.

        Raises
        ------
        ParameterError
            If Matplotlib is not installed.
        """
        self._draw(ax)
        return self

    @abstractmethod
    def _draw(self, ax: Any) -> None:
        """Draw on these axes, or on those of a new figure, and keep them as `axes_`."""

    def _on(self, ax: Any, size: tuple[float, float]) -> Any:
        """The axes to draw on, which are kept: see `axes_for`."""
        self.axes_ = [axes_for(type(self).__name__, ax, size)]
        return self.axes_[0]

    @property
    def ax_(self) -> Any:
        """The axes, or the first of several."""
        return self.axes_[0]

    @property
    def figure_(self) -> Any:
        """The figure of the axes."""
        return self.axes_[0].figure


def pyplot_for(what: str) -> Any:
    """Matplotlib's interface for figures.

    Parameters
    ----------
    what : what needs it, for the message

    Raises
    ------
    ParameterError
        If Matplotlib is not installed.
    """
    imported("matplotlib", what, "plot")
    from matplotlib import pyplot as plt

    return plt


def axes_for(what: str, ax: Any, size: tuple[float, float]) -> Any:
    """The axes to draw on: those that were given, or those of a new figure of this size in inches."""
    plt = pyplot_for(what)
    given = checked_axes("ax", ax)
    return tidied(plt.figure(figsize=size, layout="constrained").add_subplot() if given is None else given)


def tidied(ax: Any) -> Any:
    """The same axes with a quiet grid behind the drawing, and without a frame above and to the right."""
    ax.grid(color="0.5", alpha=0.25, linewidth=0.6)
    ax.set_axisbelow(True)
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)
    return ax


def plain(text: str) -> str:
    """Text in which Matplotlib finds no formula."""
    return text.replace("$", r"\$")


def broken(text: str, width: float) -> str:
    """Plain text whose lines have at most about so many characters."""
    return plain("\n".join(fill(line, int(width)) for line in text.split("\n")))


def shortened(text: str, most: int) -> str:
    """Plain text of at most so many characters."""
    return plain(text if len(text) <= most else f"{text[: most - 1]}…")


_MOST_IN_A_LINE, _MOST_LEVELS, _LONGEST_NAME = 3, 12, 22
NOISE_IN_PICTURE = wording("noise in a picture")
KNOTS_IN_PICTURE = (
    "blue ticks: knots, between which a curve is a straight line",
    "blue ticks: knots, between which random features bend a curve, too",
)
GREYS = (0.28, 0.16)
_PLACE_OF_MISSING, _END_WITHOUT_MISSING = 1.22, 1.04
"""On the column's own scale, which goes from -1 to 1."""


def draw_effects(
    effects: Sequence[Effect], outcome: str, level: float, ax: Any = None, beside: str = ""
) -> tuple[Any, list[Any]]:
    """Draw effects of single columns of a model.

    Parameters
    ----------
    effects : at least one
    outcome : what a larger score stands for
    level : of the bands
    ax : Matplotlib axes whose place is divided among the effects, or None for a new figure
    beside : what is said of interactions, which are not drawn

    Returns
    -------
    The figure, and one of its axes for each column.

    Raises
    ------
    ParameterError
        If Matplotlib is not installed, or several effects are to be drawn on axes that are no part of a grid.
    """
    figure, axes = _grid(len(effects), ax)
    limits = effect_limits(effects)
    bands = f"\nbands at {level:g}, for sampling and noise: inner for each value, outer for all values of a column"
    noise = f"\n{NOISE_IN_PICTURE}" * any(effect.values[0].noise for effect in effects)
    knots = {points.steps > 1 for effect in effects for points in effect.points if effect.is_curve and points.inner_knots}
    noise += "".join(f"\n{line}" for line in (*[KNOTS_IN_PICTURE[True in knots]] * len(knots), beside) if line)
    for one, effect in zip(axes, effects, strict=True):
        (_draw_curve if effect.is_curve else _draw_levels)(one, effect, limits)
        tidied(one)
        label = plain(f"effect on {outcome}") if len(axes) == 1 else "effect"
        (one.set_ylabel if effect.is_curve else one.set_xlabel)(label, fontsize="small")
    if ax is None:
        bands = bands if any(effect.has_band for effect in effects) else ""
        figure.suptitle(broken(f"Effects on {outcome}{bands}{noise}", 12.0 * figure.get_figwidth()), fontsize="medium")
    return figure, axes


def _grid(n: int, ax: Any) -> tuple[Any, list[Any]]:
    """A figure with axes for so many effects, in place of the axes that were given."""
    plt = pyplot_for("plot_effects")
    n_columns = min(n, _MOST_IN_A_LINE)
    n_lines = math.ceil(n / n_columns)
    if checked_axes("ax", ax) is None:
        figure = plt.figure(figsize=(max(4.8, 2.9 * n_columns), 2.7 * n_lines + 0.5), layout="constrained")
        grid = figure.add_gridspec(n_lines, n_columns)
    elif n == 1:
        return ax.figure, [ax]
    else:
        if ax.get_subplotspec() is None:
            raise ParameterError("several effects need axes from plt.subplots, or ax=None for a new figure.")
        figure, grid = ax.figure, ax.get_subplotspec().subgridspec(n_lines, n_columns, wspace=0.45, hspace=0.6)
        ax.set_axis_off()
    return figure, [figure.add_subplot(grid[divmod(place, n_columns)]) for place in range(n)]


def _draw_curve(ax: Any, effect: Effect, limits: tuple[float, float]) -> None:
    points = effect.points[0]
    assert points.column.is_number  # noqa: S101  # a curve is that of a number
    column, numbers = points.column, list(points.numbers)
    if points.is_log:
        # Below low there is only the margin of the axis.
        ax.set_xscale(
            "function",
            functions=(
                lambda x: np.log1p(np.maximum((x - column.low) / column.doubling, -0.999)),
                lambda t: np.expm1(t) * column.doubling + column.low,
            ),
        )
    for reach, alpha in zip(zip(*(value.noise for value in effect.curve), strict=True), GREYS, strict=False):
        ax.fill_between(numbers, [-size for size in reach], reach, color="0.5", alpha=alpha, linewidth=0.0)
    if effect.has_band:
        for low, high, alpha in (("joint_low", "joint_high", 0.2), ("low", "high", 0.3)):
            ends = ([getattr(value, end) for value in effect.curve] for end in (low, high))
            ax.fill_between(numbers, *ends, color=BLUE, alpha=alpha, linewidth=0.0)
    ax.axhline(0.0, color="0.5", linewidth=0.8)
    ax.plot(numbers, [value.effect for value in effect.curve], color=BLUE, linewidth=2.0)
    for atom, value in effect.atoms:
        _draw_point(ax, value, atom, True, effect.has_band)
    absent = [value for value in effect.levels if value.value == MISSING]
    end = _number_at(points, _PLACE_OF_MISSING)
    ticks = {tick: tick_text(points, tick) for tick in ticks_of(points)}
    if absent:
        _draw_point(ax, absent[0], end, True, effect.has_band)
        ticks = {tick: text for tick, text in ticks.items() if tick < _number_at(points, 0.8)} | {end: "missing"}
    ax.set_xticks(list(ticks), list(ticks.values()))
    ax.set_xticks(points.inner_knots, minor=True)
    ax.tick_params(axis="x", which="minor", length=7, width=0.8, direction="in", color=BLUE)
    ax.tick_params(labelsize="small")
    ax.set_xlim(_number_at(points, -1.04), _number_at(points, _PLACE_OF_MISSING + 0.12 if absent else _END_WITHOUT_MISSING))
    ax.set_ylim(*limits)
    ax.set_title(plain(effect.title), fontsize="medium")


def _draw_levels(ax: Any, effect: Effect, limits: tuple[float, float]) -> None:
    shown = shown_levels(effect, _MOST_LEVELS)
    ax.axvline(0.0, color="0.5", linewidth=0.8)
    for place, value in enumerate(shown):
        _draw_point(ax, value, place, False, effect.has_band)
    ax.set_yticks(range(len(shown)), [shortened(str(value.value), _LONGEST_NAME) for value in shown])
    ax.tick_params(labelsize="small")
    ax.set_ylim(len(shown) - 0.5, -0.5)
    ticks = spaced_ticks(*limits, 72.0 * ax.figure.get_figwidth() * ax.get_position().width)
    ax.set_xticks(list(ticks), list(ticks.values()))
    ax.set_xlim(*limits)
    few = "" if len(shown) == len(effect.levels) else f" ({len(shown)} of {len(effect.levels)} levels)"
    ax.set_title(plain(f"{effect.title}{few}"), fontsize="medium")


def _draw_point(ax: Any, value: Any, place: float, upright: bool, has_band: bool) -> None:
    def both(effects: list[float]) -> tuple[list[float], list[float]]:
        places = [place] * len(effects)
        return (places, effects) if upright else (effects, places)

    for size, alpha in zip(() if upright else value.noise, GREYS, strict=False):
        ax.plot(*both([-size, size]), color="0.5", alpha=alpha, linewidth=10.0, solid_capstyle="butt")
    if has_band:
        wide = {"color": BLUE, "linewidth": 5.0, "solid_capstyle": "butt"}
        ax.plot(*both([value.joint_low, value.joint_high]), alpha=0.3, **wide)
        ax.plot(*both([value.low, value.high]), alpha=0.5, **wide)
    ax.plot(*both([value.effect]), color=BLUE, marker="o", markersize=5.0, linestyle="")


def _number_at(points: Points, place: float) -> float:
    """The number at a place of the column's own scale, on which low is at -1 and high at 1."""
    column = points.column
    assert column.is_number  # noqa: S101  # asked of numbers alone
    return float(column.numbers_at(np.array([0.5 * (place + 1.0)]))[0])


# Curves as lines of block characters.

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
    shown = []
    for one, points in zip(value if isinstance(value, tuple) else (value,), effect.points, strict=True):
        text = dict(zip(points.values, points.texts, strict=True))[one]
        shown.append(with_unit(text, points.column.unit) if points.column.is_number and one != MISSING else text)
    return ", ".join(shown)
