"""Rows in memory become blocks of numbers, or are refused in one clear line without a value."""

from __future__ import annotations

import math
import pickle
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse
import sklearn
from sklearn.base import BaseEstimator

from confide import ConfideError, GroupBound, InputError, Ledger, LogisticRegression, Schema, SchemaWarning, evaluate
from confide.data.arrays import ArrayBlocks
from confide.errors import InputTypeError
from confide.features.encoder import Encoder
from confide.intake.arrays import _sound_sparse, numeric_blocks, rows_to_score, table_of
from tests.intake.refusals import GOOD_X, GOOD_Y, SECRET, SECRET_TEXT, refusal, with_entry
from tests.intake.specifications import specification


def with_format(kind, column=0, dtype=float):
    """A sparse matrix with one index replaced."""
    X = scipy.sparse.csr_array(GOOD_X).asformat(kind)
    X.indices[5] = column or X.indices[5]
    X.data = X.data.astype(dtype)
    return X


# Older versions of SciPy make it one row.
ONE_DIMENSIONAL = scipy.sparse.coo_array(np.full(50, SECRET))


BAD_X = {
    "one-dimensional": (np.full(50, SECRET), "2D"),
    "three-dimensional": (np.full((50, 3, 1), SECRET), "2D"),
    "scalar": (SECRET, "2D"),
    "nan": (with_entry(np.nan, float), "NaN"),
    "infinity": (with_entry(np.inf, float), "infinity"),
    "minus infinity": (with_entry(-np.inf, float), "infinity"),
    "complex": (with_entry(1j * SECRET, complex), "Complex"),
    "text array": (np.full((50, 3), SECRET_TEXT), "text"),
    "text in objects": (with_entry(SECRET_TEXT), "number"),
    "dictionary in objects": (with_entry({SECRET_TEXT: 1}), "number"),
    "none in objects": (with_entry(None), "."),
    "dates": (np.full((50, 3), np.datetime64("2001-01-01")), "text, dates"),
    "masked": (np.ma.masked_array(np.full((50, 3), SECRET), mask=np.eye(50, 3, dtype=bool)), "masked"),
    "sparse nan": (scipy.sparse.csr_matrix(with_entry(np.nan, float)), "NaN"),
    "sparse infinity": (scipy.sparse.coo_array(with_entry(np.inf, float)), "infinity"),
    "sparse complex": (scipy.sparse.csr_matrix(with_entry(1j * SECRET, complex)), "Complex"),
    "sparse objects": (with_format("csr", dtype=object), "real numbers"),
    "sparse, a column out of range": (with_format("csr", column=3), "indices"),
    "sparse, a negative row": (with_format("csc", column=-1), "indices"),
    "sparse, one-dimensional": (ONE_DIMENSIONAL, "2D" if len(ONE_DIMENSIONAL.shape) == 1 else "inconsistent"),
    "sparse, no rows": (scipy.sparse.csr_array((0, 3)), "0 sample"),
    "ragged": ([[SECRET], [1.0, 2.0]], "unequal"),
    "no rows": (np.empty((0, 3)), "0 sample"),
    "no columns": (np.empty((50, 0)), "0 feature"),
    "text frame": (pd.DataFrame({"a": [SECRET_TEXT] * 50}), "numbers"),
    "text polars frame": (pl.DataFrame({"a": [SECRET_TEXT] * 50}), "numbers"),
    "nan frame": (pd.DataFrame(with_entry(np.nan, float), columns=list("abc")), "NaN"),
    "dates in a frame": (pd.DataFrame({"d": pd.date_range("2001-01-01", periods=50)}), "numbers"),
    "dates in a polars frame": (pl.DataFrame({"d": pd.date_range("2001-01-01", periods=50)}), "numbers"),
    "durations in a frame": (pd.DataFrame({"d": pd.to_timedelta(np.arange(50), unit="D")}), "numbers"),
    "none": (None, "."),
    "a name": (SECRET_TEXT, "."),
    "float overflow": (with_entry(10**400), "."),
}


@pytest.mark.parametrize("name", BAD_X)
def test_bad_rows_are_refused(name):
    """Shapes, types and values that are no finite real numbers."""
    X, expected = BAD_X[name]
    assert expected in refusal(LogisticRegression(1.0), X, GOOD_Y)


