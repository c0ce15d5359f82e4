"""A released model as one page of HTML, for those who sign its release and those who read its coefficients.

The page needs no network, no script and no font. What is to be signed comes first and prints on two pages of A4, or on
three with rates of many groups; the technical appendix is folded. Whatever came from a file appears as text and is never
read as HTML.
"""

from __future__ import annotations

import re
from html import escape
from importlib.resources import files
from string import Template
from typing import Any

from confide._version import __version__
from confide.accounting.ledger import Ledger
from confide.accounting.records import now
from confide.blocks import Block, Section, facts_as_html, html_of, html_of_section
from confide.known_words import printable_lines
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
    facts = Section("Facts", contents.facts_box)
    sections = [contents.findings(), contents.accuracy, contents.confirmed]
    parts = [
        _verdict(contents),
        f'<div class="top">{html_of_section(facts)}{html_of_section(contents.gain)}</div>',
        facts_as_html(contents.checksums, ' checksums" aria-label="Checksums, SHA-256'),
        assumptions if are_first else "",
        *(html_of_section(section) for section in sections if section is not None),
        _sign(contents, "printed above" if are_first else "printed below"),
        "" if are_first else assumptions,
        _appendix(contents),
    ]
    words = {name: escape(getattr(contents, name)) for name in ("name", "heading", "purpose")}
    lines = running_lines(contents.model_name, contents.name, contents.sha256, contents.date)
    content = "\n".join(filter(None, parts))
    # The style sheet is for light and dark screens, narrow ones, and paper.
    page = Template(_file("page.html"))
    return printable_lines(
        page.substitute(words, style=_file("style.css"), lines=lines, content=content, version=escape(__version__))
    )


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
    words = {"name": escape(name), "heading": escape(f"Ledger {name}"), "purpose": escape(f"{whom}; as of {time} UTC")}
    # Headings within a section stand below the title itself here.
    content = "\n".join([gauge, html_of(*ledger.blocks()).replace("h3>", "h2>"), head])
    page = Template(_file("page.html"))
    return printable_lines(
        page.substitute(words, style=_file("style.css"), lines="", content=content, version=escape(__version__))
    )


def _file(name: str) -> str:
    return files("confide.report").joinpath(name).read_text(encoding="utf-8")


def _verdict(contents: Contents) -> str:
    verdict = contents.verdict
    sentences = "".join(f"<p>{escape(sentence)}</p>" for sentence in verdict.sentences if sentence)
    return (
        f'<section aria-label="Verdict" class="verdict {_CLASSES[verdict.kind]}"><strong>{escape(verdict.headline)}</strong>'
        f"{sentences}</section>"
    )


def _sign(contents: Contents, place: str) -> str:
    """How to verify, and rows for signatures; the assumptions are on paper at a place, and on a screen in the appendix."""
    check = f"<code>{escape(contents.command_to_verify())}</code>"
    if not contents.is_sound:
        told = f"<p>There is nothing to sign, as the verdict says. {check} says what was checked.</p>"
        return f"<section class=whole><h2>Verify</h2>\n{told}</section>"
    signed = (
        f"Signed is the release of this file: {contents.model_name or contents.heading}, SHA-256 {contents.sha256[:16]}… "
        f"Its guarantee holds under assumptions 1 to {len(contents.guarantee.assumptions)}"
    )
    words = {"check": check, "signed": escape(signed), "place": place, "analyst": escape(contents.analyst)}
    return Template(_file("sign.html")).substitute(words).rstrip()


def _appendix(contents: Contents) -> str:
    parts = [f"<h2>{section.title}</h2>{html_of(*section.blocks)}" for section in contents.appendix]
    if contents.schema is not None:
        apart = ", apart from what it names as released" if contents.schema.has_released else ""
        parts.append(
            f"<h2>Schema</h2><p>The fit relies on this public knowledge, written down before any row was seen{apart}:</p>"
            f'<pre tabindex="0" role="region" aria-label="Schema">{escape(contents.schema.to_toml())}</pre>'
        )
    if (last := contents.not_promised) is not None:
        parts.append(f"<h2>{last.title}</h2>{html_of(*last.blocks)}")
    return f'<details class="appendix"><summary>Technical appendix</summary>{"".join(parts)}</details>'
