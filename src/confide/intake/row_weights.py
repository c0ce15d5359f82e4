"""How much each row counts: its own weight, which is given with the rows, times the public weight of its class."""

from __future__ import annotations

from typing import Any

import numpy as np

from confide.errors import InputError
from confide.features.labels import positions_of
from confide.types import Array, Targets


def weights_of(sample_weight: Any, n_rows: int) -> Any:
    """Check the weights of rows in a score: (n_rows,) finite numbers, none negative and not all 0, or None."""
    if sample_weight is None:
        return None
    weights = weight_array(sample_weight)
    if weights.shape != (n_rows,) or not (np.isfinite(weights) & (weights >= 0.0)).all() or not weights.any():
        raise InputError("sample_weight must be one finite number for each row, none negative and not all 0.")
    return weights


def weight_array(sample_weight: Any) -> Array:
    """The weights as an array of numbers, converted once. If they are no numbers, an empty array, which is refused later."""
    try:
        # Conversion would drop a mask or imaginary parts without a word, so such arrays are refused too.
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
    """How much each row counts in a fit: its own weight times the weight of its class; None if all count 1.

    Parameters
    ----------
    sample_weight : (n,) numbers from 0 to `largest`, or None for 1 each
    largest : the declared cap
    labels : (n,) in {-1, +1}, or positions among three or more classes, or the targets of a regression
    classes : the classes in sorted order; empty for a regression
    class_weight : pairs of class and public weight, or None
    """
    weights = None
    if sample_weight is not None:
        weights = weight_array(sample_weight)
        # The comparisons are written so that a NaN counts as out of range.
        if weights.shape != labels.shape or not ((weights >= 0.0) & (weights <= largest)).all() or not weights.any():
            raise InputError(
                "sample_weight must be one number for each row, from zero to max_sample_weight, and not all zero. Scale the "
                "weights by a public rule, or declare a larger cap: noise grows with it."
            )
    elif largest < 1.0:
        raise InputError(
            "without sample_weight every row counts 1, but max_sample_weight is below 1. Give sample_weight, or raise "
            "max_sample_weight to 1."
        )
    if class_weight is None:
        return weights
    by_class = dict(class_weight)
    if set(by_class) != set(classes):
        raise InputError("class_weight must name all classes and no other label. Correct it, or declare the classes.")
    of_class = np.array([by_class[label] for label in classes])[positions_of(labels, len(classes))]
    return of_class if weights is None else of_class * weights
