"""Coefficients in the units of the table agree with statsmodels on raw columns, and intervals are transformed exactly."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest

from confide import HuberRegressor, LogisticRegression, ParameterError, Ridge, Schema
from confide.effects.effects import checked_units, encoded_units, in_original_units
from confide.features.encoder import Encoder

COLUMNS = {
    "age": {"low": 17, "high": 90},
    "gain": {"low": 0, "high": 99999, "scale": "log"},
    "work": {"categories": ["private", "state", "self"]},
    "sex": {"categories": ["F", "M"]},
}
TARGET = {"column": "y", "positive": "yes", "negative": "no"}


def people(n=1500, seed=0):
    """Rows within their bounds, and a label that depends on all columns."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "age": rng.uniform(17, 90, n),
            "gain": np.expm1(rng.uniform(0, math.log1p(99999), n)),
            "work": rng.choice(["private", "state", "self"], n),
            "sex": rng.choice(["F", "M"], n),
        }
    )
    score = 0.03 * (frame.age - 50) + 0.1 * np.log1p(frame.gain) + 0.8 * (frame.work == "state") - 0.5 * (frame.sex == "M")
    return frame, np.where(rng.uniform(size=n) < 1 / (1 + np.exp(-score)), "yes", "no")


def encoder(columns=COLUMNS, interact=()):
    return Encoder(Schema(columns=columns, target=TARGET, interact=interact))


def scores(model, frame):
    """Scores of rows from coefficients in units of the table, as somebody would compute them by hand."""
    table = model.summary().to_frame()["estimate"]
    return (
        table["(intercept)"]
        + table["age"] * frame.age
        + table["gain"] * np.log2(1 + frame.gain)
        + sum(table[f"work: {level}"] * (frame.work == level) for level in ("state", "self"))
        + table["sex: M"] * (frame.sex == "M")
    )


@pytest.fixture(scope="module")
def logistic():
    frame, label = people()
    schema = Schema(columns=COLUMNS, target=TARGET)
    return LogisticRegression(math.inf, schema=schema, inference_share=0.3, alpha=1e-9).fit(frame, label), frame, label


def test_without_privacy_the_table_is_that_of_statsmodels_on_raw_columns(logistic):
    """Coefficients, standard errors, odds ratios and their intervals; the intercept too."""
    formula = pytest.importorskip("statsmodels.formula.api", reason="statsmodels is not installed")
    model, frame, label = logistic
    raw = frame.assign(y=(label == "yes").astype(int), doublings=np.log2(1 + frame.gain))
    theirs = formula.logit("y ~ age + doublings + C(work, Treatment('private')) + sex", raw).fit(disp=0)
    ours = model.summary().to_frame()
    names = {
        "age": "age",
        "gain": "doublings",
        "work: state": "C(work, Treatment('private'))[T.state]",
        "work: self": "C(work, Treatment('private'))[T.self]",
        "sex: M": "sex[T.M]",
        "(intercept)": "Intercept",
    }
    assert ours.index.tolist() == list(names)
    for our_name, name in names.items():
        line = ours.loc[our_name]
        assert line["estimate"] == pytest.approx(theirs.params[name], abs=1e-5)
        # Their errors rest on the observed curvature alone, ours on both moments.
        assert line["total_error"] == pytest.approx(theirs.bse[name], rel=0.05)
        if name != "Intercept":
            assert line["odds_ratio"] == pytest.approx(math.exp(theirs.params[name]), rel=1e-5)
            ends = np.exp(theirs.conf_int().loc[name])
            np.testing.assert_allclose(line[["odds_ratio_low", "odds_ratio_high"]].astype(float), ends, rtol=0.02)
    assert math.isnan(ours.loc["(intercept)", "odds_ratio"])


def test_interactions_agree_with_statsmodels_around_the_middle(logistic):
    """A number with interactions is taken from the middle of its bounds; categories from their reference."""
    formula = pytest.importorskip("statsmodels.formula.api", reason="statsmodels is not installed")
    _, frame, label = logistic
    schema = Schema(columns=COLUMNS, target=TARGET, interact=[["age", "work"], ["work", "sex"]])
    model = LogisticRegression(math.inf, schema=schema, inference_share=0.3, alpha=1e-9).fit(frame, label)
    raw = frame.assign(y=(label == "yes").astype(int), doublings=np.log2(1 + frame.gain), age=frame.age - 53.5)
    theirs = formula.logit("y ~ doublings + age * C(work) + sex * C(work)", raw).fit(disp=0).params
    ours = model.summary().to_frame()["estimate"]
    assert len(ours) == len(theirs)
    assert ours["age"] == pytest.approx(theirs["age"], abs=1e-5)
    assert ours["work: self"] == pytest.approx(theirs["C(work)[T.self]"], abs=1e-5)
    assert ours["age x work: state"] == pytest.approx(theirs["age:C(work)[T.state]"], abs=1e-5)
    assert ours["work: self x sex: M"] == pytest.approx(theirs["sex[T.M]:C(work)[T.self]"], abs=1e-5)
    assert ours["(intercept)"] == pytest.approx(theirs["Intercept"], abs=1e-5)


def test_the_scores_of_the_model_follow_from_the_table(logistic):
    """With noise too: the change of units loses nothing and adds nothing."""
    _, frame, label = logistic
    schema = Schema(columns=COLUMNS, target=TARGET)
    model = LogisticRegression(5.0, schema=schema, inference_share=0.3).fit(frame, label)
    np.testing.assert_allclose(scores(model, frame), model.decision_function(frame), atol=1e-8)


