"""What all linear models have in common: from X and y to a released model, and what it keeps."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

import confide
from confide import InputError, Ledger, LogisticRegression, ParameterError, Ridge, Schema
from confide.estimators.linear_model import (
    document_of_model,
    released_model,
)
from confide.features.encoder import Encoder
from confide.features.fourier import FourierMap
from confide.intake import parameters

X = np.linspace(-0.4, 0.4, 60).reshape(30, 2)
Y = np.arange(30) % 2
SCHEMA = Schema(columns={"age": {"low": 0, "high": 9}}, target={"column": "ill", "negative": "no", "positive": "yes"})


def test_fit_takes_no_other_keyword_than_weights_of_rows():
    """Another one is refused as Python does."""
    with pytest.raises(TypeError, match="'groups'"):
        LogisticRegression().fit(X, Y, groups=Y)


def test_what_a_fit_holds_is_what_it_released():
    """Public attributes, and a value made of them that says the same."""
    model = LogisticRegression(1.0).fit(pd.DataFrame(X, columns=["a", "b"]), Y)
    released = released_model(model)
    assert np.array_equal(released.scoring.coef, model.coef_)
    assert np.array_equal(released.scoring.intercept, model.intercept_)
    assert released.guarantee is model.guarantee_
    assert released.columns.feature_names_in.tolist() == ["a", "b"]
    assert released.domain == (0, 1)


def test_names_of_an_earlier_fit_do_not_stay():
    """As in scikit-learn there is no attribute where X has no names."""
    model = LogisticRegression(1.0).fit(pd.DataFrame(X, columns=["a", "b"]), Y)
    assert model.feature_names_in_.tolist() == ["a", "b"]
    model.fit(X, Y)
    assert not hasattr(model, "feature_names_in_")
    assert model.coefficient_names_.tolist() == ["x0", "x1"]


def test_a_refused_fit_changes_nothing_and_charges_nothing():
    """Not even the number of columns, which scikit-learn's validation records first."""
    ledger = Ledger(limit=9.0)
    model = LogisticRegression(1.0, ledger=ledger).fit(X, Y)
    before = dict(vars(model))
    with pytest.raises(InputError):
        model.fit(np.ones((30, 3)), [*Y[:-1], None])
    assert vars(model) == before
    assert len(ledger.entries()) == 1


def test_a_fit_is_charged_under_the_name_of_its_class():
    """So a ledger tells which fit cost what."""
    ledger = Ledger(limit=9.0)
    LogisticRegression(1.0, ledger=ledger).fit(X, Y)
    Ridge(1.0, target_bound=1.0, ledger=ledger).fit(X, X[:, 0])
    assert ledger.entries()["purpose"].tolist() == ["LogisticRegression.fit", "Ridge.fit"]


def test_all_parameters_are_checked_before_any_row():
    """By `fit` and by `plan` in the same words; the rows need not even be readable."""
    for wrong in ({"alpha": -1.0}, {"mechanism": "none"}, {"n_jobs": 0}, {"max_rows_per_person": 0}, {"row_norm": "1"}):
        messages = set()
        for ask in (lambda model: model.fit(object(), object()), lambda model: model.plan(30, 2)):
            with pytest.raises(ParameterError) as refused:
                ask(LogisticRegression(**wrong))
            messages.add(str(refused.value))
        assert len(messages) == 1


def test_a_specification_knows_no_row():
    """It follows from settings and schema; validation records columns on a copy of the estimator."""
    model = LogisticRegression(
        schema=SCHEMA, class_weight={"no": 1.0, "yes": 2.0}, max_sample_weight=3.0, n_jobs=2, max_rows_per_person=4
    )
    encoder = parameters.checked_schema(SCHEMA)
    asked = model._specification(model._settings(encoder), encoder)
    assert (asked.encoder, asked.row_bound, asked.is_fit) == (encoder, encoder.row_bound, True)
    assert (asked.class_weight, asked.largest_sample_weight) == ((("no", 1.0), ("yes", 2.0)), 3.0)
    assert (asked.n_threads, asked.rows_per_person.most, asked.accepts_sparse) == (2, 4, True)
    assert asked.target.domain == ("no", "yes")
    assert asked.columns_of is not model
    assert asked.columns_of.get_params() == model.get_params()
    assert not confide.KernelSVC()._specification(confide.KernelSVC()._settings(None), None).accepts_sparse


