"""Rates on private rows, from one noisy histogram of scores by class: post-processing of what was released.

Intervals hold both doubts: that the rows are a sample, and the noise.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from scipy.special import ndtr, ndtri

from confide.array_types import Array
from confide.blocks import Block, Shown, as_json, frame_of, heading, json_value, table, text
from confide.errors import ParameterError, checked_flag, wording
from confide.inference.intervals import draws_of_errors, level_of_each
from confide.privacy.budgets import budget_from_dict
from confide.privacy.noisy_sum import SumPlan
from confide.privacy.tables import Counts

if TYPE_CHECKING:
    import pandas as pd


# A number with its interval.

LEAST_SIGNAL = 4.0
"""In standard deviations of the noise: below it a number of rows is not known well enough to divide by."""


@dataclass(frozen=True, slots=True)
class Interval:
    """A number with its interval: what rates, coefficients, tests of a family and lines of pictures have in common.

    Attributes
    ----------
    estimate : float or None
    low, high : float or None
        The ends. None where no interval was bought; all three are None where the noise hides too much to tell.
    """

    estimate: float | None
    low: float | None
    high: float | None

    @property
    def numbers(self) -> tuple[float, float, float] | None:
        """The number, low and high; None where one of them is not known."""
        number, low, high = self.estimate, self.low, self.high
        return None if number is None or low is None or high is None else (number, low, high)

    def mapped(self, function: Callable[[float], float]) -> Self:
        """The same in another unit, by a function that rises, or that falls everywhere."""
        if self.numbers is None:
            return self
        estimate, *ends = map(function, self.numbers)
        return replace(self, estimate=estimate, low=min(ends), high=max(ends))

    def scaled(self, factor: float, shift: float = 0.0) -> Self:
        """The same times a factor, which may be negative, and moved."""
        return self.mapped(lambda number: shift + factor * number)

    @property
    def readable(self) -> tuple[str, ...]:
        """All three as text: four digits that count, and as many as show two of how far apart they are.

        What is not a number is left empty.
        """
        numbers = self.numbers or (math.nan,) * 3
        known = [number for number in numbers if math.isfinite(number)]
        apart = max(known) - min(known) if known else 0.0
        size = math.floor(math.log10(max(map(abs, known)))) if apart > 0.0 else 0
        places = max(0, min(15, 1 - math.floor(math.log10(apart)))) if apart > 0.0 and -5 <= size <= 5 else 0
        texts = (max(readable(number), f"{number:.{places}f}" if places else "", key=len) for number in numbers)
        return tuple("" if math.isnan(number) else text for number, text in zip(numbers, texts, strict=True))


def readable(value: float) -> str:
    """A number with four digits that count, without an exponent where it can be read without one."""
    if value == 0.0 or not math.isfinite(value):
        return f"{value:.4f}"
    size = math.floor(math.log10(abs(value)))
    return f"{value:.3e}" if not -5 <= size <= 5 else f"{value:.{max(0, 3 - size)}f}"


def json_form(value: Any) -> Any:
    """A value of a table as JSON has it: a number that is not finite is None, and a tuple is a list."""
    if isinstance(value, tuple):
        return list(value)
    return None if isinstance(value, float) and not math.isfinite(value) else value


class Rate(Interval):
    """A released number with its interval; all three are None where noise hides too much to tell.

    Attributes
    ----------
    value, low, high : float or None
    """

    __slots__ = ()

    def __str__(self) -> str:
        value, low, high = self.texts()
        return f"{value} ({low} to {high})" if low else value

    @property
    def value(self) -> float | None:
        """The number."""
        return self.estimate

    def divided_by(self, total: float) -> Rate:
        """The rate divided by a total of at least 1; its interval grows where it does not hold the quotient."""
        if self.numbers is None:
            return self
        value, low, high = self.numbers
        return Rate(value / total, min(low, value / total), max(high, value / total))

    def texts(self, places: int = 0, places_of_exact: int = 4) -> tuple[str, str, str]:
        """Value, low and high as text, with so many more digits than `places` that the ends of the interval differ."""
        if self.numbers is None:
            return HIDDEN, "", ""
        width = self.numbers[2] - self.numbers[1]
        shown = max(places, 1 - math.floor(math.log10(width))) if width > 0.0 else places_of_exact
        value, low, high = (f"{number:,.{shown}f}" for number in self.numbers)
        return value, low, high

    def to_dict(self) -> dict[str, float | None]:
        """A JSON form."""
        return {"value": self.value, "low": self.low, "high": self.high}


HIDDEN = "hidden by the noise"
UNKNOWN = Rate(None, None, None)
"""A number that the noise hides."""


def within(value: float, low: float, high: float, least: float, most: float) -> Rate:
    """A number with its interval, both cut to what is possible, from `least` to `most`; the interval holds the number.

    Where noise moved all of the interval beyond what is possible, it is one of half its length beside the nearest possible
    number. A number is hidden where its interval holds all that is possible.
    """
    value, half = min(most, max(least, value)), 0.5 * (high - low)
    ends = min(value, max(least, low)), max(value, min(most, high))
    if ends[0] >= ends[1]:
        ends = max(least, value - half), min(most, value + half)
    says_nothing = ends == (least, most) and least < most and math.isfinite(most - least)
    return UNKNOWN if says_nothing else Rate(value, *ends)


# A released table, and quotients of sums over its cells with intervals that account for sampling and for noise.
#
# The interval of a quotient A / B has every q at which A - q B is no larger than sampling and noise make it. For shares
# without noise it is the interval of Wilson, and for noise alone that of Fieller. They keep their level where B is small or
# noisy; intervals of the delta method do not.


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
        cls, released: Array, shape: tuple[int, ...], deviation: float, n_rows: int | None, level: float, kurtosis: float
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
        first, second = (np.broadcast_to(weights, self.counts.shape) for weights in (first, second))
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
        sampling = self.sum(weights**2) - self.sum(weights) ** 2 / max(float(self.counts.sum()), 1.0)
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
        noise = self.product_of_noise(part, part), -2.0 * self.product_of_noise(part, of), self.product_of_noise(of, of)
        weights = np.broadcast_to(part, self.counts.shape) - value * np.broadcast_to(of, self.counts.shape)
        z = self.quantile(weights, sum(s + value * (mixed + value * t) for s, mixed, t in (sampling, noise)))
        # (A - q B)^2 <= z^2 V(q), as c + b q + a q^2 <= 0.
        squares = zip((top**2, -2.0 * top * bottom, bottom**2), sampling, noise, strict=True)
        c, b, a = (square - z * z * (s + n) for square, s, n in squares)
        if a <= 0.0:
            return UNKNOWN
        root = math.sqrt(max(b * b - 4.0 * a * c, 0.0))
        ends = ((-b - root) / (2.0 * a), (-b + root) / (2.0 * a))
        return within(value, ends[0], ends[1], low, high)


def facts_of_release(evaluation: Any) -> dict[str, Any]:
    """What every evaluation says of its release, as JSON values."""
    of_plan = as_json(evaluation.plan, "budget neighbours")
    return of_plan | as_json(evaluation, "void model_checksums charged_to interrupted level")


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
        if rate.numbers is None:
            return UNKNOWN
        middle, low, high = rate.numbers
        down, up = middle - low, high - middle
        below += (weight * (down if weight > 0.0 else up)) ** 2
        above += (weight * (up if weight > 0.0 else down)) ** 2
        value += weight * middle
    return Rate(value, value - math.sqrt(below), value + math.sqrt(above))


def guarantee_in_words(evaluation: Any) -> str:
    """Under which budget it was released, or why there is no guarantee; of an evaluation, or of its document."""
    facts = evaluation if isinstance(evaluation, dict) else facts_of_release(evaluation)
    released = f"Released under {budget_from_dict(facts['budget'])} ({facts['neighbours']})."
    return " ".join([f"NOT PRIVATE. {facts['void']}" if facts["void"] else released, *facts.get("interrupted", ())])


def digits_of(rate: Rate) -> tuple[str, str, str]:
    """A number with the ends of its interval, with four digits behind the point or of a larger number."""
    if rate.numbers is None:
        return "hidden", "", ""
    largest = max(map(abs, rate.numbers))
    places = 4 if largest < 10.0 else max(0, 5 - len(f"{largest:.0f}"))
    value, low, high = (f"{number:,.{places}f}" for number in rate.numbers)
    return value, low, high


@dataclass(frozen=True, slots=True)
class Evaluation(Shown):
    """How good a model is on private rows. Public: made of a noisy histogram and public facts.

    Attributes
    ----------
    counts : array (2, n_bins)
        Noisy numbers of rows by class, the negative one first, and bin of the probability (of a support vector machine: of
        its score through the logistic function) of the positive class. Under replace-one they add up to the number of rows.
    plan : SumPlan[Counts]
        What the histogram cost, and its noise.
    level : float
        Of each interval by itself.
    outcome : str
        The positive class: the schema's, or else the second.
    n_rows : int or None
        None where it is private: of persons with a column in the schema, it is after rows beyond the cap were dropped.
    has_probabilities : bool
        Whether the bins are those of probabilities.
    void : str or None
        Why there is no guarantee; None if there is one.
    model_checksums : tuple of str
        SHA-256 of the file of the model, as `save` writes it.
    charged_to : str or None
        Identity of the ledger that was charged; None if none was.
    interrupted : tuple of str
        What is assumed of interrupted attempts under the same charge; empty if there were none.
    """

    counts: Array
    plan: SumPlan[Counts]
    level: float
    outcome: str
    n_rows: int | None
    has_probabilities: bool
    void: str | None
    model_checksums: tuple[str, ...] = ()
    charged_to: str | None = None
    interrupted: tuple[str, ...] = ()

    @property
    def n_bins(self) -> int:
        """Bins of equal width; an edge lies where predictions change."""
        return int(self.counts.shape[1])

    @property
    def accuracy(self) -> Rate:
        """The part of rows that are predicted right."""
        return self.table.share(self._cells(0, 0) + self._cells(1, 1), np.ones_like(self.counts))

    @property
    def confusion(self) -> tuple[tuple[Rate, Rate], tuple[Rate, Rate]]:
        """Parts of all rows by true class (first index) and predicted class, negative first. They add up to 1."""
        cells = [self.table.share(self._cells(*place), np.ones_like(self.counts)) for place in np.ndindex(2, 2)]
        if (total := sum(cell.value or 0.0 for cell in cells)) > 1.0:
            # The noise made some sums negative. These are shown as 0, and the others share what is left.
            cells = [cell.divided_by(total) for cell in cells]
        return (cells[0], cells[1]), (cells[2], cells[3])

    @property
    def sensitivity(self) -> Rate:
        """The part of the positive rows that are predicted so (recall)."""
        return self.table.share(self._cells(1, 1), self._of_class(1))

    @property
    def specificity(self) -> Rate:
        """The part of the negative rows that are predicted so."""
        return self.table.share(self._cells(0, 0), self._of_class(0))

    @property
    def auc(self) -> Rate:
        """How probable it is that a positive row scores above a negative one; half a point for two in the same bin."""
        if not all(self.table.is_known(self._of_class(position)) for position in (0, 1)):
            return UNKNOWN
        return self.interval_of(_area)

    @property
    def calibration(self) -> tuple[Rate, ...]:
        """For each bin the part of its rows that are positive: for a calibrated model it lies within the bin."""
        if not self.has_probabilities:
            raise ParameterError("a support vector machine gives no probabilities, so nothing to calibrate.")
        bins = (np.outer([1.0, 1.0], row) for row in np.eye(self.n_bins))
        return tuple(self.table.share(rows * [[0.0], [1.0]], rows) for rows in bins)

    @property
    def edges(self) -> tuple[float, ...]:
        """The ends of the bins of `calibration`."""
        return tuple(place / self.n_bins for place in range(self.n_bins + 1))

    @property
    def table(self) -> NoisyTable:
        """The counts with their noise, for quotients of their sums."""
        plan = self.plan
        return NoisyTable(self.counts, plan.deviation, self.n_rows is not None, self.level, plan.excess_kurtosis)

    def _cells(self, true: int, predicted: int) -> Array:
        """Marks the rows of one class that are predicted as one class."""
        which, half = np.zeros_like(self.counts), self.n_bins // 2
        which[true, half:] = predicted
        which[true, :half] = 1 - predicted
        return which

    def _of_class(self, position: int) -> Array:
        return np.outer(np.eye(2)[position], np.ones(self.n_bins))

    def interval_of(self, statistic: Callable[[Array], float]) -> Rate:
        """A statistic of the counts (2, n_bins), with an interval by the delta method, within [0, 1]."""
        value, errors = statistic(self.counts), self.errors_of(statistic)
        margin = quantile_of(self.level, 0.0) * math.sqrt(errors @ errors)
        return within(float(value), float(value - margin), float(value + margin), 0.0, 1.0)

    def errors_of(self, statistic: Callable[[Array], float]) -> Array:
        """Numbers whose squares add up to the variance of a statistic, and their products with others to covariances."""
        # Rows are a sample: counts are multinomial, at rates that are not negative.
        gradient, chances = self._gradient(statistic), np.maximum(self.counts.ravel(), 0.0)
        chances = chances / chances.sum()
        sampling = math.sqrt(max(self.counts.sum(), 0.0)) * np.sqrt(chances) * (gradient - chances @ gradient)
        # Of a public total the part of the noise that changes it was taken out.
        noise = self.plan.deviation * (gradient - gradient.mean() * (self.n_rows is not None))
        return np.concatenate([sampling, noise])

    def _gradient(self, statistic: Callable[[Array], float]) -> Array:
        """How much the statistic changes with each count, (2 * n_bins,)."""
        gradient, step = np.empty(self.counts.size), 1e-4 * self.counts.sum()
        for cell in range(self.counts.size):
            moved = (step * (np.arange(self.counts.size) == cell)).reshape(self.counts.shape)
            gradient[cell] = (statistic(self.counts + moved) - statistic(self.counts - moved)) / (2.0 * step)
        return gradient

    @property
    def rates(self) -> dict[str, Rate]:
        """The rates by name."""
        return {name: getattr(self, name) for name in ("accuracy", "sensitivity", "specificity", "auc")}

    @property
    def calibration_band(self) -> tuple[Rate, ...]:
        """The calibration with intervals that all hold together with probability `level`: a band."""
        return replace(self, level=level_of_each(self.level, self.n_bins)).calibration

    def to_dict(self) -> dict[str, Any]:
        """A JSON form."""
        return {
            **facts_of_release(self),
            **as_json(self, "outcome n_rows counts"),
            "count_deviation": self.plan.deviation,
            **json_value(self.rates),
            "confusion": json_value(self.confusion),
            "calibration": json_value(self.calibration) if self.has_probabilities else None,
        }

    def to_frame(self) -> pd.DataFrame:
        """The rates as a pandas frame: value, low and high."""
        lines = [rate.to_dict() for rate in self.rates.values()]
        return frame_of(lines, index=list(self.rates), dtype=float).rename_axis("rate")

    def blocks(self) -> Iterator[Block]:
        """The rates with their intervals, and under which budget they were released."""
        rows = "private rows" if self.n_rows is None else f"{self.n_rows:,} private rows"
        yield heading(f"Rates on {rows}, with intervals at {self.level:g}")
        yield table(("rate", "value", "low", "high"), [(name, *digits_of(rate)) for name, rate in self.rates.items()])
        yield text(wording("positive and negative rows", outcome=self.outcome))
        yield text(self.noise_in_words(), self.guarantee_in_words())

    guarantee_in_words = guarantee_in_words

    def noise_in_words(self) -> str:
        """Of how many counts it is made, with what noise."""
        return f"It is made of {2 * self.n_bins} counts with noise of standard deviation {self.plan.deviation:.4g}."


def _area(counts: Array) -> float:
    negative, positive = counts
    return float(positive @ (np.cumsum(negative) - 0.5 * negative) / (positive.sum() * negative.sum()))


# The ROC curve of a classifier from one noisy histogram of scores by class: post-processing of what was released.
#
# At each threshold between two bins the counts give a rate of false positives and a sensitivity. Between thresholds the
# curve is a straight line. The interval at a given rate of false positives covers both that the rows are a sample, and the
# noise in all counts: those that fix the threshold, and those that fix the sensitivity there. The simultaneous band is
# wider: it holds the whole curve at once.

_STEPS = 12
_APART = 1e-9
"""Points of a line at the same rate of false positives are moved apart by less than this."""


@dataclass(frozen=True, slots=True)
class RocCurve:
    """A ROC curve with its band.

    Attributes
    ----------
    false_positive_rates, sensitivities : array (n_bins + 1,)
        At the thresholds, from the highest to the lowest, within [0, 1].
    places : array (n_places,)
        Rates of false positives from 0 to 1.
    band : tuple of Rate
        The sensitivity at each place, with its interval; each interval holds by itself.
    simultaneous_band : tuple of Rate
        The same with intervals that all hold together; empty if it was not asked for.
    """

    false_positive_rates: Array
    sensitivities: Array
    places: Array
    band: tuple[Rate, ...]
    simultaneous_band: tuple[Rate, ...]


def roc_curve(evaluation: Evaluation, n_places: int = 51, *, simultaneous: bool = True) -> RocCurve:
    """The ROC curve of an evaluation, with its band at so many evenly spaced rates of false positives.

    Without `simultaneous` the band of the whole curve, which takes some time, is left out.

    Raises
    ------
    ParameterError
        If one of the classes has too few rows beside the noise.
    """
    with_band = checked_flag("simultaneous", simultaneous)
    if evaluation.auc.value is None:
        raise ParameterError(wording("nothing known of the ROC curve"))

    places, band = np.linspace(0.0, 1.0, n_places), []
    for place in places.tolist():
        rate, value = evaluation.interval_of(_sensitivity_at(place)), _sensitivity_at(place)(evaluation.counts)
        # Where the noise hides the rate, its interval has all that is possible.
        band.append(Rate(min(1.0, max(0.0, value)), 0.0, 1.0) if rate.value is None else rate)
    false_positive_rates, sensitivities = (np.clip(rates, 0.0, 1.0) for rates in _curve(evaluation.counts))
    together = _simultaneous(evaluation, places, [float(rate.value or 0.0) for rate in band]) if with_band else ()
    return RocCurve(false_positive_rates, sensitivities, places, tuple(band), together)


def _simultaneous(evaluation: Evaluation, places: Array, values: list[float]) -> tuple[Rate, ...]:
    """Lines through the corners of rectangles that hold both rates at each threshold, all at once.

    The curve goes through a point of each rectangle and rises between them. So it lies below the lines through the upper
    left corners, and above those through the lower right ones.
    """
    counts, n_bins = evaluation.counts, evaluation.n_bins
    above = np.array([np.arange(n_bins) >= place for place in range(n_bins - 1, 0, -1)], dtype=np.float64)
    classes = [np.outer(marks, np.ones(n_bins)) for marks in ([1.0, 0.0], [0.0, 1.0])]
    parts = [(of * row, of) for of in classes for row in above]
    errors = np.array([evaluation.errors_of(_quotient(part, of)) for part, of in parts])
    middle = np.clip([_quotient(part, of)(counts) for part, of in parts], 0.0, 1.0).reshape(2, -1)
    table = replace(evaluation.table, level=_level_of_rectangles(evaluation.level, middle, errors))
    rates = [table.share(part, of) for part, of in parts]
    lows = np.array([rate.low or 0.0 for rate in rates]).reshape(2, -1)
    highs = np.array([1.0 if rate.high is None else rate.high for rate in rates]).reshape(2, -1)
    lower = _line(places, np.append(highs[0], 1.0), np.append(lows[1], 1.0), 0.0)
    upper = _line(places, np.append(lows[0], 1.0), np.append(highs[1], 1.0), 1.0)
    pairs = zip(values, lower.tolist(), upper.tolist(), strict=True)
    return tuple(Rate(value, min(low, value), max(high, value)) for value, low, high in pairs)


def _level_of_rectangles(level: float, middle: Array, errors: Array) -> float:
    """The level of the sides of rectangles around a curve that hold it as a whole with probability `level`.

    The curve is moved at random, as sampling and noise do, and the rectangles are widened until they hold so many curves.

    Parameters
    ----------
    level : of the band
    middle : (2, thresholds), rates of false positives and sensitivities
    errors : (2 * thresholds, k), a matrix E such that E E^T is their covariance
    """
    sizes = np.sqrt((errors**2).sum(axis=1)).reshape(2, 1, -1)
    draws = draws_of_errors(errors)[::4].reshape(-1, *middle.shape).transpose(1, 0, 2)
    # Each curve is looked at where its points are, and halfway between them.
    moved = np.maximum.accumulate(np.clip(middle[:, None, :] + sizes * draws, 0.0, 1.0), axis=2)
    across, up = np.concatenate([moved, 0.5 * (moved[:, :, 1:] + moved[:, :, :-1])], axis=2)
    narrow, wide = 0.0, float(np.abs(draws).max(initial=0.0)) + 1.0
    for _ in range(_STEPS):
        factor = 0.5 * (narrow + wide)
        lows, highs = (np.clip(middle + sign * factor * sizes[:, 0], 0.0, 1.0) for sign in (-1.0, 1.0))
        above = _line(across, np.append(lows[0], 1.0), np.append(highs[1], 1.0), 1.0)
        below = _line(across, np.append(highs[0], 1.0), np.append(lows[1], 1.0), 0.0)
        held = ((below <= up + _APART) & (up <= above + _APART)).all(axis=1).mean()
        narrow, wide = (narrow, factor) if held >= level else (factor, wide)
    return float(2.0 * ndtr(wide) - 1.0)


def _line(places: Array, across: Array, up: Array, start: float) -> Array:
    """A rising line through points, at these places; before the first point it comes from the corner (0, 0)."""
    across, up = np.maximum.accumulate(np.append(0.0, across)), np.maximum.accumulate(np.append(0.0, up))
    # Where the line goes straight up, the band has its upper or its lower end.
    side = _APART if start else -_APART
    return np.asarray(np.interp(places + side, across + _APART / across.size * np.arange(across.size), up))


def _quotient(part: Array, of: Array) -> Callable[[Array], float]:
    return lambda counts: float((part * counts).sum() / (of * counts).sum())


def _sensitivity_at(place: float) -> Callable[[Array], float]:
    """The sensitivity at a rate of false positives, as a function of the counts."""
    return lambda counts: float(np.interp(place, *_curve(counts)))


def _curve(counts: Array) -> tuple[Array, Array]:
    """Rates of false positives, in rising order, and sensitivities (n_bins + 1,) from counts (2, n_bins)."""
    above = np.concatenate([np.zeros((2, 1)), np.cumsum(counts[:, ::-1], axis=1)], axis=1)
    # With noise, a cumulated count may fall; the number of rows above a threshold cannot.
    negative, positive = np.maximum.accumulate(above / above[:, -1:], axis=1)
    return negative, positive
