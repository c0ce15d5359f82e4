"""Suggestions from the rows of a public file."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from confide.studies.drafts import described_column
from confide.studies.interview import suggested_answers
from confide.studies.text_tables import names_of_table


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_types_levels_and_bounds_are_suggested(tmp_path, ending) -> None:
    """The same from text and from a typed file, and each suggestion can be typed."""
    at = np.arange(300)
    frame = pd.DataFrame(
        {
            "size": at * 0.5,
            "pay": np.where(at == 7, 10**6, at % 90),
            "wage": np.where(at == 7, 10**6, 1000 + at),
            "code": at % 3,
            "sex": np.array(["F", "M"])[at % 2],
            "work": np.where(at % 4 == 0, None, np.array(["a, b", "c", "d"])[at % 3]),
            "text": [f"t{number}" for number in at],
            "id": at,
            "same": "x",
            "flat": 3,
        }
    )
    path = tmp_path / f"p.{ending}"
    frame.to_csv(path, index=False) if ending == "csv" else frame.to_parquet(path, index=False)
    answers, _ = suggested_answers(path, names_of_table(path))
    assert answers == {
        "size": "0 149.5",
        "pay": "0 1000000 log",
        "wage": "1000 1000000 log",
        "code": "0, 1, 2, *",
        "sex": "F, M",
        "work": '"a, b", c, d, *, empty',
        "text": "skip",
        "id": "skip",
        "same": "skip",
        "flat": "skip",
    }
    for name, answer in answers.items():
        described_column(name, answer)


def test_na_is_a_missing_cell_unless_the_levels_are_codes_of_two_letters(tmp_path) -> None:
    """Namibia stays a level of a column of countries."""
    frame = pd.DataFrame({"land": ["DE", "ZA", "NA"] * 9, "work": ["a", "b", "NA"] * 9, "age": ["20.5", "30", "NA"] * 9})
    frame.to_csv(tmp_path / "p.csv", index=False)
    answers, _ = suggested_answers(tmp_path / "p.csv", names_of_table(tmp_path / "p.csv"))
    assert answers == {"land": "DE, NA, ZA, *", "work": "a, b, empty", "age": "20.5 30 empty"}


def test_codes_for_missing_cells_are_suggested_as_such(tmp_path) -> None:
    """999 and -9 beside ages, and -1 beside levels; 77 and 88 are ages, temperatures may be -9, and one cell is no code."""
    at = np.arange(300)
    age = 18 + at % 73
    frame = pd.DataFrame(
        {
            "age": np.where(at % 30 == 0, 999, np.where(at % 30 == 1, -9, age)),
            "years": age,
            "hours": np.where(at == 7, 999, age),
            "celsius": at % 40 - 20,
            "grade": np.where(at % 10 == 0, -1, at % 3),
        }
    )
    frame.to_csv(tmp_path / "p.csv", index=False)
    assert suggested_answers(tmp_path / "p.csv", names_of_table(tmp_path / "p.csv"))[0] == {
        "age": "18 90 empty 999 -9",
        "years": "18 90",
        "hours": "18 999",
        "celsius": "-20 19",
        "grade": "0, 1, 2, *, empty -1",
    }


@pytest.mark.parametrize(
    ("separator", "cells", "written", "answer"),
    [
        (";", ["1059,93", "12,5"], {"decimal": ","}, "12.5 1059.93"),
        (";", ["1.059,93", "12,5"], {"decimal": ",", "thousands": "."}, "12.5 1059.93"),
        (";", ["-1'059.93", "12.5"], {"thousands": "'"}, "-1059.93 12.5"),
        (";", ["1\u00a0059,93", ""], {"decimal": ",", "thousands": "\u00a0"}, "skip"),
        ("\t", ["12,500", "13,750"], {"decimal": ","}, "12.5 13.75"),
        (",", ['"12,500"', '"13,750"'], {"thousands": ","}, "12500 13750"),
        (",", ['"1,059.93"', "NA"], {"thousands": ","}, "skip"),
        (",", ["1059.93", "12.5"], {}, "12.5 1059.93"),
        (";", ["1,5", "a"], {}, "1,5"),
    ],
)
def test_the_signs_of_numbers_are_those_with_which_most_columns_are_numbers(
    tmp_path, separator, cells, written, answer
) -> None:
    """And the bounds are suggested from the numbers that a fit reads so."""
    lines = [separator.join(line) for line in [("size", "sex"), *zip(cells * 9, ["F", "M"] * 9, strict=True)]]
    (tmp_path / "p.csv").write_text("\n".join(lines), encoding="utf-8")
    answers, found = suggested_answers(tmp_path / "p.csv", names_of_table(tmp_path / "p.csv"))
    assert found == written
    assert answer in answers["size"]
    assert answers["sex"] == "F, M"


@pytest.mark.parametrize(
    ("cells", "answer"),
    [
        (["31.12.2024", "01.02.2023"], "2023-02-01 2024-12-31 as 31.12.2024"),
        (["31/12/2024", "01/02/2023", ""], "2023-02-01 2024-12-31 as 31/12/2024 empty"),
        (["12/31/2024", "01/02/2023"], "2023-01-02 2024-12-31 as 12/31/2024"),
        (["31.12.2024 08:15", "01.02.2023 23:59"], "2023-02-01 2024-12-31 as 31.12.2024 14:30"),
        (["2024-12-31", "2023-02-01"], "2023-02-01 2024-12-31"),
        (["01/02/2024", "03/04/2023"], ""),
        (["31.12.2024", "soon"], "31.12.2024, soon"),
    ],
)
def test_dates_are_suggested_in_the_one_form_that_reads_all_of_them(tmp_path, cells, answer) -> None:
    """Where day and month may stand in either order, nothing is suggested."""
    (tmp_path / "p.csv").write_text("\n".join(["since;sex", *(f"{cell};F" for cell in cells)]))
    answers, _ = suggested_answers(tmp_path / "p.csv", names_of_table(tmp_path / "p.csv"))
    assert answers["since"] == answer
    if answer:
        described_column("since", answer)
