"""Small released models that tests of reports share."""

from __future__ import annotations

from functools import cache

import numpy as np
import pandas as pd

from confide import AdditiveClassifier, Ledger, LogisticRegression, Schema, evaluate

SECRET_NUMBER, SECRET_WORD = 77.123456, "Zyxwv"
"""A cell of a number and one of a column that no schema names: neither may ever be shown."""
COLUMNS = {
    "age": {"low": 17, "high": 90},
    "hours": {"low": 0, "high": 99, "missing": True},
    "work": {"categories": ["private", "state", "self <b>"], "other": True},
}
TARGET = {"column": "income", "positive": "high", "negative": "low"}


def schema(**more):
    return Schema(columns=COLUMNS, target=TARGET, **more)


@cache
def people(n=600, seed=0):
    """Rows, some of which hold what must never be shown, and their labels."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "age": rng.uniform(17, 90, n),
            "hours": np.where(rng.uniform(size=n) < 0.1, np.nan, rng.uniform(0, 99, n)),
            "work": rng.choice(["private", "state", "self <b>", SECRET_WORD], n),
            "name": [f"{SECRET_WORD} {i}" for i in range(n)],
        }
    )
    frame.loc[:20, ["age", "hours"]] = SECRET_NUMBER
    return frame, np.where(frame.age + rng.normal(0, 10, n) > 50, "high", "low")


@cache
def logistic():
    """A model with a ledger of its own."""
    ledger = Ledger(limit=4.0)
    return LogisticRegression(1.0, schema=schema(), ledger=ledger).fit(*people()), ledger


@cache
def of_two_rows():
    """A model that protects two rows of a person. Its ledger is for persons with one row, and holds another charge."""
    ledger = Ledger(limit=4.0)
    ledger.charge(1.0, purpose="mean age")
    return LogisticRegression(1.0, schema=schema(), max_rows_per_person=2, ledger=ledger).fit(*people()), ledger


@cache
def with_interest():
    return LogisticRegression(100.0, schema=schema(), interest=["work"]).fit(*people())


@cache
def with_intervals():
    return LogisticRegression(100.0, schema=schema(), inference_share=0.3).fit(*people())


@cache
def additive():
    """Curves and an interaction."""
    made = AdditiveClassifier(1.0, schema=schema(), interactions=[["age", "work"], ["age", "hours"]], knots=2)
    return made.fit(*people())


@cache
def without_privacy():
    return LogisticRegression(float("inf"), schema=schema()).fit(*people())


@cache
def rates():
    return evaluate(logistic()[0], *people(400, 1), budget=1.0)


def rows_of_long_names(n=600):
    """Rows of two columns with many long levels beside those of `people`, and their labels."""
    frame, label = people(n)
    rng = np.random.default_rng(1)
    more = pd.DataFrame({name: rng.choice(column["categories"], n) for name, column in LONG_COLUMNS.items()})
    return frame.join(more), label


LEVELS = [f"{name} occupations of the respondent at the interview in {name}" for name in ("Handlers", "Farming", "Sales")]
LONG_COLUMNS = {
    "occupation of the respondent at the interview": {"categories": LEVELS, "other": True},
    "region where they lived before": {"categories": [f"Region number {number} of the country" for number in range(9)]},
    "marital": {"categories": ["Married", "Never married or in a registered partnership abroad", "Divorced"]},
}


@cache
def long_names():
    """Intervals of coefficients of long levels, more than a page lists."""
    described = Schema(columns=COLUMNS | LONG_COLUMNS, target=TARGET)
    return LogisticRegression(100.0, schema=described, inference_share=0.3).fit(*rows_of_long_names())
