"""Models as files: the release and its public configuration, nothing else."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Collection
from typing import Any

import numpy as np

from confide._version import __version__
from confide.erm.group_bounds import GroupBound
from confide.erm.row_bounds import BallBound, RowBound
from confide.errors import ConfideError, FileError
from confide.estimators.erm import ERMClassifier, ERMRegressor
from confide.estimators.linear import LinearClassifier
from confide.estimators.linear_regression import LinearRegressor
from confide.estimators.logistic import LogisticRegression
from confide.estimators.loss_regression import HuberRegressor, PoissonRegressor
from confide.estimators.parameters import MOST_CLASSES
from confide.estimators.regression import Ridge
from confide.estimators.svm import KernelSVC, LinearSVC
from confide.features.encoder import Encoder
from confide.features.fourier import FourierMap
from confide.features.schema import Schema
from confide.files import read_document, write_document
from confide.guarantee import Guarantee
from confide.inference.evidence import Evidence
from confide.inference.least_squares import SumsEvidence
from confide.privacy.budgets import budget_from_dict

_CLASSIFIERS: dict[str, type[LinearClassifier]] = {
    "LogisticRegression": LogisticRegression,
    "LinearSVC": LinearSVC,
    "KernelSVC": KernelSVC,
    "ERMClassifier": ERMClassifier,
}
_REGRESSORS: dict[str, type[LinearRegressor]] = {
    "Ridge": Ridge,
    "HuberRegressor": HuberRegressor,
    "PoissonRegressor": PoissonRegressor,
    "ERMRegressor": ERMRegressor,
}
_OWN_PARAMETERS = (
    "multiclass",
    "loss",
    "smoothing",
    "kernel",
    "length_scale",
    "n_features",
    "orthogonal",
    "map_seed",
    "target_bound",
    "threshold",
    "max_sample_weight",
    "inference_share",
    "intervals",
)
"""Parameters that some estimators have, by name."""
_PARTS = {
    "version", "estimator", "parameters", "schema", "row_bound", "fourier_map", "classes", "alpha", "coef", "intercept",
    "coefficient_names", "n_features_in", "feature_names_in", "guarantee", "intervals",
}  # fmt: skip
_PARAMETERS = {
    "budget", "alpha", "fit_intercept", "intercept_scaling", "mechanism", "neighbours", "n_rows_bounds",
}  # fmt: skip
_LATER_PARAMETERS = {"max_rows_per_person", "class_weight", "max_sample_weight"}
"""Those that the first version did not write."""


def save_model(model: LinearClassifier | LinearRegressor, path: str | os.PathLike[str], *, overwrite: bool = False) -> None:
    """Write a fitted model; see `LinearClassifier.save`."""
    write_document(path, content_of(model), overwrite=overwrite)


def content_of(model: LinearClassifier | LinearRegressor) -> dict[str, Any]:
    """What the file of a fitted model holds: JSON values."""
    from sklearn.utils.validation import check_is_fitted

    check_is_fitted(model)
    guarantee = model.guarantee_
    names = getattr(model, "feature_names_in_", None)
    encoder: Encoder | None = model._encoder
    own = model.get_params(deep=False)
    return {
        "version": __version__,
        "estimator": type(model).__name__,
        "parameters": {
            "budget": guarantee.budget.to_dict(),
            "alpha": model.alpha if model.alpha == "auto" else float(model.alpha),
            "fit_intercept": bool(model.fit_intercept),
            "intercept_scaling": float(model.intercept_scaling),
            "mechanism": model.mechanism,
            "neighbours": str(guarantee.neighbours),
            **{name: _written(getattr(model, name)) for name in _OWN_PARAMETERS if name in own},
            "max_rows_per_person": int(model.max_rows_per_person),
            **(_class_weight_of(model) if isinstance(model, LinearClassifier) else {}),
            "n_rows_bounds": None if model.n_rows_bounds is None else [int(n) for n in model.n_rows_bounds],
        },
        "schema": None if encoder is None else encoder.schema.to_dict(),
        "row_bound": model._row_bound.to_dict(),
        **_classes_of(model),
        "alpha": model.alpha_,
        "coef": model.coef_.tolist(),
        "intercept": np.asarray(model.intercept_).tolist(),
        "coefficient_names": [str(name) for name in model.coefficient_names_],
        "n_features_in": int(model.n_features_in_),
        "feature_names_in": None if names is None else [str(name) for name in names],
        "guarantee": guarantee.to_dict(),
        "intervals": None if model._evidence is None else model._evidence.to_dict(),
    }


def _written(value: Any) -> Any:
    """A parameter as JSON can hold it; a loss of the user's own it cannot."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return "inf"
    return value if isinstance(value, (str, bool, int, float)) else None


