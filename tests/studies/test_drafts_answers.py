"""What is typed about a column, and what it means."""

from __future__ import annotations

import pytest

from confide.errors import ParameterError
from confide.studies.drafts import check_no_unclear_pair, described_column, described_target, target_answer, typed


@pytest.mark.parametrize(
    ("answer", "description"),
    [
        ("18 90", {"low": 18, "high": 90}),
        ("-2.5 to 8", {"low": -2.5, "high": 8}),
        ("0 .. 1_000", {"low": 0, "high": 1000}),
        ("0 1e6 log", {"low": 0, "high": 1000000, "scale": "log"}),
        ("18 90 in years", {"low": 18, "high": 90, "unit": "years"}),
        (
            "500 1e6 log empty in EUR a month",
            {"low": 500, "high": 1e6, "unit": "EUR a month", "scale": "log10", "missing": True},
        ),
        ("live in town, live in the country", {"categories": ["live in town", "live in the country"]}),
        ("500 1e6 log", {"low": 500, "high": 1000000, "scale": "log10"}),
        ("0.1 500 log10 empty in mg/L", {"low": 0.1, "high": 500, "unit": "mg/L", "scale": "log10", "missing": True}),
        ("0 1e6 LOG empty", {"low": 0, "high": 1000000, "scale": "log", "missing": True}),
        ("0 110 empty 999 -9", {"low": 0, "high": 110, "missing": [999, -9]}),
        ("0 110 log empty 999.9 in years", {"low": 0, "high": 110, "scale": "log", "missing": [999.9], "unit": "years"}),
        ("F, M, empty 9 -9", {"categories": ["F", "M"], "missing": [9, -9]}),
        ("F, M", {"categories": ["F", "M"]}),
        ("1,2,3", {"categories": [1, 2, 3]}),
        ("false, true", {"categories": [False, True]}),
        ("a, b, *", {"categories": ["a", "b"], "other": True}),
        ("a, b, *, empty", {"categories": ["a", "b"], "other": True, "missing": True}),
        ('"a, b", c', {"categories": ["a, b", "c"]}),
        ("a, *", {"categories": ["a"], "other": True}),
        ("0, 1", {"categories": [0, 1]}),
        ('"18", "90"', {"categories": [18, 90]}),
        ("2010-01-01 2030-12-31", {"low": "2010-01-01", "high": "2030-12-31"}),
        ("1.1.2010 31.12.2030 empty", {"low": "2010-01-01", "high": "2030-12-31", "format": "%d.%m.%Y", "missing": True}),
        ("01/02/2010 to 31/12/2030", {"low": "2010-02-01", "high": "2030-12-31", "format": "%d/%m/%Y"}),
        ("01/02/2010 12/31/2030", {"low": "2010-01-02", "high": "2030-12-31", "format": "%m/%d/%Y"}),
        ("2010-01-01 2030-12-31 as 31.12.24", {"low": "2010-01-01", "high": "2030-12-31", "format": "%d.%m.%y"}),
        (
            "2010-01-01 2030-12-31 as 31/12/2024 14:30 empty",
            {"low": "2010-01-01", "high": "2030-12-31", "format": "%d/%m/%Y %H:%M", "missing": True},
        ),
        ("skip", None),
        (" Skip ", None),
    ],
)
def test_an_answer_describes_a_column(answer, description) -> None:
    """And the description, typed again, describes it in the same way."""
    assert described_column("c", answer) == description
    if description is not None:
        assert described_column("c", typed(description)) == description


@pytest.mark.parametrize(
    "answer",
    [
        "",
        "18",
        "x",
        "18 90 loud",
        "18 90 999",
        "18 90 log 999",
        "90 18",
        "a, a",
        "*, empty",
        "0 1,000,000",
        "5 5",
        "*",
        "18 95 in years, missing 999",
        "0 1e6 in USD log",
        "01/02/2010 03/04/2030",
        "2010-01-01 2030-12-31 as 01/02/2024",
        "2010-13-01 2030-12-31",
        "2010-01-01 31.12.2030",
    ],
)
def test_other_answers_are_refused(answer) -> None:
    """With what to type."""
    with pytest.raises(ParameterError):
        described_column("c", answer)


@pytest.mark.parametrize(
    ("answer", "description"),
    [
        ("no, yes", {"column": "y", "negative": "no", "positive": "yes"}),
        ("0, 1", {"column": "y", "negative": 0, "positive": 1}),
        ("a, b, c", {"column": "y", "classes": ["a", "b", "c"]}),
        ("0 20000", {"column": "y", "low": 0, "high": 20000}),
    ],
)
def test_an_answer_describes_a_target(answer, description) -> None:
    """Labels, classes or bounds."""
    assert described_target("y", answer) == description
    assert described_target("y", typed(description)) == description


@pytest.mark.parametrize("answer", ["", "yes", "0 1 log", "no, no"])
def test_other_answers_for_a_target_are_refused(answer) -> None:
    """With what to type."""
    with pytest.raises(ParameterError):
        described_target("y", answer)


@pytest.mark.parametrize("answer", ["0,5 20", "0.5 2,5", "1,5 to 2,5 log", "0,1 500 log in mg/L", "0,1 1e6 log10"])
def test_a_decimal_comma_is_asked_back(answer) -> None:
    """As a bound of a column and of a target."""
    with pytest.raises(ParameterError, match="write decimals with a point"):
        described_column("c", answer)
    with pytest.raises(ParameterError, match="with a point"):
        described_target("c", answer)


def test_two_numbers_with_a_comma_are_asked_back_where_they_may_be_bounds() -> None:
    """Not codes such as 0 and 1, nor levels in quotes, nor what was suggested."""
    for answer, guess in (("18,90", "0 120"), ("18, 90", ""), ("0, 1", "0 120")):
        with pytest.raises(ParameterError, match="or two levels"):
            check_no_unclear_pair(answer, guess)
    for answer, guess in (
        ("0, 1", ""),
        ("-1, 1", ""),
        ("3, 7", "3, 7"),
        ('"18", "90"', "0 120"),
        ("18 90", ""),
        ("1,2,30", ""),
    ):
        check_no_unclear_pair(answer, guess)


def test_an_answer_for_a_column_becomes_one_for_a_target() -> None:
    """Without other levels, empty cells and a scale."""
    given = [
        "a, b, *, empty",
        "a, b, empty",
        "0 9 log",
        "0 9 log empty",
        "0 9 empty",
        "a, b",
        "skip",
        "0 9 log in EUR",
        "1 9 log10",
    ]
    expected = ["a, b", "a, b", "0 9", "0 9", "0 9", "a, b", "", "0 9 in EUR", "1 9"]
    assert [target_answer(answer) for answer in given] == expected
    assert target_answer("lives in town, lives in the country, *") == "lives in town, lives in the country"
    assert described_target("price", "0 9 in EUR") == {"column": "price", "low": 0, "high": 9, "unit": "EUR"}
