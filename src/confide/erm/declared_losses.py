"""Losses that a user wrote. The user declares their constants, and the guarantee says so."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np

from confide.erm.losses import OneScore, Terms
from confide.errors import NotCertified
from confide.types import Array, Targets


def asked(answer: Any, shape: tuple[int, ...] | None) -> Any:
    """What code of a user answers when it is called: numbers of this shape, or anything if the shape is None.

    None if it raises, or answers anything else: its message might show scores or weights without noise. What would end the
    program is a failure like others. An interrupt still is one, without what was said in it.
    """
    try:
        with np.errstate(all="ignore"):
            found = answer()
            if shape is None:
                return found
            numbers: Array = np.asarray(found, dtype=np.float64)
            return numbers if numbers.shape == shape else None
    except KeyboardInterrupt:
        is_interrupted = True
    except BaseException:  # noqa: BLE001 - a user's code may raise anything
        is_interrupted = False
    if is_interrupted:
        raise KeyboardInterrupt
    return None


@dataclass(frozen=True, slots=True)
class DeclaredLoss(OneScore):
    """A user's loss, and the constants it declared when the fit began.

    Derivatives are clipped here to the declared constants and the declared sign, so noise covers every slope. Three
    assumptions remain: the loss is convex, its derivative changes no faster than `smoothness` says, and each value depends
    on its own score and target alone. Where the user's code fails, the release is refused.

    Parameters
    ----------
    loss : has `value`, `derivative` and `second_derivative`, of a one-dimensional array of margins, or of two such arrays,
        scores and targets
    target_bound : targets are clipped to [-target_bound, target_bound]; None for a loss of the margin
    name, lipschitz, smoothness, value_at_zero, rounding, monotone : see `LossBounds`; a loss with kinks has an infinite
        smoothness and no `second_derivative`
    """

    loss: Any
    target_bound: float | None
    name: str
    lipschitz: float
    smoothness: float
    value_at_zero: float
    rounding: float
    monotone: bool

    by_length: ClassVar[bool] = False
    tapered: ClassVar[bool] = False
    self_concordant: ClassVar[bool] = False

    def of_scores(self, scores: Array, targets: Targets, order: int, stretch: Array | float = 1.0) -> Terms:
        signs: Array | float = 1.0
        if self.target_bound is None:
            signs = targets[:, None].astype(np.float64)
            arguments = [signs * scores]
        else:
            within = np.fmin(np.fmax(targets, -self.target_bound), self.target_bound)
            arguments = [scores, np.broadcast_to(within[:, None], scores.shape)]
        given = tuple(argument.ravel() for argument in arguments)
        for argument in given:
            argument.flags.writeable = False

        # A declared sign is enforced too: the cheaper account of Gaussian noise is false for slopes of both signs.
        steepest = 0.0 if self.monotone else self.lipschitz

        def clipped(name: str, low: float, high: float) -> Array:
            found: Array | None = asked(lambda: getattr(self.loss, name)(*given), given[0].shape)
            if found is None:
                raise self._failed()
            return np.fmin(np.fmax(found.reshape(scores.shape), low), high)

        return Terms(
            clipped("value", 0.0, np.inf) if order == 0 else None,
            signs * clipped("derivative", -self.lipschitz, steepest) if order >= 1 else None,
            clipped("second_derivative", 0.0, self.smoothness) if order >= 2 else None,
        )

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        """For solvers. The user's code may decide how its object is copied."""
        copied = asked(lambda: deepcopy(self.loss, memo), None)
        if copied is None:
            raise self._failed()
        return replace(self, loss=copied)

    def _failed(self) -> NotCertified:
        return NotCertified(
            f"the loss {self.name} raised an error, or did not return an array of numbers of the shape of its argument. So "
            f"nothing is released; what was charged stays charged. What it raised is not shown, because it may tell of the "
            f"rows: call its functions with made-up scores to see it."
        )

    def curvature_at_slope(self, slope: Array) -> Array:
        return np.full_like(slope, self.smoothness)
