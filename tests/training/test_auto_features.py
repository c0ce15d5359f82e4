"""How many knots the number columns of an additive model get."""

from __future__ import annotations

import dataclasses
import math
import time

import pytest

from confide import AdditiveClassifier, AdditiveRegressor, ApproxDP, ParameterError, Schema, Smooth, datasets
from confide.expected_noise import noise_on_a_weight
from confide.features.schema import Interaction
from confide.training.auto_features import NUMBERS_OF_KNOTS, _without_bundles, with_chosen_knots, with_knots

SCHEMA = Schema(
    columns={
        "age": {"low": 17, "high": 90},
        "hours": {"low": 0, "high": 99, "knots": 0},
        "gain": {"low": 0, "high": 99999, "scale": "log", "missing": True},
        "score": {"low": 0, "high": 1, "knots": [0.2, 0.7]},
        "job": {"categories": ["a", "b", "c"]},
    },
    target={"column": "y", "negative": 0, "positive": 1},
    interact=[["age", "job"]],
)


def knots_of(schema):
    """The knots of each number column, by its name."""
    return {column.name: column.knots for column in schema.columns if hasattr(column, "knots")}


def chosen(n_rows, budget=1.0, **parameters):
    """The knots that so many rows give at a budget."""
    return knots_of(AdditiveClassifier(budget, schema=SCHEMA, **parameters).chosen_schema(n_rows))


def test_what_the_schema_says_is_kept():
    """A list, a number and 0 stay; only columns that say nothing get knots, and nothing else of the schema changes."""
    made = with_knots(SCHEMA, 4)
    assert knots_of(made) == {"age": 4, "hours": 0, "gain": 4, "score": (0.2, 0.7)}
    assert (made.target, made.interact, made.columns[4]) == (SCHEMA.target, SCHEMA.interact, SCHEMA.columns[4])
    assert knots_of(with_knots(SCHEMA, {"gain": 2})) == {"age": (), "hours": 0, "gain": 2, "score": (0.2, 0.7)}


def test_a_schema_without_open_columns_asks_for_no_number_of_rows():
    """Neither the settings nor the number of rows are looked at, and the schema comes back itself."""
    whole = with_knots(SCHEMA, 3)

    def never(*_):
        raise AssertionError

    assert with_chosen_knots(whole, never, never) is whole


def test_more_rows_and_a_larger_budget_never_give_fewer_knots():
    """From straight lines, where noise is large, to the most knots, where it is small; both ends are reached."""
    by_rows = [chosen(10**power, 0.5)["age"] for power in range(1, 8)]
    by_budget = [chosen(20_000, 10.0**power)["age"] for power in range(-4, 3)]
    for found in (by_rows, by_budget):
        assert found == sorted(found)
        assert found[0] == 0
        assert found[-1] == max(NUMBERS_OF_KNOTS)
    assert chosen(20_000, math.inf)["age"] == max(NUMBERS_OF_KNOTS)


def test_a_private_number_of_rows_enters_by_its_public_lower_bound():
    """The number of rows of a plan is not used, and neither is the upper bound."""
    private = {"neighbours": "add-or-remove-one", "budget": ApproxDP(0.1, 1e-6)}
    at_low = [chosen(None, n_rows_bounds=(low, low), **private) for low in (300, 300_000)]
    assert at_low[0] != at_low[1]
    assert [chosen(None, n_rows_bounds=(low, 300_000), **private) for low in (300, 300_000)] == at_low


def test_numbers_of_knots_do_not_depend_on_bundles():
    """They were compared with noise for all groups of columns at once; in bundles it is smaller here."""
    towns = {"town": {"categories": [f"t{i}" for i in range(100)]}}
    schema = Schema(columns={**{name: {"low": 0, "high": 1} for name in "abc"}, **towns})
    plan = AdditiveClassifier(1.0, schema=schema).plan(5000)
    together = [shape.laplace_norm(1.0) for shape in plan.problem.shapes if shape.name != "bundles"]
    assert plan.noise.shape.name == "bundles"
    factor = _without_bundles(plan)
    assert factor == pytest.approx(min(together) / plan.noise.shape.laplace_norm(1.0))
    assert factor > 1.5
    alike = Schema(columns={name: {"low": 0, "high": 1} for name in "abc"})
    assert _without_bundles(AdditiveClassifier(1.0, schema=alike, knots=0).plan(5000)) == 1.0


