"""Constructor parameters are checked before any row is looked at."""

from __future__ import annotations

import numpy as np
import pytest

from confide import ZCDP, ApproxDP, ConfideError, Ledger, LogisticRegression, Schema
from tests.intake.refusals import GOOD_X, GOOD_Y, refusal

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
