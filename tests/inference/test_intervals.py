"""Intervals: against the sandwich without noise, against their own law with it, and where they are refused."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from scipy.special import expit
from scipy.stats import norm

import confide
from confide import (
    ZCDP,
    ApproxDP,
    BudgetExceeded,
    GroupBound,
    KernelSVC,
    Ledger,
    LinearSVC,
    LogisticRegression,
    ParameterError,
    PureDP,
)
from confide.inference.intervals import (
    _CORRECTED_PART_OF_NOISE,
    TARGETS,
    Evidence,
    JointUncertainty,
    Uncertainty,
    _inflation_factors,
    _noise_of_correction,
    denoised_curvature,
)

TRUTH = np.array([1.2, -0.8, 0.5, 0.3])


def sample(n, seed):
    """Rows within the unit ball and labels of a logistic model, intercept 0.3."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    X *= rng.uniform(size=(n, 1)) / np.linalg.norm(X, axis=1, keepdims=True)
    return X, (rng.uniform(size=n) < expit(X @ TRUTH[:3] + TRUTH[3])).astype(int)


def sandwich(X, y, weights, l2, slope, curvature):
    """Standard errors by H^-1 S H^-1, written out; `slope` and `curvature` are those of the score."""
    design = np.column_stack([X, np.ones(len(X))])
    scores = design @ weights
    H = (design * curvature(scores, y)[:, None]).T @ design + l2 * np.eye(4)
    S = (design * slope(scores, y)[:, None] ** 2).T @ design - l2**2 * np.outer(weights, weights) / len(X)
    inverse = np.linalg.inv(H)
    return np.sqrt(np.diagonal(inverse @ S @ inverse))


def logistic(scores, y):
    return expit(scores) - y, expit(scores) * expit(-scores)


def test_without_noise_intervals_are_those_of_the_sandwich():
    """Any ridge: standard errors, intervals and p-values against NumPy to 1e-6."""
    X, y = sample(900, 0)
    for alpha in (1e-9, 0.03):
        model = LogisticRegression(math.inf, alpha=alpha, inference_share=0.5, classes=[0, 1]).fit(X, y)
        weights = np.append(model.coef_[0], model.intercept_)
        errors = sandwich(X, y, weights, 900 * alpha, lambda z, y: logistic(z, y)[0], lambda z, y: logistic(z, y)[1])
        known = model.uncertainty()
        np.testing.assert_allclose(known.sampling_error, errors, rtol=1e-6)
        assert np.all(known.privacy_error == 0.0)
        ends = np.column_stack([weights - 1.959963984540054 * errors, weights + 1.959963984540054 * errors])
        np.testing.assert_allclose(known.intervals(0.95), ends, rtol=1e-6)
        np.testing.assert_allclose(model.conf_int(), ends[:3], rtol=1e-6)
        np.testing.assert_allclose(known.p_values(), 2.0 * norm.sf(np.abs(weights) / errors), atol=1e-6)


@pytest.mark.parametrize("name", ["huber_hinge", "smooth_hinge", "logistic_hinge"])
def test_the_sandwich_of_smoothed_hinges(name):
    """The same for losses that are no likelihood, where slope and curvature differ."""
    X, y = sample(900, 0)
    model = LinearSVC(math.inf, loss=name, smoothing=0.8, alpha=0.01, inference_share=0.5, classes=[0, 1]).fit(X, y)
    weights, loss, signs = np.append(model.coef_[0], model.intercept_), model.plan(900, 3).problem.loss, 2 * y - 1
    errors = sandwich(
        X, y, weights, 9.0, lambda z, y: loss.derivative(signs * z), lambda z, y: loss.second_derivative(signs * z)
    )
    # The curvature of a parabolic joint jumps; over a window of 2^-12 it may miss a row.
    np.testing.assert_allclose(model.uncertainty().sampling_error, errors, rtol=5e-3 if name == "huber_hinge" else 1e-4)


