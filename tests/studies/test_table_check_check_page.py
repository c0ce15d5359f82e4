"""The check as a page and for programs."""

from __future__ import annotations

import json

from confide.studies.table_check import (
    NOT_FOR_RELEASE,
    check_document,
    check_page,
    check_table,
    findings_of,
    rows_of_table,
    verdict,
)
from tests.curation.tables import SCHEMA, people


def checked(tmp_path, *, show_values=False):
    people().to_csv(tmp_path / "p.csv", index=False)
    return check_table([tmp_path / "p.csv"], SCHEMA, show_values=show_values)


def test_both_forms_say_that_they_are_not_for_release(tmp_path) -> None:
    """And hold the same shares."""
    check = checked(tmp_path)
    page, document = (
        check_page(check, findings_of(check), "Check of <p>\x1b\u202e"),
        check_document(check, findings_of(check)),
    )
    assert NOT_FOR_RELEASE in page
    assert document["note"] == NOT_FOR_RELEASE
    assert "Check of &lt;p&gt;??" in page
    assert "\x1b" not in page
    assert "<td>25.0%</td>" in page
    assert document["columns"]["work"]["unlisted"] == {"cells": 50, "share": 0.25}
    assert document["target"]["column"] == "ill"
    json.dumps(document, allow_nan=False)


def test_values_are_shown_only_if_they_were_asked_for(tmp_path) -> None:
    """On the page and in the document."""
    hidden, shown = checked(tmp_path), checked(tmp_path, show_values=True)
    for check, is_shown in ((hidden, False), (shown, True)):
        page, document = check_page(check, findings_of(check), "Check"), check_document(check, findings_of(check))
        assert ("SECRETVALUE (50)" in page) == is_shown
        assert ("SECRETVALUE" in json.dumps(document)) == is_shown


def test_a_column_has_one_row_of_the_table(tmp_path) -> None:
    """Clipped cells for numbers, unlisted ones for categories."""
    rows = {name: cells for name, *cells in rows_of_table(checked(tmp_path))}
    assert rows["age"] == ["100%", "0%", "", "0%", "0%"]
    assert rows["Größe (cm)"] == ["90.0%", "0%", "", "10.0%", "0%"]
    assert rows["work"] == ["75.0%", "", "25.0%", "0%", "0%"]
    assert "ill (target)" in rows


def test_the_verdict_counts_reasons() -> None:
    """Only those for which a fit refuses."""
    assert verdict(([], ["x"])) == "A fit would take this table."
    assert verdict((["x"], ["y"])) == "A fit would refuse this table, for 1 reason."
    assert verdict((["x"] * 2, [])).endswith("for 2 reasons.")
