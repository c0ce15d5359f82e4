"""The effects of columns on the score of a released model, with bands where intervals were bought.

The effects are those of `decomposition`: they and the intercept add up to the score of every row. With softmax, only
differences between classes matter, so effects are shown minus their mean over classes, which changes no probability.

A band covers both that the rows are a sample and that noise was added, as intervals of coefficients do, and has the same
target: the effects of the population's minimiser with the same ridge. An effect is a linear map of the weights, so its
errors follow from theirs. Each value has an interval by itself, and a wider one: all wider intervals of one effect hold
together with the stated probability.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np

from confide.effects.decomposition import Decomposition, Term, decomposition
from confide.effects.points import Points
from confide.errors import ParameterError
from confide.features.columns import with_unit
from confide.features.encoder import Encoder
from confide.inference.intervals import JointUncertainty, checked_level, joint_uncertainty
from confide.inference.least_squares import SumsEvidence, joint_uncertainty_of_sums
from confide.inference.sparse_columns import with_known_zeros
from confide.known_words import listed
from confide.released_models.model import ReleasedModel
from confide.released_models.shown_class import ShownClass
from confide.types import Array

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, slots=True)
class Value:
    """An effect at one value of a column, or at one value of each column of an interaction.

    Attributes
    ----------
    value : a number, a level or "(missing)"; for an interaction a tuple of them
    effect : float
        What is added to the score, as released.
    standard_error, low, high, joint_low, joint_high : float or None
        Due to sampling and noise together; the ends of the interval for this value by itself, and for all values of the
        effect together. None where no intervals were bought, inf where the noise hides what the rows tell.
    """

    value: Any
    effect: float
    standard_error: float | None = None
    low: float | None = None
    high: float | None = None
    joint_low: float | None = None
    joint_high: float | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Effect:
    """The effect of a column, or what an interaction adds to the effects of its columns.

    Attributes
    ----------
    columns : names of the columns: one, or those of an interaction
    points : the points of each column
    label : the class whose score it is, for three or more classes; otherwise None
    values : in the order of the points; those of the last column run fastest
    """

    columns: tuple[str, ...]
    points: tuple[Points, ...]
    label: Any
    values: tuple[Value, ...]

    @property
    def name(self) -> str:
        """The column, or the columns of an interaction with colons between."""
        return ":".join(self.columns)

    @property
    def title(self) -> str:
        """The name for headings and axes: each number with its unit, if the schema names one."""
        return ":".join(points.column.title for points in self.points)

    @property
    def is_curve(self) -> bool:
        """Whether it is the effect of one number."""
        return len(self.points) == 1 and self.points[0].n_numbers > 0

    @property
    def has_band(self) -> bool:
        """Whether every value has a finite interval."""
        return all(value.high is not None and math.isfinite(value.high) for value in self.values)

    @property
    def curve(self) -> tuple[Value, ...]:
        """The values at numbers."""
        return self.values[: self.points[0].n_numbers]

    @property
    def levels(self) -> tuple[Value, ...]:
        """The values that are not numbers: levels, and "(missing)"."""
        return self.values[self.points[0].n_numbers :]


@dataclass(frozen=True)
class Contrast:
    """The difference that a change of one column makes, all other columns as they are.

    Attributes
    ----------
    column : str
    first, second : the two values
    estimate : float
        The effect at the second value minus that at the first, as released.
    standard_error : float or None
        Due to sampling and noise together. None if no intervals were bought.
    interval : (low, high) or None
        Contains the difference in the population with probability `level`.
    level : float
    outcome : str
        What the score stands for, for example "log-odds of income = >50K".
    unit : str or None
        The unit of a number, if the schema names one.
    """

    column: str
    first: Any
    second: Any
    estimate: float
    standard_error: float | None
    interval: tuple[float, float] | None
    level: float
    outcome: str
    unit: str | None = None

    def __str__(self) -> str:
        second = with_unit(str(self.second), self.unit)
        change = f"{self.column} from {self.first} to {second}: {self.estimate:+.4f} in {self.outcome}"
        if self.interval is None:
            return f"{change} (no part of the budget was used for intervals)"
        low, high = self.interval
        return f"{change}, interval at level {self.level:g}: {low:+.4f} to {high:+.4f}"


@dataclass(frozen=True, eq=False)
class Effects:
    """All effects of a released model.

    Parameters
    ----------
    released : the model, whose rows are described by a schema
    unit : what a score is, for example "log-odds"
    minus_mean_over_classes : whether the mean over classes is subtracted, as for softmax
    """

    released: ReleasedModel
    unit: str
    minus_mean_over_classes: bool = False

    def __post_init__(self) -> None:
        if self.released.fourier is not None:
            raise ParameterError(
                "a model with random features (interactions='all', a kernel) has no effects of columns: the features depend "
                "on all columns together. Fit without them to see effects."
            )
        if not has_effects(self.released):
            raise ParameterError(
                "effects of columns need a schema: fit with schema=..., which says where curves may bend and which levels a "
                "category has."
            )

    @property
    def encoder(self) -> Encoder:
        """The encoder of the schema."""
        assert self.released.encoder is not None  # noqa: S101  # __post_init__
        return self.released.encoder

    @property
    def labels(self) -> tuple[Any, ...]:
        """The classes that have scores of their own; (None,) for two classes or a number."""
        return self.released.domain if len(self.released.scoring.coef) > 1 else (None,)

    @cached_property
    def _shown(self) -> ShownClass | None:
        return ShownClass.of(self.released) if self.released.domain else None

    @cached_property
    def _sign(self) -> float:
        return 1.0 if self._shown is None else self._shown.sign

    @property
    def outcome(self) -> str:
        """What a larger score stands for, for example "log-odds of income = >50K"."""
        if self._shown is None:
            target = self.encoder.schema.target
            # The logarithm of a mean has no unit.
            unit = None if target is None or self.unit != "prediction" else target.unit
            return self.unit if unit is None else f"{self.unit} in {unit}"
        return f"{self.unit} of {self._shown if self._shown.position is not None else 'the class'}"

    @property
    def shortens_rows(self) -> bool:
        """Whether long encoded rows are clipped before they are scored. The effects are those of rows that are not."""
        return self.released.scoring.row_bound != self.encoder.row_bound

    @cached_property
    def _decomposition(self) -> Decomposition:
        weights = self._sign * self.released.scoring.coef
        return decomposition(self.encoder, (weights - self._subtracted(weights)).T)

    @cached_property
    def intercepts(self) -> Array:
        """(o,): the constant of each score. With it, the effects add up to the score."""
        intercept = self._sign * self.released.scoring.intercept
        answer: Array = intercept - self._subtracted(intercept) + self._decomposition.constant
        return answer

    def _subtracted(self, numbers: Array) -> Any:
        return numbers.mean(axis=0) if self.minus_mean_over_classes else 0.0

    @cached_property
    def terms(self) -> tuple[Term, ...]:
        """The effects as arrays, without bands: those of columns first, then interactions."""
        return self._decomposition.terms

    def with_bands(self, level: float = 0.95) -> Iterator[Effect]:
        """Each effect, with bands at this level where intervals were bought. The classes follow one another."""
        checked_level(level)
        everywhere: list[tuple[Term, list[int]]] = [(term, _shown_places(term)) for term in self.terms]
        errors = self._errors
        for score, label in enumerate(self.labels):
            start = 0
            for term, places in everywhere:
                effects = term.effects[..., score].ravel()[places].tolist()
                bands: Any = [()] * len(places)
                if errors is not None:
                    bands = _bands(self._sign, errors[score].among(slice(start, start + len(places))), level)
                    start += len(places)
                values = (Value(value, *numbers) for value, *numbers in _rows(term, effects, bands))
                yield Effect(term.columns, term.points, label, tuple(values))

    @cached_property
    def _maps(self) -> tuple[Term, ...]:
        """The effects as linear maps of the weights of one score: the last axis of each has a number for every weight."""
        return decomposition(self.encoder, np.eye(self.encoder.n_features)).terms

    @cached_property
    def _errors(self) -> list[JointUncertainty] | None:
        """For each score, the errors of all values that people are shown, in the order of the terms."""
        if self.released.evidence is None:
            return None
        rows = [term.effects.reshape(-1, self.encoder.n_features)[_shown_places(term)] for term in self._maps]
        return self._errors_of(np.concatenate(rows))

    def _errors_of(self, combinations: Array) -> list[JointUncertainty]:
        """For each score, the errors of combinations (q, n_features) of its weights."""
        evidence = self.released.evidence
        if evidence is None:
            raise ParameterError("nothing was released for intervals.")
        if evidence.intercept > 0.0:
            combinations = np.column_stack([combinations, np.zeros(len(combinations))])
        if isinstance(evidence, SumsEvidence):
            return [joint_uncertainty_of_sums(evidence, combinations)]
        return joint_uncertainty(with_known_zeros(evidence, self.encoder), combinations)

    def contrast(self, column: str, first: Any, second: Any, *, level: float = 0.95, label: Any = None) -> Contrast:
        """The effect of a column at the second value minus that at the first; of interactions it has no part.

        Raises
        ------
        ParameterError
            If the column is unknown, a value lies outside its bounds or is not one of its levels, or the class is missing or
            unknown.
        """
        checked_level(level)
        names = self.encoder.schema.column_names
        if column not in names:
            raise ParameterError(f"contrast needs one of the model's columns, which are {listed(names)}.")
        score = self.check_label(label)
        term = next(term for term in self.terms if term.columns == (column,))
        mixture = term.points[0].mixture(second) - term.points[0].mixture(first)
        estimate = float(mixture @ term.effects[:, score])
        outcome = self.outcome if label is None else f"{self.unit} of class {label}"
        unit = getattr(term.points[0].column, "unit", None)
        if self.released.evidence is None:
            return Contrast(column, first, second, estimate, None, None, level, outcome, unit)
        weights_of = next(each.effects for each in self._maps if each.columns == (column,))
        errors = self._errors_of((mixture @ weights_of)[None])[score]
        middle, margin = self._sign * float(errors.estimates[0]), float(errors.margins(level)[0])
        interval = (middle - margin, middle + margin)
        return Contrast(column, first, second, estimate, float(errors.total_error[0]), interval, level, outcome, unit)

    def check_label(self, label: Any) -> int:
        """The position of a class's score. Raises ParameterError if the model has no score of its own for this label."""
        if label not in self.labels:
            if self.labels == (None,):
                raise ParameterError("leave label out: this model has one score, not one for each class.")
            raise ParameterError(
                f"the model has a score for each class: give label= one of {listed(map(str, self.labels))}."
            )
        return self.labels.index(label)

    def to_frame(self, level: float = 0.95) -> pd.DataFrame:
        """A pandas frame: column, value and effect; where intervals were bought, standard errors and ends of intervals.

        With three or more classes, the first column is the class.
        """
        import pandas as pd

        has_errors = self.released.evidence is not None
        names = ["value", "effect"]
        names += ["standard_error", "low", "high", "joint_low", "joint_high"] if has_errors else []
        lines = [
            {"class": effect.label, "column": effect.name} | {name: getattr(value, name) for name in names}
            for effect in self.with_bands(level)
            for value in effect.values
        ]
        columns = [*(["class"] if len(self.labels) > 1 else []), "column", *names]
        return pd.DataFrame(lines, columns=columns)

    def to_dict(self, level: float = 0.95) -> dict[str, Any]:
        """A JSON form. What the noise hides is None."""
        return {
            "outcome": self.outcome,
            "level": level,
            "intercept": {str(label): value for label, value in zip(self.labels, self.intercepts.tolist(), strict=True)}
            if len(self.labels) > 1
            else float(self.intercepts[0]),
            "effects": [
                ({"class": effect.label} if len(self.labels) > 1 else {})
                | {
                    "columns": list(effect.columns),
                    "values": [
                        {
                            name: _json_form(getattr(value, name))
                            for name in Value.__slots__
                            if name in ("value", "effect") or self.released.evidence is not None
                        }
                        for value in effect.values
                    ],
                }
                for effect in self.with_bands(level)
            ],
        }


