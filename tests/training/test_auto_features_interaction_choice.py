"""Which interactions an additive model gets, from public facts alone."""

from __future__ import annotations

import math

import numpy as np
import pytest

from confide import AdditiveClassifier, AdditiveRegressor, ApproxDP, ParameterError, Schema, SchemaError, Smooth
from confide.features.encoder import Encoder
from confide.features.fourier import RandomFeatures
from confide.features.schema import Interaction
from confide.privacy.gaussian import ideal_mu
from confide.training.alpha import usual_norm
from confide.training.auto_features import (
    KNOTS_OF_FEATURES,
    LEAST_FEATURES,
    MOST_FEATURES,
    MOST_PRODUCTS,
    with_interactions,
    with_pairs,
)

NUMBERS = {f"x{i}": {"low": 0, "high": 1, "knots": 6} for i in range(4)}
JOB = {"categories": ["a", "b", "c"], "other": True}
PLACE = {"categories": [f"p{i}" for i in range(20)]}
SCHEMA = Schema(NUMBERS | {"job": JOB, "place": PLACE})
OPEN_NUMBERS = {name: {"low": 0, "high": 1} for name in NUMBERS}
OPEN = Schema(OPEN_NUMBERS | {"job": JOB, "place": PLACE})
"""The same where the knots are still to be chosen."""


def never(*_):
    raise AssertionError


def chosen(interactions, n_rows=50_000, budget=1.0, schema=SCHEMA, **parameters):
    """The schema that an additive classifier chooses."""
    return AdditiveClassifier(budget, schema=schema, interactions=interactions, **parameters).chosen_schema(n_rows)


def test_nothing_said_leaves_the_schema_itself():
    """Neither the settings nor the number of rows are looked at."""
    assert with_interactions(SCHEMA, SCHEMA, (), never, never, never) is SCHEMA


def test_named_interactions_are_coarse_and_stand_beside_those_of_the_schema():
    """A mapping and an object say their own knots and scale."""
    schema = Schema(SCHEMA.columns, interact=[["x0", "x1"]])
    made = with_interactions(
        schema,
        schema,
        [("x0", "x2"), {"columns": ["x1", "job"], "scale": 0.5}, Interaction(("x2", "x3"), 2)],
        never,
        never,
        never,
    )
    assert made.interact == (
        Interaction(("x0", "x1")),
        Interaction(("x0", "x2"), 1, 1.0),
        Interaction(("x1", "job"), None, 0.5),
        Interaction(("x2", "x3"), 2),
    )


def test_named_interactions_that_the_schema_describes_stay_as_they_are_there():
    """So a chosen schema may be given again beside the same parameter. A pair that is named twice is refused."""
    made = with_interactions(SCHEMA, SCHEMA, [["x0", "x2"]], never, never, never)
    assert with_interactions(made, made, [["x2", "x0"]], never, never, never) is made
    with pytest.raises(SchemaError, match="twice"):
        with_interactions(made, made, [["x0", "x2"], ["x2", "x0"]], never, never, never)


def test_pairs_are_all_pairs_with_few_products_that_are_not_named_yet():
    """A number with 20 places has 60 products, so it is left out; places alone would have more."""
    made = with_pairs(Schema(SCHEMA.columns, interact=[["x1", "x0"]]))
    pairs = {interaction.columns for interaction in made.interact[1:]}
    numbers = [f"x{i}" for i in range(4)]
    expected = {(a, b) for i, a in enumerate(numbers) for b in numbers[i + 1 :]} | {(name, "job") for name in numbers}
    assert pairs == expected - {("x0", "x1")}
    groups = Encoder(made).groups[len(SCHEMA.columns) + 1 :]
    assert {group.size for group in groups} == {9, 12}
    assert max(group.size for group in groups) <= MOST_PRODUCTS


def test_pairs_take_no_larger_part_of_a_row_than_its_columns():
    """The squares of their scales add up to about the number of columns. A second choice changes nothing."""
    schema = Schema({f"x{i}": {"low": 0, "high": 1, "knots": 3} for i in range(12)})
    made = with_pairs(schema)
    assert len(made.interact) == 66
    assert math.fsum(interaction.scale**2 for interaction in made.interact) == pytest.approx(12, rel=0.05)
    assert with_pairs(made) == made


