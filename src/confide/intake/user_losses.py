"""Losses that users wrote: read, and checked on a grid of public numbers. It happens before any charge and without data.

What is asked of every object with functions of a user, a loss or a penalty, comes first.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from copy import deepcopy
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from confide.array_types import Array
from confide.erm.row_bounds import LARGEST_BOUND
from confide.erm.transformed_losses import DeclaredLoss
from confide.errors import ParameterError, as_float

_FUNCTIONS = ("value", "derivative", "second_derivative")
_WITH_KINKS = ("value", "derivative")
"""What a loss with kinks has: it declares neither `second_derivative` nor `smoothness`."""
_DEFAULT_ROUNDING = 1024.0
"""The error of a computed derivative, in units of 2^-53 lipschitz, if the loss does not declare it."""
_SLACK = 1e-9
"""Allowed relative error of a difference, for rounding."""
_LARGEST_SHARE_OF_KINKS = 0.05
"""The derivative may have kinks at this share of the grid, where it does not change as the second derivative says."""


def check_that_it_can_be_copied(given: object, refusal: Callable[[str], ParameterError]) -> None:
    """Solvers, which are not trusted, get a copy, and making it must not fail after a charge.

    Ask it when the functions of the object have been called, for they may keep in it what cannot be copied.

    Parameters
    ----------
    given : the user's object
    refusal : makes the error to raise, from what is wrong
    """
    try:
        deepcopy(given)
        return
    except Exception as error:  # noqa: BLE001 - a user's code may raise anything
        kind = type(error).__name__
    raise refusal(f"copy.deepcopy cannot copy it and raises {kind}; keep locks and open files out of it")


def positive_constant(given: object, name: str) -> float | None:
    """A constant that the object declares, as a plain number; None unless it is positive and at most `LARGEST_BOUND`."""
    number = as_float(getattr(given, name, None))
    return number if 1.0 / LARGEST_BOUND <= number <= LARGEST_BOUND else None


def called(
    given: object, name: str, arguments: Sequence[Array], where: str, refusal: Callable[[str], ParameterError]
) -> Array:
    """What a function of the object gives for public arguments, as an array of its own.

    Parameters
    ----------
    given : the user's object
    name : the name of the function
    arguments : its arguments
    where : what they are, in words
    refusal : makes the error to raise, from what is wrong
    """
    try:
        with np.errstate(all="ignore"):
            return np.array(getattr(given, name)(*arguments), dtype=np.float64)
    except Exception as error:  # noqa: BLE001 - a user's code may raise anything
        message = f"{name} raised {type(error).__name__} {where}: {error}"
    raise refusal(message)


def loss_with_slopes(loss: Any, target_bound: float | None) -> DeclaredLoss:
    """Read a user's loss of which slopes alone will be used, for noisy gradients. Nothing else needs to be declared.

    Parameters
    ----------
    loss : the user's object, with `derivative`. Slopes steeper than its `lipschitz` are clipped; if it declares none, those
        steeper than the steepest at scores of at most 1, or of at most the bound on targets
    target_bound : as in `declared_loss`

    Raises
    ------
    ParameterError
        If the derivative is missing, or wrong on the grid.
    """
    if not callable(getattr(loss, "derivative", None)):
        raise _refusal(loss, "it lacks derivative; give it this function, which takes arrays")
    scores, targets = _grid(target_bound)
    declared = DeclaredLoss(
        loss=loss,
        target_bound=target_bound,
        name=_name(loss),
        lipschitz=_positive(loss, "lipschitz") if hasattr(loss, "lipschitz") else LARGEST_BOUND,
        smoothness=_positive(loss, "smoothness") if hasattr(loss, "smoothness") else math.inf,
        value_at_zero=math.inf,
        rounding=_DEFAULT_ROUNDING,
        monotone=False,
    )
    slopes = _called(declared, "derivative", np.repeat(scores[:, None], len(targets), axis=1), targets)
    check_that_it_can_be_copied(loss, partial(_refusal, loss))
    if hasattr(loss, "lipschitz"):
        return declared
    near = np.abs(slopes[np.abs(scores) <= (1.0 if target_bound is None else target_bound)])
    if not 1.0 / LARGEST_BOUND <= near.max() <= LARGEST_BOUND:
        raise _refusal(loss, "its slopes near score 0 are all 0, or extremely small or large; declare lipschitz")
    return replace(declared, lipschitz=float(near.max()))


def declared_loss(loss: Any, target_bound: float | None) -> DeclaredLoss:
    """Read a user's loss with its declared constants, and check that the grid does not contradict them.

    A loss that declares neither `smoothness` nor `second_derivative` may have kinks. Its derivative at a kink is any slope
    between those on both sides.

    Parameters
    ----------
    loss : the user's object
    target_bound : the bound on targets for a loss of scores and targets; None for a loss of margins

    Raises
    ------
    ParameterError
        If something is missing, or the grid shows that the constants are false.
    """
    has_kinks = not hasattr(loss, "second_derivative") and getattr(loss, "smoothness", math.inf) == math.inf
    missing = [name for name in (_WITH_KINKS if has_kinks else _FUNCTIONS) if not callable(getattr(loss, name, None))]
    if missing:
        raise _refusal(loss, f"it lacks {', '.join(missing)}; give it these functions, which take arrays")
    lipschitz = _positive(loss, "lipschitz")
    smoothness = math.inf if has_kinks else _positive(loss, "smoothness")
    monotone = getattr(loss, "monotone", False)
    if not isinstance(monotone, (bool, np.bool_)) or (monotone and target_bound is not None):
        raise _refusal(loss, "monotone must be True or False, and it may be True for a loss of the margin alone")
    scores, targets = _grid(target_bound)
    at_zero = np.zeros((1, len(targets)))
    declared = DeclaredLoss(
        loss=loss,
        target_bound=target_bound,
        name=_name(loss),
        lipschitz=lipschitz,
        smoothness=smoothness,
        value_at_zero=_positive(loss, "value_at_zero") if hasattr(loss, "value_at_zero") else math.inf,
        rounding=_positive(loss, "rounding") if hasattr(loss, "rounding") else _DEFAULT_ROUNDING,
        monotone=bool(monotone),
    )
    largest = float(_called(declared, "value", at_zero, targets).max())
    _check_functions(declared, scores, targets)
    check_that_it_can_be_copied(loss, partial(_refusal, loss))
    if hasattr(loss, "value_at_zero"):
        if not largest <= declared.value_at_zero * (1.0 + _SLACK):
            raise _refusal(loss, "value_at_zero is below the value at score 0")
        return declared
    # Between the targets of the grid the value may be larger, so it is doubled.
    return replace(declared, value_at_zero=largest if target_bound is None else 2.0 * largest)


def _check_functions(declared: DeclaredLoss, scores: Array, targets: Array) -> None:
    """Check what the proofs require of a loss, as far as a grid shows it.

    In the arrays, rows are scores in rising order and columns are targets.
    """
    grid = np.repeat(scores[:, None], len(targets), axis=1)
    value, slope = (_called(declared, name, grid, targets) for name in _WITH_KINKS)
    loss, lipschitz = declared.loss, declared.lipschitz
    steps, step_slack = np.diff(grid, axis=0), _SLACK * lipschitz
    rise, change = np.diff(slope, axis=0), np.diff(value, axis=0)
    value_slack = _SLACK * (np.abs(value[1:]) + np.abs(value[:-1]) + lipschitz * (np.abs(grid[1:]) + np.abs(grid[:-1])))
    wrong = {
        "the loss must not be negative: add a constant to it": (value < -_SLACK * (1.0 + lipschitz), grid),
        f"|derivative| exceeds the declared lipschitz, {lipschitz:g}": (np.abs(slope) > lipschitz * (1.0 + _SLACK), grid),
        "the derivative is positive, so the loss is not monotone": (declared.monotone & (slope > 0.0), grid),
        "the derivative falls, so the loss is not convex": (rise < -step_slack, grid[1:]),
        # For a convex function: derivative at the left end <= difference quotient <= derivative at the right end.
        "the value does not change as the derivative says": (
            (change < slope[:-1] * steps - value_slack) | (change > slope[1:] * steps + value_slack),
            grid[1:],
        ),
    }
    _refuse(loss, wrong)
    if math.isfinite(declared.smoothness):
        _check_curvature(declared, grid, targets, rise)


def _check_curvature(declared: DeclaredLoss, grid: Array, targets: Array, rise: Array) -> None:
    """Check the second derivative, and that the derivative rises as it says. `rise` has the differences of derivatives."""
    curvature = _called(declared, "second_derivative", grid, targets)
    loss, smoothness = declared.loss, declared.smoothness
    steps, step_slack = np.diff(grid, axis=0), _SLACK * declared.lipschitz
    wrong = {
        "the second derivative is negative, so the loss is not convex": (curvature < -_SLACK * smoothness, grid),
        f"the second derivative exceeds the declared smoothness, {smoothness:g}": (
            curvature > smoothness * (1.0 + _SLACK),
            grid,
        ),
        f"the derivative rises faster than the declared smoothness, {smoothness:g}, allows": (
            rise > smoothness * steps * (1.0 + _SLACK) + step_slack,
            grid[1:],
        ),
    }
    _refuse(loss, wrong)
    # Between two scores the derivative should rise at a rate between the curvatures at both ends, up to 10% and rounding.
    low, high = np.minimum(curvature[1:], curvature[:-1]), np.maximum(curvature[1:], curvature[:-1])
    slack = 0.1 * high * steps + 2.0 * step_slack
    if np.mean((rise < low * steps - slack) | (rise > high * steps + slack)) > _LARGEST_SHARE_OF_KINKS:
        raise _refusal(loss, "the derivative does not change as the second derivative says")


def _refuse(loss: Any, wrong: dict[str, tuple[NDArray[np.bool_], Array]]) -> None:
    """Refuse the loss for the first thing that is wrong at a point of the grid."""
    for what, (where, at) in wrong.items():
        if where.any():
            raise _refusal(loss, f"{what} (seen at the public score {at[where][0]:.6g})")


def _grid(target_bound: float | None) -> tuple[Array, Array]:
    """Scores in rising order, dense around 0, where losses bend, and reaching far out; and targets."""
    unit = 1.0 if target_bound is None else target_bound
    far = np.geomspace(1e-6, 1e6, 241)
    scores = np.unique(unit * np.concatenate([-far, np.linspace(-8.0, 8.0, 3201), far]))
    return scores, np.ones(1) if target_bound is None else unit * np.linspace(-1.0, 1.0, 21)


def _called(declared: DeclaredLoss, name: str, scores: Array, targets: Array) -> Array:
    """The values of one function on all pairs of score and target.

    The function is also called with the pairs in reverse order and with a third of them: neither may change a value.
    """
    loss = declared.loss
    columns = np.broadcast_to(targets, scores.shape)
    arguments = [scores.ravel()] if declared.target_bound is None else [scores.ravel(), columns.ravel()]
    order = np.arange(scores.size)[::-1]
    answers = []
    for which in (slice(None), order, order[: -(-scores.size // 3)]):
        given = [argument[which] for argument in arguments]
        for argument in given:
            argument.flags.writeable = False
        answers.append(called(loss, name, given, "on a public grid", partial(_refusal, loss)))
        if answers[-1].shape != given[0].shape:
            raise _refusal(loss, f"{name} must return an array of the shape of its arguments, which are one-dimensional")
        if not np.isfinite(answers[-1]).all():
            raise _refusal(loss, f"{name} is not finite at the public score {given[0][~np.isfinite(answers[-1])][0]:.6g}")
    slack = 1e-12 * max(1.0, float(np.abs(answers[0]).max()))
    if any(np.abs(answers[0][order][: len(again)] - again).max() > slack for again in answers[1:]):
        raise _refusal(loss, f"{name} must depend on each entry alone, but its values depend on other entries, or on chance")
    return answers[0].reshape(scores.shape)


def _positive(loss: Any, name: str) -> float:
    number = positive_constant(loss, name)
    if number is None:
        raise _refusal(loss, f"it must declare {name}, a positive finite number")
    return number


def _name(loss: Any) -> str:
    name = getattr(loss, "name", None)
    return name if isinstance(name, str) and name.isprintable() and 0 < len(name) <= 100 else type(loss).__name__


def _refusal(loss: Any, what: str) -> ParameterError:
    return ParameterError(f"the loss {_name(loss)} cannot be used: {what}.")
