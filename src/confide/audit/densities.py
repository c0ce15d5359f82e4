"""The density of released weights under given rows, where a theorem states it, and the likelihood ratio of two data sets.

Objective perturbation: weights w are released where the noise is b(w) = -(gradient of the sum at w), so the density of w is
that of b(w) times the determinant of the Hessian (Chaudhuri, Monteleoni and Sarwate 2011, section 3.3). Output perturbation:
the density of the noise around the minimiser. The grid, which is far finer than the noise, is left out.
"""

from __future__ import annotations

import math
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any
from unittest.mock import patch

import numpy as np

from confide.array_types import Array
from confide.audit.attacks import amount_shown, claim_of, currency, rho_of
from confide.audit.releases import arguments_of, unfitted
from confide.blocks import as_json
from confide.erm.row_sums import RowSum
from confide.erm.source import RowSource
from confide.errors import ParameterError, checked_count, wording
from confide.privacy.budgets import Budget
from confide.privacy.bundles import UNITS, Bundles
from confide.privacy.certificate import certified_minimiser
from confide.privacy.mechanism import Noise, Plan, Release, zero_weights
from confide.privacy.shapes import Ball, Cylinder, Shape
from confide.solvers.fallback import NewtonThenFallback
from confide.training.auto_mechanism import MECHANISMS

_AT_ONCE = 2000


@dataclass(frozen=True, slots=True)
class Density:
    """The law of released weights for one data set, by the plan and the rows of the fit.

    Parameters
    ----------
    plan : of the weights, by objective or by output perturbation
    source : the rows
    release : what the mechanism gave in the fit that was overheard; None if there was none
    """

    plan: Plan
    source: RowSource
    release: Release | None = None

    def noise_behind(self, weights: Array) -> Array:
        """(n, D): the noise in the objective that has these minimisers (n, D)."""
        return self._sums(weights, 1)[0]

    def log(self, weights: Array) -> Array:
        """(n,): the logarithm of the density at weights (n, D), up to a constant that is the same for all rows."""
        plan, noise = self.plan, self.plan.noise
        if noise is not None and noise.in_objective:
            behind, determinants = self._sums(weights, 2)
            return log_density(noise, behind) + determinants
        apart = weights - minimiser(plan, self.source)
        if noise is not None:
            return log_density(noise, apart)
        lattice: Any = plan.lattice
        if lattice is not None and lattice.law == "gaussian":
            return np.asarray(-0.5 * ((apart / lattice.deviation) ** 2).sum(axis=1))
        return np.asarray(-np.abs(apart).sum(axis=1) / getattr(lattice, "scale", math.inf))

    def _sums(self, weights: Array, order: int) -> tuple[Array, Array]:
        """The noise behind weights, and with order 2 the logarithm of the determinant of the Hessian."""
        plan, problem = self.plan, self.plan.problem
        row_sum = RowSum(problem.loss, problem.row_bound, problem.intercept, order, problem.largest_weight)
        prior = np.array(problem.prior) if problem.prior else 0.0
        behind, logs = np.empty(weights.shape), np.zeros(len(weights))
        ridges = np.broadcast_to(problem.penalty.ridges(plan.l2), weights.shape[1])
        for start in range(0, len(weights), _AT_ONCE):
            part = slice(start, start + _AT_ONCE)
            totals = self.source.sum_over_rows(row_sum, np.ascontiguousarray(weights[part]))
            behind[part] = -(totals.gradient + ridges * (weights[part] - prior))
            if order == 2:
                logs[part] = np.linalg.slogdet(totals.hessian + np.diag(ridges))[1]
        return behind, logs


def is_known(plan: Any) -> bool:
    """Whether the density of what is released by this plan is known."""
    return bool(getattr(plan, "weights_on_grid", False))


