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
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property, partial, reduce
from itertools import combinations, compress, product
from numbers import Real
from typing import TYPE_CHECKING, Any, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from confide.array_types import Array
from confide.blocks import Block, Shown, frame_of, text
from confide.errors import ParameterError, is_label, is_text, wording
from confide.features.canonical_labels import canonical_label, is_missing
from confide.features.codes import ColumnEncoding
from confide.features.columns import Column, NumberColumn, with_unit
from confide.features.encoder import Encoder
from confide.features.fourier import CurvesAndFeatures
from confide.inference.debiased import with_known_zeros
from confide.inference.intervals import Evidence, JointUncertainty, checked_level, known_scores, level_of_each
from confide.inference.rates import Interval, json_form
from confide.inference.table import NamedUnit
from confide.known_words import listed, suggest_keywords_of
from confide.models.model import ReleasedModel, ShownClass
from confide.parameters import checked_choice

if TYPE_CHECKING:
    import pandas as pd


# The values of a column at which its effects are given, and their public weights.
#
# A number has its low, its knots and its high. Between two of these its effect is a straight line on the column's own
# scale. A category has its levels. Missing cells are a value of their own, where the schema declares them, and so is each
# atom of a number.
#
# Weights say what the mean of an effect over a column is. They follow from the schema alone. For a number they are those of
# the trapezoid rule on the column's own scale, linear or log, so the mean is that of the curve from low to high; missing
# cells and atoms have no weight. For a category all levels weigh the same, "(other)" and "(missing)" included. A category
# that is none of the levels has no weight.

MISSING, OTHER = "(missing)", "(other)"


@dataclass(frozen=True, slots=True, eq=False)
class Points:
    """The values of one column at which effects are given.

    Attributes
    ----------
    column : the column's public description
    values : numbers in rising order, dates as text, or levels; then "(missing)" if it is declared; then the atoms, as
        "= 999". Only values that people are shown
    numbers : those of the values that stand for numbers: of dates the days since 1970-01-01, of ordered levels their ranks
    positions : (number of numbers,), the numbers on the column's own scale, stretched to [-1, 1]; empty for a category
    weights : (n_points,), not negative, with sum 1. There is one more point than values if a category may be none of the
        levels; that point is last
    is_line : whether the effect of a number is a straight line
    steps : how many parts there are between two knots, each a straight line: one, or more beside random features
    """

    column: Column
    values: tuple[Any, ...]
    positions: Array
    weights: Array
    numbers: tuple[float, ...] = ()
    is_line: bool = False
    steps: int = 1

    @classmethod
    def of(cls, encodings: Iterable[ColumnEncoding], steps: int = 1) -> Points:
        """The points of a column from its encodings: their knots together, and the ends of so many steps between them."""
        encodings = tuple(encodings)
        first = encodings[0]
        if not first.is_number:
            category = first.column
            levels = [*category.categories, *[OTHER] * (category.other is True), *[MISSING] * bool(category.missing)]
            weights = np.full(len(levels), 1.0 / len(levels))
            return Points(category, tuple(levels), np.zeros(0), weights if category.other else np.append(weights, 0.0))
        column, columns = first.column, [encoding.column for encoding in encodings if encoding.is_number]
        numbers = sorted({end for one in columns for end in one.knots_with_bounds or (one.low, one.high)})
        is_line = len(numbers) == 2
        if column.ordered:
            numbers, steps = [float(rank) for rank in range(len(column.ordered))], 1
        positions = column.stretched(np.array(numbers, dtype=np.float64))
        if steps > 1:
            places = np.arange(steps * (len(numbers) - 1) + 1)
            positions = np.interp(places / steps, places[: len(numbers)], positions)
            between = column.numbers_at(0.5 * (positions + 1.0)).tolist()
            between[::steps] = numbers
            numbers = between
        lengths = np.diff(positions)
        # The trapezoid rule: half of each interval belongs to each of its ends.
        weights = (np.append(lengths, 0.0) + np.insert(lengths, 0, 0.0)) / (2.0 * lengths.sum())
        others = (*[MISSING] * bool(column.missing), *map(partial(_shown_atom, column), column.atoms))
        values = (*(column.texts_of(numbers) if column.dates else map(column.value_of, numbers)), *others)
        return Points(column, values, positions, np.append(weights, np.zeros(len(others))), tuple(numbers), is_line, steps)

    @property
    def n_numbers(self) -> int:
        """How many of the points are numbers."""
        return len(self.positions)

    @property
    def inner_knots(self) -> tuple[float, ...]:
        """The knots of the curve of a number, without its low and high."""
        return self.numbers[self.steps : -1 : self.steps]

    @property
    def texts(self) -> tuple[str, ...]:
        """The values as people read them: with four digits that count, or more where two would read alike."""

        def text_of(value: Any, digits: int) -> str:
            if not isinstance(value, float) or value == 0.0 or not math.isfinite(value):
                return str(value)
            whole = math.floor(math.log10(abs(value))) + 1
            return f"{float(f'{value:.{max(digits, whole)}g}'):.15g}"

        for digits in range(4, 17):
            texts = tuple(text_of(value, digits) for value in self.values)
            if len(set(texts)) == len(texts):
                return texts
        return tuple(map(str, self.values))

    def _on_curve(self, number: float) -> Array:
        """(n_points,): how the effect of the line or the curve at a number is made of the effects at the points."""
        assert self.column.is_number  # noqa: S101  # asked of numbers alone
        place, mixture = float(self.column.stretched(np.array([number]))[0]), np.zeros(len(self.weights))
        mixture[: self.n_numbers] = [np.interp(place, self.positions, row) for row in np.eye(self.n_numbers)]
        return mixture

    @property
    def is_log(self) -> bool:
        """Whether the column's own scale is logarithmic."""
        return isinstance(self.column, NumberColumn) and self.column.is_log

    def effects(self, encoding: ColumnEncoding, weights: Array) -> Array:
        """(n_points, ...): the effect at each point, from the weights (size, ...) of a column's encoded columns."""
        if not encoding.is_number and encoding.number is not None:
            return np.concatenate([np.zeros((len(self.values) - len(weights), *weights.shape[1:])), weights])
        if not encoding.is_number:
            levels = np.arange(len(self.values))
            if len(self.weights) > len(levels):
                levels = np.append(levels, -1)
            if encoding.single.size:
                return np.asarray(np.multiply.outer(encoding.single[levels], weights[0]))
            padded: Array = np.concatenate([weights, np.zeros_like(weights[:1])])  # a category that is no level gives zeros
            return padded[levels]
        column = encoding.column
        numbers = np.array([*self.numbers, *[math.nan] * bool(column.missing), *column.atoms], dtype=np.float64)
        codes = column.stretched(numbers) if encoding.is_plain else encoding.codes(numbers)
        encoded = np.empty((len(weights), len(numbers)))
        encoding.write(codes, encoded)
        return np.tensordot(encoded, weights, axes=(0, 0))

    def mixture(self, value: Any) -> Array:
        """(n_points,): how the effect at a value is made of the effects at the points.

        Raises
        ------
        ParameterError
            If the value lies outside the bounds of a number, or is not a level of a category.
        """
        mixture = np.zeros(len(self.weights))
        absent = value is None or (isinstance(value, Real) and value != value)
        if isinstance(value, str):
            absent = value == MISSING or is_missing(canonical_label(value), self.values)
        if not absent and self.column.missing_codes and isinstance(value, (str, Real)):
            absent = canonical_label(value) in map(canonical_label, self.column.missing_codes)
        if absent:
            if MISSING not in self.values:
                raise ParameterError(f'column "{self.column.name}": missing cells are not declared, so they have no effect.')
            mixture[self.values.index(MISSING)] = 1.0
        elif self.column.is_number:
            low, high, number = self.column.low, self.column.high, self.column.number_of(value)
            if not low <= number <= high:
                ends = f"from {' to '.join(self.column.texts_of((low, high)))}"
                what = "date" if self.column.dates else "level" if self.column.ordered else "number"
                raise ParameterError(f'column "{self.column.name}": give a {what} {ends}, the bounds of the column.')
            mixture = self._on_curve(number)
            if number in self.column.atoms:
                mixture = np.eye(len(mixture))[self.values.index(_shown_atom(self.column, number))]
        else:
            wanted = canonical_label(value) if isinstance(value, (str, Real, np.bool_)) else None
            alike = [place for place, level in enumerate(self.values) if canonical_label(level) == wanted]
            if wanted is None or not alike:
                shown = listed(map(str, self.values[:10])) + (", ..." if len(self.values) > 10 else "")
                raise ParameterError(f'column "{self.column.name}": give one of its levels: {shown}.')
            # True equals 1, and False 0, so what is no text is found by its label.
            mixture[self.values.index(value) if isinstance(value, str) and value in self.values else alike[0]] = 1.0
        return mixture


