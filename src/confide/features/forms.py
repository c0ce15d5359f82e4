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
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any, Self, TypeAlias

import numpy as np
from scipy.linalg import cholesky, solve_triangular
from scipy.sparse import issparse

from confide.array_types import Array, Rows
from confide.erm.coded_rows import CodedRows, dense
from confide.erm.group_bounds import groups_of
from confide.erm.row_bounds import RowBound
from confide.errors import ParameterError, checked_number, is_mapping, is_whole, keep, optional, reader, wording
from confide.features.fourier import CurvesAndFeatures, FourierMap, on_grid

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
            raise ParameterError(wording("penalty not positive definite", largest_condition=LARGEST_CONDITION))
        blocks = tuple((start, _map_of(matrix)) for start, matrix in matrices)
        return cls._of_map(np.where(alone, 1.0 / np.sqrt(np.where(alone, strengths, 1.0)), 1.0), blocks)

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
        blocks = tuple((int(block["start"]), np.array(block["map"], dtype=np.float64)) for block in value["blocks"])
        if not (scales.ndim == 1 and _is_positive(scales) and all(_fits(*block, scales.size) for block in blocks)):
            raise ParameterError("the file holds a penalty that is none; use a file written by save and not edited.")
        return cls._of_map(scales, blocks)

    @property
    def n_features(self) -> int:
        """Number of columns."""
        return self.scales.size

    def rows(self, rows: Array) -> Array:
        """Rows (m, d or more) in the norm of the form, a fresh array. Columns beyond the form stay as they are."""
        bits = 53 - _MAP_BITS - (max((len(part) for _, part in self.blocks), default=1) - 1).bit_length()
        return self._mapped(np.array(rows, dtype=np.float64, order="C"), lambda block, part: on_grid(block, bits) @ part.T)

    def weights_of(self, coef: Array) -> Array:
        """Weights (o, d or more) of columns, from weights of rows in the norm of the form."""
        return self._mapped(coef.copy(), lambda block, part: block @ part)

    def sums_in_norm(self, sums: Array) -> Array:
        """Sums (m, d or more) of multiples of rows in the norm of the form, from the same sums of rows as they are."""
        return self._mapped(sums.copy(), lambda block, part: block @ part.T)

    def _mapped(self, mapped: Array, of_block: Callable[[Array, Array], Any]) -> Array:
        """An array (m, d or more) in place: columns times their scales, and those of each block by this function."""
        mapped[:, : self.n_features] *= self.scales
        for start, part in self.blocks:
            place = slice(start, start + len(part))
            mapped[:, place] = of_block(mapped[:, place], part)
        return mapped

    def weights_in_norm(self, coef: Array) -> Array:
        """Weights (o, d or more) of rows in the norm of the form, from weights of columns: the inverse of `weights_of`."""
        mapped = coef.copy()
        mapped[:, : self.n_features] /= self.scales
        for start, part in self.blocks:
            place = slice(start, start + len(part))
            mapped[:, place] = solve_triangular(part, mapped[:, place].T, lower=True, trans="T").T
        return mapped

    def rounding(self, coef: Array) -> Array:
        """How far weights (o, d) in the norm may move if they become weights of columns, and are brought back; at most."""
        errors = _ULP * 2.0 * np.abs(coef)
        for start, part in self.blocks:
            place, size = slice(start, start + len(part)), len(part) + 2
            length = np.linalg.norm(coef[:, place], axis=1, keepdims=True)
            # One product and one backward stable solution, whose errors the condition number bounds.
            errors[:, place] = _ULP * 2.0 * size * float(np.linalg.cond(part)) * length
        return errors

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
        sizes, scales, _ = groups_of(row_bound)
        if not sizes:
            return of_ball
        row_bound.check_width(self.n_features)
        ends = np.cumsum(sizes)
        squares = np.array([part.max() for part in np.split(self.column_squares, ends[:-1])]) * np.square(scales)
        group_of = np.repeat(np.arange(ends.size), sizes)
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


# What a ridge may ask of the weights of one column: that they are small, and that neighbours do not differ much.

LEAST_STRENGTH, LARGEST_STRENGTH = 1e-6, 1e6
"""The range of the strengths of a penalty."""