def minimiser(plan: Plan, source: RowSource) -> Array:
    """(1, D): the weights without any noise."""
    problem = plan.problem
    objective = problem.objective(source, plan.l2, zero_weights(problem))
    solver = NewtonThenFallback()
    with np.errstate(all="ignore"):
        return certified_minimiser(objective, solver, plan.tolerance, problem.rounding(plan.l2))


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
    parts = np.split(vectors, np.cumsum(shape.sizes)[:-1], axis=-1)
    if shape.name in (Ball.name, Cylinder.name):
        pairs = zip(parts, shape.scales, strict=True)
        return np.asarray(np.max([np.linalg.norm(part, axis=-1) / scale for part, scale in pairs], axis=0))
    if isinstance(shape, Bundles):
        norms = []
        for position, bundle in enumerate(shape.bundles):
            own, sums = shape.shape_of(position), []
            for group, scale, linked in zip(bundle, own.scales, own.linked, strict=True):
                # Away from the constant, linked groups count from their median.
                away = linked and position != shape.home
                middle = np.median(parts[group], axis=-1, keepdims=True) if away else 0.0
                sums.append(np.abs(parts[group] - middle).sum(axis=-1) / scale)
            norms.append(np.max(sums, axis=0))
        return np.asarray(np.tensordot(np.array(shape.shares) / UNITS, norms, axes=1))
    sums = [np.abs(part).sum(axis=-1) / scale for part, scale in zip(parts, shape.scales, strict=True)]
    return np.asarray(np.max(sums, axis=0))


def whitened(noise: Noise, vectors: Array) -> Array:
    """(n,): the lengths of vectors (n, D) in deviations of Gaussian noise."""
    inverse = np.linalg.pinv(gaussian_covariance(noise.shape, noise.scale), rcond=1e-9, hermitian=True)
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


# The plans and the rows of a fit, overheard while it runs: what an attacker who knows all but one row can work out too.
#
# Nothing in the rooms that promise privacy knows of audits. So their methods are replaced for the time of a fit, under a
# lock.

_LOCK = threading.RLock()


@contextmanager
def replaced(changes: list[tuple[type, str, Callable[..., Any]]]) -> Iterator[None]:
    """Replace methods of classes for a while. Each new method is given the old one first, and then its arguments."""
    with _LOCK, ExitStack() as stack:
        for owner, name, new in changes:
            made = partial(new, owner.__dict__[name])
            stack.enter_context(patch.object(owner, name, lambda *given, _made=made, **named: _made(*given, **named)))
        yield


def mechanisms() -> list[type]:
    """The classes of all mechanisms that release weights."""
    return list({type(mechanism) for name, mechanism in MECHANISMS.items() if name != "none"})


def overheard(fit: Callable[[], Any]) -> list[Density]:
    """Every release of weights in a fit, without a warning."""
    heard: list[Density] = []

    def noted(old: Callable[..., Release], mechanism: Any, plan: Plan, source: RowSource, *rest: Any) -> Release:
        release = old(mechanism, plan, source, *rest)
        heard.append(Density(plan, source, release))
        return release

    with warnings.catch_warnings(), replaced([(kind, "release", noted) for kind in mechanisms()]):
        warnings.simplefilter("ignore")
        fit()
    return heard


# What is spent at one pair of neighbours, without chance: the density of released weights, integrated on a grid.
#
# For one or two weights, where the density is known: noise in the objective, or on the weights. The seal is left out, since
# it is far smaller than the noise, and so is what it may cost.

_POINTS = {1: 4001, 2: 201}
"""Points along each axis, by the number of weights."""
_DEPTH = 40.0
"""The grid reaches to where the density is exp(-40) of its largest value."""
_LARGEST_ERROR = 0.01


@dataclass(frozen=True, slots=True, eq=False)
class ExactResult:
    """What one pair of neighbours costs, by quadrature.

    Attributes
    ----------
    budget : Budget
        What was claimed.
    n_points : int
        Points of the grid.
    error : float
        How far the two densities are from having the same integral, as they must: an estimate of the error of the grid.
    losses : array (n_points,)
        Logarithm of the density under the first data set over that under the second.
    first, second : arrays (n_points,)
        Probabilities of the cells of the grid under either data set.
    """

    budget: Budget
    n_points: int
    error: float
    losses: Array = field(repr=False)
    first: Array = field(repr=False)
    second: Array = field(repr=False)

    def delta(self, epsilon: float) -> float:
        """The delta that this pair needs at an epsilon: the larger of both directions."""
        factor = math.exp(min(epsilon, 700.0))
        ways = ((self.first, self.second), (self.second, self.first))
        return max(float(np.maximum(0.0, one - factor * other).sum()) for one, other in ways)

    def epsilon(self, delta: float = 0.0) -> float:
        """The epsilon that this pair needs at a delta. At 0 it is the largest loss at a point of the grid."""
        low, high = 0.0, float(np.abs(self.losses).max())
        if delta <= 0.0:
            return high
        for _ in range(60):
            middle = 0.5 * (low + high)
            low, high = (low, middle) if self.delta(middle) <= delta else (middle, high)
        return high

    @property
    def rho(self) -> float:
        """The rho of zero-concentrated privacy that this pair needs."""
        return rho_of(self.first, self.second, self.losses)

    @property
    def shown(self) -> float:
        """What this pair needs, in the currency of the claim."""
        return amount_shown(self, self.budget)

    @property
    def refuted(self) -> bool:
        """Whether this pair needs more than was claimed, beyond the error of the grid."""
        return self.shown > self.budget.amount * (1.0 + 1e-9) + self.error

    def to_dict(self) -> dict[str, Any]:
        """A JSON form."""
        curve = [[epsilon, self.delta(epsilon)] for epsilon in (0.0, 0.25, 0.5, 1.0, 2.0, 4.0)]
        own = {"claimed": self.budget.to_dict(), "epsilon": self.epsilon(), "delta_curve": curve}
        return as_json(self, "claimed refuted shown epsilon rho error n_points delta_curve", **own)

    def __str__(self) -> str:
        what = currency(self.budget)
        verdict = "more than was claimed" if self.refuted else "within the claim"
        return wording("what a pair needs", pair=self, what=what, verdict=verdict)


