"""Labels and targets in the form that losses read: -1 and +1 for two classes, positions for more, and numbers."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence, Set
from typing import Any

import numpy as np

from confide.errors import InputError
from confide.features.canonical_labels import Label, canonical_label
from confide.features.cells import read_levels, read_numbers
from confide.types import Array, Indices, Labels, Targets

# What is said of numeric rows and their labels, whether they lie in memory, in files or in partitions.
DIFFERENT_NUMBERS_OF_ROWS = "X and y have inconsistent numbers of samples: give one label or target for each row."
UNDECLARED_CLASS = "y holds labels outside the declared classes. Correct the labels or the declaration."
NOT_FINITE = "Input X contains NaN or infinity. Fill the gaps by a public rule, or declare them in a schema."

_UNKNOWN = -1
_MISSING = -2


def class_positions(labels: Any, domain: Sequence[Any]) -> Indices:
    """The position of each label among the declared classes.

    Parameters
    ----------
    labels : array (n,) of numbers, booleans, text or Python objects
    domain : the declared classes, all different, at least one

    Returns
    -------
    array (n,) of small integers, fresh
        The position from 0; -1 where a label is none of the classes.
    """
    positions = np.full(np.shape(labels), -1, dtype=np.min_scalar_type(-len(domain)))
    # Each class is compared by itself: in an array of one type for all classes, one class could change what another means.
    for position, label in enumerate(domain):
        # 0 where the label is this class and -1 elsewhere, so that "or" gives the position or -1. An assignment to chosen
        # places would take ten times as long.
        elsewhere = np.subtract(np.asarray(labels == label, dtype=bool), 1, dtype=positions.dtype)
        np.maximum(positions, elsewhere | position, out=positions)
    return positions


def targets_at(positions: Indices, n_classes: int) -> Labels:
    """What a loss reads, from the positions of classes (0 to n_classes - 1)."""
    return (2 * positions - 1).astype(np.int8) if n_classes == 2 else positions.astype(np.intp)


def positions_of(targets: Targets, n_classes: int) -> Indices:
    """The positions of classes, from what a loss reads: the inverse of `targets_at`."""
    return ((targets > 0) if n_classes == 2 else targets).astype(np.intp)


_SAME_AS_BOOLEANS = {"0": "false", "1": "true"}
"""Two labels that are these numbers are recognised as booleans too, and the other way round."""


def positions_by_label(classes: Sequence[Label]) -> dict[str | None, int]:
    """The position of each class by its canonical form. Classes 0 and 1 are False and True too, whichever are declared."""
    found = {canonical_label(label): position for position, label in enumerate(classes)}
    for names in (_SAME_AS_BOOLEANS, {boolean: number for number, boolean in _SAME_AS_BOOLEANS.items()}):
        if found.keys() == names.keys():
            return found | {other: found[label] for label, other in names.items()}
    return found


def read_labels(values: Any, *classes: Label, refuse: bool = True, what: str = "the labels") -> Labels:
    """Labels of two classes as -1 and +1, labels of more classes as their positions.

    Parameters
    ----------
    values : pandas or Polars Series, Arrow array, NumPy array or list of raw labels, one for each row
    classes : the labels, compared in canonical form (`canonical_label`); if there are two, the negative one comes first.
        True and False are 1 and 0 where these are the two
    refuse : False after the labels were checked and a budget was charged: a label that is none of the classes counts as the
        first class
    what : how messages call them

    Returns
    -------
    array (n,), fresh
        int8, -1 for negative and +1 for positive; or the position of each class, from 0.

    Raises
    ------
    InputError
        If it is not one column of labels, or a label is missing or is none of the classes. The message holds no cell.
    """
    shape = getattr(values, "shape", (0,))
    if isinstance(values, (str, bytes, Mapping, Set)) or not hasattr(values, "__len__") or len(shape) != 1:
        raise InputError(f"{what} must be one column: a Series, a one-dimensional array or a list.")
    if len(values) == 0:
        raise InputError(f"{what}: there are none; give one for each row.")
    levels = read_levels(what, values, positions_by_label(classes), missing=_MISSING, unknown=_UNKNOWN)
    if not refuse:
        levels[levels < 0] = 0
    if (levels == _MISSING).any():
        raise InputError(f"{what}: some are missing; give only rows that have a label.")
    if (levels == _UNKNOWN).any():
        raise InputError(_unknown_label(what, classes))
    return targets_at(levels, len(classes))


def _unknown_label(what: str, classes: Sequence[Label]) -> str:
    if len(classes) == 2:
        return f"{what}: some are neither {classes[0]!r} nor {classes[1]!r}; give only rows that have one of the two."
    return f"{what}: some are none of {', '.join(map(repr, classes))}; give only rows that have one of the classes."


def read_targets(
    values: Any,
    *,
    counts: bool,
    low: float = -math.inf,
    high: float = math.inf,
    shift: float = 0.0,
    refuse: bool = True,
    what: str = "the targets",
) -> Array:
    """The numbers that a regression predicts, clipped to [low, high], less a public shift: (n,) float64.

    Parameters
    ----------
    values : Series, Arrow array, NumPy array or list of numbers, one for each row
    counts : whether the numbers are counts, which must not be negative
    low, high : public bounds, to which each number is clipped by itself
    shift : a public number that is subtracted then
    refuse : False after the targets were checked and a budget was charged: a target that is not a finite number counts as 0
    what : how messages call them

    Raises
    ------
    InputError
        If a target is missing, is not a finite number, or is a negative count. The message holds no target.
    """
    targets = np.array(read_numbers(what, values, refuse), dtype=np.float64)
    finite = np.isfinite(targets)
    if refuse and not finite.all():
        raise InputError(f"{what}: some are missing or infinite; give only rows whose target is a finite number.")
    if refuse and counts and (targets < 0.0).any():
        raise InputError(f"{what}: some are negative, but counts must not be. Correct them.")
    targets[~finite] = 0.0
    return np.subtract(np.clip(targets, low, high, out=targets), shift, out=targets)
