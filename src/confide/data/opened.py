"""What `open_rows` gives: rows that lie elsewhere and that nobody has read yet."""

from __future__ import annotations

import importlib
import os
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from confide.data.arrays import MemorySource, most_in_sample
from confide.data.on_disk import BATCH_ROWS, FilePart, Kind, Stamp, changed, files_of
from confide.data.source import BlockwiseSum, RowSource, SummableRows
from confide.data.speed import Pass, Progress
from confide.data.streams import KeptRows, KeptSample, Part, Piece, PieceFile, Reading, StreamedSource, read_ahead
from confide.erm.row_sums import Totals
from confide.errors import FileError, InputError, ParameterError
from confide.features.cells import read_identities
from confide.features.encoder import RowsPerPerson
from confide.features.schema import NumberColumn, Schema
from confide.types import Indices, Weights


@dataclass(frozen=True, slots=True)
class CheckedRows:
    """Rows that were read once, cell by cell, and can be summed over.

    Attributes
    ----------
    source : the rows
    n_rows : how many were given, before those beyond a person's share were dropped
    """

    source: RowSource
    n_rows: int

    def part(self, positions: Indices) -> CheckedRows:
        """The rows at the positions, of a source that can be divided."""
        source: Any = self.source
        return CheckedRows(source.taken(positions), positions.size)


class OpenedRows(Protocol):
    """Raw rows with their labels that lie elsewhere."""

    @property
    def schema(self) -> Schema:
        """The public description of their columns, with a target."""

    @contextmanager
    def checked(self, reading: Reading, rows_per_person: RowsPerPerson) -> Iterator[CheckedRows]:
        """Read all rows once and check them; what was made for later passes is removed at the end.

        Raises
        ------
        InputError, FileError
            If a row cannot be used; without any value from it.
        """


@dataclass(frozen=True, slots=True)
class FileRows:
    """Rows of tables in files; `open_rows` makes it.

    Parameters
    ----------
    schema : the public description of their columns
    parts : the files, in order
    cache : folder of the file that keeps encoded rows between passes, "" for the system's, or None to read again
    progress : told how many rows were read, or None
    target : the column of numbers to be predicted, or None for the schema's labels
    """

    schema: Schema
    parts: tuple[FilePart, ...]
    cache: Path | str | None = None
    progress: Progress | None = None
    target: str | None = None

    def __repr__(self) -> str:
        return f"FileRows({len(self.parts)} file{'s'[: len(self.parts) != 1]}, {self.schema!r})"

    def tables(self, names: Sequence[str], n_rows: int = BATCH_ROWS) -> Iterator[Any]:
        """All rows, file after file; a file that others write to is refused."""
        for part in self.parts:
            part.stamp.check()
            yield from read_ahead(part.tables(names, n_rows))
            part.stamp.check()

    def count(self) -> int:
        """The number of rows, from reading one column."""
        for part in self.parts:
            part.check()
        name = self.schema.column_names[0]
        n_rows = sum(int(table.num_rows) for table in self.tables([name]))
        if n_rows == 0:
            raise self._empty()
        return n_rows

    def _empty(self) -> InputError:
        names = ", ".join(str(part.path) for part in self.parts[:3])
        return InputError(f"{names} has no rows below its names; at least one is needed.")

    @contextmanager
    def checked(self, reading: Reading, rows_per_person: RowsPerPerson) -> Iterator[CheckedRows]:
        for part in self.parts:
            part.check()
        rows: Part = self
        n_given = None
        if self.schema.person is not None:
            self.count()
            drawn, n_given = _rows_of_persons(self, self.schema.person, rows_per_person)
            rows = self if drawn is None else KeptRows(self, drawn)
        with ExitStack() as until_released:
            store = None
            if self.cache is not None:
                store = PieceFile(Path(self.cache) if self.cache else None)
                until_released.callback(store.close)
            n_rows, used = 0, frozenset[str]()
            passing = Pass("checking", self.progress)
            kept = KeptSample(most_in_sample(reading.n_features))
            for piece in reading.pieces(rows, refuse=True):
                n_rows, used = n_rows + piece.labels.size, used | piece.used
                kept.add(piece)
                if store is not None:
                    store.append(piece)
                passing.used(piece.labels.size)
            if n_rows == 0:
                raise self._empty()
            reading.refuse_unused(used)
            pieces = partial(_unrefusing, reading, rows) if store is None else store.pieces
            source = StreamedSource(pieces, reading, n_rows, kept, told=self.progress)
            yield CheckedRows(source, n_rows if n_given is None else n_given)


