"""The plan of a release for named coefficients: what each part costs, and what is refused before the charge."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import confide
from confide.accounting.ledger import Ledger
from confide.errors import ParameterError
from confide.inference.interest_plan import InterestPlan
from confide.privacy.budgets import ZCDP, ApproxDP, PureDP, share_of
from confide.privacy.gaussian import GaussianMechanism, gaussian_delta, mu_within
from confide.privacy.lattice import LatticeGaussian
from confide.privacy.standardised_sums import RiskSums
from confide.training import budget_shares
from confide.training.budget_shares import SHARES
from confide.training.fit import lattices_of


def plan_of(budget, **parameters):
    return confide.LogisticRegression(budget, interest=["x0"], **parameters).plan(20_000, 3)


def test_shares_of_pure_and_concentrated_budgets_add_up():
    """Each release has its part, and the event is the whole."""
    for budget in (PureDP(2.0), ZCDP(0.2)):
        plan = plan_of(budget)
        name, budgets = next(iter(budget.ranges)), [each.budget for each in plan.intervals.releases]
        whole, *parts = (getattr(each, name) for each in (budget, plan.budget, *budgets))
        assert whole * (1 - 1e-12) <= math.fsum(parts) <= whole
        assert [part / whole for part in parts] == pytest.approx((0.3, 0.05, 0.1, 0.2, 0.35))
        assert plan.event.budget == budget
        assert plan.intervals.share == pytest.approx(sum(SHARES))


def test_sums_have_more_where_the_noise_hides_little():
    """Where the curvature hides at most half of what it may, and only there; the weights keep what they have."""
    few, many = plan_of(ApproxDP(1.0, 1e-6)).intervals, interest_plan(10)
    assert few.shares == (0.03, 0.06, 0.11, 0.5)
    assert many.shares == SHARES
    assert few.share == pytest.approx(many.share) == 0.7
    assert few.hidden <= 0.5 * few.largest_hidden
    more = [interest_plan(d) for d in range(2, 11)]
    assert all(each.hidden <= 0.5 * each.largest_hidden for each in more if each.shares != SHARES)
    # With the other shares it would have hidden more than that, or the forecast would have been longer.
    first = next(each for each in more if each.shares == SHARES)
    assert first.hidden * math.sqrt(0.2 / 0.11) > 0.5 * first.largest_hidden


def interest_plan(d):
    """The plan of intervals for arrays of 20,000 rows and d columns."""
    return confide.LogisticRegression(ApproxDP(1.0, 1e-6), interest=["x0"]).plan(20_000, d).intervals


@pytest.mark.parametrize("persons", [1, 3])
def test_one_account_pays_for_weights_and_all_that_follows_them(persons):
    """Under (epsilon, delta) the squared shifts of what follows the weights are the shares of the whole, for one row."""
    budget = ApproxDP(1.0 if persons == 1 else 2.0, 1e-6)
    model = confide.LogisticRegression(budget, interest=["x0"], max_rows_per_person=persons)
    plan = model.plan(20_000, 10) if persons == 1 else model.plan(100_000, 20)
    assert plan.intervals.is_joint
    assert plan.event.budget == plan.budget == budget
    lattices = [each.lattice for each in plan.intervals.releases]
    assert all(isinstance(each, LatticeGaussian) for each in lattices)
    mus = [1.0 / each.multiplier for each in lattices]
    assert math.hypot(*mus) <= plan.problem.beside_mu
    if persons == 1:
        whole = mu_within(budget)
        assert [(mu / whole) ** 2 for mu in mus] == pytest.approx(SHARES, rel=1e-6)
        assert gaussian_delta(1.0, whole) <= 1e-6
        # What the ledger counts for the weights pays for the other two: a curve of no larger shift than all together.
        assert plan.event.curve.renyi(2.0) > GaussianMechanism(math.hypot(*mus)).renyi(2.0)


def test_all_noise_on_a_grid_is_shown_to_the_second_account():
    """OpenDP confirms five lattices before the charge."""
    plan = plan_of(ApproxDP(1.0, 1e-6))
    own = plan.intervals
    beside = (own.spreads, *own.curvatures, own.sums)
    assert lattices_of(plan) == (plan.lattice, *(each.lattice for each in beside))
    assert isinstance(plan.intervals, InterestPlan)


REFUSED = {
    "a share as well": ({"inference_share": 0.3}, "not both"),
    "a prior": ({"prior": (np.zeros((1, 3)), np.zeros(1))}, "with a prior"),
    "a penalty": ({"penalty": np.ones(3)}, "with a penalty"),
    "an l1 penalty": ({"l1_ratio": 0.5}, "l1_ratio above 0"),
    "noisy gradients": ({"mechanism": "gradient"}, "known law"),
    "noise on the weights": ({"mechanism": "output"}, "known law"),
    "no list": ({"interest": "x0"}, "list of names"),
    "an unknown column": ({"interest": ["dose"]}, "is no column"),
    "a column twice": ({"interest": ["x0", "x0"]}, "twice"),
    "a number": ({"interest": [0]}, "list of names"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_not_covered_is_refused_before_the_charge(name):
    """In a sentence, and the ledger stays as it was."""
    changed, words = REFUSED[name]
    rng = np.random.default_rng(0)
    rows, labels = rng.uniform(-0.5, 0.5, size=(20_000, 3)), rng.integers(0, 2, 20_000)
    ledger = Ledger(limit=ApproxDP(4.0, 1e-5))
    parameters = {"interest": ["x0"], "classes": [0, 1], "ledger": ledger} | changed
    with pytest.raises(ParameterError, match=words):
        confide.LogisticRegression(ApproxDP(2.0, 1e-6), **parameters).fit(rows, labels)
    assert len(ledger.entries()) == 0


def test_very_many_columns_are_refused():
    """Half a million entries with exact noise are enough."""
    model = confide.LogisticRegression(ApproxDP(1.0, 1e-6), interest=["x0"])
    with pytest.raises(ParameterError, match="at most 1,000 columns"):
        model.plan(10**7, 1_001)


def test_three_classes_and_too_few_rows_are_refused_before_the_charge():
    rng = np.random.default_rng(0)
    rows = rng.uniform(-0.5, 0.5, size=(3_000, 3))
    ledger = Ledger(limit=ApproxDP(4.0, 1e-5))
    model = confide.LogisticRegression(ApproxDP(2.0, 1e-6), interest=["x0"], classes=[0, 1, 2], ledger=ledger)
    with pytest.raises(ParameterError, match="two classes"):
        model.fit(rows, rng.integers(0, 3, 3_000))
    model = confide.LogisticRegression(ApproxDP(0.1, 1e-6), interest=["x0"], classes=[0, 1], ledger=ledger)
    with pytest.raises(ParameterError, match="would not be trustworthy"):
        model.fit(rows, rng.integers(0, 2, 3_000))
    assert len(ledger.entries()) == 0


def with_risks(budget, n_features=3):
    """A plan with sums for differences of risks."""
    return confide.LogisticRegression(budget, interest=["x0"], risk_differences=True).plan(20_000, n_features)


def test_sums_for_differences_of_risks_have_a_small_part_of_their_own():
    """Of pure and concentrated budgets; the other parts shrink alike, and the event stays the whole."""
    for budget in (PureDP(2.0), ZCDP(0.2)):
        plan = with_risks(budget)
        found = plan.intervals
        name = next(iter(budget.ranges))
        budgets = (budget, plan.budget, *(each.budget for each in found.releases))
        whole, *parts = (getattr(each, name) for each in budgets)
        assert whole * (1 - 1e-12) <= math.fsum(parts) <= whole
        own = found.shares[-1]
        assert own in (0.01, 0.02, 0.04, 0.08)
        assert [part / whole for part in parts] == pytest.approx([*(each * (1.0 - own) for each in (0.3, *SHARES)), own])
        assert plan.event.budget == budget


def test_one_account_pays_for_differences_of_risks_too():
    """Under (epsilon, delta) five squared shifts are the shares of the whole; OpenDP confirms six lattices."""
    budget = ApproxDP(1.0, 1e-6)
    plan = with_risks(budget, n_features=10)
    found = plan.intervals
    lattices = [each.lattice for each in found.releases]
    assert found.releases[-1] is found.risks
    assert found.is_joint
    assert lattices_of(plan) == (plan.lattice, *lattices)
    mus = [1.0 / each.multiplier for each in lattices]
    assert math.hypot(*mus) <= plan.problem.beside_mu
    assert [(mu / mu_within(budget)) ** 2 for mu in mus] == pytest.approx(found.shares, rel=1e-6)
    assert plan.event.curve.renyi(2.0) > GaussianMechanism(math.hypot(*mus)).renyi(2.0)
    document = found.to_dict()
    assert document["interest"][0]["expected_margin_of_risk_difference"] == found.margin_of_risk(found.combinations[0])
    assert "Its difference of risks: about +-" in str(plan)


REFUSED_WITH_RISKS = {
    "no column named": ({"interest": None}, {}, "for columns that interest names"),
    "weights of classes": ({"class_weight": {0: 1.0, 1: 0.5}}, {}, "all count alike"),
    "a cap on weights": ({"max_sample_weight": 2.0}, {}, "all count alike"),
    "weights of rows": ({}, {"sample_weight": np.ones(20_000)}, "leave out weights of rows"),
    "no intercept": ({"fit_intercept": False}, {}, "with an intercept"),
    "no truth value": ({"risk_differences": 1}, {}, "True or False"),
}


@pytest.mark.parametrize("name", REFUSED_WITH_RISKS)
def test_differences_of_risks_without_a_meaning_are_refused_before_the_charge(name):
    """In a sentence, and the ledger stays as it was."""
    changed, of_fit, words = REFUSED_WITH_RISKS[name]
    rng = np.random.default_rng(0)
    rows, labels = rng.uniform(-0.5, 0.5, size=(20_000, 3)), rng.integers(0, 2, 20_000)
    ledger = Ledger(limit=ApproxDP(4.0, 1e-5))
    parameters = {"interest": ["x0"], "classes": [0, 1], "ledger": ledger, "risk_differences": True} | changed
    with pytest.raises(ParameterError, match=words):
        confide.LogisticRegression(ApproxDP(2.0, 1e-6), **parameters).fit(rows, labels, **of_fit)
    assert len(ledger.entries()) == 0


def persons_with_rows(n_rows_each, n_persons=8_000):
    """Persons with so many rows each, of which one is to count; and their schema and labels."""
    rng = np.random.default_rng(0)
    n = n_rows_each * n_persons
    treated, age = rng.integers(0, 2, n), rng.uniform(-1.0, 1.0, n)
    labels = (rng.random(n) < 1.0 / (1.0 + np.exp(0.5 - 1.0 * treated - 0.5 * age))).astype(int)
    table = pd.DataFrame({"person": np.arange(n) // n_rows_each, "treated": np.where(treated, "yes", "no"), "age": age})
    columns = {"treated": {"categories": ["no", "yes"]}, "age": {"low": -1, "high": 1}}
    return table, labels, confide.Schema(columns=columns, person="person")


def test_where_rows_of_persons_are_dropped_their_number_must_be_released():
    """Sums over the rows that are left, over the number of all rows, would be means that are too small."""
    table, labels, schema = persons_with_rows(3)
    ledger = Ledger(limit=ApproxDP(20.0, 1e-5))
    shared = {"interest": ["treated"], "risk_differences": True, "schema": schema, "classes": [0, 1]}
    with pytest.raises(ParameterError, match="only some of the rows count"):
        confide.LogisticRegression(ApproxDP(8.0, 1e-6), ledger=ledger, **shared).fit(table, labels)
    assert len(ledger.entries()) == 0
    relation = {"neighbours": "add-or-remove-one", "n_rows_bounds": (4_000, 24_000)}
    model = confide.LogisticRegression(ApproxDP(8.0, 1e-6), **shared, **relation).fit(table, labels)
    found = model._interest.risks
    assert found.n_rows == pytest.approx(8_000, rel=0.02)
    assert abs(float(found.differences[0]) - 0.24) < 5.0 * 0.012


@pytest.mark.parametrize("risks", [False, True])
def test_the_guarantee_names_the_grids_of_all_releases(risks):
    """Those of the weights, spreads, curvatures, sums along directions, and of the sums for differences of risks."""
    rng = np.random.default_rng(0)
    rows, labels = rng.uniform(-0.5, 0.5, size=(20_000, 3)), rng.integers(0, 2, 20_000)
    model = confide.LogisticRegression(ApproxDP(2.0, 1e-6), interest=["x0"], classes=[0, 1], risk_differences=risks)
    grids = [each.exponent for each in lattices_of(model.plan(20_000, 3))]
    assert len(grids) == 5 + risks
    first, *others = grids
    factors = "known" if risks else "public"
    words = f"multiples of 2^{first} and, up to {factors} factors, " + " and ".join(f"of 2^{each}" for each in others)
    assert f"{words}, or follow from such numbers alone, with exact noise" in model.fit(rows, labels).guarantee_.statement()


class Greedy(RiskSums):
    """Sums that take one and a half times of what they were given of an account in common."""

    @classmethod
    def plan(cls, training, n_changes, budget):
        return RiskSums.plan(training, n_changes, ZCDP(1.5 * budget.rho) if isinstance(budget, ZCDP) else budget)


def test_no_account_in_common_where_the_sums_for_risks_would_take_more_than_their_part(monkeypatch):
    """The check of the account sees their noise too. Each release then has a part of the budget of its own."""
    parameters = {"interest": ["x0"], "risk_differences": True}
    assert confide.LogisticRegression(ApproxDP(1.0, 1e-6), **parameters).plan(21_000, 10).intervals.is_joint
    monkeypatch.setattr(budget_shares, "RiskSums", Greedy)
    # Another number of rows, since plans are remembered.
    plan = confide.LogisticRegression(ApproxDP(1.0, 1e-6), **parameters).plan(40_001, 10)
    assert not plan.intervals.is_joint
    assert plan.intervals.risks.budget == share_of(ApproxDP(1.0, 1e-6), plan.intervals.shares[-1])


def test_a_forecast_decides_only_among_plans_that_can_be_trusted(monkeypatch):
    """Of one account and of parts the shorter intervals are taken, unless the noise hides too much there."""
    model = confide.LogisticRegression(ApproxDP(1.0, 1e-12), interest=["x0"])
    shown = {n: model.plan(n, 3).intervals for n in (4_000, 40_000)}
    assert shown[4_000].is_joint
    assert not shown[40_000].is_joint
    plans = budget_shares._plans_at

    def hidden(*given):
        """The same plans, of which the one with the shorter intervals hides too much."""
        first, second = sorted(plans(*given), key=lambda plan: plan.intervals.error)
        facts = replace(first.intervals.facts, curvature_deviation=1e9)
        return replace(first, intervals=replace(first.intervals, facts=facts)), second

    monkeypatch.setattr(budget_shares, "_plans_at", hidden)
    # Another number of rows, since plans are remembered.
    assert model.plan(40_001, 3).intervals.is_joint is not shown[40_000].is_joint


def test_sums_for_differences_of_several_columns_are_planned_for_all_of_them():
    """Under each account; the noise on them grows with the root of their number."""
    for budget in (ApproxDP(0.5, 1e-6), ZCDP(0.4)):
        models = [
            confide.LogisticRegression(budget, interest=names, risk_differences=True) for names in (["x0"], ["x0", "x2"])
        ]
        one, two = (model.plan(40_000, 10).intervals.risks for model in models)
        assert (one.query.n_changes, two.query.n_changes) == (1, 2)
        assert two.lattice.dimension == 2 * one.lattice.dimension == 2 * (11 + 2)
        at_one_cost = [each.deviation * math.sqrt(each.budget.rho) for each in (one, two)]
        assert at_one_cost[1] == pytest.approx(math.sqrt(2.0) * at_one_cost[0], rel=0.01)
