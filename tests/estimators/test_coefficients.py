"""What a linear model says of its coefficients: intervals and tables by name and by class, or why there are none."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import NotFittedError

from confide import (
    ApproxDP,
    HuberRegressor,
    KernelSVC,
    LinearSVC,
    LogisticRegression,
    ParameterError,
    PoissonRegressor,
    Ridge,
    Schema,
)
from confide.estimators.released import effects_of

rng = np.random.default_rng(3)
X = rng.uniform(-0.5, 0.5, size=(4000, 2))
SCORES = 4.0 * X[:, 0] - 3.0 * X[:, 1] + rng.logistic(size=4000)
Y = (SCORES > 0.0).astype(int)
THREE = np.digitize(SCORES, [-1.0, 1.0])
BUDGET = ApproxDP(60.0, 1e-5)


@pytest.fixture(scope="module")
def two():
    return LogisticRegression(BUDGET, inference_share=0.3, alpha=0.01, random_state=0).fit(X, Y)


@pytest.fixture(scope="module")
def three():
    frame = pd.DataFrame(X, columns=["east", "north"])
    model = LogisticRegression(
        BUDGET, inference_share=0.3, alpha=0.01, random_state=0, multiclass="one-vs-rest", classes=["a", "b", "c"]
    )
    return model.fit(frame, np.array(["a", "b", "c"])[THREE])


@pytest.fixture(scope="module")
def least_squares():
    return Ridge(BUDGET, target_bound=1.0, intervals=True, random_state=0).fit(X, X[:, 0])


def test_intervals_are_those_of_the_coefficients_without_the_intercept(two):
    """(n_coefficients, 2) of two classes; the intercept is the last that `uncertainty` tells of."""
    ends = two.uncertainty().intervals(0.9)
    assert ends.shape == (3, 2)
    np.testing.assert_array_equal(two.conf_int(0.9), ends[:2])
    assert (two.conf_int(0.9)[:, 0] < two.coef_[0]).all()
    assert (two.coef_[0] < two.conf_int(0.9)[:, 1]).all()


def test_each_class_has_its_intervals(three):
    """(n_classes, n_coefficients, 2), each without its intercept."""
    ends = three.uncertainty().intervals(0.95)
    assert three.conf_int().shape == (3, 2, 2)
    np.testing.assert_array_equal(three.conf_int(), ends.reshape(3, 3, 2)[:, :2])
    assert ((three.conf_int()[..., 0] < three.coef_) & (three.coef_ < three.conf_int()[..., 1])).all()


def test_a_model_without_an_intercept_has_intervals_for_all_it_has():
    """Nothing is cut off."""
    model = LogisticRegression(BUDGET, inference_share=0.3, alpha=0.01, fit_intercept=False, random_state=0).fit(X, Y)
    np.testing.assert_array_equal(model.conf_int(), model.uncertainty().intervals(0.95))
    assert model.conf_int().shape == (2, 2)
    assert [one.name for one in model.summary().coefficients] == ["x0", "x1"]


def test_the_target_goes_along(two):
    """Of intervals and of tables; another one gives other ends."""
    corrected = two.conf_int(target="unregularised")
    np.testing.assert_array_equal(corrected, two.uncertainty("unregularised").intervals(0.95)[:2])
    assert not np.array_equal(corrected, two.conf_int())
    assert two.summary(target="unregularised").target == "unregularised"
    np.testing.assert_allclose([one.low for one in two.summary(target="unregularised").coefficients][:2], corrected[:, 0])


def test_a_table_names_columns_and_the_intercept(two, three):
    """Of several classes "class: column"."""
    assert [one.name for one in two.summary().coefficients] == ["x0", "x1", "(intercept)"]
    names = [f"{label}: {name}" for label in "abc" for name in ("east", "north", "(intercept)")]
    assert [one.name for one in three.summary().coefficients] == names


def test_a_table_says_of_what_it_is(two, three, least_squares):
    """Kind of model, outcome, level, alpha and guarantee; whether it assumes equal variances; whether it is centred."""
    table = two.summary(0.8)
    assert (table.model, table.outcome, table.level) == ("LogisticRegression", "class 1", 0.8)
    assert (table.alpha, table.guarantee) == (two.alpha_, two.guarantee_)
    assert (table.assumes_equal_variance, table.is_centred) == (False, False)
    assert three.summary().outcome == "the class named before each"
    table = least_squares.summary()
    assert (table.model, table.outcome, table.assumes_equal_variance, table.is_centred) == ("Ridge", "", True, False)
    softmax = LogisticRegression(BUDGET, inference_share=0.3, alpha=0.01, random_state=0, classes=[0, 1, 2]).fit(X, THREE)
    assert softmax.summary().is_centred


def test_a_table_speaks_of_the_positive_class_where_that_sorts_first():
    """Estimates are those of `uncertainty` with the other sign, and intervals change ends."""
    schema = Schema(columns={"x": {"low": -1, "high": 1}}, target={"column": "ill", "negative": "well", "positive": "ill"})
    model = LogisticRegression(BUDGET, inference_share=0.3, alpha=0.01, schema=schema, random_state=0)
    model.fit(pd.DataFrame({"x": X[:, 0]}), np.where(Y == 1, "ill", "well"))
    first = model.summary().coefficients[0]
    assert model.summary().outcome == 'ill = "ill"'
    assert first.estimate == -model.uncertainty().estimates[0] > 0.0
    assert (first.low, first.high) == pytest.approx(tuple(-model.conf_int()[0, ::-1]))


def test_it_follows_what_was_released_and_not_the_number_of_calls(two):
    """The same answer each time, since nothing is drawn anew."""
    np.testing.assert_array_equal(two.conf_int(), two.conf_int())
    assert str(two.summary()) == str(two.summary())


def test_least_squares_has_intervals_from_its_sums(least_squares):
    """(n_coefficients, 2) around the coefficients of a vector."""
    ends = least_squares.conf_int()
    assert ends.shape == (2, 2)
    assert ((ends[:, 0] < least_squares.coef_) & (least_squares.coef_ < ends[:, 1])).all()


WITHOUT = {
    "no share": (lambda: LogisticRegression(1.0).fit(X, Y), "set inference_share"),
    "support vectors without a share": (lambda: LinearSVC(1.0).fit(X, Y), "set inference_share"),
    "random features": (lambda: KernelSVC(1.0, n_features=4).fit(X, Y), "set inference_share"),
    "least squares": (lambda: Ridge(1.0, target_bound=1.0).fit(X, X[:, 0]), "intervals=True"),
    "residuals": (lambda: HuberRegressor(1.0, target_bound=1.0).fit(X, X[:, 0]), "set inference_share"),
    "counts": (lambda: PoissonRegressor(1.0, target_bound=3.0).fit(X, Y), "set inference_share"),
}


@pytest.mark.parametrize("name", WITHOUT)
def test_a_model_without_intervals_says_what_to_do(name):
    """By every question that one may ask."""
    make, words = WITHOUT[name]
    model = make()
    for ask in (model.uncertainty, model.conf_int, model.summary):
        with pytest.raises(ParameterError, match=f"{words}.* Each fit spends anew.*coef_"):
            ask()


def test_a_model_that_is_not_fitted_has_none():
    """scikit-learn's NotFittedError comes first."""
    for ask in (LogisticRegression().uncertainty, Ridge().uncertainty, LinearSVC().summary):
        with pytest.raises(ValueError, match="not fitted"):
            ask()


