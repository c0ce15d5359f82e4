"""The coefficients and effects of a released model in words and units that people read, and what noise makes of them."""

from __future__ import annotations

import math
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from confide.array_types import Array
from confide.effects.effects import (
    INTERCEPT,
    Effect,
    Effects,
    checked_units,
    encoded_units,
    has_effects,
    in_original_units,
    sizes_of_chance,
)
from confide.erm.row_bounds import LEAST_RADIUS, is_centred
from confide.errors import ConfideError, wording
from confide.estimators.coefficients import depends_on_differences, ratio_of_scores, unit_of_scores
from confide.estimators.linear_model import released_model, settings_of_model
from confide.estimators.search import encoder_with_slots, plans_again
from confide.features.fourier import CurvesAndFeatures
from confide.inference.rates import Interval
from confide.inference.table import NamedUnit, exponential
from confide.known_words import listed
from confide.models.model import ShownClass, predicted_number
from confide.training.alpha import USUAL_RADIUS
from confide.training.support import chance_of_weights

RANDOM_FEATURE = "random feature"
"""The unit of the weight of a random feature, which means nothing by itself."""


@dataclass(frozen=True, slots=True)
class ReleasedCoefficient(Interval):
    """One released coefficient, which may be drawn with its interval.

    Attributes
    ----------
    name, unit : what it is for, as in `CoefficientTable`
    ratio : float or None
        Its exponential, where that is an odds ratio or a rate ratio; None for an intercept.
    span : float
        How many of these units lie between the low and the high of a number; 1 for everything else.
    noise : (float, float), or empty
        How far from 0 noise alone reaches, see `Effects`; empty where it is not known.
    """

    estimate: float
    name: str
    unit: str
    ratio: float | None = None
    span: float = 1.0
    noise: tuple[float, ...] = ()

    @property
    def title(self) -> str:
        """Name and unit."""
        return f"{self.name}, {self.unit}" if self.unit else self.name

    @property
    def size(self) -> tuple[bool, float]:
        """What a sort compares: whether it is larger than noise where rows are even, and how large it is over its span."""
        return abs(self.estimate) > min(self.noise, default=0.0), abs(self.estimate) * self.span

    def to_dict(self) -> dict[str, Any]:
        """A JSON form."""
        return {name: getattr(self, name) for name in ("name", "unit", "estimate", "ratio", "span", "noise")}


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
    def of(cls, model: Any, units: str | None = None, level: float = 0.95) -> ReleasedCoefficients:
        """The coefficients of a fitted linear model, beside what chance alone makes of them at this level.

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
        noises: list[Any] = [()] * len(named)
        if (chance := chance_of(model)) is not None:
            *roots, is_laplace = chance
            if shown == "original" and released.encoder is not None:
                roots = [in_original_units(released.encoder, root, np.zeros(root.shape[1]))[1][:-1] for root in roots]
            noises[:-1] = zip(*(sizes_of_chance(root, level, 1, is_laplace) for root in roots), strict=True)
        starts = ("" if label is None else f"{label}: " for label in labels)
        ratios = np.vectorize(exponential if ratio else lambda _: None, otypes=[object])(values)
        coefficients = tuple(
            ReleasedCoefficient(
                value, None, None, start + one.name, one.unit, own if ratio and one.unit else None, one.span, noise
            )
            for start, *columns in zip(starts, values.T.tolist(), ratios.T.tolist(), strict=True)
            for one, noise, value, own in zip(named, noises, *columns, strict=True)
        )
        return cls(coefficients, shown, ratio, outcome_of(model))

    @property
    def of_columns(self) -> tuple[ReleasedCoefficient, ...]:
        """Those that are named after columns, and the intercept: all but the weights of random features."""
        return tuple(one for one in self.coefficients if one.unit != RANDOM_FEATURE)

    @property
    def words_of_features(self) -> list[str]:
        """How many weights of random features there are, and how large they are beside the others; empty without them."""
        sizes: tuple[list[float], list[float]] = ([], [])
        for one in self.coefficients:
            sizes[one.unit == RANDOM_FEATURE].extend([one.estimate] if one.unit else [])
        rest, norm = (math.hypot(*own) for own in sizes)
        others, number = map(len, sizes)
        beside = f", that of the {others:,} other weights without the intercept {rest:.4g}" if others else ""
        return [wording("weights of random features", number=number, norm=norm, beside=beside)] if number else []

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


# The effects of a fitted model, from what it released and what its estimator says about its scores, and what chance alone
# makes of them, from its plan.

_ANY_SIZE = "The noise alone may make these as large, above all for levels and stretches that few rows have."
_STANDING = (
    "Larger than noise alone could make them, even at a value that no row has: {}.",
    "Larger than noise alone could make them if all values are equally frequent, but not at values that few rows have: {}.",
    "No larger than noise alone could make them: {}.",
)
_MOST_NAMED, _MOST_COLUMNS = 20, 2000
"""The roots of covariances of so many weights take up to 64 MB."""


def effects_of(model: Any) -> Effects:
    """The effects of a fitted linear model.

    Raises
    ------
    NotFittedError
        If the model is not fitted.
    ParameterError
        If it has no schema.
    """
    return Effects(released_model(model), unit_of_scores(model), depends_on_differences(model), partial(chance_of, model))


def words_on_noise(model: Any, effects: Iterable[Effect] = ()) -> list[str]:
    """Whether columns act together, and which effects of a model, or coefficients, do not stand out of noise."""
    features = getattr(released_model(model).schema, "random_features", None)
    found = ["Columns were found to act together."] * (features is not None and features.if_found)
    found += [wording("features not found")] * bool(getattr(released_model(model).schema, "features_not_found", None))
    named: Iterable[tuple[str, Any]] = ((one.name, (one,)) for one in ReleasedCoefficients.of(model).coefficients)
    if effects or has_effects(released_model(model)):
        shown = effects or effects_of(model).with_bands()
        named = ((one.name if one.label is None else f"{one.label}: {one.name}", one.values) for one in shown)
    kinds: tuple[list[str], ...] = ([], [], [])
    for name, values in named:
        if stand := [sum(abs(one.estimate) > size for size in one.noise) for one in values if one.noise]:
            kinds[2 - max(stand)].append(name)
    lists = [f"{listed(of[:_MOST_NAMED])}{f' and {len(of) - _MOST_NAMED} more' * (len(of) > _MOST_NAMED)}" for of in kinds]
    told = [sentence.format(names) for sentence, names, of in zip(_STANDING, lists, kinds, strict=True) if of]
    return found + (told or [_ANY_SIZE] * model.guarantee_.budget.is_private)


def chance_of(model: Any) -> tuple[Array, Array, bool] | None:
    """What chance alone makes of columns without an effect: two roots (columns, q) of covariances of the weights of a score.

    They are those of `chance_of_weights`, in the units of `coef_`, by the plan that follows from the public facts in the
    model; and whether the noise has Laplace's law. None without noise or without these facts, beside random features, with a
    prior, for counts, and where columns are too many.
    """
    released = released_model(model)
    plan: Any = None
    coef, known = released.scoring.coef, released.guarantee.circumstances
    if known is not None and released.fourier is None and released.prior is None and coef.shape[1] <= _MOST_COLUMNS:
        with suppress(ConfideError, KeyError):
            plan = plans_again(model)[0]
    if plan is None or plan.lattice is None or getattr(model, "_has_counts", False):
        return None  # how the loss of counts bends depends on their mean, which is not known
    kept = np.arange(coef.shape[1])
    if released.encoder is not None and (part := getattr(plan, "atoms", None)) is not None:
        found = [one for one in released.encoder.schema.columns if one.is_number and one.before_fit is not one]
        kept = encoder_with_slots(released.encoder, part).with_found(found)[1]
    # Weights for centred rows are magnified. No public fact says by how much, but for its bound.
    factors = (1.0 / USUAL_RADIUS, 1.0 / LEAST_RADIUS) if is_centred(plan.problem.row_bound) else (1.0, 1.0)
    of_mean = math.sqrt(1.0 - 1.0 / len(coef)) if depends_on_differences(model) else 1.0
    form: Any = settings_of_model(model).penalty
    sizes = zip(factors, chance_of_weights(plan, coef), strict=True)
    roots = [np.diag(of_mean * factor * size[kept]) for factor, size in sizes]
    usual, at_most = roots if form is None else [form.weights_of(root).T for root in roots]
    return usual, at_most, "laplace" in (plan.lattice.law, getattr(plan.noise, "law", ""))
