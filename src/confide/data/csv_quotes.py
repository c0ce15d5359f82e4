"""Quotes in a CSV file, counted and checked at the speed at which the file is read.

Python's own reader checks each cell by itself and takes about as long as all numbers of the file take to be read. Nearly
every file has quotes of one form alone: around whole cells, doubled within them. That form is found by comparing each quote
with the byte before or after it.
"""

from __future__ import annotations

from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray

_CHUNK_BYTES = 2**20
_QUOTE = ord('"')


def counted_quotes(stream: BinaryIO, separator: bytes) -> tuple[int, bool]:
    """The number of quotes in a stream, and whether each certainly begins or ends a cell or is half of a pair in one.

    Where that is not certain, the cells have to be read one by one. Quotes are counted from 0. Each one with an even number
    must follow a separator, the end of a line or a quote, and each one with an odd number must precede one of these. Then a
    quote with an even number begins a cell or completes a pair. One with an odd number ends a cell or begins a pair.

    Parameters
    ----------
    stream : bytes of the file
    separator : one byte
    """
    beside = np.zeros(256, dtype=bool)
    beside[[*separator, *b'\r\n"']] = True
    n_quotes, plain, before = 0, True, b"\n"
    chunk = stream.read(_CHUNK_BYTES)
    while chunk:
        after = stream.read(_CHUNK_BYTES)
        if plain:
            # The end of the file may stand after a quote as the end of a line does.
            text = np.frombuffer(before + chunk + (after[:1] or b"\n"), dtype=np.uint8)
            quotes = np.flatnonzero(text[1:-1] == _QUOTE) + 1
            plain = _are_plain(text, quotes, n_quotes % 2, beside)
            n_quotes += quotes.size
        else:
            n_quotes += chunk.count(b'"')
        before, chunk = chunk[-1:], after
    return n_quotes, plain


def _are_plain(text: NDArray[np.uint8], quotes: NDArray[np.intp], n_odd: int, beside: NDArray[np.bool_]) -> bool:
    """Whether quotes follow or precede what they may. `n_odd` is 1 if the first one here has an odd number, and else 0."""
    opening, closing = quotes[n_odd::2], quotes[1 - n_odd :: 2]
    return bool(beside[text[opening - 1]].all() and beside[text[closing + 1]].all())