def test_intervals_of_single_columns_are_scaled_exactly():
    """Where a coefficient is a multiple of a weight, its errors and ends are the same multiple. For both targets."""
    rng = np.random.default_rng(3)
    columns = {"a": {"low": 10, "high": 50}, "b": {"low": 0, "high": 0.02}}
    frame = pd.DataFrame({"a": rng.uniform(10, 50, 3000), "b": rng.uniform(0, 0.02, 3000)})
    y = np.clip(frame.a / 50 + rng.normal(0, 0.1, 3000), 0, 1)
    schema = Schema(columns=columns, target={"column": "y", "low": 0, "high": 1})
    models = [
        HuberRegressor(20.0, schema=schema, inference_share=0.3, target_bound=1.0),
        Ridge(20.0, schema=schema, intervals=True, target_bound=1.0),
    ]
    for model in models:
        model.fit(frame, y)
        for target in ("regularised", "unregularised"):
            encoded, original = (model.summary(target=target, units=units).to_frame() for units in ("encoded", "original"))
            assert original["unit"].tolist() == ["per 1", "per 0.001", ""]
            for name, factor in (("a", 2 / 40), ("b", 2 * 0.001 / 0.02)):
                for column in ("estimate", "sampling_error", "privacy_error", "low", "high"):
                    assert original.loc[name, column] == pytest.approx(factor * encoded.loc[name, column], rel=1e-6)
                assert original.loc[name, "p_value"] == pytest.approx(encoded.loc[name, "p_value"], abs=1e-9)


def test_curves_gaps_and_single_levels_are_compared_with_what_their_units_say():
    """A curve with a point in its middle, a missing number with the middle, a level that stands alone with no level."""
    columns = {
        "age": {"low": 0, "high": 100, "knots": [25, 50]},
        "hours": {"low": 0, "high": 10, "missing": True},
        "pay": {"low": 1, "high": 1000, "scale": "log"},
        "one": {"categories": ["only"]},
        "income": {"low": 1000, "high": 1_000_000, "scale": "log10"},
        "wealth": {"low": 1000, "high": 1_000_000, "scale": "log"},
    }
    made = encoder(columns)
    weights = np.arange(1.0, made.n_features + 1)[:, None]
    named, values = in_original_units(made, weights, np.zeros(1))
    found = {each.name: (each.unit, value) for each, value in zip(named, values[:, 0], strict=True)}
    # age~0 ... age~100 are 1, 2, 3, 4; hours 5, hours=(missing) 6; pay 7; one 8; income 9; wealth 10.
    assert found["age = 0"] == ("against 50", pytest.approx(-2.0))
    assert found["age = 100"] == ("against 50", pytest.approx(1.0))
    assert found["hours"] == ("per 1", pytest.approx(5.0 * 2 / 10))
    assert found["hours: (missing)"] == ("against 5", pytest.approx(6.0))
    assert found["pay"] == ("per doubling", pytest.approx(7.0 * 2 * math.log(2) / math.log(1000)))
    assert found["one: only"] == ("against no listed level", pytest.approx(8.0))
    assert found["income"] == ("per doubling", pytest.approx(9.0 * 2 * math.log(2) / math.log(1000)))
    assert found["wealth"] == ("per doubling of wealth - 999", pytest.approx(10.0 * 2 * math.log(2) / math.log1p(999_000)))
    assert found["(intercept)"] == ("", pytest.approx(3.0 - 5.0 - 7.0 - 9.0 - 10.0))


def test_every_coefficient_has_a_unit_in_both_forms():
    made = encoder(COLUMNS | {"curve": {"low": 0, "high": 9, "knots": 2, "missing": True}}, [["age", "sex"]])
    assert len(encoded_units(made)) == made.n_features
    assert encoded_units(made)[:2] == ("per half range, 36.5", "per half range of the logarithm")
    named, _ = in_original_units(made, np.zeros((made.n_features, 1)), np.zeros(1))
    assert all(each.unit for each in named[:-1])
    assert [each.name for each in named if each.columns == ("age", "sex")] == ["age x sex: M"]


def test_units_of_the_schema_stand_in_every_unit():
    """Of steps, of the points of curves, of missing numbers, of shifted logarithms, and of encoded columns."""
    columns = {
        "age": {"low": 17, "high": 90, "unit": "years", "missing": True},
        "hours": {"low": 0, "high": 80, "knots": [40], "unit": "h"},
        "gain": {"low": 0, "high": 99, "scale": "log", "unit": "USD"},
    }
    made = encoder(columns)
    named, _ = in_original_units(made, np.zeros((made.n_features, 1)), np.zeros(1))
    assert {each.name: each.unit for each in named} == {
        "age": "per 1 years",
        "age: (missing)": "against 53.5 years",
        "hours = 0": "against 40 h",
        "hours = 80": "against 40 h",
        "gain": "per doubling of gain + 1 USD",
        "(intercept)": "",
    }
    assert encoded_units(made)[0] == "per half range, 36.5 years"


def test_unknown_units_and_units_without_a_schema_are_refused():
    assert checked_units(None, None) == "encoded"
    assert checked_units(None, encoder()) == "original"
    assert checked_units(None, encoder(), is_mapped=True) == "encoded"
    with pytest.raises(ParameterError, match="'original', 'encoded'"):
        checked_units("raw", encoder())
    with pytest.raises(ParameterError, match="needs a schema"):
        checked_units("original", None)
