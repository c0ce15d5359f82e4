"""`open_rows`: rows that lie in files or on a cluster, described before any of them is read."""

from __future__ import annotations

import importlib
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from confide.data.file_rows import ArrayRows, FileRows
from confide.data.on_disk import FilePart, Kind, Stamp, files_of
from confide.data.opened_rows import OpenedRows
from confide.data.passes import Progress
from confide.errors import FileError, InputError, ParameterError
from confide.features.columns import NumberColumn
from confide.features.schema import Schema


def open_rows(
    rows: Any,
    schema: Schema | str | os.PathLike[str] | None = None,
    *,
    labels: Any = None,
    target: str | None = None,
    cache: bool | str | os.PathLike[str] = False,
    progress: Progress | None = None,
    client: Any = None,
) -> OpenedRows | ArrayRows:
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
    described = _schema_of(schema)
    if progress is not None and not callable(progress):
        raise ParameterError("progress must be a function of what is done and a number of rows, or None.")
    options = _Options(described, labels, target, cache, progress, client)
    library = type(rows).__module__.partition(".")[0].removesuffix("_expr")
    if library == "dask":
        return _open_dask(rows, options)
    if library == "pyspark":
        return _open_spark(rows, options)
    if isinstance(rows, (str, os.PathLike)) and Path(rows).suffix.lower() == ".npy":
        return _open_arrays(Path(rows), options)
    return _open_files(rows, options)


@dataclass(frozen=True, slots=True)
class _Options:
    """What `open_rows` was asked for beside the rows."""

    schema: Schema | None
    labels: Any
    target: str | None
    cache: Any
    progress: Progress | None
    client: Any

    def refuse_reading_options(self, *, client_too: bool = False) -> None:
        """Refuse options that only rows of table files take."""
        if self.cache is not False or self.progress is not None or (client_too and self.client is not None):
            raise ParameterError(
                "these rows take neither cache nor progress, and only rows of Dask and files take a client."
            )

    def refuse_schema(self) -> None:
        """Refuse what describes columns with names, for arrays of numbers."""
        if self.schema is not None or self.labels is None or self.target is not None:
            raise ParameterError("an array of numbers takes no schema, and its labels or targets are given as `labels`.")

    def with_schema(self) -> Schema:
        """The schema, checked together with the target."""
        if self.labels is not None:
            raise ParameterError("labels are the schema's target; `labels` is for arrays.")
        schema, target = self.schema, self.target
        if schema is None or (schema.target is None and target is None):
            raise ParameterError(
                "open_rows needs a schema with a target: it says what columns and labels mean. For a regressor name the "
                "column of its numbers as `target`."
            )
        if target is not None and (not isinstance(target, str) or target in (*schema.column_names, schema.person)):
            raise ParameterError("target must be the name of a column of numbers that the schema does not describe.")
        return schema


def _schema_of(schema: Any) -> Schema | None:
    if isinstance(schema, (str, os.PathLike)):
        return Schema.from_toml(Path(schema))
    if schema is not None and not isinstance(schema, Schema):
        raise ParameterError("schema must be a confide.Schema or the path of one in TOML.")
    return schema


def _open_dask(rows: Any, options: _Options) -> OpenedRows:
    options.refuse_reading_options()
    dask: Any = importlib.import_module("confide.data.dask")  # an optional part, imported on use
    if options.schema is None:
        options.refuse_schema()
        return dask.rows_of_arrays(rows, options.labels, options.client)  # type: ignore[no-any-return]
    return dask.rows_of_frame(rows, options.with_schema(), options.client, options.target)  # type: ignore[no-any-return]


def _open_spark(rows: Any, options: _Options) -> OpenedRows:
    options.refuse_reading_options(client_too=True)
    spark: Any = importlib.import_module("confide.data.spark")  # an optional part, imported on use
    return spark.rows_of_frame(rows, options.with_schema(), options.target)  # type: ignore[no-any-return]


def _open_files(paths: Any, options: _Options) -> OpenedRows:
    schema, cache = options.with_schema(), options.cache
    if isinstance(cache, bool):
        folder: Path | str | None = "" if cache else None
    else:
        folder = Path(cache)
        if not folder.is_dir():
            raise ParameterError("cache must be True, False or the path of a folder that exists.")
    parts = tuple(FilePart(Stamp.of(path), _kinds_of(schema, options.target)) for path in files_of(paths))
    files = FileRows(schema, parts, folder, options.progress, options.target)
    if options.client is None:
        return files
    dask: Any = importlib.import_module("confide.data.dask")
    return dask.rows_of_files(files, options.client)  # type: ignore[no-any-return]


def _kinds_of(schema: Schema, target: str | None) -> dict[str, Kind]:
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


def _open_arrays(rows: Path, options: _Options) -> ArrayRows:
    options.refuse_reading_options(client_too=True)
    options.refuse_schema()
    labels = options.labels
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
