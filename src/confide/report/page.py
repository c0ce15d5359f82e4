"""A released model as one page of HTML, for those who sign its release and those who read its coefficients.

The page needs no network, no script and no font. What is to be signed comes first and prints on two pages of A4, or on
three with rates of many groups; the technical appendix is folded. Whatever came from a file appears as text and is never
read as HTML.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from html import escape
from importlib.resources import files
from typing import Any

import numpy as np

from confide._version import __version__
from confide.displays.plans import first_amount
from confide.features.column_names import printable_lines
from confide.report.accuracy import (
    accuracy_picture,
    charge_of_rates,
    forecast_note,
    odds_picture,
    question_of,
    tables_of_rates,
    what_was_rated,
)
from confide.report.contents import NOT_PROMISED, Contents, contents_of
from confide.report.findings import (
    STYLE_OF_CURVES as OF_CURVES,
)
from confide.report.findings import (
    STYLE_OF_SURFACES as OF_SURFACES,
)
from confide.report.findings import (
    all_findings,
    has_curves,
    main_findings,
)

# The lines at the foot of every printed page: which file the report is about, its checksum, and the number of the page.
#
# They are margin boxes of CSS, which browsers print since 2024 (Chromium 131). Older browsers leave them out.

_DIGITS_OF_CHECKSUM = 16


def running_lines(model_name: str, kind: str, sha256: str, date: str) -> str:
    """A style sheet that prints a line at the foot of each page.

    Parameters
    ----------
    model_name : name of the model's file, "" if it is not known
    kind : the kind of the model, which stands there if no file is named
    sha256 : checksum of the model's file
    date : date of the report
    """
    file = f"{model_name or kind}, SHA-256 {sha256[:_DIGITS_OF_CHECKSUM]}…"
    boxes = (
        ("bottom-left", css_string(file)),
        ("bottom-center", css_string(f"made by confide {__version__}, {date}")),
        ("bottom-right", '"page " counter(page) " of " counter(pages)'),
    )
    written = " ".join(f"@{place} {{ content: {content}; font: 7pt system-ui, sans-serif; }}" for place, content in boxes)
    return f"@page {{ {written} }}\n"


def css_string(text: str) -> str:
    """Text as a string of CSS. All but letters, digits and spaces are escaped, so that nothing in it ends the string."""
    return f'"{"".join(map(_escaped, text))}"'


def _escaped(letter: str) -> str:
    # The space ends the escape and is no part of the string.
    return letter if letter.isascii() and (letter.isalnum() or letter == " ") else f"\\{ord(letter):x} "


_CLASSES = {"private": "promise", "caution": "caution", "void": "void"}
_SIGNERS = ("Analyst", "Approved by")


def report_page(model: Any, **given: Any) -> str:
    """The page of a model.

    Parameters
    ----------
    model : a fitted linear model of confide, or one that was loaded from a file
    **given
        What is known besides, as for `contents_of`: level, ledger, analyst, data_name, evaluation and others.

    Returns
    -------
    str
        A whole HTML document.

    Raises
    ------
    ParameterError
        If the model was not fitted, or is of another kind.
    """
    return page_of(contents_of(model, **given))


def page_of(contents: Contents) -> str:
    """The page of what a report says."""
    assumptions = _assumptions_on_paper(contents.guarantee) if contents.is_sound else ""
    # A table of coefficients is not split, so it often leaves room on the first sheet. Pictures of curves leave none.
    are_first = not has_curves(contents.model)
    parts = [
        f"<h1>{escape(contents.heading)}</h1>",
        f'<p class="kind">{escape(contents.purpose)}</p>',
        _verdict(contents),
        f'<div class="top">{_section("Facts", _facts(contents))}{_gain(contents)}</div>',
        _checksums(contents),
        assumptions if are_first else "",
        _section("What the model says", main_findings(contents.model, contents.level, contents.adjust)),
        _accuracy(contents),
        _confirm(contents),
        _sign(contents, _where_assumptions_are(are_first=are_first)),
        "" if are_first else assumptions,
        _appendix(contents),
        f"<footer>Made by confide {escape(__version__)} from the release and from public facts only.</footer>",
    ]
    lines = running_lines(contents.model_name, contents.name, contents.sha256, contents.date)
    return printable_lines(
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(contents.name)}: what was released</title><style>{_style()}{lines}</style></head>\n<body>\n<main>\n"
        + "\n".join(filter(None, parts))
        + "\n</main></body></html>\n"
    )


@cache
def _style() -> str:
    """The style sheet: light and dark screens, narrow ones, and paper."""
    own = files("confide.report").joinpath("style.css").read_text(encoding="utf-8")
    return OF_CURVES + OF_SURFACES + own


def _verdict(contents: Contents) -> str:
    verdict = contents.verdict
    sentences = "".join(f"<p>{escape(sentence)}</p>" for sentence in verdict.sentences if sentence)
    return (
        f'<section aria-label="Verdict" class="verdict {_CLASSES[verdict.kind]}"><strong>{escape(verdict.headline)}</strong>'
        f"{sentences}</section>"
    )


def _facts(contents: Contents) -> str:
    pairs = "".join(f"<dt>{escape(name)}</dt><dd>{escape(value)}</dd>" for name, value in contents.facts)
    warning = ""
    if contents.fingerprint:
        warning = (
            "<p>The fingerprint is computed from the rows, so no guarantee covers it: whoever guesses the whole file can "
            "confirm the guess. Leave it out of what the public gets.</p>"
        )
    return f'<dl class="facts">{pairs}</dl>{warning}'


def _checksums(contents: Contents) -> str:
    pairs = "".join(f"<dt>{escape(name)}</dt><dd>{escape(value)}</dd>" for name, value in contents.checksums)
    return f'<dl class="facts checksums" aria-label="Checksums, SHA-256">{pairs}</dl>'


def _gain(contents: Contents) -> str:
    """What an attacker can gain."""
    if contents.guarantee.void is None and not contents.is_sound:
        text = "It is not known: the guarantee that the file states does not follow from its facts."
        return _section("What an attacker can gain", f"<p>{text}</p>")
    if not contents.odds:
        return _section(
            "What an attacker can gain", "<p>There is no limit: the release may reveal any row, as the verdict says.</p>"
        )
    text = (
        f"<p>An attacker who knows every other row and the code, and has unlimited computing time, guesses at even odds "
        f"{escape(question_of(contents.guarantee))}. The bars show the largest probability of guessing right.</p>"
    )
    note = f"<p>{escape(contents.odds_note)}</p>" if contents.odds_note else ""
    return _section("What an attacker can gain", text + odds_picture(contents.odds) + note)


def _accuracy(contents: Contents) -> str:
    parts, groups = [], ""
    if contents.evaluation is not None:
        found = contents.evaluation
        (_, _, lines), *of_groups = tables_of_rates(found)
        rows = _rows_of_rates(lines)
        note = f"Measured on private rows that were kept aside, with intervals at level {found['level']:g}."
        cost = _cost_of_evaluation(found)
        text = f"<p>{escape(note)} {escape(what_was_rated(found))} {escape(cost)}</p>"
        parts.append(f"<div><table><tbody>{rows}</tbody></table>{text}</div>")
        groups = "".join(_group(*table) for table in of_groups)
    if contents.forecasts:
        chosen = first_amount(contents.guarantee.budget)
        picture, note = accuracy_picture(contents.forecasts, chosen), forecast_note(contents.forecasts)
        parts.append(f"<div>{picture}<p>{escape(note)}</p></div>")
    if not parts:
        parts.append(
            "<p>It is not stated here: no evaluation on private rows was given, and no guess of the error without privacy "
            "from which to forecast it.</p>"
        )
    shown = f'<div class="pair">{"".join(parts)}</div>'
    if groups:
        shown += f'<h3>By group</h3><div class="groups">{groups}</div>'
    return _section("How accurate it is", shown, whole=not groups)


def _group(title: str, headings: tuple[str, ...], lines: list[tuple[str, ...]]) -> str:
    """The rates of one group."""
    head = "".join(f'<th scope="col">{escape(heading)}</th>' for heading in headings)
    rows = _rows_of_rates(lines)
    return f"<table><caption>{escape(title)}</caption><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"


def _rows_of_rates(lines: list[tuple[str, ...]]) -> str:
    return "".join(
        f'<tr><th scope="row">{escape(name)}</th>{"".join(f"<td>{escape(text)}</td>" for text in texts)}</tr>'
        for name, *texts in lines
    )


def _cost_of_evaluation(found: dict[str, Any]) -> str:
    if found.get("void"):
        return f"NOT PRIVATE: {found['void']}"
    amounts = ", ".join(f"{name} = {value:.6g}" for name, value in found["budget"].items() if isinstance(value, float | int))
    return f"The rates cost {amounts} of their own. {charge_of_rates(found)}"


def _confirm(contents: Contents) -> str:
    if not contents.points:
        return ""
    items = "".join(
        f'<li><label><input type="checkbox"><span>{escape(point)}</span></label></li>' for point in contents.points
    )
    return _section(
        "What the signer confirms",
        f'<p>The guarantee is proven if these points hold. No program can check them.</p><ul class="confirm">{items}</ul>',
        whole=True,
    )


def _assumptions_on_paper(guarantee: Any) -> str:
    """The assumptions on the pages that are signed. A screen hides them, because its appendix can be opened."""
    items = "".join(f"<li>{escape(item)}</li>" for item in guarantee.assumptions)
    return f'<section class="paper"><h2>Assumptions of the guarantee</h2><ol>{items}</ol></section>'


def _sign(contents: Contents, where_assumptions_are: str) -> str:
    heads = ("", "Name", "Role", "Date", "Signature")
    head = "".join(f'<th scope="col">{escape(name) or "<span>Who</span>"}</th>' for name in heads)
    rows = "".join(
        f'<tr><th scope="row">{escape(who)}</th>'
        + "".join(
            f'<td data-name="{name}">{escape(contents.analyst) if (who, name) == ("Analyst", "Name") else ""}</td>'
            for name in heads[1:]
        )
        + "</tr>"
        for who in _SIGNERS
    )
    check = contents.command_to_verify()
    if not contents.is_sound:
        told = f"<p>There is nothing to sign, as the verdict says. <code>{escape(check)}</code> says what was checked.</p>"
        return _section("Verify", told, whole=True)
    text = (
        f"<p>To verify: <code>{escape(check)}</code> checks the file, recomputes its plan from public facts, and says in "
        "words what it did and did not check. The checksums above bind this page to its files.</p>"
        f"<p>{escape(_what_is_signed(contents))}{where_assumptions_are}</p>"
        f'<table class="sign"><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>'
    )
    return _section("Verify and sign", text, whole=True)


def _what_is_signed(contents: Contents) -> str:
    """What the signatures are for: the file, and the assumptions of its guarantee."""
    return (
        f"Signed is the release of this file: {contents.model_name or contents.heading}, SHA-256 {contents.sha256[:16]}… "
        f"Its guarantee holds under assumptions 1 to {len(contents.guarantee.assumptions)}"
    )


def _where_assumptions_are(*, are_first: bool) -> str:
    """Where the reader finds them: on paper above or below, and on a screen in the appendix."""
    place = "printed above" if are_first else "printed below"
    return f'<span class="screen"> of the technical appendix.</span><span class="paper"> {place}.</span>'


def _appendix(contents: Contents) -> str:
    model, guarantee = contents.model, contents.guarantee
    parts = [
        "<h2>Guarantee, word by word</h2>",
        _guarantee(guarantee),
        "<h2>Facts of the fit</h2>",
        _technical_facts(model, guarantee),
        "<h2>Effects and coefficients</h2>",
        all_findings(model, contents.level, contents.adjust),
    ]
    if contents.schema is not None:
        parts += [
            "<h2>Schema</h2><p>The fit relies on this public knowledge, which was written down before any row was seen:</p>",
            f'<pre tabindex="0" role="region" aria-label="Schema">{escape(contents.schema.to_toml())}</pre>',
        ]
    if guarantee.void is None:
        parts += ["<h2>What the guarantee does not promise</h2>", _list(NOT_PROMISED)]
    return f'<details class="appendix"><summary>Technical appendix</summary>{"".join(parts)}</details>'


def _guarantee(guarantee: Any) -> str:
    sentences = guarantee.statement().split("\n")
    text = "".join(f"<p>{escape(line)}</p>" for line in sentences if not line.startswith("  - "))
    items = "".join(f"<li>{escape(item)}</li>" for item in guarantee.assumptions)
    return f"{text}<ol>{items}</ol>"


def _technical_facts(model: Any, guarantee: Any) -> str:
    pairs = [
        ("mechanism", guarantee.mechanism),
        ("alpha (ridge)", f"{model.alpha_:.6g}"),
        ("released weights", f"{np.size(model.coef_) + np.size(model.intercept_):,}"),
    ]
    items = "".join(f"<dt>{escape(name)}</dt><dd>{escape(value)}</dd>" for name, value in pairs)
    return f'<dl class="facts">{items}</dl>'


def _section(title: str, content: str, *, whole: bool = False) -> str:
    return f"<section{' class=whole' if whole else ''}><h2>{escape(title)}</h2>\n{content}</section>"


def _list(items: Sequence[str]) -> str:
    return "<ul>" + "".join(f"<li>{escape(item)}</li>" for item in items) + "</ul>"
