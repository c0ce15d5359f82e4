"""Reads models from files: their parts are checked against each other, and a fitted estimator is made of them."""

from __future__ import annotations

import importlib
import math
import os
from typing import Any, cast

from confide.errors import FileError, wording
from confide.estimators.calibration import CalibratedClassifier
from confide.estimators.linear_classifier import LinearClassifier
from confide.estimators.linear_model import PrivateLinearModel, document_of_model
from confide.estimators.regression import LinearRegressor
from confide.features.fourier import has_found_scales
from confide.files import read_document
from confide.models.files import (
    DO_NOT_FIT,
    NOT_PARAMETERS_OF_THE_FILE,
    WRONG_KIND,
    check_keys,
    is_reproduced,
    released_of,
    understood,
)
from confide.privacy.budgets import budget_from_dict

_PARAMETERS_OF_EVERY_VERSION = {
    "budget", "alpha", "fit_intercept", "intercept_scaling", "mechanism", "neighbours", "n_rows_bounds",
}  # fmt: skip


def load(path: str | os.PathLike[str]) -> LinearClassifier | LinearRegressor | CalibratedClassifier:
    """Read a model that was written by `save`.

    Parameters
    ----------
    path : str or path
        The file to read.

    Returns
    -------
    estimator
        A fitted classifier or regressor, which predicts and states its guarantee, or a calibrated classifier. It has no
        ledger; if it is fitted again without one, a `BudgetWarning` says so.

    Raises
    ------
    FileError
        If the file is missing, damaged, of another kind, or from a version that this version does not understand.

    Notes
    -----
    Guarantee: that of the release, as the file states it in `guarantee_`; reading costs nothing. The file is read, not
    believed: `confide verify` makes its plan again and compares.
    """
    content = read_document(path)
    with understood(path):
        is_calibrated = content["estimator"] == CalibratedClassifier.__name__
        if is_calibrated:
            check_keys(content, {"version", "estimator", "model", "evaluation"})
        own = content["model"] if is_calibrated else content
        model: Any = _restored(own)
        # Whatever this version did not understand would be lost without a word. So write the model again and compare.
        if not is_reproduced(document_of_model(model), own):
            raise FileError(wording("file not reproduced"))
        model._read_from = own  # what it is saved as, until it changes
        return CalibratedClassifier(model, content["evaluation"])._as_read() if is_calibrated else model


def load_linear(path: str | os.PathLike[str]) -> LinearClassifier | LinearRegressor:
    """Read a model that has weights of its own: no calibrated classifier.

    Raises
    ------
    FileError
        As in `load`, or if it is one.
    """
    model, calibrated = load_with_calibration(path)
    if calibrated is not None:
        raise FileError(f"{path} holds a calibrated classifier; here give the file of its model.")
    return model


def load_with_calibration(
    path: str | os.PathLike[str],
) -> tuple[LinearClassifier | LinearRegressor, CalibratedClassifier | None]:
    """Read a model that has weights, and the calibrated classifier that is made of it if the file holds one."""
    read = load(path)
    return (read.model, read) if isinstance(read, CalibratedClassifier) else (read, None)


def _restored(content: dict[str, Any]) -> LinearClassifier | LinearRegressor:
    name, released = content["estimator"], released_of(content)
    package = importlib.import_module("confide")
    kind = getattr(package, name) if isinstance(name, str) and name in package.__all__ else None
    if not isinstance(kind, type) or not issubclass(kind, PrivateLinearModel):
        raise FileError(wording("unknown kind of model"))
    known = set(kind().get_params(deep=False)) - NOT_PARAMETERS_OF_THE_FILE
    written, schema, is_classifier = dict(content["parameters"]), released.schema, issubclass(kind, LinearClassifier)
    check_keys(written, known, optional=known - _PARAMETERS_OF_EVERY_VERSION)
    # Schema, prior, bound on rows, and classes have their own parts in the file.
    others: dict[str, Any] = {"schema": schema, "prior": released.prior}
    others |= {name: value for name, value in kind._written_in_schema.items() if name not in written}
    if released.fourier is None and "row_norm" in kind().get_params(deep=False):
        others["row_norm"] = released.scoring.row_bound if schema is None else None
    if is_classifier:
        others["classes"] = None if schema is not None and schema.target is not None else list(released.domain)
    model: Any = kind(**_read_parameters(written), **others)
    if is_classifier == (not released.domain):
        raise FileError(WRONG_KIND)
    fourier, encoder = released.fourier, released.encoder
    n_inputs = released.columns.n_features_in if encoder is None else encoder.n_features
    # What was chosen from public facts may have been chosen by the rule of another version.
    without_prior = kind(**_read_parameters(written), **(others | {"prior": None}))
    own = without_prior._with_features_of(fourier)._fourier_map(n_inputs, encoder)
    has_map = fourier == own or has_found_scales(fourier, own)
    if not has_map or (fourier is not None and not fourier.may_have(released.scoring.row_bound)):
        raise FileError(DO_NOT_FIT)
    model._hold(released)
    return cast("LinearClassifier | LinearRegressor", model)


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
