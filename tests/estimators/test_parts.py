"""Intervals from fits on disjoint parts: coverage for models without other intervals, one charge, and refusals."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

import confide
from confide import ZCDP, ApproxDP, Ledger, LinearSVC, LogisticRegression, ParameterError, PoissonRegressor, Ridge
from confide.estimators.parts import intervals_from_parts
from confide.privacy.noise import Entropy
from confide.training.charge import divided
from tests.inference.test_intervals import sample


def counts(n, seed):
    """Rows within the unit ball, and counts."""
    X, _ = sample(n, seed)
    return X, np.random.default_rng(seed + 1).poisson(np.exp(X @ [0.8, -0.5, 0.2] + 0.2))


def test_intervals_are_students_of_the_means_of_the_parts():
    """By SciPy's t-test; without noise the parts are plain fits on the rows that are drawn for them."""
    X, y = sample(2003, 0)
    found = intervals_from_parts(LogisticRegression(math.inf, classes=[0, 1]), X, y, n_parts=7, random_state=5)
    sizes = [287] + [286] * 6
    for weights, part in zip(found.of_parts, divided(sizes, Entropy.seeded(5)), strict=True):
        model = LogisticRegression(math.inf, classes=[0, 1]).fit(X[part], y[part])
        np.testing.assert_allclose(weights, np.append(model.coef_[0], model.intercept_), rtol=1e-9)
    for place in range(4):
        test = stats.ttest_1samp(found.of_parts[:, place], 0.0)
        low, high = test.confidence_interval(0.9)
        np.testing.assert_allclose(found.conf_int(0.9)[place], [low, high], rtol=1e-9)
        assert found.p_values()[place] == pytest.approx(test.pvalue)
    assert found.names == ("x0", "x1", "x2", "(intercept)")
    assert "NOT PRIVATE" in str(found)
    assert list(found.to_frame().columns) == ["estimate", "total_error", "low", "high", "p_value"]


