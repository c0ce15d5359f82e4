"""Intervals from noisy sums of least squares: against formulas without noise, against their own law with it."""

from __future__ import annotations

import math
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import stats

import confide
from confide import ZCDP, ApproxDP, FileError, Ledger, ParameterError, Ridge
from confide.inference.least_squares import SumsEvidence, _privacy_errors

TRUTH = np.array([0.6, -0.4, 0.2, 0.1])
SPREAD = 0.15


def sample(n, seed):
    """Rows within the unit ball, targets within 1: residuals of standard deviation 0.15, intercept 0.1."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    X *= rng.uniform(size=(n, 1)) / np.linalg.norm(X, axis=1, keepdims=True)
    return X, X @ TRUTH[:3] + TRUTH[3] + SPREAD * math.sqrt(3.0) * rng.uniform(-1.0, 1.0, size=n)


def with_constant(X):
    return np.column_stack([X, np.ones(len(X))])


def test_without_noise_intervals_are_those_of_ordinary_least_squares():
    """For almost no ridge: s^2 (X^T X)^-1 with n - D degrees of freedom, by NumPy and by statsmodels, to 1e-6."""
    X, y = sample(300, 0)
    design = with_constant(X)
    model = Ridge(math.inf, alpha=1e-10, intervals=True, target_bound=1.0).fit(X, y)
    weights, residual, _, _ = np.linalg.lstsq(design, y)
    errors = np.sqrt(residual[0] / 296 * np.diagonal(np.linalg.inv(design.T @ design)))
    ends = np.column_stack([weights - 1.959963984540054 * errors, weights + 1.959963984540054 * errors])
    for target in ("regularised", "unregularised"):
        table = model.summary(target=target).to_frame()
        np.testing.assert_allclose(table["estimate"], weights, rtol=1e-6)
        np.testing.assert_allclose(table["total_error"], errors, rtol=1e-6)
        np.testing.assert_allclose(table[["low", "high"]], ends, rtol=1e-6)
        np.testing.assert_allclose(model.conf_int(target=target), ends[:3], rtol=1e-6)
        assert (table["privacy_error"] == 0.0).all()
    api = pytest.importorskip("statsmodels.api", reason="statsmodels is not installed")
    theirs = api.OLS(y, design).fit(use_t=False)
    np.testing.assert_allclose(table["total_error"], theirs.bse, rtol=1e-6)
    np.testing.assert_allclose(table["p_value"], theirs.pvalues, atol=1e-6)


def test_without_noise_a_ridge_is_accounted_for():
    """Both targets of one fit: the minimiser with the ridge and its errors written out, and least squares."""
    X, y = sample(300, 1)
    design, l2 = with_constant(X), 300 * 0.05
    model = Ridge(math.inf, alpha=0.05, intervals=True, target_bound=1.0).fit(X, y)
    G = design.T @ design
    inverse = np.linalg.inv(G + l2 * np.eye(4))
    weights = inverse @ design.T @ y
    known = model.uncertainty()
    np.testing.assert_allclose(known.estimates, weights, rtol=1e-9)
    np.testing.assert_allclose(known.estimates[:3], model.coef_, rtol=1e-9)
    # The residual at the population's weights is that at w and tr((G + 2 l2) V); ridge^2 w w^T / n is part of V.
    ridge, steep = l2**2 * np.outer(weights, weights) / 300, G + 2 * l2 * np.eye(4)
    left = ((y - design @ weights) ** 2).sum() + np.trace(steep @ inverse @ ridge @ inverse)
    variance = left / (300 - np.trace(steep @ inverse @ G @ inverse))
    errors = np.sqrt(np.diagonal(inverse @ (variance * G + ridge) @ inverse))
    np.testing.assert_allclose(known.sampling_error, errors, rtol=1e-6)
    plain = Ridge(math.inf, alpha=1e-10, intervals=True, target_bound=1.0).fit(X, y).uncertainty()
    again = model.uncertainty("unregularised")
    np.testing.assert_allclose(again.estimates, plain.estimates, rtol=1e-6)
    np.testing.assert_allclose(again.sampling_error, plain.sampling_error, rtol=1e-6)


def test_the_intercept_is_in_the_units_of_intercept():
    """Whatever constant the rows get; and a model without one has a line less."""
    X, y = sample(900, 0)
    tables = [
        Ridge(math.inf, alpha=1e-10, intervals=True, intercept_scaling=scaling, target_bound=1.0)
        .fit(X, y)
        .summary()
        .to_frame()
        .drop(columns="unit")
        for scaling in (1.0, 7.0)
    ]
    np.testing.assert_allclose(tables[0], tables[1], rtol=1e-4, atol=1e-6)
    assert len(Ridge(math.inf, intervals=True, fit_intercept=False, target_bound=1.0).fit(X, y).summary().coefficients) == 3


def test_one_column_and_many_work():
    """A single weight without intercept; 60 of them, whose noise is taken for Gaussian; columns that hang together."""
    rng = np.random.default_rng(0)
    X, noise = rng.uniform(-0.1, 0.1, size=(50_000, 60)), rng.uniform(-0.2, 0.2, size=50_000)
    one = Ridge(1.0, intervals=True, fit_intercept=False, random_state=0, target_bound=1.0).fit(X[:, :1], X[:, 0] + noise)
    assert one.conf_int().shape == (1, 2)
    many = Ridge(ApproxDP(8.0, 1e-6), intervals=True, random_state=0, target_bound=1.0).fit(X, 0.5 * X[:, 0] + noise)
    assert many.conf_int(target="unregularised").shape == (60, 2)
    same = Ridge(math.inf, intervals=True, target_bound=1.0).fit(X[:, [0, 0]], X[:, 0] + noise)
    assert same.conf_int().shape == (2, 2)
    with pytest.raises(ParameterError, match="the columns are linearly dependent"):
        same.conf_int(target="unregularised")


LAWS = {"laplace": {"budget": 2.0}, "gaussian": {"budget": ZCDP(0.2)}}


@pytest.mark.parametrize("law", LAWS)
def test_the_law_of_the_noise_is_that_of_the_weights_over_it(law):
    """On the same rows: estimates scatter by the privacy error, within what 300 fits tell; 30% off would be seen."""
    X, y = sample(4000, 2)
    model = Ridge(intervals=True, target_bound=1.0, **LAWS[law])
    known = [model.set_params(random_state=seed).fit(X, y).uncertainty() for seed in range(300)]
    assert known[0].privacy_errors.shape[0] == 4000
    scattered = np.std([one.estimates for one in known], axis=0)
    claimed = np.median([one.privacy_error for one in known], axis=0)
    np.testing.assert_allclose(claimed, scattered, rtol=0.2)
    design, bias = with_constant(X), np.mean([one.estimates for one in known], axis=0)
    exact = np.linalg.solve(design.T @ design + 4000 * model.alpha_ * np.eye(4), design.T @ y)
    assert (np.abs(bias - exact) < 0.25 * scattered).all()


@pytest.mark.parametrize("law", LAWS)
def test_the_residual_variance_is_right_on_average(law):
    """By the sums of 200 releases, to 5%."""
    X, y = sample(6000, 3)
    model = Ridge(intervals=True, target_bound=1.0, **LAWS[law])
    design = with_constant(X)
    products = np.linalg.inv(design.T @ design)
    found = []
    for seed in range(200):
        error = model.set_params(random_state=seed).fit(X, y).uncertainty("unregularised").sampling_error
        found.append(float(np.mean(error**2 / np.diagonal(products))))
    assert np.mean(found) == pytest.approx(SPREAD**2, rel=0.05)


CASES = {
    "pure": {"budget": 1.0},
    "approximate": {"budget": ApproxDP(0.5, 1e-6)},
    "concentrated": {"budget": ZCDP(0.05)},
    "number of rows private": {"budget": ZCDP(0.05), "neighbours": "add-or-remove-one", "n_rows_bounds": (2000, 6000)},
}


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_intervals_hold_the_populations_coefficients(name):
    """72 samples of 3,000 rows: coverage of both targets near 0.95, over four coefficients."""
    model = Ridge(intervals=True, target_bound=1.0, **CASES[name])
    X, y = sample(200_000, 10)
    design = with_constant(X)
    # The ridge of the sum is alpha times the lower bound.
    l2 = model.plan(3000, 3).l2 / 3000 * 200_000
    targets = {
        "regularised": np.linalg.solve(design.T @ design + l2 * np.eye(4), design.T @ y),
        "unregularised": np.linalg.solve(design.T @ design, design.T @ y),
    }
    rng, hits = np.random.default_rng(11), {target: [] for target in targets}
    for trial in range(72):
        drawn = rng.integers(200_000, size=3000)
        model.set_params(random_state=trial).fit(X[drawn], y[drawn])
        for target, weights in targets.items():
            ends = model.uncertainty(target).intervals(0.95)
            hits[target].append((ends[:, 0] <= weights) & (weights <= ends[:, 1]))
    for target in targets:
        assert 0.925 <= np.mean(hits[target]) <= 0.98


def test_many_numbers_with_laplace_noise_are_taken_for_gaussian():
    """The same standard deviations as by single draws."""
    from confide.inference import least_squares

    X, y = sample(4000, 2)
    evidence = Ridge(2.0, intervals=True, random_state=0, target_bound=1.0).fit(X, y)._evidence
    one = evidence.uncertainty().privacy_error
    most, least_squares._MAX_LAPLACE_NUMBERS = least_squares._MAX_LAPLACE_NUMBERS, 3
    try:
        other = evidence.uncertainty().privacy_error
    finally:
        least_squares._MAX_LAPLACE_NUMBERS = most
    np.testing.assert_allclose(one, other, rtol=0.06)


def test_intervals_that_cannot_be_trusted_are_refused_before_the_charge():
    """Few rows, many columns; more of them, or another currency, is accepted."""
    ledger = Ledger(limit=10.0)
    rng = np.random.default_rng(0)
    model = Ridge(0.5, intervals=True, ledger=ledger, target_bound=1.0)
    with pytest.raises(ParameterError, match="more rows, a larger budget, fewer columns, or ApproxDP"):
        model.fit(rng.normal(size=(500, 20)), rng.normal(size=500))
    assert len(ledger.entries()) == 0
    assert Ridge(0.5, intervals=True, target_bound=1.0).plan(1_000_000, 20).intervals.ratio < 1.0
    assert Ridge(ApproxDP(0.5, 1e-6), intervals=True, target_bound=1.0).plan(50_000, 20).intervals.ratio < 1.0
    # n |x|^2 / d, a third of 1 in the mean, against 2 s sqrt(D).
    plan = Ridge(1.0, intervals=True, target_bound=1.0).plan(30_000, 5)
    assert plan.intervals.usual_curvature == pytest.approx(30_000 / 3 / 5)
    assert plan.intervals.curvature_noise == pytest.approx(2 * math.sqrt(6) * plan.product_deviation)


def test_a_plan_and_a_statement_say_what_is_released_for_intervals():
    """And what it costs: nothing for Gaussian noise and replace-one, a little for others; without it nothing changes."""
    for budget, most in ((ZCDP(0.5), 1.0 + 1e-4), (1.0, 1.03)):
        sums = {"mechanism": "sufficient-statistics", "target_bound": 1.0}
        plans = [Ridge(budget, intervals=flag, **sums).plan(10_000, 5) for flag in (False, True)]
        assert 1.0 <= plans[1].product_deviation / plans[0].product_deviation < most
        assert "squared targets" in str(plans[1])
        assert "squared targets" not in str(plans[0])
        assert plans[1].to_dict()["square_deviation"] == plans[1].square_deviation > 0.0
        assert plans[0].to_dict()["intervals"] is None
    plans = [
        Ridge(ZCDP(0.5), intervals=flag, neighbours="add-or-remove-one", n_rows_bounds=(9000, 11_000), **sums).plan(
            n_features=5
        )
        for flag in (False, True)
    ]
    assert plans[1].product_deviation / plans[0].product_deviation == pytest.approx(math.sqrt(1.125), rel=1e-3)
    X, y = sample(3000, 4)
    ledger = Ledger(limit=ZCDP(0.6))
    model = Ridge(ZCDP(0.5), intervals=True, ledger=ledger, target_bound=1.0).fit(X, y)
    assert len(ledger.entries()) == 1
    assert ledger.spent().rho == pytest.approx(0.5)
    assert "squared targets" in model.guarantee_.statement()
    text = str(model.summary())
    assert "residuals have the same variance" in text
    assert "in favour of" not in text
    plain = Ridge(2.0, target_bound=1.0).fit(X, y)
    assert "squared targets" not in plain.guarantee_.statement()
    for ask in (plain.uncertainty, plain.conf_int, plain.summary):
        with pytest.raises(ParameterError, match="set intervals=True"):
            ask()
    with pytest.raises(ParameterError, match="intervals must be True or False"):
        Ridge(2.0, intervals=0.3, target_bound=1.0).plan(1000, 3)
    with pytest.raises(ParameterError, match="target must be"):
        model.conf_int(target="true")


@pytest.mark.parametrize(
    "parameters",
    [
        {"budget": 2.0},
        {"budget": ZCDP(0.3), "fit_intercept": False},
        {"budget": ZCDP(0.3), "neighbours": "add-or-remove-one", "n_rows_bounds": (2500, 4000)},
        {"budget": math.inf, "row_norm": math.inf, "target_bound": math.inf},
    ],
    ids=str,
)
def test_a_loaded_model_gives_the_same_intervals(parameters, tmp_path):
    """To the last bit; and a second save is the same file."""
    X, y = sample(3000, 4)
    model = Ridge(intervals=True, **{"target_bound": 1.0, **parameters}).fit(X, y)
    model.save(tmp_path / "one.json")
    again = confide.load(tmp_path / "one.json")
    for target in ("regularised", "unregularised"):
        assert np.array_equal(again.conf_int(target=target), model.conf_int(target=target))
    assert str(again.summary()) == str(model.summary())
    assert again.intervals is True
    again.save(tmp_path / "two.json")
    assert (tmp_path / "one.json").read_text() == (tmp_path / "two.json").read_text()


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("weights", [1.0, 2.0]),
        ("products", [1.0] * 9),
        ("square", math.nan),
        ("l2", 0.0),
        ("n_rows_low", 0),
        ("n_rows_high", 5),
        ("law", "cauchy"),
        ("deviations", [1.0, 1.0, 1.0]),
        ("deviations", [1.0, 1.0, 1.0, -1.0]),
        ("more", 1),
    ],
)
def test_parts_that_do_not_fit_are_refused(name, value):
    """A file cannot make intervals of something else."""
    X, y = sample(3000, 4)
    document = Ridge(2.0, intervals=True, target_bound=1.0).fit(X, y)._evidence.to_dict()
    SumsEvidence.from_dict(document)
    with pytest.raises((ParameterError, ValueError)):
        SumsEvidence.from_dict(document | {name: value})


def test_a_file_whose_intervals_speak_of_other_weights_is_refused(tmp_path):
    """The weights stand twice in the file and must agree."""
    from confide.files import read_document, write_document

    X, y = sample(3000, 4)
    Ridge(2.0, intervals=True, target_bound=1.0).fit(X, y).save(tmp_path / "m.json")
    content = read_document(tmp_path / "m.json")
    content["intervals"]["weights"][0] += 1e-9
    (tmp_path / "m.json").unlink()
    write_document(tmp_path / "m.json", content, overwrite=True)
    with pytest.raises(FileError, match="do not fit each other"):
        confide.load(tmp_path / "m.json")


def test_combinations_of_coefficients_from_sums_have_the_errors_of_their_parts():
    """Single coefficients as in `uncertainty_of_sums`, and the variance of a difference from the whole covariance."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-0.5, 0.5, size=(3000, 2))
    model = confide.Ridge(5.0, target_bound=1.0, intervals=True).fit(X, X @ [0.5, -0.3] + rng.uniform(-0.2, 0.2, 3000))
    known = model.uncertainty()
    (found,) = model._evidence.joint_uncertainty(np.vstack([np.eye(3), [[1.0, -1.0, 0.0]]]))
    np.testing.assert_allclose(found.estimates[:3], known.estimates, rtol=1e-9)
    np.testing.assert_allclose(found.total_error[:3], known.total_error, rtol=1e-9)
    np.testing.assert_allclose(
        found.privacy_errors[:, 3], found.privacy_errors[:, 0] - found.privacy_errors[:, 1], atol=1e-12
    )
    covariance = found.sampling_root.T @ found.sampling_root
    difference = covariance[0, 0] + covariance[1, 1] - 2 * covariance[0, 1]
    np.testing.assert_allclose(found.sampling_error[3] ** 2, difference, rtol=1e-9)


