"""How far least-squares coefficients from noisy sums may lie from the population's: made of the sums and public facts alone.

With G = X^T X, h = X^T y, noise E on G and e on h, and H = G + E + l2 I, an exact identity holds for the population's
coefficients b with the same ridge:

    H (w - b) = g + e - E b,    w = H^-1 (h + e),    g = h - G b - l2 b, whose mean is 0

so that the error of w is the sampling error g and noise of a known law, both through a matrix that was released. Rows add
x (y - x . b) to g. Sums of squares and products do not tell how residuals hang together with rows, so the covariance of g
is that of residuals whose size does not depend on the row: s^2 G. Everything here is post-processing.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from typing import Any, Self

import numpy as np

from confide.errors import ParameterError
from confide.inference.evidence import symmetric_of
from confide.inference.intervals import Uncertainty, checked_target, denoised_curvature, draws_of, positive_part
from confide.privacy.group_shapes import Groups
from confide.privacy.lattice import LatticeLaplace
from confide.privacy.mechanism import Noise
from confide.privacy.shapes import Ball
from confide.privacy.sufficient_statistics import NoisyStatistics
from confide.types import Array

_LARGEST_CONDITION = 1e13
_MOST_DRAWN = 2000
"""Numbers with Laplace noise that are drawn one by one; a sum of more of them is as good as Gaussian."""


@dataclass(frozen=True, slots=True)
class SumsEvidence:
    """Released sums of least squares, the weights that were made of them, and what is publicly known of the noise.

    Attributes
    ----------
    weights : (D,)
    intercept : float
        The constant of the intercept, whose weight is the last; 0 for none.
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
    law : "laplace", "gaussian" or "none"
    deviations : (4,)
        Standard deviations of the noise on diagonal, other products, X^T y and y^T y.
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

    def checked(self) -> Self:
        """The same, or a refusal if the parts cannot belong together, as in a file that was changed."""
        size = self.weights.size
        shapes = (self.weights.shape, self.products.shape, self.targets.shape, self.deviations.shape)
        if shapes != ((size,), (size, size), (size,), (4,)):
            raise ParameterError("the parts that intervals are made of do not fit each other.")
        scalars = np.array([self.intercept, self.l2, self.square])
        numbers = (self.weights, self.products, self.targets, self.deviations, scalars)
        known = self.intercept >= 0.0 and self.l2 > 0.0 and 1 <= self.n_rows_low <= self.n_rows_high
        noise = self.law in ("laplace", "gaussian", "none") and (self.deviations >= 0.0).all()
        finite = all(np.isfinite(number).all() for number in numbers)
        if not (known and noise and finite and np.array_equal(self.products, self.products.T)):
            raise ParameterError("the parts that intervals are made of do not fit each other.")
        return self

    @classmethod
    def of(cls, sums: NoisyStatistics, weights: Array) -> Self:
        """The evidence of a release: noisy sums, and the weights (D,) that were made of them."""
        plan = sums.plan
        law = "none" if plan.lattice is None else "laplace" if isinstance(plan.lattice, LatticeLaplace) else "gaussian"
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
        )

    @property
    def n_rows(self) -> float:
        """The number of rows; where it is private, as far as the sum over the intercept's constant tells."""
        counted = self.products[-1, -1] / self.intercept**2 if self.intercept > 0.0 else self.n_rows_low
        return float(min(max(counted, self.n_rows_low), self.n_rows_high))

    def to_dict(self) -> dict[str, Any]:
        """A JSON form. Of the symmetric matrix the upper triangle, row by row."""
        return {
            "kind": "sums",
            "weights": self.weights.tolist(),
            "intercept": self.intercept,
            "l2": self.l2,
            "n_rows_low": self.n_rows_low,
            "n_rows_high": self.n_rows_high,
            "products": self.products[np.triu_indices(self.weights.size)].tolist(),
            "targets": self.targets.tolist(),
            "square": self.square,
            "law": self.law,
            "deviations": self.deviations.tolist(),
        }

    @classmethod
    def from_dict(cls, value: dict[str, Any]) -> Self:
        """Read the form written by `to_dict`."""
        if set(value) != {"kind", *(field.name for field in fields(cls))} or value["kind"] != "sums":
            raise ParameterError("what intervals are made of was written by a version that this one does not understand.")
        return cls(
            weights=np.array(value["weights"], dtype=np.float64),
            intercept=float(value["intercept"]),
            l2=float(value["l2"]),
            n_rows_low=int(value["n_rows_low"]),
            n_rows_high=int(value["n_rows_high"]),
            products=symmetric_of(value["products"], len(value["weights"])),
            targets=np.array(value["targets"], dtype=np.float64),
            square=float(value["square"]),
            law=str(value["law"]),
            deviations=np.array(value["deviations"], dtype=np.float64),
        ).checked()