MODELS = {
    "hinge": (LinearSVC(8.0, loss="hinge", alpha=0.3, classes=[0, 1]), sample),
    "logistic, zcdp": (LogisticRegression(ZCDP(2.0), alpha=0.1, classes=[0, 1]), sample),
    "counts": (PoissonRegressor(8.0, target_bound=5.0, threshold=2.0, alpha=0.5), counts),
    "least squares": (
        Ridge(4.0, alpha=0.3, target_bound=1.0),
        lambda n, seed: (lambda X, y: (X, 0.4 * y - 0.2))(*sample(n, seed)),
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", MODELS)
def test_intervals_hold_the_populations_coefficients(name):
    """60 samples of 6,000 rows in 10 parts: coverage near 0.95 over four coefficients."""
    model, draw = MODELS[name]
    X, y = draw(100_000, 10)
    plain = type(model)(**(model.get_params() | {"budget": math.inf})).fit(X, y)
    target, rng, hits = np.append(np.ravel(plain.coef_), plain.intercept_), np.random.default_rng(11), []
    for trial in range(60):
        drawn = rng.integers(100_000, size=6000)
        ends = intervals_from_parts(model, X[drawn], y[drawn], random_state=trial).conf_int()
        hits.append((ends[:, 0] <= target) & (target <= ends[:, 1]))
    assert 0.90 <= np.mean(hits) <= 0.985


def test_an_automatic_loss_is_the_hinge_in_all_parts():
    """Where a single fit on so many rows would take another."""
    X, y = sample(3000, 1)
    named = [LinearSVC(0.5, loss=loss, classes=[0, 1]) for loss in ("auto", "huber_hinge")]
    assert named[0].plan(300, X.shape[1]).problem.loss.constants.name == "logistic_hinge"
    found = [intervals_from_parts(model, X, y, random_state=0) for model in named]
    assert np.array_equal(found[0].of_parts, found[1].of_parts)


@pytest.mark.parametrize("budget", [3.0, ApproxDP(2.0, 1e-6), ZCDP(0.5)])
def test_one_charge_pays_for_all_parts(budget):
    """Each at the whole budget; too little left means nothing is read; the statement says what is released."""
    X, y = sample(3000, 1)
    ledger = Ledger(limit=budget)
    model = LogisticRegression(budget, classes=[0, 1])
    found = confide.intervals_from_parts(model, X, y, ledger=ledger)
    assert ledger.entries()["purpose"].tolist() == ["intervals_from_parts"]
    assert ledger.spent() == confide.privacy.budgets.as_budget(budget)
    assert found.guarantee.void is None
    text = found.guarantee.statement()
    assert "coefficients of 10 models" in text
    assert "3,000" in text
    assert found.of_parts.shape == (10, 4)
    with pytest.raises(confide.BudgetExceeded):
        confide.intervals_from_parts(model, X, y, ledger=ledger)
    with pytest.raises(confide.BudgetExceeded):
        confide.intervals_from_parts(model, np.full((3000, 3), 9.0), y, ledger=ledger)


def test_a_row_moves_one_part_alone():
    """With the noise of one seed: what theorem 3 of the page rests on."""
    X, y = sample(1000, 2)
    other = X.copy()
    other[17] = -other[17]
    one, two = (
        intervals_from_parts(LogisticRegression(5.0, classes=[0, 1]), rows, y, random_state=3).of_parts
        for rows in (X, other)
    )
    assert (np.abs(one - two).max(axis=1) > 0.0).sum() == 1


def test_frames_several_classes_and_labels_that_were_not_declared():
    """Names from columns and classes; undeclared labels are named in the guarantee."""
    import pandas as pd

    X, y = sample(3000, 3)
    frame = pd.DataFrame(X, columns=list("abc"))
    found = intervals_from_parts(LogisticRegression(5.0), frame, np.where(y, "yes", "no"))
    assert found.names == ("a", "b", "c", "(intercept)")
    assert "they were taken from the rows" in found.guarantee.statement()
    several = intervals_from_parts(LogisticRegression(5.0, fit_intercept=False), X, np.arange(3000) % 3)
    assert several.names[:4] == ("0: x0", "0: x1", "0: x2", "1: x0")
    assert several.conf_int().shape == (9, 2)


def test_what_is_not_divided_says_so_before_the_charge():
    """Parameters, and rows of one part that cannot be used."""
    X, y = sample(600, 4)
    ledger = Ledger(limit=5.0)
    model = LogisticRegression(1.0, classes=[0, 1])
    for changed, match in (
        (confide.KernelSVC(1.0), "random features"),
        (LogisticRegression(1.0, ledger=ledger), "not to the estimator"),
        (LogisticRegression(1.0, random_state=0), "not to the estimator"),
        (LogisticRegression(1.0, neighbours="add-or-remove-one", n_rows_bounds=(500, 700)), "replace-one"),
        (LogisticRegression(1.0, inference_share=0.3), "leave inference_share"),
        (Ridge(1.0, intervals=True, target_bound=1.0), "leave intervals at"),
        ("model", "linear classifier or regressor"),
    ):
        with pytest.raises(ParameterError, match=match):
            intervals_from_parts(changed, X, y, ledger=ledger)
    for parameters, match in (
        ({"n_parts": 4}, "at least 5"),
        ({"n_parts": 9.0}, "whole"),
    ):
        with pytest.raises(ParameterError, match=match):
            intervals_from_parts(model, X, y, ledger=ledger, **parameters)
    with pytest.raises(ParameterError, match="parts need as many rows"):
        intervals_from_parts(model, X[:8], y[:8], ledger=ledger)
    with pytest.raises(ParameterError, match="level must be"):
        intervals_from_parts(model, X, y).conf_int(2.0)
    broken = X.copy()
    broken[5] = np.nan
    with pytest.raises(confide.InputError):
        intervals_from_parts(model, broken, y, ledger=ledger)
    assert len(ledger.entries()) == 0
