"""A released model as one page of HTML, for those who approve its release and those who read its coefficients.

The page is made from the release and from public facts alone, so it is as private as the model file. It needs no network, no
script and no font, and it prints well. Whatever came from a file appears as text and is never read as HTML.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from html import escape
from typing import Any

import numpy as np

from confide._version import __version__
from confide.effects.effects import has_effects
from confide.errors import ParameterError
from confide.estimators.linear_model import released_model
from confide.estimators.model_effects import effects_of
from confide.files import write_text
from confide.guarantee import Guarantee
from confide.released_models.shown_class import ShownClass, weights_by_class
from confide.report.curves import STYLE, effect_drawings
from confide.report.drawing import interval_plot, weight_plot

_STYLE = """
:root { color-scheme: light dark; --text: #1b1f24; --paper: #fff; --quiet: #57606a; --line: #8c959f; --mark: #1f6fb2; }
:root { --light: #9ecae1; --dark: #2171b5; --good: #f3faf5; --bad: #fff1f1; }
@media screen and (prefers-color-scheme: dark) {
:root { --text: #e6edf3; --paper: #14181d; --quiet: #a3adb8; --line: #68727d; --mark: #62b0ea; }
:root { --light: #2d5f86; --dark: #7cc0f2; --good: #16271c; --bad: #33191b; } }
body { font: 16px/1.5 system-ui, sans-serif; color: var(--text); background: var(--paper); overflow-wrap: anywhere; }
body { max-width: 62rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.6rem; margin-bottom: 0; } h2 { font-size: 1.2rem; margin-top: 2.2rem; }
.kind { color: var(--quiet); margin-top: .2rem; }
.promise { border-left: .35rem solid #1a7f37; padding: .2rem 1rem; background: var(--good); }
.void { border-left: .35rem solid #cf222e; padding: .2rem 1rem; background: var(--bad); }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; } caption { text-align: left; font-weight: 600; }
th, td { padding: .15rem .7rem .15rem 0; text-align: right; } th:first-child, td.word { text-align: left; }
tbody th { font-weight: 400; } thead th { border-bottom: 1px solid var(--line); }
svg text { font: 13px system-ui, sans-serif; fill: var(--text); } table, pre { overflow-wrap: normal; }
.scroll { overflow-x: auto; } pre { overflow-x: auto; }
footer { color: var(--quiet); margin: 2.5rem 0 1rem; font-size: .9rem; }
@media print { body { margin: 0; max-width: none; } h2 { break-after: avoid; } tr, figure { break-inside: avoid; } }
"""
_NOT_PROMISED = (
    "It does not hide what is true of the whole population, nor what follows from that about a person.",
    "It covers this release only. Other releases from the same rows add to what is revealed; a ledger adds them up.",
    "It does not hold if the holder of the data publishes the rows, or the seed of the noise, in another way.",
    "It does not cover the time that the fit took, nor other traces on the machine where it ran.",
)


def report_page(model: Any, *, level: float = 0.95) -> str:
    """The page of a model.

    Parameters
    ----------
    model : a fitted linear model of confide, or one that was loaded from a file
    level : float, in (0, 1)
        Level of the intervals, if the model has them.

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
        raise ParameterError("a report needs a fitted linear model of confide: call fit, or confide.load.")
    name, guarantee = type(model).__name__, model.guarantee_
    meaning = _meaning_of_weights(model)
    parts = [
        f"<h1>{escape(name)}{', released privately' if guarantee.void is None else ': not private'}</h1>",
        f'<p class="kind">{escape(meaning)}</p>' if meaning else "",
        _section("Guarantee", _guarantee(guarantee)),
        _section("Facts", _facts(model, guarantee)),
        _section("Effects", _effects(model, level)) if has_effects(released_model(model)) else "",
        _section("Coefficients", _coefficients(model, level)),
        _section("Columns", _columns(model.schema)) if getattr(model, "schema", None) is not None else "",
        _section("What the guarantee does not promise", _list(_NOT_PROMISED)) if guarantee.void is None else "",
        f"<footer>Made by confide {escape(__version__)} from the release and from public facts only.</footer>",
    ]
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">'
        f"<title>{escape(name)}: what was released</title><style>{_STYLE}{STYLE}</style></head>\n<body>\n"
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


def has_intervals(model: Any) -> bool:
    """Whether the release holds what is needed for intervals."""
    return released_model(model).evidence is not None


def _section(title: str, content: str) -> str:
    return f"<section><h2>{escape(title)}</h2>\n{content}</section>"


def _list(items: Sequence[str]) -> str:
    return "<ul>" + "".join(f"<li>{escape(item)}</li>" for item in items) + "</ul>"


def _meaning_of_weights(model: Any) -> str:
    if not hasattr(model, "classes_"):
        return "A regression."
    direction = ShownClass.of(released_model(model))
    return f"Positive weights favour {direction}." if direction.position is not None else f"Weights for {direction}."


def _guarantee(guarantee: Guarantee) -> str:
    sentences = guarantee.statement().split("\n")
    text = "".join(f"<p>{escape(line)}</p>" for line in sentences if not line.startswith("  - "))
    return f'<div class="{"promise" if guarantee.void is None else "void"}">{text}{_list(guarantee.assumptions)}</div>'


def _facts(model: Any, guarantee: Guarantee) -> str:
    pairs = [
        ("budget", str(guarantee.budget)),
        ("neighbours", str(guarantee.neighbours)),
        ("mechanism", guarantee.mechanism),
        ("alpha (ridge)", f"{model.alpha_:.6g}"),
        ("released weights", f"{np.size(model.coef_) + np.size(model.intercept_):,}"),
    ]
    rows = "".join(f'<tr><th>{escape(name)}</th><td class="word">{escape(value)}</td></tr>' for name, value in pairs)
    return f"<table><tbody>{rows}</tbody></table>"


def _effects(model: Any, level: float) -> str:
    """Pictures of the effects of columns, and what they mean."""
    effects = effects_of(model)
    found = list(effects.with_bands(level))
    introduction = (
        f"Above 0 (for levels: right of 0) a column raises the {effects.outcome}, below 0 it lowers it, compared with the "
        "mean of the curve over its scale or of all levels. All columns have the same scale of effects. Between knots, the "
        "short marks on the axis, a curve is straight. No row is drawn."
    )
    sentences = [introduction]
    if any(effect.has_band for effect in found):
        sentences.append(
            f"Bands cover sampling and the noise for privacy at level {level:g}: the inner one for each value by itself, "
            f"the outer one for all values of a column together."
        )
    elif has_intervals(model):
        sentences.append("No band is drawn where the noise hides what the rows tell.")
    else:
        sentences.append(
            "No part of the budget was used for intervals, so there are no bands. The noise alone may make effects of this "
            "size, above all for levels and stretches that few rows have."
        )
    if any(len(effect.columns) > 1 for effect in found):
        sentences.append("What interactions add is not drawn.")
    if effects.shortens_rows:
        sentences.append(
            "The model clips long encoded rows: all effects of such a row are multiplied by one factor below 1."
        )
    return f"<p>{escape(' '.join(sentences))}</p>{effect_drawings(found)}"


def _coefficients(model: Any, level: float) -> str:
    if has_intervals(model):
        table = model.summary(level=level)
        return f'{interval_plot(table)}<div class="scroll">{table.to_html()}</div>'
    weights = _released_weights(model)
    rows = "".join(f"<tr><th>{escape(name)}</th><td>{value:+.4f}</td></tr>" for name, value in weights)
    return (
        "<p>No part of the budget was used for intervals, so it is not known how precise these weights are.</p>"
        f"{weight_plot(weights)}<table><thead><tr><th>column</th><th>weight</th></tr></thead><tbody>{rows}</tbody></table>"
    )


def _released_weights(model: Any) -> list[tuple[str, float]]:
    """Names and weights. The intercept of each class follows its weights."""
    if not hasattr(model, "classes_"):
        names = [*map(str, model.coefficient_names_), "(intercept)"]
        return list(zip(names, [*np.ravel(model.coef_).tolist(), float(model.intercept_)], strict=True))
    found: list[tuple[str, float]] = []
    by_class = weights_by_class(released_model(model))
    for label, (weights, intercept) in by_class.items():
        prefix = f"{label}: " if len(by_class) > 1 else ""
        found += [(prefix + name, weight) for name, weight in weights.items()] + [(f"{prefix}(intercept)", intercept)]
    return found


def _columns(schema: Any) -> str:
    """The schema in its own words: it is public knowledge."""
    introduction = "The fit relies on this public knowledge, which was written down before any row was seen:"
    return f"<p>{introduction}</p><pre>{escape(schema.to_toml())}</pre>"
