"""Counts with an exposure: rates as without privacy, whatever the unit, the place of the rows and the mechanism are."""

from __future__ import annotations

import math
import threading
from multiprocessing import Pipe

import numpy as np
import pandas as pd
import pytest

import confide
from confide import ApproxDP, InputError, Ledger, ParameterError, Schema, open_rows
from confide.data.federated import FederatedRows
from confide.estimators.parties import take_part

BUDGET = ApproxDP(2.0, 1e-6)
N = 6_000
_rng = np.random.default_rng(0)
FRAME = pd.DataFrame({"a": _rng.uniform(-0.5, 0.5, N), "c": _rng.choice(["u", "v"], N), "years": _rng.uniform(0.2, 4.8, N)})
MEANS = FRAME["years"] * np.exp(-0.5 + FRAME["a"] + 0.5 * (FRAME["c"] == "v"))
FRAME["visits"] = _rng.poisson(MEANS)
X = np.column_stack([FRAME["a"], FRAME["c"] == "v"]) / 2.0
VISITS, YEARS = FRAME["visits"].to_numpy(), FRAME["years"].to_numpy()
COLUMNS = {"a": {"low": -0.5, "high": 0.5}, "c": {"categories": ["u", "v"]}}
TARGET = {"column": "visits", "low": 0, "high": 20, "exposure": {"column": "years", "low": 0.2, "high": 4.8}}
SCHEMA = Schema(COLUMNS, TARGET)
RANGE = {"target_bound": 20.0, "exposure_range": (0.2, 4.8)}
EXACT = {"threshold": 1e6, "alpha": 1e-12, "row_norm": 2.0}


def in_table(**parameters):
    """A model of counts with the schema, its noise from a seed."""
    return confide.PoissonRegressor(parameters.pop("budget", BUDGET), schema=SCHEMA, random_state=0, **parameters)


def test_without_privacy_coefficients_are_those_of_statsmodels():
    """Within 1e-9, and far from those without an exposure."""
    api = pytest.importorskip("statsmodels.api")
    exact = api.GLM(VISITS, api.add_constant(X), family=api.families.Poisson(), exposure=YEARS).fit(tol=1e-12)
    model = confide.PoissonRegressor(math.inf, **RANGE, **EXACT).fit(X, VISITS, exposure=YEARS)
    np.testing.assert_allclose([model.intercept_, *model.coef_], exact.params, atol=1e-9)
    np.testing.assert_allclose(model.predict(X, exposure=YEARS), exact.predict(), rtol=1e-8)
    np.testing.assert_allclose(model.predict(X) * 3.0, model.predict(X, exposure=3.0), rtol=1e-12)
    without = confide.PoissonRegressor(math.inf, target_bound=20.0, **EXACT).fit(X, VISITS)
    assert abs(without.intercept_ - exact.params[0]) > 0.5
    assert model.score(X, VISITS, exposure=YEARS) > without.score(X, VISITS) + 0.1


@pytest.mark.parametrize("mechanism", ["objective", "output", "gradient"])
def test_the_unit_of_the_exposure_changes_nothing_but_the_intercept(mechanism):
    """Days in place of years: the same noise, the same coefficients, and rates a day."""
    years, days = (
        confide.PoissonRegressor(
            BUDGET, target_bound=20.0, exposure_range=(0.2 * unit, 4.8 * unit), mechanism=mechanism, random_state=0
        ).fit(X, VISITS, exposure=YEARS * unit)
        for unit in (1.0, 365.0)
    )
    np.testing.assert_allclose(years.coef_, days.coef_, atol=1e-6)
    assert years.intercept_ - math.log(365.0) == pytest.approx(days.intercept_, abs=1e-6)


def test_exposures_that_are_all_the_middle_of_their_bounds_are_none():
    """Then a count has the loss that it has without one, and the model is the same but for the unit."""
    plain = confide.PoissonRegressor(math.inf, target_bound=20.0, alpha=0.01).fit(X, VISITS)
    model = confide.PoissonRegressor(math.inf, **RANGE, alpha=0.01).fit(X, VISITS, exposure=np.full(N, 2.5))
    np.testing.assert_allclose(model.coef_, plain.coef_, atol=1e-9)
    assert model.intercept_ == pytest.approx(plain.intercept_ - math.log(2.5), abs=1e-9)
    assert "exposure" in model.guarantee_.statement()
    assert "exposure" not in plain.guarantee_.statement()


