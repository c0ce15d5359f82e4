"""What additive models know of their columns: a schema or bounds, and the knots in them."""

from __future__ import annotations

import threading
from multiprocessing import Pipe

import numpy as np
import pandas as pd
import pytest

import confide
from confide import AdditiveClassifier, ApproxDP, InputError, ParameterError, Schema
from confide.accounting.ledger import Ledger
from confide.planning.advice import verdict_of

RNG = np.random.default_rng(1)
X = RNG.uniform(-1, 1, size=(500, 2))
Y = (X[:, 0] > 0).astype(int)
SCHEMA = Schema(columns={"a": {"low": -1, "high": 1}, "b": {"low": -1, "high": 1, "knots": 1}})
FRAME = pd.DataFrame(X, columns=["a", "b"])


def fitted(**parameters):
    """A model without privacy, so that equal encodings give equal weights."""
    return AdditiveClassifier(float("inf"), **parameters).fit(X, Y)


def test_bounds_of_an_array_are_a_schema_of_its_columns():
    """One pair, a pair each, and a schema of x0, x1 give one model; the array is read by position."""
    schema = Schema(columns={"x0": {"low": -1, "high": 1}, "x1": {"low": -1, "high": 1}})
    models = [fitted(bounds=(-1, 1)), fitted(bounds=[(-1, 1), (-1, 1)]), fitted(schema=schema)]
    for model in models:
        assert np.array_equal(model.coef_, models[0].coef_)
        assert np.array_equal(model.decision_function(X), models[0].decision_function(X))
        assert not hasattr(model, "feature_names_in_")
    assert AdditiveClassifier(bounds=(-1, 1)).chosen_schema(500, 2) == AdditiveClassifier(schema=schema).chosen_schema(500)


def test_bounds_of_a_frame_keep_its_names():
    """A dict names the columns; those that it leaves out are not used."""
    model = AdditiveClassifier(float("inf"), bounds={"b": (-1, 1)}).fit(FRAME, Y)
    assert model.schema_.column_names == ("b",)
    assert AdditiveClassifier(float("inf"), bounds=(-1, 1)).fit(FRAME, Y).schema_.column_names == ("a", "b")


def test_what_was_chosen_is_written_out():
    """`schema_` holds it, a fit with it chooses the same, and a plan and a file agree."""
    model = AdditiveClassifier(1.0, schema=SCHEMA)
    assert model.fit(FRAME, Y).schema_ == model.chosen_schema(500)
    again = AdditiveClassifier(1.0, schema=model.schema_)
    assert again.chosen_schema(10**9) == model.schema_
    assert model.plan(500).problem.n_features == model.coef_.shape[1]


def test_a_file_holds_the_chosen_schema(tmp_path):
    """A model that is loaded predicts and writes the same, with the knots in its schema."""
    model = AdditiveClassifier(1.0, bounds=(-1, 1), knots={"x0": [0.0], "x1": 2}).fit(X, Y)
    model.save(tmp_path / "model.json")
    loaded = confide.load(tmp_path / "model.json")
    assert loaded.schema_ == model.schema_ == loaded.schema
    assert [column.knots for column in loaded.schema_.columns] == [(0.0,), 2]
    assert np.array_equal(loaded.predict_proba(X), model.predict_proba(X))


def test_rows_in_files_get_the_knots_of_the_same_rows_in_memory(tmp_path):
    """Rows are counted before they are read; the weights are equal to the bit."""
    FRAME.assign(y=Y).to_parquet(tmp_path / "rows.parquet")
    schema = Schema(SCHEMA.columns, target={"column": "y", "negative": 0, "positive": 1})
    parameters = {"schema": schema, "random_state": 3}
    in_memory = AdditiveClassifier(1.0, **parameters).fit(FRAME, Y)
    in_file = AdditiveClassifier(1.0, **parameters).fit(confide.open_rows(tmp_path / "rows.parquet", schema))
    assert in_file.schema_ == in_memory.schema_
    assert np.array_equal(in_file.coef_, in_memory.coef_)


