"""Rows that are made up from public facts alone: at the edge of what bounds, schemas and label domains allow."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from confide.erm.group_bounds import GroupBound
from confide.features.row_weight import RowWeight
from confide.features.schema import Schema
from confide.types import Array

_EDGE = 1.0 - 2.0**-30
"""Rows lie this far inside of a bound, so that rounding never clips them."""


@dataclass(frozen=True, slots=True)
class Domain:
    """What rows and targets an estimator may be given.

    Attributes
    ----------
    corners : rows at the edge, first those that differ most; arrays (d,), or dictionaries from columns to cells
    rest : a row of zeros, or the first corner where there is no such row
    targets : at least two, first those that differ most
    target_column : name of the column of targets in a frame, or None for arrays
    person : name of the column of persons, or None
    pushing : whether longer weights make slopes steeper, so that other rows should push them
    weight : the column by which rows count, or None; every row counts as much as it may
    """

    corners: tuple[Any, ...]
    rest: Any
    targets: tuple[Any, ...]
    target_column: str | None = None
    person: str | None = None
    pushing: bool = False
    weight: RowWeight | None = None

    def data(self, rows: Sequence[tuple[Any, Any]], same_person: int = 1) -> tuple[Any, Any]:
        """(X, y) of pairs of a row and a target; the last `same_person` rows are those of one person."""
        targets = np.array([target for _, target in rows])
        if isinstance(self.rest, dict):
            import pandas as pd

            frame = pd.DataFrame([row for row, _ in rows])
            if self.person is not None:
                frame[self.person] = np.minimum(np.arange(len(rows)), len(rows) - same_person)
            if self.weight is not None:
                frame[self.weight.column] = self.weight.high
            if self.target_column is not None:
                frame[self.target_column] = targets
            return frame, targets
        return np.array([row for row, _ in rows]), targets


def domain_of(estimator: Any) -> Domain:
    """The domain of one of our estimators, by its parameters."""
    schema = getattr(estimator, "schema", None)
    targets = _targets(estimator, schema)
    if isinstance(schema, Schema):
        low, high = _cells(schema, first=True), _cells(schema, first=False)
        mixed = {name: (low if place % 2 else high)[name] for place, name in enumerate(low)}
        column = None if schema.target is None else schema.target.column
        return Domain((high, low, mixed), low, targets, column, schema.person, weight=schema.weight)
    bounds = getattr(estimator, "bounds", None)
    if bounds is not None:
        return _within(bounds, targets)
    corners = _edges(getattr(estimator, "row_norm", None))
    return Domain(corners, np.zeros_like(corners[0]), targets, pushing=hasattr(estimator, "classes") and len(corners) > 2)


def _edges(bound: Any) -> tuple[Array, ...]:
    """Rows at the edge of a bound on rows, and their opposites."""
    if isinstance(bound, GroupBound):
        starts = np.cumsum((0, *bound.sizes[:-1]))
        row = np.zeros(sum(bound.sizes))
        row[starts] = bound.scales
        other = np.zeros_like(row)
        last = np.cumsum(bound.sizes) - 1
        other[last] = np.where(bound.linked, bound.scales, -np.array(bound.scales))
        return (_EDGE * row, _EDGE * other)
    norm = 1.0 if bound is None else float(getattr(bound, "norm", bound))
    return tuple(_EDGE * norm * np.array(row) for row in ([0.0, 1.0], [0.0, -1.0], [1.0, 0.0]))


def _within(bounds: Any, targets: tuple[Any, ...]) -> Domain:
    """The domain of an additive model with bounds of an array of numbers."""
    named = list(bounds.values()) if isinstance(bounds, dict) else bounds
    pairs = [named] if np.ndim(named) == 1 else list(named)
    low, high = (np.array([float(pair[side]) for pair in pairs]) for side in (0, 1))
    return Domain((high, low), 0.5 * (low + high), targets)


def _targets(estimator: Any, schema: Any) -> tuple[Any, ...]:
    of_schema = getattr(schema, "target", None)
    if hasattr(estimator, "target_bound"):
        bound = estimator.target_bound
        ends = (getattr(estimator, "target_low", None), getattr(estimator, "target_high", None))
        if of_schema is not None and of_schema.low is not None:
            ends = (of_schema.low, of_schema.high)
        if ends[0] is not None and ends[1] is not None:
            low, high = float(ends[0]), float(ends[1])
        else:
            low, high = -float(bound or 1.0), float(bound or 1.0)
        # Counts are at least 0.
        return (high, max(0.0, low)) if "Poisson" in type(estimator).__name__ else (high, low)
    if getattr(estimator, "classes", None) is not None:
        return tuple(estimator.classes)[::-1]
    if of_schema is not None:
        return tuple(of_schema.classes or (of_schema.positive, of_schema.negative))
    return (1, -1)


def _cells(schema: Schema, *, first: bool) -> dict[str, Any]:
    """One cell for each column: its first or last category, its least or greatest number."""
    found: dict[str, Any] = {}
    for column in schema.columns:
        if hasattr(column, "categories"):
            found[column.name] = column.categories[0 if first else -1]
        else:
            found[column.name] = float(column.low if first else column.high)
    return found


def turned(norm: float, degrees: float) -> tuple[Array, Array]:
    """Two rows of this length, at this angle on either side of the second axis turned down."""
    angle = np.radians(degrees)
    along, across = norm * _EDGE * np.cos(angle), norm * _EDGE * np.sin(angle)
    return np.array([across, -along]), np.array([-across, -along])