def _class_weight_of(model: LinearClassifier) -> dict[str, Any]:
    weights = model.class_weight
    return {
        "class_weight": None
        if weights is None
        else [[label.item() if isinstance(label, np.generic) else label, float(weight)] for label, weight in weights.items()]
    }


def _classes_of(model: LinearClassifier | LinearRegressor) -> dict[str, Any]:
    if isinstance(model, LinearRegressor):
        return {"fourier_map": None, "classes": None}
    return {
        "fourier_map": None if model._fourier is None else model._fourier.to_dict(),
        "classes": model.classes_.tolist(),
    }


def load(path: str | os.PathLike[str]) -> LinearClassifier | LinearRegressor:
    """Read a model written by `save`.

    Parameters
    ----------
    path : path of the file

    Returns
    -------
    A fitted estimator that predicts and states its guarantee. It has no ledger: before a private fit of it without one, a
    `BudgetWarning` says so.

    Raises
    ------
    FileError
        If the file is missing, damaged, of another kind, or not understood.
    """
    content = read_document(path)
    try:
        _check_keys(content, _PARTS, since_first={"fourier_map", "intervals"})
        model = _restored(content)
        if not _says_again(json.loads(json.dumps(content_of(model))), content):
            raise FileError("the file holds parts that do not fit each other, or that this version does not understand.")
        return model
    except FileError:
        raise
    except (KeyError, TypeError, ValueError, IndexError, AttributeError, ConfideError):
        raise FileError(f"{path} lacks parts of a model, or holds parts that this version does not understand.") from None


def _says_again(written: Any, read: Any, name: str = "") -> bool:
    """Whether a restored model would write all that was read: what it leaves out, or says otherwise, was not understood."""
    if isinstance(written, dict) and isinstance(read, dict):
        return all(key in written and _says_again(written[key], value, key) for key, value in read.items())
    # The first version wrote a budget as a number; each writes its own version.
    return written == read or (name in ("version", "budget") and not isinstance(read, dict))


def _restored(content: dict[str, Any]) -> LinearClassifier | LinearRegressor:
    name = content["estimator"]
    if name not in _CLASSIFIERS and name not in _REGRESSORS:
        raise FileError("the file holds a kind of model that this version of confide does not understand.")
    kind: Any = {**_CLASSIFIERS, **_REGRESSORS}[name]
    own = set(_OWN_PARAMETERS) & set(kind().get_params())
    parameters = dict(content["parameters"])
    _check_keys(parameters, _PARAMETERS | _LATER_PARAMETERS | own, since_first=_LATER_PARAMETERS | own)
    if isinstance(parameters["budget"], dict):
        parameters["budget"] = budget_from_dict(parameters["budget"])
    else:  # as the first version wrote it
        parameters["budget"] = math.inf if parameters["budget"] == "inf" else parameters["budget"]
    if parameters["n_rows_bounds"] is not None:
        parameters["n_rows_bounds"] = tuple(parameters["n_rows_bounds"])
    schema = None if content["schema"] is None else Schema.from_dict(content["schema"])
    row_bound = row_bound_from_dict(content["row_bound"])
    fourier = None if content.get("fourier_map") is None else FourierMap.from_dict(content["fourier_map"])
    if fourier is None:
        parameters["row_norm"] = None if schema is not None else row_bound
    parameters["schema"] = schema
    model: LinearClassifier | LinearRegressor
    is_regressor = name in _REGRESSORS
    model = _regressor(name, parameters, content) if is_regressor else _classifier(name, parameters, content, fourier)
    model.coef_ = _finite(content["coef"])
    model.alpha_ = float(_finite(content["alpha"]))
    model.guarantee_ = Guarantee.from_dict(content["guarantee"])
    model.coefficient_names_ = np.array(content["coefficient_names"], dtype=object)
    model.n_features_in_ = int(content["n_features_in"])
    if content["feature_names_in"] is not None:
        model.feature_names_in_ = np.array(content["feature_names_in"], dtype=object)
    model._encoder = None if schema is None else Encoder(schema)
    model._row_bound = row_bound
    model._was_loaded = True
    model._evidence = None if content.get("intervals") is None else _evidence_of(content["intervals"])
    if model.guarantee_.void is None and not model.guarantee_.budget.is_private:
        raise FileError("the model claims a guarantee that an infinite budget cannot give.")
    if not isinstance(model.guarantee_.void, str | None):
        raise FileError("the parts of the model are not of the right kind.")
    width = len(model.coefficient_names_)
    if model.coef_.shape != ((width,) if is_regressor else (np.size(model.intercept_), width)):
        raise FileError("the parts of the model do not fit each other.")
    if model._evidence is not None and not _fits(model._evidence, model):
        raise FileError("the parts of the model do not fit each other.")
    row_bound.check_width(width)
    if (
        fourier is None
        and model._encoder is not None
        and tuple(model._encoder.feature_names) != tuple(content["coefficient_names"])
    ):
        raise FileError("the columns of the schema do not match the coefficients.")
    return model


