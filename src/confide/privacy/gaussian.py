"""What Gaussian noise costs: the exact curve of the Gaussian mechanism, and that of Gaussian objective perturbation.

Symbols inside formulas: mu shift over standard deviation, c_J the logarithm that the curvature may cost, a an order.
Proofs: proofs/gaussian.md. Curves are evaluated in logarithms, and calibrations end on the private side.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from scipy.special import erf, log_ndtr, ndtr

from confide.errors import ParameterError
from confide.privacy.budgets import ZCDP, ApproxDP, Neighbours
from confide.types import Array

_DOWN, _UP = 1.0 - 2.0**-40, 1.0 + 2.0**-40


def gaussian_delta(epsilon: float, mu: float) -> float:
    """The least delta at which N(mu, 1) against N(0, 1) is (epsilon, delta)-indistinguishable; any real epsilon.

    Phi(mu/2 - epsilon/mu) - exp(epsilon) Phi(-mu/2 - epsilon/mu). Balle and Wang (2018), theorem 5.
    """
    return float(gaussian_deltas(np.array([epsilon]), mu)[0])


def gaussian_deltas(epsilons: Array, mu: float) -> Array:
    """`gaussian_delta` at several epsilons."""
    if mu <= 0.0:
        certain: Array = np.maximum(0.0, -np.expm1(np.minimum(epsilons, 0.0)))
        return certain
    first = log_ndtr(0.5 * mu - epsilons / mu)
    second = epsilons + log_ndtr(-0.5 * mu - epsilons / mu)
    # exp(first) - exp(second), without losing the difference; first >= second up to rounding, which the last term covers.
    difference = -np.expm1(np.minimum(0.0, second - first)) * (1.0 + 1e-9) + 2.0**-48 * (1.0 - first)
    deltas: Array = np.exp(first) * difference + 2.0**-1000  # for what underflows
    return deltas


def _log_mean_excess(order: Array, mu: float) -> Array:
    """log E max(1, exp((a - 1) X)) for X ~ N(mu^2 / 2, mu^2).

    log[Phi(-mu/2) + exp(a (a - 1) mu^2 / 2) Phi((a - 1/2) mu)].
    """
    above: Array = 0.5 * order * (order - 1.0) * mu**2 + log_ndtr((order - 0.5) * mu)
    moment: Array = np.logaddexp(log_ndtr(-0.5 * mu), above)
    return moment


@dataclass(frozen=True, slots=True)
class GaussianMechanism:
    """A release whose curve is at most that of the Gaussian mechanism.

    Parameters
    ----------
    mu : sensitivity over standard deviation, positive
    """

    mu: float

    def renyi(self, order: float) -> float:
        """Upper bound on the Rényi divergence of this order, above 1."""
        return 0.5 * order * self.mu**2 * _UP


_FAR = 12.0
"""Deviations of the seal; no bound rests on it."""
_CELLS = 30.0 * np.linspace(0.0, 1.0, 3001) ** 2
"""Ends of cells of a normal variable, from the first."""


@dataclass(frozen=True, slots=True)
class GaussianObjective:
    """Gaussian objective perturbation with a loss of the score of a row, followed by a Gaussian seal.

    Parameters
    ----------
    mu : largest whitened shift of the gradient by one row, L over the noise's scale
    curvature : c_J = log(1 + c R^2 / l2)
    kappa : what the curvature costs a tapered loss; inf for others
    seal_mu : whitened sensitivity of the seal
    neighbours : the neighbour relation
    monotone : whether the derivative of the loss has one sign; kappa has no meaning otherwise
    n_outputs, separable : of the loss; for several scores kappa is inf, and `curvature` may be less than c_J
    """

    mu: float
    curvature: float
    kappa: float
    seal_mu: float
    neighbours: Neighbours
    monotone: bool = False
    n_outputs: int = 1
    separable: bool = True

    def __post_init__(self) -> None:
        if not self.monotone or self.n_outputs > 1:
            object.__setattr__(self, "kappa", math.inf)
        if not self.monotone and self.n_outputs > 1:
            raise ParameterError("Gaussian noise for several scores needs slopes of one sign.")

    def _corners(self) -> list[tuple[float, float]]:
        """(shift over mu, how many) of the corners of the slopes of the rows that differ, those that shift nothing apart.

        Proofs: proofs/gaussian.md, theorem 2; of several scores proofs/multiclass.md, theorem 3. Of a monotone loss.
        """
        n, replaced = self.n_outputs, self.neighbours is Neighbours.REPLACE_ONE
        if self.separable and n > 1:
            # Corners of cubes, by the number s of scores that slope, of either row: at most sqrt(2 s / n) L long.
            rows = 2 if replaced else 1
            return [(math.sqrt(rows * s / n) * _UP, float(math.comb(rows * n, s))) for s in range(1, rows * n + 1)]
        corners = max(1, n - 1)
        if not replaced:
            return [(1.0, corners)]
        oblique = [(math.sqrt(3.0) * _UP, float(corners * (corners - 1)))] if corners > 1 else []
        return [(2.0, corners), *oblique, (1.0, 2 * corners)]

    def _shifts(self, kappa_form: bool, room: float) -> list[tuple[float, float, float]]:
        """(cost of the curvature, mu, how many) of the Gaussians whose curves add up to a bound (theorems 2 and 3).

        `room` is what the curvature leaves of epsilon.
        """
        if not self.monotone:
            if self.neighbours is Neighbours.ADD_OR_REMOVE_ONE:
                return [(self.curvature, self.mu, 2.0)]
            # target_losses.md, theorem 2: the corners are two opposite pairs, whose squared lengths add up to (2 mu)^2 at
            # most. Where the curve is convex in the square the worst is one pair as long as can be and one of no length.
            convex = ((2.0 * self.mu) ** 2 + self.seal_mu**2) * _UP <= 2.0 * room**2 / (1.0 + math.hypot(1.0, room))
            return [(self.curvature, 2.0 * self.mu, 2.0), (self.curvature, 0.0 if convex else 2.0 * self.mu, 2.0)]
        if not kappa_form:
            return [(self.curvature, shift * self.mu, count) for shift, count in self._corners()]
        if self.neighbours is Neighbours.ADD_OR_REMOVE_ONE:
            return [(0.0, self.mu, 1.0)]
        return [(0.0, 2.0 * self.mu, 1.0), (0.0, self.mu, 1.0), (self.kappa, self.mu, 1.0)]

    def delta(self, epsilon: float) -> float:
        """Upper bound on the least delta for this epsilon; 1 where no bound is known."""
        known = min(self._delta(epsilon, kappa_form=False), self._delta(epsilon, kappa_form=True))
        # Well above kappa they agree.
        near = epsilon - self.kappa < _FAR * self.seal_mu
        single = self.neighbours is Neighbours.ADD_OR_REMOVE_ONE and self.kappa < math.inf
        return min(known, self._bent_delta(epsilon)) if single and near else known

    def _bent_delta(self, epsilon: float) -> float:
        """Mean of delta_G(epsilon - psi(X); seal) over X ~ N(mu^2 / 2, mu^2), rounded up: theorem 3, second form.

        psi(x) = max over 0 <= a <= 1 of a x + kappa a (1 - a) rises, and so does what is averaged: each cell counts with its
        upper end. Cells are small from where psi is _FAR deviations of the seal below epsilon: before, little counts.
        """
        mu, kappa = self.mu, self.kappa
        seen = epsilon - _FAR * self.seal_mu
        begin = 2.0 * math.sqrt(kappa * max(0.0, seen)) - kappa if seen < kappa else seen
        ends = min(30.0, max(-9.0, begin / mu - 0.5 * mu)) + _CELLS
        chances = np.concatenate([[ndtr(ends[0])], ndtr(-ends[:-1]) - ndtr(-ends[1:])])
        losses = mu * (0.5 * mu + ends)
        slopes = np.clip(0.5 + 0.5 * losses / max(kappa, 2.0**-1000), 0.0, 1.0)
        bent = slopes * losses + kappa * slopes * (1.0 - slopes) + 2.0**-40 * (kappa + np.abs(losses))
        found = np.minimum(1.0, gaussian_deltas(epsilon - bent, self.seal_mu)) @ chances
        return min(1.0, float(found + ndtr(-ends[-1])) * (1.0 + 1e-7) + 2.0**-990)

    def _delta(self, epsilon: float, kappa_form: bool) -> float:
        room = epsilon - (self.kappa if kappa_form else self.curvature)
        if not room > 0.0:
            return 1.0
        # Composed with the seal, a Gaussian's curve is a Gaussian's. Where the seal's loss leaves less than the curvature's
        # cost, the bound on the objective does not speak, and 1 takes its place.
        silent = float(ndtr(0.5 * self.seal_mu - room / self.seal_mu)) if self.seal_mu > 0.0 else 0.0
        return silent + sum(
            count * gaussian_delta(epsilon - cost, math.hypot(mu, self.seal_mu))
            for cost, mu, count in self._shifts(kappa_form, room)
        )

    def renyi(self, order: float) -> float:
        """Upper bound on the Rényi divergence of this order, above 1."""
        return float(self.renyi_curve(np.array([order]))[0])

    def renyi_curve(self, orders: Array) -> Array:
        """`renyi` at several orders."""
        curve = self.curvature + self._log_corners(orders) / (orders - 1.0)
        if self.kappa < math.inf:
            curve = np.minimum(curve, self._log_moment(orders) / (orders - 1.0))
        # The second term pays for the digits that the moments lose near order 1.
        lost = 2.0**-49 * self._n_corners
        return (curve + 0.5 * orders * self.seal_mu**2) * _UP + lost / (orders - 1.0)

    @property
    def _n_corners(self) -> float:
        return math.fsum(count for _, count in self._corners())

    def _log_corners(self, orders: Array) -> Array:
        """log of 1 + the sum over corners of h(shift) - 1, h the mean excess: the moment but for the curvature's cost."""
        if not self.monotone:
            return self._two_sided_log_moment(orders)
        total = np.zeros_like(orders)
        for shift, count in self._corners():
            growth = np.maximum(0.0, _log_mean_excess(orders, shift * self.mu))
            with np.errstate(divide="ignore"):
                # log(exp(growth) - 1), without overflow.
                total = np.logaddexp(total, math.log(count) + growth + np.log(-np.expm1(-growth)))
        return total

    def _log_moment(self, orders: Array) -> Array:
        """log E exp((a - 1) loss) in the kappa form."""
        raised, kappa, mu = (orders - 1.0) * self.kappa, self.kappa, self.mu
        if self.neighbours is Neighbours.ADD_OR_REMOVE_ONE:
            below = raised + log_ndtr(kappa / mu - 0.5 * mu)
            above = 0.5 * orders * (orders - 1.0) * mu**2 + log_ndtr((orders - 0.5) * mu - kappa / mu)
            moment: Array = np.logaddexp(below, above)
            return moment
        # log[(exp(raised) + 1) h(mu) + h(2 mu) - 2], with h >= 1 the mean excess.
        single = _log_mean_excess(orders, mu) + np.logaddexp(raised, 0.0)
        total: Array = np.logaddexp(single, _log_mean_excess(orders, 2.0 * mu))
        return total + np.log1p(-2.0 * np.exp(-total))

    def _two_sided_log_moment(self, orders: Array) -> Array:
        """The same where the slopes may have either sign: log g(mu), or log[g(2 mu) + 2 Phi((a - 1) 2 mu) - 1].

        g(m) = 2 exp(a (a - 1) m^2 / 2) Phi((a - 1) m),      2 Phi(x) - 1 = erf(x / sqrt(2))
        """
        replaced = self.neighbours is Neighbours.REPLACE_ONE
        m = 2.0 * self.mu if replaced else self.mu
        both = erf((orders - 1.0) * m / math.sqrt(2.0))
        moment: Array = 0.5 * orders * (orders - 1.0) * m**2 + np.log1p(both)
        return np.logaddexp(moment, np.log(both)) if replaced else moment


