"""The automatic ridge: from public facts alone, as small as pays, and the first that double precision allows."""

from __future__ import annotations

import math
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

import confide
from confide import (
    ZCDP,
    ApproxDP,
    ERMClassifier,
    HuberRegressor,
    LinearSVC,
    LogisticRegression,
    PoissonRegressor,
    PureDP,
    Schema,
)
from confide.erm.group_bounds import GroupBound
from confide.erm.losses import Hinge, LogisticLoss
from confide.erm.row_bounds import BallBound
from confide.errors import InsufficientRegularisation
from confide.features.encoder import Encoder
from confide.privacy.budgets import Neighbours, share_of
from confide.privacy.objective_perturbation import ObjectivePerturbation
from confide.training import alpha as alpha_rule
from confide.training.alpha import (
    AlphaRule,
    balanced_l2,
    curvature_free_l2,
    has_curves,
    noise_l2,
    plan_with_alpha,
    usual_norm,
    usual_norm_of_curves,
)
from confide.training.auto_mechanism import MECHANISMS


def test_the_automatic_alpha_uses_public_facts_alone(rows):
    """Other rows and labels of the same shape give the same alpha; it never falls below 1.4 R^2 / (epsilon n)."""
    X, y = rows
    other = LogisticRegression(0.3).fit(X[::-1] * 17.0, 1 - y).alpha_
    assert LogisticRegression(0.3).fit(X, y).alpha_ == other
    for n, d, epsilon in ((100, 1, 0.1), (10_000, 3, 1.0), (1000, 500, 5.0)):
        plan = LogisticRegression(epsilon).plan(n, d)
        assert plan.alpha >= 1.4 * 2.0 / (epsilon * n)
        assert plan.noise.law == "laplace"
        assert plan.noise.shape.l2_norm == pytest.approx(math.sqrt(2.0))
        ideal = (epsilon - plan.lattice.epsilon) / 2
        assert ideal / 1.02 <= plan.noise.scale <= ideal * (1 + 1e-6)
        assert plan.added_l2 == 0.0


APART = {"neighbours": "add-or-remove-one", "n_rows_bounds": (2_000_000, 2_100_000)}


@pytest.mark.parametrize(
    ("budget", "facts", "n_columns", "share", "dearer"),
    [
        (PureDP(0.1), {}, 2, 0.7, 0.02),
        (PureDP(4.0), {}, 2, 0.7, 0.01),
        (PureDP(0.1), APART, 2, 0.7, 0.04),
        (ApproxDP(0.5, 1e-6), APART, 20, 1.0, 0.0),
        (ApproxDP(0.5, 1e-6), {}, 20, 1.0, 0.0),
        (ZCDP(0.1), APART, 20, 0.32, 0.12),
        (ZCDP(0.1), {}, 20, 0.4, 0.12),
    ],
)
def test_the_least_automatic_ridge_costs_a_little_more_noise_and_none_where_intervals_are_wanted(
    budget, facts, n_columns, share, dearer
):
    """The least is a share of the ridge at which curvature is free, and costs at most so much more noise.

    Few columns and two million rows: there the least decides.
    """

    def planned(budget, **more):
        model = LogisticRegression(budget, row_norm=2.0, fit_intercept=False, **more, **facts)
        plan = model.plan(None if facts else 2_000_000, n_columns)
        return plan, curvature_free_l2(budget, plan.problem.loss_bounds, 2.0, plan.problem.neighbours)

    plan, free = planned(budget)
    at_free, _ = planned(budget, alpha=free / 2e6)
    assert plan.noise.law == ("laplace" if n_columns == 2 else "gaussian")
    assert plan.problem.l2 == pytest.approx(share * free)
    # The seal may take more at the smaller ridge.
    growth = plan.noise.norm * (1.0 - plan.seal_share) / (at_free.noise.norm * (1.0 - at_free.seal_share))
    assert 1.0 - 1e-3 <= growth <= 1.0 + 1e-6 + dearer
    intervals, _ = planned(budget, inference_share=0.2)
    least = 2.0 * free if intervals.intervals.is_joint else planned(share_of(budget, 0.8))[1]
    assert intervals.intervals.is_joint == isinstance(budget, ApproxDP)
    assert intervals.problem.l2 == pytest.approx(least)


