"""A released model as a document: what was released, and the public parameters of its estimator. Nothing else is written."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from confide._version import __version__
from confide.intake.penalties import written_penalty
from confide.released_models.model import ReleasedModel

NOT_PARAMETERS_OF_THE_FILE = frozenset(
    {"ledger", "n_jobs", "random_state", "schema", "row_norm", "classes", "knots", "bounds", "interactions", "prior"}
)
"""Parameters that a file does not list. The first three concern one machine or one fit; the others have their own parts in
the file: what was chosen for knots, bounds and interactions stands in its schema. Every other parameter is written, so a new
parameter of an estimator needs no entry here."""


def document_of(name: str, parameters: Mapping[str, Any], released: ReleasedModel) -> dict[str, Any]:
    """The content of a released model's file, as JSON values.

    Parameters
    ----------
    name : the public name of the estimator's class
    parameters : the parameters of its constructor, by name
    released : what the estimator released
    """
    guarantee, columns, is_classifier = released.guarantee, released.columns, bool(released.domain)
    scoring, names = released.scoring, released.columns.feature_names_in
    return {
        "version": __version__,
        "estimator": name,
        "parameters": {
            **{
                key: _WRITTEN.get(key, _written)(value)
                for key, value in parameters.items()
                if key not in NOT_PARAMETERS_OF_THE_FILE
            },
            # Users may give these two in several forms. The guarantee holds them in one form.
            "budget": guarantee.budget.to_dict(),
            "neighbours": str(guarantee.neighbours),
        },
        "schema": None if released.schema is None else released.schema.to_dict(),
        "row_bound": scoring.row_bound.to_dict(),
        "fourier_map": None if released.fourier is None else released.fourier.to_dict(),
        "classes": list(released.domain) if is_classifier else None,
        "alpha": released.alpha,
        "coef": (scoring.coef if is_classifier else scoring.coef[0]).tolist(),
        "intercept": scoring.intercept.tolist() if is_classifier else float(scoring.intercept[0]),
        "coefficient_names": [str(each) for each in released.coefficient_names],
        "n_features_in": int(columns.n_features_in),
        "feature_names_in": None if names is None else [str(each) for each in names],
        "guarantee": guarantee.to_dict(),
        "intervals": None if released.evidence is None else released.evidence.to_dict(),
        **({} if released.interest is None else {"interest": released.interest.to_dict()}),
        # A model or a file may have been given as the prior. What was used of it is written.
        **({} if released.prior is None else {"prior": released.prior.to_dict()}),
    }


def _written(value: Any) -> Any:
    """A parameter as a JSON value. A loss that a user wrote cannot be written, so None takes its place."""
    if isinstance(value, np.generic) or type(value) is np.ndarray:
        value = value.tolist()
    # Exact types: an object of the user's own, which may hold data, can be a tuple, a dict or a number of a derived class.
    if type(value) is float and not math.isfinite(value):
        return "inf"
    if type(value) in (tuple, list):
        return [_written(each) for each in value]
    return value if type(value) in (str, bool, int, float) else None


def _pairs(values: Mapping[Any, Any] | None) -> list[list[Any]] | None:
    """A mapping as a list of pairs, since a key of JSON is text, and labels may be numbers."""
    return (
        None
        if values is None
        else [[_written(key), value if isinstance(value, str) else float(value)] for key, value in values.items()]
    )


_WRITTEN: dict[str, Callable[[Any], Any]] = {"class_weight": _pairs, "monotone": _pairs, "penalty": written_penalty}
"""Parameters that are written in a way of their own."""
