"""Effects drawn with Matplotlib: small multiples with one scale of effects."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from confide.displays.axes import BLUE, plain, pyplot_for, shortened, tidied
from confide.effects.effects import Effect
from confide.effects.points import MISSING, Points
from confide.effects.ticks import effect_limits, number_text, shown_levels, ticks_of
from confide.errors import ParameterError
from confide.features.columns import NumberColumn

_MOST_IN_A_LINE, _MOST_LEVELS, _LONGEST_NAME = 3, 12, 22
_PLACE_OF_MISSING, _END_WITHOUT_MISSING = 1.22, 1.04
"""On the column's own scale, which goes from -1 to 1."""


@dataclass(frozen=True, slots=True)
class Pen:
    """How the effects of one model are drawn.

    Attributes
    ----------
    colour, line : as Matplotlib names them
    shift : how far points of levels stand beside their place, so that those of several models do not hide each other
    has_outer_band : whether the band for all values of a column together is drawn
    label : the name of the model in the legend, or None
    """

    colour: str = BLUE
    line: str = "-"
    shift: float = 0.0
    has_outer_band: bool = True
    label: str | None = None


def draw_effects(effects: Sequence[Effect], outcome: str, level: float, ax: Any = None) -> tuple[Any, list[Any]]:
    """Draw effects of single columns.

    Parameters
    ----------
    effects : at least one
    outcome : what a larger score stands for
    level : of the bands
    ax : Matplotlib axes whose place is divided among the effects, or None for a new figure

    Returns
    -------
    The figure, and one of its axes for each effect.

    Raises
    ------
    ParameterError
        If Matplotlib is not installed, or several effects are to be drawn on axes that are no part of a grid.
    """
    figure, axes = _grid(len(effects), ax)
    limits = effect_limits(effects)
    for one, effect in zip(axes, effects, strict=True):
        _draw(one, effect, limits, Pen())
    has_bands = any(effect.has_band for effect in effects)
    bands = f"bands at {level:g}, for sampling and noise: inner for each value, outer for all values of a column"
    _explain(axes, effects, outcome, bands if has_bands else "", figure if ax is None else None)
    return figure, axes


def draw_compared_effects(
    several: Mapping[str, Sequence[Effect]], pens: Sequence[Pen], outcome: str, level: float, ax: Any = None
) -> tuple[Any, list[Any]]:
    """Draw the effects of the same columns of several models, one over the other.

    Parameters
    ----------
    several : the effects of each model by its name, in the same order of columns
    pens : how the effects of each model are drawn
    outcome, level, ax : as for `draw_effects`

    Returns
    -------
    The figure, and one of its axes for each column.

    Raises
    ------
    ParameterError
        As in `draw_effects`.
    """
    first = next(iter(several.values()))
    figure, axes = _grid(len(first), ax)
    limits = effect_limits([effect for effects in several.values() for effect in effects])
    for pen, effects in zip(pens, several.values(), strict=True):
        for one, effect in zip(axes, effects, strict=True):
            _draw(one, effect, limits, pen)
    has_bands = any(effect.has_band for effects in several.values() for effect in effects)
    bands = f"bands at {level:g} for each value, for sampling and noise" if has_bands else ""
    _explain(axes, first, outcome, bands, figure if ax is None else None)
    return figure, axes


def _grid(n: int, ax: Any) -> tuple[Any, list[Any]]:
    """A figure with axes for so many effects, in place of the axes that were given."""
    plt = pyplot_for("plot_effects")
    n_columns = min(n, _MOST_IN_A_LINE)
    n_lines = math.ceil(n / n_columns)
    if ax is None:
        figure = plt.figure(figsize=(max(4.8, 3.6 * n_columns), 2.9 * n_lines + 0.5), layout="constrained")
        grid = figure.add_gridspec(n_lines, n_columns)
    elif n == 1:
        return ax.figure, [ax]
    else:
        if ax.get_subplotspec() is None:
            raise ParameterError("several effects need axes from plt.subplots, or ax=None for a new figure.")
        figure, grid = ax.figure, ax.get_subplotspec().subgridspec(n_lines, n_columns, wspace=0.45, hspace=0.6)
        ax.set_axis_off()
    return figure, [figure.add_subplot(grid[divmod(place, n_columns)]) for place in range(n)]


def _draw(ax: Any, effect: Effect, limits: tuple[float, float], pen: Pen) -> None:
    (_draw_curve if effect.is_curve else _draw_levels)(ax, effect, limits, pen)
    tidied(ax)