def test_rows_are_scored_by_the_bound_of_the_fit():
    """Whatever the parameter became afterwards."""
    model = LogisticRegression(float("inf"), row_norm=0.1).fit(X, Y)
    before = model.decision_function(5.0 * X)
    model.set_params(row_norm=100.0)
    assert np.array_equal(model.decision_function(5.0 * X), before)


def test_only_a_file_that_is_asked_for_is_replaced(tmp_path):
    """`save` writes the document of the model, and refuses a name that is taken."""
    model = LogisticRegression(1.0).fit(X, Y)
    model.save(tmp_path / "m.json")
    assert json.loads((tmp_path / "m.json").read_text())["content"] == json.loads(json.dumps(document_of_model(model)))
    with pytest.raises(confide.FileError):
        model.save(tmp_path / "m.json")
    model.save(tmp_path / "m.json", overwrite=True)


def test_a_restored_model_is_the_fitted_one_and_warns_before_another_private_fit(tmp_path):
    """It scores alike. Its next fit without a ledger says so once."""
    model = LogisticRegression(1.0).fit(X, Y)
    model.save(tmp_path / "model.json")
    again = confide.load(tmp_path / "model.json")
    assert np.array_equal(again.decision_function(X), model.decision_function(X))
    assert again.guarantee_ == model.guarantee_
    with pytest.warns(confide.BudgetWarning, match="read from a file"):
        again.fit(X, Y)
    again.fit(X, Y)


def may_have_map(model, fourier, n_inputs, encoder):
    """Whether a file with these parameters and this schema may hold this map."""
    return fourier == model._with_features_of(fourier)._fourier_map(n_inputs, encoder)


def test_machines_with_kernels_and_schemas_with_random_features_have_a_map():
    """By their parameters and the schema alone, for so many columns."""
    assert may_have_map(LogisticRegression(), None, 3, None)
    assert may_have_map(LogisticRegression(), None, 3, Encoder(SCHEMA))
    given = {"n_features": 6, "map_seed": 4, "kernel": "laplacian", "length_scale": 2.0}
    fourier = FourierMap(3, 6, "laplacian", 2.0, 4)
    assert may_have_map(confide.KernelSVC(**given), fourier, 3, None)
    for other in ({"n_features": 8}, {"map_seed": 5}, {"kernel": "cauchy"}, {"length_scale": 1.0}):
        assert not may_have_map(confide.KernelSVC(**given | other), fourier, 3, None)
    for automatic in ({"n_features": "auto"}, {"length_scale": "auto"}):
        assert may_have_map(confide.KernelSVC(**given | automatic), fourier, 3, None)
    assert not may_have_map(LogisticRegression(), fourier, 3, None)
    features = {"number": 4, "length_scale": 1.0, "norm": 1.0}
    encoder = Encoder(Schema(SCHEMA.columns, random_features=features))
    assert may_have_map(LogisticRegression(), encoder.appended, encoder.n_features, encoder)
    assert not may_have_map(LogisticRegression(), None, encoder.n_features, encoder)
    assert encoder.appended.n_features == encoder.n_features + 4


def test_scikit_learn_is_told_whether_sparse_rows_will_do():
    """Not with a schema, whose columns have names; and not where random features are made of them."""
    assert LogisticRegression().__sklearn_tags__().input_tags.sparse
    assert not LogisticRegression(schema=SCHEMA).__sklearn_tags__().input_tags.sparse
    assert not confide.KernelSVC().__sklearn_tags__().input_tags.sparse


class Narrow(confide.LogisticRegression):
    """A class of the user's own, whose constructor leaves out parameters that it sets."""

    def __init__(self, budget=1.0, random_state=None):
        super().__init__(budget, row_norm=2.0, class_weight={0: 1.0, 2: 5.0}, random_state=random_state)


def test_parameters_that_a_subclass_hides_count_all_the_same():
    """They are read from the estimator, not from the signature of its constructor."""
    X = np.random.default_rng(0).uniform(-0.5, 0.5, (500, 2))
    with pytest.raises(confide.InputError, match="class_weight"):
        Narrow(1.0).fit(X, (X[:, 0] > 0.0).astype(int))
    assert Narrow(1.0).plan(500, 2).problem.row_norm == pytest.approx(5.0**0.5)


def test_a_file_that_is_not_named_is_asked_for():
    """By an error that says what to write, and not by a bare TypeError."""
    model = LogisticRegression(1.0).fit(X, Y)
    with pytest.raises(confide.ParameterError, match=r"model\.save\('model\.json'\)"):
        model.save()
    with pytest.raises(confide.ParameterError, match=r"model\.report\('report\.html'\)"):
        model.report()
