"""Linear models with an l1 penalty: coefficients that are exactly 0, in every form that a fit has."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.linear_model import ElasticNet
from sklearn.linear_model import LogisticRegression as TheirLogisticRegression

import confide
from confide import (
    ZCDP,
    ApproxDP,
    ERMClassifier,
    ERMRegressor,
    HuberRegressor,
    Ledger,
    LinearSVC,
    LogisticRegression,
    ParameterError,
    PoissonRegressor,
    PureDP,
    Ridge,
)

INF = float("inf")
BUDGETS = [PureDP(50.0), ApproxDP(2.0, 1e-6), ZCDP(0.2)]
WEIGHTS = np.array([2.0, 0.0, -2.0, 0.0, 0.0, 0.0])


def rows(n=4000, seed=0):
    """Rows with two columns that count, labels, numbers and counts."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1.0, 1.0, (n, 6))
    labels = (rng.random(n) < 1.0 / (1.0 + np.exp(-1.5 * X @ WEIGHTS))).astype(int)
    numbers = np.clip(X @ WEIGHTS * 0.4 + rng.normal(size=n) * 0.2, -2.0, 2.0)
    return X, labels, numbers, rng.poisson(np.exp(0.4 * X @ WEIGHTS)).clip(0, 12)


X, LABELS, NUMBERS, COUNTS = rows()
COMMON = {"l1_ratio": 0.2, "row_norm": 1.5}
FITS = [
    (LogisticRegression, {"classes": [0, 1]}, LABELS),
    (LinearSVC, {"classes": [0, 1]}, LABELS),
    (LinearSVC, {"classes": [0, 1], "loss": "hinge"}, LABELS),
    (ERMClassifier, {"classes": [0, 1], "loss": "smooth_hinge"}, LABELS),
    (HuberRegressor, {"target_bound": 2.0}, NUMBERS),
    (Ridge, {"target_bound": 2.0}, NUMBERS),
    (ERMRegressor, {"target_bound": 2.0, "loss": "absolute"}, NUMBERS),
    (PoissonRegressor, {"target_bound": 12.0}, COUNTS),
]


@pytest.mark.parametrize("budget", BUDGETS, ids=["pure", "approximate", "rho"])
@pytest.mark.parametrize(("kind", "parameters", "y"), FITS, ids=[f"{k.__name__} {p.get('loss', '')}" for k, p, _ in FITS])
def test_the_support_is_found(kind, parameters, y, budget):
    """Columns that count have weights of their sign, the others exactly 0 but for one at most; the plan says it."""
    ledger = Ledger(limit=budget)
    model = kind(budget, ledger=ledger, **COMMON, **parameters).fit(X, y)
    coefficients = np.atleast_2d(model.coef_)[0]
    assert model.support_.tolist() == (coefficients != 0.0).tolist()
    assert model.support_[[0, 2]].all(), coefficients
    assert coefficients[0] > 0.0 > coefficients[2]
    assert np.count_nonzero(coefficients) <= 3, coefficients
    plan = model.plan(4000, 6)
    assert plan.mechanism in ("output", "gradient", "sufficient-statistics")
    assert "an l1 penalty" in str(plan)
    assert plan.to_dict()["l1_ratio"] == 0.2
    assert model.alpha_ == plan.alpha
    assert "set to 0" in model.guarantee_.statement()
    assert len(ledger.entries()) == 1


@pytest.mark.parametrize("kind", ["logistic", "ridge"])
def test_without_noise_it_is_the_elastic_net_of_scikit_learn(kind):
    """alpha is the whole strength and l1_ratio the share: the same weights and the same zeros."""
    n = len(X)
    if kind == "ridge":
        ours = Ridge(INF, alpha=0.1, l1_ratio=0.6, target_bound=INF, row_norm=INF, fit_intercept=False).fit(X, NUMBERS)
        theirs = ElasticNet(alpha=0.1, l1_ratio=0.6, fit_intercept=False, tol=1e-12).fit(X, NUMBERS).coef_
    else:
        ours = LogisticRegression(INF, alpha=0.05, l1_ratio=0.6, row_norm=INF, fit_intercept=False).fit(X, LABELS)
        made = TheirLogisticRegression(
            solver="saga", l1_ratio=0.6, C=1.0 / (0.05 * n), fit_intercept=False, tol=1e-8, max_iter=10_000
        )
        if made.get_params().get("penalty") == "l2":
            made.set_params(penalty="elasticnet")  # before version 1.8
        theirs = made.fit(X, LABELS).coef_
    np.testing.assert_allclose(np.atleast_2d(ours.coef_), np.atleast_2d(theirs), atol=2e-5)
    np.testing.assert_array_equal(np.atleast_2d(ours.coef_) == 0.0, np.atleast_2d(theirs) == 0.0)
    assert 0 < ours.support_.sum() < 6
    assert ours.alpha_ == pytest.approx(0.1 if kind == "ridge" else 0.05)


