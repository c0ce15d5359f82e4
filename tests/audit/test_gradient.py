"""Releases of noisy gradients from the worst neighbours never show more than was promised, and planted bugs are caught.

The mechanism releases the mean of all noisy sums at one point, which is all that they tell of the rows; and it releases
weights by the steps that fits take. A row as long as its bound, with a slope far above the limit, comes, goes, or is turned
around. Each audit refutes a correct mechanism with probability at most 0.1%.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from confide.erm.row_sums import RowSum
from confide.erm.transformed_losses import ClippedSlopes
from confide.privacy import gradient, lattice
from confide.privacy.budgets import ZCDP, ApproxDP
from confide.privacy.gradient import Descent, NoisyGradients
from confide.privacy.noise import Entropy
from confide.solvers.fallback import NewtonThenFallback
from confide.training.alpha import AlphaRule
from confide.training.gradient_steps import HeavyBall, gradient_mechanism
from tests.audit.attacks import ADD, LOSS, REPLACE, Attack, facts_of, few_of, promised_noise
from tests.privacy.descents import Mean, mean_of_sums
from tests.privacy.problems import releases, rows_and_labels

APPROXIMATE, CONCENTRATED = ApproxDP(1.0, 0.05), ZCDP(0.5)
both = pytest.mark.parametrize("planted", [False, True], ids=["code", "bug"])
LIMIT = 0.6
"""Slopes of the attack's rows are 1, so they are clipped."""


def attack_of(bound, budget, neighbours, persons=1, n_steps=2):
    """The mean of sums at zero: exact sums, and the law of the noise around them, one Gaussian for all sums together."""
    facts, first, second = facts_of(bound, neighbours, persons)
    mechanism = mean_of_sums(n_steps, LIMIT)
    plan = mechanism.plan(facts, budget)
    longest = LIMIT * facts.row_norm
    centres = []
    for rows in (first, second):
        x = np.column_stack([rows.blocks.rows, np.full(rows.n_rows, facts.intercept)])[:, : facts.n_weights]
        # All margins are 0, so all slopes are -label, and gradients are as long as the rows, or clipped.
        lengths = np.linalg.norm(x, axis=1)
        centres.append(-(rows.labels * np.minimum(1.0, longest / lengths)) @ x)
    shift = (2 if neighbours is REPLACE else 1) * persons * longest
    scale = promised_noise(budget, shift)

    def statistic(mean):
        one, other = (((mean - centre) ** 2).sum(axis=1) for centre in centres)
        return 0.5 * (other - one) / scale**2

    return Attack(mechanism, plan, first, second, statistic)


AUDITS = [
    ("ball 1", APPROXIMATE, REPLACE, 1),
    ("ball 2", APPROXIMATE, ADD, 1),
    ("ball 5", APPROXIMATE, REPLACE, 2),
    ("groups 2", APPROXIMATE, ADD, 2),
    ("linked 5", APPROXIMATE, REPLACE, 1),
    ("ball 1", CONCENTRATED, ADD, 1),
    ("ball 2", CONCENTRATED, REPLACE, 1),
    ("groups 5", CONCENTRATED, REPLACE, 2),
    ("linked 2", CONCENTRATED, ADD, 1),
]
NAMES = [", ".join(str(getattr(fact, "kind", fact)) for fact in facts) for facts in AUDITS]
every_audit = pytest.mark.parametrize("number", range(len(AUDITS)), ids=NAMES)


@pytest.mark.parametrize("number", few_of(range(len(AUDITS)), 1, 6), ids=NAMES)
def test_a_few_releases_do_not_refute_the_guarantee(number):
    """300 releases from either data set: the lower bound on what was spent stays below the budget."""
    assert attack_of(*AUDITS[number]).excess(300, seed=number) <= 0.0


@pytest.mark.parametrize("number", few_of(range(len(AUDITS)), 1, 6), ids=NAMES)
def test_a_few_releases_refute_a_guarantee_with_two_fifths_of_its_noise(number):
    """The same attack has power: with 40% of the noise, 400 releases from either data set suffice at 99.9%."""
    assert attack_of(*AUDITS[number]).with_less_noise(0.4).excess(400, seed=number) > 0.0


