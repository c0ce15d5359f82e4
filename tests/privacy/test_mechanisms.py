"""Objective and output perturbation: releases have the planned law, and an attacker at the worst pair gains epsilon."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from confide.data.arrays import ArrayBlocks, MemorySource
from confide.erm.losses import Hinge, HuberHinge, LogisticLoss
from confide.errors import ParameterError
from confide.privacy.guarantee import Neighbours, PureDP
from confide.privacy.noise import Entropy
from confide.privacy.non_private import NonPrivate
from confide.privacy.objective_perturbation import ObjectivePerturbation
from confide.privacy.output_perturbation import OutputPerturbation
from confide.privacy.seal import Seal
from confide.solvers.fallback import NewtonThenFallback
from tests.privacy.densities import noise_behind
from tests.privacy.problems import problem, source

REPLACE, ADD = Neighbours.REPLACE_ONE, Neighbours.ADD_OR_REMOVE_ONE
ACCEPT, REJECT = 1e-3, 1e-8


def releases(mechanism, facts, rows, budget, n, seed=0):
    """n released weight vectors from one seeded stream."""
    plan = mechanism.plan(facts, PureDP(budget))
    entropy = Entropy.seeded(seed)
    return np.vstack([mechanism.release(plan, rows, NewtonThenFallback(), entropy).weights for _ in range(n)])


@pytest.mark.parametrize(("neighbours", "rows_changed"), [(REPLACE, 2.0), (ADD, 1.0)])
def test_weights_of_objective_perturbation_invert_to_noise_of_the_theorems_law(neighbours, rows_changed):
    """b(w) = -(l2 w + sum of gradients), over rows clipped by hand, has |b| epsilon / (shift) ~ Gamma; 30% off fails.

    Row norm 2, intercept constant 1.5, so R = 2.5: any wrong factor (n, 2, R, the intercept) shows.
    """
    epsilon, n, d = 0.8, 25, 2
    facts = problem(
        n, d, row_norm=2.0, intercept=1.5, l2=200.0, neighbours=neighbours, high=40 if neighbours is ADD else None
    )
    rows = source(n, d, length=3.0)
    sample = releases(ObjectivePerturbation(), facts, rows, epsilon, 1500)
    raw = rows.blocks.rows
    clipped = raw * np.minimum(1.0, 2.0 / np.linalg.norm(raw, axis=1))[:, None]
    signed = np.hstack([clipped, np.full((n, 1), 1.5)]) * rows.labels[:, None]
    noise = np.array([noise_behind(LogisticLoss(), signed, 200.0, w) for w in sample])
    rate = epsilon / (rows_changed * 2.5)
    law = stats.gamma(d + 1).cdf
    norms = np.linalg.norm(noise, axis=1) * rate
    assert stats.kstest(norms * 0.999, law).pvalue > ACCEPT  # the seal took a thousandth of epsilon
    for wrong in (0.7, 1.4):
        assert stats.kstest(norms * wrong, law).pvalue < REJECT
    directions = noise / np.linalg.norm(noise, axis=1)[:, None]
    for j in range(d + 1):
        assert stats.kstest(directions[:, j] ** 2, stats.beta(0.5, d / 2).cdf).pvalue > ACCEPT


@pytest.mark.parametrize(("neighbours", "rows_changed"), [(REPLACE, 2.0), (ADD, 1.0)])
def test_weights_of_output_perturbation_scatter_around_the_minimiser_by_the_theorems_law(neighbours, rows_changed):
    """|w - w*| epsilon l2 / shift ~ Gamma; 30% off fails."""
    epsilon, n, d, l2 = 0.8, 25, 2, 40.0
    facts = problem(n, d, row_norm=2.0, intercept=1.5, l2=l2, neighbours=neighbours, high=40 if neighbours is ADD else None)
    rows = source(n, d, length=3.0)
    sample = releases(OutputPerturbation(), facts, rows, epsilon, 1500)
    objective = facts.objective(rows, l2, np.zeros((1, d + 1)))
    centre = NewtonThenFallback().solve(objective, np.zeros((1, d + 1)), 1e-10).weights
    norms = np.linalg.norm(sample - centre, axis=1) * epsilon * l2 / (rows_changed * 2.5)
    law = stats.gamma(d + 1).cdf
    assert stats.kstest(norms, law).pvalue > ACCEPT
    for wrong in (0.7, 1.4):
        assert stats.kstest(norms * wrong, law).pvalue < REJECT


def one_row(value):
    """A data set of one row in one dimension, label +1."""
    return MemorySource(ArrayBlocks(np.array([[value]])), np.array([1], dtype=np.int8))


def epsilon_lower_bound(first, second, threshold, confidence=0.999):
    """Clopper-Pearson lower bound on the log-ratio of Pr[w > threshold] between two samples."""

    def bounds(sample):
        hits, n = int((sample > threshold).sum()), len(sample)
        tail = (1 - confidence) / 2
        low = stats.beta.ppf(tail, hits, n - hits + 1) if hits else 0.0
        high = stats.beta.ppf(1 - tail, hits + 1, n - hits) if hits < n else 1.0
        return low, high

    return math.log(bounds(first)[0] / bounds(second)[1])


class LouderStream:
    """The real stream with its noise made smaller: a planted bug."""

    def __init__(self, factor):
        self.factor, self.entropy = factor, Entropy.seeded(8)

    def spherical_laplace(self, n_problems, dimension, rate):
        """Noise at a wrong rate."""
        return self.entropy.spherical_laplace(n_problems, dimension, rate * self.factor)


@pytest.mark.parametrize("mechanism", [ObjectivePerturbation(), OutputPerturbation()], ids=["objective", "output"])
def test_an_attacker_at_the_worst_pair_gains_epsilon_and_no_more(mechanism):
    """x = +1 against x = -1, Huber hinge in its linear zone, the likelihood-ratio event, 4,000 releases, 99.9%.

    The lower bound stays below epsilon = 1 and comes close; with noise 30% too small it exceeds epsilon.
    """
    l2 = 1000.0
    facts = problem(1, 1, loss=HuberHinge(0.05), l2=l2)
    plan = mechanism.plan(facts, PureDP(1.0))
    found = {}
    for factor in (1.0, 1 / 0.7):
        entropy = LouderStream(factor)
        sample = [
            np.array([mechanism.release(plan, one_row(x), NewtonThenFallback(), entropy).weights[0, 0] for _ in range(4000)])
            for x in (1.0, -1.0)
        ]
        found[factor] = epsilon_lower_bound(sample[0], sample[1], 1.0 / l2)
    assert 0.75 < found[1.0] <= 1.0
    assert found[1 / 0.7] > 1.0


def test_the_planned_seal_costs_little_and_the_shares_add_up():
    """Noise share + seal share = epsilon; the seal's noise is below a tenth of the main displacement."""
    for l2 in (5.0, 50.0, 5000.0):
        for loss in (LogisticLoss(), HuberHinge(0.5)):
            plan = ObjectivePerturbation().plan(problem(10_000, 20, loss=loss, l2=l2), PureDP(0.5))
            assert 0.0 < plan.seal.epsilon <= 0.25 * 0.5
            spent = plan.seal.epsilon + plan.noise_rate * 2.0
            assert spent <= 0.5 * (1 + 1e-12)
            assert plan.expected_seal_norm <= 0.1 * plan.expected_noise_norm / plan.l2
            assert plan.seal.rate * 2.0 * plan.tolerance / plan.l2 <= plan.seal.epsilon


