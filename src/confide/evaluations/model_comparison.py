"""Which of two released models is better on the same private rows: the differences of their rates, from one release.

Most rows are told alike by both models, and cancel. So a difference has less noise, and a smaller sampling error, than two
evaluations would have, one of each model.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from confide.array_types import Array
from confide.blocks import as_json
from confide.evaluations.number_errors import ratio_to_spread
from confide.evaluations.result import ShownTable, TablesEvaluation, shown
from confide.evaluations.tables import (
    ERROR_DEGREE,
    LOSS_DEGREE,
    ClassPairTables,
    NumberPairTables,
    weights_of_polynomial,
    weights_of_power,
)
from confide.inference.rates import NoisyTable, Rate, mean_of
from confide.known_words import suggest_keywords_of

_FIRST_RIGHT, _SECOND_RIGHT = np.array([1.0, 1.0, 0.0, 0.0]), np.array([1.0, 0.0, 1.0, 0.0])
"""Of the cells "both right", "the first alone", "the second alone" and "neither"."""
_DIFFERENCE = (-1.0, 2.0)
"""A difference between -1 and 1, as a polynomial in the number between 0 and 1 as which it is counted."""
_SQUARED = (1.0, -4.0, 4.0)


@suggest_keywords_of
@dataclass(frozen=True, slots=True, eq=False)
class ModelComparison(TablesEvaluation):
    """Differences of the rates of two models on the same rows: the first model's rate less that of the second.

    The first model is better where a difference of an accuracy, a recall or R^2 is above 0, and where that of a loss or an
    error is below 0.

    Attributes
    ----------
    layout : ClassPairTables or NumberPairTables
        Which tables were released.
    classes : tuple of str
        The labels, in the order of the models' `classes_`; empty for regressions.
    target : str
        What regressions predict, with its unit if the schema names one.
    """

    layout: ClassPairTables | NumberPairTables
    classes: tuple[str, ...]
    target: str

    kind: ClassVar[str] = "differences of two models"

    @property
    def differences(self) -> dict[str, Rate]:
        """The differences of all rows, by the name of the rate."""
        return self.rates

    def rates_of(self, groups: Array) -> dict[str, Rate]:
        if isinstance(self.layout, NumberPairTables):
            return self._of_numbers(self.layout, groups)
        return self._of_classes(self.layout, groups)

    @property
    def first(self) -> dict[str, Rate]:
        """Rates of the first model alone; empty for regressions."""
        return self._alone(_FIRST_RIGHT)

    @property
    def second(self) -> dict[str, Rate]:
        """Rates of the second model alone; empty for regressions."""
        return self._alone(_SECOND_RIGHT)

    def _alone(self, right: Array) -> dict[str, Rate]:
        if not self.classes:
            return {}
        table, groups = self.tables[0], np.ones(len(self.groups.names))
        everywhere, marks = np.ones(table.counts.shape), self._marks
        places = range(len(self.classes))
        recalls = [table.share(marks(groups, place, right), marks(groups, place)) for place in places]
        named = {f"recall of {label}": rate for label, rate in zip(self.classes, recalls, strict=True)}
        return {"accuracy": table.share(everywhere * right, everywhere), "macro recall": mean_of(recalls)} | named

    def _of_classes(self, layout: ClassPairTables, groups: Array) -> dict[str, Rate]:
        def difference(of: Array) -> Rate:
            """The share of rows of which the first model alone is right, less that of which the second alone is."""
            alone = _FIRST_RIGHT - _SECOND_RIGHT
            return self.tables[0].mean(of * alone, of, of * alone**2, -1.0, 1.0)

        recalls = [difference(self._marks(groups, position)) for position in range(len(self.classes))]
        everywhere = groups[:, None, None] * np.ones(self.tables[0].counts.shape)
        differences = {"accuracy": difference(everywhere), "macro recall": mean_of(recalls)}
        if layout.clip is not None:
            differences["log loss"] = self._of_losses(self.tables[1], groups, layout.largest_difference)
        return differences | {f"recall of {label}": rate for label, rate in zip(self.classes, recalls, strict=True)}

    def _of_numbers(self, layout: NumberPairTables, groups: Array) -> dict[str, Rate]:
        table, marks = self.tables[0], groups[:, None, None]
        flat = np.ones(ERROR_DEGREE + 1)
        difference, squared = (weights_of_polynomial(power, LOSS_DEGREE) for power in (_DIFFERENCE, _SQUARED))
        values, squares = (marks * np.outer(flat, power)[None] for power in (difference, squared))
        of = marks * np.ones(table.counts.shape)
        largest, width = layout.largest_of_squares, layout.high - layout.low
        return {
            "R^2": ratio_to_spread(table, groups, difference, squares).scaled(-largest / width**2),
            "mean squared error": table.mean(values, of, squares, -1.0, 1.0).scaled(largest),
            "MAE": self._of_losses(self.tables[1], groups, layout.largest_difference),
        }

    def _of_losses(self, table: NoisyTable, groups: Array, largest: float) -> Rate:
        values, squares = (np.outer(groups, weights_of_polynomial(power, LOSS_DEGREE)) for power in (_DIFFERENCE, _SQUARED))
        return table.mean(values, np.outer(groups, weights_of_power(0, LOSS_DEGREE)), squares, -1.0, 1.0).scaled(largest)

    def _marks(self, groups: Array, position: int, right: Array | float = 1.0) -> Array:
        """The rows of one class, or those of them in some of the four cells."""
        marks = np.zeros(self.tables[0].counts.shape)
        marks[:, position, :] = groups[:, None] * np.broadcast_to(right, marks.shape[2:])
        return marks

    def facts(self) -> dict[str, Any]:
        if isinstance(self.layout, NumberPairTables):
            layout = self.layout
            return {"target": self.target, "low": layout.low, "high": layout.high, "clip": layout.clip}
        return as_json(self, "classes clip first second", clip=self.layout.clip)

    def further_tables(self) -> list[ShownTable]:
        if not self.classes:
            return []
        return [shown("The first model alone", "rate", self.first), shown("The second model alone", "rate", self.second)]
