"""Public bounds on one row. A bound clips rows so that they obey it, and states their largest L2 norm.

Clipping is part of what is minimised. The ideal objective is the objective over the rows clipped in real arithmetic, and the
rounding bound of the certificate (privacy/proofs/certificate.md) compares with that objective.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, Protocol, Self

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, issparse

from confide.array_types import Array, Rows, SparseRows
from confide.erm.coded_rows import CodedRows, JoinedRows, unchangeable
from confide.errors import ParameterError, as_float

SMALLEST_BOUND = 2.0**-300
LARGEST_BOUND = 2.0**300
LARGEST_SAFE_SQUARE = 2.0**1000
LONG_ROW = 48
"""Rows of at least so many doubles are multiplied by a vector one by one, which is faster here than a matrix product."""


class RowBound(Protocol):
    """What is publicly known of every row. It guarantees that every clipped row obeys the bound in exact arithmetic."""

    @property
    def l2_norm(self) -> float:
        """Largest L2 norm of a clipped row."""

    def clip(self, rows: Rows) -> Rows:
        """The rows of one block as float64, each scaled so that it obeys the bound; the argument is never written to.

        Sparse rows stay sparse. A bound that cannot clip sparse rows raises ParameterError, also for a block without rows.
        """

    def check_width(self, n_features: int) -> None:
        """Raise ParameterError if rows of this many columns cannot be clipped by the bound."""

    def to_dict(self) -> dict[str, Any]:
        """A JSON form; models/files.py reads it."""


@dataclass(frozen=True, slots=True)
class BallBound:
    """Every row is scaled down to L2 norm at most `norm`. ``BallBound(math.inf)`` leaves rows alone (non-private use only).

    Proof: privacy/proofs/certificate.md, section on clipping.

    Parameters
    ----------
    norm : float
        From 2^-300 to 2^300, in the unit of the rows.

    Raises
    ------
    ParameterError
        If the norm is outside its range.
    """

    norm: float
    l2_norm: float = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        # A number of NumPy would be compared in its own precision, in which the smallest bound may be 0.
        norm = as_float(self.norm)
        if not (SMALLEST_BOUND <= norm <= LARGEST_BOUND or norm == math.inf):
            raise ParameterError("a row norm must be a number between 2^-300 and 2^300, or inf when the budget is inf.")
        object.__setattr__(self, "norm", norm)
        object.__setattr__(self, "l2_norm", self.norm)

    def check_width(self, n_features: int) -> None:
        """Rows of every width fit a ball."""

    def clip(self, rows: Rows, scratch: Array | None = None) -> Rows:
        # Changed rows are written to `scratch` (m, d), which is used for every block: new pages for each block would cost
        # more than the arithmetic.
        if type(rows) is CodedRows:
            return self._clip_coded(rows)
        if issparse(rows):
            block = canonical(rows).astype(np.float64, copy=False)
        elif scratch is not None and rows.dtype != np.float64:
            np.copyto(scratch, rows)
            block = scratch
        else:
            block = np.asarray(rows, dtype=np.float64)
        if self.norm == math.inf:
            return block
        radius = self._radius(block.shape[1])
        with np.errstate(over="ignore", under="ignore"):
            squared_norms = row_squares(block)
        # The comparisons are written so that an overflowing norm counts as outside. Underflow of a tiny entry moves a
        # squared norm by less than d 2^-1074, far below the margin for every admissible radius.
        if squared_norms.max(initial=0.0) <= radius * radius:
            return block
        outside = ~(squared_norms <= radius * radius)
        huge = ~(squared_norms <= LARGEST_SAFE_SQUARE)
        ordinary = outside & ~huge
        # A factor of 1 leaves the rows inside as they are, bit for bit.
        factors = np.where(ordinary, radius / np.sqrt(np.where(ordinary, squared_norms, 1.0)), 1.0)
        if issparse(block):
            return _scaled(block, factors, huge, radius)
        far = scaled_to_norm(block[huge], radius) if huge.any() else None
        clipped = np.multiply(block, factors[:, None], out=scratch)
        if far is not None:
            clipped[huge] = far
        return clipped

    def _radius(self, n_features: int) -> float:
        # The radius lies inside the ball by a proven margin: the computed norm of d squares errs by a factor
        # of at most 1 + (d + 2) 2^-53, in any order of summation.
        return self.norm * (1.0 - max(2.0**-40, (n_features + 8) * 2.0**-52))

    def _clip_coded(self, rows: CodedRows) -> Rows:
        if self.norm == math.inf:
            return rows
        radius = self._radius(rows.shape[1])
        with np.errstate(over="ignore", under="ignore"):
            squared_norms = rows.squares()
        # Both comparisons are written so that what is not a number, or overflows, counts as outside.
        if squared_norms.max(initial=0.0) <= radius * radius:
            return rows
        if not squared_norms.max() <= LARGEST_SAFE_SQUARE:
            return self.clip(rows.dense())
        outside = ~(squared_norms <= radius * radius)
        return rows.scaled(np.where(outside, radius / np.sqrt(np.where(outside, squared_norms, 1.0)), 1.0))

    def to_dict(self) -> dict[str, Any]:
        return {"kind": "ball", "norm": self.norm if math.isfinite(self.norm) else "inf"}


def canonical(rows: SparseRows) -> SparseRows:
    """The same CSR rows, in which no column is stored twice. The norm of two parts would not be the norm of their sum."""
    block = with_entries(rows, rows.data)
    # The new object is asked, since the old one may remember a form that is out of date.
    if not block.has_canonical_format:
        block = block.copy()
        block.sum_duplicates()
    return block


def with_entries(rows: SparseRows, entries: Array) -> SparseRows:
    """CSR rows with other numbers in the same places."""
    return csr_array((entries, rows.indices, rows.indptr), shape=rows.shape)


def row_products(rows: Array, others: Array) -> Array:
    """(m,): products of rows (m, d) with as many other rows, or with one vector (d,), in any order of summation."""
    if rows.shape[1] >= LONG_ROW and rows.flags.c_contiguous:
        return np.asarray(np.vecdot(rows, others))
    return np.asarray(np.einsum("ij,ij->i" if others.ndim == 2 else "ij,j->i", rows, others))


def row_squares(rows: Rows) -> Array:
    """(m,): the squared L2 norms of rows, canonical ones if they are sparse, in any order of summation."""
    if isinstance(rows, np.ndarray):
        return row_products(rows, rows)
    if type(rows) is CodedRows:
        return rows.squares()
    row_of_entry = np.repeat(np.arange(rows.shape[0]), np.diff(rows.indptr))
    counted = np.bincount(row_of_entry, weights=rows.data * rows.data, minlength=rows.shape[0])
    return counted.astype(np.float64, copy=False)


def _scaled(rows: SparseRows, factors: Array, huge: NDArray[np.bool_], radius: float) -> SparseRows:
    """Each row times its factor. Huge rows, which are longer than any radius, are scaled to it as in `scaled_to_norm`."""
    lengths = np.diff(rows.indptr)
    entries = rows.data * np.repeat(factors, lengths)
    if huge.any():
        # All huge rows are scaled at once. One by one they would take much longer than other rows, and the time would show
        # it.
        own, lengths = np.repeat(huge, lengths), lengths[huge]
        starts = np.cumsum(lengths) - lengths
        with np.errstate(under="ignore"):
            _, exponents = np.frexp(np.maximum.reduceat(np.abs(entries[own]), starts))
            scaled = np.ldexp(entries[own], -np.repeat(exponents, lengths))
            norms = np.sqrt(np.add.reduceat(scaled * scaled, starts))
            entries[own] = scaled * np.repeat(radius / norms, lengths)
    return with_entries(rows, entries)


def scaled_to_norm(rows: Array, radius: float, order: int = 2) -> Array:
    """Scale each row to L1 or L2 norm `radius`, if it is longer.

    Each row is first divided by the power of two near its largest entry, which is exact (or loses entries that are below
    2^-1000 of the largest), so that the norm neither overflows nor underflows.
    """
    with np.errstate(over="ignore", under="ignore"):
        _, exponents = np.frexp(np.abs(rows).max(axis=1))
        scaled = np.ldexp(rows, -exponents[:, None])
        norms = np.linalg.norm(scaled, ord=order, axis=1)
        # The comparison stays right where it underflows or overflows; the result is computed from `radius` itself.
        longer = norms > np.ldexp(radius, -exponents)
        scaled *= (radius / np.where(longer, norms, 1.0))[:, None]
    return np.where(longer[:, None], scaled, rows)


def norm_with_intercept(row_bound: RowBound, intercept: float) -> float:
    """Largest L2 norm of a clipped row after the constant `intercept` was appended, rounded upwards."""
    return row_bound.l2_norm if intercept == 0.0 else math.hypot(row_bound.l2_norm, intercept) * (1.0 + 2.0**-50)


# A bound on rows whose middle is public: rows are moved by it, shortened to a smaller ball, and magnified again.
#
# Rows that lie around a public centre are as informative without it, and shorter. So less noise hides one of them. A
# centred row is what the bound makes of it:
#
#     x' = f s (x - m),    x the row clipped to the inner bound, s <= 1 such that |s (x - m)| <= radius, f = S / radius
#
# with S the norm of the inner bound and m the centre. So |x'| <= S, whatever centre and radius are: a plan for rows of norm
# S holds for them all. Dense rows are moved in memory that each thread uses again. Sparse and coded rows stay as they are,
# and products with them are corrected. Proof: privacy/proofs/centring.md.

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
    l2_norm: float = field(init=False, compare=False, repr=False)
    _centre: Array = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        norm, centre, radius = self.inner.l2_norm, tuple(map(float, self.centre)), float(self.radius)
        self.inner.check_width(len(centre))
        if not math.isfinite(norm) or is_centred(self.inner):
            raise ParameterError("rows can be centred if their bound is finite and not centred already.")
        # Written so that what is not a number is refused.
        if not math.hypot(*centre) <= norm * _LENGTH_UP or not LEAST_RADIUS * norm <= radius <= norm:
            raise ParameterError(
                "a centre must obey the bound on rows, and the radius lie between half of it and all of it."
            )
        object.__setattr__(self, "centre", centre)
        object.__setattr__(self, "radius", radius)
        object.__setattr__(self, "l2_norm", norm)
        object.__setattr__(self, "_centre", unchangeable(np.array(centre)))

    @classmethod
    def unmoved(cls, inner: RowBound, n_features: int) -> Self:
        """The bound before a centre is known. It has the same norm as every other one with this inner bound."""
        return cls(inner, (0.0,) * n_features, inner.l2_norm)

    @property
    def magnification(self) -> float:
        """f, the factor of a row that is not shortened; between 1 and 2."""
        return self.inner.l2_norm / self.radius

    @property
    def moving(self) -> tuple[Array, float, float]:
        """The centre (d,), the length to which moved rows are shortened, and the factor of one that is not."""
        # The margin covers the rounding of all ways in which distances are computed: privacy/proofs/centring.md, theorem 1.
        return self._centre, self.radius * (1.0 - max(2.0**-40, (len(self.centre) + 8) * 2.0**-49)), self.magnification

    def check_width(self, n_features: int) -> None:
        if n_features != len(self.centre):
            raise ParameterError(f"the rows were centred with {len(self.centre)} columns, but rows have {n_features}.")

    def clip(self, rows: Rows, scratch: Array | None = None) -> Rows:
        """An array, written to `scratch` (m, d) if it is given; `CentredRows` for sparse and coded rows."""
        self.check_width(rows.shape[1])
        inside = self.inner.clip(rows, scratch) if isinstance(self.inner, BallBound) else self.inner.clip(rows)
        if not isinstance(inside, np.ndarray):
            lengths = row_squares(inside) - 2.0 * _times(inside, self._centre[:, None])[:, 0] + self._centre @ self._centre
            return CentredRows(inside, self.factors(lengths), self._centre, np.maximum(lengths, 0.0))
        moved = np.subtract(inside, self._centre, out=scratch)
        return np.multiply(moved, self.factors(row_squares(moved))[:, None], out=moved)

    def factors(self, squared_lengths: Array) -> Array:
        """(m,): f s for rows of these squared distances from the centre, as they were computed."""
        _, radius, _ = self.moving
        # Written so that what is not a number counts as outside.
        outside = ~(squared_lengths <= radius * radius)
        distances = np.sqrt(np.where(outside, squared_lengths, 1.0))
        return np.where(outside, self.magnification * radius / distances, self.magnification)

    def to_dict(self) -> dict[str, Any]:
        # A middle that rows tell is not known to a plan.
        known = {"radius": self.radius, "middle": list(self.centre)} if any(self.centre) else {}
        return {"kind": "centred", "inner": self.inner.to_dict()} | known


def is_centred(bound: RowBound) -> bool:
    """Whether the bound moves rows by a centre."""
    return isinstance(bound, Centred)


def before_moving(bound: RowBound) -> RowBound:
    """The bound on rows before a centre moves them: `bound` itself where there is no centre."""
    return bound.inner if isinstance(bound, Centred) else bound


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
        return int(self.rows.shape[0]), int(self.rows.shape[1])

    def times(self, vectors: Array) -> Array:
        """(m, k): products of the rows with the columns of a matrix (d, k)."""
        return (_times(self.rows, vectors) - self.centre @ vectors) * self.factors[:, None]

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
        return np.asarray(self.rows.sums_of(numbers) if isinstance(self.rows, JoinedRows) else numbers.sum(axis=0))

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
