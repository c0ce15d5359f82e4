"""A schema of two columns, for tests of what scikit-learn does with estimators. The fixture `people` gives its rows."""

from __future__ import annotations

from confide import Schema

SCHEMA = Schema(
    columns={"age": {"low": 0, "high": 100, "knots": [30, 60]}, "job": {"categories": ["a", "b", "c"], "other": "a"}},
    interact=[["age", "job"]],
)
