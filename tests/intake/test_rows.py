"""Rows of any kind go in by one door and come out checked, once, in the form that each fit takes."""

from __future__ import annotations

import warnings
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from scipy.sparse import csr_array

import confide
from confide import AccuracyWarning, InputError, LogisticRegression, ParameterError
from confide.data.arrays import MemorySource
from confide.data.file_rows import ArrayRows, StampedSource
from confide.data.files import Stamp
from confide.data.partitions import NumericReading, OpenedRows
from confide.data.streams import Reading
from confide.features.encoder import Encoder
from confide.features.fourier import FourierMap
from confide.features.table import RowsPerPerson
from confide.intake import rows as given_rows
from confide.intake.rows import checked_input
from confide.intake.targets import Classes, Numbers
from tests.data.tables import SCHEMA, made_up
from tests.intake.specifications import specification

X, Y = np.linspace(-0.4, 0.4, 12).reshape(6, 2), np.array([0, 1, 0, 1, 1, 0])


class Recorded(OpenedRows):
    """Opened rows that note how they are read, and whether what was made for that is removed."""

    def __init__(self, schema=SCHEMA, target=None, n_inputs=0, lies_here=False):
        self.schema, self.target, self.n_inputs, self.lies_here = schema, target, n_inputs, lies_here
        self.readings, self.still_open = [], 0

    def count(self):
        return 77

    @contextmanager
    def checked(self, reading, rows_per_person, n_threads=1):
        self.readings.append((reading, rows_per_person, n_threads))
        self.still_open += 1
        yield "source", 77
        self.still_open -= 1


def in_files(folder):
    """The rows as mapped files."""
    for name, array in (("X", X), ("y", Y)):
        np.save(folder / f"{name}.npy", array)
    return confide.open_rows(folder / "X.npy", labels=folder / "y.npy")


def checked(given, *specifications):
    """What comes out for each specification."""
    with given.checked(specifications or (specification(),)) as found:
        return found


class Stream:
    """What has no length and gives an Arrow stream whenever it is asked."""

    def __init__(self, table):
        self.table = table

    def __arrow_c_stream__(self, requested_schema=None):
        return self.table.__arrow_c_stream__(requested_schema)


def test_arrow_streams_that_can_be_read_again_are_fitted_as_their_rows_are():
    """A record batch too, and a stream that is read only once."""
    frame = made_up(500, age="float64")
    model = confide.AdditiveClassifier(float("inf"), schema=SCHEMA, random_state=1)
    expected = model.fit(frame, frame["ill"]).coef_
    batch = pa.RecordBatch.from_pandas(frame, preserve_index=False)
    table = pa.Table.from_batches([batch])
    for rows in (batch, Stream(table)):
        assert checked_input(rows, frame["ill"]).n_rows_given() == 500
        np.testing.assert_array_equal(model.fit(rows, frame["ill"]).coef_, expected)
        np.testing.assert_array_equal(model.predict(rows), model.predict(frame))
    np.testing.assert_array_equal(model.fit(table.to_reader(), frame["ill"]).coef_, expected)


def test_each_kind_of_rows_has_its_way_in(tmp_path):
    """Arrays and frames from memory, mapped files from memory with stamps, and opened rows from where they lie."""
    arrays = ArrayRows(X, Y, ())
    assert checked(checked_input(X, Y))[0].source.labels.tolist() == (2 * Y - 1).tolist()
    assert type(checked(checked_input(X.tolist(), Y.tolist()))[0].source) is MemorySource
    assert type(checked(checked_input(pd.DataFrame(X), Y))[0].source) is MemorySource
    assert type(checked(checked_input(arrays, None))[0].source) is MemorySource
    assert type(checked(checked_input(in_files(tmp_path), None))[0].source) is StampedSource
    assert checked(checked_input(Recorded(), None), specification(encoder=Encoder(SCHEMA)))[0].source == "source"


@pytest.mark.parametrize("given", ["people.csv", Path("people.csv")])
@pytest.mark.parametrize(
    "estimator", [confide.LogisticRegression(), confide.AdditiveRegressor(), confide.Ridge(schema=SCHEMA)]
)
def test_the_name_of_a_file_is_no_rows(given, estimator):
    """The refusal says how a file is opened."""
    with pytest.raises(TypeError, match=r"schema of its columns: confide\.open_rows\(\"people.csv\", schema=schema\)"):
        estimator.fit(given)