def _shown_atom(column: NumberColumn, atom: float) -> str:
    return f"= {column.value_of(atom)}"


# From weights to effects: a score as an intercept, an effect of each column, and what interactions add to these.
#
# Weights alone do not determine effects: a constant may move from a curve to the intercept, and a curve from an interaction
# to a column, without a change of any score. Effects are made unique by the public weights of `points`: each effect has
# weighted mean 0 along each of its columns. For an interaction this is called purification (Lengerich, Tan, Chang, Hooker
# and Caruana, *Purifying interaction effects with the functional ANOVA*, AISTATS 2020). With P_j the mean over column j,
#
#     f = sum over subsets S of its columns of  product of (1 - P_j) for j in S  and of P_j for the other j,  applied to f,
#
# and the term of S is the part of f that belongs to the columns in S; the term of the empty set is a constant. The terms
# add up to f. Each is a linear map of the weights, so weights may be given as many vectors at once.


@dataclass(frozen=True, slots=True, eq=False)
class Term:
    """What some columns together add to the score, beyond what fewer of them add.

    Attributes
    ----------
    columns : names of the columns, in the order of the schema
    points : the points of each column
    effects : (points of the first column, ..., points of the last, vectors of weights)
    """

    columns: tuple[str, ...]
    points: tuple[Points, ...]
    effects: Array


