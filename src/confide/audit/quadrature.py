"""What is spent at one pair of neighbours, without chance: the density of released weights, integrated on a grid.

For one or two weights, where the density is known: noise in the objective, or on the weights. The seal is left out, since it
is far smaller than the noise, and so is what it may cost.
"""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from confide.audit.attacks import claim_of
from confide.audit.confidence import claimed, currency
from confide.audit.densities import Density, is_known, minimiser
from confide.audit.overhearing import overheard
from confide.audit.releases import unfitted
from confide.errors import ParameterError
from confide.privacy.budgets import ZCDP, ApproxDP, Budget
from confide.types import Array

_POINTS = {1: 4001, 2: 201}
"""Points along each axis, by the number of weights."""
_DEPTH = 40.0
"""The grid reaches to where the density is exp(-40) of its largest value."""
_ORDERS = 1.0 + np.geomspace(1e-2, 30.0, 40)
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
        """The rho of zero-concentrated privacy that this pair needs, over orders from 1.01 to 31."""
        found = 0.0
        for one, losses in ((self.first, self.losses), (self.second, -self.losses)):
            kept = one > 0.0
            logs = np.log(one[kept])[None] + (_ORDERS[:, None] - 1.0) * losses[kept][None]
            top = logs.max(axis=1)
            divergences = (top + np.log(np.exp(logs - top[:, None]).sum(axis=1))) / (_ORDERS - 1.0)
            found = max(found, float((divergences / _ORDERS).max()))
        return found

    @property
    def shown(self) -> float:
        """What this pair needs, in the currency of the claim."""
        if isinstance(self.budget, ZCDP):
            return self.rho
        return self.epsilon(self.budget.delta if isinstance(self.budget, ApproxDP) else 0.0)

    @property
    def refuted(self) -> bool:
        """Whether this pair needs more than was claimed, beyond the error of the grid."""
        return self.shown > claimed(self.budget) * (1.0 + 1e-9) + self.error

    def to_dict(self) -> dict[str, Any]:
        """A JSON form."""
        return {
            "claimed": self.budget.to_dict(),
            "refuted": self.refuted,
            "shown": self.shown,
            "epsilon": self.epsilon(),
            "rho": self.rho,
            "error": self.error,
            "n_points": self.n_points,
            "delta_curve": [[epsilon, self.delta(epsilon)] for epsilon in (0.0, 0.25, 0.5, 1.0, 2.0, 4.0)],
        }

    def __str__(self) -> str:
        what = currency(self.budget)
        verdict = "more than was claimed" if self.refuted else "within the claim"
        return (
            f"This pair needs {what} = {self.shown:.6g}, {verdict}: {claimed(self.budget):.6g}. "
            f"The grid has {self.n_points:,} points, and its error is about {self.error:.1e}."
        )


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
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for data in (first, second):
            heard = overheard(lambda data=data: unfitted(estimator).fit(*data))  # type: ignore[misc]
            if len(heard) != 1 or not is_known(heard[0].plan):
                raise ParameterError(
                    "the density of what this estimator releases is not known. Take mechanism='objective' or 'output', and "
                    "centre=False."
                )
            densities.append(Density(heard[0].plan, heard[0].source))
    size = densities[0].plan.problem.n_weights
    if size not in _POINTS:
        raise ParameterError(
            f"exact integrates over one or two weights, and this fit has {size}. fit_intercept=False has fewer."
        )
    points, cell = _grid(densities, size, n_points or _POINTS[size])
    logs = [density.log(points) for density in densities]
    top = max(float(each.max()) for each in logs)
    masses = [np.exp(each - top) * cell for each in logs]
    totals = [float(each.sum()) for each in masses]
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
    points = np.stack([each.ravel() for each in np.meshgrid(*axes, indexing="ij")], axis=1)
    return points, float(np.prod((high - low) / (n - 1)))
