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

from confide.errors import ParameterError
from confide.inference.bands import level_of_band
from confide.inference.rates import Evaluation, Rate
from confide.types import Array


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
        The same with intervals that all hold together.
    """

    false_positive_rates: Array
    sensitivities: Array
    places: Array
    band: tuple[Rate, ...]
    simultaneous_band: tuple[Rate, ...]


def roc_curve(evaluation: Evaluation, n_places: int = 51) -> RocCurve:
    """The ROC curve of an evaluation, with its band at so many evenly spaced rates of false positives.

    Raises
    ------
    ParameterError
        If one of the classes has too few rows beside the noise.
    """
    if evaluation.auc.value is None:
        raise ParameterError(
            "one of the two classes has too few rows beside the noise, so nothing is known of the ROC curve. Evaluate on "
            "more rows, or with a larger budget."
        )

    places = np.linspace(0.0, 1.0, n_places)
    statistics = [_sensitivity_at(place) for place in places.tolist()]
    band = tuple(map(evaluation.interval_of, statistics))
    errors = np.array([evaluation.errors_of(statistic) for statistic in statistics])
    together = replace(evaluation, level=level_of_band(evaluation.level, errors))
    false_positive_rates, sensitivities = (np.clip(rates, 0.0, 1.0) for rates in _curve(evaluation.counts))
    return RocCurve(false_positive_rates, sensitivities, places, band, tuple(map(together.interval_of, statistics)))


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