@dataclass(frozen=True, slots=True)
class Smooth:
    """A penalty on differences of neighbouring weights, for curves with knots and for ordered levels.

    The weights u of the column are penalised by ridge * c * (|u|^2 + strength * sum of squared differences), and their mean
    is held near 0, because the intercept stands for it. The number c depends on nothing else: with it, the smallest
    penalty of a weight at one level is, on average, what it is without smoothing.

    Parameters
    ----------
    strength : float, default 100.0
        How much the differences count, from 1e-6 to 1e6. The stronger, the smoother is the effect.
    order : {1, 2} or None, default None
        Order of the differences: 1 pulls towards a constant, 2 towards a straight line. None is 2 for numbers with knots and
        1 for the levels of a category, in the order in which the schema lists them.
    ridge : float, default 1.0
        How strongly the column is penalised as a whole, relative to a column without a penalty of its own, from 1e-6 to 1e6.

    Raises
    ------
    ParameterError
        If a number is outside its range.

    Examples
    --------
    >>> Smooth(4.0)
    Smooth(strength=4.0, order=None, ridge=1.0)
    """

    strength: float = 100.0
    order: int | None = None
    ridge: float = 1.0

    def __post_init__(self) -> None:
        order = reader("1 or 2", lambda order: is_whole(order) and order in (1, 2))
        keep(self, "Smooth: ", strength=checked_strength, order=optional(order), ridge=checked_strength)

    def to_dict(self) -> dict[str, Any]:
        """A JSON-able form."""
        return {"strength": self.strength, "order": self.order, "ridge": self.ridge}


def checked_strength(what: str, value: Any) -> float:
    """A strength within its range."""
    return checked_number(what, value, LEAST_STRENGTH, LARGEST_STRENGTH, "1e-6 to 1e6")


def smoothing_form(points: Array, smooth: Smooth, order: int) -> Array:
    """The symmetric matrix (k, k) of the penalty on weights at these points (k,), which rise.

    Evenly spaced points give plain differences. Otherwise slopes between points are compared, in units of the mean distance.
    """
    n_points = points.size
    if n_points <= order:
        raise ParameterError(f"differences of order {order} need more than {order} weights, and there are {n_points}.")
    steps = np.diff(points) / np.diff(points).mean()
    differences = np.diff(np.eye(n_points), axis=0) / (steps if order == 2 else np.sqrt(steps))[:, None]
    if order == 2:
        differences = np.diff(differences, axis=0)
    rough = smooth.strength * differences.T @ differences
    # The mean is held as strongly as the roughest weights are.
    form = np.eye(n_points) + rough + (1.0 + np.linalg.norm(rough, 2)) / n_points
    usual = float(np.diag(np.linalg.inv(form)).mean())
    form_of_slope: Array = smooth.ridge * usual * form
    assert math.isfinite(usual)  # noqa: S101 - the form is at least the identity
    return form_of_slope


# Public maps of rows: what they have in common, and how they are read from a file.


def map_from_dict(value: Mapping[str, Any]) -> PublicMap:
    """Read what `to_dict` of a public map writes.

    Raises
    ------
    ParameterError
        If the kind of map is unknown, or its description is not valid.
    """
    if is_mapping(value) and value.get("kind") == "curves and features":
        return CurvesAndFeatures.from_dict(value)
    return FourierMap.from_dict(value)


# Rows in the norm of a quadratic form, by public knowledge alone: what a fit with `penalty` minimises its loss over.


PublicMap: TypeAlias = FourierMap | CurvesAndFeatures
"""A map of rows that is known to everybody and belongs to a model: its weights are those of the columns of mapped rows."""


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


RowMap: TypeAlias = PublicMap | PenalisedRows
"""A map of rows that is known to everybody: each row becomes another row, as a function of that row alone."""


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


# The bound by which rows are shortened before they are scored, where a fit shortened them in the norm of a form.


@dataclass(frozen=True, slots=True)
class ShortenedInNorm:
    """Rows within an inner bound, each multiplied by the number that makes it at most `norm` long in the norm of a form.

    No guarantee rests on it: the fit itself clips rows to a ball after they were brought to that norm.

    Parameters
    ----------
    inner : the bound on rows before
    form : the quadratic form
    norm : the largest norm of a row in the norm of the form
    """

    inner: RowBound
    form: QuadraticForm
    norm: float

    @property
    def l2_norm(self) -> float:
        """Largest L2 norm of a clipped row."""
        return self.inner.l2_norm

    def check_width(self, n_features: int) -> None:
        """Raise ParameterError if rows of this many columns cannot be clipped by the bound."""
        if n_features != self.form.n_features:
            raise ParameterError(f"the form describes {self.form.n_features} columns, but rows have {n_features}.")

    def clip(self, rows: Rows) -> Rows:
        """The rows of one block, shortened; coded rows stay coded."""
        self.check_width(rows.shape[1])
        if issparse(rows):
            raise ParameterError("a penalty is for dense rows; turn the sparse matrix into an array.")
        inside = self.inner.clip(rows)
        with np.errstate(all="ignore"):
            mapped = self.form.rows(dense(inside))
            lengths = np.sqrt(np.einsum("ij,ij->i", mapped, mapped))
            factors = np.where(lengths > self.norm, self.norm / np.where(lengths > 0.0, lengths, 1.0), 1.0)
        return inside.scaled(factors) if type(inside) is CodedRows else inside * factors[:, None]

    def to_dict(self) -> dict[str, Any]:
        """A JSON form."""
        return {"kind": "form", "inner": self.inner.to_dict(), "norm": self.norm, "form": self.form.to_dict()}
