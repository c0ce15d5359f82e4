"""How far released weights may lie from those of the population: intervals and probabilities, made of a release alone.

Y. Wang, D. Kifer, J. Lee, *Differentially private confidence intervals for empirical risk minimization*, Journal of Privacy
and Confidentiality 9(1), 2019, with two things of our own: both matrices leave with one noise, and what the noise does to
the inverse of the first is taken back. In the sum form, with n rows,

    w - w0 = -H^-1 (G + b),    G ~ N(0, S),    b with the law of the noise in the objective, independent of G,

H the curvature of the objective and S the covariance of the sum of the rows' gradients, at the weights w0 that the
population has with the same ridge. Everything here is post-processing and costs no privacy. Nothing depends on what the
loss is: whatever has slopes in the scores of a row has such moments.

Three classes and more: of a loss that is a sum over scores each score is looked at by itself, for H has nothing between two.
A joint loss depends on differences of scores alone. So the population's weights of all classes add up to 0 with any ridge,
and in the direction that moves all classes alike H is the ridge alone, or 0 without one. It is left out: estimates and
errors are those of weights less their mean over classes, and the target without a ridge is the minimiser of mean 0.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri

from confide.errors import ParameterError
from confide.inference.evidence import Evidence
from confide.inference.forecast import LARGEST_RATIO
from confide.privacy.mechanism import Noise
from confide.privacy.moments import directions_of
from confide.privacy.noise import Entropy
from confide.types import Array, Indices

_DRAWS = 4000
_SLICES = 400
_MOST_STEPS = 1000
_HALVINGS = 45
_USUAL_QUANTILE, _LARGEST_SPREAD = 1.96, 0.1
_LARGEST_RATIO_OF_ONE = 5.0
"""Of noise to curvature in a release of two classes: beyond it intervals hold far too seldom (docs/intervals.md)."""
TARGETS = ("regularised", "unregularised")


@dataclass(frozen=True)
class Uncertainty:
    """The law of the error of released coefficients, as far as it is known from the release.

    Attributes
    ----------
    estimates : (D,)
        Released coefficients, the intercept last, in the units of `coef_` and `intercept_`; for the target "unregularised"
        those after one Newton step that takes back the ridge. Of three classes and more those of each, one class after the
        other; of softmax less their mean over classes, which is 0 in the population.
    sampling_error : (D,)
        Standard deviation that comes from the rows being a sample; inf for a class that the noise hides.
    privacy_errors : (draws, D)
        Draws of the error that comes from the noise, which is symmetric; (0, D) without noise.
    """

    estimates: Array
    sampling_error: Array
    privacy_errors: Array

    @cached_property
    def privacy_error(self) -> Array:
        """(D,): standard deviation that comes from the noise."""
        if self.privacy_errors.shape[0] == 0:
            return np.zeros_like(self.estimates)
        deviation: Array = np.sqrt(np.mean(self.privacy_errors**2, axis=0))
        return np.where(self._is_known, deviation, np.inf)

    @property
    def _is_known(self) -> NDArray[np.bool_]:
        return np.isfinite(self.sampling_error)

    @property
    def total_error(self) -> Array:
        """(D,): standard deviation of both together."""
        return np.hypot(self.sampling_error, self.privacy_error)

    @cached_property
    def _slices(self) -> Array:
        """(slices, D): sizes of errors that come from the noise, each the root mean square of one slice of the draws."""
        sizes = np.sort(np.abs(self.privacy_errors), axis=0)
        slices: Array = np.sqrt(np.mean(sizes.reshape(_SLICES, -1, sizes.shape[1]) ** 2, axis=1))
        return slices

    def probability_within(self, distances: Array) -> Array:
        """(D,): the probability that the error is at most so large in absolute value, by coefficient."""
        if self.privacy_errors.shape[0] == 0:
            gaussian: Array = 2.0 * ndtr(distances / self.sampling_error) - 1.0
            return gaussian
        # The law of the noise is symmetric, so that a size stands for both signs.
        upper = ndtr((distances - self._slices) / self.sampling_error)
        lower = ndtr((-distances - self._slices) / self.sampling_error)
        within: Array = np.where(self._is_known, np.mean(upper - lower, axis=0), 0.0)
        return within

    def margins(self, level: float) -> Array:
        """(D,): half the width of intervals that hold the population's coefficient with this probability, one at a time."""
        usual: Array = float(ndtri(0.5 + 0.5 * checked_level(level))) * self.sampling_error
        if self.privacy_errors.shape[0] == 0:
            return usual
        # Independent symmetric noise only widens; the largest size of noise and the usual margin together are enough.
        usual = np.where(self._is_known, usual, 0.0)
        low, high = usual, usual + self._slices[-1]
        for _ in range(_HALVINGS):
            middle = 0.5 * (low + high)
            enough = self.probability_within(middle) >= level
            low, high = np.where(enough, low, middle), np.where(enough, middle, high)
        answer: Array = np.where(self._is_known, high, np.inf)
        return answer

    def intervals(self, level: float = 0.95) -> Array:
        """(D, 2): lower and upper ends."""
        margins = self.margins(level)
        return np.column_stack([self.estimates - margins, self.estimates + margins])

    def p_values(self) -> Array:
        """(D,): how probable an error as large as the estimate is; small where the population's is hardly 0."""
        return np.clip(1.0 - self.probability_within(np.abs(self.estimates)), 0.0, 1.0)


