"""The rows of a CSV file, cut where rows end and read by several threads.

pyarrow reads a stream of CSV with one thread. Here the file is cut into pieces, each of which is read by itself. A line ends
a row exactly if an even number of quotes stands before its end, provided that all quotes are plain
(`confide.data.csv_files`). From where they are not plain, or where a row is very long, the rest of the file is left to
pyarrow's reader of streams.
"""

from __future__ import annotations

import codecs
import io
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from confide.threads import mapped_in_order

if TYPE_CHECKING:
    import pyarrow as pa

# Quotes in a CSV file, counted and checked at the speed at which the file is read.
#
# Python's own reader checks each cell by itself and takes about as long as all numbers of the file take to be read. Nearly
# every file has quotes of one form alone: around whole cells, doubled within them. That form is found by comparing each
# quote with the byte before or after it.

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


_PIECE_BYTES = 2**21
"""Least size of a piece. Each piece takes about .4 ms beside the time of its bytes."""
_BLOCK_BYTES = 2**20
"""How much of a piece pyarrow reads at once. What is made of it stays in the cache, and its memory is used again: with eight
times as much, reading took 1.2 to 2 times as long and 200 MB more.

Where a block ends with the first sign of CR LF, pyarrow drops the second one, also within a cell. What that cell holds would
then depend on the lengths of other rows, so no block ends there."""
_READ_BYTES = 2**17
"""How much is read at once from the file."""
_ROW_BYTES = 2**23
"""A row must be shorter than this."""
_MOST_THREADS = 4
"""So many threads read faster than rows can be used."""


@dataclass(frozen=True, slots=True)
class CsvForm:
    """What a CSV file looks like. It is public.

    Parameters
    ----------
    separator : what stands between the cells
    header : the names in the first line
    types : Arrow types of the columns that are read, in order
    missing : cells that are missing where a number is declared
    """

    separator: str
    header: Sequence[str]
    types: Mapping[str, pa.DataType]
    missing: Sequence[str] = ("",)


def csv_batches(opened: Callable[[], AbstractContextManager[BinaryIO]], form: CsvForm) -> Iterator[Any]:
    """All rows, as Arrow record batches in the order of the file.

    Parameters
    ----------
    opened : opens the bytes of the file, in which places can be sought
    form : see `CsvForm`

    Raises
    ------
    pyarrow.ArrowException
        If the file cannot be read. The message may hold cells.
    """
    import pyarrow as pa
    import pyarrow.csv as arrow_csv

    done, has_begun, used = 0, False, deque[bytearray]()

    def pieces(stream: BinaryIO) -> Iterator[tuple[memoryview, bool]]:
        nonlocal done, has_begun
        for piece in whole_rows(stream, form.separator.encode(), used):
            # pyarrow passes over empty lines in a file, and refuses them where there is nothing else. The first test looks
            # at few bytes, and copies no more.
            if any(bytes(part).strip(b"\r\n") for part in (piece[:100], piece)):
                yield piece, not has_begun
                has_begun = True
            done += len(piece)

    def read(piece: tuple[memoryview, bool]) -> Any:
        text, with_header = piece
        table = _read(text, form, with_header=with_header)
        # Arrow has copied what it keeps.
        buffer: Any = text.obj
        used.append(buffer)
        return table

    with opened() as stream:
        with closing(mapped_in_order(read, pieces(stream), min(_MOST_THREADS, pa.cpu_count()))) as tables:
            for table in tables:
                yield from table.to_batches()
        stream.seek(done)
        if stream.read(1):
            stream.seek(done)
            options = _options(form, with_header=not has_begun, n_bytes=_ROW_BYTES)
            yield from arrow_csv.open_csv(_WholeEnds(stream), **options)


def whole_rows(stream: BinaryIO, separator: bytes, used: deque[bytearray] | None = None) -> Iterator[memoryview]:
    """Pieces of a text that end where rows end, in order, up to the first quote that is not plain or a very long row.

    Parameters
    ----------
    stream : bytes of the file
    separator : one byte
    used : memory that may be written over. New pages for each piece would cost a third of the time of reading
    """
    quotes, used = Quotes(separator), deque() if used is None else used
    buffer, filled, end = bytearray(_PIECE_BYTES + _READ_BYTES), 0, 0
    after = stream.read(_READ_BYTES)
    while after:
        chunk, after = after, stream.read(_READ_BYTES)
        is_within = bool(quotes.count % 2)
        places = quotes.add(chunk, after)
        if not quotes.are_plain or filled > _ROW_BYTES:
            return
        if filled + len(chunk) > len(buffer):
            buffer = buffer + bytearray(len(buffer) + len(chunk))
        buffer[filled : filled + len(chunk)] = chunk
        ended = _end_of_rows(chunk, after, places, is_within=is_within)
        end, filled = filled + ended if ended else end, filled + len(chunk)
        if end and filled >= _PIECE_BYTES:
            begun = buffer[end:filled]
            yield memoryview(buffer)[:end]
            buffer = used.popleft() if used else bytearray(_PIECE_BYTES + _READ_BYTES)
            filled, end = len(begun), 0
            buffer[:filled] = begun
    if filled:
        yield memoryview(buffer)[:filled]


def _end_of_rows(chunk: bytes, after: bytes, quotes: Any, *, is_within: bool) -> int:
    """How much of the chunk belongs to rows that end in it, up to one after which a piece may begin.

    No piece begins with a byte-order mark (U+FEFF). Readers take it for the mark of a whole file and drop it, so what a row
    holds that begins with it would depend on the lengths of the rows before.

    Parameters
    ----------
    chunk : bytes
    after : what follows it
    quotes : the places of the quotes in it
    is_within : whether it begins within a cell in quotes
    """
    place = len(chunk)
    while (place := chunk.rfind(b"\n", 0, place)) >= 0:
        n_before = int(np.searchsorted(quotes, place))
        if (n_before + is_within) % 2 == 0:
            begun = (chunk[place + 1 : place + 4] + after[:3])[:3]
            if not codecs.BOM_UTF8.startswith(begun):
                return place + 1
        elif n_before == 0:
            break
        else:
            # No row ends within this cell.
            place = int(quotes[n_before - 1])
    return 0


def _options(form: CsvForm, *, with_header: bool, n_bytes: int) -> dict[str, Any]:
    import pyarrow.csv as arrow_csv

    names = None if with_header else list(form.header)
    return {
        "read_options": arrow_csv.ReadOptions(use_threads=False, block_size=n_bytes, column_names=names),
        "parse_options": arrow_csv.ParseOptions(newlines_in_values=True, delimiter=form.separator),
        "convert_options": arrow_csv.ConvertOptions(
            column_types=form.types, include_columns=list(form.types), null_values=list(form.missing)
        ),
    }


def _read(piece: memoryview, form: CsvForm, *, with_header: bool) -> Any:
    import pyarrow as pa
    import pyarrow.csv as arrow_csv

    def read(n_bytes: int) -> Any:
        return arrow_csv.read_csv(pa.BufferReader(piece), **_options(form, with_header=with_header, n_bytes=n_bytes))

    ends = range(_BLOCK_BYTES, len(piece), _BLOCK_BYTES)
    if not any(bytes(piece[end - 1 : end + 1]) == b"\r\n" for end in ends):
        # A row may be longer than a block.
        with suppress(pa.ArrowInvalid):
            return read(_BLOCK_BYTES)
    return read(len(piece) + 1)


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
