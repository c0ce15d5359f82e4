"""Names of columns, read without a value of a row."""

from __future__ import annotations

import datetime as dt

import pandas as pd
import pytest

from confide.errors import FileError, InputError, ParameterError
from confide.studies.text_tables import looks_like_data, names_given, names_of_table
from tests.curation.tables import people


def test_names_survive_as_they_are(tmp_path) -> None:
    """With blanks, quotes, brackets and letters of any language."""
    names = ["age", " b", 'say "x"', "Größe, cm", "[red]", "年齢"]
    pd.DataFrame([[1] * 6], columns=names).to_csv(tmp_path / "p.csv", index=False)
    assert names_of_table(tmp_path / "p.csv").names == tuple(names)


def test_an_index_column_is_left_out(tmp_path) -> None:
    """As pandas writes it, in CSV without a name and in Parquet with one of its own."""
    frame = people().set_index(pd.Index([row * 7 % 211 for row in range(200)]))
    frame.to_csv(tmp_path / "p.csv")
    frame.to_parquet(tmp_path / "p.parquet")
    for name in ("p.csv", "p.parquet"):
        table = names_of_table(tmp_path / name)
        assert (table.names, table.n_unnamed) == (tuple(people()), 1)


def test_a_parquet_file_declares_types(tmp_path) -> None:
    """Numbers, text, booleans, categories and what can be none of them."""
    frame = people().assign(flag=True, day=pd.Timestamp("2020-01-01"), kind=pd.Categorical(["a"] * 200))
    frame["stage"] = pd.Categorical(["I"] * 200, categories=["I", "II"], ordered=True)
    frame.to_parquet(tmp_path / "p.parquet", index=False)
    types = names_of_table(tmp_path / "p.parquet").types
    names = ("age", "work", "flag", "day", "kind", "stage")
    assert [types[name] for name in names] == ["number", "text", "boolean", "date", "text", "ordered"]


@pytest.mark.parametrize(
    "line",
    [
        *("SECRETVALUE,39", "SECRETVALUE,2020-01-31", "yes,yes", "SECRETVALUE,a@b.org", "a,,", "a" * 200),
        *(
            '"SECRETVALUE\nb",c',
            "SECRETVALUE,b\x07",
            "SECRETVALUE,$ a",
            "SECRETVALUE,€b",
            "SECRETVALUE,<b",
            "SECRETVALUE,>b",
        ),
        *(
            "SECRETVALUE,>b",
            "SECRETVALUE,=b",
            "SECRETVALUE,4th floor",
            "SECRETVALUE, Yes",
            "SECRETVALUE,no",
            "SECRETVALUE,TRUE",
        ),
        *("SECRETVALUE,False", "SECRETVALUE,male", "SECRETVALUE,Female"),
    ],
)
def test_a_first_line_of_data_is_not_shown(tmp_path, line) -> None:
    """The message says that it looks like data, and shows none of it."""
    (tmp_path / "p.csv").write_text(f"{line}\nb,c\n")
    with pytest.raises(InputError, match="looks like data") as refusal:
        names_of_table(tmp_path / "p.csv")
    # Folders of tests are numbered.
    said = str(refusal.value).replace(str(tmp_path), "")
    assert "SECRETVALUE" not in said
    assert "39" not in said


def test_usual_names_are_no_data() -> None:
    """Names of the credit table, of Adult, and one blank for an index."""
    assert not looks_like_data(["", "LIMIT_BAL", "PAY_0", "default payment next month", "capital-gain", "X1", "is_male"])


def test_a_damaged_file_and_one_that_is_no_table_are_refused(tmp_path) -> None:
    """With what to do."""
    (tmp_path / "p.parquet").write_bytes(b"SECRETVALUE")
    with pytest.raises(FileError, match="is damaged"):
        names_of_table(tmp_path / "p.parquet")
    with pytest.raises(FileError, match="must end in"):
        names_of_table(tmp_path / "p.pdf")


def test_names_can_be_given() -> None:
    """With quotes around those that hold commas; a name twice or a blank one is refused."""
    assert names_given('age, "b, c",2019').names == ("age", "b, c", "2019")
    for text in ("", "a,,b", "a,b,a"):
        with pytest.raises(ParameterError, match="--columns"):
            names_given(text)


def test_dates_and_missing_codes_of_stata_and_spss_are_declared(tmp_path):
    """Columns of dates are dates, and a label of a letter, which is Stata's code for a missing cell, is no level."""
    library = pytest.importorskip("pyreadstat", reason="pyreadstat is not installed")
    frame = pd.DataFrame({"work": [1, 2, "a"], "seen": [dt.date(2020, 1, 1)] * 3, "at": [dt.datetime(2020, 1, 1)] * 3})
    labels = {"work": {1: "full", 2: "part", "a": "refused"}}
    library.write_dta(frame, str(tmp_path / "t.dta"), variable_value_labels=labels, missing_user_values={"work": ["a"]})
    frame["work"] = [1.0, 2.0, -9.0]
    labels = {"work": {1: "full", 2: "part", -9: "refused"}}
    library.write_sav(frame, str(tmp_path / "t.sav"), variable_value_labels=labels, missing_ranges={"work": [-9]})
    for name in ("t.dta", "t.sav"):
        table = names_of_table(tmp_path / name)
        assert table.types == {"work": "number", "seen": "date", "at": "date"}
        assert (table.labels, table.missing) == ({"work": ["full", "part"]}, {"work"})


def test_titles_above_the_names_are_met_with_what_to_do(tmp_path) -> None:
    """As in workbooks and exports: names are given by hand, and the schema says in which line they stand."""
    (tmp_path / "t.csv").write_text("Survey 2024,,\nage,sex,ill\n30,F,no\n")
    with pytest.raises(InputError, match=r"--columns A,B,C, and in the schema table = \{ header = 3 \}"):
        names_of_table(tmp_path / "t.csv")
