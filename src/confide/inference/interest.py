"""Intervals for named coefficients, by an orthogonal score: what is computed from the release, and how sure it is.

A released weight w errs because of the noise, and because a ridge pulled it. The rows' slopes at w tell by how much: with H
the curvature and v = H^-1 a, one step of Newton's method moves the coefficient a . w by v . (sum of the slopes times the
rows). That is one number, so it is hidden by far less noise than all weights together. The weight itself is a second
measurement, so only that part of the step is taken which leaves the least noise. An error in the other weights enters only
as a product with the error in H v, which is the noise on H along v. The mean and the variance of this product are known from
the release: one is taken off, and the other is a part of the interval.

Sources: V. Chernozhukov et al., *Double/debiased machine learning*, Econometrics Journal 21(1), 2018 (orthogonal scores);
S. van de Geer et al., *On asymptotically optimal confidence regions and tests*, Annals of Statistics 42(3), 2014 (one step).
Everything here is post-processing of released numbers and costs no privacy. Rows have the shortened constant of
`confide.privacy.curvature` here, and weights belong to such rows.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields, replace
from functools import lru_cache
from typing import Any, Self

import numpy as np
from scipy.special import ndtri

from confide.errors import ParameterError
from confide.inference.evidence import CheckedEvidence, symmetric_of, triangle_of
from confide.inference.intervals import Uncertainty
from confide.inference.risks_evidence import RisksEvidence
from confide.inference.sampling_design import INDEPENDENT, SamplingDesign
from confide.types import Array

FEWEST_DEVIATIONS, MOST_DEVIATIONS = 3.0, 8.0
"""Between these rows are clipped along a direction, in their standard deviations. The noise grows with the clip. Where the
probabilities of the model are not those of the population, clipping moves what is estimated, so the clip is as wide as the
noise allows (benchmarks/README.md)."""
_NOISE_BESIDE_SAMPLING = 0.5
"""The noise on the sum of slopes may be this share of its sampling error, if the clip is above the narrowest one."""
_NOISE_BESIDE_CURVATURE = 0.05
"""The noise on the sum of curvatures may be this share of that sum, if the clip is above the narrowest one."""
_LEAST_SPREAD = 0.25
"""The least standard deviation along a direction that is believed, over that of independent typical columns."""
_LEAST_PART_KEPT = 0.75
"""The part of the curvature along a direction that clipping must leave. Where it leaves less, the direction was one of few
rows with large numbers, and clipping them leaves a bias."""
_LEAST_CURVATURE = 4.0
"""The least curvature along a direction, in standard deviations of its noise, at which there is an interval."""
_LARGEST_SECOND_ORDER = 2.0
"""The largest error of second order, in errors of first order, at which there is an interval (benchmarks/interest.py)."""
_MOST_HIDDEN = 0.01
"""The largest squared share of a combination, of unit length, that may lie in directions whose curvature the noise hides."""
_LARGEST_SHIFT = 0.3
"""The largest mean square by which the ridge may have moved scores. One step does not lead back from farther away."""
_BEND_OF_CURVATURE = 0.3
"""Half the relative change of a row's curvature for each unit of its score, for usual rows. That of the logistic loss is at
most a half."""
_WHOLE_REMAINDER = 0.3
"""Where the ridge moves scores by this root mean square, or more, the last step leaves the whole remainder of the first."""
_QUANTILE = 1.96
_N_POINTS = 20_000
_PRIMES = (3, 5, 7)


@dataclass(frozen=True, slots=True)
class Combination:
    """A coefficient of interest: a combination of the weights. Public.

    Attributes
    ----------
    name, unit, columns, span : as in `confide.inference.table.NamedUnit`
    factors : tuple of (int, float)
        Places of the weights and their factors; the place -1 is the intercept.
    has_levels : bool
        Whether it compares levels of a category, so that rows lie along it at a few public places.
    usual_spread, usual_clip : float
        For forecasts: the variance of typical rows along the direction of the combination, and where they are clipped, if
        the other columns are independent of it. 0 where nothing is known but the bound on rows.
    own : tuple of int
        For levels: places of all weights of their category, which differences of risks replace.
    base : tuple of (int, float)
        For levels: the places of the reference in a row, and its entries there.
    """

    name: str
    unit: str
    columns: tuple[str, ...]
    span: float
    factors: tuple[tuple[int, float], ...]
    has_levels: bool = False
    usual_spread: float = 0.0
    usual_clip: float = 0.0
    own: tuple[int, ...] = ()
    base: tuple[tuple[int, float], ...] = ()

    def vector(self, n_features: int, constant: float) -> Array:
        """The combination (D,) of weights for rows with this constant, which is 0 without an intercept."""
        vector = np.zeros(n_features + (constant > 0.0))
        for place, factor in self.factors:
            if place >= 0:
                vector[place] = factor
            elif constant > 0.0:
                vector[-1] = factor * constant
        return vector

    @property
    def size(self) -> float:
        """The L2 norm of the factors of columns."""
        return math.hypot(*(factor for place, factor in self.factors if place >= 0))


@dataclass(frozen=True, slots=True)
class Facts:
    """Public facts about a release of interest.

    Attributes
    ----------
    n_features : int
    intercept, constant : float
        The constant of the intercept, and the shortened one; 0 without an intercept.
    l2 : float
        Ridge of the sum form.
    largest_slope, largest_curvature : float
        Of the loss of a row with its weight.
    n_rows : int
        The least number of rows.
    usual_norm : float
        L2 norm of a typical row without its constant.
    noise_in_objective : float or tuple of float
        Standard deviation of the noise on each entry of the gradient of the summed objective; one number stands for all.
    curvature_deviation : float
        Standard deviation of the noise on an entry of the curvature off the diagonal.
    sums_deviations : (float, float, float)
        Standard deviations of the noise on the sums of slopes, of curvatures and of squared slopes.
    is_laplace : bool
        Whether the noise on the sums has the Laplace law.
    design : SamplingDesign
        What is declared about the sample.
    """

    n_features: int
    intercept: float
    constant: float
    l2: float
    largest_slope: float
    largest_curvature: float
    n_rows: int
    usual_norm: float
    noise_in_objective: float | tuple[float, ...]
    curvature_deviation: float
    sums_deviations: tuple[float, float, float]
    is_laplace: bool
    design: SamplingDesign = INDEPENDENT

    @property
    def usual_curvature(self) -> float:
        """The expected sum of the curvatures of all rows: half of the largest for each, at the mean weight."""
        return self.design.effective_share * self.n_rows * self.largest_curvature / 2.0

    @property
    def steepness(self) -> float:
        """The largest sampling variance of the sum of slopes, over the curvature, for usual rows: 1 for the logistic loss.

        Squared slopes are taken to be those of half the largest slope where the curvature is at its largest. With weights
        they are the weight times as much, and the weight is at most the largest one.
        """
        return self.design.variance_factor * self.largest_slope**2 / (4.0 * self.largest_curvature)

    @property
    def usual_steepness(self) -> float:
        """What forecasts suppose of it."""
        return self.steepness * self.design.usual_squares

    @property
    def noise_on_weights(self) -> Array:
        """(D,): standard deviations of the noise on the entries of the gradient, that of the intercept's constant last."""
        width = self.n_features + (self.intercept > 0.0)
        deviations: Array = np.broadcast_to(np.asarray(self.noise_in_objective, dtype=np.float64), (width,))
        return deviations

    @property
    def stretch(self) -> Array:
        """(D,): what turns released weights into those for rows with the shortened constant."""
        of_constant = [self.intercept / self.constant] if self.intercept > 0.0 else []
        return np.array([*[1.0] * self.n_features, *of_constant])


