"""What Gaussian objective perturbation costs: its curve, its Rényi divergences, and its rho.

Symbols inside formulas: mu shift over standard deviation, c_J the logarithm that the curvature may cost, a an order.
Proofs: proofs/gaussian.md, theorems 5 and 6.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache, lru_cache

import numpy as np
from scipy.special import erf, log_ndtr, ndtr

from confide.array_types import Array
from confide.errors import ParameterError
from confide.privacy.budgets import Neighbours
from confide.privacy.gaussian import gaussian_delta, gaussian_deltas
from confide.privacy.loss_ends import Ends, accounts_of

# The largest moment of a privacy loss that lies between two ends, given Gaussian noise, rounded up.
#
# The loss l has E exp(-l) = 1. So for every c >= 0 its moment E exp((a - 1) l) is at most the mean, over the noise, of the
# larger value that
#
#     exp((a - 1) l) + c (exp(-l) - 1)
#
# has at the two ends. Proof: proofs/gaussian.md, theorem 5; for several scores proofs/multiclass.md, theorem 5.

LARGEST_SHIFT = 8.0
"""The largest order less 1, times the shift, at which moments are computed."""
_LARGEST_EXPONENT = 500.0
_STEP = 2.0**-4
_FAR = 18.0
_HALF = np.arange(0.0, _FAR + _STEP, _STEP)
_NODES = np.concatenate([-_HALF[:0:-1], _HALF])
"""Between two nodes a convex function is replaced by its chord."""
_SUMS_UP, _SUMS_DOWN = 1.0 + 2.0**-33, 1.0 - 2.0**-33
"""Cover the rounding of chances, exponentials and sums."""


def _mean_excess(z: Array) -> Array:
    """E max(0, Z - z)."""
    return np.asarray(np.exp(-0.5 * z**2) / math.sqrt(2.0 * math.pi) - z * ndtr(-z))


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
    return np.asarray(exceeds.reshape(-1, parts).mean(axis=1) * _SUMS_UP)


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
    return np.asarray(np.log1p(excess) * _SUMS_UP)


def _mean(values: Array, chances: Array) -> Array:
    """The mean for each order, summed in the same way however many orders there are."""
    return np.asarray((values * chances).sum(axis=1))


def _together(one: Ends, above: Array, below: Array, raised: Array, charge: Array) -> Array:
    """Mean of the larger value at the two ends, less 1: a convex function of the noise, so nodes are enough."""
    upper = np.expm1(raised * above) * _SUMS_UP + charge * np.expm1(-above) * _SUMS_DOWN
    lower = np.expm1(raised * below) * _SUMS_DOWN + charge * np.expm1(-below) * _SUMS_UP
    excess: Array = _mean(np.maximum(upper, lower), _CHANCES) * _SUMS_UP
    return excess + _beyond(raised, one.shift, above) + charge[:, 0] * _beyond(np.ones_like(raised), one.shift, -below)


def _apart(one: Ends, above: Array, below: Array, raised: Array, n_scores: int) -> Array:
    """The same where both ends may be far from 0 at once: the sum of what either exceeds 1 by, with c = a - 1."""
    charge, ones = raised[:, 0], np.ones_like(raised)
    if n_scores > 1:
        against = charge * _of_sums(-ones, above, n_scores, 0.0) * _SUMS_DOWN
        upper = _of_sums(raised, above, n_scores, one.shift) * _SUMS_UP + against
        against = charge * _of_sums(-ones, below, n_scores, one.shift) * _SUMS_UP
        return upper + (_of_sums(raised, below, n_scores, 0.0) * _SUMS_DOWN + against)
    upper = np.expm1(raised * above) * _SUMS_UP + raised * np.expm1(-above) * _SUMS_DOWN
    lower = np.expm1(raised * below) * _SUMS_DOWN + raised * np.expm1(-below) * _SUMS_UP
    far = _beyond(raised, one.shift, above) + charge * _beyond(ones, one.shift, -below)
    # Both rise from 0, the first with the noise and the second against it.
    rising = upper + lower[:, ::-1]
    mean = rising[:, 0] + _mean(np.diff(rising, axis=1), _chances_of_largest(one.n_corners))
    return mean * _SUMS_UP + one.n_corners * far


def _of_sums(raised: Array, ends: Array, n_scores: int, shift: float) -> Array:
    """E exp(raised * sum of ends) - 1 for scores with noise of their own; `shift` of 0 leaves out what reduces it."""
    one = _mean(np.expm1(raised * ends), _CHANCES)
    if shift:
        one = one * _SUMS_UP + _beyond(np.abs(raised), shift, np.abs(ends))
    # A mean of exponentials is above 0, and may be too small for doubles.
    return np.asarray(np.expm1(n_scores * np.log1p(np.maximum(one, 2.0**-40 - 1.0))))


def _beyond(raised: Array, shift: float, ends: Array) -> Array:
    """E exp(raised * end) where the noise is beyond the last nodes, rounded up. There an end moves by `shift` at most."""
    slope, end = raised[:, 0] * shift, max(ends[0], ends[-1])
    return np.asarray(2.0 * np.exp(raised[:, 0] * end - slope * _FAR + 0.5 * slope**2 + log_ndtr(slope - _FAR)) * _SUMS_UP)


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
    position = int(np.searchsorted(falls, -float(chances @ np.expm1(-above))))
    tilt = 0.5 * float((above + below)[order][min(position, len(order) - 1)])
    return np.asarray(raised * np.exp((1.0 + raised) * tilt))


def _charges(raised: Array, chances: Array, above: Array, below: Array) -> Array:
    """The best c for each order: the slope of a chord at which the mean of exp(-l) becomes 1 in the worst case."""
    width = np.maximum(np.expm1(-below) - np.expm1(-above), 2.0**-1000)
    chords = (np.exp(raised * above) - np.exp(raised * below)) / width
    order = np.argsort(chords, axis=1)
    falls = np.cumsum((chances * width)[order], axis=1)
    positions = (falls < -(chances @ np.expm1(-above))).sum(axis=1, keepdims=True)
    return np.asarray(np.take_along_axis(chords, np.take_along_axis(order, np.minimum(positions, len(chances) - 1), 1), 1))


_UP = 1.0 + 2.0**-40
_FIRST_ORDER, _LAST_ORDER, _RATIO = 2.0**-10, 2.0**20, 1.5
"""The first orders at which rho is computed, less 1: a geometric grid. Cells that matter are halved."""
_SLACK, _ROUNDS = 1e-3, 12
"""A cell matters if it may raise rho by this share. Neither decides what is proven."""


def renyi_curve(curve: GaussianObjective, orders: Array) -> Array:
    """Upper bounds on the Rényi divergences of these orders, all above 1: the least of theorem 5.

    Divergences grow with the order, so orders next to 1 may count as the least order of the grid.
    """
    orders = np.maximum(orders, 1.0 + _FIRST_ORDER)
    divergence = np.minimum(_of_corners(curve, orders), _of_ends(curve, orders))
    return (divergence + 0.5 * orders * curve.added_mu**2) * _UP


def _of_corners(curve: GaussianObjective, orders: Array) -> Array:
    """The bound by sums over corners. It is the better one for large orders."""
    divergence = curve.curvature + _log_corners(curve, orders) / (orders - 1.0)
    if curve.kappa < math.inf:
        divergence = np.minimum(divergence, _log_moment(curve, orders) / (orders - 1.0))
    # The last term pays for the digits that the moments lose near order 1.
    return divergence * _UP + 2.0**-49 * _n_corners(curve) / (orders - 1.0)


def _of_ends(curve: GaussianObjective, orders: Array) -> Array:
    """The bound by the ends of the loss and by E exp(-loss) = 1: theorem 5'. It is the better one for orders near 1."""
    n_scores = curve.n_outputs if curve.separable else 1
    least = np.full(orders.shape, np.inf)
    for cases in accounts_of(curve):
        worst = np.max([log_moments(rows, orders, n_scores) for rows in cases], axis=0)
        least = np.minimum(least, worst / (orders - 1.0))
    return least


