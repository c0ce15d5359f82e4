"""How far released weights may lie from those of the population: intervals and probabilities, made from the release only.

The method is that of Y. Wang, D. Kifer, J. Lee, *Differentially private confidence intervals for empirical risk
minimization*, Journal of Privacy and Confidentiality 9(1), 2019. Two things are different here: both matrices are released
with one draw of noise, and the bias that noise causes in the inverse of the first matrix is corrected. In the sum form, with
n rows,

    w - w0 = -H^-1 (G + b),    G ~ N(0, S),    b the noise in the objective, independent of G,

where H is the curvature of the objective and S the covariance of the sum of the rows' gradients, both at the weights w0 of
the population with the same ridge. Everything here is post-processing and costs no privacy. It does not depend on the loss:
every loss with slopes in the scores of a row has such moments.

With three classes or more there are two cases. If the loss is a sum over scores, H is 0 between two scores, so each score is
treated by itself. Otherwise the loss depends only on differences of scores. Then the population's weights add up to 0 over
classes with any ridge, and in the directions that change all classes by the same amount H is only the ridge, or 0 without
one. These directions are left out: estimates and errors are those of the weights minus their mean over classes, and the
target without a ridge is the minimiser whose mean over classes is 0.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property, lru_cache, partial
from typing import Any, ClassVar, Literal, Self, TypeAlias, cast, get_args

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import block_diag
from scipy.special import gammaincinv, ndtr, ndtri

from confide.array_types import Array, Indices
from confide.blocks import as_json
from confide.errors import ParameterError, as_float, wording
from confide.inference.sampling_design import INDEPENDENT, SamplingDesign, read_fields, written_fields
from confide.known_words import suggest_keywords_of
from confide.parameters import checked_choice
from confide.privacy.bundles import Bundles
from confide.privacy.mechanism import Noise, Plan
from confide.privacy.moments import Moments, directions_of
from confide.privacy.noise import Entropy
from confide.privacy.noisy_sum import SumPlan
from confide.privacy.shapes import Ball, Cylinder, Groups, Linked, Shape

# The data for intervals: released numbers and public facts, as they are kept in a model file.


class CheckedEvidence(ABC):
    """Data for intervals that are checked when they are read from a file."""

    __slots__ = ()
    weights: Array
    _matrices: ClassVar[tuple[str, ...]] = ()
    """Symmetric matrices, of which files hold the upper triangles, block by block and row by row."""

    @property
    def blocks(self) -> list[slice]:
        """Ranges of the rows of the matrices that were released together: one, unless scores are released by themselves."""
        return [slice(0, self.weights.size)]

    def to_dict(self) -> dict[str, Any]:
        """A JSON form."""
        written = written_fields(self)
        for name in self._matrices:
            matrix = getattr(self, name)
            written[name] = [number for block in self.blocks for number in triangle_of(matrix[block, block])]
        return written

    @classmethod
    def from_dict(cls, value: dict[str, Any]) -> Self:
        """Read the form written by `to_dict`."""
        # The norm of noise on many more groups than there are weights would fill the memory.
        if any(sum(part["sizes"]) > len(value["weights"]) for part in value.get("noises", ())):
            raise ParameterError(_NO_FIT)
        evidence = cls(**read_fields(cls, value))
        for name in cls._matrices:
            widths = [block.stop - block.start for block in evidence.blocks]
            parts = np.split(getattr(evidence, name), len(widths))
            square = block_diag(*(symmetric_of(part, width) for part, width in zip(parts, widths, strict=True)))
            evidence = replace(evidence, **{name: square})  # type: ignore[type-var]
        return evidence.checked()

    def checked(self) -> Self:
        """The same evidence.

        Raises
        ------
        ParameterError
            If its parts cannot belong together, as in a file that was changed.
        """
        parts = [getattr(self, field.name) for field in fields(self)]  # type: ignore[arg-type]
        are_finite = all(np.isfinite(part).all() for part in parts if isinstance(part, float | np.ndarray))
        are_symmetric = all(np.array_equal(matrix, matrix.T) for matrix in map(partial(getattr, self), self._matrices))
        if not (are_finite and are_symmetric and self._fits()):
            raise ParameterError(_NO_FIT)
        return self

    @abstractmethod
    def _fits(self) -> bool:
        """Whether the shapes of the arrays agree, and a fit could have released these finite numbers."""


class WeightsEvidence(CheckedEvidence):
    """Released weights with what shows how they err: their moments, or the sums from which they were made."""

    __slots__ = ()
    intercept: float
    l2: float
    prior: Array | None
    design: SamplingDesign
    shift: float
    noises: tuple[WeightNoise, ...]
    n_outputs: int
    separable: bool
    equal_variance: ClassVar[bool]
    """Whether residuals are taken to have the same variance in all rows."""

    @property
    def centre(self) -> Array:
        """(D,): the weights towards which the ridge pulled."""
        return np.zeros_like(self.weights) if self.prior is None else self.prior

    def of_rows(self, shift: float, *, has_weights: bool) -> Self:
        """The same with the number that was subtracted from targets, and for rows that had weights of their own or none."""
        design = replace(self.design, has_weights=True) if has_weights else self.design
        return replace(self, shift=shift, design=design)  # type: ignore[type-var]

    def of_weights(self, combinations: Array) -> Array:
        """Combinations (q, D) of the weights, from those of coefficients with the intercept last, if there is one."""
        in_units = combinations.copy()
        if self.intercept > 0.0:
            in_units[:, -1] *= self.intercept
        return in_units

    @abstractmethod
    def uncertainty(self, target: str = "regularised") -> Uncertainty:
        """The distribution of the error of released coefficients.

        Parameters
        ----------
        target : "regularised" for the population's minimiser with the same ridge, "unregularised" for the one without a
            ridge, which is not available after output perturbation
        """

    @abstractmethod
    def joint_uncertainty(self, combinations: Array, target: str = "regularised") -> list[JointUncertainty]:
        """The distribution of the errors of linear combinations of the coefficients, for each score.

        Parameters
        ----------
        combinations : (q, D), each row a combination of the coefficients of one score, in the units of `coef_` and
            `intercept_`, the intercept last if there is one. The same combinations are taken of each score
        target : as for `uncertainty`

        Returns
        -------
        list of JointUncertainty
            One for each score. A score that the noise hides has infinite errors.
        """


_NO_FIT = "the data for intervals do not fit each other: the file is damaged or was changed."


@dataclass(frozen=True, slots=True)
class WeightNoise(Noise):
    """Noise of a known distribution that is part of the error of the weights, as files hold it."""

    def to_dict(self) -> dict[str, Any]:
        """A JSON form."""
        shape = self.shape
        of_shape = {"shape": shape.name} | as_json(shape, "sizes scales linked")
        bundles = as_json(shape, "bundles shares") if isinstance(shape, Bundles) else {}
        return as_json(self, "law scale") | of_shape | {"in_objective": self.in_objective} | bundles

    @classmethod
    def from_dict(cls, value: dict[str, Any]) -> Self:
        """Read the form written by `to_dict`."""
        unknown = ParameterError("the file describes noise of a kind that this version of confide does not know.")
        known = {"law", "scale", "shape", "sizes", "scales", "linked", "in_objective"}
        known |= {"bundles", "shares"} if value.get("shape") == Bundles.name else set()
        if set(value) != known or value["law"] not in ("laplace", "gaussian") or not isinstance(value["in_objective"], bool):
            raise unknown
        sizes, scales = tuple(map(int, value["sizes"])), tuple(map(float, value["scales"]))
        linked, shares = tuple(map(bool, value["linked"])), tuple(map(int, value.get("shares", ())))
        bundles = tuple(tuple(map(int, bundle)) for bundle in value.get("bundles", ()))
        shapes: dict[str, Callable[[], Shape]] = {
            "ball": lambda: Ball(*sizes, *scales),
            "cylinder": lambda: Cylinder(sizes[0], *scales),
            "groups": lambda: Groups(sizes, scales),
            Bundles.name: lambda: Bundles(sizes, scales, linked, bundles, shares),
        }
        shape = shapes.get(value["shape"], lambda: Linked(sizes, scales, linked))()
        is_positive = all(math.isfinite(x) and x > 0.0 for x in (value["scale"], *scales, *sizes))
        if shape.name != value["shape"] or not is_positive:
            raise unknown
        return cls(shape, value["law"], float(value["scale"]), value["in_objective"])


@dataclass(frozen=True, slots=True)
class Evidence(WeightsEvidence):
    """Released weights and moments, and what is publicly known about their noise.

    Attributes
    ----------
    weights : (D,)
        With several scores, the weights of each score, one score after the other.
    intercept : float
        The constant column for the intercept, whose weight is the last of each score. 0 if there is no intercept.
    l2 : float
        Ridge of the sum form.
    n_rows_high : int
        Largest possible number of rows.
    curvature, slope : (D, D)
        Released second moments of curvature and slope. For several scores see `separable`.
    curvature_deviation : float
        Standard deviation of the noise on an entry of the curvature off the diagonal.
    slope_deviation : float
        The same for the slope.
    noises : tuple of WeightNoise
        The noise in the weights.
    n_outputs : int
        Number of scores: 1 for two classes, otherwise one for each class.
    prior : (D,) or None
        Public weights towards which the ridge pulled; None for 0.
    separable : bool
        Whether the loss is a sum over scores. If so, curvature and slope are known for each score by itself, and are 0
        between two scores. Otherwise the loss depends only on differences of scores, and they are known in the directions
        of these differences, see `confide.privacy.moments.directions_of`.
    design : SamplingDesign
        What is declared about the sample.
    shift : float
        The public number that was subtracted from all targets. It is a part of the intercept and of no weight here.
    """

    weights: Array
    intercept: float
    l2: float
    n_rows_high: int
    curvature: Array
    slope: Array
    curvature_deviation: float
    slope_deviation: float
    noises: tuple[WeightNoise, ...]
    n_outputs: int = 1
    separable: bool = True
    prior: Array | None = None
    design: SamplingDesign = INDEPENDENT
    shift: float = 0.0
    equal_variance: ClassVar[bool] = False
    _matrices: ClassVar[tuple[str, ...]] = ("curvature", "slope")

    def _fits(self) -> bool:
        size = self.weights.size
        width = size if self.separable else size - size // max(1, self.n_outputs)
        return (
            self.n_outputs >= 1
            and size % self.n_outputs == 0
            and self.weights.shape == (size,)
            and self.curvature.shape == self.slope.shape == (width, width)
            and all(part.shape.dimension == size for part in self.noises)
            and self.centre.shape == (size,)
            and min(self.intercept, self.curvature_deviation, self.slope_deviation) >= 0.0
            and self.l2 > 0.0
            and self.n_rows_high >= 1
            and (not self.shift or (self.intercept > 0.0 and self.n_outputs == 1))
        )

    @classmethod
    def of(cls, plan: Plan, weights: Array, moments: SumPlan[Moments], released: tuple[Array, Array]) -> Self:
        """The evidence of a release: the weights (D,) that were released by `plan`, and the moments at these weights."""
        curvature, slope = released
        noise, noises = plan.noise, list[WeightNoise]()
        if noise is not None:
            noises.append(WeightNoise(noise.shape, noise.law, noise.scale, noise.in_objective))
        grid: Any = plan.lattice
        if grid is not None:
            # Treated as the continuous noise of the same size, with independent entries.
            size, is_laplace = grid.dimension, grid.law == "laplace"
            shape: Shape = Groups((size,), (grid.scale,)) if is_laplace else Ball(size, grid.norm / math.sqrt(size))
            noises.append(WeightNoise(shape, grid.law, 1.0))
        return cls(
            weights=weights,
            intercept=plan.problem.intercept,
            l2=plan.l2,
            n_rows_high=plan.problem.n_rows_high,
            curvature=curvature,
            slope=slope,
            curvature_deviation=moments.deviation * moments.query.unit_of_curvature / math.sqrt(2.0),
            slope_deviation=moments.deviation * moments.query.unit_of_slope / math.sqrt(2.0),
            noises=tuple(noises),
            n_outputs=plan.problem.loss.constants.n_outputs,
            separable=plan.problem.loss.constants.separable,
            prior=np.array(plan.problem.prior) if plan.problem.prior else None,
            design=INDEPENDENT if plan.intervals is None else plan.intervals.design,
        )

    @property
    def blocks(self) -> list[slice]:
        of_score = self.weights.size // max(1, self.n_outputs)
        if self.separable:
            return [slice(start, start + of_score) for start in range(0, self.weights.size, of_score)]
        return [slice(0, self.weights.size - of_score)]

    def uncertainty(self, target: str = "regularised") -> Uncertainty:
        known, weights = _known_and_weights(self, target)
        units = self.of_weights(np.ones_like(weights))
        # A class that the noise hides keeps its weights, but its errors are unknown.
        estimates, sampling = weights.ravel().copy(), np.full(weights.size, np.inf)
        errors = np.zeros((_N_DRAWS if self.noises else 0, weights.size))
        for block in _blocks(self, known):
            own, in_block = block.coefficients, _errors_in_block(self, block, target == "unregularised")
            estimates[own], sampling[own], errors[:, own] = in_block[:3]
        estimates *= units.ravel()
        estimates[-1] += self.shift
        return Uncertainty(estimates, units.ravel() * sampling, units.ravel() * errors)

    def joint_uncertainty(self, combinations: Array, target: str = "regularised") -> list[JointUncertainty]:
        known, weights = _known_and_weights(self, target)
        in_units = self.of_weights(combinations)
        n_combinations = len(combinations)
        hidden, no_draws = np.full(n_combinations, np.inf), np.zeros((0, n_combinations))
        shift = self.shift * combinations[:, -1]
        answers = [JointUncertainty(in_units @ own + shift, hidden, no_draws, no_draws) for own in weights]
        for block in _blocks(self, known):
            # The coefficients of a block are those of one score or of several, one score after the other.
            by_score = block.basis.reshape(len(block.basis), -1, weights.shape[1]) @ in_units.T
            n_scores = by_score.shape[1]
            combined = replace(block, basis=by_score.reshape(len(by_score), -1))
            errors = _errors_in_block(self, combined, without_ridge=target == "unregularised")
            scores = block.coefficients[:: weights.shape[1]] // weights.shape[1]
            parts = (np.split(part, n_scores, axis=-1) for part in (*errors[:3], root_of(*errors[3:])))
            for score, estimates, sampling, privacy, root in zip(scores.tolist(), *parts, strict=True):
                answers[score] = JointUncertainty(estimates + shift, sampling, privacy, root)
        return answers


def triangle_of(matrix: Array) -> list[float]:
    """The upper triangle of a matrix (D, D), row by row."""
    return list(map(float, matrix[np.triu_indices(len(matrix))]))


def symmetric_of(triangle: Array | list[float], size: int) -> Array:
    """The symmetric matrix (D, D) with this upper triangle, row by row."""
    matrix = np.zeros((size, size))
    matrix[np.triu_indices(size)] = triangle
    return np.triu(matrix) + np.triu(matrix, 1).T


_N_DRAWS = 4000
_N_SLICES, _N_SLICES_IN_TAIL = 392, 8
_HALVINGS = 30
_MAX_STEPS = 1000
_N_BISECTIONS = 45
_NORMAL_QUANTILE, _MAX_RELATIVE_VARIANCE = 1.96, 0.1
"""In `_inflation_factors`: the quantile z, and the largest t^2 for which its expansion is of use."""
_LARGEST_RATIO_OF_ONE_SCORE, _LARGEST_RATIO_OF_A_CLASS = 3.0, 1.75
"""Largest ratio in a release, that of `IntervalsPlan.ratio` for what was released: for one score, and for each of several.
Above it, intervals contain the truth far too seldom (benchmarks/interval_limits.py)."""
_LARGEST_NOISE_OF_CORRECTION = 0.5
"""Largest standard deviation, in standard errors, that the noise on the curvature may give the correction of the ridge.
Above it, intervals without the ridge contain the truth too seldom (docs/how_to/intervals.md)."""
_CORRECTED_PART_OF_NOISE = 0.7
"""The part of the noise on the curvature for which `denoised_curvature` corrects in intervals. It supposes that directions
are alike in which the noise exceeds the curvature. With all of the noise, 95% intervals for dependent columns and rare
classes held their targets in 88% to 94% of samples at the limit of the plan, with this part in 94% to 98%, and they become
7% wider where columns are alike (benchmarks/interval_limits.py)."""
_LEAST_VARIANCE = 1e-4
"""The least variance of the released gradients in any direction, over that in the direction in which it is largest."""
_SEED_OF_SAMPLING = 1000
"""Seed of the draws of sampling errors. It differs from the seeds of the noises, which are 0, 1 and so on."""
Target: TypeAlias = Literal["regularised", "unregularised"]
TARGETS: tuple[str, ...] = get_args(Target)


# An exponential law of mean 1, divided where its tail has probability 1/2, 1/4 and so on: means and probabilities.
_starts = math.log(2.0) * np.arange(_HALVINGS)
_EXCESSES: Array = np.append(_starts[:-1] + 1.0 - math.log(2.0), _starts[-1] + 1.0)
_shares_in_tail = np.power(0.5, np.minimum(np.arange(1.0, _HALVINGS + 1.0), _HALVINGS - 1.0))
_shares = np.concatenate([np.ones(_N_SLICES), _N_SLICES_IN_TAIL * _shares_in_tail])
_SHARES_OF_SLICES: Array = np.asarray(_shares / (_N_SLICES + _N_SLICES_IN_TAIL))


@suggest_keywords_of
@dataclass(frozen=True)
class Uncertainty:
    """The distribution of the error of released coefficients, as far as the release shows it.

    Attributes
    ----------
    estimates : (D,)
        Released coefficients in the units of `coef_` and `intercept_`, the intercept last. For the target "unregularised"
        one Newton step corrects the bias of the ridge. With three classes or more, the classes follow one after the other;
        for softmax, the mean over classes, which is 0 in the population, is subtracted.
    sampling_error : (D,)
        Standard deviation due to the rows being a sample. It is inf for a class that the noise hides.
    privacy_errors : (draws, D)
        Draws of the error due to the noise, whose distribution is symmetric. (0, D) without noise.
    """

    estimates: Array
    sampling_error: Array
    privacy_errors: Array

    @cached_property
    def privacy_error(self) -> Array:
        """(D,): standard deviation due to the noise."""
        if self.privacy_errors.shape[0] == 0:
            return np.zeros_like(self.estimates)
        deviation: Array = np.sqrt(np.mean(self.privacy_errors**2, axis=0))
        return np.where(self._is_known, deviation, np.inf)

    @property
    def _is_known(self) -> NDArray[np.bool_]:
        return np.isfinite(self.sampling_error)

    @property
    def total_error(self) -> Array:
        """(D,): standard deviation due to sampling and noise together."""
        return np.hypot(self.sampling_error, self.privacy_error)

    @cached_property
    def _slices(self) -> Array:
        """(slices, D): sizes of errors due to the noise, the smallest first; `_SHARES_OF_SLICES` has their probabilities.

        The root mean square of each slice of the sorted draws stands for it, but for the largest fiftieth, of which there
        are too few. All laws of the noise fall at least exponentially there, so an exponential tail with the same mean is
        put in their place.
        """
        sizes = np.sort(np.abs(self.privacy_errors), axis=0)
        n_usual = len(sizes) * _N_SLICES // (_N_SLICES + _N_SLICES_IN_TAIL)
        usual = np.sqrt(np.mean(sizes[:n_usual].reshape(_N_SLICES, -1, sizes.shape[1]) ** 2, axis=1))
        begin = sizes[n_usual - 1]
        return np.concatenate([usual, begin + _EXCESSES[:, None] * (sizes[n_usual:].mean(axis=0) - begin)])

    def probability_within(self, distances: Array) -> Array:
        """(D,): for each coefficient, the probability that its error is at most this distance."""
        if self.privacy_errors.shape[0] == 0:
            return np.asarray(2.0 * ndtr(distances / self.sampling_error) - 1.0)
        # The noise is symmetric, so one size represents both signs.
        upper = ndtr((distances - self._slices) / self.sampling_error)
        lower = ndtr((-distances - self._slices) / self.sampling_error)
        return np.where(self._is_known, np.sum(_SHARES_OF_SLICES[:, None] * (upper - lower), axis=0), 0.0)

    def margins(self, level: float) -> Array:
        """(D,): half the width of intervals, each of which contains its population coefficient with this probability."""
        without_noise: Array = float(ndtri(0.5 + 0.5 * checked_level(level))) * self.sampling_error
        if self.privacy_errors.shape[0] == 0:
            return without_noise
        # Independent symmetric noise can only widen the margin, by at most the largest size of the noise.
        without_noise = np.where(self._is_known, without_noise, 0.0)
        low, high = without_noise, without_noise + self._slices[-1]
        for _ in range(_N_BISECTIONS):
            middle = 0.5 * (low + high)
            enough = self.probability_within(middle) >= level
            low, high = np.where(enough, low, middle), np.where(enough, middle, high)
        return np.where(self._is_known, high, np.inf)

    def intervals(self, level: float = 0.95) -> Array:
        """(D, 2): lower and upper ends."""
        margins = self.margins(level)
        return np.column_stack([self.estimates - margins, self.estimates + margins])

    def p_values(self) -> Array:
        """(D,): p-values of the null hypothesis that the population's coefficient is 0."""
        return np.clip(1.0 - self.probability_within(np.abs(self.estimates)), 0.0, 1.0)

    def among(self, places: slice | Indices) -> Self:
        """The errors of the estimates at these places."""
        return type(self)(*(getattr(self, field.name)[..., places] for field in fields(self)))


