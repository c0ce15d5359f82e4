"""Costs and counts that vary more than Poisson's: as in statsmodels without privacy, right in the mean with it."""

from __future__ import annotations

import json
import math

import numpy as np
import pandas as pd
import pytest

import confide
from confide import AdditiveRegressor, ApproxDP, ERMRegressor, Ledger, ParameterError, PureDP, Schema, open_rows
from confide.compiled.gradient_sums import code_of
from confide.errors import InputError
from confide.privacy.matching import whole_slopes

N = 20_000
_rng = np.random.default_rng(0)
FRAME = pd.DataFrame({"a": _rng.uniform(-0.5, 0.5, N), "c": _rng.choice(["u", "v"], N), "years": _rng.uniform(0.2, 1.8, N)})
SCORES = (FRAME["a"] + 0.5 * (FRAME["c"] == "v")).to_numpy()
FRAME["price"] = 300.0 * np.exp(SCORES) * _rng.gamma(2.0, 0.5, N)
_events = _rng.poisson(FRAME["years"] * 2.0 * np.exp(0.5 * SCORES))
FRAME["cost"] = np.array([_rng.gamma(2.0, 25.0, count).sum() for count in _events]) * np.exp(0.5 * SCORES)
FRAME["visits"] = _rng.poisson(FRAME["years"] * 2.0 * np.exp(SCORES) * _rng.gamma(2.0, 0.5, N)).astype(float)
X = np.column_stack([FRAME["a"], FRAME["c"] == "v"]) / 2.0
YEARS = FRAME["years"].to_numpy()
EXACT = {"threshold": 1e6, "alpha": 1e-12, "row_norm": 2.0}
CASES = {
    "gamma": ("price", {"loss": "gamma", "target_low": 1.0, "target_high": 5_000.0}, None),
    "tweedie": ("cost", {"loss": "tweedie", "power": 1.4, "target_bound": 1_500.0}, (0.2, 1.8)),
    "negative binomial": ("visits", {"loss": "negative_binomial", "dispersion": 0.5, "target_bound": 40.0}, (0.2, 1.8)),
}
COLUMNS = {"a": {"low": -0.5, "high": 0.5}, "c": {"categories": ["u", "v"]}}


def given(exposures):
    """The exposures for `fit` and `predict`, where there are some."""
    return {} if exposures is None else {"exposure": YEARS}


def schema_of(name):
    """The schema of a case, with its exposures, and the parameters of the loss that it leaves."""
    column, facts, exposures = CASES[name]
    low, high = facts.get("target_low", 0.0), facts.get("target_high", facts.get("target_bound"))
    years = {} if exposures is None else {"exposure": {"column": "years", "low": exposures[0], "high": exposures[1]}}
    left = {key: value for key, value in facts.items() if not key.startswith("target")}
    return Schema(COLUMNS, {"column": column, "low": low, "high": high, **years}), left


def family_of(api, facts):
    """The distribution of statsmodels."""
    log = api.families.links.Log()
    return {
        "gamma": lambda: api.families.Gamma(log),
        "tweedie": lambda: api.families.Tweedie(log, var_power=facts["power"]),
        "negative_binomial": lambda: api.families.NegativeBinomial(log, alpha=facts["dispersion"]),
    }[facts["loss"]]()


@pytest.mark.parametrize("name", CASES)
def test_without_privacy_fits_are_those_of_statsmodels(name):
    """Coefficients within 1e-7, and with exposures the rates within 1e-5."""
    api = pytest.importorskip("statsmodels.api")
    column, facts, exposures = CASES[name]
    exact = api.GLM(FRAME[column], api.add_constant(X), family=family_of(api, facts)).fit(tol=1e-13)
    model = ERMRegressor(math.inf, **facts, **EXACT).fit(X, FRAME[column])
    np.testing.assert_allclose([model.intercept_, *model.coef_], exact.params, atol=1e-7)
    if exposures is not None:
        exact = api.GLM(FRAME[column], api.add_constant(X), family=family_of(api, facts), exposure=YEARS).fit(tol=1e-13)
        schema, left = schema_of(name)
        rates = ERMRegressor(math.inf, schema=schema, threshold=1e6, alpha=1e-12, **left).fit(FRAME).predict(FRAME)
        np.testing.assert_allclose(rates, exact.predict(exposure=np.ones(N)), rtol=1e-5)


