"""A loss whose gradient is clipped row by row: what noisy gradients sum. Proof: privacy/proofs/gradient.md, section 3."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from confide.erm.losses import Loss, Terms
from confide.errors import ParameterError
from confide.types import Array, Targets


@dataclass(frozen=True, slots=True)
class ClippedSlopes:
    """The slopes of a loss, those of a row x scaled down together to |slopes| |x| <= `limit` R, R the bound on rows.

    Only its slopes can be summed: there need not be a function whose slopes these are.

    Parameters
    ----------
    loss : of one score or of several
    limit : the largest norm of the slopes of a row of length R
    """

    loss: Loss
    limit: float

    by_length: ClassVar[bool] = True
    monotone: ClassVar[bool] = False
    tapered: ClassVar[bool] = False
    self_concordant: ClassVar[bool] = False

    @property
    def name(self) -> str:
        return self.loss.name

    @property
    def lipschitz(self) -> float:
        # That of the slopes before they are clipped, which the rounding of scores and rows is multiplied with.
        return self.loss.lipschitz

    @property
    def smoothness(self) -> float:
        # Clipping to a ball is a contraction.
        return self.loss.smoothness

    @property
    def value_at_zero(self) -> float:
        return self.loss.value_at_zero

    @property
    def tail(self) -> float:
        return self.loss.tail

    @property
    def n_outputs(self) -> int:
        return self.loss.n_outputs

    @property
    def separable(self) -> bool:
        return self.loss.n_outputs == 1

    @property
    def rank(self) -> int:
        return self.loss.rank

    @property
    def trace(self) -> float:
        return self.loss.trace

    @property
    def rounding(self) -> float:
        # The norm of o slopes, a quotient and a product. The length of a row is counted where losses are `by_length`.
        return self.loss.rounding + (0.5 * self.n_outputs + 4.0 if self.n_outputs > 1 else 0.0)

    @property
    def margin(self) -> float:
        return self.loss.margin

    @property
    def smoothing(self) -> float | None:
        return self.loss.smoothing

    def curvature_at_slope(self, slope: Array) -> Array:
        return self.loss.curvature_at_slope(slope)

    def of_scores(self, scores: Array, targets: Targets, order: int, stretch: Array | float = 1.0) -> Terms:
        """The slopes (m, k o) alone: order 1. `stretch` (m, 1) is R / |x|, inf for a row of zeros, which adds nothing."""
        if order != 1:
            raise ParameterError("clipped slopes have sums of order 1 alone.")
        slope = self.loss.of_scores(scores, targets, 1, stretch).slope
        assert slope is not None  # noqa: S101 - order 1 was asked for
        limits = self.limit * stretch
        if self.n_outputs == 1:
            # What is not a number, as a user's loss may give, counts as the steepest slope downwards.
            return Terms(slope=np.fmin(np.fmax(slope, -limits), limits))
        parts = slope.reshape(len(slope), -1, self.n_outputs)
        norms = np.sqrt(np.einsum("mko,mko->mk", parts, parts))
        with np.errstate(divide="ignore", invalid="ignore"):
            factors = np.fmin(1.0, limits / norms)
        return Terms(slope=(parts * factors[:, :, None]).reshape(slope.shape))
