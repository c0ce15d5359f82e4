"""What a question about a plan is asked with: numbers within their ranges, and an estimator with other parameters."""

from __future__ import annotations

import math
import numbers
from typing import Any

from confide.errors import ParameterError
from confide.privacy.mechanism import Plan


def check_positive(**values: float) -> None:
    """Raise ParameterError, by name, unless all are positive and finite."""
    for name, value in values.items():
        if not is_number(value) or not 0.0 < value < math.inf:
            raise ParameterError(f"{name} must be a positive finite number.")


def check_failure(failure: float) -> None:
    """Raise ParameterError unless it is a probability that is neither 0 nor 1."""
    if not is_number(failure) or not 0.0 < failure < 1.0:
        raise ParameterError("failure must be a number strictly between 0 and 1.")


def check_whole(**values: int) -> None:
    """Raise ParameterError, by name, unless all are whole numbers of at least 1."""
    for name, value in values.items():
        if not is_number(value) or not isinstance(value, numbers.Integral) or value < 1:
            raise ParameterError(f"{name} must be a whole number of at least 1.")


def is_number(value: Any) -> bool:
    """Whether it is one real number: no text, no truth value."""
    return isinstance(value, numbers.Real) and not isinstance(value, bool)


def estimator_with(estimator: Any, **parameters: Any) -> Any:
    """Another estimator of the same kind, with these parameters in place of its own; the first is left as it is."""
    return type(estimator)(**estimator.get_params(deep=False) | parameters)


def plan_with_noise(estimator: Any, n_rows: int | None, n_features: int | None) -> Plan:
    """The estimator's plan, or ParameterError where it has no noise, or noise in sums of squares."""
    plan = estimator.plan(n_rows, n_features)
    if not isinstance(plan, Plan) or plan.lattice is None:
        raise ParameterError(
            "mechanisms and budgets are compared for private models with a loss of the score: classifiers, HuberRegressor, "
            "PoissonRegressor; not for Ridge, nor for an infinite budget."
        )
    return plan
