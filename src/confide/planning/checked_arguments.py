"""Refusal of arguments that lie outside their ranges, before anything is planned with them."""

from __future__ import annotations

import math
import numbers
from typing import Any

from confide.errors import ParameterError


def check_positive(**values: float) -> None:
    """Raise ParameterError, which names the argument, unless all are positive and finite."""
    for name, value in values.items():
        if not is_number(value) or not 0.0 < value < math.inf:
            raise ParameterError(f"{name} must be a positive finite number.")


def check_failure(failure: float) -> None:
    """Raise ParameterError unless this is a probability other than 0 and 1."""
    if not is_number(failure) or not 0.0 < failure < 1.0:
        raise ParameterError("failure must be a number strictly between 0 and 1.")


def check_whole(**values: int) -> None:
    """Raise ParameterError, which names the argument, unless all are whole numbers of at least 1."""
    for name, value in values.items():
        if not is_number(value) or not isinstance(value, numbers.Integral) or value < 1:
            raise ParameterError(f"{name} must be a whole number of at least 1.")


def is_number(value: Any) -> bool:
    """Whether this is one real number. Text and truth values are none."""
    return isinstance(value, numbers.Real) and not isinstance(value, bool)