def uncertainty(evidence: Evidence, target: str = "regularised") -> Uncertainty:
    """The law of the error of released coefficients.

    Parameters
    ----------
    evidence : what was released, and public facts
    target : "regularised" for the minimiser that the population has with the same ridge, "unregularised" for that without,
        which is refused after output perturbation
    """
    checked_target(target)
    if target == "unregularised" and evidence.noises and not any(part.in_objective for part in evidence.noises):
        raise ParameterError(
            "after output perturbation the ridge cannot be taken back: the noise on the weights is too large for one step. "
            "Use the target 'regularised', or fit with mechanism='objective'."
        )
    known = known_scores(evidence)
    weights = evidence.weights.reshape(known.size, -1)
    units = np.ones_like(weights)
    if evidence.intercept > 0.0:
        units[:, -1] = evidence.intercept
    if not evidence.separable:
        weights = weights - weights[known if known.any() else ~known].mean(axis=0)
    # A class that the noise hides keeps its weights, and nothing is said of their errors.
    estimates, sampling = weights.ravel().copy(), np.full(weights.size, np.inf)
    errors = np.zeros((_DRAWS if evidence.noises else 0, weights.size))
    for part in _parts(evidence, known):
        estimates[part.places], sampling[part.places], errors[:, part.places] = _law(
            evidence, part, target == "unregularised"
        )
    return Uncertainty(units.ravel() * estimates, units.ravel() * sampling, units.ravel() * errors)


def known_scores(evidence: Evidence) -> NDArray[np.bool_]:
    """(o,): whether the noise leaves enough of the curvature of each score's own weights for intervals.

    The forecast takes all classes for equally frequent, for frequencies are not public. A rare one bends the objective less,
    and what the noise leaves of that, on the mean over its columns, net of the intercept, is well known from the release.
    The same limit holds as for the forecast. With one score it is a wider one: a forecast near its limit, and the release of
    the same fit, may lie on either side of it.
    """
    o, row_width = evidence.n_outputs, len(evidence.weights) // evidence.n_outputs
    limit = LARGEST_RATIO if o > 1 else _LARGEST_RATIO_OF_ONE
    curvature, share = evidence.curvature, 1.0
    if not evidence.separable:
        # The direction of one class alone, less what moves all alike, has a squared length of 1 - 1 / o.
        turn, share = directions_of(o, row_width), 1.0 - 1.0 / o
        curvature = turn.T @ curvature @ turn
    noise = 2.0 * evidence.curvature_deviation * math.sqrt(row_width if evidence.separable else len(evidence.curvature))
    known = []
    for start in range(0, o * row_width, row_width):
        own = curvature[start : start + row_width, start : start + row_width] / share
        bends = np.diagonal(own)
        if evidence.intercept > 0.0:
            bends = bends[:-1] - own[:-1, -1] ** 2 / own[-1, -1] if own[-1, -1] > 0.0 else np.zeros(1)
        known.append(noise <= limit * max(0.0, float(np.mean(bends))))
    return np.array(known)


@dataclass(frozen=True)
class _Part:
    """Weights whose moments are known together.

    Attributes
    ----------
    weights : which they are, (p,)
    turn : (r, p), orthonormal directions in them, in which the loss bends
    places : coefficients that are told of, (q,)
    basis : (r, q), each of these coefficients in those directions
    curvature, slope : (r, r)
    """

    weights: Indices
    turn: Array
    places: Indices
    basis: Array
    curvature: Array
    slope: Array


def _parts(evidence: Evidence, known: NDArray[np.bool_]) -> Iterator[_Part]:
    everywhere = np.arange(len(evidence.weights))
    by_score, both = everywhere.reshape(known.size, -1), (evidence.curvature, evidence.slope)
    if evidence.separable:
        for own in by_score[known]:
            yield _Part(own, np.eye(own.size), own, np.eye(own.size), *(matrix[np.ix_(own, own)] for matrix in both))
    elif known.sum() >= 2:
        turn = directions_of(known.size, by_score.shape[1])
        # Less the mean over the known classes alone; what is not known of the others is part of the law all the same.
        centred = turn - np.tile(turn.reshape(len(turn), known.size, -1)[:, known].mean(axis=1), known.size)
        own = by_score[known].ravel()
        yield _Part(everywhere, turn, own, centred[:, own], *both)


