"""Intervals for Huber regression: by the sandwich without noise, by samples with it."""

from __future__ import annotations

import math

import numpy as np
import pytest

import confide
from confide import ZCDP, ApproxDP, ERMRegressor, HuberRegressor, Ledger, ParameterError

TRUTH = np.array([0.6, -0.4, 0.2, 0.1])


def sample(n, seed):
    """Rows within the unit ball, targets within 1; the spread of residuals grows with the first column."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    X *= rng.uniform(size=(n, 1)) / np.linalg.norm(X, axis=1, keepdims=True)
    spread = 0.08 + 0.15 * np.abs(X[:, 0])
    return X, np.clip(X @ TRUTH[:3] + TRUTH[3] + spread * rng.standard_normal(n), -1.0, 1.0)


def test_without_noise_intervals_are_those_of_the_sandwich():
    """Any ridge: the M-estimator's H^-1 S H^-1 written out, to 1e-6."""
    X, y = sample(900, 0)
    design = np.column_stack([X, np.ones(900)])
    for alpha in (1e-9, 0.03):
        model = HuberRegressor(math.inf, alpha=alpha, threshold=0.12, inference_share=0.5, target_bound=1.0).fit(X, y)
        weights = np.append(model.coef_, model.intercept_)
        residuals, l2 = design @ weights - y, 900 * alpha
        assert 0.1 < np.mean(np.abs(residuals) > 0.12) < 0.6
        inside, slopes = np.abs(residuals) <= 0.12, np.clip(residuals, -0.12, 0.12)
        inverse = np.linalg.inv(design[inside].T @ design[inside] + l2 * np.eye(4))
        S = (design * slopes[:, None] ** 2).T @ design - l2**2 * np.outer(weights, weights) / 900
        errors = np.sqrt(np.diagonal(inverse @ S @ inverse))
        known = model.uncertainty()
        np.testing.assert_allclose(known.sampling_error, errors, rtol=1e-6)
        ends = np.column_stack([weights - 1.959963984540054 * errors, weights + 1.959963984540054 * errors])
        np.testing.assert_allclose(known.intervals(0.95), ends, rtol=1e-6)
        np.testing.assert_allclose(model.conf_int(), ends[:3], rtol=1e-6)


def test_with_a_threshold_beyond_all_residuals_it_is_least_squares_with_robust_errors():
    """By NumPy, and by statsmodels OLS with HC0, to 1e-6: estimates, errors, intervals and p-values."""
    X, y = sample(900, 0)
    design = np.column_stack([X, np.ones(900)])
    model = HuberRegressor(math.inf, alpha=1e-10, threshold=10.0, inference_share=0.5, target_bound=1.0).fit(X, y)
    weights = np.linalg.lstsq(design, y)[0]
    residuals, inverse = y - design @ weights, np.linalg.inv(design.T @ design)
    errors = np.sqrt(np.diagonal(inverse @ (design * residuals[:, None] ** 2).T @ design @ inverse))
    table = model.summary().to_frame()
    np.testing.assert_allclose(table["estimate"], weights, rtol=1e-6)
    np.testing.assert_allclose(table["total_error"], errors, rtol=1e-6)
    api = pytest.importorskip("statsmodels.api", reason="statsmodels is not installed")
    theirs = api.OLS(y, design).fit(cov_type="HC0")
    np.testing.assert_allclose(table["total_error"], theirs.bse, rtol=1e-6)
    np.testing.assert_allclose(table[["low", "high"]], theirs.conf_int(), rtol=1e-6)
    np.testing.assert_allclose(table["p_value"], theirs.pvalues, atol=1e-6)


def test_intervals_do_not_depend_on_the_unit_of_the_target():
    """Targets, bound and threshold a thousand times as large, or as small, give as much larger intervals, with noise too."""
    X, y = sample(20_000, 1)
    ends = []
    for unit in (1.0, 1e-3, 1e3):
        bounds = {"target_bound": unit, "threshold": 0.1 * unit}
        model = HuberRegressor(2.0, alpha=0.01, inference_share=0.3, random_state=0, **bounds)
        ends.append(model.fit(X, unit * y).conf_int() / unit)
    # The grids of the last step differ.
    np.testing.assert_allclose(ends[1], ends[0], rtol=0.05, atol=0.02)
    np.testing.assert_allclose(ends[2], ends[0], rtol=0.05, atol=0.02)


