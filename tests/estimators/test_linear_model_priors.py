"""Priors of every kind in every estimator and mechanism; clones, files, statements; and refits."""

from __future__ import annotations

import pickle
from multiprocessing import Pipe

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import minimize
from scipy.special import expit
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import cross_val_score

import confide
from confide import ZCDP, ApproxDP, FederatedRows, FileError, Ledger, ParameterError, PublicPrior, PureDP, Schema
from confide.estimators.linear_model import given_prior
from confide.models.prior import Prior
from tests.data.parties import in_a_thread
from tests.data.tables import SCHEMA, made_up

INFINITE = float("inf")
RNG = np.random.default_rng(0)
X = RNG.uniform(-1, 1, size=(3000, 3)) / 2.0
LABELS = (RNG.uniform(size=3000) < expit(4.0 * X @ [1.0, -2.0, 0.5] + 1.0)).astype(int)
NUMBERS = np.clip(X @ [0.5, -0.2, 0.1] + 0.1 * RNG.normal(size=3000), -1, 1)
COEF, INTERCEPT = np.array([2.0, 1.0, -3.0]), 0.7


def exact(value, alpha, prior, scaling=1.0):
    """Weights (coef, intercept) that minimise a mean loss of scores and alpha / 2 |w - prior|^2, by another solver."""
    rows = np.column_stack([X, np.full(len(X), scaling)])
    centre = np.append(prior[0], prior[1] / scaling)

    def objective(w):
        return value(rows @ w).mean() + 0.5 * alpha * np.sum((w - centre) ** 2)

    found = minimize(objective, centre, method="BFGS", options={"gtol": 1e-8}).x
    return np.append(found[:-1], scaling * found[-1])


def logistic(scores):
    return np.logaddexp(0.0, -np.where(LABELS == 1, 1.0, -1.0) * scores)


def huber(scores, threshold=0.1):
    away = np.abs(NUMBERS - scores)
    return np.where(away <= threshold, 0.5 * away**2, threshold * (away - 0.5 * threshold))


def poisson(scores):
    return np.exp(scores) - (NUMBERS + 1.0) * scores


def weights_of(model):
    return np.append(np.ravel(model.coef_), np.ravel(model.intercept_))


@pytest.mark.parametrize("scaling", [1.0, 0.5])
@pytest.mark.parametrize(
    ("budget", "mechanism"),
    [
        (INFINITE, "auto"),
        (PureDP(1e6), "objective"),
        (ApproxDP(100.0, 1e-2), "objective"),
        (ZCDP(1e6), "objective"),
        (PureDP(1e6), "output"),
        (PureDP(1e6), "output-laplace"),
        (ApproxDP(1e5, 1e-6), "output"),
        (ZCDP(1e9), "output"),
    ],
    ids=str,
)
def test_every_mechanism_pulls_towards_the_prior(budget, mechanism, scaling):
    """Weights are those of another solver with (alpha / 2) |w - prior|^2, to the noise of a huge budget.

    A prior that is ignored, doubled or of the wrong sign moves them by more than 0.5.
    """
    alpha = 0.1
    expected = exact(logistic, alpha, (COEF, INTERCEPT), scaling)
    model = confide.LogisticRegression(
        budget, mechanism=mechanism, alpha=alpha, prior=(COEF, INTERCEPT), intercept_scaling=scaling, row_norm=2.0
    )
    found = weights_of(model.fit(X, LABELS))
    noise = model.plan(3000, 3).noise_norm
    assert noise < 0.1
    assert np.abs(found - expected).max() <= max(1e-5, 5.0 * noise)
    for wrong in (0.0, 2.0, -1.0):
        assert np.linalg.norm(expected - exact(logistic, alpha, (wrong * COEF, wrong * INTERCEPT), scaling)) > 0.5


