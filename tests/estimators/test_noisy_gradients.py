"""mechanism="gradient" in every estimator and for every kind of rows: fits, refusals, statements and files."""

from __future__ import annotations

import threading
from multiprocessing import Pipe

import numpy as np
import pytest
from scipy.sparse import csr_array

import confide
from confide import ZCDP, ApproxDP, ParameterError
from confide.data.federated import FederatedRows
from confide.erm.transformed_losses import InterpolatedSlopes
from confide.estimators.parties import take_part
from confide.intake.rows import open_rows
from tests.data.tables import SCHEMA, made_up

BUDGET, N = ZCDP(0.5), 4000
RNG = np.random.default_rng(0)
X = RNG.uniform(-0.5, 0.5, size=(N, 3))
SCORES = X @ [2.0, -1.0, 0.5]
LABELS = (SCORES + 0.1 * RNG.normal(size=N) > 0.1).astype(int)
CLASSES = np.digitize(SCORES, [-0.4, 0.4])
NUMBERS = np.clip(SCORES, -2.0, 2.0)
COUNTS = RNG.poisson(np.exp(SCORES))


class Corner:
    """The hinge, by its slope alone."""

    def derivative(self, margin):
        """The slope."""
        return np.where(margin <= 1.0, -1.0, 0.0)


class Quantile:
    """The loss of the upper quartile, by its slope alone."""

    def derivative(self, score, target):
        """The slope."""
        return np.where(score > target, 0.25, -0.75)


def models(**given):
    """An estimator of each kind, its target, and the score that it should reach."""
    given = {"mechanism": "gradient", **given}
    return {
        "logistic": (confide.LogisticRegression(BUDGET, **given), LABELS, 0.9),
        "softmax": (confide.LogisticRegression(BUDGET, **given), CLASSES, 0.75),
        "svm": (confide.LinearSVC(BUDGET, **given), LABELS, 0.9),
        "hinge": (confide.LinearSVC(BUDGET, loss="hinge", **given), LABELS, 0.9),
        "one against the rest": (confide.LinearSVC(BUDGET, loss="huber_hinge", **given), CLASSES, 0.7),
        "kernel": (confide.KernelSVC(BUDGET, n_features=32, **given), LABELS, 0.8),
        "huber": (confide.HuberRegressor(BUDGET, target_bound=2.0, **given), NUMBERS, 0.8),
        "clipped square": (confide.HuberRegressor(BUDGET, target_bound=2.0, loss="clipped_squared", **given), NUMBERS, 0.8),
        "counts": (confide.PoissonRegressor(BUDGET, target_bound=20.0, **given), COUNTS, 0.1),
        "curves": (confide.AdditiveClassifier(BUDGET, bounds=(-0.5, 0.5), **given), LABELS, 0.85),
        "own margin": (confide.ERMClassifier(BUDGET, loss=Corner(), **given), LABELS, 0.9),
    }


@pytest.mark.parametrize("name", models())
def test_every_estimator_is_fitted_by_noisy_gradients(name):
    """Within its budget, and as accurate as a plain model of these easy rows; the statement says how."""
    model, y, least = models()[name]
    model.set_params(ledger=confide.Ledger(limit=BUDGET)).fit(X, y)
    assert model.score(X, y) > least
    assert model.guarantee_.mechanism == "gradient"
    assert "noisy sums of slopes, which are clipped row by row" in model.guarantee_.statement()
    assert "noisy gradients" in str(model.plan(N, 3, **({"n_classes": 3} if y is CLASSES else {})))


def test_a_quantile_is_fitted_by_its_slope():
    """A quarter of targets lies above the prediction; no other mechanism takes a loss with kinks."""
    noisy = SCORES + RNG.uniform(-0.5, 0.5, N)
    model = confide.ERMRegressor(BUDGET, loss=Quantile(), target_bound=2.0, mechanism="gradient").fit(X, noisy)
    assert np.mean(noisy > model.predict(X)) == pytest.approx(0.25, abs=0.05)
    sentence = "depends only on the row's own score and label or target"
    assert sentence in model.guarantee_.statement()
    assert "convex" not in model.guarantee_.statement()
    for mechanism in ("auto", "objective", "output"):
        with pytest.raises(ParameterError, match="lacks value"):
            confide.ERMRegressor(BUDGET, loss=Quantile(), target_bound=2.0, mechanism=mechanism).plan(N, 3)


def test_a_users_loss_that_declares_more_is_interpolated_too():
    """Its constants are not relied on, but for steeper slopes being clipped."""
    loss = type("Declared", (Corner,), {"lipschitz": 0.5, "smoothness": 1e-3})()
    plan = confide.ERMClassifier(BUDGET, loss=loss, mechanism="gradient").plan(N, 3)
    assert isinstance(plan.problem.loss, InterpolatedSlopes)
    assert plan.problem.loss.constants.lipschitz == 0.5
    assert plan.descent.slope_limit <= 0.5


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"derivative": None}, "lacks derivative"),
        ({"derivative": lambda self, margin: 0.0 * margin}, "declare lipschitz"),
        ({"derivative": lambda self, margin: margin[:1]}, "of the shape of its arguments"),
        ({"derivative": lambda self, margin: np.where(margin > 3.0, np.nan, -1.0)}, "not finite"),
        ({"lipschitz": -1.0}, "it must declare lipschitz"),
    ],
)
def test_slopes_that_cannot_be_used_are_refused_before_the_charge(changes, message):
    """On public numbers, with what is wrong."""
    ledger = confide.Ledger(limit=BUDGET)
    loss = type("Changed", (Corner,), changes)()
    with pytest.raises(ParameterError, match=message):
        confide.ERMClassifier(BUDGET, loss=loss, mechanism="gradient", ledger=ledger).fit(X, LABELS)
    assert len(ledger.entries()) == 0


