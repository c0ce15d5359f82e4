"""Noise of groups of columns, in the norm of a quadratic form. Proof: proofs/penalty.md, section 8.

Rows x in groups have |x|_K <= 1, and their images M x have norm at most 1 in the image of that norm. Noise of the image's
shape is the image of the noise: it is M b.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from confide.errors import ParameterError
from confide.features.quadratic_forms import QuadraticForm
from confide.privacy.group_shapes import Linked, moments_of_groups
from confide.privacy.shapes import Shape
from confide.types import Array

_UNIT = 2.0**-53
LARGEST_BLOCK = 256
"""Blocks of a map with more columns are not used here: `laplace_error` allows for the products of so many."""
_UP = 1.0 + 2.0**-40


@dataclass(frozen=True, slots=True, init=False)
class Mapped(Shape):
    """The image of a shape of groups under the map of a form; the intercept's constant stays as it is.

    Parameters
    ----------
    base : `Groups` or `Linked`, of rows as they are
    form : the form, no block of which reaches across groups
    mapped_norm : largest L2 norm of a mapped row with its constant
    """

    base: Shape
    form: QuadraticForm
    mapped_norm: float

    name: ClassVar[str] = "groups in the norm of the penalty"
    # The base's error, and the product with a block: gamma of 258 times the root of 256, as |M| stretches more than M.
    laplace_error: ClassVar[float] = 4300.0 * _UNIT

    def __init__(self, base: Shape, form: QuadraticForm, mapped_norm: float) -> None:
        Shape.__init__(self, base.sizes, base.scales, base.linked)
        for name, value in (("base", base), ("form", form), ("mapped_norm", mapped_norm)):
            object.__setattr__(self, name, value)

    @property
    def l2_norm(self) -> float:
        """The largest L2 norm of a mapped row."""
        return self.mapped_norm

    @property
    def stretch(self) -> float:
        """The largest factor by which the map stretches noise, rounded upwards."""
        return max(1.0, self.form.longest_map) * _UP

    def solid_mean_square(self) -> float:
        """E |M U|^2 for U uniform in the unit ball of the base's norm. No guarantee rests on it."""
        columns = self.form.sums_in_norm(np.eye(self.dimension))
        total, start = 0.0, 0
        for size, (own, shared) in zip(self.sizes, moments_of_groups(self.base), strict=True):
            part = columns[start : start + size]
            # The entries of a group have one variance and one covariance.
            total += (own - shared) * float(np.square(part).sum()) + shared * float(np.square(part.sum(axis=0)).sum())
            start += size
        return total

    def laplace_bound(self, rate: float, log_failure: float) -> float:
        """b_max of the mapped noise: that of the noise, stretched."""
        return self.stretch * self.base.laplace_bound(rate, log_failure)

    def mapped(self, draws: Array) -> Array:
        """Draws (n, D) of the mapped noise, from those of the base."""
        return self.form.sums_in_norm(draws)

    @property
    def pieces(self) -> tuple[tuple[float, int], ...]:
        """None: the law is for Laplace noise."""
        raise ParameterError("noise of groups in the norm of a penalty is for pure budgets.")


def shape_of_groups(base: Shape, form: QuadraticForm, mapped_norm: float) -> Mapped:
    """The image of one of the shapes of groups."""
    assert base.name in ("groups", Linked.name)  # noqa: S101 - a ball has no groups
    return Mapped(base, form, mapped_norm)
