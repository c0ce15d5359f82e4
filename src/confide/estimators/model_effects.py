"""The effects of a fitted model, from what it released and what its estimator says about its scores."""

from __future__ import annotations

from typing import Any

from confide.effects.effects import Effects
from confide.erm.class_losses import OneVsRest, Softmax
from confide.erm.losses import LogisticLoss
from confide.estimators.linear_model import PrivateLinearModel, released_model
from confide.training.settings import ScoreLoss


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
    return Effects(released, unit_of_scores(model), _depends_on_differences(model, len(released.scoring.coef)))


def unit_of_scores(model: Any) -> str:
    """What the scores of a fitted model are, in a few words."""
    if not hasattr(model, "classes_"):
        return "logarithm of the mean" if getattr(model, "_has_counts", False) else "prediction"
    loss = _loss_of(model)
    loss = loss.loss if isinstance(loss, OneVsRest) else loss
    return "log-odds" if isinstance(loss, LogisticLoss | Softmax) else "score"


def _depends_on_differences(model: PrivateLinearModel, n_scores: int) -> bool:
    """Whether a model of several classes depends only on differences between their scores, as with softmax."""
    return n_scores > 1 and isinstance(_loss_of(model), Softmax)


def _loss_of(model: PrivateLinearModel) -> Any:
    """The loss of a fitted model's number of classes, from its parameters; None for least squares."""
    minimised = model._minimised(model._encoder)
    n_classes = len(model.classes_) if hasattr(model, "classes_") else 0
    return minimised.for_classes(n_classes).loss if isinstance(minimised, ScoreLoss) else None