def _n_corners(curve: GaussianObjective) -> float:
    return math.fsum(count for _, count in curve.corners())


def _log_corners(curve: GaussianObjective, orders: Array) -> Array:
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


def _log_moment(curve: GaussianObjective, orders: Array) -> Array:
    """log E exp((a - 1) loss) in the form with kappa: proofs/gaussian.md, theorem 5."""
    raised, kappa, mu = (orders - 1.0) * curve.kappa, curve.kappa, curve.mu
    if curve.neighbours is Neighbours.ADD_OR_REMOVE_ONE:
        below = raised + log_ndtr(kappa / mu - 0.5 * mu)
        above = 0.5 * orders * (orders - 1.0) * mu**2 + log_ndtr((orders - 0.5) * mu - kappa / mu)
        return np.asarray(np.logaddexp(below, above))
    # log[(exp(raised) + 1) h(mu) + h(2 mu) - 2], with h >= 1 the mean excess.
    single = _log_mean_excess(orders, mu) + np.logaddexp(raised, 0.0)
    total: Array = np.logaddexp(single, _log_mean_excess(orders, 2.0 * mu))
    return total + np.log1p(-2.0 * np.exp(-total))


def _two_sided_log_moment(curve: GaussianObjective, orders: Array) -> Array:
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
    return np.asarray(np.logaddexp(log_ndtr(-0.5 * mu), above))


