"""Counts by which a fit finds atoms: what one row changes, what the plan of the weights must pay, and what follows."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from confide import AdditiveClassifier, Schema
from confide.data.arrays import EncodedBlocks, MemorySource
from confide.errors import ParameterError
from confide.features.atoms import MOST_IN_COLUMN, n_cells
from confide.features.encoder import Encoder
from confide.privacy.budgets import ZCDP, ApproxDP, Neighbours, PureDP
from confide.privacy.lattice import LatticeNoise
from confide.privacy.noise import Entropy
from confide.privacy.noisy_sum import SumPlan
from confide.privacy.tables import AtomsOfColumns

REPLACE, ADD = Neighbours.REPLACE_ONE, Neighbours.ADD_OR_REMOVE_ONE
BUDGET = ApproxDP(9.0, 1e-6)
COLUMNS = {
    "gain": {"low": 0, "high": 50, "scale": "log"},
    "loss": {"low": -3, "high": 20, "scale": "log", "missing": True},
    "wide": {"low": 0, "high": 10**9, "scale": "log"},
    "age": {"low": 17, "high": 90},
}
SCHEMA = Schema(COLUMNS, {"column": "y", "negative": "no", "positive": "yes"})
ENCODER = Encoder(SCHEMA, slots=4)


def frame_of(*rows):
    return pd.DataFrame(rows, columns=list(COLUMNS), dtype=np.float64)


def source_of(*rows):
    codes = ENCODER.read(frame_of(*rows), refuse=False)
    return MemorySource(EncodedBlocks(ENCODER, codes), np.ones(len(rows), np.int8))


def query(neighbours=REPLACE, n_rows=(30, 30), persons=1):
    """The counts of the columns with a logarithmic scale."""
    sizes = tuple(n_cells(column) for column in ENCODER.sought)
    return AtomsOfColumns(sizes, 0, neighbours, persons, 0, ENCODER.sought, ENCODER.slots, n_rows)


def test_columns_are_counted_by_whole_number_and_by_what_is_none():
    """Up to the most that a column may have, after clipping to the bounds; a missing number is none."""
    sizes = query().sizes
    assert sizes == (52, 25, MOST_IN_COLUMN + 1)
    rows = [
        (7.0, 2.0, 5.0, 20.0),
        (7.5, np.nan, 1e8, 20.0),
        (99.0, -9.0, MOST_IN_COLUMN - 1, 20.0),
        (np.inf, 2.5, -1.0, 20.0),
    ]
    gain, loss, wide = np.split(query().summed(source_of(*rows)), np.cumsum(sizes)[:-1])
    assert {place: gain[place] for place in np.flatnonzero(gain)} == {7: 1.0, 50: 1.0, 51: 2.0}
    assert {place: loss[place] for place in np.flatnonzero(loss)} == {0: 1.0, 5: 1.0, 24: 2.0}
    last = MOST_IN_COLUMN
    assert {place: wide[place] for place in np.flatnonzero(wide)} == {0: 1.0, 5: 1.0, last - 1: 1.0, last: 1.0}


@pytest.mark.parametrize("neighbours", [REPLACE, ADD], ids=["replace", "add"])
def test_neighbours_are_as_far_apart_as_the_theorem_says(neighbours):
    """By search over rows of all kinds; the bound is attained."""
    cells = (0.0, 7.0, 7.5, 50.0, 1e9, np.nan, np.inf)
    one = [query().summed(source_of((a, b, a, 20.0))) for a, b in itertools.product(cells, cells)]
    others = one if neighbours is REPLACE else [np.zeros_like(one[0])]
    apart = [a - b for a, b in itertools.product(one, others)]
    l2, l1 = query(neighbours).distances
    assert max(float(np.linalg.norm(each)) for each in apart) <= l2 <= 1.0001 * max(map(np.linalg.norm, apart))
    assert max(float(np.abs(each).sum()) for each in apart) <= l1 <= 1.0001 * max(np.abs(each).sum() for each in apart)


def plan_of(budget=BUDGET, n=6000, **parameters):
    """The plan of a fit that finds atoms, and its part for them."""
    made = {
        "schema": SCHEMA,
        "neighbours": "add-or-remove-one",
        "n_rows_bounds": (n - 500, n + 500),
        "mechanism": "gradient",
    } | parameters
    plan = AdditiveClassifier(budget, interactions=(), **made).plan(n if "replace-one" in made.values() else None)
    return plan, plan.atoms


def others(plan, part):
    """Parts and plans that are not those of each other, by what is wrong."""
    less = replace(part, lattice=replace(part.lattice, deviation=0.85 * part.lattice.deviation))
    query = part.query
    return {
        "less noise": (less, replace(plan, parts=(less, *plan.parts[1:]))),
        "not a part": (part, replace(plan, parts=plan.parts[1:])),
        "not paid": (part, replace(plan, problem=replace(plan.problem, beside_mu=0.99 * plan.problem.beside_mu))),
        "another budget": (part, replace(plan, budget=ApproxDP(4.1, 1e-6))),
        **{
            name: (replace(part, query=changed), replace(plan, parts=(replace(part, query=changed), *plan.parts[1:])))
            for name, changed in {
                "another relation": replace(query, neighbours=REPLACE),
                "other persons": replace(query, rows_per_person=2),
                "other numbers of rows": replace(query, n_rows=(5000, 6500)),
            }.items()
        },
    }


@pytest.mark.parametrize("name", others(*plan_of()))
def test_a_part_that_the_plan_does_not_pay_is_refused(name):
    """Before a row is used; the part of the plan itself is released."""
    plan, part = plan_of()
    rows = source_of(*[(7.0, 2.0, 5.0, 20.0)] * 100)
    changed, around = others(plan, part)[name]
    with pytest.raises(ParameterError, match="another mechanism"):
        changed.query.before(changed, around, None, Entropy.seeded(0))
    assert part.query.before(part, plan, rows, Entropy.seeded(0))[0] is plan


def test_under_a_pure_budget_epsilons_add_up():
    """Of counts with Laplace noise and of weights; what would be more, or is not pure, is refused before a row is used."""
    schema = Schema(COLUMNS | {"place": {"categories": [str(place) for place in range(200)]}}, SCHEMA.target)
    plan, part = plan_of(PureDP(8.0), n=20_000, mechanism="objective", schema=schema)
    assert (part.law, part.share, part.budget) == ("laplace", 0.15, PureDP(8.0))
    assert plan.event.budget == PureDP(8.0)
    assert 6.8 * (1.0 - 1e-9) < plan.budget.epsilon <= 6.8
    assert part.lattice.epsilon <= 0.15 * 8.0
    one = replace(ENCODER, in_one=True)
    blocks = EncodedBlocks(one, one.read(frame_of(*[(7.0, 2.0, 5.0, 20.0)] * 9), refuse=False))
    assert part.query.before(part, plan, MemorySource(blocks, np.ones(9, np.int8)), Entropy.seeded(0))[0] is plan
    twice = replace(part, share=0.3)
    for changed, around in (
        (part, replace(plan, budget=PureDP(6.8 + 1e-9))),
        (part, replace(plan, event=replace(plan.event, budget=PureDP(7.9)))),
        (part, replace(plan, parts=())),
        (twice, replace(plan, parts=(twice,))),
        (part, replace(plan, budget=ApproxDP(6.0, 1e-6))),
    ):
        with pytest.raises(ParameterError, match="another mechanism"):
            changed.query.before(changed, around, None, Entropy.seeded(0))


def test_more_rows_than_planned_are_refused():
    """They would not be counted in the bounds of the number of rows."""
    plan = SumPlan.of(query(n_rows=(1, 2)), ZCDP(0.1), ("gaussian",), 0.1)
    with pytest.raises(ParameterError, match="another mechanism"):
        plan.release(source_of(*[(7.0, 2.0, 5.0, 20.0)] * 3), Entropy.seeded(0))


def test_every_outcome_has_an_encoder():
    """Atoms are whole numbers of the cells, whatever they are: a model with them can be made after the charge."""
    rng = np.random.default_rng(0)
    for _ in range(50):
        found = []
        for column, size in zip(ENCODER.sought, query().sizes, strict=True):
            cells = np.sort(rng.choice(min(size - 1, 60), rng.integers(0, ENCODER.slots + 1), replace=False))
            found.append(replace(column, atoms=tuple((cells + math.ceil(column.low)).astype(float).tolist())))
        made, kept = ENCODER.with_found([column for column in found if column.atoms])
        assert (
            made.n_features
            == kept.size
            == len(set(made.feature_names))
            == Encoder(SCHEMA).n_features + sum(len(column.atoms) for column in found)
        )


def test_one_budget_pays_for_counts_and_weights():
    """The squared shifts over deviations of all parts add up to what the weights leave of the budget."""
    plan, part = plan_of()
    assert part.share == 0.15
    assert math.hypot(*(each.mu for each in plan.parts)) <= plan.problem.beside_mu
    assert plan.event.budget == BUDGET
    alone, _ = plan_of(atoms=False)
    assert alone.atoms is None
    assert alone.problem.beside_mu < plan.problem.beside_mu


@pytest.mark.parametrize("other", [(3.0, np.nan, 1e9, 70.0), (7.0, 2.0, 5.0, 20.0)])
def test_all_that_follows_is_a_function_of_the_released_counts(other, monkeypatch):
    """The same released numbers and other rows: the same atoms, plan, bounds and rows that both have, to the bit."""
    plan, part = plan_of()
    forced = np.zeros((1, part.query.size))
    forced[0, [7, 52 + 5]] = 1000.0
    monkeypatch.setattr(LatticeNoise, "release", lambda *_: forced)
    shared = [(7.0, 2.0, 3.0, 20.0), (8.0, np.nan, 5.0, 40.0)]
    made = [part.query.before(part, plan, source_of(*shared, *more), Entropy.seeded(0)) for more in ([], [other] * 50)]
    (first_plan, first, atoms), (second_plan, second, same) = made
    assert atoms == same == ((7.0,), (2.0,), ())
    assert first_plan is second_plan is plan
    encoded, again = (each.blocks.copied(np.arange(2)) for each in (first, second))
    np.testing.assert_array_equal(encoded, again)
    slots = [group.place for group in ENCODER.groups if group.size == 4]
    np.testing.assert_array_equal(encoded[0, np.r_[slots[0], slots[1]]], [1, 0, 0, 0, 1, 0, 0, 0])
    assert not encoded[1, np.r_[slots[0], slots[1], slots[2]]].any()


def test_before_anything_is_found_slots_are_empty():
    """Rows are encoded as those of a schema without atoms, with columns of zeros."""
    rows = frame_of((7.0, 2.0, 5.0, 20.0), (8.0, np.nan, 1e9, 40.0))
    plain = Encoder(SCHEMA).transform(rows)
    np.testing.assert_array_equal(ENCODER.transform(rows), np.hstack([plain, np.zeros((2, 12))]))
    assert n_cells(ENCODER.sought[2]) == MOST_IN_COLUMN + 1
