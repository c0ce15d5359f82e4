"""The columns of frames: found, read and checked by a schema."""

from __future__ import annotations

import io
import math
from datetime import date
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from confide.errors import InputError
from confide.features.canonical_labels import MISSING_WORDS, canonical_label
from confide.features.columns import CategoryColumn
from confide.features.encoder import Encoder
from confide.features.schema import Schema
from tests.features.tables import SECRET, SECRET_NUMBER, assert_silent, encode

NUMBERS_AS = {
    "int8": pd.Series([0, 1, 100], dtype="int8"),
    "uint64": pd.Series([0, 1, 2**64 - 1], dtype="uint64"),
    "int64 beyond 2^53": pd.Series([0, 1, 2**53 + 1]),
    "float32": pd.Series([0, 1, 100], dtype="float32"),
    "float16": pd.Series([0, 1, 100], dtype="float16"),
    "Int64": pd.Series([0, 1, 100], dtype="Int64"),
    "text": pd.Series(["0", " 1.0", "1e2"]),
    "text objects": pd.Series(["0", "1", "100"], dtype=object),
    "categorical of numbers": pd.Series([0, 1, 100]).astype("category"),
    "categorical of text": pd.Series(["0", "1", "100"]).astype("category"),
    "mixed": pd.Series([0, "1", 100.0], dtype=object),
    "decimals": pd.Series([Decimal(0), Decimal("1.00"), Decimal(100)]),
    "integers beyond 2^64": pd.Series([0, 1, 10**30], dtype=object),
    "sparse": pd.Series([0.0, 1.0, 100.0]).astype("Sparse[float64]"),
    "Polars Int128": pl.Series([0, 1, 100], dtype=pl.Int128),
    "Polars Float32": pl.Series([0, 1, 100], dtype=pl.Float32),
    "Polars text": pl.Series(["0", "1", "100"]),
    "Polars Categorical": pl.Series(["0", "1", "100"], dtype=pl.Categorical),
    "Polars Decimal": pl.Series([Decimal(0), Decimal("1.00"), Decimal(100)]),
    "Polars objects": pl.Series([0, "1", 100.0], dtype=pl.Object),
}


@pytest.mark.parametrize("series", NUMBERS_AS.values(), ids=NUMBERS_AS)
def test_numbers_are_read_from_any_type(series):
    """0, 1 and a number above the bounds are read from every type."""
    frame = (pl if isinstance(series, pl.Series) else pd).DataFrame({"x": series})
    encoder = Encoder(Schema(columns={"x": {"low": 0, "high": 2}}))
    assert encoder.transform(frame)[:, 0].tolist() == [-1.0, 0.0, 1.0]


def test_booleans_are_numbers_where_a_number_is_declared():
    """False is 0 and True is 1, with gaps or without."""
    column = {"x": {"low": 0, "high": 1, "missing": True}}
    assert encode(column, x=[False, True])[:, 0].tolist() == [-1, 1]
    assert encode(column, x=[False, True, None]).tolist() == [[-1, 0], [1, 0], [0, 1]]