CASES = {
    "pure, in the objective": {"budget": 4.0, "mechanism": "objective"},
    "pure, on the weights": {"budget": 4.0, "mechanism": "output"},
    "approximate, in the objective": {"budget": ApproxDP(4.0, 1e-6), "mechanism": "objective"},
    "approximate, on the weights": {"budget": ApproxDP(4.0, 1e-6), "mechanism": "output"},
    "zcdp, in the objective": {"budget": ZCDP(0.5), "mechanism": "objective"},
    "zcdp, on the weights": {"budget": ZCDP(0.5), "mechanism": "output"},
}


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_intervals_hold_the_populations_coefficients(name):
    """60 samples of 4,000 rows: coverage of the regularised minimiser near 0.95, over four coefficients."""
    model = HuberRegressor(inference_share=0.3, target_bound=1.0, threshold=0.1, **CASES[name])
    X, y = sample(200_000, 10)
    population = HuberRegressor(math.inf, alpha=model.plan(4000, 3).alpha, target_bound=1.0, threshold=0.1).fit(X, y)
    target = np.append(population.coef_, population.intercept_)
    hits, rng = [], np.random.default_rng(11)
    for trial in range(60):
        drawn = rng.integers(200_000, size=4000)
        ends = model.set_params(random_state=trial).fit(X[drawn], y[drawn]).uncertainty().intervals(0.95)
        hits.append((ends[:, 0] <= target) & (target <= ends[:, 1]))
    # Intervals twice as wide would hold nearly all.
    assert 0.915 <= np.mean(hits) <= 0.99


def test_one_charge_covers_weights_and_moments(tmp_path):
    """The whole budget, once; the statement names the moments; a loaded model gives the same intervals to the last bit."""
    X, y = sample(5000, 2)
    for budget in (3.0, ApproxDP(3.0, 1e-6), ZCDP(0.5)):
        ledger = Ledger(limit=budget)
        model = HuberRegressor(budget, inference_share=0.4, ledger=ledger, target_bound=1.0).fit(X, y)
        assert ledger.entries()["purpose"].tolist() == ["HuberRegressor.fit"]
        with pytest.raises(confide.BudgetExceeded):
            model.fit(X, y)
        assert "second moments" in model.guarantee_.statement()
        assert "0.4 of the budget" in model.guarantee_.statement()
        model.save(tmp_path / "model.json", overwrite=True)
        again = confide.load(tmp_path / "model.json")
        assert np.array_equal(again.conf_int(), model.conf_int())
        assert str(again.summary()) == str(model.summary())
        assert again.inference_share == 0.4


def test_sparse_rows_weights_of_rows_and_private_numbers_of_rows():
    """Sparse and dense rows agree; a cap on weights takes part; bounds on the number of rows too."""
    from scipy.sparse import csr_array

    X, y = sample(6000, 3)
    model = HuberRegressor(math.inf, inference_share=0.3, max_sample_weight=2.0, target_bound=1.0)
    counts = np.random.default_rng(0).integers(0, 3, 6000).astype(float)
    dense = model.fit(X, y, sample_weight=counts).conf_int()
    np.testing.assert_allclose(model.fit(csr_array(X), y, sample_weight=counts).conf_int(), dense, rtol=1e-9)
    private = HuberRegressor(
        ApproxDP(4.0, 1e-6),
        inference_share="auto",
        neighbours="add-or-remove-one",
        n_rows_bounds=(5000, 7000),
        target_bound=1.0,
    )
    assert private.fit(X, y).conf_int().shape == (3, 2)


def test_what_has_no_intervals_says_so():
    """Before a row is used: the square clipped by length, losses of one's own, few rows; and the hinge's target."""
    X, y = sample(3000, 3)
    ledger = Ledger(limit=10.0)
    with pytest.raises(ParameterError, match="use loss='huber'"):
        HuberRegressor(4.0, loss="clipped_squared", inference_share=0.3, ledger=ledger, target_bound=1.0).fit(X, y)
    with pytest.raises(ParameterError, match="use loss='huber'"):
        HuberRegressor(math.inf, loss="clipped_squared", inference_share=0.3, target_bound=1.0).fit(X, y)
    with pytest.raises(ParameterError, match="more rows, a larger budget or inference_share"):
        HuberRegressor(0.1, inference_share=0.3, ledger=ledger, target_bound=1.0).fit(X[:300], y[:300])
    assert len(ledger.entries()) == 0
    with pytest.raises(ParameterError, match="has no intervals in this version"):
        ERMRegressor(math.inf, target_bound=1.0).fit(X, np.abs(y)).conf_int()
    with pytest.raises(ParameterError, match="set inference_share"):
        HuberRegressor(4.0, target_bound=1.0).fit(X, y).summary()
    model = HuberRegressor(4.0, inference_share=0.3, mechanism="output", target_bound=1.0).fit(X, y)
    with pytest.raises(ParameterError, match="not available after output perturbation"):
        model.conf_int(target="unregularised")
