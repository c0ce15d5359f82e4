"""Names of columns in messages."""

from __future__ import annotations

from confide.known_words import listed, listed_absent


def test_names_are_listed_in_quotes():
    """Names are in quotes, with commas between them."""
    assert listed(["age", "work class"]) == '"age", "work class"'
    assert listed([]) == ""


def test_absent_names_are_listed_with_those_that_differ_by_case_or_blanks_alone():
    """Others are not shown, however alike: they may be cells."""
    said = listed_absent(["Age", "education"], ["age", "educatio", 3])
    assert said == '"Age" (did you mean "age"?), "education"'