def test_pairs_of_straight_lines_are_products_of_lines():
    """One weight a pair, not nine."""
    made = with_pairs(Schema({name: {"low": 0, "high": 1, "knots": 0} for name in "abc"}))
    assert [interaction.knots for interaction in made.interact] == [0, 0, 0]
    assert Encoder(made).n_features == 6


@pytest.mark.parametrize(("budget", "law"), [(1.0, "laplace"), (ApproxDP(1.0, 1e-5), "gaussian"), (math.inf, "gaussian")])
def test_all_interactions_are_random_features_whose_number_follows_the_law_of_the_noise(budget, law):
    """Fewer under Laplace noise. Length scale and norm follow from the columns; a second choice changes nothing."""
    made = chosen("all", budget=budget)
    features = made.random_features
    assert features.number == MOST_FEATURES[law]
    norm = usual_norm(Encoder(SCHEMA).row_bound, 0.0)
    assert features.norm == pytest.approx({"gaussian": 1.15, "laplace": 0.8}[law] * norm, abs=0.01)
    assert features.length_scale == pytest.approx(0.5 * 6**0.4, abs=0.01)
    assert chosen("all", schema=made, budget=budget) == made
    own = Schema(SCHEMA.columns, random_features=RandomFeatures(10, 1.0))
    assert chosen("all", schema=own).random_features == own.random_features


def test_the_number_of_features_follows_from_rows_and_noise():
    """Half of the rows for each unit of noise, here rows times the ideal mu, in whole hundreds, within both limits."""
    budget = ApproxDP(1.0, 1e-5)
    for n_rows in (100, 5000, 10_000, 12_000, 10**6):
        more = {"neighbours": "add-or-remove-one", "n_rows_bounds": (n_rows, n_rows + 100)}
        found = chosen("all", None, budget=budget, **more).random_features.number
        expected = min(max(n_rows * ideal_mu(budget) / 2.0, LEAST_FEATURES), MOST_FEATURES["gaussian"])
        assert abs(found - expected) <= 100 + 0.08 * expected, n_rows
        assert found % 100 == 0
        assert LEAST_FEATURES <= found <= MOST_FEATURES["gaussian"]


@pytest.mark.parametrize(("n_rows", "knots"), [(10, KNOTS_OF_FEATURES), (10**7, 12)])
def test_random_features_see_a_fixed_number_of_knots(n_rows, knots):
    """It decides how far apart rows are. Curves beside them have those of curves alone, but no fewer than features see.

    What the user says stays, and whole numbers near each other get fewer.
    """
    columns = {"a": {"low": 0, "high": 1.5}, "b": {"low": 0, "high": 1, "knots": 2}, "c": {"low": 0, "high": 1}}
    made = chosen("all", n_rows, schema=Schema(columns))
    assert [column.knots for column in made.columns] == [knots, 2, 0]
    assert made.random_features.knots == KNOTS_OF_FEATURES
    alone = chosen((), n_rows, schema=Schema(columns))
    assert alone.columns[0].knots in (made.columns[0].knots, 0, 1, 2, 3)


def by_rows(model, least, most):
    """The least number of rows, within 3%, at which a model has random features."""
    while most > 1.03 * least:
        middle = int(math.sqrt(least * most))
        has_features = model.chosen_schema(middle).random_features is not None
        least, most = (least, middle) if has_features else (middle, most)
    return most


def test_auto_takes_random_features_where_numbers_prevail_and_noise_is_small():
    """More rows and a larger budget never take them away, and both ends are reached."""
    by_rows = [chosen("auto", 10**n, ApproxDP(1.0, 1e-5), OPEN).random_features is not None for n in range(2, 8)]
    by_budget = [
        chosen("auto", 50_000, ApproxDP(10.0**power, 1e-5), OPEN).random_features is not None for power in range(-3, 2)
    ]
    for found in (by_rows, by_budget):
        assert found == sorted(found)
        assert set(found) == {False, True}


