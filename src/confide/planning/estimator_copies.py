"""Copies of estimators with other parameters, to ask what a plan would be with them."""

from __future__ import annotations

from typing import Any


def estimator_with(estimator: Any, **parameters: Any) -> Any:
    """A new estimator of the same kind, with these parameters replaced. The given one is not changed."""
    return type(estimator)(**estimator.get_params(deep=False) | parameters)