def test_without_noise_the_table_is_that_of_statsmodels():
    """Logit with HC0 errors, to 1e-6, for a ridge that is almost 0."""
    api = pytest.importorskip("statsmodels.api", reason="statsmodels is not installed")
    X, y = sample(900, 0)
    model = LogisticRegression(math.inf, alpha=1e-10, inference_share=0.5, classes=[0, 1]).fit(X, y)
    theirs = api.Logit(y, np.column_stack([X, np.ones(900)])).fit(disp=0, cov_type="HC0", tol=1e-12)
    for target in ("regularised", "unregularised"):
        ours = model.summary(target=target).to_frame()
        np.testing.assert_allclose(ours["estimate"], theirs.params, rtol=1e-6)
        np.testing.assert_allclose(ours["total_error"], theirs.bse, rtol=1e-6)
        np.testing.assert_allclose(ours[["low", "high"]], theirs.conf_int(), rtol=1e-6)
        np.testing.assert_allclose(ours["p_value"], theirs.pvalues, atol=1e-6)


def test_the_intercept_is_in_the_units_of_intercept():
    """Whatever constant the rows get."""
    X, y = sample(900, 0)
    tables = [
        LogisticRegression(math.inf, alpha=1e-9, inference_share=0.3, intercept_scaling=scaling, classes=[0, 1])
        .fit(X, y)
        .summary()
        .to_frame()
        for scaling in (1.0, 7.0)
    ]
    np.testing.assert_allclose(*(table.select_dtypes("number") for table in tables), rtol=1e-4, atol=1e-6)
    without = LogisticRegression(math.inf, inference_share=0.3, fit_intercept=False, classes=[0, 1]).fit(X, y)
    assert without.conf_int().shape == (3, 2)
    assert len(without.summary().coefficients) == 3


def law(sampling, sizes):
    """An uncertainty about 0 with symmetric noise of these draws."""
    rng = np.random.default_rng(0)
    return Uncertainty(np.zeros(1), np.array([sampling]), np.asarray(rng.permuted(sizes))[:, None])


def test_margins_are_quantiles_of_both_errors_together():
    """Gaussian and Laplace noise on a Gaussian error: against quadrature, within what 4,000 draws allow."""
    points = (np.arange(4000) + 0.5) / 4000
    gaussian = law(1.0, 2.0 * norm.ppf(points))
    np.testing.assert_allclose(gaussian.margins(0.95), norm.ppf(0.975) * math.sqrt(5.0), rtol=5e-3)
    np.testing.assert_allclose(gaussian.total_error, math.sqrt(5.0), rtol=5e-3)
    signs = np.where(points < 0.5, -1.0, 1.0)
    laplace = law(1.0, -3.0 * signs * np.log(2.0 * np.minimum(points, 1.0 - points)))
    grid = np.linspace(-80.0, 80.0, 400_001)
    density = np.exp(-np.abs(grid) / 3.0) / 6.0
    for level in (0.5, 0.9, 0.95, 0.99):
        margin = float(laplace.margins(level)[0])
        inside = norm.cdf(margin - grid) - norm.cdf(-margin - grid)
        assert np.sum(inside * density) * (grid[1] - grid[0]) == pytest.approx(level, abs=2e-3)
        assert laplace.probability_within(np.array([margin]))[0] == pytest.approx(level, abs=1e-9)


def test_p_values_are_uniform_where_the_coefficient_is_zero():
    """Estimates drawn by the law itself."""
    rng = np.random.default_rng(1)
    noise = rng.laplace(scale=2.0, size=4000)
    estimates = rng.normal(size=2000) + rng.laplace(scale=2.0, size=2000)
    values = np.concatenate([Uncertainty(np.array([x]), np.ones(1), noise[:, None]).p_values() for x in estimates[:400]])
    assert np.mean(values < 0.05) == pytest.approx(0.05, abs=0.03)
    assert np.mean(values < 0.5) == pytest.approx(0.5, abs=0.08)


@pytest.mark.parametrize("level", [0.0, 1.0, -1, "x", True, math.nan])
def test_a_level_is_a_number_between_0_and_1(level):
    """Others are refused."""
    with pytest.raises(ParameterError, match="level must be"):
        law(1.0, np.zeros(4000)).margins(level)


