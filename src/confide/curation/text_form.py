"""How a table of text is written: its encoding, its separator, and whether it is compressed. Found from bytes, not asked.

A decoded cell is never shown here.
"""

from __future__ import annotations

import codecs
import csv
import io
import os
import sys
from collections.abc import Collection, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from confide.data.on_disk import SEPARATORS, opened
from confide.errors import FileError

TEXT_ENDINGS = (".csv", ".tsv", ".csv.gz", ".tsv.gz")
"""Endings of the names of tables of text."""
ENCODING_NAMES = {
    "utf-8": "UTF-8",
    "utf-8-sig": "UTF-8",
    "utf-16": "UTF-16",
    "utf-16-le": "UTF-16",
    "utf-16-be": "UTF-16",
    "latin-1": "Latin-1 (or Windows-1252)",
}
_FIRST_BYTES = 2**20
"""Within so many bytes the first line must end."""
_CHUNK = 2**20


@dataclass(frozen=True, slots=True)
class TextForm:
    """How a table of text is written.

    Parameters
    ----------
    encoding : a key of `ENCODING_NAMES`
    separator : what stands between cells, a key of `SEPARATORS`
    names : the cells of the first line that is not blank
    """

    encoding: str
    separator: str
    names: tuple[str, ...]


def is_text_table(path: Path) -> bool:
    """Whether the name of a file says that it is a table of text."""
    return path.name.lower().endswith(TEXT_ENDINGS)


def form_of(path: Path, wanted: Collection[str] = (), *, whole: bool) -> TextForm:
    """How a table of text is written. The separator is the one that a fit finds (`confide.data.on_disk.separator_of`).

    Parameters
    ----------
    path : the file
    wanted : names of columns that decide between separators
    whole : whether all bytes are read to see whether they are UTF-8; otherwise the first line alone decides

    Raises
    ------
    FileError
        If the file cannot be read, is damaged, or begins with no text.
    """
    with opened(path) as stream:
        first = stream.read(_FIRST_BYTES)
        encoding = _marked_encoding(first)
        if encoding is None:
            seen = _chunks(first, stream) if whole else iter([first.partition(b"\n")[0]])
            encoding = "utf-8" if _is_utf8(seen) else "latin-1"
    text = first.decode(encoding, errors="replace")
    only_tabs = path.name.lower().endswith((".tsv", ".tsv.gz"))
    rows = {separator: _first_row(text, separator) for separator in (["\t"] if only_tabs else SEPARATORS)}
    separator = max(rows, key=lambda each: (bool(wanted) and set(wanted) <= set(rows[each]), len(rows[each])))
    if not rows[separator]:
        raise FileError(f"{path} is empty or is not text; its first line must hold the names of the columns.")
    return TextForm(encoding, separator, tuple(rows[separator]))


def _chunks(first: bytes, stream: BinaryIO) -> Iterator[bytes]:
    yield first
    while chunk := stream.read(_CHUNK):
        yield chunk


def _marked_encoding(first: bytes) -> str | None:
    """The encoding that a mark at the beginning, or zero bytes, give away."""
    if first.startswith(codecs.BOM_UTF8):
        return "utf-8-sig"
    if first.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "utf-16"
    if b"\0" in first[:1000]:
        # Text of Latin letters in UTF-16 has a zero byte beside each letter.
        return "utf-16-be" if first[:1] == b"\0" else "utf-16-le"
    return None


def _is_utf8(chunks: Iterator[bytes]) -> bool:
    decoder = codecs.getincrementaldecoder("utf-8")()
    try:
        for chunk in chunks:
            decoder.decode(chunk)
        decoder.decode(b"", final=True)
    except UnicodeDecodeError:
        return False
    return True


def _first_row(text: str, separator: str) -> list[str]:
    """The cells of the first line that is not blank; nothing if it is not text."""
    csv.field_size_limit(sys.maxsize)
    with suppress(csv.Error):
        return next((row for row in csv.reader(io.StringIO(text, newline=""), delimiter=separator) if row), [])
    return []


def text_endings() -> str:
    """The endings of tables of text, for a sentence."""
    return ", ".join(TEXT_ENDINGS)


def stem_of(path: str | os.PathLike[str]) -> str:
    """The name of a table without its folder and its endings: "people" for "data/people.csv.gz"."""
    name = Path(path).name
    return name.removesuffix(".gz").rpartition(".")[0] or name