@pytest.mark.parametrize(("n_columns", "n_rows", "expected"), [(15, 60_000, True), (40, 60_000, False), (40, 120_000, True)])
def test_auto_asks_for_more_rows_for_each_of_many_columns(n_columns, n_rows, expected):
    """With 40 columns 2.7 times as many rows for each as with 15; a mu of at most a quarter counts."""
    schema = Schema({f"x{i}": {"low": 0, "high": 1} for i in range(n_columns)})
    found = chosen("auto", n_rows, ApproxDP(8.0, 1e-6), schema)
    assert (found.random_features is not None) is expected


def test_auto_takes_none_where_categories_prevail():
    """However many rows there are: four numbers of seven columns are not enough."""
    schema = Schema(OPEN.columns + Schema({"more": JOB}).columns)
    assert chosen("auto", 10**7, schema=schema).random_features is None


def test_auto_keeps_what_the_schema_says_and_takes_none_with_intervals():
    """A schema that names interactions or all knots has been thought about. There are no intervals for random features."""
    budget = ApproxDP(4.0, 1e-5)
    assert chosen("auto", 10**6, budget, OPEN).random_features is not None
    assert chosen("auto", 10**6, budget, Schema(OPEN.columns, interact=[["x0", "x1"]])).random_features is None
    assert chosen("auto", 10**6, budget) == SCHEMA
    assert chosen("auto", 10**6, budget, OPEN, knots=6).random_features is None
    assert chosen("auto", 10**6, budget, OPEN, inference_share=0.3).random_features is None


def test_auto_is_the_default_and_without_privacy_asks_for_rows_too():
    """A sample is noise as well: four rows count as one for each unit of noise."""
    least = by_rows(AdditiveClassifier(math.inf, schema=Schema(OPEN_NUMBERS)), 100, 10**6)
    assert least == pytest.approx(4 * 200 * 4, rel=0.1)
    assert AdditiveRegressor(1.0, target_bound=1.0).interactions == "auto"


def test_auto_takes_none_for_three_classes():
    """Declared, in a plan, or found among labels, as in a fit."""
    model = AdditiveClassifier(ApproxDP(4.0, 1e-5), bounds=(0, 1))
    features = {n: model.plan(20_000, 3, n_classes=n).problem.n_features for n in (2, 3)}
    assert features[2] > 1000 > features[3]
    rng = np.random.default_rng(0)
    rows = rng.uniform(size=(3000, 2))
    for labels, n_classes in ((rows[:, 0] > 0.5, 2), (np.digitize(rows[:, 0], [0.3, 0.6]), 3)):
        fitted = AdditiveClassifier(ApproxDP(4.0, 1e-5), bounds=(0, 1)).fit(rows, labels.astype(int))
        schema = fitted.schema_
        assert ((schema.random_features or schema.features_not_found) is not None) == (n_classes == 2)


def test_a_regression_chooses_too():
    """By the same rule."""
    model = AdditiveRegressor(ApproxDP(4.0, 1e-5), schema=OPEN, target_bound=1.0, interactions="auto")
    assert model.chosen_schema(10**6).random_features.number == MOST_FEATURES["gaussian"]
    assert model.chosen_schema(1000).random_features is None


def test_a_regression_has_random_features_from_some_thousand_rows_in_all_on():
    """Two thousand for each unit of noise, however few columns there are; a classifier asks for 200 for each column."""
    schema = Schema({"a": {"low": 0, "high": 1}, "b": {"low": 0, "high": 1}})
    budget, found = ApproxDP(1.0, 1e-5), {}
    more = {"schema": schema}
    for name, model in (
        ("regression", AdditiveRegressor(budget, target_bound=1.0, **more)),
        ("classes", AdditiveClassifier(budget, **more)),
    ):
        found[name] = by_rows(model, 100, 10**6) * ideal_mu(budget) / 2.0
    assert found["regression"] == pytest.approx(2000.0, rel=0.35)
    assert found["classes"] == pytest.approx(400.0, rel=0.35)


def test_laplace_noise_asks_for_four_numbers_in_five_columns():
    """Gaussian noise for two in three."""
    for n_numbers, budgets in ((4, [4.0, ApproxDP(4.0, 1e-5)]), (3, [ApproxDP(4.0, 1e-5)])):
        columns = [*Schema(OPEN_NUMBERS).columns[:n_numbers], *Schema({"job": JOB}).columns]
        for budget in (4.0, ApproxDP(4.0, 1e-5)):
            has_features = chosen("auto", 10**6, budget, Schema(columns)).random_features is not None
            assert has_features == (budget in budgets), (n_numbers, budget)


