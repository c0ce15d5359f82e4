"""How good a classifier is on private rows: rates of classes, log loss and calibration, from one release of tables."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from confide.array_types import Array
from confide.blocks import as_json
from confide.errors import ParameterError
from confide.evaluations.result import CalibratedEvaluation, ShownTable, shown
from confide.evaluations.tables import LOSS_DEGREE, ClassTables, weights_of_power
from confide.inference.rates import UNKNOWN, NoisyTable, Rate, mean_of, within
from confide.known_words import suggest_keywords_of


@suggest_keywords_of
@dataclass(frozen=True, slots=True, eq=False)
class ClassEvaluation(CalibratedEvaluation):
    """Rates of a classifier of any number of classes, of all rows and of groups.

    Attributes
    ----------
    classes : tuple of str
        The labels, in the order of the model's `classes_`.
    """

    layout: ClassTables
    classes: tuple[str, ...]

    kind: ClassVar[str] = "rates of classes"
    _why_no_calibration: ClassVar[str] = "the model has no probabilities, or n_bins is 0"

    @property
    def accuracy(self) -> Rate:
        """The share of rows that are predicted right."""
        return self.rates["accuracy"]

    @property
    def log_loss(self) -> Rate:
        """The mean of minus the logarithm of the probability of the true class, each clipped to at most `layout.clip`."""
        if self.layout.clip is None:
            raise ParameterError("the log loss was not released: the model has no probabilities, or no clip was given.")
        return self.rates["log loss"]

    @property
    def recall(self) -> dict[str, Rate]:
        """For each class the share of its rows that are predicted right."""
        return self._by_class("recall", np.ones(self.layout.n_groups))

    @property
    def precision(self) -> dict[str, Rate]:
        """For each class the share of the rows that are predicted so and are of the class."""
        return self._by_class("precision", np.ones(self.layout.n_groups))

    @property
    def f1(self) -> dict[str, Rate]:
        """For each class the harmonic mean of precision and recall."""
        return self._by_class("F1", np.ones(self.layout.n_groups))

    @property
    def confusion(self) -> tuple[tuple[Rate, ...], ...]:
        """Shares of all rows by true class (first index) and predicted class."""
        table, size, groups = self.tables[0], self.layout.n_classes, np.ones(self.layout.n_groups)
        everywhere = np.ones(table.counts.shape)
        cells = [table.share(self._cell(i, j, groups), everywhere) for i, j in np.ndindex(size, size)]
        return tuple(tuple(cells[size * row : size * (row + 1)]) for row in range(size))

    def _in_bin(self, table: NoisyTable, row: Array) -> Rate:
        return table.share(np.outer(row, [0.0, 1.0]), np.outer(row, [1.0, 1.0]))

    def rates_of(self, groups: Array) -> dict[str, Rate]:
        table, size = self.tables[0], self.layout.n_classes
        rows = groups[:, None, None] * np.ones((1, size, size))
        rates = {"accuracy": table.share(groups[:, None, None] * np.eye(size), rows)}
        for name in ("recall", "precision"):
            rates[f"macro {name}"] = mean_of(list(self._by_class(name, groups).values()))
        rates["macro F1"] = self._macro_f1(groups)
        if self.layout.clip is not None:
            first, second = (np.outer(groups, weights_of_power(power, LOSS_DEGREE)) for power in (1, 2))
            difference = self.tables[1].mean(first, np.outer(groups, np.ones(LOSS_DEGREE + 1)), second, 0.0, 1.0)
            rates["log loss"] = difference.scaled(self.layout.clip)
        for name in ("recall", "precision"):
            rates |= {f"{name} of {label}": rate for label, rate in self._by_class(name, groups).items()}
        for position, label in enumerate(self.classes):
            predicted = sum((self._cell(i, position, groups) for i in range(size)), np.zeros(table.counts.shape))
            rates[f"predicted {label}"] = table.share(predicted, rows)
        return rates

    def _by_class(self, name: str, groups: Array) -> dict[str, Rate]:
        return {label: self._of_class(name, position, groups) for position, label in enumerate(self.classes)}

    def _of_class(self, name: str, position: int, groups: Array) -> Rate:
        table, size = self.tables[0], self.layout.n_classes
        right = self._cell(position, position, groups)
        true, predicted = np.zeros((2, *table.counts.shape))
        true[:, position, :] = groups[:, None] * np.ones(size)
        predicted[:, :, position] = groups[:, None] * np.ones(size)
        if name == "F1":
            both = self._counted_in_f1(position, groups)
            return table.quotient(2.0 * right, both, (4.0 * right, 4.0 * right, both**2), 0.0, 1.0)
        return table.share(right, true if name == "recall" else predicted)

    def _macro_f1(self, groups: Array) -> Rate:
        """The mean of the F1 of all classes, whose errors depend on each other: a row may count in two of them."""
        table, weights = self.tables[0], np.zeros(self.tables[0].counts.shape)
        rates_by_class = list(self._by_class("F1", groups).values())
        if any(rate.value is None for rate in rates_by_class):
            return UNKNOWN
        for position, rate in enumerate(rates_by_class):
            both = self._counted_in_f1(position, groups)
            right = 2.0 * self._cell(position, position, groups)
            weights += (right - (rate.value or 0.0) * both) / table.sum(both) / len(rates_by_class)
        combination = table.combination(sum(rate.value or 0.0 for rate in rates_by_class) / len(rates_by_class), weights)
        return UNKNOWN if combination.numbers is None else within(*combination.numbers, 0.0, 1.0)

    def _counted_in_f1(self, position: int, groups: Array) -> Array:
        """Rows of a class, and rows predicted so: those that are both count twice."""
        both = np.zeros(self.tables[0].counts.shape)
        both[:, position, :] += groups[:, None]
        both[:, :, position] += groups[:, None]
        return both

    def _cell(self, true: int, predicted: int, groups: Array) -> Array:
        marks = np.zeros(self.tables[0].counts.shape)
        marks[:, true, predicted] = groups
        return marks

    def facts(self) -> dict[str, Any]:
        rates = as_json(self, "classes clip recall precision f1 confusion", clip=self.layout.clip)
        return rates | self.calibration_facts("shares")

    def further_tables(self) -> list[ShownTable]:
        confusion = {
            f"{true}, predicted {predicted}": rate
            for true, row in zip(self.classes, self.confusion, strict=True)
            for predicted, rate in zip(self.classes, row, strict=True)
        }
        title = "of rows whose predicted class has such a probability, the share that is predicted right"
        tables = self.calibration_tables(title, "probability", "share", ".4g")
        return [shown("Shares of all rows, by class and prediction", "rows", confusion), *tables]


def usual_clip(n_classes: int) -> float:
    """The largest log loss that counts if none is given: twice that of equal probabilities of all classes."""
    return 2.0 * math.log(n_classes)
