"""What a question about a plan is asked with: numbers within their ranges, and an estimator with other parameters."""

from __future__ import annotations

import math
from typing import Any

from confide.errors import ParameterError


def check_positive(**values: float) -> None:
    """Raise ParameterError, by name, unless all are positive and finite."""
    for name, value in values.items():
        if not 0.0 < value < math.inf:
            raise ParameterError(f"{name} must be a positive finite number.")


def check_failure(failure: float) -> None:
    """Raise ParameterError unless it is a probability that is neither 0 nor 1."""
    if not 0.0 < failure < 1.0:
        raise ParameterError("failure must lie strictly between 0 and 1.")


def estimator_with(estimator: Any, **parameters: Any) -> Any:
    """Another estimator of the same kind, with these parameters in place of its own; the first is left as it is."""
    return type(estimator)(**estimator.get_params(deep=False) | parameters)
