"""Rows in files: checked in one pass before the charge, refused where a file changes, and never for what they hold."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as parquet
import pytest

import confide
from confide.data import file_rows
from confide.data.arrays import ArrayBlocks, MemorySource
from confide.data.file_rows import StampedSource
from confide.data.files import FilePart, Stamp
from confide.data.streams import Reading
from confide.erm.losses import LogisticLoss
from confide.erm.row_bounds import BallBound
from confide.erm.row_sums import RowSum
from confide.features.encoder import Encoder
from confide.intake.rows import open_rows
from tests.data.tables import SCHEMA, made_up, written


@pytest.fixture(params=["read again", "held"])
def held_or_not(request, monkeypatch):
    """Files that stay in memory from the check on, and files that are read again in each pass."""
    if request.param == "read again":
        monkeypatch.setattr("confide.data.file_rows._HELD_FILES", -1)


def test_so_many_rows_of_a_person_count(tmp_path):
    """Those that are drawn in memory; all rows count for the public number of rows."""
    frame = made_up(age="float64").assign(person=np.arange(3000) // 3 * 7 % 500)
    schema = confide.Schema(columns=SCHEMA.columns, target=SCHEMA.target, person="person")
    parameters = {"schema": schema, "max_rows_per_person": 2, "random_state": 1}
    memory = confide.LogisticRegression(5.0, **parameters).fit(frame, frame["ill"])
    for cache in (False, True):
        rows = open_rows(written(frame, tmp_path, "csv"), schema, cache=cache)
        model = confide.LogisticRegression(5.0, **parameters).fit(rows)
        assert np.array_equal(model.coef_, memory.coef_)
        assert model.guarantee_ == memory.guarantee_


@pytest.mark.parametrize("word", ["NA", "", "null", " N/A", "None"])
def test_words_for_missing_cells_are_missing_in_files_as_in_frames(tmp_path, word):
    """In columns of categories and of numbers; the model of the files is that of the frame, where they are empty."""
    frame = made_up(600, age="float64").assign(work=np.array(["a", "b", None])[np.arange(600) % 3])
    columns = SCHEMA.to_dict()["columns"] | {"work": {"categories": ["a", "b"], "missing": True}}
    schema = confide.Schema(columns, target=SCHEMA.target)
    model = confide.LogisticRegression(float("inf"), schema=schema, random_state=1).fit(frame, frame["ill"])
    text = frame.fillna({"work": word}).assign(debt=frame["debt"].astype(object).where(frame["debt"].notna(), word))
    text.to_csv(tmp_path / "t.csv", index=False)
    text.astype({"debt": str}).to_parquet(tmp_path / "t.parquet", index=False)
    for kind in ("csv", "parquet"):
        rows = open_rows(tmp_path / f"t.{kind}", schema)
        again = confide.LogisticRegression(float("inf"), schema=schema, random_state=1).fit(rows)
        np.testing.assert_allclose(again.coef_, model.coef_, atol=1e-9)


@pytest.mark.parametrize("estimator", [confide.LogisticRegression, confide.AdditiveClassifier])
def test_codes_for_missing_cells_are_missing_in_files_as_in_frames(tmp_path, estimator):
    """The model is that of the rows whose cells are empty in their place, in memory and in files."""
    frame = made_up(900, age="float64")
    gaps = np.arange(900) % 7 == 0
    columns = {name: each | {"missing": True} for name, each in SCHEMA.to_dict()["columns"].items()}
    declared = {name: each | {"missing": [999999, 9]} for name, each in columns.items()}
    emptied = frame.assign(**{name: frame[name].astype(object).where(~gaps, None) for name in columns})
    coded = frame.assign(**{name: frame[name].astype(object).where(~gaps, 9) for name in columns})
    coded = coded.astype({"age": float, "debt": float, "size": int} | {"work": str}, errors="ignore")

    def fit(columns, rows, *y):
        schema = confide.Schema(columns, target=SCHEMA.target)
        rows = rows if y else open_rows(rows, schema)
        return estimator(float("inf"), schema=schema, random_state=1).fit(rows, *y).coef_

    expected = fit(columns, emptied, frame["ill"])
    np.testing.assert_allclose(fit(declared, coded, frame["ill"]), expected, atol=1e-9)
    coded.to_csv(tmp_path / "t.csv", index=False)
    coded.astype({"debt": "float64"}).to_parquet(tmp_path / "t.parquet", index=False)
    for kind in ("csv", "parquet"):
        np.testing.assert_allclose(fit(declared, tmp_path / f"t.{kind}"), expected, atol=1e-9)


@pytest.mark.parametrize(
    ("column", "value", "message"),
    [
        ("ill", "perhaps-secret", "neither 'no' nor 'yes'"),
        ("ill", None, "missing"),
        ("age", np.inf, "infinite"),
        ("age", np.nan, "missing values"),
    ],
)
@pytest.mark.parametrize("kind", ["parquet", "csv", "feather"])
def test_a_bad_cell_in_the_last_row_is_refused_before_the_charge(tmp_path, column, value, message, kind):
    """With the message of rows in memory, which holds no value; the estimator stays as it was."""
    frame = made_up()
    frame.loc[len(frame) - 1, column] = value
    ledger = confide.Ledger(limit=confide.PureDP(5.0))
    model = confide.LogisticRegression(1.0, ledger=ledger)
    with pytest.raises(ValueError, match=message) as caught:
        model.fit(open_rows(written(frame, tmp_path, kind), SCHEMA))
    assert "secret" not in str(caught.value)
    assert caught.value.__context__ is None
    assert len(ledger.entries()) == 0
    assert not hasattr(model, "coef_")


def test_no_word_of_a_csv_file_reaches_an_error(tmp_path):
    """A cell that is no number: neither the message nor what is attached to it holds the cell."""
    frame = made_up(50).astype({"age": object})
    frame.loc[49, "age"] = "secret"
    with pytest.raises(ValueError, match='column "age" holds cells that are not numbers') as caught:
        confide.LogisticRegression(1.0).fit(open_rows(written(frame, tmp_path, "csv"), SCHEMA))
    assert caught.value.__context__ is None
    assert caught.value.__cause__ is None


@pytest.mark.parametrize("kind", ["parquet", "csv", "feather"])
@pytest.mark.parametrize("how", ["rewritten", "longer", "removed"])
def test_a_file_that_changes_after_the_check_is_refused_and_stays_charged(tmp_path, held_or_not, kind, how):
    """In the first pass after the charge, in words that say what to do and nothing of the rows."""
    frame = made_up(500)
    path = written(frame, tmp_path, kind)
    files = sorted(tmp_path.iterdir())
    ledger = confide.Ledger(limit=confide.PureDP(5.0))

    def change():
        if how == "removed":
            files[-1].unlink()
        elif how == "longer":
            files[-1].write_bytes(files[-1].read_bytes() + b"x")
        else:
            os.utime(files[-1], ns=(1, 1))

    rows = open_rows(path, SCHEMA)
    charge = ledger.charge
    model = confide.LogisticRegression(1.0, ledger=ledger)

    class Changing(type(ledger)):
        def charge(self, *given, **more):
            charge(*given, **more)
            change()

    ledger.__class__ = Changing
    with pytest.raises(ValueError, match="changed while it was read, so nothing is released; what was charged stays"):
        model.fit(rows)
    assert len(ledger.entries()) == 1
    assert not hasattr(model, "coef_")


def test_a_private_number_of_rows_is_checked_before_the_charge(tmp_path):
    """Outside the declared bounds nothing is charged; inside, the guarantee does not tell the number."""
    path = written(made_up(500), tmp_path, "csv")
    ledger = confide.Ledger(limit=confide.PureDP(5.0), neighbours="add-or-remove-one")
    parameters = {"neighbours": "add-or-remove-one", "ledger": ledger}
    with pytest.raises(ValueError, match="n_rows_bounds"):
        confide.LogisticRegression(1.0, n_rows_bounds=(600, 900), **parameters).fit(open_rows(path, SCHEMA))
    assert len(ledger.entries()) == 0
    model = confide.LogisticRegression(1.0, n_rows_bounds=(400, 900), **parameters).fit(open_rows(path, SCHEMA))
    assert "500" not in model.guarantee_.statement()


def test_with_a_cache_the_files_are_read_once(tmp_path):
    """They may go after the check: later passes do not need them."""
    path = written(made_up(500), tmp_path, "csv")
    reading = Reading(Encoder(SCHEMA), ("no", "yes"))
    row_sum = RowSum(LogisticLoss(), reading.encoder.row_bound, 0.0, 0)
    with open_rows(path, SCHEMA, cache=True).checked(reading, 1) as (source, _):
        path.unlink()
        assert source.sum_over_rows(row_sum, np.zeros((1, reading.n_features))).value == pytest.approx(500 * np.log(2))


def test_what_contradicts_opened_rows_is_refused(tmp_path):
    """Labels beside them, another schema, weights of rows, a frame without rows, a damaged file, an absent column."""
    path = written(made_up(100), tmp_path, "csv")
    rows = open_rows(path, SCHEMA)
    model = confide.LogisticRegression(1.0)
    with pytest.raises(ValueError, match="leave y out"):
        model.fit(rows, np.ones(100))
    with pytest.raises(ValueError, match="another schema"):
        confide.LogisticRegression(1.0, schema=confide.Schema(columns=SCHEMA.columns)).fit(rows)
    with pytest.raises(ValueError, match="rows in memory"):
        model.fit(rows, sample_weight=np.ones(100))
    path.write_text("age,debt,work,size,ill\n")
    with pytest.raises(ValueError, match="has no rows"):
        model.fit(open_rows(path, SCHEMA))
    path.write_text("age,debt,work,ill\n1,2,a,no\n")
    with pytest.raises(ValueError, match='lacks the columns "size"'):
        model.fit(open_rows(path, SCHEMA))
    damaged = tmp_path / "x.parquet"
    damaged.write_bytes(b"PAR1 and no more")
    with pytest.raises(ValueError, match="damaged"):
        model.fit(open_rows(damaged, SCHEMA))
    assert repr(rows).startswith("FileRows(1 file, Schema(4 columns")


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_numpy_files_are_mapped_and_not_copied(tmp_path, dtype):
    """The fit is that in memory; a file that changes is refused; objects, which are pickles, are never read."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2000, 3)).astype(dtype)
    y = np.where(X[:, 0] > 0, 1, -1)
    np.save(tmp_path / "X.npy", X)
    np.save(tmp_path / "y.npy", y)
    memory = confide.LogisticRegression(1.0, random_state=0).fit(X, y)
    rows = open_rows(tmp_path / "X.npy", labels=tmp_path / "y.npy")
    model = confide.LogisticRegression(1.0, random_state=0).fit(rows)
    assert np.array_equal(model.coef_, memory.coef_)
    assert model.guarantee_ == memory.guarantee_
    with pytest.raises(ValueError, match="leave y out"):
        confide.LogisticRegression(1.0).fit(rows, y)
    os.utime(tmp_path / "X.npy", ns=(1, 1))
    with pytest.raises(ValueError, match="changed"):
        confide.LogisticRegression(1.0).fit(rows)
    np.save(tmp_path / "X.npy", np.array([[object()]]), allow_pickle=True)
    with pytest.raises(ValueError, match="objects are not read"):
        open_rows(tmp_path / "X.npy", labels=tmp_path / "y.npy")
    np.save(tmp_path / "X.npy", np.ones((3, 2), dtype=np.float16))
    with pytest.raises(ValueError, match="float64 or float32"):
        open_rows(tmp_path / "X.npy", labels=tmp_path / "y.npy")


