"""Bad input is refused in one clear line, before any charge, and without a value from the data."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from confide import ZCDP, ApproxDP, ConfideError, Ledger, LogisticRegression, PureDP, Schema
from tests.intake.refusals import GOOD_X, GOOD_Y, SECRET, SECRET_TEXT, refusal

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


def test_refusals_keep_their_budget_with_warnings_as_errors():
    """A constant column, duplicate rows and huge numbers are no errors at all."""
    X = np.ones((50, 3)) * 1e300
    assert np.isfinite(LogisticRegression(1.0).fit(X, GOOD_Y).coef_).all()
    assert np.isfinite(LogisticRegression(1.0).fit(np.zeros((50, 3)), GOOD_Y).coef_).all()
    assert np.isfinite(LogisticRegression(1.0).fit(X[:1], GOOD_Y[:1]).coef_).all()


def test_a_ledger_gives_no_refund():
    """A sum that is empty or negative is no budget."""
    ledger = Ledger(limit=1.0)
    ledger.charge(0.5)
    for amount in (0.0, -5.0):
        with pytest.raises(ConfideError):
            ledger.charge(PureDP.of_sum(amount))
    assert ledger.spent().epsilon == 0.5


def test_a_budget_beyond_the_proof_says_so():
    """Above epsilon = 190 the statement does not claim the failure bound."""
    assert "claims nothing" in LogisticRegression(200.0).fit(GOOD_X, GOOD_Y).guarantee_.statement()
    assert "2^-199" in LogisticRegression(1.0).fit(GOOD_X, GOOD_Y).guarantee_.statement()
