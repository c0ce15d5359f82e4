"""Penalties that users wrote: read, and checked at public points. It happens before any charge and without data."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np

from confide.erm.strongly_convex import StronglyConvex
from confide.errors import ParameterError
from confide.intake.user_code import check_that_it_can_be_copied, positive_constant
from confide.types import Array

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
    points = [_point(number, n_features) for number in range(5)]
    pairs = []
    for size in _SIZES:
        first, second, third, fourth, step = (size * point for point in points)
        pairs += [(np.zeros(n_features), first), (first, second), (third, 1.01 * third), (fourth, fourth + 0.01 * step)]
        for column in columns:
            moved = fourth.copy()
            moved[column] += step[column]
            pairs.append((fourth, moved))
    return pairs


def _point(number: int, n_features: int) -> Array:
    """A point (d,) with entries from -1.5 to 1.5 that look irregular."""
    found: Array = 1.5 * np.sin((number + 1.0) * np.arange(1.0, n_features + 1.0) ** 1.5 + number)
    return found


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
    shape = () if name == "value" else weights.shape
    answers, message = [], None
    for _ in range(2):
        try:
            with np.errstate(all="ignore"):
                answers.append(np.array(getattr(penalty, name)(weights.copy()), dtype=np.float64))
        except Exception as error:  # noqa: BLE001 - a user's code may raise anything
            message = f"{name} raised {type(error).__name__} at public weights: {error}"
        if message is not None:
            raise _refusal(penalty, message)
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