def test_exposures_outside_of_their_bounds_are_clipped_and_those_of_predictions_are_not():
    """In a fit like every column; a prediction is for the exposure that it is asked for."""
    model, clipped = in_table(), in_table()
    model.fit(FRAME.assign(years=np.where(FRAME["a"] > 0.3, 1e6, np.where(FRAME["a"] < -0.3, 1e-6, FRAME["years"]))))
    clipped.fit(FRAME.assign(years=np.where(FRAME["a"] > 0.3, 4.8, np.where(FRAME["a"] < -0.3, 0.2, FRAME["years"]))))
    assert model.coef_.tolist() == clipped.coef_.tolist()
    np.testing.assert_allclose(model.predict(FRAME, exposure=100.0), 100.0 * model.predict(FRAME), rtol=1e-12)
    assert "clipped to its declared range, 0.2 to 4.8" in model.guarantee_.statement()


@pytest.mark.parametrize(
    "make",
    [
        in_table,
        lambda **given: confide.AdditiveRegressor(BUDGET, schema=SCHEMA, loss="poisson", random_state=0, **given),
        lambda **given: confide.ERMRegressor(BUDGET, schema=SCHEMA, loss="poisson", random_state=0, **given),
    ],
    ids=["poisson", "additive", "erm"],
)
def test_rows_in_memory_and_in_files_give_the_same_model(make, tmp_path):
    """A frame, CSV, Parquet and a cache: predictions differ by the rounding of sums alone."""
    FRAME.to_csv(tmp_path / "rows.csv", index=False)
    FRAME.to_parquet(tmp_path / "rows.parquet")
    rates = make().fit(FRAME).predict(FRAME)
    assert np.corrcoef(rates, MEANS / YEARS)[0, 1] > 0.9
    for name, cache in (("rows.csv", False), ("rows.parquet", False), ("rows.parquet", True)):
        opened = make().fit(open_rows(tmp_path / name, SCHEMA, cache=cache))
        np.testing.assert_allclose(opened.predict(FRAME), rates, rtol=1e-5)


def test_rows_on_a_cluster_and_at_other_parties_give_the_same_model():
    """Workers and parties read the exposure beside the count."""
    dask = pytest.importorskip("dask.dataframe")
    model = in_table().fit(FRAME)
    on_cluster = in_table().fit(open_rows(dask.from_pandas(FRAME, npartitions=3), SCHEMA))
    np.testing.assert_allclose(on_cluster.coef_, model.coef_, atol=1e-5)
    ours, theirs = Pipe()
    thread = threading.Thread(target=take_part, args=(theirs, in_table(), FRAME))
    thread.start()
    at_parties = in_table().fit(FederatedRows(SCHEMA, [ours]))
    thread.join(60)
    np.testing.assert_allclose(at_parties.coef_, model.coef_, atol=1e-5)


