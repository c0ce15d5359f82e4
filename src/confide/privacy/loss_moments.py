"""The largest moment of a privacy loss that lies between two ends, given Gaussian noise, rounded up.

The loss l has E exp(-l) = 1. So for every c >= 0 its moment E exp((a - 1) l) is at most the mean, over the noise, of the
larger value that

    exp((a - 1) l) + c (exp(-l) - 1)

has at the two ends. Proof: proofs/gaussian.md, theorem 5; for several scores proofs/multiclass.md, theorem 5.
"""

from __future__ import annotations

import math
from functools import cache

import numpy as np
from scipy.special import log_ndtr, ndtr

from confide.privacy.loss_ends import Ends
from confide.types import Array

LARGEST_SHIFT = 8.0
"""The largest order less 1, times the shift, at which moments are computed."""
_LARGEST_EXPONENT = 500.0
_STEP = 2.0**-4
_FAR = 18.0
_HALF = np.arange(0.0, _FAR + _STEP, _STEP)
_NODES = np.concatenate([-_HALF[:0:-1], _HALF])
"""Between two nodes a convex function is replaced by its chord."""
_UP, _DOWN = 1.0 + 2.0**-33, 1.0 - 2.0**-33
"""Cover the rounding of chances, exponentials and sums."""


def _mean_excess(z: Array) -> Array:
    """E max(0, Z - z)."""
    excess: Array = np.exp(-0.5 * z**2) / math.sqrt(2.0 * math.pi) - z * ndtr(-z)
    return excess


def _chances() -> Array:
    """E of the hat function of each node at a standard normal variable; 0 outside of the nodes."""
    # Beyond the last node lies less than exp(-160); hats there count in full. What is negative is computed by symmetry.
    excess = _mean_excess(np.append(_HALF, _FAR + _STEP))
    right = np.diff(excess, 2) / _STEP
    half = np.concatenate([[2.0 * (excess[1] - excess[0]) / _STEP + 1.0], right])
    return np.concatenate([half[:0:-1], half])


_CHANCES = _chances()


@cache
def _chances_of_largest(n: int) -> Array:
    """The same for a variable that exceeds any z with chance 1 - Phi(z)^n, rounded up: the largest of n normal ones."""
    parts = 2**6
    ends = np.concatenate([_NODES[:-1, None] + _STEP * np.arange(parts) / parts]).ravel()
    exceeds = -np.expm1(n * log_ndtr(ends))
    chances: Array = exceeds.reshape(-1, parts).mean(axis=1) * _UP
    return chances


def log_moments(rows: list[tuple[float, Ends]], orders: Array, n_scores: int) -> Array:
    """Upper bounds on log E exp((a - 1) l) for these orders a; inf where a is too large for nodes and exponentials.

    The moment is at most the mean over the rows, each given by a share and its ends. If there are several scores, each has
    noise of its own, and the loss lies between the sums of their ends.
    """
    ends = [(share, one, one.upper(_NODES), one.lower(_NODES)) for share, one in rows]
    farthest = n_scores * max(float(np.abs(part).max()) for _, _, *parts in ends for part in parts)
    small = (orders - 1.0) * rows[0][1].shift <= LARGEST_SHIFT
    small &= np.maximum(orders - 1.0, 1.0) * farthest <= _LARGEST_EXPONENT
    moments = np.full(orders.shape, np.inf)
    if small.any():
        moments[small] = _log_moments(ends, orders[small][:, None] - 1.0, n_scores)
    return moments


def _log_moments(ends: list[tuple[float, Ends, Array, Array]], raised: Array, n_scores: int) -> Array:
    one = ends[0][1]
    if n_scores > 1 or one.n_corners > 1:
        excess = sum(share * _apart(row, above, below, raised, n_scores) for share, row, above, below in ends)
    else:
        choose = _charges if one.two_sided else _charges_of_one_tilt
        charge = choose(raised, *map(np.concatenate, _joined(ends)))
        excess = sum(share * _together(row, above, below, raised, charge) for share, row, above, below in ends)
    moments: Array = np.log1p(excess) * _UP
    return moments


def _mean(values: Array, chances: Array) -> Array:
    """The mean for each order, summed in the same way however many orders there are."""
    mean: Array = (values * chances).sum(axis=1)
    return mean