@lru_cache(maxsize=2**10)
def concentrated_rho(curve: GaussianObjective) -> float:
    """A rho such that the curve obeys Rényi divergence <= rho a at every order a.

    (a - 1) times the divergence is convex in a. So in a cell of orders it is at most the chord, and the divergence over the
    order at most the larger value at the two ends, times a factor. Below the first order it is at most the divergence there.
    """
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
    return np.asarray(np.maximum(ratios[:-1], ratios[1:]) * (1.0 + excess))


# What Gaussian objective perturbation costs: for an epsilon, the least delta that is proven.
#
# Symbols inside formulas: mu shift over standard deviation, c_J the logarithm that the curvature may cost. Proofs:
# proofs/gaussian.md. Curves are evaluated in logarithms.

_DEVIATIONS_OF_CELLS = 12.0
"""Deviations of the seal. It decides where cells are small; no bound rests on it."""
_CELLS = 30.0 * np.linspace(0.0, 1.0, 3001) ** 2
"""Ends of the cells of a normal variable, relative to the first end."""


@dataclass(frozen=True, slots=True)
class GaussianObjective:
    """Gaussian objective perturbation with a loss of the score of a row, followed by a Gaussian seal.

    Other Gaussian releases from the same rows may come with it, at the same charge.

    Parameters
    ----------
    mu : largest whitened shift of the gradient by one row: L over the scale of the noise
    curvature : c_J = log(1 + c R^2 / l2)
    kappa : cost of the curvature of a tapered loss; inf for other losses
    seal_mu : whitened sensitivity of the seal
    neighbours : the neighbour relation
    monotone : whether the derivative of the loss has one sign; kappa has a meaning only then
    n_outputs, separable : as those of the loss; for several scores kappa is inf, and `curvature` may be less than c_J
    beside_mu : whitened sensitivity of other Gaussian releases that the same charge covers, before or after this one
    bend : L R^2 / l2 of a tapered loss: a row with the share a of its largest slope costs at most bend a (1 - a) by its
        curvature; inf for other losses, and where it is not known
    evenness, even_bend : a row whose whitened length is this share of the largest has at most this share of `bend`; shorter
        rows have less in proportion to the square of their length, and longer rows no more than in proportion; 1 for a ball
    """

    mu: float
    curvature: float
    kappa: float
    seal_mu: float
    neighbours: Neighbours
    monotone: bool = False
    n_outputs: int = 1
    separable: bool = True
    beside_mu: float = 0.0
    bend: float = math.inf
    evenness: float = 1.0
    even_bend: float = 1.0

    def __post_init__(self) -> None:
        if not self.monotone or self.n_outputs > 1:
            object.__setattr__(self, "kappa", math.inf)
        if not self.monotone and self.n_outputs > 1:
            raise ParameterError("Gaussian noise for several scores needs slopes of one sign.")

    @property
    def added_mu(self) -> float:
        """Whitened sensitivity of the seal and of the releases beside it: together they are one Gaussian mechanism."""
        # hypot errs by less than 2 units in the last place; without releases beside the seal it is exact.
        return math.hypot(self.seal_mu, self.beside_mu) * _UP if self.beside_mu else self.seal_mu

    def corners(self) -> list[tuple[float, float]]:
        """(shift over mu, how many) for the corners of the slopes of the rows that differ, without those that shift nothing.

        For a monotone loss. Proofs: proofs/gaussian.md, theorem 2; for several scores proofs/multiclass.md, theorem 3.
        """
        n, replaced = self.n_outputs, self.neighbours is Neighbours.REPLACE_ONE
        if self.separable and n > 1:
            # Corners of cubes, by the number s of scores whose slope is not 0. They are at most sqrt(2 s / n) L long for
            # either row.
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
            # proofs/target_losses.md, theorem 2: the corners are two opposite pairs, whose squared lengths add up to at most
            # (2 mu)^2. Where the curve is convex in the square, the worst case is one pair of full length and one of length
            # 0.
            convex = ((2.0 * self.mu) ** 2 + self.added_mu**2) * _UP <= 2.0 * room**2 / (1.0 + math.hypot(1.0, room))
            return [(self.curvature, 2.0 * self.mu, 2.0), (self.curvature, 0.0 if convex else 2.0 * self.mu, 2.0)]
        if not kappa_form:
            return [(self.curvature, shift * self.mu, count) for shift, count in self.corners()]
        if self.neighbours is Neighbours.ADD_OR_REMOVE_ONE:
            return [(0.0, self.mu, 1.0)]
        return [(0.0, 2.0 * self.mu, 1.0), (0.0, self.mu, 1.0), (self.kappa, self.mu, 1.0)]

    def delta(self, epsilon: float) -> float:
        """Upper bound on the least delta for this epsilon; 1 where no bound is known."""
        known = min(self._delta(epsilon, kappa_form=False), self._delta(epsilon, kappa_form=True))
        # Well above kappa both forms agree, so the second one is evaluated near kappa alone.
        near = self.kappa < math.inf and epsilon - self.kappa < _DEVIATIONS_OF_CELLS * self.added_mu
        return min(known, self._bent_delta(epsilon)) if near and self.neighbours is Neighbours.ADD_OR_REMOVE_ONE else known

    def _bent_delta(self, epsilon: float) -> float:
        """Mean of delta_G(epsilon - psi(X); seal) over X ~ N(mu^2 / 2, mu^2), rounded up: theorem 3, second form.

        psi(x) = max over 0 <= a <= 1 of a x + kappa a (1 - a) rises with x, and so does the averaged function. So each cell
        counts with the value at its upper end. Small cells begin where psi is `_DEVIATIONS_OF_CELLS` deviations of the seal
        below epsilon; what lies before adds little.
        """
        mu, kappa = self.mu, self.kappa
        seen = epsilon - _DEVIATIONS_OF_CELLS * self.added_mu
        begin = 2.0 * math.sqrt(kappa * max(0.0, seen)) - kappa if seen < kappa else seen
        ends = min(30.0, max(-9.0, begin / mu - 0.5 * mu)) + _CELLS
        chances = np.concatenate([[ndtr(ends[0])], ndtr(-ends[:-1]) - ndtr(-ends[1:])])
        losses = mu * (0.5 * mu + ends)
        slopes = np.clip(0.5 + 0.5 * losses / max(kappa, 2.0**-1000), 0.0, 1.0)
        bent = slopes * losses + kappa * slopes * (1.0 - slopes) + 2.0**-40 * (kappa + np.abs(losses))
        delta = np.minimum(1.0, gaussian_deltas(epsilon - bent, self.added_mu)) @ chances
        return min(1.0, float(delta + ndtr(-ends[-1])) * (1.0 + 1e-7) + 2.0**-990)

    def _delta(self, epsilon: float, kappa_form: bool) -> float:
        room = epsilon - (self.kappa if kappa_form else self.curvature)
        if not room > 0.0:
            return 1.0
        # The composition of a Gaussian's curve with the seal is again a Gaussian's curve. The first term is the curve where
        # the objective costs as much as the curvature may cost, and no more.
        shifts = ((n, epsilon - cost, math.hypot(mu, self.added_mu)) for cost, mu, n in self._shifts(kappa_form, room))
        return gaussian_delta(room, self.added_mu) + sum(n * gaussian_delta(left, mu) for n, left, mu in shifts)

    def renyi(self, order: float) -> float:
        """Upper bound on the Rényi divergence of this order, above 1."""
        return float(renyi_curve(self, np.array([order]))[0])

    @property
    def rho(self) -> float:
        """Upper bound on renyi(order) / order over all orders."""
        return concentrated_rho(self)
