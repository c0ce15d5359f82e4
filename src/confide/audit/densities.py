"""The density of released weights under given rows, where a theorem states it, and the likelihood ratio of two data sets.

Objective perturbation: weights w are released where the noise is b(w) = -(gradient of the sum at w), so the density of w is
that of b(w) times the determinant of the Hessian (Chaudhuri, Monteleoni and Sarwate 2011, section 3.3). Output perturbation:
the density of the noise around the minimiser. The grid, which is far finer than the noise, is left out.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from confide.data.source import RowSource
from confide.erm.row_sums import RowSum
from confide.privacy.bundled_shapes import UNITS, Bundles
from confide.privacy.certificate import certified_minimiser
from confide.privacy.lattice import LatticeGaussian, LatticeNoise
from confide.privacy.mechanism import Noise, Plan, zero_weights
from confide.privacy.ridges_of_columns import ridge_factors
from confide.privacy.shapes import Ball, Cylinder, Shape
from confide.solvers.fallback import NewtonThenFallback
from confide.solvers.proximal import ProximalThenFallback
from confide.types import Array

_AT_ONCE = 2000


@dataclass(frozen=True, slots=True)
class Density:
    """The law of released weights for one data set, by the plan and the rows of the fit.

    Parameters
    ----------
    plan : of the weights, by objective or by output perturbation
    source : the rows
    """

    plan: Plan
    source: RowSource

    def noise_behind(self, weights: Array) -> Array:
        """(n, D): the noise in the objective that has these minimisers (n, D)."""
        return self._sums(weights, 1)[0]

    def log(self, weights: Array) -> Array:
        """(n,): the logarithm of the density at weights (n, D), up to a constant that is the same for all rows."""
        plan, noise = self.plan, self.plan.noise
        if plan.perturbs_objective:
            assert noise is not None  # noqa: S101 - such plans have noise with a density
            behind, determinants = self._sums(weights, 2)
            return log_density(noise, behind) + determinants
        apart = weights - minimiser(plan, self.source)
        return log_density(noise, apart) if noise is not None else _log_density_on_grid(plan.lattice, apart)

    def _sums(self, weights: Array, order: int) -> tuple[Array, Array]:
        """The noise behind weights, and with order 2 the logarithm of the determinant of the Hessian."""
        plan, problem = self.plan, self.plan.problem
        row_sum = RowSum(problem.loss, problem.row_bound, problem.intercept, order, problem.largest_weight)
        prior = np.array(problem.prior) if problem.prior else 0.0
        behind, logs = np.empty(weights.shape), np.zeros(len(weights))
        ridges = plan.l2 * np.array(ridge_factors(problem) or (1.0,) * weights.shape[1])
        for start in range(0, len(weights), _AT_ONCE):
            part = slice(start, start + _AT_ONCE)
            totals = self.source.sum_over_rows(row_sum, np.ascontiguousarray(weights[part]))
            behind[part] = -(totals.gradient + ridges * (weights[part] - prior))
            if order == 2:
                logs[part] = np.linalg.slogdet(totals.hessian + np.diag(ridges))[1]
        return behind, logs


def is_known(plan: Any) -> bool:
    """Whether the density of what is released by this plan is known."""
    return isinstance(plan, Plan) and plan.mechanism in ("objective", "output", "output-laplace") and plan.centring is None


def minimiser(plan: Plan, source: RowSource) -> Array:
    """(1, D): the weights without any noise."""
    problem = plan.problem
    objective = problem.objective(source, plan.l2, zero_weights(problem))
    solver: Any = ProximalThenFallback() if hasattr(problem, "l1_ratio") else NewtonThenFallback()
    with np.errstate(all="ignore"):
        found: Array = certified_minimiser(objective, solver, plan.tolerance, problem.rounding(plan.l2))
    return found


def likelihood_ratio(first: Density, second: Density) -> Callable[[Array], Array]:
    """The logarithm of the density under the first data set over that under the second."""
    return lambda weights: first.log(weights) - second.log(weights)


def log_density(noise: Noise, draws: Array) -> Array:
    """(n,): the logarithm of the density of noise at draws (n, D), up to a constant."""
    if noise.law == "laplace":
        return -noise.scale * shape_norm(noise.shape, draws)
    return -0.5 * whitened(noise, draws) ** 2


def shape_norm(shape: Shape, vectors: Array) -> Array:
    """(n,): the norm |b|_K of the shape, whose unit ball holds every clipped row."""
    if isinstance(shape, Ball):
        return np.asarray(np.linalg.norm(vectors, axis=-1) / shape.scales[0])
    if isinstance(shape, Cylinder):
        lengths = np.linalg.norm(vectors[..., :-1], axis=-1) / shape.scales[0]
        return np.asarray(np.maximum(lengths, np.abs(vectors[..., -1]) / shape.scales[1]))
    parts = np.split(vectors, np.cumsum(shape.sizes)[:-1], axis=-1)
    if isinstance(shape, Bundles):
        norms = [_norm_of_bundle(shape, i, [parts[g] for g in bundle]) for i, bundle in enumerate(shape.bundles)]
        return np.asarray(np.tensordot(np.array(shape.shares) / UNITS, norms, axes=1))
    sums = [np.abs(part).sum(axis=-1) / scale for part, scale in zip(parts, shape.scales, strict=True)]
    return np.asarray(np.max(sums, axis=0))


def _norm_of_bundle(shape: Bundles, position: int, parts: list[Array]) -> Any:
    """(n,): the norm of the groups of one bundle. Away from the constant, linked groups count from their median."""
    own, norms = shape.shape_of(position), []
    for part, scale, linked in zip(parts, own.scales, own.linked, strict=True):
        away = linked and position != shape.home
        middle = np.median(part, axis=-1, keepdims=True) if away else 0.0
        norms.append(np.abs(part - middle).sum(axis=-1) / scale)
    return np.max(norms, axis=0)


def whitened(noise: Noise, vectors: Array) -> Array:
    """(n,): the lengths of vectors (n, D) in deviations of Gaussian noise."""
    covariance = gaussian_covariance(noise.shape, noise.scale)
    inverse = np.linalg.pinv(covariance, rcond=1e-9, hermitian=True)
    return np.asarray(np.sqrt(np.maximum(0.0, np.einsum("ni,ij,nj->n", vectors, inverse, vectors))))


def gaussian_covariance(shape: Shape, scale: float) -> Array:
    """(D, D): the covariance of Gaussian noise of a shape. Linked groups share one direction: proofs/noise.md, section 3."""
    deviations, total = shape.gaussian_deviations(scale), sum(shape.sizes)
    covariance, shared = np.zeros((total, total)), np.zeros(total)
    start, is_linked = 0, any(shape.linked)
    for size, width, linked, deviation in zip(shape.sizes, shape.scales, shape.linked, deviations, strict=True):
        group = slice(start, start + size)
        start += size
        if linked:
            shared[group] = width / size
        elif is_linked and start == total:
            shared[group] = width
            covariance += (deviation / shape.pieces[-1][0]) ** 2 * np.outer(shared, shared)
            continue
        covariance[group, group] += deviation**2 * (np.eye(size) - linked / size)
    return covariance


def _log_density_on_grid(lattice: LatticeNoise | None, apart: Array) -> Array:
    if isinstance(lattice, LatticeGaussian):
        return np.asarray(-0.5 * ((apart / lattice.deviation) ** 2).sum(axis=1))
    scale = getattr(lattice, "scale", math.inf)
    return np.asarray(-np.abs(apart).sum(axis=1) / scale)
