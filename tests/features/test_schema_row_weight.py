"""The column of weights: its description, what is refused in it, and that it is read alike everywhere."""

from __future__ import annotations

import dataclasses
from dataclasses import replace

import numpy as np
import pytest

import confide
from confide.errors import InputError, ParameterError, SchemaError
from confide.features.schema import RowWeight, Schema
from confide.intake.rows import kinds_read, open_rows
from tests.data.tables import SCHEMA, made_up, written
from tests.features.schemas import AGE, TARGET

WEIGHT = {"column": "design weight", "high": 20, "mean": 6.5}
WEIGHTED = dataclasses.replace(SCHEMA, weight=WEIGHT)

CONTRADICTIONS = {
    "no mapping": ("design weight", "must be a table"),
    "no cap": ({"column": "w"}, '"high" is missing'),
    "unknown key": (WEIGHT | {"low": 0}, 'unknown key "low"'),
    "a blank column": (WEIGHT | {"column": " "}, "not blank"),
    "no positive cap": (WEIGHT | {"high": 0}, "high must be a positive number"),
    "a cap without end": (WEIGHT | {"high": float("inf")}, "high must be a finite number"),
    "a mean above the cap": (WEIGHT | {"mean": 21}, "mean must be above 0 and at most high"),
    "a mean of 0": (WEIGHT | {"mean": 0}, "mean must be above 0"),
    "a feature": (WEIGHT | {"column": "age"}, "must not be among the columns"),
    "the target": (WEIGHT | {"column": "income"}, "cannot be the target"),
    "the person": (WEIGHT | {"column": "who"}, "cannot be the person"),
}


@pytest.mark.parametrize(("weight", "words"), CONTRADICTIONS.values(), ids=CONTRADICTIONS)
def test_every_contradiction_of_the_weight_is_refused(weight, words):
    """A SchemaError says what is wrong with it."""
    with pytest.raises(SchemaError, match=words):
        Schema(columns={"age": AGE}, target=TARGET, person="who", weight=weight)


def test_a_schema_keeps_its_weight():
    """In a file and back, in its text, and where knots or interactions are chosen. Without one nothing changes."""
    schema = Schema(columns={"age": AGE, "sex": {"categories": ["f", "m"]}}, target=TARGET, weight=WEIGHT)
    assert schema.weight == RowWeight("design weight", 20.0, 6.5)
    assert 'weight = { column = "design weight", high = 20, mean = 6.5 }' in schema.to_toml()
    assert Schema.from_dict(schema.to_dict()) == schema != dataclasses.replace(schema, weight=None)
    assert "weight design weight: at most 20, mean 6.5" in str(schema)
    assert "weight='design weight'" in repr(schema)
    assert schema.without_curves().weight == schema.weight
    assert kinds_read(schema)["design weight"] == "number"
    assert "design weight" not in schema.column_names
    model = confide.AdditiveClassifier(4.0, schema=schema, interactions="pairs")
    rows = people(500).rename(columns={"ill": "income"}).assign(sex="f", income="<=50K")
    rows.loc[:100, "income"] = ">50K"
    assert model.fit(rows, rows["income"])._encoder.schema.weight == schema.weight
    with pytest.raises(SchemaError, match="above \\[columns\\]"):
        Schema.from_dict({"columns": {"age": AGE, "weight": 3}})


def people(n=3000):
    """Raw columns with weights, some of them above the cap."""
    return made_up(n, age="float64").assign(**{"design weight": np.random.default_rng(3).choice([0.0, 1.0, 5.0, 30.0], n)})


def model_of(schema, **parameters):
    return confide.LogisticRegression(confide.ApproxDP(3.0, 1e-6), schema=schema, random_state=1, **parameters)


@pytest.mark.parametrize("kind", ["csv", "parquet", "feather"])
@pytest.mark.parametrize("cache", [False, True])
def test_weights_of_a_column_are_those_given_beside_the_rows(tmp_path, monkeypatch, kind, cache):
    """To the bit: a column of a frame, of files in memory, read again or cached, and `sample_weight` cut at the cap."""
    frame = people()
    capped = np.minimum(frame["design weight"], 20.0)
    beside = model_of(SCHEMA, max_sample_weight=20.0).fit(frame, frame["ill"], sample_weight=capped)
    in_frame = model_of(WEIGHTED).fit(frame, frame["ill"])
    monkeypatch.setattr("confide.data.file_rows._HELD_FILES", -1)
    in_files = model_of(WEIGHTED).fit(open_rows(written(frame, tmp_path, kind), WEIGHTED, cache=cache))
    for model in (in_frame, in_files):
        np.testing.assert_array_equal(model.coef_, beside.coef_)
        np.testing.assert_array_equal(model.intercept_, beside.intercept_)
    assert any("declared cap 20" in sentence for sentence in in_files.guarantee_.assumptions)
    equal = model_of(SCHEMA).fit(frame, frame["ill"])
    assert not np.allclose(equal.coef_, beside.coef_)


