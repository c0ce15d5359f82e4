"""Additive models: curves for numbers, levels for categories, probabilities for both losses."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import minimize_scalar

import confide
from confide import AdditiveClassifier, AdditiveRegressor, ApproxDP, LinearSVC, ParameterError, Schema, load
from confide.estimators.released import ReleasedCoefficients
from tests.estimators.conventions import failed_checks

RNG = np.random.default_rng(0)
X = RNG.uniform(-1, 1, size=(20_000, 3))
CURVE = 3 * np.abs(X[:, 0]) - 1.5
Y = (RNG.uniform(size=20_000) < 1 / (1 + np.exp(-3 * CURVE))).astype(int)


def test_a_curve_is_learned_that_a_straight_line_cannot_have():
    """The classes depend on the size of a number, not on its sign."""
    straight = LinearSVC(1.0, row_norm=2.0).fit(X, Y).score(X, Y)
    curved = AdditiveClassifier(1.0, bounds=(-1, 1)).fit(X, Y).score(X, Y)
    assert straight < 0.6 < 0.8 < curved


@pytest.mark.parametrize("loss", ["auto", "logistic", "logistic_hinge"])
def test_probabilities_are_near_the_true_ones(loss):
    """Of rows with a score, as many are positive as the probability says, for each loss."""
    model = AdditiveClassifier(8.0, bounds=(-1, 1), loss=loss).fit(X, Y)
    probability = model.predict_proba(X)
    assert probability.sum(axis=1) == pytest.approx(1.0)
    assert (model.predict(X) == (probability[:, 1] > 0.5)).all()
    true = 1 / (1 + np.exp(-3 * CURVE))
    assert np.abs(probability[:, 1] - true).mean() < 0.04


def test_the_probability_of_the_hinge_is_that_of_which_its_score_is_the_best():
    """The score that minimises p loss(z) + (1 - p) loss(-z) is found by search, and gives p back."""
    model = AdditiveClassifier(math.inf, bounds=(-1, 1), loss="logistic_hinge", interactions=()).fit(X, Y)
    for p in (0.01, 0.3, 0.5, 0.9, 0.999):
        best = minimize_scalar(
            lambda z, p=p: p * np.logaddexp(0, 2 - z) + (1 - p) * np.logaddexp(0, 2 + z), bounds=(-20, 20), method="bounded",
            options={"xatol": 1e-10},
        ).x  # fmt: skip
        model.decision_function = lambda _, best=best: np.array([best])
        assert model.predict_proba(None)[0, 1] == pytest.approx(p, abs=1e-6)
    model.decision_function = lambda _: np.array([-900.0, 900.0])
    assert np.isfinite(model.predict_log_proba(None)).all()


@pytest.mark.parametrize("loss", ["auto", "logistic", "logistic_hinge"])
def test_several_classes(loss):
    """Three classes by the size of a number; their probabilities add up to 1."""
    y = np.digitize(np.abs(X[:, 0]), [0.35, 0.7])
    model = AdditiveClassifier(8.0, bounds=(-1, 1), loss=loss).fit(X, y)
    assert model.score(X, y) > 0.85
    assert model.predict_proba(X).sum(axis=1) == pytest.approx(1.0)


@pytest.mark.parametrize("loss", ["huber", "squared", "poisson"])
def test_regressions_learn_curves(loss):
    """A parabola and a kink, by each loss."""
    mean = np.exp(2 * X[:, 0] ** 2 - np.abs(X[:, 1]))
    y = RNG.poisson(mean) if loss == "poisson" else np.log(mean)
    bound = 8.0 if loss == "poisson" else 2.0
    model = AdditiveRegressor(ApproxDP(8.0, 1e-6), bounds=(-1, 1), target_bound=bound, loss=loss).fit(X, y)
    assert np.corrcoef(model.predict(X), mean if loss == "poisson" else y)[0, 1] > 0.97


def test_least_squares_takes_no_weights_of_rows():
    """They would not enter the sums."""
    with pytest.raises(ParameterError, match="sample_weight"):
        AdditiveRegressor(1.0, bounds=(-1, 1), target_bound=1.0, loss="squared").fit(X, Y, sample_weight=np.ones(len(X)))


def test_squared_errors_have_no_intervals():
    """Before anything is charged: what they would be made of is not released."""
    with pytest.raises(ParameterError, match="loss='squared' has no intervals"):
        AdditiveRegressor(8.0, bounds=(-1, 1), target_bound=1.0, loss="squared", inference_share=0.3).fit(X, Y)


def test_effects_of_named_interactions_beside_random_features_are_refused_in_words():
    """The features depend on products of columns, whose angles do not add up column by column."""
    features = {"number": 50, "length_scale": 1.0}
    schema = Schema({name: {"low": -1, "high": 1} for name in "ab"}, interact=[["a", "b"]], random_features=features)
    model = AdditiveClassifier(1.0, schema=schema).fit(pd.DataFrame(X[:, :2], columns=[*"ab"]), Y)
    with pytest.raises(ParameterError, match="random features"):
        _ = model.effects_


def test_unknown_losses_are_refused():
    """The message lists those that there are."""
    with pytest.raises(ParameterError, match="'logistic_hinge'"):
        AdditiveClassifier(1.0, bounds=(-1, 1), loss="huber_hinge").fit(X, Y)
    with pytest.raises(ParameterError, match="'squared'"):
        AdditiveRegressor(1.0, bounds=(-1, 1), target_bound=1.0, loss="logistic").fit(X, Y)


@pytest.mark.parametrize(
    "model", [AdditiveClassifier(1e6), AdditiveRegressor(1e6, target_bound=100.0)], ids=["classifier", "regressor"]
)
def test_the_conventions_of_scikit_learn_hold(model):
    """Its own checks, on arrays with bounds. Numbers near 100 need wide bounds, and scores of numbers near 0 close ones."""
    failed = failed_checks(model.set_params(bounds=(-200, 200))).splitlines()
    assert not {line for line in failed if line.startswith("check") and "check_regressors_train" not in line}
    assert failed_checks(model.set_params(bounds=(-5, 5)), "check_regressors_train") == ""


def test_intervals_of_an_additive_model():
    """The share of the budget that is kept for them buys standard errors of the effects at the knots."""
    model = AdditiveClassifier(8.0, bounds=(-1, 1), knots=2, loss="logistic", inference_share=0.3).fit(X, Y)
    assert (model.conf_int()[:, 0] < model.conf_int()[:, 1]).all()


def test_a_private_search_may_choose_the_knots():
    """Each candidate has columns of its own."""
    search = confide.PrivateSearchCV(AdditiveClassifier(bounds=(-1, 1)), {"knots": [0, 3]}, budget=4.0)
    search.fit(X, Y)
    assert search.best_params_ == {"knots": 3}
    assert search.plan(20_000, 3).plans[1].problem.n_features == search.best_estimator_.coef_.shape[1] == 15


def test_edges_of_bins_are_where_the_probability_is():
    """`evaluate` sorts rows into bins of probability by their scores: the scores of a probability give it back."""
    model = AdditiveClassifier(math.inf, bounds=(-1, 1), interactions=()).fit(X, Y)
    wanted = np.array([1e-9, 0.001, 0.1, 0.4, 0.5, 0.75, 0.99, 1 - 1e-9])
    for loss in ("auto", "logistic"):
        model.loss = loss
        scores = model._scores_at(wanted)
        model.decision_function = lambda _, scores=scores: scores
        assert model.predict_proba(None)[:, 1] == pytest.approx(wanted, rel=1e-6)
        assert scores[4] == pytest.approx(0.0, abs=1e-12)


def test_calibration_of_an_additive_model_is_that_of_its_probabilities():
    """Rates by bin of rows evaluated privately agree with the probabilities of the bins, also for the hinge."""
    model = AdditiveClassifier(8.0, bounds=(-1, 1)).fit(X, Y)
    evaluation = confide.evaluate(model, X, Y, budget=50.0, n_bins=10)
    for position, rate in enumerate(evaluation.calibration):
        assert rate.value == pytest.approx((position + 0.5) / 10, abs=0.12)


def test_effects_and_contrasts_of_an_additive_model():
    """The curve of the first column is large at both ends; without intervals a contrast is an estimate alone."""
    effects = AdditiveClassifier(8.0, bounds=(-1, 1)).fit(X, Y).effects_
    curve = effects[effects["column"] == "x0"].set_index("value")["effect"]
    assert min(curve.iloc[0], curve.iloc[-1]) > 1.0 > curve.iloc[len(curve) // 2]


def test_monotone_effects_rise_and_are_said_to(tmp_path):
    """The released curve is projected, scores and files show the projected one, and the statement says so."""
    y = (X[:, 0] + 0.3 * np.sin(9 * X[:, 0]) > 0).astype(int)
    parameters = {"bounds": (-1, 1), "random_state": 1, "knots": 12}
    free = AdditiveClassifier(0.2, **parameters).fit(X, y)
    model = AdditiveClassifier(0.2, monotone={"x0": "up"}, **parameters).fit(X, y)
    assert (np.diff(free.coef_[0, :14]) < 0).any()
    assert (np.diff(model.coef_[0, :14]) >= 0).all()
    assert np.array_equal(free.coef_[0, 14:], model.coef_[0, 14:])
    assert "monotone" in model.guarantee_.statement()
    model.save(tmp_path / "model.json")
    loaded = confide.load(tmp_path / "model.json")
    assert loaded.monotone == {"x0": "up"}
    assert np.array_equal(loaded.coef_, model.coef_)


def test_a_monotone_model_with_intervals_is_saved(tmp_path):
    """The file keeps the released weights for the intervals, and the projected ones for predictions."""
    model = AdditiveClassifier(8.0, bounds=(-1, 1), knots=3, monotone={"x1": "down"}, inference_share=0.3).fit(X, Y)
    model.save(tmp_path / "model.json")
    loaded = confide.load(tmp_path / "model.json")
    assert np.array_equal(loaded.predict_proba(X), model.predict_proba(X))
    assert loaded.effects_.equals(model.effects_)


def test_moments_that_are_noise_alone_do_not_lose_a_monotone_model():
    """They give no covariance, so the curve is projected by least squares, without a warning or a number that is none."""
    rng = np.random.default_rng(1)
    few = rng.uniform(-1, 1, (5000, 2))
    for seed in range(6):
        model = AdditiveClassifier(
            1.0, bounds=(-1, 1), monotone={"x0": "up"}, inference_share=0.2, classes=[0, 1], random_state=seed
        ).fit(few, (few[:, 0] > 0).astype(int))
        assert np.isfinite(model.coef_).all()
        assert (np.diff(model.coef_[0, : model._encoder.groups[0].size]) >= 0).all()


@pytest.mark.parametrize(
    ("monotone", "message"),
    [({"x9": "up"}, "x9|columns"), ({"x0": "rising"}, '"up" or "down"'), ("x0", "must map names")],
)
def test_bad_directions_are_refused(monotone, message):
    """Before anything is charged, by a fit and by a plan."""
    model = AdditiveClassifier(1.0, bounds=(-1, 1), monotone=monotone)
    with pytest.raises(ParameterError, match=message):
        model.fit(X, Y)
    with pytest.raises(ParameterError, match=message):
        model.plan(20_000, 3)


def test_monotone_effects_are_for_two_classes():
    """Three classes have a score each, and are refused by their number."""
    with pytest.raises(ParameterError, match="Only binary classification is supported with monotone"):
        AdditiveClassifier(1.0, bounds=(-1, 1), monotone={"x0": "up"}).fit(X, np.digitize(X[:, 0], [-0.3, 0.3]))


def test_knots_beyond_what_a_fit_can_take_are_refused():
    """A thousand in each of six columns are more weights than all curves may have."""
    with pytest.raises(ParameterError, match="at most 5,000"):
        AdditiveClassifier(1.0, bounds=(-1, 1), knots=1000).plan(20_000, 6)


def delays(n=14_000):
    """Arrivals are as late as departures; late ones are rare, and other columns tell nothing."""
    rng = np.random.default_rng(4)
    late = np.where(rng.uniform(size=n) < 0.75, rng.normal(-3.0, 5.0, n), rng.exponential(60.0, n))
    others = {name: rng.uniform(0.0, 100.0, n) for name in ("month", "hour", "distance")}
    frame = pd.DataFrame({"late": np.clip(late, -30.0, 300.0), **others, "carrier": rng.choice(list("abcdefghijklmnop"), n)})
    columns = {name: {"low": 0, "high": 100} for name in others} | {"late": {"low": -30, "high": 300}}
    columns |= {"carrier": {"categories": list("abcdefghijklmnop")}}
    arrival = np.clip(frame["late"] - 4.0 + rng.normal(0.0, 18.0, n), -60.0, 300.0).to_numpy()
    return Schema(columns, target={"column": "arrival", "low": -60, "high": 300}), frame, arrival


def test_a_regression_is_nearly_as_good_as_straight_lines_where_lines_are_right():
    """Curves alone are drawn to 0 where few rows lie. A curve beside a line is drawn to the line."""
    schema, frame, arrival = delays()
    scores = {}
    for knots in (0, 3, 6, "auto"):
        fits = [
            AdditiveRegressor(0.4, schema=schema, knots=knots, random_state=seed).fit(frame, arrival) for seed in range(3)
        ]
        scores[knots] = np.median([fit.score(frame, arrival) for fit in fits])
    assert [each.knots for each in fits[0].schema_.interact] == [3] * 4
    assert scores["auto"] > scores[0] - 0.03
    assert scores["auto"] > max(scores[3], scores[6]) + 0.01


def test_a_regression_follows_bends_where_the_noise_is_too_large_for_curves_of_full_scale():
    """Six thousand rows at a pure epsilon of .3: curves of a small scale find most of what three knots alone find."""
    rng = np.random.default_rng(0)
    rows = rng.uniform(-1.0, 1.0, (8_000, 6))
    targets = np.sin(3.0 * rows[:, 0]) + 2.0 * np.abs(rows[:, 1]) + rows[:, 2] ** 2 + 0.5 * rows[:, 3] - 1.3
    scores = {}
    for knots in (0, 3, "auto"):
        model = AdditiveRegressor(0.3, bounds=(-1, 1), target_bound=4.0, knots=knots)
        fits = [model.set_params(random_state=seed).fit(rows[:6_000], targets[:6_000]) for seed in range(3)]
        scores[knots] = np.median([fit.score(rows[6_000:], targets[6_000:]) for fit in fits])
    assert {each.scale for each in fits[0].schema_.interact} == {0.35}
    assert scores["auto"] > scores[0] + 0.2
    assert scores["auto"] > scores[3] - 0.25


@pytest.mark.parametrize(("budget", "scale"), [(4.0, 1.0), (0.65, 0.35)])
def test_curves_beside_lines_are_one_effect_everywhere(budget, scale, tmp_path):
    """Effects have the points of the curve; refits, files and contrasts keep it; no coefficient is of an interaction."""
    schema, frame, arrival = delays(4_000)
    model = AdditiveRegressor(budget, schema=schema, random_state=0).fit(frame, arrival)
    assert [each.scale for each in model.schema_.interact if each.is_curve] == [scale] * 4
    effects = model.effects_
    assert set(effects["column"]) == {"late", "month", "hour", "distance", "carrier"}
    late = effects[effects["column"] == "late"]
    assert len(late) == model.schema_.interact[0].knots + 2
    assert late["value"].iloc[[0, -1]].tolist() == [-30, 300]
    at = frame.iloc[:2].assign(late=[0.0, 100.0])
    at.iloc[1, 1:] = at.iloc[0, 1:]
    assert model.contrast("late", 0, 100).estimate == pytest.approx(np.diff(model.predict(at))[0])
    model.save(tmp_path / "model.json")
    loaded = load(tmp_path / "model.json")
    np.testing.assert_array_equal(loaded.predict(frame), model.predict(frame))
    assert model.refit(frame, arrival, budget=0.1).schema_ == model.schema_
    named = [line.name for line in ReleasedCoefficients.of(model).coefficients]
    assert named == list(dict.fromkeys(named))
    assert not any(" x " in name for name in named)
