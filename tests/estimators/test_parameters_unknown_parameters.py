"""A parameter of another library is refused with the name of ours."""

from __future__ import annotations

import inspect

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression as PublicLogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.svm import SVC

import confide
from confide.estimators import parameters
from confide.estimators.parameters import advice_on

ESTIMATORS = (
    "LogisticRegression", "LinearSVC", "KernelSVC", "Ridge", "HuberRegressor", "PoissonRegressor", "ERMClassifier",
    "ERMRegressor", "AdditiveClassifier", "AdditiveRegressor", "RandomFourierFeatures", "PrivateSearchCV",
)  # fmt: skip


@pytest.mark.parametrize(
    ("name", "parameter", "words"),
    [
        ("LogisticRegression", "C", r"C= is not a parameter of LogisticRegression: use alpha: alpha = 1 / \(C n\)"),
        ("KernelSVC", "penalty", "penalty= is not a parameter of KernelSVC: every model has a ridge"),
        ("LinearSVC", "max_iter", "the solver stops where the guarantee needs it"),
        ("LogisticRegression", "gamma", "KernelSVC has one, with length_scale"),
        ("KernelSVC", "gamma", r"use length_scale: gamma = 1 / \(2 length_scale\^2\)"),
        ("RandomFourierFeatures", "gamma", r"use length_scale: gamma = 1 / \(2 length_scale\^2\)"),
        ("RandomFourierFeatures", "n_components", "use n_features"),
        ("LogisticRegression", "multi_class", "use multiclass"),
        ("LogisticRegression", "epsilon", "use budget: a number is an epsilon"),
        ("Ridge", "inference_share", "use intervals=True"),
        ("AdditiveRegressor", "max_bins", "use knots"),
        ("LogisticRegression", "budgte", r"did you mean budget=\?"),
        ("LogisticRegression", "colour", "it has alpha, budget, centre"),
    ],
)
def test_a_parameter_of_another_library_is_refused_with_ours(name, parameter, words):
    """As TypeError, which is what Python raises for an argument that a function does not have."""
    with pytest.raises(TypeError, match=words):
        getattr(confide, name)(**{parameter: 1})


@pytest.mark.parametrize("name", [name for name in ESTIMATORS if name != "PrivateSearchCV"])
def test_no_advice_names_a_parameter_that_is_not_there(name):
    """Every name in the table, for every estimator: what is called ours is one of its own parameters."""
    kind = getattr(confide, name)
    own = set(inspect.signature(kind).parameters)
    for theirs, (ours, advice) in parameters.advice()["ours"].items():
        if theirs not in own and advice in advice_on(theirs, name, own):
            assert own & set(ours.split())
            with pytest.raises(TypeError):
                kind(**{theirs: 1})


@pytest.mark.parametrize("public", [PublicLogisticRegression, SVC])
def test_every_parameter_of_scikit_learn_has_advice(public):
    """None of them is answered with a list of names alone."""
    own = set(inspect.signature(confide.LogisticRegression).parameters)
    for theirs in set(inspect.signature(public).parameters) - own:
        assert "it has alpha" not in advice_on(theirs, "LogisticRegression", own), theirs


def test_every_parameter_of_scikit_learns_search_has_advice():
    own = set(inspect.signature(confide.PrivateSearchCV).parameters)
    for theirs in set(inspect.signature(GridSearchCV).parameters) - own:
        assert "it has budget" not in advice_on(theirs, "PrivateSearchCV", own), theirs


def test_alpha_is_one_over_c_n():
    """The advice is true: without privacy, and without an intercept, both libraries find the same weights."""
    X = np.random.default_rng(0).uniform(-0.5, 0.5, size=(400, 3))
    y = (X[:, 0] + 0.2 * X[:, 1] > 0.1).astype(int)
    ours = confide.LogisticRegression(float("inf"), alpha=1.0 / (2.0 * 400), fit_intercept=False, row_norm=1.0).fit(X, y)
    theirs = PublicLogisticRegression(C=2.0, fit_intercept=False, tol=1e-10, max_iter=1000).fit(X, y)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-4)


def test_gamma_is_that_of_the_length_scale():
    """The advice is true: inner products of the features are the kernel of scikit-learn with this gamma."""
    from sklearn.metrics.pairwise import rbf_kernel

    rows = np.random.default_rng(0).uniform(-1.0, 1.0, size=(5, 2))
    mapped = confide.RandomFourierFeatures(8192, length_scale=0.7, orthogonal=True).fit_transform(rows)
    np.testing.assert_allclose(mapped @ mapped.T, rbf_kernel(rows, gamma=1.0 / (2.0 * 0.7**2)), atol=0.05)


def test_setting_and_searching_say_the_same():
    """Also where scikit-learn sets parameters by name; its own first words stay."""
    with pytest.raises(ValueError, match=r"Invalid parameter 'C'. C= is not a parameter of .*: use alpha"):
        confide.LogisticRegression().set_params(alpha=0.1, C=1.0)
    search = confide.PrivateSearchCV(confide.LogisticRegression(), {"C": [1.0]})
    with pytest.raises(confide.ParameterError, match="use alpha"):
        search.plan(1000, 2)
    with pytest.raises(TypeError, match="held_out says how large it is"):
        confide.PrivateSearchCV(confide.LogisticRegression(), {"alpha": [1.0]}, cv=5)
    assert search.set_params(estimator__alpha=0.5).estimator.alpha == 0.5
