"""Encoded rows with random Fourier features of the same rows beside them, by public knowledge alone.

The weights of the encoded columns are the effects of single columns. The weights of the features are a function of all
columns together, so a linear model of both is an additive model with interactions of every order. The features are
multiplied by a number g, which says how much of a row they are: a row x becomes (x, g f(x)), where f(x) has norm 1.

If |x| <= r, then |(x, g f(x))|^2 <= r^2 + g^2. Rows are clipped to such a ball where they are summed, so the bound holds
whatever finite numbers are computed here. They are finite, because the encoder makes finite rows of every cell.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np

from confide.erm.row_bounds import BallBound, RowBound
from confide.errors import ParameterError
from confide.features.fourier import FourierMap
from confide.types import Array, Rows

_SMALLEST, _LARGEST = 2.0**-20, 2.0**20
_KEYS = ("kind", "features", "feature_norm", "row_norm")


@dataclass(frozen=True, slots=True)
class CurvesAndFeatures:
    """Appends random Fourier features to rows.

    Parameters
    ----------
    features : the map whose features are appended
    feature_norm : g, the L2 norm of the appended features
    row_norm : the largest L2 norm of a row before the features are appended

    Raises
    ------
    ParameterError
        If a number is outside its range, which is from 2^-20 to 2^20.

    Examples
    --------
    >>> appending = CurvesAndFeatures(FourierMap(1, 4), feature_norm=2.0, row_norm=1.0)
    >>> appending.transform(np.array([[0.0]])).round(3)
    array([[0.   , 1.414, 1.414, 0.   , 0.   ]])
    """

    features: FourierMap
    feature_norm: float
    row_norm: float

    def __post_init__(self) -> None:
        if not isinstance(self.features, FourierMap):
            raise ParameterError("the features that are appended to rows must be a FourierMap.")
        for name in ("feature_norm", "row_norm"):
            value = getattr(self, name)
            norm = float(value) if isinstance(value, Real) and not isinstance(value, bool) else math.nan
            if not _SMALLEST <= norm <= _LARGEST:
                raise ParameterError(f"{name} must be a number from 2^-20 to 2^20.")
            object.__setattr__(self, name, norm)

    def __str__(self) -> str:
        return f"their columns and, times {self.feature_norm:g}, {self.features}"

    @property
    def n_inputs(self) -> int:
        """Number of columns of a row before the features are appended."""
        return self.features.n_inputs

    @property
    def n_features(self) -> int:
        """Number of columns of a row with its features."""
        return self.features.n_inputs + self.features.n_features

    @property
    def row_bound(self) -> BallBound:
        """A ball that holds every row with its features."""
        return self.bound_for(self.row_norm)

    def bound_for(self, norm: float) -> BallBound:
        """A ball that holds every row with its features whose norm was at most this before they were appended."""
        # Rounded upwards, so that rows at the bound are not clipped for rounding alone.
        return BallBound(math.hypot(norm, self.feature_norm) * (1.0 + 2.0**-30))

    def may_have(self, row_bound: RowBound) -> bool:
        """Whether a fit to mapped rows may have this bound: where noise is large, rows are clipped to a smaller ball."""
        return isinstance(row_bound, BallBound) and row_bound.norm <= self.row_bound.norm

    def names_for(self, inputs: Sequence[str]) -> tuple[str, ...]:
        """Names of the columns of a row with its features, from the names of the columns before."""
        return (*inputs, *self.features.names)

    def transform(self, rows: Rows) -> Array:
        """Append the features to rows.

        Parameters
        ----------
        rows : array (m, n_inputs) of finite numbers

        Returns
        -------
        array (m, n_features), float64, fresh and C-contiguous: first the columns of the rows, then the features. Each row
        is a function of the row alone, bit for bit

        Raises
        ------
        InputError
            If rows do not have n_inputs columns.
        """
        features = self.features.transform(rows)
        features *= self.feature_norm
        return np.concatenate([np.asarray(rows, dtype=np.float64), features], axis=1)

    def to_dict(self) -> dict[str, Any]:
        """A JSON-able form, read by `from_dict`."""
        norms = {name: getattr(self, name) for name in ("feature_norm", "row_norm")}
        return {"kind": "curves and features", "features": self.features.to_dict()} | norms

    @classmethod
    def from_dict(cls, value: Mapping[str, Any]) -> CurvesAndFeatures:
        """Read what `to_dict` writes.

        Raises
        ------
        ParameterError
            If parts are missing, unknown or outside their ranges.
        """
        if not isinstance(value, Mapping) or set(value) != set(_KEYS) or value["kind"] != "curves and features":
            raise ParameterError(
                f"rows with their features are described by exactly these keys: {', '.join(sorted(_KEYS))}."
            )
        features = FourierMap.from_dict(value["features"])
        return cls(features, value["feature_norm"], value["row_norm"])
