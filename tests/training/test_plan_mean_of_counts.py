"""When a part of the budget makes predicted counts right in the mean, and what a fit does with it."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import confide
from confide import AdditiveRegressor, ApproxDP, Ledger, PoissonRegressor, PureDP, Schema
from confide.errors import ParameterError
from confide.privacy.budgets import ZCDP
from confide.privacy.events import PureMechanism
from confide.privacy.gaussian import GaussianMechanism
from confide.privacy.matching import CountsAndResiduals, _is_paid, check_parts
from confide.privacy.objective_account import GaussianObjective
from confide.training.fit import lattices_of
from confide.training.plan import STEPS, Draft, noise_in_the_mean

BUDGETS = [PureDP(0.5), ApproxDP(0.5, 1e-6), ZCDP(0.02)]
SCHEMA = Schema({"x": {"low": -1, "high": 1}, "z": {"low": 0, "high": 1}}, target={"column": "visits", "low": 0, "high": 20})


def table(n=6000, seed=0):
    """Counts with a mean far from 1, in a frame with the columns of `SCHEMA`."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame({"x": rng.uniform(-1, 1, n), "z": rng.uniform(0, 1, n)})
    frame["visits"] = np.minimum(rng.poisson(np.exp(1.2 + 0.5 * frame["x"]) * rng.gamma(1.0, 1.0, n)), 20)
    return frame


def parts(frame):
    """Rows and counts."""
    return frame[["x", "z"]], frame["visits"]


def _beside(curve):
    """What a curve counts beside the weights: of noisy gradients it is that of all releases together."""
    return curve.mu if isinstance(curve, GaussianMechanism) else curve.beside_mu


def ratio(model, frame):
    """The mean prediction over the mean count."""
    return model.predict(frame[["x", "z"]]).mean() / frame["visits"].mean()


@pytest.mark.parametrize("budget", BUDGETS, ids=lambda budget: budget.kind)
@pytest.mark.parametrize("neighbours", ["replace-one", "add-or-remove-one"])
@pytest.mark.parametrize("persons", [1, 2])
def test_one_event_of_the_whole_budget_covers_weights_and_sums(budget, neighbours, persons):
    """Every currency, both relations, persons with two rows: the plan states it, and its share is at most a tenth."""
    bounds = (60_000, 90_000) if neighbours == "add-or-remove-one" else None
    given = {"neighbours": neighbours, "n_rows_bounds": bounds, "max_rows_per_person": persons, "target_bound": 20.0}
    plan = PoissonRegressor(budget, **given).plan(60_000, 10)
    assert plan.event.budget == budget == plan.matching.budget
    # Nothing may be refused after the charge.
    assert _is_paid(plan, plan.matching)
    assert getattr(plan.budget, "delta", None) == getattr(budget, "delta", None)
    # OpenDP is asked of all noise before the charge.
    assert plan.matching.lattice in lattices_of(plan)
    if isinstance(plan.event.curve, GaussianMechanism | GaussianObjective):
        assert math.hypot(plan.matching.mu, 0.0 if plan.centring is None else plan.centring.mu) <= _beside(plan.event.curve)
    assert 0.01 <= plan.matching.share <= 0.1
    assert "right in the mean" in str(plan)
    assert plan.to_dict()["matching"]["share"] == plan.matching.share
    assert plan.to_dict()["budget"] == budget.to_dict()
    without = PoissonRegressor(budget, **given, match_mean=False).plan(60_000, 10)
    assert without.matching is None
    assert "right in the mean" not in str(without)


def test_a_pure_release_within_an_approximate_budget_keeps_its_curve():
    """Epsilons of weights and sums add up, and the ledger of Rényi orders sees no delta."""
    plan = PoissonRegressor(ApproxDP(0.5, 1e-9), target_bound=20.0, mechanism="objective").plan(20_000, 2)
    assert plan.noise.law == "laplace"
    assert isinstance(plan.event.curve, PureMechanism)
    assert 0.5 <= plan.event.curve.epsilon <= 0.5001


def test_the_share_is_what_the_noise_asks_for():
    """A tenth where noise is large, less where a smaller share is precise enough, and no matching where it is too large."""
    shares = []
    for n in (3_000, 15_000, 50_000, 5_000_000):
        plan = PoissonRegressor(PureDP(1.0), target_bound=20.0).plan(n, 5)
        shares.append(None if plan.matching is None else plan.matching.share)
    assert shares[0] is None
    assert shares[1] == 0.1
    assert 0.01 < shares[2] < 0.1
    assert shares[3] == 0.01
    plan = PoissonRegressor(PureDP(1.0), target_bound=20.0).plan(50_000, 5)
    assert noise_in_the_mean(plan.matching, plan) == pytest.approx(0.0015, rel=1e-6)
    plan = PoissonRegressor(ZCDP(0.1), target_bound=20.0).plan(15_000, 5)
    assert plan.matching.share == pytest.approx(0.04, rel=0.02)
    assert noise_in_the_mean(plan.matching, plan) == pytest.approx(0.0015, rel=1e-6)


@pytest.mark.parametrize(("noise", "is_matched"), [(0.0045, True), (0.0055, False)])
def test_there_are_no_sums_where_even_a_tenth_of_the_budget_leaves_them_too_noisy(noise, is_matched):
    """Half a percent of the bound on counts, in the mean residual, is the most."""
    # The deviation of the noise on the sum is sqrt(2) (2 + 1/4) B over a tenth of epsilon.
    n = round(math.sqrt(2.0) * 2.25 / 0.1 / noise)
    assert (PoissonRegressor(PureDP(1.0), target_bound=20.0).plan(n, 2).matching is not None) == is_matched


