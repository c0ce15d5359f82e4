"""Rates on private rows, from one noisy histogram of scores by class: post-processing of what was released.

Intervals hold both doubts: that the rows are a sample, and the noise.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from confide.errors import ParameterError
from confide.inference.bands import level_of_each
from confide.inference.noisy_table import LAPLACE_KURTOSIS, NoisyTable, quantile_of
from confide.inference.rate import LEAST_SIGNAL as LEAST_SIGNAL
from confide.inference.rate import UNKNOWN, within
from confide.inference.rate import Rate as Rate
from confide.privacy.counts import CountsPlan
from confide.privacy.lattice import LatticeLaplace
from confide.types import Array

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, slots=True)
class Evaluation:
    """How good a model is on private rows. Public: made of a noisy histogram and public facts.

    Attributes
    ----------
    counts : array (2, n_bins)
        Noisy numbers of rows by class, the negative one first, and bin of the probability (of a support vector machine: of
        its score through the logistic function) of the positive class. Under replace-one they add up to the number of rows.
    plan : CountsPlan
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
    plan: CountsPlan
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
        cells = [self._cell(true, predicted) for true in (0, 1) for predicted in (0, 1)]
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
        return tuple(map(self._rate_in_bin, range(self.n_bins)))

    @property
    def table(self) -> NoisyTable:
        """The counts with their noise, for quotients of their sums."""
        kurtosis = LAPLACE_KURTOSIS if isinstance(self.plan.lattice, LatticeLaplace) else 0.0
        return NoisyTable(self.counts, self.plan.deviation, self.n_rows is not None, self.level, kurtosis)

    def _rate_in_bin(self, place: int) -> Rate:
        which = np.zeros_like(self.counts)
        which[:, place] = 1.0
        return self.table.share(which * [[0.0], [1.0]], which)

    def _cell(self, true: int, predicted: int) -> Rate:
        return self.table.share(self._cells(true, predicted), np.ones_like(self.counts))

    def _cells(self, true: int, predicted: int) -> Array:
        """Marks the rows of one class that are predicted as one class."""
        which, half = np.zeros_like(self.counts), self.n_bins // 2
        which[true, half:] = predicted
        which[true, :half] = 1 - predicted
        return which

    def _of_class(self, position: int) -> Array:
        which = np.zeros_like(self.counts)
        which[position] = 1.0
        return which

    def interval_of(self, statistic: Callable[[Array], float]) -> Rate:
        """A statistic of the counts (2, n_bins), with an interval by the delta method, within [0, 1]."""
        value, gradient = statistic(self.counts), self._gradient(statistic)
        # Rows are a sample: counts are multinomial, at rates that are not negative.
        chances = np.maximum(self.counts.ravel(), 0.0)
        chances = chances / chances.sum()
        sampling = self.counts.sum() * (chances @ gradient**2 - (chances @ gradient) ** 2)
        noise = self.plan.deviation**2 * (gradient @ gradient)
        if self.n_rows is not None:
            # The part of the noise that changes the total was taken out.
            noise -= self.plan.deviation**2 * gradient.sum() ** 2 / gradient.size
        margin = quantile_of(self.level, 0.0) * math.sqrt(max(sampling + noise, 0.0))
        return within(float(value), float(value - margin), float(value + margin), 0.0, 1.0)

    def errors_of(self, statistic: Callable[[Array], float]) -> Array:
        """Numbers whose squares add up to the variance of a statistic, and their products with others to covariances."""
        gradient, chances = self._gradient(statistic), np.maximum(self.counts.ravel(), 0.0)
        chances = chances / chances.sum()
        sampling = math.sqrt(max(self.counts.sum(), 0.0)) * np.sqrt(chances) * (gradient - chances @ gradient)
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
    def calibration_band(self) -> tuple[Rate, ...]:
        """The calibration with intervals that all hold together with probability `level`: a band."""
        return replace(self, level=level_of_each(self.level, self.n_bins)).calibration

    def to_dict(self) -> dict[str, Any]:
        """A JSON form."""

        def written(rate: Rate) -> dict[str, float | None]:
            return {"value": rate.value, "low": rate.low, "high": rate.high}

        return {
            "budget": self.plan.budget.to_dict(),
            "neighbours": str(self.plan.neighbours),
            "void": self.void,
            "model_checksums": list(self.model_checksums),
            "charged_to": self.charged_to,
            "interrupted": list(self.interrupted),
            "level": self.level,
            "outcome": self.outcome,
            "n_rows": self.n_rows,
            "counts": self.counts.tolist(),
            "count_deviation": self.plan.deviation,
            "accuracy": written(self.accuracy),
            "sensitivity": written(self.sensitivity),
            "specificity": written(self.specificity),
            "auc": written(self.auc),
            "confusion": [[written(rate) for rate in row] for row in self.confusion],
            "calibration": [written(rate) for rate in self.calibration] if self.has_probabilities else None,
        }

    def to_frame(self) -> pd.DataFrame:
        """The rates as a pandas frame: value, low and high."""
        import pandas as pd

        rates = {name: getattr(self, name) for name in ("accuracy", "sensitivity", "specificity", "auc")}
        values = [[rate.value, rate.low, rate.high] for rate in rates.values()]
        return pd.DataFrame(values, index=pd.Index(list(rates), name="rate"), columns=["value", "low", "high"], dtype=float)

    def __str__(self) -> str:
        rows = "private rows" if self.n_rows is None else f"{self.n_rows:,} private rows"
        lines = [f"Evaluation on {rows}, intervals at {self.level:g}"]
        lines += [f"{name:<12} {getattr(self, name)}" for name in ("accuracy", "sensitivity", "specificity", "auc")]
        lines.append(
            f"positive: {self.outcome}. {2 * self.n_bins} counts with noise of standard deviation {self.plan.deviation:.4g}."
        )
        lines.append(
            f"NOT PRIVATE. {self.void}" if self.void else f"Released under {self.plan.budget} ({self.plan.neighbours})."
        )
        return "\n".join([*lines, *self.interrupted])


def _area(counts: Array) -> float:
    negative, positive = counts
    below = np.cumsum(negative) - 0.5 * negative
    return float(positive @ below / (positive.sum() * negative.sum()))
