"""Rows of persons."""

from __future__ import annotations

import pandas as pd

from confide.studies.counting import PersonCounts
from confide.studies.text_tables import table_pieces


def summary_of(path, most):
    counts = PersonCounts("person", ("age", "sex"))
    for piece in table_pieces(path, ["person", "age", "sex"]):
        counts.add(piece)
    return counts.summary(most)


def test_persons_and_repeated_rows_are_counted(tmp_path) -> None:
    """The same in text and in typed files; "01" is not the person "1"."""
    frame = pd.DataFrame(
        {
            "person": ["1", "1", "1", "01", "b", "b", None],
            "age": [3, 3, 4, 3, 5, 6, 3],
            "sex": ["F", "F", "F", "F", "M", "M", "F"],
        }
    )
    frame.to_csv(tmp_path / "p.csv", index=False)
    frame.to_parquet(tmp_path / "p.parquet", index=False)
    expected = {
        "persons": 3, "rows_without_person": 1, "rounded_rows": 0, "respelled": 1, "most_rows": 3,
        "persons_above": 2, "rows_above": 3, "repeated_rows": 1,
    }  # fmt: skip
    for name in ("p.csv", "p.parquet"):
        assert summary_of(tmp_path / name, most=1) == expected
    assert summary_of(tmp_path / "p.csv", most=2) | {} == expected | {"persons_above": 1, "rows_above": 1}


def test_persons_are_the_same_in_all_pieces(tmp_path) -> None:
    """A person whose rows lie far apart is one person."""
    path = tmp_path / "p.csv"
    # Cells that nothing reads fill the pieces, so that few rows are in several.
    wide = "x" * 200
    path.write_text("person,age,sex,wide\n" + "".join(f"{row % 1000},{row},F,{wide}\n" for row in range(50_000)))
    assert len(list(table_pieces(path, ["age"]))) > 1
    found = summary_of(path, most=49)
    assert (found["persons"], found["most_rows"], found["rows_above"], found["repeated_rows"]) == (1000, 50, 1000, 0)


def test_spellings_and_rounded_numbers_are_counted_over_all_files(tmp_path) -> None:
    """A fit refuses both."""
    rest = {"age": [1, 2, 3], "sex": ["F", "F", "M"]}
    pd.DataFrame({"person": [7, 8, 9]} | rest).to_parquet(tmp_path / "0.parquet")
    pd.DataFrame({"person": ["7", "8.0", "b"]} | rest).to_parquet(tmp_path / "1.parquet")
    pd.DataFrame({"person": [7.0, 1e17, 2.0]} | rest).to_parquet(tmp_path / "2.parquet")
    counts = PersonCounts("person", ("age", "sex"))
    for number in range(3):
        for piece in table_pieces(tmp_path / f"{number}.parquet", ["person", "age", "sex"]):
            counts.add(piece)
    found = counts.summary(1)
    assert (found["respelled"], found["rounded_rows"]) == (1, 1)


def test_no_rows() -> None:
    """Nothing is counted."""
    assert set(PersonCounts("person", ()).summary(1).values()) == {0}
