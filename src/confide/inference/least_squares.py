"""How far least-squares coefficients from noisy sums may lie from those of the population.

Everything here is post-processing: it is made from the released sums and public facts only. Let G = X^T X and h = X^T y,
with noise E on G and e on h, H = G + E + l2 I, and p the prior towards which the ridge pulls. For the population's
coefficients b with the same ridge and prior this identity is exact:

    H (w - b) = g + e - E b,    w = H^-1 (h + e + l2 p),    g = h - G b - l2 (b - p), whose mean is 0

So the error of w is the sampling error g plus noise of a known distribution, both multiplied by the inverse of a released
matrix. Each row adds x (y - x . b) to g. Sums of squares and products do not show how residuals depend on rows, so residuals
are assumed to have the same variance s^2 in all rows; then the covariance of g is s^2 G.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np

from confide.array_types import Array
from confide.errors import ParameterError, wording
from confide.inference.intervals import (
    JointUncertainty,
    Uncertainty,
    WeightNoise,
    WeightsEvidence,
    checked_target,
    denoised_curvature,
    noise_draws,
    positive_part,
    root_of,
)
from confide.inference.sampling_design import INDEPENDENT, OTHER_VERSION, SamplingDesign
from confide.privacy.mechanism import Noise
from confide.privacy.shapes import Ball, Groups
from confide.privacy.sufficient_statistics import NoisyStatistics

_MAX_CONDITION = 1e13
_MAX_LAPLACE_NUMBERS = 2000
"""Laplace noise is drawn for at most this many numbers. The weighted sum of more of them is drawn as Gaussian noise."""


@dataclass(frozen=True, slots=True)
class SumsEvidence(WeightsEvidence):
    """Released sums of least squares, the weights made from them, and what is publicly known about the noise.

    Attributes
    ----------
    weights : (D,)
    intercept : float
        The constant column for the intercept, whose weight is the last. 0 if there is no intercept.
    l2 : float
        Ridge of the sum form.
    n_rows_low, n_rows_high : int
        Public bounds on the number of rows.
    products : (D, D)
        X^T X with noise.
    targets : (D,)
        X^T y with noise.
    square : float
        y^T y with noise.
    law : "laplace" for independent noise, "ball" for noise of the same length in all directions, "gaussian" or "none"
    deviations : (4,)
        Standard deviations of the noise on the diagonal of X^T X, its other entries, X^T y and y^T y.
    prior : (D,) or None
        Public weights towards which the ridge pulled; None for 0.
    design : SamplingDesign
        What is declared about the sample.
    shift : float
        The public number that was subtracted from all targets. It is a part of the intercept and of no weight here.
    """

    weights: Array
    intercept: float
    l2: float
    n_rows_low: int
    n_rows_high: int
    products: Array
    targets: Array
    square: float
    law: str
    deviations: Array
    prior: Array | None = None
    design: SamplingDesign = INDEPENDENT
    shift: float = 0.0
    # There is one score, of which all errors are known together.
    separable: ClassVar[bool] = False  # type: ignore[misc]
    n_outputs: ClassVar[int] = 1  # type: ignore[misc]
    noises: ClassVar[tuple[WeightNoise, ...]] = ()  # type: ignore[misc]
    equal_variance: ClassVar[bool] = True
    _matrices: ClassVar[tuple[str, ...]] = ("products",)

    def _fits(self) -> bool:
        size = self.weights.size
        return (
            self.weights.shape == self.targets.shape == self.centre.shape == (size,)
            and (self.products.shape, self.deviations.shape) == ((size, size), (4,))
            and self.law in ("laplace", "ball", "gaussian", "none")
            and bool((self.deviations >= 0.0).all())
            and self.intercept >= 0.0
            and self.l2 > 0.0
            and (not self.shift or self.intercept > 0.0)
            and 1 <= self.n_rows_low <= self.n_rows_high
        )

    @classmethod
    def of(cls, sums: NoisyStatistics, weights: Array) -> Self:
        """The evidence of a release: noisy sums, and the weights (D,) that were made from them."""
        plan = sums.plan
        law = plan.law if plan.noise is None else plan.noise.shape.name
        deviations = (plan.diagonal_deviation, plan.product_deviation, plan.target_deviation, plan.square_deviation)
        problem = plan.problem
        return cls(
            weights=weights,
            intercept=problem.intercept,
            l2=plan.l2,
            n_rows_low=problem.n_rows_low,
            n_rows_high=problem.n_rows_high,
            products=sums.products,
            targets=sums.targets,
            square=sums.square,
            law=law,
            deviations=np.array(deviations),
            prior=np.array(plan.prior) if plan.prior else None,
            design=INDEPENDENT if plan.intervals is None else plan.intervals.design,
        )

    @property
    def n_rows(self) -> float:
        """The number of rows. If it is private, it is estimated from the noisy sum over the intercept's constant."""
        counted = self.products[-1, -1] / self.intercept**2 if self.intercept > 0.0 else self.n_rows_low
        return float(min(max(counted, self.n_rows_low), self.n_rows_high))

    def to_dict(self) -> dict[str, Any]:
        """A JSON form."""
        # Slots make a new class, which `super()` does not know.
        return {"kind": "sums"} | super(SumsEvidence, self).to_dict()

    @classmethod
    def from_dict(cls, value: dict[str, Any]) -> Self:
        """Read the form written by `to_dict`."""
        if value.get("kind") != "sums":
            raise ParameterError(OTHER_VERSION)
        return super(SumsEvidence, cls).from_dict({name: part for name, part in value.items() if name != "kind"})

    def uncertainty(self, target: str = "regularised") -> Uncertainty:
        """The distribution of the error of least-squares coefficients; see `WeightsEvidence.uncertainty`.

        The estimates differ a little from the released weights: noise on G makes its inverse too large on average, and
        `denoised_curvature` corrects this bias.
        """
        checked_target(target)
        estimates, covariance, privacy = _errors_of_sums(self, target)
        units = self.of_weights(np.ones((1, len(self.weights))))[0]
        sampling = np.maximum(np.sqrt(np.maximum(np.diagonal(covariance), 0.0)), np.finfo(float).tiny)
        estimates = units * estimates
        estimates[-1] += self.shift
        return Uncertainty(estimates, units * sampling, units * privacy)

    def joint_uncertainty(self, combinations: Array, target: str = "regularised") -> list[JointUncertainty]:
        estimates, covariance, privacy = _errors_of_sums(self, checked_target(target))
        in_units = self.of_weights(combinations)
        root = root_of(0.5 * (covariance + covariance.T), in_units.T)
        sampling = np.maximum(np.linalg.norm(root, axis=0), np.finfo(float).tiny)
        estimates = in_units @ estimates + self.shift * combinations[:, -1]
        return [JointUncertainty(estimates, sampling, privacy @ in_units.T, root)]