@pytest.mark.parametrize("X", [GOOD_X, GOOD_X[:, :0]], ids=["labels too short", "no columns"])
def test_no_message_holds_the_number_of_rows(X):
    """It is private under add-or-remove-one."""
    for y in (GOOD_Y[:-1], np.zeros((50, 2))):
        assert "50" not in refusal(LogisticRegression(1.0, neighbours="add-or-remove-one", n_rows_bounds=(1, 99)), X, y)


def test_predicting_from_bad_rows_is_refused_in_the_same_words():
    """Width, NaN and text after a fit."""
    model = LogisticRegression(1.0).fit(GOOD_X, GOOD_Y)
    for X, expected in (
        (GOOD_X[:, :2], "features"),
        (with_entry(np.nan, float), "NaN"),
        (with_entry(SECRET_TEXT), "number"),
    ):
        with pytest.raises(ConfideError, match=expected) as caught:
            model.predict(X)
        assert SECRET_TEXT not in str(caught.value)


def test_scikit_learns_switches_do_not_turn_our_checks_off():
    """assume_finite=True would let a NaN through to a fit that was charged."""
    with sklearn.config_context(assume_finite=True):
        assert "NaN" in refusal(LogisticRegression(1.0), with_entry(np.nan, float), GOOD_Y)


def test_sparse_rows_are_refused_where_they_would_have_to_be_filled():
    """By groups of columns before the charge, by a schema, and with the same words at prediction."""
    X = scipy.sparse.csr_array(GOOD_X)
    bound = GroupBound((2, 1), (1.0, 1.0))
    assert "ball or a box" in refusal(LogisticRegression(1.0, row_norm=bound), X, GOOD_Y)
    with pytest.raises(ConfideError, match="ball or a box"):
        LogisticRegression(1.0, row_norm=bound).fit(GOOD_X, GOOD_Y).predict(X)
    refusal(LogisticRegression(1.0, schema=Schema(columns={"x": {"low": 0, "high": 1}})), X, GOOD_Y)


def float32_frames():
    frame = pd.DataFrame(np.random.default_rng(0).normal(size=(50, 2)).astype(np.float32), columns=["east", "north"])
    yield "pandas", frame
    yield "pandas, nullable", frame.astype("Float32")
    yield "pandas, Arrow", frame.astype("float32[pyarrow]")
    yield "polars", pl.from_pandas(frame)
    yield "arrow", pa.table(frame)


@pytest.mark.parametrize(
    ("kind", "frame"), list(float32_frames()), ids=lambda value: value if isinstance(value, str) else ""
)
def test_every_frame_is_read_alike(kind, frame, monkeypatch):
    """Names are kept, float32 stays float32, and the model is that of the array; another order of columns is refused."""
    array = np.array(frame.to_pandas() if hasattr(frame, "to_pandas") else frame, dtype=np.float32)
    y = (array[:, 0] > 0).astype(int)
    seen = []
    import confide.intake.arrays as validation

    blocks = validation.ArrayBlocks
    monkeypatch.setattr(validation, "ArrayBlocks", lambda rows: (seen.append(rows.dtype), blocks(rows))[1])
    model = LogisticRegression(math.inf).fit(frame, y)
    assert seen == [np.float32]
    assert model.feature_names_in_.tolist() == ["east", "north"] == model.coefficient_names_.tolist()
    assert model.coef_ == pytest.approx(LogisticRegression(math.inf).fit(array, y).coef_, rel=1e-6)
    with pytest.raises(InputError, match="same order"):
        model.predict(pd.DataFrame(array, columns=["north", "east"]))


def test_a_frame_of_several_types_becomes_float64():
    """One array holds it, so nothing is rounded."""
    frame = pl.DataFrame({"a": pl.Series([0.5, 0.25], dtype=pl.Float32), "b": [0.1, 0.2]})
    names = LogisticRegression(math.inf).fit(frame, [0, 1])
    as_array = LogisticRegression(math.inf).fit(np.array([[0.5, 0.1], [0.25, 0.2]]), [0, 1])
    # Columns that lie one after the other are added up in another order; rounding to float32 would be 10^-8.
    np.testing.assert_allclose(names.coef_, as_array.coef_, rtol=1e-12)


def test_a_lazy_frame_is_fitted_as_its_rows_are():
    """Also without a schema: scikit-learn would take it for one object."""
    frame, y = pl.DataFrame({"a": [0.5, -0.5, 0.25, -1.0], "b": [1.0, 0.0, 0.5, 0.5]}), [0, 1, 0, 1]
    expected = LogisticRegression(2.0, random_state=1).fit(frame, y)
    found = LogisticRegression(2.0, random_state=1).fit(frame.lazy(), y)
    assert found.coef_.tolist() == expected.coef_.tolist()
    assert found.predict(frame.lazy()).tolist() == expected.predict(frame).tolist()
    assert found.feature_names_in_.tolist() == ["a", "b"]


