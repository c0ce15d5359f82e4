"""`penalty=` through every door: files, parties, additive models and their effects, searches, parts, plans, persons."""

from __future__ import annotations

import threading
from dataclasses import replace
from multiprocessing import Pipe

import numpy as np
import pandas as pd
import pytest
from scipy import optimize
from sklearn.base import clone

import confide
from confide import ApproxDP, ParameterError, Schema, Smooth, StronglyConvex, planning
from confide.report.verification import FAILED, verify
from confide.solvers.fallback import NewtonThenFallback
from confide.training import fit
from tests.privacy.own_penalties import CONVEXITY, LOG_COSH, OF_LENGTH

BUDGET = ApproxDP(2.0, 1e-6)
SCHEMA = Schema(
    columns={"age": {"low": 0, "high": 100, "knots": 9}, "level": {"categories": list("abcd"), "other": True}},
    target={"column": "y", "negative": 0, "positive": 1},
)
PENALTY = {"age": Smooth(30.0), "level": Smooth(5.0)}
RNG = np.random.default_rng(0)
FRAME = pd.DataFrame({"age": RNG.uniform(0, 100, 600), "level": RNG.choice([*"abcd", "z"], 600)})
LABELS = (FRAME["age"] > 50.0).astype(int).to_numpy()
ROWS = RNG.uniform(-0.5, 0.5, size=(600, 2))


def fitted(**others):
    """A model of the frame in memory."""
    model = confide.LogisticRegression(BUDGET, schema=SCHEMA, penalty=PENALTY, random_state=0, **others)
    return model.fit(FRAME, LABELS)


def test_a_file_gives_the_model_of_the_same_rows_in_memory(tmp_path):
    """To the last digits, at the same seed."""
    FRAME.assign(y=LABELS).to_csv(tmp_path / "rows.csv", index=False)
    model = confide.LogisticRegression(BUDGET, penalty=PENALTY, random_state=0)
    model.fit(confide.open_rows(tmp_path / "rows.csv", SCHEMA))
    assert model.coef_ == pytest.approx(fitted().coef_, rel=1e-4, abs=1e-6)


@pytest.mark.parametrize("neighbours", [{}, {"neighbours": "add-or-remove-one", "n_rows_bounds": (500, 700)}])
def test_both_relations_and_persons_have_a_plan_and_a_guarantee(neighbours):
    """The plan is that of the fit, and the statement speaks of the form."""
    model = fitted(**neighbours, max_rows_per_person=2)
    assert "quadratic form" in model.guarantee_.statement()
    n_rows = None if neighbours else 600
    assert model.plan(n_rows=n_rows).alpha == pytest.approx(model.alpha_)


def test_parties_bring_their_rows_to_the_norm_themselves():
    """Two parties with half of the rows each: the model of all rows in one place."""
    model = confide.LogisticRegression(BUDGET, schema=SCHEMA, penalty=PENALTY, random_state=0, centre=False)
    pairs, threads = [Pipe() for _ in range(2)], []
    for (_, there), part in zip(pairs, (slice(0, 300), slice(300, 600)), strict=True):
        work = (there, model, FRAME[part], LABELS[part])
        threads.append(threading.Thread(target=confide.take_part, args=work))
        threads[-1].start()
    model.fit(confide.FederatedRows(SCHEMA, [here for here, _ in pairs]))
    for thread in threads:
        thread.join(20.0)
    assert model.coef_ == pytest.approx(fitted(centre=False).coef_, rel=1e-3, abs=1e-5)


def test_additive_models_have_smooth_effects():
    """A zigzag of the released curve is shorter than without smoothing; the model has effects of its columns."""
    schema = Schema(columns={"age": {"low": 0, "high": 100, "knots": 30}}, target=SCHEMA.target)
    common = {"schema": schema, "random_state": 1, "centre": False, "loss": "logistic"}
    rough, smooth = (
        confide.AdditiveClassifier(BUDGET, penalty=penalty, **common).fit(FRAME[["age"]], LABELS)
        for penalty in (None, "smooth")
    )
    bends = [np.abs(np.diff(model.coef_[0], 2)).sum() / np.ptp(model.coef_) for model in (rough, smooth)]
    assert bends[1] < 0.5 * bends[0]
    assert len(smooth.effects_.head()) > 0