@suggest_keywords_of
@dataclass(frozen=True)
class JointUncertainty(Uncertainty):
    """The joint distribution of the errors of several estimates.

    Attributes
    ----------
    sampling_root : (r, D)
        Its transpose times itself is the covariance of the errors due to sampling.
    """

    sampling_root: Array

    @property
    def covariance(self) -> Array:
        """(D, D): of the errors due to sampling and to noise together; infinite where the noise hides what the rows tell."""
        if not self._is_known.all():
            return np.full((len(self.estimates),) * 2, np.inf)
        total: Array = self.sampling_root.T @ self.sampling_root
        n_draws = len(self.privacy_errors)
        return total + self.privacy_errors.T @ self.privacy_errors / n_draws if n_draws else total

    def joint_margins(self, level: float) -> Array:
        """(D,): half the width of intervals that all together contain their targets with this probability.

        The intervals are so many standard errors wide, the same number for all. The number is the quantile of the largest
        ratio of an error to its standard error, see `_largest_ratios`. Draws may show it too large, so it is at most what
        Bonferroni's inequality gives. No interval is shorter than the one by itself. One that the noise hides is infinite,
        so it holds its target whatever the others do.
        """
        alone, known = self.margins(level), self._is_known
        if not known.any():
            return alone
        errors = self.total_error[known]
        largest = float(np.max(self.margins(1.0 - (1.0 - level) / int(known.sum()))[known] / errors))
        quantile = min(largest, float(np.quantile(self._largest_ratios, level, method="higher")))
        together = alone.copy()
        together[known] = np.maximum(alone[known], quantile * errors)
        return together

    def joint_p_values(self) -> Array:
        """(D,): the probability that the largest ratio of any error to its standard error exceeds that of this estimate.

        These are the p-values of the single-step method: with a probability of at most a, any of those of true null
        hypotheses is at most a. So few draws do not show small probabilities, for which the sum over the hypotheses is an
        upper bound.
        """
        alone, known = self.p_values(), self._is_known
        if not known.any():
            return alone
        sizes = np.zeros(len(alone))
        sizes[known] = np.abs(self.estimates[known]) / self.total_error[known]
        ordered = np.sort(self._largest_ratios)
        n_beyond = len(ordered) - np.searchsorted(ordered, sizes, side="left")
        simulated = (1.0 + n_beyond) / (1.0 + len(ordered))
        return np.asarray(np.clip(np.minimum(simulated, int(known.sum()) * alone), alone, 1.0))

    @cached_property
    def _largest_ratios(self) -> Array:
        """(draws,): the largest ratio of an error to its standard error, among those that are known.

        Draws of the sampling errors are Gaussian, and those of the noise have its known law. The seed is fixed and public.
        """
        known = self._is_known
        sampled = noise_draws(Noise(Ball(len(self.sampling_root), 1.0), "gaussian", 1.0), _SEED_OF_SAMPLING)
        draws: Array = sampled @ self.sampling_root[:, known]
        if len(self.privacy_errors):
            draws = draws + self.privacy_errors[:, known]
        return np.asarray(np.max(np.abs(draws) / self.total_error[known], axis=1))


