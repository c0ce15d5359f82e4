"""Cells that the schema does not describe, counted for the caller of a prediction."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd

from confide import Schema
from confide.features.encoder import Encoder, cells_outside, sentence_of_cells_outside

COLUMNS = {
    "plain": {"low": 0, "high": 10},
    "even": {"low": 0, "high": 10, "knots": 2, "missing": True},
    "listed": {"low": 0, "high": 10, "knots": [3]},
    "log": {"low": 1, "high": 1000, "scale": "log10"},
    "work": {"categories": ["a", "b", "c"]},
    "sex": {"categories": ["F", "M"], "missing": True},
    "city": {"categories": ["x", "y"], "other": True},
    "race": {"categories": ["x", "y"], "other": "y"},
}


def counted(frame):
    schema = Schema(columns=COLUMNS)
    return cells_outside(frame, schema, Encoder(schema).read(frame))


def rows(n=6):
    numbers = {name: np.full(n, 5.0) for name in ("plain", "even", "listed", "log")}
    return pd.DataFrame(numbers | {"work": "a", "sex": "M", "city": "x", "race": "x"})


def test_cells_that_are_described_do_not_count():
    """Bounds themselves, missing cells where they may be, and categories that count as others."""
    frame = rows()
    frame.loc[0, ["plain", "even", "listed", "log"]] = 10.0
    frame.loc[1, ["plain", "even", "listed"]] = 0.0
    frame.loc[2, "even"] = np.nan
    frame.loc[3, "sex"] = None
    frame.loc[4, ["city", "race"]] = ["nowhere", "another"]
    assert counted(frame) == {}


def test_codes_for_missing_cells_are_described():
    """They lie outside of the bounds and of the list, and do not count."""
    codes = {name: each | {"missing": [-9]} for name, each in COLUMNS.items()}
    schema = Schema(columns=codes)
    frame = rows().astype(object)
    frame.loc[0] = -9
    assert cells_outside(frame, schema, Encoder(schema).read(frame)) == {}


def test_numbers_outside_and_categories_without_a_level_are_counted_by_column():
    """Whether or not the numbers are kept as they are until they are encoded."""
    frame = rows()
    frame.loc[[0, 1], ["plain", "even", "listed", "log"]] = -3.0
    frame.loc[2, ["plain", "even", "listed", "log"]] = 2000.0
    frame.loc[[0, 5], "work"] = "A"
    frame.loc[5, "sex"] = "f"
    expected = {"plain": 3, "even": 3, "listed": 3, "log": 3, "work": 2, "sex": 1}
    assert counted(frame) == expected
    assert counted(frame.astype(str).replace("nan", "")) == expected


def test_the_sentences_name_column_count_and_what_happens():
    frame = rows()
    frame.loc[[0, 1], "plain"] = 12345.0
    frame.loc[3, "work"] = "secret"
    schema = Schema(columns=COLUMNS)
    counted = cells_outside(frame, schema, Encoder(schema).read(frame))
    found = [sentence_of_cells_outside(schema.columns_by_name[name], count) for name, count in counted.items()]
    assert found == [
        '"plain": 2 cells lie outside 0 to 10 and count as the nearer bound',
        '"work": 1 cell is none of the listed categories and counts as no level',
    ]


def test_a_number_in_single_precision_is_compared_with_the_bound_itself():
    """0.1 in single precision is a little above 0.1; and a bound may be beyond the numbers of single precision."""
    schema = Schema(columns={"a": {"low": 0, "high": 0.1}, "b": {"low": 0, "high": 1e39}})
    frame = pd.DataFrame({"a": np.array([0.1, 0.05], "f4"), "b": np.array([1.0, 2.0], "f4")})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = cells_outside(frame, schema, Encoder(schema).read(frame))
    assert found == {"a": 1}
