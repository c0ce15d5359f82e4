"""Drawings of the page, as SVG: intervals of coefficients, and bars of weights."""

from __future__ import annotations

import math
from html import escape

from scipy.special import ndtri

from confide.effects.ticks import even_ticks
from confide.inference.table import CoefficientTable

_MAX_BARS = 40
"""Only so many weights are drawn, the longest. The table on the page has them all."""
_LINE_HEIGHT = 22
_LEFT_MARGIN, _PLOT_WIDTH, _RIGHT_MARGIN = 210, 270, 20
_LIGHT_BLUE, _DARK_BLUE = "var(--light)", "var(--dark)"
"""Colours of the style sheet of the page, which differ between a light and a dark screen."""
_MAX_NAME_LENGTH, _LONGEST_NAME = 35, 27
"""Longer names are shortened in the middle, and names above the second length are set in narrow letters."""


def interval_plot(table: CoefficientTable, note: str = "", outcome: str = "") -> str:
    """The intervals as bars. The dark part of each is the interval that there would be without noise.

    `note` is added to the caption, and `outcome` stands below the axis.
    """
    quantile = float(ndtri(0.5 + 0.5 * table.level))
    shown = [c for c in table.coefficients if all(map(math.isfinite, (c.low, c.high)))]
    if not shown:
        return ""
    axis = _Axis.over([c.low for c in shown] + [c.high for c in shown])
    marks = []
    for place, one in enumerate(shown):
        without_noise = min(quantile * one.sampling_error, 0.5 * (one.high - one.low))
        middle = (place + 0.5) * _LINE_HEIGHT
        marks.append(
            _label(one.name, middle)
            + axis.bar(one.low, one.high, middle, 10, _LIGHT_BLUE)
            + axis.bar(one.estimate - without_noise, one.estimate + without_noise, middle, 10, _DARK_BLUE)
            + axis.tick(one.estimate, middle)
        )
    caption = f"Intervals at level {table.level:g}. Dark: due to sampling only. Light: with the noise for privacy added."
    return axis.drawing(marks, f"{caption} {note}".strip(), outcome)


def weight_plot(weights: list[tuple[str, float]], note: str = "", outcome: str = "") -> str:
    """The longest weights as bars from 0. `note` is added to the caption, and `outcome` stands below the axis."""
    longest = sorted(weights, key=lambda pair: -abs(pair[1]))[:_MAX_BARS]
    axis = _Axis.over([0.0, *(weight for _, weight in longest)])
    marks = [
        _label(name, (place + 0.5) * _LINE_HEIGHT)
        + axis.bar(min(0.0, w), max(0.0, w), (place + 0.5) * _LINE_HEIGHT, 12, _DARK_BLUE)
        for place, (name, w) in enumerate(longest)
    ]
    few = "" if len(longest) == len(weights) else f" The {len(longest)} longest of {len(weights)} are drawn."
    return axis.drawing(marks, f"Released weights.{few} {note}".strip(), outcome)


class _Axis:
    """The horizontal axis of a drawing: numbers to x coordinates."""

    def __init__(self, low: float, high: float) -> None:
        self._low, self._unit = low, _PLOT_WIDTH / (high - low)

    @classmethod
    def over(cls, values: list[float]) -> _Axis:
        """An axis that shows these values and 0."""
        low, high = min(0.0, *values), max(0.0, *values)
        margin = 0.03 * (high - low) or 1.0
        return cls(low - margin, high + margin)

    def x_of(self, value: float) -> float:
        return _LEFT_MARGIN + (value - self._low) * self._unit

    def bar(self, low: float, high: float, middle: float, thick: int, colour: str) -> str:
        x, y, long = self.x_of(low), middle - thick / 2, max(1.0, (high - low) * self._unit)
        return f'<rect x="{x:.1f}" y="{y:.1f}" width="{long:.1f}" height="{thick}" style="fill: {colour}"/>'

    def tick(self, value: float, middle: float) -> str:
        x = self.x_of(value)
        place = f'x1="{x:.1f}" y1="{middle - 7:.1f}" x2="{x:.1f}" y2="{middle + 7:.1f}"'
        return f'<line {place} style="stroke: var(--text)" stroke-width="1.5"/>'

    def drawing(self, marks: list[str], caption: str, outcome: str) -> str:
        """The whole drawing: marks, ticks with numbers, a line at 0, and a caption that screen readers read too."""
        width, height = _LEFT_MARGIN + _PLOT_WIDTH + _RIGHT_MARGIN, len(marks) * _LINE_HEIGHT
        zero, whole = self.x_of(0.0), height + 26 + 18 * bool(outcome)
        ticks = [(self.x_of(tick), f"{tick:g}") for tick in even_ticks(self._low, self._low + _PLOT_WIDTH / self._unit, 6)]
        lines = "".join(
            f'<line x1="{x:.1f}" y1="0" x2="{x:.1f}" y2="{height + 4}" style="stroke: var(--rule)"/>' for x, _ in ticks
        )
        numbers = "".join(f'<text x="{x:.1f}" y="{height + 18}" text-anchor="middle">{text}</text>' for x, text in ticks)
        middle = _LEFT_MARGIN + _PLOT_WIDTH / 2
        title = f'<text x="{middle}" y="{height + 36}" text-anchor="middle" class="quiet">{escape(outcome)}</text>'
        return (
            f'<svg role="img" class="fixed" width="{width}" height="{whole}" viewBox="0 0 {width} {whole}">'
            f"<title>{escape(caption)}</title>"
            f'<line x1="{zero:.1f}" y1="0" x2="{zero:.1f}" y2="{height + 4}" style="stroke: var(--line)"/>'
            f"{lines}{numbers}{title if outcome else ''}{''.join(marks)}</svg>"
            f"<p>{escape(caption)}</p>"
        )


def _label(name: str, middle: float) -> str:
    shown = name if len(name) <= _MAX_NAME_LENGTH else f"{name[:17]}…{name[-17:]}"
    narrow = f' textLength="{_LEFT_MARGIN - 14}" lengthAdjust="spacingAndGlyphs"' if len(shown) > _LONGEST_NAME else ""
    return f'<text x="{_LEFT_MARGIN - 10}" y="{middle + 4:.1f}" text-anchor="end"{narrow}>{escape(shown)}</text>'
