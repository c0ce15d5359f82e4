"""Labels as losses read them: -1 and +1 of two classes, positions of three and more."""

from __future__ import annotations

import numpy as np

from confide.types import Indices, Labels, Targets


def targets_at(positions: Indices, n_classes: int) -> Labels:
    """From the positions of classes, 0 to n_classes - 1, to what a loss reads."""
    return (2 * positions - 1).astype(np.int8) if n_classes == 2 else positions.astype(np.intp)


def positions_of(targets: Targets, n_classes: int) -> Indices:
    """Back to the positions of classes."""
    return ((targets > 0) if n_classes == 2 else targets).astype(np.intp)