def deviations_of_clip(facts: Facts, curvature_of_rows: float) -> float:
    """At how many of their standard deviations rows are clipped along a direction.

    Parameters
    ----------
    facts : Facts
    curvature_of_rows : float
        Sum of the curvatures of the rows' losses, as far as it is known.
    """
    of_slopes, of_curvatures, _ = facts.sums_deviations
    sampling = math.sqrt(max(curvature_of_rows, 0.0) * facts.usual_steepness)
    wide = MOST_DEVIATIONS
    if of_slopes > 0.0:
        wide = min(wide, _NOISE_BESIDE_SAMPLING * sampling / of_slopes)
    if of_curvatures > 0.0:
        wide = min(wide, math.sqrt(_NOISE_BESIDE_CURVATURE * max(curvature_of_rows, 0.0) / of_curvatures))
    return max(FEWEST_DEVIATIONS, wide)


_ROUNDED_TO_ZERO = 1e-12
"""Eigenvalues of a curvature that are smaller than this share of the largest are rounding."""
_NAMES_OF_FACTS = tuple(each.name for each in fields(Facts) if each.name != "design")


def _careful_inverse(facts: Facts, curvature: Array) -> Array:
    """(D, D): an inverse of the noisy curvature that does not blow up what the noise hides: (H^2 + (D + 1) s^2 I)^-1 H.

    It minimises the expected squared error of H x = a over the noise on H, of deviation s, for the least x.
    """
    ridge = (len(curvature) + 1) * facts.curvature_deviation**2
    # Without noise a combination that no row tells apart has the least inverse.
    ridge = max(ridge, (1e-9 * float(np.abs(curvature).max())) ** 2, float(np.finfo(float).tiny))
    # By eigenvalues: the square of a curvature that is singular may be so to the last bit, whatever is added to it.
    values, vectors = np.linalg.eigh(curvature)
    # What rounding alone makes of 0 has no inverse.
    told = np.abs(values) > _ROUNDED_TO_ZERO * np.abs(values).max()
    answer: Array = (vectors * np.where(told, values / (values * values + ridge), 0.0)) @ vectors.T
    return answer


