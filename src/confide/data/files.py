"""Tables in files, read in pieces, with types that are declared: no type is learned from the rows.

In a CSV file, declared numbers are read as float64 and everything else as text. If types were inferred, one row could change
how all others are read. Parquet and Arrow files hold the types of their columns. What a cell means is decided later
(`confide.features.table`). No code is ever read from a file: there is no pickle here.

pyarrow quotes cells in its messages, so its messages are never passed on.
"""

from __future__ import annotations

import csv
import gzip
import io
import os
import re
import sys
import zlib
from collections import deque
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from glob import glob
from pathlib import Path
from typing import Any, BinaryIO, Literal, TypeAlias, TypeVar, cast
from urllib.parse import unquote

from confide.data.csv_files import counted_quotes, csv_batches
from confide.errors import FileError, InputError, wording
from confide.features.canonical_labels import MISSING_WORDS
from confide.features.cells import NOT_NUMBERS, looks_like_number, not_numbers, number_in
from confide.features.toml_form import refuse_address
from confide.known_words import listed, listed_absent

Kind: TypeAlias = Literal["number", "text"]

Answer = TypeVar("Answer")
READABLE = (".csv", ".tsv", ".csv.gz", ".tsv.gz", ".parquet", ".feather", ".arrow")
WRITABLE = (".csv", ".parquet", ".feather", ".arrow")
SEPARATORS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "vertical bars"}
"""What may stand between the cells of a CSV file, and its name."""
CSV_MISSING = tuple(f"{start}{word}{end}" for word in ("", *MISSING_WORDS) for start in ("", " ") for end in ("", " "))
"""Cells of a CSV file that are missing where a number is declared: words with at most one blank on each side."""
_QUOTES = '{}: a quote (") is not closed. Close it; if it belongs to a cell, write "" for it and put the cell in quotes.'
_NO_VALUE = "__HIVE_DEFAULT_PARTITION__"
"""What the name of a folder states for rows in which the cell is missing."""
BATCH_ROWS = 2**16
_PARQUET_BUFFER = 2**16
"""Bytes of the buffer of each column. It stays in the cache."""
_MOST_BATCH_ROWS = 2**15
"""A Parquet file gives at most so many rows at once. Arrow keeps the memory of batches for the next ones. With 84,000 rows
of 50 numbers it kept 240 MB in place of 80, and read no faster."""


@dataclass(frozen=True, slots=True)
class Stamp:
    """The size, time and identity of a file. They show whether the file was changed.

    The path is absolute, so that another working folder, of a worker or of the program later on, does not name another file.
    """

    path: Path
    size: int
    modified: int
    inode: int

    @classmethod
    def of(cls, path: Path) -> Stamp:
        """The stamp of a file as it is now."""
        refuse_address(path)
        try:
            status = path.stat()
        except OSError as error:
            raise FileError(f"cannot read {path}: {error.strerror}.") from None
        return cls(path.absolute(), status.st_size, status.st_mtime_ns, status.st_ino)

    def check(self) -> None:
        """Raise FileError if the file is no longer the one that was stamped."""
        same = False
        with suppress(FileError):
            same = self == Stamp.of(self.path)
        if not same:
            raise changed(self.path)


def changed(what: object) -> FileError:
    """The error for rows that somebody wrote to while they were read. It says nothing of what the rows hold."""
    return FileError(wording("file changed while read", what=what))


