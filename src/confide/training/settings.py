"""The checked parameters of an estimator: public facts that decide a fit, known before any row is seen."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from confide.erm.class_losses import OneVsRest, Softmax
from confide.erm.losses import Loss
from confide.erm.row_bounds import RowBound
from confide.erm.row_sums import RowSum
from confide.errors import ParameterError
from confide.privacy.budgets import Budget, Neighbours


@dataclass(frozen=True, slots=True)
class ScoreLoss:
    """A loss of the score, and what it becomes for more classes or where noise is large.

    Attributes
    ----------
    loss : of two classes, or of a number
    several_classes : "softmax", "one-vs-rest", or the reason for which three classes and more are refused
    if_noisy : the loss that takes its place where noise is large, see `loss_choice`; None where it was asked for by name
    bound_if_noisy : a narrower bound on rows that may come with it, under Gaussian noise alone; None for none
    score_size : a public guess of how large scores are, for the automatic alpha; None for margins
    raises_alpha : whether an alpha that double precision cannot certify is raised instead of refused
    """

    loss: Loss
    several_classes: str = ""
    if_noisy: Loss | None = None
    bound_if_noisy: RowBound | None = None
    score_size: float | None = None
    raises_alpha: bool = False

    def for_classes(self, n_classes: int) -> ScoreLoss:
        """The same for so many classes, 0 for a regression."""
        if n_classes <= 2:
            return self
        if self.several_classes == "softmax":
            return replace(self, loss=Softmax(n_classes), if_noisy=None)
        if self.several_classes == "one-vs-rest":
            return replace(self, loss=OneVsRest(self.loss, n_classes), if_noisy=None)  # type: ignore[arg-type]
        raise ParameterError(self.several_classes)


@dataclass(frozen=True, slots=True)
class SquaredError:
    """Least squares, from noisy sums over rows.

    Attributes
    ----------
    target_bound : targets are clipped to it in absolute value
    with_square : whether the sum of squared targets is released too, for intervals
    """

    target_bound: float
    with_square: bool
