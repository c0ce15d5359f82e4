"""Bad input is refused in one clear line, before any charge, and without a value from the data."""

from __future__ import annotations

import traceback

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse
import sklearn

from confide import ZCDP, ApproxDP, ConfideError, GroupBound, Ledger, LogisticRegression, PureDP, Schema

SECRET = 987654321.125
SECRET_TEXT = "SECRETVALUE"  # noqa: S105 - a marker that no message may hold
GOOD_X = np.random.default_rng(0).normal(size=(50, 3))
GOOD_Y = np.arange(50) % 2


def refusal(model, X, y, **fit_parameters):
    """The exception of a fit that must fail without a charge, checked for what every refusal owes."""
    ledger = Ledger(limit=100.0, neighbours=model.neighbours if model.neighbours == "add-or-remove-one" else "replace-one")
    model.set_params(ledger=ledger)
    with pytest.raises(ConfideError) as caught:
        model.fit(X, y, **fit_parameters)
    assert ledger.spent().epsilon == 0.0
    assert not hasattr(model, "coef_")
    printed = "".join(traceback.format_exception(caught.value, chain=True))
    message = str(caught.value)
    for secret in ("987654321", "9.87654", SECRET_TEXT):
        assert secret not in message
        assert secret not in "".join(line for line in printed.splitlines() if not line.startswith("    "))
    assert caught.value.__cause__ is None
    assert len(message.splitlines()) <= 1
    return message


def with_entry(value, dtype=object):
    """Good rows with one entry replaced."""
    X = GOOD_X.astype(dtype)
    X[3, 1] = value
    return X


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


BAD_Y = {
    "missing": (None, "y"),
    "too short": (GOOD_Y[:-1], "inconsistent"),
    "two columns": (np.zeros((50, 2)), "1d"),
    "nan": (np.where(GOOD_Y, np.nan, 0.0), "NaN"),
    "none": (np.array([None, SECRET_TEXT] * 25, dtype=object), "missing"),
    "complex": (GOOD_Y * 1j * SECRET, "Complex"),
    "continuous": (GOOD_X[:, 0] * SECRET, "continuous"),
    "one unusual class": (np.full(50, SECRET), "classes"),
    "masked": (np.ma.masked_array(GOOD_Y, mask=GOOD_Y == 1), "masked"),
    "mixed": (np.array([SECRET_TEXT, 1] * 25, dtype=object), "one type"),
    "missing beside text": ([SECRET_TEXT, float("nan")] * 25, "missing"),
    "mixed list": ([SECRET_TEXT, 1] * 25, "one type"),
    "pandas NA": (pd.array([SECRET_TEXT, pd.NA] * 25, dtype="string"), "missing"),
    "dates": (np.array(["2001-01-01", "NaT"] * 25, dtype="datetime64[D]"), "text"),
    "bytes": (np.array([b"a", b"b"] * 25), "text"),
    "ragged": ([[1], [1, 2]] * 25, "one type"),
}


@pytest.mark.parametrize("name", BAD_Y)
def test_bad_labels_are_refused(name):
    """Missing, continuous, too many, or of the wrong shape."""
    y, expected = BAD_Y[name]
    assert expected in refusal(LogisticRegression(1.0), GOOD_X, y)


def test_labels_outside_the_declared_classes_are_refused():
    """With `classes` and with a schema's target."""
    assert "outside" in refusal(LogisticRegression(1.0, classes=["a", "b"]), GOOD_X, np.full(50, SECRET_TEXT))
    schema = Schema(columns={"x": {"low": 0, "high": 1}}, target={"column": "y", "negative": "a", "positive": "b"})
    frame = pd.DataFrame({"x": np.zeros(50)})
    assert "labels" in refusal(LogisticRegression(1.0, schema=schema), frame, [SECRET_TEXT] * 50)


