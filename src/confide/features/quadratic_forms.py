"""A quadratic form in place of |w|^2, and the rows and weights in its norm.

A fit with the ridge w' P w over rows x is a fit with the ridge |v|^2 over rows z = M x, where w = M' v and P is the inverse
of M' M. The map M is linear and known to everybody, so nothing else changes: noise, certificate and
statement are those of an ordinary fit to the rows z. Proof: privacy/proofs/penalty.md.

A form is a diagonal, but for blocks of neighbouring columns that have a matrix of their own. Products with a block are
exact, whatever the order of additions: entries of rows and of the map are rounded to grids, as `FourierMap` does. So a row
in the norm of the form is a function of that row alone, bit for bit.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any, Self

import numpy as np
from scipy.linalg import cholesky, solve_triangular

from confide.erm.group_bounds import GroupBound
from confide.erm.row_bounds import RowBound
from confide.errors import ParameterError
from confide.features.fourier import on_grid
from confide.types import Array

LARGEST_CONDITION = 1e8
"""The largest eigenvalue of a form may be this many times its smallest. Beyond, rounding of the map would change it."""
_MAP_BITS = 24
"""Entries of a block of the map are rounded to this many bits of the largest in their row."""
_UPWARDS = 1.0 + 2.0**-30
"""Rows at the bound are not clipped for rounding alone."""
_ULP = 2.0**-52
Blocks = tuple[tuple[int, Array], ...]


@dataclass(frozen=True, slots=True)
class QuadraticForm:
    """A positive definite quadratic form of the weights of the columns. It is public.

    Parameters
    ----------
    key : a checksum of the form; forms with equal keys are equal
    scales : (d,), what the map does to a column that is in no block
    blocks : pairs of the first column of a block and its lower triangular map M (k, k)
    """

    key: bytes
    scales: Array = field(compare=False, repr=False)
    blocks: Blocks = field(compare=False, repr=False)

    @classmethod
    def of(cls, strengths: Array, matrices: Sequence[tuple[int, Array]] = ()) -> Self:
        """The form with these strengths (d,) and, from some columns on, these symmetric matrices (k, k) in their place.

        Raises
        ------
        ParameterError
            If a matrix is not symmetric and positive definite, or the condition number of the form is too large.
        """
        spectra = [np.linalg.eigvalsh(matrix) for _, matrix in matrices]
        alone = np.ones(strengths.size, dtype=bool)
        for start, matrix in matrices:
            alone[start : start + len(matrix)] = False
        values = np.concatenate([strengths[alone], *spectra])
        # Written so that what is not a number is refused.
        if not values.min() > 0.0 or not values.max() <= LARGEST_CONDITION * values.min():
            raise ParameterError(
                f"the penalty must be a positive definite form whose largest eigenvalue is at most {LARGEST_CONDITION:g} "
                f"times its smallest. Raise the weakest strengths, or lower the strongest."
            )
        blocks = tuple((start, _map_of(matrix)) for start, matrix in matrices)
        scales = np.where(alone, 1.0 / np.sqrt(np.where(alone, strengths, 1.0)), 1.0)
        return cls._of_map(scales, blocks)

    @classmethod
    def _of_map(cls, scales: Array, blocks: Blocks) -> Self:
        parts = [scales.tobytes(), *(np.int64(start).tobytes() + part.tobytes() for start, part in blocks)]
        for array in (scales, *(part for _, part in blocks)):
            array.setflags(write=False)
        return cls(sha256(b"".join(parts)).digest(), scales, blocks)

    def to_dict(self) -> dict[str, Any]:
        """A JSON form of the map, to the bit; read by `from_dict`."""
        blocks = [{"start": start, "map": part.tolist()} for start, part in self.blocks]
        return {"scales": self.scales.tolist(), "blocks": blocks}

    @classmethod
    def from_dict(cls, value: Mapping[str, Any]) -> Self:
        """Read what `to_dict` writes.

        Raises
        ------
        ParameterError
            If it is no such map.
        """
        scales = np.array(value["scales"], dtype=np.float64)
        blocks = tuple((int(each["start"]), np.array(each["map"], dtype=np.float64)) for each in value["blocks"])
        if not (scales.ndim == 1 and _is_positive(scales) and all(_fits(*block, scales.size) for block in blocks)):
            raise ParameterError(
                "the file holds a penalty that is none; use a file that was written by save and not edited."
            )
        return cls._of_map(scales, blocks)

    @property
    def n_features(self) -> int:
        """Number of columns."""
        return self.scales.size

    def rows(self, rows: Array) -> Array:
        """Rows (m, d or more) in the norm of the form, a fresh array. Columns beyond the form stay as they are."""
        mapped = np.array(rows, dtype=np.float64, order="C")
        mapped[:, : self.n_features] *= self.scales
        if not self.blocks:
            return mapped
        bits = 53 - _MAP_BITS - (max(len(part) for _, part in self.blocks) - 1).bit_length()
        for start, part in self.blocks:
            place = slice(start, start + len(part))
            mapped[:, place] = on_grid(mapped[:, place], bits) @ part.T
        return mapped

    def weights_of(self, coef: Array) -> Array:
        """Weights (o, d or more) of columns, from weights of rows in the norm of the form."""
        found = coef.copy()
        found[:, : self.n_features] *= self.scales
        for start, part in self.blocks:
            place = slice(start, start + len(part))
            found[:, place] = found[:, place] @ part
        return found

    def sums_in_norm(self, sums: Array) -> Array:
        """Sums (m, d or more) of multiples of rows in the norm of the form, from the same sums of rows as they are."""
        found = sums.copy()
        found[:, : self.n_features] *= self.scales
        for start, part in self.blocks:
            place = slice(start, start + len(part))
            found[:, place] = found[:, place] @ part.T
        return found

    def weights_in_norm(self, coef: Array) -> Array:
        """Weights (o, d or more) of rows in the norm of the form, from weights of columns: the inverse of `weights_of`."""
        found = coef.copy()
        found[:, : self.n_features] /= self.scales
        for start, part in self.blocks:
            place = slice(start, start + len(part))
            found[:, place] = solve_triangular(part, found[:, place].T, lower=True, trans="T").T
        return found

    def rounding(self, coef: Array) -> Array:
        """How far weights (o, d) in the norm may move if they become weights of columns, and are brought back; at most."""
        found = _ULP * 2.0 * np.abs(coef)
        for start, part in self.blocks:
            place, size = slice(start, start + len(part)), len(part) + 2
            length = np.linalg.norm(coef[:, place], axis=1, keepdims=True)
            # One product and one backward stable solution, whose errors the condition number bounds.
            found[:, place] = _ULP * 2.0 * size * float(np.linalg.cond(part)) * length
        return found

    @property
    def longest_map(self) -> float:
        """The largest factor by which the map stretches a row, rounded upwards."""
        return float(max([self._alone.max(initial=0.0), *(np.linalg.norm(part, 2) for _, part in self.blocks)])) * _UPWARDS

    @property
    def _alone(self) -> Array:
        """The scales of columns that are in no block."""
        alone = np.ones(self.n_features, dtype=bool)
        for start, part in self.blocks:
            alone[start : start + len(part)] = False
        return self.scales[alone]

    @property
    def column_squares(self) -> Array:
        """(d,): the squared norms of rows with a single entry of 1, in the norm of the form."""
        squares = self.scales**2
        for start, part in self.blocks:
            squares[start : start + len(part)] = (part * part).sum(axis=0)
        return squares

    def longest(self, row_bound: RowBound) -> float:
        """The largest norm that a row within a bound can have in the norm of the form, rounded upwards.

        Of rows in groups, those with a single entry in each group are the longest, because a norm is convex.
        """
        of_ball = self.longest_map * row_bound.l2_norm
        if not isinstance(row_bound, GroupBound):
            return of_ball
        row_bound.check_width(self.n_features)
        ends = np.cumsum(row_bound.sizes)
        squares = np.array([part.max() for part in np.split(self.column_squares, ends[:-1])]) * np.square(row_bound.scales)
        group_of = np.repeat(np.arange(ends.size), row_bound.sizes)
        if all(group_of[start] == group_of[start + len(part) - 1] for start, part in self.blocks):
            return math.sqrt(math.fsum(squares)) * _UPWARDS
        return min(of_ball, math.fsum(np.sqrt(squares)) * _UPWARDS)


def _is_positive(numbers: Array) -> bool:
    return bool(np.isfinite(numbers).all() and (numbers > 0.0).all())


def _fits(start: int, part: Array, n_features: int) -> bool:
    """Whether this is the map of a block: lower triangular, with a positive diagonal."""
    is_square = part.ndim == 2 and part.shape[0] == part.shape[1]
    if not is_square or not 0 <= start <= n_features - len(part):
        return False
    return bool(np.isfinite(part).all() and not np.triu(part, 1).any()) and _is_positive(np.diag(part))


def _map_of(matrix: Array) -> Array:
    """The lower triangular map M (k, k) of a block P, the inverse of its Cholesky factor, on a grid."""
    part = solve_triangular(cholesky(matrix, lower=True), np.eye(len(matrix)), lower=True)
    return np.ascontiguousarray(on_grid(np.tril(part), _MAP_BITS))
