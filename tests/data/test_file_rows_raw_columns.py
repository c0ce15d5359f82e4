"""Columns of numbers without a target: checked before a charge, read after it."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from confide.data import file_rows
from confide.data.file_rows import checked_columns
from confide.errors import FileError, InputError
from confide.features.schema import Schema
from confide.features.table import RowsPerPerson
from confide.privacy.noise import Entropy

SCHEMA = Schema(columns={"a": {"low": 0, "high": 1, "missing": True}, "b": {"low": 0, "high": 1}})
ONE = RowsPerPerson(1, Entropy.seeded(1).permutation)
FRAME = pd.DataFrame({"b": [1.0, 2.0, 3.0], "who": ["x", "y", "x"], "a": [0.5, np.nan, 7.0]})


def read(rows, schema=SCHEMA, persons=ONE):
    """All rows, column by column, in the order of the schema."""
    return [np.concatenate(parts).tolist() for parts in zip(*checked_columns(rows, schema, persons)[0](), strict=True)]


@pytest.mark.parametrize("ending", ["csv", "parquet", "feather"])
def test_files_in_pieces_are_the_rows_in_memory(tmp_path, ending):
    """One file or two, of every kind."""
    write = {
        "csv": lambda f, p: f.to_csv(p, index=False),
        "parquet": pd.DataFrame.to_parquet,
        "feather": pd.DataFrame.to_feather,
    }
    paths = [tmp_path / f"{name}.{ending}" for name in "xy"]
    for path, part in zip(paths, (FRAME[:2], FRAME[2:].reset_index(drop=True)), strict=True):
        write[ending](part, path)
    assert str(read(paths)) == str(read(FRAME)) == "[[0.5, nan, 7.0], [1.0, 2.0, 3.0]]"
    assert str(read(str(tmp_path / f"*.{ending}"))) == str(read(FRAME))


def test_so_many_rows_of_each_person_count(tmp_path):
    """One of x, the one of y, in memory and in files."""
    schema = Schema(SCHEMA.columns, person="who")
    FRAME.to_csv(tmp_path / "a.csv", index=False)
    for rows in (FRAME, tmp_path / "a.csv"):
        assert len(read(rows, schema)[1]) == 2
        assert 2.0 in read(rows, schema)[1]
        assert len(read(rows, schema, RowsPerPerson(2, Entropy.seeded(1).permutation))[1]) == 3


@pytest.mark.parametrize(("cell", "message"), [("SECRET", "not numbers"), ("inf", "infinite"), ("", "missing values")])
def test_cells_that_cannot_be_used_are_refused_before(tmp_path, cell, message):
    """Text, infinity, and a missing cell that is not declared; no message holds the cell."""
    rows = pd.DataFrame({"a": [1.0], "b": [cell]})
    rows.to_csv(tmp_path / "a.csv", index=False)
    for given in (rows, tmp_path / "a.csv"):
        with pytest.raises(InputError, match=message) as refused:
            checked_columns(given, SCHEMA, ONE)
        assert "SECRET" not in str(refused.value)


def test_a_file_that_changed_since_is_refused(tmp_path):
    FRAME.to_csv(tmp_path / "a.csv", index=False)
    later = checked_columns(tmp_path / "a.csv", SCHEMA, ONE)
    (tmp_path / "a.csv").write_text("a,b\nSECRET,1\n")
    with pytest.raises(FileError, match="changed while it was read") as refused:
        list(later[0]())
    assert "SECRET" not in str(refused.value)


def test_columns_that_are_not_there_and_empty_files_are_refused(tmp_path):
    with pytest.raises(InputError, match='lacks columns that the schema describes: "b"'):
        checked_columns(FRAME[["a"]], SCHEMA, ONE)
    (tmp_path / "a.csv").write_text("a,b\n")
    with pytest.raises(InputError, match="no rows"):
        checked_columns(tmp_path / "a.csv", SCHEMA, ONE)


def test_a_reader_that_fails_after_the_charge_says_nothing_of_the_rows(tmp_path, monkeypatch):
    """Its error may quote cells; what is raised instead does not."""
    FRAME.to_csv(tmp_path / "a.csv", index=False)
    later = checked_columns(tmp_path / "a.csv", SCHEMA, ONE)

    def failing(*_, **__):
        raise InputError("SECRET")
        yield

    monkeypatch.setattr(file_rows, "cut_to_size", failing)
    with pytest.raises(FileError) as refused:
        list(later[0]())
    assert "SECRET" not in str(refused.value)