def test_three_classes_have_one_support():
    """A column counts if it does for some class; each class has zeros of its own."""
    blurred = X + np.random.default_rng(0).normal(size=X.shape) * 0.5
    classes = np.where(blurred[:, 0] > 0.3, 2, np.where(blurred[:, 2] > 0.0, 1, 0))
    for multiclass in ("softmax", "one-vs-rest"):
        settings = {"classes": [0, 1, 2], "multiclass": multiclass, "random_state": 0, **COMMON}
        model = LogisticRegression(ApproxDP(8.0, 1e-6), **settings).fit(X, classes)
        assert model.coef_.shape == (3, 6)
        assert model.support_[[0, 2]].all()
        assert model.support_.tolist() == (model.coef_ != 0.0).any(axis=0).tolist()
        assert not model.coef_.all()


def test_a_schema_sparse_rows_and_files(tmp_path):
    """Each level and each number has a weight of its own; a file and a sparse matrix give the weights of the frame."""
    names = [f"x{j}" for j in range(6)]
    frame = pd.DataFrame(X, columns=names).assign(group=np.array(["a", "b", "c"])[np.arange(len(X)) % 3])
    columns = {name: {"low": -1.0, "high": 1.0} for name in names} | {"group": {"categories": ["a", "b", "c"]}}
    schema = confide.Schema(columns=columns, target={"column": "y", "negative": 0, "positive": 1})
    parameters = {"l1_ratio": 0.2, "schema": schema, "random_state": 0}
    budget = ApproxDP(4.0, 1e-6)
    model = LogisticRegression(budget, **parameters).fit(frame, LABELS)
    found = dict(zip(model.coefficient_names_, model.coef_[0], strict=True))
    assert model.support_.sum() <= 4
    assert [found[name] for name in found if "group" in name].count(0.0) == 3
    frame.assign(y=LABELS).to_csv(tmp_path / "rows.csv", index=False)
    again = LogisticRegression(budget, **parameters).fit(confide.open_rows(tmp_path / "rows.csv", schema=schema))
    np.testing.assert_array_equal(again.coef_, model.coef_)
    dense = LogisticRegression(budget, l1_ratio=0.2, random_state=0, classes=[0, 1]).fit(X, LABELS)
    scattered = LogisticRegression(budget, l1_ratio=0.2, random_state=0, classes=[0, 1]).fit(sparse.csr_matrix(X), LABELS)
    np.testing.assert_allclose(scattered.coef_, dense.coef_, atol=1e-9)
    model.save(tmp_path / "model.json")
    loaded = confide.load(tmp_path / "model.json")
    assert loaded.l1_ratio == 0.2
    np.testing.assert_array_equal(loaded.support_, model.support_)
    np.testing.assert_array_equal(loaded.predict(frame), model.predict(frame))


@pytest.mark.parametrize("budget", [PureDP(50.0), ZCDP(0.2)], ids=["pure", "rho"])
def test_a_private_number_of_rows(budget):
    """Under add-or-remove-one the strengths follow from the lower bound, and the support is found too."""
    model = LogisticRegression(
        budget, neighbours="add-or-remove-one", n_rows_bounds=(3000, 5000), classes=[0, 1], **COMMON
    ).fit(X, LABELS)
    assert model.support_[[0, 2]].all()
    plan = model.plan(n_features=6)
    assert plan.l2 == pytest.approx(plan.alpha * 3000 * 0.8)


@pytest.mark.parametrize(
    ("parameters", "what"),
    [
        ({"l1_ratio": 1.0}, "below 1"), ({"l1_ratio": -0.1}, "below 1"), ({"l1_ratio": "auto"}, "below 1"),
        ({"l1_ratio": True}, "below 1"), ({"l1_ratio": float("nan")}, "below 1"),
        ({"l1_ratio": 0.5, "mechanism": "objective"}, "penalty without kinks"),
        ({"l1_ratio": 0.5, "inference_share": 0.3}, "no intervals"),
        ({"l1_ratio": 0.5, "penalty": [1.0, 2.0, 1.0, 1.0, 1.0, 1.0]}, "leave out l1_ratio, or penalty"),
        ({"l1_ratio": 0.5, "prior": ([0.0] * 6, 0.0)}, "a prior"),
    ],
)  # fmt: skip
def test_what_cannot_be_is_refused_before_the_charge(parameters, what):
    """From parameters alone."""
    ledger = Ledger(limit=PureDP(1.0))
    with pytest.raises(ParameterError, match=what):
        LogisticRegression(1.0, ledger=ledger, **parameters).fit(X, LABELS)
    assert len(ledger.entries()) == 0
    with pytest.raises(ParameterError):
        Ridge(1.0, target_bound=2.0, l1_ratio=0.5, intervals=True).fit(X, NUMBERS)
    with pytest.raises(ParameterError, match="penalty without kinks"):
        Ridge(1.0, target_bound=2.0, l1_ratio=0.5, mechanism="objective").fit(X, NUMBERS)


def test_an_unfitted_model_has_no_support_and_a_ridge_has_all():
    """As scikit-learn's attributes do; without an l1 penalty released weights are seldom 0."""
    model = LogisticRegression(1.0, classes=[0, 1])
    assert not hasattr(model, "support_")
    assert model.fit(X, LABELS).support_.all()
