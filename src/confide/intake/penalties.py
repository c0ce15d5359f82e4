"""The parameter `penalty`: what a fit penalises in place of |w|^2. Every form that users may give is read here.

A penalty is None (|w|^2), a name, strengths by column, an array of strengths, a matrix, or a function of the user's. What
`checked_penalty` returns is a value that the rest of the package understands by its type.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeAlias

import numpy as np

from confide.array_types import Array, as_array
from confide.erm.penalties import StronglyConvex
from confide.errors import ParameterError, wording
from confide.features.codes import ColumnEncoding
from confide.features.encoder import Encoder
from confide.features.forms import QuadraticForm, Smooth, checked_strength, smoothing_form
from confide.features.groups import Group
from confide.intake.user_losses import called, check_that_it_can_be_copied, positive_constant
from confide.known_words import listed_unknown, words_of

# Penalties that users wrote: read, and checked at public points. It happens before any charge and without data.

_SLACK = 1e-9
"""Allowed relative error of a difference, for rounding."""
_SIZES = tuple(10.0**power for power in range(-4, 4))
"""Sizes of the entries of public points."""
_MOST_COLUMNS_ALONE = 25
"""So many columns, evenly spread, are moved alone."""


def read_penalty(penalty: StronglyConvex) -> StronglyConvex:
    """A user's penalty with its constants as plain numbers.

    Raises
    ------
    ParameterError
        If a constant or the name is of the wrong kind, or it cannot be copied.
    """
    name = penalty.name if isinstance(penalty.name, str) and penalty.name.isprintable() else ""
    if not 0 < len(name) <= 100:
        raise ParameterError("the name of a penalty must be text of 1 to 100 printable characters.")
    convexity, smoothness = _positive(penalty, "strong_convexity"), _positive(penalty, "smoothness")
    if convexity > smoothness:
        raise _refusal(penalty, "strong_convexity is larger than smoothness, and no function has such constants")
    return replace(penalty, strong_convexity=convexity, smoothness=smoothness, rounding=_positive(penalty, "rounding"))


def refuse_without_functions(penalty: StronglyConvex) -> None:
    """Raise ParameterError if there is nothing to minimise: files hold the name and constants of a penalty alone."""
    if penalty.value is None or penalty.gradient is None:
        raise _refusal(penalty, "files do not hold its functions. Give the penalty again: penalty=StronglyConvex(...)")


def check_penalty(penalty: StronglyConvex, n_features: int) -> None:
    """Check what the proofs require of a penalty of so many weights, as far as public points show it.

    A penalty without functions was read from a file, and plans alone can be made with it.

    Raises
    ------
    ParameterError
        If a function fails, or is not what it is declared to be.
    """
    if penalty.value is None and penalty.gradient is None:
        return
    for name in ("value", "gradient"):
        if not callable(getattr(penalty, name)):
            raise _refusal(penalty, f"{name} must be a function of the weights")
    if np.any(_called(penalty, "gradient", np.zeros(n_features)) != 0.0):
        raise _refusal(penalty, "its gradient at 0 is not 0; add a linear function, so that it is least there")
    for first, second in _pairs(n_features):
        _check_pair(penalty, first, second)
    check_that_it_can_be_copied(penalty, partial(_refusal, penalty))


def _pairs(n_features: int) -> list[tuple[Array, Array]]:
    """Pairs of public points: of every size, far apart and close together, along single columns and across all."""
    columns = np.unique(np.linspace(0, n_features - 1, _MOST_COLUMNS_ALONE).astype(int))
    # Five points with entries from -1.5 to 1.5 that look irregular.
    places = np.arange(1.0, n_features + 1.0) ** 1.5
    points = [1.5 * np.sin((number + 1.0) * places + number) for number in range(5)]
    pairs = []
    for size in _SIZES:
        first, second, third, fourth, step = (size * point for point in points)
        pairs += [(np.zeros(n_features), first), (first, second), (third, 1.01 * third), (fourth, fourth + 0.01 * step)]
        for column in columns:
            moved = fourth.copy()
            moved[column] += step[column]
            pairs.append((fourth, moved))
    return pairs


def _check_pair(penalty: StronglyConvex, first: Array, second: Array) -> None:
    """Between two points value and gradients must change as the constants say.

    With s = b - a, of length |s|: m / 2 |s|^2 <= N(b) - N(a) - g(a) . s <= M / 2 |s|^2, and the gradients change by at most
    M |s|, by at least m |s|^2 along s.
    """
    step = second - first
    length = float(np.linalg.norm(step))
    slopes = [_called(penalty, "gradient", point) for point in (first, second)]
    values = [float(_called(penalty, "value", point)) for point in (first, second)]
    change = slopes[1] - slopes[0]
    # Rounding of a gradient, as it is declared, and of values.
    of_slopes = (2.0**-52 * penalty.rounding + 2.0**-45) * penalty.smoothness * max(map(np.linalg.norm, (first, second)))
    size = abs(values[0]) + abs(values[1]) + penalty.smoothness * len(first)
    of_values = 2.0**-40 * size + of_slopes * length
    bend, least, most = values[1] - values[0] - float(slopes[0] @ step), penalty.strong_convexity, penalty.smoothness
    where = f"(seen between public points of norm {np.linalg.norm(first):.3g} and {np.linalg.norm(second):.3g})"
    if float(np.linalg.norm(change)) > most * length * (1.0 + _SLACK) + of_slopes:
        raise _refusal(penalty, f"its gradient changes faster than the declared smoothness, {most:g}, allows {where}")
    if float(change @ step) < least * length**2 * (1.0 - _SLACK) - of_slopes * length:
        raise _refusal(penalty, f"it is not strongly convex with the declared strong_convexity, {least:g} {where}")
    if (
        not 0.5 * least * length**2 * (1.0 - _SLACK) - of_values
        <= bend
        <= 0.5 * most * length**2 * (1.0 + _SLACK) + of_values
    ):
        raise _refusal(penalty, f"its value does not change as its gradient says {where}")


def _called(penalty: StronglyConvex, name: str, weights: Array) -> Array:
    """The value or the gradient at public weights. It is called twice, and must give the same."""
    shape, refusal = () if name == "value" else weights.shape, partial(_refusal, penalty)
    answers = [called(penalty, name, [weights.copy()], "at public weights", refusal) for _ in range(2)]
    if answers[0].shape != shape:
        raise _refusal(penalty, f"{name} must return {'a number' if shape == () else 'an array (d,)'} for weights (d,)")
    if not np.isfinite(answers[0]).all():
        raise _refusal(penalty, f"{name} is not finite at public weights of norm {np.linalg.norm(weights):.3g}")
    if not np.array_equal(answers[0], answers[1]):
        raise _refusal(penalty, f"{name} must depend on the weights alone, and two calls gave two answers")
    return answers[0]


def _positive(penalty: StronglyConvex, name: str) -> float:
    number = positive_constant(penalty, name)
    if number is None:
        raise _refusal(penalty, f"{name} must be a positive finite number")
    return number


def _refusal(penalty: StronglyConvex, what: str) -> ParameterError:
    return ParameterError(f"the penalty {penalty.name} cannot be used: {what}.")


_MOST_COLUMNS = 2000
"""The largest number of columns of a penalty that is given as a matrix."""
_OF_COLUMN = 'the penalty of column "{}", unless it is smooth,'
_MANY_NAMES = 8
"""So many names of columns are shown in a message."""


@dataclass(frozen=True, slots=True)
class GivenForm:
    """A quadratic form as a user gave it, before the columns are known.

    Attributes
    ----------
    by_column : pairs of a column and its strength or `Smooth`; columns that are not named have strength 1
    entries : array (d,) of strengths or (d, d), or None
    smooths_curves : whether all numbers with knots that are not named are smoothed
    """

    by_column: tuple[tuple[str, float | Smooth], ...] = ()
    entries: Array | None = None
    smooths_curves: bool = False

    @property
    def follows_knots(self) -> bool:
        """Whether the form depends on which knots columns have."""
        smooths = any(isinstance(value, Smooth) for _, value in self.by_column)
        return self.smooths_curves or smooths or self.entries is not None


Penalty: TypeAlias = GivenForm | StronglyConvex
"""What `checked_penalty` returns."""

_OF_FUNCTIONS = {"strong_convexity", "smoothness", "name", "rounding"}
"""What a file holds of a penalty whose functions a user wrote."""


def checked_penalty(penalty: Any) -> Penalty | None:
    """A penalty in one of the forms that are understood; None for the ridge |w|^2.

    Raises
    ------
    ParameterError
        If it is of another kind.
    """
    if penalty is None:
        return None
    if isinstance(penalty, str):
        if penalty == "smooth":
            return GivenForm(smooths_curves=True)
        raise ParameterError(f"penalty must be one of {words_of(['smooth'], penalty)} if it is a name.")
    if isinstance(penalty, StronglyConvex):
        return read_penalty(penalty)
    if isinstance(penalty, Mapping) and set(penalty) == _OF_FUNCTIONS:
        return read_penalty(StronglyConvex(None, None, **penalty))
    if isinstance(penalty, Mapping):
        return GivenForm(by_column=tuple((name, _of_column(name, value)) for name, value in penalty.items()))
    if isinstance(penalty, np.ndarray | list | tuple):
        return GivenForm(entries=_entries(penalty))
    raise ParameterError(wording("kinds of penalty"))


def _of_column(name: Any, value: Any) -> float | Smooth:
    """What a user gave for one column: a strength, a `Smooth`, "smooth" or "smooth=30", or what `Smooth.to_dict` writes."""
    if not isinstance(name, str):
        raise ParameterError("the keys of a penalty must be names of columns.")
    if isinstance(value, Smooth):
        return value
    if isinstance(value, str):
        word, _, number = value.partition("=")
        value = _number(number) if number or word != "smooth" else Smooth().strength
        return Smooth(value) if word == "smooth" else checked_strength(_OF_COLUMN.format(name), _number(word))
    if isinstance(value, Mapping) and set(value) <= {"strength", "order", "ridge"}:
        return Smooth(**value)
    return checked_strength(_OF_COLUMN.format(name), value)


def _number(text: str) -> float:
    """A number from text; not a number if it is none, which no range admits."""
    with suppress(ValueError):
        return float(text)
    return math.nan


def _entries(given: Any) -> Array:
    """Strengths (d,), or a symmetric matrix (d, d)."""
    # NumPy would drop imaginary parts and masks.
    entries: Array = np.array([] if np.iscomplexobj(given) or np.ma.is_masked(given) else as_array(given, np.float64))
    is_matrix = entries.ndim == 2 and entries.shape[0] == entries.shape[1] <= _MOST_COLUMNS
    if not entries.size or not (entries.ndim == 1 or is_matrix) or not np.isfinite(entries).all():
        raise ParameterError(wording("array as penalty", most_columns=_MOST_COLUMNS))
    if is_matrix and not np.allclose(entries, entries.T, rtol=1e-9, atol=0.0):
        raise ParameterError("a matrix as penalty must be symmetric.")
    for value in np.diag(entries) if is_matrix else entries:
        checked_strength("each strength of a penalty", float(value))
    return 0.5 * (entries + entries.T) if is_matrix else entries


def written_penalty(penalty: Any) -> Any:
    """The parameter as JSON values, read by `checked_penalty`; of a user's functions, name and constants alone."""
    if isinstance(penalty, StronglyConvex):
        return read_penalty(penalty).to_dict()
    if isinstance(penalty, Mapping):
        return {name: _written_part(value) for name, value in penalty.items()}
    if isinstance(penalty, np.ndarray | list | tuple):
        return np.asarray(penalty, dtype=np.float64).tolist()
    return penalty if isinstance(penalty, str) else None