def _errors_of_sums(evidence: SumsEvidence, target: str) -> tuple[Array, Array, Array]:
    """Estimates (D,), the covariance (D, D) of their errors due to sampling, and draws (draws, D) of those due to noise.

    They are those of the weights, before the intercept gets its unit.
    """
    l2 = evidence.l2 if target == "regularised" else 0.0
    if evidence.law == "none" and np.linalg.cond(evidence.products + l2 * np.eye(len(evidence.weights))) > _MAX_CONDITION:
        raise ParameterError(wording("dependent columns"))
    curvature = denoised_curvature(evidence.products, l2, float(evidence.deviations[1]))
    inverse = np.asarray(np.linalg.inv(curvature), dtype=np.float64)
    estimates = inverse @ (evidence.targets + l2 * evidence.centre)
    entries, variances = _noise_entries(estimates) @ inverse, _variances(evidence)
    # Noise makes the estimates w longer than the coefficients b, and the noise E b that goes through them too large. On
    # average |b|^2 is |w|^2 less the trace of the covariance of w, which is a part from the noise on X^T y, and a part from
    # the noise on X^T X that is proportional to |b|^2.
    square, parts = float(estimates @ estimates), (slice(-len(estimates), None), slice(None, -len(estimates)))
    of_targets, of_products = (float(variances[part] @ (entries[part] ** 2).sum(axis=1)) for part in parts)
    entries[parts[1]] *= math.sqrt(max(square - of_targets, 0.0) / max(square + of_products, float(np.finfo(float).tiny)))
    noise = (entries.T * variances) @ entries
    products = positive_part(curvature - l2 * np.eye(len(estimates)))
    away = estimates - evidence.centre
    ridge = np.outer(away, away) * l2**2 / evidence.n_rows_high
    variance = _residual_variance(evidence, curvature, products, inverse, estimates, noise + inverse @ ridge @ inverse)
    # The bias of the ridge makes residuals larger for rows that are long in its direction. The term `ridge` is exact for
    # Gaussian rows.
    covariance = evidence.design.variance_factor * (inverse @ (variance * products + ridge) @ inverse)
    return estimates, covariance, _privacy_errors(evidence, entries, variances)


