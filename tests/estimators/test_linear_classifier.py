"""What all linear classifiers have in common: classes, scores, plans and what they refuse."""

from __future__ import annotations

import math

import numpy as np
import pytest

from confide import ApproxDP, LinearSVC, LogisticRegression, ParameterError
from confide.erm.row_bounds import BallBound


def rows_and_classes(n=3000, d=4, k=4, seed=0):
    """Rows and classes drawn from a softmax model."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) / math.sqrt(d)
    return X, np.argmax(4.0 * X @ rng.normal(size=(d, k)) + rng.gumbel(size=(n, k)), axis=1)


X, Y = rows_and_classes()
MODELS = [LogisticRegression, lambda b, **k: LogisticRegression(b, multiclass="one-vs-rest", **k), LinearSVC]
models = pytest.mark.parametrize("make", MODELS, ids=["softmax", "one-vs-rest", "svm"])


@models
def test_the_surface_of_a_model_of_several_classes(make):
    """Shapes, sorted classes, argmax, names, a score well above chance; text labels."""
    names = np.array(["d", "b", "a", "c"])[Y]
    model = make(ApproxDP(2.0, 1e-6), classes=["d", "c", "b", "a"]).fit(X, names)
    assert model.coef_.shape == (4, 4)
    assert model.intercept_.shape == (4,)
    assert model.classes_.tolist() == ["a", "b", "c", "d"]
    scores = model.decision_function(X)
    np.testing.assert_allclose(scores, BallBound(1.0).clip(X) @ model.coef_.T + model.intercept_, atol=1e-12)
    assert (model.predict(X) == model.classes_[scores.argmax(axis=1)]).all()
    accuracy = np.mean(model.predict(X) == names)
    assert model.score(X, names) == pytest.approx(accuracy)
    assert accuracy > 0.4
    assert model.score(X, names, sample_weight=(names == "a") * 1.0) == pytest.approx(
        np.mean(model.predict(X)[names == "a"] == "a")
    )
    assert len(model.coefficient_names_) == 4
    assert "{'a', 'b', 'c', 'd'} was declared" in model.guarantee_.statement()


def test_plans_know_the_number_of_classes():
    """From declared classes or n_classes, 2 by default; the plan is that of the fit; nonsense is refused."""
    model = LogisticRegression(1.0)
    assert [model.plan(3000, 4, **k).problem.n_weights for k in ({}, {"n_classes": 4}, {"n_classes": 2})] == [5, 20, 5]
    fitted = LogisticRegression(1.0).fit(X, Y)
    assert fitted.alpha_ == model.plan(3000, 4, n_classes=4).alpha
    declared = LogisticRegression(1.0, classes=range(4))
    assert declared.plan(3000, 4) == declared.plan(3000, 4, n_classes=4)
    assert declared.plan(3000, 4).to_dict()["n_scores"] == 4
    for bad in (1, 101, 2.5, True, "4"):
        with pytest.raises(ParameterError, match="n_classes"):
            model.plan(3000, 4, n_classes=bad)
    with pytest.raises(ParameterError, match="n_classes"):
        declared.plan(3000, 4, n_classes=3)
