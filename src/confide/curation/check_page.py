"""The check of a table as JSON for programs, and as a page for its curator. Both say that they are not for release."""

from __future__ import annotations

from html import escape
from typing import Any

from confide.curation.column_counts import ColumnCounts
from confide.curation.findings import Finding, percent
from confide.curation.table_check import NOT_FOR_RELEASE, TableCheck, share
from confide.features.column_names import printable_lines
from confide.features.target import Target

HEADS = ("column", "as described", "clipped", "unlisted", "missing", "unreadable")
MOST_LEVELS_SHOWN = 20
_STYLE = """
:root { color-scheme: light dark; --text: #1b1f24; --paper: #fff; --line: #8c959f; --bad: #fff1f1; --warn: #fff8e6; }
@media screen and (prefers-color-scheme: dark) {
:root { --text: #e6edf3; --paper: #14181d; --line: #68727d; --bad: #33191b; --warn: #2e2615; } }
body { font: 16px/1.5 system-ui, sans-serif; color: var(--text); background: var(--paper); overflow-wrap: anywhere; }
body { max-width: 62rem; margin: 1rem auto; padding: 0 1rem; }
h1 { font-size: 1.6rem; } h2 { font-size: 1.2rem; margin-top: 2rem; }
.mark { border: .2rem solid #cf222e; padding: .3rem 1rem; font-weight: 600; }
li { margin: .3rem 0; padding: .1rem .6rem; list-style: none; border-left: .35rem solid #9a6700; background: var(--warn); }
li.refused { border-color: #cf222e; background: var(--bad); } ul { padding: 0; }
.scroll { overflow-x: auto; } table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
th, td { padding: .15rem .8rem .15rem 0; text-align: right; white-space: nowrap; }
thead th { border-bottom: 1px solid var(--line); }
th:first-child { text-align: left; } tbody th { font-weight: 400; }
"""


def rows_of_table(check: TableCheck) -> list[tuple[str, ...]]:
    """One row of text for each column: its name, and the share of cells of each kind. The heads are `HEADS`."""
    return [
        (
            f"{column.name} (target)" if isinstance(column.described, Target) else column.name,
            percent(column.as_described, column.rows),
            "" if column.bounds is None else percent(column.clipped, column.rows),
            "" if column.bounds is not None else percent(column.unlisted, column.rows),
            percent(column.missing, column.rows),
            percent(column.unreadable + column.infinite, column.rows),
        )
        for column in check.counted
    ]


def verdict(findings: list[Finding]) -> str:
    """One sentence: whether a fit would take the table."""
    count = sum(finding.refused for finding in findings)
    if not count:
        return "A fit would take this table."
    return f"A fit would refuse this table, for {count} reason{'s'[: count != 1]}."


def check_document(check: TableCheck, findings: list[Finding]) -> dict[str, Any]:
    """The check, for programs."""
    document: dict[str, Any] = {
        "note": NOT_FOR_RELEASE,
        "verdict": verdict(findings),
        "rows": check.n_rows,
        "findings": [{"refused": finding.refused, "text": finding.text} for finding in findings],
        "columns": {column.name: _counts(column) for column in check.columns},
        "target": None if check.target is None else {"column": check.target.name, **_counts(check.target)},
        "persons": check.persons,
    }
    if check.shows_values:
        document["unlisted_levels"] = {name: dict(levels) for name, levels in unlisted_levels(check).items()}
    return document


def unlisted_levels(check: TableCheck) -> dict[str, list[tuple[str, int]]]:
    """The most frequent unlisted levels of each column, if they were remembered to be shown."""
    return {column.name: column.levels.most_common(MOST_LEVELS_SHOWN) for column in check.counted if column.levels}


def check_page(check: TableCheck, findings: list[Finding], title: str) -> str:
    """The check as a page of HTML.

    Parameters
    ----------
    check : the counts
    findings : what follows from them
    title : what was checked
    """
    items = "".join(
        f"<li class=refused><strong>Refused:</strong> {escape(each.text)}</li>"
        if each.refused
        else f"<li>{escape(each.text)}</li>"
        for each in findings
    )
    heads = "".join(f'<th scope="col">{escape(head)}</th>' for head in HEADS)
    rows = "".join(
        f'<tr><th scope="row">{escape(name)}</th>{"".join(f"<td>{escape(cell)}</td>" for cell in cells)}</tr>'
        for name, *cells in rows_of_table(check)
    )
    levels = "".join(
        f"<p><b>{escape(name)}</b>: {', '.join(f'{escape(level)} ({count:,})' for level, count in found)}</p>"
        for name, found in unlisted_levels(check).items()
    )
    return printable_lines(
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">'
        f"<title>{escape(title)}</title><style>{_STYLE}</style></head>\n<body><main>\n<h1>{escape(title)}</h1>\n"
        f'<p class="mark">{NOT_FOR_RELEASE}</p>\n<p>{escape(verdict(findings))} {check.n_rows:,} rows were read.</p>\n'
        + (f"<h2>What was found</h2>\n<ul>{items}</ul>\n" if findings else "")
        + f'<h2>Shares of the cells</h2>\n<div class="scroll" tabindex="0" role="region" aria-label="Shares of the cells">'
        f"<table><thead><tr>{heads}</tr></thead><tbody>{rows}</tbody></table></div>\n"
        + (f"<h2>Unlisted levels, with the number of their rows</h2>\n{levels}\n" if levels else "")
        + "</main></body></html>\n"
    )


def _counts(column: ColumnCounts) -> dict[str, Any]:
    """Counts and shares of a column."""
    counts = {
        "as_described": column.as_described,
        "missing": column.missing,
        "unreadable": column.unreadable,
        "infinite": column.infinite,
        "clipped_below": column.below,
        "clipped_above": column.above,
        "unlisted": column.unlisted,
        "decimal_commas": column.decimal_commas,
    }
    return {"rows": column.rows, **{name: {"cells": n, "share": share(n, column.rows)} for name, n in counts.items()}}