def test_the_seal_covers_two_radii():
    """Two points within r of one another's centre are 2r apart: rate = epsilon / (2r)."""
    seal = Seal(epsilon=0.01, radius=1e-3)
    assert seal.rate == pytest.approx(5.0, rel=1e-9)
    sample = np.vstack([seal.apply(np.full((1, 4), 3.0), Entropy.seeded(i)) for i in range(1500)]) - 3.0
    norms = np.linalg.norm(sample, axis=1) * 5.0
    assert stats.kstest(norms, stats.gamma(4).cdf).pvalue > ACCEPT
    assert stats.kstest(norms * 0.7, stats.gamma(4).cdf).pvalue < REJECT


def test_noise_and_seal_are_independent_draws():
    """Two draws a release, from fresh bits: the seal is never the main noise again."""
    calls = []

    class Recording:
        def spherical_laplace(self, n_problems, dimension, rate):
            """Record and pass on."""
            draw = Entropy.fresh().spherical_laplace(n_problems, dimension, rate)
            calls.append(draw * rate)
            return draw

    facts = problem()
    ObjectivePerturbation().release(
        ObjectivePerturbation().plan(facts, PureDP(1.0)), source(), NewtonThenFallback(), Recording()
    )
    assert len(calls) == 2
    assert not np.allclose(calls[0], calls[1])


