"""Ridge as a user meets it."""

from __future__ import annotations

import dataclasses
import math
from functools import partial

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.linear_model import LinearRegression
from sklearn.linear_model import Ridge as Reference
from sklearn.pipeline import make_pipeline

import confide
from confide import (
    ZCDP,
    ApproxDP,
    BallBound,
    BudgetExceeded,
    GroupBound,
    InputError,
    Ledger,
    ParameterError,
    PureDP,
    Ridge,
    Schema,
    SchemaEncoder,
)
from confide.features.table import RowsPerPerson
from confide.privacy.noise import Entropy
from tests.estimators.conventions import failed_checks

INF = float("inf")
SumsRidge = partial(Ridge, mechanism="sufficient-statistics")
BUDGETS = [PureDP(2.0), ApproxDP(2.0, 1e-6), ZCDP(0.5)]


def made_up(n=2000, d=5, seed=0, noise=0.1):
    """Rows of norm about 1, some longer, and targets mostly within 1."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) / np.sqrt(d)
    return X, np.clip(X, -1, 1) @ np.linspace(1.0, -0.5, d) * 0.5 + 0.2 + noise * rng.normal(size=n)


def clipped(X, norm):
    """Rows scaled down to this norm."""
    return X * np.minimum(1.0, norm / np.linalg.norm(X, axis=1))[:, None]


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize(
    ("alpha", "row_norm", "target_bound"), [("auto", 1.0, 1.0), (1e-3, 2.0, 0.3), ("auto", INF, INF), (0.3, 0.7, 5.0)]
)
def test_an_infinite_budget_equals_scikit_learn_on_clipped_rows_and_targets(fit_intercept, alpha, row_norm, target_bound):
    """To 1e-9, the intercept being a penalised column of 2s; a tiny ridge gives least squares. The guarantee is void."""
    X, y = made_up()
    model = Ridge(
        INF, alpha=alpha, row_norm=row_norm, target_bound=target_bound, fit_intercept=fit_intercept, intercept_scaling=2.0
    ).fit(X, y)
    Z = clipped(X, row_norm)
    if fit_intercept:
        Z = np.hstack([Z, np.full((len(Z), 1), 2.0)])
    total = 1.0 if alpha == "auto" else alpha * len(X)
    expected = Reference(alpha=total, fit_intercept=False, tol=1e-14).fit(Z, np.clip(y, -target_bound, target_bound)).coef_
    np.testing.assert_allclose(model.coef_, expected[:5], atol=1e-9)
    assert model.intercept_ == pytest.approx(2.0 * expected[5] if fit_intercept else 0.0, abs=1e-9)
    np.testing.assert_allclose(model.predict(X), clipped(X, row_norm) @ model.coef_ + model.intercept_, atol=1e-11)
    assert "NOT PRIVATE" in model.guarantee_.statement()
    tiny = Ridge(INF, alpha=1e-12, row_norm=INF, target_bound=INF).fit(X, y)
    np.testing.assert_allclose(tiny.coef_, LinearRegression().fit(X, y).coef_, atol=1e-8)


def test_attributes_follow_scikit_learn():
    """Shapes, names and nothing fitted beyond the documented."""
    X, y = made_up()
    frame = pd.DataFrame(X, columns=list("abcde"))
    model = Ridge(target_bound=1.0).fit(frame, y)
    assert model.coef_.shape == (5,)
    assert type(model.intercept_) is float
    assert model.coefficient_names_.tolist() == list("abcde") == model.feature_names_in_.tolist()
    public = {
        "alpha_", "coef_", "coefficient_names_", "feature_names_in_", "guarantee_", "intercept_", "n_features_in_",
    }  # fmt: skip
    assert {name for name in vars(model) if name.endswith("_")} == public
    with pytest.raises(InputError, match="feature names"):
        model.predict(frame.rename(columns={"a": "z"}))
    assert Ridge(fit_intercept=False, target_bound=1.0).fit(X, y).intercept_ == 0.0
    assert clone(Ridge(ZCDP(1.0), target_bound=2.0)).get_params()["target_bound"] == 2.0


def test_noise_is_fresh_unless_seeded():
    """Two fits differ; a seed repeats the fit and voids the guarantee."""
    X, y = made_up()
    first, second = (Ridge(1.0, target_bound=1.0).fit(X, y) for _ in range(2))
    assert not np.array_equal(first.coef_, second.coef_)
    assert first.guarantee_.void is None
    seeded = [Ridge(1.0, random_state=3, target_bound=1.0).fit(X, y) for _ in range(2)]
    assert np.array_equal(seeded[0].coef_, seeded[1].coef_)
    assert "seed" in seeded[0].guarantee_.void


@pytest.mark.parametrize("neighbours", ["replace-one", "add-or-remove-one"])
@pytest.mark.parametrize("budget", BUDGETS, ids=lambda budget: budget.kind)
def test_every_currency_fits_states_itself_and_is_charged(budget, neighbours):
    """The ledger of its currency is full after one fit; over the limit nothing happens. The plan says the same."""
    X, y = made_up()
    bounds = (1500, 2500) if neighbours == "add-or-remove-one" else None
    ledger = Ledger(limit=budget, neighbours=neighbours)
    model = Ridge(budget, neighbours=neighbours, n_rows_bounds=bounds, ledger=ledger, target_bound=1.0).fit(X, y)
    assert model.guarantee_.budget == budget
    assert str(budget) in model.guarantee_.statement()
    plan = model.plan(*X.shape)
    assert plan.to_dict()["budget"] == budget.to_dict()
    assert plan.alpha == model.alpha_ > 0.0
    assert ledger.entries()["purpose"].tolist() == ["Ridge.fit"]
    before = model.coef_
    with pytest.raises(BudgetExceeded):
        model.fit(X, y)
    assert model.coef_ is before
    if bounds is not None:
        assert "2,000" not in model.guarantee_.statement()


def test_an_intercept_costs_no_budget_of_its_own():
    """diffprivlib LinearRegression: epsilon (1 + 1 / (d + 1)) with an intercept. Ten fits of 0.1 fill a ledger of 1."""
    X, y = made_up(n=200)
    for fit_intercept in (True, False):
        ledger = Ledger(limit=1.0)
        for _ in range(10):
            Ridge(0.1, fit_intercept=fit_intercept, ledger=ledger, target_bound=1.0).fit(X, y)
        assert ledger.spent().epsilon == 1.0


def test_bounds_that_begin_at_zero_have_a_width():
    """diffprivlib: bounds (0, 100) gave a sensitivity of 0. A column, and targets, that are never negative get noise."""
    schema = Schema(columns={"age": {"low": 0, "high": 100}})
    model = SumsRidge(1.0, schema=schema, target_bound=100.0)
    plan = model.plan(1000)
    assert min(plan.diagonal_deviation, plan.product_deviation) > 1.0
    assert plan.target_deviation > 100.0
    frame, y = pd.DataFrame({"age": np.linspace(0, 100, 1000)}), np.linspace(0, 100, 1000)
    coefficients = {float(model.fit(frame, y).coef_[0]) for _ in range(3)}
    assert len(coefficients) == 3


def test_rows_and_targets_are_clipped_as_the_sensitivity_assumes():
    """DPpack: the clipping that the proof assumes is not done. One huge row and one huge target change little."""
    X, y = made_up(n=3000)
    plain = Ridge(INF, target_bound=1.0).fit(X, y)
    X[0], y[0] = 1e12, 1e12
    wild = Ridge(INF, target_bound=1.0).fit(X, y)
    assert np.abs(wild.coef_ - plain.coef_).max() < 0.05
    sentences = " ".join(wild.guarantee_.assumptions)
    assert "Every target is clipped to its declared bound, 1 in absolute value." in sentences
    assert "Every row is clipped" in sentences


MEASURED = [(ApproxDP(1.0, 1e-6), 1.01), (ApproxDP(0.1, 1e-6), 1.15), (PureDP(1.0), 1.1)]


@pytest.mark.parametrize("neighbours", ["replace-one", "add-or-remove-one"])
@pytest.mark.parametrize(("budget", "limit"), MEASURED, ids=["1, 1e-6", "0.1, 1e-6", "pure 1"])
def test_many_rows_lose_little_to_noise(budget, limit, neighbours):
    """100,000 rows, 20 columns: mean squared error over the non-private one. Measured: 1.001, 1.04, 1.013 and less."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(100_000, 20)) / np.sqrt(20)
    signal = X @ rng.normal(size=20)
    y = (signal / signal.std() * np.sqrt(2 / 3) + rng.normal(size=100_000) * np.sqrt(1 / 3)) / 3

    def error(model):
        return np.mean((model.fit(X, y).predict(X) - y) ** 2)

    bounds = (50_000, 200_000) if neighbours == "add-or-remove-one" else None
    assert error(Ridge(budget, neighbours=neighbours, n_rows_bounds=bounds, target_bound=1.0)) < limit * error(
        Ridge(INF, target_bound=1.0)
    )


