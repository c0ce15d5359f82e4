"""Intervals for named coefficients, by an orthogonal score: what is computed from the release, and how sure it is.

A released weight w errs because of the noise, and because a ridge pulled it. In a frame, where all columns vary alike, two
releases of curvature and slopes lead to weights near the minimiser. There, with H the curvature and v = H^-1 a, one step of
Newton's method moves the coefficient a . w by v . (sum of the slopes times the rows). That is one number, so it is hidden by
far less noise than all weights together. An error in the other weights enters only as a product with the error in H v, which
is the noise on H along v. The mean and the variance of this product are known from the release: one is taken off, and the
other is a part of the interval.

Sources: V. Chernozhukov et al., *Double/debiased machine learning*, Econometrics Journal 21(1), 2018 (orthogonal scores);
S. van de Geer et al., *On asymptotically optimal confidence regions and tests*, Annals of Statistics 42(3), 2014 (one step).
Everything here is post-processing of released numbers and costs no privacy.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields, replace
from functools import lru_cache, reduce
from itertools import combinations
from typing import Any, ClassVar, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, ndtri

from confide.array_types import Array
from confide.erm.moment_sums import Frame
from confide.features.codes import ColumnEncoding
from confide.features.encoder import Encoder
from confide.inference.intervals import CheckedEvidence, Evidence, Uncertainty, WeightsEvidence
from confide.inference.sampling_design import INDEPENDENT, SamplingDesign
from confide.privacy.curvature import CONSTANT
from confide.privacy.noisy_sum import SumPlan
from confide.privacy.standardised_sums import LARGEST_STEP, RiskSums, StandardisedSums, largest_bend, largest_difference

# What was released for differences of risks, as it is kept in a model file.


@dataclass(frozen=True, slots=True)
class RisksEvidence(CheckedEvidence):
    """Means over the rows for k changes, and what is publicly known about their noise.

    Attributes
    ----------
    steps : (k,)
        By how much each change moves the score of every row.
    differences : (k,)
        Mean differences of probabilities.
    rates : (k,)
        Means of p (1 - p) after the change.
    bends : (k, D)
        Means of rows, their constant included, times the difference of p (1 - p) after and before the change.
    n_rows : float
        Noisy number of rows, or the public one.
    deviations : (k,), (k,)
        Standard deviations of the noise on the differences and on an entry of the bends.
    count_deviation : float
        Of the noise on the number of rows, over that number; 0 where it is public.
    is_laplace : bool
        Whether the noise has the Laplace law.
    """

    steps: Array
    differences: Array
    rates: Array
    bends: Array
    n_rows: float
    deviations: tuple[Array, Array]
    count_deviation: float
    is_laplace: bool

    @classmethod
    def of(cls, plan: SumPlan[RiskSums], steps: Array, sums: StandardisedSums) -> Self:
        """The evidence of a release by this plan, at these steps."""
        # Nothing is known where the noise leaves no row.
        n_rows = max(sums.n_rows, 1.0)
        _, bends, counts = plan.query.scales
        noise = float(plan.deviation)
        of_bends = noise * largest_bend(steps) * plan.problem.summed_norm / bends / n_rows
        deviations = (noise * largest_difference(steps) / n_rows, of_bends)
        means = (sums.differences / n_rows, sums.rates / n_rows, sums.bends / n_rows)
        return cls(steps, *means, n_rows, deviations, noise / counts / n_rows if counts else 0.0, plan.law == "laplace")

    def _fits(self) -> bool:
        k, deviations = len(self.steps), np.array([self.count_deviation, *np.concatenate(self.deviations)])
        vectors = (self.steps, self.differences, self.rates, *self.deviations)
        has_shapes = k >= 1 and all(vector.shape == (k,) for vector in vectors) and self.bends.shape[:1] == (k,)
        return has_shapes and self.n_rows >= 1.0 and bool(np.isfinite(deviations).all() and deviations.min() >= 0.0)


FEWEST_DEVIATIONS, MOST_DEVIATIONS = 5.0, 8.0
"""Between these rows are clipped along a direction, in their standard deviations. The noise grows with the clip. Where the
probabilities of the model are not those of the population, clipping moves what is estimated, so the clip is as wide as the
noise allows (benchmarks/notes/intervals_of_one_coefficient.md)."""
_NOISE_BESIDE_SAMPLING = 0.5
"""The noise on the sum of slopes may be this share of its sampling error, if the clip is above the narrowest one."""
_NOISE_BESIDE_CURVATURE = 0.05
"""The noise on the sum of curvatures may be this share of that sum, if the clip is above the narrowest one."""
_LEAST_SPREAD = 0.25
"""The least standard deviation along a direction that is believed, over that of independent columns of spread 1."""
OF_OTHERS = 4.0
"""How many standard deviations other columns are supposed to move rows along a direction."""
_OF_LONG_ROWS = 0.3
"""What is supposed of rows that count less in the frame because they are long, as no model is right: how far a coefficient
that they alone decide lies from that of all rows. A standard deviation, in scores for one spread of the column. How much
less they count is released (benchmarks/notes/intervals_of_one_coefficient.md)."""
_OF_FAR_ROWS = 2.0
"""By how many sampling errors clipping moves an estimate, times the part by which squared slopes exceed what right
probabilities lead to, if the column may reach twice the clip or farther. A standard deviation. Rows about which the model is
nearly sure, and wrong, have large slopes and little curvature (benchmarks/notes/intervals_of_one_coefficient.md)."""
_LEAST_ROWS = 0.02
"""The least sum of the curvatures of rows that is believed, over that of typical rows."""
_LEAST_CURVATURE = 4.0
"""The least curvature along a direction, in standard deviations of its noise, at which the last step is taken."""
_LARGEST_SECOND_ORDER = 1.5
"""The largest error of second order, in errors of first order, at which the last step is taken where it leads to about the
same."""
_LARGEST_LOSS = 1.4
"""The last step is taken unless the error after it is this many times the error before it."""
_MOST_SUPPOSED = 0.1
"""The largest part of the variance of an error that may rest on what is supposed without a word."""
_USUAL_EFFECT, _USUAL_INTERCEPT = 1.0, 3.0
"""What is supposed of coefficients where the noise hides them: standard deviations of scores that one spread of a column
makes, and of the intercept."""
LEAST_OPEN = 0.4
"""The least part of the variance of the outcome that usual columns leave open. Where it is r, coefficients are supposed to
be this over r times as large as usual."""
LARGE, _FARTHEST = 1.2, 0.4
"""A coefficient that moves scores by more than the first for one spread of its column is unknown if the steps to it moved it
by more than the second: the curvature changes along them, and they end too early."""
_LARGEST_SHIFT = 0.5
"""The largest mean square by which a step moves scores and leaves the curvature known. These four numbers were chosen on KDD
Cup 99 and made-up rows (benchmarks/notes/intervals_of_one_coefficient.md)."""
_BEND_OF_CURVATURE = 0.2
"""The relative change of a row's curvature for each unit of its score, for usual rows. That of the logistic loss is at most
1 (benchmarks/interest_of_tables.py)."""
_QUANTILE = 1.96
_N_POINTS = 20_000
_PRIMES = (3, 5, 7)
_Errors: TypeAlias = tuple[float, float, float, float, bool]
"""The estimate of one combination, the standard deviations of its errors, and whether the rows alone decide them.