def decomposition(encoder: Encoder, weights: Array, appended: Any = None) -> tuple[Array, tuple[Term, ...]]:
    """The effects of vectors of weights (n_features, vectors) of the encoded columns, and of the features after them.

    Returns
    -------
    constant : (vectors of weights,), to be added to the intercept
    terms : those of single columns first, in the order of the schema; of random features, the strongest pairs of columns
    """
    points, n_columns = points_of(encoder, appended), encoder.n_features

    def part_of(name: str, keeps: bool, effects: Array, axis: int) -> Array:
        mean = np.expand_dims(np.tensordot(points[name].weights, effects, axes=(0, axis)), axis)
        return effects - mean if keeps else mean

    constant, parts = _parts_by_columns(encoder, points, weights[:n_columns], np.zeros(weights.shape[1]), part_of)
    if appended is not None:
        features = _SumOfFeatures.of(encoder, points, appended, weights[n_columns:])
        constant = constant + features.part(())[0]
        parts |= {(name,): parts[(name,)] + features.part((name,)) for name in points}
        parts |= features.strongest_pairs()
    return constant, tuple(Term(key, tuple(points[name] for name in key), part) for key, part in parts.items())


def _parts_by_columns(
    encoder: Encoder, points: dict[str, Points], weights: Array, constant: Array, part_of: Callable[..., Array]
) -> tuple[Array, dict[tuple[str, ...], Array]]:
    """A score as the sum of a constant and of a part for each set of columns, those of single columns first.

    `part_of` takes from effects, along the axis of a column, the part that belongs to the column or the part that does not,
    which has length 1 there.
    """
    names = encoder.schema.column_names
    parts: dict[tuple[str, ...], Array] = {(): constant}
    for ordered, effects in effects_of_groups(encoder, points, weights):
        for kept in product((True, False), repeat=len(ordered)):
            part = effects
            for axis, (name, keeps) in enumerate(zip(ordered, kept, strict=True)):
                part = part_of(name, keeps, part, axis)
            key = tuple(compress(ordered, kept))
            part = part.reshape(*compress(part.shape, kept), part.shape[-1])
            parts[key] = parts[key] + part if key in parts else part
    constant = parts.pop(())
    return constant, {key: parts[key] for key in sorted(parts, key=lambda key: (len(key), [*map(names.index, key)]))}


def members_of_groups(encoder: Encoder) -> list[tuple[str, ...]]:
    """The names of the columns of each group of encoded columns: one, also for atoms, or those of an interaction."""
    schema = encoder.schema
    return [*((name,) for name in schema.names_of_codes), *(interaction.columns for interaction in schema.interact)]


def points_of(encoder: Encoder, appended: Any = None) -> dict[str, Points]:
    """The points of each column, with the knots that it has by itself and in interactions; more beside random features."""
    encodings: dict[str, list[ColumnEncoding]] = {name: [] for name in encoder.schema.column_names}
    for members, factors in zip(members_of_groups(encoder), encoder.factors, strict=True):
        for name, encoding in zip(members, factors, strict=True):
            encodings[name].append(encoding)
    steps = 1 if appended is None else _STEPS_BETWEEN_KNOTS
    return {name: Points.of(encoding, steps) for name, encoding in encodings.items()}


def effects_of_groups(
    encoder: Encoder, points: dict[str, Points], weights: Array
) -> Iterator[tuple[tuple[str, ...], Array]]:
    """What each group of encoded columns adds to the score, at the points of its columns.

    The names of the columns are in the order of the schema, and the effects have the shape (points of the first column, ...,
    points of the last, vectors of weights).
    """
    names = encoder.schema.column_names
    groups = zip(members_of_groups(encoder), encoder.factors, encoder.groups, encoder.row_bound.scales, strict=True)
    for members, factors, group, scale in groups:
        places = [names.index(name) for name in members]
        effects = (scale * weights[group.place]).reshape(*(len(factor.names) for factor in factors), -1)
        for axis, (name, factor) in enumerate(zip(members, factors, strict=True)):
            effects = np.moveaxis(points[name].effects(factor, np.moveaxis(effects, axis, 0)), 0, axis)
        in_order = np.argsort(places).tolist()
        yield tuple(members[i] for i in in_order), effects.transpose(*in_order, len(in_order))


# What random features beside the encoded columns add to a score: the real part of a sum of c exp(i w . x) over frequencies
# w. The angle w . x is a sum of angles, one for each column, so exp(i w . x) is a product of one factor for each column.
#
# Over independent columns, each at its points with their weights, the mean of a product is the product of the means. So
# everything has a closed form: the part that belongs to some columns has, for each frequency, the factors of these columns
# less their means, times the means of the other columns; and the mean square of the sum needs one matrix for each column.

_STEPS_BETWEEN_KNOTS = 4
"""Between two knots a function of an angle bends, and is given at three values."""
_MOST_PAIRS = 2
"""So many pairs of columns are given by themselves."""
_Complex: TypeAlias = NDArray[np.complex128]


