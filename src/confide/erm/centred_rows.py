"""A bound on rows whose middle is public: rows are moved by it, shortened to a smaller ball, and magnified again.

Rows that lie around a public centre are as informative without it, and shorter. So less noise hides one of them. A centred
row is what the bound makes of it:

    x' = f s (x - m),    x the row clipped to the inner bound, s <= 1 such that |s (x - m)| <= radius, f = S / radius

with S the norm of the inner bound and m the centre. So |x'| <= S, whatever centre and radius are: a plan for rows of norm S
holds for them all. Dense rows are moved in memory that each thread uses again. Sparse and coded rows stay as they are, and
products with them are corrected. Proof: privacy/proofs/centring.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
from scipy.sparse import csr_array

from confide.erm.coded_rows import CodedRows, unchangeable
from confide.erm.joined_rows import JoinedRows
from confide.erm.row_bounds import BallBound, RowBound, row_squares
from confide.errors import ParameterError
from confide.types import Array, Rows

LEAST_RADIUS = 0.5
"""The least radius, as a share of the norm of the inner bound. The bounds on rounding errors rest on it."""
_LENGTH_UP = 1.0 + 2.0**-40


@dataclass(frozen=True, slots=True)
class Centred:
    """Rows that obey an inner bound are moved by a centre, shortened to a radius and magnified to the norm of that bound.

    Parameters
    ----------
    inner : bound on rows before they are moved, of finite norm
    centre : one number a column, of L2 norm at most that of the inner bound
    radius : largest L2 norm of a moved row before it is magnified, between half the norm of the inner bound and all of it
    """

    inner: RowBound
    centre: tuple[float, ...]
    radius: float
    _centre: Array = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        norm, centre, radius = self.inner.l2_norm, tuple(map(float, self.centre)), float(self.radius)
        self.inner.check_width(len(centre))
        if not math.isfinite(norm) or isinstance(self.inner, Centred):
            raise ParameterError("rows can be centred if their bound is finite and not centred already.")
        # Written so that what is not a number is refused.
        if not math.hypot(*centre) <= norm * _LENGTH_UP or not LEAST_RADIUS * norm <= radius <= norm:
            raise ParameterError(
                "a centre must obey the bound on rows, and the radius lie between half of it and all of it."
            )
        object.__setattr__(self, "centre", centre)
        object.__setattr__(self, "radius", radius)
        object.__setattr__(self, "_centre", unchangeable(np.array(centre)))

    @classmethod
    def unmoved(cls, inner: RowBound, n_features: int) -> Self:
        """The bound before a centre is known. It has the same norm as every other one with this inner bound."""
        return cls(inner, (0.0,) * n_features, inner.l2_norm)

    @property
    def l2_norm(self) -> float:
        return self.inner.l2_norm

    @property
    def magnification(self) -> float:
        """f, the factor of a row that is not shortened; between 1 and 2."""
        return self.inner.l2_norm / self.radius

    def check_width(self, n_features: int) -> None:
        if n_features != len(self.centre):
            raise ParameterError(f"the rows were centred with {len(self.centre)} columns, but rows have {n_features}.")

    def clip(self, rows: Rows, scratch: Array | None = None) -> Rows:
        """An array, written to `scratch` (m, d) if it is given; `CentredRows` for sparse and coded rows."""
        self.check_width(rows.shape[1])
        inside = self.inner.clip(rows, scratch) if isinstance(self.inner, BallBound) else self.inner.clip(rows)
        if not isinstance(inside, np.ndarray):
            lengths = row_squares(inside) - 2.0 * _times(inside, self._centre[:, None])[:, 0] + self._centre @ self._centre
            return CentredRows(inside, self._factors(lengths), self._centre, np.maximum(lengths, 0.0))
        moved = np.subtract(inside, self._centre, out=scratch)
        return np.multiply(moved, self._factors(row_squares(moved))[:, None], out=moved)

    def _factors(self, squared_lengths: Array) -> Array:
        """(m,): f s for rows of these squared distances from the centre, as they were computed."""
        # The margin covers the rounding of both ways in which distances are computed: privacy/proofs/centring.md, theorem 1.
        radius = self.radius * (1.0 - max(2.0**-40, (len(self.centre) + 8) * 2.0**-49))
        # Written so that what is not a number counts as outside.
        outside = ~(squared_lengths <= radius * radius)
        distances = np.sqrt(np.where(outside, squared_lengths, 1.0))
        return np.where(outside, self.magnification * radius / distances, self.magnification)

    def to_dict(self) -> dict[str, Any]:
        return {"kind": "centred", "inner": self.inner.to_dict()}


@dataclass(frozen=True, slots=True, eq=False)
class CentredRows:
    """One block of sparse, coded or joined rows, each moved by the centre and multiplied by its factor when it is used.

    Parameters
    ----------
    rows : CSR, coded or joined rows (m, d), which obey the inner bound
    factors : (m,)
    centre : (d,)
    squared_lengths : (m,), squared distances of the rows from the centre
    """

    rows: Rows
    factors: Array
    centre: Array
    squared_lengths: Array

    @property
    def shape(self) -> tuple[int, int]:
        """Number of rows and of columns."""
        n_rows, n_features = self.rows.shape
        return int(n_rows), int(n_features)

    def times(self, vectors: Array) -> Array:
        """(m, k): products of the rows with the columns of a matrix (d, k)."""
        products = _times(self.rows, vectors)
        return (products - self.centre @ vectors) * self.factors[:, None]

    def weighted_sums(self, weights: Array) -> Array:
        """(k, d): sums of the rows, each times its weight, for the columns of weights (m, k)."""
        scaled = self.factors[:, None] * weights
        if isinstance(self.rows, CodedRows | JoinedRows):
            sums = self.rows.weighted_sums(scaled)
        else:
            sums = np.ascontiguousarray((self.rows.T @ scaled).T)
        sums -= self.sums_of(scaled)[:, None] * self.centre
        return sums

    def sums_of(self, numbers: Array) -> Array:
        """(k,): sums of the columns of numbers (m, k), one number a row. Those of joined rows are made block by block."""
        sums: Array = self.rows.sums_of(numbers) if isinstance(self.rows, JoinedRows) else numbers.sum(axis=0)
        return sums

    def products(self, weights: Array) -> Array:
        """(d, d): the sum of c x x^T over sparse rows x with weights c (m,) of any sign."""
        rows: Any = self.rows
        scaled = self.factors * self.factors * weights
        spread = csr_array((rows.data * np.repeat(scaled, np.diff(rows.indptr)), rows.indices, rows.indptr), rows.shape)
        sums, once = (rows.T @ spread).toarray(), rows.T @ scaled
        crossed = np.outer(once, self.centre)
        return np.asarray(sums - crossed - crossed.T + scaled.sum() * np.outer(self.centre, self.centre))

    def squares(self) -> Array:
        """(m,): the squared L2 norms of the moved rows."""
        return self.factors * self.factors * self.squared_lengths

    def column_squares(self) -> Array:
        """(d,): the sums of the squares of each column of sparse rows."""
        rows: Any = self.rows
        scaled = self.factors * self.factors
        squared = csr_array((rows.data * rows.data, rows.indices, rows.indptr), rows.shape)
        sums = squared.T @ scaled - 2.0 * self.centre * (rows.T @ scaled) + scaled.sum() * self.centre**2
        return np.asarray(np.maximum(sums, 0.0))

    def dense(self) -> Array:
        """The rows as an array (m, d)."""
        rows: Any = self.rows
        rows = rows.dense() if type(rows) is CodedRows else rows.toarray()
        return np.asarray((rows - self.centre) * self.factors[:, None])


def _times(rows: Rows, vectors: Array) -> Array:
    return rows.times(vectors) if isinstance(rows, CodedRows | JoinedRows) else np.asarray(rows @ vectors)
