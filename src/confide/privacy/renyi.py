"""Rényi divergences of Gaussian objective perturbation, and the rho of its concentrated privacy.

Symbols inside formulas: mu shift over standard deviation, c_J the logarithm that the curvature may cost, a an order.
Proofs: proofs/gaussian.md, theorems 5 and 6.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Protocol

import numpy as np
from scipy.special import erf, log_ndtr

from confide.privacy.budgets import Neighbours
from confide.privacy.gaussian import GaussianMechanism
from confide.privacy.loss_ends import BentCurve, accounts_of
from confide.privacy.loss_moments import LARGEST_SHIFT, log_moments
from confide.types import Array

_UP = 1.0 + 2.0**-40
_FIRST_ORDER, _LAST_ORDER, _RATIO = 2.0**-10, 2.0**20, 1.5
"""The first orders at which rho is computed, less 1: a geometric grid. Cells that matter are halved."""
_SLACK, _ROUNDS = 1e-3, 12
"""A cell matters if it may raise rho by this share. Neither decides what is proven."""


class ObjectiveCurve(BentCurve, Protocol):
    """The curve of Gaussian objective perturbation, see `GaussianObjective`."""

    @property
    def kappa(self) -> float:
        """Cost of the curvature of a tapered loss; inf for other losses."""

    @property
    def added_mu(self) -> float:
        """Whitened sensitivity of the seal and of the Gaussian releases beside it."""

    def corners(self) -> list[tuple[float, float]]:
        """(shift over mu, how many) for the corners of the slopes of the rows that differ."""


def renyi_curve(curve: ObjectiveCurve, orders: Array) -> Array:
    """Upper bounds on the Rényi divergences of these orders, all above 1: the least of theorem 5.

    Divergences grow with the order, so orders next to 1 may count as the least order of the grid.
    """
    orders = np.maximum(orders, 1.0 + _FIRST_ORDER)
    divergence = np.minimum(_of_corners(curve, orders), _of_ends(curve, orders))
    return (divergence + 0.5 * orders * curve.added_mu**2) * _UP


def _of_corners(curve: ObjectiveCurve, orders: Array) -> Array:
    """The bound by sums over corners. It is the better one for large orders."""
    divergence = curve.curvature + _log_corners(curve, orders) / (orders - 1.0)
    if curve.kappa < math.inf:
        divergence = np.minimum(divergence, _log_moment(curve, orders) / (orders - 1.0))
    # The last term pays for the digits that the moments lose near order 1.
    return divergence * _UP + 2.0**-49 * _n_corners(curve) / (orders - 1.0)


def _of_ends(curve: ObjectiveCurve, orders: Array) -> Array:
    """The bound by the ends of the loss and by E exp(-loss) = 1: theorem 5'. It is the better one for orders near 1."""
    n_scores = curve.n_outputs if curve.separable else 1
    least = np.full(orders.shape, np.inf)
    for cases in accounts_of(curve):
        worst = np.max([log_moments(rows, orders, n_scores) for rows in cases], axis=0)
        least = np.minimum(least, worst / (orders - 1.0))
    return least


def _n_corners(curve: ObjectiveCurve) -> float:
    return math.fsum(count for _, count in curve.corners())


def _log_corners(curve: ObjectiveCurve, orders: Array) -> Array:
    """log of 1 + the sum over corners of h(shift) - 1, h the mean excess: the moment without the cost of the curvature."""
    if not curve.monotone:
        return _two_sided_log_moment(curve, orders)
    total = np.zeros_like(orders)
    for shift, count in curve.corners():
        growth = np.maximum(0.0, _log_mean_excess(orders, shift * curve.mu))
        with np.errstate(divide="ignore"):
            # log(exp(growth) - 1), without overflow.
            total = np.logaddexp(total, math.log(count) + growth + np.log(-np.expm1(-growth)))
    return total