def test_the_ridge_is_raised_for_the_proof_and_the_plan_says_so():
    """A tiny alpha enters the slack branch; the report holds the total."""
    plan = ObjectivePerturbation().plan(problem(1000, 3, l2=0.01), PureDP(0.1))
    assert plan.added_l2 > 0
    assert plan.alpha == pytest.approx(plan.l2 / 1000)
    assert "added for the proof" in str(plan)


def test_too_many_rows_for_double_precision_are_refused_before_any_row_is_read():
    """At ridge 1e-3 and 10^9 rows no certificate is possible; the plan says so from public facts."""
    for mechanism in (ObjectivePerturbation(), OutputPerturbation()):
        with pytest.raises(ParameterError, match="Raise alpha"):
            mechanism.plan(
                problem(10**9, 50, loss=LogisticLoss(), l2=1e-3),
                PureDP(1.0),
            )


def test_the_hinge_is_refused_by_both():
    """No curvature, no gradient certificate."""
    for mechanism in (ObjectivePerturbation(), OutputPerturbation()):
        with pytest.raises(ParameterError, match="smooth"):
            mechanism.plan(problem(loss=Hinge()), PureDP(1.0))


def test_a_plan_is_for_its_rows_alone():
    """Another number of rows, or of columns, than the plan's is refused."""
    plan = ObjectivePerturbation().plan(problem(20, 2), PureDP(1.0))
    for rows in (source(21, 2), source(20, 3)):
        with pytest.raises(ParameterError, match="plan"):
            ObjectivePerturbation().release(plan, rows, NewtonThenFallback(), Entropy.fresh())


def test_without_privacy_the_minimiser_itself_comes_out():
    """Budget inf: gradient zero to rounding, and a finite budget is refused by this mechanism."""
    facts, rows = problem(l2=1.0), source()
    plan = NonPrivate().plan(facts, PureDP(math.inf))
    weights = NonPrivate().release(plan, rows, NewtonThenFallback(), Entropy.fresh()).weights
    gradient = facts.objective(rows, 1.0, np.zeros((1, 2))).evaluate(weights, order=1).gradient
    assert np.linalg.norm(gradient) < 1e-13
    with pytest.raises(ParameterError):
        NonPrivate().plan(facts, PureDP(1.0))


@pytest.mark.parametrize("change", [{"l2": 0.0}, {"l2": math.inf}, {"l2": math.nan}, {"n": 0}, {"high": 30}])
def test_impossible_problems_are_refused(change):
    """No ridge, no rows, or a private number of rows under replace-one."""
    with pytest.raises(ParameterError):
        problem(**change)


def test_under_add_or_remove_one_the_plan_depends_on_the_declared_bounds_alone():
    """The same plan serves any number of rows between them, and nothing in it equals that number."""
    facts = problem(15, 2, neighbours=ADD, high=5000)
    plan = ObjectivePerturbation().plan(facts, PureDP(1.0))
    for n in (15, 20, 777):
        release = ObjectivePerturbation().release(plan, source(n, 2), NewtonThenFallback(), Entropy.fresh())
        assert release.plan is plan
    assert "private" in str(plan)
    assert "777" not in str(plan) + str(plan.to_dict())
