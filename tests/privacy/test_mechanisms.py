"""All mechanisms: fresh noise, plans that fit their rows and their mechanism, and the best plan of several."""

from __future__ import annotations

import math
from dataclasses import fields, replace

import numpy as np
import pytest

from confide.erm.losses import HuberHinge
from confide.errors import InsufficientRegularisation, ParameterError
from confide.privacy.budgets import ZCDP, ApproxDP, Neighbours, PureDP
from confide.privacy.mechanism import ProblemFacts
from confide.privacy.moments import Moments
from confide.privacy.noise import Entropy
from confide.privacy.noisy_sum import SumPlan
from confide.privacy.objective_perturbation import ObjectivePerturbation
from confide.privacy.output_perturbation import OutputPerturbation
from confide.privacy.sufficient_statistics import LeastSquares, plan_of_statistics
from confide.privacy.tables import Counts
from confide.solvers.fallback import NewtonThenFallback
from confide.training.auto_mechanism import NonPrivate
from tests.privacy.problems import LINKED, objective_plan, problem, releases, rows_and_labels, source

REPLACE, ADD = Neighbours.REPLACE_ONE, Neighbours.ADD_OR_REMOVE_ONE


@pytest.mark.parametrize("mechanism", [ObjectivePerturbation(), OutputPerturbation()], ids=["objective", "output"])
def test_fresh_releases_share_no_noise(mechanism):
    """20 releases at the same plan: no two alike, and the draws of one law are independent of those of the seal."""
    plan = mechanism.plan(problem(), PureDP(1.0))
    sample = releases(mechanism, plan, source(), 20)
    assert len(np.unique(sample, axis=0)) == 20
    seen = []

    def recording(n):
        seen.append(n)
        return Entropy.seeded(len(seen)).read(n)

    releases(mechanism, plan, source(), 1, Entropy(recording, is_secret=False))
    main_noise_alone = len(seen)
    seen.clear()
    plan.noise.draw(Entropy(recording, is_secret=False))
    assert main_noise_alone > len(seen) > 0


@pytest.mark.parametrize("budget", [PureDP(1.0), ApproxDP(1.0, 1e-6), ZCDP(0.1)], ids=["pure", "approximate", "zcdp"])
@pytest.mark.parametrize("mechanism", [ObjectivePerturbation(), OutputPerturbation()], ids=["objective", "output"])
def test_too_many_rows_for_double_precision_are_refused_before_any_row_is_read(mechanism, budget):
    """At ridge 1e-3 and 10^9 rows no certificate is possible; the plan says so from public facts."""
    with pytest.raises(ParameterError, match="Raise alpha"):
        mechanism.plan(problem(10**9, 50, l2=1e-3), budget)


@pytest.mark.parametrize("budget", [PureDP(1.0), ApproxDP(1.0, 1e-6), ZCDP(0.1)], ids=["pure", "approximate", "zcdp"])
@pytest.mark.parametrize("mechanism", [ObjectivePerturbation(), OutputPerturbation()], ids=["objective", "output"])
def test_the_best_plan_of_all_laws_and_shapes_is_chosen(mechanism, budget):
    """No plan forced to one law and shape has a smaller expected distance; the event holds the budget asked for."""
    facts = problem(200, 6, row_bound=LINKED, intercept=1.0, l2=50.0)
    plan = mechanism.plan(facts, budget)
    assert plan.event.budget == budget
    if isinstance(mechanism, OutputPerturbation):
        return
    for law in ("laplace", "gaussian") if not isinstance(budget, PureDP) else ("laplace",):
        for shape in ("ball", "groups", "linked"):
            forced = objective_plan(facts, budget, law, shape)
            assert plan.expected_distance <= forced.expected_distance * (1 + 1e-12)


def test_a_plan_is_for_its_rows_alone():
    """Another number of rows, or of columns, than the plan's is refused."""
    plan = ObjectivePerturbation().plan(problem(20, 2), PureDP(1.0))
    for rows in (source(21, 2), source(20, 3)):
        with pytest.raises(ParameterError, match="plan"):
            ObjectivePerturbation().release(plan, rows, NewtonThenFallback(), Entropy.fresh())


FACTS = problem()
STATISTICS = {each.name: getattr(FACTS, each.name) for each in fields(ProblemFacts) if each.init}
PLANS = {
    "objective": ObjectivePerturbation().plan(FACTS, PureDP(1.0)),
    "objective, gaussian": ObjectivePerturbation().plan(FACTS, ZCDP(0.01)),
    "output": OutputPerturbation().plan(FACTS, PureDP(1.0)),
    "output, gaussian": OutputPerturbation().plan(FACTS, ApproxDP(1.0, 1e-2)),
    "output-laplace": OutputPerturbation(laplace_alone=True).plan(FACTS, PureDP(1.0)),
    "none": NonPrivate().plan(FACTS, PureDP(math.inf)),
    "sufficient-statistics": plan_of_statistics(LeastSquares(**STATISTICS, target_bound=1.0), PureDP(1.0)),
    "moments": Moments.plan(ObjectivePerturbation().plan(FACTS, PureDP(1.0)), PureDP(1.0)),
    "counts": SumPlan.of(Counts(2, REPLACE), PureDP(1.0)),
}
"""A plan of each mechanism, all for the same rows. What a name begins with, up to a comma, is the mechanism."""
RELEASES = {
    "objective": lambda plan: ObjectivePerturbation().release(plan, source(), NewtonThenFallback(), Entropy.fresh()),
    "output": lambda plan: OutputPerturbation().release(plan, source(), NewtonThenFallback(), Entropy.fresh()),
    "output-laplace": lambda plan: OutputPerturbation(laplace_alone=True).release(
        plan, source(), NewtonThenFallback(), Entropy.fresh()
    ),
    "none": lambda plan: NonPrivate().release(plan, source(), NewtonThenFallback(), Entropy.fresh()),
}
"""A plan of a noisy sum releases itself, so it has no mechanism that could be given another plan."""