def test_a_row_group_is_not_read_whole(tmp_path):
    """A file of one row group comes in batches."""
    table = pa.table({"x": np.zeros(200_000)})
    parquet.write_table(table, tmp_path / "t.parquet")
    schema = confide.Schema(columns={"x": {"low": 0, "high": 1}}, target={"column": "y", "negative": 0, "positive": 1})
    sizes = [batch.num_rows for batch in open_rows(tmp_path / "t.parquet", schema).tables(["x"])]
    assert sum(sizes) == 200_000
    assert max(sizes) <= 2**16


def test_the_number_of_rows_is_counted_from_one_column(tmp_path, monkeypatch):
    """Of all files together; a file without rows is refused."""
    rows = open_rows(written(made_up(500), tmp_path, "parquet"), SCHEMA)
    read, original = [], type(rows).tables

    def tables(self, names, *more):
        read.append(list(names))
        return original(self, names, *more)

    monkeypatch.setattr(type(rows), "tables", tables)
    assert rows.count() == 500
    assert read == [["age"]]
    (tmp_path / "empty.csv").write_text("age,debt,work,size,ill\n")
    with pytest.raises(ValueError, match="has no rows"):
        open_rows(tmp_path / "empty.csv", SCHEMA).count()


PERSONS = confide.Schema(columns=SCHEMA.columns, target=SCHEMA.target, person="person")


