"""The data sets of the comparison: raw columns for confide, and the same rows encoded and bounded for its peers.

Peers are handed what confide's schema makes of the columns, so that they start from the same public knowledge.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import numpy as np
import pandas as pd
from benchmarks.peers.outcomes import Outcome, outcomes_of
from benchmarks.public_data import Split, folder, load

from confide import RandomFourierFeatures, Schema
from confide.array_types import Array
from confide.features.columns import CategoryColumn, Column, NumberColumn
from confide.features.encoder import Encoder
from confide.training.alpha import usual_norm

KNOTS, N_FEATURES = 6, 400
"""Evenly spaced knots of a column of numbers, for peers on curves; and random features beside them."""


@dataclass(frozen=True)
class Codes:
    """Rows (n, d) as whole numbers, how many each column has, and which columns are levels and have no order."""

    train: Array
    test: Array
    sizes: list[int]
    levels: list[bool]


@dataclass(frozen=True)
class RandomFeatures:
    """Random Fourier features of straight columns: their length scale is for each root of a column."""

    of: Encoder
    length_scale: float

    def beside(self, encoded: Array, rows: pd.DataFrame) -> Array:
        """Encoded rows, and the features of the same rows beside them, as long as the rows of so many columns."""
        straight = self.of.transform(rows)
        n_columns = len(self.of.groups)
        drawn = RandomFourierFeatures(N_FEATURES, length_scale=self.length_scale * math.sqrt(n_columns))
        return np.hstack([encoded, math.sqrt(n_columns) * drawn.fit_transform(straight)])


@dataclass(frozen=True, eq=False)
class Problem:
    """One data set. The schema is public, and bounds on the number of rows are where neighbours keep it private.

    Rows may have random features beside their columns.
    """

    name: str
    split: Split
    features: RandomFeatures | None = None

    @property
    def n_rows_bounds(self) -> tuple[int, int]:
        """Round figures about the number of rows: those of Adult are (29,000, 41,000)."""
        n_rows = len(self.split.y_train)
        return math.floor(0.92 * n_rows / 1000) * 1000, math.ceil(1.23 * n_rows / 1000) * 1000

    @cached_property
    def encoder(self) -> Encoder:
        return Encoder(self.split.schema)

    @cached_property
    def norms(self) -> dict[str, float]:
        """Bounds to clip rows to: the largest norm that the schema allows, which clips none, and a usual one."""
        bound = self.encoder.row_bound
        return {"largest": bound.l2_norm, "usual": usual_norm(bound, 0.0)}

    @cached_property
    def train(self) -> Array:
        return self._encoded(self.split.X_train)

    @cached_property
    def test(self) -> Array:
        return self._encoded(self.split.X_test)

    def _encoded(self, rows: pd.DataFrame) -> Array:
        encoded = self.encoder.transform(rows)
        return encoded if self.features is None else self.features.beside(encoded, rows)

    def unit_rows(self, norm: str) -> tuple[Array, Array]:
        """Rows for training and test with a constant column, divided by a bound on their norm and clipped to norm 1.

        Their constant column is regularised and perturbed like every other, as proofs want it.
        """
        bound = math.hypot(self.norms[norm], 1.0)
        both = []
        for rows in (self.train, self.test):
            scaled = np.hstack([rows, np.ones((len(rows), 1))]) / bound
            both.append(scaled / np.maximum(1.0, np.linalg.norm(scaled, axis=1, keepdims=True)))
        return both[0], both[1]

    def outcomes(self, scores: Array) -> list[Outcome]:
        """Error and AUC on the test rows, of each column of scores (n, k)."""
        return outcomes_of(scores, self.split.y_test)

    @cached_property
    def on_knots(self) -> Problem:
        """The same rows, with evenly spaced knots for each column of numbers, on its own scale, in place of its own ones."""
        schema = self.split.schema
        columns = [replace(column, knots=KNOTS) if isinstance(column, NumberColumn) else column for column in schema.columns]
        return Problem(self.name, replace(self.split, schema=Schema(columns=columns, interact=schema.interact)))

    def with_features(self, length_scale: float) -> Problem:
        """The rows on knots, with random features of all columns beside them."""
        return replace(self.on_knots, features=RandomFeatures(self.encoder, length_scale))

    def codes(self, parts: int) -> Codes:
        """A number as one of equal parts of its column's scale; a category as its level.

        A cell of no level, missing or not listed, has the code 0 of its own, or counts as the first of two levels.
        """
        columns = self.split.schema.columns
        train, test = (
            np.column_stack([_codes(column, rows, parts) for column in columns])
            for rows in (self.split.X_train, self.split.X_test)
        )
        levels = [isinstance(column, CategoryColumn) for column in columns]
        sizes = [_n_codes(column, parts) for column in columns]
        return Codes(train, test, sizes, levels)


def _n_codes(column: Column, parts: int) -> int:
    if isinstance(column, NumberColumn):
        return parts
    (group,) = Encoder(Schema(columns=[column])).groups
    return 2 if group.size == 1 else group.size + 1


def _codes(column: Column, rows: pd.DataFrame, parts: int) -> Array:
    if isinstance(column, NumberColumn):
        stretched = column.stretched(np.clip(rows[column.name].to_numpy(dtype=float), column.low, column.high))
        return np.minimum((stretched + 1.0) * 0.5 * parts, parts - 1).astype(np.int64)
    encoded = Encoder(Schema(columns=[column])).transform(rows)
    # A category of two levels has one encoded column, of -1 and 1; others have a column for each level. No level is all 0.
    if encoded.shape[1] == 1:
        return (encoded[:, 0] > 0.0).astype(np.int64)
    return np.where(encoded.any(axis=1), encoded.argmax(axis=1) + 1, 0)


def _linked(schema: Schema) -> Schema:
    """The schema with the first level of a category for values that are not listed: so every row has exactly one level."""
    columns = [
        replace(column, other=column.categories[0]) if isinstance(column, CategoryColumn) else column
        for column in schema.columns
    ]
    return Schema(columns=columns, interact=schema.interact)


def _with_linked_categories(name: str) -> Split:
    split = load(name)
    return replace(split, schema=_linked(split.schema))


def _kdd() -> Split:
    """The rows and the schema of kdd_error.py."""
    frame = pd.read_parquet(folder() / "kddcup99_10percent.parquet")
    frame = frame.iloc[np.random.default_rng(1).permutation(len(frame))[:70_000]]
    labels = np.where(frame["label"] == "normal.", -1, 1)
    written = Schema.from_toml(Path(__file__).parents[1] / "kddcup99.toml")
    schema = replace(written, target=None)
    train, test = slice(0, 56_000), slice(56_000, None)
    return Split(schema, frame[train], labels[train], frame[test], labels[test])


def _covertype() -> Split:
    """60,000 rows. Forty columns of zeros and ones are one category, the soil, and four another, the wilderness."""
    split = load("covertype")
    numbers = [name for name in split.X_train.columns if not name.startswith(("Soil_Type", "Wilderness_Area"))]
    described = load("covertype").schema.columns
    columns = {column.name: column for column in described if column.name in numbers}
    more = Schema(
        columns={
            kind: {"categories": [f"{kind}{number}" for number in range(1, count + 1)]}
            for kind, count in (("Wilderness_Area", 4), ("Soil_Type", 40))
        }
    )

    def folded(frame: pd.DataFrame) -> pd.DataFrame:
        result = frame[numbers].copy()
        for kind in ("Wilderness_Area", "Soil_Type"):
            levels = [name for name in frame.columns if name.startswith(kind)]
            result[kind] = np.array(levels)[frame[levels].to_numpy().argmax(axis=1)]
        return result

    schema = _linked(Schema(columns=(*columns.values(), *more.columns)))
    train, test = slice(0, 42_000), slice(0, 18_000)
    return Split(schema, folded(split.X_train[train]), split.y_train[train], folded(split.X_test[test]), split.y_test[test])


def _of_60_000_rows(split: Split) -> Split:
    train, test = slice(0, 42_000), slice(0, 18_000)
    return Split(split.schema, split.X_train[train], split.y_train[train], split.X_test[test], split.y_test[test])


_SPLITS: dict[str, Callable[[], Split]] = {
    "adult": lambda: load("adult"),
    "bank": lambda: _with_linked_categories("bank"),
    "covertype": _covertype,
    "kddcup99": _kdd,
    "skin": lambda: _of_60_000_rows(load("skin")),
}
_HELD_OUT: dict[str, Callable[[], Split]] = {
    "bank-additional": lambda: _with_linked_categories("bank-additional"),
    "nltcs": lambda: load("nltcs"),
    "kddcup99-all": lambda: _of_60_000_rows(_with_linked_categories("kddcup99")),
}
NAMES = tuple(_SPLITS)
HELD_OUT = tuple(_HELD_OUT)
"""Data sets that had no part in the choice of the rules for knots and interactions: Bank marketing with economic
indicators, the National Long Term Care Survey, and KDD Cup 1999 with all of its columns."""


def problem(name: str) -> Problem:
    """One of NAMES or HELD_OUT."""
    return Problem(name, (_SPLITS | _HELD_OUT)[name]())


def small_adult() -> Problem:
    """A part of the data that comes with the package, to see in seconds that everything runs."""
    whole = load("adult")
    train, test = slice(0, 4000), slice(0, 2000)
    return Problem(
        "adult, 4000 rows",
        Split(whole.schema, whole.X_train[train], whole.y_train[train], whole.X_test[test], whole.y_test[test]),
    )
