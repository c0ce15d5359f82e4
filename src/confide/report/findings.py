"""What the released model says: effects as pictures, coefficients as a picture and a table. Part of the page."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from html import escape
from typing import Any, TypeVar

import numpy as np
from scipy.special import ndtri

from confide.blocks import Block, heading, scroll, text
from confide.effects.effects import MISSING, Effect, Points, Value, has_effects
from confide.effects.picture import (
    NOISE_IN_PICTURE,
    effect_limits,
    even_ticks,
    number_text,
    shown_levels,
    tick_text,
    ticks_of,
)
from confide.errors import is_number, wording
from confide.estimators.linear_model import released_model
from confide.estimators.released import ReleasedCoefficient, ReleasedCoefficients, effects_of, outcome_of, words_on_noise
from confide.inference.rates import readable
from confide.inference.table import Coefficient, CoefficientTable

# Drawings of the page, as SVG: intervals of coefficients, and bars of weights.

_MAX_BARS = 40
"""Only so many weights are drawn, the longest. The table on the page has them all."""
_LINE_HEIGHT = 22
_LEFT_MARGIN, _PLOT_WIDTH, _RIGHT_MARGIN = 210, 270, 20
_LIGHT_BLUE, _DARK_BLUE, _GREYS = "var(--light)", "var(--dark)", ("var(--rule)", "var(--line)")
_GREY = f"{NOISE_IN_PICTURE[:1].upper()}{NOISE_IN_PICTURE[1:]}."
"""Colours of the style sheet of the page, which differ between a light and a dark screen."""
_MAX_NAME_LENGTH = 35
"""Longer names are shortened in the middle, and those that are wider than their room are set in narrow letters."""


def interval_plot(table: CoefficientTable, note: str = "", outcome: str = "") -> str:
    """The intervals as bars. The inner part of each is the interval that there would be without noise.

    `note` is added to the caption, and `outcome` stands below the axis.
    """
    quantile = float(ndtri(0.5 + 0.5 * table.level))
    shown = [c for c in table.coefficients if all(map(math.isfinite, (c.low, c.high)))]
    if not shown:
        return ""
    rows: list[Any] = []
    for one in shown:
        without_noise = min(quantile * one.sampling_error, 0.5 * (one.high - one.low))
        dark = (one.estimate - without_noise, one.estimate + without_noise, _DARK_BLUE)
        rows.append((one.name, [(one.low, one.high, _LIGHT_BLUE), dark], one.estimate, []))
    caption = wording("caption of intervals", level=table.level)
    return _bars(rows, 10, f"{caption} {note}".strip(), outcome)


def weight_plot(coefficients: Sequence[ReleasedCoefficient], note: str = "", outcome: str = "") -> str:
    """The coefficients that stand out most as bars from 0, in front of what noise alone makes of them.

    `note` is added to the caption, and `outcome` stands below the axis.
    """
    weights = sorted([one for one in coefficients if one.unit], key=lambda one: one.size, reverse=True)
    longest = weights[:_MAX_BARS]
    rows: list[Any] = []
    for one in longest:
        bar, greys = one.estimate * one.span, zip(one.noise[::-1], _GREYS, strict=False)
        behind = [(-size * one.span, size * one.span, grey) for size, grey in greys]
        rows.append((one.name, [(min(0.0, bar), max(0.0, bar), _DARK_BLUE)], None, behind))
    few = "" if len(longest) == len(weights) else f" The {len(longest)} largest of {len(weights)} are drawn."
    few += f" {_GREY}" if any(one.noise for one in longest) else ""
    return _bars(rows, 12, f"Released weights.{few} {note}".strip(), outcome)


def _bars(rows: Sequence[Any], thick: int, caption: str, outcome: str) -> str:
    """A drawing with a line for each row: its name, bars from low to high in a colour, and a tick, on an axis with 0.

    Behind the bars are thicker ones, which end where the axis does. Screen readers read the caption too.
    """
    ends = [end for _, bars, *_ in rows for low, high, _ in bars[:1] for end in (low, high)]
    low, high = min(0.0, *ends), max(0.0, *ends)
    margin = 0.03 * (high - low) or 1.0
    low, high = low - margin, high + margin
    height = len(rows) * _LINE_HEIGHT
    x_of = partial(np.interp, xp=(low, high), fp=(_LEFT_MARGIN, _LEFT_MARGIN + _PLOT_WIDTH))

    def upright(value: float, colour: str, ends: tuple[Any, Any] = (0, height + 4), more: str = "") -> str:
        x, (top, bottom) = f"{x_of(value):.1f}", ends
        return f'<line x1="{x}" y1="{top}" x2="{x}" y2="{bottom}" style="stroke: var(--{colour})"{more}/>'

    marks = []
    for place, (name, bars, tick, behind) in enumerate(rows):
        middle = (place + 0.5) * _LINE_HEIGHT
        left = _LEFT_MARGIN - 10
        marks.append(_name_before(name, middle + 4, left, left - 4, _MAX_NAME_LENGTH))
        for high_of_bar, drawn in ((thick + 6, behind), (thick, bars)):
            for start, end, colour in drawn:
                x, long = x_of(start), max(1.0, x_of(end) - x_of(start))
                size = f'y="{middle - high_of_bar / 2:.1f}" width="{long:.1f}" height="{high_of_bar}"'
                marks.append(f'<rect x="{x:.1f}" {size} style="fill: {colour}"/>')
        if tick is not None:
            marks.append(upright(tick, "text", (f"{middle - 7:.1f}", f"{middle + 7:.1f}"), ' stroke-width="1.5"'))
    ticks = even_ticks(low, high, 6)
    lines = "".join(upright(tick, "rule") for tick in ticks)
    numbers = "".join(f'<text x="{x_of(tick):.1f}" y="{height + 18}" text-anchor="middle">{tick:g}</text>' for tick in ticks)
    width, whole = _LEFT_MARGIN + _PLOT_WIDTH + _RIGHT_MARGIN, height + 26 + 18 * bool(outcome)
    below = f'x="{_LEFT_MARGIN + _PLOT_WIDTH / 2}" y="{height + 36}"'
    title = f'<text {below} text-anchor="middle" class="quiet">{escape(outcome)}</text>' if outcome else ""
    return (
        f'<svg role="img" class="fixed" width="{width}" height="{whole}" viewBox="0 0 {width} {whole}">'
        f"<title>{escape(caption)}</title>{upright(0.0, 'line')}"
        f"{lines}{numbers}{title}{''.join(marks)}</svg><p>{escape(caption)}</p>"
    )


def _name_before(name: str, y: float, right: float, room: float, longest: int) -> str:
    """A name that ends at `right`: narrow if wider than the room, and without its middle if longer than `longest`."""
    half = longest // 2
    shown = name if len(name) <= longest else f"{name[:half]}…{name[half + 1 - longest :]}"
    width = sum(5.0 if letter in _NARROW else 14.0 if letter in "mwMW" or not letter.isascii() else 9.0 for letter in shown)
    narrow = f' textLength="{room}" lengthAdjust="spacingAndGlyphs"' if width > room else ""
    return f'<text x="{right}" y="{y:.1f}" text-anchor="end"{narrow}>{escape(shown)}</text>'


# Effects as small drawings in SVG: a curve for each number, a list of points for each category, on one scale of effects.
#
# Colours are those of the style sheet of the page, so that they follow a light or a dark screen and paper.

_WIDTH, _LEFT, _RIGHT, _TOP, _HEIGHT, _BELOW = 304, 38, 10, 8, 150, 36
_NAMES, _LINE, _NARROWED_NAME = 130, 19, 24
_NARROW = "fijlrtI.,:;'|!()[]- "
"""Letters of about five pixels; most others have at most nine."""
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
    figures = []
    for effect in alone:
        shown = effect.levels if effect.is_curve else shown_levels(effect, most_levels)
        drawn = _curve(effect, limits) if effect.is_curve else _levels(effect, shown, limits)
        few = "" if len(shown) == len(effect.levels) else f" ({len(shown)} of {len(effect.levels)} levels)"
        title = escape(effect.title if effect.label is None else f"{effect.label}: {effect.title}").replace("_", "_<wbr>")
        figures.append(f"<figure><figcaption>{title}{few}</figcaption>{drawn}</figure>")
    return f'<div class="effects">{"".join(figures)}</div>'


def _curve(effect: Effect, limits: tuple[float, float]) -> str:
    points, absent = effect.points[0], [value for value in effect.levels if value.value == MISSING]
    width = (_WIDTH - _LEFT - _RIGHT) * (1.0 - _PART_FOR_MISSING * bool(absent))
    (low, high), bottom = limits, _TOP + _HEIGHT
    y_of = partial(np.interp, xp=limits, fp=(bottom, _TOP))
    x_of = partial(np.interp, xp=(-1.0, 1.0), fp=(_LEFT, _LEFT + width))
    marks = [_line(_LEFT, y_of(tick), _WIDTH - _RIGHT, y_of(tick), "grid") for tick in even_ticks(low, high, 7)]
    marks += [_text(_LEFT - 5, y_of(tick) + 4, f"{tick:g}", "end") for tick in even_ticks(low, high, 7)]
    marks.append(_line(_LEFT, y_of(0.0), _WIDTH - _RIGHT, y_of(0.0), "zero"))
    places = [x_of(place) for place in points.positions.tolist()]
    for band in zip(*map(_intervals, effect.curve), strict=True):
        upper = [(x, y_of(most)) for x, (_, most, _) in zip(places, band, strict=True)]
        lower = [(x, y_of(least)) for x, (least, _, _) in zip(places, band, strict=True)]
        marks.append(f'<polygon class="{band[0][2]}" points="{_path([*upper, *reversed(lower)])}"/>')
    line = [(x, y_of(value.effect)) for x, value in zip(places, effect.curve, strict=True)]
    marks.append(f'<polyline class="curve" points="{_path(line)}"/>')
    marks += [_line(x, bottom - 6, x, bottom, "knot") for x in places[points.steps : -1 : points.steps]]
    ticks, column = ticks_of(points), points.column
    assert column.is_number  # noqa: S101  # a curve is that of a number

    def spots_of(numbers: Sequence[float]) -> list[float]:
        return column.stretched(np.array(numbers, dtype=np.float64)).tolist()  # type: ignore[no-any-return]

    for (_, value), place in zip(effect.atoms, spots_of([atom for atom, _ in effect.atoms]), strict=True):
        marks += _upright(x_of(place), value, y_of)
    for number, place in zip((tick_text(points, tick) for tick in ticks), spots_of(ticks), strict=True):
        anchor = "end" if place > 0.9 and not absent else "start" if place < -0.95 and len(number) > 4 else "middle"
        marks.append(_text(x_of(place), bottom + 16, number, anchor))
    if absent:
        marks += _upright(_WIDTH - _RIGHT - 16, absent[0], y_of)
        marks.append(_text(_WIDTH - 2, bottom + 31, "missing", "end"))
    return _drawing(bottom + _BELOW, effect, marks)


def _upright(x: float, value: Value, y_of: Callable[[float], Any]) -> list[str]:
    """A point, in front of its intervals."""
    bars = [_bar(kind, x - 4, y_of(most), 8, y_of(least) - y_of(most)) for least, most, kind in _intervals(value, ())]
    return [*bars, _point(x, y_of(value.effect))]


def _levels(effect: Effect, shown: Sequence[Value], limits: tuple[float, float]) -> str:
    (low, high), bottom = limits, _TOP + _LINE * len(shown)
    x_of = partial(np.interp, xp=limits, fp=(_NAMES, _WIDTH - _RIGHT))
    marks = [_line(x_of(tick), _TOP, x_of(tick), bottom, "grid") for tick in even_ticks(low, high, 6)]
    marks += [_text(x_of(tick), bottom + 16, f"{tick:g}", "middle") for tick in even_ticks(low, high, 6)]
    marks.append(_line(x_of(0.0), _TOP, x_of(0.0), bottom, "zero"))
    for place, value in enumerate(shown):
        y, name = _TOP + _LINE * (place + 0.5), str(value.value)
        marks.append(_name_before(name, y + 4, _NAMES - 7, _NAMES - 9, _NARROWED_NAME))
        for left, right, kind in _intervals(value):
            marks.append(_bar(kind, x_of(left), y - 4, x_of(right) - x_of(left), 8))
        marks.append(_point(x_of(value.effect), y))
    return _drawing(bottom + 22, effect, marks)


def _intervals(value: Value, of_noise: tuple[str, ...] = ("at-most", "if-even")) -> list[tuple[float, float, str]]:
    """How far noise alone reaches, and the two intervals of a value, as far as they are known; the wider one first."""
    pairs: list[Any] = [(-size, size, kind) for size, kind in zip(value.noise[::-1], of_noise, strict=False)]
    pairs += [(value.joint_low, value.joint_high, "joint"), (value.low, value.high, "alone")]
    return [(low, high, kind) for low, high, kind in pairs if low is not None and high is not None and math.isfinite(high)]


def _drawing(height: float, effect: Effect, marks: list[str]) -> str:
    ranked = sorted(effect.values, key=lambda value: value.effect)
    least, most = ranked[0], ranked[-1]
    texts = dict(zip(effect.points[0].values, effect.points[0].texts, strict=True))
    # Screen readers read the title.
    ends = f"least {least.effect:+.2f} at {texts[least.value]}, largest {most.effect:+.2f} at {texts[most.value]}"
    title = f"Effect of {effect.title}: {ends}."
    return f'<svg role="img" viewBox="0 0 {_WIDTH} {height:g}"><title>{escape(title)}</title>{"".join(marks)}</svg>'


def _line(x1: float, y1: float, x2: float, y2: float, kind: str) -> str:
    return f'<line class="{kind}" x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"/>'


def _bar(kind: str, x: float, y: float, width: float, height: float) -> str:
    return f'<rect class="{kind}" x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}"/>'


def _text(x: float, y: float, text: str, anchor: str) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(text)}</text>'


def _point(x: float, y: float) -> str:
    return f'<circle class="point" cx="{x:.1f}" cy="{y:.1f}" r="3.6"/>'


def _path(corners: Sequence[tuple[float, float]]) -> str:
    return " ".join(f"{x:.1f},{y:.1f}" for x, y in corners)


# What interactions add, as small maps in SVG: one cell for each pair of values, coloured by the sign of what is added.
#
# Sizes are shown by how strong a colour is, and by the number in the title of each cell, which the pointer shows.

_SURFACE_WIDTH, _SURFACE_NAMES, _CELL, _SURFACE_TOP, _FOOT = 304, 104, 20, 6, 56
_MOST_VALUES, _MOST_LETTERS = 10, 13


def surface_drawings(effects: Sequence[Effect]) -> str:
    """Maps of the interactions of two columns, side by side where there is room. All others are left out."""
    pairs = [effect for effect in effects if len(effect.columns) == 2 and effect.values]
    if not pairs:
        return ""
    largest = max((abs(value.effect) for effect in pairs for value in effect.values), default=0.0) or 1.0
    return f'<div class="surfaces">{"".join([_figure_of_surface(effect, largest) for effect in pairs])}</div>'


def _figure_of_surface(effect: Effect, largest: float) -> str:
    first, second = (points.column.title for points in effect.points)
    title = escape(f"{first} and {second}" if effect.label is None else f"{effect.label}: {first} and {second}")
    values = {value.value: value for value in effect.values}
    down, across = (_shown_values(points, effect, axis) for axis, points in enumerate(effect.points))
    width = (_SURFACE_WIDTH - _SURFACE_NAMES - 6) / len(across)
    bottom = _SURFACE_TOP + _CELL * len(down)
    marks = []
    for row, of_first in enumerate(down):
        y = _SURFACE_TOP + _CELL * row
        name = escape(_short(of_first, _MOST_LETTERS))
        marks.append(f'<text x="{_SURFACE_NAMES - 6}" y="{y + 14}" text-anchor="end">{name}</text>')
        for column, of_second in enumerate(across):
            value = values[(of_first, of_second)]
            marks.append(_cell(_SURFACE_NAMES + width * column, y, width, value, largest, effect.columns))
    for place, of_second in enumerate(across):  # the values of the second column, turned where they are many
        x = _SURFACE_NAMES + width * (place + 0.5)
        turned = f'transform="rotate(-40 {x:.1f} {bottom + 12})" text-anchor="end"' if width < 60 else 'text-anchor="middle"'
        marks.append(f'<text x="{x:.1f}" y="{bottom + 14}" {turned}>{escape(_short(of_second, 10))}</text>')
    sizes = [value.effect for value in effect.values]
    told = f"What the interaction of {first} and {second} adds: from {min(sizes):+.2f} to {max(sizes):+.2f}."
    return (
        f'<figure><figcaption>{title.replace("_", "_<wbr>")}</figcaption><svg role="img" aria-label="{escape(told)}" '
        f'viewBox="0 0 {_SURFACE_WIDTH} {bottom + _FOOT}"><title>{escape(told)}</title>{"".join(marks)}</svg></figure>'
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
    text = number_text(float(f"{value:.4g}")) if is_number(value) else str(value)
    return text if len(text) <= longest else f"{text[: longest - 1]}…"


_MOST_FIGURES, _MOST_MAPS, _MOST_ROWS = 12, 4, 16
"""Only so many figures and rows stand in the part that is signed, the largest effects first. The appendix has them all."""
_LEVELS_IN_SHORT = 8
_MOST_LINES, _LETTERS_OF_LINE = 26, 30
"""Names and units are broken on paper after about so many letters. A table takes at most so many lines."""
AnyCoefficient = TypeVar("AnyCoefficient", Coefficient, ReleasedCoefficient)


def has_intervals(model: Any) -> bool:
    """Whether the release holds what is needed for intervals of coefficients."""
    return released_model(model).has_intervals


def has_interest(model: Any) -> bool:
    """Whether the release holds what is needed for intervals of named coefficients."""
    return released_model(model).interest is not None


def has_tests(model: Any) -> bool:
    """Whether the release holds what is needed to test coefficients, all or named ones."""
    return has_intervals(model) or has_interest(model)


def has_risks(model: Any) -> bool:
    """Whether the release holds what is needed for differences of risks, standardised over the rows."""
    interest = released_model(model).interest
    return interest is not None and interest.risks is not None


def has_curves(model: Any) -> bool:
    """Whether the model is best shown by pictures of its effects: some column has a curve."""
    terms = effects_of(model).terms if has_effects(released_model(model)) else ()
    return any(len(term.points) == 1 and term.points[0].n_numbers > 2 for term in terms)


def main_findings(model: Any, level: float, adjust: str | None = None, *, whole: bool = False) -> list[Block]:
    """What the model says, in the part that is signed: as much as fits there, or `whole`, all that can be said in tables."""
    if released_model(model).fourier is not None and (whole or not has_curves(model)):
        return [text(wording("no coefficients of random features"))]
    return _main_effects(model, level) if has_curves(model) and not whole else _coefficients(model, level, adjust, whole)


def all_findings(model: Any, level: float, adjust: str | None = None) -> list[Block]:
    """Everything that the model says about columns, for the appendix."""
    blocks = []
    if has_effects(released_model(model)):
        effects = list(effects_of(model).with_bands(level))
        drawings = effect_drawings(effects) + surface_drawings(effects)
        blocks += [heading("Effects of all columns"), Block("figure", drawing=drawings)]
    mapped = released_model(model).fourier is not None
    whole = "Weights of columns, as in the model file" if mapped else "All coefficients"
    tables: list[tuple[str | None, str, str]] = [(None, "All coefficients", whole)]
    if model.schema is not None and (has_intervals(model) or not mapped):
        tables.append(("encoded", "Encoded coefficients", "The same for encoded columns, as in the model file"))
    for units, name, title in tables:
        blocks.append(heading(title))
        if has_intervals(model):
            table = model.summary(level=level, adjust=adjust, units=units).to_html()
            blocks.append(Block("figure", drawing=scroll(table, f"{name} with intervals")))
        else:
            released = ReleasedCoefficients.of(model, units, level)
            blocks += [_without_intervals(replace(released, coefficients=released.of_columns), name)]
            blocks += [text(*released.words_of_features)] * mapped
    return blocks


def _main_effects(model: Any, level: float) -> list[Block]:
    effects = effects_of(model)
    drawn_effects = sorted(effects.with_bands(level), key=lambda effect: effect.size, reverse=True)
    alone = [effect for effect in drawn_effects if len(effect.columns) == 1]
    pairs = [effect for effect in drawn_effects if len(effect.columns) == 2]
    shown, maps = alone[:_MOST_FIGURES], pairs[:_MOST_MAPS]
    drawn = effect_drawings(shown, effect_limits(alone), min(_LEVELS_IN_SHORT, MOST_LEVELS))
    words = _words_of_effects(model, effects, drawn_effects, level)
    if len(shown) < len(alone):
        words.append(f"The {len(shown)} largest of {len(alone)} effects are drawn; the technical appendix has all.")
    blocks = [text(*words), Block("figure", drawing=drawn)]
    if maps:
        few = f" The {len(maps)} largest of {len(pairs)} are drawn." if len(maps) < len(pairs) else ""
        meaning = wording("surface of effects", outcome=effects.outcome, few=few)
        parts = [heading("What pairs of columns add"), text(meaning), Block("figure", drawing=surface_drawings(maps))]
        blocks.append(Block("group", parts, style="whole"))
    return blocks


def _words_of_effects(model: Any, effects: Any, shown: Sequence[Effect], level: float) -> list[str]:
    meaning, more = wording("curves of effects", outcome=effects.outcome), effects.words_of_interactions
    sentences = [meaning, wording("curves beside features" if more else "curves by knots"), *filter(None, [more])]
    if any(one.noise for effect in shown for one in effect.values):
        sentences.append(f"{_GREY} All values of {level:.0%} of columns without an effect lie there.")
    sentences += words_on_noise(model, shown)
    if any(effect.has_band for effect in shown):
        sentences.append(wording("bands of effects", level=level))
    elif has_intervals(model):
        sentences.append("No band is drawn where the noise hides what the rows tell.")
    elif not model.guarantee_.budget.is_private:
        sentences.append("No noise was added. How precise the effects are is not shown.")
    else:
        sentences.append("No part of the budget was used for intervals, so there are no other bands.")
    if any(effect.atoms for effect in shown):
        sentences.append("A point beside a curve is the effect of exactly this number, an atom, which many rows share.")
    if any(len(effect.columns) > 2 for effect in shown):
        sentences.append("What three or more columns add together is not drawn.")
    if effects.shortens_rows:
        sentences.append("The model clips long encoded rows: their effects are all multiplied by one factor below 1.")
    return sentences


def _coefficients(model: Any, level: float, adjust: str | None, whole: bool) -> list[Block]:
    if has_intervals(model):
        return _with_intervals(model.summary(level=level, adjust=adjust), outcome_of(model), whole)
    blocks = []
    if has_interest(model):
        table = model.summary(level=level, adjust=adjust)
        blocks += [heading("Coefficients of interest"), *_with_intervals(table, outcome_of(model), whole)]
        if has_risks(model):
            risks = model.average_risk_differences(level=level, adjust=adjust)
            title = heading("Risk differences, standardised over the rows")
            blocks += [title, *_with_intervals(risks, risks.outcome, whole)]
        blocks.append(heading("All released coefficients"))
    released = ReleasedCoefficients.of(model, level=level)
    shown = released.coefficients if whole else _that_fit(released.coefficients)
    drawn = weight_plot(released.coefficients, _what_bars_are(released.units), released.outcome)
    is_private = model.guarantee_.budget.is_private
    why = "No part of the budget was used for intervals" if is_private else "No intervals were computed"
    why += " of all coefficients" if blocks else ""
    return [
        *blocks,
        text(f"{why}, so it is not known how precise these coefficients are.", *words_on_noise(model)),
        Block("figure", title=released.outcome, drawing=drawn),
        _without_intervals(replace(released, coefficients=tuple(shown))),
        *_few(len(shown), len(released.coefficients)),
    ]


def _with_intervals(table: CoefficientTable, outcome: str, whole: bool) -> list[Block]:
    shown = table.coefficients if whole else _that_fit(table.coefficients)
    scaled = tuple(replace(one.scaled(one.span), sampling_error=one.sampling_error * one.span) for one in shown if one.unit)
    is_risk = table.quantity != "coefficients"
    drawn = interval_plot(replace(table, coefficients=scaled), "" if is_risk else _what_bars_are(table.shown_units), outcome)
    kept = [place for place, name in enumerate(table.headings) if not name.endswith("err")]
    rows = [[row[place] for place in kept] for row in replace(table, coefficients=tuple(shown)).cells]
    return [
        Block("figure", title=outcome, drawing=drawn),
        Block("coefficients", rows, ["Column", *(table.headings[place].capitalize() for place in kept[1:])]),
        *_few(len(shown), len(table.coefficients)),
        text(*table.notes[:-1]),
    ]


def _that_fit(coefficients: Sequence[AnyCoefficient]) -> list[AnyCoefficient]:
    """The coefficients that can matter most, as many as fit on the sheet that is signed, in their own order."""
    lines = 0
    kept: set[int] = set()
    for place in sorted(range(len(coefficients)), key=lambda at: coefficients[at].size, reverse=True):
        one = coefficients[place]
        lines += max(1, *(math.ceil(len(words) / _LETTERS_OF_LINE) for words in (one.name, one.unit)))
        if lines > _MOST_LINES or len(kept) == _MOST_ROWS:
            break
        kept.add(place)
    return [one for place, one in enumerate(coefficients) if place in kept]


def _few(shown: int, of: int) -> list[Block]:
    told = f"The {shown} largest of {of} coefficients are listed; the technical appendix has all."
    return [] if shown == of else [text(told)]


def _what_bars_are(units: str) -> str:
    if units != "original":
        return ""
    return "For numbers, bars are for the whole way from low to high; for levels, against the reference."


def _without_intervals(released: ReleasedCoefficients, name: str = "Coefficients") -> Block:
    number = readable if released.units == "original" else "{:+.4f}".format
    cells = [coefficient_cells(one, released, number) for one in released.coefficients]
    return Block("coefficients", cells, ("Column", "Unit", "Coefficient", *map(str.capitalize, more_heads(released))), name)


def more_heads(released: ReleasedCoefficients) -> tuple[str, ...]:
    """The headings behind those of name, unit and value: the ratio, such as the odds ratio, and the noise."""
    return (*filter(None, (released.ratio,)), *("even noise", "most noise") * (released.coefficients[0].noise is not None))


def coefficient_cells(
    one: ReleasedCoefficient, released: ReleasedCoefficients, number: Callable[[float], str] = readable
) -> tuple[str, ...]:
    """Name, unit and value of a coefficient, and behind them what the further headings name."""
    ratios = ("" if one.ratio is None else readable(one.ratio),) if released.ratio else ()
    cells = (one.name, one.unit, number(one.estimate), *ratios, *(f"±{size:.3g}" for size in one.noise))
    return (*cells, *[""] * (3 + len(more_heads(released)) - len(cells)))
