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


class Quotes:
    """The quotes of a text that is read chunk by chunk.

    Quotes are counted from 0. Each one with an even number must follow a separator, the end of a line or a quote, and each
    one with an odd number must precede one of these. Then a quote with an even number begins a cell or completes a pair. One
    with an odd number ends a cell or begins a pair. A place lies within a cell in quotes exactly if an odd number of quotes
    stands before it.

    Parameters
    ----------
    separator : one byte

    Attributes
    ----------
    count : how many there were
    are_plain : whether each certainly begins or ends a cell or is half of a pair in one. Where that is not certain, cells
        have to be read one by one
    """

    def __init__(self, separator: bytes) -> None:
        self.count, self.are_plain = 0, True
        self._before = b"\n"
        self._beside = np.zeros(256, dtype=bool)
        self._beside[[*separator, *b'\r\n"']] = True

    def add(self, chunk: bytes, after: bytes) -> NDArray[np.intp]:
        """The places of the quotes in the next chunk; none any more where quotes are not plain.

        Parameters
        ----------
        chunk : at least one byte
        after : what follows it, or nothing at the end of the text
        """
        quotes = np.empty(0, dtype=np.intp)
        if self.are_plain:
            text = np.frombuffer(chunk, dtype=np.uint8)
            quotes = np.flatnonzero(text == _QUOTE)
            opening, closing = quotes[self.count % 2 :: 2], quotes[1 - self.count % 2 :: 2]
            # The end of the text may stand after a quote as the end of a line does.
            before, last = np.where(opening > 0, text[opening - 1], self._before[0]), text.size - 1
            behind = np.where(closing < last, text[np.minimum(closing + 1, last)], (after[:1] or b"\n")[0])
            self.are_plain = bool(self._beside[before].all() and self._beside[behind].all())
            self.count += quotes.size
        else:
            self.count += chunk.count(b'"')
        self._before = chunk[-1:]
        return quotes if self.are_plain else quotes[:0]


def counted_quotes(stream: BinaryIO, separator: bytes) -> tuple[int, bool]:
    """The number of quotes in a stream, and whether they are plain.

    Parameters
    ----------
    stream : bytes of the file
    separator : one byte
    """
    quotes = Quotes(separator)
    chunk = stream.read(_CHUNK_BYTES)
    while chunk:
        after = stream.read(_CHUNK_BYTES)
        quotes.add(chunk, after)
        chunk = after
    return quotes.count, quotes.are_plain