The errors are due to sampling, to Gaussian parts of the noise, and to the noise on the sum of slopes."""


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
        """The combination (D,) of weights for rows with this constant of the intercept, which is 0 without one."""
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
    intercept : float
        The constant of the intercept; 0 without one.
    row_norm : float
        The largest L2 norm of a row without its constant; 0 where nothing is known.
    largest_slope, largest_curvature : float
        Of the loss of a row with its weight.
    n_rows : int
        The least number of rows.
    curvature_deviation, slope_deviation : float
        Standard deviations of the noise on an entry of the curvature off the diagonal, and of the slopes, where both are
        taken for the second time.
    sums_deviations : (float, float, float)
        Standard deviations of the noise on the sums of slopes, of curvatures and of squared slopes.
    is_laplace : bool
        Whether the noise on the sums has the Laplace law.
    design : SamplingDesign
        What is declared about the sample.
    """

    n_features: int
    intercept: float
    row_norm: float
    largest_slope: float
    largest_curvature: float
    n_rows: int
    curvature_deviation: float
    slope_deviation: float
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


@dataclass(frozen=True, slots=True)
class Near:
    """Weights near the minimiser, and how they err. All are for rows in the frame.

    Attributes
    ----------
    weights : (D,)
    pull : (D,)
        By how much the slopes moved the weights at which they were taken.
    shift : float
        The mean square by which scores of rows moved, each row weighted by its curvature.
    inverse : (D, D)
        What turned slopes into weights.
    sampling, noise : (D, D)
        Covariances of the errors of the weights. What is supposed of coefficients counts as noise.
    supposed : (D, D)
        The part of it that rests on what is supposed.
    """

    weights: Array
    pull: Array
    shift: float
    inverse: Array
    sampling: Array
    noise: Array
    supposed: Array

    @property
    def covariance(self) -> Array:
        """(D, D): of all errors."""
        return self.sampling + self.noise


def near_minimiser(
    facts: Facts, start: Array, curvature: Array, slopes: Array, deviations: tuple[float, float] | None = None
) -> Near:
    """One step of Newton's method in the frame, no longer than what the noise leaves of it.

    From noisy slopes g and curvature H at the weights `start`, the minimiser b obeys H b = H start - g, but for errors whose
    covariance is known. With what is supposed of coefficients the weights are those with the least expected squared error.

    Parameters
    ----------
    facts : Facts
    start, slopes : (D,)
        Weights for rows in the frame, and the slopes there.
    curvature : (D, D)
    deviations : (float, float) or None
        Standard deviations of the noise on entries of curvature and slopes; None stands for those of `facts`.
    """
    of_curvature, of_slopes = deviations or (facts.curvature_deviation, facts.slope_deviation)
    values, vectors = np.linalg.eigh(curvature)
    identity = np.eye(len(curvature))
    spread = (vectors * np.maximum(values, 0.0)) @ vectors.T * facts.steepness
    supposed = np.full(len(curvature), _USUAL_EFFECT**2)
    if facts.intercept > 0.0:
        supposed[-1] = _USUAL_INTERCEPT**2
    wanted, pull, inverse = curvature @ start - slopes, np.zeros(len(curvature)), identity
    for _ in range(3):
        # The noise E on the curvature adds E pull.
        noise = of_slopes**2 * identity + of_curvature**2 * (float(pull @ pull) * identity + np.outer(pull, pull))
        whole = noise + spread
        whole = whole + (1e-12 * float(np.trace(whole)) + float(np.finfo(float).tiny)) * identity
        weighted = np.asarray(np.linalg.solve(whole, curvature), dtype=np.float64).T
        inverse = np.asarray(np.linalg.solve(weighted @ curvature + np.diag(1.0 / supposed), weighted), dtype=np.float64)
        pull = inverse @ wanted - start
    missed = identity - inverse @ curvature
    shift = max(float(pull @ curvature @ pull), 0.0) / curvature_of_rows(facts, curvature)
    unknown = (missed * supposed) @ missed.T
    of_noise = inverse @ noise @ inverse.T + unknown
    return Near(start + pull, pull, shift, inverse, inverse @ spread @ inverse.T, of_noise, unknown)


