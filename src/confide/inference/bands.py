"""Bands of curves: intervals that all hold together. Post-processing of what was released."""

from __future__ import annotations

import numpy as np
from scipy.special import ndtr, ndtri

from confide.types import Array

_POINTS = 8192
_PRIMES = (2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41, 43, 47, 53)
"""Multiples of the roots of primes (Richtmyer's points) stand for draws of a normal vector, so a band is the same whenever
it is made."""


def level_of_each(level: float, n_intervals: int) -> float:
    """The level of each of so many independent intervals that all hold together with probability `level` (Sidak)."""
    return float(level ** (1.0 / max(1, n_intervals)))


def level_of_band(level: float, errors: Array) -> float:
    """The level of each interval of a curve whose intervals all hold together with probability `level`.

    Parameters
    ----------
    level : of the band
    errors : (places, k), a matrix E such that E E^T is the covariance of the curve at the places
    """
    sizes = np.sqrt((errors**2).sum(axis=1))
    moving = errors[sizes > 1e-12 * max(float(sizes.max(initial=0.0)), 1e-300)]
    if moving.size == 0:
        return level
    # The main directions of the curve's errors, and each place at deviation 1 again without the others.
    main = np.linalg.svd(moving / np.sqrt((moving**2).sum(axis=1))[:, None], full_matrices=False)
    directions = (main.U * main.S)[:, : len(_PRIMES)]
    directions /= np.sqrt((directions**2).sum(axis=1))[:, None]
    roots = np.sqrt(np.array(_PRIMES[: directions.shape[1]], dtype=np.float64))
    points = ndtri(np.modf((np.arange(_POINTS)[:, None] + 0.5) * roots)[0])
    largest = np.abs(points @ directions.T).max(axis=1)
    critical = max(float(np.quantile(largest, level)), float(ndtri(0.5 + 0.5 * level)))
    return float(2.0 * ndtr(critical) - 1.0)