def test_beside_moments_twice_the_least_ridge_makes_the_curvature_nearly_free():
    """With twice the ridge the noise is 1% larger than without curvature; with the ridge itself, by a seventh or more."""
    budget = ApproxDP(1.0, 1e-6)

    def noise_at(alpha):
        model = LogisticRegression(budget, row_norm=2.0, fit_intercept=False, alpha=alpha, inference_share=0.3)
        plan = model.plan(2_000_000, 20)
        assert plan.intervals.is_joint
        return plan.noise.norm

    facts = LogisticRegression(budget, row_norm=2.0, fit_intercept=False).plan(2_000_000, 20).problem
    free = curvature_free_l2(budget, facts.loss_bounds, 2.0, facts.neighbours) / 2e6
    least = noise_at(100.0 * free)
    assert noise_at(2.0 * free) <= 1.015 * least
    assert noise_at(free) >= 1.15 * least


def test_the_automatic_alpha_does_not_depend_on_the_unit_of_the_weights(rows):
    """All weights and the cap times 4: alpha times 4, and nearly the same plan."""
    plans = [LogisticRegression(1.0, max_sample_weight=cap).plan(2000, 5) for cap in (1.0, 4.0)]
    assert plans[1].alpha == pytest.approx(4.0 * plans[0].alpha, rel=1e-3)
    assert plans[1].expected_distance == pytest.approx(plans[0].expected_distance, rel=1e-3)


@pytest.mark.parametrize(
    ("first", "length"), [(0, 1), (1, 1), (7, 2), (8, 1), (97, 8), (100, 1), (590, 1), (599, 1), (3, 597)]
)
def test_an_automatic_ridge_is_the_first_that_is_allowed(first, length):
    """Whether many steps allow a plan or one; and long strides find it where they can meet it."""
    problem, tried = LogisticRegression(1.0).plan(100, 2).problem, []

    class Allowed:
        def plan(self, asked, budget):
            step = round(math.log(asked.l2 / problem.l2) / math.log(1.1))
            tried.append(step)
            if not first <= step < first + length:
                raise InsufficientRegularisation("too small, or too large")
            return SimpleNamespace(seal_share=0.0, l2=asked.l2)

    l2 = problem.l2
    for _ in range(first):
        l2 *= 1.1
    assert alpha_rule._first_possible_plan(Allowed(), problem, PureDP(1.0)).l2 == l2
    if length >= 8:
        assert len(tried) <= first / 8 + 5


@pytest.mark.parametrize("rho", [1e-3, 0.1, 1e3])
def test_a_concentrated_plan_for_a_thousand_million_rows_is_made_by_few_calibrations(monkeypatch, rho):
    """Noise of a law whose seal costs too much does not stand before noise of another that is possible."""
    made = []
    first = ObjectivePerturbation.plan
    monkeypatch.setattr(ObjectivePerturbation, "plan", lambda *given: made.append(0) or first(*given))
    plan = LogisticRegression(ZCDP(rho), row_norm=1.0).plan(10**9, 6)
    assert plan.noise.law == "gaussian"
    assert plan.seal_share <= 0.01
    assert len(made) <= 60


def test_rows_so_many_that_no_ridge_of_600_is_allowed_are_refused():
    """Each is tried before that is said."""
    tried = []

    class Allowed:
        def plan(self, asked, budget):
            tried.append(asked.l2)
            raise InsufficientRegularisation("too small")

    with pytest.raises(confide.ParameterError, match="no alpha is large enough"):
        alpha_rule._first_possible_plan(Allowed(), LogisticRegression(1.0).plan(100, 2).problem, PureDP(1.0))
    assert len(set(tried)) == len(tried) == 600


def test_scores_of_the_logistic_hinge_are_as_large_as_its_margin():
    """The automatic alpha expects that: with a margin so many times larger it is so many times smaller, if nothing binds."""
    noise = {"noise_norm": 30.0, "weight": 1e5, "row_norm": 2.0, "on_weights": False}
    assert balanced_l2(**noise, margin=4.0) == pytest.approx(balanced_l2(**noise) / 4.0)
    assert balanced_l2(**noise, margin=0.1) == balanced_l2(**noise)
    plans = [LinearSVC(0.05, loss="logistic_hinge", smoothing=h).plan(30_000, 60) for h in (1.0, 0.5)]
    assert plans[0].alpha / plans[1].alpha == pytest.approx(2.0, rel=0.05)
    classes = {"loss": "logistic_hinge", "classes": [0, 1, 2]}
    plans = [LinearSVC(0.05, smoothing=h, **classes).plan(30_000, 60) for h in (1.0, 0.5)]
    assert plans[0].alpha / plans[1].alpha == pytest.approx(2.0, rel=0.05)


