"""What the weights of a model are shown for: a class, or the number that a regression predicts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from confide.errors import ParameterError
from confide.features.canonical_labels import canonical_label
from confide.released_models.model import ReleasedModel
from confide.types import Array


@dataclass(frozen=True, slots=True)
class ShownClass:
    """The class for which weights and probabilities are shown: the schema's positive class, or without one the second class.

    With three or more classes, each class has its own weights, and the probability shown for a row is that of its predicted
    class.

    Attributes
    ----------
    label : the class, as in the model's `classes_`; None for three or more classes
    column : the target's column, or None without a schema
    position : the position of the class in `classes_`; None for three or more classes
    """

    label: Any
    column: str | None
    position: int | None

    @classmethod
    def of(cls, model: ReleasedModel) -> ShownClass:
        """The class for which the weights of a released classifier are shown."""
        if not model.domain:
            raise ParameterError(
                "the model is a regressor, and this is for classifiers only. In Python, read it with confide.load."
            )
        labels, target = list(model.domain), None if model.schema is None else model.schema.target
        if len(labels) > 2:
            return cls(None, None if target is None else target.column, None)
        if target is None:
            return cls(labels[1], None, 1)
        position = int(canonical_label(labels[1]) == canonical_label(target.positive))
        return cls(labels[position], target.column, position)

    @property
    def sign(self) -> float:
        """1, or -1 if the model's own weights are in favour of the other class."""
        return -1.0 if self.position == 0 else 1.0

    def of_rows(self, values: Array) -> Array:
        """(n,): the probability or score of the class shown, of each row.

        `values` are probabilities (n, k), or scores (n,) in favour of the second class or (n, k) of every class.
        """
        if values.ndim == 1:
            return self.sign * values
        answer: Array = values.max(axis=1) if self.position is None else values[:, self.position]
        return answer

    def ends_of_rows(self, ends: Array, values: Array) -> Array:
        """(n, 2): the interval that belongs to what `of_rows` gives, from those of the model.

        Parameters
        ----------
        ends : (n, 2) for the second of two classes, or (n, k, 2)
        values : as for `of_rows`
        """
        if self.position is None:
            return np.asarray(np.take_along_axis(ends, values.argmax(axis=1)[:, None, None], axis=1)[:, 0])
        if self.position == 1:
            return ends
        turned: Array = (-ends if values.ndim == 1 else 1.0 - ends)[:, ::-1]
        return turned

    def __str__(self) -> str:
        if self.position is None:
            return f"the predicted {self.column or 'class'}"
        label = f'"{self.label}"' if isinstance(self.label, str) else str(self.label)
        return f"{self.column} = {label}" if self.column else f"class {label}"


def predicted_column(model: ReleasedModel) -> str | None:
    """The column that a regression predicts, if its schema names it."""
    target = None if model.schema is None else model.schema.target
    return None if target is None or target.bounds is None else target.column


def predicted_number(model: ReleasedModel) -> str:
    """The column that a regression predicts, with its unit if the schema names one, or "the target"."""
    name = predicted_column(model)
    if name is None or model.schema is None or model.schema.target is None or model.schema.target.unit is None:
        return name or "the target"
    return f"{name} in {model.schema.target.unit}"


def weights_by_class(model: ReleasedModel) -> dict[Any, tuple[dict[str, float], float]]:
    """The released weights by encoded column, and the intercept, for each class that has weights.

    A model of two classes has one vector of weights. Its sign is changed if it is not in favour of the class that is shown.
    A regression has one vector too, and its target stands in place of the class.
    """
    names = list(map(str, model.coefficient_names))
    if not model.domain:
        weights = dict(zip(names, model.scoring.coef[0].tolist(), strict=True))
        return {predicted_column(model) or "the target": (weights, float(model.scoring.intercept[0]))}
    shown = ShownClass.of(model)
    labels = list(model.domain) if shown.position is None else [shown.label]
    values = zip(labels, shown.sign * model.scoring.coef, shown.sign * model.scoring.intercept, strict=True)
    return {label: (dict(zip(names, w.tolist(), strict=True)), float(intercept)) for label, w, intercept in values}
