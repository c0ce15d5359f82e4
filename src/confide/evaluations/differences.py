"""How much two released models can differ in what they say of a row: public bounds, made of their weights alone.

They choose the scale of differences, and no guarantee rests on them: a larger difference is clipped.
"""

from __future__ import annotations

import math

import numpy as np

from confide.erm.group_bounds import GroupBound
from confide.evaluations.scorers import Scorer
from confide.types import Array


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
    if isinstance(bound, GroupBound):
        largest = np.minimum(largest, _by_groups(bound, np.abs(coef)))
    found = float((largest + shift).max())
    return found if found > 0.0 else math.inf


def _by_groups(bound: GroupBound, sizes: Array) -> Array:
    """The sum over groups of their scale times the largest weight."""
    starts = np.cumsum(bound.sizes) - np.array(bound.sizes)
    return np.asarray(np.maximum.reduceat(sizes, starts, axis=1) @ np.array(bound.scales))