def _unrefusing(reading: Reading, rows: Part) -> Iterator[Piece]:
    """The pieces of a pass after the charge. A file that could be read before and cannot be now was changed."""
    pieces = reading.pieces(rows, refuse=False)
    while True:
        try:
            piece = next(pieces, None)
            failed = False
        except (InputError, FileError):
            failed = True
        if failed:
            raise changed("what holds the rows")
        if piece is None:
            return
        yield piece


def _rows_of_persons(rows: Part, person: str, rows_per_person: RowsPerPerson) -> tuple[Any, int]:
    """The positions of the rows that count, None for all, and the number of all. Takes memory for each row."""
    import pyarrow as pa

    columns = [table[person] for table in rows.tables([person], BATCH_ROWS)]
    if len({column.type for column in columns}) > 1:
        raise InputError(f'column "{person}": the files hold it in several types; write it in one.')
    chunks = [chunk for column in columns for chunk in getattr(column, "chunks", [column])]
    identities = read_identities(f'column "{person}"', pa.chunked_array(chunks))
    return rows_per_person.drawn(identities), identities.size


@dataclass(frozen=True, slots=True)
class ArrayRows:
    """Numeric rows and labels in NumPy files, mapped into memory; `open_rows` makes it.

    Parameters
    ----------
    rows : (n, d) memory map of float64 or float32
    labels : (n,)
    stamps : of the files
    """

    rows: Any
    labels: Any
    stamps: tuple[Stamp, ...]

    def __repr__(self) -> str:
        return f"ArrayRows({self.rows.shape[1]} columns)"


@dataclass(frozen=True, slots=True)
class StampedSource(SummableRows):
    """A `RowSource` whose rows lie in files: refuses a pass over files that changed.

    Parameters
    ----------
    source : the rows
    stamps : of the files
    """

    source: MemorySource
    stamps: tuple[Stamp, ...]

    @property
    def n_features(self) -> int:
        return self.source.n_features

    @property
    def n_rows(self) -> int:
        return self.source.n_rows

    def sample(self, n_rows: int) -> MemorySource:
        return self.source.sample(n_rows)

    def taken(self, positions: Indices) -> MemorySource:
        """The rows at the positions, in their order, copied."""
        taken = self.source.taken(positions)
        for stamp in self.stamps:
            stamp.check()
        return taken

    def sum_over_rows(self, row_sum: BlockwiseSum, weights: Weights) -> Totals:
        totals = self.source.sum_over_rows(row_sum, weights)
        for stamp in self.stamps:
            stamp.check()
        return totals