def test_noisy_gradients_begin_at_the_prior_and_are_pulled_back_to_it():
    """With a large ridge the weights stay at the prior; without one they would stay at 0."""
    given = {"mechanism": "gradient", "alpha": 1e3, "row_norm": 2.0}
    near = confide.LogisticRegression(ZCDP(1e6), prior=(COEF, INTERCEPT), **given).fit(X, LABELS)
    np.testing.assert_allclose(weights_of(near), np.append(np.ravel(COEF), INTERCEPT), atol=0.02)
    plain = confide.LogisticRegression(ZCDP(1e6), **given).fit(X, LABELS)
    np.testing.assert_allclose(weights_of(plain), 0.0, atol=0.02)


@pytest.mark.parametrize(
    ("model", "y", "value"),
    [
        (confide.LinearSVC(INFINITE, loss="logistic_hinge", smoothing=1.0), LABELS, None),
        (confide.LogisticRegression(INFINITE), LABELS, logistic),
        (confide.ERMClassifier(INFINITE, loss="logistic"), LABELS, logistic),
        (confide.HuberRegressor(INFINITE, target_bound=1.0, threshold=0.1), NUMBERS, huber),
        (confide.ERMRegressor(INFINITE, loss="huber", target_bound=1.0, threshold=0.1), NUMBERS, huber),
        (confide.Ridge(INFINITE, target_bound=1.0), NUMBERS, lambda scores: 0.5 * (NUMBERS - scores) ** 2),
        (confide.AdditiveRegressor(INFINITE, target_bound=1.0, loss="squared", bounds=(-1, 1), knots=0), NUMBERS, None),
    ],
    ids=lambda value: type(value).__name__,
)
def test_every_estimator_takes_a_prior(model, y, value):
    """The weights of another solver where the loss is written out here; at a huge alpha the prior itself."""
    if value is not None:
        parameters = {"row_norm": 2.0} if "row_norm" in model.get_params() else {}
        found = weights_of(model.set_params(alpha=0.05, prior=(COEF / 4, INTERCEPT / 4), **parameters).fit(X, y))
        assert np.abs(found - exact(value, 0.05, (COEF / 4, INTERCEPT / 4))).max() <= 1e-4
    found = weights_of(model.set_params(alpha=1e9, prior=(COEF, INTERCEPT)).fit(X, y))
    assert np.abs(found - [*COEF, INTERCEPT]).max() <= 1e-4


@pytest.mark.parametrize("budget", [ApproxDP(1e3, 1e-2), ZCDP(1e6)], ids=str)
def test_noisy_gradients_start_at_the_prior_and_are_pulled_towards_it(budget):
    """They walk from it towards the minimiser of another solver; a huge ridge, or rows of zeros, keep them at the prior."""
    expected, prior = exact(logistic, 0.1, (COEF, INTERCEPT)), np.append(COEF, INTERCEPT)
    model = confide.LogisticRegression(budget, mechanism="gradient", alpha=0.1, prior=(COEF, INTERCEPT), row_norm=2.0)
    found = weights_of(model.fit(X, LABELS))
    assert np.linalg.norm(found - expected) < 0.7 * np.linalg.norm(prior - expected)
    assert np.abs(weights_of(model.set_params(alpha=1e3).fit(X, LABELS)) - prior).max() <= 0.05
    rows = confide.LogisticRegression(budget, mechanism="gradient", alpha=0.1, fit_intercept=False, prior=(COEF, 0.0))
    assert np.abs(rows.fit(np.zeros_like(X), LABELS).coef_ - COEF).max() <= 0.1


def test_gradients_refuse_a_prior_at_which_sums_are_too_inexact():
    """Before the charge, in words."""
    ledger = Ledger(limit=ZCDP(1.0))
    model = confide.LogisticRegression(ZCDP(0.5), mechanism="gradient", prior=(1e15 * COEF, 0.0), ledger=ledger)
    with pytest.raises(ParameterError, match="or give a shorter prior"):
        model.fit(X, LABELS)
    assert len(ledger.entries()) == 0


def test_noisy_sums_pull_towards_the_prior():
    """Weights of private noisy sums lie between those of the rows and the prior, as those without noise do."""
    alpha = 0.1
    expected = exact(lambda scores: 0.5 * (NUMBERS - scores) ** 2, alpha, (COEF, INTERCEPT))
    model = confide.Ridge(ApproxDP(50.0, 1e-3), alpha=alpha, target_bound=1.0, prior=(COEF, INTERCEPT), row_norm=1.0)
    found = weights_of(model.fit(X, NUMBERS))
    assert np.abs(found - expected).max() <= 0.1
    assert np.abs(expected - [*COEF, INTERCEPT]).max() > 0.4
    assert np.abs(expected).max() > 0.4


