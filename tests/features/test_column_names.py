"""Names of columns in messages, and names that look like data."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

import confide
from confide.features.column_names import closest, listed, listed_absent, listed_unknown, looks_like_number, words_of


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


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        ("Age", "age"),
        (" hours  [x] ", "hours [x]"),
        ("educaton", "education"),
        ("CAPITAL_GAIN", "capital-gain"),
        ("zip", ""),
        ("!", ""),
    ],
)
def test_a_name_that_was_meant_is_found_in_spite_of_case_blanks_and_separators(given, meant):
    """A name that is not alike has none."""
    assert closest(given, ["age", "hours [x]", "education", "capital-gain"]) == meant


def test_absent_names_are_listed_with_those_that_differ_by_case_or_blanks_alone():
    """Others are not shown, however alike: they may be cells."""
    said = listed_absent(["Age", "education"], ["age", "educatio", 3])
    assert said == '"Age" (did you mean "age"?), "education"'


def test_unknown_names_and_words_are_followed_by_what_was_meant():
    """Each unknown name by the known one that is like it, and a list of words by one question."""
    assert listed_unknown(["Age", "zip"], ["age", "sex"]) == '"Age" (did you mean "age"?), "zip"'
    assert words_of(("rbf", "cauchy"), "Cauchy ") == "'rbf', 'cauchy' (did you mean \"cauchy\"?)"
    assert words_of((1, 2), None) == "'1', '2'"


def test_every_refusal_that_lists_words_or_columns_asks_which_was_meant():
    """In the source: where a text says that something must be one of several, or is no column, a suggestion is filled in.

    Trusted code that others read to the end is spared: it has one such text, with two words.
    """
    lists = re.compile(r"must be one of \{|(?:is|are) no (?:number )?column|there is no column|\{what\}\. The")
    asks = re.compile(r"suggestion\(|words_of\(|listed_unknown\(|listed_absent\(|\{near\}|\{meant\}")
    seen, silent = 0, []
    package = Path(confide.__file__).parent
    for path in set(package.rglob("*.py")) - {package / "privacy" / "budgets.py"}:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.JoinedStr) and lists.search(text := ast.unparse(node)):
                seen += 1
                silent += [] if asks.search(text) else [(path.name, text)]
    assert seen > 15
    assert silent == []
