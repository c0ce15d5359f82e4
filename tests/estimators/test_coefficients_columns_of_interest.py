"""Named coefficients from end to end: combinations of weights, tables, files, and rows without noise."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest

import confide
from confide.errors import ParameterError
from confide.estimators.coefficients import checked_interest
from confide.features.encoder import Encoder
from confide.report.contents import contents_of
from confide.report.verification import verify

COLUMNS = {
    "age": {"low": 20, "high": 70},
    "treatment": {"categories": ["none", "drug"]},
    "site": {"categories": ["a", "b", "c"]},
}
TARGET = {"column": "ill", "negative": "no", "positive": "yes"}
SCHEMA = confide.Schema(columns=COLUMNS, target=TARGET)
TRUTH = {"age": 0.02, "treatment: drug": -1.0, "site: b": 0.5, "site: c": -0.5}


def patients(n=8_000, seed=0):
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "age": rng.uniform(20, 70, n),
            "treatment": rng.choice(["none", "drug"], n),
            "site": rng.choice(["a", "b", "c"], n),
        }
    )
    score = 0.02 * (frame["age"] - 45) - 1.0 * (frame["treatment"] == "drug")
    score += 0.5 * (frame["site"] == "b") - 0.5 * (frame["site"] == "c")
    frame["ill"] = np.where(rng.uniform(size=n) < 1.0 / (1.0 + np.exp(-score)), "yes", "no")
    return frame


def test_without_noise_the_coefficients_are_those_of_a_regression_on_raw_columns():
    """In units of the table, against the reference; the errors are the sandwich's, as in statsmodels with HC0."""
    frame = patients()
    model = confide.LogisticRegression(math.inf, schema=SCHEMA, interest=["age", "treatment", "site"], alpha=1e-4)
    table = model.fit(frame, frame["ill"]).summary().to_frame()
    assert table.index.tolist() == list(TRUTH)
    design = np.column_stack(
        [frame["age"], frame["treatment"] == "drug", frame["site"] == "b", frame["site"] == "c", np.ones(len(frame))]
    ).astype(float)
    labels, weights = (frame["ill"] == "yes").to_numpy(dtype=float), np.zeros(5)
    for _ in range(30):
        fitted = 1.0 / (1.0 + np.exp(-design @ weights))
        hessian = (design * (fitted * (1.0 - fitted))[:, None]).T @ design
        weights = weights - np.linalg.solve(hessian, design.T @ (fitted - labels))
    inverse = np.linalg.inv(hessian)
    errors = np.sqrt(np.diag(inverse @ ((design * ((fitted - labels) ** 2)[:, None]).T @ design) @ inverse))
    np.testing.assert_allclose(table["estimate"], weights[:-1], atol=1e-3)
    np.testing.assert_allclose(table["total_error"], errors[:-1], rtol=0.01)
    assert table["odds_ratio"].tolist() == pytest.approx(np.exp(table["estimate"]).tolist())


def test_a_private_fit_has_intervals_tables_and_a_file_that_verifies(tmp_path):
    """The table names the class that the schema calls positive; a saved model has the same intervals."""
    frame = patients(20_000)
    model = confide.LogisticRegression(confide.ApproxDP(2.0, 1e-6), schema=SCHEMA, interest=["treatment"]).fit(
        frame, frame["ill"]
    )
    (line,) = model.summary().coefficients
    assert (line.name, line.unit) == ("treatment: drug", "against none")
    assert line.low < line.estimate < line.high
    assert abs(line.estimate + 1.0) < 6.0 * line.total_error
    assert line.high - line.low < 0.6
    assert line.privacy_error > 0.0
    assert model.conf_int().shape == (1, 2)
    text = str(model.summary())
    for words in ("odds ratio", 'in favour of ill = "yes"', "size 5%", "without a ridge"):
        assert words in text, words
    assert "twice the curvature and the slopes of the objective" in model.guarantee_.statement()
    assert "three sums" in model.guarantee_.statement()
    model.save(tmp_path / "model.json")
    again = confide.load(tmp_path / "model.json")
    assert again.summary().to_dict() == model.summary().to_dict()
    assert again.get_params()["interest"] == ["treatment"]
    found = verify(again, schema=SCHEMA)
    assert {each.outcome for each in found} <= {"verified", "not checked"}, found
    assert any("The plan was made again" in each.sentence for each in found)


def test_combinations_are_those_of_the_table():
    """A number has one, a category one for each level but the reference; rows lie at levels."""
    encoder = Encoder(SCHEMA)
    age, drug, *sites = checked_interest(["age", "treatment", "site"], encoder, list)
    assert (age.has_levels, drug.has_levels, len(sites)) == (False, True, 2)
    assert age.factors == ((0, 1.0 / 25.0),)
    vector = sites[0].vector(encoder.n_features, 2.0)
    names = list(encoder.feature_names)
    assert vector[names.index("site=b")] == 1.0
    assert vector[names.index("site=a")] == -1.0
    assert vector[-1] == 0.0
    assert checked_interest((), encoder, list) == checked_interest(None, None, list) == ()