def test_several_classes_have_a_row_of_prior_weights_each():
    """One joint loss and one against the rest; without data that speak, each class has its own prior."""
    y = np.arange(3000) % 3
    coef, intercept = np.arange(9.0).reshape(3, 3), np.array([-1.0, 0.0, 2.0])
    for model in (
        confide.LogisticRegression(INFINITE),
        confide.LinearSVC(INFINITE),
        confide.KernelSVC(INFINITE, n_features=4),
    ):
        if isinstance(model, confide.KernelSVC):
            coef = np.arange(12.0).reshape(3, 4)
        model.set_params(alpha=1e9, prior=(coef, intercept)).fit(X, y)
        np.testing.assert_allclose(model.coef_, coef, atol=1e-6)
        np.testing.assert_allclose(model.intercept_, intercept, atol=1e-6)
    private = confide.LogisticRegression(PureDP(1e4), alpha=1e4, prior=(np.arange(9.0).reshape(3, 3), intercept))
    np.testing.assert_allclose(private.fit(X, y).coef_, np.arange(9.0).reshape(3, 3), atol=1e-2)


def test_a_prior_that_is_near_makes_small_budgets_better():
    """At epsilon 0.02, weights from other rows halve the distance to those without privacy."""
    target = weights_of(confide.LogisticRegression(INFINITE, alpha=1e-3).fit(X, LABELS))
    apart = {None: [], "near": []}
    for seed in range(10):
        for name, prior in ((None, None), ("near", (target[:-1] + 0.5, target[-1]))):
            model = confide.LogisticRegression(0.02, prior=prior, random_state=seed).fit(X, LABELS)
            apart[name].append(np.linalg.norm(weights_of(model) - target))
    assert np.mean(apart["near"]) < 0.5 * np.mean(apart[None])


def test_a_model_a_file_and_its_numbers_are_the_same_prior(tmp_path):
    """All releases with one seed are equal, to the bit; so is that of the value that a fitted model keeps."""
    before = confide.LogisticRegression(2.0).fit(X[:1000], LABELS[:1000])
    before.save(tmp_path / "before.json")
    forms = [before, str(tmp_path / "before.json"), tmp_path / "before.json", (before.coef_, before.intercept_)]
    fits = [confide.LogisticRegression(1.0, prior=prior, random_state=1).fit(X, LABELS) for prior in forms]
    fits.append(confide.LogisticRegression(1.0, prior=fits[0]._prior, random_state=1).fit(X, LABELS))
    plain = confide.LogisticRegression(1.0, random_state=1).fit(X, LABELS)
    for model in fits:
        assert np.array_equal(model.coef_, fits[0].coef_)
        assert not np.array_equal(model.coef_, plain.coef_)


def test_a_file_that_is_written_anew_is_read_anew(tmp_path):
    """What is remembered of a file is that of the file as it was."""
    path = tmp_path / "before.json"
    found = []
    for rows in (slice(0, 1000), slice(1000, 2000)):
        confide.LogisticRegression(2.0).fit(X[rows], LABELS[rows]).save(path, overwrite=True)
        found.append(given_prior(path).coef)
        assert given_prior(path).coef == found[-1]
    assert found[0] != found[1]


@pytest.mark.parametrize(
    "prior",
    [3, (1, 2, 3), "a", PublicPrior(None), PublicPrior(3), np.ones(2), {"coef": 1}, PublicPrior(PublicPrior("a"))],
    ids=repr,
)
def test_other_things_are_refused_before_the_charge(prior):
    """One line says what a prior can be, or that there is no such file."""
    ledger = Ledger(limit=1.0)
    with pytest.raises(
        (ParameterError, FileError),
        match=r"prior must be a fitted model|cannot read a|a prior of signs names columns of a schema",
    ):
        confide.LogisticRegression(0.5, prior=prior, ledger=ledger).fit(X, LABELS)
    assert len(ledger.entries()) == 0


