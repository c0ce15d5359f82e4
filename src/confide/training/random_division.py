"""Rows divided at random: which row lies in which part is drawn in secret, anew for every fit.

A table may be sorted by what it holds. Then one changed row can move all others, and every part of a division by position
could change. A uniform draw gives each row its part, and its place within the part, independently of the order:
proofs/selection.md, section 2.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from confide.data.arrays import MemorySource
from confide.data.opened import FileRows
from confide.errors import InputTypeError
from confide.estimators.scores import LinearModel, favoured
from confide.estimators.streamed import FitRows, is_opened
from confide.features.labels import positions_of
from confide.privacy.noise import Entropy
from confide.types import Indices


def divided(sizes: Sequence[int], entropy: Entropy) -> list[Indices]:
    """Positions of the rows of each part, in the order drawn: uniform among all divisions into parts of these sizes."""
    return np.split(entropy.permutation(sum(sizes)), np.cumsum(sizes)[:-1])


def refuse_undivided(X: Any) -> None:
    """Refuse rows that cannot be divided here."""
    if is_opened(X) and not isinstance(X, FileRows):
        raise InputTypeError(
            "the rows are divided here, and those of a cluster or of other parties stay where they are. Give rows in "
            "memory, or files opened without a client."
        )


def mistakes(model: LinearModel, rows: FitRows) -> int:
    """How many labels of the rows the model does not predict."""
    n_classes = len(rows.domain)
    return sum(
        int(np.count_nonzero(favoured(model.scores_alone(memory.blocks)) != positions_of(memory.labels, n_classes)))
        for memory in _in_memory(rows.source)
    )


def _in_memory(source: Any) -> Iterator[MemorySource]:
    if isinstance(source, MemorySource):
        yield source
    else:
        yield from source.in_memory()