def test_noise_on_the_curvature_does_not_shrink_its_inverse():
    """The mean inverse over noise as large as a third of the eigenvalues is right to 10%; uncorrected it is off by more."""
    rng, size, s = np.random.default_rng(2), 6, 0.6
    exact = np.diag([5.0, 5.0, 5.0, 8.0, 8.0, 12.0])
    corrected, plain = np.zeros((size, size)), np.zeros((size, size))
    for _ in range(2000):
        noise = rng.normal(size=(size, size)) * s
        noise = (noise + noise.T) / math.sqrt(2.0)
        corrected += np.linalg.inv(denoised_curvature(exact + noise, 0.5, s)) / 2000
        plain += np.linalg.inv(exact + noise + 0.5 * np.eye(size)) / 2000
    wanted = 1.0 / (np.diagonal(exact) + 0.5)
    assert np.abs(np.diagonal(corrected) / wanted - 1.0).max() < 0.05
    assert np.abs(np.diagonal(plain) / wanted - 1.0).max() > 0.08
    np.testing.assert_allclose(denoised_curvature(exact, 0.5, 0.0), exact + 0.5 * np.eye(size), rtol=1e-9)
    # Where noise is all there is, the answer stays well away from 0.
    assert np.linalg.eigvalsh(denoised_curvature(np.zeros((size, size)), 1e-9, s)).min() > s


def test_errors_are_raised_by_how_uncertain_noise_on_the_moments_makes_them():
    """The relative standard deviation of a coefficient's variance over 4,000 draws of that noise, to 10%; the expansion.

    And what it is for: normal intervals whose size scatters so hold 95% once raised, and less before.
    """
    rng, size = np.random.default_rng(5), 4
    root = rng.normal(size=(size, size))
    H, S = root @ root.T + 6.0 * np.eye(size), np.diag([3.0, 4.0, 5.0, 6.0])
    s, f = 0.25, 0.2

    def noisy(matrix, deviation):
        noise = rng.normal(size=(size, size))
        return matrix + deviation * (noise + noise.T) / math.sqrt(2.0)

    variances = []
    for _ in range(4000):
        inverse = np.linalg.inv(noisy(H, s))
        variances.append(np.diagonal(inverse @ noisy(S, f) @ inverse))
    relative = np.std(variances, axis=0) / np.mean(variances, axis=0)
    made = Evidence(np.zeros(size), 0.0, 1.0, 100, H, S, s, f, ())
    inverse = np.linalg.inv(H)
    sampling = np.sqrt(np.diagonal(inverse @ S @ inverse))
    raised = _inflation_factors(made, inverse, S, np.eye(size), sampling, np.full((1, size), 1e-9))
    np.testing.assert_allclose(np.sqrt(2.0 * (raised - 1.0) / (1.96**2 + 1.0)), relative / 2.0, rtol=0.1)
    assert np.all(_inflation_factors(made, inverse, S, np.eye(size), sampling, np.zeros((0, size))) == 1.0)
    sizes = np.sqrt(np.maximum(1.0 + 0.3 * rng.normal(size=400_000), 0.0))
    factor = 1.0 + 0.5 * (1.96**2 + 1.0) * 0.15**2
    error = np.abs(rng.normal(size=400_000))
    assert np.mean(error <= 1.96 * sizes) < 0.941
    assert np.mean(error <= 1.96 * sizes * factor) == pytest.approx(0.95, abs=0.004)