@dataclass(frozen=True, slots=True, eq=False)
class _SumOfFeatures:
    """The sum, for vectors of weights.

    Attributes
    ----------
    points : of each column
    factors : (n_points, frequencies), the factors of each column at its points
    sizes : (frequencies, vectors), the complex numbers c
    """

    points: dict[str, Points]
    factors: dict[str, _Complex]
    sizes: _Complex

    @classmethod
    def of(cls, encoder: Encoder, points: dict[str, Points], appended: Any, weights: Array) -> Self:
        """Of the weights (features, vectors): those of cosines first, then those of sines."""
        frequencies, (cosines, sines) = appended.features.frequencies, np.split(weights, 2)
        angles: dict[str, Any] = dict.fromkeys(points, 0.0)
        for (name,), more in effects_of_groups(encoder, points, frequencies.T):
            angles[name] = angles[name] + more
        sizes = np.asarray(appended.feature_norm / math.sqrt(len(frequencies)) * (cosines - 1j * sines), np.complex128)
        return cls(points, {name: np.exp(1j * angle) for name, angle in angles.items()}, sizes)

    def _mean(self, name: str) -> Any:
        return self.points[name].weights @ self.factors[name]

    def part(self, names: tuple[str, ...]) -> Array:
        """(points of the first column, ..., vectors): the part that belongs to these columns; (1, vectors) for none."""
        made: Any = np.ones((1, len(self.sizes)))
        for name in self.points:
            if name not in names:
                made = made * self._mean(name)
        for name in names:
            made = (made[:, None] * (self.factors[name] - self._mean(name))).reshape(-1, len(self.sizes))
        shape = [len(self.points[name].weights) for name in names] or [1]
        return np.asarray((made @ self.sizes).real.reshape(*shape, -1))

    def variances(self) -> Array:
        """(vectors,): of the sum, over independent columns."""
        alike: Any = 1.0
        opposite: Any = 1.0
        for name, factors in self.factors.items():
            weighted = self.points[name].weights[:, None] * factors
            alike, opposite = alike * (factors.T @ weighted), opposite * (factors.conj().T @ weighted)
        squares = (self.sizes * (alike @ self.sizes) + self.sizes.conj() * (opposite @ self.sizes)).real.sum(axis=0)
        return np.asarray(0.5 * squares - self.part(())[0] ** 2)

    def strongest_pairs(self) -> dict[tuple[str, ...], Array]:
        """The parts of the pairs of columns with the largest variance, summed over vectors."""
        pairs = combinations(self.points, 2)
        terms = [Term(pair, tuple(self.points[name] for name in pair), self.part(pair)) for pair in pairs]
        strongest = sorted(terms, key=lambda term: -float(variances_of(term).sum()))[:_MOST_PAIRS]
        return {term.columns: term.effects for term in terms if term in strongest}


def variances_of(term: Term) -> Array:
    """(vectors,): the variance of effects of mean 0, over independent columns with the weights of their points."""
    squares = np.square(term.effects)
    for points in term.points:
        squares = np.tensordot(points.weights, squares, axes=(0, 0))
    return np.asarray(squares)


@dataclass(frozen=True, slots=True)
class Value(Interval):
    """An effect at one value of a column, or at one value of each column of an interaction.

    Attributes
    ----------
    effect : float
        What is added to the score, as released.
    low, high, joint_low, joint_high, standard_error : float or None
        The ends of the interval for this value by itself, and for all values of the effect together; the standard error, due
        to sampling and noise together. None where no intervals were bought, inf where the noise hides what the rows tell.
    value : a number, a level or "(missing)"; for an interaction a tuple of them
    noise : (float, float), or empty
        How far from 0 noise alone reaches here, see `Effects`; empty where it is not known.
    """

    estimate: float
    value: Any
    noise: tuple[float, ...] = ()
    standard_error: float | None = None
    joint_low: float | None = None
    joint_high: float | None = None

    @property
    def effect(self) -> float:
        """What is added to the score."""
        return self.estimate

    @property
    def stands_out(self) -> bool:
        """Whether its interval does not hold 0, or where none was bought, whether it is larger than even noise."""
        if self.low is not None and self.high is not None:
            return not self.low <= 0.0 <= self.high
        return abs(self.estimate) > min(self.noise, default=0.0)

    def to_dict(self) -> dict[str, Any]:
        """What a frame and a file have of it: value and effect, what noise makes, and where they were bought, intervals."""
        noise = zip(("noise_if_even", "noise_at_most"), self.noise, strict=False)
        names = ("standard_error", "low", "high", "joint_low", "joint_high") * (self.standard_error is not None)
        return {"value": self.value, "effect": self.effect} | dict(noise) | {name: getattr(self, name) for name in names}


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
        """Whether it is the effect of one number, which is no rank of an ordered category."""
        return len(self.points) == 1 and self._n_on_curve > 0

    @property
    def _n_on_curve(self) -> int:
        return 0 if getattr(self.points[0].column, "ordered", ()) else self.points[0].n_numbers

    @property
    def size(self) -> tuple[bool, float]:
        """What a sort of effects compares: whether some value stands out, then the root mean square over its values.

        Values count by the public weights of their points.
        """
        weights = reduce(np.multiply.outer, [points.weights[: len(points.values)] for points in self.points]).ravel()
        squares = np.square([value.effect for value in self.values])
        return any(value.stands_out for value in self.values), math.sqrt(float(weights @ squares))

    @property
    def has_band(self) -> bool:
        """Whether every value has a finite interval."""
        return all(value.high is not None and math.isfinite(value.high) for value in self.values)

    @property
    def curve(self) -> tuple[Value, ...]:
        """The values at numbers."""
        return self.values[: self._n_on_curve]

    @property
    def atoms(self) -> tuple[tuple[float, Value], ...]:
        """The atoms of a number, each with its value."""
        atoms = getattr(self.points[0].column, "atoms", ())
        return tuple(zip(atoms, self.values[len(self.values) - len(atoms) :], strict=True))

    @property
    def levels(self) -> tuple[Value, ...]:
        """The values that are not points of a curve: levels, "(missing)" and atoms."""
        return self.values[self._n_on_curve :]