def _law(evidence: Evidence, part: _Part, without_ridge: bool) -> tuple[Array, Array, Array]:
    """Estimates, sampling errors and privacy errors of the coefficients of one part."""
    basis, l2 = part.basis, evidence.l2
    weights = part.turn @ evidence.weights[part.weights]
    curvature = denoised_curvature(part.curvature, l2, evidence.curvature_deviation)
    # The population's gradient at the target is minus the ridge's, so the mean of the rows' gradients is known (spec D.3):
    # a square of it goes from the second moment, with the most rows there may be, which takes the least.
    covariance = positive_part(part.slope - np.outer(weights, weights) * l2**2 / evidence.n_rows_high)
    step: Array = np.eye(len(weights))
    if without_ridge:
        # w + H0^-1 l2 w = H0^-1 H w: for what is in the objective H0 takes the place of H, and the seal grows.
        unregularised = curvature - l2 * step
        step = np.asarray(np.linalg.solve(unregularised, curvature))
        weights, curvature = step @ weights, unregularised
    inverse = np.asarray(np.linalg.inv(curvature), dtype=np.float64)
    columns = inverse @ basis
    sampling = np.sqrt(np.maximum(np.sum(columns * (covariance @ columns), axis=0), 0.0))
    # A coefficient that no row tells of has an interval of no width, and the quotients above stay numbers.
    sampling = np.maximum(sampling, np.finfo(float).tiny)
    errors = np.zeros((_DRAWS if evidence.noises else 0, basis.shape[1]))
    multiplied = covariance.copy()
    for position, noise in enumerate(evidence.noises):
        draws = draws_of(noise.noise, position)[:, part.weights] @ part.turn.T
        errors += draws @ (columns if noise.in_objective else step.T @ basis)
        if noise.in_objective:
            multiplied += draws.T @ draws / len(draws)
    raised = _raised_by_noise(evidence, inverse, multiplied, basis, sampling, errors)
    return basis.T @ weights, raised * sampling, raised * errors


def checked_level(level: float) -> float:
    """A level that can be one, or ParameterError."""
    if isinstance(level, bool) or not isinstance(level, (int, float, np.number)) or not 0.0 < level < 1.0:
        raise ParameterError("level must be a number strictly between 0 and 1, for example 0.95.")
    return float(level)


def checked_target(target: str) -> str:
    """A target that is known, or ParameterError."""
    if target not in TARGETS:
        raise ParameterError(f"target must be one of {', '.join(map(repr, TARGETS))}.")
    return target


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
        settled = np.allclose(following, values, rtol=1e-12, atol=0.0)
        values = following
        if settled:
            break
    answer: Array = (vectors * values) @ vectors.T
    return answer


def positive_part(matrix: Array) -> Array:
    """A symmetric matrix with its negative eigenvalues put to 0."""
    eigenvalues, vectors = np.linalg.eigh(matrix)
    answer: Array = (vectors * np.maximum(eigenvalues, 0.0)) @ vectors.T
    return answer


def _raised_by_noise(
    evidence: Evidence, inverse: Array, multiplied: Array, basis: Array, sampling: Array, errors: Array
) -> Array:
    """(D,): factors by which errors are raised because both matrices are known with noise alone.

    Intervals of a size that is itself uncertain, with relative standard deviation t, hold too seldom, as normal ones would
    with few degrees of freedom; to second order 1 + (z^2 + 1) t^2 / 2 puts that right, z = 1.96. With a = H^-1 e_j,
    e_j a column of `basis`, M the covariance that H^-1 multiplies, b = H^-1 M a, and noise of deviations s on H and f on S
    (sqrt(2) as much on their diagonals), the variance a^T M a of coefficient j has noise of variance (beyond t^2 = 0.1 the
    expansion is of no use, and `denoised_curvature` makes intervals long enough)

        4 s^2 (|a|^2 |b|^2 + (a . b)^2) + 2 f^2 |a|^4 = (2 t v)^2,    v all of the coefficient's variance.
    """
    if errors.shape[0] == 0:
        return np.ones_like(sampling)
    columns = inverse @ basis
    others = inverse @ multiplied @ columns
    squares = np.sum(columns**2, axis=0)
    products = squares * np.sum(others**2, axis=0) + np.sum(columns * others, axis=0) ** 2
    spread = 4.0 * evidence.curvature_deviation**2 * products + 2.0 * evidence.slope_deviation**2 * squares**2
    variance = sampling**2 + np.mean(errors**2, axis=0)
    raised: Array = 1.0 + 0.5 * (_USUAL_QUANTILE**2 + 1.0) * np.minimum(spread / (2.0 * variance) ** 2, _LARGEST_SPREAD)
    return raised


@lru_cache(maxsize=8)
def draws_of(noise: Noise, seed: int) -> Array:
    """(draws, D) of a law, from a fixed public seed."""
    entropy = Entropy.seeded(seed)
    return (entropy.laplace if noise.law == "laplace" else entropy.gaussian)(noise.shape, _DRAWS, noise.scale)