def _log_moment(curve: ObjectiveCurve, orders: Array) -> Array:
    """log E exp((a - 1) loss) in the form with kappa: proofs/gaussian.md, theorem 5."""
    raised, kappa, mu = (orders - 1.0) * curve.kappa, curve.kappa, curve.mu
    if curve.neighbours is Neighbours.ADD_OR_REMOVE_ONE:
        below = raised + log_ndtr(kappa / mu - 0.5 * mu)
        above = 0.5 * orders * (orders - 1.0) * mu**2 + log_ndtr((orders - 0.5) * mu - kappa / mu)
        moment: Array = np.logaddexp(below, above)
        return moment
    # log[(exp(raised) + 1) h(mu) + h(2 mu) - 2], with h >= 1 the mean excess.
    single = _log_mean_excess(orders, mu) + np.logaddexp(raised, 0.0)
    total: Array = np.logaddexp(single, _log_mean_excess(orders, 2.0 * mu))
    return total + np.log1p(-2.0 * np.exp(-total))


def _two_sided_log_moment(curve: ObjectiveCurve, orders: Array) -> Array:
    """The moment where slopes may have either sign: log g(mu), or log[g(2 mu) + 2 Phi((a - 1) 2 mu) - 1].

    g(m) = 2 exp(a (a - 1) m^2 / 2) Phi((a - 1) m),      2 Phi(x) - 1 = erf(x / sqrt(2))
    """
    replaced = curve.neighbours is Neighbours.REPLACE_ONE
    m = 2.0 * curve.mu if replaced else curve.mu
    both = erf((orders - 1.0) * m / math.sqrt(2.0))
    moment: Array = 0.5 * orders * (orders - 1.0) * m**2 + np.log1p(both)
    return np.logaddexp(moment, np.log(both)) if replaced else moment


def _log_mean_excess(order: Array, mu: float) -> Array:
    """log E max(1, exp((a - 1) X)) for X ~ N(mu^2 / 2, mu^2).

    log[Phi(-mu/2) + exp(a (a - 1) mu^2 / 2) Phi((a - 1/2) mu)].
    """
    above: Array = 0.5 * order * (order - 1.0) * mu**2 + log_ndtr((order - 0.5) * mu)
    moment: Array = np.logaddexp(log_ndtr(-0.5 * mu), above)
    return moment


@lru_cache(maxsize=2**10)
def concentrated_rho(curve: GaussianMechanism | ObjectiveCurve) -> float:
    """A rho such that the curve obeys Rényi divergence <= rho a at every order a.

    (a - 1) times the divergence is convex in a. So in a cell of orders it is at most the chord, and the divergence over the
    order at most the larger value at the two ends, times a factor. Below the first order it is at most the divergence there.
    """
    if isinstance(curve, GaussianMechanism):
        return curve.renyi(1.0)
    last = max(_LAST_ORDER, 2.0 * LARGEST_SHIFT / curve.mu)
    raised = np.geomspace(_FIRST_ORDER, last, 2 + int(math.log(last / _FIRST_ORDER, _RATIO)))
    ratios = renyi_curve(curve, 1.0 + raised) / (1.0 + raised)
    for _ in range(_ROUNDS):
        matters = _of_cells(raised, ratios) > (1.0 + _SLACK) * ratios.max()
        between = np.sqrt(raised[:-1] * raised[1:])[matters]
        if not between.size:
            break
        raised = np.append(raised, between)
        ratios = np.append(ratios, renyi_curve(curve, 1.0 + between) / (1.0 + between))
        order = np.argsort(raised)
        raised, ratios = raised[order], ratios[order]
    # Beyond the last order the excess over half the squared shift times the order is below c_J + log(2 N) / (a - 1), N
    # corners.
    shift = 2.0 if curve.neighbours is Neighbours.REPLACE_ONE else 1.0
    tail = (curve.curvature + math.log(2.0 * max(3.0, _n_corners(curve))) / raised[-1]) / raised[-1]
    beyond = 0.5 * ((shift * curve.mu) ** 2 + curve.added_mu**2) + tail
    below = ratios[0] * (1.0 + raised[0])
    return float(max(_of_cells(raised, ratios).max(), below, beyond)) * _UP


def _of_cells(raised: Array, ratios: Array) -> Array:
    """Upper bounds on divergence / order within the cells, from its bounds `ratios` at their ends."""
    ends = raised[:-1], raised[1:]
    excess = (np.sqrt(ends[1]) - np.sqrt(ends[0])) ** 2 / (1.0 + ends[0])
    cells: Array = np.maximum(ratios[:-1], ratios[1:]) * (1.0 + excess)
    return cells
