"""What is asked of every object with functions of a user, a loss or a penalty, before any charge and without data."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from typing import Any

from confide.erm.row_bounds import LARGEST_BOUND
from confide.errors import ParameterError, is_number


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
    constant: Any = getattr(given, name, None)
    if not is_number(constant):
        return None
    try:
        number = float(constant)  # first, because a number in single precision cannot be compared with the bound
    except OverflowError:
        return None
    return number if 1.0 / LARGEST_BOUND <= number <= LARGEST_BOUND else None
