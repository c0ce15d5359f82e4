"""Effects as small drawings in SVG: a curve for each number, a list of points for each category, on one scale of effects.

Colours are those of the style sheet of the page, so that they follow a light or a dark screen and paper.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape

import numpy as np

from confide.effects.effects import Effect, Value
from confide.effects.points import MISSING, Points
from confide.effects.ticks import effect_limits, even_ticks, number_text, shown_levels, ticks_of
from confide.features.columns import NumberColumn

STYLE = """
.effects { display: flex; flex-wrap: wrap; gap: 1.1rem 1.4rem; }
.effects figure { margin: 0; width: 19rem; max-width: 100%; }
.effects figcaption { font-weight: 600; overflow-wrap: anywhere; }
.effects svg { width: 100%; height: auto; display: block; }
.effects .grid { stroke: var(--line); stroke-width: .4; } .effects .zero { stroke: var(--quiet); stroke-width: 1; }
.effects .curve { stroke: var(--mark); stroke-width: 2.2; fill: none; } .effects .point { fill: var(--mark); }
.effects .joint { fill: var(--mark); fill-opacity: .18; } .effects .alone { fill: var(--mark); fill-opacity: .32; }
.effects .knot { stroke: var(--mark); stroke-width: 1.4; }
"""
_WIDTH, _LEFT, _RIGHT, _TOP, _HEIGHT, _BELOW = 304, 38, 10, 8, 150, 36
_NAMES, _LINE, _LONGEST_NAME, _NARROWED_NAME = 130, 19, 14, 24
MOST_LEVELS = 20
"""Of a category with more levels, only the two ends of the list are drawn."""
_PART_FOR_MISSING = 0.16
"""The part of a curve's width that is kept for the point of missing cells."""


def effect_drawings(
    effects: Sequence[Effect], limits: tuple[float, float] | None = None, most_levels: int = MOST_LEVELS
) -> str:
    """Drawings of the effects of single columns, side by side where there is room. Interactions are left out.

    Parameters
    ----------
    effects : the effects
    limits : the scale of effects that all drawings share; by default that of these effects
    most_levels : of a category with more levels, those with the largest and the least effects are drawn
    """
    alone = [effect for effect in effects if len(effect.columns) == 1]
    if not alone:
        return ""
    limits = limits or effect_limits(alone)
    return f'<div class="effects">{"".join(_figure(effect, limits, most_levels) for effect in alone)}</div>'


def _figure(effect: Effect, limits: tuple[float, float], most_levels: int) -> str:
    few = ""
    if effect.is_curve:
        drawn = _curve(effect, limits)
    else:
        shown = shown_levels(effect, most_levels)
        drawn = _levels(effect, shown, limits)
        few = "" if len(shown) == len(effect.levels) else f" ({len(shown)} of {len(effect.levels)} levels)"
    title = f"{effect.label}: {effect.title}" if effect.label is not None else effect.title
    return f"<figure><figcaption>{escape(title)}{few}</figcaption>{drawn}</figure>"


def _curve(effect: Effect, limits: tuple[float, float]) -> str:
    points, absent = effect.points[0], [value for value in effect.levels if value.value == MISSING]
    width = (_WIDTH - _LEFT - _RIGHT) * (1.0 - _PART_FOR_MISSING * bool(absent))
    low, high = limits
    bottom = _TOP + _HEIGHT

    def y_of(number: float) -> float:
        return _TOP + _HEIGHT * (high - min(max(number, low), high)) / (high - low)

    def x_of(place: float) -> float:
        return _LEFT + width * (place + 1.0) / 2.0

    marks = [_line(_LEFT, y_of(tick), _WIDTH - _RIGHT, y_of(tick), "grid") for tick in even_ticks(low, high, 7)]
    marks += [_text(_LEFT - 5, y_of(tick) + 4, f"{tick:g}", "end") for tick in even_ticks(low, high, 7)]
    marks.append(_line(_LEFT, y_of(0.0), _WIDTH - _RIGHT, y_of(0.0), "zero"))
    places = [x_of(place) for place in points.positions.tolist()]
    for band in zip(*map(_intervals, effect.curve), strict=True) if effect.has_band else ():
        upper = [(x, y_of(most)) for x, (_, most, _) in zip(places, band, strict=True)]
        lower = [(x, y_of(least)) for x, (least, _, _) in zip(places, band, strict=True)]
        kind = band[0][2]
        marks.append(f'<polygon class="{kind}" points="{_path([*upper, *reversed(lower)])}"/>')
    line = [(x, y_of(value.effect)) for x, value in zip(places, effect.curve, strict=True)]
    marks.append(f'<polyline class="curve" points="{_path(line)}"/>')
    marks += [_line(x, bottom - 6, x, bottom, "knot") for x in places[1:-1]]
    for tick, place in _places_of_ticks(points):
        anchor = (
            "end" if place > 0.9 and not absent else "start" if place < -0.95 and len(number_text(tick)) > 4 else "middle"
        )
        marks.append(_text(x_of(place), bottom + 16, number_text(tick), anchor))
    if absent:
        x = _WIDTH - _RIGHT - 16
        for least, most, kind in _intervals(absent[0]):
            marks.append(_bar(kind, x - 4, y_of(most), 8, y_of(least) - y_of(most)))
        marks.append(_point(x, y_of(absent[0].effect)))
        marks.append(_text(_WIDTH - 2, bottom + 31, "missing", "end"))
    return _drawing(bottom + _BELOW, effect, marks)