@pytest.mark.parametrize("names", [["39", "77516.5"], ["-1", "Unnamed: 1"], ["1e3", "0"], ["2", "0", "2.1"]])
def test_a_row_that_was_taken_for_names_is_refused(names):
    """It would be published with the model as the names of its coefficients. The message quotes none of it."""
    frame = pd.DataFrame(np.zeros((2, len(names))), columns=names)
    with pytest.raises(InputError, match="header=None") as refusal:
        LogisticRegression().fit(frame, [0, 1])
    assert not any(name in str(refusal.value) for name in names if len(name) > 1)


@pytest.mark.parametrize("names", [["0", "1"], ["1", "2"], ["x1", "2"], [0, 1], ["age", "1990"]])
def test_names_that_programs_and_people_give_are_no_cells(names):
    """Positions as text, whole numbers, and names that are not all numbers."""
    frame = pd.DataFrame([[0.1, 0.2], [0.3, 0.4]], columns=names)
    assert LogisticRegression(math.inf).fit(frame, [0, 1]).coef_.shape == (1, 2)


@pytest.mark.parametrize(("axis", "place"), [(1, 7), (1, -1), (0, 10**6)])
def test_places_of_entries_outside_of_the_matrix_are_refused(rows, axis, place):
    """Compiled code would follow them out of its arrays. A matrix of coordinates checks them once, when it is made."""
    X, y = rows
    sparse, ledger = scipy.sparse.coo_array(X), Ledger(limit=1.0)
    (sparse.row, sparse.col)[axis][3] = place
    with pytest.raises(InputError, match="indices do not fit"):
        LogisticRegression(1.0, ledger=ledger).fit(sparse, y)
    assert ledger.remaining().epsilon == 1.0


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("parts", [(0.9, 0.9), (0.9, 0.9, -0.9, -0.9, -0.9)])
def test_parts_of_a_sparse_entry_whose_sum_overflows_are_refused_before_the_charge(rows, dtype, parts):
    """Finite parts add up to an infinity or NaN, which no certificate survives: a refusal after the charge would leak."""
    X, y = rows
    sparse = scipy.sparse.csr_array(X.astype(dtype))
    largest = np.array(parts, dtype=dtype) * np.finfo(dtype).max
    data, indices = np.append(sparse.data, largest), np.append(sparse.indices, np.zeros(len(parts), dtype=int))
    pointers = np.append(sparse.indptr[:-1], len(data))
    overflowing, ledger = scipy.sparse.csr_array((data, indices, pointers), shape=X.shape), Ledger(limit=1.0)
    model = LogisticRegression(1.0, ledger=ledger)
    with pytest.raises(InputError, match="whose sum is too large"):
        model.fit(overflowing, y)
    assert ledger.remaining().epsilon == 1.0
    with pytest.raises(InputError, match="whose sum is too large"):
        model.fit(sparse, y).predict(overflowing)


# The module's own functions


def test_rows_of_numbers_become_blocks_of_their_kind():
    """Arrays as they stand, sparse matrices in rows, lists of whole numbers as doubles; the columns are recorded."""
    for X, kind, dtype in (
        (GOOD_X, ArrayBlocks, np.float64),
        (GOOD_X.astype(np.float32), ArrayBlocks, np.float32),
        ([[1, 2, 3], [4, 5, 6]], ArrayBlocks, np.float64),
        (scipy.sparse.csc_array(GOOD_X), ArrayBlocks, np.float64),
        (pl.DataFrame(GOOD_X), ArrayBlocks, np.float64),
    ):
        owner = BaseEstimator()
        blocks = numeric_blocks(X, owner, is_fit=True, accepts_sparse=True)
        assert isinstance(blocks, kind)
        assert blocks.block(0, 1).dtype == dtype
        assert owner.n_features_in_ == blocks.n_features == 3
    assert np.shares_memory(numeric_blocks(GOOD_X, owner, is_fit=True, accepts_sparse=True).block(0, 50), GOOD_X)


