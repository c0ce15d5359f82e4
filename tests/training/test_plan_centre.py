"""When a part of the budget finds the middle of the rows, and what a fit does with it."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
import scipy.sparse

import confide
from confide import ApproxDP, Ledger, LogisticRegression, Schema
from confide.erm.group_bounds import GroupBound
from confide.erm.row_bounds import BallBound, Centred
from confide.erm.target_losses import SquaredLoss
from confide.privacy.budgets import ZCDP, PureDP
from confide.training.auto_mechanism import plan_of_weights
from confide.training.plan import make_plan
from confide.training.settings import ScoreLoss, around_levels
from tests.training.examples import settings

SMALL = ApproxDP(0.1, 1e-5)


def with_centre(**changes):
    return settings(**({"budget": SMALL, "intercept": 1.0, "centre": True} | changes))


def rows_off_the_origin(n=4000, d=20, seed=0):
    """Rows that lie far from 0 and close to each other, and labels that follow from the small differences."""
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(n, d)) * 0.03 + 0.2
    return rows, ((rows - 0.2) @ np.arange(1.0, d + 1.0) > 0.0).astype(int)


@pytest.mark.parametrize("budget", [SMALL, ZCDP(0.005)], ids=["approximate", "concentrated"])
def test_a_fit_with_much_noise_finds_the_middle_of_the_rows(budget):
    """The plan of the weights is for rows of the same norm, and one event covers both releases."""
    plan = make_plan(with_centre(budget=budget, mechanism="objective"), 20, 2_000 if budget == SMALL else 1_000)
    assert plan.centring is not None
    assert plan.problem.row_bound == Centred.unmoved(BallBound(1.0), 20)
    assert plan.problem.beside_mu == plan.centring.mu
    assert plan.event.curve.beside_mu == plan.centring.mu
    assert plan.event.budget == budget
    assert "finds the middle of the rows" in str(plan)
    assert plan.to_dict()["centring"]["share"] == plan.centring.share


@pytest.mark.parametrize(
    "changes",
    [
        {"centre": False},
        {"budget": PureDP(0.1)},
        {"intercept": 0.0},
        {"row_bound": BallBound(np.inf), "budget": PureDP(np.inf)},
        {"minimised": ScoreLoss(SquaredLoss(1.0, 1.0, by_length=True), score_size=1.0)},
        {"budget": ApproxDP(8.0, 1e-5)},
    ],
    ids=["switched off", "pure", "no intercept", "not private", "by length", "little noise"],
)
def test_other_fits_keep_the_whole_budget_for_the_weights(changes):
    """Their plan is the one without the choice, to the last field."""
    given = with_centre(**{"mechanism": "objective"} | changes)
    plan = make_plan(given, 20, 10_000)
    assert plan.centring is None
    assert plan == plan_of_weights(given, 20, 10_000)


def test_fits_with_intervals_have_no_centre():
    """Moments are those of the rows as they are."""
    plan = LogisticRegression(ApproxDP(4.0, 1e-6), inference_share="auto").plan(20_000, 5)
    assert plan.intervals is not None
    assert plan.centring is None


@pytest.mark.parametrize("form", ["array", "float32", "sparse", "frame"])
@pytest.mark.parametrize("neighbours", ["replace-one", "add-or-remove-one"])
def test_a_centred_fit_is_better_where_rows_lie_off_the_origin(form, neighbours):
    """Over five seeds of the noise, at the same charge; whatever the rows are given as."""
    rows, labels = rows_off_the_origin()
    given = {
        "array": rows,
        "float32": rows.astype(np.float32),
        "sparse": scipy.sparse.csr_array(rows),
        "frame": pd.DataFrame(rows, columns=[f"x{i}" for i in range(20)]),
    }[form]
    more = {} if neighbours == "replace-one" else {"neighbours": neighbours, "n_rows_bounds": (3000, 5000)}
    accuracy = {}
    for centre in ("auto", False):
        fits = [
            LogisticRegression(ApproxDP(0.5, 1e-5), centre=centre, classes=[0, 1], random_state=seed, **more)
            for seed in range(5)
        ]
        accuracy[centre] = np.mean([fit.fit(given, labels).score(given, labels) for fit in fits])
    assert accuracy["auto"] > accuracy[False] + 0.08


def test_the_rows_of_a_schema_are_centred_and_the_model_is_saved_as_any_other(tmp_path):
    """A category and numbers with knots, whose rows are coded; scores and files know nothing of a centre."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({name: rng.uniform(0, 1, 3000) for name in "abdefg"} | {"c": rng.choice(["u", "v", "w"], 3000)})
    labels = (frame["a"] + 0.3 * (frame["c"] == "u") > 0.6).astype(int)
    number = {"low": 0.0, "high": 1.0, "knots": 6}
    schema = Schema(columns={"c": {"categories": ["u", "v", "w"]}} | dict.fromkeys("abdefg", number))
    ledger = Ledger(limit=ApproxDP(1.0, 1e-5))
    model = LogisticRegression(ApproxDP(1.0, 1e-5), schema=schema, classes=[0, 1], ledger=ledger).fit(frame, labels)
    assert model.plan(3000).centring is not None
    assert len(ledger.entries()) == 1
    assert ledger.spent() == ApproxDP(1.0, 1e-5)
    assert model.score(frame, labels) > 0.8
    model.save(tmp_path / "model.json")
    again = confide.load(tmp_path / "model.json")
    assert np.array_equal(again.decision_function(frame), model.decision_function(frame))
    statement = model.guarantee_.statement()
    assert "to find their middle; it costs 0.02 of the budget" in statement
    assert "computed only from multiples of 2^" in statement