def curvature_of_rows(facts: Facts, curvature: Array) -> float:
    """The sum of the curvatures of the rows' losses: as released, or that of typical rows without an intercept."""
    if not facts.intercept > 0.0:
        return facts.usual_curvature
    return max(float(curvature[-1, -1]) / CONSTANT**2, _LEAST_ROWS * facts.usual_curvature)


def in_frame(frame: Frame, weights: Array) -> Array:
    """(D,): weights for rows in the frame that give each row the score that `weights` give it as it is."""
    return np.asarray(np.linalg.solve(frame.matrix.T, weights), dtype=np.float64)


def directions_of(facts: Facts, combinations: tuple[Combination, ...], frame: Frame, near: Near, curvature: Array) -> Array:
    """(k, D): for rows in the frame, the direction of each combination in units of its clip.

    With C the covariance of the errors u of the weights, v minimises the expected square of (H v - a) . u over these errors
    and the noise on H: (H C H + s^2 (tr(C) I + C))^-1 H C a.
    """
    covariance = near.covariance
    noise = float(np.trace(covariance)) * np.eye(len(curvature)) + covariance
    pulled = curvature @ covariance
    whole = pulled @ curvature + facts.curvature_deviation**2 * noise
    # Without noise a combination that no row tells apart has the least direction.
    whole = whole + 1e-12 * float(np.trace(whole)) * np.eye(len(whole))
    inverse: Array = np.asarray(np.linalg.solve(whole, pulled), dtype=np.float64)
    deviations, scaled = deviations_of_clip(facts, curvature_of_rows(facts, curvature)), []
    for combination in combinations:
        direction = inverse @ _wanted(facts, combination, frame)
        clip = deviations * _spread_along(facts, direction, curvature)
        reach = _reach(facts, combination, frame, direction, curvature)
        # The rows of a level must not be clipped, however few they are.
        scaled.append(direction / (reach if combination.has_levels and math.isfinite(reach) else min(clip, reach)))
    return np.array(scaled)


def _reach(facts: Facts, combination: Combination, frame: Frame, direction: Array, curvature: Array) -> float:
    """How far rows can lie along a direction: what lies beyond is noise alone. The bound on rows says it, and the column."""
    along, d, reach = direction @ frame.matrix, facts.n_features, math.inf
    if facts.row_norm > 0.0:
        reach = facts.row_norm * float(np.linalg.norm(along[:d])) + facts.intercept * abs(float(along[d:].sum()))
    if combination.usual_spread:
        # The column is encoded from -1 to 1, or a level as 1 and 0.
        own = [place for place, _ in combination.factors if place >= 0]
        along, centre = direction[own] / np.array(frame.spreads)[own], np.array(frame.centre)[own]
        others = np.array(direction)
        others[own] = 0.0
        of_column = float(np.abs(along).max() + abs(along @ centre)) + OF_OTHERS * _spread_along(facts, others, curvature)
        reach = min(reach, of_column)
    return reach if reach > 0.0 else math.inf


def _spread_along(facts: Facts, direction: Array, curvature: Array) -> float:
    """The standard deviation of rows along a direction, each row weighted by its curvature, as far as it is believed."""
    least = _LEAST_SPREAD * float(np.linalg.norm(direction[: facts.n_features]))
    square = float(direction @ curvature @ direction) / curvature_of_rows(facts, curvature)
    return math.sqrt(max(square, least**2, float(np.finfo(float).tiny)))


def _wanted(facts: Facts, combination: Combination, frame: Frame) -> Array:
    """(D,): the combination, of weights for rows in the frame."""
    return frame.matrix @ combination.vector(facts.n_features, facts.intercept)


@dataclass(frozen=True, slots=True)
class InterestEvidence(CheckedEvidence):
    """What was released for coefficients of interest, and what is publicly known about the noise.

    Attributes
    ----------
    facts : Facts
    combinations : tuple of Combination
    weights : (D,)
        The released weights.
    frame : Frame
        Released middles and spreads of the columns.
    start : (D,)
        Weights for rows in the frame at which curvature and slopes were taken for the second time.
    curvature, slopes : (D, D) and (D,)
        What was released there, for rows in the frame.
    sums : (k, 3)
        For each combination the released sums of slopes, of curvatures and of squared slopes along its direction.
    risks : RisksEvidence or None
        What was released for differences of risks; None without them.
    """

    facts: Facts
    combinations: tuple[Combination, ...]
    weights: Array
    frame: Frame
    start: Array
    curvature: Array
    slopes: Array
    sums: Array
    risks: RisksEvidence | None = None
    _matrices: ClassVar[tuple[str, ...]] = ("curvature",)

    @property
    def near(self) -> Near:
        """The weights near which the sums were taken."""
        return near_minimiser(self.facts, self.start, self.curvature, self.slopes)

    def _fits(self) -> bool:
        facts, frame = self.facts, self.frame
        width = facts.n_features + (facts.intercept > 0.0)
        pairs = [pair for combination in self.combinations for pair in (*combination.factors, *combination.base)]
        places = [place for place, _ in pairs] + [place for combination in self.combinations for place in combination.own]
        numbers = [getattr(facts, field.name) for field in fields(facts) if field.name not in ("sums_deviations", "design")]
        numbers += facts.sums_deviations
        return (
            self.weights.shape == self.start.shape == self.slopes.shape == (width,)
            and len(frame.centre) == len(frame.spreads) == facts.n_features
            and self.curvature.shape == (width, width)
            and self.sums.shape == (len(self.combinations), 3)
            and len(self.combinations) >= 1
            and all(-1 <= place < facts.n_features for place in places)
            and (self.risks is None or self.risks.bends.shape == (len(self.combinations), width))
            and bool(np.isfinite([*numbers, *frame.centre, *frame.spreads, *(factor for _, factor in pairs)]).all())
            and min(numbers) >= 0.0
            and min(facts.largest_slope, facts.largest_curvature, facts.n_rows, frame.length, *frame.spreads) > 0.0
            and frame.intercept == facts.intercept
            and frame.constant == (CONSTANT if facts.intercept > 0.0 else 0.0)
        )

    def with_weights(self) -> Self:
        """The same evidence, whose design says that rows have weights of their own."""
        return replace(self, facts=replace(self.facts, design=replace(self.facts.design, has_weights=True)))

    def to_dict(self) -> dict[str, Any]:
        """A JSON form."""
        document = super(InterestEvidence, self).to_dict()  # slots make a new class, which `super()` does not know
        frame = document["frame"] | ({"length": None} if math.isinf(self.frame.length) else {})
        return document | {"frame": {name: frame[name] for name in ("centre", "spreads", "length")}}

    @classmethod
    def from_dict(cls, value: dict[str, Any]) -> Self:
        """Read the form written by `to_dict`."""
        frame, intercept = value["frame"], float(value["facts"]["intercept"])
        frame = frame | {"constant": CONSTANT if intercept > 0.0 else 0.0, "intercept": intercept}
        frame |= {"length": math.inf} if frame["length"] is None else {}
        return super(InterestEvidence, cls).from_dict(value | {"frame": frame})