def _known_and_weights(evidence: Evidence, target: str) -> tuple[NDArray[np.bool_], Array]:
    """Which scores are known, and the weights of each (scores, weights); the target is refused if it is not available."""
    checked_target(target)
    if target == "unregularised" and evidence.noises and not any(part.in_objective for part in evidence.noises):
        raise ParameterError(wording("no target without ridge after output perturbation"))
    known = known_scores(evidence)
    weights = evidence.weights.reshape(known.size, -1)
    if not evidence.separable:
        weights = weights - weights[known if known.any() else ~known].mean(axis=0)
    return known, weights


def of_all_scores(uncertainties: list[JointUncertainty], *, released_together: bool) -> Uncertainty:
    """The errors of several scores, one score after the other. A score that the noise hides has no draws of its own.

    How the sampling errors of two scores depend on each other is known only if their moments were released together.
    """
    n_draws = max(len(uncertainty.privacy_errors) for uncertainty in uncertainties)
    n_roots = max(len(uncertainty.sampling_root) for uncertainty in uncertainties)

    def with_rows(matrix: Array, n_rows: int) -> Array:
        return matrix if len(matrix) else np.zeros((n_rows, matrix.shape[1]))

    whole = [(with_rows(one.privacy_errors, n_draws), with_rows(one.sampling_root, n_roots)) for one in uncertainties]
    scores = [(one.estimates, one.sampling_error, *both) for one, both in zip(uncertainties, whole, strict=True)]
    together = [np.concatenate(arrays, axis=-1) for arrays in zip(*scores, strict=True)]
    return JointUncertainty(*together) if released_together or len(uncertainties) == 1 else Uncertainty(*together[:3])