def exact(estimator: Any, first: tuple[Any, ...], second: tuple[Any, ...], *, n_points: int | None = None) -> ExactResult:
    """Integrate the density of the released weights under either of two neighbouring data sets.

    Parameters
    ----------
    estimator : estimator
        One of this package with one or two weights, with noise in the objective or on the weights, and no centre.
    first, second : tuple
        The arguments of `fit`, such as (X, y).
    n_points : int or None
        Points along each axis; None takes 4,001 for one weight and 201 for two.

    Returns
    -------
    ExactResult

    Raises
    ------
    ParameterError
        If the density is not known, there are more than two weights, or the grid is too coarse.

    Notes
    -----
    Guarantee: none. Both data sets are read, and no ledger is charged, so they should be made up.

    Source: Chaudhuri, Monteleoni and Sarwate (2011), section 3.3, for the density.
    """
    densities = []
    for data in (first, second):
        heard = overheard(partial(unfitted(estimator).fit, *arguments_of(data)))
        if len(heard) != 1 or not is_known(heard[0].plan):
            raise ParameterError(wording("unknown density"))
        densities += heard
    size = densities[0].plan.problem.n_weights
    if densities[1].plan.problem.n_weights != size:
        raise ParameterError("first and second must have rows of the same columns.")
    if size not in _POINTS:
        raise ParameterError(f"exact is for one or two weights, and this fit has {size}. fit_intercept=False has fewer.")
    points, cell = _grid(densities, size, checked_count("n_points", _POINTS[size] if n_points is None else n_points, 2))
    logs = [density.log(points) for density in densities]
    top = max(float(log.max()) for log in logs)
    masses = [np.exp(log - top) * cell for log in logs]
    totals = [float(mass.sum()) for mass in masses]
    error = abs(math.log(totals[0] / totals[1]))
    if error > _LARGEST_ERROR:
        raise ParameterError(f"the grid is too coarse: its error is {error:.2g}. Give more n_points.")
    claim = claim_of(estimator, None)
    return ExactResult(claim, len(points), error, logs[0] - logs[1], masses[0] / totals[0], masses[1] / totals[1])


def _grid(densities: list[Density], size: int, n: int) -> tuple[Array, float]:
    """(points (n^size, size), volume of a cell): a grid that holds all but a negligible part of both laws."""
    centres = np.concatenate([minimiser(density.plan, density.source) for density in densities])
    directions = np.eye(size) if size == 1 else np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0], [1.0, -1.0]])
    low, high = centres.min(axis=0), centres.max(axis=0)
    for density, centre in zip(densities, centres, strict=True):
        start = float(density.log(centre[None])[0])
        for direction in (*directions, *-directions):
            step = 1e-6
            while float(density.log((centre + step * direction)[None])[0]) > start - _DEPTH and step < 1e12:
                step *= 1.5
            low, high = np.minimum(low, centre + step * direction), np.maximum(high, centre + step * direction)
    axes = [np.linspace(low[i], high[i], n) for i in range(size)]
    points = np.stack([coordinate.ravel() for coordinate in np.meshgrid(*axes, indexing="ij")], axis=1)
    return points, float(np.prod((high - low) / (n - 1)))
