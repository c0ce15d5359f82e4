"""The questions that begin a study."""

from __future__ import annotations

from dataclasses import replace

from confide.studies.interview import Interview
from tests.starting.studies import STUDY, TABLE


class Typist:
    """A person who types prepared answers, and remembers what was said."""

    def __init__(self, *answers):
        self.answers = list(answers)
        self.asked = []
        self.said = []

    def ask(self, question, default):
        self.asked.append((question, default))
        return self.answers.pop(0) or default

    def say(self, text):
        self.said.append(text)


def interview(typist):
    """An interview with a person, without suggestions."""
    return Interview(typist.ask, typist.say, TABLE, {})


def test_one_line_for_each_column() -> None:
    """An empty line takes the suggestion: of the name, or of an earlier column of the series."""
    typist = Typist("6", "no, yes", "", "F, M", "-2 8", "", "")
    schema = interview(typist).schema(None, None)
    assert schema.target == {"column": "ill", "negative": "no", "positive": "yes"}
    found = {column.name: column.description for column in schema.columns}
    bounds = {"low": -2, "high": 8}
    assert found == {
        "age": {"low": 0, "high": 120}, "sex": {"categories": ["F", "M"]}, "PAY_1": bounds, "PAY_2": bounds, "id": None,
    }  # fmt: skip
    assert not typist.answers
    assert "    a number from 0 to 120" in typist.said


def test_a_mistake_is_asked_again_and_taken_back() -> None:
    """A refused answer, a question mark, and the way back."""
    typist = Typist(
        "none", "ill", "yes", "no, yes", "x", "?", "1 2", "<", "1 3", "<", "<", "1 4", "F, M", "0 1", "0 1", "skip"
    )
    schema = interview(typist).schema(None, None)
    assert schema.columns[0].description == {"low": 1, "high": 4}
    assert not typist.answers


def test_persons_are_asked_for() -> None:
    """The column only if a person may have several rows; it is no column then."""
    assert interview(Typist("1")).person(None) == (1, None)
    assert interview(Typist("0", "3", "id")).person(None) == (3, "id")
    assert interview(Typist("5")).person(4) == (4, "id")
    assert interview(Typist("")).person(4) == (4, None)
    typist = Typist("no, yes", "", "F, M", "0 1", "")
    schema = interview(typist).schema("ill", "id")
    assert (schema.person, len(schema.columns)) == ("id", 4)


def test_settings_are_asked_for() -> None:
    """Rows, bounds if they are private, epsilon, delta and the limit."""
    public = interview(Typist("30,000", "", "none", "")).study(STUDY)
    assert (public.n_rows, public.n_rows_bounds, public.epsilon, public.delta, public.limit) == (30000, None, 0.5, None, 0.5)
    private = interview(Typist("private", "9 1", "10 99", "x", "2", "3", "1e-9", "4")).study(STUDY)
    assert (private.n_rows_bounds, private.epsilon, private.delta, private.limit) == ((10, 99), 2.0, 1e-9, 4.0)


def test_suggestions_of_a_public_file_are_defaults() -> None:
    """For columns and for the target."""
    typist = Typist("", *[""] * 5)
    suggested = {"age": "1 2", "sex": "a, b", "PAY_1": "0 1", "PAY_2": "0 2", "id": "skip", "ill": "no, yes, *, empty"}
    schema = Interview(typist.ask, typist.say, TABLE, suggested).schema("ill", None)
    assert schema.target["positive"] == "yes"
    assert [column.description for column in schema.columns][3] == {"low": 0, "high": 2}


def test_the_signs_of_numbers_are_asked_for_where_semicolons_stand_between_cells() -> None:
    """By one number as the file writes it; the encoding, which its first line showed, stays."""
    table = replace(TABLE, written={"encoding": "latin-1", "decimal": ","})
    for answers, written in (
        ([""], {"decimal": ","}),
        (["12000.5"], {}),
        (["12000", "12.000,5"], {"decimal": ",", "thousands": "."}),
        (["12'000.5"], {"thousands": "'"}),
    ):
        typist = Typist("no, yes", "", "F, M", "0 1", "", "", *answers)
        schema = Interview(typist.ask, typist.say, table, {}).schema("ill", None)
        assert schema.table == {"encoding": "latin-1"} | written
        assert typist.asked[-1][1] == "12000,5"
        assert not typist.answers