def known_scores(evidence: Evidence) -> NDArray[np.bool_]:
    """(o,): for each score, whether enough is known of the curvature of its weights for intervals.

    The forecast in the plan assumes typical rows, and that all classes are equally frequent, because neither is public. A
    rare class has less curvature. The release shows how much: the mean of it over the columns, without the part of the
    intercept, is known well. The ratio that is limited is that of the forecast, `IntervalsPlan.ratio`. For one score the
    limit is wider, because the forecast of a fit and its release may lie on different sides of the same limit.
    """
    o, row_width = evidence.n_outputs, len(evidence.weights) // evidence.n_outputs
    limit = _LARGEST_RATIO_OF_A_CLASS if o > 1 else _LARGEST_RATIO_OF_ONE_SCORE
    curvature, slope, share = evidence.curvature, evidence.slope, 1.0
    if not evidence.separable:
        # The direction of one class, minus its mean over classes, has a squared length of 1 - 1 / o.
        directions, share = directions_of(o, row_width), 1.0 - 1.0 / o
        curvature, slope = (directions.T @ matrix @ directions for matrix in (curvature, slope))
    noise = 2.0 * evidence.curvature_deviation * math.sqrt(row_width if evidence.separable else len(evidence.curvature))
    # Two standard deviations of the mean are added to the slopes, because a small part of them shows the noise alone.
    added = 2.0 * math.sqrt(2.0 / row_width) * evidence.slope_deviation
    # The mean variance of an entry of the noise on the weights, and of that in the objective.
    variances = [(part.in_objective, part.norm**2 / len(evidence.weights)) for part in evidence.noises]
    on_weights, in_objective = (sum(own for place, own in variances if place == inside) for inside in (False, True))
    known = []
    for start in range(0, o * row_width, row_width):
        place = slice(start, start + row_width)
        own, of_slopes = curvature[place, place] / share, slope[place, place] / share
        diagonal = np.diagonal(own)
        if evidence.intercept > 0.0:
            diagonal = diagonal[:-1] - own[:-1, -1] ** 2 / own[-1, -1] if own[-1, -1] > 0.0 else np.zeros(1)
        steep = max(0.0, float(np.mean(np.diagonal(of_slopes)))) + added + in_objective
        whole = max(0.0, float(np.mean(diagonal))) + evidence.l2
        # What does not pass through the curvature is known whatever the noise on it.
        uncertain = steep / (steep + on_weights * whole**2) if on_weights else 1.0
        known.append(uncertain * noise <= limit * whole)
    return np.array(known)


