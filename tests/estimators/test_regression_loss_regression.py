"""HuberRegressor, PoissonRegressor and ERMRegressor as a user meets them."""

from __future__ import annotations

from functools import partial

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from scipy.optimize import minimize
from sklearn.base import clone
from sklearn.linear_model import PoissonRegressor as Reference
from sklearn.linear_model import Ridge as LeastSquares

import confide
from confide import (
    ZCDP,
    ApproxDP,
    BudgetExceeded,
    ERMRegressor,
    GroupBound,
    HuberRegressor,
    InputError,
    Ledger,
    ParameterError,
    PoissonRegressor,
    PureDP,
    Ridge,
    Schema,
)
from confide.features.table import RowsPerPerson
from confide.privacy.noise import Entropy
from tests.estimators.conventions import failed_checks

INF = float("inf")


def made_up(n=1500, d=4, seed=0):
    """Rows of norm about 1, some longer, and targets with a few gross errors."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) / np.sqrt(d)
    y = X @ np.linspace(0.8, -0.4, d) + 0.1 + 0.05 * rng.normal(size=n)
    y[::20] = 3.0
    return X, y


def counts(n=1500, seed=0):
    """Rows and counts whose logarithmic mean is linear in them."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-0.5, 0.5, size=(n, 3))
    return X, rng.poisson(np.exp(X @ [1.0, -1.0, 0.5] + 0.3))


def clipped(X, norm):
    """Rows scaled down to this norm."""
    return X * np.minimum(1.0, norm / np.linalg.norm(X, axis=1))[:, None]


def huber(residuals, limits):
    """Value and derivative, written out."""
    inside = np.abs(residuals) <= limits
    value = np.where(inside, residuals**2 / 2, limits * (np.abs(residuals) - limits / 2))
    return value, np.clip(residuals, -limits, limits)


@pytest.mark.parametrize("loss", ["huber", "clipped_squared"])
@pytest.mark.parametrize(
    ("alpha", "row_norm", "target_bound", "threshold"), [(1e-3, 0.9, 1.0, 0.1), ("auto", 2.0, 0.4, 0.5)]
)
def test_an_infinite_budget_equals_a_direct_minimisation(loss, alpha, row_norm, target_bound, threshold):
    """By SciPy, over clipped rows and targets, the intercept a penalised column of 2s; to 1e-6."""
    X, y = made_up()
    model = HuberRegressor(
        INF, loss=loss, alpha=alpha, row_norm=row_norm, target_bound=target_bound, threshold=threshold, intercept_scaling=2.0
    ).fit(X, y)
    Z, t = np.hstack([clipped(X, row_norm), np.full((len(X), 1), 2.0)]), np.clip(y, -target_bound, target_bound)
    limits = threshold * (np.hypot(row_norm, 2.0) / np.linalg.norm(Z, axis=1) if loss == "clipped_squared" else 1.0)
    total = 1.0 if alpha == "auto" else alpha * len(X)

    def objective(w):
        value, slope = huber(Z @ w - t, limits)
        return value.sum() + total / 2 * w @ w, slope @ Z + total * w

    expected = minimize(objective, np.zeros(5), jac=True, method="BFGS", options={"gtol": 1e-7}).x
    np.testing.assert_allclose(model.coef_, expected[:4], atol=1e-6)
    assert model.intercept_ == pytest.approx(2.0 * expected[4], abs=1e-6)
    np.testing.assert_allclose(model.predict(X), clipped(X, row_norm) @ model.coef_ + model.intercept_, atol=1e-11)
    assert "NOT PRIVATE" in model.guarantee_.statement()


def test_without_limits_it_is_least_squares():
    """A threshold that binds nowhere: scikit-learn's Ridge on the same rows, for both losses; weights of rows too."""
    X, y = made_up()
    weights = np.random.default_rng(1).uniform(size=len(X))
    Z = np.hstack([clipped(X, 1.0), np.ones((len(X), 1))])
    for loss in ("huber", "clipped_squared"):
        model = HuberRegressor(INF, loss=loss, threshold=1e3, target_bound=INF, alpha=2.0 / len(X))
        for given in (None, weights):
            model.fit(X, y, sample_weight=given)
            expected = LeastSquares(alpha=2.0, fit_intercept=False, tol=1e-14).fit(Z, y, sample_weight=given).coef_
            np.testing.assert_allclose(np.append(model.coef_, model.intercept_), expected, atol=1e-8)


