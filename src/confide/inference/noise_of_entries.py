"""How large the noise is on each coordinate. Forecasts and intervals use it; no guarantee depends on it.

Noise of least total variance is not equally large everywhere: beside 20 columns in a ball, the constant of the intercept has
twice the deviation of a column under a Gaussian law, and under the law of bundles a number has twice that of a level.
"""

from __future__ import annotations

import numpy as np

from confide.privacy.bundled_shapes import Bundles, Contrasts, squares_of_groups
from confide.privacy.group_shapes import Groups, Linked, moments_of_groups
from confide.privacy.shapes import Ball, Cylinder, Shape
from confide.types import Array


def deviations_of_entries(shape: Shape, law: str, scale: float) -> Array:
    """(D,): root mean squares of the coordinates of the noise with this shape, law and scale.

    Parameters
    ----------
    shape : Shape
    law : {"laplace", "gaussian"}
    scale : float
        The rate of the Laplace law, or the scale of the Gaussian one; `confide.privacy.mechanism.Noise`.
    """
    squares = _gaussian_squares(shape, scale) if law == "gaussian" else _laplace_squares(shape) / scale**2
    deviations: Array = np.sqrt(squares)
    return deviations


def _gaussian_squares(shape: Shape, scale: float) -> Array:
    """Variances of entries: that of each piece, and for linked groups a part of that of the direction that they share."""
    variances = [deviation**2 for deviation in shape.gaussian_deviations(scale)]
    along = [s / k if linked else 0.0 for k, s, linked in zip(shape.sizes, shape.scales, shape.linked, strict=True)]
    square = shape.pieces[-1][0] ** 2
    parts = [
        np.full(k, variance * (1.0 - 1.0 / k if linked else 1.0) + variances[-1] * part**2 / square)
        for k, linked, variance, part in zip(shape.sizes, shape.linked, variances, along, strict=True)
    ]
    if any(shape.linked):
        parts[-1] = np.full(shape.sizes[-1], variances[-1] * shape.scales[-1] ** 2 / square)
    return np.concatenate(parts)


def _laplace_squares(shape: Shape) -> Array:
    """Mean squares of entries at a rate of 1: b = r U with r ~ Gamma(d + 1), d the free dimension."""
    if isinstance(shape, Bundles):
        squares = zip(squares_of_groups(shape), shape.sizes, strict=True)
        return np.repeat([square / size for square, size in squares], shape.sizes)
    d = shape.free_dimension
    return (d + 1) * (d + 2) * _squares_in_ball(shape)


def _squares_in_ball(shape: Shape) -> Array:
    """(D,): E U_j^2 for U uniform in the unit ball of the norm."""
    if isinstance(shape, Ball | Cylinder):
        each = [scale**2 / (size + 2) for size, scale in zip(shape.sizes, shape.scales, strict=True)]
    elif isinstance(shape, Contrasts):
        each = [square / size for square, size in zip(shape.group_mean_squares(), shape.sizes, strict=True)]
    elif isinstance(shape, Groups | Linked):
        each = [variance for variance, _ in moments_of_groups(shape)]
    else:
        # Noise of other shapes is taken to be equally large everywhere.
        return np.full(shape.dimension, shape.solid_mean_square() / shape.dimension)
    return np.repeat(each, shape.sizes)
