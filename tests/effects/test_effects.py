"""Effects of released models: they add up to scores, bands are those of coefficients, and contrasts are differences."""

from __future__ import annotations

import json
import math

import numpy as np
import pandas as pd
import pytest

import confide
from confide import ParameterError
from confide.estimators.released import effects_of
from confide.inference.intervals import known_scores
from tests.effects.examples import COLUMNS, Curves, Line, Sums, labels, model, schema, table
from tests.effects.test_effects_decomposition import mixtures


def scores_from(effects, frame, score=0):
    total = np.full(len(frame), effects.intercepts[score])
    for term in effects.terms:
        part = term.effects[..., score][None].repeat(len(frame), axis=0)
        for name, points in zip(term.columns, term.points, strict=True):
            part = np.einsum("rp,rp...->r...", mixtures(points, frame[name].tolist()), part)
        total += part
    return total


@pytest.mark.parametrize("with_interactions", [False, True])
def test_effects_add_up_to_the_score_in_favour_of_the_class_that_is_shown(with_interactions):
    """The positive class is classes_[0] here, so the sign is that of its score."""
    fitted, frame = model(with_interactions=with_interactions), table(200, seed=5)
    assert fitted.classes_.tolist() == ["no", "yes"]
    np.testing.assert_allclose(scores_from(effects_of(fitted), frame), -fitted.decision_function(frame), atol=1e-8)
    assert effects_of(fitted).outcome == 'log-odds of buys = "no"'


def test_effects_of_regressions_add_up_to_predictions():
    frame = table()
    described = confide.Schema(columns=COLUMNS)
    targets = np.clip(frame["age"] / 100, 0, 1).to_numpy()
    for fitted in (Line(20.0, schema=described, target_bound=1.0), Sums(20.0, schema=described, target_bound=1.0)):
        fitted.fit(frame, targets)
        np.testing.assert_allclose(scores_from(effects_of(fitted), frame[:99]), fitted.predict(frame[:99]), atol=1e-8)
        assert effects_of(fitted).outcome == "prediction"


def test_softmax_effects_add_up_to_scores_minus_their_mean_over_classes():
    frame = table()
    three = np.where(frame["age"] > 65, "c", labels(frame))
    described = confide.Schema(columns=COLUMNS, target={"column": "kind", "classes": ["c", "no", "yes"]})
    for multiclass in ("softmax", "one-vs-rest"):
        fitted = Curves(confide.ApproxDP(50.0, 1e-6), schema=described, multiclass=multiclass).fit(frame, three)
        scores = fitted.decision_function(frame[:99])
        if multiclass == "softmax":
            scores = scores - scores.mean(axis=1, keepdims=True)
        for score in range(3):
            np.testing.assert_allclose(scores_from(effects_of(fitted), frame[:99], score), scores[:, score], atol=1e-8)
    assert fitted.effects_["class"].unique().tolist() == ["c", "no", "yes"]
    with pytest.raises(ParameterError, match='give label= one of "c", "no", "yes"'):
        fitted.contrast("age", 30, 50)
    assert fitted.contrast("age", 30, 50, label="c").outcome == "log-odds of class c"


def test_bands_of_levels_of_two_are_those_of_their_coefficient():
    """Without noise, moments are exact, so errors are those of conf_int; the effect of "f" is minus that of "m"."""
    frame = table()
    fitted = Curves(math.inf, schema=schema(), inference_share=0.5).fit(frame, labels(frame))
    effects = fitted.effects_
    male = effects[(effects["column"] == "sex") & (effects["value"] == "m")].iloc[0]
    place = fitted.coefficient_names_.tolist().index("sex=m")
    low, high = fitted.conf_int()[place]
    np.testing.assert_allclose([male["low"], male["high"]], [-high, -low], rtol=1e-6)
    np.testing.assert_allclose(male["standard_error"], fitted.uncertainty().total_error[place], rtol=1e-6)


def test_joint_bands_hold_the_pointwise_ones():
    """Strictly wider for curves; equal where a column has one degree of freedom only up to the quantile's own error."""
    frame = model(0.4).effects_
    assert (frame["joint_low"] <= frame["low"]).all()
    assert (frame["high"] <= frame["joint_high"]).all()
    age = frame[frame["column"] == "age"]
    assert (age["joint_high"] - age["joint_low"] > 1.1 * (age["high"] - age["low"])).all()
    assert frame.equals(model(0.4).effects_)