@pytest.mark.parametrize("interactions", ["pairs", "all", [["a", "b"]]])
def test_interactions_reach_files_plans_and_saved_models(tmp_path, interactions):
    """Memory and files give equal weights to the bit, and a loaded model predicts and scores the same."""
    FRAME.assign(y=Y).to_parquet(tmp_path / "rows.parquet")
    schema = Schema(SCHEMA.columns, target={"column": "y", "negative": 0, "positive": 1})
    model = AdditiveClassifier(4.0, schema=schema, interactions=interactions, random_state=3).fit(FRAME, Y)
    in_file = AdditiveClassifier(4.0, schema=schema, interactions=interactions, random_state=3)
    in_file.fit(confide.open_rows(tmp_path / "rows.parquet", schema))
    assert model.schema_ == in_file.schema_ == model.chosen_schema(500)
    assert np.array_equal(model.coef_, in_file.coef_)
    assert model.plan(500).problem.n_features == model.coef_.shape[1] == len(model.coefficient_names_)
    assert model.coefficient_names_[0] == "a~-1"
    model.save(tmp_path / "model.json")
    loaded = confide.load(tmp_path / "model.json")
    assert loaded.schema_ == model.schema_
    assert np.array_equal(loaded.predict_proba(FRAME), model.predict_proba(FRAME))


def test_interactions_are_learned_that_no_sum_of_effects_can_have():
    """The classes are those of an exclusive or: no column tells anything alone."""
    rows = RNG.uniform(-1, 1, size=(20_000, 2))
    classes = (rows[:, 0] * rows[:, 1] > 0).astype(int)
    scores = {}
    for interactions in ("none", "pairs", "all"):
        chosen = () if interactions == "none" else interactions
        model = AdditiveClassifier(2.0, bounds=(-1, 1), knots=3, interactions=chosen, random_state=0).fit(rows, classes)
        scores[interactions] = model.score(rows, classes)
    assert scores["none"] < 0.6
    assert scores["pairs"] > 0.9
    assert scores["all"] > 0.9


def test_a_plan_with_intervals_says_that_it_chooses_no_interactions():
    """In `why` and in the verdict of `confide plan` and `confide fit`; plans without intervals do not speak of it."""
    for share in (0.0, 0.3):
        model = AdditiveClassifier(ApproxDP(4.0, 1e-5), bounds=(-1, 1), knots=3, loss="logistic", inference_share=share)
        plan, told = model.plan(20_000, 3), "Beside intervals (inference_share), a fit chooses no interactions by itself"
        verdict = verdict_of(model, 20_000, 3, plan=plan, with_forecast=False)
        assert (told in plan.why()) == (told in str(verdict)) == (share > 0.0)


def test_parts_keep_the_interactions_of_all_rows():
    """What was chosen for all rows is the schema of every part, and nothing is chosen anew."""
    model = AdditiveClassifier(1.0, schema=SCHEMA, interactions="pairs")
    model._take_choices(model.chosen_schema(500), lambda: 500)
    assert model.chosen_schema(7) == model.schema
    assert len(model.schema.interact) == 1


REFUSED = {
    "neither schema nor bounds": ({}, "give a schema"),
    "both": ({"schema": SCHEMA, "bounds": (-1, 1)}, "not both"),
    "bounds that are no pairs": ({"bounds": [1, 2, 3]}, "bounds must be a pair"),
    "bounds of text": ({"bounds": ("low", "high")}, "bounds must be a pair"),
    "low above high": ({"bounds": (1, -1)}, "low must be below high"),
    "too few pairs": ({"bounds": [(-1, 1)]}, "bounds describe 1 column, and X has 2"),
    "knots of another type": ({"bounds": (-1, 1), "knots": 2.5}, "knots must be"),
    "a boolean": ({"bounds": (-1, 1), "knots": True}, "knots must be"),
    "knots of an unknown column": ({"bounds": (-1, 1), "knots": {"x7": 3}}, '"x7" is no number column'),
    "too many knots": ({"bounds": (-1, 1), "knots": 2000}, "to 1000"),
    "knots outside of the bounds": ({"bounds": (-1, 1), "knots": {"x0": [3.0]}}, "between low and high"),
    "an interaction of a column with itself": (
        {"bounds": (-1, 1), "interactions": [["x0", "x0"]]},
        "two or more different names",
    ),
    "an interaction of an unknown column": ({"bounds": (-1, 1), "interactions": [["x0", "z"]]}, '"z" is no column'),
    "interactions by another word": ({"bounds": (-1, 1), "interactions": "some"}, "interactions must be"),
    "intervals of random features": ({"bounds": (-1, 1), "interactions": "all", "inference_share": 0.3}, "no intervals"),
    "knots that do not rise": ({"bounds": (-1, 1), "knots": {"x0": [0.5, 0.1]}}, "rising order"),
}


