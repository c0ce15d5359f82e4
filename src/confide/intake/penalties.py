"""The parameter `penalty`: what a fit penalises in place of |w|^2. Every form that users may give is read here.

A penalty is None (|w|^2), a name, strengths by column, an array of strengths or a matrix. What is returned is a value that
the rest of the package understands by its type.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from confide.errors import ParameterError
from confide.features.smoothing import Smooth


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
    entries: Any = None
    smooths_curves: bool = False


Penalty: TypeAlias = GivenForm
"""What `checked_penalty` returns. Other kinds of penalties join this union."""

_NAMES = ("smooth",)
"""Names that users may give; `_named` says what each stands for."""


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
        return _named(penalty)
    if isinstance(penalty, Mapping):
        return GivenForm(by_column=tuple(penalty.items()))
    if isinstance(penalty, np.ndarray | list | tuple):
        return GivenForm(entries=penalty)
    raise ParameterError(
        "penalty must be None, a name, strengths by the names of columns, an array of strengths, or a symmetric matrix."
    )


def _named(name: str) -> Penalty:
    if name == "smooth":
        return GivenForm(smooths_curves=True)
    raise ParameterError(f"penalty must be one of {', '.join(map(repr, _NAMES))} if it is a name.")
