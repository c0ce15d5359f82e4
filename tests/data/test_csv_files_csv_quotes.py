"""Quotes are counted as they are, and called plain where Python's own reader finds nothing wrong."""

from __future__ import annotations

import csv
import io
import itertools

import numpy as np
import pytest

from confide.data import csv_files
from confide.data.csv_files import counted_quotes


def is_sound(text):
    """Whether the strict reader of Python accepts the text."""
    try:
        list(csv.reader(io.StringIO(text, newline=""), strict=True))
    except csv.Error:
        return False
    return True


@pytest.mark.parametrize("chunk", [1, 2, 3, 1000])
def test_no_text_is_plain_that_a_strict_reader_refuses(monkeypatch, chunk):
    """All texts of up to seven signs, in chunks of every size: nothing that is wrong passes, and the common form does."""
    monkeypatch.setattr(csv_files, "_CHUNK_BYTES", chunk)
    passed = 0
    for length in range(8 if chunk == 1000 else 6):
        for signs in itertools.product('a",\n', repeat=length):
            text = "".join(signs)
            n_quotes, plain = counted_quotes(io.BytesIO(text.encode()), b",")
            assert n_quotes == text.count('"')
            if plain and n_quotes % 2 == 0:
                passed += 1
                assert is_sound(text)
                assert quotes_begin_cells(text)
    assert passed > 100


def quotes_begin_cells(text):
    """Whether a reader that goes from sign to sign finds no quote but around whole cells and doubled within them."""
    inside, at, before = False, 0, "\n"
    while at < len(text):
        sign, pair = text[at], text[at : at + 2] == '""'
        if sign == '"' and not (inside or before in ",\n"):
            return False
        if inside and pair:
            at, before = at + 2, '"'
            continue
        inside = inside != (sign == '"')
        at, before = at + 1, sign
    return True


@pytest.mark.parametrize(("separator", "end"), [(";", "\r\n"), ("\t", "\n"), (",", "\n")])
def test_cells_that_a_writer_quotes_are_plain(separator, end):
    """Doubled quotes, separators and ends of lines within cells, over several chunks."""
    rng = np.random.default_rng(0)
    cells = rng.choice(['say "hi"', f"a{separator}b", f"two{end}lines", "", "plain", '"'], size=(60_000, 3))
    held = io.StringIO(newline="")
    csv.writer(held, delimiter=separator, lineterminator=end, quoting=csv.QUOTE_ALL).writerows(cells)
    text = held.getvalue().encode()
    assert len(text) > csv_files._CHUNK_BYTES
    assert counted_quotes(io.BytesIO(text), separator.encode()) == (text.count(b'"'), True)
    wrong = text.replace(b'"plain"' + separator.encode(), b'"plain" ' + separator.encode(), 1)
    assert counted_quotes(io.BytesIO(wrong), separator.encode()) == (text.count(b'"'), False)