@pytest.mark.parametrize(
    ("facts", "law"),
    [
        ({"budget": 0.5}, "laplace"),
        (
            {
                "budget": confide.ApproxDP(0.5, 1e-6),
                "neighbours": "add-or-remove-one",
                "n_rows_bounds": (2_000_000, 2_100_000),
            },
            "gaussian",
        ),
    ],
)
@pytest.mark.parametrize(("smoothing", "share"), [(2.0, 1.0), (1.0, 1.0), (0.8, 0.8), (0.6, 0.6), (0.5, 0.5), (0.2, 0.5)])
def test_the_least_automatic_ridge_falls_with_the_margin_to_half_of_that_at_which_curvature_is_free(
    facts, law, smoothing, share
):
    """Of few columns and many rows, whose balanced ridge is smaller still. `share` is that of Gaussian noise."""
    model = LinearSVC(loss="logistic_hinge", smoothing=smoothing, row_norm=2.0, fit_intercept=False, **facts)
    plan = model.plan(None if "n_rows_bounds" in facts else 2_000_000, 2 if law == "laplace" else 20)
    assert plan.noise.law == law
    free = curvature_free_l2(plan.budget, plan.problem.loss_bounds, 2.0, plan.problem.neighbours)
    assert plan.problem.l2 == pytest.approx((share if law == "gaussian" else max(0.5, 0.7 * share)) * free)


def test_the_least_automatic_ridge_is_that_of_the_law_that_is_used():
    """Laplace noise at a large ridge and Gaussian noise at a smaller one, for which half would be dear under replace-one."""
    model = LinearSVC(confide.ApproxDP(8.0, 1e-6), loss="logistic_hinge", row_norm=1.0, fit_intercept=False)
    plan = model.plan(20_000_000, 20)
    assert plan.noise.law == "gaussian"
    free = curvature_free_l2(plan.budget, plan.problem.loss_bounds, 1.0, plan.problem.neighbours)
    assert plan.problem.l2 == pytest.approx(free)


@pytest.mark.parametrize("budget", [PureDP(2.0), ApproxDP(0.5, 1e-6)], ids=["pure", "approximate"])
def test_a_margin_lowers_the_least_ridge_of_several_classes(budget):
    """To 0.7 of that at which the curvature is free, where nothing else asks for more; the logistic loss keeps all of it."""
    classes = list(range(7))
    least = ERMClassifier(budget, classes=classes, loss="logistic").plan(10**6, 54).alpha
    hinge = LinearSVC(budget, classes=classes, loss="logistic_hinge", smoothing=0.2).plan(10**6, 54)
    free = curvature_free_l2(budget, hinge.problem.loss_bounds, hinge.problem.row_norm, hinge.problem.neighbours)
    assert least * 10**6 == pytest.approx(free)
    assert hinge.l2 == pytest.approx(0.7 * free)


def counts(n=1500, seed=0):
    """Rows and counts whose logarithmic mean is linear in them."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-0.5, 0.5, size=(n, 3))
    return X, rng.poisson(np.exp(X @ [1.0, -1.0, 0.5] + 0.3))


@pytest.mark.parametrize("mechanism", ["objective", "output"])
def test_an_alpha_that_counts_do_not_allow_is_raised_and_stated(mechanism, tmp_path):
    """200 rows at bounds of 1000 and 10,000: the loss may bend by 1e4, and an alpha of 1e-5 cannot be certified."""
    asked = PoissonRegressor(1e6, row_norm=1e3, target_bound=1e4, alpha=1e-5, mechanism=mechanism)
    plan = asked.plan(200, 3)
    assert plan.alpha > 1e-5
    assert plan.problem.l2 == 1e-5 * 200
    assert plan.added_l2 == plan.l2 - plan.problem.l2
    assert "was added for the proof" in str(plan)
    # No more than is needed: at a tenth less there is no plan, and to ask for the raised one gives the same.
    with pytest.raises(InsufficientRegularisation):
        MECHANISMS[mechanism].plan(replace(plan.problem, l2=plan.l2 / 1.11), plan.budget)
    same = clone(asked).set_params(alpha=plan.alpha).plan(200, 3)
    assert same.l2 == pytest.approx(plan.l2, rel=1e-12)
    assert same.radius == pytest.approx(plan.radius, rel=1e-6)
    fitted = asked.fit(*counts(200))
    assert fitted.alpha_ == plan.alpha
    fitted.save(tmp_path / "model.json")
    assert confide.load(tmp_path / "model.json").alpha_ == plan.alpha


def test_an_alpha_that_other_losses_do_not_allow_is_refused():
    """There a larger one is the user's to choose."""
    with pytest.raises(InsufficientRegularisation):
        HuberRegressor(1e6, row_norm=1e3, target_bound=1e4, alpha=1e-9).plan(200, 10)


