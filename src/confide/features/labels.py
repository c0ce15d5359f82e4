"""Labels as losses read them: -1 and +1 of two classes, positions of three and more."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from confide.types import Indices, Labels, Targets

INCONSISTENT_NUMBERS = "X and y have inconsistent numbers of samples: there must be one label for each row."
UNKNOWN_LABEL = "y holds labels outside the declared classes. Correct the labels or the declaration."
NOT_FINITE = "Input X contains NaN or infinity. Fill the gaps by a public rule, or declare them in a schema."


def class_positions(labels: Any, domain: tuple[Any, ...]) -> NDArray[np.signedinteger[Any]]:
    """The position of each label in the domain, -1 for a label that is none of them."""
    positions = np.full(labels.shape, -1, dtype=np.min_scalar_type(-len(domain)))
    # Labels are compared with one class at a time: as an array of one type, a single label could change the others.
    for position, label in enumerate(domain):
        positions[np.asarray(labels == label, dtype=bool)] = position
    return positions


def targets_at(positions: NDArray[np.signedinteger[Any]], n_classes: int) -> Labels:
    """From the positions of classes, 0 to n_classes - 1, to what a loss reads."""
    return (2 * positions - 1).astype(np.int8) if n_classes == 2 else positions.astype(np.intp)


def positions_of(targets: Targets, n_classes: int) -> Indices:
    """Back to the positions of classes."""
    return ((targets > 0) if n_classes == 2 else targets).astype(np.intp)