def in_two_files(folder, first, second, kind="parquet"):
    """A table of 600 rows in two files, with these identifiers of persons."""
    for number, (place, persons) in enumerate(((slice(0, 300), first), (slice(300, 600), second))):
        part = made_up(600, age="float64").iloc[place].assign(person=persons)
        part.to_csv(folder / f"{number}.csv", index=False) if kind == "csv" else part.to_parquet(
            folder / f"{number}.parquet"
        )
    return open_rows(folder / f"*.{kind}", PERSONS)


@pytest.mark.parametrize("second", ["int64", "float64", "str", "category"])
def test_files_may_hold_persons_in_different_types(tmp_path, second):
    """int64 beside int32, floats, text and text in a dictionary are the same persons: the model is that of one frame."""
    at = np.arange(300, dtype="int32")
    other = (
        at.astype(str).astype(object) if second == "str" else at.astype(str) if second == "category" else at.astype(second)
    )
    rows = in_two_files(tmp_path, at, pd.Categorical(other) if second == "category" else other)
    frame = made_up(600, age="float64").assign(person=np.arange(600) % 300)
    parameters = {"schema": PERSONS, "random_state": 1}
    memory = confide.LogisticRegression(5.0, **parameters).fit(frame, frame["ill"])
    assert np.array_equal(confide.LogisticRegression(5.0, **parameters).fit(rows).coef_, memory.coef_)


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_persons_whose_spelling_differs_between_files_are_refused_before_the_charge(tmp_path, kind):
    """A second file whose identifiers became floats, as text; the message shows none of them."""
    ledger = confide.Ledger(limit=confide.PureDP(5.0))
    at = np.arange(4000, 4300)
    rows = in_two_files(tmp_path, at.astype(str).astype(object), at.astype(float).astype(str).astype(object), kind)
    with pytest.raises(confide.InputError, match=r'"person": some identifiers differ in spelling alone') as caught:
        confide.LogisticRegression(1.0, schema=PERSONS, ledger=ledger).fit(rows)
    assert "4000" not in str(caught.value)
    assert len(ledger.entries()) == 0


