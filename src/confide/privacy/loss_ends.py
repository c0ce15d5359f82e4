"""Between which ends the privacy loss of objective perturbation lies once its Gaussian noise is given.

Symbols inside formulas: Z the noise along the shift of the gradient, standard normal; M the whitened length of that shift,
doubled for replace-one; a the share of its largest slope that a row has; e_N the ends. Proof: proofs/gaussian.md, theorem 5;
for several scores proofs/multiclass.md, theorem 5; for slopes of either sign proofs/target_losses.md, theorem 3.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise
from typing import ClassVar, Protocol, TypeAlias

import numpy as np

from confide.array_types import Array
from confide.privacy.budgets import Neighbours

_UP = 1.0 + 2.0**-40


_Lengths: TypeAlias = tuple[tuple[float, float], ...]
_Costs: TypeAlias = tuple[tuple[float, float], tuple[float, float]]
_FULL = ((1.0, 1.0),)
_N_LENGTHS = 4
"""Whitened lengths of one row from the first to the largest."""


class BentCurve(Protocol):
    """The facts of `GaussianObjective` that the ends depend on."""

    @property
    def mu(self) -> float:
        """Largest whitened shift of the gradient by one row."""

    @property
    def curvature(self) -> float:
        """Cost of the curvature of the loss."""

    @property
    def bend(self) -> float:
        """L R^2 / l2 of a tapered loss; inf for other losses."""

    @property
    def evenness(self) -> float:
        """A whitened length of a row, as a share of the largest."""

    @property
    def even_bend(self) -> float:
        """The share of the bend that a row of that length may have."""

    @property
    def neighbours(self) -> Neighbours:
        """The neighbour relation."""

    @property
    def monotone(self) -> bool:
        """Whether the derivative of the loss has one sign."""

    @property
    def n_outputs(self) -> int:
        """The number of scores."""

    @property
    def separable(self) -> bool:
        """Whether the scores of a row have losses of their own."""


class Ends(Protocol):
    """Both ends of the privacy loss as functions of Z: the upper one is convex, the lower one concave."""

    @property
    def shift(self) -> float:
        """M, the largest slope of an end."""

    @property
    def two_sided(self) -> bool:
        """Whether slopes have either sign. Otherwise both ends rise with Z."""

    @property
    def n_corners(self) -> int:
        """The number of corners of the slopes other than 0.

        If there are several, Z is the largest of as many normal variables in the upper end, and the least of them in the
        lower end.
        """

    def upper(self, z: Array) -> Array:
        """The upper end, not below 0, rounded up."""

    def lower(self, z: Array) -> Array:
        """The lower end, not above 0, rounded down."""


@dataclass(frozen=True, slots=True)
class RowEnds:
    """The ends for one row.

        upper = max over a of   a M Z + p a^2 M^2 + c(a),     c(a) <= B a (1 - a) + C
        lower = min over a of   a M Z + q a^2 M^2 - c'(a)

    Parameters
    ----------
    shift : M
    squares : p and q
    upper_cost, lower_cost : (B, C) of c and of c'
    lengths : (t, part) for whitened lengths of rows, as shares of the largest, and the part of the bend that such rows may
        have. The ends are those of rows of all lengths between the first and the last; if there is one, up to it
    two_sided : whether a goes from -1 to 1, and not from 0
    n_corners : see `Ends`
    """

    shift: float
    squares: tuple[float, float]
    upper_cost: tuple[float, float]
    lower_cost: tuple[float, float]
    lengths: _Lengths = _FULL
    two_sided: bool = False
    n_corners: int = 1

    def upper(self, z: Array) -> Array:
        along, (bend, flat) = np.abs(z) if self.two_sided else z, self.upper_cost
        largest = np.zeros_like(z)
        for share, part in self.lengths:
            square = self.squares[0] * (share * self.shift) ** 2
            largest = np.maximum(largest, _bent(part * bend - square, share * self.shift * along + square, self.n_corners))
        return _away(largest + flat, self.shift, bend)

    def lower(self, z: Array) -> Array:
        along, (bend, flat) = np.abs(z) if self.two_sided else -z, self.lower_cost
        square = self.squares[1] * (self.lengths[0][0] * self.shift) ** 2
        largest = np.zeros_like(z)
        for share, part in self.lengths:
            largest = np.maximum(largest, _bent(part * bend + square, share * self.shift * along - square, self.n_corners))
        return -_away(largest + flat, self.shift, bend)


@dataclass(frozen=True, slots=True)
class PairEnds:
    """The ends for a row that goes and one that comes, with slopes of one sign. Both shifts of the gradient are M / 2 long.

    The first row bends the objective of one data set and raises the upper end; the second lowers the lower end.

    Parameters
    ----------
    shift : M
    cost : (B, C) as in `RowEnds`
    lengths : as in `RowEnds`, from the least to the largest
    acute : whether the angle between the two shifts is at most a right one
    """

    shift: float
    cost: tuple[float, float]
    lengths: _Lengths
    acute: bool
    two_sided: ClassVar[bool] = False
    n_corners: ClassVar[int] = 1

    def upper(self, z: Array) -> Array:
        m, (bend, flat) = 0.5 * self.shift, self.cost
        second, largest = m * z + 0.5 * m**2, np.zeros_like(z)
        for share, part in self.lengths:
            square = 0.5 * (share * m) ** 2
            # The slope of the second row is at one of its ends. Where it is at the largest, the shifts add up.
            also = share * m**2 if self.acute else 0.0
            alone, both = (_bent(part * bend - square, share * m * z + square + more) for more in (0.0, also))
            largest = np.maximum(largest, np.maximum(alone, second + both))
        return _away(largest + flat, self.shift, bend)

    def lower(self, z: Array) -> Array:
        m, square = 0.5 * self.shift, 0.5 if self.acute else 0.0
        alone = RowEnds(m, (0.5, square), (0.0, 0.0), (0.0, 0.0))
        return alone.lower(z) + RowEnds(m, (0.5, square), (0.0, 0.0), self.cost, self.lengths).lower(z)


def _bent(bend: float, ends: Array, n_corners: int = 1) -> Array:
    """max over 0 <= a <= 1 of a x + b a (1 - a), b where it is positive; or a bound on it where there are n corners.

    With n corners it is a bound on the maximum over mixtures of them: b (1 + 1/n) / 2 takes the place of b, and x moves up
    by b (1 - 1/n) / 2.
    """
    bend = max(0.0, bend)
    ends = ends + 0.5 * bend * (1.0 - 1.0 / n_corners)
    bend *= 0.5 * (1.0 + 1.0 / n_corners)
    slopes = np.clip(0.5 + 0.5 * ends / max(bend, 2.0**-1000), 0.0, 1.0)
    return np.asarray(slopes * ends + bend * slopes * (1.0 - slopes))


def _away(distance: Array, shift: float, bend: float) -> Array:
    """Moved away from 0 by more than the rounding of an end."""
    return distance * _UP + 2.0**-44 * (shift * (1.0 + shift) + bend)


def accounts_of(curve: BentCurve) -> list[list[list[tuple[float, Ends]]]]:
    """Accounts, each valid; in each the cases, of which one holds for a pair of neighbours; in each its rows.

    A row is a share and its ends. A moment is at most its mean over the rows, at the worst case of any account.
    """
    return [_cases(curve, bend, flat) for bend, flat in _charges(curve)]


def _charges(curve: BentCurve) -> list[tuple[float, float]]:
    """Pairs (B, C) such that one row costs at most B a (1 - a) + C by its curvature, for each score."""
    if curve.bend == math.inf:
        return [(0.0, curve.curvature)] if curve.n_outputs == 1 else []
    if curve.n_outputs > 1:
        return [(curve.bend * (1.0 / math.sqrt(curve.n_outputs) if curve.separable else math.sqrt(2.0)) * _UP, 0.0)]
    # The tangent of log(1 + s) at the middle s of its range is above it.
    middle = curve.bend / 8.0
    flat = (math.log1p(middle) - middle / (1.0 + middle)) + 2.0**-50 * middle
    return [(curve.bend / (1.0 + middle) * _UP, flat)]


def _lengths(curve: BentCurve) -> _Lengths:
    """(t, part) from the `evenness` of a curve to 1; t^2 and the part of the bend are on one line."""
    first, part = curve.evenness, curve.even_bend
    if first == 1.0:
        return _FULL
    shares = [i / (_N_LENGTHS - 1) for i in range(_N_LENGTHS - 1)]
    inner = ((math.sqrt(first**2 + share * (1.0 - first**2)), part + share * (1.0 - part)) for share in shares)
    return (*((t, min(1.0, part * _UP)) for t, part in inner), (1.0, 1.0))


def _cases(curve: BentCurve, bend: float, flat: float) -> list[list[tuple[float, Ends]]]:
    """The cases of one account: which row bends the objective, or at which angle two rows are."""
    rows, lengths = 2.0 if curve.neighbours is Neighbours.REPLACE_ONE else 1.0, _lengths(curve)
    is_cube = curve.separable and curve.n_outputs > 1
    shift = rows * curve.mu * (_UP / math.sqrt(curve.n_outputs) if is_cube else 1.0)
    if rows == 2.0 and curve.monotone and curve.n_outputs == 1:
        return [[(1.0, PairEnds(shift, (bend, flat), (lengths[0], lengths[-1]), acute))] for acute in (True, False)]
    n_corners = 1 if curve.separable else max(1, curve.n_outputs - 1)

    def row(squares: tuple[float, float], costs: _Costs, lengths: _Lengths = _FULL) -> Ends:
        return RowEnds(shift, squares, *costs, lengths, not curve.monotone, n_corners)

    # The curvature of a row raises the upper end, or lowers the lower one.
    bending, straight = (rows * bend, rows * flat), (0.0, 0.0)
    sides = [(bending, straight), (straight, bending)]
    if rows == 1.0:
        # One row has one length: up to the first of them, or between two.
        between = [lengths[:1], *pairwise(lengths)]
        return [[(1.0, row((0.5, 0.5), costs, some))] for costs in sides for some in between]
    # Slopes of either sign, or of several scores, may add up at one place and cancel at another.
    return [[(0.5, row((0.5, 0.0), costs)) for costs in sides]]