def _together(one: Ends, above: Array, below: Array, raised: Array, charge: Array) -> Array:
    """Mean of the larger value at the two ends, less 1: a convex function of the noise, so nodes are enough."""
    upper = np.expm1(raised * above) * _UP + charge * np.expm1(-above) * _DOWN
    lower = np.expm1(raised * below) * _DOWN + charge * np.expm1(-below) * _UP
    excess: Array = _mean(np.maximum(upper, lower), _CHANCES) * _UP
    return excess + _beyond(raised, one.shift, above) + charge[:, 0] * _beyond(np.ones_like(raised), one.shift, -below)


def _apart(one: Ends, above: Array, below: Array, raised: Array, n_scores: int) -> Array:
    """The same where both ends may be far from 0 at once: the sum of what either exceeds 1 by, with c = a - 1."""
    charge, ones = raised[:, 0], np.ones_like(raised)
    if n_scores > 1:
        upper = _of_sums(raised, above, n_scores, one.shift) * _UP + charge * _of_sums(-ones, above, n_scores, 0.0) * _DOWN
        lower = _of_sums(raised, below, n_scores, 0.0) * _DOWN + charge * _of_sums(-ones, below, n_scores, one.shift) * _UP
        return upper + lower
    upper = np.expm1(raised * above) * _UP + raised * np.expm1(-above) * _DOWN
    lower = np.expm1(raised * below) * _DOWN + raised * np.expm1(-below) * _UP
    far = _beyond(raised, one.shift, above) + charge * _beyond(ones, one.shift, -below)
    # Both rise from 0, the first with the noise and the second against it.
    rising = upper + lower[:, ::-1]
    mean = rising[:, 0] + _mean(np.diff(rising, axis=1), _chances_of_largest(one.n_corners))
    return mean * _UP + one.n_corners * far


def _of_sums(raised: Array, ends: Array, n_scores: int, shift: float) -> Array:
    """E exp(raised * sum of ends) - 1 for scores with noise of their own; `shift` of 0 leaves out what reduces it."""
    one = _mean(np.expm1(raised * ends), _CHANCES)
    if shift:
        one = one * _UP + _beyond(np.abs(raised), shift, np.abs(ends))
    # A mean of exponentials is above 0, and may be too small for doubles.
    one = np.maximum(one, 2.0**-40 - 1.0)
    total: Array = np.expm1(n_scores * np.log1p(one))
    return total


def _beyond(raised: Array, shift: float, ends: Array) -> Array:
    """E exp(raised * end) where the noise is beyond the last nodes, rounded up. There an end moves by `shift` at most."""
    slope, end = raised[:, 0] * shift, max(ends[0], ends[-1])
    found: Array = 2.0 * np.exp(raised[:, 0] * end - slope * _FAR + 0.5 * slope**2 + log_ndtr(slope - _FAR)) * _UP
    return found


def _joined(ends: list[tuple[float, Ends, Array, Array]]) -> tuple[list[Array], list[Array], list[Array]]:
    """Chances and ends of the nodes of several rows."""
    return [share * _CHANCES for share, *_ in ends], [above for *_, above, _ in ends], [below for *_, below in ends]


def _charges_of_one_tilt(raised: Array, chances: Array, above: Array, below: Array) -> Array:
    """c for each order: (a - 1) exp(a t), with one t for all orders.

    Then the function of the loss is least at t. At order 2 this t is the best: with it the mean of exp(-l) is 1 in the worst
    case. Any c gives a bound. Where both ends rise with the noise, one t is near the best for all orders.
    """
    order = np.argsort(above + below)
    falls = np.cumsum((chances * (np.expm1(-below) - np.expm1(-above)))[order])
    found = int(np.searchsorted(falls, -float(chances @ np.expm1(-above))))
    tilt = 0.5 * float((above + below)[order][min(found, len(order) - 1)])
    charges: Array = raised * np.exp((1.0 + raised) * tilt)
    return charges


def _charges(raised: Array, chances: Array, above: Array, below: Array) -> Array:
    """The best c for each order: the slope of a chord at which the mean of exp(-l) becomes 1 in the worst case."""
    width = np.maximum(np.expm1(-below) - np.expm1(-above), 2.0**-1000)
    chords = (np.exp(raised * above) - np.exp(raised * below)) / width
    order = np.argsort(chords, axis=1)
    falls = np.cumsum((chances * width)[order], axis=1)
    found = (falls < -(chances @ np.expm1(-above))).sum(axis=1, keepdims=True)
    charges: Array = np.take_along_axis(chords, np.take_along_axis(order, np.minimum(found, len(chances) - 1), 1), 1)
    return charges
