"""What a ridge may ask of the weights of one column: that they are small, and that neighbours do not differ much."""

from __future__ import annotations

import math
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np

from confide.errors import ParameterError
from confide.types import Array

LEAST_STRENGTH, LARGEST_STRENGTH = 1e-6, 1e6
"""The range of the strengths of a penalty."""


@dataclass(frozen=True, slots=True)
class Smooth:
    """A penalty on differences of neighbouring weights, for curves with knots and for ordered levels.

    The weights u of the column are penalised by ridge * c * (|u|^2 + strength * sum of squared differences), and their mean
    is held near 0, because the intercept stands for it. The number c depends on nothing else: with it, the smallest
    penalty of a weight at one level is, on average, what it is without smoothing.

    Parameters
    ----------
    strength : float, default 100.0
        How much the differences count, from 1e-6 to 1e6. The stronger, the smoother is the effect.
    order : {1, 2} or None, default None
        Order of the differences: 1 pulls towards a constant, 2 towards a straight line. None is 2 for numbers with knots and
        1 for the levels of a category, in the order in which the schema lists them.
    ridge : float, default 1.0
        How strongly the column is penalised as a whole, relative to a column without a penalty of its own, from 1e-6 to 1e6.

    Raises
    ------
    ParameterError
        If a number is outside its range.

    Examples
    --------
    >>> Smooth(4.0)
    Smooth(strength=4.0, order=None, ridge=1.0)
    """

    strength: float = 100.0
    order: int | None = None
    ridge: float = 1.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "strength", checked_strength("the strength of Smooth", self.strength))
        object.__setattr__(self, "ridge", checked_strength("the ridge of Smooth", self.ridge))
        if isinstance(self.order, bool) or self.order not in (None, 1, 2):
            raise ParameterError("the order of Smooth must be 1 or 2.")

    def to_dict(self) -> dict[str, Any]:
        """A JSON-able form."""
        return {"strength": self.strength, "order": self.order, "ridge": self.ridge}


def checked_strength(what: str, value: Any) -> float:
    """A strength within its range."""
    ok = isinstance(value, Real) and not isinstance(value, bool)
    if not ok or not LEAST_STRENGTH <= float(value) <= LARGEST_STRENGTH:
        raise ParameterError(f"{what} must be a number from 1e-6 to 1e6.")
    return float(value)


def smoothing_form(points: Array, smooth: Smooth, order: int) -> Array:
    """The symmetric matrix (k, k) of the penalty on weights at these points (k,), which rise.

    Evenly spaced points give plain differences. Otherwise slopes between points are compared, in units of the mean distance.
    """
    n_points = points.size
    if n_points <= order:
        raise ParameterError(f"differences of order {order} need more than {order} weights, and there are {n_points}.")
    steps = np.diff(points) / np.diff(points).mean()
    differences = np.diff(np.eye(n_points), axis=0) / (steps if order == 2 else np.sqrt(steps))[:, None]
    if order == 2:
        differences = np.diff(differences, axis=0)
    rough = smooth.strength * differences.T @ differences
    # The mean is held as strongly as the roughest weights are.
    form = np.eye(n_points) + rough + (1.0 + np.linalg.norm(rough, 2)) / n_points
    usual = float(np.diag(np.linalg.inv(form)).mean())
    found: Array = smooth.ridge * usual * form
    assert math.isfinite(usual)  # noqa: S101 - the form is at least the identity
    return found
