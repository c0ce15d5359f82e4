"""A released model as one page of HTML, for those who sign its release; and a plan as a page on which one can move it.

The page of a model needs no network, no script and no font. What is to be signed comes first and prints on two pages of
A4, or on three with rates of many groups; the technical appendix is folded. Whatever came from a file appears as text and
is never read as HTML.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from html import escape
from importlib.resources import files
from string import Template
from typing import Any

from confide._version import __version__
from confide.accounting.ledger import Ledger
from confide.accounting.records import now
from confide.blocks import Block, facts_as_html, html_of, section, table
from confide.budget_warnings import EXAMPLE_DELTA, cautions
from confide.errors import ParameterError, wording
from confide.guarantee import Guarantee
from confide.known_words import printable_lines
from confide.planning.advice import in_words, verdict_of
from confide.planning.made_up_fits import estimator_with
from confide.planning.simulation import Forecast
from confide.privacy.budgets import (
    ZCDP,
    ApproxDP,
    Budget,
    Neighbours,
    PureDP,
    as_budget,
    concentrated_limit,
    shown_amounts,
    with_amount,
)
from confide.report.accuracy import guess_probability, meaning_of, percent
from confide.report.contents import Contents, contents_of
from confide.report.findings import has_curves

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
    # The space ends an escape and is no part of the string.
    escaped = re.sub("[^A-Za-z0-9 ]", lambda match: f"\\{ord(match[0]):x} ", text)
    return f'"{escaped}"'


_CLASSES = {"private": "promise", "caution": "caution", "void": "void"}


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
    # A table of coefficients is not split, so it often leaves room on the first sheet. Pictures of curves leave none.
    are_first, assumptions = not has_curves(contents.model), ""
    if contents.is_sound:
        # On the pages that are signed. A screen hides them, because its appendix can be opened.
        listed = html_of(Block("numbered", contents.guarantee.assumptions))
        assumptions = f'<section class="paper"><h2>Assumptions of the guarantee</h2>{listed}</section>'
    facts = section("Facts", contents.facts_box)
    parts = [
        _verdict(contents),
        f'<div class="top">{html_of(facts)}{html_of(contents.gain)}</div>',
        facts_as_html(contents.checksums, ' checksums" aria-label="Checksums, SHA-256'),
        assumptions if are_first else "",
        *(html_of(block) for block in [contents.findings(), contents.accuracy, contents.confirmed] if block is not None),
        _sign(contents, "printed above" if are_first else "printed below"),
        "" if are_first else assumptions,
        _appendix(contents),
    ]
    lines = running_lines(contents.model_name, contents.name, contents.sha256, contents.date)
    words = {"title": f"{contents.name}: what was released", "heading": contents.heading, "purpose": contents.purpose}
    source = "the release and from public facts only"
    return _document("\n".join(filter(None, parts)), **words, lines=lines, source=source)


def _document(content: str, *, lines: str = "", **words: str) -> str:
    """A page with this content, in the style sheet for light and dark screens, narrow ones, and paper."""
    escaped = {name: escape(text) for name, text in (words | {"version": __version__}).items()}
    page = Template(_file("page.html"))
    return printable_lines(page.substitute(escaped, style=_file("style.css"), lines=lines, content=content))


def page_of_ledger(ledger: Ledger, name: str) -> str:
    """What a ledger says, as a page for those who may not open the ledger itself.

    Parameters
    ----------
    ledger : Ledger
    name : what it is called on the page
    """
    rows, time = ledger.max_rows_per_person, now().replace("T", " ").removesuffix("+00:00")
    whom = f"{ledger.neighbours}, persons with at most {rows:,} row{'s'[: rows != 1]}, accounting {ledger.accounting}"
    spent, limit = ledger.spent().amount, ledger.limit.amount
    share = f"{100.0 * spent / limit:.0f} % of the limit is spent"
    gauge = f'<p><meter min="0" max="{limit!r}" value="{spent!r}" style="width: 100%">{share}</meter> {share}.</p>'
    head = facts_as_html([("Head of the chain", ledger.head)], ' checksums" aria-label="Head of the chain, SHA-256')
    # Headings within a section stand below the title itself here.
    content, purpose = html_of(*ledger.blocks()).replace("h3>", "h2>"), f"{whom}; as of {time} UTC"
    words = {"title": f"Ledger {name}: what was released", "heading": f"Ledger {name}", "purpose": purpose}
    return _document("\n".join([gauge, content, head]), **words, source="the release and from public facts only")


def _file(name: str) -> str:
    return files("confide.report").joinpath(name).read_text(encoding="utf-8")


def _verdict(contents: Contents) -> str:
    verdict = contents.verdict
    sentences = "".join(f"<p>{escape(sentence)}</p>" for sentence in verdict.sentences if sentence)
    kind, said = _CLASSES[verdict.kind], f"<strong>{escape(verdict.headline)}</strong>{sentences}"
    return f'<section aria-label="Verdict" class="verdict {kind}">{said}</section>'


def _sign(contents: Contents, place: str) -> str:
    """How to verify, and rows for signatures; the assumptions are on paper at a place, and on a screen in the appendix."""
    check = f"<code>{escape(contents.command_to_verify())}</code>"
    if not contents.is_sound:
        told = f"<p>There is nothing to sign, as the verdict says. {check} says what was checked.</p>"
        return f"<section class=whole><h2>Verify</h2>\n{told}</section>"
    name, last = contents.model_name or contents.heading, len(contents.guarantee.assumptions)
    signed = wording("what is signed", name=name, start=contents.sha256[:16], last=last)
    words = {"check": check, "signed": escape(signed), "place": place, "analyst": escape(contents.analyst)}
    return Template(_file("sign.html")).substitute(words).rstrip()


def _appendix(contents: Contents) -> str:
    parts = [f"<h2>{part.title}</h2>{html_of(*part.lines)}" for part in contents.appendix]
    if contents.schema is not None:
        apart = ", apart from what it names as released" if contents.schema.has_released else ""
        parts.append(
            f"<h2>Schema</h2><p>The fit relies on this public knowledge, written down before any row was seen{apart}:</p>"
            f'<pre tabindex="0" role="region" aria-label="Schema">{escape(contents.schema.to_toml())}</pre>'
        )
    if (last := contents.not_promised) is not None:
        parts.append(f"<h2>{last.title}</h2>{html_of(*last.lines)}")
    return f'<details class="appendix"><summary>Technical appendix</summary>{"".join(parts)}</details>'


# A plan that one can move: budget, rows and promise, over a grid of plans that are made beforehand from public facts.

_DOUBLINGS, _FEWER_DOUBLINGS = (3, 3), (2, 1)
"""So many steps of a factor of 2 lead from the plan to either end of the page: in budget, and in rows."""
_MANY_WEIGHTS = 60
"""Above, and with intervals, a plan takes a large part of a second, and there are fewer steps."""
_RELATIONS = {Neighbours.REPLACE_ONE: "one person replaced", Neighbours.ADD_OR_REMOVE_ONE: "one person added or removed"}


def plan_page(
    estimator: Any,
    n_rows: int | None = None,
    n_features: int | None = None,
    *,
    error: float | None = None,
    positive_rate: float | None = None,
    command: str = "",
    words: Callable[[str], str] = str,
    told: Callable[[str], object] = str,
) -> str:
    """The page of a plan, on which budget, number of rows and promise are moved. It reads no data and spends nothing.

    It has plans for each kind of privacy and either relation of neighbours. Budgets and numbers of rows differ by factors of
    2, from an eighth of the plan's to 8 times; for more than 60 weights or with intervals, where plans take longer, there
    are budgets from a fourth to 4 times, and half and twice the rows. For rho the factor is 4, which
    halves the noise as twice an epsilon does. Budgets of the three kinds in the middle have the same epsilon, that of rho
    at a delta of 1e-6. Where the number of rows becomes private, it is declared to lie between that number and twice that.
    The page needs no network, and without a script it shows tables.

    Parameters
    ----------
    estimator : an estimator of confide with a finite budget
        It need not be fitted.
    n_rows, n_features : int or None
        As in the estimator's `plan`.
    error, positive_rate : float or None
        As in `confide.planning.simulate`.
    command : str
        The command that plans this again, without budget and rows, which the page adds as options.
    words : callable
        From the sentence of a refusal to the one that is shown.
    told : callable
        Called with a text on what is planned next, once for each promise.

    Returns
    -------
    str
        A whole HTML document.

    Raises
    ------
    ParameterError
        If the plan itself is refused, or the budget is infinite. Other plans that are refused are shown with the reason.

    Notes
    -----
    Guarantee: none is needed. No row is read: plans and forecasts are made from public facts and made-up rows.
    """
    budget, guesses = as_budget(estimator.budget), dict[str, Any](error=error, positive_rate=positive_rate)
    if not budget.is_private:
        raise ParameterError("a plan that is moved needs a finite budget: an infinite one adds no noise.")
    decided = estimator.plan(n_rows, n_features)
    verdict = verdict_of(estimator, n_rows, n_features, plan=decided, alone=True, **guesses)
    problem, low = decided.problem, decided.problem.n_rows_low
    is_quick = problem.n_weights <= _MANY_WEIGHTS and decided.intervals is None
    steps, row_steps = (range(-most, most + 1) for most in (_DOUBLINGS if is_quick else _FEWER_DOUBLINGS))
    kinds, relations, tables, said = list[Any](), list[Any](), list[Block](), dict[str, int]()
    for kind in _kinds_beside(budget, problem.n_rows_high):
        moved = [with_amount(kind, kind.amount * (4.0 if kind.is_concentrated else 2.0) ** power) for power in steps]
        shown = [(shown_amounts(one, ".12"), percent(guess_probability(one))) for one in moved]
        kinds.append((moved, {"name": kind.title, "budgets": shown}))
    for relation in sorted(Neighbours, key=lambda relation: relation is not problem.neighbours):
        is_public, points = relation is Neighbours.REPLACE_ONE, list[Any]()
        high = problem.n_rows_high if relation is problem.neighbours else low if is_public else 2 * low
        rows = [(max(1, round(low * 2.0**power)), max(1, round(high * 2.0**power))) for power in row_steps]
        texts = [f"{least:,} rows" if is_public else f"between {least:,} and {most:,} rows" for least, most in rows]
        for moved, kind in kinds:
            title = f"{kind['name'].capitalize()}, {_RELATIONS[relation]}"
            told(f"plans with {title}")
            points.append([])
            for ends in rows:
                whom = {"neighbours": relation.value, "n_rows_bounds": None if is_public else ends, "ledger": None}
                asked = ((estimator_with(estimator, budget=one, **whom), ends[0] if is_public else None) for one in moved)
                points[-1].append([_point(*one, n_features, guesses, said, words) for one in asked])
            cells = [[name, *(point["r"] for point in line)] for name, line in zip(texts, points[-1], strict=True)]
            heads, last = zip(("Rows", "Right guess, at most"), *kind["budgets"], strict=True)
            tables.append(table(heads, [*cells, last], title=title))
        meaning = meaning_of(Guarantee(budget, relation, "none", max_rows_per_person=problem.rows_per_person), "{odds}")
        relations.append({"name": _RELATIONS[relation], "meaning": meaning, "rows": texts, "points": points})
    tables.append(Block("list", [line for line in said if line.startswith("Refused: ")]))
    data: Any = {"kinds": [kind for _, kind in kinds], "relations": relations, "said": [*said], "command": command}
    note = verdict.error
    if (forecast := verdict.forecast) is not None:
        data["name"], _, without = in_words(forecast)
        data["without"] = _as_shown(forecast, forecast.non_private_error), without
        note = f"{data['name']}: as shown, {note.partition(', ')[2]}"
    facts = json.dumps(data, separators=(",", ":")).replace("<", "\\u003c")
    content = Template(_file("plan.html")).substitute(note=escape(note), tables=html_of(*tables), facts=facts)
    title = f"A plan to be moved: {type(estimator).__name__}"
    purpose = "What a fit would give at other budgets, numbers of rows and promises."
    source = "public facts only: no row was read, and nothing was spent"
    return _document(content, title=title, heading=title, purpose=purpose, source=source)


def _kinds_beside(budget: Budget, n_rows: int) -> list[Budget]:
    """The budget, and one of each other kind: with the same epsilon, which rho implies at a delta of 1e-6."""
    epsilon = float(f"{budget.to_approx(EXAMPLE_DELTA).epsilon:.3g}") if budget.is_concentrated else budget.amount
    kinds: list[Budget] = [PureDP(epsilon), ApproxDP(epsilon, min(EXAMPLE_DELTA, float(f"{0.1 / n_rows:.1g}")))]
    if (rho := float(f"{concentrated_limit(epsilon, EXAMPLE_DELTA)[0]:.2g}")) > 0.0:
        kinds.append(ZCDP(rho))
    return [budget, *(kind for kind in kinds if kind.kind != budget.kind)]


def _point(
    estimator: Any, n_rows: int | None, n_features: int | None, guesses: dict[str, Any], said: dict[str, int], words: Any
) -> dict[str, Any]:
    """What is shown of one plan: its range, error, level and sentences, or why it is refused. `said` numbers sentences."""
    point: dict[str, Any] = {"r": "refused"}
    try:
        plan = estimator.plan(n_rows, n_features)
        verdict = verdict_of(estimator, n_rows, n_features, plan=plan, alone=True, **guesses)
    except ParameterError as refused:
        lines = [f"Refused: {words(str(refused))}"]
    else:
        point = {"r": "unknown", "l": verdict.level}
        lines = [verdict.rows, verdict.columns, verdict.weights, verdict.classes]
        if plan.intervals is not None:
            # Without what is supposed of a column, which is long and much the same in all plans.
            lines += [f"{line.partition(' at 95% if ')[0]} at 95%." for line in plan.intervals.sentences()]
            lines += [f"Interval: {line}." for name, line in plan.intervals.lines().items() if name == "expected interval"]
        lines += cautions(as_budget(estimator.budget), plan.problem.n_rows_low, plan.problem.n_rows_high)
        if (forecast := verdict.forecast) is not None:
            ends = max(forecast.low, forecast.non_private_error), forecast.high
            point |= {"r": in_words(forecast)[1], "e": [_as_shown(forecast, value) for value in (forecast.error, *ends)]}
    return point | {"s": [said.setdefault(line, len(said)) for line in lines if line]}


def _as_shown(forecast: Forecast, error: float) -> float:
    return round(error if forecast.kind == "classes" else max(0.0, 1.0 - error), 4)
