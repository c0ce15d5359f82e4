"""Named coefficients from end to end: combinations of weights, tables, files, and rows without noise."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest

import confide
from confide.errors import ParameterError
from confide.estimators.columns_of_interest import checked_interest
from confide.features.encoder import Encoder
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
    assert "the curvature of the objective" in model.guarantee_.statement()
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
        ({"age": {"low": 20, "high": 70, "knots": 4}}, "curve"),
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


def test_a_search_and_parts_refuse_interest():
    """Intervals are not valid after a choice, and parts have intervals of their own."""
    frame = patients(2_000)
    model = confide.LogisticRegression(1.0, schema=SCHEMA, interest=["treatment"])
    with pytest.raises(ParameterError, match="interest"):
        confide.PrivateSearchCV(model, {"alpha": [0.1, 1.0]}, budget=1.0).fit(frame, frame["ill"])
    with pytest.raises(ParameterError, match="interest"):
        confide.intervals_from_parts(model, frame, frame["ill"], n_parts=4)