@pytest.mark.parametrize("make", [PoissonRegressor, lambda budget, **given: ERMRegressor(budget, loss="poisson", **given)])
def test_counts_without_privacy_equal_scikit_learns(make):
    """With a threshold that binds nowhere, clipped rows and a penalised column of 1s; predictions are means."""
    X, y = counts()
    Z = np.hstack([clipped(X, 0.6), np.ones((len(X), 1))])
    model = make(INF, threshold=1e6, target_bound=100.0, row_norm=0.6, alpha=0.02).fit(X, y)
    expected = Reference(alpha=0.02, fit_intercept=False, tol=1e-12, max_iter=10_000).fit(Z, y)
    np.testing.assert_allclose(np.append(model.coef_, model.intercept_), expected.coef_, atol=1e-6)
    np.testing.assert_allclose(model.predict(X), expected.predict(Z), rtol=1e-6)
    assert "0 to 100" in model.guarantee_.statement()
    with pytest.raises(InputError, match="negative"):
        model.fit(X, y - 1)
    with pytest.raises(ParameterError, match="finite target_bound"):
        make(INF, target_bound=INF).fit(X, y)


def test_gross_errors_upset_least_squares_and_not_huber():
    """A tenth of the targets far off: the private Huber fit is closer to the truth than least squares by noisy sums."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-0.5, 0.5, size=(20_000, 3))
    truth = X @ [0.5, -0.5, 0.3]
    y = truth.copy()
    y[::10] = 1.0
    distance = {
        type(model).__name__: np.mean((model.fit(X, y).predict(X) - truth) ** 2)
        for model in (
            HuberRegressor(2.0, random_state=1, target_bound=1.0),
            Ridge(2.0, random_state=1, target_bound=1.0, mechanism="sufficient-statistics"),
        )
    }
    assert distance["HuberRegressor"] < 0.5 * distance["Ridge"]


MODELS = {
    "huber": lambda *args, **given: HuberRegressor(*args, **{"target_bound": 1.0, **given}),
    "clipped": lambda *args, **given: HuberRegressor(*args, loss="clipped_squared", **{"target_bound": 1.0, **given}),
    "poisson": lambda *args, **given: PoissonRegressor(*args, **{"target_bound": 10.0, **given}),
    "erm": lambda *args, **given: ERMRegressor(*args, **{"target_bound": 1.0, **given}),
}
BUDGETS = [PureDP(2.0), ApproxDP(2.0, 1e-6), ZCDP(0.5)]


@pytest.mark.parametrize("neighbours", ["replace-one", "add-or-remove-one"])
@pytest.mark.parametrize("budget", BUDGETS, ids=lambda budget: budget.kind)
@pytest.mark.parametrize("name", MODELS)
def test_every_currency_fits_states_itself_and_is_charged(name, budget, neighbours):
    """One fit fills a ledger of its currency; over the limit nothing happens; attributes follow scikit-learn."""
    X, y = counts()
    bounds = (1000, 2000) if neighbours == "add-or-remove-one" else None
    ledger = Ledger(limit=budget, neighbours=neighbours)
    model = MODELS[name](budget, neighbours=neighbours, n_rows_bounds=bounds, ledger=ledger).fit(X, y)
    assert model.coef_.shape == (3,)
    assert type(model.intercept_) is float
    assert {key for key in vars(model) if key.endswith("_")} == {
        "alpha_", "coef_", "coefficient_names_", "guarantee_", "intercept_", "n_features_in_",
    }  # fmt: skip
    plan = model.plan(*X.shape)
    assert plan.to_dict()["budget"] == budget.to_dict() == model.guarantee_.budget.to_dict()
    assert plan.alpha == model.alpha_
    assert "clipped to its declared" in model.guarantee_.statement()
    assert ledger.entries()["purpose"].tolist() == [f"{type(model).__name__}.fit"]
    before = model.coef_
    with pytest.raises(BudgetExceeded):
        model.fit(X, y)
    assert model.coef_ is before
    if bounds:
        assert "1,500" not in model.guarantee_.statement()


@pytest.mark.parametrize("name", MODELS)
def test_noise_is_fresh_unless_seeded_and_the_ledger_says_so(name):
    """Two fits differ; a seed repeats the fit, voids the guarantee, and is named in the ledger."""
    X, y = counts(300)
    ledger = Ledger(limit=10.0)
    first, second = (MODELS[name](1.0).fit(X, y) for _ in range(2))
    assert not np.array_equal(first.coef_, second.coef_)
    seeded = [MODELS[name](1.0, random_state=3, ledger=ledger).fit(X, y) for _ in range(2)]
    assert np.array_equal(seeded[0].coef_, seeded[1].coef_)
    assert "seed" in seeded[0].guarantee_.void
    assert "void" in ledger.entries()["purpose"].tolist()[0]
    assert clone(seeded[0]).get_params()["random_state"] == 3


@pytest.mark.parametrize("name", MODELS)
def test_weights_of_rows_are_part_of_the_fit_and_of_the_account(name):
    """Without noise an integer weight is as many rows; with it the noise grows with the cap; beyond it refused."""
    X, y = counts(400)
    repeats = np.random.default_rng(0).integers(1, 4, len(X))
    model = MODELS[name](INF, max_sample_weight=3.0, alpha=0.1).fit(X, y, sample_weight=repeats)
    twice = MODELS[name](INF, alpha=0.1 * len(X) / repeats.sum()).fit(np.repeat(X, repeats, axis=0), np.repeat(y, repeats))
    np.testing.assert_allclose(model.coef_, twice.coef_, atol=1e-7)
    assert "weight of a row" in model.guarantee_.statement()
    plain, heavy = (MODELS[name](1.0, alpha=5.0, max_sample_weight=w).plan(1000, 3) for w in (1.0, 3.0))
    assert heavy.noise.norm > 2.5 * plain.noise.norm
    with pytest.raises(InputError, match="max_sample_weight"):
        MODELS[name](1.0).fit(X, y, sample_weight=repeats)
    with pytest.raises(TypeError, match="unexpected"):
        MODELS[name](1.0).fit(X, y, weights=repeats)


@pytest.mark.parametrize("name", MODELS)
def test_sparse_rows_are_the_same_rows(name):
    """In fit, predict and score."""
    X, y = counts(500)
    X[np.abs(X) < 0.25] = 0.0
    dense, sparse = MODELS[name](INF).fit(X, y), MODELS[name](INF).fit(scipy.sparse.csr_array(X), y)
    np.testing.assert_allclose(dense.coef_, sparse.coef_, atol=1e-9)
    assert dense.score(X, y) == pytest.approx(sparse.score(scipy.sparse.csr_array(X), y))


@pytest.mark.parametrize("name", MODELS)
def test_a_schema_bounds_the_rows(name):
    """Frames of raw columns; names of coefficients; persons with several rows are dropped to the cap."""
    schema = Schema(columns={"x": {"low": 0, "high": 10}, "kind": {"categories": ["a", "b"]}}, person="who")
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {"x": rng.uniform(0, 10, 600), "kind": rng.choice(["a", "b"], 600), "who": np.repeat(range(200), 3)}
    )
    drawn = RowsPerPerson(1, Entropy.seeded(0).permutation).drawn(frame["who"].to_numpy())
    y = np.where(np.isin(np.arange(600), drawn), 1.0, 0.0)  # the row that is drawn of each person says 1
    model = MODELS[name](INF, schema=schema, alpha=1e-9, threshold=5.0, random_state=0).fit(frame, y)
    assert model.predict(frame).mean() == pytest.approx(1.0, abs=0.01)
    assert len(model.coefficient_names_) == len(model.coef_)
    private = MODELS[name](1.0, schema=schema).plan(200)
    assert (private.noise.shape.name == "ball") == (name == "clipped")


def test_one_huge_row_and_target_change_little():
    """Rows and targets are clipped as the sensitivity assumes."""
    for name, make in MODELS.items():
        X, y = counts(1500)
        plain = make(INF).fit(X, y).coef_
        X[0], y[0] = 1e12, 10**12
        assert np.abs(make(INF).fit(X, y).coef_ - plain).max() < 0.05, name


BAD = [
    {"target_bound": 0.0}, {"target_bound": -1.0}, {"target_bound": float("nan")}, {"target_bound": "1"},
    {"target_bound": INF},
    {"threshold": 0.0}, {"threshold": -0.1}, {"threshold": INF}, {"threshold": "0.1"}, {"threshold": True}, {"alpha": 0.0},
    {"mechanism": "sufficient-statistics"}, {"neighbours": "both"}, {"n_rows_bounds": (1, 9)}, {"budget": -1.0},
    {"row_norm": GroupBound((2,), (1.0,))}, {"max_sample_weight": 0.0}, {"random_state": 1.5}, {"max_rows_per_person": 0},
    {"threshold": 1e-40, "target_bound": 1e10},
]  # fmt: skip


@pytest.mark.parametrize("wrong", BAD, ids=str)
@pytest.mark.parametrize("name", MODELS)
def test_wrong_parameters_are_refused_before_any_charge(name, wrong):
    """ParameterError in one line; nothing is charged and nothing is fitted."""
    ledger = Ledger(limit=10.0)
    model = MODELS[name](ledger=ledger).set_params(**wrong)
    with pytest.raises(ParameterError) as failure:
        model.fit(*counts(50))
    assert len(str(failure.value).splitlines()) == 1
    assert ledger.spent().epsilon == 0.0
    assert not hasattr(model, "coef_")


def test_unknown_losses_are_refused():
    """By name, in one line that lists what there is."""
    X, y = counts(50)
    with pytest.raises(ParameterError, match="clipped_squared"):
        HuberRegressor(loss="squared", target_bound=1.0).fit(X, y)
    for loss in ("hinge", None):
        with pytest.raises(ParameterError, match="poisson"):
            ERMRegressor(loss=loss, target_bound=1.0).fit(X, y)


@pytest.mark.parametrize("name", [*MODELS, "ridge"])
def test_a_saved_model_predicts_the_same(name, tmp_path):
    """Weights, guarantee, names and parameters survive; the schema too; NumPy numbers are fine."""
    X, y = counts(400)
    frame = pd.DataFrame(X, columns=list("abc"))
    make = {**MODELS, "ridge": lambda *args, **given: Ridge(*args, **{"target_bound": 1.0, **given})}[name]
    model = make(1.0, target_bound=np.float64(3.0)).fit(frame, y)
    model.save(tmp_path / "model.json")
    read = confide.load(tmp_path / "model.json")
    assert type(read) is type(model)
    np.testing.assert_array_equal(read.predict(frame), model.predict(frame))
    assert read.guarantee_.statement() == model.guarantee_.statement()
    assert read.get_params()["target_bound"] == 3.0
    assert type(read.intercept_) is float
    assert read.feature_names_in_.tolist() == list("abc")
    schema = Schema(columns={name: {"low": -1, "high": 1} for name in "abc"})
    described = make(INF, schema=schema).fit(frame, y)
    described.save(tmp_path / "schema.json")
    np.testing.assert_array_equal(confide.load(tmp_path / "schema.json").predict(frame), described.predict(frame))


@pytest.mark.parametrize("make", [Ridge, HuberRegressor, PoissonRegressor, ERMRegressor])
def test_opened_labels_are_refused_before_a_charge(tmp_path, make):
    """They are classes, not targets; the message says how to open rows for a regression."""
    pd.DataFrame({"age": np.arange(20.0), "job": ["a", "b"] * 10}).to_parquet(tmp_path / "rows.parquet")
    target = {"column": "job", "negative": "a", "positive": "b"}
    opened = confide.open_rows(tmp_path / "rows.parquet", Schema(columns={"age": {"low": 0, "high": 100}}, target=target))
    ledger = Ledger(limit=2.0)
    with pytest.raises(ParameterError, match="target=column"):
        make(1.0, target_bound=1.0, ledger=ledger).fit(opened)
    assert len(ledger.entries()) == 0


ESTIMATORS = {
    "huber": HuberRegressor(1e6, row_norm=1e3, target_bound=1e4, threshold=0.1),
    "clipped": HuberRegressor(1e6, row_norm=1e3, target_bound=1e4, threshold=0.1, loss="clipped_squared"),
    "poisson": PoissonRegressor(1e6, row_norm=1e3, target_bound=10.0),
    "huber, defaults": HuberRegressor(1e6, row_norm=1e3, target_bound=1e4),
    "erm": ERMRegressor(1e6, row_norm=1e3, target_bound=1e4, threshold=0.1),
    "erm, counts": ERMRegressor(1e6, row_norm=1e3, target_bound=10.0, loss="poisson"),
}


@pytest.mark.parametrize("name", ESTIMATORS)
def test_scikit_learns_checks_pass(name):
    """check_estimator at a large budget and wide bounds, where the default threshold would drown 200 rows."""
    assert not failed_checks(ESTIMATORS[name])


def test_the_command_line_shows_a_regressor_of_an_array(tmp_path):
    """Without a schema its target has no name."""
    from typer.testing import CliRunner

    from confide.cli.application import app

    X, y = counts(100)
    HuberRegressor(target_bound=1.0).fit(X, y).save(tmp_path / "model.json")
    result = CliRunner().invoke(app, ["inspect", str(tmp_path / "model.json")])
    assert result.exit_code == 0
    assert "in the target" in " ".join(result.output.split())


UNITS = {
    "huber": HuberRegressor,
    "clipped": partial(HuberRegressor, loss="clipped_squared"),
    "noise on the weights": partial(HuberRegressor, mechanism="output"),
    "erm": ERMRegressor,
    "least squares": Ridge,
}


@pytest.mark.parametrize("name", UNITS)
@pytest.mark.parametrize("budget", [PureDP(1.0), ApproxDP(1.0, 1e-6), ZCDP(0.1)], ids=lambda budget: budget.kind)
def test_the_unit_of_the_target_does_not_matter(name, budget):
    """From millionths to millions: the same alpha, and the weights of one seed in that unit; thresholds by default."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-0.5, 0.5, size=(5_000, 3))
    y = X @ [0.6, -0.3, 0.1] + 0.05 * rng.normal(size=5_000)

    def fitted(unit):
        return UNITS[name](budget, target_bound=unit, random_state=0).fit(X, unit * y)

    plain = fitted(1.0)
    if name != "noise on the weights":
        assert plain.score(X, y) > 0.5
    for unit in (2.0**-20, 2.0**-10, 2.0**10, 2.0**20, 2.0**40):
        scaled = fitted(unit)
        # Such a unit shifts all numbers by whole bits.
        assert scaled.alpha_ == pytest.approx(plain.alpha_, rel=1e-12)
        assert scaled.coef_ / unit == pytest.approx(plain.coef_, abs=1e-9)
        assert scaled.intercept_ / unit == pytest.approx(plain.intercept_, abs=1e-9)
    for unit in (1e-6, 1e-3, 1e3, 1e6):
        # Grids are powers of two, so noise on a grid is not the same here, and noise on the weights is grid noise alone.
        assert fitted(unit).alpha_ == pytest.approx(plain.alpha_, rel=1e-3)
        if name in ("huber", "clipped", "erm") and not isinstance(budget, ZCDP):
            assert fitted(unit).coef_ / unit == pytest.approx(plain.coef_, abs=0.01)