def test_intervals_are_refused_where_nobody_knows_how_many_rows_count():
    """Rows beyond a person's cap are dropped, and under replace-one no number of rows is released."""
    schema = Schema(columns={"x": {"low": -1, "high": 1}}, person="who")
    given = {"schema": schema, "target_bound": 1.0, "intervals": True}
    with pytest.raises(ParameterError, match="only some of the rows count"):
        Ridge(ZCDP(1.0), **given).plan(1000)
    Ridge(ZCDP(1.0), **given, neighbours="add-or-remove-one", n_rows_bounds=(500, 2000)).plan()
    Ridge(ZCDP(1.0), **(given | {"intervals": False})).plan(1000)
    Ridge(ZCDP(1.0), **(given | {"schema": dataclasses.replace(schema, person=None)})).plan(1000)


def test_persons_with_several_rows():
    """A cap of 3 costs at least as much noise as a third of epsilon; with a column of persons rows beyond it are dropped."""
    one, three = (SumsRidge(1.0, max_rows_per_person=k, target_bound=1.0).plan(1000, 5) for k in (1, 3))
    assert three.product_deviation == pytest.approx(3.0 * one.product_deviation, rel=1e-6)
    schema = Schema(columns={"x": {"low": -1, "high": 1}}, person="who")
    frame = pd.DataFrame({"x": np.ones(900), "who": np.repeat(np.arange(300), 3)})
    drawn = RowsPerPerson(1, Entropy.seeded(0).permutation).drawn(frame["who"].to_numpy())
    y = np.where(np.isin(np.arange(900), drawn), 0.5, -0.5)  # the row that is drawn of each person says 1/2, the others -1/2
    model = Ridge(INF, schema=schema, target_bound=1.0, random_state=0).fit(frame, y)
    assert model.predict(frame)[0] == pytest.approx(0.5, abs=0.01)


