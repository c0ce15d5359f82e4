"""The random features of kernels, chosen from public facts alone."""

from __future__ import annotations

import math

import numpy as np
import pytest

from confide import ZCDP, ApproxDP, KernelSVC, ParameterError, Schema
from confide.expected_noise import noise_on_a_weight
from confide.features.encoder import Encoder
from confide.features.fourier import KERNELS, FourierMap
from confide.training.auto_features import (
    ENOUGH_ROWS,
    LEAST_STRENGTH,
    MORE_ROWS_WITH_CATEGORIES,
    NORM_OVER_COLUMNS,
    NUMBERS_OF_KERNEL_FEATURES,
    STRENGTH_UNDER_LAPLACE,
    feature_norm,
    length_scale,
    number_of_features,
)


def numbers(count, **more):
    return Schema({f"x{i}": {"low": 0, "high": 1} for i in range(count)} | more)


def chosen(budget, n_rows, schema=None, **parameters):
    """The number of features that a kernel gets."""
    model = KernelSVC(budget, schema=schema or numbers(4), **parameters)
    features = model.chosen_map(n_rows)
    return 0 if features is None else features.n_features


@pytest.mark.parametrize(("count", "expected"), [(3, 0.27), (12, 1.08), (48, 4.0), (96, math.sqrt(32.0))])
def test_the_length_scale_grows_with_the_square_of_the_usual_norm_up_to_the_norm(count, expected):
    """A number has a mean square of a third, so 3 numbers have norm 1 and 96 have the root of 32."""
    encoder = Encoder(numbers(count))
    assert length_scale("rbf", count, encoder) == pytest.approx(expected, rel=5e-3)


def test_categories_count_in_full():
    """Eight of them have a squared norm of 8."""
    levels = {f"c{i}": {"categories": ["a", "b", "c"], "other": "a"} for i in range(8)}
    assert length_scale("rbf", 24, Encoder(Schema(levels))) == pytest.approx(0.27 * 8.0, rel=5e-3)


@pytest.mark.parametrize("other", [None, "a"])
def test_categories_of_two_levels_count_in_full(other):
    """Whether or not values that are not listed count as one of them."""
    level = {"categories": ["a", "b"]} | ({} if other is None else {"other": other})
    encoder = Encoder(Schema({f"c{i}": level for i in range(9)}))
    assert encoder.n_features == 9
    assert length_scale("rbf", 9, encoder) == pytest.approx(0.27 * 9.0, rel=5e-3)


@pytest.mark.parametrize("count", [1, 4, 100])
def test_without_a_schema_columns_are_standardised(count):
    """The length is half of the root of their number: a little shorter than that of scikit-learn's gamma="scale"."""
    assert length_scale("rbf", count, None) == pytest.approx(math.sqrt(count) / 2.0, rel=5e-3)
    assert length_scale("laplacian", count, None) == pytest.approx(count / 2.0, rel=5e-3)
    assert length_scale("cauchy", count, None) == pytest.approx(math.sqrt(count / 2.0), rel=5e-3)


def test_rings_in_standard_normal_columns_are_found():
    """At a pure epsilon of 4, without a schema: a length for rows of norm 1 would leave an accuracy of .5 to .8."""
    rng = np.random.default_rng(2)
    for n_columns in (2, 4):
        X = rng.normal(size=(6_000, n_columns))
        lengths = np.linalg.norm(X, axis=1)
        y = lengths > np.median(lengths)
        scores = [KernelSVC(4.0).fit(X[:4_000], y[:4_000]).score(X[4_000:], y[4_000:]) for _ in range(3)]
        assert np.median(scores) > 0.88


@pytest.mark.parametrize("kernel", KERNELS)
def test_all_kernels_fall_about_equally_far_at_usual_rows(kernel):
    """In the mean of the logarithm over pairs of made-up rows, within a factor of 1.6 of the Gaussian kernel."""
    columns = {f"c{i}": {"categories": list("abcde"), "other": "a"} for i in range(6)}
    encoder = Encoder(numbers(6, **columns))
    rng = np.random.default_rng(0)
    levels = np.eye(5)[rng.integers(0, 5, (2, 2000, 6))].reshape(2, 2000, 30)
    rows = np.concatenate([rng.uniform(-1, 1, (2, 2000, 6)), levels], axis=2)
    distances = rows[0] - rows[1]
    scale = length_scale(kernel, 36, encoder)
    falls = {
        "rbf": (distances**2).sum(axis=1) / (2 * scale**2),
        "laplacian": np.abs(distances).sum(axis=1) / scale,
        "cauchy": np.log1p(distances**2 / scale**2).sum(axis=1),
    }
    gaussian = (distances**2).sum(axis=1).mean() / (2 * length_scale("rbf", 36, encoder) ** 2)
    assert 1 / 1.6 < falls[kernel].mean() / gaussian < 1.6