def test_an_unfitted_model_is_no_prior():
    """As scikit-learn says it."""
    with pytest.raises(NotFittedError):
        confide.LogisticRegression(1.0, prior=confide.LogisticRegression()).fit(X, LABELS)


@pytest.mark.parametrize("void", [{"budget": INFINITE}, {"budget": 1.0, "random_state": 3}], ids=str)
def test_a_model_without_a_guarantee_must_be_declared_public(void):
    """Otherwise plan and fit refuse it before the charge; a fit that promises nothing takes it as it is."""
    before = confide.LogisticRegression(**void).fit(X, LABELS)
    ledger = Ledger(limit=10.0)
    refused = confide.LogisticRegression(1.0, prior=before, ledger=ledger)
    for call in (
        lambda: refused.fit(X, LABELS),
        lambda: refused.plan(3000, 3),
        lambda: before.refit(X, LABELS, budget=1.0, random_state=None),
    ):
        with pytest.raises(ParameterError, match=r"If these rows are public, say so: prior=confide\.PublicPrior\(model\)"):
            call()
    assert len(ledger.entries()) == 0
    model = confide.LogisticRegression(1.0, prior=PublicPrior(before), ledger=ledger).fit(X, LABELS)
    assert "declared public" in model.guarantee_.statement()
    assert model.guarantee_.void is None
    assert (
        "a model without a guarantee"
        in confide.LogisticRegression(INFINITE, prior=before).fit(X, LABELS).guarantee_.statement()
    )


def test_models_of_other_classes_columns_or_kinds_are_refused():
    """Each with its reason, before the charge."""
    before = confide.LogisticRegression(1.0).fit(X, LABELS)
    ledger = Ledger(limit=10.0)
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    schema = Schema(columns={name: {"low": -1, "high": 1} for name in "abc"})
    named = confide.LogisticRegression(1.0).fit(frame, LABELS)
    by_schema = confide.LogisticRegression(1.0, schema=schema).fit(frame, LABELS)
    curved = Schema(columns={name: {"low": -1, "high": 1, "knots": 3} for name in "abc"})
    kernel = confide.KernelSVC(1.0, n_features=8).fit(X, LABELS)
    cases = [
        (before, {}, X, np.array(["u", "v"])[LABELS], "the model of other classes"),
        (before, {}, X, np.arange(3000) % 3, "the model of other classes"),
        (before, {}, X[:, :2], LABELS, "1 score of 3 columns, and this fit has 1 of 2"),
        (named, {}, frame[["b", "a", "c"]], LABELS, "the names that its rows had"),
        (before, {"schema": schema}, frame, LABELS, "fitted without a schema"),
        (by_schema, {}, X, LABELS, "fitted with a schema"),
        (by_schema, {"schema": curved}, frame, LABELS, "Give the schema of the prior's model"),
        (kernel, {}, X, LABELS, "same kernel"),
        (before, {"fit_intercept": False}, X, LABELS, "set fit_intercept to True"),
    ]
    for prior, parameters, rows, labels, message in cases:
        with pytest.raises(ParameterError, match=message):
            confide.LogisticRegression(1.0, prior=prior, ledger=ledger, **parameters).fit(rows, labels)
    with pytest.raises(ParameterError, match="one predicts classes and the other numbers"):
        confide.HuberRegressor(1.0, target_bound=1.0, prior=before, ledger=ledger).fit(X, NUMBERS)
    with pytest.raises(ParameterError, match="same kernel"):
        confide.KernelSVC(1.0, n_features=8, length_scale=2.0, prior=kernel, ledger=ledger).fit(X, LABELS)
    with pytest.raises(ParameterError, match="same kernel"):
        confide.KernelSVC(1.0, n_features=8, length_scale=2.0, prior=kernel).plan(3000, 3)
    assert len(ledger.entries()) == 0
    again = confide.KernelSVC(1.0, n_features=8, prior=kernel, alpha=1e4).fit(X, LABELS)
    np.testing.assert_allclose(again.coef_, kernel.coef_, atol=1e-4)
    confide.LogisticRegression(1.0, schema=schema, prior=by_schema).fit(frame, LABELS)


