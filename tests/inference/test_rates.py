"""Rates from a noisy histogram: scikit-learn's without noise, and intervals that hold what they claim with it."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.special import expit
from scipy.stats import binomtest
from sklearn.metrics import confusion_matrix, roc_auc_score

import confide
from confide import KernelSVC, LinearSVC, LogisticRegression, ParameterError
from confide.inference.rates import Evaluation, _area
from confide.privacy.budgets import Neighbours, as_budget
from confide.privacy.noisy_sum import SumPlan
from confide.privacy.tables import Counts

WEIGHTS = np.array([2.0, -1.5, 0.7])


def population(n, seed):
    """Rows within the unit ball, and labels 0 and 1 of a logistic model."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    X *= rng.uniform(size=(n, 1)) / np.linalg.norm(X, axis=1, keepdims=True)
    return X, (rng.uniform(size=n) < expit(3.0 * X @ WEIGHTS)).astype(int)


@pytest.fixture(scope="module")
def model():
    """Trained on other rows."""
    return LogisticRegression(float("inf"), classes=[0, 1]).fit(*population(4000, 0))


def test_without_noise_rates_are_scikit_learns(model):
    """Accuracy and confusion to the last digit, the area under the curve but for ties within bins."""
    X, y = population(3000, 1)
    answer = confide.evaluate(model, X, y, budget=math.inf, n_bins=1000)
    assert answer.accuracy.value == pytest.approx(model.score(X, y), abs=1e-12)
    table = confusion_matrix(y, model.predict(X), normalize="all")
    np.testing.assert_allclose([[rate.value for rate in row] for row in answer.confusion], table, atol=1e-12)
    rows = confusion_matrix(y, model.predict(X), normalize="true")
    assert answer.specificity.value == pytest.approx(rows[0, 0], abs=1e-12)
    assert answer.sensitivity.value == pytest.approx(rows[1, 1], abs=1e-12)
    assert answer.auc.value == pytest.approx(roc_auc_score(y, model.decision_function(X)), abs=2e-3)
    assert answer.void is not None
    assert answer.counts.sum() == 3000


def test_calibration_of_a_true_model_lies_in_its_bins(model):
    """Rates of the positive class by bin of the probability."""
    X, y = population(40_000, 2)
    answer = confide.evaluate(model, X, y, budget=math.inf, n_bins=10)
    chances = model.predict_proba(X)[:, 1]
    for place, rate in enumerate(answer.calibration):
        inside = (chances > place / 10) & (chances <= (place + 1) / 10)
        assert rate.value == pytest.approx(y[inside].mean(), abs=1e-12)
        assert rate.low <= rate.value <= rate.high


@pytest.mark.parametrize("neighbours", ["replace-one", "add-or-remove-one"])
def test_intervals_hold_what_they_claim(model, neighbours):
    """300 samples of 1,500 rows with noise that matters: coverage of the population's rates near 0.9."""
    X, y = population(300_000, 3)
    truth = confide.evaluate(model, X, y, budget=math.inf)
    names = ("accuracy", "sensitivity", "specificity", "auc")
    hits, rng, shares = dict.fromkeys(names, 0), np.random.default_rng(4), []
    for trial in range(300):
        drawn = rng.integers(300_000, size=1500)
        answer = confide.evaluate(
            model, X[drawn], y[drawn], budget=0.4, level=0.9, neighbours=neighbours, random_state=trial
        )
        for name in names:
            rate = getattr(answer, name)
            hits[name] += rate.low <= getattr(truth, name).value <= rate.high
        without = confide.evaluate(model, X[drawn], y[drawn], budget=math.inf, level=0.9)
        shares.append((without.accuracy.high - without.accuracy.low) / (answer.accuracy.high - answer.accuracy.low))
    # The noise is a good part of the intervals.
    assert np.mean(shares) < 0.8
    for name in names:
        assert 0.84 <= hits[name] / 300 <= 0.96, name


def test_where_noise_hides_everything_nothing_is_claimed(model):
    """A rate whose denominator is lost in the noise is None, and prints so."""
    X, y = population(200, 6)
    answer = confide.evaluate(model, X, y, budget=0.01, allow_hidden=True, random_state=0)
    assert answer.sensitivity.value is None
    assert answer.auc.value is None
    assert "hidden" in str(answer)
    assert "random_state" in str(answer)
    assert answer.to_dict()["auc"] == {"value": None, "low": None, "high": None}
    assert answer.to_frame().loc["auc"].isna().all()


@pytest.mark.parametrize("kind", [LinearSVC, KernelSVC])
def test_machines_without_probabilities_have_no_calibration(kind):
    """Their scores pass through the logistic function to find a bin."""
    X, y = population(1500, 8)
    fitted = kind(math.inf, classes=[0, 1]).fit(X, y)
    answer = confide.evaluate(fitted, X, y, budget=math.inf)
    assert answer.accuracy.value == pytest.approx(fitted.score(X, y))
    assert answer.to_dict()["calibration"] is None
    with pytest.raises(ParameterError, match="no probabilities"):
        _ = answer.calibration