BAD_PARAMETERS = [
    {"budget": Ledger(limit=1.0).spent()}, {"budget": 10**400}, {"alpha": 10**400}, {"row_norm": 10**400},
    {"neighbours": "add-or-remove-one", "n_rows_bounds": (1, 10**400)}, {"classes": [[0], [1, 2]]},
    {"budget": 0}, {"budget": -1.0}, {"budget": float("nan")}, {"budget": True}, {"budget": "1"}, {"budget": None},
    {"alpha": 0.0}, {"alpha": -1.0}, {"alpha": float("inf")}, {"alpha": float("nan")}, {"alpha": "best"}, {"alpha": True},
    {"row_norm": 0.0}, {"row_norm": -1.0}, {"row_norm": float("nan")}, {"row_norm": float("inf")}, {"row_norm": True},
    {"row_norm": "1"}, {"fit_intercept": 1}, {"intercept_scaling": 0.0}, {"intercept_scaling": float("inf")},
    {"intercept_scaling": True}, {"classes": [0]}, {"classes": [0, 1, 2]}, {"classes": [1, 1]}, {"classes": "ab"},
    {"classes": 3}, {"mechanism": "gaussian"}, {"mechanism": None}, {"neighbours": "near"}, {"neighbours": None},
    {"n_rows_bounds": (1, 100)}, {"neighbours": "add-or-remove-one"},
    {"neighbours": "add-or-remove-one", "n_rows_bounds": (100, 1)},
    {"neighbours": "add-or-remove-one", "n_rows_bounds": (0, 10)},
    {"neighbours": "add-or-remove-one", "n_rows_bounds": (1.5, 10)},
    {"neighbours": "add-or-remove-one", "n_rows_bounds": 10},
    {"random_state": -1}, {"random_state": 1.5}, {"random_state": np.random.default_rng(0)}, {"schema": {"a": 1}},
    {"schema": Schema(columns={"x": {"low": 0, "high": 1}}), "row_norm": 1.0},
    {"max_rows_per_person": 0}, {"max_rows_per_person": 1.5}, {"max_rows_per_person": True}, {"max_rows_per_person": None},
    {"max_rows_per_person": -1}, {"budget": ZCDP.of_sum(0.0)}, {"budget": ApproxDP.of_sum(1.0, 0.0)},
]  # fmt: skip


@pytest.mark.parametrize("parameters", BAD_PARAMETERS, ids=lambda parameters: str(parameters).split(" at 0x")[0][:60])
def test_bad_parameters_are_refused_before_rows_are_looked_at(parameters):
    """X and y are never touched: an object that cannot be read takes their place."""
    refusal(LogisticRegression(**{"budget": 1.0, **parameters}), object(), object())


def test_a_ledger_that_is_none_is_refused():
    """A number is no ledger."""
    with pytest.raises(ConfideError, match="ledger"):
        LogisticRegression(1.0, ledger=3.0).fit(GOOD_X, GOOD_Y)


@pytest.mark.parametrize("arguments", [(0, 3), (10, 0), (None, 3), (10, None), (10.5, 3), (True, 3), ("10", 3)], ids=str)
def test_a_plan_needs_whole_numbers(arguments):
    """Rows and features of at least 1."""
    with pytest.raises(ConfideError, match="whole number"):
        LogisticRegression(1.0).plan(*arguments)


BAD_FRAMES = {
    "no frame": (GOOD_X, "frame"),
    "a missing column": (pd.DataFrame({"other": [SECRET] * 50}), "age"),
    "text in a number column": (pd.DataFrame({"age": [SECRET_TEXT] * 50, "job": ["a"] * 50}), "age"),
    "a missing number": (pd.DataFrame({"age": [np.nan] * 50, "job": ["a"] * 50}), "missing"),
    "a missing category": (pd.DataFrame({"age": [SECRET] * 50, "job": [None] * 50}), "missing"),
    "an infinite number": (pd.DataFrame({"age": [np.inf] * 50, "job": ["a"] * 50}), "infinit"),
    "no rows": (pd.DataFrame({"age": [], "job": []}), "rows"),
}


