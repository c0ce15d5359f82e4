"""What interactions add, as small maps in SVG: one cell for each pair of values, coloured by the sign of what is added.

Sizes are shown by how strong a colour is, and by the number in the title of each cell, which the pointer shows.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from confide.effects.effects import Effect, Value
from confide.effects.points import MISSING, Points
from confide.effects.ticks import number_text

STYLE = """
.surfaces { display: flex; flex-wrap: wrap; gap: 1.1rem 1.4rem; }
.surfaces figure { margin: 0; width: 19rem; max-width: 100%; }
.surfaces figcaption { font-weight: 600; overflow-wrap: anywhere; }
.surfaces svg { width: 100%; height: auto; display: block; }
.surfaces .more { fill: var(--mark); } .surfaces .less { fill: var(--less); }
.surfaces .cell { stroke: var(--line); stroke-width: .4; }
"""
_WIDTH, _NAMES, _CELL, _TOP, _BELOW = 304, 104, 20, 6, 56
_MOST_VALUES, _LONGEST_NAME = 10, 13


def surface_drawings(effects: Sequence[Effect]) -> str:
    """Maps of the interactions of two columns, side by side where there is room. All others are left out."""
    pairs = [effect for effect in effects if len(effect.columns) == 2 and effect.values]
    if not pairs:
        return ""
    largest = max((abs(value.effect) for effect in pairs for value in effect.values), default=0.0) or 1.0
    return f'<div class="surfaces">{"".join(_figure(effect, largest) for effect in pairs)}</div>'


def _figure(effect: Effect, largest: float) -> str:
    first, second = (points.column.title for points in effect.points)
    title = f"{first} and {second}" if effect.label is None else f"{effect.label}: {first} and {second}"
    values = {value.value: value for value in effect.values}
    down, across = (_shown_values(points, effect, axis) for axis, points in enumerate(effect.points))
    width = (_WIDTH - _NAMES - 6) / len(across)
    bottom = _TOP + _CELL * len(down)
    marks = []
    for row, of_first in enumerate(down):
        y = _TOP + _CELL * row
        marks.append(
            f'<text x="{_NAMES - 6}" y="{y + 14}" text-anchor="end">{escape(_short(of_first, _LONGEST_NAME))}</text>'
        )
        for column, of_second in enumerate(across):
            value = values[(of_first, of_second)]
            marks.append(_cell(_NAMES + width * column, y, width, value, largest, effect.columns))
    marks += _labels_below(across, width, bottom)
    told = (
        f"What the interaction of {first} and {second} adds: from {min(v.effect for v in effect.values):+.2f} to "
        f"{max(v.effect for v in effect.values):+.2f}."
    )
    return (
        f'<figure><figcaption>{escape(title)}</figcaption><svg role="img" aria-label="{escape(told)}" '
        f'viewBox="0 0 {_WIDTH} {bottom + _BELOW}"><title>{escape(told)}</title>{"".join(marks)}</svg></figure>'
    )


def _cell(x: float, y: float, width: float, value: Value, largest: float, columns: tuple[str, ...]) -> str:
    kind = "more" if value.effect >= 0.0 else "less"
    strength = 0.06 + 0.9 * abs(value.effect) / largest
    pairs = ", ".join(f"{name} {_short(one, 60)}" for name, one in zip(columns, value.value, strict=True))
    band = ""
    if value.low is not None and value.high is not None:
        band = f" ({value.low:+.2f} to {value.high:+.2f})"
    return (
        f'<rect class="cell {kind}" x="{x:.1f}" y="{y}" width="{width:.1f}" height="{_CELL}" fill-opacity="{strength:.2f}">'
        f"<title>{escape(pairs)}: {value.effect:+.3f}{band}</title></rect>"
    )


def _labels_below(across: Sequence[object], width: float, bottom: float) -> list[str]:
    """The values of the second column, turned where they are many."""
    found = []
    for place, value in enumerate(across):
        x = _NAMES + width * (place + 0.5)
        turned = f'transform="rotate(-40 {x:.1f} {bottom + 12})" text-anchor="end"' if width < 60 else 'text-anchor="middle"'
        found.append(f'<text x="{x:.1f}" y="{bottom + 14}" {turned}>{escape(_short(value, 10))}</text>')
    return found


def _shown_values(points: Points, effect: Effect, axis: int) -> list[object]:
    """The values of one column: all, or evenly many numbers, or the levels for which most is added or taken away."""
    values = list(points.values)
    if len(values) <= _MOST_VALUES:
        return values
    if points.n_numbers:
        steps = _MOST_VALUES - 1
        places = [round(place * (points.n_numbers - 1) / steps) for place in range(steps + 1)]
        return [values[place] for place in places] + [value for value in values[points.n_numbers :] if value == MISSING]
    sizes = {level: max(abs(v.effect) for v in effect.values if v.value[axis] == level) for level in values}
    kept = set(sorted(values, key=lambda level: -sizes[level])[:_MOST_VALUES])
    return [level for level in values if level in kept]


def _short(value: object, longest: int) -> str:
    text = (
        number_text(float(f"{value:.4g}")) if isinstance(value, float | int) and not isinstance(value, bool) else str(value)
    )
    return text if len(text) <= longest else f"{text[: longest - 1]}…"