@dataclass(frozen=True)
class Contrast(Interval, Shown):
    """The difference that a change of one column makes, all other columns as they are.

    Attributes
    ----------
    estimate : float
        The effect at the second value minus that at the first, as released.
    low, high : float or None
        The interval contains the difference in the population with probability `level`. None if no intervals were bought.
    standard_error : float or None
        Due to sampling and noise together. None if no intervals were bought.
    column : str
    first, second : the two values
    level : float
    outcome : str
        What the score stands for, for example "log-odds of income = >50K".
    unit : str or None
        The unit of a number, if the schema names one.
    left_out : str
        Which interactions of the column have no part in the difference; empty where there are none.
    """

    standard_error: float | None
    column: str
    first: Any
    second: Any
    level: float
    outcome: str
    unit: str | None = None
    left_out: str = ""

    @property
    def interval(self) -> tuple[float, float] | None:
        """Both ends, or None."""
        return None if self.numbers is None else self.numbers[1:]

    def blocks(self) -> tuple[Block]:
        """The difference and its interval in a sentence."""
        second = with_unit(str(self.second), self.unit)
        change = f"{self.column} from {self.first} to {second}: {self.estimate:+.4f} in {self.outcome}"
        if self.interval is None:
            return (text(f"{change} (no part of the budget was used for intervals)", *filter(None, [self.left_out])),)
        low, high = self.interval
        interval = f"interval at level {self.level:g}: {low:+.4f} to {high:+.4f}"
        return (text(f"{change}, {interval}", *filter(None, [self.left_out])),)