def test_rows_that_bring_their_labels_take_no_others(tmp_path):
    """Opened rows and mapped files alike, before anything is read; only those in memory have weights of their own."""
    opened = Recorded()
    for rows in (opened, in_files(tmp_path)):
        with pytest.raises(ParameterError, match="leave y out"):
            checked_input(rows, Y)
    with pytest.raises(InputError, match="sample_weight is for rows in memory"):
        checked_input(opened, None, np.ones(6))
    assert checked(checked_input(in_files(tmp_path), None, np.ones(6)))[0].has_weights
    assert opened.readings == []


def test_nothing_is_read_before_it_is_asked_for():
    """An object that cannot be read is taken in, and refused when it is checked."""
    given = checked_input(object(), object())
    assert given.lies_here
    with pytest.raises(InputError):
        checked(given)


def test_rows_know_whether_they_lie_here(tmp_path):
    """Those in memory and in mapped files do; opened ones say it themselves."""
    assert checked_input(X, Y).lies_here
    assert checked_input(in_files(tmp_path), None).lies_here
    assert checked_input(Recorded(lies_here=True), None).lies_here
    assert not checked_input(Recorded(), None).lies_here


def test_opened_rows_bring_their_schema():
    """The estimator may leave it out or repeat it, and not contradict it; rows in memory have none of their own."""
    other = confide.Schema(columns=SCHEMA.columns)
    opened = checked_input(Recorded(), None)
    assert opened.schema_for(None) is opened.schema_for(SCHEMA) is SCHEMA
    for rows, schema in ((Recorded(), other), (Recorded(schema=None), SCHEMA)):
        with pytest.raises(ParameterError, match="opened with another schema"):
            checked_input(rows, None).schema_for(schema)
    assert checked_input(X, Y).schema_for(other) is other
    assert checked_input(X, Y).schema_for(None) is None


def test_rows_in_memory_are_read_once_for_all_fits(monkeypatch):
    """Table, targets and weights for three specifications, each of which takes the rows its own way."""
    reads = []

    def counting(name, function):
        return lambda *given: reads.append(name) or function(*given)

    for name in ("table_of", "weight_array"):
        monkeypatch.setattr(given_rows, name, counting(name, getattr(given_rows, name)))
    monkeypatch.setattr(Classes, "read", counting("targets", Classes.read))
    first = specification(class_weight=((0, 1.0), (1, 2.0)), largest_sample_weight=3.0)
    mapped = replace(first, fourier_map=lambda n: FourierMap(n, 4, "rbf", 1.0, 0, False), n_threads=2)
    found = checked(checked_input(X, Y, np.full(6, 3.0)), first, mapped, replace(first, class_weight=None))
    assert sorted(reads) == ["table_of", "targets", "weight_array"]
    assert [rows.source.blocks.n_features for rows in found] == [2, 4, 2]
    assert [rows.source.n_threads for rows in found] == [1, 2, 1]
    assert found[0].source.row_weights.tolist() == np.where(Y == 1, 6.0, 3.0).tolist()
    assert found[2].source.row_weights.tolist() == [3.0] * 6
    assert found[1].coefficient_names.tolist() == ["cos0", "cos1", "sin0", "sin1"]
    assert [rows.fourier is None for rows in found] == [True, False, True]
    assert all(rows.columns.n_features_in == 2 for rows in found)


def test_what_comes_with_checked_rows_is_public():
    """Number of rows, classes, the sentence on labels and names; and whether rows were weighted."""
    frame = pd.DataFrame(X, columns=["east", "north"])
    (rows,) = checked(checked_input(frame, Y))
    assert (rows.n_rows, rows.domain, rows.has_weights) == (6, (0, 1), False)
    assert rows.coefficient_names.tolist() == ["east", "north"] == list(rows.columns.feature_names_in)
    assert "The labels 0 and 1 were declared" in rows.target_sentence
    assert checked(checked_input(frame, Y, np.ones(6)))[0].has_weights
    (numbers,) = checked(checked_input(frame, Y), specification(target=Numbers(sentence="clipped")))
    assert (numbers.domain, numbers.target_sentence) == ((), "clipped")


def test_rows_beyond_a_persons_share_go_with_their_labels_and_weights():
    """The number of rows given stays that of all: it is public."""
    schema = confide.Schema(columns={"age": {"low": 0, "high": 100}}, target=SCHEMA.target, person="who")
    frame = pd.DataFrame({"age": [10.0, 20, 30, 40], "who": ["a", "a", "b", "b"]})
    encoder = Encoder(schema)
    asked = specification(
        encoder=encoder, target=Classes.declared(None, schema), row_bound=encoder.row_bound,
        rows_per_person=RowsPerPerson(1, lambda n: np.arange(n)[::-1]), largest_sample_weight=9.0,
    )  # fmt: skip
    (rows,) = checked(checked_input(frame, ["no", "yes", "yes", "no"], [1.0, 2.0, 3.0, 4.0]), asked)
    assert rows.n_rows == 4
    assert rows.source.labels.tolist() == [1, -1]
    assert rows.source.row_weights.tolist() == [2.0, 4.0]
    assert rows.source.n_rows == 2


