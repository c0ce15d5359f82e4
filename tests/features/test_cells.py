"""Cells of one column as numbers, levels and identities, whatever library holds them."""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from confide.errors import InputError
from confide.features import cells
from confide.features.canonical_labels import canonical_label
from confide.features.cells import number_in, read_levels, read_numbers
from confide.features.table import read_identities
from tests.features.tables import SECRET, SECRET_NUMBER, assert_silent

HELD_AS = {
    "a list": lambda cells: cells,
    "NumPy objects": lambda cells: np.array(cells, dtype=object),
    "pandas objects": lambda cells: pd.Series(cells, dtype=object),
    "pandas": pd.Series,
    "Polars": lambda cells: pl.Series(cells, strict=False),
    "Arrow": pa.array,
    "Arrow in chunks": lambda cells: pa.chunked_array([pa.array(cells[:1]), pa.array(cells[1:])]),
    "an Arrow dictionary": lambda cells: pa.array(cells).dictionary_encode(),
}


@pytest.mark.parametrize("hold", HELD_AS.values(), ids=HELD_AS)
def test_numbers_are_the_same_however_they_are_held(hold):
    """Every container gives the same doubles, with NaN for missing cells."""
    numbers = read_numbers("the column", hold([1.5, None, -2.0]))
    np.testing.assert_array_equal(numbers, [1.5, np.nan, -2.0])
    assert numbers.dtype == np.float64


@pytest.mark.parametrize("hold", HELD_AS.values(), ids=HELD_AS)
def test_levels_are_the_same_however_they_are_held(hold):
    """A listed category, a missing one and an unlisted one have their levels, in a fresh array."""
    levels = read_levels("the column", hold(["a", None, "z"]), {"a": 0, "b": 1}, missing=-3, unknown=-1)
    assert levels.tolist() == [0, -3, -1]
    assert levels.flags.writeable


def test_only_single_precision_stays_single():
    """Every other type of number becomes float64."""
    for dtype in ("int8", "uint64", "bool", "float64", "float16"):
        assert read_numbers("the column", pd.Series([0, 1], dtype=dtype)).dtype == np.float64
    assert read_numbers("the column", pd.Series([0, 1], dtype="float32")).dtype == np.float32


def test_numbers_of_one_arrow_array_are_not_copied():
    """A column of a file is read without a copy."""
    array = pa.array([1.0, 2.0])
    numbers = read_numbers("the column", pa.chunked_array([array]))
    assert np.shares_memory(numbers, array.to_numpy())


def test_cells_that_are_no_numbers_are_refused_or_missing():
    """Before a charge they are refused, without being named; after it they count as missing."""
    cells = [SECRET, 1, str(SECRET_NUMBER)]
    with pytest.raises(InputError, match=r"^the column: holds cells that are not numbers") as refusal:
        read_numbers("the column", cells)
    assert_silent(refusal.value)
    np.testing.assert_array_equal(read_numbers("the column", cells, refuse=False), [np.nan, 1, SECRET_NUMBER])


@pytest.mark.parametrize("read", [read_identities, lambda what, cells: read_levels(what, cells, {}, -1, -1)])
@pytest.mark.parametrize("cells", [[b"x", 1], [(SECRET,), 1], [[SECRET], 1], [1j, SECRET], [10**5000, SECRET]])
def test_cells_that_are_no_labels_are_refused(read, cells):
    """The message names the column and holds no cell."""
    with pytest.raises(InputError, match=r"^the column: holds cells that are not text, numbers or booleans") as refusal:
        read("the column", cells)
    assert_silent(refusal.value)


NUMBERS = {
    "1e3": 1000.0,
    " -2 ": -2.0,
    True: 1.0,
    Decimal("0.5"): 0.5,
    Fraction(1, 4): 0.25,
    10**400: math.inf,
    "1_000": None,
    "one": None,
    "1,5": None,
    b"1": None,
    1j: None,
    (1,): None,
}


@pytest.mark.parametrize(("cell", "number"), NUMBERS.items(), ids=str)
def test_the_number_in_a_cell(cell, number):
    """It is None if the cell is not a number."""
    assert number_in(cell) == number


@pytest.mark.parametrize("cell", [None, math.nan, np.float32("nan"), pd.NA, pd.NaT, "", "  ", Decimal("nan"), "nan", " NA "])
def test_a_missing_cell_is_not_a_number_and_no_error(cell):
    """Its number is NaN."""
    assert math.isnan(number_in(cell))


mixed = st.lists(st.one_of(st.text(max_size=2), st.integers(-2, 2), st.booleans(), st.floats(-1, 1)), min_size=2, max_size=6)