def uncertainty_of_interest(evidence: InterestEvidence) -> Uncertainty:
    """Estimates of the combinations, without the pull of the ridge, and the distribution of their errors.

    Where the noise hides how a column differs from the others, the last step would lead nowhere. Then the estimate is that
    of the weights near which it would have been taken, and the interval covers their noise and what is supposed of
    coefficients. Where the columns nearly decide the outcome no such supposition holds, and a large coefficient may lie far
    from weights that a ridge held back: then the interval is infinite. `supposed_of` names both.
    """
    errors_of_all = _errors_of_all(evidence)
    estimates, sampling, gaussian, of_sums = (np.array(column) for column in list(zip(*errors_of_all, strict=True))[:4])
    facts = evidence.facts
    errors = np.zeros((0, len(errors_of_all)))
    if max(facts.curvature_deviation, facts.slope_deviation, *facts.sums_deviations) > 0.0:
        others = independent_points(is_laplace=False, place=0)[:, None]
        errors = others * gaussian + independent_points(is_laplace=facts.is_laplace, place=1)[:, None] * of_sums
    return Uncertainty(estimates, sampling, errors)


def supposed_of(evidence: InterestEvidence) -> tuple[str, ...]:
    """Names of the combinations whose intervals rest on a supposition or are infinite: the noise hides what the rows tell.

    An interval rests on a supposition if the last step was not taken, and a tenth of the variance before it or more is what
    was supposed.
    """
    errors_of_all = zip(evidence.combinations, _errors_of_all(evidence), strict=True)
    return tuple(one.name for one, (*_, is_known) in errors_of_all if not is_known)


def _errors_of_all(evidence: InterestEvidence) -> list[_Errors]:
    near = evidence.near
    directions = directions_of(evidence.facts, evidence.combinations, evidence.frame, near, evidence.curvature)
    times = _times_usual(evidence, near)
    more = (times**2 - 1.0) * near.supposed
    near = replace(near, noise=near.noise + more, supposed=near.supposed + more)
    is_usual = times <= 1.0 and near.shift <= _LARGEST_SHIFT
    errors = (_errors(evidence, near, place, direction) for place, direction in enumerate(directions))
    of_each = enumerate(zip(directions, errors, strict=True))
    return [_if_settled(evidence, near, place, direction, is_usual, own) for place, (direction, own) in of_each]


def _times_usual(evidence: InterestEvidence, near: Near) -> float:
    """How many times as large as usual coefficients are supposed to be: once, unless the columns nearly decide the outcome.

    Of outcomes with the mean q, right probabilities p leave the part (mean of p (1 - p)) / (q (1 - q)) of the variance open.
    The curvature tells the mean. For columns that are normal and independent in the frame, the weights tell q.
    """
    facts, curvature, times = evidence.facts, evidence.curvature, 1.0
    rows = curvature_of_rows(facts, curvature)
    for weights in (evidence.start, near.weights):
        score = float(weights[-1]) * CONSTANT if facts.intercept > 0.0 else 0.0
        spread = 1.0 + math.pi / 8.0 * float(np.sum(weights[: facts.n_features] ** 2))
        varies = 8.0 * facts.usual_curvature * float(expit(score / math.sqrt(spread)) * expit(-score / math.sqrt(spread)))
        times = max(times, LEAST_OPEN * varies / rows)
    return times


