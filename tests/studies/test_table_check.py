"""The whole check: it finds exactly those tables that a fit refuses."""

from __future__ import annotations

import pandas as pd
import pyarrow as pa
import pyarrow.feather
import pytest

import confide
from confide import Schema
from confide.data.sources import files_of
from confide.studies.table_check import check_table, findings_of
from tests.curation.tables import SCHEMA, people


def is_refused_by_a_fit(path, schema=SCHEMA) -> bool:
    """Whether a fit refuses the file before it charges anything."""
    model = confide.LogisticRegression(50.0, schema=schema, random_state=0)
    try:
        model.fit(confide.open_rows(path, schema))
    except confide.ConfideError:
        return True
    return False


def is_refused_by_the_check(path, schema=SCHEMA) -> bool:
    return bool(findings_of(check_table([path], schema))[0])


SPOILED = {
    "nothing": {},
    "gap in age": {"age": ""},
    "gap in a height": {"Größe (cm)": "NA"},
    "gap in work": {"work": ""},
    "gap in sex": {"sex": ""},
    "unlisted sex": {"sex": "D"},
    "text in age": {"age": "unknown"},
    "decimal comma": {"Größe (cm)": "170,5"},
    "infinite age": {"age": "inf"},
    "large age": {"age": "1e6"},
    "blank in age": {"age": " 33 "},
    "unknown label": {"ill": "maybe"},
    "no label": {"ill": ""},
}


@pytest.mark.filterwarnings("ignore::confide.errors.PrivacyWarning")
@pytest.mark.parametrize("what", SPOILED)
def test_the_check_agrees_with_a_fit(tmp_path, what) -> None:
    """One cell is spoiled, or none."""
    frame = people().astype(object)
    for name, cell in SPOILED[what].items():
        frame.loc[17, name] = cell
    frame.to_csv(tmp_path / "p.csv", index=False)
    assert is_refused_by_the_check(tmp_path / "p.csv") == is_refused_by_a_fit(tmp_path / "p.csv")


@pytest.mark.filterwarnings("ignore::confide.errors.PrivacyWarning")
@pytest.mark.parametrize(
    "how",
    [
        {"sep": ";"},
        {"encoding": "utf-16"},
        {"encoding": "latin-1"},
        {"encoding": "utf-8-sig"},
        {"header": False},
        {"index": True},
    ],
)
def test_the_check_agrees_with_a_fit_on_files_written_otherwise(tmp_path, how) -> None:
    """Separators, encodings, no line of names, an index."""
    people().to_csv(tmp_path / "p.csv", **({"index": False} | how))
    assert is_refused_by_the_check(tmp_path / "p.csv") == is_refused_by_a_fit(tmp_path / "p.csv")


@pytest.mark.parametrize("column", ["age", "work"])
def test_a_column_of_which_no_cell_is_as_described_is_refused_by_both(tmp_path, column) -> None:
    """Its weight would be noise alone."""
    people().assign(**{column: "999"}).to_csv(tmp_path / "p.csv", index=False)
    assert is_refused_by_the_check(tmp_path / "p.csv")
    assert is_refused_by_a_fit(tmp_path / "p.csv")


def test_counts_of_several_files_add_up(tmp_path) -> None:
    """Text and typed files give the same counts."""
    for number in (1, 2):
        people().to_csv(tmp_path / f"p{number}.csv", index=False)
    people().to_parquet(tmp_path / "p.parquet", index=False)
    twice = check_table([tmp_path / "p1.csv", tmp_path / "p2.csv"], SCHEMA)
    once = check_table([tmp_path / "p.parquet"], SCHEMA)
    assert (twice.n_rows, once.n_rows) == (400, 200)
    for ours, theirs in zip(twice.counted, once.counted, strict=True):
        assert (ours.missing, ours.unlisted, ours.clipped, ours.by_level) == (
            2 * theirs.missing,
            2 * theirs.unlisted,
            2 * theirs.clipped,
            [2 * count for count in theirs.by_level],
        )


def test_columns_that_a_file_lacks_are_not_counted(tmp_path) -> None:
    """The others are."""
    people().rename(columns={"age": "AGE", "ill": "Ill"}).to_csv(tmp_path / "p.csv", index=False)
    check = check_table([tmp_path / "p.csv"], SCHEMA)
    assert [column.name for column in check.counted] == ["Größe (cm)", "work", "sex"]
    assert check.files[0].absent == {"age": "AGE", "ill": "Ill"}


def test_persons_are_counted_where_the_schema_names_them(tmp_path) -> None:
    """With the number of rows that a fit keeps."""
    schema = Schema(SCHEMA.columns, SCHEMA.target, person="who")
    people().assign(who=[row // 4 for row in range(200)]).to_csv(tmp_path / "p.csv", index=False)
    found = check_table([tmp_path / "p.csv"], schema, rows_per_person=3)
    assert found.persons is not None
    assert (found.persons["persons"], found.persons["rows_above"]) == (50, 50)
    assert check_table([tmp_path / "p.csv"], SCHEMA).persons is None


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_columns_that_folders_state_are_checked(tmp_path, kind):
    """As a fit reads them: numbers, levels, and one that the schema does not list. Files of one name are named once."""
    schema = Schema(
        {"year": {"low": 2000, "high": 2024}, "place": {"categories": ["a", "b"]}, "x": {"low": 0, "high": 1}},
        {"column": "ill", "negative": 0, "positive": 1},
    )
    for folder in ("year=2024/place=a", "year=2025/place=b"):
        (tmp_path / folder).mkdir(parents=True)
        frame = pd.DataFrame({"x": [0.5, 1.0], "ill": [0, 1], "extra": [1, 2]})
        getattr(frame, f"to_{kind}")(tmp_path / folder / f"t.{kind}", index=False)
    check = check_table(files_of(tmp_path), schema)
    refused, noted = findings_of(check)
    assert refused == []
    assert len([sentence for sentence in noted if '"extra"' in sentence]) == 1
    assert [(each.as_described, each.clipped) for each in check.counted] == [(2, 2), (4, 0), (4, 0), (4, 0)]


def test_dates_that_python_does_not_know_are_counted(tmp_path):
    """An Arrow file may hold years far beyond 9999, which a fit clips."""
    frame = pa.table({"seen": pa.array([10**15] * 20 + [0] * 20, pa.timestamp("s")), "ill": [0, 1] * 20})
    pa.feather.write_feather(frame, tmp_path / "t.feather")
    target = {"column": "ill", "negative": 0, "positive": 1}
    schema = Schema({"seen": {"low": "1970-01-01", "high": "2030-12-31"}}, target)
    check = check_table([tmp_path / "t.feather"], schema, show_values=True)
    assert "9999-12-31" in "".join(findings_of(check)[1])