def test_a_level_outside_of_its_range_and_an_unknown_target_are_refused(two):
    """By intervals and by tables."""
    for ask in (two.conf_int, two.summary):
        for level in (0.0, 1.0, math.nan, "0.9"):
            with pytest.raises(ParameterError, match="level"):
                ask(level)
        with pytest.raises(ParameterError, match="target must be"):
            ask(target="true")


@pytest.mark.parametrize("asked", ["conf_int", "summary", "uncertainty"])
def test_a_model_that_is_not_fitted_says_so(asked):
    """As scikit-learn's models do, whichever is asked first."""
    with pytest.raises(NotFittedError):
        getattr(LogisticRegression(1.0), asked)()


def test_the_covariance_has_the_total_errors_on_its_diagonal_and_gives_those_of_differences(two, three):
    """In both units, with names as in the table; several scores have none."""
    # Rows and noise are fixed: at a few draws the two standard errors of a difference disagree by more than a thousandth.
    fixed = np.random.default_rng(5)
    frame = pd.DataFrame({"x": fixed.uniform(0, 9, 2000), "g": fixed.choice(["a", "b", "c"], 2000)})
    schema = Schema(columns={"x": {"low": 0, "high": 9}, "g": {"categories": ["a", "b", "c"]}})
    model = LogisticRegression(BUDGET, schema=schema, inference_share=0.3, random_state=1).fit(frame, np.arange(2000) % 2)
    squares = Ridge(5.0, schema=schema, target_bound=1.0, intervals=True).fit(frame, frame.x / 9)
    for each, units in ((model, "original"), (model, "encoded"), (squares, "original"), (two, None)):
        found, table = each.covariance(units=units), each.summary(units=units).to_frame()
        assert found.index.tolist() == found.columns.tolist() == table.index.tolist()
        np.testing.assert_allclose(np.diag(found), table["total_error"] ** 2)
        assert np.linalg.eigvalsh(found.to_numpy()).min() > -1e-9 * np.linalg.norm(found)
    found = model.covariance()
    variance = found.loc["g: b", "g: b"] + found.loc["g: c", "g: c"] - 2.0 * found.loc["g: b", "g: c"]
    assert math.sqrt(variance) == pytest.approx(effects_of(model).contrast("g", "b", "c").standard_error, rel=1e-3)
    with pytest.raises(ParameterError, match="one score"):
        three.covariance()


