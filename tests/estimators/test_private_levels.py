"""Levels of categories that nobody lists: found with bounds in one charge, written into a schema, named in statements."""

from __future__ import annotations

import re
import warnings

import numpy as np
import pandas as pd
import pytest

import confide
from confide import ApproxDP, Ledger, Schema, private_bounds
from confide.data import file_rows
from confide.errors import InputError, ParameterError, SchemaError
from confide.features.canonical_labels import can_be_level

RNG = np.random.default_rng(8)
SHOPS = np.array(["north", "south ", "3", "Säo", "tiny"])
FRAME = pd.DataFrame(
    {
        "age": RNG.integers(17, 91, 6000),
        "shop": SHOPS[np.repeat([0, 1, 2, 3, 4], [3000, 1500, 1000, 499, 1])],
        "code": np.where(np.arange(6000) % 3 == 0, 1.0, np.where(np.arange(6000) % 3 == 1, 2.5, np.nan)),
        "y": ["no", "yes"] * 3000,
        "who": np.arange(6000) // 2,
    }
).sample(frac=1.0, random_state=1, ignore_index=True)
UNLISTED = {"categories": "private"}
WANTED = {"age": (0, 150), "shop": UNLISTED, "code": UNLISTED | {"missing": True}}
BUDGET = ApproxDP(3.0, 1e-6)
SCHEMA = Schema(columns={"age": {"low": 0, "high": 150}}, target={"column": "y", "negative": "no", "positive": "yes"})