@pytest.mark.parametrize("library", [pd, pl])
def test_a_schema_encodes_and_shapes_the_bound(library):
    """Frames of raw columns; the same as encoding first; a row bound in groups needs less pure noise than a ball."""
    schema = Schema(columns={"x": {"low": 0, "high": 10}, "kind": {"categories": ["a", "b", "c"]}})
    rng = np.random.default_rng(0)
    columns = {"x": rng.uniform(0, 10, 500), "kind": rng.choice(["a", "b", "c"], 500)}
    frame, y = library.DataFrame(columns), columns["x"] / 10 - (columns["kind"] == "a") * 0.5
    model = Ridge(INF, schema=schema, target_bound=1.0).fit(frame, y)
    encoder = SchemaEncoder(schema)
    pipeline = make_pipeline(encoder, Ridge(INF, row_norm=encoder.row_bound, target_bound=1.0)).fit(frame, y)
    np.testing.assert_allclose(model.predict(frame), pipeline.predict(frame), rtol=1e-9)
    assert model.score(frame, y) > 0.9
    assert len(model.coefficient_names_) == len(model.coef_) == encoder.row_bound.n_features
    ball = BallBound(encoder.row_bound.l2_norm)
    width = encoder.row_bound.n_features
    assert (
        SumsRidge(1.0, schema=schema, target_bound=1.0).plan(500).product_deviation
        <= SumsRidge(1.0, row_norm=ball, target_bound=1.0).plan(500, width).product_deviation
    )