def _wide_inverse(facts: Facts, curvature: Array) -> Array:
    """(D, D): an inverse of the noisy curvature that is rather too large than too small, for errors that must be covered.

    Noise of deviation s alone gives eigenvalues of the size s sqrt(D). Smaller ones are replaced by this.
    """
    values, vectors = np.linalg.eigh(curvature)
    least = facts.curvature_deviation * math.sqrt(len(values))
    least = max(least, 1e-9 * float(np.abs(values).max()), float(np.finfo(float).tiny))
    answer: Array = (vectors / np.maximum(values, least)) @ vectors.T
    return answer


def corrected_weights(facts: Facts, weights: Array, curvature: Array) -> Array:
    """(D,): released weights without the pull of the ridge, as far as the noisy curvature tells."""
    answer: Array = weights + _pull_of_ridge(facts, weights, curvature) / facts.stretch
    return answer


def _pull_of_ridge(facts: Facts, weights: Array, curvature: Array) -> Array:
    """(D,): by how much the ridge moved released weights, for rows with the shortened constant.

    A second step takes back what the noise hid from the first.
    """
    inverse = _careful_inverse(facts, curvature)
    first = inverse @ (facts.l2 * weights / facts.stretch)
    pull: Array = first + (first - inverse @ (curvature @ first))
    return pull


def directions_of(facts: Facts, combinations: tuple[Combination, ...], weights: Array, curvature: Array) -> Array:
    """(k, D): for rows with the shortened constant, the direction of each combination in units of its clip.

    With C the covariance of the errors u of the weights, v minimises the expected square of (H v - a) . u over these errors
    and the noise on H: (H C H + s^2 (tr(C) I + C))^-1 H C a.
    """
    covariance = _covariance_of_weights(facts, weights, curvature)
    noise = float(np.trace(covariance)) * np.eye(len(curvature)) + covariance
    pulled = curvature @ covariance
    whole = pulled @ curvature + facts.curvature_deviation**2 * noise
    # Without noise a combination that no row tells apart has the least direction.
    whole = whole + 1e-12 * float(np.trace(whole)) * np.eye(len(whole))
    inverse: Array = np.asarray(np.linalg.solve(whole, pulled), dtype=np.float64)
    return np.array([_direction(facts, each, inverse, curvature) for each in combinations])