@pytest.mark.parametrize(("parameters", "message"), REFUSED.values(), ids=REFUSED)
def test_bad_input_is_refused_before_a_charge(parameters, message):
    """One clear line, of the library's own errors, and nothing is charged."""
    ledger = Ledger(limit=1.0)
    with pytest.raises((ParameterError, confide.SchemaError), match=message):
        AdditiveClassifier(0.5, ledger=ledger, **parameters).fit(X, Y)
    assert ledger.spent().epsilon == 0.0


def test_arrays_of_another_width_are_refused():
    """Of the rows of a fit, and of rows to be predicted."""
    three = Schema(columns={f"x{i}": {"low": -1, "high": 1} for i in range(3)})
    with pytest.raises(InputError, match="X has 2 columns, and the schema describes 3"):
        AdditiveClassifier(1.0, schema=three).fit(X, Y)
    with pytest.raises(InputError, match="X has 3 features, but AdditiveClassifier is expecting 2"):
        fitted(bounds=(-1, 1)).predict(np.zeros((4, 3)))


def test_parties_are_told_what_to_give():
    """They know neither all rows nor the budget, so knots must be written in the schema."""
    schema = Schema(SCHEMA.columns, target={"column": "y", "negative": 0, "positive": 1})
    for private in ({}, {"neighbours": "add-or-remove-one", "n_rows_bounds": (400, 600)}):
        ours, theirs = Pipe()
        with pytest.raises(ParameterError, match="chosen_schema"):
            confide.take_part(theirs, AdditiveClassifier(1.0, schema=schema, **private), FRAME, Y)
    with pytest.raises(ParameterError, match="chosen_schema"):
        AdditiveClassifier(1.0).fit(confide.FederatedRows(schema, [ours]))


def test_parties_with_a_chosen_schema_fit_as_one():
    """The weights are those of all rows in memory."""
    target = {"column": "y", "negative": 0, "positive": 1}
    schema = AdditiveClassifier(1.0, schema=Schema(SCHEMA.columns, target=target)).chosen_schema(500)
    frame = FRAME.assign(y=Y)
    pairs = [Pipe() for _ in range(2)]
    parts = [frame[:200], frame[200:]]
    threads = [
        threading.Thread(target=confide.take_part, args=(theirs, AdditiveClassifier(schema=schema), part, part["y"]))
        for (_, theirs), part in zip(pairs, parts, strict=True)
    ]
    for thread in threads:
        thread.start()
    model = AdditiveClassifier(1.0, random_state=3)
    weights = model.fit(confide.FederatedRows(schema, [ours for ours, _ in pairs])).coef_
    for thread in threads:
        thread.join(60)
    in_memory = AdditiveClassifier(1.0, schema=schema, random_state=3).fit(FRAME, Y).coef_
    assert weights == pytest.approx(in_memory, abs=1e-6)


def test_rows_on_a_cluster_are_counted_before_they_are_read():
    """Partitions of Dask, get the knots of the same rows in memory."""
    dataframe = pytest.importorskip("dask.dataframe")
    schema = Schema(SCHEMA.columns, target={"column": "y", "negative": 0, "positive": 1})
    rows = confide.open_rows(dataframe.from_pandas(FRAME.assign(y=Y), npartitions=3), schema)
    assert rows.count() == 500
    model = AdditiveClassifier(1.0, random_state=3).fit(rows)
    in_memory = AdditiveClassifier(1.0, schema=schema, random_state=3).fit(FRAME, Y)
    assert model.schema_ == in_memory.schema_
    assert model.coef_ == pytest.approx(in_memory.coef_, abs=1e-6)


