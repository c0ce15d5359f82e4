"""Losses of rows that have weights: constants that hold for every row, whatever its weight."""

from __future__ import annotations

from dataclasses import dataclass

from confide.erm.losses import Loss
from confide.types import Array


@dataclass(frozen=True, slots=True)
class Weighted:
    """The losses w l of rows whose weight w lies between 0 and `largest`: constants that hold for all these rows.

    They are the constants of `largest` times the loss, since a smaller weight is never worse. Proof:
    privacy/proofs/objective_perturbation.md, theorem 6.
    """

    loss: Loss
    largest: float

    @property
    def name(self) -> str:
        return self.loss.name

    @property
    def lipschitz(self) -> float:
        return self.largest * self.loss.lipschitz

    @property
    def smoothness(self) -> float:
        return self.largest * self.loss.smoothness

    @property
    def value_at_zero(self) -> float:
        return self.largest * self.loss.value_at_zero

    @property
    def monotone(self) -> bool:
        return self.loss.monotone

    @property
    def by_length(self) -> bool:
        return self.loss.by_length

    @property
    def tapered(self) -> bool:
        return self.loss.tapered

    @property
    def tail(self) -> float:
        return self.loss.tail

    @property
    def n_outputs(self) -> int:
        return self.loss.n_outputs

    @property
    def separable(self) -> bool:
        return self.loss.separable

    @property
    def rank(self) -> int:
        return self.loss.rank

    @property
    def trace(self) -> float:
        return self.largest * self.loss.trace

    @property
    def self_concordant(self) -> bool:
        return self.loss.self_concordant

    @property
    def rounding(self) -> float:
        # One more unit, for the rounding of the product with the weight.
        return self.loss.rounding + 1.0

    @property
    def margin(self) -> float:
        return self.loss.margin

    @property
    def smoothing(self) -> float | None:
        return self.loss.smoothing

    def curvature_at_slope(self, slope: Array) -> Array:
        return self.largest * self.loss.curvature_at_slope(slope / self.largest)