CATEGORIES_AS = {
    "int8": ([1, 2, 3], pd.Series([1, 2, 9], dtype="int8")),
    "floats of a reader that saw gaps": ([1, 2, 3], pd.Series([1.0, 2.0, 9.0])),
    "text of numbers": ([1, 2, 3], pd.Series(["1", "2.0", "9"])),
    "float32": ([0.1, 0.2, 0.3], pd.Series([0.1, 0.2, 9], dtype="float32")),
    "Polars Float32": ([0.1, 0.2, 0.3], pl.Series([0.1, 0.2, 9], dtype=pl.Float32)),
    "numbers for text": (["1", "2", "3"], pd.Series([1, 2, 9])),
    "text": (["a", "b", "c"], pd.Series(["a", " b", "z"])),
    "text objects": (["a", "b", "c"], pd.Series(["a", "b", "z"], dtype=object)),
    "string": (["a", "b", "c"], pd.Series(["a", "b", "z"], dtype="string")),
    "arrow string": (["a", "b", "c"], pd.Series(["a", "b", "z"], dtype=pd.ArrowDtype(pa.string()))),
    "arrow string view": (["a", "b", "c"], pd.Series(pd.array(["a", "b", "z"], dtype=pd.ArrowDtype(pa.string_view())))),
    "categorical": (["a", "b", "c"], pd.Categorical(["a", "b", "z"], categories=["z", "y", "b", "a"])),
    "mixed": (["a", 2, True], pd.Series(["a", 2, 1], dtype=object)),
    "booleans for text": (["true", "x", "y"], pd.Series([True, "x", False], dtype=object)),
    "Polars text": (["a", "b", "c"], pl.Series(["a", "b", "z"])),
    "Polars Categorical": (["a", "b", "c"], pl.Series(["a", "b", "z"], dtype=pl.Categorical)),
    "Polars Enum": (["a", "b", "c"], pl.Series(["a", "b", "z"], dtype=pl.Enum(["z", "b", "a"]))),
    "Polars Int8": ([1, 2, 3], pl.Series([1, 2, 9], dtype=pl.Int8)),
}


@pytest.mark.parametrize(("categories", "series"), CATEGORIES_AS.values(), ids=CATEGORIES_AS)
def test_categories_are_read_from_any_type(categories, series):
    """The first category, the second and an unlisted one are read from every type."""
    frame = (pl if isinstance(series, pl.Series) else pd).DataFrame({"x": series})
    encoder = Encoder(Schema(columns={"x": {"categories": categories}}))
    assert encoder.transform(frame).tolist() == [[1, 0, 0], [0, 1, 0], [0, 0, 0]]


def test_booleans_are_categories():
    """They may be declared as booleans or as text, and held as booleans or as text."""
    for categories in ([False, True], ["False", "true"]):
        for cells in ([False, True], ["FALSE", "True"]):
            assert encode({"x": {"categories": categories}}, x=cells)[:, 0].tolist() == [-1, 1]


def test_an_unused_level_of_a_categorical_does_not_matter():
    """A categorical keeps categories that occur in no row. They are not read."""
    cells = pd.Categorical(["1"], categories=["1", "no number"])
    assert encode({"x": {"low": 0, "high": 1}}, x=cells).tolist() == [[1.0]]


REFUSED_CELLS = {
    "a missing number": ({"low": 0, "high": 1}, [SECRET_NUMBER, None], "missing = true"),
    "a blank number": ({"low": 0, "high": 1}, [str(SECRET_NUMBER), " "], "missing = true"),
    "infinity": ({"low": 0, "high": 1}, [SECRET_NUMBER, math.inf], "infinite"),
    "an integer beyond the doubles": ({"low": 0, "high": 1}, [SECRET_NUMBER, 10**400], "infinite"),
    "infinity as text": ({"low": 0, "high": 1, "missing": True}, [str(SECRET_NUMBER), "-inf"], "infinite"),
    "text": ({"low": 0, "high": 1}, ["1", SECRET], "not numbers"),
    "text among numbers": ({"low": 0, "high": 1}, [SECRET_NUMBER, SECRET], "not numbers"),
    "a number with a separator": ({"low": 0, "high": 1}, ["987654321_0", "1"], "not numbers"),
    "bytes": ({"low": 0, "high": 1}, [SECRET.encode(), b"1"], "not numbers"),
    "dates": ({"low": 0, "high": 1}, pd.to_datetime(["2021-01-01", "2021-01-02"]), "holds dates"),
    "days": ({"low": 0, "high": 1}, [date(2021, 1, 1), SECRET_NUMBER], "holds dates"),
    "dates as text": ({"low": 0, "high": 1}, ["1", f"2021-01-01 {SECRET}"], "declare dates"),
    "days of months as text": ({"low": 0, "high": 1}, ["1", "31.12.2020"], "holds dates"),
    "complex": ({"low": 0, "high": 1}, [SECRET_NUMBER * 1j, 1j], "not numbers"),
    "lists": ({"low": 0, "high": 1}, [[SECRET], [SECRET_NUMBER]], "convert"),
    "objects": ({"low": 0, "high": 1}, [Exception(SECRET), 1], "not numbers"),
    "a missing category": ({"categories": ["a", "b"]}, [SECRET, None], "missing = true"),
    "a blank category": ({"categories": ["a", "b"]}, [SECRET, ""], "missing = true"),
    "bytes for a category": ({"categories": ["a", "b"]}, [SECRET.encode(), b"a"], "convert"),
    "dates for a category": ({"categories": ["a", "b"]}, [date(2021, 1, 1), SECRET], "convert"),
    "lists for a category": ({"categories": ["a", "b"]}, [[SECRET], ["a"]], "convert"),
    "sets for a category": ({"categories": ["a", "b"]}, [{SECRET}, "a"], "convert"),
    "objects for a category": ({"categories": ["a", "b"]}, [Exception(SECRET), "a"], "convert"),
    "an integer too long to print": ({"categories": ["a", "b"]}, [10**5000, SECRET], "convert"),
}