@dataclass(frozen=True, slots=True)
class FilePart:
    """The rows of one file, or of some of its row groups. It is small and picklable, because it holds no row.

    Parameters
    ----------
    stamp : the file, as it was when it was opened
    kinds : the columns that may be read, and what a CSV file holds in them
    row_groups : the first row group of a Parquet file (record batch of an Arrow file), and the one after the last; None for
        all
    """

    stamp: Stamp
    kinds: Mapping[str, Kind]
    row_groups: tuple[int, int] | None = None

    @property
    def path(self) -> Path:
        """The file."""
        return self.stamp.path

    def tables(self, names: Sequence[str], n_rows: int = BATCH_ROWS) -> Iterator[Any]:
        """Record batches with the named columns, in the order of the file; from Parquet at most `n_rows` at a time."""
        kind = suffix_of(self.path)
        refusal: Callable[[str], Exception] = partial(_damaged, self.path)
        wanted = self.held(names, self.names)
        if kind == ".csv":
            batches, refusal = self._csv(wanted), partial(csv_refusal, self.path, csv_types(self.kinds))
        elif kind == ".parquet":
            batches = self._parquet(wanted, n_rows)
        else:
            batches = self._arrow(wanted)
        while (batch := attempt(lambda: next(batches, None), refusal)) is not None:
            yield batch if wanted == list(names) else self.with_stated(batch, names, wanted)

    def held(self, names: Sequence[str], present: Callable[[], Sequence[str]]) -> list[str]:
        """Which columns of these are read from the file itself, of those that it has, and not stated by its folders."""
        stated = stated_by_folders(self.path)
        in_file = present() if stated else names
        # A batch without columns would not say how many rows it has.
        return [name for name in names if name not in stated or name in in_file] or list(in_file[:1])

    def with_stated(self, batch: Any, names: Sequence[str], held: Sequence[str]) -> Any:
        """A batch of columns that the file holds with those that folders state, each of which has one value."""
        import pyarrow as pa

        columns, stated = [], stated_by_folders(self.path)
        for name in names:
            if name in held:
                columns.append(batch.column(name))
                continue
            value, is_number = stated[name], self.kinds.get(name) == "number"
            cell = pa.scalar(number_in(value), pa.float64()) if is_number else pa.scalar(value, pa.string())
            columns.append(pa.repeat(cell, batch.num_rows))
        return pa.RecordBatch.from_arrays(columns, list(names))

    def names(self) -> list[str]:
        """The names of the columns in the file itself."""
        is_csv = suffix_of(self.path) == ".csv"
        return header_of(self.path, self.kinds) if is_csv else list(arrow_schema(self.path).names)

    def n_groups(self) -> int:
        """The number of row groups or record batches, which can be read separately; 1 for a CSV file."""
        return 1 if suffix_of(self.path) == ".csv" else _facts_of(self.path)[1]

    def check(self, unread: Collection[str] = (), roles: Mapping[str, str | None] | None = None) -> None:
        """Refuse a file that lacks columns, or is not of the kind that its name says, before a row is read.

        Parameters
        ----------
        unread : columns that may be missing, because they are not read this time
        roles : as in `check_names`

        Raises
        ------
        FileError, InputError
            The message is one line, and the only columns it names are among `kinds`. Other names may be cells, if the file
            lacks a header line.
        """
        names, stated = self.names(), stated_by_folders(self.path)
        wanted = [name for name in self.kinds if name not in unread]
        check_names(self.path, [*names, *(stated.keys() - set(names))], wanted, roles)
        for name, value in stated.items():
            if name not in names and self.kinds.get(name) == "number" and number_in(value) is None:
                raise InputError(f'column "{name}", which the names of folders state, holds {NOT_NUMBERS}')

    def _parquet(self, names: list[str], n_rows: int) -> Iterator[Any]:
        import pyarrow as pa
        import pyarrow.parquet as parquet

        with pa.OSFile(os.fspath(self.path)) as stream:
            # Without buffering in advance, a row group is decoded while it is used, and need not fit into memory.
            file = parquet.ParquetFile(stream, pre_buffer=False, buffer_size=_PARQUET_BUFFER)
            groups = None if self.row_groups is None else list(range(*self.row_groups))
            # Waking a thread for each column takes a quarter of the time of reading. One or two processors do not win it
            # back.
            several = pa.cpu_count() > 2
            size = min(n_rows, _MOST_BATCH_ROWS)
            yield from file.iter_batches(size, columns=names, row_groups=groups, use_threads=several)

    def _arrow(self, names: list[str]) -> Iterator[Any]:
        import pyarrow as pa

        # A private file is read through once after the other, and pages of a mapped one would stay in memory meanwhile.
        with (pa.OSFile if hasattr(self.path, "source") else pa.memory_map)(os.fspath(self.path)) as stream:
            file = pa.ipc.open_file(stream)
            for position in range(*(self.row_groups or (0, file.num_record_batches))):
                batch = file.get_batch(position).select(names)
                # Otherwise pyarrow would follow the lengths and positions in a damaged file without checking them.
                batch.validate(full=True)
                yield batch

    def _csv(self, names: list[str]) -> Iterator[Any]:
        separator = separator_of(self.path, self.kinds)
        types = csv_types({name: self.kinds[name] for name in names})
        return csv_batches(partial(opened, self.path), separator, types, CSV_MISSING)


