"""Labels and targets are read as a loss needs them, or refused without a value."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pytest

from confide import InputError, Ledger, LogisticRegression, Ridge, Schema
from confide.intake.targets import Classes
from tests.intake.refusals import GOOD_X, GOOD_Y, SECRET, SECRET_TEXT, refusal

INF = float("inf")


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


def test_one_label_never_changes_what_the_others_mean():
    """2^53 and 2^53 + 1 stay apart when a float joins them; a half-precision label leaves its neighbours alone."""
    a = 2**53
    plain = Classes((a, a + 1)).read([a, a + 1, a, a + 1], 4).values
    joined = Classes((a, a + 1)).read([a, a + 1, a, float(a)], 4).values
    assert plain.tolist() == [-1, 1, -1, 1]
    assert joined.tolist() == [-1, 1, -1, -1]


def made_up(n=2000, d=5, seed=0, noise=0.1):
    """Rows of norm about 1, some longer, and targets mostly within 1."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) / np.sqrt(d)
    return X, np.clip(X, -1, 1) @ np.linspace(1.0, -0.5, d) * 0.5 + 0.2 + noise * rng.normal(size=n)


GOOD_TARGETS = made_up(n=50)[1]


BAD_TARGETS = {
    "missing": (None, "y"),
    "too short": (GOOD_TARGETS[:-1], "inconsistent"),
    "two columns": (np.zeros((50, 2)), "1d"),
    "nan": (np.where(np.arange(50) == 3, np.nan, SECRET), "NaN"),
    "infinity": (np.where(np.arange(50) == 3, np.inf, SECRET), "infinity"),
    "complex": (GOOD_TARGETS * 1j * SECRET, "Complex"),
    "complex object": (np.array([SECRET * 1j] * 50, dtype=object), "Complex"),
    "text": (np.full(50, "987654321"), "text"),
    "text objects": (np.array(["x987654321"] * 50, dtype=object), "real numbers"),
    "none among objects": (np.array([None, SECRET] * 25, dtype=object), "."),
    "dates": (np.full(50, np.datetime64("2001-01-01")), "dates"),
    "masked": (np.ma.masked_array(GOOD_TARGETS, mask=GOOD_TARGETS > 0), "mask"),
    "ragged": ([[1], [1, 2]] * 25, "1d"),
    "too large": (np.array([10**400] * 50, dtype=object), "real numbers"),
}


@pytest.mark.parametrize("name", BAD_TARGETS)
def test_bad_targets_are_refused(name):
    """In one line without a value of them, before any charge."""
    y, expected = BAD_TARGETS[name]
    ledger = Ledger(limit=10.0)
    with pytest.raises(InputError) as failure:
        Ridge(ledger=ledger, target_bound=1.0).fit(made_up(n=50)[0], y)
    assert expected in str(failure.value)
    assert "987654321" not in str(failure.value)
    assert ledger.spent().epsilon == 0.0


@pytest.mark.parametrize("kind", [list, np.float32, np.int64, bool, object, pd.Series, pl.Series])
def test_targets_may_be_any_real_numbers(kind):
    """Lists, arrays of any real type, series; the same weights without noise."""
    X, y = made_up(n=300)
    y = np.rint(y).clip(0, 1)
    given = list(y) if kind is list else kind(y) if kind in (pd.Series, pl.Series) else y.astype(kind)
    np.testing.assert_allclose(
        Ridge(INF, target_bound=1.0).fit(X, given).coef_, Ridge(INF, target_bound=1.0).fit(X, y).coef_, atol=1e-12
    )
