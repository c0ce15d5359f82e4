"""Intervals of predictions: for every kind of model, against coefficients, the delta method and repeated samples."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_array
from scipy.special import expit, logit, softmax

import confide
from confide import (
    AdditiveRegressor,
    ApproxDP,
    HuberRegressor,
    KernelSVC,
    LinearSVC,
    LogisticRegression,
    ParameterError,
    PoissonRegressor,
    Ridge,
)

RNG = np.random.default_rng(0)
X = RNG.uniform(-0.5, 0.5, size=(4_000, 2))
Y = (RNG.uniform(size=4_000) < expit(X @ [3.0, -2.0])).astype(int)
COUNTS = RNG.poisson(np.exp(X @ [1.0, -1.0] + 0.5))
CLASSES = (X @ np.array([[2.0, -1.0, 0.0], [0.0, 1.0, -1.0]]) + RNG.gumbel(size=(4_000, 3))).argmax(axis=1)
PLAIN = {"alpha": 0.01, "inference_share": 0.3}
PRIVATE = {"budget": ApproxDP(8.0, 1e-6), "inference_share": 0.3, "random_state": 0}


def assert_alike(found, expected):
    """The same middles, and widths within 5%: predictions have another approximation of the law of the noise."""
    np.testing.assert_allclose(found.sum(axis=1), expected.sum(axis=1), rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(np.diff(found), np.diff(expected), rtol=0.05)


def units(model, target="regularised"):
    """The ends for rows that have one column alone, without the intercept: those of the coefficients."""
    return model.predict_interval(np.eye(2), target=target)


@pytest.mark.parametrize("mechanism", ["objective", "output"])
def test_the_score_of_one_column_has_the_interval_of_its_coefficient(mechanism):
    """On the scale of the prediction: logistic, exponential, plain."""
    shared = PRIVATE | {"fit_intercept": False, "mechanism": mechanism}
    two = LogisticRegression(**shared, classes=[0, 1]).fit(X, Y)
    counts = PoissonRegressor(**shared | {"budget": ApproxDP(30.0, 1e-6)}, target_bound=8.0).fit(X, COUNTS)
    scores = LinearSVC(**shared, classes=[0, 1], loss="huber_hinge").fit(X, Y)
    numbers = HuberRegressor(**shared, target_bound=1.0).fit(X, X @ [0.5, 0.3])
    for model, back in ((two, logit), (counts, np.log), (scores, np.asarray), (numbers, np.asarray)):
        assert_alike(back(units(model)), model.conf_int())
    sums = Ridge(8.0, target_bound=1.0, intervals=True, fit_intercept=False, random_state=0).fit(X, X @ [0.5, 0.3])
    assert_alike(units(sums), sums.conf_int())
    assert_alike(units(sums, "unregularised"), sums.conf_int(target="unregularised"))


def test_without_noise_the_errors_are_those_of_the_delta_method():
    """x^T V x of the covariance, intercept and all; the middle is the prediction; sparse rows agree."""
    two = LogisticRegression(math.inf, classes=[0, 1], **PLAIN).fit(X, Y)
    rows = np.column_stack([X[:50], np.ones(50)])
    size = np.sqrt(np.sum(rows @ two.covariance().to_numpy() * rows, axis=1))
    scores = two.decision_function(X[:50])
    expected = expit(np.column_stack([scores - 1.6448536 * size, scores + 1.6448536 * size]))
    found = two.predict_interval(X[:50], level=0.9)
    np.testing.assert_allclose(found, expected, rtol=1e-6)
    np.testing.assert_allclose(two.predict_interval(csr_array(X[:50]), level=0.9), found, rtol=1e-9)


@pytest.mark.parametrize("multiclass", ["softmax", "one-vs-rest"])
def test_probabilities_of_several_classes_lie_within_their_intervals(multiclass):
    """Without noise, softmax has the delta method by finite differences of its own covariance, and the others are wider."""
    model = LogisticRegression(math.inf, multiclass=multiclass, **PLAIN).fit(X, CLASSES)
    ends, p = model.predict_interval(X[:40]), model.predict_proba(X[:40])
    assert ends.shape == (40, 3, 2)
    np.testing.assert_allclose(expit(logit(ends).mean(axis=2)), p, rtol=1e-6)
    if multiclass == "softmax":
        W = np.column_stack([model.coef_, model.intercept_])
        design = np.column_stack([X, np.ones(len(X))])
        fitted = softmax(design @ W.T, axis=1)
        slopes = fitted - np.eye(3)[CLASSES]
        bends = np.einsum("ia,ab->iab", fitted, np.eye(3)) - np.einsum("ia,ib->iab", fitted, fitted)
        H = np.einsum("iab,ij,ik->ajbk", bends, design, design).reshape(9, 9)
        G = (slopes[:, :, None] * design[:, None, :]).reshape(len(X), 9)
        l2 = len(X) * model.alpha_
        inverse = np.linalg.inv(H + l2 * np.eye(9))
        V = inverse @ (G.T @ G - l2**2 * np.outer(W.ravel(), W.ravel()) / len(X)) @ inverse
        step = 1e-5
        for place in range(5):

            def log_odds(w, place=place):
                return logit(softmax(w.reshape(3, 3) @ design[place]))

            jacobian = np.array([(log_odds(W.ravel() + e) - log_odds(W.ravel() - e)) / (2 * step) for e in step * np.eye(9)])
            size = np.sqrt(np.diagonal(jacobian.T @ V @ jacobian))
            np.testing.assert_allclose(np.diff(logit(ends[place]))[:, 0] / (2 * 1.959964), size, rtol=1e-3)
    noisy = LogisticRegression(multiclass=multiclass, classes=[0, 1, 2], **PRIVATE).fit(X, CLASSES)
    assert np.all(np.diff(noisy.predict_interval(X[:40])) > np.diff(ends))


def test_kernels_and_curves_have_intervals_of_predictions(tmp_path):
    """A kernel has no intervals of weights; a saved model gives the same; a schema's columns are encoded."""
    kernel = KernelSVC(classes=[0, 1], n_features=8, length_scale=1.0, **PRIVATE).fit(X, Y)
    ends = kernel.predict_interval(X[:5])
    scores = kernel.decision_function(X[:5])
    assert np.all((ends[:, 0] < scores) & (scores < ends[:, 1]))
    with pytest.raises(ParameterError, match="predict_interval has intervals"):
        kernel.summary()
    kernel.save(tmp_path / "kernel.json")
    assert np.array_equal(confide.load(tmp_path / "kernel.json").predict_interval(X[:5]), ends)
    frame = pd.DataFrame(X, columns=["a", "b"])
    schema = confide.Schema(columns={name: {"low": -0.5, "high": 0.5} for name in "ab"})
    curves = AdditiveRegressor(
        ApproxDP(60.0, 1e-6), schema=schema, loss="poisson", target_bound=8.0, knots=2, inference_share=0.3, random_state=0
    ).fit(frame, COUNTS)
    ends, means = curves.predict_interval(frame[:5]), curves.predict(frame[:5])
    assert np.all((ends[:, 0] < means) & (means < ends[:, 1]))
    assert "low" in curves.effects_.columns
    assert "rate ratio" in str(curves.summary())


