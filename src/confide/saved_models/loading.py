"""Reads models from files: their parts are checked against each other, and a fitted estimator is made of them."""

from __future__ import annotations

import importlib
import json
import math
import os
from collections.abc import Collection
from typing import Any

import numpy as np

from confide.erm.group_bounds import GroupBound
from confide.erm.row_bounds import BallBound, RowBound
from confide.errors import ConfideError, FileError
from confide.estimators.linear_classifier import LinearClassifier
from confide.estimators.linear_model import PrivateLinearModel, document_of_model, may_have_map, restore
from confide.estimators.linear_regressor import LinearRegressor
from confide.features.encoder import Encoder
from confide.features.public_maps import map_from_dict
from confide.features.schema import Schema
from confide.files import read_document
from confide.guarantee import Guarantee
from confide.inference.evidence import Evidence
from confide.inference.least_squares import SumsEvidence
from confide.intake.specification import Columns
from confide.intake.targets import MOST_CLASSES
from confide.privacy.budgets import budget_from_dict
from confide.released_models.model import ReleasedModel
from confide.released_models.scores import LinearModel
from confide.saved_models.writing import NOT_PARAMETERS_OF_THE_FILE

_PARTS = {
    "version", "estimator", "parameters", "schema", "row_bound", "fourier_map", "classes", "alpha", "coef", "intercept",
    "coefficient_names", "n_features_in", "feature_names_in", "guarantee", "intervals",
}  # fmt: skip
_PARTS_OF_LATER_VERSIONS = {"fourier_map", "intervals"}
"""Parts that files of the first version do not have."""
_PARAMETERS_OF_EVERY_VERSION = {
    "budget", "alpha", "fit_intercept", "intercept_scaling", "mechanism", "neighbours", "n_rows_bounds",
}  # fmt: skip
_DO_NOT_FIT = "the parts of the model in the file do not fit each other. Use a file that was written by save and not edited."
_WRONG_KIND = "a part of the model in the file is not of the right kind. Use a file that was written by save and not edited."


def load(path: str | os.PathLike[str]) -> LinearClassifier | LinearRegressor:
    """Read a model that was written by `save`.

    Parameters
    ----------
    path : str or path
        The file to read.

    Returns
    -------
    estimator
        A fitted classifier or regressor, which predicts and states its guarantee. It has no ledger; if it is fitted again
        without one, a `BudgetWarning` says so.

    Raises
    ------
    FileError
        If the file is missing, damaged, of another kind, or from a version that this version does not understand.
    """
    content = read_document(path)
    try:
        _check_keys(content, _PARTS, optional=_PARTS_OF_LATER_VERSIONS)
        model = _restored(content)
        # Whatever this version did not understand would be lost without a word. So write the model again and compare.
        if not _is_reproduced(json.loads(json.dumps(document_of_model(model))), content):
            raise FileError(
                "the file holds parts that do not fit each other, or that this version of confide does not understand. Use "
                "the version that wrote the file, or a newer one."
            )
        return model
    except FileError:
        raise
    except (KeyError, TypeError, ValueError, IndexError, AttributeError, ConfideError):
        raise FileError(f"{path} lacks parts of a model, or holds parts that this version does not understand.") from None


def _is_reproduced(written: Any, read: Any, name: str = "") -> bool:
    """Whether a restored model writes everything that was read. What it leaves out or changes was not understood."""
    if isinstance(written, dict) and isinstance(read, dict):
        return all(key in written and _is_reproduced(written[key], value, key) for key, value in read.items())
    # Two differences are allowed: every version writes its own number, and the first one wrote a budget as a number.
    return written == read or (name in ("version", "budget") and not isinstance(read, dict))


def _restored(content: dict[str, Any]) -> LinearClassifier | LinearRegressor:
    kind, released = _kind(content["estimator"]), _released(content)
    known = set(kind().get_params(deep=False)) - NOT_PARAMETERS_OF_THE_FILE
    parameters = dict(content["parameters"])
    _check_keys(parameters, known, optional=known - _PARAMETERS_OF_EVERY_VERSION)
    model: LinearClassifier | LinearRegressor = kind(**_read_parameters(parameters), **_other_parameters(kind, released))
    if issubclass(kind, LinearClassifier) == (not released.domain):
        raise FileError(_WRONG_KIND)
    fourier, encoder = released.fourier, released.encoder
    n_inputs = released.columns.n_features_in if encoder is None else encoder.n_features
    if not may_have_map(model, fourier, n_inputs, encoder):
        raise FileError(_DO_NOT_FIT)
    if fourier is not None and not fourier.may_have(released.scoring.row_bound):
        raise FileError(_DO_NOT_FIT)
    restore(model, released)
    return model


def _kind(name: Any) -> type[Any]:
    """The public estimator with this name."""
    package = importlib.import_module("confide")
    kind = getattr(package, name) if isinstance(name, str) and name in package.__all__ else None
    if not isinstance(kind, type) or not issubclass(kind, PrivateLinearModel):
        raise FileError(
            "the file holds a kind of model that this version of confide does not know. Use the version that wrote the "
            "file, or a newer one."
        )
    return kind


def _read_parameters(written: dict[str, Any]) -> dict[str, Any]:
    """The parameters that a file lists, in the form that the constructor takes."""
    read = {name: math.inf if value == "inf" else value for name, value in written.items()}
    if isinstance(written["budget"], dict):  # the first version wrote a number
        read["budget"] = budget_from_dict(written["budget"])
    if written["n_rows_bounds"] is not None:
        read["n_rows_bounds"] = tuple(written["n_rows_bounds"])
    for name in ("class_weight", "monotone"):
        if written.get(name) is not None:
            read[name] = dict(written[name])
    return read


