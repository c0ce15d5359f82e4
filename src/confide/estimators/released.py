"""The coefficients of a released model in words and units that people read, with intervals where they were bought."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from confide.effects.effects import INTERCEPT, Effects, checked_units, encoded_units, in_original_units
from confide.estimators.coefficients import depends_on_differences, ratio_of_scores, unit_of_scores
from confide.estimators.linear_model import released_model
from confide.features.fourier import CurvesAndFeatures
from confide.inference.table import NamedUnit, exponential
from confide.models.model import ShownClass, predicted_number

RANDOM_FEATURE = "random feature"
"""The unit of the weight of a random feature, which means nothing by itself."""


@dataclass(frozen=True, slots=True)
class ReleasedCoefficient:
    """One released coefficient.

    Attributes
    ----------
    name, unit : what it is for, as in `CoefficientTable`
    estimate : float
    ratio : float or None
        Its exponential, where that is an odds ratio or a rate ratio; None for an intercept.
    span : float
        How many of these units lie between the low and the high of a number; 1 for everything else.
    """

    name: str
    unit: str
    estimate: float
    ratio: float | None
    span: float = 1.0

    def to_dict(self) -> dict[str, Any]:
        """A JSON form."""
        return {name: getattr(self, name) for name in self.__slots__}


@dataclass(frozen=True, slots=True)
class ReleasedCoefficients:
    """The released coefficients of a model, without intervals. They are public: post-processing of the release.

    Attributes
    ----------
    coefficients : the intercept is last; for three or more classes, the classes follow one another
    units : "original" or "encoded"
    ratio : "odds ratio", "rate ratio" or ""
    outcome : what the coefficients speak of, such as "log-odds of income = >50K"
    """

    coefficients: tuple[ReleasedCoefficient, ...]
    units: str
    ratio: str
    outcome: str

    @classmethod
    def of(cls, model: Any, units: str | None = None) -> ReleasedCoefficients:
        """The coefficients of a fitted linear model.

        Raises
        ------
        NotFittedError
            If the model is not fitted.
        ParameterError
            If `units` is unknown, or "original" for a model without a schema or with random features.
        """
        released = released_model(model)
        shown = checked_units(units, released.encoder, is_mapped=released.fourier is not None)
        sign = ShownClass.of(released).sign if released.domain else 1.0
        weights, intercepts = sign * released.scoring.coef, sign * released.scoring.intercept
        if shown == "original":
            assert released.encoder is not None  # noqa: S101 - `checked_units`
            if depends_on_differences(model):
                weights, intercepts = weights - weights.mean(axis=0), intercepts - intercepts.mean()
            named, values = in_original_units(released.encoder, weights.T, intercepts)
        else:
            named, values = _encoded(released), np.concatenate([weights.T, intercepts[None]])
        ratio, labels = ratio_of_scores(model), released.domain if len(weights) > 1 else (None,)
        coefficients = tuple(
            ReleasedCoefficient(
                coefficient.name if label is None else f"{label}: {coefficient.name}",
                coefficient.unit,
                value,
                exponential(value) if ratio and coefficient.unit else None,
                coefficient.span,
            )
            for label, column in zip(labels, values.T.tolist(), strict=True)
            for coefficient, value in zip(named, column, strict=True)
        )
        return cls(coefficients, shown, ratio, outcome_of(model))

    def to_dict(self) -> dict[str, Any]:
        """A JSON form."""
        coefficients = [one.to_dict() for one in self.coefficients]
        return {"units": self.units, "outcome": self.outcome, "coefficients": coefficients}


def outcome_of(model: Any) -> str:
    """What larger scores of a fitted model stand for, such as "log-odds of income = >50K"."""
    released, unit = released_model(model), unit_of_scores(model)
    if not released.domain:
        column = predicted_number(released)
        return column if unit == "prediction" else f"{unit} of {column}"
    shown = ShownClass.of(released)
    return f"{unit} of {shown if shown.position is not None else 'the class named before each'}"


def _encoded(released: Any) -> tuple[NamedUnit, ...]:
    names = list(map(str, released.coefficient_names))
    units: tuple[str, ...] = () if released.encoder is None else encoded_units(released.encoder)
    if released.fourier is not None:
        # Features stand after the columns, or in their place.
        units = units if isinstance(released.fourier, CurvesAndFeatures) else ()
        units = (*units, *[RANDOM_FEATURE] * (len(names) - len(units)))
    elif released.encoder is None:
        units = ("per 1, as given",) * len(names)
    return (*(NamedUnit(*pair, ()) for pair in zip(names, units, strict=True)), NamedUnit(INTERCEPT, "", ()))


# The effects of a fitted model, from what it released and what its estimator says about its scores.


def effects_of(model: Any) -> Effects:
    """The effects of a fitted linear model.

    Raises
    ------
    NotFittedError
        If the model is not fitted.
    ParameterError
        If it has no schema.
    """
    return Effects(released_model(model), unit_of_scores(model), depends_on_differences(model))
