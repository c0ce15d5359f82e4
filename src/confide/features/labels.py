"""Labels in the form that losses read: -1 and +1 for two classes, positions for three or more."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from confide.types import Indices, Labels, Targets

# What is said of numeric rows and their labels, whether they lie in memory, in files or in partitions.
DIFFERENT_NUMBERS_OF_ROWS = "X and y have inconsistent numbers of samples: give one label or target for each row."
UNDECLARED_CLASS = "y holds labels outside the declared classes. Correct the labels or the declaration."
NOT_FINITE = "Input X contains NaN or infinity. Fill the gaps by a public rule, or declare them in a schema."


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
        positions[np.asarray(labels == label, dtype=bool)] = position
    return positions


def targets_at(positions: Indices, n_classes: int) -> Labels:
    """What a loss reads, from the positions of classes (0 to n_classes - 1)."""
    return (2 * positions - 1).astype(np.int8) if n_classes == 2 else positions.astype(np.intp)


def positions_of(targets: Targets, n_classes: int) -> Indices:
    """The positions of classes, from what a loss reads: the inverse of `targets_at`."""
    return ((targets > 0) if n_classes == 2 else targets).astype(np.intp)