def test_hats_of_a_typical_row_have_a_mean_square_of_two_thirds():
    """Measured on made-up numbers that are even on their scale; a guess of 1 or of 1/3 is off by half or more."""
    levels = {"categories": ["u", "v", "w"], "other": "u"}
    columns = {"a": {"low": 0, "high": 10, "knots": 4}, "b": {"low": 0, "high": 10}, "c": levels}
    encoder = Encoder(Schema(columns=columns, interact=[["a", "c"]]))
    rng = np.random.default_rng(0)
    numbers = {name: rng.uniform(0, 10, 20_000) for name in "ab"}
    rows = encoder.transform(pd.DataFrame(numbers | {"c": rng.choice(list("uvw"), 20_000)}))
    assert usual_norm_of_curves(encoder) ** 2 == pytest.approx((rows**2).sum(axis=1).mean(), rel=0.01)
    lines = Encoder(Schema(columns={"b": columns["b"], "c": columns["c"]}, interact=[["b", "c"]]))
    assert usual_norm_of_curves(lines) is None


@pytest.mark.parametrize(
    ("knots", "expected"), [(0, False), (2, False), ([2.0, 5.0], False), (3, True), ([1.0, 2.0, 5.0], True)]
)
def test_an_effect_with_three_knots_is_a_curve(knots, expected):
    """One column with so many knots is enough."""
    number = {"low": 0, "high": 10}
    columns = {"a": number | {"knots": 1}, "b": number | {"knots": knots}, "c": {"categories": list("uvwxyz")}}
    assert has_curves(Encoder(Schema(columns))) is expected


@pytest.mark.parametrize("knots", [0, 1, 3])
def test_a_typical_row_counts_coarse_products_by_their_scale_and_random_features_by_their_norm(knots):
    """Measured as above: a scale that is not squared, or features that are left out, are off by far more."""
    columns = {"a": {"low": 0, "high": 10, "knots": 4}, "c": {"categories": ["u", "v", "w"], "other": "u"}}
    interact = [{"columns": ["a", "c"], "knots": knots, "scale": 0.5}]
    numbers = pd.DataFrame({"a": np.linspace(0, 10, 6001), "c": ["u", "v", "w"] * 2000 + ["u"]})
    for features, more in ((None, 0.0), ({"number": 4, "length_scale": 1, "norm": 2}, 4.0)):
        encoder = Encoder(Schema(columns, interact=interact, random_features=features))
        square = (encoder.transform(numbers) ** 2).sum(axis=1).mean() + more
        guess = usual_norm_of_curves(encoder) ** 2
        assert guess == pytest.approx(square, rel=0.01)
    straight = {"b": {"low": 0, "high": 1, "knots": 0}}
    assert usual_norm_of_curves(Encoder(Schema(straight))) is None
    features = {"number": 4, "length_scale": 1, "norm": 2}
    assert usual_norm_of_curves(Encoder(Schema(straight, random_features=features))) == pytest.approx((1 / 3 + 4) ** 0.5)


def test_the_usual_norm_counts_a_level_in_full_and_a_number_by_a_third():
    """The mean square of a number spread evenly below its bound; the same for a ball; the intercept is a constant."""
    assert usual_norm(BallBound(3.0), 0.0) == pytest.approx(math.sqrt(9.0 / 3.0))
    assert usual_norm(BallBound(3.0), 2.0) == pytest.approx(math.sqrt(9.0 / 3.0 + 4.0))
    mixed = GroupBound((1, 4, 1), (0.9, 0.5, 0.6), (False, True, False))
    assert usual_norm(mixed, 0.0) == pytest.approx(math.sqrt(0.81 / 3.0 + 0.25 + 0.36 / 3.0))


def test_the_balanced_ridge_is_the_noise_over_the_expected_weights():
    """|b| S / B, with B = 3.5 (n S / |b|)^(1/3) for noise in the objective and 2.5 for noise on the weights."""
    noise = {"noise_norm": 30.0, "weight": 1e5, "row_norm": 2.0}
    expected = 3.5 * (1e5 * 2.0 / 30.0) ** (1.0 / 3.0)
    assert balanced_l2(**noise, on_weights=False) == pytest.approx(60.0 / expected)
    assert balanced_l2(**noise, on_weights=True) == pytest.approx(60.0 / 2.5)
    assert balanced_l2(**noise, on_weights=False, score_size=0.5) == pytest.approx(60.0 / (2.0 * 0.5))


