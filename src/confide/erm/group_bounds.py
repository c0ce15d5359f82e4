"""Public bounds on rows whose columns fall into groups, such as the encoded columns of a table."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import lru_cache
from numbers import Integral, Real
from struct import Struct
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse

from confide.array_types import Array, Indices, Rows, SparseRows
from confide.erm.coded_rows import CodedRows, intervals_of, only_bytes, unchangeable
from confide.erm.row_bounds import LARGEST_BOUND, SMALLEST_BOUND, RowBound, canonical, scaled_to_norm, with_entries
from confide.errors import ParameterError, is_list, is_number, wording

_BAND_GROUPS = 16
"""Number of groups whose sums one product computes: small enough for wide rows, and large enough for usual schemas."""

_MOST_COLUMNS = 2**22
"""A file of a stranger must not make us write down more columns than this."""
_GROUP = Struct("<qd?")
"""Size, scale and link of a group, as bytes."""


@dataclass(frozen=True, slots=True)
class GroupBound:
    """Columns fall into consecutive groups, and the L1 norm of every group is at most its scale.

    A one-hot category is a group whose scale is the value of its active column; a number in [-s, s] is a group of one. Where
    exactly one column is active in every row the group is linked: noise may be smaller then, and the guarantee is void if
    one row is different. `clip` makes sure of it: a linked group of another form gets the scale at its largest entry, the
    first of equal ones, and 0 elsewhere.

    An entry that is not a number counts as the smallest number, an infinite one as the largest of its sign.

    Parameters
    ----------
    sizes : number of columns of each group, in order
    scales : largest L1 norm of each group, positive
    linked : for each group whether exactly one of its columns holds the scale, and the others 0; empty for none of them

    Raises
    ------
    ParameterError
        If sizes, scales and links do not fit together, or a scale is outside of 2^-300 to 2^300.
    """

    sizes: tuple[int, ...]
    scales: tuple[float, ...]
    linked: tuple[bool, ...] = ()
    n_features: int = field(init=False, compare=False, repr=False)
    l2_norm: float = field(init=False, compare=False, repr=False)
    _intervals: Indices | slice = field(init=False, compare=False, repr=False)
    """The columns that are groups of one and not linked."""
    _limits: Array = field(init=False, compare=False, repr=False)
    _bands: tuple[_Band, ...] = field(init=False, compare=False, repr=False)
    """The other groups."""
    _key: bytes = field(init=False, compare=False, repr=False)
    """Size, scale and link of each group. Caches use them as the key of a bound, because bytes cannot be changed."""

    def __post_init__(self) -> None:
        for name, kind, change in (("sizes", Integral, int), ("scales", Real, float), ("linked", bool, bool)):
            values = getattr(self, name)
            values = tuple(values) if is_list(values) else (None,)
            if not all(isinstance(value, kind) and isinstance(value, bool) == (kind is bool) for value in values):
                raise ParameterError("a GroupBound needs whole numbers as sizes, numbers as scales and bools as `linked`.")
            object.__setattr__(self, name, tuple(map(change, values)))
        object.__setattr__(self, "linked", self.linked or (False,) * len(self.sizes))
        if not len(self.sizes) == len(self.scales) == len(self.linked) > 0 or min(self.sizes) < 1:
            raise ParameterError("a GroupBound needs a size of at least 1, a scale and a bool `linked` for each group.")
        if sum(self.sizes) > _MOST_COLUMNS:
            raise ParameterError(f"a GroupBound is for at most {_MOST_COLUMNS:,} columns together; leave some out.")
        if not all(SMALLEST_BOUND <= scale <= LARGEST_BOUND for scale in self.scales):
            raise ParameterError("the scales of a GroupBound must be positive, between 2^-300 and 2^300.")
        sizes, scales, linked = np.array(self.sizes), np.array(self.scales), np.array(self.linked)
        starts = np.cumsum(sizes) - sizes
        interval = (sizes == 1) & ~linked
        longer = np.flatnonzero(~interval)
        parts = np.split(longer, range(_BAND_GROUPS, longer.size, _BAND_GROUPS)) if longer.size else []
        groups = zip(self.sizes, self.scales, self.linked, strict=True)
        object.__setattr__(self, "_key", b"".join(_GROUP.pack(*group) for group in groups))
        object.__setattr__(self, "_intervals", starts[interval] if parts else slice(None))
        object.__setattr__(self, "n_features", sum(self.sizes))
        # Rounded outwards: the squares and their exact sum err by less than one part in 2^51.
        object.__setattr__(self, "l2_norm", math.sqrt(math.fsum(scales * scales)) * (1.0 + 2.0**-50))
        object.__setattr__(self, "_limits", scales[interval])
        object.__setattr__(self, "_bands", tuple(_Band(starts[i], sizes[i], scales[i], linked[i]) for i in parts))

    def check_width(self, n_features: int) -> None:
        if n_features != self.n_features:
            raise ParameterError(f"the row bound describes {self.n_features} columns, but rows have {n_features}.")

    def clip(self, rows: Rows) -> Rows:
        self.check_width(rows.shape[1])
        if type(rows) is CodedRows:
            return rows if self._holds(rows) else self.clip(rows.dense())
        if issparse(rows):
            return self._clip_sparse(canonical(rows).astype(np.float64, copy=False))
        block = np.asarray(rows, dtype=np.float64)
        # Written so that an entry that is not a number counts as outside.
        within = np.abs(block[:, self._intervals]) <= self._limits
        suspects = [band.suspects(block) for band in self._bands]
        if within.all() and not any(suspect.any() for suspect in suspects):
            return block
        clipped = block.copy() if np.isfinite(block).all() else np.nan_to_num(block, nan=-np.finfo(np.float64).max)
        # Intervals are clipped by comparison, without rounding.
        numbers = clipped[:, self._intervals]
        clipped[:, self._intervals] = np.clip(numbers, -self._limits, self._limits, out=numbers)
        for band, suspect in zip(self._bands, suspects, strict=True):
            band.clip(clipped, suspect)
        return clipped

    def _clip_sparse(self, block: SparseRows) -> SparseRows:
        if self._bands:
            raise ParameterError(wording("sparse rows in groups"))
        limits = self._limits[block.indices]
        entries = np.nan_to_num(block.data, nan=-np.finfo(np.float64).max)
        return with_entries(block, np.clip(entries, -limits, limits))

    def _holds(self, rows: CodedRows) -> bool:
        """Whether every row certainly obeys the bound without clipping. An entry that is not a number never does."""
        limits = _limits_of_coded(only_bytes(self._key), only_bytes(rows.layout.key), int(rows.n_rows))
        if limits is None:
            return False
        lowest, highest, radii, scales = limits
        single, first, second = rows.layout.parts(rows.entries)
        if not ((single >= lowest).all() and (single <= highest).all()):
            return False
        with np.errstate(over="ignore", invalid="ignore"):
            norms = np.abs(first)
            norms += np.abs(second)
            if norms.max(initial=0.0) <= radii.min(initial=math.inf):
                return True
            # The norm of a pair with an entry of 0 is exact, so it needs no margin.
            alone = (norms <= scales) & ((first == 0.0) | (second == 0.0))
            return bool((alone | (norms <= radii)).all())

    def to_dict(self) -> dict[str, Any]:
        return {"kind": "groups", "sizes": list(self.sizes), "scales": list(self.scales), "linked": list(self.linked)}


def groups_of(bound: RowBound, intercept: float = 0.0) -> tuple[tuple[int, ...], tuple[float, ...], tuple[bool, ...]]:
    """Sizes, scales and links of the groups of columns, the constant of an intercept among them; none for other bounds."""
    if not isinstance(bound, GroupBound):
        return (), (), ()
    constant = int(intercept > 0.0)
    return bound.sizes + (1,) * constant, bound.scales + (intercept,) * constant, bound.linked + (False,) * constant


@lru_cache(maxsize=16)
def _limits_of_coded(bound: bytes, layout: bytes, n_rows: int) -> tuple[NDArray[Any], ...] | None:
    """Limits for the entries of coded rows: the lowest and highest single entry; radius and scale of a pair.

    The limits of single entries are repeated for each row, because comparisons are faster then. The result is None where the
    layout does not show that the bound holds: if an interval does not lie in a group of its own, or a linked group has no
    single entry.
    """
    sizes, scales, linked = (np.array(part) for part in zip(*_GROUP.iter_unpack(bound), strict=True))
    _, singles, pairs = intervals_of(layout)
    stops = np.cumsum(sizes)
    intervals = np.concatenate([singles, pairs])
    # Each interval begins in the group that is found, and may end behind it.
    groups = np.searchsorted(stops, intervals[:, 0], side="right")
    single, pair = np.split(groups, [len(singles)])
    own = len(set(groups.tolist())) == len(groups) and bool((intervals[:, 1] <= stops[groups]).all())
    if not own or linked[pair].any() or linked.sum() != linked[single].sum():
        return None
    lowest, radii = np.where(linked, scales, -scales), scales * (1.0 - (sizes + 4) * 2.0**-52)
    repeated = np.tile(lowest[single], (n_rows, 1)), np.tile(scales[single], (n_rows, 1))
    return tuple(map(unchangeable, (*repeated, radii[pair], scales[pair])))


class _Band:
    """A few groups; the arrays have one entry for each. Sums over groups are products with a matrix of 0 and 1."""

    def __init__(self, starts: Indices, sizes: Indices, scales: Array, linked: NDArray[np.bool_]) -> None:
        stops = starts + sizes
        self.columns, self.groups = slice(starts[0], stops[-1]), list(map(slice, starts, stops))
        columns = np.arange(starts[0], stops[-1])[:, None]
        self.members = ((starts <= columns) & (columns < stops)).astype(np.float64)
        # A group with a single entry obeys the bound if that lies between `lowest` and `scales`.
        self.linked, self.scales, self.lowest = linked, scales, np.where(linked, scales, -scales)
        # A computed L1 norm of at most this proves that the exact norm is within the scale. No norm proves that a group is
        # linked.
        self.radii = np.where(linked, -math.inf, scales * (1.0 - (sizes + 4) * 2.0**-52))

    def suspects(self, block: Array) -> NDArray[np.bool_]:
        """(rows, groups): False where the group certainly obeys the bound without clipping."""
        entries = block[:, self.columns]
        with np.errstate(over="ignore", invalid="ignore"):
            counts = (entries != 0.0).astype(np.float32) @ self.members.astype(np.float32)
            # The sum of a single entry is exact, so it needs no margin; a linked group has no other form.
            sums = entries @ self.members
            suspect: NDArray[np.bool_] = ~((counts <= 1.0) & (sums >= self.lowest) & (sums <= self.scales))
            if suspect.any():
                suspect &= ~(np.abs(entries) @ self.members <= self.radii)
        return suspect

    def clip(self, block: Array, suspect: NDArray[np.bool_]) -> None:
        """Make the suspect groups of finite rows obey the bound, in place."""
        for group in np.flatnonzero(suspect.any(axis=0)):
            where = np.flatnonzero(suspect[:, group]), self.groups[group]
            one_hot, part = self.linked[group], block[where]
            block[where] = _one_hot(part, self.scales[group]) if one_hot else scaled_to_norm(part, self.radii[group], 1)


def _one_hot(rows: Array, scale: float) -> Array:
    hot = np.zeros_like(rows)
    hot[np.arange(rows.shape[0]), rows.argmax(axis=1)] = scale
    # Rows that obey the bound already keep the signs of their zeros.
    return np.where(rows == hot, rows, hot)


def BoxBound(limits: Iterable[float]) -> GroupBound:  # noqa: N802 - a kind of bound, named as the others are
    """The entry of each column lies in [-limit, limit]: a `GroupBound` with groups of one.

    Parameters
    ----------
    limits : one positive number a column, in the unit of the column

    Returns
    -------
    GroupBound

    Raises
    ------
    ParameterError
        If a limit is not a positive number between 2^-300 and 2^300.
    """
    scales = tuple(limits) if is_list(limits) else ()
    if not scales or not all(is_number(scale) and SMALLEST_BOUND <= scale <= LARGEST_BOUND for scale in scales):
        raise ParameterError("a BoxBound needs a limit for each column, a positive number between 2^-300 and 2^300.")
    return GroupBound((1,) * len(scales), scales)