def _other_parameters(kind: type[Any], released: ReleasedModel) -> dict[str, Any]:
    """The parameters that have their own parts in the file: schema, bound on rows, and classes."""
    schema = released.schema
    others: dict[str, Any] = {"schema": schema}
    if released.fourier is None and "row_norm" in kind().get_params(deep=False):
        others["row_norm"] = released.scoring.row_bound if schema is None else None
    if issubclass(kind, LinearClassifier):
        others["classes"] = None if schema is not None and schema.target is not None else list(released.domain)
    return others


def _released(content: dict[str, Any]) -> ReleasedModel:
    """What the model released. Its parts are checked against each other."""
    schema = None if content["schema"] is None else Schema.from_dict(content["schema"])
    fourier = None if content.get("fourier_map") is None else map_from_dict(content["fourier_map"])
    evidence = None if content.get("intervals") is None else _evidence_of(content["intervals"])
    names, domain = content["feature_names_in"], _domain(content["classes"])
    released = ReleasedModel(
        scoring=_scoring(content, domain),
        alpha=float(_finite(content["alpha"])),
        guarantee=_guarantee(content["guarantee"]),
        coefficient_names=np.array(content["coefficient_names"], dtype=object),
        columns=Columns(int(content["n_features_in"]), None if names is None else np.array(names, dtype=object)),
        domain=domain,
        encoder=None if schema is None else Encoder(schema),
        fourier=fourier,
        evidence=evidence,
    )
    # Monotone effects replace released weights, and the evidence keeps those that were released.
    if evidence is not None and not content["parameters"].get("monotone") and not _belongs_to(evidence, released.scoring):
        raise FileError(_DO_NOT_FIT)
    encoder = released.encoder
    if encoder is not None:
        expected = encoder.feature_names if fourier is None else fourier.names_for(encoder.feature_names)
        if expected != tuple(content["coefficient_names"]):
            raise FileError("the columns of the schema do not match the coefficients.")
    return released


def _domain(classes: Any) -> tuple[Any, ...]:
    """The classes of a classifier; empty for a regression."""
    if classes is None:
        return ()
    labels = np.array(classes)
    if labels.ndim != 1 or not 2 <= labels.size <= MOST_CLASSES:
        raise FileError(_WRONG_KIND)
    return tuple(classes)


def _scoring(content: dict[str, Any], domain: tuple[Any, ...]) -> LinearModel:
    """Weights and intercepts, in the shapes that the number of classes requires, and the bound on rows."""
    coef, intercept, row_bound = (
        _finite(content["coef"]),
        _finite(content["intercept"]),
        row_bound_from_dict(content["row_bound"]),
    )
    width = len(content["coefficient_names"])
    n_scores = 1 if len(domain) <= 2 else len(domain)
    shapes = ((n_scores, width), (n_scores,)) if domain else ((width,), ())
    if (coef.shape, intercept.shape) != shapes:
        raise FileError(_DO_NOT_FIT)
    row_bound.check_width(width)
    return LinearModel(np.atleast_2d(coef), np.atleast_1d(intercept), row_bound)


def _guarantee(content: dict[str, Any]) -> Guarantee:
    guarantee = Guarantee.from_dict(content)
    if guarantee.void is None and not guarantee.budget.is_private:
        raise FileError("the model claims a guarantee that an infinite budget cannot give.")
    if not isinstance(guarantee.void, str | None):
        raise FileError(_WRONG_KIND)
    return guarantee


def _evidence_of(value: dict[str, Any]) -> Evidence | SumsEvidence:
    return SumsEvidence.from_dict(value) if value.get("kind") == "sums" else Evidence.from_dict(value)


def _belongs_to(evidence: Evidence | SumsEvidence, scoring: LinearModel) -> bool:
    """Whether what intervals are computed from was released with exactly these weights."""
    n_vectors, width = scoring.coef.shape
    if isinstance(evidence, Evidence) and evidence.n_outputs != n_vectors:
        return False
    weights, constant = evidence.weights.reshape(n_vectors, -1), evidence.intercept
    intercept = constant * weights[:, width:].ravel() if constant > 0.0 else np.zeros(n_vectors)
    return np.array_equal(weights[:, :width], scoring.coef) and np.array_equal(intercept, scoring.intercept)


def _check_keys(value: dict[str, Any], known: set[str], optional: Collection[str] = ()) -> None:
    """Refuse parts that are unknown or missing. Names of unknown parts are not shown: they are not confide's own text."""
    missing = known - set(optional) - set(value)
    if missing:
        raise FileError(
            f"the file lacks parts of a model: {', '.join(sorted(missing))}. Use a file that was written by save and not "
            f"edited."
        )
    if set(value) - known:
        raise FileError(
            "the file holds parts that this version of confide does not understand. Without them the model could be another "
            "one. Use the version that wrote the file, or a newer one."
        )


def row_bound_from_dict(value: dict[str, Any]) -> RowBound:
    """The row bound that was written in this form."""
    if value["kind"] == "ball":
        _check_keys(value, {"kind", "norm"})
        return BallBound(math.inf if value["norm"] == "inf" else float(value["norm"]))
    if value["kind"] == "groups":
        _check_keys(value, {"kind", "sizes", "scales", "linked"}, optional={"linked"})
        return GroupBound(tuple(value["sizes"]), tuple(value["scales"]), tuple(value.get("linked", ())))
    raise FileError(
        "the file holds a bound on rows that this version of confide does not understand. Use the version that wrote the "
        "file, or a newer one."
    )


def _finite(values: Any) -> Any:
    array = np.array(values, dtype=np.float64)
    if not np.isfinite(array).all():
        raise FileError("the model holds weights that are not finite.")
    return array
