"""A convex loss that a user wrote, its kinks joined, for noise on the weights. Proof: privacy/proofs/declared_slopes.md."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from confide.erm.interpolated_slopes import InterpolatedSlopes
from confide.erm.losses import Terms
from confide.types import Array, Targets


@dataclass(frozen=True, slots=True)
class RisingSlopes(InterpolatedSlopes):
    """The slopes of a user's convex loss at the multiples of `width`, and straight lines between them.

    Slopes that rise with the score do so between multiples too. So these are the slopes of a convex function without kinks,
    whatever the kinks of the user's loss are.
    """

    @property
    def smoothness(self) -> float:
        return self._range / self.width

    @property
    def value_at_zero(self) -> float:
        # The function is lifted by this much, so that it is nowhere negative.
        return self.loss.value_at_zero + 0.5 * self.width * self._range

    @property
    def rounding(self) -> float:  # type: ignore[override]  # computed from what the user declares
        # Beside interpolation: how far computed slopes may lie from slopes that rise.
        return InterpolatedSlopes.rounding + self.loss.rounding

    @property
    def _range(self) -> float:
        return (1.0 if self.loss.monotone else 2.0) * self.loss.lipschitz

    def of_scores(self, scores: Array, targets: Targets, order: int, stretch: Array | float = 1.0) -> Terms:
        """The slopes (m, k) and, for order 2, curvatures. There are no values; solvers need none."""
        terms = InterpolatedSlopes.of_scores(self, scores, targets, 1, stretch)
        if order < 2:
            return terms
        left = np.floor(scores / self.width)
        at_left, at_right = (self.loss.of_scores(node * self.width, targets, 1).slope for node in (left, left + 1.0))
        assert at_left is not None  # noqa: S101 - order 1 was asked for
        assert at_right is not None  # noqa: S101 - order 1 was asked for
        return Terms(slope=terms.slope, curvature=np.fmax((at_right - at_left) / self.width, 0.0))