@pytest.mark.parametrize(
    ("columns", "words"),
    [
        ({"age": {"low": 20, "high": 70, "knots": 4}}, "no straight line"),
        ({"age": {"categories": [f"l{i}" for i in range(30)]}}, "at most 20"),
    ],
)
def test_columns_without_a_single_coefficient_are_refused(columns, words):
    schema = confide.Schema(columns=columns, target=TARGET)
    with pytest.raises(ParameterError, match=words):
        confide.LogisticRegression(schema=schema, interest=["age"]).plan(n_rows=100_000)


def test_an_interaction_is_refused():
    """The effect of such a column is not one number."""
    schema = confide.Schema(columns=COLUMNS, target=TARGET, interact=[["age", "treatment"]])
    with pytest.raises(ParameterError, match="interaction"):
        confide.LogisticRegression(schema=schema, interest=["treatment"]).plan(n_rows=100_000)


def test_what_has_no_meaning_beside_interest_is_refused():
    """Other targets, encoded units, and the covariance of all coefficients."""
    frame = patients(2_000)
    model = confide.LogisticRegression(math.inf, schema=SCHEMA, interest=["treatment"]).fit(frame, frame["ill"])
    for call, words in (
        (lambda: model.uncertainty("regularised"), "without a ridge"),
        (lambda: model.summary(units="encoded"), "units of the table"),
        (model.covariance, "inference_share"),
    ):
        with pytest.raises(ParameterError, match=words):
            call()
    assert np.isfinite(model.uncertainty("unregularised").total_error).all()
    without = confide.LogisticRegression(math.inf, schema=SCHEMA).fit(frame, frame["ill"])
    with pytest.raises(ParameterError, match="intervals need"):
        without.summary()


def test_a_search_refuses_interest():
    """Intervals are not valid after a choice."""
    frame = patients(2_000)
    model = confide.LogisticRegression(1.0, schema=SCHEMA, interest=["treatment"])
    with pytest.raises(ParameterError, match="interest"):
        confide.PrivateSearchCV(model, {"alpha": [0.1, 1.0]}, budget=1.0).fit(frame, frame["ill"])


def loans(n=20_000):
    """Ages, codes and amounts, whose means lie far from the middle of their bounds beside their spreads."""
    rng = np.random.default_rng(3)
    frame = pd.DataFrame(
        {
            "age": np.clip(rng.gamma(9, 4, n), 18, 90),
            "status": np.clip(rng.poisson(0.4, n) - 1, -2, 8),
            "limit": np.clip(rng.lognormal(4.5, 0.8, n), 10, 1_000),
            "payment": np.clip(rng.lognormal(1, 1.5, n), 0, 1_000),
        }
    )
    scores = 0.03 * (frame["age"] - 36) + 0.6 * frame["status"] - 0.6 * np.log(frame["limit"] / 90) - 1.2
    return frame, (rng.random(n) < 1.0 / (1.0 + np.exp(-scores))).astype(int)


LOANS = confide.Schema(
    columns={
        "age": {"low": 18, "high": 90},
        "status": {"low": -2, "high": 8},
        "limit": {"low": 10, "high": 1_000, "scale": "log10"},
        "payment": {"low": 0, "high": 1_000, "scale": "log"},
    }
)
OF_LOANS = {"age": 0.03, "status": 0.6, "limit": -0.6 * math.log(2.0), "payment": 0.0}


@pytest.mark.parametrize("name", OF_LOANS)
def test_a_skewed_column_has_an_interval_about_as_wide_as_the_plan_says(name):
    """Finite, from the rows alone, within a factor of 1.5 of the forecast for its spread, and around the truth."""
    frame, bad = loans()
    model = confide.LogisticRegression(confide.ApproxDP(1.0, 1e-6), schema=LOANS, interest=[name], classes=[0, 1])
    plan = model.plan(len(frame)).intervals
    table = model.fit(frame, bad).summary()
    (line,) = table.coefficients
    assert table.supposed == ()
    assert abs(line.estimate - OF_LOANS[name]) < 5.0 * line.total_error
    values = frame[name] if name in ("age", "status") else np.log2(frame[name] + (name == "payment"))
    expected = plan.margin(plan.combinations[0]) * plan.spread_of(plan.combinations[0]) / float(np.std(values))
    assert expected / 1.5 < 0.5 * (line.high - line.low) < 1.5 * expected


def test_a_column_that_is_nearly_another_one_has_a_finite_interval_and_no_green_report():
    """The noise hides by what they differ: the table and the report name the supposition that the interval rests on."""
    frame, bad = loans()
    frame["twin"] = np.clip(frame["age"] + np.random.default_rng(0).normal(scale=0.3, size=len(frame)), 18, 90)
    columns = {**LOANS.to_dict()["columns"], "twin": {"low": 18, "high": 90}}
    schema = confide.Schema.from_dict({"columns": columns})
    model = confide.LogisticRegression(confide.ApproxDP(1.0, 1e-6), schema=schema, interest=["twin"], classes=[0, 1])
    model.fit(frame, bad)
    table = model.summary()
    assert table.supposed == ("twin",)
    assert np.isfinite(model.conf_int()).all()
    assert table.coefficients[0].low < 0.0 < table.coefficients[0].high
    assert any("rests on a supposition" in note for note in table.notes)
    assert table.to_dict()["rests_on_supposition"] == ["twin"]
    verdict = contents_of(model).verdict
    assert verdict.kind == "caution"
    assert any("rests on a supposition" in sentence for sentence in verdict.sentences)