def _evidence_of(value: dict[str, Any]) -> Evidence | SumsEvidence:
    return SumsEvidence.from_dict(value) if value.get("kind") == "sums" else Evidence.from_dict(value)


def _fits(evidence: Evidence | SumsEvidence, model: LinearClassifier | LinearRegressor) -> bool:
    """Whether what intervals are made of speaks of the weights of this model."""
    coefficients = np.atleast_2d(model.coef_)
    n_vectors, width = coefficients.shape
    if isinstance(evidence, Evidence) and evidence.n_outputs != n_vectors:
        return False
    weights, constant = evidence.weights.reshape(n_vectors, -1), evidence.intercept
    intercept = constant * weights[:, width:].ravel() if constant > 0.0 else np.zeros(n_vectors)
    return np.array_equal(weights[:, :width], coefficients) and np.array_equal(intercept, np.ravel(model.intercept_))


def _classifier(
    name: str, parameters: dict[str, Any], content: dict[str, Any], fourier: FourierMap | None
) -> LinearClassifier:
    """The estimator with what classifiers alone have."""
    if parameters.get("class_weight") is not None:
        parameters["class_weight"] = dict(parameters["class_weight"])
    classes, schema = content["classes"], parameters["schema"]
    declares_labels = schema is not None and schema.target is not None
    model = _CLASSIFIERS[name](**parameters, classes=None if declares_labels else classes)
    model.intercept_ = _finite(content["intercept"])
    model.classes_ = np.array(classes)
    model._fourier = fourier
    n_classes = model.classes_.size
    if model.classes_.ndim != 1 or not 2 <= n_classes <= MOST_CLASSES:
        raise FileError("the parts of the model are not of the right kind.")
    if model.intercept_.shape != (1 if n_classes == 2 else n_classes,):
        raise FileError("the parts of the model do not fit each other.")
    if fourier is not None:
        fits = fourier == model._fourier_map(fourier.n_inputs)
        if not fits or fourier.row_bound != row_bound_from_dict(content["row_bound"]):
            raise FileError("the parts of the model do not fit each other.")
    return model


def _regressor(name: str, parameters: dict[str, Any], content: dict[str, Any]) -> LinearRegressor:
    """The estimator with what regressors alone have."""
    if parameters["target_bound"] == "inf":
        parameters["target_bound"] = math.inf
    model = _REGRESSORS[name](**parameters)
    intercept = _finite(content["intercept"])
    if intercept.shape != ():
        raise FileError("the parts of the model do not fit each other.")
    model.intercept_ = float(intercept)
    return model


def _check_keys(value: dict[str, Any], known: set[str], since_first: Collection[str] = ()) -> None:
    """Refuse parts that are unknown or missing. The names of unknown ones are not shown: they are no names of ours."""
    missing = known - set(since_first) - set(value)
    if missing:
        raise FileError(f"the file lacks parts of a model: {', '.join(sorted(missing))}.")
    if set(value) - known:
        raise FileError(
            "the file holds parts that this version of confide does not understand, and to leave them out could change the "
            "model. Use the version that wrote it, or a newer one."
        )


def row_bound_from_dict(value: dict[str, Any]) -> RowBound:
    """Read the form that a row bound writes."""
    if value["kind"] == "ball":
        _check_keys(value, {"kind", "norm"})
        return BallBound(math.inf if value["norm"] == "inf" else float(value["norm"]))
    if value["kind"] == "groups":
        _check_keys(value, {"kind", "sizes", "scales", "linked"}, since_first={"linked"})
        return GroupBound(tuple(value["sizes"]), tuple(value["scales"]), tuple(value.get("linked", ())))
    raise FileError("the file holds a row bound that this version of confide does not understand.")


def _finite(values: Any) -> Any:
    array = np.array(values, dtype=np.float64)
    if not np.isfinite(array).all():
        raise FileError("the model holds weights that are not finite.")
    return array
