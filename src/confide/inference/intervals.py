"""How far released weights may lie from those of the population: intervals and probabilities, made of a release alone.

Y. Wang, D. Kifer, J. Lee, *Differentially private confidence intervals for empirical risk minimization*, Journal of Privacy
and Confidentiality 9(1), 2019, with two things of our own: both matrices leave with one noise, and what the noise does to
the inverse of the first is taken back. In the sum form, with n rows,

    w - w0 = -H^-1 (G + b),    G ~ N(0, S),    b with the law of the noise in the objective, independent of G,

H the curvature of the objective and S the covariance of the sum of the rows' gradients, at the weights w0 that the
population has with the same ridge. Everything here is post-processing and costs no privacy.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
from scipy.special import ndtr, ndtri

from confide.errors import ParameterError
from confide.privacy.lattice import LatticeLaplace, LatticeNoise
from confide.privacy.mechanism import Noise, Plan
from confide.privacy.moments import NoisyMoments
from confide.privacy.noise import Entropy
from confide.privacy.shapes import Ball, Groups
from confide.types import Array

_DRAWS = 4000
_MOST_STEPS = 1000
TARGETS = ("regularised", "unregularised")


@dataclass(frozen=True)
class Uncertainty:
    """The law of the error of released weights, as far as it is known from the release.

    Attributes
    ----------
    weights : (D,)
        Released weights, or for the target "unregularised" those after one Newton step that takes back the ridge.
    sampling_error : (D,)
        Standard deviation that comes from the rows being a sample.
    privacy_errors : (draws, D)
        Draws of the error that comes from the noise; (0, D) without noise.
    """

    weights: Array
    sampling_error: Array
    privacy_errors: Array

    @cached_property
    def privacy_error(self) -> Array:
        """(D,): standard deviation that comes from the noise."""
        if self.privacy_errors.shape[0] == 0:
            return np.zeros_like(self.weights)
        deviation: Array = np.sqrt(np.mean(self.privacy_errors**2, axis=0))
        return deviation

    @property
    def total_error(self) -> Array:
        """(D,): standard deviation of both together."""
        return np.hypot(self.sampling_error, self.privacy_error)

    def probability_within(self, distances: Array) -> Array:
        """(D,): the probability that the error is at most so large in absolute value, by weight."""
        if self.privacy_errors.shape[0] == 0:
            gaussian: Array = 2.0 * ndtr(distances / self.sampling_error) - 1.0
            return gaussian
        upper = ndtr((distances - self.privacy_errors) / self.sampling_error)
        lower = ndtr((-distances - self.privacy_errors) / self.sampling_error)
        within: Array = np.mean(upper - lower, axis=0)
        return within

    def margins(self, level: float) -> Array:
        """(D,): half the width of intervals that hold the population's weight with this probability, one at a time."""
        if not 0.0 < level < 1.0:
            raise ParameterError("level must lie strictly between 0 and 1.")
        if self.privacy_errors.shape[0] == 0:
            usual: Array = float(ndtri(0.5 + 0.5 * level)) * self.sampling_error
            return usual
        low, high = np.zeros_like(self.weights), np.abs(self.privacy_errors).max(axis=0) + 40.0 * self.sampling_error
        for _ in range(60):
            middle = 0.5 * (low + high)
            enough = self.probability_within(middle) >= level
            low, high = np.where(enough, low, middle), np.where(enough, middle, high)
        answer: Array = high
        return answer

    def intervals(self, level: float) -> Array:
        """(D, 2): lower and upper ends."""
        margins = self.margins(level)
        return np.column_stack([self.weights - margins, self.weights + margins])

    def p_values(self) -> Array:
        """(D,): how probable an error as large as the weight is; small where the population's weight is hardly 0."""
        return np.clip(1.0 - self.probability_within(np.abs(self.weights)), 0.0, 1.0)