def _if_settled(
    evidence: InterestEvidence, near: Near, place: int, direction: Array, is_usual: bool, errors: _Errors
) -> _Errors:
    """The errors of an estimate, with what the steps to a large one leave of it; infinite if the rows do not decide it.

    What they leave is of the order of half the square of what they moved, in scores for one spread of the column.
    """
    estimate, sampling, others, of_sums, is_known = errors
    wanted, bend = _wanted(evidence.facts, evidence.combinations[place], evidence.frame), float(evidence.sums[place, 1])
    size = float(np.linalg.norm(wanted[: evidence.facts.n_features])) or math.inf
    moved = abs(estimate - float(wanted @ evidence.start)) / size
    if abs(estimate) / size > LARGE:
        others, is_known = math.hypot(others, 0.5 * moved**2 * size), is_known and moved <= _FARTHEST
        is_usual = is_usual and moved <= _FARTHEST
    errors = estimate, sampling, others, of_sums, is_known
    if is_usual:
        return errors
    reach = float(wanted @ direction)
    if is_known and near.shift <= _LARGEST_SHIFT and reach > 0.0:
        alone = replace(near, sampling=np.zeros_like(near.sampling), noise=near.supposed)
        of_supposed = reach * _second_order(evidence.facts, alone, evidence.curvature, wanted, direction)
        if of_supposed <= math.sqrt(_MOST_SUPPOSED) * math.hypot(sampling, others, of_sums) * bend:
            return errors
    return estimate, math.inf, 0.0, 0.0, False


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


def _errors(evidence: InterestEvidence, near: Near, place: int, direction: Array) -> _Errors:
    """The errors of one combination, if the curvature is that near the minimiser."""
    facts, curvature = evidence.facts, evidence.curvature
    wanted = _wanted(facts, evidence.combinations[place], evidence.frame)
    pull, bend, square = evidence.sums[place].tolist()
    of_pull, of_bend, of_square = facts.sums_deviations
    estimate, size = float(wanted @ near.weights), float(np.linalg.norm(wanted[: facts.n_features]))
    sampling_of_near = math.sqrt(max(float(wanted @ near.sampling @ wanted), 0.0))
    # The curvature was taken before the last pull, and what it changes along the pull meets errors of scores.
    rows = curvature_of_rows(facts, curvature)
    of_scores = max(float(np.sum(near.covariance * curvature)), 0.0) / rows
    left = _BEND_OF_CURVATURE * math.sqrt(near.shift * (near.shift**2 + of_scores) * rows)
    supposed = float(wanted @ near.supposed @ wanted)
    is_known = supposed <= _MOST_SUPPOSED * float(wanted @ near.covariance @ wanted)
    reach, kept = float(wanted @ direction), float(direction @ curvature @ direction)
    per_pull = reach / bend if reach > 0.0 and bend > max(_LEAST_CURVATURE * of_bend, 0.0) else 0.0
    change = per_pull * (_bias_of_step(facts, near, wanted, direction) - pull) if per_pull > 0.0 else 0.0
    # What was supposed is too little for a coefficient that turns out larger.
    larger = supposed * max(0.0, ((estimate + change) / (_USUAL_EFFECT * (size or math.inf))) ** 2 - 1.0)
    noise = max(float(wanted @ near.noise @ wanted) + larger, 0.0)
    of_near = math.hypot(math.sqrt(noise), _of_long_rows(evidence, place, direction, size))
    without = estimate, sampling_of_near, math.hypot(of_near, left * sampling_of_near), 0.0
    if not per_pull > 0.0:
        return *without, is_known
    doubt = of_bend / bend
    sampling = per_pull * math.sqrt(facts.design.variance_factor * max(square, of_square, float(np.finfo(float).tiny)))
    expected = facts.steepness * bend / facts.design.variance_factor
    # Without what the noise alone makes of it.
    excess = math.sqrt(max(max(square - expected, 0.0) ** 2 - of_square**2, 0.0)) / expected
    of_far = _OF_FAR_ROWS * sampling * min(1.0, excess) * _beyond_clip(evidence, place, direction)
    of_sums = per_pull * of_pull
    second = per_pull * _second_order(facts, near, curvature, wanted, direction)
    # Where clipping takes a part of the curvature along a direction, the coefficient of the rows as they are may differ.
    spread = facts.curvature_deviation * math.sqrt(2.0) * float(direction @ direction)
    lost = max(0.0, 1.0 - (bend + 2.0 * math.hypot(of_bend, spread)) / kept) if kept > 0.0 else 0.0
    # The size of an error that is divided by a noisy number is enlarged as in `intervals._inflation_factors`.
    factor = 1.0 + 0.5 * (_QUANTILE**2 + 1.0) * doubt**2
    bent = left * per_pull * math.sqrt(max(kept, 0.0))
    # The curvature changes along the step: for a logistic loss at most in proportion to the step in scores.
    turned = 0.5 * change * abs(change) / reach * math.sqrt(max(kept, 0.0) / rows)
    others = math.hypot(factor * second, factor * change * doubt, factor * bent, lost * (estimate + change), of_far, turned)
    whole = math.hypot(factor * sampling, others, factor * of_sums)
    # What both estimates differ by beyond the noise is a bias of the nearer one: long rows count less in it.
    apart = math.sqrt(max(change**2 - whole**2, 0.0))
    without = estimate, sampling_of_near, math.hypot(without[2], apart), 0.0
    is_better = second <= _LARGEST_SECOND_ORDER * math.hypot(sampling, of_sums) or apart > 0.0
    if not (is_better and whole <= _LARGEST_LOSS * math.hypot(*without[1:3])):
        return *without, is_known
    # The noise of one estimate is independent of that of the other: part of the step leaves the least of both. Sampling
    # moves both alike, so what they differ by beyond their noise alone is a bias of the nearer one here.
    noise, of_sums = math.hypot(factor * second, factor * change * doubt, of_far, turned), factor * of_sums
    of_step = math.hypot(noise, of_sums)
    of_near = math.hypot(of_near, math.sqrt(max(change**2 - of_step**2 - of_near**2, 0.0)))
    part = part_of_step(of_step, of_near)
    of_sampling = part * factor * sampling + (1.0 - part) * sampling_of_near
    others = math.hypot(part * noise, (1.0 - part) * of_near, factor * bent, lost * (estimate + change))
    return estimate + part * change, of_sampling, others, part * of_sums, True