def _noise_entries(weights: Array) -> Array:
    """(N, D): derivative of e - E w by the noise on each released number: diagonal, upper triangle, X^T y."""
    size = len(weights)
    rows, columns = np.triu_indices(size, 1)
    upper = np.zeros((len(rows), size))
    places = np.arange(len(rows))
    upper[places, rows] = -weights[columns]
    upper[places, columns] = -weights[rows]
    return np.vstack([np.diag(-weights), upper, np.eye(size)])


def _variances(evidence: SumsEvidence) -> Array:
    """(N,): variances of the noise on these numbers."""
    size = len(evidence.weights)
    return np.repeat(evidence.deviations[:3] ** 2, (size, size * (size - 1) // 2, size))


def _residual_variance(
    evidence: SumsEvidence, curvature: Array, products: Array, inverse: Array, weights: Array, errors: Array
) -> float:
    """s^2, the population's mean squared residual; `errors` (D, D) is the covariance of w without the part due to s^2.

    Let Q(w) = y^T y - 2 w . h + w^T G w with the noisy sums, let w - b have mean 0 and covariance V, and H be the curvature:

        E Q(b) = E Q(w) + tr((2 H - G) V),    V = errors + s^2 H^-1 G H^-1,    E Q(b) = n s^2

    This is solved for s^2. Without noise and ridge the answer is RSS / (n - D). The answer is at least one standard
    deviation of its own noise, because less than that cannot be told from noise.
    """
    residual = evidence.square - 2.0 * (weights @ evidence.targets) + weights @ evidence.products @ weights
    steep = 2.0 * curvature - products
    n_rows = evidence.n_rows
    freedom = max(n_rows - float(np.trace(steep @ inverse @ products @ inverse)), 0.5 * n_rows)
    pairs = 2.0 * np.outer(weights, weights)[np.triu_indices(len(weights), 1)]
    directions = np.concatenate([weights**2, pairs, -2.0 * weights])
    noise = math.sqrt(float(directions**2 @ _variances(evidence)) + float(evidence.deviations[3]) ** 2)
    return max(float(residual) + float(np.trace(steep @ errors)), noise, float(np.finfo(float).tiny)) / freedom


def _privacy_errors(evidence: SumsEvidence, entries: Array, variances: Array) -> Array:
    """(draws, D): errors of the weights for draws of the noise, from a fixed public seed; `entries` is (N, D)."""
    n_numbers, size = entries.shape
    if evidence.law == "none":
        return np.zeros((0, size))
    if evidence.law in ("laplace", "ball") and n_numbers <= _MAX_LAPLACE_NUMBERS:
        # Noise of variance 1 on each number. That of a ball has one number more: the noise on y^T y.
        independent = Groups((n_numbers,), (math.sqrt(0.5),))
        shape = independent if evidence.law == "laplace" else Ball(n_numbers + 1, 1.0 / math.sqrt(n_numbers + 2.0))
        draws = noise_draws(Noise(shape, "laplace", 1.0), 0)[:, :n_numbers]
        transform: Array = np.sqrt(variances)[:, None] * entries
    else:
        draws = noise_draws(Noise(Ball(size, 1.0), "gaussian", 1.0), 0)
        transform = np.asarray(np.linalg.qr(np.sqrt(variances)[:, None] * entries, mode="r"))
    return draws @ transform
