"""A loss without kinks in place of one that may have kinks anywhere. Proof: privacy/proofs/gradient.md, section 5."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from confide.erm.declared_losses import DeclaredLoss
from confide.erm.losses import OneScore, Terms
from confide.errors import ParameterError
from confide.types import Array, Targets


@dataclass(frozen=True, slots=True)
class InterpolatedSlopes(OneScore):
    """The slopes of a user's loss at the multiples of `width`, and straight lines between them.

    So slopes change by at most 2 lipschitz / width times the change of the score, whatever the loss is: it need be neither
    convex nor smooth. Its value at each multiple must depend on that score and the target alone.

    Parameters
    ----------
    loss : the user's loss, whose slopes are clipped to its `lipschitz`
    width : a power of two
    """

    loss: DeclaredLoss
    width: float

    smoothing: float | None = field(init=False, default=None)
    monotone: ClassVar[bool] = False
    by_length: ClassVar[bool] = False
    tapered: ClassVar[bool] = False
    self_concordant: ClassVar[bool] = False
    # Two products, a difference and a sum of numbers of at most 2 lipschitz.
    rounding: ClassVar[float] = 8.0

    @property
    def name(self) -> str:
        return self.loss.name

    @property
    def lipschitz(self) -> float:
        return self.loss.lipschitz

    @property
    def smoothness(self) -> float:
        return 2.0 * self.loss.lipschitz / self.width

    @property
    def value_at_zero(self) -> float:
        return self.loss.value_at_zero

    def curvature_at_slope(self, slope: Array) -> Array:
        return np.full_like(slope, self.smoothness)

    def of_scores(self, scores: Array, targets: Targets, order: int, stretch: Array | float = 1.0) -> Terms:
        """The slopes (m, k) alone: order 1."""
        if order != 1:
            raise ParameterError("interpolated slopes have sums of order 1 alone.")
        # The width is a power of two, so that nodes and shares are exact.
        position = scores / self.width
        left = np.floor(position)
        share = position - left
        at_left, at_right = (self.loss.of_scores(node * self.width, targets, 1).slope for node in (left, left + 1.0))
        assert at_left is not None  # noqa: S101 - order 1 was asked for
        assert at_right is not None  # noqa: S101 - order 1 was asked for
        return Terms(slope=(1.0 - share) * at_left + share * at_right)
