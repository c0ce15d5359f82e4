"""The rows of a CSV file, read block by block by pyarrow, and its quotes, which are checked before."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np

if TYPE_CHECKING:
    import pyarrow as pa

# Quotes in a CSV file, counted and checked at the speed at which the file is read.
#
# Python's own reader checks each cell by itself and takes about as long as all numbers of the file take to be read. Nearly
# every file has quotes of one form alone: around whole cells, doubled within them. That form is found by comparing each
# quote with the byte before or after it.

_CHUNK_BYTES = 2**20
_QUOTE = ord('"')


def counted_quotes(stream: BinaryIO, separator: bytes) -> tuple[int, bool]:
    """The number of quotes in a stream, and whether they are plain.

    Quotes are counted from 0. Each one with an even number must follow a separator, the end of a line or a quote, and each
    one with an odd number must precede one of these. Then a quote with an even number begins a cell or completes a pair. One
    with an odd number ends a cell or begins a pair. Where that is not certain, cells have to be read one by one.

    Parameters
    ----------
    stream : bytes of the file
    separator : one byte
    """
    beside = np.zeros(256, dtype=bool)
    beside[[*separator, *b'\r\n"']] = True
    count, are_plain, before, chunk = 0, True, b"\n", stream.read(_CHUNK_BYTES)
    while chunk:
        following = stream.read(_CHUNK_BYTES)
        # The end of the text may stand after a quote as the end of a line does.
        text = np.frombuffer(before + chunk + (following[:1] or b"\n"), dtype=np.uint8)
        places = np.flatnonzero(text[1:-1] == _QUOTE)
        opening, closing = places[count % 2 :: 2], places[1 - count % 2 :: 2]
        are_plain = are_plain and bool(beside[text[opening]].all() and beside[text[closing + 2]].all())
        count, before, chunk = count + places.size, chunk[-1:], following
    return count, are_plain


_BLOCK_BYTES = 2**20
"""How much pyarrow reads at once. What is made of it stays in the cache: with blocks of 8 MB reading keeps 100 MB more."""
_ROW_BYTES = 2**23
"""A row must be shorter than this."""


def csv_batches(
    opened: Callable[[], AbstractContextManager[BinaryIO]],
    separator: str,
    types: Mapping[str, pa.DataType],
    missing: Sequence[str] = ("",),
) -> Iterator[Any]:
    """All rows, as Arrow record batches in the order of the file.

    Parameters
    ----------
    opened : opens the bytes of the file
    separator : what stands between the cells
    types : Arrow types of the columns that are read, in order
    missing : cells that are missing where a number is declared

    Raises
    ------
    pyarrow.ArrowException
        If the file cannot be read. The message may hold cells.
    """
    import pyarrow as pa
    import pyarrow.csv as arrow_csv

    parse = arrow_csv.ParseOptions(newlines_in_values=True, delimiter=separator)
    convert = arrow_csv.ConvertOptions(column_types=types, include_columns=list(types), null_values=list(missing))
    done = 0
    for n_bytes in (_BLOCK_BYTES, _ROW_BYTES):
        passed = 0
        with opened() as stream:
            try:
                read = arrow_csv.ReadOptions(use_threads=False, block_size=n_bytes)
                for batch in arrow_csv.open_csv(_WholeEnds(stream), read, parse, convert):
                    if passed + batch.num_rows > done:
                        yield batch.slice(max(done - passed, 0))
                    passed += batch.num_rows
                    done = max(done, passed)
            except pa.ArrowInvalid:
                # A row may be longer than a block. The rows before it are read again, and passed over.
                if n_bytes == _ROW_BYTES:
                    raise
            else:
                return


class _WholeEnds(io.RawIOBase):
    """A stream none of whose blocks ends with CR, the first sign of CR LF. Blocks may be longer than was asked for."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream

    def readable(self) -> bool:
        return True

    def read(self, n_bytes: int = -1) -> bytes:
        parts = [self._stream.read(n_bytes)]
        while parts[-1].endswith(b"\r"):
            parts.append(self._stream.read(1))
        return b"".join(parts)
