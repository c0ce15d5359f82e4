"""The estimator that --model names."""

from __future__ import annotations

import pandas as pd
import pytest

import confide
from confide.cli.option_values import new_estimator, predicts_a_number
from confide.errors import ParameterError
from tests.cli.commands import refused, run, write_prices

COLUMNS = {"age": {"low": 17, "high": 90}}
LABELS = confide.Schema(COLUMNS, target={"column": "income", "negative": "low", "positive": "high"})
NUMBERS = confide.Schema(COLUMNS, target={"column": "price", "low": 0, "high": 9})
BUDGET = confide.PureDP(1.0)


def test_the_target_of_the_schema_says_which_additive_model():
    """Labels or no target a classifier, numbers a regressor."""
    assert type(new_estimator("additive", BUDGET, NUMBERS)) is confide.AdditiveRegressor
    for schema in (LABELS, confide.Schema(COLUMNS)):
        assert type(new_estimator("additive", BUDGET, schema)) is confide.AdditiveClassifier
    assert predicts_a_number(NUMBERS)
    assert not any(map(predicts_a_number, (LABELS, confide.Schema(COLUMNS), None)))


@pytest.mark.parametrize(
    ("kind", "schema", "expected"),
    [
        ("logistic", LABELS, confide.LogisticRegression),
        ("svm", None, confide.LinearSVC),
        ("kernel-svm", LABELS, confide.KernelSVC),
        ("huber", NUMBERS, confide.HuberRegressor),
        ("poisson", NUMBERS, confide.PoissonRegressor),
        ("ridge", NUMBERS, confide.Ridge),
    ],
)
def test_each_name_is_one_estimator(kind, schema, expected):
    """With the budget, the schema and the parameters."""
    model = new_estimator(kind, BUDGET, schema, alpha=0.5)
    assert type(model) is expected
    assert (model.budget, model.schema, model.alpha) == (BUDGET, schema, 0.5)


@pytest.mark.parametrize(
    ("kind", "schema", "words"),
    [
        ("additive", None, "give --schema; or --model logistic"),
        ("svm", NUMBERS, "--model svm predicts labels"),
        ("huber", LABELS, "--model huber predicts numbers"),
        ("ridge", confide.Schema(COLUMNS), "low = 0, high = 20000"),
        ("poisson", None, "needs --schema with a target of numbers"),
    ],
)
def test_a_model_that_does_not_suit_the_target_is_refused(kind, schema, words):
    """The message names options."""
    with pytest.raises(ParameterError, match=words):
        new_estimator(kind, BUDGET, schema)


def test_a_column_of_numbers_is_planned_fitted_predicted_and_shown(folder):
    """With each model for numbers, from a table and a schema alone; a classifier is refused before it is read."""
    prices = write_prices()
    options = ("--schema", "prices.toml", "--epsilon", "20", "--force")
    for kind in ("additive", "huber", "poisson", "ridge"):
        assert "2,000" in run("plan", *options[:-1], "--rows", "2000", "--model", kind, "--details").stdout
        shown = run("fit", "prices.csv", *options, "--model", kind).stdout
        assert "Every target is clipped to its declared range, 0 to 100." in " ".join(shown.split())
        unit = "in logarithm of the mean of price" if kind == "poisson" else "in price"
        assert f"Released coefficients, {unit}\n" in shown
        assert f"Released coefficients, {unit}\n" in run("inspect", "model.json").stdout
        assert "prediction of price" in run("predict", "model.json", "prices.csv", "--out", "s.csv", "--force").stdout
        assert run("report", "model.json", "--force").stdout.startswith("Wrote report.html\n")
    run("fit", "prices.csv", *options, "--epsilon", "inf", code=3)
    assert abs(confide.load("model.json").predict(pd.read_csv("prices.csv")) - prices).mean() < 5.0
    assert "predicts labels" in refused("fit", "prices.csv", *options, "--model", "svm")
