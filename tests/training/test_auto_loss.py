"""The threshold that "auto" stands for: from public facts alone, a share of the bound that falls with the noise."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from sklearn.metrics import d2_tweedie_score

from confide import AdditiveRegressor, ApproxDP, HuberRegressor, PoissonRegressor, PureDP, Ridge, Schema
from confide.erm.row_bounds import BallBound
from confide.erm.target_losses import MeanLoss, SquaredLoss
from confide.errors import ParameterError
from confide.privacy.budgets import ZCDP, Neighbours
from confide.training.auto_loss import (
    AIMS,
    SHARES,
    at_shares,
    least_noise,
    loss_at_noise,
    share_at,
    squared_losses,
)
from confide.training.auto_mechanism import plan_of_weights, problem_of
from confide.training.plan import make_plan
from confide.training.settings import ScoreLoss
from tests.training.examples import settings

BUDGETS = [PureDP(1.0), ApproxDP(1.0, 1e-6), ZCDP(0.1)]


def automatic(losses):
    """What an estimator minimises with these losses."""
    return replace(losses, score_size=1.0)


def count_losses(bound):
    """Those of counts within a bound."""
    return at_shares(bound, "counts", lambda threshold: MeanLoss(bound, threshold))


def chosen(thresholds, n_rows, n_features=10, **facts):
    """The threshold for so many rows."""
    found = loss_at_noise(settings(minimised=automatic(thresholds), intercept=1.0, **facts), n_features, n_rows)
    assert found.thresholds == ()
    return found.loss.threshold


@pytest.mark.parametrize(
    ("aim", "noise", "share"),
    [
        ("mean", 0.032, 0.09), ("mean", 0.001, 0.18), ("mean", 1e-3 / 32, 0.36), ("mean", 1e-9, 1.0), ("mean", 0.0, 1.0),
        ("robust", 0.032, 0.09), ("robust", 1e-3 / 32, 0.2), ("robust", 0.0, 0.2),
        ("counts", 0.032, 0.325), ("counts", 0.001, 0.65), ("counts", 1e-3 / 32, 1.0), ("counts", 0.0, 1.0),
        ("costs", 0.032, 0.125), ("costs", 0.001, 0.25), ("costs", 1e-3 / 32, 0.5), ("costs", 0.0, 1.0),
    ],
)  # fmt: skip
def test_the_share_falls_with_the_fifth_root_of_the_noise(aim, noise, share):
    """Up to the largest of the aim, which is taken without noise."""
    assert share_at(noise, aim) == pytest.approx(share)


def test_every_threshold_is_a_step_of_the_ladder_and_means_the_same_in_every_unit():
    """The nearest step in ratio; in units a million times as small the same share."""
    for n_rows in (200, 2_000, 20_000, 200_000, 10**9):
        for budget in BUDGETS:
            share = chosen(squared_losses(1.0, aim="mean"), n_rows, budget=budget)
            assert share in SHARES
            assert chosen(squared_losses(1e6, aim="mean"), n_rows, budget=budget) == pytest.approx(1e6 * share)
            problem = problem_of(settings(intercept=1.0, budget=budget), SquaredLoss(1.0, 0.2), 10, n_rows)
            wanted = share_at(least_noise(problem, budget), "mean")
            assert share == min(SHARES, key=lambda each, wanted=wanted: abs(math.log(each / wanted)))


def test_more_rows_and_larger_budgets_raise_the_threshold_and_more_columns_lower_it():
    """Noise is what it falls with."""
    losses = count_losses(100.0)
    of_rows = [chosen(losses, n_rows) for n_rows in (300, 3_000, 30_000, 10**8)]
    of_budgets = [chosen(losses, 3_000, budget=ApproxDP(epsilon, 1e-6)) for epsilon in (0.05, 0.5, 5.0, 5_000.0)]
    of_columns = [chosen(losses, 3_000, n_features) for n_features in (2, 20, 200, 2_000)]
    for rising in (of_rows, of_budgets, of_columns[::-1]):
        assert rising == sorted(rising)
        assert rising[-1] >= 2.0 * rising[0]


@pytest.mark.parametrize("neighbours", list(Neighbours))
@pytest.mark.parametrize("budget", BUDGETS, ids=lambda budget: budget.kind)
def test_the_noise_is_nearly_that_of_a_plan_with_a_large_ridge(budget, neighbours):
    """Within 20%, for which a ridge must be so large that the curvature costs nothing; concentrated budgets still pay it."""
    bounds = (50_000, 50_000) if neighbours is Neighbours.ADD_OR_REMOVE_ONE else None
    loss = ScoreLoss(SquaredLoss(1.0, 0.2), score_size=1.0)
    facts = {"minimised": loss, "budget": budget, "alpha": 10.0, "intercept": 1.0}
    given = settings(neighbours=neighbours, n_rows_bounds=bounds, **facts)
    plan = plan_of_weights(given, 10, None if bounds else 50_000)
    actual = plan.noise_norm * plan.l2 / (0.2 * plan.problem.row_norm * 50_000)
    least = least_noise(plan.problem, budget)
    assert least <= actual * (1.0 + 1e-9)
    assert actual < (12.0 if isinstance(budget, ZCDP) else 1.2) * least


def test_persons_with_several_rows_lower_it_and_weights_of_rows_do_not():
    """A person with nine rows brings nine times the noise. The unit of the weights does not matter."""
    losses = count_losses(1.0)
    assert chosen(losses, 20_000, rows_per_person=9) < chosen(losses, 20_000)
    assert chosen(losses, 20_000, largest_sample_weight=7.0) == chosen(losses, 20_000)


def test_without_privacy_it_is_the_largest_of_the_aim():
    """A fifth of the bound for Huber's loss, which stays robust, and all of it for counts."""
    assert HuberRegressor(math.inf, target_bound=50.0).plan(1000, 3).problem.loss.threshold == pytest.approx(10.0)
    assert PoissonRegressor(math.inf, target_bound=50.0).plan(1000, 3).problem.loss.threshold == 50.0