def _of_long_rows(evidence: InterestEvidence, place: int, direction: Array, size: float) -> float:
    """The standard deviation that is supposed of what weights err by because long rows count less."""
    bend, kept = float(evidence.sums[place, 1]), float(direction @ evidence.curvature @ direction)
    if math.isinf(evidence.frame.length) or not bend > kept > 0.0:
        return 0.0
    # What long rows lost in the frame is the difference of the curvature there and that of rows as they are.
    return _OF_LONG_ROWS * (1.0 - kept / bend) * size


def _beyond_clip(evidence: InterestEvidence, place: int, direction: Array) -> float:
    """How far rows may lie beyond the clip, in clips and at most 1. Wide clips cut off less, by their inverse square."""
    facts, curvature, combination = evidence.facts, evidence.curvature, evidence.combinations[place]
    reach = _reach(facts, combination, evidence.frame, direction, curvature)
    clip = deviations_of_clip(facts, curvature_of_rows(facts, curvature))
    return min(1.0, max(0.0, reach - 1.0)) * (FEWEST_DEVIATIONS / clip) ** 2


def part_of_step(of_step: float, of_near: float) -> float:
    """The part of the last step that leaves the least of two independent errors, of given standard deviations."""
    whole = math.hypot(of_step, of_near)
    return (of_near / whole) ** 2 if whole > 0.0 else 1.0


def _bias_of_step(facts: Facts, near: Near, wanted: Array, direction: Array) -> float:
    """What the noise on the curvature takes on average from the last step: it has a part in v and in the weights alike.

    The noise E, with entries of deviation s, adds E v to H v, and -M E p to the weights, p the pull and M `Near.inverse`.
    What is lost is E v . B E p with B = (I - v a^T / (a . v)) M. Its mean is s^2 (tr(B) v . p + (B v) . p).
    """
    rest = near.inverse - np.outer(direction, wanted @ near.inverse) / float(wanted @ direction)
    along = float(np.trace(rest)) * float(direction @ near.pull) + float((rest @ direction) @ near.pull)
    return facts.curvature_deviation**2 * along


def _second_order(facts: Facts, near: Near, curvature: Array, wanted: Array, direction: Array) -> float:
    """Standard deviation of (H v) . u, u the errors of the weights but along the combination, and H without noise.

    The noise E on H gives E v the covariance s^2 (|v|^2 I + v v^T), and what is left of H v with the noisy H is known.
    """
    apart = np.eye(len(direction)) - np.outer(direction, wanted) / float(wanted @ direction)
    spread = apart @ near.covariance @ apart.T
    of_noise = float(direction @ direction) * float(np.trace(spread)) + float(direction @ spread @ direction)
    left = curvature @ direction
    return math.sqrt(max(facts.curvature_deviation**2 * of_noise + float(left @ spread @ left), 0.0))


# Released moments of encoded columns, with less noise: their zeros and sums are public.
#
# The columns that encode a category or a curve are mostly 0, and few rows meet many of them. In such directions the noise
# on the moments is larger than the moments, and intervals from them as they are would be far too short:
# `denoised_curvature` supposes that directions that it cannot tell apart are alike. But much is known of such moments
# before any row is read. Let M be a sum over rows of u x x^T, u not negative, as both released matrices are.
#
# - Two levels of a category never meet in a row, and a hat meets its neighbours alone, so all other products within a group
#   of encoded columns are 0. Products of hats and of levels are not negative.
# - Where the encoded columns of a group add up to 1 in each row, their products with one column add up to that column's
#   product with 1. So each column's sum is released twice: beside the intercept, and within its group.
# - Between two groups, products are near those that independent columns would have, the outer product of the two groups'
#   sums divided by the sum of u. What is left is shrunk towards 0 by the positive-part rule of James and Stein (1961),
#   which has a smaller expected squared error than no shrinking whatever the truth, for three or more numbers.
#
# Where a model's probabilities are right, the moments of slopes are those of curvatures (the information equality; of
# squared and of robust losses, a multiple of them). So the moments of slopes, whose noise is larger, are shrunk towards a
# multiple of those of curvatures in the same way, as far as they do not say otherwise.
#
# Where so few rows meet a level or a hat that the noise exceeds their part, nothing but the ridge is known to hold its
# weight. So the curvature of each column with itself is lowered by half a standard deviation of its noise, which makes
# intervals wider there and hardly anywhere else. All of this is post-processing.

_PART_OF_NOISE_THAT_IS_LEFT = 0.22
"""How much of the noise intervals still correct for, of what the shrinking leaves. With all of it, intervals of rare levels
and hats are too short, because `denoised_curvature` raises the curvature of directions that no row meets."""
_LOWERED_BY = 0.5
"""The curvature of a column with itself is lowered by so many standard deviations of its noise. Both numbers were chosen on
other populations than that of benchmarks/effect_bands.py, which confirmed them."""


@dataclass(frozen=True, slots=True, eq=False)
class _Group:
    """What is known of one group of encoded columns.

    Attributes
    ----------
    place : where its columns are
    meets : (size, size), whether two of its columns may both differ from 0 in one row
    adds_up : whether its columns add up to 1 in every row
    not_negative : whether no column has negative entries
    """

    place: slice
    meets: NDArray[np.bool_]
    adds_up: bool
    not_negative: bool