def stated_by_folders(path: Path) -> dict[str, str | None]:
    """The columns that the folders of a partition state, as in year=2024/month=01/part.parquet; None for a missing cell."""
    stated = (part.partition("=") for part in path.parent.parts if part.find("=") > 0)
    return {unquote(name): None if value == _NO_VALUE else unquote(value) for name, _, value in stated}


def arrow_schema(path: Path) -> Any:
    """What a Parquet, Feather or Arrow file says of its columns, as an Arrow schema.

    Raises
    ------
    FileError
        If the file cannot be read.
    """
    return _facts_of(path)[0]


def _facts_of(path: Path) -> tuple[Any, int]:
    """The Arrow schema of a file, and its number of row groups or record batches."""
    import pyarrow as pa
    import pyarrow.parquet as parquet

    def read() -> tuple[Any, int]:
        if suffix_of(path) == ".parquet":
            of_parquet = parquet.ParquetFile(stream)
            return of_parquet.schema.to_arrow_schema(), int(of_parquet.metadata.num_row_groups)
        of_arrow = pa.ipc.open_file(stream)
        return of_arrow.schema, int(of_arrow.num_record_batches)

    with opened(path) as stream:
        return attempt(read, partial(_damaged, path))


def _damaged(path: Path, _: str) -> FileError:
    return FileError(f"{path} is damaged, or is not a file of the kind that its name says; get a fresh copy.")


def attempt(call: Callable[[], Answer], refusal: Callable[[str], Exception]) -> Answer:
    """What the call gives.

    An error of pyarrow, or of text that is not UTF-8, becomes a refusal, which must not quote it: it may hold cells.

    Parameters
    ----------
    call : what to do
    refusal : the error to raise, made from the text of pyarrow's error
    """
    import pyarrow as pa

    try:
        return call()
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        complaint = str(error)
    # Raised outside the handler, so that the original error is not attached.
    raise refusal(complaint)


def files_named(text: str) -> tuple[Path, ...]:
    """The files that a path or a pattern names, of whatever kind.

    Raises
    ------
    FileError
        If no file matches a pattern. A file that is named by itself need not exist.
    """
    refuse_address(text)
    is_pattern = isinstance(text, str) and any(letter in text for letter in "*?[") and not Path(text).exists()
    if not is_pattern:
        return (Path(text),)
    # Path.glob does not take a pattern that begins at the root.
    paths = tuple(Path(name) for name in sorted(glob(text)))  # noqa: PTH207
    if not paths:
        raise FileError(f"no file matches {text}; give the path of a table, a pattern or a list of paths.")
    return paths


def csv_types(kinds: Mapping[str, Kind]) -> dict[str, Any]:
    """Arrow types for columns of a CSV file."""
    import pyarrow as pa

    text = pa.dictionary(pa.int32(), pa.string())
    return {name: pa.float64() if kind == "number" else text for name, kind in kinds.items()}


def csv_refusal(path: Path, types: Mapping[str, Any], complaint: str) -> Exception:
    """The error for a CSV file that pyarrow cannot read. The message holds no cell.

    Parameters
    ----------
    path : the file
    types : Arrow types of its columns
    complaint : the text of pyarrow's error
    """
    import pyarrow as pa

    # Only the kind of the complaint, the number of a column and whether there is a date or a comma are used; the rest may be
    # data.
    if re.match(r"CSV parse error: (Row #[0-9]+: )?Expected [0-9]+ columns, got [0-9]+", complaint):
        return InputError(f"{path}: some rows have more or fewer cells than the first line has names; correct them.")
    match = re.match(r"In CSV column #([0-9]+): ", complaint)
    header = header_of(path, types)
    name = header[int(match[1])] if match and int(match[1]) < len(header) else None
    if name is not None and types.get(name) == pa.float64():
        given = complaint.split("'", 1)[1:]  # what pyarrow quotes
        return InputError(f'{path}: column "{name}" holds {not_numbers(given)}')
    return FileError(wording("file cannot be read as CSV", path=path))


def suffix_of(path: Path) -> str:
    """The kind of a table, as the end of its name says: ".csv" for all text with separators, packed or not."""
    refuse_address(path)
    name = path.name.lower()
    suffix = next((ending for ending in READABLE if name.endswith(ending)), None)
    if suffix is None:
        raise FileError(f"{path}: the name of a table must end in {listed(READABLE)}.")
    return ".csv" if suffix in READABLE[:4] else suffix