def test_rows_without_a_person_are_refused():
    """Where the schema names the column of persons, it must be there, and full; no value of it is shown."""
    columns = {"age": {"low": 0, "high": 100}}
    schema = Schema(columns=columns, person="patient")
    frame = pd.DataFrame({"age": [1.0] * 50})
    assert "patient" in refusal(LogisticRegression(1.0, schema=schema), frame, GOOD_Y)
    frame["patient"] = [SECRET_TEXT] * 49 + [None]
    assert "missing" in refusal(LogisticRegression(1.0, schema=schema), frame, GOOD_Y)


@pytest.mark.parametrize("budget", [ApproxDP(1.0, 1e-6), ZCDP(0.5)], ids=lambda budget: budget.kind)
def test_a_pure_ledger_refuses_what_it_cannot_count(budget):
    """A delta and a rho are no epsilon; nothing is charged and nothing is trained."""
    ledger = Ledger(limit=10.0)
    model = LogisticRegression(budget, ledger=ledger)
    with pytest.raises(ConfideError):
        model.fit(GOOD_X, GOOD_Y)
    assert ledger.spent().epsilon == 0.0
    assert not hasattr(model, "coef_")


@pytest.mark.parametrize("name", BAD_FRAMES)
def test_bad_frames_are_refused(name):
    """With a schema; declared columns may be named, values not."""
    schema = Schema(columns={"age": {"low": 0, "high": 100}, "job": {"categories": ["a", "b"]}})
    frame, expected = BAD_FRAMES[name]
    assert expected in refusal(LogisticRegression(1.0, schema=schema), frame, GOOD_Y)


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


def test_refusals_keep_their_budget_with_warnings_as_errors():
    """A constant column, duplicate rows and huge numbers are no errors at all."""
    X = np.ones((50, 3)) * 1e300
    assert np.isfinite(LogisticRegression(1.0).fit(X, GOOD_Y).coef_).all()
    assert np.isfinite(LogisticRegression(1.0).fit(np.zeros((50, 3)), GOOD_Y).coef_).all()
    assert np.isfinite(LogisticRegression(1.0).fit(X[:1], GOOD_Y[:1]).coef_).all()


def test_scikit_learns_switches_do_not_turn_our_checks_off():
    """assume_finite=True would let a NaN through to a fit that was charged."""
    with sklearn.config_context(assume_finite=True):
        assert "NaN" in refusal(LogisticRegression(1.0), with_entry(np.nan, float), GOOD_Y)


def test_a_ledger_gives_no_refund():
    """A sum that is empty or negative is no budget."""
    ledger = Ledger(limit=1.0)
    ledger.charge(0.5)
    for amount in (0.0, -5.0):
        with pytest.raises(ConfideError):
            ledger.charge(PureDP.of_sum(amount))
    assert ledger.spent().epsilon == 0.5


def test_one_label_never_changes_what_the_others_mean():
    """2^53 and 2^53 + 1 stay apart when a float joins them; a half-precision label leaves its neighbours alone."""
    from confide.intake.targets import Classes

    a = 2**53
    plain = Classes((a, a + 1)).read([a, a + 1, a, a + 1], 4).values
    joined = Classes((a, a + 1)).read([a, a + 1, a, float(a)], 4).values
    assert plain.tolist() == [-1, 1, -1, 1]
    assert joined.tolist() == [-1, 1, -1, -1]


@pytest.mark.parametrize("weight", [[1.0], "heavy", np.zeros(50), np.full(50, -1.0), np.full(50, np.nan)], ids=str)
def test_bad_weights_of_a_score_are_refused(weight):
    """One line, as elsewhere."""
    model = LogisticRegression(1.0).fit(GOOD_X, GOOD_Y)
    with pytest.raises(ConfideError, match="sample_weight"):
        model.score(GOOD_X, GOOD_Y, sample_weight=weight)


