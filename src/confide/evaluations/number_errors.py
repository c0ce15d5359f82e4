"""How good a regression is on private rows: errors, R^2 and calibration, from one release of tables."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from confide.array_types import Array
from confide.evaluations.result import CalibratedEvaluation, ShownTable
from confide.evaluations.tables import ERROR_DEGREE, LOSS_DEGREE, NumberTables, weights_of_polynomial, weights_of_power
from confide.inference.rates import UNKNOWN, NoisyTable, Rate, within
from confide.known_words import suggest_keywords_of


@suggest_keywords_of
@dataclass(frozen=True, slots=True, eq=False)
class NumberEvaluation(CalibratedEvaluation):
    """Errors of a regression, of all rows and of groups.

    Targets and predictions are clipped to the declared range of the target, and absolute errors to at most `layout.clip`.

    Attributes
    ----------
    target : str
        What is predicted, with its unit if the schema names one.
    """

    layout: NumberTables
    target: str

    kind: ClassVar[str] = "errors of predicted numbers"

    @property
    def r2(self) -> Rate:
        """R^2: 1 for perfect predictions, 0 for those of the mean."""
        return self.rates["R^2"]

    @property
    def rmse(self) -> Rate:
        """The root of the mean squared error, in the unit of the target."""
        return self.rates["RMSE"]

    @property
    def mae(self) -> Rate:
        """The mean absolute error, in the unit of the target."""
        return self.rates["MAE"]

    def _in_bin(self, table: NoisyTable, row: Array) -> Rate:
        of, first, second = (np.outer(row, weights_of_power(power, LOSS_DEGREE)) for power in (0, 1, 2))
        return table.mean(first, of, second, 0.0, 1.0).scaled(self.layout.high - self.layout.low, self.layout.low)

    def rates_of(self, groups: Array) -> dict[str, Rate]:
        table, marks = self.tables[0], groups[:, None, None]
        sizes = [marks * weights_of_power(power, ERROR_DEGREE)[None, None, :] for power in range(ERROR_DEGREE + 1)]
        of, first, second, _, fourth = (size + np.zeros(table.counts.shape) for size in sizes)
        clip = self.layout.clip
        squared = table.mean(second, of, fourth, 0.0, 1.0).scaled(clip**2)
        ratio = ratio_to_spread(table, groups, weights_of_power(2, ERROR_DEGREE), fourth, 0.0)
        # Errors are in units of the clip, and targets in units of their range.
        units = (clip / (self.layout.high - self.layout.low)) ** 2
        return {
            "R^2": ratio.scaled(-units, 1.0),
            "RMSE": UNKNOWN if squared.numbers is None else within(*squared.numbers, 0.0, math.inf).mapped(math.sqrt),
            "MAE": table.mean(first, of, second, 0.0, 1.0).scaled(clip),
        }

    def facts(self) -> dict[str, Any]:
        facts = {"target": self.target, "low": self.layout.low, "high": self.layout.high, "clip": self.layout.clip}
        return facts | self.calibration_facts("means")

    def further_tables(self) -> list[ShownTable]:
        title = f"of rows with such a prediction, the mean of {self.target}"
        return self.calibration_tables(title, "prediction", "mean", ",.6g")


def ratio_to_spread(table: NoisyTable, groups: Array, weights: Array, squares: Array, least: float = -math.inf) -> Rate:
    """A sum over rows, by the sum of squared distances of targets from their mean, both in units of their ranges.

    Parameters
    ----------
    table : (groups, shares of the target, shares of another number)
    groups : marks the groups that count with 1
    weights : weights of the shares of the other number that add up to its part of the sum
    squares : weights of all cells for the sum of the squares of those parts
    least : the smallest ratio that is possible
    """
    marks, flat = groups[:, None, None], np.ones(table.counts.shape[2])

    def of_target(polynomial: tuple[float, ...]) -> Array:
        return marks * np.outer(weights_of_polynomial(polynomial, ERROR_DEGREE), flat)[None]

    n_rows = of_target((1.0,))
    if not table.is_known(n_rows):
        return UNKNOWN
    mean = min(1.0, max(0.0, table.sum(of_target((0.0, 1.0))) / table.sum(n_rows)))
    # (t - m)^2 and (t - m)^4
    spread = (mean**2, -2.0 * mean, 1.0)
    fourth = tuple(np.polynomial.polynomial.polymul(spread, spread).tolist())
    part = marks * np.broadcast_to(weights, table.counts.shape)
    mixed = marks * np.outer(weights_of_polynomial(spread, ERROR_DEGREE), weights)[None]
    return table.quotient(part, of_target(spread), (squares, mixed, of_target(fourth)), least)