def _written_part(value: Any) -> Any:
    if isinstance(value, Smooth):
        return value.to_dict()
    return dict(value) if isinstance(value, Mapping) else value if isinstance(value, str) else float(value)


def form_of(given: GivenForm, encoder: Encoder | None, names: Callable[[], Sequence[str]]) -> QuadraticForm:
    """The quadratic form of the columns as they enter a fit, before random features are appended.

    Parameters
    ----------
    given : what the user gave
    encoder : the encoder of the schema, or None
    names : names of the columns of an array or of a frame of numbers

    Raises
    ------
    ParameterError
        If the form does not fit the columns, or is not positive definite.
    """
    if given.entries is not None:
        if encoder is not None and len(given.entries) != encoder.n_features:
            raise ParameterError(wording("penalty of other columns", given=len(given.entries), columns=encoder.n_features))
        is_matrix = given.entries.ndim == 2
        strengths = np.ones(len(given.entries)) if is_matrix else given.entries
        return QuadraticForm.of(strengths, [(0, given.entries)] if is_matrix else [])
    by_column = dict(given.by_column)
    if encoder is not None:
        return _form_of_schema(by_column, encoder, smooths_curves=given.smooths_curves)
    if given.smooths_curves:
        raise ParameterError("penalty='smooth' is for columns of a schema with knots. Give a schema, or strengths.")
    known = [str(name) for name in names()]
    _refuse_unknown(by_column, known)
    strengths = np.ones(len(known))
    for name, value in by_column.items():
        if isinstance(value, Smooth):
            raise ParameterError(f'the penalty of column "{name}" smooths knots or levels, which only a schema describes.')
        strengths[known.index(name)] = value
    return QuadraticForm.of(strengths)