def test_a_search_and_parts_give_weights_of_the_columns():
    """Named strengths of a frame of numbers, huge ones for the column that tells nothing."""
    frame = pd.DataFrame(ROWS, columns=["a", "b"])
    labels = ROWS[:, 0] > 0.0
    model = confide.LogisticRegression(BUDGET, penalty={"b": 1e4})
    found = confide.PrivateSearchCV(model, {"alpha": [0.001, 0.01]}, budget=ApproxDP(20.0, 1e-6), random_state=0)
    weights = found.fit(frame, labels).best_estimator_.coef_[0]
    assert abs(weights[1]) < 0.05 * abs(weights[0])


def test_what_cannot_be_is_refused_before_the_charge():
    """A ledger that is given is not charged."""
    ledger = confide.Ledger(limit=BUDGET)
    for penalty, message in (([1.0], "has 1 columns"), ({"c": 1.0}, "no column. Columns are"), ("smooth", "Give a schema")):
        with pytest.raises(ParameterError, match=message):
            confide.LogisticRegression(1.0, penalty=penalty, ledger=ledger).fit(ROWS, ROWS[:, 0] > 0.0)
    assert len(ledger.entries()) == 0


def fitted_by_hand(X, targets, alpha):
    """Weights and intercept of the logistic loss with the penalty and the intercept's ridge, without the library."""

    def value(w):
        scores = np.where(targets, 1.0, -1.0) * (X @ w[:-1] + w[-1])
        penalty = OF_LENGTH.value(w[:-1]) + 0.5 * CONVEXITY * w[-1] ** 2
        return np.mean(np.logaddexp(0.0, -scores)) + alpha * penalty

    return optimize.minimize(value, np.zeros(X.shape[1] + 1), method="BFGS", options={"gtol": 1e-9}).x


def test_without_privacy_a_penalty_of_ones_own_is_minimised():
    """Against a general-purpose optimiser; alpha multiplies the penalty."""
    rng = np.random.default_rng(1)
    X = rng.uniform(-0.5, 0.5, size=(300, 3))
    targets = X @ [4.0, -2.0, 1.0] + 0.3 * rng.normal(size=300) > 0.0
    model = confide.LogisticRegression(float("inf"), penalty=OF_LENGTH, alpha=0.05).fit(X, targets)
    expected = fitted_by_hand(X, targets, 0.05)
    assert np.append(model.coef_[0], model.intercept_[0]) == pytest.approx(expected, abs=2e-5)
    assert model.alpha_ == pytest.approx(0.05)
    wide = confide.LogisticRegression(float("inf"), penalty=LOG_COSH, alpha=0.05)
    wide.fit(rng.uniform(-0.02, 0.02, size=(20, 2100)), np.arange(20) % 2)
    assert np.isfinite(wide.coef_).all()


OF_OWN = [
    (confide.LogisticRegression, {}, 2),
    (confide.LogisticRegression, {}, 3),
    (confide.LinearSVC, {"loss": "hinge"}, 2),
    (confide.HuberRegressor, {"target_bound": 1.0}, 0),
    (confide.Ridge, {"target_bound": 1.0}, 0),
    (confide.PoissonRegressor, {"target_bound": 5.0}, 0),
]


@pytest.mark.parametrize(("make", "parameters", "n_classes"), OF_OWN)
def test_a_model_with_a_penalty_of_ones_own_is_saved_and_its_plan_is_verified(make, parameters, n_classes, tmp_path):
    """A file holds name and constants, from which the plan is made again; a fit needs the functions."""
    rng = np.random.default_rng(2)
    X = rng.uniform(-0.5, 0.5, size=(2_000, 3))
    targets = np.arange(2_000) % n_classes if n_classes else rng.uniform(size=2_000)
    model = make(confide.ApproxDP(1.0, 1e-6), penalty=LOG_COSH, **parameters).fit(X, targets)
    assert any("log-cosh and ridge" in sentence for sentence in model.guarantee_.assumptions)
    assert "strength of log-cosh and ridge" in str(model.plan(2_000, 3, **({"n_classes": 3} if n_classes == 3 else {})))
    model.save(tmp_path / "m.json")
    loaded = confide.load(tmp_path / "m.json")
    assert np.array_equal(loaded.predict(X), model.predict(X))
    assert not [finding for finding in verify(loaded) if finding.outcome == FAILED]
    with pytest.raises(ParameterError, match="files do not hold its functions"):
        clone(loaded).set_params(ledger=None, random_state=0).fit(X, targets)
    loaded.penalty = loaded.penalty | {"strong_convexity": 1.0}
    assert [finding for finding in verify(loaded) if finding.outcome == FAILED]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"mechanism": "gradient"}, "mechanism='gradient'"),
        ({"inference_share": 0.2}, "no intervals"),
        ({"l1_ratio": 0.5}, "leave out l1_ratio"),
        ({"prior": np.ones(3)}, "prior"),
        ({"penalty": StronglyConvex(None, None, 1.0, 1.0)}, "files do not hold"),
        ({"penalty": replace(LOG_COSH, strong_convexity=1.4)}, "not strongly convex"),
        ({"penalty": "ridge"}, "must be one of"),
        ({"penalty": 3.0}, "StronglyConvex"),
    ],
)
def test_what_has_no_penalty_of_ones_own_is_refused_before_the_charge(change, words, tmp_path):
    """The ledger stays empty."""
    ledger = confide.Ledger(tmp_path / "l.db", limit=confide.ApproxDP(5.0, 1e-5))
    given = {"penalty": LOG_COSH, "ledger": ledger} | change
    with pytest.raises(ParameterError, match=words):
        confide.LogisticRegression(confide.ApproxDP(1.0, 1e-6), **given).fit(np.zeros((50, 3)), np.arange(50) % 2)
    assert len(ledger.entries()) == 0