def test_simultaneous_intervals_are_wider_and_have_the_same_shape(two, three):
    """By the joint law for one score, and by Bonferroni's inequality over classes that have moments of their own."""
    for model, count in ((two, 2), (three, 6)):
        alone, together = model.conf_int(0.9), model.conf_int(0.9, simultaneous=True)
        assert alone.shape == together.shape
        assert (together[..., 0] < alone[..., 0]).all()
        assert (together[..., 1] > alone[..., 1]).all()
        bonferroni = model.conf_int(1.0 - 0.1 / count)
        if model is three:
            np.testing.assert_allclose(together, bonferroni)
        else:
            assert np.diff(together).sum() <= np.diff(bonferroni).sum() * (1.0 + 1e-9)


def test_a_table_may_be_corrected_for_the_family_of_its_coefficients(two):
    """Intervals and p-values of all but the intercept, which keeps its own; the estimates stay."""
    plain, adjusted = two.summary(0.9), two.summary(0.9, adjust="single-step")
    np.testing.assert_allclose(adjusted.to_frame()[["low", "high"]][:2], two.conf_int(0.9, simultaneous=True))
    assert adjusted.coefficients[2].low == plain.coefficients[2].low
    assert adjusted.coefficients[2].adjusted_p_value is None
    for one, other in zip(plain.coefficients[:2], adjusted.coefficients[:2], strict=True):
        assert one.estimate == other.estimate
        assert one.p_value == other.p_value <= other.adjusted_p_value
    assert "adjusted p" in adjusted.headings
    assert "adjusted_p_value" not in plain.to_frame()
    assert adjusted.to_dict()["adjust"] == "single-step"
    assert "All 2 intervals together contain, with probability 0.9" in " ".join(str(adjusted).split())
    with pytest.raises(ParameterError, match="must be one of"):
        two.summary(adjust="tukey")


