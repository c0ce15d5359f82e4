"""What all linear regressors have in common."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone

from confide import ERMRegressor, HuberRegressor, Ledger, ParameterError, PoissonRegressor, Ridge

INF = float("inf")


def made_up(n=2000, d=5, seed=0, noise=0.1):
    """Rows of norm about 1, some longer, and targets mostly within 1."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) / np.sqrt(d)
    return X, np.clip(X, -1, 1) @ np.linspace(1.0, -0.5, d) * 0.5 + 0.2 + noise * rng.normal(size=n)


def test_the_score_is_that_of_scikit_learn():
    """R^2, with weights of rows too."""
    X, y = made_up()
    model, weights = Ridge(5.0, target_bound=1.0).fit(X, y), np.arange(1.0, 2001.0)
    residuals = (y - model.predict(X)) ** 2
    assert model.score(X, y) == pytest.approx(1.0 - residuals.mean() / y.var())
    mean = np.average(y, weights=weights)
    expected = 1.0 - np.average(residuals, weights=weights) / np.average((y - mean) ** 2, weights=weights)
    assert model.score(X, y, sample_weight=weights) == pytest.approx(expected)


@pytest.mark.parametrize("make", [Ridge, HuberRegressor, PoissonRegressor, ERMRegressor])
def test_every_regressor_asks_for_the_bound_on_targets(make):
    """In fit and plan, before a charge: what it is, and how it is chosen; without privacy too."""
    X, y = made_up()
    ledger = Ledger(limit=2.0)
    assert make().target_bound is None
    for model in (make(1.0, ledger=ledger), make(INF)):
        for ask in (lambda model=model: model.fit(X, abs(y)), lambda model=model: model.plan(100, 3)):
            with pytest.raises(ParameterError, match=r"give target_bound, the largest size .* public knowledge and never"):
                ask()
    assert len(ledger.entries()) == 0
    assert clone(make(target_bound=3.0)).get_params()["target_bound"] == 3.0