def test_the_targets_of_a_frame_to_score_are_the_schemas():
    """As in a fit."""
    x = np.random.default_rng(0).uniform(0, 10, 300)
    frame = pd.DataFrame({"x": x, "y": 2.0 * x})
    schema = Schema({"x": {"low": 0, "high": 10}}, {"column": "y", "low": 0, "high": 20})
    model = Ridge(INF, schema=schema).fit(frame)
    assert model.score(frame) == model.score(frame[["x"]], frame["y"]) > 0.9


BAD_PARAMETERS = [
    {"target_bound": 0.0}, {"target_bound": -1.0}, {"target_bound": float("nan")}, {"target_bound": "1"},
    {"target_bound": True}, {"target_bound": INF}, {"row_norm": INF}, {"row_norm": 0.0}, {"alpha": 0.0}, {"alpha": "best"},
    {"mechanism": "output"}, {"neighbours": "both"}, {"mechanism": "objective", "intervals": True},
    {"intervals": 1}, {"neighbours": "add-or-remove-one"}, {"n_rows_bounds": (1, 9)},
    {"budget": -1.0}, {"fit_intercept": 2}, {"intercept_scaling": 0.0}, {"max_rows_per_person": 0}, {"random_state": 1.5},
    {"row_norm": GroupBound((2,), (1.0,))},
]  # fmt: skip


@pytest.mark.parametrize("wrong", BAD_PARAMETERS, ids=str)
def test_wrong_parameters_are_refused_before_any_charge(wrong):
    """ParameterError in one line; nothing is charged and nothing is fitted."""
    ledger = Ledger(limit=10.0)
    model = Ridge(ledger=ledger, target_bound=1.0).set_params(**wrong)
    with pytest.raises(ParameterError) as failure:
        model.fit(*made_up(n=50))
    assert len(str(failure.value).splitlines()) == 1
    assert ledger.spent().epsilon == 0.0
    assert not hasattr(model, "coef_")


def test_a_plan_says_where_a_poor_fit_is_to_be_expected():
    """Where the largest eigenvalue of the noise, 2 t sqrt(D), is more than half of n |x|^2 / d; and what to do instead."""
    for n_rows, n_features, budget in (
        (20_000, 5, 1.0), (20_000, 20, 1.0), (20_000, 40, 1.0), (20_000, 40, ApproxDP(1.0, 1e-6)), (2_000, 10, 4.0),
    ):  # fmt: skip
        plan = SumsRidge(budget, target_bound=1.0).plan(n_rows, n_features)
        noise, usual = 2.0 * math.sqrt(n_features + 1) * plan.product_deviation, n_rows / 3.0 / n_features
        assert plan.forecast.ratio == pytest.approx(noise / usual)
        assert plan.forecast.is_poor == (noise / usual > 0.5) == plan.to_dict()["forecast"]["is_poor"]
        text = str(plan)
        assert ("poor fit" in text) == plan.forecast.is_poor
        assert f"a ratio of {noise / usual:.2g}" in text
        if plan.forecast.is_poor:
            assert "HuberRegressor" in text
            assert ("ApproxDP or ZCDP in place of PureDP" in text) == (budget == 1.0 or budget == 4.0)
    assert "poor fit" in str(SumsRidge(1.0, target_bound=1.0).plan(20_000, 20))
    assert "poor fit" not in str(SumsRidge(ApproxDP(1.0, 1e-6), target_bound=1.0).plan(20_000, 20))
    assert "poor fit" not in str(SumsRidge(INF, target_bound=1.0).plan(20, 20))
    # The sentence grows with the ratio, and the ratio falls with the number of rows alone.
    sizes = [str(SumsRidge(1.0, target_bound=1.0).plan(n_rows, 20)) for n_rows in (10**6, 50_000, 5_000)]
    assert ["lost 0.03 of R^2" in text for text in sizes] == [False, True, False]
    assert ["lost 0.05 of R^2" in text for text in sizes] == [False, False, True]