def test_clones_share_the_prior_and_parameters_hide_its_own():
    """A clone of a model that is a prior would lose its weights; scikit-learn's searches clone."""
    before = confide.LogisticRegression(1.0).fit(X, LABELS)
    model = confide.LogisticRegression(INFINITE, prior=before, alpha=1e9)
    for copied in (clone(model), clone(clone(model))):
        assert copied.prior is before
        assert copied.get_params(deep=False) == model.get_params(deep=False)
    assert model.prior is before
    assert not [name for name in model.get_params() if name.startswith("prior__")]
    assert cross_val_score(model, X, LABELS, cv=2).shape == (2,)
    again = pickle.loads(pickle.dumps(model.fit(X, LABELS)))
    assert np.array_equal(again.prior.coef_, before.coef_)


@pytest.mark.parametrize("kind", ["numbers", "release", "public"])
def test_a_prior_is_in_the_file_of_the_model(tmp_path, kind):
    """Loading gives it back, and a fit with it is the fit with what was given."""
    before = confide.LogisticRegression(2.0).fit(X[:1000], LABELS[:1000])
    prior = {"numbers": (before.coef_, before.intercept_), "release": before, "public": PublicPrior(before)}[kind]
    model = confide.LogisticRegression(1.0, prior=prior).fit(X, LABELS)
    model.save(tmp_path / "model.json")
    again = confide.load(tmp_path / "model.json")
    assert again.prior == model._prior
    assert again.get_params()["prior"].source == {"numbers": "coefficients"}.get(kind, kind)
    again.save(tmp_path / "again.json")
    assert (tmp_path / "again.json").read_text() == (tmp_path / "model.json").read_text()
    fits = [each.set_params(random_state=5, ledger=Ledger(limit=5.0)).fit(X, LABELS) for each in (model, again)]
    assert np.array_equal(fits[0].coef_, fits[1].coef_)
    if kind != "numbers":
        with pytest.raises(ParameterError, match="other classes"):
            again.set_params(classes=[0, 1, 2]).fit(X, np.arange(3000) % 3)


def test_a_refit_is_a_new_model_charged_to_the_ledger_of_the_first():
    """Its prior is the first release, its statement says that both are charged there; the first stays as it is."""
    ledger = Ledger(limit=PureDP(2.0))
    first = confide.LogisticRegression(1.0, ledger=ledger).fit(X[:2000], LABELS[:2000])
    coef = first.coef_.copy()
    second = first.refit(X[2000:], LABELS[2000:], budget=0.25)
    assert len(ledger.entries()) == 2
    assert ledger.remaining().epsilon == 0.75
    assert (second.budget, second.ledger, first.budget, first.prior) == (0.25, ledger, 1.0, None)
    assert np.array_equal(first.coef_, coef)
    assert second.prior.coef == tuple(map(tuple, coef.tolist()))
    assert "epsilon = 1 (replace-one). That release was charged to the same ledger." in second.guarantee_.statement()
    third = second.refit(X, LABELS, budget=0.25, ledger=Ledger(limit=1.0))
    assert "its cost adds to that of this one" in third.guarantee_.statement()
    assert third.prior.fitted_to is not None
    with pytest.raises(confide.BudgetExceeded):
        second.refit(X, LABELS, budget=0.8)
    # Not a chain of all earlier models.
    assert not hasattr(third.prior, "prior")


def test_a_refit_pulls_towards_the_release_and_takes_weights_of_rows_and_classes():
    """At a huge alpha it is the release; rows of one class alone may come, for the classes are those of the release."""
    first = confide.LogisticRegression(5.0, max_sample_weight=2.0).fit(X, LABELS)
    second = first.refit(X[LABELS == 1], LABELS[LABELS == 1], alpha=1e4, sample_weight=np.full(LABELS.sum(), 2.0))
    np.testing.assert_allclose(second.coef_, first.coef_, atol=1e-3)
    assert second.classes_.tolist() == [0, 1]
    with pytest.raises(NotFittedError):
        confide.LogisticRegression().refit(X, LABELS)
    with pytest.raises(ValueError, match="Invalid parameter 'budgte'"):
        first.refit(X, LABELS, budgte=1.0)