@pytest.mark.parametrize("use", ["sum", "in memory", "taken"])
def test_a_mapped_file_that_changed_is_refused_in_every_use(tmp_path, use):
    """After the pass, when the rows that were read may already be others; before the change all uses work."""
    path = tmp_path / "rows.npy"
    np.save(path, np.eye(4))
    labels = np.array([1, -1, 1, -1], dtype=np.int8)
    source = StampedSource(MemorySource(ArrayBlocks(np.load(path, mmap_mode="r")), labels), (Stamp.of(path),))
    row_sum = RowSum(LogisticLoss(), BallBound(1.0), 0.0, 0)
    uses = {
        "sum": lambda: source.sum_over_rows(row_sum, np.zeros((1, 4))).value[0],
        "in memory": lambda: sum(each.n_rows for each in source.in_memory()),
        "taken": lambda: source.taken(np.array([2, 0])).n_rows,
    }
    assert uses[use]() == pytest.approx({"sum": 4 * np.log(2.0), "in memory": 4, "taken": 2}[use])
    os.utime(path, ns=(1, 1))
    with pytest.raises(ValueError, match="changed"):
        uses[use]()


@pytest.mark.parametrize("kind", ["csv", "parquet", "npy"])
def test_another_working_folder_during_a_fit_changes_no_path(tmp_path, monkeypatch, held_or_not, kind):
    """Rows, cache, ledger and the mark of the release are where they were when they were opened."""
    (tmp_path / "there" / "cache").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "there")
    frame = made_up(age="float64")
    if kind == "npy":
        np.save("X.npy", frame[["age"]].to_numpy() / 100.0)
        np.save("y.npy", frame["ill"].to_numpy().astype(str))
        rows, parameters = open_rows("X.npy", labels="y.npy"), {"classes": ["no", "yes"]}
    else:
        frame.to_csv("t.csv", index=False)
        frame.to_parquet("t.parquet", index=False)
        rows, parameters = open_rows(f"t.{kind}", SCHEMA, cache=kind == "csv" and "cache"), {"schema": SCHEMA}
    ledger = confide.Ledger("study.db", limit=3.0)
    model = confide.LogisticRegression(1.0, ledger=ledger, **parameters)
    with confide.progress(lambda *_: os.chdir(tmp_path)):
        model.fit(rows)
    assert Path.cwd() == tmp_path
    model.fit(rows)
    assert confide.Ledger("there/study.db").unfinished() == []
    assert confide.Ledger("there/study.db").verify() == 2


