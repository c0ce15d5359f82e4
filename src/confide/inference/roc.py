"""The ROC curve of a classifier from one noisy histogram of scores by class: post-processing of what was released.

At each threshold between two bins the counts give a rate of false positives and a sensitivity. Between thresholds the curve
is a straight line. The interval at a given rate of false positives covers both that the rows are a sample, and the noise in
all counts: those that fix the threshold, and those that fix the sensitivity there. The simultaneous band is wider: it holds
the whole curve at once.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import ndtr

from confide.errors import ParameterError, checked_flag
from confide.inference.bands import draws_of_errors
from confide.inference.rates import Evaluation, Rate
from confide.types import Array

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
        raise ParameterError(
            "one of the two classes has too few rows beside the noise, so nothing is known of the ROC curve. Evaluate on "
            "more rows, or with a larger budget."
        )

    places = np.linspace(0.0, 1.0, n_places)
    statistics = [_sensitivity_at(place) for place in places.tolist()]
    band = tuple(_wide(evaluation.interval_of(each), each(evaluation.counts)) for each in statistics)
    false_positive_rates, sensitivities = (np.clip(rates, 0.0, 1.0) for rates in _curve(evaluation.counts))
    together = _simultaneous(evaluation, places, [float(rate.value or 0.0) for rate in band]) if with_band else ()
    return RocCurve(false_positive_rates, sensitivities, places, band, together)


def _wide(rate: Rate, value: float) -> Rate:
    """The rate; where the noise hides it, the number with all that is possible as its interval."""
    return Rate(min(1.0, max(0.0, float(value))), 0.0, 1.0) if rate.value is None else rate


def _simultaneous(evaluation: Evaluation, places: Array, values: list[float]) -> tuple[Rate, ...]:
    """Lines through the corners of rectangles that hold both rates at each threshold, all at once.

    The curve goes through a point of each rectangle and rises between them. So it lies below the lines through the upper
    left corners, and above those through the lower right ones.
    """
    counts, n_bins = evaluation.counts, evaluation.n_bins
    above = np.array([np.arange(n_bins) >= place for place in range(n_bins - 1, 0, -1)], dtype=np.float64)
    classes = [np.outer(each, np.ones(n_bins)) for each in ([1.0, 0.0], [0.0, 1.0])]
    parts = [(of * row, of) for of in classes for row in above]
    errors = np.array([evaluation.errors_of(_quotient(part, of)) for part, of in parts])
    middle = np.clip([_quotient(part, of)(counts) for part, of in parts], 0.0, 1.0).reshape(2, -1)
    level = _level_of_rectangles(evaluation.level, middle, errors)
    table = replace(evaluation.table, level=level)
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
    rates = above / above[:, -1:]
    # With noise, a cumulated count may fall; the number of rows above a threshold cannot.
    negative, positive = np.maximum.accumulate(rates, axis=1)
    return negative, positive