def test_single_step_is_refused_where_the_joint_law_was_not_released(three):
    """One against the rest; the others are there."""
    with pytest.raises(ParameterError, match="needs the joint law"):
        three.summary(adjust="single-step")
    assert three.summary(adjust="holm").adjust == "holm"


def test_the_smallest_effects_are_those_that_a_test_of_this_power_finds(two):
    """Two-sided, in total errors; in a family each test has its part of the size."""
    table = two.summary()
    found = table.smallest_effects()
    errors = [one.total_error for one in table.coefficients[:2]]
    assert found["smallest_effect"].tolist() == pytest.approx([2.8016 * each for each in errors], rel=1e-4)
    assert table.smallest_effects(0.01, 0.9)["smallest_effect"].iloc[0] == pytest.approx(3.8574 * errors[0], rel=1e-4)
    adjusted = two.summary(adjust="holm").smallest_effects()
    assert adjusted["smallest_effect"].iloc[0] == pytest.approx(3.0830 * errors[0], rel=1e-4)
    for wrong in ((0.0, 0.8), (0.5, 0.4), (0.05, 1.0), (True, 0.8)):
        with pytest.raises(ParameterError, match="0 < size < power < 1"):
            table.smallest_effects(*wrong)


@pytest.fixture(scope="module")
def trial():
    """A made-up trial: its schema, its rows, and the difference of risks over them."""
    schema = Schema(
        columns={"age": {"low": 20, "high": 70}, "drug": {"categories": ["none", "low", "high"]}},
        target={"column": "ill", "negative": "yes", "positive": "no"},
    )
    draws = np.random.default_rng(2)
    frame = pd.DataFrame({"age": draws.uniform(20, 70, 20_000), "drug": draws.choice(["none", "low", "high"], 20_000)})
    base = 0.04 * (frame["age"] - 45)
    effects = {"none": 0.0, "low": -0.4, "high": -1.2}
    ill = draws.uniform(size=20_000) < 1.0 / (1.0 + np.exp(-base - frame["drug"].map(effects)))
    changes = [np.mean(1.0 / (1.0 + np.exp(-base - each)) - 1.0 / (1.0 + np.exp(-base))) for each in (-0.4, -1.2)]
    return schema, frame, np.where(ill, "yes", "no"), changes


def test_average_risk_differences_are_those_of_the_class_that_is_shown(trial):
    """Of every level against the reference, with intervals; saved models keep them."""
    schema, frame, ill, changes = trial
    model = LogisticRegression(
        ApproxDP(8.0, 1e-6), schema=schema, interest=["drug", "age"], risk_differences=True, random_state=0
    ).fit(frame, ill)
    table = model.average_risk_differences()
    assert [one.name for one in table.coefficients] == ["drug: low", "drug: high", "age"]
    assert [one.estimate for one in table.coefficients[:2]] == pytest.approx([-each for each in changes], abs=0.03)
    for one, change in zip(table.coefficients, changes, strict=False):
        assert one.low <= -change <= one.high
        assert one.high - one.low < 0.06
    assert table.coefficients[2].estimate == pytest.approx(-0.0085, abs=0.001)
    assert "risk diff" in table.headings
    adjusted = model.average_risk_differences(adjust="holm")
    assert adjusted.coefficients[0].low < table.coefficients[0].low
    assert table.to_dict()["quantity"] == "risk differences"
    with pytest.raises(ParameterError, match="log-odds"):
        table.risk_differences(0.3)


def test_without_sums_for_them_there_are_no_average_risk_differences(two):
    """The message says what to ask for."""
    with pytest.raises(ParameterError, match="risk_differences=True"):
        two.average_risk_differences()
    with pytest.raises(NotFittedError):
        LogisticRegression(BUDGET).average_risk_differences()
