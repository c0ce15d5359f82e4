"""The sum of rows as the gradient of a loss: that of the score itself, which is linear."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from confide.erm.losses import OneScore, Terms
from confide.types import Array, Targets


@dataclass(frozen=True, slots=True)
class SumOfRows(OneScore):
    """The score of a row, whatever its label. Its slope is 1, so the gradient of a `RowSum` is the sum of the rows.

    It is a loss for the sake of that sum alone. It is not bounded below, and nothing minimises it.
    """

    name: ClassVar[str] = "sum of rows"
    lipschitz: ClassVar[float] = 1.0
    smoothness: ClassVar[float] = 0.0
    value_at_zero: ClassVar[float] = 0.0
    monotone: ClassVar[bool] = False
    by_length: ClassVar[bool] = False
    tapered: ClassVar[bool] = False
    self_concordant: ClassVar[bool] = False
    rounding: ClassVar[float] = 0.0

    def of_scores(self, scores: Array, targets: Targets, order: int, stretch: Array | float = 1.0) -> Terms:
        if order == 0:
            return Terms(value=scores)
        return Terms(slope=np.ones_like(scores), curvature=np.zeros_like(scores) if order >= 2 else None)

    def curvature_at_slope(self, slope: Array) -> Array:
        return np.zeros_like(slope)
