"""What is unusual about a budget or about labels is said before a charge, in the same words everywhere."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest

import confide
from confide import ZCDP, ApproxDP, Ledger, LinearSVC, LogisticRegression, PrivacyWarning, PureDP, Ridge
from confide.budget_warnings import cautions
from confide.report.page import report_page

OUTRIGHT, USUAL_DELTA, ABOVE_10 = "is not below one over the number of rows", "above the usual 1e-05", "is above 10"
CASES = {
    "usual": (ApproxDP(1.0, 1e-6), (1000, 1000), []),
    "pure at the limit": (PureDP(10.0), (1000, 1000), []),
    "pure above it": (PureDP(10.1), (1000, 1000), [ABOVE_10]),
    "delta at the usual": (ApproxDP(1.0, 1e-5), (1000, 1000), []),
    "delta above the usual": (ApproxDP(1.0, 2e-5), (1000, 1000), [USUAL_DELTA]),
    "delta of one row": (ApproxDP(1.0, 1e-3), (1000, 1000), [OUTRIGHT]),
    "delta below one row": (ApproxDP(1.0, 0.9e-3), (1000, 1000), [USUAL_DELTA]),
    "both": (ApproxDP(20.0, 1e-3), (1000, 1000), [OUTRIGHT, ABOVE_10]),
    "concentrated": (ZCDP(1.0), (1000, 1000), []),
    "concentrated, large": (ZCDP(3.0), (1000, 1000), ["implies with delta = 1e-06"]),
    "few rows at least": (ApproxDP(1.0, 1e-3), (1000, 2000), [OUTRIGHT]),
    "few rows at most": (ApproxDP(1.0, 0.9e-3), (1000, 2000), ["one over the largest number of rows that was declared"]),
    "no privacy": (PureDP(float("inf")), (1000, 1000), []),
}


@pytest.mark.parametrize("name", CASES)
def test_each_caution_begins_where_it_says(name):
    """A delta of one over the number of rows, one above 1e-5, and an epsilon above 10; of private rows by their bounds."""
    budget, bounds, expected = CASES[name]
    found = cautions(budget, *bounds)
    assert len(found) == len(expected)
    assert all(words in sentence for words, sentence in zip(expected, found, strict=True))


def given_by(action):
    """The messages of the privacy warnings that are given."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        action()
    return [str(each.message) for each in caught if each.category is PrivacyWarning]


MODELS = {
    "classifier": lambda budget, **more: LogisticRegression(budget, **more),
    "least squares": lambda budget, **more: Ridge(budget, target_bound=1.0, **more),
    "loss": lambda budget, **more: confide.HuberRegressor(budget, target_bound=1.0, **more),
}


@pytest.mark.parametrize("name", MODELS)
def test_plan_fit_guarantee_and_report_say_the_same(rows, name):
    """Two sentences on a budget of epsilon 20 and delta one in a thousand, over 2,000 rows."""
    X, y = rows
    budget = ApproxDP(20.0, 1e-3)
    said = cautions(budget, 2000, 2000)
    assert len(said) == 2
    model = MODELS[name](budget)
    plan = model.plan(2000, 5)
    assert plan.to_dict()["cautions"] == list(said)
    assert given_by(lambda: model.fit(X, y)) == list(said)
    for sentence in said:
        assert sentence in str(plan)
        assert sentence in model.guarantee_.assumptions
        assert sentence in report_page(model)
    assert given_by(lambda: MODELS[name](1.0).fit(X, y)) == []
    assert MODELS[name](1.0).plan(2000, 5).to_dict()["cautions"] == []


@pytest.mark.parametrize("name", MODELS)
def test_a_filter_stops_the_fit_before_its_charge_or_silences_it(rows, name):
    """As an error nothing is charged; ignored, the fit goes on and the guarantee says it all the same."""
    ledger = Ledger(limit=40.0)
    model = MODELS[name](20.0, ledger=ledger)
    with warnings.catch_warnings():
        warnings.simplefilter("error", PrivacyWarning)
        with pytest.raises(PrivacyWarning, match="above 10"):
            model.fit(*rows)
    assert len(ledger.entries()) == 0
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", PrivacyWarning)
        warnings.simplefilter("ignore", confide.AccuracyWarning)
        model.fit(*rows)
    assert any("is above 10" in sentence for sentence in model.guarantee_.assumptions)


def test_a_search_warns_once_of_the_whole_budget(rows):
    """Not of the parts of it that its fits take, and before the charge."""
    X, y = rows
    search = confide.PrivateSearchCV(LogisticRegression(classes=[0, 1]), {"alpha": [0.1, 1.0]}, budget=20.0)
    expected = list(cautions(PureDP(20.0), 2000, 2000))
    assert given_by(lambda: search.fit(X, y)) == expected


