"""Counts with an exposure: the loss is that of counts at a moved score, with the same constants but the value at zero."""

from __future__ import annotations

import math

import numpy as np
import pytest

from confide.array_types import COUNT_AND_EXPOSURE
from confide.compiled.gradient_sums import code_of
from confide.erm.target_losses import MeanLoss
from confide.errors import ParameterError

PLAIN, LOSS = MeanLoss(4.0, 0.5), MeanLoss(4.0, 0.5, (0.1, 1.9))
SCORES = np.unique(np.concatenate([np.linspace(-12.0, 12.0, 12_001), np.geomspace(1e-9, 1e3, 100)]))


def pairs(counts, exposures):
    """Counts beside their exposures, as a loss takes them."""
    made = np.empty(len(counts), COUNT_AND_EXPOSURE)
    made["count"], made["exposure"] = counts, exposures
    return made


def terms(loss, scores, count, exposure=None):
    """Value, slope and curvature at scores (n,) of rows that share a count and an exposure."""
    counts = np.full(len(scores), float(count))
    targets = counts if exposure is None else pairs(counts, exposure)
    value, derivatives = (loss.of_scores(scores[:, None], targets, order) for order in (0, 2))
    return value.value[:, 0], derivatives.slope[:, 0], derivatives.curvature[:, 0]


@pytest.mark.parametrize("exposure", [0.1, 0.7, 1.9])
@pytest.mark.parametrize("count", [0.0, 0.3, 1.0, 4.0])
def test_an_exposure_moves_the_score_by_its_logarithm(count, exposure):
    """Value, slope and curvature are those of a count without one, at another score."""
    scores = np.linspace(-9.0, 9.0, 1801)
    moved = terms(PLAIN, scores + math.log(exposure), count)
    for ours, theirs in zip(terms(LOSS, scores, count, exposure), moved, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-12)


def test_constants_are_reached_and_never_exceeded():
    """Slope, curvature, the curvature at each slope, and the value at score 0, the largest over counts and exposures."""
    slopes, curvatures, at_zero = [], [], []
    for exposure in (0.1, 0.5, 1.0, 1.9):
        for count in np.linspace(0.0, 4.0, 41):
            _, slope, curvature = terms(LOSS, SCORES, count, exposure)
            slopes.append(np.abs(slope))
            curvatures.append(curvature)
            at_zero.append(terms(LOSS, np.zeros(1), count, exposure)[0][0])
    slopes, curvatures, constants = np.array(slopes), np.array(curvatures), LOSS.constants
    assert 0.999 * constants.lipschitz <= slopes.max() <= constants.lipschitz * (1 + 1e-12)
    assert 0.98 * constants.smoothness <= curvatures.max() <= constants.smoothness * (1 + 1e-12)
    assert (curvatures <= constants.curvature_at_slope(slopes) * (1 + 1e-9)).all()
    np.testing.assert_allclose(max(at_zero), constants.value_at_zero, rtol=1e-9)
    plain = PLAIN.constants
    assert (plain.lipschitz, plain.smoothness, plain.trace) == (constants.lipschitz, constants.smoothness, constants.trace)
    assert plain.value_at_zero < 0.9 * constants.value_at_zero


def test_counts_and_exposures_are_clipped_inside_the_loss():
    """Whatever comes, the constants hold; what is not a number counts as the least."""
    given = pairs([-3.0, 9.0, np.nan, 2.0, 2.0, 2.0], [1.0, 1.0, 1.0, 0.0, np.inf, np.nan])
    meant = pairs([0.0, 4.0, 0.0, 2.0, 2.0, 2.0], [1.0, 1.0, 1.0, 0.1, 1.9, 0.1])
    scores = np.linspace(-2.0, 2.0, 6)[:, None]
    for order in (0, 2):
        for ours, theirs in zip(LOSS.of_scores(scores, given, order), LOSS.of_scores(scores, meant, order), strict=True):
            assert (ours is None) == (theirs is None)
            np.testing.assert_array_equal(ours, theirs)


def test_exposures_of_all_sizes_are_refused_and_the_kernel_knows_them():
    """The rounding is derived for exposures from 2^-40 to 2^40; the kernel gets them row by row."""
    for wrong in ((0.0, 1.0), (2.0**-41, 1.0), (1.0, 2.0**41), (2.0, 1.0), (math.nan, 1.0)):
        with pytest.raises(ParameterError, match="exposures must lie"):
            MeanLoss(4.0, 0.5, wrong)
    MeanLoss(4.0, 0.5, (2.0**-40, 2.0**40))
    assert code_of(PLAIN) is not None
    assert code_of(LOSS) == code_of(PLAIN)