@pytest.mark.parametrize("loss", ["squared", "huber", "poisson"])
def test_regressions_choose_knots_too(loss):
    """Also where the noise lies in sums of products."""
    found = [
        knots_of(AdditiveRegressor(1.0, schema=SCHEMA, target_bound=5.0, loss=loss).chosen_schema(n))["age"]
        for n in (10, 10**7)
    ]
    assert found[0] == 0 < found[1]


def test_few_numbers_among_many_columns_get_knots_later(monkeypatch):
    """With bundles of columns a table of mostly categories keeps straight lines longer than one of numbers."""
    schema = datasets.load_adult().schema

    def has_curves(budget, columns=schema.columns):
        given = dataclasses.replace(schema, columns=columns)
        made = AdditiveClassifier(budget, schema=given).chosen_schema(32_561)
        return any(knots != 0 for knots in knots_of(made).values())

    assert not has_curves(0.05)
    assert not has_curves(0.1)
    assert has_curves(0.15)
    numbers = [column for column in schema.columns if hasattr(column, "knots")]
    fewer_levels = [column for column in schema.columns if not hasattr(column, "knots")][:2]
    assert has_curves(0.1, (*numbers, *fewer_levels))
    # Noise without bundles, as under (epsilon, delta), is not judged by this.
    assert has_curves(ApproxDP(0.05, 1e-5))
    monkeypatch.setattr("confide.training.auto_features._LEAST_OF_NUMBERS", 0.0)
    assert has_curves(0.1)


def test_small_tables_with_many_categories_have_straight_lines():
    """Three knots from 60 rows for each unit of noise on a weight on; a table of numbers has curves before."""
    schema, budget, seen = datasets.load_adult().schema, ApproxDP(1.0, 1e-5), set()
    for n_rows in range(200, 4_000, 190):
        plan = AdditiveClassifier(budget, schema=schema, knots=3, mechanism="objective").plan(n_rows)
        strength = n_rows / noise_on_a_weight(plan)
        expected = 6 if strength >= 100.0 else 3 if strength >= 60.0 else 0
        found = knots_of(AdditiveClassifier(budget, schema=schema).chosen_schema(n_rows))["age"]
        # A plan with another number of knots, or with a centre, has nearly the same noise.
        assert found == expected or any(0.97 * edge < strength < 1.03 * edge for edge in (60.0, 100.0))
        seen.add(found)
    assert seen == {0, 3, 6}
    soil = {"soil": {"categories": [f"s{i}" for i in range(40)]}, "area": {"categories": list("abcd")}}
    of_numbers = Schema({f"x{i}": {"low": 0, "high": 99} for i in range(10)} | soil)
    assert knots_of(AdditiveClassifier(budget, schema=of_numbers).chosen_schema(500))["x0"] == 3


PRICES = Schema(
    {"size": {"low": 0, "high": 100}, "rooms": {"low": 0, "high": 3}, "age": {"low": 0, "high": 99, "scale": "log"},
     "flag": {"low": 0, "high": 1}, "own": {"low": 0, "high": 9, "knots": 2}, "street": {"categories": ["a", "b", "c"]}},
    target={"column": "price", "low": 0, "high": 100},
)  # fmt: skip


def beside_lines(n_rows, budget=1.0, schema=PRICES, *, scaled=False, **parameters):
    """The knots of curves beside lines that a regression chooses, `scaled` with their scale; and those of curves alone."""
    found = AdditiveRegressor(budget, schema=schema, interactions=(), **parameters).chosen_schema(n_rows)
    curves = [each for each in found.interact if each.is_curve]
    return {each.columns[0]: (each.knots, each.scale) if scaled else each.knots for each in curves}, knots_of(found)


@pytest.mark.parametrize("loss", ["huber", "squared", "poisson"])
def test_regressions_have_curves_beside_lines_from_a_strength_on(loss):
    """3 knots at a scale of .35 from 45 rows for each unit of noise on a weight of lines, 3 from 75, and 6 from 600.

    Counts need twice as many.
    """
    seen, least = set(), 2.0 if loss == "poisson" else 1.0
    for step in range(60):
        n_rows = int(300 * 1.15**step)
        plan = AdditiveRegressor(1.0, schema=PRICES, loss=loss, knots=0).plan(n_rows)
        strength = 0.5 * n_rows / (noise_on_a_weight(plan) * _without_bundles(plan)) / least
        found, alone = beside_lines(n_rows, loss=loss, scaled=True)
        if found or strength < 45.0:
            assert alone == {"size": 0, "rooms": 0, "age": 0, "flag": 0, "own": 2}
            expected = 6 if strength >= 600.0 else 3 if strength >= 45.0 else 0
            scale = 1.0 if strength >= 75.0 else 0.35
            # Few whole numbers have fewer knots.
            knots = {"size": expected, "rooms": 2, "age": expected} if expected else {}
            assert found == {name: (number, scale) for name, number in knots.items()}
            seen.add(round(expected * scale, 2))
        else:
            assert alone["size"] == 12
            seen.add(12)
    assert seen == {0, 1.05, 3, 6, 12}


