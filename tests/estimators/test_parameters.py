"""Parameters that estimators share: one default, one description, and `__init__` as scikit-learn wants it."""

from __future__ import annotations

import inspect
import re

import pytest
from sklearn.base import BaseEstimator, clone

import confide
from confide.estimators.parameters import ModelParameters, estimator
from confide.parameters import COMMAND_LINE, PARAMETERS

SHARED = {
    "budget": 1.0, "alpha": "auto", "schema": None, "fit_intercept": True, "intercept_scaling": 1.0, "mechanism": "auto",
    "neighbours": "replace-one", "n_rows_bounds": None, "max_rows_per_person": 1, "centre": "auto", "prior": None,
    "ledger": None, "n_jobs": None, "random_state": None,
}  # fmt: skip
FORM = {"row_norm": None, "penalty": None}
WEIGHTS = {"max_sample_weight": 1.0, "mean_sample_weight": None}
DESIGN = {"cluster_effect": None, "population_size": None}
CLASSIFIER = {"classes": None, "class_weight": None} | WEIGHTS
INTERVALS = {"inference_share": 0.0} | DESIGN
SPARSE = {"l1_ratio": 0.0}
TARGET = {"target_bound": None, "target_low": None, "target_high": None}
ADDITIVE = {
    "penalty": None,
    "knots": "auto",
    "interactions": "auto",
    "atoms": "auto",
    "monotone": None,
    "bounds": None,
} | INTERVALS
DEFAULTS = {
    "LogisticRegression": SHARED | CLASSIFIER | FORM | SPARSE | INTERVALS | {
        "multiclass": "softmax", "interest": None, "risk_differences": False,
    },
    "LinearSVC": SHARED | CLASSIFIER | FORM | SPARSE | INTERVALS | {"loss": "auto", "smoothing": 0.5},
    "KernelSVC": SHARED | CLASSIFIER | INTERVALS | {
        "kernel": "rbf", "length_scale": "auto", "n_features": "auto", "feature_norm": "auto", "orthogonal": "auto",
        "map_seed": 0, "loss": "auto", "smoothing": 0.5, "intercept_scaling": 0.5,
    },
    "ERMClassifier": SHARED | CLASSIFIER | FORM | SPARSE | {"loss": "logistic"},
    "Ridge": SHARED | FORM | SPARSE | DESIGN | TARGET | {"intervals": False},
    "HuberRegressor": SHARED | FORM | SPARSE | WEIGHTS | INTERVALS | TARGET | {
        "threshold": "auto", "loss": "huber",
    },
    "PoissonRegressor": SHARED | FORM | SPARSE | WEIGHTS | INTERVALS | TARGET | {
        "threshold": "auto", "intercept_scaling": "auto", "match_mean": "auto", "exposure_range": None,
    },
    "ERMRegressor": SHARED | FORM | SPARSE | WEIGHTS | TARGET | {
        "loss": "huber", "threshold": "auto",
        "intercept_scaling": "auto", "quantile": 0.5, "power": 1.5, "dispersion": 1.0,
    },
    "AdditiveClassifier": SHARED | CLASSIFIER | ADDITIVE | {"loss": "auto"},
    "AdditiveRegressor": SHARED | ADDITIVE | WEIGHTS | TARGET | {
        "loss": "huber", "threshold": "auto", "power": 1.5, "dispersion": 1.0,
        "intercept_scaling": "auto", "match_mean": "auto", "exposure_range": None,
    },
}  # fmt: skip
"""Every parameter of every model with its default. A change here is a breaking change, or a new parameter."""
OTHERS = {
    "PrivateSearchCV": {
        "estimator": inspect.Parameter.empty, "param_grid": inspect.Parameter.empty, "budget": 1.0, "method": "auto",
        "held_out": None, "score_share": 0.0, "clip": None, "expected_tries": None, "ledger": None, "random_state": None,
    },
    "RandomFourierFeatures": {
        "n_features": 256, "kernel": "rbf", "length_scale": 1.0, "orthogonal": False, "random_state": 0,
    },
    "SchemaEncoder": {"schema": inspect.Parameter.empty},
    "CalibratedClassifier": {"model": inspect.Parameter.empty, "evaluation": inspect.Parameter.empty},
}  # fmt: skip
POSITIONAL = {
    "PrivateSearchCV": ["estimator", "param_grid"], "RandomFourierFeatures": ["n_features"], "SchemaEncoder": ["schema"],
    "CalibratedClassifier": ["model", "evaluation"],
}  # fmt: skip
MODELS = pytest.mark.parametrize("name", DEFAULTS)
ALL = pytest.mark.parametrize("name", DEFAULTS | OTHERS)


def parameters_of(kind):
    return inspect.signature(kind).parameters


def test_the_table_knows_every_public_estimator():
    """So a new one comes with its defaults written down."""
    kinds = (getattr(confide, name) for name in confide.__all__)
    estimators = {kind.__name__ for kind in kinds if isinstance(kind, type) and issubclass(kind, BaseEstimator)}
    assert estimators == set(DEFAULTS | OTHERS)


@ALL
def test_names_and_defaults_stay(name):
    """A default that changes unnoticed changes models that were never touched."""
    found = {key: parameter.default for key, parameter in parameters_of(getattr(confide, name)).items()}
    assert found == (DEFAULTS | OTHERS)[name]
    assert {key: type(value) for key, value in found.items()} == {
        key: type(value) for key, value in (DEFAULTS | OTHERS)[name].items()
    }


