"""Public maps of rows: what they have in common, and how they are read from a file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from confide.erm.row_bounds import BallBound, RowBound
from confide.features.curves_and_features import CurvesAndFeatures
from confide.features.fourier import FourierMap
from confide.types import Array, Rows


class RowMap(Protocol):
    """A map of rows that is known to everybody: each row becomes another row, as a function of that row alone."""

    @property
    def n_features(self) -> int:
        """Number of columns of a mapped row."""

    def transform(self, rows: Rows) -> Array:
        """Map rows (m, d) to a fresh array (m, n_features) of float64."""


class PublicMap(RowMap, Protocol):
    """A map of rows that belongs to a model: its weights are those of the columns of mapped rows."""

    @property
    def n_inputs(self) -> int:
        """Number of columns of a row."""

    @property
    def row_bound(self) -> BallBound:
        """A bound that holds every mapped row."""

    def may_have(self, row_bound: RowBound) -> bool:
        """Whether a fit to mapped rows may have this bound."""

    def names_for(self, inputs: Sequence[str]) -> tuple[str, ...]:
        """Names of the columns of a mapped row, from the names of the columns of a row."""

    def to_dict(self) -> dict[str, Any]:
        """A JSON-able form, read by `map_from_dict`."""


def map_from_dict(value: Mapping[str, Any]) -> PublicMap:
    """Read what `to_dict` of a public map writes.

    Raises
    ------
    ParameterError
        If the kind of map is unknown, or its description is not valid.
    """
    if isinstance(value, Mapping) and value.get("kind") == "curves and features":
        return CurvesAndFeatures.from_dict(value)
    return FourierMap.from_dict(value)