def has_effects(released: ReleasedModel) -> bool:
    """Whether the weights of a released model are those of columns of a schema."""
    return released.encoder is not None and released.fourier is None


def _shown_places(term: Term) -> list[int]:
    """Positions, among all points of a term, of those that people are shown."""
    shape = tuple(len(points.weights) for points in term.points)
    shown = np.arange(math.prod(shape)).reshape(shape)[tuple(slice(len(points.values)) for points in term.points)]
    places: list[int] = shown.ravel().tolist()
    return places


def _rows(term: Term, effects: list[float], bands: Any) -> Iterator[tuple[Any, ...]]:
    values = product(*(points.values for points in term.points))
    for value, effect, band in zip(values, effects, bands, strict=True):
        yield (value if len(term.points) > 1 else value[0], effect, *band)


def _bands(sign: float, errors: JointUncertainty, level: float) -> list[tuple[float, ...]]:
    """Standard error, and the ends of both kinds of intervals, for each value of one effect."""
    alone, joint, middle = errors.margins(level), errors.joint_margins(level), sign * errors.estimates
    ends = (errors.total_error, middle - alone, middle + alone, middle - joint, middle + joint)
    return list(zip(*(end.tolist() for end in ends), strict=True))


def _json_form(value: Any) -> Any:
    if isinstance(value, tuple):
        return list(value)
    return None if isinstance(value, float) and not math.isfinite(value) else value
