"""The sum of rows as the gradient of a loss."""

from __future__ import annotations

import numpy as np

from confide.erm.linear_sums import SumOfRows
from confide.erm.row_bounds import BallBound
from confide.erm.row_sums import RowSum


def test_the_gradient_is_the_sum_of_clipped_rows_and_of_their_weights():
    """At any weights, whatever the labels are; the constant counts."""
    rng = np.random.default_rng(0)
    rows, counts = rng.normal(size=(50, 3)), rng.uniform(0.0, 4.0, 50)
    row_sum = RowSum(SumOfRows(), BallBound(1.0), 0.5, 2, 2.0)
    totals = row_sum.start(1, 3)
    row_sum.add_block(totals, rows, rng.choice([-1, 1], size=50), rng.normal(size=(1, 4)), counts)
    capped = np.minimum(counts, 2.0)
    expected = capped @ np.hstack([BallBound(1.0).clip(rows.copy()), np.full((50, 1), 0.5)])
    np.testing.assert_allclose(totals.gradient[0], expected, rtol=1e-12)
    assert not totals.hessian.any()


def test_its_value_is_the_sum_of_scores():
    """It is linear, so its constants are those of a line."""
    rows, weights = np.eye(3), np.array([[0.1, 0.2, 0.4]])
    totals = RowSum(SumOfRows(), BallBound(2.0), 0.0, 0).start(1, 3)
    RowSum(SumOfRows(), BallBound(2.0), 0.0, 0).add_block(totals, rows, np.ones(3), weights)
    np.testing.assert_allclose(totals.value, 0.7)
    loss = SumOfRows()
    assert (loss.constants.lipschitz, loss.constants.smoothness, loss.constants.trace) == (1.0, 0.0, 0.0)
    assert not loss.constants.curvature_at_slope(np.ones(2)).any()


def test_nothing_is_claimed_of_the_sum_of_rows():
    """It rises, is no loss of one sign, and is computed without rounding; slopes of 1 and no curvature."""
    loss = SumOfRows()
    flags = (
        loss.constants.monotone,
        loss.constants.by_length,
        loss.constants.tapered,
        loss.constants.self_concordant,
        loss.constants.separable,
    )
    assert flags == (False, False, False, False, True)
    assert (loss.constants.name, loss.constants.value_at_zero, loss.constants.rounding, loss.constants.rank) == (
        "sum of rows",
        0.0,
        0.0,
        1,
    )
    scores = np.array([[3.0, -2.0]])
    given = [loss.of_scores(scores, np.ones(1), order) for order in (0, 1, 2)]
    assert given[0].value.tolist() == scores.tolist()
    assert [each.slope is None for each in given] == [True, False, False]
    assert [each.curvature is None for each in given] == [True, True, False]
    assert (given[1].slope.tolist(), given[2].curvature.tolist()) == ([[1.0, 1.0]], [[0.0, 0.0]])