CASES = {
    "pure, in the objective": ({"budget": 2.0, "mechanism": "objective"}, 3000),
    "pure, on the weights": ({"budget": 2.0, "mechanism": "output"}, 3000),
    "zcdp, on the weights": ({"budget": ZCDP(0.2), "mechanism": "output"}, 3000),
    "approximate, in the objective": ({"budget": ApproxDP(2.0, 1e-6), "mechanism": "objective"}, 3000),
    "hinge": ({"budget": 4.0, "kind": partial(LinearSVC, loss="huber_hinge")}, 3000),
    "logistic hinge": ({"budget": 4.0, "kind": partial(LinearSVC, loss="logistic_hinge")}, 3000),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_intervals_hold_the_populations_coefficients(name):
    """60 samples: coverage of the regularised minimiser near 0.95, over four coefficients. 30% off is noticed."""
    arguments, n = CASES[name]
    arguments = dict(arguments)
    kind = arguments.pop("kind", LogisticRegression)
    model = kind(inference_share=0.3, classes=[0, 1], **arguments)
    X, y = sample(400_000, 10)
    population = kind(math.inf, alpha=model.plan(n, 3).alpha, classes=[0, 1]).fit(X, y)
    target = np.append(population.coef_[0], population.intercept_)
    hits, rng = [], np.random.default_rng(11)
    for trial in range(60):
        drawn = rng.integers(400_000, size=n)
        ends = model.set_params(random_state=trial).fit(X[drawn], y[drawn]).uncertainty().intervals(0.95)
        hits.append((ends[:, 0] <= target) & (target <= ends[:, 1]))
    assert 0.90 <= np.mean(hits) <= 0.985


def test_one_charge_covers_weights_and_moments():
    """The ledger has one entry, the whole budget; the plan's parts add up to it; too little left means nothing is read."""
    X, y = sample(3000, 1)
    ledger = Ledger(limit=2.0)
    model = LogisticRegression(1.5, inference_share=0.4, classes=[0, 1], ledger=ledger).fit(X, y)
    assert ledger.entries()["purpose"].tolist() == ["LogisticRegression.fit"]
    assert ledger.remaining().epsilon == pytest.approx(0.5)
    plan = model.plan(3000, 3)
    parts = plan.budget.epsilon, plan.intervals.moments.budget.epsilon
    assert parts == pytest.approx((0.9, 0.6))
    assert math.fsum(parts) <= 1.5
    assert model.guarantee_.budget.epsilon == 1.5
    with pytest.raises(BudgetExceeded):
        model.fit(X, y)


@pytest.mark.parametrize("budget", [PureDP(2.0), ApproxDP(2.0, 1e-6), ZCDP(0.5)])
def test_a_plan_is_charged_whole(budget):
    """By hand, and in a batch that a fit then uses: moments and weights, not the weights alone."""
    X, y = sample(3000, 1)
    ledger = Ledger(limit=budget)
    model = LogisticRegression(budget, inference_share=0.4, classes=[0, 1])
    ledger.charge(model.plan(3000, 3))
    assert ledger.spent() == budget
    batch = Ledger(limit=budget).plan([model.plan(3000, 3)])
    model.set_params(ledger=batch).fit(X, y)
    with pytest.raises(BudgetExceeded):
        model.fit(X, y)


def test_the_statement_names_what_else_is_released():
    """Its share too; without intervals there is no such sentence."""
    X, y = sample(3000, 1)
    text = LogisticRegression(2.0, inference_share=0.25, classes=[0, 1]).fit(X, y).guarantee_.statement()
    assert "second moments" in text
    assert "0.25 of the budget" in text
    assert "2^-198" in text
    plain = LogisticRegression(2.0, classes=[0, 1]).fit(X, y).guarantee_.statement()
    assert "moments" not in plain
    assert "2^-199" in plain


def test_what_has_no_intervals_says_so():
    """The hinge does not bend; random features mean nothing one by one; a model without a share; an unknown target."""
    X, y = sample(3000, 3)
    with pytest.raises(ParameterError, match="a loss that bends"):
        LinearSVC(1.0, loss="hinge", inference_share=0.3).fit(X, y)
    kernel = KernelSVC(math.inf, classes=[0, 1], n_features=8, inference_share=0.3).fit(X, y)
    for ask in (kernel.uncertainty, kernel.conf_int, kernel.summary, kernel.covariance):
        with pytest.raises(ParameterError, match=r"single weights of random features mean nothing.*predict_interval"):
            ask()
    plain = LogisticRegression(1.0, classes=[0, 1]).fit(X, y)
    for ask in (plain.uncertainty, plain.conf_int, plain.summary):
        with pytest.raises(ParameterError, match="set inference_share"):
            ask()
    model = LogisticRegression(2.0, inference_share=0.3, mechanism="output", classes=[0, 1]).fit(X, y)
    with pytest.raises(ParameterError, match="target must be"):
        model.conf_int(target="true")
    with pytest.raises(ParameterError, match="not available after output perturbation"):
        model.conf_int(target="unregularised")


def test_rows_on_disk_have_intervals_and_those_of_parties_have_none(tmp_path):
    """The sums of the moments are taken as those of the fit; parties know sums for a fit alone, and that is said first."""
    import pandas as pd

    from confide.data.federated import FederatedRows

    X, y = sample(4000, 3)
    frame = pd.DataFrame(X, columns=["a", "b", "c"]).assign(y=np.where(y, "yes", "no"))
    frame.to_csv(tmp_path / "rows.csv", index=False)
    schema = confide.Schema(
        columns={name: {"low": -1, "high": 1} for name in "abc"}, target={"column": "y", "negative": "no", "positive": "yes"}
    )
    model = LogisticRegression(math.inf, schema=schema, inference_share=0.3)
    expected = model.fit(frame[["a", "b", "c"]], frame["y"]).conf_int()
    np.testing.assert_allclose(model.fit(confide.open_rows(tmp_path / "rows.csv", schema)).conf_int(), expected, rtol=1e-6)
    ledger = Ledger(limit=5.0)
    with pytest.raises(ParameterError, match="the parties send no sums for intervals"):
        model.set_params(budget=1.0, ledger=ledger).fit(FederatedRows(schema, ()))
    assert len(ledger.entries()) == 0


def test_a_search_has_no_intervals():
    """They would not hold after a choice, and the search accounts for the weights alone."""
    X, y = sample(3000, 3)
    for estimator, grid in (
        (LogisticRegression(inference_share=0.3, classes=[0, 1]), {"alpha": [0.1, 1.0]}),
        (LogisticRegression(classes=[0, 1]), {"inference_share": [0.0, 0.3]}),
    ):
        with pytest.raises(ParameterError):
            confide.PrivateSearchCV(estimator, grid, budget=3.0).fit(X, y)


@pytest.mark.parametrize(
    "parameters",
    [
        {"budget": 2.0},
        {"budget": ZCDP(0.3), "mechanism": "output"},
        {"budget": ApproxDP(2.0, 1e-6), "row_norm": GroupBound((1, 2), (0.6, 0.6))},
        {"budget": 2.0, "row_norm": GroupBound((1, 2), (0.6, 0.6), (False, True)), "fit_intercept": True},
        {"budget": 3.0, "mechanism": "output-laplace"},
        {"budget": math.inf, "inference_share": "auto", "row_norm": math.inf},
        {"budget": 2.0, "fit_intercept": False, "neighbours": "add-or-remove-one", "n_rows_bounds": (2500, 4000)},
    ],
    ids=str,
)
def test_a_loaded_model_gives_the_same_intervals(parameters, tmp_path):
    """To the last bit, for every shape and law of noise; and a second save is the same file."""
    X, y = sample(3000, 4)
    model = LogisticRegression(**({"inference_share": 0.3, "classes": [0, 1]} | parameters)).fit(X, y)
    model.save(tmp_path / "one.json")
    again = confide.load(tmp_path / "one.json")
    assert np.array_equal(again.conf_int(), model.conf_int())
    assert str(again.summary()) == str(model.summary())
    assert again.inference_share == model.inference_share
    again.save(tmp_path / "two.json")
    assert (tmp_path / "one.json").read_text() == (tmp_path / "two.json").read_text()


@pytest.mark.parametrize("multiclass", [None, "softmax", "one-vs-rest"])
def test_combinations_of_coefficients_have_the_errors_of_their_parts(multiclass):
    """Single coefficients as `uncertainty` has them; a difference by NumPy from the draws; a root that gives the errors."""
    X, y = sample(4000, 3)
    classes = [0, 1] if multiclass is None else [0, 1, 2]
    y = y if multiclass is None else y + (X[:, 0] > 0.2)
    model = LogisticRegression(
        ApproxDP(20.0, 1e-6), inference_share=0.4, classes=classes, multiclass=multiclass or "softmax"
    ).fit(X, y)
    known, evidence = model.uncertainty(), model._evidence
    assert isinstance(evidence, Evidence)
    found = evidence.joint_uncertainty(np.vstack([np.eye(4), [[1.0, -1.0, 0.0, 0.0]]]))
    assert len(found) == (1 if multiclass is None else 3)
    for score, one in enumerate(found):
        own = slice(4 * score, 4 * score + 4)
        np.testing.assert_allclose(one.estimates[:4], known.estimates[own], rtol=1e-9)
        np.testing.assert_allclose(one.total_error[:4], known.total_error[own], rtol=1e-9)
        np.testing.assert_allclose(one.estimates[4], known.estimates[own][0] - known.estimates[own][1], rtol=1e-9)
        np.testing.assert_allclose(np.linalg.norm(one.sampling_root, axis=0), one.sampling_error, rtol=1e-6)
        joint, alone = one.joint_margins(0.9), one.margins(0.9)
        assert (joint >= alone).all()
        np.testing.assert_array_equal(one.among(slice(0, 2)).margins(0.9), alone[:2])
        assert (one.among(slice(0, 2)).joint_margins(0.9) <= joint[:2]).all()


def test_joint_margins_hold_all_together():
    """Independent Gaussian errors of five coefficients: the quantile of the largest of five, within that of 4,000 draws."""
    root = np.diag([1.0, 2.0, 0.5, 1.0, 3.0])
    five = JointUncertainty(np.zeros(5), np.diagonal(root).copy(), np.zeros((0, 5)), root)
    exact = norm.ppf(0.5 + 0.5 * 0.95 ** (1 / 5))
    np.testing.assert_allclose(five.joint_margins(0.95) / np.diagonal(root), exact, rtol=0.04)
    hidden = JointUncertainty(np.zeros(2), np.full(2, math.inf), np.zeros((0, 2)), np.zeros((0, 2)))
    assert np.isinf(hidden.joint_margins(0.95)).all()


def test_without_noise_a_prior_is_accounted_for():
    """The sandwich with the gradient l2 (w - p) of the ridge; and without the ridge, nearly the weights without any."""
    X, y = sample(3000, 3)
    prior, alpha = np.array([-1.0, 1.0, 0.5, -0.5]), 0.02
    model = LogisticRegression(math.inf, alpha=alpha, inference_share=0.3, prior=(prior[:3], prior[3])).fit(X, y)
    known, weights, l2 = model.uncertainty(), np.append(model.coef_, model.intercept_), 3000 * alpha
    np.testing.assert_allclose(known.estimates, weights, rtol=1e-9)
    design = np.column_stack([X, np.ones(len(X))])
    slope, curvature = logistic(design @ weights, y)
    inverse = np.linalg.inv((design * curvature[:, None]).T @ design + l2 * np.eye(4))
    away = weights - prior
    S = (design * slope[:, None] ** 2).T @ design - l2**2 * np.outer(away, away) / len(X)
    np.testing.assert_allclose(known.sampling_error, np.sqrt(np.diagonal(inverse @ S @ inverse)), rtol=1e-6)
    plain = LogisticRegression(math.inf, alpha=1e-6).fit(X, y)
    exact = np.append(plain.coef_, plain.intercept_)
    corrected = model.uncertainty("unregularised").estimates
    assert np.linalg.norm(corrected - exact) < 0.15 * np.linalg.norm(weights - exact)


def test_softmax_intervals_with_a_prior_are_those_of_differences_of_classes(tmp_path):
    """A prior that changes all classes alike changes nothing; another one moves the estimates; files keep it."""
    X, _ = sample(3000, 3)
    y = np.random.default_rng(0).integers(3, size=3000)
    alike = (np.tile([0.5, -0.2, 0.1], (3, 1)), np.full(3, 0.3))
    made = {}
    for name, prior in (("none", None), ("alike", alike), ("other", (np.diag([2.0, -1.0, 0.5]), np.arange(3.0)))):
        made[name] = LogisticRegression(math.inf, alpha=0.05, inference_share=0.3, prior=prior).fit(X, y)
    for target in ("regularised", "unregularised"):
        known = {name: model.uncertainty(target) for name, model in made.items()}
        np.testing.assert_allclose(known["alike"].estimates, known["none"].estimates, atol=1e-6)
        np.testing.assert_allclose(known["alike"].sampling_error, known["none"].sampling_error, rtol=1e-6)
    apart = [np.abs(made["other"].uncertainty(t).estimates - made["none"].uncertainty(t).estimates).max() for t in TARGETS]
    # Without the ridge the prior is taken back, up to one Newton step.
    assert apart[0] > 0.3
    assert apart[1] < 0.25 * apart[0]
    made["other"].save(tmp_path / "model.json")
    again = confide.load(tmp_path / "model.json")
    assert np.array_equal(again.uncertainty().sampling_error, made["other"].uncertainty().sampling_error)


def test_the_noise_of_the_correction_is_that_of_its_law():
    """The largest ratio of standard deviations, over all combinations, by draws of the noise on the curvature."""
    X, y = sample(2000, 3)
    evidence = LogisticRegression(2.0, alpha=0.01, inference_share=0.3, classes=[0, 1], random_state=0).fit(X, y)._evidence
    rng = np.random.default_rng(0)
    root = rng.normal(size=(4, 4)) + 3.0 * np.eye(4)
    multiplied, pull = root @ root.T, np.array([0.4, -0.3, 0.2, 0.6])
    noise = rng.normal(size=(40_000, 4, 4))
    noise = evidence.curvature_deviation * (noise + noise.swapaxes(1, 2)) / math.sqrt(2.0)
    moved = np.linalg.solve(root, (noise @ pull).T)
    largest = math.sqrt(np.linalg.eigvalsh(moved @ moved.T / noise.shape[0])[-1])
    assert _noise_of_correction(evidence, pull, multiplied) == pytest.approx(largest, rel=0.02)


def test_the_ridge_is_taken_back_only_if_the_curvature_is_known():
    """The same rows: refused with much noise; with little, intervals are those of more noise than the weights alone have."""
    X, y = sample(3000, 3)
    common = {"alpha": 0.02, "inference_share": 0.3, "classes": [0, 1], "random_state": 0}
    noisy = LogisticRegression(ApproxDP(1.0, 1e-7), **common).fit(X, y)
    assert np.all(np.isfinite(noisy.conf_int()))
    for ask in (noisy.conf_int, noisy.summary):
        with pytest.raises(ParameterError, match="too large to take the ridge back"):
            ask(target="unregularised")
    known = LogisticRegression(ApproxDP(60.0, 1e-7), **common).fit(X, y)._evidence
    known = replace(known, curvature_deviation=25.0 * known.curvature_deviation)
    part = _CORRECTED_PART_OF_NOISE * known.curvature_deviation
    H0 = denoised_curvature(known.curvature, known.l2, part) - known.l2 * np.eye(4)
    wider = known.uncertainty("unregularised")
    exact = replace(known, curvature=H0, curvature_deviation=1e-9).uncertainty("unregularised")
    inverse = np.linalg.inv(H0)
    pull = known.l2 * inverse @ known.weights
    units = np.array([1.0, 1.0, 1.0, known.intercept])
    added = known.curvature_deviation * units * np.sqrt(np.sum(inverse**2, axis=0) * (pull @ pull) + (inverse @ pull) ** 2)
    np.testing.assert_allclose(wider.estimates, exact.estimates, rtol=1e-9)
    np.testing.assert_allclose(wider.total_error, np.hypot(exact.total_error, added), rtol=2e-2)
    assert np.max(added / exact.total_error) > 0.3
