"""The document of a released model: the release, the public parameters, and nothing else."""

from __future__ import annotations

import json
import re
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
import pytest

import confide
from confide import LogisticRegression
from confide.estimators.linear_model import PrivateLinearModel, document_of_model, released_model
from confide.estimators.parameters import estimator
from confide.models.files import NOT_PARAMETERS_OF_THE_FILE, document_of
from tests.estimators.own_losses import Hyperbola


def test_the_file_holds_the_release_and_public_facts_alone(rows, tmp_path):
    """A closed list of keys: no row count under add-or-remove-one, no iteration counts, no ledger."""
    X, y = rows
    model = LogisticRegression(1.0, neighbours="add-or-remove-one", n_rows_bounds=(1000, 9000)).fit(X[:1777], y[:1777])
    model.save(tmp_path / "m.json")
    text = (tmp_path / "m.json").read_text()
    content = json.loads(text)["content"]
    assert set(content) == {
        "version", "estimator", "parameters", "schema", "row_bound", "fourier_map", "classes", "alpha", "coef", "intercept",
        "coefficient_names", "n_features_in", "feature_names_in", "guarantee", "intervals",
    }  # fmt: skip
    assert not re.search(r"(?<![0-9.e-])1777(?![0-9.])", text)


def test_an_unfitted_model_cannot_be_saved(tmp_path):
    """scikit-learn's NotFittedError."""
    with pytest.raises(ValueError, match="not fitted"):
        LogisticRegression().save(tmp_path / "m.json")


# Parameters

X, Y = np.linspace(-0.4, 0.4, 40).reshape(20, 2), np.arange(20) % 2
PUBLIC = [
    kind
    for kind in (getattr(confide, name) for name in confide.__all__)
    if isinstance(kind, type) and issubclass(kind, PrivateLinearModel)
]
OWN_PARTS = {"ledger", "n_jobs", "random_state", "schema", "row_norm", "classes", "knots", "bounds", "interactions", "prior"}


def fitted(kind, **parameters):
    """A fitted model, with a bound on targets and bounds of columns where they are needed."""
    if "target_bound" in kind().get_params():
        parameters = {"target_bound": 1.0, **parameters}
    if "bounds" in kind().get_params():
        parameters = {"bounds": (-1, 1), **parameters}
    return kind(**parameters).fit(X, Y)


def test_few_parameters_are_left_out_and_each_for_a_reason():
    """A closed list: one machine or one fit, or a part of the file of its own. Whoever adds a name loses it in files."""
    assert NOT_PARAMETERS_OF_THE_FILE == OWN_PARTS


def test_there_is_a_file_of_every_public_model():
    """The list below is not empty, and knows them all."""
    assert {kind.__name__ for kind in PUBLIC} == {
        "LogisticRegression", "LinearSVC", "KernelSVC", "Ridge", "HuberRegressor", "PoissonRegressor", "ERMClassifier",
        "ERMRegressor", "AdditiveClassifier", "AdditiveRegressor",
    }  # fmt: skip


@pytest.mark.parametrize("kind", PUBLIC, ids=lambda kind: kind.__name__)
def test_every_parameter_of_an_estimator_is_written(kind):
    """All that `__init__` takes but those of the closed list, with their values; so no new one can be lost."""
    model = fitted(kind)
    written = document_of_model(model)["parameters"]
    expected = {name: value for name, value in model.get_params(deep=False).items() if name not in OWN_PARTS}
    assert written == expected | {"budget": model.guarantee_.budget.to_dict(), "neighbours": "replace-one"}
    assert json.loads(json.dumps(written)) == written


@estimator
class WithAnother(LogisticRegression):
    """A subclass with a parameter that this library does not know."""

    colour: str = "red"


def test_a_parameter_of_a_subclass_is_written_too():
    """Nothing has to be registered."""
    written = document_of_model(fitted(WithAnother, colour="blue", alpha=0.5))
    assert written["estimator"] == "WithAnother"
    assert written["parameters"]["colour"] == "blue"
    assert written["parameters"]["alpha"] == 0.5