@suggest_keywords_of
@dataclass(frozen=True, eq=False)
class Effects:
    """All effects of a released model.

    Parameters
    ----------
    released : the model, whose rows are described by a schema
    unit : what a score is, for example "log-odds"
    minus_mean_over_classes : whether the mean over classes is subtracted, as for softmax
    chance : gives two roots (columns, q) of the covariance of weights that chance alone makes of columns without an effect,
        where rows are spread evenly and at most, however few rows use a column, and whether the law is Laplace's. All values
        of an effect that is made of such weights stay within the `noise` of each together, with the probability of the bands
    """

    released: ReleasedModel
    unit: str
    minus_mean_over_classes: bool = False
    chance: Callable[[], tuple[Array, Array, bool] | None] = lambda: None

    def __post_init__(self) -> None:
        if not has_effects(self.released):
            of_features = self.released.fourier is not None
            raise ParameterError(wording("no effects beside random features" if of_features else "effects need a schema"))

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
        return self.released.scoring.row_bound != (self.released.fourier or self.encoder).row_bound

    @cached_property
    def _weights(self) -> Array:
        """(weights, scores), in favour of the class that is shown."""
        weights = self._sign * self.released.scoring.coef
        return np.asarray((weights - self._subtracted(weights)).T)

    @cached_property
    def _decomposition(self) -> tuple[Array, tuple[Term, ...]]:
        return decomposition(self.encoder, self._weights, self.released.fourier)

    @cached_property
    def share_of_interactions(self) -> float:
        """The part of the variance of scores that effects of single columns leave, over independent columns."""
        encoder, fourier = self.encoder, self.released.fourier
        sizes = [(len(term.columns) > 1, float(variances_of(term).sum())) for term in self.terms]
        alone, more = (sum(size for is_joint, size in sizes if is_joint is wanted) for wanted in (False, True))
        if fourier is not None:
            features = _SumOfFeatures.of(encoder, points_of(encoder, fourier), fourier, self._weights[encoder.n_features :])
            own = (Term((name,), (points,), features.part((name,))) for name, points in features.points.items())
            more = float(features.variances().sum() - sum(variances_of(term).sum() for term in own))
        return max(0.0, more) / (alone + more) if alone + more > 0.0 else 0.0

    @cached_property
    def intercepts(self) -> Array:
        """(o,): the constant of each score. With it, the effects add up to the score."""
        intercept = self._sign * self.released.scoring.intercept
        return np.asarray(intercept - self._subtracted(intercept) + self._decomposition[0])

    def _subtracted(self, numbers: Array) -> Any:
        """The mean over the classes: of those whose intervals are known, if there are two, as these subtract it too."""
        if not self.minus_mean_over_classes:
            return 0.0
        evidence = self.released.evidence
        known = known_scores(evidence) if isinstance(evidence, Evidence) else np.zeros(len(numbers), bool)
        return numbers[known if known.sum() >= 2 else ...].mean(axis=0)

    @property
    def words_of_interactions(self) -> str:
        """What is said of random features beside the effects; empty without them."""
        if self.released.fourier is None:
            return ""
        return wording("effects with interactions", share_of_interactions=self.share_of_interactions, pairs=_MOST_PAIRS)

    def left_out(self, columns: Iterable[str]) -> str:
        """Which interactions of these columns their single effects leave out, in a sentence; empty where there are none."""
        of_features, joint = self.released.fourier is not None, [term for term in self.terms if len(term.columns) > 1]
        names = listed(":".join(term.columns) for term in joint if of_features or {*term.columns} & {*columns})
        of_all = wording("left out of features", names=names) if of_features else wording("left out of effects", names=names)
        return of_all if names else ""

    @cached_property
    def terms(self) -> tuple[Term, ...]:
        """The effects as arrays, without bands: those of columns first, then interactions."""
        return self._decomposition[1]

    def with_bands(self, level: float = 0.95) -> Iterator[Effect]:
        """Each effect, with bands at this level where intervals were bought. The classes follow one another."""
        level = checked_level(level)
        everywhere: list[tuple[Term, list[int]]] = [(term, _shown_places(term)) for term in self.terms]
        errors, noises = self._errors, self._noises(level)
        for score, label in enumerate(self.labels):
            start = 0
            for (term, places), reaches in zip(everywhere, noises, strict=True):
                effects = term.effects[..., score].ravel()[places].tolist()
                bands: list[Any] = [(None,) * 5] * len(places)
                if errors is not None:
                    # The ends of both kinds of intervals, and the standard error, for each value of one effect.
                    own = errors[score].among(slice(start, start + len(places)))
                    alone, joint, middle = own.margins(level), own.joint_margins(level), self._sign * own.estimates
                    ends = (middle - alone, middle + alone, own.total_error, middle - joint, middle + joint)
                    bands, start = np.column_stack(ends).tolist(), start + len(places)
                at = product(*(points.values for points in term.points))
                values = (
                    Value(effect, low, high, value if len(term.points) > 1 else value[0], noise, *others)
                    for value, effect, (low, high, *others), noise in zip(at, effects, bands, reaches, strict=True)
                )
                yield Effect(term.columns, term.points, label, tuple(values))

    def _noises(self, level: float) -> list[list[Any]]:
        """For each term, how far noise alone reaches at each value that people are shown, in two sizes, or none."""
        if (chance := self.chance()) is None:
            return [[()] * len(_shown_places(term)) for term in self.terms]
        *roots, is_laplace = chance

        def reaches(rows: Array) -> list[float]:
            # Two values of one column are as large as each other, because their mean is 0.
            return sizes_of_chance(rows, level, len(rows) if len(rows) > 2 else 1, is_laplace)

        both = zip(*(decomposition(self.encoder, root)[1] for root in roots), strict=True)
        return [list(zip(*(reaches(_shown_rows(term)) for term in terms), strict=True)) for terms in both]

    @cached_property
    def _maps(self) -> tuple[Term, ...]:
        """The effects as linear maps of the weights of one score: the last axis of each has a number for every weight."""
        return decomposition(self.encoder, np.eye(self.encoder.n_features))[1]

    @cached_property
    def _errors(self) -> list[JointUncertainty] | None:
        """For each score, the errors of all values that people are shown, in the order of the terms."""
        if self.released.evidence is None:
            return None
        return self._errors_of(np.concatenate([_shown_rows(term) for term in self._maps]))

    def _errors_of(self, combinations: Array) -> list[JointUncertainty]:
        """For each score, the errors of combinations (q, n_features) of its weights."""
        evidence = self.released.evidence
        if evidence is None:
            raise ParameterError("nothing was released for intervals.")
        if evidence.intercept > 0.0:
            combinations = np.column_stack([combinations, np.zeros(len(combinations))])
        return with_known_zeros(evidence, self.encoder).joint_uncertainty(combinations)

    def contrast(self, column: str, first: Any, second: Any, *, level: float = 0.95, label: Any = None) -> Contrast:
        """The effect of a column at the second value minus that at the first; of interactions it has no part.

        Raises
        ------
        ParameterError
            If the column is unknown, a value lies outside its bounds or is not one of its levels, or the class is missing or
            unknown.
        """
        level = checked_level(level)
        names = self.encoder.schema.column_names
        if not is_text(column) or column not in names:
            raise ParameterError(f"contrast needs one of the model's columns, which are {listed(names)}.")
        score = self.check_label(label)
        term = next(term for term in self.terms if term.columns == (column,))
        mixture = term.points[0].mixture(second) - term.points[0].mixture(first)
        estimate = float(mixture @ term.effects[:, score])
        outcome = self.outcome if label is None else f"{self.unit} of class {label}"
        unit = getattr(term.points[0].column, "unit", None)
        known: tuple[float | None, float | None, float | None] = (None, None, None)
        if self.released.evidence is not None:
            weights_of = next(effect_map.effects for effect_map in self._maps if effect_map.columns == (column,))
            errors = self._errors_of((mixture @ weights_of)[None])[score]
            middle, margin = self._sign * float(errors.estimates[0]), float(errors.margins(level)[0])
            known = (middle - margin, middle + margin, float(errors.total_error[0]))
        return Contrast(estimate, *known, column, first, second, level, outcome, unit, self.left_out({column}))

    def check_label(self, label: Any) -> int:
        """The position of a class's score. Raises ParameterError if the model has no score of its own for this label."""
        if not (label is None or is_label(label)) or label not in self.labels:
            if self.labels == (None,):
                raise ParameterError("leave label out: this model has one score, not one for each class.")
            raise ParameterError(f"a model has a score for each class: give label= one of {listed(map(str, self.labels))}.")
        return self.labels.index(label)

    def to_frame(self, level: float = 0.95) -> pd.DataFrame:
        """A pandas frame: column, value and effect; where intervals were bought, standard errors and ends of intervals.

        With three or more classes, the first column is the class.
        """
        pairs = ((effect, value) for effect in self.with_bands(level) for value in effect.values)
        of_class = len(self.labels) > 1
        lines = [({"class": one.label} if of_class else {}) | {"column": one.name} | value.to_dict() for one, value in pairs]
        frame = frame_of(lines)
        frame.attrs["share_of_interactions"] = self.share_of_interactions
        return frame

    def to_dict(self, level: float = 0.95) -> dict[str, Any]:
        """A JSON form. What the noise hides is None."""
        return {
            "outcome": self.outcome,
            "level": level,
            "share_of_interactions": self.share_of_interactions,
            "intercept": {str(label): value for label, value in zip(self.labels, self.intercepts.tolist(), strict=True)}
            if len(self.labels) > 1
            else float(self.intercepts[0]),
            "effects": [
                ({"class": effect.label} if len(self.labels) > 1 else {})
                | {
                    "columns": list(effect.columns),
                    "values": [{k: json_form(v) for k, v in value.to_dict().items()} for value in effect.values],
                }
                for effect in self.with_bands(level)
            ],
        }