def test_what_noisy_gradients_cannot_do_is_refused_in_one_line():
    """Pure budgets, and intervals; nothing is charged."""
    ledger = confide.Ledger(limit=confide.PureDP(5.0))
    with pytest.raises(ParameterError, match="mechanism='gradient' adds Gaussian noise"):
        confide.LogisticRegression(1.0, mechanism="gradient", ledger=ledger).fit(X, LABELS)
    with pytest.raises(ParameterError, match="no intervals with mechanism='gradient'"):
        confide.LogisticRegression(BUDGET, mechanism="gradient", inference_share=0.3).fit(X, LABELS)
    assert len(ledger.entries()) == 0


@pytest.mark.parametrize("budget", [ZCDP(0.5), ApproxDP(1.0, 1e-6)], ids=str)
@pytest.mark.parametrize("neighbours", ["replace-one", "add-or-remove-one"])
def test_all_sums_cost_what_was_agreed_and_the_ledger_has_no_more(budget, neighbours):
    """One charge for all of them; a second fit is one too many."""
    bounds = None if neighbours == "replace-one" else (3000, 5000)
    ledger = confide.Ledger(limit=budget, neighbours=neighbours)
    given = {"mechanism": "gradient", "neighbours": neighbours, "n_rows_bounds": bounds, "ledger": ledger}
    model = confide.LogisticRegression(budget, **given).fit(X, LABELS)
    assert len(ledger.entries()) == 1
    assert model.guarantee_.budget == budget
    with pytest.raises(confide.BudgetExceeded):
        model.fit(X, LABELS)


def test_weights_of_rows_and_classes_enlarge_the_noise():
    """Twice the cap: twice the noise on each sum. Rows of weight 0 do not count."""
    plans = [
        confide.LogisticRegression(BUDGET, mechanism="gradient", alpha=0.1, max_sample_weight=cap).plan(N, 3)
        for cap in (1.0, 2.0)
    ]
    assert plans[1].lattice.deviation == pytest.approx(2.0 * plans[0].lattice.deviation, rel=1e-3)
    weights = (LABELS == 1) * 1.0
    model = confide.LogisticRegression(BUDGET, mechanism="gradient").fit(X, LABELS, sample_weight=weights)
    assert model.predict(X).mean() > 0.95


def test_sparse_rows_and_arrays_in_any_order_give_the_model_of_dense_rows():
    """The same noise, and sums that agree up to rounding."""
    model = confide.LogisticRegression(BUDGET, mechanism="gradient", random_state=0)
    expected = model.fit(X, LABELS).coef_
    np.testing.assert_allclose(model.fit(csr_array(X), LABELS).coef_, expected, rtol=1e-6)
    np.testing.assert_allclose(model.fit(np.asfortranarray(X), LABELS).coef_, expected, rtol=1e-6)


def test_files_give_the_model_of_the_same_rows_in_memory(tmp_path):
    """Their blocks are read in each pass."""
    frame = made_up(3000)
    frame.to_parquet(tmp_path / "rows.parquet")
    model = confide.LinearSVC(BUDGET, schema=SCHEMA, mechanism="gradient", random_state=1)
    expected = model.fit(frame, frame["ill"]).coef_
    np.testing.assert_allclose(model.fit(open_rows(tmp_path / "rows.parquet", schema=SCHEMA)).coef_, expected, rtol=1e-6)


@pytest.mark.parametrize(
    "estimator",
    [
        confide.LogisticRegression(schema=SCHEMA, mechanism="gradient"),
        confide.LinearSVC(schema=SCHEMA, mechanism="gradient", loss="hinge"),
        confide.LinearSVC(schema=SCHEMA, mechanism="gradient"),
    ],
    ids=["logistic", "hinge", "automatic"],
)
def test_parties_send_one_sum_a_step(estimator):
    """The model is that of the same rows in memory, whatever limit of slopes and joint the coordinator decides."""
    frame = made_up(800)
    model = estimator.set_params(budget=BUDGET, random_state=2)
    party = type(model)(**{**model.get_params(deep=False), "budget": 1.0, "random_state": None})
    ours, theirs = Pipe()
    thread = threading.Thread(target=take_part, args=(theirs, party, frame, frame["ill"]))
    thread.start()
    model.fit(FederatedRows(SCHEMA, [ours]))
    thread.join(60)
    np.testing.assert_allclose(model.coef_, model.fit(frame, frame["ill"]).coef_, rtol=1e-6)


def test_a_saved_model_says_how_it_was_made(tmp_path):
    """Weights and statement come back."""
    model = confide.LogisticRegression(BUDGET, mechanism="gradient").fit(X, LABELS)
    model.save(tmp_path / "model.json")
    loaded = confide.load(tmp_path / "model.json")
    assert loaded.mechanism == loaded.guarantee_.mechanism == "gradient"
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))
    assert loaded.guarantee_.statement() == model.guarantee_.statement()