def test_rows_to_score_have_the_columns_of_the_fit():
    """Fewer columns and other names are refused, and change nothing of what was recorded."""
    owner = BaseEstimator()
    numeric_blocks(pd.DataFrame(GOOD_X, columns=list("abc")), owner, is_fit=True, accepts_sparse=False)
    for width, names in ((2, "ab"), (3, "abd")):
        with pytest.raises(InputError, match="feature names should match"):
            rows_to_score(pd.DataFrame(GOOD_X[:, :width], columns=list(names)), owner, None, accepts_sparse=False)
    assert owner.feature_names_in_.tolist() == ["a", "b", "c"]
    scored = rows_to_score(pd.DataFrame(GOOD_X[:4], columns=list("abc")), owner, None, accepts_sparse=False)
    np.testing.assert_array_equal(scored.block(0, 4), GOOD_X[:4])


SCHEMA = Schema(columns={"age": {"low": 0, "high": 10}, "work": {"categories": ["a", "b", "c"]}})


def test_cells_that_the_schema_does_not_describe_are_a_warning_for_who_predicts():
    """One warning a call, with its class, columns and counts, and without a cell; it points at the caller's line."""
    frame = pd.DataFrame({"age": [1.0, 9.0] * 20, "work": ["a", "b"] * 20})
    model = LogisticRegression(math.inf, schema=SCHEMA).fit(frame, [0, 1] * 20)
    strange = frame.assign(age=[SECRET] * 3 + [5.0] * 37, work=[SECRET_TEXT] * 2 + ["a"] * 38)
    for verb in (model.predict, model.predict_proba, model.decision_function):
        with pytest.warns(SchemaWarning) as given:
            verb(strange)
        assert len(given) == 1
        assert given[0].message.cells == {"age": 3, "work": 2}
        assert given[0].filename == __file__
        assert str(SECRET) not in str(given[0].message)
        assert SECRET_TEXT not in str(given[0].message)
        assert pickle.loads(pickle.dumps(given[0].message)).cells == {"age": 3, "work": 2}
    with warnings.catch_warnings():
        warnings.simplefilter("error", SchemaWarning)
        model.predict(frame)


def test_no_fit_and_no_evaluation_counts_such_cells():
    """Their number would be an answer about the rows."""
    frame = pd.DataFrame({"age": [1.0, 900.0] * 20, "work": ["a", "z"] * 20})
    with warnings.catch_warnings():
        warnings.simplefilter("error", SchemaWarning)
        model = LogisticRegression(1.0, schema=SCHEMA, classes=[0, 1]).fit(frame, [0, 1] * 20)
        evaluate(model, frame, [0, 1] * 20, budget=5.0)


def test_sparse_rows_are_refused_where_only_dense_ones_will_do():
    """Without being filled: that could take all memory."""
    with pytest.raises(InputTypeError, match=r"Pass X\.toarray\(\)"):
        numeric_blocks(scipy.sparse.csr_array(GOOD_X), BaseEstimator(), is_fit=True, accepts_sparse=False)


class Twice:
    """What claims to be an array, and is another one the second time."""

    def __init__(self):
        self.times = 0

    def __array__(self, dtype=None, copy=None):
        self.times += 1
        return np.full((3, 2), float(self.times))


def test_what_claims_to_be_an_array_is_read_once():
    """What was checked is what is used."""
    given = Twice()
    blocks = numeric_blocks(given, BaseEstimator(), is_fit=True, accepts_sparse=False)
    assert given.times == 1
    assert (blocks.block(0, 3) == 1.0).all()


def test_a_matrix_that_is_refused_or_read_stays_as_it_was():
    """Entries in parts are added up in a copy."""
    parts = scipy.sparse.csr_array((np.array([0.25, 0.5]), np.array([1, 1]), np.array([0, 2])), shape=(1, 3))
    blocks = numeric_blocks(parts, BaseEstimator(), is_fit=True, accepts_sparse=True)
    assert blocks.block(0, 1).toarray().tolist() == [[0.0, 0.75, 0.0]]
    assert parts.data.tolist() == [0.25, 0.5]


def test_a_table_of_numbers_keeps_all_rows_and_one_of_a_schema_those_that_count():
    """With the number of rows given and the columns of X, raw ones where there is a schema."""
    plain = table_of(GOOD_X, specification())
    assert (plain.kept, plain.n_rows_given, plain.columns.n_features_in, plain.blocks.n_rows) == (None, 50, 3, 50)
    encoder = Encoder(Schema(columns={"age": {"low": 0, "high": 9}}, person="who"))
    frame = pd.DataFrame({"age": [1.0, 2.0, 3.0], "who": ["a", "a", "b"], "other": [SECRET_TEXT] * 3})
    table = table_of(frame, specification(encoder=encoder))
    assert table.kept.tolist() == [0, 2]
    assert (table.n_rows_given, table.blocks.n_rows) == (3, 2)
    assert table.columns.feature_names_in.tolist() == ["age"]


