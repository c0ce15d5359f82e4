"""Made-up rows with every kind of column, and models of them."""

from __future__ import annotations

from functools import cache

import numpy as np
import pandas as pd

import confide
from confide.estimators.additive import ColumnEffects

COLUMNS = {
    "age": {"low": 20, "high": 80, "knots": [30, 50]},
    "income": {"low": 0, "high": 1000, "scale": "log", "knots": 2, "missing": True},
    "rank": {"low": 0, "high": 1},
    "work": {"categories": ["a", "b", "c"]},
    "sex": {"categories": ["f", "m"], "missing": False},
    "city": {"categories": ["x", "y"], "other": True, "missing": True},
}
TARGET = {"column": "buys", "negative": "yes", "positive": "no"}
"""The positive label comes first in sorted order, so effects have the opposite sign of `coef_`."""
INTERACTIONS = [["work", "age"], ["income", "city", "sex"]]


class Curves(ColumnEffects, confide.LogisticRegression):
    """Logistic regression with effects."""


class Line(ColumnEffects, confide.HuberRegressor):
    """A regression with effects."""


class Sums(ColumnEffects, confide.Ridge):
    """Least squares with effects."""


def schema(interact=(), target=TARGET) -> confide.Schema:
    return confide.Schema(columns=COLUMNS, target=target, interact=interact)


def table(n: int = 4000, seed: int = 0) -> pd.DataFrame:
    """Rows, some with cells that are missing, outside the bounds, or no listed category."""
    rng = np.random.default_rng(seed)
    income = np.where(rng.uniform(size=n) < 0.1, np.nan, rng.lognormal(4.0, 2.0, n))
    return pd.DataFrame(
        {
            "age": rng.uniform(10, 90, n),
            "income": income,
            "rank": rng.uniform(-0.1, 1.1, n),
            "work": rng.choice(["a", "b", "c", "unheard of"], n),
            "sex": rng.choice(["f", "m", "unheard of"], n),
            "city": pd.Series(rng.choice(["x", "y", "z", ""], n)).replace("", None),
        }
    )


def labels(frame: pd.DataFrame, seed: int = 1) -> np.ndarray:
    """More "no" for the old and for "a"."""
    rng = np.random.default_rng(seed)
    scores = (frame["age"] - 50) / 20 + (frame["work"] == "a") + np.log1p(frame["income"].fillna(10)) / 4 - 1.5
    return np.where(rng.logistic(size=len(frame)) < scores, "no", "yes")


@cache
def model(share: float = 0.0, *, with_interactions: bool = False, budget: float = 50.0) -> Curves:
    frame = table()
    described = schema(INTERACTIONS if with_interactions else ())
    return Curves(confide.ApproxDP(budget, 1e-6), schema=described, inference_share=share).fit(frame, labels(frame))
