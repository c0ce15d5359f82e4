"""Rows that come once, kept in a private temporary file for as long as they are used.

A fit reads its rows many times, and they must be the same each time. So whatever gives rows a piece at a time (an Arrow
stream, a lazy frame, a query, a sheet) is written once to a file, and from then on it is a file as any other. Only its owner
can read the file. It is removed when nobody uses it any more and when the program ends, also by control-C. What a killed
program left behind is removed by the next one.

Types are those that the source declares. Where it declares none, the file is CSV, and the schema declares them.
"""

from __future__ import annotations

import csv
import io
import os
import shutil
import tempfile
import time
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import Any, BinaryIO, cast

from confide.data.files import BATCH_ROWS
from confide.errors import ConfideError, FileError, InputError, imported, wording
from confide.threads import IS_WINDOWS, lock

_PREFIX = "confide-spooled-"
_LOCK = ".lock"
"""The file of a folder that is locked for as long as the folder is used."""
_SECONDS_TO_LOCK = 60
"""A folder that is older than this and is not locked was left behind by a program that was killed."""


class SpooledFile(type(Path())):  # type: ignore[misc]  # the class of paths of this system
    """The path of a private temporary file. The file is removed when this object is no longer used.

    In messages it has the name of what the rows came from.
    """

    source = ""

    def __format__(self, _: str) -> str:
        return self.source or str(self)