@dataclass(frozen=True)
class _Block:
    """Weights whose moments were released together.

    Attributes
    ----------
    weights : (p,), positions of these weights
    directions : (r, p), orthonormal directions among the weights, in which the loss has curvature
    coefficients : (q,), positions of the coefficients whose errors the block gives
    basis : (r, q), each of these coefficients as a combination of the directions
    curvature, slope : (r, r), the released moments in these directions
    """

    weights: Indices
    directions: Array
    coefficients: Indices
    basis: Array
    curvature: Array
    slope: Array


def _blocks(evidence: Evidence, known: NDArray[np.bool_]) -> Iterator[_Block]:
    everywhere = np.arange(len(evidence.weights))
    by_score, both = everywhere.reshape(known.size, -1), (evidence.curvature, evidence.slope)
    if evidence.separable:
        for own in by_score[known]:
            yield _Block(own, np.eye(own.size), own, np.eye(own.size), *(matrix[np.ix_(own, own)] for matrix in both))
    elif known.sum() >= 2:
        directions = directions_of(known.size, by_score.shape[1])
        # The mean over the known classes is subtracted. The moments of all classes still count for the errors.
        means = directions.reshape(len(directions), known.size, -1)[:, known].mean(axis=1)
        centred = directions - np.tile(means, known.size)
        own = by_score[known].ravel()
        yield _Block(everywhere, directions, own, centred[:, own], *both)