def separator_of(path: Path, wanted: Collection[str] = ()) -> str:
    """What stands between the cells of a CSV file. It is decided from the first line alone, which holds names.

    Parameters
    ----------
    path : the file; in one that ends in .tsv or .tsv.gz tabs stand between cells
    wanted : names of columns. The first separator that makes all of them columns is taken, and otherwise the one that makes
        most columns; commas come first
    """
    if path.name.lower().endswith((".tsv", ".tsv.gz")):
        return "\t"
    return best_separator({separator: _names_in(path, separator) for separator in SEPARATORS}, wanted)


def best_separator(names: Mapping[str, Sequence[str]], wanted: Collection[str]) -> str:
    """The first separator that makes all wanted names columns, and otherwise the one that makes most columns."""
    return max(names, key=lambda separator: (bool(wanted) and set(wanted) <= set(names[separator]), len(names[separator])))


def header_of(path: Path, wanted: Collection[str] = ()) -> list[str]:
    """The names in the first line of a CSV file, after checks that pyarrow does not make.

    Parameters
    ----------
    path, wanted : as in `separator_of`
    """
    separator = separator_of(path, wanted)
    with opened(path) as stream:
        n_quotes, plain = counted_quotes(stream, separator.encode())
    if n_quotes % 2:
        # pyarrow would read the rest of the file as one cell.
        raise InputError(_QUOTES.format(path))
    if not plain:
        # pyarrow would read several rows as one where text stands between a closing quote and the next separator.
        csv.field_size_limit(sys.maxsize)
        wrong = True
        with opened(path) as stream, suppress(csv.Error):
            lines = io.TextIOWrapper(stream, encoding="utf-8-sig", errors="replace", newline="")
            deque(csv.reader(lines, delimiter=separator, strict=True), maxlen=0)
            wrong = False
        if wrong:
            raise InputError(_QUOTES.format(path))
    names = _names_in(path, separator)
    if not names:
        raise FileError(f"{path} is empty or is not text; its first line must hold the names of the columns.")
    return names


def _names_in(path: Path, separator: str) -> list[str]:
    """The names in the first line, if this separator stands between them; none if that line cannot be read."""
    with suppress(csv.Error), opened(path) as stream:
        # Rows may follow in the same block; pyarrow checks later whether they are UTF-8.
        lines = io.TextIOWrapper(stream, encoding="utf-8-sig", errors="replace", newline="")
        return next((row for row in csv.reader(lines, delimiter=separator) if row), [])
    return []


_FORM = f" {wording('form of a CSV file')}"


def check_names(
    path: Path, present: Collection[str], wanted: Collection[str], roles: Mapping[str, str | None] | None = None
) -> None:
    """Refuse a file that lacks a wanted column or has several of one name. Other names are not shown.

    `roles` says by words such as "is the exposure" what columns beside those of the model are for.
    """
    absent = [name for name in wanted if name not in present]
    is_csv = suffix_of(path) == ".csv"
    if absent and is_csv and any(looks_like_number(name) for name in present):
        raise InputError(wording("first line looks like data", path=path, columns=listed(absent)))
    if absent:
        what = "".join(f' "{name}" {role}.' for role, name in (roles or {}).items() if name in absent)
        form = _FORM * (is_csv and len(absent) == len(wanted))
        raise InputError(f"{path} lacks the columns {listed_absent(absent, present)}; add them.{what}{form}")
    repeated = [name for name in wanted if list(present).count(name) > 1]
    if repeated:
        raise InputError(f"{path} has more than one column of the name {listed(repeated)}; keep one column of each name.")


@contextmanager
def opened(path: Path) -> Iterator[BinaryIO]:
    """A file opened for reading, unpacked if its name ends in .gz; an error says only why it cannot be read."""
    try:
        stream = path.open("rb")
    except OSError as error:
        raise FileError(f"cannot read {path}: {error.strerror}.") from None
    with stream:
        if path.suffix.lower() != ".gz":
            yield stream
            return
        try:
            with gzip.open(stream, "rb") as unpacked:
                yield cast(BinaryIO, unpacked)
        except (EOFError, zlib.error, gzip.BadGzipFile):
            damaged = True
        else:
            damaged = False
    if damaged:
        raise FileError(f"{path} is damaged, or is not a file that gzip made; get a fresh copy.")