@pytest.mark.parametrize("what", ["noise", "ridge"])
@pytest.mark.parametrize(("growth", "is_matched"), [(1.4, True), (1.6, False)])
def test_sums_that_would_cost_the_weights_half_as_much_again_are_not_made(growth, is_matched, what):
    """Noise and ridge of the weights, with what is left of the budget, are at most one and a half times as large."""
    model = PoissonRegressor(PureDP(1.0), target_bound=20.0)
    settings, plan = model._settings(None), model.set_params(match_mean=False).plan(20_000, 2)
    louder = replace(plan.noise, scale=plan.noise.scale / growth)
    made = replace(plan, noise=louder) if what == "noise" else replace(plan, l2=growth * plan.l2)
    draft = Draft(settings, settings, 2, 20_000)
    assert STEPS[-1].name == "mean of counts"
    assert STEPS[-1].better(replace(draft, made=made), replace(draft, made=plan)) == is_matched


@pytest.mark.parametrize(
    "given",
    [{"match_mean": False}, {"fit_intercept": False}, {"l1_ratio": 0.5}, {"budget": math.inf}],
    ids=["switched off", "no intercept", "sparse", "not private"],
)
def test_other_fits_keep_the_whole_budget_for_the_weights(given):
    """Each of these has no matching, and says nothing of one."""
    plan = PoissonRegressor(**({"budget": 1.0, "target_bound": 20.0} | given)).plan(20_000, 5)
    assert plan.matching is None
    assert "matching" not in plan.to_dict()


def test_another_value_is_refused():
    """As for the centre, there is "auto" and there is False."""
    for value in (True, "yes", None):
        with pytest.raises(confide.ParameterError, match="match_mean must be"):
            PoissonRegressor(1.0, target_bound=5.0, match_mean=value).plan(1000, 2)


@pytest.mark.parametrize("make", [PoissonRegressor, AdditiveRegressor])
def test_predictions_are_right_in_the_mean(make, tmp_path):
    """A clipped loss predicts too few. With sums they are right, effects and file agree, and the ledger has one charge."""
    frame, ledger = table(), Ledger(limit=4.0)
    kind = {"loss": "poisson"} if make is AdditiveRegressor else {}
    given = {"schema": SCHEMA, "threshold": 4.0, **kind}
    plain = make(4.0, **given, match_mean=False, random_state=0).fit(*parts(frame))
    assert ratio(plain, frame) < 0.9
    model = make(4.0, **given, ledger=ledger, random_state=0).fit(*parts(frame))
    assert ratio(model, frame) == pytest.approx(1.0, abs=0.03)
    assert "right in the mean" in model.guarantee_.statement()
    assert len(ledger.entries()) == 1
    model.save(tmp_path / "model.json")
    again = confide.load(tmp_path / "model.json")
    assert again.intercept_ == model.intercept_
    assert (again.predict(frame[["x", "z"]]) == model.predict(frame[["x", "z"]])).all()
    assert again.guarantee_.statement() == model.guarantee_.statement()


def test_weights_of_rows_count():
    """Rows that weigh 0 say nothing of the mean."""
    frame = table()
    X, y = frame[["x", "z"]].to_numpy(), frame["visits"].to_numpy(float)
    weights = (y > 0).astype(float)
    model = PoissonRegressor(PureDP(50.0), target_bound=20.0, random_state=0).fit(X, y, sample_weight=weights)
    assert model.plan(*X.shape).matching is not None
    assert model.predict(X)[y > 0].mean() == pytest.approx(y[y > 0].mean(), rel=0.03)


def test_files_and_arrays_release_the_same(tmp_path):
    """The sums are made over whatever holds the rows."""
    frame = table()
    frame.to_csv(tmp_path / "rows.csv", index=False)
    model = PoissonRegressor(2.0, schema=SCHEMA, random_state=0)
    in_memory = model.fit(*parts(frame)).intercept_
    from_file = model.fit(confide.open_rows(tmp_path / "rows.csv", SCHEMA)).intercept_
    assert model.plan(6000).matching is not None
    assert in_memory == from_file


class Mine(CountsAndResiduals):
    """A query that may do anything with the rows."""


@pytest.mark.parametrize("budget", BUDGETS)
def test_a_plan_has_one_part_of_each_kind_and_none_of_another(budget):
    """A doubled part would be released again under one charge, and a foreign one would get the rows."""
    plan = PoissonRegressor(budget, target_bound=20.0).plan(60_000, 10)
    (part,) = [part for part in plan.parts if type(part.query) is CountsAndResiduals]
    check_parts(plan)
    query = Mine(*(getattr(part.query, name) for name in part.query.__dataclass_fields__))
    others = [
        replace(part, share=0.5 * part.share),
        replace(part, query=query),
        type("Foreign", (), {"query": part.query})(),
    ]
    for parts in ((*plan.parts, part), *((*plan.parts, other) for other in others), (others[1],), (others[2],)):
        with pytest.raises(ParameterError, match="made by another mechanism"):
            check_parts(replace(plan, parts=parts))
        with pytest.raises(ParameterError, match="made by another mechanism"):
            lattices_of(replace(plan, parts=parts))