@pytest.mark.parametrize(("column", "cells", "words"), REFUSED_CELLS.values(), ids=REFUSED_CELLS)
def test_cells_that_cannot_be_used_are_refused_by_the_name_of_their_column_alone(column, cells, words):
    """An InputError in one line says which column it is and what to do. Neither it nor its context holds a cell."""
    with pytest.raises(InputError) as refusal:
        # Objects: older pandas cannot hold huge integers in a column that it types itself.
        Encoder(Schema(columns={"the column": column})).transform(pd.DataFrame({"the column": cells}, dtype=object))
    assert 'column "the column"' in str(refusal.value)
    assert words in str(refusal.value)
    assert_silent(refusal.value)


WORDS = ["NA", " NA ", "NaN", "null", "N/A", "None", "<NA>", "", "b", "other"]
READERS = {
    "objects": lambda cells: pd.DataFrame({"x": pd.Series(cells, dtype=object)}),
    "text": lambda cells: pd.DataFrame({"x": pd.Series(cells, dtype="string")}),
    "a categorical": lambda cells: pd.DataFrame({"x": pd.Categorical(cells)}),
    "Polars": lambda cells: pl.DataFrame({"x": cells}),
    "Arrow": lambda cells: pa.table({"x": cells}),
    "a dictionary": lambda cells: pa.table({"x": pa.array(cells).dictionary_encode()}),
    "pandas from CSV": lambda cells: pd.read_csv(io.StringIO("x,y\n" + "".join(f"{cell.strip()},1\n" for cell in cells))),
}


@pytest.mark.parametrize("read", READERS.values(), ids=READERS)
def test_words_for_missing_cells_are_missing_whatever_holds_them(read):
    """NA, NaN, null, N/A, None and empty cells of a category have the level of missing ones, and an unlisted one its own."""
    encoder = Encoder(Schema([CategoryColumn("x", ("a", "b"), other=True, missing=True)]))
    assert encoder.read(read(WORDS)).columns[0].tolist() == [3] * 8 + [1, 2]


@pytest.mark.parametrize("read", [each for name, each in READERS.items() if name != "pandas from CSV"])
def test_a_listed_level_that_is_such_a_word_stays_one(read):
    """The code of Namibia, and no level; other such words are missing."""
    encoder = Encoder(Schema([CategoryColumn("x", ("DE", "NA"), missing=True)]))
    assert encoder.read(read(["NA", "DE", "null", "NA"])).columns[0].tolist() == [1, 0, 2, 1]


def test_advice_about_missing_cells_never_makes_one_of_a_level():
    """It says that such a word can be listed, and where one is listed that the reader may have lost it."""
    advice = {}
    for levels in (["DE", "ZA"], ["DE", "NA"]):
        with pytest.raises(InputError) as refusal:
            encode({"x": {"categories": levels}}, x=["DE", None])
        advice[levels[1]] = str(refusal.value)
    assert "list such a word if it is a category" in advice["ZA"]
    assert "keep_default_na=False" in advice["NA"]
    assert "only for cells that are empty in the file" in advice["NA"]