def test_a_bound_that_cannot_clip_such_rows_is_refused_here():
    """Before anything is charged: groups of columns need a dense matrix of their own width."""
    bound = confide.GroupBound((2,), (1.0,))
    with pytest.raises(ParameterError, match="ball or a box"):
        checked(checked_input(csr_array(X), Y), specification(row_bound=bound))


def test_opened_rows_are_read_by_each_fit_and_cleared_away():
    """Each with its own reading, which holds public facts; what a pass made is removed at the end, after an error too."""
    opened, encoder = Recorded(), Encoder(SCHEMA)
    weighted = specification(
        encoder=encoder, target=Classes.declared(None, SCHEMA), class_weight=(("no", 1.0), ("yes", 2.0)), n_threads=3
    )
    with checked_input(opened, None).checked((weighted, replace(weighted, class_weight=None, n_threads=1))) as found:
        assert opened.still_open == 2
    assert opened.still_open == 0
    (first, of_persons, threads), (second, _, _) = opened.readings
    assert isinstance(first, Reading)
    assert (first.domain, first.class_weights) == (("no", "yes"), (1.0, 2.0))
    assert (second.class_weights, of_persons, threads) == (None, weighted.rows_per_person, 3)
    assert [rows.n_rows for rows in found] == [77, 77]
    assert found[0].domain == ("no", "yes")
    assert list(found[0].columns.feature_names_in) == list(SCHEMA.column_names)
    assert list(found[0].coefficient_names) == list(encoder.feature_names)
    assert not found[0].has_weights


def test_opened_arrays_are_read_as_numbers():
    """Their width is known before they are read, so that a map of random features can be made for it."""
    opened = Recorded(schema=None, n_inputs=5)
    maps = []

    def fourier_map(n_inputs):
        maps.append(FourierMap(n_inputs, 6, "rbf", 1.0, 0, False))
        return maps[-1]

    (rows,) = checked(checked_input(opened, None), specification(fourier_map=fourier_map))
    ((reading, _, _),) = opened.readings
    assert isinstance(reading, NumericReading)
    assert (reading.n_inputs, reading.fourier, maps[0].n_inputs) == (5, maps[0], 5)
    assert (rows.columns.n_features_in, rows.columns.feature_names_in) == (5, None)
    assert rows.coefficient_names.tolist() == list(maps[0].names)


def test_mapped_files_that_change_are_refused(tmp_path):
    """The stamps of both files go along with the rows."""
    rows = in_files(tmp_path)
    assert all(isinstance(stamp, Stamp) for stamp in rows.stamps)
    (found,) = checked(checked_input(rows, None))
    assert found.source.stamps == rows.stamps


def test_a_frame_is_encoded_by_the_schema():
    """The columns are the schema's; columns that it does not name are left alone."""
    frame = made_up(50)
    encoder = Encoder(SCHEMA)
    asked = specification(encoder=encoder, target=Classes.declared(None, SCHEMA), row_bound=encoder.row_bound)
    (rows,) = checked(checked_input(frame, frame["ill"]), asked)
    assert rows.columns.n_features_in == 4
    assert rows.source.blocks.n_features == encoder.n_features
    assert rows.encoder is encoder


@pytest.mark.parametrize("n_threads", [1, 2])
def test_labels_are_read_beside_the_columns_and_refused_after_them(n_threads):
    """By another thread, if there may be one; whatever both hold, the refusal is that of one thread."""
    frame = made_up()
    y, encoder, target = frame["ill"], Encoder(SCHEMA), Classes(("no", "yes"), matched_as_text=True)
    asked = specification(encoder=encoder, row_bound=encoder.row_bound, target=target, n_threads=n_threads)
    labels = checked(checked_input(frame, y), asked)[0].source.labels
    assert labels.tolist() == checked(checked_input(frame, y), replace(asked, n_threads=1))[0].source.labels.tolist()
    wrong = np.full(len(frame), "neither")
    with pytest.raises(InputError, match="the labels: some are neither"):
        checked(checked_input(frame, wrong), asked)
    with pytest.raises(InputError, match="inconsistent numbers"):
        checked(checked_input(frame, y[:-1]), asked)
    with pytest.raises(InputError, match="lacks columns"):
        checked(checked_input(frame[["age"]], wrong), asked)