def test_numbers_below_0_are_no_whole_numbers():
    """A measurement from -1 to 1 has as many knots as one from -1.5 to 1.5; bounds from 0 on may be those of counts."""
    bounds = {"score": (-1, 1), "middle": (-1.5, 1.5), "rooms": (0, 4), "flag": (0, 1)}
    schema = Schema({name: {"low": low, "high": high} for name, (low, high) in bounds.items()})
    chosen = AdditiveClassifier(4.0, schema=schema, interactions=()).chosen_schema(200_000)
    assert [column.knots for column in chosen.columns] == [12, 12, 3, 0]


@pytest.mark.parametrize(
    "budget", [lambda epsilon: epsilon, lambda epsilon: ApproxDP(epsilon, 1e-6)], ids=["pure", "approximate"]
)
def test_a_regression_never_has_fewer_knots_at_a_larger_budget(budget):
    """From none over curves beside lines to 12 knots, step by step; nor a curve of a smaller scale."""
    found = []
    for step in range(40):
        beside, alone = beside_lines(5_000, budget(0.05 * 1.25**step), scaled=True)
        found.append(max(beside.get("size", (0, 0.0)), (alone["size"], 1.0)))
    assert found == sorted(found)
    assert set(found) == {(0, 1.0), (3, 0.35), (3, 1.0), (6, 1.0), (12, 1.0)}


@pytest.mark.parametrize(
    "parameters",
    [{"inference_share": 0.3}, {"monotone": {"age": "up"}}, {"penalty": "smooth"}, {"penalty": {"size": Smooth(3.0)}}],
    ids=str,
)
def test_where_a_curve_must_stand_alone_none_stands_beside_a_line(parameters):
    """Intervals, monotone curves and smooth ones are for curves alone, and so are products of a column as it is encoded."""
    beside, alone = beside_lines(200_000, 4.0, **parameters)
    assert beside == {}
    assert alone["size"] >= 3
    products = dataclasses.replace(PRICES, interact=(Interaction(("size", "street")),))
    assert beside_lines(20_000, 4.0, products)[0] == {}
    coarse = dataclasses.replace(PRICES, interact=(Interaction(("size", "street"), 1),))
    assert beside_lines(20_000, 4.0, coarse)[0] == {"size": 6, "rooms": 2, "age": 6}


def test_a_curve_that_the_schema_describes_is_kept():
    """Beside it the others get theirs; a chosen schema chooses nothing more."""
    own = dataclasses.replace(PRICES, interact=(Interaction(("size",), 9),))
    assert beside_lines(20_000, 4.0, own)[0] == {"size": 9, "rooms": 2, "age": 6}
    whole = AdditiveRegressor(4.0, schema=own).chosen_schema(20_000)
    assert AdditiveRegressor(4.0, schema=whole).chosen_schema(300) == whole
    pairs = AdditiveRegressor(4.0, schema=PRICES, interactions="pairs").chosen_schema(20_000)
    assert {each.knots for each in pairs.interact if not each.is_curve and "size" in each.columns} == {1}


@pytest.mark.parametrize(("model", "more"), [(AdditiveClassifier, {}), (AdditiveRegressor, {"target_bound": 1.0})])
def test_pairs_of_long_categories_for_which_there_is_no_plan_are_refused_in_little_time(model, more):
    """A hundred levels by a hundred under a pure budget: one search for a ridge that works, for lines alone."""
    levels = {name: {"categories": [f"{name}{i}" for i in range(100)]} for name in "ab"}
    schema = Schema({**levels, "x": {"low": 0, "high": 1}}, interact=[["a", "b"]])
    start = time.process_time()
    with pytest.raises(ParameterError, match="no alpha is large enough"):
        model(1.0, schema=schema, **more).plan(1_000_000)
    assert time.process_time() - start < 2.0
