"""The closed list of sums: what it holds, and that trusted code sees rows by no other sum."""

from __future__ import annotations

from dataclasses import replace
from typing import get_args, get_type_hints

import numpy as np
import pytest

from confide.data.arrays import ArrayBlocks, MemorySource
from confide.erm.losses import LogisticLoss
from confide.erm.moment_sums import DirectionSum, Frame, FrameSum, LeastSquaresSum, MomentSum, SpreadSum, SumOverRows
from confide.erm.row_bounds import BallBound
from confide.erm.row_sums import RowSum
from confide.erm.source import RowSource


def test_trusted_code_sums_six_things_over_rows():
    """A loss, products of least squares, moments, sums along directions, and spreads, curvature and slopes for a frame.

    A seventh needs a proof page, and then this test.
    """
    assert set(get_args(SumOverRows)) == {RowSum, LeastSquaresSum, MomentSum, DirectionSum, FrameSum, SpreadSum}
    assert get_type_hints(RowSource.sum_over_rows)["row_sum"] == SumOverRows


LOSS_SUM = RowSum(LogisticLoss(), BallBound(1.0), 0.0, 2)
ALONG = DirectionSum(MomentSum(replace(LOSS_SUM, order=1), 0.1), ((0.5, -1.0), (1.0, 0.25)))
FRAMED = FrameSum(MomentSum(replace(LOSS_SUM, order=1), 0.1), Frame((0.1, 0.2), (0.5, 0.4), 0.0, 0.0, 1.5))
SPREADS = SpreadSum(BallBound(1.0), (1.0, 1.0))
SUMS = [LOSS_SUM, LeastSquaresSum(BallBound(1.0), 0.0, 1.0), MomentSum(LOSS_SUM, 0.1), ALONG, FRAMED, SPREADS]


@pytest.mark.parametrize("row_sum", SUMS, ids=lambda row_sum: type(row_sum).__name__)
def test_every_sum_clips_the_rows_that_it_is_given(row_sum):
    """A row far beyond the bound adds as much as the same row at the bound."""
    assert {type(each) for each in SUMS} == set(get_args(SumOverRows))
    labels = np.ones(1) if isinstance(row_sum, LeastSquaresSum) else np.ones(1, dtype=np.int8)

    def totals(row):
        source = MemorySource(ArrayBlocks(np.array([row])), labels)
        return source.sum_over_rows(row_sum, np.array([[0.3, -0.2]]))

    near, far = totals([0.6, 0.8]), totals([6e9, 8e9])
    for one, other in zip((near.gradient, near.hessian), (far.gradient, far.hessian), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-9)
        assert np.abs(other).max(initial=0.0) < 10.0