def evaluation(counts, budget=math.inf, n_rows=None, **more):
    """An evaluation with these counts, and the noise of this budget."""
    counts = np.asarray(counts, dtype=float)
    plan = SumPlan.of(Counts(counts.size, Neighbours.REPLACE_ONE), as_budget(budget))
    facts = {"level": 0.95, "outcome": "y = 1", "has_probabilities": True, "void": None} | more
    return Evaluation(counts=counts, plan=plan, n_rows=n_rows, **facts)


def test_rates_of_a_small_table_are_those_of_the_formulas():
    """Two bins: 70 and 30 negative rows, 20 and 80 positive ones, on the two sides of the threshold."""
    found = evaluation([[70.0, 30.0], [20.0, 80.0]])
    assert found.accuracy.value == 150 / 200
    assert (found.specificity.value, found.sensitivity.value) == (0.7, 0.8)
    assert [[rate.value for rate in row] for row in found.confusion] == [[0.35, 0.15], [0.1, 0.4]]
    # A positive row scores above a negative one, half of a pair in the same bin.
    assert found.auc.value == pytest.approx((80 * 70 + 0.5 * (80 * 30 + 20 * 70)) / 100**2)
    assert [rate.value for rate in found.calibration] == [20 / 90, 80 / 110]


def test_without_noise_the_interval_of_an_accuracy_is_wilsons():
    """150 of 200 rows."""
    found = evaluation([[70.0, 30.0], [20.0, 80.0]], level=0.9).accuracy
    expected = binomtest(150, 200).proportion_ci(0.9, "wilson")
    assert (found.low, found.high) == (pytest.approx(expected.low, abs=1e-6), pytest.approx(expected.high, abs=1e-6))


def test_without_noise_the_interval_of_an_area_is_that_of_its_errors():
    """The delta method: the root of the sum of squares of `errors_of`, times the quantile of the level."""
    found = evaluation([[70.0, 30.0], [20.0, 80.0]], level=0.9)
    half = 1.6448536 * np.linalg.norm(found.errors_of(_area))
    assert found.auc.high - found.auc.low == pytest.approx(2.0 * half, rel=1e-3)


def test_noise_widens_intervals_and_a_known_total_narrows_them():
    """The part of the noise that changes the total is taken out where the number of rows is public."""
    counts = [[700.0, 300.0], [200.0, 800.0]]
    widths = [
        rate.high - rate.low
        for rate in (
            evaluation(counts, **facts).sensitivity for facts in ({}, {"budget": 0.05, "n_rows": 2000}, {"budget": 0.05})
        )
    ]
    assert widths[0] < widths[1] <= widths[2]


def test_a_rate_over_few_rows_is_hidden_by_four_deviations_of_noise():
    """Of the class that it is over: a little above that it is shown."""
    deviation = evaluation([[1.0, 1.0], [1.0, 1.0]], 0.1).plan.deviation
    for factor, is_shown in ((3.9, False), (4.1, True)):
        positive = factor * deviation * math.sqrt(2.0) / 2.0
        found = evaluation([[1e6, 1e6], [positive, positive]], 0.1)
        assert (found.sensitivity.value is not None) is is_shown
        assert (found.auc.value is not None) is is_shown
        assert found.specificity.value is not None


def test_a_rate_stays_within_zero_and_one():
    """Noisy counts may be negative."""
    found = evaluation([[500.0, -3.0], [-2.0, 400.0]], 2.0)
    for rate in (found.accuracy, found.sensitivity, found.specificity, found.auc):
        assert 0.0 <= rate.low <= rate.value <= rate.high <= 1.0
    assert found.sensitivity.value == 1.0


def test_an_evaluation_says_what_it_cost_and_whether_it_is_void():
    """In its last line; JSON has the same numbers."""
    plain = evaluation([[70.0, 30.0], [20.0, 80.0]], 1.0, n_rows=200)
    assert str(plain).splitlines()[0] == "Rates on 200 private rows, with intervals at 0.95"
    assert str(plain).splitlines()[-1].startswith("Released under")
    void = evaluation([[70.0, 30.0], [20.0, 80.0]], void="There is no noise.")
    assert str(void).splitlines()[-1] == "NOT PRIVATE. There is no noise."
    assert plain.to_dict()["accuracy"] == {
        "value": plain.accuracy.value,
        "low": plain.accuracy.low,
        "high": plain.accuracy.high,
    }
    assert plain.to_frame().loc["auc", "value"] == plain.auc.value


def test_shares_of_all_rows_add_up_to_one_where_noise_made_a_sum_negative():
    """A negative share is shown as 0; the others are divided by their sum, and each stays within its interval."""
    plan = SumPlan.of(Counts(4, Neighbours.REPLACE_ONE), as_budget(0.5))
    found = Evaluation(np.array([[60.0, 30.0], [-10.0, 20.0]]), plan, 0.95, "yes", 100, True, None)
    cells = [rate for row in found.confusion for rate in row]
    assert [rate.value for rate in cells] == pytest.approx([60 / 110, 30 / 110, 0.0, 20 / 110])
    assert all(rate.low <= rate.value <= rate.high for rate in cells)