def test_without_privacy_coefficients_are_those_of_scikit_learn():
    """Within 1e-5, for gamma and Tweedie."""
    linear = pytest.importorskip("sklearn.linear_model")
    for name in ("gamma", "tweedie"):
        column, facts, _ = CASES[name]
        power = 2.0 if name == "gamma" else facts["power"]
        exact = linear.TweedieRegressor(power=power, link="log", alpha=0.0, tol=1e-10, max_iter=10_000).fit(X, FRAME[column])
        model = ERMRegressor(math.inf, **facts, **EXACT).fit(X, FRAME[column])
        np.testing.assert_allclose([model.intercept_, *model.coef_], [exact.intercept_, *exact.coef_], atol=1e-4)


@pytest.mark.parametrize("budget", [PureDP(1.0), PureDP(4.0), ApproxDP(1.0, 1e-6), ApproxDP(4.0, 1e-6)], ids=str)
@pytest.mark.parametrize("name", CASES)
def test_private_predictions_are_right_in_the_mean(name, budget):
    """The sum of the predictions is within 5% of that of the targets in their range, and effects point the right way."""
    schema, left = schema_of(name)
    model = AdditiveRegressor(budget, schema=schema, random_state=0, **left).fit(FRAME)
    column, _, exposures = CASES[name]
    predicted = model.predict(FRAME, exposure=YEARS if exposures else None)
    assert predicted.sum() == pytest.approx(FRAME[column].clip(schema.target.low, schema.target.high).sum(), rel=0.05)
    assert np.corrcoef(model.predict(FRAME), np.exp(SCORES))[0, 1] > 0.95


def test_a_clipped_loss_alone_is_wrong_in_the_mean_and_the_sums_make_it_right():
    """With a small threshold predictions of the clipped loss are a fifth too small; two noisy sums bring the mean back."""
    schema, left = schema_of("gamma")
    facts = {"schema": schema, "threshold": 0.4, "random_state": 0, **left}
    without, matched = (AdditiveRegressor(ApproxDP(4.0, 1e-6), match_mean=match, **facts) for match in (False, "auto"))
    ratios = [model.fit(FRAME).predict(FRAME).mean() / FRAME["price"].mean() for model in (without, matched)]
    assert ratios[0] < 0.87
    assert ratios[1] == pytest.approx(1.0, abs=0.05)


@pytest.mark.parametrize("mechanism", ["objective", "output", "gradient"])
@pytest.mark.parametrize("unit", [2.0**-8, 2.0**12])
def test_the_unit_of_costs_changes_nothing_but_the_intercept(mechanism, unit):
    """Cents or thousands: the same noise, the same coefficients, and predictions in the unit."""
    fits = [
        ERMRegressor(
            ApproxDP(2.0, 1e-6), loss="tweedie", power=1.5, target_bound=1_500.0 * each, mechanism=mechanism, random_state=0
        ).fit(X, FRAME["cost"] * each)
        for each in (1.0, unit)
    ]
    np.testing.assert_allclose(fits[0].coef_, fits[1].coef_, atol=0.02)
    np.testing.assert_allclose(fits[0].predict(X) * unit, fits[1].predict(X), rtol=0.03)


@pytest.mark.parametrize("name", CASES)
def test_rows_in_files_and_a_saved_model_give_the_same_predictions(name, tmp_path):
    """Arrays, a file of rows, JSON and SQL: the released model is one, and an evaluation reads its unit."""
    schema, left = schema_of(name)
    FRAME.to_csv(tmp_path / "rows.csv", index=False)
    facts = {"schema": schema, "random_state": 0, **left}
    model = AdditiveRegressor(4.0, **facts).fit(FRAME)
    of_file = AdditiveRegressor(4.0, **facts).fit(open_rows(tmp_path / "rows.csv", schema=schema))
    np.testing.assert_allclose(model.predict(FRAME), of_file.predict(FRAME), rtol=1e-4)
    model.save(tmp_path / "model.json")
    loaded, few = confide.load(tmp_path / "model.json"), FRAME[:50]
    np.testing.assert_array_equal(loaded.predict(few), model.predict(few))
    assert loaded.get_params()["loss"] == left["loss"]
    rate = confide.evaluate(model, FRAME, budget=4.0, random_state=0)
    assert json.loads(json.dumps(rate.to_dict()))


