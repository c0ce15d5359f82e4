"""The elastic net from noisy sums of least squares."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from sklearn.linear_model import ElasticNet

from confide import Ridge
from confide.privacy.budgets import ZCDP
from confide.privacy.sufficient_statistics import NoisyStatistics
from confide.training.least_squares import sparse_weights


def sums(budget, products, targets, n, **parameters):
    """These sums, with the plan of `Ridge`."""
    model = Ridge(budget, target_bound=3.0, fit_intercept=False, mechanism="sufficient-statistics", **parameters)
    return NoisyStatistics(products, targets, np.nan, model.plan(n, len(targets)))


def test_without_noise_it_is_the_elastic_net_of_scikit_learn():
    """Same alpha, same l1_ratio, same coefficients, same zeros."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-1.0, 1.0, (300, 8))
    y = X @ [1.0, -1.0, 0.0, 0.0, 0.5, 0.0, 0.0, 0.0] + rng.normal(size=300) * 0.1
    theirs = ElasticNet(alpha=0.1, l1_ratio=0.7, fit_intercept=False, tol=1e-10).fit(X, y).coef_
    found = sparse_weights(sums(float("inf"), X.T @ X, X.T @ y, 300, alpha=0.1, l1_ratio=0.7))
    np.testing.assert_allclose(found, theirs, atol=1e-6)
    np.testing.assert_array_equal(found == 0.0, theirs == 0.0)
    assert 0 < np.count_nonzero(found) < 8


def test_weights_of_noise_alone_become_zero():
    """Of 200 sums with the plan's noise and no effect, few have a weight; one with an effect keeps it."""
    rng, passed = np.random.default_rng(1), 0
    n, products = 20_000, 20_000 / 30.0 * np.eye(10)
    made = sums(ZCDP(0.05), products, np.zeros(10), n, alpha=0.001, l1_ratio=0.1)
    for _ in range(200):
        noisy = replace(made, targets=rng.normal(size=10) * made.plan.target_deviation)
        passed += np.count_nonzero(sparse_weights(noisy))
    assert passed / 200 < 0.2
    targets = np.zeros(10)
    targets[3] = 0.5 * n / 30.0 * 10.0
    found = sparse_weights(replace(made, targets=targets + rng.normal(size=10) * made.plan.target_deviation))
    assert np.flatnonzero(found).tolist() == [3]
    assert found[3] == pytest.approx(5.0, rel=0.5)