@given(mixed)
def test_a_level_depends_on_its_cell_alone(cells):
    """It is the level of the cell's canonical form, whatever other cells there are."""
    known = {canonical_label(cell): level for level, cell in enumerate(cells[:2])}
    levels = read_levels("the column", cells, known, missing=-2, unknown=-1)
    for cell, level in zip(cells, levels, strict=True):
        label = canonical_label(cell)
        assert level == (-2 if label is None else known.get(label, -1))


@pytest.mark.parametrize("read", [lambda what, cells: read_levels(what, cells, {"ab": 0}, -1, -2), read_identities])
def test_text_that_is_not_utf_8_is_refused_in_one_line(read):
    """As a damaged Parquet file may hold it; the message shows no byte of it."""
    damaged = pa.array([b"ab", b"\xfe\xda"]).view(pa.string())
    with pytest.raises(InputError, match=r"^column a: holds text that is not UTF-8; write the file again in UTF-8\.$"):
        read("column a", damaged)


@pytest.mark.parametrize("at_once", [1, 3, 2**15])
def test_levels_are_looked_up_in_blocks(monkeypatch, at_once):
    """Each cell has its own level, missing and unknown ones among them, wherever a block ends."""
    monkeypatch.setattr(cells, "_POSITIONS_AT_ONCE", at_once)
    given = ["b", None, "a", "z", "a", "b", None]
    for column in (pd.Series(given), pa.array(given), pd.Series(given).astype("category")):
        found = read_levels("the column", column, {"a": 0, "b": 1}, missing=-2, unknown=-1)
        assert found.tolist() == [1, -2, 0, -1, 0, 1, -2]
        assert found.dtype.itemsize == 1


@pytest.mark.parametrize("kind", ["text", "dictionary", "number"])
@given(st.lists(st.lists(st.sampled_from(["7", "1", "20", None]), max_size=5), max_size=4))
def test_a_column_in_pieces_is_read_as_one(kind, parts):
    """Wherever a column is cut, and whatever values each piece has, cells have the same levels, identities and numbers."""
    whole = [cell for part in parts for cell in part]

    def column_of(cells):
        text = pa.array(cells, pa.large_string())
        return text.dictionary_encode() if kind == "dictionary" else text.cast(pa.int64()) if kind == "number" else text

    column = pa.chunked_array([column_of(part) for part in parts], type=column_of(["1"]).type)
    levels = read_levels("the column", column, {"7": 0, "20": 1}, missing=-3, unknown=-2)
    assert levels.tolist() == [{"7": 0, "20": 1, "1": -2, None: -3}[cell] for cell in whole]
    np.testing.assert_array_equal(
        read_numbers("the column", column), [np.nan if cell is None else float(cell) for cell in whole]
    )
    distinct, positions = cells.distinct_cells("the column", column)
    assert [None if at < 0 else str(distinct[at]) for at in positions] == whole


def test_dictionaries_that_cannot_be_combined_are_read():
    """Three pieces that number 100 values in bytes: all 300 values would need more than a byte."""
    values = [[f"{piece} {value}" for value in range(100)] for piece in range(3)]
    pieces = [pa.DictionaryArray.from_arrays(pa.array(range(100), pa.int8()), pa.array(each)) for each in values]
    known = {value: level for level, value in enumerate(value for each in values for value in each)}
    assert read_levels("the column", pa.chunked_array(pieces), known, -1, -2).tolist() == list(range(300))


@pytest.mark.parametrize("indices", [pa.int8(), pa.uint8(), pa.int16(), pa.uint32(), pa.int64()], ids=str)
def test_positions_have_room_for_the_next_one(indices):
    """A dictionary may count its 128 values in bytes; whoever adds 1 to a position must not get -128."""
    values = [f"v{i}" for i in range(128)]
    column = pa.array([*values, None]).dictionary_encode().cast(pa.dictionary(indices, pa.string()))
    distinct, positions = cells.distinct_cells("the column", column)
    assert distinct == values
    assert (positions + 1).tolist() == [*range(1, 129), 0]


def in_dictionaries(*values):
    """A column in pieces, each cell a value of its own piece's dictionary, whose indices are bytes."""
    return pa.chunked_array([pa.DictionaryArray.from_arrays(pa.array(range(len(each)), pa.int8()), each) for each in values])