LEVELS = Schema(
    columns={
        "c": {"categories": ["u", "v", "w", "x"]},
        "d": {"categories": [str(k) for k in range(10)], "other": "0"},
        "a": {"low": 0.0, "high": 1.0, "knots": 6},
        "b": {"low": 0.0, "high": 1.0, "knots": 0},
    }
    | {f"more {k}": {"low": 0.0, "high": 1.0, "knots": 6} for k in range(6)}
)


@pytest.mark.parametrize("kind", [confide.AdditiveClassifier, confide.LinearSVC])
def test_rows_of_a_schema_are_moved_by_the_middle_of_their_levels_and_knots_at_no_cost(kind, tmp_path):
    """A k-th of each group of k columns. Its squared norm is not needed any more, and the constant is as much smaller."""
    given = {"schema": LEVELS, "mechanism": "objective", "classes": [0, 1]}
    budget = ApproxDP(1.0, 1e-5)
    plan, plain = (kind(budget, centre=centre, **given).plan(20_000) for centre in ("auto", False))
    bound, norm = plan.problem.row_bound, plain.problem.row_bound.norm
    assert type(plain.problem.row_bound) is BallBound
    assert bound.inner == BallBound(norm)
    assert bound.centre == (0.25,) * 4 + (0.1,) * 10 + (0.125,) * 8 + (0.0,) + (0.125,) * 48
    left = norm**2 - (0.25 + 0.1 + 7 * 0.125)
    assert bound.radius == pytest.approx(math.sqrt(left), rel=1e-12)
    assert plan.problem.intercept == pytest.approx(math.sqrt(left) / norm, rel=1e-12)
    assert plan.centring is None
    assert plan.problem.beside_mu == 0.0
    assert "known without them" in plan.why()
    assert "both for the moved rows" in str(plan)
    assert plan.noise.norm == pytest.approx(plain.noise.norm, rel=0.02)
    written = plan.to_dict()["row_bound"]
    assert (written["radius"], tuple(written["middle"])) == (bound.radius, bound.centre)
    for others in ({"fit_intercept": False}, {"budget": 1.0}, {"mechanism": "output"}):
        other = kind(**{"budget": budget} | given | others).plan(200_000)
        assert not (other.problem.is_centred and other.centring is None)
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({name: rng.uniform(0, 1, 20_000) for name in LEVELS.column_names})
    frame["c"], frame["d"] = rng.choice(["u", "v", "w", "x"], 20_000), rng.choice([str(k) for k in range(10)], 20_000)
    labels = (frame["a"] + 0.3 * (frame["c"] == "u") > 0.6).astype(int)
    model = kind(budget, random_state=0, **given).fit(frame, labels)
    assert model.score(frame, labels) > 0.9
    said = "Rows are moved by the middle of their levels and knots, which the schema tells without them, and then clipped to"
    assert f"{said} an L2 norm of {bound.radius:.6g}." in str(model.guarantee_)
    unmoved = kind(1.0, random_state=0, schema=LEVELS, classes=[0, 1]).fit(frame, labels)
    assert "moved by the middle" not in str(unmoved.guarantee_)
    model.save(tmp_path / "model.json")
    again = confide.load(tmp_path / "model.json")
    assert np.array_equal(again.decision_function(frame), model.decision_function(frame))


def test_a_middle_that_leaves_too_little_of_a_row_moves_none():
    """Of the norm that a ball allows, half must be left; rows without groups have no middle."""
    groups = GroupBound((2, 2), (1.0, 1.0))
    assert around_levels(groups, BallBound(1.2)).radius == pytest.approx(math.sqrt(0.44))
    assert around_levels(groups, BallBound(1.1)) is None
    assert around_levels(GroupBound((1, 1), (1.0, 1.0)), BallBound(1.0)) is None
    assert around_levels(BallBound(1.0), BallBound(1.0)) is None
    assert around_levels(groups, None) is None


def test_several_classes_have_one_centre():
    """Softmax, and one against the rest."""
    rng = np.random.default_rng(1)
    rows = rng.normal(size=(3000, 3)) * 0.1 + 0.4
    labels = np.argmax(rows, axis=1)
    for loss in (LogisticRegression, confide.LinearSVC):
        model = loss(ApproxDP(0.5, 1e-5), classes=[0, 1, 2], random_state=0).fit(rows, labels)
        without = loss(ApproxDP(0.5, 1e-5), classes=[0, 1, 2], random_state=0, centre=False).fit(rows, labels)
        assert model.plan(3000, 3).centring is not None
        assert model.score(rows, labels) > without.score(rows, labels)


def test_centre_is_auto_or_false():
    """Anything else is refused before rows are read."""
    for value in (True, 0.5, "yes", None):
        with pytest.raises(confide.ParameterError, match="centre must be"):
            LogisticRegression(SMALL, centre=value).plan(1000, 2)
