"""A bound on the loss on new rows, above that of the best weights of a given norm, with probability 1 - failure.

Chaudhuri, Monteleoni and Sarwate (2011), theorems 16 to 18, have such bounds up to constants. Here every constant is stated.
Let w0 be fixed weights of norm at most B, and let the fit add noise b to the objective and s to the weights. Then

    excess <= K + T,    K = min(c / 2 q^2, g q),    q^2 = mean of (x . s)^2 over the rows

where T is the least number with D(v) <= T + alpha |v|^2 - |alpha (w0 - s) + b / n| |v| for all v (`RowDeviations`). If the
rows deviate like D(v) <= t |v|, this is T = (|alpha (w0 - s) + b / n| + t)^2 / (4 alpha). The noise does not depend on w0
and on rows, so its quantiles are those of its law. Proofs: proofs/excess_risk.md, theorems 1 to 3.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import cache, lru_cache
from operator import itemgetter
from typing import Any, NamedTuple, TypeVar

import numpy as np
from scipy import optimize, special, stats

from confide.array_types import Array
from confide.errors import InsufficientRegularisation, ParameterError, wording
from confide.planning.made_up_fits import estimator_with, parameters_of
from confide.planning.simulation import check_arguments
from confide.privacy.budgets import Neighbours
from confide.privacy.lattice import LatticeNoise
from confide.privacy.mechanism import Noise, Plan
from confide.privacy.noise import Entropy
from confide.privacy.shapes import Shape

# How far the mean loss on independent rows can be below that of the population, near fixed weights.
#
# Let w0 be fixed weights, L the mean loss of the population and L_n that of n rows. Let G bound the gradient of the loss of
# a row, and t = G / sqrt(n). With
#
#     D(v) = (L - L_n)(w0 + v) - (L - L_n)(w0)
#
# a number T is needed such that D(v) <= T + alpha |v|^2 - p |v| for all v at once. Lengths |v| are divided into shells. In
# each, the mean of the largest D(v) + p |v| - alpha |v|^2 is about the largest (k t + p) r - alpha r^2. It exceeds its mean
# by y with probability at most exp(-y^2 / (2 t^2 r^2)), where r is the outer radius. Shells far from the critical length
# hardly ever matter. Proofs: proofs/excess_risk.md, theorem 2.

_RATIO = 1.1
"""Ratio of the radii of a shell. Of 1.04, 1.07, 1.1, 1.15 and 1.2 it makes the smallest bounds, by up to 2%."""
_N_HALVINGS = 14


def complexity_of(n_outputs: int, *, is_monotone: bool) -> tuple[float, float]:
    """The mean of the largest D(v), |v| <= r, in units of t r: of the part of the loss that is linear, and of the rest.

    The first is there where slopes have one sign; the second is by symmetrisation and contraction, which for several scores
    costs a factor sqrt(2 o) (Maurer, 2016).
    """
    if n_outputs > 1:
        return 0.0, 2.0 * math.sqrt(2.0 * n_outputs)
    return (0.5, 1.0) if is_monotone else (0.0, 2.0)


@dataclass(frozen=True, slots=True)
class RowDeviations:
    """Deviations of the mean loss of independent rows.

    Attributes
    ----------
    n_rows : int
    steepness : G, a bound on the norm of the gradient of the loss of a row
    linear, convex : see `complexity_of`
    """

    n_rows: int
    steepness: float
    linear: float
    convex: float

    @property
    def unit(self) -> float:
        """t = G / sqrt(n)."""
        return self.steepness / math.sqrt(self.n_rows)

    def slope(self, failure: float) -> float:
        """t (k + sqrt(2 log(1 / failure))): what D(v) / r exceeds in a ball of one radius r that rarely."""
        return self.unit * (self.linear + self.convex + math.sqrt(-2.0 * math.log(failure)))

    def excess(self, alpha: float, pull: float, failure: float) -> float:
        """A number T with D(v) <= T + alpha |v|^2 - pull |v| for all v, with probability at least 1 - failure.

        Parameters
        ----------
        alpha, pull : float, alpha positive
        failure : float, in (0, 1)
        """
        # (p + slope)^2 / (4 alpha) would suffice at the critical length alone.
        low, high = ((pull + self.slope(chance)) ** 2 / (4.0 * alpha) for chance in (1.0, failure * 1e-2))
        while self.chance(alpha, pull, high) > failure:
            high *= 2.0
        for _ in range(_N_HALVINGS):
            middle = math.sqrt(low * high)
            low, high = (low, middle) if self.chance(alpha, pull, middle) <= failure else (middle, high)
        return high

    def chance(self, alpha: float, pull: float, excess: float) -> float:
        """A bound on the probability that T = `excess` does not suffice: a sum over shells of |v|."""
        outer = self._shells(alpha, pull, excess)
        inner = outer / _RATIO
        contracted = self.convex * self.unit
        together = _largest(pull + contracted, alpha, inner, outer)
        apart = contracted * outer + _largest(pull, alpha, inner, outer)
        mean = self.linear * self.unit * outer + np.where(inner >= 0.5 * contracted / alpha, together, apart)
        beyond = np.maximum(0.0, excess - mean) / (self.unit * outer)
        return float(np.exp(-0.5 * beyond**2).sum())

    def _shells(self, alpha: float, pull: float, excess: float) -> Array:
        """Outer radii of the shells. Nearer to w0 and farther from it D(v) <= 2 G |v| suffices, whatever the rows are."""
        steepest = pull + 2.0 * self.steepness
        farthest, nearest = steepest / alpha, excess / steepest
        n_shells = max(1, math.ceil(math.log(farthest / nearest) / math.log(_RATIO)))
        return np.asarray(farthest * _RATIO ** -np.arange(n_shells, dtype=float))


def _largest(slope: float, alpha: float, inner: Array, outer: Array) -> Array:
    """The largest value of slope r - alpha r^2 for r in each shell."""
    radius = np.clip(0.5 * slope / alpha, inner, outer)
    return np.asarray(slope * radius - alpha * radius**2)


# What a plan's noise can cost at most, with every constant.
#
# Let J(w) be the mean loss plus alpha / 2 |w|^2, F = n J its sum form, l = n alpha, and w* the minimiser. Then
#
#     objective perturbation, noise b in the objective:    F(w_b) - F(w*) <= |b|^2 / (2 l),       |w_b - w*| <= |b| / l
#     output perturbation, noise z on the weights:         F(w* + z) - F(w*) <= H |z|^2 / 2,       H = n c R^2 + l
#
# The first holds because F is l-strongly convex and its gradient at w_b is -b. It is half of what follows from optimality
# alone, and a quarter of the published constant (Chaudhuri, Monteleoni and Sarwate, 2011, lemma 17). The second holds
# because F is H-smooth, as in their lemma 16. The last step of a mechanism, which moves the weights by s, adds |b| |s| + H
# |s|^2 / 2 to the first.
#
# For any reference w0 and the mean loss L on the rows, L(w) <= L(w0) + alpha / 2 |w0|^2 + J(w) - J(w*).
#
# For the population: two minimisers whose data differ in one row lie at most 2 L R / l apart. So the expected excess of the
# regularised population loss is at most 2 (L R)^2 / l (Shalev-Shwartz, Shamir, Srebro and Sridharan, 2009). By Markov's
# inequality this is divided by the probability of failure. Noise that moves the weights by some distance changes every loss
# by at most L R times that distance.

_N_DRAWS, _SEED = 500, 0
"""Number and seed of the draws from which quantiles of the norm of noise are estimated. No release uses this noise."""
_QUANTILE_CONFIDENCE = 0.999
"""Probability that a simulated quantile is not too small."""


@dataclass(frozen=True, slots=True)
class UtilityBound:
    """Bounds that hold with probability at least 1 - failure. Public: they are made before any row is read.

    Attributes
    ----------
    failure : float
    distance : float
        Distance of the released weights from the minimiser without noise at the same alpha.
    excess_objective : float
        How far the mean regularised loss is above its least value.
    excess_loss : float
        How far the mean loss on the rows is above that of any weights of norm at most `reference_norm`.
    excess_risk : float
        The same for a new row, if the rows are independent draws from a population. The probability is over the rows too.
    reference_norm : float
        L2 norm of the weights to compare with, in the units of encoded rows and with the intercept.
    distance_of_zero, excess_objective_of_zero, excess_loss_of_zero : float
        Bounds on the same numbers for weights of zero, which need no rows. A bound that is not below its counterpart is
        useless.
    """

    failure: float
    distance: float
    excess_objective: float
    excess_loss: float
    excess_risk: float
    reference_norm: float
    distance_of_zero: float
    excess_objective_of_zero: float
    excess_loss_of_zero: float

    def __str__(self) -> str:
        probability = f"{1.0 - self.failure:.15g}"
        against = f"above that of any weights of norm {self.reference_norm:g}"
        loss, risk = f"mean loss at most {self.excess_loss:.3g}", f"mean loss on new rows at most {self.excess_risk:.3g}"
        regularised = f"mean regularised loss at most {self.excess_objective:.3g} above its least value"
        near = f"weights within {self.distance:.3g} of the non-private ones"
        bounds = (
            ("the distance", near, self.distance, self.distance_of_zero),
            ("the regularised loss", regularised, self.excess_objective, self.excess_objective_of_zero),
            ("the loss", f"{loss} {against}", self.excess_loss, self.excess_loss_of_zero),
            ("the loss on new rows", f"{risk} {against}", self.excess_risk, self.excess_loss_of_zero),
        )
        useful = [sentence for _, sentence, bound, of_zero in bounds if bound < of_zero]
        if not useful:
            return f"No useful bound holds with probability {probability}: weights of zero, without any rows, satisfy each."
        told = f"With probability {probability}: {', '.join(useful)}."
        if len(useful) == len(bounds):
            return told
        missing = [name for name, _, bound, of_zero in bounds if not bound < of_zero]
        return f"{told} No useful bound on {' and '.join(missing)}: weights of zero satisfy it too."


def has_utility_bound(plan: Plan) -> bool:
    """Whether a bound is proven for a plan with noise.

    There is none for noisy gradients, for centred rows, for weights whose intercept is moved afterwards, and for penalties
    beside |w|^2. A quadratic form is |w|^2 in its own norm.
    """
    return plan.minimises and not plan.parts and plan.problem.penalty.has_ridges_alone


def utility_bound(plan: Plan, *, reference_norm: float = 1.0, failure: float = 0.05) -> UtilityBound:
    """What the noise of a plan can cost at most.

    Parameters
    ----------
    plan : Plan
        A plan for a loss of the score, such as `LogisticRegression(...).plan(n_rows, n_features)`.
    reference_norm : float, positive
        L2 norm of the weights to compare with.
    failure : float, in (0, 1)
        Probability that a bound does not hold.

    Returns
    -------
    UtilityBound

    Raises
    ------
    ParameterError
        If a number lies outside its range, or the plan has no noise.

    Notes
    -----
    The bounds hold for all data, so they describe the worst case. Typical data lose far less. For the theorems see the
    docstring of the module.
    """
    lattice = _check_plan(plan)
    check_arguments(failure=failure, reference_norm=reference_norm)
    problem, loss = plan.problem, plan.problem.loss_bounds
    n, l2, largest_l2 = problem.n_rows_low, plan.l2, plan.l2 * max(problem.penalty.factors, default=1.0)
    steepness = loss.lipschitz * problem.row_norm
    # A third of the probability of failure each for the noise, the seal and the excess in the population.
    share = failure / 3.0
    noise = noise_quantile(plan.noise, share) if plan.noise else 0.0
    step = lattice_quantile(lattice, share) + plan.radius
    pull, shift = (noise, step) if plan.noise and plan.noise.in_objective else (0.0, noise + step)
    bend = problem.n_rows_high * loss.smoothness * problem.row_norm**2 + largest_l2
    # If the loss has kinks, only its slope is bounded. For a prior p, |w* - p| is at most sqrt(2 n value_at_zero / l) + |p|.
    prior_norm = math.hypot(*problem.prior)
    longest = math.sqrt(2.0 * problem.n_rows_high * loss.value_at_zero / l2) + prior_norm
    by_slope = (problem.n_rows_high * steepness + largest_l2 * longest + pull) * shift + 0.5 * largest_l2 * shift**2
    after = min(pull * shift + 0.5 * bend * shift**2, by_slope) if math.isfinite(bend) else by_slope
    excess = (pull**2 / (2.0 * l2) + after) / n
    distance = pull / l2 + shift
    shrinkage = 0.5 * plan.alpha * max(problem.penalty.factors, default=1.0) * (reference_norm + prior_norm) ** 2
    risk = shrinkage + 2.0 * steepness**2 / (l2 * share) + steepness * distance
    # Losses are at least 0, and a score of the reference weights is at most their norm times that of a row.
    of_zero = min(loss.value_at_zero, steepness * reference_norm)
    nearest = prior_norm + min(longest, problem.n_rows_high * steepness / l2)
    at_zero = loss.value_at_zero + 0.5 * plan.alpha * prior_norm**2
    return UtilityBound(failure, distance, excess, shrinkage + excess, risk, reference_norm, nearest, at_zero, of_zero)


def noise_quantile(noise: Noise, failure: float) -> float:
    """An L2 norm that continuous noise exceeds with probability at most `failure`.

    For Laplace noise of a ball the exact quantile; otherwise a simulated one, or a proven bound if draws are too few.
    """
    shape, proven = noise.shape, noise.bound(math.log(failure))
    if shape.name == "ball" and noise.law == "laplace":
        return min(proven, shape.l2_norm * float(stats.gamma.ppf(1.0 - failure, shape.dimension)) / noise.scale)
    # The k-th smallest of n draws is above the quantile if fewer than k of the draws lie below the quantile.
    position = int(stats.binom.ppf(_QUANTILE_CONFIDENCE, _N_DRAWS, 1.0 - failure))
    if position >= _N_DRAWS:
        return proven
    times = 1.0 / noise.scale if noise.law == "laplace" else noise.scale
    return min(proven, _unit_norms(shape, noise.law)[position] * times)


@functools.lru_cache(maxsize=32)
def _unit_norms(shape: Shape, law: str) -> tuple[float, ...]:
    """L2 norms of draws at scale 1, in ascending order."""
    entropy = Entropy.seeded(_SEED)
    draw = entropy.laplace if law == "laplace" else entropy.gaussian
    return tuple(sorted(float(np.linalg.norm(draw(shape, 1, 1.0))) for _ in range(_N_DRAWS)))


def lattice_quantile(lattice: Any, failure: float) -> float:
    """An L2 norm that the exact noise on a grid exceeds with probability at most `failure`."""
    n = lattice.dimension
    if lattice.law == "gaussian":
        # A standard deviation has at least 40 grid steps, so this is the continuous law up to the size of a grid cell.
        return float(lattice.deviation) * float(stats.chi.ppf(1.0 - failure, n)) + math.sqrt(n) * float(lattice.step)
    # Two bounds: by the largest coordinate, as P(|s| > x) <= 2 exp(-x / scale) for each; by Markov's inequality for |s|^4.
    largest = math.sqrt(n) * float(lattice.scale) * math.log(2.0 * n / failure)
    decay = math.exp(-lattice.step / float(lattice.scale))
    kurtosis = (1.0 + 10.0 * decay + decay**2) / (2.0 * decay)
    fourth = float(lattice.deviation) ** 4 * n * (kurtosis + n - 1.0)
    return float(min(largest, (fourth / failure) ** 0.25))


# How long noise is: from a point that does not depend on it, and along rows. For bounds before any data.
#
# Noise of a ball, Laplace or Gaussian, is r u: u is uniform on the unit sphere of R^D and independent of r, whose law is
# gamma or chi. So its quantiles are one-dimensional integrals. Proofs: proofs/excess_risk.md, section 5.

_N_NODES, _TAIL = 64, 1e-10
"""Nodes of the integrals over r, and the probability at each end that they leave out."""
_RAREST = 1e-6
"""For rarer failures the integrals are not used, but sums of lengths."""
_SAFE = 0.999
"""Quantiles are taken at this share of the probability of failure: far more than the error of the integrals."""


class Lengths(NamedTuple):
    """Lengths that noise rarely exceeds.

    Attributes
    ----------
    from_point : of a distance and a failure: a bound on |p + s|, s the noise and p a fixed point at most this far from 0. It
        is that of a point at this distance; a nearer point has a smaller one (Anderson's theorem)
    along_rows : of a failure: a bound on the root of the mean of (u . s)^2 over unit vectors u that do not depend on s
    """

    from_point: Callable[[float, float], float]
    along_rows: Callable[[float], float]


def spherical(dimension: int, law: str, scale: float) -> Lengths:
    """Those of noise r u times `scale`, u uniform on the unit sphere, and r with the law gamma ("laplace") or chi.

    Distances have their exact quantile. Along rows it is the root of the mean of s_1^2 beyond its quantile;
    proofs/excess_risk.md, lemma 5.
    """
    return Lengths(
        lambda distance, failure: scale * _quantile_from_point(dimension, law, distance / scale, failure),
        lambda failure: scale * _tail_mean(dimension, law, failure),
    )


def on_grid(lattice: Any) -> Lengths:
    """Those of exact noise on a grid, as near to its continuous law as a grid step in each coordinate."""
    size, step = int(lattice.dimension), float(lattice.step)
    corner = math.sqrt(size) * step
    if lattice.law == "gaussian":
        from_point, along_rows = spherical(size, "gaussian", float(lattice.deviation))
        return Lengths(lambda distance, failure: from_point(distance, failure) + corner, lambda f: along_rows(f) + step)
    scale = float(lattice.scale)

    def along(failure: float) -> float:
        # Squares of independent Laplace noise along any direction are no larger in this sense. Beyond its quantile
        # q = t log(1 / failure), the square of Laplace noise of scale t has the mean q^2 + 2 q t + 2 t^2.
        quantile = -scale * math.log(failure)
        return math.sqrt(quantile**2 + 2.0 * quantile * scale + 2.0 * scale**2) + step

    def of_both(distance: float, failure: float) -> float:
        by_entries = scale * _norm_of_exponentials(size, failure) + corner
        return distance + min(lattice_quantile(lattice, failure), by_entries)

    return Lengths(of_both, along)


def lengths_of(noise: Noise, *, is_stretched: bool = False) -> Lengths:
    """Those of continuous noise. Of another shape than a ball, and of a stretched one, its length alone is used."""
    if noise.shape.name != "ball" or is_stretched:
        return Lengths(lambda distance, f: distance + noise_quantile(noise, f), lambda f: noise_quantile(noise, f))
    size = noise.shape.scales[0] / noise.scale if noise.law == "laplace" else noise.shape.gaussian_deviations(noise.scale)[0]
    return spherical(noise.shape.dimension, noise.law, size)


@lru_cache(maxsize=4096)
def _quantile_from_point(dimension: int, law: str, shift: float, failure: float) -> float:
    """The quantile of |p + r u| for |p| = shift."""
    longest = _longest(dimension, law, _SAFE * failure)
    if shift == 0.0 or failure < _RAREST:
        return shift + longest

    def excess_chance(t: float) -> float:
        # |p + r u| > t where u_1 > (t^2 - |p|^2 - r^2) / (2 |p| r): never and always beyond two values of r.
        radius, mass = _nodes(dimension, law, abs(t - shift), t + shift)
        cosine = ((t - shift) * (t + shift) - radius * radius) / (2.0 * shift * radius)
        between = float(mass @ (1.0 - _cosine_below(np.clip(cosine, -1.0, 1.0), dimension)))
        always = _chance_beyond(dimension, law, t + shift)
        if t < shift:
            always += 1.0 - _chance_beyond(dimension, law, shift - t)
        return always + between - _SAFE * failure

    # At most the sum of the lengths; at least the quantile for a point at 0, and almost that of a step back.
    return _least(excess_chance, max(0.0, shift - longest), shift + longest)


@lru_cache(maxsize=4096)
def _tail_mean(dimension: int, law: str, failure: float) -> float:
    """The root of E[s_1^2 | |s_1| beyond its quantile], or the quantile of |s| if that is less."""
    chance = _SAFE * failure
    longest = _longest(dimension, law, chance)
    if failure < _RAREST:
        return longest

    def beyond(q: float, power: int) -> float:
        """E[s_1^(2 power); |s_1| > q]."""
        radius, mass = _nodes(dimension, law, q, math.inf)
        return float((mass * radius ** (2 * power)) @ _squared_cosine_beyond((q / radius) ** 2, dimension, power))

    quantile = _least(lambda q: beyond(q, 0) - chance, 0.0, longest)
    # The quantile is found within a margin, so less may lie beyond it.
    return min(longest, math.sqrt(beyond(quantile, 1) / min(chance, beyond(quantile, 0))))


def _norm_of_exponentials(dimension: int, failure: float) -> float:
    """A bound on the L2 norm of independent standard exponentials: proofs/excess_risk.md, lemma 6."""
    most, rarely = math.log(2.0 * dimension / failure), math.log(2.0 / failure)
    # Squares have mean 2 and variance 20, and their means are no larger where they are cut.
    return math.sqrt(2.0 * dimension + math.sqrt(40.0 * dimension * rarely) + most**2 * rarely / 3.0)


def _longest(dimension: int, law: str, failure: float) -> float:
    """The quantile of r at scale 1."""
    if law == "laplace":
        return float(special.gammainccinv(dimension, failure))
    return math.sqrt(2.0 * float(special.gammainccinv(0.5 * dimension, failure)))


def _chance_beyond(dimension: int, law: str, length: float) -> float:
    """P(r > length) at scale 1."""
    if law == "laplace":
        return float(special.gammaincc(dimension, length))
    return float(special.gammaincc(0.5 * dimension, 0.5 * length**2))


def _nodes(dimension: int, law: str, low: float, high: float) -> tuple[Array, Array]:
    """Nodes and weights for means over r between two values, where a root may begin at either: r is linear in a sine."""
    sines, weights, least, most, constant = _rule(dimension, law)
    low, high = max(low, least), max(low, least, min(high, most))
    half = 0.5 * (high - low)
    radius = low + half * (1.0 + sines)
    exponent = radius if law == "laplace" else 0.5 * radius**2
    return radius, half * weights * np.exp((dimension - 1.0) * np.log(radius) - exponent - constant)


@cache
def _rule(dimension: int, law: str) -> tuple[Array, Array, float, float, float]:
    """Gauss and Legendre's rule in the angle; the ends of the law of r, and the logarithm of the constant of its density."""
    angles, weights = np.polynomial.legendre.leggauss(_N_NODES)
    angles, weights = 0.5 * math.pi * angles, 0.5 * math.pi * weights
    shape = dimension if law == "laplace" else 0.5 * dimension
    ends = float(special.gammaincinv(shape, _TAIL)), float(special.gammainccinv(shape, _TAIL))
    constant = float(special.gammaln(shape))
    if law != "laplace":
        ends = math.sqrt(2.0 * ends[0]), math.sqrt(2.0 * ends[1])
        constant += (shape - 1.0) * math.log(2.0)
    return np.sin(angles), weights * np.cos(angles), *ends, constant


def _cosine_below(cosine: Array, dimension: int) -> Array:
    """P(u_1 <= c), u uniform on the unit sphere."""
    side = np.where(cosine < 0.0, -1.0, 1.0)
    return 0.5 * (1.0 + side * (1.0 - _squared_cosine_beyond(cosine**2, dimension, 0)))


def _squared_cosine_beyond(square: Array, dimension: int, power: int) -> Array:
    """E[u_1^(2 power); u_1^2 > square] for a power of 0 or 1. u_1^2 has the beta law of (1 / 2, (D - 1) / 2)."""
    if dimension == 1:
        return np.asarray(square < 1.0, dtype=float)
    share = 1.0 if power == 0 else 1.0 / dimension
    return np.asarray(share * special.betaincc(0.5 + power, 0.5 * (dimension - 1), np.minimum(1.0, square)))


def _least(excess_chance: Callable[[float], float], low: float, high: float) -> float:
    """Where a falling function passes 0, from above, to a relative error of 1e-4. The upper end is never too small."""
    if excess_chance(low) <= 0.0:
        return low
    if excess_chance(high) >= 0.0:
        return high
    return float(optimize.brentq(excess_chance, low, high, xtol=1e-12 * high, rtol=5e-5)) * (1.0 + 1e-4)


Point = TypeVar("Point")
_SEAL_SHARE = 0.01
"""Share of the probability of failure for each of two events of the last step, where it is not the main noise."""
_ROW_SHARES, _PULL_SHARES = (0.05, 0.3, 0.7, 0.95), (0.25, 0.75)
"""Divisions of the probability of failure that are tried: the share of rows, and of the rest that of the length of noise."""
_SPAN, _N_STEPS = math.log(8.0), 11
"""How far from a first guess alpha is sought, in logarithms, and the number of steps of the search."""


@dataclass(frozen=True, slots=True)
class ExcessRiskBound:
    """A bound on the loss on new rows that holds with probability at least 1 - failure. Public: made before any row is read.

    Attributes
    ----------
    failure : float
    excess_risk : float
        How far the mean loss on new rows is at most above that of any fixed weights of norm at most `reference_norm`, if
        rows are independent draws from one population. The probability is over rows and noise.
    without_noise : float
        The same for the fit without privacy at the same alpha.
    reference_norm : float
        L2 norm of the weights to compare with, in the units of encoded rows and with the intercept; with a `penalty` their
        norm in that form.
    alpha : float
    excess_risk_of_zero : float
        A bound on the same number for weights of zero, which need no rows. A bound that is not below it is useless.
    """

    failure: float
    excess_risk: float
    without_noise: float
    reference_norm: float
    alpha: float
    excess_risk_of_zero: float

    @property
    def is_useful(self) -> bool:
        """Whether the bound says more than weights of zero do."""
        return self.excess_risk < self.excess_risk_of_zero

    def __str__(self) -> str:
        probability = f"{1.0 - self.failure:.15g}"
        if not self.is_useful:
            return f"No useful bound holds with probability {probability}: weights of zero, without any rows, satisfy it."
        return wording("excess risk", bound=self, probability=probability)


def excess_risk_bound(plan: Plan, *, reference_norm: float = 1.0, failure: float = 0.05) -> ExcessRiskBound:
    """How far the loss on new rows can be above that of the best weights of a norm.

    Parameters
    ----------
    plan : Plan
        A plan for a loss of the score, such as `LogisticRegression(..., centre=False).plan(n_rows, n_features)`.
    reference_norm : float, positive
        L2 norm of the weights to compare with.
    failure : float, in (0, 1)
        Probability, over rows and noise, that the bound does not hold.

    Returns
    -------
    ExcessRiskBound

    Raises
    ------
    ParameterError
        If a number lies outside its range, or no bound is proven for the plan: it needs a perturbed objective or noise on
        the weights, rows that are not centred, and one row a person.

    Notes
    -----
    The bound grows with log(1 / failure), where that of `utility_bound` grows with 1 / failure. It holds for every
    population of rows within the bounds and for every convex loss with these constants; the docstring of the module names
    the theorems.
    """
    check_arguments(failure=failure, reference_norm=reference_norm)
    _check_plan(plan, independent_rows=True)
    problem, loss = plan.problem, plan.problem.loss_bounds
    alpha, steepness = plan.l2 / problem.n_rows_low, loss.lipschitz * problem.row_norm
    deviations = _deviations(plan)
    # In units in which all ridges are the least one, weights are longer by this factor at most, and rows no longer.
    distance = math.sqrt(max(problem.penalty.factors, default=1.0)) * reference_norm + math.hypot(*problem.prior)
    parts = _divisions(plan, distance, failure)
    excess = min(deviations.excess(alpha, pull, rows) + _cost_of_moved_scores(plan, along) for rows, pull, along in parts)
    without = deviations.excess(alpha, alpha * distance, failure)
    of_zero = min(loss.value_at_zero, steepness * reference_norm)
    return ExcessRiskBound(failure, excess, without, reference_norm, alpha, of_zero)


def least_excess_risk(
    estimator: Any, n_rows: int, n_features: int | None = None, *, reference_norm: float = 1.0, failure: float = 0.05
) -> tuple[Plan, ExcessRiskBound]:
    """The plan whose alpha makes the bound on the loss on new rows the least.

    Parameters
    ----------
    estimator : a classifier or regressor with a loss of the score
        Its alpha is not used, and its rows are not centred. "auto" is mechanism="objective" where it would be
        noisy gradients.
    n_rows, n_features : int or None
        As in the estimator's `plan`.
    reference_norm, failure : float
        As in `excess_risk_bound`.

    Returns
    -------
    (Plan, ExcessRiskBound)

    Raises
    ------
    ParameterError
        If a number lies outside its range, or no alpha is possible.
    """
    check_arguments(failure=failure, reference_norm=reference_norm)

    def at(log_alpha: float) -> tuple[float, tuple[Plan, ExcessRiskBound] | None]:
        try:
            plan = plan_without_centre(estimator, math.exp(log_alpha), n_rows, n_features)
        except InsufficientRegularisation:
            return math.inf, None
        bound = excess_risk_bound(plan, reference_norm=reference_norm, failure=failure)
        return bound.excess_risk, (plan, bound)

    middle = math.log(_first_alpha(estimator, n_rows, n_features, reference_norm, failure))
    best = _best_of_search(at, middle - _SPAN, middle + _SPAN)
    if best is None:
        raise ParameterError("no alpha near the best one is possible at this budget: give more rows or a larger budget.")
    return best


def may_suffice(plan: Plan, excess: float, reference_norm: float) -> bool:
    """Whether the bound can be below `excess` at any alpha: without noise it is above the mean deviation of rows."""
    _check_plan(plan, independent_rows=True)
    return _deviations(plan).slope(1.0) * reference_norm <= excess


def plan_without_centre(estimator: Any, alpha: float, n_rows: int, n_features: int | None) -> Plan:
    """The plan of an estimator at this alpha by a mechanism for which bounds are proven, if it leaves the choice."""
    # The whole budget goes to the weights: no centre of the rows, no atoms, no mean that is matched.
    without = {name: False for name in ("centre", "match_mean", "atoms") if name in parameters_of(estimator)}
    bounded = estimator_with(estimator, alpha=alpha, **without)
    plan: Plan = bounded.plan(n_rows, n_features)
    if not plan.minimises and bounded.mechanism == "auto":
        plan = estimator_with(bounded, mechanism="objective").plan(n_rows, n_features)
    return plan


def _check_plan(plan: Any, *, independent_rows: bool = False) -> LatticeNoise:
    """The noise on the grid of a plan that the theorems cover; others are refused."""
    if not isinstance(plan, Plan) or plan.lattice is None:
        raise ParameterError("bounds are for plans of private models with a loss of the score, such as classifiers.")
    if not has_utility_bound(plan):
        raise ParameterError(wording("no bound is proven"))
    if independent_rows and plan.problem.rows_per_person > 1:
        raise ParameterError("the bound needs independent rows, so max_rows_per_person must be 1.")
    return plan.lattice


def _deviations(plan: Plan) -> RowDeviations:
    problem, loss = plan.problem, plan.problem.loss_bounds
    # With a private number of rows the least one is the worst: proofs/excess_risk.md, section 6.
    steepness, parts = loss.lipschitz * problem.row_norm, complexity_of(loss.n_outputs, is_monotone=loss.monotone)
    return RowDeviations(problem.n_rows_low, steepness, *parts)


def _divisions(plan: Plan, distance: float, failure: float) -> Iterator[tuple[float, float, float]]:
    """Divisions of the probability of failure: the rows' part, the pull of ridge and noise, and the moved scores.

    The pull is |alpha (w0 - s) + b / n|, and the moved scores are the root of the mean of (x . s)^2 for rows of norm 1.
    """
    n, alpha = plan.problem.n_rows_low, plan.l2 / plan.problem.n_rows_low
    stretched = alpha * math.sqrt(max(plan.problem.penalty.factors, default=1.0))
    assert plan.lattice is not None  # noqa: S101 - checked before
    last = on_grid(plan.lattice)
    drift = plan.radius + 0.5 * math.sqrt(plan.lattice.dimension) * plan.lattice.step
    outputs = math.sqrt(plan.problem.loss.constants.n_outputs)
    if plan.noise is None:
        main, left, seal_pull, seal_along = last, failure, 0.0, 0.0
    else:
        # Beside several ridges noise of a ball is no longer spherical, but no longer than it was.
        main = lengths_of(plan.noise, is_stretched=bool(plan.problem.penalty.factors))
        left = failure * (1.0 - 2.0 * _SEAL_SHARE)
        seal_pull, seal_along = last.from_point(0.0, failure * _SEAL_SHARE), outputs * last.along_rows(failure * _SEAL_SHARE)
    for rows in _ROW_SHARES:
        noise = (1.0 - rows) * left
        if plan.noise and plan.noise.in_objective:
            pull = main.from_point(plan.l2 * distance, noise) / n
            yield rows * left, pull + stretched * (seal_pull + drift), seal_along + drift
            continue
        for share in _PULL_SHARES:
            pull = stretched * main.from_point(distance, share * noise)
            along = outputs * main.along_rows((1.0 - share) * noise)
            yield rows * left, pull + stretched * (seal_pull + drift), along + seal_along + drift


def _cost_of_moved_scores(plan: Plan, along: float) -> float:
    """K for rows of the largest norm: what the loss on the rows rises by beyond its tangent when scores move."""
    problem, loss = plan.problem, plan.problem.loss_bounds
    moved = problem.row_norm * along
    # Slopes between -L and 0 are at most L from the tangent's, and slopes between -L and L at most 2 L.
    by_slope = (1.0 if loss.monotone and loss.n_outputs == 1 else 2.0) * loss.lipschitz * moved
    return min(by_slope, 0.5 * loss.smoothness * moved**2) if math.isfinite(loss.smoothness) else by_slope


def _first_alpha(estimator: Any, n_rows: int, n_features: int | None, reference_norm: float, failure: float) -> float:
    """The best alpha if noise and rows pulled by their quantiles: their sum over the norm of the weights."""
    parameters = parameters_of(estimator)
    if parameters.get("neighbours") == Neighbours.ADD_OR_REMOVE_ONE and not parameters.get("n_rows_bounds"):
        raise ParameterError("under add-or-remove-one give n_rows_bounds.")
    alpha = 1.0
    for _ in range(3):
        # At this alpha or at the first of some larger ones that is possible.
        for factor in 4.0 ** np.arange(12):
            with suppress(InsufficientRegularisation):
                plan = plan_without_centre(estimator, alpha * float(factor), n_rows, n_features)
                break
        else:
            raise ParameterError("no alpha is possible at this budget: give more rows or a larger budget.")
        _check_plan(plan, independent_rows=True)
        noise = plan.noise_norm * plan.l2 / plan.problem.n_rows_low
        alpha = (_deviations(plan).slope(failure) + noise) / reference_norm
    return alpha


def _best_of_search(at: Callable[[float], tuple[float, Point | None]], low: float, high: float) -> Point | None:
    """The best of the points that a search between two ends visits. Where alpha is too small no plan is possible."""
    visited: list[tuple[float, Point | None]] = []

    def value(log_alpha: float) -> float:
        visited.append(at(log_alpha))
        return visited[-1][0]

    optimize.minimize_scalar(value, bounds=(low, high), method="bounded", options={"maxiter": _N_STEPS})
    return min(visited, key=itemgetter(0))[1]


# The loss of random Fourier features on new rows, above that of functions in the space of their kernel.
#
# A function of norm at most B in the space of a kernel k(x, y) = E cos(w . (x - y)) is f(x) = E a(w) . (cos w . x, sin w .
# x) with E |a|^2 <= B^2. With D frequencies, weights that are a, shortened to C where it is longer, over sqrt(D) have a
# function near f. How near, and how long the weights are, is bounded by Bernstein's inequalities; C is chosen. Proofs:
# proofs/excess_risk.md, theorem 4. Chaudhuri, Monteleoni and Sarwate (2011) have theorems of this kind up to constants, for
# functions whose a is bounded.

_CUTS = tuple(float(cut) for cut in np.geomspace(0.5, 64.0, 15))
_FEATURE_SHARE = 0.5
"""Share of the probability of failure that the random features get."""


@dataclass(frozen=True, slots=True)
class FeatureApproximation:
    """What random features can do in place of a kernel, with probability 1 - failure over the features.

    Attributes
    ----------
    distance : float
        Root mean square, over the population, of the difference of the two functions.
    norm : float
        L2 norm of the weights.
    """

    distance: float
    norm: float


def feature_approximation(n_pairs: int, kernel_norm: float, failure: float, cut: float) -> FeatureApproximation:
    """How near weights of random features are to one function of the space of a kernel, and how long they are.

    Parameters
    ----------
    n_pairs : int
        D, the number of independent frequencies; each gives a cosine and a sine.
    kernel_norm : float
        B, the norm of the function in the space of the kernel.
    failure : float, in (0, 1)
    cut : float, positive
        C / B, where coefficients are shortened.

    Returns
    -------
    FeatureApproximation

    Raises
    ------
    ParameterError
        If a number lies outside its range.
    """
    check_arguments({"n_pairs": n_pairs}, failure=failure, kernel_norm=kernel_norm, cut=cut)
    # Half of the failure for each. Pinelis' inequality for a mean in a Hilbert space has a factor 2.
    near, short = math.log(4.0 / failure) / n_pairs, math.log(2.0 / failure) / n_pairs
    distance = 1.0 / (4.0 * cut) + math.sqrt(2.0 * near) + (cut + min(1.0, cut)) * near / 3.0
    square = min(cut**2, 1.0 + math.sqrt(2.0 * short) * cut + cut**2 * short / 3.0)
    return FeatureApproximation(kernel_norm * distance, kernel_norm * math.sqrt(square))


def kernel_excess_risk_bound(
    plan: Plan, n_pairs: int, *, kernel_norm: float = 1.0, failure: float = 0.05
) -> ExcessRiskBound:
    """How far the loss on new rows of a fit to random features can be above that of the best function of a kernel.

    Parameters
    ----------
    plan : Plan
        A plan for mapped rows, such as `KernelSVC(..., centre=False).plan(n_rows, n_inputs)`.
    n_pairs : int
        Number of independent frequencies of the map: half its number of features. Those of an orthogonal map are not
        independent, and the theorem does not cover them.
    kernel_norm : float, positive
        Norm, in the space of the kernel, of the functions to compare with.
    failure : float, in (0, 1)
        Probability, over rows, noise and random features, that the bound does not hold.

    Returns
    -------
    ExcessRiskBound
        Its `reference_norm` is `kernel_norm`.

    Raises
    ------
    ParameterError
        If a number lies outside its range, or no bound is proven for the plan.
    """
    check_arguments({"n_pairs": n_pairs}, failure=failure, kernel_norm=kernel_norm)
    if not isinstance(plan, Plan) or plan.problem.n_features != 2 * n_pairs:
        raise ParameterError("the plan must be for rows of 2 n_pairs random features, and nothing else.")
    if any(plan.problem.prior):
        raise ParameterError("the bound compares with functions of a kernel, and a prior has none: plan without a prior.")
    lipschitz = plan.problem.loss_bounds.lipschitz
    features, fit = _FEATURE_SHARE * failure, (1.0 - _FEATURE_SHARE) * failure
    risks = []
    for cut in _CUTS:
        near = feature_approximation(n_pairs, kernel_norm, features, cut)
        bound = excess_risk_bound(plan, reference_norm=near.norm, failure=fit)
        lost = lipschitz * near.distance
        risks.append((bound.excess_risk + lost, bound.without_noise + lost))
    excess, without = min(risks)
    of_zero = min(plan.problem.loss_bounds.value_at_zero, lipschitz * kernel_norm)
    return ExcessRiskBound(failure, excess, without, kernel_norm, bound.alpha, of_zero)