Curve: TypeAlias = GaussianMechanism | GaussianObjective

_ORDERS = 1.0 + np.geomspace(1e-6, 1e6, 2**12)


def concentrated_rho(curve: Curve) -> float:
    """A rho such that the curve obeys Rényi divergence <= rho a at every order a.

    Divergences grow with the order, so a cell (a, a'] of the grid obeys it with renyi(a') / a.
    """
    if isinstance(curve, GaussianMechanism):
        return curve.renyi(1.0)
    cells = curve.renyi_curve(_ORDERS) / np.append(1.0, _ORDERS[:-1])
    # Beyond the grid the excess over half the squared shift times the order is below c_J + log(2 N) / (a - 1), N corners.
    shift = 2.0 if curve.neighbours is Neighbours.REPLACE_ONE else 1.0
    last = float(_ORDERS[-1])
    tail = (curve.curvature + math.log(2.0 * max(3.0, curve._n_corners)) / (last - 1.0)) / last
    return max(float(cells.max()), 0.5 * ((shift * curve.mu) ** 2 + curve.seal_mu**2) + tail) * _UP


def largest_mu(epsilon: float, delta: float) -> float:
    """The largest mu at which the Gaussian mechanism is (epsilon, delta)-private, rounded down."""
    low, high = 0.0, math.sqrt(2.0 * epsilon) + 10.0
    for _ in range(100):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if gaussian_delta(epsilon, middle) <= delta else (low, middle)
    return low


def mu_within(budget: ZCDP | ApproxDP) -> float:
    """The largest mu at which the Gaussian mechanism costs at most the budget, and a little less."""
    if isinstance(budget, ZCDP):
        return math.sqrt(2.0 * budget.rho * _DOWN)
    return largest_mu(budget.epsilon, budget.delta * _DOWN)
