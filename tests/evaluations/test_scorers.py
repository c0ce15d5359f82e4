"""Scores for evaluations: each loss depends on its own row alone, to the bit, and is that of the model."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest

import confide
from confide import Schema
from confide.data.arrays import ArrayBlocks, MemorySource
from confide.estimators.planned_evaluation import planned_evaluation
from confide.evaluations.scorers import log_loss
from confide.features.columns import CategoryColumn
from confide.features.labels import targets_at
from confide.privacy.budgets import PureDP
from tests.evaluations.examples import classifier, numbers, regressor, three_classes


def scorer_of(model, **more):
    return planned_evaluation(model, PureDP(1.0), **more).scorers[0]


@pytest.mark.parametrize("multiclass", ["softmax", "one-vs-rest"])
def test_log_probabilities_are_those_of_the_model(multiclass):
    model = classifier(multiclass=multiclass) if multiclass != "softmax" else classifier()
    X, y = three_classes(500, 1)
    scorer = scorer_of(model)
    scored = scorer.scored(MemorySource(ArrayBlocks(X), targets_at(y, 3)))
    np.testing.assert_allclose(scorer.log_probabilities(scored.scores), model.predict_log_proba(X), atol=1e-12)
    np.testing.assert_array_equal(scorer.predicted(scored.scores), model.predict(X))
    losses = log_loss(scorer.log_probabilities(scored.scores), scored.targets)
    np.testing.assert_allclose(losses, -model.predict_log_proba(X)[np.arange(500), y], atol=1e-12)


def test_the_loss_of_a_row_is_the_same_alone_and_among_others():
    """To the bit, in a table of one row and in tables that are sorted again."""
    X, y = three_classes(700, 2)
    scorer = scorer_of(classifier())

    def losses(which):
        scored = scorer.scored(MemorySource(ArrayBlocks(X[which]), targets_at(y[which], 3)))
        return log_loss(scorer.log_probabilities(scored.scores), scored.targets)

    whole, order = losses(np.arange(700)), np.random.default_rng(0).permutation(700)
    np.testing.assert_array_equal(losses(order), whole[order])
    for row in (0, 350, 699):
        assert losses(np.array([row]))[0] == whole[row]


def test_numbers_are_clipped_to_the_range_of_the_target():
    X, y = numbers(300, 3)
    model = regressor()
    scorer = scorer_of(model)
    scored = scorer.scored(MemorySource(ArrayBlocks(X), y))
    np.testing.assert_allclose(scorer.numbers(scored.scores, -1.0, 1.0), model.predict(X), atol=1e-12)
    assert np.abs(scorer.numbers(scored.scores, -0.1, 0.1)).max() == 0.1
    counts = np.random.default_rng(0).poisson(np.exp(X[:, 0]))
    poisson = confide.PoissonRegressor(math.inf, target_bound=6.0).fit(X, counts)
    scorer = scorer_of(poisson)
    scored = scorer.scored(MemorySource(ArrayBlocks(X), counts.astype(float)))
    np.testing.assert_allclose(scorer.numbers(scored.scores, 0.0, 6.0), np.clip(poisson.predict(X), 0.0, 6.0), atol=1e-12)


def test_groups_are_levels_of_a_column_whether_or_not_the_model_knows_it():
    """A category that is not listed has no level, and belongs to the last group. Scores do not change."""
    X, y = three_classes(400, 4)
    names = np.array(["a", "b", "c"])[np.arange(400) % 3]
    frame = pd.DataFrame(X, columns=["u", "v", "w"]).assign(part=names)
    bounds = {name: {"low": -1.0, "high": 1.0} for name in "uvw"}
    target = {"column": "y", "classes": [0, 1, 2]}
    without = Schema(columns=bounds, target=target)
    known = Schema(columns={"u": bounds["u"], "part": {"categories": ["a", "b"]}, "v": bounds["v"]}, target=target)
    for schema, groups in ((without, CategoryColumn("part", ("a", "b"))), (known, "part")):
        model = confide.LogisticRegression(math.inf, schema=schema).fit(frame, y)
        scorer = scorer_of(model, groups=groups)
        codes = scorer.read_by.read(frame)
        from confide.data.frames import EncodedBlocks

        scored = scorer.scored(MemorySource(EncodedBlocks(scorer.read_by, codes), targets_at(y, 3)))
        np.testing.assert_array_equal(scored.groups, np.arange(400) % 3)
        np.testing.assert_allclose(scored.scores, model.decision_function(frame), atol=1e-12)
        assert scorer.reads_more == (schema is without)
