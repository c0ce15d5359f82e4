"""A released table, and quotients of sums over its cells with intervals that account for sampling and for noise.

The interval of a quotient A / B has every q at which A - q B is no larger than sampling and noise make it. For shares
without noise it is the interval of Wilson, and for noise alone that of Fieller. They keep their level where B is small or
noisy; intervals of the delta method do not.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtri

from confide.inference.rate import LEAST_SIGNAL, UNKNOWN, Rate, within
from confide.types import Array

LAPLACE_KURTOSIS = 3.0
"""Excess kurtosis of Laplace noise on one count."""


@dataclass(frozen=True, slots=True, eq=False)
class NoisyTable:
    """A released table. Public.

    Attributes
    ----------
    counts : array
        Noisy numbers of rows by cell. Where the number of rows is public they add up to it.
    deviation : float
        Standard deviation of the noise on each cell.
    total_is_public : bool
    level : float
        Confidence level of each interval.
    kurtosis : float
        Excess kurtosis of the noise on each cell: 3 for Laplace noise, 0 for Gaussian noise.
    """

    counts: Array
    deviation: float
    total_is_public: bool
    level: float
    kurtosis: float = 0.0

    @classmethod
    def of(
        cls,
        released: Array,
        shape: tuple[int, ...],
        deviation: float,
        n_rows: int | None,
        level: float,
        kurtosis: float = 0.0,
    ) -> NoisyTable:
        """A table as it was released. If the number of rows is public, the error in the total is taken evenly from all."""
        counts = released.reshape(shape)
        if n_rows is not None:
            counts = counts + (n_rows - counts.sum()) / counts.size
        return cls(counts, deviation, n_rows is not None, level, kurtosis)

    def sum(self, weights: Array) -> float:
        """A sum of cells with weights of the shape of the table, or of its last axes."""
        return float((weights * self.counts).sum())

    def product_of_noise(self, first: Array, second: Array) -> float:
        """The covariance of the noise on two such sums."""
        first, second = (np.broadcast_to(each, self.counts.shape) for each in (first, second))
        product = float((first * second).sum())
        if self.total_is_public:
            # The part of the noise that changes the total was taken out.
            product -= float(first.sum()) * float(second.sum()) / self.counts.size
        return self.deviation**2 * product

    def quantile(self, weights: Array, variance: float) -> float:
        """The quantile of a sum of cells with this variance, by sampling and by noise. Laplace noise has heavy tails."""
        if variance <= 0.0:
            return quantile_of(self.level, 0.0)
        fourth = self.kurtosis * self.deviation**4 * float((np.broadcast_to(weights, self.counts.shape) ** 4).sum())
        return quantile_of(self.level, min(fourth / variance**2, self.kurtosis))

    def combination(self, value: float, weights: Array) -> Rate:
        """A number with an interval by the delta method: to first order its error is that of a weighted sum of cells."""
        n_rows = max(float(self.counts.sum()), 1.0)
        sampling = self.sum(weights**2) - self.sum(weights) ** 2 / n_rows
        variance = max(sampling, 0.0) + self.product_of_noise(weights, weights)
        half = self.quantile(weights, variance) * math.sqrt(max(variance, 0.0))
        return Rate(value, value - half, value + half)

    def is_known(self, of: Array) -> bool:
        """Whether a number of rows, as a sum over cells, is large enough beside its noise to be divided by."""
        weights = np.broadcast_to(of, self.counts.shape)
        return self.sum(weights) > max(LEAST_SIGNAL * self.deviation * math.sqrt(float((weights**2).sum())), 0.0)

    def share(self, part: Array, of: Array) -> Rate:
        """The share of the rows in the cells `of` that lie in the cells `part`, both marked by 1; within [0, 1]."""
        total = self.sum(of)
        # A share q of B rows has a sampling variance of B q (1 - q) in the number of rows.
        return self._quotient(part, of, (0.0, total, -total), 0.0, 1.0)

    def mean(self, values: Array, of: Array, squares: Array, low: float, high: float) -> Rate:
        """The mean of a number of each row.

        Parameters
        ----------
        values : weights with which the cells add up to the sum of the numbers
        of : marks the cells of the rows with 1
        squares : weights for the sum of their squares
        low, high : between which the mean lies
        """
        return self.quotient(values, of, (squares, values, of), low, high)

    def quotient(
        self, part: Array, of: Array, squares: tuple[Array, Array, Array], low: float = -math.inf, high: float = math.inf
    ) -> Rate:
        """The quotient of the sums of two numbers x and y of each row, within [low, high].

        Parameters
        ----------
        part, of : weights with which the cells add up to the sums of x and of y
        squares : weights for the sums of x^2, of x y and of y^2
        """
        first, mixed, second = map(self.sum, squares)
        return self._quotient(part, of, (first, -2.0 * mixed, second), low, high)

    def _quotient(self, part: Array, of: Array, sampling: tuple[float, float, float], low: float, high: float) -> Rate:
        """The quotient, given the variance of A - q B by sampling as a polynomial in q."""
        if not self.is_known(np.where(of != 0.0, 1.0, 0.0)) or self.sum(of) <= 0.0:
            return UNKNOWN
        top, bottom = self.sum(part), self.sum(of)
        value = min(high, max(low, top / bottom))
        if sampling[0] + value * (sampling[1] + value * sampling[2]) < 0.0:
            # The noise made a sum of squares negative: what sampling adds is then too small to be seen.
            sampling = (0.0, 0.0, 0.0)
        noise = (
            self.product_of_noise(part, part),
            -2.0 * self.product_of_noise(part, of),
            self.product_of_noise(of, of),
        )
        weights = np.broadcast_to(part, self.counts.shape) - value * np.broadcast_to(of, self.counts.shape)
        at_value = [each[0] + value * (each[1] + value * each[2]) for each in (sampling, noise)]
        z = self.quantile(weights, sum(at_value))
        # (A - q B)^2 <= z^2 V(q), as c + b q + a q^2 <= 0.
        c, b, a = (
            square - z * z * (s + n)
            for square, s, n in zip((top**2, -2.0 * top * bottom, bottom**2), sampling, noise, strict=True)
        )
        if a <= 0.0:
            return UNKNOWN
        root = math.sqrt(max(b * b - 4.0 * a * c, 0.0))
        ends = ((-b - root) / (2.0 * a), (-b + root) / (2.0 * a))
        return within(value, ends[0], ends[1], low, high)


def quantile_of(level: float, kurtosis: float) -> float:
    """The upper quantile of a symmetric law of variance 1 with this excess kurtosis: Cornish and Fisher (1937)."""
    z = float(ndtri(0.5 + 0.5 * level))
    # Where the correction is negative, the normal quantile is the wider one.
    return z + max(0.0, (z**3 - 3.0 * z) * kurtosis / 24.0)


def mean_of(rates: list[Rate]) -> Rate:
    """The mean of rates of different rows, whose errors are independent. It is hidden if one of them is."""
    return combined(rates, [1.0 / len(rates)] * len(rates))


def difference_of(first: Rate, second: Rate) -> Rate:
    """The first less the second, of rates of different rows, whose errors are independent."""
    return combined([first, second], [1.0, -1.0])


def combined(rates: list[Rate], weights: list[float]) -> Rate:
    """A weighted sum of independent rates. Its interval has their distances from the ends of theirs, added up as squares.

    This is the method of variance estimates recovery, MOVER (Zou and Donner, Statistics in Medicine 27, 2008).
    """
    below = above = value = 0.0
    for rate, weight in zip(rates, weights, strict=True):
        if rate.value is None or rate.low is None or rate.high is None:
            return UNKNOWN
        down, up = rate.value - rate.low, rate.high - rate.value
        below += (weight * (down if weight > 0.0 else up)) ** 2
        above += (weight * (up if weight > 0.0 else down)) ** 2
        value += weight * rate.value
    return Rate(value, value - math.sqrt(below), value + math.sqrt(above))