HALF = np.full(50, 0.5)
BAD_WEIGHTS = {
    "beyond the cap": np.where(np.arange(50) == 3, SECRET, 0.5),
    "barely beyond the cap": np.where(np.arange(50) == 3, np.nextafter(1.0, 2.0), 0.5),
    "negative": np.where(np.arange(50) == 3, -0.25, 0.5),
    "nan": np.where(np.arange(50) == 3, np.nan, 0.5),
    "infinite": np.where(np.arange(50) == 3, np.inf, 0.5),
    "too few": HALF[:-1],
    "a column": HALF[:, None],
    "text": [SECRET_TEXT] * 50,
    "all zero": np.zeros(50),
    "one number": 0.5,
    "masked": np.ma.masked_array(HALF, mask=np.arange(50) == 3),
    "complex": HALF + 0.25j,
    "ragged": [[0.5], [0.5, 0.5]],
}


@pytest.mark.parametrize("name", BAD_WEIGHTS)
def test_bad_weights_of_a_fit_are_refused(name):
    """Outside [0, max_sample_weight], or not one number for each row; the cap is never taken from the weights."""
    message = refusal(LogisticRegression(1.0), GOOD_X, GOOD_Y, sample_weight=BAD_WEIGHTS[name])
    assert "max_sample_weight" in message
    assert "50" not in message


@pytest.mark.parametrize(
    ("parameters", "expected"),
    [
        ({"class_weight": "balanced"}, "frequencies"),
        ({"class_weight": "heavy"}, "dict"),
        ({"class_weight": {0: 1.0}}, "all classes"),
        ({"class_weight": {0: 1.0, 1: 2.0, 2: 3.0}}, "all classes"),
        ({"class_weight": {0: 1.0, 1: 0.0}}, "dict"),
        ({"class_weight": {0: 1.0, 1: -1.0}}, "dict"),
        ({"class_weight": {0: 1.0, 1: float("nan")}}, "dict"),
        ({"class_weight": {0: 1.0, 1: float("inf")}}, "dict"),
        ({"class_weight": {0: True, 1: 1.0}}, "dict"),
        ({"class_weight": {}}, "dict"),
        ({"class_weight": [1.0, 2.0]}, "dict"),
        ({"max_sample_weight": 0.0}, "max_sample_weight"),
        ({"max_sample_weight": -1.0}, "max_sample_weight"),
        ({"max_sample_weight": float("inf")}, "max_sample_weight"),
        ({"max_sample_weight": float("nan")}, "max_sample_weight"),
        ({"max_sample_weight": True}, "max_sample_weight"),
        ({"max_sample_weight": 0.5}, "sample_weight"),
    ],
    ids=str,
)
def test_bad_caps_and_class_weights_are_refused(parameters, expected):
    """Class weights are public numbers, one for each class; a cap below 1 needs weights."""
    assert expected in refusal(LogisticRegression(1.0, **parameters), GOOD_X, GOOD_Y)


def test_sparse_rows_are_refused_where_they_would_have_to_be_filled():
    """By groups of columns before the charge, by a schema, and with the same words at prediction."""
    X = scipy.sparse.csr_array(GOOD_X)
    bound = GroupBound((2, 1), (1.0, 1.0))
    assert "ball or a box" in refusal(LogisticRegression(1.0, row_norm=bound), X, GOOD_Y)
    with pytest.raises(ConfideError, match="ball or a box"):
        LogisticRegression(1.0, row_norm=bound).fit(GOOD_X, GOOD_Y).predict(X)
    refusal(LogisticRegression(1.0, schema=Schema(columns={"x": {"low": 0, "high": 1}})), X, GOOD_Y)


def test_a_budget_beyond_the_proof_says_so():
    """Above epsilon = 190 the statement does not claim the failure bound."""
    assert "claims nothing" in LogisticRegression(200.0).fit(GOOD_X, GOOD_Y).guarantee_.statement()
    assert "2^-199" in LogisticRegression(1.0).fit(GOOD_X, GOOD_Y).guarantee_.statement()
