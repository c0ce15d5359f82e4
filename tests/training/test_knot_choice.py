"""How many knots the number columns of an additive model get."""

from __future__ import annotations

import dataclasses
import math

import pytest

from confide import AdditiveClassifier, ApproxDP, Schema, datasets
from confide.training.knot_choice import NUMBERS_OF_KNOTS, _without_bundles, with_chosen_knots, with_knots

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
    from confide import AdditiveRegressor

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
    monkeypatch.setattr("confide.training.knot_choice._LEAST_OF_NUMBERS", 0.0)
    assert has_curves(0.05)