OTHERS = {
    "counts": (AdditiveRegressor, {"target_bound": 9.0, "loss": "poisson"}),
    "squared errors": (AdditiveRegressor, {"target_bound": 9.0, "loss": "squared"}),
    "monotone effects": (AdditiveClassifier, {"monotone": {"x0": "up"}}),
    "a penalty": (AdditiveClassifier, {"penalty": {"x0": Smooth()}}),
    "three classes": (AdditiveClassifier, {"classes": ["a", "b", "c"]}),
    "intervals": (AdditiveClassifier, {"inference_share": 0.3}),
    "declared signs": (AdditiveClassifier, {"prior": {"x0": "up"}}),
}


@pytest.mark.parametrize("kind", OTHERS)
def test_auto_takes_none_where_features_were_not_compared(kind):
    """However many rows there are."""
    estimator, more = OTHERS[kind]
    schema = Schema(OPEN_NUMBERS)
    plain = AdditiveClassifier(ApproxDP(4.0, 1e-5), schema=schema).chosen_schema(10**6)
    assert plain.random_features is not None
    model = estimator(ApproxDP(4.0, 1e-5), schema=schema, **more)
    assert model.chosen_schema(10**6).random_features is None


WRONG = {
    "another word": ("triples", ParameterError, '"pairs", "all" or "auto"'),
    "a number": (2, ParameterError, "must be a list of lists"),
    "names alone": (["x0", "x1"], ParameterError, "each interaction must be a list"),
    "a column with itself": ([["x0", "x0"]], SchemaError, "two or more different names"),
    "an unknown column": ([["x0", "x9"]], SchemaError, '"x9" is no column'),
    "one column": ([["x0"]], SchemaError, "two or more"),
    "knots outside of their range": ([{"columns": ["x0", "x1"], "knots": -1}], SchemaError, "knots must be"),
}


@pytest.mark.parametrize(("interactions", "error", "words"), WRONG.values(), ids=WRONG)
def test_interactions_that_cannot_be_are_refused(interactions, error, words):
    """The message says what is expected."""
    with pytest.raises(error, match=words):
        with_interactions(SCHEMA, SCHEMA, interactions, never, never, never)


def test_too_many_pairs_are_refused():
    """The message says how many weights there would be, and what to do."""
    schema = Schema({f"x{i}": {"low": 0, "high": 1, "knots": 6} for i in range(40)})
    with pytest.raises(ParameterError, match=r"780 pairs of columns 7,020 weights.*Name the pairs"):
        with_pairs(schema)


def test_all_interactions_without_a_plan_are_refused_with_the_reason():
    """A ridge that is too small for the proof is refused as in every other model. "auto" takes none then."""
    with pytest.raises(ParameterError, match="alpha"):
        chosen("all", mechanism="output", alpha=1e-30)
    assert chosen("auto", mechanism="output", alpha=1e-30) == SCHEMA


@pytest.mark.parametrize("scale", ["linear", "log"])
def test_a_table_whose_fit_looks_for_atoms_has_no_features_of_all_columns(scale):
    """Beside these there can be no atoms, which say more: so do features of few columns, where enough rows come."""
    columns = {name: one | {"high": 10_000} for name, one in OPEN_NUMBERS.items()}
    columns["x0"] |= {"scale": scale}
    few = {"neighbours": "add-or-remove-one", "n_rows_bounds": (36_000, 44_000)}
    found = AdditiveClassifier(ApproxDP(1.0, 1e-5), schema=Schema(columns), **few).chosen_schema()
    assert (found.random_features is None) == (scale == "log")
    without = AdditiveClassifier(ApproxDP(1.0, 1e-5), schema=Schema(columns), atoms=False, **few).chosen_schema()
    assert without.random_features.columns == 0
    if scale == "linear":
        assert found == without
        return
    many = {"neighbours": "add-or-remove-one", "n_rows_bounds": (360_000, 440_000)}
    assert (
        AdditiveClassifier(ApproxDP(1.0, 1e-5), schema=Schema(columns), **many).chosen_schema().random_features.columns == 3
    )