def test_fits_that_a_plan_warns_of_are_far_worse_and_others_are_not():
    """Independent columns, as much signal as noise: R^2 without privacy is about a half."""

    def lost(n_rows, n_features):
        rng = np.random.default_rng(n_features)
        X = rng.normal(size=(n_rows + 4000, n_features))
        X /= np.maximum(np.quantile(np.linalg.norm(X, axis=1), 0.9), np.linalg.norm(X, axis=1))[:, None]
        scores = X @ rng.normal(size=n_features)
        y = np.clip(0.3 * scores / scores.std() + 0.3 * rng.normal(size=len(X)), -1.0, 1.0)
        train, test = slice(n_rows), slice(n_rows, None)
        found = [
            SumsRidge(1.0, random_state=seed, target_bound=1.0).fit(X[train], y[train]).score(X[test], y[test])
            for seed in range(5)
        ]
        plain = Ridge(INF, alpha=1e-6, target_bound=1.0).fit(X[train], y[train]).score(X[test], y[test])
        return SumsRidge(1.0, target_bound=1.0).plan(n_rows, n_features).forecast, plain - np.mean(found)

    for n_rows, n_features, is_poor in ((50_000, 10, False), (60_000, 15, False), (5_000, 15, True), (20_000, 40, True)):
        forecast, difference = lost(n_rows, n_features)
        assert forecast.is_poor == is_poor
        assert (difference > 0.1) if is_poor else (difference < 0.03)


def test_a_plan_needs_no_data():
    """It prints; wrong arguments are refused."""
    text = str(SumsRidge(ApproxDP(1.0, 1e-6), target_bound=2.0).plan(10_000, 4))
    assert "target bound" in text
    assert "sufficient statistics" in text
    for arguments in ((), (0, 3), (10, 0), (10, True), (1.5, 3)):
        with pytest.raises(ParameterError):
            Ridge(target_bound=1.0).plan(*arguments)
    bounds = {"neighbours": "add-or-remove-one", "n_rows_bounds": (100, 200)}
    assert Ridge(target_bound=1.0, **bounds).plan(n_features=3).problem.n_rows_high == 200


def test_rows_beyond_double_range_need_a_bound():
    """Without privacy and without a row norm sums may overflow; said in one line, without a warning."""
    with pytest.raises(confide.ParameterError, match="overflow"):
        Ridge(INF, row_norm=INF, target_bound=1.0).fit(np.full((5, 2), 1e200), np.ones(5))


@pytest.mark.parametrize(("kind", "bound"), [(Ridge, 1e2), (Ridge, 1e3), (confide.HuberRegressor, 1e3)])
def test_scikit_learns_checks_pass(kind, bound):
    """check_estimator at a large budget. Its targets of size 1 drown at bounds of 1e3 and 1e4, as a tag says."""
    model = kind(1e6, row_norm=bound, target_bound=10.0 * bound)
    assert failed_checks(model) == ""
    assert model.__sklearn_tags__().regressor_tags.poor_score is (bound == 1e3)
    assert Ridge(1.0, target_bound=1.0).__sklearn_tags__().regressor_tags.poor_score
    assert not Ridge(INF, target_bound=1.0).__sklearn_tags__().regressor_tags.poor_score