def _levels(effect: Effect, shown: Sequence[Value], limits: tuple[float, float]) -> str:
    low, high = limits
    width, bottom = _WIDTH - _NAMES - _RIGHT, _TOP + _LINE * len(shown)

    def x_of(number: float) -> float:
        return _NAMES + width * (min(max(number, low), high) - low) / (high - low)

    marks = [_line(x_of(tick), _TOP, x_of(tick), bottom, "grid") for tick in even_ticks(low, high, 6)]
    marks += [_text(x_of(tick), bottom + 16, f"{tick:g}", "middle") for tick in even_ticks(low, high, 6)]
    marks.append(_line(x_of(0.0), _TOP, x_of(0.0), bottom, "zero"))
    for place, value in enumerate(shown):
        y, name = _TOP + _LINE * (place + 0.5), str(value.value)
        marks.append(_name(name, y + 4))
        for left, right, kind in _intervals(value):
            marks.append(_bar(kind, x_of(left), y - 4, x_of(right) - x_of(left), 8))
        marks.append(_point(x_of(value.effect), y))
    return _drawing(bottom + 22, effect, marks)


def _intervals(value: Value) -> list[tuple[float, float, str]]:
    """The two intervals of a value, if they are known, the wider one first."""
    pairs = ((value.joint_low, value.joint_high, "joint"), (value.low, value.high, "alone"))
    return [(low, high, kind) for low, high, kind in pairs if low is not None and high is not None and math.isfinite(high)]


def _places_of_ticks(points: Points) -> list[tuple[float, float]]:
    """The numbers of an axis, each with its place from -1 to 1."""
    column = points.column
    if not isinstance(column, NumberColumn):
        return []
    ticks = ticks_of(points)
    return list(zip(ticks, column.stretched(np.array(ticks, dtype=np.float64)).tolist(), strict=True))


def _drawing(height: float, effect: Effect, marks: list[str]) -> str:
    ranked = sorted(effect.values, key=lambda value: value.effect)
    least, most = ranked[0], ranked[-1]
    texts = dict(zip(effect.points[0].values, effect.points[0].texts, strict=True))
    # Screen readers read the title.
    title = (
        f"Effect of {effect.title}: least {least.effect:+.2f} at {texts[least.value]}, largest "
        f"{most.effect:+.2f} at {texts[most.value]}."
    )
    size = f'viewBox="0 0 {_WIDTH} {height:g}"'
    return f'<svg role="img" {size}><title>{escape(title)}</title>{"".join(marks)}</svg>'


def _line(x1: float, y1: float, x2: float, y2: float, kind: str) -> str:
    return f'<line class="{kind}" x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"/>'


def _bar(kind: str, x: float, y: float, width: float, height: float) -> str:
    return f'<rect class="{kind}" x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}"/>'


def _text(x: float, y: float, text: str, anchor: str) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(text)}</text>'


def _name(name: str, y: float) -> str:
    """The name of a level before its line. A long one is set in narrow letters; a very long one lacks its middle."""
    shown = name if len(name) <= _NARROWED_NAME else f"{name[: _NARROWED_NAME // 2]}…{name[1 - _NARROWED_NAME // 2 :]}"
    narrow = f' textLength="{_NAMES - 9}" lengthAdjust="spacingAndGlyphs"' if len(shown) > _LONGEST_NAME else ""
    return f'<text x="{_NAMES - 7}" y="{y:.1f}" text-anchor="end"{narrow}>{escape(shown)}</text>'


def _point(x: float, y: float) -> str:
    return f'<circle class="point" cx="{x:.1f}" cy="{y:.1f}" r="3.6"/>'


def _path(corners: list[tuple[float, float]]) -> str:
    return " ".join(f"{x:.1f},{y:.1f}" for x, y in corners)
