"""What the released model says: effects as pictures, coefficients as a picture and a table. Part of the page."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from html import escape
from typing import Any, TypeVar

from confide.effects.effects import Effect, has_effects
from confide.effects.ticks import effect_limits
from confide.estimators.linear_model import released_model
from confide.estimators.model_effects import effects_of
from confide.estimators.released_coefficients import ReleasedCoefficient, ReleasedCoefficients, outcome_of
from confide.inference.interest import supposed_of
from confide.inference.table import Coefficient, CoefficientTable, readable, readable_interval
from confide.report.curves import MOST_LEVELS, effect_drawings
from confide.report.drawing import interval_plot, weight_plot
from confide.report.surfaces import surface_drawings

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


def supposed_in(model: Any) -> tuple[str, ...]:
    """Names of the coefficients of interest whose intervals rest on a supposition, because the noise hid too much."""
    interest = released_model(model).interest
    return () if interest is None else supposed_of(interest)


def has_risks(model: Any) -> bool:
    """Whether the release holds what is needed for differences of risks, standardised over the rows."""
    interest = released_model(model).interest
    return interest is not None and interest.risks is not None


def has_curves(model: Any) -> bool:
    """Whether the model is best shown by pictures of its effects: some column has a curve."""
    return has_effects(released_model(model)) and any(
        term.points[0].n_numbers > 2 for term in effects_of(model).terms if len(term.points) == 1
    )


def scroll(content: str, name: str) -> str:
    """Content that may be wider than a narrow screen. It can be reached by the keyboard."""
    return f'<div class="scroll" role="region" aria-label="{escape(name)}" tabindex="0">{content}</div>'


def main_findings(model: Any, level: float, adjust: str | None = None) -> str:
    """What the model says, in the part that is signed: as much as fits there."""
    if released_model(model).fourier is not None:
        return (
            "<p>The model works with random features of all columns together. Single features mean nothing by themselves, "
            "so no coefficients and no effects of columns are shown.</p>"
        )
    return _main_effects(model, level) if has_curves(model) else _main_coefficients(model, level, adjust)


def all_findings(model: Any, level: float, adjust: str | None = None) -> str:
    """Everything that the model says about columns, for the appendix."""
    parts = []
    if has_effects(released_model(model)):
        found = list(effects_of(model).with_bands(level))
        parts += ["<h3>Effects of all columns</h3>", effect_drawings(found), surface_drawings(found)]
    heading = "All weights, as in the model file" if released_model(model).fourier is not None else "All coefficients"
    parts.append(f"<h3>{heading}</h3>")
    if has_intervals(model):
        parts.append(scroll(model.summary(level=level, adjust=adjust).to_html(), "All coefficients with intervals"))
        if model.schema is not None:
            parts.append("<h3>The same for encoded columns, as in the model file</h3>")
            parts.append(
                scroll(
                    model.summary(level=level, units="encoded", adjust=adjust).to_html(),
                    "Encoded coefficients with intervals",
                )
            )
        return "".join(parts)
    parts.append(scroll(_table_without_intervals(ReleasedCoefficients.of(model)), "All coefficients"))
    if model.schema is not None and released_model(model).fourier is None:
        parts.append("<h3>The same for encoded columns, as in the model file</h3>")
        parts.append(scroll(_table_without_intervals(ReleasedCoefficients.of(model, "encoded")), "Encoded coefficients"))
    return "".join(parts)


def _main_effects(model: Any, level: float) -> str:
    effects = effects_of(model)
    found = list(effects.with_bands(level))
    banded = any(effect.has_band for effect in found)
    found.sort(key=lambda effect: -size_of(effect, with_bands=banded))
    alone = [effect for effect in found if len(effect.columns) == 1]
    pairs = [effect for effect in found if len(effect.columns) == 2]
    shown, maps = alone[:_MOST_FIGURES], pairs[:_MOST_MAPS]
    drawn = effect_drawings(shown, effect_limits(alone), min(_LEVELS_IN_SHORT, MOST_LEVELS))
    words = _words_of_effects(model, effects, found, level)
    if len(shown) < len(alone):
        words.append(f"The {len(shown)} largest of {len(alone)} effects are drawn; the technical appendix has all.")
    text = f"<p>{escape(' '.join(words))}</p>{drawn}"
    if maps:
        few = f" The {len(maps)} largest of {len(pairs)} are drawn." if len(maps) < len(pairs) else ""
        text += (
            '<div class="whole"><h3>What pairs of columns add</h3>'
            f"<p>Each cell is a pair of values. Blue cells add to the {escape(effects.outcome)}, orange ones take away from "
            f"it; the stronger the colour, the more.{few}</p>"
            f"{surface_drawings(maps)}</div>"
        )
    return text


def _words_of_effects(model: Any, effects: Any, found: Sequence[Effect], level: float) -> list[str]:
    order = "less its bands " if any(effect.has_band for effect in found) else ""
    meaning = (
        f"Above 0 (for levels: right of 0) a column raises the {effects.outcome}, below 0 it lowers it, compared with the "
        "mean of the curve over its scale or of all levels. All columns have the same scale of effects, the largest effect "
        f"{order}first, and each its own unit below. Between the short marks on the axis a curve is straight. No row is "
        f"drawn."
    )
    sentences = [meaning]
    if any(effect.has_band for effect in found):
        sentences.append(
            f"Bands cover sampling and the noise for privacy at level {level:g}: the inner one for each value by itself, "
            f"the outer one for all values of a column together."
        )
    elif has_intervals(model):
        sentences.append("No band is drawn where the noise hides what the rows tell.")
    elif not model.guarantee_.budget.is_private:
        sentences.append("No noise was added. How precise the effects are is not shown.")
    else:
        sentences.append(
            "No part of the budget was used for intervals, so there are no bands. The noise alone may make effects of this "
            "size, above all for levels and stretches that few rows have."
        )
    if any(len(effect.columns) > 2 for effect in found):
        sentences.append("What three or more columns add together is not drawn.")
    if effects.shortens_rows:
        sentences.append(
            "The model clips long encoded rows: all effects of such a row are multiplied by one factor below 1."
        )
    return sentences


def size_of(effect: Effect, *, with_bands: bool = False) -> float:
    """How far an effect goes from its smallest to its largest value; with bands, how much of that exceeds them.

    An effect whose band is not known comes after all that have one.
    """
    if not with_bands:
        values = [value.effect for value in effect.values]
        return max(values) - min(values) if values else 0.0
    lows = [value.low for value in effect.values if value.low is not None]
    highs = [value.high for value in effect.values if value.high is not None]
    return max(lows) - min(highs) if lows and highs else -math.inf


def _main_coefficients(model: Any, level: float, adjust: str | None) -> str:
    if has_intervals(model):
        return _with_intervals(model.summary(level=level, adjust=adjust), outcome_of(model))
    named = ""
    if has_interest(model):
        table = model.summary(level=level, adjust=adjust)
        named = f"<h3>Coefficients of interest</h3>{_with_intervals(table, outcome_of(model))}"
        if has_risks(model):
            risks = model.average_risk_differences(level=level, adjust=adjust)
            named += f"<h3>Risk differences, standardised over the rows</h3>{_with_intervals(risks, risks.outcome)}"
        named += "<h3>All released coefficients</h3>"
    found = ReleasedCoefficients.of(model)
    shown = _that_fit(found.coefficients)
    bars = [(one.name, one.estimate * one.span) for one in found.coefficients if one.unit]
    drawn = weight_plot(bars, _what_bars_are(found.units), found.outcome)
    is_private = model.guarantee_.budget.is_private
    why = "No part of the budget was used for intervals" if is_private else "No intervals were computed"
    why += " of all coefficients" if named else ""
    return (
        f"{named}<p>{why}, so it is not known how precise these coefficients are.</p>"
        f"{drawn}{scroll(_table_without_intervals(replace(found, coefficients=tuple(shown))), 'Coefficients')}"
        f"{_few(len(shown), len(found.coefficients))}"
    )


def _with_intervals(table: CoefficientTable, outcome: str) -> str:
    shown = _that_fit(table.coefficients)
    scaled = tuple(
        replace(one, estimate=one.estimate * one.span, low=one.low * one.span, high=one.high * one.span,
                sampling_error=one.sampling_error * one.span)
        for one in shown
        if one.unit
    )  # fmt: skip
    note = _what_bars_are(table.shown_units) if table.quantity == "coefficients" else ""
    drawn = interval_plot(replace(table, coefficients=scaled), note, outcome)
    percent = f"{100.0 * table.level:g}% interval{'s together' if table.adjust else ''}"
    what = "Coefficient" if table.quantity == "coefficients" else "Risk difference"
    heads = ["Column", "Unit", what, percent, *([table.ratio.capitalize(), percent] if table.ratio else [])]
    heads.append(table.heading_of_p.replace("adjusted", "Adjusted"))
    rows = []
    for one in shown:
        found = table.ratio_of(one)
        ratio = ("", "") if found is None else _with_interval(*found)
        shown_p = table.shown_p(one)
        p_value = "<0.001" if shown_p < 0.001 else f"{shown_p:.3f}"
        cells = [*_with_interval(one.estimate, one.low, one.high), *(ratio if table.ratio else ()), p_value]
        rows.append((one.name, one.unit, *cells))
    notes = f"<p>{escape(' '.join(table.notes[:-1]))}</p>"
    return drawn + scroll(_table(heads, rows), "Coefficients") + _few(len(shown), len(table.coefficients)) + notes


def _that_fit(coefficients: Sequence[AnyCoefficient]) -> list[AnyCoefficient]:
    """The coefficients that can matter most, as many as fit on the sheet that is signed, in their own order."""
    lines = 0
    kept: set[int] = set()
    for place in sorted(range(len(coefficients)), key=lambda at: -abs(coefficients[at].estimate * coefficients[at].span)):
        one = coefficients[place]
        lines += max(1, *(math.ceil(len(text) / _LETTERS_OF_LINE) for text in (one.name, one.unit)))
        if lines > _MOST_LINES or len(kept) == _MOST_ROWS:
            break
        kept.add(place)
    return [one for place, one in enumerate(coefficients) if place in kept]


def _with_interval(*numbers: float) -> tuple[str, str]:
    estimate, *ends = readable_interval(*numbers)
    return estimate, " to ".join(ends)


def _few(shown: int, of: int) -> str:
    return (
        "" if shown == of else f"<p>The {shown} largest of {of} coefficients are listed; the technical appendix has all.</p>"
    )


def _what_bars_are(units: str) -> str:
    if units != "original":
        return ""
    return "For numbers, bars are for the whole way from low to high; for levels, against the reference."


def _table_without_intervals(found: ReleasedCoefficients) -> str:
    number = readable if found.units == "original" else "{:+.4f}".format
    heads = ["Column", "Unit", "Coefficient", *([found.ratio.capitalize()] if found.ratio else [])]
    rows = [
        (
            one.name,
            one.unit,
            number(one.estimate),
            *(["" if one.ratio is None else readable(one.ratio)] if found.ratio else []),
        )
        for one in found.coefficients
    ]
    return _table(heads, rows)


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table whose first two columns are words."""
    head = "".join(
        f'<th scope="col"{" class=word" if place < 2 else ""}>{escape(name)}</th>' for place, name in enumerate(heads)
    )
    body = "".join(
        f'<tr><th scope="row">{escape(name)}</th><td class="word" data-name="{escape(heads[1])}">{escape(unit)}</td>'
        + "".join(f'<td data-name="{escape(head)}">{escape(cell)}</td>' for head, cell in zip(heads[2:], cells, strict=True))
        + "</tr>"
        for name, unit, *cells in rows
    )
    return f'<table class="stack"><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>'