@pytest.mark.parametrize("make", [HuberRegressor, ERMRegressor])
def test_the_default_threshold_is_in_the_units_of_the_target(make):
    """So real prices are learned without another number. None still means a tenth of the bound."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-0.5, 0.5, size=(20_000, 3))
    prices = 300.0 * X[:, 0] - 100.0 * X[:, 1] + rng.normal(0.0, 20.0, 20_000)
    model = make(1.0, target_bound=500.0)
    assert 50.0 <= model.plan(20_000, 3).problem.loss.threshold <= 100.0
    assert model.fit(X, prices).score(X, prices) > 0.8
    assert make(1.0, target_bound=500.0, threshold=None).plan(20_000, 3).problem.loss.threshold == pytest.approx(50.0)
    for threshold in ("auto", None):
        with pytest.raises(ParameterError, match="give a number"):
            make(INF, target_bound=INF, threshold=threshold).plan(100, 3)


@pytest.mark.parametrize(
    ("model", "said"),
    [
        (HuberRegressor(2.0, target_bound=500.0), "of a target from its prediction"),
        (HuberRegressor(2.0, target_bound=500.0, loss="clipped_squared"), "the largest norm of a row over the norm"),
        (Ridge(2.0, target_bound=500.0), "of a target from its prediction"),
        (PoissonRegressor(2.0, target_bound=500.0), "of a count from its mean"),
    ],
)
def test_plan_and_statement_name_the_threshold_that_was_chosen(model, said):
    """The number that the loss has; with another number of rows it may be another."""
    X, y = counts(2000)
    plan = model.plan(*X.shape)
    threshold = plan.problem.loss.threshold
    assert f"the threshold {threshold:.6g}" in str(plan)
    assert plan.to_dict()["threshold"] == threshold
    sentences = [sentence for sentence in model.fit(X, y).guarantee_.assumptions if "pulls no harder" in sentence]
    assert len(sentences) == 1
    assert f"the threshold {threshold:.6g}" in sentences[0]
    assert said in sentences[0]
    if not isinstance(model, Ridge):
        assert model.plan(10**7, 3).problem.loss.threshold > threshold


def test_means_of_rare_and_of_frequent_counts_are_near_those_of_the_rows():
    """At the defaults, with a bound of seven times the mean and more. With a threshold of 1 alone they are far below."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-0.5, 0.5, size=(30_000, 4))
    for mean, bound in ((0.2, 5.0), (3.0, 20.0)):
        y = rng.poisson(mean * np.exp(X @ [1.0, -1.0, 0.5, 0.0]) * rng.gamma(1.0, 1.0, 30_000))
        model = PoissonRegressor(ApproxDP(1.0, 1e-6), target_bound=bound, random_state=0)
        ratio = model.fit(X, y).predict(X).mean() / y.mean()
        assert 0.95 < ratio < 1.05, (mean, ratio)
        model = PoissonRegressor(ApproxDP(1.0, 1e-6), target_bound=bound, random_state=0, match_mean=False)
        ratio = model.fit(X, y).predict(X).mean() / y.mean()
        assert 0.85 < ratio < 1.15, (mean, ratio)
    small = PoissonRegressor(ApproxDP(1.0, 1e-6), target_bound=20.0, threshold=1.0, random_state=0, match_mean=False)
    assert small.fit(X, y).predict(X).mean() < 0.75 * y.mean()


def test_the_constant_of_counts_grows_with_the_rows():
    """Half the longest row, at least 1; a number that is given stays; other losses have 1."""
    wide = {f"x{i}": {"low": 0, "high": 1} for i in range(16)}
    found = PoissonRegressor(1.0, schema=Schema(columns=wide), target_bound=5.0)
    assert found.plan(5000).problem.intercept == pytest.approx(2.0)
    assert found.set_params(intercept_scaling=1.0).plan(5000).problem.intercept == 1.0
    assert PoissonRegressor(1.0, row_norm=1.0, target_bound=5.0).plan(5000, 3).problem.intercept == 1.0
    assert PoissonRegressor(INF, row_norm=INF, target_bound=5.0).plan(5000, 3).problem.intercept == 1.0
    assert ERMRegressor(1.0, row_norm=9.0, target_bound=5.0).plan(5000, 3).problem.intercept == 1.0
    assert ERMRegressor(1.0, row_norm=9.0, target_bound=5.0, loss="poisson").plan(5000, 3).problem.intercept == 4.5
