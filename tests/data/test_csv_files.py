"""CSV in blocks has the rows that pyarrow finds in the whole file, wherever blocks end."""

from __future__ import annotations

import io
import itertools
from contextlib import contextmanager

import numpy as np
import pyarrow as pa
import pyarrow.csv as arrow_csv
import pytest

from confide.data import csv_files
from confide.data.csv_files import counted_quotes

ROWS = [["a", "b", "c"], ["1", "x", "y, z"], ["2.5", 'say ""so""', "one\ntwo"], ["", "\r\n", ""], ["-3e4", "", "\u00e4"]]


def text_of(rows, end="\n", separator=","):
    return end.join(separator.join(f'"{cell}"' if set(cell) & set('",;\n\r') else cell for cell in row) for row in rows)


def whole(text, types, separator=","):
    """What pyarrow makes of the whole text."""
    return arrow_csv.read_csv(
        io.BytesIO(text),
        parse_options=arrow_csv.ParseOptions(newlines_in_values=True, delimiter=separator),
        convert_options=arrow_csv.ConvertOptions(column_types=types, include_columns=list(types)),
    )


def in_blocks(text, types, separator=","):
    @contextmanager
    def opened():
        yield io.BytesIO(text)

    return pa.Table.from_batches(csv_files.csv_batches(opened, separator, types), pa.schema(list(types.items())))


@pytest.mark.parametrize("size", [8, 30, 31, 32, 37, 64, 2**20])
@pytest.mark.parametrize(("end", "separator"), [("\n", ","), ("\r\n", ";"), ("\n\n", "\t"), ("\r", ",")])
def test_rows_are_those_of_the_whole_file(monkeypatch, size, end, separator):
    """Quotes, their pairs, ends of lines within cells and blank lines may all lie where a block ends."""
    monkeypatch.setattr(csv_files, "_BLOCK_BYTES", size)
    rng = np.random.default_rng(size)
    rows = [ROWS[0], *(ROWS[at] for at in rng.integers(1, len(ROWS), 40))]
    types = {"c": pa.string(), "a": pa.float64()}
    lasts = ("", end, 3 * end)
    # Every end meets every beginning, at one size or another.
    for first, last in zip(("", "\ufeff", 2 * end), lasts[size % 3 :] + lasts[: size % 3], strict=True):
        text = (first + text_of(rows, end, separator) + last).encode()
        assert in_blocks(text, types, separator).equals(whole(text, types, separator).combine_chunks())


@pytest.mark.parametrize("size", [1, 3])
def test_all_short_texts(monkeypatch, size):
    """Every text of up to five signs below a header: the same rows, or refused by both."""
    monkeypatch.setattr(csv_files, "_BLOCK_BYTES", size)
    types, n_read = {"a": pa.string(), "b": pa.string()}, 0
    for length in range(6):
        for signs in itertools.product('1",\n', repeat=length):
            text = ("a,b\n" + "".join(signs)).encode()
            n_quotes, plain = counted_quotes(io.BytesIO(text), b",")
            if n_quotes % 2 or not plain:
                continue  # refused, or checked cell by cell, before any row is read
            try:
                expected = whole(text, types)
            except pa.ArrowInvalid:
                with pytest.raises(pa.ArrowInvalid):
                    in_blocks(text, types)
                continue
            assert in_blocks(text, types).equals(expected.combine_chunks())
            n_read += 1
    assert n_read > 100


@pytest.mark.parametrize("size", [20, 40, 2**20])
def test_quotes_may_stand_within_a_cell_that_has_none_around_it(monkeypatch, size):
    """They are text, and such a cell may hold one of them."""
    monkeypatch.setattr(csv_files, "_BLOCK_BYTES", size)
    for n_before in (0, 1, 30):
        rows = [*([["1", "x"]] * n_before), ["2", '5" pipe'], ["3", "x\ny"], ["4", '7" pipe'], *([["5", "z"]] * 30)]
        text = "a,b\n" + "\n".join(f"{a},{chr(34) + b + chr(34) if chr(10) in b else b}" for a, b in rows)
        types = {"a": pa.float64(), "b": pa.string()}
        found = in_blocks(text.encode(), types)
        assert found.equals(whole(text.encode(), types).combine_chunks())
        assert found["b"].to_pylist() == [b for _, b in rows]


def test_a_row_may_be_longer_than_a_block_and_not_than_the_limit(monkeypatch):
    """Rows before it are given once; a row beyond the limit is refused."""
    types = {"a": pa.string(), "b": pa.string()}
    monkeypatch.setattr(csv_files, "_BLOCK_BYTES", 50)
    monkeypatch.setattr(csv_files, "_ROW_BYTES", 1000)
    for n_before in (0, 3, 100):
        text = b"a,b\n" + b"1,2\n" * n_before + b"x" * 900 + b",1\n2,3\n"
        assert in_blocks(text, types).equals(whole(text, types).combine_chunks())
    with pytest.raises(pa.ArrowInvalid):
        in_blocks(b"a,b\n" + b"x" * 3000 + b",1\n2,3\n", types)


def test_batches_are_small_and_errors_come_in_order():
    """Rows before a row that is damaged are given, as from any stream."""
    text = b"a,b\n" + b"1,2\n" * 600_000 + b"1\n" + b"1,2\n" * 600_000

    @contextmanager
    def opened():
        yield io.BytesIO(text)

    n_rows = []
    with pytest.raises(pa.ArrowInvalid):
        n_rows.extend(batch.num_rows for batch in csv_files.csv_batches(opened, ",", {"a": pa.float64()}))
    assert max(n_rows) < 300_000
    assert 300_000 < sum(n_rows) < 600_001


@pytest.mark.parametrize("size", range(16, 48))
@pytest.mark.parametrize("n_before", [0, 1, 2, 7])
def test_what_a_row_holds_does_not_depend_on_the_rows_before(monkeypatch, size, n_before):
    """Wherever blocks end: a mark of byte order begins a cell, and CR LF stands in one."""
    monkeypatch.setattr(csv_files, "_BLOCK_BYTES", size)
    types = {"a": pa.string(), "b": pa.string()}
    cells = [("\ufeffx", "\r\n"), ("\ufeff", "y\r\n"), ("z\r\n\r\n", "\ufeffz"), ("\ufeff5", "\r")]
    rows = [*([("1", "x")] * n_before), *cells * 5]
    text = text_of([["a", "b"], *rows]).encode()
    found = in_blocks(text, types)
    assert list(zip(*(found[name].to_pylist() for name in "ab"), strict=True)) == rows


@pytest.mark.parametrize("size", range(24, 48))
def test_what_a_row_holds_does_not_depend_on_quotes_within_cells(monkeypatch, size):
    """The same where quotes are not plain from some row on."""
    monkeypatch.setattr(csv_files, "_BLOCK_BYTES", size)
    types = {"a": pa.string(), "b": pa.string()}
    rows = [("1", "x"), ("\ufeff2", '5" pipe'), *[("\r\n", "y\r\n")] * 9, ("\ufeff3", "\r"), ("z", "\r\n")]
    text = text_of([["a", "b"], *rows]).replace('"5" pipe"', '5" pipe').encode()
    for last in (b"", b"\r", b"\r\n"):
        found = in_blocks(text + last, types)
        assert list(zip(*(found[name].to_pylist() for name in "ab"), strict=True)) == rows
