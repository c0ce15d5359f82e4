"""The effects of a fitted model, from what it released and what its estimator says about its scores."""

from __future__ import annotations

from typing import Any

from confide.effects.effects import Effects
from confide.estimators.linear_model import released_model
from confide.estimators.score_units import depends_on_differences, unit_of_scores


def effects_of(model: Any) -> Effects:
    """The effects of a fitted linear model.

    Raises
    ------
    NotFittedError
        If the model is not fitted.
    ParameterError
        If it has no schema.
    """
    released = released_model(model)
    return Effects(released, unit_of_scores(model), depends_on_differences(model))
