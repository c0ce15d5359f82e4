"""How much each row counts: its own weight, given with the rows, times the public weight of its class."""

from __future__ import annotations

from typing import Any

import numpy as np

from confide.errors import InputError
from confide.features.labels import positions_of
from confide.types import Array, Targets


def weights_of(sample_weight: Any, n_rows: int) -> Any:
    """Weights of rows in a score: (n_rows,) finite, not negative and not all 0, or None."""
    if sample_weight is None:
        return None
    weights = weight_array(sample_weight)
    if weights.shape != (n_rows,) or not (np.isfinite(weights) & (weights >= 0.0)).all() or not weights.any():
        raise InputError("sample_weight must be one finite number for each row, none negative and not all 0.")
    return weights


def weight_array(sample_weight: Any) -> Array:
    """What weights are as an array of numbers, read once; an empty one where they are none, which is refused later."""
    try:
        # A mask would be lost, and so would imaginary parts: they are refused like what is no number.
        given = np.empty(0) if np.ma.isMaskedArray(sample_weight) else np.asarray(sample_weight)
        return np.empty(0) if np.iscomplexobj(given) else given.astype(np.float64)
    except (TypeError, ValueError, OverflowError):
        return np.empty(0)


def row_weights_of(
    sample_weight: Any,
    largest: float,
    labels: Targets,
    classes: tuple[Any, ...],
    class_weight: tuple[tuple[Any, float], ...] | None,
) -> Array | None:
    """How much each row counts in a fit: its own weight times that of its class; None where all count 1.

    Parameters
    ----------
    sample_weight : (n,) numbers from 0 to `largest`, or None for 1 each
    largest : the declared cap
    labels : (n,) in {-1, +1}, positions of three classes and more, or the targets of a regression
    classes : the classes in sorted order; none for a regression
    class_weight : pairs of class and public weight, or None
    """
    weights = None
    if sample_weight is not None:
        weights = weight_array(sample_weight)
        # Written so that what is not a number counts as outside.
        if weights.shape != labels.shape or not ((weights >= 0.0) & (weights <= largest)).all() or not weights.any():
            raise InputError(
                "sample_weight must be one number for each row, from zero to max_sample_weight, and not all zero. Scale the "
                "weights by a public rule, or declare a larger cap: noise grows with it."
            )
    elif largest < 1.0:
        raise InputError(
            "without sample_weight every row counts 1, and max_sample_weight is below 1: give weights or raise it."
        )
    if class_weight is None:
        return weights
    by_class = dict(class_weight)
    if set(by_class) != set(classes):
        raise InputError("class_weight must name all classes and no other. Correct it, or declare `classes`.")
    of_class = np.array([by_class[label] for label in classes])[positions_of(labels, len(classes))]
    return of_class if weights is None else of_class * weights
