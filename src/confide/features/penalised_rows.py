"""Rows in the norm of a quadratic form, by public knowledge alone: what a fit with `penalty` minimises its loss over."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from confide.features.public_maps import PublicMap
from confide.features.quadratic_forms import QuadraticForm
from confide.types import Array, Rows


@dataclass(frozen=True, slots=True)
class PenalisedRows:
    """The map of rows to the norm of a form. Each row becomes a function of that row alone, bit for bit.

    Parameters
    ----------
    form : the quadratic form of the weights of the columns
    inner : the public map that comes before, such as random features beside encoded columns, or None
    row_norm : the L2 norm to which rows are clipped before, or None if an encoder bounds them
    """

    form: QuadraticForm
    inner: PublicMap | None
    row_norm: float | None

    @property
    def n_features(self) -> int:
        """Number of columns of a mapped row."""
        return self.form.n_features if self.inner is None else self.inner.n_features

    def transform(self, rows: Rows) -> Array:
        """Map rows (m, d) to a fresh array (m, n_features) of float64."""
        mapped = np.asarray(rows, dtype=np.float64) if self.inner is None else self.inner.transform(rows)
        # No warnings, because they would depend on data.
        with np.errstate(all="ignore"):
            return self.form.rows(mapped if self.row_norm is None else _clipped(mapped, self.row_norm))


def _clipped(rows: Array, norm: float) -> Array:
    """Rows (m, d) shortened to this L2 norm, each as if it were alone: columns are added one after the other."""
    _, exponents = np.frexp(np.abs(rows).max(axis=1, initial=0.0))
    scaled = np.ldexp(rows, -exponents[:, None])
    squares = np.zeros(len(rows))
    for column in scaled.T:
        squares += column * column
    lengths = np.sqrt(squares)
    # The comparison stays right where it underflows or overflows.
    limits = np.ldexp(norm, -exponents)
    return np.where((lengths > limits)[:, None], scaled * (norm / np.where(lengths > 0.0, lengths, 1.0))[:, None], rows)
