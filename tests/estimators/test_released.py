"""Released coefficients without intervals: names, units, ratios, for every kind of model."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest

from confide import KernelSVC, LogisticRegression, ParameterError, Ridge, Schema
from confide.estimators.released import ReleasedCoefficients, outcome_of

COLUMNS = {"age": {"low": 0, "high": 50}, "job": {"categories": ["a", "b", "c"]}}


def rows(n=300):
    rng = np.random.default_rng(0)
    return pd.DataFrame({"age": rng.uniform(0, 50, n), "job": rng.choice(["a", "b", "c"], n)})


def schema(**target):
    return Schema(columns=COLUMNS, target={"column": "y"} | target)


def test_they_are_those_of_the_table_of_intervals():
    """And in encoded units those of `coef_`; for the schema's positive class."""
    model = LogisticRegression(5.0, schema=schema(positive="no", negative="yes"), inference_share=0.3)
    model.fit(rows(), np.resize(["yes", "no"], 300))
    found = ReleasedCoefficients.of(model)
    frame = model.summary().to_frame()
    assert [each.name for each in found.coefficients] == frame.index.tolist()
    assert [each.unit for each in found.coefficients] == frame["unit"].tolist()
    np.testing.assert_allclose([each.estimate for each in found.coefficients], frame["estimate"])
    assert found.coefficients[0].ratio == pytest.approx(frame["odds_ratio"].iloc[0])
    assert found.coefficients[-1].ratio is None
    assert found.outcome == outcome_of(model) == 'log-odds of y = "no"'
    encoded = ReleasedCoefficients.of(model, "encoded")
    sign = -1.0 if model.classes_[1] == "yes" else 1.0
    np.testing.assert_allclose([each.estimate for each in encoded.coefficients][:-1], sign * model.coef_[0])
    assert encoded.coefficients[0].to_dict()["unit"] == "per half range, 25"


def test_softmax_is_shown_minus_its_mean_over_classes():
    """Names begin with the class, and there is no odds ratio."""
    model = LogisticRegression(math.inf, schema=schema(classes=["u", "v", "w"]), alpha=0.01)
    model.fit(rows(), np.resize(["u", "v", "w"], 300))
    found = ReleasedCoefficients.of(model)
    assert [each.name for each in found.coefficients][::4] == ["u: age", "v: age", "w: age"]
    assert sum(each.estimate for each in found.coefficients[::4]) == pytest.approx(0.0, abs=1e-12)
    assert found.ratio == ""
    assert {each.ratio for each in found.coefficients} == {None}


def test_numbers_and_features_of_kernels_have_units_of_their_own():
    target = np.linspace(0, 1, 300)
    ridge = Ridge(5.0, schema=schema(low=0, high=1)).fit(rows(), target)
    assert outcome_of(ridge) == "y"
    assert ReleasedCoefficients.of(ridge).ratio == ""
    kernel = KernelSVC(5.0, schema=schema(positive="no", negative="yes"), n_features=4)
    kernel.fit(rows(), np.resize(["yes", "no"], 300))
    found = ReleasedCoefficients.of(kernel)
    assert found.units == "encoded"
    units = {each.name: each.unit for each in found.coefficients}
    assert units["cos0"] == units["sin1"] == "random feature"
    assert units["age"] == "per half range, 25"
    with pytest.raises(ParameterError, match="random features"):
        ReleasedCoefficients.of(kernel, "original")


def test_weights_of_random_features_are_told_by_number_and_norm():
    """Beside those of the other weights where there are some; nothing is said without features."""
    numbers = np.random.default_rng(0).uniform(-1, 1, (300, 2))
    kernel = KernelSVC(1.0, n_features=6, length_scale=1.0, classes=[0, 1]).fit(numbers, np.resize([0, 1], 300))
    (told,) = ReleasedCoefficients.of(kernel).words_of_features
    assert told.endswith(f"Their norm is {np.linalg.norm(kernel.coef_):.4g}.")
    described = Schema(columns=COLUMNS, random_features={"number": 4, "length_scale": 1.0})
    model = LogisticRegression(1.0, schema=described, classes=["no", "yes"]).fit(rows(), np.resize(["yes", "no"], 300))
    (told,) = ReleasedCoefficients.of(model).words_of_features
    others = np.linalg.norm(model.coef_[0, :4])
    assert told.endswith(f"that of the 4 other weights without the intercept {others:.4g}.")
    plain = Schema(columns=COLUMNS)
    model = LogisticRegression(1.0, schema=plain, classes=["no", "yes"]).fit(rows(), np.resize(["yes", "no"], 300))
    assert ReleasedCoefficients.of(model).words_of_features == []
