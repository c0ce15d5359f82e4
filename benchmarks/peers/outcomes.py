"""How well a model does on the test rows: its error, and the area under its ROC curve."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.stats import rankdata

from confide.array_types import Array


@dataclass(frozen=True)
class Outcome:
    """One model on the test rows.

    `error` is the share of rows on the wrong side of 0. `auc` is the probability that a row of class +1 has a higher score
    than one of class -1, where equal scores count one half; it is the area under the ROC curve.
    """

    error: float
    auc: float


def outcomes_of(scores: Array, labels: Array) -> list[Outcome]:
    """The outcome of each column of scores (n, k), for labels (n,) of -1 and +1."""
    positive = labels == 1
    n_positive, n_negative = int(positive.sum()), int((~positive).sum())
    wrong = np.mean((scores > 0.0) != positive[:, None], axis=0)
    # The statistic of Mann and Whitney: ranks are averages where scores are equal.
    ranks = rankdata(scores, axis=0)[positive].sum(axis=0)
    areas = (ranks - n_positive * (n_positive + 1) / 2) / (n_positive * n_negative)
    return [Outcome(float(error), float(area)) for error, area in zip(wrong, areas, strict=True)]