@pytest.mark.audit
@every_audit
def test_fifty_thousand_releases_do_not_refute_the_guarantee(number):
    """Fresh noise, 25,000 releases from either data set."""
    assert attack_of(*AUDITS[number]).excess(25_000) <= 0.0


@pytest.mark.audit
@every_audit
def test_many_releases_refute_a_guarantee_with_seven_tenths_of_its_noise(number):
    """With 30% less noise 10,000 releases from either data set suffice at 99.9%."""
    assert attack_of(*AUDITS[number]).with_less_noise(0.7).excess(10_000) > 0.0


def fit_attack(budget, neighbours):
    """Weights by the steps that fits take: the row's direction shows the difference best."""
    facts, first, second = facts_of("ball 2", neighbours)
    mechanism = gradient_mechanism(AlphaRule(is_automatic=True, score_size=None, is_raised=False, for_intervals=False))
    plan = mechanism.plan(facts, budget)
    pilot = [releases(mechanism, plan, rows, 20, (9, side)) for side, rows in enumerate((first, second))]
    along = np.ones(2) / np.sqrt(2.0)
    middle = np.mean([each @ along for each in pilot])
    sign = 1.0 if (pilot[0] @ along).mean() > middle else -1.0

    def statistic(w):
        return sign * (w @ along - middle)

    return Attack(mechanism, plan, first, second, statistic)


@pytest.mark.attack
@pytest.mark.parametrize("neighbours", [REPLACE, ADD], ids=["replace", "add"])
@pytest.mark.parametrize("budget", [APPROXIMATE, CONCENTRATED], ids=["approximate", "zcdp"])
def test_weights_of_the_usual_steps_do_not_refute_the_guarantee(budget, neighbours):
    """80 sums a release and 100 releases from either data set, at a threshold between the means."""
    assert fit_attack(budget, neighbours).excess(100, seed=3, threshold=0.0) <= 0.0


# Planted bugs. The same detector accepts the code.


@pytest.mark.attack
@both
@pytest.mark.parametrize(("budget", "neighbours"), [(APPROXIMATE, REPLACE), (CONCENTRATED, ADD)])
def test_steps_that_are_not_charged_are_refuted(budget, neighbours, planted):
    """Noise for one sum on each of nine: 350 releases from either data set show it."""
    attack = attack_of("ball 2", budget, neighbours, n_steps=9)
    if planted:
        single = mean_of_sums(1, LIMIT).plan(attack.plan.problem, budget)
        attack = replace(attack, plan=replace(attack.plan, lattice=single.lattice))
    assert (attack.excess(350, seed=1) > 0.0) == planted


@both
def test_one_sum_more_than_is_charged_is_noticed(planted, monkeypatch):
    """Sums made times the cost of each is at most the budget; a loop that runs once more spends more."""
    if planted:
        monkeypatch.setattr(gradient, "range", lambda *ends: [*range(*ends), 0], raising=False)
    steps = Mean()
    mechanism = mean_of_sums(5, LIMIT, steps=steps)
    plan = mechanism.plan(facts_of("ball 2", REPLACE)[0], CONCENTRATED)
    mechanism.release(plan, facts_of("ball 2", REPLACE)[1], NewtonThenFallback(), Entropy.seeded(0))
    assert (len(steps.seen) * plan.lattice.rho > CONCENTRATED.rho) == planted


@both
def test_a_clip_after_the_sum_is_refuted(planted, monkeypatch):
    """Slopes as they are, and the sum cut to the length that as many clipped rows could have."""
    if planted:

        class ClippedAfterwards(RowSum):
            """Cuts the total in place of each term."""

            def completed(self, totals):
                longest = LIMIT * 1.3 * 3
                totals.gradient[...] *= min(1.0, longest / max(1e-9, float(np.linalg.norm(totals.gradient))))
                return RowSum.completed(self, totals)

        monkeypatch.setattr(
            Descent, "row_sum", lambda self, facts: ClippedAfterwards(facts.loss, facts.row_bound, facts.intercept, 1)
        )
    assert (attack_of("ball 2", APPROXIMATE, REPLACE).excess(1000, seed=2) > 0.0) == planted