def test_a_threshold_that_was_given_stays():
    """The plan has the loss as it is."""
    given = settings(minimised=ScoreLoss(MeanLoss(20.0, 3.0), score_size=2.0))
    assert make_plan(given, 5, 1000).problem.loss == MeanLoss(20.0, 3.0)
    for model in (HuberRegressor, PoissonRegressor):
        assert model(1.0, target_bound=20.0, threshold=3.0).plan(1000, 5).problem.loss.threshold == 3.0


def test_the_losses_differ_in_their_threshold_alone_and_are_all_announced():
    """Whoever sums over rows agrees to each beforehand: `Settings.row_sums` has every loss that may be chosen."""
    for minimised in (squared_losses(3.0, aim="mean", by_length=True), count_losses(3.0)):
        losses = minimised.thresholds
        shares = [loss.threshold / 3.0 for loss in losses]
        assert shares == sorted(shares)
        assert shares == pytest.approx([share for share in SHARES if share <= AIMS[minimised.aim][1]])
        assert {replace(loss, threshold=1.0) for loss in losses} == {replace(losses[0], threshold=1.0)}
        facts = settings(minimised=automatic(minimised), row_bound=BallBound(1.0))
        announced = {row_sum.loss for row_sum in facts.row_sums(0)}
        assert announced >= set(losses)
        for n_rows in (200, 20_000, 10**9):
            assert loss_at_noise(facts, 5, n_rows).loss in announced


def test_an_unbounded_target_has_no_share():
    """So a number is asked for."""
    with pytest.raises(ParameterError, match="give a number"):
        squared_losses(math.inf, aim="robust")


def test_one_rule_serves_all_regressors():
    """With one column that is a line, the additive model has the threshold of the model of its loss."""
    schema = Schema(columns={"x": {"low": 0, "high": 1}, "z": {"low": 0, "high": 1}})
    facts = {"budget": ApproxDP(0.7, 1e-6), "schema": schema, "target_bound": 20.0}
    pairs = [
        (HuberRegressor(**facts), AdditiveRegressor(**facts, knots=0)),
        (Ridge(**facts, mechanism="objective"), AdditiveRegressor(**facts, knots=0, loss="squared", mechanism="objective")),
        (PoissonRegressor(**facts), AdditiveRegressor(**facts, knots=0, loss="poisson")),
    ]
    for one, other in pairs:
        plans = one.plan(3_000), other.plan(3_000)
        assert plans[0].problem.loss == plans[1].problem.loss
        assert plans[0].alpha == plans[1].alpha


def test_a_skewed_target_is_learned_at_the_default_and_not_at_a_small_threshold():
    """Counts with many zeros and a long tail: the share of the deviance that is explained, on other rows."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-0.5, 0.5, size=(30_000, 5))
    y = np.minimum(rng.poisson(2.0 * np.exp(X @ [2.0, -2.0, 1.0, 0.0, 0.0]) * rng.gamma(0.7, 1 / 0.7, 30_000)), 40)
    found = {}
    for threshold in ("auto", 1.0):
        model = PoissonRegressor(
            ApproxDP(1.0, 1e-6), target_bound=20.0, threshold=threshold, random_state=0, match_mean=False
        )
        model.fit(X[:20_000], y[:20_000])
        found[threshold] = d2_tweedie_score(y[20_000:], model.predict(X[20_000:]), power=1)
    assert found["auto"] > 1.2 * found[1.0]