@pytest.mark.parametrize("mechanism", RELEASES)
@pytest.mark.parametrize("made_by", PLANS)
def test_a_plan_is_released_by_the_mechanism_that_made_it_alone(mechanism, made_by):
    """Every other mechanism refuses it and reads no row: noise in an objective would be hundreds of times too little."""
    if made_by.partition(",")[0] == mechanism:
        assert RELEASES[mechanism](PLANS[made_by]) is not None
        return
    with pytest.raises(ParameterError, match="another mechanism"):
        RELEASES[mechanism](PLANS[made_by])


@pytest.mark.parametrize(
    "change", [{"l2": 0.0}, {"l2": math.inf}, {"l2": math.nan}, {"n": 0}, {"high": 30}, {"rows_per_person": 0}], ids=str
)
def test_impossible_problems_are_refused(change):
    """No ridge, no rows, no row a person, or a private number of rows under replace-one."""
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


@pytest.mark.parametrize("budget", [PureDP(1.0), ApproxDP(1.0, 1e-4), ZCDP(0.5)], ids=["pure", "approximate", "zcdp"])
@pytest.mark.parametrize("mechanism", [ObjectivePerturbation(), OutputPerturbation()], ids=["objective", "output"])
def test_more_rows_a_person_never_cost_less_noise(mechanism, budget):
    """Main noise grows with the cap, by more than its square root; the ledger is charged the same."""
    facts = problem(10_000, 5, l2=5000.0)
    one, four = (mechanism.plan(replace(facts, rows_per_person=k), budget) for k in (1, 4))
    assert four.noise_norm > 2.0 * one.noise_norm
    assert four.event.budget == one.event.budget == budget


def plans_in_the_objective(facts):
    return [
        objective_plan(facts, PureDP(1.0), "laplace", "ball"),
        objective_plan(facts, ApproxDP(1.0, 1e-6), "gaussian", "ball"),
    ]


def test_without_rows_that_say_anything_the_release_is_the_prior_and_the_same_noise():
    """Rows of zeros: w* = prior - b / l2, so with one seed a release with a prior is that without, moved by the prior.

    A prior that is ignored, doubled, of the wrong sign or pulled with another ridge fails, as does other noise.
    """
    prior, mechanism = np.array([3.0, -2.0]), ObjectivePerturbation()
    plain = problem(50, 2, l2=30.0)
    with_prior = replace(plain, prior=tuple(prior.tolist()))
    rows = rows_and_labels(np.zeros((50, 2)))
    for before, after in zip(plans_in_the_objective(plain), plans_in_the_objective(with_prior), strict=True):
        assert after.noise == before.noise
        assert after.l2 == before.l2
        for seed in range(3):
            one, other = (releases(mechanism, plan, rows, 1, entropy=seed) for plan in (before, after))
            # The noise of the seal, whose grid depends on the radius, differs.
            assert np.abs(other - one - prior).max() <= 1e-5


@pytest.mark.parametrize("budget", [PureDP(1.0), ApproxDP(1.0, 1e-6), ZCDP(0.1)], ids=str)
def test_noise_on_the_weights_lies_around_the_prior(budget):
    """Rows of zeros: the mean of releases is the prior, and their deviation is that of the plan."""
    prior = np.array([3.0, -2.0])
    facts = replace(problem(50, 2, l2=30.0), prior=tuple(prior.tolist()))
    plan = OutputPerturbation().plan(facts, budget)
    sample = releases(OutputPerturbation(), plan, rows_and_labels(np.zeros((50, 2))), 400, entropy=0)
    assert np.abs(sample.mean(axis=0) - prior).max() <= 5.0 * plan.noise_norm / math.sqrt(2.0 * 400)
    assert np.sqrt(((sample - prior) ** 2).sum(axis=1).mean()) == pytest.approx(plan.noise_norm, rel=0.15)


def test_a_prior_does_not_move_what_neighbours_can_do():
    """The minimisers of the worst pair of neighbours lie as far apart with a prior as without."""
    for prior in ((), (40.0, 0.0), (-3.0, 9.0)):
        facts = replace(problem(50, 2, loss=HuberHinge(0.5), l2=30.0), prior=prior)
        minimisers = []
        for first in ([1.0, 0.0], [-1.0, 0.0]):
            rows = rows_and_labels([first, *np.zeros((49, 2))])
            objective = facts.objective(rows, 30.0, np.zeros((1, 2)))
            minimisers.append(NewtonThenFallback().solve(objective, np.zeros((1, 2)), 1e-10).weights)
        apart = float(np.linalg.norm(minimisers[0] - minimisers[1]))
        assert apart <= OutputPerturbation().plan(facts, PureDP(1.0)).problem.row_norm * 2.0 / 30.0 * (1 + 1e-9)


@pytest.mark.parametrize("mechanism", [ObjectivePerturbation(), OutputPerturbation()])
def test_a_prior_too_long_for_doubles_is_refused_by_the_plan(mechanism):
    """From public facts, before anything is charged; a prior of length 1e6 is certified."""
    for length, possible in ((1e6, True), (1e17, False)):
        facts = replace(problem(1000, 2, l2=10.0), prior=(length, 0.0))
        if possible:
            plan = mechanism.plan(facts, PureDP(1.0))
            assert np.linalg.norm(releases(mechanism, plan, source(1000), 1) - facts.prior) < 1e3
        else:
            with pytest.raises(InsufficientRegularisation, match="Give a shorter prior"):
                mechanism.plan(facts, PureDP(1.0))