def root_of(covariance: Array, columns: Array) -> Array:
    """(r, q): its transpose times itself is the covariance of q combinations, the `columns` (r, q), of r numbers."""
    eigenvalues, vectors = np.linalg.eigh(covariance)
    return np.asarray((np.sqrt(np.maximum(eigenvalues, 0.0)) * vectors).T @ columns)


def _errors_in_block(evidence: Evidence, block: _Block, without_ridge: bool) -> tuple[Array, Array, Array, Array, Array]:
    """Errors of the coefficients of one block, or of q combinations of them.

    Returns
    -------
    estimates, sampling : (q,), estimates and standard deviations due to sampling
    privacy : (draws, q), draws of the error due to the noise
    covariance : (r, r), the covariance of the sum of the rows' gradients, in the directions of the block
    columns : (r, q), by which the gradients are multiplied
    """
    basis, l2 = block.basis, evidence.l2
    centre, weights = (block.directions @ vector[block.weights] for vector in (evidence.centre, evidence.weights))
    away = weights - centre
    curvature = denoised_curvature(block.curvature, l2, _CORRECTED_PART_OF_NOISE * evidence.curvature_deviation)
    # At the target, the rows' gradients of the population add up to minus the gradient of the ridge, so their mean is known.
    # Its square, times the number of rows, is subtracted from the second moment to get the covariance. The largest possible
    # number of rows subtracts the least.
    of_rows = positive_part(block.slope - np.outer(away, away) * l2**2 / evidence.n_rows_high)
    covariance = evidence.design.variance_factor * of_rows
    step: Array = np.eye(len(weights))
    if without_ridge:
        # The step is w + H0^-1 l2 (w - p) = p + H0^-1 H (w - p), where H0 is H without the ridge and p the prior. So H0
        # replaces H for noise in the objective, and noise on the weights is multiplied by H0^-1 H.
        unregularised = curvature - l2 * step
        step = np.asarray(np.linalg.solve(unregularised, curvature))
        weights, curvature = centre + step @ away, unregularised
    inverse = np.asarray(np.linalg.inv(curvature), dtype=np.float64)
    columns = inverse @ basis
    sampling = np.sqrt(np.maximum(np.sum(columns * (covariance @ columns), axis=0), 0.0))
    # A coefficient that no row depends on gets an interval of width 0. It must stay positive, because it divides.
    sampling = np.maximum(sampling, np.finfo(float).tiny)
    errors = np.zeros((_N_DRAWS if evidence.noises else 0, basis.shape[1]))
    multiplied = covariance.copy()
    for position, noise in enumerate(evidence.noises):
        draws = noise_draws(noise, position)[:, block.weights] @ block.directions.T
        errors += draws @ (columns if noise.in_objective else step.T @ basis)
        if noise.in_objective:
            multiplied += draws.T @ draws / len(draws)
    factors = _inflation_factors(evidence, inverse, multiplied, basis, sampling, errors)
    if without_ridge and evidence.curvature_deviation > 0.0:
        pull = l2 * (inverse @ away)
        # The noise on the curvature is one more error of the corrected weights, known to first order.
        if _noise_of_correction(evidence, pull, multiplied) > _LARGEST_NOISE_OF_CORRECTION:
            raise ParameterError(wording("ridge cannot be taken back"))
        spread = columns.T @ pull
        noise = evidence.curvature_deviation**2 * (np.sum(columns**2, axis=0) * (pull @ pull) + spread**2)
        variance = sampling**2 + np.sum(errors**2, axis=0) / max(1, len(errors))
        factors = factors * np.sqrt(1.0 + noise / variance)
    return basis.T @ weights, factors * sampling, factors * errors, covariance, factors * columns