def with_known_zeros(evidence: WeightsEvidence, encoder: Encoder) -> WeightsEvidence:
    """The same evidence with less noise in its moments; unchanged if it has none, or several scores bend together."""
    if not isinstance(evidence, Evidence) or not evidence.separable:
        return evidence
    described = zip(encoder.groups, encoder.factors, encoder.row_bound.scales, strict=True)
    groups = [_group(group.place, factors, scale) for group, factors, scale in described]
    curvature, slope = evidence.curvature.copy(), evidence.slope.copy()
    of_curvature, of_slope = evidence.curvature_deviation, evidence.slope_deviation
    left = np.zeros((len(evidence.blocks), 2))
    for place, block in enumerate(evidence.blocks):
        own = (block, block)
        noisy = evidence.curvature[own], evidence.slope[own]
        bent, left[place, 0] = _estimate(noisy[0], of_curvature, evidence.intercept, groups)
        estimate, left[place, 1] = _estimate(noisy[1], of_slope, evidence.intercept, groups)
        deviations = left[place, 0] * of_curvature, of_slope
        # The upper triangle, without those products within a group that are 0 in every row.
        may_differ = np.ones(bent.shape, dtype=bool)
        for group in groups:
            may_differ[group.place, group.place] = group.meets
        multiple, share = _likeness(noisy[1], bent, deviations, np.triu(may_differ))
        slope[own] = multiple * bent + share * (estimate - multiple * bent)
        left[place, 1] *= share
        curvature[own], _ = _estimate(noisy[0], of_curvature, evidence.intercept, groups, lowered_by=_LOWERED_BY)
    shares = _PART_OF_NOISE_THAT_IS_LEFT * left.max(axis=0)
    of_curvature, of_slope = float(of_curvature * shares[0]), float(of_slope * shares[1])
    return replace(evidence, curvature=curvature, slope=slope, curvature_deviation=of_curvature, slope_deviation=of_slope)


def _likeness(
    slope: Array, curvature: Array, deviations: tuple[float, float], where: NDArray[np.bool_]
) -> tuple[float, float]:
    """The multiple of the curvature that is nearest to the slopes, and the share of what is left that is not noise.

    `deviations` are those of the noise on entries of the curvature and of the slopes off the diagonal.
    """
    # The noise on the diagonal is larger by the root of 2.
    equal = np.where(np.eye(len(slope), dtype=bool), 1.0 / np.sqrt(2.0), 1.0)
    ours, theirs = (slope * equal)[where], (curvature * equal)[where]
    size = float(theirs @ theirs)
    if deviations[1] == 0.0 or size == 0.0:
        return 0.0, 1.0
    multiple = max(0.0, float(ours @ theirs) / size)
    rest = ours - multiple * theirs
    noise = max(0, rest.size - 2) * (deviations[1] ** 2 + (multiple * deviations[0]) ** 2)
    return multiple, max(0.0, 1.0 - noise / max(float(rest @ rest), np.finfo(float).tiny))


def _group(place: slice, factors: tuple[ColumnEncoding, ...], scale: float) -> _Group:
    known = [_of_column(place, factor) for factor in factors]
    meets, not_negative = reduce(np.kron, (margin.meets for margin in known)), all(margin.not_negative for margin in known)
    return _Group(place, meets, scale == 1.0 and all(margin.adds_up for margin in known), not_negative)


def _of_column(place: slice, encoding: ColumnEncoding) -> _Group:
    size = len(encoding.names)
    meets = np.eye(size, dtype=bool)
    if not encoding.is_number:
        return _Group(place, meets, encoding.linked, not encoding.single.size)
    if not encoding.column.knots:
        return _Group(place, meets, False, False)
    n_hats = size - bool(encoding.column.missing)
    neighbours = np.arange(n_hats - 1)
    meets[neighbours, neighbours + 1] = meets[neighbours + 1, neighbours] = True
    return _Group(place, meets, True, True)


def _estimate(
    noisy: Array, deviation: float, intercept: float, groups: list[_Group], lowered_by: float = 0.0
) -> tuple[Array, float]:
    """The moments of one score, and the share of the noise that is left in them.

    The moments of a column with itself are lowered by `lowered_by` standard deviations of their noise.
    """
    if deviation == 0.0:
        return noisy, 1.0
    estimate = np.zeros_like(noisy)
    sums = np.zeros(len(noisy))
    for group in groups:
        own = np.where(group.meets, noisy[group.place, group.place], 0.0)
        lowered = np.diagonal(own) - lowered_by * np.sqrt(2.0) * deviation
        if intercept > 0.0:
            sums[group.place] = noisy[group.place, -1] / intercept
        if group.adds_up and intercept > 0.0:
            # Both are the column's sum; each is weighted by the inverse of its variance.
            twice, beside = 1.0 + group.meets.sum(axis=1), 1.0 / intercept**2
            sums[group.place] = (sums[group.place] / beside + own.sum(axis=1) / twice) / (1.0 / beside + 1.0 / twice)
            if not (group.meets & ~np.eye(len(own), dtype=bool)).any():
                lowered = sums[group.place] - lowered_by * deviation / np.sqrt(1.0 / beside + 1.0 / twice)
        if group.not_negative:
            own, sums[group.place] = np.maximum(own, 0.0), np.maximum(sums[group.place], 0.0)
        np.fill_diagonal(own, np.maximum(lowered, 0.0))
        estimate[group.place, group.place] = own
    total = noisy[-1, -1] / intercept**2 if intercept > 0.0 else 0.0
    kept = n_entries = 0.0
    for first, second in combinations(groups, 2):
        alone = np.outer(sums[first.place], sums[second.place]) / total if total > 0.0 else 0.0
        rest = noisy[first.place, second.place] - alone
        noise = max(0, rest.size - 2) * deviation**2
        share = max(0.0, 1.0 - noise / max(float(np.sum(rest**2)), np.finfo(float).tiny))
        estimate[first.place, second.place] = alone + share * rest
        estimate[second.place, first.place] = estimate[first.place, second.place].T
        kept, n_entries = kept + share**2 * rest.size, n_entries + rest.size
    if intercept > 0.0:
        estimate[:-1, -1] = estimate[-1, :-1] = intercept * sums[:-1]
        estimate[-1, -1] = noisy[-1, -1]
    return estimate, float(np.sqrt(kept / n_entries)) if n_entries else 1.0


