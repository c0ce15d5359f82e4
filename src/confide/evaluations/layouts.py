"""Which tables an evaluation releases: public facts alone, decided before a row is used.

Every row lies in exactly one cell of each table, or spreads one unit over the cells of one block of it. Groups are the first
axis of a table, so a row touches no more cells where there are many groups.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

LOSS_DEGREE = 2
"""Losses enter with their squares, from which the sampling error of their mean is computed."""
ERROR_DEGREE = 4
"""Errors and targets enter with their fourth powers, from which the sampling error of mean squares is computed."""
RIGHT_AND_WRONG = 4
"""Of two models both are right, the first alone, the second alone, or neither."""


@dataclass(frozen=True, slots=True)
class ClassTables:
    """For a classifier: rows by class and prediction, losses, and the calibration of the predicted class.

    Attributes
    ----------
    n_groups : int
    n_classes : int
    n_bins : int
        Bins of the probability of the predicted class, from 1 / n_classes to 1; 0 for no calibration.
    clip : float or None
        The largest log loss that counts; None for no log loss.
    """

    n_groups: int
    n_classes: int
    n_bins: int
    clip: float | None

    @property
    def shapes(self) -> tuple[tuple[int, ...], ...]:
        """The shape of each table."""
        confusion = (self.n_groups, self.n_classes, self.n_classes)
        losses = () if self.clip is None else ((self.n_groups, LOSS_DEGREE + 1),)
        return (confusion, *losses, *(((self.n_bins, 2),) if self.n_bins else ()))


@dataclass(frozen=True, slots=True)
class NumberTables:
    """For a regression: targets by absolute errors, and the calibration of predictions.

    Attributes
    ----------
    n_groups : int
    n_bins : int
        Bins of the prediction, from the low to the high end of the target; 0 for no calibration.
    low, high : float
        To which targets and predictions are clipped.
    clip : float
        The largest absolute error that counts.
    """

    n_groups: int
    n_bins: int
    low: float
    high: float
    clip: float

    @property
    def shapes(self) -> tuple[tuple[int, ...], ...]:
        """The shape of each table."""
        errors = (self.n_groups, ERROR_DEGREE + 1, ERROR_DEGREE + 1)
        return (errors, (self.n_bins, LOSS_DEGREE + 1)) if self.n_bins else (errors,)


@dataclass(frozen=True, slots=True)
class ClassPairTables:
    """For two classifiers on the same rows: which of them are right, by class, and the difference of their losses.

    Attributes
    ----------
    n_groups : int
    n_classes : int
    clip : float or None
        The largest log loss that counts; None for no log loss.
    largest_difference : float
        The largest difference of two log losses that counts.
    """

    n_groups: int
    n_classes: int
    clip: float | None
    largest_difference: float = math.inf

    @property
    def shapes(self) -> tuple[tuple[int, ...], ...]:
        """The shape of each table."""
        right = (self.n_groups, self.n_classes, RIGHT_AND_WRONG)
        return (right,) if self.clip is None else (right, (self.n_groups, LOSS_DEGREE + 1))


@dataclass(frozen=True, slots=True)
class NumberPairTables:
    """For two regressions on the same rows: the differences of squared and of absolute errors.

    Attributes
    ----------
    n_groups : int
    low, high : float
        To which targets and predictions are clipped.
    clip : float
        The largest absolute error that counts.
    largest_difference : float
        The largest difference of two predictions that counts.
    """

    n_groups: int
    low: float
    high: float
    clip: float
    largest_difference: float

    @property
    def largest_of_squares(self) -> float:
        """The largest difference of squared errors that counts."""
        return min(self.clip**2, 2.0 * self.clip * self.largest_difference)

    @property
    def shapes(self) -> tuple[tuple[int, ...], ...]:
        """The shape of each table."""
        squares = (self.n_groups, ERROR_DEGREE + 1, LOSS_DEGREE + 1)
        return squares, (self.n_groups, LOSS_DEGREE + 1)


Layout = ClassTables | NumberTables | ClassPairTables | NumberPairTables


def sizes_of(layout: Layout) -> tuple[int, ...]:
    """The number of cells of each table."""
    return tuple(math.prod(shape) for shape in layout.shapes)