def test_a_prior_shifts_targets_and_coefficients_alike():
    """A fit to y with prior p is one to y - X p without it, plus p: estimates, errors and both targets agree."""
    X, y = sample(300, 1)
    prior = np.array([0.4, -0.3, 0.2, 0.1])
    moved = y - with_constant(X) @ prior
    shifted = Ridge(math.inf, alpha=0.05, intervals=True, target_bound=1e3, prior=(prior[:3], prior[3])).fit(X, y)
    plain = Ridge(math.inf, alpha=0.05, intervals=True, target_bound=1e3).fit(X, moved)
    for target in ("regularised", "unregularised"):
        one, other = shifted.uncertainty(target), plain.uncertainty(target)
        np.testing.assert_allclose(one.estimates, other.estimates + prior, rtol=1e-9)
        np.testing.assert_allclose(one.sampling_error, other.sampling_error, rtol=1e-6)
    np.testing.assert_allclose(shifted.conf_int(), plain.conf_int() + prior[:3, None], rtol=1e-6)


def test_intervals_with_a_prior_hold_the_populations_coefficients_and_reach_files(tmp_path):
    """Nine of ten fits or more at 95%, with noise and a ridge that pulls far; the file gives the same intervals."""
    truth, prior, hits = np.array([0.5, -0.3, 0.2, 0.1]), np.array([-0.5, 0.5, 0.0, 0.3]), []
    for seed in range(40):
        rng = np.random.default_rng(seed)
        X = rng.uniform(-0.5, 0.5, size=(20_000, 3))
        y = np.clip(with_constant(X) @ truth + 0.1 * rng.normal(size=20_000), -1, 1)
        model = Ridge(ApproxDP(2.0, 1e-6), alpha=0.02, intervals=True, target_bound=1.0, prior=(prior[:3], prior[3]))
        ends = model.fit(X, y).conf_int(target="unregularised")
        hits.append((ends[:, 0] <= truth[:3]) & (truth[:3] <= ends[:, 1]))
    assert np.mean(hits) >= 0.9
    # The ridge alone moves the released weights further than the intervals are wide.
    assert (np.abs(model.coef_ - truth[:3]) > ends[:, 1] - ends[:, 0]).any()
    model.save(tmp_path / "model.json")
    assert np.array_equal(confide.load(tmp_path / "model.json").conf_int(target="unregularised"), ends)


@pytest.mark.parametrize("law", ["laplace", "ball", "gaussian"])
@pytest.mark.parametrize("size", [2, 6])
def test_errors_due_to_noise_have_the_variance_of_its_law(law, size):
    """Of spherical noise too, whose entries are not independent: uncorrelated, of one variance each, and longer tails."""
    rng, n_numbers = np.random.default_rng(0), size * (size + 3) // 2
    entries, variances = rng.normal(size=(n_numbers, size)), rng.uniform(0.5, 2.0, n_numbers)
    evidence = SimpleNamespace(law=law)
    errors = _privacy_errors(evidence, entries, variances)
    np.testing.assert_allclose(np.cov(errors.T), (entries.T * variances) @ entries, rtol=0.2, atol=1.5)
    np.testing.assert_allclose(errors.var(axis=0), variances @ entries**2, rtol=0.12)
    kurtosis = stats.kurtosis(errors, axis=0).mean()
    # Spherical noise of N numbers, with the square of targets among them, has E X^4 = 3 (N + 1) (N + 3) and E X^2 = N + 1.
    expected = {"gaussian": 0.0, "ball": 6.0 / (n_numbers + 2.0)}
    if law in expected:
        assert abs(kurtosis - expected[law]) < 0.35