@pytest.mark.parametrize("n_others", [27, 28])
def test_single_precision_keeps_its_categories_whatever_other_pieces_hold(n_others):
    """127 values can be counted in bytes, and 128 cannot; 0.1 in single precision is the category 0.1 in both cases."""
    column = in_dictionaries(
        pa.array(np.arange(100, dtype="f4") / np.float32(10)), pa.array(np.arange(100, 100 + n_others, dtype="f4"))
    )
    assert read_levels("the column", column, {"0.1": 0, "0.2": 1}, -3, -2)[:4].tolist() == [-2, 0, 1, -2]


@pytest.mark.parametrize("values", [["a", None, "b"], np.array([0.1, np.nan, 0.2], "f4")], ids=["text", "numbers"])
@pytest.mark.parametrize("n_pieces", [1, 2])
def test_a_null_in_a_dictionary_is_a_missing_cell(values, n_pieces):
    """Of one piece or of several, each with a dictionary of its own."""
    column = in_dictionaries(*[pa.array(values, from_pandas=True)] * n_pieces)
    known = {"a": 0, "b": 1, "0.1": 0, "0.2": 1}
    assert read_levels("the column", column, known, -3, -2).tolist() == [0, -3, 1] * n_pieces


@pytest.mark.parametrize(
    "column",
    [
        pa.array([2**31 - 1], pa.date32()),
        pa.array([2**62], pa.timestamp("s")),
    ],
    ids=["date", "time"],
)
def test_cells_that_python_cannot_hold_are_refused_without_their_content(column):
    """An error of a library would show the cell."""
    with pytest.raises(InputError, match=r"^the column: holds cells that are not text") as refused:
        read_levels("the column", column, {"a": 0}, -3, -2)
    assert refused.value.__context__ is None


def test_views_of_text_that_is_not_utf_8_are_refused_without_their_content():
    """They are read cell by cell, and Python's own error would hold the bytes."""
    try:
        column = pa.array([b"\xfe\xda", b"a longer cell \xfe"]).cast(pa.binary_view()).view(pa.string_view())
    except (AttributeError, pa.ArrowNotImplementedError):
        pytest.skip("this version of pyarrow makes no views of text")
    with pytest.raises(InputError, match=r"^the column: holds text that is not UTF-8") as refused:
        read_levels("the column", column, {"a": 0}, -3, -2)
    assert refused.value.__context__ is None


def test_a_lack_of_memory_is_called_so():
    """And not a fault of the cells."""

    class Full(list):
        """A list for which there is no memory."""

        def tolist(self):
            raise MemoryError("SECRET")

    with pytest.raises(MemoryError, match=r"^the column: its cells do not fit into memory") as refused:
        read_levels("the column", Full([object()]), {"a": 0}, -3, -2)
    assert refused.value.__context__ is None


def test_text_that_is_too_large_for_one_dictionary_is_read_cell_by_cell(monkeypatch):
    """More than 2 GiB of distinct values."""

    class TooLarge(pa.ArrowException):
        """What Arrow raises where the memory of a dictionary is full."""

    class Column:
        """A column that no dictionary can hold."""

        type = pa.string()

        def dictionary_encode(self):
            raise TooLarge

    given = ["a", "b", None, "a"]
    monkeypatch.setattr(cells, "_as_arrow", lambda _: Column())
    assert read_levels("the column", given, {"a": 0, "b": 1}, -3, -2).tolist() == [0, 1, -3, 0]


@pytest.mark.parametrize(
    ("cells", "said"),
    [
        (["987,65", "1"], "numbers with a comma, where a point is expected"),
        (["9.876,54", "1"], "numbers with a comma, where a point is expected"),
        (["9\u00a0876,54", "1"], "numbers with a comma, where a point is expected"),
        (["987\u00b765", "1"], "numbers with a point, where the schema says"),
        (["a,5", "1"], "cells that are not numbers"),
        (["987, many", "1"], "cells that are not numbers"),
    ],
)
def test_another_sign_in_numbers_is_named_without_the_cell(cells, said):
    """Where the schema declares a comma, a reader of text leaves a sign of its own in place of a point."""
    with pytest.raises(InputError, match=said) as refusal:
        read_numbers("the column", cells)
    assert "987" not in str(refusal.value)
    assert "876" not in str(refusal.value)


def test_masked_cells_are_missing_with_and_without_arrow(monkeypatch):
    """A masked array of NumPy keeps its mask, and its precision."""
    for dtype in (np.float64, np.float32, np.int32):
        masked = np.ma.masked_array(np.array([1, 2, 3], dtype), [False, True, False])
        expected = read_numbers("the column", masked)
        with monkeypatch.context() as patched:
            patched.setattr(cells, "_as_arrow", lambda _: None)
            np.testing.assert_array_equal(read_numbers("the column", masked), expected)
        np.testing.assert_array_equal(expected, [1.0, np.nan, 3.0])