def test_words_for_missing_cells_are_missing_numbers():
    """In text of every kind, as in a file."""
    column = {"x": {"low": 0, "high": 1, "missing": True}}
    for cells in (pd.Series(["1", *WORDS[:8]], dtype=object), pd.Categorical(["1", *WORDS[:8]])):
        assert encode(column, x=cells)[:, 1].tolist() == [0] + [1] * 8


@pytest.mark.parametrize("kind", ["int16", "float32", "float64", "object", "string", "category"])
@pytest.mark.parametrize("more", [{}, {"knots": 4}, {"knots": [20, 50]}, {"scale": "log"}], ids=str)
def test_codes_for_missing_cells_are_missing_numbers(kind, more):
    """However the column is encoded and its cells are held, a code is encoded as an empty cell is, and nothing else is."""
    column = {"low": 0, "high": 110} | more
    cells = pd.Series([30, 999, -9, 99, 98, 1000], dtype=kind)
    with_codes = encode({"x": column | {"missing": [999, -9, 99]}}, x=cells)
    emptied = encode({"x": column | {"missing": True}}, x=pd.Series([30, None, None, None, 98, 1000]))
    np.testing.assert_array_equal(with_codes, emptied)


def test_a_code_in_single_precision_is_the_same_code():
    """99.9 is no number of single precision; the nearest one is the code."""
    encoded = encode({"x": {"low": 0, "high": 50, "missing": [99.9]}}, x=pd.Series([99.9, 99.8], dtype="float32"))
    assert encoded[:, 1].tolist() == [1, 0]


def test_codes_for_missing_cells_are_missing_categories():
    """In canonical form, before they count as unlisted."""
    for other, levels in ((False, [0, 2, 2, -1]), (True, [0, 3, 3, 2]), ("a", [0, 2, 2, 0])):
        column = CategoryColumn("x", ("a", "b"), other=other, missing=(-9,))
        for cells in (["a", "-9.0", None, "z"], pd.Series(["a", -9, np.nan, 7], dtype=object)):
            assert Encoder(Schema([column])).read(pd.DataFrame({"x": cells})).columns[0].tolist() == levels


FRAMES = {
    "an array": (np.full((2, 1), SECRET_NUMBER), "pandas or Polars frame"),
    "a mapping": ({"x": [SECRET]}, "pandas or Polars frame"),
    "a series": (pd.Series([SECRET], name="x"), "pandas or Polars frame"),
    "nothing": (None, "pandas or Polars frame"),
    "no rows": (pd.DataFrame({"x": [], "y": []}), "no rows"),
    "no rows in Polars": (pl.DataFrame({"x": [], "y": []}), "no rows"),
    "columns absent": (pd.DataFrame({SECRET: [1], "z": [SECRET]}), 'describes: "x", "y"'),
    "one column absent": (pl.DataFrame({SECRET: [1], "y": [1]}), 'describes: "x"'),
    "numbers as names": (pd.DataFrame({SECRET_NUMBER: [1], "y": [1]}), 'describes: "x"'),
    "a name twice": (pd.DataFrame([[1, SECRET_NUMBER, 3]], columns=["x", "y", "x"]), 'more than once: "x"'),
    "a further name twice": (pd.DataFrame([[1, 2, 3, 4]], columns=["x", "y", SECRET, SECRET]), "all be different"),
    "a name twice in Arrow": (pa.table([[1], [2], [3]], names=["x", "y", "x"]), "all be different"),
}


@pytest.mark.parametrize(("frame", "words"), FRAMES.values(), ids=FRAMES)
def test_what_is_no_frame_of_the_schema_is_refused(frame, words):
    """An InputError says what is expected. It names only columns of the schema, because a header may be a row of data."""
    encoder = Encoder(Schema(columns={"x": {"low": 0, "high": 1}, "y": {"low": 0, "high": 1}}))
    with pytest.raises(InputError, match=words) as refusal:
        encoder.read(frame)
    assert_silent(refusal.value)


