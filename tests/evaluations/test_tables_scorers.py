"""Scores for evaluations: each loss depends on its own row alone, to the bit, and is that of the model."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest

import confide
from confide import Schema
from confide.data.arrays import ArrayBlocks, MemorySource
from confide.erm.row_bounds import BallBound
from confide.estimators.evaluation import planned_evaluation
from confide.evaluations.tables import Scorer, log_loss
from confide.features.cells import targets_at
from confide.features.columns import CategoryColumn
from confide.models.model import Link
from confide.models.scores import LinearModel
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


@pytest.mark.parametrize("kind", ["softmax", "one-vs-rest"])
def test_losses_of_many_classes_are_added_up_class_by_class(kind):
    """A sum along an axis has another order for a single row than for many."""
    scores = np.asfortranarray(np.random.default_rng(7).normal(size=(300, 23)) * 3.0)
    weights = LinearModel(np.zeros((23, 2)), np.zeros(23), BallBound(1.0))
    scorer = Scorer(weights, Link(kind), 23, None, None, None, None, 1)
    whole = scorer.log_probabilities(scores)
    alone = np.vstack([scorer.log_probabilities(scores[row : row + 1]) for row in range(300)])
    np.testing.assert_array_equal(alone, whole)
    np.testing.assert_allclose(np.exp(whole).sum(axis=1), 1.0)


def test_scores_of_wide_rows_do_not_come_from_products_of_blocks():
    """Which add up the rows of a block in different orders, so that the place of a row would move its score by a bit."""
    rng = np.random.default_rng(6)
    X, y = rng.uniform(-0.2, 0.2, size=(401, 37)), rng.integers(0, 3, 401)
    model = confide.LogisticRegression(math.inf, classes=[0, 1, 2]).fit(X, y)
    scorer, labels = scorer_of(model), targets_at(y, 3)
    whole = scorer.scored(MemorySource(ArrayBlocks(X), labels)).scores
    alone = np.vstack([scorer.scored(MemorySource(ArrayBlocks(X[i : i + 1]), labels[i : i + 1])).scores for i in range(401)])
    np.testing.assert_array_equal(alone, whole)
    # The rows show it: as a product of matrices they have other bits.
    of_blocks = [scorer.scoring.scores(ArrayBlocks(X[i : i + 1])) for i in range(401)]
    assert (np.vstack(of_blocks) != scorer.scoring.scores(ArrayBlocks(X))).any()


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
        from confide.data.arrays import EncodedBlocks

        scored = scorer.scored(MemorySource(EncodedBlocks(scorer.read_by, codes), targets_at(y, 3)))
        np.testing.assert_array_equal(scored.groups, np.arange(400) % 3)
        np.testing.assert_allclose(scored.scores, model.decision_function(frame), atol=1e-12)
        assert scorer.reads_more == (schema is without)
