"""Ridges that follow the noise on each column: from its shape alone, and where they were compared alone."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from confide import AdditiveClassifier, ApproxDP, HuberRegressor, LogisticRegression, PureDP, Schema
from confide.erm.class_losses import OneVsRest
from confide.erm.group_bounds import GroupBound
from confide.erm.losses import LogisticLoss
from confide.features.encoder import Encoder
from confide.privacy.bundles import Bundles, shapes_of_groups
from confide.privacy.noise import Entropy
from confide.privacy.objective_perturbation import ObjectivePerturbation
from confide.privacy.output_perturbation import OutputPerturbation
from confide.report.verification import failures_of_plan, plans_again
from confide.training import alpha
from confide.training.alpha import (
    SHARE_OF_BALANCED,
    factors_by_noise,
    noise_beside_ridges,
    ridges_of_curves,
    typical_norm_beside_ridges,
    usual_norm_of_curves,
    with_ridges_by_noise,
)
from tests.privacy.problems import problem, with_ridges

OBJECTIVE = ObjectivePerturbation()
LONG = GroupBound((30, 3, 1, 1), (1.0, 1.0, 1.0, 2.0), (True, True, False, False))
SCHEMA = Schema({
    "many": {"categories": [f"c{i}" for i in range(30)]},
    "few": {"categories": ["a", "b", "c"]},
    "x": {"low": 0.0, "high": 1.0, "knots": 0},
    "z": {"low": 0.0, "high": 1.0, "knots": 0},
})  # fmt: skip


def bundles():
    """The noise of these groups with a constant of 1."""
    shape = shapes_of_groups((*LONG.sizes, 1), (*LONG.scales, 1.0), (*LONG.linked, False))[-1]
    assert isinstance(shape, Bundles)
    return shape


def facts(**others):
    """Public facts of rows in these groups."""
    return problem(3000, LONG.n_features, row_bound=LONG, intercept=1.0, **others)


def test_factors_follow_the_size_of_drawn_noise():
    """Root mean squares of draws, to the power of three quarters, over the least, for each group; 15% off is noticed."""
    shape = bundles()
    sample = Entropy.seeded(3).laplace(shape, 4000, 1.0)
    parts = np.split(sample, np.cumsum(shape.sizes)[:-1], axis=1)
    sizes = np.array([np.sqrt(np.square(part).mean()) for part in parts])
    found = factors_by_noise(shape)
    np.testing.assert_allclose(found, (sizes / sizes.min()) ** 0.75, rtol=0.05)
    assert min(found) == 1.0
    assert max(found) > 2.0


def test_two_classes_in_bundles_under_a_pure_budget_have_ridges():
    """And nothing that was not compared has."""
    found = with_ridges_by_noise(facts(), OBJECTIVE, PureDP(0.1))
    assert found == with_ridges(facts(), factors_by_noise(bundles()))
    for given, mechanism, budget in (
        (facts(), OBJECTIVE, ApproxDP(0.1, 1e-6)),
        (facts(), OBJECTIVE, PureDP(math.inf)),
        (facts(), OutputPerturbation(), PureDP(0.1)),
        (facts(loss=OneVsRest(LogisticLoss(), 3)), OBJECTIVE, PureDP(0.1)),
        (replace(facts(), prior=(0.5,) * 36), OBJECTIVE, PureDP(0.1)),
        (problem(3000, 6), OBJECTIVE, PureDP(0.1)),
        (problem(3000, 2, row_bound=GroupBound((1, 1), (1.0, 1.0)), intercept=1.0), OBJECTIVE, PureDP(0.1)),
    ):
        assert with_ridges_by_noise(given, mechanism, budget) is given


def test_noise_and_typical_rows_count_over_the_roots_of_the_factors():
    """Noise as drawn; a typical row by hand: a level in full, a number by a third, and the constant."""
    plan = OBJECTIVE.plan(with_ridges_by_noise(facts(l2=400.0), OBJECTIVE, PureDP(0.5)), PureDP(0.5))
    factors = plan.problem.penalty.ridges(1.0)
    sample = np.vstack([plan.noise.draw(Entropy.seeded(seed)) for seed in range(2000)])
    assert noise_beside_ridges(plan) == pytest.approx(np.sqrt((sample**2 / factors).sum(axis=1).mean()), rel=0.04)
    ends = np.array([0, 30, 33, 34])
    squares = np.array([1.0, 1.0, 1.0 / 3.0, 4.0 / 3.0])
    expected = math.sqrt(7.0**2 * (squares / factors[ends]).sum() / squares.sum() + 1.0 / factors[-1])
    assert typical_norm_beside_ridges(plan.problem, 7.0) == pytest.approx(expected)


def test_the_automatic_ridge_is_balanced_beside_the_factors():
    """At four fifths of the balance for few rows; for more rows the curvature asks for it, by the rows beside the ridges."""
    plan = LogisticRegression(0.05, schema=SCHEMA).plan(4_000)
    factors = plan.problem.penalty.factors
    assert max(plan.problem.penalty.factors) > 2.0
    assert min(factors) == 1.0
    usual = math.sqrt(1.0 + 1.0 + 1.0 / 3.0 + 1.0 / 3.0)
    norm = typical_norm_beside_ridges(plan.problem, usual)
    balanced = alpha.balanced_l2(noise_beside_ridges(plan), 4_000, norm, on_weights=False)
    assert plan.l2 == pytest.approx(SHARE_OF_BALANCED * balanced, rel=0.02)
    assert SHARE_OF_BALANCED == 0.8
    more = LogisticRegression(0.05, schema=SCHEMA).plan(20_000)
    loss, longest = more.problem.loss_bounds, more.problem.curved_norm
    free = alpha.curvature_free_l2(more.budget, loss, longest, more.problem.neighbours)
    assert more.l2 == pytest.approx(0.7 * free)
    assert longest < 0.9 * more.problem.row_norm


CURVES = Schema({
    "many": {"categories": [f"c{i}" for i in range(30)]},
    "income": {"low": 0.0, "high": 99_999.0, "scale": "log", "knots": 6},
    "seconds": {"low": 0.0, "high": 999.0, "scale": "log", "knots": 6},
    "calls": {"low": 1.0, "high": 51.0, "scale": "log", "knots": 6},
    "days": {"low": 0.0, "high": 99_999.0, "scale": "log", "knots": 0},
    "age": {"low": 0.0, "high": 99_999.0, "knots": 6},
})  # fmt: skip


def test_curves_over_powers_of_ten_have_smaller_ridges():
    """By the square of two over their number, which is counted from the first doubling; lines and levels have whole ones."""
    assert ridges_of_curves(Encoder(CURVES)) == pytest.approx((1.0, 0.2, 4.0 / 9.0, 1.0, 1.0, 1.0), rel=1e-3)
    assert ridges_of_curves(Encoder(SCHEMA)) == ()
    plan = AdditiveClassifier(1.0, schema=CURVES).plan(50_000)
    plain = factors_by_noise(plan.noise.shape)
    times = np.array(plan.problem.penalty.factors) / plain
    np.testing.assert_allclose(times, times[0] * np.array([1.0, 0.2, 4.0 / 9.0, 1.0, 1.0, 1.0, 1.0]), rtol=1e-3)
    assert min(plan.problem.penalty.factors) == 1.0


def test_beside_smaller_ridges_of_curves_the_whole_balance_is_taken():
    """Not four fifths of it."""
    plan = AdditiveClassifier(0.05, schema=CURVES).plan(50_000)
    usual = usual_norm_of_curves(Encoder(CURVES))
    norm = typical_norm_beside_ridges(plan.problem, usual)
    margin = plan.problem.loss.constants.margin
    balanced = alpha.balanced_l2(noise_beside_ridges(plan), 50_000, norm, on_weights=False, margin=margin)
    assert plan.l2 > 1.1 * SHARE_OF_BALANCED * balanced
    assert plan.l2 == pytest.approx(balanced, rel=0.02)


def test_where_double_precision_raises_the_least_ridge_there_is_one_for_all():
    """With many rows or little noise; a given alpha, intervals and regressions have one ridge, too."""
    estimator = LogisticRegression(0.05, schema=SCHEMA)
    assert estimator.plan(20_000).problem.penalty.factors
    far = estimator.plan(30_000_000)
    assert not far.problem.penalty.factors
    for other in (
        LogisticRegression(0.05, schema=SCHEMA, alpha=0.01),
        HuberRegressor(0.05, schema=SCHEMA, target_bound=1.0),
    ):
        plan = other.plan(20_000)
        assert not plan.problem.penalty.factors
    for for_intervals in (False, True):
        rule = alpha.AlphaRule(is_automatic=True, score_size=None, is_raised=False, for_intervals=for_intervals)
        plan = alpha.plan_with_alpha(OBJECTIVE, facts(), PureDP(0.5), rule)
        assert bool(plan.problem.penalty.factors) == (not for_intervals)
    plain = LogisticRegression(0.05, schema=SCHEMA, alpha=0.01).plan(20_000)
    assert plain.alpha == 0.01


def test_where_several_ridges_have_no_plan_there_is_one_for_all(monkeypatch):
    """A plan that one ridge allows is not refused for several."""
    monkeypatch.setattr(alpha, "factors_by_noise", lambda shape, _: (1.0, *(2.0**20,) * (len(shape.sizes) - 1)))
    assert not LogisticRegression(4.0, schema=SCHEMA).plan(5_000_000).problem.penalty.factors


def test_plans_state_the_ridges_and_fits_have_them(tmp_path):
    """In words and in JSON; the released weights are near the minimiser with these ridges, and files keep the least."""
    rng = np.random.default_rng(0)
    n = 20_000
    X = pd.DataFrame({
        "many": rng.choice([f"c{i}" for i in range(30)], n), "few": rng.choice(["a", "b", "c"], n),
        "x": rng.uniform(size=n), "z": rng.uniform(size=n),
    })  # fmt: skip
    y = (X.x + 0.3 * rng.normal(size=n) > 0.5).astype(int)
    estimator = LogisticRegression(0.2, schema=SCHEMA, random_state=1)
    plan = estimator.plan(n)
    times = max(plan.problem.penalty.factors)
    assert f"up to {times:.3g} times as much" in str(plan)
    assert plan.to_dict()["largest_ridge_factor"] == times
    model = estimator.fit(X, y)
    assert model.alpha_ == plan.alpha
    assert model.score(X, y) > 0.7
    model.save(tmp_path / "model.json")
    import confide

    loaded = confide.load(tmp_path / "model.json")
    assert loaded.alpha_ == plan.alpha
    assert plans_again(loaded)[0].problem.penalty.factors == plan.problem.penalty.factors
    assert not failures_of_plan(loaded)