class TupleLoss(NamedTuple):
    """A user's loss that is a tuple, and carries something that is nobody's business."""

    secret: Any = ((0.125, 0.25),)
    lipschitz: float = 1.0
    smoothness: float = 0.5
    monotone: bool = True

    value = Hyperbola.value
    derivative = Hyperbola.derivative
    second_derivative = Hyperbola.second_derivative


VALUES = {
    "a number of NumPy": (np.float32(0.5), 0.5),
    "a whole number of NumPy": (np.int64(3), 3),
    "a flag of NumPy": (np.True_, True),
    "an array": (np.array([1.0, np.inf]), [1.0, "inf"]),
    "infinity": (float("inf"), "inf"),
    "pairs": ((1, np.int64(9)), [1, 9]),
    "a dictionary": ({np.int64(1): 2, "a": np.float64(0.5)}, None),
    "a tuple of the user's": (TupleLoss(), None),
    "text": ("auto", "auto"),
    "nothing": (None, None),
    "an object": (object(), None),
    "a function": (print, None),
}


@pytest.mark.parametrize("name", VALUES)
def test_a_parameter_is_written_as_json_holds_it(name):
    """Numbers of NumPy as numbers, infinity as a word, a list as a list; objects of a user's own as nothing."""
    given, expected = VALUES[name]
    written = document_of("Name", {"some": given}, released_model(fitted(LogisticRegression)))["parameters"]["some"]
    assert written == expected
    assert type(written) is type(expected)
    json.dumps(written, allow_nan=False)


# The other parts


def test_the_budget_and_neighbours_are_those_of_the_guarantee():
    """In one form, whatever form the parameters had."""
    for budget in (2, confide.PureDP(2.0)):
        content = document_of_model(fitted(LogisticRegression, budget=budget, neighbours=confide.Neighbours.REPLACE_ONE))
        assert content["parameters"]["budget"] == confide.PureDP(2.0).to_dict()
        assert content["parameters"]["neighbours"] == "replace-one"


def test_weights_of_a_classifier_are_a_matrix_and_of_a_regressor_a_vector():
    """And so are the intercepts; a regressor has no classes."""
    classifier, regressor = fitted(LogisticRegression), fitted(confide.Ridge)
    content = document_of_model(classifier)
    assert (content["coef"], content["intercept"]) == (classifier.coef_.tolist(), classifier.intercept_.tolist())
    assert content["classes"] == [0, 1]
    content = document_of_model(regressor)
    assert (content["coef"], content["intercept"]) == (regressor.coef_.tolist(), regressor.intercept_)
    assert content["classes"] is None


def test_what_a_model_does_not_have_is_written_as_none():
    """Schema, map, names and intervals stand in every file."""
    content = document_of_model(fitted(LogisticRegression))
    assert {content[name] for name in ("schema", "fourier_map", "feature_names_in", "intervals")} == {None}
    assert (content["n_features_in"], content["coefficient_names"]) == (2, ["x0", "x1"])
    assert document_of_model(fitted(confide.KernelSVC, n_features=4))["fourier_map"]["n_features"] == 4


def test_a_loss_of_the_user_is_never_written_whatever_its_class_derives_from(tmp_path):
    """A tuple, a dict or a number of a derived class is the user's object: None stands in its place."""
    X = np.random.default_rng(0).uniform(-0.5, 0.5, (500, 2))
    path = tmp_path / "model.json"
    confide.ERMClassifier(1.0, loss=TupleLoss(), classes=[False, True]).fit(X, X[:, 0] > 0.0).save(path)
    assert "0.125" not in path.read_text(encoding="utf-8")
    assert confide.load(path).loss is None


def test_weights_of_classes_are_written_from_any_mapping(tmp_path):
    """As pairs, since a key of JSON is text; they are a dict again when they are read."""
    X = np.random.default_rng(0).uniform(-0.5, 0.5, (500, 2))
    weights = MappingProxyType({0: 1.0, 1: np.float64(2.0)})
    model = confide.LogisticRegression(1.0, classes=[0, 1], class_weight=weights).fit(X, (X[:, 0] > 0.0).astype(int))
    model.save(tmp_path / "model.json")
    assert confide.load(tmp_path / "model.json").class_weight == {0: 1.0, 1: 2.0}