def test_a_model_from_a_file_names_no_ledger_so_a_refit_asks_for_one(tmp_path):
    """One line; `ledger=None` says that there is none."""
    ledger = Ledger(tmp_path / "study.db", limit=2.0)
    confide.LogisticRegression(1.0, ledger=ledger).fit(X, LABELS).save(tmp_path / "model.json")
    model = confide.load(tmp_path / "model.json")
    with pytest.raises(ParameterError, match=r"files name no ledger. Give the ledger of these rows to refit"):
        model.refit(X, LABELS)
    assert len(ledger.entries()) == 1
    assert model.refit(X, LABELS, budget=0.5, ledger=ledger).ledger is ledger
    assert len(ledger.entries()) == 2
    assert model.refit(X, LABELS, ledger=None).ledger is None
    assert model.refit(X, LABELS, budget=INFINITE).guarantee_.void is not None


def test_the_same_ledger_is_recognised_by_its_identity(tmp_path):
    """Two objects of one file are one ledger."""
    one = Ledger(tmp_path / "study.db", limit=3.0)
    first = confide.LogisticRegression(1.0, ledger=one).fit(X, LABELS)
    second = confide.LogisticRegression(1.0, ledger=Ledger(tmp_path / "study.db"), prior=first).fit(X, LABELS)
    assert "charged to the same ledger" in second.guarantee_.statement()
    # What counts is the ledger of the fit, not one that was named afterwards.
    later = confide.LogisticRegression(1.0).fit(X, LABELS).set_params(ledger=one)
    third = confide.LogisticRegression(1.0, ledger=one, prior=later).fit(X, LABELS)
    assert "same ledger" not in third.guarantee_.statement()


def test_parties_know_nothing_of_the_prior():
    """The coordinator adds the linear term: the model is that of all rows in memory, and parties agree without it."""
    frame = made_up()
    before = confide.LogisticRegression(2.0, schema=SCHEMA, random_state=1).fit(frame, frame["ill"])
    model = confide.LogisticRegression(2.0, schema=SCHEMA, random_state=3, prior=before)
    ours, theirs = Pipe()
    thread, caught = in_a_thread(theirs, confide.LogisticRegression(schema=SCHEMA), frame)
    model.fit(FederatedRows(SCHEMA, [ours]))
    thread.join(60)
    assert caught == []
    federated = model.coef_
    np.testing.assert_allclose(federated, model.fit(frame, frame["ill"]).coef_, atol=1e-5)
    assert np.abs(federated - clone(model).set_params(prior=None).fit(frame, frame["ill"]).coef_).max() > 0.01


def test_a_search_has_one_prior_for_all_candidates():
    """Its statement says so; a grid cannot vary it."""
    before = confide.LogisticRegression(1.0).fit(X, LABELS)
    inner = confide.LogisticRegression(prior=before)
    search = confide.PrivateSearchCV(inner, {"alpha": [1e3, 1e4]}, budget=5.0).fit(X, LABELS)
    np.testing.assert_allclose(search.best_estimator_.coef_, before.coef_, atol=1e-2)
    assert "The ridge pulls the weights towards a public prior" in search.guarantee_.statement()
    with pytest.raises(ParameterError, match="param_grid cannot vary prior"):
        confide.PrivateSearchCV(inner, {"prior": [None, before]}, budget=5.0).fit(X, LABELS)
    with pytest.raises(ParameterError, match="other classes"):
        confide.PrivateSearchCV(inner, {"alpha": [1.0, 2.0]}, budget=5.0).fit(X, np.array(["u", "v"])[LABELS])


def test_a_prior_is_public_and_its_value_shows_no_rows():
    """What a fitted model keeps of it is weights, a guarantee and public facts."""
    model = confide.LogisticRegression(1.0, prior=confide.LogisticRegression(1.0).fit(X, LABELS)).fit(X, LABELS)
    assert type(model._prior) is Prior
    assert set(model._prior.to_dict()) == {"source", "coef", "intercept", "guarantee", "of_model"}
