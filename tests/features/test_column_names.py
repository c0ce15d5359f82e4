"""Names of columns in messages, and names that look like data."""

from __future__ import annotations

import pytest

from confide.features.column_names import listed_absent, looks_like_number
from confide.known_words import listed


def test_names_are_listed_in_quotes():
    """Names are in quotes, with commas between them."""
    assert listed(["age", "work class"]) == '"age", "work class"'
    assert listed([]) == ""


@pytest.mark.parametrize("name", ["1", " 2.5", "-1e3", "inf"])
def test_text_that_reads_as_a_number_looks_like_a_cell(name):
    """Such names occur when the first row of a file was taken for its names."""
    assert looks_like_number(name)


@pytest.mark.parametrize("name", ["age", "x1", "", " ", "nan", "1_000", 1, None, 2.5])
def test_other_names_do_not(name):
    """Words, blank text, text that means missing, and names that are not text do not look like numbers."""
    assert not looks_like_number(name)


def test_absent_names_are_listed_with_those_that_differ_by_case_or_blanks_alone():
    """Others are not shown, however alike: they may be cells."""
    said = listed_absent(["Age", "education"], ["age", "educatio", 3])
    assert said == '"Age" (did you mean "age"?), "education"'