@both
def test_a_clip_that_forgets_how_long_rows_are_is_noticed(planted, monkeypatch):
    """Slopes within [-limit R, limit R] whatever |x| is: a longest row then moves the sum too far."""
    if planted:
        monkeypatch.setattr(RowSum, "stretch", lambda self, clipped: np.full((clipped.shape[0], 1), 1.3))
    attack = attack_of("ball 2", APPROXIMATE, REPLACE)
    sums = [
        rows.sum_over_rows(attack.plan.descent.row_sum(attack.plan.problem), np.zeros((1, 2))).gradient
        for rows in (attack.first, attack.second)
    ]
    assert (np.linalg.norm(sums[0] - sums[1]) > attack.plan.lattice.l2_sensitivity) == planted


@both
def test_noise_that_is_used_for_every_step_is_refuted(planted, monkeypatch):
    """The mean of nine sums with the same noise has three times the deviation that it should have. No two sums are alike."""
    if planted:
        draw = lattice._integers
        monkeypatch.setattr(lattice, "_integers", lambda noise, n, entropy: np.tile(draw(noise, 2, entropy), n // 2))
    steps = Mean()
    mechanism = mean_of_sums(9, LIMIT, steps=steps)
    facts, rows, _ = facts_of("ball 2", REPLACE)
    plan = mechanism.plan(facts, CONCENTRATED)
    mechanism.release(plan, rows, NewtonThenFallback(), Entropy.seeded(0))
    assert (len({tuple(noisy[0]) for noisy in steps.seen}) < 9) == planted


class WithMemory(HeavyBall):
    """Steps that go on where the last fit ended."""

    last = None

    def start(self, n_weights, n_problems=1):
        """The walk of the last fit, its velocity included."""
        walk = WithMemory.last or HeavyBall.start(self, n_weights, n_problems)
        WithMemory.last = replace(walk, velocity=walk.velocity + 1.0)
        return walk


@both
def test_momentum_over_the_state_of_another_fit_is_noticed(planted):
    """A fit with the same noise gives the same weights, whatever was fitted before it."""
    kind = WithMemory if planted else HeavyBall
    descent = Descent(5, LIMIT, 4.0, kind(5, 0.01, 0.9, 1.0))
    mechanism = NoisyGradients(lambda facts, _: (facts, descent))
    facts, rows, others = facts_of("ball 2", REPLACE)
    plan, solver = mechanism.plan(facts, CONCENTRATED), NewtonThenFallback()
    first = mechanism.release(plan, rows, solver, Entropy.seeded(1)).weights
    mechanism.release(plan, others, solver, Entropy.seeded(2))
    again = mechanism.release(plan, rows, solver, Entropy.seeded(1)).weights
    assert (not np.array_equal(first, again)) == planted


@both
def test_gradients_without_noise_do_not_reach_the_steps(planted, monkeypatch):
    """What steps are given lies on the grid of the plan; an exact sum does not."""
    if planted:
        monkeypatch.setattr(lattice.LatticeNoise, "release", lambda self, weights, entropy, drawn=None: weights + 0.1)
    steps = Mean((0.3, 0.1))
    mechanism = mean_of_sums(3, LIMIT, steps=steps)
    facts = facts_of("ball 2", REPLACE)[0]
    rows = rows_and_labels(np.random.default_rng(0).normal(size=(3, 2)))
    plan = mechanism.plan(facts, CONCENTRATED)
    mechanism.release(plan, rows, NewtonThenFallback(), Entropy.seeded(1))
    on_grid = [np.ldexp(np.rint(np.ldexp(noisy, -plan.lattice.exponent)), plan.lattice.exponent) for noisy in steps.seen]
    assert (not np.array_equal(on_grid, steps.seen)) == planted


def test_the_attacks_rows_are_clipped():
    """Else no clip would be audited."""
    facts, first, _ = facts_of("ball 2", REPLACE)
    free = first.sum_over_rows(RowSum(LOSS, facts.row_bound, 0.0, 1), np.zeros((1, 2))).gradient
    clipped = first.sum_over_rows(RowSum(ClippedSlopes(LOSS, LIMIT), facts.row_bound, 0.0, 1), np.zeros((1, 2))).gradient
    np.testing.assert_allclose(clipped, LIMIT * free, rtol=1e-8)
