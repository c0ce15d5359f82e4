"""The Hessian of a category with many levels is inverted from counts, without a dense column."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from confide.data.arrays import ArrayBlocks, EncodedBlocks, MemorySource
from confide.erm.coded_rows import CodedLayout, CodedRows
from confide.erm.losses import LogisticLoss
from confide.erm.objective import Objective
from confide.erm.row_bounds import BallBound
from confide.features.encoder import Encoder
from confide.features.schema import Schema
from confide.solvers.scaled_lbfgs import Arrow, ColumnScaledLimitedMemory, arrow_of, metric_at
from tests.privacy.problems import with_ridges


def problem(levels, n, weighted=False):
    """Rows of a category with many levels, one with few, a line and a curve."""
    rng = np.random.default_rng(2)
    names = [f"c{i}" for i in range(levels)]
    at, x = rng.integers(0, levels, n), rng.uniform(-1.0, 1.0, n)
    frame = pd.DataFrame({"many": np.array(names)[at], "few": rng.choice(["a", "b", "c"], n), "x": x, "z": -x})
    columns = {
        "few": {"categories": ["a", "b", "c"], "other": True},
        "many": {"categories": names},
        "x": {"low": -1, "high": 1},
        "z": {"low": -1, "high": 1, "knots": 2},
    }
    encoder = Encoder(Schema(columns=columns))
    labels = np.where(rng.normal(size=levels)[at] + x + rng.logistic(size=n) > 0, 1, -1).astype(np.int8)
    counts = rng.uniform(0.0, 3.0, n) if weighted else None
    source = MemorySource(EncodedBlocks(encoder, encoder.read(frame)), labels, counts)
    linear = rng.normal(size=(1, encoder.n_features + 1))
    return Objective(source, LogisticLoss(), encoder.row_bound, 0.8, 3.0, linear, largest_weight=2.0)


def layout_of(objective):
    """The layout of the coded rows of a problem."""
    return objective.source.blocks.block(0, 1).layout


@pytest.mark.parametrize("weighted", [False, True])
def test_the_metric_is_the_inverse_of_the_hessian(weighted):
    """Of all rows, with their weights, intercept and ridge."""
    objective = problem(60, 3000, weighted)
    weights = np.random.default_rng(3).normal(size=objective.linear.shape)
    arrow = Arrow.of(layout_of(objective))
    hessian = objective.evaluate(weights, order=2).hessian[0]
    gradients = np.random.default_rng(4).normal(size=(3, weights.shape[1]))
    found = metric_at(objective.lent(), arrow, weights)(gradients)
    np.testing.assert_allclose(found @ hessian, gradients, atol=1e-9)
    assert (arrow.n_levels, arrow.n_others) == (60, 9)


def test_there_is_no_arrow_where_rows_have_another_form():
    """Rows that are not coded, rows without a category, and too many columns beside it."""
    objective = problem(60, 3000)
    of_array = MemorySource(
        ArrayBlocks(objective.source.blocks.copied(np.arange(500)), rows_in_block=100, are_copies=True),
        objective.source.labels[:500],
    )
    assert arrow_of(objective, of_array) is None
    assert arrow_of(objective, objective.source) is not None
    assert Arrow.of(CodedLayout(4, (), ((0, 4),))) is None
    assert Arrow.of(CodedLayout(1000, ((0, 500), (500, 1000)), ())) is None
    assert Arrow.of(CodedLayout(1000, ((0, 700), (700, 1000)), ())).start == 0


def test_rows_that_a_bound_shortens_have_no_metric():
    """Rows that are clipped may be dense; and a Hessian that is no number is of no use."""
    objective = problem(60, 3000)
    arrow = Arrow.of(layout_of(objective))
    weights = np.zeros(objective.linear.shape)
    assert metric_at(replace(objective, row_bound=BallBound(0.5)), arrow, weights) is not None
    assert metric_at(objective, arrow, np.full_like(weights, np.nan)) is None


def test_many_levels_need_few_passes_and_no_dense_row(monkeypatch):
    """A sample of wide coded rows stays coded."""
    objective = problem(2100, 40_000)

    def refused(self):
        raise AssertionError("coded rows were made dense")

    passes, original = [], MemorySource.sum_over_rows

    def noted(self, row_sum, weights):
        passes.append(self.n_rows)
        return original(self, row_sum, weights)

    monkeypatch.setattr(CodedRows, "dense", refused)
    monkeypatch.setattr(MemorySource, "sum_over_rows", noted)
    solution = ColumnScaledLimitedMemory().solve(objective, np.zeros(objective.linear.shape), 1e-7)
    assert np.linalg.norm(replace(objective).evaluate(solution.weights, order=1).gradient) <= 1.01e-7
    assert passes.count(40_000) <= 25


def test_the_metric_knows_a_ridge_for_each_weight():
    """Of levels and of other columns."""
    objective = problem(60, 3000)
    factors = np.random.default_rng(6).uniform(1.0, 200.0, objective.linear.shape[1])
    objective = with_ridges(objective, factors)
    weights = np.random.default_rng(3).normal(size=objective.linear.shape)
    hessian = objective.evaluate(weights, order=2).hessian[0]
    gradients = np.random.default_rng(4).normal(size=(3, weights.shape[1]))
    found = metric_at(objective.lent(), Arrow.of(layout_of(objective)), weights)(gradients)
    np.testing.assert_allclose(found @ hessian, gradients, atol=1e-9)