def test_weights_of_rows_and_persons_go_with_exposures():
    """A row of weight 0 plays no part; of a person with two rows, one is drawn."""
    weighted = Schema(COLUMNS, TARGET, weight={"column": "w", "high": 1})
    wrong = FRAME.assign(w=(FRAME["a"] < 0.3).astype(float), years=np.where(FRAME["a"] < 0.3, FRAME["years"], 4.8))
    fits = [
        confide.PoissonRegressor(math.inf, schema=schema, **EXACT | {"row_norm": None}).fit(rows)
        for schema, rows in ((weighted, wrong), (SCHEMA, FRAME[FRAME["a"] < 0.3]))
    ]
    np.testing.assert_allclose(fits[0].coef_, fits[1].coef_, atol=1e-6)
    persons = Schema(COLUMNS, TARGET, person="p")
    model = confide.PoissonRegressor(math.inf, schema=persons).fit(FRAME.assign(p=np.arange(N) // 2))
    assert np.corrcoef(model.predict(FRAME), MEANS / YEARS)[0, 1] > 0.95


def test_a_saved_model_and_an_evaluation_know_of_the_exposure(tmp_path):
    """Errors are those of expected counts; R^2 is that of `score`, and rates for counts would be far off."""
    model = in_table(budget=math.inf).fit(FRAME)
    model.save(tmp_path / "model.json")
    again = confide.load(tmp_path / "model.json")
    assert again.schema == SCHEMA
    assert again.predict(FRAME, exposure=YEARS).tolist() == model.predict(FRAME, exposure=YEARS).tolist()
    found = confide.evaluate(again, FRAME, budget=50.0)
    assert found.r2.estimate == pytest.approx(model.score(FRAME, VISITS), abs=0.02)
    assert found.target == "visits"
    given = confide.PoissonRegressor(BUDGET, **RANGE).fit(X, VISITS, exposure=YEARS)
    given.save(tmp_path / "given.json")
    again = confide.load(tmp_path / "given.json")
    assert again.score(X, VISITS, exposure=YEARS) == given.score(X, VISITS, exposure=YEARS)
    for wrong in (confide.evaluate, lambda *rows, budget: again.score(*rows)):
        with pytest.raises(InputError, match="the exposure of each row is needed"):
            wrong(again, X, VISITS, budget=1.0) if wrong is confide.evaluate else wrong(X, VISITS, budget=1.0)


@pytest.mark.parametrize(
    ("exposure", "message"),
    [
        (None, "the exposure of each row is needed"),
        (np.append(YEARS[1:], 0.0), "each must be a finite number above 0"),
        (np.append(YEARS[1:], -1.0), "each must be a finite number above 0"),
        (np.append(YEARS[1:], np.nan), "each must be a finite number above 0"),
        (np.append(YEARS[1:], np.inf), "each must be a finite number above 0"),
        (YEARS[1:], "one number for each row"),
        (["years"] * N, "cells that are not numbers"),
    ],
)
def test_exposures_that_cannot_be_used_are_refused_before_the_charge(exposure, message):
    """No value of an exposure is shown, and nothing is charged."""
    ledger = Ledger(limit=ApproxDP(9.0, 1e-5))
    model = confide.PoissonRegressor(BUDGET, ledger=ledger, **RANGE)
    with pytest.raises(InputError, match=message):
        model.fit(X, VISITS, exposure=exposure)
    assert len(ledger.entries()) == 0


def test_an_exposure_in_a_table_that_cannot_be_used_is_refused_before_the_charge(tmp_path):
    """In a frame and in a file: a missing column, and an exposure of 0."""
    ledger = Ledger(limit=ApproxDP(9.0, 1e-5))
    for wrong in (FRAME.drop(columns="years"), FRAME.assign(years=FRAME["years"].where(FRAME["a"] > -0.4, 0.0))):
        wrong.to_parquet(tmp_path / "wrong.parquet")
        for rows in (wrong, tmp_path / "wrong.parquet"):
            with pytest.raises(InputError, match="years"):
                in_table(ledger=ledger).fit(rows if rows is wrong else open_rows(rows, SCHEMA))
    assert len(ledger.entries()) == 0


def test_a_private_search_compares_expected_counts():
    """A ridge that hides the rates is not chosen."""
    search = confide.PrivateSearchCV(confide.PoissonRegressor(schema=SCHEMA), {"alpha": [100.0, 1e-3]}, budget=BUDGET)
    assert search.fit(FRAME).best_params_ == {"alpha": 1e-3}
    assert search.predict(FRAME).mean() == pytest.approx(VISITS.sum() / YEARS.sum(), rel=0.2)


def test_evaluations_searches_and_fits_to_new_rows_take_an_array_of_exposures():
    """As `fit` does, where the bounds are a parameter; each refuses before its charge where it is missing or unknown."""
    ledger = Ledger(limit=ApproxDP(500.0, 1e-3))
    model = confide.PoissonRegressor(BUDGET, **RANGE, ledger=ledger).fit(X, VISITS, exposure=YEARS)
    found = confide.evaluate(model, X, VISITS, exposure=YEARS, budget=50.0, ledger=ledger)
    assert found.r2.estimate == pytest.approx(model.score(X, VISITS, exposure=YEARS), abs=0.02)
    again = model.refit(X, VISITS, exposure=YEARS)
    assert again.score(X, VISITS, exposure=YEARS) > 0.3
    untrained = confide.PoissonRegressor(**RANGE)
    search = confide.PrivateSearchCV(untrained, {"alpha": [100.0, 1e-3]}, budget=BUDGET, ledger=ledger)
    assert search.fit(X, VISITS, exposure=YEARS).best_params_ == {"alpha": 1e-3}
    assert search.predict(X).mean() == pytest.approx(VISITS.sum() / YEARS.sum(), rel=0.2)
    spent = ledger.spent()
    of_classes = confide.PrivateSearchCV(confide.LogisticRegression(classes=[0, 1]), {"alpha": [1.0, 2.0]}, ledger=ledger)
    classifier = confide.LogisticRegression(BUDGET, classes=[0, 1]).fit(X, VISITS > 1)
    for refused in (
        lambda: confide.evaluate(model, X, VISITS, budget=1.0, ledger=ledger),
        lambda: confide.evaluate(classifier, X, VISITS > 1, exposure=YEARS, budget=1.0, ledger=ledger),
        lambda: model.refit(X, VISITS),
        lambda: search.fit(X, VISITS),
        lambda: search.fit(X, VISITS, exposure=np.zeros(N)),
        lambda: of_classes.fit(X, VISITS > 1, exposure=YEARS),
    ):
        with pytest.raises(InputError, match="exposure"):
            refused()
    assert ledger.spent() == spent


def test_models_that_know_no_exposure_refuse_it():
    """Other losses, other models, two declarations at once, and rows whose exposures would come from nowhere."""
    for model in (confide.HuberRegressor(BUDGET, schema=SCHEMA), confide.Ridge(BUDGET, schema=SCHEMA)):
        with pytest.raises(ParameterError, match="an exposure is for a model of counts"):
            model.fit(FRAME)
    with pytest.raises(ParameterError, match="declared once"):
        in_table(exposure_range=(0.2, 4.8)).fit(FRAME)
    with pytest.raises(ParameterError, match='the column "years" as the exposure'):
        in_table().fit(FRAME, exposure=YEARS)
    with pytest.raises(InputError, match="declares its bounds"):
        confide.PoissonRegressor(BUDGET, target_bound=20.0).fit(X, VISITS, exposure=YEARS)
    with pytest.raises(InputError, match="declares its bounds"):
        confide.PoissonRegressor(BUDGET, target_bound=20.0).fit(X, VISITS).predict(X, exposure=2.0)
    with pytest.raises(ParameterError, match="an exposure is for a model of counts"):
        confide.AdditiveRegressor(BUDGET, bounds=(-1, 1), **RANGE).plan(1000, 2)
    for ends in ((0.0, 1.0), (2.0, 1.0), (1.0,), 3.0, (1e-9, 2.0), ("low", "high"), (math.nan, 1.0), (1.0, math.inf)):
        with pytest.raises(ParameterError, match="two public numbers"):
            confide.PoissonRegressor(BUDGET, target_bound=20.0, exposure_range=ends).plan(1000, 2)
    model = in_table().fit(FRAME)
    for wrong in (0.0, -1.0, math.nan, [1.0, 2.0], "year"):
        with pytest.raises(InputError, match="one finite number above 0"):
            model.predict(FRAME, exposure=wrong)


def test_rows_that_bring_their_labels_need_the_column_of_exposures(tmp_path):
    """Files of numbers have no column of exposures, and opened rows take no array of them."""
    np.save(tmp_path / "X.npy", X)
    np.save(tmp_path / "y.npy", VISITS)
    FRAME.to_parquet(tmp_path / "rows.parquet")
    model = confide.PoissonRegressor(BUDGET, **RANGE)
    opened = open_rows(tmp_path / "X.npy", labels=tmp_path / "y.npy")
    with pytest.raises(InputError, match="the exposure of each row is needed"):
        model.fit(opened)
    assert len(model.fit(opened, exposure=YEARS).coef_) == 2
    with pytest.raises(InputError, match="the target of the schema"):
        confide.PoissonRegressor(
            BUDGET, exposure_range=(0.2, 4.8), schema=Schema(COLUMNS, {**TARGET, "exposure": None})
        ).fit(open_rows(tmp_path / "rows.parquet", Schema(COLUMNS, {**TARGET, "exposure": None})))
    with pytest.raises(InputError, match="as exposure is"):
        in_table().fit(open_rows(tmp_path / "rows.parquet", SCHEMA), exposure=YEARS)
