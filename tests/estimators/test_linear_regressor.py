"""What all linear regressors have in common."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

from confide import (
    AdditiveRegressor,
    ERMRegressor,
    HuberRegressor,
    InputError,
    Ledger,
    ParameterError,
    PoissonRegressor,
    Ridge,
    Schema,
    load,
    open_rows,
)
from confide.data.arrays import ArrayBlocks

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


REGRESSORS = [Ridge, HuberRegressor, PoissonRegressor, ERMRegressor]


@pytest.mark.parametrize("make", REGRESSORS)
def test_predictions_are_those_of_rows_clipped_as_in_the_fit(make):
    """Whatever the block in which a row lies; of counts the exponential of the score."""
    X, y = made_up(n=400)
    model = make(INF, target_bound=2.0, row_norm=0.5).fit(X, abs(y))
    clipped = X * np.minimum(1.0, 0.5 / np.linalg.norm(X, axis=1))[:, None]
    scores = clipped @ model.coef_ + model.intercept_
    np.testing.assert_allclose(model.predict(X), np.exp(scores) if make is PoissonRegressor else scores, atol=1e-12)
    assert model.coef_.shape == (5,)
    assert type(model.intercept_) is float


def test_rows_of_several_blocks_are_predicted_alike(monkeypatch):
    """The blocks of a large array give what one block gives."""
    X, y = made_up(n=400)
    model = Ridge(INF, target_bound=2.0).fit(X, y)
    whole = model.predict(X)
    asked = []
    block = ArrayBlocks.block
    monkeypatch.setattr(
        ArrayBlocks, "block", lambda self, start, stop: asked.append((start, stop)) or block(self, start, stop)
    )
    monkeypatch.setattr("confide.data.arrays._MOST_ROWS", 64)
    np.testing.assert_allclose(model.predict(X), whole, atol=1e-14)
    assert len(asked) > 3
    assert [start for start, _ in asked] == [0, *(stop for _, stop in asked[:-1])]
    assert asked[-1][1] == 400


@pytest.mark.parametrize("make", REGRESSORS)
def test_the_guarantee_says_how_targets_are_clipped(make):
    """To the bound on both sides, and counts from zero."""
    X, y = made_up(n=200)
    statement = make(1.0, target_bound=2.5).fit(X, abs(y)).guarantee_.statement()
    clipped = "declared range, 0 to 2.5" if make is PoissonRegressor else "declared bound, 2.5 in absolute value"
    assert f"Every target is clipped to its {clipped}" in statement


def test_targets_of_a_score_are_checked_like_those_of_a_fit():
    """One finite number for each row, and weights that are weights; no value is shown."""
    X, y = made_up(n=50)
    model = Ridge(1.0, target_bound=1.0).fit(X, y)
    for targets, words in ((y[:-1], "one target for each row"), ([*y[:-1], np.nan], "NaN"), (None, "y")):
        with pytest.raises(InputError, match=words):
            model.score(X, targets)
    with pytest.raises(InputError, match="sample_weight"):
        model.score(X, y, sample_weight=-np.ones(50))


@pytest.mark.parametrize("make", REGRESSORS)
def test_a_plan_holds_the_alpha_of_the_fit(make):
    """From the number of rows and columns alone."""
    X, y = made_up(n=500)
    model = make(1.0, target_bound=1.0)
    assert model.plan(500, 5).alpha == model.fit(X, abs(y)).alpha_


@pytest.mark.parametrize("make", [*REGRESSORS, AdditiveRegressor])
def test_a_target_of_numbers_in_a_schema_gives_the_bound_and_the_column(make, tmp_path):
    """Targets are clipped to its range, from memory as from files; plan, file and guarantee need no target_bound."""
    X, _ = made_up(n=300, d=2)
    frame = pd.DataFrame(np.clip(X, -1, 1), columns=["a", "b"])
    price = np.random.default_rng(1).uniform(0.0, 9.0, len(frame))
    columns = {"a": {"low": -1, "high": 1}, "b": {"low": -1, "high": 1}}
    schema = Schema(columns=columns, target={"column": "price", "low": 2, "high": 5})
    frame.assign(price=price).to_parquet(tmp_path / "rows.parquet")
    model = make(INF, schema=schema).fit(frame, price)
    assert model.target_bound is None
    assert "Every target is clipped to its declared range, 2 to 5." in model.guarantee_.statement()
    from_files = make(INF, schema=schema).fit(open_rows(tmp_path / "rows.parquet", schema))
    np.testing.assert_allclose(from_files.coef_, model.coef_, atol=1e-9)
    bounded = make(INF, schema=Schema(columns), target_bound=5.0).fit(frame, np.clip(price, 2.0, 5.0))
    np.testing.assert_allclose(bounded.coef_, model.coef_, atol=1e-9)
    assert model.plan(n_rows=300).problem == bounded.plan(n_rows=300).problem
    model.save(tmp_path / "model.json")
    loaded = load(tmp_path / "model.json")
    assert loaded.target_bound is None
    np.testing.assert_array_equal(loaded.predict(frame), model.predict(frame))


@pytest.mark.parametrize("make", [Ridge, HuberRegressor, PoissonRegressor], ids=lambda kind: kind.__name__)
def test_targets_that_all_lie_beyond_the_bound_are_clipped_without_a_word(make):
    """A refusal or a warning would tell of all rows. The same plan, charge and sentences as for targets within the bound."""
    X, _ = made_up()
    found = []
    for targets in (np.full(len(X), 1e9), np.linspace(0.1, 0.9, len(X))):
        ledger = Ledger(limit=1.0)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            model = make(1.0, target_bound=1.0, ledger=ledger, random_state=0).fit(X, targets)
        found.append((model.guarantee_.statement(), model.alpha_, ledger.spent().epsilon))
    assert found[0] == found[1]