@pytest.mark.parametrize(("neighbours", "shift"), [("replace-one", 2.0), ("add-or-remove-one", 1.0)])
def test_curvature_is_free_a_little_above_t_times_the_shift_over_epsilon(neighbours, shift):
    """t shift R^2 / epsilon; a loss without curvature bound has no such ridge."""
    relation = Neighbours.parse(neighbours)
    free = curvature_free_l2(PureDP(0.5), LogisticLoss().constants, 3.0, relation)
    assert 1.0 < free / (LogisticLoss().constants.tail * shift * 9.0 / 0.5) < 1.1
    assert curvature_free_l2(PureDP(0.5), Hinge().constants, 3.0, relation) == 0.0


def test_the_ridge_of_noisy_sums_grows_with_the_largest_eigenvalue_of_their_noise():
    """A symmetric matrix of such noise has eigenvalues up to 2 t sqrt(D); the ridge is about a third of that."""
    noise = np.random.default_rng(0).normal(size=(400, 400)) * 3.0
    largest = np.linalg.eigvalsh(np.triu(noise) + np.triu(noise, 1).T)[-1]
    assert largest == pytest.approx(2.0 * 3.0 * 20.0, rel=0.05)
    assert noise_l2(3.0, 400) == pytest.approx(0.35 * largest, rel=0.05)


def test_an_alpha_that_was_asked_for_is_kept_where_it_can_be():
    """And an automatic one is not that of the problem, whatever stands there."""
    problem = LogisticRegression(1.0, alpha=0.1).plan(300, 2).problem
    asked = AlphaRule(is_automatic=False, score_size=None, is_raised=False, for_intervals=False)
    assert plan_with_alpha(ObjectivePerturbation(), problem, PureDP(1.0), asked).problem.l2 == 30.0
    automatic = replace(asked, is_automatic=True)
    plans = [plan_with_alpha(ObjectivePerturbation(), replace(problem, l2=l2), PureDP(1.0), automatic) for l2 in (30.0, 7.0)]
    assert plans[0] == plans[1]


def test_with_a_prior_the_distance_is_half_the_norm_where_noise_is_large():
    """Up to t = n S / |b| = 50 half, from 200 on all of it, and sqrt(t / 200) of it between; not for noise on weights."""
    for ratio, share in ((10.0, 0.5), (50.0, 0.5), (100.0, math.sqrt(0.5)), (200.0, 1.0), (1e4, 1.0)):
        facts = {"noise_norm": 2e5 / ratio, "weight": 1e5, "row_norm": 2.0}
        without, with_prior = (balanced_l2(**facts, on_weights=False, has_prior=has) for has in (False, True))
        assert with_prior == pytest.approx(without / share)
        assert balanced_l2(**facts, on_weights=True, has_prior=True) == balanced_l2(**facts, on_weights=True)


def test_a_plan_with_a_prior_takes_the_larger_ridge_and_one_of_zeros_does_not():
    """Twice the automatic alpha at a small budget, that of a fit without a prior at a large one."""
    for budget, ratio in ((ApproxDP(0.02, 1e-6), 2.0), (ApproxDP(5.0, 1e-6), 1.0)):
        # A fit with a prior has no centre of the rows.
        plain = LogisticRegression(budget, centre=False).plan(3000, 30).alpha
        near = LogisticRegression(budget, prior=(np.ones(30), 0.0))
        assert near.plan(3000, 30).alpha == pytest.approx(ratio * plain, rel=0.05)
        assert near.set_params(prior=(np.zeros(30), 0.0)).plan(3000, 30).alpha == plain


def test_a_prior_too_long_for_any_ridge_is_refused_in_words():
    """From public facts: the message names the prior."""
    with pytest.raises(confide.ParameterError, match="fewer rows, a shorter prior or a larger budget"):
        LogisticRegression(1.0, prior=(np.full(3, 1e12), 0.0)).plan(3000, 3)


def test_long_categories_have_a_plan_or_a_refusal_at_once():
    """Under a pure budget: 20,000 levels; 100,000, where doubles do not suffice; and sixty categories of other sizes."""

    def schema(*sizes):
        columns = {
            f"z{i}": {"categories": [f"{i}:{k:06d}" for k in range(size)], "other": True} for i, size in enumerate(sizes)
        }
        return confide.Schema.from_dict({"target": {"column": "y", "negative": 0, "positive": 1}, "columns": columns})

    assert confide.LogisticRegression(1.0, schema=schema(20_000)).plan(30_000).alpha > 0.0
    with pytest.raises(confide.ParameterError, match="each level of a category is one"):
        confide.LogisticRegression(1.0, schema=schema(100_000)).plan(1_000_000)
    assert confide.LogisticRegression(1.0, schema=schema(*range(3, 63))).plan(30_000).alpha > 0.0