def test_a_column_without_any_cell_of_its_description_is_refused():
    """In a fit; rows to score may be few, and none of them need use it."""
    encoder = Encoder(Schema(columns={"job": {"categories": ["a", "b"]}, "age": {"low": 0, "high": 9}}))
    frame = pd.DataFrame({"job": [SECRET_TEXT] * 2, "age": [1.0, 2.0]})
    with pytest.raises(InputError, match='"job"') as refused:
        table_of(frame, specification(encoder=encoder))
    assert SECRET_TEXT not in str(refused.value)
    assert rows_to_score(frame, None, encoder, accepts_sparse=False).n_rows == 2


def test_names_that_appear_twice_are_refused():
    """A column could not be told by its name; the name is not shown."""
    with pytest.raises(InputError, match="names of its columns are all different") as refused:
        numeric_blocks(pd.DataFrame(GOOD_X, columns=["a", SECRET_TEXT, SECRET_TEXT]), BaseEstimator(), is_fit=True,
                       accepts_sparse=False)  # fmt: skip
    assert SECRET_TEXT not in str(refused.value)


@pytest.mark.parametrize("n_threads", [1, 2, 5])
def test_numbers_that_are_not_finite_are_found_by_any_number_of_threads(n_threads):
    """In each block of rows, at its beginning and its end; numbers whose sum overflows are finite."""
    X = np.ones((300_000, 3))
    for place in (0, 131_071, 131_072, 299_999):
        for number, name in ((np.nan, "NaN"), (-np.inf, "infinity")):
            X[place, 1] = number
            with pytest.raises(InputError, match=f"Input X contains {name}"):
                numeric_blocks(X, BaseEstimator(), is_fit=True, accepts_sparse=False, n_threads=n_threads)
            X[place, 1] = 1.0
    X[:2] = np.finfo(float).max
    blocks = numeric_blocks(X, BaseEstimator(), is_fit=True, accepts_sparse=False, n_threads=n_threads)
    assert np.shares_memory(blocks.block(0, 1), X)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("kind", ["rows", "columns", "every second number", "one column", "wide"])
def test_numbers_that_are_not_finite_are_found_in_any_order_of_memory(kind, dtype):
    """Wherever they stand, in rows as they lie in memory and in a single row longer than what is looked at at a time."""
    shape = {"one column": (70_000, 1), "wide": (2, 70_000)}.get(kind, (30_001, 5))
    X = np.asfortranarray(np.ones(shape, dtype)) if kind == "columns" else np.ones(shape, dtype)
    if kind == "every second number":
        X = np.ones((shape[0], 2 * shape[1]), dtype)[:, ::2]
    for row, column in ((0, 0), (0, -1), (-1, 0), (-1, -1), (shape[0] // 2, shape[1] // 2)):
        for number in (np.nan, np.inf):
            X[row, column] = number
            with pytest.raises(InputError, match="Input X contains"):
                numeric_blocks(X, BaseEstimator(), is_fit=True, accepts_sparse=False)
            X[row, column] = 0.0
    numeric_blocks(X, BaseEstimator(), is_fit=True, accepts_sparse=False)


@pytest.mark.parametrize("kind", ["csc", "bsr", "coo"])
def test_indices_that_another_thread_changes_after_the_check_are_not_followed(kind, monkeypatch):
    """Whatever follows reads a copy that was checked: compiled code follows indices without a check."""
    numbers = np.arange(1.0, 13.0).reshape(4, 3)
    X = scipy.sparse.coo_array(numbers).asformat(kind)
    name = "_check" if kind == "coo" else "check_format"
    check = getattr(type(X), name)
    given = [X.row, X.col] if kind == "coo" else [X.indices]

    def then_changed(self, *options, **more):
        check(self, *options, **more)
        for indices in given:
            indices[:] = 0

    monkeypatch.setattr(type(X), name, then_changed)
    rows = _sound_sparse(X)
    assert np.array_equal(rows.toarray(), numbers)
    assert not any(np.shares_memory(rows.indices, indices) for indices in given)