def _noise_of_correction(evidence: Evidence, pull: Array, multiplied: Array) -> float:
    """The error that the noise on the curvature gives the correction of the ridge, in standard errors of the target.

    The correction is c = l2 H0^-1 (w - p). Noise E on H0 changes it by H0^-1 E c to first order. Noise with standard
    deviation s off the diagonal and sqrt(2) s on it gives E c the covariance C = s^2 (|c|^2 I + c c^T). The other errors
    have covariance H0^-1 M H0^-1. So the largest ratio of the two standard deviations, over all combinations of
    the coefficients, is the root of the largest eigenvalue of M^-1 C. It does not depend on the units.
    """
    values, vectors = np.linalg.eigh(multiplied)
    # The noise on M may leave a direction without any variance, which would say nothing about the correction.
    root = vectors / np.sqrt(np.maximum(values, _LEAST_VARIANCE * values[-1]))
    spread = np.eye(len(pull)) * (pull @ pull) + np.outer(pull, pull)
    largest = np.linalg.eigvalsh(root.T @ spread @ root)[-1]
    return evidence.curvature_deviation * math.sqrt(max(0.0, float(largest)))


def checked_level(level: float) -> float:
    """The level. Raises ParameterError unless it lies strictly between 0 and 1."""
    number = as_float(level)
    if not 0.0 < number < 1.0:
        raise ParameterError("level must be a number strictly between 0 and 1, for example 0.95.")
    return number


def checked_target(target: str) -> Target:
    """The target. Raises ParameterError unless it is one of `TARGETS`."""
    return cast("Target", checked_choice("target", target, TARGETS))


def denoised_curvature(curvature: Array, l2: float, deviation: float) -> Array:
    """The curvature of the objective, ridge included and positive definite, from a noisy matrix (D, D) of the rows' part.

    Symmetric noise E with standard deviation s off the diagonal and sqrt(2) s on it makes the inverse too large on average:
    to second order by H^-1 E[E H^-1 E] H^-1, where E[E A E] = s^2 (A + tr(A) I) for symmetric A. The eigenvalues h of the
    answer solve

        h = max(e, 0) + l2 + s^2 (1 / h + sum of all 1 / h)

    for the eigenvalues e of the noisy matrix. This corrects the bias of the inverse, and keeps every eigenvalue above the
    size that noise alone would give it.
    """
    eigenvalues, vectors = np.linalg.eigh(curvature)
    with_ridge = np.maximum(eigenvalues, 0.0) + l2
    values = with_ridge + deviation * math.sqrt(len(with_ridge))
    for _ in range(_MAX_STEPS):
        inverse = 1.0 / values
        # The mean of the old and the new value, because the map decreases in every value and would oscillate.
        before, values = values, 0.5 * (values + with_ridge + deviation**2 * (inverse + inverse.sum()))
        if np.allclose(values, before, rtol=1e-12, atol=0.0):
            break
    return np.asarray((vectors * values) @ vectors.T)


def positive_part(matrix: Array) -> Array:
    """A symmetric matrix whose negative eigenvalues are replaced by 0."""
    eigenvalues, vectors = np.linalg.eigh(matrix)
    return np.asarray((vectors * np.maximum(eigenvalues, 0.0)) @ vectors.T)


def _inflation_factors(
    evidence: Evidence, inverse: Array, multiplied: Array, basis: Array, sampling: Array, errors: Array
) -> Array:
    """(D,): factors by which errors are enlarged because both matrices are known only with noise.

    If the size of an interval is itself uncertain, with relative standard deviation t, the interval contains the truth too
    seldom, as normal intervals do with few degrees of freedom. To second order the factor 1 + (z^2 + 1) t^2 / 2 corrects
    this, z = 1.96. Let a = H^-1 e_j with e_j a column of `basis`, M the covariance that H^-1 multiplies, b = H^-1 M a, and
    let the noise have standard deviation s on H and f on S (sqrt(2) times as much on their diagonals). Then the variance a^T
    M a of coefficient j has noise of variance

        4 s^2 (|a|^2 |b|^2 + (a . b)^2) + 2 f^2 |a|^4 = (2 t v)^2,    v the whole variance of the coefficient.

    Above t^2 = 0.1 the expansion is of no use. There `denoised_curvature` makes intervals long enough.
    """
    if errors.shape[0] == 0:
        return np.ones_like(sampling)
    columns = inverse @ basis
    others = inverse @ multiplied @ columns
    squares = np.sum(columns**2, axis=0)
    products = squares * np.sum(others**2, axis=0) + np.sum(columns * others, axis=0) ** 2
    of_slope = evidence.design.variance_factor * evidence.slope_deviation
    spread = 4.0 * evidence.curvature_deviation**2 * products + 2.0 * of_slope**2 * squares**2
    variance = sampling**2 + np.mean(errors**2, axis=0)
    # A combination of no coefficients has no variance; its intervals have width 0.
    least = float(np.finfo(float).tiny)
    relative_variance = np.minimum(spread / np.maximum((2.0 * variance) ** 2, least), _MAX_RELATIVE_VARIANCE)
    return np.asarray(1.0 + 0.5 * (_NORMAL_QUANTILE**2 + 1.0) * relative_variance)


def noise_draws(noise: Noise, seed: int) -> Array:
    """(draws, D) of the noise, from a fixed public seed. No release uses them."""
    return _of_scale_one(noise.law, noise.shape, seed) * (1.0 / noise.scale if noise.law == "laplace" else noise.scale)


@lru_cache(maxsize=8)
def _of_scale_one(law: str, shape: Shape, seed: int) -> Array:
    """Draws of a unit rate or scale. They take long, and noise of another budget is a multiple of the same ones."""
    entropy = Entropy.seeded(seed)
    return (entropy.laplace if law == "laplace" else entropy.gaussian)(shape, _N_DRAWS, 1.0)


# Bands of curves: intervals that all hold together. Post-processing of what was released.

_POINTS = 8192
_PRIMES = (2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41, 43, 47, 53)
"""Multiples of the roots of primes (Richtmyer's points) stand for draws of a normal vector, so a band is the same whenever
it is made."""


def level_of_each(level: float, n_intervals: int) -> float:
    """The level of each of so many independent intervals that all hold together with probability `level` (Sidak)."""
    return float(level ** (1.0 / max(1, n_intervals)))


