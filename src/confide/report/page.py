"""A released model as one page of HTML, for those who must sign it and those who read the coefficients.

The page is made of the release and of public facts alone, so it is as private as the model file. It needs no network, no
script and no font, prints well, and everything in it that came from a file is text.
"""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from html import escape
from typing import Any

import numpy as np
from scipy.special import ndtri

from confide._version import __version__
from confide.errors import ParameterError
from confide.estimators.linear_model import released_model
from confide.files import write_text
from confide.guarantee import Guarantee
from confide.inference.table import CoefficientTable
from confide.released_models.shown_class import ShownClass, weights_by_class

_MOST_BARS = 40
"""More weights are in the table alone; the longest are drawn."""
_LINE, _LEFT, _WIDTH, _RIGHT = 22, 310, 420, 20
_STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; color: #1b1f24; background: #fff; }
body { max-width: 62rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.6rem; margin-bottom: 0; } h2 { font-size: 1.2rem; margin-top: 2.2rem; }
.kind { color: #57606a; margin-top: .2rem; }
.promise { border-left: .35rem solid #1a7f37; padding: .2rem 1rem; background: #f3faf5; }
.void { border-left: .35rem solid #cf222e; padding: .2rem 1rem; background: #fff1f1; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; } caption { text-align: left; font-weight: 600; }
th, td { padding: .15rem .7rem .15rem 0; text-align: right; } th:first-child, td.word { text-align: left; }
tbody th { font-weight: 400; } thead th { border-bottom: 1px solid #8c959f; } svg text { font: 13px system-ui, sans-serif; }
.scroll { overflow-x: auto; } footer { color: #57606a; margin: 2.5rem 0 1rem; font-size: .9rem; }
@media print { body { margin: 0; max-width: none; } h2 { break-after: avoid; } tr { break-inside: avoid; } }
"""
_NOT_PROMISED = (
    "what is true of the whole population, and what follows from that about a person",
    "what other releases from the same rows say: a ledger adds them up, this page speaks of one",
    "a curator who publishes the rows or the model's seed by another way",
    "how long the fit took, and other traces on the machine where it ran",
)


def report_page(model: Any, *, level: float = 0.95) -> str:
    """The page.

    Parameters
    ----------
    model : a fitted linear model of confide, or one that was loaded from a file
    level : float, in (0, 1)
        Of the intervals, where a share of the budget was kept for them.

    Returns
    -------
    str
        A whole HTML document.

    Raises
    ------
    ParameterError
        If the model was not fitted, or is of another kind.
    """
    if not all(hasattr(model, name) for name in ("guarantee_", "coef_", "coefficient_names_", "alpha_")):
        raise ParameterError("a report is made of a fitted linear model of confide: call fit, or confide.load.")
    name, guarantee = type(model).__name__, model.guarantee_
    spoken = _spoken_of(model)
    parts = [
        f"<h1>{escape(name)}{', released privately' if guarantee.void is None else ': not private'}</h1>",
        f'<p class="kind">{escape(spoken)}</p>' if spoken else "",
        _section("Guarantee", _guarantee(guarantee)),
        _section("Facts", _facts(model, guarantee)),
        _section("Coefficients", _coefficients(model, level)),
        _section("Columns", _columns(model.schema)) if getattr(model, "schema", None) is not None else "",
        _section("What is not promised", _list(_NOT_PROMISED)) if guarantee.void is None else "",
        f"<footer>Made by confide {escape(__version__)} from the release and from public facts alone.</footer>",
    ]
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">'
        f"<title>{escape(name)}: what was released</title><style>{_STYLE}</style></head>\n<body>\n"
        + "\n".join(filter(None, parts))
        + "\n</body></html>\n"
    )


def write_report(model: Any, path: str | os.PathLike[str], *, level: float = 0.95, overwrite: bool = False) -> None:
    """Write the page of a model to a file; see `report_page`.

    Raises
    ------
    FileError
        If the file cannot be written, or exists and `overwrite` is false.
    """
    write_text(path, report_page(model, level=level), overwrite=overwrite)


def _section(title: str, content: str) -> str:
    return f"<section><h2>{escape(title)}</h2>\n{content}</section>"


def _list(items: Sequence[str]) -> str:
    return "<ul>" + "".join(f"<li>{escape(item)}</li>" for item in items) + "</ul>"


def _spoken_of(model: Any) -> str:
    if not hasattr(model, "classes_"):
        return "A regression."
    direction = ShownClass.of(released_model(model))
    return f"Positive weights speak for {direction}." if direction.position is not None else f"Weights for {direction}."


def _guarantee(guarantee: Guarantee) -> str:
    sentences = guarantee.statement().split("\n")
    text = "".join(f"<p>{escape(line)}</p>" for line in sentences if not line.startswith("  - "))
    return f'<div class="{"promise" if guarantee.void is None else "void"}">{text}{_list(guarantee.assumptions)}</div>'


def _facts(model: Any, guarantee: Guarantee) -> str:
    pairs = [
        ("budget", str(guarantee.budget)),
        ("neighbours", str(guarantee.neighbours)),
        ("where the noise went", guarantee.mechanism),
        ("alpha, the ridge", f"{model.alpha_:.6g}"),
        ("released weights", f"{np.size(model.coef_) + np.size(model.intercept_):,}"),
    ]
    rows = "".join(f'<tr><th>{escape(name)}</th><td class="word">{escape(value)}</td></tr>' for name, value in pairs)
    return f"<table><tbody>{rows}</tbody></table>"


def _coefficients(model: Any, level: float) -> str:
    if getattr(model, "_evidence", None) is not None:
        table = model.summary(level=level)
        return f'{_forest(table)}<div class="scroll">{table.to_html()}</div>'
    weights = _released(model)
    rows = "".join(f"<tr><th>{escape(name)}</th><td>{value:+.4f}</td></tr>" for name, value in weights)
    return (
        "<p>No share of the budget was kept for intervals, so nothing is known of how sure these are.</p>"
        f"{_bars(weights)}<table><thead><tr><th>column</th><th>weight</th></tr></thead><tbody>{rows}</tbody></table>"
    )


def _released(model: Any) -> list[tuple[str, float]]:
    """Names and weights, the intercept of each class after its own."""
    if not hasattr(model, "classes_"):
        names = [*map(str, model.coefficient_names_), "(intercept)"]
        return list(zip(names, [*np.ravel(model.coef_).tolist(), float(model.intercept_)], strict=True))
    found: list[tuple[str, float]] = []
    by_class = weights_by_class(released_model(model))
    for label, (weights, intercept) in by_class.items():
        before = f"{label}: " if len(by_class) > 1 else ""
        found += [(before + name, weight) for name, weight in weights.items()] + [(f"{before}(intercept)", intercept)]
    return found


def _forest(table: CoefficientTable) -> str:
    """Intervals, darker where they would be without noise."""
    quantile = float(ndtri(0.5 + 0.5 * table.level))
    shown = [c for c in table.coefficients if all(map(math.isfinite, (c.low, c.high)))]
    if not shown:
        return ""
    axis = _Axis.over([c.low for c in shown] + [c.high for c in shown])
    marks = []
    for place, one in enumerate(shown):
        own = min(quantile * one.sampling_error, 0.5 * (one.high - one.low))
        middle = (place + 0.5) * _LINE
        marks.append(
            _label(one.name, middle)
            + axis.bar(one.low, one.high, middle, 10, "#9ecae1")
            + axis.bar(one.estimate - own, one.estimate + own, middle, 10, "#2171b5")
            + axis.tick(one.estimate, middle)
        )
    described = f"Intervals at {table.level:g}. Dark: from sampling alone. Light: with the noise for privacy."
    return axis.drawn(marks, described)


def _bars(weights: list[tuple[str, float]]) -> str:
    """The longest weights from 0."""
    longest = sorted(weights, key=lambda pair: -abs(pair[1]))[:_MOST_BARS]
    axis = _Axis.over([0.0, *(weight for _, weight in longest)])
    marks = [
        _label(name, (place + 0.5) * _LINE) + axis.bar(min(0.0, w), max(0.0, w), (place + 0.5) * _LINE, 12, "#2171b5")
        for place, (name, w) in enumerate(longest)
    ]
    few = "" if len(longest) == len(weights) else f" The {len(longest)} longest of {len(weights)}."
    return axis.drawn(marks, f"Released weights.{few}")


class _Axis:
    """From numbers to places along a line of the drawing."""

    def __init__(self, low: float, high: float) -> None:
        self._low, self._unit = low, _WIDTH / (high - low)

    @classmethod
    def over(cls, values: list[float]) -> _Axis:
        """An axis that shows these and 0."""
        low, high = min(0.0, *values), max(0.0, *values)
        room = 0.03 * (high - low) or 1.0
        return cls(low - room, high + room)

    def place(self, value: float) -> float:
        return _LEFT + (value - self._low) * self._unit

    def bar(self, low: float, high: float, middle: float, thick: int, colour: str) -> str:
        x, y, long = self.place(low), middle - thick / 2, max(1.0, (high - low) * self._unit)
        return f'<rect x="{x:.1f}" y="{y:.1f}" width="{long:.1f}" height="{thick}" fill="{colour}"/>'

    def tick(self, value: float, middle: float) -> str:
        x = self.place(value)
        return (
            f'<line x1="{x:.1f}" y1="{middle - 7:.1f}" x2="{x:.1f}" y2="{middle + 7:.1f}" stroke="#000" stroke-width="1.5"/>'
        )

    def drawn(self, marks: list[str], described: str) -> str:
        """The whole drawing, with a line at 0, numbers below, and words for those who cannot see it."""
        height, zero = len(marks) * _LINE, self.place(0.0)
        ends = [self._low + share * _WIDTH / self._unit for share in (0.02, 0.98)]
        numbers = "".join(
            f'<text x="{self.place(end):.1f}" y="{height + 18}" text-anchor="middle">{end:.3g}</text>'
            for end in ends
            if abs(self.place(end) - zero) > _LINE
        )
        return (
            f'<div class="scroll"><svg role="img" width="{_LEFT + _WIDTH + _RIGHT}" height="{height + 26}">'
            f"<title>{escape(described)}</title>"
            f'<line x1="{zero:.1f}" y1="0" x2="{zero:.1f}" y2="{height + 4}" stroke="#8c959f"/>'
            f'<text x="{zero:.1f}" y="{height + 18}" text-anchor="middle">0</text>{numbers}{"".join(marks)}</svg></div>'
            f"<p>{escape(described)}</p>"
        )


def _label(name: str, middle: float) -> str:
    shown = name if len(name) <= 35 else f"{name[:17]}…{name[-17:]}"
    return f'<text x="{_LEFT - 10}" y="{middle + 4:.1f}" text-anchor="end">{escape(shown)}</text>'


def _columns(schema: Any) -> str:
    """What the schema says, as it says it: public knowledge."""
    told = "Public knowledge that the fit rests on, written before any row was seen:"
    return f"<p>{told}</p><pre>{escape(schema.to_toml())}</pre>"