def _direction(facts: Facts, combination: Combination, inverse: Array, curvature: Array) -> Array:
    d = facts.n_features
    direction = inverse @ combination.vector(d, facts.constant)
    rows, means = _curvature_of_rows(facts, curvature), np.zeros(d)
    if facts.intercept > 0.0 and curvature[-1, -1] > 0.0:
        means = curvature[-1, :-1] / (rows * facts.constant)
    length = float(np.linalg.norm(direction[:d]))
    least = _LEAST_SPREAD * length * facts.usual_norm / math.sqrt(d)
    spread = math.sqrt(max(float(direction @ curvature @ direction) / rows, least**2, float(np.finfo(float).tiny)))
    clip = deviations_of_clip(facts, rows) * spread
    if combination.has_levels:
        # A level is 1 or 0. Its rows must not be clipped, however few they are.
        own = [place for place, _ in combination.factors if place >= 0]
        clip = max(clip, float(np.abs(direction[own]).max() + abs(direction[own] @ means[own])))
    answer: Array = direction / clip
    return answer


@dataclass(frozen=True, slots=True)
class InterestEvidence(CheckedEvidence):
    """What was released for coefficients of interest, and what is publicly known about the noise.

    Attributes
    ----------
    facts : Facts
    combinations : tuple of Combination
    weights : (D,)
        The released weights.
    curvature : (D, D)
        The released curvature, for rows with the shortened constant.
    sums : (k, 3)
        For each combination the released sums of slopes, of curvatures and of squared slopes along its direction.
    risks : RisksEvidence or None
        What was released for differences of risks; None without them.
    """

    facts: Facts
    combinations: tuple[Combination, ...]
    weights: Array
    curvature: Array
    sums: Array
    risks: RisksEvidence | None = None

    def _has_consistent_shapes(self) -> bool:
        facts = self.facts
        width = facts.n_features + (facts.intercept > 0.0)
        places = [place for each in self.combinations for place, _ in (*each.factors, *each.base)]
        places += [place for each in self.combinations for place in each.own]
        return (
            self.weights.shape == (width,)
            and np.size(facts.noise_in_objective) in (1, width)
            and self.curvature.shape == (width, width)
            and self.sums.shape == (len(self.combinations), 3)
            and len(self.combinations) >= 1
            and all(-1 <= place < facts.n_features for place in places)
            and (self.risks is None or self.risks.bends.shape == (len(self.combinations), width))
        )

    def _has_possible_values(self) -> bool:
        facts = self.facts
        apart = ("noise_in_objective", "sums_deviations", "design")
        numbers = [getattr(facts, each.name) for each in fields(facts) if each.name not in apart]
        noise = np.ravel(facts.noise_in_objective)
        factors = [factor for each in self.combinations for _, factor in (*each.factors, *each.base)]
        return (
            all(
                np.isfinite(np.asarray(each, dtype=np.float64)).all()
                for each in (self.weights, self.curvature, self.sums, numbers, noise, facts.sums_deviations, factors)
            )
            and min(*numbers, *noise, *facts.sums_deviations) >= 0.0
            and min(facts.largest_slope, facts.largest_curvature, facts.n_rows, facts.usual_norm) > 0.0
            and (facts.constant > 0.0) == (facts.intercept > 0.0)
        )

    def with_weights(self) -> Self:
        """The same evidence, whose design says that rows have weights of their own."""
        return replace(self, facts=replace(self.facts, design=replace(self.facts.design, has_weights=True)))

    def to_dict(self) -> dict[str, Any]:
        """A JSON form."""
        return {
            "facts": {name: _listed(getattr(self.facts, name)) for name in _NAMES_OF_FACTS} | self.facts.design.described(),
            "combinations": [
                {each.name: _listed(getattr(one, each.name)) for each in fields(one)} for one in self.combinations
            ],
            "weights": self.weights.tolist(),
            "curvature": triangle_of(self.curvature),
            "sums": self.sums.tolist(),
            **({} if self.risks is None else {"risks": self.risks.to_dict()}),
        }

    @classmethod
    def from_dict(cls, value: dict[str, Any]) -> Self:
        """Read the form written by `to_dict`."""
        value = {"risks": None} | value
        is_known = set(value) == {each.name for each in fields(cls)}
        if not is_known or set(value["facts"]) - {"design"} != set(_NAMES_OF_FACTS):
            raise ParameterError(
                "the data for intervals of named coefficients were written by another version of confide, which this "
                "version cannot read."
            )
        facts = dict(value["facts"])
        facts["sums_deviations"] = tuple(map(float, facts["sums_deviations"]))
        # The first versions wrote one number for all entries.
        noise = facts["noise_in_objective"]
        facts["noise_in_objective"] = tuple(map(float, noise)) if isinstance(noise, list) else float(noise)
        if "design" in facts:
            facts["design"] = SamplingDesign.from_dict(facts["design"])
        combinations = []
        for each in value["combinations"]:
            pairs = {
                name: tuple((int(place), float(factor)) for place, factor in each.get(name, ()))
                for name in ("factors", "base")
            }
            own = tuple(map(int, each.get("own", ())))
            combinations.append(Combination(**{**each, "columns": tuple(map(str, each["columns"])), **pairs, "own": own}))
        weights = np.array(value["weights"], dtype=np.float64)
        curvature = symmetric_of(value["curvature"], len(weights))
        sums = np.array(value["sums"], dtype=np.float64)
        risks = None if value["risks"] is None else RisksEvidence.from_dict(value["risks"])
        return cls(Facts(**facts), tuple(combinations), weights, curvature, sums, risks).checked()