def test_a_private_search_scores_predictions_in_the_unit_of_the_costs():
    """The released score is the error of the chosen model, with exposures and without."""
    for name in CASES:
        column, facts, exposures = CASES[name]
        base = AdditiveRegressor(bounds=(-0.5, 0.5), exposure_range=exposures, interactions=(), **facts)
        search = confide.PrivateSearchCV(base, {"alpha": [1e-3, 10.0]}, budget=40.0, score_share=0.5, random_state=0)
        search.fit(X, FRAME[column], **given(exposures))
        assert search.best_params_["alpha"] == 1e-3
        low, high = facts.get("target_low", 0.0), facts.get("target_high", facts.get("target_bound"))
        targets = FRAME[column].clip(low, high)
        predicted = search.best_estimator_.predict(X, exposure=YEARS if exposures else None)
        error = math.sqrt(np.mean(np.minimum(np.abs(predicted - targets), 0.25 * (high - low)) ** 2))
        assert abs(search.best_score_) == pytest.approx(error, rel=0.15) or abs(search.best_score_) == pytest.approx(
            error**2, rel=0.3
        )


def test_the_kernel_leaves_these_losses_to_numpy_and_sums_of_the_mean_are_those_of_counts():
    """The kernel knows Poisson's loss alone; the sums that match a mean are of mean less target, for every loss."""
    for _, facts, _ in CASES.values():
        loss = ERMRegressor(1.0, **facts).plan(N, 2).problem.loss
        assert code_of(loss) is None
        whole = whole_slopes(loss)
        assert whole.constants.name == "poisson"
        assert (whole.least, whole.threshold, whole.exposure) == (0.0, loss.target_bound, loss.exposure)


def test_the_plan_names_the_loss_and_its_public_parameters():
    """Name, power or dispersion, and the threshold."""
    for name, words in (("gamma", "gamma, slopes"), ("tweedie", "power 1.4"), ("negative binomial", "dispersion 0.5")):
        assert words in str(ERMRegressor(1.0, **CASES[name][1]).plan(N, 2))


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"loss": "gamma", "target_bound": 10.0}, "have a low above 0"),
        ({"loss": "gamma", "target_low": 0.0, "target_high": 10.0}, "have a low above 0"),
        ({"loss": "gamma", "target_low": -1.0, "target_high": 10.0}, "must be 0 or more"),
        ({"loss": "tweedie", "target_bound": math.inf}, "without a bound on targets there is no privacy"),
        ({"loss": "tweedie", "target_bound": 10.0, "power": 2.0}, 'for 2 loss="gamma"'),
        ({"loss": "tweedie", "target_bound": 10.0, "power": 1.0}, 'for 1 take loss="poisson"'),
        ({"loss": "negative_binomial", "target_bound": 10.0, "dispersion": 0.0}, "dispersion must be a number from"),
        ({"loss": "gama", "target_bound": 10.0}, "gamma"),
    ],
)
def test_facts_that_do_not_fit_the_loss_are_refused_with_advice(parameters, message):
    """Before any charge, and the message says what to do."""
    for kind in (ERMRegressor, AdditiveRegressor):
        ledger = Ledger(limit=PureDP(10.0))
        more = {"bounds": (-1.0, 1.0)} if kind is AdditiveRegressor else {}
        with pytest.raises(ParameterError, match=message):
            kind(1.0, ledger=ledger, **more, **parameters).fit(X, FRAME["price"])
        assert len(ledger.entries()) == 0


def test_negative_costs_are_refused_and_costs_below_the_range_are_clipped():
    """A negative one before the charge; a 0 counts as the least cost."""
    facts, ledger = {"loss": "gamma", "target_low": 1.0, "target_high": 5_000.0}, Ledger(limit=PureDP(10.0))
    costs = FRAME["price"].to_numpy(copy=True)
    costs[0] = -1.0
    with pytest.raises(InputError, match="counts or costs"):
        ERMRegressor(1.0, ledger=ledger, **facts).fit(X, costs)
    assert len(ledger.entries()) == 0
    fits = []
    for least in (0.0, 1.0):
        costs[:100] = least
        fits.append(ERMRegressor(math.inf, **facts).fit(X, costs))
    np.testing.assert_array_equal(fits[0].coef_, fits[1].coef_)