def _form_of_schema(by_column: dict[str, float | Smooth], encoder: Encoder, *, smooths_curves: bool) -> QuadraticForm:
    _refuse_unknown(by_column, [group.column for group in encoder.groups])
    strengths, matrices = np.ones(encoder.n_features), []
    for group, factors in zip(encoder.groups, encoder.factors, strict=True):
        value = by_column.get(group.column)
        if isinstance(value, Smooth) and not factors[0].is_number and factors[0].number is not None:
            value = value.ridge  # atoms have no neighbours
        if value is None and smooths_curves and len(factors) == 1 and factors[0].is_number and factors[0].column.knots:
            value = Smooth()
        if isinstance(value, Smooth):
            matrix = _smoothed(group, factors, value)
            strengths[group.place] = value.ridge
            matrices.append((group.start, matrix))
        elif value is not None:
            strengths[group.place] = value
    if smooths_curves and not matrices:
        raise ParameterError("penalty='smooth' needs a column with knots; the schema has none. Write knots in the schema.")
    return QuadraticForm.of(strengths, matrices)


def _smoothed(group: Group, factors: Sequence[ColumnEncoding], smooth: Smooth) -> Array:
    """The matrix of the weights of a column with knots, or of the listed levels of a category, in their order."""
    encoding = factors[0]
    order = smooth.order or (2 if encoding.is_number else 1)
    if len(factors) == 1 and encoding.is_number and encoding.n_hats > order:
        return smoothing_form(encoding.column.stretched(np.array(encoding.column.knots_with_bounds)), smooth, order)
    if len(factors) == 1 and not encoding.is_number and not encoding.single.size:
        levels = len(encoding.column.categories)
        if levels > order:
            return smoothing_form(np.arange(float(levels)), smooth, order)
    raise ParameterError(wording("nothing to smooth", column=group.column, order=order))


def _refuse_unknown(by_column: Mapping[str, Any], known: Sequence[str]) -> None:
    unknown = [name for name in by_column if name not in known]
    if unknown:
        shown = ", ".join(f'"{name}"' for name in known[:_MANY_NAMES]) + (", ..." if len(known) > _MANY_NAMES else "")
        raise ParameterError(f"the penalty names {listed_unknown(unknown[:1], known)}, no column. Columns are {shown}.")
