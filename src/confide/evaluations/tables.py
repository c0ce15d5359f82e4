"""Which tables an evaluation releases, and how rows fall into them: decided before a row is used.

Every row lies in exactly one cell of each table, or spreads one unit over the cells of one block of it. Groups are the first
axis of a table, so a row touches no more cells where there are many groups.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from confide.array_types import Array, Indices
from confide.data.arrays import CheckedSource, EncodedBlocks, MappedBlocks, MemorySource
from confide.erm.group_bounds import groups_of
from confide.features.cells import positions_of
from confide.features.encoder import Encoder
from confide.features.forms import RowMap
from confide.models.model import Link
from confide.models.scores import LinearModel, favoured
from confide.privacy.tables import counted, spread

LOSS_DEGREE = 2
"""Losses enter with their squares, from which the sampling error of their mean is computed."""
ERROR_DEGREE = 4
"""Errors and targets enter with their fourth powers, from which the sampling error of mean squares is computed."""
RIGHT_AND_WRONG = 4
"""Of two models both are right, the first alone, the second alone, or neither."""


@dataclass(frozen=True, slots=True, eq=False)
class ScoreTable:
    """For a classifier of two classes: rows by class and bin of their score, in one table of whole rows.

    Attributes
    ----------
    edges : (n_bins - 1,) the scores at which one bin ends and the next begins
    shows_first : whether rates speak of the first class as the positive one
    """

    edges: Array
    shows_first: bool

    @property
    def shapes(self) -> tuple[tuple[int, ...], ...]:
        """The shape of the table."""
        return ((2, self.edges.size + 1),)

    def of_rows(self, _: Sequence[Scorer], scored: Sequence[ScoredRows]) -> list[Sums]:
        """What rows add to each cell: negative rows by bin, then positive ones."""
        n_bins, rows = self.edges.size + 1, scored[0]
        # A score that equals an edge belongs to the bin below it, because a score of 0 predicts the first class.
        bins = np.searchsorted(self.edges, rows.scores, side="left")
        return [counted(bins + n_bins * rows.targets.astype(np.intp), 2 * n_bins)]


@dataclass(frozen=True, slots=True)
class ClassTables:
    """For a classifier: rows by class and prediction, losses, and the calibration of the predicted class.

    Attributes
    ----------
    n_groups : int
    n_classes : int
    n_bins : int
        Bins of the probability of the predicted class, from 1 / n_classes to 1; 0 for no calibration.
    clip : float or None
        The largest log loss that counts; None for no log loss.
    """

    n_groups: int
    n_classes: int
    n_bins: int
    clip: float | None

    @property
    def shapes(self) -> tuple[tuple[int, ...], ...]:
        """The shape of each table."""
        confusion = (self.n_groups, self.n_classes, self.n_classes)
        losses = () if self.clip is None else ((self.n_groups, LOSS_DEGREE + 1),)
        return (confusion, *losses, *(((self.n_bins, 2),) if self.n_bins else ()))

    @property
    def range_of_bins(self) -> tuple[float, float]:
        """Between which numbers the bins lie."""
        return 1.0 / self.n_classes, 1.0

    @property
    def main_rate(self) -> tuple[str, Array, float]:
        """The rate that is named first, its weights in the first table, and its unit."""
        return "the accuracy", np.eye(self.n_classes), 1.0

    def of_rows(self, scorers: Sequence[Scorer], scored: Sequence[ScoredRows]) -> list[Sums]:
        """What rows add to each table; each model has scored the same rows in the same order."""
        rows, targets = scored[0], scored[0].targets.astype(np.intp)
        predicted = scorers[0].predicted(rows.scores)
        cells = (rows.groups * self.n_classes + targets) * self.n_classes + predicted
        tables = [_counted(cells, self.n_groups * self.n_classes**2)]
        if self.clip is None and not self.n_bins:
            return tables
        log_probabilities = scorers[0].log_probabilities(rows.scores)
        if self.clip is not None:
            losses = log_loss(log_probabilities, targets) / self.clip
            tables.append(spread(rows.groups, shares_of(losses, LOSS_DEGREE), self.n_groups))
        if self.n_bins:
            least = 1.0 / self.n_classes
            chances = np.exp(-log_loss(log_probabilities, predicted))
            bins = _bins((chances - least) / (1.0 - least), self.n_bins)
            tables.append(_counted(2 * bins + (predicted == targets), 2 * self.n_bins))
        return tables


@dataclass(frozen=True, slots=True)
class NumberTables:
    """For a regression: targets by absolute errors, and the calibration of predictions.

    Attributes
    ----------
    n_groups : int
    n_bins : int
        Bins of the prediction, from the low to the high end of the target; 0 for no calibration.
    low, high : float
        To which targets and predictions are clipped.
    clip : float
        The largest absolute error that counts.
    """

    n_groups: int
    n_bins: int
    low: float
    high: float
    clip: float

    @property
    def shapes(self) -> tuple[tuple[int, ...], ...]:
        """The shape of each table."""
        errors = (self.n_groups, ERROR_DEGREE + 1, ERROR_DEGREE + 1)
        return (errors, (self.n_bins, LOSS_DEGREE + 1)) if self.n_bins else (errors,)

    @property
    def range_of_bins(self) -> tuple[float, float]:
        """Between which numbers the bins lie."""
        return self.low, self.high

    @property
    def main_rate(self) -> tuple[str, Array, float]:
        """The rate that is named first, its weights in the first table, and its unit."""
        return "the mean absolute error", weights_of_power(1, ERROR_DEGREE), self.clip

    def of_rows(self, scorers: Sequence[Scorer], scored: Sequence[ScoredRows]) -> list[Sums]:
        """What rows add to each table; each model has scored the same rows in the same order."""
        rows = scored[0]
        predicted = scorers[0].numbers(rows.scores, self.low, self.high)
        targets = shares_of(_share(rows.targets, self), ERROR_DEGREE)
        errors = shares_of(np.abs(rows.targets - predicted) / self.clip, ERROR_DEGREE)
        tables = [spread(rows.groups, products_of(targets, errors), self.n_groups)]
        if self.n_bins:
            bins = _bins(_share(predicted, self), self.n_bins)
            tables.append(spread(bins, shares_of(_share(rows.targets, self), LOSS_DEGREE), self.n_bins))
        return tables


@dataclass(frozen=True, slots=True)
class ClassPairTables:
    """For two classifiers on the same rows: which of them are right, by class, and the difference of their losses.

    Attributes
    ----------
    n_groups : int
    n_classes : int
    clip : float or None
        The largest log loss that counts; None for no log loss.
    largest_difference : float
        The largest difference of two log losses that counts.
    """

    n_groups: int
    n_classes: int
    clip: float | None
    largest_difference: float = math.inf

    @property
    def shapes(self) -> tuple[tuple[int, ...], ...]:
        """The shape of each table."""
        right = (self.n_groups, self.n_classes, RIGHT_AND_WRONG)
        return (right,) if self.clip is None else (right, (self.n_groups, LOSS_DEGREE + 1))

    @property
    def main_rate(self) -> tuple[str, Array, float]:
        """The rate that is named first, its weights in the first table, and its unit."""
        return "the difference of accuracies", np.array([0.0, 1.0, -1.0, 0.0]), 1.0

    def of_rows(self, scorers: Sequence[Scorer], scored: Sequence[ScoredRows]) -> list[Sums]:
        """What rows add to each table; each model has scored the same rows in the same order."""
        targets = scored[0].targets.astype(np.intp)
        right = [scorer.predicted(scores.scores) == targets for scorer, scores in zip(scorers, scored, strict=True)]
        outcome = np.where(right[0], np.where(right[1], 0, 1), np.where(right[1], 2, 3))
        cells = (scored[0].groups * self.n_classes + targets) * 4 + outcome
        tables = [_counted(cells, self.n_groups * self.n_classes * 4)]
        if self.clip is not None:
            by_class = [scorer.log_probabilities(scores.scores) for scorer, scores in zip(scorers, scored, strict=True)]
            losses = [np.minimum(log_loss(logarithms, targets), self.clip) for logarithms in by_class]
            difference = 0.5 + 0.5 * (losses[0] - losses[1]) / self.largest_difference
            tables.append(spread(scored[0].groups, shares_of(difference, LOSS_DEGREE), self.n_groups))
        return tables


@dataclass(frozen=True, slots=True)
class NumberPairTables:
    """For two regressions on the same rows: the differences of squared and of absolute errors.

    Attributes
    ----------
    n_groups : int
    low, high : float
        To which targets and predictions are clipped.
    clip : float
        The largest absolute error that counts.
    largest_difference : float
        The largest difference of two predictions that counts.
    """

    n_groups: int
    low: float
    high: float
    clip: float
    largest_difference: float

    @property
    def largest_of_squares(self) -> float:
        """The largest difference of squared errors that counts."""
        return min(self.clip**2, 2.0 * self.clip * self.largest_difference)

    @property
    def shapes(self) -> tuple[tuple[int, ...], ...]:
        """The shape of each table."""
        return (self.n_groups, ERROR_DEGREE + 1, LOSS_DEGREE + 1), (self.n_groups, LOSS_DEGREE + 1)

    @property
    def main_rate(self) -> tuple[str, Array, float]:
        """The rate that is named first, its weights in the first table, and its unit."""
        weights = weights_of_polynomial((-1.0, 2.0), LOSS_DEGREE)
        return "the difference of mean squared errors", weights, self.largest_of_squares

    def of_rows(self, scorers: Sequence[Scorer], scored: Sequence[ScoredRows]) -> list[Sums]:
        """What rows add to each table; each model has scored the same rows in the same order."""
        targets = scored[0].targets
        pairs = zip(scorers, scored, strict=True)
        errors = [np.minimum(np.abs(targets - one.numbers(s.scores, self.low, self.high)), self.clip) for one, s in pairs]
        squares = 0.5 + 0.5 * (errors[0] ** 2 - errors[1] ** 2) / self.largest_of_squares
        sizes = 0.5 + 0.5 * (errors[0] - errors[1]) / self.largest_difference
        shares = products_of(shares_of(_share(targets, self), ERROR_DEGREE), shares_of(squares, LOSS_DEGREE))
        groups, sizes = scored[0].groups, shares_of(sizes, LOSS_DEGREE)
        return [spread(groups, shares, self.n_groups), spread(groups, sizes, self.n_groups)]


Layout = ClassTables | NumberTables | ClassPairTables | NumberPairTables


def sizes_of(layout: Layout | ScoreTable) -> tuple[int, ...]:
    """The number of cells of each table."""
    return tuple(math.prod(shape) for shape in layout.shapes)


# One released model as it scores rows for an evaluation: each score, loss and prediction depends on its own row alone.


@dataclass(frozen=True, slots=True)
class ScoredRows:
    """Some rows with what one model says of them. It holds data.

    Attributes
    ----------
    targets : (n,) positions of the true classes, or numbers
    scores : (n,), or (n, classes) for three classes or more
    groups : (n,) the group of each row; zeros where there are no groups
    """

    targets: Array | Indices
    scores: Array
    groups: Indices

    def part(self, start: int, stop: int) -> ScoredRows:
        """Some of the rows."""
        return ScoredRows(self.targets[start:stop], self.scores[start:stop], self.groups[start:stop])


@dataclass(frozen=True, slots=True)
class Scorer:
    """A model, and how its rows are read. It holds public facts alone, and can be sent to a worker.

    Attributes
    ----------
    scoring : the weights
    link : what scores say
    n_classes : number of classes; 0 for a regression
    encoder : the encoder of the model's schema, or None
    read_by : the encoder by which rows are read: that one, or one of the same schema with the column of groups besides
    row_map : the public map that is applied to encoded rows where `read_by` is another encoder, or None
    groups : the column of groups, or None
    n_groups : number of groups; 1 without such a column
    """

    scoring: LinearModel
    link: Link
    n_classes: int
    encoder: Encoder | None
    read_by: Encoder | None
    row_map: RowMap | None
    groups: str | None
    n_groups: int

    def scored(self, memory: MemorySource) -> ScoredRows:
        """Score the rows of one piece."""
        scores = self.scoring.scores_alone(self._own(memory.blocks))
        labels: Any = memory.labels
        if labels.dtype.names is not None:  # the mean of a count is its exposure times the exponential of the score
            labels, scores = labels["count"], scores + np.log(labels["exposure"])
        targets = positions_of(labels, self.n_classes) if self.n_classes else np.asarray(labels, dtype=np.float64)
        return ScoredRows(targets, scores, self._groups(memory.blocks))

    @property
    def reads_more(self) -> bool:
        """Whether rows are read with the column of groups, which the model does not know."""
        return self.read_by is not self.encoder

    def _own(self, blocks: Any) -> Any:
        """The rows as the model takes them."""
        if not self.reads_more or self.encoder is None or self.read_by is None or self.groups is None:
            return blocks
        own = EncodedBlocks(self.encoder, self.read_by.without(blocks.codes, self.groups, self.encoder.schema))
        return own if self.row_map is None else MappedBlocks(own, self.row_map)

    def _groups(self, blocks: Any) -> Indices:
        """The group of each row. A category without a level belongs to the last one, which is there for it."""
        if self.groups is None or self.read_by is None:
            return np.zeros(blocks.n_rows, dtype=np.intp)
        encoded: Any = blocks.blocks if isinstance(blocks, MappedBlocks) else blocks
        levels = self.read_by.levels(encoded.codes, self.groups)
        return np.where(levels < 0, self.n_groups - 1, levels).astype(np.intp)

    def predicted(self, scores: Array) -> Indices:
        """The position of the class that is predicted, (n,)."""
        return np.asarray(favoured(scores), dtype=np.intp)

    def log_probabilities(self, scores: Array) -> Array:
        """The logarithm of the probability of each class, (n, classes), each entry from the scores of its own row.

        Sums over classes are made class by class: a sum along an axis may be made in another order for other rows.
        """
        if scores.ndim == 1:
            return self.link.log_probabilities(scores)
        favour = np.asarray(self.link.log_favour(scores)) if self.link.kind == "one-vs-rest" else scores
        largest = favour[:, 0].copy()
        for column in favour.T:
            np.maximum(largest, column, out=largest)
        total = np.zeros(len(favour))
        for column in favour.T:
            total += np.exp(column - largest)
        return favour - (largest + np.log(total))[:, None]

    def numbers(self, scores: Array, low: float, high: float) -> Array:
        """The predicted numbers (n,), clipped to the range of the target."""
        with np.errstate(over="ignore"):
            predicted = np.exp(scores) if self.link.kind == "exponential" else scores
        return np.clip(predicted, low, high)


def log_loss(log_probabilities: Array, targets: Indices) -> Array:
    """Minus the logarithm of the probability of the true class, (n,)."""
    return -log_probabilities[np.arange(targets.size), targets]


# Numbers between 0 and 1 as shares of a few cells, whose sums give means, squares and further powers.
#
# The shares of a number x are those of the binomial law: the chance of j successes in d trials, each with chance x (the
# polynomials of Bernstein). They are not negative and add up to 1, so a row that is spread over cells changes a release no
# more than one that lies in a single cell. Every polynomial of degree at most d in x is a weighted sum of its shares.


def shares_of(values: Array, degree: int) -> Array:
    """The shares (n, degree + 1) of numbers (n,), which are clipped to [0, 1]. A missing number counts as 0.

    Each entry is made of its own number alone, by operations that NumPy applies to each entry by itself.
    """
    x = np.clip(np.where(np.isnan(values), 0.0, values), 0.0, 1.0)
    shares = np.ones((degree + 1, x.size))
    for trial in range(1, degree + 1):
        # After each trial the number of successes is that of before, or one more.
        before = shares[:trial].copy()
        shares[:trial] = (1.0 - x) * before
        shares[trial] = 0.0
        shares[1 : trial + 1] += x * before
    return np.ascontiguousarray(shares.T)


def products_of(first: Array, second: Array) -> Array:
    """The shares (n, a * b) of pairs of numbers, from those of each: (n, a) and (n, b). The second runs fastest."""
    return (first[:, :, None] * second[:, None, :]).reshape(len(first), -1)


def weights_of_power(power: int, degree: int) -> Array:
    """The weights (degree + 1,) with which the shares of x add up to x^power; power is at most degree."""
    return np.array([math.comb(j, power) / math.comb(degree, power) for j in range(degree + 1)])


def weights_of_polynomial(coefficients: tuple[float, ...], degree: int) -> Array:
    """The same for a polynomial: its coefficients, from that of x^0 on."""
    powers = [coefficient * weights_of_power(power, degree) for power, coefficient in enumerate(coefficients)]
    return np.asarray(np.sum(powers, axis=0))


# How rows fall into the tables of an evaluation: integer sums that do not depend on the order of the rows.
#
# What a row adds is a function of that row, of released models and of public numbers, to the bit.

_ROWS_AT_ONCE = 2**15
"""So many rows are spread over cells at a time, because their shares take much memory."""
Sums = NDArray[np.int64]
"""All cells of all tables, one table after the other, in units of 2^-20 rows; those of `ScoreTable` in rows."""


@dataclass(frozen=True, slots=True)
class RowSums:
    """What rows add to the tables of an evaluation. It holds public facts alone, and can be sent to a worker.

    Attributes
    ----------
    layout : the tables
    scorers : the model, or both models of a comparison
    """

    layout: Layout | ScoreTable
    scorers: tuple[Scorer, ...]

    def of_piece(self, memory: MemorySource) -> Sums:
        """The sums over one piece of rows, which all models read alike."""
        return self.of_scored([scorer.scored(memory) for scorer in self.scorers])

    def of_scored(self, scored: Sequence[ScoredRows]) -> Sums:
        """The sums over rows that each model has scored: the same rows in the same order."""
        sums = np.zeros(sum(sizes_of(self.layout)), dtype=np.int64)
        for start in range(0, scored[0].groups.size, _ROWS_AT_ONCE):
            parts = [stream.part(start, start + _ROWS_AT_ONCE) for stream in scored]
            sums += np.concatenate(self.layout.of_rows(self.scorers, parts))
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


def _scored(scorer: Scorer, source: CheckedSource) -> Iterator[ScoredRows]:
    return (scorer.scored(memory) for memory in source.in_memory("scoring"))


def _side_by_side(streams: Sequence[Iterator[ScoredRows]]) -> Iterator[list[ScoredRows]]:
    """The same rows of several streams, however each is cut into pieces."""
    held: list[ScoredRows | None] = [None] * len(streams)
    while True:
        for place, stream in enumerate(streams):
            if held[place] is None:
                held[place] = next(stream, None)
        blocks = [block for block in held if block is not None]
        if len(blocks) < len(streams):
            return
        n_rows = min(block.groups.size for block in blocks)
        yield [block.part(0, n_rows) for block in blocks]
        held = [block.part(n_rows, block.groups.size) if block.groups.size > n_rows else None for block in blocks]


def _counted(cells: Indices, size: int) -> Sums:
    """Rows by cell, each one unit."""
    return spread(cells, np.ones((cells.size, 1)), size)


def _share(values: Array | Indices, layout: NumberTables | NumberPairTables) -> Array:
    """Numbers of the target as parts of its range."""
    return np.asarray((values - layout.low) / (layout.high - layout.low), dtype=np.float64)


def _bins(shares: Array, n_bins: int) -> Indices:
    """The bin of each number between 0 and 1, (n,). A missing number lies in the first."""
    places = np.nan_to_num(n_bins * shares, nan=0.0, posinf=n_bins, neginf=0.0)
    return np.clip(np.floor(places), 0, n_bins - 1).astype(np.intp)


# How much two released models can differ in what they say of a row: public bounds, made of their weights alone.
#
# They choose the scale of differences, and no guarantee rests on them: a larger difference is clipped.


def largest_difference_of_losses(first: Scorer, second: Scorer, clip: float) -> float:
    """The largest difference of the log losses of a row, at most the clip."""
    scores = _largest_of_scores(first, second)
    if first.link != second.link or first.link.margin or first.link.kind not in ("logistic", "softmax"):
        return clip
    # The logistic loss has slope at most 1 in its score. That of several classes has -1 in the score of the true class, and
    # probabilities in all.
    return min(clip, scores if first.link.kind == "logistic" else 2.0 * scores)


def largest_difference_of_numbers(first: Scorer, second: Scorer, clip: float) -> float:
    """The largest difference of the clipped absolute errors of a row, at most the clip."""
    if first.link.kind != "identity" or second.link.kind != "identity":
        return clip
    return min(clip, _largest_of_scores(first, second))


def _largest_of_scores(first: Scorer, second: Scorer) -> float:
    """The largest difference of a score of a row that both models read and bound alike; infinite if they do not."""
    same = first.encoder == second.encoder and first.row_map == second.row_map
    bound = first.scoring.row_bound
    if not same or bound != second.scoring.row_bound or first.scoring.coef.shape != second.scoring.coef.shape:
        return math.inf
    coef = first.scoring.coef - second.scoring.coef
    shift = np.abs(first.scoring.intercept - second.scoring.intercept)
    largest = bound.l2_norm * np.linalg.norm(coef, axis=1)
    sizes, scales, _ = groups_of(bound)
    if sizes:
        # The sum over groups of their scale times the largest weight.
        starts = np.cumsum(sizes) - np.array(sizes)
        largest = np.minimum(largest, np.maximum.reduceat(np.abs(coef), starts, axis=1) @ np.array(scales))
    clip = float((largest + shift).max())
    return clip if clip > 0.0 else math.inf