@given(st.lists(st.one_of(st.text(max_size=3), st.integers(-3, 3), st.booleans(), st.none()), min_size=1, max_size=6))
def test_mixed_columns_are_read_or_refused_and_never_fail_otherwise(cells):
    """Levels agree with the canonical form of each cell, whatever a column of Python objects holds."""
    column = CategoryColumn("x", ("a", 1, True), other=True, missing=True)
    codes = Encoder(Schema([column])).read(pd.DataFrame({"x": pd.Series(cells, dtype=object)}))
    levels = {"a": 0, "1": 1, "true": 2, None: 4, **dict.fromkeys(MISSING_WORDS, 4)}
    assert codes.columns[0].tolist() == [levels.get(canonical_label(cell), 3) for cell in cells]


@pytest.mark.parametrize(
    ("column", "common", "first", "second"),
    [
        ({"categories": [0.1, 0.2, 0.3]}, np.float32(0.1), np.float32(0.1), 0.2),
        ({"categories": [True, False]}, np.True_, np.True_, 1),
        ({"low": 0, "high": 1}, np.float16(0.1), np.float16(0.1), 1),
        ({"categories": ["a", "1"]}, "1", "a", 1),
    ],
    ids=["float32 beside double", "boolean beside integer", "half beside integer", "text beside integer"],
)
@pytest.mark.parametrize("kind", ["pandas", "polars"])
def test_one_cell_never_changes_what_the_other_rows_mean(column, common, first, second, kind):
    """Replacing one row leaves the encoding of every other row the same. The guarantee rests on this."""

    def encoded(last):
        cells = [common] * 6 + [last]
        series = pd.Series(cells, dtype=object)
        frame = pd.DataFrame({"x": series})
        if kind == "polars":
            frame = pl.DataFrame({"x": pl.Series(cells, dtype=pl.Object)})
        return Encoder(Schema(columns={"x": column})).transform(frame)[:6]

    assert np.array_equal(encoded(first), encoded(second))


class Stream:
    """What gives its rows as an Arrow stream, as often as it is asked or once."""

    def __init__(self, table, *, once=False):
        self.table, self.once, self.asked = table, once, False

    def __arrow_c_stream__(self, requested_schema=None):
        if self.once and self.asked:
            raise RuntimeError(SECRET)
        self.asked = True
        return self.table.__arrow_c_stream__(requested_schema)


def test_arrow_streams_that_can_be_read_again_are_tables():
    """And so is a record batch. A stream that was read before is refused without a cell."""
    table = pa.table({"x": [0.0, 0.5, 1.0]})
    encoder = Encoder(Schema(columns={"x": {"low": 0, "high": 1}}))
    for rows in (table, table.to_batches()[0], Stream(table)):
        for _ in range(2):
            assert encoder.transform(rows)[:, 0].tolist() == [-1, 0, 1]
    for rows in (table.to_reader(), Stream(table, once=True)):
        assert encoder.transform(rows)[:, 0].tolist() == [-1, 0, 1]
        with pytest.raises(InputError) as refusal:
            encoder.transform(rows)
        assert_silent(refusal.value)


def test_letters_may_be_composed_in_any_way():
    """Categories are the same; a column whose name is composed otherwise is refused with the reason."""
    composed, decomposed = "M\u00fcnchen", "Mu\u0308nchen"
    for listed, held in ((composed, decomposed), (decomposed, composed)):
        assert encode({"x": {"categories": [listed, "b"]}}, x=[held, "b"])[:, 0].tolist() == [-1, 1]
        with pytest.raises(InputError, match="composed in another way"):
            encode({listed: {"low": 0, "high": 1}}, **{held: [1.0]})
    with pytest.raises(InputError) as refusal:
        encode({"x": {"low": 0, "high": 1}}, y=[1.0])
    assert "composed" not in str(refusal.value)
