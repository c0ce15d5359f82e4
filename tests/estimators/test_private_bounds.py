"""Bounds of columns as private quantiles: one charge, the same from files, and a schema that says what they cost."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest

import confide
from confide import ZCDP, Ledger, PureDP, Schema, private_bounds
from confide.data import file_rows
from confide.errors import BudgetExceeded, InputError, ParameterError, SchemaError

RNG = np.random.default_rng(6)
FRAME = pd.DataFrame(
    {
        "age": RNG.integers(17, 91, 4000),
        "gain": np.where(RNG.uniform(size=4000) < 0.9, 0.0, RNG.integers(1, 50_000, 4000)),
        "y": ["no", "yes"] * 2000,
        "who": np.arange(4000) // 2,
    }
)
OUTER = {"age": (0, 150), "gain": {"low": 0, "high": 1e7, "scale": "log"}}
SCHEMA = Schema(
    columns={"age": {"low": 0, "high": 150, "knots": 4}, "gain": {"low": 0, "high": 1e7, "scale": "log"}},
    target={"column": "y", "negative": "no", "positive": "yes"},
)


def bounds(**options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", confide.PrivacyWarning)
        return private_bounds(FRAME, OUTER, **{"budget": 1.0, **options})


def test_bounds_lie_near_the_quantiles_and_are_charged_once():
    """Both columns in one entry of the ledger; at epsilon 4 the ranks are within what the plan says."""
    ledger = Ledger(limit=5.0)
    found = bounds(budget=4.0, ledger=ledger)
    assert len(ledger.entries()) == 1
    assert ledger.spent() == PureDP(4.0)
    assert ledger.entries()["purpose"][0] == "private bounds"
    off = found.rows_off(0.999)
    assert found.rows_needed == pytest.approx(found.rows_off() / 0.01, abs=1)
    assert off < 80
    for name, cells in (("age", FRAME["age"]), ("gain", FRAME["gain"])):
        for quantile, value in found.quantiles[name].items():
            below, up_to = (cells < value).sum(), (cells <= value).sum()
            assert below - 3 * off <= quantile * 4000 <= up_to + 3 * off
    low, high = found.columns[0].low, found.columns[0].high
    assert 0 <= low < 25 < 80 < high <= 150


def test_columns_may_be_named_one_after_the_other():
    """By a generator, which gives its names once."""
    found = private_bounds(FRAME, (name for name in ("age",)), schema=Schema({"age": {"low": 0, "high": 150}}), budget=1.0)
    assert [column.name for column in found.columns] == ["age"]


def test_the_schema_says_what_its_bounds_cost_and_fits(tmp_path):
    """Written, read again, and named in the statement of a model; the other facts of the schema stay."""
    ledger = Ledger(limit=5.0)
    found = private_bounds(FRAME, ["age", "gain"], schema=SCHEMA, budget=ZCDP(0.5), ledger=Ledger(limit=ZCDP(1.0)))
    assert found.schema.columns[0].knots == 4
    assert found.schema.target == SCHEMA.target
    path = tmp_path / "found.toml"
    path.write_text(found.to_toml())
    assert path.read_text().startswith("# The bounds of these columns were released from rows: age, gain.\n")
    assert "rho = 0.5 (replace-one)" in path.read_text()
    schema = Schema.from_toml(path)
    assert schema == found.schema
    assert schema.columns[1].released.outer == (0.0, 1e7)
    model = confide.LogisticRegression(1.0, schema=schema, ledger=ledger).fit(FRAME[["age", "gain"]], FRAME["y"])
    statement = model.guarantee_.statement()
    assert statement.count('The bounds of "age" and "gain" were not declared') == 1
    assert "rho = 0.5 (replace-one)" in statement
    assert "apart from the bounds that were released" in statement
    model.save(tmp_path / "model.json")
    assert confide.load(tmp_path / "model.json").schema.columns[0].released == schema.columns[0].released
    plain = confide.LogisticRegression(1.0, schema=SCHEMA).fit(FRAME[["age", "gain"]], FRAME["y"]).guarantee_.statement()
    assert "were released" not in plain


def test_released_bounds_are_no_outer_bounds():
    """A second release between them would hide the price of the first. With public outer bounds it is one like any other."""
    ledger, schema = Ledger(limit=5.0), private_bounds(FRAME, ["age"], schema=SCHEMA, budget=1.0, random_state=3).schema
    for columns in (["age"], [schema.columns[0]], {"age": {"scale": "linear"}}, {"age": {"low": 0}}):
        with pytest.raises(ParameterError, match='"age" has bounds released from rows; give public ones'):
            private_bounds(FRAME, columns, schema=schema, budget=0.1, ledger=ledger)
    assert len(ledger.entries()) == 0
    again = private_bounds(FRAME, {"age": (0, 150)}, schema=schema, budget=0.5)
    assert again.schema.columns[0].released.outer == (0.0, 150.0)


def test_a_model_with_void_bounds_is_void():
    """Its bounds may reveal rows, whatever its own budget is. The guarantee of a model with private bounds stays."""
    X, y = FRAME[["age", "gain"]], FRAME["y"]
    for seed in (None, 3):
        schema = private_bounds(FRAME, ["age"], schema=SCHEMA, budget=1.0, random_state=seed).schema
        found = confide.LogisticRegression(1.0, schema=schema).fit(X, y).guarantee_
        because = 'The bounds of "age" came from a release without a guarantee, which may reveal rows.'
        assert found.void == (None if seed is None else because)
        assert any("random numbers" in sentence for sentence in found.assumptions) == (seed is None)


def test_the_statement_knows_the_ledger_of_the_bounds():
    ledger = Ledger(limit=5.0)
    schema = private_bounds(FRAME, ["age"], schema=SCHEMA, budget=1.0, ledger=ledger).schema
    for given, words in ((ledger, "charged to the same ledger"), (None, "is not covered here")):
        model = confide.LogisticRegression(1.0, schema=schema, ledger=given).fit(FRAME[["age", "gain"]], FRAME["y"])
        assert words in model.guarantee_.statement()


@pytest.mark.parametrize("neighbours", ["replace-one", "add-or-remove-one"])
def test_files_in_pieces_and_rows_in_memory_give_the_same(tmp_path, monkeypatch, neighbours):
    """To the bit, for the same seed; with the rows in another order too."""
    monkeypatch.setattr(file_rows, "BATCH_ROWS", 700)
    FRAME.to_parquet(tmp_path / "a.parquet")
    FRAME[::-1].to_csv(tmp_path / "b.csv", index=False)
    of_frame = bounds(random_state=3, neighbours=neighbours)
    for path in ("a.parquet", "b.csv"):
        found = private_bounds(tmp_path / path, OUTER, budget=1.0, random_state=3, neighbours=neighbours)
        assert found.quantiles == of_frame.quantiles
    assert of_frame.void is not None
    assert "NOT PRIVATE" in str(of_frame)
    assert of_frame.to_toml().startswith("# NOT PRIVATE")


def test_missing_cells_count_nowhere_and_only_where_they_are_declared():
    """Half of the cells are missing: the quantiles are those of the other half."""
    cells = pd.DataFrame({"age": np.where(np.arange(4000) % 2 == 0, np.nan, FRAME["age"])})
    found = private_bounds(cells, {"age": {"low": 0, "high": 150, "missing": True}}, budget=50.0, quantiles=(0.25, 0.75))
    halves = cells["age"].quantile([0.25, 0.75])
    assert (found.columns[0].low, found.columns[0].high) == pytest.approx(tuple(halves), abs=1.0)
    assert found.columns[0].missing
    ledger = Ledger(limit=5.0)
    with pytest.raises(InputError, match="missing values"):
        private_bounds(cells, {"age": (0, 150)}, budget=1.0, ledger=ledger)
    assert len(ledger.entries()) == 0


def test_quantiles_0_and_1_are_the_outer_bounds_and_cost_nothing():
    """All of the budget goes to the others; further quantiles come along."""
    found = bounds(quantiles=(0, 0.99))
    assert [column.low for column in found.columns] == [0, 0]
    assert len(found.plan.quantiles) == 1
    assert bounds(quantiles=(0.5, 1)).columns[1].high == 1e7
    more = bounds(budget=100.0, quantiles=(0.1, 0.5, 0.9)).quantiles["age"]
    assert list(more) == [0.1, 0.5, 0.9]
    assert more[0.5] == pytest.approx(FRAME["age"].median(), abs=2.0)


@pytest.mark.parametrize("value", [0.0, 3.0, 10.0])
def test_equal_quantiles_become_neighbouring_candidates(value):
    """At either end of the candidates and in between: low stays below high whatever is drawn."""
    rows = pd.DataFrame({"a": np.full(100, value)})
    (column,) = private_bounds(rows, {"a": (0, 10)}, budget=1e6).columns
    assert (column.low, column.high) == pytest.approx({0.0: (0, 0.001), 3.0: (3.0, 3.001), 10.0: (9.999, 10.0)}[value])


def test_rows_of_persons_are_drawn_by_the_schema():
    """A column of persons: one row of each; the price says for whom it holds."""
    schema = Schema(SCHEMA.columns, SCHEMA.target, "who")
    found = private_bounds(FRAME, ["age"], schema=schema, budget=1.0, max_rows_per_person=2)
    assert found.schema.columns[0].released.price == "epsilon = 1 (replace-one, for persons with at most 2 rows)"
    assert found.plan.event.rows_per_person == 2


@pytest.mark.parametrize(
    ("columns", "options", "message"),
    [
        ({}, {}, "one or more columns"),
        ("age", {}, "map names to outer bounds"),
        (["age"], {}, 'column "age" has no outer bounds'),
        ({"age": 3}, {}, "outer bounds as"),
        ({"age": (3, 1)}, {}, "low must be below high"),
        ({"age": {"low": 0, "hihg": 1}}, {}, 'did you mean "high"'),
        ({"y": (0, 1)}, {"schema": SCHEMA}, "is the target of the schema"),
        (["age", "age"], {"schema": SCHEMA}, "each column once"),
        ({"y": {"categories": ["no"]}}, {}, "columns of numbers"),
        ({"age": {"low": 0, "high": 150, "knots": [50]}}, {}, "knots or atoms at fixed places"),
        ({"age": {"low": 1e15, "high": 1e15 + 1, "knots": 9}}, {}, "too close to each other"),
        (OUTER, {"quantiles": (0.9, 0.1)}, "rising order"),
        (OUTER, {"quantiles": (0.5,)}, "two or more numbers"),
        (OUTER, {"quantiles": (0, 1)}, "strictly between"),
        (OUTER, {"budget": float("inf")}, "must be finite"),
        (OUTER, {"budget": None}, "give a price"),
        (OUTER, {"budget": 2.0}, "the ledger has epsilon 1 left"),
    ],
)
def test_what_cannot_be_honoured_is_refused_before_the_charge(columns, options, message):
    ledger = Ledger(limit=1.0)
    with pytest.raises((ParameterError, SchemaError, BudgetExceeded), match=message):
        private_bounds(FRAME, columns, **{"budget": 0.5, "ledger": ledger, **options})
    assert len(ledger.entries()) == 0


def test_every_outcome_is_a_schema_that_can_be_used():
    """A tiny budget draws nearly at random: 12 draws, with knots, on both scales."""
    for seed in range(12):
        found = private_bounds(FRAME[:5], ["age", "gain"], schema=SCHEMA, budget=1e-6, random_state=seed)
        assert all(column.low < column.high for column in found.schema.columns)
