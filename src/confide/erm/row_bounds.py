"""Public bounds on one row. A bound clips rows so that they obey it, and gives their largest L2 norm.

Clipping is part of what is minimised: the ideal objective is the one over the rows clipped in real arithmetic, and the
certificate's rounding bound (privacy/proofs/certificate.md) speaks of that objective.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from numbers import Real
from typing import Any, Protocol

import numpy as np

from confide.errors import ParameterError
from confide.types import Array, Rows

SMALLEST_BOUND = 2.0**-300
LARGEST_BOUND = 2.0**300
_LARGEST_SAFE_SQUARE = 2.0**1000


class RowBound(Protocol):
    """What is publicly known of every row. Owes one sentence: every clipped row obeys the bound in exact arithmetic."""

    @property
    def l2_norm(self) -> float:
        """Largest L2 norm of a clipped row."""

    def clip(self, rows: Rows) -> Array:
        """The rows of one block as float64, each scaled so that it obeys the bound; the argument is never written to."""

    def check_width(self, n_features: int) -> None:
        """Raise ParameterError if rows of this many columns cannot be clipped by the bound."""

    def to_dict(self) -> dict[str, Any]:
        """A JSON form; `row_bound_from_dict` reads it."""


@dataclass(frozen=True, slots=True)
class BallBound:
    """Every row is scaled down to L2 norm at most `norm`. ``BallBound(math.inf)`` leaves rows alone (non-private use only).

    Proof: privacy/proofs/certificate.md, section on clipping.
    """

    norm: float

    def __post_init__(self) -> None:
        ok = isinstance(self.norm, Real) and not isinstance(self.norm, bool)
        if not ok or not (SMALLEST_BOUND <= self.norm <= LARGEST_BOUND or self.norm == math.inf):
            raise ParameterError(
                "a row norm must be a positive number between 2^-300 and 2^300, or inf when the budget is inf."
            )
        object.__setattr__(self, "norm", float(self.norm))

    @property
    def l2_norm(self) -> float:
        return self.norm

    def check_width(self, n_features: int) -> None:
        """Every width fits a ball."""

    def clip(self, rows: Rows) -> Array:
        block = np.asarray(rows, dtype=np.float64)
        if self.norm == math.inf:
            return block
        # The radius lies inside the ball by a proven margin: the computed norm of d squares errs by a factor
        # of at most 1 + (d + 2) 2^-53, in any order of summation.
        radius = self.norm * (1.0 - max(2.0**-40, (block.shape[1] + 8) * 2.0**-52))
        with np.errstate(over="ignore", under="ignore"):
            squared_norms = np.einsum("ij,ij->i", block, block)
        # Written so that an overflowing norm counts as outside. Underflow of a tiny entry moves a squared norm by less
        # than d 2^-1074, far below the margin for every admissible radius.
        outside = ~(squared_norms <= radius * radius)
        if not outside.any():
            return block
        huge = ~(squared_norms <= _LARGEST_SAFE_SQUARE)
        ordinary = outside & ~huge
        # A factor of 1 leaves the rows inside as they are, bit for bit.
        clipped = block * np.where(ordinary, radius / np.sqrt(np.where(ordinary, squared_norms, 1.0)), 1.0)[:, None]
        if huge.any():
            clipped[huge] = _scale_to_norm(block[huge], radius)
        return clipped

    def to_dict(self) -> dict[str, Any]:
        return {"kind": "ball", "norm": self.norm if math.isfinite(self.norm) else "inf"}


def _scale_to_norm(rows: Array, radius: float, order: int = 2) -> Array:
    """Scale each row to L1 or L2 norm `radius`, if it is longer.

    Each row is first divided by the power of two near its largest entry, which is exact (or loses entries that are below
    2^-1000 of the largest), so that the norm neither overflows nor underflows.
    """
    with np.errstate(over="ignore", under="ignore"):
        _, exponents = np.frexp(np.abs(rows).max(axis=1))
        scaled = np.ldexp(rows, -exponents[:, None])
        norms = np.linalg.norm(scaled, ord=order, axis=1)
        # The comparison may underflow or overflow, which leaves it right; the result is made from `radius` itself.
        longer = norms > np.ldexp(radius, -exponents)
        scaled *= (radius / np.where(longer, norms, 1.0))[:, None]
    return np.where(longer[:, None], scaled, rows)


@dataclass(frozen=True, slots=True)
class GroupBound:
    """Columns fall into consecutive groups, and the L1 norm of every group is at most its scale.

    A one-hot category is a group whose scale is the value of its active column; a number in [-s, s] is a group of one.

    Parameters
    ----------
    sizes : number of columns of each group, in order
    scales : largest L1 norm of each group, positive
    """

    sizes: tuple[int, ...]
    scales: tuple[float, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "sizes", tuple(int(size) for size in self.sizes))
        object.__setattr__(self, "scales", tuple(float(scale) for scale in self.scales))
        if len(self.sizes) != len(self.scales) or not self.sizes:
            raise ParameterError("a GroupBound needs one scale for each group, and at least one group.")
        if min(self.sizes) < 1 or not all(SMALLEST_BOUND <= scale <= LARGEST_BOUND for scale in self.scales):
            raise ParameterError("a GroupBound needs sizes of at least 1 and positive scales between 2^-300 and 2^300.")

    @property
    def n_features(self) -> int:
        return sum(self.sizes)

    @property
    def l2_norm(self) -> float:
        # Rounded outwards: the squares and their exact sum err by less than one part in 2^51.
        return math.sqrt(math.fsum(scale * scale for scale in self.scales)) * (1.0 + 2.0**-50)

    def check_width(self, n_features: int) -> None:
        if n_features != self.n_features:
            raise ParameterError(f"the row bound describes {self.n_features} columns, but rows have {n_features}.")

    def clip(self, rows: Rows) -> Array:
        block = np.asarray(rows, dtype=np.float64)
        self.check_width(block.shape[1])
        fresh = not np.may_share_memory(block, rows)
        sizes = np.asarray(self.sizes)
        starts = np.concatenate(([0], np.cumsum(sizes)[:-1]))
        # Groups of one are clipped by comparison, without rounding; longer ones keep a margin of (k + 4) 2^-52.
        margins = np.where(sizes == 1, 1.0, 1.0 - (sizes + 4) * 2.0**-52)
        with np.errstate(over="ignore"):
            norms = np.add.reduceat(np.abs(block), starts, axis=1)
        scales = np.asarray(self.scales)
        suspects = ~(norms <= scales * margins)
        if suspects.any():
            # A one-hot group holds its scale itself: the sum of a single entry is exact, so it needs no margin.
            single_entry = np.add.reduceat(block != 0.0, starts, axis=1, dtype=np.intp) <= 1
            suspects &= ~(single_entry & (norms <= scales))
        for group in np.flatnonzero(suspects.any(axis=0)):
            if not fresh:
                block, fresh = block.copy(), True
            columns = slice(starts[group], starts[group] + sizes[group])
            which = suspects[:, group]
            if sizes[group] == 1:
                block[which, columns] = np.clip(block[which, columns], -scales[group], scales[group])
            else:
                block[which, columns] = _scale_to_norm(block[which, columns], scales[group] * margins[group], order=1)
        return block

    def to_dict(self) -> dict[str, Any]:
        return {"kind": "groups", "sizes": list(self.sizes), "scales": list(self.scales)}


def row_bound_from_dict(value: dict[str, Any]) -> RowBound:
    """Read the form written by `to_dict`."""
    if value["kind"] == "ball":
        return BallBound(math.inf if value["norm"] == "inf" else float(value["norm"]))
    if value["kind"] == "groups":
        return GroupBound(tuple(value["sizes"]), tuple(value["scales"]))
    raise ParameterError("an unknown kind of row bound.")


def norm_with_intercept(row_bound: RowBound, intercept: float) -> float:
    """Largest L2 norm of a clipped row after the constant `intercept` was appended, rounded upwards."""
    if intercept == 0.0:
        return row_bound.l2_norm
    return math.hypot(row_bound.l2_norm, intercept) * (1.0 + 2.0**-50)