def _listed(value: Any) -> Any:
    return [_listed(each) for each in value] if isinstance(value, tuple) else value


def uncertainty_of_interest(evidence: InterestEvidence) -> Uncertainty:
    """Estimates of the combinations, without the pull of the ridge, and the distribution of their errors.

    An interval is infinite where the noise hides the curvature along its direction or of a part of the combination, where
    clipping left too little of it, where the ridge moved scores far, or where the error of second order is too large to be
    believed.
    """
    facts = evidence.facts
    release = _Release.of(evidence)
    directions = directions_of(facts, evidence.combinations, evidence.weights, evidence.curvature)
    found = [_errors(release, place, directions[place]) for place in range(len(evidence.combinations))]
    estimates, sampling, gaussian, of_sums = (np.array(column) for column in zip(*found, strict=True))
    has_noise = float(facts.noise_on_weights.max()) > 0.0 or max(facts.sums_deviations) > 0.0
    errors = np.zeros((0, len(found)))
    if has_noise:
        known = np.isfinite(sampling)
        others = independent_points(is_laplace=False, place=0)[:, None]
        own = independent_points(is_laplace=facts.is_laplace, place=1)[:, None]
        errors = others * np.where(known, gaussian, 0.0) + own * np.where(known, of_sums, 0.0)
    return Uncertainty(estimates, sampling, errors)


@lru_cache(maxsize=8)
def independent_points(*, is_laplace: bool, place: int) -> Array:
    """(points,): points of a standard Gaussian or Laplace law, which stand for its draws; independent at other places.

    Each place has all of its points, and from place 1 on in an order that multiples of the root of a prime give (Richtmyer's
    points).
    """
    shares = (np.arange(_N_POINTS) + 0.5) / _N_POINTS
    laplace = -np.sign(shares - 0.5) * np.log1p(-np.abs(2.0 * shares - 1.0))
    points: Array = laplace if is_laplace else np.asarray(ndtri(shares))
    step = math.sqrt(_PRIMES[place - 1]) if place else 1.0 / _N_POINTS
    order = np.argsort(np.modf(np.arange(_N_POINTS) * step)[0])
    answer = np.empty(_N_POINTS)
    answer[order] = points / math.sqrt(float(np.mean(points**2)))
    answer.setflags(write=False)
    return answer


def _covariance_of_weights(facts: Facts, weights: Array, curvature: Array) -> Array:
    """The covariance of the errors of the corrected weights, for rows with the shortened constant."""
    sampling, noise = errors_of_weights(facts, weights, curvature)
    return sampling + noise


