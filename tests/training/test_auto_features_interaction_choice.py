"""Which interactions an additive model gets, from public facts alone."""

from __future__ import annotations

import math

import pytest

from confide import AdditiveClassifier, AdditiveRegressor, ApproxDP, ParameterError, Schema, SchemaError
from confide.features.encoder import Encoder
from confide.features.fourier import RandomFeatures
from confide.features.schema import Interaction
from confide.training.alpha import usual_norm
from confide.training.auto_features import (
    KNOTS_WITH_FEATURES,
    MOST_PRODUCTS,
    NUMBERS_OF_FEATURES,
    with_interactions,
    with_pairs,
)

NUMBERS = {f"x{i}": {"low": 0, "high": 1, "knots": 6} for i in range(4)}
JOB = {"categories": ["a", "b", "c"], "other": True}
PLACE = {"categories": [f"p{i}" for i in range(20)]}
SCHEMA = Schema(NUMBERS | {"job": JOB, "place": PLACE})


def never(*_):
    raise AssertionError


def chosen(interactions, n_rows=50_000, budget=1.0, schema=SCHEMA, **parameters):
    """The schema that an additive classifier chooses."""
    return AdditiveClassifier(budget, schema=schema, interactions=interactions, **parameters).chosen_schema(n_rows)


def test_nothing_said_leaves_the_schema_itself():
    """Neither the settings nor the number of rows are looked at."""
    assert with_interactions(SCHEMA, SCHEMA, (), never, never) is SCHEMA


def test_named_interactions_are_coarse_and_stand_beside_those_of_the_schema():
    """A mapping and an object say their own knots and scale."""
    schema = Schema(SCHEMA.columns, interact=[["x0", "x1"]])
    made = with_interactions(
        schema,
        schema,
        [("x0", "x2"), {"columns": ["x1", "job"], "scale": 0.5}, Interaction(("x2", "x3"), 2)],
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
    made = with_interactions(SCHEMA, SCHEMA, [["x0", "x2"]], never, never)
    assert with_interactions(made, made, [["x2", "x0"]], never, never) is made
    with pytest.raises(SchemaError, match="twice"):
        with_interactions(made, made, [["x0", "x2"], ["x2", "x0"]], never, never)


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
    assert features.number == NUMBERS_OF_FEATURES[law]
    norm = usual_norm(Encoder(SCHEMA).row_bound, 0.0)
    assert features.norm == pytest.approx({"gaussian": 1.15, "laplace": 0.8}[law] * norm, abs=0.01)
    assert features.length_scale == pytest.approx(0.5 * 6**0.4, abs=0.01)
    assert chosen("all", schema=made, budget=budget) == made
    own = Schema(SCHEMA.columns, random_features=RandomFeatures(10, 1.0))
    assert chosen("all", schema=own).random_features == own.random_features


@pytest.mark.parametrize("n_rows", [10, 10**7])
def test_random_features_come_with_a_fixed_number_of_knots(n_rows):
    """It decides how far apart rows are. What the user says stays, and whole numbers near each other get fewer."""
    columns = {"a": {"low": 0, "high": 1.5}, "b": {"low": 0, "high": 1, "knots": 2}, "c": {"low": 0, "high": 1}}
    made = chosen("all", n_rows, schema=Schema(columns))
    assert [column.knots for column in made.columns] == [KNOTS_WITH_FEATURES, 2, 0]


def test_auto_takes_random_features_where_numbers_prevail_and_noise_is_small():
    """More rows and a larger budget never take them away, and both ends are reached."""
    by_rows = [chosen("auto", 10**power).random_features is not None for power in range(2, 8)]
    by_budget = [chosen("auto", budget=ApproxDP(10.0**power, 1e-5)).random_features is not None for power in range(-3, 2)]
    for found in (by_rows, by_budget):
        assert found == sorted(found)
        assert set(found) == {False, True}


def test_auto_takes_none_where_categories_prevail():
    """However many rows there are: four numbers of seven columns are not enough."""
    schema = Schema(SCHEMA.columns + Schema({"more": JOB}).columns)
    assert chosen("auto", 10**7, schema=schema) == schema


def test_auto_keeps_what_the_schema_says_and_takes_none_with_intervals():
    """A schema that names interactions has been thought about. There are no intervals for random features."""
    schema = Schema(SCHEMA.columns, interact=[["x0", "x1"]])
    assert chosen("auto", 10**7, schema=schema) == schema
    assert chosen("auto", 10**7, inference_share=0.3) == SCHEMA


def test_a_regression_chooses_too():
    """By the same rule."""
    model = AdditiveRegressor(ApproxDP(4.0, 1e-5), schema=SCHEMA, target_bound=1.0, interactions="auto")
    assert model.chosen_schema(10**6).random_features.number == NUMBERS_OF_FEATURES["gaussian"]
    assert model.chosen_schema(1000).random_features is None


WRONG = {
    "another word": ("triples", ParameterError, '"pairs", "all" or "auto"'),
    "a number": (2, ParameterError, "must be a list of lists"),
    "names alone": (["x0", "x1"], ParameterError, "each interaction must be a list"),
    "a column with itself": ([["x0", "x0"]], SchemaError, "all different"),
    "an unknown column": ([["x0", "x9"]], SchemaError, '"x9" is not among the columns'),
    "one column": ([["x0"]], SchemaError, "two or more"),
    "knots outside of their range": ([{"columns": ["x0", "x1"], "knots": -1}], SchemaError, "knots must be"),
}


@pytest.mark.parametrize(("interactions", "error", "words"), WRONG.values(), ids=WRONG)
def test_interactions_that_cannot_be_are_refused(interactions, error, words):
    """The message says what is expected."""
    with pytest.raises(error, match=words):
        with_interactions(SCHEMA, SCHEMA, interactions, never, never)


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