def test_contrasts_are_differences_of_effects_with_their_own_errors():
    """Two levels of a category with two levels: twice the coefficient. A knot with itself: exactly 0."""
    fitted = model(0.4)
    effects = fitted.effects_
    of = {(row.column, row.value): row for row in effects.itertuples()}
    change = fitted.contrast("sex", "f", "m")
    assert change.estimate == pytest.approx(of["sex", "m"].effect - of["sex", "f"].effect)
    assert change.standard_error == pytest.approx(2 * of["sex", "m"].standard_error)
    assert change.interval[0] < change.estimate < change.interval[1]
    between = fitted.contrast("age", 30, 40)
    assert between.estimate == pytest.approx(0.5 * (of["age", 50].effect - of["age", 30].effect))
    assert fitted.contrast("age", 30, 30).estimate == 0.0
    wide, narrow = (fitted.contrast("age", 30, 50, level=level).interval for level in (0.99, 0.5))
    assert wide[0] < narrow[0] < narrow[1] < wide[1]
    alone = model().contrast("income", 10, None)
    assert alone.interval is None
    assert alone.standard_error is None
    assert "no part of the budget" in str(alone)
    assert "interval at level 0.95" in str(between)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda m: m.contrast("size", 1, 2), 'one of the model\'s columns, which are "age"'),
        (lambda m: m.contrast("age", 1, 30), "give a number from 20 to 80"),
        (lambda m: m.contrast("work", "a", "z"), 'give one of its levels: "a", "b", "c"'),
        (lambda m: m.contrast("age", 30, 40, label="no"), "leave label out"),
        (lambda m: m.contrast("age", 30, 40, level=1.0), "level must be"),
    ],
)
def test_bad_contrasts_are_refused(call, message):
    with pytest.raises(ParameterError, match=message):
        call(model())


def test_a_model_without_a_schema_has_no_effects():
    X = np.random.default_rng(0).uniform(-0.5, 0.5, size=(200, 2))
    with pytest.raises(ParameterError, match="effects of columns need a schema"):
        _ = Curves(1.0).fit(X, (X[:, 0] > 0).astype(int)).effects_


def test_frame_and_json_say_the_same():
    """JSON has no infinite number and no NaN; an interaction's value is a pair."""
    fitted = model(with_interactions=True)
    frame, document = fitted.effects_, effects_of(fitted).to_dict()
    assert frame.columns.tolist() == ["column", "value", "effect", "noise_if_even", "noise_at_most"]
    values = [value for effect in json.loads(json.dumps(document, allow_nan=False))["effects"] for value in effect["values"]]
    assert [value["effect"] for value in values] == frame["effect"].tolist()
    pair = frame[frame["column"] == "age:work"]["value"].iloc[0]
    assert pair == (20, "a")
    assert set(effects_of(model(0.4)).to_dict()["effects"][0]["values"][0]) == {
        "value", "effect", "noise_if_even", "noise_at_most", "standard_error", "low", "high", "joint_low", "joint_high",
    }  # fmt: skip


def test_a_loaded_model_has_the_same_effects(tmp_path):
    frame = table()
    fitted = confide.LogisticRegression(confide.ApproxDP(50.0, 1e-6), schema=schema(), inference_share=0.4)
    fitted.fit(frame, labels(frame)).save(tmp_path / "model.json")
    before, after = (effects_of(each).to_frame() for each in (fitted, confide.load(tmp_path / "model.json")))
    assert before["effect"].tolist() == after["effect"].tolist()
    np.testing.assert_allclose(before["joint_low"], after["joint_low"], rtol=1e-9)


def test_effects_of_a_softmax_model_lie_within_their_own_intervals_where_the_noise_hides_a_class():
    """Effects and intervals subtract the mean over the same classes: those of which enough is known."""
    draws = np.random.default_rng(1)
    frame = pd.DataFrame({"cat": draws.choice(list("abcde"), 4_000), "k": draws.normal(size=4_000)})
    target = np.array(["r"] * 3 + np.where(frame["k"] > 0.0, "p", "n").tolist()[3:])
    columns = {"cat": {"categories": list("abcde")}, "k": {"low": -3, "high": 3}}
    given = {"schema": confide.Schema(columns), "classes": ["n", "p", "r"], "inference_share": 0.2, "random_state": 5}
    fitted = confide.LogisticRegression(confide.ApproxDP(10.0, 1e-6), **given).fit(frame, target)
    assert known_scores(effects_of(fitted).released.evidence).tolist() == [True, True, False]
    values = [value for effect in effects_of(fitted).with_bands() for value in effect.values if math.isfinite(value.low)]
    assert len(values) >= 10
    assert all(value.low <= value.effect <= value.high for value in values)
    contrast = effects_of(fitted).contrast("k", -1.0, 1.5, label="p")
    assert contrast.low <= contrast.estimate <= contrast.high