def _explain(axes: list[Any], effects: Sequence[Effect], outcome: str, bands: str, figure: Any) -> None:
    for one, effect in zip(axes, effects, strict=True):
        label = plain(f"effect on {outcome}") if len(axes) == 1 else "effect"
        (one.set_ylabel if effect.is_curve else one.set_xlabel)(label, fontsize="small")
    if figure is not None:
        figure.suptitle(plain(f"Effects on {outcome}" + (f"\n{bands}" if bands else "")), fontsize="medium")


def _draw_curve(ax: Any, effect: Effect, limits: tuple[float, float], pen: Pen) -> None:
    points = effect.points[0]
    assert isinstance(points.column, NumberColumn)  # noqa: S101  # a curve is that of a number
    column, numbers = points.column, [value.value for value in effect.curve]
    if points.is_log:
        # Below low there is only the margin of the axis.
        ax.set_xscale(
            "function",
            functions=(
                lambda x: np.log1p(np.maximum((x - column.low) / column.doubling, -0.999)),
                lambda t: np.expm1(t) * column.doubling + column.low,
            ),
        )
    if effect.has_band:
        for low, high, alpha in (("joint_low", "joint_high", 0.2), ("low", "high", 0.3))[1 - pen.has_outer_band :]:
            ends = ([getattr(value, end) for value in effect.curve] for end in (low, high))
            ax.fill_between(numbers, *ends, color=pen.colour, alpha=alpha, linewidth=0.0)
    ax.axhline(0.0, color="0.5", linewidth=0.8)
    effects = [value.effect for value in effect.curve]
    ax.plot(numbers, effects, color=pen.colour, linewidth=2.0, linestyle=pen.line, label=pen.label)
    absent = [value for value in effect.levels if value.value == MISSING]
    end = _number_at(points, _PLACE_OF_MISSING)
    ticks = {tick: number_text(tick) for tick in ticks_of(points)}
    if absent:
        _draw_point(ax, absent[0], end + pen.shift * 0.1 * (column.high - column.low), pen, True, effect.has_band)
        ticks = {tick: text for tick, text in ticks.items() if tick < _number_at(points, 0.8)} | {end: "missing"}
    ax.set_xticks(list(ticks), list(ticks.values()))
    ax.set_xticks(numbers[1:-1], minor=True)  # the knots
    ax.tick_params(axis="x", which="minor", length=7, width=0.8, direction="in", color=pen.colour)
    ax.tick_params(labelsize="small")
    ax.set_xlim(_number_at(points, -1.04), _number_at(points, _PLACE_OF_MISSING + 0.12 if absent else _END_WITHOUT_MISSING))
    ax.set_ylim(*limits)
    ax.set_title(plain(effect.title), fontsize="medium")


def _draw_levels(ax: Any, effect: Effect, limits: tuple[float, float], pen: Pen) -> None:
    shown = shown_levels(effect, _MOST_LEVELS)
    ax.axvline(0.0, color="0.5", linewidth=0.8)
    for place, value in enumerate(shown):
        _draw_point(ax, value, place + pen.shift, pen, False, effect.has_band, pen.label if place == 0 else None)
    names = (str(value.value) for value in shown)
    ax.set_yticks(
        range(len(shown)),
        [shortened(name, _LONGEST_NAME) for name in names],
    )
    ax.tick_params(labelsize="small")
    ax.set_ylim(len(shown) - 0.5, -0.5)
    ax.set_xlim(*limits)
    few = "" if len(shown) == len(effect.levels) else f" ({len(shown)} of {len(effect.levels)} levels)"
    ax.set_title(plain(f"{effect.title}{few}"), fontsize="medium")


def _draw_point(
    ax: Any, value: Any, place: float, pen: Pen, upright: bool, has_band: bool, label: str | None = None
) -> None:
    def both(effects: list[float]) -> tuple[list[float], list[float]]:
        places = [place] * len(effects)
        return (places, effects) if upright else (effects, places)

    if has_band:
        wide = {"color": pen.colour, "linewidth": 5.0, "solid_capstyle": "butt"}
        if pen.has_outer_band:
            ax.plot(*both([value.joint_low, value.joint_high]), alpha=0.3, **wide)
        ax.plot(*both([value.low, value.high]), alpha=0.5, **wide)
    ax.plot(*both([value.effect]), color=pen.colour, marker="o", markersize=5.0, linestyle="", label=label)


def _number_at(points: Points, place: float) -> float:
    """The number at a place of the column's own scale, on which low is at -1 and high at 1."""
    column = points.column
    assert isinstance(column, NumberColumn)  # noqa: S101  # asked of numbers alone
    return float(column.numbers_at(np.array([0.5 * (place + 1.0)]))[0])