def errors_of_weights(facts: Facts, weights: Array, curvature: Array) -> tuple[Array, Array]:
    """The covariances of the errors of the corrected weights due to sampling and due to the noise, as they are released.

    They are for rows with the shortened constant. What the corrections leave of the pull of the ridge counts as an error.
    """
    inverse = _wide_inverse(facts, curvature)
    values, vectors = np.linalg.eigh(curvature)
    spread = (vectors * np.maximum(values, 0.0)) @ vectors.T * facts.steepness
    noise = np.diag((facts.noise_on_weights / facts.stretch) ** 2)
    pull = _pull_of_ridge(facts, weights, curvature)
    # The ridge pulls as strongly as before in directions in which the noise hides the curvature.
    missed = inverse @ (facts.l2 * weights / facts.stretch - curvature @ pull)
    # The noise E on the curvature moves the corrected weights by about H^-1 E pull.
    noise = noise + facts.curvature_deviation**2 * (float(pull @ pull) * np.eye(len(pull)) + np.outer(pull, pull))
    return inverse @ spread @ inverse, inverse @ noise @ inverse + np.outer(missed, missed)


@dataclass(frozen=True, slots=True)
class _Release:
    """What all combinations of a release share.

    Attributes
    ----------
    evidence : InterestEvidence
    near : (D,)
        The corrected weights, for rows with the shortened constant, like all that follows.
    pull : (D,)
        By how much the ridge moved the weights.
    shift : float
        The mean square by which it moved the scores of rows, each row weighted by its curvature.
    sampling, noise : (D, D)
        Covariances of the errors of the corrected weights.
    hidden : (D, h)
        Orthonormal directions whose curvature may be noise alone, which has the size s sqrt(D).
    """

    evidence: InterestEvidence
    near: Array
    pull: Array
    shift: float
    sampling: Array
    noise: Array
    hidden: Array

    @classmethod
    def of(cls, evidence: InterestEvidence) -> _Release:
        facts, curvature = evidence.facts, evidence.curvature
        pull = _pull_of_ridge(facts, evidence.weights, curvature)
        shift = max(float(pull @ curvature @ pull), 0.0) / _curvature_of_rows(facts, curvature)
        sampling, noise = errors_of_weights(facts, evidence.weights, curvature)
        values, vectors = np.linalg.eigh(curvature)
        hidden = vectors[:, values < facts.curvature_deviation * math.sqrt(len(values))]
        return cls(evidence, facts.stretch * evidence.weights + pull, pull, shift, sampling, noise, hidden)

    def hidden_share(self, wanted: Array) -> float:
        """The squared share of a combination in hidden directions."""
        return float(np.sum((self.hidden.T @ wanted) ** 2) / (wanted @ wanted))


def _errors(release: _Release, place: int, direction: Array) -> tuple[float, float, float, float]:
    """The estimate of one combination, and the standard deviations of its errors.

    They are due to sampling, to Gaussian parts of the noise, and to the noise on the sum of slopes.
    """
    evidence = release.evidence
    facts, curvature = evidence.facts, evidence.curvature
    wanted = evidence.combinations[place].vector(facts.n_features, facts.constant)
    pull, bend, square = evidence.sums[place].tolist()
    of_pull, of_bend, of_square = facts.sums_deviations
    estimate = float(wanted @ release.near)
    unknown = estimate, math.inf, 0.0, 0.0
    reach, kept = float(wanted @ direction), float(direction @ curvature @ direction)
    spread = facts.curvature_deviation * math.sqrt(2.0) * float(direction @ direction)
    is_known = (
        reach > 0.0
        and bend > max(_LEAST_CURVATURE * of_bend, 0.0)
        and bend + 2.0 * math.hypot(of_bend, spread) >= _LEAST_PART_KEPT * kept
    )
    if not is_known or release.hidden_share(wanted) > _MOST_HIDDEN or release.shift > _LARGEST_SHIFT:
        return unknown
    per_pull, doubt = reach / bend, of_bend / bend
    change = -pull * per_pull
    corrected = change + per_pull * _bias_of_step(release, wanted, direction)
    sampling = per_pull * math.sqrt(facts.design.variance_factor * max(square, of_square, float(np.finfo(float).tiny)))
    of_sums = per_pull * of_pull
    second = per_pull * _second_order(release, wanted, direction)
    if second > _LARGEST_SECOND_ORDER * math.hypot(sampling, of_sums):
        return unknown
    left = _left_by_steps(release, wanted, per_pull * math.sqrt(max(kept, 0.0)))
    # The size of an error that is divided by a noisy number is enlarged as in `intervals._inflation_factors`.
    factor = 1.0 + 0.5 * (_QUANTILE**2 + 1.0) * doubt**2
    of_step = factor * math.hypot(second, change * doubt)
    of_near = math.sqrt(max(float(wanted @ release.noise @ wanted), 0.0))
    # Weights without noise are as near the minimiser as a solver came, and the step goes on from there. Where the noise
    # hides a direction, nobody knows how far the ridge pulled them along it.
    is_known = float(facts.noise_on_weights.max()) > 0.0 and not release.hidden.size
    part = part_of_step(math.hypot(of_step, factor * of_sums), math.hypot(of_near, left)) if is_known else 1.0
    gaussian = math.hypot(part * of_step, (1.0 - part) * of_near, factor * left)
    return estimate + part * corrected, factor * sampling, gaussian, part * factor * of_sums


