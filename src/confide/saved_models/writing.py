"""A released model as a document: what left, and the public parameters of its estimator. Nothing else is written."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from confide._version import __version__
from confide.released_models.model import ReleasedModel

NOT_PARAMETERS_OF_THE_FILE = frozenset({"ledger", "n_jobs", "random_state", "schema", "row_norm", "classes"})
"""Parameters that a file does not list: the first three concern one machine or one fit, and the others stand in parts of
their own. Every other parameter of an estimator is written, so a new one needs no entry anywhere."""


def document_of(name: str, parameters: Mapping[str, Any], released: ReleasedModel) -> dict[str, Any]:
    """What the file of a released model holds: JSON values.

    Parameters
    ----------
    name : the public name of the estimator's class
    parameters : of its constructor, by name
    released : what it released
    """
    guarantee, columns, is_classifier = released.guarantee, released.columns, bool(released.domain)
    scoring, names = released.scoring, released.columns.feature_names_in
    return {
        "version": __version__,
        "estimator": name,
        "parameters": {
            **{key: _written(value) for key, value in parameters.items() if key not in NOT_PARAMETERS_OF_THE_FILE},
            # A fit has read these two, whatever form they had.
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
    }


def _written(value: Any) -> Any:
    """A parameter as JSON can hold it. None stands for a loss that a user wrote, which no file can hold."""
    if isinstance(value, np.generic | np.ndarray):
        value = value.tolist()
    if isinstance(value, float) and not math.isfinite(value):
        return "inf"
    if isinstance(value, Mapping):
        return [[_written(key), float(weight)] for key, weight in value.items()]
    if isinstance(value, tuple | list):
        return [_written(each) for each in value]
    return value if isinstance(value, (str, bool, int, float)) else None