# Differences of risks, standardised over the rows: how much a named change moves the mean probability, and how sure.
#
# For a level of a category each row is given this level and then the reference, and the two probabilities are compared; for
# a number each row is compared with itself one unit higher. The mean over the rows is the average marginal effect of a
# discrete change. It depends on the coefficient of interest above all, whose interval is known, and on the other weights as
# little as the slope p (1 - p) changes with the step. Errors follow by the delta method. All of it is post-processing.
#
# Source: N. Muller, R. MacLehose, *Estimating predicted probabilities from logistic regression*, International Journal of
# Epidemiology 43(3), 2014 (marginal standardisation, delta method).

_LEAST_SPREAD_KEPT = 0.25
"""The least part of the variance of scores that is not taken for noise."""


def points_of_risks(evidence: InterestEvidence) -> tuple[Array, Array]:
    """Weights (k, D) that give every row its score without the change, and steps (k,) of the score for the changes.

    The steps are the estimates of the coefficients of interest. The noise in the other weights spreads scores, which would
    draw mean probabilities towards one half. So they are drawn together about their mean, until their variance is that of
    scores without the noise, as far as the released curvature tells.
    """
    steps = np.clip(uncertainty_of_interest(replace(evidence, risks=None)).estimates, -LARGEST_STEP, LARGEST_STEP)
    matrix, near = evidence.frame.matrix, evidence.near
    weights, errors = matrix.T @ near.weights, matrix.T @ near.covariance @ matrix
    inverse = np.linalg.inv(matrix)
    curvature = inverse @ evidence.curvature @ inverse.T
    return np.array([_point(evidence.facts, one, weights, errors, curvature) for one in evidence.combinations]), steps


def _point(facts: Facts, combination: Combination, weights: Array, errors: Array, curvature: Array) -> Array:
    """The weights (D,) of one change, like all else for rows as they are."""
    kept = np.ones(len(weights))
    kept[list(combination.own)] = 0.0
    rest = kept * weights
    mass = float(curvature[-1, -1])
    if mass > 0.0:
        # Means over rows that count as much as they bend the objective, as the released curvature has them.
        means = curvature[-1, :-1] / mass
        centred = curvature[:-1, :-1] - mass * np.outer(means, means)
        own = kept[:-1, None] * errors[:-1, :-1] * kept[:-1]
        spread = float(rest[:-1] @ centred @ rest[:-1])
        of_noise = max(float(np.sum(own * centred)), 0.0)
        part = math.sqrt(max(1.0 - of_noise / spread, _LEAST_SPREAD_KEPT)) if spread > 0.0 else 1.0
        rest[-1] += (1.0 - part) * float(rest[:-1] @ means)
        rest[:-1] *= part
    # What the reference level adds to the score of every row.
    rest[-1] += sum(factor * float(weights[place]) for place, factor in combination.base) / facts.intercept
    return rest


def uncertainty_of_risks(evidence: InterestEvidence) -> Uncertainty:
    """Differences of risks (k,) and the distribution of their errors."""
    assert evidence.risks is not None  # noqa: S101 - the caller asks
    facts, risks = evidence.facts, evidence.risks
    coefficients = uncertainty_of_interest(evidence)
    matrix, near = evidence.frame.matrix, evidence.near
    sampling, noise = (matrix.T @ covariance @ matrix for covariance in (near.sampling, near.noise))
    gradients = np.array([_gradient(facts, *one) for one in zip(evidence.combinations, risks.bends, strict=True)])
    wanted = np.array([one.vector(facts.n_features, facts.intercept) for one in evidence.combinations])
    rates = np.clip(risks.rates, 0.0, 0.25)
    # Rows differ: a difference lies between 0 and its largest value, which bounds its variance by its mean.
    largest = largest_difference(risks.steps)
    sizes = np.clip(np.abs(risks.differences), 0.0, largest)
    among_rows = facts.design.variance_factor * sizes * (largest - sizes) / risks.n_rows
    together = 2.0 * rates * np.sum((wanted @ sampling) * gradients, axis=1)
    of_others = np.sum((gradients @ sampling) * gradients, axis=1)
    own = (np.maximum(rates, np.finfo(float).tiny) * coefficients.sampling_error) ** 2
    from_rows = np.sqrt(np.maximum(own + together + of_others, 0.25 * own) + among_rows)
    of_noise = np.sum((gradients @ noise) * gradients, axis=1) + (risks.count_deviation * risks.differences) ** 2
    errors = np.zeros((0, len(rates)))
    if len(coefficients.privacy_errors):
        third = independent_points(is_laplace=risks.is_laplace, place=2)[:, None]
        others = independent_points(is_laplace=False, place=3)[:, None]
        errors = rates * coefficients.privacy_errors + third * risks.deviations[0]
        errors = errors + others * np.sqrt(of_noise)
    return Uncertainty(risks.differences, from_rows, errors)


def _gradient(facts: Facts, combination: Combination, bends: Array) -> Array:
    """(D,): how the difference depends on the other weights, for rows as they are."""
    gradient: Array = np.array(bends)
    gradient[list(combination.own)] = 0.0
    for place, factor in combination.base:
        gradient[place] = factor * bends[-1] / facts.intercept
    return gradient