def has_effects(released: ReleasedModel) -> bool:
    """Whether the weights of a released model are those of columns of a schema, with random features beside them or not."""
    if released.encoder is None or released.fourier is None:
        return released.encoder is not None
    alone = all(len(interaction.columns) == 1 for interaction in released.encoder.schema.interact)
    return isinstance(released.fourier, CurvesAndFeatures) and alone


def _shown_places(term: Term) -> list[int]:
    """Positions, among all points of a term, of those that people are shown."""
    shape = tuple(len(points.weights) for points in term.points)
    shown = np.arange(math.prod(shape)).reshape(shape)[tuple(slice(len(points.values)) for points in term.points)]
    return shown.ravel().tolist()


def _shown_rows(term: Term) -> Array:
    """(values that people are shown, vectors of weights): the effects of a term there."""
    return term.effects.reshape(-1, term.effects.shape[-1])[_shown_places(term)]


# What noise alone makes: bands around 0, and what does not stand out of them.


def sizes_of_chance(root: Array, level: float, n_together: int, is_laplace: bool) -> list[float]:
    """Sizes within which all of so many numbers lie with this probability, from a root (numbers, q) of their covariance.

    For Laplace's law a number counts as one draw of it, which has the longest tails of all combinations.
    """
    alone = level_of_each(level, n_together)
    quantile = -math.log1p(-alone) / math.sqrt(2.0) if is_laplace else float(ndtri(0.5 + 0.5 * alone))
    return [quantile * float(size) for size in np.linalg.norm(root, axis=1)]


# Coefficients in the units of the table, from the weights of encoded columns.
#
# Inside, numbers are stretched to [-1, 1] and categories become columns of zeros and ones. People read other numbers: how
# the score changes when a number grows by 1, and how a category differs from a reference. Both are linear maps of the
# weights, so this is post-processing, and intervals are transformed exactly.
#
# Each column j has a base b_j and contrasts c_j, linear maps of its effect at the points of the column:
#
# - A straight number: the base is its effect at 0, as in any regression on raw columns; the contrast is its slope, for a
#   step of 1 or of a named power of ten. On a log scale the base is the low, and the slope is for each doubling of 1 + x -
#   low, or of x itself on the log10 scale.
# - A number with a curve: the base is a point in the middle, and each other point is compared with it.
# - An ordered category: that of a straight number, for each level; or, with a curve, of a category. A date: its base is the
#   low, and its slope is for a year.
# - A category: the base is the reference, the first level; each other level is compared with it.
#
# A score is a sum of functions f_S of some columns S. The coefficient of columns T is the sum over all S that contain T of
# the contrasts of the columns in T and of the bases of the others, applied to f_S. This is treatment coding on raw columns,
# as in statsmodels and R. A number that has interactions has its base in the middle of its bounds instead of at 0: its own
# coefficient then speaks of a value that rows may have.

_DAYS_OF_YEAR = 365.25
INTERCEPT = "(intercept)"
UNITS = ("original", "encoded")


_Axis = tuple[Array, Array, list[tuple[str, str, float]]]
"""The base (n_points,) and the contrasts (r, n_points) of one column, and name, unit and span of each contrast."""


def in_original_units(encoder: Encoder, weights: Array, intercepts: Array) -> tuple[tuple[NamedUnit, ...], Array]:
    """The coefficients in the units of the table.

    Parameters
    ----------
    encoder : the encoder of the schema
    weights : (n_features, vectors), weights of the encoded columns
    intercepts : (vectors,), which belong to these weights

    Returns
    -------
    (q units, array (q, vectors))
        The columns in the order of the schema, then interactions, and the intercept last.
    """
    points = points_of(encoder)
    in_interactions = {name for made in encoder.schema.interact if not made.is_curve for name in made.columns}
    axes = {name: _axis_of(point, has_interactions=name in in_interactions) for name, point in points.items()}

    def part_of(name: str, keeps: bool, effects: Array, axis: int) -> Array:
        base, contrasts, _ = axes[name]
        return np.moveaxis(np.tensordot(contrasts if keeps else base[None], effects, axes=(1, axis)), 0, axis)

    constant, parts = _parts_by_columns(encoder, points, weights, np.asarray(intercepts, dtype=np.float64), part_of)
    units = [
        NamedUnit(" x ".join(names), ", ".join(units), key, math.prod(spans))
        for key in parts
        for lines in product(*(axes[name][2] for name in key))
        for names, units, spans in [zip(*lines, strict=True)]
    ]
    flat = [part.reshape(-1, part.shape[-1]) for part in parts.values()]
    return (*units, NamedUnit(INTERCEPT, "", ())), np.concatenate([*flat, constant[None]])