def uncertainty_of_sums(evidence: SumsEvidence, target: str = "regularised") -> Uncertainty:
    """The law of the error of least-squares coefficients.

    Parameters
    ----------
    evidence : what was released, and public facts
    target : "regularised" for the minimiser that the population has with the same ridge, "unregularised" for that without

    Notes
    -----
    The estimates differ a little from the released weights: noise on G makes its inverse too large on average, and
    `denoised_curvature` takes that back, so that they are right on average.
    """
    checked_target(target)
    l2 = evidence.l2 if target == "regularised" else 0.0
    if (
        evidence.law == "none"
        and np.linalg.cond(evidence.products + l2 * np.eye(len(evidence.weights))) > _LARGEST_CONDITION
    ):
        raise ParameterError(
            "the columns hang together, so there is no one set of coefficients without a ridge; leave a column out, or use "
            "the target 'regularised'."
        )
    curvature = denoised_curvature(evidence.products, l2, float(evidence.deviations[1]))
    inverse = np.asarray(np.linalg.inv(curvature), dtype=np.float64)
    estimates = inverse @ evidence.targets
    entries, variances = _noise_entries(estimates) @ inverse, _variances(evidence)
    # Noise makes estimates too long, and what it adds through them too large: |b|^2 is about |w|^2 less the trace of the
    # covariance, which has a part that goes with |b|^2 and one from the noise on X^T y that does not.
    own, through = (float(variances[part] @ (entries[part] ** 2).sum(axis=1)) for part in _parts(len(estimates)))
    square = float(estimates @ estimates)
    entries[: -len(estimates)] *= math.sqrt(max(square - own, 0.0) / max(square + through, float(np.finfo(float).tiny)))
    noise = (entries.T * variances) @ entries
    products = positive_part(curvature - l2 * np.eye(len(estimates)))
    ridge = np.outer(estimates, estimates) * l2**2 / evidence.n_rows_high
    variance = _residual_variance(evidence, curvature, products, inverse, estimates, noise + inverse @ ridge @ inverse)
    # With the ridge residuals grow where rows are long in the direction that it took; for Gaussian rows by this much.
    sampling = np.sqrt(np.maximum(np.diagonal(inverse @ (variance * products + ridge) @ inverse), 0.0))
    sampling = np.maximum(sampling, np.finfo(float).tiny)
    units = np.ones(len(estimates))
    if evidence.intercept > 0.0:
        units[-1] = evidence.intercept
    errors = _privacy_errors(evidence, entries, variances)
    return Uncertainty(units * estimates, units * sampling, units * errors)


def _parts(size: int) -> tuple[slice, slice]:
    """Which numbers with noise belong to X^T y, and which to X^T X."""
    return slice(-size, None), slice(None, -size)


def _noise_entries(weights: Array) -> Array:
    """(N, D): how e - E w changes with each number that has noise: diagonal, upper triangle, X^T y."""
    size = len(weights)
    rows, columns = np.triu_indices(size, 1)
    upper = np.zeros((len(rows), size))
    places = np.arange(len(rows))
    upper[places, rows] = -weights[columns]
    upper[places, columns] = -weights[rows]
    return np.vstack([np.diag(-weights), upper, np.eye(size)])


def _variances(evidence: SumsEvidence) -> Array:
    """(N,): variances of these numbers."""
    size = len(evidence.weights)
    return np.repeat(evidence.deviations[:3] ** 2, (size, size * (size - 1) // 2, size))


def _residual_variance(
    evidence: SumsEvidence, curvature: Array, products: Array, inverse: Array, weights: Array, errors: Array
) -> float:
    """s^2, the population's mean squared residual; `errors` (D, D) is the covariance of w but for the part that s^2 makes.

    With Q(w) = y^T y - 2 w . h + w^T G w of the noisy sums, w - b of mean 0 and covariance V, and H the curvature,

        E Q(b) = E Q(w) + tr((2 H - G) V),    V = errors + s^2 H^-1 G H^-1,    E Q(b) = n s^2

    which is solved for s^2: without noise and ridge RSS / (n - D). No less than one standard deviation of its own noise,
    below which noise is all there is.
    """
    residual = evidence.square - 2.0 * (weights @ evidence.targets) + weights @ evidence.products @ weights
    steep = 2.0 * curvature - products
    n_rows = evidence.n_rows
    freedom = max(n_rows - float(np.trace(steep @ inverse @ products @ inverse)), 0.5 * n_rows)
    directions = np.concatenate(
        [weights**2, 2.0 * np.outer(weights, weights)[np.triu_indices(len(weights), 1)], -2.0 * weights]
    )
    noise = math.sqrt(float(directions**2 @ _variances(evidence)) + float(evidence.deviations[3]) ** 2)
    left = float(residual) + float(np.trace(steep @ errors))
    return max(left, noise, float(np.finfo(float).tiny)) / freedom


def _privacy_errors(evidence: SumsEvidence, entries: Array, variances: Array) -> Array:
    """(draws, D): the error of the weights by draws of the noise, from a fixed public seed; `entries` (N, D)."""
    n_numbers, size = entries.shape
    if evidence.law == "none":
        return np.zeros((0, size))
    if evidence.law == "laplace" and n_numbers <= _MOST_DRAWN:
        # Of variance 1.
        draws = draws_of(Noise(Groups((n_numbers,), (math.sqrt(0.5),)), "laplace", 1.0), 0)
        transform: Array = np.sqrt(variances)[:, None] * entries
    else:
        draws = draws_of(Noise(Ball(size, 1.0), "gaussian", 1.0), 0)
        transform = np.asarray(np.linalg.qr(np.sqrt(variances)[:, None] * entries, mode="r"))
    errors: Array = draws @ transform
    return errors