def test_the_schema_of_a_prior_decides_what_is_left_open(tmp_path):
    """Knots and interactions that would be chosen are those of the prior; a fit, a plan, a refit and a file agree."""
    before = AdditiveClassifier(float("inf"), schema=SCHEMA, knots={"a": 2}).fit(FRAME, Y)
    assert before.schema_.columns != AdditiveClassifier(0.1, schema=SCHEMA).chosen_schema(500).columns
    prior = confide.PublicPrior(before)
    model = AdditiveClassifier(0.1, schema=SCHEMA, prior=prior)
    assert model.chosen_schema(500).columns == before.schema_.columns
    assert model.plan(500).problem.prior == (*before.coef_[0], *before.intercept_)
    assert model.fit(FRAME, Y).schema_.columns == before.schema_.columns
    assert model.refit(FRAME, Y, budget=5.0).schema_ == model.schema_
    model.save(tmp_path / "model.json")
    again = confide.load(tmp_path / "model.json")
    assert again.refit(FRAME, Y, ledger=None).schema_ == model.schema_
    for interactions in ("auto", [["a", "b"]]):
        crossed = AdditiveClassifier(float("inf"), schema=SCHEMA, interactions=[["a", "b"]]).fit(FRAME, Y)
        fit = AdditiveClassifier(float("inf"), schema=SCHEMA, interactions=interactions, prior=crossed).fit(FRAME, Y)
        assert fit.schema_ == crossed.schema_


def test_other_knots_or_interactions_than_those_of_a_prior_are_refused():
    """With one line that says what to give; numbers fit if there are as many as columns enter the fit."""
    before = AdditiveClassifier(5.0, schema=SCHEMA, knots=4).fit(FRAME, Y)
    for parameters in ({"knots": 3}, {"interactions": [["a", "b"]]}, {"schema": SCHEMA.without_curves(), "knots": 0}):
        ledger = Ledger(limit=1.0)
        model = AdditiveClassifier(1.0, **{"schema": SCHEMA, "prior": before, "ledger": ledger} | parameters)
        with pytest.raises(ParameterError, match="Give the schema of the prior's model"):
            model.fit(FRAME, Y)
        assert len(ledger.entries()) == 0
    numbers = AdditiveClassifier(5.0, schema=SCHEMA, knots=4, prior=(before.coef_, before.intercept_))
    assert numbers.fit(FRAME, Y).coef_.shape == before.coef_.shape
    with pytest.raises(ParameterError, match="counted as columns enter the fit"):
        AdditiveClassifier(5.0, schema=SCHEMA, prior=([1.0, 2.0], 0.0)).fit(FRAME, Y)


@pytest.mark.parametrize("penalty", ["smooth", {"a": confide.Smooth()}], ids=["all curves", "one column"])
def test_knots_are_chosen_as_without_a_penalty_that_smooths_them(penalty):
    """The penalty belongs to the knots that are chosen; where there are none, a sentence says so before any charge."""
    schema = Schema(columns={"a": {"low": -1.5, "high": 1.5}, "b": {"low": -1.5, "high": 1.5}})
    frame, labels = pd.concat([FRAME] * 20), np.tile(Y, 20)
    ledger = Ledger(limit=confide.ApproxDP(20.0, 1e-5))
    plain, smooth = (
        AdditiveClassifier(confide.ApproxDP(8.0, 1e-6), schema=schema, interactions=(), penalty=each, ledger=ledger).fit(
            frame, labels
        )
        for each in (None, penalty)
    )
    assert plain.schema_.columns[0].knots > 2
    assert smooth.schema_ == plain.schema_
    assert [any("quadratic form" in line for line in each.guarantee_.assumptions) for each in (plain, smooth)] == [
        False,
        True,
    ]
    with pytest.raises(ParameterError, match=r"needs a column with knots|too little to smooth"):
        AdditiveClassifier(8.0, schema=schema, knots=0, penalty=penalty, ledger=ledger).fit(frame, labels)
    assert 8.0 < ledger.spent().epsilon <= 16.0