def part_of_step(of_step: float, of_near: float) -> float:
    """The part of the last step that is taken, so that the variance of the error is least.

    The corrected weights, and what the step leads to, are two estimates with the same sampling error. The noise of one is
    independent of that of the other: it is on the weights here, and on the curvature and the sums there.

    Parameters
    ----------
    of_step, of_near : float
        The standard deviations of the other errors, with and without the step.
    """
    whole = math.hypot(of_step, of_near)
    return (of_near / whole) ** 2 if whole > 0.0 else 1.0


def _bias_of_step(release: _Release, wanted: Array, direction: Array) -> float:
    """What the noise on the curvature takes on average from the last step: it has a part in v and in the weights alike.

    The noise E, with entries of deviation s, adds E v to H v, and -H^-1 E p to the weights, p the pull of the ridge. With
    the step divided by v . (H v), what is lost is E v . (I - v a^T / (a . v)) H^-1 E p. As v is H^-1 a, its mean is

        s^2 (tr(H^-1) v . p + v . H^-1 p - 2 |v|^2 (v . p) / (a . v)).
    """
    facts = release.evidence.facts
    inverse = _careful_inverse(facts, release.evidence.curvature)
    along = float(direction @ release.pull)
    own = 2.0 * float(direction @ direction) / float(wanted @ direction)
    scale = float(wanted @ direction) / float(wanted @ inverse @ wanted)
    both = float(np.trace(inverse)) * along + float(direction @ inverse @ release.pull) - own * along / scale
    return facts.curvature_deviation**2 * both


def _left_by_steps(release: _Release, wanted: Array, per_row: float) -> float:
    """What the steps leave of the pull of the ridge, in the combination and through the other weights.

    The remainder of the first step grows with the square of the pull. The last step leaves of it what the curvature changes
    along the pull. These sizes were found by simulation (benchmarks/README.md).
    """
    rows = math.sqrt(_curvature_of_rows(release.evidence.facts, release.evidence.curvature))
    own = abs(float(wanted @ release.pull)) * math.sqrt(release.shift)
    kept = 1.0 if release.hidden.size else min(1.0, math.sqrt(release.shift) / _WHOLE_REMAINDER)
    return math.hypot(own, per_row * rows * _BEND_OF_CURVATURE * release.shift * kept)


def _curvature_of_rows(facts: Facts, curvature: Array) -> float:
    """The sum of the curvatures of the rows' losses: as released, or that of typical rows."""
    rows = float(curvature[-1, -1]) / facts.constant**2 if facts.intercept > 0.0 else 0.0
    return rows if rows > 0.0 else facts.usual_curvature


def _second_order(release: _Release, wanted: Array, direction: Array) -> float:
    """Standard deviation of (H v) . u, u the errors of the weights but along the combination, and H without noise.

    The noise E on H gives E v the covariance s^2 (|v|^2 I + v v^T), and what is left of H v with the noisy H is known.
    """
    evidence = release.evidence
    apart = np.eye(len(direction)) - np.outer(direction, wanted) / float(wanted @ direction)
    spread = apart @ (release.sampling + release.noise) @ apart.T
    of_noise = float(direction @ direction) * float(np.trace(spread)) + float(direction @ spread @ direction)
    left = evidence.curvature @ direction
    square = evidence.facts.curvature_deviation**2 * of_noise + float(left @ spread @ left)
    return math.sqrt(max(square, 0.0))
