"""How far the means that a released model predicts may lie from those of the population's model, row by row.

A score is a linear combination of the coefficients, so its error is known as theirs are (`intervals.py`). A mean that rises
with one score has the interval of the score, carried over. The probability of one class among several depends on all
scores. Its log-odds are taken to be linear in them near the released scores, and the ends are carried over.

There are many rows, so quantiles are found faster here than for coefficients. The noise on a score is taken to be normal
with a random variance of a gamma law, whose shape follows from the fourth moment of the noise. A coordinate of Laplace noise
in a ball has exactly this law, and Gaussian noise is the limit of a constant variance.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache

import numpy as np
from scipy.special import gammaincinv, ndtr, ndtri

from confide.array_types import Array
from confide.inference.intervals import JointUncertainty, checked_level

SCORES_AT_ONCE = 1024
"""So many scores of rows are treated together. Each needs 4,000 draws of the noise."""
_MOST_SHAPES, _N_VARIANCES = 200, 64
_N_BISECTIONS = 30


def ends_of_scores(uncertainty: JointUncertainty, level: float) -> Array:
    """(m, 2): intervals of m scores, each by itself."""
    return _ends(uncertainty.estimates, uncertainty.sampling_error, uncertainty.privacy_errors, level)


def scores_of(uncertainties: Sequence[JointUncertainty]) -> Array:
    """(m, o): the estimated scores of m rows."""
    return np.column_stack([uncertainty.estimates for uncertainty in uncertainties])


def ends_of_log_odds(
    uncertainties: Sequence[JointUncertainty], log_odds: Array, derivatives: Array, *, depend: bool, level: float
) -> Array:
    """(m, o, 2): intervals of the log-odds of each class against all others, for each of m rows.

    Parameters
    ----------
    found : for each of o scores, the errors of the scores of m rows
    log_odds : (m, o)
    derivatives : (m, o, o), of the log-odds of one class (second axis) in each score (third axis)
    depend : whether it is known how the sampling errors of different scores depend on each other. Otherwise their standard
        deviations are added up, which is the most that they can amount to
    level : of each interval by itself
    """
    answer = np.empty((*log_odds.shape, 2))
    if not all(np.isfinite(uncertainty.sampling_error).all() for uncertainty in uncertainties):
        answer[..., 0], answer[..., 1] = -math.inf, math.inf
        return answer
    for place in range(log_odds.shape[1]):
        slopes = derivatives[:, place].T
        by_score = list(zip(slopes, uncertainties, strict=True))
        if depend:
            sampling = np.linalg.norm(
                np.sum([slope * uncertainty.sampling_root for slope, uncertainty in by_score], axis=0), axis=0
            )
        else:
            sampling = np.sum([np.abs(slope) * uncertainty.sampling_error for slope, uncertainty in by_score], axis=0)
        noise = np.sum([slope * uncertainty.privacy_errors for slope, uncertainty in by_score], axis=0)
        answer[:, place] = _ends(log_odds[:, place], sampling, noise, level)
    return answer


def _ends(estimates: Array, sampling: Array, noise: Array, level: float) -> Array:
    """(m, 2): ends of intervals about estimates (m,), from sampling errors (m,) and draws (draws, m) of the noise."""
    margins = _margins(sampling, noise, level)
    return np.column_stack([estimates - margins, estimates + margins])


def _margins(sampling: Array, noise: Array, level: float) -> Array:
    """(m,): distances that errors do not exceed with this probability."""
    quantile = float(ndtri(0.5 + 0.5 * checked_level(level)))
    is_known = np.isfinite(sampling)
    if not len(noise) or not is_known.any():
        return np.where(is_known, quantile * sampling, np.inf)
    squares = noise[:, is_known] ** 2
    variances = np.mean(squares, axis=0)
    excess = np.mean(squares**2, axis=0) / (3.0 * np.maximum(variances, np.finfo(float).tiny) ** 2) - 1.0
    # No noise of this library has heavier tails than the law of Laplace in one dimension, whose excess is 1.
    places = np.rint(_MOST_SHAPES * np.clip(excess, 0.0, 1.0)).astype(int)
    deviations = np.sqrt(sampling[is_known, None] ** 2 + variances[:, None] * _random_variances()[places])
    low, high = np.zeros(len(variances)), quantile * deviations[:, -1]
    for _ in range(_N_BISECTIONS):
        middle = 0.5 * (low + high)
        enough = np.mean(2.0 * ndtr(middle[:, None] / deviations) - 1.0, axis=1) >= level
        low, high = np.where(enough, low, middle), np.where(enough, middle, high)
    margins = np.full(len(sampling), np.inf)
    margins[is_known] = high
    return margins


@lru_cache(maxsize=1)
def _random_variances() -> Array:
    """(shapes, variances): equally probable variances of mean 1 by gamma laws, in rising order.

    The excess of the fourth moment of the noise over that of a normal law, in units of the latter, is the variance of these
    variances. It runs from 0 to 1.
    """
    chances = (np.arange(_N_VARIANCES) + 0.5) / _N_VARIANCES
    mixtures = [np.ones(_N_VARIANCES)]
    for place in range(1, _MOST_SHAPES + 1):
        nodes = gammaincinv(_MOST_SHAPES / place, chances)
        mixtures.append(nodes / nodes.mean())
    return np.array(mixtures)