@ALL
def test_only_the_first_parameters_are_positional(name):
    """The budget of a model; all others go by their name, so that their order may change."""
    kinds = {key: parameter.kind for key, parameter in parameters_of(getattr(confide, name)).items()}
    positional = [key for key, kind in kinds.items() if kind is inspect.Parameter.POSITIONAL_OR_KEYWORD]
    assert positional == POSITIONAL.get(name, ["budget"])
    assert set(kinds.values()) <= {inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY}


@MODELS
def test_a_second_positional_argument_is_refused(name):
    """It would mean another parameter after the next release."""
    kind = getattr(confide, name)
    assert kind(2.0).budget == kind(budget=2.0).budget == 2.0
    with pytest.raises(TypeError, match="positional"):
        kind(2.0, 0.1)
    with pytest.raises(TypeError, match="colour= is not a parameter of"):
        kind(colour="red")


@ALL
def test_a_docstring_describes_every_parameter_once(name):
    """Each of the signature, in the section of parameters, and no other; the mark is gone."""
    kind = getattr(confide, name)
    section = re.search(r"Parameters\n-+\n(.*?)\n(?:Attributes|Returns|Notes)\n-+\n", inspect.getdoc(kind), re.DOTALL)
    described = [
        key.strip() for line in re.findall(r"^([a-z0-9_, ]+) :", section[1], re.MULTILINE) for key in line.split(",")
    ]
    assert sorted(described) == sorted(parameters_of(kind))
    assert "other parameters" not in kind.__doc__


@MODELS
def test_a_default_that_a_docstring_tells_is_the_default(name):
    """Where it says `default`, what follows is what the signature has."""
    kind = getattr(confide, name)
    told = dict(re.findall(r"^([a-z_]+) : .*?, default (.+)$", inspect.getdoc(kind), re.MULTILINE))
    assert len(told) >= 8
    for key, value in told.items():
        assert value.strip('"') == str(DEFAULTS[name][key])


@MODELS
def test_parameters_are_stored_as_they_came(name):
    """Nothing is checked or copied in `__init__`, so that `clone`, `get_params` and `set_params` see the same objects."""
    kind = getattr(confide, name)
    assert kind().get_params() == DEFAULTS[name]
    for key in DEFAULTS[name]:
        marker = object()
        model = kind(**{key: marker})
        assert model.get_params(deep=False)[key] is getattr(model, key) is marker
        assert kind().set_params(**{key: marker}).get_params(deep=False)[key] is marker
    assert set(vars(kind())) == set(DEFAULTS[name])


@MODELS
def test_a_clone_has_the_parameters_and_nothing_else(name):
    """All of them, each other than by default; what a fit left stays behind."""
    kind = getattr(confide, name)
    given = {key: f"another {key}" for key in DEFAULTS[name]}
    model = kind(**given)
    model.coef_ = "fitted"
    again = clone(model)
    assert type(again) is kind
    assert vars(again) == given


@MODELS
def test_estimators_are_told_apart_by_identity(name):
    """A model equals itself alone, and can be a key."""
    kind = getattr(confide, name)
    one, other = kind(), kind()
    assert one != other
    assert len({one, other}) == 2


@estimator
class Described(ModelParameters, BaseEstimator):
    """An estimator.

    Parameters
    ----------
    size : int, default 3
        Its own.
    alpha : float
        Described by itself.
    other parameters : those that linear models share

    Attributes
    ----------
    coef_
    """

    size: int = 3


@MODELS
def test_the_annotation_of_a_constant_says_whether_auto_is_taken(name):
    """The constant of the intercept is a number for all, and "auto" for some."""
    kind = getattr(confide, name)
    facts = {"target_bound": 5.0} if "target_bound" in DEFAULTS[name] else {}
    facts |= {"bounds": (-1, 1)} if "bounds" in DEFAULTS[name] else {}
    model = kind(1.0, intercept_scaling="auto", **facts)
    if "auto" in inspect.signature(kind).parameters["intercept_scaling"].annotation:
        model.plan(1000, 3)
    else:
        with pytest.raises(confide.ParameterError, match="intercept_scaling must be a positive finite number"):
            model.plan(1000, 3)


def test_the_mark_gives_way_to_what_a_docstring_leaves_out():
    """Shared parameters that it describes itself are not described again; the order is that of the signature."""
    text = Described.__doc__
    assert text.count("\nalpha :") == 1
    assert "Described by itself." in text
    shared = [name for name in parameters_of(Described) if name not in ("size", "alpha")]
    places = [text.index(f"\n{name} : {PARAMETERS[name].text}") for name in shared]
    assert places == sorted(places)
    assert text.index("size :") < places[0] < places[-1] < text.index("Attributes")


def test_a_docstring_without_the_mark_stays_as_it_is():
    """And so does a class without one."""

    @estimator
    class Plain(ModelParameters):
        """Nothing more."""

    assert Plain.__doc__ == "Nothing more."


def test_every_shared_parameter_is_somebodys():
    """A description that no public model has would go stale unseen."""
    used = {key for name in (*DEFAULTS, "PrivateSearchCV") for key in parameters_of(getattr(confide, name))}
    assert {row.name for row in PARAMETERS.values() if row.group != COMMAND_LINE} <= used | {"intervals"}