def draws_of_errors(errors: Array) -> Array:
    """Errors of a curve at its places, in units of their deviations, as so many points of a normal law (points, places).

    Parameters
    ----------
    errors : (places, k), a matrix E such that E E^T is the covariance of the curve at the places; a place without an error
        has 0
    """
    sizes = np.sqrt((errors**2).sum(axis=1))
    moves = sizes > 1e-12 * max(float(sizes.max(initial=0.0)), 1e-300)
    draws = np.zeros((_POINTS, len(errors)))
    if not moves.any():
        return draws
    # The main directions of the curve's errors, and each place at deviation 1 again without the others.
    main = np.linalg.svd(errors[moves] / sizes[moves, None], full_matrices=False)
    directions = (main.U * main.S)[:, : len(_PRIMES)]
    directions /= np.sqrt((directions**2).sum(axis=1))[:, None]
    roots = np.sqrt(np.array(_PRIMES[: directions.shape[1]], dtype=np.float64))
    draws[:, moves] = ndtri(np.modf((np.arange(_POINTS)[:, None] + 0.5) * roots)[0]) @ directions.T
    return draws


# How far the means that a released model predicts may lie from those of the population's model, row by row.
#
# A score is a linear combination of the coefficients, so its error is known as theirs are. A mean that rises with one score
# has the interval of the score, carried over. The probability of one class among several depends on all scores. Its log-odds
# are taken to be linear in them near the released scores, and the ends are carried over.
#
# There are many rows, so quantiles are found faster here than for coefficients. The noise on a score is taken to be normal
# with a random variance of a gamma law, whose shape follows from the fourth moment of the noise. A coordinate of Laplace
# noise in a ball has exactly this law, and Gaussian noise is the limit of a constant variance.

SCORES_AT_ONCE = 1024
"""So many scores of rows are treated together. Each needs 4,000 draws of the noise."""
_MOST_SHAPES, _N_VARIANCES = 200, 64
_N_BISECTIONS_OF_SCORES = 30


def ends_of_scores(uncertainty: JointUncertainty, level: float) -> Array:
    """(m, 2): intervals of m scores, each by itself."""
    return _ends(uncertainty.estimates, uncertainty.sampling_error, uncertainty.privacy_errors, level)


def ends_of_log_odds(
    uncertainties: Sequence[JointUncertainty], log_odds: Array, derivatives: Array, *, depend: bool, level: float
) -> Array:
    """(m, o, 2): intervals of the log-odds of each class against all others, for each of m rows.

    Parameters
    ----------
    uncertainties : for each of o scores, the errors of the scores of m rows
    log_odds : (m, o)
    derivatives : (m, o, o), of the log-odds of one class (second axis) in each score (third axis)
    depend : whether it is known how the sampling errors of different scores depend on each other. Otherwise their standard
        deviations are added up, which is the most that they can amount to
    level : of each interval by itself
    """
    answer = np.empty((*log_odds.shape, 2))
    if not all(np.isfinite(uncertainty.sampling_error).all() for uncertainty in uncertainties):
        answer[..., 0], answer[..., 1] = -math.inf, math.inf
        return answer
    for place in range(log_odds.shape[1]):
        by_score = list(zip(derivatives[:, place].T, uncertainties, strict=True))
        if depend:
            sampling = np.linalg.norm(np.sum([slope * one.sampling_root for slope, one in by_score], axis=0), axis=0)
        else:
            sampling = np.sum([np.abs(slope) * one.sampling_error for slope, one in by_score], axis=0)
        noise = np.sum([slope * one.privacy_errors for slope, one in by_score], axis=0)
        answer[:, place] = _ends(log_odds[:, place], sampling, noise, level)
    return answer


def _ends(estimates: Array, sampling: Array, noise: Array, level: float) -> Array:
    """(m, 2): ends of intervals about estimates (m,), from sampling errors (m,) and draws (draws, m) of the noise."""
    quantile = float(ndtri(0.5 + 0.5 * checked_level(level)))
    is_known = np.isfinite(sampling)
    margins = np.where(is_known, quantile * sampling, np.inf)
    if not len(noise) or not is_known.any():
        return np.column_stack([estimates - margins, estimates + margins])
    squares = noise[:, is_known] ** 2
    variances = np.mean(squares, axis=0)
    excess = np.mean(squares**2, axis=0) / (3.0 * np.maximum(variances, np.finfo(float).tiny) ** 2) - 1.0
    # No noise of this library has heavier tails than the law of Laplace in one dimension, whose excess is 1.
    places = np.rint(_MOST_SHAPES * np.clip(excess, 0.0, 1.0)).astype(int)
    deviations = np.sqrt(sampling[is_known, None] ** 2 + variances[:, None] * _random_variances()[places])
    low, high = np.zeros(len(variances)), quantile * deviations[:, -1]
    for _ in range(_N_BISECTIONS_OF_SCORES):
        middle = 0.5 * (low + high)
        enough = np.mean(2.0 * ndtr(middle[:, None] / deviations) - 1.0, axis=1) >= level
        low, high = np.where(enough, low, middle), np.where(enough, middle, high)
    margins[is_known] = high
    return np.column_stack([estimates - margins, estimates + margins])


@lru_cache(maxsize=1)
def _random_variances() -> Array:
    """(shapes, variances): equally probable variances of mean 1 by gamma laws, in rising order.

    The excess of the fourth moment of the noise over that of a normal law, in units of the latter, is the variance of these
    variances. It runs from 0 to 1.
    """
    chances = (np.arange(_N_VARIANCES) + 0.5) / _N_VARIANCES
    mixtures = [np.ones(_N_VARIANCES)]
    for place in range(1, _MOST_SHAPES + 1):
        nodes = gammaincinv(_MOST_SHAPES / place, chances)
        mixtures.append(nodes / nodes.mean())
    return np.array(mixtures)
