"""How rows fall into the tables of an evaluation: integer sums that do not depend on the order of the rows.

What a row adds is a function of that row, of released models and of public numbers, to the bit.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from confide.data.checked_source import CheckedSource, RowsInMemory
from confide.evaluations.bernstein import products_of, shares_of
from confide.evaluations.layouts import (
    ERROR_DEGREE,
    LOSS_DEGREE,
    ClassPairTables,
    ClassTables,
    Layout,
    NumberPairTables,
    NumberTables,
    sizes_of,
)
from confide.evaluations.scorers import ScoredRows, Scorer, log_loss
from confide.privacy.tables import counted, spread
from confide.released_models.scores import LinearModel
from confide.types import Array, Indices

_ROWS_AT_ONCE = 2**15
"""So many rows are spread over cells at a time, because their shares take much memory."""
Sums = NDArray[np.int64]
"""All cells of all tables, one table after the other, in units of 2^-20 rows."""


@dataclass(frozen=True, slots=True)
class RowSums:
    """What rows add to the tables of an evaluation. It holds public facts alone, and can be sent to a worker.

    Attributes
    ----------
    layout : the tables
    scorers : the model, or both models of a comparison
    """

    layout: Layout
    scorers: tuple[Scorer, ...]

    def of_piece(self, memory: RowsInMemory) -> Sums:
        """The sums over one piece of rows, which all models read alike."""
        return self.of_scored([scorer.scored(memory) for scorer in self.scorers])

    def of_scored(self, scored: Sequence[ScoredRows]) -> Sums:
        """The sums over rows that each model has scored: the same rows in the same order."""
        sums = np.zeros(sum(sizes_of(self.layout)), dtype=np.int64)
        for start in range(0, scored[0].groups.size, _ROWS_AT_ONCE):
            parts = [each.part(start, start + _ROWS_AT_ONCE) for each in scored]
            sums += np.concatenate(self._tables(parts))
        return sums

    def of_sources(self, sources: Sequence[CheckedSource]) -> list[Sums]:
        """Each table over all rows. Several sources hold the same rows in the same order, each as one model reads them."""
        sizes = sizes_of(self.layout)
        if len(sources) == 1:
            sums = sources[0].sum_of_pieces(self.of_piece, sum(sizes))
        else:
            sums = np.zeros(sum(sizes), dtype=np.int64)
            streams = [_scored(scorer, source) for scorer, source in zip(self.scorers, sources, strict=True)]
            for parts in _side_by_side(streams):
                sums += self.of_scored(parts)
        return np.split(sums, np.cumsum(sizes)[:-1])

    def _tables(self, scored: Sequence[ScoredRows]) -> list[Sums]:
        if isinstance(self.layout, ClassTables):
            return _of_classes(self.layout, self.scorers[0], scored[0])
        if isinstance(self.layout, NumberTables):
            return _of_numbers(self.layout, self.scorers[0], scored[0])
        if isinstance(self.layout, ClassPairTables):
            return _of_class_pair(self.layout, self.scorers, scored)
        return _of_number_pair(self.layout, self.scorers, scored)


@dataclass(frozen=True, slots=True)
class ScoreHistogram:
    """How rows of two classes fall into bins of their score. It holds public facts alone, and can be sent to a worker.

    Attributes
    ----------
    scoring : the weights
    edges : (n_bins - 1,) the scores at which one bin ends and the next begins
    """

    scoring: LinearModel
    edges: Array

    def of_piece(self, memory: RowsInMemory) -> Sums:
        """Rows of a piece by cell: negative rows by bin, then positive ones."""
        n_bins = self.edges.size + 1
        # A score that equals an edge belongs to the bin below it, because a score of 0 predicts the first class.
        bins = np.searchsorted(self.edges, self.scoring.scores_alone(memory.blocks), side="left")
        return counted(bins + n_bins * (memory.labels > 0), 2 * n_bins)

    def of_sources(self, sources: Sequence[CheckedSource]) -> Sums:
        """The numbers of rows by cell, over all rows."""
        return sources[0].sum_of_pieces(self.of_piece, 2 * (self.edges.size + 1))


def _scored(scorer: Scorer, source: CheckedSource) -> Iterator[ScoredRows]:
    return (scorer.scored(memory) for memory in source.in_memory("scoring"))


def _side_by_side(streams: Sequence[Iterator[ScoredRows]]) -> Iterator[list[ScoredRows]]:
    """The same rows of several streams, however each is cut into pieces."""
    held: list[ScoredRows | None] = [None] * len(streams)
    while True:
        for place, stream in enumerate(streams):
            if held[place] is None:
                held[place] = next(stream, None)
        found = [each for each in held if each is not None]
        if len(found) < len(streams):
            return
        n_rows = min(each.groups.size for each in found)
        yield [each.part(0, n_rows) for each in found]
        held = [each.part(n_rows, each.groups.size) if each.groups.size > n_rows else None for each in found]


def _counted(cells: Indices, size: int) -> Sums:
    """Rows by cell, each one unit."""
    return spread(cells, np.ones((cells.size, 1)), size)


def _of_classes(layout: ClassTables, scorer: Scorer, rows: ScoredRows) -> list[Sums]:
    targets, predicted = _positions(rows), scorer.predicted(rows.scores)
    cells = (rows.groups * layout.n_classes + targets) * layout.n_classes + predicted
    tables = [_counted(cells, layout.n_groups * layout.n_classes**2)]
    if layout.clip is None and not layout.n_bins:
        return tables
    log_probabilities = scorer.log_probabilities(rows.scores)
    if layout.clip is not None:
        losses = log_loss(log_probabilities, targets) / layout.clip
        tables.append(spread(rows.groups, shares_of(losses, LOSS_DEGREE), layout.n_groups))
    if layout.n_bins:
        least = 1.0 / layout.n_classes
        chances = np.exp(-log_loss(log_probabilities, predicted))
        bins = _bins((chances - least) / (1.0 - least), layout.n_bins)
        tables.append(_counted(2 * bins + (predicted == targets), 2 * layout.n_bins))
    return tables


def _of_numbers(layout: NumberTables, scorer: Scorer, rows: ScoredRows) -> list[Sums]:
    predicted = scorer.numbers(rows.scores, layout.low, layout.high)
    targets = shares_of(_share(rows.targets, layout), ERROR_DEGREE)
    errors = shares_of(np.abs(rows.targets - predicted) / layout.clip, ERROR_DEGREE)
    tables = [spread(rows.groups, products_of(targets, errors), layout.n_groups)]
    if layout.n_bins:
        bins = _bins(_share(predicted, layout), layout.n_bins)
        tables.append(spread(bins, shares_of(_share(rows.targets, layout), LOSS_DEGREE), layout.n_bins))
    return tables


def _of_class_pair(layout: ClassPairTables, scorers: Sequence[Scorer], rows: Sequence[ScoredRows]) -> list[Sums]:
    targets = _positions(rows[0])
    right = [scorer.predicted(each.scores) == targets for scorer, each in zip(scorers, rows, strict=True)]
    outcome = np.where(right[0], np.where(right[1], 0, 1), np.where(right[1], 2, 3))
    cells = (rows[0].groups * layout.n_classes + targets) * 4 + outcome
    tables = [_counted(cells, layout.n_groups * layout.n_classes * 4)]
    if layout.clip is not None:
        losses = [
            np.minimum(log_loss(scorer.log_probabilities(each.scores), targets), layout.clip)
            for scorer, each in zip(scorers, rows, strict=True)
        ]
        difference = 0.5 + 0.5 * (losses[0] - losses[1]) / layout.largest_difference
        tables.append(spread(rows[0].groups, shares_of(difference, LOSS_DEGREE), layout.n_groups))
    return tables


def _of_number_pair(layout: NumberPairTables, scorers: Sequence[Scorer], rows: Sequence[ScoredRows]) -> list[Sums]:
    targets = rows[0].targets
    errors = [
        np.minimum(np.abs(targets - scorer.numbers(each.scores, layout.low, layout.high)), layout.clip)
        for scorer, each in zip(scorers, rows, strict=True)
    ]
    squares = 0.5 + 0.5 * (errors[0] ** 2 - errors[1] ** 2) / layout.largest_of_squares
    sizes = 0.5 + 0.5 * (errors[0] - errors[1]) / layout.largest_difference
    shares = products_of(shares_of(_share(targets, layout), ERROR_DEGREE), shares_of(squares, LOSS_DEGREE))
    return [
        spread(rows[0].groups, shares, layout.n_groups),
        spread(rows[0].groups, shares_of(sizes, LOSS_DEGREE), layout.n_groups),
    ]


def _positions(rows: ScoredRows) -> Indices:
    return rows.targets.astype(np.intp)


def _share(values: Array | Indices, layout: NumberTables | NumberPairTables) -> Array:
    """Numbers of the target as parts of its range."""
    return np.asarray((values - layout.low) / (layout.high - layout.low), dtype=np.float64)


def _bins(shares: Array, n_bins: int) -> Indices:
    """The bin of each number between 0 and 1, (n,). A missing number lies in the first."""
    places = np.nan_to_num(n_bins * shares, nan=0.0, posinf=n_bins, neginf=0.0)
    return np.clip(np.floor(places), 0, n_bins - 1).astype(np.intp)