def test_labels_that_are_learned_from_y_are_warned_of_without_naming_one(rows):
    """Before the charge; declared labels, and the conventional pairs, are not."""
    X, y = rows
    texts = np.where(y == 1, "patient", "control")
    (message,) = given_by(lambda: LogisticRegression(1.0).fit(X, texts))
    assert "learned from y" in message
    assert "classes" in message
    assert "patient" not in message
    assert "control" not in message
    assert len(given_by(lambda: LinearSVC(1.0).fit(X, np.arange(2000) % 3))) == 1
    for labels in (y, 2 * y - 1, y == 1, y.astype(float)):
        assert given_by(lambda labels=labels: LogisticRegression(1.0).fit(X, labels)) == []
    assert given_by(lambda: LogisticRegression(1.0, classes=["control", "patient"]).fit(X, texts)) == []
    ledger = Ledger(limit=1.0)
    with warnings.catch_warnings():
        warnings.simplefilter("error", PrivacyWarning)
        with pytest.raises(PrivacyWarning):
            LogisticRegression(1.0, ledger=ledger).fit(X, texts)
    assert len(ledger.entries()) == 0


def test_a_warning_points_to_the_line_that_asked():
    """Not into the library, from where a filter would show it once for all fits."""
    X = np.random.default_rng(0).uniform(-0.5, 0.5, size=(300, 2))
    with pytest.warns(confide.PrivacyWarning) as told:
        confide.LogisticRegression(20.0).fit(X, np.where(X[:, 0] > 0, "a", "b"))
    assert [each.category for each in told] == [confide.AccuracyWarning, PrivacyWarning, PrivacyWarning]
    assert {warning.filename for warning in told} == {__file__}


def test_a_seed_is_told_before_the_charge(tmp_path):
    """Of fits, evaluations, descriptions and bounds; not of an infinite budget. A filter that makes an error stops it."""
    X, ledger = np.linspace(-0.5, 0.5, 60)[:, None], Ledger(limit=10.0)
    y = (X[:, 0] > 0).astype(int)
    facts = {"budget": 0.5, "random_state": 1, "ledger": ledger}
    fitted = LogisticRegression(1.0, row_norm=1.0).fit(X, y)
    schema = confide.Schema({"x0": {"low": -1, "high": 1}})
    for ask in (
        lambda: LogisticRegression(row_norm=1.0, **facts).fit(X, y),
        lambda: confide.evaluate(fitted, X, y, allow_hidden=True, **facts),
        lambda: confide.describe(pd.DataFrame(X, columns=["x0"]), schema, **facts),
        lambda: confide.private_bounds(pd.DataFrame(X, columns=["x0"]), {"x0": (-5, 5)}, **facts),
        lambda: confide.PrivateSearchCV(LogisticRegression(row_norm=1.0), {"intercept_scaling": [0.5, 1.0]}, **facts).fit(
            X, y
        ),
    ):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            with pytest.raises(PrivacyWarning, match="random_state fixes the noise"):
                ask()
    assert len(ledger.entries()) == 0
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        LogisticRegression(float("inf"), row_norm=1.0, random_state=1).fit(X, y)


def test_a_budget_that_buys_nothing_is_told_before_the_charge():
    """Of fits, searches, descriptions and bounds. Where the number of rows is private, the smallest declared one counts."""
    X, ledger = np.linspace(-0.5, 0.5, 20)[:, None], Ledger(limit=10.0)
    y, rows = (X[:, 0] > 0).astype(int), pd.DataFrame(X, columns=["x0"])
    schema = confide.Schema({"x0": {"low": -1, "high": 1}})
    facts, other = {"budget": 0.1, "ledger": ledger}, Ledger(limit=10.0, neighbours="add-or-remove-one")
    hidden = {"row_norm": 1.0, "neighbours": "add-or-remove-one", "n_rows_bounds": (20, 10**6)}
    grid = {"intercept_scaling": [0.5, 1.0]}
    for ask in (
        lambda: LogisticRegression(row_norm=1.0, **facts).fit(X, y),
        lambda: LogisticRegression(0.1).set_params(**hidden, ledger=other).fit(np.tile(X, (500, 1)), np.tile(y, 500)),
        lambda: confide.describe(rows, schema, **facts),
        lambda: confide.private_bounds(rows, {"x0": (-5, 5)}, **facts),
        lambda: confide.PrivateSearchCV(LogisticRegression(row_norm=1.0), grid, **facts).fit(X, y),
    ):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            warnings.filterwarnings("error", "The noise hides", confide.BudgetWarning)
            with pytest.raises(confide.BudgetWarning, match="The noise hides what these rows say"):
                ask()
    assert len(ledger.entries()) == len(other.entries()) == 0
