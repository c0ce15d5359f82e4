"""Our grammar of numbers is that of the reader that a fit uses."""

from __future__ import annotations

import io

import numpy as np
import pyarrow as pa
import pyarrow.csv as arrow_csv
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from confide.data.files import CSV_MISSING
from confide.studies.counting import read_texts


def as_a_fit_reads(text: str) -> object:
    """The number that pyarrow reads from a cell in quotes: NaN if it is missing, "refused" if it is none."""
    cell = text.replace('"', '""')
    options = arrow_csv.ConvertOptions(
        column_types={"a": pa.float64()}, include_columns=["a"], null_values=list(CSV_MISSING)
    )
    parse = arrow_csv.ParseOptions(newlines_in_values=True)
    try:
        table = arrow_csv.read_csv(io.BytesIO(f'a,b\n"{cell}",1\n'.encode()), parse_options=parse, convert_options=options)
    except pa.ArrowInvalid:
        return "refused"
    number = table["a"][0].as_py()
    return np.nan if number is None else number


def as_we_read(text: str) -> object:
    numbers, unreadable, _ = read_texts(pa.array([text]))
    return "refused" if unreadable[0] else numbers[0]


def same(text: str) -> None:
    ours, theirs = as_we_read(text), as_a_fit_reads(text)
    assert ours == theirs or (ours != ours and theirs != theirs), repr(text)


@pytest.mark.parametrize(
    "text",
    [
        *("1", "+1", "-1", "1.", "-.5", ".5", "1e5", "1E+5", "1e", "e5", "1_0", "00012", "1.5.2", "1e400", "1e-400"),
        *("inf", "-inf", "Infinity", "+inf", "iNf", "nan", "NaN", "-nan", "NAN", " nan", "nan(abc)", "1.#IND"),
        *("NA", "N/A", "null", "NULL", "None", "", " ", " NA", "NA ", "#N/A", "n/a", "na", "true", "-", "- 1"),
        *(" 1 ", "\t1", "1 2", "1,5", "1.234,5", "0x10", "1f", "\u00a01", "٣", "9" * 400),
    ],
)
def test_a_cell_is_read_as_a_fit_reads_it(text) -> None:
    """As a number, as missing, or not at all."""
    same(text)


@settings(max_examples=150, deadline=None)
@given(st.text(st.sampled_from(list("0123456789+-.eE naifNAI,_")), max_size=7))
def test_any_text_is_read_as_a_fit_reads_it(text) -> None:
    """Made of the letters of numbers and of words for missing cells."""
    same(text)


def test_decimal_commas_are_seen() -> None:
    """Only where the cell is no number for a fit, and is one with a comma."""
    _, unreadable, commas = read_texts(pa.array(["1,5", "1.234,5", "1 234,5", "-0,1", "1.5", "a,b", "1,5,6", None, ""]))
    assert commas.tolist() == [True] * 4 + [False] * 5
    assert unreadable.tolist() == [True] * 4 + [False, True, True, False, False]
