"""What the scores of a fitted model are: log-odds, the logarithm of a mean, a prediction, or a score without a unit."""

from __future__ import annotations

from typing import Any

from confide.erm.class_losses import OneVsRest, Softmax
from confide.erm.losses import LogisticLoss
from confide.training.settings import ScoreLoss


def unit_of_scores(model: Any) -> str:
    """What the scores of a fitted model are, in a few words."""
    if not hasattr(model, "classes_"):
        return "logarithm of the mean" if getattr(model, "_has_counts", False) else "prediction"
    loss = _loss_of(model)
    loss = loss.loss if isinstance(loss, OneVsRest) else loss
    return "log-odds" if isinstance(loss, LogisticLoss | Softmax) else "score"


def ratio_of_scores(model: Any) -> str:
    """The name of the exponential of a coefficient: "odds ratio", "rate ratio", or "" where it has no meaning.

    With softmax there is none: coefficients are relative to the mean over classes, and not to one class.
    """
    unit = unit_of_scores(model)
    if unit == "log-odds" and not depends_on_differences(model):
        return "odds ratio"
    return "rate ratio" if unit == "logarithm of the mean" else ""


def depends_on_differences(model: Any) -> bool:
    """Whether a model of several classes depends only on differences between their scores, as with softmax."""
    return hasattr(model, "classes_") and len(model.classes_) > 2 and isinstance(_loss_of(model), Softmax)


def _loss_of(model: Any) -> Any:
    """The loss of a fitted model's number of classes, from its parameters; None for least squares."""
    minimised = model._minimised(model._encoder)
    n_classes = len(model.classes_) if hasattr(model, "classes_") else 0
    return minimised.for_classes(n_classes).loss if isinstance(minimised, ScoreLoss) else None