def uncertainty(plan: Plan, weights: Array, moments: NoisyMoments, target: str = "regularised") -> Uncertainty:
    """The law of the error of released weights (D,).

    Parameters
    ----------
    plan : the plan of the training release
    weights : (D,) released weights
    moments : what was released about curvature and slope
    target : "regularised" for the minimiser that the population has with the same ridge, "unregularised" for that without
    """
    if target not in TARGETS:
        raise ParameterError(f"target must be one of {', '.join(map(repr, TARGETS))}.")
    curvature = denoised_curvature(moments.curvature, plan.l2, _noise_on_curvature(moments))
    # The population's gradient at the target is minus the ridge's, so the mean of the rows' gradients is known (spec D.3):
    # a square of it goes from the second moment, with the most rows there may be, which takes the least.
    centred = moments.slope - np.outer(weights, weights) * plan.l2**2 / plan.problem.n_rows_high
    covariance = _positive(centred)
    if target == "unregularised":
        # w + H0^-1 l2 w = H0^-1 H w, whose error is that of w with H0 in the place of H.
        unregularised = curvature - plan.l2 * np.eye(len(weights))
        weights = weights + np.linalg.solve(unregularised, plan.l2 * weights)
        curvature = unregularised
    inverse = np.asarray(np.linalg.inv(curvature), dtype=np.float64)
    sampling = np.sqrt(np.maximum(np.diagonal(inverse @ covariance @ inverse), 0.0))
    return Uncertainty(weights, sampling + 1e-300, _privacy_errors(plan, inverse))


def denoised_curvature(curvature: Array, l2: float, deviation: float) -> Array:
    """The curvature of the objective from a noisy matrix (D, D) of the rows' part: positive definite, ridge included.

    Symmetric noise E with deviation s off the diagonal and sqrt(2) s on it makes the inverse too large on average: by
    H^-1 E[E H^-1 E] H^-1 to second order, where E[E A E] = s^2 (A + tr(A) I) for symmetric A. The answer solves, eigenvalue
    by eigenvalue,

        h = max(e, 0) + l2 + s^2 (1 / h + sum of all 1 / h)

    for the eigenvalues e of the noisy matrix, which puts back what the noise took from the inverse and keeps every
    eigenvalue above the size at which noise is all there is.
    """
    eigenvalues, vectors = np.linalg.eigh(curvature)
    raised = np.maximum(eigenvalues, 0.0) + l2
    values = raised + deviation * math.sqrt(len(raised))
    for _ in range(_MOST_STEPS):
        inverse = 1.0 / values
        # The mean of two steps in a row: the map falls in every value, so steps alone would go back and forth.
        following = 0.5 * (values + raised + deviation**2 * (inverse + inverse.sum()))
        if np.allclose(following, values, rtol=1e-12, atol=0.0):
            break
        values = following
    answer: Array = (vectors * values) @ vectors.T
    return answer


def _noise_on_curvature(moments: NoisyMoments) -> float:
    """Deviation of the noise on an entry off the diagonal of the curvature."""
    return moments.plan.deviation * moments.plan.unit_of_curvature / math.sqrt(2.0)


def _positive(matrix: Array) -> Array:
    eigenvalues, vectors = np.linalg.eigh(matrix)
    answer: Array = (vectors * np.maximum(eigenvalues, 0.0)) @ vectors.T
    return answer


def _privacy_errors(plan: Plan, inverse: Array) -> Array:
    """(draws, D): the error of the weights by draws of the mechanism's own noise, from a fixed public seed."""
    if plan.lattice is None:
        return np.zeros((0, inverse.shape[0]))
    last = _draws(_law_of(plan.lattice), 1)
    if plan.noise is None:
        return last
    return last + (_draws(plan.noise, 0) @ inverse if plan.mechanism == "objective" else _draws(plan.noise, 0))


def _law_of(lattice: LatticeNoise) -> Noise:
    """The continuous law that is like noise on a grid: entries are independent."""
    if isinstance(lattice, LatticeLaplace):
        return Noise(Groups((lattice.dimension,), (lattice.scale,)), "laplace", 1.0)
    return Noise(Ball(lattice.dimension, lattice.norm / math.sqrt(lattice.dimension)), "gaussian", 1.0)


@lru_cache(maxsize=8)
def _draws(noise: Noise, seed: int) -> Array:
    entropy = Entropy.seeded(seed)
    return (entropy.laplace if noise.law == "laplace" else entropy.gaussian)(noise.shape, _DRAWS, noise.scale)