def checked_units(units: str | None, encoder: Encoder | None, *, is_mapped: bool = False) -> str:
    """The units that a user asked for; by default the original ones, where a schema says what they are.

    Parameters
    ----------
    units : "original", "encoded" or None
    encoder : the encoder of the schema, or None
    is_mapped : whether rows are mapped to random features, whose weights have no unit of the table

    Raises
    ------
    ParameterError
        If the name is unknown, or there are no original units.
    """
    checked_choice("units", units, (*UNITS, None))
    has_original = encoder is not None and not is_mapped
    if units == "original" and not has_original:
        raise ParameterError(wording("units need a schema"))
    return units or ("original" if has_original else "encoded")


def encoded_units(encoder: Encoder) -> tuple[str, ...]:
    """(n_features,): what a weight of each encoded column is for, in words."""
    units: list[str] = []
    for members, factors in zip(members_of_groups(encoder), encoder.factors, strict=True):
        product_of_columns = ["product of encoded columns"] * math.prod(len(factor.names) for factor in factors)
        units += _units_of_encoded(factors[0]) if len(members) == 1 else product_of_columns
    return tuple(units)


def _axis_of(points: Points, *, has_interactions: bool) -> _Axis:
    column, everywhere = points.column, np.eye(len(points.weights))
    if not column.is_number:
        if len(points.values) == 1:
            # The only level is compared with rows that have no level, if there can be any.
            base, places, unit = everywhere[-1], range(len(everywhere) - 1), "against no listed level"
        else:
            base, places, unit = everywhere[0], range(1, len(points.values)), f"against {points.values[0]}"
        of_levels = np.array([everywhere[place] - base for place in places]).reshape(len(places), len(everywhere))
        return base, of_levels, [(f"{column.name}: {points.values[place]}", unit, 1.0) for place in places]
    n = points.n_numbers
    size, unit = _step_of(column)
    if points.is_line:
        base, middle, of_middle = _base_of_line(column, everywhere[[0, n - 1]], has_interactions=has_interactions)
        contrasts, lines = [size * (everywhere[n - 1] - everywhere[0])], [(column.name, unit, 1.0 / size)]
    else:
        reference = 0 if column.ordered else n // 2
        base = middle = everywhere[reference]
        of_middle = with_unit(points.texts[reference], column.unit)
        others = [place for place in range(n) if place != reference]
        contrasts = [everywhere[place] - base for place in others]
        lines = [(f"{column.name} = {points.texts[place]}", f"against {of_middle}", 1.0) for place in others]
    if MISSING in points.values:
        contrasts.append(everywhere[n] - middle)
        lines.append((f"{column.name}: {MISSING}", f"against {of_middle}", 1.0))
    for atom in column.atoms:
        contrasts.append(points.mixture(atom) - points._on_curve(atom))
        beside = "beside the line" if points.is_line else "beside the curve"
        lines.append((f"{column.name} at exactly {column.value_of(atom)}", beside, 1.0))
    return base, np.array(contrasts), lines


def _step_of(column: NumberColumn) -> tuple[float, str]:
    """The step that a slope is for, as a share of the way from low to high on the column's own scale, and its name."""
    width = column.high - column.low
    if column.is_log:
        shift = column.doubling - column.low
        sign, distance = "+" if shift > 0.0 else "-", with_unit(f"{abs(shift):g}", column.unit)
        of_what = "" if shift == 0.0 else f" of {column.name} {sign} {distance}"
        return math.log(2.0) / math.log1p(width / column.doubling), f"per doubling{of_what}"
    if column.ordered or (column.dates and width > 2.0 * _DAYS_OF_YEAR):
        step = 1.0 if column.ordered else _DAYS_OF_YEAR
        return step / width, "per level" if column.ordered else "per year"
    # Per 1 wherever that is a readable step: from the whole width to a thousandth of it.
    step = 1.0 if 1.0 <= width <= 1000.0 else 10.0 ** (math.floor(math.log10(width)) - 1)
    return step / width, with_unit(f"per {step:,.0f}" if step >= 1.0 else f"per {step:.10g}", column.unit_of_steps)


def _base_of_line(column: NumberColumn, everywhere: Array, *, has_interactions: bool) -> tuple[Array, Array, str]:
    """The base of a straight number, the middle of its scale, and that middle in the column's own unit, in words.

    `everywhere` has two rows, which give the effects at low and at high.
    """
    middle = 0.5 * (everywhere[0] + everywhere[1])
    width = column.high - column.low
    number = float(column.numbers_at(np.array([0.5]))[0])
    if has_interactions:
        base = middle
    elif column.is_log or not column.holds_numbers:
        base = everywhere[0]
    else:
        share = -column.low / width
        base = (1.0 - share) * everywhere[0] + share * everywhere[1]
    shown = column.shown(number) if column.dates else "the middle" if column.ordered else f"{number:.6g}"
    return base, middle, with_unit(shown, column.unit)


def _units_of_encoded(encoding: ColumnEncoding) -> tuple[str, ...]:
    if not encoding.is_number:
        unit = "the level" if encoding.number is None else "at exactly the value"
        return ("half of the difference",) if encoding.single.size == 3 else (unit,) * len(encoding.names)
    column = encoding.column
    missing = ("if missing",) * bool(column.missing)
    if column.knots_with_bounds:
        return (*("at the value",) * (len(encoding.names) - len(missing)), *missing)
    if column.is_log:
        return ("per half range of the logarithm", *missing)
    return (with_unit(f"per half range, {0.5 * (column.high - column.low):.6g}", column.unit_of_steps), *missing)