def spooled(name: str, source: str, write: Callable[[BinaryIO], object]) -> SpooledFile:
    """A new private file.

    Parameters
    ----------
    name : its name, which ends as its kind demands. Folders of the name are made
    source : what messages call it. It holds no secret
    write : writes its bytes to a stream

    Raises
    ------
    FileError
        If it cannot be written.
    """
    try:
        _remove_what_was_left()
        folder = tempfile.mkdtemp(prefix=_PREFIX)
        handle = os.open(f"{folder}/{_LOCK}", os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
        path = SpooledFile(folder, name)
        path.source = source
        remove = weakref.finalize(path, _remove, Path(folder), handle, os.getpid())
        try:
            lock(handle)
            path.parent.mkdir(parents=True, exist_ok=True)
            with open(path, "xb", opener=partial(os.open, mode=0o600)) as stream:
                write(stream)
        except BaseException:
            remove()
            raise
        return path
    except OSError as error:
        failed = error.strerror
    # Raised outside the handler, so that the original error is not attached.
    raise FileError(wording("no room for temporary files", source=source, folder=tempfile.gettempdir(), failed=failed))


def _remove(folder: Path, handle: int, owner: int) -> None:
    """Let go of a folder, and remove it. A process that was made as a copy of its owner leaves the folder to it."""
    if os.getpid() == owner:
        os.close(handle)  # Windows removes no file that is open
        shutil.rmtree(folder, ignore_errors=True)


def _remove_what_was_left() -> None:
    """Remove the folders of programs that ended without doing so. The system unlocks a folder when its program ends."""
    for folder in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"):
        with suppress(OSError):
            status = folder.lstat()
            if status.st_uid != getattr(os, "getuid", int)() or time.time() - status.st_mtime < _SECONDS_TO_LOCK:
                continue
            with (folder / _LOCK).open("ab") as opened:
                lock(opened.fileno())
            shutil.rmtree(folder, ignore_errors=True)  # which follows no link


def given_by(source: str, items: Callable[[], Iterable[Any]]) -> Iterator[Any]:
    """What a source gives. An error of the source becomes a refusal, which does not quote it: it may hold cells.

    Parameters
    ----------
    source : what messages call it
    items : begins to read it
    """
    given: Iterator[Any] | None = None
    while True:
        failed = ""
        try:
            given = iter(items()) if given is None else given
            item = next(given, None)
        except ConfideError:
            raise
        except Exception as error:  # noqa: BLE001 - sources raise errors of their own
            kind = type(getattr(error, "orig", None) or error)  # SQLAlchemy wraps what the driver raised
            failed = "a quote is not closed, or text follows it" if kind is csv.Error else kind.__name__
            if kind.__name__ == "ResourceInUseException":  # of DuckDB and ADBC
                failed = wording("another result of a connection")
            if issubclass(kind, UnicodeError):
                failed = wording("another encoding")
        # Raised outside the handler, so that the original error is not attached.
        if failed:
            raise InputError(f"{source} could not be read to its end ({failed}). Correct it, and read it again.")
        if item is None:
            return
        yield item


def spooled_cells(name: str, source: str, rows: Callable[[], Iterable[Sequence[Any]]]) -> SpooledFile:
    """A private CSV file of rows of cells, of which the first are the names of the columns.

    Parameters
    ----------
    name, source : as in `spooled`; the name ends in .csv
    rows : begins to read them
    """

    def write(stream: BinaryIO) -> None:
        text = io.TextIOWrapper(stream, encoding="utf-8", newline="")
        # A cell that holds either sign of the end of a line is put in quotes.
        csv.writer(text, lineterminator="\r\n").writerows(given_by(source, rows))
        text.detach()  # which writes what is left

    return spooled(name, source, write)


def pieces_of(rows: Any) -> Callable[[], Iterable[Any]] | None:
    """What begins to read rows that come a piece at a time, as frames or Arrow batches; None for rows of another form.

    These are iterators of frames or batches (also those that pandas makes of a file in chunks), Arrow streams and data sets,
    relations and results of DuckDB, lazy frames of Polars, and Dask DataFrames.
    """
    kind = type(rows)
    if isinstance(rows, Iterator):
        return lambda: rows
    for begin in ("to_arrow_reader", "fetch_record_batch"):  # DuckDB
        if hasattr(kind, begin):
            return lambda: getattr(rows, begin)(BATCH_ROWS)
    if kind.__module__.startswith("polars") and hasattr(kind, "collect"):
        if not hasattr(kind, "collect_batches"):
            raise InputError("this Polars is too old to give a lazy frame in pieces; update it, or call .collect() first.")
        return lambda: rows.collect_batches(chunk_size=BATCH_ROWS)
    if is_dask_frame(rows):
        return lambda: (partition.compute() for partition in rows.partitions)
    if hasattr(kind, "to_batches") and not hasattr(kind, "shape"):
        return lambda: rows.to_batches()
    if hasattr(kind, "__arrow_c_stream__") and not hasattr(kind, "shape"):
        import pyarrow as pa

        return lambda: pa.RecordBatchReader.from_stream(rows)
    return None


def is_dask_frame(rows: object) -> bool:
    """Whether these are rows of a Dask DataFrame."""
    return type(rows).__module__.startswith("dask") and hasattr(rows, "partitions") and hasattr(rows, "columns")


def spooled_pieces(rows: Any) -> tuple[SpooledFile, ...]:
    """Private Arrow files of rows that `pieces_of` knows: one for each run of pieces whose columns have the same types.

    Raises
    ------
    InputError
        If there are no rows, or they cannot be read. The message quotes nothing of them.
    """
    import pyarrow as pa

    begin, source = cast("Callable[[], Iterable[Any]]", pieces_of(rows)), f"the {type(rows).__name__}"
    tables = given_by(source, lambda: map(_plain_table, begin()))
    runs = groupby((table for table in tables if table.num_rows), key=lambda table: table.schema)
    files = tuple(spooled("rows.feather", source, partial(_write_tables, schema, run)) for schema, run in runs)
    if not files:
        raise InputError(f"{source} has no rows; at least one is needed.")
    # What the source needed goes back to the system, as a fit needs about as much.
    pa.default_memory_pool().release_unused()
    if type(rows).__name__ == "DuckDBPyRelation":
        _given_back(rows)
    return files


def _given_back(relation: Any) -> None:
    """Have DuckDB give back what its threads kept of reading, 110 MB each: it does where their number changes.

    At the end they are as many as before. Where the settings of the database are locked, nothing happens.
    """
    with suppress(Exception):
        ((threads,),) = relation.query("read_by_confide", "SELECT current_setting('threads')").fetchall()
        try:
            relation.query("read_by_confide", "SET threads = 1").fetchall()
        finally:
            relation.query("read_by_confide", f"SET threads = {threads}").fetchall()


def _plain_table(piece: Any) -> Any:
    """A frame or a batch as an Arrow table without metadata, in which no column is coded: codes may differ among pieces."""
    import narwhals.stable.v1 as nw
    import pyarrow as pa

    if isinstance(piece, pa.RecordBatch):
        table = pa.Table.from_batches([piece])
    else:
        # The index of pandas is no column.
        plain = piece.reset_index(drop=True) if hasattr(piece, "reset_index") else piece
        table = nw.from_native(plain, eager_only=True).to_arrow()
    types = [field.type.value_type if pa.types.is_dictionary(field.type) else field.type for field in table.schema]
    return table.cast(pa.schema(list(zip(table.column_names, types, strict=True))))


def _write_tables(schema: Any, tables: Iterable[Any], stream: BinaryIO) -> None:
    import pyarrow as pa

    with pa.ipc.new_file(stream, schema) as writer:
        for table in tables:
            writer.write_table(table, max_chunksize=BATCH_ROWS)


def as_frame(rows: Any) -> Any:
    """Rows that come in pieces as one Arrow table, which is read from a private file when it is used; others as they are."""
    if pieces_of(rows) is None:
        return rows
    pa: Any = imported("pyarrow", "a table in pieces", "files")
    # The file is removed here, and what it holds vanishes with the table. Windows removes no file that is mapped.
    opened = pa.OSFile if IS_WINDOWS else pa.memory_map
    tables = [pa.ipc.open_file(opened(os.fspath(path))).read_all() for path in spooled_pieces(rows)]
    return pa.concat_tables(tables, promote_options="permissive")