def test_weights_multiply_those_of_classes_and_follow_persons(tmp_path):
    """Rows that are drawn of each person keep their own weights, in memory and in files."""
    frame = people().assign(person=np.arange(3000) // 3)
    schema = dataclasses.replace(WEIGHTED, person="person")
    given = {"max_rows_per_person": 2, "class_weight": {"no": 1.0, "yes": 3.0}}
    in_frame = model_of(schema, **given).fit(frame, frame["ill"])
    in_files = model_of(schema, **given).fit(open_rows(written(frame, tmp_path, "parquet"), schema))
    np.testing.assert_array_equal(in_frame.coef_, in_files.coef_)
    without = dataclasses.replace(SCHEMA, person="person")
    beside = model_of(without, max_sample_weight=20.0, **given)
    capped = np.minimum(frame["design weight"], 20.0)
    np.testing.assert_array_equal(beside.fit(frame, frame["ill"], sample_weight=capped).coef_, in_frame.coef_)


@pytest.mark.parametrize("cell", [-1.0, np.nan, np.inf, "secret"])
@pytest.mark.parametrize("lies", ["in memory", "in files"])
def test_a_cell_that_is_no_weight_is_refused_before_the_charge(tmp_path, cell, lies):
    """With the name of the column and no value."""
    frame = people().astype({"design weight": object})
    frame.loc[2999, "design weight"] = cell
    ledger = confide.Ledger(limit=confide.PureDP(5.0))
    rows = (open_rows(written(frame, tmp_path, "csv"), WEIGHTED), None) if lies == "in files" else (frame, frame["ill"])
    with pytest.raises(InputError, match="design weight") as caught:
        confide.LogisticRegression(1.0, schema=WEIGHTED, ledger=ledger).fit(*rows)
    assert "secret" not in str(caught.value)
    assert len(ledger.entries()) == 0


@pytest.mark.parametrize("lies", ["in memory", "in files"])
def test_weights_that_are_all_zero_are_refused(tmp_path, lies):
    """A fit would be noise alone."""
    frame = people().assign(**{"design weight": 0.0})
    rows = (open_rows(written(frame, tmp_path, "csv"), WEIGHTED), None) if lies == "in files" else (frame, frame["ill"])
    with pytest.raises(InputError, match="weights of all rows are 0"):
        confide.LogisticRegression(1.0, schema=WEIGHTED).fit(*rows)


@pytest.mark.parametrize("lies", ["in memory", "in files"])
def test_weights_that_are_all_zero_in_a_cohort_are_refused_before_the_charge(tmp_path, lies):
    """Rows of other cohorts are as if they had not been given, so their weights are too."""
    schema = replace(WEIGHTED, cohort=("month", "2"))
    frame = people().assign(month=np.arange(3000) % 2 + 1)
    frame.loc[frame["month"] == 2, "design weight"] = 0.0
    ledger = confide.Ledger(limit=5.0, cohorts="month", neighbours="add-or-remove-one")
    rows = (open_rows(written(frame, tmp_path, "csv"), schema), None) if lies == "in files" else (frame, frame["ill"])
    model = confide.LogisticRegression(1.0, schema=schema, ledger=ledger, neighbours="add-or-remove-one")
    with pytest.raises(InputError, match="weights of all rows are 0"):
        model.set_params(n_rows_bounds=(1000, 2000)).fit(*rows)
    assert len(ledger.entries()) == 0


def test_what_contradicts_the_schema_is_refused():
    """Weights that are given twice, a cap that is stated twice, and models without weights."""
    frame = people()
    with pytest.raises(ParameterError, match="leave sample_weight out"):
        confide.LogisticRegression(1.0, schema=WEIGHTED).fit(frame, frame["ill"], sample_weight=np.ones(3000))
    with pytest.raises(ParameterError, match="leave max_sample_weight and"):
        confide.LogisticRegression(1.0, schema=WEIGHTED, max_sample_weight=5.0).plan(3000)
    with pytest.raises(InputError, match='lacks columns that the schema describes: "design weight"'):
        confide.LogisticRegression(1.0, schema=WEIGHTED).fit(frame.drop(columns="design weight"), frame["ill"])
    of_numbers = Schema(columns={"debt": {"low": 0, "high": 1e5}}, weight=WEIGHT)
    for model in (
        confide.Ridge(1.0, schema=of_numbers, target_bound=100.0),
        confide.AdditiveRegressor(1.0, schema=of_numbers, target_bound=100.0, loss="squared"),
    ):
        with pytest.raises(ParameterError, match="least squares takes no weights"):
            model.plan(3000)


def test_rows_to_be_scored_need_no_weights(tmp_path):
    """Predictions and rates read the columns of the model alone, in memory and in files; a fit needs the weights."""
    frame = people()
    model = confide.LogisticRegression(5.0, schema=WEIGHTED).fit(frame, frame["ill"])
    bare = frame.drop(columns="design weight")
    assert model.predict(bare).shape == (3000,)
    assert confide.evaluate(model, bare, frame["ill"], budget=5.0).n_rows == 3000
    rows = open_rows(written(bare, tmp_path, "csv"), WEIGHTED)
    assert confide.evaluate(model, rows, budget=5.0).n_rows == 3000
    with pytest.raises(InputError, match=r'lacks the columns? "design weight"'):
        confide.LogisticRegression(5.0, schema=WEIGHTED).fit(rows)


@pytest.mark.parametrize(
    ("kind", "parameters"),
    [
        ("AdditiveClassifier", {}),
        ("LinearSVC", {}),
        ("KernelSVC", {"n_features": 16}),
        ("ERMClassifier", {}),
        ("LogisticRegression", {"mechanism": "gradient"}),
        ("LogisticRegression", {"mechanism": "output"}),
    ],
)
def test_every_classifier_counts_rows_by_the_column(kind, parameters):
    """As it counts them by `sample_weight`."""
    frame = people(1500)
    given = {"random_state": 1} | parameters
    model = getattr(confide, kind)
    beside = model(confide.ApproxDP(5.0, 1e-6), schema=SCHEMA, max_sample_weight=20.0, **given)
    beside.fit(frame, frame["ill"], sample_weight=np.minimum(frame["design weight"], 20.0))
    named = model(confide.ApproxDP(5.0, 1e-6), schema=WEIGHTED, **given).fit(frame, frame["ill"])
    np.testing.assert_array_equal(named.coef_, beside.coef_)


@pytest.mark.parametrize("kind", ["HuberRegressor", "AdditiveRegressor", "ERMRegressor"])
def test_every_regressor_counts_rows_by_the_column(kind):
    """As it counts them by `sample_weight`."""
    frame = people(1500).assign(debt=np.linspace(0.0, 2e4, 1500))
    schema = Schema(columns={"age": AGE}, target={"column": "debt", "low": 0, "high": 2e4}, weight=WEIGHT)
    model = getattr(confide, kind)
    bare = dataclasses.replace(schema, weight=None)
    beside = model(5.0, schema=bare, max_sample_weight=20.0, random_state=1)
    beside.fit(frame, frame["debt"], sample_weight=np.minimum(frame["design weight"], 20.0))
    named = model(5.0, schema=schema, random_state=1).fit(frame, frame["debt"])
    np.testing.assert_array_equal(named.coef_, beside.coef_)


def test_searches_and_refits_count_rows_by_the_column():
    """What fits several times does so with the weights each time."""
    frame = people(1500)
    capped = np.minimum(frame["design weight"], 20.0)

    def models_of(schema, weights, **parameters):
        asked = {} if weights is None else {"sample_weight": weights}
        plain = confide.LogisticRegression(8.0, schema=schema, **parameters)
        search = confide.PrivateSearchCV(plain, {"alpha": [0.01, 0.1]}, budget=8.0, random_state=1)
        again = confide.LogisticRegression(8.0, schema=schema, random_state=1, **parameters)
        again = again.fit(frame, frame["ill"], **asked).refit(frame, frame["ill"], **asked)
        return search.fit(frame, frame["ill"], **asked).best_estimator_.coef_, again.coef_

    beside = models_of(SCHEMA, capped, max_sample_weight=20.0)
    for one, other in zip(models_of(WEIGHTED, None), beside, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12)