@pytest.mark.parametrize(("parameters", "least"), [({}, 0), ({"feature_norm": None}, NUMBERS_OF_KERNEL_FEATURES[-1])])
def test_more_rows_and_larger_budgets_never_take_features_away(parameters, least):
    """Both ends are reached. Features alone are never fewer than the smallest number; beside columns there may be none."""
    for budget in (1.0, ApproxDP(1.0, 1e-6), ZCDP(0.05)):
        by_rows = [chosen(budget, int(10**power), **parameters) for power in np.arange(2.0, 7.1, 1.0)]
        assert by_rows == sorted(by_rows)
        assert (by_rows[0], by_rows[-1]) == (least, NUMBERS_OF_KERNEL_FEATURES[0])
    by_budget = [chosen(ApproxDP(epsilon, 1e-6), 20_000, **parameters) for epsilon in (0.01, 0.1, 1.0, 10.0)]
    assert by_budget == sorted(by_budget)
    assert by_budget[0] < by_budget[-1]


@pytest.mark.parametrize("mechanism", ["objective", "output"])
def test_laplace_noise_gets_fewer_features(mechanism):
    """It grows faster with their number, so ten times as many rows are needed for each unit of it."""
    facts = {"schema": numbers(4), "feature_norm": None, "mechanism": mechanism}
    for budget, factor in ((1.0, STRENGTH_UNDER_LAPLACE), (ApproxDP(1.0, 1e-6), 1.0)):

        def strength(n_rows, budget=budget):
            plan = KernelSVC(budget, n_features=500, **facts).plan(n_rows)
            return n_rows / noise_on_a_weight(plan)

        enough = next(n for n in (int(500 * 1.3**k) for k in range(60)) if strength(n) >= factor * LEAST_STRENGTH[500])
        assert chosen(budget, enough, **facts) >= 500
        assert chosen(budget, enough // 2, **facts) < 500


def noise_in_rows(plan):
    """Rows over the noise on one weight in units of a row's slope, recomputed here."""
    problem = plan.problem
    return problem.n_rows_low * math.sqrt(problem.n_weights) / (plan.noise_norm * plan.l2 / problem.loss_bounds.lipschitz)


@pytest.mark.parametrize("number", LEAST_STRENGTH)
def test_a_number_of_features_is_taken_from_its_strength_on(number):
    """Not with half as many rows."""
    facts = {"schema": numbers(4), "feature_norm": None}
    budget = ApproxDP(1.0, 1e-6)

    def strength(n_rows):
        return noise_in_rows(KernelSVC(budget, n_features=number, **facts).plan(n_rows))

    enough = next(n for n in (int(500 * 1.3**k) for k in range(60)) if strength(n) >= LEAST_STRENGTH[number])
    assert chosen(budget, enough, **facts) >= number
    assert chosen(budget, enough // 2, **facts) < number


def test_tables_with_many_categories_need_more_rows():
    """Two of three columns must be numbers, or half as many rows more come to each column."""
    budget = ApproxDP(1.0, 1e-6)
    level = {"c": {"categories": ["a", "b", "c"], "other": "a"}, "d": {"categories": ["a", "b"]}}
    for schema, factor in ((numbers(4, **level), 1.0), (numbers(3, **level), MORE_ROWS_WITH_CATEGORIES)):
        plan = KernelSVC(budget, n_features=NUMBERS_OF_KERNEL_FEATURES[-1], schema=schema).plan(20_000)
        by_column = noise_in_rows(plan) * plan.problem.row_norm / len(schema.columns)
        n_rows = int(20_000 * factor * ENOUGH_ROWS["gaussian"] / by_column)
        assert chosen(budget, int(1.15 * n_rows), schema) > 0
        assert chosen(budget, int(0.85 * n_rows), schema) == 0


@pytest.mark.parametrize(("budget", "law"), [(1.0, "laplace"), (ApproxDP(1.0, 1e-6), "gaussian"), (ZCDP(0.1), "gaussian")])
def test_features_stand_beside_columns_where_enough_rows_come_to_each_column(budget, law):
    """With half as many rows there are none, and with half as many rows to twelve columns there were too few before."""
    schema = numbers(12)

    def by_column(n_rows):
        plan = KernelSVC(budget, n_features=NUMBERS_OF_KERNEL_FEATURES[-1], schema=schema, centre=False).plan(n_rows)
        assert plan.noise.law == law
        return noise_in_rows(plan) * plan.problem.row_norm / 12

    enough = next(n for n in (int(500 * 1.15**k) for k in range(80)) if by_column(n) >= 1.01 * ENOUGH_ROWS[law])
    assert chosen(budget, enough, schema, centre=False) > 0
    assert chosen(budget, enough // 2, schema, centre=False) == 0


def test_the_features_of_a_typical_row_are_longer_than_its_columns():
    """Three numbers have norm 1, and three categories the root of 3."""
    levels = {f"c{i}": {"categories": ["a", "b", "c"], "other": "a"} for i in range(3)}
    for schema, norm in ((numbers(3), 1.0), (Schema(levels), math.sqrt(3.0))):
        assert feature_norm(Encoder(schema)) == pytest.approx(NORM_OVER_COLUMNS * norm, rel=5e-3)
        plan = KernelSVC(1.0, schema=schema, n_features=8).plan(1000)
        assert plan.problem.row_bound.l2_norm == pytest.approx(
            math.hypot(NORM_OVER_COLUMNS * norm, math.sqrt(3.0)), rel=5e-3
        )


def test_without_privacy_features_are_many_and_rows_are_not_counted():
    """The number of rows says nothing then."""

    def never():
        raise AssertionError

    settings = KernelSVC(math.inf)._settings(None)
    assert number_of_features(settings, None, never) == NUMBERS_OF_KERNEL_FEATURES[0] == 1000


def test_a_private_number_of_rows_is_not_looked_at():
    """Its public lower bound is."""
    facts = {"neighbours": "add-or-remove-one", "schema": numbers(3), "feature_norm": None}
    few, many = (KernelSVC(ApproxDP(1.0, 1e-6), n_rows_bounds=bounds, **facts) for bounds in ((500, 10**6), (10**6, 10**6)))
    assert few.chosen_map().n_features == NUMBERS_OF_KERNEL_FEATURES[-1]
    assert many.chosen_map().n_features == NUMBERS_OF_KERNEL_FEATURES[0]


def test_a_chosen_map_is_that_of_the_fit_and_given_values_stay():
    """The plan has as many weights; a fit with the chosen values chooses nothing more."""
    model = KernelSVC(1.0, schema=numbers(3), map_seed=7)
    fourier = model.chosen_map(50_000)
    assert isinstance(fourier, FourierMap)
    assert (fourier.n_inputs, fourier.seed, fourier.length_scale) == (3, 7, 0.27)
    assert model.plan(50_000).problem.n_features == 3 + fourier.n_features
    named = KernelSVC(1.0, schema=numbers(3), map_seed=7, n_features=fourier.n_features, length_scale=fourier.length_scale)
    assert named.plan(50_000) == model.plan(50_000)
    assert named.chosen_map(10) == fourier
    assert KernelSVC(1.0, length_scale=2.0).chosen_map(50_000, 3).length_scale == 2.0
    with pytest.raises(ParameterError, match="n_rows"):
        model.chosen_map()
    with pytest.raises(ParameterError, match="n_features"):
        KernelSVC(1.0).chosen_map(100)


def test_directions_are_orthogonal_beside_columns_where_the_kernel_allows_it():
    """A value that was given stays."""
    schema = numbers(3)
    for parameters, expected in (
        ({}, True),
        ({"feature_norm": None}, False),
        ({"orthogonal": False}, False),
        ({"kernel": "cauchy"}, False),
        ({"feature_norm": None, "orthogonal": True}, True),
    ):
        assert KernelSVC(1.0, schema=schema, n_features=8, **parameters).chosen_map(100).orthogonal is expected
    assert KernelSVC(1.0, n_features=8).chosen_map(100, 3).orthogonal is False


@pytest.mark.parametrize("bad", [{"n_features": 0}, {"feature_norm": 1.0}])
def test_columns_without_a_schema_stand_beside_no_features(bad):
    """Nothing is known of their bounds."""
    with pytest.raises(ParameterError, match="schema"):
        KernelSVC(1.0, **bad).plan(100, 3)


@pytest.mark.parametrize("bad", ["long", -1.0, 0.0, math.nan, math.inf, True, [1.0]])
def test_a_norm_of_features_that_is_no_positive_number_is_refused(bad):
    """Before any row."""
    with pytest.raises(ParameterError, match="feature_norm"):
        KernelSVC(1.0, schema=numbers(3), feature_norm=bad).plan(100)


@pytest.mark.parametrize("bad", [{"n_features": "many"}, {"length_scale": "long"}, {"n_features": 7}, {"kernel": "linear"}])
def test_what_is_neither_automatic_nor_a_number_is_refused(bad):
    """Before any row, with a message of its own."""
    with pytest.raises(ParameterError):
        KernelSVC(1.0, **bad).chosen_map(100, 3)
    with pytest.raises(ParameterError):
        KernelSVC(1.0, **bad).plan(100, 3)