def test_columns_of_a_schema_may_have_a_penalty_of_ones_own():
    """Noise keeps the shape of the columns, and the weights of levels have the penalty."""
    schema = Schema(columns={"a": {"low": 0, "high": 1}, "b": {"categories": ["x", "y", "z"]}})
    rng = np.random.default_rng(3)
    frame = pd.DataFrame({"a": rng.uniform(size=2_000), "b": rng.choice(list("xyz"), 2_000)})
    targets = (frame["a"] > 0.5) | (frame["b"] == "x")
    plain = confide.LogisticRegression(1.0, schema=schema, alpha=0.01, centre=False, mechanism="objective")
    model = clone(plain).set_params(penalty=LOG_COSH, alpha=0.02).fit(frame, targets)
    assert model.score(frame, targets) > 0.8
    # A ridge of .5 in the penalty at .02 is that of .01 alone: the plans have the same noise.
    assert model.plan(2_000).noise == plain.plan(2_000).noise


@pytest.mark.parametrize(("penalty", "schema"), [(LOG_COSH, None), (PENALTY, SCHEMA)], ids=["of one's own", "of groups"])
def test_the_method_that_knows_hessians_of_a_ridge_is_not_used(penalty, schema, monkeypatch):
    """Its theorem does not hold for such objectives, and a refusal after the charge would tell of the rows."""
    seen, plain = [], fit.MECHANISMS["objective"]

    class Spy:
        def release(self, plan, source, solver, entropy):
            seen.append((plan.problem.penalty, solver))
            return plain.release(plan, source, solver, entropy)

    monkeypatch.setitem(fit.MECHANISMS, "objective", Spy())
    model = confide.LogisticRegression(1.0, penalty=penalty, schema=schema, mechanism="objective", centre=False)
    monkeypatch.setattr(Spy, "plan", lambda _, *given: plain.plan(*given), raising=False)
    model.fit(ROWS if schema is None else FRAME, LABELS)
    ((used, solver),) = seen
    assert ((used.function is None), (used.form is None)) == (schema is not None, schema is None)
    assert solver == NewtonThenFallback()


@pytest.mark.parametrize("make", [confide.HuberRegressor, confide.PoissonRegressor])
def test_noisy_gradients_do_not_take_the_place_of_a_penalty_of_ones_own(make):
    """They have the ridge alone; without the penalty "auto" stands for them here, where noise is large."""
    plain = make(confide.ZCDP(0.01), target_bound=1.0)
    assert plain.plan(3_000, 4).mechanism == "gradient"
    plan = plain.set_params(penalty=LOG_COSH).plan(3_000, 4)
    assert (plan.mechanism, plan.problem.penalty.function, plan.centring) == ("objective", LOG_COSH, None)


@pytest.mark.parametrize("others", [{"penalty": LOG_COSH}, {"l1_ratio": 0.3}])
def test_bounds_and_forecasts_that_were_proven_for_the_ridge_are_refused(others):
    """The theorems compare with the ridge of the best weights."""
    model = confide.LogisticRegression(1.0, centre=False, mechanism="output", alpha=0.1, **others)
    plan = model.plan(5_000, 3)
    for bound in (planning.utility_bound, planning.excess_risk_bound):
        with pytest.raises(ParameterError, match="penalty of your own"):
            bound(plan)
    if "penalty" in others:
        with pytest.raises(ParameterError, match="is your own"):
            planning.simulate(model, 5_000, 3, error=0.1)