def found_in(rows, columns=WANTED, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", confide.PrivacyWarning)
        return private_bounds(rows, columns, **{"budget": BUDGET, **options})


def test_bounds_and_levels_are_one_charge_and_one_schema(tmp_path):
    """Large levels in canonical form with noisy numbers, sorted by name; that of one row stays hidden; the file fits."""
    ledger = Ledger(limit=ApproxDP(9.0, 1e-5))
    found = found_in(FRAME, schema=SCHEMA, ledger=ledger)
    assert len(ledger.entries()) == 1
    assert ledger.spent() == BUDGET
    assert list(found.levels["shop"]) == ["3", "Säo", "north", "south"]
    for level, rows in {"north": 3000, "south": 1500, "3": 1000, "Säo": 499}.items():
        assert found.levels["shop"][level] == pytest.approx(rows, abs=60)
    assert list(found.levels["code"]) == ["1", "2.5"]
    assert found.levels_plan.threshold < 60
    assert 17 <= found.quantiles["age"][0.01] < 25
    path = tmp_path / "found.toml"
    path.write_text(found.to_toml())
    schema = Schema.from_toml(path)
    assert schema == found.schema
    shop = schema.columns[1]
    assert (shop.categories, shop.other, shop.missing) == (("3", "Säo", "north", "south"), True, False)
    assert schema.columns[2].missing is True
    assert "released levels" in str(shop)
    assert (shop.released.levels, shop.released.threshold) == (("shop", "code"), found.levels_plan.threshold)
    assert schema.columns[0].released.quantiles == (0.01, 0.99)
    X, y = FRAME[["age", "shop", "code"]], FRAME["y"]
    model = confide.LogisticRegression(1.0, schema=schema, ledger=ledger).fit(X, y)
    statement = model.guarantee_.statement()
    said = 'The bounds and levels of "age" and "shop" and "code" were not declared; they came from rows by a private release'
    assert statement.count(said) == 1
    assert "The release of these bounds and levels was charged to the same ledger." in statement
    model.save(tmp_path / "model.json")
    again = confide.load(tmp_path / "model.json")
    assert again.schema.columns[1].released == shop.released
    assert again.schema.to_toml() == model.schema.to_toml()


def test_levels_alone_take_all_of_the_budget():
    """One column with the whole epsilon: noise of scale 2 / epsilon; and there are no quantiles to speak of."""
    found = found_in(FRAME, {"shop": UNLISTED})
    assert found.plan is None
    assert found.quantiles == {}
    assert found.rows_off() == found.rows_needed == 0
    assert found.levels_plan.lattice.scale == pytest.approx(2.0 / 3.0, rel=0.01)
    assert found_in(FRAME).levels_plan.lattice.scale == pytest.approx(4.0 / 2.0, rel=0.01)
    assert 'The levels of "shop" were not declared' in found.columns[0].released.sentences(None)[0]
    assert re.search(r"Released levels of shop\nlevel +rows \(noisy\)\n3 ", str(found))
    assert "quantiles" not in found.to_toml()


def test_a_column_without_a_large_level_has_a_schema_too():
    """Every row with a level of its own: none is released, and the schema can be written; a fit says to leave it out."""
    rows = pd.DataFrame({"name": [f"person {i}" for i in range(400)], "y": ["no", "yes"] * 200})
    found = found_in(rows, {"name": UNLISTED})
    assert found.levels == {"name": {}}
    assert found.columns[0].categories == ("(none found)",)
    assert "No level has enough rows for this budget" in str(found)
    assert 'No level of "name" was found; leave the column out.' in found.to_toml()
    assert "person " not in found.to_toml()
    with pytest.raises(InputError, match="leave such a column out"):
        confide.LogisticRegression(1.0, schema=Schema(found.columns, SCHEMA.target)).fit(rows[["name"]], rows["y"])


@pytest.mark.parametrize("neighbours", ["replace-one", "add-or-remove-one"])
def test_files_in_pieces_and_other_orders_of_rows_give_the_same(tmp_path, monkeypatch, neighbours):
    """To the bit, for the same seed."""
    monkeypatch.setattr(file_rows, "BATCH_ROWS", 700)
    FRAME.to_parquet(tmp_path / "a.parquet")
    FRAME[::-1].to_csv(tmp_path / "b.csv", index=False)
    seeded = {"random_state": 3, "neighbours": neighbours}
    of_frame = found_in(FRAME, **seeded)
    for path in ("a.parquet", "b.csv"):
        found = found_in(tmp_path / path, **seeded)
        assert (found.levels, found.quantiles) == (of_frame.levels, of_frame.quantiles)
        assert [list(levels) for levels in found.levels.values()] == [list(levels) for levels in of_frame.levels.values()]
    assert of_frame.to_toml().startswith("# NOT PRIVATE")


def test_rows_of_persons_are_drawn_and_cost_more():
    """Two rows a person, one of them kept, or both at half of epsilon."""
    schema = Schema(SCHEMA.columns, SCHEMA.target, "who")
    one, two = (found_in(FRAME, {"shop": UNLISTED}, schema=schema, max_rows_per_person=rows) for rows in (1, 2))
    assert sum(one.levels["shop"].values()) == pytest.approx(3000, abs=100)
    assert sum(two.levels["shop"].values()) == pytest.approx(6000, abs=100)
    assert two.levels_plan.lattice.scale == pytest.approx(2.0 * one.levels_plan.lattice.scale, rel=0.01)
    assert two.columns[-1].released.price == "epsilon = 3 and delta = 1e-06 (replace-one, for persons with at most 2 rows)"


def test_words_for_missing_cells_codes_and_prose_are_no_levels():
    """They count nowhere, however many rows have them; text that would break a file or a schema neither."""
    odd = ["NA", "", "-9", "two\nlines", "x" * 201, "(other)", "(missing)", "(none found)", "FILL IN", "fine", "x" * 200]
    rows = pd.DataFrame({"a": np.repeat(odd, 300)})
    found = found_in(rows, {"a": UNLISTED | {"missing": ["-9"]}})
    assert list(found.levels["a"]) == ["fine", "x" * 200]
    assert Schema.from_dict({"columns": {"a": found.columns[0].to_dict()}}).columns[0].missing == ("-9",)
    assert not can_be_level("\ud800")
    assert not can_be_level(None)


@pytest.mark.parametrize(
    ("columns", "options", "message"),
    [
        (WANTED, {"budget": 1.0}, "need a budget with a delta"),
        ({"shop": UNLISTED}, {"budget": confide.ZCDP(0.1)}, "need a budget with a delta"),
        ({"shop": UNLISTED | {"other": False}}, {}, r'always count as "\(other\)"'),
        ({"shop": UNLISTED | {"low": 0}}, {}, "both bounds and categories"),
        ({"age": UNLISTED}, {"schema": SCHEMA}, r'always count as "\(other\)"'),
        ({"y": UNLISTED}, {"schema": SCHEMA}, "is the target of the schema"),
        ({"shop": {"categories": ["north"]}}, {}, 'give {"categories": "private"}'),
    ],
)
def test_what_cannot_be_honoured_is_refused_before_the_charge(columns, options, message):
    ledger = Ledger(limit=ApproxDP(9.0, 1e-5))
    with pytest.raises((ParameterError, SchemaError), match=message):
        found_in(FRAME, columns, ledger=ledger, **options)
    assert len(ledger.entries()) == 0


def test_a_schema_that_asks_for_levels_says_how_they_are_found():
    """No fit guesses them."""
    with pytest.raises(SchemaError, match=r"confide bounds DATA --levels 'shop' --epsilon 0.5 --delta 1e-6"):
        Schema(columns={"shop": UNLISTED})


def test_a_void_release_of_levels_voids_models():
    schema = Schema(found_in(FRAME, {"shop": UNLISTED}, random_state=1).columns, SCHEMA.target)
    model = confide.LogisticRegression(1.0, schema=schema).fit(FRAME[["shop"]], FRAME["y"])
    assert model.guarantee_.void == 'The levels of "shop" came from a release without a guarantee, which may reveal rows.'
