"""One released model as it scores rows for an evaluation: each score, loss and prediction depends on its own row alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from confide.data.checked_source import RowsInMemory
from confide.data.frames import EncodedBlocks
from confide.data.mapped import MappedBlocks
from confide.features.encoder import Encoder
from confide.features.labels import positions_of
from confide.features.public_maps import RowMap
from confide.released_models.links import Link
from confide.released_models.scores import LinearModel, favoured
from confide.types import Array, Indices


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

    def scored(self, memory: RowsInMemory) -> ScoredRows:
        """Score the rows of one piece."""
        scores = self.scoring.scores_alone(self._own(memory.blocks))
        labels = memory.labels
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
        normed: Array = favour - (largest + np.log(total))[:, None]
        return normed

    def numbers(self, scores: Array, low: float, high: float) -> Array:
        """The predicted numbers (n,), clipped to the range of the target."""
        with np.errstate(over="ignore"):
            predicted = np.exp(scores) if self.link.kind == "exponential" else scores
        return np.clip(predicted, low, high)


def log_loss(log_probabilities: Array, targets: Indices) -> Array:
    """Minus the logarithm of the probability of the true class, (n,)."""
    return -log_probabilities[np.arange(targets.size), targets]