def test_only_labels_that_a_schema_declares_are_read_by_another_thread():
    """Others may give warnings, which name the line of the caller."""
    for target in (Classes((0, 1)), Classes(None), Numbers()):
        assert not target.matched_as_text


class ClaimsRows:
    """An object that says it has some number of rows and gives another, as an array."""

    def __init__(self, rows, n_rows):
        self.rows, self.shape = rows, (n_rows, rows.shape[1])

    def __array__(self, dtype=None, copy=None):
        return self.rows

    def __len__(self):
        return self.shape[0]


@pytest.mark.parametrize("n_threads", [1, 2])
@pytest.mark.parametrize("of_schema", [False, True])
@pytest.mark.parametrize("claimed", [4, 9])
def test_labels_are_compared_with_the_rows_that_were_read(n_threads, of_schema, claimed):
    """Not with what X says of itself; and before anything is charged."""
    target = {"column": "y", "negative": 0, "positive": 1}
    schema = confide.Schema(columns={f"x{i}": {"low": -1, "high": 1} for i in range(2)}, target=target)
    given = {"schema": schema} if of_schema else {"classes": [0, 1], "row_norm": 1.0}
    ledger = confide.Ledger(limit=10.0)
    model = confide.LogisticRegression(1.0, ledger=ledger, alpha=1.0, n_jobs=n_threads, **given)
    with pytest.raises(InputError, match="inconsistent numbers"):
        model.fit(ClaimsRows(X, claimed), np.resize(Y, claimed))
    assert ledger.spent().epsilon == 0.0
    model.fit(ClaimsRows(X, claimed), Y)
    assert ledger.spent().epsilon == 1.0


class OnlyAnArray:
    """An object without a shape and a length."""

    def __array__(self, dtype=None, copy=None):
        return X


def test_rows_without_a_length_are_counted_when_they_are_read():
    """A fit takes such an object, and asks it for nothing but the array."""
    confide.LogisticRegression(1.0, classes=[0, 1], row_norm=1.0, alpha=1.0, n_jobs=2).fit(OnlyAnArray(), Y)


def told(ask):
    with warnings.catch_warnings(record=True) as given:
        warnings.simplefilter("always")
        ask()
    return [str(each.message) for each in given if each.category is AccuracyWarning]


def test_labels_and_weights_with_another_index_than_the_rows_are_told():
    """Sorted or filtered apart. Equal indexes, and rows or labels without one, tell nothing."""
    X = pd.DataFrame({"a": np.linspace(-0.5, 0.5, 40)})
    y, weights = (X.a > 0).astype(int), pd.Series(1.0, X.index)
    model = LogisticRegression(1.0, row_norm=1.0, classes=[0, 1])
    (message,) = told(lambda: model.fit(X, y[::-1]))
    assert message.startswith("y has another index than X")
    assert ".loc[X.index]" in message
    assert "sample_weight has another index" in told(lambda: model.fit(X, y, sample_weight=weights[::-1]))[0]
    assert told(lambda: model.fit(X, y, sample_weight=weights)) == []
    assert told(lambda: model.fit(X, y[::-1].to_numpy())) == []
    assert told(lambda: model.fit(X.to_numpy(), y[::-1])) == []


def test_rows_of_unknown_size_are_told_by_the_parameters_alone():
    """Without a schema and without a bound on rows or a length of the kernel, whatever the rows are."""
    y = np.arange(40) % 2
    schema = confide.Schema({"a": {"low": 0, "high": 1}})
    for scale in (1e-9, 1.0, 1e9):
        X = np.linspace(-0.5, 0.5, 40)[:, None] * scale
        (message,) = told(lambda: LogisticRegression(1.0).fit(X, y))  # noqa: B023
        assert "clipped to the L2 norm 1" in message
        assert "row_norm=" in message
        assert "schema" in message
    (message,) = told(lambda: confide.KernelSVC(1.0).fit(X, y))
    assert "length_scale" in message
    search = confide.PrivateSearchCV(LogisticRegression(), {"alpha": [0.1, 1.0]}, budget=1.0)
    assert len(told(lambda: search.fit(X, y))) == 1
    for model in (
        LogisticRegression(1.0, row_norm=1.0),
        LogisticRegression(1.0, schema=schema),
        confide.KernelSVC(1.0, length_scale=1.0),
        confide.AdditiveClassifier(1.0, bounds=(-1, 1)),
    ):
        frame = pd.DataFrame(np.linspace(0.0, 1.0, 40), columns=["a"])
        assert told(lambda: model.fit(frame, y)) == []  # noqa: B023