def open_rows(
    rows: Any,
    schema: Schema | str | os.PathLike[str] | None = None,
    *,
    labels: Any = None,
    target: str | None = None,
    cache: bool | str | os.PathLike[str] = False,
    progress: Progress | None = None,
    client: Any = None,
) -> FileRows | ArrayRows | Any:
    """Rows that do not fit into memory, or live on a cluster, for `fit`. Reads none of them.

    Parameters
    ----------
    rows : path of a Parquet, Arrow, Feather or CSV file, a pattern such as "data/*.parquet", or a list of paths, each file
        once; or the path of a NumPy file (.npy); or a Dask DataFrame or Array, or a Spark DataFrame
    schema : Schema, or the path of one in TOML
        Describes the columns, with a target. Not for .npy and Dask arrays. Of a file only its columns are read.
    labels : path of a NumPy file, or Dask array
        One label, or for a regressor one number, a row, where `rows` is an array.
    target : str or None
        For regressors: the column of the numbers to be predicted, which is none of the schema's. They are checked as `y` is,
        and clipped to the regressor's `target_bound`.
    cache : bool or path of a folder, default False
        True, or a folder, keeps encoded rows in a file for later passes: 8 bytes a number, 1 a category. They are private
        data on a disk. The file has no name, is its owner's alone, and vanishes with the fit, even a killed one (Linux
        and macOS).
    progress : callable or None
        Called as that of `confide.progress`, which does the same for all fits. Who sees how often rows are read learns the
        number of passes, which depends on them: keep it on the curator's screen.
    client : dask.distributed.Client or None
        Files are then read by its workers, which must see them under the same paths.

    Returns
    -------
    An object for the ``fit(rows)`` of every estimator but a search, and for `evaluate`, without y.

    Raises
    ------
    ParameterError, FileError, InputError

    Notes
    -----
    All rows are checked in one pass before a budget is charged. Later passes refuse nothing for what a row holds; a file
    that changes between passes is refused.

    Types of columns come from the schema (CSV) or from the files. With a column of persons, memory grows with the number of
    rows: it is known of each whose it is.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import confide
    >>> adult = confide.datasets.load_adult()
    >>> path = pathlib.Path(tempfile.mkdtemp(), "people.parquet")
    >>> adult.X_train.assign(income=adult.y_train).to_parquet(path)
    >>> rows = confide.open_rows(path, adult.schema)
    >>> model = confide.LogisticRegression(1.0, schema=adult.schema).fit(rows)
    >>> bool(model.score(adult.X_test, adult.y_test) > 0.8)
    True
    """
    if isinstance(schema, (str, os.PathLike)):
        schema = Schema.from_toml(Path(schema))
    if schema is not None and not isinstance(schema, Schema):
        raise ParameterError("schema must be a confide.Schema or the path of one in TOML.")
    if progress is not None and not callable(progress):
        raise ParameterError("progress must be a function of what is done and a number of rows, or None.")
    library = type(rows).__module__.partition(".")[0].removesuffix("_expr")
    is_npy = isinstance(rows, (str, os.PathLike)) and Path(rows).suffix.lower() == ".npy"
    asked = cache is not False or progress is not None or (client is not None and library != "dask")
    if asked and (library in ("dask", "pyspark") or is_npy):
        raise ParameterError("these rows take neither cache nor progress, and only those of Dask a client.")
    if is_npy or (library == "dask" and schema is None):
        if schema is not None or labels is None or target is not None:
            raise ParameterError("an array of numbers takes no schema, and its labels or targets are given as `labels`.")
        return _open_arrays(Path(rows), labels) if is_npy else _cluster("dask").rows_of_arrays(rows, labels, client)
    if labels is not None:
        raise ParameterError("labels are the schema's target; `labels` is for arrays.")
    if schema is None or (schema.target is None and target is None):
        raise ParameterError(
            "open_rows needs a schema with a target: it says what columns and labels mean. For a regressor name the column "
            "of its numbers as `target`."
        )
    if target is not None and (not isinstance(target, str) or target in (*schema.column_names, schema.person)):
        raise ParameterError("target must be the name of a column of numbers that the schema does not describe.")
    if library == "dask":
        return _cluster("dask").rows_of_frame(rows, schema, client, target)
    if library == "pyspark":
        return _cluster("spark").rows_of_frame(rows, schema, target)
    files = _open_files(rows, schema, cache, progress, target)
    return files if client is None else _cluster("dask").rows_of_files(files, client)


def _cluster(name: str) -> Any:
    """The module of an optional back-end, imported on use."""
    return importlib.import_module(f"confide.data.{name}")


def _open_files(
    paths: Any, schema: Schema, cache: bool | str | os.PathLike[str], progress: Progress | None, target: str | None
) -> FileRows:
    if isinstance(cache, bool):
        folder: Path | str | None = "" if cache else None
    else:
        folder = Path(cache)
        if not folder.is_dir():
            raise ParameterError("cache must be True, False or the path of a folder that exists.")
    parts = tuple(FilePart(Stamp.of(path), kinds_of(schema, target)) for path in files_of(paths))
    return FileRows(schema, parts, folder, progress, target)


def kinds_of(schema: Schema, target: str | None = None) -> dict[str, Kind]:
    """What a CSV file holds in each column of a schema, its target, or numbers in its place, and its person included."""
    kinds: dict[str, Kind] = {
        column.name: "number" if isinstance(column, NumberColumn) else "text" for column in schema.columns
    }
    if target is not None:
        kinds[target] = "number"
    elif schema.target is not None:
        kinds[schema.target.column] = "text"
    if schema.person is not None:
        kinds[schema.person] = "text"
    return kinds


def _open_arrays(rows: Path, labels: Any) -> ArrayRows:
    if not isinstance(labels, (str, os.PathLike)):
        raise ParameterError("labels must be the path of a NumPy file (.npy) with one label a row.")
    stamps = (Stamp.of(rows), Stamp.of(Path(labels)))
    X, y = (_mapped(stamp.path) for stamp in stamps)
    if X.dtype not in (np.dtype(np.float64), np.dtype(np.float32)) or X.ndim != 2:
        raise InputError(f"{rows} must hold an array (rows, features) of float64 or float32.")
    return ArrayRows(X, y, stamps)


def _mapped(path: Path) -> Any:
    try:
        # Without pickles, which could run code.
        return np.load(path, mmap_mode="r", allow_pickle=False)
    except (ValueError, EOFError, OSError):
        pass
    raise FileError(f"{path} is not a NumPy file (.npy) of numbers or text; objects are not read.")