def test_a_refit_has_intervals_about_the_target_that_its_prior_pulls():
    """Without noise and with a ridge: those of the covariance, centred at the refit's own predictions."""
    first = LogisticRegression(math.inf, classes=[0, 1], **PLAIN).fit(X[:2000], Y[:2000])
    again = first.refit(X[2000:], Y[2000:])
    rows = np.column_stack([X[:20], np.ones(20)])
    size = np.sqrt(np.sum(rows @ again.covariance().to_numpy() * rows, axis=1))
    ends = logit(again.predict_interval(X[:20]))
    np.testing.assert_allclose(ends.mean(axis=1), again.decision_function(X[:20]), rtol=1e-6)
    np.testing.assert_allclose(np.diff(ends)[:, 0], 2 * 1.959964 * size, rtol=1e-5)


def test_what_cannot_be_asked_is_refused():
    """A model without a share, a level, a target, an unfitted model."""
    plain = LogisticRegression(1.0, classes=[0, 1]).fit(X, Y)
    with pytest.raises(ParameterError, match="set inference_share"):
        plain.predict_interval(X[:2])
    known = LogisticRegression(math.inf, classes=[0, 1], **PLAIN).fit(X, Y)
    with pytest.raises(ParameterError, match="level"):
        known.predict_interval(X[:2], level=1.0)
    with pytest.raises(ParameterError, match="target must be"):
        known.predict_interval(X[:2], target="true")
    with pytest.raises(ValueError, match="not fitted"):
        LogisticRegression().predict_interval(X[:2])


def test_intervals_hold_the_populations_means():
    """60 samples of 2,000 rows, noise as large as sampling: without either part of the error coverage would be below .87."""
    rng = np.random.default_rng(5)
    rows = rng.uniform(-0.5, 0.5, size=(100_000, 2))
    labels = (rng.uniform(size=100_000) < expit(rows @ [2.0, -1.0] + 0.3)).astype(int)
    model = LogisticRegression(PRIVATE["budget"], inference_share=0.3, classes=[0, 1], fit_intercept=True)
    plan = model.plan(2_000, 2)
    truth = LogisticRegression(math.inf, alpha=plan.alpha, classes=[0, 1]).fit(rows, labels).predict_proba(rows[:5])[:, 1]
    hits = []
    for seed in range(60):
        drawn = rng.integers(100_000, size=2_000)
        ends = model.set_params(random_state=seed).fit(rows[drawn], labels[drawn]).predict_interval(rows[:5])
        hits.append((ends[:, 0] <= truth) & (truth <= ends[:, 1]))
    assert 0.91 <= np.mean(hits) <= 0.99
