"""Names that a table lacks, and those that were meant."""

from __future__ import annotations

from pathlib import Path

import pytest

from confide.studies.table_check import FileCheck


def check_names(present, wanted):
    """What is found of a file with these names."""
    return FileCheck(Path("p.parquet"), None, present, wanted)


@pytest.mark.parametrize("found", ["AGE", " age", "age ", "Age", "\ufeffage", "a_g_e", "âge"])
def test_a_name_that_differs_in_spelling_is_suggested(found) -> None:
    """By case, blanks, separators, accents and marks."""
    check = check_names([found, "sex"], ["age", "sex"])
    assert check.absent == {"age": found}
    assert check.extra == [found]


def test_names_that_nearly_agree_are_suggested() -> None:
    """And others are not."""
    check = check_names(["hours_per_weeks", "zip"], ["hours-per-week", "income"])
    assert check.absent == {"hours-per-week": "hours_per_weeks", "income": ""}


def test_a_line_without_any_known_name_may_be_data() -> None:
    """One known name shows that it is a line of names."""
    assert not check_names(["Smith", "London"], ["age", "sex"]).is_header
    assert check_names(["AGE", "London"], ["age", "sex"]).is_header


def test_a_name_that_comes_twice_is_found() -> None:
    """If the schema describes it."""
    assert check_names(["age", "age", "x", "x"], ["age"]).repeated == ["age"]
