"""Copies of estimators with other parameters, to ask what a plan would be with them."""

from __future__ import annotations

from typing import Any


def estimator_with(estimator: Any, **parameters: Any) -> Any:
    """A new estimator of the same kind, with these parameters replaced. The given one is not changed."""
    return type(estimator)(**estimator.get_params(deep=False) | parameters)


def estimator_without_shares(estimator: Any) -> Any:
    """The estimator, whose whole budget goes to the weights: no centre of the rows, and no mean that is matched."""
    given = estimator.get_params(deep=False)
    return estimator_with(estimator, **{name: False for name in ("centre", "match_mean") if name in given})


def estimator_with_chosen_features(estimator: Any, n_rows: int | None, n_features: int | None) -> Any:
    """The estimator, with the number of random features that it would choose for so many rows."""
    if not hasattr(estimator, "chosen_map"):
        return estimator
    features = estimator.chosen_map(n_rows, n_features)
    return estimator_with(estimator, n_features=0 if features is None else features.n_features)


def estimator_with_chosen_schema(estimator: Any, n_rows: int | None, n_features: int | None) -> Any:
    """The estimator, with all that it would choose for the columns of so many rows written into its schema."""
    if not hasattr(estimator, "chosen_schema"):
        return estimator
    return estimator_with(estimator, schema=estimator.chosen_schema(n_rows, n_features), bounds=None, interactions=())
