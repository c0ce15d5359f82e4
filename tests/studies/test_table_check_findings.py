"""What a curator is told about a table."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from confide import Schema
from confide.studies.table_check import check_table, findings_of, percent
from tests.curation.tables import SCHEMA, people


def told(tmp_path, frame, schema=SCHEMA, **how) -> str:
    """All findings as one text, with a mark where a fit refuses."""
    frame.to_csv(tmp_path / "p.csv", **({"index": False} | how))
    refused, noted = findings_of(check_table([tmp_path / "p.csv"], schema))
    return "\n".join([*(f"REFUSED {sentence}" for sentence in refused), *noted])


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (lambda frame: frame.rename(columns={"age": "AGE"}), 'REFUSED p.csv: has no column "age". Did you mean "AGE"?'),
        (lambda frame: frame.assign(zip=1), 'the schema does not describe "zip"'),
        (lambda frame: frame.assign(age=frame["age"] + 100), "no cell is as the schema describes it"),
        (lambda frame: frame.assign(age=frame["age"] * 2), "lie outside the bounds (0% below, 72.5% above)"),
        (lambda frame: frame.replace("F", "f"), 'no row has "F". Is it spelled as in the table?'),
        (lambda frame: frame.replace("F", "f"), "50.0% of the cells hold no listed category, so they have no effect at all"),
        (
            lambda frame: frame,
            "25.0% of the cells hold no listed category; they share one level. Are frequent ones forgotten?",
        ),
        (lambda frame: frame.replace("yes", "Yes"), "are none of the labels of the schema"),
        (lambda frame: frame.assign(age="3,5"), "100% of the cells are numbers with a decimal comma"),
        (lambda frame: frame.iloc[:0], "REFUSED There are no rows"),
    ],
)
def test_what_is_wrong_is_said(tmp_path, spoil, words) -> None:
    """In one sentence, and what to do."""
    text = told(tmp_path, spoil(people()))
    assert words in text
    assert "SECRETVALUE" not in text


@pytest.mark.parametrize(
    ("how", "words"),
    [
        ({"sep": ";"}, "semicolons stand between cells"),
        ({"encoding": "utf-16"}, "is in UTF-16"),
        ({"encoding": "latin-1"}, "Latin-1"),
    ],
)
def test_how_a_file_is_written_is_said(tmp_path, how, words) -> None:
    """And nothing of columns that a reader with commas would not find."""
    text = told(tmp_path, people(), **how)
    assert words in text
    assert "lacks the columns" not in text


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ("2026-12", '25.0% of the rows are of the cohort "2026-12"'),
        ("2027-01", 'REFUSED column "came": no row has the value "2027-01" of the cohort. Write the cells as releases are'),
    ],
)
def test_rows_of_the_cohort_are_looked_for(tmp_path, value, words) -> None:
    """A missing column, and one without a row of the cohort, are what a fit refuses; other cohorts are no mistake."""
    frame, schema = people(), replace(SCHEMA, cohort=("came", value))
    assert 'REFUSED p.csv: has no column "came"' in told(tmp_path, frame, schema)
    came = [["2026-12", "2026-11", None, "2026-1"][place % 4] for place in range(len(frame))]
    text = told(tmp_path, frame.assign(came=came), schema)
    assert words in text
    assert 'column "came": 7' not in text
    assert "2026-11" not in text


def test_weights_that_are_all_zero_are_refused(tmp_path) -> None:
    """As by a fit, before its charge; one row that counts is enough."""
    schema = replace(SCHEMA, weight={"column": "w", "high": 2})
    weights = np.zeros(len(people()))
    assert 'REFUSED column "w": the weights of all rows are 0' in told(tmp_path, people().assign(w=weights), schema)
    weights[1] = 0.5
    assert "weights of all rows" not in told(tmp_path, people().assign(w=weights), schema)


def test_a_line_of_data_is_not_shown(tmp_path) -> None:
    """Neither where it is known to be data nor where it may be."""
    for frame in (people(), people()[["work", "sex"]].iloc[[3]]):
        text = told(tmp_path, frame, header=False)
        assert "REFUSED" in text
        assert "SECRETVALUE" not in text
        assert "150" not in text


@pytest.mark.parametrize(
    ("listed", "cells", "words", "unsaid"),
    [
        (["private", "state"], ["private", "state", "NA"], "or, if such a word is a category, list it", "Namibia"),
        (["DE", "ZA"], ["DE", "ZA", "NA"], 'list "NA" too', "Declare missing = true or"),
        (["DE", "NA"], ["DE", "DE", None], 'take the listed "NA" for an empty cell', "Declare missing = true or"),
        (["DE", "NA"], ["DE", "NA"], "", "missing"),
    ],
)
def test_advice_about_missing_cells_never_makes_one_of_a_level(tmp_path, listed, cells, words, unsaid) -> None:
    """Where NA is a code like the others it is to be listed, and a listed one stays a level."""
    frame = people(len(cells) * 20).assign(land=cells * 20)
    schema = Schema.from_dict(SCHEMA.to_dict() | {"columns": SCHEMA.to_dict()["columns"] | {"land": {"categories": listed}}})
    text = "\n".join(line for line in told(tmp_path, frame, schema).splitlines() if '"land"' in line)
    assert words in text
    assert unsaid not in text


def test_numbers_that_repeat_as_codes_do_are_told(tmp_path) -> None:
    """Without the numbers, unless values are shown; ages beyond the bounds are none, and declared codes are missing."""
    ages = np.where(np.arange(200) % 10 == 0, 999, np.where(np.arange(200) % 10 == 1, -9, 61 + np.arange(200) % 30))
    frame = people().assign(age=np.where(np.arange(200) % 2 == 0, ages, np.where(ages == -9, -9, 30)))
    text = told(tmp_path, frame)
    assert "20.0% of the cells repeat 2 numbers outside the bounds, as codes for missing cells do. If the codebook" in text
    assert "do (" not in text
    _, shown = findings_of(check_table([tmp_path / "p.csv"], SCHEMA, show_values=True))
    assert any("do (-9, 999)" in sentence for sentence in shown)
    declared = SCHEMA.to_dict()
    declared["columns"]["age"]["missing"] = [999, -9]
    assert "codes" not in told(tmp_path, frame, Schema.from_dict(declared))


def test_a_tail_beyond_the_bounds_is_no_code(tmp_path) -> None:
    """Ages up to 99 under a bound of 60, each repeated, and a few of them far away."""
    ages = 60 + np.arange(200) % 40
    assert "codes" not in told(tmp_path, people().assign(age=ages))
    assert "codes" not in told(tmp_path, people().assign(age=np.where(np.arange(200) < 2, 500, ages)))


def test_persons_with_many_rows_are_told(tmp_path) -> None:
    """And rows that were copied."""
    schema = Schema(SCHEMA.columns, SCHEMA.target, person="who")
    text = told(tmp_path, people().assign(who=[row // 2 for row in range(200)]).iloc[[0, 0, *range(200)]], schema)
    assert "100 of 100 persons have more than 1 row; a fit leaves out 102 rows" in text
    assert "2 rows repeat another row of the same person" in text


def test_persons_in_several_spellings_are_told(tmp_path) -> None:
    """A fit would refuse them."""
    schema = Schema(SCHEMA.columns, SCHEMA.target, person="who")
    text = told(tmp_path, people().assign(who=[f"{row // 2}{'.0' * (row == 7)}" for row in range(200)]), schema)
    assert "REFUSED 1 of 101 identifiers of persons are another one in another spelling" in text


def test_shares_never_hide_a_cell() -> None:
    """Neither one that is there nor one that is not."""
    assert [percent(*pair) for pair in ((0, 9), (9, 9), (1, 10**6), (10**6 - 1, 10**6), (1, 8), (0, 0))] == [
        "0%", "100%", "below 0.1%", "above 99.9%", "12.5%", "0%",
    ]  # fmt: skip