def test_small_files_are_read_once(tmp_path, monkeypatch, held_or_not):
    """The release is that of rows in memory to the bit, whether or not rows are held; larger files are read in each pass."""
    frame, taken = made_up(), []
    memory = confide.LogisticRegression(2.0, schema=SCHEMA, random_state=1).fit(frame, frame["ill"])
    path, tables = written(frame, tmp_path, "parquet"), FilePart.tables

    def noted(self, names, n_rows):
        taken.append(names)
        return tables(self, names, n_rows)

    monkeypatch.setattr(FilePart, "tables", noted)
    model = confide.LogisticRegression(2.0, random_state=1).fit(open_rows(path, SCHEMA))
    assert np.array_equal(model.coef_, memory.coef_)
    n_files = len(open_rows(path, SCHEMA).parts)
    whole = [names for names in taken if len(names) > 1]
    assert (len(whole) == n_files) == (file_rows._HELD_FILES > 0)
    # Codes that need one byte more than allowed are let go of, and read again.
    reading = Reading(Encoder(SCHEMA), ("no", "yes"))
    pieces = reading.pieces(open_rows(path, SCHEMA).tables, refuse=True)
    needed = sum(array.nbytes for piece in pieces for array in piece.arrays)
    for allowed in (needed, needed - 1):
        taken.clear()
        monkeypatch.setattr(file_rows, "_HELD_BYTES", allowed)
        model = confide.LogisticRegression(2.0, random_state=1).fit(open_rows(path, SCHEMA))
        assert np.array_equal(model.coef_, memory.coef_)
        whole = [names for names in taken if len(names) > 1]
        assert (len(whole) == n_files) == (file_rows._HELD_FILES > 0 and allowed == needed)
